//! What surely divides an index, which decides how wide an access may be.

use systola_ir::DimId;
use systola_ir::form::{Atom, Form, Poly};
use systola_ir::kernel::visit::walk;
use systola_ir::kernel::{Access, Kernel, Stmt};

use crate::c_family::Context;

/// Bytes of the widest access.
pub const WIDEST: u32 = 16;

/// For each variable of a kernel a number that divides it; 0: it is always 0.
#[derive(Clone, Debug)]
pub struct Divisors(Vec<i128>);

pub fn gcd(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.abs(), b.abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl Divisors {
    pub fn new(kernel: &Kernel) -> Divisors {
        let mut divisors = Divisors(vec![1; kernel.vars.len()]);
        // A bound may depend on variables further out, which are known by then.
        walk(&kernel.body, &mut |stmt| {
            if let Stmt::For { var, lo, step, .. } = stmt
                && let [only] = &lo[..]
            {
                divisors.0[var.index()] = gcd(divisors.of(only), *step);
            }
        });
        divisors
    }

    fn of_poly(poly: &Poly) -> i128 {
        poly.terms().fold(0, |so_far, (_, c)| gcd(so_far, c))
    }

    fn of_dim(&self, dim: DimId) -> i128 {
        self.0.get(dim.index()).copied().unwrap_or(1)
    }

    /// A number that divides every value of the form; 0: it is always 0.
    pub fn of(&self, form: &Form) -> i128 {
        let mut all = Self::of_poly(form.constant_part());
        for (atom, coefficient) in form.terms() {
            let own = match atom {
                Atom::Dim(d) => self.of_dim(*d),
                Atom::Floor(..) => 1,
                Atom::Mod(inner, c) => gcd(self.of(inner), *c),
            };
            all = gcd(all, own.saturating_mul(Self::of_poly(coefficient)));
        }
        all
    }

    /// A number that divides the distance of an access from the first element.
    pub fn of_access(&self, cx: &Context<'_>, access: &Access) -> i128 {
        let extents = cx.extents(access.memory);
        let index = cx.counted_from_zero(access);
        let mut stride = 1i128;
        let mut all = 0;
        for (form, extent) in index.iter().zip(&extents).rev() {
            all = gcd(all, self.of(form).saturating_mul(stride));
            stride = stride.saturating_mul(self.of(extent)).min(1 << 40);
        }
        all
    }

    /// How many consecutive elements of so many bytes can be moved at once, out of `width`.
    pub fn chunk(&self, cx: &Context<'_>, access: &Access, width: u32, bytes: u32) -> u32 {
        let divisor = self.of_access(cx, access);
        let mut chunk = 1;
        while 2 * chunk * bytes <= WIDEST
            && width.is_multiple_of(2 * chunk)
            && divisor % i128::from(2 * chunk) == 0
        {
            chunk *= 2;
        }
        chunk
    }
}
