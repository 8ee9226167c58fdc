//! Helper functions and types of printed code: only those that are used, each once, callees first.
//!
//! Their source is in `prelude/*.h`, one section for each, with letters after a `$` for the parts
//! that vary: `$T` an element type, `$V` a vector type, `$L` its lanes, `$M` the mask of that
//! shape, `$N` the name of the element type, `$Q` the target's qualifiers of a private inlined
//! function. The caller defines the others.

use std::collections::BTreeSet;

const FILES: &[&str] = &[
    include_str!("prelude/scalar.h"),
    include_str!("prelude/vector.h"),
    include_str!("prelude/memory.h"),
    include_str!("prelude/math.h"),
    include_str!("simt/prelude.h"),
    include_str!("cuda/prelude.h"),
    include_str!("opencl/prelude.h"),
    include_str!("host/prelude.h"),
];

/// The files, by their position in the list above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum File {
    Scalar,
    Vector,
    Memory,
    Math,
    Simt,
    Cuda,
    OpenCl,
    Host,
}

#[derive(Clone, Debug, Default)]
pub struct Prelude {
    qualifiers: &'static str,
    includes: BTreeSet<&'static str>,
    names: BTreeSet<String>,
    types: Vec<String>,
    functions: Vec<String>,
}

impl Prelude {
    pub fn new(qualifiers: &'static str) -> Prelude {
        Prelude {
            qualifiers,
            ..Prelude::default()
        }
    }

    pub fn include(&mut self, header: &'static str) {
        self.includes.insert(header);
    }

    /// Has it been added? If not, the caller adds what it needs and then itself.
    pub fn has(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    pub fn add_type(&mut self, name: &str, text: impl FnOnce() -> String) {
        if self.names.insert(name.to_string()) {
            self.types.push(text());
        }
    }

    /// Does a section use a letter?
    pub fn says(file: File, section: &str, letter: char) -> bool {
        find_section(FILES[file as usize], section).contains(&format!("${letter}"))
    }

    /// Adds a section under a name, once. Everything it calls has to be added before.
    pub fn add(&mut self, name: &str, file: File, section: &str, letters: &[(char, &str)]) {
        let text = || {
            let template = find_section(FILES[file as usize], section);
            expand(template, self.qualifiers, letters)
        };
        if self.names.contains(name) {
            debug_assert!(
                self.functions.contains(&text()),
                "two functions of the prelude are called {name}"
            );
            return;
        }
        self.functions.push(text());
        self.names.insert(name.to_string());
    }

    /// The top of a source file.
    pub fn finish(&self) -> String {
        let mut text = String::new();
        for header in &self.includes {
            let line = format!("#include <{header}>\n");
            text.push_str(&match *header {
                // The header takes long to compile, and everything used from it is under the same
                // condition.
                "immintrin.h" => format!("#ifdef __AVX__\n{line}#endif\n"),
                _ => line,
            });
        }
        if !text.is_empty() && !self.types.is_empty() {
            text.push('\n');
        }
        text.push_str(&self.helpers());
        text
    }

    /// The same text without the headers.
    pub fn helpers(&self) -> String {
        let mut text = String::new();
        for line in &self.types {
            text.push_str(line);
            text.push('\n');
        }
        for function in &self.functions {
            text.push('\n');
            text.push_str(function.trim_end());
            text.push('\n');
        }
        text
    }
}

fn find_section(file: &'static str, section: &str) -> &'static str {
    let heading = format!("#: {section}\n");
    // A name can be the suffix of another one, such as `min` of `lane_min`; headings begin a line.
    let start = file
        .match_indices(&heading)
        .find(|(at, _)| *at == 0 || file.as_bytes()[at - 1] == b'\n')
        .map(|(at, _)| at + heading.len());
    let Some(start) = start else {
        unreachable!("no section `{section}` in the prelude")
    };
    let rest = &file[start..];
    &rest[..rest.find("\n#: ").map_or(rest.len(), |end| end + 1)]
}

fn expand(template: &str, qualifiers: &str, letters: &[(char, &str)]) -> String {
    let mut text = String::with_capacity(template.len());
    let mut chars = template.chars();
    while let Some(c) = chars.next() {
        if c != '$' {
            text.push(c);
            continue;
        }
        match chars.next() {
            Some('Q') => text.push_str(qualifiers),
            Some(letter) => match letters.iter().find(|(l, _)| *l == letter) {
                Some((_, by)) => text.push_str(by),
                None => unreachable!("`${letter}` has no value in the prelude"),
            },
            None => unreachable!("the prelude ends in `$`"),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::legal;

    #[test]
    fn helpers_appear_once_and_filled_in() {
        let mut prelude = Prelude::new("static");
        for _ in 0..2 {
            prelude.add(
                "min_i32",
                File::Scalar,
                "min",
                &[('T', "int32_t"), ('N', "i32")],
            );
        }
        prelude.include("stdint.h");
        assert_eq!(
            prelude.finish(),
            "#include <stdint.h>\n\nstatic int32_t min_i32(int32_t a, int32_t b)\n{\n    return a < b ? a : b;\n}\n"
        );
        assert!(prelude.has("min_i32"));
    }

    #[test]
    fn headings_are_unique() {
        for file in FILES {
            let mut seen = BTreeSet::new();
            for line in file.lines().filter(|l| l.starts_with("#: ")) {
                assert!(seen.insert(line), "{line}");
            }
        }
    }

    /// No variable of a program hides a helper.
    #[test]
    fn names_of_helpers_are_reserved() {
        let letters = [("$V", "f32x16"), ("$N", "f32"), ("$F", "i8"), ("$L", "16")];
        let mut n_fixed = 0;
        for line in FILES.iter().flat_map(|file| file.lines()) {
            let line = line.strip_prefix("template <typename T> ").unwrap_or(line);
            if !line.starts_with("$Q ") && !line.starts_with("static ") {
                continue;
            }
            let declared = line.split_once(")) ").map_or(line, |(_, rest)| rest);
            let before = declared.split('(').next().unwrap_or_default();
            let name = before.rsplit([' ', '*']).next().unwrap_or_default();
            n_fixed += usize::from(!name.contains('$'));
            let name = letters
                .iter()
                .fold(name.to_string(), |name, (letter, what)| {
                    name.replace(letter, what)
                });
            assert_ne!(legal(&name), name, "{line}");
        }
        assert!(n_fixed >= 25, "{n_fixed}");
    }
}
