//! Hover: the meaning of names and mappings.

use crate::client::{Client, gallery};
use crate::{CONV, URI, opened};

#[test]
fn hover_tells_of_every_kind_of_name() {
    let mut client = opened(CONV);
    client.hover_until(URI, "sbm of |conv1d", "- `tiled`: legal");
    let z = client.hover(URI, "sum |Z along");
    for part in [
        "var Z: f32 reorderable = reduce(",
        "variable of the system `conv1d`",
        "- type: `f32`",
        "- domain: `c in 0..C`",
        "- reads:\n  - `x[c + q]`\n  - `w[q]`",
        "- is written to:\n  - `z`",
    ] {
        assert!(z.contains(part), "{part} in {z}");
    }
    let check = |client: &mut Client, around: &str, parts: &[&str]| {
        let text = client.hover(URI, around);
        for part in parts {
            assert!(text.contains(part), "{around}: no {part} in {text}");
        }
    };
    check(
        &mut client,
        "scaled(|x[",
        &["input x[C + Q - 1]: f32;", "input of the system"],
    );
    check(
        &mut client,
        "output |z",
        &["output z[C]: f32 = Z at [c];", "output of the system"],
    );
    let head = "system conv1d(C, Q) where C >= 1, Q >= 1, Q <= C";
    check(
        &mut client,
        "0..|Q",
        &[head, "parameter of", "where `Q >= 1`, `Q <= C`"],
    );
    check(
        &mut client,
        "x[|c + q]",
        &["c in 0..C", "iterator of the system"],
    );
    check(
        &mut client,
        "lane = c + |q",
        &["q in 0..Q", "iterator of a sum"],
    );
    check(
        &mut client,
        "|scaled(x",
        &["fn scaled(a: f32, b: f32) -> f32", "function of"],
    );
    check(&mut client, "= |a * b", &["a: f32", "argument of"]);
    check(&mut client, "|both * one", &["both = a * b", "local value"]);
    check(
        &mut client,
        "both * |one",
        &["const one: f32 = 1;", "constant of"],
    );
    check(
        &mut client,
        "lane = |cc",
        &["tile c by 4*L as (bc, cc)", "tile index of the mapping"],
    );
    check(
        &mut client,
        "sbm of |conv1d",
        &[head, "- `sbm`: legal, array SBM"],
    );
    check(&mut client, "4*|L", &["lanes of the target"]);
    // The words of directives, by the place where they stand.
    check(
        &mut client,
        "|lane = c",
        &["`lane`: The vector lane", "lane = c + q;"],
    );
    check(
        &mut client,
        "|time = q;\n}\n\nmapping t",
        &["`time`: The step"],
    );
    check(&mut client, "|forward x", &["handed on from PE to PE"]);
    check(&mut client, "|tile c", &["x = B·bx + xx"]);
    check(
        &mut client,
        "|sum Z",
        &["The order of a sum", "sum Z along (q, -p);"],
    );
    check(
        &mut client,
        "|reduce(+",
        &["in an order that a mapping chooses"],
    );
    check(&mut client, "x[C + Q - 1]: |f32", &["a float of 32 bits"]);
    check(&mut client, "|index c", &["outermost first"]);
    assert_eq!(client.hover(URI, "// Grö|ße"), "");
    client.stop();
}

#[test]
fn hover_on_a_mapping_is_what_check_reports() {
    let mut client = opened(CONV);
    let text = client.hover_until(URI, "mapping |sbm", "| PEs |");
    for part in [
        "legal for all sizes",
        "**array SBM**",
        "- **S** · x · stays",
        "- **B** · w · broadcast",
        "- **M** · Z · migrates",
        "**at C = 6, Q = 3**",
        "| PEs | steps | points | outputs | throughput | utilisation | period |",
        "**links**\n\n| dependence | distance | displacement | delay | realisation |",
        "**registers per PE**",
    ] {
        assert!(text.contains(part), "no {part} in {text}");
    }
    let illegal = CONV.replace("time = q;\n}\n\nm", "time = -q;\n}\n\nm");
    client.change(URI, &illegal);
    client.hover_until(URI, "mapping |sbm", "Refused: E0501");
    client.stop();
}

#[test]
fn recurrences_show_their_dependences() {
    let mut client = opened(&gallery("conv1d/paper.ure"));
    let text = client.text(URI).to_string();
    let name = text.split("var Z").next().map(|_| "var |Z").unwrap();
    let hover = client.hover_until(URI, name, "- depends on:");
    assert!(hover.contains("  - `Z at (0, 1) where "), "{hover}");
    client.stop();
}

#[test]
fn iterators_of_a_variable_are_its_own() {
    let text = "system solve(N) where N >= 1 {
  input l[N, N]: f32;
  input b[N]: f32;
  var X(i in 0..N): f32 on i < N = b[i] - reduce(+, k in 0..i, l[i, k] * X(k));
  output x[N]: f32 = X at [i];
}
";
    let mut client = opened(text);
    let hover = client.hover_until(URI, "var |X", "- reads:");
    assert!(
        hover.contains("- domain: `i in 0..N where i < N`"),
        "{hover}"
    );
    assert!(hover.contains("  - `l[i, k]`"), "{hover}");
    let hover = client.hover_until(URI, "X at [|i]", "iterator");
    assert!(hover.contains("0..N"), "{hover}");
    client.stop();
}
