//! Systola turns recurrences and space-time mappings into software systolic arrays.
//!
//! Write *what* is computed, a system of uniform recurrence equations, and separately *where and
//! when* each point runs, a mapping. Systola proves the mapping legal for all sizes or shows two
//! points on which it fails, and describes the array and its cost.
//!
//! ```
//! use std::collections::BTreeMap;
//!
//! let module = systola::load(
//!     "system conv1d(C, Q) where C >= 1, Q >= 1 {
//!        input x[C + Q - 1]: f32;
//!        input w[Q]: f32;
//!        index c in 0..C;
//!        var Z: f32 = reduce(+, q in 0..Q, x[c + q] * w[q]);
//!        output z[C]: f32 = Z at [c] when true;
//!      }
//!      mapping sbm of conv1d { forward x along (-1, 1); lane = c + q; time = q; }
//!      mapping bad of conv1d { forward x along (-1, 1); lane = c + q; time = -q; }",
//! )
//! .unwrap();
//!
//! let sizes = BTreeMap::from([("C".to_string(), 16), ("Q".to_string(), 5)]);
//! let sbm = systola::check_mapping(&module, &module.mappings[0], &sizes).unwrap();
//! assert_eq!(sbm.report.name, "SBM"); // x stays, w is broadcast, sums migrate
//! assert_eq!(sbm.report.counts.unwrap().pes, 20);
//!
//! let refused = systola::check_mapping(&module, &module.mappings[1], &sizes).unwrap_err();
//! assert_eq!(refused[0].code.id, "E0501");
//! ```
//!
//! A [`Kernel`] needs the recurrence alone: it chooses a mapping, compiles it at the first call and
//! takes sizes from the shapes of arrays. `docs/rust.md` begins with `cargo new`.
//!
//! On a GPU, with the feature `cuda`, arrays can stay on the device between runs:
//!
//! ```no_run
//! use systola::rt::cuda::DeviceArray;
//! use systola::{CudaOptions, View, compile_cuda};
//! # fn main() -> Result<(), systola::Error> {
//! # let module = systola::load("")?;
//! let sizes = [("C", 1 << 20), ("Q", 5)];
//! let kernel = compile_cuda(&module, "sbm", &sizes, &CudaOptions::from_env()?)?;
//! let (samples, weights) = (vec![1f32; (1 << 20) + 4], [0.2f32; 5]);
//! // Arrays that stay on the GPU between runs.
//! let gpu = kernel.loaded().gpu();
//! let x = DeviceArray::from_view(gpu, &View::from(&samples[..]))?;
//! let w = DeviceArray::from_view(gpu, &View::from(&weights[..]))?;
//! let mut z = DeviceArray::new(gpu, x.ty(), &[1 << 20])?;
//! let stats = kernel.run_on_device(&sizes, &[("x", &x), ("w", &w)], &mut [("z", &mut z)])?;
//! println!("{} s", stats.kernel_seconds);
//! # Ok(())
//! # }
//! ```
//!
//! The language embedded in Rust is [`dsl`]; the representations are [`ir`]; [`interp`] runs
//! systems and arrays.

mod call;
mod error;
mod kernel;

pub use call::Call;
pub use error::Error;
pub use kernel::{Kernel, KernelBuilder};
pub use systola_driver::{
    Checked, Fix, Lowered, Machine, Simd, Target, check_mapping, check_system, lower, system_of,
};
pub use systola_dsl as dsl;
pub use systola_explore::choose::{Choice, Why};
pub use systola_interp as interp;
pub use systola_ir as ir;
#[cfg(any(feature = "cuda", feature = "opencl"))]
pub use systola_jit::device;
pub use systola_jit::{Compiled, CpuOptions, compile, cpu, tensors};
#[cfg(feature = "cuda")]
pub use systola_jit::{CudaCompiled, CudaOptions, compile_cuda, cuda};
#[cfg(feature = "opencl")]
pub use systola_jit::{OpenClCompiled, OpenClOptions, compile_opencl, opencl};
pub use systola_lower::report;
pub use systola_rt as rt;
pub use systola_rt::{RunOptions, Stats, View, ViewMut};

use systola_ir::system::Module;

/// Reads a text in the text language.
pub fn load(text: &str) -> Result<Module, Error> {
    let found = systola_driver::load(text);
    found.map_err(|found| Error::from(found).in_text("", text))
}

/// Reads the text of a file with the front end that its name asks for; the file itself is not
/// touched.
pub fn load_file(path: &std::path::Path, text: &str) -> Result<Module, Error> {
    let found = systola_driver::load_file(path, text);
    found.map_err(|found| Error::from(found).in_text(&path.display().to_string(), text))
}
