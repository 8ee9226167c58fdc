//! Where types do not match, the help names a cast that mends the program.

use systola_front::parse_module;
use systola_ir::Diagnostic;

const TYPES: [&str; 13] = [
    "bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64",
];

fn program(left: &str, right: &str, of: &str, body: &str) -> String {
    format!(
        "system s(N) {{ input x[N]: {left}; input y[N]: {right}; index i in 0..N; \
         var A: {of} = {body}; output z[N]: {of} = A at [i]; }}"
    )
}

fn refused(source: &str) -> Option<Diagnostic> {
    let errors = parse_module(source).err()?;
    assert_eq!(errors.len(), 1, "{source}: {errors:#?}");
    assert_eq!(errors[0].code.id, "E0203", "{source}");
    errors.into_iter().next()
}

/// What the help says to write: the first code in it.
fn suggestion(error: &Diagnostic) -> String {
    let help = error.help.as_deref().expect("a help");
    assert!(!help.contains('…'), "{help}");
    let of_code = help.split('`').nth(1);
    of_code
        .unwrap_or_else(|| panic!("no code in {help}"))
        .to_string()
}

#[test]
fn a_cast_to_the_type_of_a_variable() {
    for from in TYPES {
        for to in TYPES {
            for body in ["x[i]", "select(i == 0, x[i], x[i])", "(x[i])"] {
                let source = program(from, from, to, body);
                let Some(error) = refused(&source) else {
                    assert_eq!(from, to, "{body}");
                    continue;
                };
                let span = error.span();
                let (start, end) = (span.start as usize, span.end as usize);
                let help = suggestion(&error);
                let mended = format!("{}{help}{}", &source[..start], &source[end..]);
                assert_eq!(refused(&mended), None, "{mended}");
            }
        }
    }
}

#[test]
fn a_cast_of_one_of_two_operands() {
    for left in TYPES {
        for right in TYPES.into_iter().filter(|right| *right != left) {
            if [left, right].contains(&"bool") {
                // There is no sum of truth values: the operator is refused first, as E0204.
                continue;
            }
            let source = program(left, right, left, "x[i] + y[i]");
            let help = suggestion(&refused(&source).expect("two types"));
            let of = if help.contains('x') { right } else { left };
            let operand = if help.contains('x') { "x[i]" } else { "y[i]" };
            let mended = program(left, right, of, &"x[i] + y[i]".replace(operand, &help));
            assert_eq!(refused(&mended), None, "{mended}");
        }
    }
}

#[test]
fn what_a_cast_loses_is_said() {
    let help = |from: &str, to: &str, body: &str| {
        let error = refused(&program(from, from, to, body)).expect("a mismatch");
        error.help.expect("a help")
    };
    for (from, to, body, expected) in [
        ("i16", "f32", "x[i]", "write `f32(x[i])`: nothing is lost"),
        (
            "i64",
            "f32",
            "x[i]",
            "write `f32(x[i])`: integers beyond 2^24 are rounded",
        ),
        (
            "f32",
            "i32",
            "x[i]",
            "write `i32(x[i])`: the fraction is dropped, and values beyond those of i32 become its first or last",
        ),
        (
            "f64",
            "f32",
            "x[i]",
            "write `f32(x[i])`: it is rounded to 24 binary digits",
        ),
        (
            "i32",
            "u8",
            "x[i]",
            "write `u8(x[i])`: values that u8 does not have wrap around",
        ),
        ("u8", "i32", "x[i]", "write `i32(x[i])`: nothing is lost"),
        (
            "f32",
            "f32",
            "i / N",
            "`/` of integers rounds down: write `f32(i) / f32(N)` for the quotient, `f32(i / N)` for the rounded one",
        ),
        (
            "bool",
            "i32",
            "x[i]",
            "write `i32(x[i])`: 1 where it holds, 0 elsewhere",
        ),
        (
            "i32",
            "bool",
            "x[i] + 1",
            "write a condition: `(x[i] + 1) != 0`",
        ),
        (
            "f32",
            "f32",
            "x[i] * i",
            "write `f32(i)`: integers beyond 2^24 are rounded",
        ),
        (
            "f32",
            "f32",
            "0.5 * i",
            "write `f32(i)`: integers beyond 2^24 are rounded; or `f64(i)` among f64",
        ),
        (
            "i32",
            "i32",
            "1.5",
            "`1.5` is no i32: write a whole number, or `i32(1.5)`, which drops the fraction",
        ),
    ] {
        assert_eq!(help(from, to, body), expected, "{from} → {to}: {body}");
    }
}
