//! The names of Jo, Kim and Park: how each stream moves, from its directions of reuse.
//!
//! An input is used again along every e with A·e = 0, where A is its access; a sum runs along the
//! distances of its accumulation. If s·e = 0 the value is in many PEs at once: Broadcast, for a sum
//! Aggregated. Otherwise, if P·e = 0, it Stays (a sum Sediments). Otherwise it is Forwarded (a sum
//! Migrates). Only reuse within one array counts: directions that leave the block, the warp or the
//! launch are ignored.

use systola_ir::InputId;
use systola_ir::array::{Array, Piece, Role};
use systola_ir::form::{Atom, Form, Poly};
use systola_ir::mapping::{PlaceLevel, TimeLevel};
use systola_ir::system::visit::walk;
use systola_ir::system::{Expr, InputKind};

use crate::decide::Undecided;
use crate::report::Stream;

/// The streams of an array, inputs in the order of their declaration, then sums.
pub fn streams(array: &Array) -> Result<Vec<Stream>, Undecided> {
    let Some(inner) = Inner::of(array) else {
        return Ok(Vec::new());
    };
    let mut result = Vec::new();
    for (k, input) in array.inputs.iter().enumerate() {
        if matches!(input.kind, InputKind::Table { data: Some(_) }) {
            continue;
        }
        let Some(access) = access(array, InputId::from(k)) else {
            continue;
        };
        let directions = inner.directions_of_reuse(&access)?;
        let mut stream = inner.stream(&input.name, &directions, ['B', 'S', 'F'])?;
        if directions.is_empty() {
            stream.reason = "each element is used once".into();
        }
        result.push(stream);
    }
    for cell in &array.cells {
        if let Role::Accumulation { along, .. } = &cell.role {
            let directions: Vec<Vec<Poly>> = along
                .iter()
                .map(|e| array.extend_distance(e))
                .filter(|e| within(e, &inner.outer))
                .collect();
            result.push(inner.stream(&cell.name, &directions, ['A', 'S', 'M'])?);
        }
    }
    Ok(result)
}

/// The coordinates within one array.
struct Inner<'a> {
    array: &'a Array,
    /// Linear parts of the coordinates that separate arrays.
    outer: Vec<Vec<i128>>,
    time: Vec<&'a Form>,
    place: Vec<&'a Form>,
}

impl<'a> Inner<'a> {
    fn of(array: &'a Array) -> Option<Inner<'a>> {
        let piece = array.pieces.first()?;
        let time = array.time.iter().zip(&piece.time);
        let place = array.place.iter().zip(&piece.place);
        Some(Inner {
            array,
            outer: outer_rows(array, piece),
            time: time
                .filter(|(c, _)| c.level != TimeLevel::Launch)
                .map(|(_, f)| f)
                .collect(),
            place: place
                .filter(|(c, _)| is_inner(c.level))
                .map(|(_, f)| f)
                .collect(),
        })
    }

    /// The directions in which an access reads the same element. Tile indices do not count.
    fn directions_of_reuse(&self, access: &[Form]) -> Result<Vec<Vec<Poly>>, Undecided> {
        let n = self.array.dims.len();
        let mut rows = self.outer.clone();
        for form in access {
            rows.extend(linear_rows(form, n));
        }
        for t in 0..self.array.tiles.len() {
            rows.push((0..n).map(|d| i128::from(d == t)).collect());
        }
        let kernel = if rows.is_empty() {
            affine::Matrix::identity(n)
                .rows()
                .map(<[i128]>::to_vec)
                .collect()
        } else {
            affine::Matrix::from_rows(n, &rows)?.kernel()?
        };
        let direction = |e: &Vec<i128>| e.iter().map(|c| Poly::constant(*c)).collect();
        Ok(kernel.iter().map(direction).collect())
    }

    /// The liveliest direction names the stream. The letters are for a value that is in many PEs at
    /// once, stays, or moves.
    fn stream(
        &self,
        name: &str,
        directions: &[Vec<Poly>],
        letters: [char; 3],
    ) -> Result<Stream, Undecided> {
        let mut liveliest = None;
        let mut reasons = Vec::new();
        for e in directions {
            let steps = products(&self.time, e)?;
            let moves = products(&self.place, e)?;
            let rank = if steps.iter().all(Poly::is_zero) {
                0
            } else if moves.iter().all(Poly::is_zero) {
                1
            } else {
                2
            };
            liveliest = liveliest.max(Some(rank));
            reasons.push(format!(
                "e = {}, s·e = {}, P·e = {}",
                self.show(&e[self.array.tiles.len()..]),
                self.show(&steps),
                self.show(&moves)
            ));
        }
        Ok(Stream {
            name: name.to_string(),
            letter: liveliest.map_or('-', |rank: usize| letters[rank]),
            reason: reasons.join("; "),
        })
    }

    fn show(&self, vector: &[Poly]) -> String {
        let params = self.array.param_names();
        let shown = vector.iter().map(|p| p.display(&params).to_string());
        match shown.collect::<Vec<_>>().as_slice() {
            [one] => one.clone(),
            many => format!("({})", many.join(", ")),
        }
    }
}

/// Is the level one of places within one array?
fn is_inner(level: PlaceLevel) -> bool {
    matches!(level, PlaceLevel::Lane | PlaceLevel::Reg)
}

/// The name, one letter for each stream that is reused.
pub fn name(streams: &[Stream]) -> String {
    streams
        .iter()
        .map(|s| s.letter)
        .filter(|c| *c != '-')
        .collect()
}

fn within(e: &[Poly], outer: &[Vec<i128>]) -> bool {
    outer.iter().all(|row| {
        let mut sum = Poly::zero();
        for (c, e) in row.iter().zip(e) {
            match e.mul(&Poly::constant(*c)) {
                Ok(term) => sum = sum.add(&term),
                Err(_) => return false,
            }
        }
        sum.is_zero()
    })
}

/// Linear parts of the coordinates that separate arrays: node, block, warp and launch.
fn outer_rows(array: &Array, piece: &Piece) -> Vec<Vec<i128>> {
    let place = array.place.iter().zip(&piece.place);
    let time = array.time.iter().zip(&piece.time);
    let place = place.filter(|(c, _)| !is_inner(c.level)).map(|(_, f)| f);
    let time = time.filter(|(c, _)| c.level == TimeLevel::Launch);
    place
        .chain(time.map(|(_, f)| f))
        .filter(|form| !is_tiled(form))
        .flat_map(|form| linear_rows(form, array.dims.len()))
        .collect()
}

/// A tile index ⌊x/B⌋ separates tiles, not points: within a tile x still moves.
fn is_tiled(form: &Form) -> bool {
    form.terms().any(|(atom, _)| !matches!(atom, Atom::Dim(_)))
}

/// The coefficients of a form, and those inside its floors, each a row.
fn linear_rows(form: &Form, n: usize) -> Vec<Vec<i128>> {
    let mut rows = Vec::new();
    let mut row = vec![0; n];
    for (atom, c) in form.terms() {
        match atom {
            Atom::Dim(d) => {
                if let (Some(slot), Some(c)) = (row.get_mut(d.index()), c.as_constant()) {
                    *slot = c;
                }
            }
            Atom::Floor(inner, _) | Atom::Mod(inner, _) => rows.extend(linear_rows(inner, n)),
        }
    }
    if row.iter().any(|c| *c != 0) {
        rows.push(row);
    }
    rows
}

/// The change of each form along e; a floor changes like its contents.
fn products(forms: &[&Form], e: &[Poly]) -> Result<Vec<Poly>, Undecided> {
    let mut result = Vec::new();
    for form in forms {
        let mut sum = Poly::zero();
        for (atom, c) in form.terms() {
            match atom {
                Atom::Dim(d) => sum = sum.add(&c.mul(&e[d.index()])?),
                Atom::Floor(inner, _) | Atom::Mod(inner, _) => {
                    sum = sum.add(&products(&[inner], e)?[0]);
                }
            }
        }
        result.push(sum);
    }
    Ok(result)
}

/// The access of an input, from the first reference to it.
fn access(array: &Array, input: InputId) -> Option<Vec<Form>> {
    let mut found = None;
    for cell in &array.cells {
        walk(&cell.body, &mut |e| {
            if let Expr::Input {
                input: i, index, ..
            } = e
                && *i == input
                && found.is_none()
            {
                found = Some(index.clone());
            }
        });
    }
    found
}
