//! A file system in memory that models the loss of power.
//!
//! Owns an ordered history of everything done to it: writes, changed names, syncs. From any point
//! of that history it derives the states that a disk may legally be in when the power fails there
//! (see [`PowerCut`]). Never fails by itself (wrap it in [`FaultFs`](super::FaultFs) for that),
//! never touches the real disk except in [`Image::write_to`].

mod disk;
mod image;
mod power_cut;

use std::{
    any::Any,
    collections::HashSet,
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use parking_lot::Mutex;

use self::disk::{Disk, DiskEntry, Event, Inode, normal};
use super::{DirEntry, Vfs, VfsFile};

pub use self::{
    image::Image,
    power_cut::{PowerCut, PowerCuts},
};

/// [`Vfs`] in memory that knows what was synced and what was not. Clones are the same file system.
///
/// Its rules are stricter than those of most real file systems, and all of them are allowed by
/// POSIX: a new, renamed or removed name survives only after [`Vfs::sync_dir`] of its folder (also
/// a folder's name in its parent), contents and length only after a sync of the file, and nothing
/// unsynced keeps any order. One rename is atomic.
#[derive(Debug, Clone, Default)]
pub struct CrashFs {
    state: Arc<Mutex<CrashState>>,
}

#[derive(Debug, Default)]
struct CrashState {
    /// What the process sees.
    now: Disk,
    /// What it began with, everything synced.
    start: Disk,
    history: Vec<Event>,
    locks: HashSet<PathBuf>,
    next_inode: u64,
}

impl CrashFs {
    /// Returns an empty file system that only has its root.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a file system that holds `image`, everything synced: the machine after it started
    /// again.
    #[must_use]
    pub fn from_image(image: &Image) -> Self {
        let start = image.to_disk();
        let next_inode = start.contents.len() as u64;
        let state = CrashState { now: start.clone(), start, next_inode, ..CrashState::default() };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// Returns how many operations (writes, name changes, syncs) were done so far.
    #[must_use]
    pub fn operations(&self) -> usize {
        self.state.lock().history.len()
    }

    /// Returns what the process sees now, which is what `kill -9` leaves behind.
    #[must_use]
    pub fn current(&self) -> Image {
        Image::from_disk(&self.state.lock().now)
    }

    /// Returns the loss of power at this moment.
    #[must_use]
    pub fn power_cut(&self) -> PowerCut {
        let state = self.state.lock();
        let mut cut = PowerCut::new(state.start.clone());
        state.history.iter().for_each(|event| cut.pass(event));
        cut
    }

    /// Returns the loss of power before the first operation and after each one, in order.
    ///
    /// ```
    /// use std::path::Path;
    ///
    /// use arc_core::vfs::{CrashFs, Vfs};
    ///
    /// let disk = CrashFs::new();
    /// disk.create_new(Path::new("/a"))?.write_all_at(&[b"1450"], 0)?;
    /// for cut in disk.power_cuts() {
    ///     // Nothing is synced: at any moment the file may be gone.
    ///     assert!(cut.images(7, 10).any(|image| image.get(Path::new("/a")).is_none()));
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn power_cuts(&self) -> PowerCuts {
        let state = self.state.lock();
        PowerCuts::new(PowerCut::new(state.start.clone()), state.history.clone())
    }

    /// Lets every unsynced write be lost for good while the process still sees it, which is what
    /// Linux makes of pages that it failed to write: they count as clean, and a later sync succeeds
    /// without them.
    pub fn forget_unsynced_writes(&self) {
        self.state.lock().record(Event::ForgetWrites);
    }

    /// As [`forget_unsynced_writes`](Self::forget_unsynced_writes), of one file: what a sync of it
    /// that fails leaves behind.
    pub fn forget_unsynced_writes_of(&self, path: &Path) {
        let mut state = self.state.lock();
        if let Ok(inode) = state.inode(&normal(path)) {
            state.record(Event::ForgetFile(inode));
        }
    }

    /// Lets changes of names in a folder that are not synced be lost for good while the process
    /// still sees them: what a sync of the folder that fails may leave behind.
    pub fn forget_unsynced_names_in(&self, dir: &Path) {
        self.state.lock().record(Event::ForgetNames(normal(dir)));
    }

    fn file(&self, inode: Inode) -> Box<dyn VfsFile> {
        Box::new(CrashFile { state: Arc::clone(&self.state), inode })
    }
}

impl CrashState {
    fn record(&mut self, event: Event) {
        self.now.apply(&event);
        self.history.push(event);
    }

    /// Creates a file; its parent must exist and the name must not.
    fn create(&mut self, path: &Path) -> io::Result<Inode> {
        self.parent_exists(path)?;
        if self.now.entries.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let inode = Inode(self.next_inode);
        self.next_inode += 1;
        self.record(Event::Names(vec![(path.to_owned(), Some(DiskEntry::File(inode)))]));
        Ok(inode)
    }

    /// Gives a file a name that must not exist.
    fn link(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let (inode, to) = (self.inode(&normal(from))?, normal(to));
        self.parent_exists(&to)?;
        if self.now.entries.contains_key(&to) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.record(Event::Names(vec![(to, Some(DiskEntry::File(inode)))]));
        Ok(())
    }

    /// Takes a file's name away.
    fn unlink(&mut self, path: &Path) -> io::Result<()> {
        let path = normal(path);
        self.inode(&path)?;
        self.record(Event::Names(vec![(path, None)]));
        Ok(())
    }

    fn parent_exists(&self, path: &Path) -> io::Result<()> {
        if self.now.is_dir(path.parent().unwrap_or(Path::new(""))) {
            Ok(())
        } else {
            Err(io::ErrorKind::NotFound.into())
        }
    }

    fn inode(&self, path: &Path) -> io::Result<Inode> {
        match self.now.entries.get(path) {
            Some(DiskEntry::File(inode)) => Ok(*inode),
            Some(DiskEntry::Dir) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

impl Vfs for CrashFs {
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        let dir = normal(dir);
        let mut state = self.state.lock();
        let missing: Vec<_> = dir.ancestors().take_while(|dir| !state.now.is_dir(dir)).map(Path::to_owned).collect();
        for dir in missing.into_iter().rev() {
            if state.now.entries.contains_key(&dir) {
                return Err(io::ErrorKind::NotADirectory.into());
            }
            state.record(Event::Names(vec![(dir, Some(DiskEntry::Dir))]));
        }
        Ok(())
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn VfsFile>> {
        let inode = self.state.lock().create(&normal(path))?;
        Ok(self.file(inode))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn VfsFile>> {
        let inode = self.state.lock().inode(&normal(path))?;
        Ok(self.file(inode))
    }

    fn open_read(&self, path: &Path) -> io::Result<Box<dyn VfsFile>> {
        self.open(path)
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let state = self.state.lock();
        let inode = state.inode(&normal(path))?;
        Ok(state.now.bytes(inode).to_vec())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (from, to) = (normal(from), normal(to));
        let mut state = self.state.lock();
        let inode = state.inode(&from)?;
        state.parent_exists(&to)?;
        if from != to {
            // The old name goes first, so that the list reads well when both are in one folder; the
            // event is atomic.
            state.record(Event::Names(vec![(from, None), (to, Some(DiskEntry::File(inode)))]));
        }
        Ok(())
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        // Two events, as the link and unlink of `RealVfs` are two calls.
        let mut state = self.state.lock();
        state.link(from, to)?;
        state.unlink(from)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.state.lock().link(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.state.lock().unlink(path)
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        let dir = normal(dir);
        let mut state = self.state.lock();
        if !state.now.is_dir(&dir) {
            return Err(io::ErrorKind::NotFound.into());
        }
        if state.now.entries.keys().any(|path| path.parent() == Some(dir.as_path())) {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        state.record(Event::Names(vec![(dir, None)]));
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let dir = normal(dir);
        let mut state = self.state.lock();
        if !state.now.is_dir(&dir) {
            return Err(io::ErrorKind::NotFound.into());
        }
        state.record(Event::SyncDir(dir));
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        let dir = normal(dir);
        let state = self.state.lock();
        if !state.now.is_dir(&dir) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let children = state.now.entries.iter().filter(|(path, _)| path.parent() == Some(dir.as_path()));
        let entries = children.map(|(path, entry)| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let modified = SystemTime::UNIX_EPOCH;
            match entry {
                DiskEntry::Dir => DirEntry { name, is_dir: true, len: 0, modified },
                DiskEntry::File(inode) => {
                    DirEntry { name, is_dir: false, len: state.now.bytes(*inode).len() as u64, modified }
                }
            }
        });
        Ok(entries.collect())
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Any + Send + Sync>> {
        let path = normal(path);
        let mut state = self.state.lock();
        if !state.now.entries.contains_key(&path) {
            state.create(&path)?;
        }
        if !state.locks.insert(path.clone()) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(Box::new(LockGuard { state: Arc::clone(&self.state), path }))
    }
}

struct LockGuard {
    state: Arc<Mutex<CrashState>>,
    path: PathBuf,
}

impl Drop for LockGuard {
    fn drop(&mut self) {
        self.state.lock().locks.remove(&self.path);
    }
}

struct CrashFile {
    state: Arc<Mutex<CrashState>>,
    inode: Inode,
}

impl std::fmt::Debug for CrashFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CrashFile").field("inode", &self.inode).finish_non_exhaustive()
    }
}

impl VfsFile for CrashFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.state.lock().now.bytes(self.inode).len() as u64)
    }

    /// There is no clock here: all files are of one age.
    fn modified(&self) -> io::Result<SystemTime> {
        Ok(SystemTime::UNIX_EPOCH)
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let state = self.state.lock();
        let rest = usize::try_from(offset).ok().and_then(|offset| state.now.bytes(self.inode).get(offset..));
        let found = rest.unwrap_or_default().iter().zip(buf);
        Ok(found.map(|(from, to)| *to = *from).count())
    }

    fn write_all_at(&self, parts: &[&[u8]], offset: u64) -> io::Result<()> {
        let offset = usize::try_from(offset).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let bytes = parts.concat().into();
        self.state.lock().record(Event::Write { inode: self.inode, offset, bytes });
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.state.lock().record(Event::SyncFile(self.inode));
        Ok(())
    }

    fn sync_all(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let len = usize::try_from(len).map_err(|_| io::ErrorKind::FileTooLarge)?;
        self.state.lock().record(Event::SetLen { inode: self.inode, len });
        Ok(())
    }
}
