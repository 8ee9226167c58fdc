//! A mapping against its system: directives over names become places and times.
//!
//! Both the general form (`lane = …; time = …`) and the primitives of the paper's Table 1 end here
//! as one [`SpaceTime`]. Tiles without overlap need no new coordinate: with x = B·bx + xx, bx is
//! ⌊x/B⌋ and xx is x mod B. An overlapped tile adds its index to the expanded domain, since one point
//! then has several copies.

use systola_ir::array::{OverlapTile, PlaceCoord, TimeCoord};
use systola_ir::codes::{limits, mapping as codes};
use systola_ir::form::{Cond, Form, Overflow, Poly};
use systola_ir::mapping::{
    Check, Directive, DirectiveKind, Engine, Layout, Mapping, Name, NameExpr, PlaceLevel, Store,
    TimeLevel, Transfer,
};
use systola_ir::system::System;
use systola_ir::{Diagnostic, DimId, Span, VarId};

use crate::names::Names;

/// Lanes of the target that `L` stands for, until a target says otherwise.
pub const LANES: i128 = 32;

/// Where and when, resolved.
#[derive(Clone, Debug)]
pub struct SpaceTime {
    pub tiles: Vec<OverlapTile>,
    /// Names of the coordinates of the expanded domain.
    pub dims: Vec<String>,
    pub place: Vec<PlaceCoord>,
    pub time: Vec<TimeCoord>,
    /// Condition, places, times; the conditions exclude each other.
    pub pieces: Vec<(Cond, Vec<Form>, Vec<Form>)>,
    /// Variables that may arrive in the step in which they leave.
    pub broadcast: Vec<VarId>,
    pub transfers: Vec<Transfer>,
    pub unroll: Vec<(String, Option<u64>)>,
    pub check: Check,
    pub check_span: Span,
    pub flags: bool,
    pub reverse: Vec<UserReverse>,
    pub place_span: Span,
    pub time_span: Span,
}

/// `name = form` of a user's reverse transform, both over the expanded domain.
#[derive(Clone, Debug)]
pub struct UserReverse {
    pub name: String,
    pub expected: Form,
    pub given: Form,
    pub span: Span,
}

/// Resolves a mapping against a written-out system; `batch` names the iterator of a batch.
pub fn resolve(
    system: &System,
    mapping: &Mapping,
    batch: Option<&str>,
) -> Result<SpaceTime, Vec<Diagnostic>> {
    let n_tiles = mapping
        .directives
        .iter()
        .filter(|d| {
            matches!(
                d.kind,
                DirectiveKind::Tile {
                    overlap: Some(_),
                    ..
                }
            )
        })
        .count();
    let mut names = Names::with_tiles(system, n_tiles);
    if names.get("L").is_none() {
        names.define("L", Form::from(LANES));
    }
    let mut pass = Pass {
        system,
        batch,
        names,
        n_tiles,
        tiles: Vec::new(),
        tile_names: Vec::new(),
        loops: system.dims.iter().map(|d| d.name.clone()).collect(),
        outside: Coords::default(),
        whens: Vec::new(),
        table1: Table1::default(),
        result: Extras::default(),
        errors: Vec::new(),
    };
    for directive in &mapping.directives {
        if let Err(error) = pass.directive(directive) {
            pass.errors.push(error);
            pass.forgive(directive);
        }
    }
    pass.finish(mapping)
}

/// Forms by level, in the order written.
#[derive(Clone, Debug, Default)]
struct Coords {
    place: Vec<(PlaceLevel, Vec<Form>, Span)>,
    time: Vec<(TimeLevel, Vec<Form>, Span)>,
}

/// What the primitives of Table 1 said.
#[derive(Clone, Debug, Default)]
struct Table1 {
    used: bool,
    blocks: Vec<String>,
    threads: Vec<String>,
    /// Source loops, names and forms of the lanes, the schedule.
    transform: Option<(Vec<String>, Vec<(String, Form)>, (String, Form), Span)>,
}

#[derive(Clone, Debug, Default)]
struct Extras {
    broadcast: Vec<VarId>,
    transfers: Vec<Transfer>,
    unroll: Vec<(String, Option<u64>)>,
    check: Check,
    check_span: Span,
    flags: bool,
    reverse: Vec<UserReverse>,
    user_reverse: Vec<(Name, NameExpr)>,
}

struct Pass<'a> {
    system: &'a System,
    /// The iterator that a `batch` became.
    batch: Option<&'a str>,
    names: Names,
    n_tiles: usize,
    tiles: Vec<OverlapTile>,
    tile_names: Vec<String>,
    /// Outermost first.
    loops: Vec<String>,
    outside: Coords,
    whens: Vec<(Cond, Coords)>,
    table1: Table1,
    result: Extras,
    errors: Vec<Diagnostic>,
}

impl Pass<'_> {
    fn directive(&mut self, directive: &Directive) -> Result<(), Diagnostic> {
        let span = directive.span;
        match &directive.kind {
            DirectiveKind::Tile {
                dim,
                size,
                outer,
                inner,
                overlap,
                periodic,
            } => {
                if *periodic {
                    return Err(Diagnostic::new(
                        &limits::PERIODIC,
                        span,
                        format!("`{}` is tiled as a periodic axis", dim.text),
                    )
                    .help("write the wrap-around as a guarded dependence with a parametric distance, such as X(t-1, i+N-1)"));
                }
                match overlap {
                    None => self.tile(dim, outer, inner, size),
                    Some((lo, hi)) => self.overlapped(dim, outer, inner, size, lo, hi, span),
                }
            }
            DirectiveKind::Place { level, forms } => {
                let forms = self.forms(forms)?;
                add_place(&mut self.outside, *level, forms, span)
            }
            DirectiveKind::Time { level, forms } => {
                let forms = self.forms(forms)?;
                add_time(&mut self.outside, *level, forms, span)
            }
            DirectiveKind::When { cond, directives } => {
                let cond = self.names.cond(cond)?;
                let mut coords = Coords::default();
                for inner in directives {
                    match &inner.kind {
                        DirectiveKind::Place { level, forms } => {
                            let forms = self.forms(forms)?;
                            add_place(&mut coords, *level, forms, inner.span)?;
                        }
                        DirectiveKind::Time { level, forms } => {
                            let forms = self.forms(forms)?;
                            add_time(&mut coords, *level, forms, inner.span)?;
                        }
                        _ => {
                            return Err(Diagnostic::new(
                                &codes::NOT_IN_WHEN,
                                inner.span,
                                "only places and times can be given by pieces",
                            )
                            .help("move this directive out of the `when`"));
                        }
                    }
                }
                self.whens.push((cond, coords));
                Ok(())
            }
            // Already made by localisation.
            DirectiveKind::Forward { .. }
            | DirectiveKind::Read { .. }
            | DirectiveKind::Sum { .. } => Ok(()),
            DirectiveKind::Broadcast { var } => {
                let var = self.var(var)?;
                self.result.broadcast.push(var);
                Ok(())
            }
            DirectiveKind::Transfer(transfer) => self.transfer(transfer.clone(), span),
            DirectiveKind::Unroll { name, factor } => {
                self.known(name)?;
                if *factor == Some(0) {
                    return Err(Diagnostic::new(
                        &codes::BAD_FACTOR,
                        span,
                        "a loop can not be unrolled 0 times",
                    ));
                }
                self.result.unroll.push((name.text.clone(), *factor));
                Ok(())
            }
            DirectiveKind::Check(check) => {
                self.result.check = *check;
                self.result.check_span = span;
                Ok(())
            }
            DirectiveKind::Reverse { bindings } => {
                self.result.user_reverse.extend(bindings.iter().cloned());
                Ok(())
            }
            DirectiveKind::Flags => {
                self.result.flags = true;
                Ok(())
            }
            DirectiveKind::Func { name, ty, args, .. } => {
                let var = self.var(name)?;
                let declared = &self.system.vars[var.index()];
                if let Some(ty) = ty
                    && *ty != declared.ty
                {
                    return Err(Diagnostic::new(
                        &codes::FUNC_MISMATCH,
                        span,
                        format!("`{}` is declared {ty} here and {} in the system", name.text, declared.ty),
                    )
                    .help("leave the type out, or repeat that of the system"));
                }
                let mut written: Vec<&str> = args.iter().map(|a| a.text.as_str()).collect();
                let mut dims: Vec<&str> = self.system.dims.iter().map(|d| d.name.as_str()).collect();
                written.sort_unstable();
                dims.sort_unstable();
                if !args.is_empty() && written != dims {
                    return Err(Diagnostic::new(
                        &codes::FUNC_MISMATCH,
                        span,
                        format!(
                            "`{}` is declared over ({}), the index space is ({})",
                            name.text,
                            written.join(", "),
                            dims.join(", ")
                        ),
                    )
                    .help("leave the arguments out, or list the iterators of the system"));
                }
                Ok(())
            }
            DirectiveKind::MergeUres { func, others } => self.merge(func, others),
            DirectiveKind::TileLoop {
                func,
                loop_name,
                outer,
                inner,
                factor,
            } => {
                self.var(func)?;
                self.table1.used = true;
                if !self.loops.contains(&loop_name.text) {
                    return Err(self.unknown_loop(loop_name));
                }
                self.tile(loop_name, outer, inner, factor)
            }
            DirectiveKind::Reorder { func, loops } => {
                self.var(func)?;
                self.table1.used = true;
                self.reorder(loops)
            }
            DirectiveKind::GpuBlocks { func, loops } => {
                self.var(func)?;
                self.table1.used = true;
                for name in loops {
                    self.is_loop(name)?;
                    self.table1.blocks.push(name.text.clone());
                }
                Ok(())
            }
            DirectiveKind::GpuThreads { func, loops } => {
                self.var(func)?;
                self.table1.used = true;
                for name in loops {
                    self.is_loop(name)?;
                    self.table1.threads.push(name.text.clone());
                }
                Ok(())
            }
            DirectiveKind::In {
                producer,
                consumer,
                compute_at,
                store_in,
            } => {
                self.var(consumer)?;
                if let Some((func, level)) = compute_at {
                    self.var(func)?;
                    self.known(level)?;
                }
                self.transfer(
                    Transfer {
                        source: producer.clone(),
                        store: store_in.unwrap_or(Store::Registers),
                        at: compute_at.as_ref().map(|(_, level)| level.clone()),
                        stages: 1,
                        layout: Layout::Plain,
                        engine: Engine::Plain,
                    },
                    span,
                )
            }
            DirectiveKind::SpaceTimeTransform {
                func,
                src,
                dst,
                matrix,
                reverse,
                check,
            } => {
                self.var(func)?;
                self.table1.used = true;
                self.transform(src, dst, matrix, reverse.as_deref(), span)?;
                if let Some(check) = check {
                    self.result.check = *check;
                    self.result.check_span = span;
                }
                Ok(())
            }
        }
    }

    /// The tile indices of a refused `tile` are known all the same: one mistake, one message.
    fn forgive(&mut self, directive: &Directive) {
        let (DirectiveKind::Tile { outer, inner, .. }
        | DirectiveKind::TileLoop { outer, inner, .. }) = &directive.kind
        else {
            return;
        };
        for name in [outer, inner] {
            if self.names.get(&name.text).is_none() {
                self.names.define(&name.text, Form::zero());
            }
        }
    }

    fn forms(&self, exprs: &[NameExpr]) -> Result<Vec<Form>, Diagnostic> {
        exprs.iter().map(|e| self.names.form(e)).collect()
    }

    fn var(&self, name: &Name) -> Result<VarId, Diagnostic> {
        self.system.find_var(&name.text).ok_or_else(|| {
            let known: Vec<String> = self
                .system
                .vars
                .iter()
                .map(|v| format!("`{}`", v.name))
                .collect();
            Diagnostic::new(
                &codes::UNKNOWN_VARIABLE,
                name.span,
                format!("`{}` has no variable `{}`", self.system.name, name.text),
            )
            .help(format!("the variables are {}", known.join(", ")))
        })
    }

    fn known(&self, name: &Name) -> Result<(), Diagnostic> {
        if self.names.get(&name.text).is_some() {
            return Ok(());
        }
        Err(Diagnostic::new(
            &codes::UNKNOWN_NAME,
            name.span,
            format!("`{}` is not an iterator or tile index here", name.text),
        )
        .help(format!("the loops are {}", self.loops.join(", "))))
    }

    fn is_loop(&self, name: &Name) -> Result<(), Diagnostic> {
        if self.loops.contains(&name.text) {
            Ok(())
        } else {
            Err(self.unknown_loop(name))
        }
    }

    fn unknown_loop(&self, name: &Name) -> Diagnostic {
        Diagnostic::new(
            &codes::UNKNOWN_NAME,
            name.span,
            format!("`{}` is not a loop here", name.text),
        )
        .help(format!("the loops are {}, outermost first", self.loops.join(", ")))
    }

    /// A tile index must be a new name.
    fn new_name(&self, name: &Name, tiled: &Name) -> Result<(), Diagnostic> {
        let taken = self.names.get(&name.text).is_some() && name.text != tiled.text;
        if taken || name.text == "lane" || name.text == "time" {
            return Err(Diagnostic::new(
                &codes::NAME_TAKEN,
                name.span,
                format!("`{}` has a meaning already", name.text),
            )
            .help("choose another name for the tile index"));
        }
        Ok(())
    }

    fn size(&self, expr: &NameExpr) -> Result<i128, Diagnostic> {
        let form = self.names.form(expr)?;
        match (form.as_constant(), form.as_poly()) {
            (Some(c), _) if (1..=1 << 40).contains(&c) => Ok(c),
            (Some(c), _) => Err(Diagnostic::new(
                &codes::BAD_FACTOR,
                expr.span,
                format!("a tile of {c} points"),
            )
            .help("a tile has at least one point, and at most 2^40")),
            (None, Some(_)) => Err(Diagnostic::new(
                &limits::NEEDS_SIZES,
                expr.span,
                "a tile whose size is a parameter can be decided at given sizes only",
            )
            .help("give the sizes with --set, or a constant tile size")),
            (None, None) => Err(Diagnostic::new(
                &codes::BAD_FACTOR,
                expr.span,
                "a tile's size can not depend on an iterator",
            )),
        }
    }

    fn tile(
        &mut self,
        dim: &Name,
        outer: &Name,
        inner: &Name,
        size: &NameExpr,
    ) -> Result<(), Diagnostic> {
        self.known(dim)?;
        self.new_name(outer, dim)?;
        self.new_name(inner, dim)?;
        let size = self.size(size)?;
        let Some(form) = self.names.get(&dim.text).cloned() else {
            return Err(self.unknown_loop(dim));
        };
        if self.names.is_param(&dim.text) || form.as_poly().is_some() {
            return Err(self.unknown_loop(dim));
        }
        self.names.define(&outer.text, form.floor_div(size));
        self.names.define(&inner.text, form.modulo(size));
        self.replace_loop(&dim.text, &outer.text, &inner.text);
        Ok(())
    }

    fn replace_loop(&mut self, dim: &str, outer: &str, inner: &str) {
        if let Some(at) = self.loops.iter().position(|l| l == dim) {
            self.loops
                .splice(at..=at, [outer.to_string(), inner.to_string()]);
        }
    }

    fn overlapped(
        &mut self,
        dim: &Name,
        outer: &Name,
        inner: &Name,
        size: &NameExpr,
        lo: &NameExpr,
        hi: &NameExpr,
        span: Span,
    ) -> Result<(), Diagnostic> {
        self.new_name(outer, dim)?;
        self.new_name(inner, dim)?;
        let Some(position) = self.system.dims.iter().position(|d| d.name == dim.text) else {
            return Err(Diagnostic::new(
                &limits::OVERLAP_OF_TILE,
                dim.span,
                format!("`{}` is not an iterator of the system: only those can be tiled with overlap", dim.text),
            )
            .help("tile the iterator itself with overlap, and split the inner part by / and %"));
        };
        let id = DimId::from(self.n_tiles + position);
        if self.tiles.iter().any(|t| t.dim == id) {
            return Err(Diagnostic::new(
                &limits::OVERLAP_OF_TILE,
                dim.span,
                format!("`{}` is tiled with overlap twice", dim.text),
            )
            .help("split the inner part of the first tile by / and %"));
        }
        let halo = |pass: &Self, expr: &NameExpr| {
            let value = pass.names.form(expr)?.as_constant();
            value
                .filter(|v| (0..=1 << 40).contains(v))
                .ok_or_else(|| {
                    Diagnostic::new(
                        &codes::BAD_FACTOR,
                        expr.span,
                        "a halo is a constant number of points, not negative",
                    )
                    .help("write `overlap (lo, hi)` with constants of at least 0")
                })
        };
        let tile = OverlapTile {
            outer: DimId::from(self.tiles.len()),
            dim: id,
            size: self.size(size)?,
            lo: halo(self, lo)?,
            hi: halo(self, hi)?,
        };
        let _ = span;
        self.names.define(&outer.text, Form::from(tile.outer));
        self.names.define(&inner.text, tile.inner());
        self.tiles.push(tile);
        self.tile_names.push(outer.text.clone());
        self.replace_loop(&dim.text, &outer.text, &inner.text);
        Ok(())
    }

    fn transfer(&mut self, transfer: Transfer, span: Span) -> Result<(), Diagnostic> {
        let input = self.system.find_input(&transfer.source.text);
        let known = input.is_some() || self.system.find_var(&transfer.source.text).is_some();
        if !known {
            return Err(Diagnostic::new(
                &codes::UNKNOWN_INPUT,
                transfer.source.span,
                format!("`{}` has no input or variable `{}`", self.system.name, transfer.source.text),
            )
            .help("name an input or a variable of the system"));
        }
        if let Some(at) = &transfer.at {
            self.known(at)?;
        }
        if transfer.stages == 0 {
            return Err(Diagnostic::new(
                &codes::BAD_FACTOR,
                span,
                "a transfer has at least one stage",
            ));
        }
        self.result.transfers.push(transfer);
        Ok(())
    }

    /// The listed order must let every equation read what an earlier one computed at the same point.
    fn merge(&mut self, func: &Name, others: &[Name]) -> Result<(), Diagnostic> {
        self.table1.used = true;
        let mut order = Vec::new();
        for name in std::iter::once(func).chain(others) {
            let var = self.var(name)?;
            if order.contains(&var) {
                return Err(Diagnostic::new(
                    &codes::MERGE_ORDER,
                    name.span,
                    format!("`{}` is merged twice", name.text),
                ));
            }
            order.push(var);
        }
        let here = self.system.identity_index();
        for (n, sink) in order.iter().enumerate() {
            let mut wrong = None;
            systola_ir::system::visit::walk(&self.system.vars[sink.index()].body, &mut |e| {
                if let systola_ir::system::Expr::Var { var, index, .. } = e
                    && *index == here
                    && order[n..].contains(var)
                {
                    wrong = Some(*var);
                }
            });
            if let Some(source) = wrong {
                let name = |v: VarId| &self.system.vars[v.index()].name;
                return Err(Diagnostic::new(
                    &codes::MERGE_ORDER,
                    func.span,
                    format!(
                        "`{}` reads `{}` at the same point, but comes before it in the body",
                        name(*sink),
                        name(source)
                    ),
                )
                .help(format!("list `{}` before `{}`", name(source), name(*sink))));
            }
        }
        Ok(())
    }

    fn reorder(&mut self, loops: &[Name]) -> Result<(), Diagnostic> {
        for (n, name) in loops.iter().enumerate() {
            self.is_loop(name)?;
            if loops[..n].iter().any(|l| l.text == name.text) {
                return Err(Diagnostic::new(
                    &codes::NAME_TAKEN,
                    name.span,
                    format!("`{}` is listed twice", name.text),
                )
                .help("list each loop once"));
            }
        }
        // The listed loops take the positions they hold together; written innermost first.
        let mut listed = loops.iter().rev().map(|l| l.text.clone());
        for slot in &mut self.loops {
            if loops.iter().any(|l| l.text == *slot)
                && let Some(next) = listed.next()
            {
                *slot = next;
            }
        }
        Ok(())
    }

    fn transform(
        &mut self,
        src: &[Name],
        dst: &[Name],
        matrix: &[Vec<NameExpr>],
        reverse: Option<&[NameExpr]>,
        span: Span,
    ) -> Result<(), Diagnostic> {
        for name in src {
            self.is_loop(name)?;
        }
        if self.table1.transform.is_some() {
            return Err(Diagnostic::new(
                &codes::BAD_TRANSFORM,
                span,
                "a second space-time transform",
            ));
        }
        let shape = matrix.len() == dst.len() && matrix.iter().all(|row| row.len() == src.len());
        if !shape || dst.is_empty() {
            return Err(Diagnostic::new(
                &codes::BAD_TRANSFORM,
                span,
                format!(
                    "the matrix has {} rows of {} entries; {} destinations and {} sources need {} rows of {}",
                    matrix.len(),
                    matrix.first().map_or(0, Vec::len),
                    dst.len(),
                    src.len(),
                    dst.len(),
                    src.len()
                ),
            )
            .help("one row for each destination (the last is the schedule), one column for each source"));
        }
        let mut rows = Vec::new();
        for row in matrix {
            let mut form = Form::zero();
            for (entry, name) in row.iter().zip(src) {
                let coefficient = self.names.form(entry)?;
                let Some(factor) = coefficient.as_poly() else {
                    return Err(Diagnostic::new(
                        &codes::BAD_TRANSFORM,
                        entry.span,
                        "an entry of the matrix is a constant or made of parameters",
                    ));
                };
                let source = self.names.get(&name.text).cloned().unwrap_or_default();
                let term = source
                    .scale(factor)
                    .map_err(|o: Overflow| crate::localise::overflow(o, entry.span))?;
                form = form.add(&term);
            }
            rows.push(form);
        }
        let Some(schedule) = rows.pop() else {
            return Ok(());
        };
        if let Some(reverse) = reverse {
            if reverse.len() != src.len() {
                return Err(Diagnostic::new(
                    &codes::BAD_TRANSFORM,
                    span,
                    format!("the reverse transform has {} expressions for {} loops", reverse.len(), src.len()),
                ));
            }
            let mut names = self.names.clone();
            for (name, form) in dst.iter().zip(rows.iter().chain([&schedule])) {
                names.define(&name.text, form.clone());
            }
            for (expr, name) in reverse.iter().zip(src) {
                self.result.reverse.push(UserReverse {
                    name: name.text.clone(),
                    expected: self.names.get(&name.text).cloned().unwrap_or_default(),
                    given: names.form(expr)?,
                    span: expr.span,
                });
            }
        }
        let lanes = dst
            .iter()
            .map(|d| d.text.clone())
            .zip(rows)
            .collect::<Vec<_>>();
        let time_name = dst.last().map(|d| d.text.clone()).unwrap_or_default();
        let src = src.iter().map(|s| s.text.clone()).collect();
        self.table1.transform = Some((src, lanes, (time_name, schedule), span));
        Ok(())
    }

    /// The loop nest of Table 1 as places and times.
    fn finish_table1(&mut self) -> Result<(), Diagnostic> {
        if !self.table1.used {
            return Ok(());
        }
        let table = self.table1.clone();
        let form = |name: &String| self.names.get(name).cloned().unwrap_or_default();
        let mut outside = std::mem::take(&mut self.outside);
        let span = table.transform.as_ref().map_or(Span::NONE, |t| t.3);
        if !table.blocks.is_empty() {
            let forms = table.blocks.iter().map(form).collect();
            add_place(&mut outside, PlaceLevel::Block, forms, span)?;
        }
        if !table.threads.is_empty() {
            let forms = table.threads.iter().map(form).collect();
            add_place(&mut outside, PlaceLevel::Warp, forms, span)?;
        }
        if outside.time.iter().any(|(level, ..)| *level == TimeLevel::Step) {
            self.outside = outside;
            return Ok(());
        }
        let placed =
            |name: &String| table.blocks.contains(name) || table.threads.contains(name);
        let mut steps = Vec::new();
        let mut scheduled = false;
        for name in &self.loops {
            if placed(name) {
                continue;
            }
            match &table.transform {
                Some((src, _, (_, schedule), _)) if src.contains(name) => {
                    // The schedule stands where the innermost of its loops stood.
                    let last = self.loops.iter().rev().find(|l| src.contains(l));
                    if last == Some(name) && !scheduled {
                        steps.push(schedule.clone());
                        scheduled = true;
                    }
                }
                _ => steps.push(form(name)),
            }
        }
        if let Some((_, lanes, ..)) = &table.transform {
            let forms = lanes.iter().map(|(_, f)| f.clone()).collect();
            add_place(&mut outside, PlaceLevel::Lane, forms, span)?;
        }
        add_time(&mut outside, TimeLevel::Step, steps, span)?;
        self.outside = outside;
        Ok(())
    }

    fn finish(mut self, mapping: &Mapping) -> Result<SpaceTime, Vec<Diagnostic>> {
        if let Err(error) = self.finish_table1() {
            self.errors.push(error);
        }
        self.place_batch();
        if self.outside.time.is_empty() && self.whens.is_empty() && self.errors.is_empty() {
            self.errors.push(
                Diagnostic::new(
                    &codes::NO_TIME,
                    mapping.span,
                    format!("`{}` gives no time", mapping.name),
                )
                .help("add `time = …;`, such as the sum of the iterators"),
            );
        }
        let (place, time) = self.coordinates();
        let pieces = self.pieces(&place, &time);
        let mut dims = self.tile_names.clone();
        dims.extend(self.system.dims.iter().map(|d| d.name.clone()));
        self.user_reverse(&place, &time, &pieces);
        if !self.errors.is_empty() {
            return Err(self.errors);
        }
        let first_span = |spans: Vec<Span>| spans.first().copied().unwrap_or(mapping.span);
        Ok(SpaceTime {
            tiles: self.tiles,
            dims,
            place,
            time,
            pieces,
            broadcast: self.result.broadcast,
            transfers: self.result.transfers,
            unroll: self.result.unroll,
            check: self.result.check,
            check_span: self.result.check_span,
            flags: self.result.flags,
            reverse: self.result.reverse,
            place_span: first_span(self.outside.place.iter().map(|p| p.2).collect()),
            time_span: first_span(self.outside.time.iter().map(|t| t.2).collect()),
        })
    }

    /// A batch that no place or time mentions runs on blocks of its own.
    fn place_batch(&mut self) {
        let position = |name| self.system.dims.iter().position(|d| d.name == name);
        let Some(position) = self.batch.and_then(position) else {
            return;
        };
        let id = DimId::from(self.n_tiles + position);
        let coords = std::iter::once(&self.outside).chain(self.whens.iter().map(|(_, c)| c));
        let mentioned = coords
            .flat_map(|c| {
                let place = c.place.iter().flat_map(|(_, forms, _)| forms);
                place.chain(c.time.iter().flat_map(|(_, forms, _)| forms))
            })
            .any(|f| f.dims().contains(&id));
        if mentioned {
            return;
        }
        let form = Form::from(id);
        match self
            .outside
            .place
            .iter_mut()
            .find(|(level, ..)| *level == PlaceLevel::Block)
        {
            Some((_, forms, _)) => forms.insert(0, form),
            None => self
                .outside
                .place
                .push((PlaceLevel::Block, vec![form], Span::NONE)),
        }
    }

    /// The coordinates of slots: for each level as many as the longest list of forms.
    fn coordinates(&self) -> (Vec<PlaceCoord>, Vec<TimeCoord>) {
        let all = || std::iter::once(&self.outside).chain(self.whens.iter().map(|(_, c)| c));
        let numbered = |name: &str, count: usize| {
            (0..count)
                .map(|n| {
                    if n == 0 {
                        name.to_string()
                    } else {
                        format!("{name}{n}")
                    }
                })
                .collect::<Vec<_>>()
        };
        let mut place = Vec::new();
        for level in PlaceLevel::ALL {
            let count = all()
                .flat_map(|c| &c.place)
                .filter(|(l, ..)| *l == level)
                .map(|(_, forms, _)| forms.len())
                .max()
                .unwrap_or(0);
            place.extend(
                numbered(level.name(), count)
                    .into_iter()
                    .map(|name| PlaceCoord { level, name }),
            );
        }
        let mut time = Vec::new();
        for level in TimeLevel::ALL {
            let count = all()
                .flat_map(|c| &c.time)
                .filter(|(l, ..)| *l == level)
                .map(|(_, forms, _)| forms.len())
                .max()
                .unwrap_or(0);
            time.extend(
                numbered(level.name(), count)
                    .into_iter()
                    .map(|name| TimeCoord { level, name }),
            );
        }
        (place, time)
    }

    fn pieces(
        &mut self,
        place: &[PlaceCoord],
        time: &[TimeCoord],
    ) -> Vec<(Cond, Vec<Form>, Vec<Form>)> {
        let mut errors = Vec::new();
        let mut build = |coords: &Coords, outside: &Coords| {
            let mut places = Vec::new();
            for level in PlaceLevel::ALL {
                let wanted = place.iter().filter(|c| c.level == level).count();
                let own = coords.place.iter().find(|(l, ..)| *l == level);
                let forms = own.or_else(|| outside.place.iter().find(|(l, ..)| *l == level));
                let found = forms.map_or(0, |(_, f, _)| f.len());
                if found == wanted {
                    places.extend(forms.into_iter().flat_map(|(_, f, _)| f.iter().cloned()));
                } else {
                    errors.push(uneven(level.name(), wanted, found, forms.map(|f| f.2)));
                }
            }
            let mut times = Vec::new();
            for level in TimeLevel::ALL {
                let wanted = time.iter().filter(|c| c.level == level).count();
                let own = coords.time.iter().find(|(l, ..)| *l == level);
                let forms = own.or_else(|| outside.time.iter().find(|(l, ..)| *l == level));
                let found = forms.map_or(0, |(_, f, _)| f.len());
                if found == wanted {
                    times.extend(forms.into_iter().flat_map(|(_, f, _)| f.iter().cloned()));
                } else {
                    errors.push(uneven(level.name(), wanted, found, forms.map(|f| f.2)));
                }
            }
            (places, times)
        };
        let mut earlier = Cond::TRUE;
        let mut pieces = Vec::new();
        for (cond, coords) in &self.whens {
            let (places, times) = build(coords, &self.outside);
            pieces.push((earlier.clone().and(cond.clone()), places, times));
            earlier = earlier.and(cond.clone().negate());
        }
        let (places, times) = build(&self.outside, &self.outside);
        pieces.push((earlier, places, times));
        self.errors.extend(errors);
        pieces
    }

    /// `reverse (c = lane - time, …)`: the coordinates stand for what the mapping computes.
    fn user_reverse(
        &mut self,
        place: &[PlaceCoord],
        time: &[TimeCoord],
        pieces: &[(Cond, Vec<Form>, Vec<Form>)],
    ) {
        let written = std::mem::take(&mut self.result.user_reverse);
        if written.is_empty() {
            return;
        }
        let [(_, places, times)] = pieces else {
            self.errors.push(Diagnostic::new(
                &limits::REVERSE_OF_PIECES,
                written[0].0.span,
                "a reverse transform is given for a mapping by pieces",
            ).help("leave it out: the compiler derives one for each piece"));
            return;
        };
        let mut names = self.names.clone();
        for (coord, form) in place.iter().zip(places) {
            names.define(&coord.name, form.clone());
        }
        for (coord, form) in time.iter().zip(times) {
            names.define(&coord.name, form.clone());
        }
        for (name, expr) in written {
            let Some(expected) = self.names.get(&name.text).cloned() else {
                self.errors.push(self.unknown_loop(&name));
                continue;
            };
            match names.form(&expr) {
                Ok(given) => self.result.reverse.push(UserReverse {
                    name: name.text.clone(),
                    expected,
                    given,
                    span: expr.span,
                }),
                Err(error) => self.errors.push(error),
            }
        }
    }
}

fn uneven(level: &str, wanted: usize, found: usize, span: Option<Span>) -> Diagnostic {
    Diagnostic::new(
        &codes::UNEVEN_PIECES,
        span.unwrap_or(Span::NONE),
        format!("a piece of the mapping has {found} `{level}` coordinates, another has {wanted}"),
    )
    .help("give every piece the same coordinates, with 0 where one does not matter")
}

fn add_place(
    coords: &mut Coords,
    level: PlaceLevel,
    forms: Vec<Form>,
    span: Span,
) -> Result<(), Diagnostic> {
    if coords.place.iter().any(|(l, ..)| *l == level) {
        return Err(given_twice(level.name(), span));
    }
    coords.place.push((level, forms, span));
    Ok(())
}

fn add_time(
    coords: &mut Coords,
    level: TimeLevel,
    forms: Vec<Form>,
    span: Span,
) -> Result<(), Diagnostic> {
    if coords.time.iter().any(|(l, ..)| *l == level) {
        return Err(given_twice(level.name(), span));
    }
    coords.time.push((level, forms, span));
    Ok(())
}

fn given_twice(level: &str, span: Span) -> Diagnostic {
    Diagnostic::new(
        &codes::GIVEN_TWICE,
        span,
        format!("`{level}` is given twice"),
    )
    .help(format!("give all coordinates of `{level}` at once: `{level} = (a, b);`"))
}

/// A form of the system over the expanded domain: iterators move behind the tile indices.
pub fn expand_form(form: &Form, n_tiles: usize) -> Result<Form, Overflow> {
    if n_tiles == 0 {
        return Ok(form.clone());
    }
    form.substitute(&|d| Some(Form::from(DimId::from(d.index() + n_tiles))))
}

/// A distance of the system over the expanded domain.
pub fn expand_distance(e: &[Poly], n_tiles: usize) -> Vec<Poly> {
    let mut expanded = vec![Poly::zero(); n_tiles];
    expanded.extend(e.iter().cloned());
    expanded
}
