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

    fn has(&self, name: &str) -> io::Result<bool> {
        match self.vfs.open_read(&self.path(name)) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
            opened => opened.map(|_| true),
        }
    }

    fn list(&self) -> io::Result<Vec<FoundObject>> {
        match self.vfs.list(&self.dir) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(e) => Err(e),
            Ok(entries) => Ok(entries
                .into_iter()
                .map(|entry| FoundObject { name: entry.name, settled: true, bytes: entry.len })
                .collect()),
        }
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.vfs.remove_file(&self.path(name))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        store::PutError,
        vfs::{CrashFs, Fault, FaultFs},
    };

    const DIR: &str = "/meta";

    fn location(vfs: Arc<dyn Vfs>) -> FolderLocation<Arc<dyn Vfs>> {
        FolderLocation::new(vfs, Path::new(DIR))
    }

    fn names(location: &FolderLocation<Arc<dyn Vfs>>) -> Vec<String> {
        location.list().unwrap().into_iter().map(|found| found.name).collect()
    }

    #[test]
    fn an_object_that_was_put_survives_any_loss_of_power() {
        let disk = CrashFs::new();
        let location = location(Arc::new(disk.clone()));
        assert!(names(&location).is_empty(), "the folder is not there yet");
        location.prepare().unwrap();
        location.put_new("1", b"first").unwrap();
        for image in disk.power_cut().images(1, 50) {
            assert_eq!(image.get(&location.path("1")), Some(b"first".as_slice()));
        }
    }

    #[test]
    fn a_name_that_is_taken_keeps_its_object_and_the_same_one_may_come_again() {
        let location = location(Arc::new(CrashFs::new()));
        location.prepare().unwrap();
        location.put_new("1", b"first").unwrap();
        assert!(matches!(location.put_new("1", b"second"), Err(PutError::Taken)));
        location.put_new("1", b"first").unwrap();
        assert_eq!(location.get("1").unwrap(), b"first");
        assert_eq!(names(&location), ["1"], "nothing temporary is left");
        location.remove("1").unwrap();
        assert!(names(&location).is_empty());
    }

    #[test]
    fn whichever_call_fails_what_a_put_says_is_so() {
        let mut seen = [0; 3];
        for nth in 1.. {
            let disk = CrashFs::new();
            location(Arc::new(disk.clone())).prepare().unwrap();
            let faults = Arc::new(FaultFs::new(Arc::new(disk.clone())));
            let location = location(faults.clone());
            faults.set(Fault::nth(nth, io::ErrorKind::Other));
            let put = location.put_new("1", b"first");
            let is_done = faults.failed().is_empty();
            let is_there = |image: crate::vfs::Image| image.get(&location.path("1")).is_some();
            match put {
                Ok(()) => {
                    seen[0] += 1;
                    assert!(disk.power_cut().images(nth, 50).all(is_there), "call {nth}");
                }
                Err(PutError::NotThere(_)) => {
                    seen[1] += 1;
                    assert!(!disk.power_cut().images(nth, 50).any(is_there), "call {nth}");
                }
                Err(PutError::Unknown(_)) => seen[2] += 1,
                Err(PutError::Taken) => panic!("call {nth}: nothing else has the name"),
            }
            if is_done {
                break;
            }
        }
        assert!(seen.iter().all(|count| *count > 0), "stored, not there, unknown: {seen:?}");
    }
}
