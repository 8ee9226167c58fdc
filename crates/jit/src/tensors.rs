//! Compiled programs on the arrays of the interpreters, so that one can be compared with the other.

use systola_interp::{Arrays, Data, Tensor};
use systola_ir::codes::limits;
use systola_ir::kernel::{BufferKind, Program};
use systola_ir::{Diagnostic, Span};
#[cfg(any(feature = "cuda", feature = "opencl"))]
use systola_rt::device::{DeviceArray, Driver};
use systola_rt::timing::{Repeats, Timing};
use systola_rt::{RunOptions, Stats, View, ViewMut};

use crate::cpu::{Compiled, Error};
#[cfg(any(feature = "cuda", feature = "opencl"))]
use crate::device::DeviceCompiled;

macro_rules! each_type {
    ($data:expr, $v:ident => $body:expr) => {
        match $data {
            Data::Bool($v) => Ok($body),
            Data::I8($v) => Ok($body),
            Data::I16($v) => Ok($body),
            Data::I32($v) => Ok($body),
            Data::I64($v) => Ok($body),
            Data::U8($v) => Ok($body),
            Data::U16($v) => Ok($body),
            Data::U32($v) => Ok($body),
            Data::U64($v) => Ok($body),
            Data::F32($v) => Ok($body),
            Data::F64($v) => Ok($body),
            Data::F16(_) | Data::BF16(_) => Err(half_precision()),
        }
    };
}

fn half_precision() -> Error {
    Diagnostic::new(
        &limits::NOT_COMPILED,
        Span::NONE,
        "arrays of f16 and bf16 are not compiled yet",
    )
    .help("the interpreters run them: --target kernel")
    .into()
}

/// A view of a tensor's elements.
pub fn view(tensor: &Tensor) -> Result<View<'_>, Error> {
    Ok(each_type!(&tensor.data, v => View::new(v, &tensor.shape))??)
}

/// The same, to be written.
pub fn view_mut(tensor: &mut Tensor) -> Result<ViewMut<'_>, Error> {
    let shape = tensor.shape.clone();
    Ok(each_type!(&mut tensor.data, v => ViewMut::new(v, &shape))??)
}

/// The arrays of a run: inputs, and outputs to be filled.
struct Prepared {
    outputs: Arrays,
    /// By name.
    sizes: Vec<(String, i64)>,
}

fn prepare(program: &Program, params: &[i128]) -> Result<Prepared, Error> {
    let mut outputs = Arrays::new();
    for buffer in &program.buffers {
        if let BufferKind::Output { .. } = buffer.kind {
            let tensor = Tensor::zeros(buffer.ty, &buffer.axes, params);
            let tensor = tensor.map_err(|error| {
                let message = format!("`{}`: {error}", buffer.name);
                Diagnostic::new(&systola_ir::codes::run::TOO_LARGE, Span::NONE, message)
            })?;
            outputs.insert(buffer.name.clone(), tensor);
        }
    }
    let sizes = program.params.iter().zip(params).map(|(param, value)| {
        let fits = i64::try_from(*value).map_err(|_| {
            let message = format!("{} = {value} does not fit into 64 bits", param.name);
            Diagnostic::new(&systola_ir::codes::run::TOO_LARGE, Span::NONE, message)
                .help("use smaller sizes")
        });
        Ok((param.name.clone(), fits?))
    });
    let sizes = sizes.collect::<Result<_, Error>>()?;
    Ok(Prepared { outputs, sizes })
}

/// Runs a function of views on tensors, and allocates the outputs.
fn on_tensors<T>(
    program: &Program,
    params: &[i128],
    inputs: &Arrays,
    run: impl FnOnce(
        &[(&str, i64)],
        &[(&str, View<'_>)],
        &mut [(&str, ViewMut<'_>)],
    ) -> Result<T, Error>,
) -> Result<(Arrays, T), Error> {
    let mut prepared = prepare(program, params)?;
    let given: Vec<(&str, View<'_>)> = inputs
        .iter()
        .map(|(name, tensor)| Ok((name.as_str(), view(tensor)?)))
        .collect::<Result<_, Error>>()?;
    let mut made: Vec<(&str, ViewMut<'_>)> = prepared
        .outputs
        .iter_mut()
        .map(|(name, tensor)| Ok((name.as_str(), view_mut(tensor)?)))
        .collect::<Result<_, Error>>()?;
    let sizes: Vec<(&str, i64)> = prepared
        .sizes
        .iter()
        .map(|(name, value)| (name.as_str(), *value))
        .collect();
    let stats = run(&sizes, &given, &mut made)?;
    drop(made);
    Ok((prepared.outputs, stats))
}

impl Compiled {
    /// Runs on tensors, and allocates the outputs. `params`: one for each parameter, in order.
    pub fn run_tensors(
        &self,
        params: &[i128],
        inputs: &Arrays,
        options: &RunOptions,
    ) -> Result<(Arrays, Stats), Error> {
        on_tensors(self.program(), params, inputs, |sizes, given, made| {
            self.run(sizes, given, made, options)
        })
    }

    /// Seconds of each of several consecutive runs on the same arrays.
    pub fn time_tensors(
        &self,
        params: &[i128],
        inputs: &Arrays,
        options: &RunOptions,
        repeats: Repeats,
    ) -> Result<Timing, Error> {
        let timed = on_tensors(self.program(), params, inputs, |sizes, given, made| {
            self.time(sizes, given, made, options, repeats)
        });
        timed.map(|(_, timing)| timing)
    }
}

#[cfg(any(feature = "cuda", feature = "opencl"))]
impl<D: Driver> DeviceCompiled<D> {
    /// The same on a device.
    pub fn run_tensors(&self, params: &[i128], inputs: &Arrays) -> Result<(Arrays, Stats), Error> {
        on_tensors(self.program(), params, inputs, |sizes, given, made| {
            self.run(sizes, given, made)
        })
    }

    /// Seconds of each of several consecutive runs, on arrays on the device.
    pub fn time_tensors(
        &self,
        params: &[i128],
        inputs: &Arrays,
        repeats: Repeats,
    ) -> Result<Timing, Error> {
        let prepared = prepare(self.program(), params)?;
        let copy = |(name, tensor): (&String, &Tensor)| -> Result<_, Error> {
            let array = DeviceArray::from_view(self.gpu(), &view(tensor)?)?;
            Ok((name.clone(), array))
        };
        let given: Vec<_> = inputs.iter().map(copy).collect::<Result<_, Error>>()?;
        let outputs = prepared.outputs.iter().map(copy);
        let mut made: Vec<_> = outputs.collect::<Result<_, Error>>()?;
        let sizes = prepared.sizes.iter().map(|(n, v)| (n.as_str(), *v));
        let sizes: Vec<(&str, i64)> = sizes.collect();
        let given: Vec<_> = given.iter().map(|(n, a)| (n.as_str(), a)).collect();
        let mut made: Vec<_> = made.iter_mut().map(|(n, a)| (n.as_str(), a)).collect();
        self.time_on_device(&sizes, &given, &mut made, repeats)
    }
}
