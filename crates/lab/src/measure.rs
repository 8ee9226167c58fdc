//! The number of runs that a benchmark measures, and measurements that alternate with another.

use systola::rt::timing::{Enough, Timing, sample};

/// On a CPU, by the time of one run: the rule of bench/baselines/cpu/measure.h.
pub fn enough_on_cpu(one: f64, seconds: f64) -> Enough {
    Enough {
        least: if is_slow(one) { 3 } else { 5 },
        most: 51,
        seconds,
    }
}

/// On a device, where samples are taken in one batch.
pub fn enough_on_device(one: f64) -> Enough {
    let samples = match one {
        one if one > 0.5 => 3,
        one if one > 0.05 => 7,
        _ => 21,
    };
    Enough {
        least: samples,
        most: samples,
        seconds: 0.0,
    }
}

/// After a run of this length caches and threads are warm.
pub fn is_slow(one: f64) -> bool {
    one > 1.0
}

/// These runs evict what another measurement left in the caches: a shared cache level adapts only
/// gradually.
const WARM_UP: Enough = Enough {
    least: 1,
    most: 5,
    seconds: 0.04,
};

/// The samples between two of the other measurements.
const INTERLEAVED: Enough = Enough {
    least: 1,
    most: 8,
    seconds: 0.06,
};

/// Takes samples until there are enough, alternating with another measurement, so that both see the
/// machine in the same state.
pub fn sample_interleaved(
    enough: Enough,
    warm_up: bool,
    mut run: impl FnMut(usize) -> Result<Vec<f64>, String>,
    mut other: impl FnMut() -> Result<(), String>,
) -> Result<Timing, String> {
    let mut samples: Vec<f64> = Vec::new();
    while !enough.is_reached(&samples) {
        other()?;
        if warm_up {
            sample(WARM_UP, &mut run)?;
        }
        let begin = samples.len();
        while !enough.is_reached(&samples) && !INTERLEAVED.is_reached(&samples[begin..]) {
            samples.extend(run(1)?);
        }
    }
    Ok(Timing { samples })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fast_runs_are_measured_more_often() {
        let check = |enough: Enough, each: f64, expect: usize| {
            let timing = sample(enough, |times| Ok::<_, ()>(vec![each; times]));
            assert_eq!(timing.unwrap().samples.len(), expect, "{enough:?} {each}");
        };
        check(enough_on_cpu(1e-3, 1.0), 1e-3, 51);
        check(enough_on_cpu(0.1, 1.0), 0.1001, 10);
        check(enough_on_cpu(0.5, 1.0), 0.5, 5);
        check(enough_on_cpu(2.0, 1.0), 2.0, 3);
        check(enough_on_device(1e-3), 1e-3, 21);
        check(enough_on_device(0.1), 0.1, 7);
        check(enough_on_device(0.6), 0.6, 3);
    }

    #[test]
    fn samples_alternate_with_the_other_after_warm_up_runs() {
        let (mut runs, mut others) = (0, 0);
        let enough = enough_on_cpu(1e-3, 1.0);
        let run = |times: usize| {
            runs += times;
            Ok(vec![1e-3; times])
        };
        let other = || {
            others += 1;
            Ok(())
        };
        let timing = sample_interleaved(enough, true, run, other).unwrap();
        assert_eq!(timing.samples.len(), 51);
        assert_eq!((runs, others), (51 + 7 * WARM_UP.most, 7));
    }
}
