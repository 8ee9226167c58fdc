//! How many registers a thread needs: the largest number of words that are live at once. Addresses
//! do not count.

use crate::kernel::Kernel;
use crate::kernel::live::{lane_words, most_alive};

/// The largest number of 32-bit registers that the values and registers of the kernel occupy at
/// once.
pub fn pressure(kernel: &Kernel) -> u32 {
    most_alive(kernel, &|holder| lane_words(kernel, holder))
}

#[cfg(test)]
mod tests {
    use crate::form::Form;
    use crate::kernel::{Access, Memory, Op, Reg, Shape, Stmt, Value, Var, VarKind};
    use crate::{BinOp, BufferId, DimId, Literal, RegId, Scalar, ValueId};

    use super::*;

    fn kernel(ty: Scalar, values: usize, body: Vec<Stmt>) -> Kernel {
        let value = |_| Value {
            name: "v".to_string(),
            ty,
            shape: Shape::Varying,
        };
        Kernel {
            hints: Default::default(),
            name: "k".to_string(),
            lanes: 32,
            warps: 1,
            vars: vec![Var {
                name: "i".to_string(),
                kind: VarKind::Loop,
            }],
            shared: Vec::new(),
            regs: vec![Reg {
                name: "r".to_string(),
                ty,
                shape: Shape::Varying,
            }],
            values: (0..values).map(value).collect(),
            body,
        }
    }

    fn constant(value: u32) -> Stmt {
        Stmt::Let(ValueId(value), Op::Lit(Literal::Float(1.0)))
    }

    fn sum(value: u32, a: u32, b: u32) -> Stmt {
        Stmt::Let(
            ValueId(value),
            Op::Binary(BinOp::Add, ValueId(a), ValueId(b)),
        )
    }

    fn store(value: u32) -> Stmt {
        Stmt::Store {
            to: Access::new(Memory::Global(BufferId(0)), vec![Form::zero()]),
            value: ValueId(value),
        }
    }

    #[test]
    fn values_count_from_their_making_to_their_last_use() {
        // Three values are live at once, then one.
        let body = || {
            vec![
                constant(0),
                constant(1),
                constant(2),
                sum(3, 0, 1),
                sum(4, 3, 2),
                store(4),
            ]
        };
        assert_eq!(pressure(&kernel(Scalar::F32, 5, body())), 3);
        assert_eq!(pressure(&kernel(Scalar::F64, 5, body())), 6);
        assert_eq!(pressure(&kernel(Scalar::Bool, 5, body())), 0);
    }

    #[test]
    fn a_register_is_live_across_iterations() {
        let iteration = vec![
            Stmt::Let(ValueId(0), Op::Get(RegId(0))),
            constant(1),
            sum(2, 0, 1),
            Stmt::Set(RegId(0), ValueId(2)),
        ];
        let body = vec![
            constant(3),
            Stmt::For {
                var: DimId(0),
                lo: vec![Form::zero()],
                hi: vec![Form::from(9)],
                step: 1,
                body: iteration,
            },
            store(3),
        ];
        // The register or the value read from it, the addend, and the value used after the loop.
        assert_eq!(pressure(&kernel(Scalar::F32, 4, body)), 3);
    }
}
