//! C expressions as text that knows how tightly it binds, and lines that know how deep they stand.

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
    pub level: Level,
}

impl Expr {
    /// A name, a number, a call.
    pub fn atom(text: impl Into<String>) -> Expr {
        Expr {
            text: text.into(),
            level: Level::Primary,
        }
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
        Expr {
            text: format!("{op}{}", a.at(Level::Primary)),
            level: Level::Unary,
        }
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

    /// `a op b`, with more parentheses than C demands where people misread it: operands of shifts and
    /// bitwise operators are grouped, and so is a comparison inside of a comparison.
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
        // A run of one associative operator needs no grouping on the left.
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

    /// A line that ends in `{`; what follows stands deeper.
    pub fn open(&mut self, line: &str) {
        self.push(&format!("{line} {{"));
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

    /// Text that is indented already, so much deeper.
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
}
