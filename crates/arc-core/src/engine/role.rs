//! What an engine does with its directory: it has it for itself and writes, or reads what another process writes.
//!
//! Owns which of the two an engine is; what only one of them can do asks here first.

use std::{path::Path, sync::Arc};

use super::{Engine, reader::Reader, shared::Shared};
use crate::{Error, Options, Result, registry::Registry};

/// What an engine does with its directory.
#[derive(Debug)]
pub(super) enum EngineRole {
    Writer(Arc<Shared>),
    /// Another process may write there.
    Reader(Arc<Reader>),
}

impl Engine {
    /// Opens the data directory at `path` to read it, with the default settings, while another
    /// process may write there; see [`EngineBuilder::open_reader`](crate::EngineBuilder::open_reader).
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("data");
    /// use arc_core::Engine;
    ///
    /// let writer = Engine::open(&path)?; // as in another process
    /// let reader = Engine::open_reader(&path)?;
    /// let _ = writer.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// assert_eq!(reader.tables("plant")?[0].buffered_rows, 1);
    /// assert!(reader.write_lp("plant", b"pump,id=7 rpm=1451i").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// See [`EngineBuilder::open_reader`](crate::EngineBuilder::open_reader).
    pub fn open_reader(path: impl AsRef<Path>) -> Result<Self> {
        Self::builder(path).open_reader()
    }

    /// Returns whether this engine only reads: another process may write to the directory.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("data");
    /// use arc_core::Engine;
    ///
    /// assert!(!Engine::open(&path)?.is_reader());
    /// assert!(Engine::open_reader(&path)?.is_reader());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn is_reader(&self) -> bool {
        matches!(self.inner.role, EngineRole::Reader(_))
    }

    /// Looks now at what there is, if this engine only reads: until the next look its lists are of
    /// this moment.
    ///
    /// # Errors
    ///
    /// [`Error::OwnerUnreachable`] and [`Error::Io`]: what it knows then may be of any earlier time.
    pub fn refresh(&self) -> Result<()> {
        self.registry().map(drop)
    }

    /// Returns the number of the newest commit that this engine knows, and the last frame of the log
    /// that it has seen or written.
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        match &self.inner.role {
            EngineRole::Writer(shared) => (shared.retired.committed(), shared.log.last_acknowledged().0),
            EngineRole::Reader(reader) => reader.progress(),
        }
    }

    /// Returns what writes.
    pub(super) fn writer(&self) -> Result<&Arc<Shared>> {
        match &self.inner.role {
            EngineRole::Writer(shared) => Ok(shared),
            EngineRole::Reader(_) => Err(Error::ReadOnly),
        }
    }

    pub(crate) fn options(&self) -> &Options {
        match &self.inner.role {
            EngineRole::Writer(shared) => &shared.options,
            EngineRole::Reader(reader) => &reader.options,
        }
    }

    /// Returns the tables as they are now.
    pub(super) fn registry(&self) -> Result<Arc<Registry>> {
        match &self.inner.role {
            EngineRole::Writer(shared) => Ok(Arc::clone(shared.schema.registry())),
            EngineRole::Reader(reader) => Ok(Arc::clone(reader.pin()?.registry())),
        }
    }

    /// Returns the tables as they are now, or, of a reader, as they were when they were asked for last.
    pub(super) fn registry_last_seen(&self) -> Arc<Registry> {
        match &self.inner.role {
            EngineRole::Writer(shared) => Arc::clone(shared.schema.registry()),
            EngineRole::Reader(reader) => reader.seen(),
        }
    }

    /// Returns the tables as they are now, or, of a reader that cannot look, as they were.
    pub(super) fn registry_now(&self) -> Arc<Registry> {
        match &self.inner.role {
            EngineRole::Writer(shared) => Arc::clone(shared.schema.registry()),
            EngineRole::Reader(reader) => reader.seen_now(),
        }
    }
}
