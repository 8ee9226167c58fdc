//! The rates of the machine while something runs on it.
//!
//! A machine with shared CPUs changes its speed from one second to the next. `bench/limits.c` stays
//! beside a run and measures on request, alternating with the run.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use systola::rt::timing::Timing;

use super::limits::Rates;
use super::tools::last_line;

/// A process that sleeps until it is asked to measure.
#[derive(Debug)]
pub struct RateProbe {
    child: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
    samples: Vec<Rates>,
}

impl RateProbe {
    /// `program` is `bench/limits.c`, compiled. It copies this many MiB at a time.
    pub fn start(program: &Path, threads: usize, mib: usize) -> Result<RateProbe, String> {
        let mut child = Command::new(program)
            .arg("serve")
            .arg(threads.to_string())
            .arg(mib.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| format!("bench/limits.c does not run: {e}"))?;
        let (Some(questions), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            unreachable!("both were piped")
        };
        Ok(RateProbe {
            child,
            questions,
            answers: BufReader::new(answers),
            samples: Vec::new(),
        })
    }

    /// Measures once, and returns when the program sleeps again.
    pub fn take(&mut self) -> Result<(), String> {
        let mut line = String::new();
        let asked = self.questions.write_all(b"\n");
        let answered = asked.and_then(|()| self.answers.read_line(&mut line));
        match answered {
            Ok(n) if n > 0 => {}
            Ok(_) | Err(_) => return Err(self.why_silent()),
        }
        let rates: Rates = serde_json::from_str(&line)
            .map_err(|e| format!("bench/limits.c prints what is no JSON: {e}"))?;
        self.samples.push(rates);
        Ok(())
    }

    /// The medians of the measurements; none if there are none.
    pub fn median(&self) -> Option<Rates> {
        median(&self.samples)
    }

    fn why_silent(&mut self) -> String {
        // It may still run, and would then not close its standard error.
        let _ = self.child.kill();
        let mut said = Vec::new();
        if let Some(stderr) = &mut self.child.stderr {
            let _ = stderr.read_to_end(&mut said);
        }
        format!("bench/limits.c ends with an error: {}", last_line(&said))
    }
}

impl Drop for RateProbe {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn median(samples: &[Rates]) -> Option<Rates> {
    let of = |rate: fn(&Rates) -> f64| {
        let samples = samples.iter().map(rate).collect();
        Timing { samples }.median()
    };
    Some(Rates {
        threads: samples.first()?.threads,
        fma_flops: of(|r| r.fma_flops),
        copy_bytes: of(|r| r.copy_bytes),
    })
}

#[cfg(test)]
mod tests {
    use super::super::limits;
    use super::super::problem::Scale;
    use super::super::tools::Scratch;
    use super::*;

    const MIB: usize = Scale::Small.copy_mib();

    #[test]
    fn medians_of_each_rate_alone() {
        let rates = |fma_flops, copy_bytes| Rates {
            threads: 2,
            fma_flops,
            copy_bytes,
        };
        let middle = median(&[rates(1.0, 9.0), rates(3.0, 7.0), rates(2.0, 80.0)]).unwrap();
        assert_eq!((middle.fma_flops, middle.copy_bytes), (2.0, 9.0));
        assert_eq!(middle.threads, 2);
        assert!(median(&[]).is_none());
    }

    #[test]
    fn a_program_that_is_asked_answers() {
        let scratch = Scratch::new().ok().unwrap();
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let program = limits::program(&root, &scratch).ok().unwrap();
        for threads in [1, 2] {
            let mut probe = RateProbe::start(&program, threads, MIB).unwrap();
            assert!(probe.median().is_none());
            for _ in 0..3 {
                probe.take().unwrap();
            }
            let rates = probe.median().unwrap();
            assert_eq!((rates.threads, probe.samples.len()), (threads, 3));
            // A lower bound that every machine exceeds.
            assert!(rates.fma_flops > 1e8 && rates.copy_bytes > 1e7, "{rates:?}");
        }
    }

    #[test]
    fn a_program_that_ends_is_reported() {
        let scratch = Scratch::new().ok().unwrap();
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let program = limits::program(&root, &scratch).ok().unwrap();
        let mut probe = RateProbe::start(&program, 0, MIB).unwrap();
        let why = probe.take().unwrap_err();
        assert!(why.contains("usage: limits"), "{why}");
        let nothing = RateProbe::start(&scratch.path().join("nothing"), 1, MIB).unwrap_err();
        assert!(nothing.contains("does not run"), "{nothing}");
    }
}
