//! Names that are unique within one kernel and can be read back.

use std::collections::{HashMap, HashSet};

use crate::form::{Cond, Form};
use crate::id::{DimId, KernelId, RegId, ValueId};
use crate::kernel::parse::lexer::{begins_name, continues_name, literal_word};
use crate::kernel::visit::{walk, walk_host};
use crate::kernel::{Host, Kernel, Op, Program, Stmt, VarKind};

use super::inline::inlined;

/// A kernel ready to be printed, as a whole or by statement.
pub struct KernelText<'a> {
    pub(super) kernel: &'a Kernel,
    pub(super) name: String,
    pub(super) params: Vec<String>,
    pub(super) buffers: Vec<String>,
    pub(super) positions: Positions,
    pub(super) shared: Vec<String>,
    pub(super) regs: Vec<String>,
    values: Vec<String>,
    /// The operation of each value that a `Let` assigns.
    ops: Vec<Option<&'a Op>>,
    inlined: Vec<bool>,
}

impl<'a> KernelText<'a> {
    /// `None`: the program has no such kernel.
    pub fn new(program: &'a Program, id: KernelId) -> Option<KernelText<'a>> {
        let kernel = program.kernels.get(id.index())?;
        let ProgramNames {
            params,
            buffers,
            kernels,
            mut taken,
            ..
        } = ProgramNames::new(program);
        let names: Vec<&str> = kernel.vars.iter().map(|v| v.name.as_str()).collect();
        let positions = Positions::new(&names, &order(kernel), &mut taken);
        let shared = taken.all(kernel.shared.iter().map(|s| s.name.as_str()));
        let regs = taken.all(kernel.regs.iter().map(|r| r.name.as_str()));
        let mut ops = vec![None; kernel.values.len()];
        walk(&kernel.body, &mut |stmt| {
            if let Stmt::Let(value, op) = stmt
                && let Some(slot) = ops.get_mut(value.index())
            {
                *slot = Some(op);
            }
        });
        let inlined = inlined(kernel);
        // Only printed values need a name of their own.
        let values = kernel
            .values
            .iter()
            .zip(&inlined)
            .map(|(value, hidden)| match hidden {
                true => value.name.clone(),
                false => taken.one(&value.name),
            })
            .collect();
        Some(KernelText {
            kernel,
            name: name(&kernels, id.index(), "kernel"),
            params,
            buffers,
            positions,
            shared,
            regs,
            values,
            ops,
            inlined,
        })
    }

    pub(super) fn is_inlined(&self, value: ValueId) -> bool {
        self.inlined.get(value.index()).copied().unwrap_or(false)
    }

    /// The operation of a value that is printed in the place of its use.
    pub(super) fn inlined_op(&self, value: ValueId) -> Option<&'a Op> {
        if self.is_inlined(value) {
            *self.ops.get(value.index())?
        } else {
            None
        }
    }

    pub fn value(&self, value: ValueId) -> String {
        name(&self.values, value.index(), "value")
    }

    pub fn reg(&self, reg: RegId) -> String {
        name(&self.regs, reg.index(), "reg")
    }

    pub fn var(&self, var: DimId) -> String {
        self.positions.var(var)
    }
}

/// The index variables of a kernel in the order in which the text declares or binds them.
fn order(kernel: &Kernel) -> Vec<DimId> {
    let is_declared = |kind: &VarKind| match kind {
        VarKind::Host | VarKind::Block { .. } | VarKind::Warp | VarKind::Lane => true,
        VarKind::Loop | VarKind::DynamicBlock => false,
    };
    let mut order: Vec<DimId> = kernel.vars_where(is_declared).collect();
    walk(&kernel.body, &mut |stmt| order.extend(stmt.binds()));
    order
}

/// The names of what all kernels of a program share, and of the host's variables.
pub(super) struct ProgramNames {
    pub params: Vec<String>,
    pub buffers: Vec<String>,
    pub kernels: Vec<String>,
    host: Positions,
    /// The names of sizes and buffers.
    taken: Taken,
}

impl ProgramNames {
    pub(super) fn new(program: &Program) -> ProgramNames {
        let mut taken = Taken::default();
        let params = taken.all(program.params.iter().map(|p| p.name.as_str()));
        let buffers = taken.all(program.buffers.iter().map(|b| b.name.as_str()));
        let kernels = Taken::default().all(program.kernels.iter().map(|k| k.name.as_str()));
        let mut order = Vec::new();
        walk_host(&program.body, &mut |step| match step {
            Host::For { var, .. } => order.push(*var),
            Host::Launch { .. } | Host::If { .. } => {}
        });
        let names: Vec<&str> = program.host_vars.iter().map(String::as_str).collect();
        let host = Positions::new(&names, &order, &mut taken.clone());
        ProgramNames {
            params,
            buffers,
            kernels,
            host,
            taken,
        }
    }

    pub(super) fn host_var(&self, var: DimId) -> String {
        self.host.var(var)
    }

    pub(super) fn host_form(&self, form: &Form) -> String {
        self.host.form(form, &self.params)
    }

    pub(super) fn host_cond(&self, cond: &Cond) -> String {
        self.host.cond(&cond.without_single_parts(), &self.params)
    }
}

/// Index variables in the order of the text. The terms of a form are printed in that order too, so
/// that a reader of the text knows it.
pub(super) struct Positions {
    /// Indexed by variable.
    names: Vec<String>,
    /// The position of each variable in the order of the text; `None` if they are in that order
    /// already.
    places: Option<Vec<DimId>>,
    /// In the order of the text.
    ordered: Vec<String>,
}

impl Positions {
    /// `order`: variables in the order in which they are bound; some may be missing and some may
    /// occur twice.
    fn new(given: &[&str], order: &[DimId], taken: &mut Taken) -> Positions {
        let mut places = vec![None; given.len()];
        let mut names = vec![String::new(); given.len()];
        let mut ordered = Vec::new();
        for var in order
            .iter()
            .copied()
            .chain((0..given.len()).map(DimId::from))
        {
            if let Some(place @ None) = places.get_mut(var.index()) {
                *place = Some(DimId::from(ordered.len()));
                let name = taken.one(given[var.index()]);
                names[var.index()].clone_from(&name);
                ordered.push(name);
            }
        }
        let places: Vec<DimId> = places.into_iter().flatten().collect();
        let is_ordered = places.iter().enumerate().all(|(n, at)| n == at.index());
        Positions {
            names,
            places: (!is_ordered).then_some(places),
            ordered,
        }
    }

    fn var(&self, var: DimId) -> String {
        name(&self.names, var.index(), "i")
    }

    pub(super) fn form(&self, form: &Form, params: &[String]) -> String {
        match &self.places {
            None => form.display(params, &self.names).to_string(),
            Some(places) => {
                let moved = form.substitute(&|d| Some(Form::from(*places.get(d.index())?)));
                match moved {
                    Ok(moved) => moved.display(params, &self.ordered).to_string(),
                    Err(_) => form.display(params, &self.names).to_string(),
                }
            }
        }
    }

    pub(super) fn cond(&self, cond: &Cond, params: &[String]) -> String {
        match &self.places {
            None => cond.display(params, &self.names).to_string(),
            Some(places) => {
                let moved =
                    |form: &Form| form.substitute(&|d| Some(Form::from(*places.get(d.index())?)));
                match cond.map(&moved) {
                    Ok(moved) => moved.display(params, &self.ordered).to_string(),
                    Err(_) => cond.display(params, &self.names).to_string(),
                }
            }
        }
    }
}

/// The name of an id; an id out of range is printed too.
pub(super) fn name(names: &[String], index: usize, fallback: &str) -> String {
    names
        .get(index)
        .cloned()
        .unwrap_or_else(|| format!("{fallback}{index}"))
}

/// The name with characters replaced that cannot be part of a name: `x.1` is one, `2 x` is not.
pub(super) fn identifier(name: &str) -> String {
    let parts = name.split('.');
    let is_part = |part: &str| !part.is_empty() && part.chars().all(continues_name);
    if name.starts_with(begins_name) && parts.clone().all(is_part) {
        return name.to_string();
    }
    let known = |c: char| if continues_name(c) { c } else { '_' };
    let mut made: String = name.chars().map(known).collect();
    if !made.starts_with(begins_name) {
        made.insert(0, '_');
    }
    made
}

#[derive(Clone, Default)]
struct Taken {
    names: HashSet<String>,
    /// The last number given to each name, so that many equal names stay cheap.
    numbers: HashMap<String, usize>,
}

impl Taken {
    fn one(&mut self, name: &str) -> String {
        let name = identifier(name);
        let mut unique = name.clone();
        // `_` and the words of literals cannot be names.
        let is_word = |name: &str| name == "_" || literal_word(name).is_some();
        while is_word(&unique) || !self.names.insert(unique.clone()) {
            let number = self.numbers.entry(name.clone()).or_default();
            *number += 1;
            unique = format!("{name}.{number}");
        }
        unique
    }

    fn all<'n>(&mut self, names: impl Iterator<Item = &'n str>) -> Vec<String> {
        names.map(|name| self.one(name)).collect()
    }
}
