//! Versions of manifest and log that stay while a thread reads them: what verification and backups
//! of an open directory are of.

use std::{path::Path, sync::Arc};

use super::{Engine, log::PinnedLog, retired::Hold, shared::Shared};
use crate::{Result, SequenceNumber, catalog::ManifestState, vfs::Vfs};

/// One version of the manifest. Its data files stay as long as this is held.
#[derive(Debug)]
pub(crate) struct Pinned {
    pub(crate) state: ManifestState,
    _files: Hold,
}

impl Pinned {
    /// Takes the version that `manifest` says now, which the caller keeps from changing meanwhile.
    fn new(shared: &Shared, state: &ManifestState) -> Self {
        Self { state: state.clone(), _files: shared.retired.hold(state) }
    }
}

impl Engine {
    /// Returns where the engine's files are, and how they are reached.
    ///
    /// # Errors
    ///
    /// [`Error::ReadOnly`](crate::Error::ReadOnly) of a reader, which cannot keep them from changing.
    pub(crate) fn files(&self) -> Result<(&Arc<dyn Vfs>, &Path)> {
        let shared = self.writer()?;
        Ok((&shared.vfs, &shared.root))
    }

    /// Pins the manifest as it is now, and has `check` look at it, and at the log up to a number,
    /// before the next flush.
    ///
    /// # Errors
    ///
    /// [`Closed`](crate::ErrorKind::Closed) once closed, and those of `check`.
    pub(crate) fn pin<T>(
        &self,
        check: impl FnOnce(&ManifestState, SequenceNumber) -> Result<T>,
    ) -> Result<(T, Pinned)> {
        self.check_open()?;
        let shared = self.writer()?;
        let manifest = shared.manifest.lock_patiently()?;
        let pinned = Pinned::new(shared, manifest.state());
        let logged = shared.log.last_seq();
        Ok((check(&pinned.state, logged)?, pinned))
    }

    /// Pins the manifest and the log after it, which have all that was acknowledged before the
    /// call.
    ///
    /// # Errors
    ///
    /// [`Closed`](crate::ErrorKind::Closed) once closed, and those of a flush.
    pub(crate) fn pin_with_log(&self) -> Result<(Pinned, PinnedLog<'_>)> {
        self.check_open()?;
        let shared = self.writer()?;
        if shared.unflushed.any_in_memory_only() {
            shared.flush()?;
        }
        let manifest = shared.manifest.lock_patiently()?;
        Ok((Pinned::new(shared, manifest.state()), shared.log.pin(manifest.state().flushed)))
    }
}
