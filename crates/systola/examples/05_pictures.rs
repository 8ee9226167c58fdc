//! Lesson 5: stencils in a few lines, and pictures of what they do.
//!
//! The programs of `stencils/` with interesting pictures: heat that spreads, a wave in a box, the
//! Game of Life, and two substances that react. Run it with `cargo run --release -p systola
//! --example 05_pictures`; it prints the folder of the pictures, which can be given as an argument.

use std::error::Error;
use std::path::Path;

use ndarray::Array2;
use systola::ir::system::Module;
use systola::{CpuOptions, RunOptions, View, ViewMut, compile, load};

const SIDE: usize = 200;

type Field = Array2<f32>;
type Picture = Array2<[u8; 3]>;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = match std::env::args_os().nth(1) {
        Some(folder) => folder.into(),
        None => std::env::temp_dir().join("systola-pictures"),
    };
    std::fs::create_dir_all(&folder)?;
    heat(&folder)?;
    wave(&folder)?;
    life(&folder)?;
    gray_scott(&folder)?;
    println!("the pictures are in {}", folder.display());
    Ok(())
}

/// Cells at the boundary keep their temperature: the top is hot, and the left side from the middle
/// on.
fn heat(folder: &Path) -> Result<(), Box<dyn Error>> {
    let start = Array2::from_shape_fn((SIDE, SIDE), |(y, x)| {
        let is_hot = y == 0 || (x == 0 && y > SIDE / 2);
        if is_hot { 1.0f32 } else { 0.0 }
    });
    let program = Stencil::new("heat", include_str!("../../../stencils/heat.ure"))?;
    let mut frames = Vec::new();
    for steps in [10, 300, 3000] {
        let mut after = Array2::zeros((SIDE, SIDE));
        let inputs = [("u", View::from(&start))];
        program.run(steps, &inputs, &mut [("u'", ViewMut::from(&mut after))])?;
        assert!(after.iter().all(|u| (0.0..=1.0).contains(u)), "too hot");
        frames.push(after.mapv(|u: f32| glow(u.sqrt())));
    }
    save(folder, "heat", &frames)
}

/// A drop falls in.
fn wave(folder: &Path) -> Result<(), Box<dyn Error>> {
    let start = Array2::from_shape_fn((SIDE, SIDE), |(y, x)| {
        let (y, x) = (y as f32 - 70.0, x as f32 - 60.0);
        (-(x * x + y * y) / 40.0).exp()
    });
    let program = Stencil::new("wave", include_str!("../../../stencils/wave.ure"))?;
    let mut frames = Vec::new();
    for steps in [30, 110, 260] {
        let (u, _) = program.run_two(steps, &start, &start)?;
        assert!(u.iter().all(|u| u.abs() < 1.0), "a wave does not grow");
        frames.push(u.mapv(|u| hills(4.0 * u)));
    }
    save(folder, "wave", &frames)
}

/// A soup of cells, one of three alive, on a torus.
fn life(folder: &Path) -> Result<(), Box<dyn Error>> {
    let mut state = 7u32;
    let start = Array2::from_shape_simple_fn((SIDE, SIDE), || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        u8::from(state >> 16 & 0xff < 85)
    });
    let program = Stencil::new("life", include_str!("../../../stencils/life.ure"))?;
    let mut frames = Vec::new();
    for steps in [1, 50, 600] {
        let mut after = Array2::zeros((SIDE, SIDE));
        let inputs = [("u", View::from(&start))];
        program.run(steps, &inputs, &mut [("u'", ViewMut::from(&mut after))])?;
        assert!(after.iter().any(|u| *u == 1), "nothing lives");
        frames.push(after.mapv(|u: u8| glow(f32::from(u))));
    }
    save(folder, "life", &frames)
}

/// A few spots of the second substance in a dish full of the first.
fn gray_scott(folder: &Path) -> Result<(), Box<dyn Error>> {
    let spots = [(60, 50), (100, 110), (140, 70), (50, 150)];
    let is_spot = |y: usize, x: usize| {
        let near = |(sy, sx): &(usize, usize)| sy.abs_diff(y) < 10 && sx.abs_diff(x) < 10;
        spots.iter().any(near)
    };
    let amount = |spot: f32, else_: f32| {
        Array2::from_shape_fn(
            (SIDE, SIDE),
            |(y, x)| {
                if is_spot(y, x) { spot } else { else_ }
            },
        )
    };
    let (u, v) = (amount(0.5, 1.0), amount(0.25, 0.0));
    let program = Stencil::new(
        "gray_scott",
        include_str!("../../../stencils/gray_scott.ure"),
    )?;
    let mut frames = Vec::new();
    for steps in [300, 2000, 6000] {
        let (_, b) = program.run_two(steps, &u, &v)?;
        assert!(b.iter().any(|v| *v > 0.1), "no spot is left");
        frames.push(b.mapv(|v| glow(3.0 * v)));
    }
    save(folder, "gray_scott", &frames)
}

/// A program with its mapping for CPUs.
struct Stencil {
    module: Module,
}

impl Stencil {
    fn new(name: &str, text: &str) -> Result<Stencil, Box<dyn Error>> {
        println!("{name}");
        let module = load(text)?;
        Ok(Stencil { module })
    }

    /// The same of two fields.
    fn run_two(&self, steps: i64, u: &Field, v: &Field) -> Result<(Field, Field), Box<dyn Error>> {
        let (mut a, mut b) = (Field::zeros(u.dim()), Field::zeros(v.dim()));
        let inputs = [("u", View::from(u)), ("v", View::from(v))];
        let mut outputs = [("u'", ViewMut::from(&mut a)), ("v'", ViewMut::from(&mut b))];
        self.run(steps, &inputs, &mut outputs)?;
        Ok((a, b))
    }

    fn run(
        &self,
        steps: i64,
        inputs: &[(&str, View<'_>)],
        outputs: &mut [(&str, ViewMut<'_>)],
    ) -> Result<(), Box<dyn Error>> {
        let sizes = [("N", SIDE as i64), ("M", SIDE as i64), ("T", steps)];
        // With a periodic boundary the kernel is for these sizes only; otherwise it is cached from
        // the last time.
        let compiled = compile(&self.module, "sweep", &sizes, &CpuOptions::from_env()?)?;
        let stats = compiled.run(&sizes, inputs, outputs, &RunOptions::default())?;
        println!(
            "  {steps:>5} steps in {:7.2} ms",
            stats.kernel_seconds * 1e3
        );
        Ok(())
    }
}

/// From black over red and yellow to white.
fn glow(value: f32) -> [u8; 3] {
    let part = |from: f32| ((value * 3.0 - from).clamp(0.0, 1.0) * 255.0) as u8;
    [part(0.0), part(1.0), part(2.0)]
}

/// Blue below, white at rest, red above.
fn hills(height: f32) -> [u8; 3] {
    let fade = |by: f32| ((1.0 - by.clamp(0.0, 1.0)) * 255.0) as u8;
    [fade(-height), fade(height.abs()), fade(height)]
}

/// The frames side by side in one picture.
fn save(folder: &Path, name: &str, frames: &[Picture]) -> Result<(), Box<dyn Error>> {
    const GAP: usize = 6;
    let wide = frames.len() * (SIDE + GAP) - GAP;
    let mut pixels = vec![255u8; 3 * wide * SIDE];
    for (n, frame) in frames.iter().enumerate() {
        for ((y, x), colour) in frame.indexed_iter() {
            let at = 3 * (y * wide + n * (SIDE + GAP) + x);
            pixels[at..at + 3].copy_from_slice(colour);
        }
    }
    let path = folder.join(format!("{name}.png"));
    let file = std::io::BufWriter::new(std::fs::File::create(path)?);
    let mut encoder = png::Encoder::new(file, wide as u32, SIDE as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.write_header()?.write_image_data(&pixels)?;
    Ok(())
}
