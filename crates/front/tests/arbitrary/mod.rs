//! Random modules that can be written as text: well typed, with canonical forms; locals and
//! iterators of sums are numbered in source order.

use crate::rng::Rng;
use systola_ir::form::{Cond, Form, Poly, Rel};
use systola_ir::mapping::{
    Check, Direction, Directive, DirectiveKind, Engine, Layout, Mapping, Name, NameCond, NameExpr,
    NameExprKind, NameOp, Order, PlaceLevel, Residence, Rows, Store, SumStage, TimeLevel, Transfer,
};
use systola_ir::system::{
    Axis, Batch, Combine, Const, Dim, Expr, Function, Input, InputKind, Law, Module, Output, Param,
    Program, Source, Stage, System, Var, Write,
};
use systola_ir::{
    BinOp, ConstId, DimId, FnId, InputId, Literal, LocalId, ParamId, Scalar, Span, Type, UnOp,
    VarId,
};

pub fn module(rng: &mut Rng) -> Module {
    let systems: Vec<System> = (0..1 + rng.below(2))
        .map(|n| System::arbitrary(rng, format!("s{n}")))
        .collect();
    let mappings = (0..rng.below(3))
        .map(|n| Mapping {
            name: format!("m{n}"),
            system: "s0".to_string(),
            directives: (0..rng.below(12)).map(|_| directive(rng, 2)).collect(),
            span: Span::NONE,
        })
        .collect();
    let programs = (0..rng.below(2)).map(|_| program(rng, &systems)).collect();
    Module {
        systems,
        mappings,
        programs,
        hints: Vec::new(),
    }
}

trait Arbitrary {
    fn arbitrary(rng: &mut Rng, name: String) -> Self;
}

struct Gen<'r> {
    rng: &'r mut Rng,
    system: System,
    locals: Vec<(LocalId, Type)>,
    n_locals: usize,
    /// Iterators in scope.
    dims: Vec<DimId>,
    in_function: Option<usize>,
    in_write: bool,
}

fn ty(rng: &mut Rng) -> Type {
    if rng.chance(15) {
        Type::Tuple((0..2 + rng.below(2)).map(|_| ty(rng)).collect())
    } else {
        Type::Scalar(rng.pick(&Scalar::ALL))
    }
}

fn law(rng: &mut Rng) -> Law {
    rng.pick(&[Law::Fixed, Law::Associative, Law::Reorderable])
}

fn literal(rng: &mut Rng, ty: Scalar) -> Literal {
    if ty == Scalar::Bool {
        Literal::Bool(rng.chance(50))
    } else if let Some((least, greatest)) = ty.int_range() {
        Literal::Int(match rng.below(6) {
            0 => least,
            1 => greatest,
            2 => (-1).max(least),
            _ => rng.below(100) as i128,
        })
    } else {
        Literal::Float(rng.pick(&[
            0.0,
            -0.0,
            1.0,
            -2.0,
            0.1,
            1e-7,
            12345.678,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
            -f64::NAN,
            2.5e4,
        ]))
    }
}

impl Arbitrary for System {
    fn arbitrary(rng: &mut Rng, name: String) -> System {
        let n_params = rng.below(4);
        let mut g = Gen {
            rng,
            system: System {
                name,
                params: (0..n_params)
                    .map(|n| Param {
                        name: format!("P{n}"),
                        span: Span::NONE,
                    })
                    .collect(),
                ..System::default()
            },
            locals: Vec::new(),
            n_locals: 0,
            dims: Vec::new(),
            in_function: None,
            in_write: false,
        };
        g.declarations();
        g.bodies();
        g.system
    }
}

impl Gen<'_> {
    fn declarations(&mut self) {
        self.system.context = self.conds();
        for n in 0..self.rng.below(3) {
            let ty = self.rng.pick(&Scalar::ALL);
            let value = literal(self.rng, ty);
            self.system.consts.push(Const {
                name: format!("k{n}"),
                ty,
                value,
                span: Span::NONE,
            });
        }
        for n in 0..1 + self.rng.below(4) {
            let input = self.input(n);
            self.system.inputs.push(input);
        }
        if self.rng.chance(20) {
            let range = (self.form(1), self.form(1));
            let shared = if self.rng.chance(50) {
                vec![InputId(0)]
            } else {
                Vec::new()
            };
            self.system.batch = Some(Batch {
                name: "batch_index".to_string(),
                range,
                shared,
                span: Span::NONE,
            });
        }
        for n in 0..1 + self.rng.below(3) {
            let range = self.rng.chance(70).then(|| (self.form(2), self.form(2)));
            self.system.dims.push(Dim {
                name: format!("i{n}"),
                range,
                span: Span::NONE,
            });
            self.dims.push(DimId::from(n));
        }
        self.system.domain = self.conds();
        for n in 0..self.rng.below(3) {
            let params = (0..self.rng.below(4))
                .map(|k| (format!("a{n}_{k}"), ty(self.rng)))
                .collect();
            let (result, law) = (ty(self.rng), law(self.rng));
            self.system.functions.push(Function {
                name: format!("f{n}"),
                params,
                result,
                law,
                body: Expr::int(Scalar::Bool, 0),
                span: Span::NONE,
            });
        }
        // A type that supports the operator of a sum.
        let t = ty(self.rng);
        self.system.functions.push(Function {
            name: "pair".to_string(),
            params: vec![
                ("left".to_string(), t.clone()),
                ("right".to_string(), t.clone()),
            ],
            result: t,
            law: Law::Associative,
            body: Expr::Local(LocalId(1)),
            span: Span::NONE,
        });
        for n in 0..1 + self.rng.below(4) {
            let (ty, law) = (ty(self.rng), law(self.rng));
            self.system.vars.push(Var {
                name: format!("V{n}"),
                ty,
                law,
                own: None,
                on: Vec::new(),
                body: Expr::int(Scalar::Bool, 0),
                span: Span::NONE,
            });
        }
    }

    fn input(&mut self, n: usize) -> Input {
        let ty = self.rng.pick(&Scalar::ALL);
        let table = self.rng.chance(40);
        let with_data = table && self.rng.chance(50);
        let mut n_elements = 1;
        let axes: Vec<Axis> = (0..self.rng.below(3))
            .map(|_| {
                if with_data {
                    let (lo, extent) = (self.rng.below(3) as i128 - 1, self.rng.below(4) as i128);
                    n_elements *= extent;
                    Axis {
                        lo: Form::from(lo),
                        hi: Form::from(lo + extent),
                    }
                } else {
                    let lo = if self.rng.chance(70) {
                        Form::zero()
                    } else {
                        self.form(1)
                    };
                    Axis {
                        lo,
                        hi: self.form(1),
                    }
                }
            })
            .collect();
        let data = with_data.then(|| (0..n_elements).map(|_| literal(self.rng, ty)).collect());
        let outside = self.rng.chance(30).then(|| literal(self.rng, ty));
        Input {
            name: format!("x{n}"),
            ty,
            kind: if table {
                InputKind::Table { data }
            } else {
                InputKind::Array
            },
            axes,
            outside,
            span: Span::NONE,
        }
    }

    fn bodies(&mut self) {
        let dims = std::mem::take(&mut self.dims);
        for n in 0..self.system.functions.len() {
            self.in_function = Some(n);
            let params: Vec<Type> = self.system.functions[n]
                .params
                .iter()
                .map(|p| p.1.clone())
                .collect();
            self.n_locals = params.len();
            self.locals = params
                .into_iter()
                .enumerate()
                .map(|(n, t)| (LocalId::from(n), t))
                .collect();
            let result = self.system.functions[n].result.clone();
            self.system.functions[n].body = self.expr(&result, 4);
        }
        self.in_function = None;
        self.dims = dims;
        for n in 0..self.system.vars.len() {
            self.locals.clear();
            self.n_locals = 0;
            self.system.vars[n].on = self.conds();
            let t = self.system.vars[n].ty.clone();
            self.system.vars[n].body = self.expr(&t, 5);
        }
        self.in_write = true;
        for n in 0..self.rng.below(3) {
            let ty = self.rng.pick(&Scalar::ALL);
            let dims = std::mem::take(&mut self.dims);
            let axes: Vec<Axis> = (0..self.rng.below(3))
                .map(|_| Axis {
                    lo: self.form(1),
                    hi: self.form(1),
                })
                .collect();
            self.dims = dims;
            let writes = (0..1 + self.rng.below(3))
                .map(|_| {
                    self.locals.clear();
                    self.n_locals = 0;
                    Write {
                        of: None,
                        value: self.expr(&Type::Scalar(ty), 3),
                        index: axes.iter().map(|_| self.form(2)).collect(),
                        when: if self.rng.chance(30) {
                            Cond::TRUE
                        } else {
                            self.cond(2)
                        },
                        span: Span::NONE,
                    }
                })
                .collect();
            let fill = self.rng.chance(50).then(|| literal(self.rng, ty));
            self.system.outputs.push(Output {
                name: format!("z{n}"),
                ty,
                axes,
                writes,
                fill,
                span: Span::NONE,
            });
        }
    }

    fn poly(&mut self) -> Poly {
        if self.rng.chance(80) || self.system.params.is_empty() {
            return Poly::constant(self.rng.below(9) as i128 - 4);
        }
        let p = Poly::param(ParamId::from(self.rng.below(self.system.params.len())));
        let c = Poly::constant(self.rng.below(5) as i128 - 2);
        p.mul(&c).expect("small")
    }

    fn form(&mut self, depth: usize) -> Form {
        let mut form = Form::from(self.poly());
        for _ in 0..self.rng.below(3) {
            let atom = match self.rng.below(4) {
                0 if depth > 0 => self
                    .form(depth - 1)
                    .floor_div(1 + self.rng.below(5) as i128),
                1 if depth > 0 => self.form(depth - 1).modulo(1 + self.rng.below(5) as i128),
                2 if !self.system.params.is_empty() => {
                    Form::from(ParamId::from(self.rng.below(self.system.params.len())))
                }
                _ if !self.dims.is_empty() => Form::from(self.rng.pick(&self.dims)),
                _ => Form::from(3),
            };
            form = form.add(&atom.scale(&self.poly()).expect("small"));
        }
        form
    }

    fn conds(&mut self) -> Vec<Cond> {
        (0..self.rng.below(3)).map(|_| self.cond(2)).collect()
    }

    fn cond(&mut self, depth: usize) -> Cond {
        let many = |g: &mut Self| (0..2 + g.rng.below(2)).map(|_| g.cond(depth - 1)).collect();
        match self.rng.below(8) {
            0 if depth > 0 => Cond::And(many(self)),
            1 if depth > 0 => Cond::Or(many(self)),
            2 if depth > 0 => Cond::Not(Box::new(self.cond(depth - 1))),
            3 => Cond::Const(self.rng.chance(50)),
            _ => {
                let rel = self
                    .rng
                    .pick(&[Rel::Eq, Rel::Ne, Rel::Lt, Rel::Le, Rel::Gt, Rel::Ge]);
                Cond::Cmp(rel, self.form(2), self.form(2))
            }
        }
    }

    fn boxed(&mut self, ty: &Type, depth: usize) -> Box<Expr> {
        Box::new(self.expr(ty, depth))
    }

    /// An expression that cannot be an index expression, so that a condition on it is a value.
    fn opaque(&mut self, ty: Scalar, depth: usize) -> Expr {
        let from = self.rng.pick(&Scalar::ALL);
        Expr::Cast(ty, self.boxed(&Type::Scalar(from), depth.saturating_sub(1)))
    }

    fn expr(&mut self, ty: &Type, depth: usize) -> Expr {
        if depth == 0 {
            return self.leaf(ty);
        }
        match self.rng.below(14) {
            0..=2 => self.leaf(ty),
            3 => Expr::Guard {
                cond: self.cond(2),
                then: self.boxed(ty, depth - 1),
                otherwise: self.rng.chance(80).then(|| self.boxed(ty, depth - 1)),
            },
            4 => Expr::Select {
                cond: {
                    let t = self.rng.pick(&[Scalar::F32, Scalar::I8, Scalar::U64]);
                    let left = self.opaque(t, depth - 1);
                    Box::new(Expr::binary(
                        BinOp::Le,
                        left,
                        self.expr(&Type::Scalar(t), depth - 1),
                    ))
                },
                then: self.boxed(ty, depth - 1),
                otherwise: self.boxed(ty, depth - 1),
            },
            5 => {
                let local = LocalId::from(self.n_locals);
                self.n_locals += 1;
                let name = format!("h{}", local.index());
                let t = self::ty(self.rng);
                let value = self.boxed(&t, depth - 1);
                self.locals.push((local, t));
                let body = self.boxed(ty, depth - 1);
                self.locals.pop();
                Expr::Let {
                    local,
                    name,
                    value,
                    body,
                }
            }
            6 => {
                // A field of a tuple that contains one of this type.
                let mut parts: Vec<Type> = (0..2).map(|_| self::ty(self.rng)).collect();
                let field = self.rng.below(2);
                parts[field] = ty.clone();
                Expr::Field(self.boxed(&Type::Tuple(parts), depth - 1), field)
            }
            7 => self.call(ty, depth).unwrap_or_else(|| self.leaf(ty)),
            8 if self.in_function.is_none() && !self.in_write => self.sum(ty, depth),
            _ => match ty {
                Type::Tuple(parts) => {
                    let parts = parts.clone();
                    Expr::Tuple(parts.iter().map(|t| self.expr(t, depth - 1)).collect())
                }
                Type::Scalar(s) => self.operator(*s, depth),
            },
        }
    }

    fn call(&mut self, ty: &Type, depth: usize) -> Option<Expr> {
        let limit = self.in_function.unwrap_or(self.system.functions.len());
        let candidates: Vec<usize> = (0..limit)
            .filter(|n| self.system.functions[*n].result == *ty)
            .collect();
        if candidates.is_empty() {
            return None;
        }
        let f = self.rng.pick(&candidates);
        let params = self.system.functions[f].params.clone();
        let args = params
            .iter()
            .map(|(_, t)| self.expr(t, depth - 1))
            .collect();
        Some(Expr::Call(FnId::from(f), args))
    }

    fn sum(&mut self, ty: &Type, depth: usize) -> Expr {
        let pair = self.system.functions.len() - 1;
        let op = match ty {
            t if *t == self.system.functions[pair].result && self.rng.chance(60) => {
                Combine::Fn(FnId::from(pair))
            }
            Type::Scalar(Scalar::Bool) => {
                Combine::Op(self.rng.pick(&[BinOp::And, BinOp::Or, BinOp::BitXor]))
            }
            Type::Scalar(_) => {
                Combine::Op(
                    self.rng
                        .pick(&[BinOp::Add, BinOp::Mul, BinOp::Min, BinOp::Max]),
                )
            }
            Type::Tuple(_) => return self.leaf(ty),
        };
        if self.rng.chance(40) {
            let dim = DimId::from(self.rng.below(self.system.dims.len()));
            return Expr::Scan {
                op,
                dim,
                body: self.boxed(ty, depth - 1),
                span: Span::NONE,
            };
        }
        let n_scope = self.dims.len();
        let dims: Vec<DimId> = (0..1 + self.rng.below(2))
            .map(|_| {
                let range = Some((self.form(1), self.form(1)));
                let id = DimId::from(self.system.dims.len() + self.system.bound.len());
                self.system.bound.push(Dim {
                    name: format!("b{}", id.index()),
                    range,
                    span: Span::NONE,
                });
                self.dims.push(id);
                id
            })
            .collect();
        let body = self.boxed(ty, depth - 1);
        self.dims.truncate(n_scope);
        Expr::Reduce {
            op,
            dims,
            body,
            span: Span::NONE,
        }
    }

    fn operator(&mut self, s: Scalar, depth: usize) -> Expr {
        let t = Type::Scalar(s);
        let float = [
            BinOp::Add,
            BinOp::Sub,
            BinOp::Mul,
            BinOp::Div,
            BinOp::Min,
            BinOp::Max,
        ];
        let int = [
            BinOp::Rem,
            BinOp::BitAnd,
            BinOp::BitOr,
            BinOp::BitXor,
            BinOp::Shl,
            BinOp::Shr,
        ];
        if self.rng.chance(20) {
            let op = if s == Scalar::Bool {
                UnOp::Not
            } else if s.is_int() {
                self.rng.pick(&[UnOp::Neg, UnOp::Not, UnOp::Abs])
            } else {
                self.rng
                    .pick(&[&[UnOp::Neg], &UnOp::FUNCTIONS[..]].concat())
            };
            return Expr::Unary(op, self.boxed(&t, depth - 1));
        }
        if self.rng.chance(15) {
            return self.opaque(s, depth);
        }
        let op = if s == Scalar::Bool {
            let compare = [
                BinOp::Eq,
                BinOp::Ne,
                BinOp::Lt,
                BinOp::Le,
                BinOp::Gt,
                BinOp::Ge,
            ];
            if self.rng.chance(50) {
                let op = self.rng.pick(&compare);
                let of = self.rng.pick(&Scalar::ALL);
                let of = if of == Scalar::Bool && op != BinOp::Eq && op != BinOp::Ne {
                    Scalar::F32
                } else {
                    of
                };
                let left = self.expr(&Type::Scalar(of), depth - 1);
                return Expr::binary(op, left, self.expr(&Type::Scalar(of), depth - 1));
            }
            self.rng.pick(&[
                BinOp::And,
                BinOp::Or,
                BinOp::BitAnd,
                BinOp::BitOr,
                BinOp::BitXor,
            ])
        } else if s.is_int() {
            self.rng.pick(&[float.as_slice(), int.as_slice()].concat())
        } else if self.rng.chance(10) {
            BinOp::Pow
        } else {
            self.rng.pick(&float)
        };
        let left = self.expr(&t, depth - 1);
        let mut right = self.expr(&t, depth - 1);
        if matches!(op, BinOp::Div | BinOp::Rem) && right == Expr::Lit(s, Literal::Int(0)) {
            right = Expr::Lit(s, Literal::Int(1));
        }
        Expr::binary(op, left, right)
    }

    fn leaf(&mut self, ty: &Type) -> Expr {
        let mut choices: Vec<Expr> = Vec::new();
        for (local, t) in &self.locals {
            if t == ty {
                choices.push(Expr::Local(*local));
            }
        }
        if self.in_function.is_none() {
            for v in 0..self.system.vars.len() {
                if self.system.vars[v].ty == *ty {
                    let index = if self.in_write || self.rng.chance(40) {
                        self.system.identity_index()
                    } else {
                        (0..self.system.dims.len()).map(|_| self.form(1)).collect()
                    };
                    choices.push(Expr::Var {
                        var: VarId::from(v),
                        index,
                        span: Span::NONE,
                    });
                }
            }
        }
        let Type::Scalar(s) = ty else {
            let Type::Tuple(parts) = ty else {
                unreachable!()
            };
            if choices.is_empty() || self.rng.chance(50) {
                let parts = parts.clone();
                return Expr::Tuple(parts.iter().map(|t| self.leaf(t)).collect());
            }
            return self.rng.pick(&choices);
        };
        for k in 0..self.system.consts.len() {
            if self.system.consts[k].ty == *s {
                choices.push(Expr::Const(ConstId::from(k)));
            }
        }
        if *s == Scalar::I64 {
            choices.extend(self.dims.iter().map(|d| Expr::Iter(*d)));
            choices.extend((0..self.system.params.len()).map(|p| Expr::Param(ParamId::from(p))));
        }
        for n in 0..self.system.inputs.len() {
            if self.system.inputs[n].ty == *s {
                let table = self.system.inputs[n].kind != InputKind::Array;
                let n_axes = self.system.inputs[n].axes.len();
                let input = InputId::from(n);
                if table && n_axes > 0 && self.rng.chance(50) {
                    let index = (0..n_axes)
                        .map(|_| {
                            let t = self.rng.pick(&[Scalar::I32, Scalar::U8, Scalar::I64]);
                            let from = self.rng.pick(&Scalar::ALL);
                            Expr::Cast(t, Box::new(Expr::Lit(from, literal(self.rng, from))))
                        })
                        .collect();
                    choices.push(Expr::Lookup {
                        input,
                        index,
                        span: Span::NONE,
                    });
                } else if table || self.in_function.is_none() {
                    let index = (0..n_axes).map(|_| self.form(2)).collect();
                    choices.push(Expr::Input {
                        input,
                        index,
                        span: Span::NONE,
                    });
                }
            }
        }
        if choices.is_empty() || self.rng.chance(40) {
            return Expr::Lit(*s, literal(self.rng, *s));
        }
        self.rng.pick(&choices)
    }
}

fn name(rng: &mut Rng) -> Name {
    Name::from(rng.pick(&[
        "c", "q", "lane", "time", "X", "w", "oc", "check", "tile", "shared", "x'",
    ]))
}

fn names(rng: &mut Rng) -> Vec<Name> {
    (0..rng.below(4)).map(|_| name(rng)).collect()
}

fn name_expr(rng: &mut Rng, depth: usize) -> NameExpr {
    match rng.below(6) {
        0 if depth > 0 => NameExprKind::Neg(Box::new(name_expr(rng, depth - 1))).into(),
        1..=3 if depth > 0 => {
            let op = rng.pick(&[
                NameOp::Add,
                NameOp::Sub,
                NameOp::Mul,
                NameOp::Div,
                NameOp::Mod,
            ]);
            NameExpr::binary(op, name_expr(rng, depth - 1), name_expr(rng, depth - 1))
        }
        4 => NameExpr::int(rng.below(20) as i128 - 10),
        _ => NameExpr::name(name(rng).text),
    }
}

fn name_exprs(rng: &mut Rng) -> Vec<NameExpr> {
    (0..rng.below(4)).map(|_| name_expr(rng, 3)).collect()
}

fn name_cond(rng: &mut Rng, depth: usize) -> NameCond {
    let many = |rng: &mut Rng| {
        (0..2 + rng.below(2))
            .map(|_| name_cond(rng, depth - 1))
            .collect()
    };
    match rng.below(5) {
        0 if depth > 0 => NameCond::And(many(rng)),
        1 if depth > 0 => NameCond::Or(many(rng)),
        2 if depth > 0 => NameCond::Not(Box::new(name_cond(rng, depth - 1))),
        _ => NameCond::Cmp(
            rng.pick(&[Rel::Eq, Rel::Ne, Rel::Lt, Rel::Le, Rel::Gt, Rel::Ge]),
            name_expr(rng, 2),
            name_expr(rng, 2),
        ),
    }
}

fn directive(rng: &mut Rng, depth: usize) -> Directive {
    let check = |rng: &mut Rng| rng.pick(&[Check::Auto, Check::Check, Check::Trust]);
    let store = |rng: &mut Rng| rng.pick(&[Store::Registers, Store::Shared, Store::Constant]);
    let kind = match rng.below(22) {
        0 => DirectiveKind::Tile {
            dim: name(rng),
            size: name_expr(rng, 2),
            outer: name(rng),
            inner: name(rng),
            overlap: rng
                .chance(50)
                .then(|| (name_expr(rng, 1), name_expr(rng, 1))),
            periodic: rng.chance(50),
        },
        1 => DirectiveKind::Place {
            level: rng.pick(&PlaceLevel::ALL),
            forms: name_exprs(rng),
        },
        2 => DirectiveKind::Time {
            level: rng.pick(&TimeLevel::ALL),
            forms: name_exprs(rng),
        },
        3 if depth > 0 => DirectiveKind::When {
            cond: name_cond(rng, 2),
            directives: (0..rng.below(3))
                .map(|_| directive(rng, depth - 1))
                .collect(),
        },
        4 => DirectiveKind::Forward {
            input: name(rng),
            along: name_exprs(rng),
        },
        5 => DirectiveKind::Read { input: name(rng) },
        6 => DirectiveKind::Sum {
            var: name(rng),
            stages: (0..=rng.below(3))
                .map(|_| match rng.below(3) {
                    0 => SumStage::Tree(Vec::new()),
                    1 => SumStage::Tree(names(rng)),
                    _ => SumStage::Along(
                        names(rng)
                            .into_iter()
                            .map(|n| (n, rng.pick(&[Direction::Up, Direction::Down])))
                            .collect(),
                    ),
                })
                .collect(),
        },
        7 => DirectiveKind::Broadcast { var: name(rng) },
        8 => DirectiveKind::Transfer(Transfer {
            source: name(rng),
            store: store(rng),
            at: rng.chance(50).then(|| name(rng)),
            stages: rng.below(4) as u64,
            layout: Layout {
                order: rng.pick(&[Order::Rows, Order::Columns]),
                rows: rng.pick(&[Rows::Chosen, Rows::Plain, Rows::Pad(3), Rows::Rotate]),
            },
            engine: rng.pick(&[Engine::Plain, Engine::CpAsync, Engine::Bulk]),
        }),
        9 => DirectiveKind::Unroll {
            name: name(rng),
            factor: rng.chance(50).then(|| rng.next()),
        },
        10 => DirectiveKind::Check(check(rng)),
        11 => DirectiveKind::Reverse {
            bindings: (0..rng.below(3))
                .map(|_| (name(rng), name_expr(rng, 2)))
                .collect(),
        },
        12 => DirectiveKind::Flags,
        13 => DirectiveKind::Func {
            name: name(rng),
            ty: rng.chance(50).then(|| ty(rng)),
            args: names(rng),
            residence: rng.pick(&[Residence::Host, Residence::Device]),
        },
        14 => DirectiveKind::MergeUres {
            func: name(rng),
            others: names(rng),
        },
        15 => DirectiveKind::TileLoop {
            func: name(rng),
            loop_name: name(rng),
            outer: name(rng),
            inner: name(rng),
            factor: name_expr(rng, 2),
        },
        16 => DirectiveKind::Reorder {
            func: name(rng),
            loops: names(rng),
        },
        17 => DirectiveKind::GpuBlocks {
            func: name(rng),
            loops: names(rng),
        },
        18 => DirectiveKind::GpuThreads {
            func: name(rng),
            loops: names(rng),
        },
        19 => DirectiveKind::In {
            producer: name(rng),
            consumer: name(rng),
            compute_at: rng.chance(50).then(|| (name(rng), name(rng))),
            store_in: rng.chance(50).then(|| store(rng)),
        },
        20 => DirectiveKind::SpaceTimeTransform {
            func: name(rng),
            src: names(rng),
            dst: names(rng),
            matrix: (0..rng.below(3)).map(|_| name_exprs(rng)).collect(),
            reverse: rng.chance(50).then(|| name_exprs(rng)),
            check: rng.chance(50).then(|| check(rng)),
        },
        _ => DirectiveKind::Read { input: name(rng) },
    };
    kind.into()
}

/// A program whose parameters are those of one of the systems.
fn program(rng: &mut Rng, systems: &[System]) -> Program {
    let at = rng.below(systems.len());
    let system = &systems[at];
    let args: Vec<Form> = (0..system.params.len())
        .map(|p| Form::from(ParamId::from(p)))
        .collect();
    let mut inputs = Vec::new();
    let mut connected = Vec::new();
    for (n, input) in system.inputs.iter().enumerate() {
        if matches!(&input.kind, InputKind::Table { data: Some(_) }) {
            continue;
        }
        let mut axes = input.axes.clone();
        if let Some(batch) = system
            .batch
            .as_ref()
            .filter(|b| !b.shared.contains(&InputId::from(n)))
        {
            let (lo, hi) = batch.range.clone();
            axes.insert(0, Axis { lo, hi });
        }
        connected.push((InputId::from(n), Source::Input(inputs.len())));
        inputs.push(Input {
            name: format!("y{n}"),
            ty: input.ty,
            kind: InputKind::Array,
            axes,
            outside: None,
            span: Span::NONE,
        });
    }
    let stages: Vec<Stage> = (0..1 + rng.below(2))
        .map(|n| Stage {
            name: format!("stage{n}"),
            system: at,
            args: args.clone(),
            inputs: connected.clone(),
            span: Span::NONE,
        })
        .collect();
    let outputs = (0..system.outputs.len())
        .map(|n| {
            let stage = rng.below(stages.len());
            (format!("out{n}"), Source::Output { stage, output: n })
        })
        .collect();
    Program {
        name: "p0".to_string(),
        params: system.params.clone(),
        context: system.context.clone(),
        inputs,
        stages,
        outputs,
        span: Span::NONE,
    }
}
