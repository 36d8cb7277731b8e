//! The queue in front of the log: fixes the order of everything and holds writers back when memory
//! is short.
//!
//! Order in the queue is order in the log is order in the buffers. Bounded by bytes: when it stays
//! full, a write fails as busy; nothing that was queued is ever dropped.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures::channel::oneshot;

use super::{delete::Deleted, frame::FrameKind, idempotency::KeyClaim};
use crate::{
    Durability, Error, Predicate, Result, SequenceNumber, Written,
    ingest::Staged,
    registry::{Database, PendingDrop, Registry, Table},
    sync::{self, Condvar, Mutex, MutexGuard},
    wal::MAX_PART_BYTES,
};

/// How long a writer without memory waits before it looks by itself.
const BUDGET_POLL: Duration = Duration::from_millis(20);

/// A frame on its way to the log.
#[derive(Debug)]
pub(super) struct QueuedFrame {
    pub(super) kind: FrameKind,
    pub(super) meta: Vec<u8>,
    pub(super) body: Bytes,
    pub(super) body_crc: u32,
}

impl QueuedFrame {
    /// Refuses a frame that the log cannot have, before it stands among others that it can.
    fn check(&self) -> Result<()> {
        let bytes = self.meta.len().max(self.body.len());
        if bytes <= MAX_PART_BYTES {
            return Ok(());
        }
        let reason =
            format!("it takes {bytes} bytes in the log, and may take {MAX_PART_BYTES}; send it in smaller parts");
        Err(Error::InvalidPayload { format: "logged", reason })
    }
}

/// Rows on their way to the buffers, and who waits for them.
#[derive(Debug)]
pub(super) struct QueuedWrite {
    pub(super) staged: Staged,
    pub(super) durability: Durability,
    pub(super) written: Written,
    pub(super) received_bytes: usize,
    /// What is held of the request until it is logged and applied, besides its rows.
    pub(super) body_bytes: usize,
    /// What its rows hold until they are flushed.
    pub(super) row_bytes: usize,
    /// Of a write with an idempotency key.
    pub(super) claim: Option<KeyClaim>,
    pub(super) answer: oneshot::Sender<Result<Written>>,
}

impl QueuedWrite {
    /// Returns the memory that it holds while it is queued.
    pub(super) fn cost(&self) -> usize {
        self.body_bytes + self.row_bytes
    }
}

/// Who waits for a change of schema that no write needs, and what is there once it is applied.
#[derive(Debug)]
pub(super) struct Maker {
    pub(super) answer: oneshot::Sender<Result<()>>,
    pub(super) made: Option<Made>,
}

/// A database or table that a thread makes before its first write. Nothing sees it before it is in
/// the log: what is refused is not there.
#[derive(Debug)]
pub(super) enum Made {
    Database(Arc<Database>),
    Table(Arc<Database>, Arc<Table>),
}

impl Made {
    /// Makes it visible.
    pub(super) fn publish(self, registry: &Registry) {
        match self {
            Self::Database(database) => registry.add(database),
            Self::Table(database, table) => database.add(table),
        }
    }
}

/// The answers of a freeze, and of the frame behind it.
pub(super) type FrozenBefore = (oneshot::Receiver<Result<SequenceNumber>>, oneshot::Receiver<Result<()>>);

/// A delete on its way to its table, and who waits for it.
#[derive(Debug)]
pub(super) struct QueuedDelete {
    pub(super) table: Arc<Table>,
    pub(super) predicate: Predicate,
    pub(super) durability: Durability,
    pub(super) answer: oneshot::Sender<Result<Deleted>>,
}

/// Something for the committer to do, in order.
#[derive(Debug)]
pub(super) enum QueueEntry {
    /// A change of schema, and who waits for it if no write of the same group does.
    Change(QueuedFrame, Option<Maker>),
    /// A logged write.
    Write(QueuedFrame, QueuedWrite),
    /// Ends a table or database that is out of sight already, and who waits for it.
    Drop(QueuedFrame, Arc<PendingDrop>, Option<oneshot::Sender<Result<()>>>),
    /// Takes rows away.
    Delete(QueuedFrame, QueuedDelete),
    /// A write that is not logged (`memory`).
    Unlogged(QueuedWrite),
    /// Freeze all buffers; answers the last sequence number in them.
    Freeze(oneshot::Sender<Result<SequenceNumber>>),
    /// Prove that what is in the log was synced, now that nothing more comes.
    Seal,
}

#[derive(Debug)]
struct QueueState {
    entries: Vec<QueueEntry>,
    bytes: usize,
    writes: usize,
    /// Why no more writes are taken.
    closed: Option<String>,
    stopping: bool,
    /// Whether a thread has a [`CommitTurn`].
    is_taken: bool,
    /// Whether a thread was woken for what is queued and has not looked yet.
    is_called: bool,
}

/// The right to log what was taken; while a thread has it nothing else is taken.
pub(super) struct CommitTurn<'a>(&'a Queue);

impl Drop for CommitTurn<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.is_taken = false;
        if state.stopping {
            self.0.work.notify_all();
        } else if !state.entries.is_empty() {
            self.0.call(state);
        }
    }
}

/// A write, and what goes into the log for it.
#[derive(Debug)]
pub(super) struct LoggedWrite {
    /// The changes of schema that it needs; they come before it.
    pub(super) changes: Vec<QueuedFrame>,
    /// Nothing for a write that is kept in memory only.
    pub(super) frame: Option<QueuedFrame>,
    pub(super) write: QueuedWrite,
}

/// What a write is told for which no memory came free.
pub(super) fn over_budget() -> Error {
    Error::Busy {
        reason: "unflushed points, queued writes and queries have filled max_buffer_bytes, memory_bytes or \
                 max_resident_bytes",
        retry_after: Duration::from_secs(1),
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Queue {
    state: Mutex<QueueState>,
    work: Condvar,
    freed: Condvar,
}

impl Queue {
    pub(super) fn new() -> Self {
        let (entries, closed) = (Vec::new(), None);
        let state =
            QueueState { entries, bytes: 0, writes: 0, closed, stopping: false, is_taken: false, is_called: false };
        Self { state: Mutex::new(state), work: Condvar::new(), freed: Condvar::new() }
    }

    /// Queues schema changes and the write that needs them, as soon as `reserve(queued bytes)` has
    /// taken the memory for it.
    ///
    /// `publish` makes the changes visible to other writers. It runs while the queue is locked: the
    /// thread that sees them can only be queued after them, which is what makes replay meet them in
    /// the same order. Where it says false, nothing is queued, and the write is given back.
    pub(super) fn push(
        &self,
        LoggedWrite { changes, frame, write }: LoggedWrite,
        max_wait: Duration,
        reserve: impl Fn(usize) -> bool,
        publish: impl FnOnce(&QueuedWrite) -> bool,
    ) -> Result<Option<QueuedWrite>> {
        changes.iter().chain(&frame).try_for_each(QueuedFrame::check)?;
        let mut state = self.state.lock();
        let deadline = sync::now() + max_wait;
        let mut timed_out = false;
        loop {
            if let Some(reason) = &state.closed {
                return Err(Error::Closed { reason: reason.clone() });
            }
            if reserve(state.bytes) {
                break;
            }
            if timed_out {
                return Err(over_budget());
            }
            // Nothing tells when a query has given memory back.
            let look_again = deadline.min(sync::now() + BUDGET_POLL);
            self.freed.wait_until(&mut state, look_again);
            timed_out = sync::now() >= deadline;
        }
        if !publish(&write) {
            return Ok(Some(write));
        }
        state.bytes += write.cost();
        state.writes += 1;
        state.entries.extend(changes.into_iter().map(|change| QueueEntry::Change(change, None)));
        state.entries.push(match frame {
            Some(frame) => QueueEntry::Write(frame, write),
            None => QueueEntry::Unlogged(write),
        });
        self.call(state);
        Ok(None)
    }

    /// Queues a change of schema that no write needs, and what is made by it; the receiver gets its
    /// answer. `queued` is called while the queue is locked.
    pub(super) fn push_change(
        &self,
        change: QueuedFrame,
        made: Option<Made>,
        queued: impl FnOnce(),
    ) -> Result<oneshot::Receiver<Result<()>>> {
        change.check()?;
        let (answer, receiver) = oneshot::channel();
        let mut state = self.state.lock();
        if let Some(reason) = &state.closed {
            return Err(Error::Closed { reason: reason.clone() });
        }
        queued();
        state.entries.push(QueueEntry::Change(change, Some(Maker { answer, made })));
        self.call(state);
        Ok(receiver)
    }

    /// Queues a drop. `publish` takes it out of sight while the queue is locked.
    pub(super) fn push_drop(
        &self,
        frame: QueuedFrame,
        answer: oneshot::Sender<Result<()>>,
        publish: impl FnOnce() -> Arc<PendingDrop>,
    ) -> Result<()> {
        frame.check()?;
        let mut state = self.state.lock();
        if let Some(reason) = &state.closed {
            return Err(Error::Closed { reason: reason.clone() });
        }
        let pending = publish();
        state.entries.push(QueueEntry::Drop(frame, pending, Some(answer)));
        self.call(state);
        Ok(())
    }

    /// Queues a delete; the receiver gets its answer.
    pub(super) fn push_delete(&self, frame: QueuedFrame, delete: QueuedDelete) -> Result<()> {
        frame.check()?;
        let mut state = self.state.lock();
        if let Some(reason) = &state.closed {
            return Err(Error::Closed { reason: reason.clone() });
        }
        state.entries.push(QueueEntry::Delete(frame, delete));
        self.call(state);
        Ok(())
    }

    /// Has the committer freeze all buffers after everything that is queued.
    pub(super) fn freeze(&self) -> Result<oneshot::Receiver<Result<SequenceNumber>>> {
        let (answer, receiver) = oneshot::channel();
        let mut state = self.state.lock();
        if state.stopping {
            return Err(Error::Closed { reason: "the engine is stopping".into() });
        }
        state.entries.push(QueueEntry::Freeze(answer));
        self.call(state);
        Ok(receiver)
    }

    /// As [`freeze`](Self::freeze), with a frame right behind it that says nothing new: no row that
    /// comes later has a number that is frozen, logged or not. The second answer is that frame's.
    pub(super) fn freeze_before(&self, frame: QueuedFrame) -> Result<FrozenBefore> {
        frame.check()?;
        let ((frozen, is_frozen), (logged, is_logged)) = (oneshot::channel(), oneshot::channel());
        let mut state = self.state.lock();
        if let Some(reason) = &state.closed {
            return Err(Error::Closed { reason: reason.clone() });
        }
        state.entries.push(QueueEntry::Freeze(frozen));
        state.entries.push(QueueEntry::Change(frame, Some(Maker { answer: logged, made: None })));
        self.call(state);
        Ok((is_frozen, is_logged))
    }

    /// Has the log sealed, unless there is other work for it.
    pub(super) fn seal(&self) {
        let mut state = self.state.lock();
        if state.closed.is_none() && state.entries.is_empty() {
            state.entries.push(QueueEntry::Seal);
            self.call(state);
        }
    }

    /// Waits for work and for one's turn; `None` once the queue is stopped and empty. Until the
    /// turn is dropped nothing else takes anything, so that what is taken is logged in the order of
    /// the queue.
    pub(super) fn take(&self) -> Option<(Vec<QueueEntry>, CommitTurn<'_>)> {
        let mut state = self.state.lock();
        loop {
            state.is_called = false;
            if !state.is_taken && !state.entries.is_empty() {
                state.is_taken = true;
                return Some((std::mem::take(&mut state.entries), CommitTurn(self)));
            }
            if state.stopping && state.entries.is_empty() {
                return None;
            }
            self.work.wait(&mut state);
        }
    }

    /// Wakes one of those who wait for work, unless one is awake already or will look after its
    /// turn.
    fn call(&self, mut state: MutexGuard<'_, QueueState>) {
        if !state.is_taken && !state.is_called {
            state.is_called = self.work.notify_one();
        }
    }

    /// Gives the memory of a write back that has left the queue.
    pub(super) fn done(&self, writes: usize, cost: usize) {
        let mut state = self.state.lock();
        state.bytes = state.bytes.saturating_sub(cost);
        state.writes = state.writes.saturating_sub(writes);
        drop(state);
        self.freed.notify_all();
    }

    /// Wakes the writers that wait for memory.
    pub(super) fn budget_changed(&self) {
        // Taken so that no writer is between its check and its wait.
        drop(self.state.lock());
        self.freed.notify_all();
    }

    /// Refuses writes from now on; the first reason stays. Returns whether this is the first.
    pub(super) fn close(&self, reason: &str) -> bool {
        let mut state = self.state.lock();
        let is_first = state.closed.is_none();
        state.closed.get_or_insert_with(|| reason.to_owned());
        drop(state);
        self.freed.notify_all();
        is_first
    }

    /// Returns why writes are refused.
    pub(super) fn closed(&self) -> Option<String> {
        self.state.lock().closed.clone()
    }

    /// Lets the committer end once the queue is empty.
    pub(super) fn stop(&self) {
        let mut state = self.state.lock();
        state.stopping = true;
        state.closed.get_or_insert_with(|| "the engine is closed".to_owned());
        drop(state);
        self.work.notify_all();
        self.freed.notify_all();
    }

    /// Returns the number of writes queued or being logged.
    pub(super) fn writes(&self) -> usize {
        self.state.lock().writes
    }
}

#[cfg(all(test, target_pointer_width = "64"))]
mod tests {
    use super::*;

    #[test]
    fn a_frame_that_the_log_cannot_have_is_refused_before_it_is_queued() {
        // Memory that nothing touches.
        let frame = |bytes: usize| QueuedFrame {
            kind: FrameKind::Schema,
            meta: Vec::new(),
            body: Bytes::from(vec![0; bytes]),
            body_crc: 0,
        };
        let queue = Queue::new();
        let refused = queue.push_change(frame(MAX_PART_BYTES + 1), None, || panic!("it is not queued")).unwrap_err();
        assert_eq!(refused.kind(), crate::ErrorKind::InvalidInput, "{refused}");
        assert!(refused.to_string().contains("4294967296 bytes"), "{refused}");
        assert!(queue.state.lock().entries.is_empty() && queue.closed().is_none());
        let _answer = queue.push_change(frame(1), None, || {}).unwrap();
        assert_eq!(queue.state.lock().entries.len(), 1);
    }
}
