//! Order of statements, registers, loops, branches, names and unsupported programs.

use systola_back::{Error, cpu};
use systola_ir::form::{Cond, Form, Rel};
use systola_ir::kernel::{BufferKind, Memory, Program, Shape, VarKind};
use systola_ir::target::Simd;
use systola_ir::{BinOp, Scalar};

use crate::common::build::{Build, buffer, input, launch, num, output, param, program, times};
use crate::common::folded;
use crate::common::run::{Call, bytes_i32, i32s, run};

/// A value stays as it was assigned, whatever is stored or set before it is read.
#[test]
fn values_do_not_change_after_assignment() {
    for lanes in [1u32, 8] {
        let l = i128::from(lanes);
        let mut p = program("order", &[]);
        let x = buffer(
            &mut p,
            "x",
            Scalar::I32,
            BufferKind::Output { fill: None },
            &[(num(0), num(2 * l))],
        );
        let y = output(&mut p, "y", Scalar::I32, &[num(l)]);
        let mut k = Build::new("order", lanes, 1);
        let lane = k.lane();
        let (a, b) = (
            k.reg("a", Scalar::I32, Shape::Varying),
            k.reg("b", Scalar::I32, Shape::Varying),
        );
        let low = k.load(
            "low",
            Scalar::I32,
            Memory::Global(x),
            std::slice::from_ref(&lane),
        );
        let high = k.load("high", Scalar::I32, Memory::Global(x), &[lane.plus(l)]);
        // A value that is read once, after the element it was loaded from is overwritten.
        let early = k.load(
            "early",
            Scalar::I32,
            Memory::Global(x),
            std::slice::from_ref(&lane),
        );
        // Swap in memory.
        k.store(Memory::Global(x), std::slice::from_ref(&lane), high);
        k.store(Memory::Global(x), &[lane.plus(l)], low);
        // Swap in registers, three times.
        k.set(a, low);
        k.set(b, high);
        let t = k.var("t", VarKind::Loop);
        k.for_loop(t, vec![num(0)], vec![num(3)], 1, |k| {
            let (old_a, old_b) = (k.get(a), k.get(b));
            k.set(a, old_b);
            k.set(b, old_a);
        });
        let (now_a, now_b) = (k.get(a), k.get(b));
        let ten = k.int(Scalar::I32, 10);
        let tens = k.binary("tens", BinOp::Mul, now_a, ten);
        let zero = k.int(Scalar::I32, 0);
        k.set(a, zero);
        let both = k.binary("both", BinOp::Add, tens, now_b);
        let thousand = k.int(Scalar::I32, 1000);
        let early = k.binary("early", BinOp::Mul, early, thousand);
        let both = k.binary("both", BinOp::Add, both, early);
        k.store(Memory::Global(y), &[lane], both);
        launch(&mut p, k.finish());
        let n = lanes as i32;
        let xs: Vec<i32> = (0..2 * n).collect();
        let data = [bytes_i32(&xs), bytes_i32(&vec![0; lanes as usize])];
        let after = run(&p, &[], &data, &[Call::of(0, 1)]);
        let exchanged: Vec<i32> = (n..2 * n).chain(0..n).collect();
        assert_eq!(i32s(&after[0]), exchanged);
        let expect: Vec<i32> = (0..n).map(|l| 1000 * l + 10 * (l + n) + l).collect();
        assert_eq!(i32s(&after[1]), expect);
    }
}

/// Loops with several bounds and steps, branches without an else, launch arguments, a grid with two
/// coordinates.
#[test]
fn control_visits_what_it_should() {
    let mut p = program("control", &["N", "M"]);
    p.params[1].fixed = Some(3);
    let (n, m) = (param(0), param(1));
    let y = output(&mut p, "y", Scalar::I32, &[n.clone(), m.clone()]);
    let mut k = Build::new("control", 1, 1);
    let h = Form::from(k.var("h", VarKind::Host));
    let range = |lo: Vec<Form>, hi: Vec<Form>| VarKind::Block { lo, hi };
    let i = Form::from(k.var("i", range(vec![num(-5), h.clone()], vec![n.clone()])));
    let j = Form::from(k.var("j", range(vec![num(1)], vec![m.plus(1), n.plus(9)])));
    let count = k.reg("count", Scalar::I32, Shape::Uniform);
    let zero = k.int(Scalar::I32, 0);
    k.set(count, zero);
    let t = k.var("t", VarKind::Loop);
    let lo = vec![i.clone(), num(2)];
    let hi = vec![times(4, &j), n.plus(4).floor_div(3).plus(6)];
    k.for_loop(t, lo.clone(), hi.clone(), 2, |k| {
        let odd = Cond::cmp(Rel::Eq, Form::from(t).add(&i).modulo(3), num(1));
        let add = |k: &mut Build, c| {
            let so_far = k.get(count);
            let c = k.int(Scalar::I32, c);
            let more = k.binary("more", BinOp::Add, so_far, c);
            k.set(count, more);
        };
        k.branch(odd, |_| {}, |k| add(k, 1));
        let edge = Cond::cmp(Rel::Eq, i.clone(), j.clone());
        k.branch(edge, |k| add(k, 100), |k| add(k, 10_000));
    });
    let total = k.get(count);
    k.store(Memory::Global(y), &[i, j.plus(-1)], total);
    launch(&mut p, k.finish());
    let (size, columns, first) = (5i64, 3i64, 2i64);
    let call = Call {
        kernel: 0,
        args: vec![first],
        blocks: (size - first) * columns,
        at_once: false,
    };
    let data = [bytes_i32(&vec![-1; (size * columns) as usize])];
    let after = run(&p, &[size, columns], &data, &[call]);
    let mut expect = vec![-1; (size * columns) as usize];
    for i in first..size {
        for j in 1..=columns {
            let mut sum = 0;
            let mut t = i.max(2);
            while t < (4 * j).min((size + 4).div_euclid(3) + 6) {
                sum += i32::from((t + i).rem_euclid(3) != 1);
                sum += if i == j { 100 } else { 10_000 };
                t += 2;
            }
            expect[(i * columns + j - 1) as usize] = sum;
        }
    }
    assert_eq!(i32s(&after[0]), expect);
}

/// Names that have another meaning in C.
#[test]
fn awkward_names_compile() {
    let mut p = program("while \\", &["for", "linux"]);
    let x = input(&mut p, "int", Scalar::I32, &[param(0)]);
    let y = output(&mut p, "block", Scalar::I32, &[param(0)]);
    for name in ["exp", "main", "exp"] {
        let mut k = Build::new(name, 4, 1);
        let lane = k.lane();
        let b = k.block("sizes", param(0).floor_div(4));
        let at = times(4, &b).add(&lane);
        k.comment("A comment that ends in a backslash \\\nand has two lines");
        let r = k.reg("splat_i32x4", Scalar::I32, Shape::Varying);
        let v = k.load(
            "h'",
            Scalar::I32,
            Memory::Global(x),
            std::slice::from_ref(&at),
        );
        let w = k.binary("h'", BinOp::Mul, v, v);
        k.set(r, w);
        let w = k.get(r);
        let u = k.binary("σ", BinOp::Add, w, v);
        let u = k.binary("NULL", BinOp::Mul, u, u);
        k.store(Memory::Global(y), &[at], u);
        launch(&mut p, k.finish());
    }
    let xs: Vec<i32> = (0..8).collect();
    let data = [bytes_i32(&xs), bytes_i32(&[0; 8])];
    let calls = [Call::of(0, 2), Call::of(1, 2), Call::of(2, 2)];
    let after = run(&p, &[8, 0], &data, &calls);
    let expect: Vec<i32> = xs.iter().map(|v| (v * v + v) * (v * v + v)).collect();
    assert_eq!(i32s(&after[1]), expect);
}

fn refusal(program: &Program) -> String {
    match cpu::emit(&folded(program), Simd::Avx512) {
        Err(error @ Error::Unsupported { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn unsupported_programs_are_refused() {
    let mut p = program("half", &[]);
    let x = input(&mut p, "x", Scalar::F16, &[num(16)]);
    let y = output(&mut p, "y", Scalar::F16, &[num(16)]);
    let mut k = Build::new("copy", 16, 1);
    let lane = k.lane();
    let v = k.load(
        "v",
        Scalar::F16,
        Memory::Global(x),
        std::slice::from_ref(&lane),
    );
    k.store(Memory::Global(y), &[lane], v);
    launch(&mut p, k.finish());
    assert_eq!(
        refusal(&p),
        "kernel `copy`: this target has no arithmetic on f16; use f32"
    );

    let mut p = program("odd", &[]);
    launch(&mut p, Build::new("odd", 3, 1).finish());
    assert!(refusal(&p).contains("a warp of 3 lanes"));

    let mut p = program("apart", &[]);
    launch(&mut p, Build::new("apart", 4, 2).finish());
    assert!(refusal(&p).contains("a block of 2 warps"));

    let mut p = program("far", &[]);
    let y = output(&mut p, "y", Scalar::I32, &[num(1 << 70)]);
    let mut k = Build::new("far", 1, 1);
    let zero = k.int(Scalar::I32, 0);
    k.store(Memory::Global(y), &[num(1 << 69)], zero);
    launch(&mut p, k.finish());
    assert_eq!(
        cpu::emit(&folded(&p), Simd::Portable),
        Err(Error::Overflow {
            kernel: "far".to_string()
        })
    );
}

#[test]
fn the_same_program_gives_the_same_bytes() {
    let mut p = program("twice", &["N"]);
    let y = output(&mut p, "y", Scalar::I32, &[param(0)]);
    let mut k = Build::new("twice", 8, 1);
    let lane = k.lane();
    let at = k.index(&lane.modulo(3));
    let v = k.cast(Scalar::I32, at);
    k.store(Memory::Global(y), &[lane], v);
    launch(&mut p, k.finish());
    let emit = || cpu::emit(&folded(&p), Simd::Avx2).unwrap();
    assert_eq!(emit(), emit());
}
