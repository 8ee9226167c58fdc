//! A builder of kernels.

use systola_ir::form::{Cond, Form};
use systola_ir::kernel::{
    Access, Buffer, BufferKind, Host, Kernel, Memory, Op, Program, Reg, Shape, Shared, Size, Stmt,
    Value, Var, VarKind,
};
use systola_ir::system::Axis;
use systola_ir::{
    BinOp, BufferId, DimId, KernelId, Literal, ParamId, Poly, RegId, Scalar, SharedId, UnOp,
    ValueId,
};

/// A program without kernels.
pub fn program(name: &str, params: &[&str]) -> Program {
    Program {
        name: name.to_string(),
        params: params
            .iter()
            .map(|p| Size {
                name: (*p).to_string(),
                fixed: None,
            })
            .collect(),
        context: Vec::new(),
        buffers: Vec::new(),
        kernels: Vec::new(),
        host_vars: Vec::new(),
        body: Vec::new(),
    }
}

pub fn buffer(
    program: &mut Program,
    name: &str,
    ty: Scalar,
    kind: BufferKind,
    axes: &[(Form, Form)],
) -> BufferId {
    program.buffers.push(Buffer {
        name: name.to_string(),
        ty,
        kind,
        axes: axes
            .iter()
            .map(|(lo, hi)| Axis {
                lo: lo.clone(),
                hi: hi.clone(),
            })
            .collect(),
    });
    BufferId::from(program.buffers.len() - 1)
}

pub fn input(p: &mut Program, name: &str, ty: Scalar, extents: &[Form]) -> BufferId {
    let axes: Vec<_> = extents.iter().map(|e| (Form::zero(), e.clone())).collect();
    buffer(p, name, ty, BufferKind::Input { data: None }, &axes)
}

pub fn output(p: &mut Program, name: &str, ty: Scalar, extents: &[Form]) -> BufferId {
    let axes: Vec<_> = extents.iter().map(|e| (Form::zero(), e.clone())).collect();
    buffer(p, name, ty, BufferKind::Output { fill: None }, &axes)
}

/// Adds a kernel and its launch.
pub fn launch(program: &mut Program, kernel: Kernel) {
    program.kernels.push(kernel);
    program.body.push(Host::Launch {
        kernel: KernelId::from(program.kernels.len() - 1),
        args: Vec::new(),
    });
}

pub fn param(n: usize) -> Form {
    Form::from(ParamId::from(n))
}

pub fn num(c: i128) -> Form {
    Form::from(c)
}

pub fn times(c: i128, form: &Form) -> Form {
    form.scale(&Poly::constant(c)).unwrap()
}

/// A kernel under construction; statements go to the innermost open list.
pub struct Build {
    kernel: Kernel,
    open: Vec<Vec<Stmt>>,
}

impl Build {
    pub fn new(name: &str, lanes: u32, warps: u32) -> Build {
        Build {
            kernel: Kernel {
                hints: Default::default(),
                name: name.to_string(),
                lanes,
                warps,
                vars: Vec::new(),
                shared: Vec::new(),
                regs: Vec::new(),
                values: Vec::new(),
                body: Vec::new(),
            },
            open: vec![Vec::new()],
        }
    }

    pub fn finish(mut self) -> Kernel {
        assert_eq!(self.open.len(), 1);
        self.kernel.body = self.open.pop().unwrap();
        self.kernel
    }

    pub fn push(&mut self, stmt: Stmt) {
        self.open.last_mut().unwrap().push(stmt);
    }

    pub fn comment(&mut self, text: &str) {
        self.push(Stmt::Comment(text.to_string()));
    }

    pub fn var(&mut self, name: &str, kind: VarKind) -> DimId {
        self.kernel.vars.push(Var {
            name: name.to_string(),
            kind,
        });
        DimId::from(self.kernel.vars.len() - 1)
    }

    pub fn lane(&mut self) -> Form {
        Form::from(self.var("lane", VarKind::Lane))
    }

    /// 0 … hi − 1.
    pub fn block(&mut self, name: &str, hi: Form) -> Form {
        let kind = VarKind::Block {
            lo: vec![Form::zero()],
            hi: vec![hi],
        };
        Form::from(self.var(name, kind))
    }

    pub fn shared(&mut self, name: &str, ty: Scalar, extents: &[Poly]) -> SharedId {
        self.kernel.shared.push(Shared {
            name: name.to_string(),
            ty,
            extents: extents.to_vec(),
        });
        SharedId::from(self.kernel.shared.len() - 1)
    }

    pub fn reg(&mut self, name: &str, ty: Scalar, shape: Shape) -> RegId {
        self.kernel.regs.push(Reg {
            name: name.to_string(),
            ty,
            shape,
        });
        RegId::from(self.kernel.regs.len() - 1)
    }

    /// A value that a statement of the caller assigns.
    pub fn declare(&mut self, name: &str, ty: Scalar, shape: Shape) -> ValueId {
        self.kernel.values.push(Value {
            name: name.to_string(),
            ty,
            shape,
        });
        ValueId::from(self.kernel.values.len() - 1)
    }

    pub fn op(&mut self, name: &str, ty: Scalar, shape: Shape, op: Op) -> ValueId {
        let value = self.declare(name, ty, shape);
        self.push(Stmt::Let(value, op));
        value
    }

    pub fn shape(&self, v: ValueId) -> Shape {
        self.kernel.values[v.index()].shape
    }

    pub fn ty(&self, v: ValueId) -> Scalar {
        self.kernel.values[v.index()].ty
    }

    fn join(&self, values: &[ValueId]) -> Shape {
        values
            .iter()
            .map(|v| self.shape(*v))
            .max()
            .unwrap_or(Shape::Uniform)
    }

    pub fn lit(&mut self, ty: Scalar, literal: Literal) -> ValueId {
        self.op("c", ty, Shape::Uniform, Op::Lit(literal))
    }

    pub fn int(&mut self, ty: Scalar, x: i128) -> ValueId {
        self.lit(ty, Literal::Int(x))
    }

    pub fn index(&mut self, form: &Form) -> ValueId {
        let shape = self.kernel.shape_of(form);
        self.op("at", Scalar::I64, shape, Op::Index(form.clone()))
    }

    pub fn unary(&mut self, op: UnOp, a: ValueId) -> ValueId {
        self.op("r", self.ty(a), self.shape(a), Op::Unary(op, a))
    }

    pub fn binary(&mut self, name: &str, op: BinOp, a: ValueId, b: ValueId) -> ValueId {
        let ty = if op.is_comparison() {
            Scalar::Bool
        } else {
            self.ty(a)
        };
        self.op(name, ty, self.join(&[a, b]), Op::Binary(op, a, b))
    }

    pub fn cast(&mut self, to: Scalar, a: ValueId) -> ValueId {
        self.op("r", to, self.shape(a), Op::Cast(a))
    }

    pub fn select(&mut self, cond: ValueId, then: ValueId, otherwise: ValueId) -> ValueId {
        let shape = self.join(&[cond, then, otherwise]);
        let op = Op::Select {
            cond,
            then,
            otherwise,
        };
        self.op("r", self.ty(then), shape, op)
    }

    pub fn choose(&mut self, cond: Cond, then: ValueId, otherwise: ValueId) -> ValueId {
        let shape = if self.kernel.cond_is_uniform(&cond) {
            self.join(&[then, otherwise])
        } else {
            Shape::Varying
        };
        let op = Op::Choose {
            cond,
            then,
            otherwise,
        };
        self.op("r", self.ty(then), shape, op)
    }

    pub fn get(&mut self, reg: RegId) -> ValueId {
        let r = self.kernel.regs[reg.index()].clone();
        self.op(&r.name, r.ty, r.shape, Op::Get(reg))
    }

    pub fn set(&mut self, reg: RegId, value: ValueId) {
        self.push(Stmt::Set(reg, value));
    }

    fn access_shape(&self, access: &Access) -> Shape {
        let uniform = access.index.iter().all(|f| self.kernel.is_uniform(f))
            && self.kernel.cond_is_uniform(&access.when);
        if uniform {
            Shape::Uniform
        } else {
            Shape::Varying
        }
    }

    pub fn load(&mut self, name: &str, ty: Scalar, memory: Memory, index: &[Form]) -> ValueId {
        self.load_when(name, ty, memory, index, Cond::TRUE, None)
    }

    pub fn load_when(
        &mut self,
        name: &str,
        ty: Scalar,
        memory: Memory,
        index: &[Form],
        when: Cond,
        otherwise: Option<Literal>,
    ) -> ValueId {
        let from = Access {
            memory,
            index: index.to_vec(),
            when,
        };
        let shape = self.access_shape(&from);
        self.op(name, ty, shape, Op::Load { from, otherwise })
    }

    pub fn load_wide(
        &mut self,
        names: &[&str],
        ty: Scalar,
        memory: Memory,
        index: &[Form],
    ) -> Vec<ValueId> {
        let from = Access::new(memory, index.to_vec());
        let shape = self.access_shape(&from);
        let to: Vec<_> = names.iter().map(|n| self.declare(n, ty, shape)).collect();
        self.push(Stmt::LoadWide {
            to: to.clone(),
            from,
            otherwise: None,
        });
        to
    }

    pub fn store(&mut self, memory: Memory, index: &[Form], value: ValueId) {
        self.store_when(memory, index, Cond::TRUE, value);
    }

    pub fn store_when(&mut self, memory: Memory, index: &[Form], when: Cond, value: ValueId) {
        let to = Access {
            memory,
            index: index.to_vec(),
            when,
        };
        self.push(Stmt::Store { to, value });
    }

    pub fn for_loop(
        &mut self,
        var: DimId,
        lo: Vec<Form>,
        hi: Vec<Form>,
        step: i128,
        body: impl FnOnce(&mut Build),
    ) {
        self.open.push(Vec::new());
        body(self);
        let body = self.open.pop().unwrap();
        self.push(Stmt::For {
            var,
            lo,
            hi,
            step,
            body,
        });
    }

    pub fn branch(
        &mut self,
        cond: Cond,
        then: impl FnOnce(&mut Build),
        otherwise: impl FnOnce(&mut Build),
    ) {
        self.open.push(Vec::new());
        then(self);
        let then = self.open.pop().unwrap();
        self.open.push(Vec::new());
        otherwise(self);
        let otherwise = self.open.pop().unwrap();
        self.push(Stmt::If {
            cond,
            then,
            otherwise,
        });
    }
}
