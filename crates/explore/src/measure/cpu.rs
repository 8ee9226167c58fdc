//! Candidates on the CPU of this machine.

use systola_driver::Lowered;
use systola_interp::{Arrays, Tensor};
use systola_ir::system::System;
use systola_jit::cpu::{Compiled, CpuOptions, Error, compile_lowered};
use systola_jit::tensors::view;
use systola_rt::timing::Repeats;
use systola_rt::{Deadline, HostArray, RunOptions, View, ViewMut};

use super::{Target, verify};

/// Compiled by the C compiler, run on the given number of threads.
#[derive(Clone, Debug)]
pub struct HostCpu {
    pub options: CpuOptions,
    pub run: RunOptions,
}

/// Arrays aligned for vectors.
pub struct Placed {
    sizes: Vec<(String, i64)>,
    inputs: Vec<(String, HostArray)>,
    outputs: Vec<(String, HostArray)>,
    /// Contents that no run produces, and space for the results of a run.
    blank: Arrays,
    found: Arrays,
}

impl Target for HostCpu {
    type Code = Compiled;
    type Placed = Placed;

    fn compile(&self, lowered: Lowered, deadline: &Deadline) -> Result<Compiled, Error> {
        let mut options = self.options.clone();
        options.compile.deadline = Some(deadline.clone());
        compile_lowered(lowered, &options)
    }

    fn overlaps(&self) -> bool {
        false
    }

    fn run(&self, code: &Compiled, params: &[i128], inputs: &Arrays) -> Result<Arrays, Error> {
        Ok(code.run_tensors(params, inputs, &self.run)?.0)
    }

    fn place(&self, system: &System, params: &[i128], inputs: &Arrays) -> Result<Placed, Error> {
        let aligned = |tensor: &Tensor| -> Result<HostArray, Error> {
            Ok(HostArray::from_view(&view(tensor)?)?)
        };
        let named = |(name, tensor): (&String, &Tensor)| Ok((name.clone(), aligned(tensor)?));
        let blank = verify::outputs(system, params)?;
        Ok(Placed {
            sizes: verify::named_sizes(system, params),
            inputs: inputs.iter().map(named).collect::<Result<_, Error>>()?,
            outputs: blank.iter().map(named).collect::<Result<_, Error>>()?,
            found: blank.clone(),
            blank,
        })
    }

    fn time(&self, code: &Compiled, placed: &mut Placed, timed: usize) -> Result<Vec<f64>, Error> {
        let sizes: Vec<(&str, i64)> = placed.sizes.iter().map(|(n, v)| (n.as_str(), *v)).collect();
        let inputs: Vec<(&str, View<'_>)> = placed
            .inputs
            .iter()
            .map(|(name, array)| (name.as_str(), array.view()))
            .collect();
        let mut outputs: Vec<(&str, ViewMut<'_>)> = placed
            .outputs
            .iter_mut()
            .map(|(name, array)| (name.as_str(), array.view_mut()))
            .collect();
        let repeats = Repeats { warm_up: 0, timed };
        let timing = code.time(&sizes, &inputs, &mut outputs, &self.run, repeats)?;
        Ok(timing.samples)
    }

    fn outputs<'p>(&self, placed: &'p mut Placed) -> Result<&'p Arrays, Error> {
        for (name, array) in &placed.outputs {
            if let Some(tensor) = placed.found.get_mut(name) {
                verify::copy(array, tensor)?;
            }
        }
        Ok(&placed.found)
    }

    fn clear(&self, placed: &mut Placed) -> Result<(), Error> {
        for (name, array) in &mut placed.outputs {
            *array = HostArray::from_view(&view(&placed.blank[name])?)?;
        }
        Ok(())
    }

    fn registers(&self, _: &Compiled) -> Option<u32> {
        None
    }
}
