//! Parses mappings: placements, directives, and the method calls of the paper's Table 1.

use systola_ir::Diagnostic;
use systola_ir::codes::syntax;
use systola_ir::mapping::{
    Check, Direction, Directive, DirectiveKind, Engine, Layout, Mapping, Name, NameExpr, Order,
    PlaceLevel, Residence, Rows, Store, StorePlace, SumStage, TimeLevel, Transfer,
};
use systola_surface::elaborate::mapping::{name_cond, name_expr};
use systola_surface::suggest::suggest;
use systola_surface::tree::{Expr, ExprKind, MappingItem};

use super::{Parsed, Parser};
use crate::text::lexer::Tok;

/// Keywords that start a directive.
const DIRECTIVES: &[&str] = &[
    "node",
    "block",
    "warp",
    "lane",
    "reg",
    "launch",
    "block_step",
    "time",
    "tile",
    "when",
    "space",
    "align",
    "store",
    "forward",
    "read",
    "sum",
    "broadcast",
    "transfer",
    "unroll",
    "check",
    "trust",
    "auto",
    "reverse",
    "flags",
    "look_back",
    "func",
];

/// The primitives of the paper's Table 1.
const METHODS: &[&str] = &[
    "merge_ures",
    "tile",
    "reorder",
    "gpu_blocks",
    "gpu_threads",
    "in",
    "space_time_transform",
];

impl Parser<'_> {
    pub(super) fn mapping(&mut self) -> Parsed<MappingItem> {
        let start = self.span();
        self.advance();
        let name = self.name("the name of the mapping")?;
        self.expect_word("of")?;
        let system = self.name("the system it maps")?;
        let directives = self.directives()?;
        Ok(MappingItem {
            name_span: name.span,
            system_span: system.span,
            mapping: Mapping {
                name: name.text,
                system: system.text,
                directives,
                span: self.since(start),
            },
        })
    }

    fn directives(&mut self) -> Parsed<Vec<Directive>> {
        let mut list = Vec::new();
        self.block(|p| p.directive(&mut list))?;
        Ok(list)
    }

    fn directive(&mut self, list: &mut Vec<Directive>) -> Parsed<()> {
        let start = self.span();
        let Some(word) = self.word() else {
            return self.unknown_statement(&syntax::UNKNOWN_DIRECTIVE, "mapping", DIRECTIVES);
        };
        if self.peek_at(1) == Tok::Dot {
            self.calls(list)?;
            return self.end_statement();
        }
        let place = PlaceLevel::ALL.into_iter().find(|l| l.name() == word);
        let time = TimeLevel::ALL.into_iter().find(|l| l.name() == word);
        if self.peek_at(1) == Tok::Assign {
            let Some(kind) = self.level(place, time)? else {
                return self.unknown_statement(&syntax::UNKNOWN_DIRECTIVE, "mapping", DIRECTIVES);
            };
            list.push(Directive {
                kind,
                span: self.since(start),
            });
            return self.end_statement();
        }
        let kind = match word {
            "when" => {
                self.advance();
                let cond = self.condition()?;
                let cond = name_cond(&cond).or_else(|error| self.fail(*error))?;
                let directives = self.nested(Self::directives)?;
                list.push(Directive {
                    kind: DirectiveKind::When { cond, directives },
                    span: self.since(start),
                });
                // A `;` after the block is allowed.
                self.eat(Tok::Semi);
                return Ok(());
            }
            "tile" => self.tile()?,
            "forward" => {
                self.advance();
                let input = self.name("an input")?;
                self.expect_word("along")?;
                DirectiveKind::Forward {
                    input,
                    along: self.tuple_of_forms()?,
                }
            }
            "space" => {
                self.advance();
                let open = self.expect(Tok::LParen, "`(` and the iterators of the space")?;
                let dims = self.list(open, Tok::RParen, "`)`", |p| p.name("an iterator"))?;
                DirectiveKind::Space { dims }
            }
            "align" => {
                self.advance();
                let var = self.name("a variable")?;
                let open = self.expect(Tok::LParen, "`(` and names for its iterators")?;
                let dims = self.list(open, Tok::RParen, "`)`", |p| p.name("an iterator"))?;
                self.expect(Tok::Arrow, "`->` and the point of the space")?;
                let open =
                    self.expect(Tok::LParen, "`(` and a form for each iterator of the space")?;
                let forms = self.list(open, Tok::RParen, "`)`", Self::form)?;
                DirectiveKind::Align { var, dims, forms }
            }
            "read" => {
                self.advance();
                DirectiveKind::Read {
                    input: self.name("an input")?,
                }
            }
            "sum" => self.sum()?,
            "store" => {
                self.advance();
                let var = self.name("a variable")?;
                let place = if self.eat_word("in") {
                    let array = self.name("an array")?;
                    let open = self.expect(Tok::LBracket, "`[` and an index for each axis")?;
                    let index = self.list(open, Tok::RBracket, "`]`", Self::form)?;
                    StorePlace::In { array, index }
                } else if self.eat_word("modulo") {
                    StorePlace::Modulo(self.tuple_of_forms()?)
                } else {
                    StorePlace::Chosen
                };
                DirectiveKind::Store { var, place }
            }
            "broadcast" => {
                self.advance();
                DirectiveKind::Broadcast {
                    var: self.name("a variable")?,
                }
            }
            "transfer" => self.transfer()?,
            "unroll" => {
                self.advance();
                let name = self.name("an iterator")?;
                let factor = if self.eat_word("by") {
                    Some(self.count()?)
                } else {
                    None
                };
                DirectiveKind::Unroll { name, factor }
            }
            "reverse" => self.reverse()?,
            "flags" => {
                self.advance();
                DirectiveKind::Flags
            }
            "look_back" => {
                self.advance();
                DirectiveKind::LookBack
            }
            "func" => self.func()?,
            _ => match self.check() {
                Some(check) => DirectiveKind::Check(check),
                None => {
                    return self.unknown_statement(
                        &syntax::UNKNOWN_DIRECTIVE,
                        "mapping",
                        DIRECTIVES,
                    );
                }
            },
        };
        list.push(Directive {
            kind,
            span: self.since(start),
        });
        self.end_statement()
    }

    /// `lane = c + q` or `time = (y + u, u)`, if the word is the name of a level.
    fn level(
        &mut self,
        place: Option<PlaceLevel>,
        time: Option<TimeLevel>,
    ) -> Parsed<Option<DirectiveKind>> {
        if place.is_none() && time.is_none() {
            return Ok(None);
        }
        self.advance();
        self.advance();
        let forms = self.tuple_of_forms()?;
        Ok(match (place, time) {
            (Some(level), _) => Some(DirectiveKind::Place { level, forms }),
            (None, Some(level)) => Some(DirectiveKind::Time { level, forms }),
            (None, None) => None,
        })
    }

    /// `form`, `(form, form)`, or `()` for an empty tuple.
    fn tuple_of_forms(&mut self) -> Parsed<Vec<NameExpr>> {
        if self.peek() == Tok::LParen && self.peek_at(1) == Tok::RParen {
            self.advance();
            self.advance();
            return Ok(Vec::new());
        }
        let expr = self.expr()?;
        match &expr.kind {
            ExprKind::Tuple(parts) => parts.iter().map(|part| self.name_expr(part)).collect(),
            _ => Ok(vec![self.name_expr(&expr)?]),
        }
    }

    fn form(&mut self) -> Parsed<NameExpr> {
        let expr = self.expr()?;
        self.name_expr(&expr)
    }

    fn name_expr(&mut self, expr: &Expr) -> Parsed<NameExpr> {
        name_expr(expr).or_else(|error| self.fail(*error))
    }

    /// `tile x by 128 as (bx, xx) overlap (4, 4) periodic`. The overlap may also precede `as`.
    fn tile(&mut self) -> Parsed<DirectiveKind> {
        self.advance();
        let dim = self.name("an iterator")?;
        self.expect_word("by")?;
        let size = self.form()?;
        let early = self.overlap()?;
        self.expect_word("as")?;
        let open = self.expect(Tok::LParen, "`(` and the names of tile and offset")?;
        let outer = self.name("the name of the tile index")?;
        self.expect(Tok::Comma, "`,`")?;
        let inner = self.name("the name of the offset in a tile")?;
        self.close(Tok::RParen, "`)`", open)?;
        let overlap = match early {
            Some(_) => early,
            None => self.overlap()?,
        };
        let periodic = self.eat_word("periodic");
        Ok(DirectiveKind::Tile {
            dim,
            size,
            outer,
            inner,
            overlap,
            periodic,
        })
    }

    /// An optional `overlap (lo, hi)`.
    fn overlap(&mut self) -> Parsed<Option<(NameExpr, NameExpr)>> {
        if !self.eat_word("overlap") {
            return Ok(None);
        }
        let open = self.expect(Tok::LParen, "`(` and two widths")?;
        let lo = self.form()?;
        self.expect(Tok::Comma, "`,` and the width above")?;
        let hi = self.form()?;
        self.close(Tok::RParen, "`)`", open)?;
        Ok(Some((lo, hi)))
    }

    /// `sum Z along (q, -p)`, `sum Z along q`, `sum Z tree` or `sum Z along t then tree jj`.
    fn sum(&mut self) -> Parsed<DirectiveKind> {
        self.advance();
        let var = self.name("a variable")?;
        let mut stages = vec![self.sum_stage()?];
        while self.eat_word("then") {
            stages.push(self.sum_stage()?);
        }
        Ok(DirectiveKind::Sum { var, stages })
    }

    fn sum_stage(&mut self) -> Parsed<SumStage> {
        if self.eat_word("along") {
            return Ok(SumStage::Along(self.one_or_list(Self::directed)?));
        }
        if !self.eat_word("tree") {
            return self.expected("`along` and iterators, or `tree`");
        }
        let ends = self.peek() == Tok::Semi || self.at_word("then");
        Ok(SumStage::Tree(if ends {
            Vec::new()
        } else {
            self.one_or_list(|parser| parser.name("an iterator"))?
        }))
    }

    /// One item, or several in parentheses.
    fn one_or_list<T>(&mut self, item: fn(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let open = self.span();
        if self.eat(Tok::LParen) {
            self.list(open, Tok::RParen, "`)`", item)
        } else {
            Ok(vec![item(self)?])
        }
    }

    fn directed(&mut self) -> Parsed<(Name, Direction)> {
        let direction = if self.eat(Tok::Minus) {
            Direction::Down
        } else {
            Direction::Up
        };
        Ok((self.name("an iterator")?, direction))
    }

    /// `transfer w to shared at bx stages 2 layout pad 1 by cp_async`.
    fn transfer(&mut self) -> Parsed<DirectiveKind> {
        self.advance();
        let source = self.name("an input")?;
        self.expect_word("to")?;
        let store = self.store()?;
        let mut transfer = Transfer {
            source,
            store,
            at: None,
            stages: 1,
            layout: Layout::default(),
            engine: Engine::Plain,
        };
        let mut seen: Vec<&str> = Vec::new();
        loop {
            let clause = match self.word() {
                Some("at") => "at",
                Some("stages") => "stages",
                Some("layout") => "layout",
                Some("by") => "by",
                _ => break,
            };
            if seen.contains(&clause) {
                let error = Diagnostic::new(
                    &syntax::REPEATED,
                    self.span(),
                    format!("`{clause}` is said twice of this transfer"),
                );
                return self.fail(error.help("keep one of them"));
            }
            seen.push(clause);
            self.advance();
            match clause {
                "at" => transfer.at = Some(self.name("a loop or time coordinate")?),
                "stages" => transfer.stages = self.count()?,
                "layout" => transfer.layout = self.layout()?,
                _ => {
                    transfer.engine = match self.word() {
                        Some("cp_async") => Engine::CpAsync,
                        Some("bulk") => Engine::Bulk,
                        Some("plain") => Engine::Plain,
                        _ => return self.expected("`cp_async`, `bulk` or `plain`"),
                    };
                    self.advance();
                }
            }
        }
        Ok(DirectiveKind::Transfer(transfer))
    }

    /// `columns pad 4`, or only one of the two.
    fn layout(&mut self) -> Parsed<Layout> {
        let mut layout = Layout::default();
        if self.word() == Some("columns") {
            self.advance();
            layout.order = Order::Columns;
        }
        layout.rows = match self.word() {
            Some("pad") => {
                self.advance();
                Rows::Pad(self.count()?)
            }
            Some("rotate") => {
                self.advance();
                Rows::Rotate
            }
            Some("plain") => {
                self.advance();
                Rows::Plain
            }
            _ if layout.order == Order::Columns => Rows::Chosen,
            _ => return self.expected("`columns`, `pad N`, `rotate` or `plain`"),
        };
        Ok(layout)
    }

    fn store(&mut self) -> Parsed<Store> {
        let store = match self.word() {
            Some("registers") => Store::Registers,
            Some("shared") => Store::Shared,
            Some("constant") => Store::Constant,
            _ => return self.expected("`registers`, `shared` or `constant`"),
        };
        self.advance();
        Ok(store)
    }

    /// A non-negative number.
    fn count(&mut self) -> Parsed<u64> {
        let span = self.span();
        if self.peek() != Tok::Number {
            return self.expected("a number");
        }
        self.advance();
        match self.number(span, false)? {
            ExprKind::Int(value, None) if u64::try_from(value).is_ok() => Ok(value as u64),
            _ => {
                let text = self.text(span).to_string();
                let error = Diagnostic::new(
                    &syntax::MALFORMED_NUMBER,
                    span,
                    format!("`{text}` is no count"),
                );
                self.fail(error.help("write a plain integer"))
            }
        }
    }

    fn check(&mut self) -> Option<Check> {
        let check = match self.word()? {
            "check" => Check::Check,
            "trust" => Check::Trust,
            "auto" => Check::Auto,
            _ => return None,
        };
        self.advance();
        Some(check)
    }

    /// `reverse (c = lane - time, q = time)`.
    fn reverse(&mut self) -> Parsed<DirectiveKind> {
        self.advance();
        let open = self.expect(Tok::LParen, "`(` and an equation per iterator")?;
        let bindings = self.list(open, Tok::RParen, "`)`", |p| {
            let name = p.name("an iterator")?;
            p.expect(Tok::Assign, "`=`")?;
            Ok((name, p.form()?))
        })?;
        Ok(DirectiveKind::Reverse { bindings })
    }

    /// `func X(f32, (c, q), device)`; each of the three is optional.
    fn func(&mut self) -> Parsed<DirectiveKind> {
        self.advance();
        let name = self.name("a variable or an input")?;
        let open = self.expect(Tok::LParen, "`(`")?;
        let (mut ty, mut args, mut residence) = (None, Vec::new(), Residence::Host);
        // The first word distinguishes a tuple of types from a tuple of iterators.
        while self.peek() != Tok::RParen {
            match self.word() {
                Some("device") => {
                    self.advance();
                    residence = Residence::Device;
                }
                Some("host") => {
                    self.advance();
                    residence = Residence::Host;
                }
                _ if ty.is_none() && args.is_empty() && self.at_type() => {
                    ty = Some(self.scalar_or_tuple()?.ty);
                }
                None if args.is_empty() && self.peek() == Tok::LParen => args = self.names()?,
                _ => return self.expected("a type, `(` iterators `)`, `device` or `host`"),
            }
            if !self.eat(Tok::Comma) {
                break;
            }
        }
        self.close(Tok::RParen, "`)`", open)?;
        Ok(DirectiveKind::Func {
            name,
            ty,
            args,
            residence,
        })
    }

    /// Whether a type comes next, possibly after parentheses.
    fn at_type(&self) -> bool {
        let mut ahead = 0;
        while self.peek_at(ahead) == Tok::LParen && ahead < super::MAX_RECURSION as usize {
            ahead += 1;
        }
        self.word_at(ahead)
            .is_some_and(|w| systola_ir::Scalar::from_name(w).is_some())
    }

    /// `(a, b, c)`.
    fn names(&mut self) -> Parsed<Vec<Name>> {
        let open = self.expect(Tok::LParen, "`(` and names")?;
        self.list(open, Tok::RParen, "`)`", |p| p.name("a name"))
    }

    /// `X.merge_ures(W, Z).tile(c, oc, cc, 4);`: every call is a directive for the same function,
    /// but the calls after `in` belong to it.
    fn calls(&mut self, list: &mut Vec<Directive>) -> Parsed<()> {
        let func = self.name("a variable or an input")?;
        while self.eat(Tok::Dot) {
            let start = self.span();
            let method = self.word().unwrap_or_default();
            let kind = match method {
                "merge_ures" => {
                    self.advance();
                    DirectiveKind::MergeUres {
                        func: func.clone(),
                        others: self.names()?,
                    }
                }
                "tile" => self.tile_loop(func.clone())?,
                "reorder" => {
                    self.advance();
                    DirectiveKind::Reorder {
                        func: func.clone(),
                        loops: self.names()?,
                    }
                }
                "gpu_blocks" => {
                    self.advance();
                    DirectiveKind::GpuBlocks {
                        func: func.clone(),
                        loops: self.names()?,
                    }
                }
                "gpu_threads" => {
                    self.advance();
                    DirectiveKind::GpuThreads {
                        func: func.clone(),
                        loops: self.names()?,
                    }
                }
                "in" => self.in_call(func.clone())?,
                "space_time_transform" => self.space_time_transform(func.clone())?,
                _ => return self.unknown_method(method),
            };
            list.push(Directive {
                kind,
                span: self.since(start),
            });
        }
        Ok(())
    }

    fn unknown_method(&mut self, method: &str) -> Parsed<()> {
        let found = self.found();
        let error = Diagnostic::new(
            &syntax::UNKNOWN_DIRECTIVE,
            self.span(),
            format!("{found} is no primitive of a mapping"),
        );
        self.fail(match suggest(method, METHODS.iter().copied()) {
            Some(near) => error.help(format!("did you mean `{near}`?")),
            None if matches!(method, "compute_at" | "store_in") => {
                error.help("it follows `in`: `w.in(X).compute_at(X, oc).store_in(shared)`")
            }
            None => error.help(format!("there are {}", METHODS.join(", "))),
        })
    }

    fn tile_loop(&mut self, func: Name) -> Parsed<DirectiveKind> {
        self.advance();
        let open = self.expect(Tok::LParen, "`(`")?;
        let loop_name = self.name("a loop")?;
        self.expect(Tok::Comma, "`,` and the outer loop")?;
        let outer = self.name("the outer loop")?;
        self.expect(Tok::Comma, "`,` and the inner loop")?;
        let inner = self.name("the inner loop")?;
        self.expect(Tok::Comma, "`,` and the size of a tile")?;
        let factor = self.form()?;
        self.close(Tok::RParen, "`)`", open)?;
        Ok(DirectiveKind::TileLoop {
            func,
            loop_name,
            outer,
            inner,
            factor,
        })
    }

    /// `w.in(X).compute_at(X, oc).store_in(shared)`.
    fn in_call(&mut self, producer: Name) -> Parsed<DirectiveKind> {
        self.advance();
        let open = self.expect(Tok::LParen, "`(`")?;
        let consumer = self.name("the function it is used in")?;
        self.close(Tok::RParen, "`)`", open)?;
        let (mut compute_at, mut store_in) = (None, None);
        while self.peek() == Tok::Dot {
            match self.word_at(1) {
                Some("compute_at") if compute_at.is_none() => {
                    self.advance();
                    self.advance();
                    let open = self.expect(Tok::LParen, "`(`")?;
                    let func = self.name("a function")?;
                    self.expect(Tok::Comma, "`,` and a loop of it")?;
                    let at = self.name("a loop")?;
                    self.close(Tok::RParen, "`)`", open)?;
                    compute_at = Some((func, at));
                }
                Some("store_in") if store_in.is_none() => {
                    self.advance();
                    self.advance();
                    let open = self.expect(Tok::LParen, "`(`")?;
                    store_in = Some(self.store()?);
                    self.close(Tok::RParen, "`)`", open)?;
                }
                _ => break,
            }
        }
        Ok(DirectiveKind::In {
            producer,
            consumer,
            compute_at,
            store_in,
        })
    }

    /// `X.space_time_transform((ccc, q), (s, t), ((1, 1), (0, 1)), reverse (s - t, t), check)`.
    fn space_time_transform(&mut self, func: Name) -> Parsed<DirectiveKind> {
        self.advance();
        let open = self.expect(Tok::LParen, "`(`")?;
        let src = self.names()?;
        self.expect(Tok::Comma, "`,` and the new loops")?;
        let dst = self.names()?;
        self.expect(Tok::Comma, "`,` and the matrix")?;
        let matrix_open = self.expect(Tok::LParen, "`(` and the rows of the matrix")?;
        let matrix = self.list(matrix_open, Tok::RParen, "`)`", |p| {
            let row = p.expect(Tok::LParen, "`(` and a row of the matrix")?;
            p.list(row, Tok::RParen, "`)`", Self::form)
        })?;
        let (mut reverse, mut check) = (None, None);
        while self.eat(Tok::Comma) && self.peek() != Tok::RParen {
            if reverse.is_none() && check.is_none() && self.eat_word("reverse") {
                let open = self.expect(Tok::LParen, "`(` and an expression per loop")?;
                reverse = Some(self.list(open, Tok::RParen, "`)`", Self::form)?);
            } else if check.is_none() {
                check = self.check();
                if check.is_none() {
                    return self.expected("`reverse (…)`, `check`, `trust` or `auto`");
                }
            } else {
                return self.expected("`)`");
            }
        }
        self.close(Tok::RParen, "`)`", open)?;
        Ok(DirectiveKind::SpaceTimeTransform {
            func,
            src,
            dst,
            matrix,
            reverse,
            check,
        })
    }
}
