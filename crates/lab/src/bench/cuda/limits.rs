//! The limits of a GPU: copying is measured, multiply-adds follow from multiprocessors, lanes and
//! clock.

use std::sync::Arc;

use systola::ir::Scalar;
use systola::rt::HostArray;
use systola::rt::cuda::{DeviceArray, DeviceInfo, Gpu};

use super::case::{Unit, Work};

pub struct Limits {
    /// Bytes read and written in a second.
    pub copy: f64,
    /// Operations in a second, a fused multiply-add counted as two.
    pub f32: f64,
    pub f64: f64,
    /// Additions or maxima of integers in a second.
    pub integer: f64,
}

impl Limits {
    /// Copies `elements` of 4 bytes, more than any cache holds.
    pub fn measure(gpu: &Arc<Gpu>, elements: usize) -> Result<Limits, systola::rt::Error> {
        let zeros = HostArray::zeros(Scalar::F32, &[elements])?;
        let from = DeviceArray::from_view(gpu, &zeros.view())?;
        let mut to = DeviceArray::new(gpu, Scalar::F32, &[elements])?;
        let seconds = to.time_copies(&from, 21)?.median();
        let (f32_lanes, f64_lanes) = lanes(gpu.info.capability);
        let cycles = f64::from(gpu.info.multiprocessors) * f64::from(gpu.info.clock_khz) * 1e3;
        Ok(Limits {
            copy: 2.0 * from.bytes() as f64 / seconds,
            f32: 2.0 * f32_lanes * cycles,
            f64: 2.0 * f64_lanes * cycles,
            integer: 64.0 * cycles,
        })
    }

    /// The minimum seconds: the longer of moving the bytes and of computing the operations.
    pub fn seconds(&self, work: &Work) -> f64 {
        let rate = match work.unit {
            Unit::F32 => self.f32,
            Unit::F64 => self.f64,
            Unit::Single => self.f32 / 2.0,
            Unit::Integer => self.integer,
        };
        (work.bytes / self.copy).max(work.operations / rate)
    }

    pub fn describe(&self, info: &DeviceInfo) -> String {
        format!(
            "{}, {} multiprocessors, CUDA {}.{}\ncopy  {:.2} TB/s (read + written)\nFMA   {:.1} TFLOP/s f32, {:.1} TFLOP/s f64 at {:.2} GHz\n",
            info.name,
            info.multiprocessors,
            info.driver.0,
            info.driver.1,
            self.copy / 1e12,
            self.f32 / 1e12,
            self.f64 / 1e12,
            f64::from(info.clock_khz) / 1e6,
        )
    }
}

/// Multiply-adds of a multiprocessor in a cycle, in single and double precision, by compute
/// capability.
fn lanes(capability: (u32, u32)) -> (f64, f64) {
    match capability {
        (8, 0) => (64.0, 32.0),
        (9 | 10, 0) => (128.0, 64.0),
        (0..=7, _) => (64.0, 32.0),
        _ => (128.0, 2.0),
    }
}
