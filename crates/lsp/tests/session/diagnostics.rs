//! Diagnostics while a document is edited.

use serde_json::{Value, json};

use crate::{CONV, URI, opened};

#[test]
fn mistakes_come_and_go_while_typing() {
    let mut client = opened(CONV);
    client.diagnostics_until(URI, <[Value]>::is_empty);

    // Syntax.
    let broken = CONV.replace("index c in 0..C;", "index c in 0..C");
    client.change(URI, &broken);
    let found = client.diagnostics_until(URI, |list| !list.is_empty());
    assert_eq!(found[0]["code"], "E0102");
    assert_eq!(found[0]["severity"], 1);
    assert_eq!(found[0]["source"], "systola");
    let link = found[0]["codeDescription"]["href"].as_str().unwrap();
    assert!(link.ends_with("docs/errors.md#e0102"), "{link}");
    let message = found[0]["message"].as_str().unwrap();
    assert!(
        message.contains("\nhelp: end the statement with `;`"),
        "{message}"
    );

    // Mended.
    client.change(URI, CONV);
    client.diagnostics_until(URI, <[Value]>::is_empty);

    // A name, behind letters that are two and four bytes long.
    let unknown = CONV.replace("x[c + q]", "/*").replace("/*", "y[c + q]");
    client.change(URI, &unknown);
    let found = client.wait_for_code(URI, "E0201");
    assert_eq!(client.slice(URI, &found["range"]), "y");

    // A second declaration leads to the first.
    let twice = CONV.replace("input w[Q]", "input x[Q]");
    client.change(URI, &twice);
    let found = client.wait_for_code(URI, "E0202");
    let related = &found["relatedInformation"][0];
    assert_eq!(related["message"], "first declared here");
    let first = &related["location"]["range"];
    assert_eq!(client.slice(URI, first), "x");
    assert_eq!(first["start"]["line"], 2);

    // An illegal mapping, with points that show it.
    let illegal = CONV.replace(
        "  time = q;\n}\n\nmapping tiled",
        "  time = -q;\n}\n\nmapping tiled",
    );
    client.change(URI, &illegal);
    let found = client.wait_for_code(URI, "E0501");
    let message = found["message"].as_str().unwrap();
    assert!(message.contains("counterexample at "), "{message}");
    assert!(message.contains("\n  c = "), "{message}");

    client.change(URI, CONV);
    client.diagnostics_until(URI, <[Value]>::is_empty);
    client.stop();
}

#[test]
fn limitations_are_warnings_and_old_words_hints() {
    let mut client = opened("stencil s(N) { field u[N]: f32 held; u = 0.5*u[-1] + 0.5*u[1]; }");
    let hint = client.wait_for_code(URI, "H0801");
    assert_eq!(hint["severity"], 4);
    assert_eq!(client.slice(URI, &hint["range"]), "held");
    // One sum over iterators that bound each other.
    let triangle = "system s(C) where C >= 1 {
  input x[C + 9]: f32;
  index c in 0..C;
  var Z: f32 = reduce(+, q in 0..3, p in 0..q + 1, x[c + q + p]);
  output z[C]: f32 = Z at [c];
}
mapping m of s { lane = c; time = (q, p); }";
    client.change(URI, triangle);
    let warning = client.wait_for_code(URI, "L0712");
    assert_eq!(warning["severity"], 2);
    client.stop();
}

#[test]
fn changes_of_ranges_are_applied_in_order() {
    let mut client = opened("// 𝄞ß\nsystem s(N) { index i in 0..N; }");
    let changes = json!([
        { "range": { "start": { "line": 1, "character": 7 }, "end": { "line": 1, "character": 8 } },
          "text": "first" },
        { "range": { "start": { "line": 0, "character": 5 }, "end": { "line": 0, "character": 6 } },
          "text": "ü" },
        { "range": { "start": { "line": 1, "character": 0 }, "end": { "line": 1, "character": 0 } },
          "text": "system second(M) { index j in 0..M; }\r\n" },
        { "range": { "start": { "line": 9, "character": 0 }, "end": { "line": 9, "character": 0 } },
          "text": "\n" }
    ]);
    let text =
        "// 𝄞ü\nsystem second(M) { index j in 0..M; }\r\nsystem first(N) { index i in 0..N; }\n";
    client.change_with(URI, text, changes);
    client.diagnostics_until(URI, <[Value]>::is_empty);
    let params = json!({ "textDocument": { "uri": URI } });
    let symbols = client
        .request("textDocument/documentSymbol", params)
        .unwrap();
    assert_eq!(
        client.shown(URI, &symbols),
        [
            "2:system second(M) { index j in 0..M; }",
            "3:system first(N) { index i in 0..N; }"
        ]
    );
    client.stop();
}

#[test]
fn a_broken_text_keeps_its_names() {
    let mut client = opened(CONV);
    client.hover_until(URI, "sum |Z along", "- domain:");
    let broken = CONV.replace(
        "  index c in 0..C;\n",
        "  index c in 0..C;\n  var Y: f32 = (Z +\n",
    );
    client.change(URI, &broken);
    client.diagnostics_until(URI, |list| !list.is_empty());
    // Before and behind the edit.
    let params = client.at(URI, "sum |Z");
    let answer = client.request("textDocument/definition", params).unwrap();
    assert_eq!(client.shown(URI, &answer), ["9:Z"]);
    assert!(
        client
            .hover(URI, "input |x")
            .contains("input of the system")
    );
    assert!(
        client
            .hover(URI, "sum |Z")
            .contains("- domain: `c in 0..C`")
    );
    let params = client.at(URI, "sum |Z");
    let rename = client.request("textDocument/rename", {
        let mut params = params;
        params["newName"] = json!("S");
        params
    });
    assert_eq!(rename.unwrap_err().1, "mend the mistakes of syntax first");
    let params = json!({ "textDocument": { "uri": URI }, "options": { "tabSize": 2, "insertSpaces": true } });
    assert_eq!(
        client.request("textDocument/formatting", params).unwrap(),
        Value::Null
    );
    client.stop();
}
