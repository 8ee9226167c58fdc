//! Numbers as text, separated by blanks, commas or semicolons; lines are the rows of a matrix.
//!
//! `#` starts a comment. An input of two axes takes the shape of the lines, one of one axis all
//! numbers in order; with more axes the sizes give the shape.

use std::fmt::Write;
use std::str::FromStr;

use half::{bf16, f16};
use systola_interp::tensor::{Data, Tensor};
use systola_ir::Scalar;

use super::{Wanted, raw};

pub fn read(bytes: &[u8], wanted: &Wanted<'_>) -> Result<Tensor, String> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let text = str::from_utf8(bytes).map_err(|e| {
        let before = &bytes[..e.valid_up_to()];
        let line = before.iter().filter(|b| **b == b'\n').count() + 1;
        format!("line {line} is not text")
    })?;
    fn bit(cell: &str) -> Option<bool> {
        match cell {
            "0" | "false" | "False" => Some(false),
            "1" | "true" | "True" => Some(true),
            _ => None,
        }
    }
    fn of<T: FromStr>(cell: &str) -> Option<T> {
        cell.parse().ok()
    }
    macro_rules! rows {
        ($parse:expr) => {{
            let (elements, rows) = rows(text, wanted.ty, $parse)?;
            (Data::from(elements), rows)
        }};
    }
    let (data, rows) = match wanted.ty {
        Scalar::Bool => rows!(bit),
        Scalar::I8 => rows!(of::<i8>),
        Scalar::I16 => rows!(of::<i16>),
        Scalar::I32 => rows!(of::<i32>),
        Scalar::I64 => rows!(of::<i64>),
        Scalar::U8 => rows!(of::<u8>),
        Scalar::U16 => rows!(of::<u16>),
        Scalar::U32 => rows!(of::<u32>),
        Scalar::U64 => rows!(of::<u64>),
        Scalar::F16 => rows!(of::<f16>),
        Scalar::BF16 => rows!(of::<bf16>),
        Scalar::F32 => rows!(of::<f32>),
        Scalar::F64 => rows!(of::<f64>),
    };
    let shape = match wanted.extents.len() {
        1 => vec![data.len()],
        2 => {
            let (_, first) = rows.first().copied().unwrap_or((0, 0));
            if let Some((line, n)) = rows.iter().find(|(_, n)| *n != first) {
                return Err(format!(
                    "line {line} has {n} numbers, the first row has {first}"
                ));
            }
            vec![rows.len(), first]
        }
        _ => raw::shape(data.len(), wanted.extents)?,
    };
    Tensor::new(shape, data).map_err(|e| e.to_string())
}

/// Of each row its line and its length.
type Rows = Vec<(usize, usize)>;

/// The elements and the rows of a text.
fn rows<T>(text: &str, ty: Scalar, parse: fn(&str) -> Option<T>) -> Result<(Vec<T>, Rows), String> {
    let (mut elements, mut rows) = (Vec::new(), Vec::new());
    for (n, line) in text.lines().enumerate() {
        let before = elements.len();
        let line = line.split('#').next().unwrap_or_default().trim();
        // A separator at the end of a line ends a number.
        let cells = line.strip_suffix([',', ';']).unwrap_or(line);
        if line.is_empty() {
            continue;
        }
        for cell in cells.split([',', ';']) {
            let mut words = cell.split_whitespace().peekable();
            if words.peek().is_none() {
                return Err(format!("line {} has a cell without a number", n + 1));
            }
            for word in words {
                let element = parse(word).ok_or_else(|| {
                    let word: String = word.chars().take(40).collect();
                    format!("line {}: `{word}` is no {ty}", n + 1)
                })?;
                elements.try_reserve(1).map_err(|_| no_memory(&elements))?;
                elements.push(element);
            }
        }
        rows.try_reserve(1).map_err(|_| no_memory(&elements))?;
        rows.push((n + 1, elements.len() - before));
    }
    Ok((elements, rows))
}

fn no_memory<T>(elements: &[T]) -> String {
    format!(
        "there is no memory for more than {} bytes of its numbers",
        size_of_val(elements)
    )
}

/// A line for each row of the last axis, an empty line between matrices.
pub fn write(tensor: &Tensor, separator: &str) -> Vec<u8> {
    let mut text = String::new();
    let columns = tensor.shape.last().copied().unwrap_or(1);
    let rows = tensor.shape.iter().rev().nth(1).copied().unwrap_or(1);
    for position in 0..tensor.data.len() {
        let column = position % columns;
        if column > 0 {
            text.push_str(separator);
        } else if position > 0 && (position / columns).is_multiple_of(rows) {
            text.push('\n');
        }
        push(&mut text, &tensor.data, position);
        if column + 1 == columns {
            text.push('\n');
        }
    }
    text.into_bytes()
}

/// The shortest text that is read as the same number.
fn push(text: &mut String, data: &Data, at: usize) {
    let written = match data {
        Data::Bool(v) => write!(text, "{}", u8::from(v[at])),
        Data::I8(v) => write!(text, "{}", v[at]),
        Data::I16(v) => write!(text, "{}", v[at]),
        Data::I32(v) => write!(text, "{}", v[at]),
        Data::I64(v) => write!(text, "{}", v[at]),
        Data::U8(v) => write!(text, "{}", v[at]),
        Data::U16(v) => write!(text, "{}", v[at]),
        Data::U32(v) => write!(text, "{}", v[at]),
        Data::U64(v) => write!(text, "{}", v[at]),
        Data::F16(v) => write!(text, "{:?}", f32::from(v[at])),
        Data::BF16(v) => write!(text, "{:?}", f32::from(v[at])),
        Data::F32(v) => write!(text, "{:?}", v[at]),
        Data::F64(v) => write!(text, "{:?}", v[at]),
    };
    debug_assert!(written.is_ok(), "a string takes all");
}

#[cfg(test)]
mod tests {
    use super::*;
    use systola_ir::Form;
    use systola_ir::system::Axis;

    fn check(text: &str, ty: Scalar, extents: &[Option<usize>], expect: Result<&str, &str>) {
        let found = read(text.as_bytes(), &Wanted { ty, extents });
        match (found, expect) {
            (Ok(found), Ok(expect)) => {
                let shown = format!("{:?} {:?}", found.shape, found.data);
                assert_eq!(shown, expect);
            }
            (Err(found), Err(part)) => assert!(found.contains(part), "{found}"),
            (found, expect) => panic!("{found:?}, not {expect:?}"),
        }
    }

    #[test]
    fn lines_are_rows() {
        let two = [None, None];
        check(
            "1 2\n3 4\n",
            Scalar::I32,
            &two,
            Ok("[2, 2] I32([1, 2, 3, 4])"),
        );
        check(
            "1,2,\n\n3;4 # end",
            Scalar::U8,
            &two,
            Ok("[2, 2] U8([1, 2, 3, 4])"),
        );
        check(
            "1 2\n3",
            Scalar::F32,
            &[None],
            Ok("[3] F32([1.0, 2.0, 3.0])"),
        );
        check("\u{feff}7", Scalar::I64, &[], Ok("[] I64([7])"));
        check(
            "1 0 true",
            Scalar::Bool,
            &[None],
            Ok("[3] Bool([true, false, true])"),
        );
        check(
            "1e-3 inf",
            Scalar::F64,
            &[None],
            Ok("[2] F64([0.001, inf])"),
        );
        let three = [Some(1), None, Some(2)];
        check(
            "1 2\n\n3 4",
            Scalar::I8,
            &three,
            Ok("[1, 2, 2] I8([1, 2, 3, 4])"),
        );
        check("", Scalar::I8, &two, Ok("[0, 0] I8([])"));
        check("1 2\n3", Scalar::I32, &two, Err("line 2 has 1 numbers"));
        check(
            "1\n1.5",
            Scalar::I32,
            &[None],
            Err("line 2: `1.5` is no i32"),
        );
        check("256", Scalar::U8, &[None], Err("`256` is no u8"));
        check("1,,2", Scalar::I32, &[None], Err("a cell without"));
        check("x,y", Scalar::F32, &[None], Err("`x` is no f32"));
        check("1 2", Scalar::I32, &[], Err("ask for 1"));
    }

    #[test]
    fn what_is_written_is_read_again() {
        let axis = |n: i128| Axis {
            lo: Form::from(0),
            hi: Form::from(n),
        };
        for ty in Scalar::ALL {
            for shape in [&[][..], &[5], &[3, 4], &[2, 3, 4]] {
                let axes: Vec<Axis> = shape.iter().map(|n| axis(*n)).collect();
                let tensor = Tensor::random(ty, &axes, &[], 7).unwrap();
                let extents: Vec<_> = shape.iter().map(|n| Some(*n as usize)).collect();
                for separator in [",", " "] {
                    let bytes = write(&tensor, separator);
                    let extents = &extents;
                    let again = read(&bytes, &Wanted { ty, extents });
                    assert_eq!(again, Ok(tensor.clone()));
                }
            }
        }
    }
}
