//! The files below the root: what a location means, and what has to be synced when.

use std::{
    collections::HashSet,
    io,
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use object_store::{ObjectMeta, Result, path::Path as StorePath};
use parking_lot::Mutex;

use super::{
    super::{
        PutError,
        publish::{Existing, TemporaryNames, discard, object_of_temporary, publish, stage},
    },
    buffers::Buffers,
    failed, generic,
};
use crate::vfs::{DirEntry, Vfs, VfsFile};

#[derive(Debug)]
pub(super) struct Files {
    pub(super) vfs: Arc<dyn Vfs>,
    root: PathBuf,
    buffers: Arc<Buffers>,
    names: TemporaryNames,
    /// Folders whose names are durable up to the root.
    durable_folders: Mutex<HashSet<PathBuf>>,
    /// Folders that were synced since this process began to use them.
    synced_folders: Mutex<HashSet<PathBuf>>,
    /// What may or may not be durable after a failed sync.
    doubt: Mutex<Doubt>,
}

#[derive(Debug, Default)]
struct Doubt {
    reason: Option<String>,
    paths: HashSet<PathBuf>,
}

/// A file open for reading.
#[derive(Debug)]
pub(super) struct Opened {
    file: Box<dyn VfsFile>,
    path: PathBuf,
    buffers: Arc<Buffers>,
    pub(super) meta: ObjectMeta,
}

impl Opened {
    /// Fails on a folder, which can be opened as well.
    pub(super) fn check_is_file(&self) -> Result<()> {
        self.file.read_at(&mut [0], 0).map_err(|e| failed(&self.path, "read", e)).map(|_| ())
    }

    /// Returns the bytes of a range; those past the end of the file are left out.
    pub(super) fn read(&self, range: Range<u64>) -> Result<Bytes> {
        let end = range.end.min(self.meta.size);
        let Some(len) = end.checked_sub(range.start).filter(|_| range.start < self.meta.size || range.is_empty())
        else {
            return Err(failed(&self.path, "read past the end of", io::ErrorKind::InvalidInput.into()));
        };
        let len = usize::try_from(len).map_err(generic)?;
        let mut bytes = self.buffers.take(len);
        let read = self.file.read_at(bytes.as_mut(), range.start).map_err(|e| failed(&self.path, "read", e))?;
        if read < len {
            return Err(failed(&self.path, "read", io::ErrorKind::UnexpectedEof.into()));
        }
        Ok(Bytes::from_owner(bytes))
    }
}

impl Files {
    pub(super) fn new(vfs: Arc<dyn Vfs>, root: &Path, idle_bytes: usize) -> Self {
        let buffers = Arc::new(Buffers::new(idle_bytes));
        let root = root.to_owned();
        let durable_folders = Mutex::new(HashSet::from([root.clone()]));
        let (names, synced_folders, doubt) = Default::default();
        Self { vfs, root, buffers, names, durable_folders, synced_folders, doubt }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Removes the files that were never given their names, in all folders.
    pub(super) fn remove_unfinished(&self) -> crate::Result<()> {
        let mut folders = vec![self.root.clone()];
        while let Some(folder) = folders.pop() {
            let entries = self.vfs.list(&folder).map_err(|e| crate::Error::io("list", &folder, e))?;
            for entry in entries {
                let path = folder.join(&entry.name);
                if entry.is_dir {
                    folders.push(path);
                } else if object_of_temporary(&entry.name).is_some() {
                    self.vfs.remove_file(&path).map_err(|e| crate::Error::io("remove", &path, e))?;
                }
            }
        }
        Ok(())
    }

    /// Returns the file of an object.
    pub(super) fn path(&self, location: &StorePath) -> Result<PathBuf> {
        let unusable = |reason: &str| generic(format!("{location} cannot be a file: {reason}"));
        let name = location.filename().ok_or_else(|| unusable("it has no name"))?;
        if object_of_temporary(name).is_some() {
            return Err(unusable("unfinished files have such names"));
        }
        self.folder(location)
    }

    /// Returns the folder of a prefix, or the file of an object whose name was checked.
    fn folder(&self, prefix: &StorePath) -> Result<PathBuf> {
        // A location never has such parts, however it was made; a file outside the root would be
        // too high a price if it did.
        let outside = |part: &str| part.is_empty() || part == "." || part == ".." || part.contains(['/', '\0']);
        if !prefix.is_root() && prefix.as_ref().split('/').any(outside) {
            return Err(generic(format!("{prefix} leads out of the root")));
        }
        Ok(self.root.join(prefix.as_ref()))
    }

    /// Puts an object, durable when this returns `Ok`.
    pub(super) fn put(&self, location: &StorePath, parts: &[&[u8]], existing: Existing) -> Result<()> {
        let path = self.path(location)?;
        let temporary = self.begin(&path)?;
        stage(self.vfs.as_ref(), &temporary, parts).map_err(generic)?;
        self.publish(&temporary, &path, existing, |found| {
            found.len() == parts.iter().map(|part| part.len()).sum::<usize>() && found == parts.concat()
        })
    }

    /// Returns the name for a new file that is to become `path`, in a folder that is there and
    /// stays.
    pub(super) fn begin(&self, path: &Path) -> Result<PathBuf> {
        if let Some(reason) = &self.doubt.lock().reason {
            return Err(generic(reason.clone()));
        }
        self.make_folder(path.parent().unwrap_or(path))?;
        Ok(self.names.next(path))
    }

    /// Gives a file that was synced its name.
    pub(super) fn publish(
        &self,
        temporary: &Path,
        path: &Path,
        existing: Existing,
        is_ours: impl FnOnce(&[u8]) -> bool,
    ) -> Result<()> {
        match publish(self.vfs.as_ref(), [temporary, path], existing, is_ours) {
            Ok(()) => Ok(()),
            Err(PutError::Taken) => Err(failed(path, "put", io::ErrorKind::AlreadyExists.into())),
            Err(PutError::NotThere(error)) => Err(generic(error)),
            Err(PutError::Unknown(error)) => {
                self.doubt(path, &error);
                Err(generic(error))
            }
        }
    }

    pub(super) fn open(&self, location: &StorePath) -> Result<Opened> {
        let path = self.path(location)?;
        if self.doubt.lock().paths.contains(&path) {
            return Err(generic(format!("{} may or may not be durable", path.display())));
        }
        let file = self.vfs.open_read(&path).map_err(|e| failed(&path, "open", e))?;
        let size = file.len().map_err(|e| failed(&path, "read", e))?;
        let modified = file.modified().map_err(|e| failed(&path, "read", e))?;
        let meta =
            ObjectMeta { location: location.clone(), last_modified: modified.into(), size, e_tag: None, version: None };
        Ok(Opened { file, path, buffers: Arc::clone(&self.buffers), meta })
    }

    pub(super) fn delete(&self, location: &StorePath) -> Result<()> {
        let path = self.path(location)?;
        if let Some(reason) = &self.doubt.lock().reason {
            return Err(generic(reason.clone()));
        }
        self.vfs.remove_file(&path).map_err(|e| failed(&path, "delete", e))?;
        self.sync_names(&path)
    }

    pub(super) fn copy(&self, from: &StorePath, to: &StorePath, existing: Existing) -> Result<()> {
        // Opening it refuses one that is in doubt, or is no file.
        let source = self.open(from)?;
        source.check_is_file()?;
        // Another process may have put it without us.
        source.file.sync_all().map_err(|e| failed(&source.path, "sync", e))?;
        let path = self.path(to)?;
        if path == source.path && existing == Existing::Replace {
            return Ok(());
        }
        let temporary = self.begin(&path)?;
        self.vfs.hard_link(&source.path, &temporary).map_err(|e| failed(&source.path, "link", e))?;
        // A caller that has the name has other bytes, or had them first.
        let copied = self.publish(&temporary, &path, existing, |_| false);
        // A rename between two names of one file does nothing at all.
        discard(self.vfs.as_ref(), &temporary);
        copied
    }

    /// Returns the objects below a prefix, in any depth.
    pub(super) fn list_all(&self, prefix: &StorePath) -> Result<Vec<ObjectMeta>> {
        let mut objects = Vec::new();
        let mut folders = vec![prefix.clone()];
        while let Some(folder) = folders.pop() {
            let (found, below) = self.list_folder(&folder)?;
            objects.extend(found);
            folders.extend(below);
        }
        Ok(objects)
    }

    /// Returns the objects and folders right below a prefix.
    pub(super) fn list_folder(&self, prefix: &StorePath) -> Result<(Vec<ObjectMeta>, Vec<StorePath>)> {
        let dir = self.folder(prefix)?;
        let entries = match self.sync_found(&dir).and_then(|()| self.vfs.list(&dir)) {
            Err(e) if is_no_folder(&e) => return Ok(Default::default()),
            entries => entries.map_err(|e| failed(&dir, "list", e))?,
        };
        let (mut objects, mut folders) = (Vec::new(), Vec::new());
        for DirEntry { name, is_dir, len, modified } in entries {
            let location = if prefix.is_root() { name.clone() } else { format!("{prefix}/{name}") };
            // Names that no location can have are not ours.
            let Ok(location) = StorePath::parse(&location) else { continue };
            let is_hidden = object_of_temporary(&name).is_some() || self.doubt.lock().paths.contains(&dir.join(&name));
            if is_dir {
                folders.push(location);
            } else if !is_hidden {
                let (last_modified, size) = (modified.into(), len);
                objects.push(ObjectMeta { location, last_modified, size, e_tag: None, version: None });
            }
        }
        Ok((objects, folders))
    }

    /// Makes durable what a process that was killed may have left in a folder, once.
    fn sync_found(&self, dir: &Path) -> io::Result<()> {
        if self.synced_folders.lock().contains(dir) {
            return Ok(());
        }
        self.vfs.sync_dir(dir)?;
        self.synced_folders.lock().insert(dir.to_owned());
        Ok(())
    }

    /// Creates a folder where it is missing; its name is durable, and those of the folders that
    /// lead to it.
    fn make_folder(&self, dir: &Path) -> Result<()> {
        if self.durable_folders.lock().contains(dir) {
            return Ok(());
        }
        self.vfs.create_dir_all(dir).map_err(|e| failed(dir, "create folder", e))?;
        // The root is the caller's; `dir` itself is synced with the object in it.
        let below_root = |folder: &&Path| folder.starts_with(&self.root);
        for folder in dir.ancestors().skip(1).take_while(below_root) {
            self.vfs.sync_dir(folder).map_err(|e| failed(folder, "sync folder", e))?;
        }
        self.durable_folders.lock().insert(dir.to_owned());
        Ok(())
    }

    fn sync_names(&self, path: &Path) -> Result<()> {
        let dir = path.parent().unwrap_or(path);
        self.vfs.sync_dir(dir).map_err(|e| {
            self.doubt(path, &e);
            failed(dir, "sync folder", e)
        })
    }

    fn doubt(&self, path: &Path, error: &dyn std::error::Error) {
        let mut doubt = self.doubt.lock();
        let reason = || format!("{} may or may not be durable: {error}", path.display());
        doubt.reason.get_or_insert_with(reason);
        doubt.paths.insert(path.to_owned());
    }
}

fn is_no_folder(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
