//! The space of the explorer: the counts of the literature, the designs of the literature, and no
//! refused mappings.

use std::collections::{BTreeMap, BTreeSet};

use systola_driver::{Fix, Machine, check_mapping, load};
use systola_explore::problem::Problem;
use systola_explore::space::axes::Axes;
use systola_explore::space::designs::{pairs, schedules};
use systola_explore::space::{Candidate, candidates, designs};
use systola_filetests::gallery::{algorithms, root};
use systola_ir::mapping::Mapping;
use systola_ir::system::Module;

fn read(file: &str) -> Module {
    let text = std::fs::read_to_string(root().join(file)).unwrap();
    load(&text).unwrap()
}

fn machine() -> Machine {
    systola::CpuOptions::new().machine()
}

fn problem<'a>(
    module: &'a Module,
    system: &str,
    sizes: &[(&str, i128)],
    fix: Fix,
    machine: Machine,
) -> Problem<'a> {
    Problem {
        module,
        system: module.systems.iter().find(|s| s.name == system).unwrap(),
        sizes: sizes.iter().map(|(n, v)| ((*n).to_string(), *v)).collect(),
        fix,
        machine,
    }
}

/// The lines of a mapping, without its name; `read` applies to inputs without a directive.
fn lines(mapping: &Mapping) -> BTreeSet<String> {
    let text = mapping.to_string();
    let lines = text.lines().skip(1).map(|line| line.trim().to_string());
    lines.filter(|l| !l.starts_with("read ")).collect()
}

fn contains(list: &[Candidate], wanted: &Mapping) -> bool {
    list.iter().any(|c| lines(&c.mapping) == lines(wanted))
}

/// Schedules with components up to 3, and pairs of a direction and a schedule, for every algorithm
/// whose counts are known.
#[test]
fn counts_of_schedules_are_those_of_the_literature() {
    let mut counted = 0;
    for algorithm in algorithms() {
        let Some(oracle) = &algorithm.oracle else {
            continue;
        };
        let module = read(&algorithm.file);
        let system = module.systems.iter().find(|s| s.name == algorithm.system);
        let system = system.unwrap();
        let sizes: Vec<i128> = system
            .params
            .iter()
            .map(|p| i128::from(oracle.params.0[&p.name]))
            .collect();
        let axes = Axes::of(system, &sizes, &[]);
        let axes = axes.unwrap_or_else(|| panic!("{}: no axes", algorithm.id));
        let n = axes.n_index;
        let e = axes.distances.iter().map(|d| d.e.clone());
        let e: Vec<Vec<i128>> = e.filter(|e| e.iter().any(|c| *c != 0)).collect();
        assert_eq!(
            schedules(&e, n, 3).len(),
            oracle.schedules,
            "{}",
            algorithm.id
        );
        assert_eq!(pairs(&e, n, 3).len(), oracle.pairs, "{}", algorithm.id);
        counted += 1;
    }
    assert_eq!(counted, 44);
}

/// From the core form alone, with no mapping in the file.
#[test]
fn the_designs_of_the_paper_are_enumerated() {
    let module = read("conv1d/core.ure");
    let sizes = [("C", 12), ("Q", 4)];
    let problem = problem(&module, "conv1d", &sizes, Fix::Nothing, machine());
    let list = designs(&problem, 2);
    for name in ["sbm", "bsm", "fsm", "bfs", "ffs", "fbs", "fsa"] {
        let wanted = module.mappings.iter().find(|m| m.name == name).unwrap();
        assert!(contains(&list, wanted), "{wanted}");
    }
    // Each once, and each is legal.
    let texts: BTreeSet<_> = list.iter().map(|c| lines(&c.mapping)).collect();
    assert_eq!(texts.len(), list.len());
    let sizes: BTreeMap<String, i128> = problem.sizes.clone();
    for candidate in &list {
        if let Err(why) = check_mapping(&module, &candidate.mapping, &sizes) {
            panic!("{}\n{}", why[0], candidate.mapping);
        }
    }
    println!("{} designs", list.len());
}

/// A stride of 2: inputs are forwarded every second step.
#[test]
fn the_design_with_a_stride_is_enumerated() {
    let module = load(
        "system conv1d(C, Q) where C >= 1, Q >= 1 {
           input x[2*C + Q - 2]: f32;
           input w[Q]: f32;
           index c in 0..C;
           var Z: f32 reorderable = reduce(+, q in 0..Q, x[2*c + q] * w[q]);
           output z[C]: f32 = Z at [c];
         }
         mapping fbs of conv1d {
           lane = c;
           time = q;
           forward x along (-1, 2);
           sum Z along q;
         }",
    )
    .unwrap();
    let sizes = [("C", 12), ("Q", 4)];
    let problem = problem(&module, "conv1d", &sizes, Fix::Nothing, machine());
    assert!(contains(&designs(&problem, 2), &module.mappings[0]));
}

/// The best hand-written mappings are in the space under other names, among the first candidates.
#[test]
fn what_was_written_by_hand_is_found() {
    let find = |case: Case, gpu, name: &str, within: usize| {
        let (file, system, sizes, fix) = case;
        let module = read(file);
        let fix = Fix::Names(fix.iter().map(|n| (*n).to_string()).collect());
        let machine = if gpu { Machine::cuda() } else { machine() };
        let problem = problem(&module, system, sizes, fix, machine);
        let wanted = module.mappings.iter().find(|m| m.name == name).unwrap();
        let list = candidates(&problem);
        let at = list.iter().position(|c| c.says_the_same(wanted));
        println!("{name}: {at:?} of {}", list.len());
        assert!(at.is_some_and(|at| at < within), "{file}: {name} {at:?}");
    };
    let core = |sizes| ("conv2d/core.ure", "conv2d", sizes, &["H", "Q"][..]);
    let small: Sizes = &[("R", 4096), ("C", 4096), ("H", 5), ("Q", 5)];
    find(core(small), false, "small", 400);
    let tiles: Sizes = &[("R", 4096), ("C", 4096), ("H", 9), ("Q", 9)];
    find(core(tiles), false, "tiles", 3000);
    let line: Sizes = &[("C", 1 << 24), ("Q", 64)];
    let taps = ("conv1d/core.ure", "conv1d", line, &["Q"][..]);
    find(taps, false, "taps", 100);
    find(taps, true, "quads", 800);
    let cube: Sizes = &[("N", 1024), ("M", 1024), ("K", 1024)];
    let matmul = "linear-algebra/matmul_core.ure";
    find((matmul, "matmul", cube, &[]), false, "panel", 400);
    let words: Sizes = &[("N", 8192), ("M", 8192)];
    let strips = "string/edit_distance_strips.ure";
    find((strips, "edit_distance", words, &[]), false, "six", 100);
    find((strips, "edit_distance", words, &[]), true, "pieces", 200);
    let field: Sizes = &[("T", 100), ("N", 2048), ("M", 2048)];
    let heat = "stencil/heat2d.ure";
    find((heat, "heat2d", field, &[]), false, "vectors", 400);

    let same = |sizes| ("conv2d/same.ure", "same", sizes, &["H", "Q"][..]);
    let at5: Sizes = &[("R", 8192), ("C", 8192), ("H", 5), ("Q", 5)];
    find(same(at5), true, "walk", 500);
    let at9: Sizes = &[("R", 8192), ("C", 8192), ("H", 9), ("Q", 9)];
    find(same(at9), true, "walk", 50);
    let at13: Sizes = &[("R", 8192), ("C", 8192), ("H", 13), ("Q", 13)];
    find(same(at13), true, "halves", 250);
    let at20: Sizes = &[("R", 8192), ("C", 8192), ("H", 20), ("Q", 20)];
    find(same(at20), true, "quarters", 50);
}

type Sizes = &'static [(&'static str, i128)];

/// A file, a system, its sizes, and which of them are fixed.
type Case = (
    &'static str,
    &'static str,
    &'static [(&'static str, i128)],
    &'static [&'static str],
);

/// Every candidate parses back to itself, and nearly all are legal and have kernels.
#[test]
fn candidates_are_texts_that_are_accepted() {
    let cases: [Case; 8] = [
        (
            "conv1d/core.ure",
            "conv1d",
            &[("C", 4000), ("Q", 5)],
            &["Q"],
        ),
        (
            "conv2d/core.ure",
            "conv2d",
            &[("R", 300), ("C", 400), ("H", 3), ("Q", 3)],
            &["H", "Q"],
        ),
        (
            "linear-algebra/matmul_core.ure",
            "matmul",
            &[("N", 256), ("M", 256), ("K", 128)],
            &[],
        ),
        (
            "string/edit_distance_strips.ure",
            "edit_distance",
            &[("N", 500), ("M", 600)],
            &[],
        ),
        (
            "stencil/heat2d.ure",
            "heat2d",
            &[("T", 10), ("N", 300), ("M", 400)],
            &[],
        ),
        (
            "../stencils/2d9pt.ure",
            "once",
            &[("N", 300), ("M", 400)],
            &[],
        ),
        (
            "../stencils/3d7pt.ure",
            "once",
            &[("K", 40), ("N", 50), ("M", 300)],
            &[],
        ),
        (
            "../stencils/3d7pt.ure",
            "many",
            &[("T", 6), ("K", 40), ("N", 50), ("M", 300)],
            &[],
        ),
    ];
    for (file, system, sizes, fix) in cases {
        let module = read(file);
        for machine in [machine(), Machine::cuda()] {
            let fix = Fix::Names(fix.iter().map(|n| (*n).to_string()).collect());
            let problem = problem(&module, system, sizes, fix, machine);
            let list = candidates(&problem);
            assert!(list.len() >= 40, "{file}: {}", list.len());
            let text = std::fs::read_to_string(root().join(file)).unwrap();
            let mut refused = Vec::new();
            let tried = list.iter().step_by(list.len() / 6);
            for candidate in tried {
                let again = load(&format!("{text}\n{}", candidate.mapping)).unwrap();
                let mut again = again.mappings.last().unwrap().clone();
                again.span = candidate.mapping.span;
                assert_eq!(again.to_string(), candidate.mapping.to_string());
                if let Err(why) = problem.lower(&candidate.mapping) {
                    refused.push(format!("{}\n{}", why[0], candidate.mapping));
                }
            }
            assert!(refused.len() <= 1, "{file}: {}", refused.join("\n"));
        }
    }
}
