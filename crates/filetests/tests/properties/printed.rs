//! Random forms, conditions and expressions as every dialect prints them: compiled, run, and
//! compared with the kernel interpreter. The draws focus on operators that are easily misread:
//! floors and remainders by powers of two and by other numbers, products with parameters, negative
//! coefficients, nested operators of all types.

use std::time::Duration;

use systola::Simd;
use systola::cpu::compile_lowered;
use systola::opencl::compile_opencl_lowered;
use systola::rt::simd;
use systola::{CpuOptions, OpenClOptions, RunOptions};
use systola_driver::{Fix, Lowered, emit_cuda, load, lower};
use systola_filetests::emulate::Emulated;
use systola_filetests::quick_cpu;
use systola_interp::kernel::{Options, run_kernel_program};
use systola_interp::{Arrays, Tensor};
use systola_ir::form::{Cond, Form, Poly, Rel};
use systola_ir::kernel::{BufferKind, Memory, Program, VarKind};
use systola_ir::{BinOp, BufferId, Literal, ParamId, Scalar, UnOp, ValueId};

use crate::build::{Build, buffer, input, launch, num, output, param, program};
use crate::devices::device;

/// Sizes of a run: the second one is zero too, where products with it vanish.
const SIZES: [[i128; 2]; 2] = [[5, 3], [1, 0]];
const BLOCKS: i128 = 2;
const ITERATIONS: i128 = 3;

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

/// Numbers that follow from a seed.
struct Draw(u64);

impl Draw {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n
    }

    fn of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }

    fn coin(&mut self) -> bool {
        self.below(2) == 0
    }
}

/// A form, and between which numbers it lies.
#[derive(Clone)]
struct Ranged {
    form: Form,
    least: i128,
    greatest: i128,
}

impl Ranged {
    fn plus(&self, factor: i128, other: &Ranged) -> Ranged {
        let (a, b) = (factor * other.least, factor * other.greatest);
        let scaled = other.form.scale(&Poly::constant(factor)).unwrap();
        Ranged {
            form: self.form.add(&scaled),
            least: self.least + a.min(b),
            greatest: self.greatest + a.max(b),
        }
    }
}

/// The variables of a kernel.
struct Vars {
    lane: Ranged,
    uniform: Vec<Ranged>,
}

impl Vars {
    fn any(&self, draw: &mut Draw) -> Ranged {
        if draw.below(3) == 0 {
            self.lane.clone()
        } else {
            draw.of(&self.uniform)
        }
    }
}

const DIVISORS: [i128; 8] = [2, 2, 4, 8, 3, 5, 6, 7];

/// A form of any range, with parameters; `lane`: the lane may occur in it.
fn form(draw: &mut Draw, vars: &Vars, depth: u32, lane: bool) -> Form {
    let mut sum = num(draw.of(&[0, 0, 1, -1, 3, -7]));
    for _ in 0..=draw.below(3) {
        let var = if lane {
            vars.any(draw)
        } else {
            draw.of(&vars.uniform)
        };
        let mut term = var.form;
        if depth > 0 && draw.below(3) > 0 {
            let inner = form(draw, vars, depth - 1, lane);
            let by = draw.of(&DIVISORS);
            term = if draw.coin() {
                inner.floor_div(by)
            } else {
                inner.modulo(by)
            };
        }
        let mut factor = Poly::constant(draw.of(&[1, 1, 1, -1, -1, 2, -3, 5]));
        if draw.below(4) == 0 {
            let param = Poly::param(ParamId::from(draw.below(2)));
            factor = factor.mul(&param).unwrap();
        }
        sum = sum.add(&term.scale(&factor).unwrap());
    }
    if draw.below(4) == 0 {
        sum = sum.add(&param(draw.below(2)));
    }
    sum
}

/// A form of known range.
fn ranged(draw: &mut Draw, vars: &Vars) -> Ranged {
    let mut sum = Ranged {
        form: Form::zero(),
        least: 0,
        greatest: 0,
    };
    for _ in 0..=draw.below(2) {
        let by = draw.of(&DIVISORS);
        let term = match draw.below(4) {
            0 => vars.any(draw),
            1 => {
                let inner = vars.any(draw);
                Ranged {
                    form: inner.form.floor_div(by),
                    least: inner.least.div_euclid(by),
                    greatest: inner.greatest.div_euclid(by),
                }
            }
            2 => Ranged {
                form: form(draw, vars, 1, true).modulo(by),
                least: 0,
                greatest: by - 1,
            },
            _ => Ranged {
                form: form(draw, vars, 0, true).modulo(4 * by).floor_div(4),
                least: 0,
                greatest: by - 1,
            },
        };
        sum = sum.plus(draw.of(&[1, 1, -1, 2]), &term);
    }
    sum
}

fn cond(draw: &mut Draw, vars: &Vars, depth: u32, lane: bool) -> Cond {
    if depth == 0 || draw.below(3) == 0 {
        let rel = draw.of(&[Rel::Eq, Rel::Ne, Rel::Lt, Rel::Le, Rel::Gt, Rel::Ge]);
        let (left, right) = (form(draw, vars, 1, lane), form(draw, vars, 1, lane));
        return Cond::Cmp(rel, left, right);
    }
    let mut parts = Vec::new();
    for _ in 0..2 + draw.below(2) {
        parts.push(cond(draw, vars, depth - 1, lane));
    }
    match draw.below(3) {
        0 => Cond::And(parts),
        1 => Cond::Or(parts),
        _ => Cond::Not(Box::new(parts.remove(0))),
    }
}

/// The leaves of expressions: a value of each type that differs from lane to lane, and one that
/// does not.
struct Leaves(Vec<[ValueId; 2]>);

/// An expression. `exact`: a product of floats must not be an operand of a sum, since both may be
/// fused with a single rounding.
fn expression(
    draw: &mut Draw,
    k: &mut Build,
    leaves: &Leaves,
    ty: Scalar,
    depth: u32,
    exact: bool,
) -> ValueId {
    let at = TYPES.iter().position(|t| *t == ty).unwrap();
    if depth == 0 {
        return match draw.below(4) {
            0 if ty == Scalar::Bool => k.lit(ty, Literal::Bool(draw.coin())),
            0 if ty.is_float() => k.lit(ty, Literal::Float(draw.of(&[0.0, -0.0, 1.0, -2.5, 3.0]))),
            0 if ty.is_signed_int() => k.int(ty, draw.of(&[0, 1, -1, 2, 3, -5, 100])),
            0 => k.int(ty, draw.of(&[0, 1, 2, 3, 100])),
            1 => leaves.0[at][1],
            _ => leaves.0[at][0],
        };
    }
    let below = depth - 1;
    match draw.below(8) {
        0 => {
            let from = draw.of(&TYPES);
            let value = expression(draw, k, leaves, from, below, false);
            k.cast(ty, value)
        }
        1 => {
            let cond = expression(draw, k, leaves, Scalar::Bool, below, false);
            let then = expression(draw, k, leaves, ty, below, exact);
            let otherwise = expression(draw, k, leaves, ty, below, exact);
            k.select(cond, then, otherwise)
        }
        2 => {
            let op = match ty {
                Scalar::Bool => UnOp::Not,
                _ if ty.is_float() => draw.of(&[UnOp::Neg, UnOp::Abs, UnOp::Sqrt]),
                _ => draw.of(&[UnOp::Neg, UnOp::Not, UnOp::Abs]),
            };
            let value = expression(draw, k, leaves, ty, below, exact);
            k.unary(op, value)
        }
        _ if ty == Scalar::Bool => {
            let (op, of) = if draw.coin() {
                let ops = [
                    BinOp::Eq,
                    BinOp::Ne,
                    BinOp::Lt,
                    BinOp::Le,
                    BinOp::Gt,
                    BinOp::Ge,
                ];
                (draw.of(&ops), draw.of(&TYPES))
            } else {
                let ops = [BinOp::And, BinOp::Or, BinOp::BitXor, BinOp::Min, BinOp::Max];
                (draw.of(&ops), Scalar::Bool)
            };
            let a = expression(draw, k, leaves, of, below, false);
            let b = expression(draw, k, leaves, of, below, false);
            k.binary("r", op, a, b)
        }
        _ if ty.is_float() => {
            let sums = [BinOp::Add, BinOp::Sub, BinOp::Min, BinOp::Max];
            let all = [
                BinOp::Mul,
                BinOp::Div,
                BinOp::Min,
                BinOp::Max,
                BinOp::Add,
                BinOp::Sub,
            ];
            let op = if exact { draw.of(&sums) } else { draw.of(&all) };
            let exact = exact || matches!(op, BinOp::Add | BinOp::Sub);
            let a = expression(draw, k, leaves, ty, below, exact);
            let b = expression(draw, k, leaves, ty, below, exact);
            k.binary("r", op, a, b)
        }
        _ => {
            let ops = [
                BinOp::Add,
                BinOp::Sub,
                BinOp::Mul,
                BinOp::Div,
                BinOp::Rem,
                BinOp::Min,
                BinOp::Max,
                BinOp::BitAnd,
                BinOp::BitOr,
                BinOp::BitXor,
                BinOp::Shl,
                BinOp::Shr,
            ];
            let op = draw.of(&ops);
            let a = expression(draw, k, leaves, ty, below, false);
            let mut b = expression(draw, k, leaves, ty, below, false);
            if matches!(op, BinOp::Div | BinOp::Rem) {
                let one = k.int(ty, 1);
                b = k.binary("odd", BinOp::BitOr, b, one);
            }
            k.binary("r", op, a, b)
        }
    }
}

/// The number of each that is drawn for a kernel.
struct Counts {
    forms: usize,
    loads: usize,
    stores: usize,
    conds: usize,
    expressions: usize,
}

/// A kernel that stores all that was drawn, and arrays for it.
fn add_kernel(p: &mut Program, draw: &mut Draw, lanes: u32, counts: &Counts) {
    let width = i128::from(lanes);
    let name = format!("drawn_{lanes}");
    let mut k = Build::new(&name, lanes, 1);
    let lane = k.lane();
    let block = k.block("b", num(BLOCKS));
    let iteration = k.var("i", VarKind::Loop);
    let up_to = |form: Form, end: i128| Ranged {
        form,
        least: 0,
        greatest: end - 1,
    };
    let vars = Vars {
        lane: up_to(lane.clone(), width),
        uniform: vec![
            up_to(block.clone(), BLOCKS),
            up_to(Form::from(iteration), ITERATIONS),
        ],
    };
    let rows = |p: &mut Program, what: &str, ty: Scalar, n: usize| {
        let extents = [num(n as i128), num(BLOCKS), num(ITERATIONS), num(width)];
        Memory::Global(output(p, &format!("{what}_{lanes}"), ty, &extents))
    };
    let here = |n: usize| {
        [
            num(n as i128),
            block.clone(),
            Form::from(iteration),
            lane.clone(),
        ]
    };
    let forms = rows(p, "forms", Scalar::I64, counts.forms);
    let conds = rows(p, "conds", Scalar::I32, counts.conds);
    let loads = rows(p, "loads", Scalar::I32, counts.loads);
    let expressions: Vec<Memory> = TYPES
        .iter()
        .map(|ty| rows(p, &format!("values_{ty}"), *ty, counts.expressions))
        .collect();
    let leaves_of: Vec<BufferId> = TYPES
        .iter()
        .map(|ty| {
            let extents = [num(BLOCKS * ITERATIONS), num(width + 1)];
            input(p, &format!("leaves_{ty}_{lanes}"), *ty, &extents)
        })
        .collect();
    // Arrays whose strides depend on the sizes, and whose axes begin anywhere.
    let mut load_from = Vec::new();
    for n in 0..counts.loads {
        let index: Vec<Ranged> = (0..2 + draw.below(2))
            .map(|_| ranged(draw, &vars))
            .collect();
        let axes: Vec<(Form, Form)> = index
            .iter()
            .map(|axis| {
                let end = num(axis.greatest + 1);
                let end = if draw.coin() { end.add(&param(1)) } else { end };
                (num(axis.least), end)
            })
            .collect();
        let kind = BufferKind::Input { data: None };
        let x = buffer(p, &format!("x{n}_{lanes}"), Scalar::I32, kind, &axes);
        let when = if draw.below(3) == 0 {
            cond(draw, &vars, 1, true)
        } else {
            Cond::TRUE
        };
        let index: Vec<Form> = index.into_iter().map(|axis| axis.form).collect();
        load_from.push((Memory::Global(x), index, when));
    }
    // Every point has its own element: the digits of its variables, some of them reversed, in any
    // order.
    let mut store_to = Vec::new();
    for n in 0..counts.stores {
        let mut digits = Vec::new();
        for var in vars.uniform.iter().chain([&vars.lane]) {
            let end = var.greatest + 1;
            let by = draw.of(&[1, 2, 3, 4]);
            if by == 1 || by >= end {
                digits.push((var.form.clone(), end));
            } else {
                digits.push((var.form.floor_div(by), (end + by - 1) / by));
                digits.push((var.form.modulo(by), by));
            }
        }
        let mut index = Vec::new();
        while !digits.is_empty() {
            let (digit, end) = digits.remove(draw.below(digits.len()));
            index.push(if draw.below(3) == 0 {
                (num(end - 1).sub(&digit), end)
            } else {
                (digit, end)
            });
        }
        // Two digits of one axis.
        let (last, end) = index.pop().unwrap();
        let (before, before_end) = index.pop().unwrap();
        let joined = before.scale(&Poly::constant(end)).unwrap().add(&last);
        index.push((joined, before_end * end));
        let axes: Vec<(Form, Form)> = index
            .iter()
            .map(|(_, end)| (Form::zero(), num(*end).add(&param(1))))
            .collect();
        let kind = BufferKind::Output {
            fill: Some(Literal::Int(-1)),
        };
        let y = buffer(p, &format!("y{n}_{lanes}"), Scalar::I64, kind, &axes);
        let when = if draw.coin() {
            cond(draw, &vars, 1, true)
        } else {
            Cond::TRUE
        };
        let index: Vec<Form> = index.into_iter().map(|(form, _)| form).collect();
        store_to.push((Memory::Global(y), index, when));
    }
    k.for_loop(iteration, vec![num(0)], vec![num(ITERATIONS)], 1, |k| {
        for n in 0..counts.forms {
            let form = form(draw, &vars, 2, n % 4 > 0);
            let value = k.index(&form);
            k.store(forms, &here(n), value);
        }
        for n in 0..counts.conds {
            let uniform = n % 3 == 0;
            let cond = cond(draw, &vars, 2, !uniform);
            let (one, two) = (k.int(Scalar::I32, 1), k.int(Scalar::I32, 2));
            if uniform && draw.coin() {
                let store = |k: &mut Build, value| k.store(conds, &here(n), value);
                k.branch(cond, |k| store(k, one), |k| store(k, two));
            } else {
                let value = k.choose(cond, one, two);
                k.store(conds, &here(n), value);
            }
        }
        for (n, (from, index, when)) in load_from.iter().enumerate() {
            let otherwise = Some(Literal::Int(77));
            let value = k.load_when("x", Scalar::I32, *from, index, when.clone(), otherwise);
            k.store(loads, &here(n), value);
        }
        for (to, index, when) in &store_to {
            let form = form(draw, &vars, 1, true);
            let value = k.index(&form);
            k.store_when(*to, index, when.clone(), value);
        }
        let row = block.scale(&Poly::constant(ITERATIONS)).unwrap();
        let row = row.add(&Form::from(iteration));
        let leaves = TYPES.iter().zip(&leaves_of).map(|(ty, from)| {
            let from = Memory::Global(*from);
            let own = k.load("v", *ty, from, &[row.clone(), lane.clone()]);
            let same = k.load("u", *ty, from, &[row.clone(), num(width)]);
            [own, same]
        });
        let leaves = Leaves(leaves.collect());
        for (ty, to) in TYPES.iter().zip(&expressions) {
            for n in 0..counts.expressions {
                let value = expression(draw, k, &leaves, *ty, 3, false);
                k.store(*to, &here(n), value);
            }
        }
    });
    launch(p, k.finish());
}

fn drawn(seed: u64, lanes: &[u32], counts: &Counts) -> Program {
    let mut draw = Draw(0x9e37_79b9_7f4a_7c15 ^ (seed << 20));
    let mut p = program("drawn", &["N", "M"]);
    for lanes in lanes {
        add_kernel(&mut p, &mut draw, *lanes, counts);
    }
    assert_eq!(p.verify(), Vec::<String>::new(), "{p}");
    p.folded().expect("small numbers")
}

fn inputs(program: &Program, params: &[i128]) -> Arrays {
    let mut arrays = Arrays::new();
    for (n, buffer) in program.buffers.iter().enumerate() {
        if matches!(buffer.kind, BufferKind::Input { data: None }) {
            let tensor = Tensor::random(buffer.ty, &buffer.axes, params, n as u64).unwrap();
            arrays.insert(buffer.name.clone(), tensor);
        }
    }
    arrays
}

/// Compares the result of a target with the interpreter, to the last bit.
fn compare(
    program: &Program,
    source: &str,
    run: impl Fn(&[i128], &Arrays) -> Result<Arrays, String>,
) -> usize {
    let mut compared = 0;
    for params in SIZES {
        let given = inputs(program, &params);
        let want = run_kernel_program(program, &params, &given, &Options::default());
        let want = want.unwrap_or_else(|e| panic!("{e}\n{program}")).outputs;
        let got = run(&params, &given).unwrap_or_else(|e| panic!("{e}\n{source}"));
        for (name, want) in &want {
            let got = &got[name];
            for at in 0..want.data.len() {
                let (a, b) = (want.data.get(at).unwrap(), got.data.get(at).unwrap());
                let both_nan =
                    a.as_float().is_some_and(f64::is_nan) && b.as_float().is_some_and(f64::is_nan);
                assert!(
                    both_nan || a.is_identical(&b),
                    "{name}, element {at} at {params:?}: {b}, not {a}\n{source}"
                );
                compared += 1;
            }
        }
    }
    compared
}

/// A program of kernels as if it had been lowered.
fn as_lowered(program: Program, options: &CpuOptions) -> Lowered {
    let text = "system s(N) where N >= 1 { input x[N]: i32; index i in 0..N; var y: i32 = x[i]; \
                output z[N]: i32 = y at [i]; } mapping m of s { time = i; }";
    let module = load(text).expect("it parses");
    let sizes = std::collections::BTreeMap::new();
    let machine = options.machine();
    let lowered = lower(
        &module,
        &module.mappings[0],
        &sizes,
        &Fix::Nothing,
        &machine,
    );
    Lowered {
        program,
        ..lowered.expect("a legal mapping")
    }
}

const MANY: Counts = Counts {
    forms: 16,
    loads: 16,
    stores: 8,
    conds: 16,
    expressions: 2,
};

#[test]
fn printed_c_computes_what_was_drawn() {
    let widths = Simd::ALL.into_iter();
    let widths = widths.filter(|simd| simd::named(simd.name()).is_ok());
    let mut compared = 0;
    let lanes: [&[u32]; 4] = [&[16], &[8], &[4], &[1, 2]];
    for (n, simd) in widths.enumerate() {
        let program = drawn(n as u64, lanes[n % lanes.len()], &MANY);
        let mut options = quick_cpu();
        options.simd = simd;
        // However busy the machine is.
        options.compile.time_limit = Duration::from_secs(3600);
        let compiled = compile_lowered(as_lowered(program, &options), &options);
        let compiled = compiled.unwrap_or_else(|e| panic!("{e}"));
        compared += compare(compiled.program(), &compiled.source, |params, given| {
            let ran = compiled.run_tensors(params, given, &RunOptions { threads: 1 });
            ran.map(|(got, _)| got).map_err(|e| e.to_string())
        });
    }
    assert!(compared > 10_000, "{compared}");
}

#[test]
fn printed_cuda_computes_what_was_drawn() {
    let program = drawn(10, &[1, 32], &MANY);
    let artifact = emit_cuda(&program).unwrap_or_else(|e| panic!("{e}"));
    let mut compared = 0;
    for narrow in [true, false] {
        let emulated = Emulated::compile(&program, &artifact, narrow);
        let emulated = emulated.unwrap_or_else(|e| panic!("{e}\n{}", artifact.source));
        compared += compare(&program, &artifact.source, |params, given| {
            emulated.run(params, given)
        });
    }
    assert!(compared > 10_000, "{compared}");
}

#[test]
fn printed_opencl_computes_what_was_drawn() {
    let few = Counts {
        forms: 10,
        loads: 10,
        stores: 5,
        conds: 10,
        expressions: 1,
    };
    for (what, shuffles) in [("with sub-groups", true), ("without sub-groups", false)] {
        let Some(device) = device(what, |info| info.shuffles.is_some() == shuffles) else {
            continue;
        };
        let program = drawn(20 + u64::from(shuffles), &[8], &few);
        let options = OpenClOptions {
            device,
            lanes: Some(8),
            ..OpenClOptions::new()
        };
        let lowered = as_lowered(program, &CpuOptions::new());
        let compiled = compile_opencl_lowered(lowered, &options);
        let compiled = compiled.unwrap_or_else(|e| panic!("{e}"));
        let compared = compare(compiled.program(), &compiled.source, |params, given| {
            let ran = compiled.run_tensors(params, given);
            ran.map(|(got, _)| got).map_err(|e| e.to_string())
        });
        assert!(compared > 2_000, "{compared}");
    }
}
