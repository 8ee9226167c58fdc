//! Points per second, for people: `cargo test --release -p systola-interp --test systems -- --ignored
//! --nocapture`.

use std::time::Instant;

use systola_interp::Tensor;
use systola_ir::system::{Combine, Expr};
use systola_ir::{BinOp, Cond, Form, Scalar};

use crate::builder::*;

fn time(name: &str, points: u64, f: impl FnOnce()) {
    let start = Instant::now();
    f();
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{name}: {points} points in {seconds:.2} s, {:.2} M/s",
        points as f64 / seconds / 1e6
    );
}

#[test]
#[ignore = "measures time"]
fn points_per_second() {
    let conv = conv1d(Scalar::F32);
    let params = [500_000, 8];
    let x = conv.random(systola_ir::InputId(0), &params);
    let w = conv.random(systola_ir::InputId(1), &params);
    time(
        "convolution with forwarding, 2 variables",
        8_000_000,
        || {
            conv.run(&params, &[("x", &x), ("w", &w)]).unwrap();
        },
    );

    let mut b = new("core", &["C", "Q"]);
    let c = b.dim("c", 0, param(0));
    let q = b.bound("q", 0, param(1));
    b.system.inputs = conv.system.inputs.clone();
    let (xi, wi) = (systola_ir::InputId(0), systola_ir::InputId(1));
    let term = mul(
        read(xi, &[c.add(&Form::from(q))]),
        read(wi, &[Form::from(q)]),
    );
    let z = b.var(
        "Z",
        Scalar::F32,
        reduce(Combine::Op(BinOp::Add), &[q], term),
    );
    let value = b.here(z);
    b.output(
        "z",
        Scalar::F32,
        &[param(0)],
        vec![write(value, &[c], Cond::TRUE)],
    );
    time("convolution in core form, terms", 4_000_000, || {
        b.run(&params, &[("x", &x), ("w", &w)]).unwrap();
    });

    let mut b = new("chain", &["N"]);
    let i = b.dim("i", 0, param(0));
    let v = b.next_var();
    let one = Expr::int(Scalar::I64, 1);
    b.var(
        "V",
        Scalar::I64,
        guard(
            eq(i.clone(), 0),
            one.clone(),
            add(at(v, &[i.plus(-1)]), one),
        ),
    );
    let (value, last) = (b.here(v), eq(i, param(0).plus(-1)));
    b.output("v", Scalar::I64, &[], vec![write(value, &[], last)]);
    time("chain from its far end", 3_000_000, || {
        b.run(&[3_000_000], &[]).unwrap();
    });

    // Five-point stencil over time.
    let mut b = new("stencil", &["T", "N"]);
    let (t, y, x) = (
        b.dim("t", 0, param(0)),
        b.dim("y", 0, param(1)),
        b.dim("x", 0, param(1)),
    );
    let a = b.input("a", Scalar::F32, &[param(1), param(1)]);
    let v = b.next_var();
    let last = param(1).plus(-1);
    let boundary = Cond::Or(vec![
        eq(t.clone(), 0),
        eq(y.clone(), 0),
        eq(x.clone(), 0),
        eq(y.clone(), last.clone()),
        eq(x.clone(), last),
    ]);
    let near = |dy, dx| at(v, &[t.plus(-1), y.plus(dy), x.plus(dx)]);
    let sum = [near(-1, 0), near(1, 0), near(0, -1), near(0, 1)]
        .into_iter()
        .fold(near(0, 0), add);
    let body = guard(
        boundary,
        read(a, &[y.clone(), x.clone()]),
        mul(sum, Expr::Lit(Scalar::F32, systola_ir::Literal::Float(0.2))),
    );
    b.var("V", Scalar::F32, body);
    let (value, end) = (b.here(v), eq(t, param(0).plus(-1)));
    b.output(
        "b",
        Scalar::F32,
        &[param(1), param(1)],
        vec![write(value, &[y, x], end)],
    );
    let image: Tensor = b.random(a, &[20, 400]);
    time("five-point stencil", 20 * 400 * 400, || {
        b.run(&[20, 400], &[("a", &image)]).unwrap();
    });
}
