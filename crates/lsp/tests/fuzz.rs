//! Random edits: the server answers every request, and its text is the client's.

mod client;

use client::{position, programs, start};
use serde_json::json;

/// A small generator, so that a failure comes again.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        ((self.0 >> 33) as usize) % n.max(1)
    }

    /// A place between two characters.
    fn boundary(&mut self, text: &str) -> usize {
        let mut at = self.below(text.len() + 1);
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    }
}

const PIECES: &[&str] = &[
    "",
    "x",
    "ß",
    "𝄞",
    " ",
    "\n",
    "\r\n",
    "\r",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    ";",
    "'",
    "//",
    "..",
    "system s(N) {",
    "mapping m of",
    "let a = 1;",
    "select(",
    "tile x by 4 as (a, b);",
    "var Z: f32 = ",
    "-1",
    "999999999999999999999999999999999999999999",
    "\0",
    "\u{feff}",
    "first.z",
    "over box 1",
];

#[test]
fn random_edits_never_stop_the_server() {
    let mut random = Random(7);
    let files: Vec<_> = programs("gallery")
        .into_iter()
        .chain(programs("stencils"))
        .collect();
    let mut client = start();
    for round in 0..24 {
        let file = &files[random.below(files.len())];
        let uri = format!("file:///fuzz/{round}.ure");
        let mut text = std::fs::read_to_string(file).unwrap();
        client.open(&uri, &text);
        for _ in 0..16 {
            let (a, b) = (random.boundary(&text), random.boundary(&text));
            // Mostly small edits, as one types.
            let start = a.min(b);
            let mut end = if random.below(8) == 0 {
                a.max(b)
            } else {
                (start + random.below(4)).min(text.len())
            };
            while !text.is_char_boundary(end) {
                end += 1;
            }
            // Between the two halves of a line end there is no position.
            let within = |at: usize| {
                at > 0
                    && text.as_bytes()[at - 1] == b'\r'
                    && text.as_bytes().get(at) == Some(&b'\n')
            };
            let lone = text
                .as_bytes()
                .windows(2)
                .any(|w| w[0] == b'\r' && w[1] != b'\n')
                || text.ends_with('\r');
            if within(start) || within(end) || lone {
                // The client's lines end with `\n` only.
                text = text.replace('\r', "");
                client.change(&uri, &text);
                continue;
            }
            let piece = PIECES[random.below(PIECES.len())];
            let range = json!({ "start": position(&text, start), "end": position(&text, end) });
            text.replace_range(start..end, piece);
            client.change_with(&uri, &text, json!([{ "range": range, "text": piece }]));
            let at = random.boundary(&text);
            let params = json!({
                "textDocument": { "uri": uri }, "position": position(&text, at),
                "context": { "includeDeclaration": true, "triggerKind": 1 }, "newName": "renamed",
                "options": { "tabSize": 2, "insertSpaces": true }
            });
            for method in [
                "hover",
                "definition",
                "references",
                "documentHighlight",
                "completion",
                "documentSymbol",
                "formatting",
                "rename",
                "prepareRename",
            ] {
                let answer = client.request(&format!("textDocument/{method}"), params.clone());
                if let Err((code, message)) = answer {
                    // RequestFailed, of a rename that is refused.
                    assert_eq!(
                        code,
                        -32803,
                        "{method} of {}: {message}\n{text}",
                        file.display()
                    );
                }
            }
        }
        // The texts are still the same: the first line and the last one can be read.
        let whole = json!({ "textDocument": { "uri": uri } });
        client.change(&uri, "system last(N) { index i in 0..N; }");
        let symbols = client
            .request("textDocument/documentSymbol", whole.clone())
            .unwrap();
        assert_eq!(
            client.shown(&uri, &symbols),
            ["1:system last(N) { index i in 0..N; }"]
        );
        client.notify("textDocument/didClose", whole);
    }
    client.stop();
}
