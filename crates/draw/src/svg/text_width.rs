//! How wide a text may become. Nobody knows which sans-serif face a viewer has, so the widths are
//! those of DejaVu Sans, the widest of the common ones; Helvetica, Arial and Roboto are narrower.

/// The greatest width of a text whose letters have a size, in pixels.
pub fn text_width(text: &str, size: f64, bold: bool) -> f64 {
    let units: f64 = text.chars().map(advance).sum();
    let heavier = if bold { 1.2 } else { 1.0 };
    units * size * heavier
}

/// The width of a letter relative to its size.
fn advance(c: char) -> f64 {
    match c {
        'i' | 'j' | 'l' | '\'' => 0.29,
        ' ' | '.' | ',' | '·' => 0.32,
        '/' | ':' | ';' | '|' => 0.34,
        'f' | 't' | '-' | '(' | ')' | '[' | ']' | 'I' | 'J' | '!' => 0.4,
        'r' => 0.42,
        's' | 'z' | 'c' | '_' | '"' | '*' => 0.55,
        'm' | 'M' | 'W' | '%' | '…' | '@' => 1.0,
        'w' | '+' | '=' | '<' | '>' | '−' | '×' | '→' | '←' | '↑' | '↓' | 'Q' | 'O' | 'G' | 'D'
        | 'N' | 'H' | '#' | '~' | '^' | '&' => 0.84,
        'A'..='Z' => 0.74,
        c if c.is_ascii() => 0.64,
        // Letters with accents, Greek, and what else a name may have.
        c if (c as u32) < 0x1100 => 0.9,
        _ => 1.05,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_at_most_as_wide_as_estimated() {
        // Measured in DejaVu Sans at 12 pixels, the second in bold at 17.
        for (text, size, bold, measured) in [
            ("a band joins the points of one PE", 12.0, false, 197.4),
            ("matmul under hexagonal: FFM", 17.0, true, 293.3),
            ("x[c + q] = 0.25", 12.0, false, 92.8),
        ] {
            let width = text_width(text, size, bold);
            assert!(width >= measured, "{text}: {width} for {measured}");
            assert!(width < 1.3 * measured, "{text}: {width} for {measured}");
        }
        assert_eq!(text_width("", 12.0, false), 0.0);
    }
}
