//! Processes that run this command again, for a part of the work: a kernel that crashes its
//! process, or hangs, is one failure and does not stop the others.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use systola::rt::watch::{Watch, gated, open};
use systola_ir::target::Target;

use super::Args;

/// `systola-lab verify` for one file, on the same device.
pub fn verify_again(program: &Path, args: &Args, file: &Path) -> Command {
    let device = match args.target {
        Target::OpenCl => args.device.for_children(),
        Target::Cuda | Target::Cpu => args.device.to_string(),
    };
    let mut command = Command::new(program);
    command.arg("verify").arg(file);
    command.args(["--target", args.target.name()]);
    command.args(["--device", &device]);
    if let Some(lanes) = args.lanes {
        command.args(["--lanes", &lanes.to_string()]);
    }
    if args.no_sub_groups {
        command.arg("--no-sub-groups");
    }
    if args.boundaries.is_empty() {
        command.args(["--most-points", &args.most_points.to_string()]);
    }
    if let Some(map) = &args.map {
        command.args(["--map", map]);
    }
    for (name, value) in &args.sizes {
        command.args(["--set", &format!("{name}={value}")]);
    }
    command
}

/// The output of a process, if it ends in time. `parse` parses the last line. The other lines
/// include the errors.
pub fn parsed_output<T>(
    command: &Command,
    limit: Duration,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<(Vec<String>, T), String> {
    let spawned = gated(command)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let output = wait(spawned.map_err(|e| e.to_string())?, limit)?;
    let out = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    // The first line names the run, the last one has the counts.
    let lines: Vec<&str> = out.lines().skip(1).collect();
    let Some((parsed, rows)) = lines
        .split_last()
        .and_then(|(last, rows)| Some((parse(last)?, rows)))
    else {
        return Err(format!("{}\n{out}{err}", output.status));
    };
    let errors = err.trim_end().lines();
    let lines = rows.iter().copied().chain(errors).map(str::to_string);
    Ok((lines.collect(), parsed))
}

/// The output of a process, if it ends in time.
fn wait(mut child: Child, limit: Duration) -> Result<Output, String> {
    let start = Instant::now();
    let _watch = Watch::over(&child);
    open(&mut child).map_err(|e| e.to_string())?;
    // Its output is read meanwhile, so that a full pipe does not stop it.
    let out = child.stdout.take();
    let err = child.stderr.take();
    let read = |pipe: Option<Box<dyn std::io::Read + Send>>| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            if let Some(mut pipe) = pipe {
                let _ = std::io::Read::read_to_end(&mut pipe, &mut bytes);
            }
            bytes
        })
    };
    let out = read(out.map(|p| Box::new(p) as Box<dyn std::io::Read + Send>));
    let err = read(err.map(|p| Box::new(p) as Box<dyn std::io::Read + Send>));
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Some(status),
            Ok(None) if start.elapsed() < limit => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Ok(None) | Err(_) => {
                let _ = child.kill();
                let _ = child.wait();
                break None;
            }
        }
    };
    let (stdout, stderr) = (
        out.join().unwrap_or_default(),
        err.join().unwrap_or_default(),
    );
    match status {
        Some(status) => Ok(Output {
            status,
            stdout,
            stderr,
        }),
        None => Err(format!(
            "stopped after {} s\n{}",
            limit.as_secs(),
            String::from_utf8_lossy(&stdout)
        )),
    }
}
