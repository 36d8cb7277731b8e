//! Durability `remote`: who waits for the log to be in the object store, and how far it is.
//!
//! Rows of such a write are logged, synced and applied like those of others, which therefore wait
//! for nothing; only its answer is held back until its group is an object, or its rows are in data
//! files. [`ship`] puts the groups, [`replay`] reads them back on a new machine. Never touches a file.

#[cfg(feature = "object-store")]
pub(super) mod replay;
#[cfg(feature = "object-store")]
pub(super) mod ship;
#[cfg(test)]
#[cfg(feature = "object-store")]
mod tests;

use std::{
    fmt, mem,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use futures::channel::oneshot;

use super::{idempotency::KeyWaiters, shared::Shared, write::WriteRequest};
use crate::{
    Durability, Error, PendingWrite, Result, SequenceNumber, Written,
    catalog::IdempotencyRecord,
    sync::{self, Condvar, Instant, Mutex},
};

/// What was to be told to a caller, once it is known.
type StoreAnswer = Box<dyn FnOnce(InStore) + Send>;

/// Whether it is in the store, or why nobody knows.
type InStore = Result<(), String>;

/// See the module.
#[derive(Debug)]
pub(super) struct RemoteAcks {
    state: Mutex<AcksState>,
    changed: Condvar,
    /// The last change of schema, drop or delete that somebody waited for and that is on disk.
    last_change: AtomicU64,
}

#[derive(Debug)]
struct AcksState {
    /// All up to here is in the store: as objects of the log, or in data files.
    stored: SequenceNumber,
    waiting: Vec<Waiter>,
    /// Why nothing more comes to be in the store.
    failed: Option<String>,
    is_stopping: bool,
}

struct Waiter {
    seq: SequenceNumber,
    since: Instant,
    answer: StoreAnswer,
}

impl fmt::Debug for Waiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiter").field("seq", &self.seq).field("since", &self.since).finish_non_exhaustive()
    }
}

impl RemoteAcks {
    /// `stored` is the last frame that the store has already.
    pub(super) fn new(stored: SequenceNumber) -> Self {
        let state = AcksState { stored, waiting: Vec::new(), failed: None, is_stopping: false };
        Self { state: Mutex::new(state), changed: Condvar::new(), last_change: AtomicU64::new(0) }
    }

    /// Answers once frame `seq`, which is synced, is in the store; at once if it is, or never will
    /// be.
    fn wait(&self, seq: SequenceNumber, answer: StoreAnswer) {
        let mut state = self.state.lock();
        let known = match &state.failed {
            _ if seq <= state.stored => Ok(()),
            Some(reason) => Err(reason.clone()),
            None => {
                state.waiting.push(Waiter { seq, since: sync::now(), answer });
                drop(state);
                self.changed.notify_all();
                return;
            }
        };
        drop(state);
        answer(known);
    }

    /// Answers a write whose rows are in the buffers as frame `seq`, and those who sent the same with
    /// its key, once it is in the store.
    pub(super) fn answer(
        &self,
        seq: SequenceNumber,
        written: Written,
        answer: oneshot::Sender<Result<Written>>,
        keyed: KeyWaiters,
    ) {
        self.wait(
            seq,
            Box::new(move |stored| {
                keyed.answer(&|| match &stored {
                    Ok(()) => Ok(Written { replayed: true, ..written.clone() }),
                    Err(reason) => Err(Error::NotInStore { reason: reason.clone() }),
                });
                // A writer that no longer waits has its points stored all the same.
                let _ = answer.send(stored.map_or_else(|reason| Err(Error::NotInStore { reason }), |()| Ok(written)));
            }),
        );
    }

    /// Notes that the change of frame `seq`, which is synced, was applied.
    pub(super) fn note_change(&self, seq: SequenceNumber) {
        self.last_change.fetch_max(seq.0, Ordering::AcqRel);
    }

    /// Notes that everything up to `seq` is in the store.
    pub(super) fn note_stored(&self, seq: SequenceNumber) {
        let mut state = self.state.lock();
        state.stored = state.stored.max(seq);
        let stored = state.stored;
        let answered: Vec<_> = state.waiting.extract_if(.., |waiter| waiter.seq <= stored).collect();
        drop(state);
        answered.into_iter().for_each(|waiter| (waiter.answer)(Ok(())));
    }

    /// Answers all who wait, and all who will, that nothing more comes to be in the store. The
    /// first reason stays.
    pub(super) fn fail(&self, reason: &str) {
        let mut state = self.state.lock();
        let reason = state.failed.get_or_insert_with(|| reason.to_owned()).clone();
        let answered = mem::take(&mut state.waiting);
        drop(state);
        self.changed.notify_all();
        answered.into_iter().for_each(|waiter| (waiter.answer)(Err(reason.clone())));
    }

    /// Has no thread wait for the store any more: the engine closes.
    pub(super) fn stop(&self) {
        self.state.lock().is_stopping = true;
        self.changed.notify_all();
    }
}

#[cfg(feature = "object-store")]
impl RemoteAcks {
    /// Returns up to where everything is in the store.
    fn stored(&self) -> SequenceNumber {
        self.state.lock().stored
    }

    fn is_stopping(&self) -> bool {
        self.state.lock().is_stopping
    }

    /// Waits until somebody waits, and `earliest` is over; returns the last frame that is waited
    /// for, or nothing once the engine closes and nobody waits any more.
    fn next(&self, earliest: Option<Instant>) -> Option<SequenceNumber> {
        let mut state = self.state.lock();
        loop {
            let wanted = state.waiting.iter().map(|waiter| waiter.seq).max();
            let earliest = earliest.filter(|earliest| !state.is_stopping && sync::now() < *earliest);
            match (wanted, earliest) {
                (Some(seq), None) => return Some(seq),
                (Some(_), Some(earliest)) => drop(self.changed.wait_until(&mut state, earliest)),
                (None, _) if state.is_stopping || state.failed.is_some() => return None,
                (None, _) => self.changed.wait(&mut state),
            }
        }
    }

    /// Waits for a while, or until the engine closes.
    fn pause(&self, time: Duration) {
        let (mut state, until) = (self.state.lock(), sync::now() + time);
        while !state.is_stopping && !self.changed.wait_until(&mut state, until).timed_out() {}
    }

    /// Answers those who wait for longer than `patience`. What they have written stays on its way.
    fn expire(&self, patience: Duration, reason: &str) {
        let mut state = self.state.lock();
        let is_over = |waiter: &mut Waiter| waiter.since.elapsed() >= patience;
        let answered: Vec<_> = state.waiting.extract_if(.., is_over).collect();
        drop(state);
        answered.into_iter().for_each(|waiter| (waiter.answer)(Err(reason.to_owned())));
    }
}

impl Shared {
    /// Refuses a durability that this engine cannot give.
    pub(super) fn check_durability(&self, durability: Durability) -> Result<()> {
        check_durability(durability, self.is_remote())
    }

    /// Answers a write that is stored already, once that is as durable as its receipt says.
    pub(super) fn answer_kept(&self, request: &WriteRequest, receipt: &IdempotencyRecord) -> PendingWrite {
        let written = self.answer_again(request, receipt);
        if written.durability != Durability::Remote {
            return PendingWrite::answered(written);
        }
        let (answer, receiver) = oneshot::channel();
        self.remote.answer(receipt.seq, written, answer, KeyWaiters::default());
        PendingWrite { answer: receiver }
    }

    /// Waits until a change of schema, drop or delete that was answered before is in the store, if
    /// what the engine acknowledges is to be there.
    pub(super) fn settle_change(&self) -> Result<()> {
        if self.options.durability != Durability::Remote {
            return Ok(());
        }
        let (answer, receiver) = oneshot::channel();
        let seq = SequenceNumber(self.remote.last_change.load(Ordering::Acquire));
        self.remote.wait(
            seq,
            Box::new(|stored| {
                let _ = answer.send(stored.map_err(|reason| Error::NotInStore { reason }));
            }),
        );
        sync::block_on(receiver).unwrap_or_else(|_| Err(Error::unanswered()))
    }
}

/// Refuses durability `remote` where there is no object store.
pub(super) fn check_durability(durability: Durability, has_store: bool) -> Result<()> {
    if durability != Durability::Remote || has_store {
        return Ok(());
    }
    let reason = "remote is for engines with an object store (object_store_url), and this one has none; expected memory, \
                  process or disk";
    Err(Error::InvalidOption { option: "durability", reason: reason.to_owned() })
}
