//! Runs a program of the system under a time limit.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::watch::Watch;

/// What a program left behind.
pub(crate) struct Finished {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// More of what a program says is not kept.
const MOST_TEXT: u64 = 64 * 1024;

/// `None`: it was still running at the limit, and was stopped together with everything it had started.
pub(crate) fn run_within(command: &mut Command, limit: Duration) -> io::Result<Option<Finished>> {
    // Files, since a pipe that nobody empties would block a talkative program.
    let (stdout, stderr) = (tempfile::tempfile()?, tempfile::tempfile()?);
    command
        .stdin(Stdio::null())
        .stdout(stdout.try_clone()?)
        .stderr(stderr.try_clone()?);
    own_group(command);
    let mut child = command.spawn()?;
    let _watch = Watch::over_group(&child);
    let Some(status) = wait_within(&mut child, limit)? else {
        stop(&mut child);
        return Ok(None);
    };
    Ok(Some(Finished {
        status,
        stdout: text_of(stdout)?,
        stderr: text_of(stderr)?,
    }))
}

fn wait_within(child: &mut Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let start = Instant::now();
    let mut pause = Duration::from_micros(200);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        let left = limit.saturating_sub(start.elapsed());
        if left.is_zero() {
            return Ok(None);
        }
        thread::sleep(pause.min(left));
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

/// A compiler's driver starts others, which would go on without it: the whole group is ended. Errors mean
/// that it ended by itself.
fn stop(child: &mut Child) {
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
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn what_it_says_is_kept() {
        let long = Duration::from_secs(60);
        let done = run_within(&mut shell("echo out; echo err >&2; exit 3"), long)
            .unwrap()
            .unwrap();
        assert_eq!(
            (done.stdout.as_str(), done.stderr.as_str()),
            ("out\n", "err\n")
        );
        assert_eq!(done.status.code(), Some(3));
        let flood = run_within(&mut shell("yes | head -c 1000000"), long).unwrap();
        assert_eq!(flood.unwrap().stdout.len() as u64, MOST_TEXT);
        assert!(run_within(&mut Command::new("/nonexistent/program"), long).is_err());
    }

    #[test]
    fn nothing_it_started_outlives_the_limit() {
        let dir = tempfile::tempdir().unwrap();
        let pid = dir.path().join("pid");
        let script = format!("sleep 600 & echo $! > {}; wait", pid.display());
        let start = Instant::now();
        let done = run_within(&mut shell(&script), Duration::from_millis(700)).unwrap();
        assert!(done.is_none());
        assert!(start.elapsed() < Duration::from_secs(30));
        let sleeper: i32 = std::fs::read_to_string(pid)
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        let sleeper = rustix::process::Pid::from_raw(sleeper).unwrap();
        // A process that has ended may still wait to be collected, by a parent that is not us.
        let gone = (0..500).any(|_| {
            thread::sleep(Duration::from_millis(10));
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", sleeper.as_raw_nonzero()));
            rustix::process::test_kill_process(sleeper).is_err()
                || stat.is_ok_and(|s| s.contains(") Z "))
        });
        assert!(gone);
    }
}
