//! Runs a program of the system under limits.
//!
//! The limit is CPU time: on a busy machine a compiler takes longer without doing more. A program
//! that computes nothing is stopped too, after [`WAITING`] times as long, and every program at its
//! deadline.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use crate::cpu_time;
use crate::deadline::Deadline;
use crate::watch::{Watch, gated, open};

/// The result of a finished program.
pub(crate) struct Finished {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// The maximum bytes of a program's output that are kept.
const MOST_TEXT: u64 = 64 * 1024;

/// Limits of a program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits<'a> {
    pub(crate) cpu_time: Duration,
    pub(crate) deadline: Option<&'a Deadline>,
}

impl Limits<'_> {
    #[cfg(test)]
    pub(crate) fn of(cpu_time: Duration) -> Limits<'static> {
        Limits {
            cpu_time,
            deadline: None,
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.deadline.is_some_and(Deadline::is_over)
    }

    /// The time to wait for another process.
    pub(crate) fn patience(&self) -> Duration {
        let left = self.deadline.map_or(Duration::MAX, Deadline::left);
        left.min(self.cpu_time)
    }
}

/// A program that waits, for a network or for a lock, is stopped after this multiple of its CPU
/// time limit.
const WAITING: u32 = 5;

/// How often limits are checked.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Runs a program. `None` if it reached a limit and was stopped together with everything it had
/// started.
pub(crate) fn run_within(command: &Command, limits: &Limits<'_>) -> io::Result<Option<Finished>> {
    // Output goes to files, since a full pipe would block the program.
    let (stdout, stderr) = (tempfile::tempfile()?, tempfile::tempfile()?);
    let mut command = gated(command);
    command
        .stdout(stdout.try_clone()?)
        .stderr(stderr.try_clone()?);
    own_group(&mut command);
    let mut child = command.spawn()?;
    let _watch = Watch::over_group(&child);
    open(&mut child)?;
    let Some(status) = wait_within(&mut child, limits)? else {
        stop(&mut child);
        return Ok(None);
    };
    // The command as in a shell.
    match status.code() {
        Some(126) => return Err(io::ErrorKind::PermissionDenied.into()),
        Some(127) => return Err(io::ErrorKind::NotFound.into()),
        _ => {}
    }
    Ok(Some(Finished {
        status,
        stdout: text_of(stdout)?,
        stderr: text_of(stderr)?,
    }))
}

fn wait_within(child: &mut Child, limits: &Limits<'_>) -> io::Result<Option<ExitStatus>> {
    let start = Instant::now();
    let mut checked = start;
    let mut pause = Duration::from_micros(200);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if checked.elapsed() >= POLL_INTERVAL {
            checked = Instant::now();
            let spent = cpu_time::of_tree(child.id()).unwrap_or(start.elapsed());
            let waited = start.elapsed() >= limits.cpu_time.saturating_mul(WAITING);
            if spent >= limits.cpu_time || waited || limits.is_over() {
                return Ok(None);
            }
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(4));
    }
}

fn text_of(mut file: File) -> io::Result<String> {
    file.rewind()?;
    let mut bytes = Vec::new();
    file.take(MOST_TEXT).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(unix)]
pub(crate) fn own_group(command: &mut Command) {
    use std::os::unix::process::CommandExt;
    command.process_group(0);
}

#[cfg(not(unix))]
pub(crate) fn own_group(_: &mut Command) {}

/// A compiler driver starts other processes, which would continue without it: the whole group is
/// killed. Errors mean that it ended by itself.
pub(crate) fn stop(child: &mut Child) {
    #[cfg(unix)]
    if let Some(group) = i32::try_from(child.id())
        .ok()
        .and_then(rustix::process::Pid::from_raw)
    {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let _ = child.kill();
    let _ = child.wait();
}

#[cfg(all(test, unix))]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn what_it_says_is_kept() {
        let long = &Limits::of(Duration::from_secs(600));
        let done = run_within(&shell("echo out; echo err >&2; exit 3"), long)
            .unwrap()
            .unwrap();
        assert_eq!(
            (done.stdout.as_str(), done.stderr.as_str()),
            ("out\n", "err\n")
        );
        assert_eq!(done.status.code(), Some(3));
        let flood = run_within(&shell("yes | head -c 1000000"), long).unwrap();
        assert_eq!(flood.unwrap().stdout.len() as u64, MOST_TEXT);
        assert!(run_within(&Command::new("/nonexistent/program"), long).is_err());
    }

    /// Runs a program in the background of a script, and checks that it is gone when the script was
    /// stopped.
    fn check_stopped(program: &str, cpu_time: Duration, stop: bool) {
        let dir = tempfile::tempdir().unwrap();
        let pid = dir.path().join("pid");
        let script = format!("{program} & echo $! > {}; wait", pid.display());
        let flag = Arc::new(AtomicBool::new(false));
        let deadline = Deadline::after(Duration::MAX).or_when(&flag);
        let limits = Limits {
            cpu_time,
            deadline: Some(&deadline),
        };
        let number = || -> Option<i32> { std::fs::read_to_string(&pid).ok()?.trim().parse().ok() };
        let done = thread::scope(|scope| {
            if stop {
                scope.spawn(|| {
                    while number().is_none() {
                        thread::sleep(Duration::from_millis(1));
                    }
                    flag.store(true, Ordering::Relaxed);
                });
            }
            run_within(&shell(&script), &limits).unwrap()
        });
        assert!(done.is_none(), "{program}");
        let started = rustix::process::Pid::from_raw(number().unwrap()).unwrap();
        // An ended process may still be a zombie of another parent.
        let is_gone = || {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", started.as_raw_nonzero()));
            rustix::process::test_kill_process(started).is_err()
                || stat.is_ok_and(|s| s.contains(") Z "))
        };
        while !is_gone() {
            thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn nothing_it_started_outlives_the_limit() {
        check_stopped(
            "sh -c 'while :; do :; done'",
            Duration::from_millis(500),
            false,
        );
        check_stopped("sleep 6000", Duration::from_millis(500), false);
        check_stopped("sleep 6000", Duration::from_secs(6000), true);
    }
}
