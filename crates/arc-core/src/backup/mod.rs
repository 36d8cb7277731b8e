//! Copies of a data directory: backups that are taken while it is in use, and what a backup is restored to.
//!
//! A backup is a data directory itself. Owns the order in which one comes to be: data files first, then the manifest that
//! names them, the marker at the end, and only then what the manifest no longer names is removed; so a copy is whole, or
//! the older one, or no data directory yet, wherever it is cut off. Never changes the directory that is copied, and never
//! writes into a folder that holds anything but an earlier backup of the same.

mod copy;
mod restore;
mod target;
#[cfg(test)]
mod tests;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

pub use restore::{RestoreReport, restore};

#[cfg(test)]
pub(crate) use restore::restore_on;

pub(crate) use copy::copy_file;
pub(crate) use target::BACKUP_MARKER;

use self::copy::Copier;
use crate::{
    Result,
    catalog::{
        META_DIR, Manifest, ManifestState, create_folders, remove_orphans, survey as survey_manifest, write_marker,
    },
    engine::WRITER,
    vfs::Vfs,
};

/// What a backup did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupReport {
    /// Data files that the backup is to have.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Rows in them.
    pub rows: u64,
    /// Files that were there already, from an earlier backup.
    pub kept_files: u64,
    /// Files that share their bytes with the data directory, through a hard link.
    pub linked_files: u64,
    /// Files that were copied.
    pub copied_files: u64,
    /// Bytes of these.
    pub copied_bytes: u64,
    /// Files of an earlier backup that were removed, because the data directory no longer has them.
    pub removed_files: u64,
}

/// A data directory of which a state is to be copied; the caller keeps its files from being removed.
#[derive(Debug)]
pub(crate) struct Source<'a> {
    pub(crate) vfs: &'a Arc<dyn Vfs>,
    pub(crate) root: &'a Path,
    pub(crate) state: &'a ManifestState,
}

/// Writes a backup of `source` to `target`, and tells `progress` after each file.
pub(crate) fn backup(
    source: &Source<'_>,
    target: &Path,
    progress: &mut dyn FnMut(&BackupReport),
) -> Result<BackupReport> {
    let vfs = source.vfs.as_ref();
    let _lock = target::prepare(vfs, source.root, target)?;
    create_folders(vfs, target)?;
    let mut report = BackupReport::default();
    for file in source.state.files() {
        report.files += 1;
        report.bytes += file.bytes;
        report.rows += file.rows;
    }
    progress(&report);
    let mut copier = Copier::new(vfs, source.root, target);
    for file in source.state.files() {
        copier.take(file, &mut report)?;
        progress(&report);
    }
    copier.sync_folders()?;
    let meta = manifest_dir(target);
    let there = survey_manifest(vfs, &meta)?;
    if !there.damage.is_empty() || there.newest == 0 || there.state != *source.state {
        Manifest::write_anew(source.vfs, &meta, source.state.clone())?;
    }
    write_marker(vfs, target)?;
    report.removed_files = remove_orphans(vfs, target, source.state)?.len() as u64;
    Ok(report)
}

pub(crate) fn manifest_dir(root: &Path) -> PathBuf {
    root.join(META_DIR).join(WRITER)
}
