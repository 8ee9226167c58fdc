//! Serialises sums: `reduce` and `scan` become accumulations.
//!
//! The iterators of the sums join the index space. A sum is complete on the *last* face of each of
//! its iterators; a variable that does not need the sum lives on the *first*, and is carried along
//! them where the body of the sum reads it.

use std::collections::{BTreeMap, BTreeSet};

use systola_ir::codes::limits;
use systola_ir::form::{Cond, Form, Overflow, Rel};
use systola_ir::mapping::Direction;
use systola_ir::system::visit::{map_children, map_expr, walk};
use systola_ir::system::{Combine, Dim, Expr, Law, System, Var};
use systola_ir::{Diagnostic, DimId, Span, Type, VarId};

use super::named::contains;
use super::typing::type_of;
use super::{Choices, Pass, fresh, overflow};

mod scans;
mod stages;

/// Where a variable lives along an iterator that only a sum runs over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Face {
    First,
    Last,
}

/// By variable and iterator.
type Faces = BTreeMap<(VarId, DimId), Face>;

/// How one bound iterator runs.
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

    fn is_last(&self) -> Cond {
        Cond::cmp(Rel::Eq, self.dim, self.last.clone())
    }

    fn is_first(&self) -> Cond {
        Cond::cmp(Rel::Eq, self.dim, self.first.clone())
    }

    /// Does the number of its values change from point to point?
    fn varies(&self) -> bool {
        self.last.sub(&self.first).as_poly().is_none()
    }
}

/// A `reduce` of the variable `home`.
struct Sum<'e> {
    home: VarId,
    op: Combine,
    dims: &'e [DimId],
    body: &'e Expr,
    span: Span,
    /// The iterators of this sum and of the sums around it.
    free: &'e [DimId],
}

/// A reference of the variable `home` to `var`, inside the sums over some iterators.
#[derive(Clone, Copy)]
struct Reference<'e> {
    home: VarId,
    var: VarId,
    index: &'e [Form],
    span: Span,
    inside: &'e [DimId],
}

impl Pass {
    pub(super) fn serialise(&mut self, choices: &Choices) -> Result<(), Vec<Diagnostic>> {
        if self.system.bound.is_empty() {
            return self.serialise_scans();
        }
        let n_outer = self.system.dims.len();
        let runs = self.runs(choices).map_err(|d| vec![d])?;
        let original = self.system.clone();
        let faces = faces(&original, &runs);
        self.grow_index_space(&runs);
        let mut build = Build {
            original: &original,
            runs: &runs,
            faces: &faces,
            n_outer,
            names: original.vars.iter().map(|v| v.name.clone()).collect(),
            vars: Vec::new(),
            sums: BTreeSet::new(),
            carries: BTreeMap::new(),
            stages: choices
                .order
                .iter()
                .map(|(v, (stages, _))| (*v, stages.as_slice()))
                .collect(),
            present: &choices.present,
        };
        for n in 0..original.vars.len() {
            build.var(VarId::from(n)).map_err(|d| vec![d])?;
        }
        let mut vars = build.vars;
        // Original variables keep their ids and helpers follow; the body order is determined later.
        vars.sort_by_key(|(id, _)| *id);
        self.sums.extend(build.sums);
        self.system.vars = vars.into_iter().map(|(_, var)| var).collect();
        self.write_on_faces(&runs, &faces);
        self.serialise_scans()
    }

    /// The iterators of the sums join the index space; the ids stay what they are.
    fn grow_index_space(&mut self, runs: &[Run]) {
        let bound = std::mem::take(&mut self.system.bound);
        self.system.dims.extend(bound);
        for run in runs {
            let (lo, hi) = match run.direction {
                Direction::Up => (run.first.clone(), run.last.plus(1)),
                Direction::Down => (run.last.clone(), run.first.plus(1)),
            };
            self.system.dims[run.dim.index()].range = Some((lo, hi));
        }
    }

    /// An output is written on the faces of the variable that it reads.
    fn write_on_faces(&mut self, runs: &[Run], faces: &Faces) {
        let outputs = self.system.outputs.iter_mut();
        for write in outputs.flat_map(|output| &mut output.writes) {
            let mut read = None;
            walk(&write.value, &mut |e| {
                if let Expr::Var { var, .. } = e {
                    read = Some(*var);
                }
            });
            for run in runs {
                let face = read.map_or(Face::First, |v| faces[&(v, run.dim)]);
                let on = Cond::cmp(Rel::Eq, run.dim, run.at(face));
                write.when = std::mem::replace(&mut write.when, Cond::TRUE).and(on);
            }
            write.value = grow(&write.value, runs);
        }
    }

    /// The order of every bound iterator.
    fn runs(&self, choices: &Choices) -> Result<Vec<Run>, Diagnostic> {
        let system = &self.system;
        let mut direction = BTreeMap::new();
        for (dim, way) in choices.order.values().flat_map(|(s, _)| s.iter().flatten()) {
            direction.insert(*dim, *way);
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
}

fn faces(system: &System, runs: &[Run]) -> Faces {
    let mut faces = Faces::new();
    for run in runs {
        let last = needing_sum(system, run);
        for var in (0..system.vars.len()).map(VarId::from) {
            let face = if last.contains(&var) {
                Face::Last
            } else {
                Face::First
            };
            faces.insert((var, run.dim), face);
        }
    }
    faces
}

/// The variables whose values need the finished sum over the iterator of a run.
fn needing_sum(system: &System, run: &Run) -> BTreeSet<VarId> {
    // Between faces whose distance changes from point to point no value can be passed on.
    let varies = run.varies();
    let here = system.identity_index();
    let mut needing = BTreeSet::new();
    loop {
        let before = needing.len();
        for (n, var) in system.vars.iter().enumerate() {
            let needs = |e: &Expr| match e {
                Expr::Reduce { dims, .. } => dims.contains(&run.dim),
                Expr::Var { var, index, .. } => needing.contains(var) && (varies || *index == here),
                _ => false,
            };
            if contains(&var.body, &needs) {
                needing.insert(VarId::from(n));
            }
        }
        if needing.len() == before {
            return needing;
        }
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

/// Extends variable references to the grown index space: the iterators of the sums are unchanged.
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

/// What a carry holds: the variable, the index at which it is read, and the sums around it.
type Carried = (VarId, Vec<Form>, Vec<DimId>);

/// Rebuilds the variables of a system with `reduce` over the grown index space.
struct Build<'a> {
    original: &'a System,
    runs: &'a [Run],
    faces: &'a Faces,
    n_outer: usize,
    names: Vec<String>,
    vars: Vec<(VarId, Var)>,
    sums: BTreeSet<VarId>,
    /// The variables that carry a value, each with its domain; readers with another domain use
    /// another variable.
    carries: BTreeMap<Carried, Vec<(Vec<Cond>, VarId)>>,
    /// The stages of a variable's sums.
    stages: BTreeMap<VarId, &'a [Vec<(DimId, Direction)>]>,
    /// Where the sums have terms.
    present: &'a [Cond],
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
    fn on_faces(&self, var: VarId, free: &[DimId]) -> Vec<Cond> {
        self.runs
            .iter()
            .filter(|run| !free.contains(&run.dim))
            .map(|run| Cond::cmp(Rel::Eq, run.dim, run.at(self.faces[&(var, run.dim)])))
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
            let on = [var.on.clone(), self.on_faces(id, dims)].concat();
            let sum = Sum {
                home: id,
                op: *op,
                dims,
                body,
                span: *span,
                free: dims,
            };
            let whole = Var {
                law: Law::Reorderable,
                on,
                ..var.clone()
            };
            return self.add_sum(&sum, id, whole, &Cond::TRUE);
        }
        let body = self.expr(id, &var.body, &[], &Cond::TRUE)?;
        let on = var
            .on
            .iter()
            .cloned()
            .chain(self.on_faces(id, &[]))
            .collect();
        self.vars.push((id, Var { on, body, ..var }));
        Ok(())
    }

    /// An expression of the variable `home`, over the grown index space; `inside` are the iterators
    /// of the sums around it, `when` the guards.
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
                let free: Vec<DimId> = inside.iter().chain(dims).copied().collect();
                let sum = Sum {
                    home,
                    op: *op,
                    dims,
                    body,
                    span: *span,
                    free: &free,
                };
                self.inner_sum(&sum, when)?
            }
            Expr::Var { var, index, span } => self.reference(Reference {
                home,
                var: *var,
                index,
                span: *span,
                inside,
            })?,
            // A sum under a guard exists only where the guard holds.
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

    /// A sum inside a larger expression gets a variable of its own.
    fn inner_sum(&mut self, sum: &Sum<'_>, when: &Cond) -> Result<Expr, Diagnostic> {
        let acc = self.next_id();
        let like = self.original.vars[sum.home.index()].clone();
        let name = self.fresh_name(&format!("{}_sum", like.name));
        let ty = self.type_of_sum(&like.ty, sum.op, sum.body);
        let faces = self.on_faces(sum.home, sum.free);
        let whole = Var {
            name,
            ty,
            law: Law::Reorderable,
            own: None,
            on: [like.on, faces, parts(when)].concat(),
            body: like.body,
            span: sum.span,
        };
        self.add_sum(sum, acc, whole, when)?;
        // Outside the sum the reader is on the last face, where the sum is complete.
        Ok(Expr::Var {
            var: acc,
            index: self.identity(),
            span: sum.span,
        })
    }

    /// A face may lie at a bound that depends on other iterators: where those move, the face moves
    /// along.
    fn stay_on_faces(
        &self,
        var: VarId,
        free: &[DimId],
        index: &mut [Form],
    ) -> Result<(), Overflow> {
        for run in self.runs.iter().filter(|run| !free.contains(&run.dim)) {
            let face = run.at(self.faces[&(var, run.dim)]);
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

    /// A variable as its reader sees it: directly from its face, or carried along the sums around
    /// it.
    fn reference(&mut self, read: Reference<'_>) -> Result<Expr, Diagnostic> {
        let source = self.on_source_faces(read)?;
        let direct = Expr::Var {
            var: read.var,
            index: source.clone(),
            span: read.span,
        };
        if read.inside.is_empty() {
            return Ok(direct);
        }
        let on = self.carry_domain(read)?;
        let key = (read.var, source, read.inside.to_vec());
        let known = self.carries.get(&key).into_iter().flatten();
        let carry = match known.clone().find(|(domain, _)| *domain == on) {
            Some((_, carry)) => *carry,
            None => {
                let carry = self.add_carry(read, on.clone(), direct)?;
                self.carries.entry(key).or_default().push((on, carry));
                carry
            }
        };
        Ok(Expr::Var {
            var: carry,
            index: self.identity(),
            span: read.span,
        })
    }

    /// The index of the variable on its own faces, from the faces of the reader.
    fn on_source_faces(&self, read: Reference<'_>) -> Result<Vec<Form>, Diagnostic> {
        let mut direct: Vec<Form> = read.index.to_vec();
        for run in self.runs {
            let reader = if read.inside.contains(&run.dim) {
                run.first.clone()
            } else {
                run.at(self.faces[&(read.home, run.dim)])
            };
            let source = run
                .at(self.faces[&(read.var, run.dim)])
                .substitute(&|d| direct.get(d.index()).cloned())
                .map_err(|o| overflow(o, read.span))?;
            let jump = reader.sub(&source);
            if jump.as_poly().is_none() {
                let why = format!(
                    "`{}` is at one end of the sum over `{}` and is read at the other, and their distance changes from point to point",
                    self.original.vars[read.var.index()].name,
                    self.original.dim(run.dim).name
                );
                return Err(
                    Diagnostic::new(&limits::SUM_NOT_A_BOX, read.span, why).help(
                        "give the sum a range of constant or parametric length, with a guard inside",
                    ),
                );
            }
            direct.push(Form::from(run.dim).sub(&jump));
        }
        Ok(direct)
    }

    /// The points of the reader at which the variable exists.
    fn carry_domain(&self, read: Reference<'_>) -> Result<Vec<Cond>, Diagnostic> {
        let there = self
            .exists(read.home, read.var, read.index)
            .map_err(|o| overflow(o, read.span))?;
        let like = self.original.vars[read.home.index()].on.clone();
        Ok([like, self.on_faces(read.home, read.inside), there].concat())
    }

    fn add_carry(
        &mut self,
        read: Reference<'_>,
        on: Vec<Cond>,
        direct: Expr,
    ) -> Result<VarId, Diagnostic> {
        let Reference { home, span, .. } = read;
        let carry = self.next_id();
        let source = self.original.vars[read.var.index()].clone();
        let name = self.fresh_name(&format!("{}_carry", source.name));
        // Innermost run first: pass the value on along the first run that is not at its start.
        let mut body = direct;
        for dim in read.inside {
            let Some(run) = self.runs.iter().find(|r| r.dim == *dim) else {
                continue;
            };
            let mut index = self.identity();
            index[dim.index()] = Form::from(*dim).plus(-run.step());
            self.stay_on_faces(home, read.inside, &mut index)
                .map_err(|o| overflow(o, span))?;
            let var = carry;
            body = Expr::guard(run.is_first(), body, Expr::Var { var, index, span });
        }
        let var = Var {
            name,
            ty: source.ty,
            law: Law::Fixed,
            own: None,
            on,
            body,
            span,
        };
        self.vars.push((carry, var));
        Ok(carry)
    }

    fn type_of_sum(&self, home: &Type, op: Combine, body: &Expr) -> Type {
        match op {
            Combine::Fn(f) => self.original.functions[f.index()].result.clone(),
            Combine::Op(_) => type_of(self.original, body).unwrap_or_else(|| home.clone()),
        }
    }
}
