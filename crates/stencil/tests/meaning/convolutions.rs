//! Filters of any size, with strides and dilations, against loops over the array.

use crate::reference::{BOUNDARIES, Boundary, Grid, random, word};
use crate::run::{agree, run, system};

fn check(edge: Boundary, stride: &[i64], dilation: &[i64], shape: &[usize], filter: &[usize]) {
    let rank = shape.len();
    let list = |names: &[&str]| names[..rank].join(", ");
    let (sizes, widths) = (list(&["A", "B", "C"]), list(&["F", "G", "H"]));
    let numbers = |n: &[i64]| {
        n.iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(", ")
    };
    let text = format!(
        "conv k({sizes}, {widths}) {{\n  input x[{sizes}]: f64 {};\n  filter w[{widths}]: f64;\n  stride {};\n  dilation {};\n}}\n",
        word(edge),
        numbers(stride),
        numbers(dilation),
    );
    let system = system(&text);
    let (x, w) = (random(shape, 3), random(filter, 4));
    // A result for every `stride` elements, centred on them, or beginning there for the interior.
    let ends: Vec<i64> = (0..rank)
        .map(|n| match edge {
            Boundary::Interior => shape[n] as i64 - dilation[n] * (filter[n] as i64 - 1),
            _ => shape[n] as i64,
        })
        .collect();
    let cells = Grid {
        shape: (0..rank)
            .map(|n| ((ends[n] + stride[n] - 1) / stride[n]) as usize)
            .collect(),
        data: Vec::new(),
    };
    let data = cells
        .cells()
        .iter()
        .map(|cell| {
            let mut sum = 0.0;
            for tap in w.cells() {
                let at: Vec<i64> = (0..rank)
                    .map(|n| {
                        let middle = match edge {
                            Boundary::Interior => 0,
                            _ => filter[n] as i64 / 2,
                        };
                        stride[n] * cell[n] + dilation[n] * (tap[n] - middle)
                    })
                    .collect();
                sum += x.look(&at, edge).expect("inside") * w.at(&tap);
            }
            sum
        })
        .collect();
    let expect = Grid { data, ..cells };
    let names = ["A", "B", "C"].iter().zip(shape).take(rank);
    let filters = ["F", "G", "H"].iter().zip(filter).take(rank);
    let sizes: Vec<(&str, i128)> = names
        .chain(filters)
        .map(|(n, s)| (*n, *s as i128))
        .collect();
    let found = run(&system, &sizes, &[("x", &x), ("w", &w)]);
    agree(
        &expect,
        &found["z"],
        &format!("{text}{system}{shape:?} {filter:?}"),
    );
}

#[test]
fn every_boundary_with_strides_and_dilations() {
    for edge in BOUNDARIES.into_iter().filter(|e| *e != Boundary::Fixed) {
        for filter in [1, 2, 3, 4] {
            check(edge, &[1], &[1], &[7], &[filter]);
            check(edge, &[2], &[1], &[8], &[filter]);
            check(edge, &[3], &[2], &[9], &[filter]);
            check(edge, &[1, 1], &[1, 1], &[6, 5], &[filter, 3]);
            check(edge, &[2, 3], &[1, 2], &[7, 9], &[3, filter]);
        }
        check(edge, &[1, 2, 1], &[1, 1, 2], &[4, 5, 6], &[3, 2, 3]);
    }
}

#[test]
fn zero_outside_is_the_convolution_of_the_gallery() {
    let gallery = include_str!("../../../../gallery/conv2d/same.ure");
    let ours = "conv same(R, C, H, Q) { input x[R, C]: f32 constant 0; filter w[H, Q]: f32; }";
    let theirs = systola_driver::load(gallery).expect("a program of the gallery");
    assert_eq!(system(ours), theirs.systems[0]);
}

#[test]
fn a_box_of_weights_is_a_convolution() {
    let ours = "stencil s(R, C) { index r, c; field x[R, C]: f32 constant 0; input w[3, 5]: f32; x = sum(w * x over box (1, 2)); output z = x; }";
    let same = "system s(R, C) where R >= 1, C >= 1 {
        input x[R, C]: f32 else 0;
        input w[3, 5]: f32;
        index r in 0..R, c in 0..C;
        var X: f32 reorderable = reduce(+, p in 0..3, q in 0..5, x[r + p - 1, c + q - 2] * w[p, q]);
        output z[R, C]: f32 = X at [r, c];
      }";
    assert_eq!(system(ours), system(same));
}
