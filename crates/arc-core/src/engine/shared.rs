//! What the handle and the engine's threads share.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use crate::sync::{Condvar, Instant, Mutex, MutexGuard};

use super::{compaction::Compactor, idempotency::IdempotencyKeys, queue::Queue, stats::Counters};
#[cfg(feature = "object-store")]
use crate::store::OpenStorage;
use crate::{
    Error, Options, Result, SequenceNumber,
    catalog::{Manifest, ManifestEdit, mark_log},
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
    /// Whether the directory's marker says that there is a log.
    pub(super) log_is_marked: AtomicBool,
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

    /// Has the directory's marker say that there is a log, now that it has a segment: a log that goes missing is told from one
    /// that never was. Nothing depends on it as long as none does.
    pub(super) fn mark_log(&self) {
        if self.log_is_marked.load(Ordering::Relaxed) {
            return;
        }
        match mark_log(self.vfs.as_ref(), &self.root) {
            Ok(()) => self.log_is_marked.store(true, Ordering::Relaxed),
            Err(error) => tracing::warn!(%error, "cannot note that there is a log; the next group tries again"),
        }
    }

    /// Proves in the log that what was synced is, where nothing there says so yet; once for each time that the log comes to rest.
    /// A log of which all is flushed is left without such a proof.
    pub(super) fn seal(&self) -> Result<()> {
        let sync = self.wal.lock().begin_seal()?;
        if let Some(sync) = sync {
            sync.run()?;
            Counters::add(&self.counters.wal_syncs, 1);
        }
        Ok(())
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
    state: Mutex<SignalState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct SignalState {
    /// When the oldest unflushed write was applied.
    oldest: Option<Instant>,
    full: bool,
    stop: bool,
    /// When to look whether the log rests; nobody looks while it was not synced since it was sealed.
    look: Option<Instant>,
    /// Whether the log was synced since the last look.
    synced: bool,
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

    /// Notes that the log was synced.
    pub(super) fn note_synced(&self) {
        let mut state = self.state.lock();
        state.synced = true;
        if state.look.is_none() {
            state.look = Instant::now().checked_add(SEAL_AFTER);
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
            let now = Instant::now();
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
        let (mut state, until) = (self.state.lock(), Instant::now() + time);
        while !state.stop && !self.changed.wait_until(&mut state, until).timed_out() {}
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
                let is_of_data = closed.contains("data files cannot be relied on");
                reasons.push(closed);
                let refused = write(&open, "m v=1 10").unwrap_err();
                assert_eq!(refused.kind(), crate::ErrorKind::Closed, "{what}");
                let syncs = faults.calls(Operation::SyncDir);
                assert!(work(&open).is_err(), "{what}");
                // Where only the manifest is lost, a merge writes files of other folders before it finds out.
                assert!(!is_of_data || faults.calls(Operation::SyncDir) == syncs, "{what}: no folder is synced again");
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

    /// Waits for something that another thread does soon.
    fn wait_until(is_so: impl Fn() -> bool) {
        let begun = Instant::now();
        while !is_so() {
            assert!(begun.elapsed() < Duration::from_secs(120), "it never came");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Damages the last frame of the log, and checks that opening says so.
    fn check_sealed(image: &crate::vfs::Image) {
        let is_segment = |path: &&std::path::Path| path.extension().is_some_and(|end| end == "wal");
        let path = image.files().find(is_segment).unwrap().to_owned();
        let mut bytes = image.get(&path).unwrap().to_vec();
        let (offset, ..) = *crate::wal::frame_places(&bytes, &path).last().unwrap();
        bytes[offset + 50] ^= 4;
        let mut damaged = image.clone();
        damaged.set(&path, bytes);
        match Engine::builder("/store").vfs(Arc::new(CrashFs::from_image(&damaged))).open() {
            Err(crate::Error::Corrupt { path: named, offset: at, .. }) => {
                assert_eq!((named, at), (path, offset as u64))
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_log_that_rests_is_sealed_once_and_damage_to_its_last_group_is_found_from_then_on() {
        let fs = CrashFs::new();
        let faults = FaultFs::new(Arc::new(fs.clone()));
        let open = engine(&faults);
        let shared = Arc::clone(&open.inner.shared);
        let syncs = || shared.counters.read().wal_syncs;
        // The next segment is made meanwhile.
        let calls = || faults.called().iter().filter(|(site, _)| site.name == "#-#.wal").map(|(_, n)| n).sum::<u64>();
        for n in 1..3 {
            write(&open, &format!("m v=1 {n}")).unwrap();
            // One for each write, and one for each seal.
            wait_until(|| syncs() == 2 * n);
            let before = calls();
            check_sealed(&fs.current());
            // Nobody looks again before something is written.
            assert!(shared.flush_signal.state.lock().look.is_none());
            assert_eq!(calls(), before);
        }
        // An engine that is dropped leaves its log sealed, too.
        write(&open, "m v=1 3").unwrap();
        drop(open);
        check_sealed(&fs.current());
    }

    #[test]
    fn a_log_that_is_gone_is_missed() {
        let fs = CrashFs::new();
        let open = engine(&FaultFs::new(Arc::new(fs.clone())));
        let marker =
            |fs: &CrashFs| String::from_utf8(fs.current().get("/store/ARC".as_ref()).unwrap().to_vec()).unwrap();
        assert_eq!(marker(&fs), "{\"arc_format\":1}\n");
        write(&open, "m v=1 1").unwrap();
        assert_eq!(marker(&fs), "{\"arc_format\":1,\"log\":true}\n");
        // Flushed or not: the last segment stays.
        for flushes in [false, true] {
            if flushes {
                open.flush().unwrap();
            }
            let mut image = fs.current();
            let is_segment = |path: &&std::path::Path| path.extension().is_some_and(|end| end == "wal");
            let segments: Vec<_> = image.files().filter(is_segment).map(std::path::Path::to_owned).collect();
            assert_eq!(segments.len(), 1);
            image.remove(&segments[0]);
            let fs = CrashFs::from_image(&image);
            let error = Engine::builder("/store").vfs(Arc::new(fs.clone())).open().unwrap_err().to_string();
            assert!(error.contains("/store/wal") && error.contains("no segment of the log"), "{error}");
            assert_eq!(fs.current(), image, "a refusal changes nothing");
        }
        drop(open);
        // One of an earlier build is marked when it is opened.
        let mut image = fs.current();
        image.set("/store/ARC".as_ref(), b"{\"arc_format\":1}\n".to_vec());
        let old = CrashFs::from_image(&image);
        drop(engine(&FaultFs::new(Arc::new(old.clone()))));
        assert_eq!(marker(&old), "{\"arc_format\":1,\"log\":true}\n");
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
