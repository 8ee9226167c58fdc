//! What stencils mean: the systems that are written for them, evaluated, against plain loops that know of no systems.

mod borders;
mod catalogue;
mod convolutions;
mod random;
mod reference;
mod run;
mod several;
