//! What is in no data file yet, as it is counted: how much came since the last freeze, and whether
//! the log has all of it.
//!
//! Owns what decides when the next flush begins, and whether log and files together have every
//! point. Counts only: the rows are in their tables. What is frozen is being flushed; with it
//! counted, each flush of a busy engine would be followed by another one at once, of the little
//! that came meanwhile.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::Options;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Unflushed {
    /// Bytes of rows that came since the last freeze, roughly.
    bytes: AtomicUsize,
    /// Bytes of the log that wait for the flush under way.
    frozen_log_bytes: AtomicU64,
    unlogged: Unlogged,
}

/// Counts the writes that are not in the log.
#[derive(Debug, Default)]
struct Unlogged {
    applied: AtomicU64,
    frozen: AtomicU64,
    flushed: AtomicU64,
}

impl Unflushed {
    /// Notes that rows are in the buffers, which hold so many bytes more.
    pub(super) fn note_applied(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Notes that a write that is not in the log is applied, by the thread that freezes the buffers.
    pub(super) fn note_unlogged(&self) {
        self.unlogged.applied.fetch_add(1, Ordering::AcqRel);
    }

    /// Notes that all buffers are frozen, while the log holds `log_bytes`.
    pub(super) fn note_frozen(&self, log_bytes: u64) {
        self.unlogged.frozen.store(self.unlogged.applied.load(Ordering::Acquire), Ordering::Release);
        self.bytes.store(0, Ordering::Relaxed);
        self.frozen_log_bytes.store(log_bytes, Ordering::Relaxed);
    }

    /// Notes that all that was frozen is in data files. Called with the manifest locked.
    pub(super) fn note_flushed(&self) {
        self.unlogged.flushed.store(self.unlogged.frozen.load(Ordering::Acquire), Ordering::Release);
    }

    /// Notes that the log has let go of what was frozen.
    pub(super) fn note_released(&self) {
        self.frozen_log_bytes.store(0, Ordering::Relaxed);
    }

    /// Notes that what is frozen, of all `bytes` in buffers, is to be flushed again.
    pub(super) fn note_failed(&self, bytes: usize) {
        self.bytes.store(bytes, Ordering::Relaxed);
        self.frozen_log_bytes.store(0, Ordering::Relaxed);
    }

    /// Returns whether a flush is to begin, where the log has so many bytes that are not released.
    pub(super) fn is_too_much(&self, log_bytes: u64, options: &Options) -> bool {
        let log_bytes = log_bytes.saturating_sub(self.frozen_log_bytes.load(Ordering::Relaxed));
        self.bytes.load(Ordering::Relaxed) >= options.flush_bytes || log_bytes >= options.flush_wal_bytes
    }

    /// Returns whether some writes are in memory only.
    pub(super) fn any_in_memory_only(&self) -> bool {
        self.unlogged.applied.load(Ordering::Acquire) != self.unlogged.flushed.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use std::{io::ErrorKind, sync::Arc, time::Duration};

    use super::*;
    use crate::{
        Engine,
        vfs::{CrashFs, Fault, FaultFs, Operation},
    };

    #[test]
    fn what_is_being_flushed_asks_for_no_other_flush() {
        let options = Options { flush_bytes: 100, flush_wal_bytes: 1_000, ..Options::default() };
        let fresh = Unflushed::default();
        let is_too_much = |applied, log| {
            fresh.note_applied(applied);
            fresh.is_too_much(log, &options)
        };
        assert!(!is_too_much(99, 999));
        assert!(is_too_much(1, 999));
        fresh.note_frozen(999);
        assert!(!is_too_much(99, 1_998));
        assert!(is_too_much(0, 1_999));
        fresh.note_released();
        assert!(is_too_much(0, 1_000) && !is_too_much(0, 999));
        // Unless it could not be flushed.
        fresh.note_frozen(1_000);
        assert!(!is_too_much(0, 1_000));
        fresh.note_failed(100);
        assert!(is_too_much(0, 0));
    }

    #[test]
    fn what_a_flush_could_not_write_counts_again() {
        let faults = FaultFs::new(Arc::new(CrashFs::new()));
        let options = Options { compaction: false, flush_after: Duration::from_secs(1 << 30), ..Options::default() };
        let engine = Engine::builder("/store").options(options).vfs(Arc::new(faults.clone())).open().unwrap();
        let shared = engine.writer().unwrap();
        let fresh = || shared.unflushed.bytes.load(Ordering::Relaxed);
        assert_eq!(engine.write_lp("d", b"m v=1 1").unwrap().points, 1);
        let bytes = fresh();
        assert_eq!(bytes, shared.counters.buffered_bytes.load(Ordering::Relaxed));
        faults.set(Fault::nth(1, ErrorKind::Other).of(Operation::CreateNew).from_then_on());
        engine.flush().unwrap_err();
        assert_eq!(fresh(), bytes);
        faults.clear();
        engine.flush().unwrap();
        assert_eq!(fresh(), 0);
    }
}
