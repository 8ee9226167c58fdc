//! Kernels that use all statements and operations, as CUDA C++: run thread by thread on the CPU
//! against the interpreter, and compiled by NVRTC where it is available.

use systola::rt::cuda::{CudaCompileOptions, compile_only, nvrtc_version};
use systola::rt::device::Variant;
use systola_driver::emit_cuda;
use systola_filetests::emulate::Emulated;
use systola_interp::kernel::{Options, run_kernel_program};
use systola_interp::value;
use systola_interp::{Arrays, Tensor};
use systola_ir::form::{Cond, Form, Poly, Rel};
use systola_ir::kernel::{Access, BufferKind, Memory, Op, Program, Shape, Stmt, VarKind};
use systola_ir::mapping::Engine;
use systola_ir::{BinOp, Literal, ParamId, Scalar, UnOp};

#[expect(dead_code, reason = "shared with the tests of the printers")]
#[path = "../../back/tests/printed/common/build.rs"]
mod build;

#[expect(dead_code, reason = "shared with the tests of the interpreter")]
#[path = "../../interp/tests/kernels/builder/mod.rs"]
mod interpreted;

use build::{Build, buffer, input, launch, num, output, param, program, times};
use systola_ir::target::{Machine, Target};
use systola_lower::passes::{Context, passes};

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

/// The CUDA C++ of a program, which computes what the interpreter does, with indices of both
/// widths.
fn check(program: &Program, params: &[i128], inputs: &Arrays) -> String {
    assert_eq!(program.verify(), Vec::<String>::new(), "{program}");
    let want = run_kernel_program(program, params, inputs, &Options::default());
    let want = want
        .unwrap_or_else(|error| panic!("{error}\n{program}"))
        .outputs;
    let program = &synchronised(program);
    let source = compile(program);
    let artifact = emit_cuda(program).unwrap();
    for narrow in [true, false] {
        let emulated = Emulated::compile(program, &artifact, narrow)
            .unwrap_or_else(|error| panic!("{error}\n{source}"));
        let got = emulated.run(params, inputs);
        let got = got.unwrap_or_else(|error| panic!("{error}\n{source}"));
        for (name, want) in &want {
            let got = &got[name];
            let difference = want.first_difference(got, 0.0);
            assert!(difference.is_none(), "{name}: {difference:?}\n{source}");
        }
    }
    source
}

/// Inserts the warp synchronisation that keeps the order of the program's statements.
fn synchronised(program: &Program) -> Program {
    let mut program = program.clone();
    let cx = Context {
        machine: &Machine::cuda(),
        transfers: &[],
    };
    let needed = ["fold-constants", "sync-warps"];
    let mut passes = passes(Target::Cuda).iter();
    let passes = passes.by_ref().filter(|pass| needed.contains(&pass.name));
    for pass in passes {
        pass.run(&mut program, &cx).expect("small numbers");
    }
    program
}

/// Returns the text, after compiling it with NVRTC.
fn compile(program: &Program) -> String {
    let artifact = emit_cuda(program).unwrap_or_else(|e| panic!("{e}\n{program}"));
    if nvrtc_version().is_ok() {
        for (arch, variant) in [("sm_80", Variant::wide()), ("sm_90", Variant::narrow())] {
            let made = compile_only(
                &artifact.source,
                arch,
                &variant,
                &CudaCompileOptions::default(),
            );
            let made = made.unwrap_or_else(|error| panic!("{error}\n{}", artifact.source));
            assert!(
                made.warnings().is_empty(),
                "{}\n{}",
                made.log,
                artifact.source
            );
        }
    }
    artifact.source
}

fn random(program: &Program, params: &[i128]) -> Arrays {
    let mut arrays = Arrays::new();
    for (n, buffer) in program.buffers.iter().enumerate() {
        if matches!(buffer.kind, BufferKind::Input { data: None }) {
            let tensor = Tensor::random(buffer.ty, &buffer.axes, params, n as u64).unwrap();
            arrays.insert(buffer.name.clone(), tensor);
        }
    }
    arrays
}

fn below(form: &Form, n: i128) -> Cond {
    Cond::cmp(Rel::Lt, form.clone(), num(n))
}

/// Lane shifts and shuffles of every type, for warps of several widths.
#[test]
fn values_move_between_lanes() {
    for lanes in [1u32, 4, 32] {
        let mut p = program("moves", &[]);
        let l = i128::from(lanes);
        for ty in TYPES {
            let x = input(&mut p, &format!("x_{ty}"), ty, &[num(2), num(l)]);
            let y = output(&mut p, &format!("y_{ty}"), ty, &[num(12), num(l)]);
            let (x, y) = (Memory::Global(x), Memory::Global(y));
            let mut k = Build::new(&format!("moves_{ty}"), lanes, 1);
            let lane = k.lane();
            let b = k.block("b", num(1));
            let low = k.load("low", ty, x, &[b.clone(), lane.clone()]);
            let high = k.load("high", ty, x, &[num(1), lane.clone()]);
            let mut row = 0;
            let mut put = |k: &mut Build, value, when: Cond| {
                k.store_when(y, &[num(row), lane.clone()], when, value);
                row += 1;
            };
            for by in [0, 1, lanes / 2, lanes] {
                let lane_shift = |low, high| Op::LaneShift { low, high, by };
                let both = k.op("s", ty, Shape::Varying, lane_shift(Some(low), Some(high)));
                put(&mut k, both, Cond::TRUE);
                // Lanes that receive no value are undefined.
                let by = i128::from(by);
                let up = k.op("up", ty, Shape::Varying, lane_shift(None, Some(high)));
                let down = k.op("down", ty, Shape::Varying, lane_shift(Some(low), None));
                let joined = k.choose(below(&lane, by), down, up);
                put(&mut k, joined, Cond::TRUE);
            }
            let same = k.op(
                "turn",
                ty,
                Shape::Varying,
                Op::LaneShift {
                    low: Some(low),
                    high: Some(low),
                    by: lanes / 2,
                },
            );
            put(&mut k, same, Cond::TRUE);
            let far = times(3, &lane).plus(1).modulo(l);
            let from = far.clone();
            let picked = k.op("p", ty, Shape::Varying, Op::Shuffle { value: high, from });
            put(&mut k, picked, Cond::TRUE);
            let from = num(l - 1);
            let one = k.op("one", ty, Shape::Uniform, Op::Shuffle { value: high, from });
            put(&mut k, one, Cond::TRUE);
            // A shuffle whose reader is behind a condition.
            let from = far;
            let again = k.op("q", ty, Shape::Varying, Op::Shuffle { value: low, from });
            let chosen = k.choose(below(&lane, l / 2), again, high);
            put(&mut k, chosen, Cond::TRUE);
            launch(&mut p, k.finish());
        }
        let inputs = random(&p, &[]);
        check(&p, &[], &inputs);
    }
}

/// Blocks of four warps that transpose tiles through shared memory of known and unknown size.
#[test]
fn warps_meet_in_shared_memory() {
    for symbolic in [false, true] {
        let mut p = program("transpose", &["N"]);
        let n = param(0);
        let x = input(&mut p, "x", Scalar::F32, &[n.clone(), num(32), num(4)]);
        let y = output(&mut p, "y", Scalar::F32, &[n.clone(), num(4), num(32)]);
        let mut k = Build::new("transpose", 32, 4);
        let lane = k.lane();
        let warp = Form::from(k.var("w", VarKind::Warp));
        let b = k.block("b", n);
        let extent = if symbolic {
            Poly::param(ParamId(0)).add(&Poly::constant(30))
        } else {
            Poly::constant(33)
        };
        let tile = k.shared("tile", Scalar::F32, &[Poly::constant(4), extent.clone()]);
        let spare = k.shared("spare", Scalar::I16, &[extent]);
        let (tile, spare) = (Memory::Shared(tile), Memory::Shared(spare));
        let flat = times(32, &warp).add(&lane);
        let (row, column) = (flat.floor_div(4), flat.modulo(4));
        let value = k.load(
            "v",
            Scalar::F32,
            Memory::Global(x),
            &[b.clone(), row.clone(), column.clone()],
        );
        k.store(tile, &[column, row], value);
        let short = k.index(&lane);
        let short = k.cast(Scalar::I16, short);
        k.store_when(
            spare,
            std::slice::from_ref(&lane),
            Cond::cmp(Rel::Eq, warp.clone(), num(2)),
            short,
        );
        k.push(Stmt::Barrier);
        let back = k.load("t", Scalar::F32, tile, &[warp.clone(), lane.clone()]);
        let other = k.load("s", Scalar::I16, spare, &[lane.neg().plus(31)]);
        let other = k.cast(Scalar::F32, other);
        let sum = k.binary("sum", BinOp::Add, back, other);
        k.store(Memory::Global(y), &[b, warp, lane], sum);
        launch(&mut p, k.finish());
        let inputs = random(&p, &[3]);
        let source = check(&p, &[3], &inputs);
        assert_eq!(source.contains("extern __shared__"), symbolic, "{source}");
        assert!(
            source.contains("__syncthreads();") && !source.contains("__syncwarp();"),
            "{source}"
        );
    }
}

/// Lanes that read what their neighbours wrote before, in a loop.
#[test]
fn lanes_meet_where_they_touch_the_same_elements() {
    let mut p = program("steps", &["T"]);
    let x = input(&mut p, "x", Scalar::I32, &[num(34)]);
    let y = output(&mut p, "y", Scalar::I32, &[num(32)]);
    let mut k = Build::new("steps", 32, 1);
    let lane = k.lane();
    let t = k.var("t", VarKind::Loop);
    let cells = Memory::Shared(k.shared("cells", Scalar::I32, &[Poly::constant(34)]));
    let own = Memory::Shared(k.shared("own", Scalar::I32, &[Poly::constant(32)]));
    let first = k.load(
        "x",
        Scalar::I32,
        Memory::Global(x),
        std::slice::from_ref(&lane),
    );
    k.store(cells, std::slice::from_ref(&lane), first);
    let last = k.load_when(
        "x",
        Scalar::I32,
        Memory::Global(x),
        &[lane.plus(2)],
        Cond::cmp(Rel::Ge, lane.clone(), num(30)),
        None,
    );
    k.store_when(
        cells,
        &[lane.plus(2)],
        Cond::cmp(Rel::Ge, lane.clone(), num(30)),
        last,
    );
    k.for_loop(t, vec![num(0)], vec![param(0)], 1, |k| {
        let left = k.load("left", Scalar::I32, cells, std::slice::from_ref(&lane));
        let right = k.load("right", Scalar::I32, cells, &[lane.plus(2)]);
        let sum = k.binary("sum", BinOp::Sub, right, left);
        k.store(cells, &[lane.plus(1)], sum);
        // Each lane reads its own element: no warp synchronisation.
        k.store(own, std::slice::from_ref(&lane), sum);
        let mine = k.load("mine", Scalar::I32, own, std::slice::from_ref(&lane));
        k.store_when(
            Memory::Global(y),
            std::slice::from_ref(&lane),
            Cond::cmp(Rel::Eq, Form::from(t).plus(1), param(0)),
            mine,
        );
    });
    launch(&mut p, k.finish());
    let inputs = random(&p, &[5]);
    let source = check(&p, &[5], &inputs);
    // Before the second store of `cells`, the first load of an iteration, and the store of an
    // iteration.
    let waits = source.matches("__syncwarp();").count();
    assert!((2..=4).contains(&waits), "{waits}\n{source}");
}

/// Vector accesses, also under predicates.
#[test]
fn wide_accesses_are_vectors() {
    let types = [
        Scalar::F32,
        Scalar::U8,
        Scalar::I8,
        Scalar::F64,
        Scalar::Bool,
    ];
    let cases = types.into_iter().flat_map(|ty| [(ty, 4), (ty, 16)]);
    for (ty, width) in cases {
        let mut p = program("wide", &["N"]);
        let n = param(0);
        let x = input(&mut p, "x", ty, &[n.clone(), num(512)]);
        let y = output(&mut p, "y", ty, &[n.clone(), num(512)]);
        let mut k = Build::new("wide", 32, 1);
        let lane = k.lane();
        let b = k.block("b", n);
        let at = times(width, &lane);
        let inside = Cond::cmp(Rel::Lt, lane.clone(), num(20));
        let from = Access {
            memory: Memory::Global(x),
            index: vec![b.clone(), at.clone()],
            when: inside,
        };
        let to: Vec<_> = (0..width)
            .map(|n| k.declare(&format!("v{n}"), ty, Shape::Varying))
            .collect();
        let otherwise = match ty {
            Scalar::Bool => Literal::Bool(true),
            Scalar::I8 => Literal::Int(-3),
            _ => Literal::Int(1),
        };
        k.push(Stmt::LoadWide {
            to: to.clone(),
            from,
            otherwise: Some(otherwise),
        });
        let values: Vec<_> = to.iter().rev().copied().collect();
        k.push(Stmt::StoreWide {
            to: Access {
                memory: Memory::Global(y),
                index: vec![b, at],
                when: Cond::cmp(Rel::Ge, lane, num(3)),
            },
            values,
        });
        launch(&mut p, k.finish());
        let inputs = random(&p, &[3]);
        fill_outputs(&mut p);
        let source = check(&p, &[3], &inputs);
        assert!(source.contains("Pack<"), "{source}");
    }
}

/// Elements that a kernel does not write have a value nevertheless.
fn fill_outputs(p: &mut Program) {
    for buffer in &mut p.buffers {
        if let BufferKind::Output { fill } = &mut buffer.kind {
            *fill = Some(match buffer.ty {
                Scalar::Bool => Literal::Bool(false),
                _ => Literal::Int(0),
            });
        }
    }
}

/// Copies into shared memory that are in flight while others are read.
#[test]
fn copies_arrive_when_they_are_waited_for() {
    for (engine, width) in [
        (Engine::Plain, 1),
        (Engine::Plain, 4),
        (Engine::CpAsync, 1),
        (Engine::CpAsync, 2),
        (Engine::CpAsync, 4),
    ] {
        let mut p = program("stages", &["N"]);
        let n = param(0);
        let chunk = 32 * i128::from(width);
        let x = input(&mut p, "x", Scalar::F32, &[n.clone(), num(chunk)]);
        let y = output(&mut p, "y", Scalar::F32, &[n.clone(), num(chunk)]);
        let mut k = Build::new("stages", 32, 1);
        let lane = k.lane();
        let t = k.var("t", VarKind::Loop);
        let stage = Memory::Shared(k.shared(
            "stage",
            Scalar::F32,
            &[Poly::constant(2), Poly::constant(chunk)],
        ));
        let at = times(width.into(), &lane);
        let copy = |k: &mut Build, iteration: &Form, when: Cond| {
            let mut to = Access::new(stage, vec![iteration.modulo(2), at.clone()]);
            to.when = when;
            k.push(Stmt::Copy {
                to,
                from: Access::new(Memory::Global(x), vec![iteration.clone(), at.clone()]),
                width,
                engine,
            });
            k.push(Stmt::CommitCopies);
        };
        copy(&mut k, &num(0), Cond::TRUE);
        k.for_loop(t, vec![num(0)], vec![n.clone()], 1, |k| {
            let next = Form::from(t).plus(1);
            let more = Cond::cmp(Rel::Lt, next.clone(), n.clone());
            copy(k, &next, more);
            k.push(Stmt::WaitCopies { pending: 1 });
            for e in 0..width {
                // Another lane's elements.
                let from = lane.neg().plus(31);
                let from = times(width.into(), &from).plus(e.into());
                let value = k.load("s", Scalar::F32, stage, &[Form::from(t).modulo(2), from]);
                k.store(
                    Memory::Global(y),
                    &[Form::from(t), at.plus(e.into())],
                    value,
                );
            }
        });
        k.push(Stmt::WaitCopies { pending: 0 });
        launch(&mut p, k.finish());
        let inputs = random(&p, &[4]);
        let source = check(&p, &[4], &inputs);
        assert_eq!(
            source.contains("cp.async"),
            engine == Engine::CpAsync,
            "{source}"
        );
    }
}

/// Every operator on every type, on values at the ends of their ranges.
#[test]
fn operators_wrap_round_and_saturate() {
    let binary = [
        BinOp::Add,
        BinOp::Sub,
        BinOp::Mul,
        BinOp::Div,
        BinOp::Rem,
        BinOp::Min,
        BinOp::Max,
        BinOp::Eq,
        BinOp::Lt,
        BinOp::Ge,
        BinOp::BitAnd,
        BinOp::BitOr,
        BinOp::BitXor,
        BinOp::Shl,
        BinOp::Shr,
    ];
    let mut p = program("operators", &[]);
    let mut inputs = Arrays::new();
    for ty in TYPES.into_iter().filter(|ty| *ty != Scalar::Bool) {
        let edges: Vec<Literal> = match ty.int_range() {
            Some((least, greatest)) => {
                [least, least + 1, -3, -1, 0, 1, 2, 7, greatest - 1, greatest]
                    .map(|x| Literal::Int(x.clamp(least, greatest)))
                    .to_vec()
            }
            None => [
                -1e30,
                -2.5,
                -1.0,
                -0.5,
                0.25,
                1.0,
                2.5,
                7.0,
                1e10,
                f64::INFINITY,
            ]
            .map(Literal::Float)
            .to_vec(),
        };
        let n = edges.len();
        let pairs = n * n;
        let (mut left, mut right) = (Vec::new(), Vec::new());
        for a in &edges {
            for b in &edges {
                left.push(value::literal(ty, *a));
                // Nothing is divided by zero.
                let zero = matches!(b, Literal::Int(0));
                right.push(value::literal(ty, if zero { Literal::Int(5) } else { *b }));
            }
        }
        for (name, values) in [("a", &left), ("b", &right)] {
            let mut data = systola_interp::Data::filled(ty, pairs, &values[0]);
            for (at, v) in values.iter().enumerate() {
                data.set(at, v);
            }
            let tensor = Tensor::new(vec![pairs], data).unwrap();
            inputs.insert(format!("{name}_{ty}"), tensor);
        }
        let count = num(pairs as i128);
        let a = input(&mut p, &format!("a_{ty}"), ty, std::slice::from_ref(&count));
        let b = input(&mut p, &format!("b_{ty}"), ty, std::slice::from_ref(&count));
        let mut k = Build::new(&format!("operators_{ty}"), 32, 1);
        let lane = k.lane();
        let block = k.block("block_number", num((pairs as i128 + 31) / 32));
        let at = times(32, &block).add(&lane);
        let inside = below(&at, pairs as i128);
        let one = Some(Literal::Int(1));
        let place = std::slice::from_ref(&at);
        let a = k.load_when("a", ty, Memory::Global(a), place, inside.clone(), one);
        let b = k.load_when("b", ty, Memory::Global(b), place, inside.clone(), one);
        let mut results = Vec::new();
        for op in binary {
            let bits = matches!(
                op,
                BinOp::BitAnd | BinOp::BitOr | BinOp::BitXor | BinOp::Shl | BinOp::Shr
            );
            if ty.is_float() && (bits || op == BinOp::Rem) {
                continue;
            }
            results.push(k.binary("r", op, a, b));
        }
        results.push(k.unary(UnOp::Abs, a));
        if ty.is_float() || ty.is_signed_int() {
            results.push(k.unary(UnOp::Neg, a));
        }
        for to in TYPES {
            results.push(k.cast(to, a));
        }
        for (n, result) in results.into_iter().enumerate() {
            let ty_of = k.ty(result);
            let y = output(
                &mut p,
                &format!("y_{ty}_{n}"),
                ty_of,
                std::slice::from_ref(&count),
            );
            k.store_when(Memory::Global(y), place, inside.clone(), result);
        }
        launch(&mut p, k.finish());
    }
    check(&p, &[], &inputs);
}

/// Tables that all lanes read at one index are in constant memory, others are not.
#[test]
fn small_uniform_inputs_are_constants() {
    let mut p = program("tables", &["N"]);
    let data = (0..6).map(|n| Literal::Int(n * n - 7)).collect();
    let kind = BufferKind::Input { data: Some(data) };
    let axes = [(num(-1), num(2)), (num(0), num(2))];
    let stated = buffer(&mut p, "stated", Scalar::I32, kind, &axes);
    let weights = input(&mut p, "w", Scalar::I32, &[num(3)]);
    let picked = input(&mut p, "picked", Scalar::I32, &[num(5)]);
    let large = input(&mut p, "large", Scalar::I32, &[param(0)]);
    let x = input(&mut p, "x", Scalar::I32, &[num(32)]);
    let y = output(&mut p, "y", Scalar::I32, &[num(32)]);
    let mut k = Build::new("tables", 32, 1);
    let lane = k.lane();
    let t = k.var("t", VarKind::Loop);
    let sum = k.reg("sum", Scalar::I32, Shape::Varying);
    let first = k.load(
        "x",
        Scalar::I32,
        Memory::Global(x),
        std::slice::from_ref(&lane),
    );
    k.set(sum, first);
    k.for_loop(t, vec![num(0)], vec![num(3)], 1, |k| {
        let t = Form::from(t);
        let a = k.load(
            "a",
            Scalar::I32,
            Memory::Global(stated),
            &[t.plus(-1), num(1)],
        );
        let b = k.load(
            "b",
            Scalar::I32,
            Memory::Global(weights),
            std::slice::from_ref(&t),
        );
        let c = k.load(
            "c",
            Scalar::I32,
            Memory::Global(large),
            std::slice::from_ref(&t),
        );
        let product = k.binary("ab", BinOp::Mul, a, b);
        let product = k.binary("abc", BinOp::Add, product, c);
        let before = k.get(sum);
        let after = k.binary("sum", BinOp::Add, before, product);
        k.set(sum, after);
    });
    let at = k.index(&lane.modulo(7));
    let at = k.cast(Scalar::U8, at);
    let op = Op::Lookup {
        memory: Memory::Global(picked),
        index: vec![at],
    };
    let found = k.op("found", Scalar::I32, Shape::Varying, op);
    let zero = k.int(Scalar::I32, 0);
    let found = k.choose(below(&lane.modulo(7), 5), found, zero);
    let total = k.get(sum);
    let total = k.binary("total", BinOp::Add, total, found);
    k.store(Memory::Global(y), &[lane], total);
    launch(&mut p, k.finish());
    let inputs = random(&p, &[9]);
    let source = check(&p, &[9], &inputs);
    for (name, constant) in [
        ("stated", true),
        ("w", true),
        ("picked", false),
        ("large", false),
    ] {
        let declared = source.contains(&format!("__constant__ int32_t {name}_constant["));
        assert_eq!(declared, constant, "{name}\n{source}");
    }
}

/// Blocks that wait for each other first take dynamic block ids.
#[test]
fn flags_are_released_and_acquired() {
    let mut p = program("chain", &["N"]);
    let n = param(0);
    let flags = buffer(
        &mut p,
        "flags",
        Scalar::I32,
        BufferKind::Flags,
        &[(num(0), n.plus(1))],
    );
    let carry = buffer(
        &mut p,
        "carry",
        Scalar::I32,
        BufferKind::Temporary,
        &[(num(0), n.plus(1))],
    );
    let x = input(&mut p, "x", Scalar::I32, std::slice::from_ref(&n));
    let y = output(&mut p, "y", Scalar::I32, std::slice::from_ref(&n));
    let mut k = Build::new("chain", 32, 2);
    k.lane();
    k.block("b", n.clone());
    let block_id = k.var("block_id", VarKind::DynamicBlock);
    let at = Form::from(block_id);
    let flag = |index: Form| Access::new(Memory::Global(flags), vec![index]);
    k.push(Stmt::DynamicBlock {
        var: block_id,
        counter: flag(n),
    });
    let own = k.load(
        "x",
        Scalar::I32,
        Memory::Global(x),
        std::slice::from_ref(&at),
    );
    let later = Cond::cmp(Rel::Gt, at.clone(), num(0));
    k.push(Stmt::Await {
        flag: Access {
            when: later.clone(),
            ..flag(at.plus(-1))
        },
        at_least: num(1),
    });
    let before = k.load_when(
        "c",
        Scalar::I32,
        Memory::Global(carry),
        &[at.plus(-1)],
        later,
        Some(Literal::Int(0)),
    );
    let sum = k.binary("sum", BinOp::Add, before, own);
    k.store(Memory::Global(carry), std::slice::from_ref(&at), sum);
    k.push(Stmt::Signal {
        flag: flag(at.clone()),
    });
    k.store(Memory::Global(y), &[at], sum);
    launch(&mut p, k.finish());
    assert_eq!(p.verify(), Vec::<String>::new());
    let source = compile(&p);
    for part in [
        "red.release.gpu",
        "ld.acquire.gpu",
        "take_block_id(&flags[N])",
    ] {
        assert!(source.contains(part), "{part}\n{source}");
    }
    assert!(source.contains("int32_t *carry"), "{source}");
}

/// Random kernels of three warps of four lanes each: those that the interpreter accepts give the
/// same values, however far threads run ahead of each other.
#[test]
fn random_kernels_are_in_order() {
    let accepted = (0..400).map(|seed| interpreted::random::draw(seed, false));
    let accepted = accepted.filter(|program| {
        run_kernel_program(program, &[], &Arrays::new(), &Options::default()).is_ok()
    });
    let mut waits = 0;
    for program in accepted.take(8) {
        waits += check(&program, &[], &Arrays::new())
            .matches("__syncwarp();")
            .count();
    }
    assert!(waits > 0);
}
