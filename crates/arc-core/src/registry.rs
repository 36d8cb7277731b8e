//! The live databases and tables: what decoding checks against, writes fill and queries read.
//!
//! Owns the objects and who finds them by name. Never decides when something is registered: `engine` does, under its
//! schema lock and with the log, so that replay sees schema changes in the same order.

use std::{
    collections::BTreeMap,
    hash::BuildHasher,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashSet, HashTable};
use parking_lot::{Mutex, RwLock};

use crate::{
    Error, Result,
    buffer::{SeriesId, SeriesIndex, TableBuffer},
    catalog::TableSchema,
    datafile::DataFile,
    view::{BufferPart, TableView},
};

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
}

impl Registry {
    pub(crate) fn database(&self, name: &str) -> Option<Arc<Database>> {
        self.databases.read().get(name).cloned()
    }

    pub(crate) fn databases(&self) -> Vec<Arc<Database>> {
        self.databases.read().values().cloned().collect()
    }

    pub(crate) fn add(&self, database: Arc<Database>) {
        self.databases.write().insert(Arc::clone(&database.name), database);
    }

    pub(crate) fn all_tables(&self) -> Vec<Arc<Table>> {
        self.databases().iter().flat_map(|database| database.tables()).collect()
    }
}

/// One database.
#[derive(Debug)]
pub(crate) struct Database {
    pub(crate) name: Arc<str>,
    pub(crate) created_ns: i64,
    /// Whether the manifest has it.
    pub(crate) in_manifest: AtomicBool,
    /// Of the tables that have none of their own.
    pub(crate) retention: Retention,
    tables: RwLock<BTreeMap<Arc<str>, Arc<Table>>>,
    pub(crate) series_cache: RwLock<SeriesCache>,
}

impl Database {
    pub(crate) fn new(name: &str, created_ns: i64, in_manifest: bool) -> Self {
        Self {
            name: name.into(),
            created_ns,
            in_manifest: AtomicBool::new(in_manifest),
            retention: Retention::default(),
            tables: RwLock::default(),
            series_cache: RwLock::default(),
        }
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

    pub(crate) fn add(&self, table: Arc<Table>) {
        let name = Arc::clone(&table.layout().schema.table);
        self.tables.write().insert(name, table);
    }
}

/// A table's schema with an index of its columns by name.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) schema: Arc<TableSchema>,
    by_name: HashMap<Arc<str>, usize, FixedState>,
}

impl Layout {
    pub(crate) fn new(schema: Arc<TableSchema>) -> Self {
        let by_name = schema.columns.iter().enumerate().map(|(i, c)| (Arc::clone(&c.name), i)).collect();
        Self { schema, by_name }
    }

    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }
}

/// One table.
#[derive(Debug)]
pub(crate) struct Table {
    layout: ArcSwap<Layout>,
    pub(crate) series: RwLock<SeriesIndex>,
    pub(crate) rows: Mutex<TableRows>,
    /// Whether the schema has changed since the manifest was last told.
    pub(crate) schema_changed: AtomicBool,
    pub(crate) retention: Retention,
}

/// Where the rows of a table are.
#[derive(Debug)]
pub(crate) struct TableRows {
    pub(crate) buffer: TableBuffer,
    pub(crate) files: Vec<Arc<DataFile>>,
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
            layout: ArcSwap::from_pointee(Layout::new(schema)),
            series: RwLock::default(),
            rows: Mutex::new(TableRows { buffer: TableBuffer::new(newest), files }),
            schema_changed: AtomicBool::new(schema_changed),
            retention: Retention::default(),
        }
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
        self.schema_changed.store(true, Ordering::Release);
    }

    /// Lets queries read other files from now on: `made` instead of `gone`, in one step.
    pub(crate) fn replace_files(&self, gone: &[Arc<DataFile>], made: &[Arc<DataFile>]) {
        let gone: HashSet<&str> = gone.iter().map(|file| file.path.as_str()).collect();
        let mut rows = self.rows.lock();
        rows.files.retain(|file| !gone.contains(file.path.as_str()));
        rows.files.extend(made.iter().cloned());
    }

    /// Returns the table as a query reads it.
    pub(crate) fn view(&self) -> Result<TableView> {
        let (parts, files) = {
            let rows = self.rows.lock();
            (rows.buffer.snapshot()?, rows.files.clone())
        };
        // Taken after the rows, so that no row has a column that the schema lacks.
        let schema = self.schema();
        let series = self.series.read();
        let mut buffers = Vec::new();
        for part in parts {
            for chunk in &part.chunks {
                buffers.push(BufferPart {
                    batch: chunk.to_batch(&schema, &series)?,
                    min_time: chunk.min_time,
                    max_time: chunk.max_time,
                    late: part.late,
                });
            }
        }
        Ok(TableView { schema, files, buffers })
    }
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

/// Number of entries at which the cache starts anew; a series costs about its key and 40 bytes.
const MAX_CACHED_SERIES: usize = 1 << 20;

/// Finds (table, series) by the raw bytes that name them in line protocol, so that known tags are not parsed again.
///
/// Only keyed tables are in it, for only they have series.
#[derive(Debug, Default)]
pub(crate) struct SeriesCache {
    by_key: HashTable<u32>,
    entries: Vec<CachedSeries>,
    keys: Vec<u8>,
    tables: Vec<Arc<Table>>,
    hasher: FixedState,
}

#[derive(Debug)]
struct CachedSeries {
    hash: u64,
    start: usize,
    len: usize,
    table: u32,
    series: SeriesId,
}

impl SeriesCache {
    fn key(&self, entry: &CachedSeries) -> &[u8] {
        self.keys.get(entry.start..entry.start + entry.len).unwrap_or(&[])
    }

    pub(crate) fn get(&self, key: &[u8]) -> Option<(&Arc<Table>, SeriesId)> {
        let same = |i: &u32| self.entries.get(*i as usize).is_some_and(|entry| self.key(entry) == key);
        let entry = self.entries.get(*self.by_key.find(self.hasher.hash_one(key), same)? as usize)?;
        Some((self.tables.get(entry.table as usize)?, entry.series))
    }

    pub(crate) fn insert(&mut self, key: &[u8], table: &Arc<Table>, series: SeriesId) {
        if self.get(key).is_some() {
            return;
        }
        if self.entries.len() >= MAX_CACHED_SERIES {
            *self = Self::default();
        }
        let known = self.tables.iter().rposition(|known| Arc::ptr_eq(known, table));
        let at = known.unwrap_or_else(|| {
            self.tables.push(Arc::clone(table));
            self.tables.len() - 1
        });
        let (Ok(id), Ok(table)) = (u32::try_from(self.entries.len()), u32::try_from(at)) else { return };
        let hash = self.hasher.hash_one(key);
        self.entries.push(CachedSeries { hash, start: self.keys.len(), len: key.len(), table, series });
        self.keys.extend_from_slice(key);
        let entries = &self.entries;
        self.by_key.insert_unique(hash, id, |i| entries.get(*i as usize).map_or(0, |entry| entry.hash));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn cached_series_are_found_by_their_exact_bytes() {
        let schema = TableSchema { database: "d".into(), table: "t".into(), keyed: true, columns: Vec::new() };
        let table = Arc::new(Table::new(schema));
        let mut cache = SeriesCache::default();
        for i in 0..1000u32 {
            cache.insert(format!("t,host={i}").as_bytes(), &table, i);
        }
        cache.insert(b"t,host=5", &table, 9999);
        assert_eq!(cache.get(b"t,host=5").map(|(_, series)| series), Some(5));
        assert!(cache.get(b"t,host=1000").is_none());
        assert!(cache.get(b"").is_none());
    }
}
