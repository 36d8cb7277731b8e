//! From the log to the buffers: what is in the log is applied in its order, and acknowledged.
//!
//! While one group is applied the committer writes and syncs the next one, on another thread. Where nothing waits for it, it
//! applies its group by itself: no thread has to be woken for a lone write. Never touches a file.

use std::{
    collections::VecDeque,
    io,
    sync::{Arc, atomic::Ordering},
    thread::{Builder, JoinHandle},
};

use futures::channel::oneshot;
use parking_lot::{Condvar, Mutex};

use super::{
    delete::apply_delete,
    queue::{Entry, QueuedDelete, QueuedWrite},
    shared::Shared,
    stats::Counters,
};
use crate::{Result, SequenceNumber, Tombstone, Written, crash::crash_point, ingest::Staged};

/// Bytes of writes after which their writers are told, whatever else is in their group.
const TOLD_AFTER_BYTES: usize = 1 << 20;

/// Groups on their way from the log to the buffers.
pub(super) struct Applying {
    shared: Arc<Shared>,
    waiting: Mutex<Waiting>,
    work: Condvar,
    applier: Mutex<Applier>,
}

#[derive(Debug, Default)]
struct Waiting {
    groups: VecDeque<Vec<Entry>>,
    /// Whether the thread has one in its hands.
    is_applying: bool,
    /// Whether more may come.
    has_ended: bool,
    /// Whether the thread is gone, with what it had in its hands.
    is_broken: bool,
}

impl Applying {
    /// Starts the thread that applies what is handed over. `applied` is the number of the last frame in the buffers.
    pub(super) fn start(shared: &Arc<Shared>, applied: SequenceNumber) -> io::Result<(Arc<Self>, JoinHandle<()>)> {
        let applying = Arc::new(Self {
            shared: Arc::clone(shared),
            waiting: Mutex::default(),
            work: Condvar::new(),
            applier: Mutex::new(Applier { shared: Arc::clone(shared), applied, untold: Untold::default() }),
        });
        let own = Arc::clone(&applying);
        let thread = Builder::new().name("arc-apply".into()).spawn(move || {
            let _break = BreakOnDrop(&own);
            own.run();
        })?;
        Ok((applying, thread))
    }

    /// Applies a group, or has it applied behind those that were handed over before.
    pub(super) fn hand_over(&self, group: Vec<Entry>) {
        let mut waiting = self.waiting.lock();
        if waiting.is_broken {
            // Whoever waits for an answer learns that there is none.
            return;
        }
        if waiting.groups.is_empty() && !waiting.is_applying && self.shared.queue.is_empty() {
            drop(waiting);
            self.applier.lock().apply_group(group);
            return;
        }
        waiting.groups.push_back(group);
        drop(waiting);
        self.work.notify_one();
    }

    /// Has the thread end once it has applied all that was handed over.
    pub(super) fn end(&self) {
        self.waiting.lock().has_ended = true;
        self.work.notify_one();
    }

    fn run(&self) {
        let mut waiting = self.waiting.lock();
        loop {
            if let Some(group) = waiting.groups.pop_front() {
                waiting.is_applying = true;
                drop(waiting);
                self.applier.lock().apply_group(group);
                waiting = self.waiting.lock();
                waiting.is_applying = false;
            } else if waiting.has_ended {
                return;
            } else {
                self.work.wait(&mut waiting);
            }
        }
    }
}

/// If the thread dies, writers must not wait for it.
struct BreakOnDrop<'a>(&'a Applying);

impl Drop for BreakOnDrop<'_> {
    fn drop(&mut self) {
        self.0.shared.queue.close("the thread that applies writes has ended");
        let mut waiting = self.0.waiting.lock();
        waiting.is_broken = true;
        waiting.groups.clear();
    }
}

/// Puts what is in the log into the buffers.
struct Applier {
    shared: Arc<Shared>,
    /// Number of the last frame whose rows are in the buffers.
    applied: SequenceNumber,
    untold: Untold,
}

/// Writes that are applied, but whose writers do not know yet. They are told together: the first one wakes a thread of
/// theirs, which then finds the others' tasks without being woken for each, and what they send next comes as one group.
#[derive(Default)]
struct Untold {
    answers: Vec<(oneshot::Sender<Result<Written>>, Result<Written>)>,
    body_bytes: usize,
    cost: usize,
}

impl Applier {
    fn apply_group(&mut self, group: Vec<Entry>) {
        group.into_iter().for_each(|entry| self.apply(entry));
        self.tell();
        crash_point("commit::applied");
    }

    fn apply(&mut self, entry: Entry) {
        if !matches!(entry, Entry::Write(..) | Entry::Unlogged(_)) {
            self.tell();
        }
        match entry {
            Entry::Change(_, waiting) => {
                self.applied = self.applied.next();
                if let Some(answer) = waiting {
                    let _ = answer.send(Ok(()));
                }
            }
            Entry::Write(_, write) => {
                self.applied = self.applied.next();
                self.apply_write(write);
            }
            Entry::Drop(_, doomed, waiting) => {
                self.applied = self.applied.next();
                self.shared.apply_drop(&doomed, self.applied);
                if let Some(answer) = waiting {
                    let _ = answer.send(Ok(()));
                }
            }
            Entry::Delete(_, delete) => {
                self.applied = self.applied.next();
                self.apply_delete(delete);
            }
            // Shares the number of the frame before it: it is never replayed, and flushed with its neighbours.
            Entry::Unlogged(write) => {
                self.shared.unlogged.note_applied();
                self.apply_write(write);
            }
            Entry::Freeze(answer) => {
                // The asker may have gone; the buffers are frozen all the same and flushed with the next round.
                let _ = answer.send(freeze(&self.shared).map(|()| self.applied));
            }
        }
    }

    fn apply_write(&mut self, write: QueuedWrite) {
        let cost = write.cost();
        let QueuedWrite { staged, written, received_bytes, body_bytes, row_bytes, answer, claim, .. } = write;
        let (queue, counters) = (&self.shared.queue, &self.shared.counters);
        let result = apply_rows(self.applied, staged);
        counters.buffered_bytes.fetch_add(row_bytes, Ordering::Relaxed);
        self.shared.fresh.note_applied(row_bytes);
        let answered = result.map(|()| {
            Counters::add(&counters.writes, 1);
            Counters::add(&counters.points, written.points);
            Counters::add(&counters.rejected_points, written.rejected_points);
            Counters::add(&counters.bytes, received_bytes as u64);
            written
        });
        if let Err(error) = &answered {
            tracing::error!(%error, "rows in the log could not be applied, writes are refused from now on");
            queue.close("rows in the log could not be applied");
        }
        // Before the answer, so that whoever got it finds the receipt.
        match (claim, &answered) {
            (Some(claim), Ok(written)) => claim.stored(self.applied, written),
            (Some(claim), Err(_)) => claim.unknown("rows in the log could not be applied"),
            (None, _) => {}
        }
        self.untold.body_bytes += body_bytes;
        self.untold.cost += cost;
        self.untold.answers.push((answer, answered));
        if self.untold.cost >= TOLD_AFTER_BYTES {
            self.tell();
        }
    }

    /// Answers the writes that are applied.
    fn tell(&mut self) {
        let Untold { answers, body_bytes, cost } = std::mem::take(&mut self.untold);
        if answers.is_empty() {
            return;
        }
        // The rows are in the buffers now; the bodies are needed no longer.
        self.shared.memory.give(body_bytes);
        self.shared.queue.done(answers.len(), cost);
        self.shared.note_buffered();
        for (answer, answered) in answers {
            // A writer that no longer waits has its points stored all the same.
            let _ = answer.send(answered);
        }
    }

    fn apply_delete(&self, delete: QueuedDelete) {
        let QueuedDelete { table, predicate, answer, .. } = delete;
        let deleted = apply_delete(&table, Tombstone { seq: self.applied, predicate });
        if let Err(error) = &deleted {
            tracing::error!(%error, "a delete in the log could not be applied, writes are refused from now on");
            self.shared.queue.close("a delete in the log could not be applied");
        }
        Counters::add(&self.shared.counters.deletes, u64::from(deleted.is_ok()));
        // The next flush takes it to the manifest, and compaction makes it physical.
        self.shared.note_buffered();
        let _ = answer.send(deleted);
    }
}

/// Puts decoded rows into the buffers of their tables.
pub(crate) fn apply_rows(seq: SequenceNumber, staged: Staged) -> Result<()> {
    for (table, row) in staged.loose_tables.iter().zip(staged.loose.rows()) {
        table.rows.lock().buffer.append_loose(seq, &row)?;
    }
    for table in staged.tables {
        if table.is_empty() {
            continue;
        }
        let mut rows = table.table.rows.lock();
        if !table.kept.chunks.is_empty() {
            rows.buffer.append_kept(seq, table.kept)?;
        }
        if !table.rows.is_empty() {
            rows.buffer.append(seq, table.rows)?;
        }
    }
    Ok(())
}

fn freeze(shared: &Shared) -> Result<()> {
    // With the rows: both are frozen between the same two writes.
    shared.keys.freeze();
    shared.unlogged.note_frozen();
    shared.fresh.note_frozen(shared.counters.wal_bytes.load(Ordering::Relaxed));
    shared.flush_signal.note_frozen();
    shared.registry.all_tables().iter().try_for_each(|table| table.rows.lock().buffer.freeze())
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;

    use super::*;
    use crate::{Engine, ErrorKind};

    #[test]
    fn nobody_waits_for_a_thread_that_has_died() {
        let dir = tempfile::tempdir().unwrap();
        let engine = Engine::open(dir.path().join("data")).unwrap();
        let (applying, thread) = Applying::start(&engine.inner.shared, SequenceNumber(0)).unwrap();
        // As when it panics.
        drop(BreakOnDrop(&applying));
        let (answer, receiver) = oneshot::channel();
        applying.hand_over(vec![Entry::Freeze(answer)]);
        assert!(block_on(receiver).is_err(), "its sender is gone");
        assert_eq!(engine.write_lp("d", b"m v=1").unwrap_err().kind(), ErrorKind::Closed);
        applying.end();
        thread.join().unwrap();
    }
}
