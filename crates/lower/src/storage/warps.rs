//! Place coordinates that become the warps of a block.
//!
//! Each warp runs the PEs at its own coordinates, so a register holds the value of one PE in every
//! warp. Several coordinates form one number, the last one fastest. A value that moves between
//! warps goes through a shared array ([`queues`]): it is written in one tick and read in a later
//! one, with a barrier between any two ticks. The circular axis of the array is longer than the
//! delay, so an element is overwritten in a tick in which nothing reads it. Control around a
//! barrier never depends on the warp: blocks, not warps, choose between interior and edge.
//!
//! Sums that cross warps in a tick are split into parts of the warps ([`warp_totals`]).
//!
//! Coordinates stay loops over PEs if their extents are not numbers, if they are more than a block
//! has warps, or if another value must arrive in another warp in the tick in which it leaves.
//!
//! [`queues`]: crate::storage::queues
//! [`warp_totals`]: crate::storage::warp_totals

use systola_ir::array::{Array, Link, Realisation, Role};
use systola_ir::form::{Form, Overflow, Poly};
use systola_ir::mapping::PlaceLevel;
use systola_ir::target::Machine;
use systola_ir::{DimId, Span};

use crate::storage::links::is_queued;
use crate::storage::slots::Slots;

/// The warps of a block; without coordinates it is one warp.
#[derive(Clone, Debug, Default)]
pub struct Warps {
    coordinates: Vec<Coordinate>,
}

#[derive(Clone, Copy, Debug)]
struct Coordinate {
    /// Of the slots.
    k: usize,
    lo: i128,
    extent: i128,
}

impl Warps {
    /// Chooses the coordinates among `pes` at the level of warps, if the machine can run them as
    /// warps.
    pub fn choose(
        array: &Array,
        slots: &Slots,
        machine: &Machine,
        lanes: u32,
        pes: &[usize],
        immediate: &[(&Link, Span)],
    ) -> Warps {
        let Some(threads) = machine.threads.filter(|_| lanes > 1) else {
            return Warps::default();
        };
        let at_level = pes
            .iter()
            .filter(|p| array.place[**p].level == PlaceLevel::Warp);
        let coordinates: Option<Vec<Coordinate>> = at_level
            .map(|k| {
                let (lo, hi) = slots.ranges[*k].constant()?;
                Some(Coordinate {
                    k: *k,
                    lo,
                    extent: (hi - lo).max(1),
                })
            })
            .collect();
        let warps = Warps {
            coordinates: coordinates.unwrap_or_default(),
        };
        let links = array.ports.iter().flat_map(|port| &port.links);
        let mut queued = links.filter(|link| is_queued(&link.realisation));
        let moves = |link: &Link, known: &dyn Fn(&Poly) -> bool| {
            let mut along = warps.coordinates.iter();
            along.all(|c| known(&link.displacement[c.k]))
        };
        // One warp is a loop of one iteration.
        let fits = warps.product() > 1
            && warps.product() <= i128::from(threads.warps)
            && queued.all(|link| moves(link, &|d| d.as_constant().is_some()))
            && immediate
                .iter()
                .filter(|(link, _)| link.realisation != Realisation::LookBack)
                .all(|(link, _)| moves(link, &Poly::is_zero));
        if fits { warps } else { Warps::default() }
    }

    fn product(&self) -> i128 {
        let extents = self.coordinates.iter().map(|c| c.extent);
        extents.fold(1, |product: i128, extent| product.saturating_mul(extent))
    }

    /// Warps of a block.
    pub fn count(&self) -> u32 {
        u32::try_from(self.product()).unwrap_or(1)
    }

    pub fn has(&self, k: usize) -> bool {
        self.coordinates.iter().any(|c| c.k == k)
    }

    pub fn coordinates(&self) -> impl Iterator<Item = usize> {
        self.coordinates.iter().map(|c| c.k)
    }

    /// The number of the warp with these coordinates.
    pub fn number(&self, place: impl Fn(usize) -> Form) -> Result<Form, Overflow> {
        let mut number = Form::zero();
        for c in &self.coordinates {
            let own = place(c.k).plus(-c.lo);
            number = number.scale(&Poly::constant(c.extent))?.add(&own);
        }
        Ok(number)
    }

    /// The first value of a coordinate and the number of values.
    pub fn range(&self, k: usize) -> Option<(i128, i128)> {
        let mut all = self.coordinates.iter();
        all.find(|c| c.k == k).map(|c| (c.lo, c.extent))
    }

    /// The coordinates of a warp by its number.
    pub fn places(&self, warp: DimId) -> Vec<(usize, Form)> {
        let mut number = Form::from(warp);
        let mut places = Vec::new();
        for c in self.coordinates.iter().rev() {
            places.push((c.k, number.modulo(c.extent).plus(c.lo)));
            number = number.floor_div(c.extent);
        }
        places
    }

    /// Does the link lead from one warp to another?
    pub fn crosses(&self, link: &Link) -> bool {
        let mut along = self.coordinates.iter();
        is_queued(&link.realisation) && along.any(|c| !link.displacement[c.k].is_zero())
    }

    /// Must the warps synchronise between ticks?
    pub fn need_barrier(&self, array: &Array) -> bool {
        array.ports.iter().any(|port| {
            // A broadcast input is loaded where it is needed.
            let loaded = matches!(
                array.cells[port.source.index()].role,
                Role::Propagation { .. }
            );
            let again = |link: &Link| loaded && link.realisation == Realisation::Broadcast;
            let mut links = port.links.iter();
            links.any(|link| self.crosses(link) && !again(link))
        })
    }
}
