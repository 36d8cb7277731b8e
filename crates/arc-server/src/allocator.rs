//! How soon the allocator gives freed memory back to the operating system.
//!
//! Owns what we tell it under a small budget, where there is no room for memory that nobody uses. Never allocates; which
//! allocator it is, the binary says.

use std::{
    cell::Cell,
    ffi::{c_int, c_long},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

// Linked in by the name alone.
use mimalloc as _;

/// A budget below this has no room for memory that nobody uses.
const TIGHT_BYTES: usize = 1 << 30;

/// `mi_option_purge_delay` of mimalloc 2: milliseconds from a free until the memory goes back.
const PURGE_DELAY: c_int = 15;

#[expect(unsafe_code, reason = "declares three functions of a library in C")]
unsafe extern "C" {
    #[cfg(test)]
    fn mi_option_get(option: c_int) -> c_long;
    fn mi_option_set(option: c_int, value: c_long);
    fn mi_collect(force: bool);
}

/// How long a thread keeps what it freed, at least, before it looks again for memory to give back.
const KEPT_FOR: Duration = Duration::from_millis(50);

/// Whether the budget is a small one.
static TIGHT: AtomicBool = AtomicBool::new(false);

/// Has freed memory go back at once if `memory_bytes` is a small budget.
///
/// Otherwise it goes back 10 ms later, and not before the thread that freed it allocates again: threads that wait hold what
/// their last task used. After 3 million points and six large queries (`scripts/reliability/memory.py --seed 2`, 128 MiB)
/// that was 340 MiB of which 1 MiB was in use, and 80 MiB with this. It costs 0.1 µs for each point written.
pub(crate) fn tune(memory_bytes: usize) {
    if memory_bytes < TIGHT_BYTES {
        TIGHT.store(true, Ordering::Relaxed);
        #[expect(unsafe_code, reason = "a call of C")]
        // SAFETY: stores a number in a table of the library, which checks the index; the library says it may be called at
        // any time by any thread.
        unsafe {
            mi_option_set(PURGE_DELAY, 0);
        }
    }
}

/// Gives back what this thread keeps for its next allocations, if the budget is a small one; for threads that are about to
/// wait. A thread keeps a page of up to 512 KiB for each size that it ever freed: 15 threads kept 90 MiB.
pub(crate) fn give_back() {
    thread_local! {
        static LAST: Cell<Option<Instant>> = const { Cell::new(None) };
    }
    let is_due = || LAST.get().is_none_or(|last| last.elapsed() >= KEPT_FOR);
    if TIGHT.load(Ordering::Relaxed) && is_due() {
        give_back_now();
        LAST.set(Some(Instant::now()));
    }
}

/// Gives back what this thread keeps, whatever the budget.
pub(crate) fn give_back_now() {
    #[expect(unsafe_code, reason = "a call of C")]
    // SAFETY: frees pages of this thread that hold no block; any thread may call it at any time.
    unsafe {
        mi_collect(true);
    }
}

#[cfg(test)]
fn purge_delay() -> c_long {
    #[expect(unsafe_code, reason = "a call of C")]
    // SAFETY: reads a number from a table of the library, which checks the index.
    unsafe {
        mi_option_get(PURGE_DELAY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_budgets_keep_nothing_that_is_freed() {
        // The library's default: another number would mean that the index is another setting's.
        assert_eq!(purge_delay(), 10);
        tune(TIGHT_BYTES);
        assert_eq!(purge_delay(), 10);
        tune(TIGHT_BYTES - 1);
        assert_eq!(purge_delay(), 0);
        give_back();
    }
}
