//! A program to be tried: its systems, with sizes, inputs and the results of their equations.

use std::collections::BTreeMap;

use systola_driver::{check_system, load};
use systola_interp::{Arrays, run_program, run_system};
use systola_ir::codes;
use systola_ir::codes::Code;
use systola_ir::diag::{Diagnostic, Kind};
use systola_ir::system::{InputKind, Module, Program, Source, System};

use super::values;

/// Values of parameters, by name.
pub type Sizes = BTreeMap<String, i128>;

pub struct Subject {
    /// Its origin: a seed or a file.
    pub name: String,
    pub text: String,
    pub module: Module,
    pub runs: Vec<Run>,
    /// Floats are compared up to a tolerance.
    pub close: bool,
    /// Decides among machines, orders of blocks and numbers of threads.
    pub seed: u64,
}

/// A system at a size, on inputs.
pub struct Run {
    /// Position in the module.
    pub system: usize,
    pub sizes: Sizes,
    pub params: Vec<i128>,
    pub inputs: Arrays,
    /// The outputs, or the fault of the equations.
    pub expected: Result<Arrays, &'static Code>,
}

/// Why a program is not tried.
#[derive(Debug)]
pub enum Unfit {
    /// It is refused as wrong.
    Refused(String),
    /// It is beyond what is supported, or too large.
    Limited(String),
    /// The interpreters of the equations disagree.
    Wrong(String),
}

impl Subject {
    pub fn new(
        name: &str,
        text: &str,
        sizes: &[Sizes],
        close: bool,
        seed: u64,
    ) -> Result<Subject, Unfit> {
        let module = load(text).map_err(|e| Unfit::Refused(located(text, &e)))?;
        for system in &module.systems {
            let errors = check_system(system, &BTreeMap::new());
            if errors.iter().any(|e| e.kind() == Kind::Mistake) {
                return Err(Unfit::Refused(located(text, &errors)));
            }
            if !errors.is_empty() {
                return Err(Unfit::Limited(located(text, &errors)));
            }
        }
        let mut subject = Subject {
            name: name.to_string(),
            text: text.to_string(),
            module,
            runs: Vec::new(),
            close,
            seed,
        };
        for size in sizes {
            subject.add_runs(size)?;
        }
        Ok(subject)
    }

    fn add_runs(&mut self, size: &Sizes) -> Result<(), Unfit> {
        if self.module.programs.is_empty() {
            for n in 0..self.module.systems.len() {
                self.add_system(n, size)?;
            }
        }
        for n in 0..self.module.programs.len() {
            let program = self.module.programs[n].clone();
            self.add_stages(&program, size)?;
        }
        Ok(())
    }

    fn add_system(&mut self, n: usize, size: &Sizes) -> Result<(), Unfit> {
        let system = expanded(&self.module.systems[n])?;
        let names = system.param_names();
        let sizes: Sizes = names
            .iter()
            .filter_map(|name| Some((name.clone(), *size.get(name)?)))
            .collect();
        let params: Vec<i128> = sizes_in_order(&names, &sizes)?;
        if system.context_cond().eval(&params, &[]) != Ok(true) {
            return Ok(());
        }
        let inputs = values::inputs(&system, &params, self.seed).map_err(Unfit::Limited)?;
        let expected = evaluate(&system, &params, &inputs)?;
        self.runs.push(Run {
            system: n,
            sizes,
            params,
            inputs,
            expected,
        });
        Ok(())
    }

    /// Every stage of a program on the outputs of earlier stages.
    fn add_stages(&mut self, program: &Program, size: &Sizes) -> Result<(), Unfit> {
        let names: Vec<String> = program.params.iter().map(|p| p.name.clone()).collect();
        let params = sizes_in_order(&names, size)?;
        let holds = program
            .context
            .iter()
            .all(|cond| cond.eval(&params, &[]) == Ok(true));
        if !holds {
            return Ok(());
        }
        let mut given = Arrays::new();
        for (n, input) in program.inputs.iter().enumerate() {
            if matches!(&input.kind, InputKind::Table { data: Some(_) }) {
                continue;
            }
            let seed = self.seed.wrapping_add(n as u64);
            let tensor = values::random(input.ty, &input.axes, &params, seed);
            given.insert(input.name.clone(), tensor.map_err(Unfit::Limited)?);
        }
        let mut stages: Vec<Arrays> = Vec::new();
        for stage in &program.stages {
            let system = expanded(&self.module.systems[stage.system])?;
            let values = stage.args.iter().map(|form| form.eval(&params, &[]));
            let values: Vec<i128> = values
                .collect::<Result<_, _>>()
                .map_err(|e| Unfit::Limited(e.to_string()))?;
            let mut inputs = Arrays::new();
            for (id, source) in &stage.inputs {
                let input = &system.inputs[id.index()];
                let Some(tensor) = self.fed(program, *source, &given, &stages) else {
                    continue;
                };
                let axes = input.axes.iter().map(|axis| axis.lo.eval(&values, &[]));
                let lo = axes
                    .collect::<Result<Vec<i128>, _>>()
                    .map_err(|e| Unfit::Limited(e.to_string()))?;
                inputs.insert(input.name.clone(), tensor.starting_at(lo));
            }
            let expected = evaluate(&system, &values, &inputs)?;
            let names = system.param_names();
            self.runs.push(Run {
                system: stage.system,
                sizes: names.into_iter().zip(values.clone()).collect(),
                params: values,
                inputs,
                expected: expected.clone(),
            });
            let Ok(outputs) = expected else {
                return Ok(());
            };
            stages.push(outputs);
        }
        let whole = run_program(&self.module, program, &params, &given)
            .map_err(|e| Unfit::Wrong(format!("the program: {e}")))?;
        for (name, source) in &program.outputs {
            let expect = self.fed(program, *source, &given, &stages);
            if expect.map(|t| t.data) != whole.get(name).map(|t| t.data.clone()) {
                return Err(Unfit::Wrong(format!(
                    "output `{name}` of the program is not that of its stage"
                )));
            }
        }
        Ok(())
    }

    fn fed(
        &self,
        program: &Program,
        source: Source,
        given: &Arrays,
        stages: &[Arrays],
    ) -> Option<systola_interp::Tensor> {
        match source {
            Source::Input(n) => given.get(&program.inputs[n].name).cloned(),
            Source::Output { stage, output } => {
                let system = &self.module.systems[program.stages[stage].system];
                let name = &system.outputs[output].name;
                stages.get(stage)?.get(name).cloned()
            }
        }
    }

    /// The runs of a mapping's system.
    pub fn runs_of(&self, system: &str) -> Vec<&Run> {
        let named = |run: &&Run| self.module.systems[run.system].name == system;
        self.runs.iter().filter(named).collect()
    }
}

/// The faults that equations may have.
pub(super) const FAULTS: [&Code; 2] = [
    &codes::run::DIVISION_BY_ZERO,
    &codes::run::INPUT_OUT_OF_RANGE,
];

fn evaluate(
    system: &System,
    params: &[i128],
    inputs: &Arrays,
) -> Result<Result<Arrays, &'static Code>, Unfit> {
    match run_system(system, params, inputs) {
        Ok(outputs) => Ok(Ok(outputs)),
        Err(error) => match FAULTS.iter().find(|code| code.id == error.code.id) {
            Some(code) => Ok(Err(code)),
            None => Err(Unfit::Wrong(format!(
                "the equations of {} at {params:?}: {error}",
                system.name
            ))),
        },
    }
}

fn expanded(system: &System) -> Result<System, Unfit> {
    system
        .expand_batch()
        .map_err(|e| Unfit::Limited(e.to_string()))
}

fn sizes_in_order(names: &[String], sizes: &Sizes) -> Result<Vec<i128>, Unfit> {
    let values = names.iter().map(|name| sizes.get(name).copied());
    let values: Option<Vec<i128>> = values.collect();
    values.ok_or_else(|| Unfit::Limited("a size is missing".into()))
}

fn located(text: &str, errors: &[Diagnostic]) -> String {
    let list: Vec<String> = errors
        .iter()
        .map(|error| {
            let line = text[..error.span().range().start].lines().count();
            format!("line {line}: {error}")
        })
        .collect();
    list.join("; ")
}
