//! Known faults that are not fixed yet: draws avoid their causes. A line is removed when its fault
//! is fixed.

/// Compiled code ignores the `else` of a table that is indexed by values.
pub(super) const TABLE_ELSE: bool = false;
/// Two sums over one iterator name cannot be mapped.
pub(super) const SAME_ITERATOR: bool = false;
/// Integer division by zero and lookups out of range are silent in compiled code; the kernel
/// interpreter divides in idle lanes.
pub(super) const FAULTS: bool = false;
/// `x[i * M + j >> 1]`: shifts in printed indices lack parentheses.
pub(super) const PRECEDENCE: bool = false;
