//! Kernels: what they declare, and their statements.

use super::expr::Expr;
use super::lexer::{At, TokenKind};
use super::names::{Named, Names};
use super::values::Scope;
use super::{ParseError, Parser};
use crate::form::{Cond, Form};
use crate::id::{BufferId, DimId, RegId, SharedId, ValueId};
use crate::kernel::{
    Access, BlockChain, Cache, Deferred, Hints, Invariant, Joins, Kernel, LookBack, NonTemporal,
    Op, Program, Reg, Shape, Shared, Stmt, Var, VarKind,
};
use crate::mapping::Engine;
use crate::scalar::{Literal, Scalar};

/// Names that a statement defines.
type NewNames = Vec<(At, String)>;

/// A block variable, whose range may name variables that are declared after it.
struct Ranged {
    var: DimId,
    lo: Expr,
    hi: Expr,
}

impl Parser {
    pub(super) fn kernel(
        &mut self,
        program: &Program,
        names: &Names,
    ) -> Result<Kernel, ParseError> {
        self.expect_word("kernel")?;
        let at = self.at();
        let name = self.name("the name of the kernel")?;
        if program.kernels.iter().any(|k| k.name == name) {
            return Err(at.error(format!("there are two kernels `{name}`")));
        }
        self.expect(":")?;
        let warps = self.count()?;
        self.one_of(["warp", "warps"])?;
        self.expect_word("of")?;
        let lanes = self.count()?;
        self.one_of(["lane", "lanes"])?;
        self.expect("{")?;
        let mut scope = Scope {
            program,
            kernel: Kernel {
                name,
                lanes,
                warps,
                vars: Vec::new(),
                shared: Vec::new(),
                regs: Vec::new(),
                values: Vec::new(),
                hints: Hints::default(),
                body: Vec::new(),
            },
            names: names.clone(),
            before: Vec::new(),
        };
        let mut ranged = Vec::new();
        while self.declaration(&mut scope, &mut ranged)? {}
        for Ranged { var, lo, hi } in ranged {
            scope.kernel.vars[var.index()].kind = VarKind::Block {
                lo: lo.bound("max", &scope.names)?,
                hi: hi.bound("min", &scope.names)?,
            };
        }
        let body = self.body(&mut scope)?;
        Ok(Kernel {
            body,
            ..scope.kernel
        })
    }

    fn one_of(&mut self, words: [&str; 2]) -> Result<(), ParseError> {
        match words.into_iter().any(|word| self.eat_word(word)) {
            true => Ok(()),
            false => self.expected(&format!("`{}`", words[1])),
        }
    }

    /// Reads a variable, an array or a register, if one is declared here.
    fn declaration(
        &mut self,
        scope: &mut Scope<'_>,
        ranged: &mut Vec<Ranged>,
    ) -> Result<bool, ParseError> {
        // A comment is a statement.
        let TokenKind::Name(first) = self.tokens[self.next].kind.clone() else {
            return Ok(false);
        };
        let second = self.peek_second().kind.clone();
        if first == "resident_blocks" && !matches!(second, TokenKind::Punct(_)) {
            self.bump();
            let blocks = self.list(";", Parser::count)?;
            scope.kernel.hints.resident_blocks = blocks;
            return Ok(true);
        }
        let TokenKind::Name(second) = second else {
            return Ok(false);
        };
        match first.as_str() {
            "host" => {
                self.bump();
                self.variable(scope, VarKind::Host)?;
            }
            "block" => {
                self.bump();
                let none = VarKind::Block {
                    lo: Vec::new(),
                    hi: Vec::new(),
                };
                let var = self.variable(scope, none)?;
                self.expect_word("in")?;
                let (lo, hi) = self.bounds()?;
                ranged.push(Ranged { var, lo, hi });
            }
            "warp" => {
                self.bump();
                self.variable(scope, VarKind::Warp)?;
                self.all(scope, scope.kernel.warps)?;
            }
            "lane" => {
                self.bump();
                self.variable(scope, VarKind::Lane)?;
                self.all(scope, scope.kernel.lanes)?;
            }
            "shared" => {
                self.bump();
                let at = self.at();
                let name = self.name("the name of an array")?;
                self.expect("[")?;
                let extents = self.list("]", |p| {
                    let expr = p.expr()?;
                    let form = expr.form(&scope.names)?;
                    let poly = form.as_poly().cloned();
                    poly.ok_or_else(|| expr.at.error("an extent is made of sizes"))
                })?;
                self.expect(":")?;
                let ty = self.scalar()?;
                let id = SharedId::from(scope.kernel.shared.len());
                scope.names.declare(at, &name, Named::Shared(id))?;
                scope.kernel.shared.push(Shared { name, ty, extents });
            }
            "non_temporal" => {
                self.bump();
                let buffer = self.buffer_id(scope)?;
                let when = self.when(&scope.names)?.unwrap_or(Cond::TRUE);
                let hint = NonTemporal { buffer, when };
                scope.kernel.hints.non_temporal.push(hint);
            }
            "invariant" => {
                self.bump();
                let buffer = self.buffer_id(scope)?;
                self.expect("[")?;
                let index = self.list("]", |p| {
                    let expr = p.expr()?;
                    let value = expr.form(&scope.names)?.as_constant();
                    value.ok_or_else(|| expr.at.error("the index of an invariant is a number"))
                })?;
                let hint = Invariant { buffer, index };
                scope.kernel.hints.invariants.push(hint);
            }
            "deferred" => {
                self.bump();
                let buffer = self.buffer_id(scope)?;
                self.expect_word("by")?;
                let group_size = self.count()?;
                scope.kernel.hints.deferred = Some(Deferred { buffer, group_size });
            }
            "outlined" if second == "edge" => {
                self.bump();
                self.bump();
                scope.kernel.hints.outlined_edge = true;
            }
            "predicated" if second == "loads" => {
                self.bump();
                self.bump();
                scope.kernel.hints.predicated_loads = true;
            }
            "reg" => {
                self.bump();
                self.register(scope, Shape::Varying)?;
            }
            "uniform"
                if second == "reg" && matches!(self.peek_third().kind, TokenKind::Name(_)) =>
            {
                self.bump();
                self.bump();
                self.register(scope, Shape::Uniform)?;
            }
            _ => return Ok(false),
        }
        self.expect(";")?;
        Ok(true)
    }

    fn buffer_id(&mut self, scope: &Scope<'_>) -> Result<BufferId, ParseError> {
        let at = self.at();
        let name = self.name("the name of a buffer")?;
        match scope.names.find(&name) {
            Some(Named::Buffer(id)) => Ok(id),
            Some(_) | None => Err(at.error(format!("`{name}` is no buffer"))),
        }
    }

    fn variable(&mut self, scope: &mut Scope<'_>, kind: VarKind) -> Result<DimId, ParseError> {
        let at = self.at();
        let name = self.name("the name of a variable")?;
        bind(scope, at, name, kind)
    }

    /// `in 0..32`: all warps or lanes.
    fn all(&mut self, scope: &Scope<'_>, n: u32) -> Result<(), ParseError> {
        self.expect_word("in")?;
        let at = self.at();
        let (lo, hi) = self.range(&scope.names)?;
        match lo == [Form::zero()] && hi == [Form::from(i128::from(n))] {
            true => Ok(()),
            false => Err(at.error(format!("expected the whole range, `0..{n}`"))),
        }
    }

    fn register(&mut self, scope: &mut Scope<'_>, shape: Shape) -> Result<(), ParseError> {
        let at = self.at();
        let name = self.name("the name of a register")?;
        self.expect(":")?;
        let ty = self.scalar()?;
        let id = RegId::from(scope.kernel.regs.len());
        scope.names.declare(at, &name, Named::Reg(id))?;
        scope.kernel.regs.push(Reg { name, ty, shape });
        Ok(())
    }

    /// Statements up to the closing brace.
    fn body(&mut self, scope: &mut Scope<'_>) -> Result<Vec<Stmt>, ParseError> {
        let mut body = Vec::new();
        loop {
            if let TokenKind::Comment(text) = &self.tokens[self.next].kind {
                body.push(Stmt::Comment(text.clone()));
                self.next += 1;
            } else if self.eat("}") {
                return Ok(body);
            } else {
                let stmt = self.nested(|p| p.statement(scope))?;
                body.append(&mut scope.before);
                body.push(stmt);
            }
        }
    }

    fn statement(&mut self, scope: &mut Scope<'_>) -> Result<Stmt, ParseError> {
        // The first word is a name and not a keyword if the token after it assigns to it or
        // continues a list of names.
        let begins_assignment = |kind: &TokenKind| match kind {
            TokenKind::Punct(punct) => matches!(*punct, ":" | "," | "=" | "["),
            _ => false,
        };
        if begins_assignment(&self.peek_second().kind) {
            let stmt = self.assignment(scope)?;
            self.expect(";")?;
            return Ok(stmt);
        }
        let word = match &self.peek().kind {
            TokenKind::Name(name) => name.clone(),
            _ => return self.expected("a statement or `}`"),
        };
        match word.as_str() {
            "for" => return self.repeat(scope),
            "if" => return self.branch(scope),
            "look_back" => return self.look_back(scope),
            _ => {}
        }
        let at = self.at();
        let stmt = match word.as_str() {
            "uniform" => {
                self.bump();
                self.definition(scope, Shape::Uniform)?
            }
            "prefetch" => {
                self.bump();
                let at = self.access(scope)?;
                self.expect_word("into")?;
                let into = match () {
                    () if self.eat_word("l1") => Cache::L1,
                    () if self.eat_word("l2") => Cache::L2,
                    () => return self.expected("`l1` or `l2`"),
                };
                let at = self.predicated(at, scope)?;
                Stmt::Prefetch { at, into }
            }
            "copy" => self.copy(scope)?,
            "commit" => {
                self.bump();
                self.expect_word("copies")?;
                Stmt::CommitCopies
            }
            "wait" => self.wait()?,
            "barrier" => {
                self.bump();
                Stmt::Barrier
            }
            "sync" => {
                self.bump();
                self.expect_word("warp")?;
                Stmt::SyncWarp
            }
            "signal" => {
                self.bump();
                let flag = self.access(scope)?;
                Stmt::Signal {
                    flag: self.predicated(flag, scope)?,
                }
            }
            "await" => {
                self.bump();
                let flag = self.access(scope)?;
                self.expect(">=")?;
                let at_least = self.expr()?.form(&scope.names)?;
                let flag = self.predicated(flag, scope)?;
                Stmt::Await { flag, at_least }
            }
            "dynamic_block" => {
                self.bump();
                let at = self.at();
                let name = self.name("the variable of the block id")?;
                self.expect_word("from")?;
                let counter = self.access(scope)?;
                let counter = self.predicated(counter, scope)?;
                let var = bind(scope, at, name, VarKind::DynamicBlock)?;
                Stmt::DynamicBlock { var, counter }
            }
            "fault" => self.fault(scope)?,
            _ => return Err(at.error(format!("`{word}` begins no statement"))),
        };
        self.expect(";")?;
        Ok(stmt)
    }

    /// What begins with a name: a definition, a store, or a register that is set.
    fn assignment(&mut self, scope: &mut Scope<'_>) -> Result<Stmt, ParseError> {
        let at = self.at();
        match &self.peek_second().kind {
            TokenKind::Punct("[") => return self.store(scope),
            TokenKind::Punct("=") => {}
            _ => return self.definition(scope, Shape::Varying),
        }
        let name = self.name("a register")?;
        let reg = match scope.names.find(&name) {
            Some(Named::Reg(reg)) => reg,
            Some(other) => {
                let kind = other.kind();
                return Err(at.error(format!("`{name}` is {kind}, and no register to be set")));
            }
            None => return Err(scope.names.unknown(at, &name)),
        };
        self.expect("=")?;
        let ty = scope.kernel.regs[reg.index()].ty;
        let value = scope.value(&self.expr()?, Some(ty))?;
        Ok(Stmt::Set(reg, value))
    }

    /// `x: f32 = …` or `x, y: f32 = a[i ..+2]`.
    fn definition(&mut self, scope: &mut Scope<'_>, shape: Shape) -> Result<Stmt, ParseError> {
        let mut defined = Vec::new();
        loop {
            let at = self.at();
            defined.push((at, self.name("the name of a value")?));
            if !self.eat(",") {
                break;
            }
        }
        self.expect(":")?;
        let ty = self.scalar()?;
        self.expect("=")?;
        let expr = self.expr()?;
        if let super::expr::ExprKind::Element { .. } = &expr.kind {
            let (from, width) = scope.places(&expr)?;
            let from = self.predicated(from, scope)?;
            let otherwise = self.otherwise()?;
            let width_here = width.map_or(1, |n| n as usize);
            if width_here != defined.len() {
                let n = defined.len();
                return Err(expr
                    .at
                    .error(format!("{width_here} elements for {n} values")));
            }
            let to = declare_all(scope, &defined, ty, shape)?;
            return Ok(match (width, to.as_slice()) {
                (None, [to]) => Stmt::Let(*to, Op::Load { from, otherwise }),
                _ => Stmt::LoadWide {
                    to,
                    from,
                    otherwise,
                },
            });
        }
        let [(at, name)] = defined.as_slice() else {
            return Err(expr.at.error("several values are loaded from one array"));
        };
        let op = scope.op(&expr, Some(ty))?;
        let to = scope.declare_value(*at, name, ty, shape)?;
        Ok(Stmt::Let(to, op))
    }

    fn otherwise(&mut self) -> Result<Option<Literal>, ParseError> {
        match self.eat_word("else") {
            true => Ok(Some(self.literal()?)),
            false => Ok(None),
        }
    }

    fn access(&mut self, scope: &Scope<'_>) -> Result<Access, ParseError> {
        let expr = self.unary()?;
        scope.place(&expr)
    }

    fn predicated(&mut self, access: Access, scope: &Scope<'_>) -> Result<Access, ParseError> {
        let when = self.when(&scope.names)?.unwrap_or(Cond::TRUE);
        Ok(Access { when, ..access })
    }

    fn store(&mut self, scope: &mut Scope<'_>) -> Result<Stmt, ParseError> {
        let place = self.unary()?;
        let (to, width) = scope.places(&place)?;
        let ty = Some(scope.element_type(to.memory));
        self.expect("=")?;
        let mut values = Vec::new();
        loop {
            values.push(scope.value(&self.expr()?, ty)?);
            if !self.eat(",") {
                break;
            }
        }
        let n = width.map_or(1, |n| n as usize);
        if n != values.len() {
            let given = values.len();
            return Err(place.at.error(format!("{given} values for {n} elements")));
        }
        let to = self.predicated(to, scope)?;
        Ok(match (width, values.as_slice()) {
            (None, [value]) => Stmt::Store { to, value: *value },
            _ => Stmt::StoreWide { to, values },
        })
    }

    /// `copy async near[i ..+4] when i < 4 = x[j ..+4]`: each side has a predicate of its own.
    fn copy(&mut self, scope: &Scope<'_>) -> Result<Stmt, ParseError> {
        self.bump();
        let mut engine = Engine::Plain;
        if matches!(self.peek_second().kind, TokenKind::Name(_)) {
            engine = match () {
                () if self.eat_word("async") => Engine::CpAsync,
                () if self.eat_word("bulk") => Engine::Bulk,
                () => return self.expected("`async`, `bulk` or an array"),
            };
        }
        let target = self.unary()?;
        let (to, width) = scope.places(&target)?;
        let to = self.predicated(to, scope)?;
        self.expect("=")?;
        let source = self.unary()?;
        let (from, same) = scope.places(&source)?;
        if width != same {
            return Err(source.at.error("both sides of a copy have one width"));
        }
        let from = self.predicated(from, scope)?;
        Ok(Stmt::Copy {
            to,
            from,
            width: width.unwrap_or(1),
            engine,
        })
    }

    fn wait(&mut self) -> Result<Stmt, ParseError> {
        self.bump();
        self.expect_word("for")?;
        if self.eat_word("all") {
            self.expect_word("copies")?;
            return Ok(Stmt::WaitCopies { pending: 0 });
        }
        self.expect_word("copies")?;
        self.expect(",")?;
        let pending = self.count()?;
        self.expect_word("may")?;
        self.expect_word("be")?;
        self.expect_word("pending")?;
        Ok(Stmt::WaitCopies { pending })
    }

    fn repeat(&mut self, scope: &mut Scope<'_>) -> Result<Stmt, ParseError> {
        self.bump();
        let at = self.at();
        let name = self.name("the variable of the loop")?;
        self.expect_word("in")?;
        let (lo, hi) = self.range(&scope.names)?;
        let step = match self.eat_word("step") {
            true => self.int()?,
            false => 1,
        };
        let independent = self.eat_word("independently");
        let var = bind(scope, at, name, VarKind::Loop)?;
        if independent {
            scope.kernel.hints.independent.push(var);
        }
        self.expect("{")?;
        let body = self.body(scope)?;
        Ok(Stmt::For {
            var,
            lo,
            hi,
            step,
            body,
        })
    }

    fn branch(&mut self, scope: &mut Scope<'_>) -> Result<Stmt, ParseError> {
        self.bump();
        let cond = self.expr()?.cond(&scope.names)?;
        self.expect("{")?;
        let then = self.body(scope)?;
        let mut otherwise = Vec::new();
        // An `else` cannot follow a comment: the comment is a statement of its own.
        let is_comment = matches!(self.tokens[self.next].kind, TokenKind::Comment(_));
        if !is_comment && self.eat_word("else") {
            self.expect("{")?;
            otherwise = self.body(scope)?;
        }
        Ok(Stmt::If {
            cond,
            then,
            otherwise,
        })
    }

    /// `look_back x: f32 = a at p[b, 0] along 0 up, where e joins l { j: f32 = e + l; } gives j`,
    /// with `and` between several chains.
    fn look_back(&mut self, scope: &mut Scope<'_>) -> Result<Stmt, ParseError> {
        self.bump();
        let mut types = Vec::new();
        let mut chains = Vec::new();
        loop {
            let begins = self.at();
            let (before, own) = self.typed_names()?;
            if !chains.is_empty() && own != types {
                return Err(begins.error("all chains of a look-back have terms of the same types"));
            }
            types = own;
            self.expect("=")?;
            let terms = self.values(scope, &types)?;
            self.expect_word("at")?;
            chains.push((before, terms, self.access(scope)?));
            if !self.eat_word("and") {
                break;
            }
        }
        self.expect_word("along")?;
        let axis = self.count()? as usize;
        let up = match () {
            () if self.eat_word("up") => true,
            () if self.eat_word("down") => false,
            () => return self.expected("`up` or `down`"),
        };
        let when = self.when(&scope.names)?.unwrap_or(Cond::TRUE);
        self.expect(",")?;
        self.expect_word("where")?;
        let earlier = self.names()?;
        self.expect_word("joins")?;
        let at = self.at();
        let later = self.names()?;
        if earlier.len() != types.len() || later.len() != types.len() {
            let n = types.len();
            return Err(at.error(format!("an operation on {n} scalars has as many operands")));
        }
        // What the terms are computed from stands before the look-back.
        let outside = std::mem::take(&mut scope.before);
        let mut made = Vec::new();
        for (before, terms, at) in chains {
            let at = Access {
                when: when.clone(),
                ..at
            };
            let uniform = at.forms().iter().all(|f| scope.kernel.is_uniform(f));
            let shape = if uniform {
                Shape::Uniform
            } else {
                Shape::Varying
            };
            made.push(BlockChain {
                at,
                terms,
                before: declare_each(scope, &before, &types, shape)?,
            });
        }
        let earlier = declare_each(scope, &earlier, &types, Shape::Uniform)?;
        let later = declare_each(scope, &later, &types, Shape::Uniform)?;
        self.expect("{")?;
        let mut body = self.body(scope)?;
        self.expect_word("gives")?;
        let joined = self.values(scope, &types)?;
        self.expect(";")?;
        body.append(&mut scope.before);
        scope.before = outside;
        Ok(Stmt::LookBack(Box::new(LookBack {
            chains: made,
            axis,
            up,
            joins: Joins {
                earlier,
                later,
                body,
                joined,
            },
        })))
    }

    /// `a: f32, b: i64`, new names.
    fn typed_names(&mut self) -> Result<(NewNames, Vec<Scalar>), ParseError> {
        let (mut names, mut types) = (Vec::new(), Vec::new());
        loop {
            let at = self.at();
            names.push((at, self.name("the name of a value")?));
            self.expect(":")?;
            types.push(self.scalar()?);
            if !self.eat(",") {
                return Ok((names, types));
            }
        }
    }

    /// Values of these types, with commas between them.
    fn values(
        &mut self,
        scope: &mut Scope<'_>,
        types: &[Scalar],
    ) -> Result<Vec<ValueId>, ParseError> {
        let mut values = Vec::new();
        for (n, ty) in types.iter().enumerate() {
            if n > 0 {
                self.expect(",")?;
            }
            values.push(scope.value(&self.expr()?, Some(*ty))?);
        }
        Ok(values)
    }

    /// `a, b`, new names.
    fn names(&mut self) -> Result<NewNames, ParseError> {
        let mut names = Vec::new();
        loop {
            let at = self.at();
            names.push((at, self.name("the name of a value")?));
            if !self.eat(",") {
                return Ok(names);
            }
        }
    }

    /// `fault faults, 2 at (i, j) if x == 0 when i < N`.
    fn fault(&mut self, scope: &mut Scope<'_>) -> Result<Stmt, ParseError> {
        self.bump();
        let faults = self.buffer_id(scope)?;
        self.expect(",")?;
        let at = self.at();
        let number = self.count()? as usize;
        let site = number.checked_sub(1);
        let site = site.ok_or_else(|| at.error("the sites of faults are numbered from 1"))?;
        self.expect_word("at")?;
        self.expect("(")?;
        let point = self.list(")", |p| p.expr()?.form(&scope.names))?;
        self.expect_word("if")?;
        let bad = scope.value(&self.expr()?, Some(Scalar::Bool))?;
        let when = self.when(&scope.names)?.unwrap_or(Cond::TRUE);
        Ok(Stmt::Fault {
            faults,
            site,
            bad,
            when,
            point,
        })
    }
}

fn bind(scope: &mut Scope<'_>, at: At, name: String, kind: VarKind) -> Result<DimId, ParseError> {
    let var = DimId::from(scope.kernel.vars.len());
    scope.names.declare(at, &name, Named::Var(var))?;
    scope.kernel.vars.push(Var { name, kind });
    Ok(var)
}

fn declare_each(
    scope: &mut Scope<'_>,
    names: &NewNames,
    types: &[Scalar],
    shape: Shape,
) -> Result<Vec<ValueId>, ParseError> {
    let each = names.iter().zip(types);
    each.map(|((at, name), ty)| scope.declare_value(*at, name, *ty, shape))
        .collect()
}

fn declare_all(
    scope: &mut Scope<'_>,
    defined: &NewNames,
    ty: Scalar,
    shape: Shape,
) -> Result<Vec<ValueId>, ParseError> {
    let declare = |(at, name): &(At, String)| scope.declare_value(*at, name, ty, shape);
    defined.iter().map(declare).collect()
}
