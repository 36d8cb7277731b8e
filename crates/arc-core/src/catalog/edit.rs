//! One change of the manifest: the payload of a commit.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{AdoptionEdit, PushStream, ReceiptsEdit, TableSchema, definition, shared};
use crate::{ColumnTypes, Durability, SequenceNumber, Tombstone, model::DataFile};

/// What one commit changes, in all tables at once.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ManifestEdit {
    /// The engine that goes on from here, of a manifest in an object store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) opened: Option<WriterClaim>,
    /// Groups of the log may be in the object store from now on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) remote_log: bool,
    /// When it was committed, in nanoseconds since the epoch. Never goes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) time_ns: Option<i64>,
    /// Every change up to this one is in data files and schemas once the edit is committed. Never
    /// goes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) flushed: Option<SequenceNumber>,
    /// Tables and databases that are there and go, before anything else is changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) dropped: Vec<DropEdit>,
    /// New databases: name, and time of creation in nanoseconds since the epoch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) databases_added: Vec<(String, i64)>,
    /// Retentions that change, of databases and tables that are there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) retentions: Vec<RetentionEdit>,
    /// Durabilities that change, of databases that are there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) durabilities: Vec<DurabilityEdit>,
    /// Settings of types that change, of databases and tables that are there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) column_types: Vec<ColumnTypesEdit>,
    /// Tables that change, each named once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) tables: Vec<TableEdit>,
    /// Receipts kept for the idempotency keys of writes up to `flushed`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) receipts_added: Vec<ReceiptsEdit>,
    /// Receipts that are there, of writes up to this one, are kept no longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) receipts_dropped: Option<SequenceNumber>,
    /// States that are kept under a name from now on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) snapshots_added: Vec<(String, NamedSnapshot)>,
    /// Names of states that are there and kept no longer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) snapshots_dropped: Vec<String>,
    /// The name of the data directory, for others that adopt its rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) origin: Option<String>,
    /// How far rows were handed to other directories, instead of what was there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pushes: Option<Vec<PushStream>>,
    /// Rows of another directory that come with this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) adopted: Option<AdoptionEdit>,
}

/// A state of the manifest that is kept under a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NamedSnapshot {
    /// The commit after which it was so; there is a snapshot object of that number.
    pub(crate) number: u64,
    /// When it was given its name, in nanoseconds since the epoch.
    pub(crate) time_ns: i64,
}

/// An engine that has opened a manifest in an object store, where no lock keeps others away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WriterClaim {
    /// The data directory, whose log the sequence numbers are of from here on.
    pub(crate) directory: String,
    /// Different each time, so that no other opening has the same bytes.
    pub(crate) opening: String,
}

/// A table or database that goes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct DropEdit {
    pub(crate) database: String,
    /// The table, or the whole database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) table: Option<String>,
}

/// How long the rows of a database or table are kept.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct RetentionEdit {
    pub(crate) database: String,
    /// The table, or all tables of the database that have no retention of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) table: Option<String>,
    /// Nanoseconds, at least 1; `None` takes the setting away.
    pub(crate) retention_ns: Option<u64>,
}

/// What acknowledged points of a database survive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct DurabilityEdit {
    pub(crate) database: String,
    /// `None` takes the setting away.
    pub(crate) durability: Option<Durability>,
}

/// How strict a database or table is about types.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ColumnTypesEdit {
    pub(crate) database: String,
    /// The table, or all tables of the database that do not say it themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) table: Option<String>,
    /// Instead of what was there.
    pub(crate) types: ColumnTypes,
}

/// What changes in one table.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct TableEdit {
    /// Database, there already or added by the same edit.
    pub(crate) database: String,
    /// Table.
    pub(crate) table: String,
    /// The schema of a new table, or what the table's schema has grown to.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "definition::optional")]
    pub(crate) schema: Option<Arc<TableSchema>>,
    /// New data files, durable already, in the order in which they overwrite each other.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "shared")]
    pub(crate) files_added: Vec<Arc<DataFile>>,
    /// Paths of data files that are live no longer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) files_removed: Vec<String>,
    /// Deletes that are accepted and not yet carried out in all files, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) tombstones_added: Vec<Tombstone>,
    /// Sequence numbers of deletes that are carried out in all files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) tombstones_removed: Vec<SequenceNumber>,
    /// Whether a file that is added has a column of a narrower type than the table.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) widened: bool,
}
