//! Blocks of several warps on one thread.
//!
//! Between two barriers the warps do not depend on each other, so they run one after another: every stretch of
//! statements without a barrier becomes a loop over the warps. A loop or branch with a barrier inside stays outside of
//! those loops, which is sound because all warps take it in the same way. What a warp carries from one stretch to
//! another, values and registers, is kept for it in arrays of the block.
//!
//! `Signal`, `Await` and `Ticket` are done once for a block, so they end a stretch too: what all warps wrote before a
//! signal is written when it is given.

use std::collections::{BTreeMap, BTreeSet};

use systola_ir::form::{Cond, Form, Poly};
use systola_ir::kernel::effects::Scope;
use systola_ir::kernel::visit::{Rewrite, rewrite, walk};
use systola_ir::kernel::{Access, Kernel, Memory, Op, Shape, Shared, Stmt, Value, Var, VarKind};
use systola_ir::{DimId, RegId, Scalar, SharedId, ValueId};

use crate::error::Fault;

/// The kernel as one warp executes it for all of them. The variable of the warp is bound by loops then.
pub fn fission(kernel: &Kernel) -> Result<Kernel, Fault> {
    let warp = kernel
        .vars_where(|k| matches!(k, VarKind::Warp))
        .next()
        .unwrap_or_else(|| DimId::from(kernel.vars.len()));
    let mut parts = Vec::new();
    let mut regions = 0;
    cut(&kernel.body, warp, &mut regions, &mut parts)?;
    let mut split = Split {
        kernel: kernel.clone(),
        warp,
        lane: DimId(0),
        homes: BTreeMap::new(),
        kept_values: BTreeMap::new(),
        kept_regs: BTreeMap::new(),
    };
    let var = |name: &str, kind| Var {
        name: name.to_string(),
        kind,
    };
    if warp.index() == split.kernel.vars.len() {
        split.kernel.vars.push(var("warp", VarKind::Loop));
    }
    split.kernel.vars[warp.index()].kind = VarKind::Loop;
    split.lane = kernel.lane().unwrap_or_else(|| {
        split.kernel.vars.push(var("lane", VarKind::Lane));
        DimId::from(split.kernel.vars.len() - 1)
    });
    let mut found = Found::default();
    look(&parts, false, &mut found);
    split.keep(&found);
    split.kernel.body = split.join(&parts)?;
    split.kernel.warps = 1;
    Ok(split.kernel)
}

/// A kernel, cut at what its warps do together.
enum Part {
    /// Statements that each warp does for itself.
    Region(usize, Vec<Stmt>),
    /// Once for the block.
    Once(Stmt),
    /// A loop or branch around parts: the statement without what is inside of it, and the parts.
    Around(Stmt, Vec<Vec<Part>>),
}

/// Do all warps come to it together?
fn is_common(stmt: &Stmt) -> bool {
    stmt.effects().orders == Some(Scope::Block)
}

fn cut(
    stmts: &[Stmt],
    warp: DimId,
    regions: &mut usize,
    parts: &mut Vec<Part>,
) -> Result<(), Fault> {
    let mut own: Vec<Stmt> = Vec::new();
    let close = |own: &mut Vec<Stmt>, parts: &mut Vec<Part>, regions: &mut usize| {
        if !own.is_empty() {
            parts.push(Part::Region(*regions, std::mem::take(own)));
            *regions += 1;
        }
    };
    for stmt in stmts {
        let mut common = false;
        walk(std::slice::from_ref(stmt), &mut |s| common |= is_common(s));
        if !common {
            own.push(stmt.clone());
            continue;
        }
        close(&mut own, parts, regions);
        // Bounds, conditions and flags, on which all warps must agree.
        if stmt.forms().iter().any(|f| f.dims().contains(&warp)) {
            return Err(Fault::unsupported(
                "a barrier or flag under a condition that differs between warps",
            ));
        }
        if is_common(stmt) {
            parts.push(Part::Once(stmt.clone()));
            continue;
        }
        let mut inside = Vec::new();
        for list in stmt.bodies() {
            let mut inner = Vec::new();
            cut(list, warp, regions, &mut inner)?;
            inside.push(inner);
        }
        parts.push(Part::Around(with_children(stmt, Vec::new()), inside));
    }
    close(&mut own, parts, regions);
    Ok(())
}

/// The statement with other lists inside of it.
fn with_children(stmt: &Stmt, lists: Vec<Vec<Stmt>>) -> Stmt {
    let mut lists = lists.into_iter();
    let mut stmt = stmt.clone();
    for body in stmt.bodies_mut() {
        *body = lists.next().unwrap_or_default();
    }
    stmt
}

/// Which regions assign, read and touch what.
#[derive(Default)]
struct Found {
    assigned_in: BTreeMap<ValueId, usize>,
    read_in: BTreeMap<ValueId, BTreeSet<usize>>,
    touched_in: BTreeMap<RegId, BTreeSet<usize>>,
    /// Registers that a region in a loop over regions touches.
    repeated: BTreeSet<RegId>,
    /// Operations that a region can do again for itself.
    cheap: BTreeMap<ValueId, Op>,
}

fn look(parts: &[Part], in_loop: bool, found: &mut Found) {
    for part in parts {
        match part {
            Part::Once(_) => {}
            Part::Around(stmt, inside) => {
                let in_loop = in_loop || matches!(stmt, Stmt::For { .. });
                for parts in inside {
                    look(parts, in_loop, found);
                }
            }
            Part::Region(region, stmts) => walk(stmts, &mut |stmt| {
                for v in stmt.defs() {
                    found.assigned_in.insert(v, *region);
                }
                for v in stmt.uses() {
                    found.read_in.entry(v).or_default().insert(*region);
                }
                if let Stmt::Set(reg, _) | Stmt::Let(_, Op::Get(reg)) = stmt {
                    found.touched_in.entry(*reg).or_default().insert(*region);
                    if in_loop {
                        found.repeated.insert(*reg);
                    }
                }
                if let Stmt::Let(v, op @ (Op::Lit(_) | Op::Index(_))) = stmt {
                    found.cheap.insert(*v, op.clone());
                }
            }),
        }
    }
}

/// How a region gets a value of an earlier one.
#[derive(Clone)]
enum Home {
    Kept(SharedId),
    Again(Op),
}

struct Split {
    kernel: Kernel,
    warp: DimId,
    lane: DimId,
    homes: BTreeMap<ValueId, (usize, Home)>,
    kept_values: BTreeMap<ValueId, SharedId>,
    kept_regs: BTreeMap<RegId, SharedId>,
}

impl Split {
    /// Makes the arrays for what crosses from region to region.
    fn keep(&mut self, found: &Found) {
        for (value, region) in &found.assigned_in {
            let readers = found.read_in.get(value);
            if readers.is_none_or(|readers| readers.iter().all(|r| r == region)) {
                continue;
            }
            let home = match found.cheap.get(value) {
                Some(op) => Home::Again(op.clone()),
                None => {
                    let v = self.kernel.values[value.index()].clone();
                    let array = self.array(&v.name, v.ty, v.shape);
                    self.kept_values.insert(*value, array);
                    Home::Kept(array)
                }
            };
            self.homes.insert(*value, (*region, home));
        }
        for (reg, regions) in &found.touched_in {
            if regions.len() > 1 || found.repeated.contains(reg) {
                let r = self.kernel.regs[reg.index()].clone();
                let array = self.array(&r.name, r.ty, r.shape);
                self.kept_regs.insert(*reg, array);
            }
        }
    }

    fn array(&mut self, name: &str, ty: Scalar, shape: Shape) -> SharedId {
        let mut extents = vec![Poly::constant(self.kernel.warps.into())];
        if shape == Shape::Varying {
            extents.push(Poly::constant(self.kernel.lanes.into()));
        }
        self.kernel.shared.push(Shared {
            name: format!("{name}_of_warp"),
            ty,
            extents,
        });
        SharedId::from(self.kernel.shared.len() - 1)
    }

    /// The element of an array that belongs to this warp and lane.
    fn own(&self, array: SharedId, shape: Shape) -> Access {
        let mut index = vec![Form::from(self.warp)];
        if shape == Shape::Varying {
            index.push(if self.kernel.lanes == 1 {
                Form::zero()
            } else {
                Form::from(self.lane)
            });
        }
        Access {
            memory: Memory::Shared(array),
            index,
            when: Cond::TRUE,
        }
    }

    fn join(&mut self, parts: &[Part]) -> Result<Vec<Stmt>, Fault> {
        let mut stmts = Vec::new();
        let warps = Form::from(i128::from(self.kernel.warps));
        for part in parts {
            match part {
                Part::Once(Stmt::Barrier) => {}
                Part::Once(stmt) => stmts.push(stmt.clone()),
                Part::Around(stmt, inside) => {
                    let lists = inside.iter().map(|parts| self.join(parts));
                    let lists = lists.collect::<Result<_, _>>()?;
                    stmts.push(with_children(stmt, lists));
                }
                Part::Region(region, own) => {
                    let body = self.region(*region, own)?;
                    stmts.push(Stmt::For {
                        var: self.warp,
                        lo: vec![Form::zero()],
                        hi: vec![warps.clone()],
                        step: 1,
                        body,
                    });
                }
            }
        }
        Ok(stmts)
    }

    /// A region for one warp: what it reads of earlier ones is fetched in front.
    fn region(&mut self, region: usize, own: &[Stmt]) -> Result<Vec<Stmt>, Fault> {
        let mut read = BTreeSet::new();
        walk(own, &mut |stmt| read.extend(stmt.uses()));
        let mut stmts = Vec::new();
        let mut renamed = BTreeMap::new();
        for value in read {
            let Some((from, home)) = self.homes.get(&value).cloned() else {
                continue;
            };
            if from == region {
                continue;
            }
            let v: Value = self.kernel.values[value.index()].clone();
            let op = match home {
                Home::Again(op) => op,
                Home::Kept(array) => Op::Load {
                    from: self.own(array, v.shape),
                    otherwise: None,
                },
            };
            let fetched = self.fresh(v);
            renamed.insert(value, fetched);
            stmts.push(Stmt::Let(fetched, op));
        }
        let own = rewrite(own, &Renamed(renamed))?;
        stmts.extend(self.at_home(own));
        Ok(stmts)
    }

    fn fresh(&mut self, value: Value) -> ValueId {
        self.kernel.values.push(value);
        ValueId::from(self.kernel.values.len() - 1)
    }

    /// The statements with what is kept for the warp read from its arrays and written to them.
    fn at_home(&self, stmts: Vec<Stmt>) -> Vec<Stmt> {
        let mut made = Vec::with_capacity(stmts.len());
        for mut stmt in stmts {
            for body in stmt.bodies_mut() {
                *body = self.at_home(std::mem::take(body));
            }
            if let Stmt::Let(value, Op::Get(reg)) = stmt
                && let Some(from) = self.home_of(reg)
            {
                let otherwise = None;
                stmt = Stmt::Let(value, Op::Load { from, otherwise });
            }
            if let Stmt::Set(reg, value) = stmt
                && let Some(to) = self.home_of(reg)
            {
                stmt = Stmt::Store { to, value };
            }
            let values = stmt.defs();
            made.push(stmt);
            for value in values {
                if let Some(array) = self.kept_values.get(&value) {
                    let to = self.own(*array, self.kernel.values[value.index()].shape);
                    made.push(Stmt::Store { to, value });
                }
            }
        }
        made
    }

    /// Where a register is kept for this warp and lane, if it is.
    fn home_of(&self, reg: RegId) -> Option<Access> {
        let array = self.kept_regs.get(&reg)?;
        Some(self.own(*array, self.kernel.regs[reg.index()].shape))
    }
}

/// Values under other names.
struct Renamed(BTreeMap<ValueId, ValueId>);

impl Rewrite for Renamed {
    fn value(&self, value: ValueId) -> ValueId {
        self.0.get(&value).copied().unwrap_or(value)
    }
}
