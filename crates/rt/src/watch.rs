//! Watchdogs: programs that end with this process, however it ends.
//!
//! A process killed by a signal that cannot be caught cannot stop its children. So a shell runs
//! beside each program and reads from a pipe that only this process can write to: when the pipe
//! closes, this process has ended, and the shell kills the program. Until that shell runs, the
//! program waits for a line from another pipe, its gate, and never starts if that closes.

use std::io::{self, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::process::own_group;

/// The shell's script. `$1` is a process, or a process group with a minus before it.
const SCRIPT: &str = "read -r _; kill -s KILL -- \"$1\"";

const SHELL: &str = "/bin/sh";

/// Executes the program when a line arrives; a pipe that closes has none.
const GATE: &str = "read -r _ || exit 1; exec \"$@\"";

/// The same program, which starts on [`open`]. Its standard input is taken, and empty.
pub fn gated(command: &Command) -> Command {
    let mut gated = if Path::new(SHELL).exists() {
        let mut gated = Command::new(SHELL);
        gated.args(["-c", GATE, "systola-gate"]);
        gated.arg(command.get_program());
        gated
    } else {
        Command::new(command.get_program())
    };
    gated.args(command.get_args()).stdin(Stdio::piped());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => gated.env(name, value),
            None => gated.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        gated.current_dir(folder);
    }
    gated
}

/// Starts a gated program.
pub fn open(child: &mut Child) -> io::Result<()> {
    match child.stdin.take() {
        Some(mut gate) => gate.write_all(b"\n"),
        None => Ok(()),
    }
}

/// The watchdog of a running program. Dropped when the program has ended or may outlive this
/// process.
#[derive(Debug)]
pub struct Watch(Option<Child>);

impl Watch {
    /// Watches one process, which is not the leader of a group.
    pub fn over(child: &Child) -> Watch {
        Watch::start(&child.id().to_string())
    }

    /// Watches a process and all its descendants; it leads a process group.
    pub(crate) fn over_group(child: &Child) -> Watch {
        Watch::start(&format!("-{}", child.id()))
    }

    /// Without a shell there is no watchdog.
    fn start(target: &str) -> Watch {
        if cfg!(not(unix)) {
            return Watch(None);
        }
        let mut shell = Command::new(SHELL);
        shell
            .args(["-c", SCRIPT, "systola-watch", target])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // A signal of the terminal must not end the shell first.
        own_group(&mut shell);
        Watch(shell.spawn().ok())
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(shell) = &mut self.0 {
            // Killed while its pipe is still open, so that it kills nothing.
            let _ = shell.kill();
            let _ = shell.wait();
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_longer_watched_goes_on() {
        let mut command = Command::new("cat");
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = command.spawn().unwrap();
        drop(Watch::over(&child));
        assert!(child.try_wait().unwrap().is_none());
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
    }

    #[test]
    fn a_program_begins_when_its_gate_opens_or_never() {
        let folder = tempfile::tempdir().unwrap();
        for opened in [true, false] {
            let file = folder.path().join(opened.to_string());
            let mut touch = Command::new("touch");
            touch.arg(&file);
            let mut child = gated(&touch).spawn().unwrap();
            if opened {
                open(&mut child).unwrap();
            } else {
                drop(child.stdin.take());
            }
            assert_eq!(child.wait().unwrap().success(), opened);
            assert_eq!(file.exists(), opened);
        }
    }

    #[test]
    fn a_closed_pipe_ends_the_program() {
        let mut command = Command::new("sleep");
        command.arg("600");
        own_group(&mut command);
        let mut child = command.spawn().unwrap();
        let mut watch = Watch::over_group(&child);
        // As the system does when a process ends.
        drop(watch.0.as_mut().and_then(|shell| shell.stdin.take()));
        assert!(!child.wait().unwrap().success());
    }
}
