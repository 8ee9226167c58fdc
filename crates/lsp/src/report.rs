//! Diagnostics as editors show them.

use std::fmt::Write;
use std::str::FromStr;

use lsp_types::{
    ClientCapabilities, CodeDescription, DiagnosticRelatedInformation, DiagnosticSeverity,
    Location, NumberOrString, Uri,
};
use systola_ir::Diagnostic;
use systola_ir::diag::{Counterexample, Kind, coordinates};

use crate::document::Placed;
use crate::position::Lines;

/// Where every code is explained.
const CODES: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/errors.md");

/// What the client can take.
#[derive(Clone, Copy, Debug)]
pub struct Reporter {
    related: bool,
    pub nested_symbols: bool,
}

impl Reporter {
    pub fn for_client(client: &ClientCapabilities) -> Reporter {
        let text = client.text_document.as_ref();
        let diagnostics = text.and_then(|t| t.publish_diagnostics.as_ref());
        let symbols = text.and_then(|t| t.document_symbol.as_ref());
        let nested = symbols.and_then(|s| s.hierarchical_document_symbol_support);
        Reporter {
            related: diagnostics.and_then(|d| d.related_information) == Some(true),
            nested_symbols: nested == Some(true),
        }
    }

    pub fn report(
        self,
        placed: &Placed<'_>,
        uri: &Uri,
        text: &str,
        lines: &Lines,
    ) -> lsp_types::Diagnostic {
        let diagnostic = placed.diagnostic;
        let span = match diagnostic.span() {
            span if span.is_none() => placed.otherwise,
            span => span,
        };
        let related: Vec<_> = (diagnostic.labels.iter().skip(1))
            .filter(|(span, _)| !span.is_none())
            .map(|(span, label)| DiagnosticRelatedInformation {
                location: Location {
                    uri: uri.clone(),
                    range: lines.range(text, *span),
                },
                message: match label.as_str() {
                    "" => "here".to_string(),
                    label => label.to_string(),
                },
            })
            .collect();
        lsp_types::Diagnostic {
            range: lines.range(text, span),
            severity: Some(match diagnostic.kind() {
                Kind::Mistake => DiagnosticSeverity::ERROR,
                Kind::Limitation => DiagnosticSeverity::WARNING,
                Kind::Hint => DiagnosticSeverity::HINT,
            }),
            code: Some(NumberOrString::String(diagnostic.code.id.to_string())),
            code_description: code_link(diagnostic.code.id).map(|href| CodeDescription { href }),
            source: Some("systola".to_string()),
            message: message(diagnostic),
            related_information: (self.related && !related.is_empty()).then_some(related),
            tags: None,
            data: None,
        }
    }
}

fn code_link(id: &str) -> Option<Uri> {
    Uri::from_str(&format!("{CODES}#{}", id.to_lowercase())).ok()
}

/// The cause, what is under it, the evidence, and the way out.
fn message(diagnostic: &Diagnostic) -> String {
    let mut message = diagnostic.message.clone();
    if let Some((_, label)) = diagnostic.labels.first().filter(|(_, l)| !l.is_empty()) {
        let _ = write!(message, "\n{label}");
    }
    if let Some(example) = &diagnostic.counterexample {
        let _ = write!(message, "\n{}", counterexample(example));
    }
    for note in &diagnostic.notes {
        let _ = write!(message, "\nnote: {note}");
    }
    if let Some(help) = &diagnostic.help {
        let _ = write!(message, "\nhelp: {help}");
    }
    message
}

/// A line for each point: editors do not show messages in columns.
fn counterexample(example: &Counterexample) -> String {
    let equations = |pairs: Vec<(&String, &i128)>| {
        let pairs: Vec<String> = pairs.iter().map(|(n, v)| format!("{n} = {v}")).collect();
        pairs.join(", ")
    };
    let params = example.params.iter().map(|(name, value)| (name, value));
    let mut text = match example.params.is_empty() {
        true => "counterexample:".to_string(),
        false => format!("counterexample at {}:", equations(params.collect())),
    };
    for mapped in &example.points {
        let point = example.dims.iter().zip(&mapped.point);
        let _ = write!(text, "\n  {}", equations(point.collect()));
        if !mapped.place.is_empty() {
            let _ = write!(text, ", place {}", coordinates(&mapped.place));
        }
        if !mapped.time.is_empty() {
            let _ = write!(text, ", time {}", coordinates(&mapped.time));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use systola_ir::diag::MappedPoint;

    use super::*;

    #[test]
    fn points_are_told_in_words() {
        let point = |point: [i128; 2], place, time| MappedPoint {
            point: point.to_vec(),
            place: vec![place],
            time: vec![time],
        };
        let example = Counterexample {
            params: vec![("C".into(), 16)],
            dims: vec!["c".into(), "q".into()],
            points: vec![point([10, 0], 10, 0), point([9, 1], 10, 0)],
        };
        let expect = "counterexample at C = 16:\n  c = 10, q = 0, place 10, time 0\n  \
                      c = 9, q = 1, place 10, time 0";
        assert_eq!(counterexample(&example), expect);
    }

    #[test]
    fn every_code_has_a_page() {
        for code in systola_ir::codes::all() {
            let link = code_link(code.id).unwrap();
            assert!(
                link.as_str()
                    .ends_with(&format!("#{}", code.id.to_lowercase()))
            );
        }
    }
}
