//! Inputs whose elements are a few constants, found from how the equations use them.
//!
//! Two uses say so. Where a value is an element of the input at some points and one of a few chosen
//! constants at all others, as the cells of a cellular automaton are, the elements are these
//! constants too. Where elements are only compared with constants, each outcome of a comparison
//! should occur.
//!
//! Values flow unchanged through forwarding variables, names, casts, choices, minima and maxima.
//! They are collected as a graph in one walk over the equations.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use systola_ir::system::visit::children;
use systola_ir::system::{Combine, Expr, System};
use systola_ir::{BinOp, InputId, Literal, LocalId, VarId};

/// A few numbers, ascending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alphabet {
    letters: [i128; Alphabet::MOST],
    n: usize,
}

impl Alphabet {
    const MOST: usize = 8;

    /// None where there are fewer than two letters, or too many.
    pub fn new(letters: &BTreeSet<i128>) -> Option<Alphabet> {
        let n = letters.len();
        let mut all = [0; Alphabet::MOST];
        if !(2..=Alphabet::MOST).contains(&n) {
            return None;
        }
        for (place, letter) in all.iter_mut().zip(letters) {
            *place = *letter;
        }
        Some(Alphabet { letters: all, n })
    }

    pub fn letters(&self) -> &[i128] {
        &self.letters[..self.n]
    }
}

/// The alphabet of each input that has one.
pub fn alphabets(system: &System) -> Vec<Option<Alphabet>> {
    let none = vec![None; system.inputs.len()];
    if system.inputs.iter().all(|i| i.ty.int_range().is_none()) {
        return none;
    }
    let Some(graph) = Graph::of(system) else {
        return none;
    };
    let mut found = graph.chosen(system);
    for (n, compared) in graph.compared(system).into_iter().enumerate() {
        found[n] = found[n].or(compared);
    }
    found
}

/// Where values come together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Node {
    Input(InputId),
    Var(VarId),
    /// A name or a choice by position, numbered as they are met.
    Inner(usize),
}

/// What becomes of a value.
#[derive(Clone, Copy, Debug)]
enum Use {
    /// It is the value of this node. `chosen`: by a computed condition.
    Into {
        node: Node,
        chosen: bool,
    },
    Compared(Comparison, i128),
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Comparison {
    Equality,
    Order,
}

/// What arrives at a node.
#[derive(Clone, Debug, Default)]
struct Arrivals {
    nodes: BTreeSet<Node>,
    constants: BTreeSet<i128>,
    chosen: BTreeSet<i128>,
    /// The result of another operation.
    is_computed: bool,
}

#[derive(Default)]
struct Graph {
    arrivals: BTreeMap<Node, Arrivals>,
    comparisons: BTreeMap<Node, BTreeSet<(Comparison, i128)>>,
    /// Nodes whose values are operands of something else.
    operands: BTreeSet<Node>,
    n_inner: usize,
    steps: usize,
}

type Scope = HashMap<LocalId, Node>;

impl Graph {
    /// Functions that call functions make long walks.
    const MOST_STEPS: usize = 200_000;

    /// None where the walk would be too long.
    fn of(system: &System) -> Option<Graph> {
        let mut graph = Graph::default();
        for (n, var) in system.vars.iter().enumerate() {
            let node = Node::Var(VarId::from(n));
            let into = Use::Into {
                node,
                chosen: false,
            };
            graph.walk(system, &var.body, &Scope::new(), into)?;
        }
        for write in system.outputs.iter().flat_map(|o| &o.writes) {
            graph.walk(system, &write.value, &Scope::new(), Use::Other)?;
        }
        Some(graph)
    }

    fn inner(&mut self) -> Node {
        self.n_inner += 1;
        Node::Inner(self.n_inner)
    }

    fn walk(&mut self, system: &System, expr: &Expr, scope: &Scope, to: Use) -> Option<()> {
        self.steps += 1;
        if self.steps > Graph::MOST_STEPS {
            return None;
        }
        match expr {
            Expr::Input { input, .. } => self.record(Node::Input(*input), to),
            Expr::Lookup { input, index, .. } => {
                self.record(Node::Input(*input), to);
                for expr in index {
                    self.walk(system, expr, scope, Use::Other)?;
                }
            }
            Expr::Var { var, .. } => self.record(Node::Var(*var), to),
            Expr::Local(id) => match scope.get(id) {
                Some(node) => self.record(*node, to),
                None => self.computed(to),
            },
            Expr::Lit(..) | Expr::Const(_) => match (number(system, expr), to) {
                (Some(c), Use::Into { node, chosen }) => {
                    let arrivals = self.arrivals.entry(node).or_default();
                    arrivals.constants.insert(c);
                    if chosen {
                        arrivals.chosen.insert(c);
                    }
                }
                _ => self.computed(to),
            },
            Expr::Cast(_, a) => self.walk(system, a, scope, to)?,
            Expr::Guard {
                then, otherwise, ..
            } => {
                let node = self.inner();
                self.record(node, to);
                let into = Use::Into {
                    node,
                    chosen: false,
                };
                self.walk(system, then, scope, into)?;
                if let Some(otherwise) = otherwise {
                    self.walk(system, otherwise, scope, into)?;
                }
            }
            Expr::Select {
                cond,
                then,
                otherwise,
            } => {
                self.walk(system, cond, scope, Use::Other)?;
                let to = match to {
                    Use::Into { node, .. } => Use::Into { node, chosen: true },
                    other => other,
                };
                self.walk(system, then, scope, to)?;
                self.walk(system, otherwise, scope, to)?;
            }
            Expr::Binary(BinOp::Min | BinOp::Max, a, b) => {
                self.walk(system, a, scope, to)?;
                self.walk(system, b, scope, to)?;
            }
            Expr::Reduce {
                op: Combine::Op(BinOp::Min | BinOp::Max),
                body,
                ..
            } => self.walk(system, body, scope, to)?,
            Expr::Binary(
                op @ (BinOp::Eq | BinOp::Ne | BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge),
                a,
                b,
            ) => {
                self.computed(to);
                let comparison = match op {
                    BinOp::Eq | BinOp::Ne => Comparison::Equality,
                    _ => Comparison::Order,
                };
                let (of_a, of_b) = match (number(system, a), number(system, b)) {
                    (None, Some(c)) => (Use::Compared(comparison, c), Use::Other),
                    (Some(c), None) => (Use::Other, Use::Compared(comparison, c)),
                    _ => (Use::Other, Use::Other),
                };
                self.walk(system, a, scope, of_a)?;
                self.walk(system, b, scope, of_b)?;
            }
            Expr::Let {
                local, value, body, ..
            } => {
                let mut inside = scope.clone();
                inside.insert(*local, self.named(system, value, scope)?);
                self.walk(system, body, &inside, to)?;
            }
            Expr::Call(f, args) => {
                let mut inside = Scope::new();
                for (n, value) in args.iter().enumerate() {
                    inside.insert(LocalId::from(n), self.named(system, value, scope)?);
                }
                self.walk(system, &system.functions[f.index()].body, &inside, to)?;
            }
            Expr::Iter(_)
            | Expr::Param(_)
            | Expr::Unary(..)
            | Expr::Binary(..)
            | Expr::Tuple(_)
            | Expr::Field(..)
            | Expr::Reduce { .. }
            | Expr::Scan { .. }
            | Expr::Port(_) => {
                self.computed(to);
                for part in children(expr) {
                    self.walk(system, part, scope, Use::Other)?;
                }
            }
        }
        Some(())
    }

    /// A node for a value with a name.
    fn named(&mut self, system: &System, value: &Expr, scope: &Scope) -> Option<Node> {
        let node = self.inner();
        let into = Use::Into {
            node,
            chosen: false,
        };
        self.walk(system, value, scope, into)?;
        Some(node)
    }

    fn record(&mut self, from: Node, to: Use) {
        match to {
            Use::Into { node, .. } => {
                self.arrivals.entry(node).or_default().nodes.insert(from);
            }
            Use::Compared(op, c) => {
                self.comparisons.entry(from).or_default().insert((op, c));
            }
            Use::Other => {
                self.operands.insert(from);
            }
        }
    }

    fn computed(&mut self, to: Use) {
        if let Use::Into { node, .. } = to {
            self.arrivals.entry(node).or_default().is_computed = true;
        }
    }

    /// Inputs that stand beside chosen constants.
    fn chosen(&self, system: &System) -> Vec<Option<Alphabet>> {
        let mut letters: Vec<BTreeSet<i128>> = vec![BTreeSet::new(); system.inputs.len()];
        for (start, arrivals) in &self.arrivals {
            let takes_input = |node: &Node| matches!(node, Node::Input(_));
            if !arrivals.nodes.iter().any(takes_input) {
                continue;
            }
            let Some((inputs, constants)) = self.values(*start) else {
                continue;
            };
            for input in inputs {
                letters[input.index()].extend(constants.iter().copied());
            }
        }
        letters.iter().map(Alphabet::new).collect()
    }

    /// The inputs and constants that a node may have the value of, if there are at least two chosen
    /// constants and nothing else.
    fn values(&self, start: Node) -> Option<(BTreeSet<InputId>, BTreeSet<i128>)> {
        let (mut inputs, mut constants) = (BTreeSet::new(), BTreeSet::new());
        let mut n_chosen = BTreeSet::new();
        let mut seen = BTreeSet::from([start]);
        let mut open = vec![start];
        while let Some(node) = open.pop() {
            if let Node::Input(input) = node {
                inputs.insert(input);
            }
            let Some(arrivals) = self.arrivals.get(&node) else {
                continue;
            };
            if arrivals.is_computed {
                return None;
            }
            constants.extend(arrivals.constants.iter().copied());
            n_chosen.extend(arrivals.chosen.iter().copied());
            open.extend(
                arrivals
                    .nodes
                    .iter()
                    .copied()
                    .filter(|node| seen.insert(*node)),
            );
        }
        (n_chosen.len() >= 2).then_some((inputs, constants))
    }

    /// Inputs that are only compared with constants.
    fn compared(&self, system: &System) -> Vec<Option<Alphabet>> {
        // Back from each use to what flows there.
        let back = |starts: &[Node]| {
            let mut seen: BTreeSet<Node> = starts.iter().copied().collect();
            let mut open = starts.to_vec();
            while let Some(node) = open.pop() {
                if let Some(arrivals) = self.arrivals.get(&node) {
                    open.extend(
                        arrivals
                            .nodes
                            .iter()
                            .copied()
                            .filter(|node| seen.insert(*node)),
                    );
                }
            }
            seen.into_iter().filter_map(|node| match node {
                Node::Input(input) => Some(input),
                Node::Var(_) | Node::Inner(_) => None,
            })
        };
        let mut all = vec![BTreeSet::new(); system.inputs.len()];
        for (node, comparisons) in &self.comparisons {
            for input in back(&[*node]) {
                all[input.index()].extend(comparisons.iter().copied());
            }
        }
        if all.iter().all(BTreeSet::is_empty) {
            return vec![None; all.len()];
        }
        let operands: Vec<Node> = self.operands.iter().copied().collect();
        for input in back(&operands) {
            all[input.index()].clear();
        }
        all.iter()
            .map(|found| Alphabet::new(&outcomes(found)))
            .collect()
    }
}

/// Numbers for which comparisons have all of their outcomes.
fn outcomes(comparisons: &BTreeSet<(Comparison, i128)>) -> BTreeSet<i128> {
    let mut letters = BTreeSet::new();
    for (comparison, c) in comparisons {
        letters.insert(*c);
        if *comparison == Comparison::Order {
            letters.extend([c.saturating_sub(1), c.saturating_add(1)]);
        }
    }
    if letters.len() == 1 {
        // The neighbour towards zero, which unsigned types have too.
        let other = letters.first().map(|c| match c.signum() {
            0 => 1,
            sign => c - sign,
        });
        letters.extend(other);
    }
    letters
}

fn number(system: &System, expr: &Expr) -> Option<i128> {
    match expr {
        Expr::Lit(_, Literal::Int(n)) => Some(*n),
        Expr::Const(c) => match system.consts[c.index()].value {
            Literal::Int(n) => Some(n),
            Literal::Float(_) | Literal::Bool(_) => None,
        },
        Expr::Cast(_, a) => number(system, a),
        _ => None,
    }
}
