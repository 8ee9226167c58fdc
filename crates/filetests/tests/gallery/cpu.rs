//! Every mapping of the gallery as machine code, against the equations of its system.

use systola::Simd;
use systola::{Compiled, CpuOptions, RunOptions, compile};
use systola_filetests::tensor::Params;
use systola_filetests::ways::{all_wanted, number};
use systola_filetests::{quick_cpu, usual_cpu};
use systola_interp::Arrays;
use systola_ir::kernel::Program;
use systola_ir::mapping::Mapping;
use systola_ir::system::Module;

use crate::suite::{Target, run_suite};

struct Cpu;

impl Target for Cpu {
    type Code = Compiled;

    fn compile(
        &self,
        module: &Module,
        mapping: &Mapping,
        _: usize,
        params: &Params,
    ) -> Result<Compiled, String> {
        let named: Vec<(&str, i64)> = params.0.iter().map(|(k, v)| (k.as_str(), *v)).collect();
        let options = options(number(&mapping.system, &mapping.name));
        compile(module, &mapping.name, &named, &options).map_err(|error| error.to_string())
    }

    fn program<'c>(&self, code: &'c Compiled) -> &'c Program {
        code.program()
    }

    fn source<'c>(&self, code: &'c Compiled) -> &'c str {
        &code.source
    }

    /// If each size needs a compilation, one suffices: the kernel interpreter runs all of them.
    fn most_sizes(&self) -> (usize, usize) {
        (usize::MAX, if all_wanted() { 2 } else { 1 })
    }

    fn run(
        &self,
        code: &Compiled,
        n: usize,
        params: &[i128],
        inputs: &Arrays,
    ) -> Result<Arrays, String> {
        let threads = [1, 2, 5][n % 3];
        let ran = code.run_tensors(params, inputs, &RunOptions { threads });
        ran.map(|(got, _)| got).map_err(|error| error.to_string())
    }
}

#[test]
fn machine_code_computes_what_the_systems_compute() {
    let seen = run_suite(&Cpu);
    assert!(seen.mappings > 150 && seen.runs > 3 * seen.mappings);
}

/// The machine's vectors and the quickest compiler for most mappings, the usual compiler for every
/// eighth, and short vectors for a quarter.
fn options(number: u64) -> CpuOptions {
    match number % 8 {
        1 => usual_cpu(),
        3 | 7 => CpuOptions {
            simd: Simd::Portable,
            ..quick_cpu()
        },
        _ => quick_cpu(),
    }
}
