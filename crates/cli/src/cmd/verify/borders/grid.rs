//! A sweep as loops over cells and neighbours, in f64.

use super::border::{Border, CONSTANT};

/// Cells by planes, rows and columns; one plane in two dimensions.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    pub shape: [usize; 3],
    pub cells: Vec<f64>,
}

/// Neighbours and their weights.
pub type Taps = [([isize; 3], f64)];

impl Grid {
    pub fn swept(&self, taps: &Taps, border: Border) -> Grid {
        let cut = match border {
            Border::Interior => reach(taps),
            _ => [0; 3],
        };
        let shape = [0, 1, 2].map(|axis| self.shape[axis].saturating_sub(2 * cut[axis]));
        let mut cells = Vec::with_capacity(shape.iter().product());
        for z in 0..shape[0] {
            for y in 0..shape[1] {
                for x in 0..shape[2] {
                    let at = [z + cut[0], y + cut[1], x + cut[2]];
                    cells.push(self.next(at, taps, border));
                }
            }
        }
        Grid { shape, cells }
    }

    fn next(&self, at: [usize; 3], taps: &Taps, border: Border) -> f64 {
        let mut sum = 0.0;
        for (offset, weight) in taps {
            match self.look(at, *offset, border) {
                Some(value) => sum += weight * value,
                None => return self.cell(at),
            }
        }
        sum
    }

    /// What a cell sees; nothing beyond a border that is held.
    fn look(&self, at: [usize; 3], offset: [isize; 3], border: Border) -> Option<f64> {
        let mut inside = [0; 3];
        for axis in 0..3 {
            let there = at[axis] as isize + offset[axis];
            match border.fold(there, self.shape[axis]) {
                Some(cell) => inside[axis] = cell,
                None if border == Border::Constant => return Some(CONSTANT),
                None => return None,
            }
        }
        Some(self.cell(inside))
    }

    fn cell(&self, [z, y, x]: [usize; 3]) -> f64 {
        self.cells[(z * self.shape[1] + y) * self.shape[2] + x]
    }
}

/// How far the neighbours are along each axis.
fn reach(taps: &Taps) -> [usize; 3] {
    [0, 1, 2].map(|axis| {
        let far = taps.iter().map(|(offset, _)| offset[axis].unsigned_abs());
        far.max().unwrap_or(0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three cells in a row, and what becomes of them by hand.
    #[test]
    fn a_line_of_three() {
        let taps = [([0, 0, -1], 0.5), ([0, 0, 0], 0.25), ([0, 0, 1], 0.25)];
        let line = Grid {
            shape: [1, 1, 3],
            cells: vec![4.0, 8.0, 16.0],
        };
        let check = |border, expect: &[f64]| assert_eq!(line.swept(&taps, border).cells, expect);
        check(Border::Interior, &[8.0]);
        check(Border::Held, &[4.0, 8.0, 16.0]);
        check(Border::Constant, &[3.375, 8.0, 8.1875]);
        check(Border::Clamp, &[5.0, 8.0, 12.0]);
        check(Border::Reflect, &[5.0, 8.0, 12.0]);
        check(Border::Mirror, &[7.0, 8.0, 10.0]);
        check(Border::Wrap, &[11.0, 8.0, 9.0]);
    }
}
