//! The same questions to this crate and to isl, on random parametric sets.
//!
//! Run with `cargo test -p affine --features isl-oracle --test isl -- --nocapture`.
#![cfg(feature = "isl-oracle")]

use affine::{BasicSet, BasicSetBuilder, Constraint, Error, Int, LinExpr, Set, Space};
use isl_rs as isl;
use std::time::{Duration, Instant};

const N_PARAMS: usize = 2;
const N_DIMS: usize = 2;
const N_SETS: usize = 4200;

/// A small generator with a fixed seed (xorshift64*), so that every run sees the same sets.
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

    fn chance(&mut self, percent: Int) -> bool {
        self.range(0, 99) < percent
    }
}

/// A conjunction with a rational point that satisfies it: `numerators / denominator`.
struct Sample {
    set: BasicSet,
    n_exists: usize,
    numerators: Vec<Int>,
    denominator: Int,
}

impl Sample {
    /// Constraints are drawn around a rational point, close to it, so that the set is never rationally empty but
    /// often has no integer point.
    fn draw(random: &mut Random, tight: bool) -> Sample {
        let n_exists = 1 + usize::from(random.chance(15));
        let n = N_PARAMS + N_DIMS + n_exists;
        let denominator = if tight {
            [2, 3, 4, 5, 6][random.range(0, 4) as usize]
        } else {
            random.range(1, 3)
        };
        let numerators: Vec<Int> = (0..n)
            .map(|_| random.range(-3 * denominator, 3 * denominator))
            .collect();
        let mut b = BasicSetBuilder::new(Space::new(N_PARAMS, N_DIMS));
        for _ in 0..n_exists {
            b.exists();
        }
        let at = |c: &[Int]| c.iter().zip(&numerators).map(|(a, b)| a * b).sum::<Int>();
        let row = |random: &mut Random, hidden: bool| -> Vec<Int> {
            let mut c: Vec<Int> = (0..n).map(|_| random.coefficient()).collect();
            if !hidden {
                c.truncate(N_PARAMS + N_DIMS);
            }
            c
        };
        // Dimensions are bounded from below in terms of the parameters, so that lexicographic minima exist.
        for d in 0..N_DIMS {
            let mut c = vec![0; N_PARAMS + N_DIMS];
            c[N_PARAMS + d] = 1;
            c[random.range(0, N_PARAMS as Int - 1) as usize] = random.range(-1, 1);
            let slack = random.range(0, 3);
            let k = (-at(&c)).div_euclid(denominator) + 1 + slack;
            b.ge(&LinExpr::new(&c, k), &0.into()).unwrap();
        }
        for k in 0..n_exists {
            // Each existential lies in a window of width less than twice its coefficient.
            let mut c = row(random, false);
            let a = random.range(2, 3);
            c.resize(n, 0);
            c[N_PARAMS + N_DIMS + k] = -a;
            let low =
                (-at(&c)).div_euclid(denominator) + Int::from(at(&c).rem_euclid(denominator) != 0);
            let e = LinExpr::new(&c, low);
            b.ge(&e, &0.into()).unwrap();
            let width = if tight {
                random.range(0, a - 1)
            } else {
                random.range(1, 2 * a - 1)
            };
            let value = at(&c) + low * denominator;
            let width = width
                .max(value.div_euclid(denominator) + Int::from(value.rem_euclid(denominator) != 0));
            b.le(&e, &width.into()).unwrap();
        }
        for _ in 0..random.range(1, 4 - n_exists as Int) {
            let c = row(random, true);
            let slack = if tight { 0 } else { random.range(0, 4) };
            let k = (-at(&c)).div_euclid(denominator)
                + Int::from(at(&c).rem_euclid(denominator) != 0)
                + slack;
            b.ge(&LinExpr::new(&c, k), &0.into()).unwrap();
        }
        if random.chance(if tight { 75 } else { 25 }) {
            for _ in 0..20 {
                let c = row(random, true);
                if at(&c) % denominator == 0 && c.iter().any(|&v| v != 0) {
                    let k = -at(&c) / denominator;
                    b.eq(&LinExpr::new(&c, k), &0.into()).unwrap();
                    break;
                }
            }
        }
        Sample {
            set: b.build(),
            n_exists,
            numerators,
            denominator,
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
        // Known floors are said as such: isl would have to find them out.
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

fn same(ctx: &isl::Context, ours: &Set, theirs: &isl::Set) -> bool {
    let ours = isl::Set::read_from_str(ctx, &to_isl(ours)).unwrap();
    ours.is_equal(theirs).unwrap()
}

/// Asks isl for the minimum at each of many parameter values, which avoids its parametric algorithm.
fn agrees_pointwise(ctx: &isl::Context, ours: &Set, theirs: &isl::Set) -> bool {
    let ours = isl::Set::read_from_str(ctx, &to_isl(ours)).unwrap();
    for p0 in -15..=15 {
        for p1 in -15..=15 {
            let at = || {
                let text = format!("[p0, p1] -> {{ [x0, x1] : p0 = {p0} and p1 = {p1} }}");
                isl::Set::read_from_str(ctx, &text).unwrap()
            };
            let minimum = theirs
                .copy()
                .unwrap()
                .intersect(at())
                .unwrap()
                .lexmin()
                .unwrap();
            let here = ours.copy().unwrap().intersect(at()).unwrap();
            if !here.is_equal(&minimum).unwrap() {
                return false;
            }
        }
    }
    true
}

#[test]
fn agrees_with_isl() {
    let ctx = isl::Context::alloc();
    let mut random = Random(0x5EED_0F_5E7);
    let mut previous: Option<Set> = None;
    let (mut empty, mut gap, mut with_two, mut equal_pairs, mut pieces) = (0, 0, 0, 0, 0);
    let (mut inconsistent, mut too_complex) = (0, 0);
    let start = Instant::now();
    let mut our_time = Duration::ZERO;
    for i in 0..N_SETS {
        let sample = Sample::draw(&mut random, i % 3 != 0);
        let set = Set::from(sample.set.clone());
        let text = to_isl(&set);
        let theirs = isl::Set::read_from_str(&ctx, &text).unwrap();
        let copy = || theirs.copy().unwrap();
        let out = isl::DimType::Set;

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
        our_time += clock.elapsed();

        assert_eq!(is_empty, theirs.is_empty().unwrap(), "emptiness of {text}");
        empty += usize::from(is_empty);
        gap += usize::from(is_empty && sample.is_rationally_non_empty());
        with_two += usize::from(sample.n_exists >= 2);
        assert!(is_same, "equality of {text}");
        let mut check = |name: &str, ours: &Set, theirs: isl::Set| {
            pieces += ours.pieces().len();
            let agree = same(&ctx, ours, &theirs);
            assert!(agree, "{name} of {text}\n gives {}", to_isl(ours));
        };
        check("projection", &first, copy().project_out(out, 1, 1).unwrap());
        check(
            "projection",
            &second,
            copy().project_out(out, 0, 1).unwrap(),
        );
        check(
            "parameters",
            &params,
            copy().project_out(out, 0, 2).unwrap(),
        );
        check("div form", &div_form, copy());

        // isl 0.27 loses part of the parametric minimum of very few sets (see `a_minimum_that_isl_loses` among the
        // other tests). At numeric parameters it then agrees with us, and not with itself.
        match lexmin {
            None => too_complex += 1,
            Some(lexmin) if same(&ctx, &lexmin, &copy().lexmin().unwrap()) => {
                pieces += lexmin.pieces().len();
            }
            Some(lexmin) => {
                let agree = agrees_pointwise(&ctx, &lexmin, &theirs);
                assert!(agree, "lexmin of {text}\n gives {}", to_isl(&lexmin));
                inconsistent += 1;
            }
        }

        if let Some(other) = &previous {
            let theirs_other = isl::Set::read_from_str(&ctx, &to_isl(other)).unwrap();
            let clock = Instant::now();
            let equal = set.is_equal(other).unwrap();
            let difference = set.subtract(other).unwrap();
            our_time += clock.elapsed();
            equal_pairs += usize::from(equal);
            assert_eq!(
                equal,
                theirs.is_equal(&theirs_other).unwrap(),
                "equality of {text}"
            );
            if i % 4 == 0 {
                let theirs = copy().subtract(theirs_other).unwrap();
                assert!(same(&ctx, &difference, &theirs), "difference of {text}");
            }
        }
        previous = Some(set);
    }
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
    println!("  minima given up as too complex:           {too_complex}");
    assert!(N_SETS >= 4000 && percent(gap) >= 20.0);
    assert!(percent(empty) <= 70.0, "enough sets must have points");
    assert!(inconsistent <= N_SETS / 1000 && too_complex <= N_SETS / 500);
}
