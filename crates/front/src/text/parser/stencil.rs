//! Parses stencils and convolutions.

use systola_ir::codes::{hints, stencil as codes, syntax};
use systola_ir::{BinOp, Diagnostic};
use systola_surface::suggest::suggest;
use systola_surface::tree::{Boundary, Conv, Equation, ExprKind, Input, Shape, ShapeKind, Stencil};

use super::{Parsed, Parser};
use crate::text::lexer::Tok;

const STENCIL: &[&str] = &[
    "field", "steps", "u = …", "var", "input", "table", "const", "fn", "index", "batch", "output",
];
const CONV: &[&str] = &["input", "filter", "stride", "dilation", "batch"];

/// Keywords for boundary conditions in other tools, with ours.
const OTHERS: [(&str, &str); 10] = [
    ("nearest", "clamp"),
    ("edge", "clamp"),
    ("replicate", "clamp"),
    ("periodic", "wrap"),
    ("circular", "wrap"),
    ("zero", "constant 0"),
    ("zeros", "constant 0"),
    ("symmetric", "reflect"),
    ("valid", "interior"),
    ("dirichlet", "fixed"),
];

/// The former keyword for `fixed`.
const OLD_FIXED: &str = "held";

/// Whether a word is a keyword for a boundary condition, here or in another tool.
pub(super) fn is_boundary(word: &str) -> bool {
    Boundary::WORDS.contains(&word)
        || word == OLD_FIXED
        || OTHERS.iter().any(|(other, _)| *other == word)
}

impl Parser<'_> {
    pub(super) fn stencil(&mut self) -> Parsed<Stencil> {
        let start = self.span();
        self.advance();
        let name = self.name("the name of the stencil")?;
        let (params, context) = self.head()?;
        let mut stencil = Stencil {
            params,
            context,
            ..Stencil::new(name, start)
        };
        self.block(|p| p.stencil_statement(&mut stencil))?;
        stencil.origin = self.since(start).into();
        Ok(stencil)
    }

    fn stencil_statement(&mut self, stencil: &mut Stencil) -> Parsed<()> {
        let start = self.span();
        match self.word() {
            Some(_) if self.peek_at(1) == Tok::Assign => {
                let name = self.name("a field")?;
                self.advance();
                let body = self.body()?;
                self.end_statement()?;
                stencil.equations.push(Equation {
                    name,
                    between: None,
                    body,
                    origin: self.since(start).into(),
                });
            }
            Some("field") => stencil.fields.push(self.field()?),
            Some("steps") => {
                self.advance();
                let steps = self.expr()?;
                self.end_statement()?;
                let span = self.since(start);
                self.once(
                    "stencil",
                    stencil.steps.as_ref().map(|(_, s)| *s),
                    span,
                    "steps",
                );
                stencil.steps = Some((steps, span));
            }
            Some("var") => {
                self.advance();
                let name = self.name("the name of the variable")?;
                self.expect(Tok::Colon, "`:` and the type of the variable")?;
                let ty = self.scalar_or_tuple()?;
                let boundary = self.boundary()?;
                self.expect(Tok::Assign, "`=` and the equation")?;
                let body = self.body()?;
                self.end_statement()?;
                stencil.equations.push(Equation {
                    name,
                    between: Some((ty, boundary)),
                    body,
                    origin: self.since(start).into(),
                });
            }
            Some("input" | "table") => stencil.inputs.push(self.input()?),
            Some("const") => stencil.consts.push(self.constant()?),
            Some("fn") => stencil.functions.push(self.function()?),
            Some("index") => {
                self.advance();
                let mut names = vec![self.name("the name of an axis")?];
                while self.eat(Tok::Comma) {
                    names.push(self.name("the name of an axis")?);
                }
                self.end_statement()?;
                let span = self.since(start);
                self.once(
                    "stencil",
                    stencil.index.as_ref().map(|(_, s)| *s),
                    span,
                    "index",
                );
                stencil.index = Some((names, span));
            }
            Some("batch") => {
                let batch = self.batch()?;
                self.once(
                    "stencil",
                    stencil.batch.as_ref().map(|b| b.origin),
                    batch.origin,
                    "batch",
                );
                stencil.batch = Some(batch);
            }
            Some("output") => {
                self.advance();
                let name = self.name("the name of the output")?;
                self.expect(Tok::Assign, "`=` and a field")?;
                let what = self.name("a field or a variable")?;
                self.end_statement()?;
                stencil.outputs.push((name, what));
            }
            _ => {
                return self.unknown_statement(&syntax::UNKNOWN_DECLARATION, "stencil", STENCIL);
            }
        }
        Ok(())
    }

    pub(super) fn conv(&mut self) -> Parsed<Conv> {
        let start = self.span();
        self.advance();
        let name = self.name("the name of the convolution")?;
        let (params, context) = self.head()?;
        let mut conv = Conv {
            params,
            context,
            ..Conv::new(name, start)
        };
        self.block(|p| p.conv_statement(&mut conv))?;
        conv.origin = self.since(start).into();
        Ok(conv)
    }

    fn conv_statement(&mut self, conv: &mut Conv) -> Parsed<()> {
        let start = self.span();
        match self.word() {
            Some("input") => {
                let input = self.field()?;
                let before = conv.input.as_ref().map(|(i, _)| i.origin);
                self.once("convolution", before, input.0.origin, "input");
                conv.input = Some(input);
            }
            Some("filter") => {
                let filter = self.plain_input()?;
                let before = conv.filter.as_ref().map(|f| f.origin);
                self.once("convolution", before, filter.origin, "filter");
                conv.filter = Some(filter);
            }
            Some("batch") => {
                let batch = self.batch()?;
                self.once(
                    "convolution",
                    conv.batch.as_ref().map(|b| b.origin),
                    batch.origin,
                    "batch",
                );
                conv.batch = Some(batch);
            }
            Some(word @ ("stride" | "dilation")) => {
                self.advance();
                let mut list = vec![self.expr()?];
                while self.eat(Tok::Comma) {
                    list.push(self.expr()?);
                }
                self.end_statement()?;
                let span = self.since(start);
                let slot = match word {
                    "stride" => &mut conv.stride,
                    _ => &mut conv.dilation,
                };
                let before = slot.as_ref().map(|(_, s)| *s);
                *slot = Some((list, span));
                self.once("convolution", before, span, word);
            }
            _ => {
                return self.unknown_statement(&syntax::UNKNOWN_DECLARATION, "convolution", CONV);
            }
        }
        Ok(())
    }

    /// `field u[N, M]: f32 clamp;`; also the `input` of a convolution.
    fn field(&mut self) -> Parsed<(Input, Boundary)> {
        let start = self.span();
        self.advance();
        let name = self.name("the name of the field")?;
        let axes = self.axes()?;
        self.expect(Tok::Colon, "`:` and the type of the cells")?;
        let ty = self.scalar_or_tuple()?;
        let boundary = self.boundary()?;
        self.end_statement()?;
        Ok((Input::new(name, ty, axes, self.since(start)), boundary))
    }

    /// An optional boundary condition.
    pub(super) fn boundary(&mut self) -> Parsed<Boundary> {
        let Some(word) = self.word() else {
            return Ok(Boundary::Interior);
        };
        let boundary = match word {
            "interior" => Boundary::Interior,
            "fixed" => Boundary::Fixed,
            OLD_FIXED => {
                let said = format!("`{word}` is an old word for `fixed`");
                let hint = Diagnostic::new(&hints::OLD_WORD, self.span(), said);
                self.hints.push(hint.help("write `fixed`"));
                Boundary::Fixed
            }
            "clamp" => Boundary::Clamp,
            "mirror" => Boundary::Mirror,
            "reflect" => Boundary::Reflect,
            "wrap" => Boundary::Wrap,
            "constant" => {
                self.advance();
                return Ok(Boundary::Constant(self.literal()?));
            }
            _ => {
                let error = Diagnostic::new(
                    &codes::UNKNOWN_BOUNDARY,
                    self.span(),
                    format!("there is no boundary condition `{word}`"),
                );
                let other = OTHERS.iter().find(|(other, _)| *other == word);
                let known = other
                    .map(|(_, ours)| *ours)
                    .or_else(|| suggest(word, Boundary::WORDS.iter().copied()));
                return self.fail(match known {
                    Some(known) => error.help(format!("did you mean `{known}`?")),
                    None => error.help(format!("there are {}", Boundary::WORDS.join(", "))),
                });
            }
        };
        self.advance();
        Ok(boundary)
    }

    /// `sum(w * u over box 2)`, if one comes next. The `over` distinguishes it from a call, since
    /// `min` and `max` are functions too.
    pub(super) fn around(&mut self) -> Option<Parsed<ExprKind>> {
        let op = match self.word()? {
            "sum" => BinOp::Add,
            "min" => BinOp::Min,
            "max" => BinOp::Max,
            _ => return None,
        };
        if self.peek_at(1) != Tok::LParen || self.peek_at(2) != Tok::Word {
            return None;
        }
        let weighted = self.peek_at(3) == Tok::Star && self.word_at(5) == Some("over");
        if !weighted && self.word_at(3) != Some("over") {
            return None;
        }
        Some(self.neighbourhood(op, weighted))
    }

    fn neighbourhood(&mut self, op: BinOp, weighted: bool) -> Parsed<ExprKind> {
        self.advance();
        let open = self.span();
        self.advance();
        let weights = if weighted {
            let weights = self.name("an array of weights")?;
            self.advance();
            Some(weights)
        } else {
            None
        };
        let field = self.name("a field")?;
        self.expect_word("over")?;
        let shape = self.nested(Self::shape)?;
        self.close(Tok::RParen, "`)`", open)?;
        Ok(ExprKind::Around(op, weights, field, shape))
    }

    /// `box 2`, `star (1, 2)`, `box 4 except star 4`, `star 2 and box 1`.
    fn shape(&mut self) -> Parsed<Shape> {
        let start = self.span();
        let is_star = match self.word() {
            Some("box") => false,
            Some("star") => true,
            _ => return self.expected("`box` or `star` and a radius"),
        };
        self.advance();
        let radii = if self.peek() == Tok::LParen {
            let open = self.span();
            self.advance();
            self.list(open, Tok::RParen, "`)`", Self::radius)?
        } else {
            vec![self.radius()?]
        };
        let kind = match is_star {
            true => ShapeKind::Star(radii),
            false => ShapeKind::Box(radii),
        };
        let own = Shape {
            kind,
            span: self.since(start),
        };
        let join = match self.word() {
            Some("except") => ShapeKind::Except,
            Some("and") => ShapeKind::And,
            _ => return Ok(own),
        };
        self.advance();
        let rest = self.nested(Self::shape)?;
        Ok(Shape {
            kind: join(Box::new(own), Box::new(rest)),
            span: self.since(start),
        })
    }

    fn radius(&mut self) -> Parsed<i128> {
        let span = self.span();
        if self.peek() != Tok::Number {
            return self.expected("a radius, a number");
        }
        self.advance();
        match self.number(span, false)? {
            ExprKind::Int(n, None) => Ok(n),
            _ => {
                let error = Diagnostic::new(
                    &syntax::MALFORMED_NUMBER,
                    span,
                    "a radius is a whole number of cells",
                );
                self.fail(error.help("write it without a fraction and a type"))
            }
        }
    }
}
