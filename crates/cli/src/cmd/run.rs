//! `systola run`: evaluate the equations, or run the array clock by clock.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use clap::ValueEnum;
use systola_driver::check_mapping;
use systola_interp::array::run_array;
use systola_interp::tensor::{Tensor, TensorError};
use systola_interp::{Arrays, npy, run_program, run_system};
use systola_ir::array::Array;
use systola_ir::system::{Input, InputKind, Program, Source as Origin, System};

use crate::compare::compare;
use crate::scene::array_name;
use crate::source::{
    Failure, Outcome, Parameters, Sizes, Small, Source, Status, parse_file, parse_size,
};
use crate::table::{Align, Table};
use crate::term::{self, Paint};

const EXAMPLES: &str = "\
Examples:
  systola run gallery/conv1d/core.ure --target system --set C=16 --set Q=5
  systola run gallery/conv1d/core.ure --target array --map sbm --set C=16 --set Q=5 --verify
  systola run gallery/conv1d/core.ure --target array --map sbm --in x=x.npy --in w=w.npy --out z=z.npy

Inputs that are not given are random, reproducibly. Sizes follow from the shapes of the given
inputs where they can; what is still open is chosen small, and said.";

/// Run a system, a mapping or a program on given or random inputs
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A .ure file
    file: PathBuf,
    /// What runs: the equations, or the array cycle by cycle
    #[arg(long, value_enum, default_value = "system")]
    target: Target,
    /// The mapping for the array; repeat it to choose one for each system of a program
    #[arg(long = "map", value_name = "NAME")]
    maps: Vec<String>,
    /// Which system, where a file has several
    #[arg(long, value_name = "NAME", conflicts_with = "program")]
    system: Option<String>,
    /// Run a program of the file
    #[arg(long, value_name = "NAME")]
    program: Option<String>,
    /// Fix a parameter, for instance C=16; may be repeated
    #[arg(short = 'p', long = "set", value_name = "P=V", value_parser = parse_size)]
    sizes: Vec<(String, i128)>,
    /// Read an input from a .npy file; may be repeated
    #[arg(long = "in", value_name = "NAME=FILE", value_parser = parse_file)]
    inputs: Vec<(String, PathBuf)>,
    /// Seed of the inputs that are not given
    #[arg(long, value_name = "SEED")]
    random: Option<u64>,
    /// Write an output to a .npy file; may be repeated
    #[arg(long = "out", value_name = "NAME=FILE", value_parser = parse_file)]
    outputs: Vec<(String, PathBuf)>,
    /// Run the equations too, and compare: integers to the bit, floats within a stated bound
    #[arg(long)]
    verify: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Target {
    /// Evaluate the equations
    System,
    /// Run the systolic array
    Array,
}

/// What runs, with the inputs it wants.
enum Job<'a> {
    /// The second one has its batch expanded, as inputs and outputs have.
    System(&'a System, Box<System>),
    Program(&'a Program),
}

impl Job<'_> {
    fn name(&self) -> &str {
        match self {
            Job::System(system, _) => &system.name,
            Job::Program(program) => &program.name,
        }
    }

    fn parameters(&self) -> Parameters<'_> {
        match self {
            Job::System(system, _) => (*system).into(),
            Job::Program(program) => (*program).into(),
        }
    }

    /// The inputs that have to be given.
    fn inputs(&self) -> Vec<&Input> {
        let all = match self {
            Job::System(_, expanded) => &expanded.inputs,
            Job::Program(program) => &program.inputs,
        };
        all.iter()
            .filter(|i| !matches!(i.kind, InputKind::Table { data: Some(_) }))
            .collect()
    }
}

pub fn run(args: &Args) -> Outcome {
    let source = Source::load(&args.file)?;
    let job = select(&source, args)?;
    let mut sizes: Sizes = args.sizes.iter().cloned().collect();
    source.check_sizes(&sizes)?;
    let mut inputs = read_inputs(&source, &job, args)?;
    // Twice, since one input may decide what another one needs.
    for _ in 0..2 {
        for input in job.inputs() {
            if let Some(tensor) = inputs.get(&input.name) {
                job.parameters()
                    .infer(&mut sizes, &input.axes, &tensor.shape);
            }
        }
    }
    let params = choose_sizes(&job, &sizes)?;
    fill_inputs(&job, &params, &mut inputs, args.random)?;

    let equations = |source: &Source| match &job {
        Job::System(system, _) => run_system(system, &params, &inputs),
        Job::Program(program) => run_program(&source.module, program, &params, &inputs),
    };
    let start = Instant::now();
    let outputs = match args.target {
        Target::System => equations(&source).map_err(|d| source.fail(&[d]))?,
        Target::Array => run_on_array(&source, &job, &params, &inputs, args)?,
    };
    let seconds = start.elapsed().as_secs_f64();
    print_outputs(&outputs);
    for (name, path) in &args.outputs {
        let tensor = outputs.get(name).ok_or_else(|| {
            let names: Vec<_> = outputs.keys().map(String::as_str).collect();
            Failure::new(format!("{} has no output `{name}`", job.name()))
                .help(format!("it has {}", names.join(", ")))
        })?;
        std::fs::write(path, npy::write(tensor))
            .map_err(|e| Failure::new(format!("cannot write {}: {e}", path.display())))?;
        term::print(format!("{name} written to {}\n", path.display()));
    }
    let what = match args.target {
        Target::System => "equations evaluated",
        Target::Array => "array run",
    };
    term::print(Paint::Dim.out(format!("{what} in {seconds:.3} s")) + "\n");
    if args.verify {
        let expect = equations(&source).map_err(|d| source.fail(&[d]))?;
        let mut status = Status::Done;
        for line in compare(&expect, &outputs) {
            let (word, line) = match line {
                Ok(line) => (Paint::Green.out("verified"), line),
                Err(line) => {
                    status = Status::Bug;
                    (Paint::Red.out("DIFFERENT"), line)
                }
            };
            term::print(format!("{word} {line}\n"));
        }
        if status == Status::Bug {
            term::eprint(format!(
                "A legal array must give what its equations say. This is a bug of Systola; please \
                 report it with {}.\n",
                source.path
            ));
        }
        return Ok(status);
    }
    Ok(Status::Done)
}

fn select<'a>(source: &'a Source, args: &Args) -> Result<Job<'a>, Failure> {
    if let Some(name) = &args.program {
        return Ok(Job::Program(source.program(name)?));
    }
    let system = match (&args.system, args.maps.first()) {
        (Some(name), _) => source.system(Some(name))?,
        (None, Some(map)) => {
            let mapping = source.mapping(Some(map), None)?;
            source.system(Some(&mapping.system))?
        }
        (None, None) => source.system(None)?,
    };
    let expanded = system
        .expand_batch()
        .map_err(|e| Failure::new(e.to_string()))?;
    Ok(Job::System(system, Box::new(expanded)))
}

fn read_inputs(source: &Source, job: &Job<'_>, args: &Args) -> Result<Arrays, Failure> {
    let mut arrays = Arrays::new();
    for (name, path) in &args.inputs {
        let wanted = job.inputs();
        let input = wanted.iter().find(|i| i.name == *name).ok_or_else(|| {
            let names: Vec<_> = wanted.iter().map(|i| i.name.as_str()).collect();
            Failure::new(format!("{} has no input `{name}`", job.name()))
                .help(format!("it has {}", names.join(", ")))
        })?;
        let bytes = std::fs::read(path)
            .map_err(|e| Failure::new(format!("cannot read {}: {e}", path.display())))?;
        let tensor = npy::read(&bytes, Some(input.ty))
            .map_err(|e| source.fail(&[e.diagnostic(&path.display().to_string())]))?;
        arrays.insert(name.clone(), tensor);
    }
    Ok(arrays)
}

fn choose_sizes(job: &Job<'_>, sizes: &Sizes) -> Result<Vec<i128>, Failure> {
    let parameters = job.parameters();
    let missing = parameters.missing(sizes).join(", ");
    let values = parameters
        .with_small(sizes, Small::Distinct)
        .ok_or_else(|| {
            let given: Vec<String> = sizes.iter().map(|(p, v)| format!("{p} = {v}")).collect();
            Failure::new(format!(
                "no sizes with {} satisfy what {} asks of its parameters",
                if given.is_empty() {
                    "small values".to_string()
                } else {
                    given.join(", ")
                },
                job.name()
            ))
            .help("see the `where` of the system; give all sizes with --set")
        })?;
    if !missing.is_empty() {
        term::print(format!(
            "sizes not given ({missing}); taking {}\n",
            parameters.show(&values)
        ));
    }
    Ok(values)
}

fn fill_inputs(
    job: &Job<'_>,
    params: &[i128],
    arrays: &mut Arrays,
    seed: Option<u64>,
) -> Result<(), Failure> {
    let mut drawn = Vec::new();
    for (n, input) in job.inputs().into_iter().enumerate() {
        if arrays.contains_key(&input.name) {
            continue;
        }
        let seed = seed.unwrap_or(0).wrapping_add(n as u64);
        let tensor = Tensor::random(input.ty, &input.axes, params, seed).map_err(|e| {
            let why = match e {
                TensorError::TooLarge => "it is too large".to_string(),
                other => other.to_string(),
            };
            Failure::new(format!("input {} can not be made: {why}", input.name))
        })?;
        drawn.push(input.name.as_str());
        arrays.insert(input.name.clone(), tensor);
    }
    if !drawn.is_empty() {
        term::print(format!(
            "random inputs (seed {}): {}\n",
            seed.unwrap_or(0),
            drawn.join(", ")
        ));
    }
    Ok(())
}

fn run_on_array(
    source: &Source,
    job: &Job<'_>,
    params: &[i128],
    inputs: &Arrays,
    args: &Args,
) -> Result<Arrays, Failure> {
    match job {
        Job::System(system, _) => {
            let array = array_of(source, system, params, args)?;
            run_array(&array, params, inputs).map_err(|d| source.fail(&[d]))
        }
        Job::Program(program) => {
            let mut stages: Vec<Arrays> = Vec::new();
            for stage in &program.stages {
                let system = &source.module.systems[stage.system];
                let args_of_stage = stage.args.iter().map(|form| form.eval(params, &[]));
                let values: Vec<i128> = args_of_stage
                    .collect::<Result<_, _>>()
                    .map_err(|e| Failure::new(format!("stage {}: {e}", stage.name)))?;
                let array = array_of(source, system, &values, args)?;
                let mut given = Arrays::new();
                for (input, origin) in &stage.inputs {
                    let tensor = match origin {
                        Origin::Input(n) => inputs.get(&program.inputs[*n].name),
                        Origin::Output { stage, output } => {
                            let system = &source.module.systems[program.stages[*stage].system];
                            stages[*stage].get(&system.outputs[*output].name)
                        }
                    };
                    if let Some(tensor) = tensor {
                        given.insert(system.inputs[input.index()].name.clone(), tensor.clone());
                    }
                }
                stages.push(run_array(&array, &values, &given).map_err(|d| source.fail(&[d]))?);
            }
            let mut outputs = BTreeMap::new();
            for (name, origin) in &program.outputs {
                let tensor = match origin {
                    Origin::Input(n) => inputs.get(&program.inputs[*n].name),
                    Origin::Output { stage, output } => {
                        let system = &source.module.systems[program.stages[*stage].system];
                        stages[*stage].get(&system.outputs[*output].name)
                    }
                };
                outputs.extend(tensor.map(|t| (name.clone(), t.clone())));
            }
            Ok(outputs)
        }
    }
}

/// The array of the chosen mapping of a system, or of its first one.
fn array_of(
    source: &Source,
    system: &System,
    params: &[i128],
    args: &Args,
) -> Result<Array, Failure> {
    let chosen = args.maps.iter().find(|name| {
        let named = |m: &&systola_ir::mapping::Mapping| m.name == **name && m.system == system.name;
        source.module.mappings.iter().any(|m| named(&m))
    });
    if chosen.is_none()
        && let (Some(name), None) = (args.maps.first(), &args.program)
    {
        source.mapping(Some(name), Some(&system.name))?;
    }
    let mapping = source.mapping(chosen.map(String::as_str), Some(&system.name))?;
    let sizes = Parameters::from(system).named(params);
    let checked = check_mapping(&source.module, mapping, &sizes).map_err(|d| source.fail(&d))?;
    let counts = checked
        .report
        .counts
        .as_ref()
        .map_or_else(String::new, |c| {
            format!(": {} PEs, {} steps", c.pes, c.steps)
        });
    term::print(format!(
        "mapping {} of {}, {}{counts}\n",
        Paint::Bold.out(&mapping.name),
        system.name,
        array_name(&checked.report)
    ));
    Ok(checked.array)
}

/// Shape, type and the first values of each output.
pub fn print_outputs(outputs: &Arrays) {
    const SHOWN: usize = 8;
    for (name, tensor) in outputs {
        let shape: Vec<String> = tensor.shape.iter().map(usize::to_string).collect();
        term::print(format!(
            "{}[{}]: {}\n",
            Paint::Bold.out(name),
            shape.join(", "),
            tensor.ty()
        ));
        let columns = tensor.shape.last().copied().unwrap_or(1);
        let rows = tensor.data.len().checked_div(columns).unwrap_or(0);
        let mut table = Table::new(2, vec![Align::Right; SHOWN + 1]);
        for row in 0..rows.min(SHOWN) {
            let mut cells: Vec<String> = (0..columns.min(SHOWN))
                .filter_map(|column| tensor.data.get(row * columns + column))
                .map(|value| match value.as_float() {
                    Some(x) => format!("{x:.6}"),
                    None => value.to_string(),
                })
                .collect();
            if columns > SHOWN {
                cells.push("…".to_string());
            }
            table.row(cells);
        }
        if rows > SHOWN {
            table.row(["…"]);
        }
        term::print(table.render());
    }
}
