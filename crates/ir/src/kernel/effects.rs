//! The effects of an operation or a statement: whether it computes, which memory and registers it
//! reads and writes, and for which threads it orders memory. The bodies of a statement are not
//! included.

use crate::id::{BufferId, RegId, ValueId};
use crate::kernel::{Access, BlockChain, Kernel, Memory, Op, Shape, Stmt};

/// The effects of one statement or operation; any number of the fields may be set.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Effects<'a> {
    /// It computes a value from others.
    pub computes: bool,
    /// A lane gets a value from another lane.
    pub crosses_lanes: bool,
    /// The access that is read by position, and the number of consecutive elements along the last
    /// axis.
    pub read: Option<(&'a Access, usize)>,
    /// The memory that is read at computed indices.
    pub lookup: Option<Memory>,
    /// The access that is written, and the number of consecutive elements along the last axis.
    pub write: Option<(&'a Access, usize)>,
    /// The access that is prefetched.
    pub prefetch: Option<&'a Access>,
    /// The flag or counter that is read and written.
    pub flag: Option<&'a Access>,
    /// The chains of blocks in which something is published and read.
    pub chains: &'a [BlockChain],
    /// The buffer in which a fault is recorded.
    pub fault: Option<BufferId>,
    pub get: Option<RegId>,
    pub set: Option<RegId>,
    /// The threads whose earlier writes may be visible after it.
    pub orders: Option<Scope>,
}

/// The threads that synchronise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The lanes of a warp.
    Warp,
    /// All warps of the block.
    Block,
}

impl<'a> Effects<'a> {
    /// The memory whose elements are loaded or copied; flags are not counted.
    pub fn reads(&self) -> Option<Memory> {
        self.lookup.or(self.read.map(|(from, _)| from.memory))
    }

    /// The memory that is stored to; flags are not counted.
    pub fn writes(&self) -> Option<Memory> {
        self.write.map(|(to, _)| to.memory)
    }

    /// All accesses by position, reads before writes.
    fn accesses(&self) -> impl Iterator<Item = &'a Access> {
        let read = self.read.into_iter().map(|(from, _)| from);
        let write = self.write.into_iter().map(|(to, _)| to);
        let one = read.chain(write).chain(self.prefetch);
        one.chain(self.flags())
    }

    /// What it reads and writes of memory that blocks share while they run.
    pub fn flags(&self) -> impl Iterator<Item = &'a Access> + use<'a> {
        let chains = self.chains.iter().map(|chain| &chain.at);
        self.flag.into_iter().chain(chains)
    }
}

impl Memory {
    /// The buffer, if the array is in global memory.
    pub fn buffer(self) -> Option<BufferId> {
        match self {
            Memory::Global(buffer) => Some(buffer),
            Memory::Shared(_) => None,
        }
    }
}

impl Op {
    pub fn effects(&self) -> Effects<'_> {
        let none = Effects::default();
        match self {
            Op::Lit(_) | Op::Index(_) => none,
            Op::Get(reg) => Effects {
                get: Some(*reg),
                ..none
            },
            Op::Unary(..)
            | Op::Binary(..)
            | Op::Cast(_)
            | Op::Select { .. }
            | Op::Choose { .. } => Effects {
                computes: true,
                ..none
            },
            Op::Shuffle { .. } | Op::LaneShift { .. } => Effects {
                computes: true,
                crosses_lanes: true,
                ..none
            },
            Op::Load { from, .. } => Effects {
                read: Some((from, 1)),
                ..none
            },
            Op::Lookup { memory, .. } => Effects {
                lookup: Some(*memory),
                ..none
            },
        }
    }

    /// The access by position, if there is one.
    pub fn access(&self) -> Option<&Access> {
        self.effects().read.map(|(from, _)| from)
    }
}

impl Stmt {
    pub fn effects(&self) -> Effects<'_> {
        let none = Effects::default();
        match self {
            Stmt::Let(_, op) => op.effects(),
            Stmt::Set(reg, _) => Effects {
                set: Some(*reg),
                ..none
            },
            Stmt::LoadWide { to, from, .. } => Effects {
                read: Some((from, to.len())),
                ..none
            },
            Stmt::Store { to, .. } => Effects {
                write: Some((to, 1)),
                ..none
            },
            Stmt::StoreWide { to, values } => Effects {
                write: Some((to, values.len())),
                ..none
            },
            Stmt::Prefetch { at, .. } => Effects {
                prefetch: Some(at),
                ..none
            },
            Stmt::Copy {
                to, from, width, ..
            } => Effects {
                read: Some((from, *width as usize)),
                write: Some((to, *width as usize)),
                ..none
            },
            Stmt::WaitCopies { .. } | Stmt::SyncWarp => Effects {
                orders: Some(Scope::Warp),
                ..none
            },
            Stmt::Barrier => Effects {
                orders: Some(Scope::Block),
                ..none
            },
            Stmt::LookBack(look) => Effects {
                chains: &look.chains,
                ..none
            },
            Stmt::Signal { flag: access }
            | Stmt::Await { flag: access, .. }
            | Stmt::DynamicBlock {
                counter: access, ..
            } => Effects {
                flag: Some(access),
                orders: Some(Scope::Block),
                ..none
            },
            Stmt::Fault { faults, .. } => Effects {
                fault: Some(*faults),
                ..none
            },
            Stmt::CommitCopies | Stmt::For { .. } | Stmt::If { .. } | Stmt::Comment(_) => none,
        }
    }

    /// The load of values from global memory, and the number of consecutive elements.
    pub fn global_load(&self) -> Option<(&Access, usize)> {
        let does = self.effects();
        let is_copy = does.write.is_some();
        let load = does.read.filter(|_| !is_copy);
        load.filter(|(from, _)| from.memory.buffer().is_some())
    }

    /// The accesses of the statement itself, reads before writes.
    pub fn accesses(&self) -> Vec<&Access> {
        self.effects().accesses().collect()
    }

    /// Like [`Stmt::accesses`].
    pub fn accesses_mut(&mut self) -> Vec<&mut Access> {
        match self {
            Stmt::Let(_, Op::Load { from, .. }) | Stmt::LoadWide { from, .. } => vec![from],
            Stmt::Store { to, .. } | Stmt::StoreWide { to, .. } => vec![to],
            Stmt::Prefetch { at, .. } => vec![at],
            Stmt::Copy { to, from, .. } => vec![from, to],
            Stmt::Signal { flag } | Stmt::Await { flag, .. } => vec![flag],
            Stmt::DynamicBlock { counter, .. } => vec![counter],
            Stmt::LookBack(look) => look.chains.iter_mut().map(|chain| &mut chain.at).collect(),
            Stmt::Let(..)
            | Stmt::Set(..)
            | Stmt::CommitCopies
            | Stmt::WaitCopies { .. }
            | Stmt::For { .. }
            | Stmt::If { .. }
            | Stmt::Barrier
            | Stmt::SyncWarp
            | Stmt::Fault { .. }
            | Stmt::Comment(_) => Vec::new(),
        }
    }
}

impl Kernel {
    /// Does every lane compute its own value in this statement?
    pub fn is_work(&self, stmt: &Stmt) -> bool {
        let own = |value: &ValueId| self.values[value.index()].shape == Shape::Varying;
        matches!(stmt, Stmt::Let(value, op) if op.effects().computes && own(value))
    }
}
