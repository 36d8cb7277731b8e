//! Series by the bytes that name them in line protocol.
//!
//! Owns the keys and how they are found. Never parses one, never decides what a key means: a series
//! that was resolved from its tags is put here, so that the next line of the same bytes need not be
//! split.

use std::{hash::BuildHasher, sync::Arc};

use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashTable};

use super::Table;
use crate::buffer::SeriesId;

/// Number of entries, and bytes of their keys, at which the cache starts anew; a series costs about
/// its key and 24 bytes.
const MAX_CACHED_SERIES: usize = 1 << 21;
const MAX_KEY_BYTES: usize = 1 << 30;

/// Series that do not fit into the caches of a core together with all else.
const LARGE_CACHE: usize = 1 << 14;

/// Finds (table, series) by the raw bytes that name them in line protocol, so that known tags are
/// not parsed again.
///
/// Only primary-key tables are in it, for only they have series.
#[derive(Debug)]
pub(crate) struct SeriesCache {
    by_key: HashTable<u32>,
    entries: Vec<CachedSeries>,
    keys: Vec<u8>,
    /// Rows of requests that are under way say their tables by their slots here.
    tables: Arc<Vec<Arc<Table>>>,
    /// Slots of tables, by their addresses.
    slots: HashMap<usize, u32, FixedState>,
    hasher: FixedState,
    max_bytes: usize,
    /// How many tables of the database had been dropped when it was empty last.
    drops: u64,
}

impl Default for SeriesCache {
    fn default() -> Self {
        Self {
            by_key: HashTable::new(),
            entries: Vec::new(),
            keys: Vec::new(),
            tables: Arc::default(),
            slots: HashMap::default(),
            hasher: FixedState::default(),
            max_bytes: usize::MAX,
            drops: 0,
        }
    }
}

/// What a key stands for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FoundSeries<'c> {
    pub(crate) table: &'c Arc<Table>,
    /// Slot of the table among those of the cache.
    pub(crate) slot: usize,
    pub(crate) series: SeriesId,
    /// A guess at the entry of the next key.
    pub(crate) next: usize,
}

/// One of maybe a million: four of them share a cache line.
#[derive(Debug)]
struct CachedSeries {
    /// Where its key ends, which begins where that of the entry before it does.
    end: u32,
    hash: u32,
    table: u32,
    series: SeriesId,
}

impl SeriesCache {
    /// Has it start anew once it takes `max_bytes`; at [`MAX_CACHED_SERIES`] it does in any case.
    pub(crate) fn bound(&mut self, max_bytes: usize) {
        self.max_bytes = max_bytes;
    }

    /// Forgets everything; `drops` tables of the database were dropped before.
    pub(crate) fn clear(&mut self, drops: u64) {
        *self = Self { max_bytes: self.max_bytes, drops, ..Self::default() };
    }

    /// Returns how many tables of the database had been dropped when it was empty last.
    pub(crate) fn drops(&self) -> u64 {
        self.drops
    }

    fn is_full(&self) -> bool {
        let entries = self.entries.len() * (size_of::<CachedSeries>() + size_of::<u32>() + 1);
        self.entries.len() >= MAX_CACHED_SERIES
            || self.keys.len() >= MAX_KEY_BYTES
            || entries + self.keys.len() >= self.max_bytes
    }

    /// Returns the key of an entry; that of none is empty, which no line has.
    #[inline(always)]
    fn key(&self, at: usize) -> &[u8] {
        let end = |at: usize| self.entries.get(at).map(|entry| entry.end as usize);
        let start = at.checked_sub(1).map_or(Some(0), end);
        start.zip(end(at)).and_then(|(start, end)| self.keys.get(start..end)).unwrap_or_default()
    }

    /// Returns the series of `key`, looking at the entry `guess` first. Agents send their series in
    /// the same order again and again, which is the order in which they came here first.
    #[inline(always)]
    pub(crate) fn get(&self, key: &[u8], guess: usize) -> Option<FoundSeries<'_>> {
        self.at(guess, key).or_else(|| self.at(self.find(key)?, key))
    }

    /// Returns the series of `key` if it is entry `at`.
    #[inline(always)]
    pub(crate) fn at(&self, at: usize, key: &[u8]) -> Option<FoundSeries<'_>> {
        let entry = self.entries.get(at).filter(|_| self.key(at) == key)?;
        let slot = entry.table as usize;
        Some(FoundSeries { table: self.tables.get(slot)?, slot, series: entry.series, next: at + 1 })
    }

    /// Returns for each of some keys the entry that is likely to have it, or `usize::MAX` where
    /// none has.
    ///
    /// Looked for one by one, a key of many waits for memory three times, one after the other. Here
    /// each step is done for all keys before the next one, so that the processor waits for all at
    /// once.
    pub(crate) fn likely<const N: usize>(&self, keys: &[&[u8]; N]) -> [usize; N] {
        let hashes = keys.map(|key| self.hash(key));
        let likely = hashes.map(|hash| {
            let same = |at: &u32| self.entries.get(*at as usize).is_some_and(|entry| entry.hash == hash);
            self.by_key.find(spread(hash), same).map_or(usize::MAX, |at| *at as usize)
        });
        // Nothing needs the bytes now, but they are on their way: those of the key, and of the next
        // one, which is looked at first.
        let bytes = likely.map(|at| (self.key(at).first().copied(), self.key(at.saturating_add(1)).last().copied()));
        std::hint::black_box(bytes);
        likely
    }

    /// Returns whether there are so many series that looking for one waits for memory.
    pub(crate) fn is_large(&self) -> bool {
        self.entries.len() >= LARGE_CACHE
    }

    /// Returns the table at a slot.
    #[inline]
    pub(crate) fn table(&self, slot: usize) -> Option<&Arc<Table>> {
        self.tables.get(slot)
    }

    /// Returns all tables by their slots, which they keep there.
    pub(crate) fn tables(&self) -> &Arc<Vec<Arc<Table>>> {
        &self.tables
    }

    /// Returns the place of a table.
    pub(crate) fn slot(&self, table: &Arc<Table>) -> Option<usize> {
        self.slots.get(&(Arc::as_ptr(table) as usize)).map(|slot| *slot as usize)
    }

    /// Returns the number of tables, which is more than the place of any.
    pub(crate) fn table_count(&self) -> usize {
        self.tables.len()
    }

    #[inline(never)]
    fn find(&self, key: &[u8]) -> Option<usize> {
        self.by_key.find(spread(self.hash(key)), |at| self.key(*at as usize) == key).map(|at| *at as usize)
    }

    fn hash(&self, key: &[u8]) -> u32 {
        #[expect(clippy::cast_possible_truncation, reason = "half of a hash is one, too")]
        let hash = self.hasher.hash_one(key) as u32;
        hash
    }

    pub(crate) fn insert(&mut self, key: &[u8], table: &Arc<Table>, series: SeriesId) {
        // The cache is emptied after a drop has marked its table: what comes later must not bring
        // the table back.
        if table.is_dropped() || self.find(key).is_some() {
            return;
        }
        if self.is_full() {
            self.clear(self.drops);
        }
        let (Ok(id), Ok(new)) = (u32::try_from(self.entries.len()), u32::try_from(self.tables.len())) else { return };
        let table = *self.slots.entry(Arc::as_ptr(table) as usize).or_insert_with(|| {
            Arc::make_mut(&mut self.tables).push(Arc::clone(table));
            new
        });
        let hash = self.hash(key);
        self.keys.extend_from_slice(key);
        // A key is shorter than a request, so that the bound of keys leaves room for one more.
        let end = u32::try_from(self.keys.len()).unwrap_or(u32::MAX);
        self.entries.push(CachedSeries { end, hash, table, series });
        let entries = &self.entries;
        let hash_of = |at: &u32| entries.get(*at as usize).map_or(0, |entry| spread(entry.hash));
        self.by_key.insert_unique(spread(hash), id, hash_of);
    }
}

/// The table takes the place of an entry from the low bits of a hash, and what it compares first
/// from the high ones.
fn spread(hash: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(hash)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::TableSchema;

    #[test]
    fn a_full_cache_starts_anew() {
        let schema =
            TableSchema { database: "d".into(), table: "t".into(), has_primary_key: true, columns: Vec::new() };
        let table = Arc::new(Table::new(schema));
        let mut cache = SeriesCache::default();
        cache.bound(1_000);
        for i in 0..100u32 {
            cache.insert(format!("t,host={i}").as_bytes(), &table, i);
            assert!(cache.get(format!("t,host={i}").as_bytes(), 0).is_some(), "{i}");
        }
        assert!(cache.entries.len() < 40 && cache.get(b"t,host=0", 0).is_none());
    }

    #[test]
    fn cached_series_are_found_by_their_exact_bytes() {
        let schema =
            TableSchema { database: "d".into(), table: "t".into(), has_primary_key: true, columns: Vec::new() };
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
    #[test]
    fn keys_are_found_together_as_they_are_one_by_one() {
        let schema =
            TableSchema { database: "d".into(), table: "t".into(), has_primary_key: true, columns: Vec::new() };
        let table = Arc::new(Table::new(schema));
        let mut cache = SeriesCache::default();
        assert_eq!(cache.likely(&[b"t,host=1".as_slice(), b""]), [usize::MAX; 2]);
        let keys: Vec<String> = (0..LARGE_CACHE).map(|i| format!("t,host={i}")).collect();
        for (at, key) in (0..).zip(&keys) {
            assert!(!cache.is_large());
            cache.insert(key.as_bytes(), &table, at);
        }
        assert!(cache.is_large());
        for (at, key) in keys.iter().enumerate() {
            let found = cache.likely(&[b"t,host=x", key.as_bytes(), b""]);
            assert_eq!(found, [usize::MAX, at, usize::MAX]);
            assert!(cache.at(at, key.as_bytes()).is_some() && cache.at(at + 1, key.as_bytes()).is_none());
        }
    }
}
