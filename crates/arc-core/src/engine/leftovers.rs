//! Data files that are in no manifest and will be in none, until they are off the disk.

use std::{collections::BTreeSet, io, sync::Arc};

use super::folders::EngineFolders;
use crate::{model::DataFile, sync::Mutex};

/// Paths of files that were never in the manifest, and may be there, and of packs that nothing
/// needs.
#[derive(Debug)]
pub(super) struct Leftovers {
    folders: Arc<EngineFolders>,
    paths: Mutex<BTreeSet<String>>,
}

impl Leftovers {
    pub(super) fn new(folders: Arc<EngineFolders>) -> Self {
        Self { folders, paths: Mutex::default() }
    }

    /// Takes the path of a file, or pack, that is in no manifest and will be in none. It may be
    /// there or not.
    pub(super) fn leave(&self, path: &str) {
        let mut paths = self.paths.lock();
        if !paths.contains(path) {
            paths.insert(path.to_owned());
        }
    }

    /// Takes files that are in no manifest and will be in none, with the packs that they are in:
    /// all of what is in these.
    pub(super) fn leave_files<'f>(&self, files: impl IntoIterator<Item = &'f DataFile>) {
        files.into_iter().for_each(|file| self.leave(file.stored_path()));
    }

    /// Removes what was left; what cannot be removed stays for the next time, and at last for the
    /// next opening.
    pub(super) fn remove(&self) {
        let mut paths = std::mem::take(&mut *self.paths.lock());
        paths.retain(|path| match self.folders.remove(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::debug!(path, %error, "cannot remove a data file that was never committed");
                true
            }
            _ => false,
        });
        self.paths.lock().extend(paths);
    }
}
