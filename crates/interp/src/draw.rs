//! Random inputs for which a system is defined: indices of a table lie in its axes, divisors are
//! not zero.
//!
//! The requirements of an input follow from the uses of its elements: back from the index of a
//! lookup or from a divisor, through casts, signs, choices, names, functions, forwarding variables
//! and sums, products, remainders and masks with constants, to the inputs that are read there.
//! Other computations impose nothing. Inputs whose elements are a few constants, such as cells that
//! are 0 or 1, are found by [`alphabet`].

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use systola_ir::system::visit::children;
use systola_ir::system::{Axis, Expr, InputKind, Module, Program, Source, System};
use systola_ir::{BinOp, Form, InputId, Literal, LocalId, Scalar, UnOp, VarId};

use crate::system::Arrays;
use crate::tensor::{Tensor, TensorError, split_mix};
use crate::value::literal;

pub mod alphabet;

use alphabet::{Alphabet, alphabets};

/// The requirements of the elements of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The least and the greatest number.
    pub least: i128,
    pub greatest: i128,
    /// An excluded number.
    pub never: Option<i128>,
    /// The only numbers that make sense.
    pub among: Option<Alphabet>,
}

/// Numbers beyond all types.
const FAR: i128 = 1 << 80;

impl Wanted {
    pub const ANYTHING: Wanted = Wanted {
        least: -FAR,
        greatest: FAR,
        never: None,
        among: None,
    };

    const NOT_ZERO: Wanted = Wanted {
        never: Some(0),
        ..Wanted::ANYTHING
    };

    fn between(least: i128, greatest: i128) -> Wanted {
        Wanted {
            least,
            greatest,
            never: None,
            among: None,
        }
    }

    fn both(self, other: Wanted) -> Wanted {
        Wanted {
            least: self.least.max(other.least),
            greatest: self.greatest.min(other.greatest),
            never: self.never.or(other.never),
            among: self.among.or(other.among),
        }
    }

    /// The requirement of e, given this requirement of e + by.
    fn moved(self, by: i128) -> Wanted {
        Wanted {
            least: self.least - by,
            greatest: self.greatest - by,
            never: self.never.map(|x| x - by),
            among: None,
        }
    }
}

/// Random contents of all inputs that have none in the system.
pub fn random_inputs(
    system: &System,
    params: &[i128],
    seed: impl Fn(InputId) -> u64,
) -> Result<Arrays, (String, TensorError)> {
    let requirements = wanted(system, params);
    let mut arrays = Arrays::new();
    for (n, input) in system.inputs.iter().enumerate() {
        if matches!(input.kind, InputKind::Table { data: Some(_) }) {
            continue;
        }
        let seed = seed(InputId::from(n));
        let tensor = Tensor::random_wanted(input.ty, &input.axes, params, seed, &requirements[n]);
        let tensor = tensor.map_err(|e| (input.name.clone(), e))?;
        arrays.insert(input.name.clone(), tensor);
    }
    Ok(arrays)
}

/// The requirements of a system, with its batch expanded, for each of its inputs at concrete
/// parameters.
pub fn wanted(system: &System, params: &[i128]) -> Vec<Wanted> {
    let mut search = Search {
        system,
        params,
        inputs: vec![Wanted::ANYTHING; system.inputs.len()],
        seen: BTreeSet::new(),
    };
    let writes = system.outputs.iter().flat_map(|o| &o.writes);
    let bodies = system.vars.iter().map(|v| &v.body);
    for expr in bodies.chain(writes.map(|w| &w.value)) {
        search.look(expr, &mut HashMap::new());
    }
    let mut inputs = search.inputs;
    for (wanted, among) in inputs.iter_mut().zip(alphabets(system)) {
        wanted.among = among;
    }
    inputs
}

/// The requirements of a program for each of its inputs.
pub fn wanted_by_program(module: &Module, program: &Program, params: &[i128]) -> Vec<Wanted> {
    let mut inputs = vec![Wanted::ANYTHING; program.inputs.len()];
    for stage in &program.stages {
        let args = stage.args.iter().map(|form| form.eval(params, &[]).ok());
        let system = module.systems.get(stage.system);
        let expanded = system.and_then(|s| s.expand_batch().ok());
        let (Some(args), Some(system)) = (args.collect::<Option<Vec<_>>>(), expanded) else {
            continue;
        };
        let requirements = wanted(&system, &args);
        for (input, source) in &stage.inputs {
            if let (Source::Input(n), Some(requirement)) = (source, requirements.get(input.index()))
                && let Some(so_far) = inputs.get_mut(*n)
            {
                *so_far = so_far.both(*requirement);
            }
        }
    }
    inputs
}

impl Tensor {
    /// Like [`Tensor::random`], satisfying the requirements where elements are integers. Both ends
    /// of a required range are drawn.
    pub fn random_wanted(
        ty: Scalar,
        axes: &[Axis],
        params: &[i128],
        seed: u64,
        wanted: &Wanted,
    ) -> Result<Tensor, TensorError> {
        let mut tensor = Tensor::random(ty, axes, params, seed)?;
        let Some(all) = ty.int_range().filter(|_| *wanted != Wanted::ANYTHING) else {
            return Ok(tensor);
        };
        let usual = if ty.is_signed_int() { (-9, 9) } else { (0, 9) };
        // A bounded range is used as a whole; an unbounded one is intersected with the usual range.
        let is_whole = wanted.least > -FAR / 2 && wanted.greatest < FAR / 2;
        let (least, greatest) = if is_whole { all } else { usual };
        let least = wanted.least.max(least);
        let greatest = wanted.greatest.min(greatest);
        // Letters satisfy what is required besides, and the type.
        let (first, last) = (wanted.least.max(all.0), wanted.greatest.min(all.1));
        let letters: Vec<i128> = wanted
            .among
            .iter()
            .flat_map(|among| among.letters())
            .copied()
            .filter(|x| (first..=last).contains(x) && Some(*x) != wanted.never)
            .collect();
        // One letter would make all elements equal.
        let letters = if letters.len() > 1 {
            letters
        } else {
            Vec::new()
        };
        if letters.is_empty() && least > greatest {
            return Ok(tensor);
        }
        let mut state = seed;
        for position in 0..tensor.data.len() {
            let bits = i128::from(split_mix(&mut state) >> 1);
            let x = match letters.len() {
                0 => {
                    let x = least + bits % (greatest - least + 1);
                    match Some(x) == wanted.never {
                        true if greatest > x => greatest,
                        true => least,
                        false => x,
                    }
                }
                n => letters[(bits >> 20) as usize % n],
            };
            tensor.data.set(position, &literal(ty, Literal::Int(x)));
        }
        Ok(tensor)
    }
}

/// The names in scope, each with its value and the names that are in scope there.
type Scope<'a> = HashMap<LocalId, Bound<'a>>;

#[derive(Clone)]
struct Bound<'a> {
    value: &'a Expr,
    scope: Rc<Scope<'a>>,
}

struct Search<'a> {
    system: &'a System,
    params: &'a [i128],
    inputs: Vec<Wanted>,
    /// Variables that were visited for a requirement.
    seen: BTreeSet<(VarId, i128, i128, Option<i128>)>,
}

/// The maximum depth of nested calls.
const DEEPEST: usize = 200;

impl<'a> Search<'a> {
    /// Looks for lookups and divisors in an expression.
    fn look(&mut self, expr: &'a Expr, scope: &mut Scope<'a>) {
        let mut found = Vec::new();
        self.find(expr, scope, &mut found, DEEPEST);
        for (expr, scope, wanted) in found {
            self.require(expr, &scope, wanted, DEEPEST);
        }
    }

    fn find(
        &self,
        expr: &'a Expr,
        scope: &mut Scope<'a>,
        found: &mut Vec<(&'a Expr, Scope<'a>, Wanted)>,
        depth: usize,
    ) {
        let Some(depth) = depth.checked_sub(1) else {
            return;
        };
        match expr {
            Expr::Lookup { input, index, .. } => {
                let declared = &self.system.inputs[input.index()];
                for (axis, expr) in declared.axes.iter().zip(index) {
                    let end = |form: &Form| form.eval(self.params, &[]).ok();
                    if let (Some(least), Some(end), None) =
                        (end(&axis.lo), end(&axis.hi), &declared.outside)
                    {
                        found.push((expr, scope.clone(), Wanted::between(least, end - 1)));
                    }
                }
            }
            Expr::Binary(BinOp::Div | BinOp::Rem, _, b) => {
                found.push((b, scope.clone(), Wanted::NOT_ZERO));
            }
            Expr::Binary(BinOp::Pow, _, b) => {
                let wanted = Wanted {
                    least: 0,
                    ..Wanted::ANYTHING
                };
                found.push((b, scope.clone(), wanted));
            }
            Expr::Call(f, args) => {
                let function = &self.system.functions[f.index()];
                let around = Rc::new(scope.clone());
                let mut inside = Scope::new();
                for (n, value) in args.iter().enumerate() {
                    let scope = around.clone();
                    inside.insert(LocalId::from(n), Bound { value, scope });
                }
                self.find(&function.body, &mut inside, found, depth / 2);
            }
            Expr::Let {
                local, value, body, ..
            } => {
                self.find(value, scope, found, depth);
                let bound = Bound {
                    value,
                    scope: Rc::new(scope.clone()),
                };
                scope.insert(*local, bound);
                self.find(body, scope, found, depth);
                return;
            }
            _ => {}
        }
        for part in children(expr) {
            self.find(part, scope, found, depth);
        }
    }

    /// Adds a requirement to the value of an expression.
    fn require(&mut self, expr: &'a Expr, scope: &Scope<'a>, wanted: Wanted, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else {
            return;
        };
        match expr {
            Expr::Input { input, .. } | Expr::Lookup { input, .. } => {
                self.inputs[input.index()] = self.inputs[input.index()].both(wanted);
            }
            Expr::Cast(_, a) => self.require(a, scope, wanted, depth),
            Expr::Local(id) => {
                if let Some(Bound { value, scope }) = scope.get(id).cloned() {
                    self.require(value, &scope, wanted, depth);
                }
            }
            Expr::Var { var, .. } => {
                let Wanted {
                    least,
                    greatest,
                    never,
                    ..
                } = wanted;
                if self.seen.insert((*var, least, greatest, never)) {
                    let body = &self.system.vars[var.index()].body;
                    self.require(body, &Scope::new(), wanted, depth);
                }
            }
            Expr::Guard {
                then, otherwise, ..
            } => {
                self.require(then, scope, wanted, depth);
                if let Some(otherwise) = otherwise {
                    self.require(otherwise, scope, wanted, depth);
                }
            }
            Expr::Select {
                then, otherwise, ..
            } => {
                self.require(then, scope, wanted, depth);
                self.require(otherwise, scope, wanted, depth);
            }
            Expr::Binary(BinOp::Min | BinOp::Max, a, b) => {
                self.require(a, scope, wanted, depth);
                self.require(b, scope, wanted, depth);
            }
            Expr::Binary(BinOp::Add, a, b) => match (self.number(a), self.number(b)) {
                (Some(by), None) => self.require(b, scope, wanted.moved(by), depth),
                (None, Some(by)) => self.require(a, scope, wanted.moved(by), depth),
                _ => {}
            },
            Expr::Binary(BinOp::Sub, a, b) => {
                if let Some(by) = self.number(b) {
                    self.require(a, scope, wanted.moved(-by), depth);
                }
            }
            Expr::Unary(UnOp::Neg | UnOp::Abs, a) if wanted == Wanted::NOT_ZERO => {
                self.require(a, scope, wanted, depth);
            }
            Expr::Binary(op, a, b) if wanted == Wanted::NOT_ZERO => {
                let (a, by) = match (self.number(a), self.number(b)) {
                    (None, Some(by)) => (a, by),
                    (Some(by), None) if *op != BinOp::Rem => (b, by),
                    _ => return,
                };
                if let Some(wanted) = not_zero(*op, by) {
                    self.require(a, scope, wanted, depth);
                }
            }
            Expr::Let {
                local, value, body, ..
            } => {
                let bound = Bound {
                    value,
                    scope: Rc::new(scope.clone()),
                };
                let mut inside = scope.clone();
                inside.insert(*local, bound);
                self.require(body, &inside, wanted, depth);
            }
            Expr::Call(f, args) => {
                let around = Rc::new(scope.clone());
                let mut inside = Scope::new();
                for (n, value) in args.iter().enumerate() {
                    let scope = around.clone();
                    inside.insert(LocalId::from(n), Bound { value, scope });
                }
                let body = &self.system.functions[f.index()].body;
                self.require(body, &inside, wanted, depth / 2);
            }
            Expr::Lit(..)
            | Expr::Const(_)
            | Expr::Iter(_)
            | Expr::Param(_)
            | Expr::Unary(..)
            | Expr::Binary(..)
            | Expr::Tuple(_)
            | Expr::Field(..)
            | Expr::Reduce { .. }
            | Expr::Scan { .. }
            | Expr::Port(_) => {}
        }
    }

    /// The constant value of an expression.
    fn number(&self, expr: &Expr) -> Option<i128> {
        match expr {
            Expr::Lit(_, Literal::Int(n)) => Some(*n),
            Expr::Const(c) => match self.system.consts[c.index()].value {
                Literal::Int(n) => Some(n),
                Literal::Float(_) | Literal::Bool(_) => None,
            },
            Expr::Param(p) => self.params.get(p.index()).copied(),
            Expr::Cast(_, a) => self.number(a),
            _ => None,
        }
    }
}

/// The requirement of e for e × by, e % by or e & by to be nonzero.
fn not_zero(op: BinOp, by: i128) -> Option<Wanted> {
    match op {
        BinOp::Mul if by != 0 => Some(Wanted::NOT_ZERO),
        BinOp::Rem if by.abs() > 1 => Some(Wanted::between(1, by.abs() - 1)),
        // A mask of low bits keeps the number itself. For other masks the lowest bit must be set.
        BinOp::BitAnd if by > 0 && by & (by + 1) == 0 => Some(Wanted::between(1, by)),
        BinOp::BitAnd if by > 0 => {
            let lowest = by & by.wrapping_neg();
            Some(Wanted::between(lowest, 2 * lowest - 1))
        }
        _ => None,
    }
}
