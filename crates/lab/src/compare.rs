//! Compares a result with the expected one, element by element.

use systola::ir::Scalar;
use systola::rt::HostArray;

/// The expected values of a row from a column on.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    pub row: usize,
    pub column: usize,
    pub values: &'a [f64],
}

/// All rows of a result.
pub fn rows(expected: &[f64], columns: usize) -> impl Iterator<Item = Piece<'_>> {
    let rows = expected.chunks(columns.max(1)).enumerate();
    rows.map(|(row, values)| Piece {
        row,
        column: 0,
        values,
    })
}

/// The first element of a result, with rows of `columns`, that differs from the expected one by
/// more than the tolerance.
pub fn fault<'a, T: Copy + Into<f64>>(
    result: &[T],
    columns: usize,
    tolerance: f64,
    expected: impl IntoIterator<Item = Piece<'a>>,
) -> Option<String> {
    // A NaN is a difference too.
    let is_close = |got: f64, wanted: f64| (got - wanted).abs() <= tolerance;
    for Piece {
        row,
        column,
        values,
    } in expected
    {
        let start = row * columns + column;
        let Some(got) = result.get(start..start + values.len()) else {
            return Some(format!("row {row} is not there"));
        };
        let mut pairs = got.iter().zip(values);
        if let Some(at) = pairs.position(|(got, wanted)| !is_close((*got).into(), *wanted)) {
            let (column, got, wanted) = (column + at, got[at].into(), values[at]);
            return Some(format!(
                "element {column} of row {row} is {got} instead of {wanted}"
            ));
        }
    }
    None
}

/// The same for an array of any type that is compared.
pub fn fault_of_array<'a>(
    result: &HostArray,
    columns: usize,
    tolerance: f64,
    expected: impl IntoIterator<Item = Piece<'a>>,
) -> Option<String> {
    match floats(result) {
        Ok(values) => fault(&values, columns, tolerance, expected),
        Err(why) => Some(why),
    }
}

/// The elements of a result, whatever its type.
pub fn floats(array: &HostArray) -> Result<Vec<f64>, String> {
    let found = match array.ty() {
        Scalar::F32 => array
            .as_slice()
            .map(|v: &[f32]| v.iter().map(|x| f64::from(*x)).collect()),
        Scalar::F64 => array.as_slice().map(<[f64]>::to_vec),
        Scalar::I16 => array
            .as_slice()
            .map(|v: &[i16]| v.iter().map(|x| f64::from(*x)).collect()),
        Scalar::I32 => array
            .as_slice()
            .map(|v: &[i32]| v.iter().map(|x| f64::from(*x)).collect()),
        Scalar::Bool
        | Scalar::I8
        | Scalar::I64
        | Scalar::U8
        | Scalar::U16
        | Scalar::U32
        | Scalar::U64
        | Scalar::F16
        | Scalar::BF16 => None,
    };
    found.ok_or_else(|| format!("results of type {} are not compared", array.ty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_told_with_its_place() {
        let result = HostArray::from_slice(&[0.0f32, 1.0, 2.0, f32::NAN], &[2, 2]).unwrap();
        let check = |expected: &[f64], columns: usize| {
            fault_of_array(&result, columns, 1e-6, rows(expected, columns))
        };
        let said = check(&[0.0, 1.0, 2.0, 3.0], 2);
        let place = "element 1 of row 1 is NaN instead of 3";
        assert_eq!(said.as_deref(), Some(place));
        assert_eq!(check(&[0.0, 1.0, 2.0], 2), None);
        assert_eq!(check(&[0.0; 6], 6).as_deref(), Some("row 0 is not there"));
        let bytes = HostArray::from_slice(&[1u8], &[1]).unwrap();
        assert!(fault_of_array(&bytes, 1, 1.0, []).is_some());
    }
}
