//! The memory budget of an engine: one count of what buffers, queued writes, flushes and queries
//! hold.
//!
//! Owns the count and the limit. Never allocates, frees or waits: the thread that holds memory says
//! so, and decides what to do where there is none left. Writes wait and then fail as busy, queries
//! spill and then fail. A flush takes what it needs without asking, for it is what makes room; the
//! shares below leave room for it. What nothing counts shows in what the process holds in truth;
//! near the limit of that, the same happens.

mod machine;
mod resident;

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

pub(crate) use machine::available_bytes;
pub(crate) use resident::Pressure;

use resident::Resident;

/// See the module.
#[derive(Debug)]
pub(crate) struct MemoryBudget {
    limit: usize,
    used: AtomicUsize,
    peak: AtomicUsize,
    resident: Resident,
}

impl MemoryBudget {
    /// A budget of `limit` bytes in a process that may hold `resident_limit` bytes; 0 is no limit.
    pub(crate) fn new(limit: usize, resident_limit: usize) -> Self {
        let resident = Resident::within(resident_limit);
        Self { limit, used: AtomicUsize::new(0), peak: AtomicUsize::new(0), resident }
    }

    /// Returns how near the whole process is to the memory that it may hold, counted or not.
    pub(crate) fn pressure(&self) -> Pressure {
        self.resident.pressure()
    }

    /// Counts `bytes` as held if they are within the limit.
    #[must_use]
    pub(crate) fn try_take(&self, bytes: usize) -> bool {
        let within = |used: usize| used.checked_add(bytes).filter(|used| *used <= self.limit);
        let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, within);
        taken.inspect(|before| self.note(before + bytes)).is_ok()
    }

    /// Counts `bytes` as held, whatever the limit: they are there already, or are needed to make
    /// room.
    pub(crate) fn take(&self, bytes: usize) {
        self.note(self.used.fetch_add(bytes, Ordering::Relaxed) + bytes);
    }

    /// Counts `bytes` as held no longer.
    pub(crate) fn give(&self, bytes: usize) {
        let rest = |used: usize| Some(used.saturating_sub(bytes));
        let _ = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest);
    }

    /// Counts `bytes` as held, whatever the limit, until what this returns is dropped.
    pub(crate) fn reserve(self: &Arc<Self>, bytes: usize) -> Reserved {
        self.take(bytes);
        Reserved { budget: Arc::clone(self), bytes }
    }

    /// Returns the bytes held now.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Returns the most bytes ever held at a time.
    pub(crate) fn peak(&self) -> usize {
        self.peak.load(Ordering::Relaxed)
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    fn note(&self, used: usize) {
        self.peak.fetch_max(used, Ordering::Relaxed);
    }
}

/// Bytes that count as held until this is dropped.
#[derive(Debug)]
#[must_use = "dropped at once it reserves nothing"]
pub(crate) struct Reserved {
    budget: Arc<MemoryBudget>,
    bytes: usize,
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.budget.give(self.bytes);
    }
}

/// Returns what a merge of data files may hold.
pub(crate) fn merge_share(limit: usize) -> usize {
    limit / 8
}

/// Returns how many columns the inputs of one merge may have in all: a reader holds a page and a
/// dictionary of each.
pub(crate) fn merge_columns(limit: usize) -> usize {
    /// What an open column takes, where files were written within the same limit.
    const COLUMN_BYTES: usize = 32 << 10;
    const MOST: usize = 4096;
    (limit / COLUMN_BYTES).min(MOST)
}

/// Returns how large a merged file with so many columns may become, if `wanted` is what it should
/// be. Each chunk of a column has its place in the footer, which writers and readers hold whole;
/// the less memory, the smaller the chunks.
pub(crate) fn merged_file_bytes(limit: usize, columns: usize, wanted: u64) -> u64 {
    /// What is known of a chunk, with its share of the page index.
    const CHUNK_BYTES: usize = 1536;
    let chunks = limit / 32 / CHUNK_BYTES;
    // A row group has a sixteenth of the limit, see `ParquetOptions::within`.
    let chunk_bytes = (limit / 16 / columns.max(1)).max(1);
    wanted.min(chunks.saturating_mul(chunk_bytes) as u64).max(1)
}

/// Returns what the series cache of each database may hold.
pub(crate) fn series_cache_share(limit: usize) -> usize {
    limit / 16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_stays_within_the_limit_unless_it_has_to_be() {
        let budget = Arc::new(MemoryBudget::new(10, 0));
        assert!(budget.try_take(7) && !budget.try_take(4) && budget.try_take(3));
        assert!(!budget.try_take(usize::MAX));
        let reserved = budget.reserve(5);
        assert_eq!((budget.used(), budget.peak()), (15, 15));
        assert!(!budget.try_take(1));
        drop(reserved);
        budget.give(4);
        assert_eq!((budget.used(), budget.peak(), budget.limit()), (6, 15, 10));
        assert!(budget.try_take(4));
        budget.give(100);
        assert_eq!(budget.used(), 0, "never below nothing");
    }

    #[test]
    fn many_threads_never_take_more_than_there_is() {
        let budget = MemoryBudget::new(1_000, 0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for bytes in (1..400).cycle().take(20_000) {
                        if budget.try_take(bytes) {
                            budget.give(bytes);
                        }
                    }
                });
            }
        });
        assert_eq!(budget.used(), 0);
        assert!(budget.peak() <= 1_000);
    }

    #[test]
    fn wide_tables_with_little_memory_have_small_files_and_few_inputs() {
        const MIB: usize = 1 << 20;
        for (limit, columns, bytes, open) in [
            (128 * MIB, 10, 512 << 20, 4096),
            (128 * MIB, 1_000, 22_899_240, 4096),
            (32 * MIB, 1_000, 1_430_154, 1024),
            (2048 * MIB, 1_000, 512 << 20, 4096),
            (0, 10, 1, 0),
        ] {
            assert_eq!(merged_file_bytes(limit, columns, 512 << 20), bytes, "{limit} {columns}");
            assert_eq!(merge_columns(limit), open, "{limit}");
        }
    }
}
