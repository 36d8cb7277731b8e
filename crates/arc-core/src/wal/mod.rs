//! Write-ahead log: keeps accepted changes as checked frames in segment files until their owner
//! releases them.
//!
//! Owns the files of one folder and their format (docs/format.md, "WAL"). Never looks inside a
//! frame's meta or body, never reads the clock, never decides when to sync, and never gives up a
//! frame before [`Wal::release`] names it. Written by the engine's commit threads, read back once,
//! in [`Wal::open`].
//!
//! What a crash may take is what no [`PendingSync`] has said to be durable; what it may not take is
//! the rest. A frame that fails its check is a torn tail if nothing proves it had been synced: it
//! and everything after it is wiped, and the log goes on in its place. If a later frame proves that
//! it had been synced, the log is damaged: opening fails and changes nothing.

mod acknowledged;
mod frame;
#[cfg(any(test, feature = "object-store"))]
mod group;
mod live;
mod reader;
mod rebuild;
mod repair;
mod segment;
#[cfg(feature = "object-store")]
mod served;
mod spare;
mod survey;
mod sync;
mod tail;
#[cfg(test)]
pub(crate) mod tests;
mod writer;

use std::{path::PathBuf, sync::Arc};

use bytes::Bytes;

use crate::{SequenceNumber, random::RandomSource};

pub(crate) use acknowledged::{ACKNOWLEDGED_FILE, Acknowledged, LogIdentity, acknowledged};
pub(crate) use frame::MAX_PART_BYTES;
#[cfg(feature = "object-store")]
pub(crate) use group::{push_frame, read_frames};
pub(crate) use rebuild::{Rebuild, segments};
#[cfg(feature = "object-store")]
pub(crate) use served::{read_segment, segment_files};
pub(crate) use spare::SpareMaker;
pub(crate) use survey::{FrameLocation, Survey, survey};
#[cfg(test)]
pub(crate) use survey::{forge_body, frame_locations};
pub(crate) use sync::PendingSync;
pub(crate) use tail::{LogTail, TailEnd};
pub(crate) use writer::{KeptLog, Wal};

/// Settings of a [`Wal`].
#[derive(Debug, Clone)]
pub(crate) struct WalOptions {
    /// Size of a segment. A frame that does not fit gets a segment of its own size.
    pub(crate) segment_bytes: u64,
    /// Where the salts of segments come from.
    pub(crate) random: Arc<dyn RandomSource>,
    /// Which segments stay after their release.
    pub(crate) kept: KeptLog,
}

/// The beginning of a segment file that has all of its frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogPart {
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
}

/// Returns the checksum of a frame's body. The caller computes it, so that this happens in parallel
/// and outside the log's thread.
pub(crate) fn body_checksum(body: &[u8]) -> u32 {
    crc32c::crc32c(body)
}

/// One entry to append.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame<'a> {
    pub(crate) seq: SequenceNumber,
    /// What the meta and body are; the log does not care.
    pub(crate) kind: u8,
    pub(crate) meta: &'a [u8],
    pub(crate) body: &'a [u8],
    /// [`body_checksum`] of `body`.
    pub(crate) body_crc: u32,
}

/// One entry as it was read back; all of it passed its checks.
#[derive(Debug)]
pub(crate) struct ReplayedFrame<'a> {
    pub(crate) seq: SequenceNumber,
    pub(crate) kind: u8,
    pub(crate) meta: &'a [u8],
    /// Shares the memory of its whole segment: keeping one body keeps the segment.
    pub(crate) body: Bytes,
}
