//! The expected result of a problem, and its comparison.

use crate::compare::{Piece, fault};

/// The expected values.
#[derive(Clone, Debug)]
pub struct Expected {
    pub shape: Vec<usize>,
    pub values: Vec<f64>,
    /// The tolerance; 0 for integers.
    pub tolerance: f64,
}

impl Expected {
    /// The first error of a result. A smaller result is compared with the middle of the expected
    /// one: libraries have their own boundary conditions.
    pub fn fault(&self, shape: &[usize], values: &[f64]) -> Option<String> {
        let fits =
            |(got, full): (&usize, &usize)| got <= full && (full - got) % 2 == 0 && 2 * got > *full;
        if shape.len() != self.shape.len() || !shape.iter().zip(&self.shape).all(fits) {
            return Some(format!(
                "its shape is {shape:?} instead of {:?}",
                self.shape
            ));
        }
        if values.len() != shape.iter().product::<usize>() {
            return Some(format!(
                "it has {} elements in the shape {shape:?}",
                values.len()
            ));
        }
        let row = shape.last().copied().unwrap_or(1);
        let full_row = self.shape.last().copied().unwrap_or(1);
        let skip = (full_row - row) / 2;
        let skip_rows = match (shape, self.shape.as_slice()) {
            ([got, _], [full, _]) => (full - got) / 2,
            _ => 0,
        };
        let n_rows = values.len() / row.max(1);
        let pieces = (0..n_rows).map(|n| Piece {
            row: n,
            column: 0,
            values: &self.values[(skip_rows + n) * full_row + skip..][..row],
        });
        fault(values, row, self.tolerance, pieces)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_compared_with_the_middle() {
        let expected = Expected {
            shape: vec![3, 4],
            values: (0..12).map(f64::from).collect(),
            tolerance: 0.5,
        };
        let all: Vec<f64> = expected.values.clone();
        assert_eq!(expected.fault(&[3, 4], &all), None);
        assert_eq!(
            expected.fault(&[3, 4], &all.iter().map(|v| v + 0.4).collect::<Vec<_>>()),
            None
        );
        assert!(
            expected
                .fault(&[3, 4], &all.iter().map(|v| v + 0.6).collect::<Vec<_>>())
                .is_some()
        );
        let whole = Expected {
            shape: vec![3, 6],
            values: (0..18).map(f64::from).collect(),
            tolerance: 0.0,
        };
        // Rows 0..3, columns 1..5.
        let middle: Vec<f64> = (0..3)
            .flat_map(|r| (1..5).map(move |c| f64::from(6 * r + c)))
            .collect();
        assert_eq!(whole.fault(&[3, 4], &middle), None);
        assert!(whole.fault(&[3, 4], &all).is_some());
    }

    #[test]
    fn what_is_not_a_number_is_wrong() {
        let expected = Expected {
            shape: vec![2],
            values: vec![0.0, 0.0],
            tolerance: 1.0,
        };
        assert!(expected.fault(&[2], &[0.0, f64::NAN]).is_some());
        assert!(expected.fault(&[], &[0.0]).is_some());
        assert!(expected.fault(&[2], &[0.0]).is_some());
    }
}
