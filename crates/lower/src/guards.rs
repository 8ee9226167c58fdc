//! Which PEs must test their point?
//!
//! The PEs of an array and its steps form a box, and a mapping rarely fills it. A slot of the box
//! without a point of the domain would still compute if nothing tests for it. That is harmless
//! unless it reads an input outside its axes, divides integers, looks up a table, or writes an
//! output: points of the domain read only points of the domain, at the time they are due. For each
//! such effect this module decides, for all sizes at once, whether an empty slot could have it.

mod effects;
mod slots;

use systola_ir::array::{Array, Guard, Reverse};
use systola_ir::codes::legality as codes;
use systola_ir::mapping::Check;
use systola_ir::{Diagnostic, Span};

use crate::decide::{Decide, Sample};
use effects::effects;
use slots::{Slots, empty_slots, happens};

/// Finds the guards that stay and those that are proved unnecessary.
pub fn find_guards(array: &Array, decide: &Decide) -> Vec<Guard> {
    let mut guards: Vec<Guard> = off_lattice(array).into_iter().collect();
    let effects = effects(array);
    if effects.is_empty() {
        return guards;
    }
    let slots = empty_slots(array, decide);
    for effect in effects {
        let (kept, reason) = match (&slots, array.check) {
            (_, Check::Check) => (true, "`check` asks every PE to test".to_string()),
            (Slots::Filled, _) => (false, "every slot of the array has a point".to_string()),
            (Slots::Unknown(why), _) => (true, why.clone()),
            (Slots::Empty(boxes), _) => match happens(array, decide, boxes, &effect.when) {
                Ok(None) => (false, "no empty slot can have this effect".to_string()),
                Ok(Some(sample)) => (true, empty_slot(array, &sample)),
                Err(_) => (true, "not proved unnecessary".to_string()),
            },
        };
        guards.push(Guard {
            effect: effect.what,
            kept,
            reason,
        });
    }
    guards
}

fn empty_slot(array: &Array, (params, point): &Sample) -> String {
    let named = |names: &[String], values: &[i128]| {
        let list = names.iter().zip(values).map(|(n, v)| format!("{n} = {v}"));
        list.collect::<Vec<_>>().join(", ")
    };
    format!(
        "an empty slot would, at {} with {}",
        named(&array.dims, point),
        named(&array.param_names(), params)
    )
}

/// A mapping with a determinant other than 1 leaves slots between its points.
fn off_lattice(array: &Array) -> Option<Guard> {
    let widest = array
        .pieces
        .iter()
        .filter_map(|piece| match &piece.reverse {
            Reverse::Forms(forms) => forms.iter().map(|(_, divisor)| *divisor).max(),
            Reverse::Scan => None,
        })
        .max()?;
    (widest > 1).then(|| Guard {
        effect: "a slot between the points computes".into(),
        kept: true,
        reason: format!("a point needs a division by {widest} that comes out even"),
    })
}

/// Refuses `trust` where a test is needed.
pub fn verify_trust(array: &Array, span: Span) -> Option<Diagnostic> {
    if array.check != Check::Trust {
        return None;
    }
    let needed = array.guards.iter().find(|g| g.kept)?;
    Some(
        Diagnostic::new(
            &codes::TRUST_IS_WRONG,
            span,
            format!("a test is needed: {}", needed.effect),
        )
        .note(needed.reason.clone())
        .help("use `auto`, which keeps only the tests that are needed"),
    )
}
