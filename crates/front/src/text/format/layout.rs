//! Lays out the units of a file as lines.

use super::lines::Line;
use super::pieces::{Comment, Piece, Place};
use super::spacing::{Spacing, spacing};
use super::structure::Structure;
use super::units::{Unit, UnitKind, units};
use super::wrap::Breaks;

/// The indentation of a block.
const BLOCK: usize = 2;

pub fn lines(pieces: &[Piece<'_>]) -> Vec<Line> {
    let mut out = Out { lines: Vec::new() };
    let units = units(pieces);
    for (n, unit) in units.iter().enumerate() {
        let item = unit.level == 0 && unit.kind != UnitKind::Close && n > 0;
        let tall = |unit: &Unit| unit.kind != UnitKind::Block;
        let apart = item && (tall(unit) || units[..n].last().is_some_and(tall));
        out.unit(pieces, unit, apart);
    }
    if let Some(end) = pieces.last() {
        out.comments(&end.comments, 0, true, false);
    }
    out.lines
}

struct Out {
    lines: Vec<Line>,
}

impl Out {
    /// The lines of a unit; `apart` wants a blank line before it.
    fn unit(&mut self, pieces: &[Piece<'_>], unit: &Unit, apart: bool) {
        let spacing = spacing(pieces, &unit.tokens, unit.in_mapping);
        let structure = Structure::new(pieces, &spacing, unit);
        let own = &pieces[unit.tokens.clone()];
        let indent = BLOCK * unit.level;
        let mut breaks = Breaks::new(own, &spacing, &structure, indent);
        let mut start = 0;
        while start < own.len() {
            let (end, indent) = breaks.line(start);
            let piece = &own[start];
            let around = match (start, unit.kind) {
                (0, UnitKind::Close) => indent + BLOCK,
                (0, _) => indent,
                _ => breaks.indent_of_comment(start),
            };
            self.comments(&piece.comments, around, start == 0, apart && start == 0);
            let alone = piece.comments.iter().any(|c| c.place == Place::Alone);
            let blank = piece.breaks > 1 || (apart && start == 0 && !alone);
            let closes = start == 0 && unit.kind == UnitKind::Close;
            self.lines.push(Line {
                blank_before: blank && !closes && self.blank_fits(),
                indent,
                code: code(&own[start..end], &spacing[start..end]),
                comment: None,
                below: false,
            });
            start = end;
        }
    }

    /// Comments before a token. Inside of a unit none continues the one above.
    fn comments(&mut self, comments: &[Comment<'_>], indent: usize, first: bool, apart: bool) {
        let mut apart = apart;
        for comment in comments {
            let text = comment.text.to_string();
            match (comment.place, self.lines.last_mut()) {
                (Place::Behind, Some(line)) => line.comment = Some(text),
                (Place::Below, Some(above)) if first => {
                    let indent = above.indent;
                    self.lines.push(Line {
                        indent,
                        comment: Some(text),
                        below: true,
                        ..Line::default()
                    });
                }
                _ => {
                    let blank_before = (comment.blank_before || apart) && self.blank_fits();
                    apart = false;
                    self.lines.push(Line {
                        blank_before,
                        indent,
                        comment: Some(text),
                        ..Line::default()
                    });
                }
            }
        }
    }

    /// No blank line begins the text or a block.
    fn blank_fits(&self) -> bool {
        self.lines.last().is_some_and(|line| !line.opens_block())
    }
}

fn code(pieces: &[Piece<'_>], spacing: &[Spacing]) -> String {
    let mut code = String::new();
    for (n, (piece, spacing)) in pieces.iter().zip(spacing).enumerate() {
        if n > 0 && spacing.space {
            code.push(' ');
        }
        code.push_str(piece.text);
    }
    code
}
