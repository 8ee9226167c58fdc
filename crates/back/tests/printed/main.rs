//! Printed code: what it looks like, and what it computes.

mod common;
mod defer_stores;
mod functions;
mod lanes;
mod memory;
mod negations;
mod operators;
mod snapshots;
mod statements;
