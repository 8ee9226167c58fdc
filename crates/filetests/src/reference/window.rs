//! Windows over an image other than one sum of products.

use super::{Reference, SINGLE};
use crate::tensor::{Arrays, Params, Rng, Tensor};

const FILE: &str = "conv2d/windows.ure";
const SIZES: &[&[i64]] = &[
    &[1, 1, 1, 1],
    &[3, 5, 2, 3],
    &[2, 4, 3, 5],
    &[5, 3, 1, 4],
    &[9, 13, 4, 2],
];

pub fn references() -> Vec<Reference> {
    vec![
        Reference {
            file: FILE,
            system: "dilated",
            sizes: SIZES,
            inputs: |p, rng| inputs(p, rng, &["w"]),
            outputs: |p, arrays| {
                let taps =
                    |r, c| window(p, arrays, "w", [r, c], 2).map(|(x, w)| x.unwrap_or(0.0) * w);
                image(p, "z", |r, c| taps(r, c).sum())
            },
            tolerance: SINGLE,
        },
        Reference {
            file: FILE,
            system: "erosion",
            sizes: SIZES,
            inputs: |p, rng| inputs(p, rng, &["w"]),
            outputs: |p, arrays| {
                image(p, "z", |r, c| {
                    let inside = window(p, arrays, "w", [r, c], 1);
                    let inside = inside.filter_map(|(x, w)| Some(x? + w));
                    inside.fold(f64::INFINITY, f64::min)
                })
            },
            tolerance: SINGLE,
        },
        Reference {
            file: FILE,
            system: "gradient",
            sizes: SIZES,
            inputs: |p, rng| inputs(p, rng, &["u", "v"]),
            outputs: |p, arrays| {
                let sum = |filter: &'static str, r, c| {
                    let taps = window(p, arrays, filter, [r, c], 1);
                    taps.map(|(x, w)| x.unwrap_or(0.0) * w).sum()
                };
                let mut both = image(p, "gu", |r, c| sum("u", r, c));
                both.0.extend(image(p, "gv", |r, c| sum("v", r, c)).0);
                both
            },
            tolerance: SINGLE,
        },
    ]
}

fn inputs(p: &Params, rng: &mut Rng, filters: &[&'static str]) -> Arrays {
    let [r, c, h, q] = p.get(["R", "C", "H", "Q"]);
    let mut arrays = Arrays::new().with("x", rng.floats([r, c]));
    for filter in filters {
        arrays = arrays.with(filter, rng.floats([h, q]));
    }
    arrays
}

fn image(p: &Params, name: &'static str, value: impl Fn(usize, usize) -> f64) -> Arrays {
    let [r, c] = p.get(["R", "C"]);
    Arrays::new().with(name, Tensor::from_fn([r, c], |[r, c]| value(r, c)))
}

/// The pixels under a filter that is centred at a pixel, with its weights; none outside of the
/// image.
fn window<'a>(
    p: &Params,
    arrays: &'a Arrays,
    filter: &str,
    at: [usize; 2],
    step: i64,
) -> impl Iterator<Item = (Option<f64>, f64)> + 'a {
    let [rows, columns, h, q] = p.get(["R", "C", "H", "Q"]).map(|n: usize| n as i64);
    let (x, w) = (arrays.floats("x"), arrays.floats(filter));
    let [r, c] = at.map(|n| n as i64);
    (0..h * q).map(move |tap| {
        let (i, j) = (tap / q, tap % q);
        let (row, column) = (r + step * (i - h / 2), c + step * (j - q / 2));
        let inside = (0..rows).contains(&row) && (0..columns).contains(&column);
        let pixel = inside.then(|| x[[row as usize, column as usize]]);
        (pixel, w[[i as usize, j as usize]])
    })
}
