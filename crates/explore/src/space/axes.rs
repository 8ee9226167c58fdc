//! The roles of the iterators of a system: which are parallel, which are summed over, and where
//! inputs are reused.

use systola_ir::array::Role as CellRole;
use systola_ir::form::{Atom, Form, Overflow};
use systola_ir::sets::{identity, system_domain, system_space};
use systola_ir::system::visit::walk;
use systola_ir::system::{Expr, Law, System};
use systola_ir::{DimId, ParamId, VarId};
use systola_lower::dependences::{dependences, input_reads};
use systola_lower::periodic::{rings, unwrapped};
use systola_lower::pipeline::widest;
use systola_lower::roles::role;

/// The role of an iterator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// No value depends on one with another index.
    Parallel,
    /// It is the iterator of a sum.
    Reduced,
    /// Values depend on values with other indices.
    Recurrent,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    pub name: String,
    pub role: Role,
    /// First and last index at the sizes; for a domain that is no box, those of its bounding box.
    pub range: (i128, i128),
    /// The range does not depend on sizes that are still parameters.
    pub constant: bool,
}

impl Axis {
    pub fn extent(&self) -> i128 {
        (self.range.1 - self.range.0 + 1).max(1)
    }
}

/// One read of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// Position among the inputs of the system.
    pub input: usize,
    pub name: String,
    pub bits: u32,
    /// One row for each axis of the input, one column for each iterator; a digit of an iterator
    /// counts as the iterator.
    pub matrix: Vec<Vec<i128>>,
}

impl Read {
    /// Does the address depend on an iterator?
    pub fn uses(&self, axis: usize) -> bool {
        self.matrix.iter().any(|row| row[axis] != 0)
    }

    /// Is the address the same at z and z + e?
    pub fn ignores(&self, e: &[i128]) -> bool {
        let product = |row: &Vec<i128>| -> i128 { row.iter().zip(e).map(|(a, e)| a * e).sum() };
        self.matrix.iter().all(|row| product(row) == 0)
    }
}

/// A dependence: a value at z needs another one at z − e.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distance {
    pub sink: usize,
    pub source: usize,
    /// Over the iterators of the index space.
    pub e: Vec<i128>,
}

/// The behaviour of a variable along its own recurrence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Along {
    /// It forwards a value.
    Carries,
    /// It sums terms, in any grouping.
    Regroups,
    /// Anything else.
    Computes,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    pub name: String,
    pub along: Along,
}

/// A variable that is a sum, and the iterators it runs over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sum {
    pub var: String,
    pub axes: Vec<usize>,
}

/// The iterators of a system at sizes, those of the index space first, then those of sums.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axes {
    pub list: Vec<Axis>,
    /// The number of iterators of the index space.
    pub n_index: usize,
    pub reads: Vec<Read>,
    /// Where outputs are written, over the iterators of the index space.
    pub writes: Vec<Vec<Vec<i128>>>,
    pub distances: Vec<Distance>,
    /// Periodic iterators.
    pub rings: Vec<usize>,
    /// The distances along periodic iterators without wrap-around; all distances where nothing is
    /// periodic.
    pub on_rings: Vec<Distance>,
    pub sums: Vec<Sum>,
    /// The variables, in body order.
    pub vars: Vec<Variable>,
    /// Bits of the widest scalar in computations.
    pub bits: u32,
}

impl Axes {
    /// `system` may have a batch; `fixed` says which of its parameters are constants in kernels.
    /// None: the iterators have no explicit range, a variable has others, or a number is too large.
    pub fn of(system: &System, sizes: &[i128], fixed: &[bool]) -> Option<Axes> {
        if !system.has_one_space() {
            return None;
        }
        let system = system.expand_batch().ok()?;
        let list = ranges(&system, sizes, fixed)?;
        let distances = distances(&system, sizes)?;
        let rings = rings(&system);
        let on_rings = match unwrapped(&system, &rings) {
            Ok(plain) if !rings.is_empty() => self::distances(&plain, sizes)?,
            _ => distances.clone(),
        };
        let mut axes = Axes {
            n_index: system.dims.len(),
            list,
            reads: reads(&system, sizes)?,
            writes: writes(&system, sizes)?,
            distances,
            rings: rings.iter().map(|r| r.dim.index()).collect(),
            on_rings,
            sums: Vec::new(),
            vars: variables(&system),
            bits: widest(&system),
        };
        for var in &system.vars {
            axes.add_sums(&system, var.name.clone(), &var.body);
        }
        for n in 0..axes.n_index {
            if axes.distances.iter().any(|d| d.e[n] != 0) {
                axes.list[n].role = Role::Recurrent;
            }
        }
        Some(axes)
    }

    pub fn with_role(&self, role: Role) -> impl Iterator<Item = usize> + '_ {
        let is = move |n: &usize| self.list[*n].role == role;
        (0..self.list.len()).filter(is)
    }

    pub fn name(&self, axis: usize) -> &str {
        &self.list[axis].name
    }

    pub fn extent(&self, axis: usize) -> i128 {
        self.list[axis].extent()
    }

    /// Sums over windows of variables do not count as sums: they are unrolled.
    fn add_sums(&mut self, system: &System, var: String, body: &Expr) {
        let mut found = Vec::new();
        walk(body, &mut |expr| {
            if let Expr::Reduce { dims, body, .. } = expr {
                let mut window = false;
                walk(body, &mut |inner| {
                    if let Expr::Var { index, .. } = inner {
                        let used = index.iter().flat_map(Form::dims);
                        window |= used.into_iter().any(|d| d.index() >= system.dims.len());
                    }
                });
                if !window {
                    found.extend(dims.iter().map(|d| d.index()));
                }
            }
        });
        if !found.is_empty() {
            self.sums.push(Sum { var, axes: found });
        }
    }

    /// Is it the iterator of a sum over a window, which is unrolled?
    pub fn is_unrolled(&self, axis: usize) -> bool {
        self.list[axis].role == Role::Reduced && !self.sums.iter().any(|s| s.axes.contains(&axis))
    }
}

fn variables(system: &System) -> Vec<Variable> {
    let along = |n: usize| {
        let var = &system.vars[n];
        let mut is_scan = false;
        walk(&var.body, &mut |expr| {
            is_scan |= matches!(expr, Expr::Scan { .. })
        });
        if is_scan {
            return Along::Regroups;
        }
        match role(system, VarId::from(n)) {
            CellRole::Propagation { .. } | CellRole::Carry { .. } => Along::Carries,
            CellRole::Accumulation { op, .. } => {
                let law = system.law_of(op, &var.ty).max(var.law);
                if law >= Law::Associative {
                    Along::Regroups
                } else {
                    Along::Computes
                }
            }
            CellRole::Plain => Along::Computes,
        }
    };
    let vars = system.vars.iter().enumerate();
    vars.map(|(n, var)| Variable {
        name: var.name.clone(),
        along: along(n),
    })
    .collect()
}

fn ranges(system: &System, sizes: &[i128], fixed: &[bool]) -> Option<Vec<Axis>> {
    let known = |p: ParamId| {
        fixed
            .get(p.index())
            .copied()
            .filter(|f| *f)
            .map(|_| sizes[p.index()])
    };
    let constant = |form: &Form| {
        let known = form.fix_params(&known);
        known.is_ok_and(|form| form.as_constant().is_some())
    };
    let mut boxes: Vec<(i128, i128)> = Vec::new();
    let mut list = Vec::new();
    for (n, dim) in system.dims.iter().chain(&system.bound).enumerate() {
        let range = match &dim.range {
            Some((lo, hi)) => (
                interval(lo, sizes, &boxes).ok()?.0,
                interval(hi, sizes, &boxes).ok()?.1 - 1,
            ),
            None => bounds(system, sizes, n)?,
        };
        boxes.push(range);
        list.push(Axis {
            name: dim.name.clone(),
            role: if n < system.dims.len() {
                Role::Parallel
            } else {
                Role::Reduced
            },
            range,
            constant: dim
                .range
                .as_ref()
                .is_some_and(|(lo, hi)| constant(lo) && constant(hi)),
        });
    }
    Some(list)
}

/// The least and the largest value of an iterator in the domain.
fn bounds(system: &System, sizes: &[i128], n: usize) -> Option<(i128, i128)> {
    let places = identity(system_space(system));
    let domain = system_domain(system).ok()?;
    let (lo, hi) = domain.bounds(places.get(n)?, sizes).ok()?;
    lo.zip(hi)
}

/// The least and the largest value of a form over a box.
fn interval(form: &Form, sizes: &[i128], boxes: &[(i128, i128)]) -> Result<(i128, i128), Overflow> {
    let constant = form.constant_part().eval(sizes)?;
    let (mut lo, mut hi) = (constant, constant);
    for (atom, coefficient) in form.terms() {
        let (least, most) = match atom {
            Atom::Dim(d) => boxes.get(d.index()).copied().unwrap_or((0, 0)),
            Atom::Floor(inner, k) => {
                let (least, most) = interval(inner, sizes, boxes)?;
                (least.div_euclid(*k), most.div_euclid(*k))
            }
            Atom::Mod(_, k) => (0, k - 1),
        };
        let c = coefficient.eval(sizes)?;
        let ends = [
            c.checked_mul(least).ok_or(Overflow)?,
            c.checked_mul(most).ok_or(Overflow)?,
        ];
        lo += ends[0].min(ends[1]);
        hi += ends[0].max(ends[1]);
    }
    Ok((lo, hi))
}

/// Coefficients of the iterators; a digit of an iterator counts as the whole iterator.
fn coefficients(form: &Form, sizes: &[i128], n: usize) -> Result<Vec<i128>, Overflow> {
    let mut row = vec![0; n];
    for (atom, coefficient) in form.terms() {
        let c = coefficient.eval(sizes)?;
        match atom {
            Atom::Dim(d) if d.index() < n => row[d.index()] += c,
            Atom::Dim(_) => {}
            Atom::Floor(inner, _) | Atom::Mod(inner, _) => {
                let inner = coefficients(inner, sizes, n)?;
                for (sum, inner) in row.iter_mut().zip(inner) {
                    *sum += c.signum() * inner.signum();
                }
            }
        }
    }
    Ok(row)
}

fn reads(system: &System, sizes: &[i128]) -> Option<Vec<Read>> {
    let n = system.dims.len() + system.bound.len();
    let mut list: Vec<Read> = Vec::new();
    for read in input_reads(system) {
        let input = &system.inputs[read.input.index()];
        let rows = read.index.iter().map(|form| coefficients(form, sizes, n));
        let read = Read {
            input: read.input.index(),
            name: input.name.clone(),
            bits: input.ty.bits(),
            matrix: rows.collect::<Result<_, _>>().ok()?,
        };
        if !list.contains(&read) {
            list.push(read);
        }
    }
    Some(list)
}

fn writes(system: &System, sizes: &[i128]) -> Option<Vec<Vec<Vec<i128>>>> {
    let n = system.dims.len();
    let writes = system.outputs.iter().flat_map(|o| &o.writes);
    writes
        .map(|write| {
            let rows = write.index.iter().map(|f| coefficients(f, sizes, n));
            rows.collect::<Result<_, _>>().ok()
        })
        .collect()
}

fn distances(system: &System, sizes: &[i128]) -> Option<Vec<Distance>> {
    let mut list: Vec<Distance> = Vec::new();
    let mut add = |distance: Distance| {
        if !list.contains(&distance) {
            list.push(distance);
        }
    };
    for dependence in dependences(system)? {
        let e = dependence.distance.iter().map(|p| p.eval(sizes));
        add(Distance {
            sink: dependence.sink.index(),
            source: dependence.source.index(),
            e: e.collect::<Result<_, _>>().ok()?,
        });
    }
    for (n, var) in system.vars.iter().enumerate() {
        walk(&var.body, &mut |expr| {
            if let Expr::Scan { dim, .. } = expr {
                add(Distance {
                    sink: n,
                    source: n,
                    e: unit(system.dims.len(), *dim),
                });
            }
        });
    }
    Some(list)
}

fn unit(n: usize, dim: DimId) -> Vec<i128> {
    (0..n).map(|k| i128::from(k == dim.index())).collect()
}
