//! What the handle and the engine's threads share.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use super::{compaction::Compactor, history::Past, idempotency::IdempotencyKeys, queue::Queue, stats::Counters};
#[cfg(feature = "object-store")]
use crate::store::OpenStorage;
use crate::{
    Error, Options, Result, SequenceNumber,
    catalog::{Manifest, ManifestEdit, mark_log},
    clock::Clock,
    datafile::KnownFolders,
    ingest::{DecodePool, Encoders},
    memory::MemoryBudget,
    random::RandomSource,
    registry::Registry,
    sync::{self, Condvar, Instant, Mutex, MutexGuard},
    vfs::Vfs,
    wal::{Acknowledged, Wal},
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
    /// Threads that help to decode.
    pub(super) decode_pool: DecodePool,
    /// What makes frames of decoded rows.
    pub(super) encoders: Encoders,
    pub(super) keys: Arc<IdempotencyKeys>,
    pub(super) memory: Arc<MemoryBudget>,
    /// Locked for each group by the committer, and for the release of segments by flush.
    pub(super) wal: Mutex<Wal>,
    /// Tells other processes how far the log is acknowledged.
    pub(super) acknowledged: Acknowledged,
    /// Locked for the whole of a flush, so that there is one at a time. Compaction takes it to
    /// commit, not to work.
    pub(super) manifest: Mutex<Manifest>,
    /// Last sequence number of what is frozen and in no data file yet. Changed with the manifest
    /// locked.
    pub(super) frozen: Frozen,
    pub(super) fresh: Fresh,
    pub(super) unlogged: Unlogged,
    pub(super) folders: KnownFolders,
    /// Whether the directory's marker says that there is a log.
    pub(super) log_is_marked: AtomicBool,
    /// Held while tables and columns are registered.
    pub(super) schema_lock: Mutex<()>,
    pub(super) counters: Counters,
    pub(super) flush_signal: FlushSignal,
    pub(super) compactor: Compactor,
    pub(super) past: Past,
    /// First nanosecond not yet given to a point without a timestamp.
    pub(super) next_receive_ns: AtomicI64,
}

impl Shared {
    /// Returns the time for points that have none, and reserves `points` nanoseconds from it on, so
    /// that no two such points share a time. Returns also what the clock says.
    pub(super) fn receive_time(&self, points: usize) -> (i64, i64) {
        let now = self.clock.now_ns();
        let points = i64::try_from(points).unwrap_or(i64::MAX);
        let reserve = |next: i64| Some(next.max(now).saturating_add(points));
        let reserved = self.next_receive_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, reserve);
        (reserved.map_or(now, |next| next.max(now)), now)
    }

    /// Returns whether data files and manifest are in an object store.
    pub(super) fn is_remote(&self) -> bool {
        #[cfg(feature = "object-store")]
        return self.storage.is_some();
        #[cfg(not(feature = "object-store"))]
        false
    }

    /// Locks the manifest for a thread that can come back later. An object store that does not
    /// answer holds it for as long as it takes; a folder does not.
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

    /// Commits to the manifest. Where that closes it, as a sync that fails does, nothing can be
    /// flushed until the directory is opened again, and no more points are taken from this moment
    /// on.
    pub(super) fn commit(&self, manifest: &mut Manifest, edit: ManifestEdit) -> Result<()> {
        let time_ns = Some(self.commit_time(manifest));
        let committed = manifest.commit(ManifestEdit { time_ns, ..edit });
        self.note_commit(manifest, committed)
    }

    /// Returns the time of the next commit, which is not before that of the last.
    pub(super) fn commit_time(&self, manifest: &Manifest) -> i64 {
        let now_ns = self.clock.now_ns();
        manifest.state().time_ns.map_or(now_ns, |last| last.max(now_ns))
    }

    /// Has what is retired from now on go after this commit; takes no more points if it has closed
    /// the manifest.
    pub(super) fn note_commit(&self, manifest: &Manifest, committed: Result<()>) -> Result<()> {
        self.compactor.retired.note_commit(manifest.number());
        if let (Err(_), Some(reason)) = (&committed, manifest.closed())
            && self.queue.close(&format!("the manifest is closed: {reason}"))
        {
            tracing::error!(reason, "the manifest is closed, writes are refused from now on");
        }
        committed
    }

    /// Looks, after a failure to write data files, whether a folder could not be synced: then
    /// nothing is flushed or merged until the directory is opened again, and no more points are
    /// taken.
    pub(super) fn note_unsynced(&self, error: &Error) {
        self.folders.note_error(error);
        if let Some(reason) = self.folders.failure()
            && self.queue.close(&format!("data files cannot be relied on: {reason}"))
        {
            tracing::error!(reason, "a folder could not be synced, writes are refused from now on");
        }
    }

    /// Has the directory's marker say that there is a log, now that it has a segment: a log that
    /// goes missing is told from one that never was. Nothing depends on it as long as none does.
    pub(super) fn mark_log(&self) {
        if self.log_is_marked.load(Ordering::Relaxed) {
            return;
        }
        match mark_log(self.vfs.as_ref(), &self.root) {
            Ok(()) => self.log_is_marked.store(true, Ordering::Relaxed),
            Err(error) => tracing::warn!(%error, "cannot note that there is a log; the next group tries again"),
        }
    }

    /// Proves in the log that what was synced is, where nothing there says so yet; once for each
    /// time that the log comes to rest. A log of which all is flushed is left without such a proof.
    pub(super) fn seal(&self) -> Result<()> {
        let sync = self.wal.lock().begin_seal()?;
        if let Some(sync) = sync {
            sync.run()?;
            Counters::add(&self.counters.wal_syncs, 1);
        }
        Ok(())
    }

    /// Has what waits for an object store give up: the engine closes.
    pub(super) fn abort_waits(&self) {
        #[cfg(feature = "object-store")]
        if let Some(storage) = &self.storage {
            storage.abort_waits();
        }
    }

    /// Notes that there are unflushed rows and asks for a flush if those that came since the last
    /// freeze are too many.
    pub(super) fn note_buffered(&self) {
        let full = self.fresh.is_too_much(self.counters.wal_bytes.load(Ordering::Relaxed), &self.options);
        self.flush_signal.note_write(full);
    }
}

/// What came since the last freeze, roughly: what decides when the next flush begins. What is
/// frozen is being flushed; with it counted, each flush of a busy engine would be followed by
/// another one at once, of the little that came meanwhile.
#[derive(Debug, Default)]
pub(super) struct Fresh {
    /// Bytes of rows.
    bytes: AtomicUsize,
    /// Bytes of the log that wait for the flush under way.
    frozen_log_bytes: AtomicU64,
}

impl Fresh {
    pub(super) fn note_applied(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn note_frozen(&self, log_bytes: u64) {
        self.bytes.store(0, Ordering::Relaxed);
        self.frozen_log_bytes.store(log_bytes, Ordering::Relaxed);
    }

    pub(super) fn note_released(&self) {
        self.frozen_log_bytes.store(0, Ordering::Relaxed);
    }

    /// Returns whether a flush is to begin, where the log has so many bytes that are not released.
    fn is_too_much(&self, log_bytes: u64, options: &Options) -> bool {
        let log_bytes = log_bytes.saturating_sub(self.frozen_log_bytes.load(Ordering::Relaxed));
        self.bytes.load(Ordering::Relaxed) >= options.flush_bytes || log_bytes >= options.flush_wal_bytes
    }

    /// Notes that what is frozen, of all `bytes` in buffers, is to be flushed again.
    pub(super) fn note_failed(&self, bytes: usize) {
        self.bytes.store(bytes, Ordering::Relaxed);
        self.frozen_log_bytes.store(0, Ordering::Relaxed);
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

/// Counts the writes that are not in the log, so that it is known whether files and log have
/// everything.
#[derive(Debug, Default)]
pub(super) struct Unlogged {
    applied: AtomicU64,
    frozen: AtomicU64,
    flushed: AtomicU64,
}

impl Unlogged {
    /// Notes that one was applied to the buffers, by the thread that freezes them.
    pub(super) fn note_applied(&self) {
        self.applied.fetch_add(1, Ordering::AcqRel);
    }

    pub(super) fn note_frozen(&self) {
        self.frozen.store(self.applied.load(Ordering::Acquire), Ordering::Release);
    }

    /// Notes that all that was frozen is in data files. Called with the manifest locked.
    pub(super) fn note_flushed(&self) {
        self.flushed.store(self.frozen.load(Ordering::Acquire), Ordering::Release);
    }

    /// Returns whether some of them are in memory only.
    pub(super) fn any_in_memory(&self) -> bool {
        self.applied.load(Ordering::Acquire) != self.flushed.load(Ordering::Acquire)
    }
}

/// How long the log rests before it is sealed, at least, and at most twice that.
const SEAL_AFTER: Duration = Duration::from_secs(1);

/// What the flusher has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    Flush,
    /// Nothing was synced for a while.
    Seal,
    Stop,
}

/// Tells the flusher when to work.
#[derive(Debug, Default)]
pub(super) struct FlushSignal {
    state: Mutex<FlushSignalState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct FlushSignalState {
    /// When the oldest unflushed write was applied.
    oldest: Option<Instant>,
    full: bool,
    stop: bool,
    /// When to look whether the log rests; nothing looks while it was not synced since it was
    /// sealed.
    look: Option<Instant>,
    /// Whether the log was synced since the last look.
    synced: bool,
}

impl FlushSignal {
    pub(super) fn note_write(&self, full: bool) {
        let mut state = self.state.lock();
        let wake = state.oldest.is_none() || (full && !state.full);
        state.oldest.get_or_insert_with(sync::now);
        state.full |= full;
        drop(state);
        if wake {
            self.changed.notify_all();
        }
    }

    /// Notes that the log was synced.
    pub(super) fn note_synced(&self) {
        let mut state = self.state.lock();
        state.synced = true;
        if state.look.is_none() {
            state.look = sync::now().checked_add(SEAL_AFTER);
            drop(state);
            self.changed.notify_all();
        }
    }

    /// Forgets what was noted: a flush begins that takes all of it along.
    pub(super) fn reset(&self) {
        let mut state = self.state.lock();
        state.oldest = None;
        state.full = false;
    }

    /// Forgets that there was too much: what came before this is in the flush under way.
    pub(super) fn note_frozen(&self) {
        self.state.lock().full = false;
    }

    pub(super) fn stop(&self) {
        self.state.lock().stop = true;
        self.changed.notify_all();
    }

    /// Waits until something is due.
    pub(super) fn wait(&self, flush_after: Duration) -> Due {
        let mut state = self.state.lock();
        loop {
            let now = sync::now();
            let flush = state.oldest.and_then(|oldest| oldest.checked_add(flush_after));
            if state.stop {
                return Due::Stop;
            }
            if state.full || flush.is_some_and(|due| due <= now) {
                return Due::Flush;
            }
            if state.look.is_some_and(|look| look <= now) {
                let is_busy = std::mem::take(&mut state.synced);
                state.look = now.checked_add(SEAL_AFTER).filter(|_| is_busy);
                if !is_busy {
                    return Due::Seal;
                }
            }
            match flush.into_iter().chain(state.look).min() {
                Some(due) => drop(self.changed.wait_until(&mut state, due)),
                None => self.changed.wait(&mut state),
            }
        }
    }

    /// Waits for a while, or until stopped.
    pub(super) fn pause(&self, time: Duration) {
        let (mut state, until) = (self.state.lock(), sync::now() + time);
        while !state.stop && !self.changed.wait_until(&mut state, until).timed_out() {}
    }
}

#[cfg(test)]
mod tests;
