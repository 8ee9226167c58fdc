//! The test programs of the workspace: cargo builds them once, and they are started without cargo,
//! so that several run in parallel.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::root;

/// A test program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestBinary {
    /// The folder of its package, which is the working directory under cargo.
    pub folder: PathBuf,
    /// The package without `systola-`, and the name of the test: `filetests gallery`.
    pub name: String,
    pub path: PathBuf,
}

impl TestBinary {
    /// The name of the test alone.
    pub fn test(&self) -> &str {
        self.name
            .rsplit_once(' ')
            .map_or(&self.name, |(_, test)| test)
    }

    /// A command that starts it as cargo does; no filters run all tests.
    pub fn command(&self, filter: &[&str]) -> Command {
        let mut command = Command::new(&self.path);
        command
            .args(filter)
            .current_dir(&self.folder)
            .env("CARGO_MANIFEST_DIR", &self.folder);
        command
    }
}

/// Builds all test programs, and returns them in build order.
pub fn build() -> Result<Vec<TestBinary>, String> {
    let mut command = Command::new(env!("CARGO"));
    command
        .args(["test", "--workspace", "--no-run"])
        .args(["--message-format", "json-render-diagnostics"])
        .current_dir(root())
        .stdin(Stdio::null());
    let output = command.output().map_err(|e| format!("{command:?}: {e}"))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{command:?}: {}\n{errors}", output.status));
    }
    Ok(binaries(&String::from_utf8_lossy(&output.stdout)))
}

/// The test programs named in cargo's messages, one message per line.
fn binaries(messages: &str) -> Vec<TestBinary> {
    messages.lines().filter_map(binary).collect()
}

fn binary(message: &str) -> Option<TestBinary> {
    let message: Value = serde_json::from_str(message).ok()?;
    if message["profile"]["test"] != true {
        return None;
    }
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
    let package = folder.file_name()?.to_string_lossy();
    let test = message["target"]["name"].as_str()?;
    Some(TestBinary {
        name: format!("{package} {test}"),
        folder: folder.to_path_buf(),
        path: PathBuf::from(message["executable"].as_str()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_test_programs() {
        let messages = r#"{"reason":"compiler-artifact","manifest_path":"/r/crates/rt/Cargo.toml","target":{"name":"cuda"},"profile":{"test":true},"executable":"/t/cuda-1"}
{"reason":"compiler-artifact","manifest_path":"/r/crates/rt/Cargo.toml","target":{"name":"systola_rt"},"profile":{"test":false},"executable":null}
{"reason":"build-finished","success":true}
noise"#;
        let found = binaries(messages);
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].name.as_str(), found[0].test()),
            ("rt cuda", "cuda")
        );
        assert_eq!(found[0].folder, Path::new("/r/crates/rt"));
        assert_eq!(found[0].path, Path::new("/t/cuda-1"));
    }
}
