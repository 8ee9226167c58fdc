//! Pictures and charts as SVG: an array of the compiler becomes a [`scene`], which [`picture`]
//! draws; [`chart`] has axes and marks for measurements.
//!
//! Everything here is a function of its arguments; the same input gives the same bytes.

pub mod chart;
pub mod picture;
pub mod scene;
pub mod svg;
