//! What compaction keeps between rounds, and how its thread is woken and stopped.
//!
//! Owns who may run a round, what is known of its inputs, and the end of it all. Never reads nor
//! writes a file.

use std::{
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::Duration,
};

use hashbrown::HashSet;

use super::packs::PackSizes;
use crate::{
    Error, Result,
    model::DataFile,
    sync::{Condvar, Mutex, MutexGuard},
};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Compactor {
    /// Held for a round, so that there is one at a time.
    running: Mutex<()>,
    /// How many wait for that.
    waiting: AtomicUsize,
    /// Inputs of merges that met damage: it is said once, not in every round.
    damaged: Mutex<HashSet<String>>,
    packs: PackSizes,
    cancelled: AtomicBool,
    state: Mutex<CompactionSignalState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct CompactionSignalState {
    wanted: bool,
    stop: bool,
}

/// The right to take live data files as inputs, which one thread has at a time.
#[derive(Debug)]
pub(super) struct CompactionTurn<'a> {
    of: &'a Compactor,
    running: Option<MutexGuard<'a, ()>>,
}

impl CompactionTurn<'_> {
    /// Lets those go first who wait for the turn, and returns whether there were any: what the caller knew
    /// of live data files may not hold any more.
    ///
    /// # Errors
    ///
    /// As [`Compactor::check_running`].
    pub(super) fn give_way(&mut self) -> Result<bool> {
        if self.of.waiting.load(Ordering::Acquire) == 0 {
            return Ok(false);
        }
        self.running = None;
        self.running = Some(self.of.running.lock());
        self.of.check_running().map(|()| true)
    }
}

impl Compactor {
    /// Has the thread look at the tables again.
    pub(super) fn wake(&self) {
        self.state.lock().wanted = true;
        self.changed.notify_all();
    }

    /// Waits until there may be something to do, at most for `time`; false once stopped.
    pub(super) fn wait(&self, time: Option<Duration>) -> bool {
        let mut state = self.state.lock();
        if !state.stop && !state.wanted {
            match time {
                Some(time) => drop(self.changed.wait_for(&mut state, time)),
                None => self.changed.wait(&mut state),
            }
        }
        state.wanted = false;
        !state.stop
    }

    /// Ends the thread, and waits for the end of what runs.
    pub(super) fn stop(&self) {
        self.cancelled.store(true, Ordering::Release);
        self.state.lock().stop = true;
        self.changed.notify_all();
        drop(self.running.lock());
    }

    /// Fails once the engine stops: from then on nothing may be changed in the data directory.
    pub(super) fn check_running(&self) -> Result<()> {
        if self.cancelled.load(Ordering::Acquire) {
            return Err(Error::Closed { reason: "the engine is closed".into() });
        }
        Ok(())
    }

    /// Returns how many wait for the end of a round.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Acquire)
    }

    /// Returns what says that the engine stops, for a merge under way.
    pub(super) fn cancelled(&self) -> &AtomicBool {
        &self.cancelled
    }

    /// Waits for the end of a round that runs, or for it to give way, and keeps others from beginning.
    ///
    /// # Errors
    ///
    /// As [`check_running`](Self::check_running).
    pub(super) fn turn(&self) -> Result<CompactionTurn<'_>> {
        self.waiting.fetch_add(1, Ordering::AcqRel);
        let running = self.running.lock();
        self.waiting.fetch_sub(1, Ordering::AcqRel);
        self.check_running()?;
        Ok(CompactionTurn { of: self, running: Some(running) })
    }

    /// Leaves files alone from now on: one of them is damaged.
    pub(super) fn leave_alone<'f>(&self, files: impl Iterator<Item = &'f DataFile>) {
        self.damaged.lock().extend(files.map(|file| file.path.clone()));
    }

    /// Returns whether a file is left alone, for it may be damaged.
    pub(super) fn is_left_alone(&self, file: &DataFile) -> bool {
        self.damaged.lock().contains(&file.path)
    }

    /// Has every file be tried again.
    pub(super) fn try_all(&self) {
        self.damaged.lock().clear();
    }

    /// Returns what is known of the sizes of packs.
    pub(super) fn packs(&self) -> &PackSizes {
        &self.packs
    }
}
