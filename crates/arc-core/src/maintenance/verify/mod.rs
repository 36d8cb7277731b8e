//! Verification: whether a data directory is what was written there, and agrees with itself.
//!
//! Compares marker, manifest, data files and log with their checksums and with each other. Never
//! changes a byte, never repairs (see `repair`), and holds one segment of the log or one batch of
//! rows in memory at a time. Called by people, by [`Engine::verify`](crate::Engine::verify), and by
//! tests after everything that crashes.

mod file;
mod log;
mod primary_keys;
mod report;
mod snapshots;
#[cfg(test)]
mod tests;

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
};

use hashbrown::HashSet;

pub use report::{Finding, Severity, VerifyReport, VerifyTotals};

pub(crate) use file::{FileChecker, check_bytes};
pub(crate) use report::describe;

use crate::{
    Error, Result, SequenceNumber,
    catalog::{
        ManifestState, ManifestSurvey, check_has_no_store, check_log_is_there, check_marker, is_of_volume,
        survey as survey_manifest,
    },
    datafile::find_orphans,
    engine::{Lock, lock},
    maintenance::{backup::logged, branch::is_unfinished},
    model::{BACKUP_MARKER, DATA_DIR, LOCK_FILE, LOST_DIR, MARKER, META_DIR, WAL_DIR, WRITER},
    vfs::{RealVfs, Vfs},
};

/// Leftovers that a report names one by one.
const MAX_NAMED: usize = 20;

const REPAIR: &str = "a repair can mend this; a backup may have what it would give up";
const REPAIR_MANIFEST: &str = "a repair writes the manifest anew from what is whole";
const LEFTOVER: &str = "the next opening removes it";
const UNNAMED: &str = "the next opening removes it, unless an older state needs it";

/// Verifies the data directory at `path`, which no process may have open. Changes nothing.
///
/// Reads everything: all objects of the manifest, all bytes and rows of all live data files, and
/// the whole log after them. Damage is what the report says; it is no error of this function.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("data");
/// let engine = arc_core::Engine::open(&path)?;
/// let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
/// engine.close()?;
/// let report = arc_core::verify(&path)?;
/// assert!(report.is_clean(), "{report}");
/// assert_eq!(report.totals.rows, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`Error::InUse`] while a process has it open; [`Error::NotADataDirectory`];
/// [`Error::NewerFormat`]; [`Error::Io`] if a folder, the manifest or the log cannot be read at
/// all.
pub fn verify(path: impl AsRef<Path>) -> Result<VerifyReport> {
    verify_on(&RealVfs, path.as_ref())
}

/// Verifies a data directory whose data files and manifest are in an object store; as [`verify`]
/// otherwise.
///
/// Reads all of it from there, each data file at least once, and larger ones through a file under
/// `tmp/store`. That nothing else has the store open is not looked at: what another engine writes
/// meanwhile may be called an orphan.
///
/// # Errors
///
/// As of [`verify`]; [`Error::OtherStore`] for a directory that has no object store.
#[cfg(feature = "object-store")]
pub fn verify_in_store(path: impl AsRef<Path>, storage: crate::store::ObjectStorage) -> Result<VerifyReport> {
    let root = path.as_ref();
    let storage = crate::store::OpenStorage::new(storage)?;
    let local: std::sync::Arc<dyn Vfs> = std::sync::Arc::new(RealVfs);
    let _lock = lock_if_used(local.as_ref(), root)?;
    let directory = crate::catalog::read_store_marker(local.as_ref(), root)?.ok_or_else(|| Error::OtherStore {
        path: root.into(),
        reason: "its data files and its manifest are in the directory, not in an object store".into(),
    })?;
    let vfs = storage.mount(local, root);
    let mut report = verify_locked(vfs.as_ref(), root)?;
    if report.directory.as_ref() != Some(&directory) {
        let found = report.directory.clone().unwrap_or_else(|| "none".into());
        let what = format!("the object store is that of the data directory {found}, this one is {directory}");
        report.error(
            root.join(META_DIR),
            None,
            what,
            "name the store and the prefix that the directory was opened with",
        );
    }
    Ok(report)
}

/// As [`verify`], on any file system.
pub(crate) fn verify_on(vfs: &dyn Vfs, root: &Path) -> Result<VerifyReport> {
    let _lock = lock_if_used(vfs, root)?;
    check_has_no_store(vfs, root)?;
    verify_locked(vfs, root)
}

/// As [`verify_on`], for one that holds the lock.
pub(crate) fn verify_locked(vfs: &dyn Vfs, root: &Path) -> Result<VerifyReport> {
    let mut report = VerifyReport::new(root);
    check_root(vfs, root, &mut report)?;
    let manifest = survey_manifest(vfs, &root.join(META_DIR).join(WRITER))?;
    report.directory.clone_from(&manifest.state.directory);
    report_manifest(vfs, root, &manifest, &mut report)?;
    check_files(vfs, root, &manifest.state, &mut report)?;
    let only_named = snapshots::check(vfs, root, &manifest.state, &|_| true, &mut report)?;
    if manifest.reached == manifest.newest {
        report_orphans(vfs, root, &manifest.state, &only_named, &mut report)?;
    }
    log::check(vfs, &root.join(WAL_DIR), &manifest.state, logged(vfs, root)?, &mut report)?;
    report_lost(vfs, root, &mut report)?;
    Ok(report)
}

/// Verifies the data files that `state` names, which the caller keeps from being removed, and those of
/// its snapshots of which `is_there` says that nobody has dropped them meanwhile.
pub(crate) fn verify_pinned(
    vfs: &dyn Vfs,
    root: &Path,
    state: &ManifestState,
    is_there: &dyn Fn(&str) -> bool,
    report: &mut VerifyReport,
) -> Result<()> {
    check_files(vfs, root, state, report)?;
    snapshots::check(vfs, root, state, is_there, report)?;
    Ok(())
}

/// Begins to verify the directory of an engine that runs.
pub(crate) fn begin_open(vfs: &dyn Vfs, root: &Path) -> Result<VerifyReport> {
    let mut report = VerifyReport::new(root);
    check_root(vfs, root, &mut report)?;
    Ok(report)
}

/// Verifies the manifest of an engine that runs, where commits may come meanwhile; returns false if what
/// it found is not the whole of what `is_now` says that the manifest is by then, and notes nothing.
pub(crate) fn verify_moving(
    vfs: &dyn Vfs,
    root: &Path,
    is_now: impl FnOnce(&ManifestSurvey) -> Result<bool>,
    report: &mut VerifyReport,
) -> Result<bool> {
    let Ok(manifest) = survey_manifest(vfs, &root.join(META_DIR).join(WRITER)) else { return Ok(false) };
    let is_whole = manifest.damage.is_empty() && is_now(&manifest)?;
    if is_whole {
        report_manifest(vfs, root, &manifest, report)?;
    }
    Ok(is_whole)
}

/// Verifies the manifest of an engine that runs and keeps it as it is, which is `state`.
pub(crate) fn verify_held(vfs: &dyn Vfs, root: &Path, state: &ManifestState, report: &mut VerifyReport) -> Result<()> {
    let dir = root.join(META_DIR).join(WRITER);
    let manifest = survey_manifest(vfs, &dir)?;
    report_manifest(vfs, root, &manifest, report)?;
    if manifest.damage.is_empty() && manifest.state != *state {
        report.error(dir, None, "it says something else than the engine", REPAIR_MANIFEST);
    }
    Ok(())
}

/// Verifies the log after `state` of an engine that runs and keeps it: the bytes of all frames.
pub(crate) fn verify_log(
    vfs: &dyn Vfs,
    root: &Path,
    state: &ManifestState,
    logged: SequenceNumber,
    report: &mut VerifyReport,
) -> Result<()> {
    log::check_bytes(vfs, &root.join(WAL_DIR), state.flushed, logged, report)
}

/// Takes the lock of a directory that was ever open. One that was not has no lock file, and gets
/// none here.
pub(crate) fn lock_if_used(vfs: &dyn Vfs, root: &Path) -> Result<Option<Lock>> {
    let entries = match vfs.list(root) {
        Err(e) if [ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&e.kind()) => {
            return Err(Error::NotADataDirectory { path: root.into(), reason: "there is no such folder".into() });
        }
        listed => listed.map_err(|e| Error::io("list", root, e))?,
    };
    if !entries.iter().any(|entry| entry.name == LOCK_FILE) {
        return Ok(None);
    }
    match lock(vfs, root) {
        // Where nothing can write, nothing has it open for writing.
        Err(Error::Io { source, .. }) if source.kind() == ErrorKind::ReadOnlyFilesystem => Ok(None),
        locked => locked.map(Some),
    }
}

fn check_root(vfs: &dyn Vfs, root: &Path, report: &mut VerifyReport) -> Result<()> {
    let entries = vfs.list(root).map_err(|e| Error::io("list", root, e))?;
    let marker = root.join(MARKER);
    if !entries.iter().any(|entry| entry.name == MARKER) {
        let ours = entries.iter().any(|entry| entry.is_dir && entry.name == META_DIR);
        if !ours || !has_files(vfs, &root.join(META_DIR))? {
            let reason = format!("it has no file {MARKER}");
            return Err(Error::NotADataDirectory { path: root.into(), reason });
        }
        if entries.iter().any(|entry| entry.name == BACKUP_MARKER) {
            let reason = "it is a backup that was never finished".to_owned();
            return Err(Error::NotADataDirectory { path: root.into(), reason });
        }
        if is_unfinished(vfs, root)? {
            let reason = "it is a branch that was never finished".to_owned();
            return Err(Error::NotADataDirectory { path: root.into(), reason });
        }
        report.error(marker, None, "it is missing", "a repair writes it again; nothing is lost");
        return Ok(());
    }
    match check_marker(vfs, root) {
        Err(Error::Corrupt { path, offset, reason }) => {
            report.error(path, Some(offset), reason, "a repair writes it again; nothing is lost");
            Ok(())
        }
        Ok(true) => match check_log_is_there(vfs, root) {
            Err(Error::Corrupt { path, reason, .. }) => {
                report.error(path, None, reason, REPAIR);
                Ok(())
            }
            checked => checked,
        },
        checked => checked.map(drop),
    }
}

/// Returns whether there is any file in a folder or its folders.
pub(crate) fn has_files(vfs: &dyn Vfs, dir: &Path) -> Result<bool> {
    Ok(!files_below(vfs, dir)?.is_empty())
}

/// Returns the paths of all files in a folder, which may be missing, and its folders.
pub(crate) fn files_below(vfs: &dyn Vfs, dir: &Path) -> Result<Vec<PathBuf>> {
    if let Some(listed) = vfs.list_below(dir) {
        return listed.map_err(|e| Error::io("list", dir, e));
    }
    let mut files = Vec::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = match vfs.list(&folder) {
            Err(e) if e.kind() == ErrorKind::NotFound => Vec::new(),
            listed => listed.map_err(|e| Error::io("list", &folder, e))?,
        };
        for entry in entries.iter().filter(|entry| !is_of_volume(&entry.name)) {
            let path = folder.join(&entry.name);
            if entry.is_dir { folders.push(path) } else { files.push(path) }
        }
    }
    Ok(files)
}

fn report_manifest(vfs: &dyn Vfs, root: &Path, manifest: &ManifestSurvey, report: &mut VerifyReport) -> Result<()> {
    report.totals.manifest_objects = manifest.objects;
    for damage in &manifest.damage {
        let advice = if damage.blocks {
            "opening fails over it; a repair goes on with what is whole, and says what is not"
        } else {
            "another object says the same; a repair writes both again, and nothing is lost"
        };
        report.error(&damage.path, Some(damage.offset), damage.reason.as_str(), advice);
    }
    let used = manifest.newest > 0 || !has_files(vfs, &root.join(DATA_DIR))? && !has_files(vfs, &root.join(WAL_DIR))?;
    if !used {
        let dir = root.join(META_DIR);
        report.error(dir, None, "the manifest is missing, though there are data files or a log", "restore a backup");
    }
    for path in &manifest.temporary {
        report.add(Severity::Info, path, None, "it was never finished", LEFTOVER);
    }
    Ok(())
}

fn check_files(vfs: &dyn Vfs, root: &Path, state: &ManifestState, report: &mut VerifyReport) -> Result<()> {
    for database in state.databases.values() {
        for table in database.tables.values() {
            let before = report.count(Severity::Error);
            let checker = FileChecker { vfs, root, table: &table.schema, flushed: state.flushed };
            for data_file in &table.files {
                report.totals.files += 1;
                report.totals.file_bytes += data_file.bytes;
                checker.check(data_file, report);
            }
            // Rows of damaged files prove nothing about the others.
            if table.schema.has_primary_key && report.count(Severity::Error) == before {
                primary_keys::check(vfs, root, &table.schema, &table.files, report)?;
            }
        }
    }
    Ok(())
}

fn report_orphans(
    vfs: &dyn Vfs,
    root: &Path,
    state: &ManifestState,
    only_named: &HashSet<String>,
    report: &mut VerifyReport,
) -> Result<()> {
    let mut named = state.stored_paths();
    named.extend(only_named.iter().map(String::as_str));
    let orphans = find_orphans(vfs, root, &named)?;
    for path in orphans.iter().take(MAX_NAMED) {
        report.add(Severity::Info, root.join(path), None, "no manifest names it", UNNAMED);
    }
    if let Some(more) = orphans.len().checked_sub(MAX_NAMED).filter(|more| *more > 0) {
        let what = format!("{more} more files are named by no manifest");
        report.add(Severity::Info, root.join(DATA_DIR), None, what, "the next opening removes them");
    }
    Ok(())
}

fn report_lost(vfs: &dyn Vfs, root: &Path, report: &mut VerifyReport) -> Result<()> {
    let lost = root.join(LOST_DIR);
    let count = files_below(vfs, &lost)?.len();
    if count > 0 {
        let what = format!("{count} files that a repair has set aside");
        report.add(Severity::Info, lost, None, what, "remove them when nobody needs them any more");
    }
    Ok(())
}
