//! Formatting, completions and manual pages, as a user sees them.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

mod common;

use common::{check, command, file, stderr, stdout, temporary};

const ROUGH: &str = "mapping m of s{lane=c+q; // moves\n time  =q; }";
const FINE: &str = "mapping m of s {\n  lane = c + q;  // moves\n  time = q;\n}\n";

fn piped(mut command: Command, text: &str) -> Output {
    command.stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(text.as_bytes()).expect("it reads");
    drop(stdin);
    child.wait_with_output().expect("it ends")
}

fn read(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(path).expect("a text")
}

#[test]
fn files_are_formatted_in_place() {
    let path = file("fmt_in_place.ure", ROUGH);
    let (out, _) = check(&["fmt", "--check", &path], 1);
    assert_eq!(out, format!("{path}\n"));
    assert_eq!(read(&path), ROUGH);
    check(&["fmt", &path], 0);
    assert_eq!(read(&path), FINE);
    let (out, err) = check(&["fmt", "--check", &path], 0);
    assert_eq!((out.as_str(), err.as_str()), ("", ""));
}

#[test]
fn a_folder_means_the_programs_in_it() {
    let folder = temporary("fmt_folder");
    std::fs::create_dir_all(folder.join("inner")).expect("a folder");
    let (one, two) = (folder.join("one.ure"), folder.join("inner/two.ure"));
    std::fs::write(&one, ROUGH).expect("a file");
    std::fs::write(&two, ROUGH).expect("a file");
    std::fs::write(folder.join("other.txt"), ROUGH).expect("a file");
    let folder_name = folder.display().to_string();
    let (out, _) = check(&["fmt", "--check", &folder_name], 1);
    assert_eq!(out, format!("{}\n{}\n", two.display(), one.display()));
    check(&["fmt", &folder_name], 0);
    assert_eq!((read(&one).as_str(), read(&two).as_str()), (FINE, FINE));
    assert_eq!(read(folder.join("other.txt")), ROUGH);
}

#[test]
fn the_standard_input_is_formatted_to_the_standard_output() {
    let output = piped(command(&["fmt", "-"]), ROUGH);
    assert_eq!(stdout(&output), FINE);
    let output = piped(command(&["fmt", "--check", "-"]), ROUGH);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stdout(&output), "<stdin>\n");
}

#[test]
fn a_file_with_mistakes_stays_and_the_others_are_formatted() {
    let wrong = file("fmt_wrong.ure", "mapping m of s { lane = ; }");
    let right = file("fmt_right.ure", ROUGH);
    let (_, err) = check(&["fmt", &wrong, &right], 1);
    assert!(
        err.contains("E0102") && err.contains("fmt_wrong.ure"),
        "{err}"
    );
    assert_eq!(read(&wrong), "mapping m of s { lane = ; }");
    assert_eq!(read(&right), FINE);
    check(&["fmt", "no/such/file.ure"], 1);
}

#[test]
fn every_shell_has_completions() {
    // The scripts of elvish and PowerShell have no values of options.
    let shells = [
        ("bash", true),
        ("zsh", true),
        ("fish", true),
        ("elvish", false),
        ("powershell", false),
    ];
    for (shell, values) in shells {
        let (script, _) = check(&["completions", shell], 0);
        assert!(script.contains("explore"), "{shell}");
        assert_eq!(script.contains("opencl"), values, "{shell}");
        assert!(
            !script.contains("nvrtc"),
            "hidden commands stay so: {shell}"
        );
    }
    check(&["completions", "cmd"], 1);
}

#[test]
fn bash_completes_commands_and_targets() {
    let (script, _) = check(&["completions", "bash"], 0);
    let complete = |words: &str, at: usize| {
        let ask = format!(
            "{script}\nCOMP_WORDS=({words}); COMP_CWORD={at}\n\
             _systola systola \"${{COMP_WORDS[{at}]}}\" \"${{COMP_WORDS[{at}-1]}}\"\n\
             printf '%s\\n' \"${{COMPREPLY[@]}}\"\n"
        );
        let output = piped(Command::new("bash"), &ask);
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output)
    };
    assert_eq!(complete("systola ru", 1), "run\n");
    let targets = complete("systola run --target ''", 3);
    assert!(
        targets.contains("cuda") && targets.contains("array"),
        "{targets}"
    );
    let strict = piped(
        {
            let mut bash = Command::new("bash");
            bash.arg("-n");
            bash
        },
        &script,
    );
    assert!(
        strict.status.success() && strict.stderr.is_empty(),
        "{}",
        stderr(&strict)
    );
}

/// Lines of a manual page begin with a request that every formatter knows, or are text.
#[test]
fn manual_pages_are_well_formed() {
    let folder = temporary("man");
    let _ = std::fs::remove_dir_all(&folder);
    check(&["man", "--out", &folder.display().to_string()], 0);
    let (main, _) = check(&["man"], 0);
    assert_eq!(read(folder.join("systola.1")), main);
    let (help, _) = check(&["help"], 0);
    let commands = help.split_once("Commands:").expect("a list").1;
    let names = commands.lines().skip(1).take_while(|line| !line.is_empty());
    let names: Vec<&str> = names
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert!(names.len() > 10, "{names:?}");
    assert_eq!(
        std::fs::read_dir(&folder).expect("a folder").count(),
        names.len() + 1
    );
    for name in names {
        assert!(
            main.contains(&format!("systola\\-{name}(1)")),
            "{name} in\n{main}"
        );
        let path = folder.join(format!("systola-{name}.1"));
        let page = read(&path);
        assert!(page.contains(&format!("systola {name}")), "{page}");
        let requests = page.lines().filter_map(|line| line.strip_prefix('.'));
        for request in requests.filter_map(|line| line.split_whitespace().next()) {
            let known = [
                "TH", "SH", "PP", "TP", "IP", "RS", "RE", "nf", "fi", "br", "ie", "el", "ds", "if",
            ];
            assert!(known.contains(&request), "{name}: .{request}");
        }
    }
}
