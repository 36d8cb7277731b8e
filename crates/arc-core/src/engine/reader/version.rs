//! What a reader has made of manifest and log: the tables with their files and their rows that are
//! in no file yet.
//!
//! A version grows with the log, and is changed by nobody else. While a query is planned, which
//! takes its views one after the other, it has to stay as it is: that is what a [`Pin`] says.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use hashbrown::HashSet;

use crate::{
    Error, Result,
    catalog::{ManifestState, TableEdit},
    engine::{
        apply::apply_rows,
        open::{decode_frame, registry_of},
    },
    memory::{MemoryBudget, series_cache_share},
    registry::Registry,
    sync::{self, Condvar, Mutex},
    wal::ReplayedFrame,
};

/// The tables at one commit of the manifest and one frame of the log.
#[derive(Debug)]
pub(in crate::engine) struct Version {
    pub(super) registry: Arc<Registry>,
    memory: Arc<MemoryBudget>,
    /// What its rows take of the memory.
    held_bytes: AtomicUsize,
    pins: Mutex<usize>,
    unpinned: Condvar,
}

impl Version {
    pub(super) fn empty(memory: Arc<MemoryBudget>) -> Self {
        Self::with(Registry::default(), memory)
    }

    /// Returns the tables as the manifest has them.
    pub(super) fn of(state: &ManifestState, memory: &Arc<MemoryBudget>, memory_bytes: usize) -> Self {
        let mut registry = registry_of(state);
        registry.bound_series_caches(series_cache_share(memory_bytes), memory);
        Self::with(registry, Arc::clone(memory))
    }

    fn with(registry: Registry, memory: Arc<MemoryBudget>) -> Self {
        let (held_bytes, pins, unpinned) = (AtomicUsize::new(0), Mutex::new(0), Condvar::default());
        Self { registry: Arc::new(registry), memory, held_bytes, pins, unpinned }
    }

    /// Applies the next frame of the log.
    pub(super) fn apply(&self, frame: &ReplayedFrame<'_>) -> Result<(), String> {
        let Some((_, staged)) = decode_frame(&self.registry, frame)? else { return Ok(()) };
        let bytes = apply_rows(frame.seq, staged).map_err(|e| e.to_string())?;
        self.memory.take(bytes);
        self.held_bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Reads other files of a table from now on, instead of some that it has. Returns false if that is
    /// not all that has to be done. It may have no such table: dropped, and another one made under its
    /// name, by frames that the manifest does not have yet. Or a newer file may have come back, as none
    /// of compaction is: rows that were on time without it are late.
    pub(super) fn swap(&self, edit: &TableEdit) -> bool {
        let table = self.registry.database(&edit.database).and_then(|database| database.table(&edit.table));
        let Some(table) = table else { return false };
        let newest = edit.files_added.iter().map(|file| file.max_time).max();
        if newest.is_some_and(|newest| newest > table.undrained_rows().buffer.newest_in_files()) {
            return false;
        }
        let gone: HashSet<&str> = edit.files_removed.iter().map(String::as_str).collect();
        let mut stored = table.stored();
        let has_files = stored.files.iter().filter(|file| gone.contains(file.path.as_str())).count() == gone.len();
        let forgotten = &edit.tombstones_removed;
        let has_deletes = forgotten.iter().all(|seq| stored.tombstones.iter().any(|known| known.seq == *seq));
        if !has_files || !has_deletes || (gone.is_empty() && !edit.files_added.is_empty()) {
            return false;
        }
        stored.files.retain(|file| !gone.contains(file.path.as_str()));
        stored.files.extend(edit.files_added.iter().cloned());
        stored.tombstones.retain(|tombstone| !forgotten.contains(&tombstone.seq));
        true
    }

    /// Waits until nothing holds it as it is, but not for long; returns whether that is so. The
    /// caller lets nothing pin it meanwhile.
    pub(super) fn wait_unpinned(&self, patience: Duration) -> bool {
        let (mut pins, until) = (self.pins.lock(), sync::now() + patience);
        while *pins > 0 {
            if self.unpinned.wait_until(&mut pins, until).timed_out() {
                return *pins == 0;
            }
        }
        true
    }
}

impl Drop for Version {
    fn drop(&mut self) {
        self.memory.give(self.held_bytes.load(Ordering::Relaxed));
    }
}

/// Holds a version as it is, until dropped.
#[derive(Debug)]
pub(in crate::engine) struct Pin(Arc<Version>);

impl Pin {
    pub(super) fn new(version: Arc<Version>) -> Self {
        *version.pins.lock() += 1;
        Self(version)
    }

    pub(in crate::engine) fn registry(&self) -> &Arc<Registry> {
        &self.0.registry
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        *self.0.pins.lock() -= 1;
        self.0.unpinned.notify_all();
    }
}

/// Says that a frame is damaged which passed all of its checks.
pub(super) fn damaged(path: &std::path::Path, frame: &ReplayedFrame<'_>, reason: &str) -> Error {
    Error::corrupt(path, 0, format!("frame {}: {reason}", frame.seq))
}
