//! Writing the log anew from the frames that are left of it: for a repair, while nothing has the
//! log open.
//!
//! New segments are written beside the old ones under temporary names and get their own when all of
//! them are whole. They keep the numbers of the frames, so that a log with segments of both kinds
//! reads like either. Never touches a frame.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{
    Error, Result, SequenceNumber,
    random::RandomSource,
    vfs::{Vfs, VfsFile},
};

use super::{
    Frame, acknowledged,
    frame::{ALIGNMENT, HEADER_BYTES, Header},
    segment::{self, SegmentName},
};

/// Bytes at which a new segment begins.
const SEGMENT_BYTES: u64 = 64 << 20;

const PREFIX: &str = "repair.";
const SUFFIX: &str = ".tmp";

/// A log that is being written anew.
#[derive(Debug)]
pub(crate) struct Rebuild {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    random: Arc<dyn RandomSource>,
    open: Option<Open>,
    /// The last frame.
    last: Option<SequenceNumber>,
    /// Temporary and final names of the segments that are whole and durable.
    whole: Vec<(PathBuf, PathBuf)>,
}

#[derive(Debug)]
struct Open {
    file: Box<dyn VfsFile>,
    temporary: PathBuf,
    name: SegmentName,
    end: u64,
}

/// Returns the paths of all segments in `dir`.
pub(crate) fn segments(vfs: &dyn Vfs, dir: &Path) -> Result<Vec<PathBuf>> {
    Ok(segment::list(vfs, dir)?.iter().map(|found| found.name.path(dir)).collect())
}

impl Rebuild {
    /// Begins, and removes what an earlier try that was cut off has left.
    pub(crate) fn new(vfs: Arc<dyn Vfs>, dir: &Path, random: Arc<dyn RandomSource>) -> Result<Self> {
        acknowledged::forget(&*vfs, dir);
        for entry in vfs.list(dir).map_err(|e| Error::io("list", dir, e))? {
            if entry.name.starts_with(PREFIX) && entry.name.ends_with(SUFFIX) {
                let path = dir.join(entry.name);
                vfs.remove_file(&path).map_err(|e| Error::io("remove", path, e))?;
            }
        }
        Ok(Self { vfs, dir: dir.to_owned(), random, open: None, last: None, whole: Vec::new() })
    }

    /// Adds the next frame.
    pub(crate) fn append(&mut self, frame: &Frame<'_>) -> Result<()> {
        // All before it are durable before any of the new segments has its name.
        let header = Header::new(frame, SequenceNumber(frame.seq.0.saturating_sub(1)))?;
        if self.open.as_ref().is_none_or(|open| open.end + header.frame_bytes() > SEGMENT_BYTES) {
            self.end_segment()?;
            self.open = Some(self.begin_segment(frame.seq)?);
        }
        let Some(open) = &mut self.open else { return Ok(()) };
        let encoded = header.encode(open.name.salt);
        let zeros = [0; ALIGNMENT];
        let padding = zeros.get(..header.padding()).unwrap_or_default();
        let parts = [encoded.as_slice(), frame.meta, frame.body, padding];
        open.file.write_all_at(&parts, open.end).map_err(|e| Error::io("write", &open.temporary, e))?;
        open.end += header.frame_bytes();
        self.last = Some(frame.seq);
        Ok(())
    }

    /// Proves that all frames were synced, as the seal of a log at rest does: who only reads it sees the
    /// last one, too.
    fn seal(&mut self) -> Result<()> {
        let Some((open, last)) = self.open.as_mut().zip(self.last) else { return Ok(()) };
        let seal = Header::seal(last.next(), last).encode(open.name.salt);
        open.file.write_all_at(&[&seal], open.end).map_err(|e| Error::io("write", &open.temporary, e))?;
        open.end += HEADER_BYTES as u64;
        self.end_segment()
    }

    /// Gives all segments their names, durably.
    pub(crate) fn publish(mut self) -> Result<()> {
        self.seal()?;
        for (temporary, path) in &self.whole {
            self.vfs.rename(temporary, path).map_err(|e| Error::io("rename", temporary, e))?;
        }
        self.vfs.sync_dir(&self.dir).map_err(|e| Error::io("sync", &self.dir, e))
    }

    fn begin_segment(&self, first: SequenceNumber) -> Result<Open> {
        let temporary = self.dir.join(format!("{PREFIX}{}{SUFFIX}", self.whole.len()));
        let file = self.vfs.create_new(&temporary).map_err(|e| Error::io("create", &temporary, e))?;
        Ok(Open { file, temporary, name: SegmentName::new(first, &*self.random), end: 0 })
    }

    fn end_segment(&mut self) -> Result<()> {
        let Some(open) = self.open.take() else { return Ok(()) };
        let io = |action| move |e| (action, e);
        let ended = open.file.set_len(open.end.next_multiple_of(4096)).map_err(io("write"));
        let ended = ended.and_then(|()| open.file.sync_all().map_err(io("sync")));
        ended.map_err(|(action, e)| Error::io(action, &open.temporary, e))?;
        self.whole.push((open.temporary, open.name.path(&self.dir)));
        Ok(())
    }
}
