//! Small systems and mappings, drawn from a seed.
//!
//! A system is valid by construction: references point backwards in a hidden order of the points, and
//! each is guarded by "z - e is in the domain of what is read". Mappings are drawn by several
//! strategies, some of which aim at legal ones and some at nothing; which of them are legal is for
//! others to say. Everything drawn is marked with its traits, so that a test can count what it saw.

use std::collections::BTreeSet;

use crate::tensor::Rng;

mod equations;
mod lin;
mod mapping;
mod matrix;
mod strategies;
mod sums;
mod system;

use mapping::draw_mapping;
use system::Sketch;

/// A system with mappings, as text.
pub struct Drawn {
    pub system: String,
    pub mappings: Vec<DrawnMapping>,
    /// Name and least value of every parameter.
    pub params: Vec<(String, i64)>,
    pub traits: BTreeSet<&'static str>,
    /// Sums of floats whose order is left open.
    pub regroups_floats: bool,
}

pub struct DrawnMapping {
    pub text: String,
    pub traits: BTreeSet<&'static str>,
}

impl Drawn {
    /// The whole file.
    pub fn text(&self) -> String {
        let mappings = self.mappings.iter().map(|m| m.text.as_str());
        std::iter::once(self.system.as_str())
            .chain(mappings)
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// The system with one mapping.
    pub fn text_with(&self, mapping: usize) -> String {
        format!("{}\n{}", self.system, self.mappings[mapping].text)
    }
}

/// Draws a system and so many mappings of it.
pub fn draw(seed: u64, n_mappings: usize) -> Drawn {
    let mut source = Source(Rng::new(seed));
    let mut sketch = Sketch::new(&mut source);
    sketch.variables(&mut source);
    let mappings = (0..n_mappings)
        .map(|n| draw_mapping(&sketch, n, &mut source))
        .collect();
    Drawn {
        system: sketch.text(),
        mappings,
        params: sketch.params.clone(),
        regroups_floats: sketch.regroups_floats,
        traits: sketch.traits,
    }
}

struct Source(Rng);

impl Source {
    fn int(&mut self, lo: i64, hi: i64) -> i64 {
        self.0.int(lo, hi)
    }

    fn below(&mut self, n: usize) -> usize {
        self.0.int(0, n as i64) as usize
    }

    /// True in so many of a hundred cases.
    fn chance(&mut self, percent: i64) -> bool {
        self.0.int(0, 100) < percent
    }

    fn pick<T: Clone>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())].clone()
    }

    fn shuffle<T>(&mut self, list: &mut [T]) {
        for n in (1..list.len()).rev() {
            list.swap(n, self.below(n + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_draws_the_same_program() {
        for seed in 0..50 {
            assert_eq!(draw(seed, 3).text(), draw(seed, 3).text());
        }
    }
}
