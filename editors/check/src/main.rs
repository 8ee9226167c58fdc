//! `systola-editors generate` writes the parser of the grammar; `systola-editors words FILE` prints
//! what tree-sitter reads the words of programs as, for the tests of the TextMate grammar.

use std::process::ExitCode;

use systola_editors::{generate, grammar, words};

const HELP: &str = "\
systola-editors generate          generate editors/tree-sitter-systola/src; needs Node.js
systola-editors words TARGET      print the words, numbers and comments of all programs as JSON;
                                  the parser is compiled below the folder TARGET
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words_of: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words_of.as_slice() {
        ["generate"] => generate(&grammar()),
        ["words", target] => words::print(target.as_ref()),
        _ => Err(HELP.to_string()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
