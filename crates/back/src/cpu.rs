//! C with vector types: a warp is a vector, its lanes are the elements, and threads run ranges of
//! blocks.
//!
//! Each kernel becomes one function,
//!
//! ```c
//! void NAME_kernel(const int64_t *sizes, const int64_t *args, void *const *buffers, void *scratch,
//!                  int64_t first, int64_t last);
//! ```
//!
//! Its arguments are the program's sizes, the launch's arguments, the first elements of the
//! buffers, memory for the shared arrays that no other thread uses at the same time
//! ([`Entry::scratch_bytes`], aligned to 64 bytes), and a range of blocks. Blocks have consecutive
//! numbers; the last coordinate varies fastest.

mod defer_stores;
mod edge;
mod fault;
mod function;
mod hoist_invariants;
mod lane_affine;
mod lanes;
mod lookup;
mod mask;
mod math;
mod memory;
mod moves;
mod place;
mod stream;
mod transfer;
mod vector;

use std::collections::BTreeMap;

use systola_ir::form::Cond;
use systola_ir::kernel::{Access, Cache, Kernel, Memory, Op, Program, Stmt};
use systola_ir::mapping::Engine;
use systola_ir::target::Simd;
use systola_ir::{DimId, Literal, RegId, Scalar, ValueId};

use crate::artifact::{Artifact, Entry, SharedArray};
use crate::c_family::Printer;
use crate::context::Context;
use crate::dialect::{Action, Dialect, Record};
use crate::error::{Error, Fault};
use crate::expr::Expr;
use crate::index::number;
use crate::names::{self, Names};
use crate::prelude::{File, Prelude};
use crate::scalar::{c_type, signed};
use lanes::Vector;

/// Arguments of `cc`. The meaning of kernels requires that signed arithmetic wraps; the others
/// permit optimisations.
pub const FLAGS: [&str; 6] = [
    "-std=gnu11",
    "-O3",
    "-fwrapv",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=fast",
];

/// The parameters that a function passes on to another one.
const PASSED_ON: [&str; 4] = ["sizes", "args", "buffers", "scratch"];
const QUALIFIERS: &str = "INLINE";
const INLINE: &str = "#define INLINE static inline __attribute__((always_inline, unused))";
/// Unrolling a loop over function calls gains nothing, and compilers take long for it.
const ONE_BY_ONE: &str = "\
#ifdef __clang__
#define ONE_BY_ONE _Pragma(\"clang loop unroll(disable)\")
#else
#define ONE_BY_ONE _Pragma(\"GCC unroll 1\")
#endif";

/// gcc puts the terms of a sum that it may not reorder into vectors, and takes them out again one by
/// one. With the widest vectors that is a sixth slower than no vectors (`bench/textbook/run.py`).
const FLOAT_SUM: &str = "\
#if defined(__x86_64__) && !defined(__clang__)
#pragma GCC target(\"prefer-vector-width=256\")
#endif";

/// Compilers look for dependences that are known to be absent, and give up early.
const INDEPENDENT: &str = "\
#ifdef __clang__
#define INDEPENDENT _Pragma(\"clang loop vectorize(assume_safety)\")
#else
#define INDEPENDENT _Pragma(\"GCC ivdep\")
#endif";

/// How a value is represented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rep {
    /// It is the same in all lanes.
    Scalar,
    Vector,
    /// A `bool` of each lane: a vector of integers of this width in bits, 0 or −1.
    Mask(u32),
}

/// The state of this dialect for a kernel.
pub struct Cpu {
    /// Bytes of a vector register.
    register: u32,
    lanes: u32,
    /// The variable of the lane; `None` where there is only one lane.
    lane: Option<DimId>,
    reps: Vec<Rep>,
    literals: Vec<Option<Literal>>,
    /// The names of conditions on the sizes.
    conditions: Vec<(Cond, String)>,
    /// Are there non-temporal stores?
    streams: bool,
    /// The names of elements of inputs that are read before the first block.
    hoisted: BTreeMap<hoist_invariants::Element, String>,
    /// The conditions that several choices share.
    shared_masks: Vec<Cond>,
    /// For arrays with lookups: the name of the flag that says whether short indices reach all
    /// elements.
    near: BTreeMap<Memory, String>,
    /// The stores that are issued one block later.
    deferred: Option<defer_stores::Queue>,
}

/// Prints a verified program.
pub fn emit(program: &Program, simd: Simd) -> Result<Artifact, Error> {
    let mut prelude = Prelude::new(QUALIFIERS);
    prelude.include("stdbool.h");
    prelude.include("stdint.h");
    prelude.add_type("INLINE", || INLINE.to_string());
    let mut symbols = Names::default();
    let mut kernels = Vec::new();
    let mut functions = String::new();
    for kernel in &program.kernels {
        let symbol = symbols.claim(&names::symbol(&kernel.name));
        let (text, entry) = emit_kernel(program, kernel, simd, &mut prelude, symbol)
            .map_err(|fault| fault.of_kernel(&kernel.name))?;
        functions.push('\n');
        functions.push_str(&text);
        kernels.push(entry);
    }
    let name = comment_text(&program.name);
    let source = format!(
        "// {name}: {} for vectors of {} bytes, printed by Systola.\n\
         // Compile with -fwrapv: integers wrap.\n\
         // Comparisons that always hold are expected here.\n\
         #pragma GCC diagnostic ignored \"-Wtype-limits\"\n\n{}{functions}",
        if kernels.len() == 1 {
            "a kernel"
        } else {
            "kernels"
        },
        simd.bytes().max(1),
        prelude.finish(),
    );
    Ok(Artifact { source, kernels })
}

fn comment_text(text: &str) -> String {
    text.replace(['\n', '\r', '\\'], " ")
}

fn emit_kernel(
    program: &Program,
    kernel: &Kernel,
    simd: Simd,
    prelude: &mut Prelude,
    symbol: String,
) -> Result<(String, Entry), Fault> {
    if !kernel.lanes.is_power_of_two() || kernel.lanes > 64 {
        return Err(Fault::unsupported(format!(
            "a warp of {} lanes; a vector has a power of two of them, at most 64",
            kernel.lanes
        )));
    }
    if kernel.warps > 1 {
        return Err(Fault::unsupported(format!(
            "a block of {} warps; a thread runs one",
            kernel.warps
        )));
    }
    let shared = kernel.shared.iter().map(|s| SharedArray {
        extents: s.extents.clone(),
        element_bytes: u64::from(s.ty.bits() / 8),
    });
    let entry = Entry {
        symbol: symbol.clone(),
        shared: shared.collect(),
    };
    let split = edge::split(kernel);
    let mut branch = None;
    let mut streams = false;
    if let Some(split) = &split {
        let symbol = format!("{symbol}_edge");
        let mut cpu = Cpu::new(&split.edge, simd);
        let mut cx = Context::new(program, &split.edge, prelude, 1);
        cpu.hoist_invariants(&mut cx)?;
        Printer::new(&mut cx, &mut cpu).body()?;
        let function = cpu.edge_function(&mut cx, &symbol)?;
        streams = cpu.streams;
        branch = Some((&split.inside, symbol, function));
    }
    let kernel = split.as_ref().map_or(kernel, |split| &split.then);
    let mut cpu = Cpu::new(kernel, simd);
    cpu.streams = streams;
    let mut cx = Context::new(program, kernel, prelude, 0);
    cpu.hoist_invariants(&mut cx)?;
    cpu.defer_stores(&mut cx)?;
    Printer::new(&mut cx, &mut cpu).body()?;
    cpu.end_of_block(&mut cx);
    let mut text = String::new();
    if let Some((inside, symbol, function)) = &branch {
        let body = std::mem::take(&mut cx.lines).finish();
        let inside = cx.cond(inside)?;
        cx.lines.open(&format!("if ({})", inside.text));
        cx.lines.append_deeper(&body, 1);
        cx.lines.otherwise();
        let mut args: Vec<Expr> = PASSED_ON.into_iter().map(Expr::atom).collect();
        for var in &function.coordinates {
            args.push(Expr::atom(cx.dims[var.index()].mention()));
        }
        cx.lines
            .push(&format!("{};", Expr::call(symbol, &args).text));
        cx.lines.close();
        text = format!("{}\n", function.declaration);
    }
    text.push_str(&cpu.function(&mut cx, &symbol, branch.is_some())?);
    if let Some((_, _, function)) = &branch {
        text.push('\n');
        text.push_str(&function.definition);
    }
    Ok((text, entry))
}

impl Cpu {
    fn new(kernel: &Kernel, simd: Simd) -> Cpu {
        Cpu {
            // Without vector units, the compiler still profits from short vectors.
            register: simd.bytes().max(16),
            lanes: kernel.lanes,
            lane: kernel.lane().filter(|_| kernel.lanes > 1),
            reps: vec![Rep::Scalar; kernel.values.len()],
            literals: vec![None; kernel.values.len()],
            conditions: Vec::new(),
            streams: false,
            hoisted: BTreeMap::new(),
            shared_masks: mask::shared(kernel),
            near: BTreeMap::new(),
            deferred: None,
        }
    }

    /// How a register is represented.
    fn reg_rep(&self, cx: &Context<'_>, reg: RegId) -> Rep {
        let reg = &cx.kernel.regs[reg.index()];
        if !self.is_varying(reg.shape) {
            Rep::Scalar
        } else if reg.ty == Scalar::Bool {
            Rep::Mask(8)
        } else {
            Rep::Vector
        }
    }

    fn type_name(&self, cx: &mut Context<'_>, ty: Scalar, rep: Rep) -> Result<String, Fault> {
        match rep {
            Rep::Scalar => Ok(c_type(ty)?.to_string()),
            Rep::Vector => Vector::new(ty, self.lanes).name(cx.prelude),
            Rep::Mask(bits) => Vector::new(signed(bits), self.lanes).name(cx.prelude),
        }
    }

    fn type_of(&self, cx: &mut Context<'_>, value: ValueId) -> Result<String, Fault> {
        let ty = cx.kernel.values[value.index()].ty;
        self.type_name(cx, ty, self.reps[value.index()])
    }
}

impl Dialect for Cpu {
    fn float_sum(&self, cx: &mut Context<'_>) {
        cx.prelude.add_type("float_sum", || FLOAT_SUM.to_string());
    }

    fn independent_loop(&self, cx: &mut Context<'_>) -> Option<&'static str> {
        cx.prelude
            .add_type("INDEPENDENT", || INDEPENDENT.to_string());
        Some("INDEPENDENT")
    }

    fn before(&mut self, cx: &mut Context<'_>) -> Result<(), Fault> {
        self.print_due_stores(cx)
    }

    fn copy_coordinates(
        &mut self,
        cx: &mut Context<'_>,
        stmts: &[Stmt],
    ) -> Result<Vec<(DimId, String)>, Fault> {
        Ok(edge::copy_coordinates(cx, stmts))
    }

    fn value_type(&mut self, cx: &mut Context<'_>, value: ValueId) -> Result<String, Fault> {
        self.type_of(cx, value)
    }

    fn reg_type(&mut self, cx: &mut Context<'_>, reg: RegId) -> Result<(String, String), Fault> {
        let rep = self.reg_rep(cx, reg);
        let ty = self.type_name(cx, cx.kernel.regs[reg.index()].ty, rep)?;
        let zero = if rep == Rep::Scalar { "0" } else { "{0}" };
        Ok((ty, zero.to_string()))
    }

    fn operation(&mut self, cx: &mut Context<'_>, value: ValueId, op: &Op) -> Result<Expr, Fault> {
        let (e, rep) = self.print_op(cx, value, op)?;
        self.reps[value.index()] = rep;
        Ok(e)
    }

    fn set(&mut self, cx: &mut Context<'_>, reg: RegId, value: ValueId) -> Result<Expr, Fault> {
        let a = self.read(cx, value);
        match self.reg_rep(cx, reg) {
            Rep::Scalar => Ok(a.expr),
            Rep::Vector => self.vector(cx, &a),
            Rep::Mask(bits) => self.mask_value(cx, &a, bits),
        }
    }

    fn load_wide(
        &mut self,
        cx: &mut Context<'_>,
        to: &[ValueId],
        from: &Access,
        otherwise: Option<Literal>,
    ) -> Result<Vec<Expr>, Fault> {
        let mut loaded = Vec::new();
        for (n, value) in to.iter().enumerate() {
            let (e, rep) = self.load(cx, *value, from, n as i128, otherwise)?;
            self.reps[value.index()] = rep;
            loaded.push(e);
        }
        Ok(loaded)
    }

    fn store(
        &mut self,
        cx: &mut Context<'_>,
        to: &Access,
        value: ValueId,
    ) -> Result<Action, Fault> {
        self.store_at(cx, to, 0, value)
    }

    fn store_wide(
        &mut self,
        cx: &mut Context<'_>,
        to: &Access,
        values: &[ValueId],
    ) -> Result<Action, Fault> {
        let mut all = Action::default();
        for (n, value) in values.iter().enumerate() {
            let action = self.store_at(cx, to, n as i128, *value)?;
            all.guard = action.guard;
            all.lines.extend(action.lines);
        }
        Ok(all)
    }

    fn prefetch(
        &mut self,
        cx: &mut Context<'_>,
        at: &Access,
        into: Cache,
    ) -> Result<Action, Fault> {
        let guard = match at.when {
            Cond::Const(true) => None,
            _ => Some(self.size_condition(cx, at.memory, &at.when)?),
        };
        let function = match into {
            Cache::L1 => "prefetch_l1",
            Cache::L2 => "prefetch_l2",
        };
        cx.prelude.add(function, File::Memory, function, &[]);
        let bytes = i128::from(Self::memory_type(cx, at.memory).bits() / 8);
        let place = self.place(cx, &Access::new(at.memory, at.index.clone()), 0)?;
        let offset = Expr::binary("*", &place.offset, &number(bytes)?);
        let call = Expr::call(function, &[Expr::atom(place.array), offset]);
        Ok(Action {
            guard,
            lines: vec![format!("{};", call.text)],
        })
    }

    fn copy(
        &mut self,
        cx: &mut Context<'_>,
        to: &Access,
        from: &Access,
        width: u32,
        _: Engine,
    ) -> Result<Action, Fault> {
        self.copy_elements(cx, to, from, width)
    }

    /// Copies are complete when they have been issued.
    fn commit_copies(&mut self, _: &mut Context<'_>) -> Result<Action, Fault> {
        Ok(Action::default())
    }

    fn wait_copies(&mut self, _: &mut Context<'_>, _: u32) -> Result<Action, Fault> {
        Ok(Action::default())
    }

    /// A block has one warp, which needs no barrier.
    fn barrier(&mut self, _: &mut Context<'_>) -> Result<Action, Fault> {
        Ok(Action::default())
    }

    fn signal(&mut self, cx: &mut Context<'_>, flag: &Access) -> Result<Action, Fault> {
        cx.prelude
            .add("signal_flag", File::Memory, "signal_flag", &[]);
        let (flag, guard) = self.flag(cx, flag)?;
        let call = Expr::call("signal_flag", &[flag]);
        Ok(Action {
            guard,
            lines: vec![format!("{};", call.text)],
        })
    }

    fn await_flag(
        &mut self,
        cx: &mut Context<'_>,
        flag: &Access,
        at_least: &Expr,
    ) -> Result<Action, Fault> {
        cx.prelude.include("sched.h");
        cx.prelude
            .add("await_flag", File::Memory, "await_flag", &[]);
        let (flag, guard) = self.flag(cx, flag)?;
        let call = Expr::call("await_flag", &[flag, at_least.clone()]);
        Ok(Action {
            guard,
            lines: vec![format!("{};", call.text)],
        })
    }

    fn dynamic_block(
        &mut self,
        cx: &mut Context<'_>,
        var: DimId,
        counter: &Access,
    ) -> Result<Action, Fault> {
        cx.prelude
            .add("take_block_id", File::Memory, "take_block_id", &[]);
        let (counter, guard) = self.flag(cx, counter)?;
        if guard.is_some() {
            return Err(Fault::unsupported(
                "a dynamic block id is taken under a condition",
            ));
        }
        let taken = Expr::call("take_block_id", &[counter]);
        let name = &cx.dims[var.index()].name;
        // A block id is taken even if nothing depends on it.
        Ok(Action::line(format!(
            "const int64_t {name} __attribute__((unused)) = {};",
            taken.text
        )))
    }

    fn publishers(&mut self, cx: &mut Context<'_>) -> Result<File, Fault> {
        cx.prelude.include("string.h");
        Ok(File::Memory)
    }

    fn lane_loop(&self, _: &Context<'_>) -> Option<(DimId, u32)> {
        Some((self.lane?, self.lanes))
    }

    fn look_back_result(&mut self, value: ValueId, ty: Scalar, vector: bool) {
        self.reps[value.index()] = match (vector, ty) {
            (false, _) => Rep::Scalar,
            (true, Scalar::Bool) => Rep::Mask(8),
            (true, _) => Rep::Vector,
        };
    }

    fn one_lane(&self, name: &str, value: ValueId, lane: &str) -> String {
        match self.reps[value.index()] {
            Rep::Scalar => name.to_string(),
            Rep::Vector => format!("{name}[{lane}]"),
            Rep::Mask(_) => format!("({name}[{lane}] != 0)"),
        }
    }

    fn put_lane(&self, name: &str, value: ValueId, lane: &str, result: &str) -> String {
        let sign = match self.reps[value.index()] {
            Rep::Mask(_) => "-",
            Rep::Scalar | Rep::Vector => "",
        };
        format!("{name}[{lane}] = {sign}{result};")
    }

    fn between_reads(&mut self, cx: &mut Context<'_>) -> Option<String> {
        cx.prelude.include("sched.h");
        Some("sched_yield();".to_string())
    }

    fn fault(&mut self, cx: &mut Context<'_>, record: Record<'_>) -> Result<Action, Fault> {
        self.record_fault(cx, record)
    }
}
