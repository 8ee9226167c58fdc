//! Defers the stores of a block until the next block runs, where a kernel's hints request it.

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

/// The deferred results of a kernel.
#[derive(Debug)]
pub struct Queue {
    vector: Vector,
    /// The number of each result, by the statement that stores it.
    results: BTreeMap<usize, usize>,
    /// The results that are stored before each statement.
    due: BTreeMap<usize, Vec<usize>>,
    /// Where they are stored: addresses in terms of the block that computed them.
    places: Vec<Expr>,
    /// The coordinates of that block.
    coordinates: Vec<(DimId, String)>,
    /// Names: the array of results, the flag that it has results, and the flag that results are
    /// deferred.
    queue: String,
    waiting: String,
    streams: String,
    /// The number of statements printed so far.
    printed: usize,
}

impl Cpu {
    /// Prepares the deferred stores of a kernel.
    pub(super) fn defer_stores(&mut self, cx: &mut Context<'_>) -> Result<(), Fault> {
        let Some(Deferred { buffer, group_size }) = cx.kernel.hints.deferred else {
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
            match cx.stride(memory, axis)? {
                Stride::Named(stride) => {
                    let rest = Expr::binary("%", &Expr::atom(stride), &number(self.lanes.into())?);
                    streaming = both(Some(streaming), Expr::binary("==", &rest, &zero));
                }
                // Neighbours within a row.
                Stride::Const(1) => {}
                // Rows that do not all begin at a line.
                Stride::Const(stride) if stride % i128::from(self.lanes) != 0 => return Ok(()),
                Stride::Const(_) => {}
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
        let group_size = group_size as usize;
        let groups = stores.len().div_ceil(group_size);
        let mut due: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for n in 0..stores.len() {
            let at = first * (n / group_size) / groups;
            due.entry(at).or_default().push(n);
        }
        self.streams = true;
        self.deferred = Some(Queue {
            vector,
            results: stores.iter().map(|s| s.0).zip(0..).collect(),
            due,
            places,
            coordinates,
            queue: cx.names.claim(&format!("{name}_late")),
            waiting: cx.names.claim(&format!("{name}_waits")),
            streams,
            printed: 0,
        });
        Ok(())
    }

    /// Prints the deferred stores that are due before the next statement of the block.
    pub(super) fn print_due_stores(&mut self, cx: &mut Context<'_>) -> Result<(), Fault> {
        let Some(deferred) = &mut self.deferred else {
            return Ok(());
        };
        deferred.printed += 1;
        let Some(results) = deferred.due.remove(&(deferred.printed - 1)) else {
            return Ok(());
        };
        let lines = deferred.store_lines(cx, results)?;
        cx.lines.open(&format!("if ({})", deferred.waiting));
        for line in lines {
            cx.lines.push(&line);
        }
        cx.lines.close();
        Ok(())
    }

    /// The line that keeps a result for later; `None` if the current statement stores none.
    pub(super) fn keep(
        &self,
        cx: &mut Context<'_>,
        place: &Expr,
        value: &Expr,
    ) -> Result<Option<String>, Fault> {
        let Some(deferred) = &self.deferred else {
            return Ok(None);
        };
        let Some(n) = deferred.results.get(&(deferred.printed - 1)) else {
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

    /// Prints the last lines of a block.
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

    /// Declares the deferred results, before the first block.
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

    /// Stores the results of the last block.
    pub(super) fn end_of_deferred(
        &self,
        cx: &mut Context<'_>,
        lines: &mut Lines,
    ) -> Result<(), Fault> {
        if let Some(deferred) = &self.deferred {
            lines.open(&format!("if ({})", deferred.waiting));
            for line in deferred.store_lines(cx, (0..deferred.places.len()).collect())? {
                lines.push(&line);
            }
            lines.close();
        }
        Ok(())
    }
}

impl Queue {
    fn store_lines(&self, cx: &mut Context<'_>, results: Vec<usize>) -> Result<Vec<String>, Fault> {
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

/// The unconditional stores in straight-line code, with the positions of their statements.
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

/// Renames variables, and returns their previous names.
fn rename(cx: &mut Context<'_>, names: &[(DimId, String)]) -> Vec<String> {
    let rename = |(var, name): &(DimId, String)| {
        std::mem::replace(&mut cx.dims[var.index()].name, name.clone())
    };
    names.iter().map(rename).collect()
}
