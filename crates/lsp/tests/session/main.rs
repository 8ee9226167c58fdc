//! Sessions of an editor with the server.

#[path = "../client/mod.rs"]
mod client;
mod completion;
mod diagnostics;
mod hover;
mod names;
mod protocol;

use client::{Client, start};

const URI: &str = "file:///work/conv.ure";

const CONV: &str = "\
// Größe 𝄞: columns are not bytes.
system conv1d(C, Q) where C >= 1, Q >= 1, Q <= C {
  input x[C + Q - 1]: f32;
  input w[Q]: f32;
  const one: f32 = 1;
  fn scaled(a: f32, b: f32) -> f32 = let both = a * b; both * one;
  index c in 0..C;
  var Z: f32 reorderable = reduce(+, q in 0..Q, scaled(x[c + q], w[q]));
  output z[C]: f32 = Z at [c];
}

mapping sbm of conv1d {
  forward x along (-1, 1);
  sum Z along q;
  lane = c + q;
  time = q;
}

mapping tiled of conv1d {
  tile c by 4*L as (bc, cc);
  block = bc;
  lane = cc / 4;
  reg = cc % 4;
  time = q;
}
";

fn opened(text: &str) -> Client {
    let mut client = start();
    client.open(URI, text);
    client
}
