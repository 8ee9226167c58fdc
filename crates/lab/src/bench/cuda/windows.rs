//! Windows over an image other than a plain sum: with gaps in the filter, a minimum, two sums.

use std::sync::Arc;

use super::case::{Case, Data, Mappings, Output, Trial, Unit, Work};
use super::conv::tolerance;
use super::sample::sampled;
use crate::arrays::Array;

/// A program of gallery/conv2d/windows.ure.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    pub name: &'static str,
    pub system: &'static str,
    pub filter: [usize; 2],
    /// The distance of neighbouring taps.
    step: usize,
    kind: Kind,
    /// Filters, and the output of each.
    filters: &'static [[&'static str; 2]],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Sums of products.
    Sum,
    /// The minimum of sums.
    Least,
}

pub const WINDOWS: [Window; 3] = [
    Window {
        name: "dilation 2, 5 × 9",
        system: "dilated",
        filter: [5, 9],
        step: 2,
        kind: Kind::Sum,
        filters: &[["w", "z"]],
    },
    Window {
        name: "grey erosion, 5 × 5",
        system: "erosion",
        filter: [5, 5],
        step: 1,
        kind: Kind::Least,
        filters: &[["w", "z"]],
    },
    Window {
        name: "two outputs, 5 × 5",
        system: "gradient",
        filter: [5, 5],
        step: 1,
        kind: Kind::Sum,
        filters: &[["u", "gu"], ["v", "gv"]],
    },
];

pub fn window(window: Window, n: usize) -> Case {
    let [h, q] = window.filter;
    let sizes = vec![
        ("R", n as i64),
        ("C", n as i64),
        ("H", h as i64),
        ("Q", q as i64),
    ];
    let of_trial = sizes.clone();
    let outputs = window.filters.len();
    Case {
        name: window.name.to_string(),
        program: "conv2d/windows.ure",
        mappings: Mappings::Of {
            system: window.system,
            but: &[],
        },
        sizes,
        fix: &["H", "Q"],
        work: Work {
            operations: 2.0 * (n * n * h * q * outputs) as f64,
            unit: match window.kind {
                Kind::Sum => Unit::F32,
                Kind::Least => Unit::Single,
            },
            bytes: 4.0 * (n * n * (1 + outputs)) as f64,
            cells: None,
        },
        note: String::new(),
        baseline: None,
        make: Box::new(move |arrays| {
            let x = arrays.f32(2, &[n, n]);
            let mut data = Data {
                inputs: vec![("x", Arc::clone(&x))],
                trials: Vec::new(),
            };
            let mut all = Vec::new();
            for (seed, [filter, output]) in (3..).zip(window.filters) {
                let w = arrays.f32(seed, &[h, q]);
                let (x, weights) = (Arc::clone(&x), Arc::clone(&w));
                let reference =
                    move |row: usize, columns: std::ops::Range<usize>, out: &mut [f64]| {
                        for (column, out) in columns.zip(out) {
                            *out = value(&window, &x, &weights, n, [row, column]);
                        }
                    };
                data.inputs.push((filter, w));
                all.push(Output {
                    name: output,
                    shape: vec![n, n],
                    check: sampled([n, n], tolerance(h * q, Unit::F32), reference),
                });
            }
            data.trials.push(Trial {
                sizes: of_trial.clone(),
                outputs: all,
            });
            data
        }),
    }
}

/// One pixel of the result.
fn value(window: &Window, x: &Array, w: &Array, n: usize, [row, column]: [usize; 2]) -> f64 {
    let [h, q] = window.filter;
    let (mut sum, mut least) = (0.0, f64::INFINITY);
    for tap in 0..h * q {
        let at = |pixel: usize, tap: usize, taps: usize| {
            (pixel + window.step * tap)
                .checked_sub(window.step * (taps / 2))
                .filter(|at| *at < n)
        };
        if let (Some(r), Some(c)) = (at(row, tap / q, h), at(column, tap % q, q)) {
            let (x, w) = (x.get(r * n + c), w.get(tap));
            sum += x * w;
            least = f64::min(least, x + w);
        }
    }
    match window.kind {
        Kind::Sum => sum,
        Kind::Least => least,
    }
}
