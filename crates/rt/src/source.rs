//! The output of a back end: C, and how to call it.

use systola_ir::Poly;

use crate::error::Error;

/// C for a program of kernels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    pub code: String,
    /// The exported function of each kernel of the program, in order.
    pub symbols: Vec<String>,
    /// The per-thread memory of each kernel, in order. Every part starts at a multiple of
    /// [`ScratchPart::ALIGN`], the first at 0.
    pub scratch: Vec<Vec<ScratchPart>>,
    /// For the compiler, before the flags that make a shared library.
    pub flags: Vec<String>,
}

/// An array in per-thread memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScratchPart {
    /// Extents in the parameters; a negative one counts as 0.
    pub extents: Vec<Poly>,
    /// Bytes of one element.
    pub bytes: u64,
}

impl ScratchPart {
    pub const ALIGN: u64 = 64;

    fn size(&self, params: &[i128]) -> Option<u64> {
        array_bytes(&self.extents, self.bytes, params)?.checked_next_multiple_of(Self::ALIGN)
    }
}

/// Bytes of an array with elements of `element` bytes, at these sizes.
pub(crate) fn array_bytes(extents: &[Poly], element: u64, params: &[i128]) -> Option<u64> {
    let mut size = i128::from(element);
    for extent in extents {
        size = size.checked_mul(extent.eval(params).ok()?.max(0))?;
    }
    u64::try_from(size).ok()
}

/// Bytes of per-thread memory that the parts need.
pub(crate) fn scratch_bytes(parts: &[ScratchPart], params: &[i128]) -> Result<usize, Error> {
    parts
        .iter()
        .try_fold(0u64, |sum, part| sum.checked_add(part.size(params)?))
        .and_then(|sum| usize::try_from(sum).ok())
        .ok_or_else(|| Error::overflow("the scratch memory of a thread"))
}

#[cfg(test)]
mod tests {
    use systola_ir::ParamId;

    use super::*;

    fn part(extents: Vec<Poly>, bytes: u64) -> ScratchPart {
        ScratchPart { extents, bytes }
    }

    #[test]
    fn parts_start_at_multiples_of_the_alignment() {
        let n = Poly::param(ParamId(0));
        let parts = [
            part(vec![n.clone()], 4),
            part(vec![n.clone(), Poly::constant(3)], 8),
            part(vec![Poly::constant(-5)], 8),
        ];
        assert_eq!(scratch_bytes(&parts, &[5]).unwrap(), 64 + 128);
        assert_eq!(scratch_bytes(&parts, &[0]).unwrap(), 0);
        assert_eq!(scratch_bytes(&[], &[5]).unwrap(), 0);
    }

    #[test]
    fn too_much_is_an_error() {
        let n = Poly::param(ParamId(0));
        let parts = [part(vec![n.clone(), n], 8)];
        let error = scratch_bytes(&parts, &[1 << 40]).unwrap_err();
        assert!(matches!(error, Error::Overflow { .. }));
    }
}
