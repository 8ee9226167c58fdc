//! Languages in which a lane is a thread, and a block of the grid is a block of threads.
//!
//! This module has what they share: coordinates of blocks ([`grid`]), accesses of a lane
//! ([`memory`]), operators and moves between lanes ([`value`]), and arrays in shared memory
//! ([`shared`]). A [`Language`] adds its keywords and functions.
//!
//! Each kernel becomes one function of the arguments that it uses ([`DeviceEntry::arguments`]):
//! buffers by the address of their first element, at a multiple of 16 bytes, then sizes and launch
//! arguments, of type `index_t`. That is `int64_t`, or `int32_t` where the file is compiled with
//! `-DINDEX=int32_t`, which is correct where every index of the run fits. A block has
//! [`DeviceEntry::threads`] threads; the language decides how many each warp has. The last
//! coordinate of a block is its position along x of the grid. All other coordinates are linearised
//! along y and continue in the next layer along z; the last layer may have more blocks than needed.
//! Where a warp has more threads than lanes, several of them do the same work.

pub mod grid;
pub mod memory;
pub mod shared;
pub mod value;

use std::collections::BTreeMap;

use systola_ir::form::Cond;
use systola_ir::kernel::pressure::pressure;
use systola_ir::kernel::visit::walk;
use systola_ir::kernel::{Access, BufferKind, Cache, Kernel, Memory, Op, Program, Stmt, VarKind};
use systola_ir::mapping::Engine;
use systola_ir::{BufferId, DimId, Literal, RegId, Scalar, ValueId};

use crate::artifact::{Argument, Choice, DeviceEntry};
use crate::c_family::Printer;
use crate::context::Context;
use crate::context::Index;
use crate::dialect::{Action, Dialect, Record, Together};
use crate::error::Fault;
use crate::expr::{Expr, Lines};
use crate::prelude::{File, Prelude};
use crate::scalar::{self, c_type};
use grid::{Grid, block_coordinates};
use memory::stored_type;
use shared::{shared_arrays, shared_sizes, static_bytes};
use value::Move;

static INDEX: Index = Index {
    ty: "index_t",
    suffix: "index",
    file: File::Simt,
    floordiv: "floordiv",
    modulo: "mod",
    minus: Some("minus_index"),
};

/// This prefix with the name of a kernel and a number is the macro that says whether a condition
/// holds for all blocks, or for none.
const HOLDS: &str = "HOLDS_";

/// The field with the elements of an array that is passed by value.
const VALUE_FIELD: &str = ".at";

/// The memory that something is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    Global,
    Constant,
    Shared,
}

/// Where an input in constant memory is placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConstantPlace {
    /// In an array that the program declares, under this name.
    Named(String),
    /// Behind a pointer argument.
    Pointer,
    /// In the argument itself: this number of elements.
    Value(usize),
}

/// What differs between languages.
pub trait Language {
    /// The file with its `signal_flag`, `await_flag` and `take_block_id`.
    const FILE: File;
    const GRID: Grid;

    /// Threads of a warp of this number of lanes; at least as many.
    fn threads_of(&self, lanes: u32) -> u32;

    /// The lane of a thread in a warp of this size. `warp` is its warp.
    fn lane(&self, lanes: u32) -> Expr;
    fn warp(&self, lanes: u32) -> Expr;

    /// The line that synchronises the threads of a warp; what they wrote is then visible to all of
    /// them.
    fn sync_warp(&self) -> &'static str;

    /// Must all threads reach every synchronisation? Loops that contain one are then always entered
    /// at least once.
    fn waits_must_be_reached(&self) -> bool {
        false
    }

    /// The line that synchronises all threads of a block.
    fn barrier(&self) -> &'static str;

    /// The call that prefetches a cache line, from an array, an offset, and the number of its
    /// elements.
    fn prefetch(
        &self,
        prelude: &mut Prelude,
        array: &str,
        offset: Expr,
        size: Expr,
        into: Cache,
    ) -> Expr;

    /// The qualifier of a pointer's target type.
    fn space(&self, space: Space) -> &'static str;

    /// The keyword for a pointer that is the only one to its array.
    fn restrict(&self) -> &'static str;

    /// The type of `n` elements that are loaded or stored together. `pack_element` is one of them,
    /// and `pack_of` makes a pack from its elements.
    fn pack(&self, prelude: &mut Prelude, element: Scalar, n: u32) -> Result<String, Fault>;
    fn pack_element(&self, element: Scalar, of: u32, name: &str, n: u32) -> Result<Expr, Fault>;
    fn pack_of(&self, element: Scalar, pack: &str, elements: &[&str]) -> String;

    /// How `n` elements of global memory are loaded under a condition, where that needs no branch.
    fn load_where(
        &self,
        _: &mut Context<'_>,
        _: &Access,
        _element: Scalar,
        _n: u32,
    ) -> Result<Option<Guarded>, Fault> {
        Ok(None)
    }

    /// Adds the function that moves values of a type between lanes.
    fn mover(&self, prelude: &mut Prelude, ty: Scalar, by: Move, lanes: u32) -> Result<(), Fault>;

    /// The function that starts a copy of this size in bytes into shared memory; `None` where lanes
    /// copy.
    fn copier(&self, _: &mut Prelude, _bytes: u32) -> Option<String> {
        None
    }

    fn commit_copies(&self, _: &mut Prelude) -> Action {
        Action::default()
    }

    /// Waits for copies, and for the other threads of the warp.
    fn wait_copies(&self, _: &mut Prelude, _pending: u32) -> Action {
        Action::line(self.sync_warp())
    }

    /// Can blocks wait for each other? The error says why not.
    fn flags(&self) -> Result<(), Fault> {
        Ok(())
    }

    /// The letters of the templates of these functions in a kernel; all kernels of a file must have
    /// the same.
    fn flag_letters(&self) -> Vec<(char, &'static str)> {
        Vec::new()
    }

    /// Do these functions take the condition under which they do something as their last argument?
    fn flag_takes_condition(&self) -> bool {
        false
    }

    /// The arguments of the function that takes a block id, after the counter.
    fn block_id_arguments(&self) -> Vec<Expr> {
        Vec::new()
    }

    /// The attribute of a variable that may be unused.
    fn maybe_unused(&self) -> &'static str {
        ""
    }

    /// Can blocks look back?
    fn publishes(&self) -> Result<(), Fault> {
        Ok(())
    }

    /// The number of a thread in its warp of this number of lanes.
    fn thread_of_warp(&self, lanes: u32) -> String {
        self.lane(lanes).text
    }

    /// How the threads of a warp look back together, if they can.
    fn together(&self) -> Option<Together> {
        None
    }

    /// The declaration of an array in shared memory.
    fn shared_array(&self, ty: &str, name: &str, count: i128) -> String;

    /// The shared memory that the launch provides: the line or the parameter that declares it, and
    /// an expression for its bytes.
    fn dynamic_shared(&self) -> Dynamic;

    /// The lines before the name of a kernel whose blocks have this many threads.
    fn head(&self, symbol: &str, threads: u32, kernel: &Kernel) -> Vec<String>;

    /// Lines at the top of a kernel.
    fn top(&self, _: &Kernel) -> Vec<String> {
        Vec::new()
    }
}

/// A load under a condition, as a function of the operands of the comparisons, of an address, and
/// of the values for elements where the condition does not hold.
pub struct Guarded {
    pub function: String,
    pub arguments: Vec<Expr>,
    /// Where it loads words: the function that makes one from elements, and the number of words.
    pub joined: Option<(&'static str, usize)>,
}

/// The shared memory that a launch provides.
pub struct Dynamic {
    pub line: Option<&'static str>,
    pub parameter: Option<&'static str>,
    pub bytes: &'static str,
}

/// The state of printing a kernel.
pub struct Simt<L> {
    language: L,
    lanes: u32,
    /// The name of the lane's variable, and whether it is used outside forms.
    lane: String,
    uses_lane: bool,
    /// Inputs in constant memory.
    constants: BTreeMap<BufferId, ConstantPlace>,
    symbol: String,
    /// Conditions that may be decided for all blocks of a run.
    choices: Vec<Choice>,
}

/// Prints a kernel.
pub fn emit_kernel<L: Language>(
    program: &Program,
    kernel: &Kernel,
    constants: BTreeMap<BufferId, ConstantPlace>,
    prelude: &mut Prelude,
    symbol: String,
    language: L,
) -> Result<(String, DeviceEntry), Fault> {
    let mut cx = Context::new(program, kernel, prelude, 1);
    cx.index = &INDEX;
    if cx.usage.has_flags {
        language.flags()?;
    }
    for (buffer, constant) in &constants {
        let name = &mut cx.buffers[buffer.index()].name;
        match constant {
            ConstantPlace::Named(own) => name.clone_from(own),
            ConstantPlace::Pointer => {}
            ConstantPlace::Value(_) => name.push_str(VALUE_FIELD),
        }
    }
    let lane = match kernel.lane() {
        Some(lane) => cx.dims[lane.index()].name.clone(),
        None => cx.names.claim("lane"),
    };
    let mut simt = Simt {
        language,
        lanes: kernel.lanes,
        lane,
        uses_lane: false,
        constants,
        symbol,
        choices: Vec::new(),
    };
    Printer::new(&mut cx, &mut simt).body()?;
    simt.function(&mut cx)
}

impl<L: Language> Simt<L> {
    /// The function around a printed body, with declarations of everything that the body mentions.
    fn function(self, cx: &mut Context<'_>) -> Result<(String, DeviceEntry), Fault> {
        let (language, symbol) = (&self.language, &self.symbol);
        let body = std::mem::take(&mut cx.lines).finish();
        let blocks = block_coordinates(cx, L::GRID)?;
        let (shared, dynamic) = shared_arrays(cx, language)?;
        let mut top = Lines::at_depth(1);
        let lane_var = cx.kernel.lane();
        if self.uses_lane || lane_var.is_some_and(|lane| cx.dims[lane.index()].used) {
            let (lane, of) = (&self.lane, language.lane(self.lanes));
            top.push(&format!("const index_t {lane} = {};", of.text));
        }
        for var in cx.kernel.vars_where(|k| matches!(k, VarKind::Warp)) {
            let var = &cx.dims[var.index()];
            if var.used {
                let of = language.warp(self.lanes);
                top.push(&format!("const index_t {} = {};", var.name, of.text));
            }
        }
        let own = language.top(cx.kernel);
        for line in blocks
            .iter()
            .chain(&cx.constants)
            .chain(&own)
            .chain(&shared)
        {
            top.push(line);
        }
        let (parameters, arguments) = self.parameters(cx, dynamic)?;
        let mut lines = Lines::default();
        let registers = pressure(cx.kernel);
        let threads = cx.kernel.warps * language.threads_of(self.lanes);
        for line in self
            .choices
            .iter()
            .flat_map(|c| unless_set(&c.symbol, "(-1)"))
        {
            lines.push(&line);
        }
        for line in language.head(symbol, threads, cx.kernel) {
            lines.push(&line);
        }
        lines.push(&format!("{symbol}({})", parameters.join(", ")));
        lines.append("{\n");
        lines.append(&top.finish());
        lines.append(&body);
        lines.append("}\n");
        let entry = DeviceEntry {
            symbol: self.symbol,
            threads,
            registers,
            arguments,
            dynamic_shared: if dynamic {
                shared_sizes(cx.kernel)
            } else {
                Vec::new()
            },
            static_shared: if dynamic {
                0
            } else {
                static_bytes(cx).unwrap_or(0)
            },
            choices: self.choices,
        };
        Ok((lines.finish(), entry))
    }

    fn parameters(
        &self,
        cx: &mut Context<'_>,
        dynamic: bool,
    ) -> Result<(Vec<String>, Vec<Argument>), Fault> {
        let mut parameters = Vec::new();
        let mut arguments = Vec::new();
        for n in 0..cx.buffers.len() {
            let id = BufferId::from(n);
            if !cx.buffers[n].used {
                continue;
            }
            match self.constants.get(&id) {
                Some(ConstantPlace::Named(_)) => {}
                Some(ConstantPlace::Value(count)) => {
                    parameters.push(value_parameter(cx, id, *count)?);
                    arguments.push(Argument::Value(id));
                }
                Some(ConstantPlace::Pointer) | None => {
                    parameters.push(self.buffer_parameter(cx, id)?);
                    arguments.push(Argument::Buffer(id));
                }
            }
        }
        for (n, param) in cx.params.iter().enumerate().filter(|(_, p)| p.used) {
            parameters.push(format!("const index_t {}", param.name));
            arguments.push(Argument::Size(n));
        }
        let host = cx.kernel.vars_where(|k| matches!(k, VarKind::Host));
        for (n, var) in host.enumerate() {
            let var = &cx.dims[var.index()];
            if var.used {
                parameters.push(format!("const index_t {}", var.name));
                arguments.push(Argument::Host(n));
            }
        }
        if let Some(parameter) = self.language.dynamic_shared().parameter
            && dynamic
        {
            parameters.push(parameter.to_string());
            arguments.push(Argument::Shared);
        }
        Ok((parameters, arguments))
    }

    fn buffer_parameter(&self, cx: &Context<'_>, id: BufferId) -> Result<String, Fault> {
        let buffer = &cx.program.buffers[id.index()];
        let name = &cx.buffers[id.index()].name;
        let ty = c_type(stored_type(cx, Memory::Global(id)))?;
        let written = cx.usage.written.contains(&Memory::Global(id));
        let is_input = match buffer.kind {
            BufferKind::Input { .. } => true,
            BufferKind::Output { .. }
            | BufferKind::Temporary
            | BufferKind::Flags
            | BufferKind::Faults { .. } => false,
        };
        // Data that other blocks write meanwhile must be read again after waiting for a flag.
        let restrict = if is_input || !cx.usage.has_flags {
            self.language.restrict()
        } else {
            ""
        };
        let space = self.language.space(if self.constants.contains_key(&id) {
            Space::Constant
        } else {
            Space::Global
        });
        let constant = if written { "" } else { "const " };
        Ok(format!("{space}{constant}{ty} *{restrict}{name}"))
    }
}

/// The lines that give a macro a default value.
pub fn unless_set(name: &str, value: &str) -> [String; 3] {
    [
        format!("#ifndef {name}"),
        format!("#define {name} {value}"),
        "#endif".to_string(),
    ]
}

/// The parameter that holds an array, as the only field of a struct: an array by itself would be
/// passed as a pointer.
fn value_parameter(cx: &mut Context<'_>, id: BufferId, count: usize) -> Result<String, Fault> {
    let element = stored_type(cx, Memory::Global(id));
    let ty = c_type(element)?;
    let holder = format!("values_{}_{count}", element.name());
    let field = VALUE_FIELD.trim_start_matches('.');
    cx.prelude.add_type(&holder, || {
        format!("struct {holder} {{ {ty} {field}[{count}]; }};")
    });
    let name = &cx.buffers[id.index()].name;
    let name = name.strip_suffix(VALUE_FIELD).unwrap_or(name);
    Ok(format!("const struct {holder} {name}"))
}

impl<L: Language> Simt<L> {
    /// Calls a function on a flag under a condition. Some functions take the condition as an
    /// argument, since threads wait in them.
    fn flag_call(&self, name: &str, mut arguments: Vec<Expr>, guard: Option<Expr>) -> Action {
        let mut outside = guard;
        if self.language.flag_takes_condition() {
            arguments.push(outside.take().unwrap_or_else(|| Expr::atom("true")));
        }
        let call = Expr::call(name, &arguments);
        Action {
            guard: outside,
            lines: vec![format!("{};", call.text)],
        }
    }
}

/// Do threads synchronise in these statements?
fn has_waits(stmts: &[Stmt]) -> bool {
    let mut found = false;
    walk(stmts, &mut |stmt| found |= stmt.effects().orders.is_some());
    found
}

impl<L: Language> Dialect for Simt<L> {
    /// All lanes take part in a shuffle, even those whose reader is under a condition.
    fn stays(&self, op: &Op) -> bool {
        op.effects().crosses_lanes
    }

    /// A condition that may be known for all blocks of a run gets a macro for its value: 1 or 0, or
    /// −1 where each block tests it.
    fn choice(&mut self, cx: &mut Context<'_>, cond: &Cond, text: Expr) -> Expr {
        let is_known = |dim: &DimId| match cx.kernel.vars[dim.index()].kind {
            VarKind::Host | VarKind::Block { .. } | VarKind::Warp => true,
            VarKind::Lane | VarKind::Loop | VarKind::DynamicBlock => false,
        };
        let forms = cond.forms();
        let mut dims = forms.iter().flat_map(|form| form.dims());
        if forms.is_empty() || !dims.all(|dim| is_known(&dim)) {
            return text;
        }
        let at = self.choices.iter().position(|c| c.cond == *cond);
        let at = at.unwrap_or_else(|| {
            let symbol = format!("{HOLDS}{}_{}", self.symbol, self.choices.len() + 1);
            self.choices.push(Choice {
                symbol,
                cond: cond.clone(),
            });
            self.choices.len() - 1
        });
        let known = Expr::atom(&self.choices[at].symbol);
        let is_open = Expr::binary("<", &known, &Expr::number("0"));
        Expr::ternary(&is_open, &text, &known)
    }

    fn runs_at_least_once(&self, body: &[Stmt]) -> bool {
        self.language.waits_must_be_reached() && has_waits(body)
    }

    fn prefetch(
        &mut self,
        cx: &mut Context<'_>,
        at: &Access,
        into: Cache,
    ) -> Result<Action, Fault> {
        let array = cx.pointer(at.memory);
        let index = cx.counted_from_zero(at);
        let offset = cx.offset(at.memory, &index)?;
        let size = cx.volume(at.memory)?;
        let call = self
            .language
            .prefetch(cx.prelude, &array, offset, size, into);
        Ok(Action {
            guard: memory::guard(cx, &at.when)?,
            lines: vec![format!("{};", call.text)],
        })
    }

    fn value_type(&mut self, cx: &mut Context<'_>, value: ValueId) -> Result<String, Fault> {
        Ok(c_type(cx.kernel.values[value.index()].ty)?.to_string())
    }

    fn reg_type(&mut self, cx: &mut Context<'_>, reg: RegId) -> Result<(String, String), Fault> {
        let ty = c_type(cx.kernel.regs[reg.index()].ty)?;
        Ok((ty.to_string(), "0".to_string()))
    }

    fn operation(&mut self, cx: &mut Context<'_>, value: ValueId, op: &Op) -> Result<Expr, Fault> {
        let ty = cx.kernel.values[value.index()].ty;
        let type_of = |cx: &Context<'_>, v: ValueId| cx.kernel.values[v.index()].ty;
        match op {
            Op::Lit(literal) => scalar::literal(cx.prelude, ty, *literal),
            Op::Index(form) => Ok(Expr::cast(c_type(ty)?, &cx.form(form)?)),
            Op::Get(reg) => Ok(Expr::atom(cx.regs[reg.index()].clone())),
            Op::Unary(op, a) => {
                let a = cx.take(*a);
                value::unary(cx.prelude, *op, ty, &a)
            }
            Op::Binary(op, a, b) => {
                let of = type_of(cx, *a);
                let (a, b) = (cx.take(*a), cx.take(*b));
                value::binary(cx.prelude, *op, of, &a, &b)
            }
            Op::Cast(a) => {
                let from = type_of(cx, *a);
                let a = cx.take(*a);
                scalar::cast(cx.prelude, from, ty, &a)
            }
            Op::Select {
                cond,
                then,
                otherwise,
            } => {
                let (cond, then) = (cx.take(*cond), cx.take(*then));
                Ok(Expr::ternary(&cond, &then, &cx.take(*otherwise)))
            }
            Op::Choose {
                cond,
                then,
                otherwise,
            } => {
                let (cond, then) = (cx.cond(cond)?, cx.take(*then));
                Ok(Expr::ternary(&cond, &then, &cx.take(*otherwise)))
            }
            Op::Load { from, otherwise } => self.load(cx, from, 0, ty, *otherwise),
            Op::Lookup { memory, index } => self.lookup(cx, *memory, index, ty),
            Op::Shuffle { value, from } => self.shuffle(cx, *value, from),
            Op::LaneShift { low, high, by } => self.lane_shift(cx, *low, *high, *by),
        }
    }

    fn set(&mut self, cx: &mut Context<'_>, _: RegId, value: ValueId) -> Result<Expr, Fault> {
        Ok(cx.take(value))
    }

    fn load_wide(
        &mut self,
        cx: &mut Context<'_>,
        to: &[ValueId],
        from: &Access,
        otherwise: Option<Literal>,
    ) -> Result<Vec<Expr>, Fault> {
        self.load_elements(cx, to, from, otherwise)
    }

    fn store(
        &mut self,
        cx: &mut Context<'_>,
        to: &Access,
        value: ValueId,
    ) -> Result<Action, Fault> {
        self.store_elements(cx, to, &[value])
    }

    fn store_wide(
        &mut self,
        cx: &mut Context<'_>,
        to: &Access,
        values: &[ValueId],
    ) -> Result<Action, Fault> {
        self.store_elements(cx, to, values)
    }

    fn copy(
        &mut self,
        cx: &mut Context<'_>,
        to: &Access,
        from: &Access,
        width: u32,
        engine: Engine,
    ) -> Result<Action, Fault> {
        self.copy_elements(cx, to, from, width, engine)
    }

    fn commit_copies(&mut self, cx: &mut Context<'_>) -> Result<Action, Fault> {
        Ok(self.language.commit_copies(cx.prelude))
    }

    fn wait_copies(&mut self, cx: &mut Context<'_>, pending: u32) -> Result<Action, Fault> {
        Ok(self.language.wait_copies(cx.prelude, pending))
    }

    fn sync_warp(&mut self, _: &mut Context<'_>) -> Result<Action, Fault> {
        Ok(Action::line(self.language.sync_warp()))
    }

    fn barrier(&mut self, _: &mut Context<'_>) -> Result<Action, Fault> {
        Ok(Action::line(self.language.barrier()))
    }

    fn signal(&mut self, cx: &mut Context<'_>, flag: &Access) -> Result<Action, Fault> {
        let letters = self.language.flag_letters();
        cx.prelude
            .add("signal_flag", L::FILE, "signal_flag", &letters);
        let (flag, guard) = self.flag(cx, flag)?;
        Ok(self.flag_call("signal_flag", vec![flag], guard))
    }

    fn await_flag(
        &mut self,
        cx: &mut Context<'_>,
        flag: &Access,
        at_least: &Expr,
    ) -> Result<Action, Fault> {
        let letters = self.language.flag_letters();
        cx.prelude
            .add("await_flag", L::FILE, "await_flag", &letters);
        let (flag, guard) = self.flag(cx, flag)?;
        Ok(self.flag_call("await_flag", vec![flag, at_least.clone()], guard))
    }

    fn dynamic_block(
        &mut self,
        cx: &mut Context<'_>,
        var: DimId,
        counter: &Access,
    ) -> Result<Action, Fault> {
        let letters = self.language.flag_letters();
        cx.prelude
            .add("take_block_id", L::FILE, "take_block_id", &letters);
        let (counter, guard) = self.flag(cx, counter)?;
        if guard.is_some() {
            return Err(Fault::unsupported(
                "a dynamic block id is taken under a condition",
            ));
        }
        let mut arguments = vec![counter];
        arguments.extend(self.language.block_id_arguments());
        let taken = Expr::call("take_block_id", &arguments);
        let name = &cx.dims[var.index()].name;
        // A block id is taken even if nothing depends on it.
        Ok(Action::line(format!(
            "{}const index_t {name} = {};",
            self.language.maybe_unused(),
            taken.text
        )))
    }

    fn publishers(&mut self, _: &mut Context<'_>) -> Result<File, Fault> {
        self.language.publishes()?;
        Ok(L::FILE)
    }

    fn publisher(&self, varies: bool) -> Option<String> {
        let thread = self.language.thread_of_warp(self.lanes);
        match varies {
            false => Some(format!("{thread} == 0")),
            true if self.language.threads_of(self.lanes) > self.lanes => {
                Some(format!("{thread} < {}", self.lanes))
            }
            true => None,
        }
    }

    fn global_space(&self) -> &'static str {
        self.language.space(Space::Global)
    }

    fn together(&mut self, varies: bool) -> Option<Together> {
        self.language.together().filter(|_| !varies)
    }

    fn fault(&mut self, cx: &mut Context<'_>, record: Record<'_>) -> Result<Action, Fault> {
        let mut guard = cx.take(record.bad);
        if *record.when != Cond::TRUE {
            guard = Expr::binary("&&", &guard, &cx.cond(record.when)?);
        }
        Ok(Action {
            guard: Some(guard),
            lines: record.lines(cx, L::FILE)?,
        })
    }
}
