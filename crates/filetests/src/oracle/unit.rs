//! Many C texts as one, so that the compiler reads its headers once.
//!
//! Every text is a list of items: directives, types, functions. Common items are kept once; where
//! texts use one name for different things, the later one is renamed.

use std::collections::{BTreeMap, BTreeSet};

/// The joined text, and the new names of each text.
pub(super) struct Joined {
    pub(super) code: String,
    pub(super) renamed: Vec<BTreeMap<String, String>>,
}

struct Item {
    /// None: a directive without a name, kept where it stands.
    name: Option<String>,
    text: String,
}

pub(super) fn join(texts: &[&str]) -> Joined {
    let mut seen: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut nameless: BTreeSet<String> = BTreeSet::new();
    let mut code = String::new();
    let mut all_renamed = Vec::new();
    for (n, text) in texts.iter().enumerate() {
        let items = items(text);
        let renamed = conflicts(&items, &seen, n);
        for item in &items {
            let text = rename(&item.text, &renamed);
            let is_new = match &item.name {
                None => nameless.insert(text.clone()),
                Some(name) => {
                    let name = renamed.get(name).unwrap_or(name);
                    seen.entry(name.clone()).or_default().insert(text.clone())
                }
            };
            if is_new {
                code.push_str(&text);
                code.push('\n');
            }
        }
        all_renamed.push(renamed);
    }
    Joined {
        code,
        renamed: all_renamed,
    }
}

/// Names with another meaning in an earlier text, and their new names in text `n`. A function that
/// calls a renamed one differs from its namesake too.
fn conflicts(
    items: &[Item],
    seen: &BTreeMap<String, BTreeSet<String>>,
    n: usize,
) -> BTreeMap<String, String> {
    let mut renamed = BTreeMap::new();
    loop {
        let before = renamed.len();
        for item in items {
            let Some(name) = &item.name else { continue };
            let Some(texts) = seen.get(name) else {
                continue;
            };
            if !renamed.contains_key(name) && !texts.contains(&rename(&item.text, &renamed)) {
                renamed.insert(name.clone(), format!("{name}_{n}"));
            }
        }
        if renamed.len() == before {
            return renamed;
        }
    }
}

fn items(text: &str) -> Vec<Item> {
    let mut list = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(first) = lines.next() {
        if first.trim().is_empty() || first.starts_with("//") {
            continue;
        }
        let mut item = first.to_string();
        let mut name = None;
        if first.starts_with("#if") {
            let mut depth = 1;
            while depth > 0
                && let Some(line) = lines.next()
            {
                item.push('\n');
                item.push_str(line);
                if line.starts_with("#if") {
                    depth += 1;
                } else if line.starts_with("#endif") {
                    depth -= 1;
                }
            }
        } else if first.starts_with('#') {
            while item.ends_with('\\')
                && let Some(line) = lines.next()
            {
                item.push('\n');
                item.push_str(line);
            }
            name = first
                .strip_prefix("#define ")
                .and_then(|rest| identifiers(rest).next().map(str::to_string));
        } else {
            let depth =
                |text: &str| text.matches('{').count() as i64 - text.matches('}').count() as i64;
            let mut open = depth(first);
            let ended = |line: &str| line.ends_with(';') || line.ends_with('}');
            let mut last = first;
            while (open > 0 || !ended(last.trim_end()))
                && let Some(line) = lines.next()
            {
                item.push('\n');
                item.push_str(line);
                open += depth(line);
                last = line;
            }
            name = declared(&item);
        }
        list.push(Item { name, text: item });
    }
    list
}

/// The name that an item at file scope declares.
fn declared(item: &str) -> Option<String> {
    let mut text = item.to_string();
    while let Some(at) = text.find("__attribute__((") {
        let end = text[at..].find("))").map_or(text.len(), |e| at + e + 2);
        // An attribute may hold parentheses of its own, as in `vector_size(64)`.
        let end = if text[end..].starts_with(')') {
            end + 1
        } else {
            end
        };
        text.replace_range(at..end, "");
    }
    if text.starts_with("typedef") && text.contains('{') {
        let behind = text.rsplit('}').next()?;
        return identifiers(behind).next().map(str::to_string);
    }
    let head = text.split(['(', '[', '=', ';', '{']).next()?;
    identifiers(head).last().map(str::to_string)
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c| !is_word(c))
        .filter(|word| word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'))
}

fn rename(text: &str, renamed: &BTreeMap<String, String>) -> String {
    if renamed.is_empty() {
        return text.to_string();
    }
    let mut result = String::with_capacity(text.len() + 64);
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let (word, more) = rest.split_at(end);
        result.push_str(renamed.get(word).map_or(word, String::as_str));
        let gap = more.find(is_word).unwrap_or(more.len());
        result.push_str(&more[..gap]);
        rest = &more[gap..];
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "\
#include <stdint.h>
typedef int32_t i32x4 __attribute__((vector_size(16)));
static inline int32_t twice(int32_t a)
{
    return 2 * a;
}

static inline int32_t more(int32_t a)
{
    return twice(a) + 1;
}

void s_m_kernel(int64_t first,
                int64_t last)
{
    more(first);
}
";

    #[test]
    fn what_is_the_same_is_kept_once() {
        let joined = join(&[ONE, ONE]);
        assert_eq!(joined.code.matches("return 2 * a").count(), 1);
        assert_eq!(joined.code.matches("typedef").count(), 1);
        assert!(joined.renamed[1].is_empty());
    }

    #[test]
    fn another_meaning_gets_another_name_and_so_do_its_callers() {
        let other = ONE.replace("2 * a", "a << 1");
        let joined = join(&[ONE, &other]);
        let names: Vec<&str> = joined.renamed[1].keys().map(String::as_str).collect();
        assert_eq!(names, ["more", "s_m_kernel", "twice"]);
        assert!(joined.code.contains("return twice_1(a) + 1;"));
        assert_eq!(joined.code.matches("typedef").count(), 1);
    }
}
