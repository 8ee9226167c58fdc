//! Stencils on the CPU: one sweep and many, compared with the limits of the machine and its
//! baselines.

mod table;

use std::path::Path;
use std::sync::Arc;

use systola::rt::{HostArray, RunOptions};
use systola::{CpuOptions, compile};
use systola_cli::source::{Failure, Outcome, Status};
use systola_cli::term;

use super::super::baselines::Measured;
use super::super::cuda::conv::tolerance;
use super::super::expected::Expected;
use super::super::family::Family;
use super::super::problem::{Input, Problem, Scale, Values, Work};
use super::super::report::{Baseline, ProblemRow, Report};
use super::super::session::Session;
use super::super::tools::root;
use super::catalogue::{STENCILS, Stencil};
use super::field::{Field, doubled};
use super::{Args, ON_CPU, Precision, load, sizes};
use crate::arrays::{self, Array, Arrays};
use crate::compare::floats;

pub fn run(args: &Args) -> Outcome {
    let root = root()?;
    let report = measure(args, &root)?;
    term::print(table::text(&report));
    let failed = report.rows.iter().any(|r| r.refused.is_some());
    Ok(if failed {
        Status::Limitation
    } else {
        Status::Done
    })
}

/// The stencils that have mappings for CPUs, and their programs.
fn family(stencil: &Stencil) -> Option<(Family, &'static str)> {
    match stencil.name {
        "2d5pt" => Some((Family::Stencil2d, "2d5pt.ure")),
        "3d7pt" => Some((Family::Stencil3d, "3d7pt.ure")),
        _ => None,
    }
}

/// A stencil that is measured.
type Chosen = (&'static Stencil, Family, &'static str);

fn chosen(args: &Args) -> Result<Vec<Chosen>, Failure> {
    if args.precisions.contains(&Precision::F64) {
        return Err(Failure::new("on the CPU fields of f32 are timed only"));
    }
    let is_chosen = |s: &&Stencil| args.only.is_empty() || args.only.iter().any(|n| n == s.name);
    let mut list = Vec::new();
    for stencil in STENCILS.iter().filter(is_chosen) {
        match family(stencil) {
            Some((family, program)) => list.push((stencil, family, program)),
            None if args.only.is_empty() => {}
            None => {
                let message = format!("{} has no mapping for CPUs", stencil.name);
                return Err(Failure::new(message).help("2d5pt and 3d7pt have"));
            }
        }
    }
    Ok(list)
}

fn measure(args: &Args, root: &Path) -> Result<Report, Failure> {
    let list = chosen(args)?;
    let scale = Scale::of(args.small);
    let mut session = Session::open(
        root,
        scale,
        args.threads,
        !args.no_baselines,
        2 * list.len(),
    )?;
    let mut rows: Vec<ProblemRow> = Vec::new();
    for chosen in list {
        let sweeps = Sweeps::new(args, root, chosen)?;
        for steps in [None, Some(args.steps())] {
            let problem = sweeps.problem(steps)?;
            session.step(&format!("{}, {}", sweeps.stencil.name, problem.name));
            rows.extend(session.rows(&problem)?);
        }
    }
    repeat_scipy(&mut rows);
    session.report(rows, Vec::new())
}

/// SciPy takes seconds for a sweep, and has no function for many of them: its time for one is
/// multiplied.
fn repeat_scipy(rows: &mut [ProblemRow]) {
    for n in 0..rows.len() {
        let (steps, family, threads) = (rows[n].steps, rows[n].family, rows[n].threads);
        let same = |r: &&ProblemRow| r.steps == 1 && r.family == family && r.threads == threads;
        let once = rows.iter().find(same).filter(|_| steps > 1);
        let Some(its) = once.and_then(|r| r.baseline("SciPy")) else {
            continue;
        };
        let measured = Measured {
            baseline: its.baseline.clone(),
            how: format!("{steps} times {}", its.how),
            seconds: steps as f64 * its.ms / 1e3,
            threads: its.threads,
            fault: its.fault.clone(),
        };
        let baseline = Baseline::new(measured, rows[n].ms);
        rows[n].baselines.push(baseline);
    }
}

/// A field, and its contents after one sweep and many.
struct Sweeps {
    stencil: &'static Stencil,
    family: Family,
    program: &'static str,
    field: Field,
    weights: Arc<Array>,
    /// For one sweep, and for many.
    mappings: [Vec<String>; 2],
    once: Vec<f64>,
    many: Vec<f64>,
}

impl Sweeps {
    fn new(
        args: &Args,
        root: &Path,
        (stencil, family, program): Chosen,
    ) -> Result<Sweeps, Failure> {
        let shape = args.shape(stencil);
        let start = Arrays::default().f32(9, &shape[3 - stencil.rank..]);
        let field = Field::new(stencil, shape, start);
        let weights = field.weights(&[stencil.offsets().len()]);
        let module = load(root, stencil, Precision::F32)?;
        let mappings = ["once", "many"].map(|system| {
            let all = module.mappings.iter();
            let its = all.filter(|m| m.system == system && m.name.ends_with(ON_CPU));
            its.map(|m| m.name.clone()).collect::<Vec<_>>()
        });
        let [Some(first), Some(_)] = [mappings[0].first(), mappings[1].first()] else {
            let message = format!("{} has no mapping for CPUs", stencil.name);
            return Err(Failure::new(message));
        };
        let once = field.swept();
        let many = repeated(args, root, &field, stencil, &weights, first, &once);
        Ok(Sweeps {
            stencil,
            family,
            program,
            many: many.map_err(Failure::new)?,
            field,
            weights,
            mappings,
            once,
        })
    }

    /// One sweep, or many.
    fn problem(&self, steps: Option<u32>) -> Result<Problem, Failure> {
        let shape = &self.field.start.shape;
        let sides: Vec<String> = shape.iter().map(usize::to_string).collect();
        let side = match &sides[..] {
            [first, rest @ ..] if rest.iter().all(|s| s == first) => {
                format!("{first}{}", if rest.len() == 1 { "²" } else { "³" })
            }
            _ => sides.join(" × "),
        };
        let cells = self.field.cells() as f64;
        let taps = self.stencil.offsets().len();
        let sweeps = f64::from(steps.unwrap_or(1));
        let (values, tolerance) = match steps {
            None => (&self.once, tolerance(taps, Precision::F32.unit())),
            Some(_) => (&self.many, Precision::F32.tolerance_of_many()),
        };
        Ok(Problem {
            family: self.family,
            name: match steps {
                None => format!("{side}, 1 sweep"),
                Some(steps) => format!("{side}, {steps} sweeps"),
            },
            program: self.program,
            mappings: self.mappings[usize::from(steps.is_some())].clone(),
            sizes: sizes(self.field.shape, self.stencil.rank, steps),
            fix: &[],
            inputs: vec![input("u", &self.field.start)?, input("w", &self.weights)?],
            output: "u'",
            expected: Expected {
                shape: shape.clone(),
                values: values.clone(),
                tolerance,
            },
            work: Work {
                operations: 2.0 * taps as f64 * cells * sweeps,
                bytes: 2.0 * Precision::F32.bytes() * cells,
            },
        })
    }
}

fn input(name: &'static str, array: &Array) -> Result<Input, Failure> {
    match &array.values {
        arrays::Values::F32(v) => Ok(Input::new(name, &array.shape, Values::F32(v.clone()))),
        _ => Err(Failure::new(format!("`{name}` is not of f32"))),
    }
}

/// The field after many sweeps in f64, one by one, by a mapping for one sweep that is verified
/// first.
fn repeated(
    args: &Args,
    root: &Path,
    field: &Field,
    stencil: &Stencil,
    weights: &Array,
    mapping: &str,
    once: &[f64],
) -> Result<Vec<f64>, String> {
    let module = load(root, stencil, Precision::F64).map_err(|f| format!("{f:?}"))?;
    let sizes = sizes(field.shape, stencil.rank, None);
    let options = CpuOptions::from_env().map_err(|e| e.to_string())?;
    let options = Scale::of(args.small).compiled_by(options);
    let compiled = compile(&module, mapping, &sizes, &options).map_err(|e| e.to_string())?;
    let host = |array: &Array| match &array.values {
        arrays::Values::F64(v) => HostArray::from_slice(v, &array.shape).map_err(|e| e.to_string()),
        _ => Err("not of f64".to_string()),
    };
    let (mut now, weights) = (host(&doubled(&field.start))?, host(&doubled(weights))?);
    let mut next = HostArray::zeros(now.ty(), now.shape()).map_err(|e| e.to_string())?;
    for n in 0..args.steps() {
        let inputs = [("u", now.view()), ("w", weights.view())];
        let mut outputs = [("u'", next.view_mut())];
        compiled
            .run(&sizes, &inputs, &mut outputs, &RunOptions::default())
            .map_err(|e| e.to_string())?;
        std::mem::swap(&mut now, &mut next);
        if n == 0 {
            let expected = Expected {
                shape: now.shape().to_vec(),
                values: once.to_vec(),
                tolerance: tolerance(weights.shape().iter().product(), Precision::F64.unit()),
            };
            if let Some(fault) = expected.fault(now.shape(), &floats(&now)?) {
                return Err(format!("{mapping} in f64 is wrong: {fault}"));
            }
        }
    }
    floats(&now)
}

#[cfg(test)]
mod tests;
