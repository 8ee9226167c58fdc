//! Are the equations small enough once all functions are inlined?

use systola_ir::codes::syntax;
use systola_ir::diag::Diagnostic;
use systola_ir::span::Span;
use systola_ir::system::expansion::{Expansion, MOST_OPERATIONS};
use systola_ir::system::{Expr, System};

/// The first equation or output that is too large with its calls inlined.
pub(super) fn too_large(system: &System) -> Option<Diagnostic> {
    let expansion = Expansion::of(system);
    let refusal = |what: &str, name: &str, expr: &Expr, span: Span| {
        let n = expansion.operations(expr);
        if n <= MOST_OPERATIONS {
            return None;
        }
        let mut message = format!(
            "with its functions inlined, {what} `{name}` takes {}, of at most {MOST_OPERATIONS}",
            operations(n)
        );
        let function = expansion.largest_call(expr);
        if let Some(f) = function {
            let name = &system.functions[f.index()].name;
            let n = operations(expansion.of_function(f));
            message.push_str(&format!("; `{name}` alone takes {n}"));
        }
        let error = Diagnostic::new(&syntax::TOO_LARGE, span, message)
            .help("give what a function computes twice a variable of its own: a `var` is computed once and read by its name");
        Some(match function {
            Some(f) => error.also(system.functions[f.index()].span, "this function"),
            None => error,
        })
    };
    let equations = system.vars.iter();
    let mut equations = equations.map(|v| refusal("the equation of", &v.name, &v.body, v.span));
    let outputs = system.outputs.iter();
    let mut writes = outputs.flat_map(|o| o.writes.iter().map(move |w| (o, w)));
    equations
        .find_map(|found| found)
        .or_else(|| writes.find_map(|(o, w)| refusal("the output", &o.name, &w.value, w.span)))
}

fn operations(n: u64) -> String {
    if n == u64::MAX {
        return format!("more than {n} operations");
    }
    format!("{n} operations")
}
