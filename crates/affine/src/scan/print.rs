//! Loop nests as indented pseudo-code.

use std::fmt::{self, Write as _};

use super::LoopNest;
use crate::display::Text;
use crate::expr::{Constraint, LinExpr};
use crate::int::Int;
impl LoopNest {
    /// The nest as indented pseudo-code.
    pub fn display<S: AsRef<str>, T: AsRef<str>>(&self, params: &[S], dims: &[T]) -> Text {
        let mut names: Vec<String> = Vec::new();
        for i in 0..self.space.n_params {
            names.push(
                params
                    .get(i)
                    .map_or_else(|| format!("p{i}"), |s| s.as_ref().to_string()),
            );
        }
        for i in 0..self.space.n_dims {
            names.push(
                dims.get(i)
                    .map_or_else(|| format!("x{i}"), |s| s.as_ref().to_string()),
            );
        }
        for (e, m) in &self.divs {
            let text = quotient(e, *m, "floor", &names);
            names.push(text);
        }
        let mut out = String::new();
        let mut depth = 0;
        let indent = |out: &mut String, depth: usize| {
            for _ in 0..depth {
                out.push_str("  ");
            }
        };
        for c in &self.context {
            indent(&mut out, depth);
            let _ = writeln!(out, "if {}", condition(c, &names));
            depth += 1;
        }
        for (i, l) in self.loops.iter().enumerate() {
            indent(&mut out, depth);
            let low = extreme(&l.lower, "max", "ceil", "-inf", &names);
            let high = extreme(&l.upper, "min", "floor", "inf", &names);
            let x = &names[self.space.n_params + i];
            match &l.stride {
                None if low == high => {
                    let _ = writeln!(out, "let {x} = {low}");
                    continue;
                }
                None => {
                    let _ = writeln!(out, "for {x} in {low} ..= {high}");
                }
                Some((m, e)) => {
                    let e = e.display(&names);
                    let _ = writeln!(out, "for {x} in {low} ..= {high} with {x} = {e} (mod {m})");
                }
            }
            depth += 1;
        }
        for c in &self.guards {
            indent(&mut out, depth);
            let _ = writeln!(out, "if {}", condition(c, &names));
            depth += 1;
        }
        indent(&mut out, depth);
        let tuple = &names[self.space.n_params..self.space.n_vars()];
        let _ = writeln!(out, "visit ({})", tuple.join(", "));
        Text(out)
    }
}

impl fmt::Display for LoopNest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.display::<&str, &str>(&[], &[]).fmt(f)
    }
}

fn condition(c: &Constraint, names: &[String]) -> String {
    match c {
        Constraint::Eq(e) => format!("{} = 0", e.display(names)),
        Constraint::Ge(e) => format!("{} >= 0", e.display(names)),
    }
}

fn quotient(e: &LinExpr, m: Int, round: &str, names: &[String]) -> String {
    let text = e.display(names).to_string();
    match m {
        1 => text,
        m if text.contains(' ') => format!("{round}(({text})/{m})"),
        m => format!("{round}({text}/{m})"),
    }
}

fn extreme(
    bounds: &[(LinExpr, Int)],
    pick: &str,
    round: &str,
    none: &str,
    names: &[String],
) -> String {
    let texts: Vec<String> = bounds
        .iter()
        .map(|(e, m)| quotient(e, *m, round, names))
        .collect();
    match texts.as_slice() {
        [] => none.to_string(),
        [one] => one.clone(),
        all => format!("{pick}({})", all.join(", ")),
    }
}
