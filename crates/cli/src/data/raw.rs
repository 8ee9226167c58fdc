//! Elements one after the other, little endian, without a header: the sizes give the shape.

use std::path::Path;

use systola_interp::npy;
use systola_interp::tensor::{Tensor, n_elements};

use super::Wanted;
use crate::files::{self, ReadError};

/// The inner error says what does not fit.
pub fn read(path: &Path, wanted: &Wanted<'_>) -> Result<Result<Tensor, String>, ReadError> {
    let width = wanted.ty.bits().div_ceil(8) as usize;
    let known: Option<Vec<usize>> = wanted.extents.iter().copied().collect();
    let expect = known.and_then(|shape| n_elements(&shape)?.checked_mul(width));
    let bytes = files::read_up_to(path, expect)?;
    if let Some(expect) = expect.filter(|expect| bytes.len() > *expect) {
        return Ok(Err(format!(
            "it has more than the {expect} bytes that the sizes ask for"
        )));
    }
    if !bytes.len().is_multiple_of(width) {
        let (ty, n) = (wanted.ty, bytes.len());
        return Ok(Err(format!(
            "its {n} bytes are no whole number of elements of {ty}, which have {width} bytes"
        )));
    }
    Ok(
        shape(bytes.len() / width, wanted.extents).map(|shape| Tensor {
            lo: vec![0; shape.len()],
            shape,
            data: npy::decode(wanted.ty, &bytes),
        }),
    )
}

/// The shape of `n` elements, of which at most one extent may be unknown.
pub fn shape(n: usize, extents: &[Option<usize>]) -> Result<Vec<usize>, String> {
    let known: Vec<usize> = extents.iter().flatten().copied().collect();
    let product = n_elements(&known).ok_or("its shape is too large")?;
    let show = |shape: &[Option<usize>]| {
        let extent = |e: &Option<usize>| e.map_or("?".to_string(), |e| e.to_string());
        shape.iter().map(extent).collect::<Vec<_>>().join(" x ")
    };
    match extents.len() - known.len() {
        0 if product == n => Ok(known),
        0 => {
            let expect = match known.len() {
                0 => "1".to_string(),
                1 => product.to_string(),
                _ => format!("{product} ({})", show(extents)),
            };
            Err(format!("it has {n} elements, the sizes ask for {expect}"))
        }
        1 if product > 0 && n.is_multiple_of(product) => {
            Ok(extents.iter().map(|e| e.unwrap_or(n / product)).collect())
        }
        1 => Err(format!(
            "it has {n} elements, which is no multiple of {product}; its shape is {}",
            show(extents)
        )),
        _ => Err(format!(
            "it has {n} elements, and the sizes tell of its shape only {}",
            show(extents)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_extent_follows_from_the_length() {
        assert_eq!(shape(6, &[Some(2), Some(3)]), Ok(vec![2, 3]));
        assert_eq!(shape(6, &[Some(2), None]), Ok(vec![2, 3]));
        assert_eq!(shape(6, &[None]), Ok(vec![6]));
        assert_eq!(shape(1, &[]), Ok(vec![]));
        let refused = |n, extents: &[Option<usize>], part: &str| {
            let why = shape(n, extents).unwrap_err();
            assert!(why.contains(part), "{why}");
        };
        refused(7, &[Some(2), Some(3)], "ask for 6 (2 x 3)");
        refused(7, &[Some(2), None], "no multiple of 2");
        refused(6, &[Some(0), None], "no multiple of 0");
        refused(6, &[None, None], "only ? x ?");
        refused(2, &[], "ask for 1");
    }
}
