//! Are the results of a candidate right?
//!
//! Every candidate is compared with the equations, as far as that is possible in little time:
//!
//! * before it is first timed, at small sizes, all of its results, if its kernels support other
//!   sizes than those of the problem: odd sizes, or sizes that suit code which relies on rows of
//!   whole vectors;
//! * before it is timed for long, or at once where small sizes are not possible, at the sizes of
//!   the problem: a sample of its results, if evaluating the sample takes few other values, and all
//!   of its results against those of the first candidate that passed.
//!
//! Where neither is possible for the first candidate, its mapping is compiled again for small
//! sizes. Integers must be equal, floats within the bounds of [`systola_interp::rounding`].

use std::collections::BTreeMap;

use systola_driver::{Lowered, check_mapping};
use systola_interp::compare::{Expected, compare, compare_two, is_close, largest, usual};
use systola_interp::tensor::{Data, TensorError};
use systola_interp::{
    Arrays, Sample, SampleOptions, Tensor, Value, draw, expect_system, sample_system,
};
use systola_ir::codes::run as codes;
use systola_ir::mapping::Mapping;
use systola_ir::system::visit::walk;
use systola_ir::system::{Dim, Expr, System};
use systola_ir::{Diagnostic, Scalar, Span};
use systola_jit::cpu::Error;
use systola_rt::{Deadline, Element, HostArray};

use super::{Target, fault};
use crate::problem::Problem;
use crate::search::Fault;

/// Small sizes: the extents to try, the largest first, and the difference between extents of
/// different axes.
struct Extents {
    first: &'static [i128],
    difference: i128,
}

/// Odd, so that tiles are partial; or multiples of the widest access.
const SMALL: [Extents; 2] = [
    Extents {
        first: &[301, 131, 67, 35, 19, 9, 5, 3],
        difference: 2,
    },
    Extents {
        first: &[272, 144, 80, 48, 32, 16],
        difference: 16,
    },
];
/// The maximum number of points that the interpreter evaluates at small sizes.
const POINTS: i128 = 200_000;
/// Sampled elements besides the corners, and the maximum number of values evaluated for them.
const SAMPLED: usize = 64;
const VALUES: u64 = 100_000;
/// The bound of an element may be this many times that of a sampled one.
const BEYOND_SAMPLE: f64 = 4.0;
/// The maximum number of terms in all sums of a sample.
const TERMS: i128 = 4_000_000;

/// Compares results with the equations.
pub(crate) struct Verifier<'s, 'a, T: Target> {
    problem: &'s Problem<'a>,
    target: &'s T,
    params: Vec<i128>,
    seed: u64,
    inputs: Arrays,
    /// By the set of fixed parameters: small sizes, odd and even, with inputs and expected results;
    /// `None` where there are no small sizes.
    small: BTreeMap<Vec<bool>, Vec<Small>>,
    /// `None`: not drawn yet. Empty: evaluating it would take too long.
    sample: Option<Vec<Sample>>,
    /// The results and the name of the first candidate that passed.
    first: Option<(String, Arrays)>,
    in_full: usize,
}

struct Small {
    params: Vec<i128>,
    inputs: Arrays,
    expected: Expected,
}

/// How candidates were verified, for the report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// Small sizes at which all results were compared.
    pub small: Option<Vec<i128>>,
    /// Elements that were compared with the equations at the sizes of the problem.
    pub sampled: usize,
    /// Candidates whose results were compared at the sizes of the problem.
    pub in_full: usize,
}

impl<'s, 'a, T: Target> Verifier<'s, 'a, T> {
    pub(crate) fn new(
        problem: &'s Problem<'a>,
        target: &'s T,
        params: Vec<i128>,
        seed: u64,
        inputs: Arrays,
    ) -> Self {
        Verifier {
            problem,
            target,
            params,
            seed,
            inputs,
            small: BTreeMap::new(),
            sample: None,
            first: None,
            in_full: 0,
        }
    }

    pub(crate) fn inputs(&self) -> &Arrays {
        &self.inputs
    }

    pub(crate) fn evidence(&self) -> Evidence {
        let small = self.small.values().flatten().next();
        Evidence {
            small: small.map(|s| s.params.clone()),
            sampled: self.sample.as_ref().map_or(0, Vec::len),
            in_full: self.in_full,
        }
    }

    /// Verifies at small sizes; false where the kernels support no small sizes.
    pub(crate) fn before_it_is_timed(
        &mut self,
        mapping: &Mapping,
        code: &T::Code,
        lowered: &Lowered,
        deadline: &Deadline,
    ) -> Result<bool, Fault> {
        let fixed = fixed(lowered);
        let more_sizes = fixed.iter().any(|fixed| !fixed);
        Ok(more_sizes && self.at_small_sizes(mapping, &fixed, Some(code), deadline)?)
    }

    /// Verifies at the sizes of the problem.
    pub(crate) fn in_full(
        &mut self,
        mapping: &Mapping,
        code: &T::Code,
        lowered: &Lowered,
        placed: &mut T::Placed,
        deadline: &Deadline,
    ) -> Result<(), Fault> {
        self.target.clear(placed).map_err(fault)?;
        self.target.time(code, placed, 1).map_err(fault)?;
        let found = self.target.outputs(placed).map_err(fault)?;
        let sampled = self.in_a_sample(lowered, found)?;
        self.in_full += 1;
        if let Some((name, first)) = &self.first {
            let other = format!(
                "; expected is what `{name}` gives, which passed before: one of the two is wrong"
            );
            let least = self.least(first);
            return no_difference(compare_two(first, found, &least), &other);
        }
        let fixed = fixed(lowered);
        if !sampled && fixed.iter().all(|fixed| *fixed) {
            self.at_small_sizes(mapping, &vec![false; fixed.len()], None, deadline)?;
        }
        self.first = Some((mapping.name.clone(), found.clone()));
        Ok(())
    }

    /// Compares all results at small sizes; false where there are none. Without code for them the
    /// mapping is compiled.
    fn at_small_sizes(
        &mut self,
        mapping: &Mapping,
        fixed: &[bool],
        code: Option<&T::Code>,
        deadline: &Deadline,
    ) -> Result<bool, Fault> {
        if !self.small.contains_key(fixed) {
            let cases = SMALL.iter();
            let cases = cases.filter_map(|extents| self.small_case(mapping, fixed, extents));
            let cases = cases.collect();
            self.small.insert(fixed.to_vec(), cases);
        }
        let is_for =
            |small: &&Small| code.is_none_or(|code| self.target.is_for(code, &small.params));
        let Some(small) = self.small[fixed].iter().find(is_for) else {
            return Ok(false);
        };
        let found = match code {
            Some(code) => self.target.run(code, &small.params, &small.inputs),
            None => {
                let mut problem = self.problem.clone();
                problem.sizes = self.named(&small.params);
                let Ok(lowered) = problem.lower(mapping) else {
                    return Ok(false);
                };
                let code = self.target.compile(lowered, deadline).map_err(fault)?;
                self.target.run(&code, &small.params, &small.inputs)
            }
        };
        let found = found.map_err(fault)?;
        let sizes: Vec<String> = self
            .named(&small.params)
            .iter()
            .map(|(p, v)| format!("{p} = {v}"))
            .collect();
        let more = format!("; at {}", sizes.join(", "));
        no_difference(compare(&small.expected, &found), &more)?;
        Ok(true)
    }

    fn named(&self, params: &[i128]) -> BTreeMap<String, i128> {
        let names = self.problem.system.params.iter().map(|p| p.name.clone());
        names.zip(params.iter().copied()).collect()
    }

    /// The largest small sizes at which evaluating the equations takes little time.
    fn small_case(&self, mapping: &Mapping, fixed: &[bool], extents: &Extents) -> Option<Small> {
        let system = self.problem.system;
        let mut tried = Vec::new();
        let difference = extents.difference;
        for extent in extents.first {
            let mut open = 0;
            let params: Vec<i128> = self
                .params
                .iter()
                .zip(fixed)
                .map(|(full, fixed)| {
                    if *fixed {
                        return *full;
                    }
                    // Different extents make a swap of axes visible.
                    open += difference;
                    (extent + open - difference).min(*full)
                })
                .collect();
            let holds = system
                .context
                .iter()
                .all(|c| c.eval(&params, &[]) == Ok(true));
            if !holds || params == self.params || tried.contains(&params) {
                continue;
            }
            let checked = check_mapping(self.problem.module, mapping, &self.named(&params));
            let counts = checked.ok().and_then(|c| c.report.counts);
            if counts.is_some_and(|counts| counts.points <= POINTS) {
                let inputs = random_inputs(system, &params, self.seed).ok()?;
                let expected = expect_system(system, &params, &inputs).ok()?;
                return Some(Small {
                    params,
                    inputs,
                    expected,
                });
            }
            tried.push(params);
        }
        None
    }

    /// Compares a sample of the results at the sizes of the problem; false where evaluating it
    /// would take too long.
    fn in_a_sample(&mut self, lowered: &Lowered, found: &Arrays) -> Result<bool, Fault> {
        if self.sample.is_none() {
            self.sample = Some(self.draw_sample(lowered));
        }
        let sample = self.sample.as_deref().unwrap_or(&[]);
        for (name, tensor) in found {
            for one in sample.iter().filter(|s| s.output == *name) {
                let got = tensor.get(&one.index);
                let close = got
                    .as_ref()
                    .is_some_and(|got| is_close(&one.value, got, one.bound));
                if !close {
                    let got = got.map_or_else(|| "nothing".to_string(), |v| v.to_string());
                    return Err(Fault::Wrong(format!(
                        "{name}{:?} is {got}, the equations say {}",
                        one.index, one.value
                    )));
                }
            }
        }
        Ok(!sample.is_empty())
    }

    /// The tolerance between two compiled results: what the equations allow in a sample, or,
    /// without one, the usual tolerance for the largest magnitude of the array.
    fn least(&self, first: &Arrays) -> BTreeMap<String, f64> {
        let sample = self.sample.as_deref().unwrap_or(&[]);
        let bounds = first.iter().map(|(name, tensor)| {
            let own = sample.iter().filter(|s| s.output == *name);
            let widest = own.map(|s| s.bound).reduce(f64::max);
            let bound = match widest {
                Some(widest) => BEYOND_SAMPLE * widest,
                None => self.without_sample(tensor),
            };
            (name.clone(), bound)
        });
        bounds.collect()
    }

    /// Of very long sums no element is evaluated. What n additions in two orders may differ by,
    /// where partial sums grow as those of terms of either sign do, or as those of one sign.
    fn without_sample(&self, tensor: &Tensor) -> f64 {
        let usual = usual(tensor.ty());
        let terms = longest_sum(self.problem.system, &self.params) as f64;
        let inputs = self.inputs.values().map(largest);
        let term = inputs.fold(1.0, f64::max);
        // A rounding is a hundredth of the usual tolerance or less.
        let rounding = usual / 100.0;
        usual * largest(tensor) + rounding * (terms * term + terms.sqrt() * largest(tensor))
    }

    fn draw_sample(&self, lowered: &Lowered) -> Vec<Sample> {
        // The approximate number of terms in the sum of one result.
        let counts = lowered.checked.report.counts.as_ref();
        let each = counts.map_or(1, |c| c.points / c.outputs.max(1));
        let each = each.max(longest_sum(self.problem.system, &self.params));
        let count = (TERMS / each).min(SAMPLED as i128);
        if count < 1 {
            return Vec::new();
        }
        let options = SampleOptions {
            count: count as usize,
            seed: self.seed,
            most_values: VALUES,
        };
        sample_system(self.problem.system, &self.params, &self.inputs, &options).unwrap_or_default()
    }
}

/// The number of terms of the longest sum or prefix whose range is the same at all points; at least
/// 1.
fn longest_sum(system: &System, params: &[i128]) -> i128 {
    let extent = |dim: &Dim| {
        let (lo, hi) = dim.range.as_ref()?;
        Some(hi.eval(params, &[]).ok()? - lo.eval(params, &[]).ok()?)
    };
    let is_constant = |dim: &&Dim| {
        let range = dim.range.as_ref();
        range.is_some_and(|(lo, hi)| lo.dims().is_empty() && hi.dims().is_empty())
    };
    let mut prefixes = Vec::new();
    for var in &system.vars {
        walk(&var.body, &mut |expr| {
            if let Expr::Scan { dim, .. } = expr {
                prefixes.push(system.dim(*dim));
            }
        });
    }
    let sums = system.bound.iter().chain(prefixes).filter(is_constant);
    sums.filter_map(extent).max().unwrap_or(1).max(1)
}

/// The parameters that are constants in the kernels.
fn fixed(lowered: &Lowered) -> Vec<bool> {
    let params = lowered.program.params.iter();
    params.map(|p| p.fixed.is_some()).collect()
}

fn no_difference(lines: Vec<Result<String, String>>, more: &str) -> Result<(), Fault> {
    for line in lines {
        line.map_err(|text| Fault::Wrong(text + more))?;
    }
    Ok(())
}

/// Reproducible random inputs for a problem that gives none.
pub(crate) fn random_inputs(system: &System, params: &[i128], seed: u64) -> Result<Arrays, Error> {
    let expanded = expand(system)?;
    let arrays = draw::random_inputs(&expanded, params, |n| seed.wrapping_add(n.index() as u64));
    Ok(arrays.map_err(|(name, e)| too_large(&name, e))?)
}

fn expand(system: &System) -> Result<System, Error> {
    system
        .expand_batch()
        .map_err(|e| too_large(&system.name, e).into())
}

fn too_large(name: &str, why: impl std::fmt::Display) -> Diagnostic {
    Diagnostic::new(&codes::TOO_LARGE, Span::NONE, format!("`{name}`: {why}"))
        .help("use smaller sizes with --set")
}

/// The outputs of a system, with contents that no run produces.
pub(crate) fn outputs(system: &System, params: &[i128]) -> Result<Arrays, Error> {
    let unlikely = |ty| match ty {
        Scalar::Bool => Value::Bool(true),
        Scalar::I8 => Value::I8(113),
        Scalar::I16 => Value::I16(11_311),
        Scalar::I32 => Value::I32(1_131_131),
        Scalar::I64 => Value::I64(1_131_131),
        Scalar::U8 => Value::U8(113),
        Scalar::U16 => Value::U16(11_311),
        Scalar::U32 => Value::U32(1_131_131),
        Scalar::U64 => Value::U64(1_131_131),
        Scalar::F32 => Value::F32(f32::NAN),
        Scalar::F64 => Value::F64(f64::NAN),
        Scalar::F16 | Scalar::BF16 => Value::zero(ty),
    };
    expand(system)?
        .outputs
        .iter()
        .map(|output| {
            let value = unlikely(output.ty);
            let tensor = Tensor::filled(output.ty, &output.axes, params, &value);
            let tensor = tensor.map_err(|e: TensorError| too_large(&output.name, e))?;
            Ok((output.name.clone(), tensor))
        })
        .collect()
}

pub(crate) fn named_sizes(system: &System, params: &[i128]) -> Vec<(String, i64)> {
    let names = system.params.iter().map(|p| p.name.clone());
    let values = params.iter().map(|v| i64::try_from(*v).unwrap_or(i64::MAX));
    names.zip(values).collect()
}

/// Copies a host array into a tensor of the same type and shape.
pub(crate) fn copy(array: &HostArray, to: &mut Tensor) -> Result<(), Error> {
    fn of<T: Element>(array: &HostArray, to: &mut [T]) -> Option<()> {
        let from = array.as_slice::<T>()?;
        (from.len() == to.len()).then(|| to.copy_from_slice(from))
    }
    let copied = match &mut to.data {
        Data::Bool(v) => of(array, v),
        Data::I8(v) => of(array, v),
        Data::I16(v) => of(array, v),
        Data::I32(v) => of(array, v),
        Data::I64(v) => of(array, v),
        Data::U8(v) => of(array, v),
        Data::U16(v) => of(array, v),
        Data::U32(v) => of(array, v),
        Data::U64(v) => of(array, v),
        Data::F32(v) => of(array, v),
        Data::F64(v) => of(array, v),
        Data::F16(_) | Data::BF16(_) => None,
    };
    copied.ok_or_else(|| too_large("an output", "its type is not compiled").into())
}
