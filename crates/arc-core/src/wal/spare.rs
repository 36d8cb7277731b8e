//! Spares: synced files of a segment's size that become the next segments by a rename.
//!
//! A file whose blocks exist and are synced makes `fdatasync` about ten times cheaper than one that
//! grows. Zeroing one takes long, so it happens ahead of need, on a thread of the engine's choice;
//! and segments that are released become spares, so that in the steady state none is zeroed at all:
//! that would write every byte of the log twice, and its sync would hold up those of the log. Never
//! keeps more than [`MAX_SPARES`] files.

use std::{
    io::{self, ErrorKind},
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{
    Error, Result,
    sync::{Condvar, Mutex, MutexGuard},
    vfs::{Vfs, VfsFile, is_shortage},
};

/// A spare, a whole segment; followed by `.1`, `.2` and so on for further ones.
const READY: &str = "spare";
/// Most spares kept: as many segments as the log fills between two flushes at the default settings.
const MAX_SPARES: usize = 8;
/// A segment for one frame that is larger than a segment.
const LARGE: &str = "spare.large";
/// Either of them before it is whole.
const UNFINISHED: &str = "spare.tmp";

/// In the program as they are, so not many; a call writes them [`ZEROS_A_CALL`] times.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
const ZEROS_A_CALL: usize = 16;

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
    /// Locked for moments, never while a file is filled: a release must find a place for its
    /// segments meanwhile.
    state: Mutex<SpareState>,
    /// Whether one is there, or nothing makes one any more.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct SpareState {
    /// The spares that are there; the last is the next to be used.
    ready: Vec<Ready>,
    /// The file for a frame that is larger than a segment.
    large: Option<Box<dyn VfsFile>>,
    /// Whether a thread fills a file.
    is_filling: bool,
}

#[derive(Debug)]
struct Ready {
    name: String,
    /// Open before the log needs it: then a new segment takes no file descriptor, of which there
    /// may be none left.
    file: Option<Box<dyn VfsFile>>,
}

impl SpareState {
    fn free_name(&self) -> Option<String> {
        names().find(|name| self.ready.iter().all(|ready| ready.name != *name))
    }
}

/// Why there is no new segment.
#[derive(Debug)]
pub(super) enum NotPlaced {
    /// All is as it was, and it can be tried again.
    Unchanged(Error),
    /// Nothing knows what name the file has on the disk.
    Unknown(Error),
}

/// Returns the names that spares may have.
fn names() -> impl Iterator<Item = String> {
    (0..MAX_SPARES).map(|n| if n == 0 { READY.to_owned() } else { format!("{READY}.{n}") })
}

impl SpareMaker {
    /// Takes over the spares in `dir` that are whole, and removes what a crash left half made.
    pub(super) fn open(vfs: Arc<dyn Vfs>, dir: &Path, size: u64) -> Result<Self> {
        let mut state = SpareState::default();
        for entry in vfs.list(dir).map_err(|e| Error::io("list", dir, e))? {
            let is_spare = names().any(|name| name == entry.name);
            if is_spare && entry.len == size {
                state.ready.push(Ready { name: entry.name, file: None });
            } else if is_spare || [LARGE, UNFINISHED].contains(&entry.name.as_str()) {
                let path = dir.join(&entry.name);
                vfs.remove_file(&path).map_err(|e| Error::io("remove", path, e))?;
            }
        }
        let is_there = !state.ready.is_empty();
        let (state, changed) = (Mutex::new(state), Condvar::new());
        let maker = Self { spare: Arc::new(Spare { vfs, dir: dir.to_owned(), size, state, changed }) };
        if is_there {
            maker.make()?;
        }
        Ok(maker)
    }

    /// Returns whether there is no spare, or none that is open, and nothing is making one. Never
    /// waits.
    pub(crate) fn needed(&self) -> bool {
        let is_there = |state: &SpareState| state.ready.last().is_some_and(|next| next.file.is_some());
        self.spare.state.try_lock().is_some_and(|state| !is_there(&state) && !state.is_filling)
    }

    /// Makes a spare if there is none: writes and syncs a whole segment of zeros. Opens the next
    /// one.
    ///
    /// An append that needs a new segment meanwhile waits for it. After an error there is no spare,
    /// or none that is open, and nothing else has changed; it can be tried again.
    pub(crate) fn make(&self) -> Result<()> {
        let mut state = self.spare.state.lock();
        loop {
            if let Some(next) = state.ready.last_mut() {
                if next.file.is_none() {
                    let path = self.spare.dir.join(&next.name);
                    next.file = Some(self.spare.vfs.open(&path).map_err(|e| Error::io("open", path, e))?);
                }
                return Ok(());
            }
            if state.is_filling {
                self.spare.changed.wait(&mut state);
            } else {
                self.spare.fill(&mut state, self.spare.size, None)?;
            }
        }
    }

    /// Makes sure that there is a file of at least `bytes` for [`SpareMaker::place`] and returns
    /// its size.
    ///
    /// The only step of a new segment that needs room on the disk; after an error it can be tried
    /// again.
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

    /// Renames the file that [`SpareMaker::reserve`] made to `path`, and makes its name durable.
    pub(super) fn place(&self, size: u64, path: &Path) -> Result<Box<dyn VfsFile>, NotPlaced> {
        let Spare { vfs, dir, state, .. } = &*self.spare;
        let is_large = size != self.spare.size;
        let file = {
            let mut state = state.lock();
            let next = state.ready.last().filter(|_| !is_large);
            let from = dir.join(next.map_or(LARGE, |next| next.name.as_str()));
            if let Err(e) = vfs.rename(&from, path) {
                let is_shortage = is_shortage(&e);
                let error = Error::io("rename", path, e);
                return Err(if is_shortage { NotPlaced::Unchanged(error) } else { NotPlaced::Unknown(error) });
            }
            if is_large { state.large.take() } else { state.ready.pop().and_then(|next| next.file) }
        };
        let file = file.ok_or_else(|| NotPlaced::Unknown(Error::internal("a segment was placed that is not open")))?;
        // Before the first frame is written, so that no frame is ever in a file whose name (with
        // its salt) can be lost.
        match vfs.sync_dir(dir) {
            Ok(()) => Ok(file),
            // Whatever name it has on the disk, it has no frames.
            Err(e) if is_shortage(&e) => self.put_back(is_large, path, file, Error::io("sync", dir, e)),
            Err(e) => Err(NotPlaced::Unknown(Error::io("sync", dir, e))),
        }
    }

    /// Makes a segment without frames what it was before.
    fn put_back(
        &self,
        is_large: bool,
        path: &Path,
        file: Box<dyn VfsFile>,
        error: Error,
    ) -> Result<Box<dyn VfsFile>, NotPlaced> {
        let Spare { vfs, dir, state, .. } = &*self.spare;
        let mut state = state.lock();
        let name = if is_large { Some(LARGE.to_owned()) } else { state.free_name() };
        let done = match &name {
            Some(name) => vfs.rename(path, &dir.join(name)),
            None => vfs.remove_file(path),
        };
        if let Err(e) = done {
            return Err(NotPlaced::Unknown(Error::io("rename", path, e)));
        }
        match name {
            Some(_) if is_large => state.large = Some(file),
            Some(name) => state.ready.push(Ready { name, file: Some(file) }),
            None => {}
        }
        Err(NotPlaced::Unchanged(error))
    }

    /// Keeps a segment's file as a spare, or removes it if there are enough or the file has another
    /// size. Never waits for one that is being filled.
    ///
    /// The folder is not synced: if the power fails, the old name may be back, with frames that
    /// nothing needs.
    pub(super) fn recycle(&self, size: u64, path: &Path) -> Result<()> {
        let Spare { vfs, dir, state, changed, .. } = &*self.spare;
        let mut state = state.lock();
        match state.free_name().filter(|_| size == self.spare.size) {
            Some(name) => {
                vfs.rename(path, &dir.join(&name)).map_err(|e| Error::io("rename", path, e))?;
                // After the one that is open already.
                state.ready.insert(0, Ready { name, file: None });
                changed.notify_all();
                Ok(())
            }
            None => vfs.remove_file(path).map_err(|e| Error::io("remove", path, e)),
        }
    }
}

impl Spare {
    /// Makes a file of zeros, with the name `to` or that of a spare. A file of such a name exists
    /// only whole and synced.
    fn fill(&self, state: &mut MutexGuard<'_, SpareState>, size: u64, to: Option<&str>) -> Result<()> {
        let path = self.dir.join(UNFINISHED);
        let filled = {
            let filling = FillGuard::begin(state, &self.changed);
            MutexGuard::unlocked(filling.state, || self.write_zeros(size, &path))
        };
        let name = match to {
            Some(name) => Some(name.to_owned()),
            None => state.free_name(),
        };
        let (Some(name), Ok(_)) = (&name, &filled) else {
            // Room on the disk is what may be missing, or so much was released that there are
            // enough by now. What cannot be removed now is removed at the next try.
            let _ = self.vfs.remove_file(&path);
            return filled.map(drop);
        };
        self.vfs.rename(&path, &self.dir.join(name)).map_err(|e| Error::io("rename", path, e))?;
        let file = Some(filled?);
        if to.is_none() {
            state.ready.push(Ready { name: name.clone(), file });
        } else {
            state.large = file;
        }
        Ok(())
    }

    fn write_zeros(&self, size: u64, path: &Path) -> Result<Box<dyn VfsFile>> {
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
        file.sync_all().map_err(io("sync"))?;
        Ok(file)
    }
}

/// Says that a file is being filled, until this is dropped; also if the thread that fills it dies.
struct FillGuard<'f, 's> {
    state: &'f mut MutexGuard<'s, SpareState>,
    changed: &'f Condvar,
}

impl<'f, 's> FillGuard<'f, 's> {
    fn begin(state: &'f mut MutexGuard<'s, SpareState>, changed: &'f Condvar) -> Self {
        state.is_filling = true;
        Self { state, changed }
    }
}

impl Drop for FillGuard<'_, '_> {
    fn drop(&mut self) {
        self.state.is_filling = false;
        self.changed.notify_all();
    }
}

/// Overwrites a part of a file with zeros.
pub(super) fn zero(file: &dyn VfsFile, part: Range<u64>) -> io::Result<()> {
    let parts = [ZEROS.as_slice(); ZEROS_A_CALL];
    let mut offset = part.start;
    while offset < part.end {
        let left = usize::try_from(part.end - offset).unwrap_or(usize::MAX);
        let whole = parts.get(..left / ZEROS.len()).unwrap_or(&parts);
        let rest = ZEROS.get(..left).unwrap_or_default();
        let written = if whole.is_empty() { &[rest] } else { whole };
        file.write_all_at(written, offset)?;
        offset += written.iter().map(|part| part.len() as u64).sum::<u64>();
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

    #[test]
    fn nobody_waits_for_a_thread_that_died_while_it_filled_a_spare() {
        let fs = CrashFs::new();
        let maker = maker(&fs);
        std::thread::scope(|scope| {
            let dying = scope.spawn(|| {
                let mut state = maker.spare.state.lock();
                let filling = FillGuard::begin(&mut state, &maker.spare.changed);
                MutexGuard::unlocked(filling.state, || panic!("the disk has gone"));
            });
            assert!(dying.join().is_err());
        });
        assert_eq!(maker.reserve(SIZE).unwrap(), SIZE);
    }
}
