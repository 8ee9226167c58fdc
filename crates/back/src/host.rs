//! What is around kernels, for people who take the code away: how each kernel is launched, as a
//! comment ([`notes`]), and a whole program with a `main` that compilers of everybody's machine
//! take ([`cpu`], [`cuda`], [`opencl`]).
//!
//! Everything is printed from the [`Program`], as the runtime executes it: sizes and their
//! conditions, arrays with their extents, host loops, grids, what is zero or filled before. What
//! does not depend on the program lies in `host/*.h` as plain text. Formulas of sizes are printed
//! by the functions that print those of kernels.

pub mod cpu;
pub mod cuda;
pub mod notes;
pub mod opencl;

use systola_ir::form::{Form, Poly};
use systola_ir::kernel::magnitude::magnitude;
use systola_ir::kernel::{BufferKind, Hints, Host, Kernel, Program, Var, VarKind};
use systola_ir::{Literal, Scalar};

use crate::artifact::SharedArray;
use crate::context::{Context, Index};
use crate::error::{Error, Fault};
use crate::expr::{Expr, Lines};
use crate::index::number;
use crate::names::Names;
use crate::prelude::{File, Prelude};
use crate::scalar::{c_type, literal};

/// The arithmetic on sizes, with functions that no kernel has.
static INDEX: Index = Index {
    ty: "int64_t",
    suffix: "host",
    file: File::Host,
    floordiv: "floordiv_host",
    modulo: "mod_host",
    minus: None,
};

const PROGRAM: &str = include_str!("host/program.h");
const CLOCK: &str = include_str!("host/clock.h");
const FAULTS: &str = include_str!("host/faults.h");

/// Of a line of comment.
const COMMENT_WIDTH: usize = 97;

/// What the functions that are printed here mention beside sizes, arrays and kernels.
const OWN_NAMES: &[&str] = &[
    "array_table",
    "size_table",
    "extent",
    "magnitude",
    "largest",
    "most_index",
    "fail",
    "run",
    "launch",
    "columns",
    "rows",
    "blocks",
    "grid",
    "grid_of",
    "shared",
    "shared_of",
    "shared_part",
    "scratch_of",
    "scratch_bytes",
    "kernels",
    "enqueue",
    "argument",
    "index_argument",
    "check",
    "CHECK",
    "dim3",
    "cl_mem",
    "cl_kernel",
    "cudaGetLastError",
    "min_host",
    "max_host",
    "floordiv_host",
    "mod_host",
    "main",
    "times",
    "device",
    "array_bytes",
];

/// Macros of the headers that programs include, which no variable may be called. Those of errno.h
/// are `E`, then capitals and digits.
const MACROS: &[&str] = &[
    "BUFSIZ",
    "CLOCKS_PER_SEC",
    "EOF",
    "EXIT_FAILURE",
    "EXIT_SUCCESS",
    "FILENAME_MAX",
    "FOPEN_MAX",
    "L_tmpnam",
    "MB_CUR_MAX",
    "PTRDIFF_MAX",
    "RAND_MAX",
    "SEEK_CUR",
    "SEEK_END",
    "SEEK_SET",
    "SIZE_MAX",
    "TIME_UTC",
    "TMP_MAX",
];

/// May errno.h define a macro of this name?
fn is_errno(name: &str) -> bool {
    let rest = name.strip_prefix('E');
    rest.is_some_and(|rest| {
        !rest.is_empty()
            && rest
                .chars()
                .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit())
    })
}

/// What differs between targets.
trait Api {
    /// The type and the name of an array, as launches take it.
    fn parameter(&self, printer: &Printer<'_>, buffer: usize) -> Result<String, Fault> {
        let ty = c_type(stored(printer.program.buffers[buffer].ty))?;
        Ok(format!("{ty} *{}", printer.scope.buffers[buffer]))
    }

    /// The same as `main` has it.
    fn handed_over(&self, printer: &Printer<'_>, buffer: usize) -> Result<String, Fault>;

    /// The lines that launch a kernel, in a function that has sizes, arrays and the variables of
    /// the host.
    fn launch(
        &self,
        printer: &Scope,
        cx: &mut Context<'_>,
        kernel: usize,
        lines: &mut Lines,
    ) -> Result<(), Fault>;

    /// Between the common part and the functions of this program.
    fn text(&self) -> String;

    /// Lines of `main` after the sizes were read; `run` is the call of one run.
    fn body_of_main(&self, printer: &Printer<'_>, run: &str, lines: &mut Lines);
}

/// Names that all functions of a program share.
struct Scope {
    params: Vec<String>,
    buffers: Vec<String>,
    symbols: Vec<String>,
    names: Names,
}

struct Printer<'a> {
    program: &'a Program,
    /// A kernel without a body whose variables are those of the host.
    host: Kernel,
    scope: Scope,
    /// What the arrays are called by the user.
    words: Vec<String>,
    /// Values of sizes where the user gives none.
    defaults: &'a [Option<i128>],
    prelude: Prelude,
}

/// The part of a text that is the same on all targets but for launches: everything from the common
/// functions to the end.
fn print(
    program: &Program,
    symbols: Vec<String>,
    defaults: &[Option<i128>],
    api: &dyn Api,
) -> Result<String, Error> {
    let mut printer = Printer::new(program, symbols, defaults);
    let mut lines = Lines::default();
    let mut printed = || -> Result<(), Fault> {
        printer.tables(&mut lines)?;
        printer.check_sizes(&mut lines)?;
        for kernel in 0..program.kernels.len() {
            printer.launcher(api, kernel, &mut lines)?;
        }
        printer.run(api, &mut lines)?;
        printer.main(api, &mut lines)
    };
    printed().map_err(|fault| fault.of_kernel(&program.name))?;
    let faults = match printer.faults() {
        Some(_) => format!("\n{FAULTS}"),
        None => String::new(),
    };
    let api = api.text();
    let helpers = printer.prelude.helpers();
    Ok(format!(
        "\n{PROGRAM}{faults}\n{api}{helpers}\n// ---- This program ----\n\n{}",
        lines.finish()
    ))
}

impl<'a> Printer<'a> {
    fn new(
        program: &'a Program,
        symbols: Vec<String>,
        defaults: &'a [Option<i128>],
    ) -> Printer<'a> {
        let mut names = Names::default();
        for name in OWN_NAMES.iter().chain(MACROS) {
            names.claim(name);
        }
        let sizes = program.params.iter().map(|p| &p.name);
        let given = sizes.chain(program.buffers.iter().map(|b| &b.name));
        for name in given.filter(|name| is_errno(name)) {
            names.claim(name);
        }
        for symbol in &symbols {
            names.claim(symbol);
            names.claim(&launcher_of(symbol));
        }
        let var = |name: &String| Var {
            name: name.clone(),
            kind: VarKind::Host,
        };
        let host = Kernel {
            name: program.name.clone(),
            lanes: 1,
            warps: 1,
            vars: program.host_vars.iter().map(var).collect(),
            shared: Vec::new(),
            regs: Vec::new(),
            values: Vec::new(),
            hints: Hints::default(),
            body: Vec::new(),
        };
        let mut prelude = Prelude::new("static inline");
        let cx = Context::in_scope(program, &host, &mut prelude, 0, names.clone());
        let named = |list: &[crate::context::Named]| list.iter().map(|n| n.name.clone()).collect();
        let scope = Scope {
            params: named(&cx.params),
            buffers: named(&cx.buffers),
            symbols,
            names,
        };
        Printer {
            program,
            host,
            scope,
            words: words(program),
            defaults,
            prelude,
        }
    }

    /// The buffer of faults.
    fn faults(&self) -> Option<usize> {
        let buffers = &self.program.buffers;
        buffers.iter().position(|b| b.kind.fault_sites().is_some())
    }

    /// Sizes, arrays, tables and faults, as data.
    fn tables(&mut self, lines: &mut Lines) -> Result<(), Fault> {
        let program = self.program;
        lines.push("static struct size size_table[] = {");
        for (param, default) in program.params.iter().zip(self.defaults) {
            let value = param.fixed.or(*default);
            let (given, fixed) = (value.is_some(), param.fixed.is_some());
            let value = number(value.unwrap_or(0))?.text;
            let name = c_string(&param.name);
            lines.push(&format!("    {{{name}, {value}, {given}, {fixed}}},"));
        }
        if program.params.is_empty() {
            lines.push("    {\"\", 0, true, true},");
        }
        lines.push("};");
        let mut rows = Vec::new();
        for (n, buffer) in program.buffers.iter().enumerate() {
            let stored = stored(buffer.ty);
            let (role, contents) = match &buffer.kind {
                BufferKind::Input { data: None } => ("INPUT", "NULL".to_string()),
                BufferKind::Input { data: Some(data) } => {
                    let name = format!("contents_{n}");
                    self.constant(lines, &name, stored, data)?;
                    ("TABLE", name)
                }
                BufferKind::Output { fill: None } => ("OUTPUT", "NULL".to_string()),
                BufferKind::Output { fill: Some(with) } => {
                    let name = format!("fill_{n}");
                    self.constant(lines, &name, stored, &[*with])?;
                    ("OUTPUT", name)
                }
                BufferKind::Temporary => ("TEMPORARY", "NULL".to_string()),
                BufferKind::Flags | BufferKind::Faults { .. } => ("FLAGS", "NULL".to_string()),
            };
            let name = c_string(&self.words[n]);
            let ty = buffer.ty.name().to_uppercase();
            rows.push(format!(
                "    {{{name}, TYPE_{ty}, ROLE_{role}, {contents}, 0, NULL, NULL}},"
            ));
        }
        lines.push("");
        lines.push("static struct array array_table[] = {");
        rows.iter().for_each(|row| lines.push(row));
        if rows.is_empty() {
            lines.push("    {\"\", TYPE_I8, ROLE_FLAGS, NULL, 0, NULL, NULL},");
        }
        lines.push("};");
        lines.push(&format!(
            "enum {{ SIZES = {}, ARRAYS = {} }};",
            program.params.len(),
            program.buffers.len()
        ));
        self.sites(lines);
        Ok(())
    }

    fn constant(
        &mut self,
        lines: &mut Lines,
        name: &str,
        ty: Scalar,
        elements: &[Literal],
    ) -> Result<(), Fault> {
        lines.push("");
        let c = c_type(ty)?;
        let length = elements.len().max(1);
        lines.push(&format!("static const {c} {name}[{length}] = {{"));
        for row in elements.chunks(12) {
            let mut texts = Vec::new();
            for element in row {
                texts.push(literal(&mut self.prelude, ty, *element)?.text);
            }
            lines.push(&format!("    {},", texts.join(", ")));
        }
        if elements.is_empty() {
            lines.push("    0,");
        }
        lines.push("};");
        Ok(())
    }

    fn sites(&self, lines: &mut Lines) {
        let Some(at) = self.faults() else { return };
        let sites = self.program.buffers[at].kind.fault_sites();
        lines.push("");
        lines.push("static const struct site sites[] = {");
        for site in sites.unwrap_or_default() {
            let what = format!("{}: {}", site.kind.code().id, site.kind);
            let owner = format!("{} of `{}`", site.owner, self.program.name);
            let mut iterators = String::new();
            for name in &site.iterators {
                // The zero stands alone: a digit could follow it.
                iterators.push_str(&format!("{} \"\\0\" ", c_string(name)));
            }
            if iterators.is_empty() {
                iterators.push_str("\"\"");
            }
            lines.push(&format!(
                "    {{{}, {}, {}, {}}},",
                c_string(&what),
                c_string(&owner),
                site.iterators.len(),
                iterators.trim_end()
            ));
        }
        lines.push("};");
    }

    /// Declares the sizes that are used, as `main` holds them.
    fn check_sizes(&mut self, lines: &mut Lines) -> Result<(), Fault> {
        let program = self.program;
        let names = program.param_names();
        let mut body = Lines::at_depth(1);
        let scope = &self.scope;
        let mut cx = scope.context(program, &self.host, &mut self.prelude);
        let terms: Vec<String> = (magnitude(program).terms().rev())
            .map(|(monomial, c)| {
                // Rounded up.
                let mut factors = vec![format!("{:?}", (c * 1.001 * 1e3).ceil() / 1e3)];
                for param in monomial {
                    let name = cx.params[param.index()].mention();
                    factors.push(format!("magnitude({name})"));
                }
                factors.join(" * ")
            })
            .collect();
        let sum = match terms.is_empty() {
            true => "0".to_string(),
            false => terms.join(" + "),
        };
        body.push(&format!("const double largest = {sum};"));
        body.push("if (!(largest <= most_index))");
        body.push("    fail(\"these sizes are too large: index arithmetic may reach %.3g, of at most %.3g\", largest, most_index);");
        for cond in &program.context {
            let holds = cx.cond(cond)?;
            let text = cond.display(&names, &[]).to_string();
            body.push(&format!("if (!({}))", holds.text));
            let message = format!("the sizes do not satisfy {text}").replace('%', "%%");
            body.push(&format!("    fail({});", c_string(&message)));
        }
        for (n, buffer) in program.buffers.iter().enumerate() {
            let mut count = None;
            for axis in &buffer.axes {
                let (lo, hi) = (cx.form(&axis.lo)?, cx.form(&axis.hi)?);
                let own = Expr::call("extent", &[lo, hi]);
                count = Some(match count {
                    None => own,
                    Some(so_far) => Expr::binary("*", &so_far, &own),
                });
            }
            let count = count.unwrap_or_else(|| Expr::atom("1"));
            body.push(&format!("array_table[{n}].elements = {};", count.text));
        }
        lines.push("");
        lines.push(
            "// Refuses sizes that the code is not for, and counts the elements of each array.",
        );
        lines.push("static void check_sizes(void)");
        lines.push("{");
        for (n, param) in cx.params.iter().enumerate().filter(|(_, p)| p.used) {
            let name = &param.name;
            lines.push(&format!(
                "    const int64_t {name} = size_table[{n}].value;"
            ));
        }
        lines.append(&body.finish());
        lines.push("}");
        Ok(())
    }

    /// The function that launches a kernel.
    fn launcher(&mut self, api: &dyn Api, at: usize, lines: &mut Lines) -> Result<(), Fault> {
        let program = self.program;
        let kernel = &program.kernels[at];
        let arrays = self.array_parameters(api)?;
        let mut body = Lines::at_depth(1);
        let mut cx = self.scope.context(program, kernel, &mut self.prelude);
        let host = kernel.vars_where(|kind| matches!(kind, VarKind::Host));
        let host = host.map(|var| format!("int64_t {}", cx.dims[var.index()].name));
        let mut parameters = size_parameters(&self.scope);
        parameters.extend(host);
        parameters.extend(arrays);
        api.launch(&self.scope, &mut cx, at, &mut body)?;
        lines.push("");
        let head = format!("static void {}(", launcher_of(&self.scope.symbols[at]));
        push_list(lines, &head, &parameters, ")");
        lines.push("{");
        lines.append(&body.finish());
        lines.push("}");
        Ok(())
    }

    fn array_parameters(&self, api: &dyn Api) -> Result<Vec<String>, Fault> {
        (0..self.program.buffers.len())
            .map(|n| api.parameter(self, n))
            .collect()
    }

    /// The function of one run: the loops of the host around launches.
    fn run(&mut self, api: &dyn Api, lines: &mut Lines) -> Result<(), Fault> {
        let program = self.program;
        let mut parameters = size_parameters(&self.scope);
        parameters.extend(self.array_parameters(api)?);
        let mut body = Lines::at_depth(1);
        let scope = &self.scope;
        let mut cx = scope.context(program, &self.host, &mut self.prelude);
        steps(scope, &mut cx, &program.body, &mut body)?;
        lines.push("");
        lines.push("// One run: all launches, in order.");
        push_list(lines, "static void run(", &parameters, ")");
        lines.push("{");
        lines.append(&body.finish());
        lines.push("}");
        Ok(())
    }

    fn main(&self, api: &dyn Api, lines: &mut Lines) -> Result<(), Fault> {
        let program = self.program;
        let mut handed = Vec::new();
        for n in 0..program.params.len() {
            handed.push(format!("size_table[{n}].value"));
        }
        for n in 0..program.buffers.len() {
            handed.push(api.handed_over(self, n)?);
        }
        lines.push("");
        lines.push("int main(int count, char **words)");
        lines.push("{");
        let mut body = Lines::at_depth(1);
        let usage = c_string(&format!("give {}", self.usage()));
        body.push(&format!("const char *const usage = {usage};"));
        body.push("read_words(count, words, size_table, SIZES, array_table, ARRAYS, usage);");
        body.push("check_sizes();");
        body.push("double *const seconds = (double *)allocate(times * (int64_t)sizeof(double), \"times\");");
        let mut call = Lines::default();
        push_list(&mut call, "run(", &handed, ");");
        api.body_of_main(self, &call.finish(), &mut body);
        body.push("report(seconds, array_table, ARRAYS);");
        body.push("return 0;");
        lines.append(&body.finish());
        lines.push("}");
        Ok(())
    }

    /// The words that a program takes: `C=100 x=FILE`.
    fn usage(&self) -> String {
        let program = self.program;
        let mut words = Vec::new();
        for (param, default) in program.params.iter().zip(self.defaults) {
            match param.fixed.or(*default) {
                Some(value) => words.push(format!("{}={value}", param.name)),
                None => words.push(format!("{}=NUMBER", param.name)),
            }
        }
        for (n, buffer) in program.buffers.iter().enumerate() {
            if is_given(&buffer.kind) {
                words.push(format!("{}=FILE", self.words[n]));
            }
        }
        words.push("times=NUMBER".to_string());
        words.join(" ")
    }
}

impl Scope {
    /// Where formulas of a kernel's launch, or of the host's loops, are printed.
    fn context<'a>(
        &self,
        program: &'a Program,
        kernel: &'a Kernel,
        prelude: &'a mut Prelude,
    ) -> Context<'a> {
        let mut cx = Context::in_scope(program, kernel, prelude, 0, self.names.clone());
        cx.index = &INDEX;
        cx
    }
}

/// The name of the function that launches a kernel.
fn launcher_of(symbol: &str) -> String {
    format!("launch_{symbol}")
}

fn size_parameters(scope: &Scope) -> Vec<String> {
    let params = scope.params.iter();
    params.map(|name| format!("int64_t {name}")).collect()
}

fn steps(
    scope: &Scope,
    cx: &mut Context<'_>,
    body: &[Host],
    lines: &mut Lines,
) -> Result<(), Fault> {
    for step in body {
        match step {
            Host::Launch { kernel, args } => {
                let mut handed = scope.params.clone();
                for form in args {
                    handed.push(cx.form(form)?.text);
                }
                handed.extend(scope.buffers.iter().cloned());
                let launcher = launcher_of(&scope.symbols[kernel.index()]);
                push_list(lines, &format!("{launcher}("), &handed, ");");
            }
            Host::For { var, lo, hi, body } => {
                let (lo, hi) = (cx.extremum(lo, true)?, cx.extremum(hi, false)?);
                let i = cx.dims[var.index()].mention();
                let end = hi.at(crate::expr::Level::Sum);
                lines.open(&format!(
                    "for (int64_t {i} = {}; {i} < {end}; {i}++)",
                    lo.text
                ));
                steps(scope, cx, body, lines)?;
                lines.close();
            }
            Host::If {
                cond,
                then,
                otherwise,
            } => {
                let cond = cx.cond(cond)?;
                lines.open(&format!("if ({})", cond.text));
                steps(scope, cx, then, lines)?;
                if !otherwise.is_empty() {
                    lines.otherwise();
                    steps(scope, cx, otherwise, lines)?;
                }
                lines.close();
            }
        }
    }
    Ok(())
}

/// The number of blocks along the last coordinate of a kernel, and along all others together.
fn grid(cx: &mut Context<'_>) -> Result<(Expr, Expr), Fault> {
    let mut extents = Vec::new();
    for var in &cx.kernel.vars {
        if let VarKind::Block { lo, hi } = &var.kind {
            let (lo, hi) = (cx.extremum(lo, true)?, cx.extremum(hi, false)?);
            extents.push(Expr::call("extent", &[lo, hi]));
        }
    }
    let one = || Expr::atom("1");
    let columns = extents.pop().unwrap_or_else(one);
    let rows = extents.into_iter().reduce(|a, b| Expr::binary("*", &a, &b));
    Ok((columns, rows.unwrap_or_else(one)))
}

/// The bytes of shared arrays, each rounded up by a function.
fn shared_bytes(
    cx: &mut Context<'_>,
    arrays: &[SharedArray],
    rounded: &str,
) -> Result<Expr, Fault> {
    let mut sum: Option<Expr> = None;
    for array in arrays {
        let mut bytes = number(i128::from(array.element_bytes))?;
        for extent in &array.extents {
            let extent = poly(cx, extent)?;
            let extent = Expr::call("extent", &[number(0)?, extent]);
            bytes = Expr::binary("*", &bytes, &extent);
        }
        let own = Expr::call(rounded, &[bytes]);
        sum = Some(match sum {
            None => own,
            Some(so_far) => Expr::binary("+", &so_far, &own),
        });
    }
    Ok(sum.unwrap_or_else(|| Expr::atom("0")))
}

fn poly(cx: &mut Context<'_>, poly: &Poly) -> Result<Expr, Fault> {
    cx.form(&Form::from(poly.clone()))
}

/// A call or a declaration, on several lines if it is long.
fn push_list(lines: &mut Lines, head: &str, items: &[String], end: &str) {
    const WIDTH: usize = 100;
    let mut line = head.to_string();
    let mut first = true;
    for (n, item) in items.iter().enumerate() {
        let comma = if n + 1 < items.len() { "," } else { end };
        let gap = if first { "" } else { " " };
        if !first && line.len() + item.len() + 2 > WIDTH {
            lines.push(&line);
            line = format!("        {item}{comma}");
        } else {
            line = format!("{line}{gap}{item}{comma}");
        }
        first = false;
    }
    if items.is_empty() {
        line.push_str(end);
    }
    lines.push(&line);
}

/// How an element lies in memory.
fn stored(ty: Scalar) -> Scalar {
    if ty == Scalar::Bool { Scalar::U8 } else { ty }
}

/// Is it an array of the user's?
fn is_given(kind: &BufferKind) -> bool {
    match kind {
        BufferKind::Input { data: None } | BufferKind::Output { .. } => true,
        BufferKind::Input { data: Some(_) }
        | BufferKind::Temporary
        | BufferKind::Flags
        | BufferKind::Faults { .. } => false,
    }
}

/// What arrays are called on the command line of the program: by their names, unless a size or
/// another one is called so.
fn words(program: &Program) -> Vec<String> {
    let mut taken: Vec<String> = program.param_names();
    taken.extend(["times", "device"].map(str::to_string));
    let mut words = Vec::new();
    for buffer in &program.buffers {
        let mut word = buffer.name.clone();
        while taken.contains(&word) {
            word.push_str("_out");
        }
        taken.push(word.clone());
        words.push(word);
    }
    words
}

/// A string of C.
fn c_string(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            // Two of them could begin a trigraph.
            '?' => quoted.push_str("\\?"),
            c if c.is_control() => quoted.push_str(&format!("\\{:03o}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_say_what_they_said() {
        assert_eq!(
            c_string("`σ` \"a\"\\\n\u{1}?"),
            "\"`σ` \\\"a\\\"\\\\\\n\\001\\?\""
        );
    }

    #[test]
    fn long_lists_take_several_lines() {
        let items: Vec<String> = (0..30).map(|n| format!("item_{n}")).collect();
        let mut lines = Lines::at_depth(1);
        push_list(&mut lines, "call(", &items, ");");
        let text = lines.finish();
        assert!(text.lines().all(|line| line.len() <= 106), "{text}");
        assert!(text.ends_with("item_29);\n") && text.starts_with("    call(item_0, "));
        let mut none = Lines::default();
        push_list(&mut none, "call(", &[], ");");
        assert_eq!(none.finish(), "call();\n");
    }
}
