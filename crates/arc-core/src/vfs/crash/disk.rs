//! One state of the files, and the events that lead from one to the next.

use std::{
    collections::{BTreeMap, HashMap},
    path::{Component, Path, PathBuf},
    sync::Arc,
};

/// Identity of a file's contents; names point to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Inode(pub(super) u64);

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DiskEntry {
    Dir,
    File(Inode),
}

/// Something done to the files. Bytes are shared: a history is cheap to copy.
#[derive(Debug, Clone)]
pub(super) enum Event {
    Write {
        inode: Inode,
        offset: usize,
        bytes: Arc<[u8]>,
    },
    SetLen {
        inode: Inode,
        len: usize,
    },
    /// Names that change together or not at all.
    Names(Vec<(PathBuf, Option<DiskEntry>)>),
    SyncFile(Inode),
    SyncDir(PathBuf),
    /// All pending writes will never reach the disk.
    ForgetWrites,
    /// Those of one file will not.
    ForgetFile(Inode),
    /// Pending changes of names in a folder will never reach the disk.
    ForgetNames(PathBuf),
}

/// Names and contents. Contents are shared between states until one of them changes.
#[derive(Debug, Clone, Default)]
pub(super) struct Disk {
    pub(super) entries: BTreeMap<PathBuf, DiskEntry>,
    pub(super) contents: HashMap<Inode, Arc<Vec<u8>>>,
}

impl Disk {
    pub(super) fn apply(&mut self, event: &Event) {
        match event {
            Event::Write { inode, offset, bytes } => self.write(*inode, *offset, bytes),
            Event::SetLen { inode, len } => self.bytes_mut(*inode).resize(*len, 0),
            Event::Names(changes) => changes.iter().for_each(|(path, entry)| self.name(path, *entry)),
            Event::SyncFile(_)
            | Event::SyncDir(_)
            | Event::ForgetWrites
            | Event::ForgetFile(_)
            | Event::ForgetNames(_) => {}
        }
    }

    pub(super) fn write(&mut self, inode: Inode, offset: usize, bytes: &[u8]) {
        let end = offset + bytes.len();
        let contents = self.bytes_mut(inode);
        if contents.len() < end {
            contents.resize(end, 0);
        }
        if let Some(target) = contents.get_mut(offset..end) {
            target.copy_from_slice(bytes);
        }
    }

    fn name(&mut self, path: &Path, entry: Option<DiskEntry>) {
        match entry {
            Some(entry) => self.entries.insert(path.to_owned(), entry),
            None => self.entries.remove(path),
        };
    }

    pub(super) fn bytes(&self, inode: Inode) -> &[u8] {
        self.contents.get(&inode).map_or(&[], |contents| contents.as_slice())
    }

    pub(super) fn bytes_mut(&mut self, inode: Inode) -> &mut Vec<u8> {
        Arc::make_mut(self.contents.entry(inode).or_default())
    }

    /// Whether `dir` is a folder; the root always is.
    pub(super) fn is_dir(&self, dir: &Path) -> bool {
        dir.parent().is_none() || matches!(self.entries.get(dir), Some(DiskEntry::Dir))
    }
}

/// Returns `path` without the `.` in it, so that one file has one name.
pub(super) fn normal(path: &Path) -> PathBuf {
    path.components().filter(|part| *part != Component::CurDir).collect()
}
