//! Joins lines to a text, with the comments behind neighbouring lines in one column.

use super::lines::Line;

/// Spaces between code and a comment behind it, at least.
const GAP: usize = 2;

pub fn join(lines: &[Line], line_end: &str) -> String {
    let mut out = String::new();
    let mut n = 0;
    while n < lines.len() {
        let more = lines[n + 1..].iter().zip(&lines[n..]);
        let run = 1 + more.take_while(|(line, above)| joins(line, above)).count();
        let column = lines[n..n + run].iter().map(Line::width).max().unwrap_or(0) + GAP;
        for line in &lines[n..n + run] {
            write(&mut out, line, column, line_end);
        }
        n += run;
    }
    out
}

/// Is the comment behind this line aligned with the one behind the line above?
fn joins(line: &Line, above: &Line) -> bool {
    let behind = |line: &Line| line.comment.is_some() && (!line.code.is_empty() || line.below);
    let apart = line.blank_before || above.opens_block() || line.code.starts_with('}');
    behind(line) && behind(above) && (line.below || !apart)
}

fn write(out: &mut String, line: &Line, column: usize, line_end: &str) {
    if line.blank_before {
        out.push_str(line_end);
    }
    let alone = line.code.is_empty() && !line.below;
    let spaces = |n: usize| " ".repeat(n);
    match &line.comment {
        Some(comment) if alone => {
            out.push_str(&spaces(line.indent));
            out.push_str(comment);
        }
        Some(comment) => {
            let code = format!("{}{}", spaces(line.indent), line.code);
            out.push_str(&format!("{code:column$}{comment}"));
        }
        None => {
            out.push_str(&spaces(line.indent));
            out.push_str(&line.code);
        }
    }
    out.push_str(line_end);
}
