//! Sums of products over a window.

use super::{Reference, SINGLE};
use crate::tensor::{Arrays, Params, Rng, Tensor};

pub fn references() -> Vec<Reference> {
    let conv1d = |file, system, stride2: bool| Reference {
        file,
        system,
        sizes: &[&[1, 1], &[1, 6], &[7, 1], &[13, 3], &[3, 8]],
        inputs: if stride2 {
            inputs_1d_stride2
        } else {
            inputs_1d
        },
        outputs: if stride2 { conv1d_stride2 } else { conv1d },
        tolerance: SINGLE,
    };
    let conv2d = |file, system, stride2: bool| Reference {
        file,
        system,
        sizes: &[
            &[1, 1, 1, 1],
            &[3, 5, 2, 3],
            &[2, 4, 3, 5],
            &[5, 3, 1, 4],
            &[1, 7, 4, 1],
        ],
        inputs: if stride2 {
            inputs_2d_stride2
        } else {
            inputs_2d
        },
        outputs: if stride2 { conv2d_stride2 } else { conv2d },
        tolerance: SINGLE,
    };
    let same = |system| Reference {
        file: "conv2d/same.ure",
        system,
        sizes: &[
            &[1, 1, 1, 1],
            &[3, 5, 2, 3],
            &[2, 4, 3, 5],
            &[5, 3, 1, 4],
            &[1, 7, 4, 1],
        ],
        inputs: |p, rng| {
            let [r, c, h, q] = p.get(["R", "C", "H", "Q"]);
            Arrays::new()
                .with("x", rng.floats([r, c]))
                .with("w", rng.floats([h, q]))
        },
        outputs: centred,
        tolerance: SINGLE,
    };
    vec![
        same("same"),
        same("same64"),
        conv1d(
            "convolution/conv1d_antidiagonal.ure",
            "conv1d_antidiagonal",
            false,
        ),
        conv1d(
            "convolution/conv1d_input_broadcast.ure",
            "conv1d_input_broadcast",
            false,
        ),
        conv1d(
            "convolution/conv1d_two_speed.ure",
            "conv1d_two_speed",
            false,
        ),
        conv1d(
            "convolution/conv1d_counterflow.ure",
            "conv1d_counterflow",
            false,
        ),
        conv1d("convolution/conv1d_stride2.ure", "conv1d_stride2", true),
        conv1d("conv1d/paper.ure", "conv1d_xs", false),
        conv1d("conv1d/paper.ure", "conv1d_xb", false),
        conv1d("conv1d/paper.ure", "conv1d_xf_down", false),
        conv1d("conv1d/paper.ure", "conv1d_xf_up", false),
        conv1d("conv1d/paper.ure", "conv1d_x2", true),
        conv1d("conv1d/core.ure", "conv1d", false),
        conv1d("conv1d/tiled.ure", "conv1d", false),
        conv1d("conv1d/tiled.ure", "conv1d_stride2", true),
        conv1d("conv1d/table1.ure", "conv1d", false),
        Reference {
            file: "conv1d/digits.ure",
            system: "conv1d_digits",
            sizes: &[&[1, 1], &[5, 2], &[17, 1], &[130, 2]],
            inputs: |p, rng| {
                let [c, a] = p.get(["C", "A"]);
                Arrays::new()
                    .with("x", rng.floats([c + 16 * a - 1]))
                    .with("w", rng.floats([a, 16]))
            },
            outputs: |p, arrays| {
                let [c, a] = p.get(["C", "A"]);
                // Row by row, the digits are the number of the tap.
                let (x, w) = (&arrays.floats("x").data, &arrays.floats("w").data);
                let z = |[c]: [usize; 1]| (0..16 * a).map(|q| x[c + q] * w[q]).sum::<f64>();
                Arrays::new().with("z", Tensor::from_fn([c], z))
            },
            tolerance: SINGLE,
        },
        conv2d("conv2d/conv2d.ure", "conv2d", false),
        conv2d("conv2d/conv2d.ure", "conv2d_stride2", true),
        conv2d("conv2d/core.ure", "conv2d", false),
        conv2d("conv2d/tiled.ure", "conv2d", false),
        conv2d("conv2d/tiled.ure", "conv2d_stride2", true),
        Reference {
            file: "convolution/conv2d_row.ure",
            system: "conv2d_row",
            sizes: &[&[1, 1, 1], &[6, 1, 4], &[3, 5, 1], &[7, 2, 3]],
            inputs: |p, rng| {
                let [c, k, q] = p.get(["C", "K", "Q"]);
                Arrays::new()
                    .with("x", rng.floats([k, c + q - 1]))
                    .with("w", rng.floats([k, q]))
            },
            outputs: |p, arrays| {
                let [c, k, q] = p.get(["C", "K", "Q"]);
                let z = correlate(arrays, [1, c], [k, q], 1);
                Arrays::new().with("z", Tensor::from_fn([c], |[c]| z[[0, c]]))
            },
            tolerance: SINGLE,
        },
        Reference {
            file: "convolution/cnn_layer.ure",
            system: "cnn_layer",
            sizes: &[&[1, 1, 1, 1], &[3, 1, 2, 2], &[1, 5, 3, 1], &[4, 3, 1, 5]],
            inputs: |p, rng| {
                let [o, s, c, k] = p.get(["O", "S", "C", "K"]);
                Arrays::new()
                    .with("img", rng.floats([c, s + k - 1]))
                    .with("w", rng.floats([o, c, k]))
            },
            outputs: cnn_layer,
            tolerance: SINGLE,
        },
    ]
}

fn inputs_1d(p: &Params, rng: &mut Rng) -> Arrays {
    let [c, q] = p.get(["C", "Q"]);
    Arrays::new()
        .with("x", rng.floats([c + q - 1]))
        .with("w", rng.floats([q]))
}

fn inputs_1d_stride2(p: &Params, rng: &mut Rng) -> Arrays {
    let [c, q] = p.get(["C", "Q"]);
    Arrays::new()
        .with("x", rng.floats([2 * c + q - 2]))
        .with("w", rng.floats([q]))
}

fn conv1d(p: &Params, arrays: &Arrays) -> Arrays {
    strided_1d(p, arrays, 1)
}

fn conv1d_stride2(p: &Params, arrays: &Arrays) -> Arrays {
    strided_1d(p, arrays, 2)
}

fn strided_1d(p: &Params, arrays: &Arrays, stride: usize) -> Arrays {
    let [n, taps] = p.get(["C", "Q"]);
    let (x, w) = (arrays.floats("x"), arrays.floats("w"));
    let z = Tensor::from_fn([n], |[c]| {
        (0..taps).map(|q| x[[stride * c + q]] * w[[q]]).sum::<f64>()
    });
    Arrays::new().with("z", z)
}

fn inputs_2d(p: &Params, rng: &mut Rng) -> Arrays {
    let [r, c, h, q] = p.get(["R", "C", "H", "Q"]);
    Arrays::new()
        .with("x", rng.floats([r + h - 1, c + q - 1]))
        .with("w", rng.floats([h, q]))
}

fn inputs_2d_stride2(p: &Params, rng: &mut Rng) -> Arrays {
    let [r, c, h, q] = p.get(["R", "C", "H", "Q"]);
    Arrays::new()
        .with("x", rng.floats([2 * r + h - 2, 2 * c + q - 2]))
        .with("w", rng.floats([h, q]))
}

/// As large as the image, which is zero outside.
fn centred(p: &Params, arrays: &Arrays) -> Arrays {
    let [rows, columns, h, q] = p.get(["R", "C", "H", "Q"]);
    let (x, w) = (&arrays.floats("x").data, &arrays.floats("w").data);
    let z = |[r, c]: [usize; 2]| {
        let mut sum = 0.0;
        for (k, weight) in w.iter().enumerate() {
            let (row, column) = (r + k / q, c + k % q);
            let inside =
                (h / 2..rows + h / 2).contains(&row) && (q / 2..columns + q / 2).contains(&column);
            if inside {
                sum += x[(row - h / 2) * columns + column - q / 2] * weight;
            }
        }
        sum
    };
    Arrays::new().with("z", Tensor::from_fn([rows, columns], z))
}

fn conv2d(p: &Params, arrays: &Arrays) -> Arrays {
    let [r, c, h, q] = p.get(["R", "C", "H", "Q"]);
    Arrays::new().with("z", correlate(arrays, [r, c], [h, q], 1))
}

fn conv2d_stride2(p: &Params, arrays: &Arrays) -> Arrays {
    let [r, c, h, q] = p.get(["R", "C", "H", "Q"]);
    Arrays::new().with("z", correlate(arrays, [r, c], [h, q], 2))
}

/// z(r, c) = Σ x(S r + p, S c + q) w(p, q).
fn correlate(arrays: &Arrays, size: [usize; 2], filter: [usize; 2], stride: usize) -> Tensor<f64> {
    let (x, w) = (arrays.floats("x"), arrays.floats("w"));
    Tensor::from_fn(size, |[r, c]| {
        let mut sum = 0.0;
        for p in 0..filter[0] {
            for q in 0..filter[1] {
                sum += x[[stride * r + p, stride * c + q]] * w[[p, q]];
            }
        }
        sum
    })
}

fn cnn_layer(p: &Params, arrays: &Arrays) -> Arrays {
    let [outs, positions, channels, taps] = p.get(["O", "S", "C", "K"]);
    let (img, w) = (arrays.floats("img"), arrays.floats("w"));
    let y = Tensor::from_fn([outs, positions], |[o, x]| {
        let mut sum = 0.0;
        for c in 0..channels {
            for k in 0..taps {
                sum += img[[c, x + k]] * w[[o, c, k]];
            }
        }
        sum
    });
    Arrays::new().with("y", y)
}
