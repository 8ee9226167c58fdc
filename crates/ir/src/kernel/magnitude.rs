//! A bound of all index arithmetic of a program, as a polynomial of its sizes.
//!
//! [`bounds`](super::bounds) says at given sizes how large index arithmetic gets. A program that is
//! printed for all sizes has to say it by a formula. The magnitude of a form is at most the sum of
//! the magnitudes of its terms, and a variable is bounded by its own bounds, so everything is
//! bounded by polynomials whose coefficients are not negative, and all of them by one that has the
//! greatest coefficient of each monomial. Sizes count with their magnitude, at least 1. The
//! polynomial never is less than what `bounds` finds at any sizes; it may be more.

use std::collections::BTreeMap;

use crate::form::{Atom, Cond, Form, Monomial, Poly};
use crate::id::BufferId;
use crate::kernel::visit::{walk, walk_host};
use crate::kernel::{Access, Host, Kernel, Memory, Op, Program, Stmt, VarKind};

/// Where one of several bounds of a variable is taken, the one that is least at these sizes is.
const TYPICAL: f64 = 1000.0;

/// Σ coefficient · monomial, with coefficients that are not negative.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Magnitude(BTreeMap<Monomial, f64>);

/// The greatest magnitude that index arithmetic of a program can reach, in elements.
pub fn magnitude(program: &Program) -> Magnitude {
    let mut all = Magnitude::default();
    for n in 0..program.params.len() {
        all.join(&Magnitude::poly(&Poly::param(crate::id::ParamId::from(n))));
    }
    for cond in &program.context {
        condition(cond, &[], &mut all);
    }
    for n in 0..program.buffers.len() {
        let extents = program.extents(BufferId::from(n));
        let count = extents.iter().fold(Magnitude::number(1.0), |count, e| {
            count.times(&Magnitude::of(e, &[], &mut all).at_least_one())
        });
        all.join(&count);
    }
    // Arguments of launches, by the kernel. Loops come before what is in them.
    let mut vars = vec![Magnitude::default(); program.host_vars.len()];
    let mut args: Vec<Vec<Magnitude>> = vec![Vec::new(); program.kernels.len()];
    walk_host(&program.body, &mut |step| match step {
        Host::Launch {
            kernel,
            args: forms,
        } => {
            let known = &mut args[kernel.index()];
            known.resize(forms.len(), Magnitude::default());
            for (known, form) in known.iter_mut().zip(forms) {
                known.join(&Magnitude::of(form, &vars, &mut all));
            }
        }
        Host::For { var, lo, hi, .. } => {
            let own = range(lo, hi, 1.0, &vars, &mut all);
            vars[var.index()].join(&own);
        }
        Host::If { cond, .. } => condition(cond, &vars, &mut all),
    });
    for (kernel, args) in program.kernels.iter().zip(&args) {
        KernelMagnitude::new(program, kernel, args, &mut all).look();
    }
    all
}

/// The magnitude of a variable with such bounds, and one step more.
fn range(
    lo: &[Form],
    hi: &[Form],
    step: f64,
    dims: &[Magnitude],
    all: &mut Magnitude,
) -> Magnitude {
    let mut least = |forms: &[Form]| {
        let found: Vec<Magnitude> = forms.iter().map(|f| Magnitude::of(f, dims, all)).collect();
        let value = |m: &Magnitude| m.typical();
        let least = found
            .into_iter()
            .min_by(|a, b| value(a).total_cmp(&value(b)));
        least.unwrap_or_default()
    };
    let (lo, hi) = (least(lo), least(hi));
    // How many there are is computed too.
    all.join(&lo.plus(&hi).plus(&Magnitude::number(step + 1.0)));
    let mut own = lo;
    own.join(&hi);
    own.plus(&Magnitude::number(step))
}

fn condition(cond: &Cond, dims: &[Magnitude], all: &mut Magnitude) {
    match cond {
        Cond::Const(_) => {}
        Cond::Cmp(_, left, right) => {
            // One side is often moved to the other.
            let left = Magnitude::of(left, dims, all);
            let right = Magnitude::of(right, dims, all);
            all.join(&left.plus(&right));
        }
        Cond::And(parts) | Cond::Or(parts) => {
            parts.iter().for_each(|part| condition(part, dims, all));
        }
        Cond::Not(inner) => condition(inner, dims, all),
    }
}

struct KernelMagnitude<'a> {
    program: &'a Program,
    kernel: &'a Kernel,
    dims: Vec<Magnitude>,
    all: &'a mut Magnitude,
}

impl<'a> KernelMagnitude<'a> {
    fn new(
        program: &'a Program,
        kernel: &'a Kernel,
        args: &[Magnitude],
        all: &'a mut Magnitude,
    ) -> KernelMagnitude<'a> {
        let mut dims = vec![Magnitude::default(); kernel.vars.len()];
        let of_host = kernel.vars_where(|kind| matches!(kind, VarKind::Host));
        for (var, own) in of_host.zip(args) {
            dims[var.index()] = own.clone();
        }
        let mut blocks = Magnitude::number(1.0);
        for (n, var) in kernel.vars.iter().enumerate() {
            dims[n] = match &var.kind {
                VarKind::Block { lo, hi } => {
                    let own = range(lo, hi, 1.0, &dims, all);
                    let count = own.plus(&own).plus(&Magnitude::number(1.0));
                    // A coordinate that starts at 0 has no more blocks than its end says.
                    let starts_at_0 = lo.iter().any(|form| *form == Form::zero());
                    blocks = blocks.times(if starts_at_0 { &own } else { &count });
                    own
                }
                VarKind::Warp => Magnitude::number(f64::from(kernel.warps)),
                VarKind::Lane => Magnitude::number(f64::from(kernel.lanes)),
                VarKind::Host | VarKind::Loop | VarKind::DynamicBlock => continue,
            };
        }
        for var in kernel.vars_where(|kind| matches!(kind, VarKind::DynamicBlock)) {
            dims[var.index()] = blocks.clone();
        }
        all.join(&blocks);
        KernelMagnitude {
            program,
            kernel,
            dims,
            all,
        }
    }

    fn look(&mut self) {
        let kernel = self.kernel;
        for shared in &kernel.shared {
            let extents = shared.extents.iter().map(Magnitude::poly);
            let bytes = f64::from(shared.ty.bits().div_ceil(8));
            let count = extents.fold(Magnitude::number(bytes), |count, e| {
                count.times(&e.at_least_one())
            });
            self.all.join(&count);
        }
        walk(&kernel.body, &mut |stmt| self.stmt(stmt));
    }

    fn form(&mut self, form: &Form) {
        Magnitude::of(form, &self.dims, self.all);
    }

    fn cond(&mut self, cond: &Cond) {
        condition(cond, &self.dims, self.all);
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Let(_, op) => self.op(op),
            Stmt::LoadWide { from, .. } => self.access(from),
            Stmt::Store { to, .. } | Stmt::StoreWide { to, .. } => self.access(to),
            Stmt::Prefetch { at, .. } => self.access(at),
            Stmt::Copy { to, from, .. } => {
                self.access(to);
                self.access(from);
            }
            Stmt::For {
                var, lo, hi, step, ..
            } => {
                let own = range(lo, hi, *step as f64, &self.dims, self.all);
                self.dims[var.index()].join(&own);
            }
            Stmt::If { cond, .. } => self.cond(cond),
            Stmt::Signal { flag } => self.access(flag),
            Stmt::Await { flag, at_least } => {
                self.form(at_least);
                self.access(flag);
            }
            Stmt::DynamicBlock { counter, .. } => self.access(counter),
            Stmt::LookBack(look) => {
                let chains = look.chains.iter();
                chains.for_each(|chain| self.access(&chain.at));
            }
            Stmt::Fault { when, point, .. } => {
                self.cond(when);
                point.iter().for_each(|form| self.form(form));
            }
            Stmt::Set(..)
            | Stmt::CommitCopies
            | Stmt::WaitCopies { .. }
            | Stmt::Barrier
            | Stmt::SyncWarp
            | Stmt::Comment(_) => {}
        }
    }

    fn op(&mut self, op: &Op) {
        match op {
            Op::Index(form) | Op::Shuffle { from: form, .. } => self.form(form),
            Op::Choose { cond, .. } => self.cond(cond),
            Op::Load { from, .. } => self.access(from),
            // The number of elements was looked at with the array.
            Op::Lookup { .. }
            | Op::Lit(_)
            | Op::Get(_)
            | Op::Unary(..)
            | Op::Binary(..)
            | Op::Cast(_)
            | Op::Select { .. }
            | Op::LaneShift { .. } => {}
        }
    }

    /// The index along each axis, and the distance from the first element.
    fn access(&mut self, access: &Access) {
        self.cond(&access.when);
        let (index, extents) = match access.memory {
            Memory::Global(b) => {
                let axes = &self.program.buffers[b.index()].axes;
                let index = access.index.iter().zip(axes);
                let index: Vec<Form> = index.map(|(form, axis)| form.sub(&axis.lo)).collect();
                (index, self.program.extents(b))
            }
            Memory::Shared(s) => {
                let extents = &self.kernel.shared[s.index()].extents;
                let extents = extents.iter().map(|e| Form::from(e.clone()));
                (access.index.clone(), extents.collect())
            }
        };
        let mut stride = Magnitude::number(1.0);
        let mut sum = Magnitude::default();
        for (form, extent) in index.iter().zip(&extents).rev() {
            let own = Magnitude::of(form, &self.dims, self.all).at_least_one();
            sum = sum.plus(&own.times(&stride));
            let extent = Magnitude::of(extent, &self.dims, self.all).at_least_one();
            stride = stride.times(&extent);
        }
        self.all.join(&sum);
    }
}

impl Magnitude {
    fn number(c: f64) -> Magnitude {
        Magnitude(BTreeMap::from([(Monomial::default(), c)]))
    }

    /// The coefficient of each product of sizes, which are by their number and ascend.
    pub fn terms(&self) -> impl DoubleEndedIterator<Item = (&Monomial, f64)> {
        self.0.iter().map(|(monomial, c)| (monomial, *c))
    }

    pub fn eval(&self, params: &[i128]) -> f64 {
        let size = |n: usize| params.get(n).map_or(1.0, |p| (*p as f64).abs().max(1.0));
        self.value(size)
    }

    fn typical(&self) -> f64 {
        self.value(|_| TYPICAL)
    }

    fn value(&self, size: impl Fn(usize) -> f64) -> f64 {
        let term = |(monomial, c): (&Monomial, f64)| {
            monomial
                .iter()
                .fold(c, |product, p| product * size(p.index()))
        };
        self.terms().map(term).sum()
    }

    fn poly(poly: &Poly) -> Magnitude {
        let terms = poly.terms();
        Magnitude(
            terms
                .map(|(monomial, c)| (monomial.clone(), (c as f64).abs()))
                .collect(),
        )
    }

    /// That of a form, whose parts count for `all`.
    fn of(form: &Form, dims: &[Magnitude], all: &mut Magnitude) -> Magnitude {
        let mut sum = Magnitude::poly(form.constant_part());
        for (atom, coefficient) in form.terms() {
            let own = match atom {
                Atom::Dim(d) => dims.get(d.index()).cloned().unwrap_or_default(),
                Atom::Floor(inner, c) => {
                    let whole = Magnitude::of(inner, dims, all);
                    all.join(&Magnitude::number(*c as f64));
                    // Whole multiples may be taken out of it, and then each part is rounded.
                    let part = whole.times(&Magnitude::number(1.0 / *c as f64));
                    part.plus(&Magnitude::number(2.0))
                }
                Atom::Mod(inner, c) => {
                    Magnitude::of(inner, dims, all);
                    Magnitude::number(*c as f64)
                }
            };
            sum = sum.plus(&Magnitude::poly(coefficient).times(&own.at_least_one()));
        }
        all.join(&sum);
        sum
    }

    /// Something that neither of the two exceeds.
    fn join(&mut self, other: &Magnitude) {
        for (monomial, c) in &other.0 {
            let own = self.0.entry(monomial.clone()).or_default();
            *own = own.max(*c);
        }
    }

    fn at_least_one(mut self) -> Magnitude {
        self.join(&Magnitude::number(1.0));
        self
    }

    fn plus(&self, other: &Magnitude) -> Magnitude {
        let mut sum = self.clone();
        for (monomial, c) in &other.0 {
            *sum.0.entry(monomial.clone()).or_default() += c;
        }
        sum
    }

    fn times(&self, other: &Magnitude) -> Magnitude {
        let mut product = Magnitude::default();
        for (a, c) in &self.0 {
            for (b, d) in &other.0 {
                let mut both: Monomial = a.iter().chain(b.iter()).copied().collect();
                both.sort_unstable();
                *product.0.entry(both).or_default() += c * d;
            }
        }
        product
    }
}
