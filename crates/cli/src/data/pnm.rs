//! Netpbm: PGM and PPM, as text (P2, P3) and binary (P5, P6).

use std::path::Path;

use super::picture::{Picture, PictureError, n_samples};

pub fn read(bytes: &[u8]) -> Result<Picture, PictureError> {
    let (is_text, channels) = match bytes.get(..2) {
        Some(b"P2") => (true, 1),
        Some(b"P3") => (true, 3),
        Some(b"P5") => (false, 1),
        Some(b"P6") => (false, 3),
        _ => {
            let why = "it starts with none of P2, P3, P5 and P6";
            return Err(PictureError::damaged(why));
        }
    };
    let mut rest = Scanner(&bytes[2..]);
    let columns = rest.number("its width")?;
    let rows = rest.number("its height")?;
    let most = rest.number("its largest sample")?;
    let most = u16::try_from(most).ok().filter(|most| *most > 0);
    let most = most.ok_or_else(|| PictureError::damaged("its largest sample is not 1 to 65535"))?;
    if !is_text {
        // One white space ends the header.
        rest.0 = rest.0.get(1..).unwrap_or_default();
    }
    let width: u64 = if most > 255 { 2 } else { 1 };
    let length = rest.0.len();
    let fits = |n: u64| match is_text {
        // A digit and a space, but for the last.
        true => n <= (length as u64).div_ceil(2),
        false => n.checked_mul(width).is_some_and(|n| n <= length as u64),
    };
    let n = n_samples((rows, columns, channels), length, fits)?;
    let samples: Vec<u16> = if is_text {
        let mut samples = Vec::with_capacity(n);
        for _ in 0..n {
            let sample = rest.number("a sample")?;
            samples.push(u16::try_from(sample).unwrap_or(u16::MAX));
            if sample > u64::from(most) {
                return Err(above(sample, most));
            }
        }
        rest.skip();
        if !rest.0.is_empty() {
            return Err(PictureError::damaged("text follows its last sample"));
        }
        samples
    } else {
        if n as u64 * width != length as u64 {
            let expect = n as u64 * width;
            let why = format!("its data should have {expect} bytes and has {length}");
            return Err(PictureError::Damaged(why));
        }
        match width {
            1 => rest.0.iter().map(|byte| u16::from(*byte)).collect(),
            _ => {
                let (pairs, _) = rest.0.as_chunks::<2>();
                pairs.iter().map(|pair| u16::from_be_bytes(*pair)).collect()
            }
        }
    };
    match samples.iter().find(|sample| **sample > most) {
        Some(sample) => Err(above((*sample).into(), most)),
        None => Ok(Picture {
            rows: rows as usize,
            columns: columns as usize,
            channels: channels as usize,
            most,
            samples,
        }),
    }
}

fn above(sample: u64, most: u16) -> PictureError {
    PictureError::Damaged(format!(
        "a sample is {sample}, the largest should be {most}"
    ))
}

/// Grey as P5, colours as P6. The ending `.pgm` takes grey only, `.ppm` colours only.
pub fn write(picture: &Picture, path: &Path) -> Result<Vec<u8>, PictureError> {
    let magic = magic(picture.channels, path)?;
    let Picture {
        rows,
        columns,
        most,
        ..
    } = picture;
    let mut bytes = format!("{magic}\n{columns} {rows}\n{most}\n").into_bytes();
    match most {
        0..=255 => bytes.extend(picture.samples.iter().map(|s| *s as u8)),
        _ => bytes.extend(picture.samples.iter().flat_map(|s| s.to_be_bytes())),
    }
    Ok(bytes)
}

/// The first characters of a file of this name for pixels of this number of channels.
pub fn magic(channels: usize, path: &Path) -> Result<&'static str, PictureError> {
    let ending = path.extension().map(|e| e.to_string_lossy().to_lowercase());
    let why = match (channels, ending.as_deref()) {
        (1, Some("ppm")) => "a .ppm has colours, the array has none; use .pgm",
        (3, Some("pgm")) => "a .pgm has no colours; use .ppm",
        (1, _) => return Ok("P5"),
        (3, _) => return Ok("P6"),
        _ => "this format has no alpha channel; use .png",
    };
    Err(PictureError::Unsupported(why.to_string()))
}

/// The rest of a file.
struct Scanner<'a>(&'a [u8]);

impl Scanner<'_> {
    /// White space and comments.
    fn skip(&mut self) {
        loop {
            self.0 = self.0.trim_ascii_start();
            if self.0.first() != Some(&b'#') {
                return;
            }
            let end = self.0.iter().position(|byte| *byte == b'\n');
            self.0 = &self.0[end.unwrap_or(self.0.len())..];
        }
    }

    fn number(&mut self, what: &str) -> Result<u64, PictureError> {
        self.skip();
        let end = self.0.iter().position(|byte| !byte.is_ascii_digit());
        let (digits, rest) = self.0.split_at(end.unwrap_or(self.0.len()));
        self.0 = rest;
        let number = str::from_utf8(digits).ok().and_then(|d| d.parse().ok());
        number.ok_or_else(|| PictureError::Damaged(format!("{what} is not a number")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_four_kinds_are_read() {
        let grey = Picture {
            rows: 2,
            columns: 3,
            channels: 1,
            most: 9,
            samples: vec![1, 2, 3, 4, 5, 9],
        };
        let text = b"P2 # a comment\n3 2\n# another\n9\n1 2 3\n4 5 9\n";
        assert_eq!(read(text), Ok(grey.clone()));
        assert_eq!(read(b"P5\n3 2\n9\n\x01\x02\x03\x04\x05\x09"), Ok(grey));
        let colour = Picture {
            rows: 1,
            columns: 2,
            channels: 3,
            most: 300,
            samples: vec![1, 2, 300, 0, 0, 7],
        };
        assert_eq!(read(b"P3 2 1 300 1 2 300 0 0 7"), Ok(colour.clone()));
        let binary = b"P6 2 1 300\n\x00\x01\x00\x02\x01\x2c\x00\x00\x00\x00\x00\x07";
        assert_eq!(read(binary), Ok(colour.clone()));
        assert_eq!(write(&colour, Path::new("x.ppm")).unwrap().len(), 11 + 12);
        let again = write(&colour, Path::new("x.pnm")).unwrap();
        assert_eq!(read(&again), Ok(colour.clone()));
        assert!(write(&colour, Path::new("x.pgm")).is_err());
    }

    #[test]
    fn what_is_no_picture_is_refused() {
        let refused = |bytes: &[u8], part: &str| {
            let why = read(bytes).unwrap_err().to_string();
            assert!(why.contains(part), "{why}");
        };
        refused(b"P1 1 1 1", "none of P2");
        refused(b"", "none of P2");
        refused(b"P5 3 2 9\n\x01", "more than its 1 bytes");
        refused(b"P5 1000000 1000000 255\n", "1000000 x 1000000");
        refused(b"P2 99999999999 99999999999 255\n", "more than its");
        refused(b"P5 1 1 0\n\x01", "largest sample");
        refused(b"P5 1 1 255\n\x01\x02", "should have 1 bytes");
        refused(b"P2 1 1 5 6", "a sample is 6");
        refused(b"P5 1 1 5\n\x06", "a sample is 6");
        refused(b"P2 1 x", "its height");
    }
}
