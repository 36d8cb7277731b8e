//! The sync under way, at most one: it covers all that was appended before it began, while more is
//! appended.
//!
//! Never two at a time. Linux tells an open file once that pages could not be written, so of two
//! syncs only one would hear of it and the other would answer for bytes that are lost; and the
//! disks that were measured put flushes one after the other anyway (decision 022).

use std::{error::Error as _, path::PathBuf, sync::Arc};

use crate::{Error, Result, SequenceNumber, sync::Mutex, vfs::VfsFile};

/// How far the log is durable, and whether that is about to change.
#[derive(Debug)]
pub(super) struct SyncState(Mutex<SyncProgress>);

#[derive(Debug)]
struct SyncProgress {
    durable_seq: SequenceNumber,
    is_under_way: bool,
    /// Why the log takes nothing more.
    failed: Option<String>,
}

impl SyncState {
    pub(super) fn new(durable_seq: SequenceNumber) -> Arc<Self> {
        Arc::new(Self(Mutex::new(SyncProgress { durable_seq, is_under_way: false, failed: None })))
    }

    pub(super) fn durable_seq(&self) -> SequenceNumber {
        self.0.lock().durable_seq
    }

    pub(super) fn is_under_way(&self) -> bool {
        self.0.lock().is_under_way
    }

    pub(super) fn is_failed(&self) -> bool {
        self.0.lock().failed.is_some()
    }

    pub(super) fn check_usable(&self) -> Result<()> {
        let state = self.0.lock();
        state.failed.as_ref().map_or(Ok(()), |reason| Err(Error::Closed { reason: reason.clone() }))
    }

    /// Notes that the log has failed; the first reason stays.
    pub(super) fn fail(&self, error: Error) -> Error {
        let source = error.source().map(|source| format!(": {source}")).unwrap_or_default();
        self.0.lock().failed.get_or_insert_with(|| format!("the write-ahead log failed: {error}{source}"));
        error
    }

    /// Begins a sync of `files` that makes the frames through `through` durable. The caller has
    /// made sure that there is none.
    pub(super) fn begin(self: &Arc<Self>, through: SequenceNumber, files: Vec<SyncFile>) -> PendingSync {
        self.0.lock().is_under_way = true;
        PendingSync { state: Arc::clone(self), through, files, is_done: false }
    }
}

/// A sync that has begun; another one can begin once it has run. Dropping it without
/// [`run`](Self::run) fails the log, for nothing would sync those frames.
#[derive(Debug)]
#[must_use = "nothing is durable before it has run"]
pub(crate) struct PendingSync {
    state: Arc<SyncState>,
    through: SequenceNumber,
    files: Vec<SyncFile>,
    is_done: bool,
}

/// One segment of a sync.
#[derive(Debug)]
pub(super) struct SyncFile {
    pub(super) file: Arc<dyn VfsFile>,
    pub(super) path: PathBuf,
}

impl PendingSync {
    /// Waits for the disk; returns the number up to which everything is durable now.
    ///
    /// # Errors
    ///
    /// After an error the log is failed, as after [`Wal::append`](super::Wal::append); also if an
    /// append has failed meanwhile. The same file is never synced again: what the system does with
    /// pages that it failed to write is not to be relied on.
    pub(crate) fn run(mut self) -> Result<SequenceNumber> {
        self.state.check_usable()?;
        for SyncFile { file, path } in &self.files {
            file.sync_data().map_err(|e| self.state.fail(Error::io("sync", path, e)))?;
        }
        self.state.check_usable()?;
        let mut state = self.state.0.lock();
        (state.durable_seq, state.is_under_way) = (self.through, false);
        drop(state);
        self.is_done = true;
        Ok(self.through)
    }
}

impl Drop for PendingSync {
    fn drop(&mut self) {
        if !self.is_done && !self.state.is_failed() {
            self.state.fail(Error::internal("a sync of the log was given up"));
        }
    }
}
