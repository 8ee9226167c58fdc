//! Systems without a legal mapping: all variables of a point run in the same PE and step, so their
//! dependences must not have opposite directions.

use systola_ir::form::Poly;
use systola_ir::sets::{set_of, system_space};
use systola_ir::system::System;
use systola_lower::dependences::dependences;

/// Two variables with dependences in opposite directions at the same points.
pub fn opposed(system: &System) -> Option<(&str, &str)> {
    let all = dependences(system)?;
    let own: Vec<_> = all.iter().filter(|d| d.sink == d.source).collect();
    let pairs = own.iter().flat_map(|a| own.iter().map(move |b| (a, b)));
    let mut opposite = pairs.filter(|(a, b)| {
        let back: Vec<Poly> = b.distance.iter().map(Poly::neg).collect();
        a.sink < b.sink && a.distance == back
    });
    let (a, b) = opposite.find(|(a, b)| {
        let mut cond = system.context_cond().and(system.domain_cond());
        cond = cond.and(a.when.clone()).and(b.when.clone());
        let set = set_of(&cond, system_space(system));
        set.is_ok_and(|set| set.is_empty() == Ok(false))
    })?;
    let name = |d: &systola_lower::dependences::Dependence| &system.vars[d.sink.index()].name;
    Some((name(a), name(b)))
}
