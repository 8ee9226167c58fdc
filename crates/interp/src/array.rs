//! The meaning of arrays, cycle by cycle.
//!
//! This sees the array only. Every point of the expanded domain has a slot (place, time). Steps run
//! in the order of time; in each, the PEs that have a point evaluate their cells. A cell's value
//! enters the queue of its PE, which keeps as many values as the array states and forgets them
//! between launches. A port is answered by its link: the value that the PE at `place − displacement`
//! put into its queue `delay` ticks ago. That value carries the point it was made at, and must be the
//! one the port asks for; whatever is missing, too old or somebody else's is an error.

use std::collections::{BTreeMap, HashMap, VecDeque};

use systola_ir::array::{Array, Link, Port, Realisation, Reverse, Role};
use systola_ir::codes::{array as codes, run};
use systola_ir::form::Overflow;
use systola_ir::mapping::TimeLevel;
use systola_ir::system::System;
use systola_ir::{Cond, Diagnostic, PortId, Span, VarId};

use crate::code::{Code, Env, Frame, Read, Stop};
use crate::domain::{Domain, DomainError};
use crate::inputs::Inputs;
use crate::linear::{Linear, Test};
use crate::system::Arrays;
use crate::tensor::Tensor;
use crate::value::{Value, literal};

/// A point with the place and time the array gives it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot {
    pub time: Vec<i64>,
    pub place: Vec<i64>,
    pub point: Vec<i64>,
}

/// More points than this are not run.
const MOST_POINTS: u64 = 50_000_000;

/// Runs an array on inputs and returns its outputs.
pub fn run_array(array: &Array, params: &[i128], inputs: &Arrays) -> Result<Arrays, Diagnostic> {
    let shell = array.declarations();
    let inputs = Inputs::bind(&shell, params, inputs)?;
    let machine = Machine::new(array, &shell, params, inputs)?;
    machine.run()
}

/// The slots of an array in the order of time, then place.
pub fn trace(array: &Array, params: &[i128]) -> Result<Vec<Slot>, Diagnostic> {
    let mapper = Mapper::new(array, params)?;
    let mut slots = Vec::new();
    let mut failed = None;
    let domain = any_of(array);
    let points =
        Domain::new(&domain, array.dims.len(), params).map_err(|e| not_walked(array, e))?;
    let mut count = 0u64;
    let walked = points.visit(&mut |point: &[i64]| {
        count += 1;
        if count > MOST_POINTS {
            return Err(DomainError::TooLarge);
        }
        match mapper.slot(point) {
            Ok(slot) => slots.push(slot),
            Err(error) => {
                failed = Some(error);
                return Err(DomainError::TooLarge);
            }
        }
        Ok(())
    });
    if let Some(failed) = failed {
        return Err(failed);
    }
    walked.map_err(|e: DomainError| not_walked(array, e))?;
    slots.sort_unstable();
    for pair in slots.windows(2) {
        if pair[0].time == pair[1].time && pair[0].place == pair[1].place {
            return Err(Diagnostic::new(
                &codes::SLOT_TAKEN,
                Span::NONE,
                format!(
                    "points {:?} and {:?} share place {:?} and time {:?}",
                    pair[0].point, pair[1].point, pair[0].place, pair[0].time
                ),
            ));
        }
    }
    Ok(slots)
}

/// Every point at which some cell computes.
fn any_of(array: &Array) -> Cond {
    let mut domains: Vec<Cond> = array.cells.iter().map(|c| c.domain.clone()).collect();
    domains.dedup();
    if domains.len() == 1 {
        domains.remove(0)
    } else {
        Cond::Or(domains)
    }
}

fn not_walked(array: &Array, error: DomainError) -> Diagnostic {
    let code = match error {
        DomainError::Unbounded(_) => &run::UNBOUNDED,
        DomainError::TooLarge => &run::TOO_LARGE,
    };
    Diagnostic::new(code, Span::NONE, format!("`{}`: {error}", array.system))
}

fn too_large(_: Overflow) -> Diagnostic {
    Diagnostic::new(
        &run::TOO_LARGE,
        Span::NONE,
        "an index or time leaves 64 bits at these sizes",
    )
}

/// Place and time at concrete parameters.
struct Mapper {
    pieces: Vec<MapperPiece>,
}

struct MapperPiece {
    test: Test,
    place: Vec<Linear>,
    time: Vec<Linear>,
    reverse: Option<Vec<(Linear, i64)>>,
}

impl Mapper {
    fn new(array: &Array, params: &[i128]) -> Result<Mapper, Diagnostic> {
        let pieces = array
            .pieces
            .iter()
            .map(|piece| {
                let all = |forms: &[systola_ir::Form]| {
                    forms
                        .iter()
                        .map(|f| Linear::compile(f, params))
                        .collect::<Result<Vec<_>, _>>()
                };
                let reverse = match &piece.reverse {
                    Reverse::Scan => None,
                    Reverse::Forms(forms) => Some(
                        forms
                            .iter()
                            .map(|(form, divisor)| {
                                let divisor = i64::try_from(*divisor).map_err(|_| Overflow)?;
                                Ok((Linear::compile(form, params)?, divisor.max(1)))
                            })
                            .collect::<Result<Vec<_>, Overflow>>()?,
                    ),
                };
                Ok(MapperPiece {
                    test: Test::compile(&piece.cond, params)?,
                    place: all(&piece.place)?,
                    time: all(&piece.time)?,
                    reverse,
                })
            })
            .collect::<Result<_, Overflow>>()
            .map_err(too_large)?;
        Ok(Mapper { pieces })
    }

    fn slot(&self, point: &[i64]) -> Result<Slot, Diagnostic> {
        let values = |forms: &[Linear], at: &[i64]| {
            forms
                .iter()
                .map(|f| f.eval(at).ok_or_else(|| too_large(Overflow)))
                .collect::<Result<Vec<i64>, Diagnostic>>()
        };
        for piece in &self.pieces {
            if !piece.test.eval(point).ok_or_else(|| too_large(Overflow))? {
                continue;
            }
            let slot = Slot {
                place: values(&piece.place, point)?,
                time: values(&piece.time, point)?,
                point: point.to_vec(),
            };
            if let Some(reverse) = &piece.reverse {
                let coordinates: Vec<i64> = slot.place.iter().chain(&slot.time).copied().collect();
                for ((form, divisor), z) in reverse.iter().zip(point) {
                    let value = form.eval(&coordinates).ok_or_else(|| too_large(Overflow))?;
                    if value % divisor != 0 || value / divisor != *z {
                        return Err(Diagnostic::new(
                            &codes::WRONG_SLOT,
                            Span::NONE,
                            format!(
                                "the reverse transform sends the slot of {point:?} to another point"
                            ),
                        ));
                    }
                }
            }
            return Ok(slot);
        }
        Err(Diagnostic::new(
            &codes::NO_LINK,
            Span::NONE,
            format!("no piece of the mapping holds at {point:?}"),
        ))
    }
}

/// A value in a queue; a hole has none.
#[derive(Clone, Debug)]
struct Entry {
    tick: i64,
    /// The slot it was made in, which tells the point.
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
            .collect();
        let env = Env {
            system: shell,
            params,
        };
        let mut cells = Vec::new();
        for cell in &array.cells {
            let depth = cell
                .registers
                .depth
                .as_ref()
                .and_then(|d| d.eval(params).ok())
                .and_then(|d| i64::try_from(d).ok())
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
        let mut frame = Frame::default();
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
        outputs.finish(self.array)
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
        for slot in range.clone() {
            for cell in &self.array.body {
                // Values that arrive in this very step are made first, whoever makes them.
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
                    };
                    let point = &self.slots[slot].point;
                    let code = &self.cells[cell.index()].code;
                    let result = code.eval(frame, point, &mut reads);
                    if let Some(need) = reads.needs {
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
                            match stop.into_diagnostic(self.array.cells[cell.index()].span) {
                                Some(error) => return Err(error),
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
                    state.leaving.push(((cell, point), value.clone()));
                }
                let depth = self.cells[cell].depth;
                let place = state.place(&self.slots[slot].place);
                let queue = state.queues.entry((place, cell)).or_default();
                queue.push_back(Entry { tick, slot, value });
                // The queue shifts at every tick: what is `depth` ticks old has left it.
                while queue.front().is_some_and(|e| e.tick <= tick - depth) {
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
        for write in &self.writes {
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
                    return Err(stop.into_diagnostic(write.span).unwrap_or_else(|| {
                        Diagnostic::new(
                            &run::UNDEFINED_READ,
                            write.span,
                            "an undefined value is written",
                        )
                    }));
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
                ticks: linear_time(&narrow(&link.delay)?, radix),
                realisation: link.realisation.clone(),
            })
        })
        .collect::<Result<_, Diagnostic>>()?;
    Ok(PortCode {
        distance: narrow(&array.extend_distance(&port.distance))?,
        links,
    })
}

/// The worth of one step of each time coordinate in ticks; launches do not tick.
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
            (Some(least), Some(most)) => most - least + 1,
            _ => 1,
        };
        worth = worth
            .checked_mul(extent)
            .ok_or_else(|| too_large(Overflow))?;
    }
    Ok(radix)
}

fn linear_time(time: &[i64], radix: &[i64]) -> i64 {
    time.iter().zip(radix).map(|(t, r)| t * r).sum()
}

/// A cell and a point of the system.
type Made = (usize, Vec<i64>);

#[derive(Default)]
struct State {
    launch: Option<Vec<i64>>,
    places: HashMap<Vec<i64>, usize>,
    queues: HashMap<(usize, usize), VecDeque<Entry>>,
    /// Global memory: what owners made in earlier launches.
    memory: HashMap<Made, Option<Value>>,
    leaving: Vec<(Made, Option<Value>)>,
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

    /// A new launch: registers are gone, memory is there.
    fn commit(&mut self) {
        self.queues.clear();
        self.memory.extend(self.leaving.drain(..));
    }
}

/// Answers what one cell reads in one step.
struct StepReads<'a> {
    machine: &'a Machine<'a>,
    state: &'a State,
    here: &'a HashMap<&'a [i64], usize>,
    now: &'a [Option<Option<Value>>],
    start: usize,
    slot: usize,
    cell: VarId,
    /// A value of this very step that is not made yet.
    needs: Option<(usize, VarId)>,
}

impl StepReads<'_> {
    fn port(&mut self, port: PortId) -> Result<Value, Stop> {
        let machine = self.machine;
        let code = &machine.ports[port.index()];
        let source = machine.array.ports[port.index()].source;
        let slot = &machine.slots[self.slot];
        let mut holding = code
            .links
            .iter()
            .filter(|l| l.test.eval(&slot.point) == Some(true));
        let (Some(link), None) = (holding.next(), holding.next()) else {
            let name = &machine.array.cells[source.index()].name;
            return Err(Diagnostic::new(
                &codes::NO_LINK,
                machine.array.ports[port.index()].span,
                format!("no single link delivers `{name}` at {:?}", slot.point),
            )
            .into());
        };
        let wanted: Vec<i64> = slot
            .point
            .iter()
            .zip(&code.distance)
            .map(|(z, e)| z - e)
            .collect();
        let value = match link.realisation {
            Realisation::Hole => return Err(Stop::Undefined),
            Realisation::Reinject => {
                let Some((input, index)) = &machine.cells[source.index()].propagated else {
                    return Err(machine
                        .not_there(
                            self.cell,
                            self.slot,
                            "only a propagated input is injected again",
                        )
                        .into());
                };
                let index: Option<Vec<i64>> = index.iter().map(|f| f.eval(&slot.point)).collect();
                let index = index.ok_or_else(|| too_large(Overflow))?;
                let span = machine.array.cells[source.index()].span;
                return Ok(machine.inputs.read(*input, &index, span)?);
            }
            Realisation::Launch => {
                let point = wanted[machine.array.tiles.len()..].to_vec();
                match self.state.memory.get(&(source.index(), point)) {
                    Some(value) => value.clone(),
                    None => {
                        return Err(machine
                            .not_there(
                                self.cell,
                                self.slot,
                                "no earlier launch left the value in memory",
                            )
                            .into());
                    }
                }
            }
            Realisation::Wire
            | Realisation::Register
            | Realisation::Buffer
            | Realisation::Shuffle
            | Realisation::Shared
            | Realisation::Flags
            | Realisation::Message
            | Realisation::Broadcast
            | Realisation::Tree => {
                let place: Vec<i64> = slot
                    .place
                    .iter()
                    .zip(&link.displacement)
                    .map(|(p, d)| p - d)
                    .collect();
                self.take_from_queue(source, &place, link.ticks, &wanted)?
            }
        };
        value.ok_or(Stop::Undefined)
    }

    fn take_from_queue(
        &mut self,
        source: VarId,
        place: &[i64],
        ticks: i64,
        wanted: &[i64],
    ) -> Result<Option<Value>, Stop> {
        let machine = self.machine;
        let fail = |why: &str| -> Result<Option<Value>, Stop> {
            Err(machine.not_there(self.cell, self.slot, why).into())
        };
        if ticks == 0 {
            let Some(slot) = self.here.get(place).copied() else {
                return fail("the PE it comes from has no point in this step");
            };
            if machine.slots[slot].point != wanted {
                return fail("the PE it comes from works on another point");
            }
            let at = (slot - self.start) * machine.cells.len() + source.index();
            return match &self.now[at] {
                Some(value) => Ok(value.clone()),
                None => {
                    self.needs = Some((slot, source));
                    Err(Stop::Undefined)
                }
            };
        }
        if ticks >= machine.cells[source.index()].depth {
            return fail("the queue is shorter than the delay");
        }
        let due = machine.ticks[self.slot] - ticks;
        let queue = self
            .state
            .places
            .get(place)
            .and_then(|id| self.state.queues.get(&(*id, source.index())));
        let entry = queue.and_then(|q| q.iter().rev().find(|e| e.tick == due));
        match entry {
            None => fail("nothing was put into the queue at the step it is due from"),
            Some(entry) if machine.slots[entry.slot].point != wanted => {
                fail("another point's value stands in the queue")
            }
            Some(entry) => Ok(entry.value.clone()),
        }
    }
}

impl crate::code::Reads for StepReads<'_> {
    fn read(&mut self, read: Read<'_>) -> Result<Value, Stop> {
        match read {
            Read::Port(port) => self.port(port),
            Read::Input { input, index, span } => {
                Ok(self.machine.inputs.read(input, index, span)?)
            }
            Read::Var { .. } => Err(Diagnostic::new(
                &run::NOT_A_VALUE,
                Span::NONE,
                "a cell reads a variable and not a port",
            )
            .into()),
        }
    }
}

/// The outputs while they are written.
struct Targets {
    tensors: Vec<Tensor>,
    written: Vec<Vec<bool>>,
}

impl Targets {
    fn new(array: &Array, params: &[i128]) -> Result<Targets, Diagnostic> {
        let mut tensors = Vec::new();
        let mut written = Vec::new();
        for output in &array.outputs {
            let fill = output
                .fill
                .map_or_else(|| Value::zero(output.ty), |fill| literal(output.ty, fill));
            let tensor = Tensor::filled(output.ty, &output.axes, params, &fill)
                .map_err(|e| Diagnostic::new(&run::TOO_LARGE, output.span, e.to_string()))?;
            written.push(vec![false; tensor.data.len()]);
            tensors.push(tensor);
        }
        Ok(Targets { tensors, written })
    }

    fn write(
        &mut self,
        array: &Array,
        output: usize,
        index: &[i128],
        value: &Value,
        span: Span,
    ) -> Result<(), Diagnostic> {
        let name = &array.outputs[output].name;
        let tensor = &mut self.tensors[output];
        let Some(position) = tensor.position(index) else {
            return Err(Diagnostic::new(
                &run::OUTPUT_OUT_OF_RANGE,
                span,
                format!("`{name}` is written at {index:?}, outside of its axes"),
            ));
        };
        if std::mem::replace(&mut self.written[output][position], true) {
            return Err(Diagnostic::new(
                &run::DOUBLE_WRITE,
                span,
                format!("`{name}` is written twice at {index:?}"),
            ));
        }
        if !tensor.set(index, value) {
            return Err(Diagnostic::new(
                &run::ILL_TYPED,
                span,
                format!("`{name}` is written with a value of another type"),
            ));
        }
        Ok(())
    }

    fn finish(self, array: &Array) -> Result<Arrays, Diagnostic> {
        let mut result = BTreeMap::new();
        for ((output, tensor), written) in array.outputs.iter().zip(self.tensors).zip(self.written)
        {
            if output.fill.is_none()
                && let Some(position) = written.iter().position(|w| !w)
            {
                return Err(Diagnostic::new(
                    &run::UNCOVERED_OUTPUT,
                    output.span,
                    format!(
                        "`{}` has no value at {:?}",
                        output.name,
                        tensor.index_of(position)
                    ),
                ));
            }
            result.insert(output.name.clone(), tensor);
        }
        Ok(result)
    }
}
