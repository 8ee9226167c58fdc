//! The path of blocks inside of all arrays, and that of blocks at an edge.
//!
//! The same statements are made twice: where a condition on the block, or on the turn of a loop, is known to hold, and where it
//! is not. The second way is rare; it is not worth more code, and nothing in it is told apart any further.

use systola_ir::DimId;
use systola_ir::form::{Cond, Form};
use systola_ir::kernel::Stmt;

use crate::apply_mapping::Failure;
use crate::kernel::facts::{Facts, Range};
use crate::kernel::interior::interior;
use crate::kernel::loops::Emitter;

impl Emitter<'_> {
    /// Where the tests have one outcome for all PEs and for all steps from `at` on. Of interest may be
    /// those tests only that speak of one coordinate.
    pub fn inside(&self, slot: &[Form], at: usize, about: Option<usize>) -> Result<Cond, Failure> {
        let mut facts = Facts::new(self.decide, self.machine);
        for (k, range) in self.slots.ranges.iter().enumerate() {
            facts.set_range(DimId::from(k), range.clone());
        }
        // Blocks of one warp take the same path: two more coordinates are the warp and the block in it.
        let (warp, nth) = (slot.len(), slot.len() + 1);
        let packing = self.partition.packing.as_ref();
        if let Some(packing) = packing {
            facts.set_range(DimId::from(warp), packing.grid());
            facts.set_range(DimId::from(nth), Range::new(0, packing.blocks));
        }
        let inner = |d: DimId| {
            self.partition.steps[at..].contains(&d.index())
                || self.partition.pes.contains(&d.index())
                || d.index() == nth
                || self.partition.warps.has(d.index())
        };
        let speaks = |test: &&Cond| {
            about.is_none_or(|k| {
                let mut dims = test.forms().into_iter().flat_map(Form::dims);
                dims.any(|d| d.index() == k)
            })
        };
        let mut tests: Vec<Cond> = self.tests.iter().filter(speaks).cloned().collect();
        if let Some(packing) = packing {
            let [warp, nth] = [warp, nth].map(|n| Form::from(DimId::from(n)));
            let block = packing.block_at(&warp, &nth)?;
            let packed = |d: DimId| (d.index() == packing.block).then(|| block.clone());
            for test in &mut tests {
                *test = test.map(&|f| f.substitute(&packed))?;
            }
        }
        let there = |d: DimId| {
            if d.index() == warp {
                return Some(self.packed.clone());
            }
            slot.get(d.index()).cloned()
        };
        // Where a block has chosen its path, a loop in it need not ask again.
        let holds = |form: &Form| {
            self.machine.threads.is_some()
                && about.is_some()
                && (form.substitute(&there)).is_ok_and(|form| self.facts.is_nonnegative(&form))
        };
        let inside = interior(&tests, &facts, &inner, &holds).map(&|f| f.substitute(&there))?;
        Ok(self.facts.simplify(&inside))
    }

    /// The same statements twice: where a condition is known to hold, and where it is not, which is
    /// rare and not worth more code.
    pub fn either(
        &mut self,
        cond: Cond,
        f: &mut impl FnMut(&mut Self) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        if self.at_edge {
            return f(self);
        }
        self.both(cond, f)
    }

    pub fn both(
        &mut self,
        cond: Cond,
        f: &mut impl FnMut(&mut Self) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        if matches!(cond, Cond::Const(_)) {
            return f(self);
        }
        self.registers.flush(&mut self.b);
        let around = self.facts.clone();
        self.facts = around.with(cond.clone());
        self.b.begin();
        let then = f(self);
        self.registers.flush(&mut self.b);
        let then_stmts = self.b.end();
        then?;
        self.facts = around;
        self.b.begin();
        let otherwise = self.at_the_edge(f);
        self.registers.flush(&mut self.b);
        let otherwise_stmts = self.b.end();
        otherwise?;
        self.b.push(Stmt::If {
            cond,
            then: then_stmts,
            otherwise: otherwise_stmts,
        });
        Ok(())
    }

    /// Most turns at the edge along one axis are inside along that of the loop, and threads that test every cell are
    /// far behind all others.
    pub fn tests_turns_at_edge(&self, at: usize) -> bool {
        self.machine.threads.is_some()
            && self.ticks_inside(at).is_some_and(|ticks| {
                self.tick_cost().saturating_mul(ticks) <= 4 * self.machine.code_budget
            })
    }

    /// Statements that run seldom, and are not worth more code.
    pub fn at_the_edge(
        &mut self,
        f: &mut impl FnMut(&mut Self) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let at_edge = std::mem::replace(&mut self.at_edge, true);
        let result = f(self);
        self.at_edge = at_edge;
        result
    }
}
