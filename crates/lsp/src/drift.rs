//! Places of a text after an edit.

use systola_ir::Span;

/// Two versions of a text that are equal at their beginning and at their end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drift {
    /// Bytes that are equal at the beginning.
    pub prefix: usize,
    /// Where the equal end begins in the old text, and in the new one.
    pub old_end: usize,
    pub new_end: usize,
}

impl Drift {
    pub fn between(old: &str, new: &str) -> Drift {
        let most = old.len().min(new.len());
        let same = |(a, b): &(u8, u8)| a == b;
        let mut prefix = old.bytes().zip(new.bytes()).take_while(same).count();
        while !(old.is_char_boundary(prefix) && new.is_char_boundary(prefix)) {
            prefix -= 1;
        }
        let backwards = old.bytes().rev().zip(new.bytes().rev());
        let mut suffix = backwards.take(most - prefix).take_while(same).count();
        let boundary = |text: &str, suffix: usize| text.is_char_boundary(text.len() - suffix);
        while !(boundary(old, suffix) && boundary(new, suffix)) {
            suffix -= 1;
        }
        Drift {
            prefix,
            old_end: old.len() - suffix,
            new_end: new.len() - suffix,
        }
    }

    /// Where a place of the new text was, unless it is inside of what changed.
    pub fn to_old(self, offset: usize) -> Option<usize> {
        if offset <= self.prefix {
            Some(offset)
        } else if offset >= self.new_end {
            Some(offset - self.new_end + self.old_end)
        } else {
            None
        }
    }

    /// Where a range of the old text is, unless something in it changed.
    pub fn to_new(self, span: Span) -> Option<Span> {
        let (start, end) = (span.start as usize, span.end as usize);
        if end <= self.prefix {
            Some(span)
        } else if start >= self.old_end {
            let moved = |at: usize| at - self.old_end + self.new_end;
            Some(Span::new(moved(start), moved(end)))
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(old: &str, new: &str, prefix: usize, old_end: usize, new_end: usize) {
        let expect = Drift {
            prefix,
            old_end,
            new_end,
        };
        assert_eq!(Drift::between(old, new), expect, "{old} {new}");
    }

    #[test]
    fn the_least_part_that_changed_is_found() {
        check("abc", "abc", 3, 3, 3);
        check("abc", "axc", 1, 2, 2);
        check("abc", "abbc", 2, 2, 3);
        check("aaa", "aa", 2, 3, 2);
        check("", "x", 0, 0, 1);
        // é and è share their first byte.
        check("aéb", "aèb", 1, 3, 3);
    }

    #[test]
    fn places_move_with_the_text_around_them() {
        let drift = Drift::between("let a = 1; b", "let abc = 1; b");
        assert_eq!(drift.to_old(4), Some(4));
        assert_eq!(drift.to_old(6), None);
        assert_eq!(drift.to_old(13), Some(11));
        let span = drift.to_new(Span::new(11, 12)).unwrap();
        assert_eq!(span.range(), 13..14);
        assert!(drift.to_new(Span::new(4, 8)).is_none());
    }
}
