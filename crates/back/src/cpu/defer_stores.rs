//! Stores of a block that leave while the next one runs, where a kernel's hints say so.

use std::collections::BTreeMap;

use systola_ir::form::Cond;
use systola_ir::kernel::{Access, Deferred, Kernel, Memory, Shape, Stmt, VarKind};
use systola_ir::{BufferId, DimId};

use super::Cpu;
use super::lanes::Vector;
use super::memory::both;
use super::place::Pattern;
use crate::context::Context;
use crate::error::Fault;
use crate::expr::{Expr, Lines};
use crate::index::{Stride, number};
use crate::prelude::File;

/// What is known of the results that are kept.
#[derive(Debug)]
pub struct Queue {
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
    /// Makes ready what the results of a kernel need that are kept.
    pub(super) fn defer_stores(&mut self, cx: &mut Context<'_>) -> Result<(), Fault> {
        let Some(Deferred { buffer, together }) = cx.kernel.hints.deferred else {
            return Ok(());
        };
        let stores = stores_to(cx.kernel, buffer);
        let memory = Memory::Global(buffer);
        let vector = Vector::new(Self::memory_type(cx, memory), self.lanes);
        for (_, to) in &stores {
            if self.place(cx, to, 0)?.pattern != Pattern::Row {
                return Ok(());
            }
        }
        let (Some(large), Some((first, _))) = (self.non_temporal(cx, buffer)?, stores.first())
        else {
            return Ok(());
        };
        let name = cx.memory_name(memory).to_string();
        let zero = Expr::atom("0");
        let address = Expr::cast("uintptr_t", &Expr::atom(&name));
        let inside = Expr::binary("&", &address, &number(i128::from(vector.bytes()) - 1)?);
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
        let together = together as usize;
        let groups = stores.len().div_ceil(together);
        let mut leaving: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for n in 0..stores.len() {
            let at = first * (n / together) / groups;
            leaving.entry(at).or_default().push(n);
        }
        self.streams = true;
        self.deferred = Some(Queue {
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

impl Queue {
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

/// The unconditional stores of straight-line code, by their statements.
fn stores_to(kernel: &Kernel, buffer: BufferId) -> Vec<(usize, &Access)> {
    let stores = kernel.body.iter().enumerate();
    let stores = stores.filter_map(|(n, stmt)| match stmt {
        Stmt::Store { to, value }
            if to.memory == Memory::Global(buffer)
                && to.when == Cond::TRUE
                && kernel.values[value.index()].shape == Shape::Varying =>
        {
            Some((n, to))
        }
        _ => None,
    });
    stores.collect()
}

/// Gives variables other names, and returns those that they had.
fn rename(cx: &mut Context<'_>, names: &[(DimId, String)]) -> Vec<String> {
    let rename = |(var, name): &(DimId, String)| {
        std::mem::replace(&mut cx.dims[var.index()].name, name.clone())
    };
    names.iter().map(rename).collect()
}
