//! Who watches a lowering: what runs, how far it goes.

/// Is told the name of each step that is done, in order, and may end the passes early.
pub struct Watch<'w> {
    /// The step behind which no pass runs; none: all run.
    pub until: Option<&'w str>,
    pub done: &'w mut dyn FnMut(&'static str),
    /// Gets each [nest](crate::nest) as text, where that is the last step.
    pub nests: Vec<String>,
}

impl Watch<'_> {
    /// A step is done. Does the next one follow?
    pub fn goes_on(&mut self, step: &'static str) -> bool {
        (self.done)(step);
        self.until != Some(step)
    }
}

/// Does something that nobody watches.
pub fn unwatched<T>(what: impl FnOnce(&mut Watch<'_>) -> T) -> T {
    what(&mut Watch {
        until: None,
        done: &mut |_| {},
        nests: Vec::new(),
    })
}
