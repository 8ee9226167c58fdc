//! `systola dump`: any stage of the compiler as text.

use std::fmt::Write;
use std::path::PathBuf;

use std::time::{Duration, Instant};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use systola_driver::{Target, check_mapping};
use systola_explore::choose::Choice;
use systola_lower::localise::localise;
use systola_lower::lower_kernel::{EMIT, NEST};
use systola_lower::names::LANES;
use systola_lower::passes::{Pass, passes};
use systola_lower::pipeline::aligned;
use systola_lower::watch::Watch;

use crate::choose::{Prefer, Say, Wanted, platform_of, select};
use crate::lowering::{LoweringArgs, Purpose, lower_watched};
use crate::source::{Failure, Outcome, Source, Status, given_sizes, parse_size};
use crate::term;

const EXAMPLES: &str = "\
Examples:
  systola dump gallery/conv1d/core.ure                              what was parsed, printed again
  systola dump gallery/conv1d/core.ure --map sbm --after localise   the recurrences that the mapping selects
  systola dump gallery/conv1d/core.ure --map sbm --after array      PEs, links, registers
  systola dump gallery/conv1d/core.ure --map sbm --after nest       loops: unrolled, split, multiversioned
  systola dump gallery/conv1d/core.ure --map sbm --after kernel     the program of kernels
  systola dump gallery/conv1d/core.ure --map sbm --after prefetch   the same, after this pass
  systola dump gallery/conv2d/core.ure --map rows --after kernel --timings > /dev/null
                                                                    where compile time goes";

/// Print the program after a stage of the compiler
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A .ure file
    file: PathBuf,
    /// The stage, or a pass of the target
    #[arg(long, value_name = "STAGE", value_parser = stages(), default_value = "parse")]
    after: Stage,
    /// Print the time of each lowering step to the standard error
    #[arg(long)]
    timings: bool,
    /// The mapping, also one of the explorer's candidates. Without it the first of the file; if it
    /// has none, the one that `systola run` would choose
    #[arg(long = "map", value_name = "NAME")]
    map: Option<String>,
    /// Write the mapping that was chosen into the file, under this name
    #[arg(long, value_name = "NAME")]
    save: Option<String>,
    /// The system, if the file has several
    #[arg(long, value_name = "NAME")]
    system: Option<String>,
    /// Give a parameter a value, for instance C=16; may be repeated
    #[arg(short = 'p', long = "set", value_name = "P=V", value_parser = parse_size)]
    sizes: Vec<(String, i128)>,
    #[command(flatten)]
    lowering: LoweringArgs,
}

/// The stage at which the compiler stops.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Stage {
    Parse,
    Align,
    Localise,
    Array,
    /// The program of kernels, after a pass of this name or after the last.
    Kernel(Option<String>),
}

/// Reads the name of a stage or of a pass of any target.
fn stages() -> impl TypedValueParser<Value = Stage> {
    let named = |name: &'static str, about: &'static str| PossibleValue::new(name).help(about);
    let mut values = vec![
        named("parse", "Systems, mappings and programs after elaboration"),
        named(
            "align",
            "Recurrences over one index space, to which the mapping aligns the variables",
        ),
        named(
            "localise",
            "Localised recurrences, with the mapping's choices of forwarding and summation",
        ),
        named("array", "The systolic array"),
        named("kernel", "The program of kernels, after all passes"),
        named(
            NEST,
            "The loops of blocks over time, before there are statements",
        ),
        named(EMIT, "The program of kernels, before all passes"),
    ];
    let mut known: Vec<&str> = Vec::new();
    for pass in Target::ALL.into_iter().flat_map(passes) {
        if !known.contains(&pass.name) {
            known.push(pass.name);
            values.push(named(pass.name, pass.about));
        }
    }
    PossibleValuesParser::new(values).map(|name| match name.as_str() {
        "parse" => Stage::Parse,
        "align" => Stage::Align,
        "localise" => Stage::Localise,
        "array" => Stage::Array,
        "kernel" => Stage::Kernel(None),
        _ => Stage::Kernel(Some(name)),
    })
}

pub fn run(args: &Args) -> Outcome {
    let source = Source::load(&args.file)?;
    let sizes = given_sizes(&args.sizes)?;
    source.check_sizes(&sizes)?;
    let is_kernel = matches!(args.after, Stage::Kernel(_));
    if args.lowering.is_given() && !is_kernel {
        return Err(Failure::new(
            "--fix, --simd and --machine go with --after kernel",
        ));
    }
    if args.timings && !is_kernel {
        return Err(Failure::new("--timings goes with --after kernel"));
    }
    args.lowering.check(&source)?;
    let options = args.lowering.options(&source, Purpose::Print)?;
    let (machine, _) = args.lowering.machine(&options);
    let wanted = Wanted {
        map: args.map.as_deref(),
        system: args.system.as_deref(),
        sizes: &sizes,
        save: args.save.as_deref(),
        prefer: Prefer::First,
        say: Say::Err,
    };
    let selected = || select(&source, &wanted, || Ok(platform_of(&machine, &options)));
    let mut text = String::new();
    match &args.after {
        Stage::Parse if args.map.is_none() && args.system.is_none() && args.save.is_none() => {
            let _ = write!(text, "{}", source.module);
        }
        Stage::Parse => {
            let (system, mapping) = match (&args.map, &args.save) {
                (None, None) => (source.system(args.system.as_deref())?, None),
                (Some(_), _) | (_, Some(_)) => {
                    let (system, choice) = selected()?;
                    (system, Some(choice.mapping))
                }
            };
            let _ = write!(text, "{system}");
            if let Some(mapping) = mapping {
                let _ = write!(text, "\n{mapping}");
            }
        }
        Stage::Align => {
            let (system, choice) = selected()?;
            let system = aligned(system, &choice.mapping).map_err(|d| source.fail(&d))?;
            let _ = write!(text, "{system}");
        }
        Stage::Localise => {
            let (system, choice) = selected()?;
            let system = aligned(system, &choice.mapping).map_err(|d| source.fail(&d))?;
            let localised =
                localise(&system, Some(&choice.mapping), LANES).map_err(|d| source.fail(&d))?;
            let _ = write!(text, "{}", localised.system);
        }
        Stage::Array => {
            let mapping = selected()?.1.mapping;
            let checked =
                check_mapping(&source.module, &mapping, &sizes).map_err(|d| source.fail(&d))?;
            let _ = write!(text, "{}", checked.array);
        }
        Stage::Kernel(until) => {
            if let Some(until) = until {
                is_run(until, machine.target)?;
            }
            let (system, Choice { mapping, fix, .. }) = selected()?;
            let mut steps = Steps::default();
            let mut last = Instant::now();
            let watch = &mut Watch {
                until: until.as_deref(),
                done: &mut |name| {
                    steps.add(name, std::mem::replace(&mut last, Instant::now()).elapsed())
                },
                nests: Vec::new(),
            };
            let lowered = lower_watched(&source, system, &mapping, &sizes, &fix, &machine, watch)?;
            let nests = std::mem::take(&mut watch.nests);
            if args.timings {
                eprint!("{steps}");
            }
            if nests.is_empty() {
                let _ = write!(text, "{}", lowered.program);
            } else {
                text.push_str(&nests.join("\n"));
            }
        }
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    term::print(text);
    Ok(Status::Done)
}

/// Does the target run a pass of this name?
fn is_run(name: &str, target: Target) -> Result<(), Failure> {
    let names: Vec<&str> = passes(target).iter().map(|pass: &Pass| pass.name).collect();
    if [NEST, EMIT].contains(&name) || names.contains(&name) {
        return Ok(());
    }
    Err(
        Failure::new(format!("there is no pass `{name}` for the target {target}"))
            .help(format!("its passes: {}", names.join(", "))),
    )
}

/// How long each step took, in the order in which they were first done.
#[derive(Default)]
struct Steps(Vec<(&'static str, Duration)>);

impl Steps {
    fn add(&mut self, name: &'static str, time: Duration) {
        match self.0.iter_mut().find(|step| step.0 == name) {
            Some(step) => step.1 += time,
            None => self.0.push((name, time)),
        }
    }
}

impl std::fmt::Display for Steps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let all: Duration = self.0.iter().map(|step| step.1).sum();
        let ms = |time: &Duration| time.as_secs_f64() * 1e3;
        let width = self.0.iter().map(|step| step.0.len()).max().unwrap_or(0);
        for (name, time) in &self.0 {
            let share = 100.0 * time.as_secs_f64() / all.as_secs_f64().max(1e-9);
            writeln!(f, "{name:width$}  {:9.3} ms  {share:5.1} %", ms(time))?;
        }
        writeln!(f, "{:width$}  {:9.3} ms", "in all", ms(&all))
    }
}
