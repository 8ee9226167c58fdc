//! Kinds of links, by how they are realised.

use systola_ir::Cond;
use systola_ir::array::{Array, Link, Port, Realisation, Role};
use systola_ir::mapping::PlaceLevel;

/// Does the link read a queue that another slot of this launch filled?
pub fn is_queued(realisation: &Realisation) -> bool {
    match realisation {
        Realisation::Register
        | Realisation::Buffer
        | Realisation::Shuffle
        | Realisation::Shared
        | Realisation::Broadcast
        | Realisation::Tree => true,
        Realisation::Wire
        | Realisation::Launch
        | Realisation::Flags
        | Realisation::LookBack
        | Realisation::Reinject
        | Realisation::Message
        | Realisation::Hole => false,
    }
}

/// Does the value arrive in the tick in which it leaves? A propagated input is loaded where it is
/// needed.
pub fn is_at_once(array: &Array, port: &Port, link: &Link) -> bool {
    let loaded = matches!(
        array.cells[port.source.index()].role,
        Role::Propagation { .. }
    );
    !loaded
        && matches!(
            link.realisation,
            Realisation::Broadcast | Realisation::Tree | Realisation::LookBack
        )
}

/// Does the link go to another block in the tick in which it leaves?
pub fn crosses(array: &Array, link: &Link) -> bool {
    let moved = array.place.iter().zip(&link.displacement);
    matches!(link.realisation, Realisation::Tree | Realisation::LookBack)
        && moved
            .filter(|(c, _)| c.level == PlaceLevel::Block)
            .any(|(_, d)| !d.is_zero())
}

/// Does the link go to another warp of its block in the tick in which it leaves?
pub fn crosses_warps(array: &Array, link: &Link) -> bool {
    let moves = |is: &dyn Fn(PlaceLevel) -> bool| {
        let mut moved = array.place.iter().zip(&link.displacement);
        moved.any(|(c, d)| is(c.level) && !d.is_zero())
    };
    link.realisation == Realisation::Tree
        && moves(&|level| level == PlaceLevel::Warp)
        && !moves(&|level| matches!(level, PlaceLevel::Node | PlaceLevel::Block))
}

/// The links that bring what all blocks or warps before have combined, with their ports. They
/// deliver between the stages of a tick.
pub fn combining(array: &Array) -> impl Iterator<Item = (&Port, &Link)> {
    let ports = array.ports.iter();
    let links = ports.flat_map(|port| port.links.iter().map(move |link| (port, link)));
    links.filter(|(_, link)| link.realisation == Realisation::LookBack)
}

/// The links between blocks that look back, with their ports.
pub fn looking_back(array: &Array) -> impl Iterator<Item = (&Port, &Link)> {
    combining(array).filter(|(_, link)| crosses(array, link))
}

/// The links that are realised by flags, with their ports.
pub fn flagged(array: &Array) -> impl Iterator<Item = (&Port, &Link)> {
    let ports = array.ports.iter();
    let links = ports.flat_map(|port| port.links.iter().map(move |link| (port, link)));
    links.filter(|(_, link)| link.realisation == Realisation::Flags)
}

/// The links that deliver a value, each with the part of its guard that distinguishes it from the
/// others. The part that distinguishes it from a hole is dropped: nothing reads the value there.
pub fn delivering(port: &Port) -> Vec<(&Link, Cond)> {
    let links: Vec<&Link> = port
        .links
        .iter()
        .filter(|link| link.realisation != Realisation::Hole)
        .collect();
    let choice = |n: usize| {
        let own = parts(&links[n].guard);
        let mut needed: Vec<&Cond> = Vec::new();
        for (_, other) in links.iter().enumerate().filter(|(m, _)| *m != n) {
            let others = parts(&other.guard);
            let excludes = |part: &&Cond| others.contains(&opposite(part));
            let found: Vec<&Cond> = own.iter().filter(excludes).collect();
            if found.is_empty() {
                return links[n].guard.clone();
            }
            needed.extend(found);
        }
        own.iter()
            .filter(|part| needed.contains(part))
            .cloned()
            .fold(Cond::TRUE, Cond::and)
    };
    (0..links.len()).map(|n| (links[n], choice(n))).collect()
}

fn opposite(cond: &Cond) -> Cond {
    match cond {
        Cond::Cmp(rel, left, right) => Cond::Cmp(rel.opposite(), left.clone(), right.clone()),
        other => other.clone().negate(),
    }
}

fn parts(cond: &Cond) -> &[Cond] {
    match cond {
        Cond::And(parts) => parts,
        other => std::slice::from_ref(other),
    }
}
