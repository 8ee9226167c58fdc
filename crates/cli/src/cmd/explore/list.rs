//! Candidates in the order of the model, without measuring any.

use std::time::Instant;

use systola_explore::rank::rank;

use super::{STOP, Task};
use crate::execute::duration;
use crate::source::Failure;
use crate::table::{Align, Table};
use crate::term::{self, Paint};

pub fn print(task: &Task<'_>) -> Result<(), Failure> {
    let (problem, model) = (task.problem(), task.place.model());
    let end = Instant::now() + task.args.budget;
    let ranking = rank(
        &problem,
        &task.params,
        task.candidates(),
        &model,
        end,
        &STOP,
    );
    let mut text = format!(
        "{}\n  {} candidates, {} refused, {} without time to look at\n",
        Paint::Bold.out(task.title()),
        ranking.ranked.len() + ranking.refused.len() + ranking.left,
        ranking.refused.len(),
        ranking.left
    );
    let align = [
        Align::Right,
        Align::Left,
        Align::Left,
        Align::Right,
        Align::Right,
    ];
    let mut table = Table::new(2, align);
    table.header([
        "",
        "design",
        "array",
        "predicted",
        "registers",
        "limit",
        "choices",
    ]);
    for (n, design) in ranking.ranked.iter().take(task.args.top).enumerate() {
        let predicted = design.predicted.as_ref();
        let choices = design.candidate.choices.iter();
        let choices: Vec<String> = choices.map(|(what, how)| format!("{what} {how}")).collect();
        let given = if design.given { "=" } else { "" };
        table.row([
            (n + 1).to_string(),
            format!("{}{given}", design.candidate.mapping.name),
            design.taxonomy.clone(),
            predicted.map(|p| duration(p.seconds)).unwrap_or_default(),
            predicted
                .map(|p| p.registers.to_string())
                .unwrap_or_default(),
            predicted.map(|p| p.limit.to_string()).unwrap_or_default(),
            choices.join(", "),
        ]);
    }
    text.push_str(&table.render());
    term::print(text);
    Ok(())
}
