//! The state of printing a kernel: names, declarations, and the values that wait for their readers.

use std::collections::BTreeMap;

use systola_ir::ValueId;
use systola_ir::kernel::{Kernel, Memory, Program};

use crate::expr::{Expr, Lines};
use crate::names::Names;
use crate::prelude::{File, Prelude};
use crate::usage::{Places, Usage};

/// The type of index expressions, and the helper functions on it.
#[derive(Debug)]
pub struct Index {
    pub ty: &'static str,
    /// The suffix of the functions `min_` and `max_`.
    pub suffix: &'static str,
    /// The file that has the functions of floor division and remainder, and their names.
    pub file: File,
    pub floordiv: &'static str,
    pub modulo: &'static str,
    /// The function that negates an operand of a maximum, where the plain operator is not safe.
    pub minus: Option<&'static str>,
}

pub const INT64: Index = Index {
    ty: "int64_t",
    suffix: "i64",
    file: File::Scalar,
    floordiv: "floordiv",
    modulo: "mod",
    minus: None,
};

/// A name, and whether it occurs in printed text.
#[derive(Clone, Debug)]
pub struct Named {
    pub name: String,
    pub used: bool,
}

impl Named {
    pub fn mention(&mut self) -> String {
        self.used = true;
        self.name.clone()
    }
}

/// How a value can be read.
#[derive(Clone, Debug)]
pub(crate) enum Slot {
    /// Before its `Let`, or after its last reader.
    Absent,
    /// Printed where it is read, `left` times.
    Waiting {
        expr: Expr,
        reads: Places,
        left: u32,
    },
    /// A name or a number.
    Ready(Expr),
}

/// The state of printing a kernel.
pub struct Context<'a> {
    pub program: &'a Program,
    pub kernel: &'a Kernel,
    pub prelude: &'a mut Prelude,
    pub usage: Usage,
    pub names: Names,
    pub params: Vec<Named>,
    pub dims: Vec<Named>,
    pub buffers: Vec<Named>,
    pub shared: Vec<Named>,
    pub regs: Vec<String>,
    /// Declarations at the top of the function: strides.
    pub constants: Vec<String>,
    pub(crate) strides: BTreeMap<(Memory, usize), String>,
    pub lines: Lines,
    /// The type of index variables and of expressions over them.
    pub index: &'static Index,
    pub(crate) slots: Vec<Slot>,
    /// The waiting values, in order, for each list of statements that they are in.
    pub(crate) waiting: Vec<Vec<ValueId>>,
    /// The places read by the expressions taken since the last statement began.
    pub(crate) taken: Places,
    /// Named expressions over index variables, for each list of statements that declares them.
    pub(crate) shared_names: Vec<BTreeMap<String, String>>,
}

impl<'a> Context<'a> {
    pub fn new(
        program: &'a Program,
        kernel: &'a Kernel,
        prelude: &'a mut Prelude,
        depth: usize,
    ) -> Context<'a> {
        Context::in_scope(program, kernel, prelude, depth, Names::default())
    }

    /// The same where some names are taken.
    pub fn in_scope(
        program: &'a Program,
        kernel: &'a Kernel,
        prelude: &'a mut Prelude,
        depth: usize,
        mut names: Names,
    ) -> Context<'a> {
        let mut named = |wanted: &str| Named {
            name: names.claim(wanted),
            used: false,
        };
        let params = program.params.iter().map(|p| named(&p.name)).collect();
        let buffers = program.buffers.iter().map(|b| named(&b.name)).collect();
        let dims = kernel.vars.iter().map(|v| named(&v.name)).collect();
        let shared = kernel.shared.iter().map(|s| named(&s.name)).collect();
        let regs = kernel.regs.iter().map(|r| names.claim(&r.name)).collect();
        Context {
            program,
            kernel,
            prelude,
            usage: Usage::new(kernel),
            names,
            params,
            dims,
            buffers,
            shared,
            regs,
            constants: Vec::new(),
            strides: BTreeMap::new(),
            lines: Lines::at_depth(depth),
            index: &INT64,
            slots: vec![Slot::Absent; kernel.values.len()],
            waiting: Vec::new(),
            taken: Places::default(),
            shared_names: vec![BTreeMap::new()],
        }
    }

    /// The name of an expression over index variables, which is declared here unless it has one
    /// already.
    pub fn name_once(&mut self, ty: &str, wanted: &str, e: &Expr) -> Expr {
        let known = self
            .shared_names
            .iter()
            .find_map(|names| names.get(&e.text));
        if let Some(name) = known {
            return Expr::atom(name);
        }
        let name = self.names.claim(wanted);
        self.lines.push(&format!("const {ty} {name} = {};", e.text));
        if let Some(names) = self.shared_names.last_mut() {
            names.insert(e.text.clone(), name.clone());
        }
        Expr::atom(name)
    }

    /// The expression of a value, for one reader.
    pub fn take(&mut self, value: ValueId) -> Expr {
        match &mut self.slots[value.index()] {
            Slot::Ready(expr) => expr.clone(),
            Slot::Waiting { expr, reads, left } => {
                self.taken.extend(reads);
                *left = left.saturating_sub(1);
                let expr = expr.clone();
                if *left == 0 {
                    self.slots[value.index()] = Slot::Absent;
                }
                expr
            }
            Slot::Absent => unreachable!("value {} is read where it is not", value.index()),
        }
    }

    pub fn memory_name(&self, memory: Memory) -> &str {
        match memory {
            Memory::Global(b) => &self.buffers[b.index()].name,
            Memory::Shared(s) => &self.shared[s.index()].name,
        }
    }

    /// The pointer to the first element of a memory.
    pub fn pointer(&mut self, memory: Memory) -> String {
        match memory {
            Memory::Global(b) => self.buffers[b.index()].mention(),
            Memory::Shared(s) => self.shared[s.index()].mention(),
        }
    }
}
