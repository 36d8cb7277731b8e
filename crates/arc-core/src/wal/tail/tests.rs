use std::{path::Path, sync::Arc};

use super::*;
use crate::{
    random::SystemRandom,
    vfs::CrashFs,
    wal::{Frame, KeptLog, Wal, WalOptions, body_checksum},
};

const DIR: &str = "/wal";
const SEGMENT_BYTES: u64 = 64 << 10;

fn log(fs: &CrashFs, replay_after: u64) -> Wal {
    let options = WalOptions {
        segment_bytes: SEGMENT_BYTES,
        random: Arc::new(SystemRandom::default()),
        kept: KeptLog::default(),
    };
    Wal::open(Arc::new(fs.clone()), Path::new(DIR), options, SequenceNumber(replay_after), &mut |_| Ok(())).unwrap()
}

/// Appends frames whose bodies are as long as said, each a group of its own.
fn append(wal: &mut Wal, lengths: impl IntoIterator<Item = usize>) {
    for len in lengths {
        let seq = wal.last_seq().next();
        let body = vec![u8::try_from(seq.0 % 251).unwrap(); len];
        let frame = Frame { seq, kind: 7, meta: b"meta", body: &body, body_crc: body_checksum(&body) };
        wal.append(&[frame]).unwrap();
    }
}

fn tail(after: u64) -> LogTail {
    LogTail::new(DIR.into(), SequenceNumber(after))
}

/// Reads on; returns the numbers that came, and how it ended.
fn read(tail: &mut LogTail, fs: &CrashFs, last: u64) -> (Vec<u64>, TailEnd) {
    let mut seen = Vec::new();
    let mut visit = |frame: ReplayedFrame<'_>| {
        assert_eq!((frame.kind, frame.meta), (7, b"meta".as_slice()));
        let expected = u8::try_from(frame.seq.0 % 251).unwrap();
        assert!(frame.body.iter().all(|byte| *byte == expected), "frame {}", frame.seq);
        seen.push(frame.seq.0);
        Ok(())
    };
    let end = tail.read_through(fs, SequenceNumber(last), &mut visit).unwrap();
    (seen, end)
}

#[test]
fn it_reads_on_where_it_ended_over_segments_and_large_frames_and_no_further_than_it_may() {
    let fs = CrashFs::new();
    let mut wal = log(&fs, 0);
    let mut follower = tail(0);
    append(&mut wal, [10, 0, 3_000]);
    assert_eq!(read(&mut follower, &fs, 2), (vec![1, 2], TailEnd::Reached));
    assert_eq!(read(&mut follower, &fs, 2), (vec![], TailEnd::Reached));
    assert_eq!(read(&mut follower, &fs, 3), (vec![3], TailEnd::Reached));
    // Zeros that were read with the frame before are frames by now; so are two further segments.
    append(&mut wal, [100, 60_000, 60_000, 200_000, 5]);
    assert_eq!(read(&mut follower, &fs, 8), (vec![4, 5, 6, 7, 8], TailEnd::Reached));
    assert_eq!(read(&mut tail(5), &fs, 8).0, [6, 7, 8], "and from anywhere");
    assert_eq!(read(&mut tail(3), &fs, 4).0, [4]);
    let mut back = tail(7);
    assert_eq!(read(&mut back, &fs, 8).0, [8]);
    back.restart(SequenceNumber(1));
    assert_eq!(read(&mut back, &fs, 8).0, [2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn what_was_released_or_never_was_is_missing_and_not_something_else() {
    let fs = CrashFs::new();
    let mut wal = log(&fs, 0);
    append(&mut wal, [100; 3]);
    let mut follower = tail(0);
    assert_eq!(read(&mut follower, &fs, 5), (vec![1, 2, 3], TailEnd::Missing));
    append(&mut wal, [100]);
    let mut slow = tail(0);
    assert_eq!(read(&mut slow, &fs, 1).0, [1]);
    // Its segment becomes another one, in which other frames are where those were.
    for _ in 0..20 {
        append(&mut wal, [100; 600]);
        let last = wal.last_seq();
        wal.release(last).unwrap();
    }
    let last = wal.last_seq().0;
    assert_eq!(read(&mut slow, &fs, last), (vec![], TailEnd::Missing));
    assert_eq!(read(&mut tail(last - 1), &fs, last).0, [last], "the last segment stays");
}

#[test]
fn damage_ends_it() {
    for offset in [8, 45, 60] {
        let fs = CrashFs::new();
        let mut wal = log(&fs, 0);
        append(&mut wal, [100; 3]);
        let name = fs.list(Path::new(DIR)).unwrap().into_iter().find(|entry| entry.name.ends_with(".wal")).unwrap();
        let file = fs.open(&Path::new(DIR).join(name.name)).unwrap();
        // The second frame begins after 40 bytes of header, 4 of meta and 100 of body.
        file.write_all_at(&[&[0xAA]], 144 + offset).unwrap();
        assert_eq!(read(&mut tail(0), &fs, 3), (vec![1], TailEnd::Missing), "byte {offset} of frame 2");
    }
}

#[test]
fn frames_and_seals_prove_what_was_synced() {
    let fs = CrashFs::new();
    let mut wal = log(&fs, 0);
    let proven = |follower: &LogTail| follower.proven(&fs).unwrap().0;
    let mut follower = tail(0);
    assert_eq!(proven(&follower), 0, "there is no log");
    append(&mut wal, [10; 3]);
    wal.sync().unwrap();
    assert_eq!(proven(&follower), 0, "nothing says so yet");
    append(&mut wal, [60_000, 60_000]);
    assert_eq!(proven(&follower), 3, "the next frame does");
    assert_eq!(read(&mut follower, &fs, 3).0, [1, 2, 3]);
    assert!(!follower.proves_more_than(SequenceNumber(3)).unwrap());
    wal.sync().unwrap();
    wal.begin_seal().unwrap().unwrap().run().unwrap();
    assert_eq!(proven(&follower), 5, "and a seal, in another segment");
    assert_eq!(read(&mut follower, &fs, 5).0, [4, 5]);
    assert_eq!(proven(&follower), 5, "from after the last frame, too");
    assert!(follower.proves_more_than(SequenceNumber(4)).unwrap());
    append(&mut wal, [10]);
    assert_eq!(read(&mut follower, &fs, 6).0, [6], "in the place of the seal");
}
