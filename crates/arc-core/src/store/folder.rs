//! A folder of the file system as a location for objects.
//!
//! Owns nothing but the folder's path. A caller that writes to it holds the lock of the data
//! directory, so that no other writer can be about to put the same name.

use std::{
    fmt::Debug,
    io,
    ops::Deref,
    path::{Path, PathBuf},
};

use super::{
    FoundObject, ObjectLocation, PutError,
    publish::{Existing, TemporaryNames, publish, stage},
};
use crate::{Error, Result, vfs::Vfs};

/// [`ObjectLocation`] in one folder.
#[derive(Debug)]
pub(crate) struct FolderLocation<V> {
    vfs: V,
    dir: PathBuf,
    names: TemporaryNames,
}

impl<V> FolderLocation<V> {
    pub(crate) fn new(vfs: V, dir: &Path) -> Self {
        Self { vfs, dir: dir.to_owned(), names: TemporaryNames::default() }
    }
}

impl<V: Deref<Target = dyn Vfs> + Debug + Send + Sync> ObjectLocation for FolderLocation<V> {
    fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// A crash between the rename and the sync of an object left it in the cache only: it must not
    /// be lost after it has been believed. The same goes for the folder itself.
    fn prepare(&self) -> Result<()> {
        self.vfs.create_dir_all(&self.dir).map_err(|e| Error::io("create folder", &self.dir, e))?;
        for folder in self.dir.parent().into_iter().chain([self.dir.as_path()]) {
            self.vfs.sync_dir(folder).map_err(|e| Error::io("sync folder", folder, e))?;
        }
        Ok(())
    }

    /// A caller that writes to it holds the lock of the data directory.
    fn is_locked(&self) -> bool {
        true
    }

    fn put_new(&self, name: &str, bytes: &[u8]) -> Result<(), PutError> {
        let path = self.path(name);
        let temporary = self.names.next(&path);
        stage(&*self.vfs, &temporary, &[bytes]).map_err(PutError::NotThere)?;
        // No other caller writes the same bytes.
        publish(&*self.vfs, [&temporary, &path], Existing::Keep, |found| found == bytes)
    }

    fn get(&self, name: &str) -> io::Result<Vec<u8>> {
        self.vfs.read(&self.path(name))
    }

    fn list(&self) -> io::Result<Vec<FoundObject>> {
        match self.vfs.list(&self.dir) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(e) => Err(e),
            Ok(entries) => {
                Ok(entries.into_iter().map(|entry| FoundObject { name: entry.name, settled: true }).collect())
            }
        }
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.vfs.remove_file(&self.path(name))
    }
}
