//! Synchronises the lanes of a warp where they depend on each other.
//!
//! Before: a kernel orders the accesses of all lanes statement by statement. After: there is a
//! `sync warp` between two accesses of different lanes to one element, if at least one of them is a
//! store. Threads of a warp keep the order only where they are told to. Accesses that provably
//! never overlap, such as those of each lane to its own elements, need none.
//!
//! This runs after all passes that move or change accesses.

use std::collections::{BTreeMap, BTreeSet};

use systola_ir::DimId;
use systola_ir::form::{Cond, Form};
use systola_ir::kernel::visit::walk;
use systola_ir::kernel::{Access, BufferKind, Kernel, Memory, Op, Program, Stmt};

/// The kernel with warp synchronisation. `threads` is the number of threads that run a warp; if
/// that is more than its lanes, several threads stand for one lane.
pub fn sync_warps(mut kernel: Kernel, threads: u32, rewritten: &Rewritten) -> Kernel {
    let points = SyncPoints::of(&kernel, threads > kernel.lanes, rewritten);
    let body = std::mem::take(&mut kernel.body);
    kernel.body = points.insert(body, &mut 0);
    kernel
}

/// The buffers of a program whose elements may be written more than once, which those are whose
/// contents its own kernels read: outputs that are storages, and what a kernel reads and writes.
#[derive(Clone, Debug, Default)]
pub struct Rewritten(BTreeSet<Memory>);

impl Rewritten {
    pub fn of(program: &Program) -> Rewritten {
        let mut rewritten = BTreeSet::new();
        for kernel in &program.kernels {
            let (read, written) = accessed(kernel);
            let is_output = |memory: &&Memory| {
                let buffer = memory.buffer().map(|b| &program.buffers[b.index()].kind);
                matches!(buffer, Some(BufferKind::Output { .. }))
            };
            rewritten.extend(read.iter().filter(is_output));
            rewritten.extend(read.intersection(&written));
        }
        Rewritten(rewritten)
    }
}

/// The statements before which lanes synchronise, by number: outer statements are numbered first.
#[derive(Clone, Debug, Default)]
pub struct SyncPoints(BTreeSet<usize>);

impl SyncPoints {
    /// `mirrored`: do several threads stand for one lane?
    pub fn of(kernel: &Kernel, mirrored: bool, rewritten: &Rewritten) -> SyncPoints {
        let mut flow = Flow {
            kernel,
            mirrored,
            tracked: tracked(kernel, rewritten),
            marks: BTreeSet::new(),
            next: 0,
        };
        let mut state = State::default();
        flow.stmts(&kernel.body, &mut state);
        SyncPoints(flow.marks)
    }

    /// Do lanes synchronise before the statement with this number?
    pub fn before(&self, number: usize) -> bool {
        self.0.contains(&number)
    }

    fn insert(&self, stmts: Vec<Stmt>, next: &mut usize) -> Vec<Stmt> {
        let mut made = Vec::with_capacity(stmts.len());
        for mut stmt in stmts {
            if self.before(*next) {
                made.push(Stmt::SyncWarp);
            }
            *next += 1;
            for body in stmt.bodies_mut() {
                *body = self.insert(std::mem::take(body), next);
            }
            made.push(stmt);
        }
        made
    }
}

/// Memories that are both written and read here, or written and rewritten anywhere. An element of
/// another memory that is only written is written once.
fn tracked(kernel: &Kernel, rewritten: &Rewritten) -> BTreeSet<Memory> {
    let (read, written) = accessed(kernel);
    let again = |memory: &&Memory| read.contains(memory) || rewritten.0.contains(memory);
    written.iter().filter(again).copied().collect()
}

/// The memories that a kernel reads, and those that it writes.
fn accessed(kernel: &Kernel) -> (BTreeSet<Memory>, BTreeSet<Memory>) {
    let (mut read, mut written) = (BTreeSet::new(), BTreeSet::new());
    walk(&kernel.body, &mut |stmt| {
        let does = stmt.effects();
        read.extend(does.reads());
        written.extend(does.writes());
        written.extend(does.flags().map(|flag| flag.memory));
    });
    (read, written)
}

/// An access since the last synchronisation.
#[derive(Clone, Debug, PartialEq)]
struct Touch {
    /// `None` means any element.
    place: Option<Place>,
    writes: bool,
}

#[derive(Clone, Debug, PartialEq)]
struct Place {
    /// One for each axis.
    index: Vec<Coordinate>,
    /// Elements along the last axis.
    width: u32,
}

/// The form plus any multiple of `give`, since variables in it may have changed; 0 means exactly
/// the form.
#[derive(Clone, Debug, PartialEq)]
struct Coordinate {
    form: Form,
    give: i128,
}

impl Coordinate {
    /// The coordinate after the variable has advanced by a multiple of the step; `None` if it can
    /// be anything.
    fn after(&self, var: DimId, step: i128) -> Option<Coordinate> {
        let coefficient = self.form.coefficient(var);
        let own = Form::from(var).scale(&coefficient).ok()?;
        if self.form.sub(&own).dims().contains(&var) {
            return None;
        }
        let moved = coefficient.as_constant()?.checked_mul(step)?;
        Some(Coordinate {
            form: self.form.clone(),
            give: gcd(self.give, moved),
        })
    }
}

/// The accesses since the last synchronisation.
#[derive(Clone, Debug, Default, PartialEq)]
struct State(BTreeMap<Memory, Vec<Touch>>);

/// With more accesses of a memory than this, they count as accesses of any element.
const MOST_TOUCHES: usize = 48;

impl State {
    fn add(&mut self, memory: Memory, touch: Touch) {
        let touches = self.0.entry(memory).or_default();
        if touches.contains(&touch) {
            return;
        }
        touches.push(touch);
        if touches.len() > MOST_TOUCHES {
            let writes = touches.iter().any(|t| t.writes);
            *touches = vec![Touch {
                place: None,
                writes,
            }];
        }
    }

    fn join(&mut self, other: &State) {
        for (memory, touches) in &other.0 {
            for touch in touches {
                self.add(*memory, touch.clone());
            }
        }
    }

    /// The variable changes from here on, by some multiple of the step.
    fn forget(&self, var: DimId, step: i128) -> State {
        let mut state = State::default();
        for (memory, touches) in &self.0 {
            for touch in touches {
                let place = touch.place.as_ref().and_then(|place| {
                    let index = place.index.iter().map(|c| c.after(var, step));
                    Some(Place {
                        index: index.collect::<Option<_>>()?,
                        width: place.width,
                    })
                });
                let writes = touch.writes;
                state.add(*memory, Touch { place, writes });
            }
        }
        state
    }
}

struct Flow<'a> {
    kernel: &'a Kernel,
    /// Do several threads stand for one lane?
    mirrored: bool,
    tracked: BTreeSet<Memory>,
    marks: BTreeSet<usize>,
    /// The number of the next statement.
    next: usize,
}

impl Flow<'_> {
    fn stmts(&mut self, stmts: &[Stmt], state: &mut State) {
        for stmt in stmts {
            self.stmt(stmt, state);
        }
    }

    fn stmt(&mut self, stmt: &Stmt, state: &mut State) {
        let at = self.next;
        self.next += 1;
        match stmt {
            Stmt::Let(_, Op::Load { from, .. }) => self.touch(at, state, from, 1, false),
            Stmt::Let(_, Op::Lookup { memory, .. }) => {
                let touch = Touch {
                    place: None,
                    writes: false,
                };
                self.order(at, state, *memory, touch);
            }
            Stmt::LoadWide { to, from, .. } => {
                self.touch(at, state, from, to.len() as u32, false);
            }
            Stmt::Store { to, .. } => self.touch(at, state, to, 1, true),
            Stmt::StoreWide { to, values } => {
                self.touch(at, state, to, values.len() as u32, true);
            }
            Stmt::Copy {
                to, from, width, ..
            } => {
                self.touch(at, state, from, *width, false);
                self.touch(at, state, to, *width, true);
            }
            Stmt::For {
                var,
                lo,
                step,
                body,
                ..
            } => {
                // From another start value it does not take the same steps.
                let step = match &lo[..] {
                    [only] if only.as_constant().is_some() => *step,
                    _ => 1,
                };
                // The end of an iteration comes before the next iteration; marks are never removed,
                // so this terminates.
                let first = self.next;
                loop {
                    self.next = first;
                    let mut inside = state.clone();
                    let marked = self.marks.len();
                    self.stmts(body, &mut inside);
                    let before = state.clone();
                    state.join(&inside.forget(*var, step));
                    if *state == before && self.marks.len() == marked {
                        break;
                    }
                }
                *state = state.forget(*var, step);
            }
            Stmt::If {
                then, otherwise, ..
            } => {
                let mut other = state.clone();
                self.stmts(then, state);
                self.stmts(otherwise, &mut other);
                state.join(&other);
            }
            // These run in some iterations only.
            Stmt::Signal { flag } | Stmt::Await { flag, .. } if flag.when != Cond::TRUE => {}
            // All lanes are synchronised after these.
            Stmt::WaitCopies { .. }
            | Stmt::SyncWarp
            | Stmt::Barrier
            | Stmt::Signal { .. }
            | Stmt::Await { .. }
            | Stmt::DynamicBlock { .. } => *state = State::default(),
            // A chain is no memory that anything else accesses; its operation only computes.
            Stmt::LookBack(look) => self.stmts(&look.joins.body, state),
            Stmt::Let(..)
            | Stmt::Set(..)
            | Stmt::Prefetch { .. }
            | Stmt::CommitCopies
            | Stmt::Fault { .. }
            | Stmt::Comment(_) => {}
        }
    }

    fn touch(&mut self, at: usize, state: &mut State, access: &Access, width: u32, writes: bool) {
        let index = access.index.iter().map(|form| Coordinate {
            form: form.clone(),
            give: 0,
        });
        let place = Some(Place {
            index: index.collect(),
            width,
        });
        self.order(at, state, access.memory, Touch { place, writes });
    }

    /// Synchronises before an access that may conflict with an earlier one.
    fn order(&mut self, at: usize, state: &mut State, memory: Memory, touch: Touch) {
        if !self.tracked.contains(&memory) {
            return;
        }
        let known = state.0.get(&memory);
        let clashes = known.is_some_and(|touches| {
            touches
                .iter()
                .any(|t| (t.writes || touch.writes) && self.may_clash(t, &touch))
        });
        if clashes || self.marks.contains(&at) {
            self.marks.insert(at);
            *state = State::default();
        }
        state.add(memory, touch);
    }

    /// May different threads of a warp touch one element?
    fn may_clash(&self, a: &Touch, b: &Touch) -> bool {
        let (Some(a), Some(b)) = (&a.place, &b.place) else {
            return true;
        };
        let last = a.index.len().saturating_sub(1);
        let axes = a.index.iter().zip(&b.index).enumerate();
        let separate = axes.into_iter().any(|(axis, (x, y))| {
            let widths = if axis == last {
                (a.width, b.width)
            } else {
                (1, 1)
            };
            self.separates(x, y, widths)
        });
        !separate
    }

    /// Does this axis alone prove that different threads touch different elements?
    fn separates(&self, a: &Coordinate, b: &Coordinate, widths: (u32, u32)) -> bool {
        let give = gcd(a.give, b.give);
        let (a, b) = (&a.form, &b.form);
        let uniform = |form: &Form| self.kernel.lane().is_none_or(|l| !form.dims().contains(&l));
        if give == 0 && widths == (1, 1) && uniform(a) && uniform(b) && a.differs_from(b) {
            return true;
        }
        let mut step = 0;
        if let Some(lane) = self.kernel.lane() {
            let Some(c) = a.coefficient(lane).as_constant() else {
                return false;
            };
            let linear = |form: &Form| {
                let own = Form::from(lane).scale(&form.coefficient(lane));
                own.is_ok_and(|own| !form.sub(&own).dims().contains(&lane))
            };
            if a.coefficient(lane) != b.coefficient(lane) || !linear(a) || !linear(b) {
                return false;
            }
            step = c;
        }
        let Some(distance) = a.sub(b).as_constant() else {
            return false;
        };
        let most = i128::from(self.kernel.lanes) - 1;
        let (before, after) = (-i128::from(widths.1) + 1, i128::from(widths.0) - 1);
        (-most..=most)
            .filter(|lanes| *lanes != 0 || self.mirrored)
            .all(|lanes| {
                let gap = step * lanes + distance;
                (before..=after).all(|more| match give {
                    0 => gap + more != 0,
                    give => (gap + more) % give != 0,
                })
            })
    }
}

fn gcd(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.abs(), b.abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use systola_ir::SharedId;
    use systola_ir::form::Poly;
    use systola_ir::kernel::{Shape, Shared, Value, Var, VarKind};
    use systola_ir::{Scalar, ValueId};

    use super::*;

    const LANE: DimId = DimId(0);
    const K: DimId = DimId(1);

    /// s[store] = v; v = s[load], in a loop over k = 0, step, …
    fn waits(store: &Form, load: &Form, step: i128, lanes: u32) -> usize {
        waits_after(store, load, step, lanes, None)
    }

    /// The same with a statement at the end of each iteration.
    fn waits_after(store: &Form, load: &Form, step: i128, lanes: u32, last: Option<Stmt>) -> usize {
        let memory = Memory::Shared(SharedId(0));
        let otherwise = None;
        let from = Access::new(memory, vec![load.clone()]);
        let mut body = vec![
            Stmt::Store {
                to: Access::new(memory, vec![store.clone()]),
                value: ValueId(0),
            },
            Stmt::Let(ValueId(1), Op::Load { from, otherwise }),
            // Something has to read it.
            Stmt::Set(systola_ir::RegId(0), ValueId(1)),
            Stmt::Let(ValueId(2), Op::Get(systola_ir::RegId(0))),
            Stmt::Store {
                to: Access::new(Memory::Shared(SharedId(1)), vec![Form::zero()]),
                value: ValueId(2),
            },
        ];
        body.extend(last);
        in_a_loop(body, step, lanes, &Rewritten::default())
    }

    /// How often the lanes synchronise.
    fn in_a_loop(body: Vec<Stmt>, step: i128, lanes: u32, rewritten: &Rewritten) -> usize {
        let var = |name: &str, kind| Var {
            name: name.to_string(),
            kind,
        };
        let value = |_| Value {
            name: "v".to_string(),
            ty: Scalar::F32,
            shape: Shape::Varying,
        };
        let shared = |name: &str| Shared {
            name: name.to_string(),
            ty: Scalar::F32,
            extents: vec![Poly::constant(4096)],
        };
        let kernel = Kernel {
            hints: Default::default(),
            name: "k".to_string(),
            lanes,
            warps: 1,
            vars: vec![var("lane", VarKind::Lane), var("k", VarKind::Loop)],
            shared: vec![shared("s"), shared("t")],
            regs: vec![systola_ir::kernel::Reg {
                name: "r".to_string(),
                ty: Scalar::F32,
                shape: Shape::Varying,
            }],
            values: (0..3).map(value).collect(),
            body: vec![Stmt::For {
                var: K,
                lo: vec![Form::zero()],
                hi: vec![Form::from(1024)],
                step,
                body,
            }],
        };
        SyncPoints::of(&kernel, lanes < 32, rewritten).0.len()
    }

    #[test]
    fn lanes_wait_between_stores_to_what_others_read_again() {
        let memory = Memory::Shared(SharedId(0));
        let store = |index: Form| Stmt::Store {
            to: Access::new(memory, vec![index]),
            value: ValueId(0),
        };
        let own = Form::from(LANE).add(&Form::from(K));
        // In the next iteration another lane stores to the same element.
        let body = vec![store(own.clone())];
        let rewritten = Rewritten([memory].into());
        assert_eq!(in_a_loop(body.clone(), 1, 32, &Rewritten::default()), 0);
        assert_eq!(in_a_loop(body.clone(), 1, 32, &rewritten), 1);
        assert_eq!(in_a_loop(body, 32, 32, &rewritten), 0);
    }

    #[test]
    fn lanes_wait_only_for_others() {
        let (lane, k) = (Form::from(LANE), Form::from(K));
        let own = lane.add(&k);
        // Each lane accesses its own elements, in all iterations.
        assert_eq!(waits(&own, &own, 32, 32), 0);
        // With a smaller step, elements of one lane were another lane's in an earlier iteration.
        assert_eq!(waits(&own, &own, 16, 32), 1);
        // The neighbour's element, before it is read and before it is written again.
        assert_eq!(waits(&own, &own.plus(1), 32, 32), 2);
        // A signal in each iteration synchronises all lanes; one in some iterations does not.
        let signal = |when: Cond| {
            let flag = Access::new(Memory::Global(systola_ir::BufferId(0)), Vec::new());
            let flag = Access { when, ..flag };
            Some(Stmt::Signal { flag })
        };
        let next = own.plus(1);
        assert_eq!(waits_after(&own, &next, 32, 32, signal(Cond::TRUE)), 1);
        let some = Cond::cmp(systola_ir::Rel::Eq, k.modulo(64), 0);
        assert_eq!(waits_after(&own, &next, 32, 32, signal(some)), 2);
        // Far enough away, in other iterations too.
        let far = lane.add(&k.scale(&Poly::constant(2)).unwrap());
        assert_eq!(waits(&far, &far.plus(32), 32, 32), 0);
        // Several threads stand for one lane.
        assert!(waits(&own, &own, 32, 8) > 0);
    }
}
