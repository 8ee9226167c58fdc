//! The stencils as machine code of this CPU.

use std::path::Path;

use systola::CpuOptions;
use systola::cpu::Effort;
use systola::device::device_source;
use systola::rt::RunOptions;
use systola::rt::cuda::{CudaCompileOptions, compile_only, nvrtc_version};
use systola::rt::device::Variant;
use systola_driver::{Fix, Machine, emit_cuda, lower};
use systola_filetests::ways::all_wanted;
use systola_ir::Scalar;
use systola_ir::target::Target;

use super::plain::PLAIN;
use super::*;
use crate::threads::{available, each};
use crate::verify::tally::RunResult;

const BOUNDARIES: [BoundaryName; 7] = [
    BoundaryName::Interior,
    BoundaryName::Constant,
    BoundaryName::Fixed,
    BoundaryName::Clamp,
    BoundaryName::Mirror,
    BoundaryName::Reflect,
    BoundaryName::Wrap,
];

/// Each type with one sweep and with many.
const KINDS: [(Scalar, bool); 4] = [
    (Scalar::F32, false),
    (Scalar::F64, true),
    (Scalar::F64, false),
    (Scalar::F32, true),
];

/// With the quickest compiler of this machine.
fn cpu() -> TargetDevice {
    let options = CpuOptions::from_env().unwrap().quick();
    TargetDevice::Cpu(options, RunOptions::default())
}

/// With the compiler that users have.
fn usual_cpu() -> TargetDevice {
    let mut options = CpuOptions::from_env().unwrap();
    options.effort = Effort::Little;
    TargetDevice::Cpu(options, RunOptions::default())
}

fn text(stencil: &Stencil) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = root.join("stencils").join(format!("{}.ure", stencil.name));
    std::fs::read_to_string(&path).unwrap()
}

/// The first failure; an error too where nothing ran.
fn check(case: &Case, device: &TargetDevice, text: &str, map: Option<&str>) -> Result<(), String> {
    let runs = case.verify(device, text, map);
    let name = case.stencil.name;
    let mut verified = 0;
    for (mapping, row) in &runs.rows {
        match row {
            RunResult::Verified(_) => verified += 1,
            RunResult::Failed(_) => return Err(row.line(&format!("{name} {case} {mapping}"))),
            RunResult::Refused(_) | RunResult::Skipped(_) => {}
        }
    }
    match verified {
        0 => Err(format!("{name} {case}: nothing ran")),
        _ => Ok(()),
    }
}

/// Every stencil with every boundary condition, cycling through the types and numbers of sweeps.
fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (row, stencil) in STENCILS.iter().enumerate() {
        for (column, boundary) in BOUNDARIES.into_iter().enumerate() {
            let (ty, many) = KINDS[(row + column + 1) % KINDS.len()];
            cases.push(Case {
                stencil,
                boundary,
                ty,
                many,
            });
        }
    }
    cases
}

#[test]
fn every_boundary_is_tested_with_every_stencil_and_kind() {
    let cases = cases();
    assert_eq!(cases.len(), 15 * 7);
    for boundary in BOUNDARIES {
        for (ty, many) in KINDS {
            let is_it = |c: &Case| (c.boundary, c.ty, c.many) == (boundary, ty, many);
            assert!(cases.iter().any(is_it), "{boundary:?} {ty} {many}");
        }
    }
}

/// A stencil takes three or four of the boundary conditions, or with `SYSTOLA_TESTS=all` all of
/// them. Many sweeps use plain mappings here: those that keep the field in registers are in
/// `crates/filetests/tests/stencils.rs`, also under every boundary condition.
#[test]
fn stencils_under_boundaries_on_the_cpu() {
    let (mut cases, quick, usual) = (cases(), cpu(), usual_cpu());
    if !all_wanted() {
        let mut position = 0..cases.len();
        cases.retain(|_| {
            position.next().is_some_and(|n| {
                let (row, column) = (n / BOUNDARIES.len(), n % BOUNDARIES.len());
                (row / 2 + column).is_multiple_of(2)
            })
        });
    }
    assert!(cases.len() > 50, "{}", cases.len());
    let done = each(&cases, available(), |case| {
        let map = case.many.then_some(PLAIN);
        let device = match case.boundary {
            BoundaryName::Mirror => &usual,
            _ => &quick,
        };
        check(case, device, &text(case.stencil), map)
    });
    let wrong: Vec<String> = done.into_iter().filter_map(Result::err).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A slightly different program, a different boundary condition, and a mapping that no boundary
/// condition allows.
#[test]
fn what_is_wrong_is_found() {
    let case = Case {
        stencil: &STENCILS[0],
        boundary: BoundaryName::Reflect,
        ty: Scalar::F32,
        many: false,
    };
    let own = text(case.stencil);
    let device = cpu();
    let check = |text: &str, map, said: &str| {
        let found = check(&case, &device, text, map).unwrap_err();
        assert!(found.contains(said), "{found}");
    };
    let more = own.replace("over star 1)", "over star 1) + 0.0001*u");
    check(&more, Some(PLAIN), "cell [");
    // The boundary condition in a comment is changed, that of the field is not.
    let mirrored = own.replace(" fixed;", " mirror;") + "// fixed;\n";
    check(&mirrored, Some(PLAIN), "cell [0, ");
    check("", None, "no field of the program");
    check(&own, Some("no_such_mapping"), "nothing ran");
}

/// The kernels for a GPU, through its compiler, which needs no GPU: each boundary condition over
/// rows or over planes; with `SYSTOLA_TESTS=all`, over both.
#[test]
fn mappings_for_gpus_compile_under_every_boundary() {
    if let Err(error) = nvrtc_version() {
        assert!(std::env::var_os("SYSTOLA_NVRTC").is_none(), "{error}");
        println!("skipped: {error}");
        return;
    }
    let mut cases = cases();
    cases.retain(|case| ["2d9pt", "3d27pt"].contains(&case.stencil.name));
    if !all_wanted() {
        let in_planes = |at: usize| at % 2 == 1;
        cases.retain(|case| {
            let at = BOUNDARIES.iter().position(|b| *b == case.boundary);
            in_planes(at.unwrap_or(0)) == (case.stencil.rank == 3)
        });
    }
    let done = each(&cases, available(), through_nvrtc);
    for (case, compiled) in cases.iter().zip(done) {
        let name = case.stencil.name;
        assert!(
            compiled.as_ref().is_ok_and(|all| !all.is_empty()),
            "{name} {case}: {compiled:?}"
        );
    }
}

/// The legal mappings, all of which compile.
fn through_nvrtc(case: &Case) -> Result<Vec<String>, String> {
    let module = case.module(&text(case.stencil))?;
    let sizes = [("K", 11), ("N", 67), ("M", 133), ("T", 5)];
    let sizes = sizes.map(|(name, value)| (name.to_string(), value));
    let is_its = |name: &str| case.takes(name, Target::Cuda, None);
    let mappings = module.mappings.iter();
    let mut compiled = Vec::new();
    for mapping in mappings.filter(|m| m.system == case.system() && is_its(&m.name)) {
        let system = module.systems.iter().find(|s| s.name == mapping.system);
        let has = |name: &str| system.is_some_and(|s| s.params.iter().any(|p| p.name == name));
        let sizes = sizes
            .iter()
            .filter(|(name, _)| has(name))
            .cloned()
            .collect();
        let lowered = match lower(&module, mapping, &sizes, &Fix::Nothing, &Machine::cuda()) {
            Ok(lowered) => lowered,
            // Sweeps in registers do not support periodic boundaries.
            Err(_) if case.boundary == BoundaryName::Wrap && case.many => continue,
            Err(found) => return Err(format!("{}: {found:?}", mapping.name)),
        };
        let artifact = emit_cuda(&lowered.program).map_err(|found| format!("{found:?}"))?;
        let source = device_source(artifact);
        let at = lowered.sizes.ok_or("sizes are missing")?;
        let variant = Variant::at(&lowered.program, &source.kernels, &at).unwrap();
        let options = CudaCompileOptions::default();
        compile_only(&source.code, "sm_90", &variant, &options).map_err(|e| e.to_string())?;
        compiled.push(mapping.name.clone());
    }
    Ok(compiled)
}
