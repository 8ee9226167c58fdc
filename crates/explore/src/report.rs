//! The results of an exploration.

use crate::measure::verify::Evidence;
use crate::search::Fault;
use crate::space::Candidate;

/// A candidate that was tried.
#[derive(Clone, Debug, PartialEq)]
pub struct Design {
    pub candidate: Candidate,
    /// The mapping is one of the file.
    pub given: bool,
    /// Its class by Jo, Kim and Park: `SBM`.
    pub taxonomy: String,
    /// Seconds.
    pub predicted: Option<f64>,
    /// The limiting term of the model.
    pub limit: Option<String>,
    /// Seconds, the median of the samples; `None` where it has a fault.
    pub measured: Option<f64>,
    pub samples: usize,
    /// Registers of one thread: as the device reports, else as the model counts.
    pub registers: Option<u32>,
    pub fault: Option<Fault>,
    /// It is on the Pareto front: no other design is faster with as few registers.
    pub on_front: bool,
}

impl Design {
    pub fn name(&self) -> &str {
        &self.candidate.mapping.name
    }

    /// `lanes c, registers 8 r × 2 c`.
    pub fn choices(&self) -> String {
        let each = self.candidate.choices.iter();
        let each: Vec<String> = each.map(|(what, how)| format!("{what} {how}")).collect();
        each.join(", ")
    }
}

/// Why an exploration ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The strategy finished.
    Complete,
    Budget,
    Interrupted,
}

/// All that was found, the best first.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    pub designs: Vec<Design>,
    /// Where nothing was measured: the legal candidate that the model expects to be the fastest.
    pub expected: Option<Design>,
    /// The number of candidates.
    pub candidates: usize,
    /// Illegal, or without a kernel at these sizes: names and reasons.
    pub refused: Vec<(String, String)>,
    /// The number that there was no time to lower.
    pub unranked: usize,
    /// The number that there was no time to measure, or that the model predicts to be too slow.
    pub unmeasured: usize,
    pub strategy: &'static str,
    pub evidence: Evidence,
    /// The duration of the exploration.
    pub seconds: f64,
    pub ended: Ended,
}

impl Outcome {
    /// The fastest design that was measured and verified.
    pub fn best(&self) -> Option<&Design> {
        self.designs.iter().find(|d| d.measured.is_some())
    }

    /// Designs whose results differ from the equations, or on which the compiler panics.
    pub fn wrong(&self) -> impl Iterator<Item = (&Design, &str)> {
        self.designs.iter().filter_map(|d| match &d.fault {
            Some(Fault::Wrong(why)) => Some((d, why.as_str())),
            Some(Fault::Refused(_) | Fault::Failed(_) | Fault::TooSlow | Fault::Late) | None => {
                None
            }
        })
    }
}

/// Marks the designs of the Pareto front.
pub fn mark_front(designs: &mut [Design]) {
    let facts: Vec<(f64, Option<u32>)> = designs
        .iter()
        .map(|d| (d.measured.unwrap_or(f64::INFINITY), d.registers))
        .collect();
    for (design, on_front) in designs.iter_mut().zip(front(&facts)) {
        design.on_front = on_front;
    }
}

/// The Pareto front of seconds and registers: designs that no other one beats in both.
pub fn front(facts: &[(f64, Option<u32>)]) -> Vec<bool> {
    let beats = |(s, r): (f64, Option<u32>), (seconds, registers): (f64, u32)| {
        r.is_some_and(|r| (s < seconds && r <= registers) || (s <= seconds && r < registers))
    };
    let on_front = |(seconds, registers): &(f64, Option<u32>)| match registers {
        Some(registers) if seconds.is_finite() => !facts
            .iter()
            .any(|other| beats(*other, (*seconds, *registers))),
        Some(_) | None => false,
    };
    facts.iter().map(on_front).collect()
}

#[cfg(test)]
mod tests {
    use systola_ir::mapping::Mapping;

    use super::*;

    fn design(measured: Option<f64>, registers: Option<u32>) -> Design {
        Design {
            candidate: Candidate {
                mapping: Mapping::default(),
                choices: vec![("lanes", "c".to_string()), ("order", "q".to_string())],
            },
            given: false,
            taxonomy: String::new(),
            predicted: None,
            limit: None,
            measured,
            samples: 1,
            registers,
            fault: None,
            on_front: false,
        }
    }

    #[test]
    fn the_front_has_what_nothing_beats() {
        let mut designs = [
            design(Some(1.0), Some(40)),
            design(Some(2.0), Some(20)),
            design(Some(2.5), Some(30)),
            design(Some(2.0), Some(20)),
            design(None, Some(1)),
            design(Some(0.5), None),
        ];
        mark_front(&mut designs);
        let front: Vec<bool> = designs.iter().map(|d| d.on_front).collect();
        assert_eq!(front, [true, true, false, true, false, false]);
        assert_eq!(designs[0].choices(), "lanes c, order q");
    }
}
