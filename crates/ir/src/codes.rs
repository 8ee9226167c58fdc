//! Every code a diagnostic can carry, with the explanation that `systola explain` prints.
//!
//! Codes are stable: a code is never given to another meaning.
//!
//! | range | about |
//! |---|---|
//! | E01xx | characters and syntax |
//! | E02xx | names, types, shapes of declarations |
//! | E023x.. | stencils |
//! | E03xx | systems: uniform, single assignment, defined where read, schedulable |
//! | E04xx | mappings: their text and names |
//! | E05xx | legality of a mapping |
//! | E060x.. | running: sizes, inputs, files |
//! | E065x | running an array |
//! | E066x | running on OpenCL devices |
//! | E067x | exploring |
//! | L07xx | known limitations |
//! | H08xx | hints |

use crate::diag::Kind;

pub mod array;
pub mod explore;
pub mod hints;
pub mod legality;
pub mod limits;
pub mod mapping;
pub mod opencl;
pub mod page;
pub mod run;
pub mod stencil;
pub mod syntax;
pub mod system;
pub mod types;

/// A code with its meaning.
#[derive(Debug, PartialEq, Eq)]
pub struct Code {
    pub id: &'static str,
    pub kind: Kind,
    /// One line.
    pub title: &'static str,
    /// Markdown: what it means, a small example that provokes it, and how to fix it.
    pub explain: &'static str,
}

/// Every code, in order.
pub fn all() -> impl Iterator<Item = &'static Code> {
    [
        syntax::ALL,
        types::ALL,
        stencil::ALL,
        system::ALL,
        mapping::ALL,
        legality::ALL,
        run::ALL,
        array::ALL,
        opencl::ALL,
        explore::ALL,
        limits::ALL,
        hints::ALL,
    ]
    .into_iter()
    .flatten()
    .copied()
}

/// The code with this id, in upper or lower case.
pub fn find(id: &str) -> Option<&'static Code> {
    all().find(|code| code.id.eq_ignore_ascii_case(id))
}

macro_rules! codes {
    ($kind:ident: $($name:ident = $id:literal, $title:literal, $explain:literal;)*) => {
        $(
            #[doc = $title]
            pub static $name: $crate::codes::Code = $crate::codes::Code {
                id: $id,
                kind: $crate::diag::Kind::$kind,
                title: $title,
                explain: $explain,
            };
        )*
        pub(crate) static ALL: &[&$crate::codes::Code] = &[$(&$name),*];
    };
}
pub(crate) use codes;
