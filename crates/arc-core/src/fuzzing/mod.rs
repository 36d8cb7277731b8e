//! What the fuzz targets in `fuzz/` call, and the tests on changed inputs beside them: any bytes,
//! and no panic.
//!
//! Owns no rule of its own: where bytes are taken for good they are written again, and have to come
//! to the same. Not part of the crate for any other caller.

#[cfg(test)]
mod changed;
#[cfg(test)]
mod tests;

use std::{path::Path, sync::Arc};

use bytes::Bytes;

use crate::{
    SequenceNumber,
    catalog::{Manifest, ManifestState},
    engine::FrameChecker,
    random::SystemRandom,
    vfs::{CrashFs, Vfs},
    wal::{self, ReplayedFrame, Wal, WalOptions},
};

pub use crate::engine::fuzzing::{arrow_stream, logged_rows, message_pack};

const LOG: &str = "/data/wal";
/// A segment that begins with frame 1, under the salt 0.
const SEGMENT: &str = "/data/wal/00000000000000000001-0000000000000000.wal";
const MANIFEST: &str = "/data/meta/0";
const MANIFEST_HEADER_BYTES: usize = 48;

fn put(fs: &CrashFs, path: &Path, bytes: &[u8]) {
    let folder = path.parent().unwrap_or(path);
    let put = fs.create_dir_all(folder).and_then(|()| fs.create_new(path)?.write_all_at(&[bytes], 0));
    assert!(put.is_ok(), "a file in memory cannot be written: {put:?}");
}

/// A segment of the log, as it is and with checksums that are right: what opens is looked through
/// and opened again as the same.
pub fn log_segment(bytes: &[u8]) {
    let mut right = bytes.to_vec();
    let mut at = 0;
    while let Some(end) = with_right_checksums(&mut right, at) {
        at = end.next_multiple_of(8);
    }
    for bytes in [bytes, &right] {
        let fs = CrashFs::new();
        put(&fs, Path::new(SEGMENT), bytes);
        let _ = wal::survey(&fs, Path::new(LOG), SequenceNumber(0), SequenceNumber(0), &mut |_, _| Ok(()));
        if let Some(frames) = opened(&fs) {
            assert_eq!(opened(&fs), Some(frames), "the log opens otherwise the second time");
        }
    }
}

/// Makes the checksums of a frame right, if it is whole but for them; returns where it ends.
fn with_right_checksums(segment: &mut [u8], at: usize) -> Option<usize> {
    let word = |segment: &[u8], at: usize| Some(u32::from_le_bytes(*segment.get(at..)?.first_chunk()?) as usize);
    let meta = at + 40;
    let body = meta.checked_add(word(segment, at + 12)?)?;
    let end = body.checked_add(word(segment, at + 16)?)?;
    let crcs = [crc32c::crc32c(segment.get(meta..body)?), crc32c::crc32c(segment.get(body..end)?)];
    for (n, crc) in crcs.into_iter().enumerate() {
        segment.get_mut(at + 4 + 4 * n..at + 8 + 4 * n)?.copy_from_slice(&crc.to_le_bytes());
    }
    let header = crc32c::crc32c_append(crc32c::crc32c(&[0; 8]), segment.get(at + 4..meta)?);
    segment.get_mut(at..at + 4)?.copy_from_slice(&header.to_le_bytes());
    Some(end)
}

/// Opens the log as an engine does; returns the points of each frame.
fn opened(fs: &CrashFs) -> Option<Vec<(SequenceNumber, Result<u64, String>)>> {
    let mut checker = FrameChecker::new(&ManifestState::default());
    let mut frames = Vec::new();
    let options =
        WalOptions { segment_bytes: 64 << 10, random: Arc::new(SystemRandom::default()), kept: Default::default() };
    let mut visit = |frame: ReplayedFrame<'_>| {
        checker.note(&frame);
        frames.push((frame.seq, checker.check(&frame)));
        Ok(())
    };
    let wal = Wal::open(Arc::new(fs.clone()), Path::new(LOG), options, SequenceNumber(0), &mut visit);
    wal.is_ok().then_some(frames)
}

/// An object of the manifest, as it is and under a header that is right: what opens is opened again
/// as the same.
pub fn manifest_object(bytes: &[u8]) {
    let is_snapshot = bytes.get(12) == Some(&2);
    let (number, suffix) = if is_snapshot { (7_u64, ".snapshot") } else { (1, "") };
    let path = format!("{MANIFEST}/{number:020}{suffix}");
    for bytes in [Bytes::copy_from_slice(bytes), under_right_header(bytes, number)] {
        let fs = CrashFs::new();
        put(&fs, Path::new(&path), &bytes);
        let open = || Manifest::open(Arc::new(fs.clone()), Path::new(MANIFEST));
        if let Ok(manifest) = open() {
            let again = open();
            assert!(again.is_ok_and(|again| again.state() == manifest.state()), "the manifest opens otherwise");
        }
    }
}

fn under_right_header(bytes: &[u8], number: u64) -> Bytes {
    let payload = bytes.get(MANIFEST_HEADER_BYTES..).unwrap_or_default();
    let kind_and_version = bytes.get(8..16).unwrap_or_default();
    let mut object = b"ARCMNFST".to_vec();
    object.extend_from_slice(kind_and_version);
    object.resize(16, 0);
    object.extend_from_slice(&number.to_le_bytes());
    object.extend_from_slice(&[0; 4]);
    object.extend_from_slice(&crc32c::crc32c(payload).to_le_bytes());
    object.extend_from_slice(&(payload.len() as u64).to_le_bytes());
    object.extend_from_slice(&[0; 4]);
    object.extend_from_slice(&crc32c::crc32c(&object).to_le_bytes());
    object.extend_from_slice(payload);
    object.into()
}

/// A statement of SQL, at the doors of questions and of changes.
#[cfg(feature = "query")]
pub fn statement(bytes: &[u8]) {
    if let Ok(sql) = std::str::from_utf8(bytes) {
        crate::query::parse_at_all_doors(sql);
    }
}
