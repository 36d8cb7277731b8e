//! Group commit: two threads take turns. The one whose turn it is takes all that is queued and
//! writes it to the log at once; then the turn is the other one's, while this one syncs, unless the
//! other one is at it already and will do it. What is durable goes to the buffers in the order of
//! the log, and is acknowledged only then (decision 022).
//!
//! No timer: while the log is synced the next groups gather and are appended. When the log fails,
//! the outcome of all groups that were not durable is unknown; the engine refuses writes from then
//! on, and the next open decides from what is on disk. When there is no room for a new segment
//! nothing was written: the group's writes are refused and later ones are tried again.

use std::{io, sync::Arc, time::Duration};

use super::{
    apply::{Applying, Logged},
    log::FailedAppend,
    queue::{CommitTurn, Maker, QueueEntry, QueuedFrame, QueuedWrite},
    shared::Shared,
    stats::Counters,
    tail::TailEnding,
};
use crate::{
    Durability, Error, ErrorKind, Result, SequenceNumber,
    crash::crash_point,
    sync::{
        Mutex,
        mpsc::{Receiver, SyncSender, sync_channel},
        thread::{Builder, JoinHandle},
    },
    vfs::is_shortage,
    wal::{Frame, SpareMaker},
};

/// One that syncs and applies, and one that appends meanwhile. More of them take processor time and
/// give nothing (decision 022).
const COMMITTERS: usize = 2;

/// When a write is tried again that met a shortage.
const SHORTAGE_RETRY: Duration = Duration::from_secs(1);

/// A thread that commits.
struct Committer {
    shared: Arc<Shared>,
    applying: Arc<Applying>,
    log: Arc<Mutex<LogEnd>>,
    /// Wakes the thread that makes the next segment.
    spare: SyncSender<()>,
}

/// What goes from turn to turn.
struct LogEnd {
    /// Number of the last frame in the log.
    last_seq: SequenceNumber,
    /// Schema changes that are visible already but found no room in the log: they go in front of
    /// the next group.
    unlogged_changes: Vec<QueueEntry>,
}

/// Why a group is not in the log, or may not be.
enum Failure {
    /// Nothing was written, and the log goes on.
    NoSpace(Error),
    /// The log had failed before, and was not touched by this group.
    Closed(String),
    /// The log has failed; frames of the group may be in it all the same.
    Unknown(String),
}

/// Starts the threads that commit, and the one that makes the log's next segment while this one
/// fills.
pub(super) fn spawn(shared: &Arc<Shared>) -> io::Result<Vec<JoinHandle<()>>> {
    let (spare, wanted) = sync_channel(1);
    let (maker, last_seq) = (shared.log.spare_maker(), shared.log.last_seq());
    let mut threads = vec![Builder::new().name("arc-segment".into()).spawn(move || make_spares(&maker, &wanted))?];
    let log = Arc::new(Mutex::new(LogEnd { last_seq, unlogged_changes: Vec::new() }));
    let applying = Arc::new(Applying::new(shared, last_seq));
    for _ in 0..COMMITTERS {
        let (shared, applying, log) = (Arc::clone(shared), Arc::clone(&applying), Arc::clone(&log));
        let committer = Committer { shared, applying, log, spare: spare.clone() };
        threads.push(Builder::new().name("arc-commit".into()).spawn(move || committer.run())?);
    }
    Ok(threads)
}

fn make_spares(maker: &SpareMaker, wanted: &Receiver<()>) {
    while wanted.recv().is_ok() {
        if let Err(error) = maker.make() {
            // The append that needs the segment tries again and says so.
            tracing::warn!(%error, "cannot make the log's next segment ahead of time");
        }
    }
}

/// If a thread dies, writers must not wait for it.
struct BreakOnPanic<'a>(&'a Committer);

impl Drop for BreakOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.shared.queue.close("a commit thread has ended");
            self.0.applying.break_off();
        }
    }
}

impl Committer {
    /// Runs until the queue is stopped and empty.
    fn run(&self) {
        let _break = BreakOnPanic(self);
        while let Some((entries, turn)) = self.shared.queue.take() {
            let is_idle = entries.iter().all(|entry| matches!(entry, QueueEntry::Seal));
            self.log(entries, &turn);
            drop(turn);
            if is_idle {
                self.seal();
            }
            self.sync();
            self.applying.apply_ready();
        }
    }

    /// Logs a group.
    fn log(&self, mut entries: Vec<QueueEntry>, _turn: &CommitTurn<'_>) {
        let mut log = self.log.lock();
        if !log.unlogged_changes.is_empty() {
            entries.splice(0..0, log.unlogged_changes.drain(..));
        }
        match self.append(&mut log, &entries) {
            Ok(logged) => {
                if let Some(entries) = self.applying.add(entries, logged) {
                    let because = "a sync before it failed".to_owned();
                    self.refuse(&mut log, entries, &Failure::Unknown(because));
                }
            }
            Err(failure) => self.refuse(&mut log, entries, &failure),
        }
    }

    /// Appends a group; returns its numbers, and that which has to be durable before it is applied.
    fn append(&self, log: &mut LogEnd, entries: &[QueueEntry]) -> Result<Logged, Failure> {
        let mut seq = log.last_seq;
        let mut number = |frame| {
            seq = seq.next();
            to_frame(seq, frame)
        };
        let frames: Vec<Frame<'_>> = entries.iter().filter_map(logged).map(&mut number).collect();
        if frames.is_empty() {
            return Ok(Logged::default());
        }
        let numbers = Some((log.last_seq.next(), seq));
        let needs_sync = entries.iter().any(needs_sync);
        let is_spare_needed = self.shared.log.append(&frames, needs_sync).map_err(Failure::of_append)?;
        log.last_seq = seq;
        if is_spare_needed {
            // Full means that it is being made already.
            let _ = self.spare.try_send(());
        }
        let needs = if needs_sync { seq } else { SequenceNumber::default() };
        Ok(Logged { needs, numbers })
    }

    /// Syncs as long as a thread waits for it, and applies what is durable then; unless another
    /// thread is at it, which goes on with what this one has written.
    fn sync(&self) {
        while let Some(sync) = self.shared.log.begin_sync() {
            match sync.run() {
                Ok(durable_seq) => {
                    crash_point("commit::synced");
                    Counters::add(&self.shared.counters.wal_syncs, 1);
                    self.applying.note_durable(durable_seq);
                    self.shared.flush_signal.note_synced();
                }
                Err(error) => {
                    let failure = Failure::Unknown(describe(&error));
                    self.refuse(&mut self.log.lock(), Vec::new(), &failure);
                }
            }
            self.applying.apply_ready();
        }
    }

    /// Seals the log. What is appended meanwhile is synced afterwards, by this thread as well.
    fn seal(&self) {
        if let Err(error) = self.shared.log.seal() {
            let failure = Failure::Unknown(describe(&error));
            self.refuse(&mut self.log.lock(), Vec::new(), &failure);
        }
    }

    /// Answers a group that is not in the log, or may not be; if the log has failed, also those
    /// before it that are not durable yet.
    fn refuse(&self, log: &mut LogEnd, entries: Vec<QueueEntry>, failure: &Failure) {
        tracing::error!(reason = failure.because(), "the log cannot be written");
        if let Failure::Closed(because) | Failure::Unknown(because) = failure {
            self.shared.queue.close(&format!("the log failed: {because}"));
            self.shared.tails.lock().close(&TailEnding::Closed(format!("the log failed: {because}")));
            self.answer(log, self.applying.fail(), &Failure::Unknown(because.clone()));
        }
        self.answer(log, entries, failure);
    }

    fn answer(&self, log: &mut LogEnd, entries: Vec<QueueEntry>, failure: &Failure) {
        for entry in entries {
            match entry {
                QueueEntry::Write(_, mut write) => {
                    // Where it is known that nothing was stored the key is free again, before the
                    // answer says so.
                    if let (Failure::Unknown(because), Some(claim)) = (failure, write.claim.take()) {
                        claim.unknown(because);
                    }
                    self.refuse_write(write, failure.refusal());
                }
                QueueEntry::Unlogged(write) => self.refuse_write(write, failure.refusal_of_unlogged()),
                QueueEntry::Drop(frame, pending, waiting) => {
                    if let Some(answer) = waiting {
                        let _ = answer.send(Err(failure.refusal()));
                    }
                    log.unlogged_changes.push(QueueEntry::Drop(frame, pending, None));
                }
                QueueEntry::Delete(_, delete) => {
                    let _ = delete.answer.send(Err(failure.refusal()));
                }
                QueueEntry::Seal => {}
                // What was applied before is in the log and can be flushed, which is what makes
                // room on a full disk.
                freeze @ QueueEntry::Freeze(_) => drop(self.applying.add(vec![freeze], Logged::default())),
                QueueEntry::Change(frame, waiting) => {
                    let is_visible = waiting.as_ref().is_none_or(|maker| maker.made.is_none());
                    if let Some(Maker { answer, .. }) = waiting {
                        let _ = answer.send(Err(failure.refusal()));
                    }
                    if is_visible {
                        log.unlogged_changes.push(QueueEntry::Change(frame, None));
                    }
                }
            }
        }
    }

    fn refuse_write(&self, write: QueuedWrite, refusal: Error) {
        let cost = write.cost();
        let QueuedWrite { answer, claim, .. } = write;
        self.shared.memory.give(cost);
        self.shared.queue.done(1, cost);
        drop(claim);
        let _ = answer.send(Err(refusal));
    }
}

impl Failure {
    fn of_append(FailedAppend { error, has_log_failed }: FailedAppend) -> Self {
        match error.kind() {
            _ if !has_log_failed => Self::NoSpace(error),
            ErrorKind::Closed => Self::Closed(describe(&error)),
            _ => Self::Unknown(describe(&error)),
        }
    }

    fn because(&self) -> String {
        match self {
            Self::NoSpace(error) => describe(error),
            Self::Closed(because) | Self::Unknown(because) => because.clone(),
        }
    }

    fn refusal(&self) -> Error {
        match self {
            Self::NoSpace(Error::Io { source, .. }) if is_shortage(source) => Error::Busy {
                reason: "the process has no file descriptor or memory left for the log's next segment",
                retry_after: SHORTAGE_RETRY,
            },
            Self::NoSpace(Error::Io { action, path, source }) => {
                Error::io(action, path, io::Error::new(source.kind(), source.to_string()))
            }
            Self::Unknown(because) => Error::OutcomeUnknown { reason: because.clone() },
            _ => Error::Closed { reason: self.because() },
        }
    }

    /// What was not to be in the log is nowhere if it was not applied.
    fn refusal_of_unlogged(&self) -> Error {
        match self {
            Self::NoSpace(_) => self.refusal(),
            _ => Error::Closed { reason: self.because() },
        }
    }
}

fn describe(error: &Error) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

fn logged(entry: &QueueEntry) -> Option<&QueuedFrame> {
    match entry {
        QueueEntry::Change(frame, _)
        | QueueEntry::Write(frame, _)
        | QueueEntry::Delete(frame, _)
        | QueueEntry::Drop(frame, ..) => Some(frame),
        QueueEntry::Unlogged(_) | QueueEntry::Freeze(_) | QueueEntry::Seal => None,
    }
}

fn to_frame(seq: SequenceNumber, frame: &QueuedFrame) -> Frame<'_> {
    Frame { seq, kind: frame.kind as u8, meta: &frame.meta, body: &frame.body, body_crc: frame.body_crc }
}

fn needs_sync(entry: &QueueEntry) -> bool {
    match entry {
        QueueEntry::Write(_, write) => write.durability >= Durability::Disk,
        QueueEntry::Delete(_, delete) => delete.durability >= Durability::Disk,
        // A thread created a database and waits for it; other changes are as durable as the write
        // that needs them.
        QueueEntry::Change(_, waiting) => waiting.is_some(),
        // Also where no thread waits any more: with it go receipts, which must not go without their
        // points.
        QueueEntry::Drop(..) => true,
        QueueEntry::Unlogged(_) | QueueEntry::Freeze(_) | QueueEntry::Seal => false,
    }
}
