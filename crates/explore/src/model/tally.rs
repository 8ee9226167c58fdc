//! What is counted: amounts of work, as numbers that can be weighted.

use std::ops::{Index, IndexMut};

use systola_interp::kernel::Counts;

macro_rules! quantities {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// One kind of work. The first are those that the kernel interpreter counts; the others are what machines tell apart. Unless
        /// it says otherwise, one is one statement executed by one warp.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Quantity {
            $($(#[$doc])* $name,)*
        }

        impl Quantity {
            pub const ALL: &[Quantity] = &[$(Quantity::$name,)*];
        }
    };
}

quantities! {
    Launches,
    Blocks,
    Arithmetic,
    Fusible,
    Index,
    Shuffles,
    Slides,
    Loads,
    Stores,
    Lookups,
    Copies,
    Barriers,
    Flags,
    GlobalSectors,
    GlobalBytes,
    SharedWavefronts,
    BankConflicts,
    /// Additions, multiplications and both at once, of floats up to 32 bits; in vectors, where the machine has them.
    FloatOps,
    /// The same of 64 bits.
    DoubleOps,
    /// Additions, subtractions and shifts of integers.
    IntOps,
    /// Products of integers.
    IntProducts,
    /// Minima, comparisons, choices, logic and conversions.
    Choices,
    /// Quotients and square roots.
    Divides,
    /// Elements whose function is called: exponentials, logarithms, powers, and quotients of integers.
    Calls,
    /// Vectors or words whose lanes move: slides and shuffles.
    Moves,
    /// Operations on what is the same in all lanes.
    UniformOps,
    /// Loads of one element for all lanes.
    UniformLoads,
    /// Those of them that read constant memory, where the machine has it.
    ConstantLoads,
    /// Vectors that are loaded whole.
    VectorLoads,
    /// Those of them that lie in two lines of 64 bytes.
    SplitLoads,
    /// Elements that are loaded one by one.
    GatheredElements,
    VectorStores,
    SplitStores,
    /// Elements that are stored one by one.
    ScatteredElements,
    /// Instructions that find out in which lanes a predicate holds.
    Masks,
    /// Accesses to global memory that are not to constant memory.
    GlobalAccesses,
    /// Passes through the banks of the first cache of a GPU.
    GlobalWavefronts,
    /// Bytes that are stored to global memory, and sectors that accesses store to, whole or in part.
    StoredBytes,
    StoredSectors,
    /// Words of 4 bytes that lanes could have stored there, and those that they did.
    StoreLanes,
    StoredLanes,
    /// Turns of loops, and conditions decided.
    Branches,
}

/// An amount of each quantity.
#[derive(Clone, Debug, PartialEq)]
pub struct Tally([f64; Quantity::ALL.len()]);

impl Default for Tally {
    fn default() -> Self {
        Tally([0.0; Quantity::ALL.len()])
    }
}

impl Index<Quantity> for Tally {
    type Output = f64;

    fn index(&self, quantity: Quantity) -> &f64 {
        &self.0[quantity as usize]
    }
}

impl IndexMut<Quantity> for Tally {
    fn index_mut(&mut self, quantity: Quantity) -> &mut f64 {
        &mut self.0[quantity as usize]
    }
}

impl Tally {
    pub fn of(amounts: &[(Quantity, f64)]) -> Tally {
        let mut tally = Tally::default();
        for (quantity, amount) in amounts {
            tally[*quantity] += amount;
        }
        tally
    }

    /// Adds so many times another.
    #[inline]
    pub fn add(&mut self, other: &Tally, times: f64) {
        for (sum, amount) in self.0.iter_mut().zip(&other.0) {
            *sum += amount * times;
        }
    }

    /// The part of the lanes that store something where any does.
    pub fn utilisation(&self) -> f64 {
        match self[Quantity::StoreLanes] {
            0.0 => 1.0,
            lanes => self[Quantity::StoredLanes] / lanes,
        }
    }

    /// What the kernel interpreter counts, by name.
    pub fn counted(counts: &Counts) -> Vec<(Quantity, u64)> {
        let Counts {
            launches,
            blocks,
            arithmetic,
            fusible,
            index,
            shuffles,
            slides,
            loads,
            stores,
            lookups,
            copies,
            barriers,
            flags,
            global_sectors,
            global_bytes,
            shared_wavefronts,
            bank_conflicts,
        } = counts;
        vec![
            (Quantity::Launches, *launches),
            (Quantity::Blocks, *blocks),
            (Quantity::Arithmetic, *arithmetic),
            (Quantity::Fusible, *fusible),
            (Quantity::Index, *index),
            (Quantity::Shuffles, *shuffles),
            (Quantity::Slides, *slides),
            (Quantity::Loads, *loads),
            (Quantity::Stores, *stores),
            (Quantity::Lookups, *lookups),
            (Quantity::Copies, *copies),
            (Quantity::Barriers, *barriers),
            (Quantity::Flags, *flags),
            (Quantity::GlobalSectors, *global_sectors),
            (Quantity::GlobalBytes, *global_bytes),
            (Quantity::SharedWavefronts, *shared_wavefronts),
            (Quantity::BankConflicts, *bank_conflicts),
        ]
    }
}
