//! The bytes of one frame (docs/format.md, "WAL frame").
//!
//! Never allocates and never trusts a length: everything is checked against the bytes at hand.

use std::{fmt, ops::Range};

use crate::{Error, Result, SequenceNumber};

use super::{Frame, segment::SegmentName};

/// Bytes of a frame before its meta.
pub(super) const HEADER_BYTES: usize = 40;

/// Most bytes of a meta or a body.
pub(crate) const MAX_PART_BYTES: usize = u32::MAX as usize;

/// Frames start at multiples of this many bytes.
pub(super) const ALIGNMENT: usize = 8;

/// Kind of a *seal*, which is the log's own: a frame without meta and body that stands where the
/// next frame will, and says how far the log was durable. It has no number of its own, and is never
/// replayed.
pub(super) const SEAL: u8 = 0xFF;

/// Everything about a frame but its meta and body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) meta_crc: u32,
    pub(super) body_crc: u32,
    pub(super) meta_len: u32,
    pub(super) body_len: u32,
    pub(super) kind: u8,
    pub(super) seq: SequenceNumber,
    /// The highest sequence number known durable when this frame was written: proof that it and all
    /// before were synced.
    pub(super) durable_seq: SequenceNumber,
}

/// A whole frame in a segment's bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DecodedFrame {
    pub(super) header: Header,
    pub(super) meta: Range<usize>,
    pub(super) body: Range<usize>,
    /// Where the next frame starts.
    pub(super) end: usize,
}

/// Why bytes are no frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Damage {
    Header,
    Length,
    Meta,
    Body,
    Sequence,
    /// There is a seal instead.
    Sealed,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Header => "has no valid header",
            Self::Length => "reaches past the end of its segment",
            Self::Meta => "has a meta that fails its checksum",
            Self::Body => "has a body that fails its checksum",
            Self::Sequence => "has another frame in its place",
            Self::Sealed => "has a seal in its place",
        })
    }
}

impl Header {
    /// Returns the header of a frame to append.
    pub(super) fn new(frame: &Frame<'_>, durable_seq: SequenceNumber) -> Result<Self> {
        let length = |len: usize| {
            u32::try_from(len).map_err(|_| Error::internal(format!("frame {} has 4 GiB or more", frame.seq)))
        };
        Ok(Self {
            meta_crc: crc32c::crc32c(frame.meta),
            body_crc: frame.body_crc,
            meta_len: length(frame.meta.len())?,
            body_len: length(frame.body.len())?,
            kind: frame.kind,
            seq: frame.seq,
            durable_seq,
        })
    }

    /// Returns a seal that stands in the place of frame `next`.
    pub(super) fn seal(next: SequenceNumber, durable_seq: SequenceNumber) -> Self {
        let empty = crc32c::crc32c(&[]);
        Self { meta_crc: empty, body_crc: empty, meta_len: 0, body_len: 0, kind: SEAL, seq: next, durable_seq }
    }

    pub(super) fn is_seal(&self) -> bool {
        self.kind == SEAL
    }

    pub(super) fn encode(&self, salt: u64) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        put(&mut bytes, 4, &self.meta_crc.to_le_bytes());
        put(&mut bytes, 8, &self.body_crc.to_le_bytes());
        put(&mut bytes, 12, &self.meta_len.to_le_bytes());
        put(&mut bytes, 16, &self.body_len.to_le_bytes());
        put(&mut bytes, 20, &[self.kind]);
        put(&mut bytes, 24, &self.seq.0.to_le_bytes());
        put(&mut bytes, 32, &self.durable_seq.0.to_le_bytes());
        let crc = header_crc(&bytes, salt);
        put(&mut bytes, 0, &crc.to_le_bytes());
        bytes
    }

    /// Reads the header at `offset` of a segment, unless the bytes there are none of this segment's
    /// life.
    ///
    /// A checksum of 32 bits is not enough for that: the rest of a segment has millions of places
    /// to try, with frames of the file's earlier lives, in which floats lie as they are. So a
    /// number must be one that a frame can have there, too.
    pub(super) fn decode(segment: &[u8], offset: usize, name: SegmentName) -> Option<Self> {
        Self::parse(segment.get(offset..)?.first_chunk()?, offset, name)
    }

    /// Reads the header that is at `offset` of a segment, as [`Self::decode`] does.
    pub(super) fn parse(bytes: &[u8; HEADER_BYTES], offset: usize, name: SegmentName) -> Option<Self> {
        // The cheapest test first: a search for headers tries every eighth byte of a segment.
        let kind = u8::try_from(u32_at(bytes, 20)).ok()?;
        let header = Self {
            meta_crc: u32_at(bytes, 4),
            body_crc: u32_at(bytes, 8),
            meta_len: u32_at(bytes, 12),
            body_len: u32_at(bytes, 16),
            kind,
            seq: SequenceNumber(u64_at(bytes, 24)),
            durable_seq: SequenceNumber(u64_at(bytes, 32)),
        };
        let is_one = header.durable_seq < header.seq
            && header.can_be_at(offset, name.first_seq)
            && matches(u32_at(bytes, 0), header_crc(bytes, name.salt));
        is_one.then_some(header)
    }

    /// Returns whether a segment that begins with frame `first` can have this one at `offset`:
    /// numbers count up by one, and no frame is shorter than its header.
    fn can_be_at(&self, offset: usize, first: SequenceNumber) -> bool {
        let before = self.seq.0.checked_sub(first.0);
        before.is_some_and(|before| before <= (offset / HEADER_BYTES) as u64)
    }

    /// Returns how many bytes the frame takes, padding included.
    pub(super) fn frame_bytes(&self) -> u64 {
        let len = HEADER_BYTES as u64 + u64::from(self.meta_len) + u64::from(self.body_len);
        len.next_multiple_of(ALIGNMENT as u64)
    }

    /// Returns how many zeros follow the body.
    pub(super) fn padding(&self) -> usize {
        (self.meta_len as usize + self.body_len as usize).wrapping_neg() % ALIGNMENT
    }

    /// Returns where a frame that starts at `offset` ends; a length that lies ends after every
    /// segment.
    pub(super) fn end(&self, offset: usize) -> usize {
        usize::try_from(self.frame_bytes()).unwrap_or(usize::MAX).saturating_add(offset)
    }
}

/// Reads the frame at `offset` of a segment.
pub(super) fn decode(segment: &[u8], offset: usize, name: SegmentName) -> Result<DecodedFrame, Damage> {
    let header = Header::decode(segment, offset, name).ok_or(Damage::Header)?;
    let end = header.end(offset);
    // The end is checked before the parts are formed, so none of the sums below can overflow.
    if end > segment.len() {
        return Err(Damage::Length);
    }
    let meta_end = offset + HEADER_BYTES + header.meta_len as usize;
    let meta = offset + HEADER_BYTES..meta_end;
    let body = meta_end..meta_end + header.body_len as usize;
    let matches =
        |range: &Range<usize>, crc| segment.get(range.clone()).is_some_and(|part| crc32c::crc32c(part) == crc);
    if !matches(&meta, header.meta_crc) {
        return Err(Damage::Meta);
    }
    if !matches(&body, header.body_crc) {
        return Err(Damage::Body);
    }
    Ok(DecodedFrame { header, meta, body, end })
}

/// Returns the headers of this segment's life from `offset` on, wherever they are, and their
/// offsets.
///
/// Bytes inside a frame whose header is whole are not searched, so what a client sent is not
/// mistaken for a frame.
pub(super) fn headers(segment: &[u8], offset: usize, name: SegmentName) -> impl Iterator<Item = (usize, Header)> {
    let mut next = offset.next_multiple_of(ALIGNMENT);
    std::iter::from_fn(move || {
        loop {
            next = skip_zeros(segment, next);
            if next >= segment.len() {
                return None;
            }
            let at = next;
            let Some(header) = Header::decode(segment, at, name) else {
                next += ALIGNMENT;
                continue;
            };
            next = header.end(at);
            return Some((at, header));
        }
    })
}

/// Moves over whole blocks of zeros: most of a segment's rest is that.
fn skip_zeros(segment: &[u8], mut offset: usize) -> usize {
    const ZEROS: [u8; 4096] = [0; 4096];
    while segment.get(offset..).and_then(<[u8]>::first_chunk) == Some(&ZEROS) {
        offset += ZEROS.len();
    }
    offset
}

/// The salt comes first, so that a frame of the file's earlier life fails under the new salt.
fn header_crc(bytes: &[u8; HEADER_BYTES], salt: u64) -> u32 {
    let (_, checked) = bytes.split_at(4);
    crc32c::crc32c_append(crc32c::crc32c(&salt.to_le_bytes()), checked)
}

#[cfg(not(test))]
fn matches(stored: u32, computed: u32) -> bool {
    stored == computed
}

#[cfg(test)]
fn matches(stored: u32, computed: u32) -> bool {
    (stored ^ computed) & CHECKED_BITS.get() == 0
}

#[cfg(test)]
thread_local! {
    /// The bits of a header's checksum that are compared: with fewer of them, what happens once in
    /// 2^32 places happens often.
    static CHECKED_BITS: std::cell::Cell<u32> = const { std::cell::Cell::new(u32::MAX) };
}

/// Does something with checksums of headers of which only some bits are compared, on this thread.
#[cfg(test)]
pub(super) fn with_weak_checksums<T>(bits: u32, act: impl FnOnce() -> T) -> T {
    struct Strong;
    impl Drop for Strong {
        fn drop(&mut self) {
            CHECKED_BITS.set(u32::MAX);
        }
    }
    CHECKED_BITS.set(bits);
    let _strong = Strong;
    act()
}

fn put(bytes: &mut [u8; HEADER_BYTES], at: usize, value: &[u8]) {
    bytes.iter_mut().skip(at).zip(value).for_each(|(to, from)| *to = *from);
}

fn u32_at(bytes: &[u8; HEADER_BYTES], at: usize) -> u32 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |value| u32::from_le_bytes(*value))
}

fn u64_at(bytes: &[u8; HEADER_BYTES], at: usize) -> u64 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |value| u64::from_le_bytes(*value))
}
