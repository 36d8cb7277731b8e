//! The log against file systems that lose power, fail and hold damaged bytes.

use std::{path::Path, sync::Arc};

use crate::{
    Result, SequenceNumber,
    vfs::{CrashFs, RealVfs, Vfs},
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

/// The frame that all tests write at `seq`: its bytes depend on the number, its length too.
fn entry(seq: u64) -> Entry {
    let byte = seq.to_le_bytes()[0];
    let len = usize::try_from(seq * 37 % 300).unwrap();
    Entry { seq, kind: byte % 5, meta: vec![byte; len % 23], body: vec![byte ^ 0x5A; len] }
}

fn append(wal: &mut Wal, seqs: std::ops::RangeInclusive<u64>) -> Result<()> {
    let entries: Vec<_> = seqs.map(entry).collect();
    append_entries(wal, &entries)
}

fn append_entries(wal: &mut Wal, entries: &[Entry]) -> Result<()> {
    wal.append(&entries.iter().map(Entry::frame).collect::<Vec<_>>())
}

fn open_at(vfs: Arc<dyn Vfs>, dir: &Path, replay_after: u64) -> Result<(Wal, Vec<Entry>)> {
    let mut entries = Vec::new();
    let options = WalOptions { segment_bytes: SEGMENT_BYTES };
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

fn entries(seqs: std::ops::RangeInclusive<u64>) -> Vec<Entry> {
    seqs.map(entry).collect()
}

#[test]
fn frames_come_back_in_order_and_the_log_goes_on_after_them() {
    let folder = tempfile::tempdir().unwrap();
    let crash: (Arc<dyn Vfs>, &Path) = (Arc::new(CrashFs::new()), Path::new(DIR));
    let real: (Arc<dyn Vfs>, &Path) = (Arc::new(RealVfs), &folder.path().join("a/wal"));
    for (vfs, dir) in [crash, real] {
        let mut last = 0;
        for round in 1..10_u64 {
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
