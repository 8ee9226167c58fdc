//! A source file, and the selections of the command line from it.

use std::path::Path;

use systola_ir::diag::{Diagnostic, Kind};
use systola_ir::mapping::Mapping;
use systola_ir::system::{Module, Program, System};

use crate::files::read_text;
use crate::render;
use crate::term;

pub use systola_driver::sizes::{Parameters, Sizes, Small};

/// The exit status, in ascending order of gravity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    Done,
    Limitation,
    Mistake,
    Bug,
}

impl Status {
    pub fn code(self) -> u8 {
        match self {
            Status::Done => 0,
            Status::Mistake => 1,
            Status::Limitation => 2,
            Status::Bug => 101,
        }
    }
}

impl From<Kind> for Status {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Mistake => Status::Mistake,
            Kind::Limitation => Status::Limitation,
            Kind::Hint => Status::Done,
        }
    }
}

/// The status of the gravest diagnostic.
pub fn worst(diagnostics: &[Diagnostic]) -> Status {
    diagnostics
        .iter()
        .map(|d| Status::from(d.kind()))
        .max()
        .unwrap_or(Status::Done)
}

/// Why a command ends early.
#[derive(Debug)]
pub enum Failure {
    /// Everything was printed already.
    Reported(Status),
    /// Something outside of any source text: arguments, files, the machine.
    Outside {
        status: Status,
        message: String,
        help: Option<String>,
    },
}

impl Failure {
    /// A mistake of the user's.
    pub fn new(message: impl Into<String>) -> Self {
        Failure::Outside {
            status: Status::Mistake,
            message: message.into(),
            help: None,
        }
    }

    /// The same with another exit status.
    #[must_use]
    pub fn with_status(self, status: Status) -> Self {
        match self {
            Failure::Outside { message, help, .. } => Failure::Outside {
                status,
                message,
                help,
            },
            Failure::Reported(_) => Failure::Reported(status),
        }
    }

    #[must_use]
    pub fn help(self, text: impl Into<String>) -> Self {
        match self {
            Failure::Outside {
                status, message, ..
            } => Failure::Outside {
                status,
                message,
                help: Some(text.into()),
            },
            Failure::Reported(status) => Failure::Reported(status),
        }
    }
}

pub type Outcome = Result<Status, Failure>;

/// A parsed file.
#[derive(Debug)]
pub struct Source {
    pub path: String,
    pub text: String,
    pub module: Module,
}

impl Source {
    /// Reads and parses a file; all its errors are printed.
    pub fn load(path: &Path) -> Result<Source, Failure> {
        Self::parse(&path.display().to_string(), &read_text(path)?)
    }

    /// Parses a text; all its errors are printed.
    pub fn parse(path: &str, text: &str) -> Result<Source, Failure> {
        let mut source = Source {
            path: path.to_string(),
            text: text.to_string(),
            module: Module::default(),
        };
        match systola_driver::load_file(Path::new(path), text) {
            Ok(module) => {
                source.print(&module.hints);
                source.module = module;
                Ok(source)
            }
            Err(diagnostics) => Err(source.fail(&diagnostics)),
        }
    }

    /// Prints diagnostics to the standard error.
    pub fn print(&self, diagnostics: &[Diagnostic]) {
        for d in diagnostics {
            let text = render::diagnostic(&self.path, &self.text, d, term::colour_err());
            term::eprint(format!("{text}\n"));
        }
    }

    /// Prints diagnostics and what to do next; ends the command.
    pub fn fail(&self, diagnostics: &[Diagnostic]) -> Failure {
        self.print(diagnostics);
        self.print_pointer(diagnostics);
        Failure::Reported(worst(diagnostics).max(Status::Limitation))
    }

    /// Prints where the codes are explained.
    pub fn print_pointer(&self, diagnostics: &[Diagnostic]) {
        let mut ids: Vec<&str> = diagnostics.iter().map(|d| d.code.id).collect();
        ids.sort_unstable();
        ids.dedup();
        if let Some(first) = ids.first() {
            let what = match diagnostics.len() {
                1 => "1 problem".to_string(),
                n => format!("{n} problems"),
            };
            term::eprint(format!(
                "{what} in {}; `systola explain {first}` tells more\n",
                self.path
            ));
        }
    }

    /// The system of this name, or the only one.
    pub fn system(&self, name: Option<&str>) -> Result<&System, Failure> {
        let systems = &self.module.systems;
        match name {
            Some(name) => systems.iter().find(|s| s.name == name).ok_or_else(|| {
                let names = systems.iter().map(|s| s.name.as_str());
                self.no_such("system", name, names)
            }),
            None => match systems.as_slice() {
                [] => Err(Failure::new(format!("{} has no system", self.path))),
                [one] => Ok(one),
                many => {
                    let names: Vec<_> = many.iter().map(|s| s.name.as_str()).collect();
                    Err(
                        Failure::new(format!("{} has {} systems", self.path, many.len()))
                            .help(format!("choose one with --system {}", names.join("|"))),
                    )
                }
            },
        }
    }

    /// The mapping of this name, or the first (of that system, where one is given).
    pub fn mapping(&self, name: Option<&str>, system: Option<&str>) -> Result<&Mapping, Failure> {
        let of_system = |m: &&Mapping| system.is_none_or(|s| m.system == s);
        let mut candidates = self.module.mappings.iter().filter(of_system);
        match name {
            Some(name) => candidates.find(|m| m.name == name).ok_or_else(|| {
                let names = self.module.mappings.iter().filter(of_system);
                self.no_such("mapping", name, names.map(|m| m.name.as_str()))
            }),
            None => candidates.next().ok_or_else(|| {
                Failure::new(format!("{} has no mapping", self.path))
                    .help("write one: mapping m of SYSTEM { lane = …; time = …; }")
            }),
        }
    }

    pub fn program(&self, name: &str) -> Result<&Program, Failure> {
        let programs = &self.module.programs;
        programs
            .iter()
            .find(|p| p.name == name)
            .ok_or_else(|| self.no_such("program", name, programs.iter().map(|p| p.name.as_str())))
    }

    fn no_such<'a>(&self, what: &str, name: &str, names: impl Iterator<Item = &'a str>) -> Failure {
        let names: Vec<_> = names.collect();
        let failure = Failure::new(format!("{} has no {what} `{name}`", self.path));
        if names.is_empty() {
            failure.help(format!("it has no {what} at all"))
        } else {
            failure.help(format!("it has {}", names.join(", ")))
        }
    }

    /// Checks that every name in `--set` is a parameter of a system or program of the file.
    pub fn check_sizes(&self, sizes: &Sizes) -> Result<(), Failure> {
        let of_systems = self.module.systems.iter().flat_map(|s| &s.params);
        let of_programs = self.module.programs.iter().flat_map(|p| &p.params);
        let mut known: Vec<&str> = of_systems
            .chain(of_programs)
            .map(|p| p.name.as_str())
            .collect();
        known.sort_unstable();
        known.dedup();
        match sizes.keys().find(|name| !known.contains(&name.as_str())) {
            None => Ok(()),
            Some(name) => Err(
                Failure::new(format!("{} has no parameter `{name}`", self.path))
                    .help(format!("its parameters: {}", known.join(", "))),
            ),
        }
    }
}

/// `P=V`, for clap.
pub fn parse_size(text: &str) -> Result<(String, i128), String> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| "write it as NAME=VALUE, for instance C=16".to_string())?;
    let value = value
        .trim()
        .replace('_', "")
        .parse::<i64>()
        .map_err(|_| format!("`{value}` is not a 64-bit integer"))?;
    Ok((name.trim().to_string(), value.into()))
}

/// The values of `--set`; each parameter is given once.
pub fn given_sizes(given: &[(String, i128)]) -> Result<Sizes, Failure> {
    let mut sizes = Sizes::new();
    for (name, value) in given {
        if let Some(before) = sizes.insert(name.clone(), *value) {
            return Err(
                Failure::new(format!("--set gives `{name}` twice: {before} and {value}"))
                    .help("leave one of the two out"),
            );
        }
    }
    Ok(sizes)
}

/// `NAME=FILE`, for clap.
pub fn parse_file(text: &str) -> Result<(String, std::path::PathBuf), String> {
    match text.split_once('=') {
        Some((name, file)) if !name.is_empty() && !file.is_empty() => {
            Ok((name.to_string(), file.into()))
        }
        _ => Err("write it as NAME=FILE, for instance x=x.npy".to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        assert_eq!(parse_size("C=1_000"), Ok(("C".to_string(), 1000)));
        assert!(parse_size("C").is_err());
        assert!(parse_size("C=x").is_err());
    }
}
