//! Images and preimages of sets under maps.

use crate::basic::BasicSet;
use crate::error::Result;
use crate::expr::{LinExpr, Space};
use crate::map::Map;
use crate::set::Set;
use crate::system::{Budget, Row, System};
impl Set {
    /// The image under an affine map given by its components over `[params | dims]`.
    pub fn apply(&self, outputs: &[LinExpr]) -> Result<Set> {
        self.image(&Map::affine(self.space, outputs.to_vec())?)
    }

    /// The image under a map: all `f(x)` for points `x` of the set in the domain of `f`.
    pub fn image(&self, map: &Map) -> Result<Set> {
        self.space.require_same(map.domain.space)?;
        let budget = &mut Budget::default();
        let (k, d, m) = (self.space.n_params, self.space.n_dims, map.outputs.len());
        let source = Set::from(map.domain.clone());
        let mut graph = Vec::new();
        for p in &self.pieces {
            for f in &source.pieces {
                // The domain comes first, so that the columns of the outputs keep their positions.
                let both = f.intersect(p)?;
                let n = both.sys.n + m;
                let columns: Vec<usize> = (0..both.sys.n)
                    .map(|v| if v < k + d { v } else { v + m })
                    .collect();
                let mut sys = both.sys.remap(n, &columns);
                for (i, e) in map.outputs.iter().enumerate() {
                    let row = e.to_row(both.sys.n)?;
                    let mut eq = vec![0; n + 1];
                    eq[0] = row[0];
                    for (&to, &c) in columns.iter().zip(&row[1..]) {
                        eq[to + 1] = c;
                    }
                    eq[k + d + i + 1] = -1;
                    sys.eqs.push(eq);
                }
                graph.push(BasicSet {
                    space: Space::new(k, d + m),
                    sys,
                });
            }
        }
        let graph = Set {
            space: Space::new(k, d + m),
            pieces: graph,
        };
        graph.project_out_in(0..d, budget)
    }

    /// The points of the domain of `map` that it sends into this set.
    pub fn preimage(&self, map: &Map) -> Result<Set> {
        self.space.require_same(map.target_space())?;
        let domain = &map.domain;
        let (k, m) = (self.space.n_params, map.outputs.len());
        let mut pieces = Vec::new();
        for p in &self.pieces {
            let n = domain.sys.n + p.n_exists();
            let mut images: Vec<LinExpr> = (0..k).map(LinExpr::var).collect();
            images.extend(map.outputs.iter().cloned());
            images.extend((0..p.n_exists()).map(|q| LinExpr::var(domain.sys.n + q)));
            debug_assert_eq!(images.len(), k + m + p.n_exists());
            let moved = |rows: &[Row]| -> Result<Vec<Row>> {
                rows.iter()
                    .map(|r| LinExpr::from_row(r).substitute(&images)?.to_row(n))
                    .collect()
            };
            let mut sys: System = domain.sys.clone();
            sys.add_vars(p.n_exists());
            sys.eqs.extend(moved(&p.sys.eqs)?);
            sys.ges.extend(moved(&p.sys.ges)?);
            pieces.push(BasicSet {
                space: domain.space,
                sys,
            });
        }
        Ok(Set {
            space: domain.space,
            pieces,
        })
    }
}
