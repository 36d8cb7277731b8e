//! One object of the remote log: a checked header, and the frames of a group (docs/format.md,
//! "Remote log").
//!
//! Owns the bytes of the header and the names. Never looks into a frame.

use std::path::Path;

use bytes::Bytes;

use crate::{
    Error, Result, SequenceNumber,
    wal::{Frame, ReplayedFrame, push_frame, read_frames},
};

/// Newest version that is read, and the one that is written.
const VERSION: u32 = 1;
const MAGIC: [u8; 8] = *b"ARCRLOG\0";
pub(super) const HEADER_BYTES: usize = 96;
/// The header's last four bytes are its checksum, in every version.
const CHECKED_BYTES: usize = HEADER_BYTES - 4;
const DIRECTORY_BYTES: usize = 32;
const GROUP: u32 = 1;
const FENCE: u32 = 2;

/// Who writes: the engine that has claimed the manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogWriter {
    /// Number of the manifest's commit by which it did, so that a later one has a higher epoch.
    pub(crate) epoch: u64,
    /// Name of its data directory.
    pub(crate) directory: String,
}

/// What an object is, but for its frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GroupHeader {
    /// The object's number, which is its name.
    pub(crate) number: u64,
    pub(crate) writer: LogWriter,
    /// The first frame; of a fence, which has none, the number after `last_seq`.
    pub(crate) first_seq: SequenceNumber,
    /// The last frame; of a fence the last one of all objects before it.
    pub(crate) last_seq: SequenceNumber,
}

/// A group on its way to the store: frames, which can be given a header more than once.
#[derive(Debug)]
pub(crate) struct Group {
    first_seq: SequenceNumber,
    last_seq: SequenceNumber,
    epoch: u64,
    frames: Vec<u8>,
}

/// An object read back; its header is right, and its length.
#[derive(Debug)]
pub(super) struct DecodedGroup {
    pub(super) header: GroupHeader,
    frames: Bytes,
}

/// Returns the name of an object. Twenty digits hold every number, so names sort as numbers do.
pub(super) fn name(number: u64) -> String {
    format!("{number:020}")
}

/// Returns the number that a name says, or `None` for any other object.
pub(super) fn parse(found: &str) -> Option<u64> {
    let number = found.parse().ok()?;
    (name(number) == found).then_some(number)
}

impl Group {
    /// Begins one after frame `after`.
    pub(crate) fn new(epoch: u64, after: SequenceNumber) -> Self {
        Self { first_seq: after.next(), last_seq: after, epoch, frames: Vec::new() }
    }

    /// Adds the next frame.
    ///
    /// # Errors
    ///
    /// [`Error::Internal`] for another one.
    pub(crate) fn push(&mut self, frame: &Frame<'_>) -> Result<()> {
        if frame.seq != self.last_seq.next() {
            return Err(Error::internal(format!("frame {} came after frame {} in a group", frame.seq, self.last_seq)));
        }
        push_frame(&mut self.frames, self.epoch, frame)?;
        self.last_seq = frame.seq;
        Ok(())
    }

    /// Returns the last frame.
    pub(crate) fn last_seq(&self) -> SequenceNumber {
        self.last_seq
    }

    /// Returns how many bytes its frames have.
    pub(crate) fn bytes(&self) -> usize {
        self.frames.len()
    }

    /// Returns the object with this number.
    pub(super) fn encode(&self, number: u64, writer: &LogWriter) -> Vec<u8> {
        let header = GroupHeader { number, writer: writer.clone(), first_seq: self.first_seq, last_seq: self.last_seq };
        let mut bytes = header.encode(GROUP, self.frames.len());
        bytes.extend_from_slice(&self.frames);
        bytes
    }
}

impl GroupHeader {
    /// Returns the fence that this is the header of.
    pub(super) fn encode_fence(&self) -> Vec<u8> {
        self.encode(FENCE, 0)
    }

    fn encode(&self, kind: u32, frames_len: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES + frames_len);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&kind.to_le_bytes());
        for number in [self.number, self.writer.epoch, self.first_seq.0, self.last_seq.0, frames_len as u64] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        let directory = self.writer.directory.as_bytes();
        bytes.extend(directory.iter().copied().chain(std::iter::repeat(0)).take(DIRECTORY_BYTES));
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
        bytes
    }
}

impl DecodedGroup {
    /// Checks the bytes of `path`, which is to be object `number`.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] naming the first byte that is wrong, as far as it can be told;
    /// [`Error::NewerFormat`].
    pub(super) fn decode(number: u64, path: &Path, bytes: Bytes) -> Result<Self> {
        let corrupt = |offset: usize, reason: &str| Error::corrupt(path, offset as u64, reason);
        let Some((found, frames)) = bytes.split_at_checked(HEADER_BYTES) else {
            return Err(corrupt(bytes.len(), "it ends in its header"));
        };
        if !found.starts_with(&MAGIC) {
            return Err(corrupt(0, "it does not begin like a group of the log"));
        }
        let (checked, checksum) = found.split_at(CHECKED_BYTES);
        if checksum != crc32c::crc32c(checked).to_le_bytes() {
            return Err(corrupt(CHECKED_BYTES, "the checksum of its header is wrong"));
        }
        let version = u32_at(found, 8);
        if version > VERSION {
            return Err(Error::NewerFormat { path: path.into(), found: version, supported: VERSION });
        }
        if ![GROUP, FENCE].contains(&u32_at(found, 12)) || u64_at(found, 16) != number {
            return Err(corrupt(12, "it is not the object that its name says"));
        }
        if u64_at(found, 48) != frames.len() as u64 {
            return Err(corrupt(bytes.len(), "its frames do not have the length that its header says"));
        }
        let directory = found.get(56..56 + DIRECTORY_BYTES).unwrap_or_default();
        let directory = String::from_utf8_lossy(directory).trim_end_matches('\0').to_owned();
        let header = GroupHeader {
            number,
            writer: LogWriter { epoch: u64_at(found, 24), directory },
            first_seq: SequenceNumber(u64_at(found, 32)),
            last_seq: SequenceNumber(u64_at(found, 40)),
        };
        Ok(Self { header, frames: bytes.slice(HEADER_BYTES..) })
    }

    /// Hands its frames to `visit`, in order.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] for a frame that is damaged; what `visit` returns.
    pub(super) fn visit(&self, path: &Path, visit: &mut dyn FnMut(ReplayedFrame<'_>) -> Result<()>) -> Result<()> {
        let GroupHeader { writer, first_seq, last_seq, .. } = &self.header;
        let read = read_frames(&self.frames, writer.epoch, [*first_seq, *last_seq], visit)?;
        read.map_err(|damage| Error::corrupt(path, (HEADER_BYTES + damage.offset) as u64, damage.reason))
    }
}

fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    bytes.get(offset..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    bytes.get(offset..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ErrorKind, wal::body_checksum};

    fn writer() -> LogWriter {
        LogWriter { epoch: 0x0304, directory: "01ARZ3NDEKTSV4RRFFQ69G5FAV".to_owned() }
    }

    fn group() -> Group {
        let mut group = Group::new(writer().epoch, SequenceNumber(6));
        for (seq, body) in [(7, &b"first"[..]), (8, b"second")] {
            let frame = Frame { seq: SequenceNumber(seq), kind: 16, meta: b"m", body, body_crc: body_checksum(body) };
            group.push(&frame).unwrap();
        }
        group
    }

    #[test]
    fn names_are_their_numbers() {
        for (found, number) in [
            ("00000000000000000001", Some(1)),
            ("18446744073709551615", Some(u64::MAX)),
            ("1", None),
            ("00000000000000000001.tmp", None),
            ("+0000000000000000001", None),
            ("", None),
        ] {
            assert_eq!(parse(found), number, "{found}");
        }
    }

    #[test]
    fn the_header_is_as_documented() {
        let fence =
            GroupHeader { number: 0x0102, writer: writer(), first_seq: SequenceNumber(9), last_seq: SequenceNumber(8) };
        let bytes = fence.encode_fence();
        let expected = [
            b"ARCRLOG\0".as_slice(),
            &[1, 0, 0, 0],
            &[2, 0, 0, 0],
            &[2, 1, 0, 0, 0, 0, 0, 0],
            &[4, 3, 0, 0, 0, 0, 0, 0],
            &[9, 0, 0, 0, 0, 0, 0, 0],
            &[8, 0, 0, 0, 0, 0, 0, 0],
            &[0; 8],
            b"01ARZ3NDEKTSV4RRFFQ69G5FAV\0\0\0\0\0\0",
            &[0; 4],
            &crc32c::crc32c(&bytes[..92]).to_le_bytes(),
        ];
        assert_eq!(bytes, expected.concat());
        assert_eq!(bytes.len(), HEADER_BYTES);
        let decoded = DecodedGroup::decode(0x0102, Path::new("x"), bytes.into()).unwrap();
        assert_eq!(decoded.header, fence);
        decoded.visit(Path::new("x"), &mut |_| panic!("a fence has no frames")).unwrap();
    }

    #[test]
    fn objects_come_back_whole_or_not_at_all() {
        let path = Path::new("5");
        let bytes = group().encode(5, &writer());
        let read = |number: u64, bytes: &[u8]| {
            let mut bodies = Vec::new();
            let decoded = DecodedGroup::decode(number, path, Bytes::copy_from_slice(bytes))?;
            decoded.visit(path, &mut |frame| {
                bodies.push(frame.body.to_vec());
                Ok(())
            })?;
            Ok::<_, Error>(bodies)
        };
        let bodies = [b"first".to_vec(), b"second".to_vec()];
        assert_eq!(read(5, &bytes).unwrap(), bodies);
        assert_eq!(read(6, &bytes).unwrap_err().kind(), ErrorKind::Corrupt);
        for len in 0..bytes.len() {
            assert_eq!(read(5, &bytes[..len]).unwrap_err().kind(), ErrorKind::Corrupt, "{len} bytes");
        }
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            match read(5, &damaged) {
                Ok(found) => assert_eq!(found, bodies, "bit {bit} is of padding"),
                Err(error) => assert_eq!(error.kind(), ErrorKind::Corrupt, "bit {bit}"),
            }
        }
        let mut newer = bytes;
        newer[8] = 2;
        let checksum = crc32c::crc32c(&newer[..CHECKED_BYTES]).to_le_bytes();
        newer[CHECKED_BYTES..HEADER_BYTES].copy_from_slice(&checksum);
        let error = read(5, &newer).unwrap_err();
        assert!(matches!(error, Error::NewerFormat { found: 2, supported: 1, .. }), "{error}");
    }

    #[test]
    fn a_group_takes_only_the_next_frame() {
        let mut group = group();
        for seq in [8, 10, 0] {
            let frame = Frame { seq: SequenceNumber(seq), kind: 16, meta: b"", body: b"", body_crc: 0 };
            assert_eq!(group.push(&frame).unwrap_err().kind(), ErrorKind::Internal, "{seq}");
        }
        assert_eq!(group.last_seq(), SequenceNumber(8));
    }
}
