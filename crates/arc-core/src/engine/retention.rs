//! Retention as the engine does it: the settings, and the rounds that drop what is past them.
//!
//! Data files go as a whole, by one commit for all tables, once every row in them is older than
//! their table keeps rows. A file that has younger rows, too, stays until they have aged as well;
//! where a merge rewrites it before that, it leaves the old ones out. Unflushed rows are never
//! dropped: points that are older than their table keeps rows when they arrive are stored like any
//! other, and go with the next round after their flush.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use super::{Engine, compaction::Round, manifest::LockedManifest, shared::Shared, stats::Counters};
use crate::{
    Error, Result,
    catalog::{Manifest, ManifestEdit, RetentionEdit, TableEdit},
    compaction::expired,
    crash::crash_point,
    model::DataFile,
    registry::{Database, Table},
};

impl Engine {
    /// Sets how long the rows of a table are kept, or of all tables of a database that have no
    /// setting of their own.
    ///
    /// `None` takes the setting away: a table then goes by its database's, a database keeps rows
    /// for ever. A table in a database with a setting keeps rows for ever with [`Duration::MAX`].
    /// Durable once this returns; the next round of compaction applies it. Rows go with the whole
    /// data file that they are in, so they may be seen for up to a day longer. Flushes, if the
    /// database or table is not in the manifest yet.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// use std::time::Duration;
    ///
    /// engine.set_retention("plant", None, Some(Duration::from_secs(30 * 24 * 3600)))?;
    /// // But these rows for an hour.
    /// engine.set_retention("plant", Some("pump"), Some(Duration::from_secs(3600)))?;
    /// assert_eq!(engine.tables("plant")?[0].retention, Some(Duration::from_secs(3600)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) for an unknown database or table;
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for a retention of no time at all;
    /// [`Busy`](crate::ErrorKind::Busy) if something is being dropped meanwhile;
    /// [`Io`](crate::ErrorKind::Io) if the setting cannot be stored.
    pub fn set_retention(&self, database: &str, table: Option<&str>, retention: Option<Duration>) -> Result<()> {
        let shared = self.writer()?;
        if retention == Some(Duration::ZERO) {
            let reason = "0 is too short; expected at least 1 ns, or none to keep rows for ever".into();
            return Err(Error::InvalidOption { option: "retention", reason });
        }
        let retention_ns = retention.map(|retention| u64::try_from(retention.as_nanos()).unwrap_or(u64::MAX));
        let found = self.database(database)?;
        let found_table = table.map(|table| self.table(database, table)).transpose()?;
        let mut manifest = shared.manifest_with(&found, found_table.as_ref())?;
        let edit = RetentionEdit { database: database.into(), table: table.map(Into::into), retention_ns };
        manifest.commit(ManifestEdit { retentions: vec![edit], ..ManifestEdit::default() })?;
        found_table.as_ref().map_or(&found.retention, |table| &table.retention).set_ns(retention_ns);
        drop(manifest);
        shared.compactor.wake();
        Ok(())
    }

    /// Returns how long the rows of a table are kept by its own setting, or those of a database's
    /// tables that have none; `None` if nothing is set.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// use std::time::Duration;
    ///
    /// let month = Duration::from_secs(30 * 24 * 3600);
    /// engine.set_retention("plant", None, Some(month))?;
    /// assert_eq!(engine.retention("plant", None)?, Some(month));
    /// // The table goes by its database.
    /// assert_eq!(engine.retention("plant", Some("pump"))?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) for an unknown database or table.
    pub fn retention(&self, database: &str, table: Option<&str>) -> Result<Option<Duration>> {
        match table {
            None => Ok(self.database(database)?.retention.duration()),
            Some(table) => Ok(self.table(database, table)?.retention.duration()),
        }
    }
}

impl Shared {
    /// Locks the manifest, which has this database and table, for a setting of them. Flushes if it
    /// has them not.
    pub(super) fn manifest_with(&self, database: &Database, table: Option<&Arc<Table>>) -> Result<LockedManifest<'_>> {
        let layout = table.map(|table| table.layout());
        let name = layout.as_ref().map(|layout| &*layout.schema.table);
        let is_ready = |manifest: &Manifest| {
            let state = manifest.state();
            // What the manifest knows by these names may be something dropped that it was not told
            // of yet.
            !self.schema.registry().has_pending_drops()
                && name.map_or(state.databases.contains_key(&*database.name), |table| {
                    state.table(&database.name, table).is_some()
                })
        };
        let mut manifest = self.manifest.lock_patiently()?;
        if !is_ready(&manifest) {
            drop(manifest);
            self.flush()?;
            manifest = self.manifest.lock_patiently()?;
        }
        self.compactor.check_running()?;
        if database.dropped.load(Ordering::Acquire) {
            return Err(Error::DatabaseNotFound { database: database.name.to_string() });
        }
        if let (Some(name), true) = (name, table.is_some_and(|table| table.is_dropped())) {
            return Err(Error::TableNotFound { database: database.name.to_string(), table: name.to_owned() });
        }
        if !is_ready(&manifest) {
            let reason = "something else is being dropped meanwhile";
            return Err(Error::Busy { reason, retry_after: Duration::from_secs(1) });
        }
        Ok(manifest)
    }
}

/// Files of one table that are past its retention.
struct Expired {
    table: Arc<Table>,
    files: Vec<Arc<DataFile>>,
}

impl Shared {
    /// Returns whether retention may drop a file: where it waits for pushes, once its rows were
    /// handed over.
    fn may_expire(&self, file: &DataFile) -> bool {
        !self.options.retention_waits_for_push || self.cuts.is_handed_over(file)
    }

    /// Drops the data files that are past their table's retention. Called with the compactor's lock
    /// held, so that none of them is an input of a merge.
    pub(super) fn drop_expired(&self, round: &mut Round) -> Result<()> {
        let now_ns = self.clock.now_ns();
        let mut all = Vec::new();
        for database in self.schema.registry().databases() {
            for table in database.tables() {
                let retention = table.retention.or(&database.retention);
                let Some(from_ns) = retention.oldest_ns(now_ns) else { continue };
                let live = table.stored().files.clone();
                let files = expired(&live, |file| file.max_time < from_ns && self.may_expire(file));
                let next = live.iter().map(|file| file.max_time).filter(|time| *time >= from_ns).min();
                // A file goes once its newest time is after `from_ns`.
                let due = next.and_then(|time| time.checked_add_unsigned(retention.ns()?)?.checked_add(1));
                round.note_due(due);
                if !files.is_empty() {
                    all.push(Expired { table, files });
                }
            }
        }
        if all.is_empty() {
            return Ok(());
        }
        let mut manifest = self.manifest.lock();
        all.retain(|expired| !expired.table.is_dropped());
        manifest.commit(edit(&all))?;
        crash_point("retention::committed");
        for Expired { table, files } in &all {
            table.replace_files(files, &[]);
        }
        let files: Vec<Arc<DataFile>> = all.into_iter().flat_map(|expired| expired.files).collect();
        let count = files.len();
        self.retired.add(files, now_ns);
        drop(manifest);
        self.retired.move_out();
        crash_point("retention::swapped");
        tracing::debug!(files = count, "dropped data files past their retention");
        Counters::add(&self.counters.expired_files, count as u64);
        round.report.expired_files += count as u64;
        Ok(())
    }
}

fn edit(all: &[Expired]) -> ManifestEdit {
    let table = |Expired { table, files }: &Expired| {
        let schema = table.schema();
        TableEdit {
            database: schema.database.to_string(),
            table: schema.table.to_string(),
            files_removed: files.iter().map(|file| file.path.clone()).collect(),
            ..TableEdit::default()
        }
    };
    ManifestEdit { tables: all.iter().map(table).collect(), ..ManifestEdit::default() }
}
