//! Smaller choices that fail in the same way.
//!
//! Choices are omitted, set to 0 and decreased, in ever smaller runs of them, as long as the
//! resulting draw still fails. Every list of choices gives a valid program, so nothing here knows
//! their meaning.

/// The smallest choices found within the number of attempts.
pub fn shrink(choices: &[u32], attempts: usize, fails: &mut dyn FnMut(&[u32]) -> bool) -> Vec<u32> {
    let mut best = choices.to_vec();
    let mut left = attempts;
    let mut try_one = |candidate: Vec<u32>, best: &mut Vec<u32>| -> bool {
        if left == 0 || candidate == *best {
            return false;
        }
        left -= 1;
        let smaller = fails(&candidate);
        if smaller {
            *best = candidate;
        }
        smaller
    };
    loop {
        let before = best.clone();
        let mut run = best.len().next_power_of_two() / 2;
        while run > 0 {
            let mut at = best.len();
            while at > 0 {
                let first = at.saturating_sub(run);
                let mut without = best.clone();
                without.drain(first..at.min(best.len()));
                if !try_one(without, &mut best) {
                    let mut zeros = best.clone();
                    let end = at.min(zeros.len());
                    zeros[first.min(end)..end].fill(0);
                    try_one(zeros, &mut best);
                }
                at = first;
            }
            run /= 2;
        }
        for at in 0..best.len() {
            for lower in [
                best.get(at).map(|c| c / 2),
                best.get(at).map(|c| c.saturating_sub(1)),
            ] {
                let Some(lower) = lower else { continue };
                let mut candidate = best.clone();
                candidate[at] = lower;
                try_one(candidate, &mut best);
            }
        }
        if best == before {
            return best;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_needed_remains() {
        let choices: Vec<u32> = (0..200).map(|n| n * 7 % 90).collect();
        let mut fails = |c: &[u32]| c.iter().any(|x| *x > 50) && c.len() >= 3;
        let small = shrink(&choices, 10_000, &mut fails);
        assert_eq!(small.iter().filter(|c| **c > 0).collect::<Vec<_>>(), [&51]);
        assert_eq!(small.len(), 3);
    }
}
