//! The loads of a loop whose rows advance from iteration to iteration, and the work of an
//! iteration.

use systola_ir::DimId;
use systola_ir::form::{Form, Overflow};
use systola_ir::kernel::{Access, Kernel, Stmt};

/// One iteration of a loop.
#[derive(Debug, Default)]
pub struct Iteration<'s> {
    /// Operations, without those of inner loops. Of two branches the longer one counts.
    pub work: usize,
    /// The loads. Of two branches those of the first count, which most iterations take. Of loads
    /// that follow each other on a line, the one that reaches it first counts.
    pub loads: Vec<&'s Access>,
}

/// What to look for.
pub struct Search<'k> {
    pub kernel: &'k Kernel,
    /// The variable of the loop.
    pub var: DimId,
    /// Elements that arrive together.
    pub line: i128,
    /// Loads to ignore.
    pub except: &'k dyn Fn(&Access) -> bool,
}

impl Search<'_> {
    pub fn iteration<'s>(&self, stmts: &'s [Stmt]) -> Iteration<'s> {
        let mut found = Iteration::default();
        for stmt in stmts {
            found.work += usize::from(self.kernel.is_work(stmt));
            if let Some((load, _)) = stmt.global_load()
                && self.moves(load)
                && !(self.except)(load)
            {
                found.add(load, self.line);
            }
            if let Stmt::If {
                then, otherwise, ..
            } = stmt
            {
                let then = self.iteration(then);
                found.work += then.work.max(self.iteration(otherwise).work);
                for load in then.loads {
                    found.add(load, self.line);
                }
            }
        }
        found
    }

    /// Does the row of a load advance with the loop?
    fn moves(&self, load: &Access) -> bool {
        let moves = |form: &Form| match form.coefficient(self.var).as_constant() {
            Some(step) => step > 0 && !form.has_digit_of(self.var),
            None => false,
        };
        let rows = load.index.split_last().map(|(_, rows)| rows);
        rows.is_some_and(|rows| rows.iter().any(moves))
    }

    /// The index of a load when the variable is `later`.
    pub fn moved(&self, load: &Access, later: &Form) -> Result<Vec<Form>, Overflow> {
        let at = |d: DimId| (d == self.var).then(|| later.clone());
        load.index.iter().map(|form| form.substitute(&at)).collect()
    }
}

impl<'s> Iteration<'s> {
    fn add(&mut self, load: &'s Access, line: i128) {
        for known in &mut self.loads {
            let gap = distance(known, load);
            let Some((last, rows)) = gap.as_deref().and_then(<[i128]>::split_last) else {
                continue;
            };
            if last.abs() < line {
                if rows.iter().all(|d| *d >= 0) && rows.iter().any(|d| *d > 0) {
                    *known = load;
                }
                return;
            }
        }
        self.loads.push(load);
    }
}

/// The distance from one access to another of the same array, if it is constant.
fn distance(from: &Access, to: &Access) -> Option<Vec<i128>> {
    if from.memory != to.memory || from.index.len() != to.index.len() {
        return None;
    }
    let pairs = from.index.iter().zip(&to.index);
    pairs.map(|(from, to)| to.sub(from).as_constant()).collect()
}
