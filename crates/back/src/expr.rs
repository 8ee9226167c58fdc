//! C expressions as text with a precedence, and lines with an indentation.
//!
//! This file has the only precedence table of all printers. An expression gets its precedence from
//! the functions below, which build it from others; the text of an atom is checked.

/// How tightly an expression binds, loosest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Ternary,
    Or,
    And,
    BitOr,
    BitXor,
    BitAnd,
    Equality,
    Relation,
    Shift,
    Sum,
    Product,
    Unary,
    Primary,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expr {
    pub text: String,
    level: Level,
}

impl Expr {
    /// A name, a number without a sign, a call, an element, a member.
    pub fn atom(text: impl Into<String>) -> Expr {
        let text = text.into();
        debug_assert!(is_primary(&text), "`{text}` needs parentheses");
        Expr {
            text,
            level: Level::Primary,
        }
    }

    /// Is it one name or number?
    pub fn is_word(&self) -> bool {
        is_word(&self.text)
    }

    pub fn level(&self) -> Level {
        self.level
    }

    /// A number; a sign makes it an operation.
    pub fn number(text: impl Into<String>) -> Expr {
        let text = text.into();
        let level = if text.starts_with('-') {
            Level::Unary
        } else {
            Level::Primary
        };
        Expr { text, level }
    }

    pub fn call(function: &str, args: &[Expr]) -> Expr {
        let args: Vec<&str> = args.iter().map(|a| a.text.as_str()).collect();
        Expr::atom(format!("{function}({})", args.join(", ")))
    }

    pub fn unary(op: &str, a: &Expr) -> Expr {
        // Two signs in a row could be another operator; `*` may precede a cast.
        let operand = match op {
            "*" => Level::Unary,
            _ => Level::Primary,
        };
        Expr {
            text: format!("{op}{}", a.at(operand)),
            level: Level::Unary,
        }
    }

    /// −a, where the sign goes to the first factor of a product.
    pub fn negated(a: &Expr) -> Expr {
        if a.level == Level::Product && !a.text.starts_with('-') {
            return Expr {
                text: format!("-{}", a.text),
                level: Level::Product,
            };
        }
        Expr::unary("-", a)
    }

    pub fn cast(ty: &str, a: &Expr) -> Expr {
        Expr {
            text: format!("({ty}){}", a.at(Level::Unary)),
            level: Level::Unary,
        }
    }

    pub fn index(array: &str, at: &Expr) -> Expr {
        Expr::atom(format!("{array}[{}]", at.text))
    }

    /// An element of a vector.
    pub fn element(vector: &Expr, at: &Expr) -> Expr {
        Expr::atom(format!("{}[{}]", vector.at(Level::Primary), at.text))
    }

    /// A value of an array or structure type, from its elements.
    pub fn compound(ty: &str, elements: &Expr) -> Expr {
        Expr::atom(format!("({ty}){{{}}}", elements.text))
    }

    pub fn ternary(cond: &Expr, then: &Expr, otherwise: &Expr) -> Expr {
        Expr {
            text: format!(
                "{} ? {} : {}",
                cond.at(Level::Or),
                then.at(Level::Or),
                otherwise.at(Level::Ternary)
            ),
            level: Level::Ternary,
        }
    }

    /// `a op b`, with more parentheses than C requires where people misread precedence: operands of
    /// shifts and bitwise operators are grouped, and so is a comparison inside a comparison.
    pub fn binary(op: &str, a: &Expr, b: &Expr) -> Expr {
        let level = match op {
            "*" | "/" | "%" => Level::Product,
            "+" | "-" => Level::Sum,
            "<<" | ">>" => Level::Shift,
            "<" | "<=" | ">" | ">=" => Level::Relation,
            "==" | "!=" => Level::Equality,
            "&" => Level::BitAnd,
            "^" => Level::BitXor,
            "|" => Level::BitOr,
            "&&" => Level::And,
            "||" => Level::Or,
            _ => unreachable!("`{op}` is no binary operator of C"),
        };
        let (left, right) = match level {
            Level::Product => (Level::Product, Level::Unary),
            Level::Sum => (Level::Sum, Level::Product),
            Level::Relation | Level::Equality => (Level::Sum, Level::Sum),
            Level::And | Level::Or => (Level::Equality, Level::Equality),
            Level::Shift
            | Level::BitAnd
            | Level::BitXor
            | Level::BitOr
            | Level::Ternary
            | Level::Unary
            | Level::Primary => (Level::Unary, Level::Unary),
        };
        // A chain of one associative operator needs no parentheses on the left.
        let run = matches!(op, "&" | "|" | "^" | "&&" | "||") && a.level == level;
        let left = if run { level } else { left };
        Expr {
            text: format!("{} {op} {}", a.at(left), b.at(right)),
            level,
        }
    }

    /// The text where an expression that binds at least as tightly as `level` is expected.
    pub fn at(&self, level: Level) -> String {
        if self.level >= level {
            self.text.clone()
        } else {
            format!("({})", self.text)
        }
    }
}

fn is_word(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Is the text free of operators outside brackets? Words, members and brackets follow each other.
fn is_primary(text: &str) -> bool {
    let mut depth = 0i32;
    let bare = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'.';
    for (at, b) in text.bytes().enumerate() {
        match b {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            // The sign of an exponent is no operator.
            b'+' | b'-' if depth == 0 => {
                let number = text.as_bytes()[0].is_ascii_digit();
                if !number || !matches!(text.as_bytes()[at - 1], b'e' | b'E') {
                    return false;
                }
            }
            _ if depth == 0 && !bare(b) => return false,
            _ => {}
        }
    }
    depth == 0 && !text.is_empty()
}

/// Indented lines.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    text: String,
    depth: usize,
}

impl Lines {
    pub fn at_depth(depth: usize) -> Lines {
        Lines {
            text: String::new(),
            depth,
        }
    }

    pub fn push(&mut self, line: &str) {
        if !line.is_empty() {
            for _ in 0..self.depth {
                self.text.push_str("    ");
            }
        }
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// A line that ends in `{`; the following lines are indented.
    pub fn open(&mut self, line: &str) {
        match line {
            "" => self.push("{"),
            _ => self.push(&format!("{line} {{")),
        }
        self.depth += 1;
    }

    pub fn close(&mut self) {
        self.depth -= 1;
        self.push("}");
    }

    /// `} else {`
    pub fn otherwise(&mut self) {
        self.depth -= 1;
        self.open("} else");
    }

    /// Text that is indented already.
    pub fn append(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Text that is indented already, to be indented further by `by`.
    pub fn append_deeper(&mut self, text: &str, by: usize) {
        for line in text.lines() {
            if !line.is_empty() && !line.starts_with('#') {
                self.text.push_str(&"    ".repeat(by));
            }
            self.text.push_str(line);
            self.text.push('\n');
        }
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub fn finish(self) -> String {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Expr {
        Expr::atom(text)
    }

    #[test]
    fn parentheses_stand_where_they_are_needed() {
        let (a, b, c) = (name("a"), name("b"), name("c"));
        let sum = Expr::binary("+", &a, &b);
        assert_eq!(Expr::binary("*", &sum, &c).text, "(a + b) * c");
        assert_eq!(Expr::binary("+", &sum, &c).text, "a + b + c");
        assert_eq!(Expr::binary("-", &c, &sum).text, "c - (a + b)");
        assert_eq!(Expr::binary("<<", &sum, &c).text, "(a + b) << c");
        let both = Expr::binary("&&", &a, &b);
        assert_eq!(Expr::binary("||", &both, &c).text, "(a && b) || c");
        assert_eq!(Expr::binary("&&", &both, &c).text, "a && b && c");
        let minus = Expr::unary("-", &a);
        assert_eq!(Expr::unary("-", &minus).text, "-(-a)");
        assert_eq!(Expr::binary("-", &a, &Expr::number("-3")).text, "a - -3");
        assert_eq!(Expr::cast("int8_t", &sum).text, "(int8_t)(a + b)");
        assert_eq!(
            Expr::binary("<", &Expr::binary("<", &a, &b), &c).text,
            "(a < b) < c"
        );
        let choice = Expr::ternary(&sum, &a, &b);
        assert_eq!(
            Expr::ternary(&c, &choice, &choice).text,
            "c ? (a + b ? a : b) : a + b ? a : b"
        );
    }

    #[test]
    fn adjacent_signs_are_grouped() {
        let product = Expr::binary("*", &Expr::number("3"), &name("a"));
        let minus = Expr::negated(&product);
        assert_eq!(minus.text, "-3 * a");
        assert_eq!(Expr::negated(&minus).text, "-(-3 * a)");
        assert_eq!(Expr::binary("-", &name("b"), &minus).text, "b - -3 * a");
        assert_eq!(Expr::binary("*", &name("b"), &minus).text, "b * (-3 * a)");
        let there = Expr::cast("int *", &Expr::unary("&", &name("a[1]")));
        assert_eq!(Expr::unary("*", &there).text, "*(int *)&a[1]");
    }

    #[test]
    fn atoms_have_no_operators_outside_brackets() {
        for text in [
            "a",
            "7",
            "1.5e-30f",
            "f(a + b)",
            "x[i >> 1].at[2]",
            "(T){a, b}",
        ] {
            assert!(is_primary(text), "{text}");
        }
        for text in [
            "a + b",
            "-a",
            "&a",
            "(T)a - 1",
            "(a) * (b)",
            "a ? b : c",
            "",
        ] {
            assert!(!is_primary(text), "{text}");
        }
    }
}
