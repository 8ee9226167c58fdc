//! Parses the declarations of a system.

use systola_ir::codes::{stencil as codes, syntax};
use systola_ir::mapping::Name;
use systola_ir::{Diagnostic, Scalar};
use systola_surface::tree::{
    Axis, Batch, Const, Data, DataKind, Dim, Expr, ExprKind, Function, Index, Input, InputKind,
    Origin, Output, System, Var, Write,
};

use super::stencil::is_boundary;
use super::{DECLARATIONS, Parsed, Parser};
use crate::text::lexer::Tok;

impl Parser<'_> {
    pub(super) fn system(&mut self) -> Parsed<System> {
        let start = self.span();
        self.advance();
        let name = self.name("the name of the system")?;
        let (params, context) = self.head()?;
        let mut system = System {
            params,
            context,
            ..System::new(name, start)
        };
        self.block(|p| p.declaration(&mut system))?;
        system.origin = self.since(start).into();
        Ok(system)
    }

    fn declaration(&mut self, system: &mut System) -> Parsed<()> {
        match self.word() {
            Some("const") => system.consts.push(self.constant()?),
            Some("input" | "table") => system.inputs.push(self.input()?),
            Some("fn") => system.functions.push(self.function()?),
            Some("batch") => {
                let batch = self.batch()?;
                self.once(
                    "system",
                    system.batch.as_ref().map(|b| b.origin),
                    batch.origin,
                    "batch",
                );
                system.batch = Some(batch);
            }
            Some("index") => {
                let index = self.index()?;
                self.once(
                    "system",
                    system.index.as_ref().map(|i| i.origin),
                    index.origin,
                    "index",
                );
                system.index = Some(index);
            }
            Some("var") => system.vars.push(self.var()?),
            Some("output") => system.outputs.push(self.output()?),
            _ => {
                return self.unknown_statement(
                    &syntax::UNKNOWN_DECLARATION,
                    "system",
                    DECLARATIONS,
                );
            }
        }
        Ok(())
    }

    pub(super) fn once(
        &mut self,
        owner: &str,
        before: Option<impl Into<Origin>>,
        here: impl Into<Origin>,
        what: &str,
    ) {
        if let Some(before) = before {
            let error = Diagnostic::new(
                &syntax::REPEATED,
                here.into().span(),
                format!("a {owner} has one `{what}`, this is the second"),
            );
            self.report(
                error
                    .also(before.into().span(), "the first")
                    .help("join them into one"),
            );
        }
    }

    pub(super) fn constant(&mut self) -> Parsed<Const> {
        let start = self.span();
        self.advance();
        let name = self.name("the name of the constant")?;
        self.expect(Tok::Colon, "`:` and a type")?;
        let ty = self.scalar_or_tuple()?;
        self.expect(Tok::Assign, "`=` and a literal")?;
        let value = self.literal()?;
        self.end_statement()?;
        Ok(Const {
            name,
            ty,
            value,
            origin: self.since(start).into(),
        })
    }

    /// A number or a truth value, optionally with a sign; no expression.
    pub(super) fn literal(&mut self) -> Parsed<Expr> {
        let start = self.span();
        let negative = self.eat(Tok::Minus);
        let span = self.span();
        let kind = match (self.peek(), self.word()) {
            (Tok::Number, _) => {
                self.advance();
                self.number(span, negative)?
            }
            (_, Some("true")) if !negative => {
                self.advance();
                ExprKind::Bool(true)
            }
            (_, Some("false")) if !negative => {
                self.advance();
                ExprKind::Bool(false)
            }
            (_, Some(word)) => match super::expr::special_float(word) {
                Some((value, ty)) => {
                    self.advance();
                    ExprKind::Float(if negative { -value } else { value }, ty)
                }
                None => return self.expected("a literal"),
            },
            _ => return self.expected("a literal"),
        };
        Ok(Expr::new(kind, self.since(start)))
    }

    /// The same without a boundary condition: filters are read only inside, and the systems that
    /// read the arrays of programs declare their boundary conditions.
    pub(super) fn plain_input(&mut self) -> Parsed<Input> {
        let input = self.input()?;
        let Some((_, span)) = &input.boundary else {
            return Ok(input);
        };
        let error = Diagnostic::new(
            &codes::UNKNOWN_BOUNDARY,
            *span,
            format!(
                "`{}` cannot have a boundary condition here",
                input.name.text
            ),
        );
        self.fail(error.help(
            "boundary conditions stand where an array is read: at the inputs of systems, stencils and convolutions",
        ))
    }

    /// `input x[C]: f32 else 0;`, `input x[C]: f32 clamp;` or `table t[4, 4]: i32 = [[…], …];`.
    pub(super) fn input(&mut self) -> Parsed<Input> {
        let start = self.span();
        let is_table = self.at_word("table");
        self.advance();
        let name = self.name("the name of the array")?;
        if self.peek() == Tok::Word && self.peek_at(1) == Tok::LBracket {
            return self.type_before_name(&name);
        }
        let axes = self.axes()?;
        self.expect(Tok::Colon, "`:` and the type of the elements")?;
        let ty = self.scalar_or_tuple()?;
        let mut outside = None;
        let mut boundary = None;
        let mut data = None;
        loop {
            let open = outside.is_none() && boundary.is_none();
            if open && self.eat_word("else") {
                outside = Some(self.literal()?);
            } else if open && !is_table && self.word().is_some_and(is_boundary) {
                let at = self.span();
                boundary = Some((self.boundary()?, at));
            } else if is_table && data.is_none() && self.eat(Tok::Assign) {
                data = Some(self.data()?);
            } else {
                break;
            }
        }
        if !is_table && self.peek() == Tok::Assign {
            let error = Diagnostic::new(
                &syntax::UNEXPECTED_TOKEN,
                self.span(),
                format!("the contents of the input `{}` come at run time", name.text),
            );
            return self.fail(error.help("declare it as a `table` to write them down"));
        }
        self.end_statement()?;
        Ok(Input {
            name,
            ty,
            axes,
            outside,
            boundary,
            kind: if is_table {
                InputKind::Table(data)
            } else {
                InputKind::Array
            },
            origin: self.since(start).into(),
        })
    }

    fn data(&mut self) -> Parsed<Data> {
        let start = self.span();
        let kind = if self.eat(Tok::LBracket) {
            DataKind::Row(self.nested(|p| p.list(start, Tok::RBracket, "`]`", Self::data))?)
        } else {
            DataKind::Element(self.literal()?)
        };
        Ok(Data {
            kind,
            span: self.since(start),
        })
    }

    pub(super) fn axes(&mut self) -> Parsed<Vec<Axis>> {
        let open = self.expect(Tok::LBracket, "`[` and the sizes of its axes")?;
        self.list(open, Tok::RBracket, "`]`", |p| {
            let first = p.expr()?;
            Ok(if p.eat(Tok::DotDot) {
                Axis {
                    lo: Some(first),
                    hi: p.expr()?,
                }
            } else {
                Axis {
                    lo: None,
                    hi: first,
                }
            })
        })
    }

    /// `fn f(a: f32, b: f32) -> f32 associative = body;`.
    pub(super) fn function(&mut self) -> Parsed<Function> {
        let start = self.span();
        self.advance();
        let name = self.name("the name of the function")?;
        let open = self.expect(Tok::LParen, "`(`")?;
        let params = self.list(open, Tok::RParen, "`)`", |p| {
            let name = p.name("a parameter")?;
            p.expect(Tok::Colon, "`:` and a type")?;
            Ok((name, p.scalar_or_tuple()?))
        })?;
        self.expect(Tok::Arrow, "`->` and the type of the result")?;
        let result = self.scalar_or_tuple()?;
        let law = self.law();
        self.expect(Tok::Assign, "`=` and the value")?;
        let body = self.body()?;
        self.end_statement()?;
        Ok(Function {
            name,
            params,
            result,
            law,
            body,
            origin: self.since(start).into(),
        })
    }

    /// `batch n in 0..B shared(w);`.
    pub(super) fn batch(&mut self) -> Parsed<Batch> {
        let start = self.span();
        self.advance();
        let name = self.name("the name of the batch index")?;
        self.expect_word("in")?;
        let range = self.range()?;
        let shared = if self.eat_word("shared") {
            let open = self.expect(Tok::LParen, "`(` and the shared inputs")?;
            self.list(open, Tok::RParen, "`)`", |p| p.name("an input"))?
        } else {
            Vec::new()
        };
        self.end_statement()?;
        Ok(Batch {
            name,
            range,
            shared,
            origin: self.since(start).into(),
        })
    }

    /// `index i in 0..N, j where i <= j;`.
    fn index(&mut self) -> Parsed<Index> {
        let start = self.span();
        self.advance();
        let mut dims = Vec::new();
        loop {
            dims.push(self.iterator()?);
            if !self.eat(Tok::Comma) {
                break;
            }
        }
        let domain = if self.eat_word("where") {
            self.conditions()?
        } else {
            Vec::new()
        };
        self.end_statement()?;
        Ok(Index {
            dims,
            domain,
            origin: self.since(start).into(),
        })
    }

    /// `i in 0..N`, or `i`.
    fn iterator(&mut self) -> Parsed<Dim> {
        let name = self.name("an iterator")?;
        let range = self.range_after(&name)?;
        let span = self.since(name.span);
        Ok(Dim { name, range, span })
    }

    /// `var Z: f32 reorderable on q >= 1 = body;`, `var F(i in 0..N, j): f32 on j < i = body;`.
    fn var(&mut self) -> Parsed<Var> {
        let start = self.span();
        self.advance();
        let name = self.name("the name of the variable")?;
        let open = self.span();
        let own = match self.eat(Tok::LParen) {
            true => Some(self.list(open, Tok::RParen, "`)`", Self::iterator)?),
            false => None,
        };
        if self.peek() == Tok::Assign {
            let error = Diagnostic::new(
                &syntax::UNEXPECTED_TOKEN,
                self.span(),
                format!("expected `:` and the type of `{}`, found `=`", name.text),
            );
            return self.fail(error.help(format!("write `var {}: f32 = …`", name.text)));
        }
        self.expect(Tok::Colon, "`:` and the type of the variable")?;
        let ty = self.scalar_or_tuple()?;
        let law = self.law();
        let mut on = Vec::new();
        if self.eat_word("on") {
            on.push(self.expr()?);
            while self.eat(Tok::Comma) {
                on.push(self.expr()?);
            }
        }
        self.expect(Tok::Assign, "`=` and the equation")?;
        let body = self.body()?;
        if self.peek() == Tok::Assign {
            return self.assign_in_condition();
        }
        self.end_statement()?;
        Ok(Var {
            name,
            own,
            ty,
            law,
            on,
            body,
            origin: self.since(start).into(),
        })
    }

    /// `output z[C]: f32 = Z at [c] when q == Q-1, … else 0;`.
    fn output(&mut self) -> Parsed<Output> {
        let start = self.span();
        self.advance();
        let name = self.name("the name of the output")?;
        let axes = self.axes()?;
        self.expect(Tok::Colon, "`:` and the type of the elements")?;
        let ty = self.scalar_or_tuple()?;
        self.expect(Tok::Assign, "`=` and what is written")?;
        let mut writes = vec![self.write()?];
        while self.eat(Tok::Comma) {
            writes.push(self.write()?);
        }
        let fill = if self.eat_word("else") {
            Some(self.literal()?)
        } else {
            None
        };
        self.end_statement()?;
        Ok(Output {
            name,
            ty,
            axes,
            writes,
            fill,
            origin: self.since(start).into(),
        })
    }

    /// `float x[N]`: the order of C.
    fn type_before_name<T>(&mut self, first: &Name) -> Parsed<T> {
        let name = self.word().unwrap_or_default();
        self.advance();
        let start = self.span();
        self.axes()?;
        let axes = self.text(self.since(start));
        let ty = if Scalar::from_name(&first.text).is_some() {
            first.text.as_str()
        } else {
            "f32"
        };
        let error = Diagnostic::new(
            &syntax::UNEXPECTED_TOKEN,
            first.span,
            format!(
                "the type of `{name}` comes after its axes, found `{}`",
                first.text
            ),
        );
        self.fail(error.help(format!("write `{name}{axes}: {ty};`")))
    }

    fn write(&mut self) -> Parsed<Write> {
        let start = self.span();
        let value = self.body()?;
        if !self.eat_word("at") {
            let (found, value) = (self.found(), self.text(self.since(start)));
            let shown = if value.len() <= 40 { value } else { "…" };
            let error = Diagnostic::new(
                &syntax::UNEXPECTED_TOKEN,
                self.span(),
                format!("expected `at` and the element that is written, found {found}"),
            );
            return self.fail(error.help(format!(
                "say which element each point writes, such as `{shown} at [i]`"
            )));
        }
        let open = self.expect(Tok::LBracket, "the index in brackets, such as `[i]`")?;
        let index = self.list(open, Tok::RBracket, "`]`", Self::expr)?;
        let index_span = self.since(open);
        let when = if self.eat_word("when") {
            Some(self.condition()?)
        } else {
            None
        };
        Ok(Write {
            value,
            index,
            index_span,
            when,
            span: self.since(start),
        })
    }
}
