//! Every operator on every type, in vectors of all sizes, against the interpreter's operators.

use systola_interp::value::{self, Value};
use systola_ir::form::Form;
use systola_ir::kernel::{Memory, Program, Shape};
use systola_ir::{BinOp, BufferId, Literal, Scalar, UnOp, ValueId};

use crate::common::build::{Build, input, launch, num, output, program, times};
use crate::common::run::{Call, Effort, from_bytes, run_twice, to_bytes};

const TYPES: [Scalar; 11] = [
    Scalar::Bool,
    Scalar::I8,
    Scalar::I16,
    Scalar::I32,
    Scalar::I64,
    Scalar::U8,
    Scalar::U16,
    Scalar::U32,
    Scalar::U64,
    Scalar::F32,
    Scalar::F64,
];

fn unary_operators() -> Vec<UnOp> {
    [&[UnOp::Neg, UnOp::Not], &UnOp::FUNCTIONS[..]].concat()
}

const BINARY: [BinOp; 21] = [
    BinOp::Add,
    BinOp::Sub,
    BinOp::Mul,
    BinOp::Div,
    BinOp::Rem,
    BinOp::Min,
    BinOp::Max,
    BinOp::Pow,
    BinOp::Eq,
    BinOp::Ne,
    BinOp::Lt,
    BinOp::Le,
    BinOp::Gt,
    BinOp::Ge,
    BinOp::And,
    BinOp::Or,
    BinOp::BitAnd,
    BinOp::BitOr,
    BinOp::BitXor,
    BinOp::Shl,
    BinOp::Shr,
];

/// Elements of each operand.
const COUNT: usize = 128;

/// Numbers at and near the limits, and random ones.
fn samples(ty: Scalar, seed: u64) -> Vec<Value> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let special: Vec<Literal> = if ty.is_float() {
        let bits = f64::from(ty.bits());
        [
            0.0,
            -0.0,
            1.0,
            -1.0,
            0.5,
            -2.5,
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            127.0,
            128.0,
            -128.5,
            255.9,
            32767.0,
            65536.0,
            2147483647.0,
            2147483648.0,
            -2147483648.0,
            -2147483904.0,
            4294967296.0,
            9.3e18,
            -9.3e18,
            1.9e19,
            1e30,
            bits,
        ]
        .map(Literal::Float)
        .to_vec()
    } else {
        let (least, greatest) = ty.int_range().unwrap_or((0, 1));
        [
            0,
            1,
            -1,
            2,
            -3,
            7,
            31,
            64,
            least,
            least + 1,
            greatest,
            greatest - 1,
            greatest / 2 + 1,
        ]
        .map(Literal::Int)
        .to_vec()
    };
    (0..COUNT)
        .map(|n| {
            let r = random();
            let literal = if r % 4 != 0 {
                special[(random() as usize ^ n) % special.len()]
            } else if ty.is_float() {
                Literal::Float((random() as i64 >> 20) as f64 / 65536.0)
            } else {
                Literal::Int(i128::from(random() as i64))
            };
            value::literal(ty, literal)
        })
        .collect()
}

/// What an output of the kernel contains.
#[derive(Clone, Copy, Debug)]
enum What {
    Unary(UnOp),
    Binary(BinOp),
    /// The second operand is uniform: the one of the block's first lane.
    Right(BinOp),
    /// The first operand is uniform.
    Left(BinOp),
    /// The second operand is a number.
    Number(BinOp, i128),
    /// The second operand is 0.0 or -0.0.
    Zero(BinOp, f64),
    Cast(Scalar),
    Select,
}

struct Case {
    what: What,
    ty: Scalar,
    out: BufferId,
    out_ty: Scalar,
}

fn expected(case: &Case, a: &[Value], b: &[Value], lanes: usize, n: usize) -> Option<Value> {
    let first = n / lanes * lanes;
    let result = match case.what {
        What::Unary(op) => value::unary(op, &a[n]),
        What::Binary(op) => value::binary(op, &a[n], &b[n]),
        What::Right(op) => value::binary(op, &a[n], &b[first]),
        What::Left(op) => value::binary(op, &b[first], &a[n]),
        What::Number(op, c) => value::binary(op, &a[n], &value::literal(case.ty, Literal::Int(c))),
        What::Zero(op, zero) => {
            let zero = value::literal(case.ty, Literal::Float(zero));
            value::binary(op, &a[n], &zero)
        }
        What::Cast(to) => value::cast(to, &a[n]),
        What::Select => {
            let less = value::binary(BinOp::Lt, &a[n], &b[n]).unwrap() == Value::Bool(true);
            Ok(if less { b[n].clone() } else { a[n].clone() })
        }
    };
    result.ok()
}

/// The distance from a number to the next one.
fn last_place(value: &Value) -> f64 {
    match value {
        Value::F32(x) => f64::from(x.abs().next_up()) - f64::from(x.abs()),
        Value::F64(x) => x.abs().next_up() - x.abs(),
        _ => 0.0,
    }
}

fn agrees(what: What, got: &Value, expect: &Value) -> bool {
    let loose = matches!(
        what,
        What::Unary(UnOp::Rsqrt | UnOp::Exp | UnOp::Log | UnOp::Sin | UnOp::Cos | UnOp::Tanh)
            | What::Binary(BinOp::Pow)
            | What::Left(BinOp::Pow)
            | What::Right(BinOp::Pow)
            | What::Number(BinOp::Pow, _)
    );
    match (got.as_float(), expect.as_float()) {
        (Some(x), Some(y)) if x.is_nan() || y.is_nan() => x.is_nan() && y.is_nan(),
        // Library functions are accurate to 1 unit in the last place too.
        (Some(x), Some(y)) if loose && x != y => (x - y).abs() <= 3.0 * last_place(expect),
        _ => got.is_identical(expect),
    }
}

/// Checks a kernel for each type with all operators that it has.
fn check(lanes: u32) {
    let mut p: Program = program("operators", &[]);
    let count = num(COUNT as i128);
    let mut data: Vec<Vec<u8>> = Vec::new();
    let mut cases: Vec<Case> = Vec::new();
    let mut operands = Vec::new();
    for (n, ty) in TYPES.into_iter().enumerate() {
        let (a_values, b_values) = (samples(ty, 2 * n as u64 + 1), samples(ty, 2 * n as u64 + 2));
        let a = input(&mut p, &format!("a_{n}"), ty, std::slice::from_ref(&count));
        let b = input(&mut p, &format!("b_{n}"), ty, std::slice::from_ref(&count));
        data.push(to_bytes(&a_values));
        data.push(to_bytes(&b_values));
        let mut k = Build::new(&format!("all_{ty}"), lanes, 1);
        let lane = k.lane();
        let block = k.block("block", num(COUNT as i128 / i128::from(lanes)));
        let start = times(lanes.into(), &block);
        let at = start.add(&lane);
        let x = k.load("x", ty, Memory::Global(a), std::slice::from_ref(&at));
        let y = k.load("y", ty, Memory::Global(b), std::slice::from_ref(&at));
        let y_first = k.load("first_y", ty, Memory::Global(b), &[start]);
        let one = value::literal(ty, Literal::Int(1));
        let mut put = |k: &mut Build, what: What, value: ValueId, at: &Form| {
            let out_ty = k.ty(value);
            let name = format!("out_{}", cases.len());
            let out = output(&mut p, &name, out_ty, std::slice::from_ref(&count));
            data.push(vec![0; COUNT * out_ty.bits() as usize / 8]);
            k.store(Memory::Global(out), std::slice::from_ref(at), value);
            cases.push(Case {
                what,
                ty,
                out,
                out_ty,
            });
        };
        for op in unary_operators() {
            if value::unary(op, &one).is_ok() {
                let r = k.unary(op, x);
                put(&mut k, What::Unary(op), r, &at);
            }
        }
        for op in BINARY {
            if value::binary(op, &one, &one).is_err() {
                continue;
            }
            let r = k.binary("r", op, x, y);
            put(&mut k, What::Binary(op), r, &at);
            if lanes > 16 {
                continue;
            }
            let r = k.binary("r", op, x, y_first);
            put(&mut k, What::Right(op), r, &at);
            let r = k.binary("r", op, y_first, x);
            put(&mut k, What::Left(op), r, &at);
            if ty != Scalar::Bool {
                // Comparisons with 0 are always true or false on some types.
                let number = if op.is_comparison() { 0 } else { 3 };
                let c = k.int(ty, number);
                let r = k.binary("r", op, x, c);
                put(&mut k, What::Number(op, number), r, &at);
            }
        }
        if ty.is_float() {
            for (op, zero) in [
                (BinOp::Min, 0.0),
                (BinOp::Min, -0.0),
                (BinOp::Max, 0.0),
                (BinOp::Max, -0.0),
            ] {
                let c = k.lit(ty, Literal::Float(zero));
                let r = k.binary("r", op, x, c);
                put(&mut k, What::Zero(op, zero), r, &at);
            }
        }
        for to in TYPES {
            let r = k.cast(to, x);
            put(&mut k, What::Cast(to), r, &at);
        }
        let less = k.binary("less", BinOp::Lt, x, y);
        let r = k.select(less, y, x);
        assert_eq!(
            k.shape(r),
            if lanes > 1 {
                Shape::Varying
            } else {
                k.shape(r)
            }
        );
        put(&mut k, What::Select, r, &at);
        launch(&mut p, k.finish());
        operands.push((a_values, b_values));
    }
    let blocks = COUNT as i64 / i64::from(lanes);
    let calls: Vec<Call> = (0..TYPES.len()).map(|n| Call::of(n, blocks)).collect();
    // gcc optimises one of these sources for most of a minute.
    let effort = if lanes == 4 {
        Effort::Full
    } else {
        Effort::Little
    };
    let mut compared = 0;
    let both = run_twice(&p, &[], &data, &calls, effort);
    for (after, case) in both
        .iter()
        .flat_map(|after| cases.iter().map(move |case| (after, case)))
    {
        let n = TYPES.iter().position(|t| *t == case.ty).unwrap();
        let (a, b) = &operands[n];
        let got = from_bytes(case.out_ty, &after[case.out.index()]);
        for (l, got) in got.iter().enumerate() {
            let Some(expect) = expected(case, a, b, lanes as usize, l) else {
                continue;
            };
            compared += 1;
            assert!(
                agrees(case.what, got, &expect),
                "{:?} on {} ({lanes} lanes), element {l}: {} and {} give {got}, not {expect}",
                case.what,
                case.ty,
                a[l],
                b[l],
            );
        }
    }
    assert!(compared > 60_000, "{compared} results were compared");
}

#[test]
fn one_lane() {
    check(1);
}

#[test]
fn four_lanes() {
    check(4);
}

#[test]
fn sixteen_lanes() {
    check(16);
}

#[test]
fn sixty_four_lanes() {
    check(64);
}
