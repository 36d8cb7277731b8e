//! Locks, threads and time, for all that waits for another thread.
//!
//! In every ordinary build these are those of parking_lot and std themselves. With the feature
//! `schedules` they are doubles that ask a scheduler at each step who goes on, so that a seed
//! decides the order of everything (decision 029); a thread that is in no schedule gets the
//! ordinary ones from them, too. Who goes around this module is not seen by the scheduler, and a
//! lock of another kind that is held while a thread waits here stops a schedule for good.

#[cfg(feature = "schedules")]
mod scheduled;

#[cfg(feature = "schedules")]
#[doc(hidden)]
pub use scheduled::{
    AtomicBool, AtomicU64, Condvar, Instant, Mutex, MutexGuard, RwLock, RwLockReadGuard, block_on, mpsc, schedule,
    thread,
};

#[cfg(not(feature = "schedules"))]
pub(crate) use {
    futures::executor::block_on,
    parking_lot::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard},
    std::sync::atomic::{AtomicBool, AtomicU64},
    std::time::Instant,
};

/// Returns this moment.
#[cfg_attr(not(feature = "schedules"), expect(clippy::disallowed_methods, reason = "this is where all others ask"))]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Threads.
#[cfg(not(feature = "schedules"))]
pub(crate) mod thread {
    use std::time::Duration;

    pub(crate) use std::thread::{Builder, JoinHandle, available_parallelism, scope};

    /// Waits for a while.
    #[expect(clippy::disallowed_methods, reason = "this is where all others come to wait")]
    pub(crate) fn sleep(time: Duration) {
        std::thread::sleep(time);
    }
}

/// The channel by which one thread wakes another.
#[cfg(not(feature = "schedules"))]
pub(crate) mod mpsc {
    pub(crate) use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
}
