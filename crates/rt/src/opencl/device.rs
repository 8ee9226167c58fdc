//! A device that was opened.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use opencl_sys::cl_device_id;

use super::build::{Built, OpenClCompileOptions, build};
use super::info::{DeviceInfo, all_devices, info};
use super::objects::{BufferRange, Context, Event, Kernel, Memory, Queue};
use super::self_test::examine;
use crate::cache::CacheOptions;
use crate::device::driver::{Driver, Launch, Made};
use crate::device::variant::Variant;
use crate::device::{self, DeviceSource};
use crate::error::Error;

/// A device that programs run on.
pub type Gpu = device::Gpu<OpenCl>;

/// A program compiled for a device. It can be run any number of times.
pub type OpenClProgram = device::DeviceProgram<OpenCl>;

/// A row-major array in the memory of a device.
pub type DeviceArray = device::DeviceArray<OpenCl>;

/// Access to a device.
#[derive(Debug)]
pub struct OpenCl {
    context: Context,
    device: Handle,
    info: DeviceInfo,
    /// The queue for work outside runs.
    service: Queue,
}

/// A device lives as long as the process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Handle(pub(super) cl_device_id);

#[expect(unsafe_code, reason = "a device may be named from any thread")]
// SAFETY: it is only a name.
unsafe impl Send for Handle {}
#[expect(unsafe_code, reason = "a device may be named from any thread")]
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl Gpu {
    /// The device of this index among those of all implementations. It is tested when it is first
    /// opened; features that fail are removed from its `info`.
    pub fn open(ordinal: usize) -> Result<Arc<Gpu>, Error> {
        static OPEN: Mutex<BTreeMap<usize, Arc<Gpu>>> = Mutex::new(BTreeMap::new());
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(gpu) = open.get(&ordinal) {
            return Ok(Arc::clone(gpu));
        }
        let all = all_devices()?;
        let Some((platform, device)) = all.get(ordinal).copied() else {
            return Err(Error::NoOpenCl {
                reason: format!("there is no device {ordinal}; there are {}", all.len()),
            });
        };
        let mut info = info(ordinal, platform, device)?;
        let cache = CacheOptions::from_env().ok().flatten();
        examine(&mut info, device, cache.as_ref());
        let context = Context::new(device)?;
        let driver = OpenCl {
            service: Queue::new(&context, device)?,
            context,
            device: Handle(device),
            info: info.clone(),
        };
        let gpu = Arc::new(device::Gpu::new(info, driver));
        open.insert(ordinal, Arc::clone(&gpu));
        Ok(gpu)
    }
}

/// Machine code on a device: its kernels, each for one launch at a time.
#[derive(Debug)]
pub struct Code(Vec<Mutex<Kernel>>);

impl Driver for OpenCl {
    type Info = DeviceInfo;
    type Options = OpenClCompileOptions;
    type Memory = Memory;
    type Location = BufferRange;
    type Queue = Queue;
    type Event = Event;
    type Code = Code;

    fn allocate(&self, bytes: usize) -> Result<Option<Memory>, Error> {
        Memory::new(&self.context, &self.service, bytes)
    }

    fn location(memory: &Memory) -> BufferRange {
        memory.location()
    }

    fn bytes(memory: &Memory) -> usize {
        memory.bytes()
    }

    fn overlap(a: BufferRange, b: BufferRange) -> bool {
        a.overlaps(b)
    }

    /// The limit of one array: OpenCL does not report free memory.
    fn free_memory(&self) -> u64 {
        self.info.largest_array
    }

    fn shared_per_block(&self) -> u64 {
        self.info.local_memory
    }

    fn queue(&self) -> Result<Queue, Error> {
        Queue::new(&self.context, self.device.0)
    }

    fn record_event(&self, queue: &Queue) -> Result<Event, Error> {
        queue.record_event()
    }

    fn seconds(&self, begin: &Event, end: &Event) -> Result<f64, Error> {
        Ok(end.time()?.saturating_sub(begin.time()?) as f64 / 1e9)
    }

    fn load(
        &self,
        source: &DeviceSource,
        variant: &Variant,
        options: &OpenClCompileOptions,
    ) -> Result<Made<Code>, Error> {
        let Built {
            program,
            origin,
            notes,
        } = build(
            &self.context,
            self.device.0,
            &self.info,
            &source.code,
            variant,
            options,
        )?;
        let kernels = source.kernels.iter();
        let kernels = kernels.map(|k| Ok(Mutex::new(program.kernel(&k.symbol)?)));
        Ok(Made {
            code: Code(kernels.collect::<Result<_, Error>>()?),
            origin,
            notes,
        })
    }

    fn constant(_: &Code, _: usize) -> Option<BufferRange> {
        None
    }

    fn launch(
        &self,
        queue: &Queue,
        code: &Code,
        launch: &Launch<'_, BufferRange>,
    ) -> Result<(), Error> {
        let kernel = code.0[launch.kernel]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for (n, argument) in launch.arguments.iter().enumerate() {
            kernel.set(n, argument, launch.width)?;
        }
        queue.launch(&kernel, launch.grid, launch.threads)
    }
}
