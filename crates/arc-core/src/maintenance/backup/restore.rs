//! From a backup to a data directory of its own.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    copy::Copier,
    logged, manifest_dir,
    target::{absolute, check_apart},
};
use crate::{
    Error, Result,
    catalog::{
        Manifest, ManifestState, check_has_no_store, check_marker, create_folders, survey as survey_manifest,
        sync_parents, write_marker,
    },
    datafile::copy_file,
    engine::{FrameChecker, lock},
    maintenance::verify::{files_below, lock_if_used},
    model::{META_DIR, WAL_DIR},
    vfs::{RealVfs, Vfs},
    wal::{Acknowledged, Survey, survey},
};

/// What a restore did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RestoreReport {
    /// Data files copied.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Rows in them.
    pub rows: u64,
    /// Frames of the log copied: points that the first opening replays.
    pub frames: u64,
}

/// Copies the backup at `from`, or any data directory that nothing has open, to `to`, which has to
/// be absent or empty.
///
/// Compares every byte of the data files with their checksums and every frame of the log, on the
/// way. Always copies: what is restored shares nothing with the backup.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let mut options = arc_core::Options::default();
/// # options.wal_segment_bytes = 64 << 10;
/// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
/// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
/// engine.backup(dir.path().join("backup"))?;
/// let report = arc_core::restore(dir.path().join("backup"), dir.path().join("restored"))?;
/// assert!(report.frames > 0); // the log has what was not flushed
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`Error::Corrupt`] naming the file of the backup that is damaged; [`Error::NotADataDirectory`];
/// [`Error::InUse`]; [`Error::BadTarget`] if there are files in `to`; [`Error::Io`]. Then `to` is
/// no data directory, and the files copied so far are removed.
pub fn restore(from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<RestoreReport> {
    let vfs: Arc<dyn Vfs> = Arc::new(RealVfs);
    restore_on(&vfs, from.as_ref(), to.as_ref())
}

/// As [`restore`], on any file system.
pub(crate) fn restore_on(vfs: &Arc<dyn Vfs>, from: &Path, to: &Path) -> Result<RestoreReport> {
    check_apart(&absolute(from)?, &absolute(to)?)?;
    if let Some(file) = files_below(vfs.as_ref(), to)?.first() {
        return Err(Error::BadTarget {
            path: to.into(),
            reason: format!("it is not empty: it has {}", file.display()),
        });
    }
    let _used = lock_if_used(vfs.as_ref(), from)?;
    check_has_no_store(vfs.as_ref(), from)?;
    check_marker(vfs.as_ref(), from)?;
    let state = read_manifest(vfs.as_ref(), from)?;
    let log = read_log(vfs.as_ref(), from, &state)?;
    vfs.create_dir_all(to).map_err(|e| Error::io("create folder", to, e))?;
    let _lock = lock(vfs.as_ref(), to)?;
    copy_all(vfs, from, to, state, &log).inspect_err(|_| {
        // Best effort: without a marker they are no data directory.
        for file in files_below(vfs.as_ref(), to).unwrap_or_default() {
            let _ = vfs.remove_file(&file);
        }
    })
}

fn read_manifest(vfs: &dyn Vfs, root: &Path) -> Result<ManifestState> {
    let manifest = survey_manifest(vfs, &manifest_dir(root))?;
    if let Some(damage) = manifest.damage.iter().find(|damage| damage.blocks) {
        return Err(Error::corrupt(&damage.path, damage.offset, damage.reason.as_str()));
    }
    if manifest.newest == 0 {
        return Err(Error::corrupt(root.join(META_DIR), 0, "the manifest is missing"));
    }
    Ok(manifest.state)
}

/// Checks the log after the data files.
fn read_log(vfs: &dyn Vfs, root: &Path, state: &ManifestState) -> Result<Survey> {
    let dir = root.join(WAL_DIR);
    let logged = logged(vfs, root)?;
    if files_below(vfs, &dir)?.is_empty() && logged <= state.flushed {
        return Ok(Survey::default());
    }
    let mut checker = FrameChecker::new(state);
    let mut bad = None;
    let found = survey(vfs, &dir, state.flushed, logged, &mut |location, frame| {
        if let Err(reason) = checker.check(&frame) {
            bad.get_or_insert((location.clone(), format!("frame {}: {reason}", frame.seq)));
        }
        Ok(())
    })?;
    // Frames after a gap may make no sense without those that are gone.
    let gap = found.gaps.first().map(|gap| (gap.location.clone(), gap.reason.clone()));
    match gap.or(bad) {
        Some((location, reason)) => Err(Error::corrupt(location.path, location.offset, reason)),
        None => Ok(found),
    }
}

fn copy_all(vfs: &Arc<dyn Vfs>, from: &Path, to: &Path, state: ManifestState, log: &Survey) -> Result<RestoreReport> {
    sync_parents(vfs.as_ref(), to)?;
    create_folders(vfs.as_ref(), to)?;
    let mut report = RestoreReport { frames: log.frames, ..RestoreReport::default() };
    let mut copier = Copier::new(vfs.as_ref(), from, to, &state);
    for file in state.files() {
        copier.copy(file)?;
        report.files += 1;
        report.bytes += file.bytes;
        report.rows += file.rows;
    }
    copier.sync_folders()?;
    let wal = to.join(WAL_DIR);
    for segment in &log.segments {
        let name: PathBuf = segment.file_name().into_iter().collect();
        copy_file(vfs.as_ref(), segment, &wal.join(name), |_, _| Ok(()))?;
    }
    vfs.sync_dir(&wal).map_err(|e| Error::io("sync folder", &wal, e))?;
    Manifest::write_anew(vfs, &manifest_dir(to), state)?;
    if !log.segments.is_empty() {
        Acknowledged::open(vfs, &wal, log.last_seq);
    }
    write_marker(vfs.as_ref(), to)?;
    Ok(report)
}
