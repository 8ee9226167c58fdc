//! Files with data: their formats, by the ending of a name or by a prefix.
//!
//! | ending | prefix | what |
//! |---|---|---|
//! | `.npy` | `npy:` | NumPy's format |
//! | `.png` | `png:` | a picture |
//! | `.pgm`, `.ppm`, `.pnm` | `pnm:` | a picture |
//! | `.raw`, `.bin` | `raw:` | little-endian elements, without a header |
//! | `.txt` | `text:`, `numbers:` | characters for one axis of u8, else numbers |
//! | `.csv` | `csv:` | numbers, with commas |
//! | `.gif` | `gif:` | the frames of a run; only written |
//!
//! A name without an ending is NumPy's format.

use std::path::{Path, PathBuf};

use systola::rt::memory;
use systola_interp::npy;
use systola_interp::tensor::{Tensor, check_room};
use systola_ir::codes::{Code, run as codes};
use systola_ir::{Diagnostic, Scalar, Span};

use crate::files::{self, ReadError};

pub mod animation;
pub mod colours;
mod numbers;
mod picture;
mod pixels;
mod png;
mod pnm;
mod raw;
mod text;

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Npy,
    Png,
    Pnm,
    Raw,
    /// `.txt`: characters or numbers, by the declaration.
    Txt,
    Text,
    Numbers,
    Csv,
    Gif,
}

const PREFIXES: [(&str, Format); 8] = [
    ("npy", Format::Npy),
    ("png", Format::Png),
    ("pnm", Format::Pnm),
    ("raw", Format::Raw),
    ("text", Format::Text),
    ("numbers", Format::Numbers),
    ("csv", Format::Csv),
    ("gif", Format::Gif),
];

const ENDINGS: [(&str, Format); 11] = [
    ("npy", Format::Npy),
    ("png", Format::Png),
    ("apng", Format::Png),
    ("pgm", Format::Pnm),
    ("ppm", Format::Pnm),
    ("pnm", Format::Pnm),
    ("raw", Format::Raw),
    ("bin", Format::Raw),
    ("txt", Format::Txt),
    ("csv", Format::Csv),
    ("gif", Format::Gif),
];

/// An array of the command line with its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataFile {
    /// The input or output.
    pub name: String,
    pub path: PathBuf,
    /// None where the ending is unknown.
    pub format: Option<Format>,
}

/// `NAME=FILE` or `NAME=FORMAT:FILE`, for clap.
pub fn parse(text: &str) -> Result<DataFile, String> {
    let (name, file) = match text.split_once('=') {
        Some((name, file)) if !name.is_empty() && !file.is_empty() => (name, file),
        _ => return Err("write it as NAME=FILE, for instance x=x.npy".to_string()),
    };
    let prefixed = file.split_once(':').and_then(|(prefix, path)| {
        let known = PREFIXES.into_iter().find(|(name, _)| *name == prefix);
        known.map(|(_, format)| (format, path))
    });
    let (format, path) = match prefixed {
        Some((_, "")) => return Err(format!("`{file}` names no file")),
        Some((format, path)) => (Some(format), PathBuf::from(path)),
        None => (by_ending(Path::new(file)), PathBuf::from(file)),
    };
    Ok(DataFile {
        name: name.to_string(),
        path,
        format,
    })
}

fn by_ending(path: &Path) -> Option<Format> {
    let Some(ending) = path.extension() else {
        return Some(Format::Npy);
    };
    let ending = ending.to_string_lossy().to_lowercase();
    let known = ENDINGS.into_iter().find(|(name, _)| *name == ending);
    known.map(|(_, format)| format)
}

/// What an array is read for.
pub struct Wanted<'a> {
    pub ty: Scalar,
    /// The extent of each axis, as far as the sizes are known.
    pub extents: &'a [Option<usize>],
}

/// What became of data on its way in or out, if it is not obvious.
pub type Remarks = Vec<String>;

/// The bytes of a file, and remarks on them.
pub type Encoded = (Vec<u8>, Remarks);

impl DataFile {
    /// The format; an unknown ending is a mistake.
    pub fn format(&self) -> Result<Format, Diagnostic> {
        self.format.ok_or_else(|| {
            let message = format!("the ending of `{}` names no format", self.path.display());
            let prefixes: Vec<String> = PREFIXES.iter().map(|(p, _)| format!("{p}:")).collect();
            Diagnostic::new(&codes::UNKNOWN_FORMAT, Span::NONE, message).help(format!(
                "use one of {}, or write the format before the name: {}",
                ENDINGS.map(|(ending, _)| format!(".{ending}")).join(", "),
                prefixes.join(" ")
            ))
        })
    }

    /// Does the shape of the array follow from the sizes, rather than sizes from the shape?
    pub fn needs_sizes(&self, rank: usize) -> bool {
        match self.format {
            Some(Format::Raw) => true,
            Some(Format::Png | Format::Pnm | Format::Txt | Format::Numbers | Format::Csv) => {
                rank > 2
            }
            Some(Format::Npy | Format::Text | Format::Gif) | None => false,
        }
    }

    /// Reads the array of an input.
    pub fn read(&self, wanted: &Wanted<'_>) -> Result<(Tensor, Remarks), ReadError> {
        let name = self.path.display().to_string();
        let refused = |code, why: String| {
            let message = format!("`{name}` cannot be read: {why}");
            let found = Diagnostic::new(code, Span::NONE, message);
            ReadError::Refused(found.help(way_out(code)))
        };
        let plain = |tensor| (tensor, Remarks::new());
        let one_axis_of_bytes = wanted.extents.len() == 1 && wanted.ty == Scalar::U8;
        match self.format().map_err(ReadError::Refused)? {
            Format::Npy => Ok(plain(files::read_array(&self.path, wanted.ty)?)),
            Format::Png | Format::Pnm => {
                let read = match self.format {
                    Some(Format::Png) => png::read,
                    _ => pnm::read,
                };
                let starts = match self.format {
                    Some(Format::Png) => png::MAGIC,
                    _ => b"P",
                };
                let bytes = files::read_bytes(&self.path, starts)?;
                let picture =
                    read(&bytes).map_err(|e| refused(&codes::MALFORMED_PICTURE, e.to_string()))?;
                drop(bytes);
                let (tensor, remarks) = pixels::tensor(&picture, wanted)
                    .map_err(|why| refused(&codes::NO_PICTURE, why))?;
                let named = |remark| format!("{name}: {remark}");
                Ok((tensor, remarks.into_iter().map(named).collect()))
            }
            Format::Raw => raw::read(&self.path, wanted)?
                .map(plain)
                .map_err(|why| refused(&codes::WRONG_LENGTH, why)),
            format if format == Format::Text || (format == Format::Txt && one_axis_of_bytes) => {
                let bytes = files::read_bytes(&self.path, b"")?;
                let found = text::read(bytes, wanted);
                found
                    .map(plain)
                    .map_err(|why| refused(&codes::MALFORMED_NUMBERS, why))
            }
            Format::Text | Format::Txt | Format::Numbers | Format::Csv => {
                let bytes = files::read_bytes(&self.path, b"")?;
                let found = numbers::read(&bytes, wanted);
                found
                    .map(plain)
                    .map_err(|why| refused(&codes::MALFORMED_NUMBERS, why))
            }
            Format::Gif => {
                let why = "GIF is a format for results only; convert it to PNG";
                Err(refused(&codes::MALFORMED_PICTURE, why.to_string()))
            }
        }
    }

    /// The bytes of the file for an array.
    pub fn encode(&self, tensor: &Tensor) -> Result<Encoded, Diagnostic> {
        let plain = |bytes| Ok((bytes, Remarks::new()));
        match self.format()? {
            Format::Npy => plain(npy::write(tensor)),
            Format::Raw => plain(npy::encode(&tensor.data)),
            Format::Csv => plain(numbers::write(tensor, ",")),
            Format::Numbers => plain(numbers::write(tensor, " ")),
            Format::Text => text::write(tensor)
                .map(|bytes| (bytes, Remarks::new()))
                .map_err(|why| self.cannot_show(&why)),
            Format::Txt => match tensor.rank() == 1 && tensor.ty() == Scalar::U8 {
                true => text::write(tensor)
                    .map(|bytes| (bytes, Remarks::new()))
                    .map_err(|why| self.cannot_show(&why)),
                false => plain(numbers::write(tensor, " ")),
            },
            Format::Png | Format::Pnm => {
                let (picture, remark) =
                    pixels::picture(tensor).map_err(|why| self.cannot_show(&why))?;
                let bytes = match self.format {
                    Some(Format::Png) => png::write(&picture),
                    _ => pnm::write(&picture, &self.path),
                };
                let bytes = bytes.map_err(|why| self.cannot_show(&why.to_string()))?;
                let named = |remark| format!("{}: {remark}", self.path.display());
                Ok((bytes, remark.into_iter().map(named).collect()))
            }
            Format::Gif => Err(self.cannot_show("a GIF shows the frames of a run: add --frames")),
        }
    }

    /// Can the format hold arrays of this type with these extents, as far as they are known?
    pub fn check_extents(&self, extents: &[Option<usize>], ty: Scalar) -> Result<(), Diagnostic> {
        let format = self.format()?;
        match format {
            Format::Png | Format::Pnm | Format::Gif => {
                let channels = pixels::channels(extents).map_err(|why| self.cannot_show(&why))?;
                match (format, channels) {
                    (Format::Pnm, Some(channels)) => pnm::magic(channels, &self.path)
                        .map(|_| ())
                        .map_err(|why| self.cannot_show(&why.to_string())),
                    (Format::Gif, Some(2..)) => Err(self.cannot_show(animation::ONE_CHANNEL)),
                    _ => Ok(()),
                }
            }
            Format::Text if (extents.len(), ty) != (1, Scalar::U8) => {
                Err(self.cannot_show("a text is an array of u8 of one axis"))
            }
            _ => Ok(()),
        }
    }

    /// An array that the format cannot hold.
    pub fn cannot_show(&self, why: &str) -> Diagnostic {
        let message = format!(
            "`{}` cannot be written to `{}`: {why}",
            self.name,
            self.path.display()
        );
        Diagnostic::new(&codes::NO_PICTURE, Span::NONE, message)
            .help("a .npy file holds any array, a .csv file any array as numbers")
    }
}

/// Is there memory for this many bytes? Asked before large arrays are made, since a failing
/// allocation aborts the process.
pub fn has_room(bytes: u64) -> bool {
    check_room(bytes).is_ok() && memory::available().is_none_or(|most| bytes <= most)
}

/// What to do about a file that cannot be read.
fn way_out(code: &Code) -> &'static str {
    if *code == codes::MALFORMED_PICTURE {
        "write it again as PNG, with any program for pictures"
    } else if *code == codes::MALFORMED_NUMBERS {
        "a line is a row of numbers, with blanks or commas between them; --in NAME=text:FILE takes the characters of a text"
    } else if *code == codes::WRONG_LENGTH {
        "give the sizes of the file with --set"
    } else {
        "declare the input with other axes or another type, or give it in another format"
    }
}

#[cfg(test)]
mod tests {
    use super::picture::Picture;
    use super::*;
    use systola_interp::tensor::split_mix;

    fn check(text: &str, format: Option<Format>, path: &str) {
        let found = parse(text).unwrap();
        assert_eq!((found.format, found.path), (format, PathBuf::from(path)));
    }

    #[test]
    fn the_ending_or_a_prefix_decides() {
        check("x=a/b.npy", Some(Format::Npy), "a/b.npy");
        check("x=b.PNG", Some(Format::Png), "b.PNG");
        check("x=/dev/zero", Some(Format::Npy), "/dev/zero");
        check("x=text:b.npy", Some(Format::Text), "b.npy");
        check("x=raw:b", Some(Format::Raw), "b");
        check("x=C:b.csv", Some(Format::Csv), "C:b.csv");
        check("x=b.jpg", None, "b.jpg");
        check("u'=b.gif", Some(Format::Gif), "b.gif");
        assert!(parse("x=raw:").is_err());
        assert!(parse("x").is_err());
        assert!(parse("=x").is_err());
        let unknown = parse("x=b.jpg").unwrap().format().unwrap_err();
        assert_eq!(unknown.code.id, "E0623");
    }

    fn samples(n: usize, most: u16) -> Vec<u16> {
        (0..n)
            .map(|k| (k * 7919 % (usize::from(most) + 1)) as u16)
            .collect()
    }

    fn pictures() -> Vec<Picture> {
        let mut all = Vec::new();
        for channels in 1..=4 {
            for most in [255, u16::MAX] {
                all.push(Picture {
                    rows: 5,
                    columns: 7,
                    channels,
                    most,
                    samples: samples(5 * 7 * channels, most),
                });
            }
        }
        all
    }

    #[test]
    fn pictures_come_back() {
        for picture in pictures() {
            let bytes = png::write(&picture).unwrap();
            assert_eq!(png::read(&bytes), Ok(picture.clone()));
            if picture.channels % 2 == 1 {
                let bytes = pnm::write(&picture, Path::new("x.pnm")).unwrap();
                assert_eq!(pnm::read(&bytes), Ok(picture));
            }
        }
    }

    /// A PNG with a palette or with few bits, of one row.
    fn packed(depth: ::png::BitDepth, palette: Option<&[u8]>, clear: &[u8], row: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let columns = row.len() * 8 / depth as usize;
        let mut encoder = ::png::Encoder::new(&mut bytes, columns as u32, 1);
        encoder.set_depth(depth);
        if let Some(palette) = palette {
            encoder.set_color(::png::ColorType::Indexed);
            encoder.set_palette(palette);
        }
        if !clear.is_empty() {
            encoder.set_trns(clear);
        }
        let mut writer = encoder.write_header().unwrap();
        writer.write_image_data(row).unwrap();
        writer.finish().unwrap();
        bytes
    }

    #[test]
    fn palettes_and_few_bits_are_expanded() {
        use ::png::BitDepth as B;
        let check = |bytes: &[u8], channels: usize, samples: &[u16]| {
            let found = png::read(bytes).unwrap();
            assert_eq!((found.channels, found.most), (channels, 255));
            assert_eq!(found.samples, samples);
        };
        let one = packed(B::One, None, &[], &[0b1010_0001]);
        check(&one, 1, &[255, 0, 255, 0, 0, 0, 0, 255]);
        check(
            &packed(B::Two, None, &[], &[0b0001_1011]),
            1,
            &[0, 85, 170, 255],
        );
        check(&packed(B::Four, None, &[], &[0x0f]), 1, &[0, 255]);
        let palette = [1, 2, 3, 40, 50, 60];
        let two = packed(B::Four, Some(&palette), &[], &[0x10]);
        check(&two, 3, &[40, 50, 60, 1, 2, 3]);
        let clear = packed(B::Eight, Some(&palette), &[9], &[0, 1]);
        check(&clear, 4, &[1, 2, 3, 9, 40, 50, 60, 255]);
    }

    /// Every reader gives a picture, an array or an error for every damaged file, and allocates no
    /// more than the file can hold.
    #[test]
    fn damaged_files_are_refused_or_read() {
        let mut files: Vec<Vec<u8>> = Vec::new();
        for picture in pictures() {
            files.push(png::write(&picture).unwrap());
            if picture.channels % 2 == 1 {
                files.push(pnm::write(&picture, Path::new("x.pnm")).unwrap());
            }
        }
        let palette = [1, 2, 3, 40, 50, 60];
        files.push(packed(::png::BitDepth::Four, Some(&palette), &[9], &[0x10]));
        files.push(b"P3 # text\n2 1 300 1 2 300 0 0 7\n".to_vec());
        files.push(b"1, 2.5 # numbers\n-3e9;4\n".to_vec());
        let mut state = 11;
        let mut random = |n: usize| (split_mix(&mut state) % n as u64) as usize;
        let read = |bytes: &[u8]| {
            for picture in [png::read(bytes), pnm::read(bytes)].into_iter().flatten() {
                let Picture {
                    rows,
                    columns,
                    channels,
                    ..
                } = picture;
                assert_eq!(picture.samples.len(), rows * columns * channels);
                assert!(picture.samples.iter().all(|s| *s <= picture.most));
                let n = picture.samples.len();
                assert!(
                    n <= 4 * 8 * 1032 * bytes.len(),
                    "{n} samples of {}",
                    bytes.len()
                );
            }
            for extents in [&[][..], &[None], &[None, None], &[Some(2), None, Some(1)]] {
                for ty in [Scalar::F32, Scalar::U8, Scalar::Bool] {
                    let wanted = Wanted { ty, extents };
                    let numbers = numbers::read(bytes, &wanted);
                    let text = text::read(bytes.to_vec(), &wanted);
                    for tensor in [numbers, text].into_iter().flatten() {
                        assert!(tensor.data.len() <= bytes.len());
                    }
                }
            }
        };
        for file in &files {
            for end in 0..file.len() {
                read(&file[..end]);
            }
            for _ in 0..300 {
                let mut bytes = file.clone();
                for _ in 0..1 + random(3) {
                    let at = random(bytes.len());
                    bytes[at] ^= 1 << random(8);
                }
                read(&bytes);
            }
        }
    }
}
