//! Decodes the frames of a log as replay does, and keeps nothing of their rows: for those who check or mend a log.

use std::sync::Arc;

use bytes::Bytes;

use super::{
    frame::{self, DatabaseMeta, FrameKind, WriteMeta, encode},
    open::{decode_frame, registry_of},
    write::{Request, decode_logged},
};
use crate::{
    catalog::{ManifestState, encode_schema},
    registry::{Database, Registry},
    wal::ReplayedFrame,
};

/// Kind of the frame that stands where a frame was given up.
pub(crate) const GIVEN_UP: u8 = FrameKind::GivenUp as u8;

/// The schemas that the frames of a log meet, from those of a manifest on.
#[derive(Debug)]
pub(crate) struct FrameChecker {
    registry: Arc<Registry>,
}

/// A change of schema as the log has it.
#[derive(Debug)]
pub(crate) struct SchemaChange {
    pub(crate) kind: u8,
    pub(crate) meta: Vec<u8>,
    pub(crate) body: Bytes,
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

    /// Returns the changes of schema that a write needs and that no frame before it made: what stood right before it in
    /// the log, for a write adds what its own points need. None if the frame is no write, or could not be decoded then.
    pub(crate) fn missing_changes(&self, frame: &ReplayedFrame<'_>) -> Vec<SchemaChange> {
        self.find_changes(frame).unwrap_or_default()
    }

    fn find_changes(&self, frame: &ReplayedFrame<'_>) -> Option<Vec<SchemaChange>> {
        let kind = FrameKind::from_byte(frame.kind)?;
        let meta: WriteMeta = frame::decode(frame.meta).ok()?;
        let (name, created_ns) = (meta.database.clone(), meta.receive_ns);
        let known = self.registry.database(&name);
        let mut changes = Vec::new();
        if known.is_none() {
            let meta = encode(&DatabaseMeta { name: name.clone(), created_ns }).ok()?;
            changes.push(SchemaChange { kind: FrameKind::Database as u8, meta, body: Bytes::new() });
        }
        let database = known.unwrap_or_else(|| Arc::new(Database::new(&name, created_ns, false)));
        let staged = decode_logged(&Request { kind, body: frame.body.clone(), meta }, &database).ok()?;
        for table in staged.tables.iter().filter(|table| !table.is_empty()) {
            if table.changes_schema() || database.table(table.name()).is_none() {
                let body = Bytes::from(encode_schema(&table.grown_schema()));
                changes.push(SchemaChange { kind: FrameKind::Schema as u8, meta: Vec::new(), body });
            }
        }
        Some(changes)
    }
}
