//! Random systems of variables with iterators of their own: what the checks say is what happens
//! when all values are computed, and alignments change nothing.

use systola_driver::load;
use systola_interp::tensor::split_mix;
use systola_interp::{Arrays, Demand, Options, Tensor, run_system_with};
use systola_ir::Scalar;
use systola_ir::diag::{Diagnostic, Kind};
use systola_ir::system::System;
use systola_lower::align::align;
use systola_lower::check_system::check_system;
use systola_lower::localise::localise;
use systola_lower::names::LANES;

/// The number of draws.
pub fn cases(usual: u64) -> u64 {
    let given = std::env::var("SYSTOLA_CASES").ok();
    given.and_then(|text| text.parse().ok()).unwrap_or(usual)
}

pub struct Draw(pub u64);

impl Draw {
    pub fn below(&mut self, n: u64) -> u64 {
        split_mix(&mut self.0) % n
    }

    pub fn of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len() as u64) as usize]
    }

    /// A form in some iterators.
    fn form(&mut self, dims: &[&str]) -> String {
        let mut form = match self.below(6) {
            0 => self.of(&["0", "1", "N - 1"]).to_string(),
            1 if dims.len() > 1 => format!("{} - {}", dims[0], dims[1]),
            2 if !dims.is_empty() => format!("N - 1 - {}", self.of(dims)),
            3 if !dims.is_empty() => format!("{} / 2", self.of(dims)),
            _ if !dims.is_empty() => self.of(dims).to_string(),
            _ => "0".to_string(),
        };
        form.push_str(self.of(&["", "", " - 1", " + 1"]));
        form
    }
}

/// The domains of variables with one and with two iterators.
const ONE: [&str; 3] = ["i in 0..N", "i in 1..N + 1", "i in 0..N + 1"];
const TWO: [&str; 4] = [
    "i in 0..N, j in 0..N",
    "i in 0..N, j in 0..i + 1",
    "i in 0..N + 1, j in i..N + 1",
    "j in 0..N, i in 0..2",
];

/// The text of a system, and the arity of each variable.
pub fn text(draw: &mut Draw) -> (String, Vec<usize>) {
    let n_vars = 1 + draw.below(3) as usize;
    let arity: Vec<usize> = (0..n_vars).map(|_| 1 + draw.below(2) as usize).collect();
    let domains: Vec<&str> = arity
        .iter()
        .map(|n| {
            if *n == 1 {
                draw.of(&ONE)
            } else {
                draw.of(&TWO)
            }
        })
        .collect();
    let dims_of = |n: usize| -> Vec<&str> {
        let parts = domains[n].split(", ");
        parts.filter_map(|part| part.split(' ').next()).collect()
    };
    let mut vars = String::new();
    for n in 0..n_vars {
        let dims = dims_of(n);
        let mut body = format!("i32({})", dims.join(" + 3 * "));
        for _ in 0..1 + draw.below(2) {
            let read = draw.below(n_vars as u64) as usize;
            let sums = draw.below(5) == 0;
            let seen: Vec<&str> = match sums {
                true => dims.iter().copied().chain(["k"]).collect(),
                false => dims.clone(),
            };
            let index: Vec<String> = (0..arity[read]).map(|_| draw.form(&seen)).collect();
            let value = format!("V{read}({})", index.join(", "));
            // The domain of the variable at the index that is read, most of the time.
            let mut guard = Vec::new();
            for (part, form) in domains[read].split(", ").zip(&index) {
                let range = part.split(" in ").nth(1).expect("a range");
                let (lo, hi) = range.split_once("..").expect("two bounds");
                // The second range may use the first iterator.
                let first = dims_of(read)[0];
                let at = |bound: &str| bound.replace(first, &format!("({})", index[0]));
                guard.push(format!("{} <= {form} && {form} < {}", at(lo), at(hi)));
            }
            let mut guard = guard.join(" && ");
            match draw.below(8) {
                0 => guard = format!("{} >= 1", dims[0]),
                1 | 2 => {}
                _ => guard = format!("{guard} && {} >= 1", draw.of(&dims)),
            }
            let mut term = format!("select({guard}, {value}, 1)");
            if sums {
                let range = draw.of(&["0..2", "0..N", "0..i"]);
                term = format!("reduce(+, k in {range}, {term})");
            }
            body = format!("{body} + 2 * {term}");
        }
        vars.push_str(&format!("  var V{n}({}): i32 = {body};\n", domains[n]));
    }
    let dims = dims_of(0);
    let here: Vec<String> = dims.iter().map(|d| format!("{d} == 1")).collect();
    let text = format!(
        "system s(N) where N >= 1 {{\n{vars}  output z[1]: i32 = V0 at [0] when {} else 0;\n}}",
        here.join(" && ")
    );
    (text, arity)
}

/// Changes of basis to a space of three iterators: directions, factors, offsets, and a coordinate
/// that is constant.
pub fn alignments(draw: &mut Draw, arity: &[usize]) -> String {
    let mut directives = String::new();
    for (n, arity) in arity.iter().enumerate() {
        let offset = |draw: &mut Draw| draw.of(&["", " + 1", " - 2", " + N"]).to_string();
        let (a, b) = match arity {
            1 => ("i", ""),
            _ => ("i", "j"),
        };
        let names: Vec<&str> = [a, b].into_iter().filter(|name| !name.is_empty()).collect();
        let scaled = |draw: &mut Draw, name: &str| match draw.below(4) {
            0 => format!("2 * {name}"),
            1 => format!("N - {name}"),
            _ => name.to_string(),
        };
        let x = scaled(draw, a) + &offset(draw);
        let y = match b {
            "" => draw.of(&["0", "N", "i"]).to_string(),
            _ => scaled(draw, b) + draw.of(&["", " + i", " - 1"]),
        };
        let phase = draw.of(&["0", "1", "3"]);
        let forms = match draw.below(3) {
            0 => [phase, &x, &y].join(", "),
            1 => [&y, &x, phase].join(", "),
            _ => [&x, phase, &y].join(", "),
        };
        directives.push_str(&format!(" align V{n} ({}) -> ({forms});", names.join(", ")));
    }
    directives
}

/// A system whose variable reads other rows and columns of earlier steps.
fn eliminations(draw: &mut Draw) -> String {
    let domain = draw.of(&[
        "true",
        "k <= i",
        "k <= i, k <= j",
        "i <= j",
        "k < i + 2",
        "i + j <= N",
    ]);
    let read = |draw: &mut Draw| {
        let row = draw.of(&["k - 1", "k", "0", "N - 1", "k + 1", "i", "j"]);
        let column = draw.of(&["j", "j", "k - 1", "0", "i", "N - 1"]);
        let back = draw.of(&["1", "1", "2"]);
        let guard = draw.of(&["true", "i >= k", "j >= k", "i > k && j > k", "i < N - 1"]);
        let value = format!("A(k - {back}, {row}, {column})");
        format!("select(k >= {back} && {guard}, {value}, 7)")
    };
    let (first, second) = (read(draw), read(draw));
    format!(
        "system s(N) where N >= 1 {{
           input x[N, N]: i32;
           index k in 0..N, i in 0..N, j in 0..N;
           var A: i32 on {domain} = select(k == 0, x[i, j], {first} - 3 * {second});
           output z[N, N, N]: i32 = A at [k, i, j] when {} else 0;
         }}",
        domain.replace(", ", " && ")
    )
}

fn loaded(text: &str) -> System {
    let module = load(text).unwrap_or_else(|e| panic!("{text}\n{e:?}"));
    module.systems.into_iter().next().expect("one system")
}

/// Computes all values.
fn run(system: &System, n: i128, inputs: &Arrays) -> Result<Arrays, Diagnostic> {
    let options = Options {
        demand: Demand::Everything,
        ..Options::default()
    };
    run_system_with(system, &[n], inputs, &options)
}

#[test]
fn checks_say_what_happens() {
    let (mut right, mut wrong, mut open) = (0, 0, 0);
    for seed in 0..cases(1500) {
        let (text, _) = text(&mut Draw(seed));
        let system = loaded(&text);
        let printed = system.to_string();
        assert_eq!(loaded(&printed).to_string(), printed, "seed {seed}\n{text}");
        let found = check_system(&system, None);
        let failure = (1..=9).find_map(|n| run(&system, n, &Arrays::new()).err().map(|e| (n, e)));
        match (found.as_slice(), failure) {
            ([], None) => right += 1,
            ([], Some((n, error))) => panic!("seed {seed}, N = {n}: {error}\n{text}"),
            ([first, ..], Some(_)) if first.kind() == Kind::Mistake => wrong += 1,
            ([first, ..], None) if first.kind() == Kind::Mistake => {
                panic!("seed {seed}: {first} is refused\n{text}")
            }
            ([..], _) => open += 1,
        }
    }
    let all = right + wrong + open;
    assert!(6 * right > all, "{right} of {all} are right");
    assert!(6 * wrong > all, "{wrong} of {all} are wrong");
    assert!(20 * open < all, "{open} of {all} are open");
}

/// Random changes of basis: permutations, directions, offsets, and a coordinate that is constant.
#[test]
fn alignments_change_no_value() {
    let mut moved = 0;
    for seed in 0..cases(900) {
        let draw = &mut Draw(seed);
        let (text, arity) = text(draw);
        let system = loaded(&text);
        if !check_system(&system, None).is_empty() {
            continue;
        }
        let directives = alignments(draw, &arity);
        let with = format!(
            "{text}\nmapping m of s {{ space (p, q, r);{directives} lane = 0; time = (p, q, r); }}"
        );
        let module = load(&with).unwrap_or_else(|e| panic!("{with}\n{e:?}"));
        let aligned = align(&system, &module.mappings[0]);
        let aligned = aligned.unwrap_or_else(|e| panic!("seed {seed}: {e:?}\n{with}"));
        for n in [1, 2, 5] {
            let none = Arrays::new();
            let (found, want) = (run(&aligned, n, &none), run(&system, n, &none));
            assert_eq!(found, want, "seed {seed}, N = {n}\n{with}\n{aligned}");
        }
        moved += 1;
    }
    assert!(moved > 100, "{moved}");
}

const DIRECTIONS: [&str; 5] = [
    "(0, 0, 1)",
    "(0, 0, -1)",
    "(0, 1, 0)",
    "(0, -1, 0)",
    "(0, 1, 1)",
];

/// Values that are forwarded along random directions arrive unchanged.
#[test]
fn forwarded_values_arrive() {
    let mut forwarded = 0;
    for seed in 0..cases(500) {
        let draw = &mut Draw(seed);
        let text = eliminations(draw);
        let system = loaded(&text);
        if !check_system(&system, None).is_empty() {
            continue;
        }
        for along in DIRECTIONS {
            let with = format!(
                "{text}\nmapping m of s {{ forward A along {along}; lane = 0; time = 0; }}"
            );
            let module = load(&with).unwrap_or_else(|e| panic!("{with}\n{e:?}"));
            let Ok(localised) = localise(&system, Some(&module.mappings[0]), LANES) else {
                continue;
            };
            for n in [1, 2, 4, 5] {
                let mut x = Arrays::new();
                let axes = &system.inputs[0].axes;
                let tensor = Tensor::random(Scalar::I32, axes, &[n], seed);
                x.insert("x".to_string(), tensor.expect("a small input"));
                let (found, want) = (run(&localised.system, n, &x), run(&system, n, &x));
                assert_eq!(
                    found, want,
                    "seed {seed}, N = {n}\n{with}\n{}",
                    localised.system
                );
            }
            forwarded += 1;
        }
    }
    assert!(forwarded > 60, "{forwarded}");
}
