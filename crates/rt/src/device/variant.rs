//! One text, compiled for what is known at the sizes of a run.
//!
//! The text of a kernel chooses by its sizes and its block: blocks at the edge take another path than those inside, rows whose length is no
//! multiple of 16 bytes are loaded element by element. Where such a condition holds for all blocks of a run, the other path is
//! dead text that costs registers and time to compile, so that the code for the run is made without it. A text has a macro for each
//! of these conditions, and one for the width of its indices.

use systola_ir::form::{Cond, Form, Rel};
use systola_ir::kernel::Program;

use super::source::DeviceKernel;
use super::width::{Ranges, Width, each_launch, needed};

/// What compiled code relies on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Variant {
    pub(crate) width: Width,
    /// Macros of conditions that hold.
    holds: Vec<String>,
}

impl Variant {
    /// For all sizes that have indices of 32 bits.
    pub fn narrow() -> Variant {
        Variant {
            width: Width::Narrow,
            holds: Vec::new(),
        }
    }

    /// For all sizes.
    pub fn wide() -> Variant {
        Variant {
            width: Width::Wide,
            holds: Vec::new(),
        }
    }

    /// For a run at these sizes.
    pub fn at(program: &Program, kernels: &[DeviceKernel], params: &[i128]) -> Variant {
        let choices = |n: usize| kernels.get(n).map_or(&[][..], |k| &k.choices);
        let mut broken: Vec<Vec<bool>> = (0..program.kernels.len())
            .map(|n| vec![false; choices(n).len()])
            .collect();
        let all_seen = each_launch(program, params, &mut |n, ranges| {
            for ((_, cond), broken) in choices(n).iter().zip(&mut broken[n]) {
                *broken |= truth(ranges, cond) != Some(true);
            }
            Some(())
        });
        let mut holds = Vec::new();
        if all_seen.is_some() {
            for (n, broken) in broken.iter().enumerate() {
                let held = choices(n)
                    .iter()
                    .zip(broken)
                    .filter(|(_, broken)| !**broken);
                holds.extend(held.map(|((name, _), _)| name.clone()));
            }
        }
        Variant {
            width: needed(program, params),
            holds,
        }
    }

    /// The macros, as options of a compiler.
    pub fn flags(&self) -> Vec<String> {
        let index = match self.width {
            Width::Narrow => Some("-DINDEX=int32_t".to_string()),
            Width::Wide => None,
        };
        let holds = self.holds.iter().map(|name| format!("-D{name}=1"));
        index.into_iter().chain(holds).collect()
    }
}

/// Does it hold for all values of the variables, or for none? `None`: neither is sure.
fn truth(ranges: &Ranges<'_>, cond: &Cond) -> Option<bool> {
    match cond {
        Cond::Const(b) => Some(*b),
        Cond::Cmp(rel, left, right) => compared(ranges, *rel, &left.sub(right)),
        Cond::And(parts) => joined(ranges, parts, true),
        Cond::Or(parts) => joined(ranges, parts, false),
        Cond::Not(inner) => truth(ranges, inner).map(|b| !b),
    }
}

/// `neutral`: what all parts must be for the whole to be it.
fn joined(ranges: &Ranges<'_>, parts: &[Cond], neutral: bool) -> Option<bool> {
    let parts: Vec<Option<bool>> = parts.iter().map(|part| truth(ranges, part)).collect();
    if parts.contains(&Some(!neutral)) {
        return Some(!neutral);
    }
    parts
        .iter()
        .all(|part| *part == Some(neutral))
        .then_some(neutral)
}

/// A form beside 0.
fn compared(ranges: &Ranges<'_>, rel: Rel, form: &Form) -> Option<bool> {
    let (least, greatest) = ranges.interval(form)?;
    let (always, never) = match rel {
        Rel::Eq => (least == 0 && greatest == 0, least > 0 || greatest < 0),
        Rel::Ne => (least > 0 || greatest < 0, least == 0 && greatest == 0),
        Rel::Lt => (greatest < 0, least >= 0),
        Rel::Le => (greatest <= 0, least > 0),
        Rel::Gt => (least > 0, greatest <= 0),
        Rel::Ge => (least >= 0, greatest < 0),
    };
    match (always, never) {
        (true, _) => Some(true),
        (false, true) => Some(false),
        (false, false) => None,
    }
}

#[cfg(test)]
mod tests {
    use systola_ir::{DimId, ParamId};

    use super::super::width::tests::square;
    use super::*;

    fn kernel(choices: Vec<(String, Cond)>) -> DeviceKernel {
        DeviceKernel {
            symbol: "square".to_string(),
            threads: 32,
            arguments: Vec::new(),
            dynamic_shared: Vec::new(),
            static_shared: 0,
            choices,
        }
    }

    #[test]
    fn what_holds_for_all_blocks_is_relied_on() {
        let program = square();
        let (n, b) = (Form::from(ParamId(0)), Form::from(DimId(0)));
        let even = Cond::Cmp(Rel::Eq, n.modulo(4), Form::zero());
        let inside = Cond::Cmp(Rel::Lt, b.clone(), n.clone());
        let first = Cond::Cmp(Rel::Eq, b.clone(), Form::zero());
        let both = Cond::And(vec![even.clone(), inside.clone()]);
        let either = Cond::Or(vec![even.clone(), first.clone()]);
        let not_first = Cond::Not(Box::new(first.clone()));
        let names = ["even", "inside", "first", "both", "either", "not_first"];
        let conds = [even, inside, first, both, either, not_first];
        let choices = names.map(str::to_string).into_iter().zip(conds).collect();
        let kernels = [kernel(choices)];
        let at = |n| Variant::at(&program, &kernels, &[n]).holds;
        assert_eq!(at(8), ["even", "inside", "both", "either"]);
        assert_eq!(at(7), ["inside"]);
        assert_eq!(at(1), ["inside", "first", "either"]);
    }

    #[test]
    fn macros_are_flags() {
        let variant = Variant {
            width: Width::Narrow,
            holds: vec!["HOLDS_k_1".to_string()],
        };
        assert_eq!(variant.flags(), ["-DINDEX=int32_t", "-DHOLDS_k_1=1"]);
        assert_eq!(Variant::wide().flags(), Vec::<String>::new());
    }
}
