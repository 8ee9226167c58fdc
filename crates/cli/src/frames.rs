//! A run in frames: it makes a part of the steps, and its outputs are the inputs of the next part.
//!
//! The steps are a parameter T that no array has in its shape, and to which an iterator `0..T`
//! runs. An output is fed back into the input of its name, where a stencil calls the output of the
//! field `u` `u'`. For a stencil, the parts one after the other are all steps at once.

use systola_interp::Arrays;
use systola_interp::tensor::Tensor;
use systola_ir::codes::run as codes;
use systola_ir::form::{Cond, Form, Rel};
use systola_ir::system::visit::children;
use systola_ir::system::{Expr, System};
use systola_ir::{Diagnostic, DimId, ParamId, Span};

use crate::data::animation::Animation;
use crate::data::{DataFile, Encoded, Format, has_room};
use crate::job::Job;
use crate::source::{Failure, Sizes, Source};

/// A run in frames, and the pictures that were made so far.
pub struct Frames {
    count: usize,
    param: ParamId,
    /// The name of the iterator of the steps.
    iterator: String,
    steps: i128,
    /// An output, and the input that it becomes.
    pairs: Vec<(String, String)>,
    films: Vec<Film>,
    /// The inputs of the next frame.
    inputs: Arrays,
    done: usize,
}

struct Film {
    file: DataFile,
    animation: Option<Animation>,
}

impl Frames {
    /// Divides the steps in `sizes` into `count` frames.
    pub fn plan(
        source: &Source,
        job: &Job<'_>,
        sizes: &mut Sizes,
        count: usize,
        outputs: &[DataFile],
    ) -> Result<Frames, Failure> {
        let is_film = |file: &&DataFile| matches!(file.format, Some(Format::Gif | Format::Png));
        let films: Vec<Film> = outputs
            .iter()
            .filter(is_film)
            .map(|file| Film {
                file: file.clone(),
                animation: None,
            })
            .collect();
        if films.is_empty() {
            return Err(Failure::new("--frames needs an output to show")
                .help("add --out NAME=FILE.gif, or FILE.png for an animated PNG"));
        }
        let Job::System(system, expanded) = job else {
            let message = format!("{} is a program of several systems", job.name());
            let found = Diagnostic::new(&codes::NO_FRAMES, Span::NONE, message);
            return Err(source.fail(&[found.help("run one of its systems with --system")]));
        };
        let (param, pairs) = stepping(system, expanded).map_err(|found| source.fail(&[found]))?;
        let name = &system.params[param.index()].name;
        let Some(steps) = sizes.get_mut(name) else {
            return Err(
                Failure::new(format!("--frames needs the number of steps, {name}"))
                    .help(format!("give it: --set {name}={}", 10 * count)),
            );
        };
        let n = count as i128;
        if *steps < n || *steps % n != 0 {
            let least = (*steps).max(0) / n * n;
            let above = least + n;
            let divisor = (1..n).rev().find(|d| *steps % d == 0);
            let message = format!("{name} = {steps} is not a multiple of {count} frames");
            let mut help = match least {
                0 => format!("take {name}={above}"),
                least => format!("take {name}={least} or {name}={above}"),
            };
            if let Some(divisor) = divisor.filter(|d| *d > 1 && *steps > 0) {
                help.push_str(&format!(", or --frames {divisor}"));
            }
            let found = Diagnostic::new(&codes::NO_FRAMES, system.span, message);
            return Err(source.fail(&[found.help(help)]));
        }
        *steps /= n;
        Ok(Frames {
            count,
            param,
            iterator: steps_iterator(system, param)
                .map_or_else(String::new, |t| system.dim(t).name.clone()),
            steps: *steps,
            pairs,
            films,
            inputs: Arrays::new(),
            done: 0,
        })
    }

    pub fn iterator(&self) -> &str {
        &self.iterator
    }

    /// The sizes of the whole run, from those of a frame.
    pub fn whole(&self, params: &[i128]) -> Vec<i128> {
        let mut params = params.to_vec();
        params[self.param.index()] *= self.count as i128;
        params
    }

    /// Shows the start of the outputs that are fed back.
    pub fn start(&mut self, source: &Source, inputs: &Arrays) -> Result<(), Failure> {
        self.inputs = inputs.clone();
        let shown: Vec<(String, Tensor)> = self
            .pairs
            .iter()
            .filter_map(|(output, input)| Some((output.clone(), inputs.get(input)?.clone())))
            .collect();
        self.show(source, &shown.into_iter().collect())
    }

    /// Shows the outputs of a frame; the inputs of the next one, if there is one.
    pub fn next(&mut self, source: &Source, outputs: &Arrays) -> Result<Option<Arrays>, Failure> {
        self.show(source, outputs)?;
        self.done += 1;
        if self.done == self.count {
            return Ok(None);
        }
        for (output, input) in &self.pairs {
            if let Some(tensor) = outputs.get(output) {
                self.inputs.insert(input.clone(), tensor.clone());
            }
        }
        Ok(Some(self.inputs.clone()))
    }

    fn show(&mut self, source: &Source, outputs: &Arrays) -> Result<(), Failure> {
        for film in &mut self.films {
            let Some(tensor) = outputs.get(&film.file.name) else {
                continue;
            };
            match &mut film.animation {
                Some(animation) => animation.push(tensor),
                none => {
                    let bytes = Animation::bytes(self.count + 1, tensor);
                    if !has_room(bytes) {
                        let message =
                            format!("there is no memory for the {bytes} bytes of all frames");
                        let found = Diagnostic::new(&codes::TOO_LARGE, Span::NONE, message);
                        return Err(source.fail(&[found.help("take fewer frames")]));
                    }
                    let animation = Animation::new(tensor, &film.file);
                    let animation =
                        animation.map_err(|why| source.fail(&[film.file.cannot_show(&why)]))?;
                    *none = Some(animation);
                }
            }
        }
        Ok(())
    }

    /// The bytes of a file, if it shows the frames, and what is said of it.
    pub fn encode(&self, file: &DataFile) -> Option<Result<Encoded, Diagnostic>> {
        let film = self.films.iter().find(|film| film.file == *file)?;
        let animation = film.animation.as_ref()?;
        let bytes = animation.encode(file);
        let bytes = bytes.map_err(|why| file.cannot_show(&why.to_string()));
        let steps = match self.steps {
            1 => "a step".to_string(),
            n => format!("{n} steps"),
        };
        let remark = format!(
            "{}: {}; {steps} from one to the next",
            file.path.display(),
            animation.remark(),
        );
        Some(bytes.map(|bytes| (bytes, vec![remark])))
    }
}

/// The parameter that is the number of steps, and the outputs with the inputs they become.
fn stepping(
    system: &System,
    expanded: &System,
) -> Result<(ParamId, Vec<(String, String)>), Diagnostic> {
    let refuse = |message: String, help: &str| {
        Diagnostic::new(&codes::NO_FRAMES, system.span, message).help(help)
    };
    let axes = || {
        let inputs = expanded.inputs.iter().flat_map(|i| &i.axes);
        inputs.chain(expanded.outputs.iter().flat_map(|o| &o.axes))
    };
    let is_steps = |param: &ParamId| {
        let end = Form::from(*param);
        let runs = |(lo, hi): &(Form, Form)| *lo == Form::zero() && *hi == end;
        let fixed = |form: &Form| form.fix_params(&|p| (p == *param).then_some(7));
        let mentions = |form: &Form| fixed(form).as_ref() != Ok(form);
        system
            .dims
            .iter()
            .filter_map(|d| d.range.as_ref())
            .any(runs)
            && !axes().any(|axis| mentions(&axis.lo) || mentions(&axis.hi))
    };
    let params = (0..system.params.len()).map(ParamId::from);
    let found: Vec<ParamId> = params.filter(is_steps).collect();
    let name = &system.name;
    let param = match found[..] {
        [param] => param,
        [] => {
            return Err(refuse(
                format!("`{name}` has no number of steps to divide into frames"),
                "steps are an iterator from 0 to a parameter that no array has in its shape; a stencil says `steps T;`",
            ));
        }
        [..] => {
            let names: Vec<&str> = found
                .iter()
                .map(|p| system.params[p.index()].name.as_str())
                .collect();
            return Err(refuse(
                format!(
                    "each of {} could be the steps of `{name}`",
                    names.join(", ")
                ),
                "only one iterator may run to a parameter that no array has in its shape",
            ));
        }
    };
    let mut pairs = Vec::new();
    for output in &expanded.outputs {
        let plain = output.name.strip_suffix('\'');
        let input = expanded
            .inputs
            .iter()
            .find(|i| i.name == output.name || Some(i.name.as_str()) == plain);
        let Some(input) = input else {
            continue;
        };
        if input.ty != output.ty || input.axes != output.axes {
            let message = format!(
                "`{}` cannot become `{}` of the next frame: their shapes or types differ",
                output.name, input.name
            );
            return Err(refuse(
                message,
                "a boundary condition with values, such as `clamp`, keeps the shape",
            )
            .also(input.span, "declared here"));
        }
        pairs.push((output.name.clone(), input.name.clone()));
    }
    if pairs.is_empty() {
        return Err(refuse(
            format!("no output of `{name}` has the name of an input"),
            "an output `u` or `u'` becomes the input `u` of the next frame",
        ));
    }
    if let Some(t) = steps_iterator(system, param)
        && let Some(span) = use_of_steps(system, param, t)
    {
        let t = &system.dim(t).name;
        let message = format!("`{name}` depends on `{t}`, which starts at 0 in each frame");
        let help =
            format!("leave --frames out; with it, equations may only ask whether `{t}` is 0");
        return Err(refuse(message, &help).also(span, "here"));
    }
    Ok((param, pairs))
}

/// The iterator from 0 to this parameter.
fn steps_iterator(system: &System, param: ParamId) -> Option<DimId> {
    let steps = (Form::zero(), Form::from(param));
    let dims = &mut system.dims.iter();
    let at = dims.position(|dim| dim.range.as_ref() == Some(&steps));
    at.map(DimId::from)
}

/// An equation that depends on the number of the step, or of all steps, other than by a condition
/// for the first step. Outputs may choose the step that they are taken from. A position that moves
/// with the steps says nothing: in a skewed system it is the same cell.
fn use_of_steps(system: &System, param: ParamId, t: DimId) -> Option<Span> {
    let steps = Steps { param, t };
    let mut vars = system.vars.iter();
    let var = vars.find(|v| v.on.iter().any(|c| steps.decide(c)) || steps.are_in(&v.body));
    let writes = || system.outputs.iter().flat_map(|o| &o.writes);
    let write = || writes().find(|w| steps.are_in(&w.value)).map(|w| w.span);
    var.map(|var| var.span).or_else(write)
}

/// The iterator of the steps, and their number.
struct Steps {
    param: ParamId,
    t: DimId,
}

impl Steps {
    fn are_in(&self, expr: &Expr) -> bool {
        let here = match expr {
            Expr::Iter(d) => *d == self.t,
            Expr::Param(p) => *p == self.param,
            Expr::Input { index, .. } => index.iter().any(|form| self.depends(form)),
            Expr::Guard {
                cond, otherwise, ..
            } if self.is_first(cond) => {
                return otherwise.as_deref().is_some_and(|expr| self.are_in(expr));
            }
            Expr::Guard { cond, .. } => self.decide(cond),
            _ => false,
        };
        here || children(expr).into_iter().any(|expr| self.are_in(expr))
    }

    /// Does the form depend on the steps, and on no other iterator?
    fn depends(&self, form: &Form) -> bool {
        let fixed = form.fix_params(&|p| (p == self.param).then_some(7));
        let dims = form.dims();
        dims.iter().all(|d| *d == self.t) && (!dims.is_empty() || fixed.as_ref() != Ok(form))
    }

    /// Does the condition hold in the first step only?
    fn is_first(&self, cond: &Cond) -> bool {
        match cond {
            Cond::Cmp(rel, left, right) => {
                matches!(
                    self.side(*rel, left, right),
                    (Rel::Eq | Rel::Le, 0) | (Rel::Lt, 1)
                )
            }
            Cond::And(parts) => parts.iter().any(|part| self.is_first(part)),
            Cond::Const(_) | Cond::Or(_) | Cond::Not(_) => false,
        }
    }

    /// Do the steps decide the condition, by more than whether this is the first?
    fn decide(&self, cond: &Cond) -> bool {
        match cond {
            Cond::Const(_) => false,
            Cond::Cmp(rel, left, right) => {
                let is_of_first = match self.side(*rel, left, right) {
                    (Rel::Eq | Rel::Ne | Rel::Le | Rel::Gt, c) => c == 0,
                    // t >= 0 holds in all steps.
                    (Rel::Lt | Rel::Ge, c) => (0..=1).contains(&c),
                };
                self.depends(&left.sub(right)) && !is_of_first
            }
            Cond::And(parts) | Cond::Or(parts) => parts.iter().any(|part| self.decide(part)),
            Cond::Not(inner) => self.decide(inner),
        }
    }

    /// A comparison as one of `t` with a constant; -1 where it is not.
    fn side(&self, rel: Rel, left: &Form, right: &Form) -> (Rel, i128) {
        let difference = left.sub(right);
        let t = Form::from(self.t);
        let constant = |form: Form| form.as_constant().filter(|c| *c >= 0);
        if let Some(c) = constant(t.sub(&difference)) {
            (rel, c)
        } else if let Some(c) = constant(t.add(&difference)) {
            (rel.mirrored(), c)
        } else {
            (rel, -1)
        }
    }
}
