//! The way to the memory and the kernels of a kind of device.

use std::fmt;

use super::source::DeviceSource;
use super::variant::Variant;
use super::width::Width;
use crate::compile::{Note, Origin};
use crate::error::Error;

/// A device that was opened.
pub trait Driver: fmt::Debug + Sized + 'static {
    /// What is known of the device.
    type Info: fmt::Debug;
    /// How code is compiled.
    type Options: Clone + fmt::Debug;
    type Memory: fmt::Debug;
    /// Where an array lies. By itself it promises nothing: whoever hands one to a queue holds the memory it was taken
    /// from until the queue was waited for.
    type Place: Copy + fmt::Debug;
    type Queue: Queue<Self::Place> + fmt::Debug;
    /// A moment in the work of a queue.
    type Moment;
    /// Loaded machine code.
    type Code;

    /// Zeros at a multiple of 16 bytes; none where there is no room.
    fn allocate(&self, bytes: usize) -> Result<Option<Self::Memory>, Error>;

    fn place(memory: &Self::Memory) -> Self::Place;

    fn bytes(memory: &Self::Memory) -> usize;

    fn overlap(a: Self::Place, b: Self::Place) -> bool;

    /// Bytes, as far as it is known.
    fn free_memory(&self) -> u64;

    /// Bytes of shared memory that a block can have.
    fn shared_per_block(&self) -> u64;

    fn queue(&self) -> Result<Self::Queue, Error>;

    fn moment(&self, queue: &Self::Queue) -> Result<Self::Moment, Error>;

    /// Between two moments that have happened.
    fn seconds(&self, begin: &Self::Moment, end: &Self::Moment) -> Result<f64, Error>;

    /// Compiles and loads code, or finds it in the cache.
    fn load(
        &self,
        source: &DeviceSource,
        variant: &Variant,
        options: &Self::Options,
    ) -> Result<Made<Self::Code>, Error>;

    /// Where the n-th constant array of the code lies; none where the compiler left it out.
    fn constant(code: &Self::Code, n: usize) -> Option<Self::Place>;

    fn launch(
        &self,
        queue: &Self::Queue,
        code: &Self::Code,
        launch: &Launch<'_, Self::Place>,
    ) -> Result<(), Error>;
}

/// What is asked for is done in order; only what says so waits.
pub trait Queue<P> {
    /// Waits until all is done that was asked for.
    fn wait(&self) -> Result<(), Error>;

    /// Copies bytes to the device and waits.
    fn upload(&self, to: P, from: &[u8]) -> Result<(), Error>;

    /// Copies bytes from the device and waits.
    fn download(&self, to: &mut [u8], from: P) -> Result<(), Error>;

    /// Copies so many bytes on the device.
    fn copy(&self, to: P, from: P, bytes: usize) -> Result<(), Error>;

    /// Makes n elements of so many bytes this one.
    fn fill(&self, to: P, size: usize, n: usize, element: [u8; 8]) -> Result<(), Error>;
}

/// Code, and where it came from.
pub struct Made<C> {
    pub code: C,
    pub origin: Origin,
    pub notes: Vec<Note>,
}

/// A launch of the blocks of a kernel.
pub struct Launch<'a, P> {
    /// Its number in the source.
    pub kernel: usize,
    /// Blocks along each axis.
    pub grid: [u32; 3],
    /// Of a block.
    pub threads: u32,
    pub dynamic_shared: u64,
    pub static_shared: u64,
    /// Of indices.
    pub width: Width,
    /// Those that the back end wrote the kernel for.
    pub arguments: &'a [Word<'a, P>],
}

/// An argument of a launch.
#[derive(Clone, Copy, Debug)]
pub enum Word<'a, P> {
    Place(P),
    /// These bytes.
    Value(&'a [u8]),
    Index(i64),
    /// So many bytes of shared memory.
    Shared(u64),
}
