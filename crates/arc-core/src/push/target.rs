//! Where rows are handed to: another engine in this process, or whatever reaches one elsewhere.

use bytes::Bytes;

use super::{AdoptOutcome, Upload};
use crate::{CutName, Engine, Result};

/// What carries files and questions to the data directory that adopts them.
///
/// Every call may be made again, in any number: none of them does anything twice. An error ends the
/// push, and the next one goes on where it was.
#[allow(clippy::missing_errors_doc, reason = "every call fails where the other directory cannot be asked, or refuses")]
pub trait PushTarget {
    /// Returns up to which cut the rows of a directory are there; see [`Engine::adopted_cut`].
    fn adopted(&self, origin: &str) -> Result<Option<CutName>>;
    /// Returns how many bytes of a file are there; see [`Engine::received`].
    fn received(&self, upload: &Upload) -> Result<u64>;
    /// Sends bytes of a file, and returns how many are there then; see [`Engine::receive`].
    fn send(&self, upload: &Upload, offset: u64, bytes: &Bytes) -> Result<u64>;
    /// Has the files of a cut adopted; see [`Engine::adopt`].
    fn adopt(&self, adoption: &Bytes) -> Result<AdoptOutcome>;
}

impl PushTarget for Engine {
    fn adopted(&self, origin: &str) -> Result<Option<CutName>> {
        self.adopted_cut(origin)
    }

    fn received(&self, upload: &Upload) -> Result<u64> {
        Self::received(self, upload)
    }

    fn send(&self, upload: &Upload, offset: u64, bytes: &Bytes) -> Result<u64> {
        self.receive(upload, offset, bytes)
    }

    fn adopt(&self, adoption: &Bytes) -> Result<AdoptOutcome> {
        Self::adopt(self, adoption, &|_, _| true)
    }
}
