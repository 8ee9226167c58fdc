//! Programs as text, checked for all sizes and evaluated.

use std::collections::BTreeMap;

use systola_driver::{check_system, load};
use systola_interp::{Arrays, Tensor, run_system};
use systola_ir::system::System;

use crate::reference::Grid;

/// The system of a text that holds one; it prints as text that means the same, and is well defined.
pub fn system(text: &str) -> System {
    let module = module_of(text);
    let mut systems = module.systems;
    assert_eq!(systems.len(), 1, "{text}");
    let system = systems.remove(0);
    let wrong = check_system(&system, &BTreeMap::new());
    assert!(wrong.is_empty(), "{text}\n{system}\n{wrong:#?}");
    system
}

fn module_of(text: &str) -> systola_ir::system::Module {
    let module = load(text).unwrap_or_else(|e| panic!("{text}\n{e:#?}"));
    let printed = module.to_string();
    let again = load(&printed).unwrap_or_else(|e| panic!("{printed}\n{e:#?}"));
    assert_eq!(again, module, "{printed}");
    module
}

pub fn tensor(grid: &Grid) -> Tensor {
    Tensor::new(grid.shape.clone(), grid.data.clone()).expect("a shape that fits")
}

/// The outputs, all of f64.
pub fn run(
    system: &System,
    sizes: &[(&str, i128)],
    inputs: &[(&str, &Grid)],
) -> BTreeMap<String, Grid> {
    let params: Vec<i128> = (system.params.iter())
        .map(|p| {
            let size = sizes.iter().find(|(name, _)| *name == p.name);
            size.unwrap_or_else(|| panic!("no size for {}", p.name)).1
        })
        .collect();
    let arrays: Arrays = (inputs.iter())
        .map(|(name, grid)| ((*name).to_string(), tensor(grid)))
        .collect();
    let outputs = run_system(system, &params, &arrays)
        .unwrap_or_else(|e| panic!("{system}\n{params:?}\n{e:#?}"));
    (outputs.into_iter())
        .map(|(name, tensor)| {
            let data = match tensor.data {
                systola_interp::Data::F64(data) => data,
                other => panic!("{name} is {other:?}"),
            };
            let shape = tensor.shape.clone();
            (name, Grid { shape, data })
        })
        .collect()
}

/// The same shape, and the same numbers up to the order of sums.
pub fn agree(expect: &Grid, found: &Grid, what: &str) {
    assert_eq!(expect.shape, found.shape, "{what}");
    let largest = expect.data.iter().fold(1.0, |m: f64, x| m.max(x.abs()));
    for (n, (a, b)) in expect.data.iter().zip(&found.data).enumerate() {
        assert!(
            (a - b).abs() <= 1e-12 * largest,
            "{what}\nelement {n} is {b}, not {a}\n{expect:?}\n{found:?}"
        );
    }
}
