//! Kernels are read back as they are printed.

use systola_ir::kernel::parse::{ParseError, parse};
use systola_ir::kernel::{FaultKind, Op, Program, Stmt};
use systola_ir::{BinOp, Literal};

/// Every kind of buffer, variable, statement and operation.
const ALL: &str = r#"program all(N, K = 3) where N >= 1, K == 3 {
  input x[N]: f32;
  input table[3]: i32 = [1, -2, 3];
  input long[18]: f32 = [
    1.0, 2, 3.5, -0.0, inf, -inf, nan, -nan, 1e-30, 0, 0, 0, 0, 0, 0, 0,
    1e30, 2.0
  ];
  input grid[-1..N + 1, 2*N]: f64;
  output y[N]: f32 else -0.0;
  output z[N]: bool;
  temporary t[2, N]: f32;
  flags ready[N]: i32;
  faults bad[5]: i32 {
    1: division by zero (%) in "`Z`" at (i, j);
    2: negative exponent in "`Z`" at (i);
    3: outside of "x" in "the output `y`" at ();
  }
  for s in max(0, K - 2)..N {
    if s >= 1 && (N < 4 || K == 3) {
      launch k(s + 1);
    } else {
      launch other();
    }
  }
}

kernel k: 2 warps of 32 lanes {
  host h;
  block b in 0..min(N, h + 1);
  warp w in 0..2;
  lane l in 0..32;
  shared stage[N, 2*K + 1]: f32;
  reg acc: f32;
  uniform reg n: i32;

  // what a person reads
  dynamic_block p from ready[0];
  x.1, x.2: f32 = x[2*l ..+2] when l < 4 else 1;
  copy async stage[0, l] when l < N = x[l] when l < p;
  copy bulk stage[0, 4*l ..+4] = x[4*l ..+4];
  copy stage[1, l] = x[b];
  commit copies;
  wait for copies, 2 may be pending;
  wait for all copies;
  barrier;
  c: f32 = lookup(stage, i32(x.1), 0i64);
  d: f32 = lane_shift(c, _, 3);
  e: f32 = shuffle(x.2 + 1.0, l - 1);
  for i in max(0, b - 3)..N step 2 {
    uniform g: f64 = grid[(i + 1)/4, N*h - 2*(i % 3)];
    acc = acc + f32(g) * min(x.1, -1.5) - -2.0;
    n = n + i32(index(i + 1)) * select(i < 3, 1, n);
  }
  u: f32 = abs(-(x.1 - (x.2 - x.1))) / pow(acc, 2) % exp(sqrt(x.1));
  v: bool = !(x.1 < x.2) && (u == 1.0 || true) != 1i32 < 2i32;
  q: i32 = select(v && false, n << 2, (n | 3) ^ -(1)) & !n;
  r: f32 = select(true_bool, f32(inf_f64), f32(3u8));
  fault bad, 2 at (l + 1) if v when l < N;
  if w == 1 {
    y[l ..+2] = u, r when N < 4 || b + l >= 2;
  } else {
    y[l] = 0;
    z[l] = q > 0;
  }
  if h >= 1 {
  } else {
    // nothing but this
  }
  if h >= 2 {
    barrier;
    // at an end
  }
  // after a branch
  await ready[b] >= h when b >= 1;
  signal ready[b];
}

kernel other: 1 warp of 1 lane {

}
"#;

fn read(text: &str) -> Program {
    parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Checks that the statements in a small kernel are read and printed unchanged.
fn check(lines: &[&str]) -> Vec<Stmt> {
    let text = small(lines);
    let program = read(&text);
    assert_eq!(program.to_string(), text);
    assert_eq!(program.verify(), Vec::<String>::new(), "{text}");
    program.kernels[0].body.clone()
}

fn small(lines: &[&str]) -> String {
    let body: String = lines.iter().map(|line| format!("  {line}\n")).collect();
    format!(
        "program p(N) where N >= 1 {{
  input x[N]: f32;
  input i[N]: i32;
  output y[N]: f32;
  output k[N]: i64;
  launch k();
}}

kernel k: 1 warp of 32 lanes {{
  lane l in 0..32;
  reg r: f32;

{body}}}
"
    )
}

#[test]
fn everything_is_read_as_it_is_printed() {
    let program = read(ALL);
    assert_eq!(program.to_string(), ALL);
    assert_eq!(read(&program.to_string()), program);
    assert_eq!(program.verify(), Vec::<String>::new());
    let sites = program.buffers.iter().find_map(|b| b.kind.fault_sites());
    let sites = sites.expect("a buffer of faults");
    assert_eq!(sites[0].kind, FaultKind::DivisionByZero(BinOp::Rem));
    assert_eq!(sites[2].owner, "the output `y`");
}

#[test]
fn literals_have_the_type_of_other_operands_or_a_suffix() {
    let body = check(&["a: i32 = i[l];", "y[l] = f32(a * 3) + 2;"]);
    let lits = body.iter().filter_map(|stmt| match stmt {
        Stmt::Let(_, Op::Lit(value)) => Some(*value),
        _ => None,
    });
    assert_eq!(lits.collect::<Vec<_>>(), [Literal::Int(3), Literal::Int(2)]);
    check(&["y[l] = f32(1.5f64) + f32(nan_f16);"]);
    check(&["k[l] = i64(3u8 + 4u8);"]);
    check(&["k[l] = index(l + 1) + 1;"]);
    let error = parse(&small(&["y[l] = f32(3);"])).expect_err("no type");
    assert!(error.message.starts_with("the type of 3"), "{error}");
}

#[test]
fn a_choice_is_by_position_or_by_value() {
    let kind = |line: &str| {
        let body = check(&["a: f32 = x[l];", line]);
        let chosen = body.into_iter().find_map(|stmt| match stmt {
            Stmt::Let(_, Op::Choose { .. }) => Some("position"),
            Stmt::Let(_, Op::Select { .. }) => Some("value"),
            _ => None,
        });
        chosen.expect("a choice")
    };
    assert_eq!(kind("y[l] = select(l < N, a, r);"), "position");
    assert_eq!(kind("y[l] = select(true, a, r);"), "position");
    assert_eq!(kind("y[l] = select(a < r, a, r);"), "value");
    assert_eq!(kind("y[l] = select(index(l) < 3, a, r);"), "value");
    assert_eq!(kind("y[l] = select(1i32 < 3i32, a, r);"), "value");
    assert_eq!(kind("y[l] = select(true_bool, a, r);"), "value");
}

#[test]
fn a_minus_is_part_of_a_literal_or_an_operation() {
    let negated = |line: &str| {
        let body = check(&[line]);
        let is_neg = |stmt: &Stmt| matches!(stmt, Stmt::Let(_, Op::Unary(..)));
        body.iter().any(is_neg)
    };
    assert!(!negated("y[l] = -1.0;"));
    assert!(negated("y[l] = -(1.0);"));
    assert!(negated("y[l] = -(-1.0);"));
    assert!(negated("y[l] = -r;"));
}

#[test]
fn keywords_are_names_too() {
    check(&[
        "copy: f32 = x[l];",
        "uniform for: f32 = x[0];",
        "if: f32 = lane_shift(copy, _, 1);",
        "reg, when: f32 = x[2*l ..+2];",
        "y[l] = if + for + when when l < 3;",
    ]);
}

#[test]
fn positions_are_read_as_they_are_written() {
    let body = check(&[
        "a: f32 = x[-((-l + 2*N)/3) + 3*((l + 1)/4) + N*(l % 2) + N*N];",
        "y[l] = a when l < N && (l >= 2 || !(l >= 1 && l <= 5) || N == 3);",
    ]);
    assert_eq!(body.len(), 2);
}

/// Checks the position and the beginning of a message.
fn wrong(text: &str, line: usize, column: usize, message: &str) {
    let error = parse(text).expect_err("a mistake");
    let ParseError {
        line: l,
        column: c,
        message: said,
    } = &error;
    assert_eq!((*l, *c), (line, column), "{error}\n{text}");
    assert!(said.starts_with(message), "{error}");
}

#[test]
fn errors_in_programs_have_a_position() {
    wrong("", 1, 1, "expected `program`, found the end of the text");
    wrong("kernel", 1, 1, "expected `program`, found `kernel`");
    wrong("program p(N, N) {\n}", 1, 14, "`N` is a size already");
    wrong(
        "program p() where 1 + 1 {\n}",
        1,
        21,
        "expected a condition",
    );
    wrong(
        "program p() {\n  input x[M]: f32;\n}",
        2,
        11,
        "`M` is not known here",
    );
    wrong(
        "program p() {\n  input x[3]: f31;\n}",
        2,
        15,
        "`f31` is no type",
    );
    wrong(
        "program p() {\n  output x[3]: f32\n}",
        3,
        1,
        "expected `;`, found `}`",
    );
    wrong(
        "program p() {\n  launch k();\n}",
        2,
        10,
        "there is no kernel `k`",
    );
    wrong(
        "program p() {\n  call k();\n}",
        2,
        3,
        "expected a buffer, `launch`",
    );
    wrong(
        "program p() {\n  flags f[§]: i32;\n}",
        2,
        11,
        "`§` is not known here",
    );
    let site = "program p() {\n  faults f[3]: i32 {\n    2: negative exponent in \"Z\" at (i);";
    wrong(site, 3, 5, "expected the site 1");
    wrong(
        "program p(N = 3x) {\n}",
        1,
        15,
        "`x` after a number is not a type",
    );
    let large = format!("program p(N = {}) {{\n}}", "9".repeat(60));
    wrong(&large, 1, 15, "expected an integer");
}

#[test]
fn errors_in_kernels_have_a_position() {
    let first = |line: &str, column: usize, message: &str| {
        wrong(&small(&[line]), 13, column + 2, message);
    };
    wrong(&small(&["y[l] = 1.0"]), 14, 1, "expected `;`, found `}`");
    first("y[l] = ;", 8, "expected an expression, found `;`");
    first("y[m] = 1.0;", 3, "`m` is not known here");
    first("y[r] = 1.0;", 3, "`r` is a register, no position");
    first("w[l] = 1.0;", 1, "`w` is not known here");
    first("r[l] = 1.0;", 1, "`r` is a register, no array");
    first("y[l] = a;", 8, "`a` is not known here");
    first(
        "y[l] = l;",
        8,
        "expected a value: the position is written `index(l)`",
    );
    first("x = 1.0;", 1, "`x` is a buffer, and no register");
    first("r: f32 = 1.0;", 1, "`r` is a register already");
    first(
        "a: f32 = x[l] when x;",
        20,
        "expected a condition on positions",
    );
    first("a, b: f32 = x[l ..+3];", 13, "3 elements for 2 values");
    first("y[l ..+2] = r;", 1, "1 values for 2 elements");
    first("a: f32 = x[l*l];", 13, "a product of index variables");
    first(
        "a: f32 = x[l/N];",
        13,
        "a position is divided by positive numbers",
    );
    first(
        "a: f32 = cube(r);",
        10,
        "there is no operation `cube` with 1 operands",
    );
    first(
        "y[l] = r + (r < r);",
        10,
        "`+` takes two of one type, not f32 and bool",
    );
    first("jump;", 1, "`jump` begins no statement");
    first("wait for copies;", 16, "expected `,`, found `;`");
    first(
        "fault x, 0 at () if true;",
        10,
        "the sites of faults are numbered",
    );
    first(
        "for j in 0..N { r = 1.0; } for j in 0..N { }",
        32,
        "`j` is an index variable already",
    );
    let unclosed = small(&["if l < 3 {"]);
    wrong(&unclosed, 15, 1, "expected a statement or `}`");
    let text = ALL.replace("lane l in 0..32", "lane l in 0..16");
    wrong(&text, 31, 13, "expected the whole range, `0..32`");
}

#[test]
fn what_is_nested_too_deeply_is_refused() {
    let deep = |open: &str, close: &str| {
        let (open, close) = (open.repeat(100_000), close.repeat(100_000));
        let text = small(&[&format!("y[l] = {open}1.0{close};")]);
        let error = parse(&text).expect_err("too deep");
        assert!(error.message.contains("nested too deeply"), "{error}");
    };
    deep("(", ")");
    deep("-", "");
    deep("!", "");
    deep("abs(", ")");
    deep("", " + 1.0");
    deep("1.0 + (", ")");
    let blocks = small(&[&"if N >= 1 { ".repeat(100_000)]);
    let error = parse(&blocks).expect_err("too deep");
    assert!(error.message.contains("nested too deeply"), "{error}");
}

/// A small random number generator, the same in every run.
struct Rng(u64);

impl Rng {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        ((self.0 >> 33) as usize) % n.max(1)
    }
}

/// Words, numbers, single punctuation characters and the spaces between them.
fn pieces(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let end = match is_word(first) {
            true => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            false => first.len_utf8(),
        };
        let (piece, others) = rest.split_at(end);
        pieces.push(piece);
        rest = others;
    }
    pieces
}

#[test]
fn damaged_kernels_are_read_or_refused() {
    let whole = pieces(ALL);
    let mut rng = Rng(7);
    let (mut refused, mut accepted) = (0, 0);
    for _ in 0..1500 {
        let mut damaged = whole.clone();
        for _ in 0..1 + rng.below(3) {
            let (at, other) = (rng.below(damaged.len()), rng.below(whole.len()));
            match rng.below(4) {
                0 => drop(damaged.remove(at)),
                1 => damaged.insert(at, damaged[at]),
                2 => damaged[at] = whole[other],
                _ => damaged.truncate(at + 1),
            }
        }
        let damaged = damaged.concat();
        match parse(&damaged) {
            Err(error) => {
                refused += 1;
                let lines = damaged.lines().count() + 1;
                assert!(
                    (1..=lines).contains(&error.line) && error.column >= 1,
                    "{error}"
                );
                assert!(!error.message.is_empty());
            }
            // Every program that was read can be printed and read again.
            Ok(program) => {
                accepted += 1;
                let printed = program.to_string();
                let again = parse(&printed).unwrap_or_else(|e| panic!("{e}\n{printed}\n{damaged}"));
                assert_eq!(again.to_string(), printed, "{damaged}");
            }
        }
    }
    assert!(refused > 500 && accepted > 50, "{refused} {accepted}");
}
