//! Mappings of the gallery on the OpenCL devices of this machine, against the equations of their systems.
//!
//! `cargo xtask test` sets up two implementations and says so in `SYSTOLA_OPENCL_DEVICES`; then both must be there: one with
//! sub-groups, whose links are shuffles, and one without, whose links go through the memory of blocks. Elsewhere the test runs on what
//! there is and says what is missing; `SYSTOLA_OPENCL_DEVICES=0` leaves it out.
//!
//! Compilers of OpenCL take long. So every file of the gallery runs on both, its first mapping and a sample of the others; the sample is
//! drawn by the names, the same in every run.

use std::time::Instant;

use systola::opencl::compile_opencl;
use systola::rt::opencl::{DeviceInfo, devices};
use systola::{OpenClCompiled, OpenClOptions};
use systola_filetests::gallery::File;
use systola_filetests::tensor::Params;
use systola_interp::Arrays;
use systola_ir::kernel::Program;
use systola_ir::mapping::Mapping;
use systola_ir::system::Module;

use crate::suite::{Seen, Target, run_suite_alone};

struct OpenCl {
    device: usize,
    /// Lanes of a warp, in turn.
    lanes: &'static [u32],
    /// Of so many mappings that are not the first of a file one is taken.
    one_of: u64,
    /// Mappings that take too long to compile here.
    left_out: &'static [(&'static str, &'static str)],
}

impl Target for OpenCl {
    type Code = OpenClCompiled;

    fn takes(&self, file: &File, mapping: &Mapping, n: usize) -> bool {
        let name = (file.path.as_str(), mapping.name.as_str());
        if self.left_out.contains(&name) {
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
            ..OpenClOptions::new()
        };
        let start = Instant::now();
        let made = compile_opencl(module, &mapping.name, &named, &options);
        told(&mapping.name, start);
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
        // Some devices compile when they are first asked to run.
        let start = Instant::now();
        let ran = code.run_tensors(params, inputs);
        told(&code.program().kernels[0].name, start);
        ran.map(|(got, _)| got).map_err(|error| error.to_string())
    }
}

/// Says what takes long.
fn told(what: &str, start: Instant) {
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

/// The first device that is so, if there is one; where it was promised, it must be there.
fn device(what: &str, is: impl Fn(&DeviceInfo) -> bool) -> Option<usize> {
    if std::env::var("SYSTOLA_OPENCL_DEVICES").is_ok_and(|n| n == "0") {
        println!("skipped: not asked for");
        return None;
    }
    let found = match devices() {
        Ok(all) => all.into_iter().find(|info| is(info)),
        Err(error) => {
            println!("{error}");
            None
        }
    };
    let promised = std::env::var("SYSTOLA_OPENCL_DEVICES").is_ok_and(|n| n != "0");
    assert!(found.is_some() || !promised, "no OpenCL device {what}");
    match &found {
        Some(info) => println!("{what}: {}, {}", info.name, info.platform),
        None => println!("skipped: no OpenCL device {what}"),
    }
    found.map(|info| info.ordinal)
}

fn check(seen: &Seen, files: usize) {
    assert_eq!(seen.files, files, "every file of the gallery");
    assert!(seen.runs > 3 * seen.mappings, "{} runs", seen.runs);
}

fn all_files() -> usize {
    systola_filetests::gallery::files().len()
}

#[test]
fn sub_groups_compute_what_the_systems_compute() {
    let Some(device) = device("with sub-groups", |info| info.shuffles.is_some()) else {
        return;
    };
    let seen = run_suite_alone(&OpenCl {
        device,
        lanes: &[8, 16, 32],
        one_of: 2,
        left_out: &[],
    });
    check(&seen, all_files());
}

#[test]
fn links_through_memory_compute_what_the_systems_compute() {
    let Some(device) = device("without sub-groups", |info| info.shuffles.is_none()) else {
        return;
    };
    let seen = run_suite_alone(&OpenCl {
        device,
        lanes: &[8, 16],
        one_of: 4,
        left_out: &[("stencil/drift2d.ure", "small")],
    });
    check(&seen, all_files());
}
