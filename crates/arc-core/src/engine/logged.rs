//! Frames of writes, and of the changes of schema that stand before them.
//!
//! Decides whether a write is logged as its request came or as the rows that it came to, which is
//! never more (decision 025). Never touches the log, and never decodes: `write` has done that, and
//! queues what is made here.

use bytes::Bytes;

use super::{
    frame::{DatabaseMeta, FrameKind, SchemaMeta, WriteMeta, encode},
    idempotency::fingerprint,
    queue::QueuedFrame,
    shared::Shared,
    write::WriteRequest,
};
use crate::{
    Error, Result,
    catalog::encode_schema,
    ingest::{Staged, StagedTable, with_whole_times},
    model::TableSchema,
    registry::Database,
    wal::body_checksum,
};

impl Shared {
    /// Returns the frame of a write: its rows in columns where that pays, and else its body, of
    /// which replay passes over what was `rejected`.
    pub(super) fn write_frame(
        &self,
        request: &WriteRequest,
        staged: &Staged,
        rejected: Vec<u64>,
    ) -> Result<QueuedFrame> {
        let frame = self.make_frame(request, staged, rejected)?;
        #[cfg(any(test, debug_assertions, feature = "check-frames"))]
        super::frame_proof::check(&frame, staged)?;
        Ok(frame)
    }

    fn make_frame(&self, request: &WriteRequest, staged: &Staged, rejected: Vec<u64>) -> Result<QueuedFrame> {
        let mut meta = WriteMeta { rejected, ..request.meta.clone() };
        let is_of_rows = matches!(request.kind, FrameKind::LineProtocol | FrameKind::MessagePack);
        let body = match (is_of_rows, staged.has_own_times) {
            (true, false) => self.encoders.encode_if_smaller(staged, request.body.len()),
            // Replay would take the times of the request.
            (true, true) => Some(self.encoders.encode(staged, usize::MAX).ok_or_else(|| too_large(request))?),
            (false, _) => None,
        };
        let Some(body) = body else {
            let body = if staged.has_own_times { with_own_times(request, staged)? } else { request.body.clone() };
            let body_crc = body_checksum(&body);
            return Ok(QueuedFrame { kind: request.kind, meta: encode(&meta)?, body, body_crc });
        };
        if let Some(key) = &mut meta.idempotency {
            key.request = Some(fingerprint(request));
        }
        let body_crc = body_checksum(&body);
        Ok(QueuedFrame { kind: FrameKind::Rows, meta: encode(&meta)?, body, body_crc })
    }
}

/// Returns the batches of a request with the times that its rows got.
fn with_own_times(request: &WriteRequest, staged: &Staged) -> Result<Bytes> {
    let WriteMeta { time_column, .. } = &request.meta;
    let unit = staged.tables.first().map(StagedTable::time_unit).unwrap_or_default();
    with_whole_times(&request.body, time_column.as_deref(), request.meta.precision(), unit)
        .map_err(|reason| Error::internal(format!("batches that were accepted do not encode: {reason}")))
}

/// Refuses a request whose texts need more room than a column of the log has.
fn too_large(request: &WriteRequest) -> Error {
    let format = if request.kind == FrameKind::LineProtocol { "line protocol" } else { "MessagePack" };
    let reason =
        "its points get other times than they came with, and have too much text for one write; send fewer at a time";
    Error::InvalidPayload { format, reason: reason.to_owned() }
}

/// Returns the frame of a schema, which is new or has grown, or has columns that were of another
/// type before.
pub(super) fn schema_change(schema: &TableSchema, has_widened: bool, time_ns: i64) -> Result<QueuedFrame> {
    let kind = if has_widened { FrameKind::Widened } else { FrameKind::Schema };
    let body = Bytes::from(encode_schema(schema));
    #[cfg(any(test, debug_assertions, feature = "check-frames"))]
    super::frame_proof::check_schema(&body, schema)?;
    let body_crc = body_checksum(&body);
    Ok(QueuedFrame { kind, meta: encode(&SchemaMeta { time_ns })?, body, body_crc })
}

/// Returns the frame of a database that is new.
pub(super) fn database_change(database: &Database) -> Result<QueuedFrame> {
    let meta = DatabaseMeta { name: database.name.to_string(), created_ns: database.created_ns };
    let body_crc = body_checksum(&[]);
    Ok(QueuedFrame { kind: FrameKind::Database, meta: encode(&meta)?, body: Bytes::new(), body_crc })
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, sync::Arc};

    use serde::Serialize;

    use super::*;
    use crate::{
        Engine, WriteOptions,
        engine::write::{WriteRequest, decode_logged},
    };

    #[derive(Serialize)]
    struct Row {
        m: String,
        t: i64,
        tags: BTreeMap<String, String>,
        fields: BTreeMap<String, f64>,
    }

    fn row(n: i64, table: &str) -> Row {
        let tags = ["host", "region"].map(|tag| (tag.to_owned(), format!("{tag}_{}", n % 5)));
        let fields = ["usage_user", "usage_idle"].map(|field| (field.to_owned(), 12.25));
        Row { m: table.to_owned(), t: n, tags: tags.into(), fields: fields.into() }
    }

    fn line(row: &Row) -> String {
        let Row { m, t, tags, fields } = row;
        let tags: String = tags.iter().map(|(tag, value)| format!(",{tag}={value}")).collect();
        let fields: Vec<String> = fields.iter().map(|(field, value)| format!("{field}={value}")).collect();
        format!("{m}{tags} {} {t}\n", fields.join(","))
    }

    #[test]
    fn writes_are_logged_in_columns_where_these_are_smaller() {
        let dir = tempfile::tempdir().unwrap();
        let engine = Engine::open(dir.path().join("data")).unwrap();
        let rows = |count, tables: i64| (0..count).map(move |n| row(n, &format!("m{}", n % tables)));
        for (count, tables, in_columns) in [(1, 1, false), (3, 1, false), (200, 1, true), (200, 100, false)] {
            let lines: String = rows(count, tables).map(|row| line(&row)).collect();
            let maps: Vec<Row> = rows(count, tables).collect();
            let maps = rmp_serde::to_vec_named(&maps).unwrap();
            for (kind, body) in [(FrameKind::LineProtocol, lines.into_bytes()), (FrameKind::MessagePack, maps)] {
                let database = Arc::new(Database::new("d", 0, true));
                let meta = WriteMeta::new("d", None, 0, &WriteOptions::new());
                let request = WriteRequest { kind, body: body.into(), meta };
                let staged = decode_logged(&request, &database).unwrap();
                let frame = engine.writer().unwrap().write_frame(&request, &staged, Vec::new()).unwrap();
                let expected = if in_columns { FrameKind::Rows } else { kind };
                assert_eq!(frame.kind, expected, "{count} rows of {tables} tables as {kind:?}");
                assert_eq!(frame.body_crc, body_checksum(&frame.body));
                assert!(if in_columns {
                    frame.body.len() < request.body.len() / 3
                } else {
                    frame.body == request.body
                });
                let again = WriteRequest { kind: frame.kind, body: frame.body, ..request };
                assert_eq!(decode_logged(&again, &database).unwrap().points(), staged.points());
            }
        }
    }
}
