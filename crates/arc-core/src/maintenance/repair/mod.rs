//! Repair: makes a damaged data directory one that opens, and says first what is given up by it.
//!
//! Never done by itself: a caller asks for a plan, reads it, and asks for that very plan to be
//! carried out. Never destroys a byte: what is taken out is kept under `lost/`. Owns the decisions;
//! what is damaged is found by the surveys of log and manifest, which verification uses as well.
//!
//! Carried out in an order that can be cut off anywhere: second names under `lost/` first, then the
//! log, the manifest and the marker, each in one step or in steps that leave it as readable as it
//! was, and then the old names go.

mod log;
mod manifest;
mod plan;
#[cfg(test)]
mod tests;

use std::{io::ErrorKind, path::Path, path::PathBuf, sync::Arc};

pub use plan::{GivenUp, RepairPlan, RepairStep};

use self::manifest::Mended;
use crate::{
    Error, Result, VerifyReport,
    catalog::{
        Manifest, ManifestState, check_has_no_store, check_log_is_there, check_marker, create_folders,
        survey as survey_manifest, write_marker,
    },
    datafile::{SetAside, find_orphans, where_it_lies},
    engine::lock,
    maintenance::{
        backup::manifest_dir,
        branch::is_unfinished,
        verify::{FileChecker, check_bytes, files_below, has_files, verify_locked},
    },
    model::{BACKUP_MARKER, DataFile, MARKER, META_DIR, WAL_DIR, packed},
    random::{RandomSource, SystemRandom},
    vfs::{RealVfs, Vfs},
    wal::{Rebuild, segments},
};

/// Finds out what it takes to mend the data directory at `path`, which no process may have open.
/// Changes nothing.
///
/// A directory that is whole has an empty plan. Reads all that [`verify`](crate::verify) reads.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("data");
/// # arc_core::Engine::open(&path)?.close()?;
/// let plan = arc_core::plan_repair(&path)?;
/// assert!(plan.is_empty(), "{plan}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// As [`verify`](crate::verify).
pub fn plan_repair(path: impl AsRef<Path>) -> Result<RepairPlan> {
    let root = path.as_ref();
    let _lock = crate::maintenance::verify::lock_if_used(&RealVfs, root)?;
    Ok(find(&RealVfs, root)?.plan)
}

/// Carries out a plan of [`plan_repair`], and verifies what came of it. Gives up what the plan
/// says, and no more.
///
/// May be cut off anywhere and begun again with a new plan.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("data");
/// # arc_core::Engine::open(&path)?.close()?;
/// let plan = arc_core::plan_repair(&path)?;
/// println!("{plan}"); // what is done, and which points are given up by it
/// let report = arc_core::repair(&path, &plan)?;
/// assert!(report.is_clean());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`Error::InvalidOption`] if the directory now asks for another plan; [`Error::InUse`];
/// [`Error::Io`].
pub fn repair(path: impl AsRef<Path>, plan: &RepairPlan) -> Result<VerifyReport> {
    let vfs: Arc<dyn Vfs> = Arc::new(RealVfs);
    repair_on(&vfs, path.as_ref(), plan, Arc::new(SystemRandom::default()))
}

/// As [`repair`], on any file system.
pub(crate) fn repair_on(
    vfs: &Arc<dyn Vfs>,
    root: &Path,
    plan: &RepairPlan,
    random: Arc<dyn RandomSource>,
) -> Result<VerifyReport> {
    let _lock = lock(vfs.as_ref(), root)?;
    let found = find(vfs.as_ref(), root)?;
    if found.plan != *plan {
        let reason = "the directory has changed since the plan was made; make a new one".to_owned();
        return Err(Error::InvalidOption { option: "plan", reason });
    }
    apply(vfs, root, &found, random)?;
    verify_locked(vfs.as_ref(), root)
}

/// A plan, and the state that it leads to.
struct FoundDamage {
    plan: RepairPlan,
    state: ManifestState,
}

/// Finds out what is to be done.
fn find(vfs: &dyn Vfs, root: &Path) -> Result<FoundDamage> {
    check_has_no_store(vfs, root)?;
    let mut plan = RepairPlan::new(root);
    plan_marker(vfs, root, &mut plan)?;
    let survey = survey_manifest(vfs, &manifest_dir(root))?;
    let damaged: Vec<PathBuf> = survey.damage.iter().map(|damage| damage.path.clone()).collect();
    let is_missing =
        survey.newest == 0 && (has_files(vfs, &root.join("data"))? || has_files(vfs, &root.join(WAL_DIR))?);
    let mended = if is_missing { None } else { manifest::mend(vfs, root, survey)? };
    let Some(Mended { mut state, commit, lost_commits, in_log }) = mended else {
        let meta = root.join(META_DIR);
        plan.hopeless.push(format!("{}: too little of the manifest is left; restore a backup", meta.display()));
        return Ok(FoundDamage { plan, state: ManifestState::default() });
    };
    let has_lost = !lost_commits.is_empty();
    if !damaged.is_empty() {
        plan.steps.push(RepairStep::RewriteManifest { damaged, commit, lost_commits, in_log });
    }
    plan_files(vfs, root, &mut state, &mut plan);
    if has_lost {
        let dropped = dropped_files(&plan);
        let unnamed = find_orphans(vfs, root, &state.stored_paths())?.into_iter().map(|path| root.join(path));
        let kept = unnamed.filter(|path| !dropped.contains(path));
        plan.steps.extend(kept.map(|path| RepairStep::KeepUnnamed { path }));
    }
    if vfs.list(&root.join(WAL_DIR)).is_ok() {
        match log::plan(vfs, &root.join(WAL_DIR), &state)? {
            Ok(step) => plan.steps.extend(step),
            Err(reason) => plan.hopeless.push(reason),
        }
    }
    Ok(FoundDamage { plan, state })
}

fn plan_marker(vfs: &dyn Vfs, root: &Path, plan: &mut RepairPlan) -> Result<()> {
    let entries = vfs.list(root).map_err(|e| Error::io("list", root, e))?;
    let has = |name: &str| entries.iter().any(|entry| entry.name == name);
    let path = root.join(MARKER);
    if has(MARKER) {
        return match check_marker(vfs, root) {
            Err(Error::Corrupt { .. }) => {
                plan.steps.push(RepairStep::WriteMarker { path });
                Ok(())
            }
            Ok(true) => match check_log_is_there(vfs, root) {
                Err(Error::Corrupt { path, .. }) => {
                    plan.steps.push(RepairStep::ForgetLog { path });
                    Ok(())
                }
                checked => checked,
            },
            checked => checked.map(drop),
        };
    }
    if has(BACKUP_MARKER) || is_unfinished(vfs, root)? || !has_files(vfs, &root.join(META_DIR))? {
        let reason = format!("it has no file {MARKER}");
        return Err(Error::NotADataDirectory { path: root.into(), reason });
    }
    plan.steps.push(RepairStep::WriteMarker { path });
    Ok(())
}

/// Takes the files out of `state` that are not what was written, and says so.
fn plan_files(vfs: &dyn Vfs, root: &Path, state: &mut ManifestState, plan: &mut RepairPlan) {
    let flushed = state.flushed;
    let mut bad = Vec::new();
    for table in state.databases.values().flat_map(|database| database.tables.values()) {
        let checker = FileChecker { vfs, root, table: &table.schema, flushed };
        for file in &table.files {
            let path = root.join(&file.path);
            match check_bytes(vfs, &path, file) {
                Err((_, reason)) => {
                    bad.push(file.path.clone());
                    plan.steps.push(RepairStep::DropDataFile {
                        path,
                        database: table.schema.database.to_string(),
                        table: table.schema.table.to_string(),
                        rows: file.rows,
                        reason,
                    });
                }
                Ok(()) => {
                    let (_, contradictions) = checker.check_contents(file);
                    let show = |what| format!("{}: {what}", path.display());
                    plan.hopeless.extend(contradictions.into_iter().map(show));
                }
            }
        }
    }
    state.drop_files(|file: &DataFile| bad.contains(&file.path));
}

fn dropped_files(plan: &RepairPlan) -> Vec<PathBuf> {
    let dropped = plan.steps.iter().filter_map(|step| match step {
        RepairStep::DropDataFile { path, .. } => Some(path.clone()),
        _ => None,
    });
    dropped.collect()
}

fn apply(vfs: &Arc<dyn Vfs>, root: &Path, found: &FoundDamage, random: Arc<dyn RandomSource>) -> Result<()> {
    let files = vfs.as_ref();
    let wal = root.join(WAL_DIR);
    let old = taken_out(files, root, &found.plan)?;
    let mut aside = SetAside::new(files, root);
    old.all.iter().try_for_each(|path| aside.keep(path))?;
    aside.sync()?;
    if !old.segments.is_empty() {
        log::write(files, &wal, &found.state, Rebuild::new(Arc::clone(vfs), &wal, random)?)?;
    }
    let steps = &found.plan.steps;
    if steps.iter().any(is_of_manifest) {
        Manifest::write_anew(vfs, &manifest_dir(root), found.state.clone())?;
    }
    // Also where no frame was left for the log that was written anew.
    let has_no_log = !old.segments.is_empty() && segments(files, &wal)?.iter().all(|path| old.segments.contains(path));
    if has_no_log
        || steps.iter().any(|step| matches!(step, RepairStep::WriteMarker { .. } | RepairStep::ForgetLog { .. }))
    {
        create_folders(files, root)?;
        write_marker(files, root)?;
    }
    for path in &old.all {
        // Objects of the manifest are gone by now, and the marker is a new one. A pack goes once
        // nothing in it is live.
        if path.starts_with(root.join(META_DIR)) || path.ends_with(MARKER) || path.to_str().and_then(packed).is_some() {
            continue;
        }
        match where_it_lies(path, |path| files.remove_file(path)) {
            Err(e) if e.kind() != ErrorKind::NotFound => return Err(Error::io("remove", path, e)),
            _ => {}
        }
    }
    if old.segments.is_empty() { Ok(()) } else { files.sync_dir(&wal).map_err(|e| Error::io("sync folder", wal, e)) }
}

/// Files that a plan takes out.
struct TakenOut {
    all: Vec<PathBuf>,
    /// Those of the log, if it is written anew.
    segments: Vec<PathBuf>,
}

fn taken_out(vfs: &dyn Vfs, root: &Path, plan: &RepairPlan) -> Result<TakenOut> {
    let mut taken = TakenOut { all: Vec::new(), segments: Vec::new() };
    for step in &plan.steps {
        match step {
            RepairStep::WriteMarker { path }
            | RepairStep::DropDataFile { path, .. }
            | RepairStep::KeepUnnamed { path } => taken.all.push(path.clone()),
            RepairStep::RewriteManifest { .. } | RepairStep::ForgetLog { .. } => {}
            RepairStep::RewriteLog { .. } => taken.segments = segments(vfs, &root.join(WAL_DIR))?,
        }
    }
    taken.all.extend(taken.segments.iter().cloned());
    if plan.steps.iter().any(is_of_manifest) {
        taken.all.extend(files_below(vfs, &manifest_dir(root))?);
    }
    Ok(taken)
}

/// Whether a step is carried out by writing the manifest anew, which removes all of its older
/// objects.
fn is_of_manifest(step: &RepairStep) -> bool {
    matches!(step, RepairStep::RewriteManifest { .. } | RepairStep::DropDataFile { .. })
}
