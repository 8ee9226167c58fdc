//! The values that an expression will read at a point, without computing any.
//!
//! Guards depend on the point alone, and both branches of a `select` are read, so the set of reads
//! does not depend on values. Functions read no variables.

use systola_ir::{Span, VarId};

use crate::code::{Code, Frame, Node, Prefix, Reduction, Stop};
use crate::linear::{Linear, Test};
use crate::params::overflow;

/// A value needed by an evaluation.
pub(crate) enum Need<'a> {
    Var {
        var: VarId,
        point: &'a [i64],
        span: Span,
    },
    /// A prefix sum, at the point itself.
    Scan { scan: usize, point: &'a [i64] },
}

impl Code {
    /// Calls `f` on everything that [`Code::eval`] will read at this point.
    pub(crate) fn needs(
        &self,
        frame: &mut Frame,
        point: &[i64],
        f: &mut impl FnMut(Need<'_>) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        frame.start(point, self);
        Walk { frame, f }.node(&self.root)
    }
}

struct Walk<'a, F> {
    frame: &'a mut Frame,
    f: &'a mut F,
}

impl<F: FnMut(Need<'_>) -> Result<(), Stop>> Walk<'_, F> {
    fn node(&mut self, node: &Node) -> Result<(), Stop> {
        match node {
            Node::Value(_) | Node::Dim(_) | Node::Local(_) | Node::Input { .. } | Node::Port(_) => {
                Ok(())
            }
            Node::Var { var, index, span } => {
                let Frame {
                    point,
                    index: stack,
                    ..
                } = &mut *self.frame;
                stack.clear();
                for form in index {
                    stack.push(form.eval(point).ok_or_else(|| overflow(*span))?);
                }
                (self.f)(Need::Var {
                    var: *var,
                    point: stack,
                    span: *span,
                })
            }
            Node::Unary(_, a) | Node::Cast(_, a) | Node::Field(a, _) => self.node(a),
            Node::Binary(_, parts) | Node::Let { parts, .. } => {
                self.node(&parts.0)?;
                self.node(&parts.1)
            }
            Node::Guard {
                test,
                then,
                otherwise,
            } => match (self.test(test)?, otherwise) {
                (true, _) => self.node(then),
                (false, Some(otherwise)) => self.node(otherwise),
                (false, None) => Ok(()),
            },
            Node::Select(parts) => {
                self.node(&parts.0)?;
                self.node(&parts.1)?;
                self.node(&parts.2)
            }
            Node::Tuple(parts) | Node::Lookup { index: parts, .. } | Node::Call(_, parts) => {
                parts.iter().try_for_each(|node| self.node(node))
            }
            Node::Reduce(reduction) if reduction.reads_vars => self.reduce(reduction, 0),
            Node::Reduce(_) => Ok(()),
            Node::Scan(scan) => (self.f)(Need::Scan {
                scan: *scan,
                point: &self.frame.point,
            }),
            Node::ScanLoop(prefix) => self.scan_loop(prefix),
        }
    }

    fn test(&self, test: &Test) -> Result<bool, Stop> {
        let holds = test.eval(&self.frame.point);
        holds.ok_or_else(|| overflow(Span::NONE).into())
    }

    fn reduce(&mut self, reduction: &Reduction, depth: usize) -> Result<(), Stop> {
        let Some((dim, first, end)) = reduction.ranges.get(depth) else {
            return self.node(&reduction.body);
        };
        let bound = |form: &Linear| {
            let value = form.eval(&self.frame.point);
            value.ok_or_else(|| Stop::from(overflow(reduction.span)))
        };
        for x in bound(first)?..bound(end)? {
            self.frame.count_term(reduction.span)?;
            if let Some(place) = self.frame.point.get_mut(*dim) {
                *place = x;
            }
            self.reduce(reduction, depth + 1)?;
        }
        Ok(())
    }

    fn scan_loop(&mut self, prefix: &Prefix) -> Result<(), Stop> {
        let here = self.frame.point.get(prefix.dim).copied().unwrap_or(0);
        let first = prefix.domain.lo.get(prefix.dim).copied().unwrap_or(here);
        for x in first..=here {
            self.frame.count_term(prefix.span)?;
            self.frame.point[prefix.dim] = x;
            if self.test(&prefix.domain.test)? {
                self.node(&prefix.body)?;
            }
        }
        Ok(())
    }
}
