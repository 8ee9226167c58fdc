//! Convolutions: of a long signal, and of an image with an output as large as it.

use std::ops::Range;
use std::sync::Arc;

use super::case::{Case, Data, Mappings, Output, Trial, Unit, Work};
use super::sample::sampled;
use crate::arrays::{Array, Arrays};

/// A sum of `n` products of numbers up to 1 is of the size of √n, and its rounding errors are far
/// below n of the last place of 1; the error of a missing or wrong product is far above.
pub fn tolerance(n: usize, unit: Unit) -> f64 {
    let epsilon = match unit {
        Unit::F32 | Unit::Single => f64::from(f32::EPSILON),
        Unit::F64 => f64::EPSILON,
        Unit::Integer => 0.0,
    };
    2.0 * n as f64 * epsilon
}

/// Rows in which a signal is compared.
const ROW: usize = 4096;

/// z(c) = Σ x(c + q) w(q).
pub fn conv1d(n: usize, taps: usize) -> Case {
    let outputs = move |x: &Arc<Array>, w: &Arc<Array>| {
        let (x, w) = (Arc::clone(x), Arc::clone(w));
        let reference = move |row: usize, all: Range<usize>, out: &mut [f64]| {
            let start = row * ROW + all.start;
            // The last row may be short.
            let short = out.len().min(n.saturating_sub(start));
            for q in 0..taps {
                x.add_scaled(start + q, w.get(q), &mut out[..short]);
            }
        };
        vec![Output {
            name: "z",
            shape: vec![n],
            check: sampled([n / ROW, ROW], tolerance(taps, Unit::F32), reference),
        }]
    };
    let sizes = vec![("C", n as i64), ("Q", taps as i64)];
    let of_trial = sizes.clone();
    let name = match taps {
        1 => format!("copy {}", short(n)),
        _ => format!("{}, {taps} taps", short(n)),
    };
    Case {
        name,
        program: "conv1d/core.ure",
        mappings: Mappings::These(&["quads", "twenty"]),
        sizes,
        fix: &["Q"],
        work: Work {
            operations: 2.0 * (n * taps) as f64,
            unit: Unit::F32,
            bytes: 8.0 * n as f64,
            cells: None,
        },
        note: String::new(),
        baseline: Some(taps.to_string()),
        make: Box::new(move |arrays| {
            let (x, w) = (arrays.f32(1, &[n + taps - 1]), arrays.f32(5, &[taps]));
            Data {
                trials: vec![Trial {
                    sizes: of_trial.clone(),
                    outputs: outputs(&x, &w),
                }],
                inputs: vec![("x", x), ("w", w)],
            }
        }),
    }
}

/// The element type of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    Single,
    Double,
}

/// Powers of two are written as such.
fn short(n: usize) -> String {
    if n.is_power_of_two() {
        format!("2^{}", n.trailing_zeros())
    } else {
        n.to_string()
    }
}

/// The promising mappings of same.ure for this number of taps: unrolled ones while their code is
/// small, those with a loop over the rows of the filter where the loop overhead is small.
fn candidates(taps: usize, precision: Precision) -> &'static [&'static str] {
    match (precision, taps) {
        (Precision::Single, ..=16) => &["walk", "wide", "tall", "ssam"],
        (Precision::Single, 17..=80) => &["walk", "patch", "tall", "ssam"],
        (Precision::Single, 81..=120) => &["walk", "patch", "ssam"],
        (Precision::Single, 121..=180) => &["walk", "low", "halves", "quarters", "ssam"],
        (Precision::Single, _) => &["halves", "quarters", "ssam"],
        (Precision::Double, ..=48) => &["walk64", "tall64"],
        (Precision::Double, 49..=100) => &["walk64", "halves64"],
        (Precision::Double, 101..=200) => &["columns64", "quarters64"],
        (Precision::Double, _) => &["halves64", "quarters64"],
    }
}

/// z(r, c) = Σ x(r + p − ⌊H/2⌋, c + q − ⌊Q/2⌋) w(p, q), with zeros outside of x.
pub fn conv2d(n: usize, filter: [usize; 2], precision: Precision) -> Case {
    let [h, q] = filter;
    let sizes = vec![
        ("R", n as i64),
        ("C", n as i64),
        ("H", h as i64),
        ("Q", q as i64),
    ];
    let of_trial = sizes.clone();
    let (bytes, unit) = match precision {
        Precision::Single => (4.0, Unit::F32),
        Precision::Double => (8.0, Unit::F64),
    };
    let random = move |arrays: &Arrays, seed, shape: &[usize]| match precision {
        Precision::Single => arrays.f32(seed, shape),
        Precision::Double => arrays.f64(seed, shape),
    };
    Case {
        name: format!("{n}², {h} × {q}"),
        program: "conv2d/same.ure",
        mappings: Mappings::These(candidates(h * q, precision)),
        sizes,
        fix: &["H", "Q"],
        work: Work {
            operations: 2.0 * (n * n * h * q) as f64,
            unit,
            bytes: 2.0 * bytes * (n * n) as f64,
            cells: None,
        },
        note: String::new(),
        baseline: Some(format!("{h}x{q}")),
        make: Box::new(move |arrays| {
            let (x, w) = (random(arrays, 2, &[n, n]), random(arrays, 3, &[h, q]));
            let check = {
                let (x, w) = (Arc::clone(&x), Arc::clone(&w));
                sampled([n, n], tolerance(h * q, unit), move |row, all, out| {
                    correlate(&x, &w, [n, n], filter, row, all, out);
                })
            };
            let z = Output {
                name: "z",
                shape: vec![n, n],
                check,
            };
            Data {
                inputs: vec![("x", x), ("w", w)],
                trials: vec![Trial {
                    sizes: of_trial.clone(),
                    outputs: vec![z],
                }],
            }
        }),
    }
}

/// Adds a part of a row of the centred correlation.
fn correlate(
    x: &Array,
    w: &Array,
    [rows, columns]: [usize; 2],
    [h, q]: [usize; 2],
    row: usize,
    all: Range<usize>,
    out: &mut [f64],
) {
    for tap in 0..h * q {
        let at = row + tap / q;
        if at < h / 2 || at - h / 2 >= rows {
            continue;
        }
        // The columns where c + q − ⌊Q/2⌋ is inside.
        let (shift, half) = (tap % q, q / 2);
        let first = all.start.max(half.saturating_sub(shift));
        let end = all.end.min((columns + half).saturating_sub(shift));
        if first < end {
            let start = (at - h / 2) * columns + first + shift - half;
            let out = &mut out[first - all.start..end - all.start];
            x.add_scaled(start, w.get(tap), out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrays::Values;
    use systola::rt::HostArray;

    #[test]
    fn the_reference_is_zero_outside() {
        let x = Array::new(&[2, 3], Values::F32(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
        let w = Array::new(&[2, 3], Values::F32(vec![1.0, 10.0, 100.0, 0.5, 0.0, 0.0]));
        // Row r sees rows r − 1 and r, column c sees c − 1 to c + 1.
        let mut out = vec![0.0; 3];
        correlate(&x, &w, [2, 3], [2, 3], 0, 0..3, &mut out);
        assert_eq!(out, [0.0, 0.5, 1.0]);
        let mut out = vec![0.0; 2];
        correlate(&x, &w, [2, 3], [2, 3], 1, 1..3, &mut out);
        assert_eq!(out, [1.0 + 20.0 + 300.0 + 2.0, 2.0 + 30.0 + 2.5]);
    }

    #[test]
    fn a_wrong_element_is_found_in_both_precisions() {
        for precision in [Precision::Single, Precision::Double] {
            let case = conv2d(50, [3, 4], precision);
            let data = (case.make)(&Arrays::default());
            let (x, w) = (&data.inputs[0].1, &data.inputs[1].1);
            let mut z = vec![0.0; 2500];
            for (row, z) in z.chunks_mut(50).enumerate() {
                correlate(x, w, [50, 50], [3, 4], row, 0..50, z);
            }
            let check = &data.trials[0].outputs[0].check;
            let array = HostArray::from_slice(&z, &[50, 50]).unwrap();
            assert_eq!(check(&array), None);
            z[1234] += 1e-4;
            let array = HostArray::from_slice(&z, &[50, 50]).unwrap();
            assert!(check(&array).is_some());
        }
    }
}
