//! How large the numbers of index arithmetic get at the sizes of a run.
//!
//! Compiled code computes forms, conditions, loop bounds, extents and distances in integers of 32
//! or 64 bits, in whatever order its printer chose. The sum of the magnitudes of all terms bounds a
//! form, each of its parts and every partial sum of its terms; variables are bounded by their
//! ranges. All bounds are computed exactly here, so that a run whose numbers do not fit is refused
//! before it is launched.

use std::cell::Cell;

use crate::form::{Atom, Cond, Form, Poly};
use crate::id::KernelId;
use crate::kernel::visit::walk;
use crate::kernel::{Access, Host, Kernel, Memory, Op, Program, Stmt, VarKind};

/// The largest magnitude that index arithmetic in 32 bits may reach. The margin is room for one
/// step of a loop and for an offset by some elements.
pub const NARROW: i128 = (1 << 31) - (1 << 20);

/// The same for 64 bits. Printers may split a form into a part that is the same in all lanes and a
/// 32-bit rest.
pub const WIDE: i128 = (1 << 63) - (1 << 34);

/// Flags and dynamic block ids count in 32 bits, whatever the width of the indices.
const COUNTER: i128 = i32::MAX as i128;

/// Least and greatest value.
pub type Interval = (i128, i128);

/// An expression whose value can become too large.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excess {
    /// The kernel that computes it; `None` for the host.
    pub kernel: Option<String>,
    pub expression: String,
    /// A bound on its magnitude; `None` where that is more than 2^127.
    pub bound: Option<i128>,
    /// The largest magnitude allowed.
    pub limit: i128,
}

/// The largest magnitude that occurs at these sizes, if all fit into `limit`.
pub fn largest(program: &Program, params: &[i128], limit: i128) -> Result<i128, Excess> {
    let mut most = 0;
    for (param, value) in program.params.iter().zip(params) {
        // Sizes are arguments of every kernel.
        let bound = value.checked_abs();
        most = most.max(within(bound, limit, None, || param.name.clone())?);
    }
    each_launch(program, params, limit, &mut |_, launch| {
        most = most.max(launch.largest()?);
        Ok(())
    })?;
    Ok(most)
}

fn within(
    bound: Option<i128>,
    limit: i128,
    kernel: Option<&Kernel>,
    expression: impl FnOnce() -> String,
) -> Result<i128, Excess> {
    bound.filter(|b| *b <= limit).ok_or_else(|| Excess {
        kernel: kernel.map(|k| k.name.clone()),
        expression: expression(),
        bound,
        limit,
    })
}

/// Calls `look` for every launch of a run at these sizes, with the ranges of the variables.
pub fn each_launch(
    program: &Program,
    params: &[i128],
    limit: i128,
    look: &mut Look<'_>,
) -> Result<(), Excess> {
    let mut host = HostRanges {
        program,
        params,
        limit,
        vars: vec![(0, 0); program.host_vars.len()],
        look,
    };
    host.steps(&program.body)
}

/// What to do with each launch.
pub type Look<'l> = dyn FnMut(KernelId, &mut Launch<'_>) -> Result<(), Excess> + 'l;

struct HostRanges<'a, 'l> {
    program: &'a Program,
    params: &'a [i128],
    limit: i128,
    /// The ranges of the variables of host loops.
    vars: Vec<Interval>,
    look: &'a mut Look<'l>,
}

impl HostRanges<'_, '_> {
    fn steps(&mut self, body: &[Host]) -> Result<(), Excess> {
        for step in body {
            match step {
                Host::Launch { kernel: id, args } => {
                    let kernel = &self.program.kernels[id.index()];
                    let ranges = args.iter().map(|form| self.value(form));
                    let ranges = ranges.collect::<Result<Vec<_>, Excess>>()?;
                    if let Some(mut launch) = Launch::new(self, kernel, &ranges)? {
                        (self.look)(*id, &mut launch)?;
                    }
                }
                Host::For { var, lo, hi, body } => {
                    let range = loop_range(lo, hi, self.params, &self.vars);
                    let range = range.ok_or_else(|| self.excess(lo.first(), None))?;
                    self.vars[var.index()] = range;
                    if range.0 <= range.1 {
                        self.steps(body)?;
                    }
                }
                // Both sides are checked, whether or not they run.
                Host::If {
                    then, otherwise, ..
                } => {
                    self.steps(then)?;
                    self.steps(otherwise)?;
                }
            }
        }
        Ok(())
    }

    /// The range of an argument; the host computes it exactly.
    fn value(&self, form: &Form) -> Result<Interval, Excess> {
        let range = interval(form, self.params, &self.vars);
        let bound = range.and_then(magnitude_of);
        match range {
            Some(range) if bound.is_some_and(|b| b <= self.limit) => Ok(range),
            _ => Err(self.excess(Some(form), bound)),
        }
    }

    fn excess(&self, form: Option<&Form>, bound: Option<i128>) -> Excess {
        let names = self.program.param_names();
        let text = form.map(|f| f.display(&names, &self.program.host_vars).to_string());
        Excess {
            kernel: None,
            expression: text.unwrap_or_else(|| "a bound of a loop".to_string()),
            bound,
            limit: self.limit,
        }
    }
}

fn magnitude_of((least, greatest): Interval) -> Option<i128> {
    Some(least.checked_abs()?.max(greatest.checked_abs()?))
}

fn poly_magnitude(poly: &Poly, params: &[i128]) -> Option<i128> {
    let mut sum = 0i128;
    for (monomial, c) in poly.terms() {
        let mut term = c.checked_abs()?;
        for p in monomial {
            let value = params.get(p.index()).copied().unwrap_or(0);
            term = term.checked_mul(value.checked_abs()?.max(1))?;
        }
        sum = sum.checked_add(term)?;
    }
    Some(sum)
}

/// The range of a form.
fn interval(form: &Form, params: &[i128], dims: &[Interval]) -> Option<Interval> {
    let constant = form.constant_part().eval(params).ok()?;
    let (mut least, mut greatest) = (constant, constant);
    for (atom, coefficient) in form.terms() {
        let (low, high) = match atom {
            Atom::Dim(d) => *dims.get(d.index())?,
            Atom::Floor(inner, c) => {
                let (low, high) = interval(inner, params, dims)?;
                (low.div_euclid(*c), high.div_euclid(*c))
            }
            Atom::Mod(inner, c) => match interval(inner, params, dims)? {
                (low, high) if low == high => (low.rem_euclid(*c), low.rem_euclid(*c)),
                _ => (0, c - 1),
            },
        };
        let c = coefficient.eval(params).ok()?;
        let (a, b) = (c.checked_mul(low)?, c.checked_mul(high)?);
        least = least.checked_add(a.min(b))?;
        greatest = greatest.checked_add(a.max(b))?;
    }
    Some((least, greatest))
}

/// max(lo) … min(hi) − 1. The second bound is smaller than the first for an empty loop.
fn loop_range(lo: &[Form], hi: &[Form], params: &[i128], dims: &[Interval]) -> Option<Interval> {
    let (mut first, mut last) = (i128::MIN, i128::MAX);
    for form in lo {
        first = first.max(interval(form, params, dims)?.0);
    }
    for form in hi {
        last = last.min(interval(form, params, dims)?.1.checked_sub(1)?);
    }
    Some((first, last))
}

/// The ranges of the variables of a kernel in a launch.
pub struct Launch<'a> {
    program: &'a Program,
    kernel: &'a Kernel,
    params: &'a [i128],
    limit: i128,
    dims: Vec<Interval>,
    /// The largest magnitude of the expressions checked so far.
    most: Cell<i128>,
}

impl<'a> Launch<'a> {
    /// `None` where the launch has no block.
    fn new(
        host: &HostRanges<'a, '_>,
        kernel: &'a Kernel,
        args: &[Interval],
    ) -> Result<Option<Launch<'a>>, Excess> {
        let mut launch = Launch {
            program: host.program,
            kernel,
            params: host.params,
            limit: host.limit,
            dims: vec![(0, 0); kernel.vars.len()],
            most: Cell::new(0),
        };
        let of_host = kernel.vars_where(|kind| matches!(kind, VarKind::Host));
        for (var, range) in of_host.zip(args) {
            launch.dims[var.index()] = *range;
            launch.note(range.0.abs().max(range.1.abs()));
        }
        let mut blocks = Some(1i128);
        for (n, var) in kernel.vars.iter().enumerate() {
            if let VarKind::Block { lo, hi } = &var.kind {
                let (first, last) = launch.bounds(lo, hi, 1)?;
                launch.dims[n] = (first, last.max(first));
                let extent = (last - first + 1).max(0);
                blocks = blocks.and_then(|b| b.checked_mul(extent));
            }
        }
        if blocks == Some(0) {
            return Ok(None);
        }
        for (n, var) in kernel.vars.iter().enumerate() {
            match &var.kind {
                VarKind::Warp => launch.dims[n] = (0, i128::from(kernel.warps) - 1),
                VarKind::Lane => launch.dims[n] = (0, i128::from(kernel.lanes) - 1),
                // No two blocks get the same id.
                VarKind::DynamicBlock => {
                    let count = || format!("the number of blocks of `{}`", kernel.name);
                    let count = within(blocks, COUNTER.min(launch.limit), Some(kernel), count)?;
                    launch.dims[n] = (0, count - 1);
                }
                // The variable of a loop is bound where the loop is.
                VarKind::Host | VarKind::Block { .. } | VarKind::Loop => {}
            }
        }
        Ok(Some(launch))
    }

    /// The range of a form over block and host variables.
    pub fn interval(&self, form: &Form) -> Option<Interval> {
        interval(form, self.params, &self.dims)
    }

    /// The largest magnitude in the kernel.
    pub fn largest(&mut self) -> Result<i128, Excess> {
        let kernel = self.kernel;
        let mut seen = Ok(());
        walk(&kernel.body, &mut |stmt| {
            if seen.is_ok() {
                seen = self.stmt(stmt);
            }
        });
        seen.map(|()| self.most.get())
    }

    /// The largest magnitude in a condition over block and host variables, and in everything
    /// checked before.
    pub fn cond(&self, cond: &Cond) -> Result<i128, Excess> {
        match cond {
            Cond::Const(_) => {}
            // Generated code often moves one side to the other.
            Cond::Cmp(_, left, right) => {
                self.form(left)?;
                self.form(right)?;
                self.form(&left.sub(right))?;
            }
            Cond::And(parts) | Cond::Or(parts) => {
                for part in parts {
                    self.cond(part)?;
                }
            }
            Cond::Not(inner) => {
                self.cond(inner)?;
            }
        }
        Ok(self.most.get())
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<(), Excess> {
        match stmt {
            Stmt::Let(_, op) => self.op(op),
            Stmt::LoadWide { from, .. } => self.access(from),
            Stmt::Store { to, .. } | Stmt::StoreWide { to, .. } => self.access(to),
            Stmt::Prefetch { at, .. } => self.access(at),
            Stmt::Copy { to, from, .. } => {
                self.access(to)?;
                self.access(from)
            }
            Stmt::For {
                var, lo, hi, step, ..
            } => {
                let (first, last) = self.bounds(lo, hi, *step)?;
                self.dims[var.index()] = (first, last.max(first));
                Ok(())
            }
            Stmt::If { cond, .. } => self.cond(cond).map(|_| ()),
            Stmt::Signal { flag } => self.access(flag),
            Stmt::Await { flag, at_least } => {
                self.form(at_least)?;
                let most = self.interval(at_least).and_then(magnitude_of);
                within(most, COUNTER, Some(self.kernel), || self.shown(at_least))?;
                self.access(flag)
            }
            Stmt::DynamicBlock { counter, .. } => self.access(counter),
            Stmt::LookBack(look) => {
                let mut chains = look.chains.iter();
                chains.try_for_each(|chain| self.access(&chain.at))
            }
            Stmt::Fault { when, point, .. } => {
                self.cond(when)?;
                point.iter().try_for_each(|form| self.form(form))
            }
            Stmt::Set(..)
            | Stmt::CommitCopies
            | Stmt::WaitCopies { .. }
            | Stmt::Barrier
            | Stmt::SyncWarp
            | Stmt::Comment(_) => Ok(()),
        }
    }

    fn op(&self, op: &Op) -> Result<(), Excess> {
        match op {
            Op::Index(form) | Op::Shuffle { from: form, .. } => self.form(form),
            Op::Choose { cond, .. } => self.cond(cond).map(|_| ()),
            Op::Load { from, .. } => self.access(from),
            Op::Lookup { memory, .. } => {
                let mut product = Some(1i128);
                for extent in self.extents(*memory) {
                    self.form(&extent)?;
                    let own = self.magnitudes(&extent).map(|(sum, _)| sum.max(1));
                    product = product.zip(own).and_then(|(p, m)| p.checked_mul(m));
                }
                self.reached(product, || self.elements(*memory))
            }
            Op::Lit(_)
            | Op::Get(_)
            | Op::Unary(..)
            | Op::Binary(..)
            | Op::Cast(_)
            | Op::Select { .. }
            | Op::LaneShift { .. } => Ok(()),
        }
    }

    /// The range of a variable with these bounds. Its value after the last step must fit too.
    fn bounds(&self, lo: &[Form], hi: &[Form], step: i128) -> Result<Interval, Excess> {
        for form in lo.iter().chain(hi) {
            self.form(form)?;
        }
        let range = loop_range(lo, hi, self.params, &self.dims);
        let after = range.and_then(|(first, last)| {
            let end = last.max(first).checked_add(step)?;
            magnitude_of((first, end))
        });
        self.reached(after, || {
            let end = hi.first().map_or_else(String::new, |form| self.shown(form));
            format!("{end} + {step}")
        })?;
        // The number of iterations is computed too.
        let extent = range.and_then(|(first, last)| last.checked_sub(first)?.checked_add(1));
        self.reached(extent.map(|e| e.max(0)), || {
            let shown = |forms: &[Form]| forms.first().map_or_else(String::new, |f| self.shown(f));
            format!("{} - ({})", shown(hi), shown(lo))
        })?;
        Ok(range.unwrap_or_default())
    }

    fn form(&self, form: &Form) -> Result<(), Excess> {
        self.reached(self.magnitude(form), || self.shown(form))
    }

    fn note(&self, bound: i128) {
        self.most.set(self.most.get().max(bound));
    }

    fn reached(
        &self,
        bound: Option<i128>,
        expression: impl FnOnce() -> String,
    ) -> Result<(), Excess> {
        let bound = within(bound, self.limit, Some(self.kernel), expression)?;
        self.note(bound);
        Ok(())
    }

    fn shown(&self, form: &Form) -> String {
        let vars: Vec<String> = self.kernel.vars.iter().map(|v| v.name.clone()).collect();
        form.display(&self.program.param_names(), &vars).to_string()
    }

    fn elements(&self, memory: Memory) -> String {
        format!("the number of elements of `{}`", self.name(memory))
    }

    fn name(&self, memory: Memory) -> &str {
        match memory {
            Memory::Global(b) => &self.program.buffers[b.index()].name,
            Memory::Shared(s) => &self.kernel.shared[s.index()].name,
        }
    }

    /// The largest magnitude in the computation of a form: of the form itself, and of the forms in
    /// its quotients and remainders.
    fn magnitude(&self, form: &Form) -> Option<i128> {
        self.magnitudes(form).map(|(sum, inside)| sum.max(inside))
    }

    /// Two bounds: the sum of the magnitudes of all terms, which bounds the form itself; and the
    /// largest magnitude inside a quotient or a remainder, which does not propagate further.
    fn magnitudes(&self, form: &Form) -> Option<(i128, i128)> {
        let mut sum = poly_magnitude(form.constant_part(), self.params)?;
        let mut inside = 0;
        for (atom, coefficient) in form.terms() {
            let own = match atom {
                Atom::Dim(d) => magnitude_of(*self.dims.get(d.index())?)?,
                Atom::Floor(inner, c) => {
                    let (whole, deeper) = self.magnitudes(inner)?;
                    inside = inside.max(whole).max(deeper).max(*c);
                    // Whole multiples may be taken out of the quotient, and then each part is
                    // rounded.
                    whole / c + 2
                }
                Atom::Mod(inner, c) => {
                    inside = inside.max(self.magnitude(inner)?);
                    *c
                }
            };
            let c = poly_magnitude(coefficient, self.params)?;
            sum = sum.checked_add(c.checked_mul(own.max(1))?)?;
        }
        Some((sum, inside))
    }

    fn extents(&self, memory: Memory) -> Vec<Form> {
        match memory {
            Memory::Global(b) => self.program.extents(b),
            Memory::Shared(s) => {
                let extents = &self.kernel.shared[s.index()].extents;
                extents.iter().map(|e| Form::from(e.clone())).collect()
            }
        }
    }

    /// Checks the guard, the index along each axis, the strides, and the distance from the first
    /// element, also in bytes.
    fn access(&self, access: &Access) -> Result<(), Excess> {
        self.cond(&access.when)?;
        let memory = access.memory;
        let mut index = access.index.clone();
        if let Memory::Global(b) = memory {
            let axes = &self.program.buffers[b.index()].axes;
            for (form, axis) in index.iter_mut().zip(axes) {
                *form = form.sub(&axis.lo);
            }
        }
        let mut stride = Some(1i128);
        let mut sum = Some(0i128);
        for (form, extent) in index.iter().zip(&self.extents(memory)).rev() {
            self.form(form)?;
            let own = self.magnitudes(form).map(|(sum, _)| sum.max(1));
            let own = own.zip(stride).and_then(|(m, s)| m.checked_mul(s));
            sum = sum.zip(own).and_then(|(sum, own)| sum.checked_add(own));
            let extent = self.magnitudes(extent).map(|(sum, _)| sum.max(1));
            stride = stride.zip(extent).and_then(|(s, e)| s.checked_mul(e));
        }
        let element = || {
            let index: Vec<String> = access.index.iter().map(|form| self.shown(form)).collect();
            let element = format!("{}[{}]", self.name(memory), index.join(", "));
            format!("the distance of {element} from the first element")
        };
        within(sum, self.limit, Some(self.kernel), element)?;
        let ty = match memory {
            Memory::Global(b) => self.program.buffers[b.index()].ty,
            Memory::Shared(s) => self.kernel.shared[s.index()].ty,
        };
        let bytes = sum.and_then(|sum| sum.checked_mul(i128::from(ty.bits().div_ceil(8))));
        within(bytes, WIDE, Some(self.kernel), || {
            format!("{}, in bytes,", element())
        })?;
        self.note(sum.unwrap_or(0));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{BufferId, DimId, ParamId, ValueId};
    use crate::kernel::{Buffer, BufferKind, Size, Var};
    use crate::scalar::Scalar;
    use crate::system::Axis;

    /// A kernel over a lane l < 16, and over blocks b < N if `blocks` is set, with an array y[N] of
    /// f64.
    fn program(blocks: bool, body: Vec<Stmt>) -> Program {
        let n = Form::from(ParamId(0));
        let var = |name: &str, kind| Var {
            name: name.to_string(),
            kind,
        };
        let mut vars = vec![
            var("l", VarKind::Lane),
            var("i", VarKind::Loop),
            var("t", VarKind::DynamicBlock),
        ];
        if blocks {
            let (lo, hi) = (vec![Form::zero()], vec![n.clone()]);
            vars.push(var("b", VarKind::Block { lo, hi }));
        }
        let axis = Axis {
            lo: Form::zero(),
            hi: n,
        };
        Program {
            name: "p".to_string(),
            params: vec![Size {
                name: "N".to_string(),
                fixed: None,
            }],
            context: Vec::new(),
            buffers: vec![Buffer {
                name: "y".to_string(),
                ty: Scalar::F64,
                kind: BufferKind::Output { fill: None },
                axes: vec![axis],
            }],
            kernels: vec![Kernel {
                hints: Default::default(),
                name: "k".to_string(),
                lanes: 16,
                warps: 1,
                vars,
                shared: Vec::new(),
                regs: Vec::new(),
                values: Vec::new(),
                body,
            }],
            host_vars: Vec::new(),
            body: vec![Host::Launch {
                kernel: KernelId(0),
                args: Vec::new(),
            }],
        }
    }

    fn at(body: Vec<Stmt>, n: i128) -> Result<i128, Excess> {
        largest(&program(false, body), &[n], WIDE)
    }

    fn index(form: Form) -> Vec<Stmt> {
        vec![Stmt::Let(ValueId(0), Op::Index(form))]
    }

    fn lane() -> Form {
        Form::from(DimId(0))
    }

    fn times(form: &Form, c: i128) -> Form {
        form.scale(&Poly::constant(c)).unwrap()
    }

    #[test]
    fn all_terms_count_whatever_their_sign() {
        let n = Form::from(ParamId(0));
        let sum = times(&lane(), 3).sub(&times(&n, 2)).plus(1);
        assert_eq!(at(index(sum.clone()), 100), Ok(45 + 200 + 1));
        let excess = at(index(sum), 1 << 62).unwrap_err();
        assert_eq!(excess.expression, "3*l - 2*N + 1");
        assert_eq!(excess.bound, Some(45 + (1 << 63) + 1));
        assert_eq!(excess.kernel.as_deref(), Some("k"));
    }

    #[test]
    fn what_is_divided_counts_whole() {
        let large = times(&lane(), 1 << 61).plus(1);
        let by = (1 << 62) + 1;
        for small in [large.floor_div(by), large.modulo(by)] {
            assert!(at(index(small), 1).is_err());
        }
    }

    #[test]
    fn a_comparison_may_be_moved_to_one_side() {
        let n = Form::from(ParamId(0));
        let cond = Cond::cmp(crate::form::Rel::Lt, n.neg(), lane().add(&n));
        let branch = vec![Stmt::If {
            cond,
            then: Vec::new(),
            otherwise: Vec::new(),
        }];
        assert!(at(branch.clone(), 1 << 61).is_ok());
        assert!(at(branch, 1 << 62).is_err());
    }

    #[test]
    fn loops_may_step_past_their_ends() {
        let body = |hi: i128, step| {
            vec![Stmt::For {
                var: DimId(1),
                lo: vec![Form::zero()],
                hi: vec![Form::from(hi)],
                step,
                body: index(Form::from(DimId(1))),
            }]
        };
        assert_eq!(at(body(10, 4), 1), Ok(9 + 4));
        assert!(at(body(WIDE, 1), 1).is_ok());
        assert!(at(body(WIDE, 1 << 20), 1).is_err());
    }

    #[test]
    fn distances_are_counted_in_bytes_too() {
        let load = |c: i128| {
            let from = Access::new(Memory::Global(BufferId(0)), vec![times(&lane(), c)]);
            let load = Op::Load {
                from,
                otherwise: None,
            };
            vec![Stmt::Let(ValueId(0), load)]
        };
        assert!(at(load(1 << 55), 1).is_ok());
        let excess = at(load(1 << 57), 1).unwrap_err();
        assert!(excess.expression.contains("y[144115188075855872*l]"));
        assert!(excess.expression.contains("bytes"));
    }

    /// Sweeps that alternate between two copies of a field select one by the remainder of a growing
    /// number.
    #[test]
    fn a_remainder_is_no_further_than_its_divisor() {
        let parity = lane().add(&Form::from(ParamId(0))).modulo(2);
        let from = Access::new(Memory::Global(BufferId(0)), vec![times(&parity, 1 << 20)]);
        let load = Op::Load {
            from,
            otherwise: None,
        };
        let most = at(vec![Stmt::Let(ValueId(0), load)], 1 << 40);
        assert_eq!(most, Ok((1 << 40) + 15));
    }

    #[test]
    fn flags_and_dynamic_block_ids_count_in_32_bits() {
        let flag = Access::new(Memory::Global(BufferId(0)), vec![Form::zero()]);
        let at_least = Form::from(ParamId(0));
        let wait = vec![Stmt::Await { flag, at_least }];
        assert!(at(wait.clone(), 1 << 30).is_ok());
        assert!(at(wait, 1 << 31).is_err());
        let dynamic = program(true, index(Form::from(DimId(2))));
        assert_eq!(largest(&dynamic, &[1000], WIDE), Ok(1000));
        let excess = largest(&dynamic, &[1 << 31], WIDE).unwrap_err();
        assert!(excess.expression.contains("blocks"), "{excess:?}");
    }

    #[test]
    fn a_launch_without_blocks_computes_nothing() {
        let none = program(true, index(times(&lane(), 1 << 62)));
        assert!(largest(&none, &[0], WIDE).is_ok());
        assert!(largest(&none, &[1], WIDE).is_err());
    }

    #[test]
    fn numbers_beyond_128_bits_are_refused() {
        let n = Poly::param(ParamId(0));
        let square = n.mul(&n).unwrap().mul(&n).unwrap();
        let excess = at(index(Form::from(square)), 1 << 50).unwrap_err();
        assert_eq!(excess.bound, None);
    }
}
