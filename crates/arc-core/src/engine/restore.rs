//! A table becomes what it was.
//!
//! The data files that it had then are live again, and rows that were in memory then get files: one
//! commit takes these in and all others out. So nothing is copied but what had never been in a
//! file, and what the table has now can be asked for as an older state in its turn.

use std::{io::ErrorKind, sync::Arc};

use hashbrown::HashSet;

use super::{Engine, flush::TableRound, manifest::LockedManifest, shared::Shared};
use crate::{
    Error, Result, SequenceNumber, Tombstone,
    catalog::{ManifestEdit, TableEdit},
    crash::crash_point,
    datafile::open_data_file,
    model::{DataFile, PastMoment, TableSchema},
    registry::Table,
};

impl Engine {
    /// Makes a table what it was at some moment, by one commit: undoes a delete, a bad write, or a
    /// drop if the name is free.
    ///
    /// Points that were written since are gone from the table; as an older state they can be asked
    /// for. Those that are written while this runs stay. Columns that came since stay, too, and are
    /// empty. Flushes; waits for a merge that runs already, not for those after it. Durable once this returns.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// use arc_core::{PastMoment, Comparison, Predicate};
    ///
    /// engine.create_snapshot("before")?;
    /// engine.delete("plant", "pump", &Predicate::compare("id", Comparison::Equal, "7"))?;
    /// engine.restore_table("plant", "pump", &PastMoment::Snapshot("before".into()))?;
    /// assert_eq!(engine.data_files("plant", "pump")?[0].rows, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::OutsideHistory`] and [`Error::SnapshotNotFound`] for a state that cannot be asked
    /// for; [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) if the table was not there then;
    /// [`SchemaConflict`](crate::ErrorKind::SchemaConflict) if another table has its name by now,
    /// whose columns differ; [`Io`](crate::ErrorKind::Io) and [`Closed`](crate::ErrorKind::Closed).
    pub fn restore_table(&self, database: &str, table: &str, moment: &PastMoment) -> Result<()> {
        self.check_open()?;
        let shared = self.writer()?;
        let past = shared.past_state(moment)?;
        let missing = || Error::TableNotFound { database: database.to_owned(), table: table.to_owned() };
        let was = past.registry.database(database).and_then(|found| found.table(table)).ok_or_else(missing)?;
        shared.check_files(&was, self.table(database, table).ok().as_deref())?;
        match self.create_database(database) {
            Ok(()) | Err(Error::DatabaseExists { .. }) => {}
            Err(error) => return Err(error),
        }
        match self.create_table(&was.schema()) {
            Ok(()) | Err(Error::TableExists { .. }) => {}
            Err(error) => return Err(error),
        }
        crash_point("restore::created");
        // `past` keeps the files until they are live again.
        let restored = shared.restore(&self.table(database, table)?, &was);
        drop(past);
        restored
    }
}

impl Shared {
    /// Fails if a file of `was` that the table of now has not is not there, or not whole: no commit may
    /// name one.
    fn check_files(&self, was: &Table, now: Option<&Table>) -> Result<()> {
        let live: HashSet<String> =
            now.map(|now| now.stored().files.iter().map(|file| file.path.clone()).collect()).unwrap_or_default();
        for file in was.view()?.files.iter().filter(|file| !live.contains(&file.path)) {
            let path = self.root.join(&file.path);
            match open_data_file(self.vfs.as_ref(), &path).and_then(|found| found.len()) {
                Ok(bytes) if bytes == file.bytes => {}
                Ok(bytes) => {
                    return Err(Error::corrupt(path, 0, format!("it has {bytes} bytes instead of {}", file.bytes)));
                }
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    let reason = format!("the data file {} of that state is not there any more", file.path);
                    return Err(Error::OutsideHistory { reason });
                }
                Err(error) => return Err(Error::io("open", path, error)),
            }
        }
        Ok(())
    }

    /// Makes a table what `was` was, whose files the caller keeps.
    fn restore(&self, table: &Arc<Table>, was: &Arc<Table>) -> Result<()> {
        // No merge takes files of it as its inputs meanwhile.
        let _turn = self.compactor.turn()?;
        check_columns(&table.schema(), &was.schema())?;
        let view = was.view()?;
        let newest = view.files.iter().map(|file| file.max_time).chain(view.buffers.iter().map(|part| part.max_time));
        // Before anything more is written: it may have the primary key of a row that comes back.
        table.rows()?.buffer.note_files(newest.max().unwrap_or(i64::MIN));
        let mut manifest = self.manifest.lock_patiently()?;
        self.flush_all(&mut manifest)?;
        if table.is_dropped() {
            let schema = table.schema();
            return Err(Error::TableNotFound {
                database: schema.database.to_string(),
                table: schema.table.to_string(),
            });
        }
        let mut rounds = vec![self.rows_in_memory(table, was)?];
        let mut copies = Vec::new();
        let written = self.in_order(&manifest, table, view.files, &mut copies);
        let written = written.and_then(|files| self.write_all_files(&mut rounds).map(|()| files));
        let discard = |rounds: &[TableRound], copies: &[Arc<DataFile>]| {
            self.discard(rounds);
            self.leftovers.leave_files(copies.iter().map(Arc::as_ref));
        };
        let files = match written {
            Ok(files) => files,
            Err(error) => {
                self.folders.note_unsynced(&error);
                discard(&rounds, &copies);
                return Err(error);
            }
        };
        crash_point("restore::files_written");
        let made: Vec<Arc<DataFile>> = rounds.iter().flat_map(|round| round.files.iter().cloned()).collect();
        let all = files.into_iter().chain(made).collect();
        if let Err(error) = self.commit_restored(&mut manifest, table, all, &view.tombstones) {
            if !manifest.is_closed() {
                discard(&rounds, &copies);
            }
            return Err(error);
        }
        crash_point("restore::committed");
        drop(manifest);
        self.retired.move_out();
        self.compactor.wake();
        Ok(())
    }

    /// Returns the files of a state in its order, some of them as `copies`. Of late files with one version the last wins, and a
    /// commit puts what comes behind what is there: what is there and wins over what comes has to come, too.
    fn in_order(
        &self,
        manifest: &LockedManifest<'_>,
        table: &Table,
        mut files: Vec<Arc<DataFile>>,
        copies: &mut Vec<Arc<DataFile>>,
    ) -> Result<Vec<Arc<DataFile>>> {
        let schema = table.schema();
        let known = manifest.state().table(&schema.database, &schema.table);
        let there: HashSet<&str> =
            known.map(|known| known.files.iter().map(|file| file.path.as_str()).collect()).unwrap_or_default();
        let mut come = HashSet::new();
        for file in files.iter_mut().filter(|file| file.late) {
            let place = (file.day(), file.version());
            if !there.contains(file.path.as_str()) {
                come.insert(place);
            } else if come.contains(&place) {
                *file = Arc::new(self.copy_out(&schema, file)?);
                copies.push(Arc::clone(file));
            }
        }
        if !copies.is_empty() {
            let folders = self.folders.publish()?;
            folders.sync_table(copies.iter().map(|file| file.path.as_str()))?;
            folders.finish()?;
        }
        Ok(files)
    }

    /// Returns the rows of `was` that are in no file, to be written for `table`.
    fn rows_in_memory(&self, table: &Table, was: &Arc<Table>) -> Result<TableRound> {
        let frozen = {
            let mut rows = was.rows()?;
            rows.buffer.freeze()?;
            rows.buffer.frozen_up_to(SequenceNumber(u64::MAX))
        };
        // No file may have wider columns than the manifest says.
        let (table, schema) = (Arc::clone(was), table.committed.load_full());
        Ok(TableRound { table, schema, schema_changed: false, frozen, tombstones: Vec::new(), files: Vec::new() })
    }

    /// Commits that a table has these files and deletes and no others, and shows it to queries.
    fn commit_restored(
        &self,
        manifest: &mut LockedManifest<'_>,
        table: &Table,
        files: Vec<Arc<DataFile>>,
        tombstones: &[Arc<Tombstone>],
    ) -> Result<()> {
        let schema = table.schema();
        let missing = || Error::internal("a table that was flushed is not in the manifest");
        let known = manifest.state().table(&schema.database, &schema.table).ok_or_else(missing)?;
        let wanted: HashSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
        let gone: Vec<Arc<DataFile>> =
            known.files.iter().filter(|file| !wanted.contains(file.path.as_str())).cloned().collect();
        let edit = {
            let there: HashSet<&str> = known.files.iter().map(|file| file.path.as_str()).collect();
            TableEdit {
                database: schema.database.to_string(),
                table: schema.table.to_string(),
                files_added: files.iter().filter(|file| !there.contains(file.path.as_str())).cloned().collect(),
                files_removed: gone.iter().map(|file| file.path.clone()).collect(),
                tombstones_removed: known.tombstones.iter().map(|tombstone| tombstone.seq).collect(),
                tombstones_added: tombstones.iter().map(|tombstone| Tombstone::clone(tombstone)).collect(),
                ..TableEdit::default()
            }
        };
        self.cuts.check_restored(&edit.files_added)?;
        let flushed = manifest.state().flushed;
        manifest.commit(ManifestEdit { tables: vec![edit], ..ManifestEdit::default() })?;
        self.retired.take_back(&wanted);
        crash_point("restore::moved_back");
        {
            let mut stored = table.stored();
            // What was deleted since the flush is deleted.
            let later: Vec<_> = stored.tombstones.drain(..).filter(|tombstone| tombstone.seq > flushed).collect();
            stored.tombstones = tombstones.iter().cloned().chain(later).collect();
            stored.files = files.clone();
        }
        self.retired.add(gone, self.clock.now_ns());
        Ok(())
    }
}

/// Refuses a table that is another one, with other columns.
fn check_columns(now: &TableSchema, was: &TableSchema) -> Result<()> {
    if now.has_primary_key == was.has_primary_key && now.continues(was) {
        return Ok(());
    }
    let differs = |(at, column): (usize, &crate::model::Column)| {
        let known = now.columns.get(at);
        known
            .is_none_or(|known| known.name != column.name || known.kind != column.kind)
            .then(|| column.name.to_string())
    };
    Err(Error::SchemaConflict {
        table: was.table.to_string(),
        column: was.columns.iter().enumerate().find_map(differs).unwrap_or_default(),
        existing: "of another table, which has the name now".into(),
        got: "that of the table which had the name then; drop the one of now to restore it".into(),
    })
}
