//! The folder that a copy goes to: whose it is, and that nobody else uses it.

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{
    Error, Result,
    catalog::{LOCK_FILE, WAL_DIR, sync_parents},
    datafile::TEMPORARY_SUFFIX,
    engine::{Lock, lock},
    verify::{files_below, has_files},
    vfs::Vfs,
};

/// File that says that a folder is a backup, and of what.
pub(crate) const BACKUP_MARKER: &str = "BACKUP";

/// Contents of that file.
#[derive(Debug, Serialize, Deserialize)]
struct Marker {
    arc_backup: u32,
    /// Path of the data directory that it is a backup of.
    source: PathBuf,
}

/// Makes `target` a folder that a backup of `source` may be written to, and takes exclusive use of it.
///
/// # Errors
///
/// [`Error::BadTarget`] if it holds anything but an earlier backup of the same directory; [`Error::InUse`]; [`Error::Io`].
pub(super) fn prepare(vfs: &dyn Vfs, source: &Path, target: &Path) -> Result<Lock> {
    let source = absolute(source)?;
    check_apart(&source, &absolute(target)?)?;
    let is_known = check_contents(vfs, &source, target)?;
    vfs.create_dir_all(target).map_err(|e| Error::io("create folder", target, e))?;
    let lock = lock(vfs, target)?;
    if !is_known {
        sync_parents(vfs, target)?;
        write_marker(vfs, target, source)?;
    }
    Ok(lock)
}

pub(super) fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|e| Error::io("find", path, e))
}

/// A copy inside of what is copied, or around it, would copy itself.
pub(super) fn check_apart(source: &Path, target: &Path) -> Result<()> {
    if target.starts_with(source) || source.starts_with(target) {
        let reason = format!("it and {} are one inside the other", source.display());
        return Err(Error::BadTarget { path: target.into(), reason });
    }
    Ok(())
}

/// Returns whether the folder is an earlier backup, or refuses it if it is anything else but empty.
fn check_contents(vfs: &dyn Vfs, source: &Path, target: &Path) -> Result<bool> {
    let bad = |reason: String| Err(Error::BadTarget { path: target.into(), reason });
    let path = target.join(BACKUP_MARKER);
    let bytes = match vfs.read(&path) {
        Ok(bytes) => bytes,
        Err(e) if [ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&e.kind()) => {
            let temporary = target.join(format!("{BACKUP_MARKER}{TEMPORARY_SUFFIX}"));
            let is_ours = |path: &PathBuf| *path == target.join(LOCK_FILE) || *path == temporary;
            return match files_below(vfs, target)?.iter().find(|path| !is_ours(path)) {
                None => Ok(false),
                Some(file) => bad(format!("it is no backup and not empty: it has {}", file.display())),
            };
        }
        Err(e) => return Err(Error::io("read", path, e)),
    };
    let marker: Marker = serde_json::from_slice(&bytes).map_err(|e| Error::corrupt(&path, 0, e.to_string()))?;
    if marker.source != source {
        return bad(format!("it is a backup of {}", marker.source.display()));
    }
    if has_files(vfs, &target.join(WAL_DIR))? {
        return bad("it was opened and written to since it was made".into());
    }
    Ok(true)
}

fn write_marker(vfs: &dyn Vfs, target: &Path, source: PathBuf) -> Result<()> {
    let path = target.join(BACKUP_MARKER);
    let temporary = target.join(format!("{BACKUP_MARKER}{TEMPORARY_SUFFIX}"));
    match vfs.remove_file(&temporary) {
        Err(e) if e.kind() != ErrorKind::NotFound => return Err(Error::io("remove", temporary, e)),
        _ => {}
    }
    let mut bytes = serde_json::to_vec(&Marker { arc_backup: 1, source })
        .map_err(|e| Error::BadTarget { path: target.into(), reason: format!("cannot name its source: {e}") })?;
    bytes.push(b'\n');
    let file = vfs.create_new(&temporary).map_err(|e| Error::io("create", &temporary, e))?;
    file.write_all_at(&[&bytes], 0).map_err(|e| Error::io("write", &temporary, e))?;
    file.sync_all().map_err(|e| Error::io("sync", &temporary, e))?;
    vfs.rename(&temporary, &path).map_err(|e| Error::io("rename", &temporary, e))?;
    vfs.sync_dir(target).map_err(|e| Error::io("sync folder", target, e))
}
