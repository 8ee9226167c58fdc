//! Installs packages of Debian and Ubuntu, if this user may.

use std::process::{Command, Stdio};

/// Installs packages; `Err` gives the reason of a failure.
pub fn install(packages: &[&str]) -> Result<(), String> {
    let prefix: &[&str] = if answers("sh", &["-c", "test $(id -u) = 0"]) {
        &[]
    } else if answers("sudo", &["-n", "true"]) {
        &["sudo", "-n"]
    } else {
        return Err("this user may not install packages".to_string());
    };
    let apt = |args: &[&str]| {
        let words: Vec<&str> = [prefix, &["apt-get"], args].concat();
        let mut command = Command::new(words[0]);
        command
            .args(&words[1..])
            .env("DEBIAN_FRONTEND", "noninteractive")
            .stdin(Stdio::null());
        let done = command.output().map_err(|e| format!("{command:?}: {e}"))?;
        if done.status.success() {
            return Ok(());
        }
        let errors = String::from_utf8_lossy(&done.stderr).into_owned();
        Err(format!("{command:?}: {}\n{errors}", done.status))
    };
    let install: Vec<&str> = [&["install", "-y", "--no-install-recommends"], packages].concat();
    apt(&["update"])?;
    apt(&install)
}

/// Whether a program runs and succeeds.
pub fn answers(tool: &str, args: &[&str]) -> bool {
    Command::new(tool)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|s| s.success())
}
