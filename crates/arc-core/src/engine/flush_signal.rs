//! When the thread that flushes has to work: because of rows, of a log that has come to rest, or of
//! the end of the engine.
//!
//! Owns what that thread waits for. Never decides whether rows are too many.

use std::time::Duration;

use crate::sync::{self, Condvar, Instant, Mutex};

/// How long the log rests before it is sealed, at least, and at most twice that.
const SEAL_AFTER: Duration = Duration::from_secs(1);

/// What the flusher has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    Flush,
    /// Nothing was synced for a while.
    Seal,
    Stop,
}

/// Tells the flusher when to work.
#[derive(Debug, Default)]
pub(super) struct FlushSignal {
    state: Mutex<FlushSignalState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct FlushSignalState {
    /// When the oldest unflushed write was applied.
    oldest: Option<Instant>,
    full: bool,
    stop: bool,
    /// When to look whether the log rests; nothing looks while it was not synced since it was
    /// sealed.
    look: Option<Instant>,
    /// Whether the log was synced since the last look.
    synced: bool,
}

impl FlushSignal {
    /// Notes that there are unflushed rows, and whether they are too many to wait.
    pub(super) fn note_write(&self, full: bool) {
        let mut state = self.state.lock();
        let wake = state.oldest.is_none() || (full && !state.full);
        state.oldest.get_or_insert_with(sync::now);
        state.full |= full;
        drop(state);
        if wake {
            self.changed.notify_all();
        }
    }

    /// Notes that the log was synced.
    pub(super) fn note_synced(&self) {
        let mut state = self.state.lock();
        state.synced = true;
        if state.look.is_none() {
            state.look = sync::now().checked_add(SEAL_AFTER);
            drop(state);
            self.changed.notify_all();
        }
    }

    /// Forgets what was noted: a flush begins that takes all of it along.
    pub(super) fn reset(&self) {
        let mut state = self.state.lock();
        state.oldest = None;
        state.full = false;
    }

    /// Forgets that there was too much: what came before this is in the flush under way.
    pub(super) fn note_frozen(&self) {
        self.state.lock().full = false;
    }

    /// Ends the waiting.
    pub(super) fn stop(&self) {
        self.state.lock().stop = true;
        self.changed.notify_all();
    }

    /// Waits until something is due.
    pub(super) fn wait(&self, flush_after: Duration) -> Due {
        let mut state = self.state.lock();
        loop {
            let now = sync::now();
            let flush = state.oldest.and_then(|oldest| oldest.checked_add(flush_after));
            if state.stop {
                return Due::Stop;
            }
            if state.full || flush.is_some_and(|due| due <= now) {
                return Due::Flush;
            }
            if state.look.is_some_and(|look| look <= now) {
                let is_busy = std::mem::take(&mut state.synced);
                state.look = now.checked_add(SEAL_AFTER).filter(|_| is_busy);
                if !is_busy {
                    return Due::Seal;
                }
            }
            match flush.into_iter().chain(state.look).min() {
                Some(due) => drop(self.changed.wait_until(&mut state, due)),
                None => self.changed.wait(&mut state),
            }
        }
    }

    /// Returns whether the thread will look whether the log rests.
    #[cfg(test)]
    pub(super) fn is_watching_log(&self) -> bool {
        self.state.lock().look.is_some()
    }

    /// Waits for a while, or until stopped.
    pub(super) fn pause(&self, time: Duration) {
        let (mut state, until) = (self.state.lock(), sync::now() + time);
        while !state.stop && !self.changed.wait_until(&mut state, until).timed_out() {}
    }
}
