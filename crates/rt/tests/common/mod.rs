//! Small programs, built by hand, with C that follows the calling convention.

#![allow(dead_code, reason = "each test file uses a part of this")]

use std::path::Path;
use std::time::Duration;

use systola_ir::kernel::{Buffer, BufferKind, Host, Kernel, Program, Size, Var, VarKind};
use systola_ir::system::Axis;
use systola_ir::{Cond, DimId, Form, KernelId, Literal, ParamId, Rel, Scalar};
use systola_rt::{CacheOptions, CompileOptions, CpuProgram, Source};

pub fn param(n: u32) -> Form {
    Form::from(ParamId(n))
}

pub fn dim(n: u32) -> Form {
    Form::from(DimId(n))
}

pub fn number(n: i128) -> Form {
    Form::from(n)
}

pub fn size(name: &str) -> Size {
    Size {
        name: name.to_string(),
        fixed: None,
    }
}

pub fn buffer(name: &str, ty: Scalar, kind: BufferKind, extents: Vec<Form>) -> Buffer {
    let axis = |hi| Axis {
        lo: Form::zero(),
        hi,
    };
    Buffer {
        name: name.to_string(),
        ty,
        kind,
        axes: extents.into_iter().map(axis).collect(),
    }
}

pub fn input(name: &str, ty: Scalar, extents: Vec<Form>) -> Buffer {
    buffer(name, ty, BufferKind::Input { data: None }, extents)
}

pub fn output(name: &str, ty: Scalar, extents: Vec<Form>) -> Buffer {
    buffer(name, ty, BufferKind::Output { fill: None }, extents)
}

pub fn filled(name: &str, ty: Scalar, fill: Literal, extents: Vec<Form>) -> Buffer {
    buffer(name, ty, BufferKind::Output { fill: Some(fill) }, extents)
}

pub fn block(name: &str, lo: Form, hi: Form) -> Var {
    Var {
        name: name.to_string(),
        kind: VarKind::Block {
            lo: vec![lo],
            hi: vec![hi],
        },
    }
}

pub fn host(name: &str) -> Var {
    Var {
        name: name.to_string(),
        kind: VarKind::Host,
    }
}

/// A kernel of which the runtime needs only the variables.
pub fn kernel(name: &str, vars: Vec<Var>) -> Kernel {
    Kernel {
        hints: Default::default(),
        name: name.to_string(),
        lanes: 1,
        warps: 1,
        vars,
        shared: Vec::new(),
        regs: Vec::new(),
        values: Vec::new(),
        body: Vec::new(),
    }
}

pub fn launch(kernel: u32, args: Vec<Form>) -> Host {
    Host::Launch {
        kernel: KernelId(kernel),
        args,
    }
}

pub fn program(
    params: &[&str],
    context: Vec<Cond>,
    buffers: Vec<Buffer>,
    kernels: Vec<Kernel>,
    body: Vec<Host>,
) -> Program {
    Program {
        name: "test".to_string(),
        params: params.iter().map(|name| size(name)).collect(),
        context,
        buffers,
        kernels,
        host_vars: vec!["t".to_string(), "u".to_string()],
        body,
    }
}

pub fn at_least(n: u32, least: i128) -> Cond {
    Cond::cmp(Rel::Ge, param(n), number(least))
}

/// C with one function for each symbol.
pub fn source(code: &str, symbols: &[&str]) -> Source {
    Source {
        code: format!("#include <stdint.h>\n{code}"),
        symbols: symbols.iter().map(|s| (*s).to_string()).collect(),
        scratch: vec![Vec::new(); symbols.len()],
        flags: vec!["-O1".to_string()],
    }
}

/// The head of a function of the calling convention.
pub const HEAD: &str = "(const int64_t *sizes, const int64_t *args, void *const *buffers, \
                        void *scratch, int64_t first, int64_t last)";

/// z[i] = x[i]*7 + y[i], one block for each element.
pub fn saxpy() -> (Program, Source) {
    let n = || vec![param(0)];
    let program = program(
        &["N"],
        vec![at_least(0, 0)],
        vec![
            input("x", Scalar::F32, n()),
            input("y", Scalar::F32, n()),
            output("z", Scalar::F32, n()),
        ],
        vec![kernel("saxpy", vec![block("i", number(0), param(0))])],
        vec![launch(0, vec![])],
    );
    let code = format!(
        "void saxpy{HEAD} {{
            const float *x = buffers[0], *y = buffers[1];
            float *z = buffers[2];
            for (int64_t i = first; i < last; i++) z[i] = 7 * x[i] + y[i];
        }}"
    );
    (program, source(&code, &["saxpy"]))
}

/// z[i, j] = 10*x[i, j] + y[j, i], over N rows and M columns.
pub fn transposing() -> (Program, Source) {
    let program = program(
        &["N", "M"],
        vec![at_least(0, 0), at_least(1, 0)],
        vec![
            input("x", Scalar::I32, vec![param(0), param(1)]),
            input("y", Scalar::I32, vec![param(1), param(0)]),
            output("z", Scalar::I32, vec![param(0), param(1)]),
        ],
        vec![kernel(
            "k",
            vec![
                block("i", number(0), param(0)),
                block("j", number(0), param(1)),
            ],
        )],
        vec![launch(0, vec![])],
    );
    let code = format!(
        "void k{HEAD} {{
            const int32_t *x = buffers[0], *y = buffers[1];
            int32_t *z = buffers[2];
            int64_t n = sizes[0], m = sizes[1];
            for (int64_t b = first; b < last; b++) {{
                int64_t i = b / m, j = b % m;
                z[i * m + j] = 10 * x[i * m + j] + y[j * n + i];
            }}
        }}"
    );
    (program, source(&code, &["k"]))
}

/// No cache, and from the environment only the location of the compiler.
pub fn options() -> CompileOptions {
    CompileOptions::new()
}

pub fn cached_in(dir: &Path) -> CompileOptions {
    CompileOptions {
        cache: Some(CacheOptions::new(dir)),
        ..options()
    }
}

pub fn compile((program, source): (Program, Source)) -> CpuProgram {
    CpuProgram::compile(program, source, &options()).expect("the program compiles")
}

/// A compiler that writes a line to `calls` whenever it compiles, does `before`, and calls the real
/// one.
pub fn scripted(dir: &Path, before: &str) -> String {
    let (script, calls) = (dir.join("compiler.sh"), dir.join("calls"));
    let text = format!(
        "if [ \"$1\" = --version ]; then echo 'script 1.0'; exit; fi\n\
         echo called >> '{}'\n{before}\nexec cc \"$@\"\n",
        calls.display()
    );
    std::fs::write(&script, text).expect("the script can be written");
    format!("/bin/sh {}", script.display())
}

pub fn calls(dir: &Path) -> usize {
    let text = std::fs::read_to_string(dir.join("calls")).unwrap_or_default();
    text.lines().count()
}

pub const SHORT: Duration = Duration::from_millis(600);
