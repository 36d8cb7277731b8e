//! A folder for what a branch into an object store needs on its way, and the state that such a branch is
//! to have.
//!
//! A bucket has no log. So the frames after the state are flushed here, in a data directory that lives for
//! as long as that takes, and the branch begins with its data files beside those of the state.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use super::copied_log;
use crate::{
    Engine, Error, Options, Result,
    catalog::{Manifest, ManifestState, create_folders, mark_log},
    engine::Origin,
    maintenance::backup::manifest_dir,
    model::{PastMoment, WAL_DIR},
    vfs::Vfs,
};

/// A folder of this process, below that of the system for temporary files; it goes when this is dropped.
#[derive(Debug)]
pub(super) struct WorkFolder {
    vfs: Arc<dyn Vfs>,
    path: PathBuf,
}

impl WorkFolder {
    /// Makes a folder that nobody else has.
    pub(super) fn make(origin: &Origin<'_>) -> Result<Self> {
        let name = format!("arc-branch-{:016x}{:016x}", origin.random.next(), origin.random.next());
        let path = std::env::temp_dir().join(name);
        origin.vfs.create_dir_all(&path).map_err(|e| Error::io("create folder", &path, e))?;
        Ok(Self { vfs: Arc::clone(&origin.vfs), path })
    }

    /// Returns the data directory in which frames are flushed.
    pub(super) fn flushing(&self) -> PathBuf {
        self.path.join("flush")
    }

    /// Returns the folder that stands for the bucket.
    pub(super) fn bucket(&self) -> PathBuf {
        self.path.join("bucket")
    }

    /// Returns the state that a branch of `origin` has once all of its frames are in data files; those
    /// files that the origin has not are below [`Self::flushing`]. If the log is not there any more, it
    /// is a newer state, and its origin is returned with it.
    pub(super) fn flushed<'e>(
        &self,
        engine: &'e Engine,
        (origin, moment): (Origin<'e>, Option<&PastMoment>),
    ) -> Result<(Origin<'e>, ManifestState)> {
        let (vfs, root) = (Arc::clone(&origin.vfs), self.flushing());
        create_folders(vfs.as_ref(), &root)?;
        let (origin, log, frames) = copied_log(engine, (origin, moment), &root.join(WAL_DIR))?;
        let mut state = origin.state.clone();
        state.directory = None;
        state.snapshots.clear();
        if frames.count == 0 {
            return Ok((origin, state));
        }
        log.publish()?;
        Manifest::write_anew(&vfs, &manifest_dir(&root), state)?;
        mark_log(vfs.as_ref(), &root)?;
        let options = Options { compaction: false, history: Duration::ZERO, ..engine.options().clone() };
        let flushing = Engine::builder(&root).options(options).vfs(Arc::clone(&vfs)).open()?;
        flushing.flush()?;
        flushing.close()?;
        let state = Manifest::follow(vfs, &manifest_dir(&root))?.state().clone();
        if state.flushed < frames.last {
            return Err(Error::internal(format!("flushed up to frame {} of {}", state.flushed, frames.last)));
        }
        Ok((origin, state))
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        // What stays, a system that clears its temporary files removes.
        remove_all(self.vfs.as_ref(), &self.path);
    }
}

/// Removes a folder with all that is in it. Best effort.
fn remove_all(vfs: &dyn Vfs, folder: &Path) {
    for entry in vfs.list(folder).unwrap_or_default() {
        let path = folder.join(&entry.name);
        if entry.is_dir {
            remove_all(vfs, &path);
        } else {
            let _ = vfs.remove_file(&path);
        }
    }
    let _ = vfs.remove_dir(folder);
}
