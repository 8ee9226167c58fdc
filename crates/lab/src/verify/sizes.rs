//! Sizes at which a mapping is tested: a small one, and larger ones with partial warps and blocks.

use systola_cli::source::{Parameters, Sizes, Small};
use systola_ir::system::System;

/// A small size is about 6 in each parameter; these are its multiples, in sixths.
const SCALES: [i128; 4] = [6, 19, 50, 131];

/// Sizes that the system allows, smallest first, each of them different.
pub fn sizes(system: &System, given: &Sizes) -> Vec<Vec<i128>> {
    let parameters = Parameters::from(system);
    let Some(small) = parameters.with_small(given, Small::Distinct) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for scale in SCALES {
        let mut values = small.clone();
        let wanted: Vec<i128> = small.iter().map(|v| v * scale / SCALES[0]).collect();
        let free = |n: usize| !given.contains_key(&parameters.params[n].name);
        let all: Vec<i128> = (0..small.len())
            .map(|n| if free(n) { wanted[n] } else { small[n] })
            .collect();
        if parameters.holds(&all) {
            values = all;
        } else {
            // One parameter after another, if the context allows it.
            for n in (0..small.len()).filter(|n| free(*n)) {
                let before = std::mem::replace(&mut values[n], wanted[n]);
                if !parameters.holds(&values) {
                    values[n] = before;
                }
            }
        }
        if !found.contains(&values) {
            found.push(values);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_grow_within_the_context() {
        let module = systola_driver::load(
            "system s(N, K) where N >= 1, K >= 1, K <= 4 {
               input x[N]: i32;
               index i in 0..N;
               var S: i32 = x[i] + i32(K);
               output s[N]: i32 = S at [i] when true;
             }",
        )
        .unwrap();
        let found = sizes(&module.systems[0], &Sizes::new());
        assert_eq!(found, [[6, 3], [19, 3], [50, 3], [131, 3]]);
        let given = Sizes::from([("N".to_string(), 9)]);
        assert_eq!(sizes(&module.systems[0], &given), [[9, 3]]);
    }
}
