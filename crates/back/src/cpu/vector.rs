//! Operations on values, some of which are vectors.
//!
//! A uniform value is a scalar. C allows it to be mixed with vectors, so it is converted to a
//! vector only where a helper needs one. A `bool` of each lane is a mask as wide as the values that
//! were compared; it is resized where another width is needed.

use systola_ir::form::Form;
use systola_ir::kernel::{Op, Shape};
use systola_ir::{BinOp, Literal, Scalar, UnOp, ValueId};

use super::lanes::Vector;
use super::{Cpu, ONE_BY_ONE, Rep};
use crate::context::Context;
use crate::error::Fault;
use crate::expr::Expr;
use crate::index::number;
use crate::prelude::File;
use crate::scalar::{self, c_type, signed};

/// A value that was read.
#[derive(Clone, Debug)]
pub struct Operand {
    pub expr: Expr,
    pub ty: Scalar,
    pub rep: Rep,
    /// Its value, if it is a literal.
    pub literal: Option<Literal>,
}

/// An expression and how it represents the value.
pub type Printed = Result<(Expr, Rep), Fault>;

impl Cpu {
    pub fn read(&self, cx: &mut Context<'_>, value: ValueId) -> Operand {
        Operand {
            expr: cx.take(value),
            ty: cx.kernel.values[value.index()].ty,
            rep: self.reps[value.index()],
            literal: self.literals[value.index()],
        }
    }

    /// The operand as a vector of its type.
    pub fn vector(&self, cx: &mut Context<'_>, a: &Operand) -> Result<Expr, Fault> {
        match a.rep {
            Rep::Vector => Ok(a.expr.clone()),
            Rep::Scalar => {
                let splat = Vector::new(a.ty, self.lanes).splat(cx.prelude)?;
                Ok(Expr::call(&splat, std::slice::from_ref(&a.expr)))
            }
            Rep::Mask(_) => unreachable!("a mask is no vector of {}", a.ty),
        }
    }

    /// The `bool` as a mask with elements of this width in bits.
    pub fn mask_value(&self, cx: &mut Context<'_>, a: &Operand, bits: u32) -> Result<Expr, Fault> {
        match a.rep {
            Rep::Mask(from) => self.resized(cx, a.expr.clone(), from, bits),
            Rep::Scalar => {
                let splat = Vector::new(signed(bits), self.lanes).splat(cx.prelude)?;
                Ok(Expr::call(&splat, &[Expr::unary("-", &a.expr)]))
            }
            Rep::Vector => unreachable!("a bool of each lane is a mask"),
        }
    }

    pub fn print_op(&mut self, cx: &mut Context<'_>, value: ValueId, op: &Op) -> Printed {
        let ty = cx.kernel.values[value.index()].ty;
        c_type(ty)?;
        match op {
            Op::Lit(literal) => {
                self.literals[value.index()] = Some(*literal);
                Ok((scalar::literal(cx.prelude, ty, *literal)?, Rep::Scalar))
            }
            Op::Index(form) => self.index(cx, form),
            Op::Get(reg) => {
                let name = cx.regs[reg.index()].clone();
                Ok((Expr::atom(name), self.reg_rep(cx, *reg)))
            }
            Op::Unary(op, a) => {
                let a = self.read(cx, *a);
                self.unary(cx, *op, &a)
            }
            Op::Binary(op, a, b) => {
                let (a, b) = (self.read(cx, *a), self.read(cx, *b));
                self.binary(cx, *op, &a, &b)
            }
            Op::Cast(a) => {
                let a = self.read(cx, *a);
                self.cast(cx, &a, ty)
            }
            Op::Select {
                cond,
                then,
                otherwise,
            } => {
                let cond = self.read(cx, *cond);
                let (then, otherwise) = (self.read(cx, *then), self.read(cx, *otherwise));
                match cond.rep {
                    Rep::Scalar => self.branch(cx, &cond.expr, &then, &otherwise),
                    Rep::Mask(own) => {
                        let bits = self.choice_width(&then, &otherwise, own);
                        let mask = self.mask_value(cx, &cond, bits)?;
                        self.choose(cx, mask, &then, &otherwise, bits)
                    }
                    Rep::Vector => unreachable!("a bool of each lane is a mask"),
                }
            }
            Op::Choose {
                cond,
                then,
                otherwise,
            } => {
                let (then, otherwise) = (self.read(cx, *then), self.read(cx, *otherwise));
                if self.is_uniform(cond) {
                    let cond = cx.cond(cond)?;
                    return self.branch(cx, &cond, &then, &otherwise);
                }
                let bits = self.choice_width(&then, &otherwise, 32);
                let mut mask = self.mask(cx, cond, bits)?;
                if self.shared_masks.contains(cond) {
                    let ty = Vector::new(signed(bits), self.lanes).name(cx.prelude)?;
                    mask = cx.name_once(&ty, "where", &mask);
                }
                self.choose(cx, mask, &then, &otherwise, bits)
            }
            Op::Load { from, otherwise } => self.load(cx, value, from, 0, *otherwise),
            Op::Lookup { memory, index } => {
                let index: Vec<Operand> = index.iter().map(|v| self.read(cx, *v)).collect();
                self.lookup(cx, *memory, &index, ty)
            }
            Op::Shuffle { value, from } => self.shuffle(cx, *value, from),
            Op::LaneShift { low, high, by } => self.lane_shift(cx, *low, *high, *by),
        }
    }

    fn index(&mut self, cx: &mut Context<'_>, form: &Form) -> Printed {
        if let Some(c) = form.as_constant() {
            let c = i64::try_from(c).map_err(|_| Fault::Overflow)?;
            return Ok((scalar::index_literal(c, true), Rep::Scalar));
        }
        if self.lane.is_none_or(|lane| !form.dims().contains(&lane)) {
            return Ok((cx.form(form)?, Rep::Scalar));
        }
        Ok((self.index_vector(cx, form)?, Rep::Vector))
    }

    /// The width of the mask that selects between two values; `own` where both are uniform bools.
    pub fn choice_width(&self, a: &Operand, b: &Operand, own: u32) -> u32 {
        match (a.rep, b.rep) {
            (Rep::Mask(bits), _) | (_, Rep::Mask(bits)) => bits,
            (Rep::Scalar | Rep::Vector, Rep::Scalar | Rep::Vector) if a.ty == Scalar::Bool => own,
            (Rep::Scalar | Rep::Vector, Rep::Scalar | Rep::Vector) => a.ty.bits(),
        }
    }

    /// A selection by a uniform condition.
    fn branch(&self, cx: &mut Context<'_>, cond: &Expr, a: &Operand, b: &Operand) -> Printed {
        if a.rep == Rep::Scalar && b.rep == Rep::Scalar {
            let e = scalar::choice(a.ty, cond, &a.expr, &b.expr)?;
            return Ok((e, Rep::Scalar));
        }
        if a.ty == Scalar::Bool {
            let bits = self.choice_width(a, b, 32);
            let (a, b) = (self.mask_value(cx, a, bits)?, self.mask_value(cx, b, bits)?);
            return Ok((Expr::ternary(cond, &a, &b), Rep::Mask(bits)));
        }
        let (a, b) = (self.vector(cx, a)?, self.vector(cx, b)?);
        Ok((Expr::ternary(cond, &a, &b), Rep::Vector))
    }

    /// A selection by a mask with elements of this width in bits.
    fn choose(
        &self,
        cx: &mut Context<'_>,
        mask: Expr,
        a: &Operand,
        b: &Operand,
        bits: u32,
    ) -> Printed {
        if a.ty == Scalar::Bool {
            let select = Vector::new(signed(bits), self.lanes).select(cx.prelude)?;
            let (a, b) = (self.mask_value(cx, a, bits)?, self.mask_value(cx, b, bits)?);
            return Ok((Expr::call(&select, &[mask, a, b]), Rep::Mask(bits)));
        }
        let select = Vector::new(a.ty, self.lanes).select(cx.prelude)?;
        let (a, b) = (self.vector(cx, a)?, self.vector(cx, b)?);
        Ok((Expr::call(&select, &[mask, a, b]), Rep::Vector))
    }

    fn unary(&self, cx: &mut Context<'_>, op: UnOp, a: &Operand) -> Printed {
        if a.rep == Rep::Scalar {
            return Ok((scalar::unary(cx.prelude, op, a.ty, &a.expr)?, Rep::Scalar));
        }
        match op {
            UnOp::Neg => Ok((Expr::unary("-", &a.expr), a.rep)),
            UnOp::Not => Ok((Expr::unary("~", &a.expr), a.rep)),
            UnOp::Abs if !a.ty.is_float() && !a.ty.is_signed_int() => Ok((a.expr.clone(), a.rep)),
            UnOp::Abs => {
                let vector = Vector::new(a.ty, self.lanes);
                let name = format!("abs_{}", vector.name(cx.prelude)?);
                let greatest = format!("INT{}_MAX", a.ty.bits());
                let section = if a.ty.is_float() { "abs_float" } else { "abs" };
                vector.add(cx.prelude, &name, section, &[('A', &greatest)])?;
                Ok((
                    Expr::call(&name, std::slice::from_ref(&a.expr)),
                    Rep::Vector,
                ))
            }
            UnOp::Sqrt | UnOp::Rsqrt | UnOp::Floor | UnOp::Ceil => {
                scalar::unary_helper(cx.prelude, op, a.ty)?;
                let vector = Vector::new(a.ty, self.lanes);
                let name = format!("{}_{}", op.name(), vector.name(cx.prelude)?);
                vector.add(cx.prelude, &name, "lanes1", &[('F', op.name())])?;
                Ok((
                    Expr::call(&name, std::slice::from_ref(&a.expr)),
                    Rep::Vector,
                ))
            }
            UnOp::Exp | UnOp::Log | UnOp::Sin | UnOp::Cos | UnOp::Tanh => {
                let name = self.math(cx.prelude, op, Vector::new(a.ty, self.lanes))?;
                Ok((
                    Expr::call(&name, std::slice::from_ref(&a.expr)),
                    Rep::Vector,
                ))
            }
        }
    }

    fn binary(&self, cx: &mut Context<'_>, op: BinOp, a: &Operand, b: &Operand) -> Printed {
        if a.rep == Rep::Scalar && b.rep == Rep::Scalar {
            let e = scalar::binary(cx.prelude, op, a.ty, &a.expr, &b.expr)?;
            return Ok((e, Rep::Scalar));
        }
        if a.ty == Scalar::Bool {
            return self.mask_binary(cx, op, a, b);
        }
        let plain = |sign: &str| Expr::binary(sign, &a.expr, &b.expr);
        match op {
            BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::BitAnd | BinOp::BitOr | BinOp::BitXor => {
                Ok((plain(op.name()), Rep::Vector))
            }
            BinOp::Div if a.ty.is_float() => Ok((plain("/"), Rep::Vector)),
            BinOp::Eq | BinOp::Ne | BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge => {
                Ok((plain(op.name()), Rep::Mask(a.ty.bits())))
            }
            BinOp::Shl | BinOp::Shr => {
                let left = self.vector(cx, a)?;
                let width = i128::from(a.ty.bits());
                let count = match b.literal {
                    Some(Literal::Int(count)) => number(count.rem_euclid(width))?,
                    Some(Literal::Bool(_) | Literal::Float(_)) | None => {
                        Expr::binary("&", &self.vector(cx, b)?, &number(width - 1)?)
                    }
                };
                Ok((Expr::binary(op.name(), &left, &count), Rep::Vector))
            }
            BinOp::Min | BinOp::Max => self.extreme(cx, op, a, b),
            BinOp::Div | BinOp::Rem if a.ty.is_int() => {
                let name = if op == BinOp::Div { "div" } else { "rem" };
                let helper = self.division(cx, name, Vector::new(a.ty, self.lanes))?;
                let args = [self.vector(cx, a)?, self.vector(cx, b)?];
                Ok((Expr::call(&helper, &args), Rep::Vector))
            }
            BinOp::Pow if a.ty.is_float() => {
                let vector = Vector::new(a.ty, self.lanes);
                let args = [self.vector(cx, a)?, self.vector(cx, b)?];
                match self.power(cx.prelude, vector)? {
                    Some(name) => Ok((Expr::call(&name, &args), Rep::Vector)),
                    None => self.lane_by_lane(cx, op, vector, &args),
                }
            }
            BinOp::Div | BinOp::Rem | BinOp::Pow => {
                let args = [self.vector(cx, a)?, self.vector(cx, b)?];
                self.lane_by_lane(cx, op, Vector::new(a.ty, self.lanes), &args)
            }
            BinOp::And | BinOp::Or => Err(scalar::undefined(op, a.ty)),
        }
    }

    fn lane_by_lane(
        &self,
        cx: &mut Context<'_>,
        op: BinOp,
        vector: Vector,
        args: &[Expr],
    ) -> Printed {
        let what = if op == BinOp::Pow { "pow" } else { "rem" };
        scalar::binary_helper(cx.prelude, op, vector.ty)?;
        let name = format!("{what}_{}", vector.name(cx.prelude)?);
        self.one_by_one(cx, vector)?;
        vector.add(cx.prelude, &name, "map2", &[('F', what)])?;
        Ok((Expr::call(&name, args), Rep::Vector))
    }

    /// The function for `/` (`div`) or `%` (`rem`) on vectors of integers.
    pub fn division(
        &self,
        cx: &mut Context<'_>,
        what: &str,
        vector: Vector,
    ) -> Result<String, Fault> {
        let name = format!("{what}_{}", vector.name(cx.prelude)?);
        let float = match vector.ty.bits() {
            8 | 16 => Scalar::F32,
            32 => Scalar::F64,
            _ => {
                let op = if what == "div" {
                    BinOp::Div
                } else {
                    BinOp::Rem
                };
                scalar::binary_helper(cx.prelude, op, vector.ty)?;
                self.one_by_one(cx, vector)?;
                vector.add(cx.prelude, &name, "map2", &[('F', what)])?;
                return Ok(name);
            }
        };
        vector.splat(cx.prelude)?;
        vector.select(cx.prelude)?;
        let float = Vector::new(float, vector.lanes).name(cx.prelude)?;
        let sign = if vector.ty.is_signed_int() {
            "signed"
        } else {
            "unsigned"
        };
        let section = format!("{what}_{sign}");
        vector.add(cx.prelude, &name, &section, &[('F', &float)])?;
        Ok(name)
    }

    /// Adds what the section `map2` needs.
    fn one_by_one(&self, cx: &mut Context<'_>, vector: Vector) -> Result<(), Fault> {
        cx.prelude.include("string.h");
        cx.prelude.add_type("ONE_BY_ONE", || ONE_BY_ONE.to_string());
        vector.memory_name(cx.prelude)?;
        Ok(())
    }

    fn extreme(&self, cx: &mut Context<'_>, op: BinOp, a: &Operand, b: &Operand) -> Printed {
        let vector = Vector::new(a.ty, self.lanes);
        let ty = vector.name(cx.prelude)?;
        // A comparison that keeps its second operand where the first is NaN or equal is one
        // instruction. It suffices where the second operand is a number and, if it is zero, has the
        // sign that is preferred.
        let zero = if op == BinOp::Min { -0.0 } else { 0.0f64 };
        let is_number = |x: &Operand| match x.literal {
            Some(Literal::Float(x)) => {
                // A number that is too small for the type becomes zero.
                let x = if vector.ty == Scalar::F32 {
                    f64::from(x as f32)
                } else {
                    x
                };
                !x.is_nan() && (x != 0.0 || x.to_bits() == zero.to_bits())
            }
            Some(Literal::Int(x)) => x != 0 || op == BinOp::Max,
            Some(Literal::Bool(_)) | None => false,
        };
        let (what, section, a, b) = match (op == BinOp::Min, a.ty.is_float()) {
            (true, true) if is_number(b) => ("lesser", "lesser", a, b),
            (true, true) if is_number(a) => ("lesser", "lesser", b, a),
            (false, true) if is_number(b) => ("greater", "greater", a, b),
            (false, true) if is_number(a) => ("greater", "greater", b, a),
            (true, true) => ("min", "min_float", a, b),
            (false, true) => ("max", "max_float", a, b),
            (true, false) => ("min", "min", a, b),
            (false, false) => ("max", "max", a, b),
        };
        let name = format!("{what}_{ty}");
        if section.ends_with("_float") {
            vector.select(cx.prelude)?;
            vector.add_extremum(cx.prelude, &name, what)?;
        } else {
            vector.add(cx.prelude, &name, section, &[])?;
        }
        let args = [self.vector(cx, a)?, self.vector(cx, b)?];
        Ok((Expr::call(&name, &args), Rep::Vector))
    }

    fn mask_binary(&self, cx: &mut Context<'_>, op: BinOp, a: &Operand, b: &Operand) -> Printed {
        let bits = self.choice_width(a, b, 8);
        let (a, b) = (self.mask_value(cx, a, bits)?, self.mask_value(cx, b, bits)?);
        let not = |e: &Expr| Expr::unary("~", e);
        let e = match op {
            BinOp::And | BinOp::BitAnd | BinOp::Min => Expr::binary("&", &a, &b),
            BinOp::Or | BinOp::BitOr | BinOp::Max => Expr::binary("|", &a, &b),
            BinOp::BitXor | BinOp::Ne => Expr::binary("^", &a, &b),
            BinOp::Eq => not(&Expr::binary("^", &a, &b)),
            BinOp::Lt => Expr::binary("&", &not(&a), &b),
            BinOp::Le => Expr::binary("|", &not(&a), &b),
            BinOp::Gt => Expr::binary("&", &a, &not(&b)),
            BinOp::Ge => Expr::binary("|", &a, &not(&b)),
            BinOp::Add
            | BinOp::Sub
            | BinOp::Mul
            | BinOp::Div
            | BinOp::Rem
            | BinOp::Pow
            | BinOp::Shl
            | BinOp::Shr => return Err(scalar::undefined(op, Scalar::Bool)),
        };
        Ok((e, Rep::Mask(bits)))
    }

    fn cast(&self, cx: &mut Context<'_>, a: &Operand, to: Scalar) -> Printed {
        if a.rep == Rep::Scalar {
            return Ok((scalar::cast(cx.prelude, a.ty, to, &a.expr)?, Rep::Scalar));
        }
        if a.ty == to {
            return Ok((a.expr.clone(), a.rep));
        }
        if to == Scalar::Bool {
            let mask = Expr::binary("!=", &a.expr, &Expr::atom("0"));
            return Ok((mask, Rep::Mask(a.ty.bits())));
        }
        let vector = Vector::new(to, self.lanes);
        let ty = vector.name(cx.prelude)?;
        if a.ty == Scalar::Bool {
            let mask = self.mask_value(cx, a, to.bits())?;
            let one = Expr::binary("&", &mask, &Expr::atom("1"));
            let e = if to.is_float() {
                Expr::call("__builtin_convertvector", &[one, Expr::atom(ty)])
            } else {
                Expr::cast(&ty, &one)
            };
            return Ok((e, Rep::Vector));
        }
        if a.ty.is_float() && to.is_int() {
            let helper = self.saturating(cx, a.ty, to)?;
            return Ok((
                Expr::call(&helper, std::slice::from_ref(&a.expr)),
                Rep::Vector,
            ));
        }
        let args = [a.expr.clone(), Expr::atom(ty)];
        Ok((Expr::call("__builtin_convertvector", &args), Rep::Vector))
    }

    fn saturating(&self, cx: &mut Context<'_>, from: Scalar, to: Scalar) -> Result<String, Fault> {
        let (low, least, high, greatest) = scalar::saturation(cx.prelude, from, to)?;
        let (source, target) = (Vector::new(from, self.lanes), Vector::new(to, self.lanes));
        target.splat(cx.prelude)?;
        target.select(cx.prelude)?;
        let name = format!(
            "{}_from_{}",
            target.name(cx.prelude)?,
            source.name(cx.prelude)?
        );
        let letters = [
            ('F', source.name(cx.prelude)?),
            ('G', source.mask().name(cx.prelude)?),
            ('S', target.mask().name(cx.prelude)?),
            ('A', low),
            ('B', least),
            ('C', high),
            ('D', greatest),
        ];
        let letters: Vec<(char, &str)> = letters.iter().map(|(c, s)| (*c, s.as_str())).collect();
        target.add_from(cx.prelude, File::Vector, &name, "saturate", &letters)?;
        Ok(name)
    }

    /// Gives the value's vector a name, so that one of its elements can be accessed.
    pub fn named(&self, cx: &mut Context<'_>, value: ValueId) -> Result<String, Fault> {
        let e = cx.take(value).text;
        if e.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
            return Ok(e);
        }
        let ty = self.type_of(cx, value)?;
        let name = cx.names.claim(&cx.kernel.values[value.index()].name);
        cx.lines.push(&format!("const {ty} {name} = {e};"));
        Ok(name)
    }

    /// An element of a vector or mask, as a scalar of the value's type.
    pub fn element(&self, cx: &Context<'_>, value: ValueId, element: Expr) -> Expr {
        match (self.reps[value.index()], cx.kernel.values[value.index()].ty) {
            (Rep::Mask(_), _) => Expr::binary("!=", &element, &Expr::atom("0")),
            (Rep::Scalar | Rep::Vector, _) => element,
        }
    }

    /// Is the shape varying in the printed code?
    pub fn is_varying(&self, shape: Shape) -> bool {
        shape == Shape::Varying && self.lanes > 1
    }
}
