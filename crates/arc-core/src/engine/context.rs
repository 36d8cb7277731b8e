//! The plain things of an open engine, lent to all of its owners: where it is, how it is set, what
//! it reads the time and the disk through, and what it counts.
//!
//! Owns nothing that a thread waits for. Never changes but for counters and the memory budget.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use ulid::Ulid;

use super::stats::Counters;
#[cfg(feature = "object-store")]
use crate::store::OpenStorage;
use crate::{FileTimeUnit, Options, clock::Clock, memory::MemoryBudget, random::RandomSource, vfs::Vfs};

/// See the module.
#[derive(Debug)]
pub(super) struct EngineContext {
    pub(super) root: PathBuf,
    pub(super) options: Options,
    pub(super) vfs: Arc<dyn Vfs>,
    /// Where data files and manifest are, if it is an object store; `vfs` leads there.
    #[cfg(feature = "object-store")]
    pub(super) storage: Option<OpenStorage>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) random: Arc<dyn RandomSource>,
    pub(super) memory: Arc<MemoryBudget>,
    pub(super) counters: Counters,
    /// First nanosecond not yet given to a point without a timestamp.
    pub(super) next_receive_ns: AtomicI64,
}

impl EngineContext {
    /// Returns the time for points that have none, a whole unit, and reserves so many nanoseconds
    /// from it on, so that no two such points share a time. Returns also what the clock says.
    pub(super) fn receive_time(&self, nanoseconds: i64, unit: FileTimeUnit) -> (i64, i64) {
        let now = self.clock.now_ns();
        let first = |next: i64| unit.ceil(next.max(now));
        let reserve = |next: i64| Some(first(next).saturating_add(nanoseconds));
        let reserved = self.next_receive_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, reserve);
        (first(reserved.unwrap_or(now)), now)
    }

    /// Returns the name of a new file with rows that were in none before.
    pub(super) fn new_id(&self) -> Ulid {
        Ulid::from_parts(u64::try_from(self.clock.now_ns() / 1_000_000).unwrap_or(0), self.random())
    }

    /// Returns the name of a new file that is as old as the newest of its rows, so that a partition
    /// that is merged still counts as quiet.
    pub(super) fn id_written(&self, written_ns: Option<i64>) -> Ulid {
        let written_ms = u64::try_from(written_ns.unwrap_or(0) / 1_000_000).unwrap_or(0);
        Ulid::from_parts(written_ms, self.random())
    }

    fn random(&self) -> u128 {
        (u128::from(self.random.next()) << 64) | u128::from(self.random.next())
    }

    /// Returns how long an obsolete data file stays on disk, in nanoseconds.
    pub(super) fn grace_ns(&self) -> i64 {
        i64::try_from(self.options.compaction_grace.as_nanos()).unwrap_or(i64::MAX)
    }

    /// Returns whether data files and manifest are in an object store.
    pub(super) fn is_remote(&self) -> bool {
        #[cfg(feature = "object-store")]
        return self.storage.is_some();
        #[cfg(not(feature = "object-store"))]
        false
    }

    /// Has what waits for an object store give up: the engine closes.
    pub(super) fn abort_waits(&self) {
        #[cfg(feature = "object-store")]
        if let Some(storage) = &self.storage {
            storage.abort_waits();
        }
    }
}
