//! How kernels are launched, as a comment before their text.

use systola_ir::form::{Cond, Form};
use systola_ir::kernel::magnitude::magnitude;
use systola_ir::kernel::{BufferKind, Host, Kernel, Program, VarKind};

use super::{COMMENT_WIDTH, stored};
use crate::artifact::{Argument, Artifact, DeviceArtifact, SharedArray};
use crate::context::Context;
use crate::names::legal;
use crate::prelude::Prelude;
use crate::scalar::c_type;

/// Of C for CPUs.
pub fn of_c(program: &Program, artifact: &Artifact) -> String {
    Notes::new(program, Language::C(artifact)).finish(false)
}

pub fn of_cuda(program: &Program, artifact: &DeviceArtifact) -> String {
    Notes::new(program, Language::Cuda(artifact)).finish(false)
}

pub fn of_opencl(program: &Program, artifact: &DeviceArtifact) -> String {
    Notes::new(program, Language::OpenCl(artifact)).finish(false)
}

/// The same before a program with a `main`.
pub(super) fn of_c_program(program: &Program, artifact: &Artifact) -> String {
    Notes::new(program, Language::C(artifact)).finish(true)
}

pub(super) fn of_cuda_program(program: &Program, artifact: &DeviceArtifact) -> String {
    Notes::new(program, Language::Cuda(artifact)).finish(true)
}

pub(super) fn of_opencl_program(program: &Program, artifact: &DeviceArtifact) -> String {
    Notes::new(program, Language::OpenCl(artifact)).finish(true)
}

#[derive(Clone, Copy)]
enum Language<'a> {
    C(&'a Artifact),
    Cuda(&'a DeviceArtifact),
    OpenCl(&'a DeviceArtifact),
}

struct Notes<'a> {
    program: &'a Program,
    language: Language<'a>,
    /// Sizes, arrays and variables of the host as the text calls them.
    params: Vec<String>,
    buffers: Vec<String>,
    host_vars: Vec<String>,
    lines: Vec<String>,
}

impl<'a> Notes<'a> {
    fn new(program: &'a Program, language: Language<'a>) -> Notes<'a> {
        let mut notes = Notes {
            program,
            language,
            params: program.params.iter().map(|p| legal(&p.name)).collect(),
            buffers: program.buffers.iter().map(|b| legal(&b.name)).collect(),
            host_vars: program.host_vars.iter().map(|name| legal(name)).collect(),
            lines: Vec::new(),
        };
        // Sizes and arrays are called the same in every kernel.
        if let Some(kernel) = program.kernels.first() {
            let mut prelude = Prelude::new("");
            let cx = Context::new(program, kernel, &mut prelude, 0);
            notes.params = cx.params.iter().map(|p| p.name.clone()).collect();
            notes.buffers = cx.buffers.iter().map(|b| b.name.clone()).collect();
        }
        notes
    }

    fn finish(mut self, is_program: bool) -> String {
        let name = self.program.name.clone();
        let language = match self.language {
            Language::C(_) => "C",
            Language::Cuda(_) => "CUDA C++",
            Language::OpenCl(_) => "OpenCL",
        };
        if is_program {
            self.say(
                0,
                format!("{name}: a program in {language}, printed by Systola."),
            );
            self.program_words();
        } else {
            self.say(
                0,
                format!("{name}: how to launch what follows, in {language}."),
            );
        }
        self.say(0, "");
        self.compilation(is_program);
        self.sizes();
        self.arrays();
        self.launches();
        for at in self.order() {
            self.kernel(at);
        }
        let mut text = String::new();
        for line in &self.lines {
            // A backslash at the end would take the next line into the comment.
            let line = line.replace(['\n', '\r', '\\'], " ");
            text.push_str(format!("// {line}").trim_end());
            text.push('\n');
        }
        text
    }

    /// Words that are as long as they need to be, on lines that are not.
    fn say(&mut self, depth: usize, text: impl AsRef<str>) {
        let text = text.as_ref();
        let mut line = "  ".repeat(depth);
        let next = "  ".repeat(depth + 1);
        let mut empty = true;
        for word in text.split(' ') {
            if !empty && line.len() + 1 + word.len() > COMMENT_WIDTH {
                self.lines.push(line);
                line = next.clone();
                empty = true;
            }
            if !empty {
                line.push(' ');
            }
            line.push_str(word);
            empty = false;
        }
        self.lines.push(line);
    }

    fn program_words(&mut self) {
        let compile = match self.language {
            Language::C(_) => super::cpu::COMPILE,
            Language::Cuda(_) => super::cuda::COMPILE,
            Language::OpenCl(_) => super::opencl::COMPILE,
        };
        self.say(0, "");
        self.lines.push(format!("  {compile}"));
        let mut words = vec!["  ./x".to_string()];
        words.extend(self.program.params.iter().map(|p| format!("{}=…", p.name)));
        let arrays = super::words(self.program);
        for (buffer, word) in self.program.buffers.iter().zip(arrays) {
            if super::is_given(&buffer.kind) {
                words.push(format!("{word}={word}.bin"));
            }
        }
        words.push("times=5".to_string());
        if !matches!(self.language, Language::C(_)) {
            words.push("device=0".to_string());
        }
        self.lines.push(words.join(" "));
        self.say(0, "");
        self.say(
            0,
            "Files hold the elements row by row, little-endian, nothing else. An input without a file gets \
             values that are the same in every run: reals from -1 to 1, integers from 1 to 3. An output \
             without a file is only summed up. Elements that no launch writes are 0.",
        );
    }

    fn compilation(&mut self, is_program: bool) {
        match self.language {
            Language::C(_) => {
                self.say(
                    0,
                    "Compile with -fwrapv, since integers wrap, and with -O3 -march=native; \
                     -fno-math-errno -fno-trapping-math -ffp-contract=fast are allowed and make it faster. \
                     gcc and clang have the vector types that it is written in.",
                );
                if is_program {
                    self.say(0, "Without -fopenmp one thread runs all blocks.");
                }
            }
            Language::Cuda(_) => {
                self.say(
                    0,
                    "No macro has to be defined. -DINDEX=int32_t makes indices 32 bits wide, which is faster \
                     where all of them fit (see below). HOLDS_… = 1 or 0 says that a condition holds for all \
                     blocks of every launch, or for none; FEWER_… = 1, 2, … asks for fewer resident blocks, for \
                     compilers that spill registers.",
                );
            }
            Language::OpenCl(_) => {
                self.say(
                    0,
                    "Compile for the newest OpenCL C of the device, for instance -cl-std=CL3.0, and with \
                     -cl-fp32-correctly-rounded-divide-sqrt where it has that. No macro has to be defined. \
                     -DINDEX=int32_t makes indices 32 bits wide, which is faster where all of them fit (see \
                     below). HOLDS_… = 1 or 0 says that a condition holds for all blocks of every launch, or for \
                     none.",
                );
            }
        }
    }

    fn sizes(&mut self) {
        let program = self.program;
        self.say(0, "");
        let ty = match self.language {
            Language::C(_) => "int64_t",
            Language::Cuda(_) | Language::OpenCl(_) => "index_t",
        };
        let mut sizes = Vec::new();
        for (param, name) in program.params.iter().zip(&self.params) {
            sizes.push(match param.fixed {
                None => name.clone(),
                Some(value) => format!("{name} = {value} and nothing else"),
            });
        }
        if sizes.is_empty() {
            self.say(0, "Sizes: none.");
        } else {
            self.say(0, format!("Sizes, of type {ty}: {}.", sizes.join(", ")));
        }
        let context: Vec<String> = (program.context.iter())
            .map(|cond| cond.display(&self.params, &[]).to_string())
            .collect();
        if !context.is_empty() {
            self.say(0, format!("They satisfy {}.", context.join(", ")));
        }
        let bound: Vec<String> = (magnitude(program).terms().rev())
            .map(|(monomial, c)| {
                let mut factors = Vec::new();
                let c = (c * 100.0).ceil() / 100.0;
                if c != 1.0 || monomial.is_empty() {
                    factors.push(c.to_string());
                }
                factors.extend(monomial.iter().map(|p| self.params[p.index()].clone()));
                factors.join("*")
            })
            .collect();
        let bound = bound.join(" + ");
        let narrow = match self.language {
            Language::C(_) => "",
            Language::Cuda(_) | Language::OpenCl(_) => {
                "; where that is at most 2146435072, 32 bits suffice"
            }
        };
        self.say(
            0,
            format!(
                "Index arithmetic reaches at most {bound}, which has to be below 2^59{narrow}."
            ),
        );
        self.say(
            0,
            "In formulas a/b is rounded down, and a % b is never negative.",
        );
    }

    fn arrays(&mut self) {
        let program = self.program;
        self.say(0, "");
        let align = match self.language {
            Language::C(_) => 64,
            Language::Cuda(_) | Language::OpenCl(_) => 16,
        };
        self.say(
            0,
            format!("Arrays lie row by row; each starts at a multiple of {align} bytes, and no two overlap:"),
        );
        for (n, buffer) in program.buffers.iter().enumerate() {
            let text = format!("{}: {}", self.declared(n), self.role(&buffer.kind));
            self.say(1, text);
        }
        if let Language::Cuda(artifact) = self.language {
            for constant in &artifact.constants {
                let (symbol, name) = (&constant.symbol, &self.buffers[constant.buffer.index()]);
                let text = format!(
                    "{symbol}, in constant memory: what {name} holds, for instance by cudaMemcpyToSymbol"
                );
                self.say(1, text);
            }
        }
    }

    /// `float x[C + Q - 1]`.
    fn declared(&self, at: usize) -> String {
        let buffer = &self.program.buffers[at];
        let ty = c_type(stored(buffer.ty)).unwrap_or("?");
        let mut text = format!("{ty} {}", self.buffers[at]);
        for axis in &buffer.axes {
            let extent = axis.hi.sub(&axis.lo);
            text.push_str(&format!("[{}]", extent.display(&self.params, &[])));
        }
        text
    }

    fn role(&self, kind: &BufferKind) -> String {
        match kind {
            BufferKind::Input { data: None } => "input".to_string(),
            BufferKind::Input { data: Some(data) } => {
                let shown: Vec<String> = data.iter().take(12).map(shown).collect();
                let more = if data.len() > shown.len() {
                    ", …"
                } else {
                    ""
                };
                format!("table, which holds {}{more}", shown.join(", "))
            }
            BufferKind::Output { fill: None } => "output".to_string(),
            BufferKind::Output { fill: Some(with) } => {
                format!(
                    "output, every element {} before the first launch",
                    shown(with)
                )
            }
            BufferKind::Temporary => "temporary, whatever it holds before".to_string(),
            BufferKind::Flags => "flags, zeroed before the first launch".to_string(),
            BufferKind::Faults { sites } => {
                let mut text = "faults, zeroed before the first launch. Where element 0 is not 0 after the \
                                last one, an equation had no value, and outputs mean nothing. Elements 1, 2, \
                                … are the point, two for each coordinate, the lower 32 bits first."
                    .to_string();
                for (n, site) in sites.iter().enumerate() {
                    let (code, iterators) = (site.kind.code().id, site.iterators.join(", "));
                    text.push_str(&format!(
                        " {}: {code}, {}, in {} at ({iterators}).",
                        n + 1,
                        site.kind,
                        site.owner
                    ));
                }
                text
            }
        }
    }

    fn launches(&mut self) {
        self.say(0, "");
        self.say(0, "Launches, each after the one before has ended:");
        let program = self.program;
        self.steps(1, &program.body);
    }

    fn steps(&mut self, depth: usize, body: &[Host]) {
        for step in body {
            match step {
                Host::Launch { kernel, args } => {
                    let names = self.arguments(&self.program.kernels[kernel.index()]);
                    let args: Vec<String> = (names.iter().zip(args))
                        .map(|(name, form)| {
                            format!("{name} = {}", form.display(&self.params, &self.host_vars))
                        })
                        .collect();
                    let with = match args.is_empty() {
                        true => String::new(),
                        false => format!(" with {}", args.join(", ")),
                    };
                    let symbol = self.symbol(kernel.index()).to_string();
                    self.say(depth, format!("{symbol}{with}"));
                }
                Host::For { var, lo, hi, body } => {
                    let (lo, hi) = (self.greatest(lo), self.least(hi));
                    let name = &self.host_vars[var.index()];
                    let text = format!("for {name} = {lo}, … before {hi}:");
                    self.say(depth, text);
                    self.steps(depth + 1, body);
                }
                Host::If {
                    cond,
                    then,
                    otherwise,
                } => {
                    let cond = self.condition(cond);
                    self.say(depth, format!("if {cond}:"));
                    self.steps(depth + 1, then);
                    if !otherwise.is_empty() {
                        self.say(depth, "else:");
                        self.steps(depth + 1, otherwise);
                    }
                }
            }
        }
    }

    fn condition(&self, cond: &Cond) -> String {
        cond.display(&self.params, &self.host_vars).to_string()
    }

    fn greatest(&self, forms: &[Form]) -> String {
        extremum(forms, "max", &self.params, &self.host_vars)
    }

    fn least(&self, forms: &[Form]) -> String {
        extremum(forms, "min", &self.params, &self.host_vars)
    }

    /// Kernels in the order in which they are launched first.
    fn order(&self) -> Vec<usize> {
        let mut order = Vec::new();
        systola_ir::kernel::visit::walk_host(&self.program.body, &mut |step| {
            if let Host::Launch { kernel, .. } = step
                && !order.contains(&kernel.index())
            {
                order.push(kernel.index());
            }
        });
        order
    }

    fn symbol(&self, at: usize) -> &str {
        match self.language {
            Language::C(artifact) => &artifact.kernels[at].symbol,
            Language::Cuda(artifact) | Language::OpenCl(artifact) => &artifact.kernels[at].symbol,
        }
    }

    /// What a kernel calls its arguments from the host.
    fn arguments(&self, kernel: &Kernel) -> Vec<String> {
        let dims = self.dims(kernel);
        let host = kernel.vars_where(|kind| matches!(kind, VarKind::Host));
        host.map(|var| dims[var.index()].clone()).collect()
    }

    fn dims(&self, kernel: &Kernel) -> Vec<String> {
        let mut prelude = Prelude::new("");
        let cx = Context::new(self.program, kernel, &mut prelude, 0);
        cx.dims.iter().map(|d| d.name.clone()).collect()
    }

    fn kernel(&mut self, at: usize) {
        let kernel = &self.program.kernels[at];
        let dims = self.dims(kernel);
        self.say(0, "");
        self.say(0, format!("{}:", self.symbol(at)));
        let mut extents = Vec::new();
        for (n, var) in kernel.vars.iter().enumerate() {
            if let VarKind::Block { lo, hi } = &var.kind {
                let (first, end) = (
                    extremum(lo, "max", &self.params, &dims),
                    extremum(hi, "min", &self.params, &dims),
                );
                let (lo, hi) = (lo.as_slice(), hi.as_slice());
                extents.push(match (lo, hi) {
                    ([lo], [hi]) => hi.sub(lo).display(&self.params, &dims).to_string(),
                    _ => format!("{end} - {first}"),
                });
                let name = &dims[n];
                self.say(
                    1,
                    format!("coordinate {name} of a block: {first}, … before {end}"),
                );
            }
        }
        let columns = extents.pop().unwrap_or_else(|| "1".to_string());
        let rows = match extents.len() {
            0 => "1".to_string(),
            1 => extents[0].clone(),
            _ => {
                let all: Vec<String> = extents.iter().map(|e| format!("({e})")).collect();
                all.join(" * ")
            }
        };
        match self.language {
            Language::C(artifact) => {
                let entry = &artifact.kernels[at];
                let text = format!(
                    "blocks: ({columns}) * ({rows}), none where a factor is negative, numbered with the last \
                     coordinate fastest; a call runs those from `first` on and before `last`"
                );
                self.say(1, text);
                if waits(kernel) {
                    self.say(
                        1,
                        "blocks wait for each other: a thread runs one block after the other, and nothing else \
                         meanwhile",
                    );
                }
                let sizes = self.params.join(", ");
                let args = self.arguments(kernel).join(", ");
                let buffers = self.buffers.join(", ");
                let one = |list: String| {
                    if list.is_empty() {
                        "nothing".to_string()
                    } else {
                        list
                    }
                };
                self.say(1, format!("sizes: {}", one(sizes)));
                self.say(1, format!("args: {}", one(args)));
                self.say(1, format!("buffers: {}", one(buffers)));
                let bytes = self.bytes(&entry.shared, 64, 64);
                self.say(
                    1,
                    format!(
                        "scratch: {bytes} bytes at a multiple of 64 bytes, one for each thread"
                    ),
                );
            }
            Language::Cuda(artifact) | Language::OpenCl(artifact) => {
                let entry = &artifact.kernels[at];
                let (threads, fixed) = (entry.threads, entry.static_shared);
                self.say(
                    1,
                    format!(
                        "grid: columns = {columns}, rows = {rows}; x = columns, y = min(rows, 65535), \
                         z = rows / y rounded up; no launch where there are none"
                    ),
                );
                let (block, local) = match self.language {
                    Language::OpenCl(_) => ("work-group", "local memory"),
                    Language::C(_) | Language::Cuda(_) => ("block", "shared memory"),
                };
                self.say(1, format!("{block}: {threads} threads along x"));
                let dynamic = self.bytes(&entry.dynamic_shared, 16, 0);
                self.say(
                    1,
                    format!("{local}: {fixed} bytes static, {dynamic} bytes dynamic"),
                );
                for (n, argument) in entry.arguments.iter().enumerate() {
                    let text = self.argument(kernel, *argument, local);
                    self.say(1, format!("argument {n}: {text}"));
                }
            }
        }
    }

    fn argument(&self, kernel: &Kernel, argument: Argument, local: &str) -> String {
        match argument {
            Argument::Buffer(b) => {
                let (text, kind) = (
                    self.declared(b.index()),
                    &self.program.buffers[b.index()].kind,
                );
                let role = match kind {
                    BufferKind::Input { data: None } => "input",
                    BufferKind::Input { data: Some(_) } => "table",
                    BufferKind::Output { .. } => "output",
                    BufferKind::Temporary => "temporary",
                    BufferKind::Flags => "flags",
                    BufferKind::Faults { .. } => "faults",
                };
                format!("address of {text}, {role}")
            }
            Argument::Value(b) => format!("{}, by value", self.declared(b.index())),
            Argument::Size(n) => format!("index_t {}", self.params[n]),
            Argument::Host(n) => {
                let names = self.arguments(kernel);
                format!("index_t {}", names[n])
            }
            Argument::Shared => format!("the dynamic {local}"),
        }
    }

    /// The bytes of arrays, each rounded up to a multiple after some more.
    fn bytes(&self, arrays: &[SharedArray], multiple: i128, more: i128) -> String {
        let mut known = 0;
        let mut parts = Vec::new();
        for array in arrays {
            let bytes = i128::from(array.element_bytes);
            let product = (array.extents.iter()).try_fold(bytes, |product, extent| {
                product.checked_mul(extent.as_constant()?.max(0))
            });
            match product {
                Some(bytes) => known += (bytes + more + multiple - 1) / multiple * multiple,
                None => {
                    let mut factors = vec![bytes.to_string()];
                    for extent in &array.extents {
                        factors.push(format!("({})", extent.display(&self.params)));
                    }
                    let up = more + multiple - 1;
                    let factors = factors.join("*");
                    parts.push(format!("({factors} + {up})/{multiple}*{multiple}"));
                }
            }
        }
        if known > 0 || parts.is_empty() {
            parts.push(known.to_string());
        }
        parts.join(" + ")
    }
}

/// Do blocks wait for each other?
pub(super) fn waits(kernel: &Kernel) -> bool {
    use systola_ir::kernel::{Stmt, visit::any};
    any(&kernel.body, &|stmt| {
        matches!(stmt, Stmt::Await { .. } | Stmt::LookBack(_))
    })
}

fn extremum(forms: &[Form], which: &str, params: &[String], dims: &[String]) -> String {
    let shown: Vec<String> = forms
        .iter()
        .map(|form| form.display(params, dims).to_string())
        .collect();
    match shown.as_slice() {
        [only] => only.clone(),
        all => format!("{which}({})", all.join(", ")),
    }
}

fn shown(literal: &systola_ir::Literal) -> String {
    match literal {
        systola_ir::Literal::Bool(b) => u8::from(*b).to_string(),
        systola_ir::Literal::Int(x) => x.to_string(),
        systola_ir::Literal::Float(x) => format!("{x:?}"),
    }
}
