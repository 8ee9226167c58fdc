//! Corrupted programs of the gallery, through every check and, if they are legal, through a run at
//! tiny sizes: no panic, no hang, no excessive use of memory.
//!
//! The same programs come in every run. `SYSTOLA_SEED=n` runs one, `SYSTOLA_CASES=n` this many.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use systola_filetests::cpus::cpu_time;
use systola_filetests::examine::{Reached, examine};
use systola_filetests::gallery;
use systola_filetests::tensor::Rng;

const CASES: u64 = 800;

/// The limit of the CPU time of one program.
const LIMIT: Duration = Duration::from_secs(2);

/// After this it counts as a hang; on a busy machine it is far from [`LIMIT`].
const PATIENCE: Duration = Duration::from_secs(600);

/// Arrays with more points than this are checked and not run.
const MOST_POINTS: i128 = 5_000;

#[test]
fn no_program_makes_the_checker_panic_or_hang() {
    let number = |name: &str| std::env::var(name).ok().and_then(|v| v.parse::<u64>().ok());
    let seeds = match (number("SYSTOLA_SEED"), number("SYSTOLA_CASES")) {
        (Some(seed), cases) => seed..seed + cases.unwrap_or(1),
        (None, cases) => 0..cases.unwrap_or(CASES),
    };
    let one = seeds.end - seeds.start == 1;
    let full = seeds == (0..CASES);
    let texts: Vec<String> = gallery::files().into_iter().map(|f| f.text).collect();
    let (send, receive) = channel();
    let worker = std::thread::Builder::new().stack_size(16 << 20);
    let start = Instant::now();
    let inputs: Vec<(u64, String)> = seeds.map(|seed| (seed, corrupted(&texts, seed))).collect();
    let programs: BTreeMap<u64, String> = inputs.iter().cloned().collect();
    let handle = worker
        .spawn(move || {
            for (seed, text) in inputs {
                let start = cpu_time();
                let result = catch_unwind(AssertUnwindSafe(|| examine(&text, MOST_POINTS)));
                let time = cpu_time() - start;
                if send.send((seed, result.map_err(|_| ()), time)).is_err() {
                    return;
                }
            }
        })
        .expect("a thread");
    let mut total = Reached::default();
    let mut failures = Vec::new();
    let mut slowest = (Duration::ZERO, 0);
    for due in programs.keys() {
        let Ok((seed, result, time)) = receive.recv_timeout(PATIENCE) else {
            failures.push(format!("seed {due} does not end\n{}", programs[due]));
            break;
        };
        slowest = slowest.max((time, seed));
        match result {
            Ok(reached) => {
                total.parsed += reached.parsed;
                total.sound += reached.sound;
                total.legal += reached.legal;
                total.run += reached.run;
            }
            Err(()) => failures.push(format!("seed {seed} panics\n{}", programs[&seed])),
        }
        if time > LIMIT {
            failures.push(format!("seed {seed} takes {time:.1?}\n{}", programs[&seed]));
        }
        if one {
            println!("{}", programs[&seed]);
        }
    }
    println!(
        "{} programs: {} parsed, {} systems sound, {} mappings legal, {} arrays run; {:.1?}; \
         slowest seed {} {:.1?}; {} MiB at most",
        programs.len(),
        total.parsed,
        total.sound,
        total.legal,
        total.run,
        start.elapsed(),
        slowest.1,
        slowest.0,
        most_memory().unwrap_or(0) >> 20
    );
    for failure in &failures {
        println!("{}", failure.lines().next().unwrap_or_default());
    }
    assert!(failures.is_empty(), "{}", failures[0]);
    handle.join().expect("the worker ends");
    if let Some(bytes) = most_memory() {
        assert!(bytes < 2 << 30, "{} MiB", bytes >> 20);
    }
    if full {
        // Otherwise the corruptions are too strong to reach the later stages.
        assert!(total.parsed >= 370, "{} parsed", total.parsed);
        assert!(total.sound >= 160, "{} sound", total.sound);
        assert!(total.legal >= 160, "{} legal", total.legal);
        assert!(total.run >= 105, "{} run", total.run);
    }
}

/// Programs with a short text and very large expansions.
#[test]
fn long_conditions_and_many_equations_take_bounded_time() {
    let program = |guard: &str, mapping: &str| {
        format!(
            "system s(N) where N >= 1 {{\n  input x[N]: i32;\n  index i in 0..N, j in 0..N;\n  \
             var X: i32 = select({guard}, X(i - 1, j), x[j]);\n  \
             output y[N, N]: i32 = X at [i, j];\n}}\nmapping m of s {{ {mapping} }}\n"
        )
    };
    let list = |n: i128, joint: &str, f: &dyn Fn(i128) -> String| {
        (0..n).map(f).collect::<Vec<_>>().join(joint)
    };
    let plain = "lane = j; time = i;";
    let either = list(24, " && ", &|k| format!("(i != {k} || j != {})", k + 1));
    let unequal = list(20, " && ", &|k| {
        format!("i != {} && j != {}", 3 * k + 2, 2 * k + 1)
    });
    let periods = list(24, " || ", &|k| {
        format!("i % {} == 1 && j % {} == 0", k + 2, k + 3)
    });
    let pieces = list(20, " ", &|k| {
        format!("when i == {k} {{ lane = j + {k}; time = i; }}")
    });
    let remainders = list(30, ", ", &|k| format!("j % {}", k + 2));
    let equations = list(60, "\n", &|k| {
        let (e, from) = (k % 3 + 1, (k - 1).max(0));
        format!("  var V{k}: i32 = select(i >= {e} && j >= 1, V{from}(i - {e}, j - 1), x[j]);")
    });
    let programs = [
        ("choices", program(&format!("i >= 1 && {either}"), plain)),
        (
            "inequalities",
            program(&format!("i >= 1 && {unequal}"), plain),
        ),
        ("periods", program(&format!("i >= 1 && ({periods})"), plain)),
        ("pieces", program("i >= 1", &format!("{pieces} {plain}"))),
        (
            "coordinates",
            program("i >= 1", &format!("lane = j; time = (i, {remainders});")),
        ),
        (
            "primes",
            program(
                "i >= 1",
                "lane = (97*i + 89*j)/50; reg = 3*i % 5; time = (83*i + 79*j, 71*j % 67);",
            ),
        ),
        (
            "equations",
            format!(
                "system s(N) where N >= 1 {{\n  input x[N]: i32;\n  index i in 0..N, j in 0..N;\n\
                 {equations}\n  output y[N, N]: i32 = V59 at [i, j];\n}}\n\
                 mapping m of s {{ tile j by 4 as (bx, xx) overlap (4, 4); block = bx; \
                 lane = xx + 4; launch = i; time = 0; }}\n"
            ),
        ),
    ];
    for (name, text) in programs {
        let start = cpu_time();
        let reached = examine(&text, MOST_POINTS);
        let time = cpu_time() - start;
        println!("{name}: {time:.1?}, {reached:?}");
        assert_eq!(reached.parsed, 1, "{name} does not parse\n{text}");
        assert!(time < 2 * LIMIT, "{name} takes {time:.1?}");
    }
}

/// The maximum memory of this process so far, if the system reports it.
fn most_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib << 10)
}

/// A gallery program with one to three corruptions; one in four hits the system too.
fn corrupted(texts: &[String], seed: u64) -> String {
    let mut rng = Rng::new(seed.wrapping_mul(0x9e37_79b9));
    let pick = |rng: &mut Rng, n: usize| rng.int(0, n.max(1) as i64) as usize;
    let text = &texts[pick(&mut rng, texts.len())];
    let mut tokens = tokens(text);
    let head = tokens.iter().position(|t| t == "mapping").unwrap_or(0);
    let from = if rng.int(0, 3) == 0 { 0 } else { head };
    for _ in 0..rng.int(1, 4) {
        let visible: Vec<usize> = (from..tokens.len())
            .filter(|n| !tokens[*n].starts_with("//") && !tokens[*n].trim().is_empty())
            .collect();
        if visible.is_empty() {
            break;
        }
        let at = visible[pick(&mut rng, visible.len())];
        let is_number = |t: &String| t.starts_with(|c: char| c.is_ascii_digit());
        let is_name = |t: &String| t.starts_with(|c: char| c.is_alphabetic() || c == '_');
        let of = |kind: &dyn Fn(&String) -> bool| -> Vec<usize> {
            visible
                .iter()
                .copied()
                .filter(|n| kind(&tokens[*n]))
                .collect()
        };
        match rng.int(0, 10) {
            0 => {
                let other = visible[pick(&mut rng, visible.len())];
                tokens.swap(at, other);
            }
            1 | 2 => {
                let numbers = of(&is_number);
                if !numbers.is_empty() {
                    let at = numbers[pick(&mut rng, numbers.len())];
                    tokens[at] = number(&mut rng);
                }
            }
            3 | 4 => {
                let names = of(&is_name);
                if !names.is_empty() {
                    let at = names[pick(&mut rng, names.len())];
                    let other = names[pick(&mut rng, names.len())];
                    tokens[at] = tokens[other].clone();
                }
            }
            5 | 6 => {
                let signs = of(&|t| t == "+" || t == "-");
                if signs.is_empty() {
                    tokens.insert(at, "-".into());
                } else {
                    let at = signs[pick(&mut rng, signs.len())];
                    tokens[at] = if tokens[at] == "+" {
                        "-".into()
                    } else {
                        "+".into()
                    };
                }
            }
            7 => {
                let names = of(&is_name);
                if !names.is_empty() {
                    let at = names[pick(&mut rng, names.len())];
                    let factor = number(&mut rng);
                    tokens[at] = format!("{factor}*{}", tokens[at]);
                }
            }
            8 => {
                // A guard that always holds.
                let guards = of(&|t| t == "==" || t == "<" || t == ">=");
                if !guards.is_empty() {
                    let at = guards[pick(&mut rng, guards.len())];
                    let other = ["<=", ">=", "!=", "<", "=="][pick(&mut rng, 5)];
                    tokens[at] = other.into();
                }
            }
            _ => {
                // A whole directive or declaration is left out, or comes twice.
                let ends = of(&|t| t == ";");
                if ends.len() > 1 {
                    let n = pick(&mut rng, ends.len() - 1);
                    let (first, last) = (ends[n] + 1, ends[n + 1] + 1);
                    let line: Vec<String> = tokens[first..last].to_vec();
                    if rng.int(0, 2) == 0 {
                        tokens.drain(first..last);
                    } else {
                        tokens.splice(last..last, line);
                    }
                }
            }
        }
    }
    tokens.concat()
}

fn number(rng: &mut Rng) -> String {
    let list = [
        "0",
        "1",
        "2",
        "3",
        "5",
        "7",
        "100",
        "65536",
        "1000003",
        "2147483647",
        "4294967296",
        "4611686018427387904",
        "9223372036854775807",
        "9223372036854775808",
        "99999999999999999999999999",
    ];
    let at = if rng.int(0, 2) == 0 {
        rng.int(0, 7)
    } else {
        rng.int(0, list.len() as i64)
    };
    list[at as usize].into()
}

/// Names, numbers, operators, comments and what is between them; together they are the text.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let run = |f: &dyn Fn(char) -> bool| rest.find(|c| !f(c)).unwrap_or(rest.len());
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if first.is_alphanumeric() || first == '_' {
            run(&|c| c.is_alphanumeric() || c == '_')
        } else if first.is_whitespace() {
            run(&char::is_whitespace)
        } else {
            let double = ["==", "!=", "<=", ">=", "&&", "||", "..", "->", "<<", ">>"];
            if double.iter().any(|d| rest.starts_with(d)) {
                2
            } else {
                first.len_utf8()
            }
        };
        let (token, after) = rest.split_at(length);
        tokens.push(token.to_string());
        rest = after;
    }
    tokens
}
