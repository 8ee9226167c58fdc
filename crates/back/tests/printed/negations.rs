//! Negations of operands of a three-operand maximum: in code for GPUs, ptxas 13.0 must not
//! recognise them.

use systola_back::{cpu, cuda};
use systola_ir::kernel::{Memory, Program, VarKind};
use systola_ir::target::Simd;
use systola_ir::{BinOp, Scalar, UnOp};

use crate::common::build::{Build, input, launch, num, output, param, program, times};
use crate::common::folded;

/// y = the maximum of -x, 0 - x and x, for columns from the maximum of -t, 1 - t and -n - m to 8.
fn negations() -> Program {
    let mut p = program("negations", &["N", "M", "T"]);
    let (n, m, t) = (param(0), param(1), param(2));
    let x = input(&mut p, "x", Scalar::I32, &[num(64)]);
    let y = output(&mut p, "y", Scalar::I32, &[num(64)]);
    let mut k = Build::new("negations", 32, 1);
    let lane = k.lane();
    let b = k.block("b", num(1));
    let c = k.var("c", VarKind::Loop);
    let from = vec![t.neg(), t.neg().plus(1), n.add(&m).neg()];
    k.for_loop(c, from, vec![num(8)], 1, |k| {
        let at = [times(32, &b).add(&lane)];
        let x = k.load("x", Scalar::I32, Memory::Global(x), &at);
        let zero = k.int(Scalar::I32, 0);
        let minus = k.unary(UnOp::Neg, x);
        let less = k.binary("less", BinOp::Sub, zero, x);
        let greater = k.binary("greater", BinOp::Max, minus, less);
        let greatest = k.binary("greatest", BinOp::Max, greater, x);
        k.store(Memory::Global(y), &at, greatest);
    });
    launch(&mut p, k.finish());
    p
}

#[test]
fn gpus_negate_in_a_form_ptxas_does_not_recognise() {
    let source = cuda::emit(&folded(&negations())).unwrap().source;
    assert!(
        source.contains("max_index(max_index(minus_index(T), 1 - T), minus_index(N + M))"),
        "{source}"
    );
    assert_eq!(source.matches("neg_i32(x").count(), 2, "{source}");
    assert!(!source.contains("sub_i32"), "{source}");
}

#[test]
fn cpus_negate_directly() {
    let source = cpu::emit(&folded(&negations()), Simd::Avx512)
        .unwrap()
        .source;
    assert!(!source.contains("minus"), "{source}");
}
