//! The seal: what proves that the last group was synced.

use super::*;
use crate::{
    ErrorKind,
    vfs::{Fault, FaultFs, Operation},
};

pub(super) fn seal(wal: &mut Wal) -> bool {
    wal.begin_seal().unwrap().map(|sync| sync.run().unwrap()).is_some()
}

/// Groups that were synced one by one, sealed; and the offset of each frame in the one segment.
fn sealed() -> (CrashFs, PathBuf, Vec<usize>) {
    let fs = CrashFs::new();
    let (mut wal, _) = open(&fs, 0).unwrap();
    for first in [1, 4, 7] {
        append(&mut wal, first..=first + 2).unwrap();
        wal.sync().unwrap();
    }
    assert!(seal(&mut wal));
    let path = files(&fs.current(), ".wal").remove(0);
    let offsets = frames(&fs.current(), &path).into_iter().map(|(offset, _)| offset).collect();
    (fs, path, offsets)
}

#[test]
fn every_flipped_bit_of_the_last_group_is_found_and_one_of_the_seal_does_not_matter() {
    let (fs, path, offsets) = sealed();
    let image = fs.current();
    let bytes = image.get(&path).unwrap();
    assert_eq!(offsets.len(), 10);
    for bit in 8 * offsets[6]..8 * (offsets[9] + frame::HEADER_BYTES) {
        let mut damaged = image.clone();
        let mut bytes = bytes.to_vec();
        bytes[bit / 8] ^= 1 << (bit % 8);
        damaged.set(&path, bytes);
        let frame = offsets.partition_point(|offset| *offset <= bit / 8);
        let header = &frames(&image, &path)[frame - 1].1;
        let padding = header.end(offsets[frame - 1]) - header.padding();
        let fs = CrashFs::from_image(&damaged);
        match open(&fs, 0) {
            // Padding is in no checksum.
            Ok((_, replayed)) => {
                assert!(frame == 10 || bit / 8 >= padding, "bit {bit} of frame {frame}");
                assert_eq!(replayed, entries(1..=9), "bit {bit}");
            }
            Err(Error::Corrupt { path: named, offset, .. }) => {
                assert_eq!((frame < 10, &named, offset), (true, &path, offsets[frame - 1] as u64), "bit {bit}");
                assert_eq!(fs.current(), damaged, "a refusal changes nothing");
            }
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn without_a_seal_the_same_damage_is_types_a_torn_tail() {
    let (fs, path, offsets) = sealed();
    let mut image = fs.current();
    let mut bytes = image.get(&path).unwrap().to_vec();
    bytes[offsets[9]..].fill(0);
    bytes[offsets[8]] ^= 1;
    image.set(&path, bytes);
    assert_eq!(open_image(&image, 0).unwrap().1, entries(1..=8));
}

#[test]
fn a_log_is_sealed_once_and_only_where_something_is_to_be_proven() {
    let fs = CrashFs::new();
    let (mut wal, _) = open(&fs, 0).unwrap();
    assert!(!seal(&mut wal), "nothing was written");
    append(&mut wal, 1..=3).unwrap();
    assert!(!seal(&mut wal), "nothing is durable");
    wal.sync().unwrap();
    let before = fs.operations();
    assert!(seal(&mut wal));
    assert_eq!(fs.operations(), before + 2, "one write, one sync");
    assert!(!seal(&mut wal) && fs.operations() == before + 2, "a log at rest is left alone");
    // The next frames take its place and number, and prove what is before them.
    append(&mut wal, 4..=4).unwrap();
    assert!(!seal(&mut wal));
    assert_eq!(open(&fs, 0).unwrap().1, entries(1..=4));
    wal.sync().unwrap();
    wal.release(SequenceNumber(4)).unwrap();
    assert!(!seal(&mut wal), "what is durable elsewhere needs no proof");
    append(&mut wal, 5..=5).unwrap();
    wal.want_sync();
    let under_way = wal.begin_sync().unwrap();
    assert!(!seal(&mut wal), "the log does not rest");
    under_way.run().unwrap();
    assert!(seal(&mut wal));
    // It is no frame: the log goes on in its place, or in another segment.
    for first in [6, 10] {
        let (mut wal, replayed) = open(&fs, 4).unwrap();
        assert_eq!((replayed, wal.last_seq().0), (entries(5..=first - 1), first - 1));
        append(&mut wal, first..=first + 3).unwrap();
        wal.sync().unwrap();
        assert!(seal(&mut wal));
    }
    let (mut wal, _) = open(&fs, 4).unwrap();
    let large = Entry { seq: 14, kind: 1, meta: vec![], body: vec![8; 9001] };
    append_all(&mut wal, std::slice::from_ref(&large)).unwrap();
    assert!(files(&fs.current(), ".wal").len() > 1);
    assert_eq!(open(&fs, 4).unwrap().1, [entries(5..=13), vec![large]].concat());
}

#[test]
fn a_seal_goes_once_all_is_released() {
    let (fs, path, offsets) = sealed();
    for sealed_again in [false, true] {
        let (mut wal, _) = open(&fs, 0).unwrap();
        assert!(!seal(&mut wal), "it is proven by the seal that is there");
        if sealed_again {
            append(&mut wal, 10..=10).unwrap();
            wal.sync().unwrap();
            assert!(seal(&mut wal));
        }
        let copy = CrashFs::from_image(&fs.current());
        let last = wal.last_seq();
        let (mut wal, _) = open(&copy, 0).unwrap();
        wal.release(last).unwrap();
        assert!(seal(&mut wal) && !seal(&mut wal), "it is wiped, once");
        let end = if sealed_again { frames(&copy.current(), &path)[9].1.end(offsets[9]) } else { offsets[9] };
        assert_eq!(copy.current().get(&path).unwrap()[end..end + frame::HEADER_BYTES], [0; frame::HEADER_BYTES]);
        assert_eq!(open(&copy, last.0).unwrap().1, vec![]);
    }
}

#[test]
fn a_torn_tail_in_the_place_of_a_seal_opens() {
    let (fs, path, offsets) = sealed();
    let (mut wal, _) = open(&fs, 0).unwrap();
    append(&mut wal, 10..=12).unwrap();
    assert_eq!(frames(&fs.current(), &path)[9].0, offsets[9]);
    for image in fs.power_cut().images(3, 200) {
        let (wal, replayed) = open_image(&image, 0).unwrap();
        assert_eq!(replayed, entries(1..=wal.last_seq().0));
        assert!(replayed.len() >= 9);
    }
}

#[test]
fn a_seal_that_cannot_be_written_or_synced_fails_the_log() {
    for operation in [Operation::WriteAllAt, Operation::SyncData] {
        let fs = CrashFs::new();
        let faults = FaultFs::new(Arc::new(fs.clone()));
        let (mut wal, _) = open_at(Arc::new(faults.clone()), Path::new(DIR), 0).unwrap();
        append(&mut wal, 1..=3).unwrap();
        wal.sync().unwrap();
        faults.set(Fault::nth(1, std::io::ErrorKind::Other).of(operation));
        let sealed = wal.begin_seal().and_then(|sync| sync.unwrap().run());
        assert_eq!(sealed.unwrap_err().kind(), ErrorKind::Io);
        assert_eq!(append(&mut wal, 4..=4).unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(open(&fs, 0).unwrap().1[..3], entries(1..=3));
    }
}
