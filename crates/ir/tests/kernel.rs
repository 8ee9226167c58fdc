//! Kernels are printed for people, and ill-formed ones are refused with messages.

use systola_ir::kernel::effects::Scope;
use systola_ir::kernel::parse::parse;
use systola_ir::kernel::visit::{MapForms, Rewrite, map_forms, rewrite, walk};
use systola_ir::kernel::{
    Access, Buffer, BufferKind, Host, Kernel, Memory, Op, Program, Reg, Shape, Shared, Size, Stmt,
    Value, Var, VarKind,
};
use systola_ir::mapping::Engine;
use systola_ir::system::Axis;
use systola_ir::{
    BinOp, BufferId, Cond, DimId, Form, KernelId, Literal, ParamId, Poly, RegId, Rel, Scalar,
    SharedId, UnOp, ValueId,
};

const X: Memory = Memory::Global(BufferId(0));
const Y: Memory = Memory::Global(BufferId(1));
const READY: Memory = Memory::Global(BufferId(2));
const STAGE: Memory = Memory::Shared(SharedId(0));
const ACC: RegId = RegId(0);
const H: DimId = DimId(0);
const B: DimId = DimId(1);
const W: DimId = DimId(2);
const L: DimId = DimId(3);
const T: DimId = DimId(4);
const P: DimId = DimId(5);

fn at(memory: Memory, index: impl Into<Form>) -> Access {
    Access::new(memory, vec![index.into()])
}

fn v(n: u32) -> ValueId {
    ValueId(n)
}

fn load(from: Access) -> Op {
    let otherwise = None;
    Op::Load { from, otherwise }
}

fn assign(n: u32, op: Op) -> Stmt {
    Stmt::Let(v(n), op)
}

fn store(to: Access, value: u32) -> Stmt {
    let value = v(value);
    Stmt::Store { to, value }
}

fn repeat(body: Vec<Stmt>) -> Stmt {
    Stmt::For {
        var: T,
        lo: vec![0.into()],
        hi: vec![Form::from(ParamId(0)), Form::from(B).plus(4)],
        step: 2,
        body,
    }
}

fn value(name: &str, ty: Scalar, shape: Shape) -> Value {
    let name = name.into();
    Value { name, ty, shape }
}

/// A kernel with one variable of each kind, one register and one shared array around this body.
/// Values 0..=5 are f32, 6 is uniform, 7 is an i32 and 8 a bool.
fn program(body: Vec<Stmt>) -> Program {
    let n = Form::from(ParamId(0));
    let buffer = |name: &str, ty, kind| Buffer {
        name: name.into(),
        ty,
        kind,
        axes: vec![Axis {
            lo: Form::zero(),
            hi: n.clone(),
        }],
    };
    let var = |name: &str, kind| Var {
        name: name.into(),
        kind,
    };
    let block = VarKind::Block {
        lo: vec![Form::zero()],
        hi: vec![n.clone(), Form::from(H).plus(1)],
    };
    let mut values = vec![value("x", Scalar::F32, Shape::Varying); 6];
    values.push(value("c", Scalar::F32, Shape::Uniform));
    values.push(value("i", Scalar::I32, Shape::Varying));
    values.push(value("q", Scalar::Bool, Shape::Varying));
    let kernel = Kernel {
        hints: Default::default(),
        name: "k".into(),
        lanes: 32,
        warps: 2,
        vars: vec![
            var("h", VarKind::Host),
            var("b", block),
            var("w", VarKind::Warp),
            var("l", VarKind::Lane),
            var("t", VarKind::Loop),
            var("p", VarKind::DynamicBlock),
        ],
        shared: vec![Shared {
            name: "stage".into(),
            ty: Scalar::F32,
            extents: vec![Poly::param(ParamId(0))],
        }],
        regs: vec![Reg {
            name: "acc".into(),
            ty: Scalar::F32,
            shape: Shape::Varying,
        }],
        values,
        body,
    };
    let size = |name: &str, fixed| Size {
        name: name.into(),
        fixed,
    };
    let fill = Some(Literal::Int(0));
    Program {
        name: "prog".into(),
        params: vec![size("N", None), size("K", Some(3))],
        context: vec![Cond::cmp(Rel::Ge, ParamId(0), 1)],
        buffers: vec![
            buffer("x", Scalar::F32, BufferKind::Input { data: None }),
            buffer("y", Scalar::F32, BufferKind::Output { fill }),
            buffer("ready", Scalar::I32, BufferKind::Flags),
        ],
        kernels: vec![kernel],
        host_vars: vec!["s".into()],
        body: vec![Host::For {
            var: DimId(0),
            lo: vec![Form::zero()],
            hi: vec![Form::from(ParamId(1))],
            body: vec![Host::Launch {
                kernel: KernelId(0),
                args: vec![Form::from(DimId(0)).plus(1)],
            }],
        }],
    }
}

/// Checks the statements of the body as printed.
fn check_text(body: Vec<Stmt>, expect: &[&str]) {
    let program = program(body);
    assert_eq!(program.verify(), [""; 0], "{program}");
    let text = program.to_string();
    let (_, body) = text.split_once("reg acc: f32;\n\n").unwrap();
    let dedent = |line| str::strip_prefix(line, "  ").unwrap_or(line);
    let lines: Vec<&str> = body.lines().map(dedent).collect();
    assert_eq!(lines[..lines.len() - 1], *expect);
    let read = parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(read.to_string(), text);
    assert_eq!(read.verify(), [""; 0], "{text}");
}

/// Checks that one of the messages contains `expect`.
fn check_wrong(body: Vec<Stmt>, expect: &str) {
    complains(&program(body), expect);
}

fn complains(program: &Program, expect: &str) {
    let wrong = program.verify();
    assert!(
        wrong.iter().any(|text| text.contains(expect)),
        "{wrong:?} does not say {expect:?} of\n{program}"
    );
}

#[test]
fn a_program_prints_whole() {
    let body = vec![assign(0, load(at(X, L))), store(at(Y, L), 0)];
    assert_eq!(
        program(body).to_string(),
        "program prog(N, K = 3) where N >= 1 {
  input x[N]: f32;
  output y[N]: f32 else 0;
  flags ready[N]: i32;
  for s in 0..K {
    launch k(s + 1);
  }
}

kernel k: 2 warps of 32 lanes {
  host h;
  block b in 0..min(N, h + 1);
  warp w in 0..2;
  lane l in 0..32;
  shared stage[N]: f32;
  reg acc: f32;

  x.1: f32 = x[l];
  y[l] = x.1;
}
"
    );
}

#[test]
fn values_stand_where_they_are_used_once() {
    check_text(
        vec![
            assign(6, Op::Lit(Literal::Float(2.0))),
            assign(0, load(at(X, L))),
            assign(1, Op::Binary(BinOp::Mul, v(0), v(6))),
            assign(2, Op::Get(ACC)),
            assign(3, Op::Binary(BinOp::Add, v(2), v(1))),
            assign(4, Op::Binary(BinOp::Min, v(3), v(0))),
            Stmt::Set(ACC, v(4)),
        ],
        &["x.1: f32 = x[l];", "acc = min(acc + x.1 * 2.0, x.1);"],
    );
    check_text(
        vec![
            assign(0, load(at(X, L))),
            assign(1, Op::Binary(BinOp::Sub, v(0), v(0))),
            assign(2, Op::Binary(BinOp::Sub, v(0), v(1))),
            assign(3, Op::Unary(UnOp::Neg, v(2))),
            assign(4, Op::Unary(UnOp::Abs, v(3))),
            Stmt::Set(ACC, v(4)),
        ],
        &["x.1: f32 = x[l];", "acc = abs(-(x.1 - (x.1 - x.1)));"],
    );
}

#[test]
fn a_register_is_not_read_later_than_it_was() {
    // The old value is stored after the register is set again.
    check_text(
        vec![
            assign(0, Op::Get(ACC)),
            assign(1, load(at(X, L))),
            Stmt::Set(ACC, v(1)),
            store(at(Y, L), 0),
        ],
        &[
            "x.1: f32 = acc;",
            "x.2: f32 = x[l];",
            "acc = x.2;",
            "y[l] = x.1;",
        ],
    );
    // The same, through a sum that is printed where it is stored.
    check_text(
        vec![
            assign(0, Op::Get(ACC)),
            assign(1, load(at(X, L))),
            assign(2, Op::Binary(BinOp::Add, v(0), v(1))),
            Stmt::Set(ACC, v(1)),
            store(at(Y, L), 2),
        ],
        &[
            "x.1: f32 = acc;",
            "x.2: f32 = x[l];",
            "acc = x.2;",
            "y[l] = x.1 + x.2;",
        ],
    );
    // What a loop uses is computed before it, once.
    check_text(
        vec![
            assign(0, load(at(X, L))),
            assign(1, Op::Binary(BinOp::Add, v(0), v(0))),
            repeat(vec![Stmt::Set(ACC, v(1))]),
        ],
        &[
            "x.1: f32 = x[l];",
            "x.2: f32 = x.1 + x.1;",
            "for t in 0..min(N, b + 4) step 2 {",
            "  acc = x.2;",
            "}",
        ],
    );
}

/// All kinds of statements except the plain ones.
fn all_kinds() -> Vec<Stmt> {
    let when = |access: Access, when| Access { when, ..access };
    let select = Op::Select {
        cond: v(8),
        then: v(1),
        otherwise: v(4),
    };
    vec![
        Stmt::Comment("what a person reads".into()),
        Stmt::DynamicBlock {
            var: P,
            counter: at(READY, 0),
        },
        Stmt::LoadWide {
            to: vec![v(0), v(1)],
            from: when(at(X, L), Cond::cmp(Rel::Lt, L, 4)),
            otherwise: Some(Literal::Int(1)),
        },
        Stmt::Copy {
            to: at(STAGE, L),
            from: when(at(X, L), Cond::cmp(Rel::Lt, L, P)),
            width: 1,
            engine: Engine::CpAsync,
        },
        Stmt::CommitCopies,
        Stmt::WaitCopies { pending: 0 },
        Stmt::Barrier,
        assign(7, Op::Cast(v(0))),
        assign(
            2,
            Op::Lookup {
                memory: STAGE,
                index: vec![v(7)],
            },
        ),
        assign(
            3,
            Op::LaneShift {
                low: Some(v(2)),
                high: None,
                by: 3,
            },
        ),
        assign(
            4,
            Op::Shuffle {
                value: v(3),
                from: Form::from(L).plus(-1),
            },
        ),
        assign(8, Op::Binary(BinOp::Lt, v(3), v(4))),
        assign(5, select),
        Stmt::If {
            cond: Cond::cmp(Rel::Eq, W, 1),
            then: vec![Stmt::StoreWide {
                to: at(Y, L),
                values: vec![v(5), v(0)],
            }],
            otherwise: vec![store(when(at(Y, L), Cond::cmp(Rel::Ge, L, 2)), 5)],
        },
        Stmt::Await {
            flag: at(READY, B),
            at_least: Form::from(H),
        },
        Stmt::Signal { flag: at(READY, B) },
    ]
}

/// A program of one chain for the warp, or one for each lane.
fn look_back(place: &str, term: &str, before: &str) -> String {
    format!(
        "program prog(N) where N >= 1 {{
  output y[N]: f32;
  flags chain[N, 32, 1]: u64;
  launch k();
}}

kernel k: 1 warp of 32 lanes {{
  block b in 0..N;
  lane l in 0..32;
  reg acc: f32;

  {term}
  look_back {before}: f32 = a at {place} along 0 up when b < N, where e joins f {{
    uniform s: f32 = e + f;
  }} gives s;
  y[b] = {before};
}}
"
    )
}

#[test]
fn a_look_back_prints_and_is_checked() {
    let good = [
        look_back("chain[b, 0, 0]", "// The term is uniform.", "x").replace("= a at", "= 2 * 3 at"),
        look_back("chain[b, l, 0]", "// The lanes have terms.", "x").replace("= a at", "= acc at"),
    ];
    for text in &good {
        let program = parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(program.verify(), [""; 0], "{text}");
        assert_eq!(program.to_string(), *text);
        let mut stmts = program.kernels[0].body.iter();
        let Some((stmt, look)) = stmts.find_map(|stmt| match stmt {
            Stmt::LookBack(look) => Some((stmt, look)),
            _ => None,
        }) else {
            panic!("{text}")
        };
        assert_eq!(look.joins.body.len(), 1);
        assert_eq!(stmt.uses().len(), 2);
        assert_eq!(stmt.defs().len(), 3);
        let moved = map_forms(&program.kernels[0].body, &|form| Ok(form.clone())).unwrap();
        assert_eq!(moved, program.kernels[0].body);
    }
    // Of a literal among the results nothing is lost.
    let pairs = good[1]
        .replace("32, 1]: u64", "32, 2]: u64")
        .replace(
            "look_back x: f32 = acc",
            "look_back x: f32, z: f32 = acc, acc",
        )
        .replace("e joins f", "e, g joins f, h")
        .replace("gives s", "gives s, 1");
    let program = parse(&pairs).unwrap_or_else(|error| panic!("{error}\n{pairs}"));
    assert_eq!(program.verify(), [""; 0], "{pairs}");
    assert_eq!(program.to_string(), pairs);
    let wrong = |text: &str, expect: &str| {
        let program = parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        complains(&program, expect);
    };
    let lanes = &good[1];
    let one = look_back("chain[b, 0, 0]", "a: f32 = acc;", "x");
    wrong(&one, "a chain of the warp has a term for each lane");
    let crossed = lanes.replace("chain[b, l, 0]", "chain[l, 0, 0]");
    wrong(&crossed, "the place in the chain depends on the lane");
    let counters = lanes.replace("32, 1]: u64", "32, 1]: i32");
    wrong(&counters, "not in a buffer of flags with 64 bits");
    wrong(
        &lanes.replace("32, 1]: u64", "32, 2]: u64"),
        "the scalars do not fill the last axis",
    );
    wrong(
        &lanes.replace("along 0", "along 2"),
        "the chain is along no axis",
    );
    let apart = "and z: f32 = acc at chain[b + 1, l, 0] along";
    wrong(
        &lanes
            .replace("along", apart)
            .replace("b in 0..N", "b in 0..N - 1"),
        "the chains of a look-back have places in different blocks or buffers",
    );
    let reads = lanes.replace("e + f", "e + acc");
    wrong(
        &reads,
        "the operation of a look-back does more than compute",
    );
    let escapes = lanes.replace("y[b] = x", "y[b] = s");
    wrong(
        &escapes,
        "is used before it is assigned or out of its scope",
    );
}

#[test]
fn every_statement_prints() {
    check_text(
        all_kinds(),
        &[
            "// what a person reads",
            "dynamic_block p from ready[0];",
            "x.1, x.2: f32 = x[l ..+2] when l < 4 else 1;",
            "copy async stage[l] = x[l] when l < p;",
            "commit copies;",
            "wait for all copies;",
            "barrier;",
            "x.3: f32 = lookup(stage, i32(x.1));",
            "x.4: f32 = lane_shift(x.3, _, 3);",
            "x.5: f32 = shuffle(x.4, l - 1);",
            "x.6: f32 = select(x.4 < x.5, x.2, x.5);",
            "if w == 1 {",
            "  y[l ..+2] = x.6, x.1;",
            "} else {",
            "  y[l] = x.6 when l >= 2;",
            "}",
            "await ready[b] >= h;",
            "signal ready[b];",
        ],
    );
}

#[test]
fn values_are_assigned_once_and_used_in_their_scope() {
    let x = || assign(0, load(at(X, L)));
    let use_x = || Stmt::Set(ACC, v(0));
    check_wrong(vec![use_x()], "used before it is assigned");
    check_wrong(vec![x(), x()], "assigned twice");
    let itself = assign(0, Op::Unary(UnOp::Neg, v(0)));
    check_wrong(vec![itself], "used before it is assigned");
    check_wrong(vec![repeat(vec![x()]), use_x()], "out of its scope");
    let branches = Stmt::If {
        cond: Cond::TRUE,
        then: vec![x()],
        otherwise: vec![use_x()],
    };
    check_wrong(vec![branches], "out of its scope");
    check_wrong(vec![Stmt::Set(ACC, v(99))], "there is no value 99");
    check_wrong(vec![assign(99, Op::Lit(Literal::Int(0)))], "not declared");
    check_wrong(vec![x(), Stmt::Set(RegId(5), v(0))], "no such register");
}

#[test]
fn index_variables_are_bound_once_and_used_in_their_scope() {
    let x = |form: Form| vec![assign(0, load(at(X, form)))];
    check_wrong(x(T.into()), "out of scope");
    check_wrong(x(P.into()), "out of scope");
    check_wrong(x(DimId(77).into()), "unknown variable");
    check_wrong(x(ParamId(7).into()), "unknown variable");
    check_wrong(vec![repeat(vec![]), repeat(vec![])], "t is bound twice");
    let bound = |var| Stmt::For {
        var,
        lo: vec![0.into()],
        hi: vec![1.into()],
        step: 1,
        body: vec![],
    };
    check_wrong(vec![bound(L)], "l is no loop variable");
    check_wrong(vec![bound(DimId(77))], "there is no variable 77");
    let block_id = || Stmt::DynamicBlock {
        var: P,
        counter: at(READY, 0),
    };
    check_wrong(vec![block_id(), block_id()], "p is bound twice");
    check_wrong(
        vec![repeat(vec![block_id()])],
        "a dynamic block id is taken in a loop",
    );
}

#[test]
fn operators_have_types() {
    let x = || assign(0, load(at(X, L)));
    let i = || assign(7, Op::Cast(v(0)));
    let wrong = |n, op, expect| check_wrong(vec![x(), i(), assign(n, op)], expect);
    let binary = |op, a, b| Op::Binary(op, v(a), v(b));
    wrong(1, binary(BinOp::Add, 0, 7), "one type, not f32 and i32");
    wrong(1, binary(BinOp::And, 0, 0), "`&&` is not defined on f32");
    wrong(1, binary(BinOp::Lt, 0, 0), "a f32 is assigned a bool");
    wrong(1, Op::Unary(UnOp::Not, v(0)), "`!` is not defined on f32");
    wrong(8, Op::Lit(Literal::Int(1)), "1 is no bool");
    wrong(1, Op::Index(L.into()), "a f32 is assigned a i64");
    let select = Op::Select {
        cond: v(0),
        then: v(0),
        otherwise: v(0),
    };
    wrong(1, select, "a choice is made by a f32");
    let choose = Op::Choose {
        cond: Cond::TRUE,
        then: v(0),
        otherwise: v(7),
    };
    wrong(1, choose, "a choice between f32 and i32");
    let (memory, index) = (STAGE, vec![v(0)]);
    wrong(1, Op::Lookup { memory, index }, "an index is a f32");
    let shift = |low, by| {
        let high = None;
        Op::LaneShift { low, high, by }
    };
    wrong(1, shift(Some(v(0)), 33), "more than the lanes");
    wrong(1, shift(None, 1), "no vector is shifted");
    let body = |stmt| vec![x(), i(), stmt];
    check_wrong(
        body(store(at(Y, L), 7)),
        "a i32 is stored into an array of f32",
    );
    check_wrong(body(Stmt::Set(ACC, v(7))), "another type");
}

#[test]
fn what_is_uniform_does_not_depend_on_the_lane() {
    let x = || assign(0, load(at(X, L)));
    let varying = assign(6, load(at(X, L)));
    check_wrong(vec![varying], "a uniform value depends on the lane");
    let mut uniform = program(vec![x(), Stmt::Set(ACC, v(0))]);
    assert_eq!(uniform.verify(), [""; 0]);
    uniform.kernels[0].regs[0].shape = Shape::Uniform;
    complains(&uniform, "a uniform register is set to a varying value");
    let branch = Stmt::If {
        cond: Cond::cmp(Rel::Lt, L, 3),
        then: vec![],
        otherwise: vec![],
    };
    check_wrong(vec![branch], "the condition depends on the lane");
    let repeated = Stmt::For {
        var: T,
        lo: vec![L.into()],
        hi: vec![4.into()],
        step: 1,
        body: vec![],
    };
    check_wrong(vec![repeated], "the bounds depend on the lane");
    // The value of one lane for all lanes is uniform, and so is a load at a uniform position.
    let shuffle = Op::Shuffle {
        value: v(0),
        from: Form::from(B),
    };
    let body = vec![x(), assign(6, shuffle)];
    assert_eq!(program(body).verify(), [""; 0]);
    assert_eq!(program(vec![assign(6, load(at(X, B)))]).verify(), [""; 0]);
}

#[test]
fn all_warps_come_to_a_barrier() {
    let some = |body| {
        vec![Stmt::If {
            cond: Cond::cmp(Rel::Eq, W, 0),
            then: vec![repeat(body)],
            otherwise: vec![],
        }]
    };
    check_wrong(
        some(vec![Stmt::Barrier]),
        "not every warp reaches this barrier",
    );
    let signal = |flag| Stmt::Signal { flag };
    check_wrong(
        some(vec![signal(at(READY, 0))]),
        "it depends on the warp, but the whole block executes it",
    );
    let wait = Stmt::Await {
        flag: at(READY, 0),
        at_least: W.into(),
    };
    check_wrong(vec![wait], "the whole block executes it");
    check_wrong(vec![signal(at(READY, L))], "it depends on the lane");
    check_wrong(vec![signal(at(Y, 0))], "not in a buffer of flags");
    // With one warp, no warp can miss the barrier.
    let mut single = program(some(vec![Stmt::Barrier]));
    single.kernels[0].warps = 1;
    assert_eq!(single.verify(), [""; 0]);
}

#[test]
fn accesses_fit_their_arrays() {
    let x = assign(0, load(at(X, L)));
    check_wrong(vec![x, store(at(X, L), 0)], "an input is written");
    let flat = assign(0, load(Access::new(X, vec![])));
    check_wrong(vec![flat], "0 indices for the 1 axes of x");
    let nowhere = assign(0, load(at(Memory::Shared(SharedId(9)), 0)));
    check_wrong(vec![nowhere], "no such array");
    let copy = |to, from| Stmt::Copy {
        to: at(to, L),
        from: at(from, L),
        width: 1,
        engine: Engine::Plain,
    };
    let wait = || Stmt::WaitCopies { pending: 0 };
    let body = |copy| vec![copy, Stmt::CommitCopies, wait()];
    check_wrong(body(copy(Y, X)), "from global to shared");
    check_wrong(body(copy(STAGE, READY)), "the copy changes the type");
    check_wrong(vec![copy(STAGE, X)], "never committed");
    let committed = vec![copy(STAGE, X), Stmt::CommitCopies];
    check_wrong(committed, "never waited for");
    check_wrong(vec![wait()], "no copies to wait for");
}

#[test]
fn the_host_and_the_buffers_are_checked() {
    let changed = |expect: &str, change: &dyn Fn(&mut Program)| {
        let mut program = program(vec![]);
        assert_eq!(program.verify(), [""; 0]);
        change(&mut program);
        complains(&program, expect);
    };
    changed("not i32", &|p| p.buffers[2].ty = Scalar::I64);
    changed("two buffers are named x", &|p| {
        p.buffers[1].name = "x".into();
    });
    changed("do not fill", &|p| {
        let data = Some(vec![Literal::Int(1)]);
        p.buffers[0].kind = BufferKind::Input { data };
        p.buffers[0].axes[0].hi = 2.into();
    });
    changed("something that is no size", &|p| {
        p.buffers[0].axes[0].hi = B.into();
    });
    changed("no lanes", &|p| p.kernels[0].lanes = 0);
    changed("more than one lane variable", &|p| {
        p.kernels[0].vars[2].kind = VarKind::Lane;
    });
    changed("the range of b uses more", &|p| {
        let (lo, hi) = (vec![0.into()], vec![L.into()]);
        p.kernels[0].vars[1].kind = VarKind::Block { lo, hi };
    });
    let launch = |kernel, args| Host::Launch {
        kernel: KernelId(kernel),
        args,
    };
    let body = |step: Host| move |p: &mut Program| p.body = vec![step.clone()];
    changed("0 arguments for 1 variables", &body(launch(0, vec![])));
    changed("there is no kernel 3", &body(launch(3, vec![])));
    changed("out of scope", &body(launch(0, vec![DimId(0).into()])));
    let repeated = |body| Host::For {
        var: DimId(0),
        lo: vec![0.into()],
        hi: vec![1.into()],
        body,
    };
    changed("s is bound twice", &body(repeated(vec![repeated(vec![])])));
    let choice = Host::If {
        cond: Cond::cmp(Rel::Ge, DimId(0), 1),
        then: vec![launch(0, vec![DimId(0).into()])],
        otherwise: vec![launch(0, vec![0.into()])],
    };
    changed("out of scope", &body(choice.clone()));
    let mut chosen = program(Vec::new());
    chosen.body = vec![repeated(vec![choice])];
    assert_eq!(chosen.verify(), Vec::<String>::new());
    let text = chosen.to_string();
    assert!(text.contains("    if s >= 1 {\n"), "{text}");
    assert!(text.contains("    } else {\n"), "{text}");
}

/// A message about an ill-formed kernel prints the kernel, whatever is wrong with it.
#[test]
fn ill_formed_kernels_print() {
    let body = vec![
        assign(0, Op::Lit(Literal::Int(1))),
        assign(1, Op::Unary(UnOp::Neg, v(0))),
        assign(0, Op::Unary(UnOp::Neg, v(1))),
        assign(2, Op::Unary(UnOp::Neg, v(2))),
        Stmt::Set(RegId(9), v(44)),
        store(at(Memory::Global(BufferId(9)), DimId(9)), 2),
    ];
    let program = program(body);
    assert!(program.verify().len() >= 5);
    assert!(program.to_string().contains("buffer9[i9] = "));
}

#[test]
fn rewriting_reaches_everything() {
    let body = vec![
        assign(0, load(at(X, L))),
        repeat(vec![
            assign(1, Op::Binary(BinOp::Add, v(0), v(0))),
            store(at(Y, Form::from(T).add(&Form::from(L))), 1),
        ]),
        Stmt::Set(ACC, v(0)),
    ];
    struct Fresh;
    impl Rewrite for Fresh {
        fn value(&self, value: ValueId) -> ValueId {
            ValueId(value.0 + 2)
        }
    }
    let renamed = rewrite(&body, &Fresh).unwrap();
    let (mut uses, mut defs, mut forms) = (Vec::new(), Vec::new(), 0);
    walk(&renamed, &mut |stmt| {
        uses.extend(stmt.uses());
        defs.extend(stmt.defs());
        forms += stmt.forms().len();
    });
    assert_eq!(uses, [v(2), v(2), v(3), v(2)]);
    assert_eq!(defs, [v(2), v(3)]);
    assert_eq!(forms, 1 + 3 + 1);
    let shift = |form: &Form| Ok(form.plus(10));
    let moved = map_forms(&body, &shift).unwrap();
    assert_eq!(moved, rewrite(&body, &MapForms(shift)).unwrap());
    // Every form has moved, and nothing else.
    let back = map_forms(&moved, &|form| Ok(form.plus(-10))).unwrap();
    assert_eq!(back, body);
    let (mut before, mut after) = (Vec::new(), Vec::new());
    walk(&body, &mut |stmt| before.extend(stmt.forms()));
    walk(&moved, &mut |stmt| after.extend(stmt.forms()));
    let shifted: Vec<Form> = before.iter().map(|form| form.plus(10)).collect();
    assert_eq!(after, shifted.iter().collect::<Vec<_>>());
    let kernel = program(body).kernels[0].map_forms(&shift).unwrap();
    match &kernel.vars[1].kind {
        VarKind::Block { lo, .. } => assert_eq!(lo[0].as_constant(), Some(10)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_statement_says_what_it_does() {
    let mut body = all_kinds();
    body.push(assign(6, Op::Get(ACC)));
    body.push(Stmt::Set(ACC, v(6)));
    body.push(assign(9, load(at(STAGE, L))));
    let (mut reads, mut writes, mut flags, mut widths) = (vec![], vec![], vec![], vec![]);
    let (mut gets, mut sets, mut loads, mut waits) = (0, 0, vec![], vec![]);
    walk(&body, &mut |stmt| {
        let does = stmt.effects();
        reads.extend(does.reads());
        writes.extend(does.writes());
        flags.extend(does.flag.map(|flag| flag.memory));
        widths.extend(does.read.into_iter().chain(does.write).map(|(_, n)| n));
        gets += usize::from(does.get == Some(ACC));
        sets += usize::from(does.set == Some(ACC));
        loads.extend(stmt.global_load().map(|(from, n)| (from.memory, n)));
        waits.extend(does.orders);
        let read: Vec<Access> = stmt.accesses().into_iter().cloned().collect();
        let mut stmt = stmt.clone();
        let changed: Vec<Access> = stmt.accesses_mut().into_iter().map(|a| a.clone()).collect();
        assert_eq!(read, changed);
    });
    assert_eq!(reads, [X, X, STAGE, STAGE]);
    assert_eq!(writes, [STAGE, Y, Y]);
    assert_eq!(flags, [READY; 3]);
    assert_eq!(widths, [2, 1, 1, 2, 1, 1]);
    assert_eq!((gets, sets), (1, 1));
    assert_eq!(
        loads,
        [(X, 2)],
        "neither the copy nor the load of a shared array"
    );
    let block = Scope::Block;
    assert_eq!(waits, [block, Scope::Warp, block, block, block]);
}

#[test]
fn work_is_what_every_lane_computes_for_itself() {
    let kernel = program(Vec::new()).kernels.remove(0);
    let sum = |to| assign(to, Op::Binary(BinOp::Add, v(0), v(0)));
    assert_eq!(kernel.values[0].shape, Shape::Varying);
    assert!(kernel.is_work(&sum(0)));
    let uniform = 6;
    assert_eq!(kernel.values[uniform].shape, Shape::Uniform);
    assert!(!kernel.is_work(&sum(uniform as u32)));
    assert!(!kernel.is_work(&assign(0, load(at(X, L)))));
    assert!(!kernel.is_work(&assign(0, Op::Get(ACC))));
    assert!(!kernel.is_work(&Stmt::Barrier));
}
