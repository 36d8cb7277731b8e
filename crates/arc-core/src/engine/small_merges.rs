//! Merges of small files, of as many tables as there are: what comes of them is committed together.
//!
//! A table with few rows has few to merge, and a commit and two syncs for each of ten thousand tables would cost more than
//! the merges. Rows of a day that goes on stay in a pack, a new one; those of a day that is over get files of their own.

use std::sync::Arc;

use super::{
    compaction::{Merged, Round},
    shared::Shared,
};
use crate::{
    Result,
    compaction::{Keep, Task},
    datafile::{FolderSyncs, PackWriter},
    registry::Table,
};

/// Merges that are committed together, at most: what is written before a commit is for nothing if the process dies.
const MAX_MERGES: usize = 1024;
/// Bytes of the pack that is written meanwhile, at most.
const MAX_PACK_BYTES: u64 = 64 << 20;

/// Merges that wait for their commit.
pub(super) struct SmallMerges<'a> {
    shared: &'a Shared,
    merged: Vec<Merged>,
    pack: Option<PackWriter<'a>>,
    committed: usize,
}

impl<'a> SmallMerges<'a> {
    pub(super) fn new(shared: &'a Shared) -> Self {
        Self { shared, merged: Vec::new(), pack: None, committed: 0 }
    }

    /// Does the merges of a table, which are committed with those of other tables. What is committed is not planned anew here.
    pub(super) fn merge(&mut self, table: &Arc<Table>, tasks: Vec<Task>, keep: Keep, round: &mut Round) -> Result<()> {
        for task in tasks {
            let shared = self.shared;
            let new_pack = || PackWriter::new(shared.vfs.as_ref(), &shared.root, shared.new_id());
            let pack = if task.is_packed() { Some(&*self.pack.get_or_insert_with(new_pack)) } else { None };
            let done = shared.run_undamaged(table, task, keep, pack, round)?;
            self.merged.extend(done);
        }
        if self.merged.len() >= MAX_MERGES || self.pack.as_ref().is_some_and(|pack| pack.bytes() >= MAX_PACK_BYTES) {
            return self.commit(round);
        }
        Ok(())
    }

    /// Makes durable what was merged, and commits it.
    pub(super) fn commit(&mut self, round: &mut Round) -> Result<()> {
        let merged = std::mem::take(&mut self.merged);
        if let Err(error) = self.finish_pack(&merged) {
            let made = merged.iter().flat_map(|done| &done.made);
            self.shared.compactor.retired.leave_files(made.map(Arc::as_ref));
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

    fn finish_pack(&mut self, merged: &[Merged]) -> Result<()> {
        let is_used = merged.iter().flat_map(|done| &done.made).any(|file| file.packed().is_some());
        let Some(pack) = self.pack.take().filter(|_| is_used) else { return Ok(()) };
        let Some(path) = pack.finish()? else { return Ok(()) };
        let folders = FolderSyncs::new(self.shared.vfs.as_ref(), &self.shared.root, &self.shared.folders);
        folders.sync_table([path.as_str()].into_iter())?;
        folders.finish()
    }
}
