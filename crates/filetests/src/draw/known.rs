//! Faults that are known and not mended yet: what leads to them is not drawn. A line goes when its fault has gone.

/// Compiled code ignores the `else` of a table that is indexed by values.
pub(super) const TABLE_ELSE: bool = false;
/// Two sums over one iterator name can not be mapped.
pub(super) const SAME_ITERATOR: bool = false;
/// Integer division by zero and lookups out of range are silent in compiled code; the kernel interpreter divides in idle lanes.
pub(super) const FAULTS: bool = false;
/// `x[i * M + j >> 1]`: shifts in printed indices lack parentheses.
pub(super) const PRECEDENCE: bool = false;
