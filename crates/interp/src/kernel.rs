//! The meaning of kernels, lane by lane.
//!
//! This sees only a [`Program`], sizes and inputs. It executes what the module documentation of
//! [`systola_ir::kernel`] says, in an order of blocks and warps chosen by [`Options`], and ends
//! with an error where the result could depend on that order or on anything undefined.
//!
//! * **Lanes** execute a statement in lockstep. **Warps** of a block run one after another, each
//!   until it has to wait. **Blocks** run one after another; if they wait for flags, each until it
//!   has to.
//! * **Undefined values** are a distinct value: an operation with one gives one, and so does a
//!   lookup by one or out of range, and a division of integers by zero. Shared and temporary memory
//!   may hold them. Storing one to an output or to a flag is an error, and so is one that decides
//!   whether there is a fault; the error says where it originated.
//! * **Faults** of equations end the run, as an error of the user and not of the kernel.
//! * **Races** are found by the happens-before order of barriers, flags and launches, not by the
//!   order of this execution; see `race.rs`.
//! * **Barriers** and signals synchronise all warps of a block; a signal is given once for the
//!   block, after everything its warps did. Each warp waits for a flag on its own, which orders it
//!   after the signals it waited for, and after nothing else. The first warp to arrive takes the
//!   dynamic block id.
//! * **Copies** read when they are issued and complete when their warp has waited for them. Until
//!   then no warp may touch their destination or write their source.

use systola_ir::codes::run;
use systola_ir::form::Overflow;
use systola_ir::kernel::census::Counts;
use systola_ir::kernel::{Host, Program, RaisedFault};
use systola_ir::{Diagnostic, Form, KernelId, Span};

use crate::linear::Linear;
use crate::params::check_params;
use crate::system::Arrays;

mod code;
mod fault;
mod grid;
mod lanes;
mod machine;
mod memory;
mod race;
mod undefined;
mod warp;

use code::Code;
pub use fault::{Actor, Fault, FaultKind, Origin, RunError};
use grid::{Launch, Random};
use machine::Machine;
use memory::{Kind, Layout};
pub use undefined::Why;

/// The order in which blocks and the warps of a block are scheduled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    #[default]
    InOrder,
    Reversed,
    /// Pseudo-random by a seed, a new order at every scheduling round.
    Shuffled(u64),
}

/// Options of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    pub order: Order,
    /// The number of resident blocks of a kernel that waits for flags; others start when one of
    /// them has ended.
    pub resident: usize,
    /// The maximum number of statements that all warps of all launches execute.
    pub step_limit: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            order: Order::InOrder,
            resident: usize::MAX,
            step_limit: 1 << 34,
        }
    }
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The output buffers by name.
    pub outputs: Arrays,
    /// Counts of all launches.
    pub counts: Counts,
    /// Counts of each kernel of the program.
    pub kernels: Vec<Counts>,
}

/// Runs a program on inputs. `sizes`: one for each parameter, also for those that are fixed.
pub fn run_kernel_program(
    program: &Program,
    sizes: &[i128],
    inputs: &Arrays,
    options: &Options,
) -> Result<Outcome, RunError> {
    let wrong = program.verify();
    if !wrong.is_empty() {
        return Err(RunError::Invalid(wrong));
    }
    run_verified(program, sizes, inputs, options)
}

fn run_verified(
    program: &Program,
    sizes: &[i128],
    inputs: &Arrays,
    options: &Options,
) -> Result<Outcome, RunError> {
    check_params(&program.param_names(), &program.context, sizes, Span::NONE)?;
    for (size, given) in program.params.iter().zip(sizes) {
        if let Some(fixed) = size.fixed
            && fixed != *given
        {
            let name = &size.name;
            let message = format!("this program is for {name} = {fixed}, not {given}");
            return Err(Diagnostic::new(&run::CONTEXT_VIOLATED, Span::NONE, message).into());
        }
    }
    let globals = memory::bind(program, sizes, inputs)?;
    let mut kernels = Vec::new();
    for (n, kernel) in program.kernels.iter().enumerate() {
        let code = Code::compile(program, KernelId::from(n), sizes).map_err(|_| too_large())?;
        kernels.push((code, memory::shared_layouts(kernel, sizes)?));
    }
    let mut run = Run {
        sizes,
        options,
        machine: Machine::new(globals, kernels.len(), options),
        random: Random::of(options.order),
        kernels: &kernels,
        point: vec![0; program.host_vars.len()],
    };
    run.host(&program.body)
        .map_err(|error| raised(error, program, sizes))?;
    let Machine {
        globals, counts, ..
    } = run.machine;
    let mut outputs = Arrays::new();
    for store in globals.into_iter().filter(|s| s.kind == Kind::Output) {
        let name = store.layout.name.clone();
        match store.into_tensor() {
            Ok(tensor) => outputs.insert(name, tensor),
            Err(index) => {
                let output = name;
                return Err(RunError::Unwritten { output, index });
            }
        };
    }
    let mut total = Counts::default();
    for kernel in &counts {
        total += kernel;
    }
    Ok(Outcome {
        outputs,
        counts: total,
        kernels: counts,
    })
}

/// A fault of an equation is not an error of the kernel.
fn raised(error: RunError, program: &Program, sizes: &[i128]) -> RunError {
    let found = match error.fault() {
        Some(FaultKind::Raised { site, point }) => {
            RaisedFault::at(program, *site, point.clone(), sizes)
        }
        _ => None,
    };
    found.map_or(error, |raised| RunError::Raised(Box::new(raised)))
}

fn too_large() -> RunError {
    crate::params::overflow(Span::NONE).into()
}

struct Run<'r> {
    sizes: &'r [i128],
    options: &'r Options,
    machine: Machine,
    random: Random,
    kernels: &'r [(Code<'r>, Vec<Layout>)],
    /// The host's variables.
    point: Vec<i64>,
}

impl Run<'_> {
    fn host(&mut self, body: &[Host]) -> Result<(), RunError> {
        for step in body {
            match step {
                Host::Launch { kernel, args } => {
                    let args = self.values(args)?;
                    let (code, shared) = &self.kernels[kernel.index()];
                    self.machine.kernel = kernel.index();
                    let mut launch = Launch {
                        machine: &mut self.machine,
                        code,
                        all: self.kernels,
                        shared,
                        order: self.options.order,
                        resident: self.options.resident,
                        random: &mut self.random,
                    };
                    launch.run(&args)?;
                }
                Host::For { var, lo, hi, body } => {
                    let (lo, hi) = (self.values(lo)?, self.values(hi)?);
                    let lo = lo.into_iter().max().unwrap_or(0);
                    let hi = hi.into_iter().min().unwrap_or(0);
                    for iteration in lo..hi {
                        self.point[var.index()] = iteration;
                        self.host(body)?;
                    }
                }
                Host::If {
                    cond,
                    then,
                    otherwise,
                } => {
                    let point: Vec<i128> = self.point.iter().map(|v| i128::from(*v)).collect();
                    let holds = cond.eval(self.sizes, &point).map_err(|_| too_large())?;
                    let side = if holds { then } else { otherwise };
                    self.host(side)?;
                }
            }
        }
        Ok(())
    }

    fn values(&self, forms: &[Form]) -> Result<Vec<i64>, RunError> {
        let value = |form: &Form| -> Result<i64, Overflow> {
            let linear = Linear::compile(form, self.sizes)?;
            linear.eval(&self.point).ok_or(Overflow)
        };
        let values: Result<_, Overflow> = forms.iter().map(value).collect();
        values.map_err(|_| too_large())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use systola_ir::kernel::{Kernel, Stmt, Var, VarKind};
    use systola_ir::{Cond, DimId, Rel};

    /// The verifier refuses barriers that some warps miss; a run would see them too.
    #[test]
    fn warps_that_miss_a_barrier_are_seen() {
        let warp = Var {
            name: "w".into(),
            kind: VarKind::Warp,
        };
        let iteration = Var {
            name: "t".into(),
            kind: VarKind::Loop,
        };
        let run = |body: Vec<Stmt>| {
            let kernel = Kernel {
                hints: Default::default(),
                name: "k".into(),
                lanes: 4,
                warps: 3,
                vars: vec![warp.clone(), iteration.clone()],
                shared: vec![],
                regs: vec![],
                values: vec![],
                body,
            };
            let program = Program {
                name: "p".into(),
                params: vec![],
                context: vec![],
                buffers: vec![],
                kernels: vec![kernel],
                host_vars: vec![],
                body: vec![Host::Launch {
                    kernel: KernelId(0),
                    args: vec![],
                }],
            };
            run_verified(&program, &[], &Arrays::new(), &Options::default())
        };
        let some = |then, otherwise| Stmt::If {
            cond: Cond::cmp(Rel::Lt, DimId(0), 2),
            then,
            otherwise,
        };
        let kind = |body| match run(body).map_err(|e| e.fault().cloned()) {
            Err(Some(FaultKind::DivergentBarrier { other, at })) => (other, at),
            other => panic!("{other:?}"),
        };
        run(vec![Stmt::Barrier, Stmt::Barrier]).unwrap();
        assert_eq!(kind(vec![some(vec![Stmt::Barrier], vec![])]), (2, None));
        let elsewhere = some(vec![Stmt::Barrier], vec![Stmt::Barrier]);
        assert_eq!(kind(vec![elsewhere]), (2, Some("barrier".into())));
        // The same barrier, but warp 1 reaches it in another iteration than warp 0.
        let iterations = Stmt::For {
            var: DimId(1),
            lo: vec![Form::from(DimId(0))],
            hi: vec![Form::from(5)],
            step: 1,
            body: vec![Stmt::Barrier],
        };
        assert_eq!(kind(vec![iterations]), (1, Some("barrier".into())));
    }
}
