//! Where in the text a place is: in which item, at the beginning of a statement or within one.
//!
//! Completion happens in texts that are not whole, so this looks at words and brackets only.

/// A kind of item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    System,
    Stencil,
    Conv,
    Program,
    Mapping,
}

/// What stands before a place.
#[derive(Clone, Debug, PartialEq)]
pub enum Context<'t> {
    Comment,
    /// Between items; the words of the one that begins here.
    File(Vec<&'t str>),
    /// At the beginning of a statement.
    Statement(Item),
    /// Within a statement, with the words and signs before it.
    Within(Item, Vec<&'t str>),
}

/// The context of a byte; the word that it is in, or behind, does not count.
pub fn context(text: &str, offset: usize) -> Context<'_> {
    let start = word_start(text, offset);
    let Some(tokens) = tokens(&text[..start]) else {
        return Context::Comment;
    };
    let mut item = None;
    let mut depth = 0usize;
    let mut statement: Vec<&str> = Vec::new();
    for token in tokens {
        match token {
            "{" => {
                if depth == 0 {
                    item = statement.first().and_then(|word| item_of(word));
                }
                depth += 1;
                statement.clear();
            }
            "}" => {
                depth = depth.saturating_sub(1);
                statement.clear();
            }
            // A `let` is a part of its statement.
            ";" if !in_let(&statement) => statement.clear(),
            _ => {
                // An item that was not closed ends where the next begins.
                let begins = statement.is_empty() || depth == 0;
                if begins && matches!(token, "system" | "mapping" | "program") {
                    depth = 0;
                    item = None;
                    statement.clear();
                }
                statement.push(token);
            }
        }
    }
    match item {
        Some(item) if depth > 0 && statement.is_empty() => Context::Statement(item),
        Some(item) if depth > 0 => Context::Within(item, statement),
        _ => Context::File(statement),
    }
}

/// The word that a place is in, or just behind.
pub fn word_at(text: &str, offset: usize) -> &str {
    let start = word_start(text, offset);
    let rest = &text[start..];
    let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
    &rest[..end]
}

fn word_start(text: &str, offset: usize) -> usize {
    let before = &text[..offset];
    before.trim_end_matches(is_word).len()
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '\''
}

fn item_of(word: &str) -> Option<Item> {
    match word {
        "system" => Some(Item::System),
        "stencil" => Some(Item::Stencil),
        "conv" => Some(Item::Conv),
        "program" => Some(Item::Program),
        "mapping" => Some(Item::Mapping),
        _ => None,
    }
}

/// Does the last `let` of a statement still have no `;`?
fn in_let(statement: &[&str]) -> bool {
    let count = |token: &str| statement.iter().filter(|t| **t == token).count();
    count("let") > count(";")
}

/// Words, and every other character alone; none where the text ends within a comment.
fn tokens(text: &str) -> Option<Vec<&str>> {
    let mut tokens = Vec::new();
    let last = text.matches('\n').count();
    for (n, line) in text.split('\n').enumerate() {
        let (code, comment) = match line.split_once("//") {
            Some((code, _)) => (code, true),
            None => (line, false),
        };
        if comment && n == last {
            return None;
        }
        let mut rest = code;
        while let Some(first) = rest.chars().next() {
            let length = match is_word(first) {
                true => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
                false => first.len_utf8(),
            };
            let (token, behind) = rest.split_at(length);
            if !first.is_whitespace() {
                tokens.push(token);
            }
            rest = behind;
        }
    }
    Some(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The context of the `|` in a text.
    fn check(text: &str, expect: &Context<'_>) {
        let offset = text.find('|').unwrap();
        let text = text.replacen('|', "", 1);
        assert_eq!(&context(&text, offset), expect, "{text}");
    }

    #[test]
    fn places_are_told_apart() {
        check("|", &Context::File(vec![]));
        check(
            "mapping m of co|",
            &Context::File(vec!["mapping", "m", "of"]),
        );
        check("system s(N) { inp| }", &Context::Statement(Item::System));
        check(
            "system s(N) { input x[N]: f|32; }",
            &Context::Within(Item::System, vec!["input", "x", "[", "N", "]", ":"]),
        );
        check(
            "system s(N) { } stencil t(N) { |",
            &Context::Statement(Item::Stencil),
        );
        check(
            "mapping m of s { when i > 0 { la| } }",
            &Context::Statement(Item::Mapping),
        );
        check(
            "mapping m of s { when i > 0 { } time = |",
            &Context::Within(Item::Mapping, vec!["time", "="]),
        );
        check("system s(N) { // in| ", &Context::Comment);
        check("system s(N) { // x;\n|", &Context::Statement(Item::System));
    }

    #[test]
    fn a_let_is_within_its_statement() {
        let text = "system s(N) { var A: f32 = let a = 1; let b = a; |";
        let offset = text.find('|').unwrap();
        assert!(matches!(
            context(text, offset),
            Context::Within(Item::System, _)
        ));
        check(
            "system s(N) { var A: f32 = let a = 1; a; |",
            &Context::Statement(Item::System),
        );
    }

    #[test]
    fn an_unclosed_item_ends_where_the_next_begins() {
        check(
            "system s(N) { index i in 0..N;\nmapping m of s { |",
            &Context::Statement(Item::Mapping),
        );
    }

    #[test]
    fn words_are_found_from_both_ends() {
        assert_eq!(word_at("lane = c;", 0), "lane");
        assert_eq!(word_at("lane = c;", 4), "lane");
        assert_eq!(word_at("lane = c;", 5), "");
        assert_eq!(word_at("u' + 1", 2), "u'");
    }
}
