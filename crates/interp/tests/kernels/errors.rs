//! Small kernels with invalid accesses, and runs with invalid options or inputs.

use systola_interp::kernel::{FaultKind, Options, Outcome, RunError, Why, run_kernel_program};
use systola_interp::{Arrays, Tensor};
use systola_ir::kernel::visit::walk_mut;
use systola_ir::kernel::{self, Buffer, BufferKind, FaultSite, Op, Stmt};
use systola_ir::mapping::Engine;
use systola_ir::system::Axis;
use systola_ir::{BinOp, BufferId, Cond, DimId, Form, Literal, Poly, Rel, Scalar, Span, ValueId};

use crate::builder::*;

fn run(case: &Case, options: &Options) -> Result<Outcome, RunError> {
    run_kernel_program(&case.program, &case.sizes, &case.inputs, options)
}

/// The source of a copy must not be written until the copy has completed, by any warp.
#[test]
fn the_source_of_a_copy_is_left_alone() {
    let build = |early: bool| {
        let mut b = Builder::new("source", &[]);
        let v = b.buffer("v", Scalar::I32, BufferKind::Temporary, &[4.into()]);
        let y = b.output("y", Scalar::I32, &[4.into()]);
        b.begin("source", 2, 4);
        let (w, l) = (b.warp(), b.lane());
        let stage = b.shared("stage", Scalar::I32, &[4]);
        let at = [Form::from(l)];
        let write = |b: &mut Builder, value: i128, warp: i128| {
            let value = b.lit(Scalar::I32, Literal::Int(value));
            let when = Cond::cmp(Rel::Eq, w, warp);
            b.store(given(global(v, &at), when), value);
        };
        write(&mut b, 1, 0);
        let one = Cond::cmp(Rel::Eq, w, 0);
        b.stmt(Stmt::Copy {
            to: given(shared(stage, &at), one.clone()),
            from: global(v, &at),
            width: 1,
            engine: Engine::Plain,
        });
        b.stmt(Stmt::CommitCopies);
        let wait = Stmt::WaitCopies { pending: 0 };
        if !early {
            b.stmt(wait.clone());
        }
        b.stmt(Stmt::Barrier);
        write(&mut b, 2, 1);
        b.stmt(Stmt::Barrier);
        if early {
            b.stmt(wait);
        }
        let from = given(shared(stage, &at), one.clone());
        let value = b.load("u", Scalar::I32, from);
        b.store(given(global(y, &at), one), value);
        b.end_and_launch();
        Case {
            program: b.program,
            sizes: vec![],
            inputs: Arrays::new(),
            outputs: Arrays::from([("y".into(), Tensor::vector(vec![1i32; 4]))]),
        }
    };
    let late = build(false);
    let outcome = run(&late, &Options::default()).unwrap();
    assert_eq!(outcome.outputs, late.outputs);
    expect_fault(&build(true), &Options::default(), |kind| {
        matches!(kind, FaultKind::CopySourceWritten { .. })
    });
}

/// One block, one warp of four lanes that stores to y what a body computes from x.
fn small(ty: Scalar, body: impl Fn(&mut Builder, ValueId, DimId) -> ValueId) -> Case {
    let mut b = Builder::new("small", &[]);
    let x = b.input("x", ty, &[4.into()]);
    let y = b.output("y", ty, &[4.into()]);
    b.begin("small", 1, 4);
    let l = b.lane();
    let value = b.load("v", ty, global(x, &[l.into()]));
    let result = body(&mut b, value, l);
    b.store(global(y, &[l.into()]), result);
    b.end_and_launch();
    let axes = b.program.buffers[x.index()].axes.clone();
    let mut inputs = Arrays::new();
    inputs.insert("x".into(), Tensor::zeros(ty, &axes, &[]).unwrap());
    Case {
        program: b.program,
        sizes: vec![],
        inputs,
        outputs: Arrays::new(),
    }
}

fn expect_fault(case: &Case, options: &Options, is: impl Fn(&FaultKind) -> bool) {
    let error = run(case, options).unwrap_err();
    assert!(error.fault().is_some_and(is), "{error}");
}

#[test]
fn no_operation_stops_a_lane() {
    let options = Options::default();
    let stored = |case: &Case, why: Why| match run(case, &options).unwrap_err() {
        RunError::Fault(fault) => {
            let origin = fault.origin.as_ref().map(|origin| origin.why);
            assert_eq!(origin, Some(why), "{fault}");
        }
        error => panic!("{error}"),
    };
    // An integer divided by zero is undefined, and must not be stored to an output.
    for op in [BinOp::Div, BinOp::Rem] {
        let zero = small(Scalar::I32, |b, v, _| b.binary(op, v, v));
        stored(&zero, Why::NoResult);
        let unused = small(Scalar::I32, |b, v, _| {
            b.binary(op, v, v);
            v
        });
        run(&unused, &options).unwrap();
    }
    let negative = small(Scalar::I32, |b, v, _| {
        let one = b.op("one", Scalar::I32, Op::Lit(Literal::Int(1)));
        let less = b.binary(BinOp::Sub, v, one);
        b.binary(BinOp::Pow, v, less)
    });
    stored(&negative, Why::NoResult);
    // A divisor may be undefined; the quotient is then undefined too.
    let build = |is_stored: bool| {
        small(Scalar::I32, move |b, v, _| {
            let reg = b.reg("never", Scalar::I32);
            let never = b.get(reg);
            let quotient = b.binary(BinOp::Rem, v, never);
            if is_stored { quotient } else { v }
        })
    };
    run(&build(false), &options).unwrap();
    stored(&build(true), Why::Unset);
}

/// Lane l, where l is at least the first number, divides by x[l] at the point (l, 7).
fn dividing(first: i128, undefined: bool) -> Case {
    let mut case = small(Scalar::I32, |b, v, l| {
        let zero = b.op("zero", Scalar::I32, Op::Lit(Literal::Int(0)));
        let mut divisor = v;
        if undefined {
            let reg = b.reg("never", Scalar::I32);
            divisor = b.get(reg);
        }
        let bad = b.op("bad", Scalar::Bool, Op::Binary(BinOp::Eq, divisor, zero));
        b.stmt(Stmt::Fault {
            faults: BufferId(2),
            site: 0,
            bad,
            when: Cond::cmp(Rel::Ge, l, first),
            point: vec![Form::from(l), Form::from(7)],
        });
        v
    });
    let axis = Axis {
        lo: Form::zero(),
        hi: Form::from(5),
    };
    let site = FaultSite {
        kind: kernel::FaultKind::DivisionByZero(BinOp::Div),
        owner: "`Z`".into(),
        iterators: vec!["i".into(), "j".into()],
        span: Span::NONE,
    };
    case.program.buffers.push(Buffer {
        name: "faults".into(),
        ty: Scalar::I32,
        kind: BufferKind::Faults { sites: vec![site] },
        axes: vec![axis],
    });
    case
}

#[test]
fn a_fault_ends_the_run_where_its_lane_holds_a_point() {
    let options = Options::default();
    let x = |list: [i32; 4]| Arrays::from([("x".into(), Tensor::vector(list.to_vec()))]);
    let mut case = dividing(1, false);
    case.inputs = x([0, 1, 0, 0]);
    match run(&case, &options).unwrap_err() {
        RunError::Raised(raised) => {
            assert_eq!(raised.point, [2, 7]);
            assert_eq!(raised.diagnostic().code.id, "E0613");
        }
        error => panic!("{error}"),
    }
    // Lane 0 holds no point.
    case.inputs = x([0, 1, 2, 3]);
    run(&case, &options).unwrap();
    run(&dividing(4, true), &options).unwrap();
    expect_fault(&dividing(3, true), &options, |kind| {
        *kind == FaultKind::UndefinedTest
    });
}

#[test]
fn undefined_values_may_be_computed_and_kept() {
    let case = small(Scalar::I32, |b, v, l| {
        let reg = b.reg("never", Scalar::I32);
        let never = b.get(reg);
        let sum = b.binary(BinOp::Add, v, never);
        let stage = b.shared("stage", Scalar::I32, &[4]);
        b.store(shared(stage, &[l.into()]), sum);
        let back = b.load("back", Scalar::I32, shared(stage, &[l.into()]));
        // The condition selects the defined one by position.
        let choose = Op::Choose {
            cond: less(l, 4),
            then: v,
            otherwise: back,
        };
        b.op("chosen", Scalar::I32, choose)
    });
    run(&case, &Options::default()).unwrap();
}

#[test]
fn indices_do_not_wrap() {
    let case = small(Scalar::I64, |b, _, l| {
        let huge = Form::from(l).scale(&Poly::constant(1 << 62)).unwrap();
        b.op("huge", Scalar::I64, Op::Index(huge))
    });
    expect_fault(&case, &Options::default(), |kind| {
        *kind == FaultKind::IndexOverflow
    });
}

#[test]
fn a_wide_access_stays_on_its_row() {
    let mut case = small(Scalar::I32, |_, v, _| v);
    let kernel = &mut case.program.kernels[0];
    let (mut from, value) = match &kernel.body[0] {
        Stmt::Let(value, Op::Load { from, .. }) => (from.clone(), *value),
        other => panic!("{other:?}"),
    };
    from.index = vec![Form::from(3)];
    let second = ValueId::from(kernel.values.len());
    kernel.values.push(kernel.values[0].clone());
    kernel.body[0] = Stmt::LoadWide {
        to: vec![value, second],
        from,
        otherwise: None,
    };
    expect_fault(&case, &Options::default(), |kind| {
        matches!(kind, FaultKind::OutOfBounds { index, axes, .. }
            if index == &[4] && axes == &[(0, 4)])
    });
}

#[test]
fn a_wide_access_starts_at_a_multiple_of_its_width() {
    let mut case = small(Scalar::I32, |_, v, _| v);
    let kernel = &mut case.program.kernels[0];
    let (mut from, value) = match &kernel.body[0] {
        Stmt::Let(value, Op::Load { from, .. }) => (from.clone(), *value),
        other => panic!("{other:?}"),
    };
    from.index = vec![Form::from(1)];
    let second = ValueId::from(kernel.values.len());
    kernel.values.push(kernel.values[0].clone());
    kernel.body[0] = Stmt::LoadWide {
        to: vec![value, second],
        from,
        otherwise: None,
    };
    expect_fault(
        &case,
        &Options::default(),
        |kind| matches!(kind, FaultKind::Misaligned { index, width: 2, .. } if index == &[1]),
    );
}

#[test]
fn steps_are_limited() {
    let case = small(Scalar::I32, |b, v, _| {
        b.repeat("t", 0, 1 << 40, |_, _| {});
        v
    });
    let options = Options {
        step_limit: 1000,
        ..Options::default()
    };
    expect_fault(&case, &options, |kind| {
        *kind == FaultKind::StepLimit { limit: 1000 }
    });
}

#[test]
fn what_does_not_fit_is_said_as_elsewhere() {
    let code = |result: Result<Outcome, RunError>| match result.unwrap_err() {
        RunError::Setup(diagnostic) => diagnostic.code.id,
        other => panic!("{other}"),
    };
    let options = Options::default();
    let mut case = saxpy(10);
    case.sizes = vec![];
    assert_eq!(code(run(&case, &options)), "E0602");
    case.sizes = vec![11];
    assert_eq!(code(run(&case, &options)), "E0606");
    case.sizes = vec![10];
    case.program.params[0].fixed = Some(12);
    assert_eq!(code(run(&case, &options)), "E0603");
    case.program.params[0].fixed = Some(10);
    run(&case, &options).unwrap();
    let x = case.inputs.remove("x").unwrap();
    assert_eq!(code(run(&case, &options)), "E0604");
    case.inputs
        .insert("x".into(), Tensor::vector(vec![0f64; 10]));
    assert_eq!(code(run(&case, &options)), "E0607");
    case.inputs.insert("x".into(), x.clone());
    case.inputs.insert("a".into(), x);
    assert_eq!(code(run(&case, &options)), "E0605");
}

#[test]
fn literals_outside_of_their_type_are_refused() {
    let mut case = lookup();
    walk_mut(&mut case.program.kernels[0].body, &mut |stmt| {
        if let Stmt::Let(_, Op::Lit(value)) = stmt {
            *value = Literal::Float(0.5);
        }
    });
    match run(&case, &Options::default()) {
        Err(RunError::Invalid(list)) => {
            assert_eq!(list.len(), 2);
            assert!(
                list.iter().all(|text| text.contains("0.5 is no i16")),
                "{list:?}"
            );
        }
        other => panic!("{other:?}"),
    }
}
