//! The fifteen stencils of Chen et al. 2019 (SSAM), as in `stencils/`, and published results on an
//! H200.

/// A weighted sum of neighbours.
#[derive(Clone, Copy, Debug)]
pub struct Stencil {
    /// Its name and that of its file.
    pub name: &'static str,
    pub rank: usize,
    pub radius: i64,
    /// Does a neighbour within the radius belong to it?
    has: fn([i64; 3]) -> bool,
    pub single: Published,
    pub double: Published,
}

/// In 10⁹ cells a second on one NVIDIA H200, 8192² or 512³ cells.
#[derive(Clone, Copy, Debug)]
pub struct Published {
    /// One sweep: SSAM's code, and hand-written register tiles.
    pub once: [(&'static str, Option<f64>); 2],
    /// Many sweeps.
    pub many: [(&'static str, Option<f64>); 3],
    /// The goal for many sweeps.
    pub goal: f64,
}

impl Published {
    pub fn best_once(&self) -> Option<(&'static str, f64)> {
        best(&self.once)
    }

    pub fn best_many(&self) -> Option<(&'static str, f64)> {
        best(&self.many)
    }
}

fn best(list: &[(&'static str, Option<f64>)]) -> Option<(&'static str, f64)> {
    let known = list
        .iter()
        .filter_map(|(name, rate)| Some((*name, (*rate)?)));
    known.max_by(|a, b| a.1.total_cmp(&b.1))
}

/// Numbers of a row; 0 where there is none.
const fn published(once: [f64; 2], many: [f64; 3], goal: f64) -> Published {
    const fn known(rate: f64) -> Option<f64> {
        if rate > 0.0 { Some(rate) } else { None }
    }
    Published {
        once: [("SSAM", known(once[0])), ("by hand", known(once[1]))],
        many: [
            ("SSAM", known(many[0])),
            ("AN5D", known(many[1])),
            ("EBISU", known(many[2])),
        ],
        goal,
    }
}

impl Stencil {
    /// Its neighbours in the order of its weights, as (plane, row, column).
    pub fn offsets(&self) -> Vec<[i64; 3]> {
        let all = -self.radius..=self.radius;
        let planes = if self.rank == 3 { all.clone() } else { 0..=0 };
        let cube = planes.flat_map(|z| {
            let rows = all.clone();
            rows.flat_map(move |y| (-self.radius..=self.radius).map(move |x| [z, y, x]))
        });
        cube.filter(|o| (self.has)(*o)).collect()
    }
}

/// On at most one axis: a star.
fn star(o: [i64; 3]) -> bool {
    o.iter().filter(|o| **o != 0).count() <= 1
}

fn cube(_: [i64; 3]) -> bool {
    true
}

fn without_cross(o: [i64; 3]) -> bool {
    o[1] != 0 && o[2] != 0
}

fn without_corners(o: [i64; 3]) -> bool {
    o.contains(&0)
}

macro_rules! stencils {
    ($($name:literal $rank:literal $radius:literal $has:ident
       $once:expr, $many:expr, $goal:literal; $once64:expr, $many64:expr, $goal64:literal)*) => {
        pub const STENCILS: &[Stencil] = &[$(Stencil {
            name: $name,
            rank: $rank,
            radius: $radius,
            has: $has,
            single: published($once, $many, $goal),
            double: published($once64, $many64, $goal64),
        }),*];
    };
}

stencils! {
    "2d5pt" 2 1 star [458., 500.], [1455., 1415., 1088.], 4000.; [254., 230.], [781., 313., 883.], 1766.
    "2d9pt" 2 2 star [446., 503.], [758., 724., 700.], 1516.; [240., 239.], [377., 305., 521.], 1042.
    "2d13pt" 2 3 star [386., 479.], [0., 452., 0.], 958.; [199., 222.], [0., 191., 0.], 444.
    "2d17pt" 2 4 star [370., 465.], [0., 372., 0.], 929.; [180., 225.], [0., 169., 0.], 450.
    "2d21pt" 2 5 star [249., 464.], [0., 0., 0.], 929.; [156., 203.], [0., 0., 0.], 406.
    "2ds25pt" 2 6 star [201., 441.], [0., 0., 0.], 882.; [126., 192.], [0., 0., 0.], 384.
    "2d25pt" 2 2 cube [329., 473.], [0., 443., 534.], 1068.; [224., 244.], [0., 198., 337.], 556.
    "2d64pt" 2 4 without_cross [199., 249.], [0., 0., 0.], 428.; [115., 147.], [0., 0., 0.], 217.
    "2d81pt" 2 4 cube [174., 249.], [0., 183., 0.], 338.; [104., 146.], [0., 90., 0.], 172.
    "2d121pt" 2 5 cube [121., 155.], [0., 0., 0.], 227.; [57., 92.], [0., 0., 0.], 115.
    "3d7pt" 3 1 star [334., 421.], [695., 491., 0.], 1390.; [216., 233.], [317., 217., 0.], 633.
    "3d13pt" 3 2 star [395., 387.], [312., 271., 0.], 790.; [172., 138.], [124., 127., 0.], 345.
    "3d27pt" 3 1 cube [245., 338.], [0., 288., 0.], 676.; [157., 180.], [0., 82., 0.], 359.
    "3d125pt" 3 2 cube [86., 152.], [0., 77., 0.], 219.; [45., 85.], [0., 30., 0.], 111.
    "poisson" 3 1 without_corners [341., 346.], [390., 0., 0.], 781.; [199., 191.], [203., 0., 0.], 406.
}

#[cfg(test)]
mod tests {
    use super::STENCILS;

    #[test]
    fn names_count_neighbours() {
        for stencil in STENCILS {
            let n = stencil.offsets().len();
            let digits = |c: char| !c.is_ascii_digit();
            let said = stencil.name.trim_end_matches("pt").rsplit(digits).next();
            let said = said.and_then(|n| n.parse().ok()).unwrap_or(19);
            assert_eq!(n, said, "{}", stencil.name);
        }
    }
}
