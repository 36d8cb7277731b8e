//! The live databases and tables: what decoding checks against, writes fill and queries read.
//!
//! Owns the objects and who finds them by name. Never decides when something is registered:
//! `engine` does, under its schema lock and with the log, so that replay sees schema changes in the
//! same order.

mod column_index;
mod pending_drop;
mod series_cache;
mod shapes;
mod staging_buffer;

use std::{
    collections::BTreeMap,
    ops::{Deref, DerefMut},
    sync::{Arc, OnceLock, atomic::Ordering},
    time::Duration,
};

use arc_swap::ArcSwap;
use hashbrown::HashSet;

use crate::{
    ColumnTypes, Durability, Error, Result, SequenceNumber, Tombstone,
    buffer::{ChunkReader, SeriesIndex, TableBuffer, are_floats, live_rows},
    memory::MemoryBudget,
    model::{Column, ColumnStatistics, DataFile, TableSchema},
    sync::{AtomicBool, AtomicU64, Mutex, MutexGuard, RwLock, RwLockReadGuard},
    view::{BufferPart, TableView},
};

pub(crate) use column_index::ColumnIndex;
pub(crate) use pending_drop::{Flushable, PendingDrop};
pub(crate) use series_cache::{FoundSeries, SeriesCache};
pub(crate) use shapes::{Shape, Shapes, TableShape};
pub(crate) use staging_buffer::{ByTable, StagingBuffer};

/// Longest name in bytes.
const MAX_NAME_BYTES: usize = 256;

/// Checks a database, table or column name; `Err` says what was expected.
pub(crate) fn check_name(name: &str) -> Result<(), &'static str> {
    if name.is_empty() {
        Err("it is empty")
    } else if name.len() > MAX_NAME_BYTES {
        Err("it is longer than 256 bytes")
    } else if name.chars().any(char::is_control) {
        Err("it has a control character")
    } else {
        Ok(())
    }
}

/// Checks the name of a database.
pub(crate) fn check_database_name(name: &str) -> Result<(), &'static str> {
    if name.eq_ignore_ascii_case("information_schema") {
        return Err("it is the name of SQL's own tables");
    }
    check_name(name)
}

/// Names a bad name in an error without repeating all of it.
pub(crate) fn invalid_name(what: &'static str, name: &str, reason: &'static str) -> Error {
    Error::InvalidName { what, name: name.chars().take(64).collect(), reason }
}

/// All databases.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    databases: RwLock<BTreeMap<Arc<str>, Arc<Database>>>,
    /// Drops that the manifest was not told of yet, in order.
    pending_drops: Mutex<Vec<Arc<PendingDrop>>>,
    /// Most bytes of the series cache of each database, and what they are counted in, if there is a
    /// limit.
    series_cache_bytes: Option<(usize, Arc<MemoryBudget>)>,
}

impl Registry {
    /// Limits the series cache of each database, of those that come later, too.
    pub(crate) fn bound_series_caches(&mut self, bytes: usize, memory: &Arc<MemoryBudget>) {
        self.series_cache_bytes = Some((bytes, Arc::clone(memory)));
        self.databases().iter().for_each(|database| database.series_cache.write().bound(bytes, memory));
    }

    pub(crate) fn database(&self, name: &str) -> Option<Arc<Database>> {
        self.databases.read().get(name).cloned()
    }

    pub(crate) fn databases(&self) -> Vec<Arc<Database>> {
        self.databases.read().values().cloned().collect()
    }

    pub(crate) fn add(&self, database: Arc<Database>) {
        if let Some((bytes, memory)) = &self.series_cache_bytes {
            database.series_cache.write().bound(*bytes, memory);
        }
        self.databases.write().insert(Arc::clone(&database.name), database);
    }

    /// Returns all tables, also those that are dropped while the manifest has them.
    pub(crate) fn all_tables(&self) -> Vec<Arc<Table>> {
        // In this order, as in `flushable`: one that is dropped in between is in both lists, and is
        // returned once.
        let mut tables: Vec<Arc<Table>> = self.databases().iter().flat_map(|database| database.tables()).collect();
        let mut pending: Vec<Arc<Table>> =
            self.pending_drops.lock().iter().flat_map(|pending| pending.tables.clone()).collect();
        let known: HashSet<*const Table> = tables.iter().map(Arc::as_ptr).collect();
        pending.retain(|table| !known.contains(&Arc::as_ptr(table)));
        tables.append(&mut pending);
        tables
    }
}

/// One database.
#[derive(Debug)]
pub(crate) struct Database {
    pub(crate) name: Arc<str>,
    pub(crate) created_ns: i64,
    /// Whether the manifest has it.
    pub(crate) in_manifest: AtomicBool,
    /// Whether it was dropped: another of the same name is another database.
    pub(crate) dropped: AtomicBool,
    /// Of the tables that have none of their own.
    pub(crate) retention: Retention,
    /// Of the writes that do not say it themselves.
    pub(crate) durability: RwLock<Option<Durability>>,
    /// Of the tables that do not say it themselves.
    pub(crate) column_types: ArcSwap<ColumnTypes>,
    /// Whether it or a table of it ever had a unit of times, and a rule for finer ones.
    has_time_unit: AtomicBool,
    has_finer_times: AtomicBool,
    /// Goes up by one when columns are about to change their type, and by one when that is decided:
    /// what was decoded before is decoded again, and nothing is decoded in between.
    pub(crate) type_changes: AtomicU64,
    /// How often tables of it were dropped.
    pub(crate) drops: AtomicU64,
    tables: RwLock<BTreeMap<Arc<str>, Arc<Table>>>,
    /// What its tables share for their staged rows.
    pub(crate) staging: Arc<Staging>,
    pub(crate) series_cache: RwLock<SeriesCache>,
}

impl Database {
    pub(crate) fn new(name: &str, created_ns: i64, in_manifest: bool) -> Self {
        Self {
            name: name.into(),
            created_ns,
            in_manifest: AtomicBool::new(in_manifest),
            dropped: AtomicBool::new(false),
            retention: Retention::default(),
            durability: RwLock::default(),
            column_types: ArcSwap::default(),
            has_time_unit: AtomicBool::new(false),
            has_finer_times: AtomicBool::new(false),
            type_changes: AtomicU64::new(0),
            drops: AtomicU64::new(0),
            tables: RwLock::default(),
            staging: Arc::default(),
            series_cache: RwLock::default(),
        }
    }

    /// Sets how strict a table of it is about types and times, or the tables that do not say it
    /// themselves.
    pub(crate) fn set_column_types(&self, table: Option<&Table>, types: ColumnTypes) {
        if types.has_unit() {
            self.has_time_unit.store(true, Ordering::Relaxed);
        }
        if types.has_finer_times() {
            self.has_finer_times.store(true, Ordering::Relaxed);
        }
        table.map_or(&self.column_types, |table| &table.column_types).store(Arc::new(types));
    }

    /// Returns whether it or a table of it may have a unit of times, and a rule for finer ones,
    /// where what they leave out is as in `defaults`.
    pub(crate) fn has_units(&self, defaults: &ColumnTypes) -> (bool, bool) {
        (
            defaults.has_unit() || self.has_time_unit.load(Ordering::Relaxed),
            defaults.has_finer_times() || self.has_finer_times.load(Ordering::Relaxed),
        )
    }

    pub(crate) fn table(&self, name: &str) -> Option<Arc<Table>> {
        self.tables.read().get(name).cloned()
    }

    pub(crate) fn tables(&self) -> Vec<Arc<Table>> {
        self.tables.read().values().cloned().collect()
    }

    pub(crate) fn table_count(&self) -> usize {
        self.tables.read().len()
    }

    /// Returns the series cache for reading, without any series of a table that was dropped before
    /// this was called.
    pub(crate) fn fresh_series(&self) -> RwLockReadGuard<'_, SeriesCache> {
        loop {
            let cache = self.series_cache.read();
            if cache.drops() == self.drops.load(Ordering::Acquire) {
                return cache;
            }
            drop(cache);
            let mut cache = self.series_cache.write();
            let drops = self.drops.load(Ordering::Acquire);
            if cache.drops() != drops {
                cache.clear(drops);
            }
        }
    }

    pub(crate) fn add(&self, table: Arc<Table>) {
        let name = Arc::clone(&table.layout().schema.table);
        let mut tables = self.tables.write();
        let _ = table.staging.set(Arc::clone(&self.staging));
        table.find_shape();
        table.registered.store(true, Ordering::Release);
        tables.insert(name, table);
    }
}

/// What the tables of a database share for their staged rows.
#[derive(Debug, Default)]
pub(crate) struct Staging {
    pub(crate) shapes: Shapes,
    /// Rows that are not in the buffers yet.
    pub(crate) buffer: StagingBuffer,
}

/// A table's schema with an index of its columns by name.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) schema: Arc<TableSchema>,
    pub(crate) columns: Arc<ColumnIndex>,
}

impl Layout {
    pub(crate) fn new(schema: Arc<TableSchema>) -> Self {
        let columns = schema.columns.iter().map(|column| Arc::clone(&column.name)).collect();
        Self { schema, columns: Arc::new(columns) }
    }
}

/// One table.
#[derive(Debug)]
pub(crate) struct Table {
    layout: ArcSwap<Layout>,
    pub(crate) series: Arc<RwLock<SeriesIndex>>,
    rows: Mutex<TableRows>,
    /// What its staged rows look like, if it may have any.
    pub(crate) shape: TableShape,
    /// That of its database, once it has one.
    staging: OnceLock<Arc<Staging>>,
    /// Whether the schema has changed since the manifest was last told.
    pub(crate) schema_changed: AtomicBool,
    /// Whether its database has it, or had it before it was dropped.
    registered: AtomicBool,
    /// Whether it was dropped: another of the same name is another table.
    dropped: AtomicBool,
    pub(crate) retention: Retention,
    pub(crate) column_types: ArcSwap<ColumnTypes>,
    /// The schema that the manifest has: no file has columns of a wider type.
    pub(crate) committed: ArcSwap<TableSchema>,
    /// Columns of integers that are known to have some which no float is.
    beyond_floats: Mutex<HashSet<usize>>,
}

/// Where the rows of a table are, but for staged ones.
#[derive(Debug)]
pub(crate) struct TableRows {
    pub(crate) buffer: TableBuffer,
    pub(crate) stored: StoredRows,
}

/// The rows of a table that are in files, and which of them are deleted.
#[derive(Debug)]
pub(crate) struct StoredRows {
    pub(crate) files: Vec<Arc<DataFile>>,
    /// Deletes that are not yet carried out in all files, in order.
    pub(crate) tombstones: Vec<Arc<Tombstone>>,
    /// Up to where the manifest has them, too.
    pub(crate) tombstones_flushed: SequenceNumber,
}

impl TableRows {
    /// Takes the rows at hand away, with a delete's place in the log: no buffer has rows from
    /// before and after it.
    pub(crate) fn delete(&mut self, tombstone: Arc<Tombstone>) -> Result<()> {
        self.buffer.freeze()?;
        self.stored.tombstones.push(tombstone);
        Ok(())
    }
}

impl StoredRows {
    /// Returns the deletes that the manifest has, too: those that may be carried out in files.
    pub(crate) fn flushed_tombstones(&self) -> Vec<Arc<Tombstone>> {
        let flushed = |tombstone: &&Arc<Tombstone>| tombstone.seq <= self.tombstones_flushed;
        self.tombstones.iter().filter(flushed).cloned().collect()
    }
}

/// The lock of a table, through which only what is in files can be seen.
pub(crate) struct Stored<'t>(MutexGuard<'t, TableRows>);

impl Deref for Stored<'_> {
    type Target = StoredRows;

    fn deref(&self) -> &StoredRows {
        &self.0.stored
    }
}

impl DerefMut for Stored<'_> {
    fn deref_mut(&mut self) -> &mut StoredRows {
        &mut self.0.stored
    }
}

impl Table {
    /// Makes a table that has no rows yet.
    pub(crate) fn new(schema: TableSchema) -> Self {
        Self::with_files(Arc::new(schema), Vec::new(), true)
    }

    /// Makes a table as the manifest has it.
    pub(crate) fn with_files(schema: Arc<TableSchema>, files: Vec<Arc<DataFile>>, schema_changed: bool) -> Self {
        let newest = files.iter().map(|file| file.max_time).max();
        Self {
            committed: ArcSwap::new(Arc::clone(&schema)),
            beyond_floats: Mutex::default(),
            layout: ArcSwap::from_pointee(Layout::new(schema)),
            series: Arc::default(),
            rows: Mutex::new(TableRows {
                buffer: TableBuffer::new(newest),
                stored: StoredRows { files, tombstones: Vec::new(), tombstones_flushed: SequenceNumber(0) },
            }),
            shape: TableShape::default(),
            staging: OnceLock::new(),
            schema_changed: AtomicBool::new(schema_changed),
            registered: AtomicBool::new(false),
            dropped: AtomicBool::new(false),
            retention: Retention::default(),
            column_types: ArcSwap::default(),
        }
    }

    /// Locks the rows, once all that were applied are in the buffer.
    ///
    /// # Errors
    ///
    /// As [`StagingBuffer::drain`].
    pub(crate) fn rows(&self) -> Result<MutexGuard<'_, TableRows>> {
        self.staging.get().map_or(Ok(()), |staging| staging.buffer.drain())?;
        Ok(self.rows.lock())
    }

    /// Locks the rows as they are, where further ones may be staged: for those who put rows into
    /// the buffer, or take away what is flushed.
    pub(crate) fn undrained_rows(&self) -> MutexGuard<'_, TableRows> {
        self.rows.lock()
    }

    /// Locks what is known of the rows in files.
    pub(crate) fn stored(&self) -> Stored<'_> {
        Stored(self.rows.lock())
    }

    fn find_shape(&self) {
        if let Some(staging) = self.staging.get() {
            let layout = self.layout.load();
            self.shape.set(&staging.shapes, &layout.schema, &layout.columns);
        }
    }

    pub(crate) fn is_registered(&self) -> bool {
        self.registered.load(Ordering::Acquire)
    }

    pub(crate) fn is_dropped(&self) -> bool {
        self.dropped.load(Ordering::Acquire)
    }

    pub(crate) fn layout(&self) -> Arc<Layout> {
        self.layout.load_full()
    }

    pub(crate) fn schema(&self) -> Arc<TableSchema> {
        Arc::clone(&self.layout.load().schema)
    }

    /// Puts a grown schema in place.
    pub(crate) fn set_schema(&self, schema: Arc<TableSchema>) {
        self.layout.store(Arc::new(Layout::new(schema)));
        self.find_shape();
        self.schema_changed.store(true, Ordering::Release);
    }

    /// Returns whether a column of integers is known to have some that no float is.
    pub(crate) fn is_beyond_floats(&self, column: usize) -> bool {
        self.beyond_floats.lock().contains(&column)
    }

    /// Looks at all of a column's integers, those in files by their bounds; returns whether each of
    /// them is a float, too.
    pub(crate) fn fits_floats(&self, column: usize) -> Result<bool> {
        let schema = self.schema();
        let Some(Column { name, .. }) = schema.columns.get(column) else { return Ok(false) };
        let (parts, files) = {
            let mut rows = self.rows()?;
            (rows.buffer.snapshot()?, rows.stored.files.clone())
        };
        let mut in_files = files.iter().filter_map(|file| file.columns.iter().find(|known| *known.name == **name));
        let mut arrays = parts.iter().flat_map(|part| &part.chunks).filter_map(|chunk| chunk.column(column));
        let fits = in_files.all(ColumnStatistics::fits_floats) && arrays.all(are_floats);
        if !fits {
            self.beyond_floats.lock().insert(column);
        }
        Ok(fits)
    }

    /// Lets queries read other files from now on: `made` instead of `gone`, in one step.
    pub(crate) fn replace_files(&self, gone: &[Arc<DataFile>], made: &[Arc<DataFile>]) {
        let gone: HashSet<&str> = gone.iter().map(|file| file.path.as_str()).collect();
        let mut stored = self.stored();
        stored.files.retain(|file| !gone.contains(file.path.as_str()));
        stored.files.extend(made.iter().cloned());
    }

    /// Returns the table as a query reads it.
    pub(crate) fn view(&self) -> Result<TableView> {
        let (parts, files, tombstones) = {
            let mut rows = self.rows()?;
            (rows.buffer.snapshot()?, rows.stored.files.clone(), rows.stored.tombstones.clone())
        };
        // Taken after the rows, so that no row has a column that the schema lacks.
        let schema = self.schema();
        let reader = ChunkReader::new(Arc::clone(&schema), Arc::clone(&self.series));
        let mut buffers = Vec::new();
        for part in parts {
            for chunk in &part.chunks {
                let due = tombstones
                    .iter()
                    .filter(|tombstone| tombstone.applies_to_rows(part.max_seq, chunk.min_time, chunk.max_time));
                let rows = live_rows(reader.rows(chunk), due)?;
                // Taken for exact by queries, so a deleted row must not count.
                let times = if rows.len() < chunk.len() { time_range(&rows.times()) } else { None };
                let (min_time, max_time) = times.unwrap_or((chunk.min_time, chunk.max_time));
                buffers.push(BufferPart { rows, min_time, max_time, late: part.late });
            }
        }
        Ok(TableView { schema, files, buffers, tombstones })
    }
}

/// Returns the oldest and the newest of some times.
fn time_range(times: &[i64]) -> Option<(i64, i64)> {
    Some((times.iter().copied().min()?, times.iter().copied().max()?))
}

/// How long rows are kept; nothing set by default. The manifest has it as well.
#[derive(Debug, Default)]
pub(crate) struct Retention {
    /// Nanoseconds, 0 where nothing is set.
    ns: AtomicU64,
}

impl Retention {
    pub(crate) fn set_ns(&self, ns: Option<u64>) {
        self.ns.store(ns.unwrap_or(0), Ordering::Release);
    }

    pub(crate) fn ns(&self) -> Option<u64> {
        Some(self.ns.load(Ordering::Acquire)).filter(|ns| *ns > 0)
    }

    pub(crate) fn duration(&self) -> Option<Duration> {
        self.ns().map(Duration::from_nanos)
    }

    /// Returns this one if it is set, and else the other.
    pub(crate) fn or<'a>(&'a self, other: &'a Self) -> &'a Self {
        if self.ns().is_some() { self } else { other }
    }

    /// Returns the oldest time that is kept now, or `None` where all are.
    pub(crate) fn oldest_ns(&self, now_ns: i64) -> Option<i64> {
        self.ns().map(|ns| now_ns.saturating_sub_unsigned(ns))
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::DataType;

    use super::*;
    use crate::model::ColumnKind;

    #[test]
    fn names_are_checked_with_a_reason() {
        let long = "x".repeat(257);
        let cases =
            [("ok", true), ("a/b..", true), ("😀 x", true), ("", false), ("a\0", false), (long.as_str(), false)];
        for (name, good) in cases {
            assert_eq!(check_name(name).is_ok(), good, "{name:?}");
        }
    }

    #[test]
    fn a_column_that_is_no_float_is_remembered_once() {
        use crate::buffer::{Rows, Scalar};

        let column = |name: &str| Column { name: name.into(), kind: ColumnKind::Field, data_type: DataType::Int64 };
        let columns = vec![column("a"), column("b")];
        let table =
            Table::new(TableSchema { database: "d".into(), table: "t".into(), has_primary_key: false, columns });
        let mut rows = Rows::default();
        rows.set(1, &DataType::Int64, Scalar::Integer((1 << 53) + 1)).unwrap();
        rows.end_row(1, None);
        table.undrained_rows().buffer.append(SequenceNumber(1), rows).unwrap();
        for _ in 0..3 {
            assert!(table.fits_floats(0).unwrap() && !table.fits_floats(1).unwrap());
        }
        assert!(!table.is_beyond_floats(0) && table.is_beyond_floats(1));
        assert_eq!(table.beyond_floats.lock().len(), 1);
    }
}
