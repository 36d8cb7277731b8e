//! Reading on in a log that another process writes: frame after frame, from where the last call
//! ended.
//!
//! Only reads. Never decides how far it may read: its caller knows which frames are acknowledged.
//! Trusts no byte, for a segment that is released becomes another one while it is read: a frame
//! counts if it has the number that is expected there, and passes all checks under the salt of the
//! segment's name.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;

use crate::{
    Error, Result, SequenceNumber,
    vfs::{Vfs, VfsFile},
};

use super::{
    ReplayedFrame,
    frame::{HEADER_BYTES, Header},
    reader::first_needed,
    segment::{self, SegmentName},
};

/// Bytes that are read at once: few where a call begins, for mostly little is new, and then more.
const FIRST_PIECE_BYTES: usize = 4 << 10;
const LARGEST_PIECE_BYTES: usize = 256 << 10;

/// Where reading on has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TailEnd {
    /// At the frame that was asked for, or after it.
    Reached,
    /// Before a frame that is not there: its segment was released, or it never was.
    Missing,
}

/// A place in the log of another process.
#[derive(Debug, Clone)]
pub(crate) struct LogTail {
    dir: PathBuf,
    /// The next frame.
    next: SequenceNumber,
    /// The segment that the next frame is in or, if it is none of its, the one before.
    open: Option<OpenSegment>,
}

#[derive(Debug, Clone)]
struct OpenSegment {
    name: SegmentName,
    path: PathBuf,
    file: Arc<dyn VfsFile>,
    size: u64,
    /// Where the next frame is expected.
    offset: u64,
    piece: Piece,
}

/// Some bytes of a segment.
#[derive(Debug, Clone, Default)]
struct Piece {
    start: u64,
    bytes: Bytes,
}

/// One frame, all of which passed its checks.
struct WholeFrame {
    header: Header,
    meta: Bytes,
    body: Bytes,
}

impl LogTail {
    /// Begins after frame `after` of the log in `dir`.
    pub(crate) fn new(dir: PathBuf, after: SequenceNumber) -> Self {
        Self { dir, next: after.next(), open: None }
    }

    /// Returns the log's folder.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Goes back, or on, to the frame after `after`.
    pub(crate) fn restart(&mut self, after: SequenceNumber) {
        (self.next, self.open) = (after.next(), None);
    }

    /// Returns whether what stands at this place, as far as its segment has been opened, says that
    /// more than `seq` was synced. Costs one small read.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub(crate) fn proves_more_than(&self, seq: SequenceNumber) -> Result<bool> {
        let Some(mut open) = self.open.clone() else { return Ok(false) };
        open.piece = Piece::default();
        Ok(open.header()?.is_some_and(|header| header.durable_seq > seq))
    }

    /// Returns the number of the next frame.
    pub(crate) fn next(&self) -> SequenceNumber {
        self.next
    }

    /// Hands all frames up to `last` to `visit`, in order.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], and what `visit` returns. The frame that it was called with counts as read.
    pub(crate) fn read_through(
        &mut self,
        vfs: &dyn Vfs,
        last: SequenceNumber,
        visit: &mut dyn FnMut(ReplayedFrame<'_>) -> Result<()>,
    ) -> Result<TailEnd> {
        self.read_until(vfs, last, &mut |frame| visit(frame).map(|()| true))
    }

    /// Hands frames up to `last` to `visit`, in order, until that says false.
    ///
    /// # Errors
    ///
    /// As of [`Self::read_through`].
    pub(crate) fn read_until(
        &mut self,
        vfs: &dyn Vfs,
        last: SequenceNumber,
        visit: &mut dyn FnMut(ReplayedFrame<'_>) -> Result<bool>,
    ) -> Result<TailEnd> {
        self.forget_rest();
        while self.next <= last {
            let Some(WholeFrame { header, meta, body }) = self.next_frame(vfs)? else { return Ok(TailEnd::Missing) };
            self.next = header.seq.next();
            if !visit(ReplayedFrame { seq: header.seq, kind: header.kind, meta: &meta, body })? {
                break;
            }
        }
        Ok(TailEnd::Reached)
    }

    /// Returns the highest number that a frame or seal after this place says was synced; the place
    /// stays as it is.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub(crate) fn proven(&self, vfs: &dyn Vfs) -> Result<SequenceNumber> {
        let (mut ahead, mut proven) = (self.clone(), SequenceNumber::default());
        ahead.forget_rest();
        loop {
            let header = match &mut ahead.open {
                Some(open) => open.header()?,
                None => None,
            };
            proven = proven.max(header.map_or(proven, |header| header.durable_seq));
            if let Some((open, header)) = ahead.open.as_mut().zip(header.filter(|header| header.seq == ahead.next))
                && !header.is_seal()
            {
                open.offset += header.frame_bytes();
                ahead.next = ahead.next.next();
                continue;
            }
            let before = ahead.open.as_ref().map(|open| open.name);
            if !ahead.locate(vfs)? || ahead.open.as_ref().map(|open| open.name) == before {
                return Ok(proven);
            }
        }
    }

    /// Forgets what was read of the rest of a segment, which may have been written since.
    fn forget_rest(&mut self) {
        if let Some(open) = &mut self.open {
            open.piece = Piece::default();
        }
    }

    /// Reads the next frame, in this segment or the one after it.
    fn next_frame(&mut self, vfs: &dyn Vfs) -> Result<Option<WholeFrame>> {
        if let Some(open) = &mut self.open
            && let Some(frame) = open.frame(self.next)?
        {
            return Ok(Some(frame));
        }
        if !self.locate(vfs)? {
            return Ok(None);
        }
        let Some(open) = &mut self.open else { return Ok(None) };
        open.frame(self.next)
    }

    /// Finds the segment that has the next frame, and where in it; returns whether there is one.
    fn locate(&mut self, vfs: &dyn Vfs) -> Result<bool> {
        self.open = None;
        let segments = segment::list(vfs, &self.dir)?;
        // Of several segments with one first number all but one are empty.
        let candidates = segments.get(first_needed(&segments, self.next)..).unwrap_or_default();
        for found in candidates.iter().take_while(|found| found.name.first_seq <= self.next) {
            let Some(mut open) = OpenSegment::open(vfs, &self.dir, found.name, found.size)? else { continue };
            if open.skip_to(self.next)? {
                self.open = Some(open);
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl OpenSegment {
    /// Opens a segment, unless it was released in the meantime.
    fn open(vfs: &dyn Vfs, dir: &Path, name: SegmentName, size: u64) -> Result<Option<Self>> {
        let path = name.path(dir);
        match vfs.open_read(&path) {
            Ok(file) => Ok(Some(Self { name, path, file: file.into(), size, offset: 0, piece: Piece::default() })),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(Error::io("open", path, e)),
        }
    }

    /// Moves over the frames before `next`; returns whether that one is there.
    fn skip_to(&mut self, next: SequenceNumber) -> Result<bool> {
        loop {
            match self.header()? {
                Some(header) if header.is_seal() => return Ok(false),
                Some(header) if header.seq < next => self.offset += header.frame_bytes(),
                Some(header) => return Ok(header.seq == next),
                None => return Ok(false),
            }
        }
    }

    /// Returns the header at this place, if there is one.
    fn header(&mut self) -> Result<Option<Header>> {
        let bytes = self.bytes(self.offset, HEADER_BYTES)?;
        let offset = usize::try_from(self.offset).unwrap_or(usize::MAX);
        Ok(bytes.first_chunk().and_then(|bytes| Header::parse(bytes, offset, self.name)))
    }

    /// Returns frame `next` if it is at this place, and moves on.
    fn frame(&mut self, next: SequenceNumber) -> Result<Option<WholeFrame>> {
        let Some(header) = self.header()?.filter(|header| header.seq == next && !header.is_seal()) else {
            return Ok(None);
        };
        let (meta_len, body_len) = (header.meta_len as usize, header.body_len as usize);
        // The end is checked before anything is allocated.
        if self.offset.saturating_add(header.frame_bytes()) > self.size {
            return Ok(None);
        }
        let parts = self.bytes(self.offset + HEADER_BYTES as u64, meta_len + body_len)?;
        if parts.len() < meta_len + body_len {
            return Ok(None);
        }
        let (meta, body) = (parts.slice(..meta_len), parts.slice(meta_len..));
        if crc32c::crc32c(&meta) != header.meta_crc || crc32c::crc32c(&body) != header.body_crc {
            return Ok(None);
        }
        self.offset += header.frame_bytes();
        Ok(Some(WholeFrame { header, meta, body }))
    }

    /// Returns `len` bytes at `offset`; fewer where the file ends.
    fn bytes(&mut self, offset: u64, len: usize) -> Result<Bytes> {
        let in_piece = |piece: &Piece| {
            let from = usize::try_from(offset.checked_sub(piece.start)?).ok()?;
            let to = from.checked_add(len).filter(|to| *to <= piece.bytes.len())?;
            Some(piece.bytes.slice(from..to))
        };
        if let Some(bytes) = in_piece(&self.piece) {
            return Ok(bytes);
        }
        let grown = (2 * self.piece.bytes.len()).clamp(FIRST_PIECE_BYTES, LARGEST_PIECE_BYTES);
        let rest = usize::try_from(self.size.saturating_sub(offset)).unwrap_or(usize::MAX);
        let mut bytes = vec![0; grown.max(len).min(rest)];
        let read = self.file.read_at(&mut bytes, offset).map_err(|e| Error::io("read", &self.path, e))?;
        bytes.truncate(read);
        self.piece = Piece { start: offset, bytes: bytes.into() };
        Ok(self.piece.bytes.slice(..len.min(read)))
    }
}

#[cfg(test)]
mod tests;
