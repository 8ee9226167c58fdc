//! Systolic arrays: a system under a mapping.
//!
//! An array has processing elements (PEs), one for every value of the place coordinates, and a
//! clock that runs through the time coordinates in lexicographic order. At each tick, every PE
//! whose slot (place, time) belongs to a point z of the expanded domain evaluates its cells in
//! order. A cell's value enters the PE's queue for that cell, which shifts by one at every tick of
//! the step clock and is [`Registers::depth`] values deep. A cell takes values from other points
//! through [`Port`]s: of the links of a port, the one whose guard holds at z delivers the value
//! that the PE at `place - displacement` put into its queue `delay` ticks ago. A value that is not
//! there when it is due (too few registers, a wrong delay or displacement, a guard that does not
//! hold) is an error.
//!
//! **Stored values.** Values that travel distances which change from point to point are kept in
//! memory: a [`Storage`], in which a cell has a place for each of its points ([`StorageMap`]). Several
//! points may have one place, one after the other. At a point all reads come before all writes. What
//! is written is seen by later steps of the same block, and by all blocks of later launches. A read
//! that finds the value of another point, or none, or one that it may not see yet, is an error, and so
//! are two accesses to one place, one of them a write, that nothing orders.
//!
//! **Expanded domain.** The coordinates are the tile indices of overlapped tiles, then the
//! iterators of the system. A point with an inner coordinate in 0..size is *owned* by its tile; the
//! others are copies. Only owners write outputs, and only owners hand values to later launches,
//! through global memory. A copy whose source is not in its tile is don't-care: its value is a hole
//! that may travel, but never reaches an owned point.
//!
//! **Clock.** Time coordinates at the level of launches and block steps order everything; the step
//! clock ticks through the box of the remaining coordinates. A delay is a difference of time
//! coordinates; in ticks it is that difference read in the mixed radix of the extents of the box.

use crate::form::{Cond, Form, Poly};
use crate::id::{DimId, InputId, PortId, StorageId, VarId};
use crate::mapping::{Check, PlaceLevel, TimeLevel, Transfer};
use crate::scalar::Type;
use crate::span::Span;
use crate::system::{
    Axis, Combine, Const, Dim, Expr, Function, Input, Law, Output, Param, System, Var,
};

pub mod print;
pub mod verify;

/// A system under a mapping.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// The mapping's name.
    pub name: String,
    pub system: String,
    pub params: Vec<Param>,
    pub context: Vec<Cond>,
    pub consts: Vec<Const>,
    pub inputs: Vec<Input>,
    pub functions: Vec<Function>,
    /// Names of the coordinates of the expanded domain.
    pub dims: Vec<String>,
    /// Overlapped tiles, one for each of the first coordinates.
    pub tiles: Vec<OverlapTile>,
    pub place: Vec<PlaceCoord>,
    pub time: Vec<TimeCoord>,
    /// Where and when each point runs, by pieces; their conditions are exclusive and cover the
    /// domain.
    pub pieces: Vec<Piece>,
    /// One for each variable of the localised system.
    pub cells: Vec<Cell>,
    /// The iterators of the sums inside of cells; the one at position n has the id `dims.len() + n`.
    pub bound: Vec<Dim>,
    /// Where cells keep values for other points.
    pub storages: Vec<Storage>,
    /// The order in which a PE evaluates its cells.
    pub body: Vec<VarId>,
    pub ports: Vec<Port>,
    /// The values that are written are read from the cells of the same point.
    pub outputs: Vec<Output>,
    pub transfers: Vec<Transfer>,
    pub unroll: Vec<(String, Option<u64>)>,
    pub check: Check,
    pub guards: Vec<Guard>,
}

/// x = size·outer + inner, −lo ≤ inner < size + hi.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverlapTile {
    /// The coordinate of the tile index.
    pub outer: DimId,
    /// The coordinate that is tiled.
    pub dim: DimId,
    pub size: i128,
    pub lo: i128,
    pub hi: i128,
    /// The length of the ring that the coordinate runs around. Cells beyond its ends are copies,
    /// and no tile has only copies.
    pub ring: Option<Form>,
}

impl OverlapTile {
    /// The inner coordinate as a form.
    pub fn inner(&self) -> Form {
        let outer = Form::from(self.outer)
            .scale(&Poly::constant(-self.size))
            .unwrap_or_default();
        Form::from(self.dim).add(&outer)
    }

    /// 0 ≤ inner < size.
    pub fn owned(&self) -> Cond {
        use crate::form::Rel;
        let inside =
            Cond::cmp(Rel::Le, 0, self.inner()).and(Cond::cmp(Rel::Lt, self.inner(), self.size));
        match &self.ring {
            None => inside,
            Some(length) => inside.and(Cond::cmp(Rel::Le, 0, self.dim)).and(Cond::Cmp(
                Rel::Lt,
                Form::from(self.dim),
                length.clone(),
            )),
        }
    }

    /// −lo ≤ inner < size + hi.
    pub fn covered(&self) -> Cond {
        use crate::form::Rel;
        let covered = Cond::cmp(Rel::Le, -self.lo, self.inner()).and(Cond::cmp(
            Rel::Lt,
            self.inner(),
            self.size + self.hi,
        ));
        let Some(length) = &self.ring else {
            return covered;
        };
        let first = Form::from(self.outer)
            .scale(&Poly::constant(self.size))
            .unwrap_or_default();
        covered
            .and(Cond::cmp(Rel::Le, 0, self.outer))
            .and(Cond::Cmp(Rel::Lt, first, length.clone()))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaceCoord {
    pub level: PlaceLevel,
    pub name: String,
    /// The iterator or tile index that this coordinate equals, if it equals one.
    pub alias: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeCoord {
    pub level: TimeLevel,
    pub name: String,
    /// The iterator or tile index that this coordinate equals, if it equals one.
    pub alias: Option<String>,
}

/// The mapping on a part of the domain.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    pub cond: Cond,
    /// One form for each place coordinate.
    pub place: Vec<Form>,
    /// One form for each time coordinate.
    pub time: Vec<Form>,
    pub reverse: Reverse,
}

impl Piece {
    /// A coordinate of the slot over the point: those of the place come before those of the time.
    pub fn coordinate(&self, k: usize) -> &Form {
        match k.checked_sub(self.place.len()) {
            None => &self.place[k],
            Some(t) => &self.time[t],
        }
    }
}

/// Maps a slot back to its point.
#[derive(Clone, Debug, PartialEq)]
pub enum Reverse {
    /// One form for each coordinate of the expanded domain, over the slot: the iterators 0.. are
    /// the place coordinates, then the time coordinates. Each form is divided by its divisor; a
    /// slot where a division leaves a remainder has no point.
    Forms(Vec<(Form, i128)>),
    /// No closed form: the point is found by scanning the fibre of the slot, which has at most one.
    Scan,
}

/// Memory that lasts for the whole run.
#[derive(Clone, Debug, PartialEq)]
pub struct Storage {
    pub name: String,
    /// The type of an element.
    pub ty: Type,
    pub axes: Vec<Axis>,
    /// The output whose memory this is: what is there in the end is the output.
    pub output: Option<usize>,
}

/// The place of a cell's values in a storage.
#[derive(Clone, Debug, PartialEq)]
pub struct StorageMap {
    pub storage: StorageId,
    /// Over the expanded domain, one form for each axis.
    pub index: Vec<Form>,
    /// The points of the cell that are kept: all that are read.
    pub when: Cond,
}

/// One equation in every PE.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    pub name: String,
    pub ty: Type,
    /// Over the expanded domain.
    pub domain: Cond,
    /// Values of other points come through ports, or as `Var` from the storage in which they are
    /// kept. Contains no `Scan`, and `Reduce` only in an array that keeps values.
    pub body: Expr,
    pub role: Role,
    pub registers: Registers,
    /// Where its values are kept, if points read them that no link leads to.
    pub kept: Option<StorageMap>,
    pub span: Span,
}

/// What the compiler recognised an equation to be.
#[derive(Clone, Debug, PartialEq)]
pub enum Role {
    /// Any other equation.
    Plain,
    /// Carries the element `index` of an input along `along`: it equals that element everywhere.
    Propagation {
        input: InputId,
        index: Vec<Form>,
        along: Vec<Poly>,
    },
    /// Carries a computed value along `along`.
    Carry { along: Vec<Vec<Poly>> },
    /// Combines one more term at every point along `along`.
    Accumulation { op: Combine, along: Vec<Vec<Poly>> },
}

/// How many values of a cell a PE keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registers {
    /// The number of values kept: the longest delay in ticks, plus one. `None` where it depends on
    /// sizes that are not fixed.
    pub depth: Option<Poly>,
    /// The same number under the paper's coalescing, where the oldest value is dead once it has
    /// been read.
    pub coalesced: Option<Poly>,
}

/// Where a cell gets the value of a variable at distance e.
#[derive(Clone, Debug, PartialEq)]
pub struct Port {
    /// The cell that reads.
    pub sink: VarId,
    /// The cell that is read.
    pub source: VarId,
    /// e, over the iterators of the system.
    pub distance: Vec<Poly>,
    /// Where the sink reads the value: the conditions of the branches and the ranges of the sums
    /// around the reference.
    pub when: Cond,
    /// Their guards are exclusive.
    pub links: Vec<Link>,
    pub span: Span,
}

/// One way a dependence travels.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// The points of the sink at which this link delivers.
    pub guard: Cond,
    /// One component for each place coordinate.
    pub displacement: Vec<Poly>,
    /// One component for each time coordinate.
    pub delay: Vec<Poly>,
    pub realisation: Realisation,
}

/// What a link becomes, which determines its cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Realisation {
    /// An earlier cell of the same slot.
    Wire,
    /// StorageMap in the PE, or renamed between the registers of one lane.
    Register,
    /// The same with a delay that is long or depends on sizes: a circular buffer.
    Buffer,
    /// Between lanes of a warp.
    Shuffle,
    /// Between warps of a block: shared memory and a barrier.
    Shared,
    /// To a later launch, through global memory.
    Launch,
    /// Between blocks of one launch, through global memory with flags.
    Flags,
    /// One level of an aggregation tree, between blocks of one launch that look back over what
    /// earlier blocks have published.
    LookBack,
    /// A propagated input at a tile's edge: loaded again.
    Reinject,
    /// To another node: a message.
    Message,
    /// Arrives in the step in which it is sent.
    Broadcast,
    /// One level of an aggregation tree.
    Tree,
    /// A copy in a halo whose source is not in its tile: don't-care.
    Hole,
}

impl Realisation {
    /// Does the value go from PE to PE within a launch?
    pub fn is_within_launch(&self) -> bool {
        match self {
            Realisation::Wire
            | Realisation::Register
            | Realisation::Buffer
            | Realisation::Shuffle
            | Realisation::Shared
            | Realisation::Flags
            | Realisation::LookBack
            | Realisation::Message
            | Realisation::Broadcast
            | Realisation::Tree => true,
            // The value comes from memory, or there is none.
            Realisation::Launch | Realisation::Reinject | Realisation::Hole => false,
        }
    }
}

/// A test, by a PE, that its point is inside the domain; it may have been proved unnecessary.
#[derive(Clone, Debug, PartialEq)]
pub struct Guard {
    /// What would happen outside the domain: `x[c + q] is read`, `z[c] is written`.
    pub effect: String,
    pub kept: bool,
    pub reason: String,
}

impl Array {
    pub fn param_names(&self) -> Vec<String> {
        self.params.iter().map(|p| p.name.clone()).collect()
    }

    /// Do values go from point to point through memory?
    pub fn keeps_values(&self) -> bool {
        self.cells.iter().any(|cell| cell.kept.is_some())
    }

    /// Is the memory of an output a storage?
    pub fn is_storage(&self, output: usize) -> bool {
        self.storages.iter().any(|s| s.output == Some(output))
    }

    /// The names of the coordinates, and of the iterators of sums after them.
    pub fn names(&self) -> Vec<String> {
        let bound = self.bound.iter().map(|dim| dim.name.clone());
        self.dims.iter().cloned().chain(bound).collect()
    }

    pub fn port(&self, port: PortId) -> &Port {
        &self.ports[port.index()]
    }

    /// Extends a distance over the system's iterators to the expanded domain: tile indices do not
    /// change.
    pub fn extend_distance(&self, distance: &[Poly]) -> Vec<Poly> {
        let mut e = vec![Poly::zero(); self.tiles.len()];
        e.extend(distance.iter().cloned());
        e
    }

    /// A system that declares what the expressions of the cells refer to; its equations are the
    /// cells.
    pub fn declarations(&self) -> System {
        System {
            name: self.system.clone(),
            params: self.params.clone(),
            context: self.context.clone(),
            consts: self.consts.clone(),
            inputs: self.inputs.clone(),
            functions: self.functions.clone(),
            dims: self
                .dims
                .iter()
                .map(|name| Dim {
                    name: name.clone(),
                    range: None,
                    span: Span::NONE,
                })
                .collect(),
            bound: self.bound.clone(),
            vars: self
                .cells
                .iter()
                .map(|cell| Var {
                    name: cell.name.clone(),
                    ty: cell.ty.clone(),
                    law: Law::Fixed,
                    own: None,
                    on: Vec::new(),
                    body: cell.body.clone(),
                    span: cell.span,
                })
                .collect(),
            outputs: self.outputs.clone(),
            ..System::default()
        }
    }

    /// Which points are owned by their tile.
    pub fn owned(&self) -> Cond {
        self.tiles
            .iter()
            .map(OverlapTile::owned)
            .fold(Cond::TRUE, Cond::and)
    }
}
