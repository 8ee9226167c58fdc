//! `systola dump`: any stage of the compiler as text.

use std::fmt::Write;
use std::path::PathBuf;

use clap::ValueEnum;
use systola_driver::check_mapping;
use systola_lower::localise::localise;

use crate::lowering::{LoweringArgs, Purpose, lower_checked};
use crate::source::{Failure, Outcome, Source, Status, given_sizes, parse_size};
use crate::term;

const EXAMPLES: &str = "\
Examples:
  systola dump gallery/conv1d/core.ure                              what was parsed, printed again
  systola dump gallery/conv1d/core.ure --map sbm --after localise   the recurrences that the mapping chose
  systola dump gallery/conv1d/core.ure --map sbm --after array      PEs, links, registers
  systola dump gallery/conv1d/core.ure --map sbm --after kernel     what the lanes of a machine do";

/// Print the program after a stage of the compiler
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A .ure file
    file: PathBuf,
    /// The stage
    #[arg(long, value_enum, default_value = "parse")]
    after: Stage,
    /// The mapping; the first of the file if not given
    #[arg(long = "map", value_name = "NAME")]
    map: Option<String>,
    /// Of which system, where a file has several
    #[arg(long, value_name = "NAME")]
    system: Option<String>,
    /// Give a parameter a value, for instance C=16; may be repeated
    #[arg(short = 'p', long = "set", value_name = "P=V", value_parser = parse_size)]
    sizes: Vec<(String, i128)>,
    #[command(flatten)]
    lowering: LoweringArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Stage {
    /// Systems, mappings and programs as they were understood
    Parse,
    /// Written-out recurrences: the mapping's choices of forwarding and summation made
    Localise,
    /// The systolic array
    Array,
    /// The program of kernels
    Kernel,
}

pub fn run(args: &Args) -> Outcome {
    let source = Source::load(&args.file)?;
    let sizes = given_sizes(&args.sizes)?;
    source.check_sizes(&sizes)?;
    if args.lowering.is_given() && args.after != Stage::Kernel {
        return Err(Failure::new(
            "--fix, --simd and --machine go with --after kernel",
        ));
    }
    args.lowering.check(&source)?;
    let selected = || source.mapping(args.map.as_deref(), args.system.as_deref());
    let mut text = String::new();
    match args.after {
        Stage::Parse if args.map.is_none() && args.system.is_none() => {
            let _ = write!(text, "{}", source.module);
        }
        Stage::Parse => {
            let (system, mapping) = match &args.map {
                Some(_) => {
                    let mapping = selected()?;
                    (source.system(Some(&mapping.system))?, Some(mapping))
                }
                None => (source.system(args.system.as_deref())?, None),
            };
            let _ = write!(text, "{system}");
            if let Some(mapping) = mapping {
                let _ = write!(text, "\n{mapping}");
            }
        }
        Stage::Localise => {
            let mapping = selected()?;
            let system = source.system(Some(&mapping.system))?;
            let written_out = localise(system, Some(mapping)).map_err(|d| source.fail(&d))?;
            let _ = write!(text, "{}", written_out.system);
        }
        Stage::Array => {
            let checked =
                check_mapping(&source.module, selected()?, &sizes).map_err(|d| source.fail(&d))?;
            let _ = write!(text, "{}", checked.array);
        }
        Stage::Kernel => {
            let mapping = selected()?;
            let system = source.system(Some(&mapping.system))?;
            let options = args.lowering.options(&source, Purpose::Print)?;
            let (machine, _) = args.lowering.machine(&options);
            let lowered = lower_checked(&source, system, mapping, &sizes, &options.fix, &machine)?;
            let _ = write!(text, "{}", lowered.program);
        }
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    term::print(text);
    Ok(Status::Done)
}
