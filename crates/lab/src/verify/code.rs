//! The compiled code of a mapping, reused at other sizes if possible.

use systola::cpu::Error;
use systola_cli::source::Sizes;
use systola_cli::target_device::TargetDevice;
use systola_driver::{Fix, fits, lower};
use systola_ir::Diagnostic;
use systola_ir::diag::Kind;
use systola_ir::mapping::Mapping;
use systola_ir::system::Module;

use super::device::Compiled;
use super::tally::RunResult;

pub struct Code<'a> {
    device: &'a TargetDevice,
    module: &'a Module,
    mapping: &'a Mapping,
    made: Option<Compiled>,
}

impl<'a> Code<'a> {
    pub fn new(device: &'a TargetDevice, module: &'a Module, mapping: &'a Mapping) -> Code<'a> {
        Code {
            device,
            module,
            mapping,
            made: None,
        }
    }

    /// Code that runs at these sizes.
    pub fn at(&mut self, sizes: &Sizes) -> Result<&Compiled, Error> {
        let machine = self.device.machine();
        let serves = |c: &Compiled| {
            let program = c.program();
            program.params.iter().all(|p| p.fixed.is_none()) && fits(program, sizes, &machine)
        };
        let made = match self.made.take().filter(serves) {
            Some(made) => made,
            None => {
                let (module, mapping) = (self.module, self.mapping);
                let lowered = lower(module, mapping, sizes, &Fix::Nothing, &machine);
                Compiled::of(lowered.map_err(Error::Refused)?, self.device)?
            }
        };
        Ok(self.made.insert(made))
    }
}

/// The result where there is no code; a limitation is not a failure of the mapping.
pub fn no_code(shown: &str, error: &Error) -> RunResult {
    match error {
        Error::Refused(found) => {
            let limited = found.iter().all(|d| d.kind() == Kind::Limitation);
            let what = format!("{shown}: {}", all_of(found));
            if limited {
                RunResult::Refused(what)
            } else {
                RunResult::Failed(what)
            }
        }
        Error::Runtime(_) => RunResult::Failed(format!("{shown}: {error}")),
    }
}

pub fn all_of(found: &[Diagnostic]) -> String {
    let all: Vec<String> = found.iter().map(ToString::to_string).collect();
    all.join("; ")
}
