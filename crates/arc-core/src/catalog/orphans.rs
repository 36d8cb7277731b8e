//! Data files that no manifest names: what a crash between a file's rename and its commit leaves behind.

use std::{io::ErrorKind, path::Path};

use hashbrown::HashSet;
use ulid::Ulid;

use super::ManifestState;
use crate::{
    Error, Result,
    datafile::{DATA_DIR, TEMPORARY_SUFFIX},
    vfs::Vfs,
};

/// Removes the data files below `<root>/data` that `state` does not name, finished or not, and returns their paths.
///
/// Only files named as we name them (a ULID, `.parquet`, perhaps `.tmp`) are touched. To be called before anything is
/// flushed, with the state of *all* writers: a file is named by no manifest until it is committed. A file that cannot be
/// removed is logged and stays for the next time.
///
/// # Errors
///
/// [`Error::Io`] if a folder cannot be listed.
pub(crate) fn remove_orphans(vfs: &dyn Vfs, root: &Path, state: &ManifestState) -> Result<Vec<String>> {
    let live: HashSet<&str> = state.files().map(|file| file.path.as_str()).collect();
    let mut removed = Vec::new();
    let orphans = data_files(vfs, root)?.into_iter().filter(|path| !live.contains(path.as_str()));
    for path in orphans {
        match vfs.remove_file(&root.join(&path)) {
            Ok(()) => removed.push(path),
            Err(error) => tracing::warn!(path, %error, "cannot remove a data file that no manifest names"),
        }
    }
    Ok(removed)
}

/// Returns the paths of all files below `<root>/data` that are named as data files are, relative to `root`.
pub(super) fn data_files(vfs: &dyn Vfs, root: &Path) -> Result<Vec<String>> {
    let mut files = Vec::new();
    let mut folders = vec![DATA_DIR.to_owned()];
    while let Some(folder) = folders.pop() {
        let path = root.join(&folder);
        let entries = match vfs.list(&path) {
            Err(e) if e.kind() == ErrorKind::NotFound => Vec::new(),
            listed => listed.map_err(|e| Error::io("list", path, e))?,
        };
        for entry in entries {
            let path = format!("{folder}/{}", entry.name);
            if entry.is_dir {
                folders.push(path);
            } else if is_data_file(&entry.name) {
                files.push(path);
            }
        }
    }
    Ok(files)
}

fn is_data_file(name: &str) -> bool {
    let name = name.strip_suffix(TEMPORARY_SUFFIX).unwrap_or(name);
    let id = name.strip_suffix(".parquet").unwrap_or_default();
    // The library reads lower-case letters, too; we write none.
    Ulid::from_string(id).is_ok_and(|ulid| ulid.to_string() == id)
}
