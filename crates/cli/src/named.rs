//! Options whose values have names.

use clap::builder::{PossibleValue, PossibleValuesParser, StyledStr, TypedValueParser};
use systola_ir::target::Target;

/// Parses a value by its name. The help of an option lists the names, each with its description.
pub fn named<T: Clone + Send + Sync + 'static, H: Into<StyledStr>>(
    values: impl IntoIterator<Item = (&'static str, H, T)>,
) -> impl TypedValueParser<Value = T> {
    let (names, values): (Vec<PossibleValue>, Vec<(&str, T)>) = values
        .into_iter()
        .map(|(name, help, value)| (PossibleValue::new(name).help(help.into()), (name, value)))
        .unzip();
    PossibleValuesParser::new(names).map(move |name| {
        let mut all = values.iter();
        let found = all.find(|(own, _)| *own == name);
        found.expect("a possible value").1.clone()
    })
}

/// Reads any target.
pub fn targets() -> impl TypedValueParser<Value = Target> {
    named(Target::ALL.map(|target| {
        let (first, rest) = target.device().split_at(1);
        let help = first.to_uppercase() + rest;
        (target.name(), help, target)
    }))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn names_of_targets_parse_back() {
        let parse =
            |name: &str| targets().parse_ref(&clap::Command::new("t"), None, OsStr::new(name));
        for target in Target::ALL {
            assert_eq!(parse(target.name()).ok(), Some(target));
        }
        assert!(parse("CPU").is_err());
    }
}
