//! Group commit: one thread owns the order of everything. It takes all that is queued, writes it to the log at once,
//! syncs once, applies the rows to the buffers in order, and only then acknowledges.
//!
//! No timer: while one group is synced the next one gathers. When the log fails, the group's outcome is unknown; the
//! engine refuses writes from then on, and the next open decides from what is on disk.

use std::sync::{Arc, atomic::Ordering};

use super::{
    queue::{Entry, QueuedFrame, QueuedWrite},
    shared::Shared,
    stats::Counters,
};
use crate::{
    Durability, Error, Result, SequenceNumber,
    buffer::Rows,
    crash::crash_point,
    ingest::Staged,
    wal::Frame,
};

/// Runs until the queue is stopped and empty.
pub(super) fn run(shared: &Shared) {
    // If this thread dies, writers must not wait for it.
    let _close = CloseOnDrop(shared);
    let mut applied = shared.wal.lock().last_seq();
    while let Some(entries) = shared.queue.take() {
        match log(shared, &entries) {
            Ok(()) => {
                for entry in entries {
                    apply(shared, entry, &mut applied);
                }
                crash_point("commit::applied");
            }
            Err(error) => {
                tracing::error!(%error, source = error_source(&error), "the log failed, writes are refused from now on");
                shared.queue.close(&format!("the log failed: {error}{}", error_source(&error)));
                entries.into_iter().for_each(|entry| refuse(shared, entry));
            }
        }
    }
}

struct CloseOnDrop<'a>(&'a Shared);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.queue.close("the commit thread has ended");
    }
}

fn error_source(error: &Error) -> String {
    std::error::Error::source(error).map_or_else(String::new, |source| format!(": {source}"))
}

/// Makes a group as durable as its most demanding write asks for.
fn log(shared: &Shared, entries: &[Entry]) -> Result<()> {
    let frames: Vec<Frame<'_>> = entries.iter().filter_map(frame).collect();
    if frames.is_empty() {
        return Ok(());
    }
    let mut wal = shared.wal.lock();
    wal.append(&frames)?;
    crash_point("commit::appended");
    let disk = |entry: &Entry| match entry {
        Entry::Write(_, _, write) => write.durability == Durability::Disk,
        // Somebody created a database and waits for it; other changes are as durable as the write that needs them.
        Entry::Change(_, _, waiting) => waiting.is_some(),
        Entry::Unlogged(..) | Entry::Freeze(_) => false,
    };
    if entries.iter().any(disk) {
        wal.sync()?;
        Counters::add(&shared.counters.wal_syncs, 1);
    }
    drop(wal);
    crash_point("commit::synced");
    Ok(())
}

fn frame(entry: &Entry) -> Option<Frame<'_>> {
    let (seq, frame) = match entry {
        Entry::Change(seq, frame, _) | Entry::Write(seq, frame, _) => (*seq, frame),
        Entry::Unlogged(..) | Entry::Freeze(_) => return None,
    };
    let QueuedFrame { kind, meta, body, body_crc } = frame;
    Some(Frame { seq, kind: *kind as u8, meta, body, body_crc: *body_crc })
}

fn apply(shared: &Shared, entry: Entry, applied: &mut SequenceNumber) {
    match entry {
        Entry::Change(seq, _, waiting) => {
            *applied = seq;
            if let Some(answer) = waiting {
                let _ = answer.send(Ok(()));
            }
        }
        Entry::Write(seq, _, write) => {
            *applied = seq;
            apply_write(shared, seq, write);
        }
        Entry::Unlogged(seq, write) => apply_write(shared, seq, write),
        Entry::Freeze(answer) => {
            // The asker may have gone; the buffers are frozen all the same and flushed with the next round.
            let _ = answer.send(freeze(shared).map(|()| *applied));
        }
    }
}

fn apply_write(shared: &Shared, seq: SequenceNumber, write: QueuedWrite) {
    let cost = write.cost();
    let QueuedWrite { staged, written, body_bytes, row_bytes, answer, .. } = write;
    let result = apply_rows(seq, staged);
    let counters = &shared.counters;
    counters.buffered_bytes.fetch_add(row_bytes, Ordering::Relaxed);
    let answered = match result {
        Ok(()) => {
            Counters::add(&counters.writes, 1);
            Counters::add(&counters.points, written.points);
            Counters::add(&counters.rejected_points, written.rejected_points);
            Counters::add(&counters.bytes, body_bytes as u64);
            Ok(written)
        }
        Err(error) => {
            tracing::error!(%error, "rows in the log could not be applied, writes are refused from now on");
            shared.queue.close("rows in the log could not be applied");
            Err(error)
        }
    };
    shared.queue.done(1, cost);
    shared.note_buffered();
    // A writer that no longer waits has its points stored all the same.
    let _ = answer.send(answered);
}

/// Puts decoded rows into the buffers of their tables.
pub(super) fn apply_rows(seq: SequenceNumber, staged: Staged) -> Result<()> {
    for table in staged.tables {
        let rows: Rows = table.rows;
        if !rows.is_empty() {
            table.table.rows.lock().buffer.append(seq, rows)?;
        }
    }
    Ok(())
}

fn freeze(shared: &Shared) -> Result<()> {
    shared.registry.all_tables().iter().try_for_each(|table| table.rows.lock().buffer.freeze())
}

fn refuse(shared: &Shared, entry: Entry) {
    match entry {
        Entry::Write(_, _, write) | Entry::Unlogged(_, write) => {
            shared.queue.done(1, write.cost());
            let reason = "the log failed; whether this write survives is known when the engine is opened again".into();
            let _ = write.answer.send(Err(Error::Closed { reason }));
        }
        Entry::Freeze(answer) => {
            let _ = answer.send(Err(Error::Closed { reason: "the log failed".into() }));
        }
        Entry::Change(_, _, Some(answer)) => {
            let _ = answer.send(Err(Error::Closed { reason: "the log failed".into() }));
        }
        Entry::Change(_, _, None) => {}
    }
}

/// Starts the committer.
pub(super) fn spawn(shared: &Arc<Shared>) -> std::io::Result<std::thread::JoinHandle<()>> {
    let shared = Arc::clone(shared);
    std::thread::Builder::new().name("arc-commit".into()).spawn(move || run(&shared))
}
