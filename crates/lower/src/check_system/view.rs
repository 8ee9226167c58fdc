//! All places in a system that the checks ask about.

use std::borrow::Cow;

use affine::{BasicSetBuilder, LinExpr, Map, Set, Space};
use systola_ir::form::{Cond, Form, Overflow};
use systola_ir::id::{DimId, InputId, VarId};
use systola_ir::sets::{SetError, constrain, lin_expr, union};
use systola_ir::span::Span;
use systola_ir::system::{Combine, Expr, System};

use crate::dependences::{Site, walk, walk_equation};

/// A system with its reads, holes and reductions in source order.
pub(super) struct View {
    pub system: System,
    pub reads: Vec<Read>,
    /// Every `select` without a default, at the site where its condition does not hold.
    pub holes: Vec<(Sink, Site)>,
    pub reductions: Vec<Reduction>,
}

/// The owner of a right-hand side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sink {
    Var(VarId),
    Write { output: usize, write: usize },
}

pub(super) struct Read {
    pub sink: Sink,
    pub source: Source,
    /// Over the point of the sink and the inner iterators of the site.
    pub index: Vec<Form>,
    /// As written in the source.
    pub written: Vec<Form>,
    pub site: Site,
    pub span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Var(VarId),
    Input(InputId),
}

pub(super) struct Reduction {
    pub sink: Sink,
    pub op: Combine,
    pub dims: Vec<DimId>,
    pub site: Site,
    pub span: Span,
}

impl View {
    pub(crate) fn new(system: System) -> Result<View, Overflow> {
        let mut view = View {
            system: System::default(),
            reads: Vec::new(),
            holes: Vec::new(),
            reductions: Vec::new(),
        };
        for n in 0..system.vars.len() {
            let var = VarId::from(n);
            walk_equation(&system.around(var), var, &mut |expr, site| {
                view.note(Sink::Var(var), expr, site)
            })?;
        }
        for (output, declared) in system.outputs.iter().enumerate() {
            for (write, written) in declared.writes.iter().enumerate() {
                let sink = Sink::Write { output, write };
                let seen = system.around_write(written);
                let domain = seen.domain_cond();
                let context = seen.context_cond();
                let active = context.and(domain.clone()).and(written.when.clone());
                let site = Site::new(&seen, active);
                walk(&seen, &domain, &written.value, &site, &mut |expr, site| {
                    view.note(sink, expr, site)
                })?;
            }
        }
        view.system = system;
        Ok(view)
    }

    fn note(&mut self, sink: Sink, expr: &Expr, site: &Site) -> Result<(), Overflow> {
        let mut read = |source, index: &[Form], span| -> Result<(), Overflow> {
            self.reads.push(Read {
                sink,
                source,
                index: index
                    .iter()
                    .map(|f| site.form(f))
                    .collect::<Result<_, _>>()?,
                written: index.to_vec(),
                site: site.clone(),
                span,
            });
            Ok(())
        };
        match expr {
            Expr::Var { var, index, span } => read(Source::Var(*var), index, *span)?,
            Expr::Input { input, index, span } => read(Source::Input(*input), index, *span)?,
            Expr::Guard {
                cond,
                otherwise: None,
                ..
            } => self.holes.push((sink, site.under(&cond.clone().negate())?)),
            Expr::Reduce { op, dims, span, .. } => self.reductions.push(Reduction {
                sink,
                op: *op,
                dims: dims.clone(),
                site: site.clone(),
                span: *span,
            }),
            Expr::Guard {
                otherwise: Some(_), ..
            }
            | Expr::Lit(..)
            | Expr::Const(_)
            | Expr::Iter(_)
            | Expr::Param(_)
            | Expr::Local(_)
            | Expr::Lookup { .. }
            | Expr::Unary(..)
            | Expr::Binary(..)
            | Expr::Cast(..)
            | Expr::Select { .. }
            | Expr::Tuple(_)
            | Expr::Field(..)
            | Expr::Call(..)
            | Expr::Let { .. }
            | Expr::Scan { .. }
            | Expr::Port(_) => {}
        }
        Ok(())
    }

    /// The system as the owner of a right-hand side sees it.
    pub(super) fn around(&self, sink: Sink) -> Cow<'_, System> {
        match sink {
            Sink::Var(var) => self.system.around(var),
            Sink::Write { output, write } => {
                let write = &self.system.outputs[output].writes[write];
                self.system.around_write(write)
            }
        }
    }

    /// The points where the right-hand side has no value.
    pub(super) fn undefined(&self, sink: Sink) -> Result<Option<Set>, SetError> {
        let mut all: Option<Set> = None;
        let seen = self.around(sink);
        for (_, site) in self.holes.iter().filter(|(of, _)| *of == sink) {
            let frame = Frame::new(&seen, &site.inner);
            let mut points = frame.set(&site.conds)?;
            if !site.inner.is_empty() {
                points = points.project_onto(0..seen.dims.len())?;
            }
            all = Some(match all {
                None => points,
                Some(before) => before.union(&points)?,
            });
        }
        Ok(all)
    }

    /// Where a site is reached, over its point and inner iterators, without points that have no
    /// value.
    pub(super) fn reached(&self, sink: Sink, site: &Site) -> Result<Set, SetError> {
        let seen = self.around(sink);
        let frame = Frame::new(&seen, &site.inner);
        let set = frame.set(&site.conds)?;
        match self.undefined(sink)? {
            None => Ok(set),
            Some(undefined) => {
                let undefined = undefined.insert_dims(seen.dims.len(), site.inner.len())?;
                Ok(set.subtract(&undefined)?)
            }
        }
    }
}

/// The columns of a site: the point, then its inner iterators.
pub(super) struct Frame {
    pub space: Space,
    /// The iterators in the order of the columns.
    pub dims: Vec<DimId>,
    places: Vec<LinExpr>,
}

impl Frame {
    pub(super) fn new(system: &System, inner: &[DimId]) -> Frame {
        let dims: Vec<DimId> = (0..system.dims.len())
            .map(DimId::from)
            .chain(inner.iter().copied())
            .collect();
        let n_params = system.params.len();
        let n_ids = dims.iter().map(|d| d.index() + 1).max().unwrap_or(0);
        // An iterator of another reduction cannot occur here; its entry is never used.
        let mut places = vec![LinExpr::zero(); n_ids];
        for (column, d) in dims.iter().enumerate() {
            places[d.index()] = LinExpr::var(n_params + column);
        }
        Frame {
            space: Space::new(n_params, dims.len()),
            dims,
            places,
        }
    }

    pub(super) fn set(&self, conds: &[Cond]) -> Result<Set, SetError> {
        let mut pieces = vec![BasicSetBuilder::new(self.space)];
        for cond in conds {
            pieces = constrain(pieces, cond, &self.places)?;
        }
        union(self.space, pieces)
    }

    pub(super) fn map(&self, forms: &[Form]) -> Result<Map, SetError> {
        let mut builder = BasicSetBuilder::new(self.space);
        let outputs = forms
            .iter()
            .map(|form| lin_expr(form, &mut builder, &self.places))
            .collect::<Result<_, _>>()?;
        Ok(builder.build_map(outputs)?)
    }
}

/// The conjuncts of a condition.
pub(super) fn conjuncts(cond: Cond) -> Vec<Cond> {
    match cond {
        Cond::And(parts) => parts.into_iter().flat_map(conjuncts).collect(),
        Cond::Const(true) => Vec::new(),
        Cond::Const(false) | Cond::Cmp(..) | Cond::Or(_) | Cond::Not(_) => vec![cond],
    }
}
