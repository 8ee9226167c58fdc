//! The cost of an operation on a machine: the number of instructions of each kind.
//!
//! Literals and reads of registers are free: they are operands, and unrolling renames registers. A
//! product that feeds one sum is fused with it.

use std::collections::HashSet;

use systola_ir::kernel::census::fusible;
use systola_ir::kernel::{Kernel, Op, Shape, VarKind};
use systola_ir::{BinOp, Cond, DimId, Scalar, UnOp, ValueId};

use super::code::Lanes;
use super::tally::{Quantity, Tally};

/// Prices of the operations of a kernel.
#[derive(Debug)]
pub struct Pricing<'k> {
    kernel: &'k Kernel,
    lanes: Lanes,
    /// Products that are fused with the only sum that uses them.
    pub fused: Vec<bool>,
    /// Variables that are constant within a block.
    steady: HashSet<usize>,
}

impl<'k> Pricing<'k> {
    pub fn new(kernel: &'k Kernel, lanes: Lanes) -> Pricing<'k> {
        let is_steady = |kind: &VarKind| match kind {
            VarKind::Host
            | VarKind::Block { .. }
            | VarKind::DynamicBlock
            | VarKind::Warp
            | VarKind::Lane => true,
            VarKind::Loop => false,
        };
        Pricing {
            kernel,
            lanes,
            fused: fusible(kernel),
            steady: kernel.vars_where(is_steady).map(|v| v.index()).collect(),
        }
    }

    /// Instructions for all lanes of a value of this type: vectors, or threads with words.
    fn instructions(&self, ty: Scalar) -> f64 {
        let bytes = f64::from((ty.bits() / 8).max(1));
        match self.lanes {
            Lanes::Vectors { bytes: vector } => {
                let vectors = f64::from(self.kernel.lanes) * bytes / f64::from(vector);
                vectors.ceil().max(1.0)
            }
            Lanes::Threads => 1.0,
        }
    }

    /// Integers of 64 bits are two words to a thread.
    fn words(&self, ty: Scalar) -> f64 {
        match self.lanes {
            Lanes::Threads if ty.bits() == 64 => 2.0,
            Lanes::Threads | Lanes::Vectors { .. } => 1.0,
        }
    }

    fn ty(&self, value: ValueId) -> Scalar {
        self.kernel.values[value.index()].ty
    }

    pub fn op(&self, to: ValueId, op: &Op) -> Tally {
        let mut tally = Tally::default();
        let value = &self.kernel.values[to.index()];
        let elements = f64::from(self.kernel.lanes);
        let kinds: Vec<(Quantity, f64)> = match op {
            Op::Lit(_) | Op::Get(_) | Op::Load { .. } => Vec::new(),
            Op::Lookup { .. } => match (value.shape, self.lanes) {
                (Shape::Uniform, _) => vec![(Quantity::UniformLoads, 1.0)],
                (Shape::Varying, Lanes::Vectors { .. }) => {
                    vec![(Quantity::GatheredElements, elements)]
                }
                (Shape::Varying, Lanes::Threads) => vec![(Quantity::GlobalAccesses, 1.0)],
            },
            _ if value.shape == Shape::Uniform => vec![(Quantity::UniformOps, 1.0)],
            Op::Index(_) => vec![(Quantity::IntOps, self.instructions(value.ty))],
            Op::Unary(op, a) => self.unary(*op, self.ty(*a)),
            Op::Binary(op, a, b) => self.binary(to, *op, *a, *b),
            Op::Cast(a) => {
                let (from, to) = (self.instructions(self.ty(*a)), self.instructions(value.ty));
                vec![(Quantity::Choices, from.max(to))]
            }
            Op::Select { .. } => {
                let n = self.instructions(value.ty) * self.words(value.ty);
                vec![(Quantity::Choices, n)]
            }
            Op::Choose { cond, .. } => {
                let n = self.instructions(value.ty) * self.words(value.ty);
                tally.add(&self.mask(cond), 1.0);
                vec![(Quantity::Choices, n)]
            }
            Op::Shuffle { .. } | Op::LaneShift { .. } => {
                let n = self.instructions(value.ty) * self.words(value.ty);
                vec![(Quantity::Moves, n)]
            }
        };
        for (kind, amount) in kinds {
            tally[kind] += amount * self.emulated(value.ty);
        }
        tally
    }

    /// Halves are converted to floats of 32 bits and back.
    fn emulated(&self, ty: Scalar) -> f64 {
        match (ty, self.lanes) {
            (Scalar::F16 | Scalar::BF16, Lanes::Vectors { .. }) => 3.0,
            _ => 1.0,
        }
    }

    /// The cost of the mask of a condition. Comparisons that depend only on the block and the lane
    /// are hoisted out of all loops; positions are integers of 64 bits, one is computed and
    /// compared for each of the other comparisons.
    pub fn mask(&self, cond: &Cond) -> Tally {
        match cond {
            Cond::Const(_) => Tally::default(),
            Cond::Cmp(_, left, right) => {
                let mut dims: Vec<DimId> = left.dims();
                dims.extend(right.dims());
                if dims.iter().all(|dim| self.steady.contains(&dim.index())) {
                    Tally::default()
                } else if dims.iter().any(|dim| self.kernel.lane() == Some(*dim)) {
                    let n = 2.0 * self.instructions(Scalar::I64);
                    Tally::of(&[(Quantity::Masks, n)])
                } else {
                    Tally::of(&[(Quantity::UniformOps, 2.0)])
                }
            }
            Cond::And(parts) | Cond::Or(parts) => {
                let mut sum = Tally::default();
                for part in parts {
                    sum.add(&self.mask(part), 1.0);
                }
                sum
            }
            Cond::Not(inner) => self.mask(inner),
        }
    }

    fn sum(&self, ty: Scalar) -> (Quantity, f64) {
        let n = self.instructions(ty);
        match ty {
            Scalar::F64 => (Quantity::DoubleOps, n),
            Scalar::F16 | Scalar::BF16 | Scalar::F32 => (Quantity::FloatOps, n),
            Scalar::Bool => (Quantity::Choices, n),
            Scalar::I8
            | Scalar::I16
            | Scalar::I32
            | Scalar::I64
            | Scalar::U8
            | Scalar::U16
            | Scalar::U32
            | Scalar::U64 => (Quantity::IntOps, n * self.words(ty)),
        }
    }

    fn choice(&self, ty: Scalar) -> (Quantity, f64) {
        match ty {
            // On the units of the sums.
            Scalar::F64 => self.sum(ty),
            _ => (Quantity::Choices, self.instructions(ty) * self.words(ty)),
        }
    }

    fn unary(&self, op: UnOp, ty: Scalar) -> Vec<(Quantity, f64)> {
        let divide = self.instructions(ty) * self.double_width(ty);
        match op {
            UnOp::Neg => vec![self.sum(ty)],
            UnOp::Not | UnOp::Abs | UnOp::Floor | UnOp::Ceil => vec![self.choice(ty)],
            UnOp::Sqrt => vec![(Quantity::Divides, divide)],
            UnOp::Rsqrt => vec![(Quantity::Divides, 2.0 * divide)],
            // A polynomial on vectors takes about as long as two divisions.
            UnOp::Exp | UnOp::Log | UnOp::Sin | UnOp::Cos | UnOp::Tanh => {
                vec![(Quantity::Divides, 2.0 * divide)]
            }
        }
    }

    /// Divisions of 64 bits take twice as long.
    fn double_width(&self, ty: Scalar) -> f64 {
        if ty.bits() == 64 { 2.0 } else { 1.0 }
    }

    fn binary(&self, to: ValueId, op: BinOp, a: ValueId, b: ValueId) -> Vec<(Quantity, f64)> {
        let ty = self.ty(a);
        let n = self.instructions(ty);
        let elements = f64::from(self.kernel.lanes);
        match op {
            BinOp::Add | BinOp::Sub => {
                let (kind, n) = self.sum(ty);
                // One of two products is fused, the other stands alone.
                let both = self.fused[a.index()] && self.fused[b.index()];
                vec![(kind, if both { 2.0 * n } else { n })]
            }
            BinOp::Mul if self.fused[to.index()] => Vec::new(),
            BinOp::Mul if ty.is_float() => vec![self.sum(ty)],
            BinOp::Mul => vec![(Quantity::IntProducts, n * self.words(ty))],
            BinOp::Div if ty.is_float() => vec![(Quantity::Divides, n * self.double_width(ty))],
            BinOp::Div | BinOp::Rem | BinOp::Pow => vec![(Quantity::Calls, elements)],
            BinOp::Shl | BinOp::Shr => vec![(Quantity::IntOps, n * self.words(ty))],
            BinOp::Min
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
            | BinOp::BitXor => vec![self.choice(ty)],
        }
    }
}
