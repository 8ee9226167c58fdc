//! Writes mappings line by line.

use systola_ir::mapping::Direction;
use systola_ir::mapping::{
    Directive, DirectiveKind, Engine, Layout, Mapping, NameExpr, NameOp, PlaceLevel, Store,
    SumStage, TimeLevel, Transfer,
};

/// The name of the lanes of the target.
const LANES: &str = "L";

/// A mapping under construction. Its names differ from those of the system.
#[derive(Clone, Debug)]
pub struct Text {
    directives: Vec<Directive>,
    /// Names in use.
    names: Vec<String>,
    /// Lanes of the target.
    pub lanes: i128,
}

impl Text {
    pub fn new(names: Vec<String>, lanes: i128) -> Text {
        Text {
            directives: Vec::new(),
            names,
            lanes,
        }
    }

    pub fn finish(self, name: &str, system: &str) -> Mapping {
        Mapping {
            name: name.to_string(),
            system: system.to_string(),
            directives: self.directives,
            ..Mapping::default()
        }
    }

    pub fn line(&mut self, kind: DirectiveKind) {
        self.directives.push(kind.into());
    }

    /// `wish`, or a similar name that is free.
    fn fresh(&mut self, wish: String) -> String {
        let mut name = wish;
        while self.names.contains(&name) || name == LANES {
            name.push('_');
        }
        self.names.push(name.clone());
        name
    }

    /// A number of elements; for an iterator on all lanes, as a multiple of the lanes where it is
    /// one.
    pub fn size(&self, n: i128, all_lanes: bool) -> NameExpr {
        if all_lanes
            && self.lanes > 1
            && n % self.lanes == 0
            && !self.names.iter().any(|n| n == LANES)
        {
            return match n / self.lanes {
                1 => NameExpr::name(LANES),
                k => times(k, NameExpr::name(LANES)),
            };
        }
        NameExpr::int(n)
    }

    /// `tile x by size as (bx, xx)`; returns the two names.
    pub fn tile(&mut self, axis: &str, size: i128, all_lanes: bool) -> (String, String) {
        let size = self.size(size, all_lanes);
        self.tile_by(axis, size, None, false)
    }

    pub fn tile_by(
        &mut self,
        axis: &str,
        size: NameExpr,
        overlap: Option<(i128, i128)>,
        periodic: bool,
    ) -> (String, String) {
        let names = [format!("b{axis}"), format!("{axis}{axis}")];
        self.tile_named(axis, size, names, overlap, periodic)
    }

    /// The same with these names, or similar ones.
    pub fn tile_named(
        &mut self,
        axis: &str,
        size: NameExpr,
        names: [String; 2],
        overlap: Option<(i128, i128)>,
        periodic: bool,
    ) -> (String, String) {
        let [outer, inner] = names.map(|name| self.fresh(name));
        self.line(DirectiveKind::Tile {
            dim: axis.into(),
            size,
            outer: outer.clone().into(),
            inner: inner.clone().into(),
            overlap: overlap.map(|(lo, hi)| (NameExpr::int(lo), NameExpr::int(hi))),
            periodic,
        });
        (outer, inner)
    }

    pub fn place(&mut self, level: PlaceLevel, forms: Vec<NameExpr>) {
        if !forms.is_empty() {
            self.line(DirectiveKind::Place { level, forms });
        }
    }

    pub fn time(&mut self, level: TimeLevel, forms: Vec<NameExpr>) {
        if !forms.is_empty() {
            self.line(DirectiveKind::Time { level, forms });
        }
    }

    /// Innermost first.
    pub fn sum(&mut self, var: &str, along: &[&str]) {
        let order = along.iter().map(|name| ((*name).into(), Direction::Up));
        self.line(DirectiveKind::Sum {
            var: var.into(),
            stages: vec![SumStage::Along(order.collect())],
        });
    }

    pub fn unroll(&mut self, name: &str, factor: Option<u64>) {
        self.line(DirectiveKind::Unroll {
            name: name.into(),
            factor,
        });
    }

    pub fn forward(&mut self, input: &str, along: &[i128]) {
        self.line(DirectiveKind::Forward {
            input: input.into(),
            along: along.iter().map(|n| NameExpr::int(*n)).collect(),
        });
    }

    pub fn transfer(
        &mut self,
        source: &str,
        at: &str,
        stages: u64,
        layout: Layout,
        engine: Engine,
    ) {
        self.line(DirectiveKind::Transfer(Transfer {
            source: source.into(),
            store: Store::Shared,
            at: Some(at.into()),
            stages,
            layout,
            engine,
        }));
    }

    /// The digit ⌊x / below⌋ mod radix of a name that runs from 0 to `all` − 1.
    pub fn digit(
        &self,
        name: &str,
        below: i128,
        radix: i128,
        all: i128,
        all_lanes: bool,
    ) -> NameExpr {
        self.digit_of(NameExpr::name(name), below, radix, all, all_lanes)
    }

    /// The same of an expression.
    pub fn digit_of(
        &self,
        whole: NameExpr,
        below: i128,
        radix: i128,
        all: i128,
        all_lanes: bool,
    ) -> NameExpr {
        let mut digit = whole;
        if below > 1 {
            digit = NameExpr::binary(NameOp::Div, digit, self.size(below, all_lanes));
        }
        if below * radix < all {
            digit = NameExpr::binary(NameOp::Mod, digit, self.size(radix, all_lanes));
        }
        digit
    }
}

pub fn plus(left: NameExpr, right: NameExpr) -> NameExpr {
    NameExpr::binary(NameOp::Add, left, right)
}

pub fn times(k: i128, right: NameExpr) -> NameExpr {
    NameExpr::binary(NameOp::Mul, NameExpr::int(k), right)
}

/// Σ coefficient · name, as `2*c - q`. None: all are zero.
pub fn combination(terms: &[(i128, &str)]) -> Option<NameExpr> {
    let named = terms.iter().map(|(c, name)| (*c, NameExpr::name(*name)));
    signed_sum(named.collect())
}

/// The same of expressions.
pub fn signed_sum(terms: Vec<(i128, NameExpr)>) -> Option<NameExpr> {
    let mut sum: Option<NameExpr> = None;
    // A positive term comes first, so that the text does not begin with a sign.
    let (positive, others): (Vec<_>, Vec<_>) = terms.into_iter().partition(|(c, _)| *c > 0);
    let negative = others.into_iter().filter(|(c, _)| *c < 0);
    for (c, own) in positive.into_iter().chain(negative) {
        let term = match c.abs() {
            1 => own,
            k => times(k, own),
        };
        sum = Some(match (sum, c > 0) {
            (None, true) => term,
            (None, false) => systola_ir::mapping::NameExprKind::Neg(Box::new(term)).into(),
            (Some(sum), true) => plus(sum, term),
            (Some(sum), false) => NameExpr::binary(NameOp::Sub, sum, term),
        });
    }
    sum
}
