//! Mappings compiled for a device with its own memory.

use std::sync::Arc;

use systola_driver::{Argument, DeviceArtifact, DeviceEntry, Lowered};
use systola_ir::kernel::Program;
use systola_rt::device::{
    DeviceArray, DeviceKernel, DeviceProgram, DeviceSource, Driver, Gpu, KernelArgument, SharedPart,
};
use systola_rt::timing::{Repeats, Timing};
use systola_rt::{Stats, View, ViewMut};

use crate::cpu::{Error, ordered_sizes};

/// A mapping as machine code of a device. It can be run any number of times.
#[derive(Debug)]
pub struct DeviceCompiled<D: Driver> {
    pub lowered: Lowered,
    /// The text it was compiled from.
    pub source: String,
    program: DeviceProgram<D>,
}

impl<D: Driver> DeviceCompiled<D> {
    pub(crate) fn new(
        lowered: Lowered,
        artifact: DeviceArtifact,
        gpu: &Arc<Gpu<D>>,
        options: &D::Options,
    ) -> Result<DeviceCompiled<D>, Error> {
        let source = artifact.source.clone();
        let program = DeviceProgram::compile(
            lowered.program.clone(),
            device_source(artifact),
            gpu,
            options,
            lowered.sizes.as_deref(),
        )?;
        Ok(DeviceCompiled {
            lowered,
            source,
            program,
        })
    }

    /// Runs it on arrays of the host: sizes by name, every input without contents in the program,
    /// and every output.
    pub fn run(
        &self,
        sizes: &[(&str, i64)],
        inputs: &[(&str, View<'_>)],
        outputs: &mut [(&str, ViewMut<'_>)],
    ) -> Result<Stats, Error> {
        let values = ordered_sizes(self.program(), sizes)?;
        Ok(self.program.run(&values, inputs, outputs)?)
    }

    /// The same on arrays that are on the device and stay there.
    pub fn run_on_device(
        &self,
        sizes: &[(&str, i64)],
        inputs: &[(&str, &DeviceArray<D>)],
        outputs: &mut [(&str, &mut DeviceArray<D>)],
    ) -> Result<Stats, Error> {
        let values = ordered_sizes(self.program(), sizes)?;
        Ok(self.program.run_on_device(&values, inputs, outputs)?)
    }

    /// The same several times, without waiting on the host in between; the seconds of each run on
    /// the device, which is idle before the first.
    pub fn time_on_device(
        &self,
        sizes: &[(&str, i64)],
        inputs: &[(&str, &DeviceArray<D>)],
        outputs: &mut [(&str, &mut DeviceArray<D>)],
        repeats: Repeats,
    ) -> Result<Timing, Error> {
        let values = ordered_sizes(self.program(), sizes)?;
        Ok(self
            .program
            .time_on_device(&values, inputs, outputs, repeats)?)
    }

    pub fn program(&self) -> &Program {
        self.program.program()
    }

    /// The code on the device.
    pub fn loaded(&self) -> &DeviceProgram<D> {
        &self.program
    }

    pub fn gpu(&self) -> &Arc<Gpu<D>> {
        self.program.gpu()
    }
}

/// Converts the output of a printer to the source type of the runtime.
pub fn device_source(artifact: DeviceArtifact) -> DeviceSource {
    let constants = artifact.constants.into_iter();
    DeviceSource {
        code: artifact.source,
        kernels: artifact.kernels.into_iter().map(kernel).collect(),
        constants: constants.map(|c| (c.buffer.index(), c.symbol)).collect(),
    }
}

fn kernel(entry: DeviceEntry) -> DeviceKernel {
    let arguments = entry.arguments.iter().map(|argument| match argument {
        Argument::Buffer(b) => KernelArgument::Buffer(b.index()),
        Argument::Value(b) => KernelArgument::Value(b.index()),
        Argument::Size(n) => KernelArgument::Size(*n),
        Argument::Host(n) => KernelArgument::Host(*n),
        Argument::Shared => KernelArgument::Shared,
    });
    let shared = entry.dynamic_shared.iter().map(|array| SharedPart {
        extents: array.extents.clone(),
        bytes: array.element_bytes,
    });
    let choices = entry.choices.into_iter().map(|c| (c.symbol, c.cond));
    DeviceKernel {
        arguments: arguments.collect(),
        dynamic_shared: shared.collect(),
        symbol: entry.symbol,
        threads: entry.threads,
        static_shared: entry.static_shared,
        choices: choices.collect(),
    }
}
