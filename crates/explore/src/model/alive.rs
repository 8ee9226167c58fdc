//! How many values of a lane are alive at once, and which of them could be loaded again.
//!
//! A compiler that runs out of vector registers lets values go that lie in memory anyway, and reads them there at each use. Only when sums
//! alone are more than the registers, it has to store some and load them again at each step.

use systola_ir::kernel::live::{Holder, lane_words, most_alive};
use systola_ir::kernel::visit::walk;
use systola_ir::kernel::{Kernel, Op, Stmt};

/// The most words of a lane that are alive at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Alive {
    /// That were computed.
    pub computed: u32,
    /// That were loaded, or computed.
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
