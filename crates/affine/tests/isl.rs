//! The same questions to this crate and to isl, on random parametric sets.
//!
//! isl answers through its Python package, `islpy`, which comes compiled. `cargo xtask test` sets it
//! up and runs this test; by hand, with an interpreter that has the package:
//! `AFFINE_ISL_PYTHON=python3 cargo test -p affine --test isl -- --ignored --nocapture`.

use affine::{BasicSet, BasicSetBuilder, Constraint, Error, Int, LinExpr, Set, Space};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const N_PARAMS: usize = 2;
const N_DIMS: usize = 2;
const N_SETS: usize = 4200;

/// A small random number generator with a fixed seed (xorshift64*), so that every run uses the same
/// sets.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn range(&mut self, low: Int, high: Int) -> Int {
        low + Int::from(self.next() >> 33) % (high - low + 1)
    }

    /// Mostly 0 and 1, as in practice, sometimes up to 3.
    fn coefficient(&mut self) -> Int {
        let size = match self.range(0, 99) {
            0..55 => 0,
            55..92 => 1,
            92..98 => 2,
            _ => 3,
        };
        if self.chance(50) { size } else { -size }
    }

    fn row(&mut self, n: usize) -> Vec<Int> {
        (0..n).map(|_| self.coefficient()).collect()
    }

    fn chance(&mut self, percent: Int) -> bool {
        self.range(0, 99) < percent
    }
}

/// A conjunction and a rational point that satisfies it: `numerators / denominator`.
struct Sample {
    set: BasicSet,
    n_exists: usize,
    numerators: Vec<Int>,
    denominator: Int,
}

impl Sample {
    fn draw(random: &mut Random) -> Sample {
        match random.range(0, 99) {
            0..25 => Sample::contradicting_windows(random),
            25..40 => Sample::between_lattice_points(random),
            _ => Sample::around_a_point(random),
        }
    }

    /// Random constraints through a rational point or close to it.
    fn around_a_point(random: &mut Random) -> Sample {
        let n_exists = 1 + usize::from(random.chance(15));
        let n = N_PARAMS + N_DIMS + n_exists;
        let denominator = random.range(1, 4);
        let numerators: Vec<Int> = (0..n)
            .map(|_| random.range(-3 * denominator, 3 * denominator))
            .collect();
        let mut b = BasicSetBuilder::new(Space::new(N_PARAMS, N_DIMS));
        for _ in 0..n_exists {
            b.exists();
        }
        let at = |c: &[Int]| c.iter().zip(&numerators).map(|(a, b)| a * b).sum::<Int>();
        // The smallest constant for which the row is not negative at the point.
        let raise = |c: &[Int]| -at(c).div_euclid(denominator);
        bound_from_below(&mut b, random, raise);
        for k in 0..n_exists {
            let mut c = random.row(N_PARAMS + N_DIMS);
            let a = random.range(2, 3);
            c.resize(n, 0);
            c[N_PARAMS + N_DIMS + k] = -a;
            let e = LinExpr::new(&c, raise(&c));
            b.ge(&e, &0.into()).unwrap();
            b.le(&e, &random.range(1, 2 * a - 1).into()).unwrap();
        }
        for _ in 0..random.range(1, 4 - n_exists as Int) {
            let c = random.row(n);
            let slack = random.range(0, 3);
            b.ge(&LinExpr::new(&c, raise(&c) + slack), &0.into())
                .unwrap();
        }
        let c = random.row(n);
        if random.chance(40) && at(&c) % denominator == 0 && c.iter().any(|&v| v != 0) {
            b.eq(&LinExpr::new(&c, -at(&c) / denominator), &0.into())
                .unwrap();
        }
        Sample {
            set: b.build(),
            n_exists,
            numerators,
            denominator,
        }
    }

    /// A form that must be in two windows, modulo `m` and modulo a multiple of it, that have no
    /// residue in common.
    fn contradicting_windows(random: &mut Random) -> Sample {
        let m = random.range(2, 4);
        let first = random.range(0, m - 1);
        let width = random.range(0, m - 2);
        let other = first + width + 1 + random.range(0, m - 2 - width);
        let multiple = m * random.range(1, 3);
        let other = other + m * random.range(0, 2);
        let mut b = BasicSetBuilder::new(Space::new(N_PARAMS, N_DIMS));
        let (q, r) = (b.exists(), b.exists());
        bound_from_below(&mut b, random, |_| 0);
        let form = LinExpr::new(&random.row(N_PARAMS + N_DIMS), 0);
        // At the origin the form is 0 and the existentials make up for the residues.
        let one = form.add_scaled(-m, &q).unwrap().plus(-first).unwrap();
        b.ge(&one, &0.into()).unwrap();
        b.le(&one, &width.into()).unwrap();
        let two = form
            .add_scaled(-multiple, &r)
            .unwrap()
            .plus(-other)
            .unwrap();
        b.eq(&two, &0.into()).unwrap();
        let denominator = multiple;
        let numerators = vec![0, 0, 0, 0, -first * (multiple / m), -other];
        Sample {
            set: b.build(),
            n_exists: 2,
            numerators,
            denominator,
        }
    }

    /// A skewed and shifted copy of Pugh's polygon
    /// `27 <= 11 u + 13 v <= 45, -10 <= 7 u - 9 v <= 4`, which has no integer point, with a
    /// harmless existential.
    fn between_lattice_points(random: &mut Random) -> Sample {
        let mut b = BasicSetBuilder::new(Space::new(N_PARAMS, N_DIMS));
        let q = b.exists();
        let (su, sv) = (random.range(-4, 4), random.range(-4, 4));
        let skew = random.range(-2, 2);
        // u = x0 + a p0 + su, v = x1 + skew x0 + c p1 + sv
        let u = LinExpr::new(&[random.coefficient(), 0, 1, 0], su);
        let v = LinExpr::new(&[0, random.coefficient(), skew, 1], sv);
        let one = u.scale(11).unwrap().add_scaled(13, &v).unwrap();
        let two = u.scale(7).unwrap().add_scaled(-9, &v).unwrap();
        b.ge(&one, &27.into()).unwrap();
        b.le(&one, &45.into()).unwrap();
        b.ge(&two, &(-10).into()).unwrap();
        b.le(&two, &4.into()).unwrap();
        let window = u.add_scaled(-2, &q).unwrap();
        b.ge(&window, &0.into()).unwrap();
        b.le(&window, &1.into()).unwrap();
        // u = v = 3/2 with both parameters 0.
        let x0 = 3 - 2 * su;
        let x1 = 3 - 2 * sv - skew * x0;
        Sample {
            set: b.build(),
            n_exists: 1,
            numerators: vec![0, 0, 2 * x0, 2 * x1, 2],
            denominator: 4,
        }
    }

    fn is_rationally_non_empty(&self) -> bool {
        self.set.constraints().iter().all(|c| {
            let e = c.expr();
            let v: Int = e
                .coeffs()
                .iter()
                .zip(&self.numerators)
                .map(|(a, b)| a * b)
                .sum::<Int>()
                + e.constant_term() * self.denominator;
            match c {
                Constraint::Eq(_) => v == 0,
                Constraint::Ge(_) => v >= 0,
            }
        })
    }
}

/// Bounds each dimension from below in terms of the parameters, so that lexicographic minima exist.
/// `raise` gives the smallest constant to use.
fn bound_from_below(b: &mut BasicSetBuilder, random: &mut Random, raise: impl Fn(&[Int]) -> Int) {
    for d in 0..N_DIMS {
        let mut c = vec![0; N_PARAMS + N_DIMS];
        c[N_PARAMS + d] = 1;
        c[random.range(0, N_PARAMS as Int - 1) as usize] = random.range(-1, 1);
        let constant = raise(&c) + random.range(0, 3);
        b.ge(&LinExpr::new(&c, constant), &0.into()).unwrap();
    }
}

fn to_isl(set: &Set) -> String {
    let space = set.space();
    let params: Vec<String> = (0..space.n_params).map(|i| format!("p{i}")).collect();
    let dims: Vec<String> = (0..space.n_dims).map(|i| format!("x{i}")).collect();
    let mut parts = Vec::new();
    for piece in set.pieces() {
        let hidden: Vec<String> = (0..piece.n_exists()).map(|i| format!("e{i}")).collect();
        let names: Vec<&String> = params.iter().chain(&dims).chain(&hidden).collect();
        let show = |e: &LinExpr| {
            let mut text = e.constant_term().to_string();
            for (v, name) in e.coeffs().iter().zip(&names) {
                if *v != 0 {
                    text += &format!(" + {v}*{name}");
                }
            }
            text
        };
        let mut conditions = vec!["0 = 0".to_string()];
        for c in piece.constraints() {
            let relation = match c {
                Constraint::Eq(_) => "=",
                Constraint::Ge(_) => ">=",
            };
            conditions.push(format!("{} {relation} 0", show(c.expr())));
        }
        let body = conditions.join(" and ");
        // Known floors are declared as such: isl would have to find them.
        let declared: Vec<String> = match piece.divs().unwrap() {
            Some(divs) => divs
                .iter()
                .map(|(column, e, m)| format!("{} = floor(({})/{m})", names[*column], show(e)))
                .collect(),
            None => hidden.clone(),
        };
        parts.push(match declared.is_empty() {
            true => format!("({body})"),
            false => format!("(exists ({}: {body}))", declared.join(", ")),
        });
    }
    if parts.is_empty() {
        parts.push("1 = 0".to_string());
    }
    format!(
        "[{}] -> {{ [{}] : {} }}",
        params.join(", "),
        dims.join(", "),
        parts.join(" or ")
    )
}

/// isl in a process of its own.
struct Isl {
    process: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Isl {
    fn start() -> Isl {
        let python = std::env::var_os("AFFINE_ISL_PYTHON")
            .expect("AFFINE_ISL_PYTHON names a Python interpreter that has the package islpy");
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/isl.py");
        let mut process = Command::new(&python)
            .arg(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", python.display()));
        Isl {
            questions: process.stdin.take().expect("a pipe"),
            answers: BufReader::new(process.stdout.take().expect("a pipe")),
            process,
        }
    }

    /// Sends the fields that `isl.py` names, and returns the words of its answer.
    fn ask(&mut self, fields: &[String]) -> Vec<String> {
        writeln!(self.questions, "{}", fields.join("\t")).expect("isl reads");
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("isl answers");
        line.split_whitespace().map(str::to_string).collect()
    }

    fn end(mut self) {
        drop(self.questions);
        let status = self.process.wait().expect("isl ends");
        assert!(status.success(), "isl ended with {status}");
    }
}

/// The results of the comparisons.
#[derive(Default)]
struct Counts {
    empty: usize,
    gap: usize,
    with_two: usize,
    equal_pairs: usize,
    pieces: usize,
    inconsistent: usize,
    too_complex: usize,
    skipped: usize,
    our_time: Duration,
}

impl Counts {
    fn add(&mut self, other: &Counts) {
        self.empty += other.empty;
        self.gap += other.gap;
        self.with_two += other.with_two;
        self.equal_pairs += other.equal_pairs;
        self.pieces += other.pieces;
        self.inconsistent += other.inconsistent;
        self.too_complex += other.too_complex;
        self.skipped += other.skipped;
        self.our_time += other.our_time;
    }
}

/// Compares the answers about one set, and about it and the one before.
fn compare(isl: &mut Isl, i: usize, samples: &[Sample], counts: &mut Counts) {
    let sample = &samples[i];
    let set = Set::from(sample.set.clone());
    let before = i.checked_sub(1).map(|i| Set::from(samples[i].set.clone()));

    let clock = Instant::now();
    let is_empty = set.is_empty().unwrap();
    let first = set.project_out(1..2).unwrap();
    let second = set.project_out(0..1).unwrap();
    let params = set.params().unwrap();
    let lexmin = match set.lexmin() {
        Err(Error::TooComplex { .. }) => None,
        other => Some(other.unwrap()),
    };
    let div_form = set.div_form().unwrap();
    let is_same = div_form.is_equal(&set).unwrap();
    let equal = before.as_ref().map(|other| set.is_equal(other).unwrap());
    let difference = before.as_ref().map(|other| set.subtract(other).unwrap());
    counts.our_time += clock.elapsed();

    let text = to_isl(&set);
    assert!(sample.is_rationally_non_empty());
    assert!(is_same, "equality of {text}");
    counts.empty += usize::from(is_empty);
    counts.gap += usize::from(is_empty && sample.is_rationally_non_empty());
    counts.with_two += usize::from(sample.n_exists >= 2);
    counts.too_complex += usize::from(lexmin.is_none());
    counts.equal_pairs += usize::from(equal == Some(true));
    let results = [&first, &second, &params, &div_form];
    let pieces = |set: &Set| set.pieces().len();
    counts.pieces += results
        .into_iter()
        .chain(&lexmin)
        .map(pieces)
        .sum::<usize>();

    let shown = |set: &Option<Set>| set.as_ref().map_or_else(String::new, to_isl);
    // isl takes long for differences.
    let difference = difference.filter(|_| i.is_multiple_of(4));
    let mut fields = vec![text.clone()];
    fields.extend(results.map(to_isl));
    fields.extend([&lexmin, &before, &difference].map(shown));
    let words = isl.ask(&fields);
    assert_eq!(words.len(), fields.len(), "{words:?} about {text}");
    assert_eq!(words[0] == "empty", is_empty, "emptiness of {text}");
    if let Some(equal) = equal {
        let other = &fields[6];
        assert_eq!(words[6] == "equal", equal, "equality of {text} and {other}");
    }
    let names = [
        (1, "projection"),
        (2, "projection"),
        (3, "parameters"),
        (4, "div form"),
        (5, "lexmin"),
        (7, "difference"),
    ];
    for (n, name) in names {
        match words[n].as_str() {
            "same" => {}
            "-" => assert_eq!(fields[n], "", "{name} of {text}"),
            "gave-up" => counts.skipped += 1,
            "isl-differs" => counts.inconsistent += 1,
            word => panic!("{word}: {name} of {text}\n gives {}", fields[n]),
        }
    }
}

#[test]
#[ignore = "needs the Python package islpy, which `cargo xtask test` installs"]
fn agrees_with_isl() {
    let mut random = Random(0x5_EED0_F5E7);
    let samples: Vec<Sample> = (0..N_SETS).map(|_| Sample::draw(&mut random)).collect();
    let start = Instant::now();
    let next = AtomicUsize::new(0);
    let all = Mutex::new(Counts::default());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                let mut isl = Isl::start();
                let mut counts = Counts::default();
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    if i >= samples.len() {
                        break;
                    }
                    compare(&mut isl, i, &samples, &mut counts);
                }
                isl.end();
                all.lock().expect("no thread panicked").add(&counts);
            });
        }
    });
    let Counts {
        empty,
        gap,
        with_two,
        equal_pairs,
        pieces,
        inconsistent,
        too_complex,
        skipped,
        our_time,
    } = all.into_inner().expect("no thread panicked");
    let percent = |n: usize| 100.0 * n as f64 / N_SETS as f64;
    println!("{N_SETS} sets with {N_PARAMS} parameters and existentials");
    println!(
        "  time, and of it ours:                     {:.1?}, {our_time:.1?}",
        start.elapsed()
    );
    println!(
        "  with two existentials:                    {with_two} ({:.1} %)",
        percent(with_two)
    );
    println!(
        "  integer-empty:                            {empty} ({:.1} %)",
        percent(empty)
    );
    println!(
        "  integer-empty but rationally non-empty:   {gap} ({:.1} %)",
        percent(gap)
    );
    println!("  pairs of equal sets:                      {equal_pairs}");
    println!("  pieces in all results:                    {pieces}");
    println!("  minima in which isl contradicts itself:   {inconsistent}");
    println!("  minima that we gave up as too complex:    {too_complex}");
    println!("  comparisons that isl gave up:             {skipped}");
    assert!(N_SETS >= 4000 && percent(gap) >= 20.0);
    assert!(percent(empty) <= 70.0, "enough sets must have points");
    assert!(inconsistent <= N_SETS / 1000);
    assert!(too_complex <= N_SETS / 500);
    assert!(skipped <= N_SETS / 20);
}
