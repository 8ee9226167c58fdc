//! Candidates on devices with their own memory. Arrays stay there.

use std::sync::Arc;

use systola_driver::Lowered;
use systola_interp::{Arrays, Tensor};
use systola_ir::system::System;
use systola_jit::cpu::Error;
use systola_jit::cuda::compile_cuda_lowered;
use systola_jit::device::DeviceCompiled;
use systola_jit::opencl::compile_opencl_lowered;
use systola_jit::tensors::{view, view_mut};
use systola_jit::{CudaOptions, OpenClOptions};
use systola_rt::Deadline;
use systola_rt::cuda::Cuda;
use systola_rt::device::{DeviceArray, Driver, Gpu};
use systola_rt::opencl::OpenCl;
use systola_rt::timing::Repeats;

use super::{Target, verify};

/// Arrays on a device.
pub struct Placed<D: Driver> {
    sizes: Vec<(String, i64)>,
    inputs: Vec<(String, DeviceArray<D>)>,
    outputs: Vec<(String, DeviceArray<D>)>,
    /// Contents that no run produces, for each output.
    blank: Vec<DeviceArray<D>>,
    /// Space on the host for the results of a run.
    found: Arrays,
}

impl<D: Driver> Placed<D> {
    fn new(
        gpu: &Arc<Gpu<D>>,
        system: &System,
        params: &[i128],
        inputs: &Arrays,
    ) -> Result<Placed<D>, Error> {
        let found = verify::outputs(system, params)?;
        let copy = |(name, tensor): (&String, &Tensor)| -> Result<_, Error> {
            Ok((name.clone(), DeviceArray::from_view(gpu, &view(tensor)?)?))
        };
        Ok(Placed {
            sizes: verify::named_sizes(system, params),
            inputs: inputs.iter().map(copy).collect::<Result<_, Error>>()?,
            outputs: found.iter().map(copy).collect::<Result<_, Error>>()?,
            blank: found
                .iter()
                .map(|one| Ok(copy(one)?.1))
                .collect::<Result<_, Error>>()?,
            found,
        })
    }

    fn time(&mut self, code: &DeviceCompiled<D>, timed: usize) -> Result<Vec<f64>, Error> {
        let sizes: Vec<(&str, i64)> = self.sizes.iter().map(|(n, v)| (n.as_str(), *v)).collect();
        let inputs: Vec<(&str, &DeviceArray<D>)> = self
            .inputs
            .iter()
            .map(|(name, array)| (name.as_str(), array))
            .collect();
        let mut outputs: Vec<(&str, &mut DeviceArray<D>)> = self
            .outputs
            .iter_mut()
            .map(|(name, array)| (name.as_str(), array))
            .collect();
        let warm_up = usize::from(timed > 1);
        let repeats = Repeats { warm_up, timed };
        let timing = code.time_on_device(&sizes, &inputs, &mut outputs, repeats)?;
        Ok(timing.samples)
    }

    fn outputs(&mut self) -> Result<&Arrays, Error> {
        for (name, array) in &self.outputs {
            if let Some(tensor) = self.found.get_mut(name) {
                array.copy_to(&mut view_mut(tensor)?)?;
            }
        }
        Ok(&self.found)
    }

    fn clear(&mut self) -> Result<(), Error> {
        for ((_, array), blank) in self.outputs.iter_mut().zip(&self.blank) {
            array.time_copies(blank, 1)?;
        }
        Ok(())
    }
}

/// The common implementation of the devices.
macro_rules! on_device {
    ($target:ident, $driver:ty, $compile:ident) => {
        impl Target for $target {
            type Code = DeviceCompiled<$driver>;
            type Placed = Placed<$driver>;

            fn compile(&self, lowered: Lowered, deadline: &Deadline) -> Result<Self::Code, Error> {
                if deadline.is_over() {
                    return Err(systola_rt::Error::OutOfTime.into());
                }
                $compile(lowered, &self.options_until(deadline))
            }

            fn overlaps(&self) -> bool {
                self.overlaps
            }

            fn is_for(&self, code: &Self::Code, params: &[i128]) -> bool {
                code.loaded().is_loaded(params)
            }

            fn run(
                &self,
                code: &Self::Code,
                params: &[i128],
                inputs: &Arrays,
            ) -> Result<Arrays, Error> {
                Ok(code.run_tensors(params, inputs)?.0)
            }

            fn place(
                &self,
                system: &System,
                params: &[i128],
                inputs: &Arrays,
            ) -> Result<Self::Placed, Error> {
                Placed::new(&self.gpu, system, params, inputs)
            }

            fn time(
                &self,
                code: &Self::Code,
                placed: &mut Self::Placed,
                times: usize,
            ) -> Result<Vec<f64>, Error> {
                placed.time(code, times)
            }

            fn outputs<'p>(&self, placed: &'p mut Self::Placed) -> Result<&'p Arrays, Error> {
                placed.outputs()
            }

            fn clear(&self, placed: &mut Self::Placed) -> Result<(), Error> {
                placed.clear()
            }

            fn registers(&self, code: &Self::Code) -> Option<u32> {
                $target::counted(code)
            }
        }
    };
}

/// An NVIDIA GPU.
pub struct Nvidia {
    options: CudaOptions,
    gpu: Arc<Gpu<Cuda>>,
    overlaps: bool,
}

impl Nvidia {
    pub fn open(options: CudaOptions) -> Result<Nvidia, Error> {
        let gpu = systola_rt::cuda::Gpu::open(options.device)?;
        Ok(Nvidia {
            options,
            gpu,
            overlaps: true,
        })
    }

    fn options_until(&self, deadline: &Deadline) -> CudaOptions {
        let mut options = self.options.clone();
        options.compile.deadline = Some(deadline.clone());
        options
    }

    fn counted(code: &DeviceCompiled<Cuda>) -> Option<u32> {
        let resources = code.loaded().resources().ok()?;
        resources.iter().map(|r| r.0).max()
    }
}

/// An OpenCL device.
pub struct OpenClDevice {
    options: OpenClOptions,
    gpu: Arc<Gpu<OpenCl>>,
    /// Compiling while something is measured would disturb a CPU.
    overlaps: bool,
}

impl OpenClDevice {
    pub fn open(options: OpenClOptions) -> Result<OpenClDevice, Error> {
        let gpu = options.open()?;
        let overlaps = !gpu.info.is_cpu;
        Ok(OpenClDevice {
            options,
            gpu,
            overlaps,
        })
    }

    /// The device's compiler runs in this process and cannot be stopped.
    fn options_until(&self, _: &Deadline) -> OpenClOptions {
        self.options.clone()
    }

    fn counted(_: &DeviceCompiled<OpenCl>) -> Option<u32> {
        None
    }
}

on_device!(Nvidia, Cuda, compile_cuda_lowered);
on_device!(OpenClDevice, OpenCl, compile_opencl_lowered);
