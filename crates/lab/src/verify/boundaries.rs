//! The stencils of the literature under every boundary condition, in f32 and f64, one sweep and
//! many, against loops over cells in f64.

mod boundary_name;
mod case;
mod plain;
mod summary;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use systola_cli::files::read_text;
use systola_cli::source::Failure;
use systola_cli::target_device::TargetDevice;
use systola_cli::term;

pub use self::boundary_name::BoundaryName;
use self::case::Case;
use self::summary::{Summary, table};
use super::Args;
use super::processes::{parsed_output, verify_again};
use crate::bench::stencils::Precision;
use crate::bench::stencils::catalogue::{STENCILS, Stencil};
use crate::threads::each;

/// One file under one boundary condition, with elements of one type: the work of one process.
struct Part {
    stencil: &'static Stencil,
    file: PathBuf,
    boundary: BoundaryName,
    precision: Precision,
}

/// The result of a part: the numbers, and all its lines.
type Done = (Summary, String);

pub fn verify(args: &Args, device: &TargetDevice, files: &[PathBuf]) -> Result<Done, Failure> {
    let parts = parts(args, files)?;
    if let [part] = parts.as_slice() {
        return in_this_process(args, device, part);
    }
    let program = std::env::current_exe().map_err(|e| Failure::new(e.to_string()))?;
    let progress = Progress::new(&parts);
    let done = each(&parts, args.jobs, |part| {
        let done = in_process(&program, args, part);
        progress.ended(part, &done);
        done
    });
    let mut all = Summary::default();
    let mut text = String::new();
    let mut cells = Vec::new();
    for (part, (summary, rows)) in parts.iter().zip(done) {
        all.add(&summary);
        text.push_str(&rows);
        cells.push((part.stencil.name, part.boundary, summary));
    }
    if let (Some(map), 0, 0) = (&args.map, all.verified, all.failed) {
        return Err(Failure::new(format!("no mapping `{map}` ran")));
    }
    let table = table(&args.boundaries, &cells);
    term::print(&table);
    text.push_str(&table);
    Ok((all, text))
}

fn parts(args: &Args, files: &[PathBuf]) -> Result<Vec<Part>, Failure> {
    let precisions = match args.precision {
        Some(one) => vec![one],
        None => vec![Precision::F32, Precision::F64],
    };
    let mut parts = Vec::new();
    for stencil in STENCILS {
        let is_it = |file: &&PathBuf| file.file_stem().is_some_and(|stem| stem == stencil.name);
        for file in files.iter().filter(is_it) {
            for boundary in &args.boundaries {
                parts.extend(precisions.iter().map(|precision| Part {
                    stencil,
                    file: file.clone(),
                    boundary: *boundary,
                    precision: *precision,
                }));
            }
        }
    }
    if parts.is_empty() {
        let path = args.path.display();
        let names: Vec<&str> = STENCILS.iter().map(|s| s.name).collect();
        return Err(Failure::new(format!(
            "{path} is, or has, none of the stencils that --boundaries knows"
        ))
        .help(format!("those are files of the names {}", names.join(", "))));
    }
    Ok(parts)
}

fn in_this_process(args: &Args, device: &TargetDevice, part: &Part) -> Result<Done, Failure> {
    let source = read_text(&part.file)?;
    let mut summary = Summary::default();
    let mut text = String::new();
    for many in [false, true] {
        let case = Case {
            stencil: part.stencil,
            boundary: part.boundary,
            ty: part.precision.scalar(),
            many,
        };
        let runs = case.verify(device, &source, args.map.as_deref());
        summary.count(&runs);
        for (mapping, row) in &runs.rows {
            let line = row.line(&format!("{} {case} {mapping}", part.file.display()));
            term::print(&line);
            text.push_str(&line);
        }
    }
    Ok((summary, text))
}

fn in_process(program: &Path, args: &Args, part: &Part) -> Done {
    let mut command = verify_again(program, args, &part.file);
    let ty = part.precision.scalar().to_string();
    command.arg(format!("--boundaries={}", part.boundary.word()));
    command.args(["--type", &ty]);
    let limit = Duration::from_secs(args.patience);
    match parsed_output(&command, limit, Summary::parse) {
        Ok((lines, summary)) => {
            let rows = lines.iter().map(|line| format!("{line}\n"));
            (summary, rows.collect())
        }
        Err(what) => {
            let (file, boundary) = (part.file.display(), part.boundary.word());
            let text = format!("FAILED  {file} {boundary} {ty}: {what}\n");
            (Summary::failed(), text)
        }
    }
}

/// A line for each file that is done; failures are reported at once.
struct Progress {
    start: Instant,
    /// The number of remaining parts of a file, and the results of the others.
    open: Mutex<Vec<(PathBuf, usize, Summary)>>,
}

impl Progress {
    fn new(parts: &[Part]) -> Progress {
        let mut open: Vec<(PathBuf, usize, Summary)> = Vec::new();
        for part in parts {
            match open.last_mut() {
                Some((file, left, _)) if *file == part.file => *left += 1,
                _ => open.push((part.file.clone(), 1, Summary::default())),
            }
        }
        Progress {
            start: Instant::now(),
            open: Mutex::new(open),
        }
    }

    fn ended(&self, part: &Part, (summary, rows): &Done) {
        if summary.failed > 0 {
            let wrong = rows.lines().filter(|line| !line.starts_with("ok "));
            let wrong = wrong.filter(|line| !line.starts_with("skipped "));
            term::print(wrong.map(|line| format!("{line}\n")).collect::<String>());
        }
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((file, left, all)) = open.iter_mut().find(|(file, ..)| *file == part.file) else {
            return;
        };
        *left -= 1;
        all.add(summary);
        if *left == 0 {
            let seconds = self.start.elapsed().as_secs();
            term::print(format!("{}: {}, {seconds} s\n", file.display(), all.line()));
        }
    }
}

#[cfg(test)]
mod tests;
