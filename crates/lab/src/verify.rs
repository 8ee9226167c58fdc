//! `systola-lab verify`: compares every mapping of a folder on a device with the equations, and the
//! stencils of the literature under every boundary condition with loops.

mod boundaries;
mod code;
mod device;
mod hosts;
mod mappings;
mod processes;
mod sizes;
mod tally;

use std::path::{Path, PathBuf};

use systola_cli::device::DeviceName;
use systola_cli::files;
use systola_cli::lowering::parse_lanes;
use systola_cli::named::targets;
use systola_cli::source::{Failure, Outcome, Status, parse_size};
use systola_cli::term;
use systola_ir::target::Target;

use self::boundaries::BoundaryName;
use self::mappings::{verify_file, verify_files};
use crate::bench::stencils::Precision;

const EXAMPLES: &str = "\
Examples:
  cargo xtask verify gallery --log verify.log
  cargo xtask verify gallery/conv2d/core.ure --map tiles
  cargo xtask verify gallery --target opencl --device 1 --jobs 2
  compute-sanitizer systola-lab verify gallery/conv2d/core.ure --most-points 2000
  cargo xtask verify stencils --boundaries --target cpu  the fifteen stencils under every boundary condition
  cargo xtask verify stencils --only 3d27pt --only poisson --boundaries=clamp,wrap --map plain

Each mapping runs at several sizes, twice at each, on random inputs. Exit status 101 if a result differs or a
run fails. For CPUs the C compiler uses -O1 here, which is fast, and -O3 under `systola run`.

With --boundaries the stencils of the literature run under each boundary condition, in f32 and f64, one sweep and many, at
odd sizes, and are compared with loops over cells in f64. The mappings of a file for the target and the type are used, and
the plain one, with a launch for every sweep, where a mapping does not run at some sizes; `--map plain` uses the plain ones
only. The bound of the error is the precision of the type, times the neighbours of a cell, times the sweeps: the table shows
the largest error relative to the bound.";

/// Run every mapping on a device and compare with the equations
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    special: Option<Special>,
    /// A .ure file, or a folder with some, also below it
    #[arg(default_value = "gallery")]
    path: PathBuf,
    /// Only files of this name, without .ure; may be repeated
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Only mappings of this name
    #[arg(long = "map", value_name = "NAME")]
    map: Option<String>,
    /// Set a parameter; may be repeated
    #[arg(short = 'p', long = "set", value_name = "P=V", value_parser = parse_size)]
    sizes: Vec<(String, i128)>,
    /// The target
    #[arg(long, value_parser = targets(), default_value = "cuda")]
    target: Target,
    /// Which device, by its index or a part of its name; `systola devices` lists them
    #[arg(long, value_name = "N|NAME", default_value_t)]
    device: DeviceName,
    /// Lanes of a warp on an OpenCL device
    #[arg(long, value_name = "N", value_parser = parse_lanes)]
    lanes: Option<u32>,
    /// On an OpenCL device, route links through local memory even where there are sub-groups
    #[arg(long)]
    no_sub_groups: bool,
    /// Skip sizes whose domain has more points
    #[arg(long, value_name = "N", default_value_t = 300_000)]
    most_points: i128,
    /// The number of processes that run at once
    #[arg(long, value_name = "N", default_value_t = 4)]
    jobs: usize,
    /// Time limit of the process of a file, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 240)]
    patience: u64,
    /// The fifteen stencils, with these boundary conditions instead of their own, or with all
    #[arg(
        long,
        alias = "borders",
        value_name = "BOUNDARIES",
        value_enum,
        value_delimiter = ',',
        num_args = 0..,
        require_equals = true,
        default_missing_values = BoundaryName::WORDS,
        conflicts_with_all = ["sizes", "most_points"]
    )]
    boundaries: Vec<BoundaryName>,
    /// With --boundaries: only elements of this type
    #[arg(
        long = "type",
        value_name = "TYPE",
        value_enum,
        requires = "boundaries"
    )]
    precision: Option<Precision>,
    /// Write the output to a file as well
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
}

/// Campaigns with options of their own.
#[derive(Debug, clap::Subcommand)]
enum Special {
    Hosts(hosts::Args),
}

pub fn run(args: &Args) -> Outcome {
    if let Some(Special::Hosts(args)) = &args.special {
        return hosts::run(args);
    }
    let (device, mut text) =
        device::find(args.target, &args.device, args.lanes, args.no_sub_groups)?;
    term::print(&text);
    let files = chosen(args)?;
    let (line, failed) = if args.boundaries.is_empty() {
        let (tally, rows) = if args.path.is_dir() {
            verify_files(args, &files)?
        } else {
            verify_file(args, &device)?
        };
        text.push_str(&rows);
        (tally.line(), tally.failed)
    } else {
        let (summary, rows) = boundaries::verify(args, &device, &files)?;
        text.push_str(&rows);
        (summary.line(), summary.failed)
    };
    let line = format!("{line}\n");
    term::print(&line);
    text.push_str(&line);
    if let Some(path) = &args.log {
        files::write(path, text.as_bytes())?;
    }
    Ok(match failed {
        0 => Status::Done,
        _ => Status::Bug,
    })
}

fn chosen(args: &Args) -> Result<Vec<PathBuf>, Failure> {
    let mut chosen = if args.path.is_dir() {
        files(&args.path)?
    } else {
        vec![args.path.clone()]
    };
    let stem = |path: &PathBuf| path.file_stem().map(std::ffi::OsStr::to_os_string);
    if let Some(name) = args.only.iter().find(|name| {
        let is_it = |path| stem(path).is_some_and(|stem| stem == ***name);
        !chosen.iter().any(is_it)
    }) {
        let path = args.path.display();
        return Err(Failure::new(format!("{path} has no file {name}.ure")));
    }
    let is_named = |path: &PathBuf| {
        args.only
            .iter()
            .any(|n| stem(path).is_some_and(|s| s == **n))
    };
    chosen.retain(|path| args.only.is_empty() || is_named(path));
    Ok(chosen)
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let cannot = |e| Failure::new(format!("cannot read {}: {e}", folder.display()));
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(cannot)? {
        let path = entry.map_err(cannot)?.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else if path.extension().is_some_and(|e| e == "ure") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
