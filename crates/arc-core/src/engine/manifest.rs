//! The manifest of an open engine: the one place that locks it, and the one way to commit to it.
//!
//! Owns the order of commits, their times, and what is frozen for the next one. A commit that closes
//! the manifest closes the engine to writes in the same moment. Never writes a data file.

use std::{ops::Deref, sync::Arc};

use super::{context::EngineContext, queue::Queue, retired::Retired};
use crate::{
    Result, SequenceNumber,
    catalog::{Manifest, ManifestEdit, NamedSnapshot},
    sync::{Mutex, MutexGuard},
};

/// See the module.
#[derive(Debug)]
pub(super) struct EngineManifest {
    context: Arc<EngineContext>,
    queue: Arc<Queue>,
    retired: Arc<Retired>,
    /// Locked for the whole of a flush, so that there is one at a time. Compaction takes it to
    /// commit, not to work.
    current: Mutex<CurrentManifest>,
}

#[derive(Debug)]
struct CurrentManifest {
    manifest: Manifest,
    /// Last sequence number of what is frozen and in no data file yet.
    frozen: Option<SequenceNumber>,
}

/// The manifest, which nothing else changes meanwhile. Anything may be read of it.
#[derive(Debug)]
pub(super) struct LockedManifest<'a> {
    owner: &'a EngineManifest,
    current: MutexGuard<'a, CurrentManifest>,
}

impl EngineManifest {
    pub(super) fn new(
        context: Arc<EngineContext>,
        queue: Arc<Queue>,
        retired: Arc<Retired>,
        manifest: Manifest,
    ) -> Self {
        Self { context, queue, retired, current: Mutex::new(CurrentManifest { manifest, frozen: None }) }
    }

    /// Locks the manifest, however long that takes.
    pub(super) fn lock(&self) -> LockedManifest<'_> {
        LockedManifest { owner: self, current: self.current.lock() }
    }

    /// Locks the manifest for a thread that can come back later. An object store that does not
    /// answer holds it for as long as it takes; a folder does not.
    pub(super) fn lock_patiently(&self) -> Result<LockedManifest<'_>> {
        #[cfg(feature = "object-store")]
        if let Some(storage) = &self.context.storage {
            let current = self.current.try_lock_for(storage.patience()).ok_or(crate::Error::Busy {
                reason: "the manifest is being written, and the object store takes its time",
                retry_after: std::time::Duration::from_secs(5),
            })?;
            return Ok(LockedManifest { owner: self, current });
        }
        Ok(self.lock())
    }
}

impl Deref for LockedManifest<'_> {
    type Target = Manifest;

    fn deref(&self) -> &Manifest {
        &self.current.manifest
    }
}

impl LockedManifest<'_> {
    /// Commits to the manifest. Where that closes it, as a sync that fails does, nothing can be
    /// flushed until the directory is opened again, and no more points are taken from this moment
    /// on.
    pub(super) fn commit(&mut self, edit: ManifestEdit) -> Result<()> {
        let time_ns = Some(self.owner.context.clock.now_ns());
        let committed = self.current.manifest.commit(ManifestEdit { time_ns, ..edit });
        self.note_commit(committed)
    }

    /// Commits a name for the state that the manifest has.
    pub(super) fn name_snapshot(&mut self, name: &str) -> Result<NamedSnapshot> {
        let time_ns = self.owner.context.clock.now_ns();
        let number = self.number();
        let named = self.current.manifest.name_snapshot(name, time_ns);
        self.note_commit(named).map(|()| NamedSnapshot { number, time_ns })
    }

    /// Returns up to where buffers are frozen of which there are no files yet.
    pub(super) fn frozen(&self) -> Option<SequenceNumber> {
        self.current.frozen
    }

    /// Notes up to where buffers are frozen, or that all of them have files.
    pub(super) fn set_frozen(&mut self, frozen: Option<SequenceNumber>) {
        self.current.frozen = frozen;
    }

    /// Has what is retired from now on go after this commit; takes no more points if it has closed
    /// the manifest.
    fn note_commit(&self, committed: Result<()>) -> Result<()> {
        self.owner.retired.note_commit(self.number());
        if let (Err(_), Some(reason)) = (&committed, self.closed())
            && self.owner.queue.close(&format!("the manifest is closed: {reason}"))
        {
            tracing::error!(reason, "the manifest is closed, writes are refused from now on");
        }
        committed
    }
}
