//! What the handle and the engine's threads share.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use crate::sync::{Condvar, Instant, Mutex, MutexGuard};

use super::{compaction::Compactor, idempotency::IdempotencyKeys, queue::Queue, stats::Counters};
#[cfg(feature = "object-store")]
use crate::{Error, store::OpenStorage};
use crate::{
    Options, Result, SequenceNumber,
    catalog::{Manifest, ManifestEdit},
    clock::Clock,
    datafile::KnownFolders,
    ingest::{Encoders, Helpers},
    memory::MemoryBudget,
    random::RandomSource,
    registry::Registry,
    vfs::Vfs,
    wal::Wal,
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
    pub(super) helpers: Helpers,
    /// What makes frames of decoded rows.
    pub(super) encoders: Encoders,
    pub(super) keys: Arc<IdempotencyKeys>,
    pub(super) memory: Arc<MemoryBudget>,
    /// Locked for each group by the committer, and for the release of segments by flush.
    pub(super) wal: Mutex<Wal>,
    /// Locked for the whole of a flush, so that there is one at a time. Compaction takes it to commit, not to work.
    pub(super) manifest: Mutex<Manifest>,
    /// Last sequence number of what is frozen and in no data file yet. Changed with the manifest locked.
    pub(super) frozen: Frozen,
    pub(super) fresh: Fresh,
    pub(super) unlogged: Unlogged,
    pub(super) folders: KnownFolders,
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

    /// Commits to the manifest. Where that closes it, as a sync that fails does, nothing can be flushed until the directory is
    /// opened again, and no more points are taken from this moment on.
    pub(super) fn commit(&self, manifest: &mut Manifest, edit: ManifestEdit) -> Result<()> {
        let committed = manifest.commit(edit);
        if let (Err(_), Some(reason)) = (&committed, manifest.closed())
            && self.queue.close(&format!("the manifest is closed: {reason}"))
        {
            tracing::error!(reason, "the manifest is closed, writes are refused from now on");
        }
        committed
    }

    /// Has what waits for an object store give up: the engine closes.
    pub(super) fn hurry(&self) {
        #[cfg(feature = "object-store")]
        if let Some(storage) = &self.storage {
            storage.hurry();
        }
    }

    /// Notes that there are unflushed rows and asks for a flush if those that came since the last freeze are too many.
    pub(super) fn note_buffered(&self) {
        let full = self.fresh.is_too_much(self.counters.wal_bytes.load(Ordering::Relaxed), &self.options);
        self.flush_signal.note_write(full);
    }
}

/// What came since the last freeze, roughly: what decides when the next flush begins. What is frozen is being flushed; with
/// it counted, each flush of a busy engine would be followed by another one at once, of the little that came meanwhile.
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

/// Counts the writes that are not in the log, so that it is known whether files and log have everything.
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

    /// Forgets that there was too much: what came before this is in the flush under way.
    pub(super) fn note_frozen(&self) {
        self.state.lock().full = false;
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

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::*;
    use crate::{
        Engine,
        vfs::{CrashFs, Fault, FaultFs, Operation},
    };

    fn engine(faults: &FaultFs) -> Engine {
        let options = Options { compaction: false, flush_after: Duration::from_secs(1 << 30), ..Options::default() };
        Engine::builder("/store").options(options).vfs(Arc::new(faults.clone())).open().unwrap()
    }

    fn write(engine: &Engine, line: &str) -> Result<u64> {
        engine.write_lp("d", line.as_bytes()).map(|written| written.points)
    }

    #[test]
    fn what_is_being_flushed_asks_for_no_other_flush() {
        let options = Options { flush_bytes: 100, flush_wal_bytes: 1_000, ..Options::default() };
        let fresh = Fresh::default();
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
        let engine = engine(&faults);
        let shared = &engine.inner.shared;
        let fresh = || shared.fresh.bytes.load(Ordering::Relaxed);
        write(&engine, "m v=1 1").unwrap();
        let bytes = fresh();
        assert_eq!(bytes, shared.counters.buffered_bytes.load(Ordering::Relaxed));
        faults.set(Fault::nth(1, ErrorKind::Other).of(Operation::CreateNew).from_then_on());
        engine.flush().unwrap_err();
        assert_eq!(fresh(), bytes);
        faults.clear();
        engine.flush().unwrap();
        assert_eq!(fresh(), 0);
    }

    #[test]
    fn whoever_loses_the_manifest_closes_the_engine_to_writes_at_once() {
        type Work = fn(&Engine) -> Result<()>;
        let works: [(&str, Work); 4] = [
            ("a flush", |engine| engine.flush().map(drop)),
            ("a retention", |engine| engine.set_retention("d", None, Some(Duration::from_secs(1)))),
            ("a durability", |engine| engine.set_database_durability("d", None)),
            ("a merge", |engine| engine.compact().map(drop)),
        ];
        for (what, work) in works {
            let faults = FaultFs::new(Arc::new(CrashFs::new()));
            let open = engine(&faults);
            for n in 0..8 {
                write(&open, &format!("m v=1 {n}")).unwrap();
                open.flush().unwrap();
            }
            write(&open, "m v=1 9").unwrap();
            assert_eq!(open.closed_to_writes(), None, "{what}");
            // Some sync of a folder is that of the manifest's; the others lose nothing but the work.
            let mut closed = None;
            for nth in 1..20 {
                faults.set(Fault::nth(nth, ErrorKind::Other).of(Operation::SyncDir));
                let failed = work(&open).is_err();
                closed = open.closed_to_writes();
                if closed.is_some() {
                    assert!(failed, "{what}");
                    break;
                }
            }
            faults.clear();
            let closed = closed.unwrap_or_else(|| panic!("{what} never lost the manifest"));
            assert!(closed.contains("the manifest is closed"), "{closed}");
            let refused = write(&open, "m v=1 10").unwrap_err();
            assert_eq!(refused.kind(), crate::ErrorKind::Closed, "{what}");
            drop(open);
            let again = engine(&faults);
            let table = &again.tables("d").unwrap()[0];
            assert_eq!((table.file_rows + table.buffered_rows, again.closed_to_writes()), (9, None), "{what}");
        }
    }

    #[test]
    fn a_log_that_fails_closes_the_engine_before_the_write_is_answered() {
        let faults = FaultFs::new(Arc::new(CrashFs::new()));
        let open = engine(&faults);
        write(&open, "m v=1 1").unwrap();
        faults.set(Fault::nth(1, ErrorKind::Other).of(Operation::SyncData));
        assert_eq!(write(&open, "m v=1 2").unwrap_err().kind(), crate::ErrorKind::Unknown);
        assert!(open.closed_to_writes().unwrap().contains("the log failed"));
        open.close().unwrap();
        assert!(open.closed_to_writes().is_some());
    }
}
