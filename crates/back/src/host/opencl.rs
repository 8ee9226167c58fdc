//! A program in C for OpenCL: the text of the kernels as a string, and a `main` that has the device
//! compile it.

use std::collections::BTreeSet;

use systola_ir::kernel::Program;

use super::cuda::{host_names, results};
use super::{Api, CLOCK, Printer, Scope, c_string, grid, notes, print, shared_bytes};
use crate::artifact::{Argument, DeviceArtifact};
use crate::context::Context;
use crate::error::{Error, Fault};
use crate::expr::Lines;
use crate::opencl::{self, Features, Links};

/// How the program is compiled.
pub const COMPILE: &str = "cc -O2 x.c -o x -lOpenCL -lm";

/// Prints a verified program. `defaults`: values of the sizes where the user gives none.
pub fn program(
    program: &Program,
    features: &Features,
    defaults: &[Option<i128>],
) -> Result<String, Error> {
    let artifact = opencl::emit(program, features)?;
    let symbols = artifact.kernels.iter().map(|k| k.symbol.clone()).collect();
    let notes = notes::of_opencl_program(program, &artifact);
    let arguments = artifact.kernels.iter().flat_map(|k| &k.arguments);
    let values = arguments.filter_map(|argument| match argument {
        Argument::Value(b) => Some(b.index()),
        Argument::Buffer(_) | Argument::Size(_) | Argument::Host(_) | Argument::Shared => None,
    });
    let lanes = program.kernels.iter().map(|kernel| kernel.lanes);
    let api = OpenCl {
        artifact: &artifact,
        values: values.collect(),
        sub_groups: match features.links {
            Links::Shuffles(_) => lanes.filter_map(|n| features.links.threads_of(n)).collect(),
            Links::SharedMemory { .. } => BTreeSet::new(),
        },
    };
    let host = print(program, symbols, defaults, &api)?;
    let mut text = String::new();
    for line in artifact.source.lines() {
        text.push_str(&format!("    {}\n", c_string(&format!("{line}\n"))));
    }
    let text = text.trim_end();
    Ok(format!(
        "{notes}\n// The kernels, in OpenCL C.\nstatic const char kernel_text[] =\n{text};\n{host}"
    ))
}

struct OpenCl<'a> {
    artifact: &'a DeviceArtifact,
    /// Buffers that kernels take by value.
    values: BTreeSet<usize>,
    /// The sizes of sub-groups that kernels request.
    sub_groups: BTreeSet<u32>,
}

impl Api for OpenCl<'_> {
    fn parameter(&self, printer: &Printer<'_>, buffer: usize) -> Result<String, Fault> {
        let name = &printer.scope.buffers[buffer];
        Ok(if self.values.contains(&buffer) {
            format!("const struct array *{name}")
        } else {
            format!("cl_mem {name}")
        })
    }

    fn handed_over(&self, _: &Printer<'_>, buffer: usize) -> Result<String, Fault> {
        Ok(if self.values.contains(&buffer) {
            format!("&array_table[{buffer}]")
        } else {
            format!("memory[{buffer}]")
        })
    }

    fn launch(
        &self,
        scope: &Scope,
        cx: &mut Context<'_>,
        kernel: usize,
        lines: &mut Lines,
    ) -> Result<(), Fault> {
        let entry = &self.artifact.kernels[kernel];
        let host = host_names(cx);
        let (columns, rows) = grid(cx)?;
        lines.push(&format!("const int64_t columns = {};", columns.text));
        lines.push(&format!("const int64_t rows = {};", rows.text));
        lines.push("if (columns == 0 || rows == 0)");
        lines.push("    return;");
        for (n, argument) in entry.arguments.iter().enumerate() {
            let kernel = format!("kernels[{kernel}]");
            lines.push(&match argument {
                Argument::Buffer(b) => {
                    let name = &scope.buffers[b.index()];
                    format!("argument({kernel}, {n}, sizeof {name}, &{name});")
                }
                Argument::Value(b) => {
                    let name = &scope.buffers[b.index()];
                    format!("argument({kernel}, {n}, (size_t)array_bytes({name}), {name}->data);")
                }
                Argument::Size(p) => {
                    format!("index_argument({kernel}, {n}, {});", scope.params[*p])
                }
                Argument::Host(p) => format!("index_argument({kernel}, {n}, {});", host[*p]),
                Argument::Shared => {
                    let bytes = shared_bytes(cx, &entry.dynamic_shared, "shared_part")?;
                    format!("argument({kernel}, {n}, (size_t)({}), NULL);", bytes.text)
                }
            });
        }
        lines.push(&format!(
            "enqueue(kernels[{kernel}], \"{}\", columns, rows, {});",
            entry.symbol, entry.threads
        ));
        Ok(())
    }

    fn text(&self) -> String {
        let count = self.artifact.kernels.len().max(1);
        format!(
            "{CLOCK}\n{}\n// In the order of the text.\nstatic cl_kernel kernels[{count}];\n",
            include_str!("opencl.h")
        )
    }

    fn body_of_main(&self, printer: &Printer<'_>, run: &str, lines: &mut Lines) {
        lines.push("choose_device();");
        for size in &self.sub_groups {
            lines.push(&format!("need_sub_groups({size});"));
        }
        lines.push("cl_program program = build(kernel_text);");
        for (n, entry) in self.artifact.kernels.iter().enumerate() {
            lines.push(&format!(
                "kernels[{n}] = kernel_of(program, \"{}\");",
                entry.symbol
            ));
        }
        lines.push("make_arrays(array_table, ARRAYS, false);");
        lines.push("cl_mem memory[ARRAYS + 1];");
        lines.open("for (int a = 0; a < ARRAYS; a++)");
        lines.push("memory[a] = device_memory(&array_table[a]);");
        lines.push("if (array_table[a].role == ROLE_INPUT || array_table[a].role == ROLE_TABLE)");
        lines.push("    upload(memory[a], &array_table[a]);");
        lines.close();
        lines.push("// The first run is not counted.");
        lines.open("for (int64_t n = -1; n < times; n++)");
        lines.push("for (int a = 0; a < ARRAYS; a++)");
        lines.push(
            "    if (array_table[a].role == ROLE_OUTPUT || array_table[a].role == ROLE_FLAGS)",
        );
        lines.push("        upload(memory[a], &array_table[a]);");
        lines.push("CHECK(clFinish(queue));");
        lines.push("const double begin = seconds_now();");
        lines.append_deeper(run, 2);
        lines.push("CHECK(clFinish(queue));");
        lines.push("if (n >= 0)");
        lines.push("    seconds[n] = seconds_now() - begin;");
        lines.close();
        results(printer, lines);
    }
}
