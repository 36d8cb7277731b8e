//! Forks of a process that has used the driver: they have its memory and none of its threads.
//!
//! Whatever waited for one of these would wait for ever. So a fork is refused, and drops nothing that has threads.

use std::sync::atomic::{AtomicU32, Ordering};

use arc_core::{Error, Result};

/// The process that opened an engine or asked for one first; 0 before that.
static FIRST: AtomicU32 = AtomicU32::new(0);

/// Returns whether this process is not the one that made something.
pub(crate) fn is_fork(process: u32) -> bool {
    process != std::process::id()
}

/// Refuses a fork of a process that had opened an engine.
///
/// # Errors
///
/// [`Error::Closed`].
pub fn check_process() -> Result<()> {
    match FIRST.compare_exchange(0, std::process::id(), Ordering::Relaxed, Ordering::Relaxed) {
        Err(first) if is_fork(first) => Err(Error::Closed {
            reason: "this process is a fork of one that had opened an engine; fork before that, or start it with \
                     multiprocessing.get_context(\"spawn\")"
                .into(),
        }),
        _ => Ok(()),
    }
}
