//! The results of runs, as lines and as numbers.

/// The result of a mapping at some sizes.
pub enum RunResult {
    Verified(String),
    Failed(String),
    /// No kernel can be generated yet.
    Refused(String),
    Skipped(String),
}

impl RunResult {
    /// A line about `name`.
    pub fn line(&self, name: &str) -> String {
        let (word, what) = match self {
            RunResult::Verified(what) => ("ok     ", what),
            RunResult::Failed(what) => ("FAILED ", what),
            RunResult::Refused(what) => ("refused", what),
            RunResult::Skipped(what) => ("skipped", what),
        };
        format!("{word} {name}: {what}\n")
    }
}

/// Counts over all files; the words are in the last line of each process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub verified: usize,
    pub failed: usize,
    pub refused: usize,
}

impl Tally {
    pub fn count(&mut self, row: &RunResult) {
        match row {
            RunResult::Verified(_) => self.verified += 1,
            RunResult::Failed(_) => self.failed += 1,
            RunResult::Refused(_) => self.refused += 1,
            RunResult::Skipped(_) => {}
        }
    }

    pub fn line(self) -> String {
        let Tally {
            verified,
            failed,
            refused,
        } = self;
        format!("{verified} runs verified, {failed} failed, {refused} mappings without a kernel")
    }

    /// Reads what [`Tally::line`] writes.
    pub fn parse(line: &str) -> Option<Tally> {
        let number = |part: &str| part.split(' ').next()?.parse().ok();
        let mut parts = line.split(", ");
        let (verified, failed, refused) = (parts.next()?, parts.next()?, parts.next()?);
        verified.ends_with(" runs verified").then_some(())?;
        Some(Tally {
            verified: number(verified)?,
            failed: number(failed)?,
            refused: number(refused)?,
        })
    }

    pub fn add(&mut self, other: Tally) {
        self.verified += other.verified;
        self.failed += other.failed;
        self.refused += other.refused;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tallies_are_read_as_they_are_written() {
        let tally = Tally {
            verified: 12,
            failed: 1,
            refused: 3,
        };
        assert_eq!(Tally::parse(&tally.line()), Some(tally));
        assert_eq!(Tally::parse("kernel run in 3 ms"), None);
        assert_eq!(Tally::parse("a, b, c"), None);
    }
}
