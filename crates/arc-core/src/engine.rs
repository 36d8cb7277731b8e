//! The public handle.

use std::{path::Path, sync::Arc};

use arrow::array::RecordBatch;
use bytes::Bytes;

use crate::{
    Durability, Error, Options, PendingWrite, Result, WriteOptions, Written, catalog::TableSchema, clock::Clock,
    vfs::Vfs,
};

/// The engine: cheap to clone, every clone is the same engine.
#[derive(Debug, Clone)]
pub struct Engine {}

/// Settings and parts of an engine before it is opened.
#[derive(Debug)]
pub struct EngineBuilder {}

impl EngineBuilder {
    /// Sets all settings at once.
    #[must_use]
    pub fn options(self, options: Options) -> Self {
        drop(options);
        self
    }
    /// Sets durability.
    #[must_use]
    pub fn durability(self, durability: Durability) -> Self {
        let _ = durability;
        self
    }
    /// Sets the file system (a part, not a setting).
    #[must_use]
    pub fn vfs(self, vfs: Arc<dyn Vfs>) -> Self {
        drop(vfs);
        self
    }
    /// Sets the clock.
    #[must_use]
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        drop(clock);
        self
    }
    /// Opens.
    pub fn open(self) -> Result<Engine> {
        Ok(Engine {})
    }
}

/// A database.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DatabaseInfo {
    /// Name.
    pub name: String,
    /// Number of tables.
    pub tables: usize,
    /// When it was created, nanoseconds since the epoch.
    pub created_ns: i64,
}

/// A table.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TableInfo {
    /// Its columns.
    pub schema: Arc<TableSchema>,
    /// Number of live data files.
    pub files: usize,
    /// Bytes of the live data files.
    pub file_bytes: u64,
    /// Rows in the live data files.
    pub file_rows: u64,
    /// Rows not yet flushed.
    pub buffered_rows: u64,
}

/// What one flush did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlushReport {
    /// Rows written to data files.
    pub rows: u64,
    /// Paths of the new data files, below the data directory.
    pub files: Vec<String>,
}

/// Counters since the engine was opened, and gauges.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EngineStats {
    /// Writes accepted.
    pub writes: u64,
    /// Points stored.
    pub points: u64,
    /// Points refused.
    pub rejected_points: u64,
    /// Body bytes accepted.
    pub bytes: u64,
    /// Flushes that ended well.
    pub flushes: u64,
    /// Flushes that failed.
    pub flush_failures: u64,
    /// Rows in buffers now.
    pub buffered_rows: u64,
    /// Bytes in buffers now.
    pub buffered_bytes: u64,
    /// Writes waiting for the log now.
    pub queued_writes: u64,
    /// Frames replayed on open.
    pub replayed_frames: u64,
    /// Points replayed on open.
    pub replayed_points: u64,
    /// Bytes of log not yet released.
    pub wal_bytes: u64,
    /// Live data files.
    pub files: u64,
    /// Their bytes.
    pub file_bytes: u64,
}

impl Engine {
    /// Opens.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::builder(path).open()
    }
    /// Builder.
    pub fn builder(path: impl AsRef<Path>) -> EngineBuilder {
        let _ = path.as_ref();
        EngineBuilder {}
    }
    /// Writes line protocol.
    pub fn write_lp(&self, database: &str, body: &[u8]) -> Result<Written> {
        self.submit_lp(database, Bytes::copy_from_slice(body), &WriteOptions::new())?.wait()
    }
    /// Line protocol: decodes and queues.
    pub fn submit_lp(&self, database: &str, body: Bytes, options: &WriteOptions) -> Result<PendingWrite> {
        let _ = (database, body, options);
        Err(Error::internal("not built"))
    }
    /// Writes MessagePack.
    pub fn write_msgpack(&self, database: &str, body: &[u8]) -> Result<Written> {
        self.submit_msgpack(database, Bytes::copy_from_slice(body), &WriteOptions::new())?.wait()
    }
    /// MessagePack: decodes and queues.
    pub fn submit_msgpack(&self, database: &str, body: Bytes, options: &WriteOptions) -> Result<PendingWrite> {
        let _ = (database, body, options);
        Err(Error::internal("not built"))
    }
    /// Writes a batch.
    pub fn write_batch(&self, database: &str, table: &str, batch: &RecordBatch) -> Result<Written> {
        self.submit_batches(database, table, std::slice::from_ref(batch), &WriteOptions::new())?.wait()
    }
    /// Record batches of one schema: checks and queues, all or nothing.
    pub fn submit_batches(
        &self,
        database: &str,
        table: &str,
        batches: &[RecordBatch],
        options: &WriteOptions,
    ) -> Result<PendingWrite> {
        let _ = (database, table, batches, options);
        Err(Error::internal("not built"))
    }
    /// Flushes.
    pub fn flush(&self) -> Result<FlushReport> {
        Ok(FlushReport::default())
    }
    /// Flushes and closes; later calls on any clone fail with Closed.
    pub fn close(&self) -> Result<()> {
        Ok(())
    }
    /// Databases by name.
    #[must_use]
    pub fn databases(&self) -> Vec<DatabaseInfo> {
        Vec::new()
    }
    /// Creates a database.
    pub fn create_database(&self, database: &str) -> Result<()> {
        let _ = database;
        Ok(())
    }
    /// Tables by name.
    pub fn tables(&self, database: &str) -> Result<Vec<TableInfo>> {
        let _ = database;
        Ok(Vec::new())
    }
    /// Live data files of a table.
    pub fn data_files(&self, database: &str, table: &str) -> Result<Vec<Arc<crate::datafile::DataFile>>> {
        let _ = (database, table);
        Ok(Vec::new())
    }
    /// Path of the data directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        Path::new(".")
    }
    /// Counters.
    #[must_use]
    pub fn stats(&self) -> EngineStats {
        EngineStats::default()
    }
}
