//! Stencils as loops over a grid, after the definitions of `scipy.ndimage`.

/// A grid of numbers, row by row.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    pub shape: Vec<usize>,
    pub data: Vec<f64>,
}

/// What lies beyond the border.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Edge {
    Interior,
    Held,
    Constant(f64),
    Clamp,
    Mirror,
    Reflect,
    Wrap,
}

pub const EDGES: [Edge; 7] = [
    Edge::Interior,
    Edge::Held,
    Edge::Constant(0.75),
    Edge::Clamp,
    Edge::Mirror,
    Edge::Reflect,
    Edge::Wrap,
];

impl Edge {
    pub fn word(self) -> String {
        match self {
            Edge::Interior => "interior".to_string(),
            Edge::Held => "held".to_string(),
            Edge::Constant(c) => format!("constant {c:?}"),
            Edge::Clamp => "clamp".to_string(),
            Edge::Mirror => "mirror".to_string(),
            Edge::Reflect => "reflect".to_string(),
            Edge::Wrap => "wrap".to_string(),
        }
    }

    /// The least length of an axis of which `reach` cells beyond the border are asked for.
    pub fn least(self, reach: usize) -> usize {
        match self {
            Edge::Mirror if reach > 0 => reach + 1,
            Edge::Reflect | Edge::Wrap => reach.max(1),
            _ => 1,
        }
    }
}

/// Where an index is found instead, by the period of the extended line.
pub fn fold(i: i64, n: i64, edge: Edge) -> Option<i64> {
    if (0..n).contains(&i) {
        return Some(i);
    }
    match edge {
        Edge::Interior | Edge::Held | Edge::Constant(_) => None,
        Edge::Clamp => Some(i.clamp(0, n - 1)),
        Edge::Wrap => Some(i.rem_euclid(n)),
        Edge::Mirror => {
            let period = 2 * (n - 1);
            let i = i.rem_euclid(period);
            Some(if i < n { i } else { period - i })
        }
        Edge::Reflect => {
            let period = 2 * n;
            let i = i.rem_euclid(period);
            Some(if i < n { i } else { period - 1 - i })
        }
    }
}

impl Grid {
    pub fn random(shape: &[usize], seed: u64) -> Grid {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            // Few bits, so that sums in any order agree closely.
            ((state >> 40) as f64 / f64::from(1 << 24) * 256.0).floor() / 128.0 - 1.0
        };
        Grid {
            shape: shape.to_vec(),
            data: (0..shape.iter().product()).map(|_| next()).collect(),
        }
    }

    pub fn cells(&self) -> Vec<Vec<i64>> {
        let mut cells: Vec<Vec<i64>> = vec![Vec::new()];
        for n in &self.shape {
            cells = cells
                .iter()
                .flat_map(|c| (0..*n as i64).map(|i| [c.as_slice(), &[i]].concat()))
                .collect();
        }
        cells
    }

    pub fn at(&self, cell: &[i64]) -> f64 {
        let mut flat = 0;
        for (i, n) in cell.iter().zip(&self.shape) {
            assert!((0..*n as i64).contains(i), "{cell:?} of {:?}", self.shape);
            flat = flat * n + *i as usize;
        }
        self.data[flat]
    }

    /// A cell that may lie beyond the border; `None` where there is nothing.
    pub fn look(&self, cell: &[i64], edge: Edge) -> Option<f64> {
        let inside: Option<Vec<i64>> = (cell.iter().zip(&self.shape))
            .map(|(i, n)| fold(*i, *n as i64, edge))
            .collect();
        match (inside, edge) {
            (Some(cell), _) => Some(self.at(&cell)),
            (None, Edge::Constant(c)) => Some(c),
            (None, _) => None,
        }
    }

    /// The grid whose cells are what `f` says, cut to those where it says something.
    pub fn map(&self, f: impl Fn(&[i64]) -> Option<f64>) -> Grid {
        let cells = self.cells();
        let kept: Vec<(&Vec<i64>, f64)> = cells.iter().filter_map(|c| Some((c, f(c)?))).collect();
        let shape = (0..self.shape.len())
            .map(|axis| {
                let at = || kept.iter().map(|(c, _)| c[axis]);
                match (at().min(), at().max()) {
                    (Some(lo), Some(hi)) => (hi - lo + 1) as usize,
                    _ => 0,
                }
            })
            .collect();
        Grid {
            shape,
            data: kept.into_iter().map(|(_, value)| value).collect(),
        }
    }

    /// One sweep of a weighted sum.
    pub fn sweep(&self, taps: &[(Vec<i64>, f64)], edge: Edge) -> Grid {
        self.map(|cell| {
            let mut sum = 0.0;
            for (offset, weight) in taps {
                let at: Vec<i64> = cell.iter().zip(offset).map(|(i, o)| i + o).collect();
                match self.look(&at, edge) {
                    Some(value) => sum += weight * value,
                    None if edge == Edge::Held => return Some(self.at(cell)),
                    None => return None,
                }
            }
            Some(sum)
        })
    }
}
