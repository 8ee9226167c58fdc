//! NVRTC in separate processes.
//!
//! The library serves one thread of a process at a time: sixteen threads that compile take as long
//! as one. A caller that compiles much names a command that calls [`serve`]; one process runs for
//! each thread that compiles, and handles one source after the other.

use std::ffi::OsString;
use std::io::{self, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::nvrtc::{self, Made};
use crate::deadline::Deadline;
use crate::error::Error;
use crate::process::{own_group, stop};
use crate::watch::Watch;

/// How often a deadline is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Processes that compile for this one. They end with it.
#[derive(Debug)]
pub struct Compilers {
    program: PathBuf,
    arguments: Vec<OsString>,
    idle: Mutex<Vec<Compiler>>,
}

impl PartialEq for Compilers {
    fn eq(&self, other: &Compilers) -> bool {
        (&self.program, &self.arguments) == (&other.program, &other.arguments)
    }
}

impl Eq for Compilers {}

impl Compilers {
    /// `program` calls [`serve`]. No process is started yet.
    pub fn new(program: impl Into<PathBuf>, arguments: &[&str]) -> Compilers {
        Compilers {
            program: program.into(),
            arguments: arguments.iter().map(OsString::from).collect(),
            idle: Mutex::default(),
        }
    }

    /// Compiles in one of the processes, or in this one if none can be started. It is stopped at
    /// the deadline.
    pub(crate) fn compile(
        &self,
        code: &str,
        options: &[String],
        deadline: Option<&Deadline>,
    ) -> Result<Made, Error> {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let free = idle().pop();
        let exchanged = free.map_or_else(|| self.start(), Ok).and_then(|mut one| {
            let reply = one.exchange_until(code, options, deadline)?;
            Ok((one, reply))
        });
        match exchanged {
            Ok((one, reply)) => {
                idle().push(one);
                reply
            }
            Err(_) if deadline.is_some_and(Deadline::is_over) => Err(Error::OutOfTime),
            Err(_) => nvrtc::compile(code, options),
        }
    }

    fn start(&self) -> io::Result<Compiler> {
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        // An interrupt of this process does not reach them.
        own_group(&mut command);
        let mut child = command.spawn()?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(texts), Some(replies)) => Ok(Compiler {
                _watch: Watch::over_group(&child),
                child: Arc::new(Mutex::new(child)),
                texts: Some(texts),
                replies: BufReader::new(replies),
            }),
            _ => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}

#[derive(Debug)]
struct Compiler {
    child: Arc<Mutex<Child>>,
    _watch: Watch,
    /// `Some` until it is dropped.
    texts: Option<ChildStdin>,
    replies: BufReader<ChildStdout>,
}

impl Compiler {
    /// Kills the process at the deadline, which ends the exchange with it.
    fn exchange_until(
        &mut self,
        code: &str,
        options: &[String],
        deadline: Option<&Deadline>,
    ) -> io::Result<Result<Made, Error>> {
        let Some(deadline) = deadline else {
            return self.exchange(code, options);
        };
        let (done, wait) = channel::<()>();
        let child = Arc::clone(&self.child);
        thread::scope(|scope| {
            scope.spawn(move || {
                while wait.recv_timeout(POLL_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                    if deadline.is_over() {
                        stop(&mut child.lock().unwrap_or_else(PoisonError::into_inner));
                        return;
                    }
                }
            });
            let reply = self.exchange(code, options);
            drop(done);
            reply
        })
    }

    fn exchange(&mut self, code: &str, options: &[String]) -> io::Result<Result<Made, Error>> {
        let Some(texts) = &mut self.texts else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        send(texts, options.join("\n").as_bytes())?;
        send(texts, code.as_bytes())?;
        texts.flush()?;
        let mut next = || receive(&mut self.replies);
        let (cubin, reason, log) = (next()?, next()?, next()?);
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok(if reason.is_empty() {
            let log = text(log);
            Ok(Made { cubin, log })
        } else {
            let (reason, log) = (text(reason), text(log));
            Err(Error::NvrtcFailed { reason, log })
        })
    }
}

impl Drop for Compiler {
    fn drop(&mut self) {
        // It ends at the end of its input.
        drop(self.texts.take());
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = child.wait();
    }
}

/// Compiles each source from the input and writes its machine code, until the input ends.
pub fn serve(mut texts: impl Read, mut replies: impl Write) -> io::Result<()> {
    loop {
        let options = match receive(&mut texts) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            options => text(options?)?,
        };
        let options: Vec<String> = options.lines().map(str::to_string).collect();
        let code = text(receive(&mut texts)?)?;
        let (cubin, reason, log) = match nvrtc::compile(&code, &options) {
            Ok(made) => (made.cubin, String::new(), made.log),
            Err(Error::NvrtcFailed { reason, log }) => (Vec::new(), reason, log),
            // The caller finds the same error in its own process, with more context.
            Err(other) => return Err(io::Error::other(other)),
        };
        send(&mut replies, &cubin)?;
        send(&mut replies, reason.as_bytes())?;
        send(&mut replies, log.as_bytes())?;
        replies.flush()?;
    }
}

fn text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

fn send(to: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    to.write_all(&(bytes.len() as u64).to_le_bytes())?;
    to.write_all(bytes)
}

fn receive(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 8];
    from.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    let mut bytes = Vec::new();
    from.take(length).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == length {
        Ok(bytes)
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_is_received() {
        let mut sent = Vec::new();
        for part in [b"one".as_slice(), b"", b"three\n"] {
            send(&mut sent, part).unwrap();
        }
        let mut from = &sent[..];
        assert_eq!(receive(&mut from).unwrap(), b"one");
        assert_eq!(receive(&mut from).unwrap(), b"");
        assert_eq!(receive(&mut from).unwrap(), b"three\n");
        assert!(receive(&mut from).is_err(), "the end");
        let cut = &sent[..10];
        assert!(receive(&mut &cut[..]).is_err(), "in the middle");
        serve(io::empty(), io::sink()).unwrap();
    }
}
