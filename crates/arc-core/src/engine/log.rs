//! The log of an open engine: the one place that locks it.
//!
//! Owns the segments, what other processes are told of them, and the marker that says there are
//! any. Never decides what is logged, nor when: `commit` does, and `flush` which frames are needed
//! no longer.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use super::{context::EngineContext, stats::Counters};
use crate::{
    Error, Result, SequenceNumber,
    catalog::mark_log,
    crash::crash_point,
    model::WAL_DIR,
    sync::Mutex,
    wal::{Acknowledged, Frame, KeptLog, LogIdentity, LogPart, PendingSync, SpareMaker, Wal},
};

/// See the module.
#[derive(Debug)]
pub(super) struct EngineLog {
    context: Arc<EngineContext>,
    /// Locked for each group by the committer, and for the release of segments by flush.
    wal: Mutex<Wal>,
    /// Tells other processes how far the log is acknowledged.
    acknowledged: Acknowledged,
    /// Whether the directory's marker says that there is a log.
    is_marked: AtomicBool,
    /// Bytes of segments that are released and stay for older states.
    released_bytes: AtomicU64,
}

/// Why frames were not appended, or may not have been.
pub(super) struct FailedAppend {
    pub(super) error: Error,
    /// Whether the log takes nothing more.
    pub(super) has_log_failed: bool,
}

/// The log after a version of the manifest. Its segments stay as long as this is held.
#[derive(Debug)]
pub(crate) struct PinnedLog<'a> {
    log: &'a EngineLog,
    pub(crate) parts: Vec<LogPart>,
    pub(crate) last_seq: SequenceNumber,
    /// The first frame that can be read back.
    pub(crate) first_seq: SequenceNumber,
}

impl EngineLog {
    /// Takes a log that was opened, and whether the directory's marker knows of it.
    pub(super) fn new(context: Arc<EngineContext>, wal: Wal, is_marked: bool, identity: LogIdentity) -> Self {
        let acknowledged = Acknowledged::open(&context.vfs, &context.root.join(WAL_DIR), wal.last_seq());
        let acknowledged = acknowledged.of(identity);
        let (has_segments, released_bytes) = (wal.has_segments(), wal.released_bytes().into());
        let log = Self { context, wal: Mutex::new(wal), acknowledged, is_marked: is_marked.into(), released_bytes };
        log.note_live_bytes(&log.wal.lock());
        if has_segments {
            log.mark();
        }
        log
    }

    /// Appends frames, to be synced soon if `needs_sync`. Returns whether the log's next segment is
    /// to be made.
    ///
    /// # Errors
    ///
    /// Those of [`Wal::append`].
    pub(super) fn append(&self, frames: &[Frame<'_>], needs_sync: bool) -> Result<bool, FailedAppend> {
        let mut wal = self.wal.lock();
        let appended = wal.append(frames);
        appended.map_err(|error| FailedAppend { error, has_log_failed: wal.is_failed() })?;
        crash_point("commit::appended");
        self.mark();
        if needs_sync {
            wal.want_sync();
        }
        self.note_live_bytes(&wal);
        Ok(wal.spare_needed())
    }

    /// Returns the sync that a thread waits for, unless another thread is at it.
    pub(super) fn begin_sync(&self) -> Option<PendingSync> {
        self.wal.lock().begin_sync()
    }

    /// Proves in the log that what was synced is, where nothing there says so yet; once for each
    /// time that the log comes to rest. A log of which all is flushed is left without such a proof.
    pub(super) fn seal(&self) -> Result<()> {
        let sync = self.wal.lock().begin_seal()?;
        if let Some(sync) = sync {
            sync.run()?;
            Counters::add(&self.context.counters.wal_syncs, 1);
        }
        Ok(())
    }

    /// Tells other processes that all frames up to `seq` are acknowledged, or are about to be.
    pub(super) fn acknowledge(&self, seq: SequenceNumber) {
        self.acknowledged.note(seq);
    }

    /// Returns the last frame that is acknowledged, or about to be.
    pub(super) fn last_acknowledged(&self) -> SequenceNumber {
        self.acknowledged.last()
    }

    /// Returns whose log it is, and since which opening.
    #[cfg(feature = "object-store")]
    pub(super) fn identity(&self) -> &LogIdentity {
        self.acknowledged.identity()
    }

    /// Lets go of the frames up to `seq`, whose points are in files.
    pub(super) fn release(&self, seq: SequenceNumber) {
        let mut wal = self.wal.lock();
        if let Err(error) = wal.release(seq) {
            // The points are in their files; what the log still holds is passed over by replay and
            // released next time.
            tracing::warn!(%error, "cannot release log segments");
        }
        self.note_live_bytes(&wal);
        self.released_bytes.store(wal.released_bytes(), Ordering::Relaxed);
    }

    /// Keeps what older states need of the frames up to `flushed`, which are released, and lets go
    /// of the rest.
    pub(super) fn keep(&self, kept: KeptLog, flushed: SequenceNumber) {
        let mut wal = self.wal.lock();
        wal.keep(kept);
        if wal.released_bytes() > 0
            && let Err(error) = wal.release(flushed)
        {
            tracing::debug!(%error, "cannot release log segments");
        }
        self.released_bytes.store(wal.released_bytes(), Ordering::Relaxed);
    }

    /// Keeps what is in the log now after `flushed`. The caller keeps the manifest from changing
    /// meanwhile, or looks whether it is all there.
    pub(super) fn pin(&self, flushed: SequenceNumber) -> PinnedLog<'_> {
        let mut wal = self.wal.lock();
        PinnedLog { log: self, parts: wal.hold(flushed), last_seq: wal.last_seq(), first_seq: wal.first_seq() }
    }

    /// Returns the number of the last frame.
    pub(super) fn last_seq(&self) -> SequenceNumber {
        self.wal.lock().last_seq()
    }

    /// Returns the number of the first frame that can be read back.
    pub(super) fn first_seq(&self) -> SequenceNumber {
        self.wal.lock().first_seq()
    }

    /// Returns the bytes of the log that hold no unflushed writes and stay for older states.
    pub(super) fn released_bytes(&self) -> u64 {
        self.released_bytes.load(Ordering::Relaxed)
    }

    /// Returns what makes the next segment while this one fills.
    pub(super) fn spare_maker(&self) -> SpareMaker {
        self.wal.lock().spare_maker()
    }

    fn note_live_bytes(&self, wal: &Wal) {
        self.context.counters.wal_bytes.store(wal.live_bytes(), Ordering::Relaxed);
    }

    /// Has the directory's marker say that there is a log, now that it has a segment: a log that
    /// goes missing is told from one that never was. Nothing depends on it as long as none does.
    fn mark(&self) {
        if self.is_marked.load(Ordering::Relaxed) {
            return;
        }
        match mark_log(self.context.vfs.as_ref(), &self.context.root) {
            Ok(()) => self.is_marked.store(true, Ordering::Relaxed),
            Err(error) => tracing::warn!(%error, "cannot note that there is a log; the next group tries again"),
        }
    }
}

impl Drop for PinnedLog<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.log.wal.lock().let_go() {
            // The next flush tries again.
            tracing::debug!(%error, "cannot release log segments after a backup");
        }
    }
}
