//! C with vector types: a warp is a vector, its lanes are the elements, and threads run ranges of blocks.
//!
//! Each kernel becomes one function,
//!
//! ```c
//! void NAME_kernel(const int64_t *sizes, const int64_t *args, void *const *buffers, void *scratch,
//!                  int64_t first, int64_t last);
//! ```
//!
//! with the program's sizes, the launch's arguments, the first elements of the buffers, memory for the shared arrays
//! that no other thread uses at the same time ([`Entry::scratch_bytes`], aligned to 64 bytes), and a range of
//! blocks. Blocks are numbered through, the last coordinate fastest.

mod edge;
mod lanes;
mod lookup;
mod mask;
mod memory;
mod moves;
mod place;
mod prefetch;
mod small;
mod stream;
mod transfer;
mod vector;
mod warps;

use std::collections::{BTreeMap, BTreeSet};

use systola_ir::kernel::{Access, BufferKind, Kernel, Memory, Op, Program, Stmt, VarKind};
use systola_ir::mapping::Engine;
use systola_ir::{BufferId, DimId, Literal, RegId, Scalar, SharedId, ValueId};

use crate::artifact::{Artifact, Entry, SharedArray};
use crate::c_family::{Context, Printer};
use crate::dialect::{Action, Dialect};
use crate::error::{Error, Fault};
use crate::expr::{Expr, Level, Lines};
use crate::index::{Sum, number};
use crate::isa::Isa;
use crate::names::{self, Names};
use crate::prelude::{File, Prelude};
use crate::scalar::{c_type, signed};
use crate::specialise::specialise;
use lanes::Vector;

const QUALIFIERS: &str = "INLINE";
const INLINE: &str = "#define INLINE static inline __attribute__((always_inline, unused))";
/// Calls of functions gain nothing when their loop is unrolled, and compilers take long over it.
const ONE_BY_ONE: &str = "\
#ifdef __clang__
#define ONE_BY_ONE _Pragma(\"clang loop unroll(disable)\")
#else
#define ONE_BY_ONE _Pragma(\"GCC unroll 1\")
#endif";

/// How a value is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rep {
    /// It is the same in all lanes.
    Scalar,
    Vector,
    /// A `bool` of each lane: a vector of integers of so many bits, 0 or −1.
    Mask(u32),
}

/// What this dialect knows of a kernel.
pub struct Cpu {
    lanes: u32,
    /// The lane's variable; none where there is one lane only.
    lane: Option<DimId>,
    reps: Vec<Rep>,
    literals: Vec<Option<Literal>>,
    /// Outputs that no kernel of the program reads.
    write_only: BTreeSet<BufferId>,
    /// The names that say whether arrays are large.
    large: BTreeMap<BufferId, String>,
    /// Is anything stored past the cache?
    streams: bool,
    /// What the turns of a loop ask for ahead of its use.
    requests: BTreeMap<DimId, Vec<prefetch::Request>>,
    /// Arrays that are looked up in: the names that say whether short indices reach all of them.
    near: BTreeMap<Memory, String>,
}

/// Prints a verified program.
pub fn emit(program: &Program, isa: &Isa) -> Result<Artifact, Error> {
    let special = specialise(program).map_err(|e| Fault::from(e).of_kernel(&program.name))?;
    let mut prelude = Prelude::new(QUALIFIERS);
    prelude.include("stdbool.h");
    prelude.include("stdint.h");
    prelude.add_type("INLINE", || INLINE.to_string());
    let mut symbols = Names::default();
    let mut kernels = Vec::new();
    let mut functions = String::new();
    for kernel in &special.kernels {
        let symbol = symbols.claim(&names::symbol(&kernel.name));
        let (text, entry) = emit_kernel(&special, kernel, &mut prelude, symbol)
            .map_err(|fault| fault.of_kernel(&kernel.name))?;
        functions.push('\n');
        functions.push_str(&text);
        kernels.push(entry);
    }
    let name = comment_text(&program.name);
    let source = format!(
        "// {name}: {} for vectors of {} bytes, printed by Systola.\n\
         // Compile with -fwrapv: integers wrap.\n\
         // A comparison that always holds is no mistake here.\n\
         #pragma GCC diagnostic ignored \"-Wtype-limits\"\n\n{}{functions}",
        if kernels.len() == 1 {
            "a kernel"
        } else {
            "kernels"
        },
        isa.vector_bytes.max(1),
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
    prelude: &mut Prelude,
    symbol: String,
) -> Result<(String, Entry), Fault> {
    if !kernel.lanes.is_power_of_two() || kernel.lanes > 64 {
        return Err(Fault::unsupported(format!(
            "a warp of {} lanes; a vector has a power of two of them, at most 64",
            kernel.lanes
        )));
    }
    let one_warp;
    let kernel = if kernel.warps > 1 {
        one_warp = warps::fission(kernel)?;
        &one_warp
    } else {
        kernel
    };
    let shared = kernel.shared.iter().map(|s| SharedArray {
        extents: s.extents.clone(),
        element_bytes: u64::from(s.ty.bits() / 8),
    });
    let entry = Entry {
        symbol: symbol.clone(),
        shared: shared.collect(),
    };
    let mut cpu = Cpu {
        lanes: kernel.lanes,
        lane: kernel.lane().filter(|_| kernel.lanes > 1),
        reps: vec![Rep::Scalar; kernel.values.len()],
        literals: vec![None; kernel.values.len()],
        write_only: stream::write_only(program),
        large: BTreeMap::new(),
        streams: false,
        requests: BTreeMap::new(),
        near: BTreeMap::new(),
    };
    let mut cx = Context::new(program, kernel, prelude, 2);
    cpu.fetch_ahead(&mut cx)?;
    Printer::new(&mut cx, &mut cpu).body()?;
    let text = cpu.function(&mut cx, &symbol)?;
    Ok((text, entry))
}

impl Cpu {
    /// The function around a body that was printed: what it mentions is declared.
    fn function(&self, cx: &mut Context<'_>, symbol: &str) -> Result<String, Fault> {
        let body = std::mem::take(&mut cx.lines).finish();
        let blocks = self.block_coordinates(cx)?;
        let shared = self.shared_arrays(cx)?;
        let end_of_streams = self.end_of_streams(cx);
        let mut lines = Lines::default();
        lines.push(&format!(
            "void {symbol}(const int64_t *sizes, const int64_t *args, void *const *buffers, void *scratch,"
        ));
        let indent = " ".repeat("void (".len() + symbol.len());
        lines.push(&format!("{indent}int64_t first, int64_t last)"));
        lines.append("{\n");
        let mut top = Lines::at_depth(1);
        let mut unused = vec!["sizes", "args", "buffers", "scratch"];
        let mut keep = |name: &str| unused.retain(|u| *u != name);
        for (n, param) in cx.params.iter().enumerate().filter(|(_, p)| p.used) {
            keep("sizes");
            top.push(&format!("const int64_t {} = sizes[{n}];", param.name));
        }
        let host = cx.kernel.vars_where(|k| matches!(k, VarKind::Host));
        for (n, var) in host.enumerate() {
            let var = &cx.dims[var.index()];
            if var.used {
                keep("args");
                top.push(&format!("const int64_t {} = args[{n}];", var.name));
            }
        }
        for n in 0..cx.buffers.len() {
            if cx.buffers[n].used {
                keep("buffers");
                top.push(&self.buffer(cx, BufferId::from(n))?);
            }
        }
        for line in &cx.constants {
            top.push(line);
        }
        for line in &shared {
            keep("scratch");
            top.push(line);
        }
        for line in &blocks.bounds {
            top.push(line);
        }
        for name in unused {
            top.push(&format!("(void){name};"));
        }
        if !top.is_empty() {
            top.push("");
        }
        for line in &blocks.coordinates {
            top.push(line);
        }
        top.open("for (int64_t block = first; block < last; block++)");
        top.append(&body);
        blocks.step(&mut top);
        top.close();
        if let Some(line) = &end_of_streams {
            top.push(line);
        }
        lines.append(&top.finish());
        lines.append("}\n");
        Ok(lines.finish())
    }

    fn buffer(&self, cx: &Context<'_>, id: BufferId) -> Result<String, Fault> {
        let buffer = &cx.program.buffers[id.index()];
        let name = &cx.buffers[id.index()].name;
        let ty = c_type(Self::memory_type(cx, Memory::Global(id)))?;
        let written = cx.usage.written.contains(&Memory::Global(id));
        // What other threads write while this one runs must be read again after a flag was awaited.
        let is_input = match buffer.kind {
            BufferKind::Input { .. } => true,
            BufferKind::Output { .. } | BufferKind::Temporary | BufferKind::Flags => false,
        };
        let restrict = if is_input || !cx.usage.has_flags {
            "restrict "
        } else {
            ""
        };
        let constant = if written { "" } else { "const " };
        let n = id.index();
        Ok(format!("{constant}{ty} *{restrict}{name} = buffers[{n}];"))
    }

    /// The pointers into the scratch memory. Arrays that are not mentioned take their place all the same.
    fn shared_arrays(&self, cx: &mut Context<'_>) -> Result<Vec<String>, Fault> {
        let Some(last) = cx.shared.iter().rposition(|s| s.used) else {
            return Ok(Vec::new());
        };
        let mut lines = Vec::new();
        // Bytes before the next array: a number, and what is not one.
        let mut known = 0i128;
        let mut symbolic: Option<Expr> = None;
        for n in 0..=last {
            let memory = Memory::Shared(SharedId::from(n));
            let ty = Self::memory_type(cx, memory);
            if cx.shared[n].used {
                let mut offset = Sum::default();
                if let Some(bytes) = &symbolic {
                    offset.add(1, bytes)?;
                }
                offset.add_number(known)?;
                let offset = offset.finish();
                let start = if offset.text == "0" {
                    "scratch".to_string()
                } else {
                    format!("(void *)((char *)scratch + {})", offset.text)
                };
                let (c, name) = (c_type(ty)?, &cx.shared[n].name);
                lines.push(format!("{c} *restrict {name} = {start};"));
            }
            let size = i128::from(ty.bits() / 8);
            let extents = cx.extents(memory);
            let constant = extents
                .iter()
                .try_fold(size, |product, e| product.checked_mul(e.as_constant()?));
            match constant {
                Some(bytes) => known += (bytes + 127) & !63,
                None if n == last => {}
                None => {
                    cx.prelude
                        .add("shared_bytes", File::Memory, "shared_bytes", &[]);
                    let bytes = Expr::binary("*", &cx.volume(memory)?, &number(size)?);
                    let bytes = Expr::call("shared_bytes", &[bytes]);
                    symbolic = Some(match symbolic {
                        None => bytes,
                        Some(before) => Expr::binary("+", &before, &bytes),
                    });
                }
            }
        }
        Ok(lines)
    }

    /// How the coordinates of a block follow from its number: split off the first one, and counted on from
    /// there, since a division takes as long as the work of a small block.
    fn block_coordinates(&self, cx: &mut Context<'_>) -> Result<Blocks, Fault> {
        let mut blocks = Blocks::default();
        let vars: Vec<DimId> = cx
            .kernel
            .vars_where(|k| matches!(k, VarKind::Block { .. }))
            .collect();
        // The number without the coordinates that are already split off.
        let mut rest = Expr::atom("first");
        let Some(first_used) = vars.iter().position(|v| cx.dims[v.index()].used) else {
            return Ok(blocks);
        };
        for (n, var) in vars.iter().enumerate().skip(first_used).rev() {
            let VarKind::Block { lo, hi } = &cx.kernel.vars[var.index()].kind else {
                unreachable!("it was chosen as a block's coordinate")
            };
            let name = cx.dims[var.index()].name.clone();
            let mut named = |cx: &mut Context<'_>, what: &str, e: Expr| {
                if e.level == Level::Primary {
                    return e;
                }
                let known = cx.names.claim(&format!("{name}_{what}"));
                let line = format!("const int64_t {known} = {};", e.text);
                blocks.bounds.push(line);
                Expr::atom(known)
            };
            let lo = cx.extremum(lo, true)?;
            let lo = named(cx, "lo", lo);
            let mut own = rest.clone();
            let mut end = None;
            if n > first_used {
                let hi = cx.extremum(hi, false)?;
                let hi = named(cx, "end", hi);
                let extent = if lo.text == "0" {
                    hi.clone()
                } else {
                    Expr::binary("-", &hi, &lo)
                };
                let extent = named(cx, "extent", extent);
                // An empty grid has no blocks, but may still be asked for none.
                let divisor = Expr::atom(format!("({0} > 0 ? {0} : 1)", extent.text));
                own = Expr::binary("%", &rest, &divisor);
                rest = Expr::binary("/", &rest, &divisor);
                end = Some(hi.text);
            }
            let value = if lo.text == "0" {
                own
            } else {
                Expr::binary("+", &lo, &own)
            };
            blocks
                .coordinates
                .insert(0, format!("int64_t {name} = {};", value.text));
            blocks.steps.push(Step {
                name,
                lo: lo.text,
                end,
            });
        }
        Ok(blocks)
    }

    /// How a register is held.
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

/// Declarations of block coordinates.
#[derive(Default)]
struct Blocks {
    /// Before the loop over blocks.
    bounds: Vec<String>,
    /// The coordinates of the first block.
    coordinates: Vec<String>,
    /// The fastest coordinate first.
    steps: Vec<Step>,
}

/// How a coordinate goes on from one block to the next.
struct Step {
    name: String,
    lo: String,
    /// Where it starts again and the next coordinate goes on; the slowest never does.
    end: Option<String>,
}

impl Blocks {
    fn step(&self, lines: &mut Lines) {
        let mut depth = 0;
        for Step { name, lo, end } in &self.steps {
            match end {
                Some(end) => {
                    lines.open(&format!("if (++{name} == {end})"));
                    lines.push(&format!("{name} = {lo};"));
                    depth += 1;
                }
                None => lines.push(&format!("{name}++;")),
            }
        }
        for _ in 0..depth {
            lines.close();
        }
    }
}

impl Dialect for Cpu {
    fn begin_turn(&mut self, cx: &mut Context<'_>, var: DimId) -> Result<(), Fault> {
        self.fetch_in_turn(cx, var)
    }

    fn set_apart(
        &mut self,
        cx: &mut Context<'_>,
        stmts: &[Stmt],
    ) -> Result<Vec<(DimId, String)>, Fault> {
        Ok(edge::set_apart(cx, stmts))
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
            let ty = cx.kernel.values[value.index()].ty;
            let (e, rep) = self.load(cx, from, n as i128, ty, otherwise)?;
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

    /// Copies are there when they were made.
    fn commit_copies(&mut self, _: &mut Context<'_>) -> Result<Action, Fault> {
        Ok(Action::default())
    }

    fn wait_copies(&mut self, _: &mut Context<'_>, _: u32) -> Result<Action, Fault> {
        Ok(Action::default())
    }

    /// A block of one warp never waits for itself.
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

    fn ticket(
        &mut self,
        cx: &mut Context<'_>,
        var: DimId,
        counter: &Access,
    ) -> Result<Action, Fault> {
        cx.prelude
            .add("draw_ticket", File::Memory, "draw_ticket", &[]);
        let (counter, guard) = self.flag(cx, counter)?;
        if guard.is_some() {
            return Err(Fault::unsupported("a ticket is drawn under a condition"));
        }
        let draw = Expr::call("draw_ticket", &[counter]);
        let name = &cx.dims[var.index()].name;
        // A ticket that nothing depends on is drawn all the same.
        Ok(Action::line(format!(
            "const int64_t {name} __attribute__((unused)) = {};",
            draw.text
        )))
    }
}
