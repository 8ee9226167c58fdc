//! Parameters of a run, and how points and sizes are spelled in messages.

use systola_ir::codes::run;
use systola_ir::system::Param;
use systola_ir::{Cond, Diagnostic, Span};

/// The values in the order of the declaration, from values by name.
pub fn bind_params(
    params: &[Param],
    span: Span,
    given: &[(String, i128)],
) -> Result<Vec<i128>, Diagnostic> {
    let names = || {
        let names: Vec<String> = params.iter().map(|p| format!("`{}`", p.name)).collect();
        match names.is_empty() {
            true => "there are no parameters".to_string(),
            false => format!("the parameters are {}", names.join(", ")),
        }
    };
    if let Some((name, _)) = given
        .iter()
        .find(|(name, _)| params.iter().all(|p| p.name != *name))
    {
        let message = format!("there is no parameter `{name}`");
        return Err(Diagnostic::new(&run::UNKNOWN_PARAM, span, message).help(names()));
    }
    params
        .iter()
        .map(|param| {
            let found = given.iter().rev().find(|(name, _)| *name == param.name);
            found.map(|(_, value)| *value).ok_or_else(|| {
                let message = format!("the parameter `{}` has no value", param.name);
                Diagnostic::new(&run::MISSING_PARAM, param.span, message)
                    .here("declared here")
                    .help(format!("give it one, for example {}=8", param.name))
            })
        })
        .collect()
}

/// One value for each parameter, and the `where` satisfied.
pub(crate) fn check_params(
    names: &[String],
    context: &[Cond],
    params: &[i128],
    span: Span,
) -> Result<(), Diagnostic> {
    if let Some(missing) = names.get(params.len()) {
        let message = format!("the parameter `{missing}` has no value");
        return Err(Diagnostic::new(&run::MISSING_PARAM, span, message));
    }
    if params.len() > names.len() {
        let (given, declared) = (params.len(), names.len());
        let message = format!("{given} parameters were given, {declared} are declared");
        return Err(Diagnostic::new(&run::UNKNOWN_PARAM, span, message));
    }
    for cond in context {
        let holds = cond
            .eval(params, &[])
            .map_err(|overflow| too_large(span, overflow))?;
        if !holds {
            let text = cond.display(names, &[]);
            let message = format!("`{text}` does not hold {}", with_params(names, params));
            return Err(Diagnostic::new(&run::CONTEXT_VIOLATED, span, message)
                .help("choose other sizes, or relax the `where`"));
        }
    }
    Ok(())
}

pub(crate) fn too_large(span: Span, cause: impl std::fmt::Display) -> Diagnostic {
    let message = format!("the sizes are too large: {cause}");
    Diagnostic::new(&run::TOO_LARGE, span, message).help("use smaller parameters")
}

pub(crate) fn overflow(span: Span) -> Diagnostic {
    too_large(span, "an index leaves 64 bits")
}

/// `with N = 4, K = 3`, or `in a system without parameters`.
pub(crate) fn with_params(names: &[String], params: &[i128]) -> String {
    match names.is_empty() {
        true => "in a system without parameters".to_string(),
        false => format!("with {}", assignments(names, params)),
    }
}

fn assignments<T: std::fmt::Display>(names: &[String], values: &[T]) -> String {
    let pairs: Vec<String> = names
        .iter()
        .zip(values)
        .map(|(name, value)| format!("{name} = {value}"))
        .collect();
    pairs.join(", ")
}

/// `(i = 3, j = 2)`.
pub(crate) fn show_point<T: std::fmt::Display>(names: &[String], point: &[T]) -> String {
    format!("({})", assignments(names, point))
}

/// `[3, 2]`.
pub(crate) fn show_index<T: std::fmt::Display>(index: &[T]) -> String {
    let parts: Vec<String> = index.iter().map(T::to_string).collect();
    format!("[{}]", parts.join(", "))
}
