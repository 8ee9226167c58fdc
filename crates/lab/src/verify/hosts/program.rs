//! A mapping as a program of its own, from files to files.

use std::fs;
use std::process::{Command, Stdio};

use systola_cli::source::Sizes;
use systola_driver::{Fix, fits, lower};
use systola_interp::{Arrays, Tensor, npy};
use systola_ir::diag::Kind;
use systola_ir::kernel::{BufferKind, Program};
use systola_ir::mapping::Mapping;
use systola_ir::system::Module;
use tempfile::TempDir;

use super::Campaign;
use crate::verify::code::all_of;
use crate::verify::tally::RunResult;

/// The programs of a mapping, each used from size to size as long as possible.
pub struct Programs<'a> {
    campaign: &'a Campaign,
    module: &'a Module,
    mapping: &'a Mapping,
    made: Option<HostProgram>,
    /// Tests put something wrong into the text: by what a part of it is replaced.
    #[cfg(test)]
    pub change: Option<(String, String)>,
}

/// A program that was compiled.
pub struct HostProgram {
    program: Program,
    folder: TempDir,
}

impl<'a> Programs<'a> {
    pub fn new(campaign: &'a Campaign, module: &'a Module, mapping: &'a Mapping) -> Programs<'a> {
        Programs {
            campaign,
            module,
            mapping,
            made: None,
            #[cfg(test)]
            change: None,
        }
    }

    /// One that runs at these sizes. A limitation is not a failure of the mapping.
    pub fn at(&mut self, sizes: &Sizes) -> Result<&HostProgram, RunResult> {
        let machine = self.campaign.language.machine();
        let serves = |made: &HostProgram| {
            let params = &made.program.params;
            params.iter().all(|p| p.fixed.is_none()) && fits(&made.program, sizes, &machine)
        };
        let made = match self.made.take().filter(serves) {
            Some(made) => made,
            None => {
                let lowered = lower(self.module, self.mapping, sizes, &Fix::Nothing, &machine);
                let lowered = lowered.map_err(|found| {
                    let limited = found.iter().all(|d| d.kind() == Kind::Limitation);
                    match limited {
                        true => RunResult::Refused(all_of(&found)),
                        false => RunResult::Failed(all_of(&found)),
                    }
                })?;
                #[cfg(test)]
                bounded(&lowered.program, sizes);
                let text = self.campaign.language.emit(&lowered.program);
                let text = text.map_err(|d| RunResult::Refused(d.to_string()))?;
                #[cfg(test)]
                let text = match &self.change {
                    Some((from, to)) => text.replacen(from, to, 1),
                    None => text,
                };
                self.compiled(lowered.program, &text)
                    .map_err(RunResult::Failed)?
            }
        };
        Ok(self.made.insert(made))
    }

    fn compiled(&self, program: Program, text: &str) -> Result<HostProgram, String> {
        let campaign = self.campaign;
        campaign.kept(self.mapping, &self.mapping.system, text)?;
        let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
        let path = folder
            .path()
            .join(format!("x.{}", campaign.language.extension()));
        fs::write(&path, text).map_err(|e| e.to_string())?;
        let link = !campaign.compile_only;
        campaign
            .compiler
            .compile(&path, &folder.path().join("x"), link)?;
        Ok(HostProgram { program, folder })
    }
}

impl HostProgram {
    #[cfg(test)]
    pub fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("x")
    }

    /// The outputs, and what the program printed.
    pub fn run(
        &self,
        device: Option<&str>,
        params: &[i128],
        inputs: &Arrays,
    ) -> Result<(Arrays, String), String> {
        let program = &self.program;
        let mut command = Command::new(self.folder.path().join("x"));
        command.arg("times=1").stdin(Stdio::null());
        command.current_dir(self.folder.path());
        // Many programs run at a time; blocks that wait for each other still have others beside
        // them.
        command.env("OMP_NUM_THREADS", "3");
        if let Some(device) = device {
            command.arg(format!("device={device}"));
        }
        for (param, value) in program.params.iter().zip(params) {
            command.arg(format!("{}={value}", param.name));
        }
        let mut outputs = Vec::new();
        for (n, buffer) in program.buffers.iter().enumerate() {
            let (name, file) = (&buffer.name, format!("{n}.bin"));
            let path = self.folder.path().join(&file);
            match buffer.kind {
                BufferKind::Input { data: None } => {
                    let tensor = inputs.get(name).ok_or(format!("no input `{name}`"))?;
                    fs::write(path, bytes(tensor)).map_err(|e| e.to_string())?;
                }
                BufferKind::Output { .. } => {
                    let zeros = Tensor::zeros(buffer.ty, &buffer.axes, params);
                    outputs.push((name, path, zeros.map_err(|e| e.to_string())?));
                }
                BufferKind::Input { data: Some(_) }
                | BufferKind::Temporary
                | BufferKind::Flags
                | BufferKind::Faults { .. } => continue,
            }
            command.arg(format!("{name}={file}"));
        }
        let output = command.output().map_err(|e| e.to_string())?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() {
            let error = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{}: {said}{error}", output.status));
        }
        let mut found = Arrays::new();
        for (name, path, zeros) in outputs {
            let read = fs::read(path).map_err(|e| e.to_string())?;
            let mut file = npy::write(&zeros);
            let head = file.len() - bytes(&zeros).len();
            if file.len() != head + read.len() {
                return Err(format!("`{name}` has {} bytes", read.len()));
            }
            file[head..].copy_from_slice(&read);
            let tensor = npy::read(&file, Some(zeros.ty())).map_err(|e| e.to_string())?;
            found.insert(name.clone(), tensor.starting_at(zeros.lo.clone()));
        }
        Ok((found, said))
    }
}

/// The elements, little-endian.
fn bytes(tensor: &Tensor) -> Vec<u8> {
    let n = tensor.data.len() * (tensor.ty().bits() / 8) as usize;
    let mut file = npy::write(tensor);
    file.split_off(file.len() - n)
}

/// What a program says of its index arithmetic is never less than what there is at some sizes.
#[cfg(test)]
fn bounded(program: &Program, sizes: &Sizes) {
    use systola_ir::kernel::bounds::{WIDE, largest};
    use systola_ir::kernel::magnitude::magnitude;
    let values = program.params.iter().map(|p| sizes.get(&p.name).copied());
    if let Some(params) = values.collect::<Option<Vec<i128>>>() {
        let most = largest(program, &params, WIDE).expect("small sizes") as f64;
        let bound = magnitude(program).eval(&params);
        assert!(bound >= most, "{bound} < {most}\n{program}");
    }
}
