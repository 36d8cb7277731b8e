//! Writes as callers hand them in, in each format: at once, or to be waited for.

use arrow::array::RecordBatch;
use bytes::Bytes;

use super::{
    Engine,
    frame::{FrameKind, WriteMeta},
    write::{self, WriteRequest},
};
use crate::{FileTimeUnit, PendingWrite, Result, WriteOptions, Written, ingest::BYTE_ORDER_MARK};

impl Engine {
    /// Writes line protocol with the default settings and waits until it is as durable as the
    /// engine's options say.
    ///
    /// Timestamps are nanoseconds; a point without one gets the time of arrival. Bad lines are
    /// named in the receipt, the others are stored. The database is created by its first write.
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
    /// [`Busy`](crate::ErrorKind::Busy) when memory stays full;
    /// [`Closed`](crate::ErrorKind::Closed) once closed.
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
        self.submit(FrameKind::LineProtocol, database, None, without_mark(body), options)
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
    /// As [`write_lp`](Self::write_lp), and
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) for a body that cannot be read
    /// as a whole.
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
    /// The batch needs a column `time` without nulls. Rows append; see [`WriteOptions::tags`] for
    /// rows that merge.
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
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) for bad names or a bad time
    /// column; [`SchemaConflict`](crate::ErrorKind::SchemaConflict) where a column has another
    /// type; [`Busy`](crate::ErrorKind::Busy) and [`Closed`](crate::ErrorKind::Closed) as for line
    /// protocol.
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

    /// Checks whether a new table would take record batches of one schema, and stores nothing: for
    /// those who drop a table for them.
    ///
    /// # Errors
    ///
    /// As [`write_batch`](Self::write_batch).
    pub fn check_batches(
        &self,
        database: &str,
        table: &str,
        batches: &[RecordBatch],
        options: &WriteOptions,
    ) -> Result<()> {
        let meta = WriteMeta::new(database, Some(table), 0, options);
        let request = WriteRequest { kind: FrameKind::Arrow, body: write::arrow_body(batches)?, meta };
        self.writer()?.check_write(&request, options)
    }

    /// Decodes an Arrow IPC stream or file and queues it as one write, all or nothing, as
    /// [`submit_batches`](Self::submit_batches) does.
    ///
    /// Dictionaries and compressed buffers are fine. `body` is kept for the log, not copied; values
    /// are copied out of it once.
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
    /// As [`write_batch`](Self::write_batch), and
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) for a body that is damaged, cut
    /// off, or takes more memory than one write may once it is decompressed.
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
        let shared = self.writer()?;
        let (receive_ns, now_ns) = shared.receive_time(write::untimed_ns(&body), FileTimeUnit::Nanosecond);
        let clock_ns = (now_ns != receive_ns).then_some(now_ns);
        let meta = WriteMeta { clock_ns, ..WriteMeta::new(database, table, receive_ns, options) };
        shared.submit(WriteRequest { kind, body, meta }, options)
    }
}

/// Returns a text without the byte order mark that PowerShell and .NET put before one: it would be a part of the name of the
/// first measurement.
fn without_mark(text: Bytes) -> Bytes {
    match text.strip_prefix(BYTE_ORDER_MARK) {
        Some(rest) => text.slice_ref(rest),
        None => text,
    }
}
