//! Arrays in global and shared memory: elements, which of them are defined, and their accesses.

use systola_ir::codes::run;
use systola_ir::kernel::{Buffer, BufferKind, Kernel, Program, Shared};
use systola_ir::{Diagnostic, Literal, Scalar, Span};

use crate::params::{show_index, too_large};
use crate::system::Arrays;
use crate::tensor::{Data, Tensor, TensorError, check_room, extents, n_elements};
use crate::value::{Value, literal};

use super::fault::FaultKind;
use super::race::{Mark, Me, Raced, Shadow};
use super::undefined::{Cell, Undefined, Why, is_same};

/// The axes of an array at concrete sizes.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub name: String,
    pub ty: Scalar,
    pub lo: Vec<i64>,
    pub extent: Vec<i64>,
}

impl Layout {
    pub fn n_elements(&self) -> usize {
        self.extent.iter().product::<i64>() as usize
    }

    pub fn bytes(&self) -> u64 {
        u64::from(self.ty.bits() / 8)
    }

    /// The position of an element and of the `width` − 1 after it, which are on the same row, or on
    /// whole rows.
    #[inline]
    pub fn position(&self, index: &[i64], width: usize) -> Option<usize> {
        let mut position = 0;
        for ((x, lo), extent) in index.iter().zip(&self.lo).zip(&self.extent) {
            let offset = x.checked_sub(*lo)?;
            if offset < 0 || offset >= *extent {
                return None;
            }
            position = position * *extent as usize + offset as usize;
        }
        (width == 1 || self.has_room(index, width)).then_some(position)
    }

    fn has_room(&self, index: &[i64], mut width: usize) -> bool {
        let axes = index.iter().zip(&self.lo).zip(&self.extent);
        for ((x, lo), extent) in axes.rev() {
            if width as i64 <= extent - (x - lo) {
                return true;
            }
            if x != lo || !width.is_multiple_of(*extent as usize) {
                return false;
            }
            width /= *extent as usize;
        }
        width <= 1
    }

    pub fn index_of(&self, mut position: usize) -> Vec<i64> {
        let mut index = self.lo.clone();
        for (x, extent) in index.iter_mut().zip(&self.extent).rev() {
            let extent = (*extent).max(1) as usize;
            *x += (position % extent) as i64;
            position /= extent;
        }
        index
    }

    pub fn misaligned(&self, index: &[i64], width: usize) -> FaultKind {
        FaultKind::Misaligned {
            array: self.name.clone(),
            index: index.to_vec(),
            width,
        }
    }

    /// The element where an access leaves the axes: for a vector access, the first outside.
    pub fn out_of_bounds(&self, index: &[i64], width: usize) -> FaultKind {
        let mut index = index.to_vec();
        if width > 1
            && self.position(&index, 1).is_some()
            && let (Some(last), Some(lo), Some(extent)) =
                (index.last_mut(), self.lo.last(), self.extent.last())
        {
            *last = lo + extent;
        }
        let axes = self.lo.iter().zip(&self.extent);
        FaultKind::OutOfBounds {
            array: self.name.clone(),
            index,
            axes: axes.map(|(lo, extent)| (*lo, lo + extent)).collect(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Input,
    Output,
    Temporary,
    Flags,
    Shared,
}

/// An array with its contents.
#[derive(Clone, Debug)]
pub(super) struct Store {
    pub layout: Layout,
    pub kind: Kind,
    data: Data,
    /// For each element, why it is undefined, if it is.
    undefined: Vec<Option<Undefined>>,
    /// None for inputs, which are never written.
    shadow: Vec<Shadow>,
}

/// Why an element cannot be accessed.
pub(super) enum Conflict {
    Raced(Raced),
    /// A copy into it is in flight, issued by this warp.
    Copying(Mark),
    /// Another lane stores a different value in the same statement.
    LanesDisagree,
}

impl From<Raced> for Conflict {
    fn from(raced: Raced) -> Self {
        Conflict::Raced(raced)
    }
}

impl Store {
    /// Bytes of an element, including its shadow state.
    fn bytes_each(ty: Scalar) -> u64 {
        let own = u64::from(ty.bits().div_ceil(8));
        own + (size_of::<Option<Undefined>>() + size_of::<Shadow>()) as u64
    }

    fn new(layout: Layout, kind: Kind, contents: Option<Data>) -> Store {
        let n = layout.n_elements();
        let undefined = match contents {
            Some(_) => None,
            None => Some(Undefined::new(Why::Unwritten)),
        };
        Store {
            data: contents.unwrap_or_else(|| Data::filled(layout.ty, n, &Value::zero(layout.ty))),
            undefined: vec![undefined; n],
            shadow: match kind {
                Kind::Input => Vec::new(),
                Kind::Output | Kind::Temporary | Kind::Flags | Kind::Shared => {
                    vec![Shadow::default(); n]
                }
            },
            layout,
            kind,
        }
    }

    #[inline]
    pub fn read(&mut self, position: usize, me: Me<'_>) -> Result<Cell, Conflict> {
        if let Some(shadow) = self.shadow.get_mut(position) {
            if let Some(copier) = shadow.copier() {
                return Err(Conflict::Copying(copier));
            }
            shadow.read(me)?;
        }
        Ok(self.peek(position))
    }

    /// The element, without recording an access.
    #[inline]
    pub fn peek(&self, position: usize) -> Cell {
        match self.undefined[position] {
            Some(undefined) => Err(undefined),
            None => {
                let value = self.data.get(position);
                Ok(value.expect("an element for each mark of definition"))
            }
        }
    }

    /// `stamp`: the unique number of this execution of the statement.
    #[inline]
    pub fn write(
        &mut self,
        position: usize,
        value: &Cell,
        me: Me<'_>,
        stamp: u64,
    ) -> Result<(), Conflict> {
        let shadow = &mut self.shadow[position];
        if let Some(copier) = shadow.copier() {
            return Err(Conflict::Copying(copier));
        }
        if shadow.stamp == stamp {
            return if is_same(&self.peek(position), value) {
                Ok(())
            } else {
                Err(Conflict::LanesDisagree)
            };
        }
        shadow.write(me)?;
        shadow.stamp = stamp;
        self.poke(position, value);
        Ok(())
    }

    fn poke(&mut self, position: usize, value: &Cell) {
        self.undefined[position] = value.as_ref().err().copied();
        if let Ok(value) = value {
            let fits = self.data.set(position, value);
            assert!(fits, "{} takes no {}", self.layout.name, value.ty());
        }
    }

    /// A copy into the element begins. False: another lane began one in the same statement.
    pub fn begin_copy(
        &mut self,
        position: usize,
        me: Me<'_>,
        stamp: u64,
    ) -> Result<bool, Conflict> {
        let shadow = &mut self.shadow[position];
        if let Some(copier) = shadow.copier() {
            return if shadow.stamp == stamp {
                Ok(false)
            } else {
                Err(Conflict::Copying(copier))
            };
        }
        shadow.write(me)?;
        shadow.stamp = stamp;
        shadow.is_copying = true;
        Ok(true)
    }

    /// The copy completes, as a write of the warp that waited for it.
    pub fn end_copy(&mut self, position: usize, value: &Cell, me: Me<'_>) -> Result<(), Conflict> {
        let shadow = &mut self.shadow[position];
        shadow.is_copying = false;
        shadow.write(me)?;
        self.poke(position, value);
        Ok(())
    }

    /// The stamp of the statement that wrote the element last.
    pub fn last_written(&self, position: usize) -> u64 {
        self.shadow.get(position).map_or(0, |shadow| shadow.stamp)
    }

    /// Increments a flag and returns its old value.
    pub fn count_up(&mut self, position: usize) -> i64 {
        let old = self.flag(position);
        self.poke(position, &Ok(Value::I32((old + 1) as i32)));
        old
    }

    /// The current value of a flag.
    pub fn flag(&self, position: usize) -> i64 {
        match self.peek(position) {
            Ok(Value::I32(value)) => value.into(),
            // The verifier ensures that flags are i32, they start at zero, and no undefined value
            // is stored to them.
            other => panic!("the flag {} is {other:?}", self.layout.name),
        }
    }

    /// Was the element loaded or stored in this launch?
    pub fn is_touched_in(&self, position: usize, launch: u32) -> bool {
        self.shadow[position].is_touched_in(launch)
    }

    /// The tensor of an output; otherwise the index of an unwritten element.
    pub fn into_tensor(self) -> Result<Tensor, Vec<i64>> {
        if let Some(position) = self.undefined.iter().position(Option::is_some) {
            return Err(self.layout.index_of(position));
        }
        Ok(Tensor {
            lo: self.layout.lo.iter().map(|x| i128::from(*x)).collect(),
            shape: self.layout.extent.iter().map(|x| *x as usize).collect(),
            data: self.data,
        })
    }
}

/// The shared arrays of a kernel.
pub(super) fn shared_layouts(kernel: &Kernel, params: &[i128]) -> Result<Vec<Layout>, Diagnostic> {
    let layout = |shared: &Shared| -> Result<Layout, TensorError> {
        let mut shape = Vec::new();
        for extent in &shared.extents {
            let extent = extent.eval(params)?.max(0);
            shape.push(usize::try_from(extent).map_err(|_| TensorError::TooLarge)?);
        }
        let n = n_elements(&shape).ok_or(TensorError::TooLarge)?;
        check_room((n as u64).saturating_mul(Store::bytes_each(shared.ty)))?;
        Ok(Layout {
            name: shared.name.clone(),
            ty: shared.ty,
            lo: vec![0; shape.len()],
            extent: shape.into_iter().map(|s| s as i64).collect(),
        })
    };
    let layouts: Result<_, TensorError> = kernel.shared.iter().map(layout).collect();
    layouts.map_err(|error| too_large(Span::NONE, error))
}

/// The shared arrays of a new block, undefined.
pub(super) fn fresh_shared(layouts: &[Layout]) -> Vec<Store> {
    let fresh = |layout: &Layout| Store::new(layout.clone(), Kind::Shared, None);
    layouts.iter().map(fresh).collect()
}

/// Global memory before the first launch. Inputs come by name, as for the other interpreters.
pub(super) fn bind(
    program: &Program,
    params: &[i128],
    inputs: &Arrays,
) -> Result<Vec<Store>, Diagnostic> {
    let wants = |b: &Buffer| matches!(b.kind, BufferKind::Input { data: None });
    for name in inputs.keys() {
        if !program.buffers.iter().any(|b| wants(b) && b.name == *name) {
            let wanted = program.buffers.iter().filter(|b| wants(b));
            let names: Vec<String> = wanted.map(|b| format!("`{}`", b.name)).collect();
            let message = format!("`{}` has no input `{name}`", program.name);
            return Err(Diagnostic::new(&run::UNKNOWN_INPUT, Span::NONE, message)
                .help(format!("its inputs are: {}", names.join(", "))));
        }
    }
    let buffers = program.buffers.iter();
    buffers
        .map(|buffer| bind_one(buffer, params, inputs))
        .collect()
}

fn bind_one(buffer: &Buffer, params: &[i128], inputs: &Arrays) -> Result<Store, Diagnostic> {
    let name = &buffer.name;
    let (lo, shape) = extents(&buffer.axes, params).map_err(|e| too_large(Span::NONE, e))?;
    let narrow = |x: i128| i64::try_from(x).ok().filter(|x| x.abs() < 1 << 62);
    let lo: Option<Vec<i64>> = lo.into_iter().map(narrow).collect();
    let lo = lo.ok_or_else(|| too_large(Span::NONE, "an axis starts beyond 2^62"))?;
    let n = shape.iter().product();
    let needed = (n as u64).saturating_mul(Store::bytes_each(buffer.ty));
    check_room(needed).map_err(|e| too_large(Span::NONE, format!("`{name}`: {e}")))?;
    let filled = |value: Literal| Data::filled(buffer.ty, n, &literal(buffer.ty, value));
    let wrong = |code, message: String| Err(Diagnostic::new(code, Span::NONE, message));
    let (kind, contents) = match &buffer.kind {
        BufferKind::Input { data: Some(data) } => {
            if data.len() != n {
                let given = data.len();
                let message = format!("`{name}` has {n} elements, {given} are written");
                return wrong(&run::WRONG_SHAPE, message);
            }
            let mut contents = filled(Literal::Int(0));
            for (position, value) in data.iter().enumerate() {
                contents.set(position, &literal(buffer.ty, *value));
            }
            (Kind::Input, Some(contents))
        }
        BufferKind::Input { data: None } => {
            let Some(tensor) = inputs.get(name) else {
                let message = format!("the input `{name}` was not given");
                return wrong(&run::MISSING_INPUT, message);
            };
            if tensor.ty() != buffer.ty {
                let (found, expect) = (tensor.ty(), buffer.ty);
                let message = format!("`{name}` is declared {expect}, the array given is {found}");
                return wrong(&run::WRONG_TYPE, message);
            }
            if tensor.shape != shape {
                let (found, expect) = (show_index(&tensor.shape), show_index(&shape));
                let message = format!("`{name}` has shape {expect}, the array given has {found}");
                return wrong(&run::WRONG_SHAPE, message);
            }
            (Kind::Input, Some(tensor.data.clone()))
        }
        BufferKind::Output { fill } => (Kind::Output, fill.map(filled)),
        BufferKind::Temporary => (Kind::Temporary, None),
        BufferKind::Flags | BufferKind::Faults { .. } => {
            (Kind::Flags, Some(filled(Literal::Int(0))))
        }
    };
    let layout = Layout {
        name: name.clone(),
        ty: buffer.ty,
        lo,
        extent: shape.into_iter().map(|s| s as i64).collect(),
    };
    Ok(Store::new(layout, kind, contents))
}
