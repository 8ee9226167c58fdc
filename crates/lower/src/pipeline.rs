//! From a system and a mapping to a checked array, top to bottom.

use systola_ir::array::{Array, Reverse};
use systola_ir::codes::limits;
use systola_ir::diag::Kind;
use systola_ir::form::{Cond, Form, Rel};
use systola_ir::kernel::Program;
use systola_ir::mapping::Mapping;
use systola_ir::system::visit::walk;
use systola_ir::system::{Expr, System};
use systola_ir::target::Machine;
use systola_ir::{Diagnostic, DimId, Scalar, VarId};

use crate::align::align;
use crate::build_array::{Setting, build_array};
use crate::cost::report;
use crate::decide::{Decide, Undecided};
use crate::failure::Failure;
use crate::legality::numbers;
use crate::localise::{Localised, localise};
use crate::lower_kernel::{lower_kernel, one_lane};
use crate::names::LANES;
use crate::periodic::open_rings;
use crate::report::{Report, Scope};
use crate::specialise::specialise;
use crate::split_sums::look_back;
use crate::storage::queues::scalars;
use crate::watch::{Watch, unwatched};

/// A legal mapping and its array.
#[derive(Clone, Debug)]
pub struct Analysed {
    /// The system as the mapping sees it: localised, and at given sizes if that was needed.
    pub localised: Localised,
    pub array: Array,
    pub report: Report,
}

/// Checks a mapping for all sizes if that can be decided, and otherwise at the given ones.
///
/// If all sizes are given, the array is for these sizes: registers are counted, guards are proved
/// unnecessary and the reverse transform is derived with them.
pub fn analyse(
    system: &System,
    mapping: &Mapping,
    sizes: &[Option<i128>],
) -> Result<Analysed, Vec<Diagnostic>> {
    let analysed =
        unwatched(|watch| analyse_once(system, mapping, sizes, Scope::AllSizes, LANES, watch));
    match analysed {
        Ok(mut analysed) => {
            if all_given(sizes) && is_open(&analysed.array) {
                close(system, mapping, sizes, &mut analysed);
            }
            Ok(analysed)
        }
        Err(Failure::Refused(errors)) if needs_sizes(&errors) && all_given(sizes) => at_sizes(
            system,
            mapping,
            sizes,
            "a size stands where a constant must",
        ),
        Err(Failure::Refused(errors)) if all_given(sizes) => {
            // Illegal at some sizes; the user asked about these.
            let why = errors
                .first()
                .map_or(String::new(), |e| format!("refused at other sizes, {e}"));
            at_sizes(system, mapping, sizes, &why)
        }
        Err(Failure::Undecided(Undecided::NeedsSizes(why))) if all_given(sizes) => {
            at_sizes(system, mapping, sizes, &why)
        }
        Err(Failure::Undecided(Undecided::TooComplex(error))) if all_given(sizes) => {
            at_sizes(system, mapping, sizes, &error.to_string())
        }
        Err(failure) => Err(diagnostics(mapping, sizes, failure)),
    }
}

/// The system in the common space of a mapping.
pub fn aligned(system: &System, mapping: &Mapping) -> Result<System, Vec<Diagnostic>> {
    let open = vec![None; system.params.len()];
    let aligned = align(system, mapping).map_err(|failure| diagnostics(mapping, &open, failure))?;
    Ok(aligned.into_owned())
}

/// A legal mapping and the program that runs it.
#[derive(Clone, Debug)]
pub struct Compiled {
    pub analysed: Analysed,
    pub program: Program,
}

/// Lowers a mapping to kernels: for all sizes if possible, and otherwise for the given ones. The
/// parameters in `fix` become numbers in any case.
pub fn compile(
    system: &System,
    mapping: &Mapping,
    sizes: &[Option<i128>],
    fix: &[bool],
    machine: &Machine,
    watch: &mut Watch<'_>,
) -> Result<Compiled, Vec<Diagnostic>> {
    let lanes = i128::from(machine.lanes(widest(system)));
    compile_for(system, mapping, sizes, fix, machine, lanes, watch).map_err(|errors| {
        let is_mistake = errors.iter().any(|e| e.kind() == Kind::Mistake);
        if lanes == LANES || !is_mistake || analyse(system, mapping, sizes).is_err() {
            return errors;
        }
        let why = format!(
            "L is {lanes} on this target, and the mapping is legal where L is {LANES}, for which `check` looks at it"
        );
        let with_why = |error: Diagnostic| match error.help.clone() {
            Some(help) => error.help(format!("{help}; {why}")),
            None => error.help(why.clone()),
        };
        errors.into_iter().map(with_why).collect()
    })
}

fn compile_for(
    system: &System,
    mapping: &Mapping,
    sizes: &[Option<i128>],
    fix: &[bool],
    machine: &Machine,
    lanes: i128,
    watch: &mut Watch<'_>,
) -> Result<Compiled, Vec<Diagnostic>> {
    let chosen: Vec<Option<i128>> = sizes
        .iter()
        .zip(fix)
        .map(|(size, fix)| size.filter(|_| *fix))
        .collect();
    let open = vec![None; sizes.len()];
    let mut attempt = |chosen: &[Option<i128>], scope: Scope| -> Result<Compiled, Failure> {
        let fixed = specialise(system, chosen).map_err(|d| Failure::Refused(vec![d]))?;
        // Registers are counted for all sizes that are left open.
        let analysed = analyse_once(&fixed, mapping, &open, scope, lanes, watch)?;
        let decide = Decide {
            n_params: analysed.localised.system.params.len(),
            context: analysed.localised.system.context_cond(),
        };
        let program = lower_kernel(&analysed.array, &decide, machine, watch)?;
        Ok(Compiled { analysed, program })
    };
    let why = match attempt(&chosen, Scope::AllSizes) {
        Ok(compiled) => return Ok(compiled),
        Err(failure) if chosen == sizes || !all_given(sizes) => {
            return Err(diagnostics(mapping, sizes, failure));
        }
        Err(Failure::Undecided(Undecided::NeedsSizes(why))) => why,
        Err(Failure::Undecided(Undecided::TooComplex(error))) => error.to_string(),
        Err(Failure::Refused(errors)) => errors
            .first()
            .map_or(String::new(), |e| format!("refused at other sizes, {e}")),
    };
    attempt(sizes, Scope::GivenSizes(why)).map_err(|failure| diagnostics(mapping, sizes, failure))
}

/// Bits of the widest scalar that a system computes with.
pub fn widest(system: &System) -> u32 {
    let bits = system.vars.iter().flat_map(|v| scalars(&v.ty));
    bits.map(Scalar::bits).max().unwrap_or(32)
}

/// Does the reverse transform have no closed form for all sizes?
fn is_open(array: &Array) -> bool {
    array.pieces.iter().any(|p| p.reverse == Reverse::Scan)
}

/// For a mapping that is legal for all sizes but has parameters in its schedule: takes reverse
/// transform and guards from the given sizes.
fn close(system: &System, mapping: &Mapping, sizes: &[Option<i128>], analysed: &mut Analysed) {
    let why = "the reverse transform divides by parameters";
    let Ok(fixed) = at_sizes(system, mapping, sizes, why) else {
        return;
    };
    for (piece, at_sizes) in analysed.array.pieces.iter_mut().zip(fixed.array.pieces) {
        piece.reverse = at_sizes.reverse;
    }
    analysed.array.guards = fixed.array.guards;
    analysed.report.reverse = fixed.report.reverse;
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
    let analysed = unwatched(|watch| analyse_once(&fixed, mapping, sizes, scope, LANES, watch));
    analysed.map_err(|failure| diagnostics(mapping, sizes, failure))
}

/// The diagnostics of a failure. They ask for sizes only if some are missing.
fn diagnostics(mapping: &Mapping, sizes: &[Option<i128>], failure: Failure) -> Vec<Diagnostic> {
    let given = sizes.iter().all(Option::is_some);
    match failure {
        Failure::Refused(errors) => errors,
        Failure::Undecided(undecided) => vec![undecided_diagnostic(mapping, given, undecided)],
    }
}

fn undecided_diagnostic(mapping: &Mapping, given: bool, undecided: Undecided) -> Diagnostic {
    match undecided {
        Undecided::NeedsSizes(why) if given => Diagnostic::new(
            &limits::NOT_AT_SIZES,
            mapping.span,
            format!(
                "`{}` cannot be made into an array at these sizes",
                mapping.name
            ),
        )
        .note(why)
        .help("use another place or time"),
        Undecided::TooComplex(error) if given => Diagnostic::new(
            &limits::TOO_COMPLEX,
            mapping.span,
            format!("`{}` is too complex to decide: {error}", mapping.name),
        )
        .help("simplify the mapping"),
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

/// A prefix is passed on from each point to the next one, which must exist.
fn gapped_scan(system: &System) -> Result<Option<Diagnostic>, Undecided> {
    let decide = Decide {
        n_params: system.params.len(),
        context: system.context_cond(),
    };
    let n = system.dims.len();
    for (v, var) in system.vars.iter().enumerate() {
        let mut scans = Vec::new();
        walk(&var.body, &mut |e| {
            if let Expr::Scan { dim, span, .. } = e {
                scans.push((*dim, *span));
            }
        });
        for (dim, span) in scans {
            let domain = system.var_domain(VarId::from(v));
            let back = |by: Form| {
                domain.map(&|f| f.substitute(&|d| (d == dim).then(|| Form::from(d).sub(&by))))
            };
            let far = Form::from(DimId::from(n));
            let question = domain
                .clone()
                .and(back(Form::from(1))?.negate())
                .and(back(far.clone())?)
                .and(Cond::Cmp(Rel::Ge, far, Form::from(2)));
            let Some((params, point)) = decide.sample(&question, n + 1)? else {
                continue;
            };
            let mut before = point[..n].to_vec();
            before[dim.index()] -= point[n];
            return Ok(Some(
                Diagnostic::new(
                    &limits::SCAN_WITH_GAPS,
                    span,
                    format!(
                        "the prefix along `{}` jumps from {} to {} with {}",
                        system.dim(dim).name,
                        numbers(&before),
                        numbers(&point[..n]),
                        named(system.param_names(), &params)
                    ),
                )
                .help("count the points that are there: a new iterator without gaps"),
            ));
        }
    }
    Ok(None)
}

/// A serialised sum needs a first term at every point.
fn empty_sum(system: &System) -> Result<Option<Diagnostic>, Undecided> {
    let decide = Decide {
        n_params: system.params.len(),
        context: system.context_cond(),
    };
    let n = system.dims.len();
    for (k, dim) in system.bound.iter().enumerate() {
        let Some((lo, hi)) = &dim.range else { continue };
        // Ranges of the sums around it.
        let around = (0..k)
            .filter_map(|j| system.dim_range(DimId::from(n + j)))
            .fold(system.domain_cond(), Cond::and);
        let empty = around.and(Cond::Cmp(Rel::Ge, lo.clone(), hi.clone()));
        let Some((params, point)) = decide.sample(&empty, n + system.bound.len())? else {
            continue;
        };
        let help = if lo.dims().is_empty() && hi.dims().is_empty() {
            let params = system.param_names();
            format!(
                "state that it has terms: write `where {} < {}` after the parameters of `{}`, or add the condition to its `where`",
                lo.display(&params, &[]),
                hi.display(&params, &[]),
                system.name
            )
        } else {
            "restrict the domain to the points where the sum has terms".to_string()
        };
        return Ok(Some(
            Diagnostic::new(
                &limits::EMPTY_SUM,
                dim.span,
                format!(
                    "the sum over `{}` is empty at {} with {}",
                    dim.name,
                    named(system.dim_names(), &point[..n]),
                    named(system.param_names(), &params)
                ),
            )
            .help(help),
        ));
    }
    Ok(None)
}

fn analyse_once(
    system: &System,
    mapping: &Mapping,
    sizes: &[Option<i128>],
    scope: Scope,
    lanes: i128,
    watch: &mut Watch<'_>,
) -> Result<Analysed, Failure> {
    let values: Option<Vec<i128>> = sizes.iter().copied().collect();
    let aligned = align(system, mapping)?;
    watch.goes_on("align");
    let system = aligned.as_ref();
    let batch = system.batch.as_ref().map(|b| b.name.as_str());
    let opened = open_rings(system, mapping)?;
    let (system, rings) = match &opened {
        None => (system, &[][..]),
        Some((opened, rings)) => (opened, rings.as_slice()),
    };
    // Later steps see uniform references, or read values through memory.
    let localised = localise(system, Some(mapping), lanes).map_err(Failure::Refused)?;
    watch.goes_on("localise");
    if let Some(error) = gapped_scan(system)? {
        return Err(Failure::Refused(vec![error]));
    }
    if !localised.through_memory
        && let Some(error) = empty_sum(system)?
    {
        return Err(Failure::Refused(vec![error]));
    }
    let setting = Setting {
        batch,
        rings,
        lanes,
        values: values.as_deref(),
    };
    let array = build_array(&localised, mapping, &setting, watch)?;
    let decide = Decide {
        n_params: localised.system.params.len(),
        context: localised.system.context_cond(),
    };
    let mut report = report(&array, &localised.system, scope, values.as_deref())?;
    let lanes = u32::try_from(lanes).unwrap_or(1);
    report.notes.extend(one_lane(&array, &decide, lanes));
    report.notes.extend(look_back::notes(&array));
    watch.goes_on("report");
    Ok(Analysed {
        localised,
        array,
        report,
    })
}

/// `i = 3, j = 0`.
fn named(names: Vec<String>, values: &[i128]) -> String {
    let list: Vec<String> = names
        .iter()
        .zip(values)
        .map(|(name, value)| format!("{name} = {value}"))
        .collect();
    list.join(", ")
}
