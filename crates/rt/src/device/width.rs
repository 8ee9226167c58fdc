//! Do indices of 32 bits suffice?
//!
//! Every index expression of a kernel is a form, a part of one, or the distance of an element from the first
//! of its array. The sum of the magnitudes of all terms bounds each of them, and all that is computed on the way.
//! Variables are bounded by their ranges at the sizes of the run.

use systola_ir::form::{Atom, Cond, Form, Poly};
use systola_ir::kernel::visit::walk;
use systola_ir::kernel::{Access, Host, Kernel, Memory, Op, Program, Stmt, VarKind};

/// The type of indices in compiled code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Width {
    /// 32 bits.
    Narrow,
    /// 64 bits.
    Wide,
}

/// Bytes that an argument of this width takes are written into the low end of 8.
impl Width {
    pub(crate) fn encode(self, value: i64) -> u64 {
        match self {
            Width::Narrow => u64::from((value as i32) as u32),
            Width::Wide => value as u64,
        }
    }
}

/// The greatest magnitude of an index of 32 bits, with room for a step of a loop.
const MOST: i128 = (1 << 31) - (1 << 20);

/// Least and greatest value.
type Interval = (i128, i128);

/// The width that a run at these sizes needs.
pub(crate) fn needed(program: &Program, params: &[i128]) -> Width {
    if each_launch(program, params, &mut |_, ranges| ranges.kernel_fits()).is_some() {
        Width::Narrow
    } else {
        Width::Wide
    }
}

/// Looks at every launch of a run at these sizes: the number of its kernel, and the ranges of its variables. `None`: a look gave
/// that, or some range leaves 32 bits.
pub(crate) fn each_launch(
    program: &Program,
    params: &[i128],
    look: &mut dyn FnMut(usize, &mut Ranges<'_>) -> Option<()>,
) -> Option<()> {
    let mut search = Search {
        program,
        params,
        host: vec![(0, 0); program.host_vars.len()],
        look,
    };
    search.steps(&program.body)
}

struct Search<'a> {
    program: &'a Program,
    params: &'a [i128],
    /// Of the variables of host loops.
    host: Vec<Interval>,
    look: &'a mut dyn FnMut(usize, &mut Ranges<'_>) -> Option<()>,
}

impl Search<'_> {
    fn steps(&mut self, body: &[Host]) -> Option<()> {
        for step in body {
            match step {
                Host::Launch { kernel, args } => {
                    let n = kernel.index();
                    let kernel = &self.program.kernels[n];
                    let args: Vec<Interval> = args
                        .iter()
                        .map(|form| interval(form, self.params, &self.host))
                        .collect::<Option<_>>()?;
                    let mut ranges = Ranges::new(self.program, kernel, self.params, &args)?;
                    (self.look)(n, &mut ranges)?;
                }
                Host::For { var, lo, hi, body } => {
                    let range = loop_range(lo, hi, self.params, &self.host)?;
                    self.host[var.index()] = range;
                    if range.0 <= range.1 {
                        self.steps(body)?;
                    }
                }
                // Either side, whether or not it is taken.
                Host::If {
                    then, otherwise, ..
                } => {
                    self.steps(then)?;
                    self.steps(otherwise)?;
                }
            }
        }
        Some(())
    }
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

/// max(lo) … min(hi) − 1; the second is smaller where there is nothing.
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

/// What the variables of a kernel can be in a launch.
pub(crate) struct Ranges<'a> {
    program: &'a Program,
    kernel: &'a Kernel,
    params: &'a [i128],
    dims: Vec<Interval>,
}

impl<'a> Ranges<'a> {
    fn new(
        program: &'a Program,
        kernel: &'a Kernel,
        params: &'a [i128],
        args: &[Interval],
    ) -> Option<Ranges<'a>> {
        let mut ranges = Ranges {
            program,
            kernel,
            params,
            dims: vec![(0, 0); kernel.vars.len()],
        };
        let mut args = args.iter();
        for (n, var) in kernel.vars.iter().enumerate() {
            if matches!(var.kind, VarKind::Host) {
                ranges.dims[n] = *args.next()?;
            }
        }
        for (n, var) in kernel.vars.iter().enumerate() {
            ranges.dims[n] = match &var.kind {
                VarKind::Host => continue,
                VarKind::Block { lo, hi } => {
                    for form in lo.iter().chain(hi) {
                        ranges.form_fits(form)?;
                    }
                    let (first, last) = loop_range(lo, hi, params, &ranges.dims)?;
                    (first, last.max(first))
                }
                VarKind::Warp => (0, i128::from(kernel.warps) - 1),
                VarKind::Lane => (0, i128::from(kernel.lanes) - 1),
                // Bound below, where the loop is.
                VarKind::Loop => (0, 0),
                // No more than there are blocks.
                VarKind::Ticket => (0, MOST),
            };
        }
        Some(ranges)
    }

    /// The range of a form of block and host variables.
    pub(crate) fn interval(&self, form: &Form) -> Option<(i128, i128)> {
        interval(form, self.params, &self.dims)
    }

    fn kernel_fits(&mut self) -> Option<()> {
        let kernel = self.kernel;
        let mut fits = Some(());
        walk(&kernel.body, &mut |stmt| {
            if fits.is_some() {
                fits = self.stmt_fits(stmt);
            }
        });
        fits
    }

    fn stmt_fits(&mut self, stmt: &Stmt) -> Option<()> {
        match stmt {
            Stmt::Let(_, op) => self.op_fits(op),
            Stmt::LoadWide { from, .. } => self.access_fits(from),
            Stmt::Store { to, .. } | Stmt::StoreWide { to, .. } => self.access_fits(to),
            Stmt::Copy { to, from, .. } => {
                self.access_fits(to)?;
                self.access_fits(from)
            }
            Stmt::For {
                var, lo, hi, step, ..
            } => {
                for form in lo.iter().chain(hi) {
                    self.form_fits(form)?;
                }
                let (first, last) = loop_range(lo, hi, self.params, &self.dims)?;
                self.dims[var.index()] = (first, last.max(first));
                (*step < 1 << 20).then_some(())
            }
            Stmt::If { cond, .. } => self.cond_fits(cond),
            Stmt::Signal { flag } => self.access_fits(flag),
            Stmt::Await { flag, at_least } => {
                self.form_fits(at_least)?;
                self.access_fits(flag)
            }
            Stmt::Ticket { counter, .. } => self.access_fits(counter),
            Stmt::Fault { when, point, .. } => {
                self.cond_fits(when)?;
                point.iter().try_for_each(|form| self.form_fits(form))
            }
            Stmt::Set(..)
            | Stmt::CommitCopies
            | Stmt::WaitCopies { .. }
            | Stmt::Barrier
            | Stmt::Comment(_) => Some(()),
        }
    }

    fn op_fits(&self, op: &Op) -> Option<()> {
        match op {
            Op::Index(form) | Op::Shuffle { from: form, .. } => self.form_fits(form),
            Op::Choose { cond, .. } => self.cond_fits(cond),
            Op::Load { from, .. } => self.access_fits(from),
            Op::Lookup { memory, .. } => self.volume(*memory).map(|_| ()),
            Op::Lit(_)
            | Op::Get(_)
            | Op::Unary(..)
            | Op::Binary(..)
            | Op::Cast(_)
            | Op::Select { .. }
            | Op::Slide { .. } => Some(()),
        }
    }

    fn cond_fits(&self, cond: &Cond) -> Option<()> {
        cond.forms()
            .into_iter()
            .try_for_each(|form| self.form_fits(form))
    }

    fn form_fits(&self, form: &Form) -> Option<()> {
        self.magnitude(form).map(|_| ())
    }

    /// The sum of the magnitudes of all terms, if it fits.
    fn magnitude(&self, form: &Form) -> Option<i128> {
        let mut sum = poly_magnitude(form.constant_part(), self.params)?;
        for (atom, coefficient) in form.terms() {
            let own = match atom {
                Atom::Dim(d) => {
                    let (least, greatest) = *self.dims.get(d.index())?;
                    least.checked_abs()?.max(greatest.checked_abs()?)
                }
                Atom::Floor(inner, c) => self.magnitude(inner)? / c + 1,
                Atom::Mod(inner, c) => {
                    self.magnitude(inner)?;
                    *c
                }
            };
            let c = poly_magnitude(coefficient, self.params)?;
            sum = sum.checked_add(c.checked_mul(own.max(1))?)?;
        }
        (sum <= MOST).then_some(sum)
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

    /// Elements of a memory, if they and their bytes can be counted.
    fn volume(&self, memory: Memory) -> Option<i128> {
        let mut product = 1i128;
        for extent in self.extents(memory) {
            product = product.checked_mul(self.magnitude(&extent)?.max(1))?;
        }
        (product <= MOST).then_some(product)
    }

    fn access_fits(&self, access: &Access) -> Option<()> {
        self.cond_fits(&access.when)?;
        let mut stride = 1i128;
        let mut sum = 0i128;
        let mut index = access.index.clone();
        if let Memory::Global(b) = access.memory {
            let axes = &self.program.buffers[b.index()].axes;
            for (form, axis) in index.iter_mut().zip(axes) {
                *form = form.sub(&axis.lo);
            }
        }
        for (form, extent) in index.iter().zip(&self.extents(access.memory)).rev() {
            let own = self.magnitude(form)?.checked_mul(stride)?;
            sum = sum.checked_add(own).filter(|sum| *sum <= MOST)?;
            stride = stride.checked_mul(self.magnitude(extent)?.max(1))?;
        }
        Some(())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use systola_ir::ParamId;
    use systola_ir::kernel::{Buffer, BufferKind, Size, Value, Var};
    use systola_ir::system::Axis;
    use systola_ir::{BufferId, DimId, KernelId, Scalar, ValueId};

    use super::*;

    /// y[N·b + i] = i, for all blocks b < N and i < N.
    pub(in super::super) fn square() -> Program {
        let n = Form::from(ParamId(0));
        let (b, i) = (Form::from(DimId(0)), Form::from(DimId(1)));
        let var = |name: &str, kind| Var {
            name: name.to_string(),
            kind,
        };
        let block = VarKind::Block {
            lo: vec![Form::zero()],
            hi: vec![n.clone()],
        };
        let y = Memory::Global(BufferId(0));
        let store = Stmt::Store {
            to: Access::new(y, vec![b, i.clone()]),
            value: ValueId(0),
        };
        let body = vec![Stmt::For {
            var: DimId(1),
            lo: vec![Form::zero()],
            hi: vec![n.clone()],
            step: 1,
            body: vec![Stmt::Let(ValueId(0), Op::Index(i)), store],
        }];
        let axis = Axis {
            lo: Form::zero(),
            hi: n,
        };
        Program {
            name: "square".to_string(),
            params: vec![Size {
                name: "N".to_string(),
                fixed: None,
            }],
            context: Vec::new(),
            buffers: vec![Buffer {
                name: "y".to_string(),
                ty: Scalar::I64,
                kind: BufferKind::Output { fill: None },
                axes: vec![axis.clone(), axis],
            }],
            kernels: vec![Kernel {
                name: "square".to_string(),
                lanes: 1,
                warps: 1,
                vars: vec![var("b", block), var("i", VarKind::Loop)],
                shared: Vec::new(),
                regs: Vec::new(),
                values: vec![Value {
                    name: "v".to_string(),
                    ty: Scalar::I64,
                    shape: systola_ir::kernel::Shape::Uniform,
                }],
                body,
            }],
            host_vars: Vec::new(),
            body: vec![Host::Launch {
                kernel: KernelId(0),
                args: Vec::new(),
            }],
        }
    }

    #[test]
    fn distances_decide() {
        let program = square();
        assert_eq!(needed(&program, &[8192]), Width::Narrow);
        assert_eq!(needed(&program, &[46_000]), Width::Narrow);
        assert_eq!(needed(&program, &[47_000]), Width::Wide);
        assert_eq!(needed(&program, &[1 << 40]), Width::Wide);
    }

    #[test]
    fn arguments_fill_the_low_end() {
        assert_eq!(Width::Narrow.encode(-1), 0xffff_ffff);
        assert_eq!(Width::Wide.encode(-1), u64::MAX);
    }
}
