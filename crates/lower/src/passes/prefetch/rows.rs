//! Prefetches rows of later iterations.
//!
//! A loop that walks down the rows of an array reads another page in every iteration. The hardware
//! sees no sequence in that: it looks for neighbouring lines and stops at the end of a page. So an
//! iteration prefetches the lines that a later iteration reads.
//!
//! This is done in innermost loops whose iterations do much work for every line: elsewhere there is
//! no work to hide the latency behind.

use systola_ir::form::{Cond, Form};
use systola_ir::kernel::{Access, Cache, Kernel, Stmt};
use systola_ir::target::Prefetch;

use super::iteration::Iteration;
use super::{Line, Search};

/// The prefetches of the loops of a kernel. Elements closer to each other than `at_once` arrive
/// together.
pub fn lines(
    kernel: &Kernel,
    worth: &Prefetch,
    at_once: i128,
    except: &dyn Fn(&Access) -> bool,
) -> Vec<Line> {
    let mut lines = Vec::new();
    look(kernel, &kernel.body, worth, at_once, except, &mut lines);
    lines
}

fn look(
    kernel: &Kernel,
    stmts: &[Stmt],
    worth: &Prefetch,
    at_once: i128,
    except: &dyn Fn(&Access) -> bool,
    lines: &mut Vec<Line>,
) {
    let (least_work, distance) = (worth.work as usize, worth.distance as usize);
    for stmt in stmts {
        if let Stmt::For {
            var, step, body, ..
        } = stmt
            && !has_loop(body)
        {
            let search = Search {
                kernel,
                var: *var,
                line: at_once,
                except,
            };
            let Iteration { work, loads } = search.iteration(body);
            if work >= loads.len() * least_work {
                let later = Form::from(*var).plus(distance.div_ceil(work.max(1)) as i128 * step);
                lines.extend(loads.into_iter().filter_map(|load| {
                    Some(Line {
                        iteration_of: Some(*var),
                        buffer: load.memory.buffer()?,
                        into: Cache::L1,
                        index: search.moved(load, &later).ok()?,
                        when: Cond::TRUE,
                    })
                }));
            }
        }
        for body in stmt.bodies() {
            look(kernel, body, worth, at_once, except, lines);
        }
    }
}

pub fn has_loop(stmts: &[Stmt]) -> bool {
    stmts
        .iter()
        .any(|stmt| matches!(stmt, Stmt::For { .. }) || stmt.bodies().into_iter().any(has_loop))
}
