//! What the engine puts into the log's frames: the kinds, and what a request needs besides its
//! bytes to be decoded again.
//!
//! Format: docs/format.md, "Frame kinds".

use serde::{Deserialize, Serialize};

use crate::{Durability, Error, Precision, Predicate, Result, WriteOptions, catalog::Fingerprint};

/// Kind of a frame, as the log stores it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum FrameKind {
    /// A database was created; metadata [`DatabaseMeta`], no body.
    Database = 1,
    /// A table was created or has grown; metadata [`SchemaMeta`], the body is its whole schema.
    Schema = 2,
    /// Rows of a table were deleted; metadata [`DeleteMeta`], no body.
    Delete = 3,
    /// A table or database was dropped; metadata [`DropMeta`], no body.
    Drop = 4,
    /// Columns of a table have changed their type, and others may be new; otherwise as
    /// [`Schema`](Self::Schema).
    Widened = 5,
    /// Stands where a repair has given up a frame; no metadata, no body, no effect.
    GivenUp = 15,
    /// A write of line protocol; metadata [`WriteMeta`], body as received.
    LineProtocol = 16,
    /// A write of MessagePack; likewise.
    MessagePack = 17,
    /// A write of record batches; the body is an Arrow IPC stream.
    Arrow = 18,
    /// The rows that a write of line protocol or MessagePack came to; metadata [`WriteMeta`], body
    /// in columns.
    Rows = 19,
}

impl FrameKind {
    pub(super) const ALL: [Self; 10] = [
        Self::Database,
        Self::Schema,
        Self::Delete,
        Self::Drop,
        Self::Widened,
        Self::GivenUp,
        Self::LineProtocol,
        Self::MessagePack,
        Self::Arrow,
        Self::Rows,
    ];

    pub(super) fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// Metadata of [`FrameKind::Database`].
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct DatabaseMeta {
    pub(super) name: String,
    pub(super) created_ns: i64,
}

/// Metadata of [`FrameKind::Delete`].
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct DeleteMeta {
    pub(super) database: String,
    pub(super) table: String,
    /// Its values have the types of the table's columns.
    pub(super) predicate: Predicate,
    /// When it came, in nanoseconds since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) time_ns: Option<i64>,
}

/// Metadata of [`FrameKind::Schema`] and [`FrameKind::Widened`], which may have none.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SchemaMeta {
    /// When it came, in nanoseconds since the epoch.
    pub(super) time_ns: i64,
}

/// Metadata of [`FrameKind::Drop`].
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct DropMeta {
    pub(super) database: String,
    /// The table, or the whole database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) table: Option<String>,
    /// When it came, in nanoseconds since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) time_ns: Option<i64>,
}

/// Metadata of a write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct WriteMeta {
    pub(super) database: String,
    /// Of an Arrow write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) table: Option<String>,
    /// Time of the first point that has none.
    pub(super) receive_ns: i64,
    /// When it came, where that is not `receive_ns`: points without a time have one of their own,
    /// and may be ahead of the clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) clock_ns: Option<i64>,
    /// Nanoseconds of one unit of the timestamps, if the request said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) precision_ns: Option<i64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) time_column: Option<String>,
    /// Lines or items that were rejected; replay passes over them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) rejected: Vec<u64>,
    /// Of a write that may be sent again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) idempotency: Option<KeyMeta>,
}

/// What a write is known by if it is sent again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KeyMeta {
    pub(super) key: String,
    /// What the receipt says.
    pub(super) durability: Durability,
    /// What tells the request from others, where its body is not in the frame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) request: Option<Fingerprint>,
}

impl WriteMeta {
    pub(super) fn new(database: &str, table: Option<&str>, receive_ns: i64, options: &WriteOptions) -> Self {
        Self {
            database: database.to_owned(),
            table: table.map(str::to_owned),
            receive_ns,
            clock_ns: None,
            precision_ns: options.precision.map(Precision::nanoseconds),
            tags: options.tags.clone(),
            time_column: options.time_column.clone(),
            rejected: Vec::new(),
            idempotency: None,
        }
    }

    pub(super) fn precision(&self) -> Option<Precision> {
        use Precision::{Hour, Microsecond, Millisecond, Minute, Nanosecond, Second};
        let wanted = self.precision_ns?;
        [Nanosecond, Microsecond, Millisecond, Second, Minute, Hour].into_iter().find(|p| p.nanoseconds() == wanted)
    }
}

/// Encodes metadata as MessagePack with named keys, so that later versions can add some.
pub(super) fn encode<T: Serialize>(meta: &T) -> Result<Vec<u8>> {
    rmp_serde::to_vec_named(meta).map_err(|e| Error::internal(format!("cannot encode a frame's metadata: {e}")))
}

/// Decodes metadata; the error is the reason why the frame is damaged.
pub(super) fn decode<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, String> {
    rmp_serde::from_slice(bytes).map_err(|e| format!("a frame's metadata does not decode: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_survives_with_and_without_its_optional_parts() {
        let plain = WriteMeta::new("d", None, 5, &WriteOptions::new());
        let full = WriteMeta {
            rejected: vec![2, 9],
            idempotency: Some(KeyMeta { key: "kü 1".into(), durability: Durability::Process, request: None }),
            ..WriteMeta::new(
                "d",
                Some("t"),
                -5,
                &WriteOptions::new().precision(Precision::Hour).tags(["a"]).time_column("ts"),
            )
        };
        for meta in [plain, full] {
            assert_eq!(decode::<WriteMeta>(&encode(&meta).unwrap()).unwrap(), meta);
        }
        assert!(decode::<WriteMeta>(b"\x93").is_err());
    }
}
