//! Prints a nest for people.

use std::fmt::{self, Display, Formatter};

use systola_ir::array::Array;
use systola_ir::form::{Cond, Form};

use crate::nest::tree::Nest;

/// The nest of an array as text.
pub struct NestText<'a> {
    nest: &'a Nest,
    params: Vec<String>,
    /// Names of the coordinates of the slot.
    names: Vec<String>,
}

impl<'a> NestText<'a> {
    pub fn new(nest: &'a Nest, array: &Array) -> NestText<'a> {
        let alias = |name: &String, alias: &Option<String>| alias.as_ref().unwrap_or(name).clone();
        let place = array.place.iter().map(|c| alias(&c.name, &c.alias));
        let time = array.time.iter().map(|c| alias(&c.name, &c.alias));
        NestText {
            nest,
            params: array.params.iter().map(|p| p.name.clone()).collect(),
            names: place.chain(time).chain(["warp".to_string()]).collect(),
        }
    }

    fn form(&self, form: &Form) -> String {
        form.display(&self.params, &self.names).to_string()
    }

    fn cond(&self, cond: &Cond) -> String {
        let cond = cond.without_single_parts();
        cond.display(&self.params, &self.names).to_string()
    }

    fn bounds(&self, forms: &[Form], of: &str) -> String {
        let forms: Vec<String> = forms.iter().map(|f| self.form(f)).collect();
        match forms.as_slice() {
            [form] => form.clone(),
            several => format!("{of}({})", several.join(", ")),
        }
    }

    fn write(&self, f: &mut Formatter<'_>, nest: &Nest, depth: usize) -> fmt::Result {
        let indent = "  ".repeat(depth);
        match nest {
            Nest::Sequence(parts) => self.sequence(f, parts, depth),
            Nest::For {
                k,
                range,
                copies,
                independent,
                body,
            } => {
                let (lo, hi) = (self.bounds(&range.lo, "max"), self.bounds(&range.hi, "min"));
                write!(f, "{indent}for {} in {lo} .. {hi}", self.names[*k])?;
                if *copies > 1 {
                    write!(f, " by {copies}")?;
                }
                if *independent {
                    write!(f, " independently")?;
                }
                self.block(f, body, depth)?;
                writeln!(f)
            }
            Nest::Once {
                k,
                value,
                when,
                body,
            } => {
                write!(f, "{indent}at {} = {}", self.names[*k], self.form(value))?;
                if *when != Cond::TRUE {
                    write!(f, " if {}", self.cond(when))?;
                }
                self.block(f, body, depth)?;
                writeln!(f)
            }
            Nest::Versions { cond, inside, edge } => {
                write!(f, "{indent}if {}", self.cond(cond))?;
                self.block(f, inside, depth)?;
                write!(f, " else")?;
                self.block(f, edge, depth)?;
                writeln!(f)
            }
            Nest::Prime { k, .. } => {
                writeln!(
                    f,
                    "{indent}prefetch the first windows of {}",
                    self.names[*k]
                )
            }
            Nest::Fill { .. } => writeln!(f, "{indent}fill the windows"),
            Nest::Await => writeln!(f, "{indent}await other blocks"),
            Nest::Signal => writeln!(f, "{indent}signal other blocks"),
            Nest::Barrier => writeln!(f, "{indent}barrier"),
            Nest::Tick => writeln!(f, "{indent}tick"),
        }
    }

    /// Iterations that differ only in their number are printed once.
    fn sequence(&self, f: &mut Formatter<'_>, parts: &[Nest], depth: usize) -> fmt::Result {
        let mut rest = parts;
        while let [first, ..] = rest {
            let same = rest
                .iter()
                .zip(0..)
                .take_while(|(part, n)| follows(first, part, *n));
            let n = same.count();
            if n > 1
                && let (Some((k, from, body)), Some((_, to, _))) =
                    (single(first), single(&rest[n - 1]))
            {
                let name = &self.names[k];
                write!(
                    f,
                    "{}unrolled {name} in {from} .. {}",
                    "  ".repeat(depth),
                    to + 1
                )?;
                self.block(f, body, depth)?;
                writeln!(f)?;
            } else {
                self.write(f, first, depth)?;
            }
            rest = &rest[n.max(1)..];
        }
        Ok(())
    }

    fn block(&self, f: &mut Formatter<'_>, nest: &Nest, depth: usize) -> fmt::Result {
        writeln!(f, " {{")?;
        self.write(f, nest, depth + 1)?;
        write!(f, "{}}}", "  ".repeat(depth))
    }
}

impl Display for NestText<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.write(f, self.nest, 0)
    }
}

/// The coordinate, the number and the body of a single iteration.
fn single(nest: &Nest) -> Option<(usize, i128, &Nest)> {
    match nest {
        Nest::Once {
            k,
            value,
            when: Cond::Const(true),
            body,
        } => Some((*k, value.as_constant()?, body)),
        _ => None,
    }
}

/// Is a nest the same as another one, n iterations later?
fn follows(first: &Nest, other: &Nest, n: i128) -> bool {
    match (single(first), single(other)) {
        (Some((k, from, body)), Some((l, at, same))) => (k, from + n) == (l, at) && body == same,
        _ => false,
    }
}
