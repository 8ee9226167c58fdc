//! Specialises one source for the sizes of a run.
//!
//! The source of a kernel branches on its sizes and its block: blocks at the edge take another path
//! than those inside, and rows whose length is not a multiple of 16 bytes are loaded element by
//! element. Where such a condition holds for all blocks of a run, or for none, the other path is
//! dead code that costs registers and compile time, so the code for the run is compiled without it.
//! A source has a macro for each of these conditions, and one for the width of its indices.

use systola_ir::form::{Cond, Form, Rel};
use systola_ir::kernel::Program;
use systola_ir::kernel::bounds::{Launch, WIDE, each_launch, largest};

use super::source::DeviceKernel;
use super::width::Width;
use crate::error::Error;

/// The assumptions of compiled code.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Variant {
    pub(crate) width: Width,
    /// Macros of conditions that hold for all blocks, or for none.
    known: Vec<(String, bool)>,
}

impl Variant {
    /// For all sizes whose indices fit into 32 bits.
    pub fn narrow() -> Variant {
        Variant {
            width: Width::Narrow,
            known: Vec::new(),
        }
    }

    /// For all sizes.
    pub fn wide() -> Variant {
        Variant {
            width: Width::Wide,
            known: Vec::new(),
        }
    }

    /// For a run at these sizes, whose index arithmetic must fit into 64 bits.
    pub fn at(
        program: &Program,
        kernels: &[DeviceKernel],
        params: &[i128],
    ) -> Result<Variant, Error> {
        let too_large = |excess| Error::index_too_large(program, params, excess);
        let mut most = largest(program, params, WIDE).map_err(too_large)?;
        let choices = |n: usize| kernels.get(n).map_or(&[][..], |k| &k.choices);
        let mut seen: Vec<Vec<Seen>> = (0..program.kernels.len())
            .map(|n| vec![Seen::default(); choices(n).len()])
            .collect();
        each_launch(program, params, WIDE, &mut |kernel, launch| {
            let n = kernel.index();
            for ((_, cond), seen) in choices(n).iter().zip(&mut seen[n]) {
                most = most.max(launch.cond(cond)?);
                let truth = truth(launch, cond);
                seen.all &= truth == Some(true);
                seen.none &= truth == Some(false);
            }
            Ok(())
        })
        .map_err(too_large)?;
        let mut known = Vec::new();
        for (n, seen) in seen.iter().enumerate() {
            for ((name, _), seen) in choices(n).iter().zip(seen) {
                if seen.all || seen.none {
                    known.push((name.clone(), seen.all));
                }
            }
        }
        Ok(Variant {
            width: Width::holding(most),
            known,
        })
    }

    /// The macros, as options of a compiler.
    pub fn flags(&self) -> Vec<String> {
        let index = match self.width {
            Width::Narrow => Some("-DINDEX=int32_t".to_string()),
            Width::Wide => None,
        };
        let known = self.known.iter();
        let known = known.map(|(name, holds)| format!("-D{name}={}", u8::from(*holds)));
        index.into_iter().chain(known).collect()
    }
}

/// For which of the examined launches a condition holds.
#[derive(Clone, Copy)]
struct Seen {
    all: bool,
    none: bool,
}

impl Default for Seen {
    fn default() -> Seen {
        Seen {
            all: true,
            none: true,
        }
    }
}

/// Does it hold for all values of the variables, or for none? `None`: undecided.
fn truth(launch: &Launch<'_>, cond: &Cond) -> Option<bool> {
    match cond {
        Cond::Const(b) => Some(*b),
        Cond::Cmp(rel, left, right) => compared(launch, *rel, &left.sub(right)),
        Cond::And(parts) => combined(launch, parts, true),
        Cond::Or(parts) => combined(launch, parts, false),
        Cond::Not(inner) => truth(launch, inner).map(|b| !b),
    }
}

/// `neutral`: the value that all parts must have for the whole to have it.
fn combined(launch: &Launch<'_>, parts: &[Cond], neutral: bool) -> Option<bool> {
    let parts: Vec<Option<bool>> = parts.iter().map(|part| truth(launch, part)).collect();
    if parts.contains(&Some(!neutral)) {
        return Some(!neutral);
    }
    parts
        .iter()
        .all(|part| *part == Some(neutral))
        .then_some(neutral)
}

/// The comparison of a form with 0.
fn compared(launch: &Launch<'_>, rel: Rel, form: &Form) -> Option<bool> {
    let (least, greatest) = launch.interval(form)?;
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
    use systola_ir::kernel::{
        Access, Buffer, BufferKind, Host, Kernel, Memory, Op, Shape, Size, Stmt, Value, Var,
        VarKind,
    };
    use systola_ir::system::Axis;
    use systola_ir::{BufferId, DimId, KernelId, ParamId, Scalar, ValueId};

    use super::*;

    /// y[N·b + i] = i, for all blocks b < N and i < N.
    fn square() -> Program {
        let n = Form::from(ParamId(0));
        let (b, i) = (Form::from(DimId(0)), Form::from(DimId(1)));
        let var = |name: &str, kind| Var {
            name: name.to_string(),
            kind,
        };
        let block = VarKind::Block {
            lo: vec![Form::zero()],
            hi: vec![n.clone()],
        };
        let y = Memory::Global(BufferId(0));
        let store = Stmt::Store {
            to: Access::new(y, vec![b, i.clone()]),
            value: ValueId(0),
        };
        let body = vec![Stmt::For {
            var: DimId(1),
            lo: vec![Form::zero()],
            hi: vec![n.clone()],
            step: 1,
            body: vec![Stmt::Let(ValueId(0), Op::Index(i)), store],
        }];
        let axis = Axis {
            lo: Form::zero(),
            hi: n,
        };
        Program {
            name: "square".to_string(),
            params: vec![Size {
                name: "N".to_string(),
                fixed: None,
            }],
            context: Vec::new(),
            buffers: vec![Buffer {
                name: "y".to_string(),
                ty: Scalar::I64,
                kind: BufferKind::Output { fill: None },
                axes: vec![axis.clone(), axis],
            }],
            kernels: vec![Kernel {
                hints: Default::default(),
                name: "square".to_string(),
                lanes: 1,
                warps: 1,
                vars: vec![var("b", block), var("i", VarKind::Loop)],
                shared: Vec::new(),
                regs: Vec::new(),
                values: vec![Value {
                    name: "v".to_string(),
                    ty: Scalar::I64,
                    shape: Shape::Uniform,
                }],
                body,
            }],
            host_vars: Vec::new(),
            body: vec![Host::Launch {
                kernel: KernelId(0),
                args: Vec::new(),
            }],
        }
    }

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
        let known = |n, holds: bool| -> Vec<String> {
            let known = Variant::at(&program, &kernels, &[n]).unwrap().known;
            let these = known.into_iter().filter(|(_, h)| *h == holds);
            these.map(|(name, _)| name).collect()
        };
        assert_eq!(known(8, true), ["even", "inside", "both", "either"]);
        assert_eq!(known(8, false), [""; 0]);
        assert_eq!(known(7, true), ["inside"]);
        assert_eq!(known(7, false), ["even", "both"]);
        assert_eq!(known(1, true), ["inside", "first", "either"]);
        assert_eq!(known(1, false), ["even", "both", "not_first"]);
    }

    #[test]
    fn distances_decide_the_width() {
        let program = square();
        let width = |n| Variant::at(&program, &[], &[n]).unwrap().width;
        assert_eq!(width(8192), Width::Narrow);
        assert_eq!(width(46_000), Width::Narrow);
        assert_eq!(width(47_000), Width::Wide);
        assert_eq!(width(1 << 29), Width::Wide);
    }

    #[test]
    fn what_leaves_64_bits_is_refused() {
        let error = Variant::at(&square(), &[], &[1 << 33]).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, Error::IndexTooLarge { .. }), "{text}");
        assert!(
            text.contains("y[b, i]") && text.contains("N = 8589934592"),
            "{text}"
        );
    }

    #[test]
    fn macros_are_flags() {
        let variant = Variant {
            width: Width::Narrow,
            known: vec![
                ("HOLDS_k_1".to_string(), true),
                ("HOLDS_k_2".to_string(), false),
            ],
        };
        let flags = ["-DINDEX=int32_t", "-DHOLDS_k_1=1", "-DHOLDS_k_2=0"];
        assert_eq!(variant.flags(), flags);
        assert_eq!(Variant::wide().flags(), Vec::<String>::new());
    }
}
