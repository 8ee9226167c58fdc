//! Lesson 4: write a mapping for a machine, and measure it.
//!
//! One system, a 2-D convolution, and three mappings of it. All are legal and give the same values;
//! they differ in what stays in registers. Run it with `cargo run --release -p systola --example
//! 04_write_a_mapping`.

use std::error::Error;

use ndarray::Array2;
use systola::rt::timing::Repeats;
use systola::{Compiled, CpuOptions, Fix, RunOptions, View, ViewMut, compile, cpu};

/// The system of `gallery/conv2d/core.ure`.
const SYSTEM: &str = "
system conv2d(R, C, H, Q) where R >= 1, C >= 1, H >= 1, Q >= 1 {
  input x[R + H - 1, C + Q - 1]: f32;
  input w[H, Q]: f32;
  index r in 0..R, c in 0..C;
  var Z: f32 reorderable = reduce(+, p in 0..H, q in 0..Q, x[r + p, c + q] * w[p, q]);
  output z[R, C]: f32 = Z at [r, c];
}
";

/// A block is a row, as wide as the image: the values carried from step to step do not fit into
/// registers.
const WIDE: &str = "
mapping wide of conv2d {
  block = r;
  lane = c;
  time = (q, p);
  sum Z along (p, q);
}
";

/// A block is one vector of sums. They stay in a register, but each input is loaded for every tap.
const NARROW: &str = "
mapping narrow of conv2d {
  tile c by L as (bc, cc);
  block = (r, bc);
  lane = cc;
  time = (q, p);
  sum Z along (p, q);
}
";

/// A block is a tile of four rows and two vectors: eight registers of sums. A step works on all of
/// them, and adjacent rows share their inputs: each loaded element is used by several rows.
const ROWS: &str = "
mapping rows of conv2d {
  tile r by 4 as (br, rr);
  tile c by 2*L as (bc, cc);
  block = (br, bc);
  lane = cc % L;
  reg = (rr, cc / L);
  time = (q, p);
  sum Z along (p, q);
}
";

const NAMES: [&str; 3] = ["wide", "narrow", "rows"];

fn main() -> Result<(), Box<dyn Error>> {
    let text = [SYSTEM, WIDE, NARROW, ROWS].concat();
    let module = systola::load(&text)?;
    let (rows, columns, taps) = (720, 1283, 5);
    let sizes = [
        ("R", rows as i64),
        ("C", columns as i64),
        ("H", taps as i64),
        ("Q", taps as i64),
    ];
    let x = Array2::from_shape_fn((rows + taps - 1, columns + taps - 1), |(r, c)| {
        ((r * 13 + c * 7) % 32) as f32 / 16.0 - 1.0
    });
    let w = Array2::from_shape_fn((taps, taps), |(p, q)| 1.0 / (1 + p + 2 * q) as f32);
    let expect = plain(&x, &w, rows, columns);

    // The taps become constants, so that their loops can be unrolled; rows and columns remain
    // parameters.
    let options = CpuOptions {
        fix: Fix::Names(vec!["H".to_string(), "Q".to_string()]),
        ..CpuOptions::from_env()?
    };
    for name in NAMES {
        let kernel = compile(&module, name, &sizes, &options)?;
        let mut z = Array2::<f32>::zeros((rows, columns));
        let seconds = time(&kernel, &sizes, &x, &w, &mut z)?;
        let apart = (&z - &expect).mapv(f32::abs);
        assert!(apart.iter().all(|d| *d < 1e-4), "{name} is wrong");
        println!(
            "{name:>8}: {:6.2} ms, {:5.1} Gflop/s",
            seconds * 1e3,
            2.0 * (rows * columns * taps * taps) as f64 / seconds / 1e9
        );
    }
    Ok(())
}

/// On one thread; the fastest of several runs.
fn time(
    kernel: &Compiled,
    sizes: &[(&str, i64)],
    x: &Array2<f32>,
    w: &Array2<f32>,
    z: &mut Array2<f32>,
) -> Result<f64, cpu::Error> {
    let timing = kernel.time(
        sizes,
        &[("x", View::from(x)), ("w", View::from(w))],
        &mut [("z", ViewMut::from(z))],
        &RunOptions { threads: 1 },
        Repeats::default(),
    )?;
    Ok(timing.min())
}

fn plain(x: &Array2<f32>, w: &Array2<f32>, rows: usize, columns: usize) -> Array2<f32> {
    Array2::from_shape_fn((rows, columns), |(r, c)| {
        let taps = w.indexed_iter();
        taps.map(|((p, q), w)| x[[r + p, c + q]] * w).sum()
    })
}
