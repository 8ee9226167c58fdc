//! Time measurements: how often something is run, and which of its runs are counted.

/// The number of repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeats {
    /// Warm-up runs: afterwards memory is mapped, caches are warm, threads awake.
    pub warm_up: usize,
    /// Measured runs, at least one.
    pub timed: usize,
}

impl Default for Repeats {
    fn default() -> Self {
        Repeats {
            warm_up: 2,
            timed: 7,
        }
    }
}

/// Seconds, in the order they were taken.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timing {
    pub samples: Vec<f64>,
}

impl Timing {
    /// The median: the middle one, or the mean of the two in the middle.
    pub fn median(&self) -> f64 {
        let mut sorted = self.samples.clone();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        match n {
            0 => f64::NAN,
            _ if n % 2 == 1 => sorted[n / 2],
            _ => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
        }
    }

    /// The fastest run, which is the least disturbed one.
    pub fn min(&self) -> f64 {
        self.samples
            .iter()
            .copied()
            .reduce(f64::min)
            .unwrap_or(f64::NAN)
    }
}

/// When there are enough samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Enough {
    pub least: usize,
    pub most: usize,
    /// Between the two: when the total time of the samples reaches this.
    pub seconds: f64,
}

impl Enough {
    pub fn is_reached(&self, samples: &[f64]) -> bool {
        samples.len() >= self.most
            || (samples.len() >= self.least && samples.iter().sum::<f64>() >= self.seconds)
    }

    /// The number of samples for one batch, by the seconds of a run.
    pub fn batch(&self, one: f64) -> usize {
        ((self.seconds / one.max(1e-7)) as usize).clamp(self.least, self.most)
    }
}

/// Samples until there are enough. `run` makes a number of consecutive runs and returns the seconds
/// of each.
pub fn sample<E>(
    enough: Enough,
    mut run: impl FnMut(usize) -> Result<Vec<f64>, E>,
) -> Result<Timing, E> {
    let mut samples = run(enough.least)?;
    while !enough.is_reached(&samples) {
        samples.extend(run(1)?);
    }
    Ok(Timing { samples })
}

/// Collects the seconds that a function reports of itself, such as
/// [`Stats::kernel_seconds`](crate::Stats::kernel_seconds). Stops at its first error.
pub fn measure_reported<E>(
    repeats: Repeats,
    mut f: impl FnMut() -> Result<f64, E>,
) -> Result<Timing, E> {
    for _ in 0..repeats.warm_up {
        f()?;
    }
    let samples = (0..repeats.timed.max(1))
        .map(|_| f())
        .collect::<Result<_, E>>()?;
    Ok(Timing { samples })
}

/// Three digits with a suitable unit.
pub fn duration(seconds: f64) -> String {
    let (value, unit) = match seconds {
        s if s >= 1.0 => (s, "s"),
        s if s >= 1e-3 => (s * 1e3, "ms"),
        s if s >= 1e-6 => (s * 1e6, "µs"),
        s => (s * 1e9, "ns"),
    };
    let digits = match value {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_ignores_outliers() {
        let timing = |samples: &[f64]| Timing {
            samples: samples.to_vec(),
        };
        assert_eq!(timing(&[3.0, 100.0, 1.0]).median(), 3.0);
        assert_eq!(timing(&[4.0, 1.0, 2.0, 100.0]).median(), 3.0);
        assert_eq!(timing(&[3.0, 100.0, 1.0]).min(), 1.0);
        assert!(timing(&[]).median().is_nan());
    }

    #[test]
    fn samples_are_taken_until_there_are_enough() {
        let enough = Enough {
            least: 3,
            most: 10,
            seconds: 1.0,
        };
        let check = |each: f64, expect: usize, batch: usize| {
            let timing = sample(enough, |times| Ok::<_, ()>(vec![each; times]));
            assert_eq!(timing.unwrap().samples.len(), expect, "{each}");
            assert_eq!(enough.batch(each), batch, "{each}");
        };
        check(0.0, 10, 10);
        check(0.15, 7, 6);
        check(0.5, 3, 3);
        assert_eq!(sample(enough, |_| Err("no")), Err("no"));
    }

    #[test]
    fn warm_up_does_not_count() {
        let mut calls = 0;
        let repeats = Repeats {
            warm_up: 3,
            timed: 5,
        };
        let timing = measure_reported(repeats, || {
            calls += 1;
            Ok::<f64, ()>(f64::from(calls))
        });
        assert_eq!(timing.unwrap().samples, [4.0, 5.0, 6.0, 7.0, 8.0]);
        let failed = measure_reported(repeats, || Err::<f64, _>("no"));
        assert_eq!(failed, Err("no"));
        let none = Repeats {
            timed: 0,
            ..repeats
        };
        let timing = measure_reported(none, || Ok::<f64, ()>(1.0));
        assert_eq!(timing.unwrap().samples.len(), 1);
    }

    #[test]
    fn durations_have_three_digits() {
        for (seconds, text) in [
            (12.34, "12.3 s"),
            (0.5, "500 ms"),
            (0.001_234, "1.23 ms"),
            (4.2e-5, "42.0 µs"),
            (7e-9, "7.00 ns"),
        ] {
            assert_eq!(duration(seconds), text);
        }
    }
}
