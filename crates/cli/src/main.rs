//! The binary `systola`; the library beside it has the commands.

use std::process::ExitCode;

/// Lowering allocates and frees many small forms and sets.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    systola_cli::main()
}
