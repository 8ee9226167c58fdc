//! A part of the space that is measured whole, to see how well a model ranks.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::model::Device;
use crate::problem::Problem;
use crate::rank::{Ranking, rank};
use crate::space::Candidate;

/// Which part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reduced {
    /// At most so many candidates, strewn evenly over the space,
    pub designs: usize,
    /// of those whose longest kernel has at most so many instructions: what is short is soon compiled.
    pub text: Option<f64>,
}

impl Reduced {
    /// Lowers candidates until there are enough that belong to the part.
    pub fn rank(
        self,
        problem: &Problem<'_>,
        params: &[i128],
        candidates: Vec<(Candidate, bool)>,
        model: &Device,
        end: Instant,
        stop: &AtomicBool,
    ) -> Part {
        let mut part = Part {
            ranking: Ranking::default(),
            shortest: f64::INFINITY,
        };
        let mut rest = strewn(candidates).into_iter().peekable();
        while part.ranking.ranked.len() < self.designs && rest.peek().is_some() {
            if stop.load(Ordering::Relaxed) || Instant::now() >= end {
                part.ranking.left += rest.count();
                break;
            }
            let missing = self.designs - part.ranking.ranked.len();
            let next = rest.by_ref().take(missing).collect();
            let found = rank(problem, params, next, model, end, stop);
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

/// What was found of the part that was asked for.
pub struct Part {
    pub ranking: Ranking,
    /// Instructions of the shortest text that was seen.
    pub shortest: f64,
}

/// The same candidates so that the first of them, however many, lie everywhere in the space; those that are given come first.
fn strewn(candidates: Vec<(Candidate, bool)>) -> Vec<(Candidate, bool)> {
    let mut placed: Vec<_> = candidates.into_iter().enumerate().collect();
    let place = |(nth, (_, given)): &(usize, (Candidate, bool))| {
        if *given {
            0.0
        } else {
            (*nth as f64 * GOLDEN).fract()
        }
    };
    placed.sort_by(|a, b| place(a).total_cmp(&place(b)));
    placed.into_iter().map(|(_, candidate)| candidate).collect()
}

/// The golden section: no fraction's multiples are spread more evenly.
const GOLDEN: f64 = 0.618_033_988_749_895;
