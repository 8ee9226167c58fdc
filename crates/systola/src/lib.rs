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
//! The language embedded in Rust is [`dsl`]; the representations are [`ir`]; [`interp`] runs
//! systems and arrays.

pub mod cpu;
pub mod cuda;
pub mod device;
pub mod opencl;
pub mod tensors;

pub use cpu::{Compiled, CpuOptions, compile};
pub use cuda::{CudaCompiled, CudaOptions, compile_cuda};
pub use opencl::{OpenClCompiled, OpenClOptions, compile_opencl};
pub use systola_driver::{
    Checked, Fix, Lowered, Machine, Simd, Target, check_mapping, check_system, load, load_file,
    lower, system_of,
};
pub use systola_dsl as dsl;
pub use systola_interp as interp;
pub use systola_ir as ir;
pub use systola_lower::report;
pub use systola_rt as rt;
pub use systola_rt::{RunOptions, View, ViewMut};
