//! Index arithmetic near the end of 64 bits: compiled code gives the exact result, or the run is
//! refused.

use systola::cpu::Error;
use systola::rt;
use systola::{Compiled, RunOptions};
use systola_driver::load;
use systola_filetests::quick_cpu;
use systola_interp::{Arrays, Data, Tensor};

/// A guard, with `i` and `K`, as the language and as exact arithmetic has it.
type Guard = (&'static str, fn(i128, i128) -> bool);

const GUARDS: &[Guard] = &[
    ("3*i + 2*K > 5", |i, k| 3 * i + 2 * k > 5),
    ("i - K <= K", |i, k| i - k <= k),
    ("i * 4611686018427387904 <= K", |i, k| i << 62 <= k),
    ("(7*i + 3*K)/5 >= K/2 + i", |i, k| {
        (7 * i + 3 * k).div_euclid(5) >= k.div_euclid(2) + i
    }),
    ("(i + K) % 1000000007 < 500000000", |i, k| {
        (i + k).rem_euclid(1_000_000_007) < 500_000_000
    }),
];

const N: i128 = 37;

fn program(guard: &str) -> String {
    format!(
        "system s(N, K) where N >= 1 {{
  index i in 0..N;
  var Z: i32 = select({guard}, 1, 2);
  output z[N]: i32 = Z at [i];
}}
mapping m of s {{ tile i by 2*L as (b, ii); block = b; lane = ii % L; reg = ii / L; time = 0; }}
mapping u of s {{ lane = i; time = 0; }}"
    )
}

/// Values around powers of two and their halves and thirds, of both signs.
fn samples(seed: u64) -> Vec<i128> {
    let mut state = seed;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        i128::from(state >> 33)
    };
    let mut found = vec![0, 5, i128::from(i64::MAX), i128::from(i64::MIN)];
    for bits in [31, 32, 53, 60, 61, 62] {
        for _ in 0..6 {
            let near = (1i128 << bits) / (1 + next() % 3) + next() % 200 - 100;
            found.push(if next() % 2 == 0 { near } else { -near });
        }
    }
    found
}

/// The outcome of a run: what is in `z`, or nothing where it was refused.
fn outcome(compiled: &Compiled, k: i128) -> Option<Vec<i32>> {
    match compiled.run_tensors(&[N, k], &Arrays::new(), &RunOptions::default()) {
        Ok((outputs, _)) => match &outputs["z"] {
            Tensor {
                data: Data::I32(z), ..
            } => Some(z.clone()),
            other => panic!("z is {other:?}"),
        },
        Err(Error::Runtime(rt::Error::IndexTooLarge { sizes, .. })) => {
            assert!(sizes.contains(&format!("K = {k}")), "{sizes}");
            None
        }
        Err(error) => panic!("K = {k}: {error}"),
    }
}

#[test]
fn results_are_exact_or_refused() {
    let (mut exact, mut refused) = (0, 0);
    for (n, (guard, holds)) in GUARDS.iter().enumerate() {
        let module = load(&program(guard)).expect("it parses");
        for mapping in ["m", "u"] {
            let options = quick_cpu();
            let compiled = match systola::compile(&module, mapping, &[], &options) {
                Ok(compiled) => compiled,
                // A number in it fits at no size.
                Err(Error::Refused(found)) if found.iter().all(|d| d.code.id == "E0608") => {
                    refused += 1;
                    continue;
                }
                Err(error) => panic!("{guard}: {error}"),
            };
            for k in samples(n as u64) {
                match outcome(&compiled, k) {
                    Some(z) => {
                        let expect = (0..N).map(|i| if holds(i, k) { 1 } else { 2 });
                        assert_eq!(z, expect.collect::<Vec<i32>>(), "{guard} at K = {k}");
                        exact += 1;
                    }
                    // Indices far below the limit are never refused.
                    None => {
                        let large = k.abs() >= 1 << 60 || guard.contains("4611686018427387904");
                        assert!(large, "{guard} at K = {k}");
                        refused += 1;
                    }
                }
            }
        }
    }
    println!("{exact} exact, {refused} refused");
    assert!(
        exact > 150 && refused > 40,
        "{exact} exact, {refused} refused"
    );
}
