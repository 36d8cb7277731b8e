//! Making the log on disk what was just read of it, before anything is added.
//!
//! Can be cut off anywhere and starts over at the next open: until it is done the same frames are
//! found again. Never touches a frame that is proven to have been synced.

use std::path::Path;

use crate::{Error, Result, vfs::Vfs};

use super::{
    reader::{Findings, FrameRun},
    segment::FoundSegment,
    spare,
};

/// Wipes what is after the end of the log and makes every frame in it durable.
pub(super) fn repair(vfs: &dyn Vfs, dir: &Path, findings: &Findings) -> Result<()> {
    findings.torn.iter().try_for_each(|torn| wipe_torn_tail(vfs, dir, *torn))?;
    for found in &findings.abandoned {
        let path = found.name.path(dir);
        vfs.remove_file(&path).map_err(|e| Error::io("remove", path, e))?;
    }
    findings.unproven.iter().try_for_each(|run| rewrite(vfs, dir, run))?;
    // Also for names made just before the last process died.
    vfs.sync_dir(dir).map_err(|e| Error::io("sync", dir, e))
}

/// Frames after a torn one must not follow the frame that is about to be written in its place.
fn wipe_torn_tail(vfs: &dyn Vfs, dir: &Path, (found, end): (FoundSegment, u64)) -> Result<()> {
    let path = found.name.path(dir);
    let file = vfs.open(&path).map_err(|e| Error::io("open", &path, e))?;
    spare::zero(&*file, end..found.size).map_err(|e| Error::io("write", &path, e))?;
    file.sync_data().map_err(|e| Error::io("sync", path, e))
}

/// Writes frames again where they are, and syncs them.
///
/// A sync alone is not enough: after one that failed, Linux takes the pages for clean, so what was
/// read may be only in memory, and another sync would do nothing and succeed.
fn rewrite(vfs: &dyn Vfs, dir: &Path, run: &FrameRun) -> Result<()> {
    let path = run.segment.name.path(dir);
    let file = vfs.open(&path).map_err(|e| Error::io("open", &path, e))?;
    let mut piece = vec![0; 1 << 20];
    let mut offset = run.start;
    while offset < run.end {
        let wanted = usize::try_from(run.end - offset).unwrap_or(usize::MAX).min(piece.len());
        let piece = piece.get_mut(..wanted).unwrap_or_default();
        let read = file.read_at(piece, offset).map_err(|e| Error::io("read", &path, e))?;
        if read < wanted {
            return Err(Error::corrupt(path, offset, "the file became shorter while it was read"));
        }
        file.write_all_at(&[piece], offset).map_err(|e| Error::io("write", &path, e))?;
        offset += wanted as u64;
    }
    file.sync_data().map_err(|e| Error::io("sync", path, e))
}
