//! What the handle and the engine's threads share.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::{compaction::Compactor, idempotency::IdempotencyKeys, queue::Queue, stats::Counters};
#[cfg(feature = "object-store")]
use crate::store::OpenStorage;
use crate::{
    Error, Options, Result, SequenceNumber,
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

    /// Takes note of a failure to write data files. Where a folder could not be synced, nothing is flushed or merged until the
    /// directory is opened again, and no more points are taken.
    pub(super) fn note_unsynced(&self, error: &Error) {
        if self.folders.note(error) {
            let reason = format!("data files cannot be relied on: {error}");
            if self.queue.close(&reason) {
                tracing::error!(reason, "a folder could not be synced, writes are refused from now on");
            }
        }
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
            let mut reasons = Vec::new();
            // Some sync of a folder is that of the manifest's; those before it are of folders of data files.
            for nth in 1..20 {
                let faults = FaultFs::new(Arc::new(CrashFs::new()));
                let open = engine(&faults);
                for n in 0..8 {
                    write(&open, &format!("m v=1 {n}")).unwrap();
                    open.flush().unwrap();
                }
                write(&open, "m v=1 9").unwrap();
                assert_eq!(open.closed_to_writes(), None, "{what}");
                faults.set(Fault::nth(nth, ErrorKind::Other).of(Operation::SyncDir));
                let failed = work(&open).is_err();
                faults.clear();
                let Some(closed) = open.closed_to_writes() else { break };
                assert!(failed, "{what}");
                reasons.push(closed);
                let refused = write(&open, "m v=1 10").unwrap_err();
                assert_eq!(refused.kind(), crate::ErrorKind::Closed, "{what}");
                let syncs = faults.calls(Operation::SyncDir);
                assert!(work(&open).is_err(), "{what}");
                assert_eq!(faults.calls(Operation::SyncDir), syncs, "{what}: no folder is synced again");
                drop(open);
                let again = engine(&faults);
                let table = &again.tables("d").unwrap()[0];
                assert_eq!((table.file_rows + table.buffered_rows, again.closed_to_writes()), (9, None), "{what}");
            }
            assert!(reasons.iter().any(|reason| reason.contains("the manifest is closed")), "{what}: {reasons:?}");
            let of_data = |reason: &String| reason.contains("data files cannot be relied on");
            assert!(reasons.iter().all(|reason| of_data(reason) || reason.contains("the manifest")), "{reasons:?}");
        }
    }

    #[test]
    fn what_has_no_file_descriptor_left_can_be_flushed_later() {
        let faults = FaultFs::new(Arc::new(CrashFs::new()));
        let open = engine(&faults);
        write(&open, "m v=1 1").unwrap();
        for operation in [Operation::SyncDir, Operation::CreateNew] {
            faults.set(Fault::nth(1, ErrorKind::OutOfMemory).of(operation));
            open.flush().unwrap_err();
            assert_eq!(open.closed_to_writes(), None, "{operation:?}");
        }
        assert_eq!(open.flush().unwrap().rows, 1);
    }

    #[test]
    fn what_was_refused_for_want_of_room_is_not_there() {
        let faults = FaultFs::new(Arc::new(CrashFs::new()));
        // Nothing is in the log yet, so that the first frame needs a segment.
        let open = engine(&faults);
        let schema = |database: &str| crate::catalog::TableSchema {
            database: database.into(),
            table: "t".into(),
            keyed: true,
            columns: Vec::new(),
        };
        faults.set(Fault::nth(1, ErrorKind::StorageFull).of(Operation::CreateNew).from_then_on());
        for _ in 0..2 {
            for refused in [open.create_database("d"), open.create_table(&schema("e"))] {
                assert_eq!(refused.unwrap_err().kind(), crate::ErrorKind::StorageFull);
            }
            assert!(!open.databases().iter().any(|database| ["d", "e"].contains(&&*database.name)));
        }
        faults.clear();
        open.create_database("e").unwrap();
        open.create_table(&schema("e")).unwrap();
        open.create_database("x").unwrap();
        drop(open);
        let again = engine(&faults);
        assert_eq!(again.tables("e").unwrap().len(), 1);
        again.create_table(&schema("x")).unwrap();
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

    #[test]
    fn a_log_without_file_descriptors_refuses_writes_for_now() {
        let faults = FaultFs::new(Arc::new(CrashFs::new()));
        let options = Options { compaction: false, wal_segment_bytes: 64 << 10, ..Options::default() };
        let open = Engine::builder("/store").options(options).vfs(Arc::new(faults.clone())).open().unwrap();
        let line = format!("m s=\"{}\"", "x".repeat(20 << 10));
        assert_eq!(write(&open, &line).unwrap(), 1);
        faults.set(Fault::nth(1, ErrorKind::OutOfMemory).of(Operation::SyncDir).from_then_on());
        let mut stored = 1;
        let refused = loop {
            match write(&open, &line) {
                Ok(_) => stored += 1,
                Err(refused) => break refused,
            }
        };
        assert_eq!((refused.kind(), open.closed_to_writes()), (crate::ErrorKind::Busy, None), "{refused}");
        faults.clear();
        for _ in 0..10 {
            stored += write(&open, &line).unwrap();
        }
        drop(open);
        let table = &engine(&faults).tables("d").unwrap()[0];
        assert_eq!(table.file_rows + table.buffered_rows, stored);
    }
}
