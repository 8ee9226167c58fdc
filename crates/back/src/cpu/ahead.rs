//! Rows asked for some turns of a loop before they are read.
//!
//! A loop that walks down the rows of an array reads another page in every turn. The hardware sees no sequence in that: it looks for
//! neighbouring lines and stops at the end of a page. So a turn asks for the lines that a later one reads.
//!
//! It is done in innermost loops, where a turn does much for every line, since elsewhere there is nothing that the wait could be hidden behind,
//! and where the array is too large to be in the cache.

use systola_ir::DimId;
use systola_ir::form::Form;
use systola_ir::kernel::{Kernel, Stmt};

use super::along::has_loop;
use super::prefetch::Line;
use crate::rows::{Search, Turn};

/// Operations on vectors that go with a line, at least.
const LEAST_WORK: usize = 16;
/// Operations between a request and the turn that reads what it brings.
const AHEAD: usize = 2048;

/// What the loops of a kernel ask for.
pub fn lines(kernel: &Kernel) -> Vec<Line> {
    let mut lines = Vec::new();
    look(kernel, &kernel.body, &mut lines);
    lines
}

fn look(kernel: &Kernel, stmts: &[Stmt], lines: &mut Vec<Line>) {
    for stmt in stmts {
        if let Stmt::For {
            var, step, body, ..
        } = stmt
            && !has_loop(body)
        {
            let search = Search {
                kernel,
                var: *var,
                line: i128::from(kernel.lanes),
                except: &|_| false,
            };
            let Turn { work, loads } = search.turn(body);
            if work >= loads.len() * LEAST_WORK {
                let later = Form::from(*var).plus(AHEAD.div_ceil(work.max(1)) as i128 * step);
                lines.extend(loads.into_iter().filter_map(|load| {
                    Some(Line {
                        turn_of: Some(*var),
                        buffer: load.memory.buffer()?,
                        first: first_lane(kernel, &search.moved(load, &later).ok()?)?,
                    })
                }));
            }
        }
        for body in stmt.bodies() {
            look(kernel, body, lines);
        }
    }
}

fn first_lane(kernel: &Kernel, index: &[Form]) -> Option<Vec<Form>> {
    let zero = |d: DimId| (Some(d) == kernel.lane()).then(Form::zero);
    let forms = index.iter().map(|form| form.substitute(&zero));
    forms.collect::<Result<_, _>>().ok()
}
