//! Binds the caller's arrays to buffers, and checks that they fit.

use systola_ir::Scalar;
use systola_ir::kernel::{Buffer, BufferKind, Program};

use crate::buffer::{View, ViewMut};
use crate::error::Error;
use crate::layout::Layout;

/// The source of a buffer in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    /// The n-th input of the caller.
    Input(usize),
    /// The n-th output of the caller.
    Output(usize),
    /// Contents in the program, or memory of the run.
    Own,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Input,
    Output,
}

impl Role {
    fn of(buffer: &Buffer) -> Option<Role> {
        match buffer.kind {
            BufferKind::Input { .. } => Some(Role::Input),
            BufferKind::Output { .. } => Some(Role::Output),
            BufferKind::Temporary | BufferKind::Flags | BufferKind::Faults { .. } => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Role::Input => "input",
            Role::Output => "output",
        }
    }
}

/// One entry for each buffer. All shapes and types fit, nothing is missing, and no output shares
/// memory with anything.
pub(crate) fn bind(
    program: &Program,
    layouts: &[Layout],
    inputs: &[(&str, View<'_>)],
    outputs: &[(&str, ViewMut<'_>)],
) -> Result<Vec<Bound>, Error> {
    let read = inputs.iter().map(|(name, v)| (*name, v.ty(), v.shape()));
    let written = outputs.iter().map(|(name, v)| (*name, v.ty(), v.shape()));
    let bound = bind_shapes(program, layouts, read, written)?;
    check_aliasing(inputs, outputs)?;
    Ok(bound)
}

/// The same for arrays with known name, type and shape; overlaps are not checked.
pub(crate) fn bind_shapes<'a>(
    program: &Program,
    layouts: &[Layout],
    inputs: impl Iterator<Item = (&'a str, Scalar, &'a [usize])>,
    outputs: impl Iterator<Item = (&'a str, Scalar, &'a [usize])>,
) -> Result<Vec<Bound>, Error> {
    let mut bound = vec![Bound::Own; program.buffers.len()];
    let mut give = |name: &str, role, ty, got: &[usize], given| {
        let at = find(program, name, role)?;
        if bound[at] != Bound::Own {
            return Err(Error::GivenTwice {
                name: name.to_string(),
            });
        }
        check_fit(&program.buffers[at], &layouts[at].shape, ty, got)?;
        bound[at] = given;
        Ok(())
    };
    for (n, (name, ty, shape)) in inputs.enumerate() {
        give(name, Role::Input, ty, shape, Bound::Input(n))?;
    }
    for (n, (name, ty, shape)) in outputs.enumerate() {
        give(name, Role::Output, ty, shape, Bound::Output(n))?;
    }
    for (buffer, bound) in program.buffers.iter().zip(&bound) {
        let missing = *bound == Bound::Own;
        let name = || buffer.name.clone();
        match &buffer.kind {
            BufferKind::Input { data } if missing && data.is_none() => {
                return Err(Error::MissingInput { name: name() });
            }
            BufferKind::Output { .. } if missing => {
                return Err(Error::MissingOutput { name: name() });
            }
            BufferKind::Input { .. }
            | BufferKind::Output { .. }
            | BufferKind::Temporary
            | BufferKind::Flags
            | BufferKind::Faults { .. } => {}
        }
    }
    Ok(bound)
}

fn find(program: &Program, name: &str, role: Role) -> Result<usize, Error> {
    let in_role = |buffer: &&Buffer| Role::of(buffer) == Some(role);
    let is_stated = |b: &Buffer| matches!(b.kind, BufferKind::Input { data: Some(_) });
    let named = |buffer: &Buffer| buffer.name == name && in_role(&buffer);
    match program.buffers.iter().position(named) {
        Some(at) if is_stated(&program.buffers[at]) => Err(Error::StatedByProgram {
            name: name.to_string(),
        }),
        Some(at) => Ok(at),
        None => {
            let known = program.buffers.iter().filter(in_role);
            let known = known.filter(|buffer| !is_stated(buffer));
            Err(Error::UnknownName {
                role: role.name(),
                name: name.to_string(),
                known: known.map(|buffer| buffer.name.clone()).collect(),
            })
        }
    }
}

fn check_fit(buffer: &Buffer, shape: &[usize], ty: Scalar, got: &[usize]) -> Result<(), Error> {
    let name = buffer.name.clone();
    if ty != buffer.ty {
        return Err(Error::WrongType {
            name,
            expected: buffer.ty,
            got: ty,
        });
    }
    if got != shape {
        return Err(Error::WrongShape {
            name,
            expected: shape.to_vec(),
            got: got.to_vec(),
        });
    }
    Ok(())
}

/// Kernels read inputs while they write outputs.
fn check_aliasing(
    inputs: &[(&str, View<'_>)],
    outputs: &[(&str, ViewMut<'_>)],
) -> Result<(), Error> {
    for (n, (output, view)) in outputs.iter().enumerate() {
        let placed = view.placed();
        let before = outputs[..n].iter().map(|(name, v)| (name, v.placed()));
        let others = inputs.iter().map(|(name, v)| (name, v.placed()));
        for (other, other_placed) in others.chain(before) {
            if placed.overlaps(&other_placed) {
                return Err(Error::Aliasing {
                    output: (*output).to_string(),
                    other: (*other).to_string(),
                });
            }
        }
    }
    Ok(())
}
