//! A kernel with everything that is known put into its forms: sizes that were fixed, and the one lane or the one
//! warp where there is only one.

use systola_ir::form::{Cond, Form, Overflow};
use systola_ir::kernel::{Access, Kernel, Op, Program, Stmt, VarKind};
use systola_ir::system::Axis;

/// The program with its fixed sizes substituted, and each kernel without variables that can only be 0.
pub fn specialise(program: &Program) -> Result<Program, Overflow> {
    let fixed = |form: &Form| form.fix_params(&|p| program.params[p.index()].fixed);
    let mut special = program.clone();
    for buffer in &mut special.buffers {
        for axis in &mut buffer.axes {
            *axis = Axis {
                lo: fixed(&axis.lo)?,
                hi: fixed(&axis.hi)?,
            };
        }
    }
    for kernel in &mut special.kernels {
        *kernel = specialise_kernel(kernel, &fixed)?;
    }
    Ok(special)
}

fn specialise_kernel(
    kernel: &Kernel,
    fixed: &impl Fn(&Form) -> Result<Form, Overflow>,
) -> Result<Kernel, Overflow> {
    let map = |form: &Form| {
        fixed(form)?.substitute(&|d| {
            let zero = match kernel.vars[d.index()].kind {
                VarKind::Lane => kernel.lanes == 1,
                VarKind::Warp => kernel.warps == 1,
                VarKind::Host | VarKind::Block { .. } | VarKind::Loop | VarKind::Ticket => false,
            };
            zero.then(Form::zero)
        })
    };
    let mut special = kernel.clone();
    for var in &mut special.vars {
        if let VarKind::Block { lo, hi } = &mut var.kind {
            *lo = map_all(lo, &map)?;
            *hi = map_all(hi, &map)?;
        }
    }
    for shared in &mut special.shared {
        for extent in &mut shared.extents {
            let form = fixed(&Form::from(extent.clone()))?;
            // A form without atoms stays one.
            *extent = form.constant_part().clone();
        }
    }
    special.body = map_stmts(&kernel.body, &map)?;
    Ok(special)
}

fn map_all(
    forms: &[Form],
    f: &impl Fn(&Form) -> Result<Form, Overflow>,
) -> Result<Vec<Form>, Overflow> {
    forms.iter().map(f).collect()
}

fn map_cond(cond: &Cond, f: &impl Fn(&Form) -> Result<Form, Overflow>) -> Result<Cond, Overflow> {
    Ok(fold(cond.map(f)?))
}

/// Decides comparisons of constants and drops what they decide.
fn fold(cond: Cond) -> Cond {
    match cond {
        Cond::Const(b) => Cond::Const(b),
        Cond::Cmp(rel, left, right) => match left.sub(&right).as_constant() {
            Some(difference) => Cond::Const(rel.holds(difference, 0)),
            None => Cond::Cmp(rel, left, right),
        },
        Cond::And(parts) => fold_parts(parts, true),
        Cond::Or(parts) => fold_parts(parts, false),
        Cond::Not(inner) => fold(*inner).negate(),
    }
}

/// `neutral`: the constant that can be left out; the other one decides.
fn fold_parts(parts: Vec<Cond>, neutral: bool) -> Cond {
    let mut kept = Vec::new();
    for part in parts {
        match fold(part) {
            Cond::Const(b) if b == neutral => {}
            Cond::Const(b) => return Cond::Const(b),
            part @ (Cond::Cmp(..) | Cond::And(_) | Cond::Or(_) | Cond::Not(_)) => kept.push(part),
        }
    }
    match kept.len() {
        0 => Cond::Const(neutral),
        1 => kept.remove(0),
        _ if neutral => Cond::And(kept),
        _ => Cond::Or(kept),
    }
}

fn map_access(
    access: &Access,
    f: &impl Fn(&Form) -> Result<Form, Overflow>,
) -> Result<Access, Overflow> {
    Ok(Access {
        memory: access.memory,
        index: map_all(&access.index, f)?,
        when: map_cond(&access.when, f)?,
    })
}

fn map_op(op: &Op, f: &impl Fn(&Form) -> Result<Form, Overflow>) -> Result<Op, Overflow> {
    Ok(match op {
        Op::Index(form) => Op::Index(f(form)?),
        Op::Choose {
            cond,
            then,
            otherwise,
        } => Op::Choose {
            cond: map_cond(cond, f)?,
            then: *then,
            otherwise: *otherwise,
        },
        Op::Load { from, otherwise } => Op::Load {
            from: map_access(from, f)?,
            otherwise: *otherwise,
        },
        Op::Shuffle { value, from } => Op::Shuffle {
            value: *value,
            from: f(from)?,
        },
        Op::Lit(_)
        | Op::Get(_)
        | Op::Unary(..)
        | Op::Binary(..)
        | Op::Cast(_)
        | Op::Select { .. }
        | Op::Lookup { .. }
        | Op::Slide { .. } => op.clone(),
    })
}

fn map_stmts(
    stmts: &[Stmt],
    f: &impl Fn(&Form) -> Result<Form, Overflow>,
) -> Result<Vec<Stmt>, Overflow> {
    stmts.iter().map(|stmt| map_stmt(stmt, f)).collect()
}

/// Applies a function to every form of a statement.
fn map_stmt(stmt: &Stmt, f: &impl Fn(&Form) -> Result<Form, Overflow>) -> Result<Stmt, Overflow> {
    Ok(match stmt {
        Stmt::Let(value, op) => Stmt::Let(*value, map_op(op, f)?),
        Stmt::LoadWide {
            to,
            from,
            otherwise,
        } => Stmt::LoadWide {
            to: to.clone(),
            from: map_access(from, f)?,
            otherwise: *otherwise,
        },
        Stmt::Store { to, value } => Stmt::Store {
            to: map_access(to, f)?,
            value: *value,
        },
        Stmt::StoreWide { to, values } => Stmt::StoreWide {
            to: map_access(to, f)?,
            values: values.clone(),
        },
        Stmt::Copy {
            to,
            from,
            width,
            engine,
        } => Stmt::Copy {
            to: map_access(to, f)?,
            from: map_access(from, f)?,
            width: *width,
            engine: *engine,
        },
        Stmt::For {
            var,
            lo,
            hi,
            step,
            body,
        } => Stmt::For {
            var: *var,
            lo: map_all(lo, f)?,
            hi: map_all(hi, f)?,
            step: *step,
            body: map_stmts(body, f)?,
        },
        Stmt::If {
            cond,
            then,
            otherwise,
        } => Stmt::If {
            cond: map_cond(cond, f)?,
            then: map_stmts(then, f)?,
            otherwise: map_stmts(otherwise, f)?,
        },
        Stmt::Signal { flag } => Stmt::Signal {
            flag: map_access(flag, f)?,
        },
        Stmt::Await { flag, at_least } => Stmt::Await {
            flag: map_access(flag, f)?,
            at_least: f(at_least)?,
        },
        Stmt::Ticket { var, counter } => Stmt::Ticket {
            var: *var,
            counter: map_access(counter, f)?,
        },
        Stmt::Set(..)
        | Stmt::CommitCopies
        | Stmt::WaitCopies { .. }
        | Stmt::Barrier
        | Stmt::Comment(_) => stmt.clone(),
    })
}
