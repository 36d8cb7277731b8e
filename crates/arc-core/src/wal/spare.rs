//! Spares: synced files of a segment's size that become the next segments by a rename.
//!
//! A file whose blocks exist and are synced makes `fdatasync` about ten times cheaper than one that grows. Zeroing one
//! takes long, so it happens ahead of need, on a thread of the engine's choice; and segments that are released become
//! spares, so that in the steady state none is zeroed at all: that would write every byte of the log twice, and its sync
//! would hold up those of the log. Never keeps more than [`MAX_SPARES`] files.

use std::{
    io::{self, ErrorKind},
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;

use crate::{
    Error, Result,
    vfs::{Vfs, VfsFile},
};

/// A spare, a whole segment; followed by `.1`, `.2` and so on for further ones.
const READY: &str = "spare";
/// Most spares kept: as many segments as the log fills between two flushes at the default settings.
const MAX_SPARES: usize = 8;
/// A segment for one frame that is larger than a segment.
const LARGE: &str = "spare.large";
/// Either of them before it is whole.
const UNFINISHED: &str = "spare.tmp";

static ZEROS: [u8; 1 << 20] = [0; 1 << 20];

/// Makes spares; a handle for another thread. Clones share the spares with the log.
#[derive(Debug, Clone)]
pub(crate) struct SpareMaker {
    spare: Arc<Spare>,
}

#[derive(Debug)]
struct Spare {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    size: u64,
    /// Names of the spares that are there. Held while one is made.
    ready: Mutex<Vec<String>>,
}

/// Returns the names that spares may have.
fn names() -> impl Iterator<Item = String> {
    (0..MAX_SPARES).map(|n| if n == 0 { READY.to_owned() } else { format!("{READY}.{n}") })
}

impl SpareMaker {
    /// Takes over the spares in `dir` that are whole, and removes what a crash left half made.
    pub(super) fn open(vfs: Arc<dyn Vfs>, dir: &Path, size: u64) -> Result<Self> {
        let mut ready = Vec::new();
        for entry in vfs.list(dir).map_err(|e| Error::io("list", dir, e))? {
            let is_spare = names().any(|name| name == entry.name);
            if is_spare && entry.len == size {
                ready.push(entry.name);
            } else if is_spare || [LARGE, UNFINISHED].contains(&entry.name.as_str()) {
                let path = dir.join(&entry.name);
                vfs.remove_file(&path).map_err(|e| Error::io("remove", path, e))?;
            }
        }
        let spare = Spare { vfs, dir: dir.to_owned(), size, ready: Mutex::new(ready) };
        Ok(Self { spare: Arc::new(spare) })
    }

    /// Returns whether there is no spare and nobody is making one. Never waits.
    pub(crate) fn needed(&self) -> bool {
        self.spare.ready.try_lock().is_some_and(|ready| ready.is_empty())
    }

    /// Makes a spare if there is none: writes and syncs a whole segment of zeros.
    ///
    /// An append that needs a new segment meanwhile waits for it. After an error there is no spare and nothing else
    /// has changed; it can be tried again.
    pub(crate) fn make(&self) -> Result<()> {
        let mut ready = self.spare.ready.lock();
        if ready.is_empty() {
            self.spare.fill(self.spare.size, READY)?;
            ready.push(READY.to_owned());
        }
        Ok(())
    }

    /// Makes sure that there is a file of at least `bytes` for [`SpareMaker::place`] and returns its size.
    ///
    /// The only step of a new segment that needs room on the disk; after an error it can be tried again.
    pub(super) fn reserve(&self, bytes: u64) -> Result<u64> {
        if bytes <= self.spare.size {
            self.make()?;
            return Ok(self.spare.size);
        }
        let size = bytes.next_multiple_of(4096);
        let _making = self.spare.ready.lock();
        self.spare.fill(size, LARGE)?;
        Ok(size)
    }

    /// Renames the file that [`SpareMaker::reserve`] made to `path`, makes its name durable and opens it.
    pub(super) fn place(&self, size: u64, path: &Path) -> Result<Box<dyn VfsFile>> {
        let Spare { vfs, dir, ready, .. } = &*self.spare;
        let mut ready = ready.lock();
        let spare = ready.last().filter(|_| size == self.spare.size);
        let from = spare.map_or(LARGE, String::as_str);
        vfs.rename(&dir.join(from), path).map_err(|e| Error::io("rename", path, e))?;
        if spare.is_some() {
            ready.pop();
        }
        // Before the first frame is written, so that no frame is ever in a file whose name (with its salt) can be lost.
        vfs.sync_dir(dir).map_err(|e| Error::io("sync", dir, e))?;
        vfs.open(path).map_err(|e| Error::io("open", path, e))
    }

    /// Keeps a segment's file as a spare, or removes it if there are enough or the file has another size. Never waits.
    ///
    /// The folder is not synced: if the power fails, the old name may be back, with frames that nobody needs.
    pub(super) fn recycle(&self, size: u64, path: &Path) -> Result<()> {
        let Spare { vfs, dir, ready, .. } = &*self.spare;
        let ready = ready.try_lock().filter(|_| size == self.spare.size);
        let free = |ready: &Vec<String>| names().find(|name| !ready.contains(name));
        match ready.and_then(|ready| free(&ready).map(|name| (ready, name))) {
            Some((mut ready, name)) => {
                vfs.rename(path, &dir.join(&name)).map_err(|e| Error::io("rename", path, e))?;
                ready.push(name);
                Ok(())
            }
            None => vfs.remove_file(path).map_err(|e| Error::io("remove", path, e)),
        }
    }
}

impl Spare {
    /// Makes a file of zeros named `to`. A file of that name exists only whole and synced.
    fn fill(&self, size: u64, to: &str) -> Result<()> {
        let path = self.dir.join(UNFINISHED);
        let filled = self.write_zeros(size, &path);
        if filled.is_err() {
            // Room on the disk is what may be missing. What cannot be removed now is removed at the next try.
            let _ = self.vfs.remove_file(&path);
        }
        filled?;
        self.vfs.rename(&path, &self.dir.join(to)).map_err(|e| Error::io("rename", path, e))
    }

    fn write_zeros(&self, size: u64, path: &Path) -> Result<()> {
        let io = |action| move |e| Error::io(action, path, e);
        let file = match self.vfs.create_new(path) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {
                self.vfs.remove_file(path).map_err(io("remove"))?;
                self.vfs.create_new(path)
            }
            created => created,
        };
        let file = file.map_err(io("create"))?;
        zero(&*file, 0..size).map_err(io("write"))?;
        file.sync_all().map_err(io("sync"))
    }
}

/// Overwrites a part of a file with zeros.
pub(super) fn zero(file: &dyn VfsFile, part: Range<u64>) -> io::Result<()> {
    let mut offset = part.start;
    while offset < part.end {
        let len = usize::try_from(part.end - offset).unwrap_or(usize::MAX).min(ZEROS.len());
        file.write_all_at(&[ZEROS.get(..len).unwrap_or_default()], offset)?;
        offset += len as u64;
    }
    Ok(())
}
