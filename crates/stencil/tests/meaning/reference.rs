//! The reference of stencils, and helpers of the tests.

pub use systola_stencil::reference::{Boundary, Grid};

pub const BOUNDARIES: [Boundary; 7] = [
    Boundary::Interior,
    Boundary::Fixed,
    Boundary::Constant(0.75),
    Boundary::Clamp,
    Boundary::Mirror,
    Boundary::Reflect,
    Boundary::Wrap,
];

/// Its text in a program.
pub fn word(boundary: Boundary) -> String {
    match boundary {
        Boundary::Interior => "interior".to_string(),
        Boundary::Fixed => "fixed".to_string(),
        Boundary::Constant(c) => format!("constant {c:?}"),
        Boundary::Clamp => "clamp".to_string(),
        Boundary::Mirror => "mirror".to_string(),
        Boundary::Reflect => "reflect".to_string(),
        Boundary::Wrap => "wrap".to_string(),
    }
}

/// The minimum length of an axis of which `reach` cells beyond the boundary are read.
pub fn least(boundary: Boundary, reach: usize) -> usize {
    match boundary {
        Boundary::Mirror if reach > 0 => reach + 1,
        Boundary::Reflect | Boundary::Wrap => reach.max(1),
        _ => 1,
    }
}

pub fn random(shape: &[usize], seed: u64) -> Grid {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        // Few bits, so that sums in any order agree closely.
        ((state >> 40) as f64 / f64::from(1 << 24) * 256.0).floor() / 128.0 - 1.0
    };
    Grid {
        shape: shape.to_vec(),
        data: (0..shape.iter().product()).map(|_| next()).collect(),
    }
}
