//! Some bytes of a file, as if they were a file.

use std::{io, ops::Range, time::SystemTime};

use super::VfsFile;

/// Reads only, and nothing outside of the range.
#[derive(Debug)]
pub(super) struct FileRange {
    file: Box<dyn VfsFile>,
    start: u64,
    len: u64,
}

impl FileRange {
    /// Returns as much of the range as the file has.
    pub(super) fn new(file: Box<dyn VfsFile>, range: Range<u64>) -> io::Result<Self> {
        let end = file.len()?.min(range.end);
        Ok(Self { file, start: range.start, len: end.saturating_sub(range.start) })
    }
}

impl VfsFile for FileRange {
    fn len(&self) -> io::Result<u64> {
        Ok(self.len)
    }

    fn modified(&self) -> io::Result<SystemTime> {
        self.file.modified()
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let left = usize::try_from(self.len.saturating_sub(offset)).unwrap_or(usize::MAX);
        let wanted = buf.len().min(left);
        match buf.get_mut(..wanted) {
            Some(room) if wanted > 0 => self.file.read_at(room, self.start + offset),
            _ => Ok(0),
        }
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.file.sync_all()
    }
}
