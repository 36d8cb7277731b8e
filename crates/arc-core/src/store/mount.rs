//! A file system whose data files and manifest are objects of a store.
//!
//! Owns the way from a path below `data/` and `meta/` to an object; everything else goes to the
//! local file system as it is. A data file is gathered in a local file, and is an object from its
//! rename on: then it is durable, and syncing it or its folder does nothing. Never replaces an
//! object, and never writes one of the manifest: that is for
//! [`StoreLocation`](super::StoreLocation).

use std::{
    any::Any,
    collections::BTreeMap,
    io,
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use bytes::Bytes;
use futures::TryStreamExt;
use object_store::{ObjectMeta, ObjectStoreExt, path::Path as StorePath};
use parking_lot::Mutex;

use super::{
    blocks::{BlockCache, FetchedBlock},
    client::{StoreClient, io_error, read},
    spool::{Fetched, SPOOL_DIR, Spool, copy_from},
};
use crate::{
    model::{DATA_DIR, META_DIR, TEMPORARY_SUFFIX},
    vfs::{DirEntry, Vfs, VfsFile},
};

/// [`Vfs`] of a data directory whose data files are elsewhere.
#[derive(Debug)]
pub(super) struct StoreMount {
    local: Arc<dyn Vfs>,
    root: PathBuf,
    client: Arc<StoreClient>,
    prefix: StorePath,
    spool: Arc<Spool>,
    blocks: BlockCache,
}

/// What a path stands for.
enum Mounted {
    /// A file or folder of the local file system.
    Local,
    /// A data file that is being written, in the local file system.
    Unfinished(PathBuf),
    /// An object, or a folder of such.
    Object(StorePath),
}

impl StoreMount {
    pub(super) fn new(local: Arc<dyn Vfs>, root: &Path, client: Arc<StoreClient>, prefix: StorePath) -> Self {
        let spool = Arc::new(Spool::new(Arc::clone(&local), root.join(SPOOL_DIR), Arc::clone(&client)));
        Self { local, root: root.to_owned(), client, prefix, spool, blocks: BlockCache::default() }
    }

    fn resolve(&self, path: &Path) -> io::Result<Mounted> {
        let Ok(below) = path.strip_prefix(&self.root) else { return Ok(Mounted::Local) };
        if !below.starts_with(DATA_DIR) && !below.starts_with(META_DIR) {
            return Ok(Mounted::Local);
        }
        let unusable = || io::Error::new(io::ErrorKind::InvalidInput, "the path cannot be that of an object");
        let below = below.to_str().ok_or_else(unusable)?;
        let name = below.rsplit('/').next().unwrap_or(below);
        if name.ends_with(TEMPORARY_SUFFIX) {
            return Ok(Mounted::Unfinished(self.spool.unfinished(name)));
        }
        // `parse` takes the path as it is on disk; `join` would encode the encoded names once more.
        StorePath::parse(format!("{}/{below}", self.prefix)).map(Mounted::Object).map_err(|_| unusable())
    }

    /// Returns the path in the local file system, for calls that objects do not have.
    fn local_path(&self, path: &Path) -> io::Result<PathBuf> {
        match self.resolve(path)? {
            Mounted::Local => Ok(path.to_owned()),
            Mounted::Unfinished(local) => Ok(local),
            Mounted::Object(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    fn head(&self, key: &StorePath) -> io::Result<ObjectMeta> {
        let head = || {
            let (store, key) = (self.client.store(), key.clone());
            async move { store.head(&key).await }
        };
        self.client.ask(head).map_err(io_error)
    }

    fn open_object(&self, key: &StorePath) -> io::Result<Box<dyn VfsFile>> {
        let meta = self.head(key)?;
        Ok(Box::new(ObjectFile { spool: Arc::clone(&self.spool), meta, fetched: Mutex::default() }))
    }

    /// Lists one folder; a folder that has no objects is not there.
    fn list_objects(&self, key: &StorePath) -> io::Result<Vec<DirEntry>> {
        let list = || {
            let (store, key) = (self.client.store(), key.clone());
            async move { store.list_with_delimiter(Some(&key)).await }
        };
        let listed = self.client.ask(list).map_err(io_error)?;
        let mut entries = BTreeMap::new();
        let name = |location: &StorePath| location.filename().map(str::to_owned);
        for (object, name) in listed.objects.iter().filter_map(|object| Some((object, name(&object.location)?))) {
            let (len, modified) = (object.size, object.last_modified.into());
            entries.insert(name.clone(), DirEntry { name, is_dir: false, len, modified });
        }
        for name in listed.common_prefixes.iter().filter_map(name) {
            let modified = SystemTime::UNIX_EPOCH;
            entries.entry(name.clone()).or_insert(DirEntry { name, is_dir: true, len: 0, modified });
        }
        Ok(entries.into_values().collect())
    }
}

impl Vfs for StoreMount {
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        match self.resolve(dir)? {
            Mounted::Object(_) => Ok(()),
            _ => self.local.create_dir_all(dir),
        }
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn VfsFile>> {
        match self.resolve(path)? {
            Mounted::Local => self.local.create_new(path),
            Mounted::Unfinished(local) => Ok(Box::new(UnfinishedFile(self.spool.create(&local)?))),
            Mounted::Object(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn VfsFile>> {
        self.local.open(&self.local_path(path)?)
    }

    fn open_read(&self, path: &Path) -> io::Result<Box<dyn VfsFile>> {
        match self.resolve(path)? {
            Mounted::Local => self.local.open_read(path),
            Mounted::Unfinished(local) => self.local.open_read(&local),
            Mounted::Object(key) => self.open_object(&key),
        }
    }

    fn open_range(&self, path: &Path, range: Range<u64>) -> io::Result<Box<dyn VfsFile>> {
        match self.resolve(path)? {
            Mounted::Local => self.local.open_range(path, range),
            Mounted::Unfinished(local) => self.local.open_range(&local, range),
            Mounted::Object(key) => {
                let FetchedBlock { modified, bytes, .. } = self.blocks.read(&self.client, &key, &range)?;
                Ok(Box::new(ObjectRange { modified, bytes }))
            }
        }
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        match self.resolve(path)? {
            Mounted::Local => self.local.read(path),
            Mounted::Unfinished(local) => self.local.read(&local),
            Mounted::Object(key) => self.client.ask(|| read(self.client.store(), key.clone())).map_err(io_error),
        }
    }

    /// Puts an object where `to` is one; `from` is gone then.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let from = self.local_path(from)?;
        match self.resolve(to)? {
            Mounted::Object(key) => {
                self.spool.put(&from, &key)?;
                // What stays is removed by the next opening.
                let _ = self.local.remove_file(&from);
                Ok(())
            }
            _ => self.local.rename(&from, &self.local_path(to)?),
        }
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.local.rename_new(&self.local_path(from)?, &self.local_path(to)?)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.local.hard_link(&self.local_path(from)?, &self.local_path(to)?)
    }

    /// Asks once: who removes something does so again later, and does not wait for it.
    fn remove_file(&self, path: &Path) -> io::Result<()> {
        match self.resolve(path)? {
            Mounted::Local => self.local.remove_file(path),
            Mounted::Unfinished(local) => self.local.remove_file(&local),
            Mounted::Object(key) => {
                let store = self.client.store();
                self.client.once(async move { store.delete(&key).await }).map_err(io_error)
            }
        }
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        match self.resolve(dir)? {
            // There are no folders in a store of objects.
            Mounted::Object(_) => Err(io::ErrorKind::Unsupported.into()),
            _ => self.local.remove_dir(dir),
        }
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        match self.resolve(dir)? {
            Mounted::Object(_) => Ok(()),
            _ => self.local.sync_dir(dir),
        }
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        match self.resolve(dir)? {
            Mounted::Object(key) => self.list_objects(&key),
            _ => self.local.list(dir),
        }
    }

    fn list_below(&self, dir: &Path) -> Option<io::Result<Vec<PathBuf>>> {
        let Ok(Mounted::Object(key)) = self.resolve(dir) else { return None };
        let list = || {
            let (store, key) = (self.client.store(), key.clone());
            async move { store.list(Some(&key)).map_ok(|object| object.location).try_collect::<Vec<_>>().await }
        };
        let below = |location: StorePath| {
            let parts = location.as_ref().strip_prefix(key.as_ref())?.strip_prefix('/')?;
            Some(dir.join(parts))
        };
        let listed = self.client.ask(list).map_err(io_error);
        Some(listed.map(|locations| locations.into_iter().filter_map(below).collect()))
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Any + Send + Sync>> {
        self.local.lock(path)
    }
}

/// A data file that is being written. It becomes durable by being put.
#[derive(Debug)]
struct UnfinishedFile(Box<dyn VfsFile>);

impl VfsFile for UnfinishedFile {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn modified(&self) -> io::Result<SystemTime> {
        self.0.modified()
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buf, offset)
    }

    fn write_all_at(&self, parts: &[&[u8]], offset: u64) -> io::Result<()> {
        self.0.write_all_at(parts, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn sync_all(&self) -> io::Result<()> {
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }
}

/// An object open for reading, which is fetched by the first read.
#[derive(Debug)]
struct ObjectFile {
    spool: Arc<Spool>,
    meta: ObjectMeta,
    fetched: Mutex<Option<Arc<Fetched>>>,
}

impl VfsFile for ObjectFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.meta.size)
    }

    fn modified(&self) -> io::Result<SystemTime> {
        Ok(self.meta.last_modified.into())
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut fetched = self.fetched.lock();
        let found = match fetched.as_ref() {
            Some(found) => Arc::clone(found),
            None => Arc::clone(fetched.insert(self.spool.fetch(&self.meta)?)),
        };
        drop(fetched);
        found.read_at(buf, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn sync_all(&self) -> io::Result<()> {
        Ok(())
    }
}

/// Some bytes of an object, which are here.
#[derive(Debug)]
struct ObjectRange {
    modified: SystemTime,
    bytes: Bytes,
}

impl VfsFile for ObjectRange {
    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes.len() as u64)
    }

    fn modified(&self) -> io::Result<SystemTime> {
        Ok(self.modified)
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        Ok(copy_from(&self.bytes, buf, offset))
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn sync_all(&self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
