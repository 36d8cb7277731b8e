//! Damaged bytes: a clean prefix where nothing proves that more had been synced, and otherwise a
//! refusal that names the location and changes nothing.

use proptest::prelude::*;

use super::*;
use crate::{
    ErrorKind,
    wal::{
        frame::{HEADER_BYTES, Header, decode},
        segment::SegmentName,
    },
};

/// A log before it is damaged.
struct Log {
    image: Image,
    last_seq: u64,
    frames: Vec<FrameLocation>,
}

/// Where a frame lies.
struct FrameLocation {
    path: PathBuf,
    offset: usize,
    header: Header,
}

impl FrameLocation {
    fn bytes<'a>(&self, image: &'a Image, len: usize) -> Option<&'a [u8]> {
        image.get(&self.path)?.get(self.offset..self.offset + len)
    }

    fn unpadded_len(&self) -> usize {
        HEADER_BYTES + (self.header.meta_len + self.header.body_len) as usize
    }

    fn padded_len(&self) -> usize {
        self.header.end(0)
    }
}

impl Log {
    /// Groups of `group` frames each, synced one by one: each group's frames prove that the groups
    /// before were synced.
    fn new(groups: u64, group: u64) -> Self {
        let fs = CrashFs::new();
        let (mut wal, _) = open(&fs, 0).unwrap();
        for first in (0..groups).map(|at| at * group + 1) {
            append(&mut wal, first..=first + group - 1).unwrap();
            wal.sync().unwrap();
        }
        let image = fs.current();
        let of_file = |path: PathBuf| {
            let found = frames(&image, &path).into_iter();
            found.map(move |(offset, header)| FrameLocation { path: path.clone(), offset, header })
        };
        let frames = files(&image, ".wal").into_iter().flat_map(of_file).collect();
        Self { image: image.clone(), last_seq: groups * group, frames }
    }

    fn damaged(&self, path: &Path, damage: impl FnOnce(&mut Vec<u8>)) -> Image {
        let mut image = self.image.clone();
        let mut bytes = image.get(path).unwrap().to_vec();
        damage(&mut bytes);
        image.set(path, bytes);
        image
    }

    /// A survey finds the first gap where opening does, and all frames after it that are whole.
    fn check_gaps(&self, damaged: &Image, found: (Vec<Entry>, Survey), proven: u64, location: (&PathBuf, u64)) {
        let (entries, survey) = found;
        assert_eq!((&survey.gaps[0].location.path, survey.gaps[0].location.offset), location);
        let missing = survey.gaps.iter().flat_map(|gap| gap.first.0..=gap.last.0);
        let mut seqs: Vec<u64> = entries.iter().map(|entry| entry.seq).chain(missing).collect();
        seqs.sort_unstable();
        assert_eq!(seqs, (1..=survey.last_seq.0).collect::<Vec<_>>());
        assert!(survey.last_seq.0 >= proven);
        for location in self.frames.iter().filter(|location| location.header.seq.0 <= proven) {
            let whole =
                location.bytes(damaged, location.padded_len()) == location.bytes(&self.image, location.padded_len());
            let kept = entries.iter().any(|entry| *entry == entry_of(0, location.header.seq.0));
            assert!(kept || !whole, "frame {} is whole and was passed over", location.header.seq);
        }
    }

    /// Opens the log as it is in `damaged` and checks what comes of it.
    fn check(&self, damaged: &Image) {
        let same = |location: &FrameLocation, len| location.bytes(damaged, len) == location.bytes(&self.image, len);
        let fs = CrashFs::from_image(damaged);
        let surveyed = surveyed(&fs);
        let opened = open(&fs, 0);
        let Some(broken) = self.frames.iter().find(|location| !same(location, location.padded_len())) else {
            assert_eq!(opened.unwrap().1, entries(1..=self.last_seq));
            assert_eq!((surveyed.0, surveyed.1.gaps, surveyed.1.torn), (entries(1..=self.last_seq), vec![], None));
            return;
        };
        let seq = broken.header.seq.0;
        let witnesses = self.frames.iter().filter(|location| same(location, HEADER_BYTES));
        let proven = witnesses.map(|location| location.header.durable_seq.0).max().unwrap_or(0);
        match opened {
            Ok((wal, replayed)) => {
                assert!(seq > proven, "frame {seq} had been synced and was dropped");
                assert_eq!(replayed, entries(1..=seq - 1));
                assert_eq!((surveyed.0, surveyed.1.gaps), (replayed, vec![]));
                goes_on_cleanly(wal, &fs, seq);
            }
            Err(Error::Corrupt { path, offset, reason }) => {
                assert!(seq <= proven, "frame {seq} was refused: {reason}");
                assert_eq!((&path, offset), (&broken.path, broken.offset as u64), "{reason}");
                assert!(reason.starts_with(&format!("frame {seq} ")), "{reason}");
                self.check_gaps(damaged, surveyed, proven, (&path, offset));
                assert_eq!(&fs.current(), damaged, "a refusal changes nothing");
            }
            Err(other) => panic!("{other}"),
        }
    }
}

/// What a survey finds.
fn surveyed(fs: &CrashFs) -> (Vec<Entry>, Survey) {
    let mut entries = Vec::new();
    let zero = SequenceNumber::default();
    let before = fs.current();
    let survey = survey(fs, Path::new(DIR), zero, zero, &mut |_, frame| {
        let ReplayedFrame { seq, kind, meta, body } = frame;
        entries.push(Entry { seq: seq.0, kind, meta: meta.to_vec(), body: body.to_vec() });
        Ok(())
    });
    assert_eq!(fs.current(), before);
    (entries, survey.unwrap())
}

/// What was dropped stays dropped while the log goes on in its place with frames of the same
/// lengths.
fn goes_on_cleanly(mut wal: Wal, fs: &CrashFs, next: u64) {
    let mut expected = entries(1..=next - 1);
    for seq in next..next + 2 {
        append_all(&mut wal, &entries_of(9, seq..=seq)).unwrap();
        wal.sync().unwrap();
        expected.push(entry_of(9, seq));
        assert_eq!(open_image(&fs.current(), 0).unwrap().1, expected);
    }
}

#[test]
fn every_flipped_bit_of_a_header_and_one_in_every_byte_of_a_payload_is_found() {
    let log = Log::new(6, 6);
    assert!(files(&log.image, ".wal").len() > 1);
    for location in &log.frames {
        let header = (0..HEADER_BYTES).flat_map(|byte| (0..8).map(move |bit| (byte, 1 << bit)));
        let payload = (HEADER_BYTES..location.unpadded_len()).map(|byte| (byte, 1 << (byte % 8)));
        for (byte, mask) in header.chain(payload) {
            log.check(&log.damaged(&location.path, |bytes| bytes[location.offset + byte] ^= mask));
        }
    }
}

#[test]
fn a_log_cut_off_at_any_byte_is_a_prefix_or_is_refused() {
    let log = Log::new(5, 6);
    for path in files(&log.image, ".wal") {
        for len in 0..log.image.get(&path).unwrap().len() {
            log.check(&log.damaged(&path, |bytes| bytes.truncate(len)));
        }
    }
}

#[test]
fn zeroed_blocks_and_sectors_are_found() {
    let log = Log::new(12, 6);
    for path in files(&log.image, ".wal") {
        for block_bytes in [512, 4096] {
            for block in 0..log.image.get(&path).unwrap().len() / block_bytes {
                let zero = |bytes: &mut Vec<u8>| bytes[block * block_bytes..][..block_bytes].fill(0);
                log.check(&log.damaged(&path, zero));
            }
        }
    }
}

#[test]
fn swapped_frames_are_found() {
    let log = Log::new(12, 6);
    for (a, b) in log.frames.iter().zip(log.frames.iter().skip(1)).filter(|(a, b)| a.path == b.path) {
        let swap = |bytes: &mut Vec<u8>| bytes[a.offset..b.offset + b.padded_len()].rotate_left(a.padded_len());
        let swapped = log.damaged(&a.path, swap);
        // Frame 2 cannot be at the beginning, whatever its checksum says: a survey finds frame 1
        // after it.
        if a.offset == 0 {
            assert!(matches!(open_image(&swapped, 0), Err(Error::Corrupt { offset: 0, .. })));
            continue;
        }
        log.check(&swapped);
    }
}

#[test]
fn a_frame_copied_to_another_place_is_not_taken() {
    let log = Log::new(3, 4);
    let [.., before, last] = log.frames.as_slice() else { unreachable!() };
    let end = last.offset + last.padded_len();
    for location in [before, last] {
        let copy = location.bytes(&log.image, location.unpadded_len()).unwrap();
        log.check(&log.damaged(&last.path, |bytes| bytes[end..][..copy.len()].copy_from_slice(copy)));
    }
}

#[test]
fn a_segment_that_is_gone_is_found() {
    let log = Log::new(20, 6);
    let paths = files(&log.image, ".wal");
    assert!(paths.len() > 3);
    let (last, others) = paths.split_last().unwrap();
    for path in others {
        let mut image = log.image.clone();
        image.remove(path);
        let fs = CrashFs::from_image(&image);
        assert!(matches!(open(&fs, 0), Err(Error::Corrupt { .. })), "{}", path.display());
        assert_eq!(fs.current(), image);
    }
    // The last one takes the proof with it, as far as it has frames that nothing else proves.
    let mut image = log.image.clone();
    image.remove(last);
    let first = log.frames.iter().find(|location| location.path == *last).unwrap().header.seq.0;
    assert_eq!(open_image(&image, 0).unwrap().1, entries(1..=first - 1));
}

#[test]
fn damage_to_frames_that_nobody_needs_does_not_matter() {
    let log = Log::new(12, 6);
    for location in &log.frames {
        for byte in [0, 15, 24, HEADER_BYTES, location.unpadded_len() - 1] {
            let image = log.damaged(&location.path, |bytes| bytes[location.offset + byte] ^= 0x10);
            let after = location.header.seq.0;
            assert_eq!(open_image(&image, after).unwrap().1, entries(after + 1..=log.last_seq));
        }
    }
}

#[test]
fn what_a_client_sent_is_not_types_a_frame() {
    // A client that sends a log's own bytes: they lie in a body, also after a torn frame.
    let log = Log::new(3, 4);
    let stolen = log.image.get(&files(&log.image, ".wal")[0]).unwrap().to_vec();
    let fs = CrashFs::from_image(&log.image);
    let (mut wal, _) = open(&fs, 0).unwrap();
    let sent = Entry { seq: 13, kind: 0, meta: vec![], body: stolen };
    append_all(&mut wal, std::slice::from_ref(&sent)).unwrap();
    assert_eq!(open(&fs, 0).unwrap().1.last(), Some(&sent));
    let image = fs.current();
    let (path, offset) = (files(&image, ".wal").pop().unwrap(), 13);
    let mut bytes = image.get(&path).unwrap().to_vec();
    bytes[HEADER_BYTES + offset] ^= 1;
    let mut torn = image;
    torn.set(&path, bytes);
    assert_eq!(open_image(&torn, 0).unwrap().1, entries(1..=12));
}

#[test]
fn floats_of_an_earlier_life_are_not_types_frames() {
    let log = Log::new(2, 3);
    let (path, last) = (files(&log.image, ".wal").remove(0), log.frames.last().unwrap());
    let end = last.offset + last.padded_len();
    for step in [0.25, 1.0, 1024.0, -3.5] {
        let floats = (0_i32..).flat_map(|n| (f64::from(n % 40) * step).to_le_bytes());
        let image = log.damaged(&path, |bytes| bytes[end..].iter_mut().zip(floats).for_each(|(to, from)| *to = from));
        frame::with_weak_checksums(0xFF, || {
            let fs = CrashFs::from_image(&image);
            let (found, survey) = surveyed(&fs);
            assert_eq!((found, survey.gaps, survey.torn), (entries(1..=6), vec![], None), "steps of {step}");
            let (wal, replayed) = open(&fs, 0).unwrap();
            assert_eq!((replayed, wal.last_seq().0), (entries(1..=6), 6), "steps of {step}");
        });
    }
}

#[test]
fn damage_is_found_in_a_segment_that_shares_its_first_number_with_an_empty_one() {
    let log = Log::new(3, 3);
    let damaged = &log.frames[1];
    let image = log.damaged(&damaged.path, |bytes| bytes[damaged.offset + 1] ^= 1);
    // The salt decides which of the two is listed first.
    for salt in [0, u64::MAX] {
        let mut image = image.clone();
        let empty = SegmentName { first_seq: SequenceNumber(1), salt };
        image.set(&empty.path(Path::new(DIR)), vec![0; 4096]);
        let fs = CrashFs::from_image(&image);
        match open(&fs, 0) {
            Err(Error::Corrupt { path, offset, .. }) => {
                assert_eq!((path, offset), (damaged.path.clone(), damaged.offset as u64));
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(fs.current(), image, "a refusal changes nothing");
    }
}

#[test]
fn what_is_torn_in_one_of_two_segments_of_one_number_never_comes_back() {
    // A group of which nothing was synced, its first frame torn.
    let fs = CrashFs::new();
    let (mut wal, _) = open(&fs, 0).unwrap();
    append(&mut wal, 1..=4).unwrap();
    let mut image = fs.current();
    let path = files(&image, ".wal").remove(0);
    let mut bytes = image.get(&path).unwrap().to_vec();
    bytes[HEADER_BYTES] ^= 1;
    image.set(&path, bytes);
    for salt in [0, u64::MAX] {
        let mut image = image.clone();
        image.set(&SegmentName { first_seq: SequenceNumber(1), salt }.path(Path::new(DIR)), vec![0; 4096]);
        let fs = CrashFs::from_image(&image);
        let (mut wal, replayed) = open(&fs, 0).unwrap();
        assert_eq!(replayed, vec![]);
        append_all(&mut wal, &entries_of(9, 1..=1)).unwrap();
        assert_eq!(open(&fs, 0).unwrap().1, entries_of(9, 1..=1));
    }
}

proptest! {
    #[test]
    fn any_bytes_are_a_frame_within_them_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..200), at in 0_usize..210, salt: u64) {
        let name = SegmentName { first_seq: SequenceNumber(1), salt };
        if let Ok(decoded) = decode(&bytes, at, name) {
            prop_assert!(decoded.body.end <= decoded.end && decoded.end <= bytes.len());
        }
        prop_assert!(frame::headers(&bytes, at, name).count() <= bytes.len() / HEADER_BYTES);
    }

    #[test]
    fn no_frame_has_a_number_that_it_cannot_have_where_it_is(
        words in proptest::collection::vec(prop_oneof![0_u64..300, any::<u64>(), any::<i16>().prop_map(|n| (f64::from(n) / 4.0).to_bits())], 5..400),
        first in 1_u64..200,
    ) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let name = SegmentName { first_seq: SequenceNumber(first), salt: 7 };
        // As if every checksum matched.
        let found: Vec<_> = frame::with_weak_checksums(0, || frame::headers(&bytes, 0, name).collect());
        for (at, header) in found {
            let most = first + (at / HEADER_BYTES) as u64;
            prop_assert!((first..=most).contains(&header.seq.0) && header.durable_seq < header.seq, "{header:?} at {at}");
        }
    }

    #[test]
    fn a_header_with_any_values_is_checked_before_it_is_used(
        lens: (u32, u32), kind: u8, seq in 1_u64.., salt: u64, room in 0_usize..300,
    ) {
        let header = Header {
            meta_crc: 0, body_crc: 0, meta_len: lens.0, body_len: lens.1, kind,
            seq: SequenceNumber(seq), durable_seq: SequenceNumber(seq - 1),
        };
        let mut bytes = header.encode(salt).to_vec();
        bytes.resize(HEADER_BYTES + room, 0);
        let name = SegmentName { first_seq: SequenceNumber(seq), salt };
        prop_assert_eq!(Header::decode(&bytes, 0, name), Some(header));
        prop_assert_eq!(Header::decode(&bytes, 0, SegmentName { salt: salt ^ 1, ..name }), None);
        prop_assert_eq!(Header::decode(&bytes, 0, SegmentName { first_seq: header.seq.next(), ..name }), None);
        if let Ok(decoded) = decode(&bytes, 0, name) {
            prop_assert!(decoded.end <= bytes.len());
        }
    }

    #[test]
    fn a_log_of_any_bytes_opens_or_is_refused(
        damage in proptest::collection::vec((0_usize..8192, any::<u8>()), 1..20), after in 0_u64..90,
    ) {
        let log = Log::new(6, 12);
        let paths = files(&log.image, ".wal");
        let mut image = log.image.clone();
        for (at, byte) in damage {
            let path = &paths[at % paths.len()];
            let mut bytes = image.get(path).unwrap().to_vec();
            let at = at % bytes.len();
            bytes[at] = byte;
            image.set(path, bytes);
        }
        match open_image(&image, after) {
            Ok((wal, replayed)) => prop_assert_eq!(replayed, entries(after + 1..=wal.last_seq().0)),
            Err(error) => prop_assert_eq!(error.kind(), ErrorKind::Corrupt),
        }
    }
}
