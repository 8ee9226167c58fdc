//! Every term of the model for one design.

use systola_driver::{Fix, lower};
use systola_explore::model::predict;
use systola_ir::codes::explore as codes;
use systola_ir::mapping::Mapping;
use systola_ir::{Diagnostic, Span};

use super::Task;
use crate::execute::duration;
use crate::source::{Failure, Parameters};
use crate::table::{Align, Table};
use crate::term::{self, Paint};

/// A design by its name.
pub fn named(task: &Task<'_>, name: &str) -> Result<(), Failure> {
    let all = task.candidates();
    let found = all.iter().find(|(c, _)| c.mapping.name == name);
    let Some((candidate, _)) = found else {
        let message = format!("`{}` has no design `{name}`", task.system.name);
        let unknown = Diagnostic::new(&codes::UNKNOWN_DESIGN, Span::NONE, message);
        return Err(task.source.fail(&[unknown.help("--list shows the candidates")]));
    };
    term::print(format!("{}\n", Paint::Bold.out(task.title())));
    mapping(task, &candidate.mapping, task.place.fix(), None)
}

/// A mapping, with its measured time if there is one.
pub fn mapping(
    task: &Task<'_>,
    mapping: &Mapping,
    fix: &Fix,
    measured: Option<f64>,
) -> Result<(), Failure> {
    let sizes = Parameters::from(task.system).named(&task.params);
    let machine = task.place.machine();
    let lowered = lower(&task.source.module, mapping, &sizes, fix, &machine)
        .map_err(|found| task.source.fail(&found))?;
    let prediction = predict(&lowered.program, &task.params, &task.place.model())
        .map_err(|error| Failure::new(format!("nothing is predicted: {error}")))?;
    let mut text = format!("\n{mapping}");
    let mut table = Table::new(
        2,
        [Align::Left, Align::Right, Align::Left, Align::Right, Align::Right, Align::Left],
    );
    table.header(["term", "amount", "", "per second", "time", "rate from"]);
    for term in &prediction.terms {
        let mark = if term.name == prediction.limit { " ←" } else { "" };
        table.row([
            term.name.to_string(),
            amount(term.amount),
            term.unit.to_string(),
            amount(term.rate),
            format!("{}{mark}", duration(term.seconds)),
            term.source.to_string(),
        ]);
    }
    text.push_str(&table.render());
    text.push_str(&format!(
        "  limited by {}: {} predicted",
        prediction.limit,
        duration(prediction.seconds)
    ));
    if let Some(measured) = measured {
        text.push_str(&format!(", {} measured", duration(measured)));
    }
    text.push_str(&format!(
        "\n  {} registers, {:.0} % of the places for warps taken, {:.0} % of the lanes store, {} instructions\n",
        prediction.registers,
        100.0 * prediction.occupancy,
        100.0 * prediction.utilisation,
        amount(prediction.code)
    ));
    term::print(text);
    Ok(())
}

/// Three digits and a power of ten that suits them.
fn amount(x: f64) -> String {
    match x.abs() {
        0.0 => "0".to_string(),
        a if a < 1e4 && a >= 1.0 => format!("{x:.0}"),
        a if a < 1e4 => format!("{x:.3}"),
        _ => format!("{x:.2e}"),
    }
}
