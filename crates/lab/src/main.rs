//! Benchmarks and verification campaigns: `cargo xtask bench` and `cargo xtask verify` build this
//! program and run it.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use systola_allocator as _;
use systola_cli::program;

mod arrays;
mod bench;
mod compare;
mod measure;
mod threads;
mod verify;

/// Benchmarks and verification campaigns of Systola
///
/// It needs the gallery, the stencils and the folder bench/ of the repository, but no cargo.
#[derive(Debug, Parser)]
#[command(name = "systola-lab", version, max_term_width = 110)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Bench(bench::Args),
    Verify(Box<verify::Args>),
}

fn main() -> ExitCode {
    program::main(|cli: Cli| match cli.command {
        Command::Bench(args) => bench::run(&args),
        Command::Verify(args) => verify::run(&args),
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::{Command, CommandFactory};
    use systola_driver::load;

    use super::*;

    fn help_texts(command: &Command, texts: &mut Vec<String>) {
        texts.extend(command.get_after_help().map(ToString::to_string));
        for sub in command.get_subcommands() {
            help_texts(sub, texts);
        }
    }

    /// Benchmarks and campaigns take minutes, and most of them a device: their examples are parsed,
    /// and their files and mappings exist.
    #[test]
    fn examples_of_help_texts_fit() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut texts = Vec::new();
        help_texts(&Cli::command(), &mut texts);
        let mut seen = 0;
        for line in texts.iter().flat_map(|text| text.lines()) {
            let programs = ["  cargo xtask ", "  compute-sanitizer systola-lab "];
            let Some(rest) = programs
                .iter()
                .find_map(|program| line.strip_prefix(program))
            else {
                continue;
            };
            let end = rest.find('>').unwrap_or(rest.len());
            let (shown, _) = rest[..end].split_once("  ").unwrap_or((&rest[..end], ""));
            seen += 1;
            // A command of xtask itself.
            if shown == "bench-setup" {
                continue;
            }
            let words: Vec<&str> = shown.split_whitespace().collect();
            let all = std::iter::once("systola-lab").chain(words.iter().copied());
            if let Err(why) = Cli::try_parse_from(all) {
                panic!("{line}: {why}");
            }
            for file in words.iter().filter(|word| word.starts_with("gallery")) {
                let path = root.join(file);
                assert!(path.exists(), "{line}: no {file}");
                let map = words.windows(2).find(|pair| pair[0] == "--map");
                if let (Some(map), true) = (map, path.is_file()) {
                    let text = std::fs::read_to_string(&path).expect(file);
                    let module = load(&text).expect(file);
                    let exists = module.mappings.iter().any(|m| m.name == map[1]);
                    assert!(exists, "{line}: no mapping {}", map[1]);
                }
            }
        }
        assert!(seen >= 20, "{seen} examples");
    }
}
