//! Compiles printed code together with a `main` and runs it.
//!
//! Every buffer is placed so that it ends at the end of a page, or begins at the beginning of one,
//! between pages that cannot be accessed.

use super::folded;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use systola_back::{Artifact, cpu};
use systola_interp::value::Value;
use systola_ir::Scalar;
use systola_ir::kernel::Program;
use systola_ir::target::Simd;

/// One call of a kernel.
pub struct Call {
    pub kernel: usize,
    pub args: Vec<i64>,
    pub blocks: i64,
    /// Two threads run at the same time; otherwise, the ranges of blocks run one after the other.
    pub at_once: bool,
}

impl Call {
    pub fn of(kernel: usize, blocks: i64) -> Call {
        Call {
            kernel,
            args: Vec::new(),
            blocks,
            at_once: false,
        }
    }
}

/// The compilers available on this machine.
pub fn compilers() -> Vec<&'static str> {
    ["gcc", "clang"]
        .into_iter()
        .filter(|cc| {
            Command::new(cc)
                .arg("--version")
                .output()
                .is_ok_and(|out| out.status.success())
        })
        .collect()
}

/// The level of optimisation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// As the flags say.
    Full,
    /// Little optimisation, for large sources; none by clang, which is quicker so.
    Little,
}

/// Prints, compiles and runs a program: with the first compiler for this machine, with the last one
/// for any machine. Both must leave the same bytes in the buffers, which are returned.
pub fn run(program: &Program, sizes: &[i64], buffers: &[Vec<u8>], calls: &[Call]) -> Vec<Vec<u8>> {
    run_with_effort(program, sizes, buffers, calls, Effort::Full)
}

pub fn run_with_effort(
    program: &Program,
    sizes: &[i64],
    buffers: &[Vec<u8>],
    calls: &[Call],
    effort: Effort,
) -> Vec<Vec<u8>> {
    let [native, portable] = run_twice(program, sizes, buffers, calls, effort);
    for (n, (a, b)) in native.iter().zip(&portable).enumerate() {
        assert_eq!(a, b, "the compilers differ in buffer {n}");
    }
    native
}

/// The same for results whose last bits may differ, since one machine fuses products with sums.
pub fn run_twice(
    program: &Program,
    sizes: &[i64],
    buffers: &[Vec<u8>],
    calls: &[Call],
    effort: Effort,
) -> [Vec<Vec<u8>>; 2] {
    let artifact = cpu::emit(&folded(program), Simd::Avx512).unwrap_or_else(|e| panic!("{e}"));
    let compilers = compilers();
    let (Some(first), Some(last)) = (compilers.first(), compilers.last()) else {
        panic!("no C compiler on this machine");
    };
    let native = run_with(
        first,
        Simd::Avx512,
        effort,
        &artifact,
        sizes,
        buffers,
        calls,
    );
    let portable = run_with(
        last,
        Simd::Portable,
        Effort::Little,
        &artifact,
        sizes,
        buffers,
        calls,
    );
    [native, portable]
}

/// Runs with one compiler for one machine. The buffers are placed both ways.
pub fn run_with(
    cc: &str,
    simd: Simd,
    effort: Effort,
    artifact: &Artifact,
    sizes: &[i64],
    buffers: &[Vec<u8>],
    calls: &[Call],
) -> Vec<Vec<u8>> {
    let folder = Folder::new();
    let source = folder.path("kernel.c");
    std::fs::write(&source, &artifact.source).unwrap();
    std::fs::write(
        folder.path("main.c"),
        main_c(artifact, sizes, buffers, calls),
    )
    .unwrap();
    std::fs::write(folder.path("in"), buffers.concat()).unwrap();
    let mut command = Command::new(cc);
    let flags = flags(simd);
    let little = if cc == "clang" { "-O0" } else { "-O1" };
    command
        .args(flags.iter().filter(|f| **f != "-shared" && **f != "-fPIC"))
        .args((effort == Effort::Little).then_some(little))
        .args(["-Wall", "-Wextra", "-Werror", "-Wno-psabi", "-pthread"])
        .arg(&source)
        .arg(folder.path("main.c"))
        .arg("-o")
        .arg(folder.path("main"))
        .arg("-lm");
    let out = command.output().unwrap();
    assert!(
        out.status.success(),
        "{cc} for {}:\n{}\n{}",
        simd.name(),
        String::from_utf8_lossy(&out.stderr),
        artifact.source
    );
    let mut result: Option<Vec<u8>> = None;
    for place in ["end", "begin"] {
        let out = Command::new(folder.path("main"))
            .arg(folder.path("in"))
            .arg(folder.path("out"))
            .arg(place)
            .output()
            .unwrap();
        assert!(
            out.status.success(),
            "{cc} for {}, buffers at the {place} of a page: {}\n{}",
            simd.name(),
            out.status,
            artifact.source
        );
        let after = std::fs::read(folder.path("out")).unwrap();
        match &result {
            None => result = Some(after),
            Some(before) => assert_eq!(before, &after, "the place matters: {cc} {}", simd.name()),
        }
    }
    let mut rest = result.unwrap();
    let mut split = Vec::new();
    for buffer in buffers {
        let next = rest.split_off(buffer.len());
        split.push(rest);
        rest = next;
    }
    split
}

fn main_c(artifact: &Artifact, sizes: &[i64], buffers: &[Vec<u8>], calls: &[Call]) -> String {
    let sizes_wide: Vec<i128> = sizes.iter().map(|s| i128::from(*s)).collect();
    let scratch = artifact
        .kernels
        .iter()
        .map(|k| k.scratch_bytes(&sizes_wide).unwrap());
    let scratch = scratch.max().unwrap_or(0);
    let numbers = |list: &[i64]| {
        let mut text: Vec<String> = list.iter().map(|n| format!("INT64_C({n})")).collect();
        text.push("0".to_string());
        text.join(", ")
    };
    let bytes: Vec<i64> = buffers.iter().map(|b| b.len() as i64).collect();
    let mut declarations = String::new();
    for kernel in &artifact.kernels {
        writeln!(
            declarations,
            "void {}(const int64_t *, const int64_t *, void *const *, void *, int64_t, int64_t);",
            kernel.symbol
        )
        .unwrap();
    }
    let mut steps = String::new();
    for call in calls {
        let symbol = &artifact.kernels[call.kernel].symbol;
        // Two ranges: a block must not depend on where its range begins.
        let middle = call.blocks / 2;
        writeln!(
            steps,
            "    run({symbol}, (int64_t[]){{{}}}, {middle}, {}, {});",
            numbers(&call.args),
            call.blocks,
            i32::from(call.at_once)
        )
        .unwrap();
    }
    MAIN.replace("DECLARATIONS", &declarations)
        .replace("SIZES", &numbers(sizes))
        .replace("BYTES", &numbers(&bytes))
        .replace("N_BUFFERS", &buffers.len().to_string())
        .replace("SCRATCH", &scratch.to_string())
        .replace("STEPS", &steps)
}

const MAIN: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

DECLARATIONS

/// Memory between pages that cannot be accessed.
static void *guarded(int64_t bytes, int at_end)
{
    const int64_t page = 4096, inner = (bytes + page - 1) / page * page;
    char *p = mmap(0, inner + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        exit(3);
    if (inner > 0 && mprotect(p + page, inner, PROT_READ | PROT_WRITE) != 0)
        exit(4);
    return at_end ? p + page + inner - bytes : p + page;
}

typedef void kernel(const int64_t *, const int64_t *, void *const *, void *, int64_t, int64_t);

static const int64_t sizes[] = {SIZES};
static void *buffers[N_BUFFERS + 1];
static void *scratch[2];

struct range {
    kernel *k;
    const int64_t *args;
    int64_t first, last;
    int thread;
};

static void *run_range(void *p)
{
    struct range *r = p;
    r->k(sizes, r->args, buffers, scratch[r->thread], r->first, r->last);
    return 0;
}

static void run(kernel *k, const int64_t *args, int64_t middle, int64_t last, int at_once)
{
    struct range ranges[] = {{k, args, 0, middle, 0}, {k, args, middle, last, 1}};
    pthread_t other;
    if (at_once && pthread_create(&other, 0, run_range, &ranges[1]) != 0)
        exit(7);
    run_range(&ranges[0]);
    if (at_once)
        pthread_join(other, 0);
    else
        run_range(&ranges[1]);
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    const int at_end = strcmp(argv[3], "end") == 0;
    const int64_t bytes[] = {BYTES};
    FILE *in = fopen(argv[1], "rb");
    for (int n = 0; n < N_BUFFERS; n++) {
        buffers[n] = bytes[n] ? guarded(bytes[n], at_end) : 0;
        if (bytes[n] && fread(buffers[n], 1, bytes[n], in) != (size_t)bytes[n])
            return 5;
    }
    fclose(in);
    for (int n = 0; n < 2; n++)
        scratch[n] = SCRATCH ? guarded(SCRATCH, at_end) : 0;
STEPS
    FILE *out = fopen(argv[2], "wb");
    for (int n = 0; n < N_BUFFERS; n++)
        if (bytes[n] && fwrite(buffers[n], 1, bytes[n], out) != (size_t)bytes[n])
            return 6;
    return fclose(out);
}
"#;

/// A folder that is removed when it is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("systola-back-{}-{n}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Values as they are stored in memory.
pub fn to_bytes(values: &[Value]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for value in values {
        match value {
            Value::Bool(x) => bytes.push(u8::from(*x)),
            Value::I8(x) => bytes.extend(x.to_le_bytes()),
            Value::I16(x) => bytes.extend(x.to_le_bytes()),
            Value::I32(x) => bytes.extend(x.to_le_bytes()),
            Value::I64(x) => bytes.extend(x.to_le_bytes()),
            Value::U8(x) => bytes.extend(x.to_le_bytes()),
            Value::U16(x) => bytes.extend(x.to_le_bytes()),
            Value::U32(x) => bytes.extend(x.to_le_bytes()),
            Value::U64(x) => bytes.extend(x.to_le_bytes()),
            Value::F32(x) => bytes.extend(x.to_le_bytes()),
            Value::F64(x) => bytes.extend(x.to_le_bytes()),
            Value::F16(_) | Value::BF16(_) | Value::Tuple(_) => panic!("no such element"),
        }
    }
    bytes
}

pub fn from_bytes(ty: Scalar, bytes: &[u8]) -> Vec<Value> {
    bytes
        .chunks(ty.bits() as usize / 8)
        .map(|b| match ty {
            Scalar::Bool => {
                assert!(b[0] < 2, "a bool is 0 or 1 in memory");
                Value::Bool(b[0] == 1)
            }
            Scalar::I8 => Value::I8(b[0] as i8),
            Scalar::U8 => Value::U8(b[0]),
            Scalar::I16 => Value::I16(i16::from_le_bytes(b.try_into().unwrap())),
            Scalar::U16 => Value::U16(u16::from_le_bytes(b.try_into().unwrap())),
            Scalar::I32 => Value::I32(i32::from_le_bytes(b.try_into().unwrap())),
            Scalar::U32 => Value::U32(u32::from_le_bytes(b.try_into().unwrap())),
            Scalar::I64 => Value::I64(i64::from_le_bytes(b.try_into().unwrap())),
            Scalar::U64 => Value::U64(u64::from_le_bytes(b.try_into().unwrap())),
            Scalar::F32 => Value::F32(f32::from_le_bytes(b.try_into().unwrap())),
            Scalar::F64 => Value::F64(f64::from_le_bytes(b.try_into().unwrap())),
            Scalar::F16 | Scalar::BF16 => panic!("no such element"),
        })
        .collect()
}

pub fn f32s(bytes: &[u8]) -> Vec<f32> {
    bytes
        .chunks(4)
        .map(|b| f32::from_le_bytes(b.try_into().unwrap()))
        .collect()
}

pub fn i32s(bytes: &[u8]) -> Vec<i32> {
    bytes
        .chunks(4)
        .map(|b| i32::from_le_bytes(b.try_into().unwrap()))
        .collect()
}

pub fn bytes_f32(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|x| x.to_le_bytes()).collect()
}

pub fn bytes_i32(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|x| x.to_le_bytes()).collect()
}

/// Arguments that compile the source to a shared library for this machine.
fn flags(simd: Simd) -> Vec<&'static str> {
    let mut flags = cpu::FLAGS.to_vec();
    flags.extend(["-fPIC", "-shared"]);
    match simd {
        Simd::Portable => {}
        Simd::Avx512 => flags.extend(["-march=native", "-mprefer-vector-width=512"]),
        Simd::Avx2 | Simd::Sse | Simd::Neon => flags.push("-march=native"),
    }
    flags
}
