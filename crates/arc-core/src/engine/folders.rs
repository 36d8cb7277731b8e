//! The folders of data files of an open engine: which are durable, and what to do once one is not.
//!
//! Owns the way in which data files are published and removed. Never decides which files: `flush`,
//! compaction and `retired` do.

use std::{io, sync::Arc};

use super::{context::EngineContext, queue::Queue};
use crate::{
    Error, Result,
    datafile::{FolderSyncs, KnownFolders, PastFolder, give_back, remove_data_file},
};

/// See the module.
#[derive(Debug)]
pub(super) struct EngineFolders {
    context: Arc<EngineContext>,
    queue: Arc<Queue>,
    known: KnownFolders,
}

impl EngineFolders {
    pub(super) fn new(context: Arc<EngineContext>, queue: Arc<Queue>) -> Self {
        Self { context, queue, known: KnownFolders::default() }
    }

    /// Fails once a sync of a folder has failed: nothing is published before the directory is opened
    /// anew.
    pub(super) fn check(&self) -> Result<()> {
        self.known.check()
    }

    /// Begins to publish files together.
    ///
    /// # Errors
    ///
    /// As [`check`](Self::check).
    pub(super) fn publish(&self) -> Result<FolderSyncs<'_>> {
        self.check()?;
        Ok(FolderSyncs::new(self.context.vfs.as_ref(), &self.context.root, &self.known))
    }

    /// Looks, after a failure to write data files, whether a folder could not be synced: then
    /// nothing is flushed or merged until the directory is opened again, and no more points are
    /// taken.
    pub(super) fn note_unsynced(&self, error: &Error) {
        self.known.note_error(error);
        if let Some(reason) = self.known.failure()
            && self.queue.close(&format!("data files cannot be relied on: {reason}"))
        {
            tracing::error!(reason, "a folder could not be synced, writes are refused from now on");
        }
    }

    /// Removes a data file or a pack, by its path below the data directory.
    pub(super) fn remove(&self, path: &str) -> io::Result<()> {
        self.known.forget(path);
        remove_data_file(self.context.vfs.as_ref(), &self.context.root, path)
    }

    /// Moves files to `past`; returns those that cannot be moved now.
    pub(super) fn move_to(&self, past: &mut PastFolder, paths: Vec<String>) -> Vec<String> {
        paths.iter().for_each(|path| self.known.forget(path));
        past.take(self.context.vfs.as_ref(), &self.context.root, paths)
    }

    /// Moves files back among those of their tables.
    pub(super) fn give_back<'p>(&self, paths: impl Iterator<Item = &'p str>) {
        give_back(self.context.vfs.as_ref(), &self.context.root, &self.known, paths);
    }
}
