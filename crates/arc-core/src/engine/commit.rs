//! Group commit: one thread owns the order of everything. It takes all that is queued, writes it to the log at once,
//! syncs once, applies the rows to the buffers in order, and only then acknowledges.
//!
//! No timer: while one group is synced the next one gathers. When the log fails, the group's outcome is unknown; the
//! engine refuses writes from then on, and the next open decides from what is on disk. When there is no room for a new
//! segment nothing was written: the group's writes are refused and later ones are tried again.

use std::{
    io,
    sync::{
        Arc,
        atomic::Ordering,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::{Builder, JoinHandle},
};

use super::{
    delete::apply_delete,
    queue::{Entry, QueuedDelete, QueuedFrame, QueuedWrite},
    shared::Shared,
    stats::Counters,
};
use crate::{
    Durability, Error, ErrorKind, Result, SequenceNumber, Tombstone,
    crash::crash_point,
    ingest::Staged,
    wal::{Frame, SpareMaker},
};

/// The committer's own state.
struct Committer<'a> {
    shared: &'a Shared,
    /// Wakes the thread that makes the next segment.
    spare: SyncSender<()>,
    /// Number of the last frame in the log.
    last_seq: SequenceNumber,
    /// Number of the last frame whose rows are in the buffers.
    applied: SequenceNumber,
    /// Schema changes that are visible already but found no room in the log: they go in front of the next group.
    unlogged_changes: Vec<Entry>,
}

/// Starts the committer, and the thread that makes the log's next segment while this one fills.
pub(super) fn spawn(shared: &Arc<Shared>) -> io::Result<Vec<JoinHandle<()>>> {
    let (spare, wanted) = sync_channel(1);
    let maker = shared.wal.lock().spare_maker();
    let making = Builder::new().name("arc-segment".into()).spawn(move || make_spares(&maker, &wanted))?;
    let shared = Arc::clone(shared);
    let committing = Builder::new().name("arc-commit".into()).spawn(move || {
        // If this thread dies, writers must not wait for it.
        let _close = CloseOnDrop(&shared);
        let last_seq = shared.wal.lock().last_seq();
        let committer = Committer { shared: &shared, spare, last_seq, applied: last_seq, unlogged_changes: Vec::new() };
        committer.run();
    })?;
    Ok(vec![committing, making])
}

fn make_spares(maker: &SpareMaker, wanted: &Receiver<()>) {
    while wanted.recv().is_ok() {
        if let Err(error) = maker.make() {
            // The append that needs the segment tries again and says so.
            tracing::warn!(%error, "cannot make the log's next segment ahead of time");
        }
    }
}

struct CloseOnDrop<'a>(&'a Shared);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.queue.close("the commit thread has ended");
    }
}

impl Committer<'_> {
    /// Runs until the queue is stopped and empty.
    fn run(mut self) {
        while let Some(mut entries) = self.shared.queue.take() {
            if !self.unlogged_changes.is_empty() {
                entries.splice(0..0, self.unlogged_changes.drain(..));
            }
            match self.log(&entries) {
                Ok(()) => {
                    entries.into_iter().for_each(|entry| self.apply(entry));
                    crash_point("commit::applied");
                }
                Err(error) => self.refuse(entries, &error),
            }
        }
    }

    /// Makes a group as durable as its most demanding write asks for.
    fn log(&mut self, entries: &[Entry]) -> Result<()> {
        let mut seq = self.last_seq;
        let mut number = |frame| {
            seq = seq.next();
            to_frame(seq, frame)
        };
        let frames: Vec<Frame<'_>> = entries.iter().filter_map(logged).map(&mut number).collect();
        if frames.is_empty() {
            return Ok(());
        }
        let mut wal = self.shared.wal.lock();
        wal.append(&frames)?;
        crash_point("commit::appended");
        if entries.iter().any(needs_sync) {
            wal.sync()?;
            Counters::add(&self.shared.counters.wal_syncs, 1);
        }
        let spare_needed = wal.spare_needed();
        drop(wal);
        crash_point("commit::synced");
        self.last_seq = seq;
        if spare_needed {
            // Full means that it is being made already.
            let _ = self.spare.try_send(());
        }
        Ok(())
    }

    fn apply(&mut self, entry: Entry) {
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
                let _ = answer.send(freeze(self.shared).map(|()| self.applied));
            }
        }
    }

    fn apply_write(&self, write: QueuedWrite) {
        let cost = write.cost();
        let QueuedWrite { staged, written, body_bytes, row_bytes, answer, claim, .. } = write;
        let (queue, counters) = (&self.shared.queue, &self.shared.counters);
        let result = apply_rows(self.applied, staged);
        counters.buffered_bytes.fetch_add(row_bytes, Ordering::Relaxed);
        let answered = result.map(|()| {
            Counters::add(&counters.writes, 1);
            Counters::add(&counters.points, written.points);
            Counters::add(&counters.rejected_points, written.rejected_points);
            Counters::add(&counters.bytes, body_bytes as u64);
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
        // The rows are in the buffers now; the body is needed no longer.
        self.shared.memory.give(body_bytes);
        queue.done(1, cost);
        self.shared.note_buffered();
        // A writer that no longer waits has its points stored all the same.
        let _ = answer.send(answered);
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

    fn refuse_write(&self, write: QueuedWrite, refusal: Error) {
        let cost = write.cost();
        let QueuedWrite { answer, claim, .. } = write;
        self.shared.memory.give(cost);
        self.shared.queue.done(1, cost);
        drop(claim);
        let _ = answer.send(Err(refusal));
    }

    /// Answers a group that is not in the log, or may not be.
    fn refuse(&mut self, entries: Vec<Entry>, error: &Error) {
        let failed = self.shared.wal.lock().is_failed();
        let because = describe(error);
        tracing::error!(reason = because, "the log cannot be written");
        if failed {
            self.shared.queue.close(&format!("the log failed: {because}"));
        }
        // A log that failed earlier was not touched by this group.
        let is_unknown = failed && error.kind() != ErrorKind::Closed;
        let refusal = || match error {
            Error::Io { action, path, source } if !failed => {
                Error::io(action, path, io::Error::new(source.kind(), source.to_string()))
            }
            _ if is_unknown => Error::OutcomeUnknown { reason: because.clone() },
            _ => Error::Closed { reason: because.clone() },
        };
        for entry in entries {
            match entry {
                Entry::Write(_, mut write) => {
                    // Where it is known that nothing was stored the key is free again, before the answer says so.
                    if let Some(claim) = write.claim.take().filter(|_| is_unknown) {
                        claim.unknown(&because);
                    }
                    self.refuse_write(write, refusal());
                }
                // It was not to be in the log, and is nowhere else.
                Entry::Unlogged(write) if failed => self.refuse_write(write, Error::Closed { reason: because.clone() }),
                Entry::Unlogged(write) => self.refuse_write(write, refusal()),
                Entry::Drop(frame, doomed, waiting) => {
                    if let Some(answer) = waiting {
                        let _ = answer.send(Err(refusal()));
                    }
                    self.unlogged_changes.push(Entry::Drop(frame, doomed, None));
                }
                Entry::Delete(_, delete) => {
                    let _ = delete.answer.send(Err(refusal()));
                }
                // What was applied before is in the log and can be flushed, which is what makes room on a full disk.
                freeze @ Entry::Freeze(_) => self.apply(freeze),
                Entry::Change(frame, waiting) => {
                    if let Some(answer) = waiting {
                        let _ = answer.send(Err(refusal()));
                    }
                    self.unlogged_changes.push(Entry::Change(frame, None));
                }
            }
        }
    }
}

fn describe(error: &Error) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

fn logged(entry: &Entry) -> Option<&QueuedFrame> {
    match entry {
        Entry::Change(frame, _) | Entry::Write(frame, _) | Entry::Delete(frame, _) | Entry::Drop(frame, ..) => {
            Some(frame)
        }
        Entry::Unlogged(_) | Entry::Freeze(_) => None,
    }
}

fn to_frame(seq: SequenceNumber, frame: &QueuedFrame) -> Frame<'_> {
    Frame { seq, kind: frame.kind as u8, meta: &frame.meta, body: &frame.body, body_crc: frame.body_crc }
}

fn needs_sync(entry: &Entry) -> bool {
    match entry {
        Entry::Write(_, write) => write.durability == Durability::Disk,
        Entry::Delete(_, delete) => delete.durability == Durability::Disk,
        // Somebody created a database and waits for it; other changes are as durable as the write that needs them.
        Entry::Change(_, waiting) => waiting.is_some(),
        // Also where nobody waits any more: with it go receipts, which must not go without their points.
        Entry::Drop(..) => true,
        Entry::Unlogged(_) | Entry::Freeze(_) => false,
    }
}

/// Puts decoded rows into the buffers of their tables.
pub(super) fn apply_rows(seq: SequenceNumber, staged: Staged) -> Result<()> {
    for table in staged.tables {
        if !table.rows.is_empty() {
            table.table.rows.lock().buffer.append(seq, table.rows)?;
        }
    }
    Ok(())
}

fn freeze(shared: &Shared) -> Result<()> {
    // With the rows: both are frozen between the same two writes.
    shared.keys.freeze();
    shared.unlogged.note_frozen();
    shared.registry.all_tables().iter().try_for_each(|table| table.rows.lock().buffer.freeze())
}
