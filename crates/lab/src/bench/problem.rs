//! The timed problems: programs of the gallery with sizes, inputs and expected results.

use systola::CpuOptions;
use systola::interp::{Data, Tensor};
use systola::rt::HostArray;
use systola_cli::source::Failure;

use super::expected::Expected;
use super::family::Family;
use super::reference::{self, Scoring};

/// Elements of an input.
#[derive(Clone, Debug)]
pub enum Values {
    F32(Vec<f32>),
    U8(Vec<u8>),
    I16(Vec<i16>),
}

#[derive(Clone, Debug)]
pub struct Input {
    pub name: &'static str,
    pub shape: Vec<usize>,
    /// The baselines take batches only: one pair is a batch of one.
    pub baseline_shape: Vec<usize>,
    pub values: Values,
}

impl Input {
    pub fn new(name: &'static str, shape: &[usize], values: Values) -> Input {
        Input {
            name,
            shape: shape.to_vec(),
            baseline_shape: shape.to_vec(),
            values,
        }
    }

    /// For our own run: aligned for vectors.
    pub fn aligned(&self) -> Result<HostArray, systola::rt::Error> {
        match &self.values {
            Values::F32(v) => HostArray::from_slice(v, &self.shape),
            Values::U8(v) => HostArray::from_slice(v, &self.shape),
            Values::I16(v) => HostArray::from_slice(v, &self.shape),
        }
    }

    /// For a file.
    pub fn tensor(&self) -> Tensor {
        Tensor {
            lo: vec![0; self.baseline_shape.len()],
            shape: self.baseline_shape.clone(),
            data: match &self.values {
                Values::F32(v) => Data::F32(v.clone()),
                Values::U8(v) => Data::U8(v.clone()),
                Values::I16(v) => Data::I16(v.clone()),
            },
        }
    }
}

/// One row of the table, or two: with one thread and with all.
#[derive(Clone, Debug)]
pub struct Problem {
    pub family: Family,
    pub name: String,
    /// Its file in the folder of its family.
    pub program: &'static str,
    /// Its mappings; the fastest is shown.
    pub mappings: Vec<String>,
    pub sizes: Vec<(&'static str, i64)>,
    /// The sizes that become constants in the kernel.
    pub fix: &'static [&'static str],
    pub inputs: Vec<Input>,
    pub output: &'static str,
    pub expected: Expected,
    pub work: Work,
}

impl Problem {
    /// Sweeps over a field.
    pub fn steps(&self) -> i64 {
        let steps = self.sizes.iter().find(|(name, _)| *name == "T");
        steps.map_or(1, |(_, steps)| *steps)
    }
}

/// The minimum work of a problem, however it is solved.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct Work {
    /// Multiplications and additions, or cells of a table.
    pub operations: f64,
    /// Bytes that must be read and written at least once.
    pub bytes: f64,
}

/// The costs of gaps in gallery/string/smith_waterman_batch.ure.
pub const GAP_OPEN: i32 = 11;
pub const GAP_EXTEND: i32 = 1;

/// The size of the problems.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// The sizes of the published table.
    Full,
    /// Tiny, to test the command itself.
    Small,
}

impl Scale {
    pub fn of(small: bool) -> Scale {
        if small { Scale::Small } else { Scale::Full }
    }

    /// The time for which something is repeated.
    pub fn seconds(self) -> f64 {
        match self {
            Scale::Full => 0.5,
            Scale::Small => 0.0,
        }
    }

    /// How C is compiled: small problems are solved once.
    pub fn compiled_by(self, options: CpuOptions) -> CpuOptions {
        match self {
            Scale::Full => options,
            Scale::Small => options.quick(),
        }
    }

    /// MiB of a copy that measures memory. Those of the published table have the size of an image
    /// of 4096².
    pub const fn copy_mib(self) -> usize {
        self.pick(64, 4)
    }

    /// MiB of the largest copy with which the limits of the machine are searched.
    pub const fn largest_copy_mib(self) -> usize {
        self.pick(256, 4)
    }

    pub const fn pick(self, full: usize, small: usize) -> usize {
        match self {
            Scale::Full => full,
            Scale::Small => small,
        }
    }
}

/// A problem before its inputs are made, which takes a moment.
pub type Make = Box<dyn Fn() -> Result<Problem, Failure>>;

/// The problems of a family.
pub fn problems(family: Family, scale: Scale) -> Vec<(String, Make)> {
    let mut list: Vec<(String, Make)> = Vec::new();
    match family {
        Family::Conv1d => {
            let n = scale.pick(1 << 24, 10_000);
            for taps in [5, 64] {
                let name = format!("{} samples, {taps} taps", short(n));
                list.push((
                    name.clone(),
                    Box::new(move || Ok(conv1d(name.clone(), n, taps, "taps"))),
                ));
            }
        }
        Family::Conv2d => {
            let n = scale.pick(4096, 100);
            for k in [3, 5, 7, 9, 15] {
                let name = format!("{n}², {k} × {k}");
                list.push((
                    name.clone(),
                    Box::new(move || Ok(conv2d(name.clone(), n, k))),
                ));
            }
        }
        Family::Matmul => {
            let n = scale.pick(1024, 100);
            let name = format!("{n}³");
            list.push((name.clone(), Box::new(move || Ok(matmul(name.clone(), n)))));
        }
        Family::EditDistance => {
            let n = scale.pick(8192, 100);
            let name = format!("one pair of {n}");
            list.push((
                name.clone(),
                Box::new(move || Ok(edit_distance(name.clone(), None, n))),
            ));
            let (pairs, n) = (scale.pick(1024, 100), scale.pick(256, 30));
            let name = format!("{pairs} pairs of {n}");
            list.push((
                name.clone(),
                Box::new(move || Ok(edit_distance(name.clone(), Some(pairs), n))),
            ));
        }
        Family::SmithWaterman => {
            let (pairs, n) = (scale.pick(1024, 100), scale.pick(256, 30));
            let name = format!("{pairs} pairs of {n}");
            list.push((
                name.clone(),
                Box::new(move || Ok(smith_waterman(name.clone(), pairs, n))),
            ));
        }
        Family::Designs | Family::Stencil2d | Family::Stencil3d => {}
    }
    list
}

/// Powers of two are written as such.
fn short(n: usize) -> String {
    if n.is_power_of_two() {
        format!("2^{}", n.trailing_zeros())
    } else {
        n.to_string()
    }
}

/// A sum of `n` products of numbers up to 1 is of the size of √n, and its rounding errors are far
/// below n of the last place of 1; the error of a missing or wrong product is far above.
fn tolerance(n: usize) -> f64 {
    2.0 * n as f64 * f64::from(f32::EPSILON)
}

pub fn conv1d(name: String, n: usize, taps: usize, mapping: &'static str) -> Problem {
    let mut random = Random(1);
    let x = random.floats(n + taps - 1);
    let w = random.floats(taps);
    // Long filters have their taps in two digits.
    let long = mapping == "taps" && taps.is_multiple_of(16);
    let (program, sizes, fix, w_shape): (_, _, &[&str], _) = if long {
        let sizes = vec![("C", n as i64), ("A", taps as i64 / 16)];
        ("conv1d/digits.ure", sizes, &["A"], vec![taps / 16, 16])
    } else {
        let sizes = vec![("C", n as i64), ("Q", taps as i64)];
        ("conv1d/core.ure", sizes, &["Q"], vec![taps])
    };
    Problem {
        family: Family::Conv1d,
        name,
        program,
        mappings: vec![mapping.to_string()],
        sizes,
        fix,
        output: "z",
        expected: Expected {
            shape: vec![n],
            values: reference::conv1d(&x, &w),
            tolerance: tolerance(taps),
        },
        work: Work {
            operations: 2.0 * (n * taps) as f64,
            bytes: 4.0 * (2 * n + 2 * taps) as f64,
        },
        inputs: vec![
            Input::new("x", &[n + taps - 1], Values::F32(x)),
            Input::new("w", &w_shape, Values::F32(w)),
        ],
    }
}

fn conv2d(name: String, n: usize, k: usize) -> Problem {
    let mut random = Random(2);
    let wide = n + k - 1;
    let x = random.floats(wide * wide);
    // Random weights, so that the filter is not separable.
    let w = random.floats(k * k);
    Problem {
        family: Family::Conv2d,
        name,
        program: "conv2d/core.ure",
        // Code for more taps would not fit into the instruction cache.
        mappings: if k <= 9 {
            vec!["small".to_string(), "tiles".to_string()]
        } else {
            vec!["tiles".to_string()]
        },
        sizes: vec![
            ("R", n as i64),
            ("C", n as i64),
            ("H", k as i64),
            ("Q", k as i64),
        ],
        fix: &["H", "Q"],
        output: "z",
        expected: Expected {
            shape: vec![n, n],
            values: reference::conv2d(&x, &w, [n, n], [k, k]),
            tolerance: tolerance(k * k),
        },
        work: Work {
            operations: 2.0 * (n * n * k * k) as f64,
            bytes: 4.0 * (wide * wide + n * n) as f64,
        },
        inputs: vec![
            Input::new("x", &[wide, wide], Values::F32(x)),
            Input::new("w", &[k, k], Values::F32(w)),
        ],
    }
}

fn matmul(name: String, n: usize) -> Problem {
    let mut random = Random(3);
    let (a, b) = (random.floats(n * n), random.floats(n * n));
    Problem {
        family: Family::Matmul,
        name,
        program: "linear-algebra/matmul_core.ure",
        mappings: vec!["panel".to_string()],
        sizes: vec![("N", n as i64), ("M", n as i64), ("K", n as i64)],
        fix: &[],
        output: "c",
        expected: Expected {
            shape: vec![n, n],
            values: reference::matmul(&a, &b, n, n),
            tolerance: tolerance(n),
        },
        work: Work {
            operations: 2.0 * (n * n * n) as f64,
            bytes: 4.0 * (3 * n * n) as f64,
        },
        inputs: vec![
            Input::new("a", &[n, n], Values::F32(a)),
            Input::new("b", &[n, n], Values::F32(b)),
        ],
    }
}

/// Strings of four letters; `pairs` of them, or one pair and no batch.
fn edit_distance(name: String, pairs: Option<usize>, n: usize) -> Problem {
    let mut random = Random(4);
    let count = pairs.unwrap_or(1);
    let (a, b) = (random.letters(count * n, 4), random.letters(count * n, 4));
    let values = reference::edit_distance(&a, &b, n, n);
    let mut sizes = vec![("N", n as i64), ("M", n as i64)];
    let (program, mapping, shape) = match pairs {
        None => ("string/edit_distance_strips.ure", "strips", vec![n]),
        Some(pairs) => {
            sizes.push(("P", pairs as i64));
            ("string/edit_distance_batch.ure", "lanes", vec![pairs, n])
        }
    };
    let input = |name, letters| Input {
        name,
        shape: shape.clone(),
        baseline_shape: vec![count, n],
        values: Values::U8(letters),
    };
    Problem {
        family: Family::EditDistance,
        name,
        program,
        mappings: vec![mapping.to_string()],
        sizes,
        fix: &[],
        inputs: vec![input("a", a), input("b", b)],
        output: "d",
        expected: Expected {
            shape: vec![count],
            values,
            tolerance: 0.0,
        },
        work: Work {
            operations: (count * n * n) as f64,
            bytes: (2 * count * n) as f64,
        },
    }
}

fn smith_waterman(name: String, pairs: usize, n: usize) -> Problem {
    const LETTERS: usize = 20;
    let mut random = Random(5);
    let (a, b) = (
        random.letters(pairs * n, LETTERS as u64),
        random.letters(pairs * n, LETTERS as u64),
    );
    // Like the matrices for proteins: symmetric, a letter is worth 4 to 11 against itself and -4 to
    // 1 against others.
    let mut sub = vec![0; LETTERS * LETTERS];
    for i in 0..LETTERS {
        sub[i * LETTERS + i] = 4 + random.below(8) as i16;
        for j in 0..i {
            let score = random.below(6) as i16 - 4;
            sub[i * LETTERS + j] = score;
            sub[j * LETTERS + i] = score;
        }
    }
    let scoring = Scoring {
        substitution: &sub,
        letters: LETTERS,
        open: GAP_OPEN,
        extend: GAP_EXTEND,
    };
    let values = reference::smith_waterman(&a, &b, n, n, scoring);
    Problem {
        family: Family::SmithWaterman,
        name,
        program: "string/smith_waterman_batch.ure",
        mappings: vec!["lanes".to_string()],
        sizes: vec![
            ("P", pairs as i64),
            ("N", n as i64),
            ("M", n as i64),
            ("S", LETTERS as i64),
        ],
        fix: &["S"],
        output: "score",
        expected: Expected {
            shape: vec![pairs],
            values,
            tolerance: 0.0,
        },
        work: Work {
            operations: (pairs * n * n) as f64,
            bytes: (2 * pairs * n) as f64,
        },
        inputs: vec![
            Input::new("a", &[pairs, n], Values::U8(a)),
            Input::new("b", &[pairs, n], Values::U8(b)),
            Input::new("sub", &[LETTERS, LETTERS], Values::I16(sub)),
        ],
    }
}

/// SplitMix64: the same inputs in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        (self.next() >> 32) % n
    }

    /// Between −1 and 1.
    fn floats(&mut self, n: usize) -> Vec<f32> {
        let step = 1.0 / (1 << 23) as f32;
        (0..n)
            .map(|_| (self.next() >> 40) as f32 * step - 1.0)
            .collect()
    }

    fn letters(&mut self, n: usize, alphabet: u64) -> Vec<u8> {
        (0..n).map(|_| self.below(alphabet) as u8).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_tap_is_beyond_the_tolerance() {
        let problem = conv1d(String::new(), 2000, 64, "taps");
        let (Values::F32(x), Values::F32(w)) =
            (&problem.inputs[0].values, &problem.inputs[1].values)
        else {
            panic!("both are floats");
        };
        let mut w = w.clone();
        w[17] = 0.0;
        let wrong = reference::conv1d(x, &w);
        assert!(problem.expected.fault(&[2000], &wrong).is_some());
        let rounded: Vec<f64> = problem
            .expected
            .values
            .iter()
            .map(|z| f64::from(*z as f32))
            .collect();
        assert_eq!(problem.expected.fault(&[2000], &rounded), None);
    }
}
