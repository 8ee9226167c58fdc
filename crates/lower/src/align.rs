//! Moves variables with iterators of their own to one index space.
//!
//! Before: a variable V has iterators z of its own, and a mapping aligns it with a common space by
//! an injective α, `align V (z) -> (α(z))`. After: V' lives in the space, on the image of α, with
//! V'(α(z)) = V(z). A reference V(f(z)) of a variable U aligned by β becomes V'(α(f(β⁻¹(x)))), and
//! writes of outputs move like the variable they take. This is the change of basis of Alpha
//! (Mauras 1989). All later steps see one index space.

use std::borrow::Cow;

use systola_ir::codes::{limits, mapping as codes};
use systola_ir::form::{Atom, Cond, Form, Overflow, Poly, Rel};
use systola_ir::mapping::{DirectiveKind, Mapping, Name, NameExpr};
use systola_ir::system::visit::{map_expr, map_iterators, walk};
use systola_ir::system::{Dim, Expr, System, Write};
use systola_ir::{Diagnostic, DimId, Span, VarId};

use crate::decide::Decide;
use crate::digits::gcd;
use crate::failure::Failure;
use crate::localise::value_of;
use crate::names::Names;
use crate::reverse::solve;

/// The system with all variables in the common space of a mapping; the same one if they are.
pub fn align<'a>(system: &'a System, mapping: &Mapping) -> Result<Cow<'a, System>, Failure> {
    let mut space = None;
    let mut given = Vec::new();
    for directive in &mapping.directives {
        match &directive.kind {
            DirectiveKind::Space { dims } => space = Some(dims.clone()),
            DirectiveKind::Align { var, dims, forms } => given.push((var, dims, forms)),
            _ => {}
        }
    }
    if system.has_one_space() && space.is_none() && given.is_empty() {
        return Ok(Cow::Borrowed(system));
    }
    let space: Vec<Dim> = match space {
        None => system.dims.clone(),
        Some(names) => names.iter().map(dim).collect(),
    };
    for (var, ..) in &given {
        if system.find_var(&var.text).is_none() {
            return Err(refused(unknown(system, var)));
        }
    }
    let mut moved = Vec::new();
    for n in 0..system.vars.len() {
        let var = VarId::from(n);
        let name = &system.vars[n].name;
        let own = given.iter().rev().find(|(of, ..)| of.text == *name);
        let alignment = match own {
            Some((of, dims, forms)) => written(system, var, &space, of.span, dims, forms)?,
            None => by_name(system, var, &space, mapping).map_err(refused)?,
        };
        keeps_scans(system, var, &space, &alignment).map_err(refused)?;
        moved.push(alignment);
    }
    let aligned = Pass {
        system,
        space: &space,
        moved,
    };
    Ok(Cow::Owned(aligned.run()?))
}

fn dim(name: &Name) -> Dim {
    Dim {
        name: name.text.clone(),
        range: None,
        span: name.span,
    }
}

fn refused(diagnostic: Diagnostic) -> Failure {
    Failure::Refused(vec![diagnostic])
}

/// Where the values of a variable are in the space.
struct Alignment {
    /// Over the iterators of the variable.
    to: Vec<Form>,
    /// The iterators of the variable over the space, each divided by a number, without a remainder.
    back: Vec<(Form, i128)>,
    /// The points of the space that have a value, beside what the domain of the variable says.
    image: Vec<Cond>,
}

/// The alignment that a mapping gives.
fn written(
    system: &System,
    var: VarId,
    space: &[Dim],
    span: Span,
    dims: &[Name],
    forms: &[NameExpr],
) -> Result<Alignment, Failure> {
    let name = &system.vars[var.index()].name;
    let arity = system.arity(var);
    let counts = [
        (dims.len(), arity, "iterators"),
        (forms.len(), space.len(), "coordinates of the space"),
    ];
    for (found, wanted, what) in counts {
        if found != wanted {
            let message =
                format!("`{name}` is aligned with {found} {what}, and there are {wanted}");
            return Err(refused(
                Diagnostic::new(&codes::BAD_ALIGNMENT, span, message).help(format!(
                    "write `align {name} ({}) -> ({})`",
                    system.names_of(var).join(", "),
                    names(space).join(", ")
                )),
            ));
        }
    }
    // The names of the mapping stand for the iterators of the variable.
    let mut seen = system.around(var).into_owned();
    for (dim, name) in seen.dims.iter_mut().zip(dims) {
        dim.name.clone_from(&name.text);
    }
    let scope = Names::of_system(&seen);
    let to = forms.iter().map(|form| scope.form(form));
    let to: Vec<Form> = to.collect::<Result<_, _>>().map_err(refused)?;
    let decide = Decide {
        n_params: system.params.len(),
        context: system.context_cond(),
    };
    let domain = system.var_domain(var);
    let solved = solve(arity, &to.iter().collect::<Vec<_>>(), &domain, &decide)?;
    let Some(back) = solved else {
        return Err(not_inverted(system, var, &to, &decide, span)?);
    };
    let basis = Basis {
        back: &back,
        arity,
        n_space: space.len(),
    };
    let mut image = Vec::new();
    for (form, divisor) in back.iter().filter(|(_, divisor)| *divisor != 1) {
        image.push(Cond::cmp(Rel::Eq, form.modulo(*divisor), 0));
    }
    for (n, form) in to.iter().enumerate() {
        let there = basis.form(form)?;
        let here = Form::from(DimId::from(n));
        if there != here {
            image.push(Cond::cmp(Rel::Eq, there, here));
        }
    }
    Ok(Alignment { to, back, image })
}

/// The alignment of a variable whose iterators have the names of the space.
fn by_name(
    system: &System,
    var: VarId,
    space: &[Dim],
    mapping: &Mapping,
) -> Result<Alignment, Diagnostic> {
    let own = system.names_of(var);
    let space = names(space);
    let at = |name: &String, list: &[String]| {
        let n = list.iter().position(|other| other == name)?;
        Some(Form::from(DimId::from(n)))
    };
    let to: Option<Vec<Form>> = space.iter().map(|name| at(name, &own)).collect();
    let back: Option<Vec<Form>> = own.iter().map(|name| at(name, &space)).collect();
    if let (Some(to), Some(back)) = (to, back) {
        return Ok(Alignment {
            to,
            back: back.into_iter().map(|form| (form, 1)).collect(),
            image: Vec::new(),
        });
    }
    let name = &system.vars[var.index()].name;
    let own = own.join(", ");
    let (space, help) = match space.as_slice() {
        [] => (
            "there is no common space".to_string(),
            format!("name one with `space (…)`, and write `align {name} ({own}) -> (…)`"),
        ),
        [_, ..] => (
            format!("the space has ({})", space.join(", ")),
            format!("say where it is: `align {name} ({own}) -> (…)`"),
        ),
    };
    Err(Diagnostic::new(
        &codes::NOT_ALIGNED,
        mapping.span,
        format!("`{name}` has the iterators ({own}), and {space}"),
    )
    .help(help))
}

/// The refusal of an alignment without an inverse; two points with one image, if there are any.
fn not_inverted(
    system: &System,
    var: VarId,
    to: &[Form],
    decide: &Decide,
    span: Span,
) -> Result<Failure, Failure> {
    let name = &system.vars[var.index()].name;
    let n = system.arity(var);
    let other = |form: &Form| form.substitute(&|d| Some(Form::from(DimId::from(n + d.index()))));
    let domain = system.var_domain(var);
    let mut both = domain.clone().and(domain.map(&other)?);
    for form in to {
        both = both.and(Cond::cmp(Rel::Eq, form.clone(), other(form)?));
    }
    for d in 0..n {
        let (here, there) = (DimId::from(d), DimId::from(n + d));
        let question = both.clone().and(Cond::cmp(Rel::Lt, here, there));
        if let Some((_, points)) = decide.sample(&question, 2 * n)? {
            let show = |point: &[i128]| {
                let parts: Vec<String> = point.iter().map(i128::to_string).collect();
                format!("{name}({})", parts.join(", "))
            };
            let (first, second) = points.split_at(n);
            let message = format!(
                "{} and {} are aligned with the same point of the space",
                show(first),
                show(second)
            );
            return Ok(refused(
                Diagnostic::new(&codes::BAD_ALIGNMENT, span, message)
                    .help("use every iterator of the variable"),
            ));
        }
    }
    Ok(refused(
        Diagnostic::new(
            &limits::NO_INVERSE,
            span,
            format!("the iterators of `{name}` cannot be computed from its point in the space"),
        )
        .help("align it by sums of its iterators with constants"),
    ))
}

fn unknown(system: &System, var: &Name) -> Diagnostic {
    let known: Vec<String> = system
        .vars
        .iter()
        .map(|v| format!("`{}`", v.name))
        .collect();
    Diagnostic::new(
        &codes::UNKNOWN_VARIABLE,
        var.span,
        format!("`{}` is no variable of `{}`", var.text, system.name),
    )
    .help(format!("its variables are {}", known.join(", ")))
}

fn names(dims: &[Dim]) -> Vec<String> {
    dims.iter().map(|d| d.name.clone()).collect()
}

/// The variable with which a write moves: the one whose iterators it has, or the first that it reads.
fn written_var(write: &Write) -> Option<VarId> {
    let mut found = write.of;
    walk(&write.value, &mut |e| {
        if let Expr::Var { var, .. } = e {
            found.get_or_insert(*var);
        }
    });
    found
}

/// Refuses an alignment that turns a running sum: it goes along one coordinate of the space.
fn keeps_scans(
    system: &System,
    var: VarId,
    space: &[Dim],
    alignment: &Alignment,
) -> Result<(), Diagnostic> {
    let mut turned = None;
    walk(&system.vars[var.index()].body, &mut |e| {
        if let Expr::Scan { dim, span, .. } = e
            && alignment.coordinate(*dim).is_none()
        {
            turned.get_or_insert((*dim, *span));
        }
    });
    let Some((dim, span)) = turned else {
        return Ok(());
    };
    let (name, along) = (
        &system.vars[var.index()].name,
        &system.names_of(var)[dim.index()],
    );
    Err(Diagnostic::new(
        &codes::BAD_ALIGNMENT,
        span,
        format!("`{name}` has a running sum along `{along}`, which no coordinate of the space is"),
    )
    .help(format!(
        "let one of ({}) be `{along}`, and no other use it",
        names(space).join(", ")
    )))
}

impl Alignment {
    /// The coordinate of the space that is an iterator of the variable, which no other uses.
    fn coordinate(&self, dim: DimId) -> Option<DimId> {
        let uses = |form: &&Form| form.dims().contains(&dim);
        let n = self.to.iter().position(|form| *form == Form::from(dim))?;
        (self.to.iter().filter(uses).count() == 1).then(|| DimId::from(n))
    }
}

struct Pass<'a> {
    system: &'a System,
    space: &'a [Dim],
    /// By variable.
    moved: Vec<Alignment>,
}

impl Pass<'_> {
    fn run(&self) -> Result<System, Overflow> {
        let system = self.system;
        let mut aligned = system.clone();
        aligned.dims = self.space.to_vec();
        for (n, var) in aligned.vars.iter_mut().enumerate() {
            let id = VarId::from(n);
            var.own = None;
            var.on = self.domain(id)?;
            var.body = self.expr(&var.body, id)?;
        }
        // The points of the space that have a value.
        let mut domains: Vec<Vec<Cond>> = Vec::new();
        for var in &aligned.vars {
            if !domains.contains(&var.on) {
                domains.push(var.on.clone());
            }
        }
        aligned.domain = match domains.as_slice() {
            [one] => one.clone(),
            _ => vec![Cond::Or(domains.into_iter().map(Cond::And).collect())],
        };
        for (output, declared) in aligned.outputs.iter_mut().zip(&system.outputs) {
            for (write, before) in output.writes.iter_mut().zip(&declared.writes) {
                let Some(var) = written_var(before) else {
                    continue;
                };
                let basis = self.basis(var);
                let index = before.index.iter().map(|form| basis.form(form));
                write.of = None;
                write.index = index.collect::<Result<_, _>>()?;
                let when = basis.cond(&before.when)?;
                write.when = self.domain(var)?.into_iter().fold(when, Cond::and);
                write.value = self.expr(&before.value, var)?;
            }
        }
        for (n, dim) in aligned.bound.iter_mut().enumerate() {
            if let (Some(owner), Some((lo, hi))) = (self.owner(n), &dim.range) {
                let basis = self.basis(owner);
                dim.range = Some((basis.form(lo)?, basis.form(hi)?));
            }
        }
        Ok(aligned)
    }

    /// The variable in whose equation, or in a write of which, an iterator is bound. Each is bound in
    /// one sum, and has a number after the iterators that are seen there.
    fn owner(&self, bound: usize) -> Option<VarId> {
        let system = self.system;
        let binds = |expr: &Expr, arity: usize| {
            let mut found = false;
            walk(expr, &mut |e| {
                if let Expr::Reduce { dims, .. } = e {
                    found |= dims.contains(&DimId::from(arity + bound));
                }
            });
            found
        };
        let mut vars = (0..system.vars.len()).map(VarId::from);
        let of_var = vars.find(|v| binds(&system.vars[v.index()].body, system.arity(*v)));
        of_var.or_else(|| {
            let mut writes = system.outputs.iter().flat_map(|o| &o.writes);
            let of = |w| written_var(w).filter(|var| binds(&w.value, system.arity(*var)));
            writes.find_map(of)
        })
    }

    fn basis(&self, var: VarId) -> Basis<'_> {
        Basis {
            back: &self.moved[var.index()].back,
            arity: self.system.arity(var),
            n_space: self.space.len(),
        }
    }

    /// The conditions on the points of the space at which a variable has a value.
    fn domain(&self, var: VarId) -> Result<Vec<Cond>, Overflow> {
        let domain = match self.system.var_domain(var) {
            Cond::And(parts) => parts,
            Cond::Const(true) => Vec::new(),
            other => vec![other],
        };
        let basis = self.basis(var);
        let domain = domain.iter().map(|cond| basis.cond(cond));
        let domain = domain.collect::<Result<Vec<_>, _>>()?;
        Ok([domain, self.moved[var.index()].image.clone()].concat())
    }

    /// An expression of the equation of a variable over the space.
    fn expr(&self, expr: &Expr, of: VarId) -> Result<Expr, Overflow> {
        let basis = self.basis(of);
        let forms = |list: &[Form]| {
            let list = list.iter().map(|form| basis.form(form));
            list.collect::<Result<Vec<_>, _>>()
        };
        let own = (0..basis.arity).map(|d| basis.form(&Form::from(DimId::from(d))));
        let own = own.collect::<Result<Vec<_>, _>>()?;
        let value = |d: DimId| match own.get(d.index()) {
            Some(form) => value_of(form),
            None => Expr::Iter(basis.bound(d)),
        };
        let expr = map_expr(expr, &mut |e| {
            Ok(match e {
                // The value of the point itself.
                Expr::Var { var, index, span } if var == of && is_here(&index) => Expr::Var {
                    var,
                    index: (0..basis.n_space)
                        .map(|d| Form::from(DimId::from(d)))
                        .collect(),
                    span,
                },
                Expr::Var { var, index, span } => {
                    let read = self.moved[var.index()].to.iter();
                    let read = read.map(|to| to.substitute(&|d| index.get(d.index()).cloned()));
                    Expr::Var {
                        var,
                        index: forms(&read.collect::<Result<Vec<_>, _>>()?)?,
                        span,
                    }
                }
                Expr::Input { input, index, span } => Expr::Input {
                    input,
                    index: forms(&index)?,
                    span,
                },
                Expr::Guard {
                    cond,
                    then,
                    otherwise,
                } => Expr::Guard {
                    cond: basis.cond(&cond)?,
                    then,
                    otherwise,
                },
                Expr::Scan {
                    op,
                    dim,
                    body,
                    span,
                } => Expr::Scan {
                    op,
                    dim: self.moved[of.index()].coordinate(dim).unwrap_or(dim),
                    body,
                    span,
                },
                other => other,
            })
        })?;
        Ok(map_iterators(&expr, &value, &|d| vec![basis.bound(d)]))
    }
}

/// Is it the point of the variable itself?
fn is_here(index: &[Form]) -> bool {
    let mut forms = index.iter().enumerate();
    forms.all(|(d, form)| *form == Form::from(DimId::from(d)))
}

/// The iterators of an equation over the space: those of the variable are its inverse, and those
/// that sums bind come after those of the space.
struct Basis<'a> {
    back: &'a [(Form, i128)],
    arity: usize,
    n_space: usize,
}

impl Basis<'_> {
    fn bound(&self, d: DimId) -> DimId {
        DimId::from(d.index() - self.arity + self.n_space)
    }

    fn form(&self, form: &Form) -> Result<Form, Overflow> {
        let divisor = self.divisor(form);
        Ok(self.times(divisor, form)?.floor_div(divisor))
    }

    fn cond(&self, cond: &Cond) -> Result<Cond, Overflow> {
        let all = |parts: &[Cond]| {
            let parts = parts.iter().map(|part| self.cond(part));
            parts.collect::<Result<Vec<_>, _>>()
        };
        Ok(match cond {
            Cond::Const(value) => Cond::Const(*value),
            // Both sides are multiplied, so that a bound of a quotient is one of its dividend.
            Cond::Cmp(rel, left, right) => {
                let divisor = lcm(self.divisor(left), self.divisor(right));
                let (left, right) = (self.times(divisor, left)?, self.times(divisor, right)?);
                Cond::Cmp(*rel, left, right)
            }
            Cond::And(parts) => Cond::And(all(parts)?),
            Cond::Or(parts) => Cond::Or(all(parts)?),
            Cond::Not(inner) => Cond::Not(Box::new(self.cond(inner)?)),
        })
    }

    /// A number by which a form is multiplied so that no division is left outside of its floors.
    fn divisor(&self, form: &Form) -> i128 {
        let divisors = form.terms().map(|(atom, _)| match atom {
            Atom::Dim(d) => self.back.get(d.index()).map_or(1, |(_, divisor)| *divisor),
            Atom::Floor(..) | Atom::Mod(..) => 1,
        });
        divisors.fold(1, lcm)
    }

    /// The form over the space, multiplied by a multiple of its divisor.
    fn times(&self, factor: i128, form: &Form) -> Result<Form, Overflow> {
        let scaled = |form: Form, by: i128| form.scale(&Poly::constant(by));
        let constant = Form::from(form.constant_part().clone());
        let mut sum = scaled(constant, factor)?;
        for (atom, coefficient) in form.terms() {
            let term = match atom {
                Atom::Dim(d) => match self.back.get(d.index()) {
                    Some((form, divisor)) => scaled(form.clone(), factor / divisor)?,
                    None => scaled(Form::from(self.bound(*d)), factor)?,
                },
                Atom::Floor(inner, m) => scaled(self.form(inner)?.floor_div(*m), factor)?,
                Atom::Mod(inner, m) => scaled(self.form(inner)?.modulo(*m), factor)?,
            };
            sum = sum.add(&term.scale(coefficient)?);
        }
        Ok(sum)
    }
}

fn lcm(a: i128, b: i128) -> i128 {
    a / gcd(a, b).max(1) * b
}
