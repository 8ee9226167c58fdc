//! Arrays in shared memory: of a fixed size, or part of the memory that a launch provides.

use systola_ir::SharedId;
use systola_ir::kernel::{Kernel, Memory};

use super::memory::stored_type;
use super::{Dynamic, Language, Space};
use crate::artifact::SharedArray;
use crate::context::Context;
use crate::error::Fault;
use crate::expr::Expr;
use crate::index::{Sum, number};
use crate::scalar::c_type;

/// The largest size of shared memory that the source may declare.
const MOST_STATIC: i128 = 48 << 10;
/// Every shared array starts at a multiple of this number of bytes.
pub const SHARED_ALIGN: u64 = 16;

pub fn shared_sizes(kernel: &Kernel) -> Vec<SharedArray> {
    let arrays = kernel.shared.iter().map(|s| SharedArray {
        extents: s.extents.clone(),
        element_bytes: u64::from(s.ty.bits() / 8),
    });
    arrays.collect()
}

/// The bytes of all shared arrays, if they are known.
pub fn static_bytes(cx: &Context<'_>) -> Option<u64> {
    let align = i128::from(SHARED_ALIGN);
    let mut total = 0i128;
    for (n, shared) in cx.kernel.shared.iter().enumerate() {
        let extents = cx.extents(Memory::Shared(SharedId::from(n)));
        let bytes = extents
            .iter()
            .try_fold(i128::from(shared.ty.bits() / 8), |product, extent| {
                product.checked_mul(extent.as_constant()?.max(0))
            })?;
        total = total.checked_add((bytes + align - 1) / align * align)?;
    }
    u64::try_from(total).ok()
}

/// Declarations of the shared arrays, and whether the launch has to provide their memory.
pub fn shared_arrays<L: Language>(
    cx: &mut Context<'_>,
    language: &L,
) -> Result<(Vec<String>, bool), Fault> {
    let is_static = static_bytes(cx).is_some_and(|bytes| i128::from(bytes) <= MOST_STATIC);
    let mut lines = Vec::new();
    if !cx.shared.iter().any(|s| s.used) {
        return Ok((lines, false));
    }
    if is_static {
        for n in 0..cx.shared.len() {
            let memory = Memory::Shared(SharedId::from(n));
            let ty = c_type(stored_type(cx, memory))?;
            let mut count = 1i128;
            for extent in cx.extents(memory) {
                count *= extent.as_constant().unwrap_or(0).max(0);
            }
            if cx.shared[n].used {
                let (name, count) = (&cx.shared[n].name, count.max(1));
                lines.push(language.shared_array(ty, name, count));
            }
        }
        return Ok((lines, false));
    }
    let Dynamic { line, bytes, .. } = language.dynamic_shared();
    lines.extend(line.map(str::to_string));
    let space = language.space(Space::Shared);
    // The offset of the next array in bytes.
    let mut known = 0i128;
    let mut symbolic = Sum::default();
    let last = cx.shared.iter().rposition(|s| s.used).unwrap_or(0);
    for n in 0..=last {
        let memory = Memory::Shared(SharedId::from(n));
        let ty = stored_type(cx, memory);
        if cx.shared[n].used {
            let mut offset = symbolic.clone();
            offset.add_number(known)?;
            let offset = offset.finish();
            let first = Expr::atom(bytes);
            let start = if offset.text == "0" {
                first
            } else {
                Expr::binary("+", &first, &offset)
            };
            let (c, name) = (c_type(ty)?, &cx.shared[n].name);
            let start = Expr::cast(&format!("{space}{c} *"), &start);
            lines.push(format!("{space}{c} *const {name} = {};", start.text));
        }
        let size = i128::from(ty.bits() / 8);
        let extents = cx.extents(memory);
        let constant = extents
            .iter()
            .try_fold(size, |product, e| product.checked_mul(e.as_constant()?));
        let align = i128::from(SHARED_ALIGN);
        match constant {
            Some(bytes) => known += (bytes.max(0) + align - 1) / align * align,
            None if n == last => {}
            None => {
                let whole = Expr::binary("*", &cx.volume(memory)?, &number(size)?);
                let up = Expr::binary("+", &whole, &number(align - 1)?);
                let mask = number(-align)?;
                let whole = Expr::binary("&", &up, &mask);
                symbolic.add(1, &whole)?;
            }
        }
    }
    Ok((lines, true))
}
