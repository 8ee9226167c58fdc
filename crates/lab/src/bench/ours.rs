//! A mapping compiled for this machine, checked, and timed.

use std::path::Path;

use systola::ir::kernel::BufferKind;
use systola::rt::timing::{Enough, Repeats, Timing, sample};
use systola::rt::{HostArray, RunOptions, View};
use systola::{Compiled, CpuOptions, Fix};
use systola_cli::files::read_text;

use super::problem::{Problem, Scale};
use super::rate_probe::RateProbe;
use crate::compare::floats;
use crate::measure::{enough_on_cpu, is_slow, sample_interleaved};

/// The samples to find the fastest mapping.
const CHOICE: Enough = Enough {
    least: 1,
    most: 25,
    seconds: 0.3,
};

/// A problem ready to run.
#[derive(Debug)]
pub struct Ours<'a> {
    problem: &'a Problem,
    /// The mappings, and the index of the selected one.
    compiled: Vec<Compiled>,
    chosen: usize,
    inputs: Vec<(&'a str, HostArray)>,
    output: HostArray,
}

impl<'a> Ours<'a> {
    pub fn compile(root: &Path, problem: &'a Problem, scale: Scale) -> Result<Ours<'a>, String> {
        let path = root.join(problem.family.folder()).join(problem.program);
        let text = read_text(&path).map_err(|_| format!("cannot read {}", path.display()))?;
        let module = systola::load(&text).map_err(|error| error.to_string())?;
        let options = CpuOptions::from_env().map_err(|e| e.to_string())?;
        let mut options = scale.compiled_by(options);
        options.fix = match problem.fix {
            [] => Fix::Nothing,
            names => Fix::Names(names.iter().map(ToString::to_string).collect()),
        };
        let compile = |mapping: &String| {
            systola::compile(&module, mapping, &problem.sizes, &options).map_err(|e| e.to_string())
        };
        let compiled: Vec<Compiled> = (problem.mappings.iter())
            .map(compile)
            .collect::<Result<_, _>>()?;
        let inputs = problem
            .inputs
            .iter()
            .map(|input| Ok((input.name, input.aligned().map_err(|e| e.to_string())?)))
            .collect::<Result<_, String>>()?;
        let output = match compiled.first() {
            Some(compiled) => output(compiled, problem)?,
            None => return Err("no mapping".to_string()),
        };
        Ok(Ours {
            problem,
            compiled,
            chosen: 0,
            inputs,
            output,
        })
    }

    /// Runs once, into fresh memory, and compares.
    pub fn check(&mut self, threads: usize) -> Result<(), String> {
        self.output = output(&self.compiled[self.chosen], self.problem)?;
        self.run(threads)?;
        let values = floats(&self.output)?;
        let shape = match self.output.shape() {
            [] => vec![1],
            shape => shape.to_vec(),
        };
        match self.problem.expected.fault(&shape, &values) {
            None => Ok(()),
            Some(fault) => Err(format!("wrong: {fault}")),
        }
    }

    /// Checks every mapping and selects the fastest of a short measurement.
    pub fn choose(&mut self, threads: usize) -> Result<(), String> {
        let mut best = (f64::INFINITY, 0);
        for n in 0..self.compiled.len() {
            self.chosen = n;
            self.check(threads)?;
            if self.compiled.len() == 1 {
                break;
            }
            let fastest = sample(CHOICE, |times| self.runs(threads, times))?.min();
            if n == 0 || fastest < best.0 {
                best = (fastest, n);
            }
        }
        self.chosen = best.1;
        Ok(())
    }

    /// The selected mapping.
    pub fn mapping(&self) -> &'a str {
        &self.problem.mappings[self.chosen]
    }

    /// Seconds in the kernel, of warm runs. With a probe they alternate with measurements of the
    /// limits.
    pub fn time(
        &mut self,
        threads: usize,
        scale: Scale,
        probe: Option<&mut RateProbe>,
    ) -> Result<Timing, String> {
        let one = self.run(threads)?;
        if !is_slow(one) {
            self.run(threads)?;
        }
        let enough = enough_on_cpu(one, scale.seconds());
        let run = |times| self.runs(threads, times);
        match probe {
            None => sample(enough, run),
            Some(probe) => sample_interleaved(enough, !is_slow(one), run, || probe.take()),
        }
    }

    fn run(&mut self, threads: usize) -> Result<f64, String> {
        Ok(self.runs(threads, 1)?[0])
    }

    fn runs(&mut self, threads: usize, timed: usize) -> Result<Vec<f64>, String> {
        let inputs: Vec<(&str, View<'_>)> = self
            .inputs
            .iter()
            .map(|(name, array)| (*name, array.view()))
            .collect();
        let mut outputs = [(self.problem.output, self.output.view_mut())];
        let options = RunOptions { threads };
        let repeats = Repeats { warm_up: 0, timed };
        let sizes = &self.problem.sizes;
        let timed =
            self.compiled[self.chosen].time(sizes, &inputs, &mut outputs, &options, repeats);
        Ok(timed.map_err(|e| e.to_string())?.samples)
    }
}

fn output(compiled: &Compiled, problem: &Problem) -> Result<HostArray, String> {
    let buffers = &compiled.program().buffers;
    let is_it = |kind: &BufferKind| matches!(kind, BufferKind::Output { .. });
    let buffer = buffers
        .iter()
        .find(|b| b.name == problem.output && is_it(&b.kind));
    let Some(buffer) = buffer else {
        return Err(format!("the program has no output `{}`", problem.output));
    };
    let shape: &[usize] = if buffer.axes.is_empty() {
        &[]
    } else {
        &problem.expected.shape
    };
    HostArray::zeros(buffer.ty, shape).map_err(|e| e.to_string())
}
