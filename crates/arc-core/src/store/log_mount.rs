//! A file system whose log is that of a process on another machine.
//!
//! Owns the way from a path below `wal/` to what an [`OwnerLog`] is asked; everything else goes to the
//! file system below. Only reads there: a reader's own data directory has no log. A segment that is
//! not there any more reads as an empty one, which is to its reader what a released one is.

use std::{
    any::Any,
    io,
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use super::OwnerLog;
use crate::{
    Error,
    model::WAL_DIR,
    vfs::{DirEntry, Vfs, VfsFile},
};

/// [`Vfs`] of a data directory whose log is elsewhere.
#[derive(Debug)]
pub(crate) struct LogMount {
    below: Arc<dyn Vfs>,
    wal: PathBuf,
    log: Arc<dyn OwnerLog>,
}

/// A segment, open for reading.
#[derive(Debug)]
struct RemoteSegment {
    log: Arc<dyn OwnerLog>,
    name: String,
}

impl LogMount {
    pub(crate) fn new(below: Arc<dyn Vfs>, root: &Path, log: Arc<dyn OwnerLog>) -> Self {
        Self { below, wal: root.join(WAL_DIR), log }
    }

    /// Refuses paths of the log, which is only read.
    fn check_is_below(&self, path: &Path) -> io::Result<()> {
        if path.starts_with(&self.wal) { Err(io::ErrorKind::PermissionDenied.into()) } else { Ok(()) }
    }

    fn segment(&self, path: &Path) -> Option<String> {
        let is_in_log = path.parent().is_some_and(|folder| folder == self.wal);
        path.file_name().and_then(|name| name.to_str()).filter(|_| is_in_log).map(str::to_owned)
    }
}

/// Returns the error of the engine that an error of a file carries.
pub(crate) fn carried(error: Error) -> Error {
    match error {
        Error::Io { source, .. } if source.get_ref().is_some_and(|inner| inner.is::<Error>()) => {
            let inner = source.into_inner().and_then(|inner| inner.downcast::<Error>().ok());
            inner.map_or_else(|| Error::internal("an error is not what it was"), |inner| *inner)
        }
        error => error,
    }
}

impl Vfs for LogMount {
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.check_is_below(dir)?;
        self.below.create_dir_all(dir)
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn VfsFile>> {
        self.check_is_below(path)?;
        self.below.create_new(path)
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn VfsFile>> {
        self.check_is_below(path)?;
        self.below.open(path)
    }

    fn open_read(&self, path: &Path) -> io::Result<Box<dyn VfsFile>> {
        match self.segment(path) {
            Some(name) => Ok(Box::new(RemoteSegment { log: Arc::clone(&self.log), name })),
            None => self.below.open_read(path),
        }
    }

    fn open_range(&self, path: &Path, range: Range<u64>) -> io::Result<Box<dyn VfsFile>> {
        self.check_is_below(path)?;
        self.below.open_range(path, range)
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.check_is_below(path)?;
        self.below.read(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.check_is_below(from).and_then(|()| self.check_is_below(to))?;
        self.below.rename(from, to)
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.check_is_below(from).and_then(|()| self.check_is_below(to))?;
        self.below.rename_new(from, to)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.check_is_below(from).and_then(|()| self.check_is_below(to))?;
        self.below.hard_link(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.check_is_below(path)?;
        self.below.remove_file(path)
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        self.check_is_below(dir)?;
        self.below.remove_dir(dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.check_is_below(dir)?;
        self.below.sync_dir(dir)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        if dir != self.wal {
            return self.below.list(dir);
        }
        let segments = self.log.segments().map_err(io::Error::other)?;
        let modified = SystemTime::UNIX_EPOCH;
        let entry =
            |segment: super::LogSegment| DirEntry { name: segment.name, is_dir: false, len: segment.bytes, modified };
        Ok(segments.into_iter().map(entry).collect())
    }

    fn list_below(&self, dir: &Path) -> Option<io::Result<Vec<PathBuf>>> {
        self.below.list_below(dir)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Any + Send + Sync>> {
        self.check_is_below(path)?;
        self.below.lock(path)
    }
}

impl VfsFile for RemoteSegment {
    fn len(&self) -> io::Result<u64> {
        let segments = self.log.segments().map_err(io::Error::other)?;
        let found = segments.into_iter().find(|segment| segment.name == self.name);
        found.map(|segment| segment.bytes).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn modified(&self) -> io::Result<SystemTime> {
        Ok(SystemTime::UNIX_EPOCH)
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let read = self.log.read(&self.name, offset, buf.len()).map_err(io::Error::other)?;
        let bytes = read.unwrap_or_default();
        // Whoever answers may send more than was asked for.
        let count = bytes.len().min(buf.len());
        buf.iter_mut().zip(bytes.iter()).for_each(|(to, from)| *to = *from);
        Ok(count)
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn sync_all(&self) -> io::Result<()> {
        Ok(())
    }
}
