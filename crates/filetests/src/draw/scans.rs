//! Random running sums: operations of all kinds and types, in both directions, one or two of them.
//! They cross blocks by look-back, with lanes along them or beside them, or go from step to step and
//! by flags from block to block.

use std::collections::BTreeMap;

use crate::tensor::Rng;

/// Systems with mappings as text, and the sizes to try.
pub struct DrawnScan {
    pub text: String,
    pub sizes: Vec<BTreeMap<String, i128>>,
    /// The results of floats are close, not equal.
    pub close: bool,
}

/// An operation: the type of its operands, a term of `x[…]`, and its declaration if it is a function.
struct Operation {
    ty: &'static str,
    scan: String,
    term: fn(&str) -> String,
    function: &'static str,
    close: bool,
    /// The part of a result that is stored.
    result: &'static str,
}

const INTEGERS: [&str; 8] = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"];

fn pick<T: Copy>(rng: &mut Rng, all: &[T]) -> T {
    all[rng.int(0, all.len() as i64) as usize]
}

fn operation(rng: &mut Rng) -> (Operation, &'static str) {
    let plain = |scan: &str, ty, close| Operation {
        ty,
        scan: scan.to_string(),
        term: str::to_string,
        function: "",
        close,
        result: "",
    };
    let integer = pick(rng, &INTEGERS);
    match rng.int(0, 8) {
        0 => (plain("+", "f32", true), "f32"),
        1 => (plain(pick(rng, &["min", "max"]), "f64", false), "f64"),
        2 => (plain(pick(rng, &["min", "max"]), integer, false), integer),
        3 => (plain(pick(rng, &["&", "|", "^"]), integer, false), integer),
        4 => {
            let bits = Operation {
                term: |x| format!("({x} % 3 == 0)"),
                ..plain(pick(rng, &["|", "^"]), "bool", false)
            };
            (bits, "u8")
        }
        // Sums that begin again where the term says so.
        5 => {
            let segments = Operation {
                scan: "join".to_string(),
                term: |x| format!("({x}, {x} % 5 == 0)"),
                function: "fn join(p: (i32, bool), q: (i32, bool)) -> (i32, bool) reorderable = \
                           (select(q.1, q.0, p.0 + q.0), p.1 | q.1);",
                result: ".0",
                ..plain("", "(i32, bool)", false)
            };
            (segments, "i32")
        }
        // Functions u -> a u + b, composed: the order matters.
        6 => {
            let functions = Operation {
                scan: "join".to_string(),
                term: |x| format!("({x} % 4 + u64(T), {x})"),
                function: "fn join(p: (u64, u64), q: (u64, u64)) -> (u64, u64) reorderable = \
                           (p.0 * q.0, p.1 * q.0 + q.1);",
                result: ".1",
                ..plain("", "(u64, u64)", false)
            };
            (functions, "u64")
        }
        // An operation that reads a parameter and a table.
        7 => {
            let tabled = Operation {
                scan: "join".to_string(),
                function: "table t[2]: i32 = [3, 5];\n  fn join(p: i32, q: i32) -> i32 reorderable = \
                           p + q + t[0] - t[1] + i32(T) - i32(T) + 2;",
                ..plain("", "i32", false)
            };
            (tabled, "i32")
        }
        _ => unreachable!("eight kinds"),
    }
}

/// A mapping whose lanes lie along the running sum over i.
fn along(rng: &mut Rng) -> String {
    let lanes = pick(rng, &["L", "L", "4", "3", "2"]);
    let (registers, vectors) = (pick(rng, &[1, 2, 4]), pick(rng, &[1, 1, 2, 3]));
    let beside = pick(rng, &["block", "time"]);
    let (block, time) = match beside {
        "block" => ("(j, b)", "0"),
        _ => ("b", "j"),
    };
    let reg = match (registers, vectors) {
        (1, 1) => String::new(),
        (1, _) => "  reg = q;\n".to_string(),
        (_, 1) => "  reg = r;\n".to_string(),
        _ => "  reg = (q, r);\n".to_string(),
    };
    format!(
        "  tile i by {vectors}*{registers}*{lanes} as (b, w);\n  tile w by {registers}*{lanes} as (q, v);\n  \
         tile v by {registers} as (l, r);\n  block = {block};\n  lane = l;\n{}  time = {time};\n",
        match reg.as_str() {
            "" => String::new(),
            reg => reg.to_string(),
        }
    )
}

/// A mapping whose lanes lie beside the running sum over i: each has sums of its own.
fn beside(rng: &mut Rng) -> String {
    let (head, block, reg) = match rng.int(1, 4) {
        1 => (String::new(), "i", None),
        rows => (format!("  tile i by {rows} as (b, r);\n"), "b", Some("r")),
    };
    let lanes = pick(rng, &["L", "L", "4", "3"]);
    let (place, time) = match rng.int(0, 3) {
        0 => (format!("({block}, c)"), "0"),
        1 => (block.to_string(), "c"),
        _ => (format!("(c, {block})"), "0"),
    };
    let reg = reg.map_or(String::new(), |r| format!("  reg = {r};\n"));
    format!(
        "{head}  tile j by {lanes} as (c, l);\n  block = {place};\n  lane = l;\n{reg}  time = {time};\n"
    )
}

/// A mapping of blocks whose warps share the pieces of a running sum over i: its lanes lie along the
/// sum, or beside it.
fn warps(rng: &mut Rng) -> String {
    let (warps, registers) = (pick(rng, &[2, 3, 4]), pick(rng, &[1, 2, 3]));
    let head = if rng.int(0, 3) == 0 {
        String::new()
    } else {
        "  look_back;\n".to_string()
    };
    if rng.int(0, 1) == 0 {
        let lanes = pick(rng, &["L", "4"]);
        return format!(
            "{head}  tile i by {warps}*{registers} as (b, u);\n  tile u by {registers} as (w, r);\n  \
             tile j by {lanes} as (c, l);\n  block = (b, c);\n  warp = w;\n  lane = l;\n  reg = r;\n  time = 0;\n"
        );
    }
    let lanes = pick(rng, &["L", "4", "3"]);
    let vectors = pick(rng, &[1, 1, 2]);
    let (block, time) = pick(rng, &[("(j, b)", "0"), ("b", "j")]);
    format!(
        "{head}  tile i by {warps}*{vectors}*{registers}*{lanes} as (b, u);\n  \
         tile u by {vectors}*{registers}*{lanes} as (w, z);\n  tile z by {registers}*{lanes} as (q, v);\n  \
         tile v by {registers} as (l, r);\n  block = {block};\n  warp = w;\n  lane = l;\n  reg = (q, r);\n  \
         time = {time};\n"
    )
}

/// A mapping whose lanes lie along the running sum over i, which goes on in the next step.
fn steps(rng: &mut Rng, down: bool) -> String {
    let lanes = pick(rng, &["L", "4", "3", "2"]);
    let (registers, vectors) = (pick(rng, &[1, 2, 4]), pick(rng, &[1, 1, 2, 3]));
    let sign = if down { "-" } else { "" };
    let time = match rng.int(0, 2) {
        0 => format!("  block = j;\n  time = {sign}t;\n"),
        _ => format!("  time = (j, {sign}t);\n"),
    };
    format!(
        "  tile i by {vectors}*{registers}*{lanes} as (t, w);\n  tile w by {registers}*{lanes} as (q, v);\n  \
         tile v by {registers} as (l, r);\n  lane = l;\n  reg = (q, r);\n{time}"
    )
}

/// The same in blocks of some steps, each of which waits for the block before.
fn flags(rng: &mut Rng, down: bool) -> String {
    let (lanes, steps) = (pick(rng, &["L", "4", "3"]), pick(rng, &[1, 2, 5]));
    let sign = if down { "-" } else { "" };
    format!(
        "  flags;\n  tile i by {steps}*{lanes} as (b, w);\n  block = (j, b);\n  lane = w % {lanes};\n  \
         time = {sign}({steps}*b + w/{lanes});\n"
    )
}

/// The same seed draws the same.
pub fn draw_scan(seed: u64) -> DrawnScan {
    let mut rng = Rng::new(seed);
    let (op, element) = operation(&mut rng);
    let down = op.function.is_empty() && op.scan == "+" || rng.int(0, 3) == 0;
    let Operation {
        ty,
        scan,
        function,
        result,
        ..
    } = &op;
    let term = (op.term)("x[i, j]");
    // Only operators can be written as a recurrence.
    let recurrence = down && function.is_empty() && *ty != "bool";
    let sum = match (recurrence, scan.as_str()) {
        (false, _) => format!("var S: {ty} = scan({scan}, i, {term});"),
        (true, "min" | "max") => format!(
            "var S: {ty} reorderable = select(i == T - 1, {term}, {scan}(S(i + 1, j), {term}));"
        ),
        (true, _) => format!(
            "var S: {ty} reorderable = select(i == T - 1, {term}, S(i + 1, j) {scan} {term});"
        ),
    };
    let second = match rng.int(0, 3) {
        0 => format!(
            "\n  var R: {element} = scan(max, i, x[i, j]);\n  output r[T, M]: {element} = R at [i, j];"
        ),
        _ => String::new(),
    };
    let output = match *ty {
        "bool" => "bool",
        _ => element,
    };
    let mut text = format!(
        "system drawn(T, M) where T >= 1, M >= 1 {{\n  input x[T, M]: {element};\n  {function}\n  \
         index i in 0..T, j in 0..M;\n  {sum}{second}\n  output s[T, M]: {output} = S{result} at [i, j];\n}}\n"
    );
    let bodies = [
        format!("  look_back;\n{}", along(&mut rng)),
        format!("  look_back;\n{}", beside(&mut rng)),
        warps(&mut rng),
        steps(&mut rng, recurrence),
        flags(&mut rng, recurrence),
    ];
    for (n, body) in bodies.iter().enumerate() {
        text.push_str(&format!("\nmapping m{n} of drawn {{\n{body}}}\n"));
    }
    let size = |t: i64, m: i64| {
        let names = ["T", "M"].map(String::from);
        names.into_iter().zip([t, m].map(i128::from)).collect()
    };
    let sizes = vec![
        size(rng.int(1, 9), rng.int(1, 4)),
        size(rng.int(30, 140), rng.int(1, 40)),
    ];
    DrawnScan {
        text,
        sizes,
        close: op.close,
    }
}
