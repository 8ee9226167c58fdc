//! OpenCL C: the parts that differ from other languages with threads ([`simt`](crate::simt)).
//!
//! The features of a device decide how lanes are linked, never its name ([`Features`]):
//!
//! * On devices with sub-groups whose size a kernel can request, a warp is a sub-group, links are
//!   shuffles, and the lanes of a warp synchronise without the rest of the block. A warp of fewer
//!   lanes than the smallest sub-group is run by all threads of one, several of which do the same
//!   work.
//! * On other devices, a warp is a number of consecutive threads of a block, with as many threads
//!   as lanes. A pass has moved values that cross lanes into shared memory, where the lanes of a
//!   warp can only synchronise together with all others of the block, and has removed branches
//!   around barriers that some warps would not take (`lower/passes/lanes_through_memory.rs`).
//!
//! Inputs in constant memory are arguments: pointers, or the elements themselves where a device
//! keeps arguments in that memory. Elements that are loaded or stored together are vectors. The
//! lanes copy data into shared memory. Blocks synchronise by atomics with acquire and release
//! semantics for the whole device; a device without them runs no kernel that needs that.

mod features;

use std::collections::BTreeMap;

use systola_ir::kernel::constant::constant_buffers;
use systola_ir::kernel::visit::{any, walk};
use systola_ir::kernel::{Cache, Kernel, Memory, Program, Stmt};
use systola_ir::{BufferId, Scalar};

use crate::artifact::{DeviceArtifact, DeviceEntry};
use crate::error::{Error, Fault};
use crate::expr::Expr;
use crate::names::{self, Names};
use crate::prelude::{File, Prelude};
use crate::scalar::c_type;
use crate::simt::grid::Grid;
use crate::simt::shared::SHARED_ALIGN;
use crate::simt::value::Move;
use crate::simt::{ConstantPlace, Dynamic, Language, Space, emit_kernel};
use crate::usage::Usage;
pub use features::{Features, Functions};
pub use systola_ir::target::Links;

const QUALIFIERS: &str = "static inline";

/// The number of arguments in constant memory that every device supports.
const MOST_CONSTANTS: usize = 8;

const HEADER: &str = "\
typedef char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef uchar uint8_t;
typedef ushort uint16_t;
typedef uint uint32_t;
typedef ulong uint64_t;
#define INT64_C(x) x##L
#define UINT64_C(x) x##UL
#define INT32_MIN (-2147483647 - 1)
#define INT64_MIN (-9223372036854775807L - 1)
// OpenCL has one name for all types.
#define fabsf fabs
#define sqrtf sqrt
#define expf exp
#define logf log
#define powf pow
#define fmodf fmod
#define fminf fmin
#define fmaxf fmax
#define floorf floor
#define ceilf ceil
#define sinf sin
#define cosf cos
#define tanhf tanh
#define rsqrtf rsqrt

// Indices have 32 bits where those of the run fit.
#ifndef INDEX
#define INDEX int64_t
#endif
typedef INDEX index_t;
";

const DOUBLES: &str = "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n";
const WIDE_ATOMICS: &str = "#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable\n";
const SUB_GROUPS: &str = "\
#ifdef cl_khr_subgroups
#pragma OPENCL EXTENSION cl_khr_subgroups : enable
#endif
";

/// The state of this language for a kernel.
struct OpenCl<'f> {
    features: &'f Features,
    /// Does a block read what it wrote to global memory?
    global: bool,
    block_id: bool,
}

/// Prints a verified program for devices with these features.
pub fn emit(program: &Program, features: &Features) -> Result<DeviceArtifact, Error> {
    let constants = constants(program, features);
    let mut prelude = Prelude::new(QUALIFIERS);
    let mut symbols = Names::default();
    let mut kernels = Vec::new();
    let mut functions = String::new();
    let mut doubles = false;
    for kernel in &program.kernels {
        let symbol = symbols.claim(&names::symbol(&kernel.name));
        let print = || -> Result<(String, DeviceEntry), Fault> {
            doubles |= has_doubles(program, kernel);
            if doubles && !features.doubles {
                return Err(Fault::unsupported("this device has no f64; use f32"));
            }
            check(kernel, features)?;
            let language = OpenCl::new(kernel, features);
            let constants = constants.clone();
            emit_kernel(program, kernel, constants, &mut prelude, symbol, language)
        };
        let (text, entry) = print().map_err(|fault| fault.of_kernel(&kernel.name))?;
        functions.push('\n');
        functions.push_str(&text);
        kernels.push(entry);
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
    let doubles = if doubles { DOUBLES } else { "" };
    let looks_back = |k: &Kernel| any(&k.body, &|stmt| matches!(stmt, Stmt::LookBack(_)));
    let wide_atomics = match program.kernels.iter().any(looks_back) {
        true => WIDE_ATOMICS,
        false => "",
    };
    let sub_groups = match features.links {
        Links::Shuffles(_) => SUB_GROUPS,
        Links::SharedMemory { .. } => "",
    };
    let source = format!(
        "// {name}: {what} in OpenCL C, printed by Systola.\n\n\
         {doubles}{wide_atomics}{sub_groups}{HEADER}{gap}{helpers}{functions}",
    );
    Ok(DeviceArtifact {
        source,
        kernels,
        constants: Vec::new(),
    })
}

/// Where the inputs in constant memory are placed: as many as fit are arguments themselves; of the
/// others, as many as every device supports are accessed through pointers.
fn constants(program: &Program, features: &Features) -> BTreeMap<BufferId, ConstantPlace> {
    let mut room = features.value_bytes;
    let mut pointers = 0;
    let mut found = BTreeMap::new();
    for (buffer, count) in constant_buffers(program) {
        let element = u64::from(program.buffers[buffer.index()].ty.bits() / 8);
        let bytes = element * count as u64;
        if bytes <= room {
            room -= bytes;
            found.insert(buffer, ConstantPlace::Value(count));
        } else if pointers < MOST_CONSTANTS {
            pointers += 1;
            found.insert(buffer, ConstantPlace::Pointer);
        }
    }
    found
}

/// Does the device support blocks of such warps?
fn check(kernel: &Kernel, features: &Features) -> Result<(), Fault> {
    if !kernel.lanes.is_power_of_two() {
        return Err(Fault::unsupported(format!(
            "a warp of {} lanes; it has a power of two of them",
            kernel.lanes
        )));
    }
    let Some(threads) = features.links.threads_of(kernel.lanes) else {
        return Err(Fault::unsupported(format!(
            "a warp of {} lanes; no sub-group of this device has that number",
            kernel.lanes
        )));
    };
    if kernel.warps.saturating_mul(threads) > features.most_threads {
        return Err(Fault::unsupported(format!(
            "a block of {} warps of {threads} threads; this device has blocks of at most {} threads",
            kernel.warps, features.most_threads
        )));
    }
    Ok(())
}

fn has_doubles(program: &Program, kernel: &Kernel) -> bool {
    let is_double = |ty: Scalar| ty == Scalar::F64;
    program.buffers.iter().any(|b| is_double(b.ty))
        || kernel.values.iter().any(|v| is_double(v.ty))
        || kernel.shared.iter().any(|s| is_double(s.ty))
}

impl<'f> OpenCl<'f> {
    fn new(kernel: &Kernel, features: &'f Features) -> OpenCl<'f> {
        let usage = Usage::new(kernel);
        let (mut global, mut block_id) = (false, false);
        walk(&kernel.body, &mut |stmt| {
            let read = stmt.effects().reads();
            global |= matches!(read, Some(Memory::Global(_)))
                && read.is_some_and(|memory| usage.written.contains(&memory));
            block_id |= matches!(stmt, Stmt::DynamicBlock { .. });
        });
        OpenCl {
            features,
            global,
            block_id,
        }
    }

    fn threads(&self, lanes: u32) -> u32 {
        self.features.links.threads_of(lanes).unwrap_or(lanes)
    }
}

/// The type name of a vector's elements.
fn vector_element(ty: Scalar) -> Result<&'static str, Fault> {
    Ok(match ty {
        Scalar::I8 => "char",
        Scalar::I16 => "short",
        Scalar::I32 => "int",
        Scalar::I64 => "long",
        Scalar::U8 | Scalar::Bool => "uchar",
        Scalar::U16 => "ushort",
        Scalar::U32 => "uint",
        Scalar::U64 => "ulong",
        Scalar::F32 | Scalar::F64 | Scalar::F16 | Scalar::BF16 => c_type(ty)?,
    })
}

impl Language for OpenCl<'_> {
    const FILE: File = File::OpenCl;
    const GRID: Grid = Grid {
        column: "get_group_id(0)",
        row: "(unsigned)(get_group_id(1) + get_num_groups(1) * get_group_id(2))",
    };

    fn threads_of(&self, lanes: u32) -> u32 {
        self.threads(lanes)
    }

    fn lane(&self, lanes: u32) -> Expr {
        let (sub_group, group) = ("get_sub_group_local_id()", "get_local_id(0)");
        let all = Expr::atom(lanes.to_string());
        let own = match self.features.links {
            Links::Shuffles(_) if self.threads(lanes) > lanes => {
                Expr::binary("%", &Expr::atom(sub_group), &all)
            }
            Links::Shuffles(_) => Expr::atom(sub_group),
            Links::SharedMemory { .. } => Expr::binary("%", &Expr::atom(group), &all),
        };
        Expr::cast("index_t", &own)
    }

    fn warp(&self, lanes: u32) -> Expr {
        let own = match self.features.links {
            Links::Shuffles(_) => Expr::atom("get_sub_group_id()"),
            Links::SharedMemory { .. } => {
                let all = Expr::atom(lanes.to_string());
                Expr::binary("/", &Expr::atom("get_local_id(0)"), &all)
            }
        };
        Expr::cast("index_t", &own)
    }

    fn publishes(&self) -> Result<(), Fault> {
        if self.features.wide_atomics {
            return Ok(());
        }
        Err(Fault::unsupported(
            "blocks look back, and this device has no atomics on 64 bits",
        ))
    }

    fn thread_of_warp(&self, lanes: u32) -> String {
        match self.features.links {
            Links::Shuffles(_) => "get_sub_group_local_id()".to_string(),
            Links::SharedMemory { .. } => format!("get_local_id(0) % {lanes}"),
        }
    }

    fn sync_warp(&self) -> &'static str {
        match (&self.features.links, self.global) {
            (Links::Shuffles(_), false) => "sub_group_barrier(CLK_LOCAL_MEM_FENCE);",
            (Links::Shuffles(_), true) => {
                "sub_group_barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);"
            }
            (Links::SharedMemory { .. }, _) => self.barrier(),
        }
    }

    fn waits_must_be_reached(&self) -> bool {
        let waits_in_branches = false;
        self.features.links == Links::SharedMemory { waits_in_branches }
    }

    fn prefetch(&self, _: &mut Prelude, array: &str, offset: Expr, size: Expr, _: Cache) -> Expr {
        let index = |e: &Expr| Expr::cast("index_t", e);
        let one = Expr::atom("1");
        let last = Expr::binary("-", &size, &one);
        let inside = [index(&offset), index(&Expr::atom("0")), index(&last)];
        let place = Expr::binary("+", &Expr::atom(array), &Expr::call("clamp", &inside));
        Expr::call("prefetch", &[place, one])
    }

    fn barrier(&self) -> &'static str {
        if self.global {
            "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);"
        } else {
            "barrier(CLK_LOCAL_MEM_FENCE);"
        }
    }

    fn space(&self, space: Space) -> &'static str {
        match space {
            Space::Global => "__global ",
            Space::Constant => "__constant ",
            Space::Shared => "__local ",
        }
    }

    fn restrict(&self) -> &'static str {
        "restrict "
    }

    fn pack(&self, _: &mut Prelude, element: Scalar, n: u32) -> Result<String, Fault> {
        Ok(format!("{}{n}", vector_element(element)?))
    }

    fn pack_element(&self, _: Scalar, _: u32, name: &str, n: u32) -> Result<Expr, Fault> {
        Ok(Expr::atom(format!("{name}.s{n:x}")))
    }

    fn pack_of(&self, _: Scalar, pack: &str, elements: &[&str]) -> String {
        format!("({pack})({})", elements.join(", "))
    }

    fn mover(&self, prelude: &mut Prelude, ty: Scalar, by: Move, lanes: u32) -> Result<(), Fault> {
        if let Links::SharedMemory { .. } = self.features.links {
            return Err(Fault::unsupported("a shuffle; this device has none"));
        }
        let functions = self.features.functions;
        let indexed = match functions {
            Functions::Khronos { .. } => "sub_group_shuffle",
            Functions::Intel => "intel_sub_group_shuffle",
        };
        let carried = if ty.bits() < 32 { "int" } else { c_type(ty)? };
        let mask = (lanes - 1).to_string();
        let letters = [
            ('T', c_type(ty)?),
            ('N', ty.name()),
            ('C', carried),
            ('K', mask.as_str()),
        ];
        let with = |more: &[(char, &'static str)]| [&letters[..], more].concat();
        let lane = with(&[('G', indexed)]);
        let (relative, sign) = match by {
            Move::Lane => {
                prelude.add(&format!("lane_{ty}"), File::OpenCl, "shuffle", &lane);
                return Ok(());
            }
            Move::Up => ("sub_group_shuffle_up", "-"),
            Move::Down => ("sub_group_shuffle_down", "+"),
        };
        let full = format!("{}_{ty}", by.name());
        if functions == (Functions::Khronos { relative: true }) {
            let letters = with(&[('F', by.name()), ('G', relative)]);
            prelude.add(&full, File::OpenCl, "shuffle_relative", &letters);
        } else {
            prelude.add(&format!("lane_{ty}"), File::OpenCl, "shuffle", &lane);
            let letters = with(&[('F', by.name()), ('O', sign)]);
            prelude.add(&full, File::OpenCl, "shuffle_indexed", &letters);
        }
        Ok(())
    }

    fn flags(&self) -> Result<(), Fault> {
        if self.features.flags {
            return Ok(());
        }
        Err(Fault::unsupported(
            "blocks wait for each other, and this device has no atomics that acquire and release for all of them",
        ))
    }

    fn flag_letters(&self) -> Vec<(char, &'static str)> {
        vec![('M', self.sync_warp())]
    }

    fn flag_takes_condition(&self) -> bool {
        true
    }

    fn block_id_arguments(&self) -> Vec<Expr> {
        vec![Expr::unary("&", &Expr::atom("taken_block_id"))]
    }

    fn shared_array(&self, ty: &str, name: &str, count: i128) -> String {
        format!("__local {ty} {name}[{count}] __attribute__((aligned({SHARED_ALIGN})));")
    }

    fn dynamic_shared(&self) -> Dynamic {
        Dynamic {
            line: None,
            // Its elements are as large as the alignment of arrays.
            parameter: Some("__local uint4 *shared_memory"),
            bytes: "(__local uchar *)shared_memory",
        }
    }

    fn head(&self, _: &str, threads: u32, kernel: &Kernel) -> Vec<String> {
        let mut lines = vec![format!(
            "__kernel __attribute__((reqd_work_group_size({threads}, 1, 1)))"
        )];
        match self.features.links {
            Links::Shuffles(_) => lines.push(format!(
                "__attribute__((intel_reqd_sub_group_size({}))) void",
                self.threads(kernel.lanes)
            )),
            Links::SharedMemory { .. } => lines.push("void".to_string()),
        }
        lines
    }

    fn top(&self, _: &Kernel) -> Vec<String> {
        if self.block_id {
            vec!["__local int32_t taken_block_id;".to_string()]
        } else {
            Vec::new()
        }
    }
}
