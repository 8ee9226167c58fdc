//! Systems built by hand, against plain Rust.

use systola_interp::{Data, Tensor};
use systola_ir::system::{Batch, Combine, Expr};
use systola_ir::{BinOp, Cond, Form, Literal, Rel, Scalar, Span, Type, UnOp};

use crate::builder::*;

fn f32s(tensor: &Tensor) -> &[f32] {
    match &tensor.data {
        Data::F32(elements) => elements,
        other => panic!("expected f32, found {}", other.ty()),
    }
}

fn i32s(tensor: &Tensor) -> &[i32] {
    match &tensor.data {
        Data::I32(elements) => elements,
        other => panic!("expected i32, found {}", other.ty()),
    }
}

fn convolve(x: &[f32], w: &[f32]) -> Vec<f32> {
    (0..=x.len() - w.len())
        .map(|c| {
            let terms = w.iter().enumerate().map(|(q, w)| x[c + q] * w);
            terms.fold(0.0, |sum, term| sum + term)
        })
        .collect()
}

#[test]
fn convolution_written_out() {
    let b = conv1d(Scalar::F32);
    let params = [37, 5];
    let x = b.random(b.system.find_input("x").unwrap(), &params);
    let w = b.random(b.system.find_input("w").unwrap(), &params);
    let z = b.result(&params, &[("x", &x), ("w", &w)], "z");
    assert_eq!(f32s(&z), convolve(f32s(&x), f32s(&w)));
}

#[test]
fn convolution_in_core_form() {
    let mut b = new("conv1d", &["C", "Q"]);
    let c = b.dim("c", 0, param(0));
    let q = b.bound("q", 0, param(1));
    let x = b.input("x", Scalar::F32, &[param(0).add(&param(1)).plus(-1)]);
    let w = b.input("w", Scalar::F32, &[param(1)]);
    let term = mul(read(x, &[c.add(&Form::from(q))]), read(w, &[Form::from(q)]));
    let z = b.var(
        "Z",
        Scalar::F32,
        reduce(Combine::Op(BinOp::Add), &[q], term),
    );
    let value = b.here(z);
    b.output(
        "z",
        Scalar::F32,
        &[param(0)],
        vec![write(value, &[c], Cond::TRUE)],
    );
    let params = [37, 5];
    let (x, w) = (b.random(x, &params), b.random(w, &params));
    let z = b.result(&params, &[("x", &x), ("w", &w)], "z");
    assert_eq!(f32s(&z), convolve(f32s(&x), f32s(&w)));

    // Over nothing: the neutral element.
    let empty = Tensor::vector(Vec::<f32>::new());
    let x = b.random(b.system.find_input("x").unwrap(), &[4, 0]);
    let z = b.result(&[4, 0], &[("x", &x), ("w", &empty)], "z");
    assert_eq!(f32s(&z), [0.0; 4]);
}

#[test]
fn prefix_sums_along_either_axis_and_nested() {
    let mut b = new("scan", &["N", "M"]);
    let (i, j) = (b.dim("i", 0, param(0)), b.dim("j", 0, param(1)));
    let x = b.input("x", Scalar::I32, &[param(0), param(1)]);
    let here = read(x, &[i.clone(), j.clone()]);
    let rows = b.var("R", Scalar::I32, scan(BinOp::Add, 1, here.clone()));
    let most = b.var("M", Scalar::I32, scan(BinOp::Max, 0, here.clone()));
    // The summed-area table, a scan of a scan, under a `let` that is evaluated at each of its
    // points.
    let table = bind(0, here, scan(BinOp::Add, 0, scan(BinOp::Add, 1, local(0))));
    let area = b.var("A", Scalar::I32, table);
    for (name, var) in [("rows", rows), ("most", most), ("area", area)] {
        let value = b.here(var);
        let shape = [param(0), param(1)];
        b.output(
            name,
            Scalar::I32,
            &shape,
            vec![write(value, &[i.clone(), j.clone()], Cond::TRUE)],
        );
    }
    let (n, m) = (6usize, 9usize);
    let params = [n as i128, m as i128];
    let x = b.random(x, &params);
    let out = b.run(&params, &[("x", &x)]).unwrap();
    let x = i32s(&x);
    for i in 0..n {
        for j in 0..m {
            let row: i32 = (0..=j).map(|k| x[i * m + k]).sum();
            let most = (0..=i).map(|k| x[k * m + j]).max().unwrap();
            let area: i32 = (0..=i)
                .flat_map(|a| (0..=j).map(move |b| (a, b)))
                .map(|(a, b)| x[a * m + b])
                .sum();
            assert_eq!(i32s(&out["rows"])[i * m + j], row);
            assert_eq!(i32s(&out["most"])[i * m + j], most);
            assert_eq!(i32s(&out["area"])[i * m + j], area);
        }
    }
}

#[test]
fn prefix_sum_under_a_reduction_and_over_holes() {
    // Y(i) = Σ_k scan(+, i, k·x[i]) over the even points only.
    let mut b = new("scan", &["N"]);
    let i = b.dim("i", 0, param(0));
    let k = b.bound("k", 1, 4);
    b.system.domain.push(eq(i.modulo(2), 0));
    let x = b.input("x", Scalar::I64, &[param(0)]);
    let term = mul(Expr::Iter(k), read(x, &[i.clone()]));
    let body = reduce(Combine::Op(BinOp::Add), &[k], scan(BinOp::Add, 0, term));
    let y = b.var("Y", Scalar::I64, body);
    let s = b.var("S", Scalar::I64, scan(BinOp::Add, 0, read(x, &[i.clone()])));
    let (vy, vs) = (b.here(y), b.here(s));
    let half = param(0).plus(1).floor_div(2);
    b.output(
        "y",
        Scalar::I64,
        &[half.clone()],
        vec![write(vy, &[i.floor_div(2)], Cond::TRUE)],
    );
    b.output(
        "s",
        Scalar::I64,
        &[half],
        vec![write(vs, &[i.floor_div(2)], Cond::TRUE)],
    );
    let x = Tensor::vector((1..=9).collect::<Vec<i64>>());
    let out = b.run(&[9], &[("x", &x)]).unwrap();
    assert_eq!(out["s"].data, Data::I64(vec![1, 4, 9, 16, 25]));
    assert_eq!(out["y"].data, Data::I64(vec![6, 24, 54, 96, 150]));
}

#[test]
fn edit_distance_with_a_table() {
    let mut b = new("edit", &["N", "M"]);
    let (i, j) = (
        b.dim("i", 0, param(0).plus(1)),
        b.dim("j", 0, param(1).plus(1)),
    );
    let s = b.input("s", Scalar::U8, &[param(0)]);
    let t = b.input("t", Scalar::U8, &[param(1)]);
    let cost: Vec<i128> = (0..16).map(|n| i128::from(n / 4 != n % 4)).collect();
    let cost = b.table(
        "cost",
        Scalar::I32,
        &[Form::from(4), Form::from(4)],
        Some(&cost),
    );
    let d = b.next_var();
    let letters = vec![read(s, &[i.plus(-1)]), read(t, &[j.plus(-1)])];
    let one = Expr::int(Scalar::I32, 1);
    let step = |di: i128, dj: i128| at(d, &[i.plus(di), j.plus(dj)]);
    let inner = bin(
        BinOp::Min,
        bin(
            BinOp::Min,
            add(step(-1, 0), one.clone()),
            add(step(0, -1), one),
        ),
        add(step(-1, -1), lookup(cost, letters)),
    );
    let boundary = |n: u32| Expr::Cast(Scalar::I32, Box::new(Expr::Iter(systola_ir::DimId(n))));
    let body = guard(
        eq(i.clone(), 0),
        boundary(1),
        guard(eq(j.clone(), 0), boundary(0), inner),
    );
    let d = b.var("D", Scalar::I32, body);
    let (value, corner) = (b.here(d), eq(i, param(0)).and(eq(j, param(1))));
    b.output("score", Scalar::I32, &[], vec![write(value, &[], corner)]);

    let s: Vec<u8> = (0..23u32).map(|n| (n * n % 7 % 4) as u8).collect();
    let t: Vec<u8> = (0..31u32).map(|n| (n * 5 % 11 % 4) as u8).collect();
    let mut row: Vec<i32> = (0..=t.len() as i32).collect();
    for (i, a) in s.iter().enumerate() {
        let mut next = vec![i as i32 + 1];
        for (j, b) in t.iter().enumerate() {
            let change = row[j] + i32::from(a != b);
            next.push(change.min(row[j + 1] + 1).min(next[j] + 1));
        }
        row = next;
    }
    let inputs = [("s", &Tensor::vector(s)), ("t", &Tensor::vector(t))];
    let score = b.result(&[23, 31], &inputs, "score");
    assert_eq!(i32s(&score), [*row.last().unwrap()]);
}

/// Uniform LU without pivoting over 0 ≤ k ≤ i, j < N: A is updated step by step, pivot rows and
/// multipliers are forwarded.
#[test]
fn lu_on_a_pyramid() {
    let mut b = new("lu", &["N"]);
    let k = b.dim("k", 0, param(0));
    let i = b.dim("i", k.clone(), param(0));
    let j = b.dim("j", k.clone(), param(0));
    let a = b.input("a", Scalar::F64, &[param(0), param(0)]);
    let (f64s, ids) = (Scalar::F64, [0u32, 1, 2].map(systola_ir::VarId));
    let [work, upper, lower] = ids;
    // A before step k, U(k, j) going down i, L(i, k) going along j.
    let earlier = sub(
        at(work, &[k.plus(-1), i.clone(), j.clone()]),
        mul(
            at(lower, &[k.plus(-1), i.clone(), j.clone()]),
            at(upper, &[k.plus(-1), i.clone(), j.clone()]),
        ),
    );
    b.var(
        "A",
        f64s,
        guard(eq(k.clone(), 0), read(a, &[i.clone(), j.clone()]), earlier),
    );
    let here = b.here(work);
    b.var(
        "U",
        f64s,
        guard(
            eq(i.clone(), k.clone()),
            here.clone(),
            at(upper, &[k.clone(), i.plus(-1), j.clone()]),
        ),
    );
    let ratio = div(here, at(upper, &[k.clone(), i.clone(), j.clone()]));
    b.var(
        "L",
        f64s,
        guard(
            eq(j.clone(), k.clone()),
            ratio,
            at(lower, &[k.clone(), i.clone(), j.plus(-1)]),
        ),
    );
    let (u, l) = (b.here(upper), b.here(lower));
    let shape = [param(0), param(0)];
    b.output(
        "u",
        f64s,
        &shape,
        vec![write(u, &[k.clone(), j.clone()], eq(i.clone(), k.clone()))],
    );
    b.output(
        "l",
        f64s,
        &shape,
        vec![write(l, &[i.clone(), k.clone()], eq(j, k))],
    );
    for output in &mut b.system.outputs {
        output.fill = Some(Literal::Float(0.0));
    }

    let n = 7;
    let mut dense = b.random(a, &[n]);
    for d in 0..n {
        dense.set(&[d, d], &(10.0 + d as f64).into());
    }
    let out = b.run(&[n], &[("a", &dense)]).unwrap();
    let (a, n) = (floats(&dense), n as usize);
    let (mut l, mut u) = (vec![0.0; n * n], a);
    for k in 0..n {
        l[k * n + k] = 1.0;
        for i in k + 1..n {
            let factor = u[i * n + k] / u[k * n + k];
            l[i * n + k] = factor;
            u[i * n + k] = 0.0;
            for j in k + 1..n {
                u[i * n + j] -= factor * u[k * n + j];
            }
        }
    }
    assert_eq!(floats(&out["l"]), l);
    assert_eq!(floats(&out["u"]), u);
}

/// QR by Givens rotations: row i of A passes the rows of R from the top; each rotation is a tuple
/// (c, s) made at the diagonal and carried along j; the cell yields (new r, what is left of the
/// row).
#[test]
fn givens_with_tuples() {
    let mut b = new("givens", &["M", "N"]);
    let i = b.dim("i", 0, param(0));
    let k = b.dim("k", 0, param(1));
    let j = b.dim("j", k.clone(), param(1));
    let a = b.input("a", Scalar::F64, &[param(0), param(1)]);
    let f = || Type::from(Scalar::F64);
    let pair = Type::Tuple(vec![f(), f()]);
    let rotation = {
        let r = Expr::Unary(
            UnOp::Sqrt,
            Box::new(add(mul(local(0), local(0)), mul(local(1), local(1)))),
        );
        let zero = || Expr::int(Scalar::F64, 0);
        let one = Expr::int(Scalar::F64, 1);
        // Both branches of a select are computed: divide by something that is never zero.
        let safe = select(bin(BinOp::Eq, local(2), zero()), one.clone(), local(2));
        let none = Expr::Tuple(vec![one, zero()]);
        let quotients = Expr::Tuple(vec![div(local(0), local(3)), div(local(1), local(3))]);
        let body = select(bin(BinOp::Eq, local(2), zero()), none, quotients);
        b.function(
            "rotation",
            &[f(), f()],
            pair.clone(),
            bind(2, r, bind(3, safe, body)),
        )
    };
    let ids = [0u32, 1].map(systola_ir::VarId);
    let [givens, cell] = ids;
    let old = guard(
        eq(i.clone(), 0),
        Expr::int(Scalar::F64, 0),
        field(at(cell, &[i.plus(-1), k.clone(), j.clone()]), 0),
    );
    let row = guard(
        eq(k.clone(), 0),
        read(a, &[i.clone(), j.clone()]),
        field(at(cell, &[i.clone(), k.plus(-1), j.clone()]), 1),
    );
    b.var(
        "G",
        pair.clone(),
        guard(
            eq(j.clone(), k.clone()),
            Expr::Call(rotation, vec![old.clone(), row.clone()]),
            at(givens, &[i.clone(), k.clone(), j.plus(-1)]),
        ),
    );
    let (c, s) = (field(local(0), 0), field(local(0), 1));
    let rotated = Expr::Tuple(vec![
        add(mul(c.clone(), local(1)), mul(s.clone(), local(2))),
        sub(mul(c, local(2)), mul(s, local(1))),
    ]);
    let body = bind(0, b.here(givens), bind(1, old, bind(2, row, rotated)));
    b.var("V", pair, body);
    let (value, last) = (field(b.here(cell), 0), eq(i, param(0).plus(-1)));
    b.output(
        "r",
        Scalar::F64,
        &[param(1), param(1)],
        vec![write(value, &[k, j], last)],
    );
    b.system.outputs[0].fill = Some(Literal::Int(0));

    let (m, n) = (8usize, 5usize);
    let params = [m as i128, n as i128];
    let a = b.random(a, &params);
    let r = floats(&b.result(&params, &[("a", &a)], "r"));
    // RᵀR = AᵀA, with R upper triangular, and a plain implementation of the same rotations.
    let a = floats(&a);
    for p in 0..n {
        for q in 0..n {
            let normal: f64 = (0..m).map(|i| a[i * n + p] * a[i * n + q]).sum();
            let found: f64 = (0..n).map(|k| r[k * n + p] * r[k * n + q]).sum();
            assert!((normal - found).abs() < 1e-12);
        }
    }
    let mut expect = vec![0.0; n * n];
    for i in 0..m {
        let mut row = a[i * n..(i + 1) * n].to_vec();
        for k in 0..n {
            let (x, y) = (expect[k * n + k], row[k]);
            let length = (x * x + y * y).sqrt();
            let (c, s) = if length == 0.0 {
                (1.0, 0.0)
            } else {
                (x / length, y / length)
            };
            for j in k..n {
                let (x, y) = (expect[k * n + j], row[j]);
                expect[k * n + j] = c * x + s * y;
                row[j] = c * y - s * x;
            }
        }
    }
    assert_eq!(r, expect);
}

#[test]
fn argmin_by_a_user_function() {
    let mut b = new("nearest", &["N", "M"]);
    let i = b.dim("i", 0, param(0));
    let k = b.bound("k", 0, param(1));
    let d = b.input("d", Scalar::I32, &[param(0), param(1)]);
    let pair = Type::Tuple(vec![Scalar::I32.into(), Scalar::I64.into()]);
    let less = bin(BinOp::Lt, field(local(1), 0), field(local(0), 0));
    let argmin = b.function(
        "argmin",
        &[pair.clone(), pair.clone()],
        pair.clone(),
        select(less, local(1), local(0)),
    );
    let term = Expr::Tuple(vec![read(d, &[i.clone(), Form::from(k)]), Expr::Iter(k)]);
    let best = b.var("B", pair, reduce(Combine::Fn(argmin), &[k], term));
    let value = field(b.here(best), 1);
    b.output(
        "nearest",
        Scalar::I64,
        &[param(0)],
        vec![write(value, &[i], Cond::TRUE)],
    );
    let distances = b.random(d, &[20, 13]);
    let found = b.result(&[20, 13], &[("d", &distances)], "nearest");
    let expect: Vec<i64> = i32s(&distances)
        .chunks(13)
        .map(|row| row.iter().enumerate().min_by_key(|(_, d)| **d).unwrap().0 as i64)
        .collect();
    assert_eq!(found.data, Data::I64(expect));
    let none = Tensor::new(vec![2, 0], Vec::<i32>::new()).unwrap();
    assert_eq!(b.error(&[2, 0], &[("d", &none)]).code.id, "E0619");
}

#[test]
fn reductions_are_lexicographic_over_dependent_ranges() {
    let mut b = new("order", &["N"]);
    b.dim("i", 0, 1);
    let p = b.bound("p", 0, param(0));
    let q = b.bound("q", Form::from(p), param(0));
    let append = add(mul(local(0), Expr::int(Scalar::I64, 10)), local(1));
    let int = || Type::from(Scalar::I64);
    let append = b.function("append", &[int(), int()], int(), append);
    let term = add(mul(Expr::Iter(p), Expr::int(Scalar::I64, 3)), Expr::Iter(q));
    let s = b.var("S", Scalar::I64, reduce(Combine::Fn(append), &[p, q], term));
    let value = b.here(s);
    b.output("s", Scalar::I64, &[], vec![write(value, &[], Cond::TRUE)]);
    // (p, q) = 00 01 02 11 12 22
    assert_eq!(b.result(&[3], &[], "s").data, Data::I64(vec![12458]));
}

#[test]
fn batches_share_the_weights() {
    let plain = conv1d(Scalar::F32);
    let mut b = conv1d(Scalar::F32);
    let w = b.system.find_input("w").unwrap();
    b.system.params.push(systola_ir::system::Param {
        name: "B".into(),
        span: Span::NONE,
    });
    b.system.batch = Some(Batch {
        name: "n".into(),
        range: (Form::from(0), param(2)),
        shared: vec![w],
        span: Span::NONE,
    });
    let expanded = b.system.expand_batch().unwrap();
    assert_eq!(expanded.dim_names(), ["n", "c", "q"]);
    assert_eq!(expanded.inputs[0].axes.len(), 2);
    assert_eq!(expanded.inputs[1].axes.len(), 1);
    assert_eq!(expanded.expand_batch().unwrap(), expanded);

    let params = [10, 3, 4];
    let x = Tensor::random(Scalar::F32, &expanded.inputs[0].axes, &params, 5).unwrap();
    let w = plain.random(w, &params[..2]);
    let z = b.result(&params, &[("x", &x), ("w", &w)], "z");
    assert_eq!(z.shape, [4, 10]);
    for n in 0..4 {
        let item = Tensor::vector(f32s(&x)[n * 12..(n + 1) * 12].to_vec());
        let expect = plain.result(&params[..2], &[("x", &item), ("w", &w)], "z");
        assert_eq!(f32s(&z)[n * 10..(n + 1) * 10], *f32s(&expect));
    }
}

#[test]
fn batches_reach_every_kind_of_expression() {
    // A per-item table looked up by value, an iterator as a value, a reduction, a scan, a guard.
    let mut b = new("all", &["N", "B"]);
    let i = b.dim("i", 1, param(0).plus(1));
    let k = b.bound("k", 0, i.clone());
    let t = b.table("t", Scalar::I64, &[param(0).plus(1)], None);
    let fixed = b.table("two", Scalar::I64, &[Form::from(1)], Some(&[2]));
    let looked = lookup(t, vec![Expr::Iter(k)]);
    let sum = reduce(
        Combine::Op(BinOp::Add),
        &[k],
        mul(looked, read(fixed, &[Form::from(0)])),
    );
    let body = guard(
        le(i.clone(), 2),
        sum,
        scan(BinOp::Add, 0, Expr::Iter(systola_ir::DimId(0))),
    );
    let v = b.var("V", Scalar::I64, body);
    let value = b.here(v);
    b.output(
        "v",
        Scalar::I64,
        &[param(0)],
        vec![write(value, &[i.plus(-1)], Cond::TRUE)],
    );
    b.system.batch = Some(Batch {
        name: "n".into(),
        range: (Form::from(0), param(1)),
        shared: Vec::new(),
        span: Span::NONE,
    });
    let t = Tensor::new(vec![2, 5], (0..10).collect::<Vec<i64>>()).unwrap();
    let v = b.result(&[4, 2], &[("t", &t)], "v");
    assert_eq!(v.data, Data::I64(vec![0, 2, 6, 10, 10, 22, 6, 10]));
}

#[test]
fn values_outside_and_several_writes() {
    // A three-point sum that reads zeros beyond its ends; the ends are written by a second write.
    let mut b = new("smooth", &["N"]);
    let i = b.dim("i", 0, param(0));
    let x = b.input("x", Scalar::I32, &[param(0)]);
    b.system.inputs[0].outside = Some(Literal::Int(0));
    let term = |d| read(x, &[i.plus(d)]);
    let y = b.var("Y", Scalar::I32, add(add(term(-1), term(0)), term(1)));
    let is_end = Cond::Or(vec![eq(i.clone(), 0), eq(i.clone(), param(0).plus(-1))]);
    let negated = Expr::Unary(UnOp::Neg, Box::new(b.here(y)));
    let writes = vec![
        write(b.here(y), &[i.plus(1)], is_end.clone().negate()),
        write(negated, &[i.plus(1)], is_end),
    ];
    b.output("y", Scalar::I32, &[param(0).plus(2)], writes);
    b.system.outputs[0].fill = Some(Literal::Int(-99));
    let x = Tensor::vector(vec![1, 2, 3, 4]);
    assert_eq!(
        i32s(&b.result(&[4], &[("x", &x)], "y")),
        [-99, -3, 6, 9, -7, -99]
    );
}

#[test]
fn sparse_domains_are_hashed() {
    // Only the diagonal of a box that would never fit.
    let mut b = new("diagonal", &["N"]);
    let n = 1 << 20;
    let (i, j) = (b.dim("i", 0, param(0)), b.dim("j", 0, param(0)));
    b.system.domain.push(eq(i.clone(), j.clone()));
    let v = b.next_var();
    let one = Expr::int(Scalar::I64, 1);
    let body = guard(
        eq(i.clone(), 0),
        one.clone(),
        add(at(v, &[i.plus(-1), j.plus(-1)]), one),
    );
    let v = b.var("V", Scalar::I64, body);
    let (value, last) = (b.here(v), eq(i, param(0).plus(-1)));
    b.output("v", Scalar::I64, &[], vec![write(value, &[], last)]);
    assert_eq!(b.result(&[n], &[], "v").data, Data::I64(vec![n as i64]));
}

/// A chain of three million values, demanded from its far end: no recursion may be involved.
#[test]
fn long_chains_do_not_overflow_the_stack() {
    let mut b = new("chain", &["N"]);
    let i = b.dim("i", 0, param(0));
    let v = b.next_var();
    let one = Expr::int(Scalar::I64, 1);
    let body = guard(
        eq(i.clone(), 0),
        one.clone(),
        add(at(v, &[i.plus(-1)]), one),
    );
    let v = b.var("V", Scalar::I64, body);
    let (value, last) = (b.here(v), eq(i, param(0).plus(-1)));
    b.output("v", Scalar::I64, &[], vec![write(value, &[], last)]);
    let n = 3_000_000;
    assert_eq!(b.result(&[n], &[], "v").data, Data::I64(vec![n as i64]));
}

#[test]
fn skewed_dependences_with_symbolic_distances() {
    // X(i, j) = X(i-1, j + 1 - N) would leave the domain unless guarded: a ring of period N.
    let mut b = new("ring", &["T", "N"]);
    let (t, j) = (b.dim("t", 0, param(0)), b.dim("j", 0, param(1)));
    let x = b.input("x", Scalar::I32, &[param(1)]);
    let v = b.next_var();
    let wrap = at(v, &[t.plus(-1), j.sub(&param(1)).plus(1)]);
    let next = at(v, &[t.plus(-1), j.plus(1)]);
    let body = guard(
        eq(t.clone(), 0),
        read(x, &[j.clone()]),
        guard(Cond::cmp(Rel::Eq, j.clone(), param(1).plus(-1)), wrap, next),
    );
    let v = b.var("V", Scalar::I32, body);
    let (value, last) = (b.here(v), eq(t, param(0).plus(-1)));
    b.output(
        "y",
        Scalar::I32,
        &[param(1)],
        vec![write(value, &[j], last)],
    );
    let x = Tensor::vector(vec![10, 11, 12, 13, 14]);
    assert_eq!(
        i32s(&b.result(&[3, 5], &[("x", &x)], "y")),
        [12, 13, 14, 10, 11]
    );
}
