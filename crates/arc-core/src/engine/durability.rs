//! The durability of a database: what its writes promise where they do not say it themselves.
//!
//! Stored by a commit of the manifest of its own. It decides how long writes wait from then on;
//! what is in the log is not changed by it.

use super::Engine;
use crate::{
    Durability, Result,
    catalog::{DurabilityEdit, ManifestEdit},
};

impl Engine {
    /// Sets what acknowledged points of a database survive, unless their write says otherwise.
    ///
    /// `None` takes the setting away: the database then goes by
    /// [`Options::durability`](crate::Options::durability). Durable once this returns, and for all
    /// writes that begin later. Flushes, if the database is not in the manifest yet.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// use arc_core::Durability;
    ///
    /// engine.set_database_durability("plant", Some(Durability::Memory))?;
    /// let written = engine.write_lp("plant", b"pump,id=7 rpm=1451i")?;
    /// assert_eq!(written.durability, Durability::Memory);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) for an unknown database;
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for [`Durability::Remote`] without an object store;
    /// [`Busy`](crate::ErrorKind::Busy) if something is being dropped meanwhile;
    /// [`Io`](crate::ErrorKind::Io) if the setting cannot be stored;
    /// [`Closed`](crate::ErrorKind::Closed) once closed.
    pub fn set_database_durability(&self, database: &str, durability: Option<Durability>) -> Result<()> {
        let shared = self.writer()?;
        let found = self.database(database)?;
        shared.check_durability(durability.unwrap_or_default())?;
        let mut manifest = shared.manifest_with(&found, None)?;
        let edit = DurabilityEdit { database: database.to_owned(), durability };
        manifest.commit(ManifestEdit { durabilities: vec![edit], ..ManifestEdit::default() })?;
        *found.durability.write() = durability;
        Ok(())
    }
}
