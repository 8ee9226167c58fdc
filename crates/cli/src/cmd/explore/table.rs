//! The best designs, one line each.

use systola::rt::tuning::Entry;
use systola_explore::report::Ended;
use systola_explore::search::Fault;

use super::{Answer, Task};
use crate::execute::duration;
use crate::table::{Align, Table};
use crate::term::Paint;

/// Choices longer than this are truncated,
const CHOICES: usize = 60;
/// and reasons longer than this.
const REASON: usize = 100;

pub fn text(answer: &Answer<'_>, task: &Task<'_>) -> String {
    let mut text = format!("{}\n", Paint::Bold.out(task.title()));
    text.push_str(&summary(answer));
    let designs = answer.designs();
    if designs.is_empty() {
        return text;
    }
    let front = front(designs);
    let mut table = Table::new(
        2,
        [
            Align::Right,
            Align::Left,
            Align::Left,
            Align::Right,
            Align::Right,
            Align::Right,
            Align::Right,
            Align::Left,
            Align::Left,
        ],
    );
    table.header([
        "",
        "design",
        "array",
        "predicted",
        "measured",
        "runs",
        "registers",
        "limit",
        "choices",
    ]);
    let shown = task.args.top;
    for (n, design) in designs.iter().enumerate() {
        if n < shown || design.given {
            table.row(row(n, design, front[n]));
        }
    }
    text.push_str(&table.render());
    let own = designs.iter().filter(|d| d.given).count();
    if own > 0 {
        text.push_str("  =: stands in the file");
        text.push_str(if front.contains(&true) { "; " } else { "\n" });
    } else if front.contains(&true) {
        text.push_str("  ");
    }
    if front.contains(&true) {
        text.push_str("*: no design is faster with as few registers\n");
    }
    if task.args.survey.is_some()
        && let Some(found) = answer.agreement()
    {
        text.push_str(&format!(
            "  the model: rank correlation {:.3} over {} designs; the fastest is its number {}; its first takes {:.2} times as long, the best of its first ten {:.2} times\n",
            found.correlation, found.designs, found.rank_of_fastest, found.first, found.of_ten
        ));
    }
    text
}

fn row(n: usize, design: &Entry, on_front: bool) -> [String; 9] {
    let given = if design.given { "=" } else { "" };
    let mark = if on_front { "*" } else { "" };
    let choices: Vec<String> = design
        .choices
        .iter()
        .map(|(what, how)| format!("{what} {how}"))
        .collect();
    let choices = cut(&choices.join(", "), CHOICES);
    [
        (n + 1).to_string(),
        format!("{}{given}", name_of(design)),
        design.taxonomy.clone(),
        design.predicted.map(duration).unwrap_or_default(),
        duration(design.measured),
        design.samples.to_string(),
        design
            .registers
            .map(|r| format!("{r}{mark}"))
            .unwrap_or_default(),
        design.limit.clone().unwrap_or_default(),
        choices,
    ]
}

/// At most `most` characters, the last an ellipsis if the text is truncated.
fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_string();
    }
    text.chars().take(most - 1).chain(['…']).collect()
}

/// The name of the mapping of an entry.
pub fn name_of(design: &Entry) -> &str {
    let rest = design.mapping.strip_prefix("mapping ");
    rest.and_then(|rest| rest.split(' ').next()).unwrap_or("")
}

/// The Pareto front of time and registers.
pub fn front(designs: &[Entry]) -> Vec<bool> {
    let facts: Vec<(f64, Option<u32>)> =
        designs.iter().map(|d| (d.measured, d.registers)).collect();
    systola_explore::report::front(&facts)
}

fn summary(answer: &Answer<'_>) -> String {
    let record = &answer.record;
    let Some(outcome) = &answer.outcome else {
        return format!(
            "  remembered: {} of {} candidates were measured in {}; --again searches anew\n",
            record.designs.len(),
            record.candidates,
            duration(record.seconds)
        );
    };
    let mut parts = vec![format!("{} candidates", outcome.candidates)];
    if !outcome.refused.is_empty() {
        parts.push(format!("{} refused", outcome.refused.len()));
    }
    if outcome.unranked > 0 {
        parts.push(format!("{} without time to look at", outcome.unranked));
    }
    let measured = outcome.designs.iter().filter(|d| d.measured.is_some());
    parts.push(format!("{} measured", measured.count()));
    let faults = || {
        outcome
            .designs
            .iter()
            .filter_map(|d| Some((d, d.fault.as_ref()?)))
    };
    let count = |wanted: Fault| faults().filter(|(_, fault)| **fault == wanted).count();
    match count(Fault::TooSlow) {
        0 => {}
        slow => parts.push(format!("{slow} predicted to be far slower")),
    }
    match count(Fault::Late) {
        0 => {}
        late => parts.push(format!("{late} without time to compile or run")),
    }
    let mut failed = faults()
        .filter(|(_, fault)| !matches!(fault, Fault::TooSlow | Fault::Late))
        .peekable();
    let first = failed.peek().map(|(design, fault)| {
        let why = fault_text(fault);
        let why = cut(why.lines().next().unwrap_or_default(), REASON);
        format!("  {} failed: {why}\n", design.name())
    });
    let failed = failed.count();
    if failed > 0 {
        parts.push(format!("{failed} failed"));
    }
    let ended = match outcome.ended {
        Ended::Complete => "",
        Ended::Budget => ", the whole budget",
        Ended::Interrupted => ", interrupted",
    };
    let mut text = format!(
        "  {}: {} in {}{ended}\n",
        outcome.strategy,
        parts.join(", "),
        duration(outcome.seconds)
    );
    text.push_str(&first.unwrap_or_default());
    if let Some(evidence) = evidence(answer) {
        text.push_str(&format!("  {evidence}\n"));
    }
    text
}

/// How designs were verified.
fn evidence(answer: &Answer<'_>) -> Option<String> {
    let evidence = &answer.outcome.as_ref()?.evidence;
    let small = evidence.small.as_ref().map(|params| {
        let names = answer.system.params.iter().zip(params);
        let sizes: Vec<String> = names.map(|(p, v)| format!("{} = {v}", p.name)).collect();
        format!("in full at {}", sizes.join(", "))
    });
    let mut parts: Vec<String> = Vec::new();
    parts.extend(small.map(|small| format!("each against the equations {small}")));
    if evidence.in_full > 0 {
        let who = match parts.is_empty() {
            true => "each".to_string(),
            false => format!("{} of them", evidence.in_full),
        };
        let sampled = match evidence.sampled {
            0 => String::new(),
            n => format!(" against the equations in {n} results and"),
        };
        parts.push(format!("{who} at these sizes{sampled} against each other"));
    }
    (!parts.is_empty()).then(|| format!("verified: {}", parts.join(", ")))
}

/// Why a design has no time.
pub fn fault_text(fault: &Fault) -> String {
    match fault {
        Fault::Refused(why) | Fault::Failed(why) | Fault::Wrong(why) => why.clone(),
        Fault::TooSlow => "predicted to be far slower than the best".to_string(),
        Fault::Late => "there was no time left to compile or run it".to_string(),
    }
}
