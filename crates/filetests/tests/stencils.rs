//! Stencils as machine code, of this CPU and of OpenCL devices: mappings that were written for
//! systems of the gallery, on systems written by the front end.

#[path = "gallery/devices.rs"]
mod devices;

use std::collections::BTreeMap;

use devices::device;
use systola::interp::compare::compare;
use systola::interp::{Arrays, Data, Tensor, expect_system, run_system};
use systola::ir::system::Module;
use systola::{OpenClOptions, RunOptions, compile, compile_opencl, load};
use systola_driver::{Fix, Machine, Simd, lower};
use systola_filetests::quick_cpu;
use systola_filetests::ways::all_wanted;
use systola_ir::kernel::visit::walk;
use systola_ir::kernel::{Program, Stmt, VarKind};

/// A CPU with vectors of 64 bytes.
const CPU: Machine = Machine::cpu(Simd::Avx512);

const BOUNDARIES: [&str; 7] = [
    "interior",
    "fixed",
    "constant 0.5",
    "clamp",
    "mirror",
    "reflect",
    "wrap",
];

/// Sweeps in the registers of a warp, as in gallery/stencil/drift2d.ure.
const SMALL: &str = "mapping m of s {
  tile t by 4 as (tl, s);
  tile y by 16 as (by, yy) overlap (5, 3);
  tile x by 56 as (bx, xx) overlap (4, 4);
  launch = tl;
  block = (by, bx);
  lane = (xx + 4) / 2;
  reg = (xx + 4) % 2;
  time = (yy + s, s);
}";

/// The same with two rows between sweeps, as in gallery/stencil/star2.ure.
const FAR: &str = "mapping m of s {
  tile t by 4 as (tl, s);
  tile y by 20 as (by, yy) overlap (10, 6);
  tile x by 112 as (bx, xx) overlap (8, 8);
  launch = tl;
  block = (by, bx);
  lane = (xx + 8) / 4;
  reg = (xx + 8) % 4;
  time = (yy + 2*s, s);
}";

/// Tiles that overlap around a torus.
const AROUND: &str = "mapping m of s {
  tile t by 4 as (tl, s);
  tile y by 16 as (by, yy) overlap (3, 3) periodic;
  tile x by 56 as (bx, xx) overlap (4, 4) periodic;
  launch = tl;
  block = (by, bx);
  lane = (xx + 4) / 2;
  reg = (xx + 4) % 2;
  time = (yy + s, s);
}";

/// One sweep in a launch, which every boundary condition allows.
const SWEEP: &str = "mapping m of s {
  tile x by 14 as (bx, xx) overlap (1, 1);
  launch = t;
  block = bx;
  lane = xx + 1;
  time = y;
}";

/// Planes in registers, two sweeps in a launch.
const PLANES: &str = "mapping m of s {
  tile t by 2 as (tl, s);
  tile y by 4 as (by, yy) overlap (2, 2);
  tile x by 24 as (bx, xx) overlap (4, 4);
  launch = tl;
  block = (by, bx);
  lane = (xx + 4) / 4;
  reg = (yy + 2, (xx + 4) % 4);
  time = (z + s, s);
}";

/// The same, where the rows of a plane are distributed over the warps of a block, which exchange
/// the rows at their sides.
const EXCHANGED: &str = "mapping m of s {
  tile t by 2 as (tl, s);
  tile y by 12 as (by, yy) overlap (2, 2);
  tile x by 28 as (bx, xx) overlap (2, 2);
  launch = tl;
  block = (by, bx);
  warp = (yy + 2) / 4;
  lane = xx + 2;
  reg = (yy + 2) % 4;
  time = (z + 2*s, s);
}";

/// Compiles the mapping `m` of a module for some sizes, and runs it.
type Run<'r> = dyn Fn(&Module, &[(&str, i64)], &[i128], &Arrays) -> Result<Arrays, String> + 'r;

fn on_cpu(
    module: &Module,
    named: &[(&str, i64)],
    params: &[i128],
    inputs: &Arrays,
) -> Result<Arrays, String> {
    let code = compile(module, "m", named, &quick_cpu()).map_err(|e| e.to_string())?;
    let ran = code.run_tensors(params, inputs, &RunOptions { threads: 2 });
    ran.map(|(found, _)| found).map_err(|e| e.to_string())
}

fn check(stencil: &str, mapping: &str, sizes: &[&[i128]]) {
    check_on(&on_cpu, stencil, mapping, sizes);
}

fn check_on(run: &Run<'_>, stencil: &str, mapping: &str, sizes: &[&[i128]]) {
    let text = format!("{stencil}\n{mapping}\n");
    let module = load(&text).unwrap_or_else(|e| panic!("{text}\n{e:#?}"));
    let system = &module.systems[0];
    for params in sizes {
        let named: Vec<(&str, i64)> = (system.params.iter().zip(*params))
            .map(|(p, n)| (p.name.as_str(), i64::try_from(*n).unwrap_or(i64::MAX)))
            .collect();
        let inputs: Arrays = (system.inputs.iter().enumerate())
            .map(|(n, input)| {
                let seed = 100 + n as u64;
                let tensor = Tensor::random(input.ty, &input.axes, params, seed);
                (
                    input.name.clone(),
                    tensor.unwrap_or_else(|e| panic!("{e:?}")),
                )
            })
            .collect();
        let expect = expect_system(system, params, &inputs).unwrap_or_else(|e| panic!("{text}{e}"));
        let found = run(&module, &named, params, &inputs);
        let found = found.unwrap_or_else(|e| panic!("{text}{system}{e}"));
        for line in compare(&expect, &found) {
            line.unwrap_or_else(|e| panic!("{text}{params:?}\n{e}"));
        }
    }
}

fn star(boundary: &str) -> String {
    format!(
        "stencil s(N, M, T) {{
  field u[N, M]: f32 {boundary};
  steps T;
  u = 0.15*u[-1, 0] + 0.5*u + 0.11*u[0, -1] + 0.14*u[0, 1] + 0.1*u[1, 0];
}}"
    )
}

#[test]
fn the_wavefront_takes_every_boundary_that_does_not_go_around() {
    for boundary in BOUNDARIES.into_iter().filter(|b| *b != "wrap") {
        check(&star(boundary), SMALL, &[&[19, 131, 5], &[37, 57, 9]]);
    }
}

/// Periodic extents that are no multiple of a tile, one that is, and the smallest that four sweeps
/// allow.
const RINGS: &[&[i128]] = &[&[19, 131, 5], &[32, 56, 9], &[4, 5, 8]];

#[test]
fn the_wavefront_goes_around() {
    check(&star("wrap"), AROUND, RINGS);
    let hexagon = "stencil s(N, M, T) {
  field u[N, M]: f32 wrap;
  steps T;
  u = 0.4*u + 0.1*(u[0, 1] + u[0, -1] + u[1, 0] + u[-1, 0] + u[1, 1] + u[-1, -1]);
}";
    check(hexagon, AROUND, RINGS);
    let life = "stencil s(N, M, T) {
  field u[N, M]: u8 wrap;
  steps T;
  u = let around = sum(u over box 1 except box 0); select(around == 3 || (around == 2 && u == 1), 1, 0);
}";
    check(life, AROUND, &RINGS[..1]);
}

#[test]
fn rings_of_a_gpu_and_of_one_dimension() {
    let line = "stencil s(N, T) {
  field u[N]: f32 wrap;
  field c[N]: f32 wrap;
  steps T;
  u = u + 0.2*c*(u[-2] - 2*u + u[1]) + 0.01*c[1];
}
mapping m of s {
  tile t by 3 as (tl, s);
  tile x by 24 as (bx, xx) overlap (4, 2) periodic;
  launch = tl;
  block = bx;
  lane = xx + 4;
  time = s;
}";
    let on_gpu = |module: &Module, named: &[(&str, i64)], params: &[i128], inputs: &Arrays| {
        let sizes = named
            .iter()
            .map(|(n, v)| ((*n).to_string(), i128::from(*v)));
        let sizes: BTreeMap<String, i128> = sizes.collect();
        let mapping = &module.mappings[0];
        let lowered = lower(module, mapping, &sizes, &Fix::Nothing, &Machine::cuda());
        let lowered = lowered.map_err(|e| e[0].to_string())?;
        let options = systola::interp::kernel::Options::default();
        let run = systola::interp::kernel::run_kernel_program;
        let ran = run(&lowered.program, params, inputs, &options);
        ran.map(|ran| ran.outputs).map_err(|e| e.to_string())
    };
    check_on(&on_gpu, line, "", &[&[100, 7], &[48, 6], &[6, 4]]);
    check_on(&on_gpu, &star("wrap"), AROUND, &RINGS[..1]);
}

/// A periodic extent that a launch reaches around is refused, not computed wrongly.
#[test]
fn a_ring_is_as_long_as_a_launch_reaches() {
    let text = format!("{}\n{AROUND}", star("wrap"));
    let module = load(&text).expect("it loads");
    let sizes = [("N", 3), ("M", 40), ("T", 8)];
    let sizes = sizes.map(|(n, v)| (n.to_string(), v)).into();
    let refused = lower(&module, &module.mappings[0], &sizes, &Fix::Nothing, &CPU);
    let refused = refused.expect_err("the ring is short");
    assert_eq!(refused[0].code.id, "L0714", "{refused:?}");
}

#[test]
fn one_sweep_in_a_launch_takes_every_boundary() {
    for boundary in BOUNDARIES {
        check(&star(boundary), SWEEP, &[&[13, 31, 3]]);
    }
}

#[test]
fn two_rows_between_sweeps() {
    for boundary in ["fixed", "reflect"] {
        let stencil = format!(
            "stencil s(N, M, T) {{ field u[N, M]: f32 {boundary}; input w[9]: f32; steps T; u = 0.2*sum(w * u over star 2); }}"
        );
        check(&stencil, FAR, &[&[33, 131, 6]]);
    }
}

#[test]
fn fields_that_need_each_other() {
    let wave = "stencil s(N, M, T) {
  field u[N, M]: f32 mirror;
  field v[N, M]: f32 mirror;
  steps T;
  u = 2*u - v + 0.25*(sum(u over star 1) - 5*u);
  v = u;
}";
    check(wave, SMALL, &[&[21, 61, 6]]);
    let life = "stencil s(N, M, T) {
  field u[N, M]: u8 constant 0;
  steps T;
  u = let three = sum(u over box 1); select(three == 3 || (three == 4 && u == 1), 1, 0);
}";
    check(life, SWEEP, &[&[21, 61, 6]]);
}

#[test]
fn planes_in_registers() {
    for boundary in ["fixed", "clamp"] {
        let stencil = format!(
            "stencil s(K, N, M, T) {{ field u[K, N, M]: f32 {boundary}; steps T; u = 0.4*u + 0.1*(sum(u over star 1) - u); }}"
        );
        check(&stencil, PLANES, &[&[7, 9, 30, 3]]);
    }
}

#[test]
fn planes_whose_rows_warps_exchange() {
    for boundary in ["fixed", "constant 0.5", "reflect"] {
        let stencil = format!(
            "stencil s(K, N, M, T) {{ field u[K, N, M]: f32 {boundary}; steps T; u = 0.4*u + 0.1*(sum(u over star 1) - u); }}"
        );
        check(&stencil, EXCHANGED, &[&[7, 29, 37, 5]]);
    }
}

#[test]
fn three_sums_in_a_row_within_one_step() {
    let chain = "stencil s(N, M) {
  field u[N, M]: i32 clamp;
  var A: i32 clamp = u[-1, 0] + u[1, 0];
  var B: i32 mirror = A[0, -2] + A + 3*A[0, 2];
  u = B[0, -1] - B + A[0, 1];
}";
    let mapping = "mapping m of s {
  tile y by 8 as (by, yy);
  tile x by 4*L - 5 as (bx, xx) overlap (3, 2);
  block = (by, bx);
  lane = (xx + 3) / 2;
  reg = (xx + 3) % 2;
  time = yy;
  broadcast A;
  broadcast B;
}";
    check(chain, mapping, &[&[1, 2], &[13, 31], &[16, 64], &[9, 131]]);
}

/// The edges of a clamped field give a loop several bounds. ptxas 13.0 took the greatest of `1 -
/// N`, `-N`, `-N - 1` for N.
#[test]
fn no_bound_of_a_loop_is_another_one_and_a_number() {
    let text = include_str!("../../../stencils/2d13pt.ure").replace("fixed", "clamp");
    let program = lowered(&text, "waves", &Machine::cuda());
    let mut bounds = 0;
    for kernel in &program.kernels {
        walk(&kernel.body, &mut |stmt| {
            if let Stmt::For { lo, hi, .. } = stmt {
                for list in [lo, hi] {
                    bounds = bounds.max(list.len());
                    for (n, a) in list.iter().enumerate() {
                        let mut others = list[n + 1..].iter();
                        let same = others.find(|b| a.sub(b).as_constant().is_some());
                        assert_eq!(same, None, "{list:?}");
                    }
                }
            }
        });
    }
    assert!(bounds > 1, "a loop at an edge has bounds of both");
}

/// Most sizes of the proofs are smaller than a strip; nevertheless interior blocks have a path
/// without tests.
#[test]
fn blocks_in_strips_have_a_path_inside() {
    let text = include_str!("../../../stencils/3d7pt.ure");
    for (name, params) in [("rows_cpu", vec![384; 3]), ("planes_cpu", vec![384; 4])] {
        let program = lowered(text, name, &CPU);
        for kernel in &program.kernels {
            let branch = kernel.body.iter().find_map(|stmt| match stmt {
                Stmt::If { cond, .. } => Some(cond),
                _ => None,
            });
            let inside = branch.unwrap_or_else(|| panic!("{name} has one path"));
            // The second strip, planes in the middle, and every row but the first and the last of
            // the strip.
            for row in 1..95 {
                let block: Vec<i128> = kernel
                    .vars
                    .iter()
                    .scan(0, |n, var| {
                        let is_block = matches!(var.kind, VarKind::Block { .. });
                        let value = if is_block { [1, 20, row][*n] } else { 0 };
                        *n += usize::from(is_block);
                        Some(value)
                    })
                    .collect();
                assert_eq!(
                    inside.eval(&params, &block),
                    Ok(true),
                    "{name}, row {row}: {inside:?}"
                );
            }
        }
    }
}

/// Only the vectors at the ends of a row are masked, in interior blocks and in edge blocks.
#[test]
fn vectors_between_the_ends_of_rows_are_not_masked() {
    let program = lowered(
        include_str!("../../../stencils/3d7pt.ure"),
        "rows_cpu",
        &CPU,
    );
    let kernel = &program.kernels[0];
    let lane = kernel.lane().expect("rows are cut into vectors");
    let masked = |list: &[Stmt]| {
        let mut masked = 0;
        walk(list, &mut |stmt| {
            let access = stmt.global_load().map(|(from, _)| from);
            let forms = access.map(|from| from.when.forms()).unwrap_or_default();
            masked += usize::from(forms.into_iter().any(|f| f.dims().contains(&lane)));
        });
        masked
    };
    let mut rows = 0;
    walk(&kernel.body, &mut |stmt| {
        let Stmt::For { body, .. } = stmt else { return };
        let [
            ..,
            Stmt::If {
                then, otherwise, ..
            },
        ] = body.as_slice()
        else {
            panic!("an iteration has one path: {body:?}");
        };
        rows += 1;
        assert_eq!(masked(then), 0);
        assert!(masked(otherwise) > 0);
    });
    assert_eq!(rows, 2, "one loop inside and one at the edge");
}

/// If iterations of a wavefront are unrolled, the rows of an edge block that are far from the edge
/// still have a loop of their own.
#[test]
fn unrolled_wavefronts_at_an_edge_are_multiversioned() {
    let text = include_str!("../../../stencils/2d9pt.ure");
    let unroll = "  unroll time by 2;\n";
    assert!(text.contains(unroll));
    let [unrolled, plain] = [text.to_string(), text.replace(unroll, "")].map(|text| {
        let program = lowered(&text, "waves", &Machine::cuda());
        let mut loops = Vec::new();
        for kernel in &program.kernels {
            walk(&kernel.body, &mut |stmt| {
                if let Stmt::If { otherwise, .. } = stmt {
                    let is_loop = |s: &&Stmt| matches!(s, Stmt::For { .. });
                    loops.push(otherwise.iter().filter(is_loop).count());
                }
            });
        }
        loops.retain(|n| *n > 0);
        loops
    });
    // For each kernel: interior blocks whose rows are not aligned, and edge blocks. If iterations
    // are not unrolled, an interior block tests its stores in one loop; if they are, there are
    // three loops and a remainder loop.
    assert_eq!(plain, [1, 3, 1, 3]);
    assert_eq!(unrolled, [4, 3, 4, 3]);
}

fn lowered(text: &str, mapping: &str, machine: &Machine) -> Program {
    let module = load(text).unwrap_or_else(|e| panic!("{e:#?}"));
    let mapping = module.mappings.iter().find(|m| m.name == mapping);
    let mapping = mapping.expect("a mapping of this name");
    let lowered = lower(&module, mapping, &BTreeMap::new(), &Fix::Nothing, machine);
    lowered.unwrap_or_else(|e| panic!("{e:#?}")).program
}

/// `stencils/gaussian.ure` with one of its mappings as `m`.
fn gaussian(mapping: &str) -> Module {
    let text = include_str!("../../../stencils/gaussian.ure");
    let mut module = load(text).unwrap_or_else(|e| panic!("{e:#?}"));
    module.mappings.retain(|m| m.name == mapping);
    module.mappings[0].name = "m".to_string();
    let system = module.mappings[0].system.clone();
    module.systems.retain(|s| s.name == system);
    module
}

/// The sums as plain loops, and the inputs of the two programs.
fn blurred(n: usize, m: usize, pixels: &[u8]) -> Vec<u8> {
    const WEIGHTS: [u32; 5] = [1, 4, 6, 4, 1];
    let near = |at: usize, by: usize, len: usize| (at + by).saturating_sub(2).min(len - 1);
    let mut out = Vec::new();
    for at in 0..n * m * 4 {
        let (i, j, c) = (at / (4 * m), at / 4 % m, at % 4);
        let mut sum = 128;
        for (p, v) in WEIGHTS.iter().enumerate() {
            for (q, w) in WEIGHTS.iter().enumerate() {
                let pixel = near(i, p, n) * m + near(j, q, m);
                sum += v * w * u32::from(pixels[4 * pixel + c]);
            }
        }
        out.push((sum / 256) as u8);
    }
    out
}

#[test]
fn a_gaussian_of_bytes_and_of_words() {
    for (n, m) in [(1, 1), (2, 3), (5, 130), (19, 61)] {
        // White corners are where a sum is as large as it gets.
        let pixels: Vec<u8> = (0..n * m * 4)
            .map(|k| {
                if k < 16 {
                    255
                } else {
                    (k * k / 3 + 41 * k) as u8
                }
            })
            .collect();
        let expect = blurred(n, m, &pixels);
        let (params, sizes) = ([n as i128, m as i128], [("N", n as i64), ("M", m as i64)]);
        let tensor = |shape: &[usize], data: Data| Tensor {
            lo: vec![0; shape.len()],
            shape: shape.to_vec(),
            data,
        };
        let bytes = |bytes: &[u8]| tensor(&[n, m, 4], Data::U8(bytes.to_vec()));
        let words = |bytes: &[u8]| {
            let words = bytes.chunks_exact(4);
            let words = words.map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]]));
            tensor(&[n, m], Data::U32(words.collect()))
        };
        for (mapping, given, expect) in [
            ("lines", bytes(&pixels), bytes(&expect)),
            ("lines_words", words(&pixels), words(&expect)),
        ] {
            let module = gaussian(mapping);
            let inputs = Arrays::from([("u".to_string(), given)]);
            let meant = run_system(&module.systems[0], &params, &inputs);
            let meant = meant.unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(meant["u'"], expect, "{mapping} at {n} x {m}");
            let found = on_cpu(&module, &sizes, &params, &inputs);
            assert_eq!(
                found.unwrap_or_else(|e| panic!("{e}"))["u'"],
                expect,
                "{mapping}"
            );
        }
    }
}

fn check_on_device(device: usize, stencil: &str, mapping: &str, sizes: &[&[i128]]) {
    let run = |module: &Module, named: &[(&str, i64)], params: &[i128], inputs: &Arrays| {
        let options = OpenClOptions {
            device,
            lanes: Some(32),
            ..OpenClOptions::new()
        };
        let code = compile_opencl(module, "m", named, &options).map_err(|e| e.to_string())?;
        let ran = code.run_tensors(params, inputs);
        ran.map(|(found, _)| found).map_err(|e| e.to_string())
    };
    check_on(&run, stencil, mapping, sizes);
}

/// Boundary conditions that one of the two devices takes; the other one takes the others.
fn boundaries_of(device: usize) -> impl Iterator<Item = &'static str> {
    let all = BOUNDARIES.into_iter().enumerate();
    let taken = all.filter(move |(n, _)| n % 2 == device || all_wanted());
    taken.map(|(_, boundary)| boundary)
}

#[test]
fn opencl_with_sub_groups() {
    let Some(device) = device("with sub-groups", |info| info.shuffles.is_some()) else {
        return;
    };
    for boundary in boundaries_of(0) {
        check_on_device(device, &star(boundary), SWEEP, &[&[13, 31, 3]]);
    }
    for boundary in ["fixed", "clamp"] {
        check_on_device(device, &star(boundary), SMALL, &[&[19, 131, 5]]);
    }
    let unrolled = SMALL.replace("\n}", "\n  unroll time by 2;\n}");
    check_on_device(device, &star("fixed"), &unrolled, &[&[67, 131, 6]]);
    let planes = "stencil s(K, N, M, T) { field u[K, N, M]: f32 fixed; steps T; u = 0.4*u + 0.1*(sum(u over star 1) - u); }";
    check_on_device(device, planes, PLANES, &[&[7, 9, 30, 3]]);
}

/// PoCL compiles wavefronts for minutes; the gallery has one that it takes.
#[test]
fn opencl_without_sub_groups() {
    let Some(device) = device("without sub-groups", |info| info.shuffles.is_none()) else {
        return;
    };
    for boundary in boundaries_of(1) {
        check_on_device(device, &star(boundary), SWEEP, &[&[13, 31, 3]]);
    }
}
