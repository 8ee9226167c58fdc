//! Whole programs that `systola emit --with-host` prints, as docs/targets.md shows them.

mod common;

use std::process::Command;

use common::{check, root};

/// The commands in C of the page run, and print what it says.
#[test]
fn the_program_of_the_page_on_targets_prints_what_is_shown() {
    let page = std::fs::read_to_string(root().join("docs/targets.md")).expect("the page is there");
    let (_, section) = (page.split_once("## Take the code away")).expect("the section is there");
    let mut blocks = section.split("```").skip(1).step_by(2);
    let commands = blocks.next().and_then(|b| b.strip_prefix("sh\n"));
    let commands = commands.expect("the first listing is of commands");
    let shown = blocks.next().expect("the second one is what is printed");
    let folder = tempfile::tempdir().expect("a folder");
    let mut printed = String::new();
    for line in commands.lines() {
        let line = match line.strip_prefix("systola ") {
            Some(rest) => {
                let path = folder.path().join("conv1d.c").display().to_string();
                let words = rest.replace("conv1d.c ", &format!("{path} "));
                let words: Vec<&str> = words.split(' ').collect();
                let words: Vec<&str> = (words.iter())
                    .map(|w| if *w == "conv1d.c" { path.as_str() } else { w })
                    .collect();
                check(&words, 0);
                continue;
            }
            None => line,
        };
        let output = Command::new("sh")
            .args(["-c", line])
            .current_dir(folder.path())
            .output()
            .expect("a shell");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}: {error}");
        printed = String::from_utf8_lossy(&output.stdout).into_owned();
    }
    let rows = |text: &str| -> Vec<String> {
        let rows = text.trim().lines().map(str::to_string);
        rows.collect()
    };
    let (printed, shown) = (rows(&printed), rows(shown));
    assert_eq!(printed.len(), 2, "{printed:?}");
    // The time is another one, and the last digits of a sum depend on the vectors.
    let time = |row: &str| row.split_once(' ').map(|(_, rest)| rest.to_string());
    assert_eq!(time(&printed[0]), time(&shown[0]));
    let sum = |row: &str| {
        let (what, sum) = row.rsplit_once(' ').expect("words");
        (what.to_string(), sum.parse::<f64>().expect("a number"))
    };
    let ((what, found), (expected, value)) = (sum(&printed[1]), sum(&shown[1]));
    assert_eq!(what, expected);
    assert!((found - value).abs() < 1e-3, "{found}, not {value}");
    let written = std::fs::metadata(folder.path().join("z.bin")).expect("it was written");
    assert_eq!(written.len(), 4000);
}

/// Each text says at its top how its kernels are launched.
#[test]
fn texts_say_how_kernels_are_launched() {
    let strips = "gallery/string/edit_distance_strips.ure";
    for target in ["c", "cuda", "opencl"] {
        let emit = ["emit", strips, "--map", "strips", "--target", target];
        for more in [&[][..], &["--with-host"]] {
            let (out, _) = check(&[&emit[..], more].concat(), 0);
            let head: Vec<&str> = out.lines().take_while(|l| l.starts_with("//")).collect();
            let head = head.join("\n");
            let launch = match target {
                "c" => "//   scratch: ",
                "cuda" => "//   shared memory: ",
                _ => "//   local memory: ",
            };
            for part in [
                "// Sizes, of type ",
                "// Index arithmetic reaches at most ",
                ": input",
                ": output",
                ": flags, zeroed before the first launch",
                ": temporary, ",
                "// Launches, each after the one before has ended:",
                launch,
            ] {
                assert!(head.contains(part), "{target}: no `{part}` in\n{head}");
            }
            assert_eq!(out.contains("int main("), !more.is_empty());
        }
    }
}
