//! The function around the body of a kernel: declarations of everything the body mentions, and a
//! loop over the blocks.

use systola_ir::kernel::{BufferKind, Memory, VarKind};
use systola_ir::{BufferId, DimId, SharedId};

use super::{Cpu, PASSED_ON};
use crate::context::Context;
use crate::error::Fault;
use crate::expr::{Expr, Level, Lines};
use crate::index::{Sum, number};
use crate::prelude::File;
use crate::scalar::c_type;

const APART: &str = "#define APART static __attribute__((noinline))";

/// The function of one block at the edge.
pub struct EdgeFunction {
    pub declaration: String,
    pub definition: String,
    /// The coordinates that it takes as parameters.
    pub coordinates: Vec<DimId>,
}

impl Cpu {
    /// The function around a printed body, with declarations of everything that the body mentions.
    /// `passed_on`: whether the body passes its parameters on to another function.
    pub(super) fn function(
        &self,
        cx: &mut Context<'_>,
        symbol: &str,
        passed_on: bool,
    ) -> Result<String, Fault> {
        let body = std::mem::take(&mut cx.lines).finish();
        let blocks = self.block_coordinates(cx)?;
        let end_of_streams = self.end_of_streams(cx);
        let mut lines = Lines::default();
        lines.append(&head("void", symbol, "int64_t first, int64_t last"));
        lines.append("{\n");
        let mut top = self.declarations(cx, &blocks.bounds, passed_on)?;
        for line in &blocks.coordinates {
            top.push(line);
        }
        self.declare_deferred(cx, &mut top)?;
        blocks.around(cx, &mut top, &body);
        self.end_of_deferred(cx, &mut top)?;
        if let Some(line) = &end_of_streams {
            top.push(line);
        }
        lines.append(&top.finish());
        lines.append("}\n");
        Ok(lines.finish())
    }

    /// The function of one block at the edge.
    pub(super) fn edge_function(
        &self,
        cx: &mut Context<'_>,
        symbol: &str,
    ) -> Result<EdgeFunction, Fault> {
        let body = std::mem::take(&mut cx.lines).finish();
        let coordinates: Vec<DimId> = cx
            .kernel
            .vars_where(|k| matches!(k, VarKind::Block { .. }))
            .filter(|var| cx.dims[var.index()].used)
            .collect();
        let named: Vec<String> = coordinates
            .iter()
            .map(|var| format!("int64_t {}", cx.dims[var.index()].name))
            .collect();
        cx.prelude.add_type("APART", || APART.to_string());
        let head = head("APART void", symbol, &named.join(", "));
        let mut lines = Lines::default();
        lines.append(&head);
        lines.append("{\n");
        lines.append(&self.declarations(cx, &[], false)?.finish());
        lines.append(&body);
        lines.append("}\n");
        Ok(EdgeFunction {
            declaration: format!("{};\n", head.trim_end()),
            definition: lines.finish(),
            coordinates,
        })
    }

    /// Declares everything that a body mentions.
    fn declarations(
        &self,
        cx: &mut Context<'_>,
        bounds: &[String],
        passed_on: bool,
    ) -> Result<Lines, Fault> {
        let shared = self.shared_arrays(cx)?;
        let mut top = Lines::at_depth(1);
        let mut unused = PASSED_ON.to_vec();
        if passed_on {
            unused.clear();
        }
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
        for line in bounds {
            top.push(line);
        }
        for name in unused {
            top.push(&format!("(void){name};"));
        }
        if !top.is_empty() {
            top.push("");
        }
        Ok(top)
    }

    fn buffer(&self, cx: &Context<'_>, id: BufferId) -> Result<String, Fault> {
        let buffer = &cx.program.buffers[id.index()];
        let name = &cx.buffers[id.index()].name;
        let ty = c_type(Self::memory_type(cx, Memory::Global(id)))?;
        let written = cx.usage.written.contains(&Memory::Global(id));
        // Data that other threads write while this one runs must be read again after it has waited
        // for a flag.
        let is_input = match buffer.kind {
            BufferKind::Input { .. } => true,
            BufferKind::Output { .. }
            | BufferKind::Temporary
            | BufferKind::Flags
            | BufferKind::Faults { .. } => false,
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

    /// The pointers into the scratch memory. Arrays that are not mentioned still occupy their
    /// space.
    fn shared_arrays(&self, cx: &mut Context<'_>) -> Result<Vec<String>, Fault> {
        let Some(last) = cx.shared.iter().rposition(|s| s.used) else {
            return Ok(Vec::new());
        };
        let mut lines = Vec::new();
        // The offset of the next array in bytes: the constant part, and the terms that depend on
        // sizes.
        let mut known = 0i128;
        let mut symbolic: Vec<Expr> = Vec::new();
        for n in 0..=last {
            let memory = Memory::Shared(SharedId::from(n));
            let ty = Self::memory_type(cx, memory);
            if cx.shared[n].used {
                let scratch = Expr::atom("scratch");
                let mut start = Sum::default();
                start.add(1, &Expr::cast("char *", &scratch))?;
                for bytes in &symbolic {
                    start.add(1, bytes)?;
                }
                start.add_number(known)?;
                let start = if symbolic.is_empty() && known == 0 {
                    scratch
                } else {
                    Expr::cast("void *", &start.finish())
                };
                let (c, name) = (c_type(ty)?, &cx.shared[n].name);
                lines.push(format!("{c} *restrict {name} = {};", start.text));
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
                    symbolic.push(Expr::call("shared_bytes", &[bytes]));
                }
            }
        }
        Ok(lines)
    }

    /// Computes the coordinates of the first block from its number by division, and those of the
    /// others by counting, since a division takes as long as the work of a small block.
    fn block_coordinates(&self, cx: &mut Context<'_>) -> Result<Blocks, Fault> {
        let mut blocks = Blocks::default();
        let vars: Vec<DimId> = cx
            .kernel
            .vars_where(|k| matches!(k, VarKind::Block { .. }))
            .collect();
        // The block number without the coordinates that have been split off.
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
                if e.level() == Level::Primary {
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
            if n > 0 {
                let hi = cx.extremum(hi, false)?;
                let hi = named(cx, "end", hi);
                let extent = if lo.text == "0" {
                    hi.clone()
                } else {
                    Expr::binary("-", &hi, &lo)
                };
                let extent = named(cx, "extent", extent);
                // An empty grid has no blocks, but the function may still be called with an empty
                // range.
                let some = Expr::binary(">", &extent, &number(0)?);
                let divisor = Expr::ternary(&some, &extent, &number(1)?);
                own = Expr::binary("%", &rest, &divisor);
                rest = Expr::binary("/", &rest, &divisor);
                end = Some(hi);
            }
            let value = if lo.text == "0" {
                own
            } else {
                Expr::binary("+", &lo, &own)
            };
            blocks
                .coordinates
                .insert(0, format!("int64_t {name} = {};", value.text));
            blocks.steps.push(Step { name, lo, end });
        }
        Ok(blocks)
    }
}

/// Declarations of block coordinates.
#[derive(Default)]
struct Blocks {
    /// Printed before the loop over blocks.
    bounds: Vec<String>,
    /// The coordinates of the first block.
    coordinates: Vec<String>,
    /// In order, the fastest coordinate first.
    steps: Vec<Step>,
}

/// How a coordinate advances from one block to the next.
struct Step {
    name: String,
    lo: Expr,
    /// Where it starts again and the next coordinate advances; `None` for the slowest one.
    end: Option<Expr>,
}

impl Blocks {
    /// The loop over the blocks. The fastest coordinate has its own loop, in which the others are
    /// constant: compilers then know the distance between the addresses of consecutive blocks.
    fn around(&self, cx: &mut Context<'_>, lines: &mut Lines, body: &str) {
        let Some(Step {
            name,
            lo,
            end: Some(end),
        }) = self.steps.first()
        else {
            lines.open("for (int64_t block = first; block < last; block++)");
            lines.append_deeper(body, 2);
            self.step(lines, 0);
            lines.close();
            return;
        };
        let stop = cx.names.claim(&format!("{name}_stop"));
        lines.open("for (int64_t block = first; block < last;)");
        let (here, until) = (Expr::atom(name), Expr::atom(&stop));
        let left = Expr::binary("-", &Expr::atom("last"), &Expr::atom("block"));
        let ends = Expr::binary("<", &Expr::binary("-", end, &here), &left);
        let first = Expr::ternary(&ends, end, &Expr::binary("+", &here, &left));
        lines.push(&format!("const int64_t {stop} = {};", first.text));
        let done = Expr::binary("-", &until, &here);
        lines.push(&format!("block += {};", done.text));
        let more = Expr::binary("<", &here, &until);
        lines.open(&format!("for (; {}; {name}++)", more.text));
        lines.append_deeper(body, 3);
        lines.close();
        lines.push(&format!("{name} = {};", lo.text));
        self.step(lines, 1);
        lines.close();
    }

    /// Advances the coordinates to the next block, except the `skipped` fastest ones.
    fn step(&self, lines: &mut Lines, skipped: usize) {
        let mut depth = 0;
        for Step { name, lo, end } in self.steps.iter().skip(skipped) {
            match end {
                Some(end) => {
                    let next = Expr::unary("++", &Expr::atom(name));
                    let ends = Expr::binary("==", &next, end);
                    lines.open(&format!("if ({})", ends.text));
                    lines.push(&format!("{name} = {};", lo.text));
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

/// The first lines of a function; its own parameters come after those that all functions have.
fn head(kind: &str, symbol: &str, own: &str) -> String {
    let all = format!(
        "{kind} {symbol}(const int64_t *sizes, const int64_t *args, void *const *buffers, void *scratch"
    );
    if own.is_empty() {
        return format!("{all})\n");
    }
    let indent = " ".repeat(kind.len() + symbol.len() + 2);
    format!("{all},\n{indent}{own})\n")
}
