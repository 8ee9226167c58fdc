//! Kinds of links, by how they are realised.

use systola_ir::array::{Array, Link, Port, Realisation, Role};
use systola_ir::mapping::PlaceLevel;

/// Does the link read what another slot of this launch put into a queue?
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
        | Realisation::Reinject
        | Realisation::Message
        | Realisation::Hole => false,
    }
}

/// Does the value arrive in the tick in which it leaves? A propagated input is loaded where it is wanted.
pub fn is_at_once(array: &Array, port: &Port, link: &Link) -> bool {
    let loaded = matches!(
        array.cells[port.source.index()].role,
        Role::Propagation { .. }
    );
    !loaded && matches!(link.realisation, Realisation::Broadcast | Realisation::Tree)
}

/// Does the link go to another block in the tick in which it leaves?
pub fn crosses(array: &Array, link: &Link) -> bool {
    let moved = array.place.iter().zip(&link.displacement);
    link.realisation == Realisation::Tree
        && moved
            .filter(|(c, _)| c.level == PlaceLevel::Block)
            .any(|(_, d)| !d.is_zero())
}

/// The links that go by flags, with their ports.
pub fn flagged(array: &Array) -> impl Iterator<Item = (&Port, &Link)> {
    let ports = array.ports.iter();
    let links = ports.flat_map(|port| port.links.iter().map(move |link| (port, link)));
    links.filter(|(_, link)| link.realisation == Realisation::Flags)
}
