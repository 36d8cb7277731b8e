//! Segment files: their names, and the open one that takes frames.
//!
//! A segment has no header of its own. Its first sequence number and its salt are in its name,
//! which is durable before a frame is written: no damage inside a file can hide the frames after
//! it.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;

use crate::{
    Error, Result, SequenceNumber,
    random::RandomSource,
    vfs::{Vfs, VfsFile},
};

use super::sync::SyncFile;

/// First sequence number and salt of a segment, as its file's name says them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SegmentName {
    pub(super) first_seq: SequenceNumber,
    pub(super) salt: u64,
}

impl SegmentName {
    /// Names a new segment. That its salt differs from those of the file's earlier lives is what
    /// matters, not that nothing can guess it; with the number mixed in it does even if the source
    /// begins anew at each start.
    pub(super) fn new(first_seq: SequenceNumber, random: &dyn RandomSource) -> Self {
        Self { first_seq, salt: random.next() ^ first_seq.0.wrapping_mul(0x9E37_79B9_7F4A_7C15) }
    }

    pub(super) fn path(&self, dir: &Path) -> PathBuf {
        dir.join(self.file_name())
    }

    /// Returns the name of the segment's file.
    pub(super) fn file_name(&self) -> String {
        format!("{:020}-{:016x}.wal", self.first_seq.0, self.salt)
    }

    pub(super) fn parse(name: &str) -> Option<Self> {
        let (seq, salt) = name.strip_suffix(".wal")?.split_once('-')?;
        let whole = seq.len() == 20 && salt.len() == 16;
        let name = Self { first_seq: SequenceNumber(seq.parse().ok()?), salt: u64::from_str_radix(salt, 16).ok()? };
        whole.then_some(name)
    }
}

/// Returns what a segment's name says.
#[cfg(test)]
pub(super) fn name(path: &Path) -> SegmentName {
    SegmentName::parse(path.file_name().unwrap().to_str().unwrap()).unwrap()
}

/// A segment found in the log's folder.
#[derive(Debug, Clone, Copy)]
pub(super) struct FoundSegment {
    pub(super) name: SegmentName,
    pub(super) size: u64,
}

/// Returns the segments in `dir` by first sequence number. Other files are none of the log's
/// business.
pub(super) fn list(vfs: &dyn Vfs, dir: &Path) -> Result<Vec<FoundSegment>> {
    let entries = vfs.list(dir).map_err(|e| Error::io("list", dir, e))?;
    let found =
        |entry: &crate::vfs::DirEntry| Some(FoundSegment { name: SegmentName::parse(&entry.name)?, size: entry.len });
    let mut segments: Vec<_> = entries.iter().filter_map(found).collect();
    segments.sort_unstable_by_key(|found| found.name);
    Ok(segments)
}

/// Returns all bytes of a segment: fewer of them would look like the end of the log.
pub(super) fn load(vfs: &dyn Vfs, dir: &Path, found: &FoundSegment) -> Result<Bytes> {
    let path = found.name.path(dir);
    let bytes = vfs.read(&path).map_err(|e| Error::io("read", &path, e))?;
    let read = bytes.len() as u64;
    if read != found.size {
        let reason = format!("{read} bytes of it were read, its folder says {}", found.size);
        return Err(Error::corrupt(path, read, reason));
    }
    Ok(bytes.into())
}

/// A segment with its file open.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) name: SegmentName,
    pub(super) path: PathBuf,
    pub(super) file: Arc<dyn VfsFile>,
    pub(super) size: u64,
    /// Where the next frame goes.
    pub(super) end: u64,
    /// Whether something was written since the last sync began.
    pub(super) unsynced: bool,
}

impl Segment {
    /// Returns a segment without frames.
    pub(super) fn new(name: SegmentName, path: PathBuf, file: Arc<dyn VfsFile>, size: u64) -> Self {
        Self { name, path, file, size, end: 0, unsynced: false }
    }

    pub(super) fn sync_file(&self) -> SyncFile {
        SyncFile { file: Arc::clone(&self.file), path: self.path.clone() }
    }

    pub(super) fn remaining(&self) -> u64 {
        self.size.saturating_sub(self.end)
    }

    pub(super) fn write(&mut self, parts: &[&[u8]]) -> Result<()> {
        self.unsynced = true;
        self.file.write_all_at(parts, self.end).map_err(|e| Error::io("write", &self.path, e))?;
        self.end += parts.iter().map(|part| part.len() as u64).sum::<u64>();
        Ok(())
    }
}
