//! Diagnostics of a failed run.

use systola_ir::codes::run;
use systola_ir::system::System;
use systola_ir::{Diagnostic, Span, VarId};

use crate::code::Env;
use crate::domain::DomainError;
use crate::params::{show_point, too_large, with_params};
use crate::system::{Machine, Owner, Phase, Task};

impl Machine<'_> {
    pub(super) fn sizes(&self) -> String {
        with_params(&self.env.system.param_names(), self.env.params)
    }

    /// Adds the equation, the point and the sizes.
    pub(super) fn explain(&self, diagnostic: Diagnostic, owner: Owner) -> Diagnostic {
        let system = self.env.system;
        let point = show_point(&self.around(owner).dim_names(), &self.point);
        let (what, span) = match owner {
            Owner::Var(n) => (format!("`{}`", system.vars[n].name), system.vars[n].span),
            Owner::Output(n, _) => {
                let output = &system.outputs[n];
                (format!("the output `{}`", output.name), output.span)
            }
        };
        let sizes = self.sizes();
        diagnostic
            .also(span, format!("in {what} at {point}"))
            .note(format!("it happens in {what} at {point}, {sizes}"))
    }

    /// The cycle of values, starting at the one that is needed again.
    pub(super) fn cycle(&self, equation: usize, slot: usize, span: Span) -> Diagnostic {
        const SHOWN: usize = 12;
        let waiting: Vec<&Task> = self
            .stack
            .iter()
            .filter(|task| task.phase == Phase::Finish)
            .collect();
        let start = waiting
            .iter()
            .position(|task| task.equation as usize == equation && task.slot == slot)
            .unwrap_or(0);
        let mut steps: Vec<String> = waiting[start..]
            .iter()
            .map(|task| {
                let n = task.equation as usize;
                let layout = &self.memos[n].layout;
                let mut point = vec![0; layout.rank()];
                layout.point(task.slot, &mut point);
                let names = self.around(self.equations[n].owner).dim_names();
                format!("{}{}", self.name_of(n), show_point(&names, &point))
            })
            .collect();
        let (first, length) = (steps[0].clone(), steps.len());
        if length > SHOWN {
            let left_out = length - SHOWN;
            steps.truncate(SHOWN - 1);
            steps.push(format!("({left_out} more)"));
        }
        steps.push(first.clone());
        let message = format!("{first} depends on itself");
        Diagnostic::new(&run::CYCLE, span, message)
            .here("this reference closes the cycle")
            .note(format!(
                "the cycle has {length} values: {}",
                steps.join(" needs ")
            ))
            .note(self.sizes())
    }

    fn name_of(&self, equation: usize) -> String {
        let system = self.env.system;
        match (
            self.equations[equation].owner,
            self.equations[equation].step,
        ) {
            (Owner::Var(n), None) => system.vars[n].name.clone(),
            (Owner::Var(n), Some(_)) => format!("scan of {}", system.vars[n].name),
            (Owner::Output(n, _), _) => format!("scan of {}", system.outputs[n].name),
        }
    }
}

pub(super) fn domain_error(env: Env<'_>, error: DomainError, span: Span, limit: u64) -> Diagnostic {
    let names = env.system.dim_names();
    let sizes = with_params(&env.system.param_names(), env.params);
    match error {
        DomainError::Unbounded(d) => {
            let name = names.get(d).map_or("?", String::as_str);
            let message = format!("nothing bounds the iterator `{name}` on both sides");
            let span = env.system.dims.get(d).map_or(span, |dim| dim.span);
            Diagnostic::new(&run::UNBOUNDED, span, message)
                .note(sizes)
                .help(format!("give it a range, `{name} in lo..hi`"))
        }
        DomainError::TooLarge => too_large(
            span,
            format!("the domain has too many points for the limit of {limit} bytes"),
        )
        .note(sizes),
    }
}

pub(super) fn undefined_read(system: &System, var: usize, point: &[i64], span: Span) -> Diagnostic {
    let names = system.names_of(VarId::from(var));
    let var = &system.vars[var];
    let at = show_point(&names, point);
    let message = format!("`{}` has no value at {at}", var.name);
    Diagnostic::new(&run::UNDEFINED_READ, span, message)
        .here(format!("reads `{}` at {at}", var.name))
        .also(
            var.span,
            "a `select` without a third argument leaves it undefined there",
        )
        .help("give the `select` a third argument, or guard the read by its condition")
}

pub(super) fn outside_domain(system: &System, var: usize, point: &[i64], span: Span) -> Diagnostic {
    let names = system.names_of(VarId::from(var));
    let var = &system.vars[var];
    let at = show_point(&names, point);
    let message = format!("`{}` is read at {at}, outside its domain", var.name);
    let name = &var.name;
    Diagnostic::new(&run::OUTSIDE_DOMAIN, span, message)
        .here(format!("reads `{name}` at {at}"))
        .help(format!(
            "guard the read, `select(condition, {name}(…), …)`; `systola check` shows the condition"
        ))
}
