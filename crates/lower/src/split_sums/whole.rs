//! Parts of whole sums.
//!
//! Of a plain sum only the end is read, no value on the way. If every block has one point of the
//! chain, the parts are its terms, and their sum is a system of its own, under a mapping in which
//! lanes share the terms. The rest then reads finished sums, and computes no term again.

use systola_ir::array::{Array, Link, Realisation};
use systola_ir::form::{Cond, Form, Rel};
use systola_ir::mapping::{
    Direction, Directive, DirectiveKind, Mapping, Name, NameExpr, PlaceLevel, SumStage, TimeLevel,
};
use systola_ir::system::visit::walk;
use systola_ir::system::{Combine, Dim, Expr, Law, System, Var};
use systola_ir::target::Machine;
use systola_ir::{DimId, Scalar, Span, VarId};

use crate::build_array::{Setting, build_array};
use crate::decide::{Decide, Undecided};
use crate::failure::Failure;
use crate::localise::{localise, shift_form};
use crate::split_sums::arrays::{Store, element, here, parts};
use crate::split_sums::{Chain, Split};
use crate::storage::chains::Joins;
use crate::storage::links::crosses;
use crate::storage::queues::scalars;
use crate::storage::slots::Slots;
use crate::watch::unwatched;

/// Terms that a lane reads at once.
const REGISTERS: i128 = 4;

/// Steps in flight.
const UNROLL: u64 = 4;

impl Chain {
    /// Is the chain a plain sum with one term in each block, of which only the end is read?
    pub(super) fn is_whole(
        &self,
        array: &Array,
        decide: &Decide,
        slots: &Slots,
        along: usize,
    ) -> Result<bool, Undecided> {
        let Joins::Term(op) = self.joins else {
            return Ok(false);
        };
        if let Combine::Fn(f) = op
            && array.functions[f.index()].law < Law::Reorderable
        {
            return Ok(false);
        }
        let is_real = |l: &&Link| l.realisation != Realisation::Hole;
        let mut own = self.ports.iter().flat_map(|p| &array.port(*p).links);
        if own.by_ref().filter(is_real).any(|l| !crosses(array, l)) {
            return Ok(false);
        }
        let read_by_cells = array.ports.iter().any(|port| {
            port.source == self.cell && port.sink != self.cell && !port.links.is_empty()
        });
        if read_by_cells {
            return Ok(false);
        }
        let domain = &array.cells[self.cell.index()].domain;
        let leaves = self.leaves(array)?;
        for write in array.outputs.iter().flat_map(|o| &o.writes) {
            if reads(&write.value, self.cell) {
                let on_the_way = domain.clone().and(write.when.clone()).and(leaves.clone());
                if !decide.is_empty(&on_the_way, array.dims.len())? {
                    return Ok(false);
                }
            }
        }
        self.has_all_terms(array, decide, slots, along)
    }

    /// Does the chain go on as long as there are blocks?
    fn has_all_terms(
        &self,
        array: &Array,
        decide: &Decide,
        slots: &Slots,
        along: usize,
    ) -> Result<bool, Undecided> {
        let cell = &array.cells[self.cell.index()];
        let at = &array.pieces[0].place[along];
        let range = &slots.ranges[along];
        let goes_on = if self.up {
            range
                .hi
                .iter()
                .map(|hi| Cond::cmp(Rel::Lt, at.plus(1), hi.clone()))
                .fold(Cond::TRUE, Cond::and)
        } else {
            range
                .lo
                .iter()
                .map(|lo| Cond::cmp(Rel::Gt, at.clone(), lo.clone()))
                .fold(Cond::TRUE, Cond::and)
        };
        for port in self.ports.iter().map(|p| array.port(*p)) {
            let back: Vec<_> = port.distance.iter().map(|d| d.neg()).collect();
            let there = cell.domain.map(&|f| shift_form(f, &back))?;
            let ends_early = cell.domain.clone().and(goes_on.clone()).and(there.negate());
            if !decide.is_empty(&ends_early, array.dims.len())? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The arrays of sums whose parts have the same places.
pub(super) fn split(chains: &[Chain], array: &Array, machine: &Machine) -> Result<Split, Failure> {
    let stores: Vec<Store<'_>> = chains.iter().map(|chain| chain.store(array)).collect();
    let types = stores.iter().flat_map(|store| scalars(store.ty));
    let widest = types.map(Scalar::bits).max().unwrap_or(32);
    let lanes = i128::from(machine.lanes(widest));
    let all: Vec<&Chain> = chains.iter().collect();
    Ok(Split {
        parts: parts(array, &all, &stores)?,
        joined: sums_of_parts(array, chains, &stores, lanes)?,
        rest: rest(array, chains, &stores),
    })
}

/// The array that adds up the parts.
fn sums_of_parts(
    array: &Array,
    chains: &[Chain],
    stores: &[Store<'_>],
    lanes: i128,
) -> Result<Array, Failure> {
    let store = &stores[0];
    let last = store.axes.len() - 1;
    let dim = |n: usize| Dim {
        name: format!("{}{n}", store.name),
        range: Some((store.axes[n].lo.clone(), store.axes[n].hi.clone())),
        span: Span::NONE,
    };
    let mut inputs = Vec::new();
    let mut vars = Vec::new();
    let mut outputs = Vec::new();
    for (n, (chain, store)) in chains.iter().zip(stores).enumerate() {
        let Joins::Term(op) = chain.joins else {
            unreachable!("a chain of terms")
        };
        // Each sum has an iterator of its own, of the same name.
        let bound = DimId::from(last + n);
        let index: Vec<Form> = here(last).into_iter().chain([Form::from(bound)]).collect();
        let part = element(store.ty, &mut (inputs.len()..), &index);
        vars.push(Var {
            name: store.name.clone(),
            ty: store.ty.clone(),
            law: Law::Reorderable,
            own: None,
            on: Vec::new(),
            body: Expr::Reduce {
                op,
                dims: vec![bound],
                body: Box::new(part),
                span: Span::NONE,
            },
            span: Span::NONE,
        });
        inputs.extend(store.inputs("part"));
        let sum = VarId::from(n);
        let whole = store.whole();
        outputs.extend(whole.outputs("joined", sum, last, &here(last), &Cond::TRUE));
    }
    let system = System {
        name: array.system.clone(),
        span: Span::NONE,
        params: array.params.clone(),
        context: array.context.clone(),
        batch: None,
        dims: (0..last).map(dim).collect(),
        domain: Vec::new(),
        bound: vec![dim(last); chains.len()],
        consts: array.consts.clone(),
        inputs,
        functions: array.functions.clone(),
        vars,
        outputs,
    };
    let name = format!("{}_{}_joined", array.name, store.name);
    let mapping = mapping_of_parts(&system, name, lanes);
    let localised = localise(&system, Some(&mapping), lanes).map_err(Failure::Refused)?;
    let setting = Setting {
        batch: None,
        rings: &[],
        lanes,
        values: None,
    };
    unwatched(|watch| build_array(&localised, &mapping, &setting, watch))
}

/// A block for each sum: its lanes add up terms, then the registers of a lane, then the lanes.
fn mapping_of_parts(system: &System, name: String, lanes: i128) -> Mapping {
    let part = &system.bound[0].name;
    let [steps, terms, lane, register] =
        ["t", "x", "l", "r"].map(|letter| format!("{part}{letter}"));
    let tile = |dim: &str, size: i128, outer: &str, inner: &str| DirectiveKind::Tile {
        dim: dim.into(),
        size: NameExpr::int(size),
        outer: outer.into(),
        inner: inner.into(),
        overlap: None,
        periodic: false,
    };
    let mut directives = vec![
        tile(part, lanes * REGISTERS, &steps, &terms),
        tile(&terms, REGISTERS, &lane, &register),
    ];
    directives.extend(system.vars.iter().map(|var| DirectiveKind::Sum {
        var: Name::from(var.name.as_str()),
        stages: vec![
            SumStage::Along(vec![(Name::from(steps.as_str()), Direction::Up)]),
            SumStage::Tree(vec![register.as_str().into(), lane.as_str().into()]),
        ],
    }));
    let forms = |names: &[&str]| names.iter().map(|n| NameExpr::name(*n)).collect();
    let place = |level, names: &[&str]| DirectiveKind::Place {
        level,
        forms: forms(names),
    };
    let blocks: Vec<&str> = system.dims.iter().map(|d| d.name.as_str()).collect();
    if !blocks.is_empty() {
        directives.push(place(PlaceLevel::Block, &blocks));
    }
    directives.extend([
        place(PlaceLevel::Lane, &[&lane]),
        place(PlaceLevel::Reg, &[&register]),
        DirectiveKind::Time {
            level: TimeLevel::Step,
            forms: forms(&[&steps]),
        },
        DirectiveKind::Unroll {
            name: Name::from(steps.as_str()),
            factor: Some(UNROLL),
        },
    ]);
    Mapping {
        name,
        system: system.name.clone(),
        directives: directives.into_iter().map(Directive::from).collect(),
        span: Span::NONE,
    }
}

/// The array whose cells are the finished sums.
fn rest(array: &Array, chains: &[Chain], stores: &[Store<'_>]) -> Array {
    let mut rest = array.clone();
    for (chain, store) in chains.iter().zip(stores) {
        let first = rest.inputs.len();
        rest.inputs.extend(store.whole().inputs("joined"));
        let mut index = chain.index(&array.pieces[0], &[], &[]);
        index.pop();
        rest.cells[chain.cell.index()].body = element(store.ty, &mut (first..), &index);
    }
    // Only what outputs still need is computed.
    let is_sum = |cell: VarId| chains.iter().any(|chain| chain.cell == cell);
    let mut needed: Vec<VarId> = Vec::new();
    let mut open: Vec<VarId> = array.body.clone();
    open.retain(|cell| {
        let mut writes = array.outputs.iter().flat_map(|o| &o.writes);
        writes.any(|write| reads(&write.value, *cell))
    });
    while let Some(cell) = open.pop() {
        if needed.contains(&cell) {
            continue;
        }
        needed.push(cell);
        if !is_sum(cell) {
            let ports = array.ports.iter().filter(|p| p.sink == cell);
            open.extend(ports.map(|p| p.source));
        }
    }
    rest.body.retain(|c| needed.contains(c));
    for port in &mut rest.ports {
        if is_sum(port.sink) || !needed.contains(&port.sink) {
            port.links.clear();
        }
    }
    rest
}

fn reads(value: &Expr, cell: VarId) -> bool {
    let mut found = false;
    walk(value, &mut |e| {
        found |= matches!(e, Expr::Var { var, .. } if *var == cell);
    });
    found
}
