//! Every program of the repository in an editor.

mod client;

use std::time::{Duration, Instant};

use client::{programs, start};
use serde_json::Value;

/// Names, types and systems are right, and so are the mappings.
#[test]
fn programs_of_the_gallery_have_no_mistakes() {
    let files = programs("gallery");
    assert!(files.len() > 60, "{} files", files.len());
    let mut client = start();
    for file in &files {
        let uri = format!("file://{}", file.canonicalize().unwrap().display());
        let text = std::fs::read_to_string(file).unwrap();
        let begin = Instant::now();
        client.open(&uri, &text);
        // Mappings are checked in the order of the text.
        if let Some(last) = text.lines().rfind(|line| line.starts_with("mapping ")) {
            let around = last.replacen("mapping ", "mapping |", 1);
            client.hover_while(&uri, &around, "It is being checked.");
        }
        let found = client.diagnostics_until(&uri, |_| true);
        let mistakes: Vec<_> = found.iter().filter(|d| d["severity"] == 1).collect();
        assert!(mistakes.is_empty(), "{uri}: {mistakes:?}");
        println!("{:?} {uri}", begin.elapsed());
        let note = serde_json::json!({ "textDocument": { "uri": uri } });
        client.notify("textDocument/didClose", note);
    }
    client.stop();
}

/// The time from a key to the mistakes that it makes, on the largest program; printed, since it
/// depends on the machine. The server waits for 10 ms of rest here.
#[test]
fn latency_of_typing() {
    let size = |path: &std::path::PathBuf| std::fs::metadata(path).unwrap().len();
    let file = programs("gallery").into_iter().max_by_key(size).unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    let mut client = start();
    let uri = "file:///largest.ure";
    client.open(uri, &text);
    client.diagnostics_until(uri, <[Value]>::is_empty);
    let mut syntax = Vec::new();
    let mut types = Vec::new();
    for n in 0..20 {
        let begin = Instant::now();
        client.change(
            uri,
            &format!("{text}\nsystem broken{n}(N) {{ index i in 0..N }}"),
        );
        client.diagnostics_until(uri, |list| list.iter().any(|d| d["code"] == "E0102"));
        syntax.push(begin.elapsed());
        let begin = Instant::now();
        client.change(
            uri,
            &format!("{text}\nsystem typed{n}(N) {{ index i in 0..M; }}"),
        );
        client.diagnostics_until(uri, |list| list.iter().any(|d| d["code"] == "E0201"));
        types.push(begin.elapsed());
    }
    let median = |mut times: Vec<Duration>| {
        times.sort();
        times[times.len() / 2]
    };
    println!(
        "{} ({} bytes): syntax in {:?}, names and types in {:?}",
        file.display(),
        text.len(),
        median(syntax),
        median(types)
    );
    client.stop();
}
