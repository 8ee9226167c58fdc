//! Tests what editors need: the grammars and the extension in `editors/`. Packages of Node.js are
//! installed below `target/`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::steps::{ONE, Tally, output, tally};
use crate::{apt, root, target_folder};

/// Debian's packages of Node.js.
const DEBIAN: [&str; 2] = ["nodejs", "npm"];

/// The files that the extension takes from other folders, and the folders.
const SHARED: [&str; 3] = [
    "editors/textmate/systola.tmLanguage.json",
    "LICENSE-MIT",
    "LICENSE-APACHE",
];

/// Runs all tests of `editors/`; `systola` is the command line, which is a language server too.
pub fn test(systola: &Path) -> Result<Tally, String> {
    node()?;
    let folder = target_folder().join("editors");
    // Compiling takes the processor, installing the network.
    let (grammar, installed) = std::thread::scope(|scope| {
        let grammar = scope.spawn(|| grammar(&folder));
        let installed = tools(&folder).and_then(|tools| Ok((tools, extension(&folder)?)));
        (grammar.join(), installed)
    });
    let grammar = grammar.map_err(|_| "the tests of the grammar panicked".to_string())??;
    let (tools, extension) = installed?;
    let scripts = root().join("editors/check");
    let run = |name: &str, arguments: &[&Path]| {
        let mut command = Command::new("node");
        command.arg(scripts.join(name)).args(arguments);
        output(command.env("NODE_PATH", tools.join("node_modules"))).map(|_| ONE)
    };
    let package = package(&tools, &extension, &folder.join("systola.vsix"));
    let results = [
        run("keywords.js", &[]),
        words(&folder).and_then(|words| run("textmate.js", &[&words])),
        package,
        run("vscode.js", &[systola, &extension]),
    ];
    let mut sum = grammar;
    for result in results {
        sum.passed += result?.passed;
    }
    Ok(sum)
}

/// Installs Node.js if it is missing.
fn node() -> Result<(), String> {
    let works = || apt::answers("node", &["--version"]) && apt::answers("npm", &["--version"]);
    if works() {
        return Ok(());
    }
    let by_hand = "Node.js and npm are needed to test editors/; install them by hand";
    apt::install(&DEBIAN).map_err(|e| format!("{e}\n{by_hand}"))?;
    if works() {
        Ok(())
    } else {
        Err(by_hand.to_string())
    }
}

/// A command of cargo for the crate that tests the tree-sitter grammar.
fn cargo(command: &str, folder: &Path) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .arg(command)
        .arg("--manifest-path")
        .arg(root().join("editors/check/Cargo.toml"))
        .arg("--target-dir")
        .arg(folder.join("cargo"));
    cargo
}

/// Formats, builds and tests the crate; the tests are those of the tree-sitter grammar.
fn grammar(folder: &Path) -> Result<Tally, String> {
    let mut format = Command::new(env!("CARGO"));
    format
        .args(["fmt", "--check", "--manifest-path"])
        .arg(root().join("editors/check/Cargo.toml"));
    output(&mut format)?;
    let told = output(cargo("test", folder).arg("--locked"))?;
    let tally = tally(&told);
    if tally.passed == 0 {
        return Err(format!("no test ran\n{told}"));
    }
    Ok(tally)
}

/// What tree-sitter reads the words of all programs as, in a file.
fn words(folder: &Path) -> Result<PathBuf, String> {
    let program = folder.join("cargo/debug/systola-editors");
    let told = output(Command::new(program).arg("words").arg(folder))?;
    let file = folder.join("words.json");
    write(&file, &told)?;
    Ok(file)
}

/// The folder where the packages of the tests are installed.
fn tools(folder: &Path) -> Result<PathBuf, String> {
    let tools = folder.join("tools");
    install(&tools, &read(&root().join("editors/check/package.json"))?)?;
    Ok(tools)
}

/// A copy of the extension with the packages that it needs. The files around it lie as in the
/// repository, since it copies the grammar and the licences from there.
fn extension(folder: &Path) -> Result<PathBuf, String> {
    let copy = folder.join("copy");
    for file in SHARED {
        write(&copy.join(file), &read(&root().join(file))?)?;
    }
    let extension = copy.join("editors/vscode");
    let source = root().join("editors/vscode");
    let entries = std::fs::read_dir(&source).map_err(|e| format!("{}: {e}", source.display()))?;
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default();
        if path.is_file() && path.extension().is_none_or(|e| e != "vsix") {
            write(&extension.join(name), &read(&path)?)?;
        }
    }
    install(&extension, &read(&source.join("package.json"))?)?;
    output(
        Command::new("node")
            .arg("copy-shared.js")
            .current_dir(&extension),
    )?;
    Ok(extension)
}

/// Installs the packages that a manifest names, unless they are there. Nothing of theirs is run.
fn install(folder: &Path, manifest: &str) -> Result<(), String> {
    let stamp = folder.join("node_modules/.systola-manifest");
    if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == manifest) {
        return Ok(());
    }
    write(&folder.join("package.json"), manifest)?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-package-lock", "--ignore-scripts"])
        .args(["--omit=optional", "--no-audit", "--no-fund"])
        .current_dir(folder);
    output(&mut npm).map_err(|e| {
        format!("{e}\nis this machine connected? The packages come from the registry of npm")
    })?;
    write(&stamp, manifest)
}

/// Packages the extension as its README says.
fn package(tools: &Path, extension: &Path, file: &Path) -> Result<Tally, String> {
    let mut vsce = Command::new("node");
    vsce.arg(tools.join("node_modules/@vscode/vsce/vsce"))
        .args(["package", "--out"])
        .arg(file)
        .current_dir(extension);
    output(&mut vsce)?;
    Ok(ONE)
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

/// Writes a file; folders are created.
fn write(path: &Path, text: &str) -> Result<(), String> {
    let folder = path.parent().unwrap_or(path);
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(path, text))
        .map_err(|e| format!("{}: {e}", path.display()))
}
