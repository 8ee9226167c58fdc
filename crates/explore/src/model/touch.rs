//! The cost of one access of a warp, given the addresses of its lanes.

use systola_ir::kernel::Memory;
use systola_ir::kernel::banks::shared_cost;
use systola_ir::kernel::census::{Event, Touch, touched};
use systola_ir::target::{Machine, Simd};

use super::code::{Access, Direction, Lanes};
use super::tally::{Quantity, Tally};

/// The cache line of a CPU.
pub const LINE: u64 = Machine::cpu(Simd::Portable).memory.line as u64;
/// The cost of an access depends on its offset modulo this many bytes: a row of banks, and a
/// multiple of all lines and sectors.
pub const PERIOD: u64 = 128;

/// The work of an access with the given active lanes.
pub fn work(access: &Access, lanes: Lanes, touches: &[Touch], seen: &mut Vec<u64>) -> Tally {
    let mut tally = Tally::default();
    let bytes = access.bytes * access.width;
    for (event, n) in touched(access.memory, touches.iter().copied(), bytes, seen) {
        tally[event] = n as f64;
    }
    if touches.is_empty() {
        return tally;
    }
    match (access.memory, access.direction) {
        (Memory::Global(_), Direction::Store) => {
            tally[Quantity::StoredBytes] = tally[Event::GlobalBytes];
            tally[Quantity::StoredSectors] = tally[Event::GlobalSectors];
            tally[Quantity::StoreLanes] = access.lanes as f64;
            tally[Quantity::StoredLanes] = touches.len() as f64;
        }
        (Memory::Global(_), Direction::Load) | (Memory::Shared(_), _) => {}
    }
    match lanes {
        Lanes::Threads => threads(access, touches, seen, &mut tally),
        Lanes::Vectors { bytes } => vectors(access, touches, u64::from(bytes), &mut tally),
    }
    tally
}

fn threads(access: &Access, touches: &[Touch], seen: &mut Vec<u64>, tally: &mut Tally) {
    if access.is_constant {
        tally[Quantity::ConstantLoads] = 1.0;
        return;
    }
    if let Memory::Global(_) = access.memory {
        // L1 has the banks of shared memory, since both share one memory.
        tally[Quantity::GlobalAccesses] = 1.0;
        let bytes = access.bytes * access.width;
        let cost = shared_cost(touches.iter().copied(), bytes, seen);
        tally[Quantity::GlobalWavefronts] = cost.wavefronts as f64;
    }
}

fn vectors(access: &Access, touches: &[Touch], vector: u64, tally: &mut Tally) {
    let bytes = access.bytes * access.width;
    let (whole, split, single) = match access.direction {
        Direction::Load => (
            Quantity::VectorLoads,
            Quantity::SplitLoads,
            Quantity::GatheredElements,
        ),
        Direction::Store => (
            Quantity::VectorStores,
            Quantity::SplitStores,
            Quantity::ScatteredElements,
        ),
    };
    let from = touches[0].1;
    let apart = |by: u64| touches.windows(2).all(|pair| pair[0].1 + by == pair[1].1);
    let (same, neighbours) = match access.step {
        Some(step) => (step == 0, step == access.width as i64),
        None => (apart(0), apart(bytes)),
    };
    if same || access.lanes == 1 {
        match access.direction {
            Direction::Load => tally[Quantity::UniformLoads] = access.width as f64,
            Direction::Store => tally[single] = access.width as f64,
        }
        return;
    }
    if !neighbours {
        // Inactive lanes take time too.
        tally[single] = (access.lanes as u64 * access.width) as f64;
        return;
    }
    let to = from + touches.len() as u64 * bytes;
    for start in (from..to).step_by(vector as usize) {
        let end = (start + vector).min(to);
        tally[whole] += 1.0;
        tally[split] += f64::from(u8::from(start / LINE != (end - 1) / LINE));
    }
}
