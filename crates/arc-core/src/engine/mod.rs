//! The public handle; wires the parts together, holds no algorithm.

mod apply;
mod builder;
mod check;
#[cfg(feature = "object-store")]
mod claim;
mod column_types;
mod commit;
mod compaction;
mod create_table;
mod delete;
mod dropping;
mod durability;
#[cfg(feature = "query")]
mod execute;
#[cfg(feature = "query")]
mod fitting;
mod flush;
mod frame;
#[cfg(any(test, debug_assertions, feature = "check-frames"))]
mod frame_proof;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod idempotency;
mod info;
#[cfg(feature = "query")]
mod insert;
#[cfg(feature = "query")]
mod insert_query;
mod logged;
mod open;
mod packs;
mod pinned;
mod queue;
mod retention;
mod retired;
mod shared;
mod small_merges;
mod stats;
#[cfg(feature = "query")]
mod tables;
mod widen;
mod write;

use std::{path::Path, sync::Arc};

use arrow::array::RecordBatch;
use bytes::Bytes;

pub use builder::EngineBuilder;
pub use compaction::CompactionReport;
pub use delete::Deleted;
#[cfg(feature = "query")]
pub use execute::{Deletion, Executed};
pub use flush::FlushReport;
pub use info::{DatabaseInfo, TableInfo};
pub use stats::EngineStats;

#[cfg(test)]
pub(crate) use apply::apply_rows;
pub(crate) use check::{FrameChecker, GIVEN_UP, SchemaChange};
pub(crate) use open::{Lock, lock};

use self::{
    frame::{FrameKind, WriteMeta},
    shared::Shared,
    write::WriteRequest,
};
#[cfg(feature = "query")]
use crate::store::OpenStorage;
use crate::{
    PendingWrite, Result, WriteOptions, Written,
    sync::{Mutex, thread::JoinHandle},
};

/// A time-series store in one folder.
///
/// Cheap to clone; every clone is the same engine. It runs until [`close`](Self::close), or until the last clone is
/// dropped: points that are acknowledged by then are in the log and come back when the folder is opened again.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("data");
/// use arc_core::Engine;
///
/// let engine = Engine::open(path)?;
/// let written = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
/// assert_eq!(written.points, 1);
/// engine.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    /// Made by the first statement: who only writes does not pay for it.
    #[cfg(feature = "query")]
    query: Mutex<Option<Arc<crate::query::QueryEngine>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    lock: Mutex<Option<open::Lock>>,
}

impl Inner {
    #[cfg(feature = "query")]
    fn query(&self) -> Result<Arc<crate::query::QueryEngine>> {
        let mut query = self.query.lock();
        if let Some(query) = query.as_ref() {
            return Ok(Arc::clone(query));
        }
        let Shared { registry, root, options, memory, storage, .. } = self.shared.as_ref();
        let tables = Arc::<crate::registry::Registry>::clone(registry);
        let store = storage.as_ref().map(OpenStorage::reads);
        let engine = crate::query::QueryEngine::new(tables, root, store, options, Arc::clone(memory))?;
        Ok(Arc::clone(query.insert(Arc::new(engine))))
    }

    fn stop(&self) {
        self.shared.abort_waits();
        self.shared.stop_compaction();
        self.shared.flush_signal.stop();
        self.shared.queue.stop();
        for thread in self.threads.lock().drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread of the engine has panicked");
            }
        }
        // Only while the directory is this engine's: a second stop comes when nothing is.
        if let Some(_lock) = self.lock.lock().take()
            && let Err(error) = self.shared.seal()
        {
            tracing::debug!(%error, "the log was not sealed");
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Engine {
    /// Opens the data directory at `path` with the default settings; creates it if there is none.
    ///
    /// Replays what is in the log and not yet in data files.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("data");
    /// use arc_core::Engine;
    ///
    /// let engine = Engine::open(&path)?;
    /// let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// drop(engine); // without `close`, as if the process had ended
    /// let engine = Engine::open(&path)?;
    /// assert_eq!(engine.tables("plant")?[0].buffered_rows, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// See [`EngineBuilder::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::builder(path).open()
    }

    /// Returns a builder for an engine over the data directory at `path`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("data");
    /// use std::time::Duration;
    ///
    /// use arc_core::{Durability, Engine};
    ///
    /// let builder = Engine::builder(&path).durability(Durability::Process).flush_after(Duration::from_secs(10));
    /// let engine = builder.open()?;
    /// assert_eq!(engine.path(), path);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn builder(path: impl AsRef<Path>) -> EngineBuilder {
        EngineBuilder::new(path.as_ref())
    }

    /// Writes line protocol with the default settings and waits until it is as durable as the engine's options say.
    ///
    /// Timestamps are nanoseconds; a point without one gets the time of arrival. Bad lines are named in the receipt,
    /// the others are stored. The database is created by its first write.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// let written = engine.write_lp("plant", b"pump,id=7 rpm=1450i\npump,id=8 rpm=?")?;
    /// assert_eq!((written.points, written.rejected_points), (1, 1));
    /// let refused = &written.rejected[0];
    /// println!("line {}, byte {}: {}", refused.line, refused.column, refused.reason);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) for a bad database name;
    /// [`Busy`](crate::ErrorKind::Busy) when memory stays full; [`Closed`](crate::ErrorKind::Closed) once closed.
    pub fn write_lp(&self, database: &str, body: &[u8]) -> Result<Written> {
        self.submit_lp(database, Bytes::copy_from_slice(body), &WriteOptions::new())?.wait()
    }

    /// Decodes line protocol and queues it for the log; the answer comes with the [`PendingWrite`].
    ///
    /// Blocks only while memory is full. `body` is kept, not copied.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// use arc_core::{Precision, WriteOptions};
    ///
    /// let options = WriteOptions::new().precision(Precision::Second);
    /// let first = engine.submit_lp("plant", "pump,id=7 rpm=1450i 1700000000".into(), &options)?;
    /// let second = engine.submit_lp("plant", "pump,id=8 rpm=1500i 1700000000".into(), &options)?;
    /// // One sync of the log is enough for both.
    /// assert_eq!(first.wait()?.points + second.wait()?.points, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`write_lp`](Self::write_lp).
    pub fn submit_lp(&self, database: &str, body: Bytes, options: &WriteOptions) -> Result<PendingWrite> {
        self.submit(FrameKind::LineProtocol, database, None, body, options)
    }

    /// Writes MessagePack (columnar, rows, or arrays of both) and waits until it is durable.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// use serde_json::json;
    ///
    /// let times = [1_700_000_000, 1_700_000_060];
    /// let columns = json!({"m": "pump", "columns": {"time": times, "rpm": [1450, 1500]}});
    /// let written = engine.write_msgpack("plant", &rmp_serde::to_vec_named(&columns)?)?;
    /// assert_eq!(written.points, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`write_lp`](Self::write_lp), and [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) for a body
    /// that cannot be read as a whole.
    pub fn write_msgpack(&self, database: &str, body: &[u8]) -> Result<Written> {
        self.submit_msgpack(database, Bytes::copy_from_slice(body), &WriteOptions::new())?.wait()
    }

    /// Decodes MessagePack and queues it for the log, as [`submit_lp`](Self::submit_lp) does.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// use arc_core::WriteOptions;
    /// use serde_json::json;
    ///
    /// let columns = json!({"m": "pump", "columns": {"time": [1_700_000_000], "id": ["7"], "rpm": [1450]}});
    /// let body = rmp_serde::to_vec_named(&columns)?;
    /// let pending = engine.submit_msgpack("plant", body.into(), &WriteOptions::new().tags(["id"]))?;
    /// assert_eq!(pending.wait()?.points, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`write_msgpack`](Self::write_msgpack).
    pub fn submit_msgpack(&self, database: &str, body: Bytes, options: &WriteOptions) -> Result<PendingWrite> {
        self.submit(FrameKind::MessagePack, database, None, body, options)
    }

    /// Writes a record batch to one table and waits until it is durable: all of its rows or none.
    ///
    /// The batch needs a column `time` without nulls. Rows append; see [`WriteOptions::tags`] for rows that merge.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// use std::sync::Arc;
    ///
    /// use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch};
    ///
    /// let times: ArrayRef = Arc::new(Int64Array::from(vec![1_700_000_000_000_000_000]));
    /// let rpm: ArrayRef = Arc::new(Float64Array::from(vec![1450.0]));
    /// let batch = RecordBatch::try_from_iter([("time", times), ("rpm", rpm)])?;
    /// let written = engine.write_batch("plant", "pump", &batch)?;
    /// assert_eq!(written.points, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) for bad names or a bad time column;
    /// [`SchemaConflict`](crate::ErrorKind::SchemaConflict) where a column has another type;
    /// [`Busy`](crate::ErrorKind::Busy) and [`Closed`](crate::ErrorKind::Closed) as for line protocol.
    pub fn write_batch(&self, database: &str, table: &str, batch: &RecordBatch) -> Result<Written> {
        self.submit_batches(database, table, std::slice::from_ref(batch), &WriteOptions::new())?.wait()
    }

    /// Checks record batches of one schema and queues them as one write, all or nothing.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// use std::sync::Arc;
    ///
    /// use arc_core::{Precision, WriteOptions};
    /// use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
    ///
    /// let times: ArrayRef = Arc::new(Int64Array::from(vec![1_700_000_000, 1_700_000_060]));
    /// let ids: ArrayRef = Arc::new(StringArray::from(vec!["7", "8"]));
    /// let rpm: ArrayRef = Arc::new(Int64Array::from(vec![1450, 1500]));
    /// let batch = RecordBatch::try_from_iter([("ts", times), ("id", ids), ("rpm", rpm)])?;
    /// let options = WriteOptions::new().time_column("ts").precision(Precision::Second).tags(["id"]);
    /// let pending = engine.submit_batches("plant", "pump", &[batch], &options)?;
    /// assert_eq!(pending.wait()?.points, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`write_batch`](Self::write_batch).
    pub fn submit_batches(
        &self,
        database: &str,
        table: &str,
        batches: &[RecordBatch],
        options: &WriteOptions,
    ) -> Result<PendingWrite> {
        self.submit(FrameKind::Arrow, database, Some(table), write::arrow_body(batches)?, options)
    }

    /// Decodes an Arrow IPC stream or file and queues it as one write, all or nothing, as
    /// [`submit_batches`](Self::submit_batches) does.
    ///
    /// Dictionaries and compressed buffers are fine. `body` is kept for the log, not copied; values are copied out of it
    /// once.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// use arc_core::WriteOptions;
    /// use arrow::ipc::writer::StreamWriter;
    /// # use arrow::array::{ArrayRef, Int64Array, RecordBatch};
    /// # let times: ArrayRef = std::sync::Arc::new(Int64Array::from(vec![10, 20]));
    /// # let batch = RecordBatch::try_from_iter([("time", times.clone()), ("rpm", times)])?;
    ///
    /// let mut stream = StreamWriter::try_new(Vec::new(), &batch.schema())?;
    /// stream.write(&batch)?;
    /// let body = stream.into_inner()?;
    /// let pending = engine.submit_arrow("plant", "pump", body.into(), &WriteOptions::new())?;
    /// assert_eq!(pending.wait()?.points, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`write_batch`](Self::write_batch), and [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) for a body
    /// that is damaged, cut off, or takes more memory than one write may once it is decompressed.
    pub fn submit_arrow(
        &self,
        database: &str,
        table: &str,
        body: Bytes,
        options: &WriteOptions,
    ) -> Result<PendingWrite> {
        self.submit(FrameKind::Arrow, database, Some(table), write::arrow_stream(&body)?, options)
    }

    fn submit(
        &self,
        kind: FrameKind,
        database: &str,
        table: Option<&str>,
        body: Bytes,
        options: &WriteOptions,
    ) -> Result<PendingWrite> {
        // No point takes less than four bytes in any format, so that many nanoseconds are enough.
        let receive_ns = self.inner.shared.receive_time(body.len() / 4 + 1);
        let meta = WriteMeta::new(database, table, receive_ns, options);
        self.inner.shared.submit(WriteRequest { kind, body, meta }, options)
    }

    /// Runs one SQL statement; names without a database resolve in `database`.
    ///
    /// Must be called, and the answer read, on a tokio runtime. Sees every point that was acknowledged before.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// let answer = engine.sql("plant", "SELECT id, avg(rpm) AS rpm FROM pump GROUP BY id").await?;
    /// let batches = answer.collect().await?;
    /// assert_eq!(batches[0].num_rows(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) for a statement that does not plan or is not
    /// allowed; [`NotFound`](crate::ErrorKind::NotFound) for an unknown table; [`Closed`](crate::ErrorKind::Closed).
    #[cfg(feature = "query")]
    pub async fn sql(&self, database: &str, sql: &str) -> Result<crate::Answer> {
        self.query(database, &crate::Statement::parse(sql)?, None).await
    }

    /// Runs one SQL statement with `values` for its placeholders, as [`sql`](Self::sql) does for one without any.
    ///
    /// `values` has one row. `$1`, `$2` and so on are its columns in order, and so are the `?` of a statement that has
    /// these instead; `$name` is the column of that name.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// use std::sync::Arc;
    ///
    /// use arrow::array::{ArrayRef, RecordBatch, StringArray};
    ///
    /// let ids: ArrayRef = Arc::new(StringArray::from(vec!["7"]));
    /// let values = RecordBatch::try_from_iter([("id", ids)])?;
    /// let answer = engine.sql_with("plant", "SELECT * FROM pump WHERE id = $id", &values).await?;
    /// assert_eq!(answer.collect().await?[0].num_rows(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`sql`](Self::sql), and [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if there is not one value
    /// for each placeholder.
    #[cfg(feature = "query")]
    pub async fn sql_with(&self, database: &str, sql: &str, values: &RecordBatch) -> Result<crate::Answer> {
        self.query(database, &crate::Statement::parse(sql)?, Some(values)).await
    }

    /// Runs a statement that reads, as [`sql_with`](Self::sql_with) and [`sql`](Self::sql) do with its text.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// use arc_core::Statement;
    ///
    /// let statement = Statement::parse("SELECT * FROM pump")?;
    /// if !statement.kind().is_change() {
    ///     let answer = engine.query("plant", &statement, None).await?;
    ///     assert_eq!(answer.schema().fields().len(), 3); // time, id and rpm
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`sql_with`](Self::sql_with).
    #[cfg(feature = "query")]
    pub async fn query(
        &self,
        database: &str,
        statement: &crate::Statement,
        values: Option<&RecordBatch>,
    ) -> Result<crate::Answer> {
        self.check_open()?;
        let query = self.inner.query()?;
        query.sql(database, statement, values).await
    }

    /// Plans one SQL statement without running it. Without `values` its placeholders stay open. Of the statements that
    /// change data it knows `INSERT`, whose columns are those of its rows.
    ///
    /// Must be called on a tokio runtime.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// use arc_core::Statement;
    ///
    /// let statement = Statement::parse("SELECT rpm FROM pump WHERE id = $1")?;
    /// let described = engine.describe("plant", &statement, None).await?;
    /// assert_eq!(described.columns.field(0).name(), "rpm");
    /// assert_eq!(described.parameters.field(0).name(), "$1");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`sql_with`](Self::sql_with).
    #[cfg(feature = "query")]
    pub async fn describe(
        &self,
        database: &str,
        statement: &crate::Statement,
        values: Option<&RecordBatch>,
    ) -> Result<crate::Description> {
        self.check_open()?;
        if statement.kind() == crate::StatementKind::Insert {
            return self.describe_insert(database, statement, values).await;
        }
        let query = self.inner.query()?;
        query.describe(database, statement, values).await
    }

    fn check_open(&self) -> Result<()> {
        if self.inner.lock.lock().is_none() {
            return Err(crate::Error::Closed { reason: "the engine is closed".into() });
        }
        Ok(())
    }

    /// Writes all points acknowledged so far to data files.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// let report = engine.flush()?;
    /// assert_eq!((report.rows, report.files.len()), (1, 1));
    /// println!("other programs may read {}", engine.path().join(&report.files[0]).display());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if the files cannot be written; the points stay in memory and in the log.
    pub fn flush(&self) -> Result<FlushReport> {
        self.inner.shared.flush()
    }

    /// Merges data files as far as there is anything to merge, drops those past their retention, and removes from disk
    /// what nobody needs any more. Waits for a merge that runs already.
    ///
    /// A thread does the same by itself, unless [`Options::compaction`](crate::Options::compaction) says no.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// # engine.flush()?;
    /// let report = engine.compact()?;
    /// println!("{} files became {}", report.files_in, report.files_out);
    /// # assert_eq!(report.files_in, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The first of [`ErrorKind::Io`](crate::ErrorKind::Io), [`Corrupt`](crate::ErrorKind::Corrupt) with the path of a
    /// data file that is damaged, and [`Closed`](crate::ErrorKind::Closed); whatever could be merged is, all the same,
    /// and no point is lost.
    pub fn compact(&self) -> Result<CompactionReport> {
        self.inner.shared.compact()
    }

    /// Creates a database. Writes create theirs by themselves.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// engine.create_database("plant")?;
    /// assert!(engine.create_database("plant").is_err());
    /// assert_eq!(engine.databases()[0].tables, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) for a bad name or one that is taken.
    pub fn create_database(&self, database: &str) -> Result<()> {
        self.inner.shared.create_database(database)
    }

    /// Flushes, stops and gives the data directory free; later calls on any clone fail as closed.
    ///
    /// A second call does nothing.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// let same = engine.clone();
    /// engine.close()?;
    /// assert!(same.write_lp("plant", b"pump,id=7 rpm=1451i").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// That of the last flush; the engine is closed all the same, and the points are in the log.
    pub fn close(&self) -> Result<()> {
        if self.inner.lock.lock().is_none() {
            return Ok(());
        }
        self.inner.shared.queue.close("the engine is closed");
        let shared = &self.inner.shared;
        shared.abort_waits();
        // However long that takes: after it nobody can do it.
        let flushed = shared.flush_with(shared.manifest.lock());
        // That flush may have carried out a drop. What has to stay for now goes on the next open.
        shared.remove_retired(shared.clock.now_ns());
        self.inner.stop();
        flushed.map(drop)
    }

    /// Returns the path of the data directory.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("data");
    /// let engine = arc_core::Engine::open(&path)?;
    /// assert_eq!(engine.path(), path);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.inner.shared.root
    }
}

#[cfg(test)]
mod tests;
