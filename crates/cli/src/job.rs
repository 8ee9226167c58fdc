//! The subject of `systola run`: a system or a program, with its sizes and inputs.

use std::path::PathBuf;

use systola::rt::memory;
use systola_interp::Arrays;
use systola_interp::draw::{self, Wanted};
use systola_interp::tensor::{Tensor, TensorError, check_room};
use systola_ir::codes::run as codes;
use systola_ir::system::{Axis, Input, InputKind, Program, System};
use systola_ir::{Diagnostic, Scalar, Span};

use crate::files::{ReadError, read_array};
use crate::source::{Failure, Parameters, Sizes, Small, Source};
use crate::term;

/// A system or a program, with its inputs.
pub enum Job<'a> {
    /// The second system has its batch expanded, as inputs and outputs have.
    System(&'a System, Box<System>),
    Program(&'a Program),
}

/// The selection of the command line from a file.
pub struct Selection<'a> {
    pub program: Option<&'a str>,
    pub system: Option<&'a str>,
    pub maps: &'a [String],
}

impl<'a> Job<'a> {
    pub fn select(source: &'a Source, wanted: &Selection<'_>) -> Result<Job<'a>, Failure> {
        for name in wanted.maps {
            source.mapping(Some(name), None)?;
        }
        if let Some(name) = wanted.program {
            return Ok(Job::Program(source.program(name)?));
        }
        let system = match (wanted.system, wanted.maps.first()) {
            (Some(name), _) => source.system(Some(name))?,
            (None, Some(map)) => {
                let mapping = source.mapping(Some(map), None)?;
                source.system(Some(&mapping.system))?
            }
            (None, None) => source.system(None)?,
        };
        let expanded = system
            .expand_batch()
            .map_err(|e| Failure::new(e.to_string()))?;
        Ok(Job::System(system, Box::new(expanded)))
    }

    pub fn name(&self) -> &str {
        match self {
            Job::System(system, _) => &system.name,
            Job::Program(program) => &program.name,
        }
    }

    pub fn parameters(&self) -> Parameters<'_> {
        match self {
            Job::System(system, _) => (*system).into(),
            Job::Program(program) => (*program).into(),
        }
    }

    /// The inputs that have to be given.
    fn inputs(&self) -> Vec<&Input> {
        let all = match self {
            Job::System(_, expanded) => &expanded.inputs,
            Job::Program(program) => &program.inputs,
        };
        all.iter()
            .filter(|i| !matches!(i.kind, InputKind::Table { data: Some(_) }))
            .collect()
    }

    /// Reads the inputs that are given as files.
    pub fn read_inputs(
        &self,
        source: &Source,
        files: &[(String, PathBuf)],
    ) -> Result<Arrays, Failure> {
        let mut arrays = Arrays::new();
        for (name, path) in files {
            let wanted = self.inputs();
            let input = wanted.iter().find(|i| i.name == *name).ok_or_else(|| {
                let names: Vec<_> = wanted.iter().map(|i| i.name.as_str()).collect();
                Failure::new(format!("{} has no input `{name}`", self.name()))
                    .help(format!("it has {}", names.join(", ")))
            })?;
            let tensor = read_array(path, input.ty).map_err(|error| match error {
                ReadError::Io(failure) => failure,
                ReadError::Npy(error) => {
                    source.fail(&[error.diagnostic(&path.display().to_string())])
                }
            })?;
            if tensor.ty() != input.ty {
                let (found, expect) = (tensor.ty(), input.ty);
                let message = format!(
                    "`{name}` is declared {expect}, the array in {} is {found}",
                    path.display()
                );
                return Err(source.fail(&[Diagnostic::new(
                    &codes::WRONG_TYPE,
                    input.span,
                    message,
                )]));
            }
            if arrays.insert(name.clone(), tensor).is_some() {
                let message = format!("`{name}` is given twice");
                let twice = Diagnostic::new(&codes::GIVEN_TWICE, Span::NONE, message);
                return Err(source.fail(&[twice.help("leave one of the two --in out")]));
            }
        }
        Ok(arrays)
    }

    /// Every name in `--out` must be an output, and stand there once.
    pub fn check_outputs(
        &self,
        source: &Source,
        files: &[(String, PathBuf)],
    ) -> Result<(), Failure> {
        let known: Vec<&str> = match self {
            Job::System(_, expanded) => expanded.outputs.iter().map(|o| o.name.as_str()).collect(),
            Job::Program(program) => program
                .outputs
                .iter()
                .map(|(name, _)| name.as_str())
                .collect(),
        };
        for (n, (name, _)) in files.iter().enumerate() {
            if !known.contains(&name.as_str()) {
                return Err(
                    Failure::new(format!("{} has no output `{name}`", self.name()))
                        .help(format!("it has {}", known.join(", "))),
                );
            }
            if files[..n].iter().any(|(other, _)| other == name) {
                let message = format!("`{name}` is given twice");
                let twice = Diagnostic::new(&codes::GIVEN_TWICE, Span::NONE, message);
                return Err(source.fail(&[twice.help("leave one of the two --out out")]));
            }
        }
        Ok(())
    }

    /// Infers sizes from the shapes of given inputs.
    pub fn infer_sizes(&self, inputs: &Arrays, sizes: &mut Sizes) {
        // Twice, since one input may decide a size that another one needs.
        for _ in 0..2 {
            for input in self.inputs() {
                if let Some(tensor) = inputs.get(&input.name) {
                    self.parameters().infer(sizes, &input.axes, &tensor.shape);
                }
            }
        }
    }

    /// A value for every parameter; missing ones are chosen small, and printed.
    pub fn choose_sizes(&self, sizes: &Sizes) -> Result<Vec<i128>, Failure> {
        let parameters = self.parameters();
        let missing = parameters.missing(sizes).join(", ");
        let values = parameters
            .with_small(sizes, Small::Distinct)
            .ok_or_else(|| {
                let given: Vec<String> = sizes.iter().map(|(p, v)| format!("{p} = {v}")).collect();
                Failure::new(format!(
                    "no sizes with {} satisfy what {} asks of its parameters",
                    if given.is_empty() {
                        "small values".to_string()
                    } else {
                        given.join(", ")
                    },
                    self.name()
                ))
                .help("see the `where` of the system; give all sizes with --set")
            })?;
        if !missing.is_empty() {
            term::print(format!(
                "sizes not given ({missing}); taking {}\n",
                parameters.show(&values)
            ));
        }
        Ok(values)
    }

    /// Checks that there is memory for the arrays at these sizes, before any of them is allocated:
    /// a failing allocation aborts the process.
    pub fn check_memory(&self, source: &Source, params: &[i128]) -> Result<(), Failure> {
        let mut arrays: Vec<(Scalar, &[Axis])> =
            self.inputs().iter().map(|i| (i.ty, &i.axes[..])).collect();
        if let Job::System(_, expanded) = self {
            arrays.extend(expanded.outputs.iter().map(|o| (o.ty, &o.axes[..])));
        }
        let bytes = arrays.into_iter().try_fold(0u64, |sum, (ty, axes)| {
            let mut bytes = i128::from(ty.bits().div_ceil(8));
            for axis in axes {
                let extent = axis.hi.sub(&axis.lo).eval(params, &[]).ok()?;
                bytes = bytes.checked_mul(extent.max(0))?;
            }
            sum.checked_add(u64::try_from(bytes).ok()?)
        });
        let available = memory::available();
        let fits =
            |bytes: &u64| check_room(*bytes).is_ok() && available.is_none_or(|most| *bytes <= most);
        if bytes.as_ref().is_some_and(fits) {
            return Ok(());
        }
        let wanted = bytes.map_or_else(|| "more than 2^64".to_string(), |b| b.to_string());
        let there = available.map_or_else(String::new, |b| format!("; {b} bytes are free"));
        let message = format!(
            "there is no memory for the arrays of {} at {}: they take {wanted} bytes{there}",
            self.name(),
            self.parameters().show(params)
        );
        let large = Diagnostic::new(&codes::TOO_LARGE, Span::NONE, message);
        Err(source.fail(&[large.help("use smaller sizes with --set")]))
    }

    /// Draws the inputs that are not given.
    pub fn fill_inputs(
        &self,
        source: &Source,
        params: &[i128],
        arrays: &mut Arrays,
        seed: Option<u64>,
    ) -> Result<(), Failure> {
        let (all, wanted) = match self {
            Job::System(_, expanded) => (&expanded.inputs, draw::wanted(expanded, params)),
            Job::Program(program) => (
                &program.inputs,
                draw::wanted_by_program(&source.module, program, params),
            ),
        };
        let mut drawn = Vec::new();
        for (n, input) in self.inputs().into_iter().enumerate() {
            if arrays.contains_key(&input.name) {
                continue;
            }
            let seed = seed.unwrap_or(0).wrapping_add(n as u64);
            let at = all.iter().position(|i| i.name == input.name);
            let wanted = at.map_or(Wanted::ANYTHING, |at| wanted[at]);
            let tensor = Tensor::random_wanted(input.ty, &input.axes, params, seed, &wanted);
            let tensor = tensor.map_err(|e| {
                let why = match e {
                    TensorError::TooLarge => "it is too large".to_string(),
                    other => other.to_string(),
                };
                Failure::new(format!("input {} cannot be made: {why}", input.name))
            })?;
            drawn.push(input.name.as_str());
            arrays.insert(input.name.clone(), tensor);
        }
        if !drawn.is_empty() {
            term::print(format!(
                "random inputs (seed {}): {}\n",
                seed.unwrap_or(0),
                drawn.join(", ")
            ));
        }
        Ok(())
    }
}
