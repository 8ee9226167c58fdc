//! Arrays that share memory, which safe code cannot pass, and arrays at unaligned addresses.

#![expect(unsafe_code, reason = "only views made from addresses can overlap")]

mod common;

use common::*;
use systola_ir::Scalar;
use systola_rt::{Error, RunOptions, View, ViewMut};

/// Runs with x, y and z at these elements of one array of 64.
fn run_at(x: usize, y: usize, z: usize, n: usize) -> Result<Vec<f32>, Error> {
    let program = compile(saxpy());
    let mut memory: Vec<f32> = (0..64).map(|i| i as f32).collect();
    let start: *mut f32 = memory.as_mut_ptr();
    let at = |offset: usize| start.wrapping_add(offset).cast::<u8>();
    // SAFETY: all offsets are inside the array, and nothing else uses it until the run is over.
    let (x, y, mut z) = unsafe {
        (
            View::from_raw(at(x), Scalar::F32, &[n], &[1]),
            View::from_raw(at(y), Scalar::F32, &[n], &[1]),
            [("z", ViewMut::from_raw(at(z), Scalar::F32, &[n], &[1]))],
        )
    };
    let inputs = [("x", x), ("y", y)];
    program.run(&[n as i64], &inputs, &mut z, &RunOptions::default())?;
    Ok(memory)
}

#[test]
fn an_output_may_not_overlap_an_input() {
    let check = |x, y, z, with: &str| match run_at(x, y, z, 10) {
        Err(Error::Aliasing { output, other }) => {
            assert_eq!((output.as_str(), other.as_str()), ("z", with));
        }
        other => panic!("{other:?}"),
    };
    check(0, 20, 0, "x");
    check(0, 20, 9, "x");
    check(0, 20, 11, "y");
    let memory = run_at(0, 0, 10, 10).unwrap();
    assert_eq!(memory[10..13], [0.0, 8.0, 16.0]);
}

#[test]
fn an_array_need_not_be_aligned() {
    let program = compile(saxpy());
    let mut bytes = vec![0u8];
    bytes.extend([1f32, 2.0, 3.0].iter().flat_map(|v| v.to_ne_bytes()));
    let odd = bytes[1..].as_ptr();
    // SAFETY: three floats start at the second byte.
    let x = unsafe { View::from_raw(odd, Scalar::F32, &[3], &[1]) };
    let mut target = [0u8; 16];
    let odd = target[3..].as_mut_ptr();
    // SAFETY: there is room for three floats from the fourth byte on.
    let z = unsafe { ViewMut::from_raw(odd, Scalar::F32, &[3], &[1]) };
    let inputs = [("x", x.clone()), ("y", x)];
    let stats = program
        .run(&[3], &inputs, &mut [("z", z)], &RunOptions::default())
        .unwrap();
    // The vector itself is aligned, so that its second byte is not.
    assert!(stats.packed_bytes >= 2 * 12);
    let expect: Vec<u8> = [8f32, 16.0, 24.0]
        .iter()
        .flat_map(|v| v.to_ne_bytes())
        .collect();
    assert_eq!(target[3..15], expect);
    assert_eq!((target[2], target[15]), (0, 0));
}
