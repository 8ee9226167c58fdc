//! `systola show`: the picture of an array.

use std::path::PathBuf;

use clap::builder::TypedValueParser;
use systola::CpuOptions;
use systola_draw::picture::{self, Panel};
use systola_draw::scene::scene;
use systola_driver::check_mapping;
use systola_explore::platform::Platform;
use systola_explore::space::is_name_of_a_candidate;
use systola_ir::array::Array;
use systola_ir::diag::MappedPoint;
use systola_ir::mapping::Mapping;
use systola_ir::system::System;

use crate::choose::{Prefer, Say, Wanted, platform_of, select};
use crate::files;
use crate::named::named;
use crate::runtime;
use crate::source::{
    Failure, Outcome, Parameters, Sizes, Small, Source, Status, given_sizes, parse_size,
};
use crate::term;

const EXAMPLES: &str = "\
Examples:
  systola show gallery/conv1d/core.ure --map sbm -o sbm.svg
  systola show gallery/linear-algebra/matmul.ure --set N=3 -o matmul.svg
  systola show gallery/linear-algebra/lu_textbook.ure --map elimination --panel memory -o lu.svg

The picture has three panels: the index space with its dependences (for two dimensions), the PEs
with their registers and links, and the slots (PE, step) with the values they hold. If values go
through memory, a fourth one has the places in memory with the lives of the values in them.";

/// Draw the array of a mapping as SVG
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A .ure file
    file: PathBuf,
    /// The mapping to draw, also one of the explorer's candidates. Without it the first of the
    /// file; if it has none, a linear array with few steps
    #[arg(long = "map", value_name = "NAME")]
    map: Option<String>,
    /// Write the mapping that was chosen into the file, under this name
    #[arg(long, value_name = "NAME")]
    save: Option<String>,
    /// The system, if the file has several
    #[arg(long, value_name = "NAME")]
    system: Option<String>,
    /// Fix a parameter, for instance C=6; small sizes are chosen for the others
    #[arg(short = 'p', long = "set", value_name = "P=V", value_parser = parse_size)]
    sizes: Vec<(String, i128)>,
    /// Draw this panel only; may be repeated
    #[arg(long = "panel", value_name = "PANEL", value_parser = panels())]
    panels: Vec<Panel>,
    /// The output file
    #[arg(short, long, value_name = "FILE", default_value = "array.svg")]
    output: PathBuf,
}

fn panels() -> impl TypedValueParser<Value = Panel> {
    named([
        (
            "index-space",
            "The points, and their dependences",
            Panel::IndexSpace,
        ),
        (
            "array",
            "The PEs with their registers and links",
            Panel::Array,
        ),
        ("slots", "What each PE holds at each step", Panel::Slots),
        (
            "memory",
            "The places in memory, and the lives of values in them",
            Panel::Memory,
        ),
    ])
}

/// The maximum number of points of a picture.
const MAX_SLOTS: i128 = 200_000;

pub fn run(args: &Args) -> Outcome {
    let source = Source::load(&args.file)?;
    let given = given_sizes(&args.sizes)?;
    source.check_sizes(&given)?;
    let system = system_of(&source, args)?;
    let sizes = Parameters::from(system).named(&small_sizes(system, &given)?);
    let wanted = Wanted {
        map: args.map.as_deref(),
        system: Some(&system.name),
        sizes: &sizes,
        save: args.save.as_deref(),
        prefer: Prefer::Readable,
        say: Say::Out,
    };
    let platform = || -> Result<Platform, Failure> {
        let options = CpuOptions::from_env().map_err(|e| runtime::fail(&source, e))?;
        Ok(platform_of(&options.machine(), &options))
    };
    let mapping = select(&source, &wanted, platform)?.1.mapping;
    let panels = match args.panels.as_slice() {
        [] => &Panel::ALL,
        chosen => chosen,
    };
    let picture = picture_of(&source, &mapping, &sizes, panels)?;
    files::write(&args.output, picture.svg.as_bytes())?;
    term::print(format!(
        "{} of {} drawn to {}{}\n",
        mapping.name,
        mapping.system,
        args.output.display(),
        picture.sizes
    ));
    for what in picture.omitted {
        term::print(format!("  not drawn: {what}\n"));
    }
    Ok(Status::Done)
}

struct Picture {
    svg: String,
    omitted: Vec<String>,
    /// ` at C = 4, Q = 3`
    sizes: String,
}

/// The picture of a mapping, at small sizes where none are given.
fn picture_of(
    source: &Source,
    mapping: &Mapping,
    given: &Sizes,
    panels: &[Panel],
) -> Result<Picture, Failure> {
    let system = source.system(Some(&mapping.system))?;
    let parameters = Parameters::from(system);
    let values = small_sizes(system, given)?;
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
    if scene.memory.is_none() && panels == [Panel::Memory] {
        let message = format!("{} keeps no values in memory", mapping.name);
        return Err(Failure::new(message).help("choose another panel, or write `store` into it"));
    }
    let (svg, omitted) = picture::draw(&scene, panels);
    let sizes = if values.is_empty() {
        String::new()
    } else {
        format!(" at {}", parameters.show(&values))
    };
    Ok(Picture {
        svg,
        omitted,
        sizes,
    })
}

/// The given sizes, and small ones for the others.
fn small_sizes(system: &System, given: &Sizes) -> Result<Vec<i128>, Failure> {
    let dims = system.dims.len() + system.bound.len();
    let preferred = if dims > 2 {
        Small::Equal
    } else {
        Small::Distinct
    };
    let small = Parameters::from(system).with_small(given, preferred);
    small.ok_or_else(|| {
        Failure::new(format!(
            "no small sizes satisfy the context of {}",
            system.name
        ))
        .help("give all sizes with --set")
    })
}

/// The system of the mapping that is named, else of the first mapping, else the only one.
fn system_of<'a>(source: &'a Source, args: &Args) -> Result<&'a System, Failure> {
    if args.system.is_some() {
        return source.system(args.system.as_deref());
    }
    let wanted = |m: &&Mapping| args.map.as_ref().is_none_or(|name| m.name == *name);
    let mapping = source.module.mappings.iter().find(wanted);
    match (mapping, &args.map) {
        (Some(mapping), _) => source.system(Some(&mapping.system)),
        (None, Some(name)) if !is_name_of_a_candidate(name) => {
            let mapping = source.mapping(Some(name), None)?;
            source.system(Some(&mapping.system))
        }
        (None, _) => source.system(None),
    }
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use systola_draw::picture::Scene;
    use systola_draw::picture::memory::Life;
    use systola_draw::svg::{Anchor, Area, text_area};

    use super::*;

    /// An attribute of an element, `x="12"`.
    fn attribute<'a>(element: &'a str, name: &str) -> &'a str {
        let begin = format!(" {name}=\"");
        let (_, rest) = element.split_once(&begin).expect(element);
        rest.split_once('"').expect(element).0
    }

    fn numbers(text: &str) -> Vec<f64> {
        let is_apart = |c: char| !c.is_ascii_digit() && c != '.' && c != '-';
        let numbers = text.split(is_apart).filter(|part| !part.is_empty());
        numbers.map(|part| part.parse().expect(text)).collect()
    }

    /// The box of an element, and its text if it is one.
    fn area(element: &str) -> Option<(Area, Option<String>)> {
        let number = |name: &str| numbers(attribute(element, name))[0];
        let around = |x: &[f64], y: &[f64]| Area {
            left: x.iter().copied().fold(f64::INFINITY, f64::min),
            right: x.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            top: y.iter().copied().fold(f64::INFINITY, f64::min),
            bottom: y.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        };
        let of_pairs = |points: Vec<f64>| {
            let (x, y): (Vec<f64>, Vec<f64>) = points.chunks(2).map(|p| (p[0], p[1])).unzip();
            around(&x, &y)
        };
        let name = element.strip_prefix('<')?.split(' ').next()?;
        Some(match name {
            "line" => (
                around(&[number("x1"), number("x2")], &[number("y1"), number("y2")]),
                None,
            ),
            "path" => (of_pairs(numbers(attribute(element, "d"))), None),
            "polygon" => (of_pairs(numbers(attribute(element, "points"))), None),
            "rect" => {
                let (x, y) = (number("x"), number("y"));
                let corner = (x + number("width"), y + number("height"));
                (around(&[x, corner.0], &[y, corner.1]), None)
            }
            "circle" => {
                let (x, y, r) = (number("cx"), number("cy"), number("r"));
                (around(&[x - r, x + r], &[y - r, y + r]), None)
            }
            "text" => {
                let text = element.split_once('>')?.1.strip_suffix("</text>")?;
                let text = text
                    .replace("&lt;", "<")
                    .replace("&gt;", ">")
                    .replace("&amp;", "&");
                let anchor = match attribute(element, "text-anchor") {
                    "start" => Anchor::Start,
                    "middle" => Anchor::Middle,
                    "end" => Anchor::End,
                    other => panic!("{other}"),
                };
                let at = (number("x"), number("y"));
                (
                    text_area(attribute(element, "class"), anchor, at, &text),
                    Some(text),
                )
            }
            _ => return None,
        })
    }

    /// What is wrong with a picture: shapes beyond the view box, texts on texts, empty panels.
    fn faults(svg: &str) -> Vec<String> {
        let view = numbers(attribute(svg.lines().next().expect("a line"), "viewBox"));
        let (right, bottom) = (view[0] + view[2], view[1] + view[3]);
        let mut faults = Vec::new();
        let elements: Vec<_> = svg.lines().filter_map(area).collect();
        for (area, text) in &elements {
            if area.left < view[0]
                || area.top < view[1]
                || area.right > right
                || area.bottom > bottom
            {
                faults.push(format!("{text:?} {area:?} is outside of {view:?}"));
            }
        }
        let texts = elements
            .iter()
            .filter_map(|(area, text)| Some((area, text.as_ref()?)));
        let texts: Vec<_> = texts.collect();
        for (n, (area, text)) in texts.iter().enumerate() {
            if text.trim().is_empty() {
                faults.push(format!("an empty text at {area:?}"));
            }
            for (other, covered) in &texts[..n] {
                if area.overlaps(other) {
                    faults.push(format!("`{text}` covers `{covered}` at {other:?}"));
                }
            }
        }
        if !svg.contains("class=\"busy") {
            faults.push("no slot is drawn".to_string());
        }
        faults
    }

    #[test]
    fn covered_and_cut_texts_are_faults() {
        let picture = |texts: &str| {
            format!(
                "<svg viewBox=\"0 0 100 50\">\n<rect class=\"busy\" x=\"1\" y=\"1\" width=\"9\" height=\"9\"/>\n{texts}</svg>"
            )
        };
        let text = |x: i32, text: &str| {
            format!(
                "<text class=\"small\" text-anchor=\"start\" x=\"{x}\" y=\"20\">{text}</text>\n"
            )
        };
        let good = text(5, "one") + &text(50, "two");
        assert_eq!(faults(&picture(&good)), Vec::<String>::new());
        let covered = text(5, "one and more") + &text(50, "two");
        assert_eq!(faults(&picture(&covered)).len(), 1);
        let cut = text(50, "longer than that");
        assert_eq!(faults(&picture(&cut)).len(), 1);
        assert_eq!(faults("<svg viewBox=\"0 0 1 1\">").len(), 1);
    }

    const LU: &str = "
system lu(N) where N >= 1 {
  input a[N, N]: f64;
  var S(k in 0..N, i in k..N, j in k..N): f64
      = select(k == 0, a[i, j], S(k - 1, i, j) - L(k - 1, i) * U(k - 1, j));
  var U(k in 0..N, j in k..N): f64 = S(k, k, j);
  var L(k in 0..N, i in k + 1..N): f64 = S(k, i, k) / U(k, k);
  output lu[N, N]: f64 = U at [k, j], L at [i, k];
}
mapping m of lu {
  space (k, i, j); align U (k, j) -> (k, k, j); align L (k, i) -> (k, i, k);
  DIRECTIVE
  time = (k, i, j);
}";

    const CHAIN: &str = "
system chain(N) where N >= 1 {
  input p[N + 1]: i64;
  var C(i in 0..N, j in 0..N): i64 on i <= j = select(i == j, 0,
      reduce(min, k in i..j, C(i, k) + C(k + 1, j) + p[i] * p[k + 1] * p[j + 1]));
  output c[]: i64 = C at [] when i == 0 && j == N - 1;
}
mapping m of chain {
  space (d, i); align C (i, j) -> (j - i, i);
  launch = d; lane = i; time = 0;
}";

    /// The scene of the mapping of a text.
    fn scene_of(text: &str, n: i128) -> Scene {
        let module = systola_driver::load(text).expect(text);
        let sizes = Sizes::from([("N".to_string(), n)]);
        let checked = check_mapping(&module, &module.mappings[0], &sizes).expect(text);
        let slots = slots(&checked.array, &[n]).expect("slots");
        scene(&checked.array, &checked.report, &[n], &slots)
    }

    #[test]
    fn lives_of_one_place_do_not_overlap() {
        let in_pieces = LU.replace("DIRECTIVE", "store S modulo (2, 0, 0);");
        let lu = LU.replace("DIRECTIVE", "");
        for (text, storages, values, places, reads) in [
            (&lu, 1, 30, 16, 3 * 14 + 6),
            (&in_pieces, 2, 30, 29, 3 * 14 + 6),
            // Two reads for each way to split each interval.
            (&CHAIN.to_string(), 1, 10, 10, 2 * 10),
        ] {
            let memory = scene_of(text, 4).memory.expect("values in memory");
            assert_eq!(memory.storages.len(), storages, "{text}");
            assert_eq!(memory.lives.len(), values, "{text}");
            let n_places: usize = memory.storages.iter().map(|s| s.n_places).sum();
            assert_eq!(n_places, places, "{text}");
            let n_reads: usize = memory.lives.iter().map(|life| life.reads.len()).sum();
            assert_eq!(n_reads, reads, "{text}");
            for (n, life) in memory.lives.iter().enumerate() {
                for read in &life.reads {
                    assert!(read.time > life.written, "{life:?}");
                }
                let place = |other: &Life| (other.storage, other.element.clone());
                let mut later = memory.lives[n + 1..].iter();
                let Some(next) = later.find(|next| place(next) == place(life)) else {
                    continue;
                };
                let last = life.reads.last().map(|read| &read.time);
                assert!(last.is_none_or(|last| *last <= next.written), "{life:?}");
                assert!(life.written < next.written && !life.is_result, "{life:?}");
            }
        }
    }

    #[test]
    fn pictures_of_memory_are_readable() {
        let in_pieces = LU.replace("DIRECTIVE", "store S modulo (2, 0, 0);");
        for text in [&LU.replace("DIRECTIVE", ""), &in_pieces, CHAIN] {
            for n in [1, 2, 4, 9] {
                let scene = scene_of(text, n);
                let (svg, _) = picture::draw(&scene, &Panel::ALL);
                assert_eq!(faults(&svg), Vec::<String>::new(), "N = {n}, {text}");
                let (svg, omitted) = picture::draw(&scene, &[Panel::Memory]);
                assert!(svg.contains("class=\"life") && !svg.contains("class=\"busy"));
                // What is left out is told.
                let lives = scene.memory.expect("values in memory").lives.len();
                let bars = svg.matches("<rect class=\"life").count();
                let rests = svg.matches("<rect class=\"life rest").count();
                assert_eq!(bars - rests == lives, omitted.is_empty(), "N = {n}, {text}");
            }
        }
    }

    fn sources(folder: &Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).expect("a folder");
        let mut paths: Vec<PathBuf> = entries
            .map(|entry| entry.expect("an entry").path())
            .collect();
        paths.sort();
        let of = |path: PathBuf| match path.extension() {
            Some(extension) if extension == "ure" => vec![path],
            None if path.is_dir() => sources(&path),
            _ => Vec::new(),
        };
        paths.into_iter().flat_map(of).collect()
    }

    #[test]
    fn pictures_of_the_gallery_are_readable() {
        let gallery = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../gallery");
        let paths = sources(&gallery);
        let (mut drawn, mut wrong) = (0, String::new());
        for path in &paths {
            let source = Source::load(path).expect("a program of the gallery");
            for mapping in &source.module.mappings {
                let name = format!("{} {}", path.display(), mapping.name);
                let picture = match picture_of(&source, mapping, &Sizes::new(), &Panel::ALL) {
                    Ok(picture) => picture,
                    Err(why) => {
                        wrong += &format!("{name}: {why:?}\n");
                        continue;
                    }
                };
                drawn += 1;
                for fault in faults(&picture.svg).iter().take(3) {
                    wrong += &format!("{name}: {fault}\n");
                }
            }
        }
        assert!(wrong.is_empty(), "{wrong}");
        assert!(drawn > 200, "{drawn} pictures");
    }
}
