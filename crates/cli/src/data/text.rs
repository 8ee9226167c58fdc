//! Text as an array of characters: the bytes of the file for 8-bit elements, the numbers of its
//! Unicode characters for wider integers. The line end at the end of the file does not belong to
//! it.

use systola_interp::tensor::{Data, Tensor, data_bytes};
use systola_ir::Scalar;

use super::{Wanted, has_room};

pub fn read(mut bytes: Vec<u8>, wanted: &Wanted<'_>) -> Result<Tensor, String> {
    let rank = wanted.extents.len();
    if rank != 1 {
        return Err(format!(
            "characters fill an input of one axis, this one has {rank}"
        ));
    }
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
        if bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
    }
    // The text, and the number of its characters, for which there is memory.
    let characters = || -> Result<(&str, usize), String> {
        let text = str::from_utf8(&bytes).map_err(|e| {
            let at = e.valid_up_to();
            format!("byte {at} is not UTF-8 text; as u8 its bytes are taken as they are")
        })?;
        let n = text.chars().count();
        let n_bytes = data_bytes(wanted.ty, n);
        match has_room(n_bytes) {
            true => Ok((text, n)),
            false => Err(format!("there is no memory for its {n_bytes} bytes")),
        }
    };
    macro_rules! narrow {
        ($t:ty) => {{
            let narrow = |c: u32| {
                let ty = wanted.ty;
                <$t>::try_from(c).map_err(|_| format!("the character U+{c:04X} does not fit {ty}"))
            };
            let (text, n) = characters()?;
            let mut elements: Vec<$t> = Vec::with_capacity(n);
            for c in text.chars() {
                elements.push(narrow(u32::from(c))?);
            }
            Data::from(elements)
        }};
    }
    let data = match wanted.ty {
        Scalar::U8 => Data::U8(bytes),
        Scalar::I8 => narrow!(i8),
        Scalar::U16 => narrow!(u16),
        Scalar::I16 => narrow!(i16),
        Scalar::U32 => narrow!(u32),
        Scalar::I32 => narrow!(i32),
        Scalar::U64 => narrow!(u64),
        Scalar::I64 => narrow!(i64),
        Scalar::Bool | Scalar::F16 | Scalar::BF16 | Scalar::F32 | Scalar::F64 => {
            let ty = wanted.ty;
            return Err(format!("a character is an integer, the input is {ty}"));
        }
    };
    Ok(Tensor::vector(data))
}

/// One axis of bytes, and a line end. A carriage return before it would be read as a part of it.
pub fn write(tensor: &Tensor) -> Result<Vec<u8>, String> {
    match (&tensor.data, tensor.rank()) {
        (Data::U8(bytes), 1) if bytes.last() == Some(&b'\r') => {
            Err("a text cannot end in a carriage return; use raw:".to_string())
        }
        (Data::U8(bytes), 1) => Ok([bytes, &b"\n"[..]].concat()),
        _ => Err("a text is an array of u8 of one axis".to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, ty: Scalar, expect: Result<Data, &str>) {
        let wanted = Wanted {
            ty,
            extents: &[None],
        };
        let found = read(text.as_bytes().to_vec(), &wanted);
        match (found, expect) {
            (Ok(found), Ok(expect)) => assert_eq!(found, Tensor::vector(expect)),
            (Err(found), Err(part)) => assert!(found.contains(part), "{found}"),
            (found, expect) => panic!("{found:?}, not {expect:?}"),
        }
    }

    #[test]
    fn characters_are_bytes_or_code_points() {
        check("abc\n", Scalar::U8, Ok(Data::U8(b"abc".to_vec())));
        check("abc\r\n", Scalar::U8, Ok(Data::U8(b"abc".to_vec())));
        check("a\n\n", Scalar::U8, Ok(Data::U8(b"a\n".to_vec())));
        check("é", Scalar::U8, Ok(Data::U8(vec![0xc3, 0xa9])));
        check("é", Scalar::I32, Ok(Data::I32(vec![0xe9])));
        check("é", Scalar::I8, Err("U+00E9"));
        check("", Scalar::U8, Ok(Data::U8(Vec::new())));
        check("a", Scalar::F32, Err("f32"));
    }

    #[test]
    fn what_is_written_is_read_again() {
        for text in ["", "a", "a\n", "\r\n", "a\rb"] {
            let tensor = Tensor::vector(Data::U8(text.into()));
            let written = String::from_utf8(write(&tensor).unwrap()).unwrap();
            check(&written, Scalar::U8, Ok(tensor.data));
        }
        let why = write(&Tensor::vector(Data::U8(b"a\r".to_vec()))).unwrap_err();
        assert!(why.contains("carriage return; use raw:"), "{why}");
    }
}
