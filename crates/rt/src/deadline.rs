//! Deadlines of work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A time at which work has to end, and flags that end it earlier, such as one set by an interrupt.
#[derive(Clone, Debug)]
pub struct Deadline {
    end: Instant,
    stops: Vec<Arc<AtomicBool>>,
    /// How often it may still be looked at.
    looks: Option<Arc<AtomicU64>>,
}

impl PartialEq for Deadline {
    fn eq(&self, other: &Deadline) -> bool {
        let same = |(a, b): (&Arc<AtomicBool>, &Arc<AtomicBool>)| Arc::ptr_eq(a, b);
        let looks = |d: &Deadline| d.looks.as_ref().map(Arc::as_ptr);
        self.end == other.end
            && looks(self) == looks(other)
            && self.stops.len() == other.stops.len()
            && self.stops.iter().zip(&other.stops).all(same)
    }
}

impl Eq for Deadline {}

impl Deadline {
    pub fn at(end: Instant) -> Deadline {
        Deadline {
            end,
            stops: Vec::new(),
            looks: None,
        }
    }

    /// No time, but an amount of work: over after this many calls of [`Deadline::is_over`], of this
    /// deadline and of those made from it. What one thread does until then does not depend on the
    /// speed of the machine.
    pub fn counted(looks: u64) -> Deadline {
        Deadline {
            looks: Some(Arc::new(AtomicU64::new(looks))),
            ..Deadline::after(Duration::MAX)
        }
    }

    pub fn after(time: Duration) -> Deadline {
        let now = Instant::now();
        // A time beyond the range of the clock becomes a century.
        let end = now.checked_add(time);
        Deadline::at(end.unwrap_or(now + Duration::from_secs(100 * 365 * 86_400)))
    }

    /// The same deadline, over as soon as this flag is set.
    #[must_use]
    pub fn or_when(&self, stop: &Arc<AtomicBool>) -> Deadline {
        let mut deadline = self.clone();
        deadline.stops.push(Arc::clone(stop));
        deadline
    }

    /// The same deadline, over at this time at the latest.
    #[must_use]
    pub fn or_at(&self, end: Instant) -> Deadline {
        Deadline {
            end: self.end.min(end),
            stops: self.stops.clone(),
            looks: self.looks.clone(),
        }
    }

    pub fn end(&self) -> Instant {
        self.end
    }

    pub fn is_stopped(&self) -> bool {
        self.stops.iter().any(|stop| stop.load(Ordering::Relaxed))
    }

    pub fn is_over(&self) -> bool {
        self.has_no_looks() || self.is_stopped() || Instant::now() >= self.end
    }

    /// Counts a look, if they are counted.
    fn has_no_looks(&self) -> bool {
        let one_less = |looks: &Arc<AtomicU64>| {
            let less = |n: u64| n.checked_sub(1);
            looks
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
                .is_err()
        };
        self.looks.as_ref().is_some_and(one_less)
    }

    /// The remaining time; zero once it is stopped.
    pub fn left(&self) -> Duration {
        if self.is_stopped() {
            return Duration::ZERO;
        }
        self.end.saturating_duration_since(Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_over_at_its_time_or_when_it_is_stopped() {
        let far = Deadline::after(Duration::MAX);
        assert!(!far.is_over() && far.left() > Duration::from_secs(3600));
        assert!(far.or_at(Instant::now()).is_over());
        let stop = Arc::new(AtomicBool::new(false));
        let both = far.or_when(&stop).or_when(&Arc::default());
        assert!(!both.is_over());
        stop.store(true, Ordering::Relaxed);
        assert!(both.is_over() && both.is_stopped() && both.left().is_zero());
        assert!(!far.is_over());
    }

    #[test]
    fn a_counted_one_is_over_after_its_looks() {
        let counted = Deadline::counted(3);
        let same = counted.or_at(Instant::now() + Duration::from_secs(3600));
        assert!(!counted.is_over() && !same.is_over() && !counted.is_over());
        assert!(counted.is_over() && same.is_over());
    }
}
