//! Race detection: the happens-before order of accesses.
//!
//! Two accesses to one element, one of which writes, must be ordered. They are when one warp does
//! both; when the warps of a block passed a barrier in between; when a launch ended in between; or
//! when one block signalled after its access and the other one, directly or through others, waited
//! for that signal before its own. The latter is tracked by vector clocks. Each element records its
//! last writer and the readers since (as in FastTrack, Flanagan and Freund 2009), so that a race is
//! found in whatever order the accesses are executed here.

use std::rc::Rc;

/// An access to an element: its warp and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub launch: u32,
    /// The index of the block in the grid.
    pub block: u32,
    pub warp: u32,
    /// The number of barriers that the block had passed.
    pub epoch: u32,
    /// The number of signals that it had given.
    pub signals: u32,
}

/// For each block, the number of its signals known to have happened before.
#[derive(Clone, Debug, Default)]
pub(super) struct Clock(Option<Rc<Vec<u32>>>);

impl Clock {
    fn of(&self, block: u32) -> u32 {
        let known = self.0.as_ref().and_then(|c| c.get(block as usize));
        known.copied().unwrap_or(0)
    }

    pub fn join(&mut self, other: &Clock) {
        let Some(theirs) = &other.0 else {
            return;
        };
        match &mut self.0 {
            None => self.0 = Some(theirs.clone()),
            Some(ours) if Rc::ptr_eq(ours, theirs) => {}
            Some(ours) => {
                let ours = Rc::make_mut(ours);
                if ours.len() < theirs.len() {
                    ours.resize(theirs.len(), 0);
                }
                for (a, b) in ours.iter_mut().zip(theirs.iter()) {
                    *a = (*a).max(*b);
                }
            }
        }
    }

    /// Sets the number of signals that a block has given.
    pub fn set(&mut self, block: u32, signals: u32) {
        let clock = Rc::make_mut(self.0.get_or_insert_default());
        let at = block as usize;
        if clock.len() <= at {
            clock.resize(at + 1, 0);
        }
        clock[at] = signals;
    }
}

/// The warp that accesses an element now.
#[derive(Clone, Copy)]
pub(super) struct Me<'a> {
    pub mark: Mark,
    pub clock: &'a Clock,
}

impl Me<'_> {
    /// Is the other access ordered before this one in every execution?
    fn comes_after(&self, other: &Mark) -> bool {
        let me = &self.mark;
        if other.launch != me.launch {
            true
        } else if other.block == me.block {
            other.warp == me.warp || other.epoch < me.epoch
        } else {
            self.clock.of(other.block) > other.signals
        }
    }
}

#[derive(Clone, Debug, Default)]
enum Readers {
    #[default]
    None,
    One(Mark),
    Many(Vec<Mark>),
}

/// The history of one element.
#[derive(Clone, Debug, Default)]
pub(super) struct Shadow {
    write: Option<Mark>,
    readers: Readers,
    /// The stamp of the statement that wrote it last.
    pub stamp: u64,
    /// Is a copy into it in flight?
    pub is_copying: bool,
}

/// The access that this one races with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Raced {
    pub other: Mark,
    pub other_writes: bool,
}

impl Shadow {
    #[inline]
    pub fn read(&mut self, me: Me<'_>) -> Result<(), Raced> {
        if let Some(write) = self.write
            && !me.comes_after(&write)
        {
            return Err(Raced {
                other: write,
                other_writes: true,
            });
        }
        match &mut self.readers {
            Readers::None => self.readers = Readers::One(me.mark),
            Readers::One(mark) if me.comes_after(mark) => *mark = me.mark,
            Readers::One(mark) => self.readers = Readers::Many(vec![*mark, me.mark]),
            // An access ordered after this read is ordered after the earlier reads.
            Readers::Many(marks) => match marks.iter_mut().find(|m| me.comes_after(m)) {
                Some(mark) => *mark = me.mark,
                None => marks.push(me.mark),
            },
        }
        Ok(())
    }

    #[inline]
    pub fn write(&mut self, me: Me<'_>) -> Result<(), Raced> {
        if let Some(write) = self.write
            && !me.comes_after(&write)
        {
            return Err(Raced {
                other: write,
                other_writes: true,
            });
        }
        let readers = match &self.readers {
            Readers::None => &[][..],
            Readers::One(mark) => std::slice::from_ref(mark),
            Readers::Many(marks) => marks,
        };
        if let Some(other) = readers.iter().find(|mark| !me.comes_after(mark)) {
            return Err(Raced {
                other: *other,
                other_writes: false,
            });
        }
        self.readers = Readers::None;
        self.write = Some(me.mark);
        Ok(())
    }

    /// The access that issued the copy in flight.
    pub fn copier(&self) -> Option<Mark> {
        self.write.filter(|_| self.is_copying)
    }

    /// Was it accessed in this launch?
    pub fn is_touched_in(&self, launch: u32) -> bool {
        let read = match &self.readers {
            Readers::None => false,
            Readers::One(mark) => mark.launch == launch,
            Readers::Many(marks) => marks.iter().any(|mark| mark.launch == launch),
        };
        read || self.write.is_some_and(|mark| mark.launch == launch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(block: u32, warp: u32, epoch: u32, signals: u32) -> Mark {
        Mark {
            launch: 0,
            block,
            warp,
            epoch,
            signals,
        }
    }

    /// Accesses in this order, each with its clock; the last one races or not.
    fn last_races(accesses: &[(char, Mark, &Clock)]) -> bool {
        let mut shadow = Shadow::default();
        let results = accesses.iter().map(|(what, mark, clock)| {
            let me = Me { mark: *mark, clock };
            match what {
                'r' => shadow.read(me),
                _ => shadow.write(me),
            }
        });
        let mut results: Vec<_> = results.collect();
        let last = results.pop();
        assert!(results.iter().all(Result::is_ok), "{results:?}");
        last.is_some_and(|result| result.is_err())
    }

    #[test]
    fn barriers_order_the_warps_of_a_block() {
        let none = &Clock::default();
        let (a, b, c) = (mark(0, 0, 0, 0), mark(0, 1, 0, 0), mark(0, 2, 0, 0));
        let later = mark(0, 1, 1, 0);
        assert!(!last_races(&[('w', a, none), ('r', a, none)]));
        assert!(!last_races(&[('r', a, none), ('r', b, none)]));
        assert!(last_races(&[('w', a, none), ('r', b, none)]));
        assert!(last_races(&[('w', a, none), ('w', b, none)]));
        assert!(last_races(&[('r', a, none), ('w', b, none)]));
        assert!(!last_races(&[('w', a, none), ('w', later, none)]));
        // Every reader counts, not the last one only.
        assert!(last_races(&[
            ('r', a, none),
            ('r', b, none),
            ('w', b, none)
        ]));
        let three = [('r', a, none), ('r', b, none), ('r', c, none)];
        assert!(!last_races(&[
            three[0],
            three[1],
            three[2],
            ('w', later, none)
        ]));
        let next = Mark { launch: 1, ..c };
        assert!(!last_races(&[
            three[0],
            three[1],
            three[2],
            ('w', next, none)
        ]));
    }

    #[test]
    fn signals_order_blocks() {
        let none = &Clock::default();
        let mut one = Clock::default();
        one.set(0, 1);
        let (early, late, other) = (mark(0, 0, 0, 0), mark(0, 0, 1, 1), mark(1, 0, 0, 0));
        assert!(last_races(&[('w', early, none), ('r', other, none)]));
        assert!(!last_races(&[('w', early, none), ('r', other, &one)]));
        assert!(last_races(&[('w', late, none), ('r', other, &one)]));
        // Clocks are transitive.
        let mut two = Clock::default();
        two.join(&one);
        two.set(1, 1);
        let third = mark(2, 0, 0, 0);
        assert!(!last_races(&[('w', early, none), ('w', third, &two)]));
    }
}
