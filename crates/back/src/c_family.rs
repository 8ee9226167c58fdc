//! The part of printing that all targets with a C-like language share: statements, declarations,
//! and the decision which values get a name.
//!
//! A value that is read once is printed inside its reader, as long as nothing between the two
//! changes what it is computed from. It *waits* until it is read. It is declared if, before that, a
//! statement is about to change a place that it reads, or its reader turns out to be inside a loop.

use std::collections::BTreeMap;

use systola_ir::kernel::visit::walk;
use systola_ir::kernel::{Kernel, Op, Shape, Stmt};
use systola_ir::{DimId, RegId, ValueId};

use crate::context::{Context, Slot};
use crate::dialect::{Action, Dialect, Record};
use crate::error::Fault;
use crate::expr::{Expr, Level};
use crate::usage::{self, Places};

mod look_back;

/// An expression longer than this gets a name.
const LONG: usize = 56;

/// The number of prefetches with the same predicate at the beginning of a list.
fn prefetches(stmts: &[Stmt]) -> usize {
    let when = |stmt: &Stmt| match stmt {
        Stmt::Prefetch { at, .. } => Some(at.when.clone()),
        _ => None,
    };
    let Some(first) = stmts.first().and_then(when) else {
        return 0;
    };
    let same = |stmt: &&Stmt| when(stmt).as_ref() == Some(&first);
    stmts.iter().take_while(same).count()
}

/// Prints the statements of a kernel.
pub struct Printer<'c, 'a, D> {
    pub cx: &'c mut Context<'a>,
    pub dialect: &'c mut D,
    declaring: Vec<Option<usize>>,
    /// The number of `Set` statements printed so far.
    sets: usize,
    /// The number of enclosing loops.
    loops: usize,
}

impl<'c, 'a, D: Dialect> Printer<'c, 'a, D> {
    pub fn new(cx: &'c mut Context<'a>, dialect: &'c mut D) -> Self {
        let declaring = usage::declaring_sets(cx.kernel);
        Printer {
            cx,
            dialect,
            declaring,
            sets: 0,
            loops: 0,
        }
    }

    /// Prints the body of the kernel, preceded by the registers that no `Set` can declare.
    pub fn body(&mut self) -> Result<(), Fault> {
        for n in 0..self.cx.kernel.regs.len() {
            if self.cx.usage.live_regs[n] && self.declaring[n].is_none() {
                let (ty, undefined) = self.dialect.reg_type(self.cx, RegId::from(n))?;
                let line = format!("{ty} {} = {undefined};", self.cx.regs[n]);
                self.cx.lines.push(&line);
            }
        }
        let kernel = self.cx.kernel;
        self.stmts(&kernel.body)
    }

    fn stmts(&mut self, stmts: &[Stmt]) -> Result<(), Fault> {
        self.cx.waiting.push(Vec::new());
        self.cx.shared_names.push(BTreeMap::new());
        let mut left = stmts;
        while let Some((stmt, behind)) = left.split_first() {
            let n_prefetches = prefetches(left);
            if n_prefetches > 0 {
                self.prefetch(&left[..n_prefetches])?;
                left = &left[n_prefetches..];
                continue;
            }
            left = behind;
            self.cx.taken = Places::default();
            self.dialect.before(self.cx)?;
            self.stmt(stmt)?;
        }
        self.cx.waiting.pop();
        self.cx.shared_names.pop();
        Ok(())
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<(), Fault> {
        match stmt {
            Stmt::Let(value, op) => self.let_value(*value, op),
            Stmt::Set(reg, value) => self.set(stmt, *reg, *value),
            Stmt::LoadWide {
                to,
                from,
                otherwise,
            } => {
                let loaded = self.dialect.load_wide(self.cx, to, from, *otherwise)?;
                for (value, expr) in to.iter().zip(loaded) {
                    let mut reads = Places::default();
                    reads.memories.insert(from.memory);
                    self.bind(*value, expr, reads, false)?;
                }
                Ok(())
            }
            Stmt::Store { to, value } => {
                let action = self.dialect.store(self.cx, to, *value)?;
                self.act(stmt, action)
            }
            Stmt::StoreWide { to, values } => {
                // The first element must not be written before the last value is read.
                self.declare_readers_of(&usage::writes(stmt))?;
                let action = self.dialect.store_wide(self.cx, to, values)?;
                self.act(stmt, action)
            }
            Stmt::Prefetch { .. } => self.prefetch(std::slice::from_ref(stmt)),
            Stmt::Copy {
                to,
                from,
                width,
                engine,
            } => {
                let action = self.dialect.copy(self.cx, to, from, *width, *engine)?;
                self.act(stmt, action)
            }
            Stmt::CommitCopies => {
                let action = self.dialect.commit_copies(self.cx)?;
                self.act(stmt, action)
            }
            Stmt::WaitCopies { pending } => {
                let action = self.dialect.wait_copies(self.cx, *pending)?;
                self.act(stmt, action)
            }
            Stmt::For {
                var,
                lo,
                hi,
                step,
                body,
            } => {
                let lo = self.cx.extremum(lo, true)?;
                let hi = self.cx.extremum(hi, false)?;
                self.for_loop(stmt, *var, &lo, &hi, *step, body)
            }
            Stmt::If {
                cond,
                then,
                otherwise,
            } => {
                let mut text = self.cx.cond(cond)?;
                if self.loops == 0 && !then.is_empty() && !otherwise.is_empty() {
                    text = self.dialect.choice(self.cx, cond, text);
                }
                self.branch(stmt, &text, then, otherwise)
            }
            Stmt::SyncWarp => {
                let action = self.dialect.sync_warp(self.cx)?;
                self.act(stmt, action)
            }
            Stmt::Barrier => {
                let action = self.dialect.barrier(self.cx)?;
                self.act(stmt, action)
            }
            Stmt::Signal { flag } => {
                let action = self.dialect.signal(self.cx, flag)?;
                self.act(stmt, action)
            }
            Stmt::Await { flag, at_least } => {
                let at_least = self.cx.form(at_least)?;
                let action = self.dialect.await_flag(self.cx, flag, &at_least)?;
                self.act(stmt, action)
            }
            Stmt::LookBack(look) => self.look_back(stmt, look),
            Stmt::DynamicBlock { var, counter } => {
                let action = self.dialect.dynamic_block(self.cx, *var, counter)?;
                self.act(stmt, action)
            }
            Stmt::Fault {
                faults,
                site,
                bad,
                when,
                point,
            } => {
                let record = Record {
                    faults: *faults,
                    site: *site,
                    bad: *bad,
                    when,
                    point,
                };
                let action = self.dialect.fault(self.cx, record)?;
                self.act(stmt, action)
            }
            Stmt::Comment(text) => {
                for line in text.lines() {
                    // A backslash at the end would continue the comment on the next line.
                    let line = format!("// {}", line.trim_end().trim_end_matches('\\'));
                    self.cx.lines.push(line.trim_end());
                }
                Ok(())
            }
        }
    }

    /// Prints prefetches with the same predicate, which is tested once.
    fn prefetch(&mut self, stmts: &[Stmt]) -> Result<(), Fault> {
        let mut all = Action::default();
        for stmt in stmts {
            self.dialect.before(self.cx)?;
            if let Stmt::Prefetch { at, into } = stmt {
                let one = self.dialect.prefetch(self.cx, at, *into)?;
                all.guard = one.guard;
                all.lines.extend(one.lines);
            }
        }
        match stmts.first() {
            Some(first) => self.act(first, all),
            None => Ok(()),
        }
    }

    fn let_value(&mut self, value: ValueId, op: &Op) -> Result<(), Fault> {
        if self.cx.usage.reads[value.index()] == 0 {
            return Ok(());
        }
        let expr = self.dialect.operation(self.cx, value, op)?;
        let mut reads = std::mem::take(&mut self.cx.taken);
        reads.extend(&usage::reads(op));
        if self.dialect.stays(op) {
            return self.declare(value, &expr);
        }
        self.bind(value, expr, reads, matches!(op, Op::Lit(_)))
    }

    /// Decides whether a value waits or is declared. A `literal` may be printed several times.
    fn bind(
        &mut self,
        value: ValueId,
        expr: Expr,
        reads: Places,
        literal: bool,
    ) -> Result<(), Fault> {
        let left = self.cx.usage.reads[value.index()];
        if left == 0 {
            return Ok(());
        }
        let is_name = expr.is_word();
        if literal || (is_name && reads.is_empty()) {
            self.cx.slots[value.index()] = Slot::Ready(expr);
        } else if is_name
            || (left == 1 && expr.text.len() <= LONG && self.cx.usage.near[value.index()])
        {
            self.cx.slots[value.index()] = Slot::Waiting { expr, reads, left };
            if let Some(scope) = self.cx.waiting.last_mut() {
                scope.push(value);
            }
        } else {
            self.declare(value, &expr)?;
        }
        Ok(())
    }

    fn declare(&mut self, value: ValueId, expr: &Expr) -> Result<(), Fault> {
        let name = self
            .cx
            .names
            .claim(&self.cx.kernel.values[value.index()].name);
        let ty = self.dialect.value_type(self.cx, value)?;
        self.cx
            .lines
            .push(&format!("const {ty} {name} = {};", expr.text));
        self.cx.slots[value.index()] = Slot::Ready(Expr::atom(name));
        Ok(())
    }

    /// Declares the waiting values for which `must` holds.
    fn declare_where(&mut self, must: impl Fn(ValueId, &Places) -> bool) -> Result<(), Fault> {
        let scope = self.cx.waiting.last().cloned().unwrap_or_default();
        let mut kept = Vec::new();
        for value in scope {
            match &self.cx.slots[value.index()] {
                Slot::Waiting { expr, reads, .. } if must(value, reads) => {
                    let expr = expr.clone();
                    self.declare(value, &expr)?;
                }
                Slot::Waiting { .. } => kept.push(value),
                Slot::Absent | Slot::Ready(_) => {}
            }
        }
        if let Some(scope) = self.cx.waiting.last_mut() {
            *scope = kept;
        }
        Ok(())
    }

    fn declare_readers_of(&mut self, places: &Places) -> Result<(), Fault> {
        self.declare_where(|_, reads| reads.meets(places))
    }

    /// Prepares for printing the statements nested in `stmt`: values that they read get a name, and
    /// values that read what they change are declared.
    fn declare_for(&mut self, stmt: &Stmt) -> Result<(), Fault> {
        let places = usage::writes(stmt);
        let mut inside = std::collections::BTreeSet::new();
        for list in stmt.bodies() {
            walk(list, &mut |s| inside.extend(s.uses()));
        }
        // These are read at the end of its body.
        if let Stmt::LookBack(look) = stmt {
            inside.extend(&look.joins.joined);
        }
        self.declare_where(|value, reads| inside.contains(&value) || reads.meets(&places))
    }

    fn set(&mut self, stmt: &Stmt, reg: RegId, value: ValueId) -> Result<(), Fault> {
        let number = self.sets;
        self.sets += 1;
        if !self.cx.usage.live_regs[reg.index()] {
            return Ok(());
        }
        let expr = self.dialect.set(self.cx, reg, value)?;
        self.declare_readers_of(&usage::writes(stmt))?;
        let name = self.cx.regs[reg.index()].clone();
        let line = if self.declaring[reg.index()] == Some(number) {
            let (ty, _) = self.dialect.reg_type(self.cx, reg)?;
            format!("{ty} {name} = {};", expr.text)
        } else {
            format!("{name} = {};", expr.text)
        };
        self.cx.lines.push(&line);
        Ok(())
    }

    /// Prints a statement with an effect, after everything that has to be read before it.
    fn act(&mut self, stmt: &Stmt, action: Action) -> Result<(), Fault> {
        self.declare_readers_of(&usage::writes(stmt))?;
        if action.lines.is_empty() {
            return Ok(());
        }
        if let Some(guard) = &action.guard {
            self.cx.lines.open(&format!("if ({})", guard.text));
        }
        for line in &action.lines {
            self.cx.lines.push(line);
        }
        if action.guard.is_some() {
            self.cx.lines.close();
        }
        Ok(())
    }

    fn for_loop(
        &mut self,
        stmt: &Stmt,
        var: DimId,
        lo: &Expr,
        hi: &Expr,
        step: i128,
        body: &[Stmt],
    ) -> Result<(), Fault> {
        if !usage::does_something(body, &self.cx.usage) {
            self.skip(body);
            return Ok(());
        }
        self.declare_for(stmt)?;
        let i = self.cx.dims[var.index()].mention();
        let next = if step == 1 {
            format!("{i}++")
        } else {
            format!("{i} += {}", crate::index::number(step)?.text)
        };
        let ty = self.cx.index.ty;
        let once = self.dialect.runs_at_least_once(body);
        let hi = hi.at(Level::Sum);
        let head = if once {
            self.cx.lines.push(&format!("{ty} {i} = {};", lo.text));
            "do".to_string()
        } else {
            format!("for ({ty} {i} = {}; {i} < {hi}; {next})", lo.text)
        };
        if adds_floats(self.cx.kernel, body) {
            self.dialect.float_sum(self.cx);
        }
        if self.cx.kernel.hints.independent.contains(&var)
            && let Some(word) = self.dialect.independent_loop(self.cx)
        {
            self.cx.lines.push(word);
        }
        self.cx.lines.open(&head);
        self.loops += 1;
        self.stmts(body)?;
        self.loops -= 1;
        if once {
            self.cx.lines.push(&format!("{next};"));
        }
        self.cx.lines.close();
        if once {
            self.cx.lines.push(&format!("while ({i} < {hi});"));
        }
        Ok(())
    }

    fn branch(
        &mut self,
        stmt: &Stmt,
        cond: &Expr,
        then: &[Stmt],
        otherwise: &[Stmt],
    ) -> Result<(), Fault> {
        let has_then = usage::does_something(then, &self.cx.usage);
        let has_otherwise = usage::does_something(otherwise, &self.cx.usage);
        if !has_then && !has_otherwise {
            self.skip(then);
            self.skip(otherwise);
            return Ok(());
        }
        self.declare_for(stmt)?;
        if has_then {
            self.cx.lines.open(&format!("if ({})", cond.text));
            self.stmts(then)?;
        } else {
            self.skip(then);
            let cond = Expr::unary("!", cond);
            self.cx.lines.open(&format!("if ({})", cond.text));
        }
        if has_then && has_otherwise {
            self.cx.lines.otherwise();
        }
        if has_otherwise {
            let outside = if has_then && self.loops == 0 {
                self.dialect.copy_coordinates(self.cx, otherwise)?
            } else {
                Vec::new()
            };
            self.stmts(otherwise)?;
            for (var, name) in outside {
                self.cx.dims[var.index()].name = name;
            }
        } else {
            self.skip(otherwise);
        }
        self.cx.lines.close();
        Ok(())
    }

    /// Counts the `Set` statements in statements that are not printed.
    fn skip(&mut self, stmts: &[Stmt]) {
        walk(stmts, &mut |s| {
            self.sets += usize::from(matches!(s, Stmt::Set(..)));
        });
    }
}

/// Does a loop with this body carry a float from one iteration to the next, in a scalar register?
fn adds_floats(kernel: &Kernel, body: &[Stmt]) -> bool {
    let (mut set, mut got) = (Vec::new(), Vec::new());
    for stmt in body {
        match stmt {
            Stmt::Set(reg, _) => set.push(*reg),
            Stmt::Let(_, Op::Get(reg)) => got.push(*reg),
            _ => {}
        }
    }
    let is_float = |reg: &RegId| {
        let reg = &kernel.regs[reg.index()];
        reg.ty.is_float() && reg.shape == Shape::Uniform
    };
    set.iter().any(|reg| got.contains(reg) && is_float(reg))
}
