//! What a cell sees beyond the border, after the definitions of `scipy.ndimage`.

use clap::ValueEnum;

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
pub const CONSTANT: f64 = 0.75;

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

    /// Which of `n` cells stands for the one at `at`, where one does.
    pub fn fold(self, at: isize, n: usize) -> Option<usize> {
        let n = n as isize;
        let inside = match self {
            _ if (0..n).contains(&at) => at,
            Border::Interior | Border::Constant | Border::Held => return None,
            Border::Clamp => at.clamp(0, n - 1),
            Border::Wrap => at.rem_euclid(n),
            Border::Mirror if n == 1 => 0,
            Border::Mirror => {
                let at = at.rem_euclid(2 * (n - 1));
                at.min(2 * (n - 1) - at)
            }
            Border::Reflect => {
                let at = at.rem_euclid(2 * n);
                at.min(2 * n - 1 - at)
            }
        };
        usize::try_from(inside).ok()
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

    #[test]
    fn lines_go_on_as_in_scipy() {
        let check = |border: Border, expect: &str| {
            let cell = |at| border.fold(at, 4).map_or('.', |n| ['a', 'b', 'c', 'd'][n]);
            assert_eq!((-3..7).map(cell).collect::<String>(), expect);
        };
        check(Border::Constant, "...abcd...");
        check(Border::Clamp, "aaaabcdddd");
        check(Border::Mirror, "dcbabcdcba");
        check(Border::Reflect, "cbaabcddcb");
        check(Border::Wrap, "bcdabcdabc");
    }
}
