//! Sweeps over a field whose border is held: after a few of them all of it is compared, after many some regions,
//! each from the part of the first field that it depends on.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use systola::interp::{Arrays, Data as Elements, Tensor, run_system};
use systola::rt::HostArray;

use super::arrays::{Array, on_all_threads};
use super::case::{Case, Cells, Check, Data, Mappings, Output, Trial, Unit, Work};
use super::measure::load;

/// Rounding of f32 in 1000 sweeps was seen to stay below 2e-7, one sweep more or less to make 3e-5.
const TOLERANCE: f64 = 2e-6;

/// A weighted sum of neighbours.
#[derive(Clone, Copy, Debug)]
pub struct Stencil {
    pub name: &'static str,
    pub program: &'static str,
    pub system: &'static str,
    pub but: &'static [&'static str],
    pub radius: usize,
    /// Sides of the regions that are compared after many sweeps.
    pub region: usize,
}

/// What one sweep adds up.
struct Sum {
    radius: usize,
    /// Each neighbour, by how many rows and columns, and its weight.
    taps: Vec<([isize; 2], f32)>,
}

pub const STENCILS: [Stencil; 3] = [
    Stencil {
        name: "2d5pt",
        program: "stencil/drift2d.ure",
        system: "drift2d",
        // Tiles of 16 rows.
        but: &["small"],
        radius: 1,
        region: 128,
    },
    Stencil {
        name: "2d star, radius 2",
        program: "stencil/star2.ure",
        system: "star2",
        but: &[],
        radius: 2,
        region: 64,
    },
    Stencil {
        name: "2d box, 3 × 3",
        program: "stencil/box3.ure",
        system: "box3",
        but: &[],
        radius: 1,
        region: 128,
    },
];

impl Stencil {
    /// With the weights of the program, which the tests of the gallery know too: they are what one sweep makes of a
    /// field that is 1 in the middle and 0 elsewhere.
    fn sum(&self, root: &Path) -> Result<Sum, String> {
        let module = load(root, self.program)?;
        let system = module.systems.iter().find(|s| s.name == self.system);
        let system = system.ok_or_else(|| format!("there is no system {}", self.system))?;
        // What the middle reaches is not held.
        let middle = 2 * self.radius;
        let side = 2 * middle + 1;
        let mut field = vec![0f32; side * side];
        field[middle * side + middle] = 1.0;
        let field = Tensor::new(vec![side; 2], field).map_err(|e| e.to_string())?;
        let size = |name: String| if name == "T" { 1 } else { side as i128 };
        let sizes: Vec<i128> = system.param_names().into_iter().map(size).collect();
        let inputs = Arrays::from([("x0".to_string(), field)]);
        let outputs = run_system(system, &sizes, &inputs).map_err(|e| e.to_string())?;
        let Some(Elements::F32(weights)) = outputs.get("h").map(|h| &h.data) else {
            return Err(format!("{} has no output h of f32", self.system));
        };
        let away = |at: usize| middle as isize - at as isize;
        let all = weights.iter().copied().enumerate();
        let taps = all.map(|(at, weight)| ([away(at / side), away(at % side)], weight));
        Ok(Sum {
            radius: self.radius,
            taps: taps.filter(|(_, weight)| *weight != 0.0).collect(),
        })
    }
}

/// So many sweeps over n × n cells.
pub fn sweeps(
    root: &Path,
    stencil: Stencil,
    n: usize,
    few: usize,
    many: usize,
) -> Result<Case, String> {
    let sum = Arc::new(stencil.sum(root)?);
    let sizes = move |t: usize| vec![("T", t as i64), ("N", n as i64), ("M", n as i64)];
    let cells = (n * n * many) as f64;
    Ok(Case {
        name: format!("{}, {n}², {many}", stencil.name),
        program: stencil.program,
        mappings: Mappings::Of {
            system: stencil.system,
            but: stencil.but,
        },
        sizes: sizes(many),
        fix: &[],
        work: Work {
            operations: 2.0 * sum.taps.len() as f64 * cells,
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
                    check: check(Arc::clone(&sum), &x, n, t, regions),
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
    })
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
    sum: Arc<Sum>,
    x: &Arc<Array>,
    n: usize,
    sweeps: usize,
    regions: Vec<[Range<usize>; 2]>,
) -> Check {
    let x = Arc::clone(x);
    let expected = std::sync::OnceLock::new();
    Box::new(move |result: &HostArray| {
        let expected: &Vec<Vec<f64>> = expected.get_or_init(|| {
            let after = |region| after(&sum, &x, n, sweeps, region);
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
fn after(sum: &Sum, x: &Array, n: usize, sweeps: usize, region: &[Range<usize>; 2]) -> Vec<f64> {
    let radius = sum.radius;
    let grown = |range: &Range<usize>, by: usize| {
        range.start.saturating_sub(by)..n.min(range.end.saturating_add(by))
    };
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
            for ([dy, dx], weight) in &sum.taps {
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
    use super::super::arrays::Arrays as Inputs;
    use super::*;

    /// One cell after the other.
    fn plain(sum: &Sum, x: &Array, n: usize, sweeps: usize) -> Vec<f64> {
        let mut now: Vec<f64> = (0..n * n).map(|k| x.get(k)).collect();
        for _ in 0..sweeps {
            let old = now.clone();
            for y in sum.radius..n - sum.radius {
                for x in sum.radius..n - sum.radius {
                    let tap = |([dy, dx], weight): &([isize; 2], f32)| {
                        let at = (y as isize + dy) * n as isize + x as isize + dx;
                        f64::from(*weight) * old[at as usize]
                    };
                    now[y * n + x] = sum.taps.iter().map(tap).sum();
                }
            }
        }
        now
    }

    #[test]
    fn a_region_is_what_the_whole_field_holds_there() {
        let n = 41;
        let x = Inputs::default().f32(1, &[n, n]);
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for (stencil, n_taps) in STENCILS.into_iter().zip([5, 9, 9]) {
            let sum = stencil.sum(&root).unwrap();
            assert_eq!(sum.taps.len(), n_taps, "{}", stencil.name);
            let weights: f32 = sum.taps.iter().map(|(_, w)| w).sum();
            assert!((weights - 1.0).abs() < 1e-6, "{weights}");
            for sweeps in [1, 2, 7] {
                let whole = plain(&sum, &x, n, sweeps);
                for region in regions(n, 6).into_iter().chain([[0..n, 0..n]]) {
                    let got = after(&sum, &x, n, sweeps, &region);
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
