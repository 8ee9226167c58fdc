//! `systola fmt`: formats programs.

use std::path::{Path, PathBuf};

use systola_ir::system::Module;

use crate::files;
use crate::source::{Failure, Outcome, Source, Status};
use crate::term;

const EXAMPLES: &str = "\
Examples:
  systola fmt gallery/conv1d/core.ure       format a file in place
  systola fmt gallery stencils              all .ure files of two folders
  systola fmt --check gallery               change nothing, list the files that are not formatted
  systola fmt - < core.ure > formatted.ure  from the standard input to the standard output

Line breaks inside of a statement stay where they are; spaces and indentation are set, and lines of
more than 100 columns are broken. Comments and at most one blank line at a time stay. A file with
mistakes of syntax is left alone, as is one that is formatted already.";

/// Format .ure files in place
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Files, folders with .ure files, or `-` for the standard input
    #[arg(required = true, value_name = "FILES")]
    files: Vec<PathBuf>,
    /// Write nothing, list the files that are not formatted; exit status 1 if there are any
    #[arg(long)]
    check: bool,
}

/// How the standard input is called in messages.
const STDIN: &str = "<stdin>";

pub fn run(args: &Args) -> Outcome {
    let mut status = Status::Done;
    for path in files(&args.files)? {
        let stdin = path.as_os_str() == "-";
        let (name, text) = match stdin {
            true => (STDIN.to_string(), files::read_standard_input()?),
            false => (path.display().to_string(), files::read_text(&path)?),
        };
        let formatted = match formatted(&path, &name, &text) {
            Ok(formatted) => formatted,
            Err(Failure::Reported(reported)) => {
                status = status.max(reported);
                continue;
            }
            Err(failure) => return Err(failure),
        };
        match (args.check, stdin) {
            (true, _) if formatted != text => {
                term::print(format!("{name}\n"));
                status = status.max(Status::Mistake);
            }
            (false, true) => term::print(formatted),
            (false, false) if formatted != text => files::write(&path, formatted.as_bytes())?,
            (true | false, _) => {}
        }
    }
    Ok(status)
}

/// Formats a text; its mistakes of syntax are printed.
fn formatted(path: &Path, name: &str, text: &str) -> Result<String, Failure> {
    systola_driver::format_file(path, text).map_err(|diagnostics| {
        let source = Source {
            path: name.to_string(),
            text: text.to_string(),
            module: Module::default(),
        };
        source.fail(&diagnostics)
    })
}

/// The files, with those in folders in place of the folders.
fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut all = Vec::new();
    for path in paths {
        if path.is_dir() {
            let before = all.len();
            collect(path, &mut all)?;
            if all.len() == before {
                let none = format!("{} has no .ure file", path.display());
                return Err(Failure::new(none).help("name files, or a folder that has some"));
            }
        } else {
            all.push(path.clone());
        }
    }
    Ok(all)
}

/// The .ure files under a folder in the order of their names; links to folders are not followed.
fn collect(folder: &Path, all: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let cannot = |e| Failure::new(format!("cannot read {}: {e}", folder.display()));
    let mut entries = std::fs::read_dir(folder)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(cannot)?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        if entry.file_type().map_err(cannot)?.is_dir() {
            collect(&path, all)?;
        } else if path.extension().is_some_and(|e| e == "ure") {
            all.push(path);
        }
    }
    Ok(())
}
