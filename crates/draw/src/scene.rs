//! The scene of an array at concrete sizes.

use std::collections::{BTreeMap, BTreeSet};

use systola_ir::array::{Array, Cell, Realisation, Role};
use systola_ir::diag::{MappedPoint, coordinates};
use systola_ir::form::{Form, Poly};
use systola_ir::id::{DimId, InputId, VarId};
use systola_ir::system::Expr;
use systola_ir::system::visit::walk;
use systola_lower::report::Report;

use crate::picture::{Hop, Link, Scene, Slot, Stream};

mod memory;

/// Builds the scene of an array from its slots.
pub fn scene(array: &Array, report: &Report, params: &[i128], slots: &[MappedPoint]) -> Scene {
    let builder = Builder {
        array,
        params,
        direct: direct_reads(array),
    };
    let mut scene = Scene {
        title: format!(
            "{} under {}: {}",
            array.system,
            array.name,
            report.array_name()
        ),
        subtitle: subtitle(array, report, params, slots),
        dims: array.dims.clone(),
        mapping: builder.mapping_lines(),
        streams: builder.streams(report),
        slots: slots.iter().map(|s| builder.slot(s)).collect(),
        hops: Vec::new(),
        links: Vec::new(),
        followed: None,
        memory: array.keeps_values().then(|| builder.memory(slots)),
    };
    builder.add_links(&mut scene);
    mark_broadcasts(&mut scene, array.cells.len());
    scene.followed = followed(&scene);
    let order = (0..scene.streams.len())
        .map(|n| builder.reading_order(n))
        .collect::<Vec<_>>();
    reorder_streams(&mut scene, &order);
    scene
}

/// Streams in the order in which a person reads them.
fn reorder_streams(scene: &mut Scene, order: &[(bool, usize)]) {
    let mut by_order: Vec<usize> = (0..order.len()).collect();
    by_order.sort_by_key(|n| order[*n]);
    let mut new = vec![0; order.len()];
    for (position, n) in by_order.iter().enumerate() {
        new[*n] = position;
    }
    scene.streams = by_order.iter().map(|n| scene.streams[*n].clone()).collect();
    for slot in &mut scene.slots {
        for (n, _) in slot
            .values
            .iter_mut()
            .chain(&mut slot.injects)
            .chain(&mut slot.drains)
        {
            *n = new[*n];
        }
        slot.values.sort_by_key(|(n, _)| *n);
    }
    for hop in &mut scene.hops {
        hop.stream = new[hop.stream];
    }
    for link in &mut scene.links {
        link.stream = new[link.stream];
    }
    scene.links.sort_by_key(|link| link.stream);
    if let Some((n, _)) = &mut scene.followed {
        *n = new[*n];
    }
    let lives = scene.memory.iter_mut().flat_map(|memory| &mut memory.lives);
    for life in lives {
        life.stream = new[life.stream];
    }
}

fn subtitle(array: &Array, report: &Report, params: &[i128], slots: &[MappedPoint]) -> String {
    let sizes: Vec<String> = array
        .params
        .iter()
        .zip(params)
        .map(|(p, v)| format!("{} = {v}", p.name))
        .collect();
    let mut facts = match &report.counts {
        Some(c) => format!(
            "{}, {}, utilisation {:.1} %",
            number(c.pes, "PE"),
            number(c.steps, "step"),
            100.0 * c.utilisation
        ),
        None => {
            let pes: BTreeSet<_> = slots.iter().map(|s| &s.place).collect();
            let steps: BTreeSet<_> = slots.iter().map(|s| &s.time).collect();
            format!("{} PEs, {} busy steps", pes.len(), steps.len())
        }
    };
    if !sizes.is_empty() {
        facts = format!("{}: {facts}", sizes.join(", "));
    }
    facts
}

struct Builder<'a> {
    array: &'a Array,
    params: &'a [i128],
    /// Inputs that a cell reads directly rather than by propagation; their streams follow the
    /// cells.
    direct: Vec<InputId>,
}

fn direct_reads(array: &Array) -> Vec<InputId> {
    let mut found = BTreeSet::new();
    for cell in &array.cells {
        let carried = match &cell.role {
            Role::Propagation { input, .. } => Some(*input),
            _ => None,
        };
        walk(&cell.body, &mut |e| {
            if let Expr::Input { input, .. } = e
                && Some(*input) != carried
                && !is_alias(cell)
            {
                found.insert(*input);
            }
        });
    }
    found.into_iter().collect()
}

/// Is the cell nothing but an input under another name, as `W = w[q]`?
fn is_alias(cell: &Cell) -> bool {
    matches!(cell.body, Expr::Input { .. })
}

impl Builder<'_> {
    fn input_stream(&self, input: InputId) -> Option<usize> {
        let at = self.direct.iter().position(|i| *i == input)?;
        Some(self.array.cells.len() + at)
    }

    /// Operands before results, operands in the order of the declared inputs.
    fn reading_order(&self, stream: usize) -> (bool, usize) {
        let input = match self.array.cells.get(stream) {
            Some(cell) => match (&cell.role, &cell.body) {
                (Role::Propagation { input, .. }, _) | (_, Expr::Input { input, .. }) => {
                    Some(*input)
                }
                _ => None,
            },
            None => self.direct.get(stream - self.array.cells.len()).copied(),
        };
        match input {
            Some(input) => (false, input.index()),
            None => (true, stream),
        }
    }

    fn mapping_lines(&self) -> Vec<String> {
        let names = self.array.param_names();
        let [piece] = self.array.pieces.as_slice() else {
            return vec![format!("a mapping of {} pieces", self.array.pieces.len())];
        };
        let show = |name: &str, form: &Form| {
            format!("{name} = {}", form.display(&names, &self.array.dims))
        };
        let places = self.array.place.iter().zip(&piece.place);
        let times = self.array.time.iter().zip(&piece.time);
        places
            .map(|(coord, form)| show(&coord.name, form))
            .chain(times.map(|(coord, form)| show(&coord.name, form)))
            .collect()
    }

    fn streams(&self, report: &Report) -> Vec<Stream> {
        let letter = |name: &str| {
            report
                .streams
                .iter()
                .find(|s| s.name == name)
                .map(|s| match s.letter {
                    'B' => ", broadcast",
                    'F' => ", forwarded",
                    'S' => ", stays",
                    'A' => ", aggregated",
                    'M' => ", migrates",
                    _ => "",
                })
                .unwrap_or("")
        };
        let cells = self.array.cells.iter().map(|cell| {
            let (meaning, of) = match &cell.role {
                Role::Propagation { input, .. } => {
                    let input = &self.array.inputs[input.index()].name;
                    (format!("carries {input}"), input)
                }
                Role::Carry { .. } => ("carries a value".to_string(), &cell.name),
                Role::Accumulation { .. } => ("accumulates".to_string(), &cell.name),
                Role::Plain => ("computes".to_string(), &cell.name),
            };
            let how = match (letter(&cell.name), letter(of)) {
                ("", how) | (how, _) => how,
            };
            let depth = cell.registers.depth.as_ref();
            Stream {
                name: cell.name.clone(),
                meaning: format!("{meaning}{how}"),
                registers: Some(
                    depth
                        .and_then(|d| d.eval(self.params).ok())
                        .and_then(|d| usize::try_from(d).ok())
                        .unwrap_or(1),
                ),
                broadcast: false,
            }
        });
        let inputs = self.direct.iter().map(|input| {
            let name = &self.array.inputs[input.index()].name;
            Stream {
                name: name.clone(),
                meaning: format!("read{}", letter(name)),
                registers: None,
                broadcast: false,
            }
        });
        cells.chain(inputs).collect()
    }

    fn holds(&self, cond: &systola_ir::Cond, point: &[i128]) -> bool {
        cond.eval(self.params, point).unwrap_or(false)
    }

    fn eval(&self, index: &[Form], z: &[i128]) -> Option<Vec<i128>> {
        index.iter().map(|f| f.eval(self.params, z).ok()).collect()
    }

    fn slot(&self, mapped: &MappedPoint) -> Slot {
        let z = &mapped.point;
        let owned = self.holds(&self.array.owned(), z);
        let mut slot = Slot {
            point: z.clone(),
            place: mapped.place.clone(),
            time: mapped.time.clone(),
            copy: !owned,
            ..Slot::default()
        };
        for (n, cell) in self.array.cells.iter().enumerate() {
            if !self.holds(&cell.domain, z) {
                continue;
            }
            slot.values.push((n, self.value_label(n, cell, z)));
            let mut reads = Vec::new();
            self.reads(&cell.body, z, &mut reads);
            for (input, index) in reads {
                let name = &self.array.inputs[input.index()].name;
                match self.input_stream(input) {
                    Some(stream) if !is_alias(cell) => {
                        let label = element(name, &index);
                        if !slot.values.contains(&(stream, label.clone())) {
                            slot.values.push((stream, label));
                        }
                        push_new(&mut slot.injects, (stream, name.clone()));
                    }
                    _ => push_new(&mut slot.injects, (n, name.clone())),
                }
            }
        }
        if owned {
            for output in &self.array.outputs {
                for write in &output.writes {
                    if !self.holds(&write.when, z) {
                        continue;
                    }
                    if let Some(var) = first_var(&write.value) {
                        push_new(&mut slot.drains, (var.index(), output.name.clone()));
                    }
                }
            }
        }
        slot
    }

    /// The elements of inputs that an expression reads at a point.
    fn reads(&self, expr: &Expr, z: &[i128], found: &mut Vec<(InputId, Vec<i128>)>) {
        self.visit_reads(expr, &mut z.to_vec(), &mut |read, at| {
            if let Expr::Input { input, index, .. } = read
                && let Some(index) = self.eval(index, at)
            {
                found.push((*input, index));
            }
        });
    }

    /// Visits what an expression reads at a point, the inputs and the variables of other points, and
    /// at which iterators of points and sums: only chosen branches count, and all terms of sums.
    fn visit_reads(&self, expr: &Expr, z: &mut Vec<i128>, visit: &mut dyn FnMut(&Expr, &[i128])) {
        match expr {
            Expr::Input { .. } | Expr::Var { .. } => visit(expr, z),
            Expr::Guard {
                cond,
                then,
                otherwise,
            } => {
                if self.holds(cond, z) {
                    self.visit_reads(then, z, visit);
                } else if let Some(otherwise) = otherwise {
                    self.visit_reads(otherwise, z, visit);
                }
            }
            Expr::Reduce { dims, body, .. } => self.visit_terms(dims, body, z, visit),
            other => {
                for child in systola_ir::system::visit::children(other) {
                    self.visit_reads(child, z, visit);
                }
            }
        }
    }

    /// The same for all terms of a sum over some iterators.
    fn visit_terms(
        &self,
        dims: &[DimId],
        body: &Expr,
        z: &mut Vec<i128>,
        visit: &mut dyn FnMut(&Expr, &[i128]),
    ) {
        let [first, rest @ ..] = dims else {
            return self.visit_reads(body, z, visit);
        };
        let bound = first.index().checked_sub(self.array.dims.len());
        let range = bound.and_then(|n| self.array.bound.get(n)?.range.as_ref());
        let Some((lo, hi)) = range else { return };
        let ends = (lo.eval(self.params, z), hi.eval(self.params, z));
        let (Ok(lo), Ok(hi)) = ends else { return };
        let n = z.len();
        z.resize(n.max(first.index() + 1), 0);
        for value in lo..hi {
            z[first.index()] = value;
            self.visit_terms(rest, body, z, visit);
        }
        z.truncate(n);
    }

    /// The label of the value of this cell: the input element that it carries, the output element
    /// that it contributes to, or the variable at the point.
    fn value_label(&self, n: usize, cell: &Cell, z: &[i128]) -> String {
        let plain = || format!("{} {}", cell.name, list(z));
        match (&cell.role, &cell.body) {
            (Role::Propagation { input, index, .. }, _) | (_, Expr::Input { input, index, .. }) => {
                let name = &self.array.inputs[input.index()].name;
                self.eval(index, z)
                    .map_or_else(plain, |index| element(name, &index))
            }
            (Role::Accumulation { along, .. } | Role::Carry { along }, _) => {
                let along: Vec<Vec<Poly>> = along
                    .iter()
                    .map(|e| self.array.extend_distance(e))
                    .collect();
                self.output_label(n, &along, z).unwrap_or_else(|| {
                    let kept: Vec<i128> = (0..z.len())
                        .filter(|d| along.iter().all(|e| e[*d].is_zero()))
                        .map(|d| z[d])
                        .collect();
                    if kept.is_empty() {
                        plain()
                    } else {
                        format!("{} {}", cell.name, list(&kept))
                    }
                })
            }
            (Role::Plain, _) => plain(),
        }
    }

    /// `z2`, if the value of the cell contributes to z and its element is constant on the way.
    fn output_label(&self, n: usize, along: &[Vec<Poly>], z: &[i128]) -> Option<String> {
        for output in &self.array.outputs {
            for write in &output.writes {
                if first_var(&write.value).map(VarId::index) != Some(n) {
                    continue;
                }
                let here: Result<Vec<i128>, _> =
                    write.index.iter().map(|f| f.eval(self.params, z)).collect();
                let here = here.ok()?;
                let unchanged = along.iter().all(|e| {
                    let e: Result<Vec<i128>, _> = e.iter().map(|p| p.eval(self.params)).collect();
                    let Ok(e) = e else { return false };
                    let there: Vec<i128> = z.iter().zip(&e).map(|(z, e)| z - e).collect();
                    let moved = write.index.iter().map(|f| f.eval(self.params, &there));
                    moved
                        .collect::<Result<Vec<_>, _>>()
                        .is_ok_and(|m| m == here)
                });
                if unchanged {
                    return Some(element(&output.name, &here));
                }
            }
        }
        None
    }

    /// Links that deliver in some slot, and the delivered values.
    fn add_links(&self, scene: &mut Scene) {
        let at: BTreeMap<(Vec<i128>, Vec<i128>), usize> = scene
            .slots
            .iter()
            .enumerate()
            .map(|(n, s)| ((s.place.clone(), s.time.clone()), n))
            .collect();
        let eval = |v: &[Poly]| -> Option<Vec<i128>> {
            v.iter().map(|p| p.eval(self.params).ok()).collect()
        };
        for port in &self.array.ports {
            let source = port.source.index();
            let sink = &self.array.cells[port.sink.index()];
            for link in &port.links {
                if matches!(link.realisation, Realisation::Hole | Realisation::Wire) {
                    continue;
                }
                let (Some(move_by), Some(delay)) = (eval(&link.displacement), eval(&link.delay))
                else {
                    continue;
                };
                let mut delivers = false;
                for to in 0..scene.slots.len() {
                    let slot = &scene.slots[to];
                    let z = &slot.point;
                    if ![&sink.domain, &port.when, &link.guard]
                        .iter()
                        .all(|c| self.holds(c, z))
                    {
                        continue;
                    }
                    let minus = |a: &[i128], b: &[i128]| -> Vec<i128> {
                        a.iter().zip(b).map(|(a, b)| a - b).collect()
                    };
                    let origin = (minus(&slot.place, &move_by), minus(&slot.time, &delay));
                    if let Some(from) = at.get(&origin) {
                        delivers = true;
                        scene.hops.push(Hop {
                            stream: source,
                            from: *from,
                            to,
                        });
                    }
                }
                let delay = match delay.as_slice() {
                    [1] => "1 step".to_string(),
                    [n] => format!("{n} steps"),
                    many => format!("after {}", coordinates(many)),
                };
                let drawn = Link {
                    stream: source,
                    displacement: move_by,
                    delay,
                    realisation: link.realisation.short_name().to_string(),
                };
                if delivers && !scene.links.contains(&drawn) {
                    scene.links.push(drawn);
                }
            }
        }
    }
}

/// An input is broadcast if in every step all PEs that read it read the same element.
fn mark_broadcasts(scene: &mut Scene, n_cells: usize) {
    for n in n_cells..scene.streams.len() {
        let mut by_step: BTreeMap<&Vec<i128>, BTreeSet<&String>> = BTreeMap::new();
        let mut readers = 0;
        for slot in &scene.slots {
            let values = slot.values.iter().filter(|(stream, _)| *stream == n);
            for (_, value) in values {
                by_step.entry(&slot.time).or_default().insert(value);
                readers += 1;
            }
        }
        scene.streams[n].broadcast =
            by_step.values().all(|values| values.len() == 1) && readers > by_step.len();
    }
}

/// The value whose path is outlined: of the results, the middle one of those that the most slots
/// hold.
fn followed(scene: &Scene) -> Option<(usize, String)> {
    let mut holders: BTreeMap<(usize, &str), usize> = BTreeMap::new();
    for slot in &scene.slots {
        for (stream, value) in &slot.values {
            *holders.entry((*stream, value)).or_default() += 1;
        }
    }
    let drained: BTreeSet<usize> = scene
        .slots
        .iter()
        .flat_map(|s| s.drains.iter().map(|(n, _)| *n))
        .collect();
    let candidates: Vec<_> = holders
        .iter()
        .filter(|((stream, _), _)| drained.contains(stream))
        .collect();
    let most = candidates
        .iter()
        .map(|(_, n)| **n)
        .max()
        .filter(|n| *n > 1)?;
    let longest: Vec<_> = candidates.iter().filter(|(_, n)| **n == most).collect();
    let ((stream, value), _) = longest.get((longest.len() - 1) / 2)?;
    Some((*stream, (*value).to_string()))
}

fn push_new<T: PartialEq>(list: &mut Vec<T>, item: T) {
    if !list.contains(&item) {
        list.push(item);
    }
}

fn first_var(expr: &Expr) -> Option<VarId> {
    let mut found = None;
    walk(expr, &mut |e| {
        if let Expr::Var { var, .. } = e {
            found = found.or(Some(*var));
        }
    });
    found
}

/// `x3`, or `a[1,2]`.
fn element(name: &str, index: &[i128]) -> String {
    match index {
        [] => name.to_string(),
        [one] if *one >= 0 => format!("{name}{one}"),
        many => format!("{name}[{}]", list(many)),
    }
}

/// `1 PE`, `4 PEs`
fn number(n: i128, what: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{n} {what}{plural}")
}

fn list(values: &[i128]) -> String {
    let parts: Vec<String> = values.iter().map(i128::to_string).collect();
    parts.join(",")
}
