//! The protocol: the handshake, formatting, wrong requests, cancellation and the end.

use serde_json::{Value, json};
use systola_lsp::End;

use crate::client::{gallery, offset, position, start, start_with};
use crate::{CONV, URI, opened};

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
fn texts_are_formatted_like_on_the_command_line() {
    let untidy = CONV.replace("  index c in 0..C;", "index   c in 0..C ;");
    let mut client = opened(&untidy);
    let params = json!({ "textDocument": { "uri": URI }, "options": { "tabSize": 8, "insertSpaces": false } });
    let edits = client
        .request("textDocument/formatting", params.clone())
        .unwrap();
    let edit = &edits[0];
    let (start, end) = (
        offset(&untidy, &edit["range"]["start"]),
        offset(&untidy, &edit["range"]["end"]),
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
