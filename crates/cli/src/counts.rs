//! The counts of a run of kernels, as a table.

use systola_interp::kernel::Counts;

use crate::table::{Align, Table};

/// One row of the table: its name and its count.
struct CountRow {
    name: &'static str,
    count: fn(&Counts) -> u64,
    /// Shown even if it is zero.
    always: bool,
}

const ROWS: &[CountRow] = &[
    row("launches", |c| c.launches),
    row("blocks", |c| c.blocks),
    always("instructions", instructions),
    row("  arithmetic", |c| c.arithmetic),
    row("    of it fusible", |c| c.fusible),
    row("  positions", |c| c.index),
    always("  loads", |c| c.loads),
    always("  stores", |c| c.stores),
    row("  lookups", |c| c.lookups),
    row("  copies", |c| c.copies),
    always("  slides", |c| c.slides),
    row("  shuffles", |c| c.shuffles),
    row("  barriers", |c| c.barriers),
    row("  flags", |c| c.flags),
    always("global bytes", |c| c.global_bytes),
    row("global sectors", |c| c.global_sectors),
    row("shared passes", |c| c.shared_wavefronts),
    always("bank conflicts", |c| c.bank_conflicts),
];

const fn row(name: &'static str, count: fn(&Counts) -> u64) -> CountRow {
    CountRow {
        name,
        count,
        always: false,
    }
}

const fn always(name: &'static str, count: fn(&Counts) -> u64) -> CountRow {
    CountRow {
        name,
        count,
        always: true,
    }
}

/// Statements executed by warps, including those that may be fused with another.
fn instructions(c: &Counts) -> u64 {
    c.arithmetic
        + c.index
        + c.loads
        + c.stores
        + c.lookups
        + c.copies
        + c.slides
        + c.shuffles
        + c.barriers
        + c.flags
}

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
        let values: Vec<u64> = columns.iter().map(|counts| (row.count)(counts)).collect();
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
        let a = Counts {
            launches: 1,
            loads: 1234,
            global_bytes: 1_000_000,
            ..Counts::default()
        };
        let mut total = a.clone();
        total += &a;
        let text = counts_table(&[("first", &a), ("second", &a)], &total);
        let expect = "                    first     second        all
  launches              1          1          2
  instructions      1 234      1 234      2 468
    loads           1 234      1 234      2 468
    stores              0          0          0
    slides              0          0          0
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
