//! Snapshots of printed kernels.

use systola_back::cpu;
use systola_ir::form::{Cond, Poly, Rel};
use systola_ir::kernel::{Access, BufferKind, Memory, Op, Program, Shape, Stmt, VarKind};
use systola_ir::target::Simd;
use systola_ir::{BinOp, Literal, ParamId, Scalar};

use crate::common::build::{Build, buffer, input, launch, num, output, param, program, times};
use crate::common::folded;

fn source(program: &Program) -> String {
    cpu::emit(&folded(program), Simd::Avx512).unwrap().source
}

/// y = a·x + y, with sixteen elements per block and a masked last block.
fn saxpy() -> Program {
    let mut p = program("saxpy", &["N"]);
    let n = param(0);
    let a = input(&mut p, "a", Scalar::F32, &[]);
    let x = input(&mut p, "x", Scalar::F32, std::slice::from_ref(&n));
    let y = output(&mut p, "y", Scalar::F32, std::slice::from_ref(&n));
    let mut k = Build::new("saxpy", 16, 1);
    let lane = k.lane();
    let b = k.block("b", n.plus(15).floor_div(16));
    let i = times(16, &b).add(&lane);
    let inside = Cond::cmp(Rel::Lt, i.clone(), n);
    k.comment("The last block has lanes past the end.");
    let a = k.load("a", Scalar::F32, Memory::Global(a), &[]);
    let xs = k.load_when(
        "x",
        Scalar::F32,
        Memory::Global(x),
        std::slice::from_ref(&i),
        inside.clone(),
        None,
    );
    let ys = k.load_when(
        "y",
        Scalar::F32,
        Memory::Global(y),
        std::slice::from_ref(&i),
        inside.clone(),
        None,
    );
    let ax = k.binary("ax", BinOp::Mul, a, xs);
    let sum = k.binary("y", BinOp::Add, ax, ys);
    k.store_when(Memory::Global(y), &[i], inside, sum);
    launch(&mut p, k.finish());
    p
}

#[test]
fn saxpy_with_a_masked_tail() {
    insta::assert_snapshot!(source(&saxpy()));
}

#[test]
fn three_points_by_lane_shifts() {
    let mut p = program("blur", &["N", "M"]);
    let (n, m) = (param(0), param(1));
    let axes = [(num(0), n.clone()), (num(-1), times(8, &m).plus(8))];
    let u = buffer(
        &mut p,
        "u",
        Scalar::F32,
        BufferKind::Input { data: None },
        &axes,
    );
    let v = output(&mut p, "v", Scalar::F32, &[n.clone(), times(8, &m)]);
    let mut k = Build::new("blur", 8, 1);
    let lane = k.lane();
    let i = k.block("i", n);
    let before = k.reg("before", Scalar::F32, Shape::Varying);
    let here = k.reg("here", Scalar::F32, Shape::Varying);
    let left = k.load(
        "u",
        Scalar::F32,
        Memory::Global(u),
        &[i.clone(), lane.plus(-1)],
    );
    k.set(before, left);
    let j = k.var("j", VarKind::Loop);
    let at = times(8, &j.into()).add(&lane);
    k.for_loop(j, vec![num(0)], vec![m], 1, |k| {
        let next = k.load(
            "u",
            Scalar::F32,
            Memory::Global(u),
            &[i.clone(), at.plus(7)],
        );
        k.set(here, next);
        let low = k.get(before);
        let high = k.get(here);
        let shift = |by| Op::LaneShift {
            low: Some(low),
            high: Some(high),
            by,
        };
        let centre = k.op("centre", Scalar::F32, Shape::Varying, shift(7));
        let right = k.op("right", Scalar::F32, Shape::Varying, shift(6));
        let sum = k.binary("sum", BinOp::Add, low, centre);
        let sum = k.binary("sum", BinOp::Add, sum, right);
        let third = k.lit(Scalar::F32, Literal::Float(1.0 / 3.0));
        let mean = k.binary("mean", BinOp::Mul, sum, third);
        k.store(Memory::Global(v), &[i.clone(), at.clone()], mean);
        let high = k.get(here);
        k.set(before, high);
    });
    launch(&mut p, k.finish());
    insta::assert_snapshot!(source(&p));
}

#[test]
fn a_table_and_a_choice() {
    let mut p = program("score", &["N"]);
    let n = param(0);
    let s = input(&mut p, "s", Scalar::U8, std::slice::from_ref(&n));
    let t = input(&mut p, "table", Scalar::I16, &[num(4), num(4)]);
    let r = output(&mut p, "r", Scalar::I16, std::slice::from_ref(&n));
    let mut k = Build::new("score", 16, 1);
    let lane = k.lane();
    let b = k.block("b", n.floor_div(16));
    let i = times(16, &b).add(&lane);
    let x = k.load("x", Scalar::U8, Memory::Global(s), std::slice::from_ref(&i));
    let three = k.int(Scalar::U8, 3);
    let low = k.binary("low", BinOp::BitAnd, x, three);
    let two = k.int(Scalar::U8, 2);
    let high = k.binary("high", BinOp::Shr, x, two);
    let lookup = Op::Lookup {
        memory: Memory::Global(t),
        index: vec![low, high],
    };
    let score = k.op("score", Scalar::I16, Shape::Varying, lookup);
    let zero = k.int(Scalar::I16, 0);
    let best = k.binary("best", BinOp::Max, score, zero);
    let even = Cond::cmp(Rel::Eq, i.modulo(3), num(0));
    let chosen = k.choose(even, best, score);
    let negative = k.binary("negative", BinOp::Lt, chosen, zero);
    let low = k.unary(systola_ir::UnOp::Neg, chosen);
    let result = k.select(negative, low, chosen);
    k.store(Memory::Global(r), &[i], result);
    launch(&mut p, k.finish());
    insta::assert_snapshot!(source(&p));
}

#[test]
fn a_sum_through_shared_memory() {
    let mut p = program("total", &["N", "K"]);
    let (n, kk) = (param(0), param(1));
    let x = input(&mut p, "x", Scalar::F64, &[n.clone(), kk.clone(), num(8)]);
    let y = output(&mut p, "y", Scalar::F64, std::slice::from_ref(&n));
    let mut k = Build::new("total", 8, 1);
    let lane = k.lane();
    let i = k.block("i", n);
    let tile = k.shared(
        "tile",
        Scalar::F64,
        &[Poly::param(ParamId(1)), Poly::constant(8)],
    );
    let acc = k.reg("acc", Scalar::F64, Shape::Varying);
    let j = k.var("j", VarKind::Loop);
    k.comment("Bring the rows in.");
    k.for_loop(j, vec![num(0)], vec![kk.clone()], 1, |k| {
        k.push(Stmt::Copy {
            to: Access::new(Memory::Shared(tile), vec![j.into(), lane.clone()]),
            from: Access::new(Memory::Global(x), vec![i.clone(), j.into(), lane.clone()]),
            width: 1,
            engine: systola_ir::mapping::Engine::Plain,
        });
    });
    k.push(Stmt::Barrier);
    let zero = k.lit(Scalar::F64, Literal::Float(0.0));
    k.set(acc, zero);
    let j = k.var("j", VarKind::Loop);
    k.for_loop(j, vec![num(0)], vec![kk], 1, |k| {
        let row = k.load(
            "row",
            Scalar::F64,
            Memory::Shared(tile),
            &[j.into(), lane.clone()],
        );
        let so_far = k.get(acc);
        let sum = k.binary("sum", BinOp::Add, so_far, row);
        k.set(acc, sum);
    });
    k.comment("Halve until one lane has all.");
    let mut sum = k.get(acc);
    for by in [4, 2, 1] {
        let from = lane.plus(by).modulo(8);
        let op = Op::Shuffle { value: sum, from };
        let other = k.op("other", Scalar::F64, Shape::Varying, op);
        sum = k.binary("sum", BinOp::Add, sum, other);
    }
    let first = Cond::cmp(Rel::Eq, lane, num(0));
    k.store_when(Memory::Global(y), &[i], first, sum);
    launch(&mut p, k.finish());
    insta::assert_snapshot!(source(&p));
}
