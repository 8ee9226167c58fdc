//! The stages of a sum: an accumulation for each, of what the stage before it has completed.

use systola_ir::codes::limits;
use systola_ir::form::{Cond, Form, Overflow};
use systola_ir::mapping::Direction;
use systola_ir::system::{Expr, Var};
use systola_ir::{Diagnostic, DimId, Span, VarId};

use super::{Build, Run, Sum, parts};
use crate::localise::{combine, overflow};

impl<'a> Build<'a> {
    /// The variables of a sum: `whole` has its results under the name `id`, and every stage but the
    /// last has a variable of its own, complete on the last faces of its iterators.
    pub(super) fn add_sum(
        &mut self,
        sum: &Sum<'_>,
        id: VarId,
        whole: Var,
        when: &Cond,
    ) -> Result<(), Diagnostic> {
        let stages = self.stages_of(sum);
        let all: Vec<&Run> = stages.concat();
        self.check_box(&all, sum.span)?;
        for stage in &stages {
            self.check_returns(stage, sum.span)?;
        }
        let mut present = self.present_in(&stages, sum.span)?;
        // Reserved first, so that the sums inside get later ids.
        let at = self.vars.len();
        self.vars.push((id, whole.clone()));
        let mut complete: Vec<Cond> = Vec::new();
        let mut part = None;
        for (n, stage) in stages.iter().enumerate() {
            let is_last = n + 1 == stages.len();
            let (var, at) = if is_last {
                (id, at)
            } else {
                let name = self.fresh_name(&format!("{}_part", whole.name));
                let var = self.next_id();
                self.vars.push((
                    var,
                    Var {
                        name,
                        ..whole.clone()
                    },
                ));
                (var, self.vars.len() - 1)
            };
            let term = match part {
                None => self.expr(sum.home, sum.body, sum.free, when)?,
                Some(var) => Expr::Var {
                    var,
                    index: self.identity(),
                    span: sum.span,
                },
            };
            let body = self
                .accumulate(sum, stage, var, term, &present)
                .map_err(|o| overflow(o, sum.span))?;
            // Empty points come last: a stage has a term anywhere if it has one at the least point.
            let terms = present.clone();
            present = at_least(&present, stage).map_err(|o| overflow(o, sum.span))?;
            let made = &mut self.vars[at].1;
            made.body = body;
            made.on.extend(complete.iter().cloned());
            // A whole sum is not empty.
            let goes_down = stage.iter().all(|run| run.direction == Direction::Down);
            match (goes_down, is_last) {
                (true, _) => made.on.extend(terms),
                (false, false) => made.on.extend(present.iter().cloned()),
                (false, true) => {}
            }
            self.sums.insert(var);
            complete.extend(stage.iter().map(|run| run.is_last()));
            part = Some(var);
        }
        Ok(())
    }

    /// The accumulation `select(first, f, acc(z - e) op f)` of a stage with the term f, owned by the
    /// variable `acc`.
    ///
    /// Some points may have no term. A stage that runs up passes on what it has there. One that runs
    /// down begins at the last point with a term, and the points before it are not in its domain.
    fn accumulate(
        &self,
        sum: &Sum<'_>,
        runs: &[&Run],
        acc: VarId,
        term: Expr,
        present: &[Cond],
    ) -> Result<Expr, Overflow> {
        let identity = self.identity();
        let goes_down = runs.iter().all(|run| run.direction == Direction::Down);
        // From the outermost run inwards: step the innermost run that is not at its first value,
        // and send all runs inside it back to their last.
        let mut expr = None;
        for (n, run) in runs.iter().enumerate().rev() {
            let mut index = identity.clone();
            index[run.dim.index()] = Form::from(run.dim).plus(-run.step());
            for inner in &runs[..n] {
                // The inner one is at its first value here, so first − last is the distance.
                let back = inner.last.sub(&inner.first);
                index[inner.dim.index()] = Form::from(inner.dim).add(&back);
            }
            self.stay_on_faces(sum.home, sum.free, &mut index)?;
            let before = |f: &Form| f.substitute(&|d| index.get(d.index()).cloned());
            let there = all_of(present.iter().cloned()).map(&before)?;
            let earlier = Expr::Var {
                var: acc,
                index,
                span: sum.span,
            };
            let step = combine(sum.op, earlier.clone(), term.clone());
            let step = match present {
                [_, ..] if !goes_down => {
                    Expr::guard(all_of(present.iter().cloned()), step, earlier)
                }
                _ => step,
            };
            let mut first = all_of(runs.iter().map(|r| r.is_first()));
            if goes_down && !present.is_empty() {
                let no_more = parts(&there).into_iter().map(opposite);
                first = Cond::any([first].into_iter().chain(no_more).collect());
            }
            expr = Some(match expr {
                None => Expr::guard(first, term.clone(), step),
                Some(outer) => push_in(outer, run, step),
            });
        }
        Ok(expr.unwrap_or(term))
    }

    /// The runs of a sum's stages, innermost first: as the mapping says, or else one stage with the
    /// last listed iterator innermost.
    fn stages_of(&self, sum: &Sum<'_>) -> Vec<Vec<&'a Run>> {
        let runs = self.runs;
        let run = |d: &DimId| runs.iter().find(|r| r.dim == *d);
        let written = self.stages.get(&sum.home).copied().unwrap_or_default();
        let mut stages: Vec<Vec<&'a Run>> = written
            .iter()
            .map(|stage| {
                let own = stage.iter().filter(|(d, _)| sum.dims.contains(d));
                own.filter_map(|(d, _)| run(d)).collect()
            })
            .filter(|stage: &Vec<&Run>| !stage.is_empty())
            .collect();
        if stages.is_empty() {
            stages.push(sum.dims.iter().rev().filter_map(run).collect());
        }
        stages
    }

    /// Where a sum over these runs has terms; empty if it has one at every point.
    fn present_in(&self, stages: &[Vec<&Run>], span: Span) -> Result<Vec<Cond>, Diagnostic> {
        let mut conds = Vec::new();
        for cond in self.present {
            let uses = |run: &&&Run| cond.forms().iter().any(|f| f.dims().contains(&run.dim));
            if !stages.iter().flatten().any(|run| uses(&run)) {
                continue;
            }
            conds.push(cond.clone());
            // More than one run has no single last point with a term.
            let several = stages.iter().filter(|stage| stage.len() > 1).flatten();
            let mut down = several.filter(|run| run.direction == Direction::Down);
            if let Some(run) = down.find(uses) {
                let name = &self.original.dim(run.dim).name;
                let why = format!(
                    "`{name}` runs down inside of a stage with several iterators, and the tile does not divide the number of terms"
                );
                return Err(Diagnostic::new(&limits::SUM_NOT_A_BOX, span, why)
                    .help("let it run up, or give it a stage of its own"));
            }
        }
        Ok(conds)
    }

    /// Refuses sums in which the range of a run depends on a run around it.
    fn check_box(&self, runs: &[&Run], span: Span) -> Result<(), Diagnostic> {
        let name = |run: &Run| &self.original.dim(run.dim).name;
        for (n, run) in runs.iter().enumerate() {
            let depends = |inner: &&&Run| {
                let mut bounds = [&inner.first, &inner.last].into_iter();
                bounds.any(|f| f.dims().contains(&run.dim))
            };
            if let Some(inner) = runs[..n].iter().find(depends) {
                let why = format!(
                    "the range of `{}` depends on `{}`, and one sum runs over both",
                    name(inner),
                    name(run)
                );
                return Err(Diagnostic::new(&limits::SUM_NOT_A_BOX, span, why)
                    .help("write one `reduce` inside the other"));
            }
        }
        Ok(())
    }

    /// Refuses a stage whose runs cannot go back by the same distance everywhere: all but the
    /// outermost one do.
    fn check_returns(&self, stage: &[&Run], span: Span) -> Result<(), Diagnostic> {
        let name = |run: &Run| &self.original.dim(run.dim).name;
        let Some((outermost, inner)) = stage.split_last() else {
            return Ok(());
        };
        let Some(run) = inner.iter().find(|run| run.varies()) else {
            return Ok(());
        };
        let what = if run.last.sub(&run.first).dims().is_empty() {
            "is a rounded quotient of a size"
        } else {
            "changes from point to point"
        };
        let why = format!(
            "the number of values of `{}` {what}, and one sum runs over it inside of `{}`",
            name(run),
            name(outermost)
        );
        Err(Diagnostic::new(&limits::SUM_NOT_A_BOX, span, why).help(format!(
            "let it be the last in `sum … along` or a stage of its own, `sum … along {} then …`",
            name(run)
        )))
    }
}

fn opposite(cond: Cond) -> Cond {
    match cond {
        Cond::Cmp(rel, left, right) => Cond::Cmp(rel.opposite(), left, right),
        other => other.negate(),
    }
}

fn all_of(conds: impl Iterator<Item = Cond>) -> Cond {
    conds.fold(Cond::TRUE, Cond::and)
}

/// The conditions at the least values of some runs, without those that hold everywhere.
fn at_least(conds: &[Cond], runs: &[&Run]) -> Result<Vec<Cond>, Overflow> {
    let least = |d: DimId| {
        let run = runs.iter().find(|run| run.dim == d)?;
        Some(match run.direction {
            Direction::Up => run.first.clone(),
            Direction::Down => run.last.clone(),
        })
    };
    let mut result = Vec::new();
    for cond in conds {
        let cond = cond.map(&|f| f.substitute(&least))?;
        if cond != Cond::TRUE {
            result.push(cond);
        }
    }
    Ok(result)
}

/// Adds the case "this run is not at its first value" inside the accumulation so far.
fn push_in(outer: Expr, run: &Run, step: Expr) -> Expr {
    match outer {
        Expr::Guard {
            cond,
            then,
            otherwise: Some(otherwise),
        } => Expr::Guard {
            cond,
            then,
            otherwise: Some(Box::new(Expr::guard(
                run.is_first().negate(),
                step,
                *otherwise,
            ))),
        },
        other => other,
    }
}
