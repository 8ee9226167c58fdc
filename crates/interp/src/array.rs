//! The meaning of arrays, cycle by cycle.
//!
//! This sees the array only. Every point of the expanded domain has a slot (place, time). Steps run
//! in the order of time; in each, the PEs that have a point evaluate their cells. A cell's value
//! enters the queue of its PE, which keeps as many values as the array states and clears them
//! between launches. A port is answered by its link: the value that the PE at
//! `place − displacement` put into its queue `delay` ticks ago. That value carries the point it was
//! made at, which must be the one the port reads; a value that is missing, too old or of another
//! point is an error.

use std::collections::{HashMap, VecDeque};

use systola_ir::array::{Array, Link, Port, Realisation, Role};
use systola_ir::codes::{array as codes, run};
use systola_ir::form::Overflow;
use systola_ir::mapping::TimeLevel;
use systola_ir::system::System;
use systola_ir::{Diagnostic, Span, VarId};

use crate::code::{Code, Env, Frame, MOST_TERMS, Read};
use crate::inputs::Inputs;
use crate::linear::{Linear, Test};
use crate::params::{show_point, with_params};
use crate::system::Arrays;
use crate::value::Value;

mod memory;
mod reads;
mod slots;
mod targets;

use memory::{Element, StorageMapCode, Stored};
use reads::StepReads;
pub use slots::{Slot, trace};
use targets::Targets;

/// Runs an array on inputs and returns its outputs.
pub fn run_array(array: &Array, params: &[i128], inputs: &Arrays) -> Result<Arrays, Diagnostic> {
    let shell = array.declarations();
    let inputs = Inputs::bind(&shell, params, inputs)?;
    let machine = Machine::new(array, &shell, params, inputs)?;
    machine.run()
}

fn too_large(_: Overflow) -> Diagnostic {
    Diagnostic::new(
        &run::TOO_LARGE,
        Span::NONE,
        "an index or time leaves 64 bits at these sizes",
    )
}

/// A value in a queue; a hole has none.
#[derive(Clone, Debug)]
struct Entry {
    tick: i64,
    /// The slot it was made in, which gives the point.
    slot: usize,
    value: Option<Value>,
}

struct LinkCode {
    test: Test,
    displacement: Vec<i64>,
    ticks: i64,
    realisation: Realisation,
}

struct PortCode {
    distance: Vec<i64>,
    links: Vec<LinkCode>,
}

struct CellCode {
    code: Code,
    domain: Test,
    depth: i64,
    propagated: Option<(systola_ir::InputId, Vec<Linear>)>,
    kept: Option<StorageMapCode>,
}

struct WriteCode {
    output: usize,
    code: Code,
    when: Test,
    index: Vec<Linear>,
    span: Span,
}

struct Machine<'a> {
    array: &'a Array,
    params: &'a [i128],
    inputs: Inputs<'a>,
    slots: Vec<Slot>,
    /// Tick of each slot within its launch.
    ticks: Vec<i64>,
    cells: Vec<CellCode>,
    ports: Vec<PortCode>,
    writes: Vec<WriteCode>,
    owned: Test,
}

impl<'a> Machine<'a> {
    fn new(
        array: &'a Array,
        shell: &System,
        params: &'a [i128],
        inputs: Inputs<'a>,
    ) -> Result<Machine<'a>, Diagnostic> {
        let slots = trace(array, params)?;
        let radix = radix(array, &slots)?;
        let ticks = slots
            .iter()
            .map(|slot| linear_time(&slot.time, &radix))
            .collect::<Result<_, _>>()?;
        let env = Env {
            system: shell,
            params,
        };
        let mut cells = Vec::new();
        for (n, cell) in array.cells.iter().enumerate() {
            let depth = cell
                .registers
                .depth
                .as_ref()
                .and_then(|d| d.eval(params).ok())
                // No run takes more steps than that.
                .map(|d| i64::try_from(d).unwrap_or(i64::MAX))
                .ok_or_else(|| {
                    Diagnostic::new(
                        &codes::NOT_THERE,
                        cell.span,
                        format!("the array states no register count for `{}`", cell.name),
                    )
                })?;
            let propagated = match &cell.role {
                Role::Propagation { input, index, .. } => Some((
                    *input,
                    index
                        .iter()
                        .map(|f| Linear::compile(f, params))
                        .collect::<Result<_, _>>()
                        .map_err(too_large)?,
                )),
                Role::Plain | Role::Carry { .. } | Role::Accumulation { .. } => None,
            };
            cells.push(CellCode {
                code: Code::compile(&cell.body, env, cell.span)?,
                domain: Test::compile(&cell.domain, params).map_err(too_large)?,
                depth,
                propagated,
                kept: StorageMapCode::of(array, n, params)?,
            });
        }
        let ports = array
            .ports
            .iter()
            .map(|port| port_code(array, port, params, &radix))
            .collect::<Result<_, _>>()?;
        let mut writes = Vec::new();
        for (output, declared) in array.outputs.iter().enumerate() {
            for write in &declared.writes {
                writes.push(WriteCode {
                    output,
                    code: Code::compile(&write.value, env, write.span)?,
                    when: Test::compile(&write.when, params).map_err(too_large)?,
                    index: write
                        .index
                        .iter()
                        .map(|f| Linear::compile(f, params))
                        .collect::<Result<_, _>>()
                        .map_err(too_large)?,
                    span: write.span,
                });
            }
        }
        Ok(Machine {
            array,
            params,
            inputs,
            slots,
            ticks,
            cells,
            ports,
            writes,
            owned: Test::compile(&array.owned(), params).map_err(too_large)?,
        })
    }

    fn launch(&self, slot: usize) -> Vec<i64> {
        let time = &self.slots[slot].time;
        self.array
            .time
            .iter()
            .zip(time)
            .filter(|(c, _)| c.level == TimeLevel::Launch)
            .map(|(_, t)| *t)
            .collect()
    }

    fn run(self) -> Result<Arrays, Diagnostic> {
        let mut state = State::default();
        let mut outputs = Targets::new(self.array, self.params)?;
        let mut frame = Frame::new(MOST_TERMS, false);
        let mut first = 0;
        while first < self.slots.len() {
            let time = &self.slots[first].time;
            let count = self.slots[first..]
                .iter()
                .take_while(|s| s.time == *time)
                .count();
            let launch = self.launch(first);
            if state.launch.as_ref() != Some(&launch) {
                state.commit();
                state.launch = Some(launch);
            }
            self.step(first..first + count, &mut state, &mut outputs, &mut frame)?;
            first += count;
        }
        self.finish_stored(&state, &mut outputs)?;
        outputs.finish(self.array)
    }

    /// Outputs whose memory is a storage.
    fn finish_stored(&self, state: &State, outputs: &mut Targets) -> Result<(), Diagnostic> {
        for (storage, declared) in self.array.storages.iter().enumerate() {
            let Some(output) = declared.output else {
                continue;
            };
            let span = self.array.outputs[output].span;
            for (index, value) in state.stored.contents(storage) {
                let index: Vec<i128> = index.iter().map(|i| i128::from(*i)).collect();
                let Some(value) = value else {
                    let message = format!("`{}` at {index:?} is a don't-care value", declared.name);
                    return Err(Diagnostic::new(&codes::HOLE, span, message));
                };
                outputs.write(self.array, output, &index, value, span)?;
            }
        }
        Ok(())
    }

    /// One tick: all PEs that have a point.
    fn step(
        &self,
        range: std::ops::Range<usize>,
        state: &mut State,
        outputs: &mut Targets,
        frame: &mut Frame,
    ) -> Result<(), Diagnostic> {
        let n_cells = self.cells.len();
        let here: HashMap<&[i64], usize> = range
            .clone()
            .map(|slot| (self.slots[slot].place.as_slice(), slot))
            .collect();
        let mut now: Vec<Option<Option<Value>>> = vec![None; range.len() * n_cells];
        let mut taken: Vec<(Element, usize)> = Vec::new();
        for slot in range.clone() {
            for cell in &self.array.body {
                // Cells whose values arrive in the same step are evaluated first.
                let mut open = vec![(slot, *cell)];
                while let Some((slot, cell)) = open.last().copied() {
                    let at = (slot - range.start) * n_cells + cell.index();
                    if now[at].is_some() || !self.computes(cell, slot)? {
                        open.pop();
                        continue;
                    }
                    let mut reads = StepReads {
                        machine: self,
                        state,
                        here: &here,
                        now: &now,
                        start: range.start,
                        slot,
                        cell,
                        needs: None,
                        taken: Vec::new(),
                    };
                    let point = &self.slots[slot].point;
                    let code = &self.cells[cell.index()].code;
                    let result = code.eval(frame, point, &mut reads);
                    taken.extend(reads.taken.drain(..).map(|element| (element, slot)));
                    if let Some(need) = reads.needs {
                        if !self.computes(need.1, need.0)? {
                            return Err(self.not_there(
                                cell,
                                slot,
                                "the cell that it comes from computes nothing there",
                            ));
                        }
                        if open.contains(&need) {
                            return Err(self.not_there(
                                cell,
                                slot,
                                "its values wait for each other within one step",
                            ));
                        }
                        open.push(need);
                        continue;
                    }
                    let value = match result {
                        Ok(value) => Some(value),
                        Err(stop) => {
                            let declared = &self.array.cells[cell.index()];
                            match stop.into_diagnostic(declared.span) {
                                Some(error) => {
                                    let owner = format!("`{}`", declared.name);
                                    return Err(self.explain(error, &owner, slot));
                                }
                                None => None,
                            }
                        }
                    };
                    now[at] = Some(value);
                    open.pop();
                }
            }
        }
        for slot in range.clone() {
            self.drain(slot, range.start, &now, outputs, frame)?;
        }
        for (element, slot) in taken {
            state.stored.note_reader(&element, slot);
        }
        for slot in range.clone() {
            let tick = self.ticks[slot];
            let owned = self.owned.eval(&self.slots[slot].point) == Some(true);
            for cell in 0..n_cells {
                let at = (slot - range.start) * n_cells + cell;
                let Some(value) = now[at].take() else {
                    continue;
                };
                if owned && !state.launch.as_ref().is_none_or(Vec::is_empty) {
                    let point = self.slots[slot].point[self.array.tiles.len()..].to_vec();
                    state.outgoing.push(((cell, point), value.clone()));
                }
                state
                    .stored
                    .write(self, VarId::from(cell), slot, value.clone())?;
                let depth = self.cells[cell].depth;
                let place = state.place(&self.slots[slot].place);
                let queue = state.queues.entry((place, cell)).or_default();
                queue.push_back(Entry { tick, slot, value });
                // The queue shifts at every tick: values older than `depth` ticks have left it.
                while queue
                    .front()
                    .is_some_and(|e| e.tick <= tick.saturating_sub(depth))
                {
                    queue.pop_front();
                }
            }
        }
        Ok(())
    }

    fn computes(&self, cell: VarId, slot: usize) -> Result<bool, Diagnostic> {
        self.cells[cell.index()]
            .domain
            .eval(&self.slots[slot].point)
            .ok_or_else(|| too_large(Overflow))
    }

    fn drain(
        &self,
        slot: usize,
        start: usize,
        now: &[Option<Option<Value>>],
        outputs: &mut Targets,
        frame: &mut Frame,
    ) -> Result<(), Diagnostic> {
        let point = &self.slots[slot].point;
        if self.owned.eval(point) != Some(true) {
            return Ok(());
        }
        let n_cells = self.cells.len();
        for write in self
            .writes
            .iter()
            .filter(|w| !self.array.is_storage(w.output))
        {
            if write.when.eval(point) != Some(true) {
                continue;
            }
            let mut missing = false;
            let mut reads = |read: Read<'_>| -> Result<Value, Diagnostic> {
                match read {
                    Read::Var { var, .. } => match &now[(slot - start) * n_cells + var.index()] {
                        Some(Some(value)) => Ok(value.clone()),
                        Some(None) => Err(Diagnostic::new(
                            &codes::HOLE,
                            write.span,
                            format!(
                                "`{}` at {point:?} is a don't-care value",
                                self.array.cells[var.index()].name
                            ),
                        )),
                        None => {
                            missing = true;
                            Err(Diagnostic::new(&codes::NOT_THERE, write.span, ""))
                        }
                    },
                    Read::Input { input, index, span } => self.inputs.read(input, index, span),
                    Read::Port(_) => Err(Diagnostic::new(
                        &run::NOT_A_VALUE,
                        write.span,
                        "an output reads a port",
                    )),
                }
            };
            let value = write.code.eval(frame, point, &mut reads);
            if missing {
                // The guard of the write reaches points where the cell does not compute.
                continue;
            }
            let value = match value {
                Ok(value) => value,
                Err(stop) => {
                    let error = stop.into_diagnostic(write.span).unwrap_or_else(|| {
                        Diagnostic::new(
                            &run::UNDEFINED_READ,
                            write.span,
                            "an undefined value is written",
                        )
                    });
                    let name = &self.array.outputs[write.output].name;
                    return Err(self.explain(error, &format!("the output `{name}`"), slot));
                }
            };
            let index: Option<Vec<i128>> = write
                .index
                .iter()
                .map(|f| f.eval(point).map(i128::from))
                .collect();
            let index = index.ok_or_else(|| too_large(Overflow))?;
            outputs.write(self.array, write.output, &index, &value, write.span)?;
        }
        Ok(())
    }

    /// Adds the point and the sizes to an error, once.
    fn explain(&self, error: Diagnostic, owner: &str, slot: usize) -> Diagnostic {
        if !error.notes.is_empty() {
            return error;
        }
        let tiles = self.array.tiles.len();
        let point = show_point(&self.array.dims[tiles..], &self.slots[slot].point[tiles..]);
        let sizes = with_params(&self.array.param_names(), self.params);
        error.note(format!("it happens in {owner} at {point}, {sizes}"))
    }

    fn not_there(&self, cell: VarId, slot: usize, why: &str) -> Diagnostic {
        let Slot { time, place, point } = &self.slots[slot];
        let cell = &self.array.cells[cell.index()];
        Diagnostic::new(
            &codes::NOT_THERE,
            cell.span,
            format!(
                "`{}` at {point:?} (place {place:?}, time {time:?}): {why}",
                cell.name
            ),
        )
    }
}

fn port_code(
    array: &Array,
    port: &Port,
    params: &[i128],
    radix: &[i64],
) -> Result<PortCode, Diagnostic> {
    let narrow = |list: &[systola_ir::Poly]| -> Result<Vec<i64>, Diagnostic> {
        list.iter()
            .map(|p| {
                let value = p.eval(params).map_err(too_large)?;
                i64::try_from(value).map_err(|_| too_large(Overflow))
            })
            .collect()
    };
    let links = port
        .links
        .iter()
        .map(|link: &Link| {
            Ok(LinkCode {
                test: Test::compile(&link.guard, params).map_err(too_large)?,
                displacement: narrow(&link.displacement)?,
                ticks: linear_time(&narrow(&link.delay)?, radix)?,
                realisation: link.realisation.clone(),
            })
        })
        .collect::<Result<_, Diagnostic>>()?;
    Ok(PortCode {
        distance: narrow(&array.extend_distance(&port.distance))?,
        links,
    })
}

/// The ticks of one step of each time coordinate; launches do not tick.
fn radix(array: &Array, slots: &[Slot]) -> Result<Vec<i64>, Diagnostic> {
    let mut radix = vec![0; array.time.len()];
    let mut worth = 1i64;
    for k in (0..array.time.len()).rev() {
        if array.time[k].level == TimeLevel::Launch {
            continue;
        }
        radix[k] = worth;
        let values = || slots.iter().map(|s| s.time[k]);
        let extent = match (values().min(), values().max()) {
            (Some(least), Some(most)) => most.checked_sub(least).and_then(|d| d.checked_add(1)),
            _ => Some(1),
        };
        worth = extent
            .and_then(|extent| worth.checked_mul(extent))
            .ok_or_else(|| too_large(Overflow))?;
    }
    Ok(radix)
}

fn linear_time(time: &[i64], radix: &[i64]) -> Result<i64, Diagnostic> {
    let ticks = time.iter().zip(radix).try_fold(0i64, |sum, (t, r)| {
        t.checked_mul(*r).and_then(|ticks| sum.checked_add(ticks))
    });
    ticks.ok_or_else(|| too_large(Overflow))
}

/// A cell and a point of the system.
type Made = (usize, Vec<i64>);

#[derive(Default)]
struct State {
    launch: Option<Vec<i64>>,
    places: HashMap<Vec<i64>, usize>,
    queues: HashMap<(usize, usize), VecDeque<Entry>>,
    /// Global memory: values of earlier launches.
    memory: HashMap<Made, Option<Value>>,
    outgoing: Vec<(Made, Option<Value>)>,
    stored: Stored,
}

impl State {
    fn place(&mut self, place: &[i64]) -> usize {
        if let Some(id) = self.places.get(place) {
            return *id;
        }
        let id = self.places.len();
        self.places.insert(place.to_vec(), id);
        id
    }

    /// Begins a launch: registers are cleared, memory stays.
    fn commit(&mut self) {
        self.queues.clear();
        self.memory.extend(self.outgoing.drain(..));
    }
}
