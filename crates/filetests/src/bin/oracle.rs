//! The random-program oracle as a program; `cargo xtask fuzz` starts it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use systola_filetests::draw::draw_any;
use systola_filetests::oracle::campaign::{self, Options};

fn main() -> ExitCode {
    // The symbolic parts recurse with the depth of an expression.
    let thread = std::thread::Builder::new().stack_size(256 << 20);
    let done = thread
        .spawn(run)
        .map_err(|e| e.to_string())
        .and_then(|handle| handle.join().map_err(|_| "a panic".to_string())?);
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("oracle: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<bool, String> {
    let mut words: Vec<String> = Vec::new();
    let mut targets: Vec<String> = Vec::new();
    let (mut minutes, mut seed, mut workers) = (1.0, 0, None);
    let mut folder = PathBuf::from("target/fuzz");
    let mut args = std::env::args().skip(1);
    while let Some(word) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{word} needs a value"));
        match word.as_str() {
            "--target" => targets.extend(value()?.split(',').map(str::to_string)),
            "--minutes" => minutes = number(&value()?)?,
            "--seed" => seed = number(&value()?)?,
            "--workers" => workers = Some(number(&value()?)?),
            "--folder" => folder = value()?.into(),
            _ => words.push(word),
        }
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["worker", seed, first, stride, journal] => {
            let numbers = (number(seed)?, number(first)?, number(stride)?);
            campaign::work(
                numbers.0,
                numbers.1,
                numbers.2,
                Path::new(journal),
                &targets,
            )?;
            Ok(true)
        }
        ["choices", path] => campaign::try_choices(Path::new(path), &targets).map(|()| true),
        ["file", path] => campaign::try_file(Path::new(path), &targets).map(|()| true),
        ["seeds", first, count] => {
            campaign::try_range(number(first)?, number(count)?, &targets).map(|()| true)
        }
        ["draw", seed] => {
            print!("{}", draw_any(number(seed)?, 3).text());
            Ok(true)
        }
        [] => {
            systola_filetests::oracle::runners(&targets)?;
            let cpus = std::thread::available_parallelism().map_or(1, usize::from);
            let options = Options {
                time: Duration::from_secs_f64(60.0 * minutes),
                seed,
                targets,
                workers: workers.unwrap_or(cpus as u64),
                folder,
            };
            let summary = campaign::run(&options)?;
            for (target, n) in &summary.cases {
                println!("{n:>9}  {target}");
            }
            println!(
                "{} cases of {} mappings of {} programs; {} in a row without a find; {} finds",
                summary.total(),
                summary.mappings,
                summary.draws,
                summary.in_a_row,
                summary.finds.len()
            );
            Ok(summary.finds.is_empty())
        }
        _ => Err(format!("unknown arguments: {}", words.join(" "))),
    }
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|_| format!("`{text}` is not a number"))
}
