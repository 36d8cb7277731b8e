//! Local files on their way to and from an object store.
//!
//! Owns the folder `tmp/store` of a data directory: files that are written there before they are
//! put as one object, and files that are fetched before they are read in any order. So neither
//! takes more memory than a part of it, and a part that fails is asked for again alone. Nothing
//! here is ever synced: what counts is in the store.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use object_store::{MultipartUpload, ObjectMeta, ObjectStoreExt, PutPayload, path::Path as StorePath};
use parking_lot::Mutex;

use super::{
    Patience,
    client::{PutFailure, StoreClient, check_length, generic, io_error},
};
use crate::vfs::{Vfs, VfsFile};

/// The folder, below the data directory.
pub(super) const SPOOL_DIR: &str = "tmp/store";

/// Objects up to this share of a part are read in memory.
const SMALL_SHARE: u64 = 8;

/// See the module.
#[derive(Debug)]
pub(super) struct Spool {
    pub(super) local: Arc<dyn Vfs>,
    dir: PathBuf,
    pub(super) client: Arc<StoreClient>,
    /// Numbers the files that are fetched.
    next: AtomicU64,
    /// What was read last: a file is read once for its checksum, and once more for its rows.
    last: Mutex<Option<Arc<Fetched>>>,
}

/// An object that is here, whole.
#[derive(Debug)]
pub(super) struct Fetched {
    meta: ObjectMeta,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Memory(Bytes),
    File(SpoolFile),
}

/// A local file that goes away once nothing reads it.
#[derive(Debug)]
struct SpoolFile {
    local: Arc<dyn Vfs>,
    path: PathBuf,
    file: Box<dyn VfsFile>,
}

impl Drop for SpoolFile {
    fn drop(&mut self) {
        // What stays is removed by the next opening.
        let _ = self.local.remove_file(&self.path);
    }
}

impl Fetched {
    pub(super) fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let bytes = match &self.content {
            Content::Memory(bytes) => bytes,
            Content::File(file) => return file.file.read_at(buf, offset),
        };
        Ok(copy_from(bytes, buf, offset))
    }
}

/// Copies what there is from `offset` on, as far as there is room; returns how much that is.
pub(super) fn copy_from(bytes: &Bytes, buf: &mut [u8], offset: u64) -> usize {
    let offset = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
    let found = bytes.slice(offset..offset.saturating_add(buf.len()).min(bytes.len()));
    if let Some(room) = buf.get_mut(..found.len()) {
        room.copy_from_slice(&found);
    }
    found.len()
}

impl Spool {
    pub(super) fn new(local: Arc<dyn Vfs>, dir: PathBuf, client: Arc<StoreClient>) -> Self {
        Self { local, dir, client, next: AtomicU64::new(0), last: Mutex::default() }
    }

    fn part_bytes(&self) -> u64 {
        self.client.options.part_bytes.max(1)
    }

    /// Returns the local file of an object that is being written. The names of data files are
    /// unique, wherever they are.
    pub(super) fn unfinished(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    pub(super) fn create(&self, path: &Path) -> io::Result<Box<dyn VfsFile>> {
        self.local.create_dir_all(&self.dir)?;
        self.local.create_new(path)
    }

    /// Returns an object's bytes, all of which are here then.
    pub(super) fn fetch(&self, meta: &ObjectMeta) -> io::Result<Arc<Fetched>> {
        let mut last = self.last.lock();
        if let Some(fetched) = last.as_ref().filter(|fetched| fetched.meta == *meta) {
            return Ok(Arc::clone(fetched));
        }
        // Out of the way first, so that there is one at a time.
        *last = None;
        drop(last);
        let content = match meta.size {
            small if small <= self.part_bytes() / SMALL_SHARE => {
                Content::Memory(self.range(&meta.location, 0, small)?)
            }
            _ => Content::File(self.fetch_file(meta)?),
        };
        let fetched = Arc::new(Fetched { meta: meta.clone(), content });
        *self.last.lock() = Some(Arc::clone(&fetched));
        Ok(fetched)
    }

    fn fetch_file(&self, meta: &ObjectMeta) -> io::Result<SpoolFile> {
        let (path, file) = self.create_numbered()?;
        let fetched = SpoolFile { local: Arc::clone(&self.local), path, file };
        let mut offset = 0;
        while offset < meta.size {
            let end = (offset + self.part_bytes()).min(meta.size);
            fetched.file.write_all_at(&[&self.range(&meta.location, offset, end)?], offset)?;
            offset = end;
        }
        Ok(fetched)
    }

    /// Creates a file under a number that is free: one that was killed may have left some.
    fn create_numbered(&self) -> io::Result<(PathBuf, Box<dyn VfsFile>)> {
        loop {
            let path = self.dir.join(format!("{}.fetched", self.next.fetch_add(1, Ordering::Relaxed)));
            match self.create(&path) {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                created => return created.map(|file| (path, file)),
            }
        }
    }

    /// Returns some bytes of an object.
    pub(super) fn range(&self, key: &StorePath, from: u64, to: u64) -> io::Result<Bytes> {
        if from == to {
            return Ok(Bytes::new());
        }
        let get = || {
            let (store, key) = (self.client.store(), key.clone());
            async move {
                let bytes = store.get_range(&key, from..to).await?;
                check_length(bytes.len(), to - from)?;
                Ok(bytes)
            }
        };
        self.client.ask(get).map_err(io_error)
    }

    /// Puts a local file as an object. Once this returns `Ok` it is there, in its full size.
    pub(super) fn put(&self, path: &Path, key: &StorePath) -> io::Result<()> {
        let file = self.local.open_read(path)?;
        let size = file.len()?;
        if size <= self.part_bytes() {
            self.put_small(file.as_ref(), size, key)?;
        } else {
            self.put_large(file.as_ref(), size, key)?;
        }
        let found = self.client.size(key).map_err(io_error)?;
        if found != size {
            let reason = format!("the object store has {found} bytes of {key}, {size} were sent");
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, reason));
        }
        Ok(())
    }

    fn put_small(&self, file: &dyn VfsFile, size: u64, key: &StorePath) -> io::Result<()> {
        let payload = PutPayload::from(read_part(file, 0, size)?);
        // Its name is not given twice.
        let is_ours = || {
            let (store, key) = (self.client.store(), key.clone());
            self.client.once(async move { Ok(store.head(&key).await?.size == size) })
        };
        self.client.put_new(key, &payload, Patience::Tries, is_ours).map_err(|failure| match failure {
            PutFailure::NotThere(error) | PutFailure::Unknown(error) => io_error(error),
            PutFailure::Taken => io::ErrorKind::AlreadyExists.into(),
        })
    }

    fn put_large(&self, file: &dyn VfsFile, size: u64, key: &StorePath) -> io::Result<()> {
        let mut tried = 0;
        loop {
            let failed = match self.put_parts(file, size, key) {
                Ok(()) => return Ok(()),
                // An answer may be lost of an upload that is complete.
                Err(_) if self.client.size(key).is_ok_and(|found| found == size) => return Ok(()),
                Err(error) => error,
            };
            if self.client.is_last(tried) {
                return Err(failed);
            }
            tracing::debug!(%key, error = %failed, "an upload failed; beginning it again");
            self.client.pause(tried);
            tried += 1;
        }
    }

    fn put_parts(&self, file: &dyn VfsFile, size: u64, key: &StorePath) -> io::Result<()> {
        let (store, location) = (self.client.store(), key.clone());
        let mut upload = self.client.once(async move { store.put_multipart(&location).await }).map_err(io_error)?;
        match self.send_parts(upload.as_mut(), file, size) {
            Ok(()) => {
                let complete = async move { upload.complete().await };
                self.client.once(complete).map(drop).map_err(io_error)
            }
            Err(error) => {
                // Best effort: parts that stay are no object, but take room; see
                // docs/operations.md.
                let _ = self.client.once(async move { upload.abort().await });
                Err(error)
            }
        }
    }

    fn send_parts(&self, upload: &mut dyn MultipartUpload, file: &dyn VfsFile, size: u64) -> io::Result<()> {
        let mut offset = 0;
        while offset < size {
            let end = (offset + self.part_bytes()).min(size);
            let part = PutPayload::from(read_part(file, offset, end)?);
            self.client.once(upload.put_part(part)).map_err(io_error)?;
            offset = end;
        }
        Ok(())
    }
}

/// Removes what a process that was killed has left on its way.
pub(super) fn clear(local: &dyn Vfs, root: &Path) -> io::Result<()> {
    let dir = root.join(SPOOL_DIR);
    let entries = match local.list(&dir) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        listed => listed?,
    };
    entries.iter().try_for_each(|entry| local.remove_file(&dir.join(&entry.name)))
}

fn read_part(file: &dyn VfsFile, from: u64, to: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(to - from).map_err(io::Error::other)?];
    let read = file.read_at(&mut bytes, from)?;
    check_length(read, to - from).map_err(|error| io_error(generic(io::Error::other(error))))?;
    Ok(bytes)
}
