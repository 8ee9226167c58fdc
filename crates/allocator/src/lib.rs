//! The allocator of Systola's programs and tests: a program that names this crate has it.
//!
//! Lowering allocates and frees many small forms and sets. The functions that every allocation
//! calls are compiled in the crate of the allocator, so this crate is always optimised.

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
