//! Kernels at concrete sizes, as a list of instructions with jumps, so that a warp can stop
//! anywhere and resume later.

use systola_ir::form::Overflow;
use systola_ir::kernel::census::{Event, events, fusible};
use systola_ir::kernel::print::KernelText;
use systola_ir::kernel::visit::walk;
use systola_ir::kernel::{
    Access, BlockChain, Joins, Kernel, LookBack, Memory, Op, Program, Shape, Stmt, VarKind,
};
use systola_ir::{BinOp, Cond, DimId, Form, KernelId, Literal, RegId, Scalar, UnOp, ValueId};

use crate::linear::{Linear, Test};
use crate::value::{Value, literal};

use super::lanes::{LaneForm, LaneTest};

/// The location of a value or register: one cell for each lane, or one for all.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    base: usize,
    step: usize,
}

impl Slot {
    #[inline]
    pub fn at(self, lane: usize) -> usize {
        self.base + self.step * lane
    }

    pub fn is_uniform(self) -> bool {
        self.step == 0
    }

    /// The number of its cells in a warp.
    pub fn n_cells(self, lanes: usize) -> usize {
        if self.is_uniform() { 1 } else { lanes }
    }
}

pub(super) struct AccessCode {
    pub memory: Memory,
    pub index: Vec<LaneForm>,
    pub when: LaneTest,
    /// The lanes that participate: all, or one for all.
    pub lanes: usize,
}

pub(super) struct FaultCode {
    pub site: usize,
    pub bad: Slot,
    pub when: LaneTest,
    pub point: Vec<LaneForm>,
}

pub(super) struct ChainCode {
    pub buffer: usize,
    pub at: AccessCode,
    pub terms: Vec<Slot>,
    pub before: Vec<Slot>,
}

pub(super) struct LookBackCode {
    pub chains: Vec<ChainCode>,
    pub axis: usize,
    pub up: bool,
    pub earlier: Vec<Slot>,
    pub later: Vec<Slot>,
    pub body: Vec<(Slot, Compute)>,
    pub joined: Vec<Slot>,
}

pub(super) enum Compute {
    Lit(Value),
    Index(LaneForm),
    Get(Slot),
    Unary(UnOp, Slot),
    Binary(BinOp, Slot, Slot),
    Cast(Scalar, Slot),
    Select(Slot, Slot, Slot),
    Choose(LaneTest, Slot, Slot),
    Load(AccessCode, Option<Value>),
    Lookup(Memory, Vec<Slot>),
    Shuffle(Slot, LaneForm),
    LaneShift {
        low: Option<Slot>,
        high: Option<Slot>,
        by: usize,
    },
}

pub(super) enum Instr {
    Let(Slot, Compute),
    Set(Slot, Slot),
    LoadWide(Vec<Slot>, AccessCode, Option<Value>),
    Store(AccessCode, Vec<Slot>),
    Copy {
        to: AccessCode,
        from: AccessCode,
        width: usize,
    },
    CommitCopies,
    WaitCopies(usize),
    /// Binds the variable, or leaves the loop if it has no iteration.
    Enter {
        var: usize,
        lo: Vec<Linear>,
        hi: Vec<Linear>,
        /// The step, if the iterations run from the last one to the first.
        backwards: Option<i64>,
        end: usize,
    },
    /// The next iteration, if there is one.
    Repeat {
        var: usize,
        step: i64,
        body: usize,
    },
    /// Jumps if the test does not hold.
    Unless(Test, usize),
    Jump(usize),
    Barrier,
    Signal(AccessCode),
    Await(AccessCode, Linear),
    DynamicBlockId(usize, AccessCode),
    LookBack(Box<LookBackCode>),
    Fault(FaultCode),
    End,
}

/// A coordinate of the grid.
pub(super) struct BlockRange {
    pub var: usize,
    pub lo: Vec<Linear>,
    pub hi: Vec<Linear>,
}

pub(super) struct Code<'a> {
    pub program: &'a Program,
    pub id: KernelId,
    pub kernel: &'a Kernel,
    pub instrs: Vec<Instr>,
    /// The statement of each instruction.
    pub stmts: Vec<Option<&'a Stmt>>,
    /// What each instruction counts as.
    pub events: Vec<&'static [Event]>,
    /// For each instruction, the variables of the enclosing loops.
    pub loops: Vec<Vec<usize>>,
    pub n_cells: usize,
    pub lanes: usize,
    pub lane_var: Option<usize>,
    pub warp_var: Option<usize>,
    pub host_vars: Vec<usize>,
    pub grid: Vec<BlockRange>,
    /// Do blocks wait for each other?
    pub awaits: bool,
}

impl<'a> Code<'a> {
    pub fn compile(
        program: &'a Program,
        id: KernelId,
        params: &[i128],
    ) -> Result<Code<'a>, Overflow> {
        let kernel = &program.kernels[id.index()];
        let lanes = kernel.lanes as usize;
        let mut n_cells = 0;
        let mut slot = |shape: Shape| {
            let (base, step) = (n_cells, usize::from(shape == Shape::Varying));
            n_cells += if step == 0 { 1 } else { lanes };
            Slot { base, step }
        };
        let values = kernel.values.iter().map(|v| slot(v.shape)).collect();
        let regs = kernel.regs.iter().map(|r| slot(r.shape)).collect();
        let mut awaits = false;
        walk(&kernel.body, &mut |stmt| {
            awaits |= matches!(stmt, Stmt::Await { .. } | Stmt::LookBack(_));
        });
        let mut compiler = Compiler {
            program,
            kernel,
            params,
            lane: kernel.lane(),
            values,
            regs,
            fusible: fusible(kernel),
            open: Vec::new(),
            instrs: Vec::new(),
            stmts: Vec::new(),
            events: Vec::new(),
            loops: Vec::new(),
        };
        compiler.body(&kernel.body)?;
        compiler.push(Instr::End, None);
        let mut grid = Vec::new();
        for (var, declared) in kernel.vars.iter().enumerate() {
            if let VarKind::Block { lo, hi } = &declared.kind {
                grid.push(BlockRange {
                    var,
                    lo: linears(lo, params)?,
                    hi: linears(hi, params)?,
                });
            }
        }
        let vars = |is: fn(&VarKind) -> bool| kernel.vars_where(is).map(DimId::index);
        Ok(Code {
            program,
            id,
            kernel,
            instrs: compiler.instrs,
            stmts: compiler.stmts,
            events: compiler.events,
            loops: compiler.loops,
            n_cells,
            lanes,
            lane_var: vars(|k| matches!(k, VarKind::Lane)).next(),
            warp_var: vars(|k| matches!(k, VarKind::Warp)).next(),
            host_vars: vars(|k| matches!(k, VarKind::Host)).collect(),
            grid,
            awaits,
        })
    }
}

impl Code<'_> {
    /// The statement of an instruction, printed.
    pub fn show(&self, pc: usize) -> String {
        let text = KernelText::new(self.program, self.id);
        match (text, self.stmts[pc]) {
            (Some(text), Some(stmt)) => text.stmt(stmt),
            (_, None) | (None, _) => "the end of the kernel".to_string(),
        }
    }
}

fn linears(forms: &[Form], params: &[i128]) -> Result<Vec<Linear>, Overflow> {
    forms.iter().map(|f| Linear::compile(f, params)).collect()
}

struct Compiler<'a, 'p> {
    program: &'a Program,
    kernel: &'a Kernel,
    params: &'p [i128],
    lane: Option<DimId>,
    values: Vec<Slot>,
    regs: Vec<Slot>,
    fusible: Vec<bool>,
    /// The variables of the enclosing loops.
    open: Vec<usize>,
    instrs: Vec<Instr>,
    stmts: Vec<Option<&'a Stmt>>,
    events: Vec<&'static [Event]>,
    loops: Vec<Vec<usize>>,
}

impl<'a> Compiler<'a, '_> {
    fn push(&mut self, instr: Instr, stmt: Option<&'a Stmt>) -> usize {
        self.instrs.push(instr);
        self.stmts.push(stmt);
        self.events
            .push(stmt.map_or(&[], |stmt| events(stmt, &self.fusible)));
        self.loops.push(self.open.clone());
        self.instrs.len() - 1
    }

    fn body(&mut self, body: &'a [Stmt]) -> Result<(), Overflow> {
        body.iter().try_for_each(|stmt| self.stmt(stmt))
    }

    fn stmt(&mut self, stmt: &'a Stmt) -> Result<(), Overflow> {
        let instr = match stmt {
            Stmt::Let(value, op) => {
                let compute = self.op(*value, op)?;
                Instr::Let(self.value(*value), compute)
            }
            Stmt::Set(reg, value) => Instr::Set(self.reg(*reg), self.value(*value)),
            Stmt::LoadWide {
                to,
                from,
                otherwise,
            } => {
                let otherwise = otherwise.map(|value| literal(self.element(from.memory), value));
                let lanes = self.kernel.loading_lanes(to);
                Instr::LoadWide(self.all(to), self.access(from, lanes)?, otherwise)
            }
            Stmt::Store { to, value } => self.store(to, &[*value])?,
            Stmt::StoreWide { to, values } => self.store(to, values)?,
            Stmt::Copy {
                to,
                from,
                width,
                engine: _,
            } => {
                let lanes = self.kernel.copying_lanes(to, from);
                Instr::Copy {
                    to: self.access(to, lanes)?,
                    from: self.access(from, lanes)?,
                    width: *width as usize,
                }
            }
            Stmt::CommitCopies => Instr::CommitCopies,
            Stmt::WaitCopies { pending } => Instr::WaitCopies(*pending as usize),
            Stmt::For {
                var,
                lo,
                hi,
                step,
                body,
            } => {
                let var = var.index();
                let independent = self.kernel.hints.independent.contains(&DimId::from(var));
                let step = i64::try_from(*step).map_err(|_| Overflow)?;
                let enter = Instr::Enter {
                    var,
                    lo: linears(lo, self.params)?,
                    hi: linears(hi, self.params)?,
                    backwards: independent.then_some(step),
                    end: 0,
                };
                let at = self.push(enter, Some(stmt));
                self.open.push(var);
                self.body(body)?;
                self.open.pop();
                let repeat = Instr::Repeat {
                    var,
                    step: if independent { -step } else { step },
                    body: at + 1,
                };
                let after = self.push(repeat, Some(stmt)) + 1;
                if let Instr::Enter { end, .. } = &mut self.instrs[at] {
                    *end = after;
                }
                return Ok(());
            }
            Stmt::If {
                cond,
                then,
                otherwise,
            } => {
                let test = Test::compile(cond, self.params)?;
                let at = self.push(Instr::Unless(test, 0), Some(stmt));
                self.body(then)?;
                let skip = match otherwise.is_empty() {
                    true => None,
                    false => Some(self.push(Instr::Jump(0), Some(stmt))),
                };
                let middle = self.instrs.len();
                self.body(otherwise)?;
                let after = self.instrs.len();
                if let Instr::Unless(_, to) = &mut self.instrs[at] {
                    *to = middle;
                }
                if let Some(skip) = skip {
                    self.instrs[skip] = Instr::Jump(after);
                }
                return Ok(());
            }
            Stmt::Barrier => Instr::Barrier,
            Stmt::Signal { flag } => Instr::Signal(self.access(flag, 1)?),
            Stmt::Await { flag, at_least } => {
                let at_least = Linear::compile(at_least, self.params)?;
                Instr::Await(self.access(flag, 1)?, at_least)
            }
            Stmt::DynamicBlock { var, counter } => {
                Instr::DynamicBlockId(var.index(), self.access(counter, 1)?)
            }
            Stmt::LookBack(look) => Instr::LookBack(Box::new(self.look_back(look)?)),
            Stmt::Fault {
                faults: _,
                site,
                bad,
                when,
                point,
            } => {
                let point = point.iter().map(|form| self.form(form));
                Instr::Fault(FaultCode {
                    site: *site,
                    bad: self.value(*bad),
                    when: self.test(when)?,
                    point: point.collect::<Result<_, _>>()?,
                })
            }
            // Lanes run in lockstep anyway.
            Stmt::Prefetch { .. } | Stmt::SyncWarp | Stmt::Comment(_) => return Ok(()),
        };
        self.push(instr, Some(stmt));
        Ok(())
    }

    fn look_back(&self, look: &LookBack) -> Result<LookBackCode, Overflow> {
        let Joins {
            earlier,
            later,
            body,
            joined,
        } = &look.joins;
        let chain = |chain: &BlockChain| {
            let at = &chain.at;
            let uniform = at.forms().iter().all(|form| self.kernel.is_uniform(form));
            Ok(ChainCode {
                buffer: at.memory.buffer().map_or(0, |b| b.index()),
                at: self.access(
                    at,
                    if uniform {
                        1
                    } else {
                        self.kernel.lanes as usize
                    },
                )?,
                terms: self.all(&chain.terms),
                before: self.all(&chain.before),
            })
        };
        let chains = look.chains.iter().map(chain);
        let mut computed = Vec::new();
        for stmt in body {
            if let Stmt::Let(value, op) = stmt {
                computed.push((self.value(*value), self.op(*value, op)?));
            }
        }
        Ok(LookBackCode {
            chains: chains.collect::<Result<_, _>>()?,
            axis: look.axis,
            up: look.up,
            earlier: self.all(earlier),
            later: self.all(later),
            body: computed,
            joined: self.all(joined),
        })
    }

    fn value(&self, value: ValueId) -> Slot {
        self.values[value.index()]
    }

    fn reg(&self, reg: RegId) -> Slot {
        self.regs[reg.index()]
    }

    fn all(&self, values: &[ValueId]) -> Vec<Slot> {
        values.iter().map(|v| self.value(*v)).collect()
    }

    fn element(&self, memory: Memory) -> Scalar {
        match memory {
            Memory::Global(id) => self.program.buffers[id.index()].ty,
            Memory::Shared(id) => self.kernel.shared[id.index()].ty,
        }
    }

    fn form(&self, form: &Form) -> Result<LaneForm, Overflow> {
        LaneForm::compile(form, self.lane, self.params)
    }

    fn test(&self, cond: &Cond) -> Result<LaneTest, Overflow> {
        LaneTest::compile(cond, self.kernel, self.params)
    }

    fn store(&self, to: &Access, values: &[ValueId]) -> Result<Instr, Overflow> {
        let lanes = self.kernel.storing_lanes(to, values);
        Ok(Instr::Store(self.access(to, lanes)?, self.all(values)))
    }

    fn access(&self, access: &Access, lanes: usize) -> Result<AccessCode, Overflow> {
        let forms = access.index.iter().map(|form| self.form(form));
        Ok(AccessCode {
            memory: access.memory,
            index: forms.collect::<Result<_, _>>()?,
            when: self.test(&access.when)?,
            lanes,
        })
    }

    fn op(&self, to: ValueId, op: &Op) -> Result<Compute, Overflow> {
        let ty = self.kernel.values[to.index()].ty;
        let lit = |ty: Scalar, value: &Literal| literal(ty, *value);
        Ok(match op {
            Op::Lit(value) => Compute::Lit(lit(ty, value)),
            Op::Index(form) => Compute::Index(self.form(form)?),
            Op::Get(reg) => Compute::Get(self.reg(*reg)),
            Op::Unary(op, a) => Compute::Unary(*op, self.value(*a)),
            Op::Binary(op, a, b) => Compute::Binary(*op, self.value(*a), self.value(*b)),
            Op::Cast(a) => Compute::Cast(ty, self.value(*a)),
            Op::Select {
                cond,
                then,
                otherwise,
            } => Compute::Select(self.value(*cond), self.value(*then), self.value(*otherwise)),
            Op::Choose {
                cond,
                then,
                otherwise,
            } => Compute::Choose(self.test(cond)?, self.value(*then), self.value(*otherwise)),
            Op::Load { from, otherwise } => {
                let otherwise = otherwise.as_ref().map(|value| lit(ty, value));
                Compute::Load(
                    self.access(from, self.kernel.loading_lanes(&[to]))?,
                    otherwise,
                )
            }
            Op::Lookup { memory, index } => Compute::Lookup(*memory, self.all(index)),
            Op::Shuffle { value, from } => Compute::Shuffle(self.value(*value), self.form(from)?),
            Op::LaneShift { low, high, by } => Compute::LaneShift {
                low: low.map(|v| self.value(v)),
                high: high.map(|v| self.value(v)),
                by: *by as usize,
            },
        })
    }
}
