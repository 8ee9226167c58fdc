//! PNG, through the crate `png`.

use std::io::Cursor;

use png::{BitDepth, ColorType, Transformations};

use super::picture::{Picture, PictureError, n_samples};

/// The first bytes of a file.
pub const MAGIC: &[u8] = b"\x89PNG\r\n\x1a\n";

/// Deflate makes at most this many bytes of one.
const BEST_COMPRESSION: u64 = 1032;

/// Palettes and samples of 1, 2 and 4 bits are expanded to 8 bits.
pub fn read(bytes: &[u8]) -> Result<Picture, PictureError> {
    let mut decoder = png::Decoder::new(Cursor::new(bytes));
    decoder.set_transformations(Transformations::EXPAND);
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    let header = decoder.read_header_info().map_err(PictureError::damaged)?;
    let size = (u64::from(header.height), u64::from(header.width));
    let bits = header.bits_per_pixel() as u64;
    let most = (bytes.len() as u64).saturating_mul(BEST_COMPRESSION);
    let fits = |n: u64| n.checked_mul(bits).is_some_and(|bits| bits / 8 <= most);
    // Before anything is allocated for a line.
    n_samples((size.0, size.1, 1), bytes.len(), fits)?;
    let mut reader = decoder.read_info().map_err(PictureError::damaged)?;
    let (colour, depth) = reader.output_color_type();
    let channels = colour.samples();
    let n = n_samples((size.0, size.1, channels as u64), bytes.len(), |_| true)?;
    let n_bytes = reader.output_buffer_size();
    let n_bytes = n_bytes.ok_or_else(|| PictureError::damaged("its lines are too long"))?;
    let mut data = vec![0; n_bytes];
    reader
        .next_frame(&mut data)
        .map_err(PictureError::damaged)?;
    reader.finish().map_err(PictureError::damaged)?;
    let (most, samples) = match depth {
        BitDepth::Sixteen => {
            let (pairs, _) = data.as_chunks::<2>();
            let samples: Vec<u16> = pairs.iter().map(|pair| u16::from_be_bytes(*pair)).collect();
            (u16::MAX, samples)
        }
        BitDepth::One | BitDepth::Two | BitDepth::Four | BitDepth::Eight => {
            (255, data.iter().map(|byte| u16::from(*byte)).collect())
        }
    };
    if samples.len() != n {
        return Err(PictureError::damaged("its data has another length"));
    }
    Ok(Picture {
        rows: size.0 as usize,
        columns: size.1 as usize,
        channels,
        most,
        samples,
    })
}

/// With 16 bits where the picture has more than 8.
pub fn write(picture: &Picture) -> Result<Vec<u8>, PictureError> {
    let (width, height) = (side(picture.columns)?, side(picture.rows)?);
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(colour(picture.channels));
    let is_deep = picture.most > 255;
    encoder.set_depth(match is_deep {
        true => BitDepth::Sixteen,
        false => BitDepth::Eight,
    });
    let data: Vec<u8> = match is_deep {
        true => picture
            .samples
            .iter()
            .flat_map(|s| s.to_be_bytes())
            .collect(),
        false => picture.samples.iter().map(|s| *s as u8).collect(),
    };
    let mut writer = encoder.write_header().map_err(unwritten)?;
    writer.write_image_data(&data).map_err(unwritten)?;
    writer.finish().map_err(unwritten)?;
    Ok(bytes)
}

pub fn colour(channels: usize) -> ColorType {
    match channels {
        1 => ColorType::Grayscale,
        2 => ColorType::GrayscaleAlpha,
        3 => ColorType::Rgb,
        _ => ColorType::Rgba,
    }
}

/// The width or height of a picture.
pub fn side(n: usize) -> Result<u32, PictureError> {
    let fits = u32::try_from(n).ok().filter(|n| (1..1 << 31).contains(n));
    fits.ok_or_else(|| PictureError::Unsupported(format!("a PNG has no side of {n} pixels")))
}

pub fn unwritten(error: png::EncodingError) -> PictureError {
    PictureError::Unsupported(error.to_string())
}
