//! Programs that end with this process, however it ends.
//!
//! A signal that can not be caught leaves no time to stop what was started. So a shell stands beside each program and reads from a
//! pipe that only this process can write to: when the pipe closes, nobody is left here, and the shell ends the program. A process that ends
//! between the start of a program and that of its shell, within a millisecond or so, leaves the program behind.

use std::process::{Child, Command, Stdio};

use crate::process::own_group;

/// What the shell waits for, and what it does then. `$1` is a process, or a group of them with a minus before it.
const SCRIPT: &str = "read -r _; kill -s KILL -- \"$1\"";

/// Stands beside a running program. Dropped when the program has ended or may go on.
#[derive(Debug)]
pub struct Watch(Option<Child>);

impl Watch {
    /// Over one process, which is not the leader of a group.
    pub fn over(child: &Child) -> Watch {
        Watch::start(&child.id().to_string())
    }

    /// Over a process and all that it starts; it leads a group of its own.
    pub(crate) fn over_group(child: &Child) -> Watch {
        Watch::start(&format!("-{}", child.id()))
    }

    /// Without a shell nothing is watched.
    fn start(target: &str) -> Watch {
        if cfg!(not(unix)) {
            return Watch(None);
        }
        let mut shell = Command::new("/bin/sh");
        shell
            .args(["-c", SCRIPT, "systola-watch", target])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // What a terminal sends to this process must not end it first.
        own_group(&mut shell);
        Watch(shell.spawn().ok())
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(shell) = &mut self.0 {
            // While its pipe is open still: it ends before it could end anything else.
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
    fn a_closed_pipe_ends_the_program() {
        let mut command = Command::new("sleep");
        command.arg("600");
        own_group(&mut command);
        let mut child = command.spawn().unwrap();
        let mut watch = Watch::over_group(&child);
        // As the system does for a process that ends.
        drop(watch.0.as_mut().and_then(|shell| shell.stdin.take()));
        assert!(!child.wait().unwrap().success());
    }
}
