//! Frames as bytes of their own, outside of a segment: what is put elsewhere of the log.
//!
//! A group is laid out as the beginning of a segment is (docs/format.md, "WAL frame"), whose name
//! would say its first number and its salt. Never touches a file.

use bytes::Bytes;

use crate::{Result, SequenceNumber};

use super::{
    Frame, ReplayedFrame,
    frame::{self, Header},
    segment::SegmentName,
};

/// Where and why bytes are not the group that they were said to be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct GroupDamage {
    /// In the group's bytes.
    pub(crate) offset: usize,
    pub(crate) reason: String,
}

/// Appends a frame to a group, which begins with frame `first`.
///
/// # Errors
///
/// [`Error::Internal`](crate::Error::Internal) for one that no log can have.
pub(crate) fn push_frame(bytes: &mut Vec<u8>, salt: u64, frame: &Frame<'_>) -> Result<()> {
    // All before it are durable, for a group is made of what was synced.
    let header = Header::new(frame, SequenceNumber(frame.seq.0.saturating_sub(1)))?;
    bytes.extend_from_slice(&header.encode(salt));
    bytes.extend_from_slice(frame.meta);
    bytes.extend_from_slice(frame.body);
    bytes.extend(std::iter::repeat_n(0, header.padding()));
    Ok(())
}

/// Hands the frames of a group to `visit`: those from `first` to `last`, each of which passed its
/// checks.
///
/// # Errors
///
/// The damage within the result, where one is missing or damaged; what `visit` returns.
pub(crate) fn read_frames(
    bytes: &Bytes,
    salt: u64,
    [first, last]: [SequenceNumber; 2],
    visit: &mut dyn FnMut(ReplayedFrame<'_>) -> Result<()>,
) -> Result<Result<(), GroupDamage>> {
    let (name, mut offset, mut next) = (SegmentName { first_seq: first, salt }, 0, first);
    while next <= last {
        let damaged = |damage: frame::Damage| GroupDamage { offset, reason: format!("frame {next} {damage}") };
        let decoded = match frame::decode(bytes, offset, name) {
            Ok(decoded) if decoded.header.is_seal() => return Ok(Err(damaged(frame::Damage::Sealed))),
            Ok(decoded) if decoded.header.seq == next => decoded,
            Ok(_) => return Ok(Err(damaged(frame::Damage::Sequence))),
            Err(damage) => return Ok(Err(damaged(damage))),
        };
        let meta = bytes.get(decoded.meta.clone()).unwrap_or_default();
        visit(ReplayedFrame { seq: next, kind: decoded.header.kind, meta, body: bytes.slice(decoded.body.clone()) })?;
        (offset, next) = (decoded.end, next.next());
    }
    if offset == bytes.len() {
        return Ok(Ok(()));
    }
    Ok(Err(GroupDamage { offset, reason: format!("there is more than frames {first} to {last}") }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wal::body_checksum;

    const SALT: u64 = 7;

    fn group(first: u64, bodies: &[&[u8]]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (seq, body) in (first..).zip(bodies) {
            let frame = Frame { seq: SequenceNumber(seq), kind: 16, meta: b"m", body, body_crc: body_checksum(body) };
            push_frame(&mut bytes, SALT, &frame).unwrap();
        }
        bytes
    }

    fn read(bytes: &[u8], first: u64, last: u64) -> Result<Vec<(u64, Vec<u8>)>, GroupDamage> {
        let mut found = Vec::new();
        let range = [first, last].map(SequenceNumber);
        let read = read_frames(&Bytes::copy_from_slice(bytes), SALT, range, &mut |frame| {
            found.push((frame.seq.0, frame.body.to_vec()));
            Ok(())
        });
        read.unwrap().map(|()| found)
    }

    #[test]
    fn a_group_comes_back_whole_or_not_at_all() {
        let bodies: [&[u8]; 3] = [b"one", b"", b"a longer one, with more than eight bytes"];
        let bytes = group(41, &bodies);
        let expected: Vec<_> = (41..).zip(bodies.map(<[u8]>::to_vec)).collect();
        assert_eq!(read(&bytes, 41, 43).unwrap(), expected);
        for len in 0..bytes.len() {
            assert!(read(&bytes[..len], 41, 43).is_err(), "{len} bytes");
        }
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            // Padding is in no checksum, as in a segment.
            if let Ok(read) = read(&damaged, 41, 43) {
                assert_eq!(read, expected, "bit {bit}");
            }
        }
        for (first, last) in [(41, 42), (41, 44), (40, 43), (42, 43)] {
            assert!(read(&bytes, first, last).is_err(), "{first} to {last}");
        }
        assert_eq!(read(&[], 5, 4).unwrap(), [], "one without frames is empty");
        assert!(read(&[0], 5, 4).is_err());
    }
}
