//! Are halos wide enough? What an owned point needs within a launch must be in its tile.
//!
//! A copy whose source is not in the tile is a hole. A hole is harmless as long as no owned value
//! is computed from it. If no value returns to its cell, each [path](paths) of a value is examined;
//! otherwise the question is how often each step is taken.

mod paths;

use std::collections::{BTreeSet, VecDeque};

use systola_ir::array::Realisation;
use systola_ir::codes::legality as codes;
use systola_ir::form::{Cond, Form, Poly, Rel};
use systola_ir::mapping::TimeLevel;
use systola_ir::{Diagnostic, DimId, ParamId, VarId};

use super::{Checker, fixed_value, numbers};
use crate::apply_mapping::reads_at;
use crate::decide::{Sample, Undecided};
use crate::failure::Failure;
use paths::Paths;

impl Checker<'_> {
    /// Does a hole reach an owned point of its tile within a launch?
    pub(super) fn halos(&self) -> Result<Option<Diagnostic>, Failure> {
        let array = self.array;
        let n = self.n();
        let mut walks: Option<Walks> = None;
        for port in &array.ports {
            for link in &port.links {
                if link.realisation != Realisation::Hole {
                    continue;
                }
                let e = array.extend_distance(&port.distance);
                let live = reads_at(port, &array.cells, &e, &array.tiles)?;
                let hole = live.and(link.guard.clone());
                let needed = match Paths::from_cell(array, port.sink)? {
                    Some(paths) => paths.needed_by_owners(&hole, array, self.decide)?,
                    None => {
                        let walks = match &mut walks {
                            Some(walks) => walks,
                            empty => empty.insert(self.walks()?),
                        };
                        self.on_a_cycle(walks, port.sink, hole)?
                    }
                };
                let Some((params, point)) = needed else {
                    continue;
                };
                let z = point[..n].to_vec();
                let source: Vec<i128> = z
                    .iter()
                    .zip(&e)
                    .map(|(z, e)| Ok(z - e.eval(&params)?))
                    .collect::<Result<_, systola_ir::form::Overflow>>()?;
                let cell = &array.cells[port.source.index()].name;
                return Ok(Some(
                    Diagnostic::new(
                        &codes::HALO_TOO_NARROW,
                        self.st.place_span,
                        format!(
                            "the halo is too narrow: the copy at {} needs `{cell}` at {}, which is not in its tile",
                            numbers(&z),
                            numbers(&source)
                        ),
                    )
                    .also(port.span, format!("`{cell}` is read here"))
                    .help("widen the overlap, or let fewer steps share a launch")
                    .counterexample(self.example(&params, &[source, z])?),
                ));
            }
        }
        Ok(None)
    }

    /// A hole at which `cell` lacks a value that an owned point needs, if values may return to a
    /// cell: the number of times that each step is taken is then an unknown.
    fn on_a_cycle(
        &self,
        walks: &Walks,
        cell: VarId,
        hole: Cond,
    ) -> Result<Option<Sample>, Failure> {
        // The steps can follow each other: each group is left at most as often as it is entered,
        // and the first group counts as entered once.
        let start = walks.steps.group[cell.index()];
        let balances = walks.balances.iter().map(|(group, balance)| {
            let balance = balance.plus(i128::from(*group == start));
            Cond::cmp(Rel::Ge, balance, 0)
        });
        let cond = balances.fold(hole, Cond::and).and(walks.arrives.clone());
        let n = self.n();
        self.needed_hole(cell, &cond, n, n + walks.steps.edges.len())
    }

    /// What the questions about all holes share.
    fn walks(&self) -> Result<Walks, Failure> {
        let array = self.array;
        let n = self.n();
        let steps = self.steps()?;
        let launches: Vec<usize> = (0..array.time.len())
            .filter(|k| array.time[*k].level == TimeLevel::Launch)
            .collect();
        let times = |k: usize| Form::from(DimId::from(n + k));
        let mut balances = Vec::new();
        for group in steps.groups() {
            let mut balance = Form::zero();
            for (k, step) in steps.edges.iter().enumerate() {
                if step.to == group && step.from != group {
                    balance = balance.add(&times(k));
                } else if step.from == group && step.to != group {
                    balance = balance.sub(&times(k));
                }
            }
            balances.push((group, balance));
        }
        let mut reached = Vec::with_capacity(n);
        for d in 0..n {
            let mut form = Form::from(DimId::from(d));
            for (k, step) in steps.edges.iter().enumerate() {
                form = form.add(&times(k).scale(&Poly::constant(step.by[d]))?);
            }
            reached.push(form);
        }
        let at_reached = |f: &Form| f.substitute(&|d| reached.get(d.index()).cloned());
        // z + Σ nₖ·eₖ is owned, in the same launch.
        let mut arrives = self.domain().and(array.owned()).map(&at_reached)?;
        for piece in &array.pieces {
            for k in &launches {
                let form = &piece.time[*k];
                arrives = arrives.and(Cond::Cmp(Rel::Eq, at_reached(form)?, form.clone()));
            }
        }
        for k in 0..steps.edges.len() {
            arrives = arrives.and(Cond::cmp(Rel::Ge, times(k), 0));
        }
        Ok(Walks {
            steps,
            balances,
            arrives,
        })
    }

    /// The steps by which values travel inside a tile.
    fn steps(&self) -> Result<Steps, Failure> {
        let array = self.array;
        let mut steps = Steps {
            group: (0..array.cells.len()).collect(),
            edges: Vec::new(),
        };
        for port in &array.ports {
            if port
                .links
                .iter()
                .any(|l| l.realisation == Realisation::Wire)
            {
                steps.join(port.source, port.sink);
            }
        }
        for port in &array.ports {
            let within = port.links.iter().any(|l| {
                !matches!(
                    l.realisation,
                    Realisation::Launch | Realisation::Reinject | Realisation::Wire
                )
            });
            if !within {
                continue;
            }
            let by: Option<Vec<i128>> = array
                .extend_distance(&port.distance)
                .iter()
                .map(Poly::as_constant)
                .collect();
            let Some(by) = by else {
                return Err(Undecided::NeedsSizes(
                    "a distance with a parameter inside an overlapped tile".into(),
                )
                .into());
            };
            let step = Step {
                from: steps.group[port.source.index()],
                to: steps.group[port.sink.index()],
                by,
            };
            if !steps.edges.contains(&step) {
                steps.edges.push(step);
            }
        }
        Ok(steps)
    }

    /// A hole that an owned point really needs, among the candidates of a condition whose paths may
    /// leave the domain or ignore a guard. `None` if there is no candidate.
    fn needed_hole(
        &self,
        cell: VarId,
        cond: &Cond,
        n: usize,
        total: usize,
    ) -> Result<Option<Sample>, Failure> {
        /// At most this many candidates are tried one by one.
        const MOST: usize = 20_000;
        let reach = self.array.tiles.iter().map(|t| 2 * (t.size + t.lo + t.hi));
        let roomy = (0..self.params.len())
            .map(|p| Cond::cmp(Rel::Ge, ParamId::from(p), reach.clone().max().unwrap_or(0)))
            .fold(cond.clone(), Cond::and);
        // Small sizes first, then sizes at which whole tiles lie inside the domain.
        for question in [cond, &roomy] {
            let Some((params, point)) = self.decide.sample(question, total)? else {
                if question == cond {
                    return Ok(None);
                }
                continue;
            };
            if self.hole_is_needed(&params, cell, &point[..n])? {
                return Ok(Some((params, point)));
            }
        }
        // At fixed sizes every candidate can be tried.
        let fixed: Option<Vec<i128>> = (0..self.params.len())
            .map(|p| fixed_value(ParamId::from(p), &self.decide.context))
            .collect();
        if let Some(params) = fixed {
            let value = |p: ParamId| params.get(p.index()).copied();
            let set = systola_ir::sets::set_of(
                &cond.map(&|f| f.fix_params(&value))?,
                affine::Space::new(0, total),
            )
            .map_err(Undecided::from)?
            .domain_of(n)
            .map_err(Undecided::from)?;
            let mut tried = 0;
            for point in set.points(&[]).map_err(Undecided::from)? {
                let point = point.map_err(Undecided::from)?;
                tried += 1;
                if tried > MOST {
                    break;
                }
                if self.hole_is_needed(&params, cell, &point)? {
                    return Ok(Some((params, point)));
                }
            }
            if tried <= MOST {
                return Ok(None);
            }
        }
        Err(Undecided::NeedsSizes(
            "a halo may be too narrow only along paths that leave the domain".into(),
        )
        .into())
    }

    /// Walks forward from a cell of a copy to the values computed from it in the tile: is an owned
    /// point reached?
    fn hole_is_needed(&self, params: &[i128], cell: VarId, from: &[i128]) -> Result<bool, Failure> {
        /// A longer walk is left to the answer of the sets.
        const MOST: usize = 200_000;
        let array = self.array;
        let owned = array.owned();
        let launch = |z: &[i128]| -> Result<Vec<i128>, Failure> {
            let (_, time) = self.slot(params, z)?;
            Ok(array
                .time
                .iter()
                .zip(time)
                .filter(|(c, _)| c.level == TimeLevel::Launch)
                .map(|(_, t)| t)
                .collect())
        };
        let start = launch(from)?;
        let mut seen = BTreeSet::from([(cell, from.to_vec())]);
        let mut open = VecDeque::from([(cell, from.to_vec())]);
        while let Some((cell, z)) = open.pop_front() {
            if owned.eval(params, &z)? {
                return Ok(true);
            }
            if seen.len() > MOST {
                return Ok(true);
            }
            for port in array.ports.iter().filter(|p| p.source == cell) {
                let e = array.extend_distance(&port.distance);
                let next: Vec<i128> = z
                    .iter()
                    .zip(&e)
                    .map(|(z, e)| Ok(z + e.eval(params)?))
                    .collect::<Result<_, systola_ir::form::Overflow>>()?;
                let sink = &array.cells[port.sink.index()];
                if !sink.domain.eval(params, &next)? || !port.when.eval(params, &next)? {
                    continue;
                }
                let state = (port.sink, next);
                if launch(&state.1)? == start && seen.insert(state.clone()) {
                    open.push_back(state);
                }
            }
        }
        Ok(false)
    }
}

/// Where the values of a point arrive, depending on how often each step is taken.
struct Walks {
    steps: Steps,
    /// For each group, how often it is entered minus how often it is left.
    balances: Vec<(usize, Form)>,
    /// They arrive at an owned point, in the same launch.
    arrives: Cond,
}

/// How values go from cell to cell inside a tile. Cells that pass values on at one point form a
/// group.
struct Steps {
    group: Vec<usize>,
    edges: Vec<Step>,
}

#[derive(PartialEq)]
struct Step {
    from: usize,
    to: usize,
    by: Vec<i128>,
}

impl Steps {
    fn join(&mut self, a: VarId, b: VarId) {
        let (kept, gone) = (self.group[a.index()], self.group[b.index()]);
        for group in &mut self.group {
            if *group == gone {
                *group = kept;
            }
        }
    }

    fn groups(&self) -> Vec<usize> {
        let mut groups = self.group.clone();
        groups.sort_unstable();
        groups.dedup();
        groups
    }
}
