//! The meaning of a program: its stages in sequence, which pass arrays on.

use systola_ir::codes::run;
use systola_ir::system::{Module, Program, Source, Stage};
use systola_ir::{Diagnostic, InputId};

use crate::compare::Expected;
use crate::inputs::Inputs;
use crate::params::{check_params, show_index, too_large};
use crate::system::{Arrays, Options, prepare, run_bound, run_tracked};
use crate::tensor::{Tensor, extents};

/// Runs a program at concrete parameters; its outputs by name.
pub fn run_program(
    module: &Module,
    program: &Program,
    params: &[i128],
    inputs: &Arrays,
) -> Result<Arrays, Diagnostic> {
    Ok(run(module, program, params, inputs, false)?.arrays)
}

/// The same with an error bound of each float, see [`rounding`](crate::rounding): errors propagate
/// from stage to stage.
pub fn expect_program(
    module: &Module,
    program: &Program,
    params: &[i128],
    inputs: &Arrays,
) -> Result<Expected, Diagnostic> {
    run(module, program, params, inputs, true)
}

/// An array, and error bounds of its elements where there are some.
type Found<'a> = (&'a Tensor, &'a [f64]);

fn run(
    module: &Module,
    program: &Program,
    params: &[i128],
    inputs: &Arrays,
    tracks: bool,
) -> Result<Expected, Diagnostic> {
    let names: Vec<String> = program.params.iter().map(|p| p.name.clone()).collect();
    check_params(&names, &program.context, params, program.span)?;
    let given = program_inputs(program, params, inputs)?;
    let mut results: Vec<Vec<(Tensor, Vec<f64>)>> = Vec::new();
    for stage in &program.stages {
        let result = run_stage(module, stage, params, &given, &results, tracks)
            .map_err(|d| d.also(stage.span, format!("in the stage `{}`", stage.name)))?;
        results.push(result);
    }
    let mut all = Expected::default();
    for (name, source) in &program.outputs {
        let (tensor, bounds) = find(*source, &given, &results)
            .ok_or_else(|| missing(program.span, &format!("the source of `{name}`")))?;
        all.arrays.insert(name.clone(), tensor.clone());
        all.bounds.insert(name.clone(), bounds.to_vec());
    }
    Ok(all)
}

fn missing(span: systola_ir::Span, what: &str) -> Diagnostic {
    Diagnostic::new(&run::NOT_A_VALUE, span, format!("{what} does not exist"))
}

/// The arrays of the program's inputs, in order.
fn program_inputs<'a>(
    program: &Program,
    params: &[i128],
    inputs: &'a Arrays,
) -> Result<Vec<&'a Tensor>, Diagnostic> {
    for name in inputs.keys() {
        if program.inputs.iter().all(|i| i.name != *name) {
            let message = format!("`{}` has no input `{name}`", program.name);
            return Err(Diagnostic::new(&run::UNKNOWN_INPUT, program.span, message));
        }
    }
    program
        .inputs
        .iter()
        .map(|input| {
            let (_, shape) = extents(&input.axes, params).map_err(|e| too_large(input.span, e))?;
            let expect = show_index(&shape);
            let Some(tensor) = inputs.get(&input.name) else {
                let message = format!("the input `{}` was not given", input.name);
                return Err(Diagnostic::new(&run::MISSING_INPUT, input.span, message)
                    .help(format!("give an array of {} with shape {expect}", input.ty)));
            };
            if tensor.ty() != input.ty {
                let (name, found) = (&input.name, tensor.ty());
                let message = format!("`{name}` is declared {}, the array is {found}", input.ty);
                return Err(Diagnostic::new(&run::WRONG_TYPE, input.span, message));
            }
            if tensor.shape != shape {
                let (name, found) = (&input.name, show_index(&tensor.shape));
                let message = format!("`{name}` has shape {expect}, the array given has {found}");
                return Err(Diagnostic::new(&run::WRONG_SHAPE, input.span, message));
            }
            Ok(tensor)
        })
        .collect()
}

fn find<'a>(
    source: Source,
    given: &[&'a Tensor],
    results: &'a [Vec<(Tensor, Vec<f64>)>],
) -> Option<Found<'a>> {
    match source {
        Source::Input(n) => Some((given.get(n)?, &[])),
        Source::Output { stage, output } => {
            let (tensor, bounds) = results.get(stage)?.get(output)?;
            Some((tensor, bounds))
        }
    }
}

/// The outputs of a stage, in the order of its system.
fn run_stage(
    module: &Module,
    stage: &Stage,
    params: &[i128],
    given: &[&Tensor],
    results: &[Vec<(Tensor, Vec<f64>)>],
    tracks: bool,
) -> Result<Vec<(Tensor, Vec<f64>)>, Diagnostic> {
    let Some(system) = module.systems.get(stage.system) else {
        return Err(missing(stage.span, "the system of a stage"));
    };
    let args: Result<Vec<i128>, _> = stage.args.iter().map(|a| a.eval(params, &[])).collect();
    let args = args.map_err(|e| too_large(stage.span, e))?;
    let system = prepare(system, &args)?;
    let sources = (0..system.inputs.len()).map(|n| {
        let source = stage.inputs.iter().find(|(id, _)| *id == InputId::from(n));
        find(source?.1, given, results)
    });
    let (arrays, errors): (Vec<_>, Vec<_>) = sources
        .map(|found| (found.map(|f| f.0), found.map(|f| f.1)))
        .unzip();
    let inputs = Inputs::bind_by_id(&system, &args, arrays)?;
    let mut made = if tracks {
        run_tracked(&system, &args, &inputs, errors)?
    } else {
        Expected {
            arrays: run_bound(&system, &args, &inputs, &Options::default())?,
            ..Expected::default()
        }
    };
    let outputs = system.outputs.iter().map(|output| {
        let array = made.arrays.remove(&output.name);
        let array = array.ok_or_else(|| missing(output.span, "an output"))?;
        Ok((array, made.bounds.remove(&output.name).unwrap_or_default()))
    });
    outputs.collect()
}
