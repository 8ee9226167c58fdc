//! Stores of a block that are deferred until the next one runs.
//!
//! A non-temporal store occupies one of the few buffers between a core and memory until memory has taken it, and loads that miss the
//! first-level cache need the same buffers. A block that adds up all of its sums at once stores them all at its end, and
//! the loads with which the next block begins wait. So results are kept until the next block runs, and leave in pairs all
//! along its work; those of the last block follow at the end.
//!
//! It is done where a block is a straight line of statements with a good deal of work for each result, where a result is a
//! whole line of the cache, and where nobody reads what is stored. Whether an array is large enough to be
//! stored with non-temporal stores, and whether its rows begin at lines, shows at run time.

use std::collections::BTreeMap;

use systola_ir::form::{Atom, Cond, Form};
use systola_ir::kernel::{Access, Kernel, Memory, Shape, Stmt, VarKind};
use systola_ir::{BufferId, DimId, Scalar};

use super::Cpu;
use super::lanes::Vector;
use super::memory::both;
use super::place::Pattern;
use crate::context::Context;
use crate::error::Fault;
use crate::expr::{Expr, Lines};
use crate::index::{Stride, number};
use crate::prelude::File;

const LINE: u32 = 64;
/// Results of a block, at least and at most.
const FEWEST: usize = 4;
const MOST: usize = 64;
/// Operations on vectors for each result, at least.
const LEAST_WORK: usize = 16;
/// The number that leaves at a time.
const TOGETHER: usize = 2;

/// What is known of the results that are kept.
#[derive(Debug)]
pub struct Deferred {
    vector: Vector,
    /// The number of a result, by the statement that stores it.
    results: BTreeMap<usize, usize>,
    /// The results that leave before a statement.
    leaving: BTreeMap<usize, Vec<usize>>,
    /// Where they go: addresses in terms of the block that made them.
    places: Vec<Expr>,
    /// The coordinates of that block.
    coordinates: Vec<(DimId, String)>,
    /// Names: the results, whether there are any, and whether there will be.
    queue: String,
    waiting: String,
    streams: String,
    /// Statements that were passed.
    passed: usize,
}

impl Cpu {
    /// Decides which results of a kernel are kept.
    pub(super) fn defer_stores(&mut self, cx: &mut Context<'_>) -> Result<(), Fault> {
        let Some((buffer, stores)) = self.candidates(cx.kernel) else {
            return Ok(());
        };
        let memory = Memory::Global(buffer);
        let element = Self::memory_type(cx, memory);
        let vector = Vector::new(element, self.lanes);
        let is_line = cx.program.buffers[buffer.index()].ty != Scalar::Bool
            && vector.bytes() == LINE
            && stores.iter().all(|(_, to)| self.begins_at_a_line(cx, to));
        if !is_line {
            return Ok(());
        }
        for (_, to) in &stores {
            if self.place(cx, to, 0)?.pattern != Pattern::Row {
                return Ok(());
            }
        }
        let Some(large) = self.non_temporal(cx, buffer)? else {
            return Ok(());
        };
        let name = cx.memory_name(memory).to_string();
        let zero = Expr::atom("0");
        let address = Expr::cast("uintptr_t", &Expr::atom(&name));
        let inside = Expr::binary("&", &address, &number(i128::from(LINE) - 1)?);
        let mut streaming = both(Some(large), Expr::binary("==", &inside, &zero));
        for axis in 0..cx.program.buffers[buffer.index()].axes.len() {
            if let Stride::Named(stride) = cx.stride(memory, axis)? {
                let rest = Expr::binary("%", &Expr::atom(stride), &number(self.lanes.into())?);
                streaming = both(Some(streaming), Expr::binary("==", &rest, &zero));
            }
        }
        let streams = cx.names.claim(&format!("{name}_streams"));
        cx.constants
            .push(format!("const bool {streams} = {};", streaming.text));
        let blocks: Vec<DimId> = cx
            .kernel
            .vars_where(|k| matches!(k, VarKind::Block { .. }))
            .collect();
        let mut coordinates = Vec::new();
        for var in blocks {
            let mentions =
                |(_, to): &(usize, &Access)| to.index.iter().any(|form| form.dims().contains(&var));
            if stores.iter().any(mentions) {
                let wanted = format!("{}_late", cx.dims[var.index()].mention());
                coordinates.push((var, cx.names.claim(&wanted)));
            }
        }
        let own: Vec<String> = rename(cx, &coordinates);
        let mut places = Vec::new();
        for (_, to) in &stores {
            places.push(self.place(cx, to, 0)?.pointer());
        }
        for ((var, _), name) in coordinates.iter().zip(own) {
            cx.dims[var.index()].name = name;
        }
        let first = stores[0].0;
        let groups = stores.len().div_ceil(TOGETHER);
        let mut leaving: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for n in 0..stores.len() {
            let at = first * (n / TOGETHER) / groups;
            leaving.entry(at).or_default().push(n);
        }
        self.streams = true;
        self.deferred = Some(Deferred {
            vector,
            results: stores.iter().map(|s| s.0).zip(0..).collect(),
            leaving,
            places,
            coordinates,
            queue: cx.names.claim(&format!("{name}_late")),
            waiting: cx.names.claim(&format!("{name}_waits")),
            streams,
            passed: 0,
        });
        Ok(())
    }

    /// The stores of a straight line of statements, if they are worth it.
    fn candidates<'a>(&self, kernel: &'a Kernel) -> Option<(BufferId, Vec<(usize, &'a Access)>)> {
        let mut stores: Vec<(usize, &Access)> = Vec::new();
        let mut work = 0;
        for (n, stmt) in kernel.body.iter().enumerate() {
            let does = stmt.effects();
            let copies = does.read.is_some() && does.write.is_some();
            let waits = does.flag.is_some() || does.orders.is_some();
            if copies || waits || !stmt.bodies().is_empty() {
                return None;
            }
            work += usize::from(kernel.is_work(stmt));
            if let Stmt::Store { to, value } = stmt
                && to.when == Cond::TRUE
                && kernel.values[value.index()].shape == Shape::Varying
            {
                stores.push((n, to));
            }
        }
        let Memory::Global(buffer) = stores.first()?.1.memory else {
            return None;
        };
        let hints = &kernel.hints.non_temporal;
        let is_fit = hints.iter().any(|hint| hint.buffer == buffer)
            && stores.iter().all(|s| s.1.memory == Memory::Global(buffer))
            && (FEWEST..=MOST).contains(&stores.len())
            && work >= LEAST_WORK * stores.len();
        is_fit.then_some((buffer, stores))
    }

    /// Does lane 0 go to the first element of a line, if every row begins with one?
    fn begins_at_a_line(&self, cx: &Context<'_>, to: &Access) -> bool {
        let Memory::Global(buffer) = to.memory else {
            return false;
        };
        let axes = &cx.program.buffers[buffer.index()].axes;
        let steady = |form: &Form| form.terms().all(|(atom, _)| matches!(atom, Atom::Dim(_)));
        let whole = |form: &Form| {
            let lanes = i128::from(self.lanes);
            let multiple = |c: Option<i128>| c.is_some_and(|c| c % lanes == 0);
            form.terms().all(|(atom, factor)| match atom {
                Atom::Dim(dim) => Some(*dim) == self.lane || multiple(factor.as_constant()),
                Atom::Floor(..) | Atom::Mod(..) => false,
            }) && multiple(form.constant_part().as_constant())
        };
        let from_zero: Vec<Form> = to
            .index
            .iter()
            .zip(axes)
            .map(|(form, axis)| form.sub(&axis.lo))
            .collect();
        from_zero.iter().all(steady) && from_zero.last().is_some_and(whole)
    }

    /// What leaves before the next statement of the block.
    pub(super) fn let_leave(&mut self, cx: &mut Context<'_>) -> Result<(), Fault> {
        let Some(deferred) = &mut self.deferred else {
            return Ok(());
        };
        deferred.passed += 1;
        let Some(results) = deferred.leaving.remove(&(deferred.passed - 1)) else {
            return Ok(());
        };
        let lines = deferred.departures(cx, results)?;
        cx.lines.open(&format!("if ({})", deferred.waiting));
        for line in lines {
            cx.lines.push(&line);
        }
        cx.lines.close();
        Ok(())
    }

    /// The store of a result that is kept; `None`: the statement that is printed has none.
    pub(super) fn keep(
        &self,
        cx: &mut Context<'_>,
        place: &Expr,
        value: &Expr,
    ) -> Result<Option<String>, Fault> {
        let Some(deferred) = &self.deferred else {
            return Ok(None);
        };
        let Some(n) = deferred.results.get(&(deferred.passed - 1)) else {
            return Ok(None);
        };
        super::transfer::Transfer::Store.function(cx.prelude, deferred.vector)?;
        let name = format!("keep_{}", deferred.vector.name(cx.prelude)?);
        deferred
            .vector
            .add_from(cx.prelude, File::Memory, &name, "keep", &[])?;
        let args = [
            place.clone(),
            value.clone(),
            Expr::unary("&", &Expr::index(&deferred.queue, &number(*n as i128)?)),
            Expr::atom(&deferred.streams),
        ];
        Ok(Some(format!("{};", Expr::call(&name, &args).text)))
    }

    /// The last lines of a block.
    pub(super) fn end_of_block(&self, cx: &mut Context<'_>) {
        if let Some(deferred) = &self.deferred {
            for (var, name) in &deferred.coordinates {
                let own = &cx.dims[var.index()].name;
                cx.lines.push(&format!("{name} = {own};"));
            }
            cx.lines
                .push(&format!("{} = {};", deferred.waiting, deferred.streams));
        }
    }

    /// Declares what is kept, before the first block.
    pub(super) fn declare_deferred(
        &self,
        cx: &mut Context<'_>,
        lines: &mut Lines,
    ) -> Result<(), Fault> {
        if let Some(deferred) = &self.deferred {
            let ty = deferred.vector.name(cx.prelude)?;
            let n = deferred.results.len();
            lines.push(&format!("{ty} {}[{n}] = {{{{0}}}};", deferred.queue));
            for (_, name) in &deferred.coordinates {
                lines.push(&format!("int64_t {name} = 0;"));
            }
            lines.push(&format!("bool {} = false;", deferred.waiting));
        }
        Ok(())
    }

    /// What the last block has kept leaves.
    pub(super) fn end_of_deferred(
        &self,
        cx: &mut Context<'_>,
        lines: &mut Lines,
    ) -> Result<(), Fault> {
        if let Some(deferred) = &self.deferred {
            lines.open(&format!("if ({})", deferred.waiting));
            for line in deferred.departures(cx, (0..deferred.places.len()).collect())? {
                lines.push(&line);
            }
            lines.close();
        }
        Ok(())
    }
}

impl Deferred {
    fn departures(&self, cx: &mut Context<'_>, results: Vec<usize>) -> Result<Vec<String>, Fault> {
        super::transfer::Transfer::Store.function(cx.prelude, self.vector)?;
        cx.prelude.include("immintrin.h");
        let name = format!("leave_{}", self.vector.name(cx.prelude)?);
        self.vector
            .add_from(cx.prelude, File::Memory, &name, "leave", &[])?;
        let mut lines = Vec::new();
        for n in results {
            let result = Expr::index(&self.queue, &number(n as i128)?);
            let call = Expr::call(&name, &[self.places[n].clone(), result]);
            lines.push(format!("{};", call.text));
        }
        Ok(lines)
    }
}

/// Gives variables other names, and returns those that they had.
fn rename(cx: &mut Context<'_>, names: &[(DimId, String)]) -> Vec<String> {
    let rename = |(var, name): &(DimId, String)| {
        std::mem::replace(&mut cx.dims[var.index()].name, name.clone())
    };
    names.iter().map(rename).collect()
}
