//! The legality of a mapping, decided by trying every point.
//!
//! It is written from the definitions of the calculus, and shares nothing with the checker except
//! the localised system. It evaluates the text of the mapping number by number, visits every point
//! of a small domain, and follows every reference to the point that it reads.
//!
//! * **Time grows** along every reference from one point to another. It may be equal for a value
//!   marked `broadcast` and for a sum that may be regrouped.
//! * **Slots are unique**: no two points of the expanded domain have the same place and time.
//! * **Launches** pass on values through memory, in which the owners store them.
//! * **Blocks** of one launch do not wait for each other, unless the mapping says `flags`. A
//!   propagated input can be loaded again wherever a block, a warp or a tile begins.
//! * **Halos**: no owned point needs, within its launch, a value from outside of its tile.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use systola_ir::diag::Counterexample;
use systola_ir::form::{Cond, Form, Poly};
use systola_ir::mapping::{Mapping, PlaceLevel};
use systola_ir::system::{Combine, Expr, Law, System, visit};
use systola_ir::{DimId, VarId};

/// The maximum number of points.
pub const MOST_POINTS: usize = 20_000;

mod map;

use map::{Map, eval, lookup};

type Point = Vec<i128>;

/// The faults of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    NotCausal,
    Conflict,
    Reverse,
    CrossesBlocks,
    Halo,
}

impl Fault {
    /// The checker's code of this fault.
    pub fn code(self) -> &'static str {
        match self {
            Fault::NotCausal => "E0501",
            Fault::Conflict => "E0502",
            Fault::Reverse => "E0503",
            Fault::CrossesBlocks => "E0504",
            Fault::Halo => "E0505",
        }
    }

    pub fn of_code(code: &str) -> Option<Fault> {
        [
            Fault::NotCausal,
            Fault::Conflict,
            Fault::Reverse,
            Fault::CrossesBlocks,
            Fault::Halo,
        ]
        .into_iter()
        .find(|fault| fault.code() == code)
    }
}

/// The full verdict on a mapping at given sizes.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// The first witness of every fault.
    pub faults: BTreeMap<Fault, String>,
    pub points: usize,
    pub expanded: usize,
    pub pes: usize,
    pub steps: i128,
    /// Elements written.
    pub outputs: usize,
    /// For every PE, the times at which it works.
    pub busy: BTreeMap<Point, BTreeSet<Point>>,
}

impl Verdict {
    pub fn is_legal(&self) -> bool {
        self.faults.is_empty()
    }
}

/// A mapping of a localised system, at given sizes.
pub struct Brute<'a> {
    system: &'a System,
    /// Sums whose order the program left open.
    sums: &'a [VarId],
    params: Vec<i128>,
    map: Map<'a>,
    propagated: Vec<bool>,
    regroupable: Vec<bool>,
}

/// The place and the time of a point.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot {
    pub place: Point,
    pub time: Point,
}

impl<'a> Brute<'a> {
    /// `system` is localised; an error names a directive that this does not support.
    pub fn new(
        system: &'a System,
        sums: &'a [VarId],
        mapping: &'a Mapping,
        params: &[i128],
    ) -> Result<Brute<'a>, String> {
        let vars = 0..system.vars.len();
        let mut brute = Brute {
            system,
            sums,
            params: params.to_vec(),
            map: Map::new(system, mapping, params)?,
            propagated: Vec::new(),
            regroupable: Vec::new(),
        };
        brute.propagated = vars
            .clone()
            .map(|v| brute.is_propagated(v.into()))
            .collect();
        brute.regroupable = vars.map(|v| brute.is_regroupable(v.into())).collect();
        Ok(brute)
    }

    /// Tries every point.
    pub fn verdict(&self) -> Result<Verdict, String> {
        let mut verdict = Verdict::default();
        let points = self.points()?;
        let mut slots: BTreeMap<Slot, Point> = BTreeMap::new();
        let mut computed: HashMap<Point, Slot> = HashMap::new();
        let mut reads: HashMap<&Point, Vec<Read>> = HashMap::new();
        for z in &points {
            let alive = self.alive(z);
            if !alive.contains(&true) {
                continue;
            }
            verdict.points += 1;
            let mut list = Vec::new();
            for (sink, _) in alive.iter().enumerate().filter(|(_, alive)| **alive) {
                self.reads(&self.system.vars[sink].body, z, &mut |source, from| {
                    list.push(Read { sink, source, from });
                });
            }
            for read in &list {
                if !self.alive(&read.from)[read.source] {
                    return Err(format!("{z:?} reads {:?}, which has no value", read.from));
                }
            }
            reads.insert(z, list);
            verdict.outputs += self.writes(z, &alive);
            for copy in self.map.copies(z) {
                let slot = self.map.slot(&copy);
                verdict.expanded += 1;
                if verdict.expanded > MOST_POINTS {
                    return Err("too many points".into());
                }
                verdict
                    .busy
                    .entry(slot.place.clone())
                    .or_default()
                    .insert(slot.time.clone());
                if let Some(other) = slots.insert(slot.clone(), copy.clone()) {
                    let text = format!("{other:?} and {copy:?} share {slot:?}");
                    verdict.faults.entry(Fault::Conflict).or_insert(text);
                }
                if let Some(text) = self.wrong_reverse(&copy) {
                    verdict.faults.entry(Fault::Reverse).or_insert(text);
                }
                computed.insert(copy, slot);
            }
        }
        verdict.pes = verdict.busy.len();
        verdict.steps = self.steps(computed.values());

        let n_tiles = self.map.tiles.len();
        let mut holes: BTreeSet<(Point, usize)> = BTreeSet::new();
        for copy in computed.keys() {
            for read in &reads[&copy[n_tiles..].to_vec()] {
                match self.judge(copy, read) {
                    Judgement::Fine => {}
                    Judgement::Hole => {
                        holes.insert((copy.clone(), read.sink));
                    }
                    Judgement::Fault(fault) => {
                        let text = self.describe(copy, read);
                        verdict.faults.entry(fault).or_insert(text);
                    }
                }
            }
        }
        if let Some(text) = self.needed_hole(holes, &computed, &reads) {
            verdict.faults.entry(Fault::Halo).or_insert(text);
        }
        Ok(verdict)
    }

    /// Does a counterexample of the checker show the fault it claims?
    pub fn confirm(&self, fault: Fault, example: &Counterexample) -> Result<(), String> {
        let mut dims: Vec<&str> = self.map.tiles.iter().map(|t| t.outer.as_str()).collect();
        dims.extend(self.system.dims.iter().map(|d| d.name.as_str()));
        if example.dims != dims {
            return Err(format!("coordinates {:?}, not {dims:?}", example.dims));
        }
        let context = self.system.context_cond();
        if !holds(&context, &self.params, &[]) {
            return Err("the sizes are outside of the context".into());
        }
        for mapped in &example.points {
            let slot = self.map.slot(&mapped.point);
            if slot.place != mapped.place || slot.time != mapped.time {
                return Err(format!("{:?} is mapped to {slot:?}", mapped.point));
            }
        }
        let points: Vec<&Point> = example.points.iter().map(|p| &p.point).collect();
        match (fault, points.as_slice()) {
            (Fault::NotCausal | Fault::CrossesBlocks, [source, sink]) => {
                self.is_point(sink)?;
                // A value from memory is named at its owner.
                let from = |read: &Read| {
                    let owner = self.map.owner(&read.from);
                    **source == self.source(sink, read) || **source == owner
                };
                let found = self
                    .reads_of(sink)
                    .iter()
                    .any(|read| from(read) && self.judge(sink, read) == Judgement::Fault(fault));
                found
                    .then_some(())
                    .ok_or_else(|| format!("no read of {source:?} at {sink:?} is wrong so"))
            }
            (Fault::Conflict, [a, b]) => {
                self.is_point(a)?;
                self.is_point(b)?;
                if a == b || self.map.slot(a) != self.map.slot(b) {
                    return Err(format!("{a:?} and {b:?} do not share a slot"));
                }
                Ok(())
            }
            (Fault::Reverse, [z]) => {
                self.is_point(z)?;
                self.wrong_reverse(z)
                    .map(|_| ())
                    .ok_or_else(|| format!("the reverse transform is right at {z:?}"))
            }
            (Fault::Halo, [source, sink]) => {
                self.is_point(sink)?;
                let reads = self.reads_of(sink);
                let misses = |read: &&Read| {
                    self.source(sink, read) == **source && self.judge(sink, read) == Judgement::Hole
                };
                let mut holes = reads.iter().filter(misses).peekable();
                if holes.peek().is_none() {
                    return Err(format!("{sink:?} does not miss {source:?}"));
                }
                for hole in holes {
                    if self.reaches_owner(sink, hole.sink)? {
                        return Ok(());
                    }
                }
                Err("no owned point needs the hole".into())
            }
            (_, points) => Err(format!("{} points for {fault:?}", points.len())),
        }
    }

    /// Walks from a value to its uses in its tile and launch: is an owned point reached?
    fn reaches_owner(&self, copy: &Point, var: usize) -> Result<bool, String> {
        let n_tiles = self.map.tiles.len();
        let mut steps: Vec<(usize, Point)> = Vec::new();
        for declared in &self.system.vars {
            visit::walk(&declared.body, &mut |e| {
                if let Expr::Var { var, index, .. } = e
                    && let Some(e) = self.system.distance(index)
                {
                    let at = |p: &Poly| p.eval(&self.params).expect("small numbers");
                    steps.push((var.index(), e.iter().map(at).collect()));
                }
            });
        }
        let launch = self.map.launch(&self.map.slot(copy));
        let mut seen = BTreeSet::from([(copy.clone(), var)]);
        let mut open = vec![(copy.clone(), var)];
        while let Some((copy, var)) = open.pop() {
            if self.map.owner(&copy[n_tiles..]) == copy {
                return Ok(true);
            }
            if seen.len() > MOST_POINTS {
                return Err("too many points".into());
            }
            for (_, e) in steps.iter().filter(|(source, _)| *source == var) {
                let mut next = copy.clone();
                for (z, e) in next[n_tiles..].iter_mut().zip(e) {
                    *z += e;
                }
                if self.is_point(&next).is_err() || self.map.launch(&self.map.slot(&next)) != launch
                {
                    continue;
                }
                for read in self.reads_of(&next) {
                    let state = (next.clone(), read.sink);
                    if read.source == var
                        && self.source(&next, &read) == copy
                        && seen.insert(state.clone())
                    {
                        open.push(state);
                    }
                }
            }
        }
        Ok(false)
    }

    fn is_point(&self, copy: &Point) -> Result<(), String> {
        let z = &copy[self.map.tiles.len()..];
        if self.alive(z).contains(&true) && self.map.exists(copy) {
            Ok(())
        } else {
            Err(format!("{copy:?} is no point of the expanded domain"))
        }
    }

    fn reads_of(&self, copy: &Point) -> Vec<Read> {
        let z = copy[self.map.tiles.len()..].to_vec();
        let mut list = Vec::new();
        for (sink, _) in self.alive(&z).iter().enumerate().filter(|(_, a)| **a) {
            self.reads(&self.system.vars[sink].body, &z, &mut |source, from| {
                list.push(Read { sink, source, from });
            });
        }
        list
    }

    /// The copy of the source in the tile of the sink.
    fn source(&self, sink: &Point, read: &Read) -> Point {
        let n_tiles = self.map.tiles.len();
        let mut source = sink[..n_tiles].to_vec();
        source.extend(&read.from);
        source
    }

    fn describe(&self, copy: &Point, read: &Read) -> String {
        let source = self.source(copy, read);
        let name = |v: usize| &self.system.vars[v].name;
        format!(
            "{} at {copy:?} {:?} reads {} at {source:?} {:?}",
            name(read.sink),
            self.map.slot(copy),
            name(read.source),
            self.map.slot(&source)
        )
    }

    fn judge(&self, copy: &Point, read: &Read) -> Judgement {
        let source = self.source(copy, read);
        if source == *copy {
            return Judgement::Fine;
        }
        let (here, there) = (self.map.slot(copy), self.map.slot(&source));
        let delay = difference(&here.time, &there.time);
        let zero = vec![0; delay.len()];
        if self.map.launch(&here) != self.map.launch(&there) {
            let owner = self.map.slot(&self.map.owner(&read.from));
            let made = delay > zero && self.map.launch(&owner) < self.map.launch(&here);
            return if made {
                Judgement::Fine
            } else {
                Judgement::Fault(Fault::NotCausal)
            };
        }
        let propagated = self.propagated[read.source];
        if !self.map.exists(&source) {
            return if propagated {
                Judgement::Fine
            } else {
                Judgement::Hole
            };
        }
        let displaced = |level: PlaceLevel| {
            let places = here.place.iter().zip(&there.place);
            places
                .zip(&self.map.place_levels)
                .any(|((a, b), l)| *l == level && a != b)
        };
        if delay == zero {
            let broadcast = self
                .map
                .broadcast
                .contains(&self.system.vars[read.source].name);
            let tree = read.sink == read.source && self.regroupable[read.sink];
            let realisable = tree || propagated || self.map.flags || !displaced(PlaceLevel::Block);
            return match (broadcast || tree, realisable) {
                (true, true) => Judgement::Fine,
                (true, false) => Judgement::Fault(Fault::CrossesBlocks),
                (false, _) => Judgement::Fault(Fault::NotCausal),
            };
        }
        let crosses = displaced(PlaceLevel::Block) || displaced(PlaceLevel::Warp);
        if propagated && crosses && !displaced(PlaceLevel::Node) {
            return Judgement::Fine;
        }
        if delay < zero {
            return Judgement::Fault(Fault::NotCausal);
        }
        if displaced(PlaceLevel::Block) && !displaced(PlaceLevel::Node) && !self.map.flags {
            return Judgement::Fault(Fault::CrossesBlocks);
        }
        Judgement::Fine
    }

    /// Follows holes to the values made of them: does one belong to an owned point?
    fn needed_hole(
        &self,
        mut holes: BTreeSet<(Point, usize)>,
        computed: &HashMap<Point, Slot>,
        reads: &HashMap<&Point, Vec<Read>>,
    ) -> Option<String> {
        let n_tiles = self.map.tiles.len();
        if n_tiles == 0 || holes.is_empty() {
            return None;
        }
        loop {
            let before = holes.len();
            for (copy, slot) in computed {
                for read in &reads[&copy[n_tiles..].to_vec()] {
                    let source = self.source(copy, read);
                    let Some(made) = computed.get(&source) else {
                        continue;
                    };
                    if self.map.launch(made) == self.map.launch(slot)
                        && holes.contains(&(source, read.source))
                    {
                        holes.insert((copy.clone(), read.sink));
                    }
                }
            }
            if holes.len() == before {
                break;
            }
        }
        let owned = |copy: &Point| {
            let z = &copy[n_tiles..];
            self.map.owner(z) == *copy
        };
        holes
            .iter()
            .find(|(copy, _)| owned(copy))
            .map(|(copy, var)| format!("{} is a hole at {copy:?}", self.system.vars[*var].name))
    }

    fn steps<'s>(&self, slots: impl Iterator<Item = &'s Slot>) -> i128 {
        let mut bounds: Option<Vec<(i128, i128)>> = None;
        for slot in slots {
            match &mut bounds {
                None => bounds = Some(slot.time.iter().map(|t| (*t, *t)).collect()),
                Some(bounds) => {
                    for ((least, most), t) in bounds.iter_mut().zip(&slot.time) {
                        *least = (*least).min(*t);
                        *most = (*most).max(*t);
                    }
                }
            }
        }
        bounds.map_or(0, |b| {
            b.iter().map(|(least, most)| most - least + 1).product()
        })
    }

    /// Evaluates the user's reverse transform at the slot of the point; an error if it does not
    /// give this point.
    fn wrong_reverse(&self, copy: &Point) -> Option<String> {
        let slot = self.map.slot(copy);
        let names = self.map.names(copy);
        let mut with_slot = names.clone();
        with_slot.extend(
            self.map
                .coordinate_names()
                .into_iter()
                .zip(slot.place.iter().chain(&slot.time).copied()),
        );
        for (name, expr) in &self.map.reverse {
            let given = eval(expr, &with_slot)?;
            let expected = lookup(&names, name)?;
            if given != expected {
                return Some(format!(
                    "{name} = {given} instead of {expected} at {copy:?}"
                ));
            }
        }
        None
    }

    /// All points of the index space, by trying the ranges, or a box where there is none.
    fn points(&self) -> Result<Vec<Point>, String> {
        let reach = self.params.iter().copied().max().unwrap_or(0) + 8;
        let conds: Vec<(usize, &Cond)> = self
            .system
            .domain
            .iter()
            .map(|cond| {
                let dims = cond.forms().into_iter().flat_map(Form::dims);
                (dims.map(DimId::index).max().map_or(0, |d| d + 1), cond)
            })
            .collect();
        let mut points: Vec<Point> = vec![Vec::new()];
        for (n, dim) in self.system.dims.iter().enumerate() {
            let mut next = Vec::new();
            for point in points {
                let (lo, hi) = match &dim.range {
                    Some((lo, hi)) => (
                        value(lo, &self.params, &point),
                        value(hi, &self.params, &point),
                    ),
                    None => (-reach, reach),
                };
                for x in lo..hi {
                    let mut z = point.clone();
                    z.push(x);
                    let decided = conds.iter().filter(|(rank, _)| *rank == n + 1);
                    if decided.clone().all(|(_, c)| holds(c, &self.params, &z)) {
                        next.push(z);
                    }
                }
                if next.len() > MOST_POINTS {
                    return Err("too many points".into());
                }
            }
            points = next;
        }
        points.retain(|z| {
            let free = conds.iter().filter(|(rank, _)| *rank == 0);
            free.clone().all(|(_, c)| holds(c, &self.params, z))
        });
        Ok(points)
    }

    /// Which variables have a value at a point.
    fn alive(&self, z: &[i128]) -> Vec<bool> {
        let inside = self.system.dims.iter().enumerate().all(|(n, dim)| {
            dim.range.as_ref().is_none_or(|(lo, hi)| {
                value(lo, &self.params, z) <= z[n] && z[n] < value(hi, &self.params, z)
            })
        }) && self.system.domain.iter().all(|c| holds(c, &self.params, z));
        self.system
            .vars
            .iter()
            .map(|v| inside && v.on.iter().all(|c| holds(c, &self.params, z)))
            .collect()
    }

    fn writes(&self, z: &Point, alive: &[bool]) -> usize {
        let writes = self.system.outputs.iter().flat_map(|o| &o.writes);
        writes
            .filter(|write| {
                let mut there = true;
                visit::walk(&write.value, &mut |e| {
                    if let Expr::Var { var, .. } = e {
                        there &= alive[var.index()];
                    }
                });
                there && holds(&write.when, &self.params, z)
            })
            .count()
    }

    /// The reads of an expression at a point; of a guard, only those of the branch that is taken.
    fn reads(&self, expr: &Expr, z: &[i128], f: &mut impl FnMut(usize, Point)) {
        match expr {
            Expr::Var { var, index, .. } => {
                let from = index
                    .iter()
                    .map(|form| value(form, &self.params, z))
                    .collect();
                f(var.index(), from);
            }
            Expr::Guard {
                cond,
                then,
                otherwise,
            } => {
                if holds(cond, &self.params, z) {
                    self.reads(then, z, f);
                } else if let Some(otherwise) = otherwise {
                    self.reads(otherwise, z, f);
                }
            }
            other => {
                for child in visit::children(other) {
                    self.reads(child, z, f);
                }
            }
        }
    }

    /// Is it `select(…, in[A z + b], X(z - e))` with A e = 0?
    fn is_propagated(&self, var: VarId) -> bool {
        let mut leaves = Vec::new();
        leaves_of(&self.system.vars[var.index()].body, &mut leaves);
        let mut distances = Vec::new();
        let mut inputs = Vec::new();
        for leaf in leaves {
            match leaf {
                Expr::Var { var: v, index, .. } if *v == var => match self.system.distance(index) {
                    Some(e) => distances.push(e),
                    None => return false,
                },
                Expr::Input { input, index, .. } => inputs.push((input, index)),
                _ => return false,
            }
        }
        let ([e], [first, rest @ ..]) = (distances.as_slice(), inputs.as_slice()) else {
            return false;
        };
        let unchanged = |form: &Form| {
            let moved = form.substitute(&|d| {
                let e = e.get(d.index())?;
                Some(Form::from(d).sub(&Form::from(e.clone())))
            });
            moved.as_ref() == Ok(form)
        };
        rest.iter().all(|r| r == first) && first.1.iter().all(unchanged)
    }

    /// Is it Z(z) = Z(z - e) ⊕ f with an operator that may be regrouped?
    fn is_regroupable(&self, var: VarId) -> bool {
        let declared = &self.system.vars[var.index()];
        let Some(op) = sum_operator(var, &declared.body) else {
            return false;
        };
        self.sums.contains(&var)
            || declared.law != Law::Fixed
            || match op {
                Combine::Fn(f) => self.system.functions[f.index()].law != Law::Fixed,
                Combine::Op(op) => declared
                    .ty
                    .scalar()
                    .is_some_and(|ty| op.is_exactly_reorderable(ty)),
            }
    }
}

struct Read {
    sink: usize,
    source: usize,
    from: Point,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Judgement {
    Fine,
    /// The source is not in the tile.
    Hole,
    Fault(Fault),
}

fn difference(a: &[i128], b: &[i128]) -> Point {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

fn holds(cond: &Cond, params: &[i128], z: &[i128]) -> bool {
    cond.eval(params, z).expect("small numbers")
}

fn value(form: &Form, params: &[i128], z: &[i128]) -> i128 {
    form.eval(params, z).expect("small numbers")
}

/// The values between which guards choose.
fn leaves_of<'e>(expr: &'e Expr, leaves: &mut Vec<&'e Expr>) {
    match expr {
        Expr::Guard {
            then, otherwise, ..
        } => {
            leaves_of(then, leaves);
            if let Some(otherwise) = otherwise {
                leaves_of(otherwise, leaves);
            }
        }
        other => leaves.push(other),
    }
}

fn mentions(expr: &Expr, var: VarId) -> bool {
    let mut found = false;
    visit::walk(expr, &mut |e| {
        found |= matches!(e, Expr::Var { var: v, .. } if *v == var);
    });
    found
}

/// The ⊕ of a sum: every branch that reads the variable is one self-reference ⊕ terms without it.
fn sum_operator(var: VarId, expr: &Expr) -> Option<Combine> {
    let is_so_far = |e: &Expr| {
        let mut leaves = Vec::new();
        leaves_of(e, &mut leaves);
        leaves
            .iter()
            .all(|l| matches!(l, Expr::Var { var: v, .. } if *v == var) || !mentions(l, var))
    };
    match expr {
        Expr::Guard {
            then, otherwise, ..
        } => {
            let branches = std::iter::once(&**then).chain(otherwise.as_deref());
            let reading: Vec<&Expr> = branches.filter(|b| mentions(b, var)).collect();
            let found: Option<Vec<Combine>> =
                reading.iter().map(|b| sum_operator(var, b)).collect();
            let found = found?;
            let first = *found.first()?;
            found.iter().all(|op| *op == first).then_some(first)
        }
        Expr::Binary(op, ..) if op.is_reduction() => {
            let mut operands = vec![expr];
            while let Some(at) = operands
                .iter()
                .position(|e| matches!(e, Expr::Binary(o, ..) if o == op))
            {
                let Expr::Binary(_, a, b) = operands.remove(at) else {
                    return None;
                };
                operands.push(a);
                operands.push(b);
            }
            operands.retain(|e| mentions(e, var));
            match operands.as_slice() {
                [one] if is_so_far(one) => Some(Combine::Op(*op)),
                _ => None,
            }
        }
        Expr::Call(f, args) => match args.as_slice() {
            [sum, term] if !mentions(term, var) && mentions(sum, var) && is_so_far(sum) => {
                Some(Combine::Fn(*f))
            }
            _ => None,
        },
        _ => None,
    }
}
