//! A picture as its formats hold it.

use super::has_room;

/// Rows of pixels, each of 1 to 4 samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    pub rows: usize,
    pub columns: usize,
    /// 1: grey, 2: grey and alpha, 3: RGB, 4: RGB and alpha.
    pub channels: usize,
    /// The sample that means full brightness.
    pub most: u16,
    /// `rows * columns * channels` of them.
    pub samples: Vec<u16>,
}

/// Why bytes are no picture, or a picture has no bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PictureError {
    #[error("it is damaged: {0}")]
    Damaged(String),
    #[error("its header promises {rows} x {columns} pixels, more than its {bytes} bytes can hold")]
    Promises {
        rows: u64,
        columns: u64,
        bytes: usize,
    },
    #[error("there is no memory for its {rows} x {columns} pixels")]
    NoMemory { rows: u64, columns: u64 },
    #[error("{0}")]
    Unsupported(String),
}

impl PictureError {
    pub fn damaged(why: impl std::fmt::Display) -> PictureError {
        PictureError::Damaged(why.to_string())
    }
}

/// The number of samples, if `bytes` bytes can hold them at `per_sample` bytes each (at least; a
/// compressed format passes what its best compression makes of them) and memory can.
pub fn n_samples(
    (rows, columns, channels): (u64, u64, u64),
    bytes: usize,
    fit: impl Fn(u64) -> bool,
) -> Result<usize, PictureError> {
    let promises = PictureError::Promises {
        rows,
        columns,
        bytes,
    };
    let n = rows
        .checked_mul(columns)
        .and_then(|n| n.checked_mul(channels));
    let n = n.filter(|n| fit(*n)).ok_or(promises)?;
    let n = usize::try_from(n).map_err(|_| PictureError::NoMemory { rows, columns })?;
    // Samples as they are decoded, and as they are kept.
    match has_room((n as u64).saturating_mul(4)) {
        true => Ok(n),
        false => Err(PictureError::NoMemory { rows, columns }),
    }
}
