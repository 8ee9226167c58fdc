//! Lesson 1: a recurrence, a mapping, an array.
//!
//! Run it with `cargo run -p systola --example 01_first_array`.

use std::collections::BTreeMap;
use std::error::Error;

use systola::interp::{Tensor, run_array, run_system};

/// What is computed, and three ways to say where and when.
const PROGRAM: &str = "
system prefix(B, N) where B >= 1, N >= 1 {
  input x[B, N]: i64;
  index b in 0..B, i in 0..N;
  var S: i64 = select(i == 0, 0, S(b, i - 1)) + x[b, i];
  output s[B, N]: i64 = S at [b, i];
}
mapping a_pe_for_each_row of prefix { lane = b; time = i; }
mapping rows_pipelined of prefix { lane = i; time = b + i; }
mapping against_the_sum of prefix { lane = b; time = -i; }
";

fn main() -> Result<(), Box<dyn Error>> {
    let module = systola::load(PROGRAM)?;
    let sizes = BTreeMap::from([("B".to_string(), 2), ("N".to_string(), 4)]);
    let params = [2, 4];
    let x = Tensor::new(vec![2, 4], vec![1i64, 2, 3, 4, 10, 20, 30, 40])?;
    let inputs = BTreeMap::from([("x".to_string(), x)]);

    // The equations alone have a meaning; any legal array must have the same.
    let expected = run_system(&module.systems[0], &params, &inputs)?;
    for mapping in &module.mappings {
        match systola::check_mapping(&module, mapping, &sizes) {
            Ok(checked) => {
                let counts = checked.report.counts.as_ref().ok_or("sizes were given")?;
                println!(
                    "{}: {} PEs, {} steps, {:.0} % busy",
                    mapping.name,
                    counts.pes,
                    counts.steps,
                    100.0 * counts.utilisation
                );
                let result = run_array(&checked.array, &params, &inputs)?;
                assert_eq!(result["s"].first_difference(&expected["s"], 0.0), None);
            }
            Err(refused) => println!("{}: refused, {}", mapping.name, refused[0]),
        }
    }
    Ok(())
}
