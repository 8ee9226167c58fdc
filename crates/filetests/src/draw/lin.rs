//! Affine forms for generated text.

use std::fmt::Write as _;

/// An affine form: coefficients of the iterators and of the parameters, and a constant.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Lin {
    pub(super) dims: Vec<i64>,
    pub(super) params: Vec<i64>,
    pub(super) c: i64,
}

impl Lin {
    pub(super) fn constant(c: i64, n_dims: usize, n_params: usize) -> Lin {
        Lin {
            dims: vec![0; n_dims],
            params: vec![0; n_params],
            c,
        }
    }

    pub(super) fn dim(d: usize, n_dims: usize, n_params: usize) -> Lin {
        let mut lin = Lin::constant(0, n_dims, n_params);
        lin.dims[d] = 1;
        lin
    }

    pub(super) fn add(&self, other: &Lin, factor: i64) -> Lin {
        let sum = |a: &[i64], b: &[i64]| -> Vec<i64> {
            let len = a.len().max(b.len());
            let at = |list: &[i64], n: usize| list.get(n).copied().unwrap_or(0);
            (0..len).map(|n| at(a, n) + factor * at(b, n)).collect()
        };
        Lin {
            dims: sum(&self.dims, &other.dims),
            params: sum(&self.params, &other.params),
            c: self.c + factor * other.c,
        }
    }

    pub(super) fn plus(&self, c: i64) -> Lin {
        let mut lin = self.clone();
        lin.c += c;
        lin
    }

    /// The form at z - e.
    pub(super) fn shifted(&self, e: &[Lin]) -> Lin {
        let mut lin = self.clone();
        for (a, e) in self.dims.iter().zip(e) {
            lin = lin.add(e, -a);
        }
        lin
    }

    pub(super) fn is_zero(&self) -> bool {
        self.c == 0 && self.params.iter().chain(&self.dims).all(|a| *a == 0)
    }

    pub(super) fn at(&self, params: &[i64]) -> i64 {
        self.c
            + self
                .params
                .iter()
                .zip(params)
                .map(|(a, p)| a * p)
                .sum::<i64>()
    }

    pub(super) fn text(&self, dims: &[String], params: &[(String, i64)]) -> String {
        let sizes = self.params.iter().zip(params.iter().map(|p| &p.0));
        let terms = self.dims.iter().zip(dims).chain(sizes);
        let mut text = String::new();
        let mut push = |a: i64, name: Option<&str>| {
            if a == 0 {
                return;
            }
            let sign = match (text.is_empty(), a < 0) {
                (true, false) => "",
                (true, true) => "-",
                (false, false) => " + ",
                (false, true) => " - ",
            };
            text.push_str(sign);
            let _ = match name {
                Some(name) if a.abs() == 1 => write!(text, "{name}"),
                Some(name) => write!(text, "{}*{name}", a.abs()),
                None => write!(text, "{}", a.abs()),
            };
        };
        for (a, name) in terms {
            push(*a, Some(name));
        }
        push(self.c, None);
        if text.is_empty() { "0".into() } else { text }
    }
}

/// What the points of a domain satisfy.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Rule {
    /// The form is not negative.
    Ge(Lin),
    /// form mod m == r.
    Mod(Lin, i64, i64),
    /// The form divided by m is at least r.
    Floor(Lin, i64, i64),
}

impl Rule {
    pub(super) fn shifted(&self, e: &[Lin]) -> Rule {
        match self {
            Rule::Ge(lin) => Rule::Ge(lin.shifted(e)),
            Rule::Mod(lin, m, r) => Rule::Mod(lin.shifted(e), *m, *r),
            Rule::Floor(lin, m, r) => Rule::Floor(lin.shifted(e), *m, *r),
        }
    }

    pub(super) fn text(&self, dims: &[String], params: &[(String, i64)]) -> String {
        match self {
            Rule::Ge(lin) => format!("{} >= 0", lin.text(dims, params)),
            Rule::Mod(lin, m, r) => format!("({}) % {m} == {r}", lin.text(dims, params)),
            Rule::Floor(lin, m, r) => format!("({})/{m} >= {r}", lin.text(dims, params)),
        }
    }
}

/// Forms that do not change along a direction.
pub(super) fn invariant(e: &[Lin], n_dims: usize, n_params: usize) -> Vec<Lin> {
    let moving: Vec<usize> = (0..e.len()).filter(|d| !e[*d].is_zero()).collect();
    let mut forms: Vec<Lin> = (0..n_dims)
        .filter(|d| !moving.contains(d))
        .map(|d| Lin::dim(d, n_dims, n_params))
        .collect();
    let constant = |d: usize| e[d].params.iter().all(|a| *a == 0);
    if let [a, b, ..] = moving.as_slice()
        && constant(*a)
        && constant(*b)
    {
        let mut form = Lin::constant(0, n_dims, n_params);
        form.dims[*a] = e[*b].c;
        form.dims[*b] = -e[*a].c;
        forms.push(form);
    }
    forms
}
