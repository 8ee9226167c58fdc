//! The overhead of an empty launch: the cost of an iteration of a host loop, on one thread and on
//! several.

use systola_ir::kernel::{Host, Kernel, Program, Size, Var, VarKind};
use systola_ir::{DimId, Form, KernelId, ParamId};
use systola_rt::timing::Repeats;
use systola_rt::{CompileOptions, CpuProgram, Error, RunOptions, Source};

/// `for t in 0..T { empty(t) }` with N blocks.
fn program() -> Program {
    let size = |name: &str| Size {
        name: name.to_string(),
        fixed: None,
    };
    let var = |name: &str, kind| Var {
        name: name.to_string(),
        kind,
    };
    let grid = VarKind::Block {
        lo: vec![Form::zero()],
        hi: vec![Form::from(ParamId(1))],
    };
    Program {
        name: "empty".to_string(),
        params: vec![size("T"), size("N")],
        context: Vec::new(),
        buffers: Vec::new(),
        kernels: vec![Kernel {
            hints: Default::default(),
            name: "empty".to_string(),
            lanes: 1,
            warps: 1,
            vars: vec![var("t", VarKind::Host), var("b", grid)],
            shared: Vec::new(),
            regs: Vec::new(),
            values: Vec::new(),
            body: Vec::new(),
        }],
        host_vars: vec!["t".to_string()],
        body: vec![Host::For {
            var: DimId(0),
            lo: vec![Form::zero()],
            hi: vec![Form::from(ParamId(0))],
            body: vec![Host::Launch {
                kernel: KernelId(0),
                args: vec![Form::from(DimId(0))],
            }],
        }],
    }
}

fn main() -> Result<(), Error> {
    let source = Source {
        code: "#include <stdint.h>
            void empty(const int64_t *sizes, const int64_t *args, void *const *buffers,
                       void *scratch, int64_t first, int64_t last) {}"
            .to_string(),
        symbols: vec!["empty".to_string()],
        scratch: vec![Vec::new()],
        flags: vec!["-O2".to_string()],
    };
    let program = CpuProgram::compile(program(), source, &CompileOptions::new())?;
    let launches = 100_000;
    println!("threads blocks  median ns  least ns   (per launch)");
    for (threads, blocks) in [(1, 1), (2, 1), (1, 1000), (2, 2), (2, 1000), (4, 1000)] {
        let options = RunOptions { threads };
        let sizes = [launches, blocks];
        let timing = program.time(&sizes, &[], &mut [], &options, Repeats::default())?;
        let per_launch = 1e9 / launches as f64;
        println!(
            "{threads:7} {blocks:6} {:10.0} {:9.0}",
            timing.median() * per_launch,
            timing.min() * per_launch
        );
    }
    Ok(())
}
