//! The critical path of a block: the time of its operations if each waits only for its operands.
//! The statements are walked in order, with the time at which each value is ready. An out-of-order
//! CPU begins an operation when its operands are ready. A warp issues its instructions in order,
//! one per cycle, and stalls if an operand is not ready. Of a loop, `ITERATIONS` iterations are
//! walked, and the time of the last one is used for all others.

use systola_interp::linear::{Linear, Test};
use systola_ir::form::Overflow;
use systola_ir::kernel::{Kernel, Memory, Op, Shape, Stmt};
use systola_ir::{BinOp, BufferId, Form, Scalar, UnOp, ValueId};

/// Cycles until a result can be used.
#[derive(Clone, Copy, Debug)]
pub struct Latencies {
    pub sum: f64,
    pub choice: f64,
    pub moved: f64,
    pub global: f64,
    pub shared: f64,
    pub divide: f64,
    pub call: f64,
    pub barrier: f64,
    pub flag: f64,
}

/// The order in which operations begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// As soon as the operands are ready.
    WhenReady,
    /// In program order.
    InOrder,
}

/// The minimum cycles of one warp of one block. `point`: the index variables of that block.
pub fn cycles(
    kernel: &Kernel,
    sizes: &[i128],
    point: Vec<i64>,
    constants: &[BufferId],
    latencies: &Latencies,
    start: Start,
) -> Result<f64, Overflow> {
    let mut walk = Walk {
        kernel,
        sizes,
        point,
        constants,
        latencies,
        start,
        clock: 0.0,
        last: 0.0,
        values: vec![0.0; kernel.values.len()],
        regs: vec![0.0; kernel.regs.len()],
    };
    walk.list(&kernel.body)?;
    Ok(walk.last.max(walk.clock))
}

/// Iterations of a loop that are walked.
const ITERATIONS: i64 = 3;

struct Walk<'k> {
    kernel: &'k Kernel,
    sizes: &'k [i128],
    point: Vec<i64>,
    constants: &'k [BufferId],
    latencies: &'k Latencies,
    start: Start,
    /// When the next instruction can begin, in program order.
    clock: f64,
    /// When the last result is ready.
    last: f64,
    values: Vec<f64>,
    regs: Vec<f64>,
}

impl Walk<'_> {
    fn list(&mut self, list: &[Stmt]) -> Result<(), Overflow> {
        list.iter().try_for_each(|stmt| self.stmt(stmt))
    }

    fn extreme(&self, forms: &[Form], largest: bool) -> Result<i64, Overflow> {
        let mut found: Option<i64> = None;
        for form in forms {
            let linear = Linear::compile(form, self.sizes)?;
            let value = linear.eval(&self.point).ok_or(Overflow)?;
            found = Some(match found {
                None => value,
                Some(other) if largest => other.max(value),
                Some(other) => other.min(value),
            });
        }
        Ok(found.unwrap_or(0))
    }

    /// Issues an instruction whose result is ready after `latency` cycles.
    fn begin(&mut self, operands: f64, latency: f64) -> f64 {
        let start = match self.start {
            Start::WhenReady => operands,
            Start::InOrder => {
                let start = self.clock.max(operands);
                self.clock = start + 1.0;
                start
            }
        };
        self.last = self.last.max(start + latency);
        start + latency
    }

    fn operands(&self, values: &[ValueId]) -> f64 {
        let times = values.iter().map(|v| self.values[v.index()]);
        times.fold(0.0, f64::max)
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<(), Overflow> {
        affine::cancel::check();
        match stmt {
            Stmt::Let(value, op) => {
                let time = self.op(*value, op);
                self.values[value.index()] = time;
            }
            Stmt::Set(reg, value) => self.regs[reg.index()] = self.values[value.index()],
            Stmt::LoadWide { to, from, .. } => {
                let time = self.load(from.memory);
                for value in to {
                    self.values[value.index()] = time;
                }
            }
            Stmt::Store { value, .. } => {
                self.begin(self.values[value.index()], 1.0);
            }
            Stmt::StoreWide { values, .. } => {
                self.begin(self.operands(values), 1.0);
            }
            Stmt::Copy { .. } => {
                self.begin(0.0, self.latencies.global);
            }
            Stmt::WaitCopies { .. } | Stmt::Barrier => {
                let wait = match stmt {
                    Stmt::Barrier => self.latencies.barrier,
                    _ => 1.0,
                };
                self.begin(0.0, wait);
                self.clock += wait;
            }
            Stmt::Signal { .. } => {
                self.begin(0.0, 1.0);
            }
            Stmt::Fault { bad, .. } => {
                self.begin(self.values[bad.index()], 1.0);
            }
            Stmt::Await { .. } | Stmt::DynamicBlock { .. } | Stmt::LookBack(_) => {
                self.begin(0.0, self.latencies.flag);
                self.clock += self.latencies.flag;
            }
            Stmt::Prefetch { .. } | Stmt::CommitCopies | Stmt::SyncWarp | Stmt::Comment(_) => {}
            Stmt::If {
                cond,
                then,
                otherwise,
            } => {
                let test = Test::compile(cond, self.sizes)?;
                let holds = test.eval(&self.point).ok_or(Overflow)?;
                self.list(if holds { then } else { otherwise })?;
            }
            Stmt::For {
                var,
                lo,
                hi,
                step,
                body,
            } => {
                let lo = self.extreme(lo, true)?;
                let hi = self.extreme(hi, false)?;
                let step = i64::try_from(*step).map_err(|_| Overflow)?;
                let n = super::count::trip_count(lo, hi, step);
                self.iterations(n, |walk, iteration| {
                    walk.point[var.index()] = lo + iteration * step;
                    walk.list(body)
                })?;
            }
        }
        Ok(())
    }

    fn iterations(
        &mut self,
        n: i64,
        mut iteration: impl FnMut(&mut Self, i64) -> Result<(), Overflow>,
    ) -> Result<(), Overflow> {
        // The iterations in the middle of a long loop.
        let first = if n > 2 * ITERATIONS { n / 2 } else { 0 };
        let walked = n.min(ITERATIONS);
        let mut before = (self.clock, self.last, self.regs.clone());
        for k in 0..walked {
            if k + 1 == walked {
                before = (self.clock, self.last, self.regs.clone());
            }
            iteration(self, first + k)?;
        }
        let rest = (n - walked).max(0) as f64;
        if rest > 0.0 {
            let (clock, last, regs) = before;
            self.clock += (self.clock - clock).max(0.0) * rest;
            for (reg, before) in self.regs.iter_mut().zip(regs) {
                *reg += (*reg - before).max(0.0) * rest;
            }
            self.last += (self.last - last).max(0.0) * rest;
        }
        Ok(())
    }

    fn load(&mut self, memory: Memory) -> f64 {
        match memory {
            Memory::Global(id) if self.constants.contains(&id) => 0.0,
            Memory::Global(_) => self.begin(0.0, self.latencies.global),
            Memory::Shared(_) => self.begin(0.0, self.latencies.shared),
        }
    }

    fn op(&mut self, to: ValueId, op: &Op) -> f64 {
        let operands = self.operands(&op.values());
        let value = &self.kernel.values[to.index()];
        let latencies = *self.latencies;
        let latency = match op {
            Op::Lit(_) => return 0.0,
            Op::Get(reg) => return self.regs[reg.index()],
            Op::Load { from, .. } => return self.load(from.memory),
            Op::Lookup {
                memory: Memory::Shared(_),
                ..
            } => latencies.shared,
            Op::Lookup {
                memory: Memory::Global(_),
                ..
            } => latencies.global,
            // Fused with the following sum, or as long as a sum.
            Op::Binary(BinOp::Mul, ..) if value.ty.is_float() => return operands,
            Op::Index(_) if value.shape == Shape::Uniform => return operands,
            Op::Index(_) | Op::Select { .. } | Op::Choose { .. } => latencies.choice,
            Op::Cast(_) => latencies.sum,
            Op::Unary(op, _) => match op {
                UnOp::Neg | UnOp::Not | UnOp::Abs | UnOp::Floor | UnOp::Ceil => latencies.choice,
                UnOp::Sqrt => latencies.divide,
                UnOp::Rsqrt => 2.0 * latencies.divide,
                UnOp::Exp | UnOp::Log | UnOp::Sin | UnOp::Cos | UnOp::Tanh => {
                    3.0 * latencies.divide
                }
            },
            Op::Binary(op, a, _) => self.binary(*op, self.kernel.values[a.index()].ty),
            Op::Shuffle { .. } | Op::LaneShift { .. } => latencies.moved,
        };
        self.begin(operands, latency)
    }

    fn binary(&self, op: BinOp, ty: Scalar) -> f64 {
        match op {
            BinOp::Mul if ty.is_int() => 2.0 * self.latencies.sum,
            BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::Min | BinOp::Max if ty.is_float() => {
                self.latencies.sum
            }
            BinOp::Div if ty.is_float() => self.latencies.divide,
            BinOp::Div | BinOp::Rem | BinOp::Pow => self.latencies.call,
            BinOp::Add
            | BinOp::Sub
            | BinOp::Mul
            | BinOp::Min
            | BinOp::Max
            | BinOp::Eq
            | BinOp::Ne
            | BinOp::Lt
            | BinOp::Le
            | BinOp::Gt
            | BinOp::Ge
            | BinOp::And
            | BinOp::Or
            | BinOp::BitAnd
            | BinOp::BitOr
            | BinOp::BitXor
            | BinOp::Shl
            | BinOp::Shr => self.latencies.choice,
        }
    }
}
