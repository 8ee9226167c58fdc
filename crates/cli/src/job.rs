//! The subject of `systola run`: a system or a program, with its sizes and inputs.

use systola::rt::memory;
use systola_explore::space::is_name_of_a_candidate;
use systola_interp::Arrays;
use systola_interp::draw::{self, Wanted};
use systola_interp::tensor::{Tensor, TensorError};
use systola_ir::codes::run as codes;
use systola_ir::system::{self, Axis, Input, InputKind, Program, System};
use systola_ir::{Diagnostic, Scalar, Span};

use crate::data::{self, DataFile, Remarks, has_room};
use crate::files::ReadError;
use crate::source::{Failure, Parameters, Sizes, Small, Source};
use crate::term::{self, Paint};

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
        let is_own = |name: &String| source.module.mappings.iter().any(|m| m.name == *name);
        for name in wanted
            .maps
            .iter()
            .filter(|name| !is_name_of_a_candidate(name))
        {
            source.mapping(Some(name), None)?;
        }
        if let Some(name) = wanted.program {
            return Ok(Job::Program(source.program(name)?));
        }
        let system = match (wanted.system, wanted.maps.first()) {
            (Some(name), _) => source.system(Some(name))?,
            (None, Some(map)) if is_own(map) => {
                let mapping = source.mapping(Some(map), None)?;
                source.system(Some(&mapping.system))?
            }
            (None, Some(_) | None) => source.system(None)?,
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

    /// Reads the inputs that are given as files. Sizes follow from the shapes of the arrays, and
    /// the shapes of files that do not state one from the sizes.
    pub fn read_inputs(
        &self,
        source: &Source,
        files: &[DataFile],
        sizes: &mut Sizes,
    ) -> Result<Arrays, Failure> {
        let mut arrays = Arrays::new();
        let mut remarks = Remarks::new();
        let wanted = self.inputs();
        let mut found = Vec::new();
        for file in files {
            let name = &file.name;
            let input = wanted.iter().find(|i| i.name == *name).ok_or_else(|| {
                let names: Vec<_> = wanted.iter().map(|i| i.name.as_str()).collect();
                Failure::new(format!("{} has no input `{name}`", self.name()))
                    .help(format!("it has {}", names.join(", ")))
            })?;
            if found
                .iter()
                .any(|(other, _): &(&DataFile, _)| other.name == *name)
            {
                let message = format!("`{name}` is given twice");
                let twice = Diagnostic::new(&codes::GIVEN_TWICE, Span::NONE, message);
                return Err(source.fail(&[twice.help("leave one of the two --in out")]));
            }
            found.push((file, *input));
        }
        found.sort_by_key(|(file, input)| file.needs_sizes(input.axes.len()));
        for (file, input) in found {
            let extents = self.parameters().extents(sizes, &input.axes);
            let wanted = data::Wanted {
                ty: input.ty,
                extents: &extents,
            };
            let (tensor, said) = file.read(&wanted).map_err(|error| match error {
                ReadError::Io(failure) => failure,
                ReadError::Npy(error) => {
                    source.fail(&[error.diagnostic(&file.path.display().to_string())])
                }
                ReadError::Refused(diagnostic) => source.fail(&[diagnostic]),
            })?;
            if tensor.ty() != input.ty {
                let (found, expect) = (tensor.ty(), input.ty);
                let message = format!(
                    "`{}` is declared {expect}, the array in {} is {found}",
                    file.name,
                    file.path.display()
                );
                return Err(source.fail(&[Diagnostic::new(
                    &codes::WRONG_TYPE,
                    input.span,
                    message,
                )]));
            }
            remarks.extend(said);
            arrays.insert(file.name.clone(), tensor);
            self.infer_sizes(&arrays, sizes);
        }
        for remark in remarks {
            term::print(Paint::Dim.out(&remark) + "\n");
        }
        Ok(arrays)
    }

    /// The outputs that files are for, in their order. A field `u` may stand for the output `u'`
    /// that a stencil makes of it. Every output stands there once.
    pub fn check_outputs(
        &self,
        source: &Source,
        files: Vec<DataFile>,
        sizes: &Sizes,
    ) -> Result<Vec<DataFile>, Failure> {
        let known: Vec<&str> = match self {
            Job::System(_, expanded) => expanded.outputs.iter().map(|o| o.name.as_str()).collect(),
            Job::Program(program) => program
                .outputs
                .iter()
                .map(|(name, _)| name.as_str())
                .collect(),
        };
        let mut checked: Vec<DataFile> = Vec::new();
        for mut file in files {
            if !known.contains(&file.name.as_str()) {
                let primed = format!("{}'", file.name);
                if !known.contains(&primed.as_str()) {
                    return Err(Failure::new(format!(
                        "{} has no output `{}`",
                        self.name(),
                        file.name
                    ))
                    .help(format!("it has {}", known.join(", "))));
                }
                file.name = primed;
            }
            if checked.iter().any(|other| other.name == file.name) {
                let message = format!("`{}` is given twice", file.name);
                let twice = Diagnostic::new(&codes::GIVEN_TWICE, Span::NONE, message);
                return Err(source.fail(&[twice.help("leave one of the two --out out")]));
            }
            checked.push(file);
        }
        self.check_formats(source, &checked, sizes)?;
        Ok(checked)
    }

    /// Can the files hold the outputs, as far as their shapes follow from the sizes?
    pub fn check_formats(
        &self,
        source: &Source,
        files: &[DataFile],
        sizes: &Sizes,
    ) -> Result<(), Failure> {
        for file in files {
            let fits = match self.output_shape(source, &file.name, sizes) {
                Some((ty, extents)) => file.check_extents(&extents, ty),
                None => file.format().map(|_| ()),
            };
            fits.map_err(|d| source.fail(&[d]))?;
        }
        Ok(())
    }

    /// The type of an output, and its extents as far as they follow from the sizes.
    fn output_shape(
        &self,
        source: &Source,
        name: &str,
        sizes: &Sizes,
    ) -> Option<(Scalar, Vec<Option<usize>>)> {
        let program = match self {
            Job::System(_, expanded) => {
                let output = expanded.outputs.iter().find(|o| o.name == name)?;
                let extents = self.parameters().extents(sizes, &output.axes);
                return Some((output.ty, extents));
            }
            Job::Program(program) => program,
        };
        let (_, from) = program.outputs.iter().find(|(other, _)| other == name)?;
        match *from {
            system::Source::Input(n) => {
                let input = program.inputs.get(n)?;
                let extents = self.parameters().extents(sizes, &input.axes);
                Some((input.ty, extents))
            }
            system::Source::Output { stage, output } => {
                let stage = program.stages.get(stage)?;
                let system = source.module.systems.get(stage.system)?;
                let expanded = system.expand_batch().ok()?;
                let output = expanded.outputs.get(output)?;
                let params = program.params.iter().map(|p| sizes.get(&p.name).copied());
                let params: Option<Vec<i128>> = params.collect();
                let args: Option<Vec<i128>> = params.and_then(|params| {
                    let args = stage.args.iter().map(|arg| arg.eval(&params, &[]).ok());
                    args.collect()
                });
                let extent = |axis: &Axis| {
                    let extent = axis.hi.sub(&axis.lo);
                    let extent = match &args {
                        Some(args) => extent.eval(args, &[]).ok()?,
                        None => extent.as_constant()?,
                    };
                    usize::try_from(extent.max(0)).ok()
                };
                Some((output.ty, output.axes.iter().map(extent).collect()))
            }
        }
    }

    /// Infers sizes from the shapes of given inputs.
    fn infer_sizes(&self, inputs: &Arrays, sizes: &mut Sizes) {
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
                    "no sizes with {} satisfy the conditions of {} on its parameters",
                    if given.is_empty() {
                        "small values".to_string()
                    } else {
                        given.join(", ")
                    },
                    self.name()
                ))
                .help(conditions(&parameters))
            })?;
        if !missing.is_empty() {
            term::print(format!(
                "sizes not given ({missing}); taking {}\n",
                parameters.show(&values)
            ));
        }
        Ok(values)
    }

    /// Checks that there is memory for the arrays at these sizes, other than the inputs that were
    /// read, before any of them is allocated: a failing allocation aborts the process.
    pub fn check_memory(
        &self,
        source: &Source,
        params: &[i128],
        read: &Arrays,
    ) -> Result<(), Failure> {
        let inputs = self.inputs();
        let drawn = inputs.iter().filter(|i| !read.contains_key(&i.name));
        let mut arrays: Vec<(Scalar, &[Axis])> = drawn.map(|i| (i.ty, &i.axes[..])).collect();
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
        if bytes.is_some_and(has_room) {
            return Ok(());
        }
        let available = memory::available();
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

/// What the parameters must satisfy, for a message about sizes.
fn conditions(parameters: &Parameters<'_>) -> String {
    let names: Vec<String> = parameters.params.iter().map(|p| p.name.clone()).collect();
    let conditions: Vec<String> = parameters
        .context
        .iter()
        .map(|cond| format!("`{}`", cond.display(&names, &[])))
        .collect();
    if conditions.is_empty() {
        return "give all sizes with --set".to_string();
    }
    format!(
        "its `where` asks for {}; give such sizes with --set",
        conditions.join(", ")
    )
}
