//! Helpers to build systems by hand.

use systola_interp::{Arrays, Tensor, run_system};
use systola_ir::system::{
    Axis, Combine, Dim, Expr, Function, Input, InputKind, Law, Output, Param, System, Var, Write,
};
use systola_ir::{
    BinOp, Cond, Diagnostic, DimId, FnId, Form, InputId, Literal, LocalId, ParamId, Rel, Scalar,
    Span, Type, VarId,
};

#[derive(Default)]
pub struct Builder {
    pub system: System,
}

pub fn new(name: &str, params: &[&str]) -> Builder {
    let mut builder = Builder::default();
    builder.system.name = name.into();
    builder.system.params = params
        .iter()
        .map(|p| Param {
            name: (*p).into(),
            span: Span::NONE,
        })
        .collect();
    builder
}

pub fn param(n: u32) -> Form {
    Form::from(ParamId(n))
}

pub fn dim(n: u32) -> Form {
    Form::from(DimId(n))
}

fn a_dim(name: &str, lo: impl Into<Form>, hi: impl Into<Form>) -> Dim {
    Dim {
        name: name.into(),
        range: Some((lo.into(), hi.into())),
        span: Span::NONE,
    }
}

fn axes(shape: &[Form]) -> Vec<Axis> {
    shape
        .iter()
        .map(|hi| Axis {
            lo: Form::from(0),
            hi: hi.clone(),
        })
        .collect()
}

impl Builder {
    pub fn dim(&mut self, name: &str, lo: impl Into<Form>, hi: impl Into<Form>) -> Form {
        self.system.dims.push(a_dim(name, lo, hi));
        dim(self.system.dims.len() as u32 - 1)
    }

    /// All iterators of the index space must have been declared before.
    pub fn bound(&mut self, name: &str, lo: impl Into<Form>, hi: impl Into<Form>) -> DimId {
        self.system.bound.push(a_dim(name, lo, hi));
        DimId::from(self.system.dims.len() + self.system.bound.len() - 1)
    }

    pub fn input(&mut self, name: &str, ty: Scalar, shape: &[Form]) -> InputId {
        self.system.inputs.push(Input {
            name: name.into(),
            ty,
            kind: InputKind::Array,
            axes: axes(shape),
            outside: None,
            span: Span::NONE,
        });
        InputId::from(self.system.inputs.len() - 1)
    }

    pub fn table(
        &mut self,
        name: &str,
        ty: Scalar,
        shape: &[Form],
        data: Option<&[i128]>,
    ) -> InputId {
        let id = self.input(name, ty, shape);
        self.system.inputs[id.index()].kind = InputKind::Table {
            data: data.map(|d| d.iter().map(|x| Literal::Int(*x)).collect()),
        };
        id
    }

    pub fn function(&mut self, name: &str, params: &[Type], result: Type, body: Expr) -> FnId {
        let params = params.iter().enumerate();
        self.system.functions.push(Function {
            name: name.into(),
            params: params
                .map(|(n, ty)| (format!("a{n}"), ty.clone()))
                .collect(),
            result,
            law: Law::Fixed,
            body,
            span: Span::NONE,
        });
        FnId::from(self.system.functions.len() - 1)
    }

    /// The id the next variable will have.
    pub fn next_var(&self) -> VarId {
        VarId::from(self.system.vars.len())
    }

    pub fn var(&mut self, name: &str, ty: impl Into<Type>, body: Expr) -> VarId {
        self.system.vars.push(Var {
            name: name.into(),
            ty: ty.into(),
            law: Law::Fixed,
            own: None,
            on: Vec::new(),
            body,
            span: Span::NONE,
        });
        VarId::from(self.system.vars.len() - 1)
    }

    pub fn output(&mut self, name: &str, ty: Scalar, shape: &[Form], writes: Vec<Write>) {
        self.system.outputs.push(Output {
            name: name.into(),
            ty,
            axes: axes(shape),
            writes,
            fill: None,
            span: Span::NONE,
        });
    }

    pub fn here(&self, var: VarId) -> Expr {
        at(var, &self.system.identity_index())
    }

    pub fn run(&self, params: &[i128], inputs: &[(&str, &Tensor)]) -> Result<Arrays, Diagnostic> {
        run_system(&self.system, params, &arrays(inputs))
    }

    pub fn result(&self, params: &[i128], inputs: &[(&str, &Tensor)], name: &str) -> Tensor {
        self.run(params, inputs).unwrap().remove(name).unwrap()
    }

    pub fn error(&self, params: &[i128], inputs: &[(&str, &Tensor)]) -> Diagnostic {
        self.run(params, inputs).unwrap_err()
    }

    /// Contents for every input that has none.
    pub fn random(&self, input: InputId, params: &[i128]) -> Tensor {
        let declared = &self.system.inputs[input.index()];
        Tensor::random(
            declared.ty,
            &declared.axes,
            params,
            11 + input.index() as u64,
        )
        .unwrap()
    }
}

pub fn arrays(list: &[(&str, &Tensor)]) -> Arrays {
    list.iter()
        .map(|(name, tensor)| ((*name).to_string(), (*tensor).clone()))
        .collect()
}

pub fn write(value: Expr, index: &[Form], when: Cond) -> Write {
    Write {
        of: None,
        value,
        index: index.to_vec(),
        when,
        span: Span::NONE,
    }
}

pub fn at(var: VarId, index: &[Form]) -> Expr {
    Expr::Var {
        var,
        index: index.to_vec(),
        span: Span::NONE,
    }
}

pub fn read(input: InputId, index: &[Form]) -> Expr {
    Expr::Input {
        input,
        index: index.to_vec(),
        span: Span::NONE,
    }
}

pub fn lookup(input: InputId, index: Vec<Expr>) -> Expr {
    Expr::Lookup {
        input,
        index,
        span: Span::NONE,
    }
}

pub fn reduce(op: Combine, dims: &[DimId], body: Expr) -> Expr {
    Expr::Reduce {
        op,
        dims: dims.to_vec(),
        body: Box::new(body),
        span: Span::NONE,
    }
}

pub fn scan(op: BinOp, dim: u32, body: Expr) -> Expr {
    Expr::Scan {
        op: Combine::Op(op),
        dim: DimId(dim),
        body: Box::new(body),
        span: Span::NONE,
    }
}

pub fn guard(cond: Cond, then: Expr, otherwise: Expr) -> Expr {
    Expr::guard(cond, then, otherwise)
}

pub fn bin(op: BinOp, a: Expr, b: Expr) -> Expr {
    Expr::binary(op, a, b)
}

pub fn add(a: Expr, b: Expr) -> Expr {
    bin(BinOp::Add, a, b)
}

pub fn sub(a: Expr, b: Expr) -> Expr {
    bin(BinOp::Sub, a, b)
}

pub fn mul(a: Expr, b: Expr) -> Expr {
    bin(BinOp::Mul, a, b)
}

pub fn div(a: Expr, b: Expr) -> Expr {
    bin(BinOp::Div, a, b)
}

pub fn local(n: u32) -> Expr {
    Expr::Local(LocalId(n))
}

pub fn bind(n: u32, value: Expr, body: Expr) -> Expr {
    Expr::Let {
        local: LocalId(n),
        name: format!("l{n}"),
        value: Box::new(value),
        body: Box::new(body),
    }
}

pub fn field(e: Expr, n: usize) -> Expr {
    Expr::Field(Box::new(e), n)
}

pub fn select(cond: Expr, then: Expr, otherwise: Expr) -> Expr {
    Expr::Select {
        cond: Box::new(cond),
        then: Box::new(then),
        otherwise: Box::new(otherwise),
    }
}

pub fn eq(a: impl Into<Form>, b: impl Into<Form>) -> Cond {
    Cond::cmp(Rel::Eq, a, b)
}

pub fn le(a: impl Into<Form>, b: impl Into<Form>) -> Cond {
    Cond::cmp(Rel::Le, a, b)
}

pub fn floats(tensor: &Tensor) -> Vec<f64> {
    (0..tensor.data.len())
        .map(|n| tensor.data.get(n).unwrap().to_f64().unwrap())
        .collect()
}

/// The propagated and accumulated convolution of the paper.
pub fn conv1d(ty: Scalar) -> Builder {
    let mut b = new("conv1d", &["C", "Q"]);
    let (c, q) = (b.dim("c", 0, param(0)), b.dim("q", 0, param(1)));
    let x = b.input("x", ty, &[param(0).add(&param(1)).plus(-1)]);
    let w = b.input("w", ty, &[param(1)]);
    let last = eq(c.clone(), param(0).plus(-1));
    let xs = b.next_var();
    let xs = b.var(
        "X",
        ty,
        guard(
            Cond::Or(vec![eq(q.clone(), 0), last]),
            read(x, &[c.add(&q)]),
            at(xs, &[c.plus(1), q.plus(-1)]),
        ),
    );
    let z = b.next_var();
    let before = guard(
        eq(q.clone(), 0),
        Expr::int(ty, 0),
        at(z, &[c.clone(), q.plus(-1)]),
    );
    let term = mul(b.here(xs), read(w, &[q.clone()]));
    let z = b.var("Z", ty, add(before, term));
    let (value, done) = (b.here(z), eq(q, param(1).plus(-1)));
    b.output("z", ty, &[param(0)], vec![write(value, &[c], done)]);
    b
}
