//! Mappings: *where and when* each point of a system runs.
//!
//! A mapping is a value beside the system: a list of directives over names, kept as they were
//! written, so that a user, the explorer and a test all hand over the same text. The names get
//! their meaning when the mapping is resolved against its system.
//!
//! The general form sends every point to a place and a time:
//!
//! ```text
//! place(z) = (node, block, warp, lane, reg)     each of zero or more quasi-affine forms
//! time(z)  = (launch | block step | step)       lexicographic, each component with its level
//! ```
//!
//! The primitives of the paper's Table 1 (`merge_ures`, `tile`, `reorder`, `gpu_blocks`,
//! `gpu_threads`, `in`, `compute_at`, `store_in`, `space_time_transform`) are directives with their
//! own meaning, and resolve to the same form.

use crate::scalar::Type;
use crate::span::Span;

pub mod print;

/// A named mapping of one system.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mapping {
    pub name: String,
    /// The name of the system it maps.
    pub system: String,
    pub directives: Vec<Directive>,
    pub span: Span,
}

/// A name and its position in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    pub text: String,
    pub span: Span,
}

impl<S: Into<String>> From<S> for Name {
    fn from(text: S) -> Self {
        Name {
            text: text.into(),
            span: Span::NONE,
        }
    }
}

/// An index expression over names: iterators, tile indices, parameters, and the lanes of the
/// target, `L` or `lanes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameExpr {
    pub kind: NameExprKind,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameExprKind {
    Int(i128),
    Name(String),
    Neg(Box<NameExpr>),
    Binary(NameOp, Box<NameExpr>, Box<NameExpr>),
}

/// Operators of index expressions; `/` and `%` by positive constants, rounding down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NameOp {
    Add,
    Sub,
    Mul,
    Div,
    Mod,
}

/// A condition over names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameCond {
    Cmp(crate::form::Rel, NameExpr, NameExpr),
    And(Vec<NameCond>),
    Or(Vec<NameCond>),
    Not(Box<NameCond>),
}

/// One line of a mapping.
#[derive(Clone, Debug, PartialEq)]
pub struct Directive {
    pub kind: DirectiveKind,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub enum DirectiveKind {
    /// `tile x by B as (bx, xx)`, optionally `overlap (lo, hi)` and `periodic`: x = B·bx + xx with
    /// −lo ≤ xx < B + hi; the points with 0 ≤ xx < B are owned, the others are copies.
    Tile {
        dim: Name,
        size: NameExpr,
        outer: Name,
        inner: Name,
        overlap: Option<(NameExpr, NameExpr)>,
        periodic: bool,
    },
    /// `lane = c + q`.
    Place {
        level: PlaceLevel,
        forms: Vec<NameExpr>,
    },
    /// `time = (y + u, u)`.
    Time {
        level: TimeLevel,
        forms: Vec<NameExpr>,
    },
    /// `when cond { ... }`: places and times of the points where the condition holds. The first
    /// matching `when` decides; the directives outside any `when` are the rest.
    When {
        cond: NameCond,
        directives: Vec<Directive>,
    },
    /// `space (k, i, j)`: the iterators of the common index space, if they are not those of the
    /// system.
    Space { dims: Vec<Name> },
    /// `align F (i, j) -> (i + j, i, j)`: the point of the common space at which each value of a
    /// variable is computed. The names stand for the iterators of the variable.
    Align {
        var: Name,
        dims: Vec<Name>,
        forms: Vec<NameExpr>,
    },
    /// `forward x along (-1, 1)`: the input is read once, or the value of the variable taken where it
    /// is computed, and passed on from z − e to z.
    Forward { input: Name, along: Vec<NameExpr> },
    /// `read x`: every point reads the input itself; the default.
    Read { input: Name },
    /// `sum Z along (q, -p)`; `sum Z tree`; `sum Z along t then tree jj`.
    Sum { var: Name, stages: Vec<SumStage> },
    /// `store S in a[i, j]`, `store S modulo (2, 0, 0)`, `store S`: values of the variable are kept in
    /// memory for the points that read them.
    Store { var: Name, place: StorePlace },
    /// `broadcast X`: X may arrive in the step in which it is sent.
    Broadcast { var: Name },
    /// `transfer x to shared at oc stages 2 layout pad 1 by cp_async;`.
    Transfer(Transfer),
    /// `unroll q by 4`, or fully.
    Unroll { name: Name, factor: Option<u64> },
    /// `check`, `trust` or `auto`.
    Check(Check),
    /// `reverse (c = lane - t, q = t)`: the user's own inverse, verified and never trusted.
    /// `lane`, `lane1`, … and `time`, `time1`, … name the coordinates.
    Reverse { bindings: Vec<(Name, NameExpr)> },
    /// `flags`: values may cross blocks within a launch, through global memory with release and
    /// acquire operations.
    Flags,
    /// `look_back`: trees may cross blocks within a launch. Each block looks back over what earlier
    /// blocks have published, which groups the operations by timing.
    LookBack,
    /// `func X(f32, (c, q), device);`
    Func {
        name: Name,
        ty: Option<Type>,
        args: Vec<Name>,
        residence: Residence,
    },
    /// `X.merge_ures(W, Z);`: all of them become the body of X's loop nest, in that order.
    MergeUres { func: Name, others: Vec<Name> },
    /// `X.tile(v, vo, vi, f);`: v = f·vo + vi.
    TileLoop {
        func: Name,
        loop_name: Name,
        outer: Name,
        inner: Name,
        factor: NameExpr,
    },
    /// `X.reorder(ccc, q, cc, oc);`, innermost first.
    Reorder { func: Name, loops: Vec<Name> },
    /// `X.gpu_blocks(oc);`
    GpuBlocks { func: Name, loops: Vec<Name> },
    /// `X.gpu_threads(cc);`: what the paper calls a thread holds a whole linear array, a warp here.
    GpuThreads { func: Name, loops: Vec<Name> },
    /// `w.in(X).compute_at(X, oc).store_in(shared);`
    In {
        producer: Name,
        consumer: Name,
        compute_at: Option<(Name, Name)>,
        store_in: Option<Store>,
    },
    /// `X.space_time_transform((ccc, q), (s, t), ((1, 1), (0, 1)), reverse (…), check);` The loop
    /// lists are innermost first, the last row of the matrix is the schedule.
    SpaceTimeTransform {
        func: Name,
        src: Vec<Name>,
        dst: Vec<Name>,
        matrix: Vec<Vec<NameExpr>>,
        /// One expression over `dst` for each loop of `src`.
        reverse: Option<Vec<NameExpr>>,
        check: Option<Check>,
    },
}

/// The levels of a place, outermost first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PlaceLevel {
    Node,
    Block,
    Warp,
    Lane,
    Reg,
}

impl PlaceLevel {
    pub const ALL: [PlaceLevel; 5] = [
        PlaceLevel::Node,
        PlaceLevel::Block,
        PlaceLevel::Warp,
        PlaceLevel::Lane,
        PlaceLevel::Reg,
    ];

    pub fn name(self) -> &'static str {
        match self {
            PlaceLevel::Node => "node",
            PlaceLevel::Block => "block",
            PlaceLevel::Warp => "warp",
            PlaceLevel::Lane => "lane",
            PlaceLevel::Reg => "reg",
        }
    }
}

/// The levels of time, outermost first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TimeLevel {
    /// One kernel launch after another: the results of earlier launches are in memory.
    Launch,
    /// Steps of a whole block, with a barrier between them.
    BlockStep,
    /// Steps of a processing element.
    Step,
}

impl TimeLevel {
    pub const ALL: [TimeLevel; 3] = [TimeLevel::Launch, TimeLevel::BlockStep, TimeLevel::Step];

    /// As the text language writes it.
    pub fn name(self) -> &'static str {
        match self {
            TimeLevel::Launch => "launch",
            TimeLevel::BlockStep => "block_step",
            TimeLevel::Step => "time",
        }
    }
}

/// A stage of a sum. The first adds up the terms, each further one what the stage before it has
/// completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SumStage {
    /// One after the other along iterators, innermost first, each ascending or descending.
    Along(Vec<(Name, Direction)>),
    /// A balanced tree over iterators; over all that are left if none is named.
    Tree(Vec<Name>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    Up,
    Down,
}

/// Where the values of a variable are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StorePlace {
    /// The compiler chooses.
    Chosen,
    /// In an array of this name, at this element; variables with the same array share it.
    In { array: Name, index: Vec<NameExpr> },
    /// One modulus for each iterator: the iterator modulo it, or the whole iterator where it is 0.
    Modulo(Vec<NameExpr>),
}

/// Does every PE test that its point is in the domain?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Check {
    /// Only where an out-of-domain PE could reach an owned value, an output or memory.
    #[default]
    Auto,
    /// Always.
    Check,
    /// Never: the user states that no test is needed; the mapping is refused if that is wrong.
    Trust,
}

/// Where a staged value is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Store {
    Registers,
    Shared,
    Constant,
}

/// Where a function of the paper's language lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Residence {
    #[default]
    Host,
    Device,
}

/// Staging: a window of an array is copied to faster memory before it is used.
#[derive(Clone, Debug, PartialEq)]
pub struct Transfer {
    /// An input, or the array of an earlier transfer.
    pub source: Name,
    pub store: Store,
    /// The loop or time coordinate; each of its values has one window. `None`: a single window,
    /// loaded before the first step.
    pub at: Option<Name>,
    /// The load for window w is issued at w − stages + 1.
    pub stages: u64,
    pub layout: Layout,
    pub engine: Engine,
}

/// How a window is laid out in shared memory, which has banks: lanes that read different words of
/// one bank in the same access conflict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Layout {
    pub order: Order,
    pub rows: Rows,
}

/// Which axis of a window has its elements next to each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Order {
    /// The last one, as in the array.
    #[default]
    Rows,
    /// The last but one.
    Columns,
}

/// Where the rows of a window begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Rows {
    /// One of the others, whichever has the fewest bank conflicts.
    #[default]
    Chosen,
    /// Contiguous.
    Plain,
    /// Lengthened by this number of elements.
    Pad(u64),
    /// Swizzled: contiguous, but each row is rotated by one vector access for every line of all
    /// banks before it.
    Rotate,
}

impl From<Rows> for Layout {
    fn from(rows: Rows) -> Layout {
        Layout {
            order: Order::Rows,
            rows,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Engine {
    #[default]
    Plain,
    CpAsync,
    Bulk,
}

impl NameExpr {
    pub fn int(value: i128) -> Self {
        NameExprKind::Int(value).into()
    }

    pub fn name(text: impl Into<String>) -> Self {
        NameExprKind::Name(text.into()).into()
    }

    pub fn binary(op: NameOp, left: NameExpr, right: NameExpr) -> Self {
        NameExprKind::Binary(op, Box::new(left), Box::new(right)).into()
    }
}

impl From<NameExprKind> for NameExpr {
    fn from(kind: NameExprKind) -> Self {
        NameExpr {
            kind,
            span: Span::NONE,
        }
    }
}

impl From<DirectiveKind> for Directive {
    fn from(kind: DirectiveKind) -> Self {
        Directive {
            kind,
            span: Span::NONE,
        }
    }
}
