//! Sums and prefixes in every position that an expression has.

use std::collections::BTreeMap;

use systola_driver::{check_mapping, check_system, load};
use systola_interp::{expect_system, run_array};

use crate::case::located;
use crate::values::{compare, inputs};

#[test]
fn sums_inside_other_expressions() {
    let cases: &[(&str, &str, &str)] = &[
        (
            "a let around a sum",
            "var U: i32 = (let h = x[i]; reduce(+, q in 0..Q, h * w[q]));",
            "time = (i, q);",
        ),
        (
            "a let inside a sum",
            "var U: i32 = reduce(+, q in 0..Q, (let h = x[i] * w[q]; h * h));",
            "time = (i, q);",
        ),
        (
            "a let around a prefix",
            "var U: i32 = (let h = x[i]; scan(+, i, h + 1));",
            "time = i;",
        ),
        (
            "a prefix of another type",
            "var U: i32 = i32(scan(max, i, f32(x[i])));",
            "time = i;",
        ),
        (
            "a sum of another type",
            "var U: i32 = i32(reduce(max, q in 0..Q, f32(w[q]) * 0.5)) + x[i];",
            "time = (i, q);",
        ),
        (
            "a sum of sums",
            "var U: i32 = reduce(+, q in 0..Q, w[q] * reduce(max, p in 0..N, x[p] + w[q]));",
            "time = (i, q, p);",
        ),
        (
            "two sums",
            "var U: i32 = reduce(+, q in 0..Q, w[q]) * reduce(max, p in 0..N, x[p]);",
            "time = (i, q, p);",
        ),
        (
            "a sum decides",
            "var U: i32 = select(reduce(+, q in 0..Q, w[q]) > 0, x[i], -x[i]);",
            "time = (i, q);",
        ),
        (
            "a sum under a guard",
            "var U: i32 = select(i == 0, 7, reduce(+, q in 0..Q, w[q] * x[i]));",
            "time = (i, q);",
        ),
        (
            "a sum as an argument",
            "fn f(a: i32, b: i32) -> i32 = 2 * a - b;\n var U: i32 = f(x[i], reduce(+, q in 0..Q, w[q]));",
            "time = (i, q);",
        ),
        (
            "a sum in a tuple",
            "var T: (i32, i32) = (x[i], reduce(+, q in 0..Q, w[q]));\n var U: i32 = T.0 - T.1;",
            "time = (i, q);",
        ),
        (
            "a prefix of a prefix",
            "var V: i32 = scan(+, i, x[i]);\n var U: i32 = scan(+, i, V);",
            "time = i;",
        ),
        (
            "a prefix inside a prefix",
            "var U: i32 = scan(+, i, scan(max, i, x[i]));",
            "time = i;",
        ),
        (
            "a prefix of sums",
            "var U: i32 = scan(+, i, reduce(+, q in 0..Q, w[q] * x[i]));",
            "time = (i, q);",
        ),
        (
            "a sum of prefixes",
            "var V: i32 = scan(+, i, x[i]);\n var U: i32 = reduce(+, q in 0..Q, w[q] * V);",
            "time = (i, q);",
        ),
        (
            "a sum of earlier values",
            "var V: i32 = x[i];\n var U: i32 = reduce(+, q in 0..Q, w[q] * select(i == 0, 1, V(i - 1)));",
            "time = (i, q);",
        ),
        (
            "a sum of its own last value",
            "var U: i32 = x[i] + select(i == 0, 0, reduce(+, q in 0..Q, w[q] * U(i - 1)));",
            "time = (i, q);",
        ),
        (
            "a sum of sums of a variable",
            "var V: i32 = x[i];\n var U: i32 = reduce(+, q in 0..Q, w[q] * reduce(max, p in 0..N, V + x[p]));",
            "time = (i, q, p);",
        ),
        (
            "a sum of a let of a sum",
            "var U: i32 = (let h = reduce(max, p in 0..N, x[p]); reduce(+, q in 0..Q, h * w[q]));",
            "time = (i, q, p);",
        ),
        (
            "a sum that exists under a guard",
            "var U: i32 = select(i == 0, 7, reduce(+, q in 0..Q, w[q] * x[i - 1]));",
            "time = (i, q);",
        ),
        (
            "a sum under an inner guard",
            "var U: i32 = reduce(+, q in 0..Q, select(q == 0, 1, w[q - 1]));",
            "time = (i, q);",
        ),
        (
            "a sum under a guard in a sum",
            "var U: i32 = reduce(+, q in 0..Q, select(q == 0, 1, reduce(+, p in 0..N, w[q - 1] * x[p])));",
            "time = (i, q, p);",
        ),
        (
            "a prefix under a guard",
            "var U: i32 = select(i == 0, 7, scan(+, i, x[i]));",
            "time = i;",
        ),
        (
            "a prefix beside a moving sum",
            "var V: i32 = reduce(+, p in 0..i + 1, x[p]);\n var U: i32 = V + scan(+, i, x[i]);",
            "time = (i, p);",
        ),
        (
            "a value beside a moving sum",
            "var V: i32 = reduce(+, p in 0..i + 1, x[p]);\n var U: i32 = V + select(i == 0, 0, U(i - 1));",
            "time = (i, p);",
        ),
        (
            "an earlier moving sum",
            "var V: i32 = reduce(+, p in 0..i + 1, x[p]);\n var U: i32 = x[i] + select(i == 0, 0, V(i - 1));",
            "time = (i, p);",
        ),
        (
            "a table inside a sum",
            "table t[4]: i32 = [3, 1, 4, 1];\n var U: i32 = reduce(+, q in 0..Q, t[(x[i] + w[q]) & 3]);",
            "time = (i, q);",
        ),
        (
            "the iterator inside a sum",
            "var U: i32 = reduce(+, q in 0..Q, i32(q * i) + w[q]);",
            "time = (i, q);",
        ),
    ];
    let mut failures = Vec::new();
    for (name, equations, mapping) in cases {
        let text = format!(
            "system s(N, Q) where N >= 1, Q >= 1 {{\n input x[N]: i32;\n input w[Q]: i32;\n index i in 0..N;\n {equations}\n output y[N]: i32 = U at [i];\n}}\nmapping m of s {{ {mapping} }}\n"
        );
        let result = std::panic::catch_unwind(|| run_both(&text));
        match result {
            Ok(Ok(())) => {}
            Ok(Err(why)) => failures.push(format!("{name}: {why}\n{text}")),
            Err(_) => failures.push(format!("{name}: a panic\n{text}")),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn run_both(text: &str) -> Result<(), String> {
    let module =
        load(text).map_err(|e| e.iter().map(located(text)).collect::<Vec<_>>().join("; "))?;
    let system = &module.systems[0];
    if let Some(error) = check_system(system, &BTreeMap::new()).first() {
        return Err(error.to_string());
    }
    let sizes: BTreeMap<String, i128> =
        [("N", 4), ("Q", 3)].map(|(n, v)| (n.to_string(), v)).into();
    let checked =
        check_mapping(&module, &module.mappings[0], &sizes).map_err(|e| e[0].to_string())?;
    let params = [4, 3];
    let inputs = inputs(system, &params)?;
    let expected =
        expect_system(system, &params, &inputs).map_err(|e| format!("the system: {e}"))?;
    let outputs =
        run_array(&checked.array, &params, &inputs).map_err(|e| format!("the array: {e}"))?;
    compare(&expected, &outputs, false)
}
