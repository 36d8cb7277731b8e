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

use crate::sync::{Condvar, Mutex, MutexGuard};

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
    /// Locked for moments, never while a file is filled: a release must find a place for its segments meanwhile.
    state: Mutex<State>,
    /// Whether one is there, or nobody makes one any more.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Names of the spares that are there.
    ready: Vec<String>,
    /// Whether somebody fills a file.
    is_filling: bool,
}

impl State {
    fn free_name(&self) -> Option<String> {
        names().find(|name| !self.ready.contains(name))
    }
}

/// Returns the names that spares may have.
fn names() -> impl Iterator<Item = String> {
    (0..MAX_SPARES).map(|n| if n == 0 { READY.to_owned() } else { format!("{READY}.{n}") })
}

impl SpareMaker {
    /// Takes over the spares in `dir` that are whole, and removes what a crash left half made.
    pub(super) fn open(vfs: Arc<dyn Vfs>, dir: &Path, size: u64) -> Result<Self> {
        let mut state = State::default();
        for entry in vfs.list(dir).map_err(|e| Error::io("list", dir, e))? {
            let is_spare = names().any(|name| name == entry.name);
            if is_spare && entry.len == size {
                state.ready.push(entry.name);
            } else if is_spare || [LARGE, UNFINISHED].contains(&entry.name.as_str()) {
                let path = dir.join(&entry.name);
                vfs.remove_file(&path).map_err(|e| Error::io("remove", path, e))?;
            }
        }
        let (state, changed) = (Mutex::new(state), Condvar::new());
        Ok(Self { spare: Arc::new(Spare { vfs, dir: dir.to_owned(), size, state, changed }) })
    }

    /// Returns whether there is no spare and nobody is making one. Never waits.
    pub(crate) fn needed(&self) -> bool {
        self.spare.state.try_lock().is_some_and(|state| state.ready.is_empty() && !state.is_filling)
    }

    /// Makes a spare if there is none: writes and syncs a whole segment of zeros.
    ///
    /// An append that needs a new segment meanwhile waits for it. After an error there is no spare and nothing else
    /// has changed; it can be tried again.
    pub(crate) fn make(&self) -> Result<()> {
        let mut state = self.spare.state.lock();
        while state.ready.is_empty() {
            if state.is_filling {
                self.spare.changed.wait(&mut state);
            } else {
                self.spare.fill(&mut state, self.spare.size, None)?;
            }
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
        let mut state = self.spare.state.lock();
        while state.is_filling {
            self.spare.changed.wait(&mut state);
        }
        self.spare.fill(&mut state, size, Some(LARGE))?;
        Ok(size)
    }

    /// Renames the file that [`SpareMaker::reserve`] made to `path`, makes its name durable and opens it.
    pub(super) fn place(&self, size: u64, path: &Path) -> Result<Box<dyn VfsFile>> {
        let Spare { vfs, dir, state, .. } = &*self.spare;
        let mut state = state.lock();
        let spare = state.ready.last().filter(|_| size == self.spare.size);
        let from = spare.map_or(LARGE, String::as_str);
        vfs.rename(&dir.join(from), path).map_err(|e| Error::io("rename", path, e))?;
        if spare.is_some() {
            state.ready.pop();
        }
        drop(state);
        // Before the first frame is written, so that no frame is ever in a file whose name (with its salt) can be lost.
        vfs.sync_dir(dir).map_err(|e| Error::io("sync", dir, e))?;
        vfs.open(path).map_err(|e| Error::io("open", path, e))
    }

    /// Keeps a segment's file as a spare, or removes it if there are enough or the file has another size. Never waits for
    /// one that is being filled.
    ///
    /// The folder is not synced: if the power fails, the old name may be back, with frames that nobody needs.
    pub(super) fn recycle(&self, size: u64, path: &Path) -> Result<()> {
        let Spare { vfs, dir, state, changed, .. } = &*self.spare;
        let mut state = state.lock();
        match state.free_name().filter(|_| size == self.spare.size) {
            Some(name) => {
                vfs.rename(path, &dir.join(&name)).map_err(|e| Error::io("rename", path, e))?;
                state.ready.push(name);
                changed.notify_all();
                Ok(())
            }
            None => vfs.remove_file(path).map_err(|e| Error::io("remove", path, e)),
        }
    }
}

impl Spare {
    /// Makes a file of zeros, with the name `to` or that of a spare. A file of such a name exists only whole and synced.
    fn fill(&self, state: &mut MutexGuard<'_, State>, size: u64, to: Option<&str>) -> Result<()> {
        let path = self.dir.join(UNFINISHED);
        state.is_filling = true;
        let filled = MutexGuard::unlocked(state, || self.write_zeros(size, &path));
        state.is_filling = false;
        self.changed.notify_all();
        let name = match to {
            Some(name) => Some(name.to_owned()),
            None => state.free_name(),
        };
        let Some(name) = name.filter(|_| filled.is_ok()) else {
            // Room on the disk is what may be missing, or so much was released that there are enough by now. What cannot
            // be removed now is removed at the next try.
            let _ = self.vfs.remove_file(&path);
            return filled;
        };
        self.vfs.rename(&path, &self.dir.join(&name)).map_err(|e| Error::io("rename", path, e))?;
        if to.is_none() {
            state.ready.push(name);
        }
        Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vfs::CrashFs;

    const DIR: &str = "/wal";
    const SIZE: u64 = 4096;

    fn maker(fs: &CrashFs) -> SpareMaker {
        fs.create_dir_all(Path::new(DIR)).unwrap();
        SpareMaker::open(Arc::new(fs.clone()), Path::new(DIR), SIZE).unwrap()
    }

    fn file_names(fs: &CrashFs) -> Vec<String> {
        fs.list(Path::new(DIR)).unwrap().into_iter().map(|entry| entry.name).collect()
    }

    #[test]
    fn segments_released_while_a_spare_is_filled_are_kept_and_used_at_once() {
        let fs = CrashFs::new();
        let maker = maker(&fs);
        let segment = Path::new(DIR).join("segment");
        fs.create_new(&segment).unwrap();
        maker.spare.state.lock().is_filling = true;
        assert!(!maker.needed());
        maker.recycle(SIZE, &segment).unwrap();
        // Does not wait for the one that is filled.
        assert_eq!(maker.reserve(SIZE).unwrap(), SIZE);
        maker.place(SIZE, &segment).unwrap();
        assert_eq!(file_names(&fs), ["segment"]);
    }

    #[test]
    fn a_spare_that_found_no_place_among_released_ones_is_removed() {
        let fs = CrashFs::new();
        let maker = maker(&fs);
        let released = Path::new(DIR).join("segment");
        let mut state = maker.spare.state.lock();
        for expected in 1..=2 * MAX_SPARES {
            MutexGuard::unlocked(&mut state, || {
                fs.create_new(&released).unwrap();
                maker.recycle(SIZE, &released).unwrap();
            });
            assert_eq!(state.ready.len(), expected.min(MAX_SPARES));
        }
        maker.spare.fill(&mut state, SIZE, None).unwrap();
        assert_eq!((state.ready.len(), file_names(&fs).len()), (MAX_SPARES, MAX_SPARES));
        assert!(!file_names(&fs).contains(&UNFINISHED.to_owned()));
    }
}
