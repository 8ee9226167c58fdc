//! Checked arithmetic on 128-bit integers: overflow is an error, never a wrapped value.

use crate::error::{Error, Result};

/// The scalar type of the crate.
pub type Int = i128;

#[inline]
pub(crate) fn add(a: Int, b: Int) -> Result<Int> {
    a.checked_add(b).ok_or(Error::Overflow)
}

#[inline]
pub(crate) fn sub(a: Int, b: Int) -> Result<Int> {
    a.checked_sub(b).ok_or(Error::Overflow)
}

#[inline]
pub(crate) fn neg(a: Int) -> Result<Int> {
    a.checked_neg().ok_or(Error::Overflow)
}

#[inline]
pub(crate) fn mul(a: Int, b: Int) -> Result<Int> {
    // The 64-bit case is one instruction; the checked 128-bit product is a library call.
    if let (Ok(x), Ok(y)) = (i64::try_from(a), i64::try_from(b)) {
        return Ok(Int::from(x) * Int::from(y));
    }
    a.checked_mul(b).ok_or(Error::Overflow)
}

/// `a + b * c`
#[inline]
pub(crate) fn mul_add(a: Int, b: Int, c: Int) -> Result<Int> {
    add(a, mul(b, c)?)
}

/// The non-negative greatest common divisor; `gcd(0, 0) = 0`.
#[inline]
pub(crate) fn gcd(a: Int, b: Int) -> Result<Int> {
    let (x, y) = (a.unsigned_abs(), b.unsigned_abs());
    if let (Ok(mut x), Ok(mut y)) = (u64::try_from(x), u64::try_from(y)) {
        while y != 0 {
            (x, y) = (y, x % y);
        }
        return Ok(Int::from(x));
    }
    let (mut x, mut y) = (x, y);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    Int::try_from(x).map_err(|_| Error::Overflow)
}

/// The greatest common divisor of all entries, 0 for none.
#[inline]
pub(crate) fn gcd_all(values: &[Int]) -> Result<Int> {
    let mut g = 0;
    for &v in values {
        if v != 0 {
            g = gcd(g, v)?;
            if g == 1 {
                break;
            }
        }
    }
    Ok(g)
}

/// Floor division by a positive divisor.
#[inline]
pub(crate) fn floor_div(a: Int, b: Int) -> Result<Int> {
    if b <= 0 {
        return Err(Error::Divisor(b));
    }
    if let (Ok(x), Ok(y)) = (i64::try_from(a), i64::try_from(b)) {
        return Ok(Int::from(x.div_euclid(y)));
    }
    Ok(a.div_euclid(b))
}

/// `a / b` for a divisor of `a` that is not zero.
#[inline]
pub(crate) fn exact_quotient(a: Int, b: Int) -> Int {
    // The division of 128-bit numbers is a library call.
    if let (Ok(x), Ok(y)) = (i64::try_from(a), i64::try_from(b))
        && let Some(q) = x.checked_div(y)
    {
        return Int::from(q);
    }
    a / b
}

/// Ceiling division by a positive divisor.
#[inline]
pub(crate) fn ceil_div(a: Int, b: Int) -> Result<Int> {
    neg(floor_div(neg(a)?, b)?)
}

/// The remainder in `0..b` of a positive divisor.
#[inline]
pub(crate) fn modulo(a: Int, b: Int) -> Result<Int> {
    if b <= 0 {
        return Err(Error::Divisor(b));
    }
    Ok(a.rem_euclid(b))
}

/// The quotient `q` for which `|a - q * b|` is smallest, so that Euclid's algorithm takes few
/// steps.
pub(crate) fn nearest_quotient(a: Int, b: Int) -> Result<Int> {
    let m = b.checked_abs().ok_or(Error::Overflow)?;
    let q = a.div_euclid(m);
    let r = a.rem_euclid(m);
    let q = if r > m - r { add(q, 1)? } else { q };
    if b < 0 { neg(q) } else { Ok(q) }
}

/// `(g, x, y)` with `a * x + b * y = g = gcd(a, b) >= 0`.
pub(crate) fn extended_gcd(a: Int, b: Int) -> Result<(Int, Int, Int)> {
    let (mut r0, mut r1) = (a, b);
    let (mut x0, mut x1) = (1, 0);
    let (mut y0, mut y1) = (0, 1);
    while r1 != 0 {
        let q = r0.checked_div(r1).ok_or(Error::Overflow)?;
        (r0, r1) = (r1, sub(r0, mul(q, r1)?)?);
        (x0, x1) = (x1, sub(x0, mul(q, x1)?)?);
        (y0, y1) = (y1, sub(y0, mul(q, y1)?)?);
    }
    if r0 < 0 {
        (r0, x0, y0) = (neg(r0)?, neg(x0)?, neg(y0)?);
    }
    Ok((r0, x0, y0))
}
