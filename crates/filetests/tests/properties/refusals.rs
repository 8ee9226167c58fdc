//! Refusals and undecided cases of the checker, confirmed by trying points.

use std::collections::BTreeMap;

use systola_driver::check_mapping;
use systola_filetests::brute::{Brute, Fault};
use systola_ir::Diagnostic;
use systola_ir::diag::Kind;
use systola_lower::localise::localise;
use systola_lower::names::LANES;
use systola_lower::report::Scope;

use crate::case::Case;
use crate::tally::Tally;

impl Case<'_> {
    /// Every error that claims a fault must show it.
    pub fn refused(
        &self,
        errors: &[Diagnostic],
        sizes: &[BTreeMap<String, i128>],
        tally: &mut Tally,
    ) -> Result<(), String> {
        let localised = localise(self.system, Some(self.mapping), LANES)
            .map_err(|errors| format!("not localised: {}", errors[0]))?;
        for error in errors {
            let Some(fault) = Fault::of_code(error.code.id) else {
                return Err(format!("refused for no reason of legality: {error}"));
            };
            tally.count(format!("refused: {}", error.code.id));
            if let Some(example) = &error.counterexample {
                let params: Vec<i128> = example.params.iter().map(|p| p.1).collect();
                Brute::new(&localised.system, &localised.sums, self.mapping, &params)?
                    .confirm(fault, example)
                    .map_err(|why| format!("{error}\n{example:?} does not show it: {why}"))?;
                tally.count("refused by a counterexample");
                continue;
            }
            let mut found = false;
            let larger = self.larger();
            for size in sizes.iter().chain(&larger) {
                let verdict = self.tried(&self.params(size))?;
                found |= verdict.faults.contains_key(&fault);
                if found {
                    break;
                }
            }
            if !found {
                return Err(format!("{error}\nnot seen at {sizes:?} nor {larger:?}"));
            }
        }
        Ok(())
    }

    /// A mapping refused for all sizes may be legal at the smallest one.
    pub fn refused_at(&self, tally: &mut Tally) -> Result<(), String> {
        let Some(size) = self.sizes.first().filter(|s| !s.is_empty()) else {
            return Ok(());
        };
        match check_mapping(self.module, self.mapping, size) {
            Ok(checked) => {
                if !matches!(checked.report.scope, Scope::GivenSizes(_)) {
                    return Err(format!(
                        "refused, but legal for all sizes when asked for {size:?}"
                    ));
                }
                tally.count("refused, but legal at given sizes");
                self.legal_at(size, None, tally)
            }
            Err(errors) if errors.iter().any(|e| e.kind() == Kind::Mistake) => {
                self.wrong_at(&errors, size, tally)
            }
            Err(errors) => {
                tally.count(format!("limited at given sizes: {}", errors[0].code.id));
                Ok(())
            }
        }
    }

    /// Refused at given sizes: it must be illegal at these.
    fn wrong_at(
        &self,
        errors: &[Diagnostic],
        size: &BTreeMap<String, i128>,
        tally: &mut Tally,
    ) -> Result<(), String> {
        self.refused(errors, std::slice::from_ref(size), tally)?;
        let verdict = self.tried(&self.params(size))?;
        if verdict.is_legal() {
            return Err(format!("legal at {size:?}, but refused: {}", errors[0]));
        }
        Ok(())
    }

    fn larger(&self) -> Vec<BTreeMap<String, i128>> {
        let first = &self.sizes[0];
        [5, 7]
            .iter()
            .filter(|_| !first.is_empty())
            .map(|more| first.iter().map(|(n, v)| (n.clone(), v + more)).collect())
            .collect()
    }

    /// A limitation for all sizes: at given ones there is a verdict, and it is the right one.
    pub fn limited(&self, errors: &[Diagnostic], tally: &mut Tally) -> Result<(), String> {
        tally.count(format!("limited: {}", errors[0].code.id));
        let mut decided = None;
        for size in self.sizes {
            match check_mapping(self.module, self.mapping, size) {
                Ok(_) => {
                    decided = decided.or(Some("verdict: legal at given sizes"));
                    self.legal_at(size, None, tally)?;
                }
                Err(errors) if errors.iter().any(|e| e.kind() == Kind::Mistake) => {
                    decided = Some("verdict: refused");
                    self.wrong_at(&errors, size, tally)?;
                }
                Err(errors) => {
                    tally.count(format!("limited at given sizes: {}", errors[0].code.id));
                }
            }
        }
        tally.count(decided.unwrap_or("verdict: none"));
        Ok(())
    }
}
