//! Sweeps over a field whose border is held: after a few of them all of it is compared, after many some regions,
//! each from the part of the first field that it depends on.

use std::ops::Range;
use std::sync::Arc;

use systola::rt::HostArray;

use super::arrays::{Array, on_all_threads};
use super::case::{Case, Cells, Check, Data, Mappings, Output, Trial, Unit, Work};

/// Rounding of f32 in 1000 sweeps was seen to stay below 2e-7, one sweep more or less to make 3e-5.
const TOLERANCE: f64 = 2e-6;

/// A weighted sum of neighbours.
#[derive(Clone, Copy, Debug)]
pub struct Stencil {
    pub name: &'static str,
    pub program: &'static str,
    pub system: &'static str,
    pub but: &'static [&'static str],
    /// By how many rows and columns.
    pub taps: &'static [([isize; 2], f32)],
    pub radius: usize,
    /// Sides of the regions that are compared after many sweeps.
    pub region: usize,
}

pub const STENCILS: [Stencil; 3] = [
    Stencil {
        name: "2d5pt",
        program: "stencil/drift2d.ure",
        system: "drift2d",
        // Tiles of 16 rows.
        but: &["small"],
        taps: &[
            ([-1, 0], 0.15),
            ([0, 0], 0.5),
            ([0, -1], 0.11),
            ([0, 1], 0.14),
            ([1, 0], 0.1),
        ],
        radius: 1,
        region: 128,
    },
    Stencil {
        name: "2d star, radius 2",
        program: "stencil/star2.ure",
        system: "star2",
        but: &[],
        taps: &[
            ([-2, 0], 0.05),
            ([-1, 0], 0.12),
            ([0, -2], 0.04),
            ([0, -1], 0.09),
            ([0, 0], 0.4),
            ([0, 1], 0.11),
            ([0, 2], 0.08),
            ([1, 0], 0.08),
            ([2, 0], 0.03),
        ],
        radius: 2,
        region: 64,
    },
    Stencil {
        name: "2d box, 3 × 3",
        program: "stencil/box3.ure",
        system: "box3",
        but: &[],
        taps: &[
            ([-1, -1], 0.05),
            ([-1, 0], 0.17),
            ([-1, 1], 0.07),
            ([0, -1], 0.16),
            ([0, 0], 0.2),
            ([0, 1], 0.12),
            ([1, -1], 0.06),
            ([1, 0], 0.13),
            ([1, 1], 0.04),
        ],
        radius: 1,
        region: 128,
    },
];

/// So many sweeps over n × n cells.
pub fn sweeps(stencil: Stencil, n: usize, few: usize, many: usize) -> Case {
    let sizes = move |t: usize| vec![("T", t as i64), ("N", n as i64), ("M", n as i64)];
    let cells = (n * n * many) as f64;
    Case {
        name: format!("{}, {n}², {many}", stencil.name),
        program: stencil.program,
        mappings: Mappings::Of {
            system: stencil.system,
            but: stencil.but,
        },
        sizes: sizes(many),
        fix: &[],
        work: Work {
            operations: 2.0 * stencil.taps.len() as f64 * cells,
            unit: Unit::F32,
            bytes: 8.0 * (n * n) as f64,
            cells: Some(Cells {
                count: cells,
                unit: "GCell",
            }),
        },
        note: String::new(),
        peer: None,
        make: Box::new(move |arrays| {
            let x = arrays.f32(9, &[n, n]);
            let trial = |t: usize, regions: Vec<[Range<usize>; 2]>| Trial {
                sizes: sizes(t),
                outputs: vec![Output {
                    name: "h",
                    shape: vec![n, n],
                    check: check(stencil, &x, n, t, regions),
                }],
            };
            Data {
                trials: vec![
                    trial(few, vec![[0..n, 0..n]]),
                    trial(many, regions(n, stencil.region)),
                ],
                inputs: vec![("x0", Arc::clone(&x))],
            }
        }),
    }
}

/// Two corners, the middle of an edge, and the middle.
fn regions(n: usize, side: usize) -> Vec<[Range<usize>; 2]> {
    let side = side.min(n);
    let (first, last) = (0..side, n - side..n);
    let middle = (n - side) / 2..(n - side) / 2 + side;
    vec![
        [first.clone(), first],
        [last.clone(), last.clone()],
        [middle.clone(), last],
        [middle.clone(), middle],
    ]
}

fn check(
    stencil: Stencil,
    x: &Arc<Array>,
    n: usize,
    sweeps: usize,
    regions: Vec<[Range<usize>; 2]>,
) -> Check {
    let x = Arc::clone(x);
    let expected = std::sync::OnceLock::new();
    Box::new(move |result: &HostArray| {
        let expected: &Vec<Vec<f64>> = expected.get_or_init(|| {
            let after = |region| after(stencil, &x, n, sweeps, region);
            regions.iter().map(after).collect()
        });
        let Some(result) = result.as_slice::<f32>() else {
            return Some("the result is not of f32".to_string());
        };
        for ([rows, columns], expected) in regions.iter().zip(expected) {
            for (row, expected) in rows.clone().zip(expected.chunks(columns.len())) {
                for (column, expected) in columns.clone().zip(expected) {
                    let got = f64::from(result[row * n + column]);
                    // A difference that is not a number is one too.
                    let close = (got - expected).abs() <= TOLERANCE;
                    if !close {
                        return Some(format!(
                            "after {sweeps} sweeps, element {column} of row {row} is {got} instead of {expected}"
                        ));
                    }
                }
            }
        }
        None
    })
}

/// What a region holds after so many sweeps, in f64. It depends on a box that is wider by the radius for each sweep.
fn after(
    stencil: Stencil,
    x: &Array,
    n: usize,
    sweeps: usize,
    region: &[Range<usize>; 2],
) -> Vec<f64> {
    let grown = |range: &Range<usize>, by: usize| {
        range.start.saturating_sub(by)..n.min(range.end.saturating_add(by))
    };
    let radius = stencil.radius;
    let [rows, columns] = region.each_ref().map(|r| grown(r, sweeps * radius));
    let wide = columns.len();
    let mut now = vec![0.0; rows.len() * wide];
    let mut lines: Vec<&mut [f64]> = now.chunks_mut(wide).collect();
    on_all_threads(&mut lines, |n_line, line| {
        x.add_scaled((rows.start + n_line) * n + columns.start, 1.0, line);
    });
    let mut next = now.clone();
    // Cells that are computed and not held.
    let free = |range: &Range<usize>, left: usize| {
        let range = grown(range, left * radius);
        range.start.max(radius)..range.end.min(n.saturating_sub(radius))
    };
    for sweep in 1..=sweeps {
        let [ys, xs] = region.each_ref().map(|r| free(r, sweeps - sweep));
        if ys.is_empty() || xs.is_empty() {
            break;
        }
        let now_ref = &now;
        let first = (ys.start - rows.start) * wide;
        let part = &mut next[first..first + ys.len() * wide];
        let mut lines: Vec<&mut [f64]> = part.chunks_mut(wide).collect();
        on_all_threads(&mut lines, |line_idx, line| {
            let out = &mut line[xs.start - columns.start..xs.end - columns.start];
            out.fill(0.0);
            let at = (first + line_idx * wide + xs.start - columns.start) as isize;
            for ([dy, dx], weight) in stencil.taps {
                let from = (at + dy * wide as isize + dx) as usize;
                let weight = f64::from(*weight);
                for (out, old) in out.iter_mut().zip(&now_ref[from..]) {
                    *out += weight * old;
                }
            }
        });
        std::mem::swap(&mut now, &mut next);
    }
    let [ys, xs] = region;
    let row = |y: usize| {
        let start = (y - rows.start) * wide + xs.start - columns.start;
        now[start..start + xs.len()].iter().copied()
    };
    ys.clone().flat_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::super::arrays::Arrays;
    use super::*;

    /// One cell after the other.
    fn plain(stencil: Stencil, x: &Array, n: usize, sweeps: usize) -> Vec<f64> {
        let mut now: Vec<f64> = (0..n * n).map(|k| x.get(k)).collect();
        for _ in 0..sweeps {
            let old = now.clone();
            for y in stencil.radius..n - stencil.radius {
                for x in stencil.radius..n - stencil.radius {
                    let tap = |([dy, dx], weight): &([isize; 2], f32)| {
                        let at = (y as isize + dy) * n as isize + x as isize + dx;
                        f64::from(*weight) * old[at as usize]
                    };
                    now[y * n + x] = stencil.taps.iter().map(tap).sum();
                }
            }
        }
        now
    }

    #[test]
    fn a_region_is_what_the_whole_field_holds_there() {
        let n = 41;
        let x = Arrays::default().f32(1, &[n, n]);
        for stencil in STENCILS {
            let weights: f32 = stencil.taps.iter().map(|(_, w)| w).sum();
            assert!((weights - 1.0).abs() < 1e-6, "{weights}");
            for sweeps in [1, 2, 7] {
                let whole = plain(stencil, &x, n, sweeps);
                for region in regions(n, 6).into_iter().chain([[0..n, 0..n]]) {
                    let got = after(stencil, &x, n, sweeps, &region);
                    let [ys, xs] = region;
                    let want = ys.flat_map(|y| whole[y * n..][xs.clone()].to_vec());
                    for (got, want) in got.iter().zip(want) {
                        assert!((got - want).abs() < 1e-12, "{} {sweeps}", stencil.name);
                    }
                }
            }
        }
    }
}
