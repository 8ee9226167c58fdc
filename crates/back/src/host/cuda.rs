//! A program in CUDA C++: kernels, and a `main` on the runtime library of CUDA.

use systola_ir::kernel::{BufferKind, Program};

use super::{Api, Printer, Scope, grid, notes, print, shared_bytes, stored};
use crate::artifact::{Argument, DeviceArtifact};
use crate::context::Context;
use crate::cuda;
use crate::error::{Error, Fault};
use crate::expr::Lines;
use crate::scalar::c_type;

/// How the program is compiled.
pub const COMPILE: &str = "nvcc -O3 -arch=native x.cu -o x";

/// Prints a verified program. `defaults`: values of the sizes where the user gives none.
pub fn program(program: &Program, defaults: &[Option<i128>]) -> Result<String, Error> {
    let artifact = cuda::emit(program)?;
    let symbols = artifact.kernels.iter().map(|k| k.symbol.clone()).collect();
    let notes = notes::of_cuda_program(program, &artifact);
    let host = print(program, symbols, defaults, &Cuda(&artifact))?;
    Ok(format!("{notes}\n{}{host}", artifact.source))
}

struct Cuda<'a>(&'a DeviceArtifact);

impl Api for Cuda<'_> {
    fn handed_over(&self, printer: &Printer<'_>, buffer: usize) -> Result<String, Fault> {
        let ty = c_type(stored(printer.program.buffers[buffer].ty))?;
        Ok(format!("({ty} *)memory[{buffer}]"))
    }

    fn launch(
        &self,
        scope: &Scope,
        cx: &mut Context<'_>,
        kernel: usize,
        lines: &mut Lines,
    ) -> Result<(), Fault> {
        let entry = &self.0.kernels[kernel];
        let symbol = &entry.symbol;
        let host = host_names(cx);
        let (columns, rows) = grid(cx)?;
        lines.push(&format!("const int64_t columns = {};", columns.text));
        lines.push(&format!("const int64_t rows = {};", rows.text));
        lines.push("if (columns == 0 || rows == 0)");
        lines.push("    return;");
        let mut shared = "0".to_string();
        if !entry.dynamic_shared.is_empty() {
            let bytes = shared_bytes(cx, &entry.dynamic_shared, "shared_part")?;
            lines.push(&format!(
                "const unsigned shared = shared_of((const void *){symbol}, {}, \"{symbol}\");",
                bytes.text
            ));
            shared = "shared".to_string();
        }
        let mut arguments = Vec::new();
        for argument in &entry.arguments {
            arguments.push(match argument {
                Argument::Buffer(b) | Argument::Value(b) => scope.buffers[b.index()].clone(),
                Argument::Size(n) => format!("(index_t){}", scope.params[*n]),
                Argument::Host(n) => format!("(index_t){}", host[*n]),
                Argument::Shared => unreachable!("shared memory is no argument in CUDA C++"),
            });
        }
        lines.push(&format!(
            "const dim3 grid = grid_of(columns, rows, \"{symbol}\");"
        ));
        lines.push(&format!(
            "{symbol}<<<grid, {}, {shared}>>>({});",
            entry.threads,
            arguments.join(", ")
        ));
        lines.push("CHECK(cudaGetLastError());");
        Ok(())
    }

    fn text(&self) -> String {
        include_str!("cuda.h").to_string()
    }

    fn body_of_main(&self, printer: &Printer<'_>, run: &str, lines: &mut Lines) {
        lines.push("choose_device();");
        lines.push("make_arrays(array_table, ARRAYS, false);");
        lines.push("void *memory[ARRAYS + 1];");
        lines.open("for (int a = 0; a < ARRAYS; a++)");
        lines.push("memory[a] = device_memory(&array_table[a]);");
        lines.push("if (array_table[a].role == ROLE_INPUT || array_table[a].role == ROLE_TABLE)");
        lines.push("    upload(memory[a], &array_table[a]);");
        lines.close();
        for constant in &self.0.constants {
            let (symbol, at) = (&constant.symbol, constant.buffer.index());
            lines.push(&format!(
                "CHECK(cudaMemcpyToSymbol({symbol}, array_table[{at}].data, sizeof {symbol}));"
            ));
        }
        lines.push("cudaEvent_t begin, end;");
        lines.push("CHECK(cudaEventCreate(&begin));");
        lines.push("CHECK(cudaEventCreate(&end));");
        lines.push("// The first run is not counted.");
        lines.open("for (int64_t n = -1; n < times; n++)");
        lines.push("for (int a = 0; a < ARRAYS; a++)");
        lines.push(
            "    if (array_table[a].role == ROLE_OUTPUT || array_table[a].role == ROLE_FLAGS)",
        );
        lines.push("        upload(memory[a], &array_table[a]);");
        lines.push("CHECK(cudaEventRecord(begin, 0));");
        lines.append_deeper(run, 2);
        lines.push("CHECK(cudaEventRecord(end, 0));");
        lines.push("CHECK(cudaEventSynchronize(end));");
        lines.push("float milliseconds;");
        lines.push("CHECK(cudaEventElapsedTime(&milliseconds, begin, end));");
        lines.push("if (n >= 0)");
        lines.push("    seconds[n] = milliseconds / 1e3;");
        lines.close();
        results(printer, lines);
    }
}

/// The names of the arguments that the host hands to a kernel.
pub(super) fn host_names(cx: &Context<'_>) -> Vec<String> {
    let host = (cx.kernel).vars_where(|kind| matches!(kind, systola_ir::kernel::VarKind::Host));
    host.map(|var| cx.dims[var.index()].name.clone()).collect()
}

/// Downloads what a run made. Faults come first, since outputs mean nothing then.
pub(super) fn results(printer: &Printer<'_>, lines: &mut Lines) {
    if let Some(at) = printer.faults() {
        lines.push(&format!("download(&array_table[{at}], memory[{at}]);"));
        lines.push(&format!(
            "check_faults((const int32_t *)array_table[{at}].data, sites, size_table, SIZES);"
        ));
    }
    for (n, buffer) in printer.program.buffers.iter().enumerate() {
        if let BufferKind::Output { .. } = buffer.kind {
            lines.push(&format!("download(&array_table[{n}], memory[{n}]);"));
        }
    }
}
