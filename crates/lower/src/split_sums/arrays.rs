//! The three arrays of a chain that crosses blocks.

use systola_ir::array::{
    Array, Cell, Link, Piece, PlaceCoord, Port, Realisation, Registers, Reverse, Role, TimeCoord,
};
use systola_ir::form::{Cond, Form, Poly, Rel};
use systola_ir::mapping::{Check, PlaceLevel, TimeLevel};
use systola_ir::system::visit::map_expr;
use systola_ir::system::{Axis, Combine, Expr, Input, InputKind, Output, Write};
use systola_ir::{DimId, InputId, PortId, Span, Type, VarId};

use crate::failure::Failure;
use crate::localise::shift_form;
use crate::split_sums::{Chain, Split, crosses};
use crate::storage::chains::{Joins, mentions, sides};
use crate::storage::queues::scalars;

impl Chain {
    pub(super) fn split(&self, array: &Array) -> Result<Split, Failure> {
        let ty = &array.cells[self.cell.index()].ty;
        let name = &fresh(array, &array.cells[self.cell.index()].name);
        let store: Vec<Axis> = self
            .axes
            .iter()
            .map(|(_, _, extent)| Axis {
                lo: Form::zero(),
                hi: extent.clone(),
            })
            .collect();
        let parts = self.parts(array, ty, name, &store)?;
        let joined = self.joined(array, ty, name, &store);
        let rest = self.rest(array, ty, name, &store)?;
        Ok(Split {
            parts,
            joined,
            rest,
        })
    }

    /// Where in the array of the parts a point's part is, if the point is so far from its slot.
    fn index(&self, piece: &Piece, displacement: &[Poly], delay: &[Poly]) -> Vec<Form> {
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

    fn parts(
        &self,
        array: &Array,
        ty: &Type,
        name: &str,
        store: &[Axis],
    ) -> Result<Array, Failure> {
        let mut parts = array.clone();
        parts.name = format!("{}_{name}_parts", array.name);
        parts.body.retain(|c| self.cone.contains(c));
        for port in &mut parts.ports {
            if !self.cone.contains(&port.sink) {
                port.links.clear();
            }
        }
        let cell = &mut parts.cells[self.cell.index()];
        cell.body = self.begun_in_each_block(array, &cell.body);
        self.without_crossing(array, &mut parts);
        let leaves = self.leaves(array)?;
        let index = self.index(&array.pieces[0], &[], &[]);
        let here = (0..array.dims.len()).map(|d| Form::from(DimId::from(d)));
        let value = Expr::Var {
            var: self.cell,
            index: here.collect(),
            span: Span::NONE,
        };
        parts.outputs = fields(ty, value)
            .into_iter()
            .zip(scalars(ty))
            .enumerate()
            .map(|(n, (value, scalar))| Output {
                name: format!("{name}_part{n}"),
                ty: scalar,
                axes: store.to_vec(),
                writes: vec![Write {
                    value,
                    index: index.clone(),
                    when: leaves.clone(),
                    span: Span::NONE,
                }],
                fill: None,
                span: Span::NONE,
            })
            .collect();
        Ok(parts)
    }

    fn rest(&self, array: &Array, ty: &Type, name: &str, store: &[Axis]) -> Result<Array, Failure> {
        let mut rest = array.clone();
        let first = rest.inputs.len();
        rest.inputs
            .extend(inputs(ty, &format!("{name}_joined"), store));
        let piece = &array.pieces[0];
        let body = &array.cells[self.cell.index()].body;
        let body = map_expr(body, &mut |e| -> Result<Expr, Failure> {
            let Expr::Port(port) = e else { return Ok(e) };
            if !self.ports.contains(&port) {
                return Ok(e);
            }
            let mut value = Expr::Port(port);
            for link in array.port(port).links.iter().filter(|l| crosses(array, l)) {
                let index = self.index(piece, &link.displacement, &link.delay);
                let entered = element(ty, &mut (first..), &index);
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
            links.retain(|l| !crosses(array, l));
        }
    }

    /// A part for every block: from the second on it is combined with what the one before it has.
    fn joined(&self, array: &Array, ty: &Type, name: &str, store: &[Axis]) -> Array {
        let last = self.axes.len() - 1;
        let dim = |n: usize| Form::from(DimId::from(n));
        let here: Vec<Form> = (0..=last).map(dim).collect();
        let extent = store[last].hi.clone();
        // The chain enters a store of the parts at its first block, at one end of the axis.
        let (time, first, step) = if self.up {
            (dim(last), Form::zero(), 1)
        } else {
            (dim(last).neg(), extent.plus(-1), -1)
        };
        let starts = Cond::cmp(Rel::Eq, dim(last), first);
        let part = element(ty, &mut (0..), &here);
        let Joins::Term(op) = self.joins else {
            unreachable!("a chain of terms")
        };
        let before = Expr::Port(PortId::from(0));
        let sum = match op {
            Combine::Op(op) => Expr::binary(op, before, part.clone()),
            Combine::Fn(f) => Expr::Call(f, vec![before, part.clone()]),
        };
        let mut distance = vec![Poly::zero(); last + 1];
        distance[last] = Poly::constant(step);
        let domain = here.iter().zip(store).fold(Cond::TRUE, |cond, (d, axis)| {
            cond.and(Cond::cmp(Rel::Ge, d.clone(), 0)).and(Cond::cmp(
                Rel::Lt,
                d.clone(),
                axis.hi.clone(),
            ))
        });
        let coordinate = |n: usize| format!("{name}{n}");
        let value = Expr::Var {
            var: VarId::from(0),
            index: here.clone(),
            span: Span::NONE,
        };
        let outputs = fields(ty, value)
            .into_iter()
            .zip(scalars(ty))
            .enumerate()
            .map(|(n, (value, scalar))| Output {
                name: format!("{name}_joined{n}"),
                ty: scalar,
                axes: store.to_vec(),
                writes: vec![Write {
                    value,
                    index: here.clone(),
                    when: Cond::TRUE,
                    span: Span::NONE,
                }],
                fill: None,
                span: Span::NONE,
            });
        Array {
            name: format!("{}_{name}_joined", array.name),
            system: array.system.clone(),
            params: array.params.clone(),
            context: array.context.clone(),
            consts: array.consts.clone(),
            inputs: inputs(ty, &format!("{name}_part"), store),
            functions: array.functions.clone(),
            dims: (0..=last).map(coordinate).collect(),
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
                time: vec![time.clone()],
                reverse: Reverse::Forms(
                    here[..last]
                        .iter()
                        .cloned()
                        .chain([time])
                        .map(|form| (form, 1))
                        .collect(),
                ),
            }],
            cells: vec![Cell {
                name: name.to_string(),
                ty: ty.clone(),
                domain,
                body: Expr::guard(starts.clone(), part, sum),
                role: Role::Accumulation {
                    op,
                    along: vec![distance.clone()],
                },
                registers: Registers {
                    depth: Some(Poly::constant(2)),
                    coalesced: Some(Poly::constant(1)),
                },
                span: array.cells[self.cell.index()].span,
            }],
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
            outputs: outputs.collect(),
            transfers: Vec::new(),
            unroll: Vec::new(),
            check: Check::Auto,
            guards: Vec::new(),
        }
    }

    /// The points whose value goes to another block.
    fn leaves(&self, array: &Array) -> Result<Cond, Failure> {
        let mut any = Vec::new();
        for port in self.ports.iter().map(|p| array.port(*p)) {
            let back: Vec<Poly> = port.distance.iter().map(Poly::neg).collect();
            for link in port.links.iter().filter(|l| crosses(array, l)) {
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

    /// The body with the term alone where the chain enters a block.
    fn begun_in_each_block(&self, array: &Array, body: &Expr) -> Expr {
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
        let Some((sum, term, _)) = sides(body, self.joins, &self.ports) else {
            return body.clone();
        };
        Expr::guard(self.enters(array, sum), term.clone(), body.clone())
    }

    /// Where the sum so far comes from another block.
    fn enters(&self, array: &Array, sum: &Expr) -> Cond {
        match sum {
            Expr::Port(port) if self.ports.contains(port) => {
                let links = array.port(*port).links.iter();
                let guards: Vec<Cond> = links
                    .filter(|l| crosses(array, l))
                    .map(|l| l.guard.clone())
                    .collect();
                Cond::Or(guards)
            }
            Expr::Guard {
                cond,
                then,
                otherwise,
            } => {
                let there = cond.clone().and(self.enters(array, then));
                match otherwise {
                    None => there,
                    Some(otherwise) => {
                        let elsewhere = cond.clone().negate().and(self.enters(array, otherwise));
                        Cond::Or(vec![there, elsewhere])
                    }
                }
            }
            _ => Cond::Const(false),
        }
    }
}

/// The name, with underscores until no array of the caller begins with it.
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

/// An element of some type, a scalar from each of the inputs of these numbers.
fn element(ty: &Type, inputs: &mut impl Iterator<Item = usize>, index: &[Form]) -> Expr {
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

fn inputs(ty: &Type, name: &str, store: &[Axis]) -> Vec<Input> {
    scalars(ty)
        .into_iter()
        .enumerate()
        .map(|(n, ty)| Input {
            name: format!("{name}{n}"),
            ty,
            kind: InputKind::Array,
            axes: store.to_vec(),
            outside: None,
            span: Span::NONE,
        })
        .collect()
}
