//! Branches: directories that begin as a state of another one and go their own way.
//!
//! A branch shares the data files of the state that it begins with, by hard links: a file is there until
//! the last of its names goes, and none is ever changed in place, so that neither needs to know of the
//! other (decision 037). The log after the state is written anew: segments are recycled in place, and
//! are never shared. Owns the order in which a branch comes to be: data files, log, manifest, and the
//! marker last, so that it is whole or no data directory, wherever that is cut off. Never changes the
//! directory that it begins with.

mod folder;
#[cfg(test)]
mod tests;

use std::{path::Path, sync::Arc};

use self::folder::BranchFolder;
pub(crate) use self::folder::is_unfinished;
use super::backup::{BackupReport, Copier, manifest_dir};
use crate::{
    Engine, Error, Result,
    catalog::{Manifest, create_folders, mark_log, write_marker},
    engine::Origin,
    model::{PastMoment, WAL_DIR},
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
    /// Frames of the log: points that are in no data file, which the first opening replays.
    pub frames: u64,
}

impl Engine {
    /// Makes the folder `target` a data directory that begins as this one is now and goes its own
    /// way, while points are written and read.
    ///
    /// Has every point that was acknowledged before the call; a reader does not see those that were
    /// acknowledged for memory only. Data files are shared by hard link where both are on one file
    /// system, and copied otherwise: whatever this directory does later, the branch has its own
    /// names for them. Snapshots with names stay behind. `target` has to be absent or empty.
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
    /// it; [`Error::OtherStore`] of an engine with an object store; [`Error::Corrupt`] naming a data
    /// file that is damaged; [`ErrorKind::Io`](crate::ErrorKind::Io);
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
    let origin = engine.origin(moment)?;
    let (vfs, root) = (Arc::clone(&origin.vfs), origin.root.clone());
    let folder = BranchFolder::prepare(&vfs, &root, target)?;
    fill(engine, (origin, moment), &folder).inspect_err(|_| folder.clear_if_unfinished())
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
    (report.number, report.frames) = (origin.number, frames);
    log.publish()?;
    let mut state = origin.state.clone();
    state.directory = None;
    state.snapshots.clear();
    Manifest::write_anew(vfs, &manifest_dir(target), state)?;
    let write = if frames > 0 { mark_log } else { write_marker };
    write(vfs.as_ref(), target)?;
    if let Err(error) = folder.finish(&origin) {
        // It is whole all the same.
        tracing::warn!(%error, "cannot note what a branch began as");
    }
    Ok(report)
}

/// Copies the frames after the state; of a newer state where those are not there any more. Returns the
/// state, and the log, whose segments have no names yet.
fn copied_log<'e>(
    engine: &'e Engine,
    (mut origin, moment): (Origin<'e>, Option<&PastMoment>),
    dir: &Path,
) -> Result<(Origin<'e>, Rebuild, u64)> {
    for _ in 0..TRIES {
        let (mut frames, mut log) = (0, Rebuild::new(Arc::clone(&origin.vfs), dir, Arc::clone(&origin.random))?);
        let mut append = |frame: &ReplayedFrame<'_>| {
            frames += 1;
            let ReplayedFrame { seq, kind, meta, body } = frame;
            let body_crc = body_checksum(body);
            log.append(&Frame { seq: *seq, kind: *kind, meta, body, body_crc })
        };
        if origin.visit_frames(&mut append)? {
            return Ok((origin, log, frames));
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
    let mut brought = BackupReport::default();
    let mut report = BranchReport::default();
    let mut copier = Copier::new(origin.vfs.as_ref(), &origin.root, target, &origin.state);
    for file in origin.state.files() {
        report.files += 1;
        report.bytes += file.bytes;
        report.rows += file.rows;
        copier.take(file, &mut brought)?;
    }
    copier.sync_folders()?;
    let BackupReport { linked_files, copied_files, copied_bytes, .. } = brought;
    Ok(BranchReport { linked_files, copied_files, copied_bytes, ..report })
}
