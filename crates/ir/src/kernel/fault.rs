//! Run-time faults: how an equation can fail at a point, and how that is reported.
//!
//! A kernel continues after a fault. The first one is recorded in a small buffer of i32 that the
//! host reads after all launches. Element 0 is the number of the site, counted from 1, or 0 if
//! there was no fault; each coordinate of the point follows in two elements, the lower half first.

use crate::codes::{Code, run};
use crate::diag::Diagnostic;
use crate::kernel::{BufferKind, Program};
use crate::scalar::BinOp;
use crate::span::Span;

/// A place in an equation where a value may be missing.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultSite {
    pub kind: FaultKind,
    /// The variable, or `the output z`.
    pub owner: String,
    /// The iterators of the point that is recorded.
    pub iterators: Vec<String>,
    pub span: Span,
}

/// Why there is no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// By `/` or `%` on integers.
    DivisionByZero(BinOp),
    /// `pow` on integers.
    NegativeExponent,
    /// A computed index is outside the axes of this input.
    OutOfRange { input: String },
}

impl BufferKind {
    /// The sites of a buffer that records faults.
    pub fn fault_sites(&self) -> Option<&[FaultSite]> {
        match self {
            BufferKind::Faults { sites } => Some(sites),
            BufferKind::Input { .. }
            | BufferKind::Output { .. }
            | BufferKind::Temporary
            | BufferKind::Flags => None,
        }
    }
}

impl FaultKind {
    pub fn code(&self) -> &'static Code {
        match self {
            FaultKind::DivisionByZero(_) => &run::DIVISION_BY_ZERO,
            FaultKind::NegativeExponent => &run::NEGATIVE_EXPONENT,
            FaultKind::OutOfRange { .. } => &run::INPUT_OUT_OF_RANGE,
        }
    }
}

impl std::fmt::Display for FaultKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FaultKind::DivisionByZero(op) => {
                write!(f, "integer division by zero in `{}`", op.name())
            }
            FaultKind::NegativeExponent => f.write_str("an integer is raised to a negative power"),
            FaultKind::OutOfRange { input } => {
                write!(f, "`{input}` is read outside its axes")
            }
        }
    }
}

/// A fault that happened.
#[derive(Clone, Debug, PartialEq)]
pub struct RaisedFault {
    pub system: String,
    pub site: FaultSite,
    pub point: Vec<i64>,
    /// The sizes of the run, by name.
    pub sizes: Vec<(String, i128)>,
}

impl RaisedFault {
    /// The fault that a buffer of faults holds after a run, if there was one.
    pub fn read(program: &Program, recorded: &[i32], sizes: &[i128]) -> Option<RaisedFault> {
        let (number, halves) = recorded.split_first()?;
        let site = usize::try_from(*number).ok()?.checked_sub(1)?;
        let coordinates = halves
            .chunks_exact(2)
            .map(|half| (i64::from(half[1]) << 32) | i64::from(half[0].cast_unsigned()));
        RaisedFault::at(program, site, coordinates.collect(), sizes)
    }

    /// The fault of a site of a program. Only as many coordinates are used as the site has
    /// iterators.
    pub fn at(
        program: &Program,
        site: usize,
        mut point: Vec<i64>,
        sizes: &[i128],
    ) -> Option<RaisedFault> {
        let sites = program.buffers.iter().find_map(|b| b.kind.fault_sites())?;
        let site = sites.get(site)?.clone();
        point.truncate(site.iterators.len());
        let names = program.params.iter().map(|p| p.name.clone());
        Some(RaisedFault {
            system: program.name.clone(),
            site,
            point,
            sizes: names.zip(sizes.iter().copied()).collect(),
        })
    }

    pub fn diagnostic(&self) -> Diagnostic {
        let FaultSite {
            kind, owner, span, ..
        } = &self.site;
        let place = self.place();
        let diagnostic = Diagnostic::new(kind.code(), *span, kind.to_string())
            .here(format!("in {owner} at {place}"))
            .note(format!("it happens {}", self.circumstances()));
        match kind {
            FaultKind::OutOfRange { input } => diagnostic.help(format!(
                "guard the read, or give `{input}` a value outside its axes with `else`"
            )),
            FaultKind::DivisionByZero(_) | FaultKind::NegativeExponent => diagnostic,
        }
    }

    /// `(i = 3, j = 0)`.
    fn place(&self) -> String {
        let coordinates = self.site.iterators.iter().zip(&self.point);
        let list: Vec<String> = coordinates.map(|(i, x)| format!("{i} = {x}")).collect();
        format!("({})", list.join(", "))
    }

    /// ``in `Z` of `divide` at (i = 3), with N = 10``.
    fn circumstances(&self) -> String {
        let sizes = self.sizes.iter().map(|(name, x)| format!("{name} = {x}"));
        let sizes: Vec<String> = sizes.collect();
        let sizes = match sizes.is_empty() {
            true => String::new(),
            false => format!(", with {}", sizes.join(", ")),
        };
        let (owner, system, place) = (&self.site.owner, &self.system, self.place());
        format!("in {owner} of `{system}` at {place}{sizes}")
    }
}

impl std::fmt::Display for RaisedFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, {}", self.site.kind, self.circumstances())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::Form;
    use crate::kernel::{Buffer, Size};
    use crate::scalar::Scalar;
    use crate::system::Axis;

    /// A program that records faults of one site with two iterators.
    fn program() -> Program {
        let site = FaultSite {
            kind: FaultKind::DivisionByZero(BinOp::Rem),
            owner: "`Z`".into(),
            iterators: vec!["i".into(), "j".into()],
            span: Span::NONE,
        };
        let axis = Axis {
            lo: Form::zero(),
            hi: Form::from(5),
        };
        Program {
            name: "divide".into(),
            params: vec![Size {
                name: "N".into(),
                fixed: None,
            }],
            context: vec![],
            buffers: vec![Buffer {
                name: "faults".into(),
                ty: Scalar::I32,
                kind: BufferKind::Faults { sites: vec![site] },
                axes: vec![axis],
            }],
            kernels: vec![],
            host_vars: vec![],
            body: vec![],
        }
    }

    #[test]
    fn a_recorded_fault_is_read_and_reported() {
        let program = program();
        assert_eq!(program.verify(), Vec::<String>::new());
        assert_eq!(RaisedFault::read(&program, &[0; 5], &[9]), None);
        assert_eq!(RaisedFault::read(&program, &[2, 0, 0, 0, 0], &[9]), None);
        let point: [i64; 2] = [-3, (5 << 32) + 0x8000_0001];
        let halves = point.iter().flat_map(|x| [*x as i32, (*x >> 32) as i32]);
        let recorded: Vec<i32> = std::iter::once(1).chain(halves).collect();
        let raised = RaisedFault::read(&program, &recorded, &[9]).expect("a fault");
        assert_eq!(raised.point, point);
        let said = raised.to_string();
        let place = format!(
            "in `Z` of `divide` at (i = -3, j = {}), with N = 9",
            point[1]
        );
        assert_eq!(said, format!("integer division by zero in `%`, {place}"));
        assert_eq!(raised.diagnostic().code.id, "E0613");
    }

    #[test]
    fn a_buffer_of_faults_has_room_and_is_the_only_one() {
        let wrong = |change: &dyn Fn(&mut Program), text: &str| {
            let mut program = program();
            change(&mut program);
            let found = program.verify();
            assert!(found.iter().any(|s| s.contains(text)), "{found:?}");
        };
        wrong(&|p| p.buffers[0].axes[0].hi = Form::from(4), "no room");
        wrong(&|p| p.buffers[0].ty = Scalar::I64, "not i32");
        let twice = |p: &mut Program| {
            let mut second = p.buffers[0].clone();
            second.name = "more".into();
            p.buffers.push(second);
        };
        wrong(&twice, "two buffers hold faults");
    }
}
