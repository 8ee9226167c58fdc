//! Results that are stored only while the next block runs: all of them are written.

use systola_back::cpu;
use systola_ir::form::{Cond, Form, Poly, Rel};
use systola_ir::kernel::{Deferred, Memory, NonTemporal, Program};
use systola_ir::target::Simd;
use systola_ir::{BinOp, Scalar};

use crate::common::build::{Build, input, launch, output, param, program, times};
use crate::common::folded;
use crate::common::run::{Call, bytes_f32, f32s, run};

const ROWS: i128 = 4;

/// y(r, c) = x(r + c) + 16, computed by 16 additions. A block is a vector of 16 columns of 4 rows,
/// and tests at the edge whether it may store.
fn tall_blocks(deferred: bool) -> Program {
    let mut p = program("tall", &["N", "M"]);
    let (n, m) = (param(0), param(1));
    let x = input(&mut p, "x", Scalar::F32, &[n.add(&m)]);
    let y = output(&mut p, "y", Scalar::F32, &[n.clone(), m.clone()]);
    let mut k = Build::new("tall", 16, 1);
    let lane = k.lane();
    let br = k.block("br", n.plus(ROWS - 1).floor_div(ROWS));
    let bc = k.block("bc", m.plus(15).floor_div(16));
    let (first, column) = (times(ROWS, &br), times(16, &bc));
    let c = column.add(&lane);
    let at_most = |form: Form, most: &Form| Cond::cmp(Rel::Le, form, most.clone());
    let inside = at_most(first.plus(ROWS), &n).and(at_most(column.plus(16), &m));
    let rows = |k: &mut Build, edge: bool| {
        for row in 0..ROWS {
            let r = first.plus(row);
            let when = if edge {
                at_most(r.plus(1), &n).and(at_most(c.plus(1), &m))
            } else {
                Cond::Const(true)
            };
            let from = vec![r.add(&c)];
            let mut sum = k.load_when(
                "x",
                Scalar::F32,
                Memory::Global(x),
                &from,
                when.clone(),
                None,
            );
            let one = k.int(Scalar::F32, 1);
            for _ in 0..16 {
                sum = k.binary("sum", BinOp::Add, sum, one);
            }
            k.store_when(Memory::Global(y), &[r, c.clone()], when, sum);
        }
    };
    k.branch(inside, |k| rows(k, false), |k| rows(k, true));
    let mut kernel = k.finish();
    let bytes = n
        .scale(&Poly::constant(4))
        .unwrap()
        .mul(&m)
        .unwrap()
        .unwrap();
    kernel.hints.non_temporal.push(NonTemporal {
        buffer: y,
        when: Cond::cmp(Rel::Ge, bytes, 32 << 20),
    });
    kernel.hints.outlined_edge = true;
    kernel.hints.deferred = deferred.then_some(Deferred {
        buffer: y,
        group_size: 2,
    });
    launch(&mut p, kernel);
    p
}

fn source(program: &Program) -> String {
    cpu::emit(&folded(program), Simd::Avx512).unwrap().source
}

#[test]
fn all_results_arrive() {
    let p = tall_blocks(true);
    let text = source(&p);
    assert_eq!(text.matches(" keep_f32x16(&y").count(), 4, "{text}");
    // Once in the next block, and once after the last block.
    assert_eq!(text.matches(" leave_f32x16(&y").count(), 8, "{text}");
    // Large arrays, with rows that begin at cache lines and with some that do not; there are edge
    // blocks below and at the right. Sizes are given at run time, or constants.
    let sizes = [(2054i64, 4096i64), (2048, 4104)];
    let constant = [false, true];
    for ((n, m), fixed) in sizes.iter().flat_map(|s| constant.map(|fixed| (*s, fixed))) {
        let mut p = p.clone();
        if fixed {
            p.params[0].fixed = Some(n.into());
            p.params[1].fixed = Some(m.into());
        }
        let x: Vec<f32> = (0..n + m).map(|i| (i * 7 % 1000) as f32).collect();
        let y = vec![0u8; (n * m * 4) as usize];
        let blocks = (n + 3) / 4 * ((m + 15) / 16);
        let after = run(&p, &[n, m], &[bytes_f32(&x), y], &[Call::of(0, blocks)]);
        let y = f32s(&after[1]);
        for r in 0..n {
            for c in 0..m {
                let expected = x[(r + c) as usize] + 16.0;
                assert_eq!(y[(r * m + c) as usize], expected, "{r} {c} of {n} × {m}");
            }
        }
    }
}

#[test]
fn other_results_are_stored_at_once() {
    let text = source(&tall_blocks(false));
    assert!(!text.contains("keep_"), "{text}");
    assert!(text.contains("stream_f32x16"), "{text}");
}
