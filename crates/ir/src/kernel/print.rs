//! Prints programs of kernels for people, as `systola dump --after kernel` shows them.
//!
//! Operators and positions are written as in the text language. A value that is used once stands where
//! it is used, unless it reads memory or another lane; a literal always does. Where two things of a
//! kernel have one name, the later ones get a number: `x`, `x.1`.

use std::fmt::{self, Display, Formatter};

use crate::form::{Cond, Form};
use crate::id::KernelId;
use crate::kernel::{
    Access, Buffer, BufferKind, Cache, Host, Kernel, Memory, Program, Shape, Stmt, VarKind,
};
use crate::mapping::Engine;

mod expr;
mod inline;
mod names;

pub use names::KernelText;

impl Display for Program {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let params = self.param_names();
        let sizes: Vec<String> = self
            .params
            .iter()
            .map(|size| match size.fixed {
                Some(value) => format!("{} = {value}", size.name),
                None => size.name.clone(),
            })
            .collect();
        write!(f, "program {}({})", self.name, sizes.join(", "))?;
        if !self.context.is_empty() {
            let context = self.context.iter().map(|c| c.display(&params, &[]));
            write!(f, " where {}", join(context))?;
        }
        writeln!(f, " {{")?;
        for buffer in &self.buffers {
            write_buffer(f, buffer, &params)?;
        }
        self.write_host(f, &self.body, &params, 1)?;
        writeln!(f, "}}")?;
        for (n, _) in self.kernels.iter().enumerate() {
            if let Some(text) = KernelText::new(self, KernelId::from(n)) {
                write!(f, "\n{text}")?;
            }
        }
        Ok(())
    }
}

impl Program {
    fn write_host(
        &self,
        f: &mut Formatter<'_>,
        body: &[Host],
        params: &[String],
        depth: usize,
    ) -> fmt::Result {
        let indent = "  ".repeat(depth);
        for step in body {
            match step {
                Host::Launch { kernel, args } => {
                    let name = self
                        .kernels
                        .get(kernel.index())
                        .map_or_else(|| format!("kernel{}", kernel.index()), |k| k.name.clone());
                    let args = args.iter().map(|a| a.display(params, &self.host_vars));
                    writeln!(f, "{indent}launch {name}({});", join(args))?;
                }
                Host::For { var, lo, hi, body } => {
                    let name = names::name(&self.host_vars, var.index(), "h");
                    let range = display_range(lo, hi, params, &self.host_vars);
                    writeln!(f, "{indent}for {name} in {range} {{")?;
                    self.write_host(f, body, params, depth + 1)?;
                    writeln!(f, "{indent}}}")?;
                }
                Host::If {
                    cond,
                    then,
                    otherwise,
                } => {
                    let cond = cond.display(params, &self.host_vars);
                    writeln!(f, "{indent}if {cond} {{")?;
                    self.write_host(f, then, params, depth + 1)?;
                    if !otherwise.is_empty() {
                        writeln!(f, "{indent}}} else {{")?;
                        self.write_host(f, otherwise, params, depth + 1)?;
                    }
                    writeln!(f, "{indent}}}")?;
                }
            }
        }
        Ok(())
    }
}

fn write_buffer(f: &mut Formatter<'_>, buffer: &Buffer, params: &[String]) -> fmt::Result {
    let axes = buffer.axes.iter().map(|axis| {
        let hi = axis.hi.display(params, &[]);
        match axis.lo.as_constant() {
            Some(0) => hi.to_string(),
            Some(_) | None => format!("{}..{hi}", axis.lo.display(params, &[])),
        }
    });
    let (keyword, contents) = match &buffer.kind {
        BufferKind::Input { data: None } => ("input", String::new()),
        BufferKind::Input { data: Some(data) } => {
            const SHOWN: usize = 16;
            let mut list = join(data.iter().take(SHOWN));
            if data.len() > SHOWN {
                list.push_str(&format!(", … {} in all", data.len()));
            }
            ("input", format!(" = [{list}]"))
        }
        BufferKind::Output { fill: None } => ("output", String::new()),
        BufferKind::Output { fill: Some(value) } => ("output", format!(" else {value}")),
        BufferKind::Temporary => ("temporary", String::new()),
        BufferKind::Flags => ("flags", String::new()),
        BufferKind::Faults { .. } => ("faults", String::new()),
    };
    let (name, ty) = (&buffer.name, buffer.ty);
    writeln!(f, "  {keyword} {name}[{}]: {ty}{contents};", join(axes))
}

/// `0..N`, `max(0, i - 3)..min(N, i + 3)`.
fn display_range(lo: &[Form], hi: &[Form], params: &[String], dims: &[String]) -> String {
    let bound = |forms: &[Form], of: &str| match forms {
        [form] => form.display(params, dims).to_string(),
        _ => format!(
            "{of}({})",
            join(forms.iter().map(|b| b.display(params, dims)))
        ),
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
            kernel.name,
            plural(*warps),
            plural(*lanes)
        )?;
        for (n, var) in kernel.vars.iter().enumerate() {
            let name = &self.vars[n];
            match &var.kind {
                VarKind::Host => writeln!(f, "  host {name};")?,
                VarKind::Block { lo, hi } => {
                    let range = display_range(lo, hi, &self.params, &self.vars);
                    writeln!(f, "  block {name} in {range};")?;
                }
                VarKind::Warp => writeln!(f, "  warp {name} in 0..{warps};")?,
                VarKind::Lane => writeln!(f, "  lane {name} in 0..{lanes};")?,
                VarKind::Loop | VarKind::Ticket => {}
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
                | Stmt::Signal { .. }
                | Stmt::Await { .. }
                | Stmt::Ticket { .. }
                | Stmt::Fault { .. } => writeln!(f, "{indent}{};", self.stmt(stmt))?,
            }
        }
        Ok(())
    }

    /// A statement on one line, of a loop or branch the head only.
    pub fn stmt(&self, stmt: &Stmt) -> String {
        match stmt {
            Stmt::Let(value, op) => {
                format!(
                    "{} = {}",
                    self.declaration(&[*value]),
                    self.op(*value, op).0
                )
            }
            Stmt::Set(reg, value) => format!("{} = {}", self.reg(*reg), self.operand(*value, 0)),
            Stmt::LoadWide {
                to,
                from,
                otherwise,
            } => {
                let mut text = format!("{} = {}", self.declaration(to), self.wide(from, to.len()));
                text.push_str(&self.when(&from.when));
                if let Some(value) = otherwise {
                    text.push_str(&format!(" else {value}"));
                }
                text
            }
            Stmt::Store { to, value } => {
                let (place, value) = (self.place(to), self.operand(*value, 0));
                format!("{place} = {value}{}", self.when(&to.when))
            }
            Stmt::StoreWide { to, values } => {
                let list = join(values.iter().map(|v| self.operand(*v, 0)));
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
                let width = *width as usize;
                let both = to.when.clone().and(from.when.clone());
                let (to, from) = (self.wide(to, width), self.wide(from, width));
                format!("{engine} {to} = {from}{}", self.when(&both))
            }
            Stmt::CommitCopies => "commit copies".into(),
            Stmt::WaitCopies { pending: 0 } => "wait for all copies".into(),
            Stmt::WaitCopies { pending } => format!("wait for copies, {pending} may be pending"),
            Stmt::For {
                var, lo, hi, step, ..
            } => {
                let range = display_range(lo, hi, &self.params, &self.vars);
                let step = match step {
                    1 => String::new(),
                    _ => format!(" step {step}"),
                };
                format!("for {} in {range}{step}", self.var(*var))
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
            Stmt::Signal { flag } => {
                format!("signal {}{}", self.place(flag), self.when(&flag.when))
            }
            Stmt::Await { flag, at_least } => format!(
                "await {} >= {}{}",
                self.place(flag),
                self.form(at_least),
                self.when(&flag.when)
            ),
            Stmt::Ticket { var, counter } => {
                let place = self.place(counter);
                let when = self.when(&counter.when);
                format!("ticket {} from {place}{when}", self.var(*var))
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
                let (bad, when) = (self.operand(*bad, 0), self.when(when));
                format!("fault {place}, {} at ({point}) if {bad}{when}", site + 1)
            }
            Stmt::Comment(text) => format!("// {text}"),
        }
    }

    fn form(&self, form: &Form) -> String {
        form.display(&self.params, &self.vars).to_string()
    }

    fn cond(&self, cond: &Cond) -> String {
        let cond = cond.balanced();
        cond.display(&self.params, &self.vars).to_string()
    }

    /// ` when i < N`, or nothing.
    fn when(&self, cond: &Cond) -> String {
        match cond {
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

    /// `x[i, 4*l ..+4]`: so many from there on.
    fn wide(&self, access: &Access, width: usize) -> String {
        let index = join(access.index.iter().map(|form| self.form(form)));
        let width = match width {
            1 => String::new(),
            _ => format!(" ..+{width}"),
        };
        format!("{}[{index}{width}]", self.memory(access.memory))
    }

    fn memory(&self, memory: Memory) -> String {
        match memory {
            Memory::Global(id) => names::name(&self.buffers, id.index(), "buffer"),
            Memory::Shared(id) => names::name(&self.shared, id.index(), "shared"),
        }
    }
}
