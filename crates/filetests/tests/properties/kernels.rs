//! A legal mapping as kernels, in their interpreter.

use systola_driver::{Copies, Fix, Lowered, Machine, Simd, Target, Threads, Unsized, lower};
use systola_interp::expect_system;
use systola_interp::kernel::{Options, Order, run_kernel_program};
use systola_ir::diag::Kind;
use systola_ir::target::{Links, WarpSizes};

use crate::case::{Case, is_fault};
use crate::tally::Tally;
use crate::values::{compare, inputs};

impl Case<'_> {
    /// The mapping as kernels at all sizes: one program where it can be made for all, else one for
    /// each.
    pub fn kernels(&self, tally: &mut Tally) -> Result<(), String> {
        let mut machine = Machine {
            vector_bytes: [64, 16, 1, 32, 64, 32][(self.seed % 6) as usize],
            code_budget: 300,
            ..Machine::cpu(Simd::Avx512)
        };
        let mut fix = Fix::Nothing;
        if self.seed % 6 > 3 {
            // A coordinate becomes warps only if its extent is a constant.
            fix = Fix::Everything;
            machine.target = Target::Cuda;
            machine.most_lanes = [4, 2][(self.seed % 2) as usize];
            machine.threads = Some(Threads {
                warps: 16,
                wide_bytes: 16,
                copies: Copies::Asynchronous,
                block_memory: [227 << 10, 256, 0][(self.seed % 3) as usize],
                unsized_arrays: Unsized::Global,
                links: Links::Shuffles(WarpSizes::one(32)),
                multiprocessor: None,
            });
        }
        let mut made: Option<Lowered> = None;
        for (n, size) in self.sizes.iter().enumerate() {
            let is_fixed = |l: &Lowered| l.program.params.iter().any(|p| p.fixed.is_some());
            if made.as_ref().is_none_or(is_fixed) {
                match lower(self.module, self.mapping, size, &fix, &machine) {
                    Ok(lowered) => {
                        if lowered.program.kernels[0].warps > 1 {
                            tally.count("kernels with several warps");
                        }
                        made = Some(lowered);
                    }
                    Err(errors) if errors.iter().all(|e| e.kind() == Kind::Limitation) => {
                        tally.count(format!("kernels limited: {}", errors[0].code.id));
                        return Ok(());
                    }
                    // Legal for other numbers of lanes.
                    Err(errors) if errors[0].code.id == "E0504" => {
                        tally.count("kernels refused: E0504");
                        return Ok(());
                    }
                    Err(errors) => return Err(format!("not lowered at {size:?}: {}", errors[0])),
                }
            }
            let Some(lowered) = &made else { continue };
            tally.count(if is_fixed(lowered) {
                "kernel run: made for its size"
            } else {
                "kernel run: made for all sizes"
            });
            let params = self.params(size);
            let inputs = inputs(self.system, &params)?;
            let expected = match expect_system(self.system, &params, &inputs) {
                Ok(expected) => expected,
                Err(fault) if is_fault(fault.code) => continue,
                Err(error) => return Err(format!("the system: {error}")),
            };
            let options = Options {
                order: [Order::InOrder, Order::Reversed, Order::Shuffled(self.seed)][n % 3],
                ..Options::default()
            };
            let got = run_kernel_program(&lowered.program, &params, &inputs, &options)
                .map_err(|e| format!("the kernel at {size:?}: {e}\n{}", lowered.program))?;
            compare(&expected, &got.outputs, self.regroups)
                .map_err(|e| format!("the kernel at {size:?}: {e}\n{}", lowered.program))?;
        }
        Ok(())
    }
}
