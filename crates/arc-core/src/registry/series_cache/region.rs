//! A few ten thousand series that came one after the other: what the cache takes and gives up at a
//! time.
//!
//! Never knows of other regions, nor how a series is found.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use crate::{
    buffer::SeriesId,
    memory::{MemoryBudget, Reserved},
};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Region {
    entries: Vec<CachedSeries>,
    keys: Vec<u8>,
    /// Whether any of its series came since this was asked last.
    is_used: AtomicBool,
    /// What it takes, and has of the memory budget, once it is full.
    closed: Option<(usize, Option<Reserved>)>,
}

/// One of maybe ten million: four of them share a cache line.
#[derive(Debug, Clone, Copy)]
pub(super) struct CachedSeries {
    /// Where its key ends, which begins where that of the entry before it does.
    end: u32,
    pub(super) hash: u32,
    pub(super) table: u32,
    pub(super) series: SeriesId,
}

impl Region {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns about how many bytes it takes, with its share of what finds its series.
    pub(super) fn bytes(&self) -> usize {
        const OF_INDEX: usize = 2 * (size_of::<u32>() + 1);
        self.entries.len() * (size_of::<CachedSeries>() + OF_INDEX) + self.keys.len()
    }

    pub(super) fn entries(&self) -> &[CachedSeries] {
        &self.entries
    }

    pub(super) fn get(&self, slot: usize) -> Option<&CachedSeries> {
        self.entries.get(slot)
    }

    /// Returns the key of an entry; that of none is empty, which no line has.
    #[inline(always)]
    pub(super) fn key(&self, slot: usize) -> &[u8] {
        let end = |slot: usize| self.entries.get(slot).map(|entry| entry.end as usize);
        let start = slot.checked_sub(1).map_or(Some(0), end);
        start.zip(end(slot)).and_then(|(start, end)| self.keys.get(start..end)).unwrap_or_default()
    }

    /// Adds a series; `false`, and nothing, where its key is too long.
    pub(super) fn push(&mut self, key: &[u8], (hash, table, series): (u32, u32, SeriesId)) -> bool {
        let Ok(end) = u32::try_from(self.keys.len() + key.len()) else { return false };
        self.keys.extend_from_slice(key);
        self.entries.push(CachedSeries { end, hash, table, series });
        true
    }

    /// Notes that it is full. Returns what it takes, if that was not noted before.
    pub(super) fn close(&mut self, memory: Option<&Arc<MemoryBudget>>) -> usize {
        if self.closed.is_some() {
            return 0;
        }
        let bytes = self.bytes();
        self.closed = Some((bytes, memory.map(|memory| memory.reserve(bytes))));
        bytes
    }

    /// Forgets all series, and keeps the memory for others. Returns what it took if it was full.
    pub(super) fn clear(&mut self) -> usize {
        self.entries.clear();
        self.keys.clear();
        self.closed.take().map_or(0, |(bytes, _)| bytes)
    }

    /// Notes that one of its series came. Written once only: many threads read what is beside it.
    #[inline(always)]
    pub(super) fn note_use(&self) {
        if !self.is_used.load(Ordering::Relaxed) {
            self.is_used.store(true, Ordering::Relaxed);
        }
    }

    /// Returns whether one came since this was called last.
    pub(super) fn take_use(&mut self) -> bool {
        std::mem::take(self.is_used.get_mut())
    }
}
