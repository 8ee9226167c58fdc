//! The statements of a scan along the lanes.

use std::collections::HashMap;

use systola_ir::array::{Link, Realisation};
use systola_ir::kernel::{Op, Shape, Stmt};
use systola_ir::system::{Combine, Expr};
use systola_ir::{Cond, Form, PortId, RegId, Rel, Type, ValueId, VarId};

use crate::emit::Emitter;
use crate::emit::cells::{Bundle, Evaluated, Here};
use crate::failure::Failure;
use crate::storage::chains::{Joins, Scan, mentions, own_ports, sides};
use crate::storage::partition::Pes;
use crate::storage::partition::is_scanned;
use crate::storage::queues::{PeKey, scalars};

mod registers;

/// A subexpression of a chain before the neighbour's value arrives.
pub(super) struct Chain {
    /// The value where no neighbour is needed.
    pub(super) complete: Option<Bundle>,
    /// What the neighbour's value is combined with, where one is needed; `None` if the neighbour's
    /// value is itself the result.
    pub(super) term: Option<Bundle>,
    /// Where a neighbour is needed; in the first lanes, the value that enters the vector.
    pub(super) open: Cond,
    /// Where it reads a register of the same lane that needs a neighbour.
    pub(super) reached: Cond,
    /// The value that enters the vector at its first lanes, in all lanes of its chain.
    pub(super) entering: Option<Bundle>,
}

/// Where registers of the lane that are already evaluated still need the value that enters the
/// lane.
pub(super) type Waiting = HashMap<PeKey, Cond>;

impl Emitter<'_> {
    /// The value of a cell whose neighbours along the lanes are values of the same tick.
    pub(super) fn scanned(
        &mut self,
        cell: VarId,
        scan: &Scan,
        here: &Here<'_>,
        done: &mut Evaluated,
    ) -> Result<Bundle, Failure> {
        let value = self.scanned_vector(cell, scan, here, done)?;
        if let Pes::Looped = self.partition.walk {
            let registers = self.carry_registers(cell);
            for (reg, value) in registers.into_iter().zip(value.flat()) {
                self.b.push(Stmt::Set(reg, value));
            }
        }
        Ok(value)
    }

    /// The registers that carry a cell's value over from the previous vector.
    fn carry_registers(&mut self, cell: VarId) -> Vec<RegId> {
        if let Some(registers) = self.scan_carries.get(&cell) {
            return registers.clone();
        }
        let declared = &self.array.cells[cell.index()];
        let registers: Vec<RegId> = scalars(&declared.ty)
            .into_iter()
            .enumerate()
            .map(|(n, ty)| {
                let name = format!("{}_before{n}", declared.name);
                self.b.reg(name, ty, Shape::Varying)
            })
            .collect();
        self.scan_carries.insert(cell, registers.clone());
        registers
    }

    fn scanned_vector(
        &mut self,
        cell: VarId,
        scan: &Scan,
        here: &Here<'_>,
        done: &mut Evaluated,
    ) -> Result<Bundle, Failure> {
        let array = self.array;
        let declared = &array.cells[cell.index()];
        let name = &declared.name;
        let ports = own_ports(array, cell);
        let none = Waiting::new();
        let chain = self.chain(&declared.body, name, scan, &ports, &none, here, done)?;
        let (open, entering) = (chain.open.clone(), chain.entering.clone());
        let Some(value) = self.begun(scan, name, &declared.ty, chain) else {
            return Ok(self.placeholder(&declared.ty));
        };
        let carried = match &open {
            Cond::Const(false) => return Ok(value),
            _ => entering.or_else(|| self.carried(cell, scan, name, here)),
        };
        self.along_lanes(scan, name, value, open, carried.as_ref(), here)
    }

    /// The value before the neighbour's arrives.
    pub(super) fn begun(
        &mut self,
        scan: &Scan,
        name: &str,
        ty: &Type,
        chain: Chain,
    ) -> Option<Bundle> {
        let pending = match chain.term {
            Some(term) => Some(term),
            None if matches!(scan.joins, Joins::Nothing) => Some(self.placeholder(ty)),
            None => None,
        };
        self.either_of(name, &chain.open, pending, chain.complete)
    }

    /// Lanes that have another lane `step` lanes before them along a scan.
    pub(super) fn beyond(&self, scan: &Scan, step: i128) -> Cond {
        let Some(lane) = self.lane.map(Form::from) else {
            unreachable!("a scan is over lanes")
        };
        let first = if scan.by > 0 {
            lane.plus(-step)
        } else {
            lane.neg().plus(i128::from(self.partition.lanes) - 1 - step)
        };
        Cond::cmp(Rel::Ge, first, 0)
    }

    /// The scan itself: open lanes combine their values with those of the lanes before them.
    pub(super) fn along_lanes(
        &mut self,
        scan: &Scan,
        name: &str,
        mut value: Bundle,
        open: Cond,
        carried: Option<&Bundle>,
        here: &Here<'_>,
    ) -> Result<Bundle, Failure> {
        let width = i128::from(self.partition.lanes);
        let by = scan.by.abs();
        let up = scan.by > 0;
        // If chains begin nowhere but in the first lanes, the carried value is combined last:
        // vectors then depend on each other only in that step.
        let late = self.continues(scan, &open)?;
        if late.is_none()
            && let Some(carried) = carried
        {
            let enters = self.beyond(scan, by).negate().and(open.clone());
            let enters = self.facts.simplify(&enters);
            value = self.join(scan, name, enters, carried, value, here)?;
        }
        let mut reach = self.shorter(open.clone().and(self.beyond(scan, by)));
        let mut step = by;
        while step < width && reach != Cond::Const(false) {
            let moved = self.moved(name, &value, if up { step } else { -step });
            value = self.join(scan, name, reach.clone(), &moved, value, here)?;
            let there = self.lane_at(&reach, if up { -step } else { step })?;
            reach = self.shorter(there.and(reach));
            step *= 2;
        }
        match (carried, late) {
            (Some(carried), Some(late)) => self.join(scan, name, late, carried, value, here),
            (Some(_), None) | (None, _) => Ok(value),
        }
    }

    /// The lanes whose chain the carried value continues; `None` if chains may also begin behind the
    /// first lanes.
    fn continues(&self, scan: &Scan, open: &Cond) -> Result<Option<Cond>, Failure> {
        let by = scan.by.abs();
        let behind = open.clone().and(self.beyond(scan, 2 * by));
        let before = self.lane_at(open, -scan.by)?;
        if self.facts.clone().with(behind).simplify(&before) != Cond::TRUE {
            return Ok(None);
        }
        let at_first = self.at_first(scan, open)?;
        Ok(Some(self.shorter(at_first.and(open.clone()))))
    }

    /// The condition at the first lane of each lane's chain in this vector.
    fn at_first(&self, scan: &Scan, cond: &Cond) -> Result<Cond, Failure> {
        let by = scan.by.abs();
        let lane = self.lane.map(Form::from).unwrap_or_default();
        let last = i128::from(self.partition.lanes) - 1;
        let first = if scan.by > 0 {
            lane.modulo(by)
        } else {
            lane.neg().plus(last).modulo(by).neg().plus(last)
        };
        let put = |f: &Form| f.substitute(&|d| (Some(d) == self.lane).then(|| first.clone()));
        Ok(self.facts.simplify(&cond.map(&put)?))
    }

    /// Combines the arriving value with this one where a condition holds.
    pub(super) fn join(
        &mut self,
        scan: &Scan,
        name: &str,
        when: Cond,
        arrived: &Bundle,
        value: Bundle,
        here: &Here<'_>,
    ) -> Result<Bundle, Failure> {
        if when == Cond::Const(false) {
            return Ok(value);
        }
        let (joined, _) = self.on_path(&when, |e| {
            e.combined(scan.joins, name, arrived.clone(), Some(value.clone()), here)
        })?;
        Ok(joined.zip(&value, &mut |a, b| self.b.choose(name, when.clone(), a, b)))
    }

    pub(super) fn combined(
        &mut self,
        joins: Joins,
        name: &str,
        earlier: Bundle,
        later: Option<Bundle>,
        here: &Here<'_>,
    ) -> Result<Bundle, Failure> {
        match (joins, later) {
            (Joins::Nothing, _) | (Joins::Term(_), None) => Ok(earlier),
            (Joins::Term(Combine::Op(op)), Some(later)) => {
                // Operators of sums never fault.
                Ok(earlier.zip(&later, &mut |a, b| self.binary(op, name, a, b)))
            }
            (Joins::Term(Combine::Fn(f)), Some(later)) => self.call(f, vec![earlier, later], here),
        }
    }

    fn either_of(
        &mut self,
        name: &str,
        cond: &Cond,
        then: Option<Bundle>,
        otherwise: Option<Bundle>,
    ) -> Option<Bundle> {
        match (cond, then, otherwise) {
            (Cond::Const(true), Some(then), _) => Some(then),
            (Cond::Const(false), _, Some(otherwise)) => Some(otherwise),
            (cond, Some(then), Some(otherwise)) => Some(then.zip(&otherwise, &mut |a, b| {
                self.b.choose(name, cond.clone(), a, b)
            })),
            (_, then, otherwise) => then.or(otherwise),
        }
    }

    /// A condition without the parts that the others imply.
    fn shorter(&self, cond: Cond) -> Cond {
        let Cond::And(mut parts) = self.facts.simplify(&cond) else {
            return self.facts.simplify(&cond);
        };
        let mut at = 0;
        while at < parts.len() {
            let mut facts = self.facts.clone();
            for (n, part) in parts.iter().enumerate() {
                if n != at {
                    facts = facts.with(part.clone());
                }
            }
            match facts.simplify(&parts[at]) {
                Cond::Const(false) => return Cond::Const(false),
                Cond::Const(true) => drop(parts.remove(at)),
                Cond::Cmp(..) | Cond::And(_) | Cond::Or(_) | Cond::Not(_) => at += 1,
            }
        }
        parts.into_iter().fold(Cond::TRUE, Cond::and)
    }

    /// The condition at the lane `further` lanes away.
    fn lane_at(&self, cond: &Cond, further: i128) -> Result<Cond, Failure> {
        let lane = self.lane;
        Ok(cond
            .map(&|f| f.substitute(&|d| (Some(d) == lane).then(|| Form::from(d).plus(further))))?)
    }

    /// Shifts all lanes towards the last lane, or with a negative `by` towards the first.
    pub(super) fn moved(&mut self, name: &str, value: &Bundle, by: i128) -> Bundle {
        let width = i128::from(self.partition.lanes);
        let lanes = |n: i128| u32::try_from(n).unwrap_or(0);
        let mut move_one = |value: ValueId| {
            let (low, high, by) = if by > 0 {
                (None, Some(value), lanes(by))
            } else {
                (Some(value), None, lanes(width + by))
            };
            self.b.lane_shift(name, low, high, by).unwrap_or(value)
        };
        value.zip(value, &mut |a, _| move_one(a))
    }

    /// The value carried over from the previous vector, in all lanes of the chain that it enters.
    pub(super) fn carried(
        &mut self,
        cell: VarId,
        scan: &Scan,
        name: &str,
        here: &Here<'_>,
    ) -> Option<Bundle> {
        let values = match self.partition.walk {
            Pes::Known { .. } => {
                let mut key = here.pe.clone();
                match (scan.returns(), scan.wraps()) {
                    (Some(returns), Some(wraps)) => {
                        let moved = returns.iter().zip(wraps);
                        for (x, (by, wrap)) in key.iter_mut().zip(moved) {
                            *x -= if *wrap == 0 { *by } else { 0 };
                        }
                    }
                    _ => {
                        if let Some(vector) = key.last_mut() {
                            *vector -= scan.by.signum();
                        }
                    }
                }
                self.now.get(&(cell, key)).cloned()?
            }
            Pes::Looped => {
                let registers = self.carry_registers(cell);
                let get = |reg: RegId| {
                    let ty = self.b.kernel.regs[reg.index()].ty;
                    self.b.value(name, ty, Op::Get(reg))
                };
                registers.into_iter().map(get).collect()
            }
        };
        self.last_lanes(cell, scan, name, values)
    }

    /// The values of the last lanes of a vector, each in all lanes of its chain.
    fn last_lanes(
        &mut self,
        cell: VarId,
        scan: &Scan,
        name: &str,
        values: Vec<ValueId>,
    ) -> Option<Bundle> {
        let width = i128::from(self.partition.lanes);
        let by = scan.by.abs();
        let lane = self.lane.map(Form::from).unwrap_or_default();
        let from = if scan.by > 0 {
            lane.modulo(by).plus(width - by)
        } else {
            lane.neg().plus(width - 1).modulo(by).neg().plus(by - 1)
        };
        let taken = values.into_iter();
        let mut taken = taken.map(|value| self.b.shuffle(name, value, from.clone()));
        Bundle::of(&self.array.cells[cell.index()].ty, &mut taken)
    }

    /// Splits the body of a chain at its neighbour.
    pub(super) fn chain(
        &mut self,
        expr: &Expr,
        name: &str,
        scan: &Scan,
        ports: &[PortId],
        waiting: &Waiting,
        here: &Here<'_>,
        done: &mut Evaluated,
    ) -> Result<Chain, Failure> {
        if !mentions(expr, ports) {
            return Ok(Chain {
                complete: Some(self.expr(expr, name, here, done)?),
                term: None,
                open: Cond::Const(false),
                reached: Cond::Const(false),
                entering: None,
            });
        }
        if let Expr::Port(port) = expr {
            return self.own_port(*port, name, scan, waiting, here, done);
        }
        if let Expr::Guard {
            cond,
            then,
            otherwise,
        } = expr
        {
            let Some(otherwise) = otherwise else {
                self.only_where(here.cond(cond)?);
                return self.chain(then, name, scan, ports, waiting, here, done);
            };
            let cond = self.facts.simplify(&here.cond(cond)?);
            return match cond {
                Cond::Const(true) => self.chain(then, name, scan, ports, waiting, here, done),
                Cond::Const(false) => self.chain(otherwise, name, scan, ports, waiting, here, done),
                cond => {
                    let (then, after_then) = self.on_path(&cond, |e| {
                        e.chain(then, name, scan, ports, waiting, here, done)
                    })?;
                    let (otherwise, after_otherwise) = self
                        .on_path(&cond.clone().negate(), |e| {
                            e.chain(otherwise, name, scan, ports, waiting, here, done)
                        })?;
                    self.after_branches(&cond, after_then, after_otherwise);
                    let open = either_cond(&cond, then.open, otherwise.open);
                    let at_first = self.at_first(scan, &cond)?;
                    let reached = either_cond(&cond, then.reached, otherwise.reached);
                    Ok(Chain {
                        complete: self.either_of(name, &cond, then.complete, otherwise.complete),
                        term: self.either_of(name, &cond, then.term, otherwise.term),
                        open: self.facts.simplify(&open),
                        reached: self.facts.simplify(&reached),
                        entering: self.either_of(
                            name,
                            &at_first,
                            then.entering,
                            otherwise.entering,
                        ),
                    })
                }
            };
        }
        let Some((sum, other, sum_first)) = sides(expr, scan.joins, ports) else {
            unreachable!("the body of a chain was checked")
        };
        let sum = self.chain(sum, name, scan, ports, waiting, here, done)?;
        let other = self.expr(other, name, here, done)?;
        let mut with_other =
            |part: Option<Bundle>, there: Cond| -> Result<Option<Bundle>, Failure> {
                let Some(part) = part else { return Ok(None) };
                let (first, second) = if sum_first {
                    (part, other.clone())
                } else {
                    (other.clone(), part)
                };
                let joined = self.on_path(&there, |e| {
                    e.combined(scan.joins, name, first, Some(second), here)
                })?;
                Ok(Some(joined.0))
            };
        let complete = if sum.open == Cond::TRUE {
            None
        } else {
            with_other(sum.complete, sum.open.clone().negate())?
        };
        let term = with_other(sum.term, sum.open.clone())?.unwrap_or(other.clone());
        Ok(Chain {
            complete,
            term: Some(term),
            open: sum.open,
            reached: sum.reached,
            entering: sum.entering,
        })
    }

    /// A cell's port to itself: links within a vector stay open, and so does one that enters it;
    /// other links deliver.
    fn own_port(
        &mut self,
        port: PortId,
        name: &str,
        scan: &Scan,
        waiting: &Waiting,
        here: &Here<'_>,
        done: &Evaluated,
    ) -> Result<Chain, Failure> {
        let array = self.array;
        let port = array.port(port);
        let mut complete: Option<Bundle> = None;
        let mut open: Option<Cond> = None;
        let mut reached = Cond::Const(false);
        let mut entering: Option<Bundle> = None;
        for link in &port.links {
            if link.realisation == Realisation::Hole {
                continue;
            }
            let guard = self.facts.simplify(&here.cond(&link.guard)?);
            if guard == Cond::Const(false) {
                continue;
            }
            let scanned = is_scanned(self.partition, port.source, link);
            let enters = match scanned {
                false => self.enters(port.source, link, scan, name, here),
                true => None,
            };
            if scanned || enters.is_some() {
                let at_first = self.at_first(scan, &guard)?;
                entering = self.either_of(name, &at_first, enters, entering);
                open = Some(match open {
                    None => guard,
                    Some(other) => Cond::Or(vec![other, guard]),
                });
            } else {
                let value = self.arrives(port, link, name, here, done)?;
                if let Some(waits) = self.source(link, here.pe).and_then(|pe| waiting.get(&pe)) {
                    reached = either_cond(&guard, waits.clone(), reached);
                }
                complete = self.either_of(name, &guard, Some(value), complete);
            }
        }
        let open = match (open, &complete) {
            (None, _) => Cond::Const(false),
            // One of the guards holds, or nothing reads the value.
            (Some(_), None) => Cond::TRUE,
            (Some(open), Some(_)) => self.facts.simplify(&open),
        };
        Ok(Chain {
            complete,
            term: None,
            open,
            reached: self.facts.simplify(&reached),
            entering,
        })
    }

    /// The value of a link from the last lanes of a vector, of a register or of an earlier step, to
    /// the first lanes of this one, in all lanes; `None` if the link leads elsewhere.
    fn enters(
        &mut self,
        cell: VarId,
        link: &Link,
        scan: &Scan,
        name: &str,
        here: &Here<'_>,
    ) -> Option<Bundle> {
        let partition = self.partition;
        let (Pes::Known { .. }, Some(age)) = (&partition.walk, partition.age(self.array, link))
        else {
            return None;
        };
        let in_registers = matches!(
            link.realisation,
            Realisation::Register
                | Realisation::Buffer
                | Realisation::Shuffle
                | Realisation::Broadcast
                | Realisation::Tree
        );
        let mut others = (0..link.displacement.len()).filter(|p| !partition.pes.contains(p));
        if !in_registers || others.any(|p| !link.displacement[p].is_zero()) {
            return None;
        }
        let mut key = here.pe.clone();
        for (at, p) in partition.pes.iter().enumerate() {
            let moved = link.displacement[*p].as_constant()?;
            if Some(*p) != partition.vector {
                key[at] -= moved;
            } else if moved != scan.by - scan.by.signum() * i128::from(partition.lanes) {
                return None;
            }
        }
        let values = self.held(cell, name, &key, age)?;
        self.last_lanes(cell, scan, name, values)
    }
}

/// `then` where the condition holds, `otherwise` elsewhere.
fn either_cond(cond: &Cond, then: Cond, otherwise: Cond) -> Cond {
    let there = match then {
        Cond::Const(false) => Cond::Const(false),
        then => cond.clone().and(then),
    };
    let elsewhere = match otherwise {
        Cond::Const(false) => Cond::Const(false),
        otherwise => cond.clone().negate().and(otherwise),
    };
    match (there, elsewhere) {
        (Cond::Const(false), only) | (only, Cond::Const(false)) => only,
        (there, elsewhere) => Cond::Or(vec![there, elsewhere]),
    }
}
