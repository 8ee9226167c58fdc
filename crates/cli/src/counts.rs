//! The counts of a run of kernels, as a table.

use systola_ir::kernel::census::{Counts, Event};

use crate::table::{Align, Table};

/// One row of the table: its name and the events that it counts.
struct CountRow {
    name: &'static str,
    events: &'static [Event],
    /// Shown even if it is zero.
    always: bool,
}

const ROWS: &[CountRow] = &[
    row("launches", &[Event::Launches]),
    row("blocks", &[Event::Blocks]),
    always("instructions", INSTRUCTIONS),
    row("  arithmetic", &[Event::Arithmetic]),
    row("    of it fusible", &[Event::Fusible]),
    row("  positions", &[Event::Index]),
    always("  loads", &[Event::Loads]),
    always("  stores", &[Event::Stores]),
    row("  lookups", &[Event::Lookups]),
    row("  copies", &[Event::Copies]),
    always("  lane shifts", &[Event::LaneShifts]),
    row("  shuffles", &[Event::Shuffles]),
    row("  barriers", &[Event::Barriers]),
    row("  flags", &[Event::Flags]),
    always("global bytes", &[Event::GlobalBytes]),
    row("global sectors", &[Event::GlobalSectors]),
    row("shared wavefronts", &[Event::SharedWavefronts]),
    always("bank conflicts", &[Event::BankConflicts]),
];

const fn row(name: &'static str, events: &'static [Event]) -> CountRow {
    CountRow {
        name,
        events,
        always: false,
    }
}

const fn always(name: &'static str, events: &'static [Event]) -> CountRow {
    CountRow {
        name,
        events,
        always: true,
    }
}

/// Statements executed by warps, including those that may be fused with another.
const INSTRUCTIONS: &[Event] = &[
    Event::Arithmetic,
    Event::Index,
    Event::Loads,
    Event::Stores,
    Event::Lookups,
    Event::Copies,
    Event::LaneShifts,
    Event::Shuffles,
    Event::Barriers,
    Event::Flags,
];

/// A column for each kernel where there are several, and one for all.
pub fn counts_table(kernels: &[(&str, &Counts)], total: &Counts) -> String {
    let several = kernels.len() > 1;
    let mut columns: Vec<&Counts> = Vec::new();
    if several {
        columns.extend(kernels.iter().map(|(_, counts)| *counts));
    }
    columns.push(total);
    let mut align = vec![Align::Left];
    align.extend(vec![Align::Right; columns.len()]);
    let mut table = Table::new(2, align);
    if several {
        let names = kernels.iter().map(|(name, _)| *name);
        table.header([""].into_iter().chain(names).chain(["all"]));
    }
    for row in ROWS {
        let count = |counts: &&Counts| row.events.iter().map(|e| counts[*e]).sum();
        let values: Vec<u64> = columns.iter().map(count).collect();
        if row.always || values.iter().any(|v| *v > 0) {
            let cells = values.iter().map(|v| grouped(*v));
            table.row([row.name.to_string()].into_iter().chain(cells));
        }
    }
    table.render().trim_end().to_string()
}

/// `1 234 567`
fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_line_up() {
        let mut a = Counts::default();
        a[Event::Launches] = 1;
        a[Event::Loads] = 1234;
        a[Event::GlobalBytes] = 1_000_000;
        let mut total = a.clone();
        total += &a;
        let text = counts_table(&[("first", &a), ("second", &a)], &total);
        let expect = "                    first     second        all
  launches              1          1          2
  instructions      1 234      1 234      2 468
    loads           1 234      1 234      2 468
    stores              0          0          0
    lane shifts         0          0          0
  global bytes  1 000 000  1 000 000  2 000 000
  bank conflicts          0          0          0";
        let same = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let lines: Vec<String> = text.lines().map(same).collect();
        let wanted: Vec<String> = expect.lines().map(same).collect();
        assert_eq!(lines, wanted);
        let ends: Vec<usize> = text.lines().map(|l| l.chars().count()).collect();
        assert!(ends.windows(2).all(|w| w[0] == w[1]), "{text}");
    }

    #[test]
    fn digits_are_in_groups() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1 234 567");
    }
}
