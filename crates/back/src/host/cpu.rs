//! A program in C: kernels, and a `main` that runs their blocks on all threads where the compiler
//! knows OpenMP.

use systola_ir::kernel::{Program, VarKind};
use systola_ir::target::Simd;

use super::notes::waits;
use super::{Api, CLOCK, Printer, Scope, grid, notes, print, shared_bytes, stored};
use crate::artifact::Artifact;
use crate::context::Context;
use crate::cpu;
use crate::error::{Error, Fault};
use crate::expr::{Expr, Lines};
use crate::scalar::c_type;

/// How the program is compiled.
pub const COMPILE: &str = "cc -std=gnu11 -O3 -march=native -fwrapv -fno-math-errno -fno-trapping-math \
                           -ffp-contract=fast -fopenmp x.c -o x -lm";

/// Prints a verified program. `defaults`: values of the sizes where the user gives none.
pub fn program(program: &Program, simd: Simd, defaults: &[Option<i128>]) -> Result<String, Error> {
    let artifact = cpu::emit(program, simd)?;
    let symbols = artifact.kernels.iter().map(|k| k.symbol.clone()).collect();
    let notes = notes::of_c_program(program, &artifact);
    let host = print(program, symbols, defaults, &Cpu(&artifact))?;
    // Without -march vectors are passed in memory, which compilers say at every function.
    const QUIET: &str = "#pragma GCC diagnostic ignored \"-Wpsabi\"\n\n";
    let kernels = &artifact.source;
    Ok(format!("{notes}\n{QUIET}{kernels}{host}"))
}

struct Cpu<'a>(&'a Artifact);

impl Api for Cpu<'_> {
    fn handed_over(&self, printer: &Printer<'_>, buffer: usize) -> Result<String, Fault> {
        let ty = c_type(stored(printer.program.buffers[buffer].ty))?;
        Ok(format!("({ty} *)array_table[{buffer}].data"))
    }

    fn launch(
        &self,
        scope: &Scope,
        cx: &mut Context<'_>,
        kernel: usize,
        lines: &mut Lines,
    ) -> Result<(), Fault> {
        let list = |names: Vec<String>| match names.is_empty() {
            true => "0".to_string(),
            false => names.join(", "),
        };
        let host = cx.kernel.vars_where(|kind| matches!(kind, VarKind::Host));
        let args = host.map(|var| cx.dims[var.index()].name.clone()).collect();
        let (columns, rows) = grid(cx)?;
        let entry = &self.0.kernels[kernel];
        let bytes = shared_bytes(cx, &entry.shared, "scratch_of")?;
        let one_by_one = waits(cx.kernel);
        let (sizes, args) = (list(scope.params.clone()), list(args));
        lines.push(&format!("const int64_t sizes[] = {{{sizes}}};"));
        lines.push(&format!("const int64_t args[] = {{{args}}};"));
        let buffers = list(scope.buffers.clone());
        lines.push(&format!("void *const buffers[] = {{{buffers}}};"));
        let blocks = Expr::binary("*", &columns, &rows);
        lines.push(&format!("const int64_t blocks = {};", blocks.text));
        lines.push(&format!("const int64_t scratch_bytes = {};", bytes.text));
        let symbol = &entry.symbol;
        lines.push(&format!(
            "launch({symbol}, sizes, args, buffers, blocks, scratch_bytes, {one_by_one});"
        ));
        Ok(())
    }

    fn text(&self) -> String {
        format!("{CLOCK}\n{}", include_str!("cpu.h"))
    }

    fn body_of_main(&self, printer: &Printer<'_>, run: &str, lines: &mut Lines) {
        lines.push("make_arrays(array_table, ARRAYS, true);");
        lines.push("// The first run is not counted.");
        lines.open("for (int64_t n = -1; n < times; n++)");
        lines.push("for (int a = 0; a < ARRAYS; a++)");
        lines.push(
            "    if (array_table[a].role == ROLE_OUTPUT || array_table[a].role == ROLE_FLAGS)",
        );
        lines.push("        set_initial(&array_table[a]);");
        lines.push("const double begin = seconds_now();");
        lines.append_deeper(run, 2);
        lines.push("if (n >= 0)");
        lines.push("    seconds[n] = seconds_now() - begin;");
        lines.close();
        if let Some(at) = printer.faults() {
            lines.push(&format!(
                "check_faults((const int32_t *)array_table[{at}].data, sites, size_table, SIZES);"
            ));
        }
    }
}
