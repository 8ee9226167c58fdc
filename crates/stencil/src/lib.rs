//! Stencils: what one sweep computes at a cell from the cells around it, what lies beyond the border, and how many sweeps there are.
//!
//! [`write_system`] writes a [`Stencil`] as a [`System`], and nothing behind it knows that there was a stencil. The
//! elaborator that all front ends share calls it.
//!
//! How the system is written decides how fast it can be made:
//!
//! * **One sweep** reads its fields as inputs at every point (`sweep.rs`); a box with weights stays the `reduce` that it is.
//! * **Many sweeps** have an iterator `t` more, and read what the sweep before left, at constant distances (`iterate.rs`). A neighbour
//!   beyond the border is, for each of the few cells next to it, at a constant distance too.
//! * **Many sweeps of a weighted sum** go as sums that travel (`travel.rs`): a row of the sweep before is added to all sums that it goes
//!   into as soon as it is there, so that a sweep waits for one multiplication and addition after its last row.

use systola_ir::codes::types;
use systola_ir::system::System;
use systola_ir::{Diagnostic, Form, InputId, Literal, Span, VarId};

mod border;
mod conv;
mod expand;
mod fresh;
mod inputs;
mod iterate;
mod linear;
mod reach;
pub mod reference;
mod shape;
mod sweep;
mod travel;

pub use conv::{Conv, write_conv};
pub use fresh::Fresh;
pub use inputs::write_borders;
pub use shape::Shape;

/// A stencil, as front ends hand it over.
#[derive(Clone, Debug)]
pub struct Stencil {
    /// One sweep at one cell. Its iterators are the axes of the grid, with ranges from zero. Reading an input that is one of `fields`
    /// means the value before the sweep; reading a variable, one of this sweep. It has no outputs.
    pub kernel: System,
    pub fields: Vec<Field>,
    /// What lies beyond the border of each variable of the kernel; that of its field where it is the update of one.
    pub borders: Vec<Border>,
    /// How many sweeps, and where that was written; one sweep where nothing is said.
    pub steps: Option<(Form, Span)>,
    /// The name of the iterator over sweeps.
    pub time: String,
    /// The name of each output, and the variable of the kernel that it is after the last sweep.
    pub outputs: Vec<(String, VarId)>,
}

/// An input that lives on the grid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Field {
    pub input: InputId,
    pub border: Border,
    /// The variable of the kernel that is its next value; without one it stays as it is.
    pub update: Option<VarId>,
}

/// What a cell sees beyond the border of the grid. The words of `scipy.ndimage`, with `clamp` for its `nearest`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Border {
    /// Nothing: there are results only where the whole neighbourhood is inside.
    Interior,
    /// Nothing: cells whose neighbourhood is not inside keep their value.
    Held,
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

impl Border {
    /// All words, as users write them.
    pub const WORDS: &'static [&'static str] = &[
        "interior", "held", "constant", "clamp", "mirror", "reflect", "wrap",
    ];

    /// Whether there is no value beyond it.
    fn is_empty(self) -> bool {
        matches!(self, Border::Interior | Border::Held)
    }
}

/// The system that a stencil is.
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
    let kernel = expand::write_out(&stencil.kernel)?;
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
