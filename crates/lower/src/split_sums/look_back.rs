//! Sums that cross the blocks of one launch by look-back.
//!
//! Before: a chain S(z) = S(z − e) ⊕ term(z) whose links between blocks look back. After: the cell
//! `S_part` is the same chain, begun anew in each block. `S` is its part, combined in all blocks but
//! the first with what comes from the blocks before. That value arrives on the one link that looks
//! back, from the slot in which the part of a block is complete.
//!
//! The conditions are those of splitting a sum into launches, but a term may depend on other chains:
//! they are complete in the same launch.

use std::borrow::Cow;

use systola_ir::array::{Array, Cell, Link, Port, Realisation, Role};
use systola_ir::codes::limits;
use systola_ir::form::{Cond, Form, Poly};
use systola_ir::system::{Combine, Expr};
use systola_ir::{BinOp, Diagnostic, PortId, Scalar, VarId};

use crate::decide::Decide;
use crate::emit::fault_sites::may_fault;
use crate::failure::Failure;
use crate::localise::combine;
use crate::split_sums::{Between, Chain, PartAxis};
use crate::storage::chains::{Joins, own_ports};
use crate::storage::links::crosses;
use crate::storage::queues::scalars;
use crate::storage::slots::Slots;

/// A chain that is split into its parts in blocks or warps and what comes before them, as storage
/// and statements need it.
#[derive(Clone, Debug)]
pub struct SplitChain {
    /// The sum.
    pub whole: VarId,
    /// The cell with the parts.
    pub part: VarId,
    pub joins: Joins,
    pub up: bool,
    /// Coordinates of the slots that distinguish the parts of a launch; that of the blocks or warps
    /// along the chain is the last.
    pub axes: Vec<PartAxis>,
    /// The other coordinates of the slot in which a part is complete.
    pub fixed: Vec<(usize, Form)>,
    /// The points whose block or warp the chain enters from another one.
    pub later: Cond,
}

impl SplitChain {
    /// The only value of a coordinate at which a part is complete; `None` if parts differ in it.
    pub fn end(&self, k: usize) -> Option<&Form> {
        let mut all = self.fixed.iter();
        all.find(|(other, _)| *other == k).map(|(_, at)| at)
    }
}

/// The array in which all sums that look back are split into parts, and their chains.
pub fn with_look_back<'a>(
    array: &'a Array,
    decide: &Decide,
    slots: &Slots,
) -> Result<(Cow<'a, Array>, Vec<SplitChain>), Failure> {
    let looks_back = |cell: &VarId| {
        let own = own_ports(array, *cell).into_iter();
        let mut links = own.flat_map(|p| &array.port(p).links);
        links.any(|l| l.realisation == Realisation::LookBack)
    };
    let mut made = Cow::Borrowed(array);
    let mut chains = Vec::new();
    for cell in array.body.iter().copied().filter(looks_back) {
        let chain = match Chain::of(array, decide, slots, cell, Between::Blocks)? {
            Ok(chain) => chain,
            Err(why) => return Err(refusal(array, cell, why)),
        };
        // Only what goes on at once is a part joined with what is before it.
        let mut links = chain.ports.iter().flat_map(|p| &array.port(*p).links);
        if links.any(|l| !goes_on_at_once(array, l)) {
            return Err(refusal(
                array,
                cell,
                "it also goes from step to step, to another launch or to another node",
            ));
        }
        if let Joins::Term(Combine::Fn(f)) = chain.joins
            && may_fault(array, &array.functions[f.index()].body)
        {
            return Err(refusal(
                array,
                cell,
                "its operator divides or looks something up",
            ));
        }
        chains.push(chain.split_parts(array, made.to_mut(), "part"));
    }
    Ok((made, chains))
}

/// Does the link stay in its block, or lead to another block that looks back, in no time?
fn goes_on_at_once(array: &Array, link: &Link) -> bool {
    match link.realisation {
        Realisation::LookBack | Realisation::Hole => true,
        Realisation::Tree => !crosses(array, link),
        _ => false,
    }
}

/// The error for a sum that cannot look back.
pub fn refusal(array: &Array, cell: VarId, why: &str) -> Failure {
    let declared = &array.cells[cell.index()];
    let message = format!("`{}` cannot look back over blocks: {why}", declared.name);
    let help = "without `look_back`, a sum that may be regrouped crosses blocks in several launches, and with `flags` from \
                block to block";
    let diagnostic = Diagnostic::new(&limits::LINK_NOT_COMPILED, declared.span, message);
    Failure::Refused(vec![diagnostic.help(help)])
}

/// What a user should know of sums that look back: with floats the result may depend on timing.
pub fn notes(array: &Array) -> Vec<String> {
    let mut notes = Vec::new();
    for port in array.ports.iter().filter(|p| p.sink == p.source) {
        let looks_back = |link: &Link| link.realisation == Realisation::LookBack;
        let cell = &array.cells[port.sink.index()];
        let Role::Accumulation { op, .. } = cell.role else {
            continue;
        };
        let rounds = match op {
            Combine::Op(op) => matches!(op, BinOp::Add | BinOp::Mul),
            Combine::Fn(_) => true,
        };
        let floats = scalars(&cell.ty).into_iter().any(Scalar::is_float);
        if rounds && floats && port.links.iter().any(looks_back) {
            notes.push(format!(
                "`{}` looks back over blocks: timing decides how its terms are grouped, so its last digits may differ from run \
                 to run; without `look_back` they do not",
                cell.name
            ));
        }
    }
    notes
}

impl Chain {
    /// Splits the chain in `made`, in which other chains of `array` may have been split before.
    pub(super) fn split_parts(self, array: &Array, made: &mut Array, suffix: &str) -> SplitChain {
        let Joins::Term(op) = self.joins else {
            unreachable!("a chain of terms")
        };
        let whole = self.cell;
        let declared = &array.cells[whole.index()];
        let part = VarId::from(made.cells.len());
        let mut name = format!("{}_{suffix}", declared.name);
        while made.cells.iter().any(|c| c.name == name) {
            name.push('_');
        }
        made.cells.push(Cell {
            name,
            body: self.begun_in_each_block(array, &declared.body),
            ..declared.clone()
        });
        let mut crossing: Vec<Link> = Vec::new();
        let mut distance = None;
        for (n, port) in made.ports.iter_mut().enumerate() {
            if port.sink != whole {
                continue;
            }
            port.sink = part;
            if port.source != whole {
                continue;
            }
            port.source = part;
            let old = &array.ports[n];
            let (out, within) = old
                .links
                .iter()
                .cloned()
                .partition(|l| self.crosses(array, l));
            port.links = within;
            if !out.is_empty() {
                distance.get_or_insert_with(|| old.distance.clone());
            }
            crossing.extend(out);
        }
        // Any of the links will do: they all come from the slot in which the part is complete.
        crossing.truncate(1);
        let later = self.later.clone();
        let here = vec![Poly::zero(); distance.as_ref().map_or(0, Vec::len)];
        let mut connect = |distance: Vec<Poly>, when: Cond, links: Vec<Link>| {
            made.ports.push(Port {
                sink: whole,
                source: part,
                distance,
                when,
                links,
                span: declared.span,
            });
            Expr::Port(PortId::from(made.ports.len() - 1))
        };
        let wire = Link {
            guard: Cond::TRUE,
            displacement: vec![Poly::zero(); array.place.len()],
            delay: vec![Poly::zero(); array.time.len()],
            realisation: Realisation::Wire,
        };
        for link in &mut crossing {
            link.guard = Cond::TRUE;
            link.realisation = Realisation::LookBack;
        }
        let before = connect(distance.unwrap_or_default(), later.clone(), crossing);
        let own = connect(here, Cond::TRUE, vec![wire]);
        let sum = combine(op, before, own.clone());
        let cell = &mut made.cells[whole.index()];
        cell.body = Expr::guard(later.clone(), sum, own);
        cell.role = Role::Plain;
        let place = made.body.iter().position(|c| *c == whole).unwrap_or(0);
        made.body.insert(place, part);
        SplitChain {
            whole,
            part,
            joins: self.joins,
            up: self.up,
            axes: self.axes,
            fixed: self.fixed,
            later,
        }
    }
}
