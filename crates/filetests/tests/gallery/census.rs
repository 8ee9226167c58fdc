//! The census of the model against the kernel interpreter.
//!
//! Without sampling, both counts are equal. Only lookups in tables differ: their addresses depend
//! on values, so the census does not know the memory they touch.

use systola_explore::model::code::Lanes;
use systola_explore::model::count::{Census, Sampling};
use systola_explore::model::tally::Tally;
use systola_interp::kernel::Outcome;
use systola_ir::kernel::Program;
use systola_ir::kernel::census::{Counts, Event};

/// The comparisons that were made.
#[derive(Default)]
pub struct Compared {
    pub runs: usize,
    pub with_lookups: usize,
    pub failures: Vec<String>,
}

impl Compared {
    /// Compares the census of a program with what a run of it counted.
    pub fn add(
        &mut self,
        program: &Program,
        params: &[i128],
        lanes: Lanes,
        run: &Outcome,
        context: &str,
    ) {
        let census = Census::take(program, params, lanes, Sampling::Everything);
        let census = census.unwrap_or_else(|e| panic!("{context}: {e:?}"));
        self.runs += 1;
        self.with_lookups += usize::from(run.counts[Event::Lookups] > 0);
        for (n, (tally, counts)) in census.kernels.iter().zip(&run.kernels).enumerate() {
            let differing = differences(&tally.tally, counts);
            if !differing.is_empty() {
                let differing = differing.join(", ");
                self.failures
                    .push(format!("{context}, kernel {n}: {differing}"));
            }
        }
    }
}

fn differences(tally: &Tally, counts: &Counts) -> Vec<String> {
    let differs = |event: &&Event| match **event {
        Event::GlobalSectors
        | Event::GlobalBytes
        | Event::SharedWavefronts
        | Event::BankConflicts
            if counts[Event::Lookups] > 0 =>
        {
            tally[**event] > counts[**event] as f64
        }
        event => tally[event] != counts[event] as f64,
    };
    let show = |event: &Event| format!("{event:?} {} for {}", tally[*event], counts[*event]);
    Event::ALL.iter().filter(differs).map(show).collect()
}
