//! Sizes: which are missing, which follow from the shapes of arrays, and which to take otherwise.

use std::collections::BTreeMap;

use systola_ir::array::Array;
use systola_ir::form::{Cond, Form};
use systola_ir::system::{Axis, Param, Program, System};

/// Parameter values, by name.
pub type Sizes = BTreeMap<String, i128>;

/// Which small sizes are tried first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Small {
    /// Different extents, which make a swap of axes visible.
    Distinct,
    /// Small enough for the third dimension of a picture.
    Equal,
}

/// Parameters with their context, of a system, a program or an array.
#[derive(Clone, Copy, Debug)]
pub struct Parameters<'a> {
    pub params: &'a [Param],
    pub context: &'a [Cond],
}

impl<'a> From<&'a System> for Parameters<'a> {
    fn from(s: &'a System) -> Self {
        Parameters {
            params: &s.params,
            context: &s.context,
        }
    }
}

impl<'a> From<&'a Program> for Parameters<'a> {
    fn from(p: &'a Program) -> Self {
        Parameters {
            params: &p.params,
            context: &p.context,
        }
    }
}

impl<'a> From<&'a Array> for Parameters<'a> {
    fn from(a: &'a Array) -> Self {
        Parameters {
            params: &a.params,
            context: &a.context,
        }
    }
}

impl Parameters<'_> {
    pub fn missing(&self, sizes: &Sizes) -> Vec<&str> {
        let names = self.params.iter().map(|p| p.name.as_str());
        names.filter(|name| !sizes.contains_key(*name)).collect()
    }

    pub fn holds(&self, values: &[i128]) -> bool {
        self.context
            .iter()
            .all(|c| c.eval(values, &[]).unwrap_or(false))
    }

    /// The given sizes, and for the others small ones that satisfy the context: those that a
    /// picture can show. `None` if no small sizes do.
    pub fn with_small(&self, sizes: &Sizes, small: Small) -> Option<Vec<i128>> {
        let missing: Vec<usize> = (0..self.params.len())
            .filter(|n| !sizes.contains_key(&self.params[*n].name))
            .collect();
        let preferred: [&[i128]; 2] = match small {
            Small::Distinct => [&[6, 5, 8, 4, 3, 7, 2, 1, 12, 16], &[3, 4, 2, 5, 6, 1, 8]],
            Small::Equal => [&[3, 4, 2, 5, 6, 1, 8, 12, 16], &[3, 4, 2, 5, 6, 1, 8]],
        };
        let mut choice = vec![0; missing.len()];
        for _ in 0..100_000 {
            let values: Vec<i128> = self
                .params
                .iter()
                .enumerate()
                .map(|(n, p)| match sizes.get(&p.name) {
                    Some(v) => *v,
                    None => {
                        let k = missing.iter().position(|m| *m == n).unwrap_or(0);
                        preferred[n.min(1)][choice[k]]
                    }
                })
                .collect();
            if self.holds(&values) {
                return Some(values);
            }
            // The next choice, the last parameter fastest.
            let mut k = choice.len();
            loop {
                k = k.checked_sub(1)?;
                choice[k] += 1;
                if choice[k] < preferred[missing[k].min(1)].len() {
                    break;
                }
                choice[k] = 0;
            }
        }
        None
    }

    pub fn named(&self, values: &[i128]) -> Sizes {
        let names = self.params.iter().map(|p| p.name.clone());
        names.zip(values.iter().copied()).collect()
    }

    /// `C = 6, Q = 3`
    pub fn show(&self, values: &[i128]) -> String {
        let parts: Vec<String> = self
            .params
            .iter()
            .zip(values)
            .map(|(p, v)| format!("{} = {v}", p.name))
            .collect();
        parts.join(", ")
    }

    /// The extent of each axis, as far as the sizes are known.
    pub fn extents(&self, sizes: &Sizes, axes: &[Axis]) -> Vec<Option<usize>> {
        let size = |param: &Param| sizes.get(&param.name).copied();
        let all: Option<Vec<i128>> = self.params.iter().map(size).collect();
        let extent = |axis: &Axis| {
            let length = axis.hi.sub(&axis.lo);
            let extent = match &all {
                Some(values) => length.eval(values, &[]).ok()?,
                None => {
                    let mut sum = 0i128;
                    for (monomial, c) in length.as_poly()?.terms() {
                        let mut product = c;
                        for p in monomial.as_slice() {
                            let value = size(self.params.get(p.index())?)?;
                            product = product.checked_mul(value)?;
                        }
                        sum = sum.checked_add(product)?;
                    }
                    sum
                }
            };
            usize::try_from(extent.max(0)).ok()
        };
        axes.iter().map(extent).collect()
    }

    /// Infers sizes from the shape of an array: an extent with one unknown parameter.
    pub fn infer(&self, sizes: &mut Sizes, axes: &[Axis], shape: &[usize]) {
        for (axis, extent) in axes.iter().zip(shape) {
            if let Some((name, size)) = self.solve(sizes, axis, *extent) {
                sizes.insert(name, size);
            }
        }
    }

    /// The same for several arrays: what one decides, another may need.
    pub fn infer_all(&self, sizes: &mut Sizes, arrays: &[(&[Axis], &[usize])]) {
        loop {
            let before = sizes.len();
            for (axes, shape) in arrays {
                self.infer(sizes, axes, shape);
            }
            if sizes.len() == before {
                return;
            }
        }
    }

    /// The one unknown parameter of an extent, which must occur in it linearly.
    fn solve(&self, sizes: &Sizes, axis: &Axis, extent: usize) -> Option<(String, i128)> {
        let length = axis.hi.sub(&axis.lo);
        let (mut known, mut unknown) = (0i128, BTreeMap::new());
        for (monomial, c) in length.as_poly()?.terms() {
            let names = monomial.iter().map(|p| &self.params[p.index()].name);
            let (given, missing): (Vec<&String>, Vec<&String>) =
                names.partition(|name| sizes.contains_key(*name));
            let times = |product: i128, name: &&String| product.checked_mul(sizes[*name]);
            let factor = given.iter().try_fold(c, times)?;
            match missing.as_slice() {
                [] => known = known.checked_add(factor)?,
                [name] => {
                    let sum: &mut i128 = unknown.entry(*name).or_default();
                    *sum = sum.checked_add(factor)?;
                }
                _ => return None,
            }
        }
        if unknown.len() != 1 {
            return None;
        }
        let (name, factor) = unknown.first_key_value()?;
        let rest = i128::try_from(extent).ok()?.checked_sub(known)?;
        let is_whole = *factor != 0 && rest % factor == 0;
        is_whole.then(|| ((*name).clone(), rest / factor))
    }
}

/// Typical sizes have at most this many points and array elements.
const MOST_POINTS: i128 = 1 << 24;
/// Sizes of windows, and of what is in no array, such as the number of sweeps.
const WINDOWS: [i128; 9] = [5, 3, 4, 7, 2, 8, 6, 9, 1];
const STEPS: i128 = 16;

/// The given sizes, and for the others such as the system may be used with, up to
/// 2²⁴ points. The same system gets the same sizes. `None` if none are found.
pub fn typical(system: &System, given: &Sizes) -> Option<Vec<i128>> {
    let expanded = system.expand_batch().ok()?;
    let parameters = Parameters::from(system);
    let roles: Vec<Role> = (0..system.params.len())
        .map(|n| role_of(&expanded, n))
        .collect();
    for shape in [Shape::Equal, Shape::Falling, Shape::Rising] {
        for power in (0..=20u32).rev() {
            for window in WINDOWS {
                let mut nth = 0;
                let all = roles.iter().filter(|r| **r == Role::Extent).count() as u32;
                let values = system.params.iter().zip(&roles).map(|(param, role)| {
                    let usual = match role {
                        Role::Window => window,
                        Role::Steps => STEPS.min(1 << power),
                        Role::Extent => {
                            let less = match shape {
                                Shape::Equal => 0,
                                Shape::Falling => nth,
                                Shape::Rising => all - 1 - nth,
                            };
                            nth += 1;
                            1 << power.saturating_sub(less)
                        }
                    };
                    given.get(&param.name).copied().unwrap_or(usual)
                });
                let values: Vec<i128> = values.collect();
                let fits = || volume(&expanded, &values).is_some_and(|v| v <= MOST_POINTS);
                if parameters.holds(&values) && (fits() || power == 0) {
                    return Some(values);
                }
            }
        }
    }
    parameters.with_small(given, Small::Distinct)
}

/// What a parameter says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// The reach of a window: `Q` in `x[C + Q - 1]`, where `C` is in an output and `Q` is in none.
    Window,
    /// It is in no array.
    Steps,
    Extent,
}

/// Relations of the extents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Equal,
    Falling,
    Rising,
}

fn role_of(system: &System, param: usize) -> Role {
    let params_of = |axis: &Axis| params_in(&axis.hi.sub(&axis.lo), system.params.len());
    let inputs = system.inputs.iter().flat_map(|i| &i.axes);
    let inputs: Vec<Vec<usize>> = inputs.map(params_of).collect();
    let outputs = system.outputs.iter().flat_map(|o| &o.axes);
    let in_output = outputs.map(params_of).any(|list| list.contains(&param));
    let own = |list: &&Vec<usize>| list.contains(&param);
    let mut with_others = inputs.iter().filter(own).filter(|list| list.len() > 1);
    match (in_output, inputs.iter().any(|list| list.contains(&param))) {
        (false, true) if with_others.next().is_some() => Role::Window,
        (false, false) => Role::Steps,
        (true, _) | (false, true) => Role::Extent,
    }
}

/// The parameters that occur in a form.
pub fn params_in(form: &Form, params: usize) -> Vec<usize> {
    let occurs = |n: &usize| {
        let other = form.fix_params(&|p| (p.index() == *n).then_some(0));
        other.is_ok_and(|other| other != *form)
    };
    (0..params).filter(occurs).collect()
}

/// An upper estimate of the points and of the array elements.
fn volume(system: &System, values: &[i128]) -> Option<i128> {
    let mut first = Vec::new();
    let mut last = Vec::new();
    let mut points = 1i128;
    for dim in system.dims.iter().chain(&system.bound) {
        // Without a range it is bounded by conditions only.
        let (lo, hi) = match &dim.range {
            None => (0, 1),
            Some((lo, hi)) => {
                let at = |form: &Form, dims: &[i128]| form.eval(values, dims).ok();
                let lows = [at(lo, &first)?, at(lo, &last)?];
                let highs = [at(hi, &first)?, at(hi, &last)?];
                (lows[0].min(lows[1]), highs[0].max(highs[1]))
            }
        };
        first.push(lo);
        last.push(hi - 1);
        points = points.checked_mul((hi - lo).max(1))?;
    }
    let arrays = system.inputs.iter().map(|i| &i.axes);
    let arrays = arrays.chain(system.outputs.iter().map(|o| &o.axes));
    for axes in arrays {
        let mut elements = 1i128;
        for axis in axes {
            let extent = axis.hi.sub(&axis.lo).eval(values, &[]).ok()?;
            elements = elements.checked_mul(extent.max(1))?;
        }
        points = points.max(elements);
    }
    Some(points)
}

#[cfg(test)]
mod tests {
    use systola_ir::form::Rel;
    use systola_ir::id::ParamId;

    use super::*;

    fn params(names: &[&str]) -> Vec<Param> {
        let param = |name: &&str| Param {
            name: (*name).to_string(),
            span: systola_ir::Span::NONE,
        };
        names.iter().map(param).collect()
    }

    #[test]
    fn small_sizes_satisfy_the_context() {
        let params = params(&["N", "K"]);
        let (n, k) = (Form::from(ParamId(0)), Form::from(ParamId(1)));
        let context = [Cond::cmp(Rel::Ge, n.clone(), 8), Cond::cmp(Rel::Lt, k, n)];
        let parameters = Parameters {
            params: &params,
            context: &context,
        };
        assert_eq!(
            parameters.with_small(&Sizes::new(), Small::Distinct),
            Some(vec![8, 3])
        );
        let given = Sizes::from([("N".to_string(), 9)]);
        assert_eq!(
            parameters.with_small(&given, Small::Distinct),
            Some(vec![9, 3])
        );
        let impossible = Sizes::from([("N".to_string(), 2)]);
        assert_eq!(parameters.with_small(&impossible, Small::Distinct), None);
    }

    #[test]
    fn shapes_decide_sizes() {
        let params = params(&["C", "Q"]);
        let parameters = Parameters {
            params: &params,
            context: &[],
        };
        let axis = |hi: Form| Axis {
            lo: Form::zero(),
            hi,
        };
        let (c, q) = (Form::from(ParamId(0)), Form::from(ParamId(1)));
        let mut sizes = Sizes::new();
        parameters.infer(&mut sizes, &[axis(q.clone())], &[3]);
        parameters.infer(&mut sizes, &[axis(c.add(&q).plus(-1))], &[18]);
        assert_eq!(parameters.show(&[sizes["C"], sizes["Q"]]), "C = 16, Q = 3");
    }

    #[test]
    fn products_of_known_sizes_are_known() {
        let params = params(&["N", "M", "K"]);
        let parameters = Parameters {
            params: &params,
            context: &[],
        };
        let form = |n: u32| Form::from(ParamId(n));
        let product = form(0).mul(&form(1)).unwrap().unwrap();
        let axis = |hi: Form| Axis {
            lo: Form::zero(),
            hi,
        };
        let mixed = [axis(product.add(&form(2)))];
        let mut sizes = Sizes::from([("K".to_string(), 1)]);
        parameters.infer(&mut sizes, &mixed, &[7]);
        assert_eq!(sizes.len(), 1, "N and M are both unknown: {sizes:?}");
        let own = [axis(form(0))];
        parameters.infer_all(&mut sizes, &[(&mixed, &[7]), (&own, &[2])]);
        assert_eq!((sizes["N"], sizes["M"]), (2, 3));

        // N·K + N is linear in N.
        let twice = form(0).mul(&form(2)).unwrap().unwrap().add(&form(0));
        let mut sizes = Sizes::from([("K".to_string(), 3)]);
        parameters.infer(&mut sizes, &[axis(twice)], &[20]);
        assert_eq!(sizes["N"], 5);
    }

    /// Typical sizes of a system of this head and body.
    #[track_caller]
    fn check(text: &str, given: &[(&str, i128)], expected: &[i128]) {
        let module = crate::load(text).unwrap();
        let given = given.iter().map(|(p, v)| ((*p).to_string(), *v)).collect();
        let found = typical(&module.systems[0], &given);
        assert_eq!(found.as_deref(), Some(expected));
    }

    #[test]
    fn typical_sizes_know_windows_steps_and_contexts() {
        let conv = "system s(C, Q) where C >= 1, Q >= 1 {
            input x[C + Q - 1]: f32; input w[Q]: f32;
            index c in 0..C;
            var Z: f32 = reduce(+, q in 0..Q, x[c + q] * w[q]);
            output z[C]: f32 = Z at [c]; }";
        check(conv, &[], &[1 << 20, 5]);
        check(conv, &[("Q", 9)], &[1 << 20, 9]);
        check(conv, &[("C", 7)], &[7, 5]);
        let matmul = "system s(N, M, K) where N >= 1, M >= 1, K >= 1 {
            input a[N, K]: f32; input b[K, M]: f32;
            index i in 0..N, j in 0..M;
            var C: f32 = reduce(+, k in 0..K, a[i, k] * b[k, j]);
            output c[N, M]: f32 = C at [i, j]; }";
        check(matmul, &[], &[256, 256, 256]);
        check(
            &matmul.replace("K >= 1", "K >= 1, N > M, M > K"),
            &[],
            &[512, 256, 128],
        );
        check(&matmul.replace("K >= 1", "K >= 1, K <= 3"), &[], &[2, 2, 2]);
        let heat = "stencil heat(N, M, T) { field u[N, M]: f32 mirror; steps T;
            u = u + 0.1*(sum(u over star 1) - 5*u); }";
        let module = crate::load(heat).unwrap();
        let found = typical(&module.systems[0], &Sizes::new()).unwrap();
        let steps = module.systems[0].params.iter().position(|p| p.name == "T");
        assert_eq!(found[steps.unwrap()], 16);
        assert!(found.iter().all(|v| *v >= 16), "{found:?}");
    }
}
