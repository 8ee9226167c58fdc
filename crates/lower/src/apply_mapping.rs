//! System + space-time = array: dependences become links.
//!
//! Before: a localised system and a resolved mapping. After: an [`Array`] in which every reference
//! to a variable is a port with links, one for each amount by which place and time change along the
//! dependence. Where values go through memory, a reference to another point stays what it is, and
//! links join the cells of one point only. `legality` checks afterwards whether both are legal.

use std::collections::BTreeMap;

use systola_ir::array::{Array, Cell, Link, Piece, Port, Realisation, Registers, Reverse, Role};
use systola_ir::form::{Cond, Form, Overflow, Poly, Rel};
use systola_ir::mapping::{PlaceLevel, TimeLevel};
use systola_ir::system::visit::map_children;
use systola_ir::system::{Expr, System};
use systola_ir::{Diagnostic, DimId, PortId, Span, VarId};

use crate::decide::Decide;
use crate::difference::amounts;
use crate::failure::{Failure, limitation};
use crate::localise::{Localised, shift_form};
use crate::resolve::{SpaceTime, expand_distance, expand_form};
use crate::roles::role;

/// Applies a mapping.
pub fn apply_mapping(
    localised: &Localised,
    mapping: &str,
    st: &SpaceTime,
    decide: &Decide,
) -> Result<Array, Failure> {
    let system = &localised.system;
    let n_tiles = st.tiles.len();
    let mut build = Build {
        localised,
        system,
        st,
        decide,
        n_tiles,
        ports: Vec::new(),
        known: BTreeMap::new(),
    };
    let covered = build.covered()?;
    let mut cells = Vec::new();
    for (n, var) in system.vars.iter().enumerate() {
        let id = VarId::from(n);
        let domain = build
            .expand_cond(&build.own_domain(id)?)?
            .and(covered.clone());
        let body = build.body(id, &var.body, &Cond::TRUE)?;
        cells.push(Cell {
            name: var.name.clone(),
            ty: var.ty.clone(),
            domain,
            body,
            role: build.expand_role(role(system, id))?,
            registers: Registers {
                depth: None,
                coalesced: None,
            },
            kept: None,
            span: var.span,
        });
    }
    let mut ports = std::mem::take(&mut build.ports);
    for port in &mut ports {
        port.links = build.links(port, &cells)?;
    }
    let Some(body) = body_order(&ports, cells.len()) else {
        let message =
            "equations need each other's values at points of one step, each at other points";
        return Err(limitation(system.span, message.to_string()));
    };
    let mut outputs = system.outputs.clone();
    for output in &mut outputs {
        for write in &mut output.writes {
            write.value = build.expand_expr(&write.value)?;
            for form in &mut write.index {
                *form = expand_form(form, n_tiles)?;
            }
            write.when = build.expand_cond(&write.when)?;
        }
    }
    let pieces = st
        .pieces
        .iter()
        .map(|(cond, place, time)| Piece {
            cond: cond.clone(),
            place: place.clone(),
            time: time.clone(),
            reverse: Reverse::Scan,
        })
        .collect();
    Ok(Array {
        name: mapping.to_string(),
        system: system.name.clone(),
        params: system.params.clone(),
        context: system.context.clone(),
        consts: system.consts.clone(),
        inputs: system.inputs.clone(),
        functions: system.functions.clone(),
        dims: st.dims.clone(),
        tiles: st.tiles.clone(),
        place: st.place.clone(),
        time: st.time.clone(),
        pieces,
        cells,
        bound: match localised.through_memory {
            true => system.bound.clone(),
            false => Vec::new(),
        },
        storages: Vec::new(),
        body,
        ports,
        outputs,
        transfers: st.transfers.clone(),
        unroll: st.unroll.clone(),
        check: st.check,
        guards: Vec::new(),
    })
}

/// Sorts the cells so that each comes after those that it reads at the same point; `None` if they
/// need each other.
fn body_order(ports: &[Port], n_cells: usize) -> Option<Vec<VarId>> {
    let at_the_point = |port: &&Port| port.distance.iter().all(Poly::is_zero);
    let wires: Vec<&Port> = ports.iter().filter(at_the_point).collect();
    let mut order: Vec<VarId> = Vec::new();
    while order.len() < n_cells {
        let mut open = (0..n_cells).map(VarId::from).filter(|c| !order.contains(c));
        let sources = |cell: VarId| {
            let own = wires.iter().filter(move |port| port.sink == cell);
            own.map(|port| port.source)
        };
        let next = open.find(|cell| sources(*cell).all(|source| order.contains(&source)))?;
        order.push(next);
    }
    Some(order)
}

struct Build<'a> {
    localised: &'a Localised,
    system: &'a System,
    st: &'a SpaceTime,
    decide: &'a Decide,
    n_tiles: usize,
    ports: Vec<Port>,
    known: BTreeMap<(VarId, VarId, Vec<Poly>), PortId>,
}

impl Build<'_> {
    fn expand_cond(&self, cond: &Cond) -> Result<Cond, Overflow> {
        cond.map(&|f| expand_form(f, self.n_tiles))
    }

    /// The points of a variable, by its own conditions alone where they say it all: those of a space
    /// that variables are aligned with are a union.
    fn own_domain(&self, var: VarId) -> Result<Cond, Failure> {
        let whole = self.system.var_domain(var);
        let is_union = |cond: &Cond| matches!(cond, Cond::Or(_));
        if !self.localised.through_memory || !self.system.domain.iter().any(is_union) {
            return Ok(whole);
        }
        let own = self.system.vars[var.index()].on.iter().cloned();
        let own = own.fold(Cond::TRUE, Cond::and);
        let beyond = own.clone().and(self.system.domain_cond().negate());
        let n = self.system.dims.len();
        Ok(match self.decide.is_empty(&beyond, n)? {
            true => own,
            false => whole,
        })
    }

    fn expand_expr(&self, expr: &Expr) -> Result<Expr, Overflow> {
        let forms = systola_ir::system::map_forms(expr, &|f| expand_form(f, self.n_tiles))?;
        systola_ir::system::visit::map_expr(&forms, &mut |e| {
            Ok(match e {
                Expr::Iter(d) => Expr::Iter(DimId::from(d.index() + self.n_tiles)),
                // An output reads the copy in its own tile.
                Expr::Var { var, index, span } => {
                    let tiles = (0..self.n_tiles).map(|t| Form::from(DimId::from(t)));
                    let index = tiles.chain(index).collect();
                    Expr::Var { var, index, span }
                }
                other => other,
            })
        })
    }

    fn expand_role(&self, role: Role) -> Result<Role, Overflow> {
        Ok(match role {
            Role::Propagation {
                input,
                index,
                along,
            } => Role::Propagation {
                input,
                index: index
                    .iter()
                    .map(|f| expand_form(f, self.n_tiles))
                    .collect::<Result<_, _>>()?,
                along,
            },
            other => other,
        })
    }

    /// Points that a tile computes: they are owned or in its halo, and the tile owns something.
    fn covered(&self) -> Result<Cond, Overflow> {
        let mut cond = Cond::TRUE;
        for tile in &self.st.tiles {
            cond = cond.and(tile.covered());
            let dim = &self.system.dims[tile.dim.index() - self.n_tiles];
            if let Some((lo, hi)) = &dim.range
                && lo.as_poly().is_some()
                && hi.as_poly().is_some()
            {
                let start = Form::from(tile.outer).scale(&Poly::constant(tile.size))?;
                cond = cond
                    .and(Cond::cmp(Rel::Le, lo.clone(), start.plus(tile.size - 1)))
                    .and(Cond::cmp(Rel::Lt, start, hi.clone()));
            }
        }
        Ok(cond)
    }

    /// The body with ports in place of references.
    fn body(&mut self, sink: VarId, expr: &Expr, when: &Cond) -> Result<Expr, Failure> {
        Ok(match expr {
            Expr::Var { var, index, span } => {
                let distance = self.system.distance(index);
                if self.localised.through_memory
                    && distance
                        .as_ref()
                        .is_none_or(|e| !e.iter().all(Poly::is_zero))
                {
                    return self.stored(sink, *var, index, when, *span);
                }
                let Some(distance) = distance else {
                    unreachable!("other references go through memory");
                };
                let when = self.expand_cond(when)?;
                Expr::Port(self.port(sink, *var, distance, when, *span))
            }
            Expr::Guard {
                cond,
                then,
                otherwise,
            } => {
                let inside = when.clone().and(cond.clone());
                let outside = when.clone().and(cond.clone().negate());
                let then = Box::new(self.body(sink, then, &inside)?);
                let otherwise = match otherwise {
                    Some(e) => Some(Box::new(self.body(sink, e, &outside)?)),
                    None => None,
                };
                Expr::Guard {
                    cond: self.expand_cond(cond)?,
                    then,
                    otherwise,
                }
            }
            Expr::Reduce {
                op,
                dims,
                body,
                span,
            } if self.localised.through_memory => {
                let ranges = dims.iter().filter_map(|d| self.system.dim_range(*d));
                let inside = ranges.fold(when.clone(), Cond::and);
                Expr::Reduce {
                    op: *op,
                    dims: dims.clone(),
                    body: Box::new(self.body(sink, body, &inside)?),
                    span: *span,
                }
            }
            // Leaves have forms of their own; operators have only operands.
            leaf @ (Expr::Input { .. } | Expr::Iter(_)) => self.expand_expr(leaf)?,
            other => return map_children(other, &mut |child| self.body(sink, child, when)),
        })
    }

    /// A read through memory. Where the point reads itself, another equation of the point has the
    /// value.
    fn stored(
        &mut self,
        sink: VarId,
        var: VarId,
        index: &[Form],
        when: &Cond,
        span: Span,
    ) -> Result<Expr, Failure> {
        let read = Expr::Var {
            var,
            index: index.to_vec(),
            span,
        };
        if var == sink {
            return Ok(read);
        }
        let here = self.system.identity_index();
        let itself = index
            .iter()
            .zip(&here)
            .map(|(a, b)| Cond::cmp(Rel::Eq, a.clone(), b.clone()));
        let itself = itself.fold(Cond::TRUE, Cond::and);
        let live = self.system.var_domain(sink).and(when.clone());
        let n = self.system.dims.len() + self.system.bound.len();
        if self.decide.is_empty(&live.and(itself.clone()), n)? {
            return Ok(read);
        }
        let distance = vec![Poly::zero(); here.len()];
        let wire = self.port(sink, var, distance, when.clone().and(itself.clone()), span);
        Ok(Expr::Guard {
            cond: itself,
            then: Box::new(Expr::Port(wire)),
            otherwise: Some(Box::new(read)),
        })
    }

    fn port(
        &mut self,
        sink: VarId,
        source: VarId,
        distance: Vec<Poly>,
        when: Cond,
        span: Span,
    ) -> PortId {
        let key = (sink, source, distance.clone());
        if let Some(id) = self.known.get(&key) {
            let port = &mut self.ports[id.index()];
            port.when = match std::mem::replace(&mut port.when, Cond::TRUE) {
                Cond::Const(true) => Cond::TRUE,
                old if old == when => old,
                Cond::Or(mut parts) => {
                    parts.push(when);
                    Cond::Or(parts)
                }
                old => Cond::Or(vec![old, when]),
            };
            return *id;
        }
        let id = PortId::from(self.ports.len());
        self.ports.push(Port {
            sink,
            source,
            distance,
            when,
            links: Vec::new(),
            span,
        });
        self.known.insert(key, id);
        id
    }

    fn links(&self, port: &Port, cells: &[Cell]) -> Result<Vec<Link>, Failure> {
        let st = self.st;
        if port.distance.iter().all(Poly::is_zero) {
            return Ok(vec![Link {
                guard: Cond::TRUE,
                displacement: vec![Poly::zero(); st.place.len()],
                delay: vec![Poly::zero(); st.time.len()],
                realisation: Realisation::Wire,
            }]);
        }
        let e = expand_distance(&port.distance, self.n_tiles);
        let live = reads_at(port, cells, &e, &st.tiles)?;
        let mut links = Vec::new();
        for (sink_cond, sink_place, sink_time) in &st.pieces {
            for (source_cond, source_place, source_time) in &st.pieces {
                let forms: Vec<&Form> = source_place.iter().chain(source_time).collect();
                let there = source_cond.map(&|f| shift_form(f, &e))?;
                for amount in amounts(&forms, &e)? {
                    let guard = sink_cond
                        .clone()
                        .and(there.clone())
                        .and(amount.guard.clone());
                    if guard != Cond::TRUE
                        && self
                            .decide
                            .is_empty(&live.clone().and(guard.clone()), st.dims.len())?
                    {
                        continue;
                    }
                    let change = |sink: &[Form], source: &[Form]| {
                        sink.iter()
                            .zip(source)
                            .map(|(here, there)| {
                                let jump = here.sub(there);
                                let Some(jump) = jump.as_poly() else {
                                    return Err(Failure::Refused(vec![self.jumps(port)]));
                                };
                                Ok(jump.add(&amount.of(there, &e)?))
                            })
                            .collect::<Result<Vec<Poly>, Failure>>()
                    };
                    let displacement = change(sink_place, source_place)?;
                    let delay = change(sink_time, source_time)?;
                    self.realise(port, cells, &e, guard, displacement, delay, &mut links)?;
                }
            }
        }
        Ok(links)
    }

    fn jumps(&self, port: &Port) -> Diagnostic {
        Diagnostic::new(
            &systola_ir::codes::limits::LINK_BETWEEN_PIECES,
            port.span,
            format!(
                "`{}` is read across two pieces of the mapping whose places or times differ by more than a constant",
                self.system.vars[port.source.index()].name
            ),
        )
        .help("let the pieces differ by constants only, or split the system")
    }

    /// Chooses how a link is realised; in overlapped tiles the source may be missing.
    fn realise(
        &self,
        port: &Port,
        cells: &[Cell],
        e: &[Poly],
        guard: Cond,
        displacement: Vec<Poly>,
        delay: Vec<Poly>,
        links: &mut Vec<Link>,
    ) -> Result<(), Failure> {
        let st = self.st;
        let at = |level: PlaceLevel| {
            st.place
                .iter()
                .zip(&displacement)
                .any(|(c, d)| c.level == level && !d.is_zero())
        };
        let later = |level: TimeLevel| {
            st.time
                .iter()
                .zip(&delay)
                .any(|(c, d)| c.level == level && !d.is_zero())
        };
        let propagated = matches!(cells[port.source.index()].role, Role::Propagation { .. });
        let regrouped = || match &cells[port.source.index()].role {
            Role::Accumulation { op, .. } => {
                port.sink == port.source && self.localised.may_regroup(port.source, *op)
            }
            Role::Propagation { .. } | Role::Carry { .. } | Role::Plain => false,
        };
        let at_once = delay.iter().all(Poly::is_zero);
        let realisation = if later(TimeLevel::Launch) {
            Realisation::Launch
        } else if st.look_back
            && at(PlaceLevel::Block)
            && !at(PlaceLevel::Node)
            && at_once
            && regrouped()
        {
            Realisation::LookBack
        } else if st.flags && at(PlaceLevel::Block) && !at(PlaceLevel::Node) && !propagated {
            Realisation::Flags
        } else if at_once {
            match regrouped() {
                true => Realisation::Tree,
                false => Realisation::Broadcast,
            }
        } else if at(PlaceLevel::Node) {
            Realisation::Message
        } else if (at(PlaceLevel::Block) || at(PlaceLevel::Warp)) && propagated {
            Realisation::Reinject
        } else if at(PlaceLevel::Block) {
            Realisation::Flags
        } else if at(PlaceLevel::Warp) {
            Realisation::Shared
        } else if at(PlaceLevel::Lane) {
            Realisation::Shuffle
        } else {
            // `clock` moves it to a buffer later if the queue is too long.
            Realisation::Register
        };
        let tiled = st.tiles.iter().any(|t| !e[t.dim.index()].is_zero());
        if !tiled || realisation == Realisation::Launch {
            links.push(Link {
                guard,
                displacement,
                delay,
                realisation,
            });
            return Ok(());
        }
        let covered = st
            .tiles
            .iter()
            .map(|t| t.covered())
            .fold(Cond::TRUE, Cond::and)
            .map(&|f| shift_form(f, e))?;
        let missing = if propagated {
            Realisation::Reinject
        } else {
            Realisation::Hole
        };
        links.push(Link {
            guard: guard.clone().and(covered.clone()),
            displacement: displacement.clone(),
            delay: delay.clone(),
            realisation,
        });
        links.push(Link {
            guard: guard.and(covered.negate()),
            displacement,
            delay,
            realisation: missing,
        });
        Ok(())
    }
}

/// Where a port is read: in the sink's domain, under its branch, with the source defined.
pub(crate) fn reads_at(
    port: &Port,
    cells: &[Cell],
    e: &[Poly],
    tiles: &[systola_ir::array::OverlapTile],
) -> Result<Cond, Overflow> {
    let sink = cells[port.sink.index()].domain.clone();
    let mut source = cells[port.source.index()]
        .domain
        .map(&|f| shift_form(f, e))?;
    if !tiles.is_empty() {
        // A tile may lack this copy; what matters is whether the value exists at all.
        let covered: Vec<Cond> = tiles
            .iter()
            .map(|t| t.covered().map(&|f| shift_form(f, e)))
            .collect::<Result<_, _>>()?;
        let covered: Vec<Cond> = covered
            .into_iter()
            .flat_map(|c| match c {
                Cond::And(parts) => parts,
                other => vec![other],
            })
            .collect();
        if let Cond::And(parts) = &mut source {
            parts.retain(|p| !covered.contains(p));
        }
    }
    Ok(sink.and(port.when.clone()).and(source))
}
