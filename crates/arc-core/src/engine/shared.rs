//! What the handle and the engine's threads share.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::{compaction::Compactor, idempotency::IdempotencyKeys, queue::Queue, stats::Counters};
#[cfg(feature = "object-store")]
use crate::{Error, store::OpenStorage};
use crate::{
    Options, Result, SequenceNumber, catalog::Manifest, clock::Clock, memory::MemoryBudget, random::RandomSource,
    registry::Registry, vfs::Vfs, wal::Wal,
};

/// Everything of one open engine but its threads and its lock.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) root: PathBuf,
    pub(super) options: Options,
    pub(super) vfs: Arc<dyn Vfs>,
    /// Where data files and manifest are, if it is an object store; `vfs` leads there.
    #[cfg(feature = "object-store")]
    pub(super) storage: Option<OpenStorage>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) random: Arc<dyn RandomSource>,
    pub(super) registry: Arc<Registry>,
    pub(super) queue: Queue,
    pub(super) keys: Arc<IdempotencyKeys>,
    pub(super) memory: Arc<MemoryBudget>,
    /// Locked for each group by the committer, and for the release of segments by flush.
    pub(super) wal: Mutex<Wal>,
    /// Locked for the whole of a flush, so that there is one at a time. Compaction takes it to commit, not to work.
    pub(super) manifest: Mutex<Manifest>,
    /// Last sequence number of what is frozen and in no data file yet. Changed with the manifest locked.
    pub(super) frozen: Frozen,
    /// Held while tables and columns are registered.
    pub(super) schema_lock: Mutex<()>,
    pub(super) counters: Counters,
    pub(super) flush_signal: FlushSignal,
    pub(super) compactor: Compactor,
    /// First nanosecond not yet given to a point without a timestamp.
    pub(super) next_receive_ns: AtomicI64,
}

impl Shared {
    /// Returns the time for points that have none, and reserves `points` nanoseconds from it on, so that no two such
    /// points share a time.
    pub(super) fn receive_time(&self, points: usize) -> i64 {
        let now = self.clock.now_ns();
        let points = i64::try_from(points).unwrap_or(i64::MAX);
        let reserve = |next: i64| Some(next.max(now).saturating_add(points));
        let reserved = self.next_receive_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, reserve);
        reserved.map_or(now, |next| next.max(now))
    }

    /// Returns whether data files and manifest are in an object store.
    pub(super) fn is_remote(&self) -> bool {
        #[cfg(feature = "object-store")]
        return self.storage.is_some();
        #[cfg(not(feature = "object-store"))]
        false
    }

    /// Locks the manifest for somebody who can come back later. An object store that does not answer holds it for as long as
    /// it takes; a folder does not.
    pub(super) fn lock_manifest(&self) -> Result<MutexGuard<'_, Manifest>> {
        #[cfg(feature = "object-store")]
        if let Some(storage) = &self.storage {
            return self.manifest.try_lock_for(storage.patience()).ok_or(Error::Busy {
                reason: "the manifest is being written, and the object store takes its time",
                retry_after: Duration::from_secs(5),
            });
        }
        Ok(self.manifest.lock())
    }

    /// Has what waits for an object store give up: the engine closes.
    pub(super) fn hurry(&self) {
        #[cfg(feature = "object-store")]
        if let Some(storage) = &self.storage {
            storage.hurry();
        }
    }

    /// Notes that unflushed rows have come to `bytes` and asks for a flush if that is too much.
    pub(super) fn note_buffered(&self) {
        let bytes = self.counters.buffered_bytes.load(Ordering::Relaxed);
        let log = self.counters.wal_bytes.load(Ordering::Relaxed);
        let full = bytes >= self.options.flush_bytes || log >= self.options.flush_wal_bytes;
        self.flush_signal.note_write(full);
    }
}

/// How far buffers are frozen of which there are no files yet.
#[derive(Debug, Default)]
pub(super) struct Frozen(Mutex<Option<SequenceNumber>>);

impl Frozen {
    pub(super) fn get(&self) -> Option<SequenceNumber> {
        *self.0.lock()
    }

    pub(super) fn set(&self, seq: Option<SequenceNumber>) {
        *self.0.lock() = seq;
    }
}

/// Tells the flusher when to work.
#[derive(Debug, Default)]
pub(super) struct FlushSignal {
    state: Mutex<SignalState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct SignalState {
    /// When the oldest unflushed write was applied.
    oldest: Option<Instant>,
    full: bool,
    stop: bool,
}

impl FlushSignal {
    pub(super) fn note_write(&self, full: bool) {
        let mut state = self.state.lock();
        let wake = state.oldest.is_none() || (full && !state.full);
        state.oldest.get_or_insert_with(Instant::now);
        state.full |= full;
        drop(state);
        if wake {
            self.changed.notify_all();
        }
    }

    /// Forgets what was noted: a flush begins that takes all of it along.
    pub(super) fn reset(&self) {
        let mut state = self.state.lock();
        state.oldest = None;
        state.full = false;
    }

    pub(super) fn stop(&self) {
        self.state.lock().stop = true;
        self.changed.notify_all();
    }

    /// Waits until a flush is due; false once stopped.
    pub(super) fn wait(&self, flush_after: Duration) -> bool {
        let mut state = self.state.lock();
        loop {
            if state.stop || state.full {
                return !state.stop;
            }
            match state.oldest.map(|oldest| oldest.checked_add(flush_after)) {
                Some(Some(due)) if due <= Instant::now() => return true,
                Some(Some(due)) => drop(self.changed.wait_until(&mut state, due)),
                Some(None) | None => self.changed.wait(&mut state),
            }
        }
    }

    /// Waits for a while, or until stopped.
    pub(super) fn pause(&self, time: Duration) {
        let mut state = self.state.lock();
        if !state.stop {
            self.changed.wait_for(&mut state, time);
        }
    }
}
