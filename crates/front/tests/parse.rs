//! The meaning of program texts: whole programs, and small ones compared with their printed form.

use std::fs;
use std::path::{Path, PathBuf};

use systola_front::{parse_mapping, parse_module};
use systola_ir::system::{Expr, Module};
use systola_ir::{DimId, LocalId, Scalar};

fn parsed(source: &str) -> Module {
    match parse_module(source) {
        Ok(module) => module,
        Err(errors) => panic!("{source}\n{errors:#?}"),
    }
}

/// Checks that printing and parsing a program again changes nothing, and that printing is
/// idempotent.
fn round_trip(source: &str) -> String {
    let module = parsed(source);
    let printed = module.to_string();
    let again = parsed(&printed);
    assert_eq!(module, again, "{printed}");
    assert_eq!(printed, again.to_string());
    printed
}

/// Checks the printed form of the last of some declarations in a system over i and j.
fn check(declarations: &str, expect: &str) {
    let source = format!(
        "system s(N, M) {{
           const k: i32 = 7;
           input x[N]: f32;
           table t[4]: i32;
           fn f(a: (f32, i64)) -> f32 = a.0;
           index i in 0..N, j in 0..M;
           var P: (f32, (i64, bool)) = (1, (2, true));
           {declarations}
         }}"
    );
    let printed = round_trip(&source);
    let from = printed.find("  var P").expect("a var");
    let below: Vec<&str> = printed[from..].lines().skip(1).collect();
    let shown = below[..below.len() - 1].join("\n");
    assert_eq!(shown, expect, "{printed}");
}

fn value(equation: &str, expect: &str) {
    check(
        &format!("var A: {equation};"),
        &format!("  var A: {expect};"),
    );
}

#[test]
fn everything_survives_printing() {
    round_trip(include_str!("good/everything.ure"));
}

#[test]
fn the_gallery_survives_printing() {
    fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                collect(&path, files);
            } else if path.extension().is_some_and(|e| e == "ure") {
                files.push(path);
            }
        }
    }
    let mut files = Vec::new();
    let gallery = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../gallery");
    collect(&gallery, &mut files);
    assert!(!files.is_empty());
    for path in files {
        println!("{}", path.display());
        round_trip(&fs::read_to_string(&path).expect("a text"));
    }
}

#[test]
fn precedence_needs_few_parentheses() {
    value("i64 = (((i) + (j * 2)) - (N))", "i64 = i + j * 2 - N");
    value("i64 = i - (j - N)", "i64 = i - (j - N)");
    value("i64 = (i + j) * -N", "i64 = (i + j) * -N");
    value("i64 = -(i + j)", "i64 = -(i + j)");
    value("i64 = - 1 - -(1)", "i64 = -1 - -(1)");
    value("i64 = (i | j & N ^ M) << 1", "i64 = (i | j & N ^ M) << 1");
    value("bool = i < j < N", "bool = i < j && j < N");
    value("bool = (i < j) == true", "bool = i < j == true");
    value("bool = !(i < j) || P.1.1", "bool = !(i < j) || P.1.1");
    value("f32 = min(x[i], 2, P.0)", "f32 = min(x[i], 2.0, P.0)");
    value(
        "f32 = min(x[i], min(2, P.0))",
        "f32 = min(x[i], min(2.0, P.0))",
    );
}

#[test]
fn literals_take_the_type_they_meet() {
    value("f32 = 1 + 2 * x[i]", "f32 = 1.0 + 2.0 * x[i]");
    value("i32 = k + 1", "i32 = k + 1");
    value("bool = 1 < x[i]", "bool = 1.0 < x[i]");
    value("bool = 1 < 2", "bool = 1 < 2");
    value("bool = 1u8 < 2", "bool = 1u8 < 2u8");
    value("f32 = f32(1) / f32(1.5f64)", "f32 = f32(1) / f32(1.5)");
    value("f32 = f32(1u8)", "f32 = f32(1u8)");
    value("f32 = f((1, 2))", "f32 = f((1.0, 2))");
    value("f64 = (1.5, 2).0", "f64 = (1.5, 2).0");
    value("f32 = (1.5f32, 2).0", "f32 = (1.5f32, 2).0");
    value(
        "f32 = select(i == 0, (1, x[i]), (x[i], 2)).0",
        "f32 = select(i == 0, (1.0f32, x[i]), (x[i], 2.0f32)).0",
    );
    value("f32 = inf - -inf + nan", "f32 = inf - -inf + nan");
    value("f32 = f32(inf_f16)", "f32 = f32(inf_f16)");
    value("f32 = 1_000e-3", "f32 = 1.0");
    value("u64 = 18446744073709551615", "u64 = 18446744073709551615");
    value("i64 = -9223372036854775808", "i64 = -9223372036854775808");
    value(
        "f32 = reduce(+, q in 0..N, 1)",
        "f32 = reduce(+, q in 0..N, 1.0)",
    );
    value(
        "i32 = select(x[i] > 0, 1, 0) + k",
        "i32 = select(x[i] > 0.0, 1, 0) + k",
    );
}

#[test]
fn a_select_by_position_is_a_guard() {
    let of = |source: &str| {
        let text = format!(
            "system s(N) {{ input x[N]: f32; table t[4]: i32; index i in 0..N; {source} }}"
        );
        parsed(&text).systems.remove(0).vars.remove(0).body
    };
    let guard = |e: &Expr| matches!(e, Expr::Guard { .. });
    let select = |e: &Expr| matches!(e, Expr::Select { .. });
    assert!(guard(&of("var A: f32 = select(i == 0, 1);")));
    assert!(guard(&of(
        "var A: f32 = select(!(i % 2 == 0 && N*i < 4), 1, 2);"
    )));
    assert!(guard(&of("var A: f32 = select(true, 1, 2);")));
    assert!(select(&of("var A: f32 = select(i*i < 4, 1, 2);")));
    assert!(select(&of("var A: f32 = select(x[i] < 4, 1, 2);")));

    assert!(matches!(of("var A: i32 = t[i/4 + 1];"), Expr::Input { .. }));
    assert!(matches!(
        of("var A: i32 = t[i*i % 4];"),
        Expr::Lookup { .. }
    ));
}

#[test]
fn indices_are_normal_forms() {
    value("f32 = x[(4*i + 6)/4 - 1]", "f32 = x[i]");
    value("f32 = x[j + 2*(i + 1) - k]", "f32 = x[2*i + j - 5]");
    value("f32 = x[-(i/2)*3 + i % 2]", "f32 = x[-3*(i/2) + i % 2]");
    value("f32 = x[N*i + j]", "f32 = x[N*i + j]");
}

#[test]
fn locals_and_bound_iterators_are_numbered_as_written() {
    value(
        "i64 = let a = (let b = 1; b + i); let c = a; a * c",
        "i64 =\n      let a = (let b = 1; b + i);\n      let c = a;\n      a * c",
    );
    let module = parsed(
        "system s(N) {
           fn f(a: i64) -> i64 = let b = a; b;
           index i in 0..N;
           var A: i64 = reduce(+, q in 0..i, r in q..N, q * r) + reduce(max, q in 0..N, q);
         }",
    );
    let system = &module.systems[0];
    assert!(matches!(
        system.functions[0].body,
        Expr::Let {
            local: LocalId(1),
            ..
        }
    ));
    let names: Vec<&str> = system.bound.iter().map(|d| d.name.as_str()).collect();
    assert_eq!(names, ["q", "r", "q"]);
    assert_eq!(system.dim(DimId(2)).name, "r");
}

#[test]
fn a_point_without_iterators() {
    let module = parsed(
        "system dot(N) {
           input x[N]: f32; input scale[]: f32;
           var Z: f32 = reduce(+, q in 0..N, x[q] * x[q]) * scale;
           output z[]: f32 = Z at [];
         }",
    );
    assert!(module.systems[0].dims.is_empty());
    assert_eq!(module.systems[0].outputs[0].ty, Scalar::F32);
    round_trip(&module.to_string());
}

#[test]
fn long_sums_are_fine_on_a_small_stack() {
    let terms: Vec<String> = (0..500).map(|n| format!("x[i + {n}]*w[{n}]")).collect();
    let too_many = terms.join(" + ") + &" + 1".repeat(295);
    let nested = format!("{}1{}", "abs(".repeat(90), ")".repeat(90));
    let parens = format!("{}1{}", "(".repeat(300), ")".repeat(300));
    let source = format!(
        "system s(N) {{
           input x[N + 500]: f32; input w[500]: f32;
           index i in 0..N;
           var A: f32 = {};
           var B: f32 = {nested};
           var C: f32 = {parens};
         }}",
        terms.join(" + ")
    );
    // The default size in Rust's standard library.
    let small = std::thread::Builder::new().stack_size(2 << 20);
    let thread = small
        .spawn(move || {
            round_trip(&source);
            let refused = format!("system s(N) {{ input x[N]: f32; input w[N]: f32; index i in 0..N; var A: f32 = {too_many}; }}");
            assert!(parse_module(&refused).is_err());
            for opening in ["reduce(+, q in 0..N, ", "scan(+, i, ", "(", "-"] {
                let endless = opening.repeat(5_000);
                let text = format!("system s(N) {{ index i in 0..N; var A: f32 = {endless}");
                assert!(parse_module(&text).is_err(), "{opening}");
            }
        })
        .expect("a thread");
    thread.join().expect("no overflow");
}

#[test]
fn a_mapping_alone() {
    let mapping = parse_mapping("mapping a of b { X.tile(c, oc, cc, 4).reorder(q, cc); }");
    assert_eq!(mapping.map(|m| m.directives.len()), Ok(2));
    assert!(parse_mapping("system s(N) { }").is_err());
    assert!(parse_mapping("mapping a of b { } mapping c of d { }").is_err());
    assert!(parse_mapping("mapping a of b { lane = ; }").is_err());
    assert!(parse_mapping("").is_err());
    assert_eq!(parse_module(""), Ok(Module::default()));
}
