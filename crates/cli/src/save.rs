//! Writes a mapping that was found or chosen into the file of its system.

use std::fs;
use std::path::Path;

use systola_driver::{Fix, load};
use systola_explore::platform::Platform;
use systola_front::parse_module;
use systola_ir::codes::explore as codes;
use systola_ir::mapping::Mapping;
use systola_ir::system::Module;
use systola_ir::{Diagnostic, Span};

use crate::files;
use crate::source::{Failure, Source};

/// Checks that a mapping of this name can be added, before anything is measured.
pub fn check_name(source: &Source, name: &str) -> Result<(), Failure> {
    let taken = |message: String| {
        let found = Diagnostic::new(&codes::NAME_TAKEN, Span::NONE, message);
        source.fail(&[found.help("choose another name with --save")])
    };
    if source.module.mappings.iter().any(|m| m.name == name) {
        return Err(taken(format!("there is a mapping `{name}` already")));
    }
    if !is_name(name) {
        return Err(taken(format!("`{name}` cannot be the name of a mapping")));
    }
    Ok(())
}

/// Whether the text language takes this as the name of a mapping: it is asked to read one, since
/// only it knows all reserved words.
fn is_name(name: &str) -> bool {
    let probe = format!(
        "system s(N) where N >= 1 {{
  input x[N]: i32;
  index i in 0..N;
  var S: i32 = x[i];
  output y[N]: i32 = S at [i];
}}
mapping {name} of s {{ time = i; }}"
    );
    parse_module(&probe).is_ok_and(|read| read.mappings.iter().map(|m| &m.name).eq([name]))
}

/// The comment above a mapping: who found it, for which sizes and platform, and why.
pub fn comment(
    by: &str,
    sizes: &[(String, i128)],
    fix: &Fix,
    platform: &Platform,
    why: &str,
) -> String {
    let sizes: Vec<String> = sizes.iter().map(|(p, v)| format!("{p} = {v}")).collect();
    let sizes = match sizes.as_slice() {
        [] => String::new(),
        _ => format!(" for {}", sizes.join(", ")),
    };
    let fixed = match fix {
        Fix::Nothing => String::new(),
        Fix::Everything => " with all fixed".to_string(),
        Fix::Names(names) => format!(" with {} fixed", names.join(", ")),
    };
    let (target, device) = (platform.target(), &platform.device);
    format!("// {by}{sizes}{fixed} on {target} ({device}){why}.")
}

/// Adds a mapping after the last one of its system, below a comment. The file is replaced as a
/// whole or not at all.
pub fn save(
    source: &Source,
    comment: &str,
    mut mapping: Mapping,
    name: &str,
) -> Result<(), Failure> {
    mapping.name = name.to_string();
    let text = insert(&source.module, &source.text, comment, &mapping);
    let text = text.map_err(|why| failed(source, why))?;
    replace(Path::new(&source.path), &source.text, &text).map_err(|why| failed(source, why))
}

fn failed(source: &Source, why: String) -> Failure {
    let message = format!("{} is as it was: {why}", source.path);
    let found = Diagnostic::new(&codes::NOT_SAVED, Span::NONE, message);
    source.fail(&[found.help("the mapping can be copied from --explain")])
}

/// The text of a file with one more mapping. It is parsed again: nothing else may change.
fn insert(module: &Module, text: &str, comment: &str, mapping: &Mapping) -> Result<String, String> {
    let own = |m: &&Mapping| m.system == mapping.system;
    let last = module.mappings.iter().rfind(own);
    let system = module.systems.iter().find(|s| s.name == mapping.system);
    let behind = last.map(|m| m.span).or(system.map(|s| s.span));
    let behind = behind.ok_or_else(|| format!("it has no system `{}`", mapping.system))?;
    // To the end of the line: a comment may follow.
    let end = (behind.end as usize).min(text.len());
    let rest = &text[end..];
    let at = rest.find('\n').map_or(text.len(), |n| end + n + 1);
    let (before, after) = text.split_at(at);
    let gap = if before.ends_with('\n') { "\n" } else { "\n\n" };
    let changed = format!("{before}{gap}{comment}\n{mapping}{after}");
    let read = load(&changed).map_err(|found| match found.first() {
        Some(first) => format!("with the mapping it does not parse: {first}"),
        None => "with the mapping it does not parse".to_string(),
    })?;
    let position = module
        .mappings
        .iter()
        .position(|m| last.is_some_and(|l| l.name == m.name))
        .map_or(0, |n| n + 1);
    let same = |position: usize| {
        let mut expected = module.clone();
        expected.mappings.insert(position, mapping.clone());
        expected.to_string() == read.to_string()
    };
    // Without another mapping of its system it comes before or after those of others.
    let anywhere = last.is_none() && (0..=module.mappings.len()).any(same);
    if !anywhere && !same(position) {
        return Err("with the mapping other parts of it would change".to_string());
    }
    Ok(changed)
}

/// Writes a new file beside the old one and renames it.
fn replace(path: &Path, old: &str, new: &str) -> Result<(), String> {
    let say = |what: &str, error: std::io::Error| format!("cannot {what}: {error}");
    let path = fs::canonicalize(path).map_err(|e| say("find it", e))?;
    let current = fs::read_to_string(&path).map_err(|e| say("read it", e))?;
    if current != old {
        return Err("another program changed it meanwhile".to_string());
    }
    files::replace(&path, new.as_bytes()).map_err(|e| say("write it", e))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "\
system a(N) where N >= 1 {
  input x[N]: i32;
  index i in 0..N;
  var S: i32 = select(i == 0, 0, S(i-1)) + x[i];
  output s[N]: i32 = S at [i] when true;
}
mapping one of a { time = i; } // kept
// Of b.
system b(N) where N >= 1 {
  input x[N]: i32;
  index i in 0..N;
  var T: i32 = x[i];
  output t[N]: i32 = T at [i] when true;
}";

    fn found(system: &str) -> Mapping {
        let module = load(&format!(
            "{TWO}\nmapping found of {system} {{ lane = i; time = i; }}"
        ));
        module.unwrap().mappings.pop().unwrap()
    }

    fn check(text: &str, system: &str) -> String {
        let module = load(text).unwrap();
        insert(&module, text, "// Why.", &found(system)).unwrap()
    }

    #[test]
    fn names_are_those_that_the_text_language_reads() {
        let check = |name: &str, expect: bool| assert_eq!(is_name(name), expect, "`{name}`");
        for name in ["found", "m'", "_2", "s", "i", "mapping_1"] {
            check(name, true);
        }
        for name in [
            "min",
            "when",
            "select",
            "f32",
            "mapping",
            "inf_f32",
            "two words",
            "",
            "2",
            "ü",
            "a-b",
            "a of s {} mapping b",
            "a // b",
            "a /* b */",
            " a",
        ] {
            check(name, false);
        }
    }

    #[test]
    fn it_stands_behind_the_last_of_its_system() {
        let text = check(TWO, "a");
        let expect =
            "// kept\n\n// Why.\nmapping found of a {\n  lane = i;\n  time = i;\n}\n// Of b.\n";
        assert!(text.contains(expect), "{text}");
        assert_eq!(load(&text).unwrap().mappings.len(), 2);
    }

    #[test]
    fn or_behind_its_system() {
        let text = check(TWO, "b");
        assert!(
            text.ends_with("}\n\n// Why.\nmapping found of b {\n  lane = i;\n  time = i;\n}\n")
        );
        let again = check(&text.replace("found", "earlier"), "a");
        assert_eq!(load(&again).unwrap().mappings.len(), 3);
    }
}
