//! What every array satisfies by construction.

use crate::array::{Array, Reverse};
use crate::form::{Cond, Form};
use crate::id::DimId;
use crate::system::Expr;
use crate::system::visit::walk;

impl Array {
    /// Everything that is wrong with the array, one message each; empty for a well-formed array.
    pub fn verify(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        let n = self.dims.len();
        let mut check = |holds: bool, what: &dyn Fn() -> String| {
            if !holds {
                wrong.push(what());
            }
        };
        let known = |form: &Form| form.dims().iter().all(|d| d.index() < n);
        let known_cond = |cond: &Cond| cond.forms().into_iter().all(known);
        check(self.tiles.len() <= n, &|| {
            "more tiles than coordinates".into()
        });
        for (k, tile) in self.tiles.iter().enumerate() {
            check(tile.outer.index() == k, &|| {
                format!("tile {k} is not coordinate {k}")
            });
            check(tile.dim.index() < n && tile.size > 0, &|| {
                format!("tile {k} has no coordinate or no points")
            });
            check(tile.lo >= 0 && tile.hi >= 0, &|| {
                format!("tile {k} has a negative halo")
            });
        }
        check(!self.pieces.is_empty(), &|| "no piece".into());
        for (k, piece) in self.pieces.iter().enumerate() {
            check(piece.place.len() == self.place.len(), &|| {
                format!(
                    "piece {k} has {} places for {}",
                    piece.place.len(),
                    self.place.len()
                )
            });
            check(piece.time.len() == self.time.len(), &|| {
                format!(
                    "piece {k} has {} times for {}",
                    piece.time.len(),
                    self.time.len()
                )
            });
            let forms = piece.place.iter().chain(&piece.time);
            check(
                forms.into_iter().all(known) && known_cond(&piece.cond),
                &|| format!("piece {k} uses an unknown coordinate"),
            );
            if let Reverse::Forms(forms) = &piece.reverse {
                check(forms.len() == n, &|| {
                    format!("piece {k} has a reverse of the wrong length")
                });
                let slots = self.place.len() + self.time.len();
                check(
                    forms.iter().all(|(form, divisor)| {
                        *divisor > 0 && form.dims().iter().all(|d| d.index() < slots)
                    }),
                    &|| format!("piece {k} has an ill-formed reverse"),
                );
            }
        }
        let is_bound = |d: DimId| (n..n + self.bound.len()).contains(&d.index());
        let within = |form: &Form| form.dims().iter().all(|d| d.index() < n + self.bound.len());
        let mut body = self.body.clone();
        body.sort_unstable();
        check(
            body.iter().map(|c| c.index()).eq(0..self.cells.len()),
            &|| "the body is not a permutation of the cells".into(),
        );
        for cell in &self.cells {
            check(known_cond(&cell.domain), &|| {
                format!("the domain of {} uses an unknown coordinate", cell.name)
            });
            let mut stray = false;
            walk(&cell.body, &mut |e| match e {
                Expr::Scan { .. } => stray = true,
                Expr::Reduce { dims, .. } => stray |= !dims.iter().all(|d| is_bound(*d)),
                Expr::Var { var, index, .. } => {
                    let cell = self.cells.get(var.index());
                    stray |= cell.is_none_or(|c| c.kept.is_none()) || index.len() != n;
                    stray |= !index.iter().all(within);
                }
                Expr::Port(port) => stray |= port.index() >= self.ports.len(),
                Expr::Iter(d) => stray |= d.index() >= n && !is_bound(*d),
                Expr::Input { input, index, .. } => {
                    stray |= input.index() >= self.inputs.len() || !index.iter().all(within);
                }
                Expr::Guard { cond, .. } => stray |= !cond.forms().into_iter().all(within),
                _ => {}
            });
            check(!stray, &|| {
                format!("{} reads something that an array does not have", cell.name)
            });
            if let Some(kept) = &cell.kept {
                let storage = self.storages.get(kept.storage.index());
                let fits = storage.is_some_and(|s| s.axes.len() == kept.index.len());
                check(
                    fits && kept.index.iter().all(known) && known_cond(&kept.when),
                    &|| format!("{} has no place in its storage", cell.name),
                );
                check(storage.is_none_or(|s| s.ty == cell.ty), &|| {
                    format!("{} is kept as another type", cell.name)
                });
            }
        }
        for (k, port) in self.ports.iter().enumerate() {
            check(
                port.sink.index() < self.cells.len() && port.source.index() < self.cells.len(),
                &|| format!("port {k} joins unknown cells"),
            );
            check(port.distance.len() + self.tiles.len() == n, &|| {
                format!("port {k} has a distance of the wrong length")
            });
            for link in &port.links {
                check(
                    link.displacement.len() == self.place.len()
                        && link.delay.len() == self.time.len()
                        && known_cond(&link.guard),
                    &|| format!("a link of port {k} is ill-formed"),
                );
            }
        }
        wrong
    }
}
