//! What differs between targets that speak C.
//!
//! [`c_family`](crate::c_family) decides what is printed and where; a dialect decides how
//! operations on lanes and memory accesses are written. How it represents each value is its own
//! decision.

use systola_ir::form::{Cond, Form};
use systola_ir::kernel::{Access, Cache, Memory, Op, Stmt};
use systola_ir::mapping::Engine;
use systola_ir::{BufferId, DimId, Literal, RegId, Scalar, ValueId};

use crate::context::Context;
use crate::error::Fault;
use crate::expr::Expr;
use crate::prelude::File;

/// A statement with an effect: lines of C, under a condition if there is one.
#[derive(Clone, Debug, Default)]
pub struct Action {
    pub guard: Option<Expr>,
    pub lines: Vec<String>,
}

impl Action {
    pub fn line(text: impl Into<String>) -> Action {
        Action {
            guard: None,
            lines: vec![text.into()],
        }
    }
}

/// A fault that is recorded where a bool holds.
#[derive(Clone, Copy)]
pub struct Record<'s> {
    pub faults: BufferId,
    pub site: usize,
    pub bad: ValueId,
    pub when: &'s Cond,
    pub point: &'s [Form],
}

impl Record<'_> {
    /// The lines that record it, unless another fault was recorded before. `file` has the functions
    /// for that.
    pub fn lines(&self, cx: &mut Context<'_>, file: File) -> Result<Vec<String>, Fault> {
        cx.prelude.add("claim_fault", file, "claim_fault", &[]);
        cx.prelude
            .add("put_coordinate", file, "put_coordinate", &[]);
        let faults = cx.pointer(Memory::Global(self.faults));
        let mut lines = vec![format!("if (claim_fault({faults}, {})) {{", self.site + 1)];
        for (n, form) in self.point.iter().enumerate() {
            let x = cx.form(form)?.text;
            lines.push(format!("    put_coordinate({faults}, {n}, {x});"));
        }
        lines.push("}".to_string());
        Ok(lines)
    }
}

pub trait Dialect {
    /// Must the operation be printed where it is, by all lanes, wherever its value is read?
    fn stays(&self, _: &Op) -> bool {
        false
    }

    /// Called before each statement.
    fn before(&mut self, _: &mut Context<'_>) -> Result<(), Fault> {
        Ok(())
    }

    /// The text of a condition that selects one of two paths, outside loops.
    fn choice(&mut self, _: &mut Context<'_>, _: &Cond, text: Expr) -> Expr {
        text
    }

    /// Begins the other branch of a condition that is decided once per block: renames variables in
    /// it, and returns their names outside.
    fn copy_coordinates(
        &mut self,
        _: &mut Context<'_>,
        _: &[Stmt],
    ) -> Result<Vec<(DimId, String)>, Fault> {
        Ok(Vec::new())
    }

    /// Is a loop with this body always entered at least once? It then tests inside whether there is
    /// anything to do.
    fn runs_at_least_once(&self, _: &[Stmt]) -> bool {
        false
    }

    /// A loop adds floats one after the other in a register.
    fn float_sum(&self, _: &mut Context<'_>) {}

    /// What is written before a loop whose iterations are independent.
    fn independent_loop(&self, _: &mut Context<'_>) -> Option<&'static str> {
        None
    }

    /// The type with which a value is declared. Its operation has been printed before.
    fn value_type(&mut self, cx: &mut Context<'_>, value: ValueId) -> Result<String, Fault>;

    /// The type of a register, and its initial value.
    fn reg_type(&mut self, cx: &mut Context<'_>, reg: RegId) -> Result<(String, String), Fault>;

    fn operation(&mut self, cx: &mut Context<'_>, value: ValueId, op: &Op) -> Result<Expr, Fault>;

    /// A value converted to the representation of the register.
    fn set(&mut self, cx: &mut Context<'_>, reg: RegId, value: ValueId) -> Result<Expr, Fault>;

    /// One expression for each value.
    fn load_wide(
        &mut self,
        cx: &mut Context<'_>,
        to: &[ValueId],
        from: &Access,
        otherwise: Option<Literal>,
    ) -> Result<Vec<Expr>, Fault>;

    fn store(&mut self, cx: &mut Context<'_>, to: &Access, value: ValueId)
    -> Result<Action, Fault>;

    fn store_wide(
        &mut self,
        cx: &mut Context<'_>,
        to: &Access,
        values: &[ValueId],
    ) -> Result<Action, Fault>;

    fn prefetch(&mut self, cx: &mut Context<'_>, at: &Access, into: Cache)
    -> Result<Action, Fault>;

    fn copy(
        &mut self,
        cx: &mut Context<'_>,
        to: &Access,
        from: &Access,
        width: u32,
        engine: Engine,
    ) -> Result<Action, Fault>;

    fn commit_copies(&mut self, cx: &mut Context<'_>) -> Result<Action, Fault>;

    fn wait_copies(&mut self, cx: &mut Context<'_>, pending: u32) -> Result<Action, Fault>;

    /// The lanes of a vector run in lockstep.
    fn sync_warp(&mut self, _: &mut Context<'_>) -> Result<Action, Fault> {
        Ok(Action::default())
    }

    fn barrier(&mut self, cx: &mut Context<'_>) -> Result<Action, Fault>;

    fn signal(&mut self, cx: &mut Context<'_>, flag: &Access) -> Result<Action, Fault>;

    fn await_flag(
        &mut self,
        cx: &mut Context<'_>,
        flag: &Access,
        at_least: &Expr,
    ) -> Result<Action, Fault>;

    /// Declares the variable.
    fn dynamic_block(
        &mut self,
        cx: &mut Context<'_>,
        var: DimId,
        counter: &Access,
    ) -> Result<Action, Fault>;

    fn fault(&mut self, cx: &mut Context<'_>, record: Record<'_>) -> Result<Action, Fault>;

    /// The file with the functions `publish_T` and `published_T`, if blocks can look back.
    fn publishers(&mut self, cx: &mut Context<'_>) -> Result<File, Fault>;

    /// The qualifier of a pointer into global memory.
    fn global_space(&self) -> &'static str {
        ""
    }

    /// The variable of the lane and the number of lanes, if the lanes of a vector take turns.
    fn lane_loop(&self, _: &Context<'_>) -> Option<(DimId, u32)> {
        None
    }

    /// Notes how a value is represented that a look-back assigns.
    fn look_back_result(&mut self, _: ValueId, _: Scalar, _vector: bool) {}

    /// The value of one lane, from the name of a value.
    fn one_lane(&self, name: &str, _: ValueId, _lane: &str) -> String {
        name.to_string()
    }

    /// The line that gives one lane of a value its result.
    fn put_lane(&self, name: &str, _: ValueId, lane: &str, result: &str) -> String {
        format!("{name}[{lane}] = {result};")
    }

    /// Holds in the threads that publish, if others run the same statement. `varies` if each lane
    /// has a chain of its own.
    fn publisher(&self, _varies: bool) -> Option<String> {
        None
    }

    /// How the lanes of a warp look back together, if they can.
    fn together(&mut self, _varies: bool) -> Option<Together> {
        None
    }

    /// A line before another attempt to read what is not published yet.
    fn between_reads(&mut self, _: &mut Context<'_>) -> Option<String> {
        None
    }
}

/// How lanes that are threads exchange what they see.
pub struct Together {
    /// The number of a thread in its warp.
    pub lane: String,
    pub width: u32,
    /// The lanes in which a condition holds, as bits.
    pub ballot: fn(&str) -> String,
    /// The first of such lanes.
    pub first: fn(&str) -> String,
    /// The value of the lane this many lanes further.
    pub down: fn(&str, &str) -> String,
    /// The value of a lane.
    pub from: fn(&str, &str) -> String,
    /// The line before a loop that is unrolled.
    pub unroll: &'static str,
}
