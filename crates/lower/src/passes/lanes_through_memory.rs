//! Moves values from lane to lane through shared memory, for devices without shuffles.
//!
//! Before: shuffles and lane shifts. After: a lane stores the value it sends into a slot of its own
//! and loads the value it receives from the slot of another lane; in between the lanes
//! [synchronise](mod@super::sync_warps). To synchronise rarely, values that are sent in sequence
//! are stored together, before the first of them is loaded; and slots are used in rotation, so that
//! no lane has to wait until all lanes have read the previous values.

use std::collections::BTreeSet;

use systola_ir::form::{Atom, Cond, Form, Poly, Rel};
use systola_ir::kernel::visit::walk;
use systola_ir::kernel::{Access, Kernel, Memory, Op, Shape, Shared, Stmt, Value, Var, VarKind};
use systola_ir::{DimId, Scalar, SharedId, ValueId};

/// Bytes for all slots of a block, unless one slot for each type takes more.
pub const LINK_BYTES: u64 = 8 << 10;

/// At most this many values are sent together, and there are at most this many slots.
const MOST_TOGETHER: usize = 4;
const MOST_SLOTS: usize = 2 * MOST_TOGETHER;

/// The same kernel without shuffles and lane shifts.
pub fn lanes_through_memory(kernel: &Kernel) -> Kernel {
    let mut types = BTreeSet::new();
    walk(&kernel.body, &mut |stmt| {
        if let Stmt::Let(value, op) = stmt
            && op.effects().crosses_lanes
        {
            types.insert(kernel.values[value.index()].ty);
        }
    });
    if types.is_empty() {
        return kernel.clone();
    }
    let mut made = kernel.clone();
    made.body = Vec::new();
    let lane = variable(&mut made, "lane", VarKind::Lane);
    let warp = (kernel.warps > 1).then(|| variable(&mut made, "warp", VarKind::Warp));
    let threads = u64::from(kernel.lanes) * u64::from(kernel.warps);
    let mut boxes = Vec::new();
    for ty in &types {
        let bytes = threads * u64::from(ty.bits() / 8) * types.len() as u64;
        let slots = (LINK_BYTES / bytes.max(1)).clamp(1, MOST_SLOTS as u64) as usize;
        let mut extents = vec![slots as i128];
        extents.extend(warp.map(|_| i128::from(kernel.warps)));
        extents.push(kernel.lanes.into());
        boxes.push(Slots {
            ty: *ty,
            memory: Memory::Shared(SharedId::from(made.shared.len())),
            slots,
            next: 0,
        });
        made.shared.push(Shared {
            name: format!("sent_{ty}s"),
            ty: *ty,
            extents: extents.into_iter().map(Poly::constant).collect(),
        });
    }
    let mut pass = Pass {
        kernel: made,
        lane: Form::from(lane),
        warp: warp.map(Form::from),
        boxes,
    };
    let body = pass.list(&kernel.body);
    pass.kernel.body = body;
    pass.kernel
}

fn variable(kernel: &mut Kernel, name: &str, kind: VarKind) -> DimId {
    if let Some(known) = kernel.vars_where(|k| *k == kind).next() {
        return known;
    }
    kernel.vars.push(Var {
        name: name.to_string(),
        kind,
    });
    DimId::from(kernel.vars.len() - 1)
}

/// The slots for values of one type.
struct Slots {
    ty: Scalar,
    memory: Memory,
    slots: usize,
    next: usize,
}

/// A value in transit: what a lane sends, and from which lane it receives.
struct Link {
    sent: Sent,
    from: Form,
    when: Cond,
}

#[derive(Clone, PartialEq)]
enum Sent {
    Value(ValueId),
    /// The first value in lanes from this one on, the second value in the others.
    From(i128, ValueId, ValueId),
}

impl Sent {
    fn values(&self) -> Vec<ValueId> {
        match self {
            Sent::Value(a) => vec![*a],
            Sent::From(_, a, b) => vec![*a, *b],
        }
    }
}

/// What an operation becomes.
enum Way {
    /// The value of the same lane.
    Same(ValueId),
    Link(Box<Link>),
}

struct Pass {
    /// The new kernel so far, without statements.
    kernel: Kernel,
    lane: Form,
    warp: Option<Form>,
    boxes: Vec<Slots>,
}

impl Pass {
    fn list(&mut self, list: &[Stmt]) -> Vec<Stmt> {
        let mut made = Vec::new();
        // Loads whose stores are emitted, by the value they define.
        let mut stored: Vec<(ValueId, Stmt)> = Vec::new();
        for (at, stmt) in list.iter().enumerate() {
            let Stmt::Let(value, op) = stmt else {
                made.push(self.inside(stmt));
                continue;
            };
            match self.way(op) {
                Some(Way::Same(other)) => made.push(Stmt::Let(*value, Op::Cast(other))),
                Some(Way::Link(_)) => {
                    if stored.is_empty() {
                        stored = self.send(&list[at..], &mut made);
                    }
                    let mine = stored.iter().position(|(to, _)| to == value);
                    let Some(mine) = mine else {
                        unreachable!("links are sent in the order in which they stand")
                    };
                    made.push(stored.remove(mine).1);
                }
                None => made.push(stmt.clone()),
            }
        }
        made
    }

    fn inside(&mut self, stmt: &Stmt) -> Stmt {
        let mut stmt = stmt.clone();
        for body in stmt.bodies_mut() {
            let old = std::mem::take(body);
            *body = self.list(&old);
        }
        stmt
    }

    /// Stores what the first link of a list sends, and what later links send if it is known
    /// already. Returns their loads.
    fn send(&mut self, list: &[Stmt], made: &mut Vec<Stmt>) -> Vec<(ValueId, Stmt)> {
        let mut loads = Vec::new();
        let mut sent: Vec<(Scalar, Sent, usize)> = Vec::new();
        let mut later: BTreeSet<ValueId> = BTreeSet::new();
        for stmt in list {
            // Do not look past statements with bodies, asynchronous copies or synchronisation.
            let does = stmt.effects();
            let copies = does.read.is_some() && does.write.is_some();
            let together = stmt.bodies().is_empty()
                && does.orders.is_none()
                && !copies
                && !matches!(stmt, Stmt::CommitCopies);
            if !together {
                break;
            }
            if let Stmt::Let(value, op) = stmt
                && let Some(Way::Link(link)) = self.way(op)
            {
                let known = link.sent.values().iter().all(|v| !later.contains(v));
                if !known {
                    break;
                }
                let ty = self.kernel.values[value.index()].ty;
                let Some(slot) = self.slot(ty, &link.sent, &mut sent, made) else {
                    break;
                };
                let from = self.place(ty, slot, link.from, link.when);
                let otherwise = None;
                loads.push((*value, Stmt::Let(*value, Op::Load { from, otherwise })));
            }
            later.extend(stmt.defs());
        }
        loads
    }

    /// The slot in which a value is sent, with the store if it is not in transit yet; `None` if no
    /// slot is left.
    fn slot(
        &mut self,
        ty: Scalar,
        what: &Sent,
        sent: &mut Vec<(Scalar, Sent, usize)>,
        made: &mut Vec<Stmt>,
    ) -> Option<usize> {
        let known = sent.iter().find(|(t, s, _)| *t == ty && s == what);
        if let Some((_, _, slot)) = known {
            return Some(*slot);
        }
        let taken = sent.iter().filter(|(t, ..)| *t == ty).count();
        let slots = self.boxes.iter_mut().find(|b| b.ty == ty)?;
        if taken >= (slots.slots / 2).clamp(1, MOST_TOGETHER) {
            return None;
        }
        let slot = slots.next;
        slots.next = (slot + 1) % slots.slots;
        let value = match what {
            Sent::Value(value) => *value,
            Sent::From(lane, then, otherwise) => {
                let value = ValueId::from(self.kernel.values.len());
                let name = self.kernel.values[then.index()].name.clone();
                let shape = Shape::Varying;
                self.kernel.values.push(Value { name, ty, shape });
                let cond = Cond::cmp(Rel::Ge, self.lane.clone(), *lane);
                made.push(Stmt::Let(
                    value,
                    Op::Choose {
                        cond,
                        then: *then,
                        otherwise: *otherwise,
                    },
                ));
                value
            }
        };
        let to = self.place(ty, slot, self.lane.clone(), Cond::TRUE);
        made.push(Stmt::Store { to, value });
        sent.push((ty, what.clone(), slot));
        Some(slot)
    }

    fn place(&self, ty: Scalar, slot: usize, lane: Form, when: Cond) -> Access {
        let Some(slots) = self.boxes.iter().find(|b| b.ty == ty) else {
            unreachable!("every type that is sent has slots")
        };
        let mut index = vec![Form::from(slot as i128)];
        index.extend(self.warp.clone());
        index.push(lane);
        Access {
            memory: slots.memory,
            index,
            when,
        }
    }

    /// How the value of an operation travels, if it goes from lane to lane.
    fn way(&self, op: &Op) -> Option<Way> {
        let lanes = i128::from(self.kernel.lanes);
        let link = |sent, from: Form, when| Some(Way::Link(Box::new(Link { sent, from, when })));
        match op {
            Op::Shuffle { value, .. } if lanes == 1 => Some(Way::Same(*value)),
            Op::Shuffle { value, from } => {
                let when = self.inside_of_warp(from, lanes);
                link(Sent::Value(*value), from.clone(), when)
            }
            Op::LaneShift { low, high, by } => {
                let by = i128::from(*by);
                let up = self.lane.plus(-by);
                let down = self.lane.plus(lanes - by);
                match (low, high) {
                    (_, Some(high)) if by == 0 => Some(Way::Same(*high)),
                    (Some(low), _) if by >= lanes => Some(Way::Same(*low)),
                    (None, Some(high)) => {
                        let when = Cond::cmp(Rel::Ge, self.lane.clone(), by);
                        link(Sent::Value(*high), up, when)
                    }
                    (Some(low), None) => {
                        let when = Cond::cmp(Rel::Lt, self.lane.clone(), by);
                        link(Sent::Value(*low), down, when)
                    }
                    (Some(low), Some(high)) => {
                        let sent = if low == high {
                            Sent::Value(*low)
                        } else {
                            Sent::From(lanes - by, *low, *high)
                        };
                        link(sent, down.modulo(lanes), Cond::TRUE)
                    }
                    (None, None) => None,
                }
            }
            Op::Lit(_)
            | Op::Index(_)
            | Op::Get(_)
            | Op::Unary(..)
            | Op::Binary(..)
            | Op::Cast(_)
            | Op::Select { .. }
            | Op::Choose { .. }
            | Op::Load { .. }
            | Op::Lookup { .. } => None,
        }
    }

    /// The condition under which a form is the number of a lane.
    fn inside_of_warp(&self, from: &Form, lanes: i128) -> Cond {
        let lane = self.lane.dims();
        if !has_sizes(from) && from.dims().iter().all(|d| lane.contains(d)) {
            let mut dims = vec![0; self.kernel.vars.len()];
            let inside = (0..lanes).all(|l| {
                for d in &lane {
                    dims[d.index()] = l;
                }
                from.eval(&[], &dims).is_ok_and(|x| (0..lanes).contains(&x))
            });
            if inside {
                return Cond::TRUE;
            }
        }
        Cond::cmp(Rel::Ge, from.clone(), 0).and(Cond::cmp(Rel::Lt, from.clone(), lanes))
    }
}

fn has_sizes(form: &Form) -> bool {
    form.constant_part().as_constant().is_none()
        || form.terms().any(|(atom, coefficient)| {
            let inside = match atom {
                Atom::Dim(_) => false,
                Atom::Floor(inner, _) | Atom::Mod(inner, _) => has_sizes(inner),
            };
            inside || coefficient.as_constant().is_none()
        })
}
