//! From a system and a mapping to a checked array, top to bottom.

use systola_ir::Diagnostic;
use systola_ir::array::Array;
use systola_ir::codes::limits;
use systola_ir::mapping::Mapping;
use systola_ir::system::System;

use crate::apply_mapping::{Failure, apply_mapping};
use crate::clock::{count_registers, domain};
use crate::cost::report;
use crate::decide::{Decide, Undecided};
use crate::guards::{find_guards, verify_trust};
use crate::legality::check_legality;
use crate::localise::{Localised, localise};
use crate::report::{Report, Scope};
use crate::resolve::resolve;
use crate::reverse::reverse;
use crate::specialise::specialise;

/// A legal mapping and its array.
#[derive(Clone, Debug)]
pub struct Analysed {
    /// The system as the mapping sees it: written out, at given sizes where that was needed.
    pub localised: Localised,
    pub array: Array,
    pub report: Report,
}

/// Checks a mapping for all sizes where that can be decided, and otherwise at the given ones.
pub fn analyse(
    system: &System,
    mapping: &Mapping,
    sizes: &[Option<i128>],
) -> Result<Analysed, Vec<Diagnostic>> {
    match analyse_once(system, mapping, sizes, Scope::AllSizes) {
        Ok(analysed) => Ok(analysed),
        Err(Failure::Refused(errors)) if needs_sizes(&errors) && all_given(sizes) => {
            at_sizes(system, mapping, sizes, "a size stands where a constant must")
        }
        Err(Failure::Refused(errors)) => Err(errors),
        Err(Failure::Undecided(Undecided::NeedsSizes(why))) if all_given(sizes) => {
            at_sizes(system, mapping, sizes, &why)
        }
        Err(Failure::Undecided(Undecided::TooComplex(error))) if all_given(sizes) => {
            at_sizes(system, mapping, sizes, &error.to_string())
        }
        Err(Failure::Undecided(undecided)) => Err(vec![undecided_diagnostic(mapping, undecided)]),
    }
}

fn needs_sizes(errors: &[Diagnostic]) -> bool {
    errors.iter().any(|e| e.code == &limits::NEEDS_SIZES)
}

fn all_given(sizes: &[Option<i128>]) -> bool {
    !sizes.is_empty() && sizes.iter().all(Option::is_some)
}

fn at_sizes(
    system: &System,
    mapping: &Mapping,
    sizes: &[Option<i128>],
    why: &str,
) -> Result<Analysed, Vec<Diagnostic>> {
    let fixed = specialise(system, sizes).map_err(|d| vec![d])?;
    let scope = Scope::GivenSizes(why.to_string());
    analyse_once(&fixed, mapping, sizes, scope).map_err(|failure| match failure {
        Failure::Refused(errors) => errors,
        Failure::Undecided(undecided) => vec![undecided_diagnostic(mapping, undecided)],
    })
}

fn undecided_diagnostic(mapping: &Mapping, undecided: Undecided) -> Diagnostic {
    match undecided {
        Undecided::NeedsSizes(why) => Diagnostic::new(
            &limits::NEEDS_SIZES,
            mapping.span,
            format!("`{}` can be decided at given sizes only", mapping.name),
        )
        .note(why)
        .help("give all parameters with --set"),
        Undecided::TooComplex(error) => Diagnostic::new(
            &limits::TOO_COMPLEX,
            mapping.span,
            format!("`{}` is too complex to decide: {error}", mapping.name),
        )
        .help("give all parameters with --set, or simplify the mapping"),
    }
}

fn analyse_once(
    system: &System,
    mapping: &Mapping,
    sizes: &[Option<i128>],
    scope: Scope,
) -> Result<Analysed, Failure> {
    let values: Option<Vec<i128>> = sizes.iter().copied().collect();
    // The choices of localisation come first: all that follows sees uniform references only.
    let localised = localise(system, Some(mapping)).map_err(Failure::Refused)?;
    let decide = Decide {
        n_params: localised.system.params.len(),
        context: localised.system.context_cond(),
    };
    let batch = system.batch.as_ref().map(|b| b.name.as_str());
    let st = resolve(&localised.system, mapping, batch).map_err(Failure::Refused)?;
    let mut array = apply_mapping(&localised, &mapping.name, &st, &decide)?;
    check_legality(&array, &localised, &st, &decide)?;
    // Only an injective mapping has a reverse transform.
    let points = domain(&array);
    for n in 0..array.pieces.len() {
        array.pieces[n].reverse = reverse(&array, &array.pieces[n], &points, &decide);
    }
    count_registers(&mut array, &decide, values.as_deref())?;
    array.guards = find_guards(&array, &decide)?;
    if let Some(error) = verify_trust(&array, st.check_span) {
        return Err(Failure::Refused(vec![error]));
    }
    let report = report(&array, &localised.system, scope, values.as_deref())?;
    Ok(Analysed {
        localised,
        array,
        report,
    })
}
