//! The limits of the machine, measured by bench/limits.c.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};
use systola_cli::source::Failure;

use super::problem::{Scale, Work};
use super::tools::{Scratch, compile_c, last_line};

/// The rates of `threads` threads together.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct Rates {
    pub threads: usize,
    /// Multiplications and additions in f32, per second.
    pub fma_flops: f64,
    /// Read and written, per second.
    pub copy_bytes: f64,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct Limits {
    /// The clock rate under multiply-adds.
    pub clock_hz: f64,
    /// Numbers of f32 in a vector.
    pub lanes: u32,
    pub one: Rates,
    pub all: Rates,
}

/// bench/limits.c, compiled once.
pub fn program(root: &Path, scratch: &Scratch) -> Result<PathBuf, Failure> {
    let program = scratch.path().join("limits");
    let source = root.join("bench/limits.c");
    let contract = ["-ffp-contract=fast".to_string()];
    if !program.is_file() {
        compile_c(&source, &program, &contract).map_err(Failure::new)?;
    }
    Ok(program)
}

impl Rates {
    /// The minimum seconds of this work: the longer of copying and of multiplying.
    pub fn seconds(&self, work: Work) -> f64 {
        let copying = work.bytes / self.copy_bytes;
        copying.max(work.operations / self.fma_flops)
    }
}

impl Limits {
    /// The best rates that `program`, which is bench/limits.c, finds.
    pub fn measure(program: &Path, threads: usize, scale: Scale) -> Result<Limits, Failure> {
        let done = Command::new(program)
            .arg(threads.to_string())
            .arg(scale.largest_copy_mib().to_string())
            .output()
            .map_err(|e| Failure::new(format!("bench/limits.c does not run: {e}")))?;
        if !done.status.success() {
            let why = last_line(&done.stderr);
            return Err(Failure::new(format!(
                "bench/limits.c ends with an error: {why}"
            )));
        }
        serde_json::from_slice(&done.stdout)
            .map_err(|e| Failure::new(format!("bench/limits.c prints what is no JSON: {e}")))
    }

    /// The better of two measurements: other load on the machine only makes them worse.
    #[must_use]
    pub fn best(self, other: Limits) -> Limits {
        let rates = |a: Rates, b: Rates| Rates {
            threads: a.threads,
            fma_flops: a.fma_flops.max(b.fma_flops),
            copy_bytes: a.copy_bytes.max(b.copy_bytes),
        };
        Limits {
            clock_hz: if self.one.fma_flops < other.one.fma_flops {
                other.clock_hz
            } else {
                self.clock_hz
            },
            lanes: self.lanes,
            one: rates(self.one, other.one),
            all: rates(self.all, other.all),
        }
    }

    /// The number of vector multiply-adds per cycle, and the share of it that the rate reaches.
    pub fn ports(&self) -> (u32, f64) {
        let one_port = self.clock_hz * f64::from(self.lanes) * 2.0;
        let ports = (self.one.fma_flops / one_port).round().max(1.0);
        (ports as u32, self.one.fma_flops / one_port / ports)
    }

    pub fn with(&self, threads: usize) -> &Rates {
        if threads == 1 { &self.one } else { &self.all }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(fma_flops: f64) -> Limits {
        let one = Rates {
            threads: 1,
            fma_flops,
            copy_bytes: 10e9,
        };
        Limits {
            clock_hz: 3e9,
            lanes: 16,
            one,
            all: one,
        }
    }

    #[test]
    fn ports_are_counted() {
        let (ports, part) = limits(2.0 * 0.96 * 96e9).ports();
        assert_eq!(ports, 2);
        assert!((part - 0.96).abs() < 1e-9);
        assert_eq!(limits(90e9).ports().0, 1);
        // A machine too busy to reach the rate of one port has one.
        assert_eq!(limits(10e9).ports().0, 1);
    }

    #[test]
    fn the_larger_of_copying_and_multiplying() {
        let rates = limits(100e9).one;
        let seconds = |operations| {
            rates.seconds(Work {
                operations,
                bytes: 1e9,
            })
        };
        assert_eq!(seconds(1e9), 0.1);
        assert_eq!(seconds(50e9), 0.5);
    }

    #[test]
    fn the_best_of_two_takes_each_rate_alone_and_the_clock_of_the_better() {
        let (mut first, mut second) = (limits(100e9), limits(120e9));
        first.all.copy_bytes = 30e9;
        second.clock_hz = 2e9;
        let best = first.best(second);
        assert_eq!((best.clock_hz, best.one.fma_flops), (2e9, 120e9));
        assert_eq!(
            (best.with(1).copy_bytes, best.with(2).copy_bytes),
            (10e9, 30e9)
        );
    }
}
