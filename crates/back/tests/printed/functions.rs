//! Functions of floats on vectors: within 2 units in the last place of the true value, for all
//! kinds of numbers, at every width of registers.
//!
//! Results in f32 are compared with those of the library in f64. Results in f64 are compared with
//! the library in f64 too, which is accurate to 1 unit itself.

use systola_back::cpu;
use systola_interp::value::Value;
use systola_ir::kernel::Memory;
use systola_ir::target::Simd;
use systola_ir::{BinOp, Scalar, UnOp};

use crate::common::build::{Build, input, launch, num, output, program, times};
use crate::common::folded;
use crate::common::run::{Call, Effort, compilers, from_bytes, run_with, to_bytes};

const COUNT: usize = 1024;
/// The bounds for f32, and for f64 with the error of the library.
const BOUND: [f64; 2] = [2.0, 3.0];

const UNARY: [UnOp; 6] = [
    UnOp::Exp,
    UnOp::Log,
    UnOp::Sin,
    UnOp::Cos,
    UnOp::Tanh,
    UnOp::Rsqrt,
];

fn reference(op: UnOp, x: f64) -> f64 {
    match op {
        UnOp::Exp => x.exp(),
        UnOp::Log => x.ln(),
        UnOp::Sin => x.sin(),
        UnOp::Cos => x.cos(),
        UnOp::Tanh => x.tanh(),
        _ => 1.0 / x.sqrt(),
    }
}

/// All kinds of numbers: special ones, numbers whose results over- and underflow, random bits, and
/// common magnitudes.
fn samples(ty: Scalar, seed: u64) -> Vec<f64> {
    let special = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        2.0,
        -3.0,
        0.5,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        f64::from_bits(1),
        f64::MIN_POSITIVE,
        f64::from(f32::from_bits(1)),
        f64::from(f32::MIN_POSITIVE),
        88.7,
        -87.4,
        -103.9,
        709.7,
        -745.1,
        8191.9,
        8192.0,
        1048575.9,
        1048576.0,
        1e22,
        -1e30,
        std::f64::consts::FRAC_PI_2,
        2f64.powi(52) + 1.0,
        2f64.powi(53),
        f64::from_bits(0.99999f64.to_bits() | 1),
    ];
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let numbers = (0..COUNT).map(|n| {
        let unit = (random() >> 11) as f64 / 2f64.powi(52) - 1.0;
        let x = match n % 6 {
            0 => special[random() as usize % special.len()],
            1 if ty == Scalar::F32 => f32::from_bits(random() as u32).into(),
            1 => f64::from_bits(random()),
            2 => unit,
            3 => 1.0 + unit / 1000.0,
            4 => unit * 100.0,
            // Near multiples of pi/2.
            _ => (unit * 5000.0).round() * std::f64::consts::FRAC_PI_2,
        };
        if ty == Scalar::F32 {
            (x as f32).into()
        } else {
            x
        }
    });
    numbers.collect()
}

fn value(ty: Scalar, x: f64) -> Value {
    if ty == Scalar::F32 {
        Value::F32(x as f32)
    } else {
        Value::F64(x)
    }
}

/// The distance from a number to the next one of its type; for subnormal numbers, the distance at
/// the least normal number.
fn last_place(ty: Scalar, x: f64) -> f64 {
    let x = x.abs();
    if ty == Scalar::F32 {
        let x = x as f32;
        f64::from(x.next_up()) - f64::from(x)
    } else {
        x.next_up() - x
    }
}

/// Units in the last place between a result and the true one; infinite where their signs differ or
/// the true one rounds to an infinity.
fn error(ty: Scalar, got: f64, want: f64) -> f64 {
    let rounded = value(ty, want).as_float().unwrap();
    if got.to_bits() == rounded.to_bits() || (got.is_nan() && rounded.is_nan()) {
        return 0.0;
    }
    if got.is_sign_negative() != rounded.is_sign_negative() || rounded.is_infinite() {
        return f64::INFINITY;
    }
    (got - want).abs() / last_place(ty, rounded)
}

#[test]
fn functions_are_within_two_units() {
    let mut p = program("functions", &[]);
    let count = num(COUNT as i128);
    let mut data = Vec::new();
    let mut cases = Vec::new();
    let mut calls = Vec::new();
    for (ty, lanes) in [
        (Scalar::F32, 4),
        (Scalar::F32, 16),
        (Scalar::F64, 2),
        (Scalar::F64, 16),
    ] {
        let [x, y] = [1, 2].map(|n| samples(ty, n));
        let name = format!("all_{ty}_{lanes}");
        let a = input(
            &mut p,
            &format!("a_{name}"),
            ty,
            std::slice::from_ref(&count),
        );
        let b = input(
            &mut p,
            &format!("b_{name}"),
            ty,
            std::slice::from_ref(&count),
        );
        for values in [&x, &y] {
            let values: Vec<Value> = values.iter().map(|x| value(ty, *x)).collect();
            data.push(to_bytes(&values));
        }
        let mut k = Build::new(&name, lanes, 1);
        let lane = k.lane();
        let block = k.block("block", num(COUNT as i128 / i128::from(lanes)));
        let at = [times(lanes.into(), &block).add(&lane)];
        let (va, vb) = (
            k.load("x", ty, Memory::Global(a), &at),
            k.load("y", ty, Memory::Global(b), &at),
        );
        let mut put = |k: &mut Build, r, op: Option<UnOp>, want: Vec<f64>| {
            let out = output(
                &mut p,
                &format!("r{}", cases.len()),
                ty,
                std::slice::from_ref(&count),
            );
            data.push(vec![0; COUNT * ty.bits() as usize / 8]);
            k.store(Memory::Global(out), &at, r);
            cases.push((ty, lanes, op, out, x.clone(), y.clone(), want));
        };
        for op in UNARY {
            let r = k.unary(op, va);
            let want = x.iter().map(|x| reference(op, *x)).collect();
            put(&mut k, r, Some(op), want);
        }
        let r = k.binary("r", BinOp::Pow, va, vb);
        let want = x.iter().zip(&y).map(|(x, y)| x.powf(*y)).collect();
        put(&mut k, r, None, want);
        calls.push(Call::of(calls.len(), COUNT as i64 / i64::from(lanes)));
        launch(&mut p, k.finish());
    }
    let compilers = compilers();
    let (first, last) = (compilers[0], compilers[compilers.len() - 1]);
    let runs = [
        (first, Simd::Avx512, Simd::Avx512, Effort::Full),
        (last, Simd::Avx2, Simd::Avx2, Effort::Little),
        (first, Simd::Sse, Simd::Portable, Effort::Little),
    ];
    let mut worst = [0.0f64; 2];
    for (cc, printed, compiled, effort) in runs {
        let artifact = cpu::emit(&folded(&p), printed).unwrap_or_else(|e| panic!("{e}"));
        let after = run_with(cc, compiled, effort, &artifact, &[], &data, &calls);
        for (ty, lanes, op, out, x, y, want) in &cases {
            let n = usize::from(*ty == Scalar::F64);
            let got = from_bytes(*ty, &after[out.index()]);
            for (l, got) in got.iter().enumerate() {
                let error = error(*ty, got.as_float().unwrap(), want[l]);
                worst[n] = worst[n].max(error);
                assert!(
                    error <= BOUND[n],
                    "{op:?} on {ty} ({lanes} lanes, {cc}, {}) of {:e}, {:e}: {got}, not {:e}: {error} units",
                    printed.name(),
                    x[l],
                    y[l],
                    want[l],
                );
            }
        }
    }
    println!("{worst:?} units in the last place");
}
