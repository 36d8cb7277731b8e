//! The folder `past/`: data files that no table has any more, and that older states, snapshots,
//! queries or other processes still need.
//!
//! They leave the folders of their tables as soon as a commit has taken them out, so that other
//! programs, which read a table by a glob over its folder, find each row once (decision 039). The
//! manifest goes on calling a file by the path that it had; [`where_it_lies`] looks at both places, so
//! that a process may die on either side of a move, and another one may read meanwhile. Packs stay
//! where they are: no glob finds what is in them. Never decides which file moves.

use std::{
    io::{self, ErrorKind},
    path::Path,
};

use super::folders::{FolderSyncs, KnownFolders, remove_empty_folders};
use crate::{
    Error, Result,
    model::{PAST_DIR, past_path},
    vfs::Vfs,
};

/// Does something with a data file where it lies, by the path that it has as one of a table.
pub(crate) fn where_it_lies<T>(path: &Path, mut act: impl FnMut(&Path) -> io::Result<T>) -> io::Result<T> {
    let is_missing = |done: &io::Result<T>| done.as_ref().is_err_and(|e| e.kind() == ErrorKind::NotFound);
    let done = act(path);
    let Some(past) = is_missing(&done).then(|| past_path(path)).flatten() else { return done };
    let done = act(&past);
    // It may just have come back.
    if is_missing(&done) { act(path) } else { done }
}

/// The folder, as far as this process knows it.
#[derive(Debug, Default)]
pub(crate) struct PastFolder {
    is_there: bool,
    /// Whether a sync of it has failed: nothing is moved any more before the directory is opened anew.
    has_failed: bool,
}

impl PastFolder {
    /// Moves files there, by their paths below `root`, and removes the folders that are empty then.
    /// Returns those that could not be moved now. What is in an object store stays where it is.
    pub(crate) fn take(&mut self, vfs: &dyn Vfs, root: &Path, paths: Vec<String>) -> Vec<String> {
        let (mut moved, mut later) = (Vec::new(), Vec::new());
        for path in paths {
            if self.has_failed {
                break;
            }
            match self.take_one(vfs, root, &root.join(&path)) {
                Ok(true) => moved.push(path),
                Ok(false) => {}
                Err(error) => {
                    tracing::debug!(path, %error, "cannot move a data file that was replaced to past/");
                    later.push(path);
                }
            }
        }
        // A folder of which the loss of power leaves nothing takes what was in it along: so first the
        // new names.
        if !moved.is_empty() && self.sync(vfs, &root.join(PAST_DIR)).is_ok() {
            let folders = moved.iter().filter_map(|path| Path::new(path).parent());
            folders.for_each(|folder| remove_empty_folders(vfs, root, &root.join(folder)));
        }
        later
    }

    /// Moves one file; returns false if it stays for good, or is there already.
    fn take_one(&mut self, vfs: &dyn Vfs, root: &Path, from: &Path) -> io::Result<bool> {
        let Some(to) = past_path(from) else { return Ok(false) };
        let mut moved = vfs.rename(from, &to);
        if !self.is_there && moved.as_ref().is_err_and(|e| e.kind() == ErrorKind::NotFound) {
            vfs.create_dir_all(&root.join(PAST_DIR))?;
            self.sync(vfs, root)?;
            self.is_there = true;
            moved = vfs.rename(from, &to);
        }
        match moved {
            Ok(()) => Ok(true),
            // It is there, or gone.
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
            // It is an object, or on another disk.
            Err(e) if [ErrorKind::Unsupported, ErrorKind::CrossesDevices].contains(&e.kind()) => Ok(false),
            Err(e) => Err(e),
        }
    }

    fn sync(&mut self, vfs: &dyn Vfs, folder: &Path) -> io::Result<()> {
        vfs.sync_dir(folder).inspect_err(|error| {
            self.has_failed = true;
            tracing::warn!(%error, "a sync of {} failed: data files are moved to past/ no more", folder.display());
        })
    }
}

/// Moves files back that tables have again, by their paths below `root`. One that cannot be moved is
/// found where it is, and moved by the next opening.
pub(crate) fn give_back<'p>(
    vfs: &dyn Vfs,
    root: &Path,
    known: &KnownFolders,
    paths: impl IntoIterator<Item = &'p str>,
) {
    for path in paths {
        if let Err(error) = give_one_back(vfs, root, known, Path::new(path)) {
            let source = std::error::Error::source(&error);
            tracing::warn!(path, %error, source, "cannot move a data file back from past/");
        }
    }
}

fn give_one_back(vfs: &dyn Vfs, root: &Path, known: &KnownFolders, path: &Path) -> Result<()> {
    let to = root.join(path);
    let Some(from) = past_path(&to) else { return Ok(()) };
    let is_missing = |moved: &io::Result<()>| moved.as_ref().is_err_and(|e| e.kind() == ErrorKind::NotFound);
    let mut moved = vfs.rename(&from, &to);
    if is_missing(&moved) {
        if vfs.open_read(&from).is_err_and(|e| e.kind() == ErrorKind::NotFound) {
            // It never left.
            return Ok(());
        }
        // Durable before the file is in it: its old name may be gone at once.
        FolderSyncs::new(vfs, root, known).make(path.parent().unwrap_or(path))?;
        moved = vfs.rename(&from, &to);
    }
    moved.map_err(|e| Error::io("rename", from, e))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        datafile::remove_data_file,
        vfs::{CrashFs, Fault, FaultFs, Operation},
    };

    const ROOT: &str = "/srv/data";
    const FILES: [&str; 2] = [
        "data/db/t/day=2026-01-31/01ARZ3NDEKTSV4RRFFQ69G5FAV.parquet",
        "data/db/t/day=2026-02-01/01ARZ3NDEKTSV4RRFFQ69G5FAW.parquet",
    ];

    /// A disk with two data files, durable with their folders.
    fn disk() -> CrashFs {
        let disk = CrashFs::new();
        for file in FILES {
            let path = Path::new(ROOT).join(file);
            disk.create_dir_all(path.parent().unwrap()).unwrap();
            let opened = disk.create_new(&path).unwrap();
            opened.write_all_at(&[file.as_bytes()], 0).unwrap();
        }
        CrashFs::from_image(&disk.current())
    }

    fn take(vfs: &dyn Vfs, folder: &mut PastFolder) -> Vec<String> {
        folder.take(vfs, Path::new(ROOT), FILES.map(str::to_owned).to_vec())
    }

    fn is_at(vfs: &dyn Vfs, path: &str) -> bool {
        vfs.open_read(&Path::new(ROOT).join(path)).is_ok()
    }

    fn there_and_back(vfs: &dyn Vfs) {
        let root = Path::new(ROOT);
        assert_eq!(take(vfs, &mut PastFolder::default()), Vec::<String>::new());
        assert!(!is_at(vfs, FILES[0]) && is_at(vfs, "past/01ARZ3NDEKTSV4RRFFQ69G5FAV.parquet"));
        assert!(vfs.list(&root.join("data/db")).is_err(), "the folders are empty and gone");
        give_back(vfs, root, &KnownFolders::default(), FILES);
        assert!(FILES.iter().all(|file| is_at(vfs, file)) && vfs.list(&root.join("past")).unwrap().is_empty());
    }

    #[test]
    fn a_loss_of_power_at_any_moment_leaves_each_file_at_one_of_both_places() {
        let disk = disk();
        there_and_back(&disk);
        for cut in disk.power_cuts() {
            for image in cut.images(7, 200) {
                let after = CrashFs::from_image(&image);
                for file in FILES {
                    let found = where_it_lies(&Path::new(ROOT).join(file), |path| after.read(path));
                    assert_eq!(found.ok().as_deref(), Some(file.as_bytes()), "{}", cut.operations());
                }
                assert_eq!(image.files().count(), FILES.len(), "{}: no file is there twice", cut.operations());
            }
        }
    }

    #[test]
    fn a_file_is_sought_at_both_places_and_once_more_where_it_was() {
        let path = Path::new(ROOT).join(FILES[0]);
        let mut tried = Vec::new();
        let found: io::Result<()> = where_it_lies(&path, |path| {
            tried.push(path.to_owned());
            Err(ErrorKind::NotFound.into())
        });
        assert_eq!(found.unwrap_err().kind(), ErrorKind::NotFound);
        let past = Path::new(ROOT).join("past/01ARZ3NDEKTSV4RRFFQ69G5FAV.parquet");
        assert_eq!(tried, [path.clone(), past, path.clone()]);
        let mut tries = 0;
        let refused: io::Result<()> = where_it_lies(&path, |_| {
            tries += 1;
            Err(ErrorKind::PermissionDenied.into())
        });
        assert_eq!((refused.unwrap_err().kind(), tries), (ErrorKind::PermissionDenied, 1));
        let disk = disk();
        take(&disk, &mut PastFolder::default());
        remove_data_file(&disk, Path::new(ROOT), FILES[0]).unwrap();
        assert!(where_it_lies(&path, |path| disk.read(path)).is_err());
    }

    #[test]
    fn calls_that_fail_lose_nothing() {
        for operation in [Operation::Rename, Operation::SyncDir, Operation::CreateDirAll, Operation::RemoveDir] {
            for nth in 1..=4 {
                let disk = FaultFs::new(Arc::new(disk()));
                disk.set(Fault::nth(nth, ErrorKind::Other).of(operation));
                let mut folder = PastFolder::default();
                let later = take(&disk, &mut folder);
                let found = |file: &&str| where_it_lies(&Path::new(ROOT).join(file), |path| disk.read(path)).is_ok();
                assert!(FILES.iter().all(found), "{operation:?} {nth}");
                assert_eq!(folder.has_failed, operation == Operation::SyncDir && nth <= 2, "{operation:?} {nth}");
                if !folder.has_failed {
                    assert_eq!(folder.take(&disk, Path::new(ROOT), later), Vec::<String>::new());
                    assert!(FILES.iter().all(|file| !is_at(&disk, file)), "{operation:?} {nth}");
                }
                give_back(&disk, Path::new(ROOT), &KnownFolders::default(), FILES);
                assert!(FILES.iter().all(found), "{operation:?} {nth}");
            }
        }
    }

    #[test]
    fn only_data_files_of_tables_have_a_second_place() {
        let past = |path: &str| past_path(Path::new(path)).map(|path| path.display().to_string());
        assert_eq!(past(FILES[0]).as_deref(), Some("past/01ARZ3NDEKTSV4RRFFQ69G5FAV.parquet"));
        for path in [
            "past/01ARZ3NDEKTSV4RRFFQ69G5FAV.parquet",
            "data/db/t/day=2026-01-31/01ARZ3NDEKTSV4RRFFQ69G5FAV.parquet.tmp",
            "data/db/t/day=2026-01-31/notes.parquet",
            "data/db/t/01ARZ3NDEKTSV4RRFFQ69G5FAV.parquet",
            "data/_packs/01ARZ3NDEKTSV4RRFFQ69G5FAV.pack",
            "/srv/data/data/_packs/01ARZ3NDEKTSV4RRFFQ69G5FAV.pack/8-100.parquet",
            "/srv/data/wal/00000000000000000001-0000000000000001.wal",
            "",
        ] {
            assert_eq!(past(path), None, "{path}");
        }
    }
}
