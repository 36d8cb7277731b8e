//! Branches: directories that begin as a state of another one and go their own way.
//!
//! A branch shares the data files of the state that it begins with, by hard links: a file is there until
//! the last of its names goes, and none is ever changed in place, so that neither needs to know of the
//! other (decision 037). The log after the state is written anew: segments are recycled in place, and
//! are never shared. Owns the order in which a branch comes to be: data files, log, manifest, and the
//! marker last, so that it is whole or no data directory, wherever that is cut off. `bucket` does the same
//! in an object store, which has no links (decision 041). Never changes the directory that it begins with.

#[cfg(feature = "object-store")]
mod bucket;
mod folder;
mod parallel;
#[cfg(test)]
mod tests;
#[cfg(feature = "object-store")]
mod work;

use std::{io::ErrorKind, path::Path, sync::Arc};

use hashbrown::HashMap;

use self::folder::BranchFolder;
pub(crate) use self::folder::is_unfinished;
use self::parallel::{WORKERS, for_each};
use super::backup::{BackupReport, Copier, manifest_dir};
use crate::{
    Engine, Error, Result, SequenceNumber,
    catalog::{Manifest, ManifestState, create_folders, mark_log, write_marker},
    engine::Origin,
    model::{DataFile, PastMoment, WAL_DIR},
    sync::Mutex,
    vfs::Vfs,
    wal::{Frame, Rebuild, ReplayedFrame, body_checksum},
};

/// How often the log is read anew because the process that writes has flushed meanwhile.
const TRIES: u32 = 20;

/// What a branch begins with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BranchReport {
    /// The commit of the other directory's manifest whose state it is.
    pub number: u64,
    /// Data files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Rows in them.
    pub rows: u64,
    /// Files that share their bytes with the other directory, through a hard link.
    pub linked_files: u64,
    /// Files that were copied, where no link could be made.
    pub copied_files: u64,
    /// Bytes of these.
    pub copied_bytes: u64,
    /// Data files and packs that an object store has copied by itself.
    pub store_copied_files: u64,
    /// Frames of the log: points that are in no data file, which the first opening replays. None in an
    /// object store, where all points are in data files.
    pub frames: u64,
}

impl Engine {
    /// Makes the folder `target` a data directory that begins as this one is now and goes its own
    /// way, while points are written and read.
    ///
    /// Has every point that was acknowledged before the call; a reader does not see those that were
    /// acknowledged for memory only. Data files are shared by hard link where both are on one file
    /// system, and copied otherwise, as from an object store: whatever this directory does later, the
    /// branch has its own names for them. Snapshots with names stay behind. `target` has to be absent
    /// or empty.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// use arc_core::Engine;
    ///
    /// let target = dir.path().join("branch");
    /// let report = engine.branch(&target)?;
    /// assert_eq!((report.files, report.frames > 0), (0, true)); // nothing was flushed yet
    /// let branch = Engine::open(&target)?;
    /// branch.drop_table("plant", "pump")?;
    /// assert_eq!(engine.tables("plant")?.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::BadTarget`] if `target` holds anything; [`Error::InUse`] while another process makes
    /// it; [`Error::Expired`] of a reader if files were removed before they were copied;
    /// [`Error::Corrupt`] naming a data file that is damaged; [`ErrorKind::Io`](crate::ErrorKind::Io);
    /// [`Closed`](crate::ErrorKind::Closed). Then a later call begins anew there.
    pub fn branch(&self, target: impl AsRef<Path>) -> Result<BranchReport> {
        make(self, target.as_ref(), None)
    }

    /// As [`branch`](Self::branch), and begins as this directory was at some moment: at a time, or
    /// as a snapshot has it.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// use arc_core::PastMoment;
    ///
    /// engine.create_snapshot("before")?;
    /// engine.drop_table("plant", "pump")?;
    /// let report = engine.branch_at(dir.path().join("branch"), &PastMoment::Snapshot("before".into()))?;
    /// assert_eq!((report.linked_files, report.rows), (1, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`branch`](Self::branch); [`Error::OutsideHistory`] and [`Error::SnapshotNotFound`] for a
    /// state that cannot be asked for.
    pub fn branch_at(&self, target: impl AsRef<Path>, moment: &PastMoment) -> Result<BranchReport> {
        make(self, target.as_ref(), Some(moment))
    }
}

fn make(engine: &Engine, target: &Path, moment: Option<&PastMoment>) -> Result<BranchReport> {
    told_if_expired(engine, || {
        let origin = engine.origin(moment)?;
        let (vfs, root) = (Arc::clone(&origin.vfs), origin.root.clone());
        let folder = BranchFolder::prepare(&vfs, &root, target)?;
        fill(engine, (origin, moment), &folder).inspect_err(|_| folder.clear_if_unfinished())
    })
}

/// Calls `make`, and tells a file that is missing because the process that writes has moved on from one
/// that is damaged.
fn told_if_expired(engine: &Engine, make: impl FnOnce() -> Result<BranchReport>) -> Result<BranchReport> {
    let newest = || if engine.is_reader() { engine.origin(None).ok().map(|origin| origin.number) } else { None };
    let before = newest();
    make().map_err(|error| match &error {
        Error::Io { source, .. } if source.kind() != ErrorKind::NotFound => error,
        Error::Corrupt { .. } | Error::Io { .. } if newest() != before => Error::Expired,
        _ => error,
    })
}

fn fill(
    engine: &Engine,
    (origin, moment): (Origin<'_>, Option<&PastMoment>),
    folder: &BranchFolder<'_>,
) -> Result<BranchReport> {
    let (target, vfs) = (folder.path, folder.vfs);
    create_folders(vfs.as_ref(), target)?;
    // First of all: for how long the log is there is up to the process that writes.
    let (origin, log, frames) = copied_log(engine, (origin, moment), &target.join(WAL_DIR))?;
    let mut report = bring_files(&origin, target)?;
    (report.number, report.frames) = (origin.number, frames.count);
    log.publish()?;
    let mut state = origin.state.clone();
    state.directory = None;
    state.snapshots.clear();
    Manifest::write_anew(vfs, &manifest_dir(target), state)?;
    let write = if frames.count > 0 { mark_log } else { write_marker };
    write(vfs.as_ref(), target)?;
    if let Err(error) = folder.finish(&origin) {
        // It is whole all the same.
        tracing::warn!(%error, "cannot note what a branch began as");
    }
    Ok(report)
}

/// Frames that were copied.
#[derive(Debug, Clone, Copy)]
struct CopiedFrames {
    count: u64,
    /// The last one, or what the state says is flushed.
    #[cfg_attr(not(feature = "object-store"), expect(dead_code, reason = "a branch in a store says it"))]
    last: SequenceNumber,
}

/// Copies the frames after the state; of a newer state where those are not there any more. Returns the
/// state, and the log, whose segments have no names yet.
fn copied_log<'e>(
    engine: &'e Engine,
    (mut origin, moment): (Origin<'e>, Option<&PastMoment>),
    dir: &Path,
) -> Result<(Origin<'e>, Rebuild, CopiedFrames)> {
    for _ in 0..TRIES {
        let mut frames = CopiedFrames { count: 0, last: origin.state.flushed };
        let mut log = Rebuild::new(Arc::clone(&origin.vfs), dir, Arc::clone(&origin.random))?;
        let mut append = |frame: &ReplayedFrame<'_>| {
            let ReplayedFrame { seq, kind, meta, body } = frame;
            frames = CopiedFrames { count: frames.count + 1, last: *seq };
            let body_crc = body_checksum(body);
            log.append(&Frame { seq: *seq, kind: *kind, meta, body, body_crc })
        };
        if origin.visit_frames(&mut append)? {
            // To bring the files may take hours, and segments go on being recycled.
            return Ok((origin.without_log(), log, frames));
        }
        if moment.is_some() {
            let reason = "the log of that time is not kept any more";
            return Err(Error::OutsideHistory { reason: reason.into() });
        }
        origin = engine.origin(None)?;
    }
    let reason = format!("frames after {} are not there, though they were acknowledged", origin.state.flushed);
    Err(Error::corrupt(origin.root.join(WAL_DIR), 0, reason))
}

fn bring_files(origin: &Origin<'_>, target: &Path) -> Result<BranchReport> {
    #[cfg(feature = "object-store")]
    let is_far = origin.storage.is_some();
    #[cfg(not(feature = "object-store"))]
    let is_far = false;
    let all = by_stored_path(&origin.state);
    let folders = [origin.root.as_path(), target];
    let brought = bring(&all, (origin.vfs.as_ref(), folders, &origin.state), if is_far { WORKERS } else { 1 })?;
    let BackupReport { linked_files, copied_files, copied_bytes, .. } = brought;
    Ok(BranchReport { linked_files, copied_files, copied_bytes, ..report_of(&origin.state) })
}

/// Counts what a state has.
fn report_of(state: &ManifestState) -> BranchReport {
    state.files().fold(BranchReport::default(), |report, file| BranchReport {
        files: report.files + 1,
        bytes: report.bytes + file.bytes,
        rows: report.rows + file.rows,
        ..report
    })
}

/// Returns the data files of a state, those of a pack together.
fn by_stored_path(state: &ManifestState) -> Vec<Vec<&DataFile>> {
    let (mut groups, mut packs): (Vec<Vec<&DataFile>>, HashMap<&str, usize>) = Default::default();
    for file in state.files() {
        let at = *packs.entry(file.stored_path()).or_insert(groups.len());
        match groups.get_mut(at) {
            Some(group) => group.push(file),
            None => groups.push(vec![file]),
        }
    }
    groups
}

/// Brings data files of `state` from one folder to another, durably.
fn bring(
    files: &[Vec<&DataFile>],
    (vfs, [from, to], state): (&dyn Vfs, [&Path; 2], &ManifestState),
    workers: usize,
) -> Result<BackupReport> {
    let brought = Mutex::new(BackupReport::default());
    let start = || (Copier::new(vfs, from, to, state), BackupReport::default());
    let take = |(copier, own): &mut (Copier<'_>, BackupReport), group: &Vec<&DataFile>| {
        group.iter().try_for_each(|file| copier.take(file, own))
    };
    let end = |(copier, own): (Copier<'_>, BackupReport)| {
        copier.sync_folders()?;
        let mut all = brought.lock();
        all.kept_files += own.kept_files;
        all.linked_files += own.linked_files;
        all.copied_files += own.copied_files;
        all.copied_bytes += own.copied_bytes;
        Ok(())
    };
    for_each((files, workers), start, take, end)?;
    Ok(brought.into_inner())
}
