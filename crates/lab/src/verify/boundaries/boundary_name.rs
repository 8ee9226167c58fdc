//! Boundary conditions, as the command and the programs name them.

use clap::ValueEnum;
use systola_stencil::reference::Boundary;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BoundaryName {
    /// Results only where all neighbours are inside
    Interior,
    /// A constant beyond the boundary
    Constant,
    /// Cells without all neighbours keep their value
    Fixed,
    /// The nearest cell of the grid
    Clamp,
    /// Reflected, without repeating the last cell
    Mirror,
    /// Reflected, repeating the last cell
    Reflect,
    /// Periodic
    Wrap,
}

/// The constant beyond the boundary, exact in every type.
const CONSTANT: f64 = 0.75;

impl BoundaryName {
    pub const WORDS: [&'static str; 7] = [
        "interior", "constant", "fixed", "clamp", "mirror", "reflect", "wrap",
    ];

    pub fn word(self) -> &'static str {
        BoundaryName::WORDS[self as usize]
    }

    /// Its text in a program.
    pub fn text(self) -> String {
        match self {
            BoundaryName::Constant => format!("constant {CONSTANT}"),
            _ => self.word().to_string(),
        }
    }

    /// The boundary condition of the reference.
    pub fn condition(self) -> Boundary {
        match self {
            BoundaryName::Interior => Boundary::Interior,
            BoundaryName::Constant => Boundary::Constant(CONSTANT),
            BoundaryName::Fixed => Boundary::Fixed,
            BoundaryName::Clamp => Boundary::Clamp,
            BoundaryName::Mirror => Boundary::Mirror,
            BoundaryName::Reflect => Boundary::Reflect,
            BoundaryName::Wrap => Boundary::Wrap,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_the_command() {
        let named = BoundaryName::value_variants()
            .iter()
            .map(|b| b.to_possible_value());
        let named: Vec<_> = named.flatten().map(|v| v.get_name().to_string()).collect();
        assert_eq!(named, BoundaryName::WORDS);
    }
}
