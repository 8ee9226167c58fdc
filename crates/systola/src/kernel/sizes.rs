//! The sizes of a call: given, or inferred from the shapes of its arrays.

use systola_explore::sizes::{Parameters, Sizes};
use systola_ir::codes::run as codes;
use systola_ir::form::Cond;
use systola_ir::system::{Axis, Stage};
use systola_ir::{Diagnostic, Span};
use systola_rt::{View, ViewMut};

use super::{Kernel, Work};
use crate::error::Error;

impl Kernel {
    /// The sizes of a call, in order: given, or from the shapes.
    pub(super) fn values(
        &self,
        given: &[(&str, i64)],
        inputs: &[(&str, View<'_>)],
        outputs: &[(&str, ViewMut<'_>)],
    ) -> Result<Vec<i128>, Error> {
        let parameters = self.parameters();
        let known: Vec<&str> = parameters.params.iter().map(|p| p.name.as_str()).collect();
        let mut sizes = self.settings.sizes.clone();
        for (name, value) in given {
            unknown_size(name, &known)?;
            sizes.insert((*name).to_string(), i128::from(*value));
        }
        let declared = self.declared();
        let shape = |name: &str| {
            let input = inputs.iter().find(|(own, _)| *own == name);
            let output = outputs.iter().find(|(own, _)| *own == name);
            input
                .map(|(_, view)| view.shape())
                .or(output.map(|(_, view)| view.shape()))
        };
        // A flat array of several axes says nothing about each of them.
        let shapes: Vec<(&[Axis], &[usize])> = declared
            .iter()
            .filter_map(|(name, axes)| Some((&axes[..], shape(name)?)))
            .filter(|(axes, shape)| axes.len() == shape.len())
            .collect();
        parameters.infer_all(&mut sizes, &shapes);
        let missing = parameters.missing(&sizes);
        if missing.is_empty() {
            return values_of(parameters, &sizes);
        }
        let calls: Vec<String> = missing
            .iter()
            .map(|name| format!(".size(\"{name}\", …)"))
            .collect();
        let flat = declared.iter().filter_map(|(name, axes)| {
            let given = shape(name).filter(|shape| shape.len() != axes.len())?;
            Some(format!(
                "`{name}` has {} axes, the array that was given has shape {given:?}",
                axes.len()
            ))
        });
        let error = Error::new(
            &codes::MISSING_PARAM,
            format!(
                "the shapes do not say what {} {}",
                missing.join(", "),
                if missing.len() == 1 { "is" } else { "are" }
            ),
            &format!(
                "give it with the call, {}, or to the builder with .sizes(…)",
                calls.join("")
            ),
        );
        Err(flat.fold(error, Error::note))
    }

    /// The arrays of a call with their axes: inputs, and the outputs of a system.
    pub(super) fn declared(&self) -> Vec<(String, Vec<Axis>)> {
        let named = |name: &String, axes: &[Axis]| (name.clone(), axes.to_vec());
        match self.work {
            Work::System(n) => {
                let Ok(system) = self.module.systems[n].expand_batch() else {
                    return Vec::new();
                };
                let inputs = system.inputs.iter().map(|i| named(&i.name, &i.axes));
                let outputs = system.outputs.iter().map(|o| named(&o.name, &o.axes));
                inputs.chain(outputs).collect()
            }
            Work::Program(n) => {
                let inputs = self.module.programs[n].inputs.iter();
                inputs.map(|i| named(&i.name, &i.axes)).collect()
            }
        }
    }
}

/// The sizes in order, which must satisfy the `where`.
pub(super) fn values_of(parameters: Parameters<'_>, sizes: &Sizes) -> Result<Vec<i128>, Error> {
    let values = parameters.params.iter().map(|p| sizes[&p.name]);
    let values: Vec<i128> = values.collect();
    let holds = |cond: &&Cond| cond.eval(&values, &[]) == Ok(true);
    let Some(cond) = parameters.context.iter().find(|cond| !holds(cond)) else {
        return Ok(values);
    };
    let names: Vec<String> = parameters.params.iter().map(|p| p.name.clone()).collect();
    Err(Error::new(
        &codes::CONTEXT_VIOLATED,
        format!(
            "{} does not satisfy `{}`",
            parameters.show(&values),
            cond.display(&names, &[])
        ),
        "the shapes and sizes of a call must satisfy the `where`",
    ))
}

pub(super) fn unknown_size(name: &str, known: &[&str]) -> Result<(), Error> {
    if known.contains(&name) {
        return Ok(());
    }
    Err(Error::new(
        &codes::UNKNOWN_PARAM,
        format!("there is no size `{name}`"),
        &format!("the sizes are {}", known.join(", ")),
    ))
}

/// The declared shape of a flat array, where it has as many elements.
pub(super) fn flat_shape(axes: &[Axis], given: &[usize], values: &[i128]) -> Option<Vec<usize>> {
    let [elements] = given else { return None };
    let shape = shape_at(axes, values).filter(|shape| shape.len() != 1)?;
    let wanted = shape
        .iter()
        .try_fold(1usize, |n, extent| n.checked_mul(*extent))?;
    (wanted == *elements).then_some(shape)
}

pub(super) fn shape_at(axes: &[Axis], values: &[i128]) -> Option<Vec<usize>> {
    let extent = |axis: &Axis| {
        let extent = axis.hi.sub(&axis.lo).eval(values, &[]).ok()?;
        usize::try_from(extent.max(0)).ok()
    };
    axes.iter().map(extent).collect()
}

pub(super) fn stage_sizes(stage: &Stage, values: &[i128]) -> Result<Vec<i128>, Error> {
    let all = stage.args.iter().map(|form| form.eval(values, &[]));
    all.collect::<Result<_, _>>().map_err(|error| {
        let message = format!("stage {}: {error}", stage.name);
        Diagnostic::new(&codes::TOO_LARGE, stage.span, message).into()
    })
}

pub(super) fn size_of(name: &str, value: i128) -> Result<i64, Error> {
    i64::try_from(value).map_err(|_| {
        let message = format!("{name} = {value} does not fit into 64 bits");
        Diagnostic::new(&codes::TOO_LARGE, Span::NONE, message)
            .help("use smaller sizes")
            .into()
    })
}
