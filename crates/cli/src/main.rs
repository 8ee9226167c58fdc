//! The binary `systola`; the library beside it has the commands.

use std::process::ExitCode;

use systola_allocator as _;

fn main() -> ExitCode {
    systola_cli::main()
}
