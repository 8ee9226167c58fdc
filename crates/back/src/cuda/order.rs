//! Where the lanes of a warp have to wait for each other.
//!
//! A kernel orders the accesses of all lanes statement by statement; threads of a warp keep that order only where
//! they are told to. Two accesses of different lanes to one element, at least one of them a store, need a meeting
//! in between. Accesses that provably stay apart, such as those of each lane to its own elements, need none.

use std::collections::{BTreeMap, BTreeSet};

use systola_ir::DimId;
use systola_ir::form::Form;
use systola_ir::kernel::visit::walk;
use systola_ir::kernel::{Access, Kernel, Memory, Op, Stmt};

use crate::usage::Usage;

/// The statements that a meeting comes before.
#[derive(Clone, Debug, Default)]
pub struct Meetings(BTreeSet<*const Stmt>);

impl Meetings {
    pub fn new(kernel: &Kernel, usage: &Usage, mirrored: bool) -> Meetings {
        let mut flow = Flow {
            kernel,
            usage,
            mirrored,
            tracked: tracked(kernel, usage),
            marks: BTreeSet::new(),
        };
        let mut state = State::default();
        flow.stmts(&kernel.body, &mut state);
        Meetings(flow.marks)
    }

    pub fn before(&self, stmt: &Stmt) -> bool {
        self.0.contains(&std::ptr::from_ref(stmt))
    }
}

/// Memories that are both written and read here. What is only written is written once.
fn tracked(kernel: &Kernel, usage: &Usage) -> BTreeSet<Memory> {
    let mut read = BTreeSet::new();
    walk(&kernel.body, &mut |stmt| match stmt {
        Stmt::Let(_, Op::Load { from, .. })
        | Stmt::LoadWide { from, .. }
        | Stmt::Copy { from, .. } => {
            read.insert(from.memory);
        }
        Stmt::Let(_, Op::Lookup { memory, .. }) => {
            read.insert(*memory);
        }
        Stmt::Let(..)
        | Stmt::Set(..)
        | Stmt::Store { .. }
        | Stmt::StoreWide { .. }
        | Stmt::CommitCopies
        | Stmt::WaitCopies { .. }
        | Stmt::For { .. }
        | Stmt::If { .. }
        | Stmt::Barrier
        | Stmt::Signal { .. }
        | Stmt::Await { .. }
        | Stmt::Ticket { .. }
        | Stmt::Comment(_) => {}
    });
    read.intersection(&usage.written).copied().collect()
}

/// An access since the last meeting.
#[derive(Clone, Debug, PartialEq)]
struct Touch {
    /// The index, and how many elements along the last axis. `None`: anywhere.
    place: Option<(Vec<Form>, u32)>,
    writes: bool,
}

/// What was touched since the last meeting.
#[derive(Clone, Debug, Default, PartialEq)]
struct State(BTreeMap<Memory, Vec<Touch>>);

/// More touches of a memory than this are taken to be anywhere.
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

    /// The variable has another value from here on.
    fn forget(&self, var: DimId) -> State {
        let mut state = State::default();
        for (memory, touches) in &self.0 {
            for touch in touches {
                let mentions = |(index, _): &(Vec<Form>, u32)| {
                    index.iter().any(|form| form.dims().contains(&var))
                };
                let place = touch.place.clone().filter(|place| !mentions(place));
                let writes = touch.writes;
                state.add(*memory, Touch { place, writes });
            }
        }
        state
    }
}

struct Flow<'a> {
    kernel: &'a Kernel,
    usage: &'a Usage,
    /// Do several threads stand for one lane?
    mirrored: bool,
    tracked: BTreeSet<Memory>,
    marks: BTreeSet<*const Stmt>,
}

impl Flow<'_> {
    fn stmts(&mut self, stmts: &[Stmt], state: &mut State) {
        for stmt in stmts {
            self.stmt(stmt, state);
        }
    }

    fn stmt(&mut self, stmt: &Stmt, state: &mut State) {
        match stmt {
            Stmt::Let(v, _) if self.usage.reads[v.index()] == 0 => {}
            Stmt::Let(_, Op::Load { from, .. }) => self.touch(stmt, state, from, 1, false),
            Stmt::Let(_, Op::Lookup { memory, .. }) => {
                let touch = Touch {
                    place: None,
                    writes: false,
                };
                self.meet(stmt, state, *memory, touch);
            }
            Stmt::LoadWide { to, from, .. } => {
                self.touch(stmt, state, from, to.len() as u32, false);
            }
            Stmt::Store { to, .. } => self.touch(stmt, state, to, 1, true),
            Stmt::StoreWide { to, values } => {
                self.touch(stmt, state, to, values.len() as u32, true);
            }
            Stmt::Copy {
                to, from, width, ..
            } => {
                self.touch(stmt, state, from, *width, false);
                self.touch(stmt, state, to, *width, true);
            }
            Stmt::For { var, body, .. } => {
                // The end of a turn comes before the next; what is marked stays marked, so that this ends.
                loop {
                    let mut inside = state.clone();
                    let marked = self.marks.len();
                    self.stmts(body, &mut inside);
                    let before = state.clone();
                    state.join(&inside.forget(*var));
                    if *state == before && self.marks.len() == marked {
                        break;
                    }
                }
                *state = state.forget(*var);
            }
            Stmt::If {
                then, otherwise, ..
            } => {
                let mut other = state.clone();
                self.stmts(then, state);
                self.stmts(otherwise, &mut other);
                state.join(&other);
            }
            // All of them end with lanes that have met.
            Stmt::WaitCopies { .. }
            | Stmt::Barrier
            | Stmt::Signal { .. }
            | Stmt::Await { .. }
            | Stmt::Ticket { .. } => *state = State::default(),
            Stmt::Let(..) | Stmt::Set(..) | Stmt::CommitCopies | Stmt::Comment(_) => {}
        }
    }

    fn touch(&mut self, stmt: &Stmt, state: &mut State, access: &Access, width: u32, writes: bool) {
        let place = Some((access.index.clone(), width));
        self.meet(stmt, state, access.memory, Touch { place, writes });
    }

    fn meet(&mut self, stmt: &Stmt, state: &mut State, memory: Memory, touch: Touch) {
        if !self.tracked.contains(&memory) {
            return;
        }
        let known = state.0.get(&memory);
        let clashes = known.is_some_and(|touches| {
            touches
                .iter()
                .any(|t| (t.writes || touch.writes) && self.may_clash(t, &touch))
        });
        let at = std::ptr::from_ref(stmt);
        if clashes || self.marks.contains(&at) {
            self.marks.insert(at);
            *state = State::default();
        }
        state.add(memory, touch);
    }

    /// May different threads of a warp touch one element?
    fn may_clash(&self, a: &Touch, b: &Touch) -> bool {
        let (Some((a, a_width)), Some((b, b_width))) = (&a.place, &b.place) else {
            return true;
        };
        let last = a.len().saturating_sub(1);
        let apart = a.iter().zip(b).enumerate().any(|(axis, (x, y))| {
            let widths = if axis == last {
                (*a_width, *b_width)
            } else {
                (1, 1)
            };
            self.keeps_apart(x, y, widths)
        });
        !apart
    }

    /// Does one axis suffice to keep different threads apart?
    fn keeps_apart(&self, a: &Form, b: &Form, (a_width, b_width): (u32, u32)) -> bool {
        let (mut step, mut distance) = (0, a.sub(b));
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
            distance = a.sub(b);
        }
        let Some(distance) = distance.as_constant() else {
            return false;
        };
        let most = i128::from(self.kernel.lanes) - 1;
        let (before, after) = (-i128::from(b_width) + 1, i128::from(a_width) - 1);
        (-most..=most)
            .filter(|lanes| *lanes != 0 || self.mirrored)
            .all(|lanes| {
                let gap = step * lanes + distance;
                gap + after < 0 || gap + before > 0
            })
    }
}
