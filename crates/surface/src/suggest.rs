//! "Did you mean …?"

/// The candidate closest to a mistyped word, if one is close.
pub fn suggest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // Longer names are not typed by hand, and the cost grows with the product of the lengths.
    const LONGEST: usize = 40;
    if word.len() > LONGEST {
        return None;
    }
    let allowed = match word.len() {
        0..=2 => 1,
        3..=5 => 2,
        _ => 3,
    };
    candidates
        .filter(|c| c.len().abs_diff(word.len()) <= allowed && *c != word)
        .map(|c| (distance(word, c), c))
        .filter(|(d, c)| *d <= allowed && *d < word.len().max(c.len()))
        .min_by_key(|(d, _)| *d)
        .map(|(_, c)| c)
}

/// The edit distance with insertions, deletions, replacements and swaps of adjacent characters,
/// ignoring case.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (
        a.chars().map(|c| c.to_ascii_lowercase()).collect(),
        b.chars().map(|c| c.to_ascii_lowercase()).collect(),
    );
    let mut rows: [Vec<usize>; 3] = [vec![0; b.len() + 1], (0..=b.len()).collect(), Vec::new()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let same = usize::from(a[i - 1] != b[j - 1]);
            let mut best = (rows[1][j - 1] + same)
                .min(rows[1][j] + 1)
                .min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[0][j - 2] + 1);
            }
            row.push(best);
        }
        rows[2] = row;
        rows.rotate_left(1);
    }
    rows[1][b.len()]
}

#[cfg(test)]
mod tests {
    use super::suggest;

    #[test]
    fn close_names_are_found() {
        let names = ["weights", "x", "rows", "cols"];
        let check = |word: &str, expect: Option<&str>| {
            assert_eq!(suggest(word, names.into_iter()), expect, "{word}");
        };
        check("wieghts", Some("weights"));
        check("Weight", Some("weights"));
        check("row", Some("rows"));
        check("X", Some("x"));
        check("total", None);
        check("q", None);
    }
}
