//! Counts what is asked of the allocator, and what of it is held.
//!
//! The one module with `unsafe` code: an allocator can only be written in it. Never allocates
//! itself.

use std::{
    alloc::{GlobalAlloc, Layout},
    cell::Cell,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// An allocator that counts the allocations and reallocations of each thread and leaves the work to
/// another one.
#[derive(Debug)]
pub struct Counting<A>(pub A);

#[expect(unsafe_code, reason = "an allocator can only be written in unsafe code")]
// SAFETY: every call goes to the inner allocator unchanged; counting touches a thread-local that
// needs no allocation and no destructor.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counting<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promise about `layout` is passed on.
        unsafe { self.0.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promise about `layout` is passed on.
        unsafe { self.0.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count();
        // SAFETY: `pointer` came from the inner allocator with this layout; the caller's promises
        // are passed on.
        unsafe { self.0.realloc(pointer, layout, new_size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `pointer` came from the inner allocator with this layout.
        unsafe { self.0.dealloc(pointer, layout) }
    }
}

fn count() {
    ALLOCATIONS.set(ALLOCATIONS.get() + 1);
}

static HELD: AtomicUsize = AtomicUsize::new(0);
static MOST_HELD: AtomicUsize = AtomicUsize::new(0);

/// An allocator that also knows how many bytes of all threads are held. It costs some nanoseconds
/// an allocation.
#[derive(Debug)]
pub struct Measuring<A>(pub Counting<A>);

#[expect(unsafe_code, reason = "an allocator can only be written in unsafe code")]
// SAFETY: every call goes to the inner allocator unchanged; counting touches atomic numbers only.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Measuring<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        hold(layout.size());
        // SAFETY: the caller's promise about `layout` is passed on.
        unsafe { self.0.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        hold(layout.size());
        // SAFETY: the caller's promise about `layout` is passed on.
        unsafe { self.0.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        HELD.fetch_sub(layout.size(), Relaxed);
        hold(new_size);
        // SAFETY: `pointer` came from the inner allocator with this layout; the caller's promises
        // are passed on.
        unsafe { self.0.realloc(pointer, layout, new_size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: `pointer` came from the inner allocator with this layout.
        unsafe { self.0.dealloc(pointer, layout) }
    }
}

fn hold(bytes: usize) {
    let held = HELD.fetch_add(bytes, Relaxed) + bytes;
    MOST_HELD.fetch_max(held, Relaxed);
}

/// Returns what `work` returns, and how many bytes more than before were held at most meanwhile.
/// Always 0 unless [`Measuring`] is the global allocator.
pub fn most_held<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.load(Relaxed);
    MOST_HELD.store(before, Relaxed);
    let result = work();
    (result, MOST_HELD.load(Relaxed).saturating_sub(before))
}

/// Returns how often `work` asks for memory on this thread. Always 0 unless [`Counting`] is the
/// global allocator.
pub fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

#[cfg(test)]
mod tests {
    use std::alloc::System;

    use super::*;

    #[global_allocator]
    static ALLOCATOR: Counting<System> = Counting(System);

    #[test]
    fn allocations_of_this_thread_are_counted() {
        assert_eq!(allocations(|| {}), 0);
        assert_eq!(allocations(|| drop(std::hint::black_box(Box::new(1)))), 1);
        assert_eq!(allocations(|| drop(std::hint::black_box(vec![0_u8; 10]))), 1);
        let mut growing = Vec::with_capacity(1);
        assert_eq!(allocations(|| growing.extend([1_u8; 100])), 1);
    }
}
