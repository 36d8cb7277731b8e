//! From the log to the buffers: what is in the log, and as durable as was asked for, is applied in
//! its order, and acknowledged.
//!
//! One thread at a time applies: the one whose sync made a group ready, unless another is at it,
//! which then takes that group as well. So no thread is woken for it, and the others log and sync
//! meanwhile. Never touches a file.

use std::{
    collections::VecDeque,
    mem,
    sync::{Arc, atomic::Ordering},
};

use futures::channel::oneshot;

use super::{
    delete::apply_delete,
    idempotency::KeyWaiters,
    queue::{Maker, QueueEntry, QueuedDelete, QueuedWrite},
    shared::Shared,
    stats::Counters,
    tail::TailEnding,
};
use crate::{
    Durability, Error, Result, SequenceNumber, Tombstone, Written,
    crash::crash_point,
    ingest::Staged,
    registry::{ByTable, Table},
    sync::{Mutex, MutexGuard},
};

/// Bytes of writes after which they are acknowledged, whatever else is in their group.
const ACKNOWLEDGE_AFTER_BYTES: usize = 1 << 20;

/// Why nothing more is taken once something in the log is not in memory.
const NOT_APPLIED: &str = "rows in the log could not be applied";

/// Groups on their way from the log to the buffers.
pub(super) struct Applying {
    waiting: Mutex<WaitingGroup>,
    applier: Mutex<Applier>,
}

#[derive(Debug, Default)]
struct WaitingGroup {
    groups: VecDeque<LoggedGroup>,
    /// Everything in the log up to here is durable.
    durable_seq: SequenceNumber,
    is_applying: bool,
    /// Whether the log has failed: what is not ready yet never will be.
    has_failed: bool,
    /// Whether a thread is gone, with what it had in its hands.
    is_broken: bool,
}

/// Entries that were logged together.
#[derive(Debug)]
struct LoggedGroup {
    entries: Vec<QueueEntry>,
    logged: Logged,
}

/// What is known of a group that is in the log.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Logged {
    /// What has to be durable before the group is applied; those before it are as well by then.
    pub(super) needs: SequenceNumber,
    /// Numbers of its first and last frame, if it has any.
    pub(super) numbers: Option<(SequenceNumber, SequenceNumber)>,
}

impl Applying {
    /// `applied` is the number of the last frame in the buffers.
    pub(super) fn new(shared: &Arc<Shared>, applied: SequenceNumber) -> Self {
        Self {
            waiting: Mutex::new(WaitingGroup { durable_seq: applied, ..WaitingGroup::default() }),
            applier: Mutex::new(Applier {
                shared: Arc::clone(shared),
                applied,
                unacknowledged: Unacknowledged::default(),
                has_failed: false,
            }),
        }
    }

    /// Adds a group that is in the log, to be applied after those before it, once the log is as
    /// durable as it needs. Gives it back if the log has failed meanwhile.
    pub(super) fn add(&self, entries: Vec<QueueEntry>, logged: Logged) -> Option<Vec<QueueEntry>> {
        let mut waiting = self.waiting.lock();
        if waiting.is_broken {
            // A thread that waits for an answer learns that there is none.
            return None;
        }
        // What was applied before can still be flushed.
        if waiting.has_failed && !entries.iter().all(|entry| matches!(entry, QueueEntry::Freeze(_))) {
            return Some(entries);
        }
        waiting.groups.push_back(LoggedGroup { entries, logged });
        None
    }

    /// Notes that the log is durable up to `durable_seq`.
    pub(super) fn note_durable(&self, durable_seq: SequenceNumber) {
        let mut waiting = self.waiting.lock();
        waiting.durable_seq = waiting.durable_seq.max(durable_seq);
    }

    /// Applies the groups that are ready, and those that become so meanwhile, unless another thread
    /// does.
    pub(super) fn apply_ready(&self) {
        let mut waiting = self.waiting.lock();
        if mem::replace(&mut waiting.is_applying, true) {
            return;
        }
        while let Some(group) = waiting.pop_ready() {
            MutexGuard::unlocked(&mut waiting, || self.applier.lock().apply_group(group));
        }
        waiting.is_applying = false;
    }

    /// Takes out what is not ready, now that the log has failed: nothing knows what is on disk, nor
    /// will before the next open. In order.
    pub(super) fn fail(&self) -> Vec<QueueEntry> {
        let mut waiting = self.waiting.lock();
        waiting.has_failed = true;
        let durable_seq = waiting.durable_seq;
        let ready = waiting.groups.iter().take_while(|group| group.logged.needs <= durable_seq).count();
        waiting.groups.drain(ready..).flat_map(|group| group.entries).collect()
    }

    /// Lets nothing wait for a thread that has died.
    pub(super) fn break_off(&self) {
        let mut waiting = self.waiting.lock();
        waiting.is_broken = true;
        waiting.groups.clear();
    }
}

impl WaitingGroup {
    fn pop_ready(&mut self) -> Option<LoggedGroup> {
        let durable_seq = self.durable_seq;
        self.groups.pop_front_if(|group| group.logged.needs <= durable_seq)
    }
}

/// Puts what is in the log into the buffers.
struct Applier {
    shared: Arc<Shared>,
    /// Number of the last frame whose rows are in the buffers.
    applied: SequenceNumber,
    unacknowledged: Unacknowledged,
    /// Whether something that is in the log could not be applied. Nothing is frozen from then on: a
    /// flush would take what is in memory for all that the log has, and release it.
    has_failed: bool,
}

/// Writes that are applied, but whose writers do not know yet. They are told together: the first
/// one wakes a thread of theirs, which then finds the others' tasks without being woken for each,
/// and what they send next comes as one group.
#[derive(Default)]
struct Unacknowledged {
    answers: Vec<AppliedWrite>,
    /// What their bodies held, and their rows until they were in the buffers.
    spare_bytes: usize,
    cost: usize,
}

/// A write that is applied, as frame `seq`.
struct AppliedWrite {
    seq: SequenceNumber,
    answered: Result<Written>,
    answer: oneshot::Sender<Result<Written>>,
    /// Of one that waits for the object store: who waits for it.
    keyed: KeyWaiters,
}

impl Applier {
    fn apply_group(&mut self, LoggedGroup { entries, logged }: LoggedGroup) {
        // What is counted here is what a flush releases the log up to. If it were not the log's own
        // number, nothing that is acknowledged would be safe any more: the thread ends, and with it
        // all writes and flushes.
        if let Some((first, _)) = logged.numbers {
            assert_eq!(first, self.applied.next(), "a group of the log is applied in its place");
        }
        if let Some((_, last)) = logged.numbers {
            // As durable as was asked for, and before any thread hears of it: a thread that does may
            // have another process look.
            self.shared.log.acknowledge(last);
        }
        entries.into_iter().for_each(|entry| self.apply(entry));
        if let Some((_, last)) = logged.numbers {
            assert_eq!(last, self.applied, "all frames of a group are applied");
        }
        self.acknowledge();
        crash_point("commit::applied");
    }

    fn apply(&mut self, entry: QueueEntry) {
        if !matches!(entry, QueueEntry::Write(..) | QueueEntry::Unlogged(_)) {
            self.acknowledge();
        }
        match entry {
            QueueEntry::Change(_, waiting) => {
                self.applied = self.applied.next();
                if let Some(Maker { answer, made }) = waiting {
                    if let Some(made) = made {
                        self.shared.schema.publish(made);
                    }
                    self.shared.remote.note_change(self.applied);
                    let _ = answer.send(Ok(()));
                }
            }
            QueueEntry::Write(_, write) => {
                self.applied = self.applied.next();
                self.apply_write(write);
            }
            QueueEntry::Drop(_, pending, waiting) => {
                self.applied = self.applied.next();
                self.shared.apply_drop(&pending, self.applied);
                self.shared.remote.note_change(self.applied);
                let is_dropped = |table: &Arc<Table>| pending.tables.iter().any(|dropped| Arc::ptr_eq(dropped, table));
                self.shared.tails.lock().end(&TailEnding::Dropped, is_dropped);
                if let Some(answer) = waiting {
                    let _ = answer.send(Ok(()));
                }
            }
            QueueEntry::Delete(_, delete) => {
                self.applied = self.applied.next();
                self.apply_delete(delete);
            }
            // Shares the number of the frame before it: it is never replayed, and flushed with its
            // neighbours.
            QueueEntry::Unlogged(write) => {
                self.shared.unflushed.note_unlogged();
                self.apply_write(write);
            }
            QueueEntry::Freeze(answer) => {
                // The asker may have gone; the buffers are frozen all the same and flushed with the
                // next round.
                let _ = answer.send(self.freeze());
            }
            QueueEntry::Seal => {}
        }
    }

    fn apply_write(&mut self, write: QueuedWrite) {
        let cost = write.cost();
        let QueuedWrite { staged, written, received_bytes, body_bytes, row_bytes, answer, claim, .. } = write;
        let (queue, counters) = (&self.shared.queue, &self.shared.counters);
        let result = {
            let mut tails = self.shared.tails.lock();
            let tailed = tails.rows_of(&staged);
            let applied = apply_rows(self.applied, staged);
            tails.hand_on(tailed, &applied);
            applied
        };
        // Texts that the buffers have already take less than they did on their way.
        let held_bytes = *result.as_ref().unwrap_or(&row_bytes);
        self.shared.memory.take(held_bytes.saturating_sub(row_bytes));
        counters.buffered_bytes.fetch_add(held_bytes, Ordering::Relaxed);
        self.shared.unflushed.note_applied(held_bytes);
        let answered = result.map(|_| {
            Counters::add(&counters.writes, 1);
            Counters::add(&counters.points, written.points);
            Counters::add(&counters.rejected_points, written.rejected_points);
            Counters::add(&counters.bytes, received_bytes as u64);
            written
        });
        if let Err(error) = &answered {
            self.has_failed = true;
            tracing::error!(%error, "rows in the log could not be applied, writes are refused from now on");
            queue.close(NOT_APPLIED);
        }
        // Before the answer, so that the thread that got it finds the receipt.
        let keyed = match (claim, &answered) {
            (Some(claim), Ok(written)) if written.durability == Durability::Remote => claim.kept(self.applied, written),
            (Some(claim), Ok(written)) => {
                claim.stored(self.applied, written);
                KeyWaiters::default()
            }
            (Some(claim), Err(_)) => {
                claim.unknown(NOT_APPLIED);
                KeyWaiters::default()
            }
            (None, _) => KeyWaiters::default(),
        };
        self.unacknowledged.spare_bytes += body_bytes + row_bytes.saturating_sub(held_bytes);
        self.unacknowledged.cost += cost;
        self.unacknowledged.answers.push(AppliedWrite { seq: self.applied, answered, answer, keyed });
        if self.unacknowledged.cost >= ACKNOWLEDGE_AFTER_BYTES {
            self.acknowledge();
        }
    }

    /// Answers the writes that are applied.
    fn acknowledge(&mut self) {
        let Unacknowledged { answers, spare_bytes, cost } = std::mem::take(&mut self.unacknowledged);
        if answers.is_empty() {
            return;
        }
        // The rows are in the buffers now; the bodies are needed no longer.
        self.shared.memory.give(spare_bytes);
        self.shared.queue.done(answers.len(), cost);
        self.shared.note_buffered();
        for AppliedWrite { seq, answered, answer, keyed } in answers {
            match answered {
                Ok(written) if written.durability == Durability::Remote => {
                    self.shared.remote.answer(seq, written, answer, keyed);
                }
                // A writer that no longer waits has its points stored all the same.
                answered => drop(answer.send(answered)),
            }
        }
    }

    /// Freezes all buffers; returns the last number in them.
    fn freeze(&mut self) -> Result<SequenceNumber> {
        if self.has_failed {
            return Err(Error::internal(NOT_APPLIED));
        }
        if let Err(error) = freeze(&self.shared) {
            self.has_failed = true;
            tracing::error!(%error, "rows in the log could not be frozen, writes are refused from now on");
            self.shared.queue.close(NOT_APPLIED);
            return Err(error);
        }
        Ok(self.applied)
    }

    fn apply_delete(&mut self, delete: QueuedDelete) {
        let QueuedDelete { table, predicate, answer, .. } = delete;
        let deleted = apply_delete(&table, Tombstone { seq: self.applied, predicate });
        if let Err(error) = &deleted {
            self.has_failed = true;
            tracing::error!(%error, "a delete in the log could not be applied, writes are refused from now on");
            self.shared.queue.close("a delete in the log could not be applied");
        }
        Counters::add(&self.shared.counters.deletes, u64::from(deleted.is_ok()));
        self.shared.remote.note_change(self.applied);
        // The next flush takes it to the manifest, and compaction makes it physical.
        self.shared.note_buffered();
        let _ = answer.send(deleted);
    }
}

/// Puts decoded rows into the buffers of their tables; returns how many bytes more these hold.
pub(crate) fn apply_rows(seq: SequenceNumber, staged: Staged) -> Result<usize> {
    let staging = &staged.database.staging.buffer;
    // Staged rows take there what they take in buffers.
    let mut bytes = staged.rows.bytes();
    if staged.tables.is_empty() {
        if staged.rows.len() > 0 {
            staging.push(seq, staged.rows, &staged.row_tables)?;
        }
        return Ok(bytes);
    }
    let mut staged_rows = ByTable::new(&staged.rows, &staged.row_tables);
    for table in staged.tables {
        if table.is_empty() && !staged_rows.has(&table.table) {
            continue;
        }
        // All rows of a table under one lock: no reader finds half of a write.
        let mut rows = table.table.rows()?;
        staged_rows.append(seq, &table.table, &mut rows.buffer)?;
        if !table.kept.chunks.is_empty() {
            bytes += rows.buffer.append_zero_copy(seq, table.kept)?;
        }
        if !table.rows.is_empty() {
            bytes += rows.buffer.append(seq, table.rows)?;
        }
    }
    // What came before comes first, also where all tables were passed over.
    staging.drain()?;
    staged_rows.append_rest(seq)?;
    Ok(bytes)
}

fn freeze(shared: &Shared) -> Result<()> {
    // With the rows: both are frozen between the same two writes.
    shared.keys.freeze();
    shared.unflushed.note_frozen(shared.counters.wal_bytes.load(Ordering::Relaxed));
    shared.flush_signal.note_frozen();
    shared.schema.registry().all_tables().iter().try_for_each(|table| table.rows()?.buffer.freeze())
}

#[cfg(test)]
mod tests {
    use crate::sync::block_on;
    use bytes::Bytes;

    use super::*;
    use crate::{
        Engine,
        engine::{frame::FrameKind, queue::QueuedFrame},
    };

    #[test]
    fn nobody_waits_for_a_thread_that_has_died() {
        let dir = tempfile::tempdir().unwrap();
        let engine = Engine::open(dir.path().join("data")).unwrap();
        let applying = Applying::new(engine.writer().unwrap(), SequenceNumber(0));
        let freeze = || {
            let (answer, receiver) = oneshot::channel();
            (QueueEntry::Freeze(answer), receiver)
        };
        let (before, answered_before) = freeze();
        applying.add(vec![before], Logged { needs: SequenceNumber(1), ..Logged::default() });
        applying.apply_ready();
        // As when it panics.
        applying.break_off();
        let (after, answered_after) = freeze();
        assert!(applying.add(vec![after], Logged::default()).is_none());
        assert!(block_on(answered_before).is_err() && block_on(answered_after).is_err(), "their senders are gone");
    }

    #[test]
    fn groups_are_applied_in_order_and_not_before_they_are_as_durable_as_they_need() {
        let dir = tempfile::tempdir().unwrap();
        let engine = Engine::open(dir.path().join("data")).unwrap();
        let applying = Applying::new(engine.writer().unwrap(), SequenceNumber(0));
        let add = |needs| {
            let (answer, receiver) = oneshot::channel();
            let logged = Logged { needs: SequenceNumber(needs), numbers: None };
            assert!(applying.add(vec![QueueEntry::Freeze(answer)], logged).is_none());
            receiver
        };
        let mut groups = [add(0), add(3), add(0), add(5), add(0)];
        let mut check = |durable, answered: &[bool]| {
            applying.note_durable(SequenceNumber(durable));
            applying.apply_ready();
            let is_answered = |group: &mut oneshot::Receiver<_>| !matches!(group.try_recv(), Ok(None));
            assert_eq!(groups.each_mut().map(is_answered), answered, "durable up to {durable}");
        };
        check(0, &[true, false, false, false, false]);
        check(2, &[true, false, false, false, false]);
        check(4, &[true, true, true, false, false]);
        assert_eq!(applying.fail().len(), 2, "what is not ready is given back");
        check(9, &[true, true, true, true, true]);
        let frame = QueuedFrame { kind: FrameKind::Schema, meta: Vec::new(), body: Bytes::new(), body_crc: 0 };
        let refused = applying.add(vec![QueueEntry::Change(frame, None)], Logged::default());
        assert_eq!(refused.map(|group| group.len()), Some(1), "what comes later is as well");
        let mut freeze = add(0);
        applying.apply_ready();
        assert!(matches!(freeze.try_recv(), Ok(Some(_))), "but a freeze, which asks nothing of the log");
    }

    #[test]
    fn nothing_is_flushed_past_rows_that_are_not_in_memory() {
        let lost = "rows in the log could not be applied";
        let fs = crate::vfs::CrashFs::new();
        let open = |fs: &crate::vfs::CrashFs| {
            let options = crate::Options {
                compaction: false,
                flush_after: std::time::Duration::from_secs(1 << 30),
                ..crate::Options::default()
            };
            Engine::builder("/store").options(options).vfs(Arc::new(fs.clone())).open().unwrap()
        };
        let engine = open(&fs);
        let write = |time: i64| engine.write_lp("d", format!("m,h=a v=1 {time}").as_bytes());
        assert_eq!(write(1).unwrap().points, 1);
        let table = engine.table("d", "m").unwrap();
        drop(table.rows().unwrap());
        // Memory has something that nothing wrote and that cannot be made a chunk; it takes the
        // point with it.
        let broken = crate::buffer::rows_that_cannot_be_sealed(1 << 20);
        let appended = |rows| table.undrained_rows().buffer.append(SequenceNumber(2), rows);
        assert!(broken.into_iter().all(|rows| appended(rows).is_ok()));
        assert!(table.view().is_err(), "a query is the first to find out");
        assert!(engine.flush().is_err());
        assert!(engine.closed_to_writes().unwrap().contains(lost));
        assert!(write(2).is_err());
        assert!(engine.flush().is_err() && engine.close().is_err());
        let again = open(&fs);
        assert_eq!(again.tables("d").unwrap()[0].buffered_rows, 1, "the point is in the log");
    }

    #[test]
    fn what_could_not_be_applied_fails_every_later_freeze() {
        let dir = tempfile::tempdir().unwrap();
        let engine = Engine::open(dir.path().join("data")).unwrap();
        assert_eq!(engine.write_lp("d", b"m,h=a v=1 1").unwrap().points, 1);
        let table = engine.table("d", "m").unwrap();
        drop(table.rows().unwrap());
        // Of a table that is not the engine's, so that only the applier knows.
        let mut applier = Applier {
            shared: Arc::clone(engine.writer().unwrap()),
            applied: SequenceNumber(5),
            unacknowledged: Unacknowledged::default(),
            has_failed: false,
        };
        assert_eq!(applier.freeze().unwrap(), SequenceNumber(5));
        applier.has_failed = true;
        for _ in 0..2 {
            assert_eq!(applier.freeze().unwrap_err().kind(), crate::ErrorKind::Internal);
        }
    }

    #[test]
    fn a_group_out_of_its_place_ends_the_thread_that_would_apply_it() {
        let dir = tempfile::tempdir().unwrap();
        let engine = Engine::open(dir.path().join("data")).unwrap();
        for (numbers, is_right) in [((4, 4), true), ((5, 5), false), ((3, 3), false), ((4, 5), false)] {
            let applying = Applying::new(engine.writer().unwrap(), SequenceNumber(3));
            let frame = QueuedFrame { kind: FrameKind::Schema, meta: Vec::new(), body: Bytes::new(), body_crc: 0 };
            let numbers = Some((SequenceNumber(numbers.0), SequenceNumber(numbers.1)));
            let logged = Logged { numbers, ..Logged::default() };
            assert!(applying.add(vec![QueueEntry::Change(frame, None)], logged).is_none());
            let done = std::thread::scope(|scope| scope.spawn(|| applying.apply_ready()).join());
            assert_eq!(done.is_ok(), is_right, "{numbers:?}");
        }
    }

    #[test]
    fn a_reader_finds_all_rows_that_a_write_has_for_a_table_or_none() {
        let options = crate::Options { compaction: false, ..crate::Options::default() };
        let dir = tempfile::tempdir().unwrap();
        let engine = Engine::builder(dir.path().join("data")).options(options).open().unwrap();
        // The first rows of known series are in row format, and those after the first of a new one
        // are not.
        let lines = |write: i64| {
            (0..6).map(move |row| format!("m,h={} v=1 {}\n", if row < 3 { row } else { write }, write * 10 + row))
        };
        let write = |number: i64| {
            let body = lines(number).collect::<String>();
            assert_eq!(engine.write_lp("d", body.as_bytes()).unwrap().points, 6);
        };
        write(10);
        write(11);
        let is_over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let view = engine.view("d", "m").unwrap();
                    let rows: usize = view.buffers.iter().map(|part| part.row_count()).sum();
                    assert_eq!(rows % 6, 0, "half of a write");
                }
            });
            (12..500).for_each(write);
            is_over.store(true, Ordering::Relaxed);
        });
    }
}
