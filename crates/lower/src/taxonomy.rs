//! The names of Jo, Kim and Park: how each stream moves, from its directions of reuse.
//!
//! An input is used again along every e with A·e = 0, where A is its access; a sum runs along the
//! distances of its accumulation. With s·e = 0 the value is in many PEs at once: Broadcast, for a sum
//! Aggregated. Otherwise, with P·e = 0 it Stays (a sum Sediments). Otherwise it is Forwarded (a sum
//! Migrates). Only what happens within one array counts, so directions that leave the block, the warp
//! or the launch are left out.

use systola_ir::InputId;
use systola_ir::array::{Array, Role};
use systola_ir::form::{Atom, Form, Poly};
use systola_ir::mapping::{PlaceLevel, TimeLevel};
use systola_ir::system::visit::walk;
use systola_ir::system::{Expr, InputKind};

use crate::decide::Undecided;
use crate::report::Stream;

/// The streams of an array, inputs in the order of their declaration, then sums.
pub fn streams(array: &Array) -> Result<Vec<Stream>, Undecided> {
    let n = array.dims.len();
    let params = array.param_names();
    let Some(piece) = array.pieces.first() else {
        return Ok(Vec::new());
    };
    let outer: Vec<Vec<i128>> = outer_rows(array);
    let time: Vec<&Form> = array
        .time
        .iter()
        .zip(&piece.time)
        .filter(|(c, _)| c.level != TimeLevel::Launch)
        .map(|(_, f)| f)
        .collect();
    let inner =
        |c: &systola_ir::array::PlaceCoord| matches!(c.level, PlaceLevel::Lane | PlaceLevel::Reg);
    let place: Vec<&Form> = array
        .place
        .iter()
        .zip(&piece.place)
        .filter(|(c, _)| inner(c))
        .map(|(_, f)| f)
        .collect();
    let classify = |directions: &[Vec<Poly>], is_sum: bool| -> Result<(char, String), Undecided> {
        let mut letter = None;
        let mut reasons = Vec::new();
        for e in directions {
            let steps = products(&time, e)?;
            let moves = products(&place, e)?;
            let found = if steps.iter().all(Poly::is_zero) {
                if is_sum { 'A' } else { 'B' }
            } else if moves.iter().all(Poly::is_zero) {
                'S'
            } else if is_sum {
                'M'
            } else {
                'F'
            };
            let show = |list: &[Poly]| {
                let list: Vec<String> = list
                    .iter()
                    .map(|p| p.display(&params).to_string())
                    .collect();
                match list.as_slice() {
                    [one] => one.clone(),
                    many => format!("({})", many.join(", ")),
                }
            };
            reasons.push(format!(
                "e = {}, s·e = {}, P·e = {}",
                show(&e[array.tiles.len()..]),
                show(&steps),
                show(&moves)
            ));
            // The liveliest direction names the stream.
            let rank = |c: char| "BASFM".find(c);
            letter = match letter {
                Some(old) if rank(old) >= rank(found) => Some(old),
                _ => Some(found),
            };
        }
        Ok((letter.unwrap_or('-'), reasons.join("; ")))
    };
    let mut result = Vec::new();
    for (k, input) in array.inputs.iter().enumerate() {
        if matches!(input.kind, InputKind::Table { data: Some(_) }) {
            continue;
        }
        let Some(access) = access(array, InputId::from(k)) else {
            continue;
        };
        let mut rows = outer.clone();
        for form in &access {
            rows.extend(linear_rows(form, n));
        }
        // Tile indices are no direction of reuse.
        for t in 0..array.tiles.len() {
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
        let directions: Vec<Vec<Poly>> = kernel
            .iter()
            .map(|e| e.iter().map(|c| Poly::constant(*c)).collect())
            .collect();
        let (letter, reason) = classify(&directions, false)?;
        let reason = if directions.is_empty() {
            "each element is used once".into()
        } else {
            reason
        };
        result.push(Stream {
            name: input.name.clone(),
            letter,
            reason,
        });
    }
    for cell in &array.cells {
        if let Role::Accumulation { along, .. } = &cell.role {
            let directions: Vec<Vec<Poly>> = along
                .iter()
                .map(|e| array.extend_distance(e))
                .filter(|e| within(e, &outer))
                .collect();
            let (letter, reason) = classify(&directions, true)?;
            result.push(Stream {
                name: cell.name.clone(),
                letter,
                reason,
            });
        }
    }
    Ok(result)
}

/// The name, one letter for each stream that is used again.
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
fn outer_rows(array: &Array) -> Vec<Vec<i128>> {
    let n = array.dims.len();
    let mut rows = Vec::new();
    for piece in array.pieces.iter().take(1) {
        for (coord, form) in array.place.iter().zip(&piece.place) {
            if !matches!(coord.level, PlaceLevel::Lane | PlaceLevel::Reg) && !is_tiled(form) {
                rows.extend(linear_rows(form, n));
            }
        }
        for (coord, form) in array.time.iter().zip(&piece.time) {
            if coord.level == TimeLevel::Launch && !is_tiled(form) {
                rows.extend(linear_rows(form, n));
            }
        }
    }
    rows
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

/// What forms change by along e, floors counted by what they contain.
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

/// How an input is read, by the first reference to it.
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
