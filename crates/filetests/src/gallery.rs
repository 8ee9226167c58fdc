//! The files of `gallery/`, and the facts that `gallery/designs.json` states about their designs.
//!
//! The facts were found by executing every design in time order, without Systola: dependences
//! really read, points, PEs and steps at given sizes, and how many schedules a search has to find.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::tensor::Params;

/// A file of the gallery.
#[derive(Clone)]
pub struct File {
    /// Relative to `gallery/`.
    pub path: String,
    pub text: String,
}

/// One of the fifty algorithms.
pub struct Algorithm {
    pub id: String,
    pub title: String,
    /// Relative to `gallery/`.
    pub file: String,
    pub system: String,
    pub dims: Vec<String>,
    /// For each variable that is read at other points, the set of distances e = sink - source.
    pub dependences: BTreeMap<String, Vec<Vec<Coefficient>>>,
    /// In the order of the mappings in the file.
    pub designs: Vec<Design>,
    pub oracle: Option<Oracle>,
}

/// An allocation and a schedule.
pub struct Design {
    pub name: String,
    pub note: String,
    pub mapping: String,
    /// PE = P z.
    pub p: Vec<Vec<Coefficient>>,
    /// time = s · z.
    pub s: Vec<Coefficient>,
    /// Variables that may arrive in the step in which they leave.
    pub broadcast: Vec<String>,
    pub checked: Vec<Checked>,
}

/// The observed requirements of a design at one size.
pub struct Checked {
    pub params: Params,
    pub points: usize,
    pub pes: usize,
    pub steps: usize,
}

/// What a search over small schedules and projections must find, at one size.
pub struct Oracle {
    pub params: Params,
    /// Schedules s in [-3, 3]^n with s·e >= 1 for every dependence.
    pub schedules: usize,
    /// Pairs (d, s) of such a schedule with a projection d in {-1, 0, 1}^n, up to sign, with s·d !=
    /// 0.
    pub pairs: usize,
    pub min_makespan: i64,
    pub argmin: Vec<i64>,
}

/// An integer expression in the parameters, such as `1-K`, `M+2`, `N*N`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coefficient(pub String);

impl Coefficient {
    /// The value at given sizes: a sum of products of numbers and parameters.
    pub fn eval(&self, params: &Params) -> i64 {
        let spaced = self.0.replace(' ', "").replace('-', "+-");
        let terms = spaced.split('+').filter(|term| !term.is_empty());
        let factor = |factor: &str| -> i64 {
            match (factor.strip_prefix('-'), factor.parse()) {
                (_, Ok(number)) => number,
                (Some(name), _) => -params.0[name],
                (None, _) => params.0[factor],
            }
        };
        terms
            .map(|term| term.split('*').map(factor).product::<i64>())
            .sum()
    }
}

/// The folder `gallery/` of this repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../gallery")
}

/// Every `.ure` file of the gallery, sorted by path.
pub fn files() -> Vec<File> {
    let root = root();
    let mut files = Vec::new();
    collect(&root, &root, &mut files);
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

fn collect(root: &Path, folder: &Path, files: &mut Vec<File>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    for entry in entries {
        let path = entry.expect("a readable folder").path();
        if path.is_dir() {
            collect(root, &path, files);
        } else if path.extension().is_some_and(|e| e == "ure") {
            let text =
                fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            let relative = path.strip_prefix(root).expect("below the root");
            let parts: Vec<_> = relative.iter().map(|p| p.to_string_lossy()).collect();
            files.push(File {
                path: parts.join("/"),
                text,
            });
        }
    }
}

impl File {
    /// The id in its line `// gallery: A01`.
    pub fn id(&self) -> Option<&str> {
        self.text
            .lines()
            .find_map(|line| line.strip_prefix("// gallery: "))
    }

    /// The comment lines right above a mapping, without their slashes.
    pub fn comment_above(&self, mapping: &str) -> Vec<&str> {
        let lines: Vec<&str> = self.text.lines().collect();
        let head = format!("mapping {mapping} of ");
        let Some(at) = lines.iter().position(|line| line.starts_with(&head)) else {
            return Vec::new();
        };
        let mut comment: Vec<&str> = lines[..at]
            .iter()
            .rev()
            .map_while(|line| line.strip_prefix("//"))
            .map(str::trim)
            .collect();
        comment.reverse();
        comment
    }
}

/// The fifty algorithms, in the order of their ids.
pub fn algorithms() -> Vec<Algorithm> {
    let path = root().join("designs.json");
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let json: Value = serde_json::from_str(&text).expect("designs.json is JSON");
    list(&json).iter().map(algorithm).collect()
}

fn algorithm(json: &Value) -> Algorithm {
    let dependences = json["dependences"].as_object().expect("dependences");
    Algorithm {
        id: string(&json["id"]),
        title: string(&json["title"]),
        file: string(&json["file"]),
        system: string(&json["system"]),
        dims: list(&json["dims"]).iter().map(string).collect(),
        dependences: dependences
            .iter()
            .map(|(var, distances)| (var.clone(), rows(distances)))
            .collect(),
        designs: list(&json["designs"]).iter().map(design).collect(),
        oracle: json.get("oracle").map(|oracle| Oracle {
            params: params(&oracle["params"]),
            schedules: count(&oracle["valid_s_in_pm3"]),
            pairs: count(&oracle["valid_d_s_pairs"]),
            min_makespan: int(&oracle["min_makespan"]),
            argmin: list(&oracle["argmin_s"]).iter().map(int).collect(),
        }),
    }
}

fn design(json: &Value) -> Design {
    let checked = |json: &Value| Checked {
        params: params(&json["params"]),
        points: count(&json["points"]),
        pes: count(&json["pes"]),
        steps: count(&json["steps"]),
    };
    Design {
        name: string(&json["name"]),
        note: string(&json["note"]),
        mapping: string(&json["mapping"]),
        p: rows(&json["P"]),
        s: row(&json["s"]),
        broadcast: list(&json["broadcast"]).iter().map(string).collect(),
        checked: list(&json["checked"]).iter().map(checked).collect(),
    }
}

fn list(json: &Value) -> &[Value] {
    json.as_array()
        .unwrap_or_else(|| panic!("not a list: {json}"))
}

fn string(json: &Value) -> String {
    let text = json
        .as_str()
        .unwrap_or_else(|| panic!("not a string: {json}"));
    text.to_string()
}

fn int(json: &Value) -> i64 {
    json.as_i64()
        .unwrap_or_else(|| panic!("not an integer: {json}"))
}

fn count(json: &Value) -> usize {
    usize::try_from(int(json)).unwrap_or_else(|_| panic!("not a count: {json}"))
}

fn row(json: &Value) -> Vec<Coefficient> {
    list(json).iter().map(|c| Coefficient(string(c))).collect()
}

fn rows(json: &Value) -> Vec<Vec<Coefficient>> {
    list(json).iter().map(row).collect()
}

fn params(json: &Value) -> Params {
    let object = json
        .as_object()
        .unwrap_or_else(|| panic!("not an object: {json}"));
    Params(
        object
            .iter()
            .map(|(name, v)| (name.clone(), int(v)))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coefficients_are_sums_of_products() {
        let params = Params([("M", 5), ("N", 3)].map(|(n, v)| (n.to_string(), v)).into());
        let check = |text: &str, value: i64| {
            assert_eq!(Coefficient(text.to_string()).eval(&params), value, "{text}");
        };
        check("-2", -2);
        check("1-N", -2);
        check("M+2", 7);
        check("M*N", 15);
        check("-N*N", -9);
        check("2*M - 1", 9);
    }

    #[test]
    fn all_fifty_algorithms_and_their_designs_are_listed() {
        let algorithms = algorithms();
        assert_eq!(algorithms.len(), 50);
        let designs: usize = algorithms.iter().map(|a| a.designs.len()).sum();
        assert_eq!(designs, 134);
    }
}
