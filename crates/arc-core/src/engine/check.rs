//! Decodes the frames of a log as replay does, and keeps nothing of their rows: for those who check
//! or mend a log.

use std::sync::Arc;

use arrow::datatypes::DataType;
use bytes::Bytes;

use super::{
    frame::{self, DatabaseMeta, FrameKind, WriteMeta, encode},
    open::{decode_frame, registry_of},
    write::{WriteRequest, decode_logged, decode_widening},
};
use crate::{
    SequenceNumber,
    catalog::{ManifestState, decode_schema, encode_schema},
    model::{Column, TableSchema},
    registry::{Database, Registry},
    wal::ReplayedFrame,
};

/// Kind of the frame that stands where a frame was given up.
pub(crate) const GIVEN_UP: u8 = FrameKind::GivenUp as u8;

/// The schemas that the frames of a log meet, from those of a manifest on.
#[derive(Debug)]
pub(crate) struct FrameChecker {
    registry: Arc<Registry>,
    /// The schemas that frames of the log say, for those who have to guess what a lost one said.
    said: Vec<(SequenceNumber, TableSchema)>,
}

/// A change of schema as the log has it.
#[derive(Debug)]
pub(crate) struct SchemaChange {
    pub(crate) kind: u8,
    pub(crate) meta: Vec<u8>,
    pub(crate) body: Bytes,
    /// The columns that it gives another type, in words.
    pub(crate) widened: Vec<String>,
}

impl FrameChecker {
    /// Begins where a manifest ends.
    pub(crate) fn new(manifest: &ManifestState) -> Self {
        Self { registry: Arc::new(registry_of(manifest)), said: Vec::new() }
    }

    /// Notes what a frame, wherever it stands in the log, says of a table.
    pub(crate) fn note(&mut self, frame: &ReplayedFrame<'_>) {
        if let Some(FrameKind::Schema | FrameKind::Widened) = FrameKind::from_byte(frame.kind) {
            self.said.extend(decode_schema(&frame.body).ok().map(|schema| (frame.seq, schema)));
        }
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

    /// Returns the changes of schema that a write needs and that no frame before it made: what
    /// stood right before it in the log, for a write adds what its own points need. None if the
    /// frame is no write, or could not be decoded then.
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
            let (kind, body) = (FrameKind::Database as u8, Bytes::new());
            changes.push(SchemaChange { kind, meta, body, widened: Vec::new() });
        }
        let database = known.unwrap_or_else(|| Arc::new(Database::new(&name, created_ns, false)));
        let request = WriteRequest { kind, body: frame.body.clone(), meta };
        let whole = decode_logged(&request, &database).ok().filter(|staged| staged.rejections.first.is_empty());
        // What did not fit its column was not rejected: so the column was of another type by then.
        let staged = whole.or_else(|| decode_widening(&request, &database).ok())?;
        for table in staged.tables.iter().filter(|table| !table.is_empty()) {
            if table.changes_schema() || database.table(table.name()).is_none() {
                let (schema, widened) = self.guess(frame.seq, &table.base.schema, &table.grown_schema());
                let kind = if widened.is_empty() { FrameKind::Schema } else { FrameKind::Widened } as u8;
                let body = Bytes::from(encode_schema(&schema));
                changes.push(SchemaChange { kind, meta: Vec::new(), body, widened });
            }
        }
        Some(changes)
    }

    /// Returns the schema that a lost frame said, as far as the write after it tells, and the
    /// columns that changed their type by it. That is the one that a later frame says, or else
    /// text, which can be all that the column had.
    fn guess(&self, seq: SequenceNumber, base: &TableSchema, proposed: &TableSchema) -> (TableSchema, Vec<String>) {
        let later = self.said.iter().find(|(said, schema)| *said > seq && schema.continues(base));
        let (mut schema, mut widened) = (proposed.clone(), Vec::new());
        for (index, column) in schema.columns.iter_mut().enumerate().take(base.columns.len()) {
            if base.columns.get(index).is_none_or(|before| before.data_type == column.data_type) {
                continue;
            }
            let said = later.and_then(|(_, schema)| schema.columns.get(index)).map(|column| &column.data_type);
            if said != Some(&column.data_type) {
                column.data_type = DataType::Utf8;
            }
            let Column { name, data_type, .. } = column;
            widened.push(format!("column {name:?} of table {:?} to {data_type}", base.table));
        }
        (schema, widened)
    }
}
