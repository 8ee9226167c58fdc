//! Is a mapping legal?
//!
//! * **Causality**: along every link, time grows lexicographically. It may stand still only between
//!   equations of one point, for values marked `broadcast`, and for sums whose operator may be
//!   regrouped.
//! * **No conflict**: no two points of the expanded domain share a slot (place, time).
//! * **Halos are wide enough**: what an owned point needs within a launch is in its tile.
//! * **Realisable**: every link can be built.
//!
//! Every question in Presburger arithmetic is decided exactly, for all sizes in the context. A
//! refusal carries a counterexample: concrete points that anyone can insert into the mapping.

mod halos;
mod stored;

use systola_ir::array::{Array, Link, Piece, Port, Realisation, Role};
use systola_ir::codes::legality as codes;
use systola_ir::diag::{Counterexample, MappedPoint};
use systola_ir::form::{Cond, Form, Poly, Rel};
use systola_ir::mapping::{PlaceLevel, TimeLevel};
use systola_ir::{Diagnostic, DimId, ParamId};

use crate::apply_mapping::reads_at;
use crate::clock::union_of;
use crate::decide::{Decide, Undecided};
use crate::dependences::forms;
use crate::digits::{at_second, digits};
use crate::failure::Failure;
use crate::localise::Localised;
use crate::resolve::SpaceTime;

/// Refuses an illegal mapping.
pub fn check_legality(
    array: &Array,
    localised: &Localised,
    st: &SpaceTime,
    decide: &Decide,
) -> Result<(), Failure> {
    let mut errors = Vec::new();
    let checker = Checker {
        array,
        localised,
        st,
        decide,
        params: array.param_names(),
    };
    for port in &array.ports {
        for link in &port.links {
            errors.extend(checker.causality(port, link)?);
        }
    }
    if errors.is_empty() {
        errors.extend(checker.memory()?);
        errors.extend(checker.stored()?);
    }
    errors.extend(checker.conflict()?);
    errors.extend(checker.user_reverse()?);
    if errors.is_empty() {
        errors.extend(checker.crossings()?);
    }
    if errors.is_empty() && !array.tiles.is_empty() {
        errors.extend(checker.halos()?);
    }
    if errors.is_empty() {
        Ok(())
    } else {
        Err(Failure::Refused(errors))
    }
}

struct Checker<'a> {
    array: &'a Array,
    localised: &'a Localised,
    st: &'a SpaceTime,
    decide: &'a Decide,
    params: Vec<String>,
}

/// What would make a link legal that stands still in time.
enum Mend {
    /// A directive of the mapping.
    Broadcast,
    /// A promise of the system.
    Law,
    /// A schedule only.
    Time,
}

/// May time stand still along a link?
enum Standing {
    Allowed,
    Forbidden(Mend),
}

impl Checker<'_> {
    fn n(&self) -> usize {
        self.array.dims.len()
    }

    fn standing(&self, port: &Port) -> Standing {
        if self.st.broadcast.contains(&port.source) {
            return Standing::Allowed;
        }
        if port.sink == port.source
            && let Role::Accumulation { op, .. } = &self.array.cells[port.source.index()].role
        {
            if self.localised.may_regroup(port.source, *op) {
                return Standing::Allowed;
            }
            return Standing::Forbidden(Mend::Law);
        }
        match self.array.cells[port.source.index()].role {
            Role::Propagation { .. } | Role::Carry { .. } => Standing::Forbidden(Mend::Broadcast),
            Role::Accumulation { .. } | Role::Plain => Standing::Forbidden(Mend::Time),
        }
    }

    fn causality(&self, port: &Port, link: &Link) -> Result<Option<Diagnostic>, Failure> {
        let array = self.array;
        if matches!(
            link.realisation,
            Realisation::Wire | Realisation::Hole | Realisation::Reinject
        ) {
            return Ok(None);
        }
        let standing = self.standing(port);
        let allowed = matches!(standing, Standing::Allowed);
        if let Some(delay) = link
            .delay
            .iter()
            .map(Poly::as_constant)
            .collect::<Option<Vec<_>>>()
        {
            let zero = vec![0; delay.len()];
            if delay > zero || (allowed && delay == zero) {
                return Ok(None);
            }
        }
        let wrong = match not_later(&link.delay, allowed, &self.decide.context)? {
            Some(wrong) => wrong,
            None => return Ok(None),
        };
        // A delay depends on parameters only, and most are positive for all of them.
        if self.decide.is_empty(&wrong, 0)? {
            return Ok(None);
        }
        let e = self.array.extend_distance(&port.distance);
        let live = reads_at(port, &self.array.cells, &e, &self.array.tiles)?;
        let question = live.and(link.guard.clone()).and(wrong);
        let Some((params, point)) = self.decide.sample(&question, self.n())? else {
            return Ok(None);
        };
        let source: Vec<i128> = point
            .iter()
            .zip(&e)
            .map(|(z, e)| Ok(z - e.eval(&params)?))
            .collect::<Result<_, systola_ir::form::Overflow>>()?;
        let cell = &self.array.cells[port.source.index()].name;
        let sink = &self.array.cells[port.sink.index()].name;
        let shown = |list: &[Poly]| tuple(list.iter().map(|p| p.display(&self.params).to_string()));
        let e_text = shown(&port.distance);
        let delay_text = shown(&link.delay);
        let values: Vec<i128> = link
            .delay
            .iter()
            .map(|d| d.eval(&params))
            .collect::<Result<_, _>>()?;
        let stands = values.iter().all(|v| *v == 0);
        let message = if stands {
            format!(
                "dependence {e_text} of `{cell}` takes no time: `{sink}` would use it in the step in which it is made"
            )
        } else {
            format!(
                "dependence {e_text} of `{cell}` goes back in time: it takes {delay_text} steps"
            )
        };
        let help = match standing {
            Standing::Forbidden(Mend::Broadcast) if stands => format!(
                "if all PEs may use `{cell}` in the step in which it is made, write `broadcast {cell};` \
                 below `time = …;` in the mapping `{}`",
                array.name
            ),
            Standing::Forbidden(Mend::Law) if stands => format!(
                "declare the sum `associative` or `reorderable` to let it become a tree: \
                 `var {cell}: {} reorderable = …;`",
                array.cells[port.source.index()].ty
            ),
            _ => format!(
                "choose a `time` whose product with {e_text} is positive{}",
                self.suggest(port)
            ),
        };
        Ok(Some(
            Diagnostic::new(&codes::NOT_CAUSAL, self.st.time_span, message)
                .here(format!("gives {e_text} a delay of {delay_text}"))
                .also(port.span, format!("`{cell}` is read here"))
                .help(help)
                .counterexample(self.example(&params, &[source, point])?),
        ))
    }

    /// A later launch reads a value only after its owner has stored it. If launches do not depend
    /// on tile indices, the owner runs in the same launch as every other copy.
    fn memory(&self) -> Result<Option<Diagnostic>, Failure> {
        let array = self.array;
        let (n, n_tiles) = (self.n(), array.tiles.len());
        let launches: Vec<usize> = (0..array.time.len())
            .filter(|k| array.time[*k].level == TimeLevel::Launch)
            .collect();
        let by_tile = array.pieces.iter().any(|piece| {
            let forms = launches.iter().map(|k| &piece.time[*k]);
            let mut dims = forms.flat_map(Form::dims);
            dims.any(|d| d.index() < n_tiles)
        });
        if !by_tile {
            return Ok(None);
        }
        for port in &array.ports {
            let e = array.extend_distance(&port.distance);
            // The owner's tile indices are additional coordinates.
            let owner = |d: DimId| {
                if d.index() < n_tiles {
                    return Some(Form::from(DimId::from(n + d.index())));
                }
                Some(Form::from(d).sub(&Form::from(e[d.index()].clone())))
            };
            let live = reads_at(port, &array.cells, &e, &array.tiles)?
                .and(array.owned().map(&|f| f.substitute(&owner))?);
            let through_memory = |l: &&Link| l.realisation == Realisation::Launch;
            for link in port.links.iter().filter(through_memory) {
                for (sink, source) in pairs(&array.pieces) {
                    let mut late = Vec::new();
                    let mut equal = Cond::TRUE;
                    for k in &launches {
                        let (here, there) = (&sink.time[*k], source.time[*k].substitute(&owner)?);
                        let after = Cond::Cmp(Rel::Gt, there.clone(), here.clone());
                        late.push(equal.clone().and(after));
                        equal = equal.and(Cond::Cmp(Rel::Eq, there, here.clone()));
                    }
                    late.push(equal);
                    let question = live
                        .clone()
                        .and(link.guard.clone())
                        .and(sink.cond.clone())
                        .and(source.cond.map(&|f| f.substitute(&owner))?)
                        .and(Cond::Or(late));
                    let Some((params, point)) = self.decide.sample(&question, n + n_tiles)? else {
                        continue;
                    };
                    let (z, owners) = point.split_at(n);
                    let mut from = owners.to_vec();
                    for (z, e) in z.iter().zip(&e).skip(n_tiles) {
                        from.push(z - e.eval(&params)?);
                    }
                    let cell = &array.cells[port.source.index()].name;
                    return Ok(Some(
                        Diagnostic::new(
                            &codes::NOT_CAUSAL,
                            self.st.time_span,
                            format!("`{cell}` is read from memory before the launch of its owner is over"),
                        )
                        .also(port.span, format!("`{cell}` is read here"))
                        .help("let `launch` not depend on the index of an overlapped tile")
                        .counterexample(self.example(&params, &[from, z.to_vec()])?),
                    ));
                }
            }
        }
        Ok(None)
    }

    /// Which iterators need which sign.
    fn suggest(&self, port: &Port) -> String {
        let wants: Vec<String> = port
            .distance
            .iter()
            .zip(&self.localised.system.dims)
            .filter_map(|(e, dim)| match e.as_constant() {
                Some(c) if c > 0 => Some(format!("a larger coefficient of `{}`", dim.name)),
                Some(c) if c < 0 => Some(format!("a smaller coefficient of `{}`", dim.name)),
                _ => None,
            })
            .collect();
        if wants.is_empty() {
            String::new()
        } else {
            format!(": {} helps", wants.join(" or "))
        }
    }

    fn conflict(&self) -> Result<Option<Diagnostic>, Failure> {
        let n = self.n();
        let pieces = &self.array.pieces;
        let domain = self.domain();
        for (i, first) in pieces.iter().enumerate() {
            for (j, second) in pieces.iter().enumerate().skip(i) {
                let here: Vec<Form> = first.place.iter().chain(&first.time).cloned().collect();
                let there: Vec<Form> = second.place.iter().chain(&second.time).cloned().collect();
                if i == j && is_injective_everywhere(&here, n)? {
                    continue;
                }
                let second_domain = domain
                    .clone()
                    .and(second.cond.clone())
                    .map(&|f| at_second(f, n).map_err(|_| systola_ir::form::Overflow))?;
                let pair = domain.clone().and(first.cond.clone()).and(second_domain);
                let mut question = pair.clone();
                if i == j {
                    for form in digits(&here, n, &pair, self.decide)? {
                        let other = at_second(&form, n)?;
                        question = question.and(Cond::Cmp(Rel::Eq, form, other));
                    }
                    question = question.and(lex_less(n));
                } else {
                    for (a, b) in here.iter().zip(&there) {
                        question = question.and(Cond::Cmp(Rel::Eq, a.clone(), at_second(b, n)?));
                    }
                }
                if let Some((params, point)) = self.decide.sample(&question, 2 * n)? {
                    let (a, b) = point.split_at(n);
                    let example = self.example(&params, &[a.to_vec(), b.to_vec()])?;
                    let slot = &example.points[0];
                    let message = format!(
                        "points {} and {} share the slot place {}, time {}",
                        numbers(a),
                        numbers(b),
                        numbers(&slot.place),
                        numbers(&slot.time)
                    );
                    let difference: Vec<i128> = b.iter().zip(a).map(|(b, a)| b - a).collect();
                    return Ok(Some(
                        Diagnostic::new(&codes::CONFLICT, self.st.place_span, message)
                            .here("two points on one PE at one time")
                            .help(self.tell_apart(&difference, &first.time))
                            .counterexample(example),
                    ));
                }
            }
        }
        Ok(None)
    }

    /// How to give two points of one slot different ones.
    fn tell_apart(&self, difference: &[i128], time: &[Form]) -> String {
        let system = &self.localised.system;
        let moved = difference.iter().zip(&system.dims).find(|(d, _)| **d != 0);
        let by = numbers(difference);
        let Some((_, dim)) = moved else {
            return format!("the mapping does not tell points apart that differ by {by}");
        };
        let example = match time {
            [time] => format!(
                ", such as `time = ({}, {})`",
                forms(system, std::slice::from_ref(time)),
                dim.name
            ),
            _ => String::new(),
        };
        format!(
            "the mapping does not tell points apart that differ by {by}: let the place or the time \
             depend on `{}`{example}",
            dim.name
        )
    }

    /// Every point at which some cell computes.
    fn domain(&self) -> Cond {
        let domains: Vec<&Cond> = self.array.cells.iter().map(|c| &c.domain).collect();
        union_of(&domains)
    }

    fn user_reverse(&self) -> Result<Vec<Diagnostic>, Failure> {
        let mut errors = Vec::new();
        for binding in &self.st.reverse {
            let question = self.domain().and(Cond::Cmp(
                Rel::Ne,
                binding.given.clone(),
                binding.expected.clone(),
            ));
            let Some((params, point)) = self.decide.sample(&question, self.n())? else {
                continue;
            };
            let given = binding.given.eval(&params, &point)?;
            let expected = binding.expected.eval(&params, &point)?;
            errors.push(
                Diagnostic::new(
                    &codes::WRONG_REVERSE,
                    binding.span,
                    format!(
                        "the reverse transform gives {} = {given} for the slot of a point with {} = {expected}",
                        binding.name, binding.name
                    ),
                )
                .help("leave it out: the compiler derives one")
                .counterexample(self.example(&params, &[point])?),
            );
        }
        Ok(errors)
    }

    /// Refuses links that cannot be built: between blocks of one launch that wait for each other
    /// without flags. A tree may cross blocks, by look-back or in two launches.
    fn crossings(&self) -> Result<Vec<Diagnostic>, Failure> {
        let array = self.array;
        let mut errors = Vec::new();
        for port in array.ports.iter().filter(|_| !self.st.flags) {
            // A tree can be cut at the edges of blocks, a chain of steps in one tick cannot.
            let free = match &array.cells[port.source.index()].role {
                Role::Propagation { .. } => true,
                Role::Accumulation { op, .. } => {
                    port.sink == port.source && self.localised.may_regroup(port.source, *op)
                }
                Role::Carry { .. } | Role::Plain => false,
            };
            for link in &port.links {
                let moved: Vec<String> = array
                    .place
                    .iter()
                    .zip(&link.displacement)
                    .filter(|(c, d)| c.level == PlaceLevel::Block && !d.is_zero())
                    .map(|(c, d)| format!("{} {}", d.display(&self.params), c.name))
                    .collect();
                let crosses = match link.realisation {
                    Realisation::Flags => true,
                    Realisation::Broadcast | Realisation::Tree => !free && !moved.is_empty(),
                    Realisation::Wire
                    | Realisation::Register
                    | Realisation::Buffer
                    | Realisation::Shuffle
                    | Realisation::Shared
                    | Realisation::Launch
                    | Realisation::LookBack
                    | Realisation::Reinject
                    | Realisation::Message
                    | Realisation::Hole => false,
                };
                if !crosses {
                    continue;
                }
                let e = array.extend_distance(&port.distance);
                let live = reads_at(port, &array.cells, &e, &array.tiles)?;
                let used = live.and(link.guard.clone());
                let Some((params, point)) = self.decide.sample(&used, self.n())? else {
                    continue;
                };
                let source: Vec<i128> = point
                    .iter()
                    .zip(&e)
                    .map(|(z, e)| Ok(z - e.eval(&params)?))
                    .collect::<Result<_, systola_ir::form::Overflow>>()?;
                errors.push(
                    Diagnostic::new(
                        &codes::CROSSES_BLOCKS,
                        port.span,
                        format!(
                            "`{}` crosses blocks ({}) within one launch",
                            array.cells[port.source.index()].name,
                            moved.join(", ")
                        ),
                    )
                    .help("put the crossing into `launch`, recompute it with `tile … overlap`, or allow `flags`")
                    .counterexample(self.example(&params, &[source, point])?),
                );
                break;
            }
        }
        Ok(errors)
    }

    fn slot(&self, params: &[i128], z: &[i128]) -> Result<(Vec<i128>, Vec<i128>), Failure> {
        for piece in &self.array.pieces {
            if piece.cond.eval(params, z)? {
                let eval = |forms: &[Form]| {
                    forms
                        .iter()
                        .map(|f| f.eval(params, z))
                        .collect::<Result<Vec<_>, _>>()
                };
                return Ok((eval(&piece.place)?, eval(&piece.time)?));
            }
        }
        Ok((Vec::new(), Vec::new()))
    }

    fn example(&self, params: &[i128], points: &[Vec<i128>]) -> Result<Counterexample, Failure> {
        let points = points
            .iter()
            .map(|z| {
                let (place, time) = self.slot(params, z)?;
                Ok(MappedPoint {
                    point: z.clone(),
                    place,
                    time,
                })
            })
            .collect::<Result<_, Failure>>()?;
        Ok(Counterexample {
            params: self
                .params
                .iter()
                .cloned()
                .zip(params.iter().copied())
                .collect(),
            dims: self.array.dims.clone(),
            points,
        })
    }
}

/// All pairs of pieces.
fn pairs(pieces: &[Piece]) -> impl Iterator<Item = (&Piece, &Piece)> {
    pieces
        .iter()
        .flat_map(move |a| pieces.iter().map(move |b| (a, b)))
}

/// z before z' in lexicographic order, on pairs.
fn lex_less(n: usize) -> Cond {
    let mut cases = Vec::new();
    for k in 0..n {
        let mut case = Cond::TRUE;
        for j in 0..k {
            case = case.and(Cond::cmp(Rel::Eq, DimId::from(j), DimId::from(n + j)));
        }
        cases.push(case.and(Cond::cmp(Rel::Lt, DimId::from(k), DimId::from(n + k))));
    }
    Cond::Or(cases)
}

/// Linear forms of full rank separate all points, whatever the domain.
fn is_injective_everywhere(forms: &[Form], n: usize) -> Result<bool, Undecided> {
    let mut rows = Vec::new();
    for form in forms.iter().filter(|f| f.is_affine()) {
        let row: Option<Vec<i128>> = (0..n)
            .map(|d| form.coefficient(DimId::from(d)).as_constant())
            .collect();
        rows.extend(row);
    }
    if rows.len() < n {
        return Ok(false);
    }
    Ok(affine::Matrix::from_rows(n, &rows)?.rank()? == n)
}

/// The condition under which a delay is not positive (or negative, if standing still is allowed);
/// `None` if that is impossible for parameters in the context.
fn not_later(delay: &[Poly], allowed: bool, context: &Cond) -> Result<Option<Cond>, Undecided> {
    let mut cases = Vec::new();
    let mut equal = Cond::TRUE;
    for d in delay {
        if d.degree() <= 1 {
            let form = Form::from(d.clone());
            cases.push(equal.clone().and(Cond::cmp(Rel::Lt, form.clone(), 0)));
            equal = equal.and(Cond::cmp(Rel::Eq, form, 0));
        } else if is_positive(d, context)? {
            equal = Cond::Const(false);
            break;
        } else {
            return Err(Undecided::NeedsSizes(
                "a delay multiplies parameters, and its sign depends on them".into(),
            ));
        }
    }
    if !allowed {
        cases.push(equal);
    }
    cases.retain(|c| *c != Cond::Const(false));
    Ok((!cases.is_empty()).then_some(Cond::Or(cases)))
}

/// A sufficient test: with every parameter replaced by its lower bound plus a natural number, all
/// coefficients are natural and the constant is positive.
fn is_positive(poly: &Poly, context: &Cond) -> Result<bool, Undecided> {
    let mut shifted = Poly::zero();
    for (monomial, c) in poly.terms() {
        let mut term = Poly::constant(c);
        for p in monomial {
            let bound = lower_bound(*p, context);
            let Some(bound) = bound else { return Ok(false) };
            term = term.mul(&Poly::param(*p).add(&Poly::constant(bound)))?;
        }
        shifted = shifted.add(&term);
    }
    let constant = shifted
        .terms()
        .find(|(m, _)| m.is_empty())
        .map_or(0, |(_, c)| c);
    Ok(constant > 0 && shifted.terms().all(|(_, c)| c >= 0))
}

/// The value that a context fixes a parameter to.
fn fixed_value(p: ParamId, context: &Cond) -> Option<i128> {
    let parts: Vec<&Cond> = match context {
        Cond::And(parts) => parts.iter().collect(),
        other => vec![other],
    };
    parts.into_iter().find_map(|part| match part {
        Cond::Cmp(Rel::Eq, left, right) if *left == Form::from(p) => right.as_constant(),
        _ => None,
    })
}

fn lower_bound(p: ParamId, context: &Cond) -> Option<i128> {
    let parts: Vec<&Cond> = match context {
        Cond::And(parts) => parts.iter().collect(),
        other => vec![other],
    };
    parts
        .into_iter()
        .filter_map(|part| match part {
            Cond::Cmp(rel, left, right) if *left == Form::from(p) => {
                let bound = right.as_constant()?;
                match rel {
                    Rel::Ge | Rel::Eq => Some(bound),
                    Rel::Gt => Some(bound + 1),
                    Rel::Ne | Rel::Lt | Rel::Le => None,
                }
            }
            _ => None,
        })
        .max()
}

fn tuple(parts: impl Iterator<Item = String>) -> String {
    let parts: Vec<String> = parts.collect();
    match parts.as_slice() {
        [one] => one.clone(),
        many => format!("({})", many.join(", ")),
    }
}

/// A vector of numbers as text.
pub(crate) fn numbers(list: &[i128]) -> String {
    format!(
        "({})",
        list.iter()
            .map(i128::to_string)
            .collect::<Vec<_>>()
            .join(", ")
    )
}
