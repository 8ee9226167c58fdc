//! Printed CUDA C++ run on the CPU, for tests on machines without a GPU.
//!
//! A small header replaces the extensions of the language. Each thread of a warp runs as far ahead
//! of the others as it can, so that a missing warp synchronisation shows. Arrays lie between guard
//! pages.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use systola_driver::{Argument, DeviceArtifact};
use systola_interp::value;
use systola_interp::{Arrays, Tensor, npy};
use systola_ir::form::Form;
use systola_ir::kernel::{BufferKind, Host, Kernel, Program, RaisedFault, VarKind};
use tempfile::TempDir;

const WARP: &str = include_str!("emulate/warp.h");

/// A program as part of an executable file.
pub struct Emulated {
    program: Program,
    artifact: DeviceArtifact,
    folder: Arc<TempDir>,
    /// The index of the program in the file.
    number: usize,
}

/// The encoded plan of a run, in words of 8 bytes.
#[derive(Default)]
struct Plan(Vec<u8>);

impl Plan {
    fn number(&mut self, value: i64) {
        self.0.extend(value.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as i64);
        self.0.extend(bytes);
    }
}

impl Emulated {
    /// `narrow`: with indices of 32 bits.
    pub fn compile(
        program: &Program,
        artifact: &DeviceArtifact,
        narrow: bool,
    ) -> Result<Emulated, String> {
        let mut all = Emulated::compile_all(&[(program, artifact, narrow)])?;
        all.pop().ok_or_else(|| "nothing was compiled".into())
    }

    /// Several programs in one executable file, since each compilation is slow.
    pub fn compile_all(
        programs: &[(&Program, &DeviceArtifact, bool)],
    ) -> Result<Vec<Emulated>, String> {
        let folder = Arc::new(tempfile::tempdir().map_err(|e| e.to_string())?);
        let mut text = WARP.to_string();
        let mut made = Vec::new();
        let mut entries = Vec::new();
        for (number, (program, artifact, narrow)) in programs.iter().enumerate() {
            let one = Emulated {
                program: (*program).clone(),
                artifact: (*artifact).clone(),
                folder: folder.clone(),
                number,
            };
            let index = if *narrow {
                "#define INDEX int32_t\n"
            } else {
                ""
            };
            let _ = write!(
                text,
                "\n#undef INDEX\n#undef NARROW\n{index}namespace program_{number} {{\n{}}}\n",
                one.source()
            );
            entries.push(format!("program_{number}::run"));
            made.push(one);
        }
        let _ = write!(
            text,
            "int main(int, char **argv)
{{
    static int (*entries[])(char **) = {{{}}};
    return entries[atoi(argv[3])](argv);
}}
",
            entries.join(", ")
        );
        let path = folder.path().join("kernel.cpp");
        fs::write(&path, text).map_err(|e| e.to_string())?;
        let mut command = Command::new("g++");
        command.args([
            "-std=c++17",
            // Programs are small and run once: optimising them takes longer.
            "-O0",
            "-march=native",
            "-w",
            // C's headers alone: those of libstdc++ take 0.1 s longer to read.
            "-D_GLIBCXX_INCLUDE_NEXT_C_HEADERS",
            // The sanitizer does not support jumps between stacks.
            "-U_FORTIFY_SOURCE",
        ]);
        command
            .arg("-o")
            .arg(folder.path().join("kernel"))
            .arg(&path);
        let output = command.output().map_err(|e| format!("g++: {e}"))?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        Ok(made)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{name}_{}", self.number))
    }

    /// Arguments of the launch with the most.
    fn most_arguments(&self) -> usize {
        let count = |kernel: &Kernel| {
            let host = kernel.vars_where(|k| matches!(k, VarKind::Host));
            host.count()
        };
        self.program.kernels.iter().map(count).max().unwrap_or(0)
    }

    /// The printed text with a function that runs launches, in a namespace.
    fn source(&self) -> String {
        let mut code = self.artifact.source.clone();
        // Dynamic shared memory is that of `warp.h`, for all programs.
        while let Some(at) = code.find("extern __shared__") {
            let end = code[at..].find(';').map_or(code.len(), |n| at + n + 1);
            code.replace_range(at..end, "");
        }
        let code = code.replace("__shared__", "static");
        let code = code.replace("extern \"C\"", "");
        let mut text = format!("{code}\n");
        let _ = writeln!(
            text,
            "static void *buffers[{}];\nstatic long long sizes[{}], args[{}];",
            self.program.buffers.len() + 1,
            self.program.params.len() + 1,
            self.most_arguments() + 1
        );
        for (n, kernel) in self.artifact.kernels.iter().enumerate() {
            let arguments: Vec<String> = kernel
                .arguments
                .iter()
                .map(|argument| match argument {
                    Argument::Buffer(b) => format!("Any{{buffers[{}]}}", b.index()),
                    Argument::Size(n) => format!("(index_t)sizes[{n}]"),
                    Argument::Host(n) => format!("(index_t)args[{n}]"),
                    Argument::Value(_) | Argument::Shared => {
                        unreachable!("constant and shared memory are no arguments in CUDA C++")
                    }
                })
                .collect();
            let (symbol, arguments) = (&kernel.symbol, arguments.join(", "));
            let _ = writeln!(text, "static void call_{n}() {{ {symbol}({arguments}); }}");
        }
        let calls: Vec<String> = (0..self.artifact.kernels.len())
            .map(|n| format!("call_{n}"))
            .collect();
        let mut constants = String::new();
        for constant in &self.artifact.constants {
            let (symbol, buffer) = (&constant.symbol, constant.buffer.index());
            let _ = writeln!(
                constants,
                "    memcpy({symbol}, buffers[{buffer}], sizeof {symbol});"
            );
        }
        let _ = write!(
            text,
            "static int run(char **argv)
{{
    static void (*calls[])() = {{{}}};
    plan = fopen(argv[1], \"rb\");
    static size_t lengths[sizeof buffers / sizeof *buffers];
    const int n_buffers = number();
    for (int n = 0; n < n_buffers; n++) {{
        lengths[n] = number();
        buffers[n] = fenced(lengths[n]);
        if (lengths[n] && fread(buffers[n], 1, lengths[n], plan) != lengths[n])
            return 4;
    }}
    const int n_sizes = number();
    for (int n = 0; n < n_sizes; n++)
        sizes[n] = number();
{constants}    const long long n_launches = number();
    for (long long l = 0; l < n_launches; l++) {{
        entry = calls[number()];
        const long long columns = number(), rows = number(), threads = number(), shared = number(), n_args = number();
        for (int n = 0; n < n_args; n++)
            args[n] = number();
        if (shared > (long long)sizeof shared_memory)
            return 5;
        // Layers of three rows, the last of which may have more than there are.
        gridDim.y = rows < 3 ? rows : 3;
        const long long layers = rows ? (rows + gridDim.y - 1) / gridDim.y : 0;
        const long long blocks = columns * gridDim.y * layers;
        for (long long b = 0; b < blocks; b++) {{
            const long long at = l % 2 ? blocks - 1 - b : b;
            blockIdx.x = at % columns;
            blockIdx.y = at / columns % gridDim.y;
            blockIdx.z = at / columns / gridDim.y;
            run_block(threads, shared, b + l);
        }}
    }}
    FILE *out = fopen(argv[2], \"wb\");
    for (int n = 0; n < n_buffers; n++)
        fwrite(buffers[n], 1, lengths[n], out);
    fclose(out);
    return 0;
}}
",
            calls.join(", ")
        );
        text
    }

    /// The outputs, for inputs by name.
    pub fn run(&self, params: &[i128], inputs: &Arrays) -> Result<Arrays, String> {
        self.try_run(params, inputs)?
            .map_err(|raised| raised.to_string())
    }

    /// The same, where an equation may have no value.
    pub fn try_run(
        &self,
        params: &[i128],
        inputs: &Arrays,
    ) -> Result<Result<Arrays, RaisedFault>, String> {
        let program = &self.program;
        let mut plan = Plan::default();
        plan.number(program.buffers.len() as i64);
        let mut before = Vec::new();
        for buffer in &program.buffers {
            let zeros = Tensor::zeros(buffer.ty, &buffer.axes, params);
            let zeros = zeros.map_err(|e| e.to_string())?;
            let tensor = match &buffer.kind {
                BufferKind::Input { data: None } => inputs
                    .get(&buffer.name)
                    .ok_or_else(|| format!("`{}` is missing", buffer.name))?
                    .clone(),
                BufferKind::Input { data: Some(data) } => {
                    let mut tensor = zeros;
                    for (at, literal) in data.iter().enumerate() {
                        tensor.data.set(at, &value::literal(buffer.ty, *literal));
                    }
                    tensor
                }
                BufferKind::Output { fill: Some(with) } => {
                    let mut tensor = zeros;
                    for at in 0..tensor.data.len() {
                        tensor.data.set(at, &value::literal(buffer.ty, *with));
                    }
                    tensor
                }
                BufferKind::Output { fill: None }
                | BufferKind::Temporary
                | BufferKind::Flags
                | BufferKind::Faults { .. } => zeros,
            };
            plan.bytes(&bytes(&tensor));
            before.push(tensor);
        }
        plan.number(params.len() as i64);
        for value in params {
            plan.number(i64::try_from(*value).map_err(|e| e.to_string())?);
        }
        let mut launches = Vec::new();
        let mut vars = vec![0; program.host_vars.len()];
        self.launches(&program.body, params, &mut vars, &mut launches)?;
        plan.number(launches.len() as i64);
        for launch in launches {
            launch.into_iter().for_each(|n| plan.number(n));
        }
        let (from, to) = (self.path("plan"), self.path("out"));
        fs::write(&from, plan.0).map_err(|e| e.to_string())?;
        let output = Command::new(self.folder.path().join("kernel"))
            .arg(&from)
            .arg(&to)
            .arg(self.number.to_string())
            .output()
            .map_err(|e| e.to_string())?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{}: {said}", output.status));
        }
        let all = fs::read(&to).map_err(|e| e.to_string())?;
        let mut rest = &all[..];
        let mut outputs = Arrays::new();
        for (buffer, tensor) in program.buffers.iter().zip(&before) {
            let (own, more) = rest.split_at(bytes(tensor).len());
            rest = more;
            if let BufferKind::Faults { .. } = buffer.kind {
                let numbers = own.chunks_exact(4);
                let numbers = numbers.map(|b| i32::from_ne_bytes([b[0], b[1], b[2], b[3]]));
                let recorded: Vec<i32> = numbers.collect();
                if let Some(raised) = RaisedFault::read(program, &recorded, params) {
                    return Ok(Err(raised));
                }
            }
            if let BufferKind::Output { .. } = buffer.kind {
                let mut file = npy::write(tensor);
                let head = file.len() - own.len();
                file[head..].copy_from_slice(own);
                let read = npy::read(&file, Some(buffer.ty)).map_err(|e| e.to_string())?;
                let read = read.starting_at(tensor.lo.clone());
                outputs.insert(buffer.name.clone(), read);
            }
        }
        Ok(Ok(outputs))
    }

    /// Kernel, columns and rows of blocks, threads, shared bytes, arguments with their number
    /// before them.
    fn launches(
        &self,
        body: &[Host],
        params: &[i128],
        vars: &mut [i128],
        found: &mut Vec<Vec<i64>>,
    ) -> Result<(), String> {
        for step in body {
            match step {
                Host::Launch { kernel, args } => {
                    let at = kernel.index();
                    let entry = &self.artifact.kernels[at];
                    let args: Vec<i128> = args
                        .iter()
                        .map(|form| eval(form, params, vars))
                        .collect::<Result<_, _>>()?;
                    let mut shared = 0;
                    for array in &entry.dynamic_shared {
                        let mut bytes = i128::from(array.element_bytes);
                        for extent in &array.extents {
                            bytes *= extent.eval(params).map_err(|e| e.to_string())?.max(0);
                        }
                        shared += (bytes + 15) / 16 * 16;
                    }
                    let (columns, rows) = blocks(&self.program.kernels[at], params, &args)?;
                    let mut launch = vec![at as i64, columns as i64, rows as i64];
                    launch.extend([i64::from(entry.threads), shared as i64, args.len() as i64]);
                    launch.extend(args.iter().map(|a| *a as i64));
                    found.push(launch);
                }
                Host::For { var, lo, hi, body } => {
                    let (first, last) = range(lo, hi, params, vars)?;
                    for value in first..last {
                        vars[var.index()] = value;
                        self.launches(body, params, vars, found)?;
                    }
                }
                Host::If {
                    cond,
                    then,
                    otherwise,
                } => {
                    let holds = cond.eval(params, vars).map_err(|e| e.to_string())?;
                    let side = if holds { then } else { otherwise };
                    self.launches(side, params, vars, found)?;
                }
            }
        }
        Ok(())
    }
}

fn eval(form: &Form, params: &[i128], dims: &[i128]) -> Result<i128, String> {
    form.eval(params, dims).map_err(|e| e.to_string())
}

fn range(lo: &[Form], hi: &[Form], params: &[i128], dims: &[i128]) -> Result<(i128, i128), String> {
    let all = |forms: &[Form]| -> Result<Vec<i128>, String> {
        forms.iter().map(|f| eval(f, params, dims)).collect()
    };
    let first = all(lo)?.into_iter().max().unwrap_or(0);
    let last = all(hi)?.into_iter().min().unwrap_or(0);
    Ok((first, last))
}

/// The number of blocks along the last coordinate, and along all others together.
fn blocks(kernel: &Kernel, params: &[i128], args: &[i128]) -> Result<(i128, i128), String> {
    let mut dims = vec![0; kernel.vars.len()];
    let host = kernel.vars_where(|k| matches!(k, VarKind::Host));
    for (var, value) in host.zip(args) {
        dims[var.index()] = *value;
    }
    let mut extents = Vec::new();
    for var in &kernel.vars {
        if let VarKind::Block { lo, hi } = &var.kind {
            let (first, last) = range(lo, hi, params, &dims)?;
            extents.push((last - first).max(0));
        }
    }
    let last = extents.pop().unwrap_or(1);
    Ok((last, extents.iter().product()))
}

/// The elements in memory order, which is also that of files.
fn bytes(tensor: &Tensor) -> Vec<u8> {
    let n = tensor.data.len() * (tensor.ty().bits() / 8) as usize;
    let mut file = npy::write(tensor);
    file.split_off(file.len() - n)
}
