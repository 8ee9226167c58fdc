//! `systola lsp` through the built binary, on its standard streams.

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use common::command;
use serde_json::{Value, json};

struct Session {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

fn start(args: &[&str]) -> Session {
    let mut child = command(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let input = child.stdin.take().expect("a pipe");
    let output = BufReader::new(child.stdout.take().expect("a pipe"));
    Session {
        child,
        input,
        output,
    }
}

impl Session {
    fn send(&mut self, mut message: Value) {
        message["jsonrpc"] = json!("2.0");
        let text = message.to_string();
        write!(self.input, "Content-Length: {}\r\n\r\n{text}", text.len()).expect("a reader");
        self.input.flush().expect("a reader");
    }

    fn receive(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert_ne!(
                self.output.read_line(&mut line).expect("a header"),
                0,
                "an answer"
            );
            match line.trim_end().split_once(": ") {
                Some(("Content-Length", n)) => length = n.parse().expect("a number"),
                Some(_) => {}
                None => break,
            }
        }
        let mut text = vec![0; length];
        self.output.read_exact(&mut text).expect("a body");
        serde_json::from_slice(&text).expect("JSON")
    }

    /// The message for which this holds, others left out.
    fn receive_until(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.receive();
            if wanted(&message) {
                return message;
            }
        }
    }

    /// The exit status, and what was written to the standard error.
    fn end(mut self) -> (Option<i32>, String) {
        drop(self.input);
        let mut errors = String::new();
        let mut stderr = self.child.stderr.take().expect("a pipe");
        stderr.read_to_string(&mut errors).expect("text");
        (self.child.wait().expect("an end").code(), errors)
    }
}

fn initialize() -> Value {
    json!({ "id": 1, "method": "initialize", "params": { "processId": null, "capabilities": {} } })
}

#[test]
fn a_session_on_the_standard_streams() {
    // Editors that are told of standard streams say so.
    let mut session = start(&["lsp", "--stdio"]);
    session.send(initialize());
    let answer = session.receive();
    assert_eq!(answer["id"], 1);
    assert_eq!(answer["result"]["serverInfo"]["name"], "systola");
    assert_eq!(answer["result"]["capabilities"]["hoverProvider"], true);
    session.send(json!({ "method": "initialized", "params": {} }));
    let item = json!({
        "uri": "file:///s.ure", "languageId": "ure", "version": 1,
        "text": "system s(N) {\n  index i in 0..M;\n}\n"
    });
    session.send(json!({ "method": "textDocument/didOpen", "params": { "textDocument": item } }));
    let said = session.receive_until(|m| m["method"] == "textDocument/publishDiagnostics");
    let found = &said["params"]["diagnostics"][0];
    assert_eq!(found["code"], "E0201");
    let start = json!({ "line": 1, "character": 16 });
    assert_eq!(found["range"]["start"], start);
    session.send(json!({ "id": "a", "method": "shutdown" }));
    let answer = session.receive_until(|m| m["id"] == "a");
    assert_eq!(answer["result"], Value::Null);
    session.send(json!({ "method": "exit" }));
    assert_eq!(session.end(), (Some(0), String::new()));
}

#[test]
fn an_exit_without_a_shutdown_is_a_failure() {
    let mut session = start(&["lsp"]);
    session.send(initialize());
    session.receive();
    session.send(json!({ "method": "initialized", "params": {} }));
    session.send(json!({ "method": "exit" }));
    assert_eq!(session.end(), (Some(1), String::new()));

    // So is a client that is gone, at any time.
    assert_eq!(start(&["lsp"]).end().0, Some(1));
    let mut session = start(&["lsp"]);
    session.send(initialize());
    session.receive();
    assert_eq!(session.end().0, Some(1));
}
