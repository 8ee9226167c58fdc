//! Typed indices, so that a variable is never mistaken for an input.

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// The position in the list this id points into.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl From<usize> for $name {
            fn from(index: usize) -> Self {
                Self(u32::try_from(index).unwrap_or(u32::MAX))
            }
        }
    )*};
}

ids! {
    /// A parameter of a system: a size that stays symbolic.
    ParamId,
    /// An iterator: of the index space, or (from `System::dims.len()` on) bound by a `reduce`.
    DimId,
    /// A recurrent variable.
    VarId,
    /// An input array or a table.
    InputId,
    /// A user function.
    FnId,
    /// A named constant.
    ConstId,
    /// A value bound by `let`, or a parameter of a function.
    LocalId,
    /// A port of an array: where a cell gets a value from its links.
    PortId,
    /// Memory of an array, where cells keep values for other points.
    StorageId,
    /// A value of a kernel, assigned once.
    ValueId,
    /// A register of a kernel, set more than once.
    RegId,
    /// An array in global memory.
    BufferId,
    /// An array in shared memory.
    SharedId,
    /// A kernel of a program of launches.
    KernelId,
}
