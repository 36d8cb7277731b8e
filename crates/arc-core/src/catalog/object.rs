//! One immutable object of the manifest: a checked header and a payload.
//!
//! Owns the bytes of the header and the names (docs/format.md, "Manifest"). Never looks into a
//! payload.

use std::path::Path;

use crate::{Error, Result};

/// Version of an object, as its payload needs it. Each is written only where a build that knows a
/// lower one would misread the payload, so that these open whatever they can.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub(super) enum FormatVersion {
    /// The first.
    #[default]
    Plain = 1,
    /// With settings of column types, or with columns that were of another type.
    ColumnTypes = 2,
    /// With data files that lie in packs.
    Packs = 3,
    /// With states that are kept under a name: a build that does not know them would remove their
    /// files.
    Snapshots = 4,
    /// With a log in the object store, or a database whose writes are to be there: a build that does
    /// not know it would begin without what is in it.
    RemoteLog = 5,
    /// With cuts of rows that were handed over, or adopted: a build that does not know them would
    /// merge files over them.
    Pushes = 6,
    /// With data files whose times are in a coarser unit than nanoseconds: a build that does not know
    /// them would take their bounds for nanoseconds.
    TimeUnits = 7,
    /// A list of the files of states with names: a build that does not know it never looks at it.
    KeptFiles = 8,
}

/// Newest version that is read.
pub(crate) const NEWEST_VERSION: u32 = FormatVersion::KeptFiles as u32;

const MAGIC: [u8; 8] = *b"ARCMNFST";
const HEADER_BYTES: usize = 48;
/// The header's last four bytes are its checksum, in every version: it is checked before the
/// version is believed.
const CHECKED_BYTES: usize = HEADER_BYTES - 4;
/// Where in the file the payload begins, and where the checksum of the object before is.
pub(super) const PAYLOAD_OFFSET: u64 = HEADER_BYTES as u64;
pub(super) const PREVIOUS_OFFSET: u64 = 24;
const SNAPSHOT_SUFFIX: &str = ".snapshot";
const KEPT_SUFFIX: &str = ".kept";

/// What an object holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ObjectKind {
    /// One edit.
    Commit,
    /// The whole state after the commit of the same number.
    Snapshot,
    /// Which files the states with names have, up to the state of the same number.
    Kept,
}

/// Which object: the name of its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ObjectId {
    pub(super) kind: ObjectKind,
    pub(super) number: u64,
}

impl ObjectId {
    pub(super) const fn commit(number: u64) -> Self {
        Self { kind: ObjectKind::Commit, number }
    }

    pub(super) const fn snapshot(number: u64) -> Self {
        Self { kind: ObjectKind::Snapshot, number }
    }

    pub(super) const fn kept(number: u64) -> Self {
        Self { kind: ObjectKind::Kept, number }
    }

    /// Returns the file's name. Twenty digits hold every number, so names sort as numbers do.
    pub(super) fn name(self) -> String {
        let suffix = match self.kind {
            ObjectKind::Commit => "",
            ObjectKind::Snapshot => SNAPSHOT_SUFFIX,
            ObjectKind::Kept => KEPT_SUFFIX,
        };
        format!("{:020}{suffix}", self.number)
    }

    /// Returns the object that a file's name says, or `None` for any other file.
    pub(super) fn parse(name: &str) -> Option<Self> {
        let (digits, kind) = match name.split_at_checked(name.find('.').unwrap_or(name.len())) {
            Some((digits, SNAPSHOT_SUFFIX)) => (digits, ObjectKind::Snapshot),
            Some((digits, KEPT_SUFFIX)) => (digits, ObjectKind::Kept),
            _ => (name, ObjectKind::Commit),
        };
        let id = Self { kind, number: digits.parse().ok()? };
        (id.name() == name).then_some(id)
    }
}

/// An object's bytes, and the checksum by which the next one names it.
#[derive(Debug)]
pub(super) struct Encoded {
    pub(super) bytes: Vec<u8>,
    pub(super) checksum: u32,
}

/// Returns the object with this payload. `previous` is the checksum of the commit before a commit,
/// or of the commit of the same number for a snapshot.
pub(super) fn encode(id: ObjectId, version: FormatVersion, previous: u32, payload: &[u8]) -> Encoded {
    let (mut bytes, checksum) = header(id, version as u32, previous, payload);
    bytes.extend_from_slice(payload);
    Encoded { bytes, checksum }
}

/// Returns the header, with room for the payload, and its checksum. It covers the payload, whose
/// checksum it holds.
fn header(id: ObjectId, version: u32, previous: u32, payload: &[u8]) -> (Vec<u8>, u32) {
    let kind: u32 = match id.kind {
        ObjectKind::Commit => 1,
        ObjectKind::Snapshot => 2,
        ObjectKind::Kept => 3,
    };
    let mut bytes = Vec::with_capacity(HEADER_BYTES + payload.len());
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&version.to_le_bytes());
    bytes.extend_from_slice(&kind.to_le_bytes());
    bytes.extend_from_slice(&id.number.to_le_bytes());
    bytes.extend_from_slice(&previous.to_le_bytes());
    bytes.extend_from_slice(&crc32c::crc32c(payload).to_le_bytes());
    bytes.extend_from_slice(&(payload.len() as u64).to_le_bytes());
    bytes.extend_from_slice(&[0; 4]);
    let checksum = crc32c::crc32c(&bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    (bytes, checksum)
}

/// An object read back; every checksum was right.
#[derive(Debug)]
pub(super) struct DecodedObject<'a> {
    pub(super) previous: u32,
    pub(super) checksum: u32,
    pub(super) payload: &'a [u8],
}

/// Checks the bytes of the file `path`, which is to be the object `id`.
///
/// # Errors
///
/// [`Error::Corrupt`] naming the first byte that is wrong, as far as it can be told;
/// [`Error::NewerFormat`].
pub(super) fn decode<'a>(id: ObjectId, path: &Path, bytes: &'a [u8]) -> Result<DecodedObject<'a>> {
    let corrupt = |offset: usize, reason: &str| Error::corrupt(path, offset as u64, reason);
    let Some((found, payload)) = bytes.split_at_checked(HEADER_BYTES) else {
        return Err(corrupt(bytes.len(), "it ends in its header"));
    };
    if !found.starts_with(&MAGIC) {
        return Err(corrupt(0, "it does not begin like an object of the manifest"));
    }
    let checksum = read_u32(found, CHECKED_BYTES);
    if crc32c::crc32c(found.get(..CHECKED_BYTES).unwrap_or_default()) != checksum {
        return Err(corrupt(CHECKED_BYTES, "the checksum of its header is wrong"));
    }
    let version = read_u32(found, 8);
    if version > NEWEST_VERSION {
        return Err(Error::NewerFormat { path: path.into(), found: version, supported: NEWEST_VERSION });
    }
    let previous = read_u32(found, 24);
    let (expected, _) = header(id, version, previous, payload);
    match expected.iter().zip(found).position(|(expected, found)| expected != found) {
        None => Ok(DecodedObject { previous, checksum, payload }),
        Some(28..32) => Err(corrupt(HEADER_BYTES, "the checksum of its payload is wrong")),
        Some(32..40) => Err(corrupt(bytes.len(), "its payload does not have the length that its header says")),
        Some(offset) => Err(corrupt(offset, "it is not the object that its name says")),
    }
}

fn read_u32(bytes: &[u8], offset: usize) -> u32 {
    let bytes = bytes.get(offset..).and_then(<[u8]>::first_chunk);
    bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn names_are_their_numbers() {
        let cases = [
            ("00000000000000000001", Some(ObjectId::commit(1))),
            ("18446744073709551615", Some(ObjectId::commit(u64::MAX))),
            ("00000000000000000128.snapshot", Some(ObjectId::snapshot(128))),
            ("00000000000000000129.kept", Some(ObjectId::kept(129))),
            ("18446744073709551616", None),
            ("1", None),
            ("000000000000000000001", None),
            ("+0000000000000000001", None),
            ("00000000000000000001.tmp", None),
            ("00000000000000000001.snapshot.tmp", None),
            ("00000000000000000001.snapshot.snapshot", None),
            ("00000000000000000001.kept.snapshot", None),
            ("00000000000000000001kept", None),
            ("", None),
        ];
        for (name, id) in cases {
            assert_eq!(ObjectId::parse(name), id, "{name}");
            if let Some(id) = id {
                assert_eq!(id.name(), name);
            }
        }
    }

    #[test]
    fn the_header_is_as_documented() {
        let Encoded { bytes, checksum } =
            encode(ObjectId::snapshot(0x0102), FormatVersion::Plain, 0x0a0b_0c0d, b"123456789");
        let expected = [
            b"ARCMNFST".as_slice(),
            &[1, 0, 0, 0],
            &[2, 0, 0, 0],
            &[2, 1, 0, 0, 0, 0, 0, 0],
            &[0x0d, 0x0c, 0x0b, 0x0a],
            // The check value of crc32c for these nine digits.
            &0xe306_9283_u32.to_le_bytes(),
            &[9, 0, 0, 0, 0, 0, 0, 0],
            &[0; 4],
            &checksum.to_le_bytes(),
            b"123456789",
        ];
        assert_eq!(bytes, expected.concat());
    }

    #[test]
    fn objects_come_back_whole_or_not_at_all() {
        let (id, path) = (ObjectId::commit(7), Path::new("7"));
        let Encoded { bytes, checksum } = encode(id, FormatVersion::ColumnTypes, 5, b"payload");
        let decoded = decode(id, path, &bytes).unwrap();
        assert_eq!((decoded.previous, decoded.checksum, decoded.payload), (5, checksum, b"payload".as_slice()));
        let kind = |id, bytes: &[u8]| decode(id, path, bytes).unwrap_err().kind();
        for len in 0..bytes.len() {
            assert_eq!(kind(id, &bytes[..len]), ErrorKind::Corrupt, "{len} bytes");
        }
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(kind(id, &damaged), ErrorKind::Corrupt, "bit {bit}");
        }
        assert_eq!(kind(id, &[bytes.as_slice(), &[0]].concat()), ErrorKind::Corrupt);
        assert_eq!(kind(ObjectId::commit(8), &bytes), ErrorKind::Corrupt);
        assert_eq!(kind(ObjectId::snapshot(7), &bytes), ErrorKind::Corrupt);
    }

    #[test]
    fn a_newer_version_is_told_from_damage() {
        let id = ObjectId::commit(7);
        let mut bytes = encode(id, FormatVersion::ColumnTypes, 5, b"payload").bytes;
        let newer = NEWEST_VERSION + 1;
        bytes[8..12].copy_from_slice(&newer.to_le_bytes());
        let checksum = crc32c::crc32c(&bytes[..CHECKED_BYTES]);
        bytes[CHECKED_BYTES..HEADER_BYTES].copy_from_slice(&checksum.to_le_bytes());
        let error = decode(id, Path::new("7"), &bytes).unwrap_err();
        assert!(
            matches!(error, Error::NewerFormat { found, supported: NEWEST_VERSION, .. } if found == newer),
            "{error}"
        );
    }
}
