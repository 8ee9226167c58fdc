//! A recursive-descent parser with error recovery: after an error it skips the statement and
//! continues.
//!
//! Every loop consumes a token or ends, and [`MAX_RECURSION`] limits the recursion, so any input is
//! parsed in linear time with bounded stack.

use systola_ir::codes::{Code, syntax};
use systola_ir::mapping::{Mapping, Name};
use systola_ir::system::Law;
use systola_ir::{Diagnostic, Scalar, Span, Type};
use systola_surface::suggest::suggest;
use systola_surface::tree;
use systola_surface::words::is_reserved;

use super::lexer::{Tok, Token, tokenize};

mod expr;
mod mapping;
mod number;
mod program;
mod stencil;
mod system;

/// The maximum length of a source.
const MAX_SOURCE: usize = 16 << 20;
/// The maximum number of errors, and of hints.
const MAX_ERRORS: usize = 64;
/// The maximum depth of recursion: two calls for each level that [`tree::MAX_NESTING`] allows, one
/// for its parentheses and one for its operator, and some for redundant parentheses. A sum counts
/// twice, since it needs twice the stack.
const MAX_RECURSION: u32 = 400;
/// The maximum number of scalars in a tuple.
const MAX_TUPLE: usize = 64;

/// An error that is already recorded. Parsing of the current statement cannot continue.
#[derive(Debug)]
struct Abort;

type Parsed<T> = Result<T, Abort>;

/// Keywords that start a declaration, and so end the previous statement.
const DECLARATIONS: &[&str] = &[
    "const", "input", "table", "fn", "batch", "index", "var", "output",
];

/// Words of other languages for a statement, and the word here.
const MEANT: &[(&str, &str)] = &[
    ("thread", "lane"),
    ("threads", "lane"),
    ("pe", "lane"),
    ("place", "lane"),
    ("processor", "lane"),
    ("vectorize", "lane"),
    ("grid", "block"),
    ("parallel", "block"),
    ("schedule", "time"),
    ("step", "time"),
    ("register", "reg"),
    ("split", "tile"),
    ("let", "var"),
    ("for", "index"),
    ("iterator", "index"),
    ("array", "input"),
    ("return", "output"),
    ("def", "fn"),
    ("func", "fn"),
];

const ITEMS: &[&str] = &["system", "mapping", "program"];

/// Words that start an item only before a name and a parenthesis; elsewhere they are names.
const NAMED_ITEMS: &[&str] = &["stencil", "conv"];

struct Parser<'s> {
    source: &'s str,
    tokens: Vec<Token>,
    position: usize,
    recursion: u32,
    errors: Vec<Diagnostic>,
    hints: Vec<Diagnostic>,
}

pub fn parse_file(source: &str) -> Result<tree::Module, Vec<Diagnostic>> {
    let mut parser = Parser::new(source)?;
    let file = parser.file();
    parser.finish(file)
}

/// Parses a file; a text with mistakes has a tree too.
pub fn parse_tree(source: &str) -> (tree::Module, Vec<Diagnostic>) {
    match Parser::new(source) {
        Ok(mut parser) => (parser.file(), parser.into_sorted_errors()),
        Err(errors) => (tree::Module::default(), errors),
    }
}

pub fn parse_single_mapping(source: &str) -> Result<Mapping, Vec<Diagnostic>> {
    let mut parser = Parser::new(source)?;
    let mapping = if parser.at_word("mapping") {
        let mapping = parser.mapping();
        if mapping.is_ok() && parser.peek() != Tok::Eof {
            let _: Parsed<()> = parser.expected("the end: one mapping and nothing else");
        }
        mapping
    } else {
        parser.expected("`mapping`")
    };
    match mapping {
        Ok(item) => parser.finish(item.mapping),
        Err(Abort) => Err(parser.into_sorted_errors()),
    }
}

impl<'s> Parser<'s> {
    fn new(source: &'s str) -> Result<Self, Vec<Diagnostic>> {
        if source.len() > MAX_SOURCE {
            let error = Diagnostic::new(
                &syntax::SOURCE_TOO_LONG,
                Span::new(0, 0),
                format!(
                    "the source has {} bytes; at most {MAX_SOURCE} are read",
                    source.len()
                ),
            );
            return Err(vec![error.help("give large tables at run time")]);
        }
        let (tokens, mut errors) = tokenize(source);
        errors.truncate(MAX_ERRORS);
        Ok(Parser {
            source,
            tokens,
            position: 0,
            recursion: 0,
            errors,
            hints: Vec::new(),
        })
    }

    fn finish<T>(self, value: T) -> Result<T, Vec<Diagnostic>> {
        if self.errors.is_empty() {
            Ok(value)
        } else {
            Err(self.into_sorted_errors())
        }
    }

    /// The errors in source order. Errors on the same line as an invalid character are omitted,
    /// since they are consequences of it.
    fn into_sorted_errors(self) -> Vec<Diagnostic> {
        let line = |error: &Diagnostic| {
            let before = self.source.get(..error.span().start as usize);
            before.and_then(|text| text.rfind('\n'))
        };
        let is_character = |error: &Diagnostic| *error.code == syntax::UNEXPECTED_CHARACTER;
        let characters: Vec<_> = self
            .errors
            .iter()
            .filter(|e| is_character(e))
            .map(line)
            .collect();
        let mut errors = self.errors;
        errors.retain(|e| is_character(e) || !characters.contains(&line(e)));
        errors.sort_by_key(|e| e.span().start);
        errors
    }

    fn file(&mut self) -> tree::Module {
        let mut file = tree::Module::default();
        while self.peek() != Tok::Eof {
            let start = self.position;
            let item = match self.word() {
                Some("system") => self.system().map(|s| file.systems.push(s)),
                Some("mapping") => self.mapping().map(|m| file.mappings.push(m)),
                Some("program") => self.program().map(|p| file.programs.push(p)),
                Some("stencil") => self.stencil().map(|s| file.stencils.push(s)),
                Some("conv") => self.conv().map(|c| file.convs.push(c)),
                _ => self.unknown_item(),
            };
            if item.is_err() {
                if self.position == start {
                    self.advance();
                }
                self.skip_to_item();
            }
        }
        self.hints.truncate(MAX_ERRORS);
        file.hints = std::mem::take(&mut self.hints);
        file
    }

    fn unknown_item(&mut self) -> Parsed<()> {
        let near = self
            .word()
            .and_then(|w| suggest(w, ITEMS.iter().chain(NAMED_ITEMS).copied()));
        let found = self.found();
        let error = Diagnostic::new(
            &syntax::UNKNOWN_DECLARATION,
            self.span(),
            format!("expected `system`, `stencil`, `conv`, `mapping` or `program`, found {found}"),
        );
        self.fail(match near {
            Some(near) => error.help(format!("did you mean `{near}`?")),
            None => error.help("equations stand inside of `system name(…) { … }`"),
        })
    }

    fn peek(&self) -> Tok {
        self.peek_at(0)
    }

    fn peek_at(&self, ahead: usize) -> Tok {
        self.tokens
            .get(self.position + ahead)
            .map_or(Tok::Eof, |t| t.kind)
    }

    fn span(&self) -> Span {
        self.tokens
            .get(self.position)
            .or(self.tokens.last())
            .map_or(Span::NONE, |t| t.span)
    }

    /// The position just after the last consumed token.
    fn gap(&self) -> Span {
        let end = self.last_span().end;
        Span { start: end, end }
    }

    fn last_span(&self) -> Span {
        self.position
            .checked_sub(1)
            .and_then(|n| self.tokens.get(n))
            .map_or(Span::NONE, |t| t.span)
    }

    /// The span from `start` to the last consumed token.
    fn since(&self, start: Span) -> Span {
        start.to(self.last_span())
    }

    fn text(&self, span: Span) -> &'s str {
        self.source.get(span.range()).unwrap_or_default()
    }

    fn word(&self) -> Option<&'s str> {
        self.word_at(0)
    }

    fn word_at(&self, ahead: usize) -> Option<&'s str> {
        let token = self.tokens.get(self.position + ahead)?;
        (token.kind == Tok::Word).then(|| self.text(token.span))
    }

    fn at_word(&self, word: &str) -> bool {
        self.word() == Some(word)
    }

    fn advance(&mut self) {
        if self.peek() != Tok::Eof {
            self.position += 1;
        }
    }

    fn eat(&mut self, kind: Tok) -> bool {
        let here = self.peek() == kind;
        if here {
            self.advance();
        }
        here
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let here = self.at_word(word);
        if here {
            self.advance();
        }
        here
    }

    fn expect(&mut self, kind: Tok, what: &str) -> Parsed<Span> {
        let span = self.span();
        if self.eat(kind) {
            Ok(span)
        } else {
            self.expected(what)
        }
    }

    fn expect_word(&mut self, word: &str) -> Parsed<()> {
        if self.eat_word(word) {
            Ok(())
        } else {
            self.expected(&format!("`{word}`"))
        }
    }

    /// Expects the `;` of a statement. If it is missing, the error points just after the statement.
    fn end_statement(&mut self) -> Parsed<()> {
        if self.eat(Tok::Semi) {
            return Ok(());
        }
        let found = self.found();
        let error = Diagnostic::new(
            &syntax::UNEXPECTED_TOKEN,
            self.gap(),
            format!("expected `;` at the end of the statement, found {found}"),
        );
        self.fail(error.help("end the statement with `;`"))
    }

    /// Expects a closing bracket. The error also points at the opening bracket.
    fn close(&mut self, kind: Tok, what: &str, open: Span) -> Parsed<()> {
        if self.eat(kind) {
            return Ok(());
        }
        match self.peek() {
            Tok::Eof => return self.unclosed(open),
            Tok::Assign => return self.assign_in_condition(),
            _ => {}
        }
        let found = self.found();
        let error = Diagnostic::new(
            &syntax::UNEXPECTED_TOKEN,
            self.span(),
            format!("expected `,` or {what}, found {found}"),
        );
        self.fail(
            error
                .also(open, "opened here")
                .help(format!("close it with {what}")),
        )
    }

    fn unclosed<T>(&mut self, open: Span) -> Parsed<T> {
        // The brackets around an unclosed bracket are unclosed too; only one is reported.
        if self
            .errors
            .last()
            .is_some_and(|e| *e.code == syntax::UNCLOSED)
        {
            return Err(Abort);
        }
        let bracket = self.text(open).to_string();
        let end = self.span();
        let error = Diagnostic::new(
            &syntax::UNCLOSED,
            open,
            format!("`{bracket}` is never closed"),
        );
        self.fail(
            error
                .here("opened here")
                .also(end, "the text ends or the next item begins here")
                .help("add the closing bracket"),
        )
    }

    /// A description of the current token for a message.
    fn found(&self) -> String {
        match self.peek() {
            Tok::Eof => "the end of the text".to_string(),
            _ => {
                let text = self.text(self.span());
                match text.char_indices().nth(40) {
                    Some((end, _)) => format!("`{}…`", &text[..end]),
                    None => format!("`{text}`"),
                }
            }
        }
    }

    fn expected<T>(&mut self, what: &str) -> Parsed<T> {
        let found = self.found();
        let error = Diagnostic::new(
            &syntax::UNEXPECTED_TOKEN,
            self.span(),
            format!("expected {what}, found {found}"),
        );
        self.fail(error.help(format!("write {what} here")))
    }

    fn fail<T>(&mut self, error: Diagnostic) -> Parsed<T> {
        self.report(error);
        Err(Abort)
    }

    fn report(&mut self, error: Diagnostic) {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(error);
        }
    }

    /// Enters one more level of recursion, unless the limit is reached.
    fn nested<T>(&mut self, what: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.recursion >= MAX_RECURSION {
            let error = Diagnostic::new(
                &syntax::TOO_LARGE,
                self.span(),
                format!("brackets and operators are nested more than {MAX_RECURSION} deep"),
            );
            return self.fail(error.help("name inner parts with `let`, or give them a variable"));
        }
        self.recursion += 1;
        let result = what(self);
        self.recursion -= 1;
        result
    }

    /// A name in a declaration or a reference.
    fn name(&mut self, what: &str) -> Parsed<Name> {
        match self.word() {
            Some(word) if is_reserved(word) => {
                let error = Diagnostic::new(
                    &syntax::RESERVED_WORD,
                    self.span(),
                    format!("expected {what}, but `{word}` is a reserved word"),
                );
                self.fail(error.help(format!("take another name, such as `{word}_`")))
            }
            Some(word) => {
                let name = Name {
                    text: word.to_string(),
                    span: self.span(),
                };
                self.advance();
                Ok(name)
            }
            None => self.expected(what),
        }
    }

    /// `item, item, …` up to a closing bracket, which is consumed. A trailing comma is allowed.
    fn list<T>(
        &mut self,
        open: Span,
        close: Tok,
        what: &str,
        mut item: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        let mut items = Vec::new();
        while self.peek() != close {
            items.push(item(self)?);
            if !self.eat(Tok::Comma) {
                break;
            }
        }
        self.close(close, what, open)?;
        Ok(items)
    }

    fn scalar_or_tuple(&mut self) -> Parsed<tree::DeclaredType> {
        let start = self.span();
        let ty = self.ty()?;
        let span = self.since(start);
        if ty.n_scalars() > MAX_TUPLE {
            let error = Diagnostic::new(
                &syntax::TOO_LARGE,
                span,
                format!(
                    "this tuple has {} scalars; at most {MAX_TUPLE} are carried as one value",
                    ty.n_scalars()
                ),
            );
            return self.fail(error.help("split it into several variables"));
        }
        Ok(tree::DeclaredType { ty, span })
    }

    fn ty(&mut self) -> Parsed<Type> {
        if self.peek() == Tok::LParen {
            let open = self.span();
            self.advance();
            let parts = self.nested(|p| p.list(open, Tok::RParen, "`)`", Self::ty))?;
            if parts.len() < 2 {
                let span = self.since(open);
                let error = Diagnostic::new(
                    &syntax::UNEXPECTED_TOKEN,
                    span,
                    format!(
                        "a tuple has at least two parts, this one has {}",
                        parts.len()
                    ),
                );
                return self.fail(error.help("write a single type without parentheses"));
            }
            return Ok(Type::Tuple(parts));
        }
        let Some(word) = self.word() else {
            return self.expected("a type, such as `f32` or `(f32, i64)`");
        };
        match Scalar::from_name(word) {
            Some(scalar) => {
                self.advance();
                Ok(Type::Scalar(scalar))
            }
            None => self.unknown_type(word),
        }
    }

    fn unknown_type<T>(&mut self, word: &str) -> Parsed<T> {
        let error = Diagnostic::new(
            &syntax::UNKNOWN_TYPE,
            self.span(),
            format!("there is no type `{word}`"),
        );
        let alias = match word {
            "float" | "single" => Some("f32"),
            "double" | "real" => Some("f64"),
            "half" => Some("f16"),
            "bfloat16" => Some("bf16"),
            "int" => Some("i32"),
            "long" => Some("i64"),
            "char" | "byte" => Some("u8"),
            "boolean" => Some("bool"),
            _ => suggest(word, Scalar::ALL.iter().map(|s| s.name())),
        };
        self.fail(match alias {
            Some(name) => error.help(format!("did you mean `{name}`?")),
            None => error.help(
                "types are bool, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64 and tuples of them",
            ),
        })
    }

    fn law(&mut self) -> Law {
        if self.eat_word("reorderable") {
            Law::Reorderable
        } else if self.eat_word("associative") {
            Law::Associative
        } else {
            Law::Fixed
        }
    }

    /// `{ statement … }`. Calls `statement` for each statement, and recovers from its errors.
    fn block(&mut self, mut statement: impl FnMut(&mut Self) -> Parsed<()>) -> Parsed<()> {
        let open = self.expect(Tok::LBrace, "`{`")?;
        loop {
            match self.peek() {
                Tok::RBrace => {
                    self.advance();
                    return Ok(());
                }
                Tok::Eof => return self.unclosed(open),
                _ if self.at_item() => {
                    return self.unclosed(open);
                }
                _ => {}
            }
            let start = self.position;
            if statement(self).is_err() {
                self.skip_statement(start);
            }
        }
    }

    /// Skips the rest of a statement that began at token `start`: past its `;`, or up to the `}` of
    /// the block or a keyword that starts a declaration.
    fn skip_statement(&mut self, start: usize) {
        if self.position == start {
            self.advance();
        }
        // Without a `;`, the statement may have ended at the token that caused the error.
        let mut depth = 0usize;
        loop {
            match self.peek() {
                Tok::Eof => return,
                Tok::Semi if depth == 0 => {
                    self.advance();
                    return;
                }
                Tok::LBrace => depth += 1,
                Tok::RBrace if depth == 0 => return,
                Tok::RBrace => depth -= 1,
                Tok::Word
                    if self.at_item() || self.word().is_some_and(|w| DECLARATIONS.contains(&w)) =>
                {
                    return;
                }
                _ => {}
            }
            self.advance();
        }
    }

    fn skip_to_item(&mut self) {
        while self.peek() != Tok::Eof && !self.at_item() {
            self.advance();
        }
    }

    /// Whether an item starts here.
    fn at_item(&self) -> bool {
        match self.word() {
            Some(word) if ITEMS.contains(&word) => true,
            Some(word) if NAMED_ITEMS.contains(&word) => {
                self.peek_at(1) == Tok::Word && self.peek_at(2) == Tok::LParen
            }
            _ => false,
        }
    }

    fn unknown_statement(
        &mut self,
        code: &'static Code,
        place: &str,
        known: &[&str],
    ) -> Parsed<()> {
        let found = self.found();
        let near = self.word().and_then(|w| {
            let meant = MEANT.iter().find(|(word, _)| w.eq_ignore_ascii_case(word));
            let meant = meant
                .map(|(_, meant)| *meant)
                .filter(|meant| known.contains(meant));
            meant.or_else(|| suggest(w, known.iter().copied()))
        });
        let error = Diagnostic::new(
            code,
            self.span(),
            format!("{found} does not begin a statement of a {place}"),
        );
        self.fail(match near {
            Some(near) => error.help(format!("did you mean `{near}`?")),
            None => error.help(format!("a {place} has {}", known.join(", "))),
        })
    }

    /// `(name, name)` and `where cond, cond`, in the head of a system or a program.
    fn head(&mut self) -> Parsed<(Vec<Name>, Vec<tree::Expr>)> {
        let open = self.expect(Tok::LParen, "`(` and the parameters")?;
        let params = self.list(open, Tok::RParen, "`)`", |p| p.name("a parameter"))?;
        let context = if self.eat_word("where") {
            self.conditions()?
        } else {
            Vec::new()
        };
        Ok((params, context))
    }

    fn conditions(&mut self) -> Parsed<Vec<tree::Expr>> {
        let mut list = vec![self.condition()?];
        while self.eat(Tok::Comma) {
            list.push(self.condition()?);
        }
        Ok(list)
    }

    fn condition(&mut self) -> Parsed<tree::Expr> {
        let cond = self.expr()?;
        if self.peek() == Tok::Assign {
            return self.assign_in_condition();
        }
        Ok(cond)
    }

    /// Reports a single `=` in a condition.
    fn assign_in_condition<T>(&mut self) -> Parsed<T> {
        let error = Diagnostic::new(
            &syntax::ASSIGN_IN_CONDITION,
            self.span(),
            "`=` does not compare",
        );
        self.fail(error.help("write `==`"))
    }
}
