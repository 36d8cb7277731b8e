//! What a query reads: one table at one moment, its data files and its unflushed rows.

use std::sync::Arc;

use arrow::array::RecordBatch;

use crate::{Tombstone, catalog::TableSchema, datafile::DataFile};

/// One table at one moment. Holding it keeps the rows readable, whatever flush does meanwhile.
#[derive(Debug, Clone)]
pub struct TableView {
    /// Columns at that moment.
    pub schema: Arc<TableSchema>,
    /// Live data files, in the order in which they were added. Late ones overwrite each other in order of their last,
    /// then of their first sequence number.
    pub files: Vec<Arc<DataFile>>,
    /// Unflushed rows, in order of arrival: later parts overwrite earlier ones where a table is keyed.
    pub buffers: Vec<BufferPart>,
    /// Deletes that are not yet carried out in all files: those of [`Self::files`] that one
    /// [applies to](Tombstone::applies_to) still have its rows. The buffers have them no more.
    pub tombstones: Vec<Arc<Tombstone>>,
}

/// Some unflushed rows of one table.
#[derive(Debug, Clone)]
pub struct BufferPart {
    /// The rows; columns are a subset, by name, of [`TableSchema::arrow`] and always hold `time` and every tag that
    /// the rows have. A column that is absent is null.
    pub batch: RecordBatch,
    /// Oldest time in nanoseconds since the epoch.
    pub min_time: i64,
    /// Newest time in nanoseconds since the epoch.
    pub max_time: i64,
    /// Whether rows may have the identity of rows in files or in earlier parts.
    ///
    /// Rows that are not late are unique among all rows that are not late. Late rows overwrite, field by field, rows of
    /// the same identity that came before: all that are not late, and earlier late ones.
    pub late: bool,
}
