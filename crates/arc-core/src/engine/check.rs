//! Decodes the frames of a log as replay does, and keeps nothing of their rows: for those who check a log.

use std::sync::Arc;

use super::open::{decode_frame, registry_of};
use crate::{catalog::ManifestState, registry::Registry, wal::ReplayedFrame};

/// The schemas that the frames of a log meet, from those of a manifest on.
#[derive(Debug)]
pub(crate) struct FrameChecker {
    registry: Arc<Registry>,
}

impl FrameChecker {
    /// Begins where a manifest ends.
    pub(crate) fn new(manifest: &ManifestState) -> Self {
        Self { registry: Arc::new(registry_of(manifest)) }
    }

    /// Decodes the next frame and returns the number of its points.
    ///
    /// # Errors
    ///
    /// Why opening would refuse it.
    pub(crate) fn check(&mut self, frame: &ReplayedFrame<'_>) -> Result<u64, String> {
        let decoded = decode_frame(&self.registry, frame)?;
        Ok(decoded.map_or(0, |(_, staged)| staged.points() as u64))
    }
}
