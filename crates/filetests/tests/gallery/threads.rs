//! Mappings for machines with warps of threads: the costs of their kernels, and their results at
//! sizes that suit their vector accesses and at sizes that do not.

use std::collections::BTreeMap;

use systola_driver::{Fix, Machine, lower};
use systola_filetests::gallery;
use systola_filetests::reference;
use systola_filetests::tensor::Params;
use systola_interp::kernel::{Options, Order, run_kernel_program};
use systola_interp::{Arrays, Tensor, run_system};
use systola_ir::kernel::census::{Counts, Event};
use systola_ir::kernel::visit::walk;
use systola_ir::kernel::{Program, Stmt};
use systola_ir::system::Module;

use crate::support::{mapping, ordered, parse, seeded, system, to_interp};

/// Threads as GPUs have them.
const GPU: Machine = Machine {
    registers: 255,
    ..Machine::cuda()
};

/// Runs a mapping of the gallery in several orders against the equations.
fn check(file: &str, name: &str, sizes: &[(&str, i64)], fix: &[&str]) -> (Program, Counts) {
    let file = gallery::files()
        .into_iter()
        .find(|f| f.path == file)
        .expect("a file of the gallery");
    let module = parse(&file);
    let system = system(&module, &mapping(&module, name).system);
    let params = Params(sizes.iter().map(|(k, v)| (k.to_string(), *v)).collect());
    let reference = reference::find(&file.path, &system.name).expect("a reference");
    let inputs = to_interp(system, &seeded(&reference, &params));
    check_module(&module, name, sizes, fix, &GPU, &inputs)
}

fn check_module(
    module: &Module,
    name: &str,
    sizes: &[(&str, i64)],
    fix: &[&str],
    machine: &Machine,
    inputs: &Arrays,
) -> (Program, Counts) {
    let mapping = mapping(module, name);
    let system = system(module, &mapping.system);
    let params = Params(sizes.iter().map(|(k, v)| (k.to_string(), *v)).collect());
    let by_name: BTreeMap<String, i128> = sizes
        .iter()
        .map(|(k, v)| (k.to_string(), i128::from(*v)))
        .collect();
    let fix = Fix::Names(fix.iter().map(ToString::to_string).collect());
    let program = lower(module, mapping, &by_name, &fix, machine)
        .unwrap_or_else(|errors| panic!("{name}: {errors:?}"))
        .program;
    let values = ordered(system, &params);
    let want = run_system(system, &values, inputs).expect("a legal system");
    let mut counts = None;
    // In order they run with the rest of the gallery.
    for order in [Order::Reversed, Order::Shuffled(7)] {
        let options = Options {
            order,
            ..Options::default()
        };
        let got = run_kernel_program(&program, &values, inputs, &options)
            .unwrap_or_else(|e| panic!("{name} at {sizes:?}: {e}\n{program}"));
        assert!(got.outputs == want, "{name} at {sizes:?}\n{program}");
        counts = Some(got.counts);
    }
    (program, counts.expect("two runs"))
}

/// Bytes of the widest load and of the widest store of a program.
fn widest(program: &Program) -> (u32, u32) {
    let (mut loaded, mut stored) = (0, 0);
    for kernel in &program.kernels {
        let bytes = |values: &[systola_ir::ValueId]| -> u32 {
            let bits = values.iter().map(|v| kernel.values[v.index()].ty.bits());
            bits.sum::<u32>() / 8
        };
        walk(&kernel.body, &mut |stmt| match stmt {
            Stmt::LoadWide { to, .. } => loaded = loaded.max(bytes(to)),
            Stmt::StoreWide { values, .. } => stored = stored.max(bytes(values)),
            _ => {}
        });
    }
    (loaded, stored)
}

#[test]
fn four_pixels_of_four_channels_are_moved_at_once() {
    let text = include_str!("../../../../stencils/gaussian.ure");
    let module = systola_driver::load(text).expect("a program");
    let names = module.mappings.iter().map(|m| m.name.clone());
    for name in names.filter(|name| !name.starts_with("lines")) {
        // Rows that suit vector accesses and rows that do not; one tile, several, and fewer rows
        // than the filter has.
        for (n, m) in [(1, 1), (2, 124), (37, 123), (35, 244), (70, 129)] {
            let system = system(&module, &mapping(&module, &name).system);
            let input = &system.inputs[0];
            let u = Tensor::random(input.ty, &input.axes, &[i128::from(n), i128::from(m)], 3);
            let inputs = Arrays::from([("u".to_string(), u.expect("small"))]);
            let sizes = [("N", n), ("M", m)];
            let (program, _) = check_module(&module, &name, &sizes, &[], &GPU, &inputs);
            let bytes = if name.starts_with("pairs") { 8 } else { 16 };
            assert_eq!(widest(&program), (bytes, bytes), "{name}");
        }
    }
}

#[test]
fn columns_of_a_lane_are_loaded_and_stored_at_once() {
    let run = |c, q| {
        let sizes = [("R", 16), ("C", c), ("H", 3), ("Q", q)];
        check("conv2d/core.ure", "quads", &sizes, &["H", "Q"]).1
    };
    // One block of 4 warps with 4 rows and 128 columns each. Rows of 130 elements: 6 rows of the
    // image, each 2 + 2 + 2.
    let counts = run(128, 3);
    assert_eq!(counts[Event::Loads] - 4 * 9, 4 * 6 * 3);
    assert_eq!(counts[Event::Stores], 4 * 4);
    // Rows of 132: 4 + 4, and the outputs too.
    let counts = run(128, 5);
    assert_eq!(counts[Event::Loads] - 4 * 15, 4 * 6 * 2);
    assert_eq!(counts[Event::Stores], 4 * 4);
    // Odd rows: one by one, with an edge of one block in two.
    for (c, q) in [(127, 3), (129, 4), (131, 5), (1, 1), (256, 2), (260, 6)] {
        run(c, q);
    }
}

#[test]
fn rows_stream_through_registers() {
    let run = |mapping, r, c, k| {
        let sizes = [("R", r), ("C", c), ("H", k), ("Q", k)];
        check("conv2d/same.ure", mapping, &sizes, &["H", "Q"])
    };
    // The inner one of 3 x 3 tiles runs without tests.
    for (mapping, rows, columns, width) in [("stream", 128, 128, 4), ("walk64", 16, 64, 2)] {
        let (program, _) = run(mapping, 3 * rows, 3 * columns, 3);
        let kernel = &program.kernels[0];
        assert_eq!(kernel.warps, 4);
        assert!(kernel.shared.is_empty(), "{program}");
        let mut widths = Vec::new();
        walk(&kernel.body, &mut |stmt| match stmt {
            Stmt::LoadWide { to, .. } => widths.push(to.len()),
            Stmt::StoreWide { values, .. } => widths.push(values.len()),
            _ => {}
        });
        assert!(!widths.is_empty(), "{program}");
        assert!(widths.iter().all(|w| *w == width), "{widths:?}");
    }
    for mapping in [
        "quads",
        "stream",
        "walk",
        "tall",
        "halves",
        "quarters",
        "pairs",
        "walk64",
        "tall64",
        "halves64",
        "quarters64",
    ] {
        for (r, c, k) in [(5, 4, 2), (33, 127, 3), (20, 130, 5)] {
            run(mapping, r, c, k);
        }
    }
}

#[test]
fn outputs_of_a_lane_are_wide_in_one_dimension_too() {
    let run = |c, q| {
        let sizes = [("C", c), ("Q", q)];
        check("conv1d/core.ure", "quads", &sizes, &["Q"]).1
    };
    // One block of 4 warps: twice 4 + 4 elements and 4 outputs for each lane, 5 weights.
    let counts = run(1024, 5);
    assert_eq!(
        (counts[Event::Loads], counts[Event::Stores]),
        (4 * (4 + 5), 4 * 2)
    );
    for (c, q) in [(1, 1), (1023, 3), (1030, 7), (300, 2)] {
        run(c, q);
    }
}

#[test]
fn sweeps_stay_in_the_registers_of_a_warp() {
    // The last of these has a tile inside of the field in the middle one of three launches.
    for (t, n, m) in [(5, 70, 130), (9, 5, 245), (1, 1, 1), (9, 140, 248)] {
        let sizes = [("T", t), ("N", n), ("M", m)];
        let (program, counts) = check("stencil/heat2d.ure", "wide", &sizes, &[]);
        let kernel = &program.kernels[0];
        assert!(kernel.shared.is_empty(), "{program}");
        assert_eq!(counts[Event::Barriers], 0);
        // Three iterations unrolled, so that no register is moved.
        let mut steps = Vec::new();
        walk(&kernel.body, &mut |stmt| {
            if let Stmt::For { step, .. } = stmt {
                steps.push(*step);
            }
        });
        assert!(steps.contains(&3), "{program}");
    }
}

#[test]
fn warps_bring_tiles_of_a_product_together() {
    let run = |mapping, (n, m, k)| {
        let sizes = [("N", n), ("M", m), ("K", k)];
        check("linear-algebra/matmul_core.ure", mapping, &sizes, &[])
    };
    let (program, counts) = run("blocks", (128, 128, 32));
    assert_eq!(program.kernels[0].warps, 8);
    // Four iterations: 1024 elements of a and of b in 256 copies of 4, which is one copy of each of
    // 8 warps.
    assert_eq!(counts[Event::Copies], 4 * 2 * 8);
    // Of a, 4 neighbours for each of 16 rows, twice; of b, 4 neighbours in each of 8 rows.
    assert_eq!(counts[Event::Loads], 4 * 8 * (32 + 8));
    // The first iteration stores too, with a predicate that does not hold.
    assert_eq!(
        (counts[Event::Stores], counts[Event::BankConflicts]),
        (2 * 8 * 16, 0)
    );
    assert_eq!(counts[Event::Barriers], 4 * 8);
    // Two iterations: 2048 elements of a by columns, one by one, and as many of b in copies of 4.
    // Lanes as 4 by 8: at each of 32 steps of a twice 4 rows, of b twice 4 columns.
    let (program, counts) = run("squares", (128, 128, 32));
    assert_eq!(program.kernels[0].warps, 8);
    assert_eq!(
        (counts[Event::Copies], counts[Event::Loads]),
        (2 * (64 + 16), 32 * 8 * (2 + 2))
    );
    assert_eq!(counts[Event::BankConflicts], 0);
    for sizes in [(1, 1, 1), (130, 128, 9), (127, 132, 8), (5, 260, 3)] {
        run("blocks", sizes);
        run("squares", sizes);
    }
}

/// Values that move between warps: a stencil whose line of PEs is distributed over warps, and a
/// grid of PEs in which each row is a warp.
const BETWEEN_WARPS: &str = "
    system smooth(T, N) where T >= 1, N >= 1 {
      input x[N]: i32;
      index t in 0..T, i in 0..N;
      var X: i32 = select(t == 0, x[i],
          select(i == 0, 7, X(t - 1, i - 1)) + 3 * X(t - 1, i) + select(i == N - 1, 5, X(t - 1, i + 1)));
      output y[N]: i32 = X at [i] when t == T - 1;
    }
    mapping line of smooth {
      warp = i / L;
      lane = i % L;
      time = t;
    }
    mapping pairs of smooth {
      warp = i / (2*L);
      lane = i / 2 % L;
      reg = i % 2;
      time = t;
    }
    mapping later of smooth {
      warp = (i / (2*L), i / L % 2);
      lane = i % L;
      time = 2 * t + i;
    }
    system product(N, M, K) where N >= 1, M >= 1, K >= 1 {
      input a[N, K]: i32;
      input b[K, M]: i32;
      index i in 0..N, j in 0..M;
      var C: i32 = reduce(+, k in 0..K, a[i, k] * b[k, j]);
      output c[N, M]: i32 = C at [i, j];
    }
    mapping grid of product {
      warp = i;
      lane = j;
      time = i + j + k;
      forward a along (0, 1, 0);
      forward b along (1, 0, 0);
      sum C along k;
    }
    mapping migrating of product {
      warp = k;
      lane = j;
      time = i + k;
      forward b along (1, 0, 0);
      sum C along k;
    }";

#[test]
fn values_move_between_warps() {
    let module = systola_driver::load(BETWEEN_WARPS).expect("a module");
    let machine = Machine {
        most_lanes: 4,
        ..GPU
    };
    let tensor = |shape: &[i64]| {
        let n = shape.iter().product::<i64>() as i32;
        let data: Vec<i32> = (0..n).map(|k| k * k % 23 - 11).collect();
        Tensor::new(shape.iter().map(|s| *s as usize).collect(), data).expect("its own shape")
    };
    for n in [1, 3, 4, 5, 8, 13, 16] {
        let inputs = Arrays::from([("x".into(), tensor(&[n]))]);
        for name in ["line", "pairs", "later"] {
            let sizes = [("T", 5), ("N", n)];
            let all = ["T", "N"];
            let (program, counts) = check_module(&module, name, &sizes, &all, &machine, &inputs);
            let wide = if name == "pairs" { 8 } else { 4 };
            let warps = (n + wide - 1) / wide;
            let kernel = &program.kernels[0];
            assert!(i64::from(kernel.warps) >= warps, "{program}");
            assert!(counts[Event::Barriers] > 0 || n <= wide, "{program}");
        }
    }
    for (n, m, k) in [(1, 1, 1), (3, 4, 5), (8, 9, 2), (2, 5, 8)] {
        let inputs = Arrays::from([("a".into(), tensor(&[n, k])), ("b".into(), tensor(&[k, m]))]);
        for name in ["grid", "migrating"] {
            let sizes = [("N", n), ("M", m), ("K", k)];
            let all = ["N", "M", "K"];
            let (program, _) = check_module(&module, name, &sizes, &all, &machine, &inputs);
            let warps = if name == "grid" { n } else { k };
            assert_eq!(i64::from(program.kernels[0].warps), warps, "{program}");
        }
    }
}

/// Lanes that walk down rows: each element of x is read by the lane of its row.
const ROWS: &str = "
    system sums(N, M) where N >= 1, M >= 1 {
      input x[N, M]: f32 else 0;
      index i in 0..N;
      var S: f32 = reduce(+, j in 0..M, x[i, j] + x[i, j + 1]);
      output s[N]: f32 = S at [i];
    }
    mapping once of sums {
      tile i by 2*L as (bi, ii);
      block = bi;
      warp = ii / L;
      lane = ii % L;
      time = j;
      transfer x to shared at bi by cp_async;
      sum S along j;
    }";

/// Windows of 32 columns, and how they are copied.
const WINDOWS: [(&str, &str); 5] = [
    ("plain", "layout plain"),
    ("chosen", ""),
    ("swizzled", "stages 2 layout rotate by cp_async"),
    ("columns", "stages 2 layout columns by cp_async"),
    ("padded", "stages 3 layout pad 1"),
];

fn rows() -> String {
    let mapping = |(name, how): (&str, &str)| {
        format!(
            "
    mapping {name} of sums {{
      tile i by 4*L as (bi, ii);
      tile j by 31 as (bj, jj);
      block = bi;
      warp = ii / L;
      lane = ii % L;
      time = (bj, jj);
      transfer x to shared at bj {how};
      sum S along j;
    }}"
        )
    };
    ROWS.to_string() + &WINDOWS.map(mapping).concat()
}

#[test]
fn windows_have_the_layout_and_the_stages_that_are_asked_for() {
    let module = systola_driver::load(&rows()).expect("a module");
    let run = |name, n, m| {
        let data: Vec<f32> = (0..n * m).map(|k| (k * k % 23) as f32).collect();
        let x = Tensor::new(vec![n as usize, m as usize], data).expect("its own shape");
        let inputs = Arrays::from([("x".into(), x)]);
        check_module(&module, name, &[("N", n), ("M", m)], &[], &GPU, &inputs)
    };
    // A window of 32 columns in rows of 32, and in rows of 33.
    let (program, plain) = run("plain", 128, 124);
    assert_eq!(program.kernels[0].shared[0].extents.len(), 2);
    let (program, padded) = run("padded", 128, 124);
    let extents = &program.kernels[0].shared[0].extents;
    let extents: Vec<_> = extents.iter().map(|e| e.as_constant()).collect();
    assert_eq!(extents, [Some(3), Some(128), Some(33)]);
    assert!(
        padded[Event::BankConflicts] * 3 < plain[Event::BankConflicts],
        "{} and {}",
        padded[Event::BankConflicts],
        plain[Event::BankConflicts]
    );
    let barriers = (plain[Event::Barriers], padded[Event::Barriers]);
    let (_, chosen) = run("chosen", 128, 124);
    let (_, swizzled) = run("swizzled", 128, 124);
    let (program, columns) = run("columns", 128, 124);
    let extents = &program.kernels[0].shared[0].extents;
    let extents: Vec<_> = extents.iter().map(|e| e.as_constant()).collect();
    assert_eq!(extents, [Some(2), Some(32), Some(132)]);
    let conflicts = [plain, swizzled, chosen].map(|c| c[Event::BankConflicts]);
    assert!(conflicts.is_sorted_by(|a, b| a >= b), "{conflicts:?}");
    assert_eq!(columns[Event::BankConflicts], 0);
    // Four iterations each: two barriers around a window, or one before each iteration.
    assert_eq!(barriers, (4 * 4 * 2, 4 * 4));
    for (n, m) in [(1, 1), (130, 31), (127, 33), (64, 65), (257, 30)] {
        for name in WINDOWS.map(|(name, _)| name).into_iter().chain(["once"]) {
            run(name, n, m);
        }
    }
}
