//! Sessions of an editor with the server.

mod client;

use client::{Client, gallery, position, start, start_with};
use serde_json::{Value, json};
use systola_lsp::End;

const URI: &str = "file:///work/conv.ure";

const CONV: &str = "\
// Größe 𝄞: columns are not bytes.
system conv1d(C, Q) where C >= 1, Q >= 1, Q <= C {
  input x[C + Q - 1]: f32;
  input w[Q]: f32;
  const one: f32 = 1;
  fn scaled(a: f32, b: f32) -> f32 = let both = a * b; both * one;
  index c in 0..C;
  var Z: f32 reorderable = reduce(+, q in 0..Q, scaled(x[c + q], w[q]));
  output z[C]: f32 = Z at [c];
}

mapping sbm of conv1d {
  forward x along (-1, 1);
  sum Z along q;
  lane = c + q;
  time = q;
}

mapping tiled of conv1d {
  tile c by 4*L as (bc, cc);
  block = bc;
  lane = cc / 4;
  reg = cc % 4;
  time = q;
}
";

fn opened(text: &str) -> Client {
    let mut client = start();
    client.open(URI, text);
    client
}

#[test]
fn the_handshake_says_what_the_server_can() {
    let client = start();
    assert_eq!(client.capabilities["positionEncoding"], "utf-16");
    assert_eq!(client.capabilities["textDocumentSync"]["change"], 2);
    for provider in [
        "hoverProvider",
        "definitionProvider",
        "referencesProvider",
        "documentHighlightProvider",
        "documentSymbolProvider",
        "documentFormattingProvider",
    ] {
        assert_eq!(client.capabilities[provider], true, "{provider}");
    }
    assert_eq!(client.stop(), End::Shutdown);
}

#[test]
fn bytes_are_counted_where_the_client_can() {
    let mut client = start_with(json!({
        "general": { "positionEncodings": ["utf-32", "utf-16", "utf-8"] }
    }));
    assert_eq!(client.capabilities["positionEncoding"], "utf-8");
    let text = "system s(N) { ß }";
    client.open(URI, text);
    let found = client.diagnostics_until(URI, |list| !list.is_empty());
    assert_eq!(found[0]["range"]["start"]["character"], 14);
    assert_eq!(found[0]["range"]["end"]["character"], 16);
    client.change(URI, "// ß\nsystem s(N) { index i in 0..M; }");
    let found = client.wait_for_code(URI, "E0201");
    assert_eq!(
        found["range"]["start"],
        json!({ "line": 1, "character": 28 })
    );
    client.stop();
}

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
fn names_lead_to_their_declarations_and_uses() {
    let mut client = opened(CONV);
    let definition = |client: &mut Client, around: &str| {
        let params = client.at(URI, around);
        let answer = client.request("textDocument/definition", params).unwrap();
        match answer {
            Value::Null => Vec::new(),
            list => client.shown(URI, &list),
        }
    };
    for (around, expect) in [
        ("sbm of |conv1d", "2:conv1d"),
        ("forward |x", "3:x"),
        ("scaled(x[c + |q]", "8:q"),
        ("lane = c + |q", "8:q"),
        ("lane = |c + q", "7:c"),
        ("|scaled(x", "6:scaled"),
        ("let both = |a", "6:a"),
        ("|both * one", "6:both"),
        ("both * |one", "5:one"),
        ("0..|Q", "2:Q"),
        ("block = |bc", "20:bc"),
        ("sum |Z", "8:Z"),
        ("|Z at [c]", "8:Z"),
        // Just behind the name too.
        ("Z| at [c]", "8:Z"),
    ] {
        assert_eq!(definition(&mut client, around), [expect], "{around}");
    }
    assert!(definition(&mut client, "|reduce(").is_empty());

    let references = |client: &mut Client, around: &str, with: bool| {
        let mut params = client.at(URI, around);
        params["context"] = json!({ "includeDeclaration": with });
        let answer = client.request("textDocument/references", params).unwrap();
        client.shown(URI, &answer)
    };
    assert_eq!(
        references(&mut client, "forward |x", true),
        ["3:x", "8:x", "13:x"]
    );
    assert_eq!(
        references(&mut client, "forward |x", false),
        ["8:x", "13:x"]
    );
    assert_eq!(
        references(&mut client, "lane = c + |q", true),
        ["8:q", "8:q", "8:q", "14:q", "15:q", "16:q", "24:q"]
    );
    assert_eq!(
        references(&mut client, "lane = |cc", true),
        ["20:cc", "22:cc", "23:cc"]
    );
    let params = client.at(URI, "lane = |cc");
    let answer = client
        .request("textDocument/documentHighlight", params)
        .unwrap();
    let kinds: Vec<_> = answer
        .as_array()
        .unwrap()
        .iter()
        .map(|h| h["kind"].clone())
        .collect();
    assert_eq!(kinds, [3, 2, 2]);
    client.stop();
}

#[test]
fn names_of_programs_and_stencils_are_found_across_items() {
    let text = "\
stencil rows(N, M) { field u[N, M]: f32 clamp; u = 0.5*u[-1, 0] + 0.5*u; }
stencil heat(N, T) { field h[N]: f32 fixed; steps T; h = 0.5*h[-1] + 0.5*h'[-1]; }
mapping m of rows { lane = x; time = y; broadcast U; }
program twice(N) where N >= 1 {
  input image[N, N]: f32;
  first = rows(N = N, M = N)(u = image);
  second = rows(N = N, M = N)(u = first.u');
  output sharp = second.u';
}
";
    let mut client = opened(text);
    let definition = |client: &mut Client, around: &str| {
        let params = client.at(URI, around);
        let answer = client.request("textDocument/definition", params).unwrap();
        client.shown(URI, &answer)
    };
    for (around, expect) in [
        ("first = |rows", "1:rows"),
        ("rows(|N = N, M = N)(u = i", "1:N"),
        ("rows(N = |N, M = N)(u = i", "4:N"),
        ("(|u = image)", "1:u"),
        ("(u = |image)", "5:image"),
        ("(u = |first.u')", "6:first"),
        ("first.|u'", "1:u"),
        ("sharp = |second", "7:second"),
        ("0.5*|h'", "2:h"),
        // Generated names lead to what they are generated from.
        ("lane = |x", "1:u"),
        ("broadcast |U", "1:u"),
    ] {
        assert_eq!(definition(&mut client, around), [expect], "{around}");
    }
    // The prime stays where it is.
    let mut params = client.at(URI, "field |h");
    params["newName"] = json!("heat_now");
    let answer = client.request("textDocument/rename", params).unwrap();
    let edits = &answer["changes"][URI];
    assert_eq!(client.shown(URI, edits), ["2:h", "2:h", "2:h", "2:h"]);
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

#[test]
fn names_are_renamed_where_the_new_one_is_free() {
    let mut client = opened(CONV);
    let rename = |client: &mut Client, around: &str, name: &str| {
        let mut params = client.at(URI, around);
        params["newName"] = json!(name);
        let answer = client.request("textDocument/rename", params)?;
        Ok::<_, (i32, String)>(client.shown(URI, &answer["changes"][URI]))
    };
    let all = ["8:q", "8:q", "8:q", "14:q", "15:q", "16:q", "24:q"];
    assert_eq!(rename(&mut client, "lane = c + |q", "tap").unwrap(), all);
    for (around, name, why) in [
        (
            "lane = c + |q",
            "c",
            "`c` is taken: the iterator of that name",
        ),
        (
            "lane = c + |q",
            "cc",
            "`cc` is taken: the tile index of that name",
        ),
        ("lane = |cc", "w", "`w` is taken: the input of that name"),
        (
            "mapping |sbm",
            "tiled",
            "`tiled` is taken: the mapping of that name",
        ),
        ("lane = c + |q", "reduce", "`reduce` cannot be a name"),
        ("lane = c + |q", "2q", "`2q` cannot be a name"),
        ("|reduce(", "q2", "there is no name here"),
    ] {
        let (_, message) = rename(&mut client, around, name).unwrap_err();
        assert!(message.starts_with(why), "{message}");
    }
    assert_eq!(
        rename(&mut client, "mapping |sbm", "conv1d").unwrap(),
        ["12:sbm"]
    );
    let params = client.at(URI, "lane = c + |q");
    let prepared = client
        .request("textDocument/prepareRename", params)
        .unwrap();
    assert_eq!(prepared["placeholder"], "q");
    client.stop();
}

#[test]
fn names_are_not_renamed_where_others_would_change_their_meaning() {
    let text = "\
system copy(C) where C >= 1 {
  input x[C]: f32;
  index c in 0..C;
  var Z: f32 = x[c];
  output z[C]: f32 = Z at [c];
}
mapping wide of copy { tile c by 8*L as (bc, cc); block = bc; lane = cc; }
stencil heat(N, T) { field u[N]: f32 fixed; steps T; u = 0.5*u[-1] + 0.5*u[1]; }
mapping all of heat { lane = x; time = t; broadcast U; }
stencil cool(N) { field H[N]: f32 fixed; H = 0.5*H[-1] + 0.5*H[1]; }
mapping alone of cool { lane = x; }
";
    let mut client = opened(text);
    client.diagnostics_until(URI, <[Value]>::is_empty);
    let rename = |client: &mut Client, around: &str, name: &str| {
        let mut params = client.at(URI, around);
        params["newName"] = json!(name);
        let answer = client.request("textDocument/rename", params)?;
        Ok::<_, (i32, String)>(client.shown(URI, &answer["changes"][URI]))
    };
    for (around, name) in [
        // The lanes of the target.
        ("index |c", "L"),
        ("index |c", "lanes"),
        // The name that is generated from it.
        ("field |u", "p"),
        ("field |u", "heat_now"),
    ] {
        let (_, message) = rename(&mut client, around, name).unwrap_err();
        let expect = format!("`{name}` would change what other names mean");
        assert_eq!(message, expect, "{around}");
    }
    let iterator = ["3:c", "4:c", "5:c", "7:c"];
    assert_eq!(rename(&mut client, "index |c", "l").unwrap(), iterator);
    // A name more is generated, which no mapping reads.
    let field = ["10:H", "10:H", "10:H", "10:H"];
    assert_eq!(rename(&mut client, "field |H", "p").unwrap(), field);
    client.stop();
}

#[test]
fn the_outline_has_items_and_their_declarations() {
    let mut client = opened(CONV);
    let params = json!({ "textDocument": { "uri": URI } });
    let symbols = client
        .request("textDocument/documentSymbol", params.clone())
        .unwrap();
    let names = |list: &Value| -> Vec<String> {
        let list = list.as_array().unwrap().iter();
        list.map(|s| s["name"].as_str().unwrap().to_string())
            .collect()
    };
    assert_eq!(names(&symbols), ["conv1d", "sbm", "tiled"]);
    assert_eq!(
        names(&symbols[0]["children"]),
        ["C", "Q", "x", "w", "one", "scaled", "c", "Z", "z"]
    );
    assert_eq!(names(&symbols[2]["children"]), ["bc", "cc"]);
    assert_eq!(symbols[0]["detail"], "system");
    assert_eq!(
        client.slice(URI, &symbols[0]["children"][7]["selectionRange"]),
        "Z"
    );
    client.stop();

    // Flat for older clients.
    let mut client = start_with(json!({}));
    client.open(URI, CONV);
    let symbols = client
        .request("textDocument/documentSymbol", params)
        .unwrap();
    assert_eq!(names(&symbols).len(), 14);
    assert_eq!(symbols[1]["containerName"], "conv1d");
    client.stop();
}

#[test]
fn completion_offers_what_can_stand_there() {
    let mut client = opened(CONV);
    // Each is typed into the text, which is broken then.
    let check = |client: &mut Client, at: &str, typed: &str, with: &[&str], without: &[&str]| {
        let (before, behind) = at.split_once('|').unwrap();
        let place = format!("{before}{behind}");
        let text = CONV.replacen(&place, &format!("{before}{typed}{behind}"), 1);
        client.change(URI, &text);
        let labels = client.labels(URI, &format!("{before}{typed}|{behind}"));
        for word in with {
            assert!(
                labels.contains(&(*word).to_string()),
                "{typed}: no {word} in {labels:?}"
            );
        }
        for word in without {
            assert!(
                !labels.contains(&(*word).to_string()),
                "{typed}: {word} in {labels:?}"
            );
        }
    };
    let after_index = "in 0..C;\n|";
    check(
        &mut client,
        after_index,
        "  v",
        &["var", "index", "output"],
        &["lane", "Z", "field"],
    );
    check(
        &mut client,
        after_index,
        "  var Y: f32 = ",
        &["x", "w", "c", "Z", "C", "scaled", "select", "reduce"],
        &["q", "bc", "lane", "var", "a"],
    );
    check(
        &mut client,
        after_index,
        "  var Y: ",
        &["f32", "bool"],
        &["x"],
    );
    check(
        &mut client,
        after_index,
        "  input y[C]: f32 ",
        &["clamp", "else"],
        &["fixed", "x"],
    );
    check(
        &mut client,
        after_index,
        "  var Y: f32 ",
        &["reorderable", "on"],
        &[],
    );
    check(&mut client, "[c + |q]", "", &["q", "x"], &["bc"]);
    let in_tiled = "(bc, cc);\n|";
    check(
        &mut client,
        in_tiled,
        "  un",
        &["unroll", "lane", "transfer"],
        &["var", "q"],
    );
    check(
        &mut client,
        in_tiled,
        "  lane = ",
        &["bc", "cc", "c", "q", "C", "L"],
        &["x", "Z", "var"],
    );
    check(
        &mut client,
        in_tiled,
        "  transfer ",
        &["x", "w"],
        &["c", "Z"],
    );
    check(
        &mut client,
        in_tiled,
        "  transfer w to ",
        &["shared", "constant"],
        &["w"],
    );
    check(&mut client, in_tiled, "  sum ", &["Z"], &["x"]);
    check(
        &mut client,
        in_tiled,
        "  sum Z ",
        &["along", "tree"],
        &["Z"],
    );
    check(
        &mut client,
        in_tiled,
        "  x.",
        &["reorder", "space_time_transform"],
        &["lane"],
    );
    check(
        &mut client,
        "|// Größe",
        "map",
        &["mapping", "system"],
        &["lane"],
    );
    check(
        &mut client,
        "mapping tiled of |conv1d",
        "",
        &["conv1d"],
        &["sbm"],
    );
    check(&mut client, "// Größe| ", "", &[], &["mapping"]);
    client.stop();
}

#[test]
fn a_program_is_completed_from_its_systems() {
    let text = format!(
        "{CONV}program p(N) where N >= 9 {{\n  input image[N]: f32;\n  \
         first = conv1d(C = N - 2, Q = 3)(x = image, w = image);\n  output y = first.z;\n}}\n"
    );
    let mut client = opened(&text);
    client.hover_until(URI, "sum |Z along", "- domain:");
    assert_eq!(client.labels(URI, "first = conv1d(|C"), ["C", "Q"]);
    assert_eq!(client.labels(URI, ")(|x = image"), ["w", "x"]);
    assert_eq!(client.labels(URI, "(x = |image"), ["first", "image"]);
    assert_eq!(client.labels(URI, "first.|z"), ["z"]);
    assert_eq!(client.labels(URI, "first = |conv1d"), ["conv1d"]);
    client.stop();
}

#[test]
fn texts_are_formatted_like_on_the_command_line() {
    let untidy = CONV.replace("  index c in 0..C;", "index   c in 0..C ;");
    let mut client = opened(&untidy);
    let params = json!({ "textDocument": { "uri": URI }, "options": { "tabSize": 8, "insertSpaces": false } });
    let edits = client
        .request("textDocument/formatting", params.clone())
        .unwrap();
    let edit = &edits[0];
    let (start, end) = (
        client::offset(&untidy, &edit["range"]["start"]),
        client::offset(&untidy, &edit["range"]["end"]),
    );
    let new = edit["newText"].as_str().unwrap();
    let formatted = format!("{}{new}{}", &untidy[..start], &untidy[end..]);
    let expect = systola_driver::format_file("conv.ure".as_ref(), &untidy).unwrap();
    assert_eq!(formatted, expect);
    assert!(formatted.contains("\n  index c in 0..C;\n"));
    client.change(URI, &formatted);
    assert_eq!(
        client.request("textDocument/formatting", params).unwrap(),
        json!([])
    );
    client.stop();
}

#[test]
fn documents_are_told_apart_and_forgotten() {
    let mut client = opened(CONV);
    let other = "file:///work/other.ure";
    client.open(
        other,
        "system conv1d(N) { index i in 0..N; var A: i64 = b; }",
    );
    client.wait_for_code(other, "E0201");
    client.diagnostics_until(URI, <[Value]>::is_empty);
    assert!(client.hover(other, "system |conv1d").contains("conv1d(N)"));
    assert!(client.hover(URI, "system |conv1d").contains("conv1d(C, Q)"));
    client.notify(
        "textDocument/didClose",
        json!({ "textDocument": { "uri": other } }),
    );
    let params = client.at(other, "system |conv1d");
    let (code, message) = client.request("textDocument/hover", params).unwrap_err();
    assert_eq!(
        (code, message.as_str()),
        (-32602, "file:///work/other.ure is not open")
    );
    client.stop();
}

#[test]
fn wrong_requests_are_answered_with_errors() {
    let mut client = opened(CONV);
    let unknown = json!({ "textDocument": { "uri": "file:///nowhere.ure" }, "position": { "line": 0, "character": 0 } });
    for method in [
        "hover",
        "definition",
        "completion",
        "documentHighlight",
        "prepareRename",
    ] {
        let method = format!("textDocument/{method}");
        assert_eq!(
            client.request(&method, unknown.clone()).unwrap_err().0,
            -32602,
            "{method}"
        );
    }
    let (code, _) = client
        .request("textDocument/hover", json!({ "position": 3 }))
        .unwrap_err();
    assert_eq!(code, -32602);
    let (code, message) = client.request("workspace/magic", json!({})).unwrap_err();
    assert_eq!(
        (code, message.as_str()),
        (-32601, "`workspace/magic` is not supported")
    );
    // Notifications have no answers, and harm nothing.
    client.notify("textDocument/didChange", json!({ "textDocument": { "uri": "file:///nowhere.ure", "version": 2 }, "contentChanges": [{ "text": "" }] }));
    client.notify("textDocument/didOpen", json!(["nonsense"]));
    client.notify("$/setTrace", json!({ "value": "off" }));
    // Positions outside of the text are its end.
    let far =
        json!({ "textDocument": { "uri": URI }, "position": { "line": 999, "character": 999 } });
    assert_eq!(
        client.request("textDocument/hover", far).unwrap(),
        Value::Null
    );

    assert_eq!(client.request("shutdown", Value::Null), Ok(Value::Null));
    let params = client.at(URI, "system |conv1d");
    assert_eq!(
        client.request("textDocument/hover", params).unwrap_err().0,
        -32600
    );
    client.notify("exit", Value::Null);
    assert_eq!(client.join(), End::Shutdown);
}

#[test]
fn a_client_that_leaves_is_noticed() {
    let client = start();
    client
        .connection
        .sender
        .send(lsp_server::Message::Notification(
            lsp_server::Notification::new("exit".to_string(), Value::Null),
        ))
        .unwrap();
    assert_eq!(client.join(), End::Abrupt);
}

#[test]
fn requests_that_wait_can_be_cancelled() {
    use lsp_server::{Connection, Message, Notification, Request};
    let (server, client) = Connection::memory();
    let send = |message: Message| client.sender.send(message).unwrap();
    let note =
        |method: &str, params: Value| send(Notification::new(method.to_string(), params).into());
    let request = |id: i32, method: &str, params: Value| {
        send(Request::new(id.into(), method.to_string(), params).into());
    };
    request(
        1,
        "initialize",
        json!({ "processId": null, "capabilities": {} }),
    );
    note("initialized", json!({}));
    let item = json!({ "uri": URI, "languageId": "ure", "version": 1, "text": CONV });
    note("textDocument/didOpen", json!({ "textDocument": item }));
    let params = json!({ "textDocument": { "uri": URI }, "position": position(CONV, CONV.find("conv1d").unwrap()) });
    request(2, "textDocument/hover", params.clone());
    request(3, "textDocument/hover", params);
    note("$/cancelRequest", json!({ "id": 2 }));
    note("$/cancelRequest", json!({ "id": "unknown" }));
    request(4, "shutdown", Value::Null);
    note("exit", Value::Null);
    // All of it is there before the server looks.
    assert_eq!(
        systola_lsp::serve(server, systola_lsp::Options::default()),
        End::Shutdown
    );
    let mut answers = std::collections::BTreeMap::new();
    while let Ok(message) = client.receiver.recv() {
        if let Message::Response(response) = message {
            let code = response.response_result.map_err(|error| error.code);
            answers.insert(response.id.to_string(), code.map(|value| value.is_null()));
        }
    }
    assert_eq!(answers["2"], Err(-32800));
    assert_eq!(answers["3"], Ok(false));
    assert_eq!(answers["4"], Ok(true));
}

#[test]
fn a_slow_proof_does_not_block_typing() {
    // Sums of tiles with many sizes: its check takes long.
    let mut client = opened(&gallery("conv2d/same.ure"));
    let text = client.text(URI).to_string();
    for n in 0..20 {
        let edited = format!("{text}// {n}\n");
        client.change(URI, &edited);
        // Requests between are answered from the text as it is.
        assert!(
            client
                .hover(URI, "mapping |quads")
                .contains("mapping `quads`")
        );
    }
    client.change(URI, &format!("{text}system"));
    let found = client.diagnostics_until(URI, |list| !list.is_empty());
    assert_eq!(found[0]["severity"], 1);
    client.stop();
}
