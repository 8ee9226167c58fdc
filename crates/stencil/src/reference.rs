//! The reference of weighted sums of neighbours, as loops over cells in f64, after the definitions
//! of `scipy.ndimage`.
//!
//! Nothing here uses a system. Tests, verification campaigns and benchmarks compare with it, also
//! on large grids: rows far from the boundary are summed tap by tap, on all threads.

use std::ops::Range;

/// The boundary condition of a grid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Boundary {
    /// Nothing: there are results only where all neighbours are inside.
    Interior,
    /// Fixed (Dirichlet): cells without all neighbours keep their value.
    Fixed,
    Constant(f64),
    /// The last cell, repeated.
    Clamp,
    /// Reflected without repeating the last cell.
    Mirror,
    /// Reflected, repeating the last cell.
    Reflect,
    /// Periodic.
    Wrap,
}

impl Boundary {
    /// The cell of `n` that represents the one at `at`, if any.
    pub fn fold(self, at: i64, n: usize) -> Option<usize> {
        let n = n as i64;
        let inside = match self {
            _ if (0..n).contains(&at) => at,
            Boundary::Interior | Boundary::Fixed | Boundary::Constant(_) => return None,
            Boundary::Clamp => at.clamp(0, n - 1),
            Boundary::Wrap => at.rem_euclid(n),
            Boundary::Mirror if n == 1 => 0,
            Boundary::Mirror => {
                let at = at.rem_euclid(2 * (n - 1));
                at.min(2 * (n - 1) - at)
            }
            Boundary::Reflect => {
                let at = at.rem_euclid(2 * n);
                at.min(2 * n - 1 - at)
            }
        };
        usize::try_from(inside).ok()
    }
}

/// The offset of each neighbour along every axis, and its weight.
pub type Taps = [(Vec<i64>, f64)];

/// A row-major grid of numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    pub shape: Vec<usize>,
    pub data: Vec<f64>,
}

impl Grid {
    /// The grid after one sweep.
    pub fn sweep(&self, taps: &Taps, boundary: Boundary) -> Grid {
        sweep(&self.data, &self.shape, taps, boundary)
    }

    /// The grid after `times` sweeps.
    pub fn sweeps(&self, taps: &Taps, boundary: Boundary, times: usize) -> Grid {
        (0..times).fold(self.clone(), |grid, _| grid.sweep(taps, boundary))
    }

    /// A cell that may lie beyond the boundary; none where there is nothing.
    pub fn look(&self, cell: &[i64], boundary: Boundary) -> Option<f64> {
        let mut flat = 0;
        for (at, n) in cell.iter().zip(&self.shape) {
            match (boundary.fold(*at, *n), boundary) {
                (Some(inside), _) => flat = flat * n + inside,
                (None, Boundary::Constant(c)) => return Some(c),
                (None, _) => return None,
            }
        }
        self.data.get(flat).copied()
    }

    /// A cell inside.
    pub fn at(&self, cell: &[i64]) -> f64 {
        let found = self.look(cell, Boundary::Interior);
        found.unwrap_or_else(|| panic!("{cell:?} of {:?}", self.shape))
    }

    /// All cells in row-major order.
    pub fn cells(&self) -> Vec<Vec<i64>> {
        let mut cells: Vec<Vec<i64>> = vec![Vec::new()];
        for n in &self.shape {
            let longer = |c: &Vec<i64>| {
                let c = c.clone();
                (0..*n as i64).map(move |at| [c.as_slice(), &[at]].concat())
            };
            cells = cells.iter().flat_map(longer).collect();
        }
        cells
    }

    /// The grid of the values of `f`, cropped to those that exist.
    pub fn map(&self, f: impl Fn(&[i64]) -> Option<f64>) -> Grid {
        let cells = self.cells();
        let kept: Vec<(&Vec<i64>, f64)> = cells.iter().filter_map(|c| Some((c, f(c)?))).collect();
        let length = |axis: usize| {
            let at = || kept.iter().map(|(c, _)| c[axis]);
            match (at().min(), at().max()) {
                (Some(lo), Some(hi)) => (hi - lo + 1) as usize,
                _ => 0,
            }
        };
        Grid {
            shape: (0..self.shape.len()).map(length).collect(),
            data: kept.iter().map(|(_, value)| *value).collect(),
        }
    }
}

/// The result of one sweep over cells of any type.
pub fn sweep<T: Copy + Into<f64> + Sync>(
    cells: &[T],
    shape: &[usize],
    taps: &Taps,
    boundary: Boundary,
) -> Grid {
    let window: Vec<Range<usize>> = match boundary {
        Boundary::Interior => (0..shape.len())
            .map(|axis| {
                let [before, behind] = reach(taps, axis);
                let end = shape[axis].saturating_sub(behind);
                before.min(end)..end
            })
            .collect(),
        _ => shape.iter().map(|n| 0..*n).collect(),
    };
    let mut all = vec![0.0; cells.len()];
    sweep_into(cells, shape, taps, boundary, &window, &mut all);
    let cut: Vec<usize> = window.iter().map(Range::len).collect();
    if cut == shape {
        let shape = shape.to_vec();
        return Grid { shape, data: all };
    }
    let lines = Lines::of(shape, &window);
    let columns = window.last().cloned().unwrap_or(0..1);
    let inside = lines
        .all()
        .flat_map(|line| all[line * lines.columns..][columns.clone()].iter().copied());
    Grid {
        data: inside.collect(),
        shape: cut,
    }
}

/// Sweeps once over `cells`, and writes the cells of a window to an array of the same shape; the
/// others are unchanged.
pub fn sweep_into<T: Copy + Into<f64> + Sync>(
    cells: &[T],
    shape: &[usize],
    taps: &Taps,
    boundary: Boundary,
    window: &[Range<usize>],
    out: &mut [f64],
) {
    /// Below this number of products a thread costs more than it saves.
    const WORTH_A_THREAD: usize = 1 << 17;
    if window.iter().any(Range::is_empty) {
        return;
    }
    let lines = Lines::of(shape, window);
    let columns = window.last().cloned().unwrap_or(0..1);
    let sweep = Sweep {
        cells,
        shape,
        taps,
        boundary,
        reach: reach(taps, shape.len().saturating_sub(1)),
    };
    let mut jobs: Vec<(usize, &mut [f64])> = Vec::new();
    let mut wanted = lines.all().peekable();
    for (line, row) in out.chunks_mut(lines.columns).enumerate() {
        if wanted.next_if_eq(&line).is_some() {
            jobs.push((line, &mut row[columns.clone()]));
        }
    }
    let work = jobs.len() * columns.len() * taps.len();
    let available = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = available.min(work / WORTH_A_THREAD).max(1);
    if threads == 1 {
        for (line, row) in jobs {
            sweep.line(line, columns.start, row);
        }
        return;
    }
    let each = jobs.len().div_ceil(threads);
    std::thread::scope(|scope| {
        for part in jobs.chunks_mut(each) {
            let (sweep, first) = (&sweep, columns.start);
            scope.spawn(move || {
                for (line, row) in part {
                    sweep.line(*line, first, row);
                }
            });
        }
    });
}

/// The reach of the taps along an axis, before and after a cell.
fn reach(taps: &Taps, axis: usize) -> [usize; 2] {
    let offsets = || taps.iter().filter_map(|(offset, _)| offset.get(axis));
    let before = offsets().min().map_or(0, |o| o.min(&0).unsigned_abs());
    let behind = offsets().max().map_or(0, |o| o.max(&0).unsigned_abs());
    [before, behind].map(|n| n as usize)
}

/// The lines along the last axis that intersect a window, by their indices in the whole grid.
struct Lines<'a> {
    shape: &'a [usize],
    window: &'a [Range<usize>],
    columns: usize,
}

impl Lines<'_> {
    fn of<'a>(shape: &'a [usize], window: &'a [Range<usize>]) -> Lines<'a> {
        let columns = shape.last().copied().unwrap_or(1);
        Lines {
            shape: shape.split_last().map_or(&[], |(_, rest)| rest),
            window: window.split_last().map_or(&[], |(_, rest)| rest),
            columns: columns.max(1),
        }
    }

    /// In ascending order.
    fn all(&self) -> impl Iterator<Item = usize> {
        let mut lines = vec![0];
        for (n, range) in self.shape.iter().zip(self.window) {
            lines = lines
                .iter()
                .flat_map(|line| range.clone().map(move |at| line * n + at))
                .collect();
        }
        lines.into_iter()
    }
}

struct Sweep<'a, T> {
    cells: &'a [T],
    shape: &'a [usize],
    taps: &'a Taps,
    boundary: Boundary,
    /// Along the last axis.
    reach: [usize; 2],
}

/// The source of a tap's line.
#[derive(Clone, Copy)]
enum From {
    Line(usize),
    /// All of it lies beyond the boundary, and has this value.
    Constant(f64),
}

impl<T: Copy + Into<f64> + Sync> Sweep<'_, T> {
    /// The cells of a line from column `first` on.
    fn line(&self, line: usize, first: usize, out: &mut [f64]) {
        let n = self.shape.last().copied().unwrap_or(1);
        let own = &self.cells[line * n..][..n];
        let sources: Option<Vec<(From, i64, f64)>> =
            self.taps.iter().map(|tap| self.source(line, tap)).collect();
        let Some(sources) = sources else {
            for (out, cell) in out.iter_mut().zip(&own[first..]) {
                *out = (*cell).into();
            }
            return;
        };
        let end = first + out.len();
        let inner_end = n.saturating_sub(self.reach[1]).min(end).max(first);
        let inner = self.reach[0].max(first).min(inner_end)..inner_end;
        for column in (first..inner.start).chain(inner.end..end) {
            out[column - first] = self.cell(column, own, &sources);
        }
        // A line may be shorter than the taps reach.
        if inner.is_empty() {
            return;
        }
        let out = &mut out[inner.start - first..inner.end - first];
        out.fill(0.0);
        for (from, offset, weight) in sources {
            match from {
                From::Constant(c) => out.iter_mut().for_each(|out| *out += weight * c),
                From::Line(line) => {
                    let start = (line * n + inner.start) as i64 + offset;
                    for (out, cell) in out.iter_mut().zip(&self.cells[start as usize..]) {
                        *out += weight * (*cell).into();
                    }
                }
            }
        }
    }

    /// The line that a tap reads, its shift, and its weight; none where it lies beyond an interior
    /// boundary.
    fn source(&self, line: usize, (offset, weight): &(Vec<i64>, f64)) -> Option<(From, i64, f64)> {
        let (along, lead) = offset.split_last()?;
        let (mut rest, mut stride, mut found) = (line, 1, 0);
        for (axis, by) in lead.iter().enumerate().rev() {
            let n = self.shape[axis];
            match (self.boundary.fold((rest % n) as i64 + by, n), self.boundary) {
                (Some(inside), _) => found += inside * stride,
                (None, Boundary::Constant(c)) => return Some((From::Constant(c), *along, *weight)),
                (None, _) => return None,
            }
            rest /= n;
            stride *= n;
        }
        Some((From::Line(found), *along, *weight))
    }

    /// One cell near an end of its line.
    fn cell(&self, column: usize, own: &[T], sources: &[(From, i64, f64)]) -> f64 {
        let n = own.len();
        let mut sum = 0.0;
        for (from, offset, weight) in sources {
            let inside = self.boundary.fold(column as i64 + offset, n);
            sum += weight
                * match (*from, inside, self.boundary) {
                    (From::Constant(c), ..) | (From::Line(_), None, Boundary::Constant(c)) => c,
                    (From::Line(line), Some(at), _) => self.cells[line * n + at].into(),
                    (From::Line(_), None, _) => return own[column].into(),
                };
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Boundary; 7] = [
        Boundary::Interior,
        Boundary::Fixed,
        Boundary::Constant(0.75),
        Boundary::Clamp,
        Boundary::Mirror,
        Boundary::Reflect,
        Boundary::Wrap,
    ];

    fn grid(shape: &[usize]) -> Grid {
        let n: usize = shape.iter().product();
        let cell = |k: usize| (k * k % 97) as f64 / 97.0 - 0.5;
        Grid {
            shape: shape.to_vec(),
            data: (0..n).map(cell).collect(),
        }
    }

    /// The same cell by cell, with a lookup for each neighbour.
    fn plain(grid: &Grid, taps: &Taps, boundary: Boundary) -> Grid {
        grid.map(|cell| {
            let mut sum = 0.0;
            for (offset, weight) in taps {
                let at: Vec<i64> = cell.iter().zip(offset).map(|(c, o)| c + o).collect();
                match grid.look(&at, boundary) {
                    Some(value) => sum += weight * value,
                    None if boundary == Boundary::Fixed => return Some(grid.at(cell)),
                    None => return None,
                }
            }
            Some(sum)
        })
    }

    #[test]
    fn lines_go_on_as_in_scipy() {
        let check = |boundary: Boundary, expect: &str| {
            let cell = |at| {
                boundary
                    .fold(at, 4)
                    .map_or('.', |n| ['a', 'b', 'c', 'd'][n])
            };
            assert_eq!((-3..7).map(cell).collect::<String>(), expect);
        };
        check(Boundary::Constant(0.0), "...abcd...");
        check(Boundary::Clamp, "aaaabcdddd");
        check(Boundary::Mirror, "dcbabcdcba");
        check(Boundary::Reflect, "cbaabcddcb");
        check(Boundary::Wrap, "bcdabcdabc");
    }

    /// Three cells in a row, and their results computed by hand.
    #[test]
    fn a_line_of_three() {
        let taps = [(vec![-1], 0.5), (vec![0], 0.25), (vec![1], 0.25)];
        let check = |boundary, expect: &[f64]| {
            assert_eq!(
                sweep(&[4f32, 8.0, 16.0], &[3], &taps, boundary).data,
                expect
            );
        };
        check(Boundary::Interior, &[8.0]);
        check(Boundary::Fixed, &[4.0, 8.0, 16.0]);
        check(Boundary::Constant(0.75), &[3.375, 8.0, 8.1875]);
        check(Boundary::Clamp, &[5.0, 8.0, 12.0]);
        check(Boundary::Reflect, &[5.0, 8.0, 12.0]);
        check(Boundary::Mirror, &[7.0, 8.0, 10.0]);
        check(Boundary::Wrap, &[11.0, 8.0, 9.0]);
    }

    #[test]
    fn lines_are_what_their_cells_are() {
        let lopsided = [
            (vec![-2, 0, 1], 0.5),
            (vec![0, 1, -3], -0.25),
            (vec![1, -1, 0], 0.75),
        ];
        let large = [(vec![-1, 0, -1], 0.5), (vec![1, 2, 1], 0.5)];
        // The last is enough for several threads.
        let cases: [(&Taps, [usize; 3]); 4] = [
            (&lopsided, [4, 5, 9]),
            (&lopsided, [1, 1, 3]),
            (&lopsided, [3, 2, 4]),
            (&large, [40, 70, 101]),
        ];
        for (taps, shape) in cases {
            for boundary in ALL {
                let (found, grid) = (grid(&shape).sweep(taps, boundary), grid(&shape));
                assert_eq!(
                    found,
                    plain(&grid, taps, boundary),
                    "{boundary:?} {shape:?}"
                );
            }
        }
    }

    #[test]
    fn a_window_is_a_part_of_the_whole() {
        let taps = [(vec![-1, 0], 0.5), (vec![0, 2], 0.5)];
        let from = grid(&[6, 8]);
        let whole = from.sweep(&taps, Boundary::Fixed).data;
        let mut part = vec![9.0; 48];
        let window = [1..4, 2..8];
        sweep_into(
            &from.data,
            &[6, 8],
            &taps,
            Boundary::Fixed,
            &window,
            &mut part,
        );
        for (at, found) in part.iter().enumerate() {
            let inside = window[0].contains(&(at / 8)) && window[1].contains(&(at % 8));
            assert_eq!(*found, if inside { whole[at] } else { 9.0 }, "{at}");
        }
    }
}
