//! The sites where equations can fault, and the buffer in which kernels record faults.

use systola_ir::array::Array;
use systola_ir::kernel::visit::walk_mut;
use systola_ir::kernel::{Buffer, BufferKind, FaultSite, Kernel, Program, Stmt};
use systola_ir::system::visit::walk;
use systola_ir::system::{Axis, Expr};
use systola_ir::{BinOp, BufferId, Cond, Form, Literal, Scalar, Span};

/// What is known of the equation that is being evaluated.
pub struct Faults {
    /// Can the equation fault?
    pub(super) may: bool,
    /// Where the equation is evaluated; `None` if that does not matter.
    pub(super) live: Option<Cond>,
    /// Within `live`, the condition under which the evaluation reaches the current expression.
    pub(super) path: Cond,
    /// All points of the array that reach the current expression; `None` if they are not tracked.
    pub(super) points: Option<Cond>,
    pub(super) owner: String,
    pub(super) span: Span,
    pub sites: Vec<FaultSite>,
}

impl Default for Faults {
    fn default() -> Self {
        Faults {
            may: false,
            live: None,
            path: Cond::TRUE,
            points: None,
            owner: String::new(),
            span: Span::NONE,
            sites: Vec::new(),
        }
    }
}

/// Stands for the fault buffer until that is declared.
pub(super) const UNKNOWN: BufferId = BufferId(u32::MAX);

/// Can the expression fault, judging by its operators alone?
pub fn may_fault(array: &Array, expr: &Expr) -> bool {
    let mut found = false;
    walk(expr, &mut |e| {
        found |= match e {
            Expr::Binary(BinOp::Div | BinOp::Rem, _, by) if is_positive(by) => false,
            Expr::Lookup { .. } | Expr::Binary(BinOp::Div | BinOp::Rem | BinOp::Pow, ..) => true,
            Expr::Call(f, _) => may_fault(array, &array.functions[f.index()].body),
            _ => false,
        };
    });
    found
}

/// Is it a literal greater than zero?
fn is_positive(expr: &Expr) -> bool {
    match expr {
        Expr::Lit(_, Literal::Int(n)) => *n > 0,
        Expr::Lit(_, Literal::Float(x)) => *x > 0.0,
        _ => false,
    }
}

/// Declares the buffer for the faults that kernels record, if there are any. `sites` has a list for
/// each kernel.
pub fn declare_faults(program: &mut Program, sites: Vec<Vec<FaultSite>>) {
    let mut all: Vec<FaultSite> = Vec::new();
    let faults = BufferId::from(program.buffers.len());
    for (kernel, own) in program.kernels.iter_mut().zip(sites) {
        let used = renumber(kernel, faults, all.len());
        if used {
            all.extend(own);
        }
    }
    if all.is_empty() {
        return;
    }
    let name = Buffer::unused_name("faults", &program.buffers);
    program.buffers.push(buffer(name, all));
}

/// The buffer has room for the point with the most iterators.
fn buffer(name: String, sites: Vec<FaultSite>) -> Buffer {
    let most = sites.iter().map(|s| s.iterators.len()).max().unwrap_or(0);
    let axis = Axis {
        lo: Form::zero(),
        hi: Form::from(1 + 2 * most as i128),
    };
    Buffer {
        name,
        ty: Scalar::I32,
        kind: BufferKind::Faults { sites },
        axes: vec![axis],
    }
}

/// Numbers the sites of a kernel from `from` on. Returns whether there are any.
fn renumber(kernel: &mut Kernel, to: BufferId, from: usize) -> bool {
    let mut used = false;
    walk_mut(&mut kernel.body, &mut |stmt| {
        if let Stmt::Fault { faults, site, .. } = stmt {
            *faults = to;
            *site += from;
            used = true;
        }
    });
    used
}

/// Makes the kernels of other programs record their faults in the buffer of the last program.
pub fn join_faults(others: &mut [&mut Program], last: &mut Program) {
    let sites_of = |program: &mut Program| -> Vec<FaultSite> {
        let taken = program.buffers.iter_mut().find_map(|b| match &mut b.kind {
            BufferKind::Faults { sites } => Some(std::mem::take(sites)),
            BufferKind::Input { .. }
            | BufferKind::Output { .. }
            | BufferKind::Temporary
            | BufferKind::Flags => None,
        });
        taken.unwrap_or_default()
    };
    let is_faults = |b: &Buffer| matches!(b.kind, BufferKind::Faults { .. });
    let own = last.buffers.iter().position(is_faults);
    let at = own.unwrap_or(last.buffers.len());
    let mut all = sites_of(last);
    for program in others {
        let sites = sites_of(program);
        for kernel in &mut program.kernels {
            renumber(kernel, BufferId::from(at), all.len());
        }
        all.extend(sites);
    }
    match own {
        Some(at) => {
            let name = last.buffers[at].name.clone();
            last.buffers[at] = buffer(name, all);
        }
        None if !all.is_empty() => {
            let name = Buffer::unused_name("faults", &last.buffers);
            last.buffers.push(buffer(name, all));
        }
        None => {}
    }
}
