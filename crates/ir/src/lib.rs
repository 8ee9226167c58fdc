//! The representations of Systola, each in one file that reads as its specification.
//!
//! * [`system`]: *what* is computed, recurrence equations over integer domains.
//! * [`mapping`]: *where and when*, a value beside the system and never a mutation of it.
//! * [`mod@array`]: a system under a mapping: processing elements, links, registers.
//! * [`kernel`]: what a machine with lanes runs, before any target's syntax.
//!
//! [`target`] describes the hardware behind each target.
//!
//! The other modules define what they are written in: [`form`] has quasi-affine index expressions
//! and conditions, [`scalar`] element types and operators, [`diag`] and [`codes`] the messages to
//! the user.

pub mod array;
pub mod codes;
pub mod diag;
pub mod form;
pub mod id;
pub mod kernel;
pub mod mapping;
pub mod scalar;
pub mod sets;
pub mod span;
pub mod system;
pub mod target;

pub use diag::{Diagnostic, Kind};
pub use form::{Atom, Cond, Form, Poly, Rel};
pub use id::{
    BufferId, ConstId, DimId, FnId, InputId, KernelId, LocalId, ParamId, PortId, RegId, SharedId,
    StorageId, ValueId, VarId,
};
pub use scalar::{BinOp, Literal, Scalar, Type, UnOp};
pub use span::Span;
