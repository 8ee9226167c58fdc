//! Access to the memory and the kernels of a kind of device.

use std::fmt;

use super::source::DeviceSource;
use super::variant::Variant;
use super::width::Width;
use crate::compile::{Note, Origin};
use crate::error::Error;

/// A device that was opened.
pub trait Driver: fmt::Debug + Sized + 'static {
    /// The properties of the device.
    type Info: fmt::Debug;
    /// Options of the compiler.
    type Options: Clone + fmt::Debug;
    type Memory: fmt::Debug;
    /// The location of an array. It does not own the memory: whoever passes it to a queue keeps the
    /// memory alive until the queue is synchronised.
    type Location: Copy + fmt::Debug;
    type Queue: Queue<Self::Location> + fmt::Debug;
    /// An event in a queue.
    type Event;
    /// Loaded machine code.
    type Code;

    /// Zeroed memory at a multiple of 16 bytes; `None` if the device does not have enough.
    fn allocate(&self, bytes: usize) -> Result<Option<Self::Memory>, Error>;

    fn location(memory: &Self::Memory) -> Self::Location;

    fn bytes(memory: &Self::Memory) -> usize;

    fn overlap(a: Self::Location, b: Self::Location) -> bool;

    /// Free bytes, as far as known.
    fn free_memory(&self) -> u64;

    /// Bytes of shared memory that a block can have.
    fn shared_per_block(&self) -> u64;

    fn queue(&self) -> Result<Self::Queue, Error>;

    fn record_event(&self, queue: &Self::Queue) -> Result<Self::Event, Error>;

    /// Seconds between two completed events.
    fn seconds(&self, begin: &Self::Event, end: &Self::Event) -> Result<f64, Error>;

    /// Compiles and loads code, or finds it in the cache.
    fn load(
        &self,
        source: &DeviceSource,
        variant: &Variant,
        options: &Self::Options,
    ) -> Result<Made<Self::Code>, Error>;

    /// The location of the n-th constant array of the code; `None` if the compiler removed it.
    fn constant(code: &Self::Code, n: usize) -> Option<Self::Location>;

    fn launch(
        &self,
        queue: &Self::Queue,
        code: &Self::Code,
        launch: &Launch<'_, Self::Location>,
    ) -> Result<(), Error>;
}

/// Runs commands in order, asynchronously unless stated otherwise.
pub trait Queue<P> {
    /// Waits for all commands.
    fn wait(&self) -> Result<(), Error>;

    /// Copies bytes to the device and waits.
    fn upload(&self, to: P, from: &[u8]) -> Result<(), Error>;

    /// Copies bytes from the device and waits.
    fn download(&self, to: &mut [u8], from: P) -> Result<(), Error>;

    /// Copies `bytes` on the device.
    fn copy(&self, to: P, from: P, bytes: usize) -> Result<(), Error>;

    /// Fills n elements of `size` bytes with this one.
    fn fill(&self, to: P, size: usize, n: usize, element: [u8; 8]) -> Result<(), Error>;
}

/// Code and its origin.
pub struct Made<C> {
    pub code: C,
    pub origin: Origin,
    pub notes: Vec<Note>,
}

/// A launch of the blocks of a kernel.
pub struct Launch<'a, P> {
    /// The index of the kernel in the source.
    pub kernel: usize,
    /// Blocks along each axis.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub threads: u32,
    pub dynamic_shared: u64,
    pub static_shared: u64,
    /// The width of indices.
    pub width: Width,
    /// The arguments in the order of the kernel's parameters.
    pub arguments: &'a [LaunchArgument<'a, P>],
}

/// An argument of a launch.
#[derive(Clone, Copy, Debug)]
pub enum LaunchArgument<'a, P> {
    Buffer(P),
    /// A value of these bytes.
    Value(&'a [u8]),
    Index(i64),
    /// This many bytes of dynamic shared memory.
    Shared(u64),
}
