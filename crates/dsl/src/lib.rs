//! Systola's language, embedded in Rust.
//!
//! It has the keywords of the text language, and builds the same `Module` of systems, mappings and
//! programs.
//!
//! ```
//! use systola_dsl::prelude::*;
//!
//! let mut s = SystemBuilder::new("conv1d");
//! let (cap_c, cap_q) = (s.param("C"), s.param("Q"));
//! s.context(cap_c.ge(1)).context(cap_q.ge(1));
//! let x = s.input("x", Scalar::F32, [&cap_c + &cap_q - 1]);
//! let w = s.input("w", Scalar::F32, [&cap_q]);
//! let [c, q, z] = names(["c", "q", "Z"]);
//! s.index([c.range(0, &cap_c), q.range(0, &cap_q)]);
//! s.var(&z, Scalar::F32, select(q.equals(0), 0, z.at((&c, &q - 1))) + x.at([&c + &q]) * w.at([&q]));
//! s.output("z", Scalar::F32, [&cap_c]).write_when(&z, [&c], q.equals(&cap_q - 1));
//! let system = s.build().unwrap();
//! assert_eq!(system.vars[0].name, "Z");
//!
//! let mut m = MappingBuilder::new("stay", "conv1d");
//! m.lane([&c]).time([&c + &q]);
//! assert!(m.build().is_ok());
//! ```

pub mod builder;
pub mod conv;
pub mod expr;
pub mod mapping;
pub mod ops;
pub mod program;
pub mod stencil;

/// Everything that a program in the embedded language needs.
pub mod prelude {
    pub use crate::builder::{SystemBuilder, axis};
    pub use crate::conv::ConvBuilder;
    pub use crate::expr::{Expr, bind, max, min, name, names, only, reduce, scan, select, tuple};
    pub use crate::mapping::{MappingBuilder, SumStage, down, up};
    pub use crate::ops::{float, int};
    pub use crate::program::{ModuleBuilder, ProgramBuilder};
    pub use crate::stencil::StencilBuilder;
    pub use systola_ir::mapping::{Check, Engine, Layout, Order, Residence, Rows, Store};
    pub use systola_ir::system::{Law, Module};
    pub use systola_ir::{BinOp, Diagnostic, Literal, Scalar, Type};
    pub use systola_stencil::{Boundary, Shape};
}
