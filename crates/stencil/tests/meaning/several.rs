//! Several fields, intermediate values, weights at run time, equations that are no weighted sums.

use std::collections::BTreeMap;

use crate::reference::{BOUNDARIES, Boundary, Grid, random, word};
use crate::run::{agree, run, system};

fn shifted(cell: &[i64], offset: &[i64]) -> Vec<i64> {
    cell.iter().zip(offset).map(|(i, o)| i + o).collect()
}

const FOUR: [[i64; 2]; 4] = [[-1, 0], [1, 0], [0, -1], [0, 1]];

fn around(grid: &Grid, cell: &[i64], edge: Boundary) -> Option<f64> {
    let values = FOUR.iter().map(|o| grid.look(&shifted(cell, o), edge));
    values.sum()
}

fn sizes(shape: &[usize], steps: i128) -> [(&'static str, i128); 3] {
    [
        ("N", shape[0] as i128),
        ("M", shape[1] as i128),
        ("T", steps),
    ]
}

#[test]
fn two_fields_of_the_wave_equation() {
    for edge in BOUNDARIES.into_iter().filter(|e| *e != Boundary::Interior) {
        let text = format!(
            "stencil wave(N, M, T) {{
               field u[N, M]: f64 {0};
               field v[N, M]: f64 {0};
               steps T;
               u = 2*u - v + 0.1*(sum(u over star 1) - 5*u);
               v = u;
             }}",
            word(edge)
        );
        let system = system(&text);
        for (shape, steps) in [([5, 7], 1), ([4, 3], 4), ([9, 2], 5)] {
            let (mut u, mut v) = (random(&shape, 5), random(&shape, 6));
            let found = run(&system, &sizes(&shape, steps), &[("u", &u), ("v", &v)]);
            for _ in 0..steps {
                let next = u.map(|cell| match around(&u, cell, edge) {
                    Some(sum) => {
                        Some(2.0 * u.at(cell) - v.at(cell) + 0.1 * (sum - 4.0 * u.at(cell)))
                    }
                    None => Some(u.at(cell)),
                });
                v = std::mem::replace(&mut u, next);
            }
            agree(&u, &found["u'"], &text);
            agree(&v, &found["v'"], &text);
        }
    }
}

#[test]
fn fields_that_react() {
    for edge in BOUNDARIES.into_iter().filter(|e| *e != Boundary::Interior) {
        let text = format!(
            "stencil gray_scott(N, M, T) {{
               field u[N, M]: f64 {0};
               field v[N, M]: f64 {0};
               steps T;
               fn rate(a: f64, b: f64) -> f64 = a * b * b;
               u = u + 0.2*(sum(u over star 1) - 5*u) - rate(u, v) + 0.04*(1 - u);
               v = v + 0.1*(sum(v over star 1) - 5*v) + rate(u, v) - 0.1*v;
             }}",
            word(edge)
        );
        let system = system(&text);
        let (shape, steps) = ([5, 6], 3);
        let (mut u, mut v) = (random(&shape, 7), random(&shape, 8));
        let found = run(&system, &sizes(&shape, steps), &[("u", &u), ("v", &v)]);
        for _ in 0..steps {
            let step = |grid: &Grid, d: f64, f: &dyn Fn(&[i64]) -> f64| {
                grid.map(|cell| match around(grid, cell, edge) {
                    Some(sum) => Some(grid.at(cell) + d * (sum - 4.0 * grid.at(cell)) + f(cell)),
                    None => Some(grid.at(cell)),
                })
            };
            let rate = |cell: &[i64]| u.at(cell) * v.at(cell) * v.at(cell);
            let next_u = step(&u, 0.2, &|c| 0.04 * (1.0 - u.at(c)) - rate(c));
            let next_v = step(&v, 0.1, &|c| rate(c) - 0.1 * v.at(c));
            (u, v) = (next_u, next_v);
        }
        agree(&u, &found["u'"], &text);
        agree(&v, &found["v'"], &text);
    }
}

#[test]
fn new_values_are_read_in_place() {
    let text = "stencil seidel(N, M, T) {
        field u[N, M]: f64 constant 0; field b[N, M]: f64;
        steps T;
        u = (b + u'[-1, 0] + u'[0, -1] + u[1, 0] + u[0, 1]) / 4;
      }";
    let system = system(text);
    let (shape, steps) = ([5, 4], 3);
    let (mut u, b) = (random(&shape, 9), random(&shape, 10));
    let found = run(&system, &sizes(&shape, steps), &[("u", &u), ("b", &b)]);
    for _ in 0..steps {
        for cell in u.cells() {
            let sum = around(&u, &cell, Boundary::Constant(0.0)).expect("a number");
            let flat = cell[0] as usize * shape[1] + cell[1] as usize;
            u.data[flat] = (b.at(&cell) + sum) / 4.0;
        }
    }
    agree(&u, &found["u'"], text);
}

#[test]
fn a_new_value_of_another_field() {
    // In either order: the dependences decide.
    for (first, second) in [
        ("v = v + 0.5*u[1];", "u = u + 0.25*v';"),
        ("u = u + 0.25*v';", "v = v + 0.5*u[1];"),
    ] {
        for steps in ["", "steps T;"] {
            let text = format!(
                "stencil leap(N, T) where T >= 1 {{ field u[N]: f64 wrap; field v[N]: f64 wrap; {steps} {first} {second} }}"
            );
            let system = system(&text);
            let (mut u, mut v) = (random(&[7], 11), random(&[7], 12));
            let n = if steps.is_empty() { 1 } else { 4 };
            let found = run(&system, &[("N", 7), ("T", n)], &[("u", &u), ("v", &v)]);
            for _ in 0..n {
                v = v.map(|c| Some(v.at(c) + 0.5 * u.look(&[c[0] + 1], Boundary::Wrap)?));
                u = u.map(|c| Some(u.at(c) + 0.25 * v.at(c)));
            }
            agree(&u, &found["u'"], &text);
            agree(&v, &found["v'"], &text);
        }
    }
}

#[test]
fn values_between_make_chains() {
    for edge in BOUNDARIES.into_iter().filter(|e| *e != Boundary::Fixed) {
        for steps in [1, 3] {
            let text = format!(
                "stencil chain(N, M, T) where T >= 1 {{
                   field u[N, M]: f64 {0};
                   steps {steps};
                   var g: f64 {0} = 0.25*u[-1, 0] + 0.5*u + 0.25*u[2, 0];
                   u = 0.5*g[0, -2] + 0.25*g + 0.125*max(g over box 1);
                   output h = u;
                 }}",
                word(edge)
            );
            let system = system(&text);
            let shape = [4 + 5 * steps as usize, 5 + 3 * steps as usize];
            let grid = random(&shape, 13);
            let found = run(&system, &sizes(&shape, steps), &[("u", &grid)]);
            let mut u = grid;
            for _ in 0..steps {
                // Cells of g are those of u, so that its boundary is folded as well.
                let cells = u.clone();
                let g = |at: &[i64]| -> Option<f64> {
                    let folded: Option<Vec<i64>> = at
                        .iter()
                        .zip(&cells.shape)
                        .map(|(i, n)| Some(edge.fold(*i, *n)? as i64))
                        .collect();
                    match (folded, edge) {
                        (Some(at), _) => Some(
                            0.25 * cells.look(&shifted(&at, &[-1, 0]), edge)?
                                + 0.5 * cells.at(&at)
                                + 0.25 * cells.look(&shifted(&at, &[2, 0]), edge)?,
                        ),
                        (None, Boundary::Constant(c)) => Some(c),
                        (None, _) => None,
                    }
                };
                u = u.map(|cell| {
                    let mut most = f64::NEG_INFINITY;
                    for y in -1..=1 {
                        for x in -1..=1 {
                            most = most.max(g(&shifted(cell, &[y, x]))?);
                        }
                    }
                    Some(0.5 * g(&shifted(cell, &[0, -2]))? + 0.25 * g(cell)? + 0.125 * most)
                });
            }
            agree(&u, &found["h"], &format!("{text}{system}"));
        }
    }
}

#[test]
fn a_fixed_field_of_values_that_are_only_inside() {
    for steps in [1, 3] {
        let text = format!(
            "stencil s(N, M, T) where T >= 1 {{
               field u[N, M]: f64 fixed;
               field c[N, M]: f64 clamp;
               steps {steps};
               var g: f64 = u[-1, 0] + 0.5*u[0, 1];
               u = 0.25*g[-1, 0] + 0.25*g[0, 1] + c[3, 0]*g;
             }}"
        );
        let system = system(&text);
        for shape in [[7, 6], [3, 3], [1, 2]] {
            let (mut u, c) = (random(&shape, 23), random(&shape, 24));
            let found = run(&system, &sizes(&shape, steps), &[("u", &u), ("c", &c)]);
            for _ in 0..steps {
                let g = |cell: &[i64]| {
                    let above = u.look(&shifted(cell, &[-1, 0]), Boundary::Fixed)?;
                    Some(above + 0.5 * u.look(&shifted(cell, &[0, 1]), Boundary::Fixed)?)
                };
                let next = |cell: &[i64]| {
                    let near =
                        0.25 * g(&shifted(cell, &[-1, 0]))? + 0.25 * g(&shifted(cell, &[0, 1]))?;
                    let weight = c.look(&shifted(cell, &[3, 0]), Boundary::Clamp)?;
                    Some(near + weight * g(cell)?)
                };
                u = u.map(|cell| Some(next(cell).unwrap_or(u.at(cell))));
            }
            agree(&u, &found["u'"], &format!("{text}{system}{shape:?}"));
        }
    }
}

#[test]
fn values_between_may_be_results() {
    for steps in [1, 2] {
        let text = format!(
            "stencil s(N, T) where T >= 1 {{ field u[N]: f64; steps {steps}; var g: f64 = u[-1] - u[2]; u = 0.5*u[-2] + g[1]; output h = u; output d = g; }}"
        );
        let system = system(&text);
        let mut u = random(&[11], 25);
        let found = run(&system, &[("N", 11), ("T", steps)], &[("u", &u)]);
        let mut d = u.clone();
        for _ in 0..steps {
            d = u.sweep(&[(vec![-1], 1.0), (vec![2], -1.0)], Boundary::Interior);
            u = u.sweep(
                &[(vec![-2], 0.5), (vec![0], 1.0), (vec![3], -1.0)],
                Boundary::Interior,
            );
        }
        agree(&u, &found["h"], &format!("{text}\n{system}"));
        agree(&d, &found["d"], &format!("{text}\n{system}"));
    }
}

#[test]
fn weights_at_run_time() {
    for edge in BOUNDARIES {
        for (shape_text, axes) in [
            ("box (1, 2)", "3, 5"),
            ("star 2", "9"),
            ("box 2 except star 2", "16"),
            ("star (0, 1) except box 0", "2"),
        ] {
            for steps in [1, 2] {
                let text = format!(
                    "stencil s(N, M, T) where T >= 1 {{ field u[N, M]: f64 {}; input w[{axes}]: f64; steps {steps}; u = sum(w * u over {shape_text}); }}",
                    word(edge)
                );
                let system = system(&text);
                let offsets: Vec<Vec<i64>> = (-2i64..=2)
                    .flat_map(|y| (-2..=2).map(move |x| vec![y, x]))
                    .filter(|o| match shape_text {
                        "box (1, 2)" => o[0].abs() <= 1,
                        "star 2" => o[0] == 0 || o[1] == 0,
                        "box 2 except star 2" => o[0] != 0 && o[1] != 0,
                        _ => o[0] == 0 && o[1].abs() == 1,
                    })
                    .collect();
                let lengths: Vec<usize> = axes
                    .split(", ")
                    .map(|n| n.parse().expect("a number"))
                    .collect();
                let w = random(&lengths, 14);
                let taps: Vec<_> = offsets.into_iter().zip(w.data.iter().copied()).collect();
                let shape = [9, 10];
                let grid = random(&shape, 15);
                let mut expect = grid.clone();
                for _ in 0..steps {
                    expect = expect.sweep(&taps, edge);
                }
                let found = run(&system, &sizes(&shape, steps), &[("u", &grid), ("w", &w)]);
                agree(&expect, &found["u'"], &format!("{text}\n{system}"));
            }
        }
    }
}

#[test]
fn batches_channels_and_axes_that_are_not_touched() {
    let text = "stencil s(N, M, T) { field u[N, M, 3]: f64 mirror; steps T; u = 0.5*u[-1, 1, 0] + 0.25*u[2, 0, 0]; }";
    let planes = system(text);
    let grid = random(&[4, 5, 3], 16);
    let taps = [(vec![-1, 1, 0], 0.5), (vec![2, 0, 0], 0.25)];
    let expect = grid
        .sweep(&taps, Boundary::Mirror)
        .sweep(&taps, Boundary::Mirror);
    let found = run(&planes, &sizes(&[4, 5], 2), &[("u", &grid)]);
    agree(&expect, &found["u'"], text);

    let text = "stencil s(N, M, T) { field u[3, N, M]: f64 mirror; steps T; u = 0.5*u[0, -1, 1] + 0.25*u[0, 2, 0]; }";
    let outer = system(text);
    assert!(
        outer.vars.len() > 1,
        "rows are those of the first axis that is touched"
    );
    let grid = random(&[3, 4, 5], 17);
    let taps = [(vec![0, -1, 1], 0.5), (vec![0, 2, 0], 0.25)];
    let expect = grid
        .sweep(&taps, Boundary::Mirror)
        .sweep(&taps, Boundary::Mirror);
    let found = run(&outer, &sizes(&[4, 5], 2), &[("u", &grid)]);
    agree(&expect, &found["u'"], text);
}

#[test]
fn a_batch_is_many_stencils() {
    let text = "stencil s(B, N, M, T) { field u[N, M]: f64 reflect; input w[5]: f64; steps T; batch b in 0..B shared(w); u = sum(w * u over star 1); }";
    let system = system(text);
    let (images, w) = (random(&[3, 4, 5], 19), random(&[5], 20));
    let taps: Vec<_> = [[-1, 0], [0, -1], [0, 0], [0, 1], [1, 0]]
        .into_iter()
        .map(|o| o.to_vec())
        .zip(w.data.iter().copied())
        .collect();
    let mut expect = Grid {
        shape: images.shape.clone(),
        data: Vec::new(),
    };
    for image in images.data.chunks(20) {
        let image = Grid {
            shape: vec![4, 5],
            data: image.to_vec(),
        };
        let swept = image
            .sweep(&taps, Boundary::Reflect)
            .sweep(&taps, Boundary::Reflect);
        expect.data.extend(swept.data);
    }
    let sizes = [("B", 3), ("N", 4), ("M", 5), ("T", 2)];
    let found = run(&system, &sizes, &[("u", &images), ("w", &w)]);
    agree(&expect, &found["u'"], text);
}

#[test]
fn written_weights_become_numbers() {
    let text = "stencil s(N, M, T) where T >= 1 { field u[N, M]: f64 fixed; table w[3]: f64 = [0.25, 0.5, 0.125]; steps T; u = reduce(+, k in 0..3, u[k - 1, 1 - k] * w[k]); }";
    let system = system(text);
    assert!(system.to_string().contains("0.125 *"), "{system}");
    assert_eq!(system.inputs.len(), 1, "{system}");
    let grid = random(&[6, 5], 18);
    let taps = [(vec![-1, 1], 0.25), (vec![0, 0], 0.5), (vec![1, -1], 0.125)];
    let expect = grid
        .sweep(&taps, Boundary::Fixed)
        .sweep(&taps, Boundary::Fixed);
    let found = run(&system, &sizes(&[6, 5], 2), &[("u", &grid)]);
    agree(&expect, &found["u'"], text);
}

#[test]
fn the_order_of_equations_means_nothing() {
    for steps in ["", "steps T;"] {
        let text = |equations: &str| {
            let context = "where N >= 9, M >= 1, T >= 1";
            format!("stencil s(N, M, T) {context} {{ field u[N, M]: f64; {steps} {equations} }}")
        };
        let (a, b, u) = (
            "var a: f64 = b[2, 0];",
            "var b: f64 = u[-1, 0] + u[1, 0];",
            "u = a;",
        );
        let grid = random(&[9, 4], 23);
        let results = [[b, a, u], [a, b, u], [u, a, b]].map(|list| {
            let found = run(
                &system(&text(&list.concat())),
                &sizes(&[9, 4], 1),
                &[("u", &grid)],
            );
            found["u'"].clone()
        });
        assert_eq!(results[0].shape, [5, 4]);
        agree(&results[0], &results[1], steps);
        agree(&results[0], &results[2], steps);
    }
}

#[test]
fn tuples_have_a_boundary_too() {
    let text = "stencil s(N, M) { field u[N, M]: f64 clamp; var g: (f64, f64) clamp = (u, 2*u); u = g[-1, 0].0 + g[0, 1].1; }";
    let grid = random(&[3, 4], 21);
    let taps = [(vec![-1, 0], 1.0), (vec![0, 1], 2.0)];
    let expect = grid.sweep(&taps, Boundary::Clamp);
    let found = run(&system(text), &sizes(&[3, 4], 1)[..2], &[("u", &grid)]);
    agree(&expect, &found["u'"], text);
}

#[test]
fn what_is_wrong_in_many_steps_is_shown_where_it_was_written() {
    for (boundary, offset) in [("clamp", "-1, 0"), ("fixed", "0, 0"), ("", "-1, 0")] {
        let text = format!(
            "stencil s(N, M, T) {{ field u[N, M]: f64 {boundary}; steps T; u = u + u'[{offset}]; }}"
        );
        let module = systola_driver::load(&text).expect("it parses");
        let wrong = systola_driver::check_system(&module.systems[0], &Default::default());
        let (span, _) = wrong[0].labels[0];
        let shown = text.get(span.start as usize..span.end as usize);
        assert_eq!(shown, Some(format!("u'[{offset}]").as_str()), "{wrong:#?}");
    }
}

#[test]
fn local_names_are_taken() {
    let text = "stencil s(N, M, T) { field u[N, M]: f64 clamp; steps T; u = let t = u[1, 0]; let U = u[0, 1]; t*U; }";
    assert_eq!(system(text).dims[0].name, "t_");
    let axes = |text: &str| -> Vec<String> {
        let system = system(text);
        system.dims.iter().map(|dim| dim.name.clone()).collect()
    };
    let text = "stencil s(N, M) { field u[N, M]: f64 clamp; u = let x = u[0, 1]; x + u[0, -1]; }";
    assert_eq!(axes(text), ["y", "x_"]);
    let text = "stencil s(N, M) { field u[N, M]: f64 clamp; input w[3]: f64; u = u * reduce(+, y in 0..3, w[y]); }";
    assert_eq!(axes(text), ["y_", "x"]);
}

#[test]
fn names_for_names_for_names_are_not_copied_without_end() {
    let doubled = |op: &str| {
        let lets = (0..60).map(|n| format!("let a{} = a{n} {op} a{n}; ", n + 1));
        lets.collect::<String>()
    };
    let stencil = |functions: &str, equation: &str| {
        format!(
            "stencil s(N, M, T) {{ field u[N, M]: f64 fixed; input w[1]: f64; fn g0(a: f64) -> f64 = a + a; {functions} steps T; u = {equation}; }}"
        )
    };
    for equation in [
        format!("let a0 = w[0]; {} a60 + u[1, 0] + u[0, 1]", doubled("+")),
        format!("let a0 = w[0]; {} a60 * u[1, 0] + u[0, 1]", doubled("*")),
    ] {
        let system = system(&stencil("", &equation));
        assert_eq!(system.vars.len(), 1, "it is read as it is written");
    }
    let calls = (0..60).map(|n| format!("fn g{}(a: f64) -> f64 = g{n}(g{n}(a)); ", n + 1));
    let text = stencil(&calls.collect::<String>(), "g60(u[1, 0] + u[0, 1])");
    let module = systola_driver::load(&text).expect("it is read as it is written");
    let found = systola_driver::check_system(&module.systems[0], &BTreeMap::new());
    let codes: Vec<&str> = found.iter().map(|d| d.code.id).collect();
    assert_eq!(codes, ["E0106"]);
}

/// The generated system with the names of its variables, and the one of the gallery.
fn is_that_of_the_gallery(name: &str, source: &str, equation: &str) {
    let text = format!(
        "stencil {name}(T, N, M) where T >= 1, N >= 1, M >= 1 {{ field x0[N, M]: f32 fixed; steps T; x0 = {equation}; output h = x0; }}"
    );
    let ours = system(&text);
    let gallery = systola_driver::load(source).expect("a program of the gallery");
    let mut theirs = gallery.systems[0].clone();
    for (var, ours) in theirs.vars.iter_mut().zip(&ours.vars) {
        var.name.clone_from(&ours.name);
    }
    assert_eq!(ours, theirs, "{ours}\n{theirs}");
}

#[test]
fn sums_migrate_as_in_the_gallery() {
    is_that_of_the_gallery(
        "drift2d",
        include_str!("../../../../gallery/stencil/drift2d.ure"),
        "0.15*x0[-1, 0] + 0.5*x0 + 0.11*x0[0, -1] + 0.14*x0[0, 1] + 0.1*x0[1, 0]",
    );
    is_that_of_the_gallery(
        "star2",
        include_str!("../../../../gallery/stencil/star2.ure"),
        "0.05*x0[-2, 0] + 0.12*x0[-1, 0] + 0.08*x0[1, 0] + 0.03*x0[2, 0] + 0.4*x0
           + 0.04*x0[0, -2] + 0.09*x0[0, -1] + 0.11*x0[0, 1] + 0.08*x0[0, 2]",
    );
    is_that_of_the_gallery(
        "box3",
        include_str!("../../../../gallery/stencil/box3.ure"),
        "0.05*x0[-1, -1] + 0.17*x0[-1, 0] + 0.07*x0[-1, 1] + 0.16*x0[0, -1] + 0.2*x0
           + 0.12*x0[0, 1] + 0.06*x0[1, -1] + 0.13*x0[1, 0] + 0.04*x0[1, 1]",
    );
}

#[test]
fn inputs_have_boundary_conditions_of_their_own() {
    for edge in BOUNDARIES {
        if matches!(edge, Boundary::Interior | Boundary::Fixed) {
            continue;
        }
        for steps in [1, 3] {
            let text = format!(
                "stencil driven(N, M, T) where N >= 3, M >= 3 {{
                   field u[N, M]: f64 mirror;
                   input a[N, M]: f64 {0};
                   input row[M]: f64 {0};
                   index i, j;
                   steps {steps};
                   u = 0.25*(u[-1, 0] + u[0, 1]) + a[i - 1, j + 2]*row[j - 2]
                     + 0.1*reduce(+, p in -1..2, q in -1..2, a[i + p, j + q]);
                 }}",
                word(edge)
            );
            let system = system(&text);
            for shape in [[5, 6], [3, 4], [4, 3]] {
                let (mut u, a) = (random(&shape, 21), random(&shape, 22));
                let row = random(&shape[1..], 23);
                let inputs = [("u", &u), ("a", &a), ("row", &row)];
                let found = run(&system, &sizes(&shape, steps), &inputs);
                for _ in 0..steps {
                    u = u.map(|cell| {
                        let of_u = |o: [i64; 2]| u.look(&shifted(cell, &o), Boundary::Mirror);
                        let of_a = |o: [i64; 2]| a.look(&shifted(cell, &o), edge);
                        let near = (-1..2).flat_map(|p| (-1..2).map(move |q| [p, q]));
                        let near: Option<f64> = near.map(of_a).sum();
                        let product = of_a([-1, 2])? * row.look(&[cell[1] - 2], edge)?;
                        Some(0.25 * (of_u([-1, 0])? + of_u([0, 1])?) + product + 0.1 * near?)
                    });
                }
                agree(&u, &found["u'"], &text);
            }
        }
    }
}
