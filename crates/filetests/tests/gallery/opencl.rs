//! Mappings of the gallery on the OpenCL devices of this machine, against the equations of their
//! systems.
//!
//! `cargo xtask test` sets up two implementations and sets `SYSTOLA_OPENCL_DEVICES`; then both are
//! required: one with sub-groups, whose links are shuffles, and one without, whose links go through
//! local memory. Elsewhere the test runs on the available devices and prints what is missing;
//! `SYSTOLA_OPENCL_DEVICES=0` skips it.
//!
//! Compilers of OpenCL are slow, so each mapping runs on at most one of them ([`Way`]), and on the
//! slower one, without sub-groups, fewer do.

use std::time::Instant;

use systola::opencl::compile_opencl;
use systola::rt::opencl::OpenClCompileOptions;
use systola::{OpenClCompiled, OpenClOptions};
use systola_driver::opencl::{Features, Links};
use systola_driver::{Fix, lower, opencl_machine};
use systola_filetests::gallery::{self, File};
use systola_filetests::reference;
use systola_filetests::tensor::Params;
use systola_filetests::ways::Way;
use systola_interp::kernel::{Options, run_kernel_program};
use systola_interp::{Arrays, run_system};
use systola_ir::kernel::visit::walk;
use systola_ir::kernel::{Program, Shared, Stmt};
use systola_ir::mapping::Mapping;
use systola_ir::system::Module;

use crate::devices::device;
use crate::suite::{Seen, Target, differs, run_suite_alone};
use crate::support::{ordered, parse, seeded, sizes, system, to_interp};

struct OpenCl {
    device: usize,
    way: Way,
    /// Lanes of a warp, used cyclically.
    lanes: &'static [u32],
    /// Of the mappings that are not the first of a file, one in this many is compiled in time.
    one_of: u64,
    /// Mappings that take too long to compile here.
    left_out: &'static [(&'static str, &'static str)],
    /// Options of the device's compiler.
    flags: &'static [&'static str],
}

impl Target for OpenCl {
    type Code = OpenClCompiled;

    fn takes(&self, file: &File, mapping: &Mapping, n: usize) -> bool {
        let name = (file.path.as_str(), mapping.name.as_str());
        if self.left_out.contains(&name) || !self.way.takes(name.0, name.1) {
            return false;
        }
        let before = n.saturating_sub(1);
        let all_before = self.left_out.iter().filter(|(f, _)| *f == file.path);
        n == 0 || all_before.count() > before || draw(name).is_multiple_of(self.one_of)
    }

    fn compile(
        &self,
        module: &Module,
        mapping: &Mapping,
        n: usize,
        params: &Params,
    ) -> Result<OpenClCompiled, String> {
        let named: Vec<(&str, i64)> = params.0.iter().map(|(k, v)| (k.as_str(), *v)).collect();
        let options = OpenClOptions {
            device: self.device,
            lanes: Some(self.lanes[n % self.lanes.len()]),
            compile: OpenClCompileOptions {
                flags: self.flags.iter().map(|flag| (*flag).to_string()).collect(),
                ..OpenClCompileOptions::default()
            },
            ..OpenClOptions::new()
        };
        let start = Instant::now();
        let made = compile_opencl(module, &mapping.name, &named, &options);
        print_if_slow(&mapping.name, start);
        made.map_err(|e| e.to_string())
    }

    fn program<'c>(&self, code: &'c OpenClCompiled) -> &'c Program {
        code.program()
    }

    fn source<'c>(&self, code: &'c OpenClCompiled) -> &'c str {
        &code.source
    }

    /// A kernel for one size only takes as long to compile as one for all.
    fn most_sizes(&self) -> (usize, usize) {
        (usize::MAX, 1)
    }

    fn run(
        &self,
        code: &OpenClCompiled,
        _: usize,
        params: &[i128],
        inputs: &Arrays,
    ) -> Result<Arrays, String> {
        // Some devices compile at the first launch.
        let start = Instant::now();
        let ran = code.run_tensors(params, inputs);
        print_if_slow(&code.program().kernels[0].name, start);
        ran.map(|(got, _)| got).map_err(|error| error.to_string())
    }
}

/// PoCL compiles each of these for more than a quarter of a minute.
const SLOW: [(&str, &str); 6] = [
    ("conv2d/same.ure", "halves"),
    ("conv2d/same.ure", "quarters"),
    ("linear-algebra/matmul_core.ure", "blocks"),
    ("linear-algebra/matmul_core.ure", "shared"),
    ("linear-algebra/matmul_core.ure", "squares"),
    ("stencil/drift2d.ure", "small"),
];

/// Prints what takes long.
fn print_if_slow(what: &str, start: Instant) {
    let seconds = start.elapsed().as_secs_f64();
    if seconds > 4.0 {
        println!("{what}: {seconds:.1} s");
    }
}

/// A number that depends on the names alone.
fn draw((file, mapping): (&str, &str)) -> u64 {
    let mut number = 0xcbf2_9ce4_8422_2325u64;
    for byte in file.bytes().chain([0]).chain(mapping.bytes()) {
        number = (number ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    }
    number >> 32
}

fn check(seen: &Seen, mappings: usize) {
    assert!(seen.mappings >= mappings, "{} mappings", seen.mappings);
    assert!(seen.runs > 3 * seen.mappings, "{} runs", seen.runs);
}

#[test]
fn sub_groups_compute_what_the_systems_compute() {
    let Some(device) = device("with sub-groups", |info| info.shuffles.is_some()) else {
        return;
    };
    let seen = run_suite_alone(&OpenCl {
        device,
        way: Way::OpenClSubGroups,
        lanes: &[8, 16, 32],
        one_of: 1,
        left_out: &[],
        // The stencils and the random programs are compiled with optimisation.
        flags: &["-cl-opt-disable"],
    });
    check(&seen, 110);
}

#[test]
fn links_through_memory_compute_what_the_systems_compute() {
    let Some(device) = device("without sub-groups", |info| info.shuffles.is_none()) else {
        return;
    };
    let seen = run_suite_alone(&OpenCl {
        device,
        way: Way::OpenClLocalMemory,
        lanes: &[8, 16],
        one_of: 4,
        left_out: &SLOW,
        // Without optimisation PoCL 3.1 computes wrong scans.
        flags: &[],
    });
    check(&seen, 25);
}

/// Links through local memory, with barriers that all warps reach, are still the same kernel: in
/// the interpreter too, which also finds races and checks every access.
#[test]
fn links_through_memory_are_the_same_kernel() {
    let machine = |waits_in_branches: bool| {
        let features = Features {
            links: Links::SharedMemory { waits_in_branches },
            ..Features::usual()
        };
        opencl_machine(&features, 8, 32 << 10)
    };
    let mut rewritten = 0;
    for file in gallery::files() {
        let module = parse(&file);
        let Some(mapping) = module.mappings.last() else {
            continue;
        };
        let system = system(&module, &mapping.system);
        let reference = reference::find(&file.path, &system.name).expect("a reference");
        let all = sizes(&reference, system, None);
        let Some(params) = all.iter().nth(all.len() / 2) else {
            continue;
        };
        let named = params.0.iter().map(|(k, v)| (k.clone(), i128::from(*v)));
        let named = named.collect();
        let values = ordered(system, params);
        let inputs = to_interp(system, &seeded(&reference, params));
        let want = run_system(system, &values, &inputs).expect("a legal system");
        for in_branches in [true, false] {
            let machine = machine(in_branches);
            let lowered = lower(&module, mapping, &named, &Fix::Nothing, &machine);
            let Ok(lowered) = lowered else { continue };
            let program = lowered.program;
            for kernel in &program.kernels {
                walk(&kernel.body, &mut |stmt| {
                    if let Stmt::Let(_, op) = stmt {
                        assert!(!op.effects().crosses_lanes, "{program}");
                    }
                });
                let sent = |shared: &Shared| shared.name.starts_with("sent_");
                rewritten += usize::from(kernel.shared.iter().any(sent));
            }
            let context = format!("{}: {} at {params:?}", file.path, mapping.name);
            assert_eq!(
                program.verify(),
                Vec::<String>::new(),
                "{context}\n{program}"
            );
            let got = run_kernel_program(&program, &values, &inputs, &Options::default());
            let got = got.unwrap_or_else(|e| panic!("{context}: {e}\n{program}"));
            assert_eq!(differs(&got.outputs, &want), None, "{context}\n{program}");
        }
    }
    assert!(rewritten > 40, "{rewritten}");
}

/// Small inputs can be passed by value; inputs that are too large for that are passed as pointers.
#[test]
fn inputs_by_value_are_the_same_inputs() {
    let kinds = [("with sub-groups", true), ("without sub-groups", false)];
    for (what, shuffles) in kinds {
        let Some(device) = device(what, |info| info.shuffles.is_some() == shuffles) else {
            continue;
        };
        for (path, name) in [("conv2d/same.ure", "quads"), ("conv2d/core.ure", "sbm")] {
            by_value(device, path, name);
        }
    }
}

fn by_value(device: usize, path: &str, name: &str) {
    let files = gallery::files();
    let file = files.iter().find(|file| file.path == path).expect("a file");
    let module = parse(file);
    let mapping = module.mappings.iter().find(|m| m.name == name);
    let mapping = mapping.expect("a mapping of this name");
    let system = system(&module, &mapping.system);
    let reference = reference::find(&file.path, &system.name).expect("a reference");
    let all = sizes(&reference, system, None);
    let params = all.iter().nth(all.len() / 2).expect("sizes");
    let named: Vec<(&str, i64)> = params.0.iter().map(|(k, v)| (k.as_str(), *v)).collect();
    let values = ordered(system, params);
    let inputs = to_interp(system, &seeded(&reference, params));
    let want = run_system(system, &values, &inputs).expect("a legal system");
    for (bytes, is_value) in [(1024, true), (3, false)] {
        let options = OpenClOptions {
            device,
            fix: Fix::Everything,
            value_bytes: Some(bytes),
            ..OpenClOptions::new()
        };
        let code = compile_opencl(&module, name, &named, &options);
        let code = code.unwrap_or_else(|e| panic!("{path}: {name}: {e}"));
        let context = format!("{path}: {name} at {params:?}\n{}", code.source);
        assert_eq!(
            code.source.contains("const struct values_"),
            is_value,
            "{context}"
        );
        let (got, _) = code.run_tensors(&values, &inputs).expect("it runs");
        assert_eq!(differs(&got, &want), None, "{context}");
    }
}
