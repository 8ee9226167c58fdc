//! The number of live values of a lane, and which of them can be reloaded.
//!
//! A compiler that runs out of vector registers first drops values that also lie in memory, and
//! reloads them at each use. Only if the computed values alone exceed the registers does it spill:
//! it stores some and loads them again at each step.

use systola_ir::kernel::live::{Holder, lane_words, most_alive};
use systola_ir::kernel::visit::walk;
use systola_ir::kernel::{Kernel, Op, Stmt};

/// The maximum number of live words of a lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Alive {
    /// Computed words.
    pub computed: u32,
    /// Loaded or computed words.
    pub all: u32,
}

pub fn alive(kernel: &Kernel) -> Alive {
    let mut loaded = vec![false; kernel.values.len()];
    walk(&kernel.body, &mut |stmt| {
        if let Stmt::Let(_, Op::Load { .. }) | Stmt::LoadWide { .. } = stmt {
            for value in stmt.defs() {
                loaded[value.index()] = true;
            }
        }
    });
    let words = |holder| lane_words(kernel, holder);
    let computed = |holder| match holder {
        Holder::Value(value) if loaded[value.index()] => 0,
        Holder::Value(_) | Holder::Register(_) => words(holder),
    };
    Alive {
        computed: most_alive(kernel, &computed),
        all: most_alive(kernel, &words),
    }
}
