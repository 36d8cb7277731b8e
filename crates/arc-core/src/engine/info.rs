//! What the engine has: databases, tables, files, counters.

use std::{sync::Arc, time::Duration};

use super::{Engine, EngineRole, EngineStats};
use crate::{
    ColumnTypes, Durability, Error, Result, TableView,
    memory::Pressure,
    model::{DataFile, TableSchema},
    registry::{Database, Registry},
};

/// A database.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DatabaseInfo {
    /// Its name.
    pub name: String,
    /// Number of tables.
    pub tables: usize,
    /// When it was created, in nanoseconds since the epoch.
    pub created_ns: i64,
    /// How long rows of its tables are kept, unless a table has its own; `None` for ever.
    pub retention: Option<Duration>,
    /// What its writes promise where they do not say it themselves, if it has a setting of its own.
    pub durability: Option<Durability>,
    /// How strict its tables are about types, as far as it says that itself.
    pub column_types: ColumnTypes,
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
    /// How long its rows are kept, by its own setting or its database's; `None` for ever.
    pub retention: Option<Duration>,
    /// How strict it is about types, by its own setting, its database's or the engine's.
    pub column_types: ColumnTypes,
}

impl Engine {
    /// Returns all databases, by name.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// for database in engine.databases() {
    ///     println!("{} has {} tables", database.name, database.tables);
    /// }
    /// # assert_eq!(engine.databases()[0].name, "plant");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn databases(&self) -> Vec<DatabaseInfo> {
        infos(&self.registry_now())
    }

    /// Returns all databases, by name; of a reader those of its last look, as
    /// [`stats`](Self::stats) counts them. Touches no file.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("data");
    /// use arc_core::Engine;
    ///
    /// let writer = Engine::open(&path)?; // as in another process
    /// let reader = Engine::open_reader(&path)?;
    /// writer.create_database("plant")?;
    /// assert_eq!(reader.databases_last_seen().len(), 0);
    /// assert_eq!(reader.databases().len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn databases_last_seen(&self) -> Vec<DatabaseInfo> {
        infos(&self.registry_last_seen())
    }

    /// Returns the tables of a database, by name.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// let tables = engine.tables("plant")?;
    /// assert_eq!(tables[0].schema.table.as_ref(), "pump");
    /// assert_eq!((tables[0].buffered_rows, tables[0].file_rows), (1, 0));
    /// engine.flush()?;
    /// let tables = engine.tables("plant")?;
    /// assert_eq!((tables[0].buffered_rows, tables[0].file_rows), (0, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) if there is no such database.
    pub fn tables(&self, database: &str) -> Result<Vec<TableInfo>> {
        let database = self.database(database)?;
        let info = |table: Arc<crate::registry::Table>| {
            let buffered_rows = buffered_rows(&table);
            let stored = table.stored();
            TableInfo {
                schema: table.schema(),
                files: stored.files.len(),
                file_bytes: stored.files.iter().map(|file| file.bytes).sum(),
                file_rows: stored.files.iter().map(|file| file.rows).sum(),
                buffered_rows,
                retention: table.retention.or(&database.retention).duration(),
                column_types: ColumnTypes::clone(&table.column_types.load())
                    .or(&database.column_types.load())
                    .or(&self.options().column_types),
            }
        };
        Ok(database.tables().into_iter().map(info).collect())
    }

    /// Returns the columns of a table.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// let schema = engine.schema("plant", "pump")?;
    /// let names: Vec<&str> = schema.columns.iter().map(|column| column.name.as_ref()).collect();
    /// assert_eq!(names, ["rpm", "id"]); // in the order in which they were met
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) if there is no such database or table.
    pub fn schema(&self, database: &str, table: &str) -> Result<Arc<TableSchema>> {
        Ok(self.table(database, table)?.schema())
    }

    /// Returns the live data files of a table, in the order in which they were added. Holding them
    /// keeps them on disk; one that is replaced meanwhile moves, to its
    /// [`past_path`](DataFile::past_path).
    ///
    /// Of a table with few rows among many tables they may lie in packs: see [`DataFile::packed`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// engine.flush()?;
    /// for file in engine.data_files("plant", "pump")? {
    ///     println!("{}: {} rows from {} to {}", file.path, file.rows, file.min_time, file.max_time);
    /// }
    /// # assert_eq!(engine.data_files("plant", "pump")?.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) if there is no such database or table.
    pub fn data_files(&self, database: &str, table: &str) -> Result<Vec<Arc<DataFile>>> {
        Ok(self.table(database, table)?.stored().files.clone())
    }

    /// Returns a table at this moment: its data files and its unflushed rows, which no flush takes
    /// from the caller.
    ///
    /// Costs a copy of at most 64 Ki rows, those that came last. Rows are as they arrived: versions
    /// of one point are not merged (see [`BufferPart::late`](crate::BufferPart::late)).
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// let view = engine.view("plant", "pump")?;
    /// let in_files: u64 = view.files.iter().map(|file| file.rows).sum();
    /// let in_memory: usize = view.buffers.iter().map(|part| part.row_count()).sum();
    /// assert_eq!((in_files, in_memory), (0, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) if there is no such database or table.
    pub fn view(&self, database: &str, table: &str) -> Result<TableView> {
        self.table(database, table)?.view()
    }

    /// Returns the counters since the engine was opened, and the gauges of now; of a reader those of
    /// the last look, for being counted is not worth one.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// let stats = engine.stats();
    /// assert_eq!((stats.points, stats.tables, stats.series), (1, 1, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn stats(&self) -> EngineStats {
        let registry = self.registry_last_seen();
        let (mut stats, memory) = match &self.inner.role {
            EngineRole::Writer(shared) => {
                let mut stats = shared.counters.read();
                stats.queued_writes = shared.queue.writes() as u64;
                stats.replayed_writes = shared.keys.replayed();
                let (retired_files, retired_bytes) = shared.retired.totals();
                (stats.retired_files, stats.retired_bytes) = (retired_files as u64, retired_bytes);
                stats.snapshots = shared.past.snapshot_count() as u64;
                stats.history_log_bytes = shared.log.released_bytes();
                (stats, &shared.memory)
            }
            EngineRole::Reader(reader) => (EngineStats::default(), &reader.memory),
        };
        #[cfg(feature = "query")]
        if let Some(query) = &*self.inner.query.lock() {
            let (planning, abandoned) = query.planning();
            (stats.planning, stats.planning_abandoned) = (planning as u64, abandoned as u64);
            stats.ended_queries = query.ended();
        }
        stats.memory_bytes = memory.used() as u64;
        stats.memory_peak_bytes = memory.peak() as u64;
        stats.memory_limit_bytes = memory.limit() as u64;
        for database in registry.databases() {
            stats.databases += 1;
            stats.memory_databases += u64::from(*database.durability.read() == Some(Durability::Memory));
            stats.tables += database.table_count() as u64;
        }
        for table in registry.all_tables() {
            let (series, bytes) = table.series.read().size();
            stats.series += series;
            stats.series_bytes += bytes;
            stats.buffered_rows += buffered_rows(&table);
            let stored = table.stored();
            stats.pending_deletes += stored.tombstones.len() as u64;
            stats.files += stored.files.len() as u64;
            stats.file_bytes += stored.files.iter().map(|file| file.bytes).sum::<u64>();
        }
        stats
    }

    /// Returns why no more points are taken until the directory is opened again, if it has come to
    /// that: the engine is closed, a sync of the log or the manifest has failed, another writer has
    /// the object store.
    ///
    /// Says so from the moment on, whichever thread it happens to.
    /// Memory or a disk that is full for now is something else.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// assert_eq!(engine.closed_to_writes(), None);
    /// engine.close()?;
    /// assert_eq!(engine.closed_to_writes().as_deref(), Some("the engine is closed"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn closed_to_writes(&self) -> Option<String> {
        match &self.inner.role {
            EngineRole::Writer(shared) => shared.queue.closed(),
            EngineRole::Reader(_) => self.inner.lock.lock().is_none().then(|| "the engine is closed".to_owned()),
        }
    }

    /// Returns whether the process is so near to [`Options::max_resident_bytes`] that queries and
    /// writes that begin have to wait, and the largest query ends.
    ///
    /// [`Options::max_resident_bytes`]: crate::Options::max_resident_bytes
    #[must_use]
    pub fn is_short_of_memory(&self) -> bool {
        let memory = match &self.inner.role {
            EngineRole::Writer(shared) => &shared.memory,
            EngineRole::Reader(reader) => &reader.memory,
        };
        memory.pressure() == Pressure::Critical
    }

    pub(super) fn database(&self, database: &str) -> Result<Arc<Database>> {
        let found = self.registry()?.database(database);
        found.ok_or_else(|| Error::DatabaseNotFound { database: database.to_owned() })
    }

    pub(super) fn table(&self, database: &str, table: &str) -> Result<Arc<crate::registry::Table>> {
        let not_found = || Error::TableNotFound { database: database.to_owned(), table: table.to_owned() };
        self.database(database)?.table(table).ok_or_else(not_found)
    }
}

fn infos(registry: &Registry) -> Vec<DatabaseInfo> {
    let info = |db: Arc<Database>| DatabaseInfo {
        name: db.name.to_string(),
        tables: db.table_count(),
        created_ns: db.created_ns,
        retention: db.retention.duration(),
        durability: *db.durability.read(),
        column_types: ColumnTypes::clone(&db.column_types.load()),
    };
    registry.databases().into_iter().map(info).collect()
}

/// Counts the rows that are not flushed. The next write and flush fail by what could not be
/// applied.
fn buffered_rows(table: &crate::registry::Table) -> u64 {
    let rows = table.rows().unwrap_or_else(|error| {
        tracing::debug!(%error, "rows are missing from a count");
        table.undrained_rows()
    });
    rows.buffer.rows() as u64
}
