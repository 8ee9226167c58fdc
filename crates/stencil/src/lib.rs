//! Stencils: the computation of one sweep at a cell from the cells around it, the boundary
//! condition, and the number of sweeps.
//!
//! [`write_system`] writes a [`Stencil`] as a [`System`], and no later stage knows that there was a
//! stencil. The elaborator that all front ends share calls it.
//!
//! The form of the system decides how fast it can be:
//!
//! * **One sweep** reads its fields as inputs at every point (`sweep.rs`); a box with weights stays
//!   a `reduce`.
//! * **Many sweeps** have an additional iterator `t`, and read the previous sweep at constant
//!   distances (`iterate.rs`). For each of the cells next to the boundary, a neighbour beyond it is
//!   at a constant distance too.
//! * **Many sweeps of a weighted sum** use migrating partial sums (`migrating_sums.rs`): a row of
//!   the previous sweep is added to all sums that contain it as soon as it is available, so that a
//!   sweep waits for one multiplication and addition after its last row.

use systola_ir::codes::types;
use systola_ir::system::System;
use systola_ir::{Diagnostic, Form, InputId, Literal, Span, VarId};

mod boundary;
mod conv;
mod fresh;
mod inputs;
mod iterate;
mod linear;
mod migrating_sums;
mod reach;
pub mod reference;
mod shape;
mod sweep;
mod unroll_sums;

pub use conv::{Conv, write_conv};
pub use fresh::Fresh;
pub use inputs::write_boundaries;
pub use shape::Shape;

/// A stencil, as built by front ends.
#[derive(Clone, Debug)]
pub struct Stencil {
    /// One sweep at one cell. Its iterators are the axes of the grid, with ranges from zero. A read
    /// of an input that is one of `fields` is the value before the sweep; a read of a variable, one
    /// of this sweep. It has no outputs.
    pub kernel: System,
    pub fields: Vec<Field>,
    /// The boundary condition of each variable of the kernel; that of its field where it is the
    /// update of one.
    pub boundaries: Vec<Boundary>,
    /// The number of sweeps, and where that was written; one sweep by default.
    pub steps: Option<(Form, Span)>,
    /// The name of the iterator over sweeps.
    pub time: String,
    /// The name of each output, and the variable of the kernel whose last value it is.
    pub outputs: Vec<(String, VarId)>,
}

/// An input that lives on the grid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Field {
    pub input: InputId,
    pub boundary: Boundary,
    /// The variable of the kernel that is its next value; without one it is constant.
    pub update: Option<VarId>,
}

/// The boundary condition of a grid. The words of `scipy.ndimage`, with `clamp` for its `nearest`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boundary {
    /// Nothing: there are results only where the whole neighbourhood is inside.
    Interior,
    /// Fixed (Dirichlet): cells whose neighbourhood is not inside keep their value.
    Fixed,
    /// The same value everywhere.
    Constant(Literal),
    /// a a a | a b c d | d d d
    Clamp,
    /// d c b | a b c d | c b a
    Mirror,
    /// c b a | a b c d | d c b
    Reflect,
    /// b c d | a b c d | a b c
    Wrap,
}

impl Boundary {
    /// All words, as users write them.
    pub const WORDS: &'static [&'static str] = &[
        "interior", "fixed", "constant", "clamp", "mirror", "reflect", "wrap",
    ];

    /// Whether there is no value beyond the boundary.
    fn is_empty(self) -> bool {
        matches!(self, Boundary::Interior | Boundary::Fixed)
    }
}

/// The system of a stencil.
pub fn write_system(stencil: &Stencil) -> Result<System, Vec<Diagnostic>> {
    let is_single = reach::is_single_sweep(stencil)?;
    let mut errors = reach::check_grid(stencil);
    errors.extend(reach::check_offsets(stencil, &stencil.kernel, false));
    errors.extend(check_outputs(stencil));
    if !errors.is_empty() {
        return Err(errors);
    }
    if is_single {
        let plan = reach::plan(stencil, &stencil.kernel)?;
        return Ok(sweep::write(stencil, &plan));
    }
    let kernel = unroll_sums::unroll_sums(&stencil.kernel)?;
    let mut errors = reach::check_offsets(stencil, &kernel, true);
    if errors.is_empty() {
        errors = reach::check_cases(stencil, &kernel);
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let plan = reach::plan(stencil, &kernel)?;
    iterate::write(stencil, &kernel, &plan)
}

/// Arrays hold scalars.
fn check_outputs(stencil: &Stencil) -> Vec<Diagnostic> {
    let vars =
        (stencil.outputs.iter()).map(|(name, var)| (name, &stencil.kernel.vars[var.index()]));
    vars.filter(|(_, var)| var.ty.scalar().is_none())
        .map(|(name, var)| {
            let text = format!(
                "the output `{name}` holds scalars, and `{}` is {}",
                var.name, var.ty
            );
            Diagnostic::new(&types::NOT_SCALAR, var.span, text)
                .help("give each field of the tuple a variable, and those an output")
        })
        .collect()
}
