//! Kernels built by hand, each with what it computes.

pub mod random;

use std::collections::BTreeMap;

use systola_interp::Tensor;
use systola_ir::kernel::{
    Access, Buffer, BufferKind, Host, Kernel, Memory, Op, Program, Reg, Shape, Shared, Size, Stmt,
    Value, Var, VarKind,
};
use systola_ir::mapping::Engine;
use systola_ir::system::Axis;
use systola_ir::{
    BinOp, BufferId, Cond, DimId, Form, KernelId, Literal, ParamId, Poly, RegId, Rel, Scalar,
    SharedId, ValueId,
};

/// A program with sizes, inputs and the outputs it must have.
pub struct Case {
    pub program: Program,
    pub sizes: Vec<i128>,
    pub inputs: BTreeMap<String, Tensor>,
    pub outputs: BTreeMap<String, Tensor>,
}

/// Σ coefficient·variable + constant.
pub fn lin(terms: &[(i128, DimId)], constant: i128) -> Form {
    terms.iter().fold(Form::from(constant), |sum, (c, d)| {
        sum.add(&Form::from(*d).scale(&Poly::constant(*c)).unwrap())
    })
}

pub fn less(left: impl Into<Form>, right: impl Into<Form>) -> Cond {
    Cond::cmp(Rel::Lt, left, right)
}

/// Builds a program with one kernel at a time.
pub struct Builder {
    pub program: Program,
    kernel: Kernel,
    /// The statements under construction, innermost last.
    bodies: Vec<Vec<Stmt>>,
}

fn empty_kernel() -> Kernel {
    Kernel {
        hints: Default::default(),
        name: String::new(),
        lanes: 1,
        warps: 1,
        vars: Vec::new(),
        shared: Vec::new(),
        regs: Vec::new(),
        values: Vec::new(),
        body: Vec::new(),
    }
}

impl Builder {
    pub fn new(name: &str, sizes: &[&str]) -> Builder {
        let size = |name: &&str| Size {
            name: name.to_string(),
            fixed: None,
        };
        Builder {
            program: Program {
                name: name.into(),
                params: sizes.iter().map(size).collect(),
                context: Vec::new(),
                buffers: Vec::new(),
                kernels: Vec::new(),
                host_vars: Vec::new(),
                body: Vec::new(),
            },
            kernel: empty_kernel(),
            bodies: vec![Vec::new()],
        }
    }

    pub fn size(&self, n: usize) -> Form {
        Form::from(ParamId::from(n))
    }

    pub fn buffer(&mut self, name: &str, ty: Scalar, kind: BufferKind, hi: &[Form]) -> BufferId {
        let axis = |hi: &Form| Axis {
            lo: Form::zero(),
            hi: hi.clone(),
        };
        self.program.buffers.push(Buffer {
            name: name.into(),
            ty,
            kind,
            axes: hi.iter().map(axis).collect(),
        });
        BufferId::from(self.program.buffers.len() - 1)
    }

    pub fn input(&mut self, name: &str, ty: Scalar, hi: &[Form]) -> BufferId {
        self.buffer(name, ty, BufferKind::Input { data: None }, hi)
    }

    pub fn output(&mut self, name: &str, ty: Scalar, hi: &[Form]) -> BufferId {
        self.buffer(name, ty, BufferKind::Output { fill: None }, hi)
    }

    pub fn begin(&mut self, name: &str, warps: u32, lanes: u32) {
        self.kernel = Kernel {
            hints: Default::default(),
            name: name.into(),
            lanes,
            warps,
            ..empty_kernel()
        };
    }

    /// Ends the kernel.
    pub fn end(&mut self) -> KernelId {
        let mut kernel = std::mem::replace(&mut self.kernel, empty_kernel());
        kernel.body = std::mem::take(&mut self.bodies[0]);
        self.program.kernels.push(kernel);
        KernelId::from(self.program.kernels.len() - 1)
    }

    /// Ends the kernel and launches it once.
    pub fn end_and_launch(&mut self) {
        let kernel = self.end();
        let args = Vec::new();
        self.program.body.push(Host::Launch { kernel, args });
    }

    pub fn var(&mut self, name: &str, kind: VarKind) -> DimId {
        self.kernel.vars.push(Var {
            name: name.into(),
            kind,
        });
        DimId::from(self.kernel.vars.len() - 1)
    }

    pub fn block(&mut self, name: &str, hi: impl Into<Form>) -> DimId {
        let (lo, hi) = (vec![Form::zero()], vec![hi.into()]);
        self.var(name, VarKind::Block { lo, hi })
    }

    pub fn warp(&mut self) -> DimId {
        self.var("w", VarKind::Warp)
    }

    pub fn lane(&mut self) -> DimId {
        self.var("l", VarKind::Lane)
    }

    pub fn shared(&mut self, name: &str, ty: Scalar, extents: &[i128]) -> SharedId {
        self.kernel.shared.push(Shared {
            name: name.into(),
            ty,
            extents: extents.iter().map(|e| Poly::constant(*e)).collect(),
        });
        SharedId::from(self.kernel.shared.len() - 1)
    }

    pub fn reg(&mut self, name: &str, ty: Scalar) -> RegId {
        self.kernel.regs.push(Reg {
            name: name.into(),
            ty,
            shape: Shape::Varying,
        });
        RegId::from(self.kernel.regs.len() - 1)
    }

    pub fn value(&mut self, name: &str, ty: Scalar) -> ValueId {
        self.kernel.values.push(Value {
            name: name.into(),
            ty,
            shape: Shape::Varying,
        });
        ValueId::from(self.kernel.values.len() - 1)
    }

    pub fn stmt(&mut self, stmt: Stmt) {
        self.bodies.last_mut().unwrap().push(stmt);
    }

    pub fn op(&mut self, name: &str, ty: Scalar, op: Op) -> ValueId {
        let value = self.value(name, ty);
        self.stmt(Stmt::Let(value, op));
        value
    }

    pub fn uniform(&mut self, name: &str, ty: Scalar, op: Op) -> ValueId {
        let value = self.op(name, ty, op);
        self.kernel.values[value.index()].shape = Shape::Uniform;
        value
    }

    pub fn lit(&mut self, ty: Scalar, value: Literal) -> ValueId {
        self.uniform("c", ty, Op::Lit(value))
    }

    pub fn binary(&mut self, op: BinOp, a: ValueId, b: ValueId) -> ValueId {
        let ty = match op.is_comparison() {
            true => Scalar::Bool,
            false => self.kernel.values[a.index()].ty,
        };
        self.op("t", ty, Op::Binary(op, a, b))
    }

    pub fn get(&mut self, reg: RegId) -> ValueId {
        let Reg { name, ty, .. } = self.kernel.regs[reg.index()].clone();
        self.op(&name, ty, Op::Get(reg))
    }

    pub fn load(&mut self, name: &str, ty: Scalar, from: Access) -> ValueId {
        let otherwise = None;
        self.op(name, ty, Op::Load { from, otherwise })
    }

    pub fn store(&mut self, to: Access, value: ValueId) {
        self.stmt(Stmt::Store { to, value });
    }

    pub fn repeat(
        &mut self,
        name: &str,
        lo: impl Into<Form>,
        hi: impl Into<Form>,
        body: impl FnOnce(&mut Builder, DimId),
    ) {
        let var = self.var(name, VarKind::Loop);
        self.bodies.push(Vec::new());
        body(self, var);
        let body = self.bodies.pop().unwrap();
        self.stmt(Stmt::For {
            var,
            lo: vec![lo.into()],
            hi: vec![hi.into()],
            step: 1,
            body,
        });
    }

    pub fn when(&mut self, cond: Cond, then: impl FnOnce(&mut Builder)) {
        self.bodies.push(Vec::new());
        then(self);
        let then = self.bodies.pop().unwrap();
        self.stmt(Stmt::If {
            cond,
            then,
            otherwise: Vec::new(),
        });
    }
}

pub fn global(buffer: BufferId, index: &[Form]) -> Access {
    Access::new(Memory::Global(buffer), index.to_vec())
}

pub fn shared(array: SharedId, index: &[Form]) -> Access {
    Access::new(Memory::Shared(array), index.to_vec())
}

pub fn given(access: Access, when: Cond) -> Access {
    Access { when, ..access }
}

fn floats(n: usize, scale: f32) -> Vec<f32> {
    (0..n)
        .map(|k| ((k * 7 + 3) % 23) as f32 * scale - 2.0)
        .collect()
}

fn arrays<const N: usize>(list: [(&str, Tensor); N]) -> BTreeMap<String, Tensor> {
    list.into_iter().map(|(n, t)| (n.to_string(), t)).collect()
}

/// z = a·x + y, with a tail.
pub fn saxpy(n: usize) -> Case {
    let mut b = Builder::new("saxpy", &["N"]);
    let size = b.size(0);
    let data = Some(vec![Literal::Float(2.5)]);
    let a = b.buffer("a", Scalar::F32, BufferKind::Input { data }, &[1.into()]);
    let x = b.input("x", Scalar::F32, std::slice::from_ref(&size));
    let y = b.input("y", Scalar::F32, std::slice::from_ref(&size));
    let z = b.output("z", Scalar::F32, std::slice::from_ref(&size));
    b.begin("saxpy", 2, 32);
    let blk = b.block("b", size.plus(63).floor_div(64));
    let (w, l) = (b.warp(), b.lane());
    let i = lin(&[(64, blk), (32, w), (1, l)], 0);
    let tail = less(i.clone(), size.clone());
    let at = |buffer| given(global(buffer, std::slice::from_ref(&i)), tail.clone());
    let (from, otherwise) = (global(a, &[0.into()]), None);
    let va = b.uniform("va", Scalar::F32, Op::Load { from, otherwise });
    let vx = b.load("vx", Scalar::F32, at(x));
    let vy = b.load("vy", Scalar::F32, at(y));
    let product = b.binary(BinOp::Mul, va, vx);
    let sum = b.binary(BinOp::Add, product, vy);
    b.store(at(z), sum);
    b.end_and_launch();
    let (dx, dy) = (floats(n, 0.5), floats(n, 0.25));
    let dz: Vec<f32> = dx.iter().zip(&dy).map(|(x, y)| 2.5 * x + y).collect();
    Case {
        program: b.program,
        sizes: vec![n as i128],
        inputs: arrays([("x", Tensor::vector(dx)), ("y", Tensor::vector(dy))]),
        outputs: arrays([("z", Tensor::vector(dz))]),
    }
}

/// y[i] = x[i−1] + x[i] + x[i+1] on 1..N−1: one warp streams over x with lane shifts.
pub fn stencil(n: usize) -> Case {
    let mut b = Builder::new("stencil", &["N"]);
    let size = b.size(0);
    let x = b.input("x", Scalar::F32, std::slice::from_ref(&size));
    let y = b.output("y", Scalar::F32, &[size.plus(-1)]);
    b.program.buffers[y.index()].axes[0].lo = 1.into();
    b.begin("stencil", 1, 8);
    let l = b.lane();
    let last = b.reg("last", Scalar::F32);
    b.repeat("t", 0, size.plus(7).floor_div(8), |b, t| {
        let i = lin(&[(8, t), (1, l)], 0);
        let inside = less(i.clone(), size.clone());
        let now = b.op(
            "now",
            Scalar::F32,
            Op::Load {
                from: given(global(x, std::slice::from_ref(&i)), inside.clone()),
                otherwise: Some(Literal::Int(0)),
            },
        );
        let before = b.get(last);
        let mut shifted = |by| {
            let (low, high) = (Some(before), Some(now));
            b.op("s", Scalar::F32, Op::LaneShift { low, high, by })
        };
        let (one, two) = (shifted(1), shifted(2));
        let sum = b.binary(BinOp::Add, two, one);
        let sum = b.binary(BinOp::Add, sum, now);
        let when = inside.and(Cond::cmp(Rel::Ge, i.clone(), 2));
        b.store(given(global(y, &[i.plus(-1)]), when), sum);
        b.stmt(Stmt::Set(last, now));
    });
    b.end_and_launch();
    let dx = floats(n, 1.0);
    let dy: Vec<f32> = dx.windows(3).map(|w| w[0] + w[1] + w[2]).collect();
    Case {
        program: b.program,
        sizes: vec![n as i128],
        inputs: arrays([("x", Tensor::vector(dx))]),
        outputs: arrays([("y", Tensor::vector(dy).starting_at(vec![1]))]),
    }
}

/// y = xᵀ in tiles of 32 × 32 through shared memory, four warps per block.
pub fn transpose(tiles: usize, padding: i128) -> Case {
    let mut b = Builder::new("transpose", &["T"]);
    let size = b.size(0).scale(&Poly::constant(32)).unwrap();
    let x = b.input("x", Scalar::F32, &[size.clone(), size.clone()]);
    let y = b.output("y", Scalar::F32, &[size.clone(), size]);
    b.begin("transpose", 4, 32);
    let count = b.size(0);
    let (bi, bj) = (b.block("bi", count.clone()), b.block("bj", count));
    let (w, l) = (b.warp(), b.lane());
    let tile = b.shared("tile", Scalar::F32, &[32, 32 + padding]);
    b.repeat("r", 0, 8, |b, r| {
        let row = lin(&[(4, r), (1, w)], 0);
        let from = [row.add(&lin(&[(32, bi)], 0)), lin(&[(32, bj), (1, l)], 0)];
        let value = b.load("v", Scalar::F32, global(x, &from));
        b.store(shared(tile, &[row, l.into()]), value);
    });
    b.stmt(Stmt::Barrier);
    b.repeat("s", 0, 8, |b, s| {
        let row = lin(&[(4, s), (1, w)], 0);
        let value = b.load("u", Scalar::F32, shared(tile, &[l.into(), row.clone()]));
        let to = [row.add(&lin(&[(32, bj)], 0)), lin(&[(32, bi), (1, l)], 0)];
        b.store(global(y, &to), value);
    });
    b.end_and_launch();
    let n = 32 * tiles;
    let dx = floats(n * n, 0.125);
    let dy: Vec<f32> = (0..n * n).map(|k| dx[(k % n) * n + k / n]).collect();
    Case {
        program: b.program,
        sizes: vec![tiles as i128],
        inputs: arrays([("x", Tensor::new(vec![n, n], dx).unwrap())]),
        outputs: arrays([("y", Tensor::new(vec![n, n], dy).unwrap())]),
    }
}

/// K times v[i] ← v[i−1] + v[i+1] with zeros outside, alternating between two buffers.
pub fn ping_pong(n: usize, steps: usize) -> Case {
    let mut b = Builder::new("ping_pong", &["N", "K"]);
    let (size, count) = (b.size(0), b.size(1));
    let x = b.input("x", Scalar::I32, std::slice::from_ref(&size));
    let y = b.output("y", Scalar::I32, std::slice::from_ref(&size));
    let v = b.buffer(
        "v",
        Scalar::I32,
        BufferKind::Temporary,
        &[2.into(), size.clone()],
    );
    let place = |b: &mut Builder| {
        let blk = b.block("b", size.plus(3).floor_div(4));
        let l = b.lane();
        lin(&[(4, blk), (1, l)], 0)
    };
    let inside = |i: &Form| less(i.clone(), size.clone());

    b.begin("first", 1, 4);
    let i = place(&mut b);
    let from = given(global(x, std::slice::from_ref(&i)), inside(&i));
    let value = b.load("a", Scalar::I32, from);
    b.store(given(global(v, &[0.into(), i.clone()]), inside(&i)), value);
    let first = b.end();

    b.begin("step", 1, 4);
    let h = b.var("h", VarKind::Host);
    let i = place(&mut b);
    let now = Form::from(h).modulo(2);
    let mut side = |by: i128, inside: Cond| {
        let from = given(global(v, &[now.clone(), i.plus(by)]), inside);
        let otherwise = Some(Literal::Int(0));
        b.op("a", Scalar::I32, Op::Load { from, otherwise })
    };
    let left = side(-1, less(0, i.clone()).and(less(i.plus(-1), size.clone())));
    let right = side(1, less(i.plus(1), size.clone()));
    let sum = b.binary(BinOp::Add, left, right);
    let next = Form::from(h).plus(1).modulo(2);
    b.store(given(global(v, &[next, i.clone()]), inside(&i)), sum);
    let step = b.end();

    b.begin("last", 1, 4);
    let i = place(&mut b);
    let from = given(global(v, &[count.modulo(2), i.clone()]), inside(&i));
    let value = b.load("a", Scalar::I32, from);
    b.store(
        given(global(y, std::slice::from_ref(&i)), inside(&i)),
        value,
    );
    let last = b.end();

    b.program.host_vars.push("k".into());
    let k = DimId(0);
    let launch = |kernel, args| Host::Launch { kernel, args };
    b.program.body = vec![
        launch(first, vec![]),
        Host::For {
            var: k,
            lo: vec![0.into()],
            hi: vec![count],
            // The other branch would skip the step.
            body: vec![Host::If {
                cond: Cond::cmp(Rel::Ge, k, 0),
                then: vec![launch(step, vec![k.into()])],
                otherwise: vec![launch(last, vec![])],
            }],
        },
        launch(last, vec![]),
    ];
    let dx: Vec<i32> = (0..n as i32).map(|k| k * k % 11 - 3).collect();
    let mut dy = dx.clone();
    for _ in 0..steps {
        let at = |k: usize| dy.get(k).copied().unwrap_or(0);
        dy = (0..n)
            .map(|k| (if k > 0 { at(k - 1) } else { 0 }) + at(k + 1))
            .collect();
    }
    Case {
        program: b.program,
        sizes: vec![n as i128, steps as i128],
        inputs: arrays([("x", Tensor::vector(dx))]),
        outputs: arrays([("y", Tensor::vector(dy))]),
    }
}

/// Reverses every tile of 16: two stages of copies, two warps that each read what the other one
/// copied.
pub fn staged(tiles: usize) -> Case {
    let mut b = Builder::new("staged", &["T"]);
    let count = b.size(0);
    let size = count.scale(&Poly::constant(16)).unwrap();
    let x = b.input("x", Scalar::F64, std::slice::from_ref(&size));
    let y = b.output("y", Scalar::F64, &[size]);
    b.begin("staged", 2, 8);
    let (w, l) = (b.warp(), b.lane());
    let stage = b.shared("stage", Scalar::F64, &[2, 16]);
    let fetch = |b: &mut Builder, tile: Form| {
        let column = lin(&[(8, w), (2, l)], 0);
        let source = tile.scale(&Poly::constant(16)).unwrap().add(&column);
        b.stmt(Stmt::Copy {
            to: given(shared(stage, &[tile.modulo(2), column]), less(l, 4)),
            from: global(x, &[source]),
            width: 2,
            engine: Engine::CpAsync,
        });
    };
    fetch(&mut b, 0.into());
    b.stmt(Stmt::CommitCopies);
    b.repeat("t", 0, count.clone(), |b, t| {
        b.when(less(Form::from(t).plus(1), count), |b| {
            fetch(b, Form::from(t).plus(1));
        });
        b.stmt(Stmt::CommitCopies);
        b.stmt(Stmt::WaitCopies { pending: 1 });
        b.stmt(Stmt::Barrier);
        let back = lin(&[(-8, w), (-1, l)], 15);
        let from = shared(stage, &[Form::from(t).modulo(2), back]);
        let value = b.load("v", Scalar::F64, from);
        b.store(global(y, &[lin(&[(16, t), (8, w), (1, l)], 0)]), value);
        b.stmt(Stmt::Barrier);
    });
    b.end_and_launch();
    let dx: Vec<f64> = (0..16 * tiles).map(|k| k as f64 / 4.0).collect();
    let dy: Vec<f64> = dx
        .chunks(16)
        .flat_map(|c| c.iter().rev().copied())
        .collect();
    Case {
        program: b.program,
        sizes: vec![tiles as i128],
        inputs: arrays([("x", Tensor::vector(dx))]),
        outputs: arrays([("y", Tensor::vector(dy))]),
    }
}

/// y[p] = y[p−1] + x[p], row after row: block p waits for block p − 1, with dynamic block ids.
pub fn pipeline(rows: usize) -> Case {
    let mut b = Builder::new("pipeline", &["P"]);
    let count = b.size(0);
    let x = b.input("x", Scalar::I64, &[count.clone(), 8.into()]);
    let y = b.output("y", Scalar::I64, &[count.clone(), 8.into()]);
    let ready = b.buffer(
        "ready",
        Scalar::I32,
        BufferKind::Flags,
        std::slice::from_ref(&count),
    );
    let next = b.buffer("next", Scalar::I32, BufferKind::Flags, &[1.into()]);
    b.begin("pipeline", 2, 4);
    b.block("b", count);
    let (w, l) = (b.warp(), b.lane());
    let p = b.var("p", VarKind::DynamicBlock);
    let sum = b.reg("sum", Scalar::I64);
    let counter = global(next, &[0.into()]);
    b.stmt(Stmt::DynamicBlock { var: p, counter });
    let column = lin(&[(4, w), (1, l)], 0);
    let mine = [Form::from(p), column.clone()];
    let value = b.load("a", Scalar::I64, global(x, &mine));
    b.stmt(Stmt::Set(sum, value));
    b.when(less(0, p), |b| {
        let before = Form::from(p).plus(-1);
        b.stmt(Stmt::Await {
            flag: global(ready, std::slice::from_ref(&before)),
            at_least: 1.into(),
        });
        let other = b.load("o", Scalar::I64, global(y, &[before, column.clone()]));
        let own = b.get(sum);
        let both = b.binary(BinOp::Add, own, other);
        b.stmt(Stmt::Set(sum, both));
    });
    let total = b.get(sum);
    b.store(global(y, &mine), total);
    let flag = global(ready, &[p.into()]);
    b.stmt(Stmt::Signal { flag });
    b.end_and_launch();
    let dx: Vec<i64> = (0..8 * rows as i64).map(|k| k * 5 % 17 - 4).collect();
    let mut dy = dx.clone();
    for k in 8..dy.len() {
        dy[k] += dy[k - 8];
    }
    Case {
        program: b.program,
        sizes: vec![rows as i128],
        inputs: arrays([("x", Tensor::new(vec![rows, 8], dx).unwrap())]),
        outputs: arrays([("y", Tensor::new(vec![rows, 8], dy).unwrap())]),
    }
}

/// y[i] = table[min(max(k[i], 0), 4)] with eight lanes; each lane then takes the value of its
/// mirror image.
pub fn lookup() -> Case {
    let mut b = Builder::new("lookup", &[]);
    let contents = [3, 1, 4, 1, 5].map(Literal::Int).to_vec();
    let data = Some(contents);
    let table = b.buffer("table", Scalar::U8, BufferKind::Input { data }, &[5.into()]);
    b.program.buffers[table.index()].axes[0] = Axis {
        lo: 10.into(),
        hi: 15.into(),
    };
    let k = b.input("k", Scalar::I16, &[8.into()]);
    let y = b.output("y", Scalar::U8, &[8.into()]);
    b.begin("lookup", 1, 8);
    let l = b.lane();
    let index = b.load("i", Scalar::I16, global(k, &[l.into()]));
    let (zero, four) = (
        b.lit(Scalar::I16, Literal::Int(0)),
        b.lit(Scalar::I16, Literal::Int(4)),
    );
    let index = b.binary(BinOp::Max, index, zero);
    let index = b.binary(BinOp::Min, index, four);
    let memory = Memory::Global(table);
    let index = vec![index];
    let found = b.op("v", Scalar::U8, Op::Lookup { memory, index });
    let from = lin(&[(-1, l)], 7);
    let value = found;
    let mirrored = b.op("m", Scalar::U8, Op::Shuffle { value, from });
    b.store(global(y, &[l.into()]), mirrored);
    b.end_and_launch();
    let dk = vec![-3i16, 0, 1, 2, 3, 4, 5, 100];
    let dy = vec![5u8, 5, 5, 1, 4, 1, 3, 3];
    Case {
        program: b.program,
        sizes: vec![],
        inputs: arrays([("k", Tensor::vector(dk))]),
        outputs: arrays([("y", Tensor::vector(dy))]),
    }
}

/// All of them, at small sizes.
pub fn all() -> Vec<Case> {
    vec![
        saxpy(150),
        stencil(21),
        transpose(2, 0),
        transpose(2, 1),
        ping_pong(13, 5),
        staged(5),
        pipeline(6),
        lookup(),
    ]
}
