//! Where the lines of a unit end, and how far they are indented.

use super::WIDTH;
use super::pieces::Piece;
use super::spacing::Spacing;
use super::structure::{Class, Group, Structure};

/// How much further the continuation of a line is indented.
const CONTINUATION: usize = 4;

pub struct Breaks<'a> {
    structure: &'a Structure,
    /// The indentation of the unit.
    base: usize,
    /// Does a line begin at this token?
    begins: Vec<bool>,
    /// The indentation of the line that each token stands on, as far as lines are known.
    indents: Vec<usize>,
    is_output: bool,
}

impl<'a> Breaks<'a> {
    /// The lines as the author broke them, where that can be done, and where comments break them.
    pub fn new(
        pieces: &[Piece<'_>],
        spacing: &[Spacing],
        structure: &'a Structure,
        base: usize,
    ) -> Self {
        let mut begins = vec![false; pieces.len()];
        for (at, piece) in pieces.iter().enumerate().skip(1) {
            let breakable = |at: usize| structure.tokens[at].class.is_some();
            if !piece.comments.is_empty() || (piece.breaks > 0 && breakable(at)) {
                begins[at] = true;
            } else if piece.breaks > 0 && at > 1 && spacing[at - 1].binary && breakable(at - 1) {
                // Operators begin lines.
                begins[at - 1] = true;
            }
        }
        Breaks {
            structure,
            base,
            begins,
            indents: vec![base; pieces.len()],
            is_output: pieces.first().is_some_and(|p| p.text == "output"),
        }
    }

    /// The line that begins at a token: where it ends, and its indentation. Lines before it have to
    /// be known.
    pub fn line(&mut self, start: usize) -> (usize, usize) {
        let indent = self.indent(start);
        loop {
            let more = self.begins[start + 1..].iter().position(|begins| *begins);
            let end = more.map_or(self.structure.len(), |n| start + 1 + n);
            let fits = indent + self.structure.width(start, end) <= WIDTH;
            if fits || !self.split(start, end, indent) {
                self.indents[start..end].fill(indent);
                return (end, indent);
            }
        }
    }

    /// The indentation of comments on lines of their own before a token.
    pub fn indent_of_comment(&self, at: usize) -> usize {
        let inside = &self.structure.tokens[at];
        match inside.closes {
            true => self.group_indent(inside.group) + CONTINUATION,
            false => self.indent(at),
        }
    }

    fn indent(&self, at: usize) -> usize {
        let inside = &self.structure.tokens[at];
        if at == 0 {
            self.base
        } else if inside.closes {
            self.group_indent(inside.group)
        } else if inside.element != at {
            self.indents[inside.element] + CONTINUATION
        } else if self.continues_chain(at) {
            self.group_indent(inside.group)
        } else {
            self.group_indent(inside.group) + CONTINUATION
        }
    }

    /// The indentation of the line on which a group is opened.
    fn group_indent(&self, group: usize) -> usize {
        match self.structure.groups[group].open {
            Some(open) => self.indents[open],
            None => self.base,
        }
    }

    /// `select`s that are the last argument of one another, each on one line but for that argument,
    /// are a chain of cases, one below the other:
    ///
    /// ```text
    /// select(a, x,
    ///     select(b, y,
    ///     select(c, z,
    ///     w)))
    /// ```
    fn continues_chain(&self, at: usize) -> bool {
        let inside = &self.structure.tokens[at];
        let group = &self.structure.groups[inside.group];
        let Some(word) = group.open.and_then(|open| open.checked_sub(1)) else {
            return false;
        };
        let outer = &self.structure.tokens[word];
        let around = &self.structure.groups[outer.group];
        let one_line = |group: &Group, end: usize| {
            let first = group.open.map_or(0, |open| open + 1);
            !self.begins[first..end].iter().any(|begins| *begins)
        };
        group.select
            && around.select
            && inside.number == 2
            && group.last_element == at
            && around.last_element == word
            && around.close == group.close + 1
            && self.begins[word]
            && one_line(around, word)
            && one_line(group, at)
    }

    /// Breaks the line from `start` up to `end` into two or more; `false` if there is no place.
    fn split(&mut self, start: usize, end: usize, indent: usize) -> bool {
        let places: Vec<usize> = (start + 1..end)
            .filter(|at| self.class(*at).is_some_and(|c| c < Class::Close))
            .collect();
        let natural = |at: &usize| self.class(*at).is_some_and(|c| !c.is_last_resort());
        let mut outermost = self.outermost(places.iter().copied().filter(natural).collect());
        if outermost.is_empty() {
            outermost = self.outermost(places);
        }
        if let Some(n) = outermost
            .iter()
            .position(|at| self.class(*at) == Some(Class::Assign))
        {
            let at = outermost[n];
            let rest = &outermost[n + 1..];
            let below = self.base + CONTINUATION + self.structure.width(at, end);
            if below <= WIDTH || !rest.is_empty() {
                self.begins[at] = true;
                let parts = |at: &&usize| match self.class(**at) {
                    Some(Class::Let) => true,
                    Some(Class::Comma) => self.is_output,
                    _ => false,
                };
                let parts: Vec<usize> = rest.iter().filter(parts).copied().collect();
                self.all(&parts);
                return true;
            }
            // The value of the statement is one call: its arguments are what is long.
            let inner = (at + 1..end).filter(natural).collect();
            let inner = self.outermost(inner);
            if !inner.is_empty() {
                outermost = inner;
            }
        }
        let Some(class) = outermost.iter().filter_map(|at| self.class(*at)).min() else {
            return false;
        };
        outermost.retain(|at| self.class(*at) == Some(class));
        let same = self.widest(&outermost, class);
        let group = &self.structure.groups[self.structure.tokens[same[0]].group];
        match class {
            Class::Let | Class::When | Class::Where | Class::Else | Class::At => self.all(&same),
            Class::Comma if group.select => {
                // The last case goes below the others where that is enough.
                let last = same[same.len() - 1];
                let below = self.indent_below(last, start, indent);
                let fits = |indent, from, to| indent + self.structure.width(from, to) <= WIDTH;
                match fits(indent, start, last) && fits(below, last, end) {
                    true => self.begins[last] = true,
                    false => self.all(&same),
                }
            }
            Class::Comma if group.rows => {
                if let Some(open) = group.open.filter(|open| *open >= start) {
                    self.begins[open + 1] = true;
                }
                self.all(&same);
            }
            _ => self.fill(&same, start, end, indent),
        }
        true
    }

    fn class(&self, at: usize) -> Option<Class> {
        self.structure.tokens[at].class
    }

    /// Those of the places that the fewest brackets are around.
    fn outermost(&self, mut places: Vec<usize>) -> Vec<usize> {
        let depth = |at: &usize| self.structure.tokens[*at].depth;
        let least = places.iter().map(depth).min();
        places.retain(|at| Some(depth(at)) == least);
        places
    }

    /// Of the places of one class, those of the group, or for operators of the element, that is the
    /// widest.
    fn widest(&self, places: &[usize], class: Class) -> Vec<usize> {
        let owner = |at: usize| {
            let inside = &self.structure.tokens[at];
            match class {
                Class::Comma | Class::Let => (inside.group, 0),
                _ => (inside.group, inside.element),
            }
        };
        let mut owners: Vec<(usize, Vec<usize>)> = Vec::new();
        for at in places {
            match owners.last_mut() {
                Some((_, list)) if list.first().is_some_and(|n| owner(*n) == owner(*at)) => {
                    list.push(*at);
                }
                _ => {
                    let group = &self.structure.groups[self.structure.tokens[*at].group];
                    let from = group.open.unwrap_or(0);
                    owners.push((self.structure.width(from, group.close), vec![*at]));
                }
            }
        }
        let widest = owners.into_iter().max_by_key(|(width, _)| *width);
        widest.map(|(_, list)| list).unwrap_or_default()
    }

    fn all(&mut self, places: &[usize]) {
        for at in places {
            self.begins[*at] = true;
        }
    }

    /// Puts as much on each line as it holds.
    fn fill(&mut self, places: &[usize], start: usize, end: usize, indent: usize) {
        let (mut from, mut indent_here) = (start, indent);
        for (n, at) in places.iter().enumerate() {
            let until = places.get(n + 1).copied().unwrap_or(end);
            if indent_here + self.structure.width(from, until) > WIDTH {
                self.begins[*at] = true;
                from = *at;
                indent_here = self.indent_below(*at, start, indent);
            }
        }
    }

    /// The indentation of a line that is to begin at a token of the line from `start`.
    fn indent_below(&self, at: usize, start: usize, indent: usize) -> usize {
        let inside = &self.structure.tokens[at];
        let on = match inside.element == at {
            true => self.structure.groups[inside.group].open,
            false => Some(inside.element),
        };
        let base = match on {
            Some(on) if on >= start => indent,
            Some(on) => self.indents[on],
            None => self.base,
        };
        base + CONTINUATION
    }
}
