//! A stencil under a boundary condition, with elements of a type, one sweep or many: its mappings,
//! run at odd sizes.

use std::fmt;

use systola_cli::source::Parameters;
use systola_cli::target_device::TargetDevice;
use systola_driver::{check_mapping, check_system};
use systola_interp::{Arrays, Tensor};
use systola_ir::Scalar;
use systola_ir::mapping::Mapping;
use systola_ir::system::{Module, System};
use systola_ir::target::Target;
use systola_stencil::reference::Grid;

use super::boundary_name::BoundaryName;
use super::plain::{PLAIN, plain};
use crate::arrays::bits;
use crate::bench::stencils::catalogue::Stencil;
use crate::bench::stencils::{ON_CPU, with_type};
use crate::verify::code::{Code, all_of, no_code};
use crate::verify::device::Compiled;
use crate::verify::tally::RunResult;

/// The boundary condition in the text of the programs.
const WRITTEN: &str = " fixed;";

#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub stencil: &'static Stencil,
    pub boundary: BoundaryName,
    pub ty: Scalar,
    pub many: bool,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.boundary.word(), self.ty, self.system())
    }
}

/// The results of the mappings of a case.
#[derive(Default)]
pub struct Runs {
    /// Each with the name of its mapping.
    pub rows: Vec<(String, RunResult)>,
    /// The largest error of the verified runs, relative to its bound.
    pub worst: f64,
}

/// A run and its expected result.
struct Trial {
    params: Vec<i128>,
    shown: String,
    steps: usize,
    inputs: Arrays,
    expect: Grid,
    takes: Takes,
}

/// Which mappings a trial is for. Code for a GPU depends on which tiles touch an edge, and that of
/// many sweeps compiles for long, so the sizes are distributed over the mappings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Takes {
    /// The plain one.
    Plain,
    /// Those of the file, else the plain one.
    Any,
    /// Those of the file.
    Own,
}

impl Case {
    pub fn system(&self) -> &'static str {
        if self.many { "many" } else { "once" }
    }

    /// Runs the mappings of a program for this case, and the plain one at the remaining sizes.
    pub fn verify(&self, device: &TargetDevice, text: &str, map: Option<&str>) -> Runs {
        let target = device.target();
        let mut runs = Runs::default();
        let failed = |what| (PLAIN.to_string(), RunResult::Failed(what));
        let module = match self.module(text) {
            Ok(module) => module,
            Err(what) => {
                runs.rows.push(failed(what));
                return runs;
            }
        };
        let Some(system) = module.systems.iter().find(|s| s.name == self.system()) else {
            let what = format!("the program has no `{}`", self.system());
            runs.rows.push(failed(what));
            return runs;
        };
        let taken = |m: &&Mapping| m.system == system.name && self.takes(&m.name, target, map);
        let taken: Vec<&Mapping> = module.mappings.iter().filter(taken).collect();
        let trials = self.trials(system, taken.iter().any(|m| m.name != PLAIN));
        let mut left: Vec<bool> = trials.iter().map(|t| t.takes != Takes::Own).collect();
        for mapping in taken {
            let is_plain = mapping.name == PLAIN;
            let mut code = Code::new(device, &module, mapping);
            for (trial, left) in trials.iter().zip(&mut left) {
                let is_for = match trial.takes {
                    Takes::Plain => is_plain,
                    Takes::Any => !is_plain || *left,
                    Takes::Own => !is_plain,
                };
                if !is_for {
                    continue;
                }
                let row = self.attempt(&mut code, &module, (system, mapping), trial, &mut runs);
                let is_over = matches!(row, RunResult::Verified(_) | RunResult::Failed(_));
                *left &= !is_over;
                runs.rows.push((mapping.name.clone(), row));
            }
        }
        // A mapping selected by name need not support every boundary condition.
        if map.is_none_or(|name| name == PLAIN) {
            let without = trials.iter().zip(left).filter(|(_, left)| *left);
            let without = without.map(|(trial, _)| failed(format!("{}: no mapping", trial.shown)));
            runs.rows.extend(without);
        }
        runs
    }

    /// The program with this boundary condition and this type, and plain mappings after all others.
    pub fn module(&self, text: &str) -> Result<Module, String> {
        if !text.contains(WRITTEN) {
            return Err(format!("no field of the program ends with `{WRITTEN}`"));
        }
        let text =
            with_type(text, self.ty).replace(WRITTEN, &format!(" {};", self.boundary.text()));
        let load = |text: &str| systola::load(text).map_err(|found| all_of(found.diagnostics()));
        let module = load(&text)?;
        let system = module.systems.iter().find(|s| s.name == self.system());
        let plain = system.and_then(|system| plain(system, self.many));
        load(&format!("{text}\n{}", plain.unwrap_or_default()))
    }

    /// Mappings for CPUs, for fields of f64 and for those of f32 are recognised by their names.
    pub fn takes(&self, name: &str, target: Target, map: Option<&str>) -> bool {
        let is_cpu = target == Target::Cpu;
        match map {
            Some(map) => name == map,
            None if name == PLAIN => true,
            None if is_cpu || name.ends_with(ON_CPU) => is_cpu && name.ends_with(ON_CPU),
            None => name.ends_with("64") == (self.ty == Scalar::F64),
        }
    }

    /// A single row, fewer cells than a tile, several tiles, and several tiles of many sweeps: as
    /// far as the boundary condition allows.
    fn trials(&self, system: &System, has_own: bool) -> Vec<Trial> {
        let r = self.stencil.radius as usize;
        let long = if r == 1 { 11 } else { 5 };
        let shapes = match self.stencil.rank {
            3 => [
                (Takes::Plain, [1, 1, 3], 3),
                (Takes::Any, [2 * r + 1, 2 * r + 3, 2 * r + 5], 5),
                (Takes::Plain, [11, 13, 37], long),
                (Takes::Own, [179, 9, 131], 5),
            ],
            _ => [
                (Takes::Plain, [1, 1, 3], 3),
                (Takes::Any, [1, 2 * r + 1, 2 * r + 3], 5),
                (Takes::Plain, [1, 67, 133], long),
                (Takes::Own, [1, 419, 263], long),
            ],
        };
        let shapes = shapes
            .into_iter()
            .filter(|(takes, ..)| has_own || *takes != Takes::Own);
        let trials = shapes.filter_map(|(takes, shape, most)| {
            let most = if self.many { most } else { 1 };
            // Many sweeps leave less and less of an interior.
            let mut steps = (1..=most).rev();
            steps.find_map(|steps| self.trial(system, shape, steps, takes))
        });
        trials.collect()
    }

    fn trial(
        &self,
        system: &System,
        shape: [usize; 3],
        steps: usize,
        takes: Takes,
    ) -> Option<Trial> {
        let own = &shape[3 - self.stencil.rank..];
        let mut params: Vec<i128> = own.iter().map(|n| *n as i128).collect();
        if self.many {
            params.push(steps as i128);
        }
        let parameters = Parameters::from(system);
        if params.len() != system.params.len() || !parameters.holds(&params) {
            return None;
        }
        let taps = self.taps();
        let start = Grid {
            shape: own.to_vec(),
            data: (0..shape.iter().product())
                .map(|n| self.rounded(2.0 * random(17, n) - 1.0))
                .collect(),
        };
        let weights = system.inputs.iter().find(|input| input.name == "w")?;
        let axes = weights.axes.len();
        let weights_shape = match axes {
            1 => vec![taps.len()],
            _ => vec![2 * self.stencil.radius as usize + 1; axes],
        };
        let weights = taps.iter().map(|(_, weight)| *weight).collect();
        let inputs = Arrays::from([
            (
                "u".to_string(),
                self.tensor(own.to_vec(), start.data.clone())?,
            ),
            ("w".to_string(), self.tensor(weights_shape, weights)?),
        ]);
        let expect = start.sweeps(&taps, self.boundary.condition(), steps);
        Some(Trial {
            shown: parameters.show(&params),
            params,
            steps,
            inputs,
            expect,
            takes,
        })
    }

    /// No weight is near 0, and they sum to 1: values neither grow nor vanish.
    fn taps(&self) -> Vec<(Vec<i64>, f64)> {
        let offsets = self.stencil.offsets();
        let weight = |n: usize| 0.1 + random(31, n);
        let all: f64 = (0..offsets.len()).map(weight).sum();
        let taps = offsets.into_iter().enumerate();
        taps.map(|(n, o)| {
            (
                o[3 - self.stencil.rank..].to_vec(),
                self.rounded(weight(n) / all),
            )
        })
        .collect()
    }

    /// Rounds to a number of the type.
    fn rounded(&self, x: f64) -> f64 {
        match self.ty {
            Scalar::F32 => f64::from(x as f32),
            _ => x,
        }
    }

    fn tensor(&self, shape: Vec<usize>, values: Vec<f64>) -> Option<Tensor> {
        match self.ty {
            Scalar::F32 => {
                let values: Vec<f32> = values.into_iter().map(|x| x as f32).collect();
                Tensor::new(shape, values).ok()
            }
            _ => Tensor::new(shape, values).ok(),
        }
    }

    /// Cells are at most 1 and weights sum to 1, so the error of a sum is at most half of this per
    /// sweep in any order, and so is that of the f64 reference.
    fn bound(&self, steps: usize) -> f64 {
        let precision = match self.ty {
            Scalar::F32 => f64::from(f32::EPSILON),
            _ => f64::EPSILON,
        };
        precision * (self.stencil.offsets().len() * steps) as f64
    }

    fn attempt(
        &self,
        code: &mut Code<'_>,
        module: &Module,
        (system, mapping): (&System, &Mapping),
        trial: &Trial,
        runs: &mut Runs,
    ) -> RunResult {
        let sizes = Parameters::from(system).named(&trial.params);
        let mut wrong = check_system(system, &sizes);
        wrong.extend(
            check_mapping(module, mapping, &sizes)
                .err()
                .unwrap_or_default(),
        );
        if let Some(first) = wrong.first() {
            return RunResult::Skipped(format!("{}: {first}", trial.shown));
        }
        match code.at(&sizes) {
            Err(error) => no_code(&trial.shown, &error),
            Ok(compiled) => match self.run(compiled, trial) {
                Ok(error) => {
                    runs.worst = runs.worst.max(error);
                    RunResult::Verified(format!("{}; error {error:.3} of the bound", trial.shown))
                }
                Err(what) => RunResult::Failed(format!("{}: {what}", trial.shown)),
            },
        }
    }

    /// The largest error relative to the bound. It is run twice, since a race may show only
    /// sometimes.
    fn run(&self, compiled: &Compiled, trial: &Trial) -> Result<f64, String> {
        let mut worst = 0f64;
        for _ in 0..2 {
            let (found, _) = compiled
                .run_tensors(&trial.params, &trial.inputs)
                .map_err(|e| e.to_string())?;
            let found = found.get("u'").ok_or("there is no output u'")?;
            worst = worst.max(self.compare(&trial.expect, found, self.bound(trial.steps))?);
        }
        Ok(worst)
    }

    fn compare(&self, expect: &Grid, found: &Tensor, bound: f64) -> Result<f64, String> {
        if found.shape != expect.shape {
            let (got, wanted) = (&found.shape, &expect.shape);
            return Err(format!("the result is {got:?} instead of {wanted:?}"));
        }
        let mut worst = 0f64;
        for (at, wanted) in expect.data.iter().enumerate() {
            let got = found.data.get(at).and_then(|v| v.as_float());
            let got = got.unwrap_or(f64::NAN);
            let error = (got - wanted).abs() / bound;
            if error.is_nan() || error > 1.0 {
                let cell = found.index_of(at);
                return Err(format!("cell {cell:?} is {got} instead of {wanted}"));
            }
            worst = worst.max(error);
        }
        Ok(worst)
    }
}

/// Between 0 and 1, with 24 bits.
fn random(seed: u64, n: usize) -> f64 {
    (bits(seed, n) >> 40) as f64 / f64::from(1 << 24)
}
