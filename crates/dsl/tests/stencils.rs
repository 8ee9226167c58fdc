//! The same stencil in text and in Rust gives the same system.

use systola_dsl::prelude::*;
use systola_front::text::parse_module;

const F32: Scalar = Scalar::F32;
const F64: Scalar = Scalar::F64;

fn check(built: Result<systola_ir::system::System, Vec<Diagnostic>>, text: &str) {
    let parsed = parse_module(text).unwrap_or_else(|e| panic!("{e:#?}"));
    let built = built.unwrap_or_else(|e| panic!("{e:#?}"));
    assert_eq!(built, parsed.systems[0], "{built}\n{}", parsed.systems[0]);
}

#[test]
fn offsets_and_steps() {
    let mut s = StencilBuilder::new("heat");
    let [n, m, t] = ["N", "M", "T"].map(|p| s.param(p));
    s.context(n.ge(3)).context(m.ge(3));
    let u = s.field("u", F32, [&n, &m], Boundary::Fixed);
    s.steps(&t);
    s.update(
        &u,
        0.15 * u.at((-1, 0)) + 0.5 * &u + 0.11 * u.at((0, -1)) + 0.1 * u.at((1, 0)),
    );
    check(
        s.build(),
        "stencil heat(N, M, T) where N >= 3, M >= 3 {
           field u[N, M]: f32 fixed;
           steps T;
           u = 0.15*u[-1, 0] + 0.5*u + 0.11*u[0, -1] + 0.1*u[1, 0];
         }",
    );
}

#[test]
fn weights_and_shapes() {
    let mut s = StencilBuilder::new("s");
    let [n, m] = ["N", "M"].map(|p| s.param(p));
    let w = s.input("w", F32, [5, 5]);
    let u = s.field("u", F32, [&n, &m], Boundary::Constant(Literal::Int(0)));
    s.update(&u, s.weighted(&w, &u, &Shape::cube(2, 2)));
    s.output("h", &u);
    check(
        s.build(),
        "stencil s(N, M) {
           field u[N, M]: f32 constant 0;
           input w[5, 5]: f32;
           u = sum(w * u over box 2);
           output h = u;
         }",
    );

    let mut s = StencilBuilder::new("s");
    let [n, t] = ["N", "T"].map(|p| s.param(p));
    let u = s.field("u", F32, [&n, &n, &n], Boundary::Wrap);
    s.steps(&t);
    let ring = Shape::cube(3, 1).except(Shape::star(3, 1));
    s.update(&u, max(s.most(&u, &ring), s.least(&u, &Shape::cube(3, 1))));
    check(
        s.build(),
        "stencil s(N, T) {
           field u[N, N, N]: f32 wrap;
           steps T;
           u = max(max(u over box 1 except star 1), min(u over box 1));
         }",
    );
}

#[test]
fn fields_values_between_and_new_values() {
    let mut s = StencilBuilder::new("flow");
    let [n, t] = ["N", "T"].map(|p| s.param(p));
    let k = s.constant("k", F64, 0.5);
    let [i] = s.index(["i"]);
    let u = s.field("u", F64, [&n], Boundary::Clamp);
    let v = s.field("v", F64, [&n], Boundary::Mirror);
    s.steps(&t);
    let g = s.var("g", F64, Boundary::Reflect, &u * &v - u.at([-1]));
    s.update(&v, select(i.lt(3), &v + &k * g.at([2]), v.at([1])));
    let next = s.next(&v);
    s.update(&u, &u + next.at([0]));
    check(
        s.build(),
        "stencil flow(N, T) {
           const k: f64 = 0.5;
           index i;
           field u[N]: f64 clamp;
           field v[N]: f64 mirror;
           steps T;
           var g: f64 reflect = u*v - u[-1];
           v = select(i < 3, v + k*g[2], v[1]);
           u = u + v'[0];
         }",
    );
}

#[test]
fn inputs_have_boundary_conditions() {
    let mut s = StencilBuilder::new("driven");
    let [n, t] = ["N", "T"].map(|p| s.param(p));
    s.context(n.ge(2));
    let [i] = s.index(["i"]);
    let u = s.field("u", F64, [&n], Boundary::Clamp);
    let a = s.input_boundary("a", F64, [&n], Boundary::Wrap);
    s.steps(&t);
    s.update(&u, u.at([1]) + a.at([&i - 2]));
    check(
        s.build(),
        "stencil driven(N, T) where N >= 2 {
           index i;
           field u[N]: f64 clamp;
           input a[N]: f64 wrap;
           steps T;
           u = u[1] + a[i - 2];
         }",
    );

    let mut s = StencilBuilder::new("fixed");
    let n = s.param("N");
    let u = s.field("u", F64, [&n], Boundary::Clamp);
    s.input_boundary("a", F64, [&n], Boundary::Fixed);
    s.update(&u, u.at([1]));
    let errors = s.build().expect_err("an input is never written");
    assert_eq!(errors[0].code.id, "E0237", "{errors:#?}");
}

#[test]
fn convolutions() {
    let mut conv = ConvBuilder::new("k");
    let [r, c, h, q, b] = ["R", "C", "H", "Q", "B"].map(|p| conv.param(p));
    conv.input("x", F32, [&r, &c], Boundary::Reflect);
    conv.filter("w", F32, [&h, &q]);
    conv.stride([2, 1]).dilation([1, 3]);
    conv.batch(name("n").range(0, &b), [&name("w")]);
    check(
        conv.build(),
        "conv k(R, C, H, Q, B) {
           input x[R, C]: f32 reflect;
           filter w[H, Q]: f32;
           stride 2, 1;
           dilation 1, 3;
           batch n in 0..B shared(w);
         }",
    );
}

#[test]
fn mistakes_are_reported() {
    let mut s = StencilBuilder::new("s");
    let n = s.param("N");
    let u = s.field("u", F32, [&n], Boundary::Clamp);
    s.update(&name("v"), u.at([1]));
    let errors = s.build().expect_err("v is no field");
    assert_eq!(errors[0].code.id, "E0240", "{errors:#?}");

    let mut s = StencilBuilder::new("s");
    let n = s.param("N");
    let half = Boundary::Constant(Literal::Float(0.5));
    let u = s.field("u", Scalar::U8, [&n], half);
    s.update(&u, u.at([1]));
    let errors = s.build().expect_err("half is no integer");
    assert_eq!(errors[0].code.id, "E0203", "{errors:#?}");
    assert!(
        errors[0].notes[0].starts_with("in the field `u`, at "),
        "{errors:#?}"
    );

    let mut s = StencilBuilder::new("s");
    let n = s.param("N");
    let u = s.field("u", F32, [&n], Boundary::Clamp);
    s.update(&u, s.sum(&u, &Shape::cube(1, -1)));
    let errors = s.build().expect_err("a radius below zero");
    assert_eq!(errors[0].code.id, "E0238", "{errors:#?}");
}
