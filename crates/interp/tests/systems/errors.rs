//! Errors of a run name the point and the sizes.

use systola_interp::{Demand, Inputs, Options, Read, Tensor, eval, run_system_with};
use systola_ir::system::{Axis, Combine, Expr, InputKind, Param};
use systola_ir::{BinOp, Cond, Diagnostic, DimId, Form, Literal, Rel, Scalar, Span, VarId};

use crate::builder::*;

/// The code, and each of the words somewhere in the message, the notes or the labels.
fn check(diagnostic: &Diagnostic, code: &str, words: &[&str]) {
    let mut text = diagnostic.message.clone();
    for part in diagnostic
        .notes
        .iter()
        .chain(diagnostic.labels.iter().map(|l| &l.1))
    {
        text.push('\n');
        text.push_str(part);
    }
    assert_eq!(diagnostic.code.id, code, "{text}");
    for word in words {
        assert!(text.contains(word), "`{word}` is not in:\n{text}");
    }
}

fn one(ty: Scalar) -> Expr {
    Expr::int(ty, 1)
}

/// `var V = body` over i in 0..N, all of it written to `v`.
fn line(body: impl FnOnce(&mut Builder, Form) -> Expr) -> Builder {
    let mut b = new("line", &["N"]);
    let i = b.dim("i", 0, param(0));
    let body = body(&mut b, i.clone());
    let v = b.var("V", Scalar::I32, body);
    let value = b.here(v);
    b.output(
        "v",
        Scalar::I32,
        &[param(0)],
        vec![write(value, &[i], Cond::TRUE)],
    );
    b
}

#[test]
fn reads_outside_the_domain() {
    let span = Span::new(10, 20);
    let b = line(|_, i| Expr::Var {
        var: VarId(0),
        index: vec![i.plus(-1)],
        span,
    });
    let error = b.error(&[3], &[]);
    check(
        &error,
        "E0611",
        &["`V` is read at (i = -1)", "in `V` at (i = 0)", "with N = 3"],
    );
    assert_eq!(error.span().range(), 10..20);
}

#[test]
fn reads_of_undefined_values() {
    let b = line(|b, i| {
        let some = Expr::Guard {
            cond: le(1, i),
            then: Box::new(one(Scalar::I32)),
            otherwise: None,
        };
        let x = b.var("X", Scalar::I32, add(some, one(Scalar::I32)));
        b.here(x)
    });
    check(
        &b.error(&[3], &[]),
        "E0610",
        &["`X` has no value at (i = 0)", "in `V` at (i = 0)"],
    );
}

#[test]
fn undefined_values_that_nobody_reads_do_no_harm() {
    let mut b = line(|b, i| {
        let some = Expr::Guard {
            cond: le(1, i.clone()),
            then: Box::new(one(Scalar::I32)),
            otherwise: None,
        };
        let x = b.var("X", Scalar::I32, some);
        guard(eq(i, 0), Expr::int(Scalar::I32, 5), b.here(x))
    });
    assert_eq!(floats(&b.result(&[3], &[], "v")), [5.0, 1.0, 1.0]);
    // The same for a variable that no output needs, unless everything is computed.
    let x = b.here(VarId(0));
    b.var("W", Scalar::I32, x);
    assert!(b.run(&[3], &[]).is_ok());
    let options = Options {
        demand: Demand::Everything,
        ..Options::default()
    };
    let error = run_system_with(&b.system, &[3], &arrays(&[]), &options).unwrap_err();
    check(&error, "E0610", &["in `W` at (i = 0)"]);
}

/// Compiled code computes all points, and sees what the outputs do not need.
#[test]
fn a_fault_that_no_output_needs_is_found() {
    let mut b = line(|b, i| {
        let x = b.var("X", Scalar::I32, one(Scalar::I32));
        guard(eq(i, 0), Expr::int(Scalar::I32, 5), b.here(x))
    });
    assert!(b.run(&[3], &[]).is_ok());
    b.var(
        "W",
        Scalar::I32,
        div(one(Scalar::I32), Expr::int(Scalar::I32, 0)),
    );
    check(&b.error(&[3], &[]), "E0613", &["in `W` at (i = 0)"]);
}

#[test]
fn cycles_are_listed() {
    let b = line(|b, i| {
        let y = b.next_var();
        let x = VarId(y.0 + 1);
        let back = guard(eq(i.clone(), 2), at(x, &[i.plus(-1)]), one(Scalar::I32));
        b.var("Y", Scalar::I32, back);
        let next = guard(eq(i.clone(), 1), at(y, &[i.plus(1)]), one(Scalar::I32));
        let x = b.var("X", Scalar::I32, next);
        b.here(x)
    });
    let words = [
        "depends on itself",
        "2 values",
        "X(i = 1)",
        "Y(i = 2)",
        "needs",
    ];
    check(&b.error(&[4], &[]), "E0612", &words);
    let alone = line(|_, i| at(VarId(0), &[i]));
    check(
        &alone.error(&[4], &[]),
        "E0612",
        &["V(i = 0) needs V(i = 0)"],
    );
    let through_scan = line(|_, i| scan(BinOp::Add, 0, at(VarId(0), &[i])));
    check(
        &through_scan.error(&[4], &[]),
        "E0612",
        &["scan of V(i = 0)"],
    );
}

#[test]
fn operators_without_a_result() {
    let zero = || Expr::int(Scalar::I32, 0);
    let by_zero = line(|_, _| div(one(Scalar::I32), zero()));
    check(
        &by_zero.error(&[1], &[]),
        "E0613",
        &["`/`", "in `V` at (i = 0)"],
    );
    let negative = line(|_, _| bin(BinOp::Pow, one(Scalar::I32), Expr::int(Scalar::I32, -2)));
    check(&negative.error(&[1], &[]), "E0614", &["-2"]);
    let mixed = line(|_, _| add(one(Scalar::I32), one(Scalar::F32)));
    check(&mixed.error(&[1], &[]), "E0620", &["`+`", "i32 and f32"]);
    let other = line(|_, _| one(Scalar::F32));
    check(&other.error(&[1], &[]), "E0620", &["f32"]);
}

#[test]
fn inputs_out_of_range() {
    let affine = line(|b, i| {
        let x = b.input("x", Scalar::I32, &[param(0)]);
        read(x, &[i.plus(1)])
    });
    let x = Tensor::vector(vec![1, 2, 3]);
    let error = affine.error(&[3], &[("x", &x)]);
    check(
        &error,
        "E0615",
        &["`x` has no element [3]", "[0..3]", "in `V` at (i = 2)"],
    );
    let computed = line(|b, _| {
        let t = b.table("t", Scalar::I32, &[Form::from(2)], Some(&[1, 2]));
        lookup(t, vec![sub(Expr::Iter(DimId(0)), one(Scalar::I64))])
    });
    check(
        &computed.error(&[3], &[]),
        "E0615",
        &["`t` has no element [-1]"],
    );
}

#[test]
fn outputs_are_written_once_everywhere() {
    let base = |index: Form, when: Cond| {
        let mut b = line(|_, _| one(Scalar::I32));
        b.system.outputs[0].writes[0].index = vec![index];
        b.system.outputs[0].writes[0].when = when;
        b
    };
    let i = dim(0);
    let hole = base(i.clone(), Cond::cmp(Rel::Ne, i.clone(), 2));
    check(&hole.error(&[4], &[]), "E0617", &["`v`[2]", "with N = 4"]);
    let twice = base(i.floor_div(2), Cond::TRUE);
    check(
        &twice.error(&[4], &[]),
        "E0618",
        &["`v`[0]", "(i = 0) and again at (i = 1)"],
    );
    let beyond = base(i.plus(1), Cond::TRUE);
    check(
        &beyond.error(&[4], &[]),
        "E0616",
        &["(i = 3) writes `v`[4]", "[0..4]"],
    );
}

#[test]
fn parameters_and_inputs_are_checked() {
    let mut b = conv1d(Scalar::F32);
    b.system.context = vec![le(1, param(0)), le(1, param(1))];
    let x = Tensor::vector(vec![0f32; 10]);
    let w = Tensor::vector(vec![0f32; 3]);
    assert!(b.run(&[8, 3], &[("x", &x), ("w", &w)]).is_ok());
    check(&b.error(&[8], &[]), "E0602", &["`Q`"]);
    check(&b.error(&[8, 3, 1], &[]), "E0601", &["3 parameters"]);
    check(&b.error(&[8, 0], &[]), "E0603", &["C = 8, Q = 0"]);
    check(&b.error(&[8, 3], &[("x", &x)]), "E0604", &["`w`"]);
    check(&b.error(&[8, 3], &[("y", &x)]), "E0605", &["`y`"]);
    check(
        &b.error(&[8, 3], &[("x", &w), ("w", &w)]),
        "E0606",
        &["[10]", "[3]", "Q = 3"],
    );
    let wide = Tensor::vector(vec![0f64; 10]);
    check(
        &b.error(&[8, 3], &[("x", &wide), ("w", &w)]),
        "E0607",
        &["f32", "f64"],
    );

    let declared = &b.system.params;
    let given = |list: &[(&str, i128)]| -> Vec<(String, i128)> {
        list.iter().map(|(n, v)| ((*n).to_string(), *v)).collect()
    };
    let bind = |list| systola_interp::params::bind_params(declared, Span::NONE, &given(list));
    assert_eq!(bind(&[("Q", 3), ("C", 8)]), Ok(vec![8, 3]));
    check(&bind(&[("Q", 3)]).unwrap_err(), "E0602", &["`C`"]);
    check(&bind(&[("Q", 3), ("K", 8)]).unwrap_err(), "E0601", &["`K`"]);
}

#[test]
fn sizes_have_limits() {
    let b = line(|_, _| one(Scalar::I32));
    check(
        &b.error(&[1 << 45], &[]),
        "E0608",
        &["limit of 4294967296 bytes"],
    );
    check(&b.error(&[1 << 90], &[]), "E0608", &[]);
    let tight = Options {
        memory_limit: 1_000,
        ..Options::default()
    };
    let error = run_system_with(&b.system, &[300], &arrays(&[]), &tight).unwrap_err();
    check(&error, "E0608", &["limit of 1000 bytes", "N = 300"]);

    let sums = line(|b, _| {
        let q = b.bound("q", 0, param(0));
        reduce(Combine::Op(BinOp::Add), &[q], one(Scalar::I32))
    });
    for (term_limit, is_enough) in [(9, true), (8, false)] {
        let options = Options {
            term_limit,
            ..Options::default()
        };
        let result = run_system_with(&sums.system, &[3], &arrays(&[]), &options);
        match result {
            Ok(_) => assert!(is_enough),
            Err(error) => {
                check(&error, "E0608", &["more terms"]);
                assert!(!is_enough);
            }
        }
    }

    let mut open = line(|_, _| one(Scalar::I32));
    open.system.dims[0].range = None;
    open.system.domain.push(le(0, dim(0)));
    check(&open.error(&[3], &[]), "E0609", &["`i`"]);
}

#[test]
fn broken_systems_do_not_panic() {
    let no_such = [
        Expr::Local(systola_ir::LocalId(3)),
        Expr::Const(systola_ir::ConstId(3)),
        Expr::Param(systola_ir::ParamId(3)),
        at(VarId(7), &[dim(0)]),
        at(VarId(0), &[]),
        read(systola_ir::InputId(7), &[]),
        Expr::Call(systola_ir::FnId(7), Vec::new()),
        Expr::Port(systola_ir::PortId(0)),
        reduce(Combine::Op(BinOp::Add), &[DimId(9)], one(Scalar::I32)),
        scan(BinOp::Add, 9, one(Scalar::I32)),
        reduce(Combine::Fn(systola_ir::FnId(9)), &[], one(Scalar::I32)),
        field(one(Scalar::I32), 1),
    ];
    for expr in no_such {
        let shown = format!("{expr:?}");
        let b = line(|_, _| expr);
        if let Err(error) = b.run(&[2], &[]) {
            assert!(
                ["E0620", "E0622"].contains(&error.code.id),
                "{shown}: {error}"
            );
        }
    }
    let endless = {
        let mut b = new("endless", &["N"]);
        let i = b.dim("i", 0, param(0));
        let f = systola_ir::FnId(0);
        b.function("f", &[], Scalar::I32.into(), Expr::Call(f, Vec::new()));
        let v = b.var("V", Scalar::I32, Expr::Call(f, Vec::new()));
        let value = b.here(v);
        b.output(
            "v",
            Scalar::I32,
            &[param(0)],
            vec![write(value, &[i], Cond::TRUE)],
        );
        b
    };
    check(&endless.error(&[2], &[]), "E0622", &["nest"]);
}

#[test]
fn expressions_are_evaluated_alone() {
    let mut b = new("cell", &["N"]);
    b.dim("i", 0, param(0));
    let x = b.input("x", Scalar::F32, &[param(0)]);
    b.var("V", Scalar::F32, one(Scalar::F32));
    let env = systola_interp::Env {
        system: &b.system,
        params: &[4],
    };
    let expr = guard(
        le(1, dim(0)),
        add(
            mul(
                Expr::Port(systola_ir::PortId(2)),
                read(x, &[dim(0).plus(-1)]),
            ),
            at(VarId(0), &[dim(0)]),
        ),
        Expr::Guard {
            cond: le(5, dim(0)),
            then: Box::new(one(Scalar::F32)),
            otherwise: None,
        },
    );
    let given = arrays(&[("x", &Tensor::vector(vec![1f32, 2.0, 3.0, 4.0]))]);
    let inputs = Inputs::bind(&b.system, &[4], &given).unwrap();
    let mut reads = |read: Read<'_>| match read {
        Read::Var { point, .. } => Ok((point[0] as f32 * 100.0).into()),
        Read::Input { input, index, span } => inputs.read(input, index, span),
        Read::Port(port) => Ok((port.0 as f32 * 10.0).into()),
    };
    assert_eq!(eval(&expr, env, &[3], &mut reads), Ok(Some(360f32.into())));
    assert_eq!(eval(&expr, env, &[0], &mut reads), Ok(None));
    check(
        &eval(&expr, env, &[9], &mut reads).unwrap_err(),
        "E0615",
        &["[8]"],
    );
}

#[test]
fn axes_may_start_anywhere() {
    let mut b = new("halo", &["N"]);
    let i = b.dim("i", 0, param(0));
    let x = b.input("x", Scalar::I32, &[]);
    let halo = Axis {
        lo: Form::from(-1),
        hi: param(0).plus(1),
    };
    b.system.inputs[0].axes = vec![halo.clone()];
    b.system.inputs[0].kind = InputKind::Array;
    let y = b.var(
        "Y",
        Scalar::I32,
        sub(read(x, &[i.plus(1)]), read(x, &[i.plus(-1)])),
    );
    let value = b.here(y);
    b.output("y", Scalar::I32, &[], vec![write(value, &[i], Cond::TRUE)]);
    b.system.outputs[0].axes = vec![halo];
    b.system.outputs[0].fill = Some(Literal::Int(7));
    // The array itself starts at zero, as one from a file does.
    let x = Tensor::vector(vec![1, 2, 4, 8, 16]);
    let y = b.result(&[3], &[("x", &x)], "y");
    assert_eq!(
        (y.lo.as_slice(), floats(&y).as_slice()),
        (&[-1i128][..], &[7.0, 3.0, 6.0, 12.0, 7.0][..])
    );
}

#[test]
fn declared_names_are_used() {
    let mut b = line(|_, i| at(VarId(0), &[i.plus(1)]));
    b.system.params = vec![Param {
        name: "Length".into(),
        span: Span::NONE,
    }];
    check(
        &b.error(&[2], &[]),
        "E0611",
        &["(i = 2)", "in `V` at (i = 1)", "with Length = 2"],
    );
}
