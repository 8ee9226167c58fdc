//! One kernel of a counted program: what the models of all devices ask about it.

use systola_ir::form::Overflow;
use systola_ir::kernel::Program;
use systola_ir::kernel::census::Event;

use super::code::Code;
use super::count::{KernelCensus, bounds};
use super::device::Number;
use super::footprint::Footprint;
use super::predict::Term;

/// A kernel at concrete sizes, and the work of all its launches.
#[derive(Clone, Copy)]
pub struct CountedKernel<'c> {
    pub program: &'c Program,
    pub sizes: &'c [i128],
    pub code: &'c Code<'c>,
    pub census: &'c KernelCensus,
}

impl<'c> CountedKernel<'c> {
    pub fn blocks_per_launch(&self) -> f64 {
        self.census.blocks / self.census.launches
    }

    /// Operations of all lanes.
    pub fn operations(&self) -> f64 {
        self.census.tally[Event::Arithmetic] * f64::from(self.code.kernel.lanes)
    }

    pub fn blocks(&self, rate: f64, number: &Number) -> Term {
        Term::new("blocks", self.census.blocks, "blocks", rate, number)
    }

    /// The term of the launches, which take `each` seconds.
    pub fn launches(&self, each: &Number) -> Term {
        let rate = 1.0 / each.value;
        Term::new("launches", self.census.launches, "launches", rate, each)
    }

    /// The middle block of the grid of a representative launch.
    pub fn middle(&self) -> Result<Vec<i64>, Overflow> {
        let mut point = vec![0; self.code.kernel.vars.len()];
        for (var, value) in self.code.host.iter().zip(self.arguments()) {
            point[*var] = *value;
        }
        for range in &self.code.grid {
            let (lo, hi) = bounds(&range.lo, &range.hi, &point)?;
            point[range.var] = lo + hi.saturating_sub(lo).max(0) / 2;
        }
        Ok(point)
    }

    /// The footprint of a representative launch in lines of this size.
    pub fn footprint(&self, line: f64) -> Result<Footprint<'c, 'c>, Overflow> {
        Footprint::new(self.code, self.arguments(), line)
    }

    fn arguments(&self) -> &'c [i64] {
        let all = self.census.arguments.iter();
        let heaviest = all.max_by(|a, b| a.1.total_cmp(&b.1));
        heaviest.map_or(&[], |(args, _)| args)
    }
}
