//! Builders of mappings: one method for each directive, and the primitives of the paper's Table 1
//! under their own names.

use systola_ir::codes::syntax;
use systola_ir::mapping::{
    Check, Direction, Directive, DirectiveKind, Engine, Layout, Mapping, Name, NameExpr,
    PlaceLevel, Residence, Store, StorePlace, SumStage as Stage, TimeLevel, Transfer,
};
use systola_ir::{Diagnostic, Span, Type};
use systola_surface::elaborate::mapping::{name_cond, name_expr};

use crate::expr::{Expr, List};

/// A mapping under construction. As in text, its names are resolved later against the system.
#[derive(Clone, Debug, Default)]
pub struct MappingBuilder {
    name: String,
    system: String,
    directives: Vec<Directive>,
    errors: Vec<Diagnostic>,
}

/// `sum Z along (q, -p)`.
#[derive(Clone, Debug)]
pub struct Along(Name, Direction);

/// Ascending along an iterator.
pub fn up(iterator: impl AsName) -> Along {
    Along(iterator.as_name(), Direction::Up)
}

/// Descending along an iterator.
pub fn down(iterator: impl AsName) -> Along {
    Along(iterator.as_name(), Direction::Down)
}

/// A stage of a sum: `along (q, -p)` or `tree jj`.
#[derive(Clone, Debug)]
pub struct SumStage(Stage);

impl SumStage {
    /// One after the other, innermost first.
    pub fn along(order: impl IntoIterator<Item = Along>) -> SumStage {
        let order = order.into_iter().map(|Along(name, way)| (name, way));
        SumStage(Stage::Along(order.collect()))
    }

    /// A balanced tree over iterators; over all that are left if none is given.
    pub fn tree(iterators: impl IntoIterator<Item = impl AsName>) -> SumStage {
        SumStage(Stage::Tree(all(iterators)))
    }
}

/// Types that can denote a name: strings, and names as expressions.
pub trait AsName {
    fn as_name(&self) -> Name;
}

impl AsName for &str {
    fn as_name(&self) -> Name {
        Name::from(*self)
    }
}

impl AsName for &Expr {
    fn as_name(&self) -> Name {
        self.to_name()
    }
}

fn all(names: impl IntoIterator<Item = impl AsName>) -> Vec<Name> {
    names.into_iter().map(|name| name.as_name()).collect()
}

impl MappingBuilder {
    pub fn new(name: impl Into<String>, system: impl Into<String>) -> Self {
        MappingBuilder {
            name: name.into(),
            system: system.into(),
            ..MappingBuilder::default()
        }
    }

    fn push(&mut self, kind: DirectiveKind) -> &mut Self {
        self.directives.push(kind.into());
        self
    }

    fn form(&mut self, expr: impl Into<Expr>) -> NameExpr {
        let expr = expr.into();
        name_expr(&expr.0).unwrap_or_else(|diagnostic| {
            self.errors.push(*diagnostic);
            NameExpr::int(0)
        })
    }

    fn forms(&mut self, list: impl List) -> Vec<NameExpr> {
        list.into_list().into_iter().map(|e| self.form(e)).collect()
    }

    fn place(&mut self, level: PlaceLevel, forms: impl List) -> &mut Self {
        let forms = self.forms(forms);
        self.push(DirectiveKind::Place { level, forms })
    }

    fn at_time(&mut self, level: TimeLevel, forms: impl List) -> &mut Self {
        let forms = self.forms(forms);
        self.push(DirectiveKind::Time { level, forms })
    }

    pub fn node(&mut self, forms: impl List) -> &mut Self {
        self.place(PlaceLevel::Node, forms)
    }

    pub fn block(&mut self, forms: impl List) -> &mut Self {
        self.place(PlaceLevel::Block, forms)
    }

    pub fn warp(&mut self, forms: impl List) -> &mut Self {
        self.place(PlaceLevel::Warp, forms)
    }

    pub fn lane(&mut self, forms: impl List) -> &mut Self {
        self.place(PlaceLevel::Lane, forms)
    }

    pub fn reg(&mut self, forms: impl List) -> &mut Self {
        self.place(PlaceLevel::Reg, forms)
    }

    pub fn launch(&mut self, forms: impl List) -> &mut Self {
        self.at_time(TimeLevel::Launch, forms)
    }

    pub fn block_step(&mut self, forms: impl List) -> &mut Self {
        self.at_time(TimeLevel::BlockStep, forms)
    }

    pub fn time(&mut self, forms: impl List) -> &mut Self {
        self.at_time(TimeLevel::Step, forms)
    }

    /// `tile x by size as (outer, inner);`
    pub fn tile(
        &mut self,
        dim: impl AsName,
        size: impl Into<Expr>,
        outer: impl AsName,
        inner: impl AsName,
    ) -> TileDirective<'_> {
        let size = self.form(size);
        self.push(DirectiveKind::Tile {
            dim: dim.as_name(),
            size,
            outer: outer.as_name(),
            inner: inner.as_name(),
            overlap: None,
            periodic: false,
        });
        TileDirective(self)
    }

    /// `when cond { … }`
    pub fn when(
        &mut self,
        cond: impl Into<Expr>,
        body: impl FnOnce(&mut MappingBuilder),
    ) -> &mut Self {
        let mut inner = MappingBuilder::default();
        body(&mut inner);
        self.errors.append(&mut inner.errors);
        match name_cond(&cond.into().0) {
            Ok(cond) => self.push(DirectiveKind::When {
                cond,
                directives: inner.directives,
            }),
            Err(diagnostic) => {
                self.errors.push(*diagnostic);
                self
            }
        }
    }

    /// `space (k, i, j);`
    pub fn space(&mut self, dims: impl IntoIterator<Item = impl AsName>) -> &mut Self {
        let dims = dims.into_iter().map(|dim| dim.as_name()).collect();
        self.push(DirectiveKind::Space { dims });
        self
    }

    /// `align V (i, j) -> (i + j, i);`
    #[track_caller]
    pub fn align(
        &mut self,
        var: impl AsName,
        dims: impl IntoIterator<Item = impl AsName>,
        forms: impl List,
    ) -> &mut Self {
        let var = var.as_name();
        let dims = dims.into_iter().map(|dim| dim.as_name()).collect();
        let forms = self.forms(forms);
        self.push(DirectiveKind::Align { var, dims, forms });
        self
    }

    /// `store V;`
    #[track_caller]
    pub fn store(&mut self, var: impl AsName) -> &mut Self {
        self.push(DirectiveKind::Store {
            var: var.as_name(),
            place: StorePlace::Chosen,
        });
        self
    }

    /// `store V in a[i, j];`
    #[track_caller]
    pub fn store_in(
        &mut self,
        var: impl AsName,
        array: impl AsName,
        index: impl List,
    ) -> &mut Self {
        let (var, array) = (var.as_name(), array.as_name());
        let index = self.forms(index);
        let place = StorePlace::In { array, index };
        self.push(DirectiveKind::Store { var, place });
        self
    }

    /// `store V modulo (2, 0);`
    #[track_caller]
    pub fn store_modulo(&mut self, var: impl AsName, moduli: impl List) -> &mut Self {
        let var = var.as_name();
        let place = StorePlace::Modulo(self.forms(moduli));
        self.push(DirectiveKind::Store { var, place });
        self
    }

    /// `forward x along (-1, 1);`
    #[track_caller]
    pub fn forward(&mut self, input: impl AsName, along: impl List) -> &mut Self {
        let along = self.forms(along);
        self.push(DirectiveKind::Forward {
            input: input.as_name(),
            along,
        })
    }

    /// `read x;`
    pub fn read(&mut self, input: impl AsName) -> &mut Self {
        self.push(DirectiveKind::Read {
            input: input.as_name(),
        })
    }

    /// `sum Z along (q, -p);`, innermost first.
    pub fn sum_along(
        &mut self,
        var: impl AsName,
        order: impl IntoIterator<Item = Along>,
    ) -> &mut Self {
        self.sum(var, [SumStage::along(order)])
    }

    /// `sum Z tree;`
    pub fn sum_tree(&mut self, var: impl AsName) -> &mut Self {
        self.sum(var, [SumStage::tree([] as [&str; 0])])
    }

    /// `sum Z along t then tree jj;`: each stage adds up what the one before it has completed.
    pub fn sum(
        &mut self,
        var: impl AsName,
        stages: impl IntoIterator<Item = SumStage>,
    ) -> &mut Self {
        self.push(DirectiveKind::Sum {
            var: var.as_name(),
            stages: stages.into_iter().map(|SumStage(stage)| stage).collect(),
        })
    }

    /// `broadcast X;`
    pub fn broadcast(&mut self, var: impl AsName) -> &mut Self {
        self.push(DirectiveKind::Broadcast { var: var.as_name() })
    }

    /// `transfer w to shared;`
    pub fn transfer(&mut self, source: impl AsName, store: Store) -> TransferDirective<'_> {
        self.push(DirectiveKind::Transfer(Transfer {
            source: source.as_name(),
            store,
            at: None,
            stages: 1,
            layout: Layout::default(),
            engine: Engine::Plain,
        }));
        TransferDirective(self)
    }

    /// `unroll q;`
    pub fn unroll(&mut self, name: impl AsName) -> &mut Self {
        self.push(DirectiveKind::Unroll {
            name: name.as_name(),
            factor: None,
        })
    }

    /// `unroll q by 4;`
    pub fn unroll_by(&mut self, name: impl AsName, factor: u64) -> &mut Self {
        self.push(DirectiveKind::Unroll {
            name: name.as_name(),
            factor: Some(factor),
        })
    }

    pub fn check(&mut self) -> &mut Self {
        self.push(DirectiveKind::Check(Check::Check))
    }

    pub fn trust(&mut self) -> &mut Self {
        self.push(DirectiveKind::Check(Check::Trust))
    }

    pub fn auto(&mut self) -> &mut Self {
        self.push(DirectiveKind::Check(Check::Auto))
    }

    /// `reverse (c = lane - time, q = time);`
    pub fn reverse<N: AsName, E: Into<Expr>>(
        &mut self,
        bindings: impl IntoIterator<Item = (N, E)>,
    ) -> &mut Self {
        let bindings = bindings
            .into_iter()
            .map(|(name, expr)| (name.as_name(), self.form(expr)))
            .collect();
        self.push(DirectiveKind::Reverse { bindings })
    }

    pub fn flags(&mut self) -> &mut Self {
        self.push(DirectiveKind::Flags)
    }

    pub fn look_back(&mut self) -> &mut Self {
        self.push(DirectiveKind::LookBack)
    }

    /// `func X(device);`
    pub fn func(&mut self, name: impl AsName, residence: Residence) -> Func<'_> {
        let name = name.as_name();
        self.push(DirectiveKind::Func {
            name: name.clone(),
            ty: None,
            args: Vec::new(),
            residence,
        });
        Func {
            mapping: self,
            name,
        }
    }

    /// `func X(f32, (c, q), device);`
    pub fn func_of(
        &mut self,
        name: impl AsName,
        ty: impl Into<Type>,
        args: impl IntoIterator<Item = impl AsName>,
        residence: Residence,
    ) -> Func<'_> {
        let name = name.as_name();
        self.push(DirectiveKind::Func {
            name: name.clone(),
            ty: Some(ty.into()),
            args: all(args),
            residence,
        });
        Func {
            mapping: self,
            name,
        }
    }

    /// Applies primitives of Table 1 to a function, without declaring it: `X.merge_ures(…)`.
    pub fn on(&mut self, name: impl AsName) -> Func<'_> {
        let name = name.as_name();
        Func {
            mapping: self,
            name,
        }
    }

    pub fn build(&self) -> Result<Mapping, Vec<Diagnostic>> {
        if !self.errors.is_empty() {
            return Err(self.errors.clone());
        }
        Ok(Mapping {
            name: self.name.clone(),
            system: self.system.clone(),
            directives: self.directives.clone(),
            span: Span::NONE,
        })
    }
}

/// Options of `tile x by size as (outer, inner)`.
pub struct TileDirective<'a>(&'a mut MappingBuilder);

impl TileDirective<'_> {
    /// `overlap (lo, hi)`.
    pub fn overlap(self, lo: impl Into<Expr>, hi: impl Into<Expr>) -> Self {
        let bounds = (self.0.form(lo), self.0.form(hi));
        if let Some(DirectiveKind::Tile { overlap, .. }) = last(self.0) {
            *overlap = Some(bounds);
        }
        self
    }

    pub fn periodic(self) -> Self {
        if let Some(DirectiveKind::Tile { periodic, .. }) = last(self.0) {
            *periodic = true;
        }
        self
    }
}

fn last(mapping: &mut MappingBuilder) -> Option<&mut DirectiveKind> {
    mapping
        .directives
        .last_mut()
        .map(|directive| &mut directive.kind)
}

/// Options of `transfer w to shared`.
pub struct TransferDirective<'a>(&'a mut MappingBuilder);

impl TransferDirective<'_> {
    fn change(self, change: impl FnOnce(&mut Transfer)) -> Self {
        if let Some(DirectiveKind::Transfer(transfer)) = last(self.0) {
            change(transfer);
        }
        self
    }

    pub fn at(self, window: impl AsName) -> Self {
        self.change(|t| t.at = Some(window.as_name()))
    }

    pub fn stages(self, stages: u64) -> Self {
        self.change(|t| t.stages = stages)
    }

    pub fn layout(self, layout: impl Into<Layout>) -> Self {
        let layout = layout.into();
        self.change(|t| t.layout = layout)
    }

    pub fn by(self, engine: Engine) -> Self {
        self.change(|t| t.engine = engine)
    }
}

/// Applies the primitives of Table 1 to one function. Each method returns the builder, for
/// chaining.
pub struct Func<'a> {
    mapping: &'a mut MappingBuilder,
    name: Name,
}

impl Func<'_> {
    fn push(self, kind: DirectiveKind) -> Self {
        self.mapping.push(kind);
        self
    }

    pub fn merge_ures(self, others: impl IntoIterator<Item = impl AsName>) -> Self {
        let func = self.name.clone();
        self.push(DirectiveKind::MergeUres {
            func,
            others: all(others),
        })
    }

    /// `X.tile(v, outer, inner, factor)`: v = factor·outer + inner.
    pub fn tile(
        self,
        loop_name: impl AsName,
        outer: impl AsName,
        inner: impl AsName,
        factor: impl Into<Expr>,
    ) -> Self {
        let func = self.name.clone();
        let factor = self.mapping.form(factor);
        self.push(DirectiveKind::TileLoop {
            func,
            loop_name: loop_name.as_name(),
            outer: outer.as_name(),
            inner: inner.as_name(),
            factor,
        })
    }

    /// `X.reorder(…)`: the loops, innermost first.
    pub fn reorder(self, loops: impl IntoIterator<Item = impl AsName>) -> Self {
        let func = self.name.clone();
        self.push(DirectiveKind::Reorder {
            func,
            loops: all(loops),
        })
    }

    pub fn gpu_blocks(self, loops: impl IntoIterator<Item = impl AsName>) -> Self {
        let func = self.name.clone();
        self.push(DirectiveKind::GpuBlocks {
            func,
            loops: all(loops),
        })
    }

    pub fn gpu_threads(self, loops: impl IntoIterator<Item = impl AsName>) -> Self {
        let func = self.name.clone();
        self.push(DirectiveKind::GpuThreads {
            func,
            loops: all(loops),
        })
    }

    /// `w.in(X)`, with this function as the producer w.
    pub fn in_(self, consumer: impl AsName) -> Self {
        let producer = self.name.clone();
        self.push(DirectiveKind::In {
            producer,
            consumer: consumer.as_name(),
            compute_at: None,
            store_in: None,
        })
    }

    /// `.compute_at(X, oc)`, after [`Func::in_`].
    pub fn compute_at(self, func: impl AsName, loop_name: impl AsName) -> Self {
        match last(self.mapping) {
            Some(DirectiveKind::In { compute_at, .. }) => {
                *compute_at = Some((func.as_name(), loop_name.as_name()));
            }
            _ => self.mapping.errors.push(misplaced("compute_at")),
        }
        self
    }

    /// `.store_in(shared)`, after [`Func::in_`].
    pub fn store_in(self, store: Store) -> Self {
        match last(self.mapping) {
            Some(DirectiveKind::In { store_in, .. }) => *store_in = Some(store),
            _ => self.mapping.errors.push(misplaced("store_in")),
        }
        self
    }

    /// The lists of loops are innermost first. The last row of the matrix is the schedule.
    pub fn space_time_transform<R: List>(
        self,
        src: impl IntoIterator<Item = impl AsName>,
        dst: impl IntoIterator<Item = impl AsName>,
        matrix: impl IntoIterator<Item = R>,
    ) -> Self {
        let func = self.name.clone();
        let matrix = matrix
            .into_iter()
            .map(|row| self.mapping.forms(row))
            .collect();
        self.push(DirectiveKind::SpaceTimeTransform {
            func,
            src: all(src),
            dst: all(dst),
            matrix,
            reverse: None,
            check: None,
        })
    }

    /// The inverse as given by the user, after [`Func::space_time_transform`].
    pub fn reverse(self, forms: impl List) -> Self {
        let forms = self.mapping.forms(forms);
        match last(self.mapping) {
            Some(DirectiveKind::SpaceTimeTransform { reverse, .. }) => *reverse = Some(forms),
            _ => self.mapping.errors.push(misplaced("reverse")),
        }
        self
    }

    /// Whether PEs test whether their point is inside of the domain, after
    /// [`Func::space_time_transform`].
    pub fn checked(self, value: Check) -> Self {
        match last(self.mapping) {
            Some(DirectiveKind::SpaceTimeTransform { check, .. }) => *check = Some(value),
            _ => self.mapping.errors.push(misplaced("checked")),
        }
        self
    }
}

fn misplaced(method: &str) -> Diagnostic {
    Diagnostic::new(
        &syntax::NO_MAPPING_FORM,
        Span::NONE,
        format!("`{method}` follows nothing that it could belong to"),
    )
    .help("`compute_at` and `store_in` follow `in_`; `reverse` and `checked` follow `space_time_transform`")
}
