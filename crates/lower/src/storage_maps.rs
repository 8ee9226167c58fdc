//! Chooses where values are kept that points read through memory.
//!
//! A mapping may say where: `store V in a[i, j]`, `store V modulo (2, 0)`. Otherwise the values of a
//! cell go, if that is proved to lose none of them,
//!
//! 1. where they leave the array, if an output takes them: the output's memory is the storage;
//! 2. where other cells already keep theirs, at the same place of the same point;
//! 3. into a storage of their own, which has an axis for each iterator, of one, two or three elements
//!    where so few values are alive at a time.
//!
//! So a program that works in place in C works in place here, and no value is copied to be written.

pub mod conflicts;
mod image;
pub mod order;
pub mod reads;

use systola_ir::array::{Array, Storage, StorageMap};
use systola_ir::codes::{legality, mapping as codes};
use systola_ir::diag::{Counterexample, MappedPoint};
use systola_ir::form::{Cond, Form, Overflow, Poly, Rel};
use systola_ir::id::StorageId;
use systola_ir::system::{Axis, Expr};
use systola_ir::{Diagnostic, DimId, Span, VarId};

use crate::decide::Decide;
use crate::failure::Failure;
use crate::legality::numbers;
use crate::resolve::{ChosenPlace, ChosenStore};
use crate::storage::slots::{Part, bounds};
use crate::storage_maps::conflicts::{Lost, Places, Reader};
use crate::storage_maps::image::read_points;
use crate::storage_maps::reads::{StoredRead, stored_reads};

/// The longest axis that is shorter than the range of its iterator.
const LONGEST_CYCLE: i128 = 3;

/// Gives every cell that is read through memory a place for its values.
pub fn keep_values(
    array: &mut Array,
    chosen: &[ChosenStore],
    decide: &Decide,
) -> Result<(), Failure> {
    let reads = stored_reads(array);
    let is_read = |cell: VarId| reads.iter().any(|r| r.source == cell);
    let cells: Vec<VarId> = (0..array.cells.len()).map(VarId::from).collect();
    let cells: Vec<VarId> = cells.into_iter().filter(|c| is_read(*c)).collect();
    let mut keeper = Keeper {
        places: Places {
            array,
            reads: &reads,
            decide,
            kept: vec![None; array.cells.len()],
            finals: Vec::new(),
        },
        storages: Vec::new(),
        read: Vec::new(),
    };
    for cell in 0..array.cells.len() {
        let read = read_points(array, &reads, VarId::from(cell), decide)?;
        keeper.read.push(read);
    }
    for (n, store) in chosen.iter().enumerate() {
        let name = &array.cells[store.var.index()].name;
        if chosen[..n].iter().any(|other| other.var == store.var) {
            return Err(refused(store.span, format!("`{name}` is stored twice")));
        }
        if let ChosenPlace::In(place, _) = &store.place
            && array.inputs.iter().any(|input| input.name == *place)
        {
            let message = format!("`{place}` is an input, which does not change");
            return Err(refused(store.span, message));
        }
        if cells.contains(&store.var) {
            keeper.as_chosen(store)?;
        } else if !matches!(store.place, ChosenPlace::Any) {
            let message =
                format!("no other point reads `{name}` from memory, so it has no place there");
            let error = Diagnostic::new(&codes::BAD_STORE, store.span, message);
            let error = error.help("leave this `store` out");
            return Err(Failure::Refused(vec![error]));
        }
    }
    let open = |keeper: &Keeper<'_>, cell: &VarId| keeper.places.kept[cell.index()].is_none();
    // Outputs first: others may share their memory.
    for output in 0..array.outputs.len() {
        let mut takers = array.outputs[output].writes.iter();
        let is_open = |cell: VarId| cells.contains(&cell) && open(&keeper, &cell);
        if takers.any(|w| matches!(w.value, Expr::Var { var, .. } if is_open(var))) {
            keeper.claim(output)?;
        }
    }
    for cell in &cells {
        if open(&keeper, cell) {
            keeper.anywhere(*cell)?;
        }
    }
    let Keeper {
        places, storages, ..
    } = keeper;
    let kept = places.kept;
    array.storages = storages;
    for (cell, kept) in array.cells.iter_mut().zip(kept) {
        cell.kept = kept;
    }
    Ok(())
}

/// Can the memory of an output be a storage?
enum Claim {
    Storage(usize),
    Lost(Lost),
    /// The output is not what its variables are.
    Other(String),
}

struct Keeper<'a> {
    places: Places<'a>,
    storages: Vec<Storage>,
    /// For each cell, which of its points are read.
    read: Vec<Cond>,
}

impl Keeper<'_> {
    /// Keeps the values of a cell in a storage, if that loses none.
    fn place(
        &mut self,
        cell: VarId,
        storage: usize,
        index: Vec<Form>,
    ) -> Result<Option<Lost>, Failure> {
        self.places.kept[cell.index()] = Some(StorageMap {
            storage: StorageId::from(storage),
            index,
            when: self.read[cell.index()].clone(),
        });
        let lost = self.places.lost(cell)?;
        if lost.is_some() {
            self.places.kept[cell.index()] = None;
        }
        Ok(lost)
    }

    /// Follows a directive.
    fn as_chosen(&mut self, store: &ChosenStore) -> Result<(), Failure> {
        let cell = store.var;
        let name = self.places.array.cells[cell.index()].name.clone();
        let lost = match &store.place {
            ChosenPlace::Any => return Ok(()),
            ChosenPlace::Modulo(moduli) => {
                let index = self.modulo(moduli);
                let storage = self.declare(&name, cell, &index)?;
                self.place(cell, storage, index)?
            }
            ChosenPlace::In(array, index) => {
                if let Some(output) = self.output_named(array) {
                    return self.store_in_output(cell, output, index, store.span);
                }
                match self.storages.iter().position(|s| s.name == *array) {
                    Some(storage) => {
                        self.fits(cell, storage, index, store.span)?;
                        self.widen(storage, cell, index, store.span)?;
                        self.place(cell, storage, index.clone())?
                    }
                    None => {
                        let storage = self.declare(array, cell, index)?;
                        self.place(cell, storage, index.clone())?
                    }
                }
            }
        };
        match lost {
            None => Ok(()),
            Some(lost) => Err(self.overwritten(lost, store.span)),
        }
    }

    fn output_named(&self, name: &str) -> Option<usize> {
        let mut outputs = self.places.array.outputs.iter();
        outputs.position(|output| output.name == name)
    }

    /// Keeps a cell in the memory of an output, as a directive says.
    fn store_in_output(
        &mut self,
        cell: VarId,
        output: usize,
        index: &[Form],
        span: Span,
    ) -> Result<(), Failure> {
        let storage = match self.storages.iter().position(|s| s.output == Some(output)) {
            Some(storage) => storage,
            None => match self.claim(output)? {
                Claim::Storage(storage) => storage,
                Claim::Lost(lost) => return Err(self.overwritten(lost, span)),
                Claim::Other(why) => return Err(refused(span, why)),
            },
        };
        let array = self.places.array;
        self.fits(cell, storage, index, span)?;
        let axes = &array.outputs[output].axes;
        let name = &array.cells[cell.index()].name;
        let is_taken = self.places.kept[cell.index()].is_some();
        if !is_taken && !self.is_shared(&self.storages[storage]) {
            let output = &array.outputs[output].name;
            let why = format!("`{output}` has elements that keep a value stated for them");
            return Err(refused(span, why));
        }
        if !self.is_inside(cell, index, axes)? {
            let output = &array.outputs[output].name;
            return Err(refused(
                span,
                format!("`{name}` has values outside of the axes of `{output}`"),
            ));
        }
        match &self.places.kept[cell.index()] {
            Some(own) if own.storage.index() == storage && own.index == index => return Ok(()),
            Some(_) => {
                let output = &array.outputs[output].name;
                let message = format!("`{output}` takes `{name}` at other indices");
                return Err(refused(span, message));
            }
            None => {}
        }
        match self.place(cell, storage, index.to_vec())? {
            None => Ok(()),
            Some(lost) => Err(self.overwritten(lost, span)),
        }
    }

    /// Makes the memory of an output a storage of the cells that it takes, if what is there in the
    /// end is the output.
    fn claim(&mut self, output: usize) -> Result<Claim, Failure> {
        let array = self.places.array;
        let declared = &array.outputs[output];
        let other = |why: &str| Ok(Claim::Other(format!("`{}` {why}", declared.name)));
        let ty = systola_ir::Type::Scalar(declared.ty);
        let mut taken: Vec<(VarId, &[Form])> = Vec::new();
        let mut finals = Vec::new();
        for write in &declared.writes {
            let Expr::Var { var, .. } = &write.value else {
                return other("is computed from values, and does not consist of them");
            };
            let cell = &array.cells[var.index()];
            let elsewhere = taken.iter().any(|(v, at)| v == var && *at != write.index);
            if elsewhere || cell.ty != ty || self.places.kept[var.index()].is_some() {
                return other("takes a variable twice, of another type, or from another storage");
            }
            if declared.fill.is_some() && !self.takes_all(*var, output)? {
                return other("has elements that keep a value stated for them");
            }
            if !self.has_room(*var, &write.index, output)? {
                return other("has no room for all values of a variable that it takes");
            }
            if !taken.iter().any(|(v, _)| v == var) {
                taken.push((*var, &write.index));
            }
            finals.push(StoredRead {
                sink: *var,
                source: *var,
                index: (0..array.dims.len())
                    .map(|d| Form::from(DimId::from(d)))
                    .collect(),
                when: cell.domain.clone().and(write.when.clone()),
                span: write.span,
            });
        }
        let storage = StorageId::from(self.storages.len());
        let known = self.places.finals.len();
        self.places.finals.extend(finals);
        for (cell, index) in &taken {
            self.places.kept[cell.index()] = Some(StorageMap {
                storage,
                index: index.to_vec(),
                when: Cond::TRUE,
            });
        }
        for (cell, _) in &taken {
            if let Some(lost) = self.places.lost(*cell)? {
                self.places.finals.truncate(known);
                for (cell, _) in &taken {
                    self.places.kept[cell.index()] = None;
                }
                return Ok(Claim::Lost(lost));
            }
        }
        self.storages.push(Storage {
            name: declared.name.clone(),
            ty,
            axes: declared.axes.clone(),
            output: Some(output),
        });
        Ok(Claim::Storage(storage.index()))
    }

    /// Finds a place for the values of a cell.
    fn anywhere(&mut self, cell: VarId) -> Result<(), Failure> {
        let array = self.places.array;
        let ty = &array.cells[cell.index()].ty;
        // With the cells that have a place already.
        let mut taken: Vec<(usize, Vec<Form>)> = Vec::new();
        for (other, kept) in self.places.kept.iter().enumerate() {
            let Some(kept) = kept else { continue };
            let storage = kept.storage.index();
            for index in renamed(&kept.index, &array.cells[other].domain)? {
                if !taken.contains(&(storage, index.clone())) {
                    taken.push((storage, index));
                }
            }
        }
        for (storage, index) in taken {
            let declared = &self.storages[storage];
            if declared.ty == *ty
                && self.is_shared(declared)
                && self.is_inside(cell, &index, &declared.axes)?
                && self.place(cell, storage, index)?.is_none()
            {
                return Ok(());
            }
        }
        // Apart from all others.
        let name = array.cells[cell.index()].name.clone();
        let mut moduli = vec![0; array.dims.len()];
        let storage = self.storages.len();
        self.storages.push(Storage {
            name: name.clone(),
            ty: ty.clone(),
            axes: Vec::new(),
            output: None,
        });
        for d in 0..moduli.len() {
            for modulus in 1..=LONGEST_CYCLE {
                moduli[d] = modulus;
                let index = self.modulo(&moduli);
                if self.place(cell, storage, index)?.is_none() {
                    break;
                }
                moduli[d] = 0;
            }
        }
        self.storages.pop();
        let index = self.modulo(&moduli);
        let storage = self.declare(&name, cell, &index)?;
        match self.place(cell, storage, index)? {
            None => Ok(()),
            Some(lost) => Err(self.overwritten(lost, array.cells[cell.index()].span)),
        }
    }

    /// The index for moduli: iterators with modulus 1 have no axis, those with 0 a whole one.
    fn modulo(&self, moduli: &[i128]) -> Vec<Form> {
        let mut index = Vec::new();
        for (d, modulus) in moduli.iter().enumerate() {
            let iterator = Form::from(DimId::from(d));
            match modulus {
                0 => index.push(iterator),
                1 => {}
                m => index.push(iterator.modulo(*m)),
            }
        }
        index
    }

    /// A storage with room for the values of a cell.
    fn declare(&mut self, name: &str, cell: VarId, index: &[Form]) -> Result<usize, Failure> {
        let array = self.places.array;
        let taken = |name: &str| {
            let mut names = self.storages.iter().map(|s| &s.name);
            names.any(|n| n == name)
        };
        let numbered = (2..).map(|n| format!("{name}_{n}"));
        let mut names = std::iter::once(name.to_string()).chain(numbered);
        let axes = index.iter().map(|form| self.axis(cell, form));
        let axes = axes.collect::<Result<_, _>>()?;
        let name = names.find(|name| !taken(name)).unwrap_or_default();
        self.storages.push(Storage {
            name,
            ty: array.cells[cell.index()].ty.clone(),
            axes,
            output: None,
        });
        Ok(self.storages.len() - 1)
    }

    /// The values that an index takes over the points of a cell.
    fn axis(&self, cell: VarId, form: &Form) -> Result<Axis, Failure> {
        let array = self.places.array;
        let part = Part {
            cond: self.written(cell),
            value: form.clone(),
            given: Vec::new(),
        };
        let range = bounds(self.places.decide, array.dims.len(), vec![part], &[])?;
        // Any of the bounds holds; the first is as good as another.
        let (lo, hi) = (range.lo[0].clone(), range.hi[0].clone());
        Ok(Axis { lo, hi })
    }

    /// Makes room in a storage for the values of another cell.
    fn widen(
        &mut self,
        storage: usize,
        cell: VarId,
        index: &[Form],
        span: Span,
    ) -> Result<(), Failure> {
        for (n, form) in index.iter().enumerate() {
            let own = self.axis(cell, form)?;
            let decide = self.places.decide;
            let somewhere = |gap: Form| -> Result<bool, Failure> {
                Ok(!decide.is_empty(&Cond::cmp(Rel::Gt, gap, 0), 0)?)
            };
            let declared = &mut self.storages[storage];
            let axis = &mut declared.axes[n];
            let (below, above) = (axis.lo.sub(&own.lo), own.hi.sub(&axis.hi));
            // Either end is that of one of the two for all sizes, or there is none to write down.
            for (beyond, end, new) in [(below, &mut axis.lo, own.lo), (above, &mut axis.hi, own.hi)]
            {
                if !somewhere(beyond.clone())? {
                    continue;
                }
                if somewhere(beyond.neg())? {
                    let name = &declared.name;
                    let message = format!(
                        "variables in `{name}` need different lengths along axis {n}, which of them is longer depends on the sizes"
                    );
                    return Err(refused(span, message));
                }
                *end = new;
            }
        }
        Ok(())
    }

    /// Does an output take the value of a cell at each of its points?
    fn takes_all(&self, cell: VarId, output: usize) -> Result<bool, Failure> {
        let array = self.places.array;
        let writes = array.outputs[output].writes.iter();
        let own = writes.filter(|w| matches!(w.value, Expr::Var { var, .. } if var == cell));
        let left = own.map(|write| write.when.clone().negate());
        let left = left.fold(array.cells[cell.index()].domain.clone(), Cond::and);
        Ok(self.places.decide.is_empty(&left, array.dims.len())?)
    }

    /// May others than those that it takes be kept in a storage?
    fn is_shared(&self, storage: &Storage) -> bool {
        let output = storage.output.map(|n| &self.places.array.outputs[n]);
        output.is_none_or(|output| output.fill.is_none())
    }

    /// Is there a place in an output for every point of a cell?
    fn has_room(&self, cell: VarId, index: &[Form], output: usize) -> Result<bool, Failure> {
        let domain = &self.places.array.cells[cell.index()].domain;
        self.all_inside(domain, index, &self.places.array.outputs[output].axes)
    }

    /// The points of a cell that are kept.
    fn written(&self, cell: VarId) -> Cond {
        let domain = self.places.array.cells[cell.index()].domain.clone();
        domain.and(self.read[cell.index()].clone())
    }

    fn is_inside(&self, cell: VarId, index: &[Form], axes: &[Axis]) -> Result<bool, Failure> {
        self.all_inside(&self.written(cell), index, axes)
    }

    fn all_inside(&self, domain: &Cond, index: &[Form], axes: &[Axis]) -> Result<bool, Failure> {
        let n = self.places.array.dims.len();
        for (form, axis) in index.iter().zip(axes) {
            let ends = [(Rel::Lt, &axis.lo), (Rel::Ge, &axis.hi)];
            for (beyond, end) in ends {
                let outside = Cond::Cmp(beyond, form.clone(), end.clone());
                if !self
                    .places
                    .decide
                    .is_empty(&domain.clone().and(outside), n)?
                {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Refuses an array of another shape or type.
    fn fits(&self, cell: VarId, storage: usize, index: &[Form], span: Span) -> Result<(), Failure> {
        let (cell, storage) = (
            &self.places.array.cells[cell.index()],
            &self.storages[storage],
        );
        if cell.ty != storage.ty {
            return Err(refused(
                span,
                format!(
                    "`{}` is {}, and `{}` holds {}",
                    cell.name, cell.ty, storage.name, storage.ty
                ),
            ));
        }
        if index.len() != storage.axes.len() {
            let (have, want) = (index.len(), storage.axes.len());
            let error = Diagnostic::new(
                &codes::BAD_STORE,
                span,
                format!(
                    "`{}` has {want} axes, and {have} of them are given",
                    storage.name
                ),
            );
            let error = error.help("give an index for each axis, or name another array");
            return Err(Failure::Refused(vec![error]));
        }
        Ok(())
    }

    fn overwritten(&self, lost: Lost, span: Span) -> Failure {
        let array = self.places.array;
        let name = |cell: VarId| &array.cells[cell.index()].name;
        let (source, taker) = (name(lost.source), name(lost.taker.0));
        let (made, taken) = (numbers(&lost.made), numbers(&lost.taker.1));
        let (message, mut points) = match &lost.reader {
            Reader::Point(reader, at) => (
                format!(
                    "`{source}` at {made} may be overwritten by `{taker}` at {taken} before `{}` at {} reads it",
                    name(*reader),
                    numbers(at)
                ),
                vec![at.clone()],
            ),
            Reader::End => (
                format!(
                    "`{taker}` at {taken} may overwrite what `{source}` at {made} leaves as the output"
                ),
                Vec::new(),
            ),
            Reader::Nobody => (
                format!(
                    "`{source}` at {made} and `{taker}` at {taken} may be written to one place at once"
                ),
                Vec::new(),
            ),
        };
        points.insert(0, lost.taker.1.clone());
        points.insert(0, lost.made.clone());
        let mut error = Diagnostic::new(&legality::OVERWRITTEN, span, message).help(
            "keep more values apart; `store` with nothing behind the name lets the compiler choose a place",
        );
        let points: Option<Vec<MappedPoint>> = points
            .iter()
            .map(|z| mapped(array, &lost.params, z))
            .collect();
        if let Some(points) = points {
            error = error.counterexample(Counterexample {
                params: array.param_names().into_iter().zip(lost.params).collect(),
                dims: array.dims.clone(),
                points,
            });
        }
        Failure::Refused(vec![error])
    }
}

/// The same places in other coordinates: where a domain says that two coordinates are equal, either
/// may stand for both. Other cells have points where they differ.
fn renamed(index: &[Form], domain: &Cond) -> Result<Vec<Vec<Form>>, Overflow> {
    let mut all = vec![index.to_vec()];
    let parts = match domain {
        Cond::And(parts) => parts.as_slice(),
        other => std::slice::from_ref(other),
    };
    for part in parts {
        let Cond::Cmp(Rel::Eq, left, right) = part else {
            continue;
        };
        let gap = left.sub(right);
        for d in gap.dims() {
            // gap = ±d + rest, which is zero.
            let Some(sign @ (1 | -1)) = gap.coefficient(d).as_constant() else {
                continue;
            };
            let own = Form::from(d).scale(&Poly::constant(sign))?;
            let value = gap.sub(&own).scale(&Poly::constant(-sign))?;
            if value.dims().contains(&d) {
                continue;
            }
            let renamed = index
                .iter()
                .map(|f| f.substitute(&|at| (at == d).then(|| value.clone())));
            all.push(renamed.collect::<Result<_, _>>()?);
        }
    }
    Ok(all)
}

fn refused(span: Span, message: String) -> Failure {
    let error = Diagnostic::new(&codes::BAD_STORE, span, message)
        .help("name another array, or leave `in` out: the compiler chooses a place then");
    Failure::Refused(vec![error])
}

/// A point with its place and time.
fn mapped(array: &Array, params: &[i128], z: &[i128]) -> Option<MappedPoint> {
    let holds = |cond: &Cond| cond.eval(params, z).unwrap_or(false);
    let piece = array.pieces.iter().find(|piece| holds(&piece.cond))?;
    let eval = |forms: &[Form]| -> Option<Vec<i128>> {
        forms.iter().map(|f| f.eval(params, z).ok()).collect()
    };
    Some(MappedPoint {
        point: z.to_vec(),
        place: eval(&piece.place)?,
        time: eval(&piece.time)?,
    })
}
