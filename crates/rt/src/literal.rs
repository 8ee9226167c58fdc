//! Literals as they are stored in memory.
//!
//! A literal becomes a value as a cast would make it: integers keep their low bits, floats saturate
//! towards integers (NaN becomes 0) and round to the nearest float, and a bool is true unless it is
//! zero.

use half::{bf16, f16};
use systola_ir::{Literal, Scalar};

/// The bytes of one element, in the order of this machine; the first [`size`] count.
pub(crate) fn encode(ty: Scalar, literal: Literal) -> [u8; 8] {
    match literal {
        Literal::Bool(x) => encode_int(ty, x.into()),
        Literal::Int(x) => encode_int(ty, x),
        Literal::Float(x) => encode_float(ty, x),
    }
}

/// Bytes of one element.
pub(crate) fn size(ty: Scalar) -> usize {
    (ty.bits() / 8) as usize
}

fn padded<const N: usize>(bytes: [u8; N]) -> [u8; 8] {
    let mut all = [0; 8];
    all[..N].copy_from_slice(&bytes);
    all
}

fn encode_int(ty: Scalar, x: i128) -> [u8; 8] {
    match ty {
        Scalar::Bool => padded([u8::from(x != 0)]),
        Scalar::I8 | Scalar::U8 => padded((x as u8).to_ne_bytes()),
        Scalar::I16 | Scalar::U16 => padded((x as u16).to_ne_bytes()),
        Scalar::I32 | Scalar::U32 => padded((x as u32).to_ne_bytes()),
        Scalar::I64 | Scalar::U64 => padded((x as u64).to_ne_bytes()),
        Scalar::F16 => padded(f16::from_f32(x as f32).to_ne_bytes()),
        Scalar::BF16 => padded(bf16::from_f32(x as f32).to_ne_bytes()),
        Scalar::F32 => padded((x as f32).to_ne_bytes()),
        Scalar::F64 => padded((x as f64).to_ne_bytes()),
    }
}

fn encode_float(ty: Scalar, x: f64) -> [u8; 8] {
    match ty {
        Scalar::Bool => padded([u8::from(x != 0.0)]),
        Scalar::I8 => padded((x as i8).to_ne_bytes()),
        Scalar::I16 => padded((x as i16).to_ne_bytes()),
        Scalar::I32 => padded((x as i32).to_ne_bytes()),
        Scalar::I64 => padded((x as i64).to_ne_bytes()),
        Scalar::U8 => padded((x as u8).to_ne_bytes()),
        Scalar::U16 => padded((x as u16).to_ne_bytes()),
        Scalar::U32 => padded((x as u32).to_ne_bytes()),
        Scalar::U64 => padded((x as u64).to_ne_bytes()),
        Scalar::F16 => padded(f16::from_f32(x as f32).to_ne_bytes()),
        Scalar::BF16 => padded(bf16::from_f32(x as f32).to_ne_bytes()),
        Scalar::F32 => padded((x as f32).to_ne_bytes()),
        Scalar::F64 => padded(x.to_ne_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<const N: usize>(ty: Scalar, literal: Literal, expect: [u8; N]) {
        assert_eq!(size(ty), N);
        assert_eq!(encode(ty, literal)[..N], expect);
    }

    #[test]
    fn literals_wrap_saturate_and_round() {
        check(Scalar::I8, Literal::Int(-1), [255]);
        check(Scalar::U8, Literal::Int(257), [1]);
        check(Scalar::I8, Literal::Float(1e9), [127]);
        check(Scalar::U32, Literal::Float(-3.0), 0u32.to_ne_bytes());
        check(Scalar::I32, Literal::Float(f64::NAN), 0i32.to_ne_bytes());
        check(Scalar::F32, Literal::Int(3), 3f32.to_ne_bytes());
        check(Scalar::F32, Literal::Float(0.1), 0.1f32.to_ne_bytes());
        check(
            Scalar::F64,
            Literal::Float(f64::NEG_INFINITY),
            f64::NEG_INFINITY.to_ne_bytes(),
        );
        check(Scalar::Bool, Literal::Int(7), [1]);
        check(Scalar::Bool, Literal::Bool(false), [0]);
        check(Scalar::F16, Literal::Float(1.5), 0x3e00u16.to_ne_bytes());
        check(Scalar::BF16, Literal::Float(1.5), 0x3fc0u16.to_ne_bytes());
    }
}
