//! CUDA C++: the parts that differ from other languages with threads ([`simt`](crate::simt)).
//!
//! A warp is run by 32 threads, even if it has fewer lanes. The source is self-contained: NVRTC
//! compiles it without any header.

mod bytes;
mod predicated_loads;

use systola_ir::kernel::constant::constant_buffers;
use systola_ir::kernel::visit::any;
use systola_ir::kernel::{Access, Cache, Kernel, Program, Stmt};
use systola_ir::mapping::Engine;
use systola_ir::{BufferId, Scalar};

use crate::artifact::{Constant, DeviceArtifact, DeviceEntry};
use crate::context::Context;
use crate::dialect::{Action, Together};
use crate::error::{Error, Fault};
use crate::expr::Expr;
use crate::names::{self, CONSTANT, Names};
use crate::prelude::{File, Prelude};
use crate::scalar::c_type;
use crate::simt::grid::Grid;
use crate::simt::shared::SHARED_ALIGN;
use crate::simt::value::Move;
use crate::simt::{ConstantPlace, Dynamic, Guarded, Language, Space, emit_kernel, unless_set};
use predicated_loads::load_where;

/// Threads of a warp.
const WARP: u32 = 32;
/// The maximum number of threads of a block.
const MOST_THREADS: u32 = 1024;

/// This prefix with the name of a kernel is the macro that selects an entry from the kernel's list
/// of resident blocks per multiprocessor. Whoever compiles the source selects a later entry where
/// registers do not suffice.
const FEWER: &str = "FEWER_";

const QUALIFIERS: &str = "__device__ __forceinline__";

const HEADER: &str = "\
// A variable that is set but never used is expected here.
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

// Indices have 32 bits where those of the run fit.
#ifdef INDEX
#define NARROW
#else
#define INDEX int64_t
#endif
typedef INDEX index_t;
";

const PACK: &str = "\
// Elements that are loaded or stored at once.
template <typename T, int N> struct alignas(sizeof(T) * N) Pack {
    T at[N];
};";

/// The state of this language for a kernel.
struct Cuda {
    /// Are copies into shared memory asynchronous?
    copies: bool,
}

/// Prints a verified program.
pub fn emit(program: &Program) -> Result<DeviceArtifact, Error> {
    let constants = constant_buffers(program);
    let mut prelude = Prelude::new(QUALIFIERS);
    let mut symbols = Names::default();
    let mut kernels = Vec::new();
    let mut functions = String::new();
    for kernel in &program.kernels {
        let symbol = symbols.claim(&names::symbol(&kernel.name));
        let (text, entry) = print_kernel(program, kernel, &constants, &mut prelude, symbol)
            .map_err(|fault| fault.of_kernel(&kernel.name))?;
        functions.push('\n');
        functions.push_str(&text);
        kernels.push(entry);
    }
    let mut arrays = String::new();
    let mut used = Vec::new();
    for (buffer, elements) in constants {
        let symbol = constant_symbol(program, buffer);
        let ty = program.buffers[buffer.index()].ty;
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
    Ok(DeviceArtifact {
        source,
        kernels,
        constants: used,
    })
}

/// The array in constant memory that holds a buffer; names of kernels never have this ending.
fn constant_symbol(program: &Program, buffer: BufferId) -> String {
    let names = program.buffers[..buffer.index()].iter().map(|b| &b.name);
    let own = names::legal(&program.buffers[buffer.index()].name);
    // Two names may become equal where letters are replaced by their code points.
    let same = names.filter(|name| names::legal(name) == own).count();
    if same == 0 {
        format!("{own}{CONSTANT}")
    } else {
        format!("{own}_{}{CONSTANT}", same + 1)
    }
}

fn print_kernel(
    program: &Program,
    kernel: &Kernel,
    constants: &[(BufferId, usize)],
    prelude: &mut Prelude,
    symbol: String,
) -> Result<(String, DeviceEntry), Fault> {
    if !kernel.lanes.is_power_of_two() || kernel.lanes > WARP {
        return Err(Fault::unsupported(format!(
            "a warp of {} lanes; it has a power of two of them, at most {WARP}",
            kernel.lanes
        )));
    }
    if kernel.warps.saturating_mul(WARP) > MOST_THREADS {
        return Err(Fault::unsupported(format!(
            "a block of {} warps; it has at most {}",
            kernel.warps,
            MOST_THREADS / WARP
        )));
    }
    let constants: Vec<BufferId> = constants.iter().map(|(buffer, _)| *buffer).collect();
    let cuda = Cuda {
        copies: any(
            &kernel.body,
            &|stmt| matches!(stmt, Stmt::Copy { engine, .. } if *engine != Engine::Plain),
        ),
    };
    let named = |buffer: BufferId| {
        let symbol = constant_symbol(program, buffer);
        (buffer, ConstantPlace::Named(symbol))
    };
    let constants = constants.into_iter().map(named).collect();
    emit_kernel(program, kernel, constants, prelude, symbol, cuda)
}

/// An expression for the number at a position in a list; beyond its end, the last number.
fn choice(place: &str, numbers: &[u32]) -> String {
    let Some((last, others)) = numbers.split_last() else {
        unreachable!("there is a number")
    };
    let number = |n: u32| Expr::atom(n.to_string());
    let place = Expr::atom(place);
    let mut chosen = number(*last);
    for (at, n) in others.iter().enumerate().rev() {
        let here = Expr::binary("==", &place, &Expr::atom(at.to_string()));
        chosen = Expr::ternary(&here, &number(*n), &chosen);
    }
    chosen.text
}

fn thread() -> Expr {
    Expr::atom("threadIdx.x")
}

impl Language for Cuda {
    const FILE: File = File::Cuda;
    const GRID: Grid = Grid {
        column: "blockIdx.x",
        row: "blockIdx.y + gridDim.y * blockIdx.z",
    };

    fn threads_of(&self, _: u32) -> u32 {
        WARP
    }

    fn lane(&self, lanes: u32) -> Expr {
        Expr::binary("%", &thread(), &Expr::atom(lanes.to_string()))
    }

    fn warp(&self, _: u32) -> Expr {
        Expr::binary("/", &thread(), &Expr::atom(WARP.to_string()))
    }

    fn sync_warp(&self) -> &'static str {
        "__syncwarp();"
    }

    fn barrier(&self) -> &'static str {
        "__syncthreads();"
    }

    fn prefetch(
        &self,
        prelude: &mut Prelude,
        array: &str,
        offset: Expr,
        size: Expr,
        into: Cache,
    ) -> Expr {
        let (function, cache) = match into {
            Cache::L1 => ("prefetch_l1", "L1"),
            Cache::L2 => ("prefetch_l2", "L2"),
        };
        let letters = [('N', function), ('C', cache)];
        prelude.add(function, File::Cuda, "prefetch", &letters);
        Expr::call(function, &[Expr::atom(array), offset, size])
    }

    fn space(&self, _: Space) -> &'static str {
        ""
    }

    fn restrict(&self) -> &'static str {
        "__restrict__ "
    }

    fn pack(&self, prelude: &mut Prelude, element: Scalar, n: u32) -> Result<String, Fault> {
        prelude.add_type("Pack", || PACK.to_string());
        if let Some(words) = bytes::words(element, n) {
            bytes::add(prelude);
            return Ok(format!("Pack<uint32_t, {words}>"));
        }
        Ok(format!("Pack<{}, {n}>", c_type(element)?))
    }

    fn pack_element(&self, element: Scalar, of: u32, name: &str, n: u32) -> Result<Expr, Fault> {
        match bytes::words(element, of) {
            Some(_) => bytes::element(element, name, n),
            None => Ok(Expr::atom(format!("{name}.at[{n}]"))),
        }
    }

    fn pack_of(&self, element: Scalar, _: &str, elements: &[&str]) -> String {
        match bytes::words(element, elements.len() as u32) {
            Some(_) => bytes::joined(elements),
            None => format!("{{{}}}", elements.join(", ")),
        }
    }

    fn load_where(
        &self,
        cx: &mut Context<'_>,
        from: &Access,
        element: Scalar,
        n: u32,
    ) -> Result<Option<Guarded>, Fault> {
        if !cx.kernel.hints.predicated_loads {
            return Ok(None);
        }
        let pack = match n {
            1 => None,
            n => Some(self.pack(cx.prelude, element, n)?),
        };
        let Some(words) = bytes::words(element, n) else {
            return load_where(cx, from, element, n, pack.as_deref());
        };
        let guarded = load_where(cx, from, Scalar::U32, words, pack.as_deref())?;
        Ok(guarded.map(|guarded| Guarded {
            joined: Some((bytes::JOIN, bytes::IN_A_WORD as usize)),
            ..guarded
        }))
    }

    fn mover(&self, prelude: &mut Prelude, ty: Scalar, by: Move, lanes: u32) -> Result<(), Fault> {
        let function = match by {
            Move::Lane => "__shfl_sync",
            Move::Up => "__shfl_up_sync",
            Move::Down => "__shfl_down_sync",
        };
        let section = if ty.bits() < 32 {
            "shuffle_narrow"
        } else {
            "shuffle"
        };
        let letters = [
            ('T', c_type(ty)?),
            ('N', ty.name()),
            ('F', by.name()),
            ('G', function),
            ('L', &lanes.to_string()),
        ];
        prelude.add(
            &format!("{}_{ty}", by.name()),
            File::Cuda,
            section,
            &letters,
        );
        Ok(())
    }

    fn copier(&self, prelude: &mut Prelude, bytes: u32) -> Option<String> {
        if bytes < 4 {
            return None;
        }
        prelude.add_type("Pack", || PACK.to_string());
        let name = format!("copy_async_{bytes}");
        // Bypasses L1, where that is possible.
        let cache = if bytes == 16 { "cg" } else { "ca" };
        let letters = [
            ('N', bytes.to_string()),
            ('K', (bytes / 4).to_string()),
            ('C', cache.to_string()),
        ];
        let letters: Vec<(char, &str)> = letters.iter().map(|(c, s)| (*c, s.as_str())).collect();
        prelude.add(&name, File::Cuda, "copy_async", &letters);
        Some(name)
    }

    fn commit_copies(&self, prelude: &mut Prelude) -> Action {
        if !self.copies {
            return Action::default();
        }
        prelude.add("commit_copies", File::Cuda, "commit_copies", &[]);
        Action::line("commit_copies();")
    }

    fn wait_copies(&self, prelude: &mut Prelude, pending: u32) -> Action {
        if !self.copies {
            return Action::line(self.sync_warp());
        }
        let name = format!("wait_copies_{pending}");
        let number = pending.to_string();
        prelude.add(&name, File::Cuda, "wait_copies", &[('N', &number)]);
        Action::line(format!("{name}();"))
    }

    fn maybe_unused(&self) -> &'static str {
        "[[maybe_unused]] "
    }

    fn thread_of_warp(&self, _: u32) -> String {
        format!("threadIdx.x % {WARP}")
    }

    fn together(&self) -> Option<Together> {
        Some(Together {
            lane: self.thread_of_warp(WARP),
            width: WARP,
            ballot: |cond| format!("__ballot_sync(~0u, {cond})"),
            first: |lanes| format!("__ffs({lanes}) - 1"),
            down: |value, by| format!("__shfl_down_sync(~0u, {value}, {by})"),
            from: |value, lane| format!("__shfl_sync(~0u, {value}, {lane})"),
            unroll: "#pragma unroll",
        })
    }

    fn shared_array(&self, ty: &str, name: &str, count: i128) -> String {
        format!("__shared__ __align__({SHARED_ALIGN}) {ty} {name}[{count}];")
    }

    fn dynamic_shared(&self) -> Dynamic {
        Dynamic {
            line: Some("extern __shared__ __align__(16) unsigned char shared_memory[];"),
            parameter: None,
            bytes: "shared_memory",
        }
    }

    fn head(&self, symbol: &str, threads: u32, kernel: &Kernel) -> Vec<String> {
        let mut lines = Vec::new();
        let bounds = match kernel.hints.resident_blocks.as_slice() {
            [] => threads.to_string(),
            [only] => format!("{threads}, {only}"),
            all => {
                let fewer = format!("{FEWER}{symbol}");
                lines.extend(unless_set(&fewer, "0"));
                format!("{threads}, {}", choice(&fewer, all))
            }
        };
        lines.push(format!(
            "extern \"C\" __global__ void __launch_bounds__({bounds})"
        ));
        lines
    }
}
