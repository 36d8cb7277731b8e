//! Copies of a data directory: backups that are taken while it is in use, and what a backup is
//! restored to.
//!
//! A backup is a data directory itself: the data files of one version of the manifest, and the log
//! after it. Owns the order in which one comes to be: data files first, then the manifest that
//! names them, then the log, segment by segment, the marker at the end, and only then what is
//! needed no longer is removed. So a copy is no data directory yet, or it is whole, with all that
//! the older one had and maybe more, wherever it is cut off: the new manifest has everything up to
//! some frame, and what is there of the older log or of the new one goes on from that frame. Never
//! changes the directory that is copied, and never writes into a folder that holds anything but an
//! earlier backup of the same.

mod copy;
mod log;
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

pub(crate) use target::logged;

pub(super) use self::{
    copy::Copier,
    target::{absolute, check_apart},
};

use self::target::Target;
use crate::{
    Result, SequenceNumber,
    catalog::{Manifest, ManifestState, create_folders, survey as survey_manifest, write_marker},
    datafile::remove_orphans,
    model::{META_DIR, WAL_DIR, WRITER},
    vfs::Vfs,
    wal::{Acknowledged, LogPart},
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
    /// Bytes of the log that were copied: points that were in no data file, which the first opening
    /// replays.
    pub log_bytes: u64,
}

/// A data directory of which a state is to be copied; the caller keeps its files from being
/// removed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BackupSource<'a> {
    pub(crate) vfs: &'a Arc<dyn Vfs>,
    pub(crate) root: &'a Path,
    pub(crate) state: &'a ManifestState,
    /// The log after that state, oldest first, and its last frame.
    pub(crate) log: &'a [LogPart],
    pub(crate) logged: SequenceNumber,
}

/// A backup under way.
#[derive(Debug)]
pub(crate) struct Backup<'a> {
    source: BackupSource<'a>,
    target: &'a Path,
    folder: Target<'a>,
    log_bytes: u64,
}

impl<'a> Backup<'a> {
    /// Begins a backup of `source` to `target`, and copies the log: what it is in is needed no
    /// longer afterwards.
    pub(crate) fn begin(source: BackupSource<'a>, target: &'a Path) -> Result<Self> {
        let vfs = source.vfs.as_ref();
        let folder = Target::prepare(vfs, source.root, target, source.log)?;
        create_folders(vfs, target)?;
        let log_bytes = log::stage(vfs, source.log, &target.join(WAL_DIR))?;
        Ok(Self { source, target, folder, log_bytes })
    }

    /// Brings the data files and makes the backup whole; tells `progress` after each file.
    pub(crate) fn finish(self, progress: &mut dyn FnMut(&BackupReport)) -> Result<BackupReport> {
        let Self { source, target, folder, log_bytes } = self;
        let vfs = source.vfs.as_ref();
        let mut report = BackupReport { log_bytes, ..BackupReport::default() };
        for file in source.state.files() {
            report.files += 1;
            report.bytes += file.bytes;
            report.rows += file.rows;
        }
        progress(&report);
        let mut copier = Copier::new(vfs, source.root, target, source.state);
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
        let wal = target.join(WAL_DIR);
        log::publish(vfs, source.log, &wal)?;
        if !source.log.is_empty() {
            // Nothing after its last frame says that it was synced: who only reads would miss it.
            Acknowledged::open(source.vfs, &wal, source.logged);
        }
        write_marker(vfs, target)?;
        folder.finish(source.log, source.logged)?;
        report.removed_files = remove_orphans(
            vfs,
            target,
            &source.state.stored_paths(),
            &hashbrown::HashSet::new(),
            |_| false,
            |_| Ok(()),
        )?
        .removed
        .len() as u64;
        Ok(report)
    }
}

pub(crate) fn manifest_dir(root: &Path) -> PathBuf {
    root.join(META_DIR).join(WRITER)
}
