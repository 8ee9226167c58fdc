//! A program, ready to be called: the mapping is chosen, the code compiled, sizes are inferred.

mod builder;
mod ready;
mod sizes;
mod stages;

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use systola_driver::{Fix, Target};
use systola_explore::choose::Choice;
use systola_explore::sizes::{Parameters, Sizes};
use systola_explore::target_device::TargetDevice;
use systola_ir::Diagnostic;
use systola_ir::codes::run as codes;
use systola_ir::mapping::Mapping;
use systola_ir::system::{Module, System};
use systola_lower::report::Report;
use systola_rt::{Stats, View, ViewMut};

use self::ready::Ready;
use self::sizes::{flat_shape, size_of};
use crate::call::Call;
use crate::error::Error;

pub use builder::KernelBuilder;

/// A system or a program of systems that can be called on arrays.
///
/// Nothing but the recurrence is needed. The mapping is the best that `systola explore` found on
/// this machine, else the one that the model predicts to be the fastest at the sizes of the first
/// call; it is remembered.
///
/// ```
/// const BLUR: &str = "
/// system blur(N) where N >= 1 {
///   input x[N + 2]: f32;
///   index i in 0..N;
///   var S: f32 = (x[i] + x[i + 1] + x[i + 2]) / 3;
///   output y[N]: f32 = S at [i];
/// }";
/// let kernel = systola::Kernel::from_text(BLUR)?;
/// let x = vec![0f32, 3.0, 6.0, 3.0, 0.0];
/// let mut y = vec![0f32; 3];
/// kernel.input("x", &x).output("y", &mut y).run()?;
/// assert_eq!(y, [3.0, 4.0, 3.0]);
/// # Ok::<(), systola::Error>(())
/// ```
///
/// A kernel can be shared by threads. It is compiled once for all sizes where that is possible.
pub struct Kernel {
    module: Module,
    name: String,
    text: String,
    work: Work,
    settings: Settings,
    target_device: TargetDevice,
    ready: Mutex<Vec<Arc<Ready>>>,
}

/// Positions in the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    System(usize),
    Program(usize),
}

#[derive(Clone, Debug, Default)]
struct Settings {
    mappings: Vec<String>,
    sizes: Sizes,
    fix: Fix,
}

impl Kernel {
    /// The program of a file, on this CPU.
    pub fn from_file(path: impl Into<PathBuf>) -> Result<Kernel, Error> {
        Kernel::builder().file(path).build()
    }

    /// A program in the text language, on this CPU.
    pub fn from_text(text: impl Into<String>) -> Result<Kernel, Error> {
        Kernel::builder().text(text).build()
    }

    /// A program that was read or built with [`crate::dsl`], on this CPU.
    pub fn from_module(module: Module) -> Result<Kernel, Error> {
        Kernel::builder().module(module).build()
    }

    /// With options: the target, the mapping, sizes.
    ///
    /// ```
    /// # const TEXT: &str = "
    /// # system conv1d(C, Q) where C >= 1, Q >= 1 {
    /// #   input x[C + Q - 1]: f32;
    /// #   input w[Q]: f32;
    /// #   index c in 0..C;
    /// #   var Z: f32 = reduce(+, q in 0..Q, x[c + q] * w[q]);
    /// #   output z[C]: f32 = Z at [c];
    /// # }
    /// # mapping sbm of conv1d { lane = c; time = q; sum Z along q; }";
    /// let kernel = systola::Kernel::builder().text(TEXT).mapping("sbm").fix(&["Q"]).build()?;
    /// let mut z = [0f32; 2];
    /// let (x, w) = ([1f32, 2.0, 3.0], [1f32, 10.0]);
    /// // The sizes C and Q follow from the shapes.
    /// kernel.call(&[("x", (&x).into()), ("w", (&w).into())], &mut [("z", (&mut z).into())])?;
    /// assert_eq!(z, [21.0, 32.0]);
    /// # Ok::<(), systola::Error>(())
    /// ```
    pub fn builder() -> KernelBuilder {
        KernelBuilder::default()
    }

    /// Runs it: every input and every output by name. Sizes follow from the shapes, as far as they
    /// were not given. A flat array is taken row by row where several axes are declared.
    pub fn call(
        &self,
        inputs: &[(&str, View<'_>)],
        outputs: &mut [(&str, ViewMut<'_>)],
    ) -> Result<Stats, Error> {
        self.call_at(&[], inputs, outputs)
    }

    /// The same with sizes that do not follow from the shapes.
    pub fn call_at(
        &self,
        sizes: &[(&str, i64)],
        inputs: &[(&str, View<'_>)],
        outputs: &mut [(&str, ViewMut<'_>)],
    ) -> Result<Stats, Error> {
        let values = self.values(sizes, inputs, outputs)?;
        let shown = self.parameters().show(&values);
        let mut run = || match self.work {
            Work::System(system) => self.run_system(system, &values, inputs.to_vec(), outputs),
            Work::Program(program) => self.run_program(program, &values, inputs, outputs),
        };
        run().map_err(|error| {
            let error = error.in_text(&self.name, &self.text);
            match shown.is_empty() {
                true => error,
                false => error.note(format!("at {shown}")),
            }
        })
    }

    /// Begins a call: the first of its inputs.
    pub fn input<'a>(&'a self, name: &'a str, array: impl Into<View<'a>>) -> Call<'a> {
        Call::new(self).input(name, array)
    }

    /// Begins a call: the first of its outputs.
    pub fn output<'a>(&'a self, name: &'a str, array: impl Into<ViewMut<'a>>) -> Call<'a> {
        Call::new(self).output(name, array)
    }

    /// Begins a call: a size that does not follow from the shapes.
    pub fn size<'a>(&'a self, name: &'a str, size: i64) -> Call<'a> {
        Call::new(self).size(name, size)
    }

    /// The mapping, which prints as the text language; of a program, that of the system compiled
    /// last. `None` before the first call, unless the sizes were given.
    pub fn mapping(&self) -> Option<Mapping> {
        self.last(|ready| ready.choice.mapping.clone())
    }

    /// The mapping and why it was chosen; prints as one line.
    pub fn choice(&self) -> Option<Choice> {
        self.last(|ready| ready.choice.clone())
    }

    /// What the mapping makes: PEs, links, registers, and the streams of its systolic array.
    pub fn report(&self) -> Option<Report> {
        self.last(|ready| ready.lowered.report.clone())
    }

    /// The code that was compiled: C, CUDA C++ or OpenCL C.
    pub fn code(&self) -> Option<String> {
        self.last(|ready| ready.code.source().to_string())
    }

    pub fn target(&self) -> Target {
        self.target_device.target()
    }

    /// The module it was made from.
    pub fn module(&self) -> &Module {
        &self.module
    }

    fn last<R>(&self, get: impl Fn(&Ready) -> R) -> Option<R> {
        self.ready().last().map(|ready| get(ready))
    }

    fn ready(&self) -> MutexGuard<'_, Vec<Arc<Ready>>> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn parameters(&self) -> Parameters<'_> {
        match self.work {
            Work::System(n) => (&self.module.systems[n]).into(),
            Work::Program(n) => (&self.module.programs[n]).into(),
        }
    }

    /// All that it runs.
    fn systems(&self) -> Vec<&System> {
        match self.work {
            Work::System(n) => vec![&self.module.systems[n]],
            Work::Program(n) => {
                let stages = self.module.programs[n].stages.iter();
                stages.map(|s| &self.module.systems[s.system]).collect()
            }
        }
    }

    fn run_system(
        &self,
        n: usize,
        values: &[i128],
        mut inputs: Vec<(&str, View<'_>)>,
        outputs: &mut [(&str, ViewMut<'_>)],
    ) -> Result<Stats, Error> {
        let system = &self.module.systems[n];
        let expanded = system
            .expand_batch()
            .map_err(|error| Diagnostic::new(&codes::TOO_LARGE, system.span, error.to_string()))?;
        for (name, view) in &mut inputs {
            let input = expanded.inputs.iter().find(|i| i.name == *name);
            let wanted = input.and_then(|i| flat_shape(&i.axes, view.shape(), values));
            if let Some(shape) = wanted {
                view.set_shape(&shape)?;
            }
        }
        for (name, view) in outputs.iter_mut() {
            let output = expanded.outputs.iter().find(|o| o.name == *name);
            let wanted = output.and_then(|o| flat_shape(&o.axes, view.shape(), values));
            if let Some(shape) = wanted {
                view.set_shape(&shape)?;
            }
        }
        let ready = self.system_at(n, values)?;
        let sizes: Vec<(&str, i64)> = system
            .params
            .iter()
            .zip(values)
            .map(|(p, v)| Ok((p.name.as_str(), size_of(&p.name, *v)?)))
            .collect::<Result<_, Error>>()?;
        ready.code.run(&sizes, &inputs, outputs)
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.work {
            Work::System(n) => &self.module.systems[n].name,
            Work::Program(n) => &self.module.programs[n].name,
        };
        let mapping = self.mapping().map(|m| m.name);
        f.debug_struct("Kernel")
            .field("of", name)
            .field("target", &self.target().name())
            .field("mapping", &mapping)
            .finish_non_exhaustive()
    }
}
