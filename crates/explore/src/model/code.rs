//! A kernel at concrete sizes, as a tree whose leaves have costs.
//!
//! A statement either has the same cost at each execution, which is summed up at once, or its cost
//! depends on the addresses of an access.

use systola_interp::linear::{Linear, Test};
use systola_ir::form::Overflow;
use systola_ir::kernel::census::{Event, events};
use systola_ir::kernel::constant::constant_buffers;
use systola_ir::kernel::visit::walk;
use systola_ir::kernel::{self, Kernel, Memory, Op, Program, Stmt, VarKind};
use systola_ir::{BufferId, Cond, DimId, Form, KernelId, ValueId};

use super::count::bounds;
use super::price::Pricing;
use super::tally::{Quantity, Tally};

/// Lanes that are elements of vectors, or threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lanes {
    Vectors { bytes: u32 },
    Threads,
}

/// The axes of an array at concrete sizes.
#[derive(Clone, Debug)]
pub struct Layout {
    pub lo: Vec<i64>,
    pub extent: Vec<i64>,
    /// Of an element.
    pub bytes: u64,
    /// Do instructions prefetch it?
    pub is_prefetched: bool,
}

impl Layout {
    fn new(
        axes: impl Iterator<Item = Result<(i128, i128), Overflow>>,
        bits: u32,
    ) -> Result<Layout, Overflow> {
        let (mut lo, mut extent) = (Vec::new(), Vec::new());
        for axis in axes {
            let (from, to) = axis?;
            lo.push(i64::try_from(from).map_err(|_| Overflow)?);
            extent.push(i64::try_from((to - from).max(0)).map_err(|_| Overflow)?);
        }
        Ok(Layout {
            lo,
            extent,
            bytes: u64::from((bits / 8).max(1)),
            is_prefetched: false,
        })
    }

    /// Bytes of the whole array.
    pub fn total_bytes(&self) -> f64 {
        let elements: f64 = self.extent.iter().map(|e| *e as f64).product();
        elements * self.bytes as f64
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Load,
    Store,
}

/// An access at concrete sizes.
#[derive(Clone, Debug)]
pub struct Access {
    pub memory: Memory,
    pub direction: Direction,
    pub index: Vec<Linear>,
    /// The offset of the first element from the start of the array.
    pub position: Linear,
    /// The stride from lane to lane, if it is the same everywhere.
    pub step: Option<i64>,
    pub when: Test,
    /// Is the predicate the same in all lanes?
    pub when_is_uniform: bool,
    /// The number of consecutive elements.
    pub width: u64,
    /// Of an element.
    pub bytes: u64,
    /// Lanes that participate: all, or one for all.
    pub lanes: usize,
    /// The condition of the other end of a copy: lanes where it does not hold do nothing.
    pub also: Option<Test>,
    /// Does it read constant memory, as an operand of an instruction?
    pub is_constant: bool,
}

#[derive(Clone, Debug)]
pub enum Node {
    /// The same cost at each execution.
    Straight(Tally),
    /// Executed once per block, by its first warp.
    Once(Tally),
    /// The index of an access among those of the kernel.
    Access(usize),
    For {
        var: usize,
        lo: Vec<Linear>,
        hi: Vec<Linear>,
        step: i64,
        body: Vec<Node>,
        /// Does anything inside depend on the variable?
        matters: bool,
    },
    If {
        test: Test,
        then: Vec<Node>,
        otherwise: Vec<Node>,
    },
    /// Binds a variable to the dynamic id of the block.
    DynamicBlockId(DynamicBlockId),
}

/// A variable that holds the block's value of an atomic counter (`Stmt::DynamicBlock`).
#[derive(Clone, Debug)]
pub struct DynamicBlockId {
    pub var: usize,
    /// Block coordinates that select the counter.
    pub counter: Vec<usize>,
}

/// A coordinate of the grid.
#[derive(Clone, Debug)]
pub struct BlockRange {
    pub var: usize,
    pub lo: Vec<Linear>,
    pub hi: Vec<Linear>,
}

/// A kernel at concrete sizes.
#[derive(Debug)]
pub struct Code<'p> {
    pub kernel: &'p Kernel,
    pub lanes: Lanes,
    pub body: Vec<Node>,
    pub accesses: Vec<Access>,
    pub lane: Option<usize>,
    pub warp: Option<usize>,
    /// Does anything depend on the warp?
    pub warps_differ: bool,
    pub host: Vec<usize>,
    pub grid: Vec<BlockRange>,
    /// Of the program's buffers and of the kernel's own arrays.
    pub buffers: Vec<Layout>,
    pub shared: Vec<Layout>,
    /// The approximate number of instructions in the code of the kernel.
    pub text: f64,
}

fn linears(forms: &[Form], sizes: &[i128]) -> Result<Vec<Linear>, Overflow> {
    forms.iter().map(|f| Linear::compile(f, sizes)).collect()
}

impl<'p> Code<'p> {
    pub fn compile(
        program: &'p Program,
        id: KernelId,
        sizes: &[i128],
        lanes: Lanes,
    ) -> Result<Code<'p>, Overflow> {
        let kernel = &program.kernels[id.index()];
        let constants = match lanes {
            Lanes::Threads => constant_buffers(program),
            Lanes::Vectors { .. } => Vec::new(),
        };
        let buffers = program.buffers.iter().map(|buffer| {
            let axes = buffer.axes.iter();
            let ends = axes.map(|a| Ok((a.lo.eval(sizes, &[])?, a.hi.eval(sizes, &[])?)));
            Layout::new(ends, buffer.ty.bits())
        });
        let shared = kernel.shared.iter().map(|array| {
            let ends = array.extents.iter().map(|e| Ok((0, e.eval(sizes)?)));
            Layout::new(ends, array.ty.bits())
        });
        let mut buffers = buffers.collect::<Result<Vec<_>, _>>()?;
        walk(&kernel.body, &mut |stmt| {
            if let Stmt::Prefetch { at, .. } = stmt
                && let Some(buffer) = at.memory.buffer()
            {
                buffers[buffer.index()].is_prefetched = true;
            }
        });
        let mut compiler = Compiler {
            kernel,
            sizes,
            pricing: Pricing::new(kernel, lanes),
            constants: constants.into_iter().map(|(buffer, _)| buffer).collect(),
            buffers,
            shared: shared.collect::<Result<_, _>>()?,
            accesses: Vec::new(),
        };
        let body = compiler.body(&kernel.body)?;
        let mut grid = Vec::new();
        for (var, declared) in kernel.vars.iter().enumerate() {
            if let VarKind::Block { lo, hi } = &declared.kind {
                grid.push(BlockRange {
                    var,
                    lo: linears(lo, sizes)?,
                    hi: linears(hi, sizes)?,
                });
            }
        }
        let vars = |is: fn(&VarKind) -> bool| kernel.vars_where(is).map(DimId::index);
        let warp = vars(|k| matches!(k, VarKind::Warp)).next();
        Ok(Code {
            text: text_of(&body, &compiler.accesses),
            kernel,
            lanes,
            warps_differ: warp.is_some_and(|warp| mentions(&kernel.body, DimId::from(warp))),
            body,
            accesses: compiler.accesses,
            lane: vars(|k| matches!(k, VarKind::Lane)).next(),
            warp,
            host: vars(|k| matches!(k, VarKind::Host)).collect(),
            grid,
            buffers: compiler.buffers,
            shared: compiler.shared,
        })
    }

    pub fn layout(&self, memory: Memory) -> &Layout {
        match memory {
            Memory::Global(id) => &self.buffers[id.index()],
            Memory::Shared(id) => &self.shared[id.index()],
        }
    }
}

fn mentions(body: &[Stmt], var: DimId) -> bool {
    let mut found = false;
    walk(body, &mut |stmt| {
        found |= stmt.forms().iter().any(|form| form.dims().contains(&var));
    });
    found
}

/// Static number of instructions of the statements.
fn text_of(body: &[Node], accesses: &[Access]) -> f64 {
    let of = |node: &Node| match node {
        Node::Straight(tally) | Node::Once(tally) => {
            let kinds = [
                Quantity::FloatOps,
                Quantity::DoubleOps,
                Quantity::IntOps,
                Quantity::IntProducts,
                Quantity::Choices,
                Quantity::Moves,
                Quantity::UniformOps,
                Quantity::Masks,
            ];
            let plain: f64 = kinds.iter().map(|q| tally[*q]).sum();
            let plain = plain + tally[Event::Barriers];
            // Divisions and calls are several instructions each.
            plain + 8.0 * tally[Quantity::Divides] + 10.0 * tally[Quantity::Calls]
        }
        Node::Access(n) => f64::from(u8::from(!accesses[*n].is_constant)),
        Node::For { body, .. } => 3.0 + text_of(body, accesses),
        Node::If {
            then, otherwise, ..
        } => 2.0 + text_of(then, accesses) + text_of(otherwise, accesses),
        Node::DynamicBlockId(_) => 4.0,
    };
    body.iter().map(of).sum()
}

impl Code<'_> {
    /// Static number of instructions that a block with the given index variables executes; a loop
    /// body counts once.
    pub fn executed_text(&self, mut point: Vec<i64>) -> Result<f64, Overflow> {
        self.executed(&self.body, &mut point)
    }

    fn executed(&self, body: &[Node], point: &mut Vec<i64>) -> Result<f64, Overflow> {
        let mut text = 0.0;
        for node in body {
            text += match node {
                Node::For {
                    var, lo, hi, body, ..
                } => {
                    let (lo, hi) = bounds(lo, hi, point)?;
                    point[*var] = lo + hi.saturating_sub(lo).max(0) / 2;
                    3.0 + self.executed(body, point)?
                }
                Node::If {
                    test,
                    then,
                    otherwise,
                } => {
                    let holds = test.eval(point).ok_or(Overflow)?;
                    2.0 + self.executed(if holds { then } else { otherwise }, point)?
                }
                Node::Straight(_) | Node::Once(_) | Node::Access(_) | Node::DynamicBlockId(_) => {
                    text_of(std::slice::from_ref(node), &self.accesses)
                }
            };
        }
        Ok(text)
    }
}

struct Compiler<'p, 's> {
    kernel: &'p Kernel,
    sizes: &'s [i128],
    pricing: Pricing<'p>,
    constants: Vec<BufferId>,
    buffers: Vec<Layout>,
    shared: Vec<Layout>,
    accesses: Vec<Access>,
}

impl Compiler<'_, '_> {
    fn body(&mut self, body: &[Stmt]) -> Result<Vec<Node>, Overflow> {
        let mut nodes = Vec::new();
        for stmt in body {
            self.stmt(stmt, &mut nodes)?;
        }
        Ok(nodes)
    }

    fn stmt(&mut self, stmt: &Stmt, nodes: &mut Vec<Node>) -> Result<(), Overflow> {
        let events = events(stmt, &self.pricing.fused);
        let counted = Tally::of_events(events);
        match stmt {
            _ if events.is_empty() => {}
            Stmt::Signal { .. } | Stmt::DynamicBlock { .. } => nodes.push(Node::Once(counted)),
            _ => straight(nodes, &counted),
        }
        match stmt {
            Stmt::Let(value, op) => {
                straight(nodes, &self.pricing.op(*value, op));
                if let Op::Load { from, .. } = op {
                    let lanes = self.kernel.loading_lanes(&[*value]);
                    self.access(nodes, from, Direction::Load, 1, lanes, None)?;
                }
            }
            Stmt::Set(..)
            | Stmt::Prefetch { .. }
            | Stmt::CommitCopies
            | Stmt::SyncWarp
            | Stmt::WaitCopies { .. }
            | Stmt::Barrier
            | Stmt::Signal { .. }
            | Stmt::Await { .. }
            | Stmt::LookBack(_)
            | Stmt::Comment(_) => {}
            Stmt::LoadWide { to, from, .. } => {
                let lanes = self.kernel.loading_lanes(to);
                self.access(nodes, from, Direction::Load, to.len(), lanes, None)?;
            }
            Stmt::Store { to, value } => self.store(nodes, to, &[*value])?,
            Stmt::StoreWide { to, values } => self.store(nodes, to, values)?,
            Stmt::Copy {
                to, from, width, ..
            } => {
                let lanes = self.kernel.copying_lanes(to, from);
                let width = *width as usize;
                let (there, here) = (Some(&to.when), Some(&from.when));
                self.access(nodes, from, Direction::Load, width, lanes, there)?;
                self.access(nodes, to, Direction::Store, width, lanes, here)?;
            }
            Stmt::For {
                var,
                lo,
                hi,
                step,
                body,
            } => nodes.push(Node::For {
                var: var.index(),
                lo: linears(lo, self.sizes)?,
                hi: linears(hi, self.sizes)?,
                step: i64::try_from(*step).map_err(|_| Overflow)?,
                body: self.body(body)?,
                matters: mentions(body, *var),
            }),
            Stmt::If {
                cond,
                then,
                otherwise,
            } => nodes.push(Node::If {
                test: Test::compile(cond, self.sizes)?,
                then: self.body(then)?,
                otherwise: self.body(otherwise)?,
            }),
            Stmt::Fault { .. } => straight(nodes, &Tally::of(&[(Quantity::Choices, 1.0)])),
            Stmt::DynamicBlock { var, counter } => {
                let dims = counter.index.iter().flat_map(Form::dims);
                nodes.push(Node::DynamicBlockId(DynamicBlockId {
                    var: var.index(),
                    counter: dims.map(DimId::index).collect(),
                }));
            }
        }
        Ok(())
    }

    fn store(
        &mut self,
        nodes: &mut Vec<Node>,
        to: &kernel::Access,
        values: &[ValueId],
    ) -> Result<(), Overflow> {
        let lanes = self.kernel.storing_lanes(to, values);
        self.access(nodes, to, Direction::Store, values.len(), lanes, None)
    }

    fn access(
        &mut self,
        nodes: &mut Vec<Node>,
        access: &kernel::Access,
        direction: Direction,
        width: usize,
        lanes: usize,
        also: Option<&Cond>,
    ) -> Result<(), Overflow> {
        let layout = match access.memory {
            Memory::Global(id) => &self.buffers[id.index()],
            Memory::Shared(id) => &self.shared[id.index()],
        };
        let mut position = Form::zero();
        for ((form, lo), extent) in access.index.iter().zip(&layout.lo).zip(&layout.extent) {
            let offset = form.plus(-i128::from(*lo));
            let row = position.scale(&systola_ir::Poly::constant(i128::from(*extent)))?;
            position = row.add(&offset);
        }
        let step = match self.kernel.lane() {
            None => Some(0),
            Some(lane) if position.has_digit_of(lane) => None,
            Some(lane) => Some(
                i64::try_from(position.coefficient(lane).eval(self.sizes)?)
                    .map_err(|_| Overflow)?,
            ),
        };
        let is_true = |cond: &Cond| *cond == Cond::TRUE;
        straight(nodes, &self.pricing.mask(&access.when));
        let is_constant = match access.memory {
            Memory::Global(id) => self.constants.contains(&id),
            Memory::Shared(_) => false,
        };
        nodes.push(Node::Access(self.accesses.len()));
        self.accesses.push(Access {
            memory: access.memory,
            direction,
            index: linears(&access.index, self.sizes)?,
            position: Linear::compile(&position, self.sizes)?,
            step,
            when: Test::compile(&access.when, self.sizes)?,
            when_is_uniform: self.kernel.cond_is_uniform(&access.when)
                && also.is_none_or(|cond| self.kernel.cond_is_uniform(cond)),
            width: width as u64,
            bytes: layout.bytes,
            lanes,
            also: match also.filter(|cond| !is_true(cond)) {
                Some(cond) => Some(Test::compile(cond, self.sizes)?),
                None => None,
            },
            is_constant,
        });
        Ok(())
    }
}

/// Adds to the constant cost of the nodes, which is the first of them.
fn straight(nodes: &mut Vec<Node>, tally: &Tally) {
    if let Some(Node::Straight(sum)) = nodes.first_mut() {
        sum.add(tally, 1.0);
    } else {
        nodes.insert(0, Node::Straight(tally.clone()));
    }
}
