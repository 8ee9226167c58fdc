//! The CUDA C++ of every mapping of the gallery, run thread by thread on the processor, against the equations of its
//! system.

use std::collections::BTreeMap;
use std::sync::Mutex;

use systola_driver::{DeviceArtifact, Fix, cuda_machine, emit_cuda, lower};
use systola_filetests::emulate::Emulated;
use systola_filetests::gallery::{self, Algorithm, File};
use systola_filetests::processors::on_all_processors;
use systola_filetests::reference;
use systola_filetests::tensor::Params;
use systola_interp::run_system;
use systola_ir::kernel::Program;

use crate::cpu::{AT_SOME_SIZES, differs};
use crate::support::{
    assert_close, from_interp, mapping, ordered, parse, seeded, sizes, system, to_interp,
};

#[derive(Default)]
struct Seen {
    mappings: usize,
    runs: usize,
    failures: Vec<String>,
}

#[test]
fn cuda_computes_what_the_systems_compute() {
    let algorithms: BTreeMap<String, Algorithm> = gallery::algorithms()
        .into_iter()
        .map(|a| (a.file.clone(), a))
        .collect();
    let files = gallery::files();
    let seen = Mutex::new(Seen::default());
    on_all_processors(&files, |file| {
        try_file(file, algorithms.get(&file.path), &seen);
    });
    let seen = seen.into_inner().expect("no thread panicked");
    println!("{} mappings, {} runs", seen.mappings, seen.runs);
    assert!(
        seen.failures.is_empty(),
        "{} failures\n{}",
        seen.failures.len(),
        seen.failures.join("\n\n")
    );
    assert!(seen.mappings > 150 && seen.runs > 2 * seen.mappings);
}

fn is_fixed(program: &Program) -> bool {
    program.params.iter().any(|p| p.fixed.is_some())
}

/// The test above would see a missing wait: without any, lanes read what others have not written.
#[test]
fn a_missing_wait_shows() {
    let files = gallery::files();
    let file = files.iter().find(|f| f.path == "stencil/jacobi1d.ure");
    let module = parse(file.expect("it is there"));
    let mapping = module.mappings.iter().find(|m| m.name == "pe_per_cell");
    let named = BTreeMap::from([("T".to_string(), 4), ("N".to_string(), 70)]);
    let machine = cuda_machine();
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

/// Fields with blocks inside of them, at all edges, and launches that are neither first nor last; rows of whole groups and others. Tiles
/// have fewer rows than in the gallery, so that a field of three tiles is small.
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
    on_all_processors(&cases, |(path, name, rows, sizes)| {
        let file = files.iter().find(|f| f.path == *path);
        let mut file = file.expect("it is there").clone();
        let tall = format!("tile y by {rows} as");
        assert!(file.text.contains(&tall), "{path}: {tall}");
        file.text = file.text.replace(&tall, "tile y by 32 as");
        let module = parse(&file);
        let mapping = mapping(&module, name);
        let system = system(&module, &mapping.system);
        let reference = reference::find(path, &system.name).expect("a reference");
        let machine = cuda_machine();
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

fn try_file(file: &File, algorithm: Option<&Algorithm>, seen: &Mutex<Seen>) {
    let module = parse(file);
    for (m, mapping) in module.mappings.iter().enumerate() {
        let system = system(&module, &mapping.system);
        let reference = reference::find(&file.path, &system.name).expect("a reference");
        let mut made: Option<(Program, Emulated, String)> = None;
        let (mut runs, mut failures) = (0, Vec::new());
        for (n, params) in sizes(&reference, system, algorithm).iter().enumerate() {
            // A kernel for one size only takes as long to compile as one for all.
            let most = match &made {
                Some((program, ..)) if is_fixed(program) => 2,
                Some(_) | None => 4,
            };
            if n >= most {
                break;
            }
            let context = format!("{}: {} at {params:?}", file.path, mapping.name);
            let values = ordered(system, params);
            let inputs = to_interp(system, &seeded(&reference, params));
            let want = run_system(system, &values, &inputs).expect("a legal system");
            if made.as_ref().is_none_or(|(program, ..)| is_fixed(program)) {
                let named = params.0.iter().map(|(k, v)| (k.clone(), i128::from(*v)));
                let machine = cuda_machine();
                let lowered = lower(&module, mapping, &named.collect(), &Fix::Nothing, &machine);
                let program = match lowered {
                    Ok(lowered) => lowered.program,
                    Err(_) if AT_SOME_SIZES.contains(&(&file.path, &mapping.name)) => continue,
                    Err(errors) => {
                        failures.push(format!("{context}: {errors:?}"));
                        continue;
                    }
                };
                let artifact = emit_cuda(&program).expect("it prints");
                match Emulated::compile(&program, &artifact, m % 2 == 0) {
                    Ok(emulated) => made = Some((program, emulated, artifact.source)),
                    Err(error) => {
                        failures.push(format!("{context}: {error}\n{}", artifact.source));
                        continue;
                    }
                }
            }
            let (_, emulated, source) = made.as_ref().expect("compiled above");
            runs += 1;
            let wrong = match emulated.run(&values, &inputs) {
                Err(error) => Some(error),
                Ok(got) => differs(&got, &want),
            };
            if let Some(wrong) = wrong {
                failures.push(format!("{context}: {wrong}\n{source}"));
            }
        }
        let mut seen = seen.lock().expect("no thread panicked");
        seen.mappings += 1;
        seen.runs += runs;
        seen.failures.extend(failures);
    }
}
