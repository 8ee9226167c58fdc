//! Where kernels are to run, as far as a choice of mappings depends on it.

use systola_driver::{Fix, Machine, Target};
use systola_rt::CacheOptions;

use crate::model::device::Number;
use crate::model::{Cpu, Device, Gpu};

/// A machine, what the model knows of it, and where results about it are stored.
#[derive(Clone, Debug)]
pub struct Platform {
    /// A readable identity of the device: results of one device are not used for another.
    pub device: String,
    /// The machine description for the lowering.
    pub machine: Machine,
    /// The device numbers for the model.
    pub model: Device,
    /// The sizes that become constants in kernels.
    pub fix: Fix,
    /// The cache of compiled kernels and results.
    pub cache: Option<CacheOptions>,
}

impl Platform {
    /// A machine without a device: its kernels are printed and not run. Nothing is stored.
    pub fn of(machine: Machine, fix: Fix) -> Platform {
        let model = match machine.threads {
            Some(_) => Device::Gpu(Gpu::default()),
            None => Device::Cpu(Cpu {
                vector_bytes: Number::reported(machine.vector_bytes.into()),
                vector_registers: Number::reported(machine.registers as f64),
                ..Cpu::default()
            }),
        };
        Platform {
            device: "no device".to_string(),
            machine,
            model,
            fix,
            cache: None,
        }
    }

    pub fn target(&self) -> Target {
        self.machine.target
    }
}
