//! NumPy's `.npy` format, over bytes.
//!
//! Reading takes versions 1 to 3, either byte order, C and Fortran order, and gives a row-major
//! tensor whose axes start at zero. Writing gives version 1 (2 where the header is long), little
//! endian, C order. NumPy has no bf16 of its own: it is written as `<V2`, as `ml_dtypes` does
//! (`numpy.load(f).view(ml_dtypes.bfloat16)` brings it back), and read from `V2`, or from
//! u16 where the caller expects bf16.

use half::{bf16, f16};
use systola_ir::codes::run;
use systola_ir::{Diagnostic, Scalar, Span};

use crate::tensor::{Data, Tensor, n_elements};

const MAGIC: &[u8] = b"\x93NUMPY";
/// The header ends at a multiple of this many bytes.
const ALIGNMENT: usize = 64;
/// A dictionary of three entries is far shorter.
const LONGEST_HEADER: usize = 1 << 20;

/// Why bytes are not an array.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NpyError {
    #[error("it does not start with the magic bytes of a .npy file")]
    Magic,
    #[error("version {0}.{1} of the format is unknown")]
    Version(u8, u8),
    #[error("it ends within the header")]
    ShortHeader,
    #[error("the header is malformed: {0}")]
    Header(&'static str),
    #[error("the element type '{0}' is not supported")]
    Type(String),
    #[error("its shape is too large")]
    TooLarge,
    #[error("its shape needs {expect} bytes of data, there are {found}")]
    Data { expect: usize, found: usize },
}

impl NpyError {
    /// The error as a diagnostic for the user.
    pub fn diagnostic(&self, name: &str) -> Diagnostic {
        let message = format!("`{name}` cannot be read as an array: {self}");
        Diagnostic::new(&run::MALFORMED_NPY, Span::NONE, message)
            .help("write it with `numpy.save`, with a plain element type")
    }
}

/// Reads an array. With an expected type of bf16, u16 elements are taken as the bits of bf16.
pub fn read(bytes: &[u8], expect: Option<Scalar>) -> Result<Tensor, NpyError> {
    let (header, data) = split(bytes)?;
    let Header {
        ty,
        is_big_endian,
        is_fortran,
        shape,
    } = Header::parse(header)?;
    let ty = match (ty, expect) {
        (Scalar::U16, Some(Scalar::BF16)) => Scalar::BF16,
        (ty, _) => ty,
    };
    let width = ty.bits() as usize / 8;
    let n = n_elements(&shape).ok_or(NpyError::TooLarge)?;
    let (expect, found) = (n * width, data.len());
    // Memory is allocated only after the length of the bytes is checked.
    if expect != found {
        return Err(NpyError::Data { expect, found });
    }
    let data = decode_ordered(ty, data, is_big_endian);
    let data = match is_fortran && shape.len() > 1 {
        true => row_major(&data, &shape),
        false => data,
    };
    Ok(Tensor {
        lo: vec![0; shape.len()],
        shape,
        data,
    })
}

/// This many bytes, or all of a shorter file, determine the length of the header.
pub const PREFIX: usize = MAGIC.len() + 2 + 4;

/// The bytes before the data, from the first [`PREFIX`] bytes of a file.
pub fn head_length(prefix: &[u8]) -> Result<usize, NpyError> {
    let (length, rest) = header_length(prefix)?;
    if length > LONGEST_HEADER {
        return Err(NpyError::Header("it has more than 1 MiB"));
    }
    Ok(prefix.len() - rest.len() + length)
}

/// The bytes of the whole file, from those before the data.
pub fn file_length(head: &[u8]) -> Result<usize, NpyError> {
    let (header, _) = split(head)?;
    let header = Header::parse(header)?;
    let width = header.ty.bits() as usize / 8;
    n_elements(&header.shape)
        .and_then(|n| n.checked_mul(width)?.checked_add(head.len()))
        .ok_or(NpyError::TooLarge)
}

/// Writes an array; the lower bounds of its axes are not stored.
pub fn write(tensor: &Tensor) -> Vec<u8> {
    let shape: Vec<String> = tensor.shape.iter().map(usize::to_string).collect();
    let shape = match shape.len() {
        1 => format!("({},)", shape[0]),
        _ => format!("({})", shape.join(", ")),
    };
    let descr = descr(tensor.ty());
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    let is_long = header.len() + ALIGNMENT > usize::from(u16::MAX);
    let prefix = MAGIC.len() + 2 + if is_long { 4 } else { 2 };
    let padded = (prefix + header.len() + 1).next_multiple_of(ALIGNMENT);
    header.push_str(&" ".repeat(padded - prefix - header.len() - 1));
    header.push('\n');

    let mut bytes = MAGIC.to_vec();
    if is_long {
        bytes.extend([2, 0]);
        bytes.extend((header.len() as u32).to_le_bytes());
    } else {
        bytes.extend([1, 0]);
        bytes.extend((header.len() as u16).to_le_bytes());
    }
    bytes.extend(header.as_bytes());
    append(&tensor.data, &mut bytes);
    bytes
}

fn descr(ty: Scalar) -> &'static str {
    match ty {
        Scalar::Bool => "|b1",
        Scalar::I8 => "|i1",
        Scalar::I16 => "<i2",
        Scalar::I32 => "<i4",
        Scalar::I64 => "<i8",
        Scalar::U8 => "|u1",
        Scalar::U16 => "<u2",
        Scalar::U32 => "<u4",
        Scalar::U64 => "<u8",
        Scalar::F16 => "<f2",
        Scalar::BF16 => "<V2",
        Scalar::F32 => "<f4",
        Scalar::F64 => "<f8",
    }
}

/// (header text, data).
fn split(bytes: &[u8]) -> Result<(&[u8], &[u8]), NpyError> {
    let (length, rest) = header_length(bytes)?;
    rest.split_at_checked(length).ok_or(NpyError::ShortHeader)
}

/// (length of the header text, what follows the length).
fn header_length(bytes: &[u8]) -> Result<(usize, &[u8]), NpyError> {
    let rest = bytes.strip_prefix(MAGIC).ok_or(NpyError::Magic)?;
    let (version, rest) = rest.split_first_chunk::<2>().ok_or(NpyError::ShortHeader)?;
    match version {
        [1, _] => {
            let (length, rest) = rest.split_first_chunk().ok_or(NpyError::ShortHeader)?;
            Ok((usize::from(u16::from_le_bytes(*length)), rest))
        }
        [2 | 3, _] => {
            let (length, rest) = rest.split_first_chunk().ok_or(NpyError::ShortHeader)?;
            let length = usize::try_from(u32::from_le_bytes(*length));
            Ok((length.map_err(|_| NpyError::TooLarge)?, rest))
        }
        [major, minor] => Err(NpyError::Version(*major, *minor)),
    }
}

#[derive(Debug, PartialEq)]
struct Header {
    ty: Scalar,
    is_big_endian: bool,
    is_fortran: bool,
    shape: Vec<usize>,
}

impl Header {
    /// Reads the dictionary, `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`, in any
    /// order.
    fn parse(text: &[u8]) -> Result<Header, NpyError> {
        let text = std::str::from_utf8(text).map_err(|_| NpyError::Header("it is no text"))?;
        let mut rest = Scanner(text);
        let (mut descr, mut order, mut shape) = (None, None, None);
        rest.expect('{')?;
        while !rest.take('}') {
            let key = rest.string()?;
            rest.expect(':')?;
            match key {
                "descr" => descr = Some(rest.descr()?),
                "fortran_order" => order = Some(rest.boolean()?),
                "shape" => shape = Some(rest.shape()?),
                _ => return Err(NpyError::Header("it has an unknown key")),
            }
            if !rest.take(',') {
                rest.expect('}')?;
                break;
            }
        }
        if !rest.0.trim().is_empty() {
            return Err(NpyError::Header("text follows the dictionary"));
        }
        let (ty, is_big_endian) = descr.ok_or(NpyError::Header("it has no 'descr'"))?;
        Ok(Header {
            ty,
            is_big_endian,
            is_fortran: order.ok_or(NpyError::Header("it has no 'fortran_order'"))?,
            shape: shape.ok_or(NpyError::Header("it has no 'shape'"))?,
        })
    }
}

/// The rest of a header.
struct Scanner<'a>(&'a str);

impl<'a> Scanner<'a> {
    fn take(&mut self, c: char) -> bool {
        match self.0.trim_start().strip_prefix(c) {
            Some(rest) => {
                self.0 = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, c: char) -> Result<(), NpyError> {
        match self.take(c) {
            true => Ok(()),
            false => Err(NpyError::Header("it is not the expected dictionary")),
        }
    }

    fn string(&mut self) -> Result<&'a str, NpyError> {
        let text = self.0.trim_start();
        let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'));
        let error = NpyError::Header("a string is expected");
        let quote = quote.ok_or(error.clone())?;
        let (string, rest) = text[1..].split_once(quote).ok_or(error)?;
        self.0 = rest;
        Ok(string)
    }

    fn word(&mut self) -> &'a str {
        let text = self.0.trim_start();
        let end = text.find(|c: char| !c.is_ascii_alphanumeric());
        let (word, rest) = text.split_at(end.unwrap_or(text.len()));
        self.0 = rest;
        word
    }

    fn boolean(&mut self) -> Result<bool, NpyError> {
        match self.word() {
            "True" => Ok(true),
            "False" => Ok(false),
            _ => Err(NpyError::Header(
                "'fortran_order' is neither True nor False",
            )),
        }
    }

    fn descr(&mut self) -> Result<(Scalar, bool), NpyError> {
        if matches!(self.0.trim_start().chars().next(), Some('[')) {
            return Err(NpyError::Type("a structure".to_string()));
        }
        let text = self.string()?;
        let unsupported = || NpyError::Type(text.chars().take(40).collect());
        let mut chars = text.chars();
        let (is_big_endian, name) = match chars.next() {
            Some('<' | '|' | '=') => (false, chars.as_str()),
            Some('>') => (true, chars.as_str()),
            Some(_) => (false, text),
            None => return Err(unsupported()),
        };
        let ty = match name {
            "b1" | "?" => Scalar::Bool,
            "i1" => Scalar::I8,
            "i2" => Scalar::I16,
            "i4" => Scalar::I32,
            "i8" => Scalar::I64,
            "u1" => Scalar::U8,
            "u2" => Scalar::U16,
            "u4" => Scalar::U32,
            "u8" => Scalar::U64,
            "f2" => Scalar::F16,
            "V2" | "bfloat16" => Scalar::BF16,
            "f4" => Scalar::F32,
            "f8" => Scalar::F64,
            _ => return Err(unsupported()),
        };
        Ok((ty, is_big_endian))
    }

    fn shape(&mut self) -> Result<Vec<usize>, NpyError> {
        const MAX_RANK: usize = 64;
        self.expect('(')?;
        let mut shape = Vec::new();
        while !self.take(')') {
            let extent = self.word().trim_end_matches('L');
            let error = NpyError::Header("an extent is no number");
            shape.push(extent.parse().map_err(|_| error)?);
            if shape.len() > MAX_RANK {
                return Err(NpyError::TooLarge);
            }
            if !self.take(',') {
                self.expect(')')?;
                break;
            }
        }
        Ok(shape)
    }
}

/// Little-endian elements of a type; bytes behind the last whole element are ignored.
pub fn decode(ty: Scalar, bytes: &[u8]) -> Data {
    decode_ordered(ty, bytes, false)
}

/// The little-endian bytes of elements.
pub fn encode(data: &Data) -> Vec<u8> {
    let mut bytes = Vec::new();
    append(data, &mut bytes);
    bytes
}

fn decode_ordered(ty: Scalar, bytes: &[u8], is_big_endian: bool) -> Data {
    macro_rules! elements {
        ($variant:ident, $t:ty) => {
            Data::$variant(
                bytes
                    .as_chunks::<{ size_of::<$t>() }>()
                    .0
                    .iter()
                    .map(|chunk| match is_big_endian {
                        true => <$t>::from_be_bytes(*chunk),
                        false => <$t>::from_le_bytes(*chunk),
                    })
                    .collect(),
            )
        };
    }
    match ty {
        Scalar::Bool => Data::Bool(bytes.iter().map(|byte| *byte != 0).collect()),
        Scalar::I8 => elements!(I8, i8),
        Scalar::I16 => elements!(I16, i16),
        Scalar::I32 => elements!(I32, i32),
        Scalar::I64 => elements!(I64, i64),
        Scalar::U8 => elements!(U8, u8),
        Scalar::U16 => elements!(U16, u16),
        Scalar::U32 => elements!(U32, u32),
        Scalar::U64 => elements!(U64, u64),
        Scalar::F16 => elements!(F16, f16),
        Scalar::BF16 => elements!(BF16, bf16),
        Scalar::F32 => elements!(F32, f32),
        Scalar::F64 => elements!(F64, f64),
    }
}

fn append(data: &Data, bytes: &mut Vec<u8>) {
    match data {
        Data::Bool(v) => bytes.extend(v.iter().map(|x| u8::from(*x))),
        Data::I8(v) => bytes.extend(v.iter().flat_map(|x| x.to_le_bytes())),
        Data::I16(v) => bytes.extend(v.iter().flat_map(|x| x.to_le_bytes())),
        Data::I32(v) => bytes.extend(v.iter().flat_map(|x| x.to_le_bytes())),
        Data::I64(v) => bytes.extend(v.iter().flat_map(|x| x.to_le_bytes())),
        Data::U8(v) => bytes.extend(v),
        Data::U16(v) => bytes.extend(v.iter().flat_map(|x| x.to_le_bytes())),
        Data::U32(v) => bytes.extend(v.iter().flat_map(|x| x.to_le_bytes())),
        Data::U64(v) => bytes.extend(v.iter().flat_map(|x| x.to_le_bytes())),
        Data::F16(v) => bytes.extend(v.iter().flat_map(|x| x.to_le_bytes())),
        Data::BF16(v) => bytes.extend(v.iter().flat_map(|x| x.to_le_bytes())),
        Data::F32(v) => bytes.extend(v.iter().flat_map(|x| x.to_le_bytes())),
        Data::F64(v) => bytes.extend(v.iter().flat_map(|x| x.to_le_bytes())),
    }
}

/// Elements that came with the first index running fastest.
fn row_major(data: &Data, shape: &[usize]) -> Data {
    let mut sorted = data.clone();
    let mut index = vec![0; shape.len()];
    for position in 0..data.len() {
        let column_major = index
            .iter()
            .zip(shape)
            .rev()
            .fold(0, |sum, (i, extent)| sum * extent + i);
        if let Some(value) = data.get(column_major) {
            sorted.set(position, &value);
        }
        for (i, extent) in index.iter_mut().zip(shape).rev() {
            *i += 1;
            if *i < *extent {
                break;
            }
            *i = 0;
        }
    }
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;
    use systola_ir::Form;
    use systola_ir::system::Axis;

    fn sample(ty: Scalar, shape: &[i128]) -> Tensor {
        let axis = |n: &i128| Axis {
            lo: Form::from(0),
            hi: Form::from(*n),
        };
        let axes: Vec<Axis> = shape.iter().map(axis).collect();
        Tensor::random(ty, &axes, &[], 7).unwrap()
    }

    fn file(version: u8, header: &str, data: &[u8]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([version, 0]);
        match version {
            1 => bytes.extend((header.len() as u16).to_le_bytes()),
            _ => bytes.extend((header.len() as u32).to_le_bytes()),
        }
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        bytes
    }

    #[test]
    fn every_type_comes_back() {
        for ty in Scalar::ALL {
            for shape in [&[][..], &[5], &[3, 4], &[2, 3, 4], &[0], &[3, 0, 2]] {
                let tensor = sample(ty, shape);
                let bytes = write(&tensor);
                assert_eq!(read(&bytes, Some(ty)), Ok(tensor.clone()));
                assert_eq!(
                    (bytes.len() - tensor.data.len() * ty.bits() as usize / 8) % 64,
                    0
                );
            }
        }
    }

    #[test]
    fn both_orders_both_ends_all_versions() {
        for ty in Scalar::ALL {
            let tensor = sample(ty, &[2, 3, 4]);
            let width = ty.bits() as usize / 8;
            let plain = write(&tensor);
            let data = &plain[plain.len() - 24 * width..];
            // The same array stored by columns and with its bytes reversed.
            let mut columns = Vec::new();
            for k in 0..4 {
                for j in 0..3 {
                    for i in 0..2 {
                        let at = ((i * 3 + j) * 4 + k) * width;
                        columns.extend(data[at..at + width].iter().rev());
                    }
                }
            }
            let name = &descr(ty)[1..];
            for version in 1..=3 {
                let header = format!(
                    "{{\"shape\": (2, 3,4), 'fortran_order': True, 'descr':'>{name}'}}  \n"
                );
                let bytes = file(version, &header, &columns);
                assert_eq!(read(&bytes, None), Ok(tensor.clone()), "{ty}");
            }
        }
    }

    #[test]
    fn bf16_may_be_stored_as_u16() {
        let tensor = sample(Scalar::BF16, &[6]);
        let Data::BF16(elements) = &tensor.data else {
            panic!("not bf16")
        };
        let bits: Vec<u16> = elements.iter().map(|x| x.to_bits()).collect();
        let bytes = write(&Tensor::vector(bits));
        assert_eq!(read(&bytes, Some(Scalar::BF16)), Ok(tensor));
        assert_eq!(read(&bytes, None).unwrap().ty(), Scalar::U16);
    }

    #[test]
    fn malformed_files_are_refused() {
        let check = |header: &str, expect: NpyError| {
            assert_eq!(read(&file(1, header, &[0; 8]), None), Err(expect));
        };
        assert_eq!(read(b"PK\x03\x04", None), Err(NpyError::Magic));
        assert_eq!(
            read(b"\x93NUMPY\x07\x01", None),
            Err(NpyError::Version(7, 1))
        );
        assert_eq!(
            read(b"\x93NUMPY\x01\x00\xff\xff{", None),
            Err(NpyError::ShortHeader)
        );
        check(
            "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }",
            NpyError::Data {
                expect: 12,
                found: 8,
            },
        );
        check(
            "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4611686018427387904)}",
            NpyError::TooLarge,
        );
        check(
            "{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}",
            NpyError::Type("<c8".to_string()),
        );
        check(
            "{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (1,)}",
            NpyError::Type("a structure".to_string()),
        );
        check(
            "{'descr': '<f4', 'shape': (1,)}",
            NpyError::Header("it has no 'fortran_order'"),
        );
        check(
            "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
            NpyError::Header("an extent is no number"),
        );
        check("", NpyError::Header("it is not the expected dictionary"));
    }

    /// Truncated and mutated files give an array or an error, and never more memory than they have
    /// bytes.
    #[test]
    fn mutations_do_no_harm() {
        let mut state = 42u64;
        let mut random = move |n: usize| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 33) as usize % n
        };
        let alphabet = b"{}()[],:'\"<>|=0123456789bfiuV TrueFalseshapedescr\n\x00\xff\x93";
        for round in 0..20_000 {
            let ty = Scalar::ALL[round % Scalar::ALL.len()];
            let mut bytes = write(&sample(ty, &[2, 3]));
            for _ in 0..1 + random(4) {
                let at = random(bytes.len().min(100));
                match random(4) {
                    0 => bytes.truncate(at.max(1)),
                    1 => bytes[at] = alphabet[random(alphabet.len())],
                    2 => bytes.insert(at, alphabet[random(alphabet.len())]),
                    _ => {
                        bytes.remove(at);
                        if bytes.is_empty() {
                            bytes.push(0);
                        }
                    }
                }
            }
            if let Ok(tensor) = read(&bytes, Some(ty)) {
                assert!(tensor.data.len() <= bytes.len());
                assert_eq!(Some(tensor.data.len()), n_elements(&tensor.shape));
            }
        }
    }
}
