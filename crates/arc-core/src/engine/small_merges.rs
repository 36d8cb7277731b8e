//! Merges of small files, of as many tables as there are: what comes of them is committed together.
//!
//! A table with few rows has few to merge, and a commit and two syncs for each of ten thousand
//! tables would cost more than the merges. Rows of a day that goes on stay in a pack, a new one;
//! those of a day that is over get files of their own.

use std::sync::Arc;

use super::{
    compaction::{Merged, Round},
    shared::Shared,
};
use crate::{
    Result,
    compaction::{Keep, MergeTask},
    datafile::{Owner, PackWriter, read_whole, write_whole},
    model::{DataFile, TableSchema, data_file_path},
    registry::Table,
};

/// Merges that are committed together, at most: what is written before a commit is for nothing if
/// the process dies.
const MAX_MERGES: usize = 1024;
/// Bytes of the pack that is written meanwhile, at most.
const MAX_PACK_BYTES: u64 = 64 << 20;

/// Merges that wait for their commit.
pub(super) struct SmallMerges<'a> {
    shared: &'a Shared,
    merged: Vec<Merged>,
    pack: Option<PackWriter<'a>>,
    /// Paths of files whose folders are not synced yet.
    published: Vec<String>,
    committed: usize,
}

impl<'a> SmallMerges<'a> {
    pub(super) fn new(shared: &'a Shared) -> Self {
        Self { shared, merged: Vec::new(), pack: None, published: Vec::new(), committed: 0 }
    }

    /// Returns whether nothing waits for its commit.
    pub(super) fn is_empty(&self) -> bool {
        self.merged.is_empty()
    }

    /// Does the merges of a table, which are committed with those of other tables. What is
    /// committed is not planned anew here.
    pub(super) fn merge(
        &mut self,
        table: &Arc<Table>,
        tasks: Vec<MergeTask>,
        keep: Keep,
        round: &mut Round,
    ) -> Result<()> {
        for task in tasks {
            let is_packed = task.is_packed() && self.shared.options.pack_bytes > 0;
            self.merge_one(table, task, keep, is_packed, round)?;
            self.commit_if_many(round)?;
        }
        Ok(())
    }

    /// Gives files of a table another place: a single one as it is, several as one.
    pub(super) fn move_out(
        &mut self,
        table: &Arc<Table>,
        task: MergeTask,
        is_packed: bool,
        round: &mut Round,
    ) -> Result<()> {
        let [file] = task.files.as_slice() else {
            self.merge_one(table, task, Keep::default(), is_packed, round)?;
            return self.commit_if_many(round);
        };
        match self.copy(&table.schema(), file, is_packed) {
            Ok(made) => {
                let made = vec![Arc::new(made)];
                self.merged.push(Merged { table: Arc::clone(table), task, made, is_moved: true });
            }
            Err(error) => self.shared.leave_damaged(error, &task.files, round)?,
        }
        self.commit_if_many(round)
    }

    fn merge_one(
        &mut self,
        table: &Arc<Table>,
        task: MergeTask,
        keep: Keep,
        is_packed: bool,
        round: &mut Round,
    ) -> Result<()> {
        let shared = self.shared;
        let pack = if is_packed { Some(self.pack()) } else { None };
        let done = shared.run_undamaged(table, task, keep, pack, round)?;
        self.merged.extend(done);
        Ok(())
    }

    fn pack(&mut self) -> &PackWriter<'a> {
        let shared = self.shared;
        self.pack.get_or_insert_with(|| PackWriter::new(shared.vfs.as_ref(), &shared.root, shared.new_id()))
    }

    /// Writes a data file once more, byte for byte; returns it as it is known at its new place.
    fn copy(&mut self, schema: &TableSchema, file: &DataFile, is_packed: bool) -> Result<DataFile> {
        if !is_packed {
            let copy = self.shared.copy_out(schema, file)?;
            self.published.push(copy.path.clone());
            return Ok(copy);
        }
        let shared = self.shared;
        let _memory = shared.memory.reserve(usize::try_from(file.bytes).unwrap_or(usize::MAX));
        let bytes = read_whole(shared.vfs.as_ref(), &shared.root, file)?;
        let (database, table) = (&*schema.database, &*schema.table);
        let path = self.pack().append(Owner { database, table, day: file.day() }, &bytes)?;
        Ok(DataFile { path, ..DataFile::clone(file) })
    }

    fn commit_if_many(&mut self, round: &mut Round) -> Result<()> {
        if self.merged.len() >= MAX_MERGES || self.pack.as_ref().is_some_and(|pack| pack.bytes() >= MAX_PACK_BYTES) {
            return self.commit(round);
        }
        Ok(())
    }

    /// Makes durable what was merged, and commits it.
    pub(super) fn commit(&mut self, round: &mut Round) -> Result<()> {
        let merged = std::mem::take(&mut self.merged);
        if let Err(error) = self.publish(&merged) {
            self.shared.folders.note_unsynced(&error);
            let made = merged.iter().flat_map(|done| &done.made);
            self.shared.leftovers.leave_files(made.map(Arc::as_ref));
            return Err(error);
        }
        if !merged.is_empty() {
            self.committed += self.shared.commit_and_retire(merged, round)?;
        }
        Ok(())
    }

    /// Returns whether any of them are in the manifest.
    pub(super) fn has_committed(&self) -> bool {
        self.committed > 0
    }

    fn publish(&mut self, merged: &[Merged]) -> Result<()> {
        let mut published = std::mem::take(&mut self.published);
        let is_used = merged.iter().flat_map(|done| &done.made).any(|file| file.packed().is_some());
        if let Some(pack) = self.pack.take().filter(|_| is_used) {
            published.extend(pack.finish()?);
        }
        if published.is_empty() {
            return Ok(());
        }
        let folders = self.shared.folders.publish()?;
        folders.sync_table(published.iter().map(String::as_str))?;
        folders.finish()
    }
}

impl Shared {
    /// Writes a data file once more, byte for byte, as a file of its own, whose folder the caller syncs; returns it as it is
    /// known at its new place.
    pub(super) fn copy_out(&self, schema: &TableSchema, file: &DataFile) -> Result<DataFile> {
        let (vfs, root) = (self.vfs.as_ref(), self.root.as_path());
        let _memory = self.memory.reserve(usize::try_from(file.bytes).unwrap_or(usize::MAX));
        let bytes = read_whole(vfs, root, file)?;
        let path = data_file_path(schema, file.day(), self.id_written(file.written_ns()));
        write_whole(vfs, root, &path, &bytes).inspect_err(|_| self.leftovers.leave(&path))?;
        Ok(DataFile { path, ..DataFile::clone(file) })
    }
}
