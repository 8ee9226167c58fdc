//! Large pages under large arrays.
//!
//! A tile touches as many pages as it has rows. With pages of 4 KiB a kernel soon waits for TLB
//! misses rather than for memory, and the CPU's prefetcher stops at the end of each page.
#![cfg_attr(
    target_os = "linux",
    expect(unsafe_code, reason = "advice about memory goes by address")
)]

/// Below this number of bytes a large page gains nothing.
#[cfg(target_os = "linux")]
const LARGE: usize = 4 << 20;

/// Requests large pages for a vector without elements. It is a hint: a system without large pages
/// ignores it.
#[cfg(target_os = "linux")]
pub(crate) fn prefer_large<T>(memory: &Vec<T>) {
    let bytes = memory.capacity() * size_of::<T>();
    if bytes < LARGE {
        return;
    }
    let page = rustix::param::page_size();
    let start = memory.as_ptr().cast_mut().cast::<u8>();
    let skipped = start.align_offset(page);
    let whole = (bytes - skipped) / page * page;
    // SAFETY: the range lies within the vector's own memory, and this advice changes no byte of it.
    let _ = unsafe {
        rustix::mm::madvise(
            start.add(skipped).cast(),
            whole,
            rustix::mm::Advice::LinuxHugepage,
        )
    };
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn prefer_large<T>(_memory: &Vec<T>) {}
