//! Counters since the engine was opened.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Counters since the engine was opened, and gauges of now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EngineStats {
    /// Writes acknowledged.
    pub writes: u64,
    /// Points stored.
    pub points: u64,
    /// Points refused.
    pub rejected_points: u64,
    /// Body bytes of the writes acknowledged.
    pub bytes: u64,
    /// Writes answered with the receipt of an earlier one that had the same idempotency key.
    pub replayed_writes: u64,
    /// Flushes that ended well.
    pub flushes: u64,
    /// Flushes that failed.
    pub flush_failures: u64,
    /// Rows written to data files.
    pub flushed_rows: u64,
    /// Bytes of the data files that flushes wrote.
    pub flushed_bytes: u64,
    /// Rows adopted of other data directories.
    pub adopted_rows: u64,
    /// Bytes of their data files.
    pub adopted_bytes: u64,
    /// Merges of data files that ended well.
    pub compactions: u64,
    /// Merges of data files, and rounds of retention, that failed.
    pub compaction_failures: u64,
    /// Rows read by merges.
    pub compaction_rows_in: u64,
    /// Rows written by merges.
    pub compaction_rows_out: u64,
    /// Bytes of the data files that merges replaced.
    pub compaction_bytes_in: u64,
    /// Bytes of the data files that merges wrote. With `flushed_bytes`, and divided by it, how
    /// often a byte is written.
    pub compaction_bytes_out: u64,
    /// Data files dropped because of their age.
    pub expired_files: u64,
    /// Data files that moved as they are, out of packs of which little was needed, or into files of
    /// their own.
    pub moved_files: u64,
    /// Data files that went with their table.
    pub dropped_files: u64,
    /// Deletes done.
    pub deletes: u64,
    /// Deletes that wait to be carried out in data files now.
    pub pending_deletes: u64,
    /// Tables and databases dropped.
    pub drops: u64,
    /// Syncs of the log.
    pub wal_syncs: u64,
    /// Groups of the log put into the object store, for writes of durability
    /// [`Remote`](crate::Durability::Remote).
    pub remote_puts: u64,
    /// Puts of them whose outcome was unknown, each of which was tried again.
    pub remote_put_failures: u64,
    /// Bytes of their frames.
    pub remote_bytes: u64,
    /// Nanoseconds that all these puts took.
    pub remote_put_ns: u64,
    /// Rows in buffers now.
    pub buffered_rows: u64,
    /// Bytes in buffers now.
    pub buffered_bytes: u64,
    /// Bytes of [`Options::memory_bytes`](crate::Options::memory_bytes) held now.
    pub memory_bytes: u64,
    /// Most bytes of it held at a time.
    pub memory_peak_bytes: u64,
    /// Bytes of it there are.
    pub memory_limit_bytes: u64,
    /// Databases, and those of them whose own setting is
    /// [`Durability::Memory`](crate::Durability::Memory).
    pub databases: u64,
    /// See `databases`.
    pub memory_databases: u64,
    /// Tables of all databases.
    pub tables: u64,
    /// Series known now, of all tables.
    pub series: u64,
    /// About how many bytes of memory they take; they are in no budget.
    pub series_bytes: u64,
    /// Writes waiting for the log now.
    pub queued_writes: u64,
    /// SQL statements that are being planned now.
    pub planning: u64,
    /// Of those, the ones that no thread waits for any more: their time was over, or their client
    /// left.
    pub planning_abandoned: u64,
    /// Queries that had to end, each the largest one, because the process was near
    /// [`Options::max_resident_bytes`](crate::Options::max_resident_bytes).
    pub ended_queries: u64,
    /// Frames replayed on open.
    pub replayed_frames: u64,
    /// Points replayed on open.
    pub replayed_points: u64,
    /// Bytes of log that hold unflushed writes now.
    pub wal_bytes: u64,
    /// Live data files.
    pub files: u64,
    /// Their bytes.
    pub file_bytes: u64,
    /// Data files that are live no longer and still on disk.
    pub retired_files: u64,
    /// Their bytes: what history and snapshots cost, and readers that go on.
    pub retired_bytes: u64,
    /// Bytes of log that hold no unflushed writes and stay for those who ask for older states.
    pub history_log_bytes: u64,
    /// Snapshots that have a name.
    pub snapshots: u64,
}

/// The counters that the engine's threads share.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) writes: AtomicU64,
    pub(super) points: AtomicU64,
    pub(super) rejected_points: AtomicU64,
    pub(super) bytes: AtomicU64,
    pub(super) flushes: AtomicU64,
    pub(super) flush_failures: AtomicU64,
    pub(super) flushed_rows: AtomicU64,
    pub(super) flushed_bytes: AtomicU64,
    pub(super) adopted_rows: AtomicU64,
    pub(super) adopted_bytes: AtomicU64,
    pub(super) compactions: AtomicU64,
    pub(super) compaction_failures: AtomicU64,
    pub(super) compaction_rows_in: AtomicU64,
    pub(super) compaction_rows_out: AtomicU64,
    pub(super) compaction_bytes_in: AtomicU64,
    pub(super) compaction_bytes_out: AtomicU64,
    pub(super) expired_files: AtomicU64,
    pub(super) moved_files: AtomicU64,
    pub(super) dropped_files: AtomicU64,
    pub(super) deletes: AtomicU64,
    pub(super) drops: AtomicU64,
    pub(super) wal_syncs: AtomicU64,
    pub(super) remote_puts: AtomicU64,
    pub(super) remote_put_failures: AtomicU64,
    pub(super) remote_bytes: AtomicU64,
    pub(super) remote_put_ns: AtomicU64,
    /// Bytes of log that hold unflushed writes, for those who must not wait for the log.
    pub(super) wal_bytes: AtomicU64,
    pub(super) replayed_frames: AtomicU64,
    pub(super) replayed_points: AtomicU64,
    /// Bytes of applied, unflushed rows.
    pub(super) buffered_bytes: AtomicUsize,
}

impl Counters {
    pub(super) fn add(counter: &AtomicU64, by: u64) {
        counter.fetch_add(by, Ordering::Relaxed);
    }

    /// Returns the counters; the gauges that live elsewhere are left 0.
    pub(super) fn read(&self) -> EngineStats {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        EngineStats {
            writes: get(&self.writes),
            points: get(&self.points),
            rejected_points: get(&self.rejected_points),
            bytes: get(&self.bytes),
            flushes: get(&self.flushes),
            flush_failures: get(&self.flush_failures),
            flushed_rows: get(&self.flushed_rows),
            flushed_bytes: get(&self.flushed_bytes),
            adopted_rows: get(&self.adopted_rows),
            adopted_bytes: get(&self.adopted_bytes),
            compactions: get(&self.compactions),
            compaction_failures: get(&self.compaction_failures),
            compaction_rows_in: get(&self.compaction_rows_in),
            compaction_rows_out: get(&self.compaction_rows_out),
            compaction_bytes_in: get(&self.compaction_bytes_in),
            compaction_bytes_out: get(&self.compaction_bytes_out),
            expired_files: get(&self.expired_files),
            moved_files: get(&self.moved_files),
            dropped_files: get(&self.dropped_files),
            deletes: get(&self.deletes),
            drops: get(&self.drops),
            wal_syncs: get(&self.wal_syncs),
            remote_puts: get(&self.remote_puts),
            remote_put_failures: get(&self.remote_put_failures),
            remote_bytes: get(&self.remote_bytes),
            remote_put_ns: get(&self.remote_put_ns),
            wal_bytes: get(&self.wal_bytes),
            replayed_frames: get(&self.replayed_frames),
            replayed_points: get(&self.replayed_points),
            buffered_bytes: self.buffered_bytes.load(Ordering::Relaxed) as u64,
            ..EngineStats::default()
        }
    }
}
