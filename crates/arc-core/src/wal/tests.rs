//! The log against file systems that lose power, fail and hold damaged bytes.

mod damage;
mod fault;
mod power_cut;
mod seal;

use std::{
    ops::RangeInclusive,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{
    Error, Result, SequenceNumber,
    random::RandomSource,
    vfs::{CrashFs, Image, RealVfs, Vfs},
};

use super::*;

const SEGMENT_BYTES: u64 = 4096;
const DIR: &str = "/wal";

/// A replayed frame, as plain values.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    seq: u64,
    kind: u8,
    meta: Vec<u8>,
    body: Vec<u8>,
}

impl Entry {
    fn frame(&self) -> Frame<'_> {
        let Self { seq, kind, meta, body } = self;
        Frame { seq: SequenceNumber(*seq), kind: *kind, meta, body, body_crc: body_checksum(body) }
    }
}

/// The frame that tests write at `seq` in the given life of the log: its length depends on the
/// number only, so that the frames of two lives lie at the same places.
fn entry_of(life: u8, seq: u64) -> Entry {
    let byte = seq.to_le_bytes()[0] ^ life;
    let len = usize::try_from(seq * 37 % 300).unwrap();
    Entry { seq, kind: life, meta: vec![byte; len % 23], body: vec![byte ^ 0x5A; len] }
}

fn entries_of(life: u8, seqs: RangeInclusive<u64>) -> Vec<Entry> {
    seqs.map(|seq| entry_of(life, seq)).collect()
}

fn entries(seqs: RangeInclusive<u64>) -> Vec<Entry> {
    entries_of(0, seqs)
}

fn append_all(wal: &mut Wal, entries: &[Entry]) -> Result<()> {
    wal.append(&entries.iter().map(Entry::frame).collect::<Vec<_>>())
}

fn append(wal: &mut Wal, seqs: RangeInclusive<u64>) -> Result<()> {
    append_all(wal, &entries(seqs))
}

/// The random numbers begin anew at each open, as bad as a source can be.
fn options() -> WalOptions {
    WalOptions { segment_bytes: SEGMENT_BYTES, random: Arc::new(Same), kept: KeptLog::default() }
}

#[derive(Debug)]
struct Same;

impl RandomSource for Same {
    fn next(&self) -> u64 {
        7
    }
}

fn open_at(vfs: Arc<dyn Vfs>, dir: &Path, replay_after: u64) -> Result<(Wal, Vec<Entry>)> {
    let mut entries = Vec::new();
    let options = options();
    let wal = Wal::open(vfs, dir, options, SequenceNumber(replay_after), &mut |frame| {
        let ReplayedFrame { seq, kind, meta, body } = frame;
        entries.push(Entry { seq: seq.0, kind, meta: meta.to_vec(), body: body.to_vec() });
        Ok(())
    })?;
    Ok((wal, entries))
}

fn open(fs: &CrashFs, replay_after: u64) -> Result<(Wal, Vec<Entry>)> {
    open_at(Arc::new(fs.clone()), Path::new(DIR), replay_after)
}

fn open_image(image: &Image, replay_after: u64) -> Result<(Wal, Vec<Entry>)> {
    open(&CrashFs::from_image(image), replay_after)
}

/// The log's files whose names end in `suffix`, sorted.
fn files(image: &Image, suffix: &str) -> Vec<PathBuf> {
    let named = |path: &&Path| path.display().to_string().ends_with(suffix);
    image.files().filter(named).map(Path::to_owned).collect()
}

/// All files but the log's spares, which a thread of an open engine makes and renames at any moment.
pub(crate) fn files_but_spares(fs: &CrashFs) -> Vec<PathBuf> {
    let is_spare = |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("spare"));
    fs.current().files().filter(|path| !is_spare(path)).map(Path::to_owned).collect()
}

/// The offsets of the frames in a segment, and their headers.
fn frames(image: &Image, path: &Path) -> Vec<(usize, frame::Header)> {
    frame::headers(image.get(path).unwrap(), 0, segment::name(path)).collect()
}

#[test]
fn frames_come_back_in_order_and_the_log_goes_on_after_them() {
    let folder = tempfile::tempdir().unwrap();
    let crash: (Arc<dyn Vfs>, &Path) = (Arc::new(CrashFs::new()), Path::new(DIR));
    let real: (Arc<dyn Vfs>, &Path) = (Arc::new(RealVfs), &folder.path().join("a/wal"));
    for (vfs, dir) in [crash, real] {
        let mut last = 0;
        for round in 1..20_u64 {
            let (mut wal, replayed) = open_at(Arc::clone(&vfs), dir, 0).unwrap();
            assert_eq!(replayed, entries(1..=last));
            assert_eq!((wal.last_seq().0, wal.durable_seq().0), (last, last));
            append(&mut wal, last + 1..=last + round).unwrap();
            assert_eq!((wal.last_seq().0, wal.durable_seq().0), (last + round, last));
            wal.sync().unwrap();
            append(&mut wal, last + round + 1..=last + 2 * round).unwrap();
            assert_eq!((wal.last_seq().0, wal.durable_seq().0), (last + 2 * round, last + round));
            last += 2 * round;
        }
    }
}

#[test]
fn replay_begins_after_what_is_durable_elsewhere() {
    let fs = CrashFs::new();
    let (mut wal, _) = open(&fs, 0).unwrap();
    (0..30).for_each(|group| append(&mut wal, group * 5 + 1..=group * 5 + 5).unwrap());
    for after in 0..=160 {
        let copy = CrashFs::from_image(&fs.current());
        let (wal, replayed) = open(&copy, after).unwrap();
        let oldest = files(&copy.current(), ".wal").into_iter().nth(1).map(|path| frames(&copy.current(), &path)[0].1);
        assert!(oldest.is_none_or(|header| header.seq.0 > after + 1), "segments that nobody needs are released");
        assert_eq!(replayed, entries(after + 1..=150));
        assert_eq!(wal.last_seq().0, after.max(150));
    }
}

#[test]
fn the_log_goes_on_after_frames_that_it_lost_but_nobody_needs() {
    let fs = CrashFs::new();
    let (mut wal, _) = open(&fs, 0).unwrap();
    append(&mut wal, 1..=5).unwrap();
    let (mut wal, replayed) = open(&fs, 9).unwrap();
    assert_eq!((replayed, wal.last_seq().0), (vec![], 9));
    append(&mut wal, 10..=12).unwrap();
    let paths = files(&fs.current(), ".wal");
    assert!(paths.last().unwrap().display().to_string().starts_with("/wal/00000000000000000010-"));
    assert_eq!(open(&fs, 9).unwrap().1, entries(10..=12));
}

#[test]
fn a_log_that_has_had_a_frame_is_never_without_a_segment() {
    let fs = CrashFs::new();
    let (mut wal, _) = open(&fs, 0).unwrap();
    assert!(!wal.has_segments());
    (1..=100).for_each(|seq| append(&mut wal, seq..=seq).unwrap());
    // All of it is durable elsewhere, and it ends before what is.
    for after in [100, 200, 201] {
        let (wal, replayed) = open(&fs, after).unwrap();
        assert_eq!((replayed, wal.last_seq().0), (vec![], after));
        assert!(wal.has_segments());
        assert_eq!(files(&fs.current(), ".wal").len(), 1, "after {after}");
    }
    let (mut wal, _) = open(&fs, 201).unwrap();
    append(&mut wal, 202..=210).unwrap();
    wal.release(SequenceNumber(210)).unwrap();
    assert_eq!(files(&fs.current(), ".wal").len(), 1);
    assert_eq!(open(&fs, 201).unwrap().1, entries(202..=210));
}

#[test]
fn a_group_is_one_write_and_goes_to_one_segment() {
    let fs = CrashFs::new();
    let (mut wal, _) = open(&fs, 0).unwrap();
    append(&mut wal, 1..=1).unwrap();
    wal.spare_maker().make().unwrap();
    for group in 0..10 {
        let before = fs.operations();
        let (first, segments) = (2 + group * 8, files(&fs.current(), ".wal").len());
        append(&mut wal, first..=first + 7).unwrap();
        if files(&fs.current(), ".wal").len() == segments {
            assert_eq!(fs.operations() - before, 1);
        } else {
            // The spare's rename and the sync of the folder come before the write.
            assert_eq!(fs.operations() - before, 3);
            wal.spare_maker().make().unwrap();
        }
    }
    let image = fs.current();
    let firsts: Vec<_> = files(&image, ".wal").iter().map(|path| frames(&image, path)[0].1.seq.0).collect();
    assert!(firsts.len() > 2 && firsts.iter().skip(1).all(|first| (first - 2) % 8 == 0), "{firsts:?}");
}

#[test]
fn a_group_larger_than_a_segment_and_a_frame_larger_than_one_are_stored() {
    let fs = CrashFs::new();
    let (mut wal, _) = open(&fs, 0).unwrap();
    append(&mut wal, 1..=100).unwrap();
    let large = |seq| Entry { seq, kind: 1, meta: vec![7; 5000], body: vec![8; 9001] };
    append_all(&mut wal, &[entry_of(0, 101), large(102), large(103), entry_of(0, 104)]).unwrap();
    wal.sync().unwrap();
    let mut expected = entries(1..=104);
    (expected[101], expected[102]) = (large(102), large(103));
    let image = fs.power_cut().images(1, 1).next().unwrap();
    let (mut wal, replayed) = open_image(&image, 0).unwrap();
    assert_eq!(replayed, expected);
    wal.release(SequenceNumber(103)).unwrap();
    append(&mut wal, 105..=105).unwrap();
}

#[test]
fn a_segment_without_room_for_its_first_frame_is_left_empty() {
    for empty_is_listed_first in [false, true] {
        let fs = CrashFs::new();
        let (mut wal, _) = open(&fs, 0).unwrap();
        append(&mut wal, 1..=1).unwrap();
        let mut image = fs.current();
        let path = files(&image, ".wal").remove(0);
        image.remove(&path);
        // The salt decides which of the two segments with one first frame is listed first.
        let salt = if empty_is_listed_first { 0 } else { u64::MAX };
        let empty = segment::SegmentName { first_seq: SequenceNumber(1), salt };
        image.set(&empty.path(Path::new(DIR)), vec![0; 4096]);
        let fs = CrashFs::from_image(&image);
        let (mut wal, _) = open(&fs, 0).unwrap();
        let large = Entry { seq: 1, kind: 1, meta: vec![], body: vec![8; 9001] };
        append_all(&mut wal, std::slice::from_ref(&large)).unwrap();
        append(&mut wal, 2..=30).unwrap();
        for after in 0..=3 {
            let expected = [vec![large.clone()], entries(2..=30)].concat();
            let (wal, replayed) = open_image(&fs.current(), after).unwrap();
            assert_eq!((replayed.as_slice(), wal.last_seq().0), (&expected[usize::try_from(after).unwrap()..], 30));
        }
        wal.release(SequenceNumber(1)).unwrap();
        assert_eq!(open(&fs, 1).unwrap().1, entries(2..=30));
    }
}

#[test]
fn released_segments_are_used_again_and_their_old_frames_never_come_back() {
    let fs = CrashFs::new();
    let (mut wal, _) = open(&fs, 0).unwrap();
    // Frames of one size: those of a segment's earlier life lie exactly where the new ones are
    // expected.
    let same = |seq| Entry { seq, kind: 3, meta: vec![1; 8], body: vec![2; 144] };
    for seq in 1..=500_u64 {
        append_all(&mut wal, &[same(seq)]).unwrap();
        wal.sync().unwrap();
        let keep = seq.saturating_sub(40);
        wal.release(SequenceNumber(keep)).unwrap();
        if seq % 7 == 0 {
            let replayed;
            (wal, replayed) = open(&fs, keep).unwrap();
            assert_eq!(replayed, (keep + 1..=seq).map(same).collect::<Vec<_>>());
        }
        assert!(wal.live_bytes() <= 48 * 192 + (64 << 10));
    }
    let image = fs.current();
    assert!(files(&image, "").len() <= 4, "{:?}", files(&image, ""));
    let active = files(&image, ".wal").pop().unwrap();
    let bytes = image.get(&active).unwrap();
    let in_active = frames(&image, &active).len() * 192;
    assert!(bytes[in_active..].iter().any(|byte| *byte != 0), "the active segment had an earlier life");
}

#[test]
fn frames_are_released_by_whole_segments_and_never_the_active_one() {
    let fs = CrashFs::new();
    let (mut wal, _) = open(&fs, 0).unwrap();
    (1..=100).for_each(|seq| append(&mut wal, seq..=seq).unwrap());
    let image = fs.current();
    let firsts: Vec<_> = files(&image, ".wal").iter().map(|path| frames(&image, path)[0].1.seq.0).collect();
    for through in 0..=100 {
        wal.release(SequenceNumber(through)).unwrap();
        let left = firsts.len() - firsts.iter().skip(1).filter(|first| **first <= through + 1).count();
        assert_eq!(files(&fs.current(), ".wal").len(), left, "through {through}");
    }
    assert_eq!(wal.live_bytes(), 0);
    assert_eq!(files(&fs.current(), "/spare").len(), 1);
    append(&mut wal, 101..=101).unwrap();
    assert_eq!(open(&fs, 100).unwrap().1, entries(101..=101));
}

#[test]
fn the_spare_is_made_ahead_by_another_thread() {
    let fs = CrashFs::new();
    let (mut wal, _) = open(&fs, 0).unwrap();
    assert!(wal.spare_needed());
    let maker = wal.spare_maker();
    std::thread::spawn(move || maker.make()).join().unwrap().unwrap();
    assert!(!wal.spare_needed());
    // Whole or not there, in every case: that it is synced is what makes the syncs of the log
    // cheap.
    let made = |image: Image| image.get(Path::new("/wal/spare")).map(<[u8]>::to_vec);
    assert_eq!(made(fs.current()), Some(vec![0; 4096]));
    assert!(fs.power_cut().images(1, 50).filter_map(made).all(|spare| spare == [0; 4096]));
    append(&mut wal, 1..=1).unwrap();
    assert!(wal.spare_needed());
    wal.spare_maker().make().unwrap();
    wal.spare_maker().make().unwrap();
    let (wal, _) = open(&fs, 0).unwrap();
    assert!(!wal.spare_needed(), "it is found again");
}

#[test]
fn a_spare_of_another_size_and_leftovers_are_removed_and_strangers_left_alone() {
    let mut image = Image::default();
    for name in ["spare", "spare.tmp", "spare.large", "note.txt", "1-2.wal"] {
        image.set(&Path::new(DIR).join(name), vec![1; 100]);
    }
    let fs = CrashFs::from_image(&image);
    let (mut wal, _) = open(&fs, 0).unwrap();
    assert_eq!(files(&fs.current(), ""), [Path::new("/wal/1-2.wal"), Path::new("/wal/note.txt")]);
    append(&mut wal, 1..=100).unwrap();
    assert_eq!(open(&fs, 0).unwrap().1, entries(1..=100));
}

#[test]
fn frames_out_of_sequence_are_refused_and_nothing_is_written() {
    let fs = CrashFs::new();
    let (mut wal, _) = open(&fs, 0).unwrap();
    append(&mut wal, 1..=3).unwrap();
    for seqs in [5..=6, 3..=4, 0..=0] {
        assert!(matches!(append(&mut wal, seqs), Err(Error::Internal { .. })));
    }
    let gap = [entry_of(0, 4), entry_of(0, 6)];
    assert!(matches!(append_all(&mut wal, &gap), Err(Error::Internal { .. })));
    append(&mut wal, 4..=4).unwrap();
    assert_eq!(open(&fs, 0).unwrap().1, entries(1..=4));
}

#[test]
fn the_visitors_error_ends_the_open() {
    let fs = CrashFs::new();
    append(&mut open(&fs, 0).unwrap().0, 1..=3).unwrap();
    let options = options();
    let vfs = Arc::new(fs.clone());
    let refuse = &mut |_: ReplayedFrame<'_>| Err(Error::internal("no"));
    let opened = Wal::open(vfs, Path::new(DIR), options, SequenceNumber(0), refuse);
    assert!(matches!(opened, Err(Error::Internal { .. })));
    assert_eq!(open(&fs, 0).unwrap().1, entries(1..=3));
}
