//! The names of a stencil: declared and generated ones.

use systola_ir::Diagnostic;
use systola_ir::codes::{stencil as codes, types};
use systola_ir::mapping::Name;
use systola_stencil::Fresh;

use super::reader::int;
use super::{Errors, primed};
use crate::elaborate::shorten;
use crate::suggest::suggest;
use crate::tree::{self, Dim, ExprKind, Index};

/// The names that the equations of a stencil can use.
pub struct Scope {
    pub fields: Vec<String>,
    /// Variables: intermediate values, and the next values of fields.
    pub vars: Vec<String>,
    pub axes: Vec<Name>,
    /// Names of the iterators of a sum over a box, one for each axis.
    pub window: Vec<String>,
    pub time: String,
}

impl Scope {
    pub fn of(tree: &tree::Stencil, errors: &mut Errors) -> Option<Scope> {
        let before = errors.n_found();
        if tree.fields.is_empty() {
            errors.report(missing("field", &tree.name));
        } else if updates(tree).next().is_none() {
            errors.report(missing("equation for a field", &tree.name));
        } else {
            check_names(tree, errors);
            check_index(tree, errors);
        }
        if errors.n_found() > before {
            return None;
        }
        let n_axes = tree.fields[0].0.axes.len();
        let mut taken = Fresh::default();
        taken_names(tree)
            .into_iter()
            .for_each(|name| taken.take(name));
        let axes = match &tree.index {
            Some((names, _)) => names.clone(),
            None => (taken.axes(n_axes))
                .into_iter()
                .map(|text| Name {
                    text,
                    span: tree.name.span,
                })
                .collect(),
        };
        let window = taken.window(n_axes);
        let vars = (tree.equations.iter())
            .map(|e| match e.between {
                Some(_) => e.name.text.clone(),
                None => primed(&e.name.text),
            })
            .collect();
        Some(Scope {
            fields: field_names(tree),
            vars,
            axes,
            window,
            time: taken.name("t"),
        })
    }

    /// The axes of the grid as iterators.
    pub fn index(&self, field: &tree::Input) -> Index {
        let dims = self.axes.iter().zip(&field.axes);
        let dims = dims.map(|(name, axis)| Dim {
            name: name.clone(),
            range: Some((int(0, name.span), axis.hi.clone())),
            span: name.span,
        });
        Index {
            dims: dims.collect(),
            domain: Vec::new(),
            origin: field.origin,
        }
    }

    pub fn var(
        &self,
        equation: &tree::Equation,
        fields: &[(tree::Input, tree::Boundary)],
    ) -> tree::Var {
        let field = fields
            .iter()
            .find(|(f, _)| f.name.text == equation.name.text);
        let (name, ty) = match (&equation.between, field) {
            (Some((ty, _)), _) => (equation.name.clone(), ty.clone()),
            (None, Some((field, _))) => {
                let name = Name {
                    text: primed(&equation.name.text),
                    span: equation.name.span,
                };
                (name, field.ty.clone())
            }
            (None, None) => (equation.name.clone(), fields[0].0.ty.clone()),
        };
        tree::Var::new(name, ty, equation.body.clone(), equation.origin)
    }
}

/// The equations that update fields.
fn updates(tree: &tree::Stencil) -> impl Iterator<Item = &tree::Equation> {
    tree.equations.iter().filter(|e| e.between.is_none())
}

fn field_names(tree: &tree::Stencil) -> Vec<String> {
    let names = tree.fields.iter().map(|(f, _)| f.name.text.clone());
    names.collect()
}

fn missing(what: &str, stencil: &Name) -> Diagnostic {
    Diagnostic::new(
        &codes::NO_UPDATE,
        stencil.span,
        format!("the stencil `{}` has no {what}", stencil.text),
    )
    .help("add `field u[N]: f32 clamp;` and `u = 0.5 * u[-1] + 0.5 * u[1];`")
}

/// Checks that every update is of a field, and every output of an update or a variable.
fn check_names(tree: &tree::Stencil, errors: &mut Errors) {
    let fields = field_names(tree);
    for equation in updates(tree).filter(|e| !fields.contains(&e.name.text)) {
        let help = format!("declare it: `var {}: f32 = …;`", equation.name.text);
        errors.report(not_a_field(&equation.name, &fields, help));
    }
    let computed: Vec<String> = tree.equations.iter().map(|e| e.name.text.clone()).collect();
    let outputs = tree.outputs.iter().map(|(_, what)| what);
    for what in outputs.filter(|what| !computed.contains(&what.text)) {
        let list: Vec<&str> = computed.iter().map(String::as_str).collect();
        let help = format!("there are equations for {}", shorten(&list));
        errors.report(not_a_field(what, &computed, help));
    }
}

fn not_a_field(name: &Name, known: &[String], help: String) -> Diagnostic {
    let near = suggest(&name.text, known.iter().map(String::as_str));
    Diagnostic::new(
        &codes::NOT_A_FIELD,
        name.span,
        format!("`{}` is no field of this stencil", name.text),
    )
    .help(near.map_or(help, |near| format!("did you mean `{near}`?")))
}

fn check_index(tree: &tree::Stencil, errors: &mut Errors) {
    let n_axes = tree.fields[0].0.axes.len();
    let Some((names, span)) = &tree.index else {
        return;
    };
    if names.len() != n_axes {
        errors.report(
            Diagnostic::new(
                &types::WRONG_COUNT,
                *span,
                format!(
                    "the fields have {n_axes} axes, but {} names are given",
                    names.len()
                ),
            )
            .help("give one name for each axis, without ranges"),
        );
    }
}

/// All names that the user declares.
fn taken_names(tree: &tree::Stencil) -> Vec<String> {
    let mut names: Vec<&Name> = tree.params.iter().collect();
    names.extend(tree.consts.iter().map(|c| &c.name));
    names.extend(tree.fields.iter().map(|(f, _)| &f.name));
    names.extend(tree.inputs.iter().map(|i| &i.name));
    for function in &tree.functions {
        names.push(&function.name);
        names.extend(function.params.iter().map(|(name, _)| name));
        local_names(&function.body, &mut names);
    }
    names.extend(tree.batch.iter().map(|b| &b.name));
    names.extend(tree.index.iter().flat_map(|(names, _)| names));
    for equation in &tree.equations {
        names.push(&equation.name);
        local_names(&equation.body, &mut names);
    }
    names.extend(tree.outputs.iter().map(|(name, _)| name));
    names.iter().map(|name| name.text.clone()).collect()
}

/// The names that an expression binds: `let`s and iterators of sums.
fn local_names<'a>(expr: &'a tree::Expr, names: &mut Vec<&'a Name>) {
    match &expr.kind {
        ExprKind::Int(..)
        | ExprKind::Float(..)
        | ExprKind::Bool(_)
        | ExprKind::Name(_)
        | ExprKind::Around(..)
        | ExprKind::Mistake(_) => {}
        ExprKind::Apply(_, parts)
        | ExprKind::Element(_, parts)
        | ExprKind::At(_, parts)
        | ExprKind::Tuple(parts) => {
            parts.iter().for_each(|part| local_names(part, names));
        }
        ExprKind::Unary(_, inner)
        | ExprKind::Field(inner, _)
        | ExprKind::Paren(inner)
        | ExprKind::Scan(_, _, inner) => local_names(inner, names),
        ExprKind::Binary(_, left, right) => {
            local_names(left, names);
            local_names(right, names);
        }
        ExprKind::Chain(first, rest) => {
            local_names(first, names);
            rest.iter().for_each(|(_, part)| local_names(part, names));
        }
        ExprKind::Let(lets, body) => {
            for (name, value) in lets {
                names.push(name);
                local_names(value, names);
            }
            local_names(body, names);
        }
        ExprKind::Reduce(_, dims, body) => {
            names.extend(dims.iter().map(|dim| &dim.name));
            local_names(body, names);
        }
    }
}
