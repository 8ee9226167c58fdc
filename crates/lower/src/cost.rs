//! The array in numbers: counts at given sizes, links, registers, injections and drains.

use std::collections::BTreeSet;

use affine::Space;
use systola_ir::array::{Array, Realisation, Reverse, Role};
use systola_ir::form::{Cond, Form, Poly};
use systola_ir::mapping::TimeLevel;
use systola_ir::sets::{map_of, set_of};
use systola_ir::system::visit::walk;
use systola_ir::system::{Expr, System};
use systola_ir::{DimId, ParamId};

use crate::clock::{domain, time_bounds};
use crate::decide::Undecided;
use crate::digits::gcd;
use crate::report::{Counts, LinkRow, RegisterRow, Report, Scope};
use crate::taxonomy::{name, streams};

/// Reports on a legal array; `sizes` are the parameters, if all of them are given.
pub fn report(
    array: &Array,
    system: &System,
    scope: Scope,
    sizes: Option<&[i128]>,
) -> Result<Report, Undecided> {
    let streams = streams(array)?;
    let params = array.param_names();
    let registers = registers(array, &params, sizes);
    let value = |poly: &Option<Poly>| {
        let poly = poly.as_ref()?;
        match sizes {
            Some(sizes) => poly.eval(sizes).ok(),
            None => poly.as_constant(),
        }
    };
    let per_pe = |coalesced: bool| {
        let mut sum = loaded(array).len() as i128;
        for cell in &array.cells {
            let depth = if coalesced {
                value(&cell.registers.coalesced)?
            } else {
                value(&cell.registers.depth)?
            };
            sum += depth * cell.ty.n_scalars() as i128;
        }
        Some(sum)
    };
    Ok(Report {
        system: array.system.clone(),
        mapping: array.name.clone(),
        scope,
        name: name(&streams),
        streams,
        counts: sizes
            .map(|sizes| counts(array, system, sizes))
            .transpose()?,
        links: links(array, &params),
        registers,
        registers_per_pe: per_pe(false),
        coalesced_per_pe: per_pe(true),
        reverse: reverse_lines(array, &params),
        injections: injections(array, &params),
        drains: drains(array, &params),
        kept: kept(array, &params),
        transfers: transfers(array),
        notes: Vec::new(),
    })
}

/// Direct reads inside larger expressions: each keeps its element in a register. Those of the terms of
/// a sum change from term to term.
fn loaded(array: &Array) -> Vec<(String, Vec<Form>)> {
    let mut list: Vec<(String, Vec<Form>)> = Vec::new();
    for cell in &array.cells {
        let mut leaves = Vec::new();
        leaf_reads(&cell.body, true, &mut leaves);
        for (input, index) in leaves {
            let key = (array.inputs[input].name.clone(), index);
            let of_point = |f: &Form| f.dims().iter().all(|d| d.index() < array.dims.len());
            if key.1.iter().all(of_point) && !list.contains(&key) {
                list.push(key);
            }
        }
    }
    list
}

/// Reads other than the whole value of the cell.
fn leaf_reads(expr: &Expr, is_value: bool, list: &mut Vec<(usize, Vec<Form>)>) {
    match expr {
        Expr::Input { input, index, .. } if !is_value => list.push((input.index(), index.clone())),
        Expr::Guard {
            then, otherwise, ..
        } => {
            leaf_reads(then, is_value, list);
            if let Some(otherwise) = otherwise {
                leaf_reads(otherwise, is_value, list);
            }
        }
        other => {
            for child in systola_ir::system::visit::children(other) {
                leaf_reads(child, false, list);
            }
        }
    }
}

fn registers(array: &Array, params: &[String], sizes: Option<&[i128]>) -> Vec<RegisterRow> {
    let show = |poly: &Option<Poly>| match (poly, sizes) {
        (Some(poly), Some(sizes)) => poly
            .eval(sizes)
            .map_or_else(|_| "?".into(), |v| v.to_string()),
        (Some(poly), None) => poly.display(params).to_string(),
        (None, _) => "depends on sizes".to_string(),
    };
    let mut rows: Vec<RegisterRow> = array
        .cells
        .iter()
        .map(|cell| RegisterRow {
            name: cell.name.clone(),
            scalars: cell.ty.n_scalars(),
            depth: show(&cell.registers.depth),
            coalesced: show(&cell.registers.coalesced),
        })
        .collect();
    for (input, index) in loaded(array) {
        let index: Vec<String> = index
            .iter()
            .map(|f| f.display(params, &array.dims).to_string())
            .collect();
        rows.push(RegisterRow {
            name: format!("{input}[{}]", index.join(", ")),
            scalars: 1,
            depth: "1".into(),
            coalesced: "1".into(),
        });
    }
    rows
}

fn vector(list: &[Poly], params: &[String]) -> String {
    let parts: Vec<String> = list.iter().map(|p| p.display(params).to_string()).collect();
    match parts.as_slice() {
        [one] => one.clone(),
        many => format!("({})", many.join(", ")),
    }
}

fn links(array: &Array, params: &[String]) -> Vec<LinkRow> {
    let mut rows = Vec::new();
    for port in &array.ports {
        for link in &port.links {
            if link.realisation == Realisation::Wire {
                continue;
            }
            let guard =
                (port.links.len() > 1).then(|| link.guard.display(params, &array.dims).to_string());
            rows.push(LinkRow {
                source: array.cells[port.source.index()].name.clone(),
                sink: array.cells[port.sink.index()].name.clone(),
                distance: vector(&port.distance, params),
                displacement: vector(&link.displacement, params),
                delay: vector(&link.delay, params),
                realisation: link.realisation.clone(),
                guard,
            });
        }
    }
    rows
}

/// Numbers of points, PEs and steps.
struct Size {
    points: i128,
    expanded: i128,
    pes: i128,
    steps: i128,
}

/// Visits the points if there are few of them: floors in the places make symbolic counts slow.
fn visited(array: &Array, sizes: &[i128]) -> Option<Size> {
    /// More points than this are counted symbolically.
    const MOST: usize = 4096;
    let value = |p: ParamId| sizes.get(p.index()).copied();
    let fixed = domain(array).map(&|f| f.fix_params(&value)).ok()?;
    let set = set_of(&fixed, Space::new(0, array.dims.len())).ok()?;
    let mut pending = set.points(&[]).ok()?;
    let mut expanded = 0;
    while pending.next_point().ok()?.is_some() {
        expanded += 1;
        if expanded > MOST {
            return None;
        }
    }
    let owned = array.owned();
    let mut n_owned = 0;
    let mut places = BTreeSet::new();
    let mut bounds: Vec<Option<(i128, i128)>> = vec![None; array.time.len()];
    for point in set.points(&[]).ok()? {
        let point = point.ok()?;
        n_owned += i128::from(owned.eval(sizes, &point).ok()?);
        let mut piece = None;
        for candidate in &array.pieces {
            if candidate.cond.eval(sizes, &point).ok()? {
                piece = Some(candidate);
                break;
            }
        }
        let piece = piece?;
        let eval = |f: &Form| f.eval(sizes, &point).ok();
        places.insert(piece.place.iter().map(eval).collect::<Option<Vec<_>>>()?);
        for (range, form) in bounds.iter_mut().zip(&piece.time) {
            let t = eval(form)?;
            let (least, most) = range.unwrap_or((t, t));
            *range = Some((least.min(t), most.max(t)));
        }
    }
    let mut steps = i128::from(expanded > 0);
    for (least, most) in bounds.into_iter().flatten() {
        steps = steps.checked_mul(most - least + 1)?;
    }
    Some(Size {
        points: n_owned,
        expanded: expanded as i128,
        pes: places.len() as i128,
        steps,
    })
}

fn derived(array: &Array, sizes: &[i128]) -> Result<Size, Undecided> {
    let n = array.dims.len();
    let value = |p: ParamId| sizes.get(p.index()).copied();
    let fixed = |cond: &Cond| cond.map(&|f| f.fix_params(&value));
    let expanded_set = set_of(&fixed(&domain(array))?, Space::new(0, n))?;
    let expanded = expanded_set.count(&[])?.unwrap_or(0);
    let points = if array.tiles.is_empty() {
        expanded
    } else {
        let owned = fixed(&domain(array).and(array.owned()))?;
        set_of(&owned, Space::new(0, n))?.count(&[])?.unwrap_or(0)
    };
    let mut places = None;
    for piece in &array.pieces {
        let cond = fixed(&domain(array).and(piece.cond.clone()))?;
        let set = set_of(&cond, Space::new(0, n))?;
        let forms = piece
            .place
            .iter()
            .map(|f| f.fix_params(&value))
            .collect::<Result<Vec<_>, _>>()?;
        let image = set.image(&map_of(&forms, Space::new(0, n))?)?;
        places = Some(match places {
            None => image,
            Some(places) => image.union(&places)?,
        });
    }
    let pes = match places {
        Some(places) if !array.place.is_empty() => places.count(&[])?.unwrap_or(0),
        _ => i128::from(expanded > 0),
    };
    let mut steps = i128::from(expanded > 0);
    for k in 0..array.time.len() {
        if let Some((least, most)) = time_bounds(array, k, sizes)? {
            steps = steps
                .checked_mul(most - least + 1)
                .ok_or(affine::Error::Overflow)?;
        }
    }
    Ok(Size {
        points,
        expanded,
        pes,
        steps,
    })
}

fn counts(array: &Array, system: &System, sizes: &[i128]) -> Result<Counts, Undecided> {
    let Size {
        points,
        expanded,
        pes,
        steps,
    } = match visited(array, sizes) {
        Some(size) => size,
        None => derived(array, sizes)?,
    };
    let outputs = outputs(system, sizes)?;
    let ratio = |a: i128, b: i128| if b == 0 { 0.0 } else { a as f64 / b as f64 };
    let slots = pes.checked_mul(steps).ok_or(affine::Error::Overflow)?;
    Ok(Counts {
        params: array
            .param_names()
            .into_iter()
            .zip(sizes.iter().copied())
            .collect(),
        points,
        expanded,
        pes,
        steps,
        outputs,
        throughput: ratio(outputs, steps),
        utilisation: ratio(expanded, slots),
        period: period(array, sizes)?,
    })
}

/// Elements written.
fn outputs(system: &System, sizes: &[i128]) -> Result<i128, Undecided> {
    let n = system.dims.len();
    let value = |p: ParamId| sizes.get(p.index()).copied();
    let mut sum = 0;
    for output in &system.outputs {
        for write in &output.writes {
            let mut cond = system.domain_cond().and(write.when.clone());
            walk(&write.value, &mut |e| {
                if let Expr::Var { var, .. } = e {
                    for on in &system.vars[var.index()].on {
                        cond = std::mem::replace(&mut cond, Cond::TRUE).and(on.clone());
                    }
                }
            });
            let cond = cond.map(&|f| f.fix_params(&value))?;
            sum += set_of(&cond, Space::new(0, n))?.count(&[])?.unwrap_or(0);
        }
    }
    Ok(sum)
}

/// Steps between two uses of a PE: the greatest common divisor of the times along the directions
/// that keep the place.
fn period(array: &Array, sizes: &[i128]) -> Result<Option<i128>, Undecided> {
    let [piece] = array.pieces.as_slice() else {
        return Ok(None);
    };
    let n = array.dims.len();
    let row = |form: &Form| -> Result<Option<Vec<i128>>, Undecided> {
        let fixed = form.fix_params(&|p| sizes.get(p.index()).copied())?;
        if !fixed.is_affine() {
            return Ok(None);
        }
        Ok((0..n)
            .map(|d| fixed.coefficient(DimId::from(d)).as_constant())
            .collect())
    };
    let mut rows = Vec::new();
    for form in &piece.place {
        match row(form)? {
            Some(row) => rows.push(row),
            None => return Ok(None),
        }
    }
    let kernel = if rows.is_empty() {
        affine::Matrix::identity(n)
            .rows()
            .map(<[i128]>::to_vec)
            .collect()
    } else {
        affine::Matrix::from_rows(n, &rows)?.kernel()?
    };
    // The step clock as one row: each time coordinate counts by its ticks.
    let mut schedule = vec![0i128; n];
    let mut worth = 1i128;
    for k in (0..array.time.len()).rev() {
        if array.time[k].level == TimeLevel::Launch {
            continue;
        }
        let Some(row) = row(&piece.time[k])? else {
            return Ok(None);
        };
        for (sum, c) in schedule.iter_mut().zip(row) {
            *sum += c.checked_mul(worth).ok_or(affine::Error::Overflow)?;
        }
        let Some((least, most)) = time_bounds(array, k, sizes)? else {
            return Ok(None);
        };
        worth = worth
            .checked_mul(most - least + 1)
            .ok_or(affine::Error::Overflow)?;
    }
    let period = kernel
        .iter()
        .map(|d| d.iter().zip(&schedule).map(|(d, s)| d * s).sum::<i128>())
        .fold(0, |g, t| gcd(g, t.abs()));
    Ok((period > 0).then_some(period))
}

fn reverse_lines(array: &Array, params: &[String]) -> Vec<String> {
    let slots: Vec<String> = array
        .place
        .iter()
        .map(|c| c.name.clone())
        .chain(array.time.iter().map(|c| c.name.clone()))
        .collect();
    let mut lines = Vec::new();
    for piece in &array.pieces {
        if array.pieces.len() > 1 {
            lines.push(format!("when {}:", piece.cond.display(params, &array.dims)));
        }
        match &piece.reverse {
            Reverse::Scan => {
                lines.push("by scanning the fibre of the slot, at most one point".into());
            }
            Reverse::Forms(forms) => {
                for (dim, (form, divisor)) in array.dims.iter().zip(forms) {
                    let form = form.display(params, &slots);
                    lines.push(if *divisor == 1 {
                        format!("{dim} = {form}")
                    } else {
                        format!("{dim} = ({form})/{divisor}, where it divides")
                    });
                }
            }
        }
    }
    lines
}

fn injections(array: &Array, params: &[String]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let names = array.names();
    for cell in &array.cells {
        walk(&cell.body, &mut |e| {
            let line = match e {
                Expr::Input { input, index, .. } => {
                    let index: Vec<String> = index
                        .iter()
                        .map(|f| f.display(params, &names).to_string())
                        .collect();
                    let name = &array.inputs[input.index()].name;
                    match &cell.role {
                        Role::Propagation { along, .. } => format!(
                            "{name}[{}] enters `{}` and travels along {}",
                            index.join(", "),
                            cell.name,
                            vector(along, params)
                        ),
                        _ => format!("{name}[{}] is read by `{}`", index.join(", "), cell.name),
                    }
                }
                Expr::Lookup { input, .. } => format!(
                    "{} is looked up by `{}`",
                    array.inputs[input.index()].name,
                    cell.name
                ),
                _ => return,
            };
            if !lines.contains(&line) {
                lines.push(line);
            }
        });
    }
    lines
}

fn drains(array: &Array, params: &[String]) -> Vec<String> {
    let mut lines = Vec::new();
    for output in &array.outputs {
        for write in &output.writes {
            let index: Vec<String> = write
                .index
                .iter()
                .map(|f| f.display(params, &array.dims).to_string())
                .collect();
            lines.push(format!(
                "{}[{}] leaves when {}",
                output.name,
                index.join(", "),
                write.when.display(params, &array.dims)
            ));
        }
    }
    lines
}

/// `S in lu[i, j], the output lu`.
fn kept(array: &Array, params: &[String]) -> Vec<String> {
    let mut lines = Vec::new();
    for cell in &array.cells {
        let Some(kept) = &cell.kept else { continue };
        let storage = &array.storages[kept.storage.index()];
        let index = kept.index.iter();
        let index = index.map(|f| f.display(params, &array.dims).to_string());
        let place = format!(
            "`{}` in {}[{}]",
            cell.name,
            storage.name,
            index.collect::<Vec<_>>().join(", ")
        );
        lines.push(match storage.output {
            Some(_) => format!("{place}, where the output is"),
            None => {
                let axes = storage.axes.iter();
                let extents = axes.map(|a| a.hi.sub(&a.lo).display(params, &[]).to_string());
                let extents: Vec<String> = extents.collect();
                match extents.is_empty() {
                    true => format!("{place}, one element"),
                    false => format!("{place}, an array of {}", extents.join(" x ")),
                }
            }
        });
    }
    lines
}

fn transfers(array: &Array) -> Vec<String> {
    array
        .transfers
        .iter()
        .map(|t| {
            let at =
                t.at.as_ref()
                    .map_or("once".to_string(), |a| format!("for each {}", a.text));
            format!(
                "{} to {:?}, {at}, {} stage{}, layout {:?}, by {:?}",
                t.source.text,
                t.store,
                t.stages,
                if t.stages == 1 { "" } else { "s" },
                t.layout,
                t.engine
            )
            .to_lowercase()
        })
        .collect()
}
