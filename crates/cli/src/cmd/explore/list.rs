//! Candidates in the order of the model, without measuring any.

use systola_explore::rank::Ranker;
use systola_explore::session::Error;

use super::Task;
use crate::execute::duration;
use crate::source::Failure;
use crate::table::{Align, Table};
use crate::term::{self, Paint};

pub fn print(task: &Task<'_>) -> Result<(), Failure> {
    let (problem, model) = (task.problem(), task.target_device.model());
    let ranker = Ranker {
        problem: &problem,
        params: &task.params,
        model: &model,
        end: task.deadline.end(),
        deadline: task.deadline.clone(),
    };
    let ranking = ranker.rank(task.candidates());
    let total = ranking.ranked.len() + ranking.refused.len() + ranking.left;
    if ranking.ranked.is_empty() && ranking.left == 0 {
        let why = ranking.refused.into_iter().next().map(|(_, why)| why);
        return Err(task.failure(Error::NoDesign(total, why)));
    }
    let mut text = format!(
        "{}\n  {} candidates, {} refused, {} without time to look at\n",
        Paint::Bold.out(task.title()),
        total,
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
