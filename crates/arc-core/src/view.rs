//! What a query reads: one table at one moment, its data files and its unflushed rows.

use std::sync::Arc;

use arrow::array::RecordBatch;

use crate::{
    Result, Tombstone,
    buffer::ChunkRows,
    model::{DataFile, TableSchema},
};

/// One table at one moment. Holding it keeps the rows readable, whatever flush does meanwhile.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let mut options = arc_core::Options::default();
/// # options.wal_segment_bytes = 64 << 10;
/// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
/// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
/// let view = engine.view("plant", "pump")?;
/// engine.flush()?; // the view stays what it was
/// assert_eq!((view.files.len(), view.buffers[0].row_count()), (0, 1));
/// assert_eq!(engine.view("plant", "pump")?.files[0].rows, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct TableView {
    /// Columns at that moment.
    pub schema: Arc<TableSchema>,
    /// Live data files, in the order in which they were added. Late ones overwrite each other in
    /// order of their last, then of their first sequence number. One that is replaced while this is
    /// held moves, to its [`past_path`](DataFile::past_path).
    pub files: Vec<Arc<DataFile>>,
    /// Unflushed rows, in order of arrival: later parts overwrite earlier ones where a table has a
    /// primary key.
    pub buffers: Vec<BufferPart>,
    /// Deletes that are not yet carried out in all files: those of [`Self::files`] that one
    /// [applies to](Tombstone::applies_to) still have its rows. The buffers have them no more.
    pub tombstones: Vec<Arc<Tombstone>>,
}

/// Some unflushed rows of one table.
#[derive(Debug, Clone)]
pub struct BufferPart {
    /// The rows, without those that deletes have taken.
    pub(crate) rows: ChunkRows,
    /// Oldest time in nanoseconds since the epoch.
    pub min_time: i64,
    /// Newest time in nanoseconds since the epoch.
    pub max_time: i64,
    /// Whether rows may have the primary key of rows in files or in earlier parts.
    ///
    /// Rows that are not late are unique among all rows that are not late. Late rows overwrite,
    /// field by field, rows of the same primary key that came before: all that are not late, and
    /// earlier late ones.
    pub late: bool,
}

impl BufferPart {
    /// Returns the number of rows.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// let view = engine.view("plant", "pump")?;
    /// assert_eq!(view.buffers.iter().map(|part| part.row_count()).sum::<usize>(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn row_count(&self) -> usize {
        self.rows.len()
    }

    /// Makes a record batch of the rows.
    ///
    /// Columns are a subset, by name, of [`TableSchema::arrow`] and always hold `time` and all
    /// tags. A column that is absent is null. Fields lie where they are buffered; tags are made
    /// anew by each call.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// let batch = engine.view("plant", "pump")?.buffers[0].batch()?;
    /// assert_eq!((batch.num_rows(), batch.num_columns()), (1, 3)); // time, id and rpm
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Internal`](crate::ErrorKind::Internal) if the rows do not fit their schema.
    pub fn batch(&self) -> Result<RecordBatch> {
        self.rows.all()
    }
}
