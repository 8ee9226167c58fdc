//! Forms, conditions and strides as C expressions of the index type, and bools.

use systola_ir::form::{Atom, Cond, Form, Monomial, Poly};
use systola_ir::kernel::{Access, Memory};

use crate::context::{Context, INT64, Index};
use crate::error::Fault;
use crate::expr::Expr;
use crate::prelude::{File, Prelude};
use crate::scalar;

/// Does the form consist of negated terms only, without a plain number?
fn is_negated(form: &Form) -> bool {
    let negative = |poly: &Poly| poly.terms().all(|(_, c)| c < 0);
    let number = (form.constant_part().terms()).any(|(monomial, _)| monomial.is_empty());
    *form != Form::zero()
        && !number
        && negative(form.constant_part())
        && form.terms().all(|(_, c)| negative(c))
}

/// The distance between neighbours along an axis, in elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stride {
    Const(i128),
    /// A constant of the printed function, or a parameter.
    Named(String),
}

fn narrow(x: i128) -> Result<i64, Fault> {
    i64::try_from(x).map_err(|_| Fault::Overflow)
}

/// A number in an index expression.
pub fn number(x: i128) -> Result<Expr, Fault> {
    Ok(scalar::index_literal(narrow(x)?, false))
}

/// ⌊a / c⌋
pub fn floor_div(prelude: &mut Prelude, a: &Expr, c: i128) -> Result<Expr, Fault> {
    floor_div_in(prelude, &INT64, a, c)
}

/// a − c·⌊a / c⌋
pub fn modulo(prelude: &mut Prelude, a: &Expr, c: i128) -> Result<Expr, Fault> {
    modulo_in(prelude, &INT64, a, c)
}

fn floor_div_in(prelude: &mut Prelude, index: &Index, a: &Expr, c: i128) -> Result<Expr, Fault> {
    if c > 0 && c & (c - 1) == 0 {
        let shift = number(c.trailing_zeros().into())?;
        return Ok(Expr::binary(">>", a, &shift));
    }
    prelude.add(index.floordiv, index.file, "floordiv", &[('T', index.ty)]);
    Ok(Expr::call(index.floordiv, &[a.clone(), number(c)?]))
}

fn modulo_in(prelude: &mut Prelude, index: &Index, a: &Expr, c: i128) -> Result<Expr, Fault> {
    if c > 0 && c & (c - 1) == 0 {
        return Ok(Expr::binary("&", a, &number(c - 1)?));
    }
    prelude.add(index.modulo, index.file, "mod", &[('T', index.ty)]);
    Ok(Expr::call(index.modulo, &[a.clone(), number(c)?]))
}

/// A sum that is printed term by term, with leading signs.
#[derive(Clone, Default)]
pub struct Sum(Option<Expr>);

impl Sum {
    /// Adds `factor · term`.
    pub fn add(&mut self, factor: i128, term: &Expr) -> Result<(), Fault> {
        let product = if factor.unsigned_abs() == 1 {
            term.clone()
        } else {
            // The magnitude of the least number cannot be written as a literal.
            let magnitude = narrow(factor)?.checked_abs().ok_or(Fault::Overflow)?;
            Expr::binary("*", &scalar::index_literal(magnitude, false), term)
        };
        self.0 = Some(match self.0.take() {
            None if factor < 0 => Expr::negated(&product),
            None => product,
            Some(sum) => Expr::binary(if factor < 0 { "-" } else { "+" }, &sum, &product),
        });
        Ok(())
    }

    pub fn add_number(&mut self, x: i128) -> Result<(), Fault> {
        self.0 = Some(match self.0.take() {
            None => number(x)?,
            Some(sum) if x == 0 => sum,
            Some(sum) => {
                let magnitude = narrow(x)?.checked_abs().ok_or(Fault::Overflow)?;
                let magnitude = scalar::index_literal(magnitude, false);
                Expr::binary(if x < 0 { "-" } else { "+" }, &sum, &magnitude)
            }
        });
        Ok(())
    }

    pub fn finish(self) -> Expr {
        self.0.unwrap_or_else(|| Expr::atom("0"))
    }
}

impl Context<'_> {
    /// Prints a form; every variable in it is a scalar of the printed function.
    pub fn form(&mut self, form: &Form) -> Result<Expr, Fault> {
        let mut sum = Sum::default();
        self.add_form(&mut sum, form)?;
        Ok(sum.finish())
    }

    /// Adds the terms of a form, positive ones before negative ones.
    pub fn add_form(&mut self, sum: &mut Sum, form: &Form) -> Result<(), Fault> {
        let mut terms = Vec::new();
        for (atom, poly) in form.terms() {
            let atom = match atom {
                Atom::Dim(d) => Expr::atom(self.dims[d.index()].mention()),
                Atom::Floor(inner, c) => {
                    let inner = self.form(inner)?;
                    floor_div_in(self.prelude, self.index, &inner, *c)?
                }
                Atom::Mod(inner, c) => {
                    let inner = self.form(inner)?;
                    modulo_in(self.prelude, self.index, &inner, *c)?
                }
            };
            for (monomial, c) in poly.terms() {
                terms.push((c, self.product(monomial, Some(&atom))));
            }
        }
        let constant = form.constant_part();
        for (monomial, c) in constant.terms().filter(|(m, _)| !m.is_empty()) {
            terms.push((c, self.product(monomial, None)));
        }
        let (added, subtracted): (Vec<_>, Vec<_>) = terms.into_iter().partition(|(c, _)| *c > 0);
        let rest = constant.terms().find(|(m, _)| m.is_empty());
        let rest = rest.map_or(0, |(_, c)| c);
        let number_first = added.is_empty() && rest > 0;
        if number_first {
            sum.add_number(rest)?;
        }
        for (c, term) in added.iter().chain(&subtracted) {
            sum.add(*c, term)?;
        }
        if !number_first {
            sum.add_number(rest)?;
        }
        Ok(())
    }

    pub fn poly(&mut self, poly: &Poly) -> Result<Expr, Fault> {
        self.form(&Form::from(poly.clone()))
    }

    fn product(&mut self, monomial: &Monomial, atom: Option<&Expr>) -> Expr {
        let mut factors: Vec<Expr> = monomial
            .iter()
            .map(|p| Expr::atom(self.params[p.index()].mention()))
            .collect();
        factors.extend(atom.cloned());
        let first = factors.remove(0);
        factors
            .iter()
            .fold(first, |product, factor| Expr::binary("*", &product, factor))
    }

    /// max(forms) or min(forms).
    pub fn extremum(&mut self, forms: &[Form], greatest: bool) -> Result<Expr, Fault> {
        let mut result: Option<Expr> = None;
        for form in forms {
            let next = match self.index.minus {
                Some(minus) if forms.len() > 1 && is_negated(form) => {
                    self.prelude.add(minus, self.index.file, "minus", &[]);
                    Expr::call(minus, &[self.form(&form.neg())?])
                }
                _ => self.form(form)?,
            };
            result = Some(match result {
                None => next,
                Some(so_far) => {
                    let name = if greatest { "max" } else { "min" };
                    let Index { ty, suffix, .. } = self.index;
                    let full = format!("{name}_{suffix}");
                    let letters = [('T', *ty), ('N', *suffix)];
                    self.prelude.add(&full, File::Scalar, name, &letters);
                    Expr::call(&full, &[so_far, next])
                }
            });
        }
        result.ok_or_else(|| Fault::unsupported("a range has no bound"))
    }

    /// A uniform condition.
    pub fn cond(&mut self, cond: &Cond) -> Result<Expr, Fault> {
        self.balanced_cond(&cond.balanced())
    }

    fn balanced_cond(&mut self, cond: &Cond) -> Result<Expr, Fault> {
        match cond {
            Cond::Const(b) => Ok(Expr::atom(if *b { "true" } else { "false" })),
            Cond::Cmp(rel, left, right) => {
                let (left, right) = (self.form(left)?, self.form(right)?);
                Ok(Expr::binary(rel.name(), &left, &right))
            }
            Cond::And(parts) => self.cond_parts(parts, "&&", "true"),
            Cond::Or(parts) => self.cond_parts(parts, "||", "false"),
            Cond::Not(inner) => Ok(Expr::unary("!", &self.balanced_cond(inner)?)),
        }
    }

    fn cond_parts(&mut self, parts: &[Cond], op: &str, none: &str) -> Result<Expr, Fault> {
        let mut result: Option<Expr> = None;
        for part in parts {
            let next = self.balanced_cond(part)?;
            result = Some(match result {
                None => next,
                Some(so_far) => Expr::binary(op, &so_far, &next),
            });
        }
        Ok(result.unwrap_or_else(|| Expr::atom(none)))
    }

    /// The extents of a memory.
    pub fn extents(&self, memory: Memory) -> Vec<Form> {
        match memory {
            Memory::Global(b) => self.program.extents(b),
            Memory::Shared(s) => self.kernel.shared[s.index()]
                .extents
                .iter()
                .map(|e| Form::from(e.clone()))
                .collect(),
        }
    }

    /// The stride of an axis; one that is not a number becomes a constant of the function.
    pub fn stride(&mut self, memory: Memory, axis: usize) -> Result<Stride, Fault> {
        if let Some(known) = self.strides.get(&(memory, axis)) {
            return Ok(Stride::Named(known.clone()));
        }
        let extents = self.extents(memory).split_off(axis + 1);
        let mut constant = Some(1i128);
        for extent in &extents {
            constant = constant
                .zip(extent.as_constant())
                .and_then(|(a, b)| a.checked_mul(b));
        }
        if let Some(c) = constant {
            return Ok(Stride::Const(c));
        }
        let mut product: Option<Expr> = None;
        for extent in &extents {
            let extent = self.form(extent)?;
            product = Some(match product {
                None => extent,
                Some(so_far) => Expr::binary("*", &so_far, &extent),
            });
        }
        let product = product.unwrap_or_else(|| Expr::atom("1"));
        let name = if self.params.iter().any(|p| p.name == product.text) {
            product.text
        } else {
            let memory = self.memory_name(memory);
            let wanted = if axis == 0 && extents.len() == 1 {
                format!("{memory}_stride")
            } else {
                format!("{memory}_stride{axis}")
            };
            let name = self.names.claim(&wanted);
            let ty = self.index.ty;
            self.constants
                .push(format!("const {ty} {name} = {};", product.text));
            name
        };
        self.strides.insert((memory, axis), name.clone());
        Ok(Stride::Named(name))
    }

    /// The number of elements of a memory.
    pub fn volume(&mut self, memory: Memory) -> Result<Expr, Fault> {
        let mut product: Option<Expr> = None;
        for extent in self.extents(memory) {
            let extent = self.form(&extent)?;
            product = Some(match product {
                None => extent,
                Some(so_far) => Expr::binary("*", &so_far, &extent),
            });
        }
        Ok(product.unwrap_or_else(|| Expr::atom("1")))
    }

    /// The index of an access, counted from the first element of each axis.
    pub fn counted_from_zero(&self, access: &Access) -> Vec<Form> {
        match access.memory {
            Memory::Global(b) => {
                let axes = &self.program.buffers[b.index()].axes;
                let index = access.index.iter().zip(axes);
                index.map(|(form, axis)| form.sub(&axis.lo)).collect()
            }
            Memory::Shared(_) => access.index.clone(),
        }
    }

    /// The distance of an element from the first one: axes with constant strides become one form.
    pub fn offset(&mut self, memory: Memory, index: &[Form]) -> Result<Expr, Fault> {
        let mut flat = Form::zero();
        let mut sum = Sum::default();
        for (axis, form) in index.iter().enumerate() {
            if *form == Form::zero() {
                continue;
            }
            match self.stride(memory, axis)? {
                Stride::Const(c) => flat = flat.add(&form.scale(&Poly::constant(c))?),
                Stride::Named(stride) => {
                    let stride = Expr::atom(stride);
                    let term = match form.as_constant() {
                        Some(1) => stride,
                        Some(_) | None => Expr::binary("*", &self.form(form)?, &stride),
                    };
                    sum.add(1, &term)?;
                }
            }
        }
        if sum.0.is_none() {
            return self.form(&flat);
        }
        if let Some(c) = flat.as_constant() {
            sum.add_number(c)?;
        } else {
            sum.add(1, &self.form(&flat)?)?;
        }
        Ok(sum.finish())
    }
}
