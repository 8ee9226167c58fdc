//! Sums in an order: `reduce` and `scan` become accumulations.
//!
//! The iterators of the sums join the index space. A sum is complete on the *last* face of each of
//! its iterators; a variable that does not need the sum lives on the *first*, and is carried along
//! them where the body of the sum reads it.

use std::collections::{BTreeMap, BTreeSet};

use systola_ir::codes::limits;
use systola_ir::form::{Cond, Form, Overflow, Poly, Rel};
use systola_ir::mapping::Direction;
use systola_ir::system::visit::{map_children, map_expr, walk};
use systola_ir::system::{Combine, Dim, Expr, Law, System, Var, shifted};
use systola_ir::{Diagnostic, DimId, Span, Type, VarId};

use super::typing::type_of;
use super::{Choices, Pass, combine, fresh, moved_domain, overflow, shift_form};

/// Where a variable lives along an iterator that only a sum runs over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Face {
    First,
    Last,
}

/// How one bound iterator is run through.
#[derive(Clone)]
struct Run {
    dim: DimId,
    direction: Direction,
    /// The value at the first and the last point.
    first: Form,
    last: Form,
}

impl Run {
    fn step(&self) -> i128 {
        match self.direction {
            Direction::Up => 1,
            Direction::Down => -1,
        }
    }

    fn at(&self, face: Face) -> Form {
        match face {
            Face::First => self.first.clone(),
            Face::Last => self.last.clone(),
        }
    }

    fn is_first(&self) -> Cond {
        Cond::cmp(Rel::Eq, self.dim, self.first.clone())
    }
}

impl Pass {
    pub(super) fn serialise(&mut self, choices: &Choices) -> Result<(), Vec<Diagnostic>> {
        let n_outer = self.system.dims.len();
        if self.system.bound.is_empty() {
            return self.serialise_scans();
        }
        let runs = self.runs(choices).map_err(|d| vec![d])?;
        let original = self.system.clone();
        let uses = |expr: &Expr, d: DimId| {
            let mut found = false;
            walk(expr, &mut |e| {
                if let Expr::Reduce { dims, .. } = e {
                    found |= dims.contains(&d);
                }
            });
            found
        };
        // A variable is on the last face of q if its value needs the finished sum over q.
        let mut face: BTreeMap<(VarId, DimId), Face> = BTreeMap::new();
        for run in &runs {
            // Between faces whose distance changes from point to point nothing can be handed on.
            let varying = run.last.sub(&run.first).as_poly().is_none();
            for (n, var) in original.vars.iter().enumerate() {
                let own = if uses(&var.body, run.dim) {
                    Face::Last
                } else {
                    Face::First
                };
                face.insert((VarId::from(n), run.dim), own);
            }
            loop {
                let mut changed = false;
                for (n, var) in original.vars.iter().enumerate() {
                    let here = VarId::from(n);
                    if face[&(here, run.dim)] == Face::Last {
                        continue;
                    }
                    let mut last = false;
                    walk(&var.body, &mut |e| {
                        if let Expr::Var { var, index, .. } = e
                            && (varying || *index == original.identity_index())
                        {
                            last |= face[&(*var, run.dim)] == Face::Last;
                        }
                    });
                    if last {
                        face.insert((here, run.dim), Face::Last);
                        changed = true;
                    }
                }
                if !changed {
                    break;
                }
            }
        }
        // The iterators of the sums join the index space; the ids stay what they are.
        let bound = std::mem::take(&mut self.system.bound);
        self.system.dims.extend(bound);
        for run in &runs {
            let (lo, hi) = match run.direction {
                Direction::Up => (run.first.clone(), run.last.plus(1)),
                Direction::Down => (run.last.clone(), run.first.plus(1)),
            };
            self.system.dims[run.dim.index()].range = Some((lo, hi));
        }
        let mut build = Build {
            original: &original,
            runs: &runs,
            face: &face,
            n_outer,
            names: self.system.vars.iter().map(|v| v.name.clone()).collect(),
            vars: Vec::new(),
            sums: BTreeSet::new(),
            carries: BTreeMap::new(),
            order: choices
                .order
                .iter()
                .map(|(v, (o, _))| (*v, o.clone()))
                .collect(),
        };
        for n in 0..original.vars.len() {
            build.var(VarId::from(n)).map_err(|d| vec![d])?;
        }
        let mut vars = std::mem::take(&mut build.vars);
        // Original variables keep their ids; helpers follow, then all are put into body order later.
        vars.sort_by_key(|(id, _)| *id);
        self.sums.extend(build.sums.iter().copied());
        self.system.vars = vars.into_iter().map(|(_, var)| var).collect();
        let outputs = original
            .outputs
            .iter()
            .map(|output| {
                let mut output = output.clone();
                for write in &mut output.writes {
                    let mut read = None;
                    walk(&write.value, &mut |e| {
                        if let Expr::Var { var, .. } = e {
                            read = Some(*var);
                        }
                    });
                    let on = runs
                        .iter()
                        .map(|run| {
                            let face = read.map_or(Face::First, |v| face[&(v, run.dim)]);
                            Cond::cmp(Rel::Eq, run.dim, run.at(face))
                        })
                        .fold(write.when.clone(), Cond::and);
                    write.when = on;
                    write.value = grow(&write.value, &runs);
                }
                output
            })
            .collect();
        self.system.outputs = outputs;
        self.serialise_scans()
    }

    /// The order of every bound iterator.
    fn runs(&self, choices: &Choices) -> Result<Vec<Run>, Diagnostic> {
        let system = &self.system;
        let mut direction = BTreeMap::new();
        for (order, _) in choices.order.values() {
            for (dim, way) in order {
                direction.insert(*dim, *way);
            }
        }
        let mut runs = Vec::new();
        for n in 0..system.bound.len() {
            let dim = DimId::from(system.dims.len() + n);
            let Dim { name, range, span } = &system.bound[n];
            let Some((lo, hi)) = range else {
                return Err(Diagnostic::new(
                    &limits::REDUCE_NEEDS_RANGE,
                    *span,
                    format!("the sum over `{name}` has no range"),
                ));
            };
            let direction = direction.get(&dim).copied().unwrap_or(Direction::Up);
            let (first, last) = match direction {
                Direction::Up => (lo.clone(), hi.plus(-1)),
                Direction::Down => (hi.plus(-1), lo.clone()),
            };
            runs.push(Run {
                dim,
                direction,
                first,
                last,
            });
        }
        Ok(runs)
    }

    fn serialise_scans(&mut self) -> Result<(), Vec<Diagnostic>> {
        for n in 0..self.system.vars.len() {
            let body = self.system.vars[n].body.clone();
            let body = match &body {
                Expr::Scan {
                    op,
                    dim,
                    body,
                    span,
                } => self.extract(n, body, &Cond::TRUE).map(|inner| Expr::Scan {
                    op: *op,
                    dim: *dim,
                    body: Box::new(inner),
                    span: *span,
                }),
                other => self.extract(n, other, &Cond::TRUE),
            };
            self.system.vars[n].body = body.map_err(|d| vec![d])?;
            self.serialise_scan(VarId::from(n)).map_err(|d| vec![d])?;
        }
        Ok(())
    }

    /// A scan inside a larger expression gets a variable of its own, which exists where it is read.
    fn extract(&mut self, home: usize, expr: &Expr, when: &Cond) -> Result<Expr, Diagnostic> {
        match expr {
            Expr::Scan {
                op,
                dim,
                body,
                span,
            } => {
                // A prefix needs all earlier points: a guard along its own line does not restrict it.
                let apart = |c: &Cond| !c.forms().iter().any(|f| f.dims().contains(dim));
                let when: Vec<Cond> = parts(when).into_iter().filter(apart).collect();
                let inner = when.iter().cloned().fold(Cond::TRUE, Cond::and);
                let body = self.extract(home, body, &inner)?;
                let like = self.system.vars[home].clone();
                let ty = type_of(&self.system, &body).unwrap_or(like.ty.clone());
                let id = VarId::from(self.system.vars.len());
                self.system.vars.push(Var {
                    name: fresh(&format!("{}_scan", like.name), |name| {
                        self.system.vars.iter().any(|v| v.name == name)
                    }),
                    ty,
                    on: like.on.iter().cloned().chain(when).collect(),
                    body: Expr::Scan {
                        op: *op,
                        dim: *dim,
                        body: Box::new(body),
                        span: *span,
                    },
                    ..like
                });
                self.serialise_scan(id)?;
                Ok(Expr::Var {
                    var: id,
                    index: self.system.identity_index(),
                    span: *span,
                })
            }
            Expr::Guard {
                cond,
                then,
                otherwise,
            } => {
                let holds = when.clone().and(cond.clone());
                let fails = when.clone().and(cond.clone().negate());
                Ok(Expr::Guard {
                    cond: cond.clone(),
                    then: Box::new(self.extract(home, then, &holds)?),
                    otherwise: match otherwise {
                        Some(e) => Some(Box::new(self.extract(home, e, &fails)?)),
                        None => None,
                    },
                })
            }
            other => map_children(other, &mut |child| self.extract(home, child, when)),
        }
    }

    fn serialise_scan(&mut self, var: VarId) -> Result<(), Diagnostic> {
        let domain = self.system.var_domain(var);
        let identity = self.system.identity_index();
        let this = &mut self.system.vars[var.index()];
        let Expr::Scan {
            op,
            dim,
            body,
            span,
        } = this.body.clone()
        else {
            return Ok(());
        };
        let mut e = vec![Poly::zero(); identity.len()];
        e[dim.index()] = Poly::constant(1);
        // The face of another variable's sum may move along with the iterator.
        for cond in &this.on {
            let Cond::Cmp(Rel::Eq, left, face) = cond else {
                continue;
            };
            let is_left = |d: &DimId| *left == Form::from(*d);
            let Some(d) = (self.n_outer..identity.len())
                .map(DimId::from)
                .find(is_left)
            else {
                continue;
            };
            let there = shift_form(face, &e).map_err(|o| overflow(o, span))?;
            if let Some(moved) = face.sub(&there).as_poly() {
                e[d.index()] = moved.clone();
            }
        }
        let earlier = Expr::Var {
            var,
            index: shifted(&identity, &e),
            span,
        };
        let inside = moved_domain(&domain, &e).map_err(|o| overflow(o, span))?;
        this.body = Expr::guard(inside, combine(op, earlier, (*body).clone()), *body);
        this.law = Law::Reorderable;
        self.sums.insert(var);
        Ok(())
    }
}

/// The conjuncts of a condition.
fn parts(cond: &Cond) -> Vec<Cond> {
    match cond {
        Cond::Const(true) => Vec::new(),
        Cond::And(parts) => parts.clone(),
        other => vec![other.clone()],
    }
}

/// Variable references over the grown index space: the iterators of the sums stay where they are.
fn grow(expr: &Expr, runs: &[Run]) -> Expr {
    let grown = map_expr::<std::convert::Infallible>(expr, &mut |e| {
        Ok(match e {
            Expr::Var {
                var,
                mut index,
                span,
            } => {
                index.extend(runs.iter().map(|r| Form::from(r.dim)));
                Expr::Var { var, index, span }
            }
            other => other,
        })
    });
    match grown {
        Ok(grown) => grown,
    }
}

/// Rebuilds the variables of a system with `reduce` over the grown index space.
struct Build<'a> {
    original: &'a System,
    runs: &'a [Run],
    face: &'a BTreeMap<(VarId, DimId), Face>,
    n_outer: usize,
    names: Vec<String>,
    vars: Vec<(VarId, Var)>,
    sums: BTreeSet<VarId>,
    /// (variable, distance over the outer iterators, faces of the reader) → the variable that carries it.
    carries: BTreeMap<(VarId, Vec<Form>, Vec<DimId>), VarId>,
    /// The order of a variable's sums, innermost first.
    order: BTreeMap<VarId, Vec<(DimId, Direction)>>,
}

impl Build<'_> {
    fn next_id(&self) -> VarId {
        VarId::from(
            self.original.vars.len().max(
                self.vars
                    .iter()
                    .map(|(id, _)| id.index() + 1)
                    .max()
                    .unwrap_or(0),
            ),
        )
    }

    fn fresh_name(&mut self, base: &str) -> String {
        let names = &self.names;
        let name = fresh(base, |n| names.iter().any(|x| x == n));
        self.names.push(name.clone());
        name
    }

    /// `on` conditions that put a variable on its faces, except along `free` iterators.
    fn faces(&self, var: VarId, free: &[DimId]) -> Vec<Cond> {
        self.runs
            .iter()
            .filter(|run| !free.contains(&run.dim))
            .map(|run| Cond::cmp(Rel::Eq, run.dim, run.at(self.face[&(var, run.dim)])))
            .collect()
    }

    fn var(&mut self, id: VarId) -> Result<(), Diagnostic> {
        let var = self.original.vars[id.index()].clone();
        if let Expr::Reduce {
            op,
            dims,
            body,
            span,
        } = &var.body
        {
            let on = var
                .on
                .iter()
                .cloned()
                .chain(self.faces(id, dims))
                .collect::<Vec<_>>();
            let body = self.accumulate(id, *op, dims, body, *span, id, dims, &Cond::TRUE)?;
            self.sums.insert(id);
            self.vars.push((
                id,
                Var {
                    on,
                    body,
                    law: Law::Reorderable,
                    ..var
                },
            ));
            return Ok(());
        }
        let body = self.expr(id, &var.body, &[], &Cond::TRUE)?;
        let on = var.on.iter().cloned().chain(self.faces(id, &[])).collect();
        self.vars.push((id, Var { on, body, ..var }));
        Ok(())
    }

    /// The accumulation `select(first, f, acc(z - e) op f)` of a sum, owned by the variable `acc`.
    fn accumulate(
        &mut self,
        home: VarId,
        op: Combine,
        dims: &[DimId],
        body: &Expr,
        span: Span,
        acc: VarId,
        free: &[DimId],
        when: &Cond,
    ) -> Result<Expr, Diagnostic> {
        let term = self.expr(home, body, free, when)?;
        // Innermost first: as the mapping says, or else the last listed iterator runs fastest.
        let order = self.order.get(&home);
        let mut listed: Vec<DimId> = dims.iter().rev().copied().collect();
        listed.sort_by_key(|d| order.and_then(|o| o.iter().position(|(at, _)| at == d)));
        let runs: Vec<&Run> = listed
            .iter()
            .filter_map(|d| self.runs.iter().find(|r| r.dim == *d))
            .collect();
        for (n, run) in runs.iter().enumerate() {
            for inner in &runs[..n] {
                let depends = [&inner.first, &inner.last]
                    .iter()
                    .any(|f| f.dims().contains(&run.dim));
                if depends {
                    return Err(Diagnostic::new(
                        &limits::SUM_NOT_A_BOX,
                        span,
                        format!(
                            "the range of `{}` depends on `{}`, and one sum runs over both",
                            self.original.dim(inner.dim).name,
                            self.original.dim(run.dim).name
                        ),
                    )
                    .help("write one `reduce` inside the other"));
                }
            }
        }
        // All but the outermost run go back to their first value, by the same distance everywhere.
        let varying = runs.split_last().and_then(|(outermost, inner)| {
            let uneven = |run: &&&Run| run.last.sub(&run.first).as_poly().is_none();
            inner.iter().find(uneven).map(|run| (run, outermost))
        });
        if let Some((run, outermost)) = varying {
            return Err(Diagnostic::new(
                &limits::SUM_NOT_A_BOX,
                span,
                format!(
                    "the number of values of `{}` changes from point to point, and one sum runs over it inside of `{}`",
                    self.original.dim(run.dim).name,
                    self.original.dim(outermost.dim).name
                ),
            )
            .help("let it be the last in `sum … along`, or write one `reduce` inside the other"));
        }
        let n_dims = self.n_outer + self.original.bound.len();
        let identity: Vec<Form> = (0..n_dims).map(|n| Form::from(DimId::from(n))).collect();
        // From the outermost run inwards: step the innermost that is not at its first value, and
        // send all inside it back to their last.
        let mut expr = None;
        for (n, run) in runs.iter().enumerate().rev() {
            let mut index = identity.clone();
            index[run.dim.index()] = Form::from(run.dim).plus(-run.step());
            for inner in &runs[..n] {
                // The inner one is at its first value here, so first − last is the distance.
                let back = inner.last.sub(&inner.first);
                index[inner.dim.index()] = Form::from(inner.dim).add(&back);
            }
            self.stay_on_faces(home, free, &mut index)
                .map_err(|o| overflow(o, span))?;
            let earlier = Expr::Var {
                var: acc,
                index,
                span,
            };
            let step = combine(op, earlier, term.clone());
            expr = Some(match expr {
                None => Expr::guard(
                    runs.iter()
                        .map(|r| r.is_first())
                        .fold(Cond::TRUE, Cond::and),
                    term.clone(),
                    step,
                ),
                Some(outer) => push_in(outer, run, step),
            });
        }
        Ok(expr.unwrap_or(term))
    }

    /// An expression of the variable `home`, seen over the grown index space; `inside` are the
    /// iterators of the sums around it, `when` the guards.
    fn expr(
        &mut self,
        home: VarId,
        expr: &Expr,
        inside: &[DimId],
        when: &Cond,
    ) -> Result<Expr, Diagnostic> {
        Ok(match expr {
            Expr::Reduce {
                op,
                dims,
                body,
                span,
            } => {
                let acc = self.next_id();
                let like = self.original.vars[home.index()].clone();
                let name = self.fresh_name(&format!("{}_sum", like.name));
                // Reserved first, so that nested sums get later ids.
                self.vars.push((
                    acc,
                    Var {
                        name: name.clone(),
                        ..like.clone()
                    },
                ));
                let free: Vec<DimId> = inside.iter().chain(dims).copied().collect();
                let ty = self.type_of_sum(&like.ty, *op, body);
                let body = self.accumulate(home, *op, dims, body, *span, acc, &free, when)?;
                let on = like
                    .on
                    .iter()
                    .cloned()
                    .chain(self.faces(home, &free))
                    .chain(parts(when))
                    .collect();
                if let Some((_, var)) = self.vars.iter_mut().find(|(id, _)| *id == acc) {
                    *var = Var {
                        name,
                        ty,
                        law: Law::Reorderable,
                        on,
                        body,
                        span: *span,
                    };
                }
                self.sums.insert(acc);
                // Outside of the sum the reader sits on the last face, where the sum is complete.
                Expr::Var {
                    var: acc,
                    index: self.identity(),
                    span: *span,
                }
            }
            Expr::Var { var, index, span } => self.reference(home, *var, index, *span, inside)?,
            // A sum under a guard exists where the guard lets it be read.
            Expr::Guard {
                cond,
                then,
                otherwise,
            } => {
                let holds = when.clone().and(cond.clone());
                let fails = when.clone().and(cond.clone().negate());
                Expr::Guard {
                    cond: cond.clone(),
                    then: Box::new(self.expr(home, then, inside, &holds)?),
                    otherwise: match otherwise {
                        Some(e) => Some(Box::new(self.expr(home, e, inside, &fails)?)),
                        None => None,
                    },
                }
            }
            other => {
                return map_children(other, &mut |child| self.expr(home, child, inside, when));
            }
        })
    }

    /// A face may lie at a bound that depends on other iterators: where those move, it moves along.
    fn stay_on_faces(
        &self,
        var: VarId,
        free: &[DimId],
        index: &mut [Form],
    ) -> Result<(), Overflow> {
        for run in self.runs.iter().filter(|run| !free.contains(&run.dim)) {
            let face = run.at(self.face[&(var, run.dim)]);
            let moved = face.substitute(&|d| index.get(d.index()).cloned())?;
            index[run.dim.index()] = Form::from(run.dim).sub(&face.sub(&moved));
        }
        Ok(())
    }

    /// Where a variable has a value at an index, given that `home` has one here.
    fn exists(&self, home: VarId, var: VarId, index: &[Form]) -> Result<Vec<Cond>, Overflow> {
        let known = parts(&self.original.var_domain(home));
        let mut conds = Vec::new();
        for part in parts(&self.original.var_domain(var)) {
            let there = part.map(&|f| f.substitute(&|d| index.get(d.index()).cloned()))?;
            if !known.contains(&there) {
                conds.push(there);
            }
        }
        Ok(conds)
    }

    fn identity(&self) -> Vec<Form> {
        (0..self.n_outer + self.original.bound.len())
            .map(|n| Form::from(DimId::from(n)))
            .collect()
    }

    /// A variable as read by `home`: directly from its face, or carried along the sums around.
    fn reference(
        &mut self,
        home: VarId,
        var: VarId,
        index: &[Form],
        span: Span,
        inside: &[DimId],
    ) -> Result<Expr, Diagnostic> {
        // The faces of the variable at the point it is read from, as seen from a reader on its own.
        let mut direct: Vec<Form> = index.to_vec();
        for run in self.runs {
            let reader = if inside.contains(&run.dim) {
                run.first.clone()
            } else {
                run.at(self.face[&(home, run.dim)])
            };
            let source = run
                .at(self.face[&(var, run.dim)])
                .substitute(&|d| direct.get(d.index()).cloned())
                .map_err(|o| overflow(o, span))?;
            let jump = reader.sub(&source);
            if jump.as_poly().is_none() {
                return Err(Diagnostic::new(
                    &limits::SUM_NOT_A_BOX,
                    span,
                    format!(
                        "`{}` is at one end of the sum over `{}` and is read at the other, and their distance changes from point to point",
                        self.original.vars[var.index()].name,
                        self.original.dim(run.dim).name
                    ),
                )
                .help("give the sum a range of constant or parametric length, with a guard inside"));
            }
            direct.push(Form::from(run.dim).sub(&jump));
        }
        if inside.is_empty() {
            return Ok(Expr::Var {
                var,
                index: direct,
                span,
            });
        }
        let key = (var, index.to_vec(), inside.to_vec());
        let carry = match self.carries.get(&key) {
            Some(carry) => *carry,
            None => {
                let carry = self.next_id();
                let like = self.original.vars[home.index()].clone();
                let source = self.original.vars[var.index()].clone();
                let name = self.fresh_name(&format!("{}_carry", source.name));
                let identity = self.identity();
                // Innermost run first: hand on along the first run that is not at its start.
                let mut body = Expr::Var {
                    var,
                    index: direct,
                    span,
                };
                for dim in inside {
                    let Some(run) = self.runs.iter().find(|r| r.dim == *dim) else {
                        continue;
                    };
                    let mut from = identity.clone();
                    from[dim.index()] = Form::from(*dim).plus(-run.step());
                    self.stay_on_faces(home, inside, &mut from)
                        .map_err(|o| overflow(o, span))?;
                    body = Expr::guard(
                        run.is_first(),
                        body,
                        Expr::Var {
                            var: carry,
                            index: from,
                            span,
                        },
                    );
                }
                let there = self
                    .exists(home, var, index)
                    .map_err(|o| overflow(o, span))?;
                let on = like
                    .on
                    .iter()
                    .cloned()
                    .chain(self.faces(home, inside))
                    .chain(there)
                    .collect();
                self.vars.push((
                    carry,
                    Var {
                        name,
                        ty: source.ty,
                        law: Law::Fixed,
                        on,
                        body,
                        span,
                    },
                ));
                self.carries.insert(key, carry);
                carry
            }
        };
        Ok(Expr::Var {
            var: carry,
            index: self.identity(),
            span,
        })
    }

    fn type_of_sum(&self, home: &Type, op: Combine, body: &Expr) -> Type {
        match op {
            Combine::Fn(f) => self.original.functions[f.index()].result.clone(),
            Combine::Op(_) => type_of(self.original, body).unwrap_or_else(|| home.clone()),
        }
    }
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
