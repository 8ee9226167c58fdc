//! Non-temporal stores: stores of whole vectors to the buffers that a kernel's hints name bypass
//! the caches.

use systola_ir::BufferId;
use systola_ir::form::Cond;
use systola_ir::kernel::Memory;

use super::Cpu;
use super::lanes::{Vector, all_lanes};
use super::transfer::Transfer;
use crate::context::Context;
use crate::error::Fault;
use crate::expr::Expr;
use crate::prelude::{File, Prelude};

/// Bytes of the smallest non-temporal store of a vector register.
const PART: u32 = 16;

impl Cpu {
    /// The function that stores whole vectors by non-temporal stores, and the name of the flag that
    /// enables them; `None` for an ordinary store.
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
        if !is_store || vector.bytes() < 32 {
            return Ok(None);
        }
        let Some(large) = self.non_temporal(cx, buffer)? else {
            return Ok(None);
        };
        self.streams = true;
        let mut function = helper(cx.prelude, vector)?;
        if transfer == Transfer::StoreIf {
            transfer.function(cx.prelude, vector)?;
            function = format!("stream_if_{}", vector.name(cx.prelude)?);
            if !cx.prelude.has(&function) {
                let all = all_lanes(vector.lanes);
                let parts = (vector.bytes() / PART).to_string();
                let letters = [('I', all.as_str()), ('E', parts.as_str())];
                vector.add_from(cx.prelude, File::Memory, &function, "stream_if", &letters)?;
            }
        }
        Ok(Some((function, large)))
    }

    /// The condition under which stores to a buffer bypass the caches; `None` if they never do.
    pub(super) fn non_temporal(
        &mut self,
        cx: &mut Context<'_>,
        buffer: BufferId,
    ) -> Result<Option<Expr>, Fault> {
        let hints = &cx.kernel.hints.non_temporal;
        let Some(hint) = hints.iter().find(|hint| hint.buffer == buffer) else {
            return Ok(None);
        };
        let name = self.size_condition(cx, Memory::Global(buffer), &hint.when)?;
        Ok(Some(name))
    }

    /// A condition on the sizes, which gets a name at the top of the function.
    pub(super) fn size_condition(
        &mut self,
        cx: &mut Context<'_>,
        of: Memory,
        cond: &Cond,
    ) -> Result<Expr, Fault> {
        if let Some((_, name)) = self.conditions.iter().find(|known| known.0 == *cond) {
            return Ok(Expr::atom(name));
        }
        let text = cx.cond(cond)?.text;
        let name = cx.names.claim(&format!("{}_large", cx.memory_name(of)));
        cx.constants.push(format!("const bool {name} = {text};"));
        self.conditions.push((cond.clone(), name.clone()));
        Ok(Expr::atom(name))
    }

    /// The statement that makes non-temporal stores visible to threads that wait for this one.
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
    let small = (vector.bytes() / PART).to_string();
    let letters = [
        ('G', register),
        ('D', intrinsic),
        ('C', feature),
        ('K', parts.as_str()),
        ('A', last.as_str()),
        ('E', small.as_str()),
    ];
    vector.add_from(prelude, File::Memory, &name, "stream", &letters)?;
    Ok(name)
}
