//! The language server of Systola: `systola lsp` on the standard streams.
//!
//! One thread answers requests, from the text as it is; reading a text takes milliseconds. A
//! thread for each document infers types, then checks systems and mappings, which may take long:
//! it ends where the text changes, and nothing waits for it. While a text has mistakes of syntax,
//! names are answered from the last version without.
//!
//! - `server.rs` the protocol: which message goes where; `requests.rs` what is answered
//! - `document.rs` a text with what is known of it; `snapshot.rs` a text that was read, with its
//!   names; `drift.rs` places in a text that was edited; `position.rs` lines and columns
//! - `job.rs` the thread of a document; `facts.rs` what it finds out beside mistakes
//! - `report.rs` diagnostics for editors; `hover.rs`, `navigation.rs`, `rename.rs`, `symbols.rs`,
//!   `completion.rs` with `context.rs`, `words.rs` the words of the language

use std::time::Duration;

use lsp_server::Connection;

mod completion;
mod context;
mod document;
mod drift;
mod facts;
mod formatting;
mod hover;
mod job;
mod navigation;
mod position;
mod rename;
mod report;
mod requests;
mod server;
mod snapshot;
mod symbols;
mod words;

use server::Server;

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The client asked to shut down, then to exit.
    Shutdown,
    /// The client exited, or was gone, without asking.
    Abrupt,
}

/// What may be set from outside.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How long a text has to rest before it is read.
    pub debounce: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            debounce: Duration::from_millis(150),
        }
    }
}

/// Walks over trees recurse with the depth of an expression, which is bounded.
const STACK: usize = 64 << 20;

/// Serves one client on the standard input and output.
pub fn serve_stdio(options: Options) -> End {
    let (connection, threads) = Connection::stdio();
    let end = serve(connection, options);
    match end {
        // The connection is dropped, so that all its threads end.
        End::Shutdown => match threads.join() {
            Ok(()) => End::Shutdown,
            Err(_) => End::Abrupt,
        },
        // The reader may wait for a client that is gone.
        End::Abrupt => End::Abrupt,
    }
}

/// Serves one client until it exits.
pub fn serve(connection: Connection, options: Options) -> End {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("language server".into())
            .stack_size(STACK);
        let served = thread.spawn_scoped(scope, || Server::run(connection, options));
        match served.map(|thread| thread.join()) {
            Ok(Ok(end)) => end,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(_) => End::Abrupt,
        }
    })
}
