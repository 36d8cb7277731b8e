//! States that are kept under a name, until that is dropped.

use super::{Engine, EngineRole, shared::Shared};
use crate::{
    Error, Result,
    catalog::ManifestEdit,
    crash::crash_point,
    model::SnapshotInfo,
    registry::{check_name, invalid_name},
};

impl Engine {
    /// Keeps the state of all databases as it is now under a name, until
    /// [`drop_snapshot`](Self::drop_snapshot). `SELECT … FROM t AT (SNAPSHOT => 'name')` reads it.
    ///
    /// Flushes. Has every point that was acknowledged before the call. Copies nothing: the data
    /// files that it has stay on disk when they are merged, dropped or past their retention.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// engine.create_snapshot("before")?;
    /// engine.drop_table("plant", "pump")?;
    /// assert_eq!(engine.snapshots()[0].name, "before");
    /// engine.drop_snapshot("before")?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) for a bad name or one that is
    /// taken; [`Io`](crate::ErrorKind::Io); [`Closed`](crate::ErrorKind::Closed).
    pub fn create_snapshot(&self, name: &str) -> Result<()> {
        self.check_open()?;
        check_name(name).map_err(|reason| invalid_name("snapshot", name, reason))?;
        self.writer()?.create_snapshot(name)
    }

    /// Forgets a snapshot. What only it has leaves the disk some time later, as data files do that
    /// compaction has replaced.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound); [`Io`](crate::ErrorKind::Io);
    /// [`Closed`](crate::ErrorKind::Closed).
    pub fn drop_snapshot(&self, name: &str) -> Result<()> {
        self.check_open()?;
        self.writer()?.drop_snapshot(name)
    }

    /// Returns all snapshots, by name; those of the last look for a reader that cannot look now.
    #[must_use]
    pub fn snapshots(&self) -> Vec<SnapshotInfo> {
        match &self.inner.role {
            EngineRole::Writer(shared) => shared.snapshots(),
            EngineRole::Reader(reader) => {
                // What it says then is what it has seen before.
                let _ = reader.seen_now();
                reader.snapshots()
            }
        }
    }
}

impl Shared {
    fn create_snapshot(&self, name: &str) -> Result<()> {
        let mut manifest = self.manifest.lock_patiently()?;
        if manifest.state().snapshots.contains_key(name) {
            return Err(Error::SnapshotExists { snapshot: name.to_owned() });
        }
        self.flush_all(&mut manifest)?;
        crash_point("snapshot::flushed");
        let snapshot = manifest.name_snapshot(name)?;
        // Has the same files as the state that it names.
        self.past.add_snapshot(name, snapshot, &manifest);
        drop(manifest);
        self.queue.budget_changed();
        self.compactor.wake();
        Ok(())
    }

    fn drop_snapshot(&self, name: &str) -> Result<()> {
        let mut manifest = self.manifest.lock_patiently()?;
        if !manifest.state().snapshots.contains_key(name) {
            return Err(Error::SnapshotNotFound { snapshot: name.to_owned() });
        }
        let snapshots_dropped = vec![name.to_owned()];
        manifest.commit(ManifestEdit { snapshots_dropped, ..ManifestEdit::default() })?;
        self.past.remove_snapshot(name);
        manifest.forget_history();
        drop(manifest);
        self.compactor.wake();
        Ok(())
    }

    pub(super) fn snapshots(&self) -> Vec<SnapshotInfo> {
        let gone = self.retired.paths();
        self.past.snapshots(|path| gone.contains(path))
    }
}
