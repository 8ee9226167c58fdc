//! Numbers as bits.

use super::{EXACT, Reference};
use crate::tensor::{Arrays, Tensor};

pub fn references() -> Vec<Reference> {
    vec![Reference {
        file: "arithmetic/braun_multiplier.ure",
        system: "braun_multiplier",
        sizes: &[&[1], &[2], &[3], &[9]],
        inputs: |p, rng| {
            let [n] = p.get(["N"]);
            Arrays::new()
                .with("a", rng.ints([n], 0, 2))
                .with("b", rng.ints([n], 0, 2))
        },
        outputs: |p, arrays| {
            let [n] = p.get(["N"]);
            let number = |name: &str| {
                let bits = arrays.ints(name).data.iter().enumerate();
                bits.map(|(place, bit)| (*bit as u64) << place).sum::<u64>()
            };
            let product = number("a") * number("b");
            let p = Tensor::from_fn([2 * n], |[i]| (product >> i & 1) as i64);
            Arrays::new().with("p", p)
        },
        tolerance: EXACT,
    }]
}
