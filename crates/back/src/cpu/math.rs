//! Functions of floats on vectors, accurate to 2 units in the last place for all numbers.
//!
//! Their source is in `prelude/math.h`. Arguments are reduced to a short range, in which a
//! polynomial approximates the function. One register is computed at a time, since compilers split
//! vectors that are wider than a register badly.

use systola_ir::{BinOp, Scalar, UnOp};

use super::Cpu;
use super::lanes::Vector;
use crate::error::Fault;
use crate::prelude::{File, Prelude};
use crate::scalar;

impl Cpu {
    /// The function on vectors.
    pub(super) fn math(
        &self,
        prelude: &mut Prelude,
        op: UnOp,
        vector: Vector,
    ) -> Result<String, Fault> {
        let name = format!("{}_{}", op.name(), vector.name(prelude)?);
        if prelude.has(&name) {
            return Ok(name);
        }
        let register = self.register * 8 / vector.ty.bits();
        if vector.lanes > register {
            let part = Vector::new(vector.ty, register);
            self.math(prelude, op, part)?;
            in_parts(prelude, &name, "parts1", op.name(), vector, part)?;
            return Ok(name);
        }
        vector.select(prelude)?;
        vector.splat(prelude)?;
        let own = |section: &str| format!("{section}_{}", vector.ty);
        let add = |prelude: &mut Prelude, names: &[(&str, &str)]| {
            names.iter().try_for_each(|(name, section)| {
                let name = format!("{name}_{}", vector.name(prelude)?);
                add_section(prelude, &name, &own(section), vector, &[])
            })
        };
        add(
            prelude,
            &[("whole", "round"), ("power_of_two", "power_of_two")],
        )?;
        match op {
            UnOp::Exp => {
                add(prelude, &[("exp_of_sum", "exp_of_sum")])?;
                add_section(prelude, &name, "exp", vector, &[])?;
            }
            UnOp::Log => add(prelude, &[("split", "split"), ("log", "log")])?,
            UnOp::Sin | UnOp::Cos => {
                scalar::unary_helper(prelude, op, vector.ty)?;
                vector.mask().lanes_where(prelude)?;
                let far = format!("{}_each_{}", op.name(), vector.name(prelude)?);
                add_section(prelude, &far, "each1", vector, &[('F', op.name())])?;
                add(prelude, &[("quadrant", "quadrant"), ("sin_cos", "sin_cos")])?;
                // The range in which the products with the parts of pi/2 are exact.
                let most = if vector.ty == Scalar::F32 {
                    "0x1p13f"
                } else {
                    "0x1p20"
                };
                add_section(prelude, &name, op.name(), vector, &[('A', most)])?;
            }
            UnOp::Tanh => add(
                prelude,
                &[("rest_of_product", "rest_of_product"), ("tanh", "tanh")],
            )?,
            UnOp::Neg
            | UnOp::Not
            | UnOp::Abs
            | UnOp::Sqrt
            | UnOp::Rsqrt
            | UnOp::Floor
            | UnOp::Ceil => unreachable!("`{}` needs no polynomial", op.name()),
        }
        Ok(name)
    }

    /// The function `pow` on vectors; `None` where it is faster lane by lane, if products and sums
    /// are not fused.
    pub(super) fn power(
        &self,
        prelude: &mut Prelude,
        vector: Vector,
    ) -> Result<Option<String>, Fault> {
        if self.register < 32 {
            return Ok(None);
        }
        let name = format!("pow_{}", vector.name(prelude)?);
        if prelude.has(&name) {
            return Ok(Some(name));
        }
        let register = self.register / 8;
        if vector.lanes > register {
            let part = Vector::new(vector.ty, register);
            self.power(prelude, part)?;
            in_parts(prelude, &name, "parts2", "pow", vector, part)?;
            return Ok(Some(name));
        }
        let wide = Vector::new(Scalar::F64, vector.lanes);
        let on_wide = wide.name(prelude)?;
        wide.select(prelude)?;
        wide.splat(prelude)?;
        wide.mask().lanes_where(prelude)?;
        scalar::binary_helper(prelude, BinOp::Pow, Scalar::F64)?;
        let called = |name: &str| format!("{name}_{on_wide}");
        let mut sections = vec![
            ("whole", "round_f64"),
            ("power_of_two", "power_of_two_f64"),
            ("split", "split_f64"),
        ];
        let (whole, positive) = if vector.ty == Scalar::F32 {
            sections.push(("pow_rough", "pow_rough"));
            ("pow_rough_whole", "pow_rough")
        } else {
            sections.extend([
                ("rest_of_product", "rest_of_product_f64"),
                ("exp_of_sum", "exp_of_sum_f64"),
                ("pow_positive", "pow_positive"),
            ]);
            ("pow", "pow_positive")
        };
        for (name, section) in sections {
            add_section(prelude, &called(name), section, wide, &[])?;
        }
        add_section(prelude, &called("pow_each"), "each2", wide, &[('F', "pow")])?;
        let letters = [('F', whole), ('G', positive)];
        add_section(prelude, &called(whole), "pow", wide, &letters)?;
        if vector.ty == Scalar::F32 {
            add_section(prelude, &name, "pow_f32", vector, &[('W', &on_wide)])?;
        }
        Ok(Some(name))
    }
}

/// A function that processes a vector register by register.
fn in_parts(
    prelude: &mut Prelude,
    name: &str,
    section: &str,
    function: &str,
    vector: Vector,
    part: Vector,
) -> Result<(), Fault> {
    let (of, number) = (part.name(prelude)?, (vector.lanes / part.lanes).to_string());
    let letters = [('F', function), ('P', &of), ('K', &number)];
    add_section(prelude, name, section, vector, &letters)
}

fn add_section(
    prelude: &mut Prelude,
    name: &str,
    section: &str,
    vector: Vector,
    letters: &[(char, &str)],
) -> Result<(), Fault> {
    let mut letters = letters.to_vec();
    let unsigned;
    if Prelude::says(File::Math, section, 'U') {
        unsigned = Vector::new(scalar::unsigned(vector.ty), vector.lanes).name(prelude)?;
        letters.push(('U', &unsigned));
    }
    vector.add_from(prelude, File::Math, name, section, &letters)
}
