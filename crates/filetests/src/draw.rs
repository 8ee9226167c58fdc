//! Small systems and mappings, drawn from a seed.
//!
//! A system is valid by construction: references point backwards in a hidden order of the points,
//! and each is guarded by "z - e is in the domain of the variable that is read". Mappings are drawn
//! by several strategies. Some of them aim at legal mappings, others do not; legality is decided
//! elsewhere. Every draw is marked with its traits, so that a test can count what it covers.

use std::collections::{BTreeMap, BTreeSet};

use crate::tensor::Rng;

mod equations;
mod known;
mod lin;
mod mapping;
mod matrix;
mod programs;
mod scans;
mod stencils;
mod strategies;
mod sums;
mod system;
mod values;

pub use scans::{DrawnScan, draw_scan};

use mapping::draw_mapping;
use system::Sketch;

/// A system with mappings, as text.
pub struct Drawn {
    pub system: String,
    pub mappings: Vec<DrawnMapping>,
    /// Name and least value of every parameter.
    pub params: Vec<(String, i64)>,
    /// Values of the parameters to try, the least ones first.
    pub sizes: Vec<BTreeMap<String, i128>>,
    pub traits: BTreeSet<&'static str>,
    /// Sums of floats whose order is left open.
    pub regroups_floats: bool,
    /// Some operations on floats round, so the results of targets are close to each other, but not
    /// equal.
    pub rounds: bool,
    /// The choices of this draw, and the start of those of the mappings.
    pub choices: Vec<u32>,
    pub begins: Vec<usize>,
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

    /// The choices of a draw with this mapping alone.
    pub fn choices_with(&self, mapping: usize) -> Vec<u32> {
        let mut choices = self.choices[..self.begins[0]].to_vec();
        let end = self.begins.get(mapping + 1);
        let end = end.copied().unwrap_or(self.choices.len());
        choices.extend(&self.choices[self.begins[mapping]..end]);
        choices
    }
}

/// What is drawn in addition to the basics. Known faults that are not fixed yet are avoided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draws {
    /// One system, against which the checker is tested point by point.
    Systems,
    /// Also stencils and programs.
    Everything,
}

/// Draws a system and `n_mappings` mappings of it.
pub fn draw(seed: u64, n_mappings: usize) -> Drawn {
    draw_from(Source::random(seed), Draws::Systems, n_mappings)
}

/// Draws a system, a stencil or a program, and `n_mappings` mappings.
pub fn draw_any(seed: u64, n_mappings: usize) -> Drawn {
    draw_from(Source::random(seed), Draws::Everything, n_mappings)
}

/// The draw that these choices make.
pub fn redraw(choices: &[u32], n_mappings: usize) -> Drawn {
    draw_from(Source::replay(choices), Draws::Everything, n_mappings)
}

fn draw_from(mut source: Source, draws: Draws, n_mappings: usize) -> Drawn {
    if draws == Draws::Everything {
        match source.below(10) {
            0..=6 => {}
            7..=8 => return stencils::draw(&mut source, n_mappings),
            _ => return programs::draw(&mut source, n_mappings),
        }
    }
    let mut sketch = Sketch::new(&mut source);
    sketch.variables(&mut source);
    if draws == Draws::Everything && source.chance(12) {
        sketch.draw_batch(&mut source);
    }
    let system = sketch.text(&mut source);
    let sizes = sketch.sizes(&mut source);
    let mut begins = Vec::new();
    let mappings = (0..n_mappings)
        .map(|n| {
            begins.push(source.taken.len());
            draw_mapping(&sketch, n, &mut source)
        })
        .collect();
    Drawn {
        system,
        mappings,
        params: sketch.params.clone(),
        sizes,
        regroups_floats: sketch.regroups_floats,
        rounds: sketch.rounds,
        traits: sketch.traits,
        choices: source.taken,
        begins,
    }
}

/// The choices of a draw, from a seed or from a list. Beyond the end of a list all choices are 0,
/// which is the simplest one by design.
struct Source {
    random: Option<Rng>,
    given: Vec<u32>,
    /// The choices so far.
    taken: Vec<u32>,
}

impl Source {
    fn random(seed: u64) -> Source {
        Source {
            random: Some(Rng::new(seed)),
            given: Vec::new(),
            taken: Vec::new(),
        }
    }

    fn replay(choices: &[u32]) -> Source {
        Source {
            random: None,
            given: choices.to_vec(),
            taken: Vec::new(),
        }
    }

    fn below(&mut self, n: usize) -> usize {
        let choice = match &mut self.random {
            Some(random) => random.int(0, n as i64) as usize,
            None => {
                let given = self.given.get(self.taken.len()).copied();
                (given.unwrap_or(0) as usize).min(n - 1)
            }
        };
        self.taken.push(choice as u32);
        choice
    }

    fn int(&mut self, lo: i64, hi: i64) -> i64 {
        lo + self.below((hi - lo) as usize) as i64
    }

    /// True with this probability in percent.
    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) >= 100 - percent
    }

    fn pick<T: Clone>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())].clone()
    }

    fn shuffle<T>(&mut self, list: &mut [T]) {
        for n in (1..list.len()).rev() {
            // 0 permutes nothing.
            list.swap(n, n - self.below(n + 1));
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
            let drawn = draw_any(seed, 3);
            assert_eq!(redraw(&drawn.choices, 3).text(), drawn.text());
        }
    }
}
