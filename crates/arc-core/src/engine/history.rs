//! Older states: which can be asked for, and how one comes back.
//!
//! A state is the manifest as it was, and what was in memory then: the log after it, up to a time.
//! That is what opening makes of a directory, so it is made here in the same way, in a registry of
//! its own. What such a state needs is kept by three: the manifest its objects, the log its
//! segments, and `retired` the data files (decision 033). Never changes anything.

use std::{collections::BTreeMap, fmt::Debug, path::Path, sync::Arc};

use ulid::Ulid;

use super::{
    apply::apply_rows,
    frame::{self, DatabaseMeta, DeleteMeta, DropMeta, FrameKind, SchemaMeta, WriteMeta},
    log::PinnedLog,
    open::{decode_frame, registry_of},
    retired::Hold,
    shared::Shared,
    states_at_hand::{MadeFrom, StatesAtHand},
};
use crate::{
    Error, Options, Result, SequenceNumber,
    catalog::{
        HistoryWindow, KeptFiles, Manifest, ManifestEdit, ManifestHistory, ManifestState, MarkAt, NamedSnapshot,
    },
    memory::MemoryBudget,
    model::{PastMoment, SnapshotInfo, WAL_DIR},
    registry::Registry,
    sync::Mutex,
    vfs::Vfs,
    wal::{KeptLog, LogTail, ReplayedFrame, TailEnd},
};

/// What the engine knows of older states.
#[derive(Debug)]
pub(super) struct Past {
    commits: Arc<ManifestHistory>,
    named: Mutex<NamedStates>,
    at_hand: StatesAtHand,
}

/// The states that have names, and which files they have.
#[derive(Debug, Default)]
struct NamedStates {
    states: BTreeMap<String, NamedSnapshot>,
    /// Knows all of them, but for those that could not be read.
    kept: KeptFiles,
}

impl Past {
    pub(super) fn new(manifest: &Manifest, kept: KeptFiles) -> Self {
        let named = Mutex::new(NamedStates { states: manifest.state().snapshots.clone(), kept });
        Self { commits: manifest.history(), named, at_hand: StatesAtHand::default() }
    }

    /// Returns how many states have names.
    pub(super) fn snapshot_count(&self) -> usize {
        self.named.lock().states.len()
    }

    /// Returns all states that have names, with what they have of the files that `is_gone` says.
    pub(super) fn snapshots(&self, is_gone: impl Fn(&str) -> bool) -> Vec<SnapshotInfo> {
        let named = self.named.lock();
        named.kept.snapshots(&named.states, is_gone)
    }

    /// Adds the state of now, and writes which files it has beside the others.
    pub(super) fn add_snapshot(&self, name: &str, snapshot: NamedSnapshot, manifest: &Manifest) {
        let mut named = self.named.lock();
        named.kept.add(snapshot, manifest.state());
        named.states.insert(name.to_owned(), snapshot);
        manifest.write_kept(&named.kept);
    }

    pub(super) fn remove_snapshot(&self, name: &str) {
        let mut named = self.named.lock();
        if let Some(NamedSnapshot { number, .. }) = named.states.remove(name) {
            named.kept.remove(number);
        }
    }

    /// Hands over which files the states with names have; returns nothing if one cannot be read now, and
    /// which files it has is not known.
    pub(super) fn with_kept<T>(&self, act: impl FnOnce(&KeptFiles) -> T) -> Option<T> {
        let mut named = self.named.lock();
        if !named.states.values().all(|snapshot| named.kept.knows(*snapshot)) {
            let failed = |error: &Error| tracing::warn!(%error, "no snapshot can be read: no data file is removed");
            let found = self.commits.kept_files(&named.states).inspect_err(failed).ok()?;
            named.kept = found.files;
            if found.is_damaged {
                return None;
            }
        }
        Some(act(&named.kept))
    }
}

/// Returns the time from which on states can be asked for, by the setting.
pub(super) fn from_ns(options: &Options, now_ns: i64) -> i64 {
    now_ns.saturating_sub(i64::try_from(options.history.as_nanos()).unwrap_or(i64::MAX))
}

/// Returns which older states are to be known of a directory that is opened: none without history,
/// wherever the clock was when they were committed.
pub(super) fn window(options: &Options, now_ns: i64, origin: Ulid) -> HistoryWindow {
    let from_ns = if options.history.is_zero() { i64::MAX } else { from_ns(options, now_ns) };
    HistoryWindow { now_ns, from_ns, origin }
}

/// Begins the history of a directory whose manifest does not say when it was committed, for no
/// build kept any.
pub(super) fn begin(manifest: &mut Manifest, options: &Options, now_ns: i64) -> Result<()> {
    if options.history.is_zero() || manifest.history().oldest().is_some() {
        return Ok(());
    }
    match manifest.commit(ManifestEdit { time_ns: Some(now_ns), ..ManifestEdit::default() }) {
        Err(error) if !manifest.is_closed() => {
            // As on a full disk: it begins with the next commit.
            tracing::warn!(%error, "history does not begin yet");
            Ok(())
        }
        begun => begun,
    }
}

/// Returns which part of the log the states need that can be asked for.
pub(super) fn kept_log(options: &Options, manifest: &Manifest) -> KeptLog {
    let oldest = manifest.history().oldest().filter(|_| !options.history.is_zero());
    KeptLog { after: oldest.map(|oldest| oldest.flushed), most_bytes: options.history_log_bytes }
}

/// The tables of an older state. What they need stays as long as this is there.
#[derive(Debug)]
pub(super) struct PastState {
    pub(super) registry: Arc<Registry>,
    /// What keeps its files.
    _files: Arc<dyn Debug + Send + Sync>,
    memory: Arc<MemoryBudget>,
    held_bytes: usize,
}

impl PastState {
    /// Returns what a manifest says, with no rows but those in files, which `files` keeps.
    pub(super) fn new(state: &ManifestState, files: Arc<dyn Debug + Send + Sync>, memory: &Arc<MemoryBudget>) -> Self {
        let registry = Arc::new(registry_of(state));
        let held_bytes = state.memory_bytes();
        memory.take(held_bytes);
        Self { registry, _files: files, memory: Arc::clone(memory), held_bytes }
    }

    /// Returns the bytes that it takes: those of its rows that are in memory, and of what its tables are.
    pub(super) fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Does again what a frame of the log in `dir` says.
    pub(super) fn replay(&mut self, dir: &Path, frame: &ReplayedFrame<'_>) -> Result<()> {
        let damaged = |reason| Error::corrupt(dir, 0, format!("frame {}: {reason}", frame.seq));
        if let Some((_, staged)) = decode_frame(&self.registry, frame).map_err(damaged)? {
            let bytes = apply_rows(frame.seq, staged)?;
            self.memory.take(bytes);
            self.held_bytes += bytes;
        }
        Ok(())
    }
}

impl Drop for PastState {
    fn drop(&mut self) {
        self.memory.give(self.held_bytes);
    }
}

impl Shared {
    /// Returns the time from which on states can be asked for.
    pub(super) fn history_from_ns(&self, now_ns: i64) -> i64 {
        from_ns(&self.options, now_ns)
    }

    /// Returns when the oldest state that can be asked for is over.
    pub(super) fn history_due_ns(&self, now_ns: i64) -> Option<i64> {
        if self.log.released_bytes() == 0 {
            return None;
        }
        let next = self.past.commits.marks().get(1)?.time_ns;
        next.checked_add(now_ns.saturating_sub(from_ns(&self.options, now_ns)))
    }

    /// Forgets the states that are too old by now, and lets go of their part of the log. Their
    /// files go by their age (see `retired`).
    pub(super) fn trim_history(&self, manifest: &Manifest) {
        let now_ns = self.clock.now_ns();
        let from_ns = self.history_from_ns(now_ns);
        self.past.at_hand.forget_before(from_ns, now_ns);
        self.past.commits.forget_before(from_ns);
        let kept = kept_log(&self.options, manifest);
        self.log.keep(kept, manifest.state().flushed);
    }

    /// Returns the oldest commit whose state can be asked for, and forgets those that are too old.
    pub(super) fn oldest_kept(&self, now_ns: i64) -> u64 {
        self.past.commits.forget_before(self.history_from_ns(now_ns));
        self.past.commits.oldest().map_or(u64::MAX, |oldest| oldest.number)
    }

    /// Gives up all older states that have no name: the disk is full.
    pub(super) fn give_up_history(&self) {
        if !self.options.history.is_zero() {
            tracing::warn!("the disk is full: older states are given up");
            let now_ns = self.clock.now_ns();
            self.past.commits.forget_all();
            self.past.at_hand.forget_before(i64::MAX, now_ns);
            self.remove_retired(now_ns);
        }
    }

    /// Makes the tables of an older state.
    ///
    /// # Errors
    ///
    /// [`Error::OutsideHistory`] for a time whose state is not known any more, or not yet;
    /// [`Error::SnapshotNotFound`]; [`Error::Corrupt`] and [`Error::Io`] if manifest or log cannot
    /// be read.
    pub(super) fn past_state(&self, at: &PastMoment) -> Result<Arc<PastState>> {
        match at {
            PastMoment::Snapshot(name) => {
                let (_, state, files) = self.state_of_snapshot(name)?;
                Ok(Arc::new(PastState::new(&state, files, &self.memory)))
            }
            PastMoment::Time(time_ns) => self.state_at_time(*time_ns),
        }
    }

    /// Returns the number and the state of a snapshot, and what keeps its files.
    pub(super) fn state_of_snapshot(&self, name: &str) -> Result<(u64, ManifestState, Arc<Hold>)> {
        let missing = || Error::SnapshotNotFound { snapshot: name.to_owned() };
        let named = self.past.named.lock();
        let number = named.states.get(name).ok_or_else(missing)?.number;
        // While its name keeps its files.
        let files = Arc::new(self.retired.hold(number));
        drop(named);
        Ok((number, self.past.commits.state_at(number)?, files))
    }

    fn state_at_time(&self, time_ns: i64) -> Result<Arc<PastState>> {
        let now_ns = self.clock.now_ns();
        let last_seq = self.log.last_seq();
        let era = self.past.commits.steps_back();
        if time_ns >= self.history_from_ns(now_ns)
            && let Some(state) = self.past.at_hand.find(time_ns, era, last_seq, now_ns)
        {
            return Ok(state);
        }
        let FoundAt { state, through, is_final, log: _log, files, .. } = self.found_at(time_ns)?;
        let mut past = PastState::new(&state, files, &self.memory);
        // The log is in a folder, wherever data files are.
        let dir = self.root.join(WAL_DIR);
        let mut tail = LogTail::new(dir.clone(), state.flushed);
        let mut visit = |frame: ReplayedFrame<'_>| past.replay(&dir, &frame);
        if tail.read_through(self.vfs.as_ref(), through, &mut visit)? == TailEnd::Missing {
            return Err(missing(&dir, &tail, through));
        }
        let made = MadeFrom { time_ns, era, last_seq: (!is_final).then_some(last_seq), now_ns };
        Ok(self.past.at_hand.keep(past, made, self.memory.limit()))
    }

    /// Returns what the state of a time is made of, and what keeps it.
    pub(super) fn found_at(&self, time_ns: i64) -> Result<FoundAt<'_>> {
        let now_ns = self.clock.now_ns();
        if time_ns > now_ns {
            return Err(in_the_future(time_ns, now_ns));
        }
        let is_there = time_ns >= self.history_from_ns(now_ns);
        let found = self.past.commits.at(time_ns, now_ns).filter(|_| is_there);
        let Some(MarkAt { mark, through }) = found else { return Err(self.too_old(time_ns, now_ns)) };
        let log = self.log.pin(mark.flushed);
        let files = Arc::new(self.retired.hold(mark.number));
        let state = self.past.commits.state_at(mark.number)?;
        // Had it been forgotten by now, its files might be gone, which were not held before.
        let is_over = self.past.commits.oldest().is_none_or(|oldest| oldest.number > mark.number);
        if is_over || log.first_seq > mark.flushed.next() {
            return Err(self.too_old(time_ns, now_ns));
        }
        let dir = self.root.join(WAL_DIR);
        let mut tail = LogTail::new(dir.clone(), mark.flushed);
        let last = through.unwrap_or(log.last_seq);
        let cut = FrameCut { time_ns, now_ns, is_all: through.is_none() };
        let Some(through_seq) = cut.find(self.vfs.as_ref(), &mut tail, last)? else {
            return Err(missing(&dir, &tail, last));
        };
        Ok(FoundAt { number: mark.number, state, through: through_seq, is_final: through.is_some(), log, files })
    }

    /// Says from when on states can be asked for.
    fn too_old(&self, time_ns: i64, now_ns: i64) -> Error {
        if self.options.history.is_zero() {
            return no_history(time_ns);
        }
        let asked = show(time_ns);
        let first_seq = self.log.first_seq();
        let marks = self.past.commits.marks();
        let oldest = marks.iter().find(|mark| first_seq <= mark.flushed.next()).map(|mark| mark.time_ns);
        let reason = match oldest {
            Some(oldest) => {
                let oldest = show(oldest.max(self.history_from_ns(now_ns)));
                format!("nothing is known any more of {asked}: history begins at {oldest}")
            }
            None => format!("nothing is known of {asked}: history begins with the next flush"),
        };
        Error::OutsideHistory { reason }
    }
}

/// What the state of a time is made of. It stays on disk as long as this is there.
#[derive(Debug)]
pub(super) struct FoundAt<'a> {
    pub(super) number: u64,
    pub(super) state: ManifestState,
    /// The last frame that is of that time or earlier.
    pub(super) through: SequenceNumber,
    /// Whether no frame that is still to come may be.
    is_final: bool,
    pub(super) log: PinnedLog<'a>,
    pub(super) files: Arc<Hold>,
}

/// Which frames came at or before a time.
///
/// No frame came after a later one, whatever the clock said: those before one that is early enough
/// are so, too. A frame that seems to come after now, and no later one that does not, came at an
/// unknown time: nothing that was answered may be missing, so it counts.
#[derive(Debug, Clone, Copy)]
pub(super) struct FrameCut {
    pub(super) time_ns: i64,
    pub(super) now_ns: i64,
    /// Whether there are no frames but those that are looked at.
    pub(super) is_all: bool,
}

impl FrameCut {
    /// Returns the last frame up to `last` that came at or before the time; `None` if one is missing.
    pub(super) fn find(
        &self,
        vfs: &dyn Vfs,
        tail: &mut LogTail,
        last: SequenceNumber,
    ) -> Result<Option<SequenceNumber>> {
        let mut through = SequenceNumber(tail.next().0.saturating_sub(1));
        let dir = tail.dir().to_owned();
        // The frames after `through`: what is known of when they came.
        let (mut is_late, mut is_unknown) = (false, false);
        let mut visit = |frame: ReplayedFrame<'_>| {
            let damaged = |reason| Error::corrupt(&dir, 0, format!("frame {}: {reason}", frame.seq));
            match time_of(&frame).map_err(damaged)? {
                Some(time_ns) if time_ns > self.now_ns => is_unknown = true,
                Some(time_ns) if time_ns > self.time_ns => is_late = true,
                Some(_) => (through, is_late, is_unknown) = (frame.seq, false, false),
                None if !is_late && !is_unknown => through = frame.seq,
                None => {}
            }
            Ok(())
        };
        let end = tail.read_through(vfs, last, &mut visit)?;
        if self.is_all && !is_late {
            through = through.max(last);
        }
        Ok((end == TailEnd::Reached).then_some(through))
    }
}

fn missing(dir: &Path, tail: &LogTail, needed: SequenceNumber) -> Error {
    let reason = format!("frame {} of it is missing or damaged, and {needed} is needed", tail.next());
    Error::corrupt(dir, 0, reason)
}

/// Returns when a frame came, if it says so.
fn time_of(frame: &ReplayedFrame<'_>) -> Result<Option<i64>, String> {
    let Some(kind) = FrameKind::from_byte(frame.kind) else { return Ok(None) };
    Ok(match kind {
        FrameKind::Database => Some(frame::decode::<DatabaseMeta>(frame.meta)?.created_ns),
        FrameKind::Delete => frame::decode::<DeleteMeta>(frame.meta)?.time_ns,
        FrameKind::Drop => frame::decode::<DropMeta>(frame.meta)?.time_ns,
        // Those of older builds have none.
        FrameKind::Schema | FrameKind::Widened if frame.meta.is_empty() => None,
        FrameKind::Schema | FrameKind::Widened => Some(frame::decode::<SchemaMeta>(frame.meta)?.time_ns),
        FrameKind::GivenUp => None,
        FrameKind::LineProtocol | FrameKind::MessagePack | FrameKind::Arrow | FrameKind::Rows => {
            let meta = frame::decode::<WriteMeta>(frame.meta)?;
            Some(meta.clock_ns.unwrap_or(meta.receive_ns))
        }
    })
}

/// Says that a time is still to come.
pub(super) fn in_the_future(time_ns: i64, now_ns: i64) -> Error {
    let reason = format!("{} is in the future; it is {} now", show(time_ns), show(now_ns));
    Error::OutsideHistory { reason }
}

/// Says that there are no older states.
pub(super) fn no_history(time_ns: i64) -> Error {
    let asked = show(time_ns);
    let reason = format!("nothing is known of {asked}: no history is kept (the setting history is 0)");
    Error::OutsideHistory { reason }
}

/// Writes a time as people and SQL read it.
pub(super) fn show(time_ns: i64) -> String {
    arrow::temporal_conversions::timestamp_ns_to_datetime(time_ns)
        .map_or_else(|| format!("{time_ns} ns"), |time| format!("{}Z", time.format("%Y-%m-%dT%H:%M:%S%.f")))
}
