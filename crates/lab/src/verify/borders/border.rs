//! What a cell sees beyond the border, as the command and the programs name it.

use clap::ValueEnum;
use systola_stencil::reference::Boundary;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Border {
    /// Results only where all neighbours are inside
    Interior,
    /// A number beyond the border
    Constant,
    /// Cells without all neighbours keep their value
    Held,
    /// The last cell, again and again
    Clamp,
    /// Back without the last cell
    Mirror,
    /// Back with the last cell
    Reflect,
    /// On from the other side
    Wrap,
}

/// What lies beyond a constant border; every type has it exactly.
const CONSTANT: f64 = 0.75;

impl Border {
    pub const WORDS: [&'static str; 7] = [
        "interior", "constant", "held", "clamp", "mirror", "reflect", "wrap",
    ];

    pub fn word(self) -> &'static str {
        Border::WORDS[self as usize]
    }

    /// As a program has it.
    pub fn text(self) -> String {
        match self {
            Border::Constant => format!("constant {CONSTANT}"),
            _ => self.word().to_string(),
        }
    }

    /// As the reference has it.
    pub fn boundary(self) -> Boundary {
        match self {
            Border::Interior => Boundary::Interior,
            Border::Constant => Boundary::Constant(CONSTANT),
            Border::Held => Boundary::Fixed,
            Border::Clamp => Boundary::Clamp,
            Border::Mirror => Boundary::Mirror,
            Border::Reflect => Boundary::Reflect,
            Border::Wrap => Boundary::Wrap,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_the_command() {
        let named = Border::value_variants()
            .iter()
            .map(|b| b.to_possible_value());
        let named: Vec<_> = named.flatten().map(|v| v.get_name().to_string()).collect();
        assert_eq!(named, Border::WORDS);
    }
}
