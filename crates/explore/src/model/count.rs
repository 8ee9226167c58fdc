//! The census of a program: what its kernels do at given sizes, counted without any values.
//!
//! Long loops and large numbers of blocks and warps are sampled. The first and the last iterations
//! are counted individually, since conditions change there; samples in between represent all
//! others. This is exact for a loop whose iterations are all alike. With [`Sampling::Everything`]
//! the census equals the counts of the kernel interpreter, except for lookups in tables, whose
//! addresses are not known here.

use systola_interp::linear::Linear;
use systola_ir::form::Overflow;
use systola_ir::kernel::census::{Event, Touch};
use systola_ir::kernel::{Host, Program};
use systola_ir::{Form, KernelId};

use super::code::{Access, Code, DynamicBlockId, Lanes, Node};
use super::tally::{Quantity, Tally};
use super::touch::{self, PERIOD};

/// Whether all iterations are counted, or a sample of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampling {
    Everything,
    Some,
}

/// The work of all launches of one kernel.
#[derive(Clone, Debug, Default)]
pub struct KernelCensus {
    pub launches: f64,
    pub blocks: f64,
    pub tally: Tally,
    /// The host's variables in each sampled launch, with its weight.
    pub arguments: Vec<(Vec<i64>, f64)>,
}

/// A program, counted.
#[derive(Debug)]
pub struct Census<'p> {
    /// One for each kernel of the program.
    pub codes: Vec<Code<'p>>,
    pub kernels: Vec<KernelCensus>,
    pub total: Tally,
}

impl<'p> Census<'p> {
    pub fn take(
        program: &'p Program,
        sizes: &[i128],
        lanes: Lanes,
        sampling: Sampling,
    ) -> Result<Census<'p>, Overflow> {
        let compile = |n| Code::compile(program, KernelId::from(n), sizes, lanes);
        let codes: Vec<Code<'p>> = (0..program.kernels.len())
            .map(compile)
            .collect::<Result<_, _>>()?;
        let mut host = HostWalk {
            sizes,
            sampling,
            codes: &codes,
            kernels: vec![KernelCensus::default(); codes.len()],
            point: vec![0; program.host_vars.len()],
        };
        host.steps(&program.body, 1.0)?;
        let kernels = host.kernels;
        let mut total = Tally::default();
        for kernel in &kernels {
            total.add(&kernel.tally, 1.0);
        }
        Ok(Census {
            codes,
            kernels,
            total,
        })
    }
}

/// The sampled indices of n iterations, with the number of iterations that each represents. If n is
/// small, these are all indices; else the first and the last `ends`, and `between` in the middle.
fn sampled_indices(n: i64, sampling: Sampling, ends: i64, between: i64) -> Vec<(i64, f64)> {
    if sampling == Sampling::Everything || n <= between + 2 * ends {
        return (0..n).map(|index| (index, 1.0)).collect();
    }
    // Wide enough for any number of iterations.
    let rest = i128::from(n - 2 * ends);
    let mut list: Vec<(i64, f64)> = (0..ends).map(|index| (index, 1.0)).collect();
    let parts = i128::from(between);
    for k in 0..parts {
        let (from, to) = (rest * k / parts, rest * (k + 1) / parts);
        // Far from the ends, and at varying distances, since addresses are aligned to powers of
        // two.
        let at = from + (to - from) * (3 + 3 * k % 5) / 10;
        list.push((ends + at as i64, (to - from) as f64));
    }
    list.extend((n - ends..n).map(|index| (index, 1.0)));
    list
}

struct HostWalk<'c, 'p> {
    sizes: &'c [i128],
    sampling: Sampling,
    codes: &'c [Code<'p>],
    kernels: Vec<KernelCensus>,
    point: Vec<i64>,
}

impl HostWalk<'_, '_> {
    fn steps(&mut self, steps: &[Host], weight: f64) -> Result<(), Overflow> {
        for step in steps {
            match step {
                Host::Launch { kernel, args } => {
                    let args = self.values(args)?;
                    self.launch(*kernel, &args, weight)?;
                }
                Host::For { var, lo, hi, body } => {
                    let lo = self.values(lo)?.into_iter().max().unwrap_or(0);
                    let hi = self.values(hi)?.into_iter().min().unwrap_or(0);
                    for (index, times) in
                        sampled_indices(hi.saturating_sub(lo), self.sampling, 2, 2)
                    {
                        self.point[var.index()] = lo + index;
                        self.steps(body, weight * times)?;
                    }
                }
                Host::If {
                    cond,
                    then,
                    otherwise,
                } => {
                    let point: Vec<i128> = self.point.iter().map(|v| i128::from(*v)).collect();
                    let holds = cond.eval(self.sizes, &point)?;
                    self.steps(if holds { then } else { otherwise }, weight)?;
                }
            }
        }
        Ok(())
    }

    fn values(&self, forms: &[Form]) -> Result<Vec<i64>, Overflow> {
        let value = |form: &Form| {
            let linear = Linear::compile(form, self.sizes)?;
            linear.eval(&self.point).ok_or(Overflow)
        };
        forms.iter().map(value).collect()
    }

    fn launch(&mut self, kernel: KernelId, args: &[i64], weight: f64) -> Result<(), Overflow> {
        let code = &self.codes[kernel.index()];
        let mut walk = Walk::new(code, self.sampling);
        let blocks = walk.launch(args)?;
        let census = &mut self.kernels[kernel.index()];
        let mut tally = walk.finish();
        tally[Event::Launches] = 1.0;
        tally[Event::Blocks] = blocks;
        census.launches += weight;
        census.blocks += blocks * weight;
        census.tally.add(&tally, weight);
        census.arguments.push((args.to_vec(), weight));
        Ok(())
    }
}

/// The largest lower bound and the smallest upper bound.
pub fn bounds(lo: &[Linear], hi: &[Linear], point: &[i64]) -> Result<(i64, i64), Overflow> {
    let values = |list: &[Linear]| -> Result<Vec<i64>, Overflow> {
        let value = |form: &Linear| form.eval(point).ok_or(Overflow);
        list.iter().map(value).collect()
    };
    let lo = values(lo)?.into_iter().max().unwrap_or(0);
    let hi = values(hi)?.into_iter().min().unwrap_or(0);
    Ok((lo, hi))
}

/// The largest stride from lane to lane: a multiple of all line, bank and page sizes.
const MOST_STEP: i64 = 1 << 40;

/// By the offset in a line at which an access begins: its work, and how often that happened.
type ByAlignment = Vec<Option<(Tally, f64)>>;

struct Walk<'c, 'p> {
    code: &'c Code<'p>,
    sampling: Sampling,
    point: Vec<i64>,
    /// For each axis of the grid: its variable, the index of the block, and the number of blocks.
    place: Vec<(usize, i64, i64)>,
    warp: i64,
    tally: Tally,
    known: Vec<ByAlignment>,
    touches: Vec<Touch>,
    seen: Vec<u64>,
}

/// The work of the block with the given index variables.
pub fn of_block(code: &Code<'_>, point: Vec<i64>) -> Result<Tally, Overflow> {
    let mut walk = Walk::new(code, Sampling::Some);
    walk.point = point;
    walk.warps(1.0)?;
    Ok(walk.finish())
}

impl<'c, 'p> Walk<'c, 'p> {
    fn new(code: &'c Code<'p>, sampling: Sampling) -> Walk<'c, 'p> {
        Walk {
            code,
            sampling,
            point: vec![0; code.kernel.vars.len()],
            place: Vec::new(),
            warp: 0,
            tally: Tally::default(),
            known: vec![Vec::new(); code.accesses.len()],
            touches: Vec::new(),
            seen: Vec::new(),
        }
    }

    /// Returns the number of blocks.
    fn launch(&mut self, args: &[i64]) -> Result<f64, Overflow> {
        for (var, value) in self.code.host.iter().zip(args) {
            self.point[*var] = *value;
        }
        let mut axes = Vec::new();
        let mut blocks = 1.0;
        for range in &self.code.grid {
            let (lo, hi) = bounds(&range.lo, &range.hi, &self.point)?;
            let n = hi.saturating_sub(lo).max(0);
            blocks *= n as f64;
            axes.push((range.var, lo, n));
        }
        if blocks > 0.0 {
            self.blocks(&axes, 1.0)?;
        }
        Ok(blocks)
    }

    /// The total.
    fn finish(mut self) -> Tally {
        for (work, times) in self.known.iter().flatten().flatten() {
            self.tally.add(work, *times);
        }
        self.tally
    }

    fn blocks(&mut self, axes: &[(usize, i64, i64)], weight: f64) -> Result<(), Overflow> {
        let Some(((var, lo, n), rest)) = axes.split_first() else {
            return self.warps(weight);
        };
        let between = if self.code.grid.len() > 1 { 1 } else { 2 };
        for (index, times) in sampled_indices(*n, self.sampling, 1, between) {
            self.point[*var] = lo + index;
            self.place.push((*var, index, *n));
            self.blocks(rest, weight * times)?;
            self.place.pop();
        }
        Ok(())
    }

    fn warps(&mut self, weight: f64) -> Result<(), Overflow> {
        let n = i64::from(self.code.kernel.warps);
        let list = match (self.code.warps_differ, self.code.warp) {
            (true, Some(_)) => sampled_indices(n, self.sampling, 1, 2),
            // The first warp also does what is done once for the block.
            (true | false, _) if n > 1 => vec![(0, 1.0), (1, (n - 1) as f64)],
            (true | false, _) => vec![(0, 1.0)],
        };
        for (warp, times) in list {
            if let Some(var) = self.code.warp {
                self.point[var] = warp;
            }
            self.warp = warp;
            let code = self.code;
            self.nodes(&code.body, weight * times)?;
        }
        Ok(())
    }

    fn nodes(&mut self, nodes: &'c [Node], weight: f64) -> Result<(), Overflow> {
        for node in nodes {
            affine::cancel::check();
            match node {
                Node::Straight(tally) => self.tally.add(tally, weight),
                Node::Once(tally) if self.warp == 0 => self.tally.add(tally, weight),
                Node::Once(_) => {}
                Node::DynamicBlockId(DynamicBlockId { var, counter }) => {
                    let others = self.place.iter().filter(|(v, _, _)| !counter.contains(v));
                    self.point[*var] = others.fold(0, |number, (_, index, n)| number * n + index);
                }
                Node::Access(n) => self.access(*n, weight)?,
                Node::If {
                    test,
                    then,
                    otherwise,
                } => {
                    let holds = test.eval(&self.point).ok_or(Overflow)?;
                    self.tally[Quantity::Branches] += weight;
                    self.nodes(if holds { then } else { otherwise }, weight)?;
                }
                Node::For {
                    var,
                    lo,
                    hi,
                    step,
                    body,
                    matters,
                } => {
                    let (lo, hi) = bounds(lo, hi, &self.point)?;
                    let n = trip_count(lo, hi, *step);
                    self.tally[Quantity::Branches] += weight * n as f64;
                    let list = match (*matters, n) {
                        (_, 0) => Vec::new(),
                        (false, _) => vec![(0, n as f64)],
                        (true, _) => {
                            let nested = body.iter().any(|node| matches!(node, Node::For { .. }));
                            sampled_indices(
                                n,
                                self.sampling,
                                if nested { 2 } else { 4 },
                                if nested { 3 } else { 8 },
                            )
                        }
                    };
                    for (index, times) in list {
                        self.point[*var] = lo + index * step;
                        self.nodes(body, weight * times)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn access(&mut self, number: usize, weight: f64) -> Result<(), Overflow> {
        let code = self.code;
        let access = &code.accesses[number];
        if let Some(lane) = code.lane {
            self.point[lane] = 0;
        }
        let step = access.step.filter(|_| access.when_is_uniform);
        let Some(step) = step else {
            self.resolve(access)?;
            let work = touch::work(access, code.lanes, &self.touches, &mut self.seen);
            self.tally.add(&work, weight);
            return Ok(());
        };
        if !self.is_on(access)? {
            return Ok(());
        }
        let first = access.position.eval(&self.point).ok_or(Overflow)?;
        let bytes = access.bytes as i64;
        // The base is a multiple of all lines and of all rows of banks, so that nothing depends on
        // the address of the array itself.
        let period = PERIOD as i64 / bytes;
        let alignment = first.rem_euclid(period);
        let known = &mut self.known[number];
        if known.is_empty() {
            known.resize(period as usize, None);
        }
        if let Some((_, times)) = &mut known[alignment as usize] {
            *times += weight;
        } else {
            // Strides beyond `MOST_STEP` all behave alike.
            let step = step.clamp(-MOST_STEP, MOST_STEP);
            let last = (access.lanes as i64 - 1) * step;
            // Large enough that no lane has a negative address.
            let base = alignment + period * (last.abs() / period + 1);
            self.touches.clear();
            for lane in 0..access.lanes {
                let at = (base + step * lane as i64) * bytes;
                self.touches.push((lane, at as u64));
            }
            let work = touch::work(access, code.lanes, &self.touches, &mut self.seen);
            known[alignment as usize] = Some((work, weight));
        }
        Ok(())
    }

    fn is_on(&self, access: &Access) -> Result<bool, Overflow> {
        let when = access.when.eval(&self.point).ok_or(Overflow)?;
        let also = access.also.as_ref().map(|test| test.eval(&self.point));
        Ok(when && also.unwrap_or(Some(true)).ok_or(Overflow)?)
    }

    /// The active lanes and their addresses.
    fn resolve(&mut self, access: &Access) -> Result<(), Overflow> {
        self.touches.clear();
        for lane in 0..access.lanes {
            if let Some(var) = self.code.lane {
                self.point[var] = lane as i64;
            }
            if self.is_on(access)? {
                let position = access.position.eval(&self.point).ok_or(Overflow)?;
                let at = (position.max(0) as u64).saturating_mul(access.bytes);
                self.touches.push((lane, at));
            }
        }
        Ok(())
    }
}

/// The number of iterations of a loop.
pub fn trip_count(lo: i64, hi: i64, step: i64) -> i64 {
    let step = step.max(1);
    let range = hi.saturating_sub(lo).max(0);
    range / step + i64::from(range % step != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_stand_for_all() {
        for n in [0, 1, 5, 12, 13, 100, 1 << 20] {
            for (ends, between) in [(4, 8), (2, 3), (1, 2), (1, 1)] {
                let list = sampled_indices(n, Sampling::Some, ends, between);
                let sum: f64 = list.iter().map(|(_, times)| times).sum();
                assert_eq!(sum, n as f64);
                assert!(list.windows(2).all(|pair| pair[0].0 < pair[1].0));
                assert!(list.iter().all(|(index, _)| (0..n).contains(index)));
            }
            assert_eq!(
                sampled_indices(n, Sampling::Everything, 4, 8).len(),
                n as usize
            );
        }
    }
}
