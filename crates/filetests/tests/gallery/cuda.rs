//! The CUDA C++ of the gallery, run thread by thread on the CPU, against the equations of its
//! systems: of the mappings that NVRTC does not compile ([`Way`]).

use std::collections::BTreeMap;

use systola_driver::{DeviceArtifact, Fix, Machine, emit_cuda, lower};
use systola_filetests::cpus::on_all_cpus;
use systola_filetests::emulate::Emulated;
use systola_filetests::gallery::{self, File};
use systola_filetests::reference;
use systola_filetests::tensor::Params;
use systola_filetests::ways::Way;
use systola_interp::{Arrays, Tensor, run_system};
use systola_ir::kernel::Program;
use systola_ir::mapping::Mapping;
use systola_ir::system::Module;

use crate::suite::{Target, differs, run_suite};
use crate::support::{
    assert_close, from_interp, mapping, ordered, parse, seeded, system, to_interp,
};

/// The emulator, in which each thread runs far ahead of the others.
struct Emulator;

struct Code {
    program: Program,
    emulated: Emulated,
    source: String,
}

impl Target for Emulator {
    type Code = Code;

    fn takes(&self, file: &File, mapping: &Mapping, _: usize) -> bool {
        Way::EmulatedCuda.takes(&file.path, &mapping.name)
    }

    fn compile(
        &self,
        module: &Module,
        mapping: &Mapping,
        n: usize,
        params: &Params,
    ) -> Result<Code, String> {
        let named = params.0.iter().map(|(k, v)| (k.clone(), i128::from(*v)));
        let machine = Machine::cuda();
        let lowered = lower(module, mapping, &named.collect(), &Fix::Nothing, &machine);
        let program = lowered.map_err(|errors| format!("{errors:?}"))?.program;
        let artifact = emit_cuda(&program).expect("it prints");
        let emulated = Emulated::compile(&program, &artifact, n.is_multiple_of(2))
            .map_err(|error| format!("{error}\n{}", artifact.source))?;
        Ok(Code {
            program,
            emulated,
            source: artifact.source,
        })
    }

    fn program<'c>(&self, code: &'c Code) -> &'c Program {
        &code.program
    }

    fn source<'c>(&self, code: &'c Code) -> &'c str {
        &code.source
    }

    /// A kernel for one size only takes as long to compile as one for all.
    fn most_sizes(&self) -> (usize, usize) {
        (4, 1)
    }

    fn run(
        &self,
        code: &Code,
        _: usize,
        params: &[i128],
        inputs: &Arrays,
    ) -> Result<Arrays, String> {
        code.emulated.run(params, inputs)
    }
}

#[test]
fn cuda_computes_what_the_systems_compute() {
    let seen = run_suite(&Emulator);
    assert!(seen.mappings > 100 && seen.runs > 2 * seen.mappings);
}

/// The test above detects a missing warp synchronisation: without any, lanes read unwritten values.
#[test]
fn a_missing_wait_shows() {
    let files = gallery::files();
    let file = files.iter().find(|f| f.path == "stencil/jacobi1d.ure");
    let module = parse(file.expect("it is there"));
    let mapping = module.mappings.iter().find(|m| m.name == "pe_per_cell");
    let named = BTreeMap::from([("T".to_string(), 4), ("N".to_string(), 70)]);
    let machine = Machine::cuda();
    let lowered = lower(
        &module,
        mapping.expect("it is there"),
        &named,
        &Fix::Nothing,
        &machine,
    );
    let program = lowered.expect("it lowers").program;
    let mut artifact = emit_cuda(&program).expect("it prints");
    let waits = artifact.source.matches("__syncwarp();").count();
    assert!(waits > 0, "{}", artifact.source);
    let system = &module.systems[0];
    let inputs: systola_interp::Arrays = system
        .inputs
        .iter()
        .map(|input| {
            let tensor = systola_interp::Tensor::random(input.ty, &input.axes, &[4, 70], 1);
            (input.name.clone(), tensor.expect("small"))
        })
        .collect();
    let want = run_system(system, &[4, 70], &inputs).expect("a legal system");
    let run = |artifact: &DeviceArtifact| {
        let emulated = Emulated::compile(&program, artifact, true).expect("it compiles");
        emulated.run(&[4, 70], &inputs).expect("it runs")
    };
    assert_eq!(differs(&run(&artifact), &want), None);
    artifact.source = artifact.source.replace("__syncwarp();", "");
    assert!(differs(&run(&artifact), &want).is_some());
}

/// Fields with interior blocks, blocks at all edges, and launches that are neither first nor last;
/// with rows of whole groups, and with others. Tiles have fewer rows than in the gallery, so that a
/// field of three tiles is small.
#[test]
fn many_sweeps_are_right_in_large_fields() {
    let cases = [
        (
            "stencil/drift2d.ure",
            "eight",
            274,
            [[17, 93, 504], [17, 92, 503]],
        ),
        (
            "stencil/star2.ure",
            "four",
            147,
            [[9, 96, 252], [9, 95, 251]],
        ),
        (
            "stencil/box3.ure",
            "six",
            274,
            [[13, 93, 504], [13, 92, 501]],
        ),
    ];
    let files = gallery::files();
    on_all_cpus(&cases, |(path, name, rows, sizes)| {
        let file = files.iter().find(|f| f.path == *path);
        let mut file = file.expect("it is there").clone();
        let tall = format!("tile y by {rows} as");
        assert!(file.text.contains(&tall), "{path}: {tall}");
        file.text = file.text.replace(&tall, "tile y by 32 as");
        let module = parse(&file);
        let mapping = mapping(&module, name);
        let system = system(&module, &mapping.system);
        let reference = reference::find(path, &system.name).expect("a reference");
        let machine = Machine::cuda();
        let lowered = lower(&module, mapping, &BTreeMap::new(), &Fix::Nothing, &machine);
        let program = lowered.expect("it lowers").program;
        let artifact = emit_cuda(&program).expect("it prints");
        let emulated = Emulated::compile(&program, &artifact, true).expect("it compiles");
        for size in sizes {
            let names = system.param_names().into_iter();
            let params = Params(names.zip(*size).collect());
            let arrays = seeded(&reference, &params);
            let inputs = to_interp(system, &arrays);
            let got = emulated.run(&ordered(system, &params), &inputs);
            let got = from_interp(&got.expect("it runs"));
            let want = (reference.outputs)(&params, &arrays);
            let context = format!("{path}: {name} at {size:?}");
            assert_close(&got, &want, reference.tolerance, &context);
        }
    });
}

/// Values that go both ways within a tick, and bytes in words.
#[test]
fn a_chain_of_stencils_is_right_on_bytes_and_words() {
    let text = include_str!("../../../../stencils/gaussian.ure");
    let module = systola_driver::load(text).expect("a program");
    on_all_cpus(&["down8", "pairs_words"], |name| {
        let mapping = mapping(&module, name);
        let system = system(&module, &mapping.system);
        let machine = Machine::cuda();
        let lowered = lower(&module, mapping, &BTreeMap::new(), &Fix::Nothing, &machine);
        let program = lowered.expect("it lowers").program;
        let artifact = emit_cuda(&program).expect("it prints");
        let emulated = Emulated::compile(&program, &artifact, true).expect("it compiles");
        // Interior blocks and blocks at all edges; rows of whole groups, and others.
        for params in [[100, 372], [67, 251], [1, 2]] {
            let input = &system.inputs[0];
            let u = Tensor::random(input.ty, &input.axes, &params, 5).expect("small");
            let inputs = Arrays::from([(input.name.clone(), u)]);
            let want = run_system(system, &params, &inputs).expect("it runs");
            let got = emulated.run(&params, &inputs).expect("it runs");
            assert_eq!(got, want, "{name} at {params:?}");
        }
    });
}
