//! Calls of a program: its systems run one after the other.

use systola_ir::Diagnostic;
use systola_ir::codes::run as codes;
use systola_ir::system::{Program, Source as Feed};
use systola_rt::{HostArray, Stats, View, ViewMut};

use super::Kernel;
use super::sizes::{shape_at, stage_sizes};
use crate::error::Error;

impl Kernel {
    /// Runs the stages one after the other; what goes from one to the next is an array of ours.
    pub(super) fn run_program(
        &self,
        n: usize,
        values: &[i128],
        inputs: &[(&str, View<'_>)],
        outputs: &mut [(&str, ViewMut<'_>)],
    ) -> Result<Stats, Error> {
        let program = &self.module.programs[n];
        check_arrays(program, inputs, outputs)?;
        let mut made: Vec<Vec<HostArray>> = Vec::new();
        let mut total = Stats::default();
        for stage in &program.stages {
            let system = &self.module.systems[stage.system];
            let own = stage_sizes(stage, values)?;
            let expanded = system.expand_batch().map_err(|error| {
                Diagnostic::new(&codes::TOO_LARGE, system.span, error.to_string())
            })?;
            let given = stage.inputs.iter().map(|(input, feed)| {
                let view = match feed {
                    Feed::Input(k) => {
                        let name = &program.inputs[*k].name;
                        let given = inputs.iter().find(|(given, _)| given == name);
                        let missing = || systola_rt::Error::MissingInput { name: name.clone() };
                        given.ok_or_else(missing)?.1.clone()
                    }
                    Feed::Output { stage, output } => made[*stage][*output].view(),
                };
                Ok((expanded.inputs[input.index()].name.as_str(), view))
            });
            let given: Vec<(&str, View<'_>)> = given.collect::<Result<_, Error>>()?;
            let mut results = Vec::new();
            for output in &expanded.outputs {
                let shape = shape_at(&output.axes, &own).ok_or_else(|| {
                    let message = format!("`{}` is too large", output.name);
                    Diagnostic::new(&codes::TOO_LARGE, output.span, message)
                })?;
                results.push(HostArray::zeros(output.ty, &shape)?);
            }
            let names = expanded.outputs.iter().map(|o| o.name.as_str());
            let views = results.iter_mut().map(HostArray::view_mut);
            let mut views: Vec<(&str, ViewMut<'_>)> = names.zip(views).collect();
            let stats = self.run_system(stage.system, &own, given, &mut views)?;
            drop(views);
            total.kernel_seconds += stats.kernel_seconds;
            total.total_seconds += stats.total_seconds;
            total.launches += stats.launches;
            total.blocks += stats.blocks;
            total.packed_bytes += stats.packed_bytes;
            made.push(results);
        }
        for (name, feed) in &program.outputs {
            let Some((_, view)) = outputs.iter_mut().find(|(given, _)| given == name) else {
                continue;
            };
            match feed {
                Feed::Output { stage, output } => {
                    copy(name, &made[*stage][*output], view)?;
                }
                Feed::Input(k) => {
                    let wanted = &program.inputs[*k].name;
                    if let Some((_, given)) = inputs.iter().find(|(given, _)| given == wanted) {
                        copy(name, &HostArray::from_view(given)?, view)?;
                    }
                }
            }
        }
        Ok(total)
    }
}

/// The arrays of a program: each of its outputs, and nothing that it does not have.
fn check_arrays(
    program: &Program,
    inputs: &[(&str, View<'_>)],
    outputs: &[(&str, ViewMut<'_>)],
) -> Result<(), Error> {
    let takes: Vec<String> = program.inputs.iter().map(|i| i.name.clone()).collect();
    let gives: Vec<String> = program
        .outputs
        .iter()
        .map(|(name, _)| name.clone())
        .collect();
    let given: Vec<(&'static str, &str, &[String])> = inputs
        .iter()
        .map(|(name, _)| ("input", *name, &takes[..]))
        .chain(
            outputs
                .iter()
                .map(|(name, _)| ("output", *name, &gives[..])),
        )
        .collect();
    for (n, (role, name, known)) in given.iter().enumerate() {
        let name = (*name).to_string();
        if !known.contains(&name) {
            let known = known.to_vec();
            return Err(systola_rt::Error::UnknownName { role, name, known }.into());
        }
        if given[..n]
            .iter()
            .any(|(other, same, _)| other == role && *same == name)
        {
            return Err(systola_rt::Error::GivenTwice { name }.into());
        }
    }
    let missing = gives
        .into_iter()
        .find(|name| !outputs.iter().any(|(own, _)| own == name));
    match missing {
        Some(name) => Err(systola_rt::Error::MissingOutput { name }.into()),
        None => Ok(()),
    }
}

fn copy(name: &str, from: &HostArray, to: &mut ViewMut<'_>) -> Result<(), Error> {
    let elements = |shape: &[usize]| shape.iter().product::<usize>();
    if to.shape().len() == 1 && elements(to.shape()) == elements(from.shape()) {
        to.set_shape(from.shape())?;
    }
    if to.shape() != from.shape() {
        let (expected, got) = (from.shape().to_vec(), to.shape().to_vec());
        let name = name.to_string();
        return Err(systola_rt::Error::WrongShape {
            name,
            expected,
            got,
        }
        .into());
    }
    if to.ty() != from.ty() {
        let (expected, got) = (from.ty(), to.ty());
        let name = name.to_string();
        return Err(systola_rt::Error::WrongType {
            name,
            expected,
            got,
        }
        .into());
    }
    Ok(from.copy_to(to)?)
}
