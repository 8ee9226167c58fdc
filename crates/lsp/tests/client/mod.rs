//! A small client: the server in a thread, with its documents and what it said of them.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use lsp_server::{Connection, Message, Notification, Request, RequestId, Response};
use serde_json::{Value, json};
use systola_lsp::{End, Options, serve};

/// A test that waits longer has failed.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Client {
    pub connection: Connection,
    server: Option<JoinHandle<End>>,
    next_id: i32,
    /// What was said of each document last, with the version of its text.
    published: HashMap<String, (i64, Vec<Value>)>,
    texts: HashMap<String, (i64, String)>,
    pub capabilities: Value,
}

/// A client that counts columns in UTF-16 and knows nested symbols and related information.
pub fn start() -> Client {
    start_with(json!({
        "textDocument": {
            "documentSymbol": { "hierarchicalDocumentSymbolSupport": true },
            "publishDiagnostics": { "relatedInformation": true }
        }
    }))
}

pub fn start_with(capabilities: Value) -> Client {
    let (server, connection) = Connection::memory();
    let options = Options {
        debounce: Duration::from_millis(10),
    };
    let thread = std::thread::spawn(move || serve(server, options));
    let mut client = Client {
        connection,
        server: Some(thread),
        next_id: 0,
        published: HashMap::new(),
        texts: HashMap::new(),
        capabilities: Value::Null,
    };
    let params = json!({ "processId": null, "rootUri": null, "capabilities": capabilities });
    client.capabilities = client.request("initialize", params).unwrap()["capabilities"].clone();
    client.notify("initialized", json!({}));
    client
}

impl Client {
    pub fn send(&mut self, method: &str, params: Value) -> RequestId {
        self.next_id += 1;
        let id = RequestId::from(self.next_id);
        let request = Request::new(id.clone(), method.to_string(), params);
        self.connection.sender.send(request.into()).unwrap();
        id
    }

    pub fn notify(&mut self, method: &str, params: Value) {
        let note = Notification::new(method.to_string(), params);
        self.connection.sender.send(note.into()).unwrap();
    }

    /// The result, or the code and the message of the error.
    pub fn request(&mut self, method: &str, params: Value) -> Result<Value, (i32, String)> {
        let id = self.send(method, params);
        self.answer(&id)
    }

    pub fn answer(&mut self, id: &RequestId) -> Result<Value, (i32, String)> {
        loop {
            if let Some(Response {
                id: answered,
                response_result,
            }) = self.receive(PATIENCE).expect("an answer in time")
                && answered == *id
            {
                return response_result.map_err(|error| (error.code, error.message));
            }
        }
    }

    /// Takes one message; a response is handed on. None where there was none in time.
    fn receive(&mut self, patience: Duration) -> Option<Option<Response>> {
        match self.connection.receiver.recv_timeout(patience).ok()? {
            Message::Response(response) => Some(Some(response)),
            Message::Notification(note) => {
                if note.method == "textDocument/publishDiagnostics" {
                    let uri = note.params["uri"].as_str().unwrap().to_string();
                    let version = note.params["version"].as_i64().unwrap_or(-1);
                    let list = note.params["diagnostics"].as_array().unwrap().clone();
                    self.published.insert(uri, (version, list));
                }
                Some(None)
            }
            Message::Request(request) => panic!("the server asks {request:?}"),
        }
    }

    pub fn open(&mut self, uri: &str, text: &str) {
        self.texts.insert(uri.to_string(), (1, text.to_string()));
        let item = json!({ "uri": uri, "languageId": "ure", "version": 1, "text": text });
        self.notify("textDocument/didOpen", json!({ "textDocument": item }));
    }

    /// The whole text at once.
    pub fn change(&mut self, uri: &str, text: &str) {
        let changes = json!([{ "text": text }]);
        self.change_with(uri, text, changes);
    }

    /// Changes that make this text.
    pub fn change_with(&mut self, uri: &str, text: &str, changes: Value) {
        let (version, old) = self.texts.get_mut(uri).unwrap();
        *version += 1;
        *old = text.to_string();
        let version = *version;
        self.notify(
            "textDocument/didChange",
            json!({
                "textDocument": { "uri": uri, "version": version },
                "contentChanges": changes
            }),
        );
    }

    /// What is said of the current version, as soon as it is as wished.
    pub fn diagnostics_until(
        &mut self,
        uri: &str,
        wished: impl Fn(&[Value]) -> bool,
    ) -> Vec<Value> {
        let begin = Instant::now();
        let version = self.texts[uri].0;
        loop {
            if let Some((said, list)) = self.published.get(uri)
                && *said == version
                && wished(list)
            {
                return list.clone();
            }
            assert!(begin.elapsed() < PATIENCE, "{:?}", self.published.get(uri));
            self.receive(Duration::from_millis(100));
        }
    }

    /// The codes of what is said, as soon as this is said.
    pub fn wait_for_code(&mut self, uri: &str, code: &str) -> Value {
        let has = |d: &Value| d["code"] == code;
        let list = self.diagnostics_until(uri, |list| list.iter().any(has));
        list.into_iter().find(has).unwrap()
    }

    pub fn text(&self, uri: &str) -> &str {
        &self.texts[uri].1
    }

    /// A place in the text: behind the first occurrence of what is before the `|`, before what is
    /// behind it. Columns in UTF-16.
    pub fn place(&self, uri: &str, around: &str) -> Value {
        let (before, behind) = around.split_once('|').expect("a `|`");
        let text = self.text(uri);
        let at = text
            .find(&format!("{before}{behind}"))
            .unwrap_or_else(|| panic!("no {around} in {text}"));
        position(text, at + before.len())
    }

    pub fn at(&self, uri: &str, around: &str) -> Value {
        json!({ "textDocument": { "uri": uri }, "position": self.place(uri, around) })
    }

    /// The text of a hover.
    pub fn hover(&mut self, uri: &str, around: &str) -> String {
        let params = self.at(uri, around);
        let answer = self.request("textDocument/hover", params).unwrap();
        let value = answer["contents"]["value"].as_str();
        value.unwrap_or_default().to_string()
    }

    /// The hover, asked again until it says this: the checks run in a thread of their own.
    pub fn hover_until(&mut self, uri: &str, around: &str, part: &str) -> String {
        self.hover_when(uri, around, |text| text.contains(part))
    }

    /// The hover, asked again as long as it says this.
    pub fn hover_while(&mut self, uri: &str, around: &str, part: &str) -> String {
        self.hover_when(uri, around, |text| !text.contains(part))
    }

    fn hover_when(&mut self, uri: &str, around: &str, is_wished: impl Fn(&str) -> bool) -> String {
        let begin = Instant::now();
        loop {
            let text = self.hover(uri, around);
            if is_wished(&text) {
                return text;
            }
            assert!(begin.elapsed() < PATIENCE, "{around}: {text}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The texts of ranges, each with its line from 1.
    pub fn shown(&self, uri: &str, locations: &Value) -> Vec<String> {
        let list = locations
            .as_array()
            .unwrap_or_else(|| panic!("{locations}"));
        let show = |l: &Value| {
            let range = l.get("range").unwrap_or(l);
            let line = range["start"]["line"].as_u64().unwrap() + 1;
            format!("{line}:{}", self.slice(uri, range))
        };
        list.iter().map(show).collect()
    }

    pub fn slice(&self, uri: &str, range: &Value) -> &str {
        let text = self.text(uri);
        &text[offset(text, &range["start"])..offset(text, &range["end"])]
    }

    pub fn labels(&mut self, uri: &str, around: &str) -> Vec<String> {
        let params = self.at(uri, around);
        let answer = self.request("textDocument/completion", params).unwrap();
        let labels = answer.as_array().unwrap().iter();
        labels
            .map(|item| item["label"].as_str().unwrap().to_string())
            .collect()
    }

    /// Shuts the server down, as a client should.
    pub fn stop(mut self) -> End {
        assert_eq!(self.request("shutdown", Value::Null), Ok(Value::Null));
        self.notify("exit", Value::Null);
        self.join()
    }

    pub fn join(mut self) -> End {
        self.server.take().unwrap().join().unwrap()
    }
}

pub fn position(text: &str, offset: usize) -> Value {
    let line = text[..offset].matches('\n').count();
    let start = text[..offset].rfind('\n').map_or(0, |n| n + 1);
    let column: usize = text[start..offset].chars().map(char::len_utf16).sum();
    json!({ "line": line, "character": column })
}

pub fn offset(text: &str, position: &Value) -> usize {
    let line = position["line"].as_u64().unwrap() as usize;
    let mut column = position["character"].as_u64().unwrap() as usize;
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let start: usize = lines[..line].iter().map(|l| l.len()).sum();
    let rest = text[start..].char_indices();
    for (n, c) in rest {
        if column == 0 {
            return start + n;
        }
        column -= c.len_utf16();
    }
    text.len()
}

/// The programs of a folder of the repository.
pub fn programs(folder: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut folders = vec![root.join(folder)];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "ure") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

pub fn gallery(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../gallery");
    std::fs::read_to_string(path.join(name)).unwrap()
}
