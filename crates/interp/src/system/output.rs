//! Filling the outputs of a system.

use systola_ir::codes::run;
use systola_ir::system::{Output, Write};
use systola_ir::{Diagnostic, Form, Span};

use crate::code::{Code, Env, Need};
use crate::compare::Expected;
use crate::domain::Domain;
use crate::linear::Linear;
use crate::params::{overflow, show_index, show_point, too_large};
use crate::rounding;
use crate::system::report::{domain_error, outside_domain};
use crate::system::{Machine, Owner, Phase, View};
use crate::tensor::{Data, Tensor, check_room, extents, n_elements};
use crate::value::{Value, literal};

/// An output being written.
struct Target {
    tensor: Tensor,
    written: Vec<bool>,
    /// Error bounds of the elements, where they are tracked.
    bounds: Vec<f64>,
}

impl Machine<'_> {
    /// Computes all outputs.
    pub(super) fn outputs(&mut self) -> Result<Expected, Diagnostic> {
        let mut all = Expected::default();
        let system = self.env.system;
        for (n, output) in system.outputs.iter().enumerate() {
            let Target { tensor, bounds, .. } = self.output(n)?;
            all.arrays.insert(output.name.clone(), tensor);
            all.bounds.insert(output.name.clone(), bounds);
        }
        Ok(all)
    }

    /// Computes one output and everything that it depends on.
    fn output(&mut self, n: usize) -> Result<Target, Diagnostic> {
        let output = &self.env.system.outputs[n];
        let mut target = self.allocate(output)?;
        for write in 0..output.writes.len() {
            self.write(n, write, &mut target)?;
        }
        let uncovered = target.written.iter().position(|written| !written);
        if let (Some(position), None) = (uncovered, output.fill) {
            let index = show_index(&target.tensor.index_of(position));
            let message = format!("nothing writes `{}`{index}", output.name);
            return Err(
                Diagnostic::new(&run::UNCOVERED_OUTPUT, output.span, message)
                    .note(self.sizes())
                    .help("add a write that reaches it, or a fill value with `else`"),
            );
        }
        Ok(target)
    }

    fn allocate(&mut self, output: &Output) -> Result<Target, Diagnostic> {
        let (lo, shape) =
            extents(&output.axes, self.env.params).map_err(|e| too_large(output.span, e))?;
        let n = n_elements(&shape).unwrap_or(usize::MAX);
        let bytes = (n as u64).saturating_mul(1 + u64::from(output.ty.bits() / 8));
        self.memory_left = self.memory_left.checked_sub(bytes).ok_or_else(|| {
            let cause = format!(
                "`{}` needs {bytes} bytes, beyond the limit of {} for all values",
                output.name, self.memory_limit
            );
            too_large(output.span, cause).note(self.sizes())
        })?;
        check_room(bytes).map_err(|e| too_large(output.span, e).note(self.sizes()))?;
        let fill = match output.fill {
            Some(fill) => literal(output.ty, fill),
            None => Value::zero(output.ty),
        };
        let data = Data::filled(output.ty, n, &fill);
        let tracked = self.errors.is_some() && output.ty.is_float();
        Ok(Target {
            tensor: Tensor { lo, shape, data },
            written: vec![false; n],
            bounds: vec![0.0; if tracked { n } else { 0 }],
        })
    }

    fn write(&mut self, n: usize, w: usize, target: &mut Target) -> Result<(), Diagnostic> {
        let write = &self.env.system.outputs[n].writes[w];
        let domain = self.write_domain(write)?;
        let index = self.write_index(write)?;
        let code = self.writes[n][w].clone();
        domain.visit(&mut |point| {
            let value = self.written(n, w, &code, point)?;
            let element = element(&index, point, write.span)?;
            let Some(position) = target.tensor.position(&element) else {
                return Err(self.out_of_range(n, w, point, &element, target));
            };
            if target.written[position] {
                return Err(self.double_write(n, w, point, &element));
            }
            target.written[position] = true;
            let (value, bound) = match self.errors {
                None => (value, 0.0),
                Some(_) => rounding::split(&value),
            };
            if let Some(place) = target.bounds.get_mut(position) {
                *place = bound;
            }
            if !target.tensor.data.set(position, &value) {
                let message = format!("a value of type {} is written", value.ty());
                return Err(Diagnostic::new(&run::ILL_TYPED, write.span, message));
            }
            Ok(())
        })
    }

    /// The value of a write at a point; its dependences are computed first.
    pub(super) fn written(
        &mut self,
        n: usize,
        w: usize,
        code: &Code,
        point: &[i64],
    ) -> Result<Value, Diagnostic> {
        if code.reads_vars() {
            self.need(code, point, Owner::Output(n, w))?;
        }
        let system = self.env.system;
        let mut view = View {
            system,
            memos: &self.memos,
            inputs: self.inputs,
            errors: self.errors.as_deref(),
        };
        code.eval(&mut self.frame, point, &mut view)
            .map_err(|stop| {
                let span = system.outputs[n].writes[w].span;
                let diagnostic = stop.into_diagnostic(span).unwrap_or_else(|| {
                    let name = &system.outputs[n].name;
                    let message = format!("the value written to `{name}` is undefined");
                    Diagnostic::new(&run::UNDEFINED_READ, span, message)
                });
                self.point = point.to_vec();
                self.explain(diagnostic, Owner::Output(n, w))
            })
    }

    /// Computes all dependences of the value of a write at a point.
    fn need(&mut self, code: &Code, point: &[i64], owner: Owner) -> Result<(), Diagnostic> {
        let system = self.env.system;
        let (memos, frame) = (&self.memos, &mut self.frame);
        let mut wanted = Vec::new();
        let found = code.needs(frame, point, &mut |need| {
            let (equation, found) = match need {
                Need::Var { var, point, span } => match memos[var.index()].find(point) {
                    Some(found) => (var.index(), found),
                    None => return Err(outside_domain(system, var.index(), point, span).into()),
                },
                Need::Scan { scan, point } => {
                    match memos[scan].find(&point[..memos[scan].layout.rank()]) {
                        Some(found) => (scan, found),
                        None => return Ok(()),
                    }
                }
            };
            wanted.push((equation, found.0));
            Ok(())
        });
        if let Err(stop) = found
            && let Some(diagnostic) = stop.into_diagnostic(code.span())
        {
            self.point = point.to_vec();
            return Err(self.explain(diagnostic, owner));
        }
        for (equation, slot) in wanted {
            self.push(equation, slot, Phase::Visit);
        }
        self.settle()
    }

    pub(super) fn write_domain(&self, write: &Write) -> Result<Domain, Diagnostic> {
        let system = &*self.env.system.around_write(write);
        let params = self.env.params;
        let cond = system.domain_cond().and(write.when.clone());
        let env = Env { system, params };
        Domain::new(&cond, system.dims.len(), params)
            .map_err(|e| domain_error(env, e, write.span, self.memory_limit))
    }

    pub(super) fn write_index(&self, write: &Write) -> Result<Vec<Linear>, Diagnostic> {
        let compile = |form: &Form| Linear::compile(form, self.env.params);
        let forms: Result<Vec<Linear>, _> = write.index.iter().map(compile).collect();
        forms.map_err(|_| overflow(write.span))
    }

    fn out_of_range(
        &self,
        n: usize,
        w: usize,
        point: &[i64],
        element: &[i128],
        target: &Target,
    ) -> Diagnostic {
        let system = self.env.system;
        let output = &system.outputs[n];
        let names = system.around_write(&output.writes[w]).dim_names();
        let at = show_point(&names, point);
        let axes: Vec<String> = target
            .tensor
            .lo
            .iter()
            .zip(&target.tensor.shape)
            .map(|(lo, extent)| format!("{lo}..{}", lo + *extent as i128))
            .collect();
        let (name, element, axes) = (&output.name, show_index(element), axes.join(", "));
        let message = format!("{at} writes `{name}`{element}, whose axes are [{axes}]");
        Diagnostic::new(&run::OUTPUT_OUT_OF_RANGE, output.writes[w].span, message)
            .note(self.sizes())
            .help("restrict the write with `when`, or enlarge the output")
    }

    /// Finds the point that wrote the element before.
    fn double_write(&self, n: usize, w: usize, point: &[i64], element: &[i128]) -> Diagnostic {
        let system = self.env.system;
        let output = &system.outputs[n];
        let first = output.writes[..=w].iter().find_map(|write| {
            let domain = self.write_domain(write).ok()?;
            let index = self.write_index(write).ok()?;
            let found = domain.visit(&mut |candidate| match self::element(
                &index, candidate, write.span,
            ) {
                Ok(found) if found == element => Err(candidate.to_vec()),
                Ok(_) | Err(_) => Ok(()),
            });
            found.err().map(|candidate| (candidate, write))
        });
        let show = |write: &Write, point: &[i64]| {
            show_point(&system.around_write(write).dim_names(), point)
        };
        let (name, element) = (&output.name, show_index(element));
        let second = show(&output.writes[w], point);
        let message = match &first {
            Some((first, write)) => {
                let first = show(write, first);
                format!("`{name}`{element} is written at {first} and again at {second}")
            }
            None => format!("`{name}`{element} is written again at {second}"),
        };
        let diagnostic = Diagnostic::new(&run::DOUBLE_WRITE, output.writes[w].span, message)
            .here("the second write")
            .note(self.sizes())
            .help("restrict the writes with `when` so that each element has one");
        match first {
            Some((_, write)) => diagnostic.also(write.span, "the first write"),
            None => diagnostic,
        }
    }
}

pub(super) fn element(
    index: &[Linear],
    point: &[i64],
    span: Span,
) -> Result<Vec<i128>, Diagnostic> {
    index
        .iter()
        .map(|form| {
            form.eval(point)
                .map(i128::from)
                .ok_or_else(|| overflow(span))
        })
        .collect()
}
