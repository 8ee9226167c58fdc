//! Stream prefetches of kernels that walk along several rows, and stores of data that is read once
//! or by later launches.

use crate::build::{Build, buffer, input, launch, num, output, param, program, times};
use systola_ir::form::Form;
use systola_ir::kernel::{BufferKind, Host, Memory, Program, VarKind};
use systola_ir::{BinOp, Scalar};

use crate::source;

/// y(r, c) = sum over p < taps of w(p) x(r + p, c), in blocks of 4 rows: blocks follow each other
/// along the rows, or each goes along them in a loop.
fn stencil(taps: i128, in_loop: bool) -> Program {
    let mut p = program("stencil", &["N", "M"]);
    let (n, m) = (param(0), param(1));
    let x = input(&mut p, "x", Scalar::F32, &[n.plus(taps - 1), m.clone()]);
    let w = input(&mut p, "w", Scalar::F32, &[num(taps)]);
    let y = output(&mut p, "y", Scalar::F32, &[n.clone(), m.clone()]);
    let mut k = Build::new("stencil", 16, 1);
    let lane = k.lane();
    let r = times(4, &k.block("r", n.floor_div(4)));
    let columns = m.floor_div(16);
    let rows = |k: &mut Build, b: &Form| {
        let c = times(16, b).add(&lane);
        for row in 0..4 {
            let mut sum = k.int(Scalar::F32, 0);
            for tap in 0..taps {
                let at = [r.plus(row + tap), c.clone()];
                let x = k.load("x", Scalar::F32, Memory::Global(x), &at);
                let w = k.load("w", Scalar::F32, Memory::Global(w), &[num(tap)]);
                let product = k.binary("product", BinOp::Mul, w, x);
                sum = k.binary("sum", BinOp::Add, sum, product);
            }
            k.store(Memory::Global(y), &[r.plus(row), c.clone()], sum);
        }
    };
    if in_loop {
        let b = k.var("b", VarKind::Loop);
        k.for_loop(b, vec![num(0)], vec![columns], 1, |k| {
            rows(k, &Form::from(b))
        });
    } else {
        let b = k.block("b", columns);
        rows(&mut k, &b);
    }
    launch(&mut p, k.finish());
    p
}

/// The arguments of all prefetches, in order.
fn requests(source: &str) -> Vec<&str> {
    let calls = source.lines().map(str::trim);
    let calls = calls.filter_map(|l| l.strip_prefix("prefetch_l2(x, "));
    calls.map(|l| l.trim_end_matches(");")).collect()
}

#[test]
fn lines_of_the_rows_that_no_earlier_block_has_read() {
    // Of six rows the first two were the last of the previous block. 32 lines are in flight, eight
    // of each row.
    let row = |r: i128| format!("((4 * r + {r}) * M + 16 * b + 128) * 4");
    for in_loop in [false, true] {
        let source = source(&stencil(3, in_loop));
        assert_eq!(requests(&source), [row(2), row(3), row(4), row(5)]);
    }
}

#[test]
fn nothing_for_an_array_that_is_small() {
    let mut p = stencil(3, true);
    for size in &mut p.params {
        size.fixed = Some(1024);
    }
    assert!(requests(&source(&p)).is_empty());
}

#[test]
fn few_weights_are_read_before_the_first_block() {
    let few = source(&stencil(12, true));
    let blocks = few.find("for (int64_t block").unwrap();
    assert_eq!(few.matches("= w[").count(), 12);
    assert!(few.rfind("= w[").unwrap() < blocks);
    let many = source(&stencil(13, true));
    let blocks = many.find("for (int64_t block").unwrap();
    assert!(many.find("w[0]").unwrap() > blocks);
}

/// A sweep, of each launch or in each iteration of a loop: kept(t + 1 mod 2, c) = x + kept(t +
/// `back` mod 2, c).
fn sweep(back: i128, level: VarKind) -> Program {
    let mut p = program("sweep", &["N"]);
    let n = param(0);
    let x = input(&mut p, "x", Scalar::F32, std::slice::from_ref(&n));
    let kept = buffer(
        &mut p,
        "kept",
        Scalar::F32,
        BufferKind::Temporary,
        &[(num(0), num(2)), (num(0), n.clone())],
    );
    let mut k = Build::new("sweep", 16, 1);
    let lane = k.lane();
    let c = times(16, &k.block("b", n.floor_div(16))).add(&lane);
    let is_loop = level == VarKind::Loop;
    let var = k.var("t", level);
    let body = |k: &mut Build| {
        let t = Form::from(var);
        let x = k.load(
            "x",
            Scalar::F32,
            Memory::Global(x),
            std::slice::from_ref(&c),
        );
        let at = [t.plus(back).modulo(2), c.clone()];
        let old = k.load("old", Scalar::F32, Memory::Global(kept), &at);
        let sum = k.binary("sum", BinOp::Add, x, old);
        k.store(Memory::Global(kept), &[t.plus(1).modulo(2), c.clone()], sum);
    };
    if is_loop {
        k.for_loop(var, vec![num(0)], vec![num(8)], 1, body);
    } else {
        body(&mut k);
    }
    launch(&mut p, k.finish());
    if let (false, Some(Host::Launch { args, .. })) = (is_loop, p.body.last_mut()) {
        args.push(num(0));
    }
    p
}

#[test]
fn what_the_next_launch_reads_bypasses_the_caches() {
    assert!(source(&sweep(0, VarKind::Host)).contains("stream_f32x16(&kept"));
    assert!(!source(&sweep(1, VarKind::Host)).contains("stream_"));
}

#[test]
fn what_the_next_iteration_reads_does_not() {
    assert!(!source(&sweep(0, VarKind::Loop)).contains("stream_"));
}
