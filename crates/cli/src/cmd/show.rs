//! `systola show`: the picture of an array.

use std::path::PathBuf;

use systola_draw::picture;
use systola_draw::scene::scene;
use systola_driver::check_mapping;
use systola_ir::array::Array;
use systola_ir::diag::MappedPoint;

use crate::files;
use crate::source::{Failure, Outcome, Parameters, Small, Source, Status, given_sizes, parse_size};
use crate::term;

const EXAMPLES: &str = "\
Examples:
  systola show gallery/conv1d/core.ure --map sbm -o sbm.svg
  systola show gallery/linear-algebra/matmul.ure --set N=3 -o matmul.svg

The picture has three panels: the index space with its dependences (for two dimensions), the PEs
with their registers and links, and the slots (PE, step) with the values they hold.";

/// Draw the array of a mapping as SVG
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A .ure file
    file: PathBuf,
    /// The mapping to draw; the first of the file if not given
    #[arg(long = "map", value_name = "NAME")]
    map: Option<String>,
    /// Of which system, where a file has several
    #[arg(long, value_name = "NAME")]
    system: Option<String>,
    /// Fix a parameter, for instance C=6; small sizes are chosen for the others
    #[arg(short = 'p', long = "set", value_name = "P=V", value_parser = parse_size)]
    sizes: Vec<(String, i128)>,
    /// Where to write the picture
    #[arg(short, long, value_name = "FILE", default_value = "array.svg")]
    output: PathBuf,
}

/// The maximum number of points of a picture.
const MAX_SLOTS: i128 = 200_000;

pub fn run(args: &Args) -> Outcome {
    let source = Source::load(&args.file)?;
    let given = given_sizes(&args.sizes)?;
    source.check_sizes(&given)?;
    let mapping = source.mapping(args.map.as_deref(), args.system.as_deref())?;
    let system = source.system(Some(&mapping.system))?;
    let parameters = Parameters::from(system);
    let dims = system.dims.len() + system.bound.len();
    let preferred = if dims > 2 {
        Small::Equal
    } else {
        Small::Distinct
    };
    let values = parameters.with_small(&given, preferred).ok_or_else(|| {
        Failure::new(format!(
            "no small sizes satisfy the context of {}",
            system.name
        ))
        .help("give all sizes with --set")
    })?;
    let sizes = parameters.named(&values);
    let checked = check_mapping(&source.module, mapping, &sizes).map_err(|d| source.fail(&d))?;
    if let Some(counts) = &checked.report.counts
        && counts.expanded > MAX_SLOTS
    {
        return Err(Failure::new(format!(
            "{} points are too many for a picture",
            counts.expanded
        ))
        .help("choose smaller sizes with --set"));
    }
    let slots = slots(&checked.array, &values).map_err(|d| source.fail(&[d]))?;
    let scene = scene(&checked.array, &checked.report, &values, &slots);
    let (svg, omitted) = picture::draw(&scene);
    files::write(&args.output, svg.as_bytes())?;
    term::print(format!(
        "{} of {} drawn to {}{}\n",
        mapping.name,
        system.name,
        args.output.display(),
        if values.is_empty() {
            String::new()
        } else {
            format!(" at {}", parameters.show(&values))
        }
    ));
    for what in omitted {
        term::print(format!("  not drawn: {what}\n"));
    }
    Ok(Status::Done)
}

/// Every slot of the array that holds a point, with that point.
pub fn slots(array: &Array, params: &[i128]) -> Result<Vec<MappedPoint>, systola_ir::Diagnostic> {
    let trace = systola_interp::array::trace(array, params)?;
    Ok(trace
        .into_iter()
        .map(|slot| MappedPoint {
            point: slot.point.into_iter().map(i128::from).collect(),
            place: slot.place.into_iter().map(i128::from).collect(),
            time: slot.time.into_iter().map(i128::from).collect(),
        })
        .collect())
}
