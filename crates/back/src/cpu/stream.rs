//! Stores past the cache.
//!
//! A store to a line that is not in the cache reads the line first, and pushes another one out. Where an array is too
//! large to be found in the cache again and nobody reads it in this launch, an output or what a sweep leaves to the next one, whole vectors are written past the
//! cache: nothing is read, and what inputs share stays where it is. How large the array is shows at run time.

use std::collections::BTreeSet;

use systola_ir::form::{Atom, Form};
use systola_ir::kernel::visit::walk;
use systola_ir::kernel::{Access, BufferKind, Kernel, Memory, Program, VarKind};
use systola_ir::{BufferId, DimId};

use super::Cpu;
use super::lanes::{Vector, all_lanes};
use super::transfer::Transfer;
use crate::c_family::Context;
use crate::error::Fault;
use crate::expr::Expr;
use crate::index::number;
use crate::prelude::{File, Prelude};

/// Arrays of at least so many bytes are not expected in the cache by whoever reads them next.
const LARGE: i128 = 32 << 20;

/// The outputs that no kernel reads, and what this one leaves to later launches: temporaries of which it reads other places only.
pub fn write_only(program: &Program, kernel: &Kernel) -> BTreeSet<BufferId> {
    let mut outputs: BTreeSet<BufferId> = (0..program.buffers.len())
        .filter(|n| matches!(program.buffers[*n].kind, BufferKind::Output { .. }))
        .map(BufferId::from)
        .collect();
    for kernel in &program.kernels {
        walk(&kernel.body, &mut |stmt| {
            if let Some(buffer) = stmt.effects().reads().and_then(Memory::buffer) {
                outputs.remove(&buffer);
            }
        });
    }
    // What is stored past the cache a flag does not announce.
    let kind = |n: &usize| &program.buffers[*n].kind;
    let buffers = 0..program.buffers.len();
    if !buffers
        .clone()
        .any(|n| matches!(kind(&n), BufferKind::Flags))
    {
        let temporaries = buffers.filter(|n| matches!(kind(n), BufferKind::Temporary));
        let temporaries = temporaries.map(BufferId::from);
        outputs.extend(temporaries.filter(|buffer| leaves(kernel, *buffer)));
    }
    outputs
}

/// Is a buffer written, and read at other places only?
fn leaves(kernel: &Kernel, buffer: BufferId) -> bool {
    let (mut read, mut written) = (Vec::new(), Vec::new());
    let mut is_looked_up = false;
    walk(&kernel.body, &mut |stmt| {
        let does = stmt.effects();
        let ours = |access: &&Access| access.memory.buffer() == Some(buffer);
        read.extend(does.read.map(|(from, _)| from).filter(ours));
        written.extend(does.write.map(|(to, _)| to).filter(ours));
        is_looked_up |= does.lookup.and_then(Memory::buffer) == Some(buffer);
    });
    !written.is_empty()
        && !is_looked_up
        && (written.iter())
            .all(|to| (read.iter()).all(|from| are_apart(kernel, &to.index, &from.index)))
}

/// Do two places differ along an axis that launches use in turns: as two remainders, of neighbours?
fn are_apart(kernel: &Kernel, to: &[Form], from: &[Form]) -> bool {
    let is_of_launch = |d: DimId| kernel.vars[d.index()].kind == VarKind::Host;
    let differ = |(to, from): (&Form, &Form)| {
        let (Some((a, m)), Some((b, n))) = (remainder(to), remainder(from)) else {
            return false;
        };
        let apart = a.sub(b).as_constant();
        m == n
            && apart.is_some_and(|d| d.rem_euclid(m) != 0)
            && a.dims().into_iter().all(is_of_launch)
    };
    to.iter().zip(from).any(differ)
}

/// What a form is the remainder of, and of a division by what.
fn remainder(form: &Form) -> Option<(&Form, i128)> {
    let mut terms = form.terms();
    match (terms.next(), terms.next()) {
        (Some((Atom::Mod(inner, by), c)), None)
            if c.as_constant() == Some(1) && form.constant_part().as_constant() == Some(0) =>
        {
            Some((inner.as_ref(), *by))
        }
        _ => None,
    }
}

impl Cpu {
    /// The function that does a transfer of whole vectors past the cache, and the name that says whether to; `None`: it goes
    /// through the cache.
    pub(super) fn stream(
        &mut self,
        cx: &mut Context<'_>,
        memory: Memory,
        transfer: Transfer,
        vector: Vector,
    ) -> Result<Option<(String, Expr)>, Fault> {
        let Memory::Global(buffer) = memory else {
            return Ok(None);
        };
        let is_store = matches!(transfer, Transfer::Store | Transfer::StoreIf);
        if !is_store || !self.write_only.contains(&buffer) || vector.bytes() < 32 {
            return Ok(None);
        }
        let Some(large) = self.large(cx, buffer)? else {
            return Ok(None);
        };
        self.streams = true;
        let mut function = helper(cx.prelude, vector)?;
        if transfer == Transfer::StoreIf {
            transfer.function(cx.prelude, vector)?;
            function = format!("stream_if_{}", vector.name(cx.prelude)?);
            if !cx.prelude.has(&function) {
                let all = all_lanes(vector.lanes);
                let letters = [('I', all.as_str())];
                vector.add_from(cx.prelude, File::Memory, &function, "stream_if", &letters)?;
            }
        }
        Ok(Some((function, large)))
    }

    /// The name that says whether an array is large; `None`: it is known that it is not.
    pub(super) fn large(
        &mut self,
        cx: &mut Context<'_>,
        buffer: BufferId,
    ) -> Result<Option<Expr>, Fault> {
        let memory = Memory::Global(buffer);
        let element = i128::from(Self::memory_type(cx, memory).bits() / 8);
        let constant = cx
            .extents(memory)
            .iter()
            .try_fold(element, |product, e| product.checked_mul(e.as_constant()?));
        if constant.is_some_and(|bytes| bytes < LARGE) {
            return Ok(None);
        }
        if let Some(name) = self.large.get(&buffer) {
            return Ok(Some(Expr::atom(name)));
        }
        let name = cx.names.claim(&format!("{}_large", cx.memory_name(memory)));
        let bytes = Expr::binary("*", &cx.volume(memory)?, &number(element)?);
        let test = Expr::binary(">=", &bytes, &number(LARGE)?);
        cx.constants
            .push(format!("const bool {name} = {};", test.text));
        self.large.insert(buffer, name.clone());
        Ok(Some(Expr::atom(name)))
    }

    /// What makes the streamed lines visible to the threads that wait for this one.
    pub(super) fn end_of_streams(&self, cx: &mut Context<'_>) -> Option<String> {
        self.streams.then(|| {
            let name = "end_of_streams";
            cx.prelude.add(name, File::Memory, name, &[]);
            format!("{name}();")
        })
    }
}

fn helper(prelude: &mut Prelude, vector: Vector) -> Result<String, Fault> {
    let name = format!("stream_{}", vector.name(prelude)?);
    if prelude.has(&name) {
        return Ok(name);
    }
    Transfer::Store.function(prelude, vector)?;
    prelude.include("immintrin.h");
    let (register, intrinsic, feature, bytes) = if vector.bytes() >= 64 {
        ("__m512i", "_mm512_stream_si512", "__AVX512F__", 64)
    } else {
        ("__m256i", "_mm256_stream_si256", "__AVX__", 32)
    };
    let parts = (vector.bytes() / bytes).to_string();
    let last = (bytes - 1).to_string();
    let letters = [
        ('G', register),
        ('D', intrinsic),
        ('C', feature),
        ('K', parts.as_str()),
        ('A', last.as_str()),
    ];
    vector.add_from(prelude, File::Memory, &name, "stream", &letters)?;
    Ok(name)
}
