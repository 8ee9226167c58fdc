//! Sets, expressions and constraints as text, with the user's names.

use std::fmt::{self, Write as _};

use crate::basic::BasicSet;
use crate::div::Div;
use crate::expr::LinExpr;
use crate::int::Int;
use crate::set::Set;
use crate::system::Row;

/// Text made by one of the `display` methods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text(pub(crate) String);

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A multiple of something printable.
struct Term {
    coeff: Int,
    text: String,
    /// The column, for a term that is a plain visible variable.
    column: Option<usize>,
}

fn name(names: &[String], column: usize) -> String {
    match names.get(column) {
        Some(n) => n.clone(),
        None => format!("c{column}"),
    }
}

/// `terms + constant`, starting with a sign only where it is needed.
fn sum(terms: &[(Int, &str)], constant: Int) -> String {
    let mut out = String::new();
    for &(c, text) in terms {
        if c == 0 {
            continue;
        }
        let sign = match (out.is_empty(), c < 0) {
            (true, false) => "",
            (true, true) => "-",
            (false, false) => " + ",
            (false, true) => " - ",
        };
        out.push_str(sign);
        if c.unsigned_abs() != 1 {
            let _ = write!(out, "{}*", c.unsigned_abs());
        }
        out.push_str(text);
    }
    if out.is_empty() {
        return constant.to_string();
    }
    if constant != 0 {
        let sign = if constant < 0 { '-' } else { '+' };
        let _ = write!(out, " {sign} {}", constant.unsigned_abs());
    }
    out
}

fn owned<S: AsRef<str>>(names: &[S]) -> Vec<String> {
    names.iter().map(|n| n.as_ref().to_string()).collect()
}

impl LinExpr {
    /// The expression with a name for each column; columns without one print as `c7`.
    pub fn display<S: AsRef<str>>(&self, names: &[S]) -> Text {
        let names = owned(names);
        let texts: Vec<String> = (0..self.coeffs().len()).map(|i| name(&names, i)).collect();
        let terms: Vec<(Int, &str)> = self
            .coeffs()
            .iter()
            .zip(&texts)
            .map(|(&c, t)| (c, t.as_str()))
            .collect();
        // A leading positive term reads better.
        let mut terms = terms;
        if terms.iter().find(|t| t.0 != 0).is_some_and(|t| t.0 < 0) {
            if let Some(i) = terms.iter().position(|t| t.0 > 0) {
                let t = terms.remove(i);
                terms.insert(0, t);
            } else if self.constant_term() > 0 {
                let rest = sum(&terms, 0);
                return Text(format!("{} - {}", self.constant_term(), &rest[1..]));
            }
        }
        Text(sum(&terms, self.constant_term()))
    }
}

struct Printer<'a> {
    names: Vec<String>,
    set: &'a BasicSet,
    divs: Vec<Div>,
    /// The text of each existential: a floor where it is determined, and otherwise a name of its
    /// own.
    hidden: Vec<String>,
    undetermined: Vec<String>,
}

impl<'a> Printer<'a> {
    fn new(set: &'a BasicSet, params: &[String], dims: &[String]) -> Printer<'a> {
        let k = set.space.n_params;
        let mut names = Vec::new();
        for i in 0..k {
            names.push(params.get(i).cloned().unwrap_or_else(|| format!("p{i}")));
        }
        for i in 0..set.space.n_dims {
            names.push(dims.get(i).cloned().unwrap_or_else(|| format!("x{i}")));
        }
        let divs = set.div_definitions().ok().flatten().unwrap_or_default();
        let mut printer = Printer {
            names,
            set,
            divs,
            hidden: (0..set.n_exists()).map(|i| format!("e{i}")).collect(),
            undetermined: Vec::new(),
        };
        if printer.divs.is_empty() {
            printer.undetermined = printer.hidden.clone();
        }
        for d in printer.divs.clone() {
            let e = printer.text(&d.numerator);
            let simple = !e.contains(' ');
            let text = if simple {
                format!("floor({e}/{})", d.divisor)
            } else {
                format!("floor(({e})/{})", d.divisor)
            };
            printer.hidden[d.var - set.space.n_vars()] = text;
        }
        printer
    }

    /// The terms of a row; `numerator - m floor(numerator / m)` is written as a remainder.
    fn terms(&self, row: &[Int]) -> (Vec<Term>, Int) {
        let visible = self.set.space.n_vars();
        let mut row = row.to_vec();
        let mut remainders = Vec::new();
        for d in &self.divs {
            let c = row[d.var + 1];
            if c == 0 || c % d.divisor != 0 {
                continue;
            }
            let factor = (c / d.divisor).wrapping_neg();
            let fits = d.numerator[1..]
                .iter()
                .zip(&row[1..])
                .all(|(&n, &r)| n == 0 || n.checked_mul(factor) == Some(r));
            let Some(shift) = d.numerator[0].checked_mul(factor) else {
                continue;
            };
            let Some(constant) = row[0].checked_sub(shift) else {
                continue;
            };
            if fits {
                let e = self.text(&d.numerator);
                let text = if e.contains(' ') {
                    format!("(({e}) mod {})", d.divisor)
                } else {
                    format!("({e} mod {})", d.divisor)
                };
                for (r, &n) in row[1..].iter_mut().zip(&d.numerator[1..]) {
                    if n != 0 {
                        *r = 0;
                    }
                }
                row[d.var + 1] = 0;
                row[0] = constant;
                remainders.push(Term {
                    coeff: factor,
                    text,
                    column: None,
                });
            }
        }
        let mut terms = Vec::new();
        for (v, &c) in row[1..].iter().enumerate() {
            if c != 0 {
                terms.push(if v < visible {
                    Term {
                        coeff: c,
                        text: self.names[v].clone(),
                        column: Some(v),
                    }
                } else {
                    Term {
                        coeff: c,
                        text: self.hidden[v - visible].clone(),
                        column: None,
                    }
                });
            }
        }
        terms.extend(remainders);
        (terms, row[0])
    }

    fn text(&self, row: &[Int]) -> String {
        let (terms, constant) = self.terms(row);
        let parts: Vec<(Int, &str)> = terms.iter().map(|t| (t.coeff, t.text.as_str())).collect();
        sum(&parts, constant)
    }

    /// The term that a constraint is printed for: a remainder, else the last dimension, else the
    /// last term.
    fn subject(&self, terms: &[Term]) -> Option<usize> {
        let k = self.set.space.n_params;
        let remainder = terms
            .iter()
            .rposition(|t| t.column.is_none() && t.text.starts_with('('));
        let dim = |unit: bool| {
            terms.iter().rposition(|t| {
                t.column.is_some_and(|c| c >= k) && (!unit || t.coeff.unsigned_abs() == 1)
            })
        };
        remainder
            .or_else(|| dim(true))
            .or_else(|| dim(false))
            .or_else(|| terms.len().checked_sub(1))
    }

    fn conditions(&self) -> Vec<String> {
        let visible = self.set.space.n_vars();
        let mut out: Vec<(usize, String)> = Vec::new();
        for row in &self.set.sys.eqs {
            let hidden: Vec<usize> = (visible..self.set.sys.n)
                .filter(|&v| row[v + 1] != 0)
                .collect();
            let place = last_column(row, visible);
            let by_div = self
                .divs
                .iter()
                .find(|d| hidden == [d.var] && is_stride(d, row));
            if let Some(d) = by_div {
                // The sign is free: choose the one that makes the last coefficient positive.
                let mut e: Row = row.clone();
                e[d.var + 1] = 0;
                if e[1..]
                    .iter()
                    .rev()
                    .find(|&&c| c != 0)
                    .is_some_and(|&c| c < 0)
                {
                    e = e.iter().map(|&c| c.wrapping_neg()).collect();
                }
                let r = e[0].wrapping_neg().rem_euclid(d.divisor);
                e[0] = 0;
                let lhs = self.text(&e);
                let lhs = if lhs.contains(' ') {
                    format!("({lhs})")
                } else {
                    lhs
                };
                out.push((place, format!("{lhs} mod {} = {r}", d.divisor)));
                continue;
            }
            let (terms, constant) = self.terms(row);
            out.push((place, self.equation(&terms, constant)));
        }
        let implied: Vec<Row> = self
            .divs
            .iter()
            .filter_map(|d| d.rows().ok())
            .flatten()
            .collect();
        // (place, subject text, lower bounds, upper bounds)
        let mut ranges: Vec<(usize, String, Vec<String>, Vec<String>)> = Vec::new();
        for row in &self.set.sys.ges {
            if implied.contains(row) {
                continue;
            }
            let (terms, constant) = self.terms(row);
            let Some(s) = self.subject(&terms) else {
                if constant < 0 {
                    out.push((0, "false".to_string()));
                }
                continue;
            };
            let c = terms[s].coeff;
            let subject = if c.unsigned_abs() == 1 {
                terms[s].text.clone()
            } else {
                format!("{}*{}", c.unsigned_abs(), terms[s].text)
            };
            let rest: Vec<(Int, &str)> = terms
                .iter()
                .enumerate()
                .filter(|&(i, _)| i != s)
                .map(|(_, t)| {
                    (
                        if c > 0 {
                            t.coeff.wrapping_neg()
                        } else {
                            t.coeff
                        },
                        t.text.as_str(),
                    )
                })
                .collect();
            let constant = if c > 0 {
                constant.wrapping_neg()
            } else {
                constant
            };
            let place = last_column(row, visible);
            let entry = match ranges.iter_mut().find(|r| r.1 == subject) {
                Some(r) => r,
                None => {
                    ranges.push((place, subject, Vec::new(), Vec::new()));
                    let last = ranges.len() - 1;
                    &mut ranges[last]
                }
            };
            let rest = positive_first(rest);
            if c > 0 {
                entry.2.push(format!("{} <= ", sum(&rest, constant)));
            } else if constant == -1 && !rest.is_empty() {
                entry.3.push(format!(" < {}", sum(&rest, 0)));
            } else {
                entry.3.push(format!(" <= {}", sum(&rest, constant)));
            }
        }
        for (place, subject, lower, upper) in ranges {
            let n = lower.len().max(upper.len());
            for i in 0..n {
                let l = lower.get(i).map_or("", String::as_str);
                let u = upper.get(i).map_or("", String::as_str);
                out.push((place, format!("{l}{subject}{u}")));
            }
        }
        out.sort_by_key(|&(place, _)| place);
        out.into_iter().map(|(_, t)| t).collect()
    }

    fn equation(&self, terms: &[Term], constant: Int) -> String {
        let Some(s) = self.subject(terms) else {
            return if constant == 0 { "true" } else { "false" }.to_string();
        };
        let c = terms[s].coeff;
        let sign: Int = if c > 0 { -1 } else { 1 };
        let rest: Vec<(Int, &str)> = terms
            .iter()
            .enumerate()
            .filter(|&(i, _)| i != s)
            .map(|(_, t)| (t.coeff.wrapping_mul(sign), t.text.as_str()))
            .collect();
        let lhs = sum(&[(c.wrapping_abs(), &terms[s].text)], 0);
        let rest = positive_first(rest);
        format!("{lhs} = {}", sum(&rest, constant.wrapping_mul(sign)))
    }
}

fn positive_first(mut terms: Vec<(Int, &str)>) -> Vec<(Int, &str)> {
    if terms.first().is_some_and(|t| t.0 < 0)
        && let Some(i) = terms.iter().position(|t| t.0 > 0)
    {
        let t = terms.remove(i);
        terms.insert(0, t);
    }
    terms
}

fn last_column(row: &[Int], visible: usize) -> usize {
    row[1..=visible]
        .iter()
        .rposition(|&c| c != 0)
        .map_or(0, |i| i + 1)
}

/// Does the definition come from this equality?
fn is_stride(d: &Div, row: &[Int]) -> bool {
    row[d.var + 1].unsigned_abs() == d.divisor.unsigned_abs()
}

impl BasicSet {
    /// The set as text, such as `{ (i, j) : 0 <= i < N and j = i + 1 }`.
    pub fn display<S: AsRef<str>, T: AsRef<str>>(&self, params: &[S], dims: &[T]) -> Text {
        Text(show(
            self.space.n_dims,
            std::slice::from_ref(self),
            &owned(params),
            &owned(dims),
        ))
    }
}

impl Set {
    /// The set as text, such as `{ (i, j) : 0 <= i < N and j = i + 1 or i = N and j = 0 }`.
    pub fn display<S: AsRef<str>, T: AsRef<str>>(&self, params: &[S], dims: &[T]) -> Text {
        Text(show(
            self.space.n_dims,
            &self.pieces,
            &owned(params),
            &owned(dims),
        ))
    }
}

fn show(n_dims: usize, pieces: &[BasicSet], params: &[String], dims: &[String]) -> String {
    let tuple: Vec<String> = (0..n_dims)
        .map(|i| dims.get(i).cloned().unwrap_or_else(|| format!("x{i}")))
        .collect();
    let mut parts = Vec::new();
    for piece in pieces {
        let printer = Printer::new(piece, params, dims);
        let conditions = printer.conditions();
        let mut text = conditions.join(" and ");
        if text.is_empty() {
            text = "true".to_string();
        }
        if !printer.undetermined.is_empty() {
            text = format!("exists {}: {text}", printer.undetermined.join(", "));
            if pieces.len() > 1 {
                text = format!("({text})");
            }
        }
        parts.push(text);
    }
    let body = match parts.as_slice() {
        [] => "false".to_string(),
        all => all.join(" or "),
    };
    if body == "true" {
        format!("{{ ({}) }}", tuple.join(", "))
    } else {
        format!("{{ ({}) : {body} }}", tuple.join(", "))
    }
}

impl fmt::Display for LinExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.display::<&str>(&[]).fmt(f)
    }
}

impl fmt::Display for BasicSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.display::<&str, &str>(&[], &[]).fmt(f)
    }
}

impl fmt::Display for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.display::<&str, &str>(&[], &[]).fmt(f)
    }
}
