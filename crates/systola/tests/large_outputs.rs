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
    let mut shifted = vec![0u8; n + 1];
    for threads in [1, 2, 3] {
        let options = RunOptions { threads };
        let inputs = [("x", View::from(&x[..]))];
        aligned.as_mut_slice::<u8>().unwrap().fill(1);
        let mut outputs = [("y", aligned.view_mut())];
        compiled
            .run(&sizes, &inputs, &mut outputs, &options)
            .unwrap();
        assert!(aligned.as_slice::<u8>().unwrap() == expected, "{threads}");
        shifted.fill(1);
        let mut outputs = [("y", ViewMut::from(&mut shifted[1..]))];
        compiled
            .run(&sizes, &inputs, &mut outputs, &options)
            .unwrap();
        assert!(shifted[1..] == expected, "{threads}, shifted");
        assert_eq!(shifted[0], 1);
    }
}
