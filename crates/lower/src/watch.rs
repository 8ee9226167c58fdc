//! Observes a lowering: which step runs, and where it ends.

/// Receives the name of each completed step, in order, and may end the passes early.
pub struct Watch<'w> {
    /// The step after which no pass runs; `None`: all run.
    pub until: Option<&'w str>,
    pub done: &'w mut dyn FnMut(&'static str),
    /// Receives each [nest](crate::nest) as text, if that is the last step.
    pub nests: Vec<String>,
}

impl Watch<'_> {
    /// Reports a completed step. Does the next one follow?
    pub fn goes_on(&mut self, step: &'static str) -> bool {
        (self.done)(step);
        self.until != Some(step)
    }
}

/// Runs something without an observer.
pub fn unwatched<T>(what: impl FnOnce(&mut Watch<'_>) -> T) -> T {
    what(&mut Watch {
        until: None,
        done: &mut |_| {},
        nests: Vec::new(),
    })
}
