//! Compaction as the engine does it: plans for each table, has the files written, and swaps them in
//! by one commit.
//!
//! Files are read and written without any lock; the manifest is locked for the commit alone, so
//! that no flush waits for a merge. Each step is durable before the next: write the outputs, commit
//! the manifest (inputs out, outputs in), swap the views, retire the inputs. A crash between any
//! two loses and doubles nothing: files that no manifest names are removed on open, be they outputs
//! that came too early or inputs that are still there.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use hashbrown::{HashMap, HashSet};

use super::{compactor::CompactionTurn, shared::Shared, small_merges::SmallMerges, stats::Counters};
use crate::{
    Error, ErrorKind, Result,
    catalog::{ManifestEdit, TableEdit},
    compaction::{
        Keep, MAX_BATCH_BYTES, MergeJob, MergeOutput, MergeSource, MergeTask, SLICE_ROWS, Settings, batches,
        moves_alone, output, purge, run,
    },
    crash::crash_point,
    datafile::{PackWriter, ParquetOptions},
    memory::{Pressure, merge_columns, merge_share, merged_file_bytes},
    model::{DataFile, PartitionDay, TableSchema, data_file_path},
    registry::Table,
    sync,
};

/// How long the thread leaves a failed round alone.
const RETRY_AFTER: Duration = Duration::from_secs(60);
/// How long a merge waits for memory of the process, and how often it looks.
const MEMORY_PATIENCE: Duration = Duration::from_secs(10);
const MEMORY_POLL: Duration = Duration::from_millis(20);
/// Longest sleep: the wall clock may be set meanwhile.
const LONGEST_SLEEP: Duration = Duration::from_secs(3_600);

/// What one round of compaction did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompactionReport {
    /// Merges, each of which replaced some files by fewer or better ones.
    pub merges: u64,
    /// Data files that were replaced.
    pub files_in: u64,
    /// Data files that were written.
    pub files_out: u64,
    /// Rows read.
    pub rows_in: u64,
    /// Rows written; fewer where points were merged or were past their retention.
    pub rows_out: u64,
    /// Bytes of the files that were replaced.
    pub bytes_in: u64,
    /// Bytes of the files that were written.
    pub bytes_out: u64,
    /// Data files dropped because of their age.
    pub expired_files: u64,
    /// Data files that moved as they are: out of packs of which little was needed, or into files of
    /// their own.
    pub moved_files: u64,
    /// Data files removed from disk.
    pub removed_files: u64,
}

/// One round under way.
#[derive(Debug, Default)]
pub(super) struct Round {
    pub(super) report: CompactionReport,
    /// When there may be something to do although nothing was written.
    next_due_ns: Option<i64>,
    /// The first thing that failed.
    failed: Option<Error>,
}

impl Round {
    pub(super) fn note_due(&mut self, due_ns: Option<i64>) {
        self.next_due_ns = self.next_due_ns.into_iter().chain(due_ns).min();
    }

    /// Notes a failure, after which the round goes on with the next table.
    pub(super) fn note_failure(&mut self, result: Result<()>) {
        if let Err(error) = result {
            self.failed.get_or_insert(error);
        }
    }

    pub(super) fn into_report(self) -> Result<CompactionReport> {
        self.failed.map_or(Ok(self.report), Err)
    }
}

impl Shared {
    /// Does all that there is to do now.
    pub(super) fn compact(&self) -> Result<CompactionReport> {
        self.compactor.try_all();
        self.compaction_round().into_report()
    }

    /// Ends the thread, and waits for the end of what runs.
    pub(super) fn stop_compaction(&self) {
        self.compactor.stop();
        // A retention may be on its way as well.
        drop(self.manifest.lock());
    }

    fn compaction_round(&self) -> Round {
        let mut round = Round::default();
        let mut turn = match self.compactor.turn() {
            Ok(turn) => turn,
            Err(closed) => {
                round.note_failure(Err(closed));
                return round;
            }
        };
        let expired = self.drop_expired(&mut round);
        round.note_failure(expired);
        // Small files of many tables are merged together: what comes of that may be enough for
        // another merge.
        loop {
            let mut small = SmallMerges::new(self);
            for database in self.schema.registry().databases() {
                for table in database.tables() {
                    // Asked anew for each table: the merges before it took their time.
                    let from_ns = table.retention.or(&database.retention).oldest_ns(self.clock.now_ns());
                    let from_ns = from_ns.filter(|_| !self.options.retention_waits_for_push);
                    let compacted = self.compact_table(&table, Keep { from_ns }, &mut turn, &mut small, &mut round);
                    round.note_failure(compacted);
                    if small.is_empty() {
                        round.note_failure(turn.give_way().map(drop));
                    }
                }
            }
            match small.commit(&mut round) {
                Ok(()) if small.has_committed() => {}
                committed => break round.note_failure(committed),
            }
        }
        self.move_packed(&mut round);
        self.trim_history(&self.manifest.lock());
        let now_ns = self.clock.now_ns();
        round.report.removed_files += self.remove_retired(now_ns);
        crash_point("compaction::removed");
        round.note_due(self.retired_due_ns(now_ns));
        round.note_due(self.history_due_ns(now_ns));
        round
    }

    fn compact_table(
        &self,
        table: &Arc<Table>,
        keep: Keep,
        turn: &mut CompactionTurn<'_>,
        small: &mut SmallMerges<'_>,
        round: &mut Round,
    ) -> Result<()> {
        let options = &self.options;
        let settings = Settings {
            files: options.compaction_files,
            target_bytes: self.merged_file_bytes(&table.schema()),
            open_columns: merge_columns(self.memory.limit()),
            quiet_ns: i64::try_from(options.compaction_quiet.as_nanos()).unwrap_or(i64::MAX),
            slice_rows: SLICE_ROWS,
        };
        while !table.is_dropped() {
            let files = table.stored().files.clone();
            let planned = self.plan_between_cuts(&table.schema(), &files, &settings);
            let mut tasks = planned.tasks;
            let is_purge = tasks.is_empty();
            if is_purge {
                tasks = purge(&table.schema(), &files, &table.stored().flushed_tombstones());
            }
            tasks.retain(|task| !task.files.iter().any(|file| self.compactor.is_left_alone(file)));
            if tasks.is_empty() {
                round.note_due(planned.next_due_ns);
                return self.forget_tombstones(table);
            }
            drop(files);
            let (few, tasks): (Vec<MergeTask>, Vec<MergeTask>) = tasks.into_iter().partition(MergeTask::is_small);
            if tasks.is_empty() {
                return small.merge(table, few, keep, round);
            }
            // A merge is one commit; what deletes left of files is not worth one for each.
            let most_bytes = if is_purge { settings.target_bytes } else { 0 };
            for tasks in batches(tasks, most_bytes) {
                self.merge(table, tasks, keep, round)?;
                if small.is_empty() && turn.give_way()? {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Returns the size of files that merges of a table aim at.
    pub(super) fn merged_file_bytes(&self, schema: &TableSchema) -> u64 {
        merged_file_bytes(self.memory.limit(), schema.arrow().fields().len(), self.options.compaction_file_bytes)
    }

    /// Waits for a while if the process is near the most that it may hold: merges have time, up to
    /// a point.
    fn wait_for_memory(&self) {
        let patience = sync::now() + MEMORY_PATIENCE;
        while self.memory.pressure() > Pressure::None
            && sync::now() < patience
            && self.compactor.check_running().is_ok()
        {
            sync::thread::sleep(MEMORY_POLL);
        }
    }

    /// Does tasks and commits them together.
    pub(super) fn merge(&self, table: &Arc<Table>, tasks: Vec<MergeTask>, keep: Keep, round: &mut Round) -> Result<()> {
        let mut merged: Vec<Merged> = Vec::new();
        for task in tasks {
            match self.run_undamaged(table, task, keep, None, round) {
                Ok(done) => merged.extend(done),
                Err(error) => {
                    merged.iter().for_each(|done| self.discard_files(&done.made));
                    return Err(error);
                }
            }
        }
        self.commit_and_retire(merged, round).map(drop)
    }

    /// Writes the outputs of one task, into a pack where one is given. A task with a damaged input
    /// is left out, and left alone from then on.
    pub(super) fn run_undamaged(
        &self,
        table: &Arc<Table>,
        task: MergeTask,
        keep: Keep,
        pack: Option<&PackWriter<'_>>,
        round: &mut Round,
    ) -> Result<Option<Merged>> {
        match self.run(table, &task, keep, pack) {
            Ok(made) => Ok(Some(Merged { table: Arc::clone(table), task, made, is_moved: false })),
            Err(error) => self.leave_damaged(error, &task.files, round).map(|()| None),
        }
    }

    /// Leaves files alone from now on if the error says that one of them is damaged.
    pub(super) fn leave_damaged(&self, error: Error, files: &[Arc<DataFile>], round: &mut Round) -> Result<()> {
        if error.kind() != ErrorKind::Corrupt {
            return Err(error);
        }
        self.compactor.leave_alone(files.iter().map(Arc::as_ref));
        Counters::add(&self.counters.compaction_failures, 1);
        tracing::error!(%error, "a data file cannot be merged and stays as it is");
        round.note_failure(Err(error));
        Ok(())
    }

    /// Commits merges whose outputs are durable; returns how many of them were still right.
    pub(super) fn commit_and_retire(&self, merged: Vec<Merged>, round: &mut Round) -> Result<usize> {
        crash_point("compaction::files_written");
        let committed = self.commit_merges(merged)?;
        let count = committed.len();
        committed.iter().for_each(|done| self.count(done, &mut round.report));
        Ok(count)
    }

    /// Writes the outputs of one task.
    fn run(
        &self,
        table: &Table,
        task: &MergeTask,
        keep: Keep,
        pack: Option<&PackWriter<'_>>,
    ) -> Result<Vec<Arc<DataFile>>> {
        // Not a later one: a type that the log has not yet, and that a loss of power would take
        // back, is for no file.
        let (schema, tombstones) = (table.committed.load_full(), table.stored().flushed_tombstones());
        let written_ns = task.files.iter().filter_map(|file| file.written_ns()).max();
        let job = MergeJob {
            source: MergeSource { vfs: self.vfs.as_ref(), root: &self.root },
            schema: &schema,
            task,
            keep: if task.may_drop_old { keep } else { Keep::default() },
            tombstones: &tombstones,
            // What it encodes takes as much again.
            batch_bytes: MAX_BATCH_BYTES.min(merge_share(self.memory.limit()) as u64 / 2),
            target_bytes: self.merged_file_bytes(&schema),
            options: &ParquetOptions::compaction().within(self.memory.limit(), schema.arrow().fields().len()),
            time_unit: self.time_unit_of(table),
            pack,
            cancelled: self.compactor.cancelled(),
        };
        let mut paths = Vec::new();
        let path = || {
            if let Some(pack) = pack {
                return pack.path().to_owned();
            }
            paths.push(data_file_path(&schema, task.day, self.id_written(written_ns)));
            paths.last().cloned().unwrap_or_default()
        };
        self.wait_for_memory();
        let _memory = self.memory.reserve(job.memory_bytes());
        self.folders.check()?;
        let made = catch_unwind(AssertUnwindSafe(|| run(&job, path))).unwrap_or_else(|_| {
            let first = task.files.first().map(|file| self.root.join(&file.path)).unwrap_or_default();
            Err(Error::corrupt(
                first,
                0,
                "it, or one that is merged with it, is damaged in a way that nothing is known of",
            ))
        });
        let made = made.inspect_err(|error| {
            self.folders.note_unsynced(error);
            paths.iter().for_each(|path| self.leftovers.leave(path));
        })?;
        let deleted_seq = tombstones.last().map_or(0, |tombstone| tombstone.seq.0);
        Ok(made.into_iter().map(|file| Arc::new(DataFile { deleted_seq, ..file })).collect())
    }

    fn count(&self, Merged { table, task, made, is_moved }: &Merged, report: &mut CompactionReport) {
        if *is_moved {
            report.moved_files += made.len() as u64;
            Counters::add(&self.counters.moved_files, made.len() as u64);
            return;
        }
        let schema = table.schema();
        let sum = |files: &[Arc<DataFile>], of: fn(&DataFile) -> u64| files.iter().map(|file| of(file)).sum::<u64>();
        let (rows_in, rows_out) = (sum(&task.files, |file| file.rows), sum(made, |file| file.rows));
        let (bytes_in, bytes_out) = (sum(&task.files, |file| file.bytes), sum(made, |file| file.bytes));
        tracing::debug!(
            database = %schema.database, table = %schema.table, day = %task.day, files_in = task.files.len(),
            files_out = made.len(), rows_in, rows_out, bytes_in, bytes_out, "merged data files"
        );
        report.merges += 1;
        report.files_in += task.files.len() as u64;
        report.files_out += made.len() as u64;
        report.rows_in += rows_in;
        report.rows_out += rows_out;
        report.bytes_in += bytes_in;
        report.bytes_out += bytes_out;
        let counters = &self.counters;
        Counters::add(&counters.compactions, 1);
        Counters::add(&counters.compaction_rows_in, rows_in);
        Counters::add(&counters.compaction_rows_out, rows_out);
        Counters::add(&counters.compaction_bytes_in, bytes_in);
        Counters::add(&counters.compaction_bytes_out, bytes_out);
    }

    /// Swaps outputs for inputs, in the manifest and then in the tables; returns the tasks whose
    /// inputs were still what they had been. The outputs of the others are removed. Merges of one
    /// table stand together.
    fn commit_merges(&self, merged: Vec<Merged>) -> Result<Vec<Merged>> {
        let mut manifest = self.manifest.lock();
        let partitions = live_partitions(&merged);
        let is_right = |done: &Merged| {
            let live = partitions.get(&(Arc::as_ptr(&done.table), done.task.day));
            !done.table.is_dropped() && live.is_some_and(|live| is_still_right(live, done))
        };
        let (right, wrong): (Vec<Merged>, Vec<Merged>) = merged.into_iter().partition(is_right);
        if !right.is_empty() {
            let tables = right.chunk_by(|a, b| Arc::ptr_eq(&a.table, &b.table)).map(table_edit).collect();
            if let Err(error) = manifest.commit(ManifestEdit { tables, ..ManifestEdit::default() }) {
                // If the change may be durable, the next open needs the files.
                if !manifest.is_closed() {
                    let made = right.iter().chain(&wrong).flat_map(|done| &done.made);
                    self.leftovers.leave_files(made.map(Arc::as_ref));
                }
                return Err(error);
            }
            crash_point("compaction::committed");
            for of_table in right.chunk_by(|a, b| Arc::ptr_eq(&a.table, &b.table)) {
                let gone: Vec<_> = of_table.iter().flat_map(|done| &done.task.files).cloned().collect();
                let made: Vec<_> = of_table.iter().flat_map(|done| &done.made).cloned().collect();
                if let Some(done) = of_table.first() {
                    done.table.replace_files(&gone, &made);
                }
                // Before the manifest is unlocked: the thread that finds them in neither, as the
                // close of the engine would, takes their pack for one that nothing reads.
                self.retired.add(gone, self.clock.now_ns());
            }
            crash_point("compaction::swapped");
        }
        drop(manifest);
        self.retired.move_out();
        wrong.iter().for_each(|done| self.discard_files(&done.made));
        Ok(right)
    }

    /// Lets go of files that are in no manifest and in no view, but not of what else is in their
    /// packs.
    pub(super) fn discard_files(&self, files: &[Arc<DataFile>]) {
        let (in_packs, files): (Vec<_>, Vec<_>) = files.iter().partition(|file| file.packed().is_some());
        self.leftovers.leave_files(files.into_iter().map(Arc::as_ref));
        self.leave_empty_packs(in_packs.into_iter().map(|file| file.path.as_str()));
    }
}

/// A task whose outputs are durable files that nothing knows yet.
pub(super) struct Merged {
    pub(super) table: Arc<Table>,
    pub(super) task: MergeTask,
    pub(super) made: Vec<Arc<DataFile>>,
    /// Whether the outputs are the inputs at another place.
    pub(super) is_moved: bool,
}

/// Returns the change that merges of one table make.
fn table_edit(merged: &[Merged]) -> TableEdit {
    let schema = merged.first().map(|done| done.table.schema());
    let name = |of: fn(&TableSchema) -> &str| schema.as_ref().map(|schema| of(schema).to_owned()).unwrap_or_default();
    let made = merged.iter().flat_map(|done| &done.made);
    let gone = merged.iter().flat_map(|done| &done.task.files);
    TableEdit {
        database: name(|schema| &schema.database),
        table: name(|schema| &schema.table),
        files_added: made.cloned().collect(),
        files_removed: gone.map(|file| file.path.clone()).collect(),
        ..TableEdit::default()
    }
}

/// Returns the live files of the tables and days that merges are about. Merges of one table stand
/// together: of all its days, of which there may be very many, the files are looked at once.
fn live_partitions(merged: &[Merged]) -> HashMap<(*const Table, PartitionDay), Vec<Arc<DataFile>>> {
    let day_of = |done: &Merged| ((Arc::as_ptr(&done.table), done.task.day), Vec::new());
    let mut partitions: HashMap<_, Vec<Arc<DataFile>>> = merged.iter().map(day_of).collect();
    for of_table in merged.chunk_by(|a, b| Arc::ptr_eq(&a.table, &b.table)) {
        let Some(Merged { table, .. }) = of_table.first() else { continue };
        for file in &table.stored().files {
            if let Some(partition) = partitions.get_mut(&(Arc::as_ptr(table), file.day())) {
                partition.push(Arc::clone(file));
            }
        }
    }
    partitions
}

/// Returns whether all inputs are live, and their merge still leaves the same rows to win.
///
/// Files that a flush added meanwhile cannot change what a file on time may hold (see
/// `crate::compaction`); a late output has to stand between its neighbours as they are now, and a
/// file that moved as it is must not pass by another.
///
/// `partition` has the live files of the table and day.
pub(super) fn is_still_right(partition: &[Arc<DataFile>], Merged { task, is_moved, .. }: &Merged) -> bool {
    let inputs: HashSet<&str> = task.files.iter().map(|file| file.path.as_str()).collect();
    let is_input = |file: &DataFile| inputs.contains(file.path.as_str());
    partition.iter().filter(|file| is_input(file)).count() == task.files.len()
        && (!is_moved || task.files.iter().all(|file| moves_alone(partition, file)))
        && (task.output == MergeOutput::OnTime || output(partition, is_input) == Some(MergeOutput::Late))
}

/// Starts the thread that compacts by itself: after flushes, and when days and files come of age.
pub(super) fn spawn(shared: &Arc<Shared>) -> std::io::Result<sync::thread::JoinHandle<()>> {
    let shared = Arc::clone(shared);
    sync::thread::Builder::new().name("arc-compact".into()).spawn(move || {
        let mut sleep = Some(Duration::ZERO);
        while shared.compactor.wait(sleep) {
            let round = catch_unwind(AssertUnwindSafe(|| shared.compaction_round())).unwrap_or_else(|_| {
                Counters::add(&shared.counters.compaction_failures, 1);
                let mut round = Round::default();
                round.note_failure(Err(Error::internal("a round of compaction has panicked")));
                round
            });
            let due_ns = round.next_due_ns.map(|due| due.saturating_sub(shared.clock.now_ns()).max(0).unsigned_abs());
            sleep = due_ns.map(|ns| Duration::from_nanos(ns).min(LONGEST_SLEEP));
            match round.failed {
                None => {}
                // The engine stops, or its manifest is closed until it is opened again.
                Some(error) if error.kind() == ErrorKind::Closed => {
                    tracing::debug!(%error, "compaction has ended");
                    return;
                }
                Some(error) => {
                    let source = std::error::Error::source(&error);
                    tracing::error!(%error, source, "compaction failed, the data files stay as they are");
                    sleep = Some(RETRY_AFTER);
                }
            }
        }
    })
}

#[cfg(test)]
mod tests;
