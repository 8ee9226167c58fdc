//! Programs in files: new finds, and earlier finds, which are tried first.
//!
//! The first lines of a file give the sizes to try, one line for each, as in `// sizes: N=3, M=4`;
//! whether floats are compared up to a tolerance, `// floats: close`; and the seed that selects
//! machines and orders, `// seed: 5`.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use super::subject::{Sizes, Subject, Unfit};

pub struct Entry {
    pub name: String,
    pub text: String,
    pub sizes: Vec<Sizes>,
    pub close: bool,
    pub seed: u64,
}

/// The files of the corpus that is part of the repository.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// All programs of a folder, in the order of their names; none where there is no folder.
pub fn read_all(folder: &Path) -> Result<Vec<Entry>, String> {
    let Ok(files) = fs::read_dir(folder) else {
        return Ok(Vec::new());
    };
    let mut paths: Vec<PathBuf> = files
        .filter_map(|file| file.ok().map(|f| f.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "ure"))
        .collect();
    paths.sort();
    paths.iter().map(|path| read(path)).collect()
}

pub fn read(path: &Path) -> Result<Entry, String> {
    let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    parse(&stem, &text)
}

fn parse(name: &str, text: &str) -> Result<Entry, String> {
    let mut entry = Entry {
        name: name.to_string(),
        text: text.to_string(),
        sizes: Vec::new(),
        close: false,
        seed: 0,
    };
    for line in text.lines().take_while(|l| l.starts_with("//")) {
        if let Some(list) = line.strip_prefix("// sizes:") {
            let mut sizes = Sizes::new();
            for one in list.split(',').map(str::trim).filter(|s| !s.is_empty()) {
                let parts = one.split_once('=');
                let parsed = parts.and_then(|(n, v)| Some((n, v.parse::<i128>().ok()?)));
                let (name, value) = parsed.ok_or_else(|| format!("{name}: `{one}` is no size"))?;
                sizes.insert(name.to_string(), value);
            }
            entry.sizes.push(sizes);
        }
        entry.close |= line.trim() == "// floats: close";
        if let Some(seed) = line.strip_prefix("// seed:") {
            let parsed = seed.trim().parse();
            entry.seed = parsed.map_err(|_| format!("{name}: `{seed}` is no seed"))?;
        }
    }
    if entry.sizes.is_empty() {
        return Err(format!("{name}: no line says at which sizes it is tried"));
    }
    Ok(entry)
}

impl Entry {
    /// The program as a file, with remarks.
    pub fn file(&self, remarks: &str) -> String {
        let mut text = String::new();
        for line in remarks.lines() {
            let _ = writeln!(text, "// {line}");
        }
        for sizes in &self.sizes {
            let list: Vec<String> = sizes.iter().map(|(n, v)| format!("{n}={v}")).collect();
            let _ = writeln!(text, "// sizes: {}", list.join(", "));
        }
        if self.close {
            text.push_str("// floats: close\n");
        }
        let _ = writeln!(text, "// seed: {}", self.seed);
        text.push_str(&self.text);
        text
    }

    pub fn subject(&self) -> Result<Subject, Unfit> {
        Subject::new(&self.name, &self.text, &self.sizes, self.close, self.seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_says_at_which_sizes_it_is_tried() {
        let text = "// wrong on cpu\n// sizes: N=1, M=4\n// sizes: N=3, M=5\n// floats: close\n// seed: 7\nsystem s() {}\n";
        let entry = parse("one", text).unwrap();
        let again = parse("one", &entry.file("")).unwrap();
        assert_eq!(entry.sizes.len(), 2);
        assert_eq!(entry.sizes, again.sizes[..2]);
        assert!(entry.close && again.close);
        assert_eq!((entry.seed, again.seed), (7, 7));
        assert!(parse("none", "system s() {}\n").is_err());
    }
}
