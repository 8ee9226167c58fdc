//! Corrupted programs: for any text, the parser quickly returns a module or diagnostics, and a
//! module survives printing. Deterministic; `fuzz/` does the same guided by coverage.

mod rng;

use std::time::{Duration, Instant};

use rng::Rng;
use systola_front::parse_module;

const INPUTS: usize = 20_000;

const SAMPLES: &[&str] = &[
    include_str!("good/everything.ure"),
    "system a(N) { input x[N]: f32; index i in 0..N; var X: f32 = select(i == 0, x[i], X(i - 1) + x[i]); output z[N]: f32 = X at [i]; }",
    "system b(N, K) where N >= 1 { table t[2, 2]: i8 = [[1, 2], [3, -4]]; index i in 0..N, k in i..K; var A: i8 = let h = t[i % 2, k % 2]; select(h > 0, h, -h) << 1; output z[N]: i8 = A at [i] when k == K - 1 else 0; }",
    "stencil c(N, M, T) where N >= 3 { field u[N, M]: f32 mirror; field b[N, M]: f32; input w[3, 3]: f32; steps T; var g: f32 clamp = sum(w * u over box 1) + max(u over star 1 except box 0); u = 0.5*u[-1, 0] + g[0, 2] - b; output h = u; }",
    "stencil d(N, T) { index i; field u[N]: i32 constant 3; field v[N]: i32 wrap; steps T; batch n in 0..N; u = select(i < 2, u'[-1] + v, min(u over box 2)); v = let a = u[1]; a * a; }",
    "conv e(R, C) { input x[R, C]: f64 reflect; filter w[3, 5]: f64; stride 2, 1; dilation 3; }",
    "mapping m of a { lane = i/4; reg = i % 4; time = 2*i; when i < 4 && !(i == 2) { lane = 0; } }",
];

/// Tokens that are inserted at random places.
const PIECES: &[&str] = &[
    " over ",
    "star 1",
    "box (0, 2)",
    " except ",
    " fixed",
    " constant 1",
    "steps 3;",
    "u'",
    "u[-1, 1]",
    "sum(u over box 3)",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ";",
    ",",
    "..",
    ".",
    "=",
    "==",
    "<",
    "<=",
    "&&",
    "||",
    "!",
    "-",
    "/",
    "%",
    "*",
    "0",
    "1",
    "-1",
    "1e308",
    "1e999",
    "99999999999999999999999999999999999999",
    "340282366920938463463374607431768211456",
    "1.5f32",
    "0i8",
    "300u8",
    "inf",
    "nan_f32",
    "true",
    "select",
    "reduce",
    "scan",
    "let h = 1;",
    "min(",
    "in",
    "at",
    "when",
    "else",
    "where",
    "index",
    "var A: f32 =",
    "output",
    "system",
    "mapping",
    "program",
    "of",
    "fn",
    "i",
    "N",
    "x[",
    "X(",
    "i*i",
    "i/0",
    "N*N*N*N",
    "//",
    "\n",
    "\u{feff}",
    "é",
    "≤",
    "\0",
    "\"",
    "'",
    "_",
    "f32(",
    ".0.1",
    "2417851639229258349412351*i",
    "(i, j)",
    "a <= b < c",
];

fn damaged(rng: &mut Rng) -> String {
    let mut text = rng.pick(SAMPLES).as_bytes().to_vec();
    for _ in 0..1 + rng.below(6) {
        let at = rng.below(text.len());
        let end = at + rng.below(40.min(text.len() - at).max(1));
        match rng.below(12) {
            0 if !text.is_empty() => text[at] ^= 1 << rng.below(8),
            1 => text.truncate(at),
            2 => {
                text.drain(at..end);
            }
            3 => {
                let copy = text[at..end].to_vec();
                text.splice(at..at, copy);
            }
            4 => {
                let other = rng.pick(SAMPLES).as_bytes();
                let from = rng.below(other.len());
                let part = &other[from..(from + rng.below(80)).min(other.len())];
                text.splice(at..at, part.iter().copied());
            }
            5 => {
                let piece = rng.pick(PIECES);
                let most = if rng.chance(3) { 2000 } else { 3 };
                let n = 1 + rng.below(most);
                text.splice(at..at, piece.repeat(n).into_bytes());
            }
            6 => {
                // Replaces one word by another.
                let words: Vec<&str> = PIECES.iter().copied().filter(|p| p.len() < 8).collect();
                text.splice(at..end, rng.pick(&words).bytes());
            }
            7..=9 => {
                // Replaces one letter or digit by another; the result is often still a program.
                if text.get(at).is_some_and(u8::is_ascii_alphanumeric) {
                    text[at] = rng.pick(b"019iNxXcqZ");
                }
            }
            _ => {
                text.splice(at..at, rng.pick(PIECES).bytes());
            }
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// Texts that only a machine would write.
fn extreme() -> Vec<String> {
    let in_system = |body: &str| {
        format!("system s(N, M) {{ input x[N]: f32; index i in 0..N, j in 0..M; {body} }}")
    };
    let equation = |e: &str| in_system(&format!("var A: f32 = {e};"));
    let n = 20_000;
    vec![
        "(".repeat(n),
        equation(&"(".repeat(n)),
        equation(&"-".repeat(n)),
        equation(&"!".repeat(n)),
        equation(&"abs(".repeat(n)),
        equation(&"x[".repeat(n)),
        equation(&"select(".repeat(n)),
        equation(&"reduce(+, q in 0..N, ".repeat(n)),
        equation(&"(let h = 1; ".repeat(n)),
        equation(&format!("{}1", "let h = 1; ".repeat(n))),
        equation(&format!("1{}", " + 1".repeat(n))),
        equation(&format!("1{}", " < 1".repeat(n))),
        equation(&format!("1{}", " == (1".repeat(n))),
        equation(&format!("x{}", ".0".repeat(n))),
        equation(&format!("min(1{})", ", 1".repeat(n))),
        equation(&format!("({}1)", "1, ".repeat(n))),
        equation(&"a <= b < ".repeat(n)),
        equation(&format!("x[{}]", vec!["i"; n].join(" + "))),
        equation(&format!("x[{}]", vec!["(N + M + 1)"; 300].join("*"))),
        equation(&format!("x[{}i{}]", "(".repeat(90), "/2 + 1)".repeat(90))),
        equation(&format!(
            "x[{}i{}]",
            "(".repeat(90),
            "/2 + i % 3)".repeat(90)
        )),
        in_system(&format!(
            "var A: {}f32{} = 1;",
            "(".repeat(n),
            ")".repeat(n)
        )),
        in_system(&format!("table t[1]: i32 = {}", "[".repeat(n))),
        in_system(&"var A: f32 = 1; ".repeat(n)),
        in_system(&"var ".repeat(n)),
        in_system(
            &(0..2000)
                .map(|n| format!("fn f{n}() -> f32 = f{}();", n + 1))
                .collect::<String>(),
        ),
        in_system(
            &(0..2000)
                .map(|n| format!("var V{n}: f32 = V{} + W{n};", n + 1))
                .collect::<String>(),
        ),
        format!("mapping m of s {{ {}", "when i < 4 { ".repeat(n)),
        format!("mapping m of s {{ X{}", ".tile(c, o, i, 4)".repeat(n)),
        "system ".repeat(n),
        "system s(".repeat(n),
        "$".repeat(n),
        "$ ".repeat(n),
        format!("// {}", "x".repeat(n)),
        "9".repeat(n),
        "a".repeat(n),
    ]
}

/// Expressions at the limit of nesting, and slightly beyond it. An accepted expression must be
/// accepted again after printing, which adds and removes parentheses.
fn nested() -> Vec<String> {
    // The text before, in the middle, and after, and the type.
    let shapes = [
        ("abs(", "1", ")", "f32"),
        ("-(1 + ", "1", ")", "f32"),
        ("1 - (", "1", ")", "f32"),
        ("(1 + 2 * ", "1", ") * 3", "f32"),
        ("2 * (1 << ", "i", ") & 3 | ", "i64"),
        ("select(0 < ", "1", " < 9, 1, 2)", "f32"),
        ("select(x[i] < ", "1", " < 9, 1, 2)", "f32"),
        ("select(x[i] == 0, 1, ", "1", ")", "f32"),
        ("!(x[i] < 1 || ", "true", ")", "bool"),
        ("1 < 2 < 3 == ", "true", "", "bool"),
        ("!", "true", " == (1 < 2 < 3)", "bool"),
        (
            "select(!(i == 0 && !(i == 1 || ",
            "true",
            ")), 1, 2)",
            "f32",
        ),
        ("x[(1 + ", "i", ")/2]", "f32"),
        ("(let h = 1; h + ", "1", ")", "i64"),
        ("min(1, ", "1", ")", "f32"),
        ("(1, ", "1", ").1", "f32"),
        ("reduce(+, q in 0..3, 1 + ", "1", ")", "f32"),
    ];
    let index = [
        ("(1 + ", "i", ")/2"),
        ("2*(", "i", " % 7)/3 + 1"),
        ("-(", "i", "/2)"),
        ("(i + ", "i", ")/3"),
    ];
    let mut texts = Vec::new();
    for depth in (1..60).chain([70, 80, 90, 95, 96, 97, 120, 199, 200]) {
        for (open, middle, close, ty) in shapes {
            let (open, close) = (open.repeat(depth), close.repeat(depth));
            texts.push(format!("system s(N) {{ input x[N]: f32; index i in 0..N; var A: {ty} = {open}{middle}{close}; }}"));
        }
        for (open, middle, close) in index {
            let (open, close) = (open.repeat(depth), close.repeat(depth));
            texts.push(format!("system s(N) {{ input x[N]: f32; index i in 0..N; var A: f32 = x[{open}{middle}{close}]; }}"));
            texts.push(format!("system s(N) {{ }} mapping m of s {{ lane = {open}{middle}{close}; when {open}{middle}{close} < 1 {{ }} }}"));
        }
    }
    texts
}

#[test]
fn nothing_panics_or_hangs() {
    let n_inputs = match std::env::var("SYSTOLA_FUZZ") {
        Ok(n) => n.parse().expect("SYSTOLA_FUZZ is a number of inputs"),
        Err(_) => INPUTS,
    };
    let mut rng = Rng(0x5157_0141 ^ n_inputs as u64);
    let (mut accepted, mut refused) = (0, 0);
    let mut slowest = Duration::ZERO;
    let start = Instant::now();
    let inputs = extreme()
        .into_iter()
        .chain(nested())
        .chain((0..n_inputs).map(|_| damaged(&mut rng)));
    for text in inputs {
        let before = Instant::now();
        match parse_module(&text) {
            Ok(module) => {
                accepted += 1;
                let printed = module.to_string();
                let again = parse_module(&printed);
                assert_eq!(again.as_ref(), Ok(&module), "{text}\n---\n{printed}");
            }
            Err(errors) => {
                refused += 1;
                assert!(!errors.is_empty(), "{text}");
                for error in errors {
                    let (from, to) = (error.span().start as usize, error.span().end as usize);
                    assert!(
                        from <= to && to <= text.len(),
                        "{error} at {from}..{to}\n{text}"
                    );
                    assert!(
                        text.is_char_boundary(from) && text.is_char_boundary(to),
                        "{error}\n{text}"
                    );
                }
            }
        }
        let took = before.elapsed();
        if took > slowest {
            slowest = took;
            let head: String = text.chars().take(60).collect();
            println!(
                "slowest so far: {took:?} for {} bytes: {head:?}",
                text.len()
            );
        }
    }
    println!(
        "{accepted} accepted, {refused} refused in {:?}, the slowest took {slowest:?}",
        start.elapsed()
    );
    assert!(accepted > 100 && refused > 1000);
    // A generous bound: only a hang exceeds it, even on a busy machine.
    assert!(slowest < Duration::from_secs(120));
}
