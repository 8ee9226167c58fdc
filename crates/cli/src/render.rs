//! Renders diagnostics for people.

use std::fmt::Write;

use miette::{GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, Severity};
use systola_ir::diag::{Counterexample, Diagnostic, Kind, coordinates};

use crate::table::{Align, Table};
use crate::term::Paint;

/// A diagnostic for miette: message, code and labels. The remaining parts follow below the snippet
/// in our own layout.
struct Shown<'a> {
    diagnostic: &'a Diagnostic,
    source: NamedSource<String>,
    labels: Vec<LabeledSpan>,
}

impl std::fmt::Debug for Shown<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.diagnostic.fmt(f)
    }
}

impl std::fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.diagnostic.message)
    }
}

impl std::error::Error for Shown<'_> {}

impl miette::Diagnostic for Shown<'_> {
    fn code<'a>(&'a self) -> Option<Box<dyn std::fmt::Display + 'a>> {
        let kind = match self.diagnostic.kind() {
            Kind::Mistake => "error",
            Kind::Limitation => "known limitation",
            Kind::Hint => "hint",
        };
        Some(Box::new(format!("{kind} {}", self.diagnostic.code.id)))
    }

    fn severity(&self) -> Option<Severity> {
        Some(match self.diagnostic.kind() {
            Kind::Mistake => Severity::Error,
            Kind::Limitation => Severity::Warning,
            Kind::Hint => Severity::Advice,
        })
    }

    fn source_code(&self) -> Option<&dyn miette::SourceCode> {
        (!self.labels.is_empty()).then_some(&self.source)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        (!self.labels.is_empty()).then(|| Box::new(self.labels.iter().cloned()) as Box<_>)
    }
}

/// One diagnostic, with its snippet, counterexample, notes and help.
pub fn diagnostic(path: &str, text: &str, diagnostic: &Diagnostic, colour: bool) -> String {
    let labels = diagnostic
        .labels
        .iter()
        .filter(|(span, _)| !span.is_none() && (span.start as usize) <= text.len())
        .enumerate()
        .map(|(n, (span, label))| {
            let start = span.start as usize;
            let end = (span.end as usize).clamp(start, text.len());
            let label = (!label.is_empty()).then(|| label.clone());
            if n == 0 {
                LabeledSpan::new_primary_with_span(label, start..end)
            } else {
                LabeledSpan::new_with_span(label, start..end)
            }
        })
        .collect();
    let shown = Shown {
        diagnostic,
        source: NamedSource::new(path, text.to_string()),
        labels,
    };
    let theme = if colour {
        GraphicalTheme::unicode()
    } else {
        GraphicalTheme::unicode_nocolor()
    };
    let mut report = String::new();
    let handler = GraphicalReportHandler::new_themed(theme)
        .with_links(false)
        .with_width(110);
    if handler.render_report(&mut report, &shown).is_err() {
        report = format!("{diagnostic}\n");
    }
    let mut report = report.trim_end().to_string();
    report.push('\n');
    if let Some(example) = &diagnostic.counterexample {
        report.push_str(&counterexample(example, colour));
    }
    for note in &diagnostic.notes {
        report.push_str(&remark(
            &Paint::Blue.when(colour, "note"),
            "note".len(),
            note,
        ));
    }
    if let Some(help) = &diagnostic.help {
        report.push_str(&remark(
            &Paint::Cyan.when(colour, "help"),
            "help".len(),
            help,
        ));
    }
    report
}

/// `  note: first line` with the lines after it indented under it.
fn remark(head: &str, head_width: usize, text: &str) -> String {
    let indent = " ".repeat(4 + head_width);
    let mut lines = text.lines();
    let mut out = format!("  {head}: {}\n", lines.next().unwrap_or_default());
    for line in lines {
        let _ = writeln!(out, "{}", format!("{indent}{line}").trim_end());
    }
    out
}

/// The points of a counterexample, one row each.
pub fn counterexample(example: &Counterexample, colour: bool) -> String {
    let params: Vec<String> = example
        .params
        .iter()
        .map(|(name, value)| format!("{name} = {value}"))
        .collect();
    let at = if params.is_empty() {
        String::new()
    } else {
        format!(" at {}", params.join(", "))
    };
    let with_place = example.points.iter().any(|p| !p.place.is_empty());
    let with_time = example.points.iter().any(|p| !p.time.is_empty());
    let mut align = vec![Align::Left];
    align.extend(vec![Align::Right; example.dims.len() + 2]);
    let mut table = Table::new(4, align);
    let mut head = vec![String::new()];
    head.extend(example.dims.iter().cloned());
    head.extend(with_place.then(|| " place".to_string()));
    head.extend(with_time.then(|| " time".to_string()));
    table.row(head);
    for (n, mapped) in example.points.iter().enumerate() {
        let mut row = vec![if example.points.len() == 1 {
            "point".to_string()
        } else {
            format!("point {}", n + 1)
        }];
        row.extend(mapped.point.iter().map(i128::to_string));
        row.extend(with_place.then(|| coordinates(&mapped.place)));
        row.extend(with_time.then(|| coordinates(&mapped.time)));
        table.row(row);
    }
    format!(
        "  {}{at}:\n{}",
        Paint::Magenta.when(colour, "counterexample"),
        table.render()
    )
}

/// Line and column, both from 1, of a byte offset.
pub fn line_column(text: &str, offset: usize) -> (usize, usize) {
    let mut end = offset.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let before = &text[..end];
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    (line, column)
}

#[cfg(test)]
mod tests {
    use systola_ir::diag::MappedPoint;

    use super::*;

    #[test]
    fn lines_and_columns_count_from_one() {
        assert_eq!(line_column("ab\ncd", 0), (1, 1));
        assert_eq!(line_column("ab\ncd", 4), (2, 2));
        assert_eq!(line_column("ab\ncd", 99), (2, 3));
        assert_eq!(line_column("é\n", 1), (1, 1));
    }

    #[test]
    fn counterexamples_line_up() {
        let point = |point: [i128; 2], place, time| MappedPoint {
            point: point.to_vec(),
            place: vec![place],
            time: vec![time],
        };
        let example = Counterexample {
            params: vec![("C".into(), 16), ("Q".into(), 5)],
            dims: vec!["c".into(), "q".into()],
            points: vec![point([10, 0], 10, 0), point([9, 1], 10, 0)],
        };
        let expect = "  counterexample at C = 16, Q = 5:
              c  q   place   time
    point 1  10  0      10      0
    point 2   9  1      10      0
";
        assert_eq!(counterexample(&example, false), expect);
    }
}
