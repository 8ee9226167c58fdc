//! The input arrays of a run, bound to the declarations of a system.

use std::borrow::Cow;
use std::collections::BTreeMap;

use systola_ir::codes::run;
use systola_ir::system::{Input, InputKind, System};
use systola_ir::{Diagnostic, InputId, Literal, Span};

use crate::params::{show_index, too_large, with_params};
use crate::tensor::{Data, Tensor, extents};
use crate::value::{Value, literal};

/// Every input of a system with its contents.
pub struct Inputs<'a> {
    arrays: Vec<Bound<'a>>,
}

struct Bound<'a> {
    name: String,
    lo: Vec<i64>,
    extent: Vec<i64>,
    data: Cow<'a, Data>,
    outside: Option<Value>,
    span: Span,
}

impl<'a> Inputs<'a> {
    /// Binds arrays by name. Shapes and types must be those of the declarations; the lower bounds
    /// of the axes come from the declaration.
    pub fn bind(
        system: &System,
        params: &[i128],
        arrays: &'a BTreeMap<String, Tensor>,
    ) -> Result<Inputs<'a>, Diagnostic> {
        for name in arrays.keys() {
            if system.find_input(name).is_none() {
                let known: Vec<String> = system
                    .inputs
                    .iter()
                    .map(|i| format!("`{}`", i.name))
                    .collect();
                let message = format!("`{}` has no input `{name}`", system.name);
                return Err(Diagnostic::new(&run::UNKNOWN_INPUT, system.span, message)
                    .help(format!("its inputs are: {}", known.join(", "))));
            }
        }
        let given = system.inputs.iter().map(|i| arrays.get(&i.name)).collect();
        Inputs::bind_by_id(system, params, given)
    }

    /// Binds one array, or none, to each input in order.
    pub(crate) fn bind_by_id(
        system: &System,
        params: &[i128],
        given: Vec<Option<&'a Tensor>>,
    ) -> Result<Inputs<'a>, Diagnostic> {
        let mut arrays = Vec::new();
        for (n, input) in system.inputs.iter().enumerate() {
            let tensor = given.get(n).copied().flatten();
            let bound = bind_one(system, input, params, tensor)
                .map_err(|d| d.note(with_params(&system.param_names(), params)))?;
            arrays.push(bound);
        }
        Ok(Inputs { arrays })
    }

    /// The row-major position of an element; `None` outside the axes.
    pub(crate) fn position(&self, input: InputId, index: &[i64]) -> Option<usize> {
        self.arrays.get(input.index())?.position(index)
    }

    /// The element at an index.
    pub fn read(&self, input: InputId, index: &[i64], span: Span) -> Result<Value, Diagnostic> {
        let Some(array) = self.arrays.get(input.index()) else {
            let message = format!("there is no input number {}", input.index());
            return Err(Diagnostic::new(&run::NOT_A_VALUE, span, message));
        };
        match array.get(index) {
            Some(value) => Ok(value),
            None => array
                .outside
                .clone()
                .ok_or_else(|| array.out_of_range(index, span)),
        }
    }
}

impl Bound<'_> {
    #[inline]
    fn get(&self, index: &[i64]) -> Option<Value> {
        self.data.get(self.position(index)?)
    }

    /// The error bound of an element at a row-major position.
    #[inline]
    fn position(&self, index: &[i64]) -> Option<usize> {
        if index.len() != self.lo.len() {
            return None;
        }
        let mut position = 0;
        for ((x, lo), extent) in index.iter().zip(&self.lo).zip(&self.extent) {
            let offset = x.wrapping_sub(*lo);
            if offset as u64 >= *extent as u64 {
                return None;
            }
            position = position * *extent as usize + offset as usize;
        }
        Some(position)
    }

    fn out_of_range(&self, index: &[i64], span: Span) -> Diagnostic {
        let axes: Vec<String> = self
            .lo
            .iter()
            .zip(&self.extent)
            .map(|(lo, extent)| format!("{lo}..{}", lo + extent))
            .collect();
        let (name, index) = (&self.name, show_index(index));
        let message = format!(
            "`{name}` has no element {index}: its axes are [{}]",
            axes.join(", ")
        );
        Diagnostic::new(&run::INPUT_OUT_OF_RANGE, span, message)
            .here(format!("this reads `{name}`{index}"))
            .also(self.span, "declared here")
            .help(format!(
                "guard the read, or give `{name}` a value outside its axes with `else`"
            ))
    }
}

fn bind_one<'a>(
    system: &System,
    input: &Input,
    params: &[i128],
    given: Option<&'a Tensor>,
) -> Result<Bound<'a>, Diagnostic> {
    let name = &input.name;
    let (lo, shape) = extents(&input.axes, params).map_err(|e| too_large(input.span, e))?;
    let narrow = |x: i128| i64::try_from(x).ok().filter(|x| x.abs() < 1 << 62);
    let lo: Option<Vec<i64>> = lo.into_iter().map(narrow).collect();
    let lo = lo.ok_or_else(|| too_large(input.span, "an axis starts beyond 2^62"))?;
    let data = match (&input.kind, given) {
        (
            InputKind::Table {
                data: Some(contents),
            },
            None,
        ) => Cow::Owned(table_data(input, contents, &shape)?),
        (InputKind::Table { data: Some(_) }, Some(_)) => {
            let message = format!("the contents of the table `{name}` are written in the program");
            return Err(Diagnostic::new(&run::UNKNOWN_INPUT, input.span, message)
                .help("leave the array out"));
        }
        (InputKind::Array | InputKind::Table { data: None }, None) => {
            let message = format!("the input `{name}` was not given");
            let shape = show_index(&shape);
            return Err(Diagnostic::new(&run::MISSING_INPUT, input.span, message)
                .help(format!("give an array of {} with shape {shape}", input.ty)));
        }
        (InputKind::Array | InputKind::Table { data: None }, Some(tensor)) => {
            if tensor.ty() != input.ty {
                let (found, expect) = (tensor.ty(), input.ty);
                let message = format!("`{name}` is declared {expect}, the array given is {found}");
                return Err(Diagnostic::new(&run::WRONG_TYPE, input.span, message));
            }
            if tensor.shape != shape {
                let (found, expect) = (show_index(&tensor.shape), show_index(&shape));
                let message = format!("`{name}` has shape {expect}, the array given has {found}");
                let axes: Vec<String> = input
                    .axes
                    .iter()
                    .map(|axis| {
                        let length = axis.hi.sub(&axis.lo);
                        length.display(&system.param_names(), &[]).to_string()
                    })
                    .collect();
                let axes = axes.join(", ");
                return Err(
                    Diagnostic::new(&run::WRONG_SHAPE, input.span, message).help(format!(
                        "give an array of shape {expect}, or sizes for which [{axes}] is {found}"
                    )),
                );
            }
            Cow::Borrowed(&tensor.data)
        }
    };
    Ok(Bound {
        name: name.clone(),
        lo,
        extent: shape.into_iter().map(|s| s as i64).collect(),
        data,
        outside: input.outside.map(|value| literal(input.ty, value)),
        span: input.span,
    })
}

fn table_data(input: &Input, contents: &[Literal], shape: &[usize]) -> Result<Data, Diagnostic> {
    let n: usize = shape.iter().product();
    if contents.len() != n {
        let message = format!(
            "the table `{}` has {n} elements, {} are written",
            input.name,
            contents.len()
        );
        return Err(Diagnostic::new(&run::WRONG_SHAPE, input.span, message));
    }
    let mut data = Data::filled(input.ty, n, &Value::zero(input.ty));
    for (position, value) in contents.iter().enumerate() {
        data.set(position, &literal(input.ty, *value));
    }
    Ok(data)
}
