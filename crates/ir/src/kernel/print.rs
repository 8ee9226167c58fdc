//! Prints programs of kernels for people, as `systola dump --after kernel` shows them.
//!
//! Operators and positions are written as in the text language; `index(i + 1)` is a position as a
//! value. A value that is used once is printed in the place of its use, unless it reads memory or
//! another lane. A literal always is, with its type as a suffix where its context does not
//! determine the type. Where two things of a kernel have the same name, the later ones get a
//! number: `x`, `x.1`.
//!
//! What is printed can be read back, see [`mod@crate::kernel::parse`].

use std::fmt::{self, Display, Formatter};

use crate::form::{Cond, Form};
use crate::id::{DimId, KernelId, ValueId};
use crate::kernel::parse::lexer::quoted;
use crate::kernel::{
    Access, BlockChain, Buffer, BufferKind, Cache, FaultKind, FaultSite, Host, Joins, Kernel,
    Memory, Program, Shape, Stmt, VarKind,
};
use crate::mapping::Engine;
use crate::scalar::Literal;
use crate::system::print::display_literal;

mod expr;
mod inline;
mod names;

pub use names::KernelText;

use expr::Known;
use names::{ProgramNames, identifier};

impl Display for Program {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let names = ProgramNames::new(self);
        let ProgramNames { params, .. } = &names;
        let sizes = self.params.iter().zip(params);
        let sizes = sizes.map(|(size, name)| match size.fixed {
            Some(value) => format!("{name} = {value}"),
            None => name.clone(),
        });
        write!(f, "program {}({})", identifier(&self.name), join(sizes))?;
        if !self.context.is_empty() {
            let context = self.context.iter().map(Cond::without_single_parts);
            let context = context.map(|c| c.display(params, &[]).to_string());
            write!(f, " where {}", join(context))?;
        }
        writeln!(f, " {{")?;
        for (buffer, name) in self.buffers.iter().zip(&names.buffers) {
            write_buffer(f, buffer, name, params)?;
        }
        write_host(f, &self.body, &names, 1)?;
        writeln!(f, "}}")?;
        for (n, _) in self.kernels.iter().enumerate() {
            if let Some(text) = KernelText::new(self, KernelId::from(n)) {
                write!(f, "\n{text}")?;
            }
        }
        Ok(())
    }
}

fn write_host(
    f: &mut Formatter<'_>,
    body: &[Host],
    names: &ProgramNames,
    depth: usize,
) -> fmt::Result {
    let indent = "  ".repeat(depth);
    for step in body {
        match step {
            Host::Launch { kernel, args } => {
                let name = names::name(&names.kernels, kernel.index(), "kernel");
                let args = args.iter().map(|a| names.host_form(a));
                writeln!(f, "{indent}launch {name}({});", join(args))?;
            }
            Host::For { var, lo, hi, body } => {
                let name = names.host_var(*var);
                let range = display_range(lo, hi, |form| names.host_form(form));
                writeln!(f, "{indent}for {name} in {range} {{")?;
                write_host(f, body, names, depth + 1)?;
                writeln!(f, "{indent}}}")?;
            }
            Host::If {
                cond,
                then,
                otherwise,
            } => {
                writeln!(f, "{indent}if {} {{", names.host_cond(cond))?;
                write_host(f, then, names, depth + 1)?;
                if !otherwise.is_empty() {
                    writeln!(f, "{indent}}} else {{")?;
                    write_host(f, otherwise, names, depth + 1)?;
                }
                writeln!(f, "{indent}}}")?;
            }
        }
    }
    Ok(())
}

fn write_buffer(
    f: &mut Formatter<'_>,
    buffer: &Buffer,
    name: &str,
    params: &[String],
) -> fmt::Result {
    let axes = buffer.axes.iter().map(|axis| {
        let hi = axis.hi.display(params, &[]);
        match axis.lo.as_constant() {
            Some(0) => hi.to_string(),
            Some(_) | None => format!("{}..{hi}", axis.lo.display(params, &[])),
        }
    });
    let (keyword, contents) = match &buffer.kind {
        BufferKind::Input { data: None } => ("input", ";".to_string()),
        BufferKind::Input { data: Some(data) } => ("input", format!(" = [{}];", list(data))),
        BufferKind::Output { fill: None } => ("output", ";".to_string()),
        BufferKind::Output { fill: Some(value) } => {
            ("output", format!(" else {};", display_literal(*value)))
        }
        BufferKind::Temporary => ("temporary", ";".to_string()),
        BufferKind::Flags => ("flags", ";".to_string()),
        BufferKind::Faults { sites } => ("faults", format!(" {{\n{}  }}", fault_sites(sites))),
    };
    let ty = buffer.ty;
    writeln!(f, "  {keyword} {name}[{}]: {ty}{contents}", join(axes))
}

/// A short list on one line, a long one on lines of its own.
fn list(data: &[Literal]) -> String {
    const PER_LINE: usize = 16;
    let line = |part: &[Literal]| join(part.iter().map(|value| display_literal(*value)));
    if data.len() <= PER_LINE {
        return line(data);
    }
    let lines: Vec<String> = data.chunks(PER_LINE).map(line).collect();
    format!("\n    {}\n  ", lines.join(",\n    "))
}

/// One line for each site, with the number by which statements refer to it.
fn fault_sites(sites: &[FaultSite]) -> String {
    let line = |(n, site): (usize, &FaultSite)| {
        let kind = match &site.kind {
            FaultKind::DivisionByZero(op) => format!("division by zero ({})", op.name()),
            FaultKind::NegativeExponent => "negative exponent".to_string(),
            FaultKind::OutOfRange { input } => format!("outside of {}", quoted(input)),
        };
        let (owner, point) = (quoted(&site.owner), &site.iterators);
        let point = join(point.iter().map(|name| identifier(name)));
        format!("    {}: {kind} in {owner} at ({point});\n", n + 1)
    };
    sites.iter().enumerate().map(line).collect()
}

/// `0..N`, `max(0, i - 3)..min(N, i + 3)`.
fn display_range(lo: &[Form], hi: &[Form], show: impl Fn(&Form) -> String) -> String {
    let bound = |forms: &[Form], of: &str| match forms {
        [form] => show(form),
        _ => format!("{of}({})", join(forms.iter().map(&show))),
    };
    format!("{}..{}", bound(lo, "max"), bound(hi, "min"))
}

fn join(list: impl IntoIterator<Item = impl Display>) -> String {
    let parts: Vec<String> = list.into_iter().map(|part| part.to_string()).collect();
    parts.join(", ")
}

impl Display for KernelText<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let kernel: &Kernel = self.kernel;
        let Kernel { lanes, warps, .. } = kernel;
        let plural = |n: u32| if n == 1 { "" } else { "s" };
        writeln!(
            f,
            "kernel {}: {warps} warp{} of {lanes} lane{} {{",
            self.name,
            plural(*warps),
            plural(*lanes)
        )?;
        for (n, var) in kernel.vars.iter().enumerate() {
            let name = self.var(DimId::from(n));
            match &var.kind {
                VarKind::Host => writeln!(f, "  host {name};")?,
                VarKind::Block { lo, hi } => {
                    let range = display_range(lo, hi, |form| self.form(form));
                    writeln!(f, "  block {name} in {range};")?;
                }
                VarKind::Warp => writeln!(f, "  warp {name} in 0..{warps};")?,
                VarKind::Lane => writeln!(f, "  lane {name} in 0..{lanes};")?,
                VarKind::Loop | VarKind::DynamicBlock => {}
            }
        }
        for (n, shared) in kernel.shared.iter().enumerate() {
            let extents = join(shared.extents.iter().map(|e| e.display(&self.params)));
            let (name, ty) = (&self.shared[n], shared.ty);
            writeln!(f, "  shared {name}[{extents}]: {ty};")?;
        }
        for (n, reg) in kernel.regs.iter().enumerate() {
            let (name, ty) = (&self.regs[n], reg.ty);
            writeln!(f, "  {}reg {name}: {ty};", display_shape(reg.shape))?;
        }
        for hint in &kernel.hints.non_temporal {
            let name = self.memory(Memory::Global(hint.buffer));
            writeln!(f, "  non_temporal {name}{};", self.when(&hint.when))?;
        }
        if !kernel.hints.resident_blocks.is_empty() {
            let numbers = join(&kernel.hints.resident_blocks);
            writeln!(f, "  resident_blocks {numbers};")?;
        }
        for hint in &kernel.hints.invariants {
            let name = self.memory(Memory::Global(hint.buffer));
            writeln!(f, "  invariant {name}[{}];", join(&hint.index))?;
        }
        if let Some(hint) = &kernel.hints.deferred {
            let name = self.memory(Memory::Global(hint.buffer));
            writeln!(f, "  deferred {name} by {};", hint.group_size)?;
        }
        if kernel.hints.outlined_edge {
            writeln!(f, "  outlined edge;")?;
        }
        if kernel.hints.predicated_loads {
            writeln!(f, "  predicated loads;")?;
        }
        writeln!(f)?;
        self.write_body(f, &kernel.body, 1)?;
        writeln!(f, "}}")
    }
}

fn display_shape(shape: Shape) -> &'static str {
    match shape {
        Shape::Uniform => "uniform ",
        Shape::Varying => "",
    }
}

impl KernelText<'_> {
    fn write_body(&self, f: &mut Formatter<'_>, body: &[Stmt], depth: usize) -> fmt::Result {
        let indent = "  ".repeat(depth);
        for stmt in body {
            match stmt {
                Stmt::Let(value, _) if self.is_inlined(*value) => continue,
                Stmt::For { body, .. } => {
                    writeln!(f, "{indent}{} {{", self.stmt(stmt))?;
                    self.write_body(f, body, depth + 1)?;
                    writeln!(f, "{indent}}}")?;
                }
                Stmt::If {
                    then, otherwise, ..
                } => {
                    writeln!(f, "{indent}{} {{", self.stmt(stmt))?;
                    self.write_body(f, then, depth + 1)?;
                    if !otherwise.is_empty() {
                        writeln!(f, "{indent}}} else {{")?;
                        self.write_body(f, otherwise, depth + 1)?;
                    }
                    writeln!(f, "{indent}}}")?;
                }
                Stmt::LookBack(look) => {
                    writeln!(f, "{indent}{} {{", self.stmt(stmt))?;
                    self.write_body(f, &look.joins.body, depth + 1)?;
                    let joined = join(look.joins.joined.iter().map(|v| self.shown(*v)));
                    writeln!(f, "{indent}}} gives {joined};")?;
                }
                Stmt::Comment(_) => writeln!(f, "{indent}{}", self.stmt(stmt))?,
                Stmt::Let(..)
                | Stmt::Set(..)
                | Stmt::LoadWide { .. }
                | Stmt::Store { .. }
                | Stmt::StoreWide { .. }
                | Stmt::Prefetch { .. }
                | Stmt::Copy { .. }
                | Stmt::CommitCopies
                | Stmt::WaitCopies { .. }
                | Stmt::Barrier
                | Stmt::SyncWarp
                | Stmt::Signal { .. }
                | Stmt::Await { .. }
                | Stmt::DynamicBlock { .. }
                | Stmt::Fault { .. } => writeln!(f, "{indent}{};", self.stmt(stmt))?,
            }
        }
        Ok(())
    }

    /// The text of a statement on one line; of a loop or a branch, only the head.
    pub fn stmt(&self, stmt: &Stmt) -> String {
        match stmt {
            Stmt::Let(value, op) => {
                format!(
                    "{} = {}",
                    self.declaration(&[*value]),
                    self.op(*value, op, Known::Type).0
                )
            }
            Stmt::Set(reg, value) => format!("{} = {}", self.reg(*reg), self.shown(*value)),
            Stmt::LoadWide {
                to,
                from,
                otherwise,
            } => {
                let mut text = format!("{} = {}", self.declaration(to), self.wide(from, to.len()));
                text.push_str(&self.when(&from.when));
                if let Some(value) = otherwise {
                    text.push_str(&format!(" else {}", display_literal(*value)));
                }
                text
            }
            Stmt::Store { to, value } => {
                let (place, value) = (self.place(to), self.shown(*value));
                format!("{place} = {value}{}", self.when(&to.when))
            }
            Stmt::StoreWide { to, values } => {
                let list = join(values.iter().map(|v| self.shown(*v)));
                let place = self.wide(to, values.len());
                format!("{place} = {list}{}", self.when(&to.when))
            }
            Stmt::Copy {
                to,
                from,
                width,
                engine,
            } => {
                let engine = match engine {
                    Engine::Plain => "copy",
                    Engine::CpAsync => "copy async",
                    Engine::Bulk => "copy bulk",
                };
                let place = |access| match width {
                    1 => self.place(access),
                    _ => self.wide(access, *width as usize),
                };
                let (target, source) = (place(to), place(from));
                let (own, when) = (self.when(&to.when), self.when(&from.when));
                format!("{engine} {target}{own} = {source}{when}")
            }
            Stmt::CommitCopies => "commit copies".into(),
            Stmt::WaitCopies { pending: 0 } => "wait for all copies".into(),
            Stmt::WaitCopies { pending } => format!("wait for copies, {pending} may be pending"),
            Stmt::For {
                var, lo, hi, step, ..
            } => {
                let range = display_range(lo, hi, |form| self.form(form));
                let step = match step {
                    1 => String::new(),
                    _ => format!(" step {step}"),
                };
                let independent = match self.kernel.hints.independent.contains(var) {
                    true => " independently",
                    false => "",
                };
                format!("for {} in {range}{step}{independent}", self.var(*var))
            }
            Stmt::Prefetch { at, into } => {
                let cache = match into {
                    Cache::L1 => "l1",
                    Cache::L2 => "l2",
                };
                format!(
                    "prefetch {} into {cache}{}",
                    self.place(at),
                    self.when(&at.when)
                )
            }
            Stmt::If { cond, .. } => format!("if {}", self.cond(cond)),
            Stmt::Barrier => "barrier".into(),
            Stmt::SyncWarp => "sync warp".into(),
            Stmt::Signal { flag } => {
                format!("signal {}{}", self.place(flag), self.when(&flag.when))
            }
            Stmt::Await { flag, at_least } => format!(
                "await {} >= {}{}",
                self.place(flag),
                self.form(at_least),
                self.when(&flag.when)
            ),
            Stmt::LookBack(look) => {
                let names = |values: &[ValueId]| join(values.iter().map(|v| self.value(*v)));
                let typed = |value: &ValueId| self.typed(&[*value]);
                let chain = |chain: &BlockChain| {
                    let before = join(chain.before.iter().map(typed));
                    let terms = join(chain.terms.iter().map(|v| self.shown(*v)));
                    format!("{before} = {terms} at {}", self.place(&chain.at))
                };
                let chains: Vec<String> = look.chains.iter().map(chain).collect();
                let first = look.chains.first();
                let when = first.map_or(String::new(), |chain| self.when(&chain.at.when));
                let Joins { earlier, later, .. } = &look.joins;
                format!(
                    "look_back {} along {} {}{when}, where {} joins {}",
                    chains.join(" and "),
                    look.axis,
                    if look.up { "up" } else { "down" },
                    names(earlier),
                    names(later),
                )
            }
            Stmt::DynamicBlock { var, counter } => {
                let place = self.place(counter);
                let when = self.when(&counter.when);
                format!("dynamic_block {} from {place}{when}", self.var(*var))
            }
            Stmt::Fault {
                faults,
                site,
                bad,
                when,
                point,
            } => {
                let place = self.memory(Memory::Global(*faults));
                let point = join(point.iter().map(|form| self.form(form)));
                let (bad, when) = (self.shown(*bad), self.when(when));
                format!("fault {place}, {} at ({point}) if {bad}{when}", site + 1)
            }
            Stmt::Comment(text) => format!("// {}", text.replace(['\n', '\r'], " ")),
        }
    }

    fn form(&self, form: &Form) -> String {
        self.positions.form(form, &self.params)
    }

    fn cond(&self, cond: &Cond) -> String {
        self.positions.cond(&cond.balanced(), &self.params)
    }

    /// ` when i < N`, or nothing.
    fn when(&self, cond: &Cond) -> String {
        match cond.balanced() {
            Cond::Const(true) => String::new(),
            Cond::Const(false) | Cond::Cmp(..) | Cond::And(_) | Cond::Or(_) | Cond::Not(_) => {
                format!(" when {}", self.cond(cond))
            }
        }
    }

    /// `x[i, j]`.
    fn place(&self, access: &Access) -> String {
        let index = join(access.index.iter().map(|form| self.form(form)));
        format!("{}[{index}]", self.memory(access.memory))
    }

    /// `x[i, 4*l ..+4]`: four elements, starting there.
    fn wide(&self, access: &Access, width: usize) -> String {
        let index = join(access.index.iter().map(|form| self.form(form)));
        format!("{}[{index} ..+{width}]", self.memory(access.memory))
    }

    fn memory(&self, memory: Memory) -> String {
        match memory {
            Memory::Global(id) => names::name(&self.buffers, id.index(), "buffer"),
            Memory::Shared(id) => names::name(&self.shared, id.index(), "shared"),
        }
    }
}
