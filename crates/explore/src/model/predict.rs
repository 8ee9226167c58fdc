//! The prediction: the work of a program, divided by the rates of a device.

use systola_ir::form::Overflow;
use systola_ir::kernel::Program;

use super::code::Lanes;
use super::count::{Census, Sampling};
use super::counted::CountedKernel;
use super::device::{Device, Number, Source};
use super::tally::Tally;
use super::{cpu, gpu};

/// Why there is no prediction.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("an index of a kernel leaves 64 bits at these sizes")]
    TooLarge,
    #[error("the program has {expected} sizes, {given} are given")]
    Sizes { expected: usize, given: usize },
    #[error("the program is for {name} = {fixed}, not {given}")]
    Fixed {
        name: String,
        fixed: i128,
        given: i128,
    },
}

impl From<Overflow> for Error {
    fn from(_: Overflow) -> Self {
        Error::TooLarge
    }
}

/// One kind of work: its amount and its rate.
#[derive(Clone, Debug, PartialEq)]
pub struct Term {
    pub name: &'static str,
    pub amount: f64,
    pub unit: &'static str,
    /// Of the whole device, per second.
    pub rate: f64,
    pub seconds: f64,
    pub source: Source,
}

impl Term {
    pub fn new(
        name: &'static str,
        amount: f64,
        unit: &'static str,
        rate: f64,
        number: &Number,
    ) -> Term {
        Term {
            name,
            amount,
            unit,
            rate,
            seconds: if amount > 0.0 { amount / rate } else { 0.0 },
            source: number.source,
        }
    }
}

/// The time of a program, and its terms.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    pub seconds: f64,
    /// Summed over all kernels; terms of one kernel overlap unless `seconds` says otherwise.
    pub terms: Vec<Term>,
    /// The name of the term that limits the program for the longest time.
    pub limit: &'static str,
    /// The maximum over all kernels: live words of a lane.
    pub registers: u32,
    /// The occupancy of the kernel that takes the longest.
    pub occupancy: f64,
    /// Operations of all lanes.
    pub operations: f64,
    /// The share of lanes that store, where any lane does.
    pub utilisation: f64,
    /// Instructions in the text of the longest kernel.
    pub code: f64,
    /// The total of the census.
    pub tally: Tally,
}

impl Prediction {
    /// The work done divided by the work needed.
    pub fn redundancy(&self, needed: f64) -> f64 {
        self.operations / needed.max(1.0)
    }
}

/// One kernel, all its launches.
#[derive(Clone, Debug)]
pub struct KernelPrediction {
    pub seconds: f64,
    pub terms: Vec<Term>,
    pub limit: &'static str,
    pub registers: u32,
    pub occupancy: f64,
    pub operations: f64,
}

/// Predicts the time of a program on a device. `sizes`: one for each of its parameters.
pub fn predict(program: &Program, sizes: &[i128], device: &Device) -> Result<Prediction, Error> {
    if sizes.len() != program.params.len() {
        return Err(Error::Sizes {
            expected: program.params.len(),
            given: sizes.len(),
        });
    }
    for (size, given) in program.params.iter().zip(sizes) {
        if let Some(fixed) = size.fixed
            && fixed != *given
        {
            return Err(Error::Fixed {
                name: size.name.clone(),
                fixed,
                given: *given,
            });
        }
    }
    let lanes = match device {
        Device::Cpu(cpu) => Lanes::Vectors {
            bytes: (cpu.vector_bytes.value as u32).max(16),
        },
        Device::Gpu(_) => Lanes::Threads,
    };
    let census = Census::take(program, sizes, lanes, Sampling::Some)?;
    let mut kernels = Vec::new();
    for (code, own) in census.codes.iter().zip(&census.kernels) {
        if own.blocks > 0.0 {
            let counted = CountedKernel {
                program,
                sizes,
                code,
                census: own,
            };
            kernels.push(match device {
                Device::Cpu(cpu) => cpu::kernel(&counted, cpu)?,
                Device::Gpu(gpu) => gpu::kernel(&counted, gpu)?,
            });
        }
    }
    Ok(join(&census, &kernels))
}

/// Kernels run one after another.
fn join(census: &Census<'_>, kernels: &[KernelPrediction]) -> Prediction {
    let mut terms: Vec<Term> = Vec::new();
    let mut limits: Vec<(&'static str, f64)> = Vec::new();
    for kernel in kernels {
        for term in &kernel.terms {
            match terms.iter_mut().find(|t| t.name == term.name) {
                Some(sum) => {
                    sum.amount += term.amount;
                    sum.seconds += term.seconds;
                }
                None => terms.push(term.clone()),
            }
        }
        match limits.iter_mut().find(|(name, _)| *name == kernel.limit) {
            Some((_, sum)) => *sum += kernel.seconds,
            None => limits.push((kernel.limit, kernel.seconds)),
        }
    }
    let longest = kernels
        .iter()
        .max_by(|a, b| a.seconds.total_cmp(&b.seconds));
    let limit = limits.iter().max_by(|a, b| a.1.total_cmp(&b.1));
    let tally = census.total.clone();
    Prediction {
        seconds: kernels.iter().map(|k| k.seconds).sum(),
        terms,
        limit: limit.map_or("nothing", |(name, _)| name),
        registers: kernels.iter().map(|k| k.registers).max().unwrap_or(0),
        occupancy: longest.map_or(0.0, |k| k.occupancy),
        operations: kernels.iter().map(|k| k.operations).sum(),
        utilisation: tally.utilisation(),
        code: census.codes.iter().map(|c| c.text).fold(0.0, f64::max),
        tally,
    }
}

/// The term that takes the longest.
pub fn longest(terms: &[Term]) -> (&'static str, f64) {
    let longest = terms.iter().max_by(|a, b| a.seconds.total_cmp(&b.seconds));
    longest.map_or(("nothing", 0.0), |t| (t.name, t.seconds))
}
