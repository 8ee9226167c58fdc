//! One mapping: the checker's verdict, and whether its array computes what the system says.

use std::collections::{BTreeMap, BTreeSet};

use systola_driver::{Checked, check_mapping};
use systola_filetests::brute::{Brute, Verdict};
use systola_filetests::draw::Drawn;
use systola_interp::{expect_system, run_array};
use systola_ir::Diagnostic;
use systola_ir::codes::{Code, mapping as codes};
use systola_ir::diag::Kind;
use systola_ir::mapping::Mapping;
use systola_ir::system::{Module, System};
use systola_lower::localise::localise;
use systola_lower::names::LANES;
use systola_lower::report::Scope;

use crate::tally::Tally;
use crate::values::{compare, inputs};

pub struct Case<'a> {
    pub seed: u64,
    pub module: &'a Module,
    pub system: &'a System,
    pub mapping: &'a Mapping,
    pub sizes: &'a [BTreeMap<String, i128>],
    pub traits: &'a BTreeSet<&'a str>,
    /// Sums of floats may be regrouped.
    pub regroups: bool,
}

impl Case<'_> {
    pub fn examine(&self, tally: &mut Tally) -> Result<(), String> {
        match check_mapping(self.module, self.mapping, &BTreeMap::new()) {
            Ok(checked) => {
                if checked.report.scope != Scope::AllSizes {
                    return Err("decided at sizes that were not given".into());
                }
                tally.count("verdict: legal for all sizes");
                for size in self.sizes {
                    self.legal_at(size, Some(&checked), tally)?;
                }
                self.kernels(tally)
            }
            // Drawn mappings may say something of inputs and sums that this system does not have.
            Err(errors) if errors.iter().any(|e| is_unfit(e.code)) => {
                tally.count("verdict: does not fit the system");
                Ok(())
            }
            Err(errors) if errors.iter().any(|e| e.kind() == Kind::Mistake) => {
                tally.count("verdict: refused");
                self.refused(&errors, self.sizes, tally)?;
                self.refused_at(tally)
            }
            Err(errors) => self.limited(&errors, tally),
        }
    }

    pub fn params(&self, size: &BTreeMap<String, i128>) -> Vec<i128> {
        let names = self.system.param_names();
        names.iter().map(|name| size[name]).collect()
    }

    pub fn tried(&self, params: &[i128]) -> Result<Verdict, String> {
        let localised = localise(self.system, Some(self.mapping), LANES)
            .map_err(|errors| format!("not localised: {}", errors[0]))?;
        let brute = Brute::new(&localised.system, &localised.sums, self.mapping, params)?;
        brute.verdict()
    }

    /// Checks a mapping that is legal according to the checker: is it legal, and does the array
    /// compute the same as the system?
    pub fn legal_at(
        &self,
        size: &BTreeMap<String, i128>,
        symbolic: Option<&Checked>,
        tally: &mut Tally,
    ) -> Result<(), String> {
        let params = self.params(size);
        let verdict = self.tried(&params)?;
        if let Some((fault, witness)) = verdict.faults.first_key_value() {
            return Err(format!(
                "called legal, but at {size:?} {fault:?}: {witness}"
            ));
        }
        let checked = check_mapping(self.module, self.mapping, size)
            .map_err(|e| format!("legal for all sizes, refused at {size:?}: {}", e[0]))?;
        self.counts(&checked, &verdict)?;
        self.run(&checked, &params, tally)
            .map_err(|e| format!("at {size:?}: {e}"))?;
        // An array derived for all sizes runs at each, where it states its registers.
        if let Some(symbolic) = symbolic {
            let stated = symbolic
                .array
                .cells
                .iter()
                .all(|c| c.registers.depth.is_some());
            if stated && !self.system.params.is_empty() {
                tally.count("array run: derived for all sizes");
                self.run(symbolic, &params, tally)
                    .map_err(|e| format!("derived for all sizes, at {size:?}: {e}"))?;
            }
        }
        Ok(())
    }

    fn counts(&self, checked: &Checked, verdict: &Verdict) -> Result<(), String> {
        let counts = checked.report.counts.as_ref().ok_or("no counts")?;
        let stated = (
            counts.points,
            counts.expanded,
            counts.pes,
            counts.steps,
            counts.outputs,
        );
        let tried = (
            verdict.points as i128,
            verdict.expanded as i128,
            verdict.pes as i128,
            verdict.steps,
            verdict.outputs as i128,
        );
        if stated != tried {
            return Err(format!(
                "(points, expanded, PEs, steps, outputs) are reported as {stated:?}, tried {tried:?}"
            ));
        }
        if let Some(period) = counts.period {
            for (place, times) in &verdict.busy {
                let times: Vec<i128> = times.iter().filter_map(|t| t.last().copied()).collect();
                let all = times.windows(2).all(|w| (w[1] - w[0]) % period == 0);
                if !all && checked.array.time.len() == 1 {
                    return Err(format!("period {period}, but {place:?} works at {times:?}"));
                }
            }
        }
        Ok(())
    }

    fn run(&self, checked: &Checked, params: &[i128], tally: &mut Tally) -> Result<(), String> {
        let inputs = inputs(self.system, params)?;
        let expected = match expect_system(self.system, params, &inputs) {
            Ok(expected) => expected,
            // The tests of faults look at those.
            Err(fault) if is_fault(fault.code) => {
                tally.count("array run: an equation without a value");
                return Ok(());
            }
            Err(error) => return Err(format!("the system: {error}")),
        };
        let outputs =
            run_array(&checked.array, params, &inputs).map_err(|e| format!("the array: {e}"))?;
        compare(&expected, &outputs, self.regroups)?;
        tally.count(if self.regroups {
            "array run: within the tolerance"
        } else {
            "array run: same bits"
        });
        for (one, label) in [
            ("overlap", "array run: overlapped"),
            ("pieces", "array run: pieces"),
            ("launch", "array run: launches"),
            ("V > 1", "array run: V > 1"),
        ] {
            if self.traits.contains(one) {
                tally.count(label);
            }
        }
        Ok(())
    }
}

/// A few small sizes, the least one among them.
pub fn sizes(drawn: &Drawn) -> Vec<BTreeMap<String, i128>> {
    let steps: &[[i64; 2]] = match drawn.params.len() {
        0 => &[[0, 0]],
        1 => &[[0, 0], [1, 0], [3, 0]],
        _ => &[[0, 0], [1, 3], [3, 1]],
    };
    let at = |step: &[i64; 2]| {
        let values = drawn.params.iter().zip(step);
        values
            .map(|((name, least), more)| (name.clone(), i128::from(least + more)))
            .collect()
    };
    steps.iter().map(at).collect()
}

pub fn located(text: &str) -> impl Fn(&Diagnostic) -> String + '_ {
    |error| {
        let line = text[..error.span().range().start].lines().count();
        format!("line {line}: {error}")
    }
}

/// A mapping that refers to names that the system lacks or uses differently.
fn is_unfit(code: &Code) -> bool {
    [codes::WRONG_DIRECTION.id, codes::AMBIGUOUS_NAME.id].contains(&code.id)
}

/// Division by zero, a negative exponent, a lookup out of range.
pub fn is_fault(code: &Code) -> bool {
    ["E0613", "E0614", "E0615"].contains(&code.id)
}
