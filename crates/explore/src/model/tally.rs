//! What is counted: amounts of work, as numbers that can be weighted.

use std::ops::{Index, IndexMut};

use systola_ir::kernel::census::Event;

macro_rules! quantities {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Work in categories that only machines distinguish. Unless stated otherwise, the unit is
        /// one statement executed by one warp.
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
    /// Additions, multiplications and fused multiply-adds of floats up to 32 bits; vectors, where
    /// the machine has them.
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
    /// Elements that need a function call: exponentials, logarithms, powers, and quotients of
    /// integers.
    Calls,
    /// Lane shifts and shuffles of vectors or words.
    Moves,
    /// Operations on uniform values.
    UniformOps,
    /// Loads of one element for all lanes.
    UniformLoads,
    /// Loads of constant memory, on machines that have it.
    ConstantLoads,
    /// Vectors that are loaded whole.
    VectorLoads,
    /// Vector loads that cross a cache line of 64 bytes.
    SplitLoads,
    /// Elements that are loaded one by one.
    GatheredElements,
    VectorStores,
    SplitStores,
    /// Elements that are stored one by one.
    ScatteredElements,
    /// Instructions that compute the mask of a predicate.
    Masks,
    /// Accesses to global memory, without those to constant memory.
    GlobalAccesses,
    /// Bank-conflict wavefronts of the L1 of a GPU.
    GlobalWavefronts,
    /// Bytes stored to global memory, and sectors stored to, in whole or in part.
    StoredBytes,
    StoredSectors,
    /// Words of 4 bytes that all lanes could have stored, and those that they did store.
    StoreLanes,
    StoredLanes,
    /// Loop iterations and evaluated conditions.
    Branches,
}

const EVENTS: usize = Event::ALL.len();
const AMOUNTS: usize = EVENTS + Quantity::ALL.len();

/// An amount of each event, which the kernel interpreter counts too, and of each quantity.
#[derive(Clone, Debug, PartialEq)]
pub struct Tally([f64; AMOUNTS]);

impl Default for Tally {
    fn default() -> Self {
        Tally([0.0; AMOUNTS])
    }
}

impl Index<Event> for Tally {
    type Output = f64;

    fn index(&self, event: Event) -> &f64 {
        &self.0[event as usize]
    }
}

impl IndexMut<Event> for Tally {
    fn index_mut(&mut self, event: Event) -> &mut f64 {
        &mut self.0[event as usize]
    }
}

impl Index<Quantity> for Tally {
    type Output = f64;

    fn index(&self, quantity: Quantity) -> &f64 {
        &self.0[EVENTS + quantity as usize]
    }
}

impl IndexMut<Quantity> for Tally {
    fn index_mut(&mut self, quantity: Quantity) -> &mut f64 {
        &mut self.0[EVENTS + quantity as usize]
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

    /// One of each event.
    pub fn of_events(events: &[Event]) -> Tally {
        let mut tally = Tally::default();
        for event in events {
            tally[*event] += 1.0;
        }
        tally
    }

    /// Adds another tally, weighted.
    #[inline]
    pub fn add(&mut self, other: &Tally, times: f64) {
        for (sum, amount) in self.0.iter_mut().zip(&other.0) {
            *sum += amount * times;
        }
    }

    /// The share of lanes that store, where any lane does.
    pub fn utilisation(&self) -> f64 {
        match self[Quantity::StoreLanes] {
            0.0 => 1.0,
            lanes => self[Quantity::StoredLanes] / lanes,
        }
    }
}
