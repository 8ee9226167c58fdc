//! Edge cases: endless files, full disks, killed commands, contradictory arguments.

mod common;

use std::fs::File;
use std::io::Read;
use std::process::{Command, Stdio};

use common::*;

#[test]
fn a_parameter_is_given_once() {
    let sizes = ["--set", "C=16", "--set", "Q=5", "--set", "C=17"];
    for start in [
        vec!["check", CORE],
        vec!["run", CORE],
        vec!["dump", CORE, "--map", "sbm"],
        vec!["emit", CORE, "--map", "sbm"],
        vec!["show", CORE, "--map", "sbm", "-o", "never.svg"],
        vec!["explore", CORE],
    ] {
        let (_, err) = check(&[&start[..], &sizes].concat(), 1);
        assert!(err.contains("`C` twice: 16 and 17"), "{start:?}\n{err}");
    }
}

#[test]
fn wrong_names_and_types_are_told_before_anything_runs() {
    let before = |args: &[&str], part: &str| {
        let (out, err) = check(&[&["run", CORE], args].concat(), 1);
        assert!(err.contains(part), "{err}");
        assert_eq!(out, "", "nothing was done before");
    };
    before(&["--out", "y=never.npy"], "no output `y`");
    let twice = ["--out", "z=never.npy", "--out", "z=never2.npy"];
    before(&twice, "E0639");
    let integers = file("integers.npy", npy("<i4", "(4,)", &[1, 2, 3, 4]));
    before(&["--in", &format!("x={integers}")], "E0607");
    // The same for compiled code: it is refused before lowering and compiling.
    before(
        &["--target", "cpu", "--map", "sbm", "--out", "y=never.npy"],
        "no output `y`",
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_without_end_is_read_up_to_a_limit() {
    for command in ["check", "run", "dump", "explore"] {
        let (_, err) = check(&[command, "/dev/zero"], 1);
        assert!(err.contains("more than 64 MiB"), "{err}");
    }
    let (_, err) = check(&["run", CORE, "--in", "x=/dev/zero"], 1);
    assert!(err.contains("magic bytes"), "{err}");
}

#[cfg(target_os = "linux")]
#[test]
fn what_can_not_be_printed_is_an_error() {
    for args in [
        vec!["check", CORE, "--json"],
        vec!["check", CORE],
        vec!["dump", CORE],
        vec!["emit", CORE, "--map", "sbm"],
        vec!["explain", "E0501"],
        vec!["--help"],
    ] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = command(&args).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        assert!(stderr(&output).contains("standard output"), "{args:?}");
    }
    // A closed pipe is not an error.
    let mut child = command(&["explain", "E0501"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
}

#[test]
fn outputs_are_written_whole_or_not_at_all() {
    let folder = temporary("whole");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let (_, err) = check(&["run", CORE, "--out", "z=no/such/folder/z.npy"], 1);
    assert!(err.contains("no/such/folder"), "{err}");
    let path = folder.join("z.npy");
    check(&["run", CORE, "--out", &format!("z={}", path.display())], 0);
    let names = || std::fs::read_dir(&folder).unwrap().count();
    assert_eq!(names(), 1, "nothing lies beside it");
    let first = std::fs::read(&path).unwrap();
    // A run at other sizes replaces the file.
    let more = ["--set", "C=9", "--set", "Q=4"];
    let out = format!("z={}", path.display());
    check(&[&["run", CORE, "--out", &out], &more[..]].concat(), 0);
    assert_ne!(std::fs::read(&path).unwrap(), first);
    assert_eq!(names(), 1);
}

/// Killed during a compilation, by a signal that cannot be caught.
#[cfg(target_os = "linux")]
#[test]
fn a_compiler_ends_with_the_command_that_started_it() {
    let script = file(
        "endless-cc.sh",
        "if [ \"$1\" = --version ]; then echo 1; exit; fi\nsleep 600 & echo $$ $! > \"$PIDS\"; wait\n",
    );
    let pipe = temporary("endless-cc.pids");
    let _ = std::fs::remove_file(&pipe);
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let mut child = command(&["run", CORE, "--target", "cpu", "--map", "sbm"])
        .env("SYSTOLA_CC", format!("/bin/sh {script}"))
        .env("SYSTOLA_CACHE_MB", "0")
        .env("PIDS", &pipe)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // The compiler opens it when it starts.
    let mut pids = String::new();
    File::open(&pipe)
        .unwrap()
        .read_to_string(&mut pids)
        .unwrap();
    assert_eq!(pids.split_whitespace().count(), 2, "{pids}");
    // The watchdog starts after the compiler, and then runs beside it.
    let group = format!(
        "systola-watch\0-{}",
        pids.split_whitespace().next().unwrap()
    );
    let is_watched = || {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let lines = processes.filter_map(|p| std::fs::read(p.path().join("cmdline")).ok());
        lines
            .into_iter()
            .any(|l| String::from_utf8_lossy(&l).contains(&group))
    };
    while !is_watched() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    for pid in pids.split_whitespace() {
        let stat = format!("/proc/{pid}/stat");
        let is_gone = || match std::fs::read_to_string(&stat) {
            Ok(stat) => stat.contains(") Z "),
            Err(_) => true,
        };
        while !is_gone() {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}
