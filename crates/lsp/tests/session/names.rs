//! Definitions, uses, new names and the outline.

use serde_json::{Value, json};

use crate::client::{Client, start_with};
use crate::{CONV, URI, opened};

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
