//! Folders of data files: they come with their first file and go with their last.
//!
//! A file is made in a folder that may be about to go. Nobody locks: a folder goes only while it is empty, and whoever finds
//! it gone makes it again. What a loss of power leaves of empty folders goes on the next open.

use std::{io, path::Path};

use super::DATA_DIR;
use crate::{
    Error, Result,
    vfs::{Vfs, VfsFile},
};

/// How often a folder may go before a file can be made in it: each time, somebody has removed the last file of it meanwhile.
const MAX_TRIES: usize = 100;

/// Creates a file with all folders above it.
pub(super) fn create_with_folders(vfs: &dyn Vfs, path: &Path) -> Result<Box<dyn VfsFile>> {
    let folder = path.parent().unwrap_or(path);
    let create = || {
        vfs.create_dir_all(folder).map_err(|e| ("create folder", folder, e))?;
        vfs.create_new(path).map_err(|e| ("create", path, e))
    };
    let gone = |failed: &(&str, &Path, io::Error)| match failed.2.kind() {
        io::ErrorKind::NotFound => true,
        // The folder was there when it was to be made, and was not when the system was asked whether it is a folder.
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

/// Removes a data file, and the folders of which it was the last.
pub(crate) fn remove_data_file(vfs: &dyn Vfs, root: &Path, path: &str) -> io::Result<()> {
    vfs.remove_file(&root.join(path))?;
    let path = root.join(path);
    if let Some(folder) = path.parent() {
        remove_empty_folders(vfs, root, folder);
    }
    Ok(())
}

/// Removes `folder` and those above it, up to but without that of all data files, as far as they are empty.
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
            assert!(create_with_folders(&faulty, Path::new("/data/b")).is_err(), "not for ever");
            faulty.set(Fault::nth(1, io::ErrorKind::AlreadyExists).of(Operation::CreateDirAll));
            assert!(create_with_folders(&faulty, Path::new("/data/b")).is_ok());
            faulty.set(Fault::nth(1, io::ErrorKind::StorageFull).of(operation));
            assert_eq!(
                create_with_folders(&faulty, Path::new("/data/c")).unwrap_err().kind(),
                crate::ErrorKind::StorageFull
            );
        }
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
