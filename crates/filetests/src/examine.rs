//! Any text through every check and, where it is legal, through a run at tiny sizes.

use std::collections::BTreeMap;

use systola_driver::{check_mapping, check_system, load};
use systola_interp::draw::random_inputs;
use systola_interp::{Arrays, run_array, run_system};
use systola_ir::codes;
use systola_ir::diag::Kind;
use systola_ir::system::{InputKind, System};

/// The stages that a program reached.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reached {
    pub parsed: usize,
    pub sound: usize,
    pub legal: usize,
    pub run: usize,
}

/// The first few are enough for one file.
const MOST_MAPPINGS: usize = 3;

/// The maximum number of elements of an input.
const MOST_ELEMENTS: i128 = 100_000;

/// Checks a program without sizes and with tiny ones, and runs it where it is legal and has at most
/// this many points.
///
/// # Panics
///
/// Where a mapping is legal for all sizes and refused at tiny ones, where a legal array does not
/// run, and where it computes something else than its system.
pub fn examine(text: &str, most_points: i128) -> Reached {
    let mut reached = Reached::default();
    let Ok(module) = load(text) else {
        return reached;
    };
    reached.parsed += 1;
    for system in &module.systems {
        let (none, tiny) = (BTreeMap::new(), tiny(system));
        let wrong = check_system(system, &none).len() + check_system(system, &tiny).len();
        if wrong == 0 {
            reached.sound += 1;
        }
        let mappings = module.mappings.iter().filter(|m| m.system == system.name);
        for mapping in mappings.take(MOST_MAPPINGS) {
            let for_all = check_mapping(&module, mapping, &none);
            let checked = check_mapping(&module, mapping, &tiny);
            if let (Ok(_), Err(errors)) = (&for_all, &checked)
                && errors.iter().any(|e| e.kind() == Kind::Mistake)
                && in_context(system, &tiny)
            {
                panic!("legal for all sizes, refused at {tiny:?}: {errors:?}");
            }
            let Ok(checked) = checked else {
                continue;
            };
            reached.legal += 1;
            let points = checked.report.counts.map_or(0, |c| c.expanded);
            if wrong > 0 || points > most_points {
                continue;
            }
            let params: Vec<i128> = system.params.iter().map(|p| tiny[&p.name]).collect();
            let Some(inputs) = inputs(system, &params) else {
                continue;
            };
            let Ok(expected) = run_system(system, &params, &inputs) else {
                continue;
            };
            match run_array(&checked.array, &params, &inputs) {
                Ok(outputs) => {
                    reached.run += 1;
                    for (name, want) in &expected {
                        let difference = want.first_difference(&outputs[name], 1e-3);
                        assert!(difference.is_none(), "`{name}` differs: {difference:?}");
                    }
                }
                // Huge numbers may leave the integers of the interpreter.
                Err(error) if error.code == &codes::run::TOO_LARGE => {}
                Err(error) => panic!("`{}` is legal and does not run: {error}", mapping.name),
            }
        }
    }
    reached
}

/// The least sizes in the context, from 3 on; 3 where none of a few fits.
fn tiny(system: &System) -> BTreeMap<String, i128> {
    let at = |value: i128| -> BTreeMap<String, i128> {
        let names = system.param_names().into_iter();
        names.map(|name| (name, value)).collect()
    };
    let mut sizes = [3, 4, 2, 1, 8, 16].into_iter().map(at);
    sizes
        .find(|sizes| in_context(system, sizes))
        .unwrap_or_else(|| at(3))
}

fn in_context(system: &System, sizes: &BTreeMap<String, i128>) -> bool {
    let params: Vec<i128> = system.params.iter().map(|p| sizes[&p.name]).collect();
    system.context_cond().eval(&params, &[]) == Ok(true)
}

fn inputs(system: &System, params: &[i128]) -> Option<Arrays> {
    for input in &system.inputs {
        if matches!(&input.kind, InputKind::Table { data: Some(_) }) {
            continue;
        }
        let mut size = 1i128;
        for axis in &input.axes {
            let extent = axis.hi.eval(params, &[]).ok()? - axis.lo.eval(params, &[]).ok()?;
            size = size.checked_mul(extent.max(0))?;
        }
        if size > MOST_ELEMENTS {
            return None;
        }
    }
    random_inputs(system, params, |_| 3).ok()
}
