//! The log of the process that writes to a store, as a process on another machine reads it.
//!
//! Owns what such a process is asked, as a trait: how the question travels is for those who implement
//! it, for this crate opens no socket. [`LogMount`](super::log_mount) makes a folder of it. An
//! [`Engine`](crate::Engine) answers it for its own log.

use std::{fmt::Debug, time::Duration};

use bytes::Bytes;

use crate::{Result, SequenceNumber};

/// What the process that writes says of its log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogState {
    /// The name of its data directory, as the manifest has it of the process that may commit.
    pub directory: String,
    /// The number of the commit with which it was opened: another one each time. What was known of
    /// the log before another opening is not relied on, for a loss of power may have cut it.
    pub opening: u64,
    /// The last frame that is acknowledged, or about to be.
    pub acknowledged: SequenceNumber,
    /// The number of its newest commit.
    pub committed: u64,
}

/// One segment of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSegment {
    /// Its file's name.
    pub name: String,
    /// Its size in bytes, as it was made; frames may end before.
    pub bytes: u64,
}

/// How a process that only reads asks the one that writes, its *owner*, for what is in no data file yet.
///
/// Calls block, and end with [`Error::OwnerUnreachable`](crate::Error::OwnerUnreachable) after a time
/// that the implementation sets. They come from many threads.
pub trait OwnerLog: Debug + Send + Sync + 'static {
    /// Asks what is acknowledged now: by the process that has the data directory named `directory`,
    /// which the manifest says is the owner, or by whichever writes where that is not known.
    ///
    /// # Errors
    ///
    /// [`Error::OwnerUnreachable`](crate::Error::OwnerUnreachable).
    fn state(&self, directory: Option<&str>) -> Result<LogState>;

    /// Lists the segments of the opening that answered [`Self::state`] last, in any order.
    ///
    /// # Errors
    ///
    /// [`Error::OwnerUnreachable`](crate::Error::OwnerUnreachable).
    fn segments(&self) -> Result<Vec<LogSegment>>;

    /// Reads up to `len` bytes of a segment from `offset` on; fewer where it ends, and `None` if it is
    /// not there any more.
    ///
    /// # Errors
    ///
    /// [`Error::OwnerUnreachable`](crate::Error::OwnerUnreachable).
    fn read(&self, segment: &str, offset: u64, len: usize) -> Result<Option<Bytes>>;

    /// Has the files of commit `commit`, and of later ones, stay for `time` from now on; `reader` tells
    /// apart those who ask.
    ///
    /// # Errors
    ///
    /// [`Error::OwnerUnreachable`](crate::Error::OwnerUnreachable).
    fn hold(&self, reader: u64, commit: u64, time: Duration) -> Result<()>;

    /// Gives up what `reader` has had held. It ends by itself where this does not get through.
    fn release(&self, reader: u64);
}
