//! The GPUs of this machine.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use systola_ir::Scalar;

use super::compile::{CudaCompileOptions, Resources, compile};
use super::driver::{
    Context, DeviceRange, Event, Function, Memory, Module, Stream, device_count, device_info, start,
};
use super::nvrtc;
use crate::device::driver::{Driver, Launch, LaunchArgument, Made};
use crate::device::variant::Variant;
use crate::device::{self, DeviceKernel, DeviceSource};
use crate::error::Error;
use crate::layout::element_count;
use crate::literal::size;

/// The properties of a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    pub ordinal: usize,
    pub name: String,
    pub multiprocessors: u32,
    /// The highest clock of the multiprocessors, in kHz.
    pub clock_khz: u32,
    /// Bytes.
    pub memory: u64,
    /// Major and minor number of the compute capability.
    pub capability: (u32, u32),
    /// Bytes of shared memory that one block can have.
    pub shared_per_block: u64,
    /// The newest CUDA version that the driver supports.
    pub driver: (u32, u32),
}

impl DeviceInfo {
    /// The compiler's name of the architecture: `sm_90`.
    pub fn arch(&self) -> String {
        let (major, minor) = self.capability;
        format!("sm_{major}{minor}")
    }
}

/// Every GPU of this machine, or why there is none.
pub fn devices() -> Result<Vec<DeviceInfo>, Error> {
    let driver = start()?;
    (0..device_count()?)
        .map(|ordinal| device_info(ordinal, driver))
        .collect()
}

/// A GPU that programs run on.
pub type Gpu = device::Gpu<Cuda>;

/// Access to a GPU through the driver.
#[derive(Debug)]
pub struct Cuda {
    context: Context,
    info: DeviceInfo,
}

impl Gpu {
    pub fn open(ordinal: usize) -> Result<Arc<Gpu>, Error> {
        static OPEN: Mutex<BTreeMap<usize, Arc<Gpu>>> = Mutex::new(BTreeMap::new());
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(gpu) = open.get(&ordinal) {
            return Ok(Arc::clone(gpu));
        }
        let driver = start()?;
        let count = device_count()?;
        let wanted = i32::try_from(ordinal).ok().filter(|n| *n < count);
        let Some(wanted) = wanted else {
            let reason = match count {
                0 => "the driver knows no device".to_string(),
                n => format!("there is no device {ordinal}; there are {n}"),
            };
            return Err(Error::NoDriver { reason });
        };
        let info = device_info(wanted, driver)?;
        let driver = Cuda {
            context: Context::of(wanted)?,
            info: info.clone(),
        };
        let gpu = Arc::new(device::Gpu::new(info, driver));
        open.insert(ordinal, Arc::clone(&gpu));
        Ok(gpu)
    }
}

/// Machine code on a GPU.
#[derive(Debug)]
pub struct Code {
    pub(super) functions: Vec<Function>,
    /// The locations of the constant arrays, in the order of the source.
    constants: Vec<Option<DeviceRange>>,
}

/// Older drivers lack functions that are called here.
const OLDEST_DRIVER: (u32, u32) = (12, 8);

/// Shared memory available to every kernel without opting in to more.
const USUAL_SHARED: u64 = 48 << 10;

impl Driver for Cuda {
    type Info = DeviceInfo;
    type Options = CudaCompileOptions;
    type Memory = Memory;
    type Location = DeviceRange;
    type Queue = Stream;
    type Event = Event;
    type Code = Code;

    fn allocate(&self, bytes: usize) -> Result<Option<Memory>, Error> {
        Memory::new(self.context, bytes)
    }

    fn location(memory: &Memory) -> DeviceRange {
        memory.location()
    }

    fn bytes(memory: &Memory) -> usize {
        memory.bytes()
    }

    fn overlap(a: DeviceRange, b: DeviceRange) -> bool {
        a.overlaps(b)
    }

    fn free_memory(&self) -> u64 {
        self.context.free_memory().unwrap_or(0)
    }

    fn shared_per_block(&self) -> u64 {
        self.info.shared_per_block
    }

    fn queue(&self) -> Result<Stream, Error> {
        Stream::new(self.context)
    }

    fn record_event(&self, queue: &Stream) -> Result<Event, Error> {
        let event = Event::new(self.context)?;
        event.record(queue)?;
        Ok(event)
    }

    fn seconds(&self, begin: &Event, end: &Event) -> Result<f64, Error> {
        end.since(begin)
    }

    fn load(
        &self,
        source: &DeviceSource,
        variant: &Variant,
        options: &CudaCompileOptions,
    ) -> Result<Made<Code>, Error> {
        let (driver, version) = (self.info.driver, nvrtc::version()?);
        let least = OLDEST_DRIVER.max((version.0, 0));
        if driver < least {
            return Err(Error::DriverTooOld {
                driver,
                nvrtc: version,
                least,
            });
        }
        let query = |cubin: &[u8]| self.resources(source, cubin).unwrap_or_default();
        let made = compile(&source.code, &self.info.arch(), variant, options, &query)?;
        let module = Module::load(self.context, &made.cubin)?;
        let kernels = source.kernels.iter();
        let functions = kernels.map(|k| module.function(&k.symbol));
        let constants = source.constants.iter().map(|(_, s)| module.global(s));
        Ok(Made {
            code: Code {
                functions: functions.collect::<Result<_, _>>()?,
                constants: constants.collect::<Result<_, _>>()?,
            },
            origin: made.origin,
            notes: made.notes,
        })
    }

    fn constant(code: &Code, n: usize) -> Option<DeviceRange> {
        code.constants[n]
    }

    fn launch(
        &self,
        queue: &Stream,
        code: &Code,
        launch: &Launch<'_, DeviceRange>,
    ) -> Result<(), Error> {
        let function = &code.functions[launch.kernel];
        let dynamic = launch.dynamic_shared;
        if dynamic.saturating_add(launch.static_shared) > USUAL_SHARED {
            function.allow_shared(dynamic)?;
        }
        let words = launch.arguments.iter().map(|argument| match argument {
            LaunchArgument::Buffer(location) => location.start(),
            LaunchArgument::Index(value) => launch.width.encode(*value),
            LaunchArgument::Value(_) | LaunchArgument::Shared(_) => {
                unreachable!("a CUDA kernel has constant and shared memory of its own")
            }
        });
        let words: Vec<u64> = words.collect();
        queue.launch(
            function,
            launch.grid,
            launch.threads,
            dynamic as u32,
            &words,
        )
    }
}

impl Cuda {
    /// The resources of the kernels of a source, as the driver reports them.
    fn resources(&self, source: &DeviceSource, cubin: &[u8]) -> Result<Vec<Resources>, Error> {
        let module = Module::load(self.context, cubin)?;
        let one = |kernel: &DeviceKernel| {
            let (registers, local) = module.function(&kernel.symbol)?.resources()?;
            Ok(Resources {
                kernel: kernel.symbol.clone(),
                registers,
                spilled: local,
                stack: local,
            })
        };
        source.kernels.iter().map(one).collect()
    }
}

/// A program compiled for a GPU. It can be run any number of times.
pub type CudaProgram = device::DeviceProgram<Cuda>;

impl CudaProgram {
    /// Registers of a thread and bytes of local memory, for each kernel.
    pub fn resources(&self) -> Result<Vec<(u32, u32)>, Error> {
        let Some(first) = self.first_loaded() else {
            return Ok(Vec::new());
        };
        let functions = first.code.functions.iter();
        functions.map(Function::resources).collect()
    }
}

/// A row-major array in the memory of a GPU.
pub type DeviceArray = device::DeviceArray<Cuda>;

impl DeviceArray {
    /// The array at an address of the device, which stays the caller's.
    ///
    /// Refused if the address is not a multiple of 16 bytes.
    ///
    /// # Safety
    ///
    /// There is memory of the device for all elements as long as the array lives, and no one else
    /// writes to it while a run uses it.
    #[expect(unsafe_code, reason = "the caller vouches for the address")]
    pub unsafe fn from_raw(
        gpu: &Arc<Gpu>,
        start: u64,
        ty: Scalar,
        shape: &[usize],
    ) -> Result<DeviceArray, Error> {
        let too_large = || Error::overflow(format!("an array of shape {shape:?}"));
        let n = element_count(shape).ok_or_else(too_large)?;
        if !start.is_multiple_of(16) {
            return Err(Error::Misaligned { start });
        }
        // SAFETY: the caller's promise.
        let location = unsafe { DeviceRange::new(start, n * size(ty)) };
        Ok(DeviceArray::at(gpu, location, ty, shape))
    }

    /// The address of the first element on the device.
    pub fn pointer(&self) -> u64 {
        self.location().start()
    }
}
