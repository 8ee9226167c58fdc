//! `systola tour`: from a recurrence to a running array and to machine code, in two minutes of
//! reading.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;

use systola_draw::picture::{self, Panel, Scene};
use systola_draw::scene::scene;
use systola_driver::{Checked, check_mapping};
use systola_interp::array::run_array;
use systola_interp::{Arrays, Tensor, expect_system};
use systola_ir::array::Array;
use systola_ir::diag::{Diagnostic, coordinates};
use systola_lower::report::sections::percent;
use tempfile::TempDir;

use crate::cmd::show::slots;
use crate::files;
use crate::render;
use crate::source::{Failure, Outcome, Parameters, Sizes, Source, Status};
use crate::table::{Align, Table};
use crate::term::{self, Paint};
use systola_interp::compare::compare;

mod machine;

const TOUR: &str = include_str!("tour.ure");

/// The sizes of the walk: small enough to draw.
const PARAMS: [i128; 2] = [6, 3];

/// A guided walk: a recurrence, legal and illegal mappings, the array, its result, machine code, a
/// picture
#[derive(Debug, clap::Args)]
pub struct Args {
    /// No pauses
    #[arg(long)]
    fast: bool,
    /// The folder for the picture and the program; a temporary folder if not given
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub fn run(args: &Args) -> Outcome {
    let source = Source::parse("tour.ure", TOUR)?;
    let tour = Tour {
        guide: Guide {
            pause: !args.fast && std::io::stdout().is_terminal(),
        },
        sizes: Parameters::from(source.system(None)?).named(&PARAMS),
        source,
    };
    tour.recurrence();
    let (sbm, scene) = tour.mapping()?;
    tour.another_mapping()?;
    tour.illegal_mappings()?;
    tour.results(&sbm.array)?;
    tour.guide.chapter("6", "The same mappings as machine code");
    machine::walk(&tour.guide, &tour.source)?;
    tour.picture(&scene, args)?;
    Ok(Status::Done)
}

struct Tour {
    guide: Guide,
    source: Source,
    sizes: Sizes,
}

impl Tour {
    /// A legal mapping, and its picture.
    fn legal(&self, name: &str) -> Result<(Checked, Scene), Failure> {
        let checked = self
            .check(name)?
            .map_err(|found| self.source.fail(&found))?;
        let trace = slots(&checked.array, &PARAMS).map_err(|d| self.source.fail(&[d]))?;
        let scene = scene(&checked.array, &checked.report, &PARAMS, &trace);
        Ok((checked, scene))
    }

    fn check(&self, name: &str) -> Result<Result<Checked, Vec<Diagnostic>>, Failure> {
        let mapping = self.source.mapping(Some(name), None)?;
        Ok(check_mapping(&self.source.module, mapping, &self.sizes))
    }

    fn recurrence(&self) {
        let guide = &self.guide;
        guide.chapter("1", "A recurrence says what is computed");
        guide.listing("system conv1d");
        guide.say(
            "One sum for every c. Nothing here says where or when anything happens, who hands an input\n\
             to whom, or in which order the sum runs. All that is the mapping's business.",
        );
    }

    fn mapping(&self) -> Result<(Checked, Scene), Failure> {
        let guide = &self.guide;
        guide.chapter("2", "A mapping says where and when");
        guide.listing("mapping sbm");
        let (sbm, scene) = self.legal("sbm")?;
        let report = &sbm.report;
        guide.say(&format!(
            "Systola proves it {} for all sizes: every value arrives before it is needed, and no PE\n\
             computes two points at once. It is an {} array:",
            Paint::Green.out("legal"),
            Paint::Bold.out(&report.name)
        ));
        term::print("\n");
        let mut streams = Table::left(4);
        for s in &report.streams {
            streams.row([Paint::Bold.out(s.letter), s.name.clone(), s.reason.clone()]);
        }
        term::print(streams.render());
        if let Some(c) = &report.counts {
            guide.say(&format!(
                "At C = {}, Q = {}: {} PEs, {} steps, {} of the slots busy. Each PE at each step:",
                PARAMS[0],
                PARAMS[1],
                c.pes,
                c.steps,
                percent(c.utilisation)
            ));
        }
        term::print("\n");
        term::print(diagram(&scene));
        guide.say("Read a column down: x stays. Read along a diagonal: z moves one PE a step. Every row has one w.");
        Ok((sbm, scene))
    }

    fn another_mapping(&self) -> Result<(), Failure> {
        let guide = &self.guide;
        guide.chapter(
            "3",
            "Another mapping of the same recurrence is another array",
        );
        guide.listing("mapping fbs");
        let (fbs, scene) = self.legal("fbs")?;
        term::print("\n");
        term::print(diagram(&scene));
        guide.say(&format!(
            "Now z stays and x travels: an {} array. Fewer PEs, all of them busy.",
            Paint::Bold.out(&fbs.report.name)
        ));
        Ok(())
    }

    fn illegal_mappings(&self) -> Result<(), Failure> {
        self.guide.chapter(
            "4",
            "An illegal mapping is refused, with two points that show why",
        );
        for name in ["crowded", "hasty"] {
            self.guide.listing(&format!("mapping {name}"));
            let Err(found) = self.check(name)? else {
                return Err(Failure::new(format!(
                    "the tour is out of date: {name} is legal"
                )));
            };
            term::print("\n");
            self.guide.refusal(&self.source, &found);
        }
        Ok(())
    }

    fn results(&self, array: &Array) -> Result<(), Failure> {
        let (guide, source) = (&self.guide, &self.source);
        guide.chapter("5", "The array computes what the equations say");
        let (x, w) = signal();
        let inputs = Arrays::from([
            ("x".to_string(), Tensor::vector(x.clone())),
            ("w".to_string(), Tensor::vector(w.clone())),
        ]);
        let expected =
            expect_system(source.system(None)?, &PARAMS, &inputs).map_err(|d| source.fail(&[d]))?;
        let by_array = run_array(array, &PARAMS, &inputs).map_err(|d| source.fail(&[d]))?;
        let by_loop = Arrays::from([("z".to_string(), Tensor::vector(plain_loop(&x, &w)))]);
        term::print("\n");
        print_results(&[
            ("a plain loop", &by_loop),
            ("the equations", &expected.arrays),
            ("the array, clock by clock", &by_array),
        ]);
        for results in [&by_loop, &by_array] {
            for line in compare(&expected, results) {
                if let Err(difference) = line {
                    return Err(Failure::new(format!("a bug of Systola: {difference}")));
                }
            }
        }
        guide.say(&format!("All three {}.", Paint::Green.out("agree")));
        Ok(())
    }

    fn picture(&self, scene: &Scene, args: &Args) -> Result<(), Failure> {
        let guide = &self.guide;
        guide.chapter("7", "The picture");
        let (svg, _) = picture::draw(scene, &Panel::ALL);
        let folder = folder(args)?;
        let picture = write(&folder, "systola-tour.svg", &svg)?;
        let program = write(&folder, "systola-tour.ure", TOUR)?;
        guide.say(&format!(
            "{}  points, PEs and time in one drawing; open it in a browser\n\
             {}  the program of this tour",
            Paint::Bold.out(picture.display()),
            Paint::Bold.out(program.display())
        ));
        guide.say("Go on with:");
        let file = program.display();
        term::print(format!(
            "    systola check {file} --map sbm --set C=16 --set Q=5\n    \
             systola show {file} --map fbs -o fbs.svg\n    \
             systola run {file} --target array --map sbm --verify\n    \
             systola run {file} --target cpu --map fbs_tiles --set C=1_000_000 --set Q=9 --fix Q\n    \
             systola emit {file} --map fbs_tiles\n    \
             systola explain\n    \
             systola help\n"
        ));
        Ok(())
    }
}

struct Guide {
    pause: bool,
}

impl Guide {
    fn rest(&self, millis: u64) {
        if self.pause {
            std::thread::sleep(Duration::from_millis(millis));
        }
    }

    fn chapter(&self, number: &str, title: &str) {
        self.rest(900);
        term::print(format!(
            "\n{}\n",
            Paint::Bold.out(format!("{number}. {title}"))
        ));
    }

    fn say(&self, text: &str) {
        self.rest(250);
        term::print("\n");
        for line in text.lines() {
            term::print(format!("  {line}\n"));
        }
    }

    /// The part of the tour's program that begins like this, up to its closing brace, with the
    /// comment above it.
    fn listing(&self, begin: &str) {
        let lines: Vec<&str> = TOUR.lines().collect();
        let Some(at) = lines.iter().position(|l| l.starts_with(begin)) else {
            return;
        };
        let comments = lines[..at]
            .iter()
            .rev()
            .take_while(|l| l.starts_with("//"))
            .count();
        term::print("\n");
        for line in &lines[at - comments..] {
            term::print(format!("    {}\n", highlight(line)));
            if *line == "}" {
                break;
            }
        }
        self.rest(400);
    }

    fn refusal(&self, source: &Source, found: &[Diagnostic]) {
        for d in found {
            let text = render::diagnostic(&source.path, &source.text, d, term::colour_out());
            for line in text.lines() {
                term::print(format!("{}\n", format!("  {line}").trim_end()));
            }
            term::print("\n");
        }
        self.rest(600);
    }
}

/// Keywords in colour, comments faint.
fn highlight(line: &str) -> String {
    const KEYWORDS: &str = "system mapping of where input index in var output at reduce reorderable \
        tile by as block reg lane time forward along sum";
    if line.trim_start().starts_with("//") {
        return Paint::Dim.out(line);
    }
    line.split_inclusive(|c: char| !c.is_ascii_alphanumeric())
        .map(|part| {
            let word = part.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
            if KEYWORDS.split(' ').any(|k| k == word) {
                part.replacen(word, &Paint::Blue.out(word), 1)
            } else {
                part.to_string()
            }
        })
        .collect()
}

/// Steps down, PEs across, and in each slot the values.
fn diagram(scene: &Scene) -> String {
    let mut pes: Vec<_> = scene.slots.iter().map(|s| &s.place).collect();
    let mut steps: Vec<_> = scene.slots.iter().map(|s| &s.time).collect();
    for list in [&mut pes, &mut steps] {
        list.sort();
        list.dedup();
    }
    let mut table = Table::left(4);
    let head = pes.iter().map(|pe| format!("PE {}", coordinates(pe)));
    table.header(std::iter::once(String::new()).chain(head));
    const COLOURS: [Paint; 4] = [Paint::Cyan, Paint::Yellow, Paint::Green, Paint::Magenta];
    for step in steps {
        let cells = pes.iter().map(|pe| {
            let slot = scene
                .slots
                .iter()
                .find(|s| s.place == **pe && s.time == *step);
            slot.map_or("·".to_string(), |slot| {
                let values = slot
                    .values
                    .iter()
                    .map(|(n, value)| COLOURS[n % COLOURS.len()].out(value));
                values.collect::<Vec<_>>().join(" ")
            })
        });
        let row: Vec<String> = std::iter::once(format!("t={}", coordinates(step)))
            .chain(cells)
            .collect();
        table.row(row);
    }
    table.render()
}

fn signal() -> (Vec<f32>, Vec<f32>) {
    let n = (PARAMS[0] + PARAMS[1] - 1) as usize;
    let x = (0..n)
        .map(|i| [1.0, 2.0, 0.0, -1.0, 3.0, 0.5, 1.0, -2.0][i % 8])
        .collect();
    (x, vec![0.25, 0.5, 0.25])
}

fn plain_loop(x: &[f32], w: &[f32]) -> Vec<f32> {
    let n = x.len() + 1 - w.len();
    (0..n)
        .map(|c| w.iter().enumerate().map(|(q, w)| x[c + q] * w).sum())
        .collect()
}

fn print_results(results: &[(&str, &Arrays)]) {
    let mut align = vec![Align::Left];
    align.extend(vec![Align::Right; PARAMS[0] as usize]);
    let mut table = Table::new(4, align);
    let head = (0..PARAMS[0]).map(|c| format!("z{c}"));
    table.header(std::iter::once(String::new()).chain(head));
    for (who, arrays) in results {
        let mut row = vec![(*who).to_string()];
        if let Some(z) = arrays.get("z") {
            let values = (0..z.data.len()).filter_map(|n| z.data.get(n));
            row.extend(values.map(|v| v.to_string()));
        }
        table.row(row);
    }
    term::print(table.render());
}

/// The user's folder, or a new private one.
fn folder(args: &Args) -> Result<PathBuf, Failure> {
    if let Some(folder) = &args.dir {
        return Ok(folder.clone());
    }
    let new = tempfile::Builder::new().prefix("systola-tour-").tempdir();
    new.map(TempDir::keep).map_err(|e| {
        Failure::new(format!("cannot make a folder for temporary files: {e}"))
            .help("choose a folder with --dir")
    })
}

fn write(folder: &Path, name: &str, text: &str) -> Result<PathBuf, Failure> {
    let path = folder.join(name);
    files::write(&path, text.as_bytes()).map_err(|f| f.help("choose a folder with --dir"))?;
    Ok(path)
}
