//! Vectorises accesses: what one lane loads or stores at consecutive addresses becomes one access.
//!
//! Before: one load, store or copy for each element. After: accesses of 2, 4, … elements, up to as
//! many bytes as the machine moves at once. Accesses in one list of statements are merged if they
//! are in one row and have one predicate, and if nothing between them touches the same elements. A
//! vector access starts at a multiple of its width: both the index and the length of a row must
//! guarantee that. If that length is a parameter, the statements are emitted twice, and one test of
//! the sizes chooses between them. Predicates are compared under the assumption of that test: if
//! rows have 4·n elements, an aligned group of 4 lies inside the row or beyond it, so the elements
//! of the group have one predicate.
//!
//! A row is the last axis. If an access moves several times as many elements as that axis has, as
//! with the four channels of a pixel, the row is the last two axes together, and so on.
//!
//! The pass looks at statements only: why PEs are next to each other does not matter.

mod rows;

use std::collections::HashMap;

use systola_ir::form::{Cond, Form, Overflow};
use systola_ir::kernel::visit::{Rewrite, rewrite, walk};
use systola_ir::kernel::{Access, Buffer, BufferKind, Kernel, Memory, Op, Stmt};
use systola_ir::mapping::Engine;
use systola_ir::{DimId, Literal, Scalar, ValueId};

use crate::digits::gcd;
use rows::{Assumed, Rows, possible, tightened};

/// The kernel with vector accesses of up to this number of bytes.
pub fn vectorise_accesses(mut kernel: Kernel, buffers: &[Buffer], bytes: u32) -> Kernel {
    let body = std::mem::take(&mut kernel.body);
    let mut pass = Vectoriser {
        kernel,
        buffers,
        bytes,
    };
    pass.kernel.body = pass.either(body);
    pass.kernel
}

/// Does the list contain branches, which decide for themselves?
fn chooses(list: &[Stmt]) -> bool {
    list.iter().any(|stmt| matches!(stmt, Stmt::If { .. }))
}

struct Vectoriser<'b> {
    kernel: Kernel,
    buffers: &'b [Buffer],
    bytes: u32,
}

/// A list with more statements than this gets one vectorised version.
const LONG: usize = 4000;

impl Vectoriser<'_> {
    /// Statements for rows of any length, and beside them versions for rows of suitable lengths.
    /// The branches of an `If` in the list decide for themselves.
    fn either(&mut self, list: Vec<Stmt>) -> Vec<Stmt> {
        let bare = list.iter().map(|stmt| match stmt {
            Stmt::If { cond, .. } => Stmt::If {
                cond: cond.clone(),
                then: Vec::new(),
                otherwise: Vec::new(),
            },
            other => other.clone(),
        });
        let mut own = Assumed::default();
        self.list(bare.collect(), &mut Rows::Assumed(&mut own));
        if own.multiples.is_empty() {
            let inner = list.into_iter().map(|stmt| match stmt {
                Stmt::If {
                    cond,
                    then,
                    otherwise,
                } => Stmt::If {
                    cond,
                    then: self.either(then),
                    otherwise: if count(&otherwise) > LONG && !chooses(&otherwise) {
                        self.list(otherwise, &mut Rows::Any)
                    } else {
                        self.either(otherwise)
                    },
                },
                other => other,
            });
            let inner = inner.collect();
            return self.list(inner, &mut Rows::Any);
        }
        let mut versions = Vec::new();
        let mut banned = None;
        loop {
            let mut assumed = Assumed {
                banned,
                ..Assumed::default()
            };
            let Ok(copy) = self.fresh(&list) else { break };
            let then = self.list(copy, &mut Rows::Assumed(&mut assumed));
            let Ok(then) = decide(then, &assumed.multiples) else {
                break;
            };
            let last = !assumed.contradicts || !versions.is_empty() || count(&list) > LONG;
            banned = assumed.multiples.first().cloned();
            versions.push((assumed.cond(), then));
            if last || banned.is_none() {
                break;
            }
        }
        let any_length = self.list(list, &mut Rows::Any);
        let choice = |otherwise, (cond, then)| {
            vec![Stmt::If {
                cond,
                then,
                otherwise,
            }]
        };
        versions.into_iter().rev().fold(any_length, choice)
    }

    /// A copy of the statements with fresh values and variables.
    fn fresh(&mut self, list: &[Stmt]) -> Result<Vec<Stmt>, Overflow> {
        let mut names = Renamed::default();
        let Kernel { values, vars, .. } = &mut self.kernel;
        walk(list, &mut |stmt| {
            for value in stmt.defs() {
                values.push(values[value.index()].clone());
                names.values.insert(value, ValueId::from(values.len() - 1));
            }
            if let Some(var) = stmt.binds() {
                vars.push(vars[var.index()].clone());
                names.vars.insert(var, DimId::from(vars.len() - 1));
            }
        });
        rewrite(list, &names)
    }

    /// Vectorises every list inside, then the list itself.
    fn list(&self, mut list: Vec<Stmt>, rows: &mut Rows<'_>) -> Vec<Stmt> {
        for body in list.iter_mut().flat_map(Stmt::bodies_mut) {
            *body = self.list(std::mem::take(body), rows);
        }
        self.merged(list, rows)
    }

    fn merged(&self, list: Vec<Stmt>, rows: &mut Rows<'_>) -> Vec<Stmt> {
        let mut runs: Vec<Run> = Vec::new();
        for (at, stmt) in list.iter().enumerate() {
            if !is_of_interest(stmt) {
                continue;
            }
            let one = self.candidate(stmt, rows);
            let home = one.as_ref().and_then(|one| {
                runs.iter().position(|run| {
                    run.is_open && run.first.goes_with(one) && !run.has(one.offset())
                })
            });
            for (n, run) in runs.iter_mut().enumerate() {
                if run.is_open && Some(n) != home {
                    run.is_open = !self.disturbs(stmt, run);
                }
            }
            match (one, home) {
                (Some(one), Some(n)) => {
                    runs[n].members.push((one.offset(), at));
                    for (side, new) in runs[n].first.sides.iter_mut().zip(one.sides) {
                        side.relies_on = side.relies_on.take().or(new.relies_on);
                    }
                }
                (Some(one), None) => runs.push(Run {
                    members: vec![(one.offset(), at)],
                    first: one,
                    is_open: true,
                }),
                (None, _) => {}
            }
        }
        let mut gone = vec![false; list.len()];
        let mut new: HashMap<usize, Stmt> = HashMap::new();
        for run in &mut runs {
            run.members.sort_unstable();
            for part in self.parts(run, rows) {
                let positions = part.iter().map(|(_, at)| *at);
                let at = match run.first.kind {
                    Kind::Load(_) | Kind::Copy(_) => positions.clone().min(),
                    Kind::Store => positions.clone().max(),
                };
                positions.for_each(|at| gone[at] = true);
                if let (Some(at), Some(stmt)) = (at, joined(&run.first.kind, part, &list)) {
                    new.insert(at, stmt);
                }
            }
        }
        let kept = list.into_iter().enumerate().filter_map(|(at, stmt)| {
            let wide = new.remove(&at);
            wide.or_else(|| (!gone[at]).then_some(stmt))
        });
        kept.collect()
    }

    /// Consecutive members that one access can serve, the widest first.
    fn parts<'r>(&self, run: &'r Run, rows: &mut Rows<'_>) -> Vec<&'r [(i128, usize)]> {
        let mut parts = Vec::new();
        let mut rest = run.members.as_slice();
        while let [(offset, _), ..] = rest {
            let width = self.widths(&run.first).find(|width| {
                rest.get(width - 1)
                    .is_some_and(|(last, _)| last - offset == *width as i128 - 1)
                    && self.starts_at_multiple(run, *offset, *width, rows)
            });
            let (part, others) = rest.split_at(width.unwrap_or(1));
            if width.is_some() {
                parts.push(part);
            }
            rest = others;
        }
        parts
    }

    fn widths(&self, one: &Candidate) -> impl Iterator<Item = usize> + use<> {
        let bits = self.ty(one.sides[0].memory).bits();
        let most = self.bytes * 8 / bits;
        [16usize, 8, 4, 2]
            .into_iter()
            .filter(move |width| *width as u32 <= most)
    }

    fn ty(&self, memory: Memory) -> Scalar {
        match memory {
            Memory::Global(id) => self.buffers[id.index()].ty,
            Memory::Shared(id) => self.kernel.shared[id.index()].ty,
        }
    }

    /// The last axes of an array that form one row. An array that is both read and written keeps
    /// its axes separate, since aliasing is decided axis by axis.
    fn row(&self, memory: Memory) -> Option<Row> {
        let (axes, joins): (Vec<(Form, Form)>, bool) = match memory {
            Memory::Global(id) => {
                let buffer = &self.buffers[id.index()];
                let axes = buffer.axes.iter();
                let joins = match buffer.kind {
                    BufferKind::Input { .. } | BufferKind::Output { .. } => true,
                    BufferKind::Temporary | BufferKind::Flags | BufferKind::Faults { .. } => false,
                };
                let axes = axes.map(|a| (a.lo.clone(), a.hi.sub(&a.lo)));
                (axes.collect(), joins)
            }
            Memory::Shared(id) => {
                let extents = self.kernel.shared[id.index()].extents.iter();
                let axes = extents.map(|e| (Form::zero(), Form::from(e.clone())));
                (axes.collect(), false)
            }
        };
        let most = self.most(memory);
        let mut first = axes.len().checked_sub(1)?;
        let mut unit = 1;
        while joins
            && first > 0
            && let Some(inner) = axes[first].1.as_constant()
            && (1..most).contains(&(unit * inner))
            && most % (unit * inner) == 0
        {
            unit *= inner;
            first -= 1;
        }
        Some(Row {
            first,
            unit,
            axes: axes[first..].to_vec(),
        })
    }

    /// Elements that one access moves.
    fn most(&self, memory: Memory) -> i128 {
        i128::from(self.bytes * 8 / self.ty(memory).bits())
    }

    /// Is it the first row of its array? Then the length of a row does not matter.
    fn is_first_row(&self, side: &Side) -> bool {
        match side.memory {
            Memory::Global(id) => {
                let axes = &self.buffers[id.index()].axes;
                side.lead.iter().zip(axes).all(|(at, axis)| *at == axis.lo)
            }
            Memory::Shared(_) => side.lead.iter().all(|at| *at == Form::zero()),
        }
    }

    /// Is the element at this offset at a multiple of the width from the start of its array?
    fn starts_at_multiple(
        &self,
        run: &Run,
        offset: i128,
        width: usize,
        rows: &mut Rows<'_>,
    ) -> bool {
        let width = width as i128;
        for side in &run.first.sides {
            let Some(row) = self.row(side.memory) else {
                return false;
            };
            if let Some((extent, divisor)) = &side.relies_on
                && !rows.ask(extent, *divisor)
            {
                return false;
            }
            let at = side.base.plus(side.offset + offset - run.first.offset());
            if at.modulo(width).as_constant() != Some(0) {
                return false;
            }
            if self.is_first_row(side) {
                continue;
            }
            let extent = row.extent();
            let divisor = row.groups(width);
            let suits = match extent.modulo(divisor).as_constant() {
                Some(rest) => rest == 0,
                None => rows.ask(extent, divisor),
            };
            if !suits {
                return false;
            }
        }
        true
    }

    /// Splits an access into a row and the place in it.
    fn side(&self, access: &Access, rows: &Rows<'_>) -> Option<Side> {
        let row = self.row(access.memory)?;
        let (lead, within) = access.index.split_at_checked(row.first)?;
        let flat = row.place(within)?;
        let constant = |(monomial, c): (&Vec<_>, i128)| monomial.is_empty().then_some(c);
        let offset = flat.constant_part().terms().find_map(constant).unwrap_or(0);
        let plain = tightened(&access.when, None);
        let most = row.groups(self.most(access.memory));
        let length = Some((row.extent().clone(), most));
        let length = length.filter(|(extent, most)| rows.might_grant(extent, *most));
        let when = length
            .as_ref()
            .map(|(extent, most)| tightened(&access.when, Some((extent, *most))));
        Some(Side {
            memory: access.memory,
            lead: lead.to_vec(),
            base: flat.plus(-offset),
            offset,
            relies_on: length.filter(|_| when.as_ref() != Some(&plain)),
            when: when.unwrap_or(plain),
        })
    }

    fn candidate(&self, stmt: &Stmt, rows: &Rows<'_>) -> Option<Candidate> {
        let (kind, accesses) = match stmt {
            Stmt::Let(_, Op::Load { from, otherwise }) => {
                // An element that is the same for all lanes comes from a cache of its own, even if
                // not all lanes read it.
                let one_place = from.index.iter().all(|form| self.kernel.is_uniform(form));
                if one_place && matches!(from.memory, Memory::Global(_)) {
                    return None;
                }
                (Kind::Load(*otherwise), vec![from])
            }
            Stmt::Store { to, .. } => (Kind::Store, vec![to]),
            Stmt::Copy {
                to,
                from,
                width: 1,
                engine,
            } => (Kind::Copy(*engine), vec![from, to]),
            Stmt::Copy { .. }
            | Stmt::Let(..)
            | Stmt::Set(..)
            | Stmt::LoadWide { .. }
            | Stmt::StoreWide { .. }
            | Stmt::Prefetch { .. }
            | Stmt::CommitCopies
            | Stmt::WaitCopies { .. }
            | Stmt::For { .. }
            | Stmt::If { .. }
            | Stmt::Barrier
            | Stmt::SyncWarp
            | Stmt::Signal { .. }
            | Stmt::Await { .. }
            | Stmt::DynamicBlock { .. }
            | Stmt::LookBack(_)
            | Stmt::Fault { .. }
            | Stmt::Comment(_) => return None,
        };
        let sides = accesses.into_iter().map(|access| self.side(access, rows));
        let sides = sides.collect::<Option<Vec<_>>>()?;
        let truth = sides
            .iter()
            .any(|side| self.ty(side.memory) == Scalar::Bool);
        (!truth).then_some(Candidate { kind, sides })
    }

    /// Could the statement change what the access sees, or see what the access changes?
    fn disturbs(&self, stmt: &Stmt, run: &Run) -> bool {
        let one = &run.first;
        let does = stmt.effects();
        if does.orders.is_some() {
            return match (&one.kind, one.sides[0].memory) {
                // Inputs never change.
                (Kind::Load(_), Memory::Global(id)) => {
                    let buffer = &self.buffers[id.index()];
                    !matches!(buffer.kind, BufferKind::Input { .. })
                }
                (Kind::Load(_), Memory::Shared(_)) | (Kind::Store | Kind::Copy(_), _) => true,
            };
        }
        let mut inside = stmt.bodies().into_iter().flatten();
        let (reads, writes) = (does.reads(), does.writes());
        let own = |side: usize| Some(one.sides[side].memory);
        let itself = match one.kind {
            Kind::Load(_) => writes == own(0),
            Kind::Store => {
                reads == own(0) || does.write.is_some_and(|(to, _)| self.may_alias(run, to))
            }
            // No two copies in flight write one element.
            Kind::Copy(_) if matches!(stmt, Stmt::Copy { .. }) => false,
            Kind::Copy(_) => {
                matches!(stmt, Stmt::CommitCopies) || reads == own(1) || writes == own(1)
            }
        };
        itself || inside.any(|inner| self.disturbs(inner, run))
    }

    /// May a store alias an element of the run? Not if it is a constant distance away from all of
    /// them along some axis, or within the row.
    fn may_alias(&self, run: &Run, to: &Access) -> bool {
        let own = &run.first.sides[0];
        let differ = |a: &Form, b: &Form| a != b && a.sub(b).as_constant().is_some();
        if own.memory != to.memory || own.lead.iter().zip(&to.index).any(|(a, b)| differ(a, b)) {
            return false;
        }
        let place = self.row(to.memory).and_then(|row| {
            let within = to.index.get(row.first..)?;
            row.place(within)?.sub(&own.base).as_constant()
        });
        place.is_none_or(|place| run.has(place))
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Load(Option<Literal>),
    Store,
    Copy(Engine),
}

/// An access of one element: a load, a store, or the source and the target of a copy.
#[derive(Clone, Debug)]
struct Candidate {
    kind: Kind,
    sides: Vec<Side>,
}

#[derive(Clone, Debug, PartialEq)]
struct Side {
    memory: Memory,
    /// Indices of all axes before those of the row.
    lead: Vec<Form>,
    /// The place in the row is `base + offset`.
    base: Form,
    offset: i128,
    /// The predicate, tightened.
    when: Cond,
    /// Extent and divisor that tightening assumed.
    relies_on: Option<(Form, i128)>,
}

/// The last axes of an array, whose elements are next to each other.
struct Row {
    /// The first of these axes.
    first: usize,
    /// Elements at one index of that axis.
    unit: i128,
    /// Start and extent of each.
    axes: Vec<(Form, Form)>,
}

impl Row {
    /// The extent of the first axis.
    fn extent(&self) -> &Form {
        &self.axes[0].1
    }

    /// The divisor of the first axis under which rows are a multiple of `width` elements.
    fn groups(&self, width: i128) -> i128 {
        width / gcd(width, self.unit)
    }

    /// The offset of an element from the start of the row.
    fn place(&self, index: &[Form]) -> Option<Form> {
        let mut place = Form::zero();
        for (at, (lo, extent)) in index.iter().zip(&self.axes) {
            let before = match place == Form::zero() {
                true => place,
                false => place.scale(extent.as_poly()?).ok()?,
            };
            place = before.add(&at.sub(lo));
        }
        Some(place)
    }
}

/// Accesses to one row.
struct Run {
    first: Candidate,
    /// Offset and statement of each.
    members: Vec<(i128, usize)>,
    /// May more members be added?
    is_open: bool,
}

impl Run {
    fn has(&self, offset: i128) -> bool {
        self.members.iter().any(|(other, _)| *other == offset)
    }
}

impl Candidate {
    fn offset(&self) -> i128 {
        self.sides[0].offset
    }

    fn goes_with(&self, other: &Candidate) -> bool {
        let by = other.offset() - self.offset();
        self.kind == other.kind
            && self.sides.iter().zip(&other.sides).all(|(a, b)| {
                a.memory == b.memory
                    && b.offset - a.offset == by
                    && a.base == b.base
                    && a.lead == b.lead
                    && a.when == b.when
            })
    }
}

/// One statement for several of one kind.
fn joined(kind: &Kind, part: &[(i128, usize)], list: &[Stmt]) -> Option<Stmt> {
    let stmts: Vec<&Stmt> = part.iter().map(|(_, at)| &list[*at]).collect();
    let first = stmts.first()?.accesses();
    Some(match kind {
        Kind::Load(otherwise) => Stmt::LoadWide {
            to: stmts.iter().flat_map(|stmt| stmt.defs()).collect(),
            from: (*first.first()?).clone(),
            otherwise: *otherwise,
        },
        Kind::Store => Stmt::StoreWide {
            to: (*first.first()?).clone(),
            values: stmts.iter().flat_map(|stmt| stmt.uses()).collect(),
        },
        Kind::Copy(engine) => Stmt::Copy {
            from: (*first.first()?).clone(),
            to: (*first.last()?).clone(),
            width: u32::try_from(part.len()).ok()?,
            engine: *engine,
        },
    })
}

/// Does the statement touch memory? Most only compute.
fn is_of_interest(stmt: &Stmt) -> bool {
    match stmt {
        Stmt::Let(_, op) => op.effects().reads().is_some(),
        Stmt::Set(..) | Stmt::Prefetch { .. } | Stmt::Fault { .. } | Stmt::Comment(_) => false,
        Stmt::LoadWide { .. }
        | Stmt::Store { .. }
        | Stmt::StoreWide { .. }
        | Stmt::Copy { .. }
        | Stmt::CommitCopies
        | Stmt::WaitCopies { .. }
        | Stmt::For { .. }
        | Stmt::If { .. }
        | Stmt::Barrier
        | Stmt::SyncWarp
        | Stmt::Signal { .. }
        | Stmt::Await { .. }
        | Stmt::DynamicBlock { .. }
        | Stmt::LookBack(_) => true,
    }
}

fn count(list: &[Stmt]) -> usize {
    let mut n = 0;
    walk(list, &mut |_| n += 1);
    n
}

/// The statements without branches that have one outcome if rows have these lengths.
fn decide(mut list: Vec<Stmt>, multiples: &[(Form, i128)]) -> Result<Vec<Stmt>, Overflow> {
    let mut pass = Decided {
        multiples,
        values: HashMap::new(),
    };
    walk(&list, &mut |stmt| {
        if let Stmt::Let(
            value,
            Op::Choose {
                cond,
                then,
                otherwise,
            },
        ) = stmt
            && let Cond::Const(holds) = possible(cond, multiples)
        {
            let chosen = pass.value(if holds { *then } else { *otherwise });
            pass.values.insert(*value, chosen);
        }
    });
    remove(&mut list, &pass.values);
    rewrite(&list, &pass)
}

/// Removes the statements that define the values.
fn remove(list: &mut Vec<Stmt>, values: &HashMap<ValueId, ValueId>) {
    list.retain(|stmt| !matches!(stmt, Stmt::Let(value, _) if values.contains_key(value)));
    for body in list.iter_mut().flat_map(Stmt::bodies_mut) {
        remove(body, values);
    }
}

/// Values that always equal another one, and the row lengths that imply it.
struct Decided<'m> {
    multiples: &'m [(Form, i128)],
    values: HashMap<ValueId, ValueId>,
}

impl Rewrite for Decided<'_> {
    fn cond(&self, cond: &Cond) -> Result<Cond, Overflow> {
        Ok(possible(cond, self.multiples))
    }

    fn value(&self, value: ValueId) -> ValueId {
        self.values.get(&value).copied().unwrap_or(value)
    }
}

/// Values and variables that got new names.
#[derive(Default)]
struct Renamed {
    values: HashMap<ValueId, ValueId>,
    vars: HashMap<DimId, DimId>,
}

impl Rewrite for Renamed {
    fn form(&self, form: &Form) -> Result<Form, Overflow> {
        form.substitute(&|d| self.vars.get(&d).map(|new| Form::from(*new)))
    }

    fn value(&self, value: ValueId) -> ValueId {
        self.values.get(&value).copied().unwrap_or(value)
    }

    fn bound(&self, var: DimId) -> DimId {
        self.vars.get(&var).copied().unwrap_or(var)
    }
}
