//! Errors that the text language's grammar excludes, but other front ends can make.

use systola_ir::codes::Code;
use systola_ir::codes::{syntax, types};
use systola_ir::{BinOp, Literal, Scalar, Span};
use systola_surface::elaborate_system;
use systola_surface::tree::{
    Axis, Const, Data, DataKind, Dim, Expr, ExprKind, Index, Input, InputKind, Origin, ReduceOp,
    ReduceOpKind, System, Var,
};

fn name(text: &str) -> Expr {
    Expr::name(text, Span::NONE)
}

fn int(value: i128) -> Expr {
    Expr::int(value, Span::NONE)
}

fn dim(text: &str, range: Option<(Expr, Expr)>) -> Dim {
    Dim {
        name: text.into(),
        range,
        span: Span::NONE,
    }
}

/// A system with an array `x` over an iterator `i`, and one equation.
fn with(body: Expr) -> System {
    let axes = vec![Axis::from(name("N"))];
    System {
        params: vec!["N".into()],
        inputs: vec![Input::new("x", Scalar::F32, axes, Origin::Unknown)],
        index: Some(Index {
            dims: vec![dim("i", Some((int(0), name("N"))))],
            domain: Vec::new(),
            origin: Origin::Unknown,
        }),
        vars: vec![Var::new("Y", Scalar::F32, body, Origin::Unknown)],
        ..System::new("s", Origin::Unknown)
    }
}

fn check(system: &System, expect: &[&Code]) {
    let errors = elaborate_system(system).err().unwrap_or_default();
    let found: Vec<&Code> = errors.iter().map(|e| e.code).collect();
    assert_eq!(found, expect, "{errors:#?}");
}

fn at(text: &str, index: Vec<Expr>) -> Expr {
    Expr::new(ExprKind::At(text.into(), index), Span::NONE)
}

#[test]
fn what_a_name_at_an_index_is_its_declaration_decides() {
    check(&with(at("x", vec![name("i")])), &[]);
    let before = at("Y", vec![Expr::binary(BinOp::Sub, name("i"), int(1))]);
    check(&with(before), &[]);
    check(&with(at("N", vec![name("i")])), &[&types::WRONG_KIND]);
    check(&with(at("z", vec![name("i")])), &[&types::UNKNOWN_NAME]);
    let nested = at("x", vec![at("x", vec![name("i")])]);
    check(&with(nested), &[&types::VALUE_IN_INDEX]);
}

#[test]
fn sums_have_ranges_and_operators_that_sum() {
    let sum = |op, range| {
        let op = ReduceOp {
            kind: ReduceOpKind::Op(op),
            span: Span::NONE,
        };
        let body = Box::new(at("x", vec![name("q")]));
        Expr::new(
            ExprKind::Reduce(op, vec![dim("q", range)], body),
            Span::NONE,
        )
    };
    let range = || Some((int(0), name("N")));
    check(&with(sum(BinOp::Add, range())), &[]);
    check(&with(sum(BinOp::Add, None)), &[&syntax::NO_RANGE]);
    check(&with(sum(BinOp::Sub, range())), &[&types::BAD_COMBINE]);
}

#[test]
fn constants_are_literals_and_tables_are_full() {
    let mut system = with(at("x", vec![name("i")]));
    system.consts.push(Const {
        name: "c".into(),
        ty: Scalar::F32.into(),
        value: name("N"),
        origin: Origin::Unknown,
    });
    check(&system, &[&types::TYPE_MISMATCH]);

    let table = |n: usize| {
        let mut system = with(at("x", vec![name("i")]));
        let axes = vec![Axis::from(int(2)), Axis::from(int(3))];
        let mut table = Input::new("t", Scalar::I32, axes, Origin::Unknown);
        table.kind = InputKind::Table(Some(Data {
            kind: DataKind::All(vec![Literal::Int(7); n]),
            span: Span::NONE,
        }));
        system.inputs.push(table);
        system
    };
    check(&table(6), &[]);
    check(&table(5), &[&types::TABLE_SHAPE]);
}

#[test]
fn names_are_those_of_the_text_language() {
    let renamed = |text: &str| System {
        name: text.into(),
        ..with(at("x", vec![name("i")]))
    };
    check(&renamed("s'"), &[]);
    check(&renamed("select"), &[&syntax::RESERVED_WORD]);
    check(&renamed("two words"), &[&types::UNKNOWN_NAME]);
    check(&renamed(""), &[&types::UNKNOWN_NAME]);
}

#[test]
fn a_mistake_without_text_names_its_declaration() {
    let errors = elaborate_system(&with(name("nothing"))).expect_err("an unknown name");
    assert_eq!(errors[0].notes, ["in the equation of `Y`"]);
    let place = Origin::caller();
    let mut system = with(name("nothing"));
    system.vars[0].origin = place;
    let errors = elaborate_system(&system).expect_err("an unknown name");
    let line = line!() - 4;
    let expect = format!("in the equation of `Y`, at {}:{line}:17", file!());
    assert_eq!(errors[0].notes, [expect]);
}
