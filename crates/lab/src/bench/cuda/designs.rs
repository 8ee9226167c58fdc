//! The designs of Rong et al. 2020 compared with their model: seven arrays for 1-D convolution, SBM
//! and FBS for 2-D convolution at strides 1 and 2.
//!
//! The model counts the PEs and steps of one array. Its throughput (the paper's outturn) is outputs
//! per step; its utilisation is the share of PEs and steps that have a point to compute.

use std::ops::Range;
use std::sync::Arc;

use super::case::{Case, Data, Mappings, Output, Trial, Unit, Work};
use super::conv::tolerance;
use super::sample::sampled;

/// One array of `c` outputs with `h` rows of `q` taps.
#[derive(Clone, Copy, Debug)]
pub struct Design {
    pub name: &'static str,
    program: &'static str,
    mapping: &'static [&'static str],
    /// Outputs of a tile.
    c: usize,
    stride: usize,
    pes: fn(usize, usize) -> usize,
    /// For each row of the filter.
    steps: fn(usize, usize) -> usize,
    /// Its speed in the paper's Tables 3 and 5, in percent of the sampler of that GPU: 2 taps or 2
    /// × 2, 5 or 5 × 5.
    paper: Option<[u32; 2]>,
}

pub const LINES: [Design; 7] = [
    line("SBM", &["sbm"], 16, all, taps, Some([157, 147])),
    line("BSM", &["bsm"], 64, taps, all, Some([67, 49])),
    line("FSM", &["fsm"], 64, taps, all, Some([56, 39])),
    line("BFS", &["bfs"], 16, outputs, all, Some([56, 48])),
    line("FFS", &["ffs"], 16, outputs, twice, Some([33, 30])),
    line("FBS", &["fbs"], 16, outputs, taps, Some([159, 157])),
    Design {
        name: "FBS stride 2",
        stride: 2,
        ..line("", &["fbs_stride2"], 16, outputs, taps, None)
    },
];

pub const IMAGES: [Design; 4] = [
    image("SBM", &["sbm"], 1, all, Some([92, 20])),
    image("FBS", &["fbs"], 1, outputs, Some([114, 24])),
    image("SBM stride 2", &["sbm_stride2"], 2, spread, None),
    image("FBS stride 2", &["fbs_stride2"], 2, outputs, None),
];

const fn line(
    name: &'static str,
    mapping: &'static [&'static str],
    c: usize,
    pes: fn(usize, usize) -> usize,
    steps: fn(usize, usize) -> usize,
    paper: Option<[u32; 2]>,
) -> Design {
    Design {
        name,
        program: "conv1d/tiled.ure",
        mapping,
        c,
        stride: 1,
        pes,
        steps,
        paper,
    }
}

const fn image(
    name: &'static str,
    mapping: &'static [&'static str],
    stride: usize,
    pes: fn(usize, usize) -> usize,
    paper: Option<[u32; 2]>,
) -> Design {
    Design {
        program: "conv2d/tiled.ure",
        stride,
        ..line(name, mapping, 16, pes, taps, paper)
    }
}

fn outputs(c: usize, _: usize) -> usize {
    c
}

fn taps(_: usize, q: usize) -> usize {
    q
}

fn all(c: usize, q: usize) -> usize {
    c + q - 1
}

fn twice(c: usize, q: usize) -> usize {
    2 * c + q - 2
}

fn spread(c: usize, q: usize) -> usize {
    2 * c + q - 2
}

/// The model of one array.
fn model(design: &Design, [h, q]: [usize; 2]) -> String {
    let (pes, steps) = ((design.pes)(design.c, q), h * (design.steps)(design.c, q));
    let throughput = design.c as f64 / steps as f64;
    let busy = 100.0 * (design.c * h * q) as f64 / (pes * steps) as f64;
    let paper = match (design.paper, q) {
        (Some([two, _]), 2) => format!(", paper {two} %"),
        (Some([_, five]), 5) => format!(", paper {five} %"),
        _ => String::new(),
    };
    format!("{pes} PEs, {steps} steps, throughput {throughput:.2}, utilisation {busy:.0} %{paper}")
}

/// For a signal with n outputs, or an image of n × n.
pub fn design(design: Design, n: usize, filter: [usize; 2]) -> Case {
    let [h, q] = filter;
    let flat = design.program.starts_with("conv1d");
    let (rows, columns) = if flat { (1, n) } else { (n, n) };
    let s = design.stride;
    let (high, wide) = (s * (rows - 1) + h, s * (columns - 1) + q);
    let (x_shape, w_shape, z_shape) = if flat {
        (vec![wide], vec![q], vec![n])
    } else {
        (vec![high, wide], vec![h, q], vec![n, n])
    };
    let mut sizes = vec![("C", n as i64), ("Q", q as i64)];
    if !flat {
        sizes.extend([("R", n as i64), ("H", h as i64)]);
    }
    let of_trial = sizes.clone();
    let filter_name = if flat {
        format!("{q} taps")
    } else {
        format!("{h} × {q}")
    };
    Case {
        name: format!("{}, {filter_name}", design.name),
        program: design.program,
        mappings: Mappings::These(design.mapping),
        sizes,
        fix: if flat { &["Q"] } else { &["H", "Q"] },
        work: Work {
            operations: 2.0 * (rows * columns * h * q) as f64,
            unit: Unit::F32,
            bytes: 4.0 * (high * wide + rows * columns) as f64,
            cells: None,
        },
        note: model(&design, filter),
        baseline: None,
        make: Box::new(move |arrays| {
            let (x, w) = (arrays.f32(2, &x_shape), arrays.f32(3, &w_shape));
            // A signal is compared in rows of some length.
            let row = if flat { columns.min(4096) } else { columns };
            let reference = {
                let (x, w) = (Arc::clone(&x), Arc::clone(&w));
                move |at: usize, all: Range<usize>, out: &mut [f64]| {
                    for (column, out) in all.zip(out) {
                        let (r, c) = if flat {
                            (0, at * row + column)
                        } else {
                            (at, column)
                        };
                        *out = (0..h * q)
                            .map(|tap| {
                                x.get((s * r + tap / q) * wide + s * c + tap % q) * w.get(tap)
                            })
                            .sum();
                    }
                }
            };
            let shape = [rows * columns / row, row];
            let z = Output {
                name: "z",
                shape: z_shape.clone(),
                check: sampled(shape, tolerance(h * q, Unit::F32), reference),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_is_that_of_the_paper() {
        // Table 4, at 16 outputs and 5 taps.
        let text = |n: usize| {
            let design = Design { c: 16, ..LINES[n] };
            model(&design, [1, 5])
        };
        assert!(
            text(0).starts_with("20 PEs, 5 steps, throughput 3.20, utilisation 80 %, paper 147 %")
        );
        assert!(text(1).starts_with("5 PEs, 20 steps, throughput 0.80, utilisation 80 %"));
        assert!(text(4).starts_with("16 PEs, 35 steps, throughput 0.46, utilisation 14 %"));
        assert!(text(5).starts_with("16 PEs, 5 steps, throughput 3.20, utilisation 100 %"));
        assert!(model(&IMAGES[2], [5, 5]).starts_with("35 PEs, 25 steps"));
    }
}
