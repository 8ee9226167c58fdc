//! The order in which an array is copied from one layout to another.
//!
//! Tiles follow the target's fastest axis. Where the source's fastest axis is a different one, as
//! in a transpose, the two axes are tiled into squares, so that each square can be read along the
//! one and written along the other: every cache line is then fully used while it is cached, even if
//! many lines conflict in one set.

/// A strided copy of rows, offsets and steps in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tile {
    /// With more than one row, both counts are at most [`SQUARE`], and the source is best read
    /// across the rows.
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) to: TilePosition,
    pub(crate) from: TilePosition,
}

/// The position of a tile in one of the arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TilePosition {
    pub(crate) start: isize,
    pub(crate) row_step: isize,
    pub(crate) column_step: isize,
}

impl TilePosition {
    pub(crate) fn at(self, row: usize, column: usize) -> isize {
        self.start + row as isize * self.row_step + column as isize * self.column_step
    }
}

/// Side of a square, in elements.
pub(crate) const SQUARE: usize = 32;

#[derive(Clone, Copy)]
struct Axis {
    n: usize,
    to: isize,
    from: isize,
}

/// Calls `copy` for tiles that together move every element once.
pub(crate) fn for_each_tile(
    shape: &[usize],
    to: &[isize],
    from: &[isize],
    mut copy: impl FnMut(Tile),
) {
    if shape.contains(&0) {
        return;
    }
    let mut axes = merged(shape, to, from);
    let inner = axes.pop().unwrap_or(Axis {
        n: 1,
        to: 1,
        from: 1,
    });
    let fastest = axes
        .iter()
        .enumerate()
        .min_by_key(|(_, axis)| axis.from.unsigned_abs())
        .filter(|(_, axis)| axis.from.unsigned_abs() < inner.from.unsigned_abs())
        .map(|(n, _)| n);
    let across = fastest.map(|n| axes.remove(n));
    for_each_origin(&axes, |to, from| {
        let row = across.map_or((0, 0), |axis| (axis.to, axis.from));
        let whole = Tile {
            rows: across.map_or(1, |axis| axis.n),
            columns: inner.n,
            to: TilePosition {
                start: to,
                row_step: row.0,
                column_step: inner.to,
            },
            from: TilePosition {
                start: from,
                row_step: row.1,
                column_step: inner.from,
            },
        };
        match across {
            None => copy(whole),
            Some(_) => squares_of(whole, &mut copy),
        }
    });
}

fn squares_of(whole: Tile, copy: &mut impl FnMut(Tile)) {
    for row in (0..whole.rows).step_by(SQUARE) {
        for column in (0..whole.columns).step_by(SQUARE) {
            let moved = |position: TilePosition| TilePosition {
                start: position.at(row, column),
                ..position
            };
            copy(Tile {
                rows: SQUARE.min(whole.rows - row),
                columns: SQUARE.min(whole.columns - column),
                to: moved(whole.to),
                from: moved(whole.from),
            });
        }
    }
}

/// The axes with more than one element, the target's slowest first, merged where one continues the
/// next in both arrays.
fn merged(shape: &[usize], to: &[isize], from: &[isize]) -> Vec<Axis> {
    let axes = shape.iter().zip(to).zip(from);
    let mut axes: Vec<Axis> = axes
        .map(|((n, to), from)| Axis {
            n: *n,
            to: *to,
            from: *from,
        })
        .filter(|axis| axis.n > 1)
        .collect();
    axes.sort_by_key(|axis| std::cmp::Reverse(axis.to.unsigned_abs()));
    let mut joined: Vec<Axis> = Vec::new();
    for axis in axes {
        let n = axis.n as isize;
        match joined.last_mut() {
            Some(outer) if outer.to == n * axis.to && outer.from == n * axis.from => {
                *outer = Axis {
                    n: outer.n * axis.n,
                    ..axis
                };
            }
            Some(_) | None => joined.push(axis),
        }
    }
    joined
}

/// Offsets of every combination of positions along the axes, the last one fastest.
fn for_each_origin(axes: &[Axis], mut f: impl FnMut(isize, isize)) {
    let mut digits = vec![0usize; axes.len()];
    let (mut to, mut from) = (0isize, 0isize);
    loop {
        f(to, from);
        let mut carried = true;
        for (axis, digit) in axes.iter().zip(&mut digits).rev() {
            *digit += 1;
            to += axis.to;
            from += axis.from;
            if *digit < axis.n {
                carried = false;
                break;
            }
            to -= axis.n as isize * axis.to;
            from -= axis.n as isize * axis.from;
            *digit = 0;
        }
        if carried {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::layout::Layout;

    fn tiles(shape: &[usize], from: &[isize]) -> Vec<Tile> {
        let to = Layout::row_major(shape).unwrap().strides;
        let mut tiles = Vec::new();
        for_each_tile(shape, &to, from, |tile| tiles.push(tile));
        tiles
    }

    fn check_one_row(shape: &[usize], from: &[isize], columns: usize, step: isize) {
        match tiles(shape, from)[..] {
            [tile] => {
                assert_eq!((tile.rows, tile.columns), (1, columns));
                assert_eq!((tile.to.column_step, tile.from.column_step), (1, step));
            }
            ref other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_dense_in_both_is_one_row() {
        check_one_row(&[3, 4, 5], &[20, 5, 1], 60, 1);
        check_one_row(&[], &[], 1, 1);
        check_one_row(&[4], &[-1], 4, -1);
        assert_eq!(tiles(&[3, 4], &[8, 1]).len(), 3);
        assert_eq!(tiles(&[3, 0], &[1, 1]), []);
    }

    #[test]
    fn a_transpose_is_cut_into_squares() {
        let tiles = tiles(&[100, 100], &[1, 100]);
        assert_eq!(tiles.len(), 16);
        assert!(tiles.iter().all(|t| t.rows.max(t.columns) <= SQUARE));
        assert!(tiles.iter().all(|t| t.from.row_step == 1));
    }

    proptest! {
        #[test]
        fn every_element_moves_once(
            shape in proptest::collection::vec(0usize..40, 0..4),
            order in Just([0usize, 1, 2, 3]).prop_shuffle(),
            signs in any::<[bool; 4]>(),
        ) {
            prop_assume!(shape.iter().product::<usize>() < 20_000);
            // The source is dense in another order of the axes, some of them backwards.
            let mut strides = vec![0isize; shape.len()];
            let mut dense = 1isize;
            for axis in order.into_iter().filter(|axis| *axis < shape.len()) {
                strides[axis] = if signs[axis] { -dense } else { dense };
                dense *= shape[axis].max(1) as isize;
            }
            let mut source = vec![isize::MIN; shape.iter().product()];
            for tile in tiles(&shape, &strides) {
                for (row, column) in (0..tile.rows).flat_map(|r| (0..tile.columns).map(move |c| (r, c))) {
                    let to = tile.to.at(row, column) as usize;
                    prop_assert_eq!(source[to], isize::MIN);
                    source[to] = tile.from.at(row, column);
                }
            }
            for (flat, got) in source.into_iter().enumerate() {
                let (mut rest, mut expect) = (flat, 0);
                for (n, stride) in shape.iter().zip(&strides).rev() {
                    expect += (rest % n) as isize * stride;
                    rest /= n;
                }
                prop_assert_eq!(got, expect);
            }
        }
    }
}
