//! The numbers of a tableau: 64 bits, which suffice for nearly all questions, or 128.

use std::cmp::Ordering;

use crate::error::{Error, Result};
use crate::int::{self, Int};

/// An integer whose overflow is an error.
pub(super) trait Entry: Copy + Ord + Default {
    const ONE: Self;
    fn narrow(value: Int) -> Result<Self>;
    fn wide(self) -> Int;
    fn plus(self, other: Self) -> Result<Self>;
    fn times(self, other: Self) -> Result<Self>;
    fn negative(self) -> Result<Self>;
    fn gcd(self, other: Self) -> Result<Self>;
    /// The quotient of a multiple of `divisor` by `divisor`, which is not zero.
    fn over(self, divisor: Self) -> Self;
    /// Compares `|self * factor|` with `|other * other_factor|`.
    fn compare_products(self, factor: Self, other: Self, other_factor: Self) -> Result<Ordering>;

    fn is_zero(self) -> bool {
        self == Self::default()
    }

    fn is_positive(self) -> bool {
        self > Self::default()
    }

    fn is_negative(self) -> bool {
        self < Self::default()
    }
}

impl Entry for i64 {
    const ONE: Self = 1;

    #[inline]
    fn narrow(value: Int) -> Result<Self> {
        // Its negation and its magnitude fit too.
        match i64::try_from(value) {
            Ok(i64::MIN) | Err(_) => Err(Error::Overflow),
            Ok(value) => Ok(value),
        }
    }

    #[inline]
    fn wide(self) -> Int {
        Int::from(self)
    }

    #[inline]
    fn plus(self, other: Self) -> Result<Self> {
        self.checked_add(other).ok_or(Error::Overflow)
    }

    #[inline]
    fn times(self, other: Self) -> Result<Self> {
        self.checked_mul(other).ok_or(Error::Overflow)
    }

    #[inline]
    fn negative(self) -> Result<Self> {
        self.checked_neg().ok_or(Error::Overflow)
    }

    #[inline]
    fn gcd(self, other: Self) -> Result<Self> {
        let (mut x, mut y) = (self.unsigned_abs(), other.unsigned_abs());
        while y != 0 {
            (x, y) = (y, x % y);
        }
        i64::try_from(x).map_err(|_| Error::Overflow)
    }

    #[inline]
    fn over(self, divisor: Self) -> Self {
        self / divisor
    }

    #[inline]
    fn compare_products(self, factor: Self, other: Self, other_factor: Self) -> Result<Ordering> {
        let product = |a: i64, b: i64| u128::from(a.unsigned_abs()) * u128::from(b.unsigned_abs());
        Ok(product(self, factor).cmp(&product(other, other_factor)))
    }
}

impl Entry for Int {
    const ONE: Self = 1;

    fn narrow(value: Int) -> Result<Self> {
        Ok(value)
    }

    fn wide(self) -> Int {
        self
    }

    fn plus(self, other: Self) -> Result<Self> {
        int::add(self, other)
    }

    fn times(self, other: Self) -> Result<Self> {
        int::mul(self, other)
    }

    fn negative(self) -> Result<Self> {
        int::neg(self)
    }

    fn gcd(self, other: Self) -> Result<Self> {
        int::gcd(self, other)
    }

    fn over(self, divisor: Self) -> Self {
        int::exact_quotient(self, divisor)
    }

    fn compare_products(self, factor: Self, other: Self, other_factor: Self) -> Result<Ordering> {
        let product = |a: Int, b: Int| {
            let product = a.unsigned_abs().checked_mul(b.unsigned_abs());
            product.ok_or(Error::Overflow)
        };
        Ok(product(self, factor)?.cmp(&product(other, other_factor)?))
    }
}
