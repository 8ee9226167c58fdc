//! Libraries on the same GPU: lines of JSON that the scripts of bench/baselines/cuda print.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde::Deserialize;

use super::super::tools::last_line;
use super::case::{Case, Group};

/// One line of a script.
#[derive(Debug, Deserialize)]
struct Line {
    group: String,
    problem: String,
    baseline: String,
    ms: Option<f64>,
    /// Why there is no time.
    skipped: Option<String>,
}

#[derive(Debug, Default)]
pub struct Baselines {
    /// Milliseconds, or why there are none, by group, problem and baseline.
    found: BTreeMap<(String, String, String), Result<f64, String>>,
    enabled: bool,
}

impl Baselines {
    /// From a file with the output of the scripts.
    pub fn read(&mut self, path: &Path) -> Result<(), String> {
        let text = std::fs::read_to_string(path)
            .map_err(|e| format!("cannot read {}: {e}", path.display()))?;
        self.enabled = true;
        for (n, line) in text.lines().enumerate() {
            if !line.trim().is_empty() {
                self.add(line)
                    .map_err(|e| format!("{}, line {}: {e}", path.display(), n + 1))?;
            }
        }
        Ok(())
    }

    /// Runs the scripts of a group for the cases that are timed.
    pub fn measure(&mut self, root: &Path, group: Group, size: usize, cases: &[&Case]) {
        self.enabled = true;
        let items: Vec<&String> = cases.iter().filter_map(|c| c.baseline.as_ref()).collect();
        for (baseline, script, first) in scripts(group) {
            if items.is_empty() {
                continue;
            }
            let mut command = Command::new("python3");
            command
                .arg("-B")
                .arg(root.join("bench/baselines/cuda").join(script))
                .args(*first)
                .arg(size.to_string())
                .args(&items);
            let why = match command.output() {
                Err(error) => format!("python3 does not run: {error}"),
                Ok(done) => {
                    let text = String::from_utf8_lossy(&done.stdout);
                    for line in text.lines().filter(|l| l.starts_with('{')) {
                        let _ = self.add(line);
                    }
                    if done.status.success() {
                        format!("{script} printed no time")
                    } else {
                        format!("{script}: {}", last_line(&done.stderr))
                    }
                }
            };
            for case in cases.iter().filter(|c| c.baseline.is_some()) {
                let key = key(group, &case.name, baseline);
                self.found.entry(key).or_insert_with(|| Err(why.clone()));
            }
        }
    }

    fn add(&mut self, line: &str) -> Result<(), String> {
        let line: Line = serde_json::from_str(line).map_err(|e| e.to_string())?;
        let result = match (line.ms, line.skipped) {
            (Some(ms), None) => Ok(ms),
            (_, Some(why)) => Err(why),
            (None, None) => Err("neither a time nor a reason".to_string()),
        };
        self.found
            .insert((line.group, line.problem, line.baseline), result);
        Ok(())
    }

    /// Whether baselines were requested.
    pub fn enabled(&self) -> bool {
        self.enabled
    }

    /// The time of a baseline.
    pub fn of(&self, group: Group, problem: &str, baseline: &str) -> Option<f64> {
        let found = self.found.get(&key(group, problem, baseline));
        found.and_then(|r| r.as_ref().ok().copied())
    }

    /// Why baselines of a group are missing in some rows, one reason to a line.
    pub fn notes(&self, group: Group, problems: &[String]) -> Vec<String> {
        if !self.enabled || problems.is_empty() {
            return Vec::new();
        }
        let mut notes: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for baseline in group.baselines() {
            for problem in problems {
                let why = match self.found.get(&key(group, problem, baseline)) {
                    Some(Ok(_)) => continue,
                    Some(Err(why)) => why.as_str(),
                    None => "not measured",
                };
                let of = notes.entry(format!("{baseline}: {why}")).or_default();
                of.push(problem);
            }
        }
        let line = |(why, of): (String, Vec<&str>)| {
            if of.len() == problems.len() {
                why
            } else {
                format!("{why} ({})", of.join("; "))
            }
        };
        notes.into_iter().map(line).collect()
    }
}

fn key(group: Group, problem: &str, baseline: &str) -> (String, String, String) {
    let (group, problem) = (group.name().to_string(), problem.to_string());
    (group, problem, baseline.to_string())
}

/// A baseline, its script, and the arguments before the size.
type Script = (&'static str, &'static str, &'static [&'static str]);

fn scripts(group: Group) -> &'static [Script] {
    match group {
        Group::Conv1d => &[("cuDNN", "conv1d_cudnn.py", &[])],
        Group::Conv2d => &[
            ("cuDNN", "conv2d_cudnn.py", &["f32"]),
            ("NPP", "conv2d_npp.py", &[]),
            ("CuPy", "conv2d_cupy.py", &["f32"]),
        ],
        Group::Conv2dF64 => &[
            ("cuDNN", "conv2d_cudnn.py", &["f64"]),
            ("CuPy", "conv2d_cupy.py", &["f64"]),
        ],
        Group::Matmul => &[("cuBLAS", "matmul_cublas.py", &[])],
        Group::Windows
        | Group::Stencil
        | Group::Alignment
        | Group::Designs1d
        | Group::Designs2d
        | Group::Startup => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_joined_and_gaps_are_reported() {
        let mut baselines = Baselines {
            enabled: true,
            ..Baselines::default()
        };
        let line = |baseline: &str, rest: &str| {
            format!(r#"{{"group": "conv2d", "problem": "a", "baseline": "{baseline}", {rest}}}"#)
        };
        baselines.add(&line("cuDNN", r#""ms": 2.5"#)).unwrap();
        baselines
            .add(&line("NPP", r#""skipped": "no nvcc""#))
            .unwrap();
        assert!(baselines.add("{}").is_err());
        assert_eq!(baselines.of(Group::Conv2d, "a", "cuDNN"), Some(2.5));
        assert_eq!(baselines.of(Group::Conv2d, "a", "NPP"), None);
        let rows = ["a".to_string(), "b".to_string()];
        let notes = baselines.notes(Group::Conv2d, &rows);
        assert_eq!(
            notes,
            [
                "CuPy: not measured",
                "NPP: no nvcc (a)",
                "NPP: not measured (b)",
                "cuDNN: not measured (b)"
            ]
        );
        assert!(Baselines::default().notes(Group::Conv2d, &rows).is_empty());
    }

    #[test]
    fn every_baseline_has_a_script_that_is_there() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/baselines/cuda");
        for group in Group::ALL {
            let named: Vec<&str> = scripts(group).iter().map(|s| s.0).collect();
            assert_eq!(named, group.baselines());
            for (_, script, _) in scripts(group) {
                assert!(folder.join(script).is_file(), "{script}");
            }
        }
    }
}
