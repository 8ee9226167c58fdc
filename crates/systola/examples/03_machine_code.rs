//! Lesson 3: from a mapping to machine code, on slices and on arrays of the crate `ndarray`.
//!
//! First the simple way: a `Kernel` chooses a mapping if none is named, compiles it at the first
//! call and takes the sizes from the shapes. Then the same step by step: a mapping is compiled once,
//! by the C compiler of this machine, and then runs as often as wanted on arrays in place. Run it with `cargo run --release -p systola --example 03_machine_code`.

use std::error::Error;

use ndarray::{Array2, Axis, Slice};
use systola::rt;
use systola::{CpuOptions, Kernel, RunOptions, View, ViewMut, compile, cpu};

/// Differences of neighbours in each row. A block is four vectors of a row: L is the lanes of the
/// machine.
const PROGRAM: &str = "
system edges(R, C) where R >= 1, C >= 1 {
  input x[R, C + 1]: f32;
  index r in 0..R, c in 0..C;
  var E: f32 = abs(x[r, c + 1] - x[r, c]);
  output e[R, C]: f32 = E at [r, c];
}
mapping rows of edges {
  tile c by 4*L as (bc, cc);
  block = (r, bc);
  lane = cc % L;
  reg = cc / L;
  time = 0;
}
";

fn main() -> Result<(), Box<dyn Error>> {
    // The simple way: arguments by name, sizes from shapes.
    let simple = Kernel::builder().text(PROGRAM).mapping("rows").build()?;
    let small = Array2::from_shape_fn((2, 4), |(r, c)| (r + c * c) as f32);
    let mut steps = Array2::<f32>::zeros((2, 3));
    simple.input("x", &small).output("e", &mut steps).run()?;
    assert_eq!(steps.row(0).to_vec(), [1.0, 3.0, 5.0]);

    // Step by step.
    let module = systola::load(PROGRAM)?;

    // As the environment says: SYSTOLA_CC, SYSTOLA_SIMD, SYSTOLA_CACHE. A kernel that is in the
    // cache is only loaded.
    let options = CpuOptions::from_env()?;
    let kernel = compile(&module, "rows", &[("R", 2), ("C", 3)], &options)?;
    println!(
        "{} lanes of {}, {} lines of C, {:?}",
        kernel.program().kernels[0].lanes,
        options.simd.name(),
        kernel.source.lines().count(),
        kernel.loaded().origin()
    );

    // On slices, with their shape. Arrays are given by name.
    let x = [1.0f32, 4.0, 2.0, 2.0, 0.0, 5.0, 5.0, 6.0];
    let mut e = [0.0f32; 6];
    kernel.run(
        &[("R", 2), ("C", 3)],
        &[("x", View::new(&x, &[2, 4])?)],
        &mut [("e", ViewMut::new(&mut e, &[2, 3])?)],
        &RunOptions::default(),
    )?;
    assert_eq!(e, [3.0, 2.0, 0.0, 5.0, 0.0, 1.0]);

    // The same kernel at other sizes, many times, on ndarray. This array is row-major and is used
    // in place.
    let image = Array2::from_shape_fn((480, 641), |(r, c)| ((r * 31 + c * 17) % 256) as f32);
    let mut edges = Array2::<f32>::zeros((480, 640));
    let sizes = [("R", 480), ("C", 640)];
    let mut fastest = f64::INFINITY;
    for _ in 0..20 {
        let stats = kernel.run(
            &sizes,
            &[("x", View::from(&image))],
            &mut [("e", ViewMut::from(&mut edges))],
            &RunOptions { threads: 1 },
        )?;
        assert_eq!(stats.packed_bytes, 0);
        fastest = fastest.min(stats.kernel_seconds);
    }
    let right = image.slice_axis(Axis(1), Slice::from(1..));
    let left = image.slice_axis(Axis(1), Slice::from(..-1));
    let by_ndarray = (&right - &left).mapv(f32::abs);
    assert_eq!(edges, by_ndarray);
    println!("480 x 640: {:.0} µs, the fastest of 20", fastest * 1e6);

    // Any view will do. One that is not dense is packed first, an output is scattered back.
    let wide = Array2::from_shape_fn((641, 480), |(c, r)| image[[r, c]]);
    let mut frame = Array2::<f32>::zeros((480, 642));
    let inside = Slice::from(1..641);
    let stats = kernel.run(
        &sizes,
        &[("x", View::from(wide.t()))],
        &mut [("e", ViewMut::from(frame.slice_axis_mut(Axis(1), inside)))],
        &RunOptions::default(),
    )?;
    assert_eq!(frame.slice_axis(Axis(1), inside), by_ndarray);
    println!("a transposed view: {} bytes packed", stats.packed_bytes);

    // Errors are values with the facts, and nothing has run then.
    let mut small = Array2::<f32>::zeros((480, 639));
    let refused = kernel.run(
        &sizes,
        &[("x", View::from(&image))],
        &mut [("e", ViewMut::from(&mut small))],
        &RunOptions::default(),
    );
    match refused {
        Err(cpu::Error::Runtime(rt::Error::WrongShape {
            name,
            expected,
            got,
        })) => println!("refused: `{name}` must be {expected:?}, not {got:?}"),
        other => return Err(format!("a wrong shape gave {other:?}").into()),
    }
    match compile(&module, "columns", &[], &options) {
        Err(cpu::Error::Refused(errors)) => println!("refused: {}", errors[0]),
        other => return Err(format!("a mapping that is not there gave {other:?}").into()),
    }
    Ok(())
}
