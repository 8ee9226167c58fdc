//! Lane operations per second, for people:
//! `cargo test -p systola-interp --test kernels -- --ignored --nocapture`.

use std::time::Instant;

use systola_interp::kernel::{Options, run_kernel_program};
use systola_interp::{Arrays, Tensor};
use systola_ir::kernel::Stmt;
use systola_ir::kernel::census::Event;
use systola_ir::{BinOp, Literal, Scalar};

use crate::builder::*;

fn time(name: &str, case: &Case) {
    let start = Instant::now();
    let options = Options::default();
    let outcome = run_kernel_program(&case.program, &case.sizes, &case.inputs, &options);
    let counts = outcome.unwrap().counts;
    let seconds = start.elapsed().as_secs_f64();
    let instructions = counts[Event::Arithmetic] + counts[Event::Loads] + counts[Event::Stores];
    let rate = 32.0 * instructions as f64 / seconds / 1e6;
    println!("{name}: {instructions} warp instructions in {seconds:.2} s, {rate:.1} M lanes/s");
}

#[test]
#[ignore = "measures time"]
fn lanes_per_second() {
    let mut b = Builder::new("horner", &[]);
    let x = b.input("x", Scalar::F32, &[1024.into()]);
    let y = b.output("y", Scalar::F32, &[1024.into()]);
    b.begin("horner", 1, 32);
    let (blk, l) = (b.block("b", 32), b.lane());
    let at = [lin(&[(32, blk), (1, l)], 0)];
    let sum = b.reg("sum", Scalar::F32);
    let value = b.load("v", Scalar::F32, global(x, &at));
    b.stmt(Stmt::Set(sum, value));
    b.repeat("t", 0, 500, |b, _| {
        let one = b.lit(Scalar::F32, Literal::Float(0.5));
        let old = b.get(sum);
        let product = b.binary(BinOp::Mul, old, value);
        let next = b.binary(BinOp::Add, product, one);
        b.stmt(Stmt::Set(sum, next));
    });
    let total = b.get(sum);
    b.store(global(y, &at), total);
    b.end_and_launch();
    let inputs = Arrays::from([("x".into(), Tensor::vector(vec![0.25f32; 1024]))]);
    time(
        "arithmetic",
        &Case {
            program: b.program,
            sizes: vec![],
            inputs,
            outputs: Arrays::new(),
        },
    );
    time("memory with a tail", &saxpy(300_000));
    time("shared memory", &transpose(16, 1));
}
