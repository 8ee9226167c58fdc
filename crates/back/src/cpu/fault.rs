//! Faults of equations: one test of all lanes, and a rare branch that finds the first one.

use systola_ir::form::Cond;

use super::lanes::Vector;
use super::{Cpu, Rep};
use crate::context::Context;
use crate::dialect::{Action, Record};
use crate::error::Fault;
use crate::expr::Expr;
use crate::prelude::File;
use crate::scalar::signed;

impl Cpu {
    pub(super) fn record_fault(
        &self,
        cx: &mut Context<'_>,
        record: Record<'_>,
    ) -> Result<Action, Fault> {
        let bad = self.read(cx, record.bad);
        let mut lines = Vec::new();
        let test = if bad.rep == Rep::Scalar && self.is_uniform(record.when) {
            // One lane stands for all of them.
            lines.extend(self.lane_is(cx, "0"));
            match record.when {
                Cond::Const(true) => bad.expr,
                when => Expr::binary("&&", &bad.expr, &cx.cond(when)?),
            }
        } else {
            let bits = match bad.rep {
                Rep::Mask(bits) => bits,
                Rep::Scalar | Rep::Vector => 32,
            };
            let mut mask = self.mask_value(cx, &bad, bits)?;
            if *record.when != Cond::TRUE {
                mask = Expr::binary("&", &mask, &self.mask(cx, record.when, bits)?);
            }
            let vector = Vector::new(signed(bits), self.lanes);
            let (any, lanes) = (vector.any(cx.prelude)?, vector.lanes_where(cx.prelude)?);
            let ty = vector.name(cx.prelude)?;
            let name = cx.names.claim("fault");
            cx.lines
                .push(&format!("const {ty} {name} = {};", mask.text));
            lines.extend(self.lane_is(cx, &format!("__builtin_ctzll({lanes}({name}))")));
            Expr::call(&any, &[Expr::atom(name)])
        };
        lines.extend(record.lines(cx, File::Memory)?);
        Ok(Action {
            guard: Some(Expr::call("__builtin_expect", &[test, Expr::atom("0")])),
            lines,
        })
    }

    /// Binds the variable of the lane, which no other statement needs.
    fn lane_is(&self, cx: &Context<'_>, text: &str) -> Option<String> {
        let name = &cx.dims[self.lane?.index()].name;
        Some(format!(
            "const int64_t {name} __attribute__((unused)) = {text};"
        ))
    }
}
