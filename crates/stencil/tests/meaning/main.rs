//! The meaning of stencils: their systems, evaluated, against plain loops that do not use systems.

mod boundaries;
mod catalogue;
mod convolutions;
mod random;
mod reference;
mod run;
mod several;
