//! Flush: frozen buffers become data files, and one manifest commit for all tables makes them the
//! truth.
//!
//! Each step is durable before the next: freeze at sequence S, write the files, commit the manifest
//! with `flushed = S`, swap the views, release the log up to S. A crash between any two loses and
//! doubles nothing: replay applies only what is newer than `flushed`, and files that no manifest
//! names are removed on open.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use arrow::{array::AsArray, datatypes::TimestampNanosecondType};

use super::{
    dropping, flush_signal::Due, idempotency::ReceiptsRound, manifest::LockedManifest, shared::Shared, stats::Counters,
};
use crate::{
    Error, ErrorKind, FileTimeUnit, Result, SequenceNumber, Tombstone,
    arrays::Columns,
    buffer::{FrozenBuffer, split},
    catalog::{ManifestEdit, TableEdit},
    crash::crash_point,
    datafile::{DataFileSpec, DataFileWriter, FolderSyncs, Owner, PackWriter, ParquetOptions},
    defects::{Defect, is_on},
    model::{DataFile, TableSchema, data_file_path},
    registry::{Database, Flushable, Table},
    sync::{self, Mutex},
};

/// Tables whose files are written at the same time.
const MAX_WORKERS: usize = 4;
/// Memory budget for each of them: encoders are not counted in it.
const WORKER_BYTES: usize = 64 << 20;

/// A memory budget from which on there is room for memory that is about to be used again.
const RECYCLE_FROM_BYTES: usize = 1 << 30;

/// How long the flusher leaves a failed flush alone.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// What one flush did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlushReport {
    /// Rows written to data files.
    pub rows: u64,
    /// Paths of the new data files, below the data directory.
    pub files: Vec<String>,
}

/// One table's share of a round.
pub(super) struct TableRound {
    pub(super) table: Arc<Table>,
    pub(super) schema: Arc<TableSchema>,
    /// Whether the manifest lacks this schema.
    pub(super) schema_changed: bool,
    pub(super) frozen: Vec<Arc<FrozenBuffer>>,
    /// Deletes that the manifest lacks.
    pub(super) tombstones: Vec<Arc<Tombstone>>,
    pub(super) files: Vec<Arc<DataFile>>,
}

impl Shared {
    /// Writes all points that are applied by now to data files.
    pub(super) fn flush(&self) -> Result<FlushReport> {
        self.flush_with(self.manifest.lock_patiently()?)
    }

    /// As [`Self::flush`], with the manifest locked already, however long that took.
    pub(super) fn flush_with(&self, mut manifest: LockedManifest<'_>) -> Result<FlushReport> {
        self.flush_signal.reset();
        let result = self.flush_all(&mut manifest);
        drop(manifest);
        let counters = &self.counters;
        match &result {
            Ok(report) => {
                Counters::add(&counters.flushes, 1);
                Counters::add(&counters.flushed_rows, report.rows);
                if !report.files.is_empty() {
                    self.compactor.wake();
                }
                self.leftovers.remove();
                tracing::debug!(rows = report.rows, files = report.files.len(), "flushed");
            }
            Err(error) => {
                Counters::add(&counters.flush_failures, 1);
                if error.kind() == ErrorKind::StorageFull {
                    self.give_up_history();
                }
                self.unflushed.note_failed(counters.buffered_bytes.load(Ordering::Relaxed));
                // At once where that makes room on a full disk; a store that fails is asked later.
                if !self.is_remote() {
                    self.leftovers.remove();
                }
            }
        }
        self.queue.budget_changed();
        result
    }

    /// Flushes what an earlier flush has frozen and could not write, and then the rest: while
    /// flushes fail, what comes in is not frozen again and again, into buffers that would each
    /// become files of their own.
    pub(super) fn flush_all(&self, manifest: &mut LockedManifest<'_>) -> Result<FlushReport> {
        // With the manifest locked, which the end of the engine waits for: from then on another one
        // may have the directory.
        if !is_on(Defect::FlushAfterClose) {
            self.compactor.check_running()?;
        }
        let mut report = FlushReport::default();
        if let Some(seq) = manifest.frozen() {
            report = self.flush_round(manifest, seq)?;
        }
        let seq = self.freeze(manifest)?;
        let FlushReport { rows, files } = self.flush_round(manifest, seq)?;
        report.rows += rows;
        report.files.extend(files);
        Ok(report)
    }

    /// Freezes all buffers; returns the last sequence number in them.
    fn freeze(&self, manifest: &mut LockedManifest<'_>) -> Result<SequenceNumber> {
        let seq = sync::block_on(self.queue.freeze()?)
            .unwrap_or_else(|_| Err(Error::Closed { reason: "the commit thread has ended".into() }))?;
        manifest.set_frozen(Some(seq));
        crash_point("flush::frozen");
        Ok(seq)
    }

    /// Flushes what is frozen up to `seq`.
    pub(super) fn flush_round(&self, manifest: &mut LockedManifest<'_>, seq: SequenceNumber) -> Result<FlushReport> {
        if let Some(reason) = manifest.closed() {
            return Err(Error::Closed { reason: reason.to_owned() });
        }
        let Flushable { databases, tables, dropped } = self.schema.registry().flushable(seq);
        let mut tables = tables_to_flush(tables, seq);
        if seq == manifest.state().flushed && databases.is_empty() && tables.is_empty() && dropped.is_empty() {
            manifest.set_frozen(None);
            self.unflushed.note_flushed();
            return Ok(FlushReport::default());
        }
        if let Err(error) = self.write_all_files(&mut tables) {
            self.folders.note_unsynced(&error);
            self.discard(&tables);
            return Err(error);
        }
        crash_point("flush::files_written");
        let mut receipts = self.keys.round(self.clock.now_ns());
        // The manifest has no place for those of a database that is no more. What counts is what it
        // will have: one whose drop is not in the log yet, or never will be, has its receipts as it
        // has its points.
        receipts.added.retain(|edit| {
            let has = |database: &Arc<Database>| *database.name == *edit.database;
            databases.iter().any(has) || manifest.state().databases.contains_key(&edit.database)
        });
        let mut edit = edit(seq, &databases, &tables, &receipts);
        edit.dropped = dropping::edits(manifest.state(), &dropped);
        if let Err(error) = manifest.commit(edit) {
            // If the change may be durable, the next open needs the files.
            if !manifest.is_closed() {
                self.discard(&tables);
            }
            return Err(error);
        }
        manifest.set_frozen(None);
        self.unflushed.note_flushed();
        self.keys.committed(&receipts);
        crash_point("flush::committed");
        databases.iter().for_each(|database| database.in_manifest.store(true, Ordering::Release));
        let carries_deletes = tables.iter().any(|round| !round.tombstones.is_empty());
        for round in tables.iter().filter(|round| round.schema_changed) {
            round.table.committed.store(Arc::clone(&round.schema));
        }
        let report = self.swap(seq, tables);
        if !dropped.is_empty() {
            self.finish_drops(&dropped);
        }
        crash_point("flush::swapped");
        if carries_deletes {
            self.compactor.wake();
        }
        self.trim_history(manifest);
        #[cfg(feature = "object-store")]
        self.release_remote(seq);
        self.log.release(seq);
        self.unflushed.note_released();
        crash_point("flush::released");
        Ok(report)
    }

    /// Writes the files of all tables, several at a time: each waits for the disk more than once.
    pub(super) fn write_all_files(&self, tables: &mut [TableRound]) -> Result<()> {
        let folders = self.folders.publish()?;
        let pack = PackWriter::new(self.vfs.as_ref(), &self.root, self.new_id());
        self.write_files_of(tables, &folders, self.has_many_small(tables).then_some(&pack))?;
        let path = pack.path().to_owned();
        if let Some(pack) = pack.finish().inspect_err(|_| self.leftovers.leave(&path))? {
            folders.sync_table([pack.as_str()].into_iter())?;
        }
        folders.finish()
    }

    /// Returns whether there are many tables and days with so few rows that a file of their own
    /// would cost more than they do.
    ///
    /// Of one table there may be any number of days, as where times have a wrong unit: a file for
    /// each would be made and synced while no other flush can begin.
    fn has_many_small(&self, tables: &[TableRound]) -> bool {
        let mut small = 0;
        let mut frozen = tables.iter().flat_map(|round| &round.frozen);
        // Not all are looked at where there are many.
        frozen.any(|frozen| {
            small += frozen.small_days(self.options.pack_bytes);
            small >= self.options.pack_tables
        })
    }

    fn write_files_of(
        &self,
        tables: &mut [TableRound],
        folders: &FolderSyncs<'_>,
        pack: Option<&PackWriter<'_>>,
    ) -> Result<()> {
        let workers = tables.len().min(MAX_WORKERS).min(self.memory.limit() / WORKER_BYTES);
        let work = Mutex::new(tables.iter_mut());
        let write = || {
            let mut writer = DataFileWriter::default();
            loop {
                let next = work.lock().next();
                match next {
                    Some(round) => {
                        self.write_files(round, pack, &mut writer)?;
                        let alone = round.files.iter().filter(|file| file.packed().is_none());
                        folders.sync_table(alone.map(|file| file.path.as_str()))?;
                    }
                    None => return Ok(()),
                }
            }
        };
        if workers <= 1 {
            return write();
        }
        sync::thread::scope(|scope| {
            let workers: Vec<_> = (0..workers).map(|_| scope.spawn(write)).collect();
            let panicked = |_| Err(Error::internal("a thread that writes data files has panicked"));
            // All are joined, also when one has failed.
            let results: Vec<Result<()>> = workers.into_iter().map(|w| w.join().unwrap_or_else(panicked)).collect();
            results.into_iter().collect()
        })
    }

    fn write_files(
        &self,
        round: &mut TableRound,
        pack: Option<&PackWriter<'_>>,
        writer: &mut DataFileWriter,
    ) -> Result<()> {
        // Places of rows and one encoded column are less than this.
        let _copy = self.memory.reserve(round.frozen.iter().map(|frozen| frozen.bytes).sum());
        let wanted = self.time_unit_of(&round.table);
        let tags: Vec<&str> = round.schema.tags().map(|tag| tag.name.as_ref()).collect();
        for frozen in &round.frozen {
            let converted = frozen.converted(&round.schema)?;
            let frozen = converted.as_ref().unwrap_or(frozen);
            for part in split(frozen, &round.schema, &round.table.series)? {
                let pack = pack.filter(|_| frozen.bytes_of(part.versions_count()) <= self.options.pack_bytes);
                let path = || data_file_path(&round.schema, part.day, self.new_id());
                let spec = DataFileSpec {
                    path: pack.map_or_else(path, |pack| pack.path().to_owned()),
                    schema: Arc::clone(&part.schema),
                    time_unit: unit_of(&part, wanted)?,
                    sorted_by: part.sorted_by.clone(),
                    min_seq: frozen.min_seq,
                    max_seq: frozen.max_seq,
                    late: part.late,
                    hourly: false,
                    tags: &tags,
                };
                let options = ParquetOptions::default().within(self.memory.limit(), spec.schema.fields().len());
                let written = match pack {
                    Some(pack) => {
                        let owner =
                            Owner { database: &round.schema.database, table: &round.schema.table, day: part.day };
                        writer.write_to_pack(pack, owner, &spec, &part, &options)
                    }
                    None => writer.write(self.vfs.as_ref(), &self.root, &spec, &part, &options),
                };
                let file = written.inspect_err(|_| self.leftovers.leave(&spec.path))?;
                round.files.push(Arc::new(file));
            }
        }
        Ok(())
    }

    /// Returns the unit in which a table is to have its times in data files.
    pub(super) fn time_unit_of(&self, table: &Table) -> FileTimeUnit {
        let of_database = || {
            let database = self.schema.registry().database(&table.layout().schema.database)?;
            database.column_types.load().time_unit
        };
        let own = table.column_types.load().time_unit;
        own.or_else(of_database).or(self.options.column_types.time_unit).unwrap_or_default()
    }

    /// Takes back a round that did not reach the manifest: its rows stay in memory and in the log.
    pub(super) fn discard(&self, tables: &[TableRound]) {
        for round in tables {
            if round.schema_changed {
                round.table.schema_changed.store(true, Ordering::Release);
            }
            self.leftovers.leave_files(round.files.iter().map(Arc::as_ref));
        }
    }

    /// Lets queries read the files instead of the buffers they came from.
    fn swap(&self, seq: SequenceNumber, tables: Vec<TableRound>) -> FlushReport {
        let mut report = FlushReport::default();
        let recycles = self.memory.limit() >= RECYCLE_FROM_BYTES;
        for round in tables {
            let frozen = round.frozen.len();
            let mut rows = round.table.undrained_rows();
            for file in round.files {
                report.rows += file.rows;
                Counters::add(&self.counters.flushed_bytes, file.bytes);
                report.files.push(file.path.clone());
                rows.stored.files.push(file);
            }
            let bytes = rows.buffer.forget(frozen);
            if recycles {
                let flushed = round.frozen.into_iter().filter_map(Arc::into_inner);
                rows.buffer.recycle(flushed.flat_map(FrozenBuffer::into_chunks).collect());
            }
            rows.stored.tombstones_flushed = seq;
            self.counters.buffered_bytes.fetch_sub(bytes, Ordering::Relaxed);
            self.memory.give(bytes);
        }
        report
    }

    /// Returns how long a flush that has failed is left alone. An object store may be away for
    /// long, and each flush sends all of it anew.
    fn retry_after(&self, failures: u32) -> Duration {
        if self.is_remote() { RETRY_AFTER * 2_u32.pow(failures.min(5)) } else { RETRY_AFTER }
    }
}

/// Returns what each table has to flush. A delete may have frozen rows since the freeze at `seq`:
/// they come after it in the log, and belong to the next round as the delete does.
fn tables_to_flush(tables: Vec<Arc<Table>>, seq: SequenceNumber) -> Vec<TableRound> {
    let round = |table: Arc<Table>| {
        let (frozen, tombstones) = {
            let rows = table.undrained_rows();
            let is_new = |t: &&Arc<Tombstone>| t.seq > rows.stored.tombstones_flushed && t.seq <= seq;
            (rows.buffer.frozen_up_to(seq), rows.stored.tombstones.iter().filter(is_new).cloned().collect::<Vec<_>>())
        };
        // Cleared before the schema is read: a change after it sets the mark again for the next
        // round. One that is being made has put its schema in place and not set the mark yet: no
        // file may have wider columns than the manifest says.
        let is_marked = table.schema_changed.swap(false, Ordering::AcqRel);
        let schema = table.schema();
        let schema_changed = is_marked || !Arc::ptr_eq(&schema, &table.committed.load());
        let needed = schema_changed || !frozen.is_empty() || !tombstones.is_empty();
        needed.then(|| TableRound { schema, schema_changed, table, frozen, tombstones, files: Vec::new() })
    };
    tables.into_iter().filter_map(round).collect()
}

fn edit(
    seq: SequenceNumber,
    databases: &[Arc<Database>],
    tables: &[TableRound],
    receipts: &ReceiptsRound,
) -> ManifestEdit {
    let table = |round: &TableRound| TableEdit {
        database: round.schema.database.to_string(),
        table: round.schema.table.to_string(),
        schema: round.schema_changed.then(|| Arc::clone(&round.schema)),
        files_added: round.files.clone(),
        tombstones_added: round.tombstones.iter().map(|tombstone| Tombstone::clone(tombstone)).collect(),
        ..TableEdit::default()
    };
    ManifestEdit {
        flushed: Some(seq),
        databases_added: databases.iter().map(|db| (db.name.to_string(), db.created_ns)).collect(),
        tables: tables.iter().map(table).collect(),
        receipts_added: receipts.added.clone(),
        receipts_dropped: receipts.dropped,
        ..ManifestEdit::default()
    }
}

/// Starts the thread that flushes by size, age and log volume. It is also the one that notices when
/// the log has come to rest, and has it sealed: so the commit path has no timer.
pub(super) fn spawn(shared: &Arc<Shared>) -> std::io::Result<sync::thread::JoinHandle<()>> {
    let shared = Arc::clone(shared);
    sync::thread::Builder::new().name("arc-flush".into()).spawn(move || {
        let mut failures = 0;
        // If this thread dies, nothing makes room any more: better refuse writes at once than when
        // memory is full.
        let _close = CloseOnPanic(&shared);
        loop {
            match shared.flush_signal.wait(shared.options.flush_after) {
                Due::Flush => {}
                Due::Seal => {
                    shared.queue.seal();
                    continue;
                }
                Due::Stop => break,
            }
            match shared.flush_with(shared.manifest.lock()) {
                Ok(_) => failures = 0,
                // Another thread closes the engine, which flushes as well.
                Err(error) if error.kind() == ErrorKind::Closed => tracing::debug!(%error, "a flush met the close"),
                Err(error) => {
                    let source = std::error::Error::source(&error);
                    tracing::error!(%error, source, "flush failed, its points stay in memory and in the log");
                    shared.flush_signal.pause(shared.retry_after(failures));
                    failures += 1;
                    // The points are still there: look again, unless a later write has asked
                    // already.
                    shared.note_buffered();
                }
            }
        }
    })
}

struct CloseOnPanic<'a>(&'a Shared);

impl Drop for CloseOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.queue.close("the flush thread has panicked");
        }
    }
}

/// Returns the coarsest unit up to `wanted` that has the times of some rows.
fn unit_of(rows: &dyn Columns, wanted: FileTimeUnit) -> Result<FileTimeUnit> {
    let mut unit = wanted;
    if !wanted.is_nanosecond() {
        rows.column(0, 0..rows.len(), &mut |times| {
            let times = times.as_primitive_opt::<TimestampNanosecondType>();
            unit = unit.that_has(times.map_or(&[], |times| times.values()));
            Ok(())
        })?;
    }
    Ok(unit)
}

#[cfg(test)]
mod tests;
