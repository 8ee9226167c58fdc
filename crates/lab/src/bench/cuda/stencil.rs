//! Sweeps over a field with a fixed (Dirichlet) boundary: after a few sweeps all of it is compared,
//! after many some regions, each computed from the part of the first field that it depends on.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use systola::interp::{Arrays, Data as Elements, Tensor, run_system};
use systola::rt::HostArray;
use systola_stencil::reference::{Boundary, sweep_into};

use super::case::{Case, Cells, Check, Data, Mappings, Output, Trial, Unit, Work};
use super::measure::load;
use crate::arrays::Array;
use crate::compare::{Piece, fault_of_array};

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

/// The weighted sum of one sweep.
struct Sum {
    radius: usize,
    /// The row and column offset of each neighbour, and its weight.
    taps: Vec<(Vec<i64>, f64)>,
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
    /// Recovers the weights of the program, which the tests of the gallery check: they are the
    /// result of one sweep over a field that is 1 in the middle and 0 elsewhere.
    fn sum(&self, root: &Path) -> Result<Sum, String> {
        let module = load(root, self.program)?;
        let system = module.systems.iter().find(|s| s.name == self.system);
        let system = system.ok_or_else(|| format!("there is no system {}", self.system))?;
        // The neighbours of the middle are not on the fixed boundary.
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
        let away = |at: usize| middle as i64 - at as i64;
        let all = weights
            .iter()
            .enumerate()
            .filter(|(_, weight)| **weight != 0.0);
        let tap = |(at, weight): (usize, &f32)| {
            let offset = vec![away(at / side), away(at % side)];
            (offset, f64::from(*weight))
        };
        Ok(Sum {
            radius: self.radius,
            taps: all.map(tap).collect(),
        })
    }
}

/// Sweeps over n × n cells: `few` of them compared completely, `many` of them timed.
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
        baseline: None,
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
        let pieces = regions.iter().zip(expected);
        let pieces = pieces.flat_map(|([rows, columns], expected)| {
            let rows = rows.clone().zip(expected.chunks(columns.len()));
            rows.map(|(row, values)| Piece {
                row,
                column: columns.start,
                values,
            })
        });
        let fault = fault_of_array(result, n, TOLERANCE, pieces)?;
        Some(format!("after {sweeps} sweeps, {fault}"))
    })
}

/// The contents of a region after `sweeps` sweeps, in f64. It depends on a box that grows by the
/// radius for each sweep.
fn after(sum: &Sum, x: &Array, n: usize, sweeps: usize, region: &[Range<usize>; 2]) -> Vec<f64> {
    let grown = |range: &Range<usize>, left: usize| {
        let by = left * sum.radius;
        range.start.saturating_sub(by)..n.min(range.end.saturating_add(by))
    };
    let [rows, columns] = region.each_ref().map(|r| grown(r, sweeps));
    let shape = [rows.len(), columns.len()];
    let mut now = vec![0.0; rows.len() * columns.len()];
    for (row, line) in rows.clone().zip(now.chunks_mut(columns.len())) {
        x.add_scaled(row * n + columns.start, 1.0, line);
    }
    let mut next = now.clone();
    // By its position in the box.
    let window = |left: usize| {
        let [ys, xs] = region.each_ref().map(|r| grown(r, left));
        [
            ys.start - rows.start..ys.end - rows.start,
            xs.start - columns.start..xs.end - columns.start,
        ]
    };
    for left in (0..sweeps).rev() {
        sweep_into(
            &now,
            &shape,
            &sum.taps,
            Boundary::Fixed,
            &window(left),
            &mut next,
        );
        std::mem::swap(&mut now, &mut next);
    }
    let [ys, xs] = window(0);
    let row = |y: usize| now[y * columns.len()..][xs.clone()].iter().copied();
    ys.flat_map(row).collect()
}

#[cfg(test)]
mod tests {
    use systola_stencil::reference::Grid;

    use super::*;
    use crate::arrays::Arrays as Inputs;

    #[test]
    fn a_region_is_what_the_whole_field_holds_there() {
        let n = 41;
        let x = Inputs::default().f32(1, &[n, n]);
        let start = Grid {
            shape: vec![n, n],
            data: (0..n * n).map(|k| x.get(k)).collect(),
        };
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for (stencil, n_taps) in STENCILS.into_iter().zip([5, 9, 9]) {
            let sum = stencil.sum(&root).unwrap();
            assert_eq!(sum.taps.len(), n_taps, "{}", stencil.name);
            let weights: f64 = sum.taps.iter().map(|(_, w)| w).sum();
            assert!((weights - 1.0).abs() < 1e-6, "{weights}");
            for sweeps in [1, 2, 7] {
                let whole = start.sweeps(&sum.taps, Boundary::Fixed, sweeps).data;
                for region in regions(n, 6).into_iter().chain([[0..n, 0..n]]) {
                    let got = after(&sum, &x, n, sweeps, &region);
                    let [ys, xs] = region;
                    let want = ys.flat_map(|y| whole[y * n..][xs.clone()].to_vec());
                    assert!(got.into_iter().eq(want), "{} {sweeps}", stencil.name);
                }
            }
        }
    }
}
