//! Statements as they are emitted: scopes, shapes and value numbering.
//!
//! Equal values are named once. Inputs never change, so two loads of one element are one load
//! wherever the first is in scope. This promotes footprints to registers: once a window is
//! unrolled, every element of it is loaded once.

use std::collections::HashMap;

use systola_ir::form::{Cond, Form};
use systola_ir::kernel::{Access, Kernel, Memory, Op, Reg, Shape, Stmt, Value, Var, VarKind};
use systola_ir::{BinOp, DimId, Literal, RegId, Scalar, SharedId, UnOp, ValueId};

/// Identifies equal operations.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Lit(Scalar, u64),
    Index(Form),
    Load(Memory, Vec<Form>, Cond, Option<u64>),
    LaneShift(Option<ValueId>, Option<ValueId>, u32),
    Unary(UnOp, ValueId),
    Binary(BinOp, ValueId, ValueId),
    Cast(Scalar, ValueId),
    Select(ValueId, ValueId, ValueId),
    Choose(Cond, ValueId, ValueId),
    Lookup(Memory, Vec<ValueId>),
}

fn literal_bits(literal: &Literal) -> u64 {
    match literal {
        Literal::Int(v) => *v as u64,
        Literal::Float(v) => v.to_bits(),
        Literal::Bool(b) => u64::from(*b),
    }
}

fn key(ty: Scalar, op: &Op, pure: &impl Fn(Memory) -> bool) -> Option<Key> {
    Some(match op {
        Op::Lit(literal) => Key::Lit(ty, literal_bits(literal)),
        Op::Index(form) => Key::Index(form.clone()),
        Op::Get(_) | Op::Shuffle { .. } => return None,
        Op::Unary(op, a) => Key::Unary(*op, *a),
        Op::Binary(op, a, b) => Key::Binary(*op, *a, *b),
        Op::Cast(a) => Key::Cast(ty, *a),
        Op::Select {
            cond,
            then,
            otherwise,
        } => Key::Select(*cond, *then, *otherwise),
        Op::Choose {
            cond,
            then,
            otherwise,
        } => Key::Choose(cond.clone(), *then, *otherwise),
        Op::Load { from, otherwise } if pure(from.memory) => Key::Load(
            from.memory,
            from.index.clone(),
            from.when.clone(),
            otherwise.as_ref().map(literal_bits),
        ),
        Op::Load { .. } => return None,
        Op::Lookup { memory, index } if pure(*memory) => Key::Lookup(*memory, index.clone()),
        Op::Lookup { .. } => return None,
        Op::LaneShift { low, high, by } => Key::LaneShift(*low, *high, *by),
    })
}

/// A kernel under construction.
pub struct Builder {
    pub kernel: Kernel,
    open: Vec<Vec<Stmt>>,
    known: Vec<HashMap<Key, ValueId>>,
    /// Buffers of which this kernel never changes an element that it reads.
    read_only: Vec<bool>,
    /// Shared arrays that are filled before anything in their scope reads them.
    pub staged: Vec<SharedId>,
    /// The operation of each value that a `Let` assigns, if operations are kept.
    operations: Option<Vec<Option<Op>>>,
}

impl Builder {
    pub fn new(name: &str, lanes: u32, read_only: Vec<bool>) -> Builder {
        Builder {
            kernel: Kernel {
                hints: Default::default(),
                name: name.to_string(),
                lanes,
                warps: 1,
                vars: Vec::new(),
                shared: Vec::new(),
                regs: Vec::new(),
                values: Vec::new(),
                body: Vec::new(),
            },
            open: vec![Vec::new()],
            known: vec![HashMap::new()],
            read_only,
            staged: Vec::new(),
            operations: None,
        }
    }

    /// Keeps the operation of every value from now on.
    pub fn keep_operations(&mut self) {
        self.operations = Some(Vec::new());
    }

    /// The operation that computes a value, if it was kept.
    pub fn operation(&self, value: ValueId) -> Option<&Op> {
        self.operations.as_ref()?.get(value.index())?.as_ref()
    }

    pub fn finish(mut self) -> Kernel {
        self.kernel.body = self.open.pop().unwrap_or_default();
        self.kernel
    }

    pub fn var(&mut self, name: &str, kind: VarKind) -> DimId {
        self.kernel.vars.push(Var {
            name: name.to_string(),
            kind,
        });
        DimId::from(self.kernel.vars.len() - 1)
    }

    pub fn reg(&mut self, name: String, ty: Scalar, shape: Shape) -> RegId {
        self.kernel.regs.push(Reg { name, ty, shape });
        RegId::from(self.kernel.regs.len() - 1)
    }

    pub fn push(&mut self, stmt: Stmt) {
        if let Some(block) = self.open.last_mut() {
            block.push(stmt);
        }
    }

    pub fn begin(&mut self) {
        self.open.push(Vec::new());
        self.known.push(HashMap::new());
    }

    pub fn end(&mut self) -> Vec<Stmt> {
        self.known.pop();
        self.open.pop().unwrap_or_default()
    }

    pub fn shape(&self, value: ValueId) -> Shape {
        self.kernel.values[value.index()].shape
    }

    pub fn ty(&self, value: ValueId) -> Scalar {
        self.kernel.values[value.index()].ty
    }

    fn shape_of(&self, op: &Op) -> Shape {
        let of_cond = |cond: &Cond| {
            if self.kernel.cond_is_uniform(cond) {
                Shape::Uniform
            } else {
                Shape::Varying
            }
        };
        match op {
            Op::Lit(_) => Shape::Uniform,
            Op::Index(form) => self.kernel.shape_of(form),
            Op::Get(reg) => self.kernel.regs[reg.index()].shape,
            Op::Unary(_, a) | Op::Cast(a) => self.shape(*a),
            Op::Binary(_, a, b) => self.shape(*a).max(self.shape(*b)),
            Op::Select {
                cond,
                then,
                otherwise,
            } => self
                .shape(*cond)
                .max(self.shape(*then))
                .max(self.shape(*otherwise)),
            Op::Choose {
                cond,
                then,
                otherwise,
            } => of_cond(cond)
                .max(self.shape(*then))
                .max(self.shape(*otherwise)),
            Op::Load { from, .. } => from
                .index
                .iter()
                .map(|f| self.kernel.shape_of(f))
                .fold(of_cond(&from.when), Shape::max),
            Op::Lookup { index, .. } => index
                .iter()
                .map(|v| self.shape(*v))
                .fold(Shape::Uniform, Shape::max),
            Op::Shuffle { from, .. } => self.kernel.shape_of(from),
            Op::LaneShift { .. } => Shape::Varying,
        }
    }

    /// A lane shift over `low` followed by `high`; no statement if all lanes hold one value.
    pub fn lane_shift(
        &mut self,
        name: &str,
        low: Option<ValueId>,
        high: Option<ValueId>,
        by: u32,
    ) -> Option<ValueId> {
        let any = low.or(high)?;
        let same = low.or(high) == high.or(low);
        if same && self.shape(any) == Shape::Uniform {
            return Some(any);
        }
        let ty = self.ty(any);
        Some(self.value(name, ty, Op::LaneShift { low, high, by }))
    }

    /// The value of another lane; no statement if all lanes hold one value.
    pub fn shuffle(&mut self, name: &str, value: ValueId, from: Form) -> ValueId {
        if self.shape(value) == Shape::Uniform {
            return value;
        }
        let ty = self.ty(value);
        self.value(name, ty, Op::Shuffle { value, from })
    }

    /// A value that a statement other than a `Let` assigns.
    pub fn declare(&mut self, name: &str, ty: Scalar, shape: Shape) -> ValueId {
        self.assigned(name, ty, shape, None)
    }

    fn assigned(&mut self, name: &str, ty: Scalar, shape: Shape, by: Option<Op>) -> ValueId {
        self.kernel.values.push(Value {
            name: name.to_string(),
            ty,
            shape,
        });
        let value = ValueId::from(self.kernel.values.len() - 1);
        if let Some(kept) = &mut self.operations {
            kept.push(by);
        }
        value
    }

    /// The value of an operation; an equal value in scope is reused.
    pub fn value(&mut self, name: &str, ty: Scalar, op: Op) -> ValueId {
        affine::cancel::check();
        let (read_only, staged) = (&self.read_only, &self.staged);
        let pure = |memory: Memory| match memory {
            Memory::Global(buffer) => read_only.get(buffer.index()).copied().unwrap_or(false),
            Memory::Shared(id) => staged.contains(&id),
        };
        let key = key(ty, &op, &pure);
        if let Some(key) = &key
            && let Some(value) = self.known.iter().rev().find_map(|scope| scope.get(key))
        {
            return *value;
        }
        let shape = self.shape_of(&op);
        let value = self.assigned(name, ty, shape, Some(op.clone()));
        self.push(Stmt::Let(value, op));
        if let Some(key) = key
            && let Some(scope) = self.known.last_mut()
        {
            scope.insert(key, value);
        }
        value
    }

    /// A shared array is filled again: forgets the values loaded from it.
    pub fn forget(&mut self, array: SharedId) {
        let old = Memory::Shared(array);
        for scope in &mut self.known {
            scope.retain(|key, _| match key {
                Key::Load(memory, ..) | Key::Lookup(memory, _) => *memory != old,
                Key::Lit(..)
                | Key::Index(_)
                | Key::LaneShift(..)
                | Key::Unary(..)
                | Key::Binary(..)
                | Key::Cast(..)
                | Key::Select(..)
                | Key::Choose(..) => true,
            });
        }
    }

    /// Is the value the result of a load by this very access?
    pub fn is_load_of(&self, value: ValueId, access: &Access) -> bool {
        self.open.iter().flatten().any(|stmt| {
            matches!(stmt, Stmt::Let(v, Op::Load { from, .. })
                if *v == value && from.memory == access.memory && from.index == access.index)
        })
    }

    pub fn literal(&mut self, ty: Scalar, literal: Literal) -> ValueId {
        self.value("c", ty, Op::Lit(literal))
    }

    /// A placeholder where any value will do.
    pub fn hole(&mut self, ty: Scalar) -> ValueId {
        let literal = if ty.is_float() {
            Literal::Float(0.0)
        } else if ty == Scalar::Bool {
            Literal::Bool(false)
        } else {
            Literal::Int(0)
        };
        self.literal(ty, literal)
    }

    /// Selects by position; no select if the condition is known.
    pub fn choose(&mut self, name: &str, cond: Cond, then: ValueId, otherwise: ValueId) -> ValueId {
        match cond {
            Cond::Const(true) => then,
            Cond::Const(false) => otherwise,
            _ if then == otherwise => then,
            cond => {
                let ty = self.ty(then);
                self.value(
                    name,
                    ty,
                    Op::Choose {
                        cond,
                        then,
                        otherwise,
                    },
                )
            }
        }
    }

    pub fn load(
        &mut self,
        name: &str,
        ty: Scalar,
        from: Access,
        otherwise: Option<Literal>,
    ) -> ValueId {
        self.value(name, ty, Op::Load { from, otherwise })
    }
}
