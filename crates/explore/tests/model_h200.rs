//! The model's predictions for an H200 beside what was measured there.
//!
//! The measured times are those of `bench/results/2026-11-15-h200.md`. The test checks that the
//! model stays as good as `docs/model.md` says.

use std::collections::BTreeMap;
use std::path::Path;

use systola_driver::{Fix, Machine, load, lower};
use systola_explore::agreement::Agreement;
use systola_explore::model::{Device, Gpu, predict};

struct Case {
    file: &'static str,
    mapping: &'static str,
    sizes: Vec<(&'static str, i128)>,
    fix: &'static [&'static str],
    milliseconds: f64,
}

fn conv1d(file: &'static str, mapping: &'static str, c: i128, q: i128, ms: f64) -> Case {
    Case {
        file,
        mapping,
        sizes: vec![("C", c), ("Q", q)],
        fix: &["Q"],
        milliseconds: ms,
    }
}

fn conv2d(file: &'static str, mapping: &'static str, n: i128, k: i128, ms: f64) -> Case {
    Case {
        file,
        mapping,
        sizes: vec![("R", n), ("C", n), ("H", k), ("Q", k)],
        fix: &["H", "Q"],
        milliseconds: ms,
    }
}

fn cases() -> Vec<Case> {
    let (core, tiled) = ("conv1d/core.ure", "conv1d/tiled.ure");
    let (same, tiled2) = ("conv2d/same.ure", "conv2d/tiled.ure");
    vec![
        conv1d(core, "quads", 1 << 28, 1, 0.507),
        conv1d(core, "quads", 1 << 28, 5, 0.506),
        conv1d(core, "quads", 1 << 28, 64, 0.850),
        conv2d(same, "walk", 8192, 2, 0.131),
        conv2d(same, "walk", 8192, 3, 0.133),
        conv2d(same, "walk", 8192, 5, 0.134),
        conv2d(same, "tall", 8192, 7, 0.161),
        conv2d(same, "walk", 8192, 9, 0.212),
        conv2d(same, "walk", 8192, 12, 0.390),
        conv2d(same, "halves", 8192, 13, 0.436),
        conv2d(same, "halves", 8192, 16, 0.635),
        conv2d(same, "quarters", 8192, 20, 0.944),
        conv2d(same, "walk64", 8192, 3, 0.261),
        conv2d(same, "walk64", 8192, 9, 0.424),
        conv2d(same, "ssam", 8192, 3, 0.143),
        conv2d(same, "ssam", 8192, 9, 0.373),
        conv1d(tiled, "sbm", 1 << 26, 5, 2.526),
        conv1d(tiled, "bsm", 1 << 26, 5, 0.410),
        conv1d(tiled, "fsm", 1 << 26, 5, 0.595),
        conv1d(tiled, "bfs", 1 << 26, 5, 1.265),
        conv1d(tiled, "ffs", 1 << 26, 5, 2.025),
        conv1d(tiled, "fbs", 1 << 26, 5, 1.265),
        conv2d(tiled2, "sbm", 4096, 5, 0.635),
        conv2d(tiled2, "fbs", 4096, 5, 0.321),
        Case {
            file: "linear-algebra/matmul_core.ure",
            mapping: "squares",
            sizes: vec![("N", 4096), ("M", 4096), ("K", 4096)],
            fix: &[],
            milliseconds: 3.259,
        },
    ]
}

#[test]
fn predictions_are_near_what_an_h200_measured() {
    let device = Device::Gpu(Gpu::default());
    let machine = Machine::cuda();
    let mut pairs = Vec::new();
    for case in cases() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../gallery");
        let text = std::fs::read_to_string(path.join(case.file)).unwrap();
        let module = load(&text).unwrap();
        let mapping = module.mappings.iter().find(|m| m.name == case.mapping);
        let sizes: BTreeMap<String, i128> = case
            .sizes
            .iter()
            .map(|(name, value)| ((*name).to_string(), *value))
            .collect();
        let fix = Fix::Names(case.fix.iter().map(ToString::to_string).collect());
        let mapping = mapping.unwrap_or_else(|| panic!("{}: {}", case.file, case.mapping));
        let lowered = lower(&module, mapping, &sizes, &fix, &machine).unwrap();
        let values: Vec<i128> = lowered
            .program
            .params
            .iter()
            .map(|p| sizes[&p.name])
            .collect();
        let prediction = predict(&lowered.program, &values, &device).unwrap();
        let predicted = prediction.seconds * 1e3;
        println!(
            "{:8.3} ms measured, {predicted:8.3} predicted, {:22} {} registers, {:.2} of the warps, {} {} {:?}",
            case.milliseconds,
            prediction.limit,
            prediction.registers,
            prediction.occupancy,
            case.file,
            case.mapping,
            case.sizes
        );
        if std::env::var("SYSTOLA_TERMS").is_ok_and(|name| name == case.mapping) {
            for term in &prediction.terms {
                println!(
                    "    {:24} {:12.4e} {:12} {:8.3} ms",
                    term.name,
                    term.amount,
                    term.unit,
                    term.seconds * 1e3
                );
            }
        }
        pairs.push((case.milliseconds, predicted));
    }
    let correlation = Agreement::of(&pairs).unwrap().correlation;
    let worst = pairs
        .iter()
        .map(|(measured, predicted)| (measured / predicted).max(predicted / measured))
        .fold(0.0, f64::max);
    println!("rank correlation {correlation:.3}, at most {worst:.2} times off");
    assert!(correlation > 0.97, "{correlation}");
    assert!(worst < 1.6, "{worst}");
}
