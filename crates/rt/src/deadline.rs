//! Deadlines of work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A time at which work has to end, and flags that end it earlier: set by an interrupt, say.
#[derive(Clone, Debug)]
pub struct Deadline {
    end: Instant,
    stops: Vec<Arc<AtomicBool>>,
}

impl PartialEq for Deadline {
    fn eq(&self, other: &Deadline) -> bool {
        let same = |(a, b): (&Arc<AtomicBool>, &Arc<AtomicBool>)| Arc::ptr_eq(a, b);
        self.end == other.end
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
        }
    }

    pub fn end(&self) -> Instant {
        self.end
    }

    pub fn is_stopped(&self) -> bool {
        self.stops.iter().any(|stop| stop.load(Ordering::Relaxed))
    }

    pub fn is_over(&self) -> bool {
        self.is_stopped() || Instant::now() >= self.end
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
}
