//! Which lines of inputs are prefetched for later blocks.

use crate::build::{Build, input, launch, num, output, param, program, times};
use systola_ir::form::Form;
use systola_ir::kernel::{Memory, Program, Shape, VarKind};
use systola_ir::{BinOp, Scalar};

use crate::source;

/// y(r, c) = sum over q of x(r + p, c + q), rows `0..rows` of p added up, for the given number of
/// taps q: a block is a vector of 16 elements of a row of M, and blocks follow each other along the
/// row.
fn sums(rows: i128, taps: &Form, width: Form) -> Program {
    let mut p = program("sums", &["N", "M", "T"]);
    let n = param(0);
    let x = input(&mut p, "x", Scalar::F32, &[n.plus(rows), width.add(taps)]);
    let y = output(&mut p, "y", Scalar::F32, &[n.clone(), width.clone()]);
    let mut k = Build::new("sums", 16, 1);
    let lane = k.lane();
    let r = k.block("r", n);
    let b = k.block("b", width.floor_div(16));
    let c = times(16, &b).add(&lane);
    let sum = k.reg("sum", Scalar::F32, Shape::Varying);
    let zero = k.int(Scalar::F32, 0);
    k.set(sum, zero);
    let q = k.var("q", VarKind::Loop);
    k.for_loop(q, vec![num(0)], vec![taps.clone()], 1, |k| {
        for row in 0..rows {
            let at = [r.plus(row), c.add(&Form::from(q))];
            let x = k.load("x", Scalar::F32, Memory::Global(x), &at);
            let old = k.get(sum);
            let new = k.binary("sum", BinOp::Add, old, x);
            k.set(sum, new);
        }
    });
    let last = k.get(sum);
    k.store(Memory::Global(y), &[r, c], last);
    launch(&mut p, k.finish());
    p
}

/// The arguments of all prefetches, in order.
fn requests(program: &Program) -> Vec<String> {
    let source = source(program);
    let calls = source.lines().map(str::trim);
    calls
        .filter_map(|l| l.strip_prefix("prefetch_l1(x, "))
        .map(|l| l.trim_end_matches(");").to_string())
        .collect()
}

#[test]
fn the_line_that_a_later_block_reads_first() {
    // 100 operations to the one new line of a row, so that 8192 of them lie 81 blocks ahead. The
    // vector of the last tap ends at column 16 b + 114.
    let ahead = 16 * 81;
    assert_eq!(
        requests(&sums(1, &num(100), param(1))),
        [format!("(r * x_stride + 16 * b + {}) * 4", ahead + 99)]
    );
}

#[test]
fn nothing_for_boxes_of_several_rows() {
    assert!(requests(&sums(3, &num(100), param(1))).is_empty());
}

#[test]
fn nothing_for_little_work() {
    assert!(requests(&sums(1, &num(60), param(1))).is_empty());
}

#[test]
fn nothing_where_the_footprint_depends_on_the_sizes() {
    assert!(requests(&sums(1, &param(2), param(1))).is_empty());
}

#[test]
fn nothing_for_an_array_that_is_small() {
    let mut p = sums(1, &num(100), num(1 << 20));
    assert_eq!(requests(&p).len(), 1);
    p.params[0].fixed = Some(1);
    assert!(requests(&p).is_empty());
}
