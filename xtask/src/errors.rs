//! Generates `docs/errors.md` from the codes.

use std::process::Command;

use crate::build::{Profile, Program, build};
use crate::{root, steps};

pub fn write() -> Result<(), String> {
    let systola = build(Program::CommandLine, Profile::Debug)?;
    let page = steps::output(Command::new(systola).args(["explain", "--markdown"]))?;
    let path = root().join("docs/errors.md");
    std::fs::write(&path, page).map_err(|e| format!("{}: {e}", path.display()))
}
