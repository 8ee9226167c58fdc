//! Kernels: what a machine with lanes runs, independent of the target's syntax.
//!
//! A [`Program`] is what the host does: it fills buffers, runs loops and launches kernels one after
//! another; a launch ends before the next begins, and everything it wrote is then visible.
//!
//! A [`Kernel`] is one program that every lane of every warp of every block of a grid executes.
//!
//! **Blocks** run in any order and concurrently; without flags they do not see each other's writes.
//! **Warps** of a block share its shared memory and synchronise at [`Stmt::Barrier`]. **Lanes** of
//! a warp run in lockstep: all of them finish a statement before the next begins, and within one
//! statement all lanes read before any lane writes.
//!
//! **Positions.** Loops, addresses and guards are quasi-affine [`Form`]s and [`Cond`]s over the
//! parameters and the index variables [`Kernel::vars`] (a `DimId` in a form points into that list).
//! A form in which the lane variable does not occur is *uniform*: the same in all lanes. Loop
//! bounds and the conditions of `If` are uniform, so control never diverges within a warp, and only
//! loads, stores and choices are predicated lane by lane.
//!
//! **Values** are assigned once ([`Stmt::Let`]) and used in the rest of the statement list that
//! assigns them, also in nested lists, never before or in a sibling list. Values that survive an
//! iteration of a loop are in a [`Reg`], which is set and read. A value or register is
//! [`Shape::Uniform`] or [`Shape::Varying`]; an operation on uniform values is uniform. These
//! values are undefined: a register that was never set, memory that was never written, a lane
//! beyond the sources of a shuffle, a load whose predicate does not hold and that has no
//! `otherwise`, an integer divided by zero or raised to a negative power, a lookup outside the
//! axes. An undefined value may be used in computations and kept in shared or temporary memory: the
//! result is undefined again, and so is a lookup by it. It must not reach an output or a flag, nor
//! the condition of a [`Stmt::Fault`] in a lane whose predicate holds.
//!
//! **Faults.** No operation stops a lane. Where an equation has no value, a [`Stmt::Fault`] records
//! that, and the run ends with an error after the last launch; the contents of the outputs are then
//! meaningless. Lanes that hold no point of the system may compute undefined values, but record no
//! fault.
//!
//! **Memory.** A buffer is an array in global memory with one range of indices per axis, stored in
//! row-major order. Each block has its own shared arrays, which live as long as the block. All
//! accesses whose predicate holds must be inside the axes. An access of 2, 4, 8, … elements starts
//! at a multiple of its width, counted from the first element of the array; every array itself
//! starts at a multiple of the widest access.
//!
//! The operators mean what `scalar.rs` says; a float multiply feeding an add may be fused.

use crate::form::{Cond, Form, Poly};
use crate::id::{BufferId, DimId, KernelId, RegId, SharedId, ValueId};
use crate::mapping::Engine;
use crate::scalar::{BinOp, Literal, Scalar, UnOp};
use crate::system::Axis;

pub use fault::{FaultKind, FaultSite, RaisedFault};

pub mod banks;
pub mod bounds;
pub mod census;
pub mod constant;
pub mod effects;
pub mod fault;
pub mod fold;
pub mod live;
pub mod magnitude;
pub mod parse;
pub mod pressure;
pub mod print;
pub mod verify;
pub mod visit;

/// What the host does with a mapped system.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    pub name: String,
    /// Names of the sizes; a `ParamId` in a form points into this list. Sizes that were fixed at
    /// compile time stay in the list, with their value.
    pub params: Vec<Size>,
    /// Conditions that the sizes satisfy.
    pub context: Vec<Cond>,
    pub buffers: Vec<Buffer>,
    pub kernels: Vec<Kernel>,
    /// Names of the variables of host loops; a `DimId` in a form of a [`Host`] points into this
    /// list.
    pub host_vars: Vec<String>,
    pub body: Vec<Host>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Size {
    pub name: String,
    /// The only value this program is compiled for.
    pub fixed: Option<i128>,
}

/// An array in global memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Buffer {
    pub name: String,
    pub ty: Scalar,
    pub kind: BufferKind,
    /// Extents in the parameters.
    pub axes: Vec<Axis>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum BufferKind {
    /// Given by the caller, never written. `data`: the contents, where the program states them.
    Input { data: Option<Vec<Literal>> },
    /// Returned to the caller; every element is `fill` before the first launch.
    Output { fill: Option<Literal> },
    /// Made for the run, undefined before it is written: values that cross launches, flags, and
    /// what does not fit into registers or shared memory.
    Temporary,
    /// Like `Temporary`, but zero before the first launch: flags, counters of block ids, and what
    /// blocks publish for others that look back.
    Flags,
    /// Zero before the first launch. Holds the first fault that a [`Stmt::Fault`] records, in the
    /// layout described in [`mod@fault`]. A program has at most one such buffer.
    Faults { sites: Vec<FaultSite> },
}

/// A step of the host.
#[derive(Clone, Debug, PartialEq)]
pub enum Host {
    Launch {
        kernel: KernelId,
        /// One form over the host's variables for each [`VarKind::Host`] of the kernel, in order.
        args: Vec<Form>,
    },
    /// Runs `body` for var = max(lo), …, min(hi) − 1.
    For {
        var: DimId,
        lo: Vec<Form>,
        hi: Vec<Form>,
        body: Vec<Host>,
    },
    /// A condition over the host's variables.
    If {
        cond: Cond,
        then: Vec<Host>,
        otherwise: Vec<Host>,
    },
}

/// One program for all lanes.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    pub name: String,
    /// Lanes of a warp.
    pub lanes: u32,
    /// Warps of a block.
    pub warps: u32,
    /// Index variables. Each is bound once: by the host, by the grid, by the position in the block,
    /// or by one `For`.
    pub vars: Vec<Var>,
    pub shared: Vec<Shared>,
    pub regs: Vec<Reg>,
    /// The name and type of each value; its operation is in the one `Let` that assigns it.
    pub values: Vec<Value>,
    pub hints: Hints,
    pub body: Vec<Stmt>,
}

/// How a kernel runs best. The results do not depend on it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hints {
    /// Stores of whole vectors to these buffers bypass the caches. No kernel reads in this launch
    /// what is written there.
    pub non_temporal: Vec<NonTemporal>,
    /// How many blocks should be resident on a multiprocessor, and the fallbacks, in order, where
    /// registers do not suffice. Empty: not fixed.
    pub resident_blocks: Vec<u32>,
    /// Elements that every block reads; they are loaded once, before the first block.
    pub invariants: Vec<Invariant>,
    /// Non-temporal stores that are deferred until the next block runs.
    pub deferred: Option<Deferred>,
    /// The second branch of a body that is a single `If` becomes a separate function.
    pub outlined_edge: bool,
    /// Loops whose iterations may run in any order, or several at a time: none reads or writes in
    /// memory what another one writes. The interpreter runs them backwards.
    pub independent: Vec<DimId>,
    /// A load under a condition becomes a predicated instruction, where the target has one, and not
    /// a branch.
    pub predicated_loads: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct NonTemporal {
    pub buffer: BufferId,
    /// A condition on the sizes.
    pub when: Cond,
}

/// An element of an input at the same constant position for all sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invariant {
    pub buffer: BufferId,
    pub index: Vec<i128>,
}

/// Unconditional stores of whole cache lines by blocks that are straight-line code. The stores of a
/// block are issued while the next block runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deferred {
    pub buffer: BufferId,
    /// The number of stores that are issued at a time.
    pub group_size: u32,
}

/// A cache of the CPU or the GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cache {
    L1,
    L2,
}

/// An index variable.
#[derive(Clone, Debug, PartialEq)]
pub struct Var {
    pub name: String,
    pub kind: VarKind,
}

#[derive(Clone, Debug, PartialEq)]
pub enum VarKind {
    /// An argument of the launch.
    Host,
    /// A coordinate of the block: max(lo) … min(hi) − 1, over the parameters and the host's
    /// variables. The grid is the product of all block coordinates; the last one varies fastest.
    Block { lo: Vec<Form>, hi: Vec<Form> },
    /// 0 … warps − 1.
    Warp,
    /// 0 … lanes − 1.
    Lane,
    /// Bound by a `For`.
    Loop,
    /// Bound by a [`Stmt::DynamicBlock`]: a number that no other block has, in the order in which
    /// blocks start.
    DynamicBlock,
}

/// An array in shared memory; each block has its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Shared {
    pub name: String,
    pub ty: Scalar,
    /// Extents in the parameters; indices start at 0.
    pub extents: Vec<Poly>,
}

/// A register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reg {
    pub name: String,
    pub ty: Scalar,
    pub shape: Shape,
}

/// A value that is assigned once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// Named after the equation it comes from; a printer makes it unique.
    pub name: String,
    pub ty: Scalar,
    pub shape: Shape,
}

/// Is a value the same in all lanes?
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Shape {
    /// One scalar for a warp.
    Uniform,
    /// One value for each lane.
    Varying,
}

/// The array that an access reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Memory {
    Global(BufferId),
    Shared(SharedId),
}

/// An access to an element that is given by its position.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    pub memory: Memory,
    /// One form for each axis.
    pub index: Vec<Form>,
    /// Lanes in which it does not hold do nothing.
    pub when: Cond,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Stmt {
    Let(ValueId, Op),
    /// Sets a register in all lanes.
    Set(RegId, ValueId),
    /// Loads consecutive elements along the last axis into consecutive values. More values than the
    /// last axis has elements cover the whole axis at consecutive positions of the axis before it,
    /// and so on. From global or shared memory.
    LoadWide {
        to: Vec<ValueId>,
        from: Access,
        otherwise: Option<Literal>,
    },
    /// Two lanes that store to one element in one statement must store the same value.
    Store {
        to: Access,
        value: ValueId,
    },
    /// Stores values to consecutive elements, as for `LoadWide`.
    StoreWide {
        to: Access,
        values: Vec<ValueId>,
    },
    /// Brings the cache line of an element of global memory closer. Nothing waits for it and
    /// nothing depends on it: the index may be outside the axes.
    Prefetch {
        at: Access,
        into: Cache,
    },
    /// Copies `width` consecutive elements from global into shared memory, in lanes where both
    /// predicates hold. The data is there only after a `WaitCopies`; until then nothing accesses
    /// the target or writes the source.
    Copy {
        to: Access,
        from: Access,
        width: u32,
        engine: Engine,
    },
    /// Ends the group of copies since the last `CommitCopies`.
    CommitCopies,
    /// Waits until at most `pending` groups of this warp are in flight. Other warps see the data
    /// after a barrier.
    WaitCopies {
        pending: u32,
    },
    /// Runs `body` for var = max(lo), max(lo) + step, … < min(hi); the bounds are uniform.
    For {
        var: DimId,
        lo: Vec<Form>,
        hi: Vec<Form>,
        step: i128,
        body: Vec<Stmt>,
    },
    /// The condition is uniform.
    If {
        cond: Cond,
        then: Vec<Stmt>,
        otherwise: Vec<Stmt>,
    },
    /// All warps of the block arrive before any leaves; shared memory is then up to date. Every
    /// warp reaches the same barriers: the conditions and bounds around a barrier do not depend on
    /// the warp.
    Barrier,
    /// The lanes of a warp wait for each other; memory that one of them wrote is then visible to
    /// all. Lanes run in lockstep, so it changes nothing here: it tells targets whose lanes do not
    /// run in lockstep where they have to synchronise.
    SyncWarp,
    /// Release: after everything that this block wrote, adds one to an element of a `Flags` buffer
    /// (i32), once for the block. All its warps reach it, as for a barrier.
    Signal {
        flag: Access,
    },
    /// Acquire: waits until the element is at least this; what was written before the signals is
    /// then visible. Uniform. All warps reach it and each waits for itself: it is no barrier.
    Await {
        flag: Access,
        at_least: Form,
    },
    /// Takes the block's id from an atomic counter, an element of a `Flags` buffer (i32), once for
    /// the whole block.
    DynamicBlock {
        var: DimId,
        counter: Access,
    },
    /// Publishes a block's term of a chain through blocks, and combines the terms of the blocks
    /// before it.
    LookBack(Box<LookBack>),
    /// In lanes where the predicate and the condition hold, records the fault of a site at a point,
    /// unless another fault was recorded before. Execution continues.
    Fault {
        /// A `Faults` buffer.
        faults: BufferId,
        /// Index into the sites of the buffer.
        site: usize,
        /// A bool.
        bad: ValueId,
        when: Cond,
        /// One form for each iterator of the site.
        point: Vec<Form>,
    },
    /// A comment in the printed code; it has no effect.
    Comment(String),
}

/// A look-back (Merrill and Garland 2016) along chains of blocks with an associative operation ⊕.
///
/// A block publishes its own term of each chain, so that nobody waits for what is before it. Then it
/// combines what its predecessors have published, from the nearest one back to the first that has
/// published the whole sum up to itself. It publishes its own whole sum last. How far back a block
/// looks depends on timing, so the operations are grouped differently from run to run; their order
/// is fixed.
///
/// Each lane has chains of its own if the lane variable occurs in the index. Otherwise these are
/// chains of the warp: their terms are the same in all lanes.
#[derive(Clone, Debug, PartialEq)]
pub struct LookBack {
    pub chains: Vec<BlockChain>,
    /// The axis along which the blocks follow each other.
    pub axis: usize,
    /// Do chains go from the first index of that axis to the last?
    pub up: bool,
    /// The operation ⊕ as statements that assign uniform values.
    pub joins: Joins,
}

/// The part that a block has in a chain.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockChain {
    /// The place of this block in a `Flags` buffer (u64): its last axis has an element for every 32
    /// bits of a term, and the index along it is 0. All chains of a statement have the same
    /// predicate.
    pub at: Access,
    /// The scalars of this block's term.
    pub terms: Vec<ValueId>,
    /// Assigned: the terms of all blocks before this one, combined; undefined in the first block.
    pub before: Vec<ValueId>,
}

impl LookBack {
    /// The number of elements that hold scalars of these types.
    pub fn words(types: impl IntoIterator<Item = Scalar>) -> u32 {
        types.into_iter().map(|ty| ty.bits().div_ceil(32)).sum()
    }

    /// The values of all terms.
    pub fn terms(&self) -> Vec<ValueId> {
        self.chains.iter().flat_map(|c| c.terms.clone()).collect()
    }
}

/// The definition of an associative operation: `joined` = `earlier` ⊕ `later`.
#[derive(Clone, Debug, PartialEq)]
pub struct Joins {
    /// Assigned before the statements.
    pub earlier: Vec<ValueId>,
    /// Assigned before the statements.
    pub later: Vec<ValueId>,
    /// Nothing but `Let`s of operations that read no memory, register or position.
    pub body: Vec<Stmt>,
    pub joined: Vec<ValueId>,
}

/// The operation that computes a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    Lit(Literal),
    /// A position as a number, an i64.
    Index(Form),
    /// The register as it is now.
    Get(RegId),
    Unary(UnOp, ValueId),
    Binary(BinOp, ValueId, ValueId),
    Cast(ValueId),
    /// A choice by a bool.
    Select {
        cond: ValueId,
        then: ValueId,
        otherwise: ValueId,
    },
    /// A choice by a condition on the position.
    Choose {
        cond: Cond,
        then: ValueId,
        otherwise: ValueId,
    },
    /// `otherwise` is the value where the predicate does not hold.
    Load {
        from: Access,
        otherwise: Option<Literal>,
    },
    /// Reads at computed indices, one integer for each axis, numbered from 0. Outside the axes the
    /// value is undefined.
    Lookup {
        memory: Memory,
        index: Vec<ValueId>,
    },
    /// The value of the lane that the form names; undefined where there is no such lane.
    Shuffle {
        value: ValueId,
        from: Form,
    },
    /// Lane l gets element l + lanes − by of `low` followed by `high`, 0 ≤ by ≤ lanes: `high` moved
    /// up by `by` lanes, filled from the top of `low`. Where `low` or `high` is missing, the lanes
    /// that would come from it are undefined.
    LaneShift {
        low: Option<ValueId>,
        high: Option<ValueId>,
        by: u32,
    },
}

impl Buffer {
    /// `wanted`, or a name derived from it, that no buffer has.
    pub fn unused_name(wanted: &str, buffers: &[Buffer]) -> String {
        let taken = |name: &str| buffers.iter().any(|b| b.name == name);
        let numbered = (2..).map(|n| format!("{wanted}_{n}"));
        let mut names = std::iter::once(wanted.to_string()).chain(numbered);
        names.find(|name| !taken(name)).unwrap_or_default()
    }
}

impl Kernel {
    /// The variables of a kind, in order.
    pub fn vars_where(&self, is: impl Fn(&VarKind) -> bool) -> impl Iterator<Item = DimId> {
        self.vars
            .iter()
            .enumerate()
            .filter(move |(_, v)| is(&v.kind))
            .map(|(n, _)| DimId::from(n))
    }

    /// The condition and the branches of a body that is one `If` with two branches: the first for
    /// blocks inside the domain, the second for blocks at its edge.
    pub fn branches(&self) -> Option<(&Cond, &[Stmt], &[Stmt])> {
        let is_comment = |stmt: &&Stmt| matches!(stmt, Stmt::Comment(_));
        let mut stmts = self.body.iter().filter(|s| !is_comment(s));
        match (stmts.next()?, stmts.next()) {
            (
                Stmt::If {
                    cond,
                    then,
                    otherwise,
                },
                None,
            ) if !then.is_empty() && !otherwise.is_empty() => Some((cond, then, otherwise)),
            _ => None,
        }
    }

    pub fn lane(&self) -> Option<DimId> {
        self.vars_where(|k| matches!(k, VarKind::Lane)).next()
    }

    /// Is the form free of the lane variable?
    pub fn is_uniform(&self, form: &Form) -> bool {
        self.lane().is_none_or(|lane| !form.dims().contains(&lane))
    }

    pub fn shape_of(&self, form: &Form) -> Shape {
        if self.is_uniform(form) {
            Shape::Uniform
        } else {
            Shape::Varying
        }
    }

    pub fn cond_is_uniform(&self, cond: &Cond) -> bool {
        cond.forms().into_iter().all(|f| self.is_uniform(f))
    }
}

impl Access {
    pub fn new(memory: Memory, index: Vec<Form>) -> Access {
        Access {
            memory,
            index,
            when: Cond::TRUE,
        }
    }
}

impl Program {
    pub fn param_names(&self) -> Vec<String> {
        self.params.iter().map(|p| p.name.clone()).collect()
    }

    /// Extents of a buffer's axes.
    pub fn extents(&self, buffer: BufferId) -> Vec<Form> {
        let axes = &self.buffers[buffer.index()].axes;
        axes.iter().map(|a| a.hi.sub(&a.lo)).collect()
    }
}
