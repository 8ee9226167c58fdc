//! From a localised system and a mapping to a checked array.

use systola_ir::Diagnostic;
use systola_ir::array::Array;
use systola_ir::codes::limits;
use systola_ir::mapping::Mapping;
use systola_ir::system::Expr;
use systola_ir::system::visit::walk;

use crate::apply_mapping::apply_mapping;
use crate::clock::{count_registers, domain};
use crate::decide::Decide;
use crate::failure::{Failure, limitation};
use crate::guards::{find_guards, verify_trust};
use crate::legality::check_legality;
use crate::localise::Localised;
use crate::periodic::Ring;
use crate::resolve::{SpaceTime, resolve};
use crate::reverse::reverse;
use crate::storage_maps::keep_values;
use crate::watch::Watch;

/// What a mapping is applied with.
pub struct Setting<'a> {
    /// The iterator that a batch became.
    pub batch: Option<&'a str>,
    pub rings: &'a [Ring],
    /// The number of lanes of the target.
    pub lanes: i128,
    /// All sizes, if they are known.
    pub values: Option<&'a [i128]>,
}

/// The array of a legal mapping.
pub fn build_array(
    localised: &Localised,
    mapping: &Mapping,
    setting: &Setting<'_>,
    watch: &mut Watch<'_>,
) -> Result<Array, Failure> {
    let decide = Decide {
        n_params: localised.system.params.len(),
        context: localised.system.context_cond(),
    };
    let mut st =
        resolve(localised, mapping, setting.batch, setting.lanes).map_err(Failure::Refused)?;
    watch.goes_on("resolve");
    let n_tiles = st.tiles.len();
    for tile in &mut st.tiles {
        let own = |ring: &&Ring| ring.dim.index() + n_tiles == tile.dim.index();
        tile.ring = setting
            .rings
            .iter()
            .find(own)
            .map(|ring| ring.length.clone());
    }
    if localised.through_memory
        && let Some(error) = not_through_memory(localised, &st)
    {
        return Err(error);
    }
    let mut array = apply_mapping(localised, &mapping.name, &st, &decide)?;
    watch.goes_on("apply-mapping");
    check_legality(&array, localised, &st, &decide)?;
    watch.goes_on("legality");
    if localised.through_memory {
        keep_values(&mut array, &st.stores, &decide)?;
        watch.goes_on("keep");
    }
    // Only an injective mapping has a reverse transform.
    let points = domain(&array);
    for n in 0..array.pieces.len() {
        array.pieces[n].reverse = reverse(&array, &array.pieces[n], &points, &decide);
    }
    watch.goes_on("reverse");
    count_registers(&mut array, &decide, setting.values)?;
    watch.goes_on("registers");
    // Loops over values that are kept visit nothing but points.
    if !localised.through_memory {
        array.guards = find_guards(&array, &decide);
    }
    watch.goes_on("guards");
    if let Some(error) = verify_trust(&array, st.check_span) {
        return Err(Failure::Refused(vec![error]));
    }
    debug_assert_eq!(array.verify(), Vec::<String>::new(), "{array}");
    Ok(array)
}

/// What values in memory do not go together with.
fn not_through_memory(localised: &Localised, st: &SpaceTime) -> Option<Failure> {
    let system = &localised.system;
    if !st.tiles.is_empty() {
        let error = Diagnostic::new(
            &limits::AFFINE_LINK,
            st.place_span,
            "values go through memory here, and a tile with overlap has copies of them",
        );
        return Some(Failure::Refused(vec![error.help(
            "leave `overlap` out; or carry values to their readers with `forward`, or align the variables, so that distances are constant",
        )]));
    }
    if !st.transfers.is_empty() && !system.bound.is_empty() {
        let message =
            "a point adds up its sums itself here, and their inputs have no window to transfer";
        return Some(limitation(st.place_span, message.to_string()));
    }
    for write in system.outputs.iter().flat_map(|o| &o.writes) {
        let mut reads = false;
        walk(&write.value, &mut |e| {
            reads |= matches!(e, Expr::Var { .. })
        });
        if !reads {
            let message = "this output reads no variable, and only points of variables are visited where values go through memory";
            return Some(limitation(write.span, message.to_string()));
        }
    }
    None
}
