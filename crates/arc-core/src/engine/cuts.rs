//! Cuts: where rows are parted that were handed to another directory from those that were not.
//!
//! A cut is a place in the log. All rows before it are in data files, no data file has rows of both
//! sides, and no merge makes one: so what lies between two cuts is a set of files, whatever was
//! merged since, and is handed over exactly once (decision 040). Never sends anything: `push` does.

use std::sync::Arc;

use bytes::Bytes;
use hashbrown::HashSet;

use super::{
    Engine, compaction::Round, logged::database_change, manifest::LockedManifest, pinned::Pinned, shared::Shared,
    stats::Counters,
};
use crate::{
    Error, Result, SequenceNumber,
    catalog::{ManifestEdit, ManifestState, PushStream},
    compaction::{CompactionPlan, Keep, MergeTask, Settings, batches, output, plan, purge},
    crash::crash_point,
    datafile::open_data_file,
    model::{Cut, CutName, DataFile, PartitionDay, TableSchema},
    registry::Table,
    sync::{Mutex, MutexGuard},
};

/// Directories that rows are handed to, at most; of more, the first is forgotten, which then refuses
/// what comes.
const MAX_STREAMS: usize = 16;

/// The cuts of a directory, as compaction knows them.
#[derive(Debug, Default)]
pub(super) struct Cuts {
    /// Ascending.
    seqs: Mutex<Vec<SequenceNumber>>,
    /// Up to where every directory that rows are handed to has them; `None` if one has nothing, or
    /// there is none.
    handed_over: Mutex<Option<SequenceNumber>>,
    /// Held while rows are handed over, so that this happens once at a time.
    pushing: Mutex<()>,
}

impl Cuts {
    /// Returns the cuts that a manifest has.
    pub(super) fn of(state: &ManifestState) -> Self {
        let cuts = Self::default();
        cuts.note(state);
        cuts
    }

    /// Takes what the manifest says now, which the caller keeps from changing meanwhile.
    pub(super) fn note(&self, state: &ManifestState) {
        let mut seqs: Vec<_> = state.pushes.iter().flat_map(PushStream::cuts).map(|cut| cut.seq).collect();
        seqs.sort_unstable();
        seqs.dedup();
        *self.seqs.lock() = seqs;
        let confirmed = state.pushes.iter().map(|stream| stream.confirmed.as_ref().map(|cut| cut.seq));
        // Nothing is less than any number.
        *self.handed_over.lock() = confirmed.min().flatten();
    }

    /// Returns whether all directories that rows are handed to have those of a file.
    pub(super) fn is_handed_over(&self, file: &DataFile) -> bool {
        self.handed_over.lock().is_some_and(|seq| file.max_seq <= seq.0)
    }

    /// Refuses files to be live again of which nobody can say whether their rows were handed over.
    pub(super) fn check_restored(&self, files: &[Arc<DataFile>]) -> Result<()> {
        let last = self.seqs.lock().last().copied();
        if last.is_none_or(|last| files.iter().all(|file| file.min_seq > last.0)) {
            return Ok(());
        }
        let reason = "rows of before the last push would come back, which may have been sent or not: restore the table \
                      where they were sent to";
        Err(Error::OutsideHistory { reason: reason.into() })
    }
}

/// The files between two cuts. They stay as long as this is held.
#[derive(Debug)]
pub(crate) struct CutFiles {
    /// The cut that was handed over before.
    pub(crate) from: Option<CutName>,
    pub(crate) cut: CutName,
    /// Whether it was not under way before.
    pub(crate) is_new: bool,
    /// Tables that have rows between them, and those.
    pub(crate) tables: Vec<(Arc<TableSchema>, Vec<Arc<DataFile>>)>,
    _pinned: Pinned,
}

/// The numbers between two cuts.
#[derive(Debug, Clone, Copy)]
struct SeqRange {
    after: Option<SequenceNumber>,
    to: SequenceNumber,
}

impl SeqRange {
    fn has(&self, file: &DataFile) -> bool {
        self.after.is_none_or(|after| file.min_seq > after.0) && file.max_seq <= self.to.0
    }
}

impl Engine {
    /// Waits until nothing else hands rows over.
    pub(crate) fn lock_pushing(&self) -> Result<MutexGuard<'_, ()>> {
        Ok(self.writer()?.cuts.pushing.lock())
    }

    /// Returns the name of the directory, for others that adopt its rows; gives it one if an earlier
    /// build made it.
    ///
    /// # Errors
    ///
    /// [`Closed`](crate::ErrorKind::Closed), [`Io`](crate::ErrorKind::Io).
    pub(crate) fn push_origin(&self) -> Result<String> {
        self.check_open()?;
        let shared = self.writer()?;
        let mut manifest = shared.manifest.lock_patiently()?;
        if let Some(origin) = &manifest.state().origin {
            return Ok(origin.clone());
        }
        let origin = shared.new_id().to_string();
        let edit = ManifestEdit { origin: Some(origin.clone()), ..ManifestEdit::default() };
        manifest.commit(edit)?;
        Ok(origin)
    }

    /// Returns the files that the other directory lacks, which says that it has everything up to
    /// `there`; `None` if it lacks none. Flushes, and carries out the deletes of their rows.
    ///
    /// # Errors
    ///
    /// [`Error::Diverged`] if this directory knows of no such cut; those of a flush and a merge.
    pub(crate) fn begin_cut(&self, there: Option<&CutName>) -> Result<Option<CutFiles>> {
        self.check_open()?;
        let shared = self.writer()?;
        let Some((stream, cut, is_new)) = shared.cut_for(there)? else { return Ok(None) };
        crash_point("push::cut");
        let range = SeqRange { after: stream.as_ref().map(|cut| cut.seq), to: cut.seq };
        shared.carry_out_deletes(range)?;
        let (pinned, _) = shared.pin()?;
        let tables = files_in(&pinned.state, range);
        let from = stream.map(|cut| cut.name);
        Ok(Some(CutFiles { from, cut: cut.name, is_new, tables, _pinned: pinned }))
    }

    /// Notes that the other directory has everything up to a cut.
    ///
    /// # Errors
    ///
    /// As of a commit.
    pub(crate) fn confirm_cut(&self, name: &CutName) -> Result<()> {
        let shared = self.writer()?;
        let mut manifest = shared.manifest.lock_patiently()?;
        shared.compactor.check_running()?;
        let mut streams = manifest.state().pushes.clone();
        if stream_at(&mut streams, Some(name)).is_ok() && streams != manifest.state().pushes {
            shared.commit_streams(&mut manifest, streams)?;
            // What only waited to be handed over may be past its retention.
            shared.compactor.wake();
        }
        Ok(())
    }

    /// Reads some bytes of a data file, as many as there are.
    pub(crate) fn read_file(&self, file: &DataFile, offset: u64, most: usize) -> Result<Bytes> {
        let (vfs, root) = self.files()?;
        let path = root.join(&file.path);
        let failed = |e| Error::io("read", &path, e);
        let opened = open_data_file(vfs.as_ref(), &path).map_err(failed)?;
        let left = usize::try_from(file.bytes.saturating_sub(offset)).unwrap_or(usize::MAX);
        let mut bytes = vec![0; most.min(left)];
        let read = opened.read_at(&mut bytes, offset).map_err(failed)?;
        bytes.truncate(read);
        Ok(bytes.into())
    }
}

impl Shared {
    /// Returns the cut that is to be handed over next, and the one before it; makes one if none is
    /// under way, which the last of the three says.
    fn cut_for(&self, there: Option<&CutName>) -> Result<Option<(Option<Cut>, Cut, bool)>> {
        let mut manifest = self.manifest.lock_patiently()?;
        self.compactor.check_running()?;
        let mut streams = manifest.state().pushes.clone();
        let at = stream_at(&mut streams, there)?;
        let stream = streams.get(at).cloned().unwrap_or_default();
        if let Some(pending) = stream.pending {
            return Ok(Some((stream.confirmed, pending, false)));
        }
        let Some(seq) = self.flush_to_cut(&mut manifest)? else { return Ok(None) };
        let range = SeqRange { after: stream.confirmed.as_ref().map(|cut| cut.seq), to: seq };
        if manifest.state().files().any(|file| range.has(file)) {
            let number = stream.confirmed.as_ref().map_or(0, |cut| cut.name.number) + 1;
            let cut = Cut { name: CutName { number, id: self.new_id().to_string() }, seq };
            if let Some(stream) = streams.get_mut(at) {
                stream.pending = Some(cut.clone());
            }
            self.commit_streams(&mut manifest, streams)?;
            return Ok(Some((stream.confirmed, cut, true)));
        }
        if manifest.state().pushes != streams && stream.confirmed.is_some() {
            self.commit_streams(&mut manifest, streams)?;
        }
        Ok(None)
    }

    fn commit_streams(&self, manifest: &mut LockedManifest<'_>, streams: Vec<PushStream>) -> Result<()> {
        manifest.commit(ManifestEdit { pushes: Some(streams), ..ManifestEdit::default() })?;
        self.cuts.note(manifest.state());
        Ok(())
    }

    /// Flushes, so that no row that comes later has the number that is returned, or one before it.
    /// `None` where there is no database.
    pub(super) fn flush_to_cut(&self, manifest: &mut LockedManifest<'_>) -> Result<Option<SequenceNumber>> {
        self.compactor.check_running()?;
        self.flush_signal.reset();
        if let Some(seq) = manifest.frozen() {
            self.flush_round(manifest, seq)?;
        }
        let (frozen, logged) = {
            // Nothing is dropped between the look and the queue.
            let _schema_lock = self.schema.lock();
            let Some(database) = self.schema.registry().databases().into_iter().next() else { return Ok(None) };
            self.queue.freeze_before(database_change(&database)?)?
        };
        let seq = crate::sync::block_on(frozen).unwrap_or_else(|_| Err(Error::unanswered()))?;
        manifest.set_frozen(Some(seq));
        let is_logged = crate::sync::block_on(logged).unwrap_or_else(|_| Err(Error::unanswered()));
        let report = self.flush_round(manifest, seq)?;
        Counters::add(&self.counters.flushes, 1);
        Counters::add(&self.counters.flushed_rows, report.rows);
        self.queue.budget_changed();
        if !report.files.is_empty() {
            self.compactor.wake();
        }
        // Else rows that come later may have the same number.
        is_logged.map(|()| Some(seq))
    }

    /// Rewrites the files between two cuts that have rows which are deleted: these are not handed
    /// over.
    fn carry_out_deletes(&self, range: SeqRange) -> Result<()> {
        let _turn = self.compactor.turn()?;
        let mut round = Round::default();
        for table in self.schema.registry().databases().iter().flat_map(|database| database.tables()) {
            self.carry_out_deletes_of(&table, range, &mut round)?;
        }
        round.into_report().map(drop)
    }

    fn carry_out_deletes_of(&self, table: &Arc<Table>, range: SeqRange, round: &mut Round) -> Result<()> {
        let (files, tombstones) = {
            let stored = table.stored();
            (stored.files.clone(), stored.flushed_tombstones())
        };
        let schema = table.schema();
        let mut tasks = purge(&schema, &files, &tombstones);
        for task in &mut tasks {
            // Several together are those of which nothing is left, whichever they are.
            task.files.retain(|file| range.has(file));
        }
        tasks.retain(|task| !task.files.is_empty());
        for tasks in batches(tasks, self.merged_file_bytes(&schema)) {
            self.merge(table, tasks, Keep::default(), round)?;
        }
        Ok(())
    }

    /// Returns which files of a table are merged next: none of both sides of a cut.
    pub(super) fn plan_between_cuts(
        &self,
        schema: &TableSchema,
        files: &[Arc<DataFile>],
        settings: &Settings,
    ) -> CompactionPlan {
        let (cuts, now_ns) = (self.cuts.seqs.lock().clone(), self.clock.now_ns());
        if cuts.is_empty() {
            return plan(schema, files, now_ns, settings);
        }
        let side = |file: &DataFile| cuts.partition_point(|cut| cut.0 < file.max_seq);
        let mut planned = CompactionPlan::default();
        let mut days: HashSet<PartitionDay> = HashSet::new();
        for nth in 0..=cuts.len() {
            let of_side: Vec<_> = files.iter().filter(|file| side(file) == nth).cloned().collect();
            let CompactionPlan { tasks, next_due_ns } = plan(schema, &of_side, now_ns, settings);
            let tasks = tasks.into_iter().filter_map(|task| among_all(files, task));
            planned.tasks.extend(tasks.filter(|task| days.insert(task.day)));
            planned.next_due_ns = planned.next_due_ns.into_iter().chain(next_due_ns).min();
        }
        planned
    }
}

/// Returns a task as it may be done where the other side of a cut has files as well, if it may be.
fn among_all(files: &[Arc<DataFile>], task: MergeTask) -> Option<MergeTask> {
    let partition: Vec<_> = files.iter().filter(|file| file.day() == task.day).cloned().collect();
    let inputs: HashSet<String> = task.files.iter().map(|file| file.path.clone()).collect();
    let is_input = |file: &DataFile| inputs.contains(&file.path);
    if output(&partition, is_input) != Some(task.output) {
        return None;
    }
    let has_all_late = partition.iter().all(|file| !file.late || is_input(file));
    let may_drop_old = task.may_drop_old && has_all_late;
    Some(MergeTask { may_drop_old, ..task })
}

/// Returns the tables that have files in a range, and these, each overwriting those before it.
fn files_in(state: &ManifestState, range: SeqRange) -> Vec<(Arc<TableSchema>, Vec<Arc<DataFile>>)> {
    let tables = state.databases.values().flat_map(|database| database.tables.values());
    let found = tables.map(|table| {
        let mut files: Vec<_> = table.files.iter().filter(|file| range.has(file)).cloned().collect();
        files.sort_by_key(|file| if file.late { (1, file.version()) } else { (0, (0, 0)) });
        (Arc::clone(&table.schema), files)
    });
    found.filter(|(_, files)| !files.is_empty()).collect()
}

/// Returns the place of the stream to the directory that has everything up to `there`, and notes in
/// it that it has.
fn stream_at(streams: &mut Vec<PushStream>, there: Option<&CutName>) -> Result<usize> {
    let Some(there) = there else {
        // One that has nothing: whatever was under way to such a one may go there.
        if let Some(at) = streams.iter().position(|stream| stream.confirmed.is_none()) {
            return Ok(at);
        }
        if streams.len() >= MAX_STREAMS {
            streams.remove(0);
        }
        streams.push(PushStream::default());
        return Ok(streams.len() - 1);
    };
    let is_there = |cut: &Cut| cut.name == *there;
    let Some(at) = streams.iter().position(|stream| stream.cuts().any(is_there)) else {
        return Err(diverged(streams, there));
    };
    if let Some(stream) = streams.get_mut(at)
        && let Some(arrived) = stream.pending.take_if(|pending| is_there(pending))
    {
        stream.confirmed = Some(arrived);
    }
    Ok(at)
}

fn diverged(streams: &[PushStream], there: &CutName) -> Error {
    let newest = streams.iter().filter_map(|stream| stream.confirmed.as_ref()).map(|cut| cut.name.number).max();
    let reason = match newest {
        Some(newest) if newest > there.number => format!(
            "the other directory has cut {there} of this one, which has handed over {newest}: it was restored from a \
             backup, or this one is a copy. Nothing was sent; what it lacks is still here"
        ),
        _ => format!(
            "the other directory has cut {there} of this one, which does not know it: this one is a copy, or was \
             restored from a backup. Nothing was sent; what was written here since is still here"
        ),
    };
    Error::Diverged { reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(number: u64, id: &str) -> Cut {
        Cut { name: CutName { number, id: id.into() }, seq: SequenceNumber(number * 10) }
    }

    #[test]
    fn what_is_there_says_which_stream_it_is() {
        let stream = |confirmed: Option<Cut>, pending: Option<Cut>| PushStream { confirmed, pending };
        let streams = vec![stream(Some(cut(2, "b")), Some(cut(3, "c"))), stream(None, Some(cut(1, "x")))];
        let found = |there: Option<CutName>| {
            let mut streams = streams.clone();
            stream_at(&mut streams, there.as_ref()).map(|at| (at, streams))
        };
        // It has not arrived, or has.
        assert_eq!(found(Some(cut(2, "b").name)).unwrap(), (0, streams.clone()));
        let (at, after) = found(Some(cut(3, "c").name)).unwrap();
        assert_eq!((at, &after[0]), (0, &stream(Some(cut(3, "c")), None)));
        // An empty one gets what was under way to an empty one.
        assert_eq!(found(None).unwrap().0, 1);
        for unknown in [cut(3, "other"), cut(4, "d"), cut(1, "a"), cut(2, "c")] {
            assert!(matches!(found(Some(unknown.name)), Err(Error::Diverged { .. })));
        }
        let mut full = vec![stream(Some(cut(1, "a")), None); MAX_STREAMS];
        assert_eq!(stream_at(&mut full, None).unwrap(), MAX_STREAMS - 1);
        assert_eq!(full.len(), MAX_STREAMS);
    }
}
