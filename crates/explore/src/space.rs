//! The mappings that are looked at.
//!
//! Every point of the space is a mapping as a person would write it. No family knows an algorithm: each looks at the roles of
//! the iterators ([`axes`]), and what it writes is checked like anybody's mapping.
//!
//! * [`tilings`]: results stay, in tiles of registers, lanes and warps.

use std::collections::HashSet;

use systola_driver::Fix;
use systola_ir::mapping::Mapping;

pub mod axes;
mod promise;
mod text;
pub mod tiles;
mod tilings;

use self::axes::Axes;
use self::text::Text;
use crate::problem::Problem;

/// One mapping of the space, and the choices that made it.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    pub mapping: Mapping,
    /// What was chosen, for tables and pictures: `("lanes", "c")`, `("registers", "8 r × 2 c")`.
    pub choices: Vec<(&'static str, String)>,
}

/// So many of a family are looked at, at most.
const MOST: usize = 3000;

/// The most promising mappings of a problem, best first. Some may be refused at these sizes.
pub fn candidates(problem: &Problem<'_>) -> Vec<Candidate> {
    let Some(axes) = axes_of(problem) else {
        return Vec::new();
    };
    let mut list = Vec::new();
    let mut tilings: Vec<(f64, tiles::Tiling)> = tilings::tilings(&axes, &problem.machine)
        .into_iter()
        .map(|t| (promise::cost(&axes, &problem.machine, &t), t))
        .collect();
    tilings.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut seen = HashSet::new();
    tilings.retain(|(_, t)| seen.insert(t.clone()));
    tilings.truncate(MOST);
    for (n, (_, tiling)) in tilings.iter().enumerate() {
        let name = format!("t{}", n + 1);
        let text = Text::new(names(problem), lanes(problem, &axes));
        list.push(Candidate {
            mapping: tiling.write(&axes, &name, &problem.system.name, text),
            choices: tiling.choices(&axes),
        });
    }
    list
}

fn axes_of(problem: &Problem<'_>) -> Option<Axes> {
    let params = &problem.system.params;
    let sizes = params.iter().map(|p| problem.sizes.get(&p.name).copied());
    let sizes: Vec<i128> = sizes.collect::<Option<_>>()?;
    let fixed: Vec<bool> = params
        .iter()
        .map(|p| match &problem.fix {
            Fix::Nothing => false,
            Fix::Everything => true,
            Fix::Names(names) => names.contains(&p.name),
        })
        .collect();
    Axes::of(problem.system, &sizes, &fixed)
}

fn lanes(problem: &Problem<'_>, axes: &Axes) -> i128 {
    i128::from(problem.machine.lanes(axes.bits))
}

/// Every name that a mapping of the system may not take.
fn names(problem: &Problem<'_>) -> Vec<String> {
    let system = problem.system;
    let mut names = system.param_names();
    names.extend(system.dim_names());
    names.extend(system.batch.iter().map(|b| b.name.clone()));
    names.extend(system.vars.iter().map(|v| v.name.clone()));
    names.extend(system.inputs.iter().map(|i| i.name.clone()));
    names.extend(system.consts.iter().map(|c| c.name.clone()));
    names
}
