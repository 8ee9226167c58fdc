//! Sums that cross the warps of a block: where warps exchange their parts.
//!
//! Every warp stores its part of a chain in shared memory, and after a barrier reads the parts of
//! all warps before it. A warp that combines something for all others, because it alone looks back,
//! hands the result on in the same way.

use systola_ir::array::Array;
use systola_ir::form::{Cond, Form, Poly};
use systola_ir::kernel::{Access, Memory, Shared};
use systola_ir::{Scalar, SharedId, VarId};

use crate::split_sums::look_back::SplitChain;
use crate::storage::chains::Joins;
use crate::storage::partition::Partition;
use crate::storage::queues::{PeKey, scalars};
use crate::storage::slots::Slots;

/// A chain through the warps of a block.
#[derive(Clone, Debug)]
pub struct WarpTotals {
    /// The cell with the parts.
    pub part: VarId,
    pub joins: Joins,
    /// The coordinate of the slots that the chain runs along.
    pub along: usize,
    /// Its values in the order of the chain.
    pub order: Vec<i128>,
    /// Over the points: the chain enters their warp from another one.
    pub later: Cond,
    pub ends: Ends,
    pub exchange: Exchange,
}

impl WarpTotals {
    pub fn declare(
        array: &Array,
        slots: &Slots,
        partition: &Partition,
        chain: &SplitChain,
        shared: &mut Vec<Shared>,
    ) -> WarpTotals {
        let Some((along, ..)) = chain.axes.last() else {
            unreachable!("a chain has the coordinate that it runs along")
        };
        let Some(ends) = Ends::of(chain, partition) else {
            unreachable!("the chain was split since its ends are known")
        };
        let Some((lo, extent)) = partition.warps.range(*along) else {
            unreachable!("the chain crosses warps")
        };
        let mut order: Vec<i128> = (lo..lo + extent).collect();
        if !chain.up {
            order.reverse();
        }
        let name = &array.cells[chain.part.index()].name;
        let warps = i128::from(partition.warps.count());
        WarpTotals {
            part: chain.part,
            joins: chain.joins,
            along: *along,
            order,
            later: chain.later.clone(),
            exchange: Exchange::declare(
                array, chain.part, name, &ends, slots, partition, warps, shared,
            ),
            ends,
        }
    }
}

/// The PEs in which the parts of chains are complete.
#[derive(Clone, Debug)]
pub struct Ends {
    /// For each coordinate of a PE, the only value at which a part is complete; `None` where each
    /// value has chains of its own.
    at: Vec<Option<i128>>,
}

impl Ends {
    /// `None` if they depend on the sizes.
    pub fn of(chain: &SplitChain, partition: &Partition) -> Option<Ends> {
        let constant = |p: &usize| match chain.end(*p) {
            None => Some(None),
            Some(at) => at.as_constant().map(Some),
        };
        let at = partition.pes.iter().map(constant);
        Some(Ends {
            at: at.collect::<Option<_>>()?,
        })
    }

    /// The PE in which the parts of a PE's chain are complete, and the lane if it is one.
    pub fn end(&self, partition: &Partition, slots: &Slots, pe: &PeKey) -> (PeKey, Option<i128>) {
        let mut lane = None;
        let places = partition.pes.iter().zip(&self.at).zip(pe);
        let key = places.map(|((p, end), own)| match end {
            None => *own,
            Some(end) if Some(*p) == partition.vector => {
                let (lo, _) = slots.ranges[*p].constant().unwrap_or((0, 0));
                let width = i128::from(partition.lanes);
                lane = Some((end - lo).rem_euclid(width));
                (end - lo).div_euclid(width)
            }
            Some(end) => *end,
        });
        (key.collect(), lane)
    }

    /// All of them.
    fn keys(&self, partition: &Partition, slots: &Slots) -> Vec<PeKey> {
        let mut keys: Vec<PeKey> = Vec::new();
        for pe in partition.known_pes(slots) {
            let (key, _) = self.end(partition, slots, &pe);
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        keys
    }

    /// Has each lane chains of its own?
    fn by_lane(&self, partition: &Partition) -> bool {
        let mut places = partition.pes.iter().zip(&self.at);
        places.any(|(p, end)| Some(*p) == partition.vector && end.is_none())
    }
}

/// Shared arrays with the values of some warps at the ends of chains: an axis for the ends, one for
/// the warps, and one for the lanes if each of them has chains of its own.
#[derive(Clone, Debug)]
pub struct Exchange {
    pub arrays: Vec<(SharedId, Scalar)>,
    keys: Vec<PeKey>,
    by_lane: bool,
}

impl Exchange {
    pub fn declare(
        array: &Array,
        cell: VarId,
        name: &str,
        ends: &Ends,
        slots: &Slots,
        partition: &Partition,
        warps: i128,
        shared: &mut Vec<Shared>,
    ) -> Exchange {
        let keys = ends.keys(partition, slots);
        let by_lane = ends.by_lane(partition);
        let mut extents = vec![keys.len() as i128, warps];
        extents.extend(by_lane.then_some(i128::from(partition.lanes)));
        let extents: Vec<Poly> = extents.into_iter().map(Poly::constant).collect();
        let types = scalars(&array.cells[cell.index()].ty);
        let several = types.len() > 1;
        let arrays = types.into_iter().enumerate().map(|(n, ty)| {
            let name = match several {
                true => format!("{name}_f{n}s"),
                false => format!("{name}s"),
            };
            shared.push(Shared {
                name,
                ty,
                extents: extents.clone(),
            });
            (SharedId::from(shared.len() - 1), ty)
        });
        Exchange {
            arrays: arrays.collect(),
            keys,
            by_lane,
        }
    }

    /// The element of an end in one of the arrays.
    pub fn at(&self, array: SharedId, end: &PeKey, warp: &Form, lane: Option<Form>) -> Access {
        let n = self.keys.iter().position(|key| key == end).unwrap_or(0);
        let mut index = vec![Form::from(n as i128), warp.clone()];
        index.extend(lane.filter(|_| self.by_lane));
        Access::new(Memory::Shared(array), index)
    }
}
