//! The meaning of a system: its equations, evaluated on demand.
//!
//! Each value is computed once and memoised. Dependences are pushed on an explicit stack, so that a
//! chain of dependences may be as long as memory allows, and cycles are detected. A `scan` becomes
//! a hidden equation that adds one term to the previous value.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use systola_ir::codes::run;
use systola_ir::system::{Combine, System};
use systola_ir::{Diagnostic, Span, Type, VarId};

use crate::code::{Code, Env, Frame, Library, MOST_TERMS, Need, Read, Reads, ScanPlan, Stop};
use crate::compare::Expected;
use crate::inputs::Inputs;
use crate::memo::{Memo, State};
use crate::params::{check_params, too_large};
use crate::rounding;
use crate::tensor::{Tensor, check_room};
use crate::value::Value;

mod output;
mod report;
pub mod sample;
mod table;

use report::{outside_domain, undefined_read};
use table::{Table, Tables};

/// Arrays by name.
pub type Arrays = BTreeMap<String, Tensor>;

/// Which values are computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Demand {
    /// Those that the outputs depend on.
    #[default]
    Outputs,
    /// All variables at all points of their domains, so that no mistake hides in a value that is
    /// never used.
    Everything,
}

#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The maximum bytes of memoised values.
    pub memory_limit: u64,
    /// The maximum number of terms of all sums.
    pub term_limit: u64,
    pub demand: Demand,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            memory_limit: 4 << 30,
            term_limit: MOST_TERMS,
            demand: Demand::Outputs,
        }
    }
}

/// Runs a system at concrete parameters; its outputs by name.
pub fn run_system(system: &System, params: &[i128], inputs: &Arrays) -> Result<Arrays, Diagnostic> {
    run_system_with(system, params, inputs, &Options::default())
}

/// Like [`run_system`], with options.
pub fn run_system_with(
    system: &System,
    params: &[i128],
    inputs: &Arrays,
    options: &Options,
) -> Result<Arrays, Diagnostic> {
    let system = prepare(system, params)?;
    let inputs = Inputs::bind(&system, params, inputs)?;
    run_bound(&system, params, &inputs, options)
}

/// The system without a batch, with checked parameters.
pub(crate) fn prepare(system: &System, params: &[i128]) -> Result<System, Diagnostic> {
    check_params(&system.param_names(), &system.context, params, system.span)?;
    system.expand_batch().map_err(|e| too_large(system.span, e))
}

/// The results of a system, with an error bound of each float, see [`crate::rounding`].
pub fn expect_system(
    system: &System,
    params: &[i128],
    inputs: &Arrays,
) -> Result<Expected, Diagnostic> {
    let system = prepare(system, params)?;
    let inputs = Inputs::bind(&system, params, inputs)?;
    let none = vec![None; system.inputs.len()];
    run_tracked(&system, params, &inputs, none)
}

/// Runs a system that has no batch.
pub(crate) fn run_bound(
    system: &System,
    params: &[i128],
    inputs: &Inputs<'_>,
    options: &Options,
) -> Result<Arrays, Diagnostic> {
    let mut machine = Machine::new(Env { system, params }, inputs, options, None)?;
    if options.demand == Demand::Everything {
        machine.settle_where(&|equation| equation < system.vars.len())?;
    }
    let expected = machine.outputs()?;
    machine.look_for_faults()?;
    Ok(expected.arrays)
}

/// The same with error bounds. `errors`: those of each input in row-major order; `None` where it is
/// exact.
pub(crate) fn run_tracked<'a>(
    system: &'a System,
    params: &'a [i128],
    inputs: &'a Inputs<'a>,
    errors: Vec<Option<&'a [f64]>>,
) -> Result<Expected, Diagnostic> {
    let env = Env { system, params };
    let mut machine = Machine::start(env, inputs, &Options::default(), None, Some(errors))?;
    let expected = machine.outputs()?;
    machine.look_for_faults()?;
    Ok(expected)
}

/// One equation: of a variable, or the hidden one of a scan.
struct Equation {
    code: Code,
    /// For a scan: the operator and the iterator.
    step: Option<(Combine, usize)>,
    /// The owner of the equation, for messages.
    owner: Owner,
}

#[derive(Clone, Copy)]
enum Owner {
    Var(usize),
    /// A write of an output.
    Output(usize, usize),
}

#[derive(Clone, Copy)]
struct Task {
    equation: u32,
    phase: Phase,
    slot: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Collect its dependences.
    Visit,
    /// All its dependences are computed.
    Finish,
}

struct Machine<'a> {
    env: Env<'a>,
    inputs: &'a Inputs<'a>,
    library: Arc<Library>,
    /// The equations of the variables, then those of the scans; `memos` is parallel.
    equations: Vec<Equation>,
    memos: Vec<Memo>,
    /// The types of their values, without error tracking.
    types: Vec<Type>,
    /// The compiled values of all writes, by output and write.
    writes: Vec<Vec<Code>>,
    stack: Vec<Task>,
    frame: Frame,
    point: Vec<i64>,
    memory_limit: u64,
    memory_left: u64,
    /// In a sample: the remaining budget of values.
    values_left: Option<u64>,
    /// Where errors are tracked: the errors of each input.
    errors: Option<Vec<Option<&'a [f64]>>>,
}

/// The values computed so far, as seen by an equation.
struct View<'a> {
    system: &'a System,
    memos: &'a [Memo],
    inputs: &'a Inputs<'a>,
    errors: Option<&'a [Option<&'a [f64]>]>,
}

impl Reads for View<'_> {
    #[inline]
    fn read(&mut self, read: Read<'_>) -> Result<Value, Stop> {
        match read {
            Read::Var { var, point, span } => {
                let memo = self.memos.get(var.index());
                match memo.and_then(|memo| memo.find(point).map(|found| (memo, found))) {
                    Some((memo, (slot, State::Known))) => memo.get(slot).ok_or(Stop::Undefined),
                    Some((_, (_, State::Undefined))) => {
                        Err(undefined_read(self.system, var.index(), point, span).into())
                    }
                    Some((_, (_, State::Outside | State::Unknown | State::Waiting))) => {
                        let message = "a value was read before it was computed";
                        Err(Diagnostic::new(&run::NOT_A_VALUE, span, message).into())
                    }
                    None => Err(outside_domain(self.system, var.index(), point, span).into()),
                }
            }
            Read::Input { input, index, span } => {
                let value = self.inputs.read(input, index, span)?;
                let Some(errors) = self.errors else {
                    return Ok(value);
                };
                let error = errors.get(input.index()).copied().flatten();
                let error = error.and_then(|e| e.get(self.inputs.position(input, index)?).copied());
                Ok(rounding::given(value, error))
            }
            Read::Port(_) => {
                let message = "a port has no value in a system";
                Err(Diagnostic::new(&run::NOT_A_VALUE, Span::NONE, message).into())
            }
        }
    }

    fn scan(&mut self, scan: usize, point: &[i64]) -> Result<Value, Stop> {
        let known = self.memos.get(scan).and_then(|memo| {
            let (slot, state) = memo.find(&point[..memo.layout.rank().min(point.len())])?;
            (state == State::Known).then(|| memo.get(slot)).flatten()
        });
        known.ok_or(Stop::Undefined)
    }
}

impl<'a> Machine<'a> {
    fn new(
        env: Env<'a>,
        inputs: &'a Inputs<'a>,
        options: &Options,
        most_values: Option<u64>,
    ) -> Result<Machine<'a>, Diagnostic> {
        Machine::start(env, inputs, options, most_values, None)
    }

    fn start(
        env: Env<'a>,
        inputs: &'a Inputs<'a>,
        options: &Options,
        most_values: Option<u64>,
        errors: Option<Vec<Option<&'a [f64]>>>,
    ) -> Result<Machine<'a>, Diagnostic> {
        let mut machine = Machine {
            env,
            inputs,
            library: Library::compile(env)?,
            equations: Vec::new(),
            memos: Vec::new(),
            types: Vec::new(),
            writes: Vec::new(),
            stack: Vec::new(),
            frame: Frame::new(options.term_limit, errors.is_some()),
            point: vec![0; env.system.dims.len()],
            memory_limit: options.memory_limit,
            memory_left: options.memory_limit,
            values_left: most_values,
            errors,
        };
        machine.compile()?;
        Ok(machine)
    }

    /// Compiles all equations and lays out their memo tables.
    fn compile(&mut self) -> Result<(), Diagnostic> {
        let system = self.env.system;
        let params = self.env.params;
        let mut tables = Tables {
            limit: self.memory_limit,
            lazy: self.values_left.is_some(),
            known: Vec::new(),
        };
        let mut pending = Vec::new();
        let mut owners = Vec::new();
        let first = system.vars.len();
        for (n, var) in system.vars.iter().enumerate() {
            let seen = &*system.around(VarId::from(n));
            let env = Env {
                system: seen,
                params,
            };
            // The domain around a variable with iterators of its own has its conditions already.
            let on = match var.own {
                None => var.on.as_slice(),
                Some(_) => &[],
            };
            let table = tables.of(env, on, var.span)?;
            let scans = ScanPlan {
                pending: &mut pending,
                first,
                domain: table.scan_domain.clone(),
            };
            let code = Code::compile_equation(&var.body, env, &self.library, var.span, scans)?;
            owners.resize_with(pending.len(), || (Owner::Var(n), on));
            self.equations.push(Equation {
                code,
                step: None,
                owner: Owner::Var(n),
            });
            self.remember(&table, var.ty.clone(), var.span)?;
        }
        for (n, output) in system.outputs.iter().enumerate() {
            let mut codes = Vec::new();
            for write in &output.writes {
                let seen = &*system.around_write(write);
                let env = Env {
                    system: seen,
                    params,
                };
                let table = tables.of(env, &[], output.span)?;
                let scans = ScanPlan {
                    pending: &mut pending,
                    first,
                    domain: table.scan_domain.clone(),
                };
                let (value, span) = (&write.value, write.span);
                codes.push(Code::compile_equation(
                    value,
                    env,
                    &self.library,
                    span,
                    scans,
                )?);
                let owner = Owner::Output(n, codes.len() - 1);
                owners.resize_with(pending.len(), || (owner, [].as_slice()));
            }
            self.writes.push(codes);
        }
        // A scan within a scan extends the list during this loop.
        let mut done = 0;
        while done < pending.len() {
            let mut nested = Vec::new();
            let (owner, on) = owners[done];
            let scan = &pending[done];
            let seen = &*self.around(owner);
            let env = Env {
                system: seen,
                params,
            };
            let table = tables.of(env, on, scan.span)?;
            let scans = ScanPlan {
                pending: &mut nested,
                first: first + pending.len(),
                domain: table.scan_domain.clone(),
            };
            let code = Code::compile_equation(&scan.body, env, &self.library, scan.span, scans)?;
            let step = Some((scan.op, scan.dim));
            let (ty, span) = (scan.ty.clone(), scan.span);
            self.equations.push(Equation { code, step, owner });
            self.remember(&table, ty, span)?;
            pending.append(&mut nested);
            owners.resize_with(pending.len(), || (owner, on));
            done += 1;
        }
        Ok(())
    }

    /// The system as the owner of an equation sees it.
    fn around(&self, owner: Owner) -> Cow<'a, System> {
        let system = self.env.system;
        match owner {
            Owner::Var(n) => system.around(VarId::from(n)),
            Owner::Output(n, w) => system.around_write(&system.outputs[n].writes[w]),
        }
    }

    fn remember(&mut self, table: &Table, ty: Type, span: Span) -> Result<(), Diagnostic> {
        self.types.push(ty.clone());
        let ty = match self.errors {
            None => ty,
            Some(_) => rounding::tracked_type(&ty),
        };
        let needed = table.layout.bytes(&ty);
        self.memory_left = self.memory_left.checked_sub(needed).ok_or_else(|| {
            let limit = self.memory_limit;
            let cause = format!("the values to remember need more than the limit of {limit} bytes");
            too_large(span, cause).note(self.sizes())
        })?;
        check_room(needed).map_err(|e| too_large(span, e).note(self.sizes()))?;
        let memo = Memo::new(table.layout.clone(), table.membership.clone(), ty);
        self.memos.push(memo);
        Ok(())
    }

    /// Computes some equations at every point.
    fn settle_where(&mut self, is_wanted: &dyn Fn(usize) -> bool) -> Result<(), Diagnostic> {
        for equation in (0..self.equations.len()).filter(|n| is_wanted(*n)) {
            for slot in 0..self.memos[equation].n_slots() {
                if self.memos[equation].state(slot) == State::Unknown {
                    self.push(equation, slot, Phase::Visit);
                    self.settle()?;
                }
            }
        }
        Ok(())
    }

    /// An equation without a value is an error at every point of its domain, even if no output
    /// depends on it: targets that compute all points report it, and so does this. Other mistakes
    /// in such values stay hidden.
    fn look_for_faults(&mut self) -> Result<(), Diagnostic> {
        let may_fault = self.equations.iter().map(|e| e.code.may_fault());
        let may_fault: Vec<bool> = may_fault.collect();
        match self.settle_where(&|equation| may_fault[equation]) {
            Err(found) if is_fault(found.code) => Err(found),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn push(&mut self, equation: usize, slot: usize, phase: Phase) {
        self.stack.push(Task {
            equation: equation as u32,
            phase,
            slot,
        });
    }

    /// Runs until the stack is empty.
    fn settle(&mut self) -> Result<(), Diagnostic> {
        while let Some(task) = self.stack.pop() {
            let (n, slot) = (task.equation as usize, task.slot);
            let is_open = match (self.memos[n].state(slot), task.phase) {
                (State::Unknown, _) | (State::Waiting, Phase::Finish) => true,
                (State::Outside | State::Undefined | State::Known | State::Waiting, _) => false,
            };
            if !is_open {
                continue;
            }
            self.point.resize(self.memos[n].layout.rank(), 0);
            self.memos[n].layout.point(slot, &mut self.point);
            if task.phase == Phase::Visit {
                self.memos[n].set_state(slot, State::Waiting);
                let height = self.stack.len();
                self.push(n, slot, Phase::Finish);
                self.expand(n, slot)?;
                if self.stack.len() > height + 1 {
                    continue;
                }
                self.stack.pop();
            }
            self.compute(n, slot)?;
        }
        Ok(())
    }

    /// Pushes the missing dependences of an equation at `self.point`.
    fn expand(&mut self, n: usize, slot: usize) -> Result<(), Diagnostic> {
        let equation = &self.equations[n];
        let (memos, stack) = (&self.memos, &mut self.stack);
        if let Some((_, dim)) = equation.step {
            let before = point_before(&memos[n], &mut self.point, dim);
            memos[n].layout.point(slot, &mut self.point);
            match before {
                Some((before, State::Unknown)) => stack.push(Task {
                    equation: n as u32,
                    phase: Phase::Visit,
                    slot: before,
                }),
                Some((before, State::Waiting)) => {
                    return Err(self.cycle(n, before, equation.code.span()));
                }
                Some((_, State::Outside | State::Undefined | State::Known)) | None => {}
            }
        }
        if !equation.code.reads_vars() {
            return Ok(());
        }
        let system = self.env.system;
        let mut cycle = None;
        let point = std::mem::take(&mut self.point);
        let found = equation.code.needs(&mut self.frame, &point, &mut |need| {
            let (equation, slot, state, span) = match need {
                Need::Var { var, point, span } => {
                    let Some((slot, state)) = memos[var.index()].find(point) else {
                        return Err(outside_domain(system, var.index(), point, span).into());
                    };
                    (var.index(), slot, state, span)
                }
                Need::Scan { scan, point } => {
                    let point = &point[..memos[scan].layout.rank()];
                    match memos[scan].find(point) {
                        Some((slot, state)) => (scan, slot, state, Span::NONE),
                        None => return Ok(()),
                    }
                }
            };
            match state {
                State::Unknown => stack.push(Task {
                    equation: equation as u32,
                    phase: Phase::Visit,
                    slot,
                }),
                State::Waiting => {
                    cycle = Some((equation, slot, span));
                    return Err(Stop::Undefined);
                }
                State::Outside | State::Undefined | State::Known => {}
            }
            Ok(())
        });
        self.point = point;
        match (found, cycle) {
            (Ok(()), _) => Ok(()),
            (Err(_), Some((equation, slot, span))) => Err(self.cycle(equation, slot, span)),
            (Err(stop), None) => match stop.into_diagnostic(self.equations[n].code.span()) {
                Some(diagnostic) => Err(self.explain(diagnostic, self.equations[n].owner)),
                None => Ok(()),
            },
        }
    }

    /// Evaluates an equation at `self.point`, when all its dependences are computed.
    fn compute(&mut self, n: usize, slot: usize) -> Result<(), Diagnostic> {
        affine::cancel::check();
        if let Some(left) = &mut self.values_left {
            let span = self.equations[n].code.span();
            *left = left.checked_sub(1).ok_or_else(|| {
                too_large(span, "a sample of the outputs needs too many other values")
            })?;
        }
        let equation = &self.equations[n];
        let mut view = View {
            system: self.env.system,
            memos: &self.memos,
            inputs: self.inputs,
            errors: self.errors.as_deref(),
        };
        let mut value = equation.code.eval(&mut self.frame, &self.point, &mut view);
        if let (Some((op, dim)), Ok(term)) = (equation.step, &value) {
            let memo = &self.memos[n];
            let before = point_before(memo, &mut self.point, dim);
            memo.layout.point(slot, &mut self.point);
            match before.map(|(before, state)| (memo.get(before), state)) {
                Some((Some(sum), State::Known)) => {
                    let term = term.clone();
                    value = equation
                        .code
                        .combine(&mut self.frame, op, sum, term, &mut view);
                }
                Some(_) => value = Err(Stop::Undefined),
                None => {}
            }
        }
        let (span, owner) = (equation.code.span(), equation.owner);
        match value {
            Ok(mut value) => {
                if self.errors.is_some() {
                    value = rounding::fitted(&value, &self.types[n]);
                }
                if self.memos[n].set(slot, &value) {
                    return Ok(());
                }
                let message = format!("the equation gives a value of type {}", value.ty());
                let diagnostic = Diagnostic::new(&run::ILL_TYPED, span, message);
                Err(self.explain(diagnostic, owner))
            }
            Err(stop) => match stop.into_diagnostic(span) {
                Some(diagnostic) => Err(self.explain(diagnostic, owner)),
                None => {
                    self.memos[n].set_state(slot, State::Undefined);
                    Ok(())
                }
            },
        }
    }
}

/// Is it an error of an operator or a table lookup?
fn is_fault(code: &systola_ir::codes::Code) -> bool {
    let faults = [
        &run::DIVISION_BY_ZERO,
        &run::NEGATIVE_EXPONENT,
        &run::INPUT_OUT_OF_RANGE,
    ];
    faults.iter().any(|fault| fault.id == code.id)
}

/// The nearest point of the domain before this one along an iterator. Leaves `point` changed.
fn point_before(memo: &Memo, point: &mut [i64], dim: usize) -> Option<(usize, State)> {
    let lo = *memo.layout.lo.get(dim)?;
    while point[dim] > lo {
        point[dim] -= 1;
        if let Some(found) = memo.find(point) {
            return Some(found);
        }
    }
    None
}
