//! `systola man`: the manual pages.

use std::io;
use std::path::PathBuf;

use clap::Command;
use clap_mangen::Man;
use roff::{Roff, roman};

use crate::files::Outputs;
use crate::source::{Failure, Outcome, Status};
use crate::term;

const EXAMPLES: &str = "\
Examples:
  systola man | man -l -                         read the page of systola
  systola man --out ~/.local/share/man/man1      write all pages, then: man systola-run

There is one page for systola and one for each of its commands.";

/// Print the manual page, or write the pages of all commands
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Write the pages of all commands into this folder, which is made if it is not there
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Prints or writes pages for the commands that help shows.
pub fn run(args: &Args, mut command: Command) -> Outcome {
    command.build();
    let Some(folder) = &args.out else {
        term::print(page(&command)?);
        return Ok(Status::Done);
    };
    std::fs::create_dir_all(folder)
        .map_err(|e| Failure::new(format!("cannot make {}: {e}", folder.display())))?;
    let mut outputs = Outputs::default();
    let subcommands = command.get_subcommands().filter(|c| c.get_name() != "help");
    for command in std::iter::once(&command).chain(subcommands) {
        let name = command.get_display_name().unwrap_or(command.get_name());
        let path = folder.join(format!("{name}.1"));
        outputs.add(&path, page(command)?.as_bytes())?;
    }
    outputs.commit()?;
    Ok(Status::Done)
}

fn page(command: &Command) -> Result<String, Failure> {
    let cannot = |e: io::Error| {
        Failure::new(format!("the manual page cannot be made: {e}")).with_status(Status::Bug)
    };
    let mut page = Vec::new();
    write(command, &mut page).map_err(cannot)?;
    String::from_utf8(page).map_err(|e| cannot(io::Error::other(e)))
}

fn write(command: &Command, page: &mut Vec<u8>) -> io::Result<()> {
    let man = Man::new(command.clone()).manual("Systola").date("");
    man.render_title(page)?;
    man.render_name_section(page)?;
    man.render_synopsis_section(page)?;
    man.render_description_section(page)?;
    man.render_options_section(page)?;
    if command.get_subcommands().any(|c| !c.is_hide_set()) {
        man.render_subcommands_section(page)?;
    }
    if let Some(text) = command.get_after_help() {
        remarks(&text.to_string()).to_writer(page)?;
    }
    if command.get_version().is_some() {
        man.render_version_section(page)?;
    }
    Ok(())
}

/// What stands below the options in help: a heading becomes a section, lines that are indented stay
/// as they are, others are paragraphs.
fn remarks(text: &str) -> Roff {
    let mut roff = Roff::new();
    let (mut section, mut verbatim) = (false, false);
    for line in text.lines() {
        let indented = line.starts_with(' ');
        if indented != verbatim && !line.is_empty() {
            if indented {
                roff.control("PP", []);
            }
            roff.control(if indented { "nf" } else { "fi" }, []);
            verbatim = indented;
        }
        match line.strip_suffix(':') {
            Some(heading) if !indented && !heading.contains(' ') => {
                roff.control("SH", [heading.to_uppercase().as_str()]);
                section = true;
            }
            _ => {
                if !section {
                    roff.control("SH", ["NOTES"]);
                    section = true;
                }
                match line.is_empty() {
                    true => roff.control("PP", []),
                    false => roff.text([roman(line.strip_prefix("  ").unwrap_or(line))]),
                };
            }
        }
    }
    if verbatim {
        roff.control("fi", []);
    }
    roff
}
