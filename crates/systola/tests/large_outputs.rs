//! Outputs that are written by non-temporal stores: aligned or not, on one thread and on several.

use systola::rt::{HostArray, RunOptions, View, ViewMut};
use systola::{CpuOptions, compile, load};

const PROGRAM: &str = "
system mix(N) where N >= 1 {
  input x[N + 1]: u8;
  index i in 0..N;
  var Y: u8 = x[i] + x[i] + x[i + 1];
  output y[N]: u8 = Y at [i];
}

mapping lanes of mix {
  tile i by L as (b, l);
  block = b;
  lane = l;
  time = 0;
}
";

#[test]
fn every_element_arrives() {
    let module = load(PROGRAM).unwrap();
    let n = (40 << 20) + 77;
    let sizes = [("N", n as i64)];
    let options = CpuOptions::from_env().unwrap();
    let compiled = compile(&module, "lanes", &sizes, &options).unwrap();
    let x: Vec<u8> = (0..=n).map(|i| (i * 7 + i / 251) as u8).collect();
    let expected: Vec<u8> = x
        .windows(2)
        .map(|w| w[0].wrapping_add(w[0]).wrapping_add(w[1]))
        .collect();
    let mut aligned = HostArray::zeros(systola::ir::Scalar::U8, &[n]).unwrap();
    let mut shifted = vec![0u8; n + 64];
    // One byte behind a multiple of 16, and at multiples of 16 that are none of 32 and of 64.
    let to_line = shifted.as_ptr().align_offset(64);
    for threads in [1, 2, 3] {
        let options = RunOptions { threads };
        let inputs = [("x", View::from(&x[..]))];
        aligned.as_mut_slice::<u8>().unwrap().fill(1);
        let mut outputs = [("y", aligned.view_mut())];
        compiled
            .run(&sizes, &inputs, &mut outputs, &options)
            .unwrap();
        assert!(aligned.as_slice::<u8>().unwrap() == expected, "{threads}");
        for by in [1, 16, 32] {
            let first = (to_line + by) % 64;
            shifted.fill(1);
            let mut outputs = [("y", ViewMut::from(&mut shifted[first..first + n]))];
            compiled
                .run(&sizes, &inputs, &mut outputs, &options)
                .unwrap();
            assert!(
                shifted[first..first + n] == expected,
                "{threads}, shifted by {by}"
            );
            assert!(shifted[..first].iter().all(|x| *x == 1));
            assert!(shifted[first + n..].iter().all(|x| *x == 1));
        }
    }
}
