//! The three arrays of a chain that crosses blocks.

use systola_ir::array::{
    Array, Cell, Link, Piece, PlaceCoord, Port, Realisation, Registers, Reverse, Role, TimeCoord,
};
use systola_ir::form::{Cond, Form, Overflow, Poly, Rel};
use systola_ir::mapping::{Check, PlaceLevel, TimeLevel};
use systola_ir::system::visit::map_expr;
use systola_ir::system::{Axis, Expr, Input, InputKind, Output, Write};
use systola_ir::{DimId, InputId, PortId, Span, Type, VarId};

use crate::failure::Failure;
use crate::localise::{combine, shift_form};
use crate::split_sums::{Chain, Split};
use crate::storage::chains::{Joins, is_sum_so_far, mentions, sides};
use crate::storage::queues::scalars;

/// The arrays between the kernels, with an element for every part of a chain.
pub(super) struct Store<'a> {
    pub(super) ty: &'a Type,
    /// The prefix of the names of the arrays.
    pub(super) name: String,
    pub(super) axes: Vec<Axis>,
}

impl Store<'_> {
    /// The arrays with an element for every chain.
    pub(super) fn whole(&self) -> Store<'_> {
        Store {
            ty: self.ty,
            name: self.name.clone(),
            axes: self.axes[..self.axes.len() - 1].to_vec(),
        }
    }

    pub(super) fn inputs(&self, what: &str) -> Vec<Input> {
        scalars(self.ty)
            .into_iter()
            .enumerate()
            .map(|(n, ty)| Input {
                name: format!("{}_{what}{n}", self.name),
                ty,
                kind: InputKind::Array,
                axes: self.axes.clone(),
                outside: None,
                span: Span::NONE,
            })
            .collect()
    }

    /// The value of a cell as outputs, one for each scalar.
    pub(super) fn outputs(
        &self,
        what: &str,
        cell: VarId,
        n_dims: usize,
        index: &[Form],
        when: &Cond,
    ) -> Vec<Output> {
        let value = Expr::Var {
            var: cell,
            index: here(n_dims),
            span: Span::NONE,
        };
        fields(self.ty, value)
            .into_iter()
            .zip(scalars(self.ty))
            .enumerate()
            .map(|(n, (value, ty))| Output {
                name: format!("{}_{what}{n}", self.name),
                ty,
                axes: self.axes.clone(),
                writes: vec![Write {
                    of: None,
                    value,
                    index: index.to_vec(),
                    when: when.clone(),
                    span: Span::NONE,
                }],
                fill: None,
                span: Span::NONE,
            })
            .collect()
    }
}

impl Chain {
    pub(super) fn split(&self, array: &Array) -> Result<Split, Failure> {
        let store = self.store(array);
        Ok(Split {
            parts: parts(array, &[self], std::slice::from_ref(&store))?,
            joined: self.joined(array, &store),
            rest: self.rest(array, &store)?,
        })
    }

    /// The arrays with the parts of the chain.
    pub(super) fn store<'a>(&self, array: &'a Array) -> Store<'a> {
        let cell = &array.cells[self.cell.index()];
        let extents = self.axes.iter().map(|(_, _, extent)| extent);
        Store {
            ty: &cell.ty,
            name: fresh(array, &cell.name),
            axes: extents
                .map(|extent| Axis {
                    lo: Form::zero(),
                    hi: extent.clone(),
                })
                .collect(),
        }
    }

    /// The index, in the array of parts, of the slot that is `displacement` and `delay` before that
    /// of a point.
    pub(super) fn index(&self, piece: &Piece, displacement: &[Poly], delay: &[Poly]) -> Vec<Form> {
        let at = |(k, start, _): &(usize, Form, Form)| {
            let (form, gone) = match k.checked_sub(piece.place.len()) {
                None => (&piece.place[*k], displacement.get(*k)),
                Some(t) => (&piece.time[t], delay.get(t)),
            };
            let gone = gone.cloned().unwrap_or_default();
            form.sub(&Form::from(gone)).sub(start)
        };
        self.axes.iter().map(at).collect()
    }

    fn rest(&self, array: &Array, store: &Store<'_>) -> Result<Array, Failure> {
        let mut rest = array.clone();
        let first = rest.inputs.len();
        rest.inputs.extend(store.inputs("joined"));
        let piece = &array.pieces[0];
        let body = &array.cells[self.cell.index()].body;
        let body = map_expr(body, &mut |e| -> Result<Expr, Failure> {
            let Expr::Port(port) = e else { return Ok(e) };
            if !self.ports.contains(&port) {
                return Ok(e);
            }
            let mut value = Expr::Port(port);
            for link in array
                .port(port)
                .links
                .iter()
                .filter(|l| self.crosses(array, l))
            {
                let index = self.index(piece, &link.displacement, &link.delay);
                let entered = element(store.ty, &mut (first..), &index);
                value = Expr::guard(link.guard.clone(), entered, value);
            }
            Ok(value)
        })?;
        rest.cells[self.cell.index()].body = body;
        self.without_crossing(array, &mut rest);
        Ok(rest)
    }

    fn without_crossing(&self, array: &Array, changed: &mut Array) {
        for port in &self.ports {
            let links = &mut changed.ports[port.index()].links;
            links.retain(|l| !self.crosses(array, l));
        }
    }

    /// Combines the parts: from the second block on, each part is combined with the result of the
    /// block before.
    fn joined(&self, array: &Array, store: &Store<'_>) -> Array {
        let last = self.axes.len() - 1;
        let here = here(last + 1);
        // The chain enters at its first block, at one end of the axis of the parts.
        let (time, first, step) = if self.up {
            (here[last].clone(), Form::zero(), 1)
        } else {
            (here[last].neg(), store.axes[last].hi.plus(-1), -1)
        };
        let starts = Cond::cmp(Rel::Eq, here[last].clone(), first);
        let mut distance = vec![Poly::zero(); last + 1];
        distance[last] = Poly::constant(step);
        let coordinate = |n: usize| format!("{}{n}", store.name);
        let slot = here[..last].iter().cloned().chain([time.clone()]);
        Array {
            name: format!("{}_{}_joined", array.name, store.name),
            system: array.system.clone(),
            params: array.params.clone(),
            context: array.context.clone(),
            consts: array.consts.clone(),
            inputs: store.inputs("part"),
            functions: array.functions.clone(),
            dims: (0..=last).map(coordinate).collect(),
            bound: Vec::new(),
            storages: Vec::new(),
            tiles: Vec::new(),
            place: (0..last)
                .map(|n| PlaceCoord {
                    level: PlaceLevel::Block,
                    name: coordinate(n),
                    alias: None,
                })
                .collect(),
            time: vec![TimeCoord {
                level: TimeLevel::Step,
                name: coordinate(last),
                alias: None,
            }],
            pieces: vec![Piece {
                cond: Cond::TRUE,
                place: here[..last].to_vec(),
                time: vec![time],
                reverse: Reverse::Forms(slot.map(|form| (form, 1)).collect()),
            }],
            cells: vec![self.joining_cell(array, store, &starts, &distance)],
            body: vec![VarId::from(0)],
            ports: vec![Port {
                sink: VarId::from(0),
                source: VarId::from(0),
                distance,
                when: starts.negate(),
                links: vec![Link {
                    guard: Cond::TRUE,
                    displacement: vec![Poly::zero(); last],
                    delay: vec![Poly::constant(1)],
                    realisation: Realisation::Register,
                }],
                span: array.cells[self.cell.index()].span,
            }],
            outputs: store.outputs("joined", VarId::from(0), last + 1, &here, &Cond::TRUE),
            transfers: Vec::new(),
            unroll: Vec::new(),
            check: Check::Auto,
            guards: Vec::new(),
        }
    }

    /// The part where the chain starts; elsewhere the part combined with the result of the block
    /// before, which its one port brings.
    fn joining_cell(
        &self,
        array: &Array,
        store: &Store<'_>,
        starts: &Cond,
        distance: &[Poly],
    ) -> Cell {
        let Joins::Term(op) = self.joins else {
            unreachable!("a chain of terms")
        };
        let here = here(store.axes.len());
        let part = element(store.ty, &mut (0..), &here);
        let sum = combine(op, Expr::Port(PortId::from(0)), part.clone());
        let mut domain = Cond::TRUE;
        for (d, axis) in here.iter().zip(&store.axes) {
            let begins = Cond::cmp(Rel::Ge, d.clone(), 0);
            let ends = Cond::cmp(Rel::Lt, d.clone(), axis.hi.clone());
            domain = domain.and(begins).and(ends);
        }
        Cell {
            name: store.name.clone(),
            ty: store.ty.clone(),
            domain,
            body: Expr::guard(starts.clone(), part, sum),
            role: Role::Accumulation {
                op,
                along: vec![distance.to_vec()],
            },
            registers: Registers {
                depth: Some(Poly::constant(2)),
                coalesced: Some(Poly::constant(1)),
            },
            kept: None,
            span: array.cells[self.cell.index()].span,
        }
    }

    /// The points whose value goes to another block.
    pub(super) fn leaves(&self, array: &Array) -> Result<Cond, Overflow> {
        let mut any = Vec::new();
        for port in self.ports.iter().map(|p| array.port(*p)) {
            let back: Vec<Poly> = port.distance.iter().map(Poly::neg).collect();
            for link in port.links.iter().filter(|l| self.crosses(array, l)) {
                let reads = self.reads(array, port, link);
                any.push(reads.map(&|f| shift_form(f, &back))?);
            }
        }
        Ok(match any.len() {
            1 => any.remove(0),
            _ => Cond::Or(any),
        })
    }

    /// The points at which a link of the chain delivers.
    fn reads(&self, array: &Array, port: &Port, link: &Link) -> Cond {
        let domain = array.cells[self.cell.index()].domain.clone();
        domain.and(port.when.clone()).and(link.guard.clone())
    }

    /// The body with the term alone where the chain enters a block or warp.
    pub(super) fn begun_in_each_block(&self, array: &Array, body: &Expr) -> Expr {
        if !mentions(body, &self.ports) {
            return body.clone();
        }
        if let Expr::Guard {
            cond,
            then,
            otherwise,
        } = body
        {
            return Expr::Guard {
                cond: cond.clone(),
                then: Box::new(self.begun_in_each_block(array, then)),
                otherwise: otherwise
                    .as_ref()
                    .map(|e| Box::new(self.begun_in_each_block(array, e))),
            };
        }
        let Some((sum, term, sum_first)) = sides(body, self.joins, &self.ports) else {
            return body.clone();
        };
        if is_sum_so_far(sum, &self.ports) {
            return Expr::guard(self.entered(array, sum), term.clone(), body.clone());
        }
        let Joins::Term(op) = self.joins else {
            unreachable!("a chain of terms")
        };
        // Of several terms, the first begins the sum.
        let begun = self.begun_in_each_block(array, sum);
        match sum_first {
            true => combine(op, begun, term.clone()),
            false => combine(op, term.clone(), begun),
        }
    }

    /// The condition under which the sum so far comes from another block or warp.
    pub(super) fn entered(&self, array: &Array, sum: &Expr) -> Cond {
        match sum {
            Expr::Port(port) if self.ports.contains(port) => {
                let links = array.port(*port).links.iter();
                let guards: Vec<Cond> = links
                    .filter(|l| self.crosses(array, l))
                    .map(|l| l.guard.clone())
                    .collect();
                Cond::Or(guards)
            }
            Expr::Guard {
                cond,
                then,
                otherwise,
            } => {
                let there = cond.clone().and(self.entered(array, then));
                match otherwise {
                    None => there,
                    Some(otherwise) => {
                        let elsewhere = cond.clone().negate().and(self.entered(array, otherwise));
                        Cond::Or(vec![there, elsewhere])
                    }
                }
            }
            other => match sides(other, self.joins, &self.ports) {
                Some((sum, ..)) => self.entered(array, sum),
                None => Cond::Const(false),
            },
        }
    }
}

/// The array that computes the parts of some chains along the same blocks.
pub(super) fn parts(
    array: &Array,
    chains: &[&Chain],
    stores: &[Store<'_>],
) -> Result<Array, Failure> {
    let needed = |cell: VarId| chains.iter().any(|chain| chain.cone.contains(&cell));
    let mut parts = array.clone();
    if let Some(store) = stores.first() {
        parts.name = format!("{}_{}_parts", array.name, store.name);
    }
    parts.body.retain(|c| needed(*c));
    for port in &mut parts.ports {
        if !needed(port.sink) {
            port.links.clear();
        }
    }
    parts.outputs.clear();
    for (chain, store) in chains.iter().zip(stores) {
        let cell = &mut parts.cells[chain.cell.index()];
        cell.body = chain.begun_in_each_block(array, &cell.body);
        let handed = match chain.whole {
            true => cell.domain.clone(),
            false => chain.leaves(array)?,
        };
        chain.without_crossing(array, &mut parts);
        let index = chain.index(&array.pieces[0], &[], &[]);
        let n_dims = array.dims.len();
        let outputs = store.outputs("part", chain.cell, n_dims, &index, &handed);
        parts.outputs.extend(outputs);
    }
    Ok(parts)
}

/// The name, with underscores appended until no array of the caller begins with it.
fn fresh(array: &Array, name: &str) -> String {
    let mut name = name.to_string();
    let taken = |name: &str| {
        let inputs = array.inputs.iter().map(|i| &i.name);
        let mut all = inputs.chain(array.outputs.iter().map(|o| &o.name));
        all.any(|n| {
            n.starts_with(&format!("{name}_part")) || n.starts_with(&format!("{name}_joined"))
        })
    };
    while taken(&name) {
        name.push('_');
    }
    name
}

/// The point itself.
pub(super) fn here(n_dims: usize) -> Vec<Form> {
    (0..n_dims).map(|d| Form::from(DimId::from(d))).collect()
}

/// The scalars of an expression of some type.
fn fields(ty: &Type, value: Expr) -> Vec<Expr> {
    match ty {
        Type::Scalar(_) => vec![value],
        Type::Tuple(parts) => parts
            .iter()
            .enumerate()
            .flat_map(|(n, part)| fields(part, Expr::Field(Box::new(value.clone()), n)))
            .collect(),
    }
}

/// An element of some type, with a scalar from each of the inputs with these numbers.
pub(super) fn element(ty: &Type, inputs: &mut impl Iterator<Item = usize>, index: &[Form]) -> Expr {
    match ty {
        Type::Scalar(_) => Expr::Input {
            input: InputId::from(inputs.next().unwrap_or_default()),
            index: index.to_vec(),
            span: Span::NONE,
        },
        Type::Tuple(parts) => Expr::Tuple(
            parts
                .iter()
                .map(|part| element(part, inputs, index))
                .collect(),
        ),
    }
}
