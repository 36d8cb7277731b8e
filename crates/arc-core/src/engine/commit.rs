//! Group commit: one thread owns the order of everything. It takes all that is queued, writes it to the log at once,
//! syncs once, and hands the group over to be applied to the buffers in order, and acknowledged only then.
//!
//! No timer: while one group is synced the next one gathers, and the last one is applied. When the log fails, the group's outcome is unknown; the
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
    apply::Applying,
    queue::{Entry, QueuedFrame, QueuedWrite},
    shared::Shared,
    stats::Counters,
};
use crate::{
    Durability, Error, ErrorKind, Result, SequenceNumber,
    crash::crash_point,
    wal::{Frame, SpareMaker},
};

/// The committer's own state.
struct Committer<'a> {
    shared: &'a Shared,
    applying: &'a Applying,
    /// Wakes the thread that makes the next segment.
    spare: SyncSender<()>,
    /// Number of the last frame in the log.
    last_seq: SequenceNumber,
    /// Schema changes that are visible already but found no room in the log: they go in front of the next group.
    unlogged_changes: Vec<Entry>,
}

/// Starts the committer, the thread that applies what it has logged, and the one that makes the log's next segment while
/// this one fills.
pub(super) fn spawn(shared: &Arc<Shared>) -> io::Result<Vec<JoinHandle<()>>> {
    let (spare, wanted) = sync_channel(1);
    let maker = shared.wal.lock().spare_maker();
    let making = Builder::new().name("arc-segment".into()).spawn(move || make_spares(&maker, &wanted))?;
    let last_seq = shared.wal.lock().last_seq();
    let (applying, thread) = Applying::start(shared, last_seq)?;
    let shared = Arc::clone(shared);
    let committing = Builder::new().name("arc-commit".into()).spawn(move || {
        // If this thread dies, writers must not wait for it.
        let _close = CloseOnDrop(&shared, &applying);
        let unlogged_changes = Vec::new();
        Committer { shared: &shared, applying: &applying, spare, last_seq, unlogged_changes }.run();
    })?;
    Ok(vec![committing, thread, making])
}

fn make_spares(maker: &SpareMaker, wanted: &Receiver<()>) {
    while wanted.recv().is_ok() {
        if let Err(error) = maker.make() {
            // The append that needs the segment tries again and says so.
            tracing::warn!(%error, "cannot make the log's next segment ahead of time");
        }
    }
}

struct CloseOnDrop<'a>(&'a Shared, &'a Applying);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.queue.close("the commit thread has ended");
        self.1.end();
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
                Ok(()) => self.applying.hand_over(entries),
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
        self.shared.counters.wal_bytes.store(wal.live_bytes(), Ordering::Relaxed);
        drop(wal);
        crash_point("commit::synced");
        self.last_seq = seq;
        if spare_needed {
            // Full means that it is being made already.
            let _ = self.spare.try_send(());
        }
        Ok(())
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
                freeze @ Entry::Freeze(_) => self.applying.hand_over(vec![freeze]),
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
