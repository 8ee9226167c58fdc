//! Windows of inputs in shared memory: where an element is in them, and how one warp fills them.

use systola_ir::form::{Cond, Form, Rel};
use systola_ir::kernel::{Access, Memory, Stmt};
use systola_ir::{BufferId, InputId};

use crate::emit::Emitter;
use crate::emit::staged_window::StagedWindow;
use crate::facts::Range;
use crate::failure::Failure;
use crate::nest::interior::inside;

impl Emitter<'_> {
    /// The access to an element in the window of its input, if that has one.
    pub(super) fn staged(&self, input: InputId, index: &[Form]) -> Option<Access> {
        let window = self.windows.iter().find(|w| w.of.input == input)?;
        let at: Vec<Form> = index
            .iter()
            .zip(&window.start)
            .map(|(i, s)| i.sub(s))
            .collect();
        let within = at.iter().zip(&window.of.axes).map(|(at, (_, extent))| {
            Cond::cmp(Rel::Ge, at.clone(), 0).and(Cond::cmp(Rel::Lt, at.clone(), extent.clone()))
        });
        Some(Access {
            memory: Memory::Shared(window.of.store),
            // Only a slot without a point may read outside the window.
            when: self.facts.simplify(&within.fold(Cond::TRUE, Cond::and)),
            index: window.of.index(&window.stage, &at),
        })
    }

    /// Fills the windows that belong inside `depth` loops.
    pub(super) fn fill_windows(&mut self, depth: usize, slot: &[Form]) -> Result<(), Failure> {
        if self.machine.threads.is_some() {
            return self.stage_windows(depth, slot);
        }
        for n in 0..self.windows.len() {
            if self.windows[n].of.depth == depth {
                let mut window = self.windows[n].clone();
                window.start = window.of.starts(slot)?;
                self.b.forget(window.of.store);
                self.fill(&window, &mut Vec::new())?;
                self.windows[n] = window;
            }
        }
        Ok(())
    }

    /// Loops over the axes of a window, the last one in vectors.
    fn fill(&mut self, window: &StagedWindow, at: &mut Vec<Form>) -> Result<(), Failure> {
        let axis = at.len();
        let Some((_, extent)) = window.of.axes.get(axis) else {
            return self.copy(window, at);
        };
        let last = axis + 1 == window.of.axes.len();
        let step = if last {
            i128::from(self.partition.lanes)
        } else {
            1
        };
        let name = format!("{}{axis}", self.array.inputs[window.of.input.index()].name);
        let range = Range::new(0, Form::from(extent.clone()));
        self.looped(&name, range, step, &mut |e, v| {
            at.push(match e.lane {
                Some(lane) if last => Form::from(v).add(&Form::from(lane)),
                Some(_) | None => Form::from(v),
            });
            let result = e.fill(window, at);
            at.pop();
            result
        })
    }

    fn copy(&mut self, window: &StagedWindow, at: &[Form]) -> Result<(), Failure> {
        let declared = &self.array.inputs[window.of.input.index()];
        let index: Vec<Form> = at
            .iter()
            .zip(&window.start)
            .map(|(a, s)| a.add(s))
            .collect();
        let when = self.facts.simplify(&inside(&declared.axes, &index));
        let from = Access {
            memory: Memory::Global(BufferId::from(window.of.input.index())),
            index,
            when,
        };
        let value = self
            .b
            .load(&declared.name, declared.ty, from, declared.outside);
        self.b.push(Stmt::Store {
            to: Access::new(Memory::Shared(window.of.store), at.to_vec()),
            value,
        });
        Ok(())
    }
}
