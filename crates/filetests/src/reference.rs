//! What each program of the gallery computes, as plain loops from the mathematics.
//!
//! Nothing here uses a recurrence: a reference takes another approach than the program where there
//! is one (a dense inverse by pivoting, reflection coefficients by Levinson's recursion, a product
//! of bits by multiplying numbers), so that a mistake is not made twice.

use crate::tensor::{Arrays, Params, Rng};

mod arithmetic;
mod convolution;
mod database;
mod dynamic_programming;
mod filter;
mod graph;
mod linear_algebra;
mod physics;
mod polynomial;
mod scan;
mod sort;
mod stencil;
mod string;
mod sums;
mod textbook;
mod transform;
mod vision;
mod window;

/// One system of the gallery, with inputs to try it on and the outputs it must give.
pub struct Reference {
    /// Relative to `gallery/`.
    pub file: &'static str,
    pub system: &'static str,
    /// Sizes to run at besides those of `designs.json`, in the order of the system's parameters;
    /// the first are the smallest that the system allows.
    pub sizes: &'static [&'static [i64]],
    /// Random inputs on which the problem is well posed.
    pub inputs: fn(&Params, &mut Rng) -> Arrays,
    pub outputs: fn(&Params, &Arrays) -> Arrays,
    /// The tolerance of a float, relative to the largest magnitude in its array (at least 1). The
    /// references compute in f64: the bound covers rounding to f32 and another order of operations.
    pub tolerance: f64,
}

impl Reference {
    /// The same system in another file.
    fn also(&self, file: &'static str, sizes: &'static [&'static [i64]]) -> Reference {
        Reference {
            file,
            sizes,
            ..*self
        }
    }
}

/// For programs in f32 whose sums have a few dozen terms.
const SINGLE: f64 = 1e-5;
/// For programs in f64; the inputs are well conditioned.
const DOUBLE: f64 = 1e-10;
/// For programs in integers.
const EXACT: f64 = 0.0;

/// All references, in the order of the gallery.
pub fn all() -> Vec<Reference> {
    [
        convolution::references(),
        window::references(),
        filter::references(),
        transform::references(),
        polynomial::references(),
        scan::references(),
        sums::references(),
        linear_algebra::references(),
        stencil::references(),
        physics::references(),
        string::references(),
        dynamic_programming::references(),
        graph::references(),
        sort::references(),
        database::references(),
        arithmetic::references(),
        vision::references(),
        textbook::references(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The reference of one system of one file.
pub fn find(file: &str, system: &str) -> Option<Reference> {
    all()
        .into_iter()
        .find(|r| r.file == file && r.system == system)
}
