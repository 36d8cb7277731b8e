//! Folders of data files: they come with their first file and go with their last.
//!
//! A file is made in a folder that may be about to go. Nothing locks: a folder goes only while it
//! is empty, and the thread that finds it gone makes it again. What a loss of power leaves of empty
//! folders goes on the next open.

use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use hashbrown::HashSet;

use super::past::where_it_lies;
use crate::{
    Error, Result,
    model::DATA_DIR,
    sync::Mutex,
    vfs::{Vfs, VfsFile, is_shortage},
};

/// What an error says that was done when it came.
pub(super) const SYNC_FOLDER: &str = "sync folder";

/// How often a folder may go before a file can be made in it: each time, a thread has removed the
/// last file of it meanwhile.
const MAX_TRIES: usize = 100;

/// Folders at which those that are known start to be forgotten.
const MAX_KNOWN: usize = 1 << 16;

/// Folders of days that are known to be durable with all folders above them, below the data
/// directory.
///
/// What an earlier process has made may be in the cache only: a folder is known once this one has
/// synced those above it, while a file was in it. A thread that is about to remove a file, and
/// maybe its folder, has it forgotten first.
#[derive(Debug, Default)]
pub(crate) struct KnownFolders {
    known: Mutex<HashSet<PathBuf>>,
    /// Why no names are relied on any more.
    failed: OnceLock<String>,
}

impl KnownFolders {
    /// Takes note of a sync that failed: nothing knows which names in the folder are on the disk,
    /// nor would another sync tell.
    fn note(&self, folder: &Path, error: &io::Error) {
        // Those have failed before the sync.
        if !is_shortage(error) && error.kind() != io::ErrorKind::NotFound {
            let _ = self.failed.set(format!("a sync of folder {} failed: {error}", folder.display()));
        }
    }

    /// Takes note of an error, if it is that.
    pub(crate) fn note_error(&self, error: &Error) {
        if let Error::Io { action: SYNC_FOLDER, path, source } = error {
            self.note(path, source);
        }
    }

    /// Returns why no names are relied on any more.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.failed.get().map(String::as_str)
    }

    /// Fails once a sync of a folder has failed: no folder is synced again before the directory is
    /// opened anew.
    pub(crate) fn check(&self) -> Result<()> {
        self.failed.get().map_or(Ok(()), |reason| Err(Error::Closed { reason: reason.clone() }))
    }

    /// Forgets the folder of a file that is about to be removed.
    pub(crate) fn forget(&self, path: &str) {
        if let Some(folder) = Path::new(path).parent() {
            self.known.lock().remove(folder);
        }
    }

    fn has(&self, folder: &Path) -> bool {
        self.known.lock().contains(folder)
    }

    fn add(&self, folders: impl IntoIterator<Item = PathBuf>) {
        let mut known = self.known.lock();
        if known.len() >= MAX_KNOWN {
            known.clear();
        }
        known.extend(folders);
    }
}

/// The folders of files that are published together. Each is synced once, however many of the files
/// are below it.
#[derive(Debug)]
pub(crate) struct FolderSyncs<'a> {
    vfs: &'a dyn Vfs,
    root: &'a Path,
    known: &'a KnownFolders,
    /// Folders that have many folders below them, and are synced in the end.
    shared: Mutex<BTreeSet<PathBuf>>,
    /// Folders of days that are known to be durable then.
    made: Mutex<Vec<PathBuf>>,
}

impl<'a> FolderSyncs<'a> {
    pub(crate) fn new(vfs: &'a dyn Vfs, root: &'a Path, known: &'a KnownFolders) -> Self {
        Self { vfs, root, known, shared: Mutex::default(), made: Mutex::default() }
    }

    /// Syncs the folders that are of one table alone, whose files have these paths.
    pub(crate) fn sync_table<'p>(&self, paths: impl Iterator<Item = &'p str>) -> Result<()> {
        let days: BTreeSet<&Path> = paths.filter_map(|path| Path::new(path).parent()).collect();
        let mut tables: HashSet<&Path> = HashSet::new();
        for day in days {
            self.sync(day)?;
            if self.known.has(day) {
                continue;
            }
            self.made.lock().push(day.to_owned());
            if let Some(table) = day.parent().filter(|table| tables.insert(table)) {
                self.sync(table)?;
                let above = table.ancestors().skip(1).take_while(|folder| *folder != Path::new(""));
                self.shared.lock().extend(above.map(Path::to_owned));
            }
        }
        Ok(())
    }

    /// Syncs those above them. From then on all of the files are durable under their names.
    pub(crate) fn finish(self) -> Result<()> {
        self.shared.lock().iter().try_for_each(|folder| self.sync(folder))?;
        self.known.add(self.made.into_inner());
        Ok(())
    }

    /// Makes a folder for data files, durably, though nothing is in it yet.
    pub(super) fn make(&self, folder: &Path) -> Result<()> {
        let path = self.root.join(folder);
        self.vfs.create_dir_all(&path).map_err(|e| Error::io("create folder", path, e))?;
        let mut above = folder.ancestors().skip(1).take_while(|folder| *folder != Path::new(""));
        above.try_for_each(|folder| self.sync(folder))
    }

    fn sync(&self, folder: &Path) -> Result<()> {
        let folder = self.root.join(folder);
        self.vfs.sync_dir(&folder).map_err(|error| {
            // Here, not where the error arrives: of several threads that fail only one is heard.
            self.known.note(&folder, &error);
            Error::io(SYNC_FOLDER, folder, error)
        })
    }
}

/// Creates a file, with all folders above it where they are not there.
pub(super) fn create_with_folders(vfs: &dyn Vfs, path: &Path) -> Result<Box<dyn VfsFile>> {
    match vfs.create_new(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => create_folders_too(vfs, path),
        created => created.map_err(|e| Error::io("create", path, e)),
    }
}

fn create_folders_too(vfs: &dyn Vfs, path: &Path) -> Result<Box<dyn VfsFile>> {
    let folder = path.parent().unwrap_or(path);
    let create = || {
        vfs.create_dir_all(folder).map_err(|e| ("create folder", folder, e))?;
        vfs.create_new(path).map_err(|e| ("create", path, e))
    };
    let gone = |failed: &(&str, &Path, io::Error)| match failed.2.kind() {
        io::ErrorKind::NotFound => true,
        // The folder was there when it was to be made, and was not when the system was asked
        // whether it is a folder.
        io::ErrorKind::AlreadyExists => failed.1 == folder,
        _ => false,
    };
    let mut created = create();
    for _ in 1..MAX_TRIES {
        if !created.as_ref().is_err_and(gone) {
            break;
        }
        created = create();
    }
    created.map_err(|(action, path, e)| Error::io(action, path, e))
}

/// Removes a data file where it lies, and the folders of which it was the last.
pub(crate) fn remove_data_file(vfs: &dyn Vfs, root: &Path, path: &str) -> io::Result<()> {
    let path = root.join(path);
    where_it_lies(&path, |path| vfs.remove_file(path))?;
    if let Some(folder) = path.parent() {
        remove_empty_folders(vfs, root, folder);
    }
    Ok(())
}

/// Removes `folder` and those above it, up to but without that of all data files, as far as they
/// are empty.
pub(crate) fn remove_empty_folders(vfs: &dyn Vfs, root: &Path, folder: &Path) {
    let top = root.join(DATA_DIR);
    let below = folder.ancestors().take_while(|folder| **folder != *top && folder.starts_with(&top));
    for folder in below {
        // One that is not empty refuses, and whatever else refuses can stay.
        if vfs.remove_dir(folder).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::vfs::{CrashFs, Fault, FaultFs, Operation, RealVfs};

    #[test]
    fn folders_go_with_their_last_file_and_no_further_than_the_data() {
        let dir = tempfile::tempdir().unwrap();
        let systems: [(Arc<dyn Vfs>, &Path); 2] =
            [(Arc::new(CrashFs::new()), Path::new("/r")), (Arc::new(RealVfs), dir.path())];
        for (vfs, root) in systems {
            let vfs = vfs.as_ref();
            let paths = ["data/d/t/day=1/a", "data/d/t/day=1/b", "data/d/u/day=1/c"];
            for path in paths {
                drop(create_with_folders(vfs, &root.join(path)).unwrap());
            }
            let there = |path: &str| vfs.list(&root.join(path)).is_ok();
            remove_data_file(vfs, root, paths[0]).unwrap();
            assert!(there("data/d/t/day=1"));
            remove_data_file(vfs, root, paths[1]).unwrap();
            assert!(!there("data/d/t") && there("data/d/u/day=1"));
            remove_data_file(vfs, root, paths[2]).unwrap();
            assert!(!there("data/d") && there("data"));
            remove_empty_folders(vfs, root, &root.join("data"));
            remove_empty_folders(vfs, root, root);
            assert!(there("data"));
            assert_eq!(remove_data_file(vfs, root, paths[0]).unwrap_err().kind(), io::ErrorKind::NotFound);
        }
    }

    #[test]
    fn a_folder_that_goes_meanwhile_is_made_again_and_other_failures_are_told() {
        for operation in [Operation::CreateDirAll, Operation::CreateNew] {
            let faulty = FaultFs::new(Arc::new(CrashFs::new()));
            faulty.set(Fault::nth(1, io::ErrorKind::NotFound).of(operation));
            assert!(create_with_folders(&faulty, Path::new("/data/a")).is_ok());
            let exists = create_with_folders(&faulty, Path::new("/data/a")).err().unwrap();
            assert!(exists.to_string().contains("create /data/a"), "{exists}");
            let mut fault = Fault::nth(1, io::ErrorKind::NotFound).of(operation);
            fault.from_then_on = true;
            faulty.set(fault);
            assert!(create_with_folders(&faulty, Path::new("/b/b")).is_err(), "not for ever");
            faulty.set(Fault::nth(1, io::ErrorKind::AlreadyExists).of(Operation::CreateDirAll));
            assert!(create_with_folders(&faulty, Path::new("/b/b")).is_ok());
            faulty.set(Fault::nth(1, io::ErrorKind::StorageFull).of(operation));
            assert_eq!(
                create_with_folders(&faulty, Path::new("/c/c")).unwrap_err().kind(),
                crate::ErrorKind::StorageFull
            );
        }
    }

    #[test]
    fn folders_of_files_that_are_published_together_are_synced_once_and_known_afterwards() {
        let faults = FaultFs::new(Arc::new(CrashFs::new()));
        let (root, known) = (Path::new("/r"), KnownFolders::default());
        let paths =
            ["data/d/t/day=1/a", "data/d/t/day=1/b", "data/d/t/day=2/a", "data/d/u/day=1/a", "data/e/v/day=1/a"];
        let syncs = |paths: &[&str]| {
            paths.iter().for_each(|path| drop(create_with_folders(&faults, &root.join(path))));
            let before = faults.calls(Operation::SyncDir);
            let folders = FolderSyncs::new(&faults, root, &known);
            folders.sync_table(paths.iter().filter(|path| path.contains("/t/")).copied()).unwrap();
            folders.sync_table(paths.iter().filter(|path| path.contains("/u/")).copied()).unwrap();
            folders.sync_table(paths.iter().filter(|path| path.contains("/v/")).copied()).unwrap();
            folders.finish().unwrap();
            faults.calls(Operation::SyncDir) - before
        };
        // Four folders of days, three of tables, two of databases, and that of all data.
        assert_eq!(syncs(&paths), 10);
        assert_eq!(syncs(&paths), 4);
        known.forget(paths[0]);
        assert_eq!(syncs(&paths[..3]), 2 + 3);
        // A sync that failed leaves nothing known.
        known.forget(paths[3]);
        faults.set(Fault::nth(3, io::ErrorKind::Other).of(Operation::SyncDir));
        let folders = FolderSyncs::new(&faults, root, &known);
        folders.sync_table([paths[3]].into_iter()).unwrap();
        assert!(known.check().is_ok() && folders.finish().is_err());
        faults.clear();
        assert_eq!(syncs(&paths[3..4]), 4);
        // A thread that hears of another failure first finds it all the same.
        assert!(known.check().is_err() && known.failure().unwrap().contains("/r/data failed"), "{:?}", known.failure());
    }

    #[test]
    fn files_are_made_while_others_are_the_last_to_go() {
        let dir = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let root = dir.path();
                scope.spawn(move || {
                    for n in 0..200 {
                        let path = format!("data/d/t/day=1/{thread}-{n}");
                        drop(create_with_folders(&RealVfs, &root.join(&path)).unwrap());
                        remove_data_file(&RealVfs, root, &path).unwrap();
                    }
                });
            }
        });
        assert!(!dir.path().join("data/d").exists());
    }
}
