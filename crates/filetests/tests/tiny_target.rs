//! The target of `docs/add-a-target.md`: plain C, with one thread for each block and one lane for
//! each warp.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::Command;

use systola_back::expr::Expr;
use systola_back::prelude::{File, Prelude};
use systola_back::simt::grid::Grid;
use systola_back::simt::value::Move;
use systola_back::simt::{Dynamic, Language, Space, emit_kernel};
use systola_back::{Argument, DeviceEntry, Fault};
use systola_driver::{Copies, Fix, Machine, Target, Threads, Unsized, load, lower};
use systola_interp::tensor::Data;
use systola_interp::{Arrays, Tensor, run_system};
use systola_ir::kernel::{BufferKind, Cache, Host, Kernel, Program, VarKind};
use systola_ir::target::Links;
use systola_ir::{Form, Scalar};

/// Plain C: a block is a call of a function, and `block_x`, `block_y` are variables.
struct TinyC;

impl Language for TinyC {
    const FILE: File = File::OpenCl;
    const GRID: Grid = Grid {
        column: "block_x",
        row: "block_y",
    };

    fn threads_of(&self, lanes: u32) -> u32 {
        lanes
    }

    fn lane(&self, _: u32) -> Expr {
        Expr::atom("0")
    }

    fn warp(&self, _: u32) -> Expr {
        Expr::atom("0")
    }

    fn sync_warp(&self) -> &'static str {
        ""
    }

    fn barrier(&self) -> &'static str {
        ""
    }

    fn prefetch(&self, _: &mut Prelude, array: &str, offset: Expr, _: Expr, _: Cache) -> Expr {
        let address = Expr::binary("+", &Expr::atom(array), &offset);
        Expr::call("__builtin_prefetch", &[address])
    }

    fn space(&self, _: Space) -> &'static str {
        ""
    }

    fn restrict(&self) -> &'static str {
        "restrict "
    }

    fn pack(&self, _: &mut Prelude, _: Scalar, n: u32) -> Result<String, Fault> {
        Err(Fault::unsupported(format!("{n} elements at once")))
    }

    fn pack_element(&self, _: Scalar, _: u32, _: &str, n: u32) -> Result<Expr, Fault> {
        Err(Fault::unsupported(format!("element {n} of several")))
    }

    fn pack_of(&self, _: Scalar, _: &str, elements: &[&str]) -> String {
        elements.join(", ")
    }

    fn mover(&self, _: &mut Prelude, _: Scalar, _: Move, _: u32) -> Result<(), Fault> {
        Err(Fault::unsupported("a shuffle"))
    }

    fn flags(&self) -> Result<(), Fault> {
        Err(Fault::unsupported("blocks that wait for each other"))
    }

    fn shared_array(&self, ty: &str, name: &str, count: i128) -> String {
        format!("static {ty} {name}[{count}];")
    }

    fn dynamic_shared(&self) -> Dynamic {
        Dynamic {
            line: None,
            parameter: Some("unsigned char *shared_memory"),
            bytes: "shared_memory",
        }
    }

    fn head(&self, _: &str, _: u32, _: &Kernel) -> Vec<String> {
        vec!["static void".to_string()]
    }
}

fn machine() -> Machine {
    Machine::threads(
        Target::OpenCl,
        1,
        Threads {
            warps: 1,
            wide_bytes: 4,
            copies: Copies::Plain,
            block_memory: 32 << 10,
            unsized_arrays: Unsized::Block,
            links: Links::SharedMemory {
                waits_in_branches: true,
            },
            multiprocessor: None,
        },
    )
}

/// All kernels of a program, with the headers that they need.
fn emit(program: &Program) -> Result<(String, Vec<DeviceEntry>), Fault> {
    let mut prelude = Prelude::new("static inline");
    let (mut functions, mut entries) = (String::new(), Vec::new());
    for kernel in &program.kernels {
        let symbol = kernel.name.clone();
        let constants = BTreeMap::new();
        let (text, entry) = emit_kernel(program, kernel, constants, &mut prelude, symbol, TinyC)?;
        functions.push_str(&text);
        entries.push(entry);
    }
    let helpers = prelude.helpers();
    let source = format!(
        "#include <math.h>\n#include <stdbool.h>\n#include <stdint.h>\n#include <stdio.h>\n\
         typedef int64_t index_t;\nstatic unsigned block_x, block_y;\n{helpers}\n{functions}"
    );
    Ok((source, entries))
}

fn floats(tensor: &Tensor) -> &[f32] {
    match &tensor.data {
        Data::F32(values) => values,
        other => panic!("{:?} is not of this target", other.ty()),
    }
}

/// The number of values of a block coordinate.
fn extent(lo: &[Form], hi: &[Form], sizes: &[i128]) -> i128 {
    let at = |f: &Form| f.eval(sizes, &[]).expect("small numbers");
    let first = lo.iter().map(at).max().expect("a bound");
    let end = hi.iter().map(at).min().expect("a bound");
    end - first
}

/// A `main` that fills inputs, launches one kernel block by block and prints the first output.
fn host(program: &Program, entries: &[DeviceEntry], sizes: &[i128], inputs: &Arrays) -> String {
    let [Host::Launch { kernel, .. }] = program.body.as_slice() else {
        panic!("more than a launch:\n{program}");
    };
    let (kernel, entry) = (&program.kernels[kernel.index()], &entries[kernel.index()]);
    let mut text = "int main(void)\n{\n    static unsigned char shared_memory[32 << 10] __attribute__((aligned(16)));\n    (void)shared_memory;\n".to_string();
    for buffer in &program.buffers {
        let elements = buffer.axes.iter().map(|axis| {
            let (lo, hi) = (axis.lo.eval(sizes, &[]), axis.hi.eval(sizes, &[]));
            hi.expect("small numbers") - lo.expect("small numbers")
        });
        let n: i128 = elements.product();
        let name = &buffer.name;
        match inputs.get(name) {
            Some(tensor) => {
                let values = floats(tensor).iter().map(|v| format!("{v:?}f"));
                let values = values.collect::<Vec<_>>().join(", ");
                let _ = writeln!(text, "    static const float {name}[] = {{{values}}};");
            }
            None => {
                let _ = writeln!(text, "    static float {name}[{n}];");
            }
        }
    }
    let arguments = entry.arguments.iter().map(|argument| match argument {
        Argument::Buffer(id) => program.buffers[id.index()].name.clone(),
        Argument::Size(n) => sizes[*n].to_string(),
        Argument::Shared => "shared_memory".to_string(),
        Argument::Value(_) | Argument::Host(_) => {
            panic!("{argument:?} is not of this target")
        }
    });
    let call = format!(
        "{}({});",
        entry.symbol,
        arguments.collect::<Vec<_>>().join(", ")
    );
    let blocks = kernel.vars.iter().filter_map(|var| match &var.kind {
        VarKind::Block { lo, hi } => Some(extent(lo, hi, sizes)),
        _ => None,
    });
    let blocks: Vec<i128> = blocks.collect();
    let (columns, rows) = match blocks.split_last() {
        Some((columns, rows)) => (*columns, rows.iter().product()),
        None => (1, 1),
    };
    let output = program.buffers.iter();
    let output = output
        .filter(|b| matches!(b.kind, BufferKind::Output { .. }))
        .map(|b| b.name.as_str())
        .next()
        .expect("an output");
    let _ = write!(
        text,
        "    for (block_y = 0; block_y < {rows}; block_y++)
        for (block_x = 0; block_x < {columns}; block_x++)
            {call}
    for (unsigned i = 0; i < sizeof {output} / sizeof {output}[0]; i++)
        printf(\"%.9g\\n\", {output}[i]);
    return 0;
}}
"
    );
    text
}

/// What a mapping of a file computes in plain C, and what its equations say.
fn check(path: &str, mapping: &str, sizes: &[(&str, i128)]) {
    let path = format!("{}/../../gallery/{path}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).expect("a file of the gallery");
    let module = load(&text).expect("a legal program");
    let mapping = (module.mappings.iter().find(|m| m.name == mapping)).expect("a mapping");
    let system = (module.systems.iter())
        .find(|s| s.name == mapping.system)
        .expect("a system");
    let named: BTreeMap<String, i128> = sizes.iter().map(|(n, v)| (n.to_string(), *v)).collect();
    let sizes: Vec<i128> = system.params.iter().map(|p| named[&p.name]).collect();
    let lowered = lower(&module, mapping, &named, &Fix::Nothing, &machine()).expect("kernels");
    let program = lowered.program;
    let mut inputs = Arrays::new();
    for input in &system.inputs {
        let extents = input.axes.iter().map(|axis| {
            let extent = axis.hi.sub(&axis.lo).eval(&sizes, &[]);
            usize::try_from(extent.expect("small numbers")).expect("a size")
        });
        let shape: Vec<usize> = extents.collect();
        let n: usize = shape.iter().product();
        let data: Vec<f32> = (0..n).map(|i| ((i * 7 + 3) % 11) as f32 - 5.0).collect();
        inputs.insert(input.name.clone(), Tensor::new(shape, data).expect("data"));
    }
    let want = run_system(system, &sizes, &inputs).expect("a result");
    let (kernels, entries) = emit(&program).unwrap_or_else(|e| panic!("{e:?}\n{program}"));
    let source = kernels + &host(&program, &entries, &sizes, &inputs);
    let folder = tempfile::tempdir().expect("a folder");
    let (c, binary) = (folder.path().join("tiny.c"), folder.path().join("tiny"));
    std::fs::write(&c, &source).expect("room");
    let made = Command::new("cc")
        .args(["-O1", "-fwrapv", "-o"])
        .args([&binary, &c])
        .arg("-lm")
        .output()
        .expect("a C compiler");
    let said = String::from_utf8_lossy(&made.stderr);
    assert!(made.status.success(), "{said}\n{source}");
    let ran = Command::new(&binary).output().expect("it runs");
    let got: Vec<f32> = String::from_utf8_lossy(&ran.stdout)
        .lines()
        .map(|line| line.parse().expect("a number"))
        .collect();
    let want = want.values().next().expect("an output");
    // Small integers: sums in any order are exact.
    assert_eq!(got, floats(want), "{source}");
}

#[test]
fn kernels_in_plain_c_compute_what_their_systems_compute() {
    check("conv1d/core.ure", "taps", &[("C", 37), ("Q", 3)]);
    check("conv1d/core.ure", "sbm", &[("C", 19), ("Q", 4)]);
    let sizes = [("R", 13), ("C", 22), ("H", 3), ("Q", 5)];
    check("conv2d/core.ure", "rows", &sizes);
}

/// The guide shows the machine as it is here.
#[test]
fn the_guide_shows_this_machine() {
    let guide = include_str!("../../../docs/add-a-target.md");
    let own = include_str!("tiny_target.rs");
    let words = |text: &str| text.split_whitespace().collect::<String>();
    let (from, to) = ("Machine::threads(", "multiprocessor: None,");
    let shown = |text: &str| {
        let start = text.find(from).expect("the machine");
        let end = text[start..].find(to).expect("its end");
        words(&text[start..start + end]).replace(",}", "}")
    };
    assert_eq!(
        shown(guide),
        shown(&own[own.find("fn machine").expect("it")..])
    );
}
