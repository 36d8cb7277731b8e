//! The data directory: the marker that says a folder is ours, and the folders in it.
//!
//! Owns the file `ARC` and the names of the top level (docs/format.md, "Data directory"). Never goes into a folder that
//! is not marked and holds anything else: a wrong path must not become a mess.

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::orphans::data_files;
use crate::{
    Error, Result,
    datafile::{DATA_DIR, TEMPORARY_SUFFIX},
    vfs::{DirEntry, Vfs},
};

/// Folder of the manifests, one folder for each writer.
pub(crate) const META_DIR: &str = "meta";
/// Folder of the log's segments.
pub(crate) const WAL_DIR: &str = "wal";
/// File that a process locks while it has the data directory open.
pub(crate) const LOCK_FILE: &str = "LOCK";

const MARKER: &str = "ARC";

/// Newest version of the data directory that is read, and the one that is written.
const FORMAT_VERSION: u32 = 1;

/// Contents of the marker.
#[derive(Serialize, Deserialize)]
struct Marker {
    arc_format: u32,
}

/// Checks that `root` is a data directory that this build reads, or makes it one if it is absent or empty.
///
/// # Errors
///
/// [`Error::NotADataDirectory`] if it is a file, or holds other things and no marker; [`Error::NewerFormat`];
/// [`Error::Corrupt`] if the marker cannot be read, or the manifest is gone though there are data files;
/// [`Error::Io`] naming what could not be read or written.
pub(crate) fn open_layout(vfs: &dyn Vfs, root: &Path) -> Result<()> {
    let entries = match vfs.list(root) {
        Err(e) if e.kind() == ErrorKind::NotFound => {
            create_root(vfs, root)?;
            Vec::new()
        }
        Err(e) if e.kind() == ErrorKind::NotADirectory => {
            return Err(Error::NotADataDirectory { path: root.into(), reason: "it is no folder".into() });
        }
        listed => listed.map_err(|e| Error::io("list", root, e))?,
    };
    if entries.iter().any(|entry| entry.name == MARKER) {
        check_marker(vfs, root)?;
        create_folders(vfs, root)?;
        // A crash may have left the marker or a folder in the cache only.
        sync(vfs, root)?;
        return check_manifest_is_there(vfs, root);
    }
    check_nothing_else(vfs, root, &entries)?;
    create_folders(vfs, root)?;
    write_marker(vfs, root)
}

/// Creates the folder and makes its name durable, and those of the folders above it that were missing as well.
fn create_root(vfs: &dyn Vfs, root: &Path) -> Result<()> {
    let is_missing = |folder: &&Path| vfs.list(folder).is_err_and(|e| e.kind() == ErrorKind::NotFound);
    let missing: Vec<&Path> =
        root.ancestors().filter(|folder| *folder != Path::new("")).take_while(is_missing).collect();
    vfs.create_dir_all(root).map_err(|e| Error::io("create folder", root, e))?;
    for folder in missing {
        match folder.parent() {
            Some(parent) if parent == Path::new("") => sync(vfs, Path::new("."))?,
            Some(parent) => sync(vfs, parent)?,
            None => {}
        }
    }
    Ok(())
}

fn create_folders(vfs: &dyn Vfs, root: &Path) -> Result<()> {
    for folder in [DATA_DIR, META_DIR, WAL_DIR] {
        let folder = root.join(folder);
        vfs.create_dir_all(&folder).map_err(|e| Error::io("create folder", folder, e))?;
    }
    Ok(())
}

fn check_marker(vfs: &dyn Vfs, root: &Path) -> Result<()> {
    let path = root.join(MARKER);
    let bytes = vfs.read(&path).map_err(|e| Error::io("read", &path, e))?;
    match serde_json::from_slice(&bytes) {
        Ok(Marker { arc_format: 0 }) => Err(Error::corrupt(path, 0, "it says format version 0, which never was")),
        Ok(Marker { arc_format: found }) if found > FORMAT_VERSION => {
            Err(Error::NewerFormat { path: root.into(), found, supported: FORMAT_VERSION })
        }
        Ok(_) => Ok(()),
        Err(e) => Err(Error::corrupt(path, 0, format!("it should be {{\"arc_format\":{FORMAT_VERSION}}}: {e}"))),
    }
}

/// A stream of the manifest is never empty once it was open, and no data file is older than its stream. Without this
/// check, all data files of a directory that lost its manifest would be taken for orphans.
fn check_manifest_is_there(vfs: &dyn Vfs, root: &Path) -> Result<()> {
    let meta = root.join(META_DIR);
    let list = |folder: PathBuf| vfs.list(&folder).map_err(|e| Error::io("list", folder, e));
    for writer in list(meta.clone())?.into_iter().filter(|entry| entry.is_dir) {
        let objects = list(meta.join(writer.name))?;
        if objects.iter().any(|object| !object.name.ends_with(TEMPORARY_SUFFIX)) {
            return Ok(());
        }
    }
    match data_files(vfs, root)?.first() {
        None => Ok(()),
        Some(file) => Err(Error::corrupt(meta, 0, format!("the manifest is missing, though there is {file}"))),
    }
}

/// Lets pass what we make ourselves before the marker is there.
fn check_nothing_else(vfs: &dyn Vfs, root: &Path, entries: &[DirEntry]) -> Result<()> {
    let temporary = format!("{MARKER}{TEMPORARY_SUFFIX}");
    for entry in entries {
        let ours = match entry.name.as_str() {
            LOCK_FILE => !entry.is_dir,
            DATA_DIR | META_DIR | WAL_DIR => {
                let folder = root.join(&entry.name);
                entry.is_dir && vfs.list(&folder).map_err(|e| Error::io("list", folder, e))?.is_empty()
            }
            name => name == temporary,
        };
        if !ours {
            let reason = format!("it has no file {MARKER} and is not empty: it has {:?}", entry.name);
            return Err(Error::NotADataDirectory { path: root.into(), reason });
        }
    }
    Ok(())
}

fn write_marker(vfs: &dyn Vfs, root: &Path) -> Result<()> {
    let (path, temporary) = (root.join(MARKER), root.join(format!("{MARKER}{TEMPORARY_SUFFIX}")));
    match vfs.remove_file(&temporary) {
        Err(e) if e.kind() != ErrorKind::NotFound => return Err(Error::io("remove", temporary, e)),
        _ => {}
    }
    let marker = serde_json::to_vec(&Marker { arc_format: FORMAT_VERSION })
        .map_err(|e| Error::internal(format!("cannot encode the marker: {e}")))?;
    let file = vfs.create_new(&temporary).map_err(|e| Error::io("create", &temporary, e))?;
    file.write_all_at(&[&marker, b"\n"], 0).map_err(|e| Error::io("write", &temporary, e))?;
    file.sync_all().map_err(|e| Error::io("sync", &temporary, e))?;
    vfs.rename(&temporary, &path).map_err(|e| Error::io("rename", &temporary, e))?;
    sync(vfs, root)
}

fn sync(vfs: &dyn Vfs, folder: &Path) -> Result<()> {
    vfs.sync_dir(folder).map_err(|e| Error::io("sync folder", folder, e))
}
