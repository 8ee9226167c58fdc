//! The primitives of the paper's Table 1: a loop nest becomes places and times.
//!
//! Loops on blocks and threads are places. The rows of the space-time transform are lanes, and its
//! last row is the schedule. Every other loop runs in sequence, outside or inside the schedule
//! according to its position in the nest.

use systola_ir::codes::mapping as codes;
use systola_ir::form::{Form, Overflow};
use systola_ir::mapping::{Name, NameExpr, PlaceLevel, TimeLevel};
use systola_ir::{Diagnostic, Span, VarId};

use super::{Pass, UserReverse, add_place, add_time};

/// The primitives of Table 1 in a mapping.
#[derive(Clone, Debug, Default)]
pub(super) struct Table1 {
    pub(super) used: bool,
    pub(super) blocks: Vec<String>,
    pub(super) threads: Vec<String>,
    transform: Option<Transform>,
}

#[derive(Clone, Debug)]
struct Transform {
    /// Source loops.
    src: Vec<String>,
    lanes: Vec<Form>,
    schedule: Form,
    span: Span,
}

impl Pass<'_> {
    /// The listed order must let every equation read what an earlier one computed at the same
    /// point.
    pub(super) fn merge(&mut self, func: &Name, others: &[Name]) -> Result<(), Diagnostic> {
        self.table1.used = true;
        let mut order = Vec::new();
        for name in std::iter::once(func).chain(others) {
            let var = self.var(name)?;
            if order.contains(&var) {
                return Err(Diagnostic::new(
                    &codes::MERGE_ORDER,
                    name.span,
                    format!("`{}` is merged twice", name.text),
                ));
            }
            order.push(var);
        }
        let here = self.system.identity_index();
        for (n, sink) in order.iter().enumerate() {
            let mut wrong = None;
            systola_ir::system::visit::walk(&self.system.vars[sink.index()].body, &mut |e| {
                if let systola_ir::system::Expr::Var { var, index, .. } = e
                    && *index == here
                    && order[n..].contains(var)
                {
                    wrong = Some(*var);
                }
            });
            if let Some(source) = wrong {
                let name = |v: VarId| &self.system.vars[v.index()].name;
                return Err(Diagnostic::new(
                    &codes::MERGE_ORDER,
                    func.span,
                    format!(
                        "`{}` reads `{}` at the same point, but comes before it in the body",
                        name(*sink),
                        name(source)
                    ),
                )
                .help(format!("list `{}` before `{}`", name(source), name(*sink))));
            }
        }
        Ok(())
    }

    pub(super) fn reorder(&mut self, loops: &[Name]) -> Result<(), Diagnostic> {
        for (n, name) in loops.iter().enumerate() {
            self.is_loop(name)?;
            if loops[..n].iter().any(|l| l.text == name.text) {
                return Err(Diagnostic::new(
                    &codes::NAME_TAKEN,
                    name.span,
                    format!("`{}` is listed twice", name.text),
                )
                .help("list each loop once"));
            }
        }
        // The listed loops are rearranged within the positions they hold; they are written
        // innermost first.
        let mut listed = loops.iter().rev().map(|l| l.text.clone());
        for slot in &mut self.loops {
            if loops.iter().any(|l| l.text == *slot)
                && let Some(next) = listed.next()
            {
                *slot = next;
            }
        }
        Ok(())
    }

    pub(super) fn transform(
        &mut self,
        src: &[Name],
        dst: &[Name],
        matrix: &[Vec<NameExpr>],
        reverse: Option<&[NameExpr]>,
        span: Span,
    ) -> Result<(), Diagnostic> {
        for name in src {
            self.is_loop(name)?;
        }
        if self.table1.transform.is_some() {
            return Err(Diagnostic::new(
                &codes::BAD_TRANSFORM,
                span,
                "a second space-time transform",
            ));
        }
        let shape = matrix.len() == dst.len() && matrix.iter().all(|row| row.len() == src.len());
        if !shape || dst.is_empty() {
            return Err(Diagnostic::new(
                &codes::BAD_TRANSFORM,
                span,
                format!(
                    "the matrix has {} rows of {} entries; {} destinations and {} sources need {} rows of {}",
                    matrix.len(),
                    matrix.first().map_or(0, Vec::len),
                    dst.len(),
                    src.len(),
                    dst.len(),
                    src.len()
                ),
            )
            .help("one row for each destination (the last is the schedule), one column for each source"));
        }
        let mut rows = Vec::new();
        for row in matrix {
            let mut form = Form::zero();
            for (entry, name) in row.iter().zip(src) {
                let coefficient = self.names.form(entry)?;
                let Some(factor) = coefficient.as_poly() else {
                    return Err(Diagnostic::new(
                        &codes::BAD_TRANSFORM,
                        entry.span,
                        "an entry of the matrix is a constant or made of parameters",
                    ));
                };
                let source = self.names.get(&name.text).cloned().unwrap_or_default();
                let term = source
                    .scale(factor)
                    .map_err(|o: Overflow| crate::localise::overflow(o, entry.span))?;
                form = form.add(&term);
            }
            rows.push(form);
        }
        let Some(schedule) = rows.pop() else {
            return Ok(());
        };
        if let Some(reverse) = reverse {
            if reverse.len() != src.len() {
                return Err(Diagnostic::new(
                    &codes::BAD_TRANSFORM,
                    span,
                    format!(
                        "the reverse transform has {} expressions for {} loops",
                        reverse.len(),
                        src.len()
                    ),
                ));
            }
            let mut names = self.names.clone();
            for (name, form) in dst.iter().zip(rows.iter().chain([&schedule])) {
                names.define(&name.text, form.clone());
            }
            for (expr, name) in reverse.iter().zip(src) {
                self.result.reverse.push(UserReverse {
                    name: name.text.clone(),
                    expected: self.names.get(&name.text).cloned().unwrap_or_default(),
                    given: names.form(expr)?,
                    span: expr.span,
                });
            }
        }
        let src = src.iter().map(|s| s.text.clone()).collect();
        self.table1.transform = Some(Transform {
            src,
            lanes: rows,
            schedule,
            span,
        });
        Ok(())
    }

    /// The loop nest of Table 1 as places and times.
    pub(super) fn finish_table1(&mut self) -> Result<(), Diagnostic> {
        if !self.table1.used {
            return Ok(());
        }
        let table = self.table1.clone();
        let form = |name: &String| self.names.get(name).cloned().unwrap_or_default();
        let mut outside = std::mem::take(&mut self.outside);
        let span = table.transform.as_ref().map_or(Span::NONE, |t| t.span);
        if !table.blocks.is_empty() {
            let forms = table.blocks.iter().map(form).collect();
            add_place(&mut outside, PlaceLevel::Block, forms, span)?;
        }
        if !table.threads.is_empty() {
            let forms = table.threads.iter().map(form).collect();
            add_place(&mut outside, PlaceLevel::Warp, forms, span)?;
        }
        if outside
            .time
            .iter()
            .any(|(level, ..)| *level == TimeLevel::Step)
        {
            self.outside = outside;
            return Ok(());
        }
        let placed = |name: &String| table.blocks.contains(name) || table.threads.contains(name);
        let mut steps = Vec::new();
        let mut scheduled = false;
        for name in &self.loops {
            if placed(name) {
                continue;
            }
            match &table.transform {
                Some(Transform { src, schedule, .. }) if src.contains(name) => {
                    // The schedule takes the position of the innermost of its loops.
                    let last = self.loops.iter().rev().find(|l| src.contains(l));
                    if last == Some(name) && !scheduled {
                        steps.push(schedule.clone());
                        scheduled = true;
                    }
                }
                _ => steps.push(form(name)),
            }
        }
        if let Some(Transform { lanes, .. }) = &table.transform {
            add_place(&mut outside, PlaceLevel::Lane, lanes.clone(), span)?;
        }
        add_time(&mut outside, TimeLevel::Step, steps, span)?;
        self.outside = outside;
        Ok(())
    }
}
