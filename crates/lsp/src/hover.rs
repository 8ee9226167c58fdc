//! What is said of a name or a word, as Markdown.

use std::fmt::Write;

use lsp_types::{Hover, HoverContents, MarkupContent, MarkupKind};
use systola_ir::Span;
use systola_ir::codes;
use systola_ir::diag::Kind;
use systola_lower::report::sections::{Align, Section, Weight};
use systola_surface::names::{Definition, DefinitionId, Index, NameKind, Role};
use systola_surface::tree::{Expr, Module};

use crate::context::{Context, Item, context, word_at};
use crate::document::{Document, Found};
use crate::facts::VarFacts;
use crate::job::{ArrayReport, Verdict};
use crate::snapshot::Snapshot;
use crate::words::{self, Place};

/// Lines of a declaration that are shown.
const SHOWN_LINES: usize = 12;
/// Dependences and reads that are listed; a stencil may have hundreds.
const SHOWN_READS: usize = 12;

pub fn hover(document: &mut Document, offset: usize) -> Option<Hover> {
    if let Some(found) = document.name_at(offset) {
        let range = found.drift.to_new(found.reference.span)?;
        return Some(Hover {
            contents: markdown(describe(document, &found)),
            range: Some(document.lines.range(&document.text, range)),
        });
    }
    let word = word_at(&document.text, offset);
    let text = code_help(word).or_else(|| word_help(&document.text, offset, word))?;
    Some(Hover {
        contents: markdown(text),
        range: None,
    })
}

fn markdown(value: String) -> HoverContents {
    HoverContents::Markup(MarkupContent {
        kind: MarkupKind::Markdown,
        value,
    })
}

/// A code that a comment or a note mentions.
fn code_help(word: &str) -> Option<String> {
    let code = codes::find(word)?;
    let kind = match code.kind {
        Kind::Mistake => "mistake",
        Kind::Limitation => "known limitation",
        Kind::Hint => "hint",
    };
    let explain = code.explain.trim();
    Some(format!(
        "**{}**: {} ({kind})\n\n{explain}",
        code.id, code.title
    ))
}

fn word_help(text: &str, offset: usize, word: &str) -> Option<String> {
    let places: &[Place] = match context(text, offset) {
        Context::Comment => return None,
        Context::File(_) => &[Place::File],
        Context::Statement(Item::System) => &[Place::System],
        Context::Statement(Item::Stencil) => &[Place::Stencil],
        Context::Statement(Item::Conv) => &[Place::Conv],
        Context::Statement(Item::Program) => &[Place::Program],
        Context::Statement(Item::Mapping) => &[Place::Mapping],
        Context::Within(Item::Mapping, tokens) if tokens.last() == Some(&".") => {
            &[Place::Primitive]
        }
        Context::Within(Item::Mapping, _) => {
            &[Place::DirectiveClause, Place::Given, Place::Mapping]
        }
        Context::Within(Item::Stencil, _) => {
            &[Place::Boundary, Place::Neighbourhood, Place::Expression]
        }
        Context::Within(..) => &[Place::Clause, Place::Boundary, Place::Expression],
    };
    if let Some(help) = words::type_help(word) {
        return Some(format!("`{word}`: {help}."));
    }
    // `lane1`, `time2`: coordinates where there are several.
    let level = word.trim_end_matches(|c: char| c.is_ascii_digit());
    let found = words::find(word, places).or_else(|| words::find(level, &[Place::Mapping]))?;
    Some(format!(
        "`{word}`: {}\n\n{}",
        found.help,
        code_block(found.example)
    ))
}

fn code_block(text: &str) -> String {
    format!("```ure\n{text}\n```")
}

fn describe(document: &Document, found: &Found) -> String {
    let (snapshot, definition) = (&*found.snapshot, found.definition());
    let mut text = code_block(&declaration(snapshot, found.reference.definition));
    let owner = definition.owner.map(|id| snapshot.index.definition(id));
    let what = definition.kind.describe();
    let _ = match owner {
        None => write!(text, "\n{what} `{}`", definition.name),
        Some(owner) => write!(
            text,
            "\n{what} of the {} `{}`",
            owner.kind.describe(),
            owner.name
        ),
    };
    match definition.kind {
        NameKind::Mapping => text.push_str(&verdict(document, definition)),
        NameKind::System | NameKind::Stencil | NameKind::Conv => {
            text.push_str(&mappings_of(document, snapshot, found.reference.definition));
        }
        NameKind::Variable | NameKind::Generated => {
            text.push_str(&facts_of(document, owner, &definition.name));
        }
        NameKind::Field => {
            // The equation of a field is that of a variable with a name of its own.
            let next = definition.name.to_uppercase();
            text.push_str(&facts_of(document, owner, &next));
        }
        NameKind::Parameter => text.push_str(&conditions_on(snapshot, found)),
        NameKind::TileIndex => text.push_str(" (an index that it makes)"),
        NameKind::Program
        | NameKind::Constant
        | NameKind::Input
        | NameKind::Table
        | NameKind::Filter
        | NameKind::Function
        | NameKind::Argument
        | NameKind::Iterator
        | NameKind::SumIterator
        | NameKind::Batch
        | NameKind::Output
        | NameKind::Let
        | NameKind::Stage => {}
    }
    text
}

/// The text of a declaration, of items only the head.
fn declaration(snapshot: &Snapshot, id: DefinitionId) -> String {
    let definition = snapshot.index.definition(id);
    let text = match definition.kind {
        NameKind::System
        | NameKind::Stencil
        | NameKind::Conv
        | NameKind::Program
        | NameKind::Mapping => {
            let text = snapshot.slice(definition.extent);
            let head = text.split_once('{').map_or(text, |(head, _)| head);
            head.trim_end().to_string()
        }
        NameKind::Generated => definition.name.clone(),
        NameKind::Parameter => {
            let owner = definition.owner.map(|id| declaration(snapshot, id));
            owner.unwrap_or_else(|| definition.name.clone())
        }
        NameKind::SumIterator => sum_ranges(snapshot, id),
        _ => snapshot.slice(definition.extent).to_string(),
    };
    let mut lines: Vec<&str> = text.lines().collect();
    if lines.len() > SHOWN_LINES {
        lines.truncate(SHOWN_LINES);
        lines.push("…");
    }
    lines.join("\n")
}

/// `q in 0..Q`, for each of the sums with an iterator of this name.
fn sum_ranges(snapshot: &Snapshot, id: DefinitionId) -> String {
    let mut ranges: Vec<String> = Vec::new();
    for reference in snapshot.index.references_to(id) {
        if reference.role != Role::Declares {
            continue;
        }
        // Up to the comma behind the range, which may have commas in brackets only.
        let start = reference.span.start as usize;
        let mut depth = 0i32;
        let rest = &snapshot.text[start..];
        let end = rest.find(|c: char| match c {
            '(' | '[' => {
                depth += 1;
                false
            }
            ')' | ']' => {
                depth -= 1;
                depth < 0
            }
            ',' => depth == 0,
            _ => false,
        });
        let range = rest[..end.unwrap_or(rest.len())].trim().to_string();
        if !ranges.contains(&range) {
            ranges.push(range);
        }
    }
    ranges.join("\n")
}

/// The conditions of the head that a parameter occurs in.
fn conditions_on(snapshot: &Snapshot, found: &Found) -> String {
    let Some(owner) = found.definition().owner else {
        return String::new();
    };
    let owner = snapshot.index.definition(owner);
    let context = context_of(&snapshot.tree, owner);
    let uses: Vec<Span> = (snapshot.index)
        .references_to(found.reference.definition)
        .map(|r| r.span)
        .collect();
    let about = |e: &&Expr| {
        let range = e.span.range();
        uses.iter()
            .any(|span| range.contains(&(span.start as usize)))
    };
    let conditions: Vec<String> = (context.iter())
        .filter(about)
        .map(|e| format!("`{}`", snapshot.slice(e.span)))
        .collect();
    match conditions.is_empty() {
        true => ", without a condition in its head".to_string(),
        false => format!(", where {}", conditions.join(", ")),
    }
}

fn context_of<'t>(tree: &'t Module, item: &Definition) -> &'t [Expr] {
    let name = item.name.as_str();
    let systems = tree.systems.iter().map(|s| (&s.name, &s.context));
    let stencils = tree.stencils.iter().map(|s| (&s.name, &s.context));
    let convs = tree.convs.iter().map(|c| (&c.name, &c.context));
    let programs = tree.programs.iter().map(|p| (&p.name, &p.context));
    let mut all = systems.chain(stencils).chain(convs).chain(programs);
    all.find(|(n, _)| n.text == name).map_or(&[], |(_, c)| c)
}

/// What a variable depends on, as far as its system was checked.
fn facts_of(document: &Document, owner: Option<&Definition>, name: &str) -> String {
    let facts = owner.and_then(|owner| document.facts.get(&owner.name));
    let Some(facts) = facts.and_then(|facts| facts.get(name)) else {
        return String::new();
    };
    let VarFacts {
        ty,
        domain,
        dependences,
        inputs,
        outputs,
    } = facts;
    let mut text = format!("\n\n- type: `{ty}`");
    let _ = match domain.as_str() {
        "" => write!(text, "\n- domain: a single point"),
        domain => write!(text, "\n- domain: `{domain}`"),
    };
    list(&mut text, "depends on", dependences);
    list(&mut text, "reads", inputs);
    list(&mut text, "is written to", outputs);
    text
}

fn list(text: &mut String, title: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    let _ = write!(text, "\n- {title}:");
    for line in lines.iter().take(SHOWN_READS) {
        let _ = write!(text, "\n  - `{line}`");
    }
    if lines.len() > SHOWN_READS {
        let _ = write!(text, "\n  - … {} in all", lines.len());
    }
}

/// The mappings of a system, with their arrays.
fn mappings_of(document: &Document, snapshot: &Snapshot, system: DefinitionId) -> String {
    let index: &Index = &snapshot.index;
    let mut text = String::new();
    for (n, definition) in index.definitions.iter().enumerate() {
        let id = DefinitionId(n);
        if definition.kind != NameKind::Mapping || index.system_of(id) != Some(system) {
            continue;
        }
        if text.is_empty() {
            text.push_str("\n\nmappings:");
        }
        let word = match document.verdicts.get(&definition.name) {
            Some(Verdict::Legal(report)) => {
                let title = report.sections.first().and_then(|s| s.title.clone());
                format!("legal, {}", title.unwrap_or_default().trim())
            }
            Some(Verdict::Refused(codes)) => format!("refused, {}", codes.join(", ")),
            Some(Verdict::NotChecked) => "not checked".to_string(),
            None => "being checked".to_string(),
        };
        let _ = write!(text, "\n- `{}`: {word}", definition.name);
    }
    text
}

/// What `systola check` says of a mapping.
fn verdict(document: &Document, mapping: &Definition) -> String {
    match document.verdicts.get(&mapping.name) {
        None => "\n\nIt is being checked.".to_string(),
        Some(Verdict::NotChecked) => {
            "\n\nNot checked: its system has to be mended first.".to_string()
        }
        Some(Verdict::Refused(codes)) => format!("\n\nRefused: {}.", codes.join(", ")),
        Some(Verdict::Legal(report)) => array(report),
    }
}

fn array(report: &ArrayReport) -> String {
    let mut text = format!("\n\nlegal {}", report.scope);
    for section in &report.sections {
        text.push_str(&table(section));
    }
    text
}

/// A section as a Markdown table, or as a list where it has no header.
fn table(section: &Section) -> String {
    let mut text = String::new();
    if let Some(title) = &section.title {
        let _ = write!(text, "\n\n**{}**", title.trim());
    }
    let escaped = |cell: &str| cell.replace('|', "\\|");
    let Some(header) = &section.header else {
        text.push('\n');
        for row in &section.rows {
            let cells: Vec<String> = (row.iter())
                .filter(|cell| !cell.text.is_empty())
                .map(|cell| match cell.weight {
                    Weight::Strong => format!("**{}**", cell.text),
                    Weight::Plain | Weight::Quiet => cell.text.clone(),
                })
                .collect();
            let _ = write!(text, "\n- {}", cells.join(" · "));
        }
        return text;
    };
    let line = |cells: Vec<String>| format!("\n| {} |", cells.join(" | "));
    text.push('\n');
    text.push_str(&line(header.iter().map(|name| escaped(name)).collect()));
    let rule = (0..header.len()).map(|n| match section.align.get(n) {
        Some(Align::Right) => "---:".to_string(),
        Some(Align::Left) | None => "---".to_string(),
    });
    text.push_str(&line(rule.collect()));
    for row in &section.rows {
        text.push_str(&line(row.iter().map(|cell| escaped(&cell.text)).collect()));
    }
    text
}
