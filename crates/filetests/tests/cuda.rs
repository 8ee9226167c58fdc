//! The CUDA C++ of the gallery through NVRTC, which needs no GPU: of the mappings that the emulator
//! does not run ([`Way`]).
//!
//! `cargo xtask test` installs NVRTC below `target/` and sets `SYSTOLA_NVRTC`; then it is required.
//! Without that variable, and without a CUDA toolkit on the machine, the test prints that it is
//! skipped.

use std::collections::BTreeMap;
use std::fmt::Write;

use systola::rt::cuda::{CudaCompileOptions, Resources, compile_only, nvrtc_version};
use systola::rt::device::Variant;
use systola_driver::{Fix, Machine, emit_cuda, lower};
use systola_filetests::cpus::on_all_cpus;
use systola_filetests::gallery::{self, Algorithm, File};
use systola_filetests::reference;
use systola_filetests::ways::{Way, all_wanted};
use systola_ir::mapping::Mapping;
use systola_ir::system::Module;

#[expect(dead_code, reason = "shared with the tests of the gallery")]
#[path = "gallery/support.rs"]
mod support;

use support::{parse, sizes, system};

/// Architectures, with whether indices have 32 bits; mappings take them in turn.
const ARCHITECTURES: [(&str, bool); 2] = [("sm_80", false), ("sm_90", true)];

/// Legal at some sizes only: D11 requires N² ≥ 2M − 1, SSAM a filter that is narrower than a warp.
const AT_SOME_SIZES: &[(&str, &str)] = &[
    ("vision/motion_estimation.ure", "linear_n"),
    ("conv2d/same.ure", "ssam"),
];

/// A mapping of the gallery, as text for the compiler.
struct Source {
    mapping: String,
    text: String,
}

/// Whether NVRTC is available. If it is required, it must be.
fn has_nvrtc() -> bool {
    match nvrtc_version() {
        Ok(_) => true,
        Err(error) => {
            let promised = std::env::var_os("SYSTOLA_NVRTC").is_some();
            assert!(!promised, "{error}");
            println!("skipped: {error}");
            false
        }
    }
}

#[test]
fn mappings_compile_without_a_warning() {
    if !has_nvrtc() {
        return;
    }
    let algorithms: BTreeMap<String, Algorithm> = gallery::algorithms()
        .into_iter()
        .map(|a| (a.file.clone(), a))
        .collect();
    let files = gallery::files();
    let modules: Vec<(&File, Module)> = files.iter().map(|file| (file, parse(file))).collect();
    let mappings: Vec<(&File, &Module, &Mapping)> = modules
        .iter()
        .flat_map(|(file, module)| module.mappings.iter().map(move |m| (*file, module, m)))
        .filter(|(file, _, mapping)| Way::Nvrtc.takes(&file.path, &mapping.name))
        .collect();
    let (mut sources, mut failures) = (Vec::new(), Vec::new());
    for result in on_all_cpus(&mappings, |(file, module, mapping)| {
        source(file, module, mapping, algorithms.get(&file.path))
    }) {
        match result {
            Ok(source) => sources.push(source),
            Err(failure) => failures.push(failure),
        }
    }
    // The longest first, so that no CPU is left alone with them at the end.
    sources.sort_by_key(|source| std::cmp::Reverse(source.text.len()));
    // Compiling for both takes minutes.
    let jobs: Vec<(&Source, &str, bool)> = sources
        .iter()
        .zip(ARCHITECTURES.iter().cycle())
        .map(|(source, (arch, narrow))| (source, *arch, *narrow))
        .collect();
    let compiled = on_all_cpus(&jobs, |(source, arch, narrow)| {
        let variant = if *narrow {
            Variant::narrow()
        } else {
            Variant::wide()
        };
        compile(source, arch, &variant)
    });
    let mut rows: BTreeMap<&str, (&str, Vec<Resources>)> = BTreeMap::new();
    for ((source, arch, _), result) in jobs.iter().zip(compiled) {
        match result {
            Ok(found) => drop(rows.insert(&source.mapping, (arch, found))),
            Err(failure) => failures.push(failure),
        }
    }
    print!("{}", table(&rows));
    println!("{} mappings, {} compiled", mappings.len(), jobs.len());
    assert!(
        failures.is_empty(),
        "{} failures\n{}",
        failures.len(),
        failures.join("\n\n")
    );
    assert!(rows.len() > 110, "{}", rows.len());
}

fn source(
    file: &File,
    module: &Module,
    mapping: &Mapping,
    algorithm: Option<&Algorithm>,
) -> Result<Source, String> {
    let context = format!("{} {}", file.path, mapping.name);
    let system = system(module, &mapping.system);
    let reference = reference::find(&file.path, &system.name).expect("a reference");
    let all = sizes(&reference, system, algorithm);
    let lowered = all.iter().map(|params| {
        let sizes = params.0.iter().map(|(k, v)| (k.clone(), i128::from(*v)));
        let machine = Machine::cuda();
        lower(module, mapping, &sizes.collect(), &Fix::Nothing, &machine)
    });
    let some_only = AT_SOME_SIZES.contains(&(&file.path, &mapping.name));
    let mut lowered = lowered.filter(|l| l.is_ok() || !some_only);
    let lowered = lowered
        .next()
        .expect("sizes")
        .map_err(|error| format!("{context}: {error:?}"))?;
    let artifact = emit_cuda(&lowered.program).map_err(|error| format!("{context}: {error}"))?;
    Ok(Source {
        mapping: context,
        text: artifact.source,
    })
}

fn compile(source: &Source, arch: &str, variant: &Variant) -> Result<Vec<Resources>, String> {
    let Source { mapping, text } = source;
    let options = CudaCompileOptions {
        once: true,
        ..CudaCompileOptions::default()
    };
    let made = compile_only(text, arch, variant, &options)
        .map_err(|error| format!("{mapping}: {error}\n{text}"))?;
    if !made.warnings().is_empty() {
        return Err(format!("{mapping}: {}\n{text}", made.log));
    }
    Ok(made.resources())
}

/// The architecture of each mapping, and the registers and spilled bytes of its kernels.
fn table(rows: &BTreeMap<&str, (&str, Vec<Resources>)>) -> String {
    let mut text = "registers (spilled bytes)\n".to_string();
    for (mapping, (arch, kernels)) in rows {
        let cells: Vec<String> = kernels
            .iter()
            .map(|k| match k.spilled {
                0 => k.registers.to_string(),
                spilled => format!("{} ({spilled})", k.registers),
            })
            .collect();
        let _ = writeln!(text, "{mapping:<60} {arch} {}", cells.join(", "));
    }
    text
}

/// Mappings, with the sizes that are fixed.
type Fixed = (
    &'static str,
    &'static [&'static str],
    &'static [&'static [(&'static str, i64)]],
);

const COUNTED: &[Fixed] = &[
    (
        "conv1d/core.ure",
        &["quads"],
        &[&[("Q", 5)], &[("Q", 17)], &[("Q", 64)]],
    ),
    (
        "conv2d/same.ure",
        &["walk", "tall", "ssam", "walk64"],
        &[&[("H", 3), ("Q", 3)]],
    ),
    (
        "conv2d/same.ure",
        &["walk", "ssam", "walk64"],
        &[&[("H", 9), ("Q", 9)]],
    ),
    (
        "conv2d/same.ure",
        &["quarters"],
        &[&[("H", 20), ("Q", 20)], &[("H", 16), ("Q", 16)]],
    ),
    ("conv2d/same.ure", &["halves"], &[&[("H", 20), ("Q", 20)]]),
];

/// The largest filters take half of the time; `SYSTOLA_TESTS=all` counts theirs too.
const LARGE: i64 = 20;

/// Registers are counted, not guessed.
#[test]
fn registers_are_counted() {
    if !has_nvrtc() {
        return;
    }
    let files = gallery::files();
    let mut failures = Vec::new();
    for (path, mappings, sizes) in COUNTED {
        let file = files.iter().find(|f| f.path == *path).expect("a file");
        let module = parse(file);
        for name in *mappings {
            let mapping = module.mappings.iter().find(|m| m.name == *name);
            for fixed in *sizes {
                if fixed.iter().any(|(_, n)| *n == LARGE) && !all_wanted() {
                    continue;
                }
                let values = fixed
                    .iter()
                    .map(|(k, v)| ((*k).to_string(), i128::from(*v)));
                let names = fixed.iter().map(|(k, _)| (*k).to_string());
                let fix = Fix::Names(names.collect());
                let machine = Machine::cuda();
                let mapping = mapping.expect("a mapping");
                let lowered = lower(&module, mapping, &values.collect(), &fix, &machine);
                let lowered = lowered.unwrap_or_else(|e| panic!("{path} {name} {fixed:?}: {e:?}"));
                let artifact = emit_cuda(&lowered.program).expect("it prints");
                let options = CudaCompileOptions::default();
                let made = compile_only(&artifact.source, "sm_90", &Variant::narrow(), &options);
                let made = made.unwrap_or_else(|e| panic!("{path} {name} {fixed:?}: {e}"));
                for entry in &artifact.kernels {
                    let found = made.resources();
                    let found = found.iter().find(|r| r.kernel == entry.symbol);
                    let Resources {
                        registers, spilled, ..
                    } = found.expect("a line for the kernel");
                    let counted = entry.registers as usize;
                    let row = format!(
                        "{path} {name} {fixed:?}: {counted} counted, {registers} of ptxas, {spilled} B spilled"
                    );
                    println!("{row}");
                    let taken = *registers as usize;
                    if counted > taken || taken > counted + 40 || *spilled > 0 {
                        failures.push(row);
                    }
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
