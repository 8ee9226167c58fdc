//! CUDA C++: a lane is a thread, and a block of the grid a block of threads.
//!
//! Each kernel becomes one function of the arguments that it uses ([`CudaEntry::arguments`]): buffers by the address of
//! their first element, at a multiple of 16 bytes, then sizes and launch arguments, of type `index_t`. That is
//! `int64_t`, or `int32_t` where the file is compiled with `-DINDEX=int32_t`, which is right where every index of the
//! run fits. A block has [`CudaEntry::threads`] threads, 32 for each warp. The last coordinate of a block is its place along
//! x of the grid; all others are numbered through along y, and on in the next layer along z, the last of which may have
//! more than there are. A warp of fewer lanes is run by 32 threads all the same, several of which do the same.
//!
//! The text is complete in itself: NVRTC compiles it without any header.

mod ahead;
mod constant;
mod grid;
mod memory;
mod order;
mod pressure;
mod value;

use systola_ir::kernel::visit::walk;
use systola_ir::kernel::{Access, BufferKind, Kernel, Memory, Op, Program, Stmt, VarKind};
use systola_ir::mapping::Engine;
use systola_ir::{BufferId, DimId, Literal, RegId, SharedId, ValueId};

use crate::artifact::{Argument, Constant, CudaArtifact, CudaEntry, SharedArray};
use crate::c_family::{Context, Printer};
use crate::dialect::{Action, Dialect};
use crate::error::{Error, Fault};
use crate::expr::{Expr, Lines};
use crate::index::{Index, Sum};
use crate::names::{self, CONSTANT, Names};
use crate::prelude::{File, Prelude};
use crate::scalar::{self, c_type};
use crate::specialise::specialise;
use ahead::{Requests, requests};
use grid::block_coordinates;
use memory::stored_type;
use order::Meetings;
use pressure::{pressure, resident_blocks};

/// Threads of a warp.
const WARP: u32 = 32;
/// Threads of a block, at most.
const MOST_THREADS: u32 = 1024;
/// Shared memory whose size is written down in the code, at most.
const MOST_STATIC: i128 = 48 << 10;
/// Every shared array starts at a multiple of so many bytes.
pub const SHARED_ALIGN: u64 = 16;

/// Statements of a loop that the compiler may unroll.
const MOST_TO_UNROLL: usize = 32;

const QUALIFIERS: &str = "__device__ __forceinline__";

static INDEX: Index = Index {
    ty: "index_t",
    suffix: "index",
    file: File::Cuda,
};

const HEADER: &str = "\
// A memory that is written and not read is no mistake here.
#pragma nv_diag_suppress 550
#ifdef __CUDACC_RTC__
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
#define INT64_C(x) x##LL
#define UINT64_C(x) x##ULL
#define INT32_MIN (-2147483647 - 1)
#define INT64_MIN (-9223372036854775807LL - 1)
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#else
#include <math.h>
#include <stdint.h>
#endif

// Indices: 32 bits where those of the run fit.
#ifndef INDEX
#define INDEX int64_t
#endif
typedef INDEX index_t;
";

/// What this dialect knows of a kernel.
pub struct Cuda {
    lanes: u32,
    /// The name of the lane's variable.
    lane: String,
    meetings: Meetings,
    /// Do copies into shared memory run beside the threads?
    copies: bool,
    /// What loops ask for ahead of its use.
    requests: Requests,
}

/// Prints a verified program.
pub fn emit(program: &Program) -> Result<CudaArtifact, Error> {
    let special = specialise(program).map_err(|e| Fault::from(e).of_kernel(&program.name))?;
    let constants = constant::constant_buffers(&special);
    let mut prelude = Prelude::new(QUALIFIERS);
    let mut symbols = Names::default();
    let mut kernels = Vec::new();
    let mut functions = String::new();
    for kernel in &special.kernels {
        let symbol = symbols.claim(&names::symbol(&kernel.name));
        let (text, entry) = emit_kernel(&special, kernel, &constants, &mut prelude, symbol)
            .map_err(|fault| fault.of_kernel(&kernel.name))?;
        functions.push('\n');
        functions.push_str(&text);
        kernels.push(entry);
    }
    let mut arrays = String::new();
    let mut used = Vec::new();
    for (buffer, elements) in constants {
        let symbol = constant_symbol(&special, buffer);
        let ty = special.buffers[buffer.index()].ty;
        let ty = if ty == systola_ir::Scalar::Bool {
            systola_ir::Scalar::U8
        } else {
            ty
        };
        let ty = c_type(ty).map_err(|fault| fault.of_kernel(&program.name))?;
        arrays.push_str(&format!("\n__constant__ {ty} {symbol}[{elements}];\n"));
        used.push(Constant { buffer, symbol });
    }
    let name = program.name.replace(['\n', '\r', '\\'], " ");
    let what = if kernels.len() == 1 {
        "a kernel"
    } else {
        "kernels"
    };
    let helpers = prelude.helpers();
    let gap = if helpers.is_empty() || helpers.starts_with('\n') {
        ""
    } else {
        "\n"
    };
    let source = format!(
        "// {name}: {what} in CUDA C++, printed by Systola.\n\n\
         {HEADER}{gap}{helpers}{arrays}{functions}",
    );
    Ok(CudaArtifact {
        source,
        kernels,
        constants: used,
    })
}

/// The array in constant memory that holds a buffer; names of kernels never end like it.
fn constant_symbol(program: &Program, buffer: BufferId) -> String {
    let names = program.buffers[..buffer.index()].iter().map(|b| &b.name);
    let own = names::legal(&program.buffers[buffer.index()].name);
    // Two names may become one where letters are spelled by their numbers.
    let same = names.filter(|name| names::legal(name) == own).count();
    if same == 0 {
        format!("{own}{CONSTANT}")
    } else {
        format!("{own}_{}{CONSTANT}", same + 1)
    }
}

fn emit_kernel(
    program: &Program,
    kernel: &Kernel,
    constants: &[(BufferId, usize)],
    prelude: &mut Prelude,
    symbol: String,
) -> Result<(String, CudaEntry), Fault> {
    if !kernel.lanes.is_power_of_two() || kernel.lanes > WARP {
        return Err(Fault::unsupported(format!(
            "a warp of {} lanes; it has a power of two of them, at most {WARP}",
            kernel.lanes
        )));
    }
    let threads = kernel.warps.saturating_mul(WARP);
    if threads > MOST_THREADS {
        return Err(Fault::unsupported(format!(
            "a block of {} warps; it has at most {}",
            kernel.warps,
            MOST_THREADS / WARP
        )));
    }
    let mut cx = Context::new(program, kernel, prelude, 1);
    cx.index = &INDEX;
    for (buffer, _) in constants {
        cx.buffers[buffer.index()].name = constant_symbol(program, *buffer);
    }
    let lane = match kernel.lane() {
        Some(lane) => cx.dims[lane.index()].name.clone(),
        None => cx.names.claim("lane"),
    };
    let mut cuda = Cuda {
        lanes: kernel.lanes,
        lane,
        meetings: Meetings::new(kernel, &cx.usage, kernel.lanes < WARP),
        copies: has_async_copies(kernel),
        requests: requests(kernel, pressure(kernel), cx.usage.has_flags),
    };
    Printer::new(&mut cx, &mut cuda).body()?;
    cuda.function(&mut cx, symbol, threads, constants)
}

fn has_async_copies(kernel: &Kernel) -> bool {
    let mut found = false;
    walk(&kernel.body, &mut |stmt| {
        if let Stmt::Copy { engine, .. } = stmt {
            found |= *engine != Engine::Plain;
        }
    });
    found
}

impl Cuda {
    /// The function around a body that was printed: what it mentions is declared.
    fn function(
        &self,
        cx: &mut Context<'_>,
        symbol: String,
        threads: u32,
        constants: &[(BufferId, usize)],
    ) -> Result<(String, CudaEntry), Fault> {
        let body = std::mem::take(&mut cx.lines).finish();
        let blocks = block_coordinates(cx)?;
        let (shared, dynamic) = shared_arrays(cx)?;
        let mut top = Lines::at_depth(1);
        if body_mentions(&body, &self.lane) {
            let (lane, lanes) = (&self.lane, self.lanes);
            top.push(&format!("const index_t {lane} = threadIdx.x % {lanes};"));
        }
        for var in cx.kernel.vars_where(|k| matches!(k, VarKind::Warp)) {
            let var = &cx.dims[var.index()];
            if var.used {
                top.push(&format!(
                    "const index_t {} = threadIdx.x / {WARP};",
                    var.name
                ));
            }
        }
        for line in blocks.iter().chain(&cx.constants).chain(&shared) {
            top.push(line);
        }
        let mut parameters = Vec::new();
        let mut arguments = Vec::new();
        for n in 0..cx.buffers.len() {
            let id = BufferId::from(n);
            if cx.buffers[n].used && !constants.iter().any(|(b, _)| *b == id) {
                parameters.push(buffer_parameter(cx, id)?);
                arguments.push(Argument::Buffer(id));
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
        let mut lines = Lines::default();
        let registers = pressure(cx.kernel);
        let resident = resident_blocks(registers, threads);
        lines.push(&format!(
            "extern \"C\" __global__ void __launch_bounds__({threads}, {resident})"
        ));
        lines.push(&format!("{symbol}({})", parameters.join(", ")));
        lines.append("{\n");
        lines.append(&top.finish());
        lines.append(&body);
        lines.append("}\n");
        let entry = CudaEntry {
            symbol,
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
        };
        Ok((lines.finish(), entry))
    }
}

/// Does the name stand in the text, as a word of its own?
fn body_mentions(body: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    body.match_indices(name).any(|(at, _)| {
        let before = body[..at].chars().next_back();
        let after = body[at + name.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

fn buffer_parameter(cx: &Context<'_>, id: BufferId) -> Result<String, Fault> {
    let buffer = &cx.program.buffers[id.index()];
    let name = &cx.buffers[id.index()].name;
    let ty = c_type(stored_type(cx, Memory::Global(id)))?;
    let written = cx.usage.written.contains(&Memory::Global(id));
    let is_input = match buffer.kind {
        BufferKind::Input { .. } => true,
        BufferKind::Output { .. } | BufferKind::Temporary | BufferKind::Flags => false,
    };
    // What other blocks write meanwhile must be read again after a flag was awaited.
    let restrict = if is_input || !cx.usage.has_flags {
        "__restrict__ "
    } else {
        ""
    };
    let constant = if written { "" } else { "const " };
    Ok(format!("{constant}{ty} *{restrict}{name}"))
}

fn shared_sizes(kernel: &Kernel) -> Vec<SharedArray> {
    let arrays = kernel.shared.iter().map(|s| SharedArray {
        extents: s.extents.clone(),
        element_bytes: u64::from(s.ty.bits() / 8),
    });
    arrays.collect()
}

/// Bytes of all shared arrays, where they are known.
fn static_bytes(cx: &Context<'_>) -> Option<u64> {
    let align = i128::from(SHARED_ALIGN);
    let mut total = 0i128;
    for (n, shared) in cx.kernel.shared.iter().enumerate() {
        let extents = cx.extents(Memory::Shared(SharedId::from(n)));
        let bytes = extents
            .iter()
            .try_fold(i128::from(shared.ty.bits() / 8), |product, extent| {
                product.checked_mul(extent.as_constant()?.max(0))
            })?;
        total = total.checked_add((bytes + align - 1) / align * align)?;
    }
    u64::try_from(total).ok()
}

/// Declarations of the shared arrays, and whether the launch has to bring their memory.
fn shared_arrays(cx: &mut Context<'_>) -> Result<(Vec<String>, bool), Fault> {
    let is_static = static_bytes(cx).is_some_and(|bytes| i128::from(bytes) <= MOST_STATIC);
    let mut lines = Vec::new();
    if !cx.shared.iter().any(|s| s.used) {
        return Ok((lines, false));
    }
    if is_static {
        for n in 0..cx.shared.len() {
            let memory = Memory::Shared(SharedId::from(n));
            let ty = c_type(stored_type(cx, memory))?;
            let mut count = 1i128;
            for extent in cx.extents(memory) {
                count *= extent.as_constant().unwrap_or(0).max(0);
            }
            if cx.shared[n].used {
                let (name, count) = (&cx.shared[n].name, count.max(1));
                lines.push(format!(
                    "__shared__ __align__({SHARED_ALIGN}) {ty} {name}[{count}];"
                ));
            }
        }
        return Ok((lines, false));
    }
    lines.push(format!(
        "extern __shared__ __align__({SHARED_ALIGN}) unsigned char shared_memory[];"
    ));
    // Bytes before the next array.
    let mut known = 0i128;
    let mut symbolic = Sum::default();
    let last = cx.shared.iter().rposition(|s| s.used).unwrap_or(0);
    for n in 0..=last {
        let memory = Memory::Shared(SharedId::from(n));
        let ty = stored_type(cx, memory);
        if cx.shared[n].used {
            let mut offset = symbolic.clone();
            offset.add_number(known)?;
            let offset = offset.finish();
            let start = if offset.text == "0" {
                "shared_memory".to_string()
            } else {
                format!("(shared_memory + {})", offset.text)
            };
            let (c, name) = (c_type(ty)?, &cx.shared[n].name);
            lines.push(format!("{c} *const {name} = ({c} *){start};"));
        }
        let size = i128::from(ty.bits() / 8);
        let extents = cx.extents(memory);
        let constant = extents
            .iter()
            .try_fold(size, |product, e| product.checked_mul(e.as_constant()?));
        let align = i128::from(SHARED_ALIGN);
        match constant {
            Some(bytes) => known += (bytes.max(0) + align - 1) / align * align,
            None if n == last => {}
            None => {
                let bytes = Expr::binary("*", &cx.volume(memory)?, &crate::index::number(size)?);
                let up = Expr::binary("+", &bytes, &crate::index::number(align - 1)?);
                let mask = Expr::number((-align).to_string());
                let whole = Expr::binary("&", &up, &mask);
                symbolic.add(1, &Expr::atom(format!("({})", whole.text)))?;
            }
        }
    }
    Ok((lines, true))
}

impl Dialect for Cuda {
    /// All lanes take part in a shuffle, also those whose reader is behind a condition.
    fn stays(&self, op: &Op) -> bool {
        op.effects().crosses_lanes
    }

    fn meet(&self, stmt: &Stmt) -> Option<&'static str> {
        self.meetings.before(stmt).then_some("__syncwarp();")
    }

    fn before_loop(&self, body: &[Stmt]) -> Option<&'static str> {
        // What should be written out is; the compiler would do it again, for registers that others need.
        (body.len() > MOST_TO_UNROLL).then_some("#pragma unroll 1")
    }

    fn begin_turn(&mut self, cx: &mut Context<'_>, var: DimId) -> Result<(), Fault> {
        self.ask(cx, var)
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
            Op::Slide { low, high, by } => self.slide(cx, *low, *high, *by),
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
        if !self.copies {
            return Ok(Action::default());
        }
        cx.prelude
            .add("commit_copies", File::Cuda, "commit_copies", &[]);
        Ok(Action::line("commit_copies();"))
    }

    fn wait_copies(&mut self, cx: &mut Context<'_>, pending: u32) -> Result<Action, Fault> {
        if !self.copies {
            return Ok(Action::line("__syncwarp();"));
        }
        let name = format!("wait_copies_{pending}");
        let letters = [('N', pending.to_string())];
        let letters = letters.each_ref().map(|(c, s)| (*c, s.as_str()));
        cx.prelude.add(&name, File::Cuda, "wait_copies", &letters);
        Ok(Action::line(format!("{name}();")))
    }

    fn barrier(&mut self, _: &mut Context<'_>) -> Result<Action, Fault> {
        Ok(Action::line("__syncthreads();"))
    }

    fn signal(&mut self, cx: &mut Context<'_>, flag: &Access) -> Result<Action, Fault> {
        cx.prelude
            .add("signal_flag", File::Cuda, "signal_flag", &[]);
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
        cx.prelude.add("await_flag", File::Cuda, "await_flag", &[]);
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
            .add("draw_ticket", File::Cuda, "draw_ticket", &[]);
        let (counter, guard) = self.flag(cx, counter)?;
        if guard.is_some() {
            return Err(Fault::unsupported("a ticket is drawn under a condition"));
        }
        let draw = Expr::call("draw_ticket", &[counter]);
        let name = &cx.dims[var.index()].name;
        // A ticket that nothing depends on is drawn all the same.
        Ok(Action::line(format!(
            "[[maybe_unused]] const index_t {name} = {};",
            draw.text
        )))
    }
}
