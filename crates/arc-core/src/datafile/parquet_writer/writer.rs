//! The writer itself: rows in, files out, and what becomes of them when something fails.

use std::{fmt, path::Path, sync::Arc};

use arrow::{array::RecordBatch, datatypes::SchemaRef};

use super::{
    Accumulator, ParquetWriterBuilder, Value, WrittenFile,
    open_file::{Complete, FileSpec, GrowingFile, Scale},
    publish::Folder,
    rows::RowBuffer,
    schema::WriterColumns,
    split::{RowGroupKey, part},
};
use crate::{Error, Result, datafile::encode::Scratch};

/// Rows of a batch that are converted at a time.
const PIECE_ROWS: usize = 32_768;

/// Writes rows to Parquet files.
///
/// The schema is known when the writer is opened. Rows come as record batches
/// ([`push`](Self::push)), as values in the order of the columns ([`push_row`](Self::push_row)) or
/// by the columns' names ([`push_named`](Self::push_named)), in any mixture, and keep their order.
/// Columns that are null throughout a file are left out of it, but for the first one where all are.
///
/// **Files appear when the writer is closed**, all of them or none. Until then they have temporary
/// names in the same folder, which end in `.tmp`. Each is synced, then gets its name, which must be
/// free, then the folder is synced: when [`close`](Self::close) returns `Ok`, all files survive a
/// loss of power. A writer that is dropped or aborted, or fails, removes its files. After a crash
/// there may be temporary ones, which nothing needs.
///
/// **What is refused changes nothing.** A row or batch that does not fit is refused as a whole with
/// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput), by the number of its row and the
/// name of its column, and the writer goes on. Any other error ends the writer: its files are
/// removed, and later calls fail as [`ErrorKind::Closed`](crate::ErrorKind::Closed).
///
/// **Memory** is bounded by the layout ([`layout`](ParquetWriterBuilder::layout)), whatever comes:
/// rows that are gathered, one encoded row group, and some megabytes for each thread.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow::datatypes::{DataType, Field, Schema};
/// use arc_core::datafile::{ParquetWriter, Value};
///
/// # let folder = tempfile::tempdir()?;
/// # let folder = folder.path();
/// let schema = Schema::new(vec![
///     Field::new("time", DataType::Int64, false),
///     Field::new("attr_status", DataType::Int64, true),
///     Field::new("attr_user", DataType::Utf8, true),
/// ]);
/// let mut writer = ParquetWriter::builder(folder, Arc::new(schema))
///     .name("logs")
///     .time_column("time")
///     .text_prefixes(["attr_"])
///     .max_rows(1_000_000)
///     .open()?;
/// writer.push_row(&[Value::from(1), Value::from(200), Value::Null])?;
/// writer.push_named([("time", &Value::from(2)), ("attr_status", &Value::from("teapot"))])?;
/// let files = writer.close()?;
/// assert_eq!((files[0].rows, files[0].statistics.last_time), (2, Some(2)));
/// assert_eq!(files[0].path, folder.join("logs-00000.parquet"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ParquetWriter<A: Accumulator = ()> {
    parts: Parts<A>,
    buffered: RowBuffer,
    /// The file that rows go into, and what gathers about them.
    open: Option<(GrowingFile, A)>,
    written: Vec<WrittenFile<A::Output>>,
    scale: Scale,
    /// Rows taken so far.
    rows: u64,
    state: WriterState,
}

/// What a builder makes a writer of.
pub(super) struct Parts<A> {
    pub(super) name: String,
    pub(super) columns: WriterColumns,
    pub(super) spec: Arc<FileSpec>,
    pub(super) group: RowGroupKey,
    /// One for each thread.
    pub(super) scratches: Vec<Scratch>,
    pub(super) folder: Folder,
    pub(super) make: Box<dyn Fn() -> A + Send>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum WriterState {
    Open,
    Closed,
    /// Why there will be no files.
    Ended(String),
}

impl ParquetWriter {
    /// Returns the settings of a writer to a folder, which is made if it is not there. `schema` has
    /// all columns that may come.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow::datatypes::{DataType, Field, Schema};
    /// use arc_core::datafile::{ParquetWriter, Value};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let field = |name: &str, kind, null| Field::new(name, kind, null);
    /// # let user = field("user", DataType::Utf8, true);
    /// # let times = field("time", DataType::Int64, false);
    /// # let schema = Arc::new(Schema::new(vec![times, user, field("ms", DataType::Float64, true)]));
    /// let mut writer = ParquetWriter::builder(&folder, schema).name("requests").open()?;
    /// writer.push_row(&[Value::from(10), Value::from("ann"), Value::from(2.5)])?;
    /// assert_eq!(writer.close()?[0].path, folder.path().join("requests-00000.parquet"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn builder(folder: impl AsRef<Path>, schema: SchemaRef) -> ParquetWriterBuilder {
        ParquetWriterBuilder::new(folder.as_ref(), schema)
    }
}

impl<A: Accumulator> ParquetWriter<A> {
    pub(super) fn new(parts: Parts<A>) -> Self {
        let buffered = RowBuffer::new(&parts.columns);
        Self {
            parts,
            buffered,
            open: None,
            written: Vec::new(),
            scale: Scale::default(),
            rows: 0,
            state: WriterState::Open,
        }
    }

    /// Takes the rows of a batch. Its columns are found by name; those that it lacks are null.
    ///
    /// Buffers are shared, not copied, until some megabytes are gathered. Blocks while these are
    /// encoded and written.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow::datatypes::{DataType, Field, Schema};
    /// use arc_core::datafile::{ParquetWriter, Value};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let field = |name: &str, kind, null| Field::new(name, kind, null);
    /// # let user = field("user", DataType::Utf8, true);
    /// # let times = field("time", DataType::Int64, false);
    /// # let schema = Arc::new(Schema::new(vec![times, user, field("ms", DataType::Float64, true)]));
    /// use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch};
    ///
    /// let times: ArrayRef = Arc::new(Int64Array::from(vec![10, 20]));
    /// let durations: ArrayRef = Arc::new(Float64Array::from(vec![2.5, 3.5]));
    /// let mut writer = ParquetWriter::builder(&folder, schema).open()?;
    /// writer.push(&RecordBatch::try_from_iter([("time", times), ("ms", durations)])?)?;
    /// assert_eq!(writer.close()?[0].rows, 2); // `user` is null
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `InvalidInput` for a column that is not declared, has another type or is null where it may
    /// not be: no row of the batch is taken, and the writer goes on. Else see [`ParquetWriter`].
    pub fn push(&mut self, rows: &RecordBatch) -> Result<()> {
        self.check_open()?;
        // All of it is looked at before any of it is written.
        self.parts.columns.check(rows, self.rows + 1)?;
        self.rows += rows.num_rows() as u64;
        let written = self.write_buffered().and_then(|()| self.write_converted(rows));
        self.ended_by(written)
    }

    /// Takes a row: a value for each column, in the order of the schema.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow::datatypes::{DataType, Field, Schema};
    /// use arc_core::datafile::{ParquetWriter, Value};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let field = |name: &str, kind, null| Field::new(name, kind, null);
    /// # let user = field("user", DataType::Utf8, true);
    /// # let times = field("time", DataType::Int64, false);
    /// # let schema = Arc::new(Schema::new(vec![times, user, field("ms", DataType::Float64, true)]));
    /// let mut writer = ParquetWriter::builder(&folder, schema).open()?;
    /// writer.push_row(&[Value::from(10), Value::from("ann"), Value::from(2.5)])?;
    /// // `time` is never null.
    /// assert!(writer.push_row(&[Value::Null, Value::from("bob"), Value::from(2.5)]).is_err());
    /// writer.push_row(&[Value::from(20), Value::from("bob"), Value::Null])?;
    /// assert_eq!(writer.close()?[0].rows, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `InvalidInput` for a value that its column cannot hold exactly, or a wrong number of them:
    /// the row is not taken, and the writer goes on. Else see [`ParquetWriter`].
    pub fn push_row(&mut self, values: &[Value<'_>]) -> Result<()> {
        self.check_open()?;
        self.buffered.push(values, self.rows + 1)?;
        self.end_row()
    }

    /// Takes a row: values by the names of their columns, in any order; the others are null. A map
    /// gives them by `map.iter().map(|(name, value)| (name.as_str(), value))`.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow::datatypes::{DataType, Field, Schema};
    /// use arc_core::datafile::{ParquetWriter, Value};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let field = |name: &str, kind, null| Field::new(name, kind, null);
    /// # let user = field("user", DataType::Utf8, true);
    /// # let times = field("time", DataType::Int64, false);
    /// # let schema = Arc::new(Schema::new(vec![times, user, field("ms", DataType::Float64, true)]));
    /// let mut writer = ParquetWriter::builder(&folder, schema).open()?;
    /// writer.push_named([("ms", &Value::from(2.5)), ("time", &Value::from(10))])?;
    /// assert_eq!(writer.close()?[0].rows, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`push_row`](Self::push_row), and for a name that is not declared or comes twice.
    pub fn push_named<'v>(&mut self, values: impl IntoIterator<Item = (&'v str, &'v Value<'v>)>) -> Result<()> {
        self.check_open()?;
        self.buffered.push_named(values, self.rows + 1)?;
        self.end_row()
    }

    /// Writes what is left, gives all files their names and returns them in the order of their
    /// rows; none without rows.
    ///
    /// Called again, it returns the same.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow::datatypes::{DataType, Field, Schema};
    /// use arc_core::datafile::{ParquetWriter, Value};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let field = |name: &str, kind, null| Field::new(name, kind, null);
    /// # let user = field("user", DataType::Utf8, true);
    /// # let times = field("time", DataType::Int64, false);
    /// # let schema = Arc::new(Schema::new(vec![times, user, field("ms", DataType::Float64, true)]));
    /// let mut writer = ParquetWriter::builder(&folder, schema).open()?;
    /// writer.push_row(&[Value::from(10), Value::from("ann"), Value::from(2.5)])?;
    /// for file in writer.close()? {
    ///     println!("{}: {} rows, {} bytes", file.path.display(), file.rows, file.bytes);
    /// }
    /// # assert_eq!(writer.close()?.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// See [`ParquetWriter`]: none of the files is there then. `Closed` after
    /// [`abort`](Self::abort).
    pub fn close(&mut self) -> Result<&[WrittenFile<A::Output>]> {
        if self.state != WriterState::Closed {
            self.check_open()?;
            let closed =
                self.write_buffered().and_then(|()| self.end_file()).and_then(|()| self.parts.folder.publish());
            self.ended_by(closed)?;
            self.parts.scratches.clear();
            self.state = WriterState::Closed;
        }
        Ok(&self.written)
    }

    /// Removes all files of this writer. Does nothing to one that is closed, or was aborted before.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow::datatypes::{DataType, Field, Schema};
    /// use arc_core::datafile::{ParquetWriter, Value};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let field = |name: &str, kind, null| Field::new(name, kind, null);
    /// # let user = field("user", DataType::Utf8, true);
    /// # let times = field("time", DataType::Int64, false);
    /// # let schema = Arc::new(Schema::new(vec![times, user, field("ms", DataType::Float64, true)]));
    /// let mut writer = ParquetWriter::builder(&folder, schema).open()?;
    /// writer.push_row(&[Value::from(10), Value::from("ann"), Value::from(2.5)])?;
    /// writer.abort();
    /// assert_eq!(folder.path().read_dir()?.count(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn abort(&mut self) {
        if self.state == WriterState::Open {
            self.end("it was aborted");
        }
    }

    /// Returns the number of rows taken so far.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow::datatypes::{DataType, Field, Schema};
    /// use arc_core::datafile::{ParquetWriter, Value};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let field = |name: &str, kind, null| Field::new(name, kind, null);
    /// # let user = field("user", DataType::Utf8, true);
    /// # let times = field("time", DataType::Int64, false);
    /// # let schema = Arc::new(Schema::new(vec![times, user, field("ms", DataType::Float64, true)]));
    /// let mut writer = ParquetWriter::builder(&folder, schema).open()?;
    /// writer.push_row(&[Value::from(10), Value::from("ann"), Value::from(2.5)])?;
    /// assert_eq!(writer.rows(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    fn check_open(&self) -> Result<()> {
        match &self.state {
            WriterState::Open => Ok(()),
            WriterState::Closed => Err(Error::WriterClosed { reason: "its files are finished".into() }),
            WriterState::Ended(reason) => Err(Error::WriterClosed { reason: reason.clone() }),
        }
    }

    fn end_row(&mut self) -> Result<()> {
        self.rows += 1;
        if !self.buffered.is_full() {
            return Ok(());
        }
        let written = self.write_buffered();
        self.ended_by(written)
    }

    fn write_buffered(&mut self) -> Result<()> {
        if self.buffered.rows() == 0 {
            return Ok(());
        }
        let rows = self.buffered.take()?;
        self.write(&rows)
    }

    fn write_converted(&mut self, rows: &RecordBatch) -> Result<()> {
        for start in (0..rows.num_rows()).step_by(PIECE_ROWS) {
            let piece = part(rows, start, PIECE_ROWS.min(rows.num_rows() - start));
            let piece = self.parts.columns.convert(&piece)?;
            self.write(&piece)?;
        }
        Ok(())
    }

    /// Writes rows that have the columns of files to one file after the other.
    fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        let mut start = 0;
        while start < rows.num_rows() {
            let rest = part(rows, start, rows.num_rows() - start);
            start += self.write_some(&rest)?;
        }
        Ok(())
    }

    /// Writes the first rows to the file that they belong to, and returns how many.
    fn write_some(&mut self, rows: &RecordBatch) -> Result<usize> {
        let (file, accumulator) = match &mut self.open {
            Some(open) => open,
            none => none.insert(open_file(&mut self.parts, self.written.len(), self.scale)?),
        };
        let remaining = file.remaining(rows, &mut self.parts.scratches)?.min(rows.num_rows());
        let count = if remaining > 0 { remaining } else { self.parts.group.continuing(rows)? };
        let some = part(rows, 0, count);
        if count > 0 {
            accumulator.update(&some);
            file.push(&some, &mut self.parts.scratches)?;
            self.parts.group.remember(&some)?;
        }
        if remaining == 0 && count < rows.num_rows() {
            self.end_file()?;
        }
        Ok(count)
    }

    fn end_file(&mut self) -> Result<()> {
        let Some((file, accumulator)) = self.open.take() else { return Ok(()) };
        let Complete { rows, bytes, statistics, scale } = file.finish(&mut self.parts.scratches)?;
        self.scale = scale;
        let path = self.parts.folder.path_of(&file_name(&self.parts.name, self.written.len()));
        self.written.push(WrittenFile { path, rows, bytes, statistics, accumulated: accumulator.finish() });
        Ok(())
    }

    /// Ends the writer if there was an error.
    fn ended_by(&mut self, result: Result<()>) -> Result<()> {
        if let Err(error) = &result {
            self.end(&format!("it failed: {error}"));
        }
        result
    }

    fn end(&mut self, reason: &str) {
        // The file is closed before it is removed.
        self.open = None;
        self.written.clear();
        self.parts.scratches.clear();
        self.parts.folder.discard();
        self.state = WriterState::Ended(reason.to_owned());
    }
}

fn open_file<A: Accumulator>(parts: &mut Parts<A>, index: usize, scale: Scale) -> Result<(GrowingFile, A)> {
    let (temporary, file) = parts.folder.create(&file_name(&parts.name, index))?;
    Ok((GrowingFile::new(&parts.spec, &temporary, file, scale)?, (parts.make)()))
}

fn file_name(name: &str, index: usize) -> String {
    format!("{name}-{index:05}.parquet")
}

impl<A: Accumulator> Drop for ParquetWriter<A> {
    fn drop(&mut self) {
        self.abort();
    }
}

impl<A: Accumulator> fmt::Debug for ParquetWriter<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParquetWriter")
            .field("name", &self.parts.name)
            .field("rows", &self.rows)
            .field("files", &self.written.len())
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}
