//! Blocks that look back: whatever was published when they looked, an associative operation has one
//! result; another operation shows that all splits are tried.

use std::collections::BTreeSet;

use systola_interp::kernel::{FaultKind, Options, Order, Outcome, RunError, run_kernel_program};
use systola_interp::{Arrays, Data, Tensor};
use systola_ir::kernel::Program;
use systola_ir::kernel::parse::parse;

/// Every block has a term for the warp and one for each of its two lanes.
fn program(operator: &str, direction: &str) -> Program {
    let text = format!(
        "program p(N) where N >= 1 {{
  input x[N, 2]: i32;
  output whole[N]: i32;
  output own[N, 2]: i32;
  flags next[1]: i32;
  flags sums[N, 1]: u64;
  flags lanes[N, 2, 1]: u64;
  launch k();
}}

kernel k: 1 warp of 2 lanes {{
  block grid in 0..N;
  lane l in 0..2;

  dynamic_block b from next[0];
  uniform a: i32 = x[b, 0];
  look_back before: i32 = a at sums[b, 0] along 0 {direction}, where e joins f {{
    uniform s: i32 = e {operator} f;
  }} gives s;
  none: i32 = 0;
  whole[b] = select(FIRST, none, before);
  c: i32 = x[b, l];
  look_back mine: i32 = c at lanes[b, l, 0] along 0 {direction}, where g joins h {{
    uniform t: i32 = g {operator} h;
  }} gives t;
  own[b, l] = select(FIRST, none, mine);
}}
"
    );
    let first = if direction == "up" {
        "b == 0"
    } else {
        "b == N - 1"
    };
    let program = parse(&text.replace("FIRST", first)).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(program.verify(), [""; 0]);
    program
}

fn run(program: &Program, n: usize, order: Order, resident: usize) -> Result<Outcome, RunError> {
    let x: Vec<i32> = (0..2 * n as i32).map(|k| 3 * k * k % 17 - 5).collect();
    let inputs: Arrays = [(
        "x".to_string(),
        Tensor::new(vec![n, 2], Data::I32(x)).unwrap(),
    )]
    .into();
    let options = Options {
        order,
        resident,
        ..Options::default()
    };
    run_kernel_program(program, &[n as i128], &inputs, &options)
}

fn ints(outcome: &Outcome, name: &str) -> Vec<i32> {
    match &outcome.outputs[name].data {
        Data::I32(list) => list.clone(),
        other => panic!("{other:?}"),
    }
}

fn orders() -> impl Iterator<Item = Order> {
    let shuffled = (0..20).map(Order::Shuffled);
    [Order::InOrder, Order::Reversed]
        .into_iter()
        .chain(shuffled)
}

#[test]
fn an_associative_operation_has_one_result() {
    let x = |b: i32, l: i32| 3 * (2 * b + l) * (2 * b + l) % 17 - 5;
    for n in [1, 2, 9] {
        let ups: Vec<i32> = (0..n).map(|b| (0..b).map(|k| x(k, 0)).sum()).collect();
        let downs: Vec<i32> = (0..n).map(|b| (b + 1..n).map(|k| x(k, 0)).sum()).collect();
        let lanes = |b: i32| (0..2).map(move |l| (0..b).map(|k| x(k, l)).sum::<i32>());
        let own: Vec<i32> = (0..n).flat_map(lanes).collect();
        for order in orders() {
            for resident in [3, usize::MAX] {
                let up = run(&program("+", "up"), n as usize, order, resident).unwrap();
                assert_eq!(ints(&up, "whole"), ups, "{order:?}");
                assert_eq!(ints(&up, "own"), own, "{order:?}");
            }
        }
        // The first block of a descending chain is the last to get its number.
        for order in orders() {
            let down = run(&program("+", "down"), n as usize, order, usize::MAX).unwrap();
            assert_eq!(ints(&down, "whole"), downs, "{order:?}");
        }
    }
}

#[test]
fn every_split_is_tried() {
    // Of ((a - b) - c) - d the grouping shows.
    let mut found = BTreeSet::new();
    for order in orders() {
        let outcome = run(&program("-", "up"), 4, order, usize::MAX).unwrap();
        found.insert(ints(&outcome, "whole")[3]);
    }
    // a - b - c, and a - (b - c).
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn a_block_waits_for_those_before_it() {
    // With one block at a time a descending chain waits for blocks that have no place.
    for order in orders() {
        let error = run(&program("+", "down"), 4, order, 1).unwrap_err();
        let stuck = |kind: &FaultKind| matches!(kind, FaultKind::NothingPublished { .. });
        assert!(error.fault().is_some_and(stuck), "{error}");
    }
    // Blocks that take their places from the grid run in any order.
    let text = program("+", "up").to_string();
    let text = text.replace("  dynamic_block b from next[0];\n", "");
    let text = text.replace("block grid in", "block b in");
    let unordered = parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let error = run(&unordered, 4, Order::Reversed, 1).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("nothing is published at sums[2, 0]"),
        "{error}"
    );
}

#[test]
fn a_part_is_published_once() {
    let text = program("+", "up")
        .to_string()
        .replace("at sums[b, 0]", "at sums[0, 0]");
    let twice = parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let error = run(&twice, 3, Order::InOrder, 3).unwrap_err();
    assert!(
        error.to_string().contains("sums[0, 0] is published twice"),
        "{error}"
    );
}

#[test]
fn nothing_is_before_the_first_block() {
    let text = program("+", "up").to_string();
    let checked = text
        .lines()
        .find(|line| line.contains("whole[b] ="))
        .expect("a store");
    let text = text.replace(checked, "  whole[b] = before;");
    let early = parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let error = run(&early, 3, Order::InOrder, 3).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("looks back from the first block of a chain"),
        "{error}"
    );
}
