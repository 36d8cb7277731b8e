//! What is on a disk when the machine starts again.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::disk::{Disk, DiskEntry, Inode, normal};

/// Folders and files, as plain values. Cheap to clone; contents are shared.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Image {
    dirs: BTreeSet<PathBuf>,
    files: BTreeMap<PathBuf, Arc<Vec<u8>>>,
}

impl Image {
    /// Returns the paths of all files, sorted.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.files.keys().map(PathBuf::as_path)
    }

    /// Returns the contents of a file.
    #[must_use]
    pub fn get(&self, path: &Path) -> Option<&[u8]> {
        self.files.get(&normal(path)).map(|contents| contents.as_slice())
    }

    /// Sets the contents of a file, as damage or as a fixture; its folders are created.
    pub fn set(&mut self, path: &Path, contents: Vec<u8>) {
        let path = normal(path);
        let parents = path.ancestors().skip(1).filter(|dir| dir.parent().is_some());
        self.dirs.extend(parents.map(Path::to_owned));
        self.files.insert(path, Arc::new(contents));
    }

    /// Removes a file.
    pub fn remove(&mut self, path: &Path) {
        self.files.remove(&normal(path));
    }

    /// Writes everything under a real folder, which is created if absent.
    ///
    /// # Errors
    ///
    /// The operating system's.
    #[expect(clippy::disallowed_methods, reason = "an image becomes a folder of the real file system")]
    pub fn write_to(&self, folder: &Path) -> io::Result<()> {
        let target = |path: &Path| folder.join(path.strip_prefix("/").unwrap_or(path));
        std::fs::create_dir_all(folder)?;
        self.dirs.iter().try_for_each(|dir| std::fs::create_dir_all(target(dir)))?;
        self.files.iter().try_for_each(|(path, contents)| std::fs::write(target(path), contents.as_slice()))
    }

    /// Keeps what can be reached from the root: a name in a folder that was lost is lost with it.
    pub(super) fn from_disk(disk: &Disk) -> Self {
        let reached = |path: &Path| path.ancestors().skip(1).all(|dir| disk.is_dir(dir));
        let mut image = Self::default();
        for (path, entry) in disk.entries.iter().filter(|(path, _)| reached(path)) {
            match entry {
                DiskEntry::Dir => {
                    image.dirs.insert(path.clone());
                }
                DiskEntry::File(inode) => {
                    let contents = disk.contents.get(inode).cloned().unwrap_or_default();
                    image.files.insert(path.clone(), contents);
                }
            }
        }
        image
    }

    pub(super) fn to_disk(&self) -> Disk {
        let mut disk = Disk::default();
        disk.entries.extend(self.dirs.iter().map(|dir| (dir.clone(), DiskEntry::Dir)));
        for (number, (path, contents)) in (0..).zip(&self.files) {
            disk.entries.insert(path.clone(), DiskEntry::File(Inode(number)));
            disk.contents.insert(Inode(number), Arc::clone(contents));
        }
        disk
    }
}
