//! Look-back in C.
//!
//! A place in a chain is 64 bits for every 32 bits of a term: the state in the upper half, data in
//! the lower one. So data and state are read at once and nothing has to be fenced; the words of a
//! wide term may disagree for a moment, and are read again until they agree.
//!
//! What others wait for is published first, and by one thread only: where equal states are read,
//! the data are of one publication. Then threads walk back block by block, each on its own. Where the
//! chains belong to a warp whose lanes are threads that can exchange values, the lanes are divided
//! among the chains. Each of a chain's lanes looks at a block of its own, and a window of as many
//! blocks is combined in log steps. For one chain, windows wider than a warp were slower on an H200.

use systola_ir::kernel::{Joins, LookBack, Stmt};
use systola_ir::{Form, Literal, ValueId};

use super::Printer;
use crate::context::Slot;
use crate::dialect::{Dialect, Together};
use crate::error::Fault;
use crate::expr::Expr;
use crate::index::Stride;
use crate::scalar;

/// The state of a block that has published its own term.
const TERM: &str = "1";
/// The state of a block that has published the sum up to itself.
const SUM: &str = "2";

/// A scalar of a term: its type, the name of its type, and the word with which it begins.
struct Part {
    ty: &'static str,
    name: &'static str,
    word: u32,
}

/// The names in the text of a look-back.
struct Text {
    parts: Vec<Part>,
    /// The number of blocks before this one.
    behind: String,
    /// What leads, with the number of blocks, from a place to that of a block before it.
    step: String,
    /// Holds in the threads that publish, unless all of them do.
    publisher: Option<String>,
    chains: Vec<Chain>,
}

/// The lanes that look back along one chain.
struct Group {
    /// The number of a lane in its warp.
    thread: String,
    /// The number of a lane in its group.
    position: String,
    /// The lanes of a group.
    width: u32,
}

/// The names in the text of a chain.
#[derive(Clone)]
struct Chain {
    /// A pointer to the place of this block.
    place: String,
    terms: Vec<String>,
    before: Vec<String>,
    /// The number of blocks from the one that is looked at, its state, and what it has published.
    n: String,
    state: String,
    seen: Vec<String>,
}

impl<D: Dialect> Printer<'_, '_, D> {
    pub(super) fn look_back(&mut self, stmt: &Stmt, look: &LookBack) -> Result<(), Fault> {
        self.declare_for(stmt)?;
        let mut all_terms = Vec::new();
        for chain in &look.chains {
            let mut terms = Vec::new();
            for term in &chain.terms {
                let e = self.cx.take(*term);
                let ty = self.dialect.value_type(self.cx, *term)?;
                terms.push(self.declared(&format!("const {ty}"), "term", &e));
            }
            all_terms.push(terms);
        }
        let mut uniform = look.chains.iter().flat_map(|chain| chain.at.forms());
        let varies = !uniform.all(|form| self.cx.kernel.is_uniform(form));
        let lanes = self.dialect.lane_loop(self.cx).filter(|_| varies);
        let mut results = Vec::new();
        for value in self.results(look) {
            let ty = self.cx.kernel.values[value.index()].ty;
            self.dialect.look_back_result(value, ty, lanes.is_some());
            let ty = self.dialect.value_type(self.cx, value)?;
            let name = self.cx.kernel.values[value.index()].name.clone();
            let zero = match lanes {
                Some(_) => Expr::atom("{0}"),
                None => self.zero(value)?,
            };
            let name = self.declared(&ty, &name, &zero);
            self.cx.slots[value.index()] = Slot::Ready(Expr::atom(name.clone()));
            results.push(name);
        }
        let one_lane = |printer: &mut Self, lane: &str| -> Vec<Vec<String>> {
            let chains = look.chains.iter().zip(&all_terms);
            let term =
                |(value, name): (&ValueId, &String)| printer.dialect.one_lane(name, *value, lane);
            chains
                .map(|(chain, names)| chain.terms.iter().zip(names).map(term).collect())
                .collect()
        };
        let Some((lane, n_lanes)) = lanes else {
            let together = self.dialect.together(varies);
            let publisher = self.dialect.publisher(varies);
            let terms = one_lane(self, "0");
            let text = self.begin(look, &terms, &results, publisher)?;
            match together {
                Some(lanes) => {
                    for chains in text.chains.chunks(lanes.width as usize) {
                        self.windows(look, &text, chains, &lanes)?;
                    }
                }
                None => {
                    self.publish_terms(&text);
                    self.look(look, &text)?;
                }
            }
            self.cx.lines.close();
            return Ok(());
        };
        // Each lane in turn, as a scalar; all of them publish before the first one waits.
        for publishes in [true, false] {
            let own = self.cx.names.claim("lane");
            let terms = one_lane(self, &own);
            let outside = std::mem::replace(&mut self.cx.dims[lane.index()].name, own.clone());
            let ty = self.cx.index.ty;
            let head = format!("for ({ty} {own} = 0; {own} < {n_lanes}; {own}++)");
            self.cx.lines.open(&head);
            if publishes {
                let text = self.begin(look, &terms, &[], None)?;
                self.publish_terms(&text);
                self.cx.lines.close();
            } else {
                let values: Vec<ValueId> = self.results(look);
                let mut before = Vec::new();
                for value in &values {
                    let (ty, zero) = (self.scalar_type(*value)?, self.zero(*value)?);
                    before.push(self.declared(ty, "before", &zero));
                }
                let text = self.begin(look, &terms, &before, None)?;
                self.look(look, &text)?;
                self.cx.lines.close();
                for ((value, result), own_before) in values.iter().zip(&results).zip(&before) {
                    let line = self.dialect.put_lane(result, *value, &own, own_before);
                    self.line(&line);
                }
            }
            self.cx.lines.close();
            self.cx.dims[lane.index()].name = outside;
        }
        Ok(())
    }

    /// The values that the look-back assigns.
    fn results(&self, look: &LookBack) -> Vec<ValueId> {
        let each = look.chains.iter().flat_map(|chain| &chain.before);
        each.copied().collect()
    }

    fn line(&mut self, line: &str) {
        self.cx.lines.push(line);
    }

    /// The scalars of a term, with the functions that publish and read them.
    fn parts(&mut self, look: &LookBack) -> Result<Vec<Part>, Fault> {
        let file = self.dialect.publishers(self.cx)?;
        let mut word = 0;
        let mut parts = Vec::new();
        for value in &look.joins.joined {
            let ty = self.cx.kernel.values[value.index()].ty;
            let letters = [('T', scalar::c_type(ty)?), ('N', ty.name())];
            let wide = if ty.bits() > 32 { "_wide" } else { "" };
            for function in ["publish", "published"] {
                let name = format!("{function}_{}", ty.name());
                let section = format!("{function}{wide}");
                self.cx.prelude.add(&name, file, &section, &letters);
            }
            parts.push(Part {
                ty: scalar::c_type(ty)?,
                name: ty.name(),
                word,
            });
            word += LookBack::words([ty]);
        }
        Ok(parts)
    }

    fn scalar_type(&self, value: ValueId) -> Result<&'static str, Fault> {
        scalar::c_type(self.cx.kernel.values[value.index()].ty)
    }

    fn zero(&mut self, value: ValueId) -> Result<Expr, Fault> {
        let ty = self.cx.kernel.values[value.index()].ty;
        scalar::literal(self.cx.prelude, ty, Literal::Int(0))
    }

    /// Declares a variable, and returns its name.
    fn declared(&mut self, ty: &str, wanted: &str, e: &Expr) -> String {
        let name = self.cx.names.claim(wanted);
        self.cx.lines.push(&format!("{ty} {name} = {};", e.text));
        name
    }

    /// Opens a block in which the predicate holds, and declares what its text names. `before` may be
    /// empty if nothing is assigned to it.
    fn begin(
        &mut self,
        look: &LookBack,
        terms: &[Vec<String>],
        before: &[String],
        publisher: Option<String>,
    ) -> Result<Text, Fault> {
        let parts = self.parts(look)?;
        let first = &look.chains[0];
        let when = self.cx.cond(&first.at.when)?;
        match when.text.as_str() {
            "true" => self.cx.lines.open(""),
            text => self.cx.lines.open(&format!("if ({text})")),
        }
        let ty = self.cx.index.ty;
        let memory = first.at.memory;
        let along = self.cx.counted_from_zero(&first.at)[look.axis].clone();
        let behind = match look.up {
            true => along,
            false => {
                let extent: Form = self.cx.extents(memory)[look.axis].clone();
                extent.plus(-1).sub(&along)
            }
        };
        let behind = self.cx.form(&behind)?;
        let behind = self.declared(&format!("const {ty}"), "behind", &behind);
        let stride = match self.cx.stride(memory, look.axis)? {
            Stride::Const(1) => String::new(),
            Stride::Const(c) => format!("{c} * "),
            Stride::Named(name) => format!("{name} * "),
        };
        let sign = if look.up { '-' } else { '+' };
        let mut chains = Vec::new();
        for (n, (chain, terms)) in look.chains.iter().zip(terms).enumerate() {
            let index = self.cx.counted_from_zero(&chain.at);
            let offset = self.cx.offset(memory, &index)?;
            let base = Expr::atom(self.cx.pointer(memory));
            let place = Expr::binary("+", &base, &offset);
            let space = self.dialect.global_space();
            let own = before.chunks(parts.len()).nth(n).unwrap_or_default();
            let seen = parts.iter().map(|_| self.cx.names.claim("seen"));
            chains.push(Chain {
                seen: seen.collect(),
                place: self.declared(&format!("{space}uint64_t *const"), "chain", &place),
                terms: terms.clone(),
                before: own.to_vec(),
                n: self.cx.names.claim("n"),
                state: self.cx.names.claim("state"),
            });
        }
        Ok(Text {
            parts,
            behind,
            step: format!("{sign} {stride}"),
            publisher,
            chains,
        })
    }

    /// Publishes the terms of this block; the first block knows the sum.
    fn publish_terms(&mut self, text: &Text) {
        let state = format!("{} > 0 ? {TERM} : {SUM}", text.behind);
        for chain in &text.chains {
            self.publish(text, chain, &chain.terms, &state);
        }
    }

    /// Looks back, unless this is the first block, and publishes the sum.
    fn look(&mut self, look: &LookBack, text: &Text) -> Result<(), Fault> {
        let ty = self.cx.index.ty;
        self.cx.lines.open(&format!("if ({} > 0)", text.behind));
        // Reads of several chains are on their way together.
        for chain in &text.chains {
            self.line(&format!("{ty} {} = 1;", chain.n));
            self.line(&format!("uint32_t {} = {SUM};", chain.state));
            self.declare_zeros(look, text, &chain.seen)?;
            self.read(text, chain);
        }
        for chain in &text.chains {
            self.walk(look, text, chain)?;
            let sum = self.joined(&look.joins, &chain.before, &chain.terms)?;
            self.publish(text, chain, &sum, SUM);
        }
        self.cx.lines.close();
        Ok(())
    }

    /// Publishes scalars at the place of this block.
    fn publish(&mut self, text: &Text, chain: &Chain, values: &[String], state: &str) {
        match &text.publisher {
            Some(publisher) => self.publish_where(text, publisher, chain, values, state),
            None => self.publish_values(text, chain, values, state),
        }
    }

    fn publish_values(&mut self, text: &Text, chain: &Chain, values: &[String], state: &str) {
        for (part, value) in text.parts.iter().zip(values) {
            let (name, place) = (part.name, at_word(&chain.place, part.word));
            self.line(&format!("publish_{name}({place}, {value}, {state});"));
        }
    }

    fn declare_zeros(
        &mut self,
        look: &LookBack,
        text: &Text,
        names: &[String],
    ) -> Result<(), Fault> {
        let values = names.iter().zip(&look.joins.joined);
        for (part, (name, value)) in text.parts.iter().zip(values) {
            let zero = self.zero(*value)?;
            self.line(&format!("{} {name} = {};", part.ty, zero.text));
        }
        Ok(())
    }

    /// Reads once what the block has published that is looked at.
    fn read(&mut self, text: &Text, chain: &Chain) {
        let there = format!("{} {}{}", chain.place, text.step, chain.n);
        let state = &chain.state;
        for (k, (part, seen)) in text.parts.iter().zip(&chain.seen).enumerate() {
            let place = at_word(&there, part.word);
            let call = format!("published_{}({place}, &{seen})", part.name);
            if k == 0 {
                self.line(&format!("{state} = {call};"));
            } else {
                self.line(&format!("if ({call} != {state})"));
                self.line(&format!("    {state} = 0;"));
            }
        }
    }

    /// Reads until there is something.
    fn wait(&mut self, text: &Text, chain: &Chain) {
        self.cx.lines.open(&format!("while ({} == 0)", chain.state));
        if let Some(line) = self.dialect.between_reads(self.cx) {
            self.line(&line);
        }
        self.read(text, chain);
        self.cx.lines.close();
    }

    /// Block by block.
    fn walk(&mut self, look: &LookBack, text: &Text, chain: &Chain) -> Result<(), Fault> {
        self.wait(text, chain);
        self.assign(&chain.before, &chain.seen);
        self.cx
            .lines
            .open(&format!("while ({} != {SUM})", chain.state));
        self.line(&format!("{}++;", chain.n));
        self.read(text, chain);
        self.wait(text, chain);
        let sum = self.joined(&look.joins, &chain.seen, &chain.before)?;
        self.assign(&chain.before, &sum);
        self.cx.lines.close();
        Ok(())
    }

    /// The lanes of a warp, divided among some chains: each looks at a block of its own.
    fn windows(
        &mut self,
        look: &LookBack,
        text: &Text,
        chains: &[Chain],
        by: &Together,
    ) -> Result<(), Fault> {
        let ty = self.cx.index.ty;
        let n_chains = chains.len() as u32;
        let width = by.width / n_chains.next_power_of_two();
        let thread = self.cx.names.claim("thread");
        self.line(&format!("const {ty} {thread} = {};", by.lane));
        let group = Group {
            position: match n_chains {
                1 => thread.clone(),
                _ => {
                    let position = Expr::atom(format!("{thread} % {width}"));
                    self.declared(&format!("const {ty}"), "position", &position)
                }
            },
            thread,
            width,
        };
        let own = self.own_chain(text, chains, &group)?;
        let behind = match n_chains.is_power_of_two() {
            true => text.behind.clone(),
            false => {
                let all = n_chains * width;
                let text = format!("{} < {all} ? {} : 0", group.thread, text.behind);
                self.declared(&format!("const {ty}"), "own_behind", &Expr::atom(text))
            }
        };
        let leads = match n_chains.is_power_of_two() {
            true => format!("{} == 0", group.position),
            false => format!(
                "{} == 0 && {} < {}",
                group.position,
                group.thread,
                n_chains * width
            ),
        };
        let state = format!("{} > 0 ? {TERM} : {SUM}", text.behind);
        self.publish_where(text, &leads, &own, &own.terms, &state);
        self.cx.lines.open(&format!("if ({} > 0)", text.behind));
        self.line(&format!("{ty} {} = 1 + {};", own.n, group.position));
        self.line(&format!("uint32_t {} = {SUM};", own.state));
        self.declare_zeros(look, text, &own.seen)?;
        if chains.len() > 1 {
            self.declare_zeros(look, text, &own.before)?;
        }
        self.read_if(text, &own, &format!("{} <= {behind}", own.n));
        self.look_in_windows(look, text, &own, &group, &behind, by)?;
        let sum = self.joined(&look.joins, &own.before, &own.terms)?;
        self.publish_where(text, &leads, &own, &sum, SUM);
        if chains.len() > 1 {
            for (n, chain) in chains.iter().enumerate() {
                let lane = (n as u32 * width).to_string();
                for (before, found) in chain.before.iter().zip(&own.before) {
                    let value = (by.from)(found, &lane);
                    self.line(&format!("{before} = {value};"));
                }
            }
        }
        self.cx.lines.close();
        Ok(())
    }

    /// The chain of each lane.
    fn own_chain(&mut self, text: &Text, chains: &[Chain], group: &Group) -> Result<Chain, Fault> {
        let [first, others @ ..] = chains else {
            unreachable!("a look-back has chains")
        };
        if others.is_empty() {
            return Ok(first.clone());
        }
        let space = self.dialect.global_space();
        let place = Expr::atom(first.place.clone());
        let place = self.declared(&format!("{space}uint64_t *"), "own_chain", &place);
        let mut terms = Vec::new();
        let mut before = Vec::new();
        for (part, term) in text.parts.iter().zip(&first.terms) {
            terms.push(self.declared(part.ty, "own_term", &Expr::atom(term.clone())));
            before.push(self.cx.names.claim("found"));
        }
        for (n, chain) in others.iter().enumerate() {
            let head = format!("if ({} / {} == {})", group.thread, group.width, n + 1);
            self.cx.lines.open(&head);
            self.line(&format!("{place} = {};", chain.place));
            self.assign(&terms, &chain.terms);
            self.cx.lines.close();
        }
        Ok(Chain {
            place,
            terms,
            before,
            ..first.clone()
        })
    }

    /// Publishes in the lanes in which a condition holds.
    fn publish_where(
        &mut self,
        text: &Text,
        leads: &str,
        chain: &Chain,
        values: &[String],
        state: &str,
    ) {
        self.cx.lines.open(&format!("if ({leads})"));
        self.publish_values(text, chain, values, state);
        self.cx.lines.close();
    }

    fn read_if(&mut self, text: &Text, chain: &Chain, cond: &str) {
        self.cx.lines.open(&format!("if ({cond})"));
        self.read(text, chain);
        self.cx.lines.close();
    }

    /// Window by window, until all chains of the warp have met a whole sum.
    fn look_in_windows(
        &mut self,
        look: &LookBack,
        text: &Text,
        chain: &Chain,
        group: &Group,
        behind: &str,
        by: &Together,
    ) -> Result<(), Fault> {
        let Group {
            thread,
            position,
            width,
        } = group;
        let alone = *width == by.width;
        let [sums, last, step] = ["sums", "end", "step"].map(|name| self.cx.names.claim(name));
        let (n, state, seen) = (&chain.n, &chain.state, &chain.seen);
        let lead = match alone {
            true => "0".to_string(),
            false => {
                let ty = self.cx.index.ty;
                let lead = Expr::atom(format!("{thread} - {position}"));
                self.declared(&format!("const {ty}"), "lead", &lead)
            }
        };
        let open = match alone {
            true => None,
            false => Some(self.declared("bool", "open", &Expr::atom("true"))),
        };
        self.cx.lines.open("for (;;)");
        self.wait(text, chain);
        let found = (by.ballot)(&format!("{state} == {SUM}"));
        let found = match alone {
            true => found,
            false => format!("{found} >> {lead} & {}u", (1u64 << width) - 1),
        };
        self.line(&format!("const uint32_t {sums} = {found};"));
        if *width > 1 {
            let first = (by.first)(&sums);
            let farthest = width - 1;
            self.line(&format!(
                "const int {last} = {sums} != 0 ? {first} : {farthest};"
            ));
            self.line(by.unroll);
            let head = format!("for (int {step} = 1; {step} < {width}; {step} *= 2)");
            self.cx.lines.open(&head);
            let mut earlier = Vec::new();
            for (part, own) in text.parts.iter().zip(seen) {
                let moved = Expr::atom((by.down)(own, &step));
                earlier.push(self.declared(&format!("const {}", part.ty), "earlier", &moved));
            }
            let sum = self.joined(&look.joins, &earlier, seen)?;
            let head = format!("if ({position} + {step} <= {last})");
            self.cx.lines.open(&head);
            self.assign(seen, &sum);
            self.cx.lines.close();
            self.cx.lines.close();
            for own in seen {
                let whole = (by.from)(own, &lead);
                self.line(&format!("{own} = {whole};"));
            }
        }
        if let Some(open) = &open {
            self.cx.lines.open(&format!("if ({open})"));
        }
        self.cx.lines.open(&format!("if ({n} == 1 + {position})"));
        self.assign(&chain.before, seen);
        self.cx.lines.otherwise();
        let sum = self.joined(&look.joins, seen, &chain.before)?;
        self.assign(&chain.before, &sum);
        self.cx.lines.close();
        let goes_on = match &open {
            None => {
                self.line(&format!("if ({sums} != 0)"));
                self.line("    break;");
                format!("{n} <= {behind}")
            }
            Some(open) => {
                self.cx.lines.close();
                self.line(&format!("{open} = {open} && {sums} == 0;"));
                let any = (by.ballot)(open);
                self.line(&format!("if ({any} == 0)"));
                self.line("    break;");
                format!("{open} && {n} <= {behind}")
            }
        };
        self.line(&format!("{n} += {width};"));
        self.line(&format!("{state} = {SUM};"));
        self.read_if(text, chain, &goes_on);
        self.cx.lines.close();
        Ok(())
    }

    fn assign(&mut self, to: &[String], values: &[String]) {
        for (to, value) in to.iter().zip(values) {
            self.line(&format!("{to} = {value};"));
        }
    }

    /// Prints the operation with these operands; returns the names of its results.
    fn joined(
        &mut self,
        joins: &Joins,
        earlier: &[String],
        later: &[String],
    ) -> Result<Vec<String>, Fault> {
        let operands = [(&joins.earlier, earlier), (&joins.later, later)];
        for (values, names) in operands {
            for (value, name) in values.iter().zip(names) {
                let ty = self.cx.kernel.values[value.index()].ty;
                self.dialect.look_back_result(*value, ty, false);
                self.cx.slots[value.index()] = Slot::Ready(Expr::atom(name.clone()));
            }
        }
        self.stmts(&joins.body)?;
        let mut names = Vec::new();
        for value in &joins.joined {
            let e = self.cx.take(*value);
            let ty = self.scalar_type(*value)?;
            names.push(match e.is_word() && joins.joined.len() == 1 {
                true => e.text,
                false => self.declared(&format!("const {ty}"), "sum", &e),
            });
        }
        Ok(names)
    }
}

fn at_word(place: &str, word: u32) -> String {
    match word {
        0 => place.to_string(),
        n => format!("{place} + {n}"),
    }
}
