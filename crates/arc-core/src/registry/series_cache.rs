//! Series by the bytes that name them in line protocol.
//!
//! Owns the keys and how they are found. Never parses one, never decides what a key means: a series that was resolved from
//! its tags is put here, so that the next line of the same bytes need not be split.

use std::{hash::BuildHasher, sync::Arc};

use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashTable};

use super::Table;
use crate::buffer::SeriesId;

/// Number of entries at which the cache starts anew; a series costs about its key and 40 bytes.
const MAX_CACHED_SERIES: usize = 1 << 20;

/// Finds (table, series) by the raw bytes that name them in line protocol, so that known tags are not parsed again.
///
/// Only keyed tables are in it, for only they have series.
#[derive(Debug)]
pub(crate) struct SeriesCache {
    by_key: HashTable<u32>,
    entries: Vec<CachedSeries>,
    keys: Vec<u8>,
    /// Rows of requests that are under way say their tables by their places here.
    tables: Arc<Vec<Arc<Table>>>,
    /// Places of tables, by their addresses.
    places: HashMap<usize, u32, FixedState>,
    hasher: FixedState,
    max_bytes: usize,
}

impl Default for SeriesCache {
    fn default() -> Self {
        Self {
            by_key: HashTable::new(),
            entries: Vec::new(),
            keys: Vec::new(),
            tables: Arc::default(),
            places: HashMap::default(),
            hasher: FixedState::default(),
            max_bytes: usize::MAX,
        }
    }
}

/// What a key stands for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FoundSeries<'c> {
    pub(crate) table: &'c Arc<Table>,
    /// Place of the table among those of the cache.
    pub(crate) place: usize,
    pub(crate) series: SeriesId,
    /// A guess at the entry of the next key.
    pub(crate) next: usize,
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
    /// Has it start anew once it takes `max_bytes`; at [`MAX_CACHED_SERIES`] it does in any case.
    pub(crate) fn bound(&mut self, max_bytes: usize) {
        self.max_bytes = max_bytes;
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        *self = Self { max_bytes: self.max_bytes, ..Self::default() };
    }

    fn is_full(&self) -> bool {
        let entries = self.entries.len() * (size_of::<CachedSeries>() + size_of::<u32>() + 1);
        self.entries.len() >= MAX_CACHED_SERIES || entries + self.keys.len() >= self.max_bytes
    }

    #[inline(always)]
    fn key(&self, entry: &CachedSeries) -> &[u8] {
        self.keys.get(entry.start..entry.start + entry.len).unwrap_or(&[])
    }

    /// Returns the series of `key`, looking at the entry `guess` first. Agents send their series in the same order
    /// again and again, which is the order in which they came here first.
    #[inline(always)]
    pub(crate) fn get(&self, key: &[u8], guess: usize) -> Option<FoundSeries<'_>> {
        let at = match self.entries.get(guess) {
            Some(entry) if self.key(entry) == key => guess,
            _ => self.find(key)?,
        };
        let entry = self.entries.get(at)?;
        let place = entry.table as usize;
        Some(FoundSeries { table: self.tables.get(place)?, place, series: entry.series, next: at + 1 })
    }

    /// Returns the table at a place.
    #[inline]
    pub(crate) fn table(&self, place: usize) -> Option<&Arc<Table>> {
        self.tables.get(place)
    }

    /// Returns all tables by their places, which they keep there.
    pub(crate) fn tables(&self) -> &Arc<Vec<Arc<Table>>> {
        &self.tables
    }

    /// Returns the place of a table.
    pub(crate) fn place(&self, table: &Arc<Table>) -> Option<usize> {
        self.places.get(&(Arc::as_ptr(table) as usize)).map(|place| *place as usize)
    }

    /// Returns the number of tables, which is more than the place of any.
    pub(crate) fn table_count(&self) -> usize {
        self.tables.len()
    }

    #[inline(never)]
    fn find(&self, key: &[u8]) -> Option<usize> {
        let same = |i: &u32| self.entries.get(*i as usize).is_some_and(|entry| self.key(entry) == key);
        self.by_key.find(self.hasher.hash_one(key), same).map(|at| *at as usize)
    }

    pub(crate) fn insert(&mut self, key: &[u8], table: &Arc<Table>, series: SeriesId) {
        // A drop empties the cache behind the mark: what comes after it must not bring the table back.
        if table.is_dropped() || self.find(key).is_some() {
            return;
        }
        if self.is_full() {
            self.clear();
        }
        let (Ok(id), Ok(new)) = (u32::try_from(self.entries.len()), u32::try_from(self.tables.len())) else { return };
        let table = *self.places.entry(Arc::as_ptr(table) as usize).or_insert_with(|| {
            Arc::make_mut(&mut self.tables).push(Arc::clone(table));
            new
        });
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
    use crate::catalog::TableSchema;

    #[test]
    fn a_full_cache_starts_anew() {
        let schema = TableSchema { database: "d".into(), table: "t".into(), keyed: true, columns: Vec::new() };
        let table = Arc::new(Table::new(schema));
        let mut cache = SeriesCache::default();
        cache.bound(1_000);
        for i in 0..100u32 {
            cache.insert(format!("t,host={i}").as_bytes(), &table, i);
            assert!(cache.get(format!("t,host={i}").as_bytes(), 0).is_some(), "{i}");
        }
        assert!(cache.entries.len() < 30 && cache.get(b"t,host=0", 0).is_none());
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
        for guess in [0, 5, 6, 1000, usize::MAX] {
            let found = |key: &[u8]| cache.get(key, guess).map(|found| (found.series, found.next));
            assert_eq!(found(b"t,host=5"), Some((5, 6)));
            assert_eq!(found(b"t,host=999"), Some((999, 1000)));
            assert_eq!(found(b"t,host=1000"), None);
            assert_eq!(found(b""), None);
        }
    }
}
