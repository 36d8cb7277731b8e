//! Versions of manifest and log that stay while a thread reads them: what verification and backups
//! of an open directory are of.

use std::{path::Path, sync::Arc};

use super::{Engine, log::PinnedLog, retired::Hold, shared::Shared};
use crate::{Result, catalog::ManifestState, vfs::Vfs};

/// One version of the manifest. Its data files stay as long as this is held.
#[derive(Debug)]
pub(crate) struct Pinned {
    pub(crate) state: ManifestState,
    _files: Hold,
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

    /// Hands over the number of the newest commit and the state after it, which nothing changes meanwhile.
    ///
    /// # Errors
    ///
    /// [`Closed`](crate::ErrorKind::Closed) once closed, and those of `look`.
    pub(crate) fn with_manifest<T>(&self, look: impl FnOnce(u64, &ManifestState) -> Result<T>) -> Result<T> {
        self.check_open()?;
        let manifest = self.writer()?.manifest.lock_patiently()?;
        look(manifest.number(), manifest.state())
    }

    /// Pins the manifest and the log after it, whatever is in memory only.
    ///
    /// # Errors
    ///
    /// [`Closed`](crate::ErrorKind::Closed) once closed.
    pub(crate) fn pin_as_it_is(&self) -> Result<(Pinned, PinnedLog<'_>)> {
        self.check_open()?;
        self.writer()?.pin()
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
        shared.pin()
    }
}

impl Shared {
    pub(super) fn pin(&self) -> Result<(Pinned, PinnedLog<'_>)> {
        let manifest = self.manifest.lock_patiently()?;
        let state = manifest.state().clone();
        let log = self.log.pin(state.flushed);
        Ok((Pinned { state, _files: self.retired.hold(manifest.number()) }, log))
    }
}
