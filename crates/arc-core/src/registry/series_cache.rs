//! Series by the bytes that name them in line protocol.
//!
//! Owns the keys and how they are found. Never parses one, never decides what a key means: a series
//! that was resolved from its tags is put here, so that the next line of the same bytes need not be
//! split.
//!
//! A full cache takes only some of what it lacks. Agents send their series in the same order again
//! and again: if each new one took the place of an old one, a cache that is a little too small for
//! all would have forgotten each series just before it comes again. So the cache goes round over its
//! regions at the pace at which series are missed, and gives one up where none of its series came
//! since the last time, or where it has passed over many.

mod region;

use std::{array, hash::BuildHasher, sync::Arc};

use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashTable};

use super::Table;
use crate::{buffer::SeriesId, memory::MemoryBudget};
use region::Region;

/// Series of a region, and how many there are of them at least in a cache that is full.
const REGION_SERIES: usize = 1 << SLOT_BITS;
const SLOT_BITS: u32 = 15;
const MIN_REGIONS: usize = 16;
const MAX_REGIONS: usize = 1 << (u32::BITS - SLOT_BITS);
const MAX_REGION_BYTES: usize = 64 << 20;

/// Times that a full cache misses a series, for each series of a region, before it looks at the
/// next region.
const MISSES: usize = 2;
/// Regions that it leaves as they are one after the other.
const MAX_PASSED: usize = 15;

/// Tables of hashes, so that none of them takes long to grow.
const INDEXES: usize = 1 << INDEX_BITS;
const INDEX_BITS: u32 = 6;

/// Series that do not fit into the caches of a core together with all else.
const LARGE_CACHE: usize = 1 << 14;

/// Finds (table, series) by the raw bytes that name them in line protocol, so that known tags are
/// not parsed again.
///
/// Only primary-key tables are in it, for only they have series. An entry is known by its region
/// and its slot there, in one number: those that came one after the other mostly have numbers that
/// follow each other.
#[derive(Debug)]
pub(crate) struct SeriesCache {
    by_key: [HashTable<u32>; INDEXES],
    regions: Vec<Region>,
    len: usize,
    /// Bytes of the regions that are full.
    full_bytes: usize,
    sweep: Sweep,
    /// Rows of requests that are under way say their tables by their slots here.
    tables: Arc<Vec<Arc<Table>>>,
    /// Slots of tables, by their addresses.
    slots: HashMap<usize, u32, FixedState>,
    hasher: FixedState,
    max_bytes: usize,
    /// Full regions are counted in it.
    memory: Option<Arc<MemoryBudget>>,
    /// How many tables of the database had been dropped when it was empty last.
    drops: u64,
}

/// Which region takes new series, and which may be next.
#[derive(Debug, Default)]
struct Sweep {
    open: usize,
    hand: usize,
    /// Series that were not taken since the hand moved.
    missed: usize,
    /// Regions that were left as they are since one was given up.
    passed: usize,
}

impl Default for SeriesCache {
    fn default() -> Self {
        Self {
            by_key: array::from_fn(|_| HashTable::new()),
            regions: Vec::new(),
            len: 0,
            full_bytes: 0,
            sweep: Sweep::default(),
            tables: Arc::default(),
            slots: HashMap::default(),
            hasher: FixedState::default(),
            max_bytes: usize::MAX,
            memory: None,
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

impl SeriesCache {
    /// Has it take `max_bytes` at most, and count what it takes in a budget.
    pub(crate) fn bound(&mut self, max_bytes: usize, memory: &Arc<MemoryBudget>) {
        self.max_bytes = max_bytes;
        self.memory = Some(Arc::clone(memory));
    }

    /// Forgets everything; `drops` tables of the database were dropped before.
    pub(crate) fn clear(&mut self, drops: u64) {
        *self = Self { max_bytes: self.max_bytes, memory: self.memory.take(), drops, ..Self::default() };
    }

    /// Returns how many tables of the database had been dropped when it was empty last.
    pub(crate) fn drops(&self) -> u64 {
        self.drops
    }

    #[inline(always)]
    fn region(&self, at: usize) -> Option<(&Region, usize)> {
        Some((self.regions.get(at >> SLOT_BITS)?, at % REGION_SERIES))
    }

    /// Returns the key of an entry; that of none is empty, which no line has.
    #[inline(always)]
    fn key(&self, at: usize) -> &[u8] {
        self.region(at).map(|(region, slot)| region.key(slot)).unwrap_or_default()
    }

    /// Returns the series of `key`, looking at the entry `guess` first. Agents send their series in
    /// the same order again and again, which is the order in which they came here first.
    #[inline(always)]
    pub(crate) fn get(&self, key: &[u8], guess: usize) -> Option<FoundSeries<'_>> {
        self.at(guess, key).or_else(|| self.find(key))
    }

    /// Returns the series of `key` if it is entry `at`.
    #[inline(always)]
    pub(crate) fn at(&self, at: usize, key: &[u8]) -> Option<FoundSeries<'_>> {
        if self.key(at) == key { self.entry(at) } else { None }
    }

    /// Returns what an entry stands for.
    #[inline(always)]
    fn entry(&self, at: usize) -> Option<FoundSeries<'_>> {
        let (region, slot) = self.region(at)?;
        let entry = region.get(slot)?;
        region.note_use();
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
        let likely = hashes.map(|hash| self.with_hash(hash, |_| true).unwrap_or(usize::MAX));
        // Nothing needs the bytes now, but they are on their way: those of the key, and of the next
        // one, which is looked at first.
        let bytes = likely.map(|at| (self.key(at).first().copied(), self.key(at.saturating_add(1)).last().copied()));
        std::hint::black_box(bytes);
        likely
    }

    /// Returns whether there are so many series that looking for one waits for memory.
    pub(crate) fn is_large(&self) -> bool {
        self.len >= LARGE_CACHE
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
    fn find(&self, key: &[u8]) -> Option<FoundSeries<'_>> {
        self.entry(self.with_hash(self.hash(key), |at| self.key(at) == key)?)
    }

    /// Returns the entry that has a hash, and is the one.
    #[inline(always)]
    fn with_hash(&self, hash: u32, is_it: impl Fn(usize) -> bool) -> Option<usize> {
        let has_hash = |at: usize| {
            let entry = self.region(at).and_then(|(region, slot)| region.get(slot));
            entry.is_some_and(|entry| entry.hash == hash)
        };
        let found = self.by_key.get(index_of(hash))?.find(spread(hash), |at| {
            let at = *at as usize;
            has_hash(at) && is_it(at)
        })?;
        Some(*found as usize)
    }

    fn hash(&self, key: &[u8]) -> u32 {
        #[expect(clippy::cast_possible_truncation, reason = "half of a hash is one, too")]
        let hash = self.hasher.hash_one(key) as u32;
        hash
    }

    pub(crate) fn insert(&mut self, key: &[u8], table: &Arc<Table>, series: SeriesId) {
        // The cache is emptied after a drop has marked its table: what comes later must not bring
        // the table back.
        if table.is_dropped() || !self.has_room() || self.find(key).is_some() {
            return;
        }
        let Ok(new) = u32::try_from(self.tables.len()) else { return };
        let table = *self.slots.entry(Arc::as_ptr(table) as usize).or_insert_with(|| {
            Arc::make_mut(&mut self.tables).push(Arc::clone(table));
            new
        });
        let (hash, open) = (self.hash(key), self.sweep.open);
        let Some(region) = self.regions.get_mut(open) else { return };
        let Ok(at) = u32::try_from(open << SLOT_BITS | region.len()) else { return };
        if region.push(key, (hash, table, series)) {
            self.len += 1;
            self.index(hash, at);
        }
    }

    fn index(&mut self, hash: u32, at: u32) {
        let Self { by_key, regions, .. } = self;
        let hash_of = |at: &u32| {
            let region = regions.get(*at as usize >> SLOT_BITS);
            region.and_then(|region| region.get(*at as usize % REGION_SERIES)).map_or(0, |entry| spread(entry.hash))
        };
        if let Some(index) = by_key.get_mut(index_of(hash)) {
            index.insert_unique(spread(hash), at, hash_of);
        }
    }

    /// Returns whether one more series is taken, and makes room for it where it is time to.
    fn has_room(&mut self) -> bool {
        let most = (self.max_bytes / MIN_REGIONS).min(MAX_REGION_BYTES);
        if let Some(open) = self.regions.get_mut(self.sweep.open) {
            if open.len() < REGION_SERIES && open.bytes() < most {
                return true;
            }
            self.full_bytes += open.close(self.memory.as_ref());
        }
        let is_within = |memory: &Arc<MemoryBudget>| memory.used().saturating_add(most) <= memory.limit();
        let grows = self.full_bytes.saturating_add(most) <= self.max_bytes && self.regions.len() < MAX_REGIONS;
        if self.regions.is_empty() || (grows && self.memory.as_ref().is_none_or(is_within)) {
            self.sweep.open = self.regions.len();
            self.regions.push(Region::default());
            return true;
        }
        self.turn()
    }

    /// Returns whether a region was given up for a series that is missed.
    fn turn(&mut self) -> bool {
        let Sweep { open, hand, missed, passed } = &mut self.sweep;
        *missed += 1;
        if *missed < self.regions.get(*open).map_or(0, Region::len) * MISSES {
            return false;
        }
        (*missed, *hand) = (0, (*hand + 1) % self.regions.len().max(1));
        let is_used = self.regions.get_mut(*hand).is_some_and(Region::take_use);
        if is_used && *passed < MAX_PASSED {
            *passed += 1;
            return false;
        }
        (*passed, *open) = (0, *hand);
        self.forget(self.sweep.open);
        true
    }

    /// Empties a region.
    fn forget(&mut self, number: usize) {
        let Self { by_key, regions, len, full_bytes, .. } = self;
        let Some(region) = regions.get_mut(number) else { return };
        for (slot, entry) in region.entries().iter().enumerate() {
            let Some(index) = by_key.get_mut(index_of(entry.hash)) else { continue };
            let at = number << SLOT_BITS | slot;
            if let Ok(found) = index.find_entry(spread(entry.hash), |found| *found as usize == at) {
                found.remove();
            }
        }
        *len -= region.len();
        *full_bytes -= region.clear();
    }
}

/// The table takes the place of an entry from the low bits of a hash, and what it compares first
/// from the high ones.
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn index_of(hash: u32) -> usize {
    (hash >> (u32::BITS - INDEX_BITS)) as usize
}

#[cfg(test)]
mod tests;
