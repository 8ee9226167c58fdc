//! Resolves a mapping against its system: directives over names become places and times.
//!
//! Both the general form (`lane = …; time = …`) and the primitives of the paper's Table 1 become
//! one [`SpaceTime`]. Tiles without overlap need no new coordinate: with x = B·bx + xx, bx is ⌊x/B⌋
//! and xx is x mod B. An overlapped tile adds its index to the expanded domain, since one point
//! then has several copies.

use systola_ir::array::{OverlapTile, PlaceCoord, TimeCoord};
use systola_ir::codes::{limits, mapping as codes};
use systola_ir::form::{Cond, Form, Overflow, Poly};
use systola_ir::mapping::{
    Check, Directive, DirectiveKind, Engine, Layout, Mapping, Name, NameCond, NameExpr, PlaceLevel,
    Store, StorePlace, TimeLevel, Transfer,
};
use systola_ir::system::System;
use systola_ir::{Diagnostic, DimId, Span, Type, VarId};

use crate::localise::Localised;
use crate::names::{LANES_NAMES, Names};

mod pieces;
mod table1;

use table1::Table1;

/// Resolved places and times.
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
    /// Where the mapping keeps the values of variables.
    pub stores: Vec<ChosenStore>,
    pub transfers: Vec<Transfer>,
    pub unroll: Vec<(String, Option<u64>)>,
    pub check: Check,
    pub check_span: Span,
    pub flags: bool,
    /// Do trees cross blocks by look-back?
    pub look_back: bool,
    pub reverse: Vec<UserReverse>,
    pub place_span: Span,
    pub time_span: Span,
}

/// Where a mapping keeps the values of a variable.
#[derive(Clone, Debug)]
pub struct ChosenStore {
    pub var: VarId,
    pub place: ChosenPlace,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum ChosenPlace {
    Any,
    /// In an array of this name, at an index over the expanded domain.
    In(String, Vec<Form>),
    /// One modulus for each iterator; 0 keeps all of them.
    Modulo(Vec<i128>),
}

/// `name = form` of a user's reverse transform, both over the expanded domain.
#[derive(Clone, Debug)]
pub struct UserReverse {
    pub name: String,
    pub expected: Form,
    pub given: Form,
    pub span: Span,
}

/// Resolves a mapping against a localised system; `batch` names the iterator of a batch.
pub fn resolve(
    localised: &Localised,
    mapping: &Mapping,
    batch: Option<&str>,
    lanes: i128,
) -> Result<SpaceTime, Vec<Diagnostic>> {
    let system = &localised.system;
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
    names.define_lanes(lanes);
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
    for directive in localised.remaining(mapping) {
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

#[derive(Clone, Debug, Default)]
struct Extras {
    broadcast: Vec<VarId>,
    stores: Vec<ChosenStore>,
    transfers: Vec<Transfer>,
    unroll: Vec<(String, Option<u64>)>,
    /// Names to unroll that are not loops. They are time coordinates, or unknown.
    unrolled_times: Vec<Name>,
    check: Check,
    check_span: Span,
    flags: bool,
    look_back: bool,
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
                // Periodic tiles were resolved before.
                periodic: _,
            } => match overlap {
                None => self.tile(dim, outer, inner, size),
                Some((lo, hi)) => self.overlapped(dim, outer, inner, size, lo, hi),
            },
            DirectiveKind::Place { level, forms } => {
                let forms = self.forms(forms)?;
                add_place(&mut self.outside, *level, forms, span)
            }
            DirectiveKind::Time { level, forms } => {
                let forms = self.forms(forms)?;
                add_time(&mut self.outside, *level, forms, span)
            }
            DirectiveKind::When { cond, directives } => self.when(cond, directives),
            // Alignment and localisation have handled these.
            DirectiveKind::Space { .. }
            | DirectiveKind::Align { .. }
            | DirectiveKind::Forward { .. }
            | DirectiveKind::Read { .. }
            | DirectiveKind::Sum { .. } => Ok(()),
            DirectiveKind::Store { var, place } => {
                let var = self.var(var)?;
                let place = self.store_place(place, span)?;
                self.result.stores.push(ChosenStore { var, place, span });
                Ok(())
            }
            DirectiveKind::Broadcast { var } => {
                let var = self.var(var)?;
                self.result.broadcast.push(var);
                Ok(())
            }
            DirectiveKind::Transfer(transfer) => self.transfer(transfer.clone(), span),
            DirectiveKind::Unroll { name, factor } => self.unroll(name, *factor, span),
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
            DirectiveKind::LookBack => {
                self.result.look_back = true;
                Ok(())
            }
            DirectiveKind::Func { name, ty, args, .. } => {
                self.check_func(name, ty.as_ref(), args, span)
            }
            DirectiveKind::MergeUres { func, others } => self.merge(func, others),
            DirectiveKind::TileLoop {
                func,
                loop_name,
                outer,
                inner,
                factor,
            } => {
                self.use_table1(func)?;
                if !self.loops.contains(&loop_name.text) {
                    return Err(self.unknown_loop(loop_name));
                }
                self.tile(loop_name, outer, inner, factor)
            }
            DirectiveKind::Reorder { func, loops } => {
                self.use_table1(func)?;
                self.reorder(loops)
            }
            DirectiveKind::GpuBlocks { func, loops } => {
                self.use_table1(func)?;
                for name in loops {
                    self.is_loop(name)?;
                    self.table1.blocks.push(name.text.clone());
                }
                Ok(())
            }
            DirectiveKind::GpuThreads { func, loops } => {
                self.use_table1(func)?;
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
                self.transfer_at(producer, compute_at.as_ref(), *store_in, span)
            }
            DirectiveKind::SpaceTimeTransform {
                func,
                src,
                dst,
                matrix,
                reverse,
                check,
            } => {
                self.use_table1(func)?;
                self.transform(src, dst, matrix, reverse.as_deref(), span)?;
                if let Some(check) = check {
                    self.result.check = *check;
                    self.result.check_span = span;
                }
                Ok(())
            }
        }
    }

    fn when(&mut self, cond: &NameCond, directives: &[Directive]) -> Result<(), Diagnostic> {
        let cond = self.names.cond(cond)?;
        let mut coords = Coords::default();
        for inner in directives {
            match &inner.kind {
                DirectiveKind::Place { level, forms } => {
                    add_place(&mut coords, *level, self.forms(forms)?, inner.span)?;
                }
                DirectiveKind::Time { level, forms } => {
                    add_time(&mut coords, *level, self.forms(forms)?, inner.span)?;
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

    fn unroll(&mut self, name: &Name, factor: Option<u64>, span: Span) -> Result<(), Diagnostic> {
        if self.names.get(&name.text).is_none() {
            self.result.unrolled_times.push(name.clone());
        }
        if factor == Some(0) {
            return Err(Diagnostic::new(
                &codes::BAD_FACTOR,
                span,
                "a loop cannot be unrolled 0 times",
            ));
        }
        self.result.unroll.push((name.text.clone(), factor));
        Ok(())
    }

    /// A declaration must repeat what the system says of the variable.
    fn check_func(
        &self,
        name: &Name,
        ty: Option<&Type>,
        args: &[Name],
        span: Span,
    ) -> Result<(), Diagnostic> {
        let var = self.var(name)?;
        let declared = &self.system.vars[var.index()].ty;
        if let Some(ty) = ty.filter(|ty| *ty != declared) {
            let why = format!(
                "`{}` is declared {ty} here and {declared} in the system",
                name.text
            );
            return Err(Diagnostic::new(&codes::FUNC_MISMATCH, span, why)
                .help("leave the type out, or repeat that of the system"));
        }
        let mut written: Vec<&str> = args.iter().map(|a| a.text.as_str()).collect();
        let mut dims: Vec<&str> = self.system.dims.iter().map(|d| d.name.as_str()).collect();
        written.sort_unstable();
        dims.sort_unstable();
        if !args.is_empty() && written != dims {
            let why = format!(
                "`{}` is declared over ({}), the index space is ({})",
                name.text,
                written.join(", "),
                dims.join(", ")
            );
            return Err(Diagnostic::new(&codes::FUNC_MISMATCH, span, why)
                .help("leave the arguments out, or list the iterators of the system"));
        }
        Ok(())
    }

    fn use_table1(&mut self, func: &Name) -> Result<(), Diagnostic> {
        self.var(func)?;
        self.table1.used = true;
        Ok(())
    }

    /// Defines the tile indices of a refused `tile`, so that one mistake gives one message.
    fn forgive(&mut self, directive: &Directive) {
        let (tiled, outer, inner) = match &directive.kind {
            DirectiveKind::Tile {
                dim, outer, inner, ..
            } => (dim, outer, inner),
            DirectiveKind::TileLoop {
                loop_name,
                outer,
                inner,
                ..
            } => (loop_name, outer, inner),
            _ => return,
        };
        let tiled = self.names.get(&tiled.text).cloned();
        let tiled = tiled.unwrap_or_else(|| Form::from(DimId::from(self.n_tiles)));
        for name in [outer, inner] {
            if self.names.get(&name.text).is_none() {
                self.names.define(&name.text, tiled.clone());
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
        self.names.unambiguous(&name.text, name.span)?;
        if self.names.get(&name.text).is_some() {
            return Ok(());
        }
        Err(Diagnostic::new(
            &codes::UNKNOWN_NAME,
            name.span,
            format!("`{}` is not an iterator or tile index here", name.text),
        )
        .help(format!("name one of `{}`", self.loops.join("`, `"))))
    }

    fn is_loop(&self, name: &Name) -> Result<(), Diagnostic> {
        self.names.unambiguous(&name.text, name.span)?;
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
        .help(format!(
            "the loops are {}, outermost first",
            self.loops.join(", ")
        ))
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
        let size = self.names.tile_size(size)?;
        let Some(form) = self.names.get(&dim.text).cloned() else {
            return Err(self.unknown_loop(dim));
        };
        if self.names.is_param(&dim.text) || LANES_NAMES.contains(&dim.text.as_str()) {
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
    ) -> Result<(), Diagnostic> {
        self.names.unambiguous(&dim.text, dim.span)?;
        self.new_name(outer, dim)?;
        self.new_name(inner, dim)?;
        let Some(position) = self.system.dims.iter().position(|d| d.name == dim.text) else {
            return Err(Diagnostic::new(
                &limits::OVERLAP_OF_TILE,
                dim.span,
                format!(
                    "`{}` is not an iterator of the system: only those can be tiled with overlap",
                    dim.text
                ),
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
            value.filter(|v| (0..=1 << 40).contains(v)).ok_or_else(|| {
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
            size: self.names.tile_size(size)?,
            lo: halo(self, lo)?,
            hi: halo(self, hi)?,
            ring: None,
        };
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
                format!(
                    "`{}` has no input or variable `{}`",
                    self.system.name, transfer.source.text
                ),
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

    /// `producer.in(consumer)`: a transfer at the loop where the function is computed.
    fn transfer_at(
        &mut self,
        producer: &Name,
        compute_at: Option<&(Name, Name)>,
        store_in: Option<Store>,
        span: Span,
    ) -> Result<(), Diagnostic> {
        if let Some((func, level)) = compute_at {
            self.var(func)?;
            self.known(level)?;
        }
        let transfer = Transfer {
            source: producer.clone(),
            store: store_in.unwrap_or(Store::Registers),
            at: compute_at.map(|(_, level)| level.clone()),
            stages: 1,
            layout: Layout::default(),
            engine: Engine::Plain,
        };
        self.transfer(transfer, span)
    }

    fn store_place(&self, place: &StorePlace, span: Span) -> Result<ChosenPlace, Diagnostic> {
        Ok(match place {
            StorePlace::Chosen => ChosenPlace::Any,
            StorePlace::In { array, index } => {
                ChosenPlace::In(array.text.clone(), self.forms(index)?)
            }
            StorePlace::Modulo(written) => {
                let dims: Vec<&str> = self.system.dims.iter().map(|d| d.name.as_str()).collect();
                let refuse = |expr: &NameExpr, why: String| {
                    Diagnostic::new(&codes::BAD_STORE, expr.span, why).help(format!(
                        "give one number for each of {}: 0 keeps every value of the iterator, 1 none",
                        dims.join(", ")
                    ))
                };
                let mut moduli = Vec::new();
                for expr in written {
                    match self.names.form(expr)?.as_constant() {
                        Some(m) if (0..=1 << 40).contains(&m) => moduli.push(m),
                        _ => return Err(refuse(expr, "this is no modulus".into())),
                    }
                }
                if moduli.len() != dims.len() {
                    let (have, want) = (moduli.len(), dims.len());
                    let message = format!("{have} moduli for {want} iterators");
                    let Some(first) = written.first() else {
                        return Err(Diagnostic::new(&codes::BAD_STORE, span, message));
                    };
                    return Err(refuse(first, message));
                }
                ChosenPlace::Modulo(moduli)
            }
        })
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
                .help(format!(
                    "add a time, such as `time = {};`",
                    self.loops.join(" + ")
                )),
            );
        }
        let (place, time) = self.coordinates();
        for name in std::mem::take(&mut self.result.unrolled_times) {
            if time.iter().all(|t| t.name != name.text)
                && let Err(error) = self.known(&name)
            {
                self.errors.push(error);
            }
        }
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
            stores: self.result.stores,
            transfers: self.result.transfers,
            unroll: self.result.unroll,
            check: self.result.check,
            check_span: self.result.check_span,
            flags: self.result.flags,
            look_back: self.result.look_back,
            reverse: self.result.reverse,
            place_span: first_span(self.outside.place.iter().map(|p| p.2).collect()),
            time_span: first_span(self.outside.time.iter().map(|t| t.2).collect()),
        })
    }
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
    .help(format!(
        "give all coordinates of `{level}` at once: `{level} = (a, b);`"
    ))
}

/// A form of the system over the expanded domain: iterators come after the tile indices.
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
