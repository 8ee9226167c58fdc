//! A sample of the space that is measured completely, to see how well a model ranks.

use crate::rank::{Ranker, Ranking};
use crate::space::Candidate;

/// The size of the sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reduced {
    /// The maximum number of candidates, sampled uniformly from the space,
    pub designs: usize,
    /// of those whose longest kernel has at most this many instructions: short kernels compile
    /// fast.
    pub text: Option<f64>,
}

impl Reduced {
    /// Lowers candidates until the sample is complete.
    pub fn rank(self, ranker: &Ranker<'_>, candidates: Vec<(Candidate, bool)>) -> Part {
        let mut part = Part {
            ranking: Ranking::default(),
            shortest: f64::INFINITY,
        };
        let mut rest = sampled_uniformly(candidates).into_iter().peekable();
        while part.ranking.ranked.len() < self.designs && rest.peek().is_some() {
            if ranker.is_over() {
                part.ranking.left += rest.count();
                break;
            }
            let missing = self.designs - part.ranking.ranked.len();
            let next = rest.by_ref().take(missing).collect();
            let found = ranker.rank(next);
            part.ranking.refused.extend(found.refused);
            part.ranking.panicked.extend(found.panicked);
            part.ranking.left += found.left;
            for one in found.ranked {
                let Some(text) = one.predicted.as_ref().map(|p| p.code) else {
                    continue;
                };
                part.shortest = part.shortest.min(text);
                if self.text.is_none_or(|most| text <= most) {
                    part.ranking.ranked.push(one);
                }
            }
        }
        part.ranking.sort();
        part
    }
}

/// The candidates of the sample that were found.
pub struct Part {
    pub ranking: Ranking,
    /// Instructions of the shortest kernel that was seen.
    pub shortest: f64,
}

/// Reorders candidates such that each prefix of the list is a uniform sample of the space; those
/// that are given come first.
fn sampled_uniformly(candidates: Vec<(Candidate, bool)>) -> Vec<(Candidate, bool)> {
    let mut placed: Vec<_> = candidates.into_iter().enumerate().collect();
    let place = |(nth, (_, given)): &(usize, (Candidate, bool))| {
        if *given {
            -1.0
        } else {
            (*nth as f64 * GOLDEN).fract()
        }
    };
    placed.sort_by(|a, b| place(a).total_cmp(&place(b)));
    placed.into_iter().map(|(_, candidate)| candidate).collect()
}

/// The golden section: no other fraction's multiples are spread more evenly.
const GOLDEN: f64 = 0.618_033_988_749_895;

#[cfg(test)]
mod tests {
    use super::*;

    /// In every prefix, gaps between sampled candidates are small.
    #[test]
    fn the_first_lie_everywhere() {
        let module = systola_driver::load(
            "system s(N) { input x[N]: f32; index i in 0..N; var A: f32 = x[i]; output y[N]: f32 = A at [i]; }
             mapping m of s { lane = i; time = 0; }",
        )
        .unwrap();
        let named = |n: usize| {
            let mut mapping = module.mappings[0].clone();
            mapping.name = n.to_string();
            let choices = Vec::new();
            (Candidate { mapping, choices }, n == 57)
        };
        let order: Vec<usize> = sampled_uniformly((0..100).map(named).collect())
            .iter()
            .map(|(candidate, _)| candidate.mapping.name.parse().unwrap())
            .collect();
        assert_eq!(order[0], 57, "what is given");
        for count in [20, 35, 60] {
            let mut first = order[..count].to_vec();
            first.sort_unstable();
            let gaps = first.windows(2).map(|pair| pair[1] - pair[0]);
            let widest = gaps
                .max()
                .unwrap()
                .max(first[0] + 1)
                .max(100 - first[count - 1]);
            assert!(widest <= 200 / count + 1, "{count}: {widest}");
        }
        let mut all = order;
        all.sort_unstable();
        assert_eq!(all, (0..100).collect::<Vec<_>>());
    }
}
