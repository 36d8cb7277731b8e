//! Older states of the manifest: which can be asked for, and what they were.
//!
//! Owns the list of commits from a time on, and the reading of a state from the snapshot before it
//! and the commits after that. Never holds a state: nothing but numbers stays in memory. Reads
//! without the manifest's lock, for objects never change.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use hashbrown::HashSet;
use ulid::Ulid;

use super::{
    Listing, Manifest, ManifestEdit, ManifestState, ObjectId, decode_payload, kept::FoundKept, read, read_commit,
    read_snapshot,
};
use crate::{Result, SequenceNumber, catalog::KeptFiles, store::ObjectLocation, sync::Mutex};

/// A commit whose state can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CommitMark {
    pub(crate) number: u64,
    /// When it was made, in nanoseconds since the epoch. Where the clock was put back afterwards, the
    /// least that a later commit says.
    pub(crate) time_ns: i64,
    /// Everything up to here is in its data files.
    pub(crate) flushed: SequenceNumber,
}

/// A data file that an older state has, and the newest has not.
#[derive(Debug, Clone)]
pub(crate) struct PastFile {
    pub(crate) path: String,
    pub(crate) bytes: u64,
    /// When a commit took it out, and its number; 0 each if only a state with a name has it.
    pub(crate) since_ns: i64,
    pub(crate) number: u64,
}

/// Which states are to be known of a stream that is opened.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HistoryWindow {
    /// Now, in nanoseconds since the epoch.
    pub(crate) now_ns: i64,
    /// The oldest time of which they are.
    pub(crate) from_ns: i64,
    /// The name that the directory gets if the stream begins now.
    pub(crate) origin: Ulid,
}

/// What opening found of older states.
#[derive(Debug, Default)]
pub(crate) struct FoundHistory {
    /// Files that older states have, and those with names, and the newest state has not.
    pub(crate) files: Vec<PastFile>,
    /// The files of those with names.
    pub(crate) kept: KeptFiles,
    /// Whether there may be more of them: something could not be read.
    pub(crate) is_damaged: bool,
}

/// The older states of one stream.
#[derive(Debug)]
pub(crate) struct ManifestHistory {
    pub(super) location: Arc<dyn ObjectLocation>,
    marks: Mutex<CommitMarks>,
    /// How often a commit was earlier than the one before it.
    steps_back: AtomicU64,
}

/// The state of a time: a commit, and the frames after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MarkAt {
    pub(crate) mark: CommitMark,
    /// No frame after this is of that time or earlier; `None` if some that are still to come may be.
    pub(crate) through: Option<SequenceNumber>,
}

/// Commits, ascending by number and by time.
#[derive(Debug, Default)]
pub(super) struct CommitMarks(VecDeque<CommitMark>);

impl CommitMarks {
    /// Adds the newest. Returns false if it is earlier than others, which cannot have come after it.
    pub(super) fn push(&mut self, mark: CommitMark) -> bool {
        let later = self.0.iter_mut().rev().take_while(|before| before.time_ns > mark.time_ns);
        let is_back = later.map(|before| before.time_ns = mark.time_ns).count() > 0;
        self.0.push_back(mark);
        !is_back
    }

    /// Returns what the state of a time is made of, where the clock says `now_ns`.
    ///
    /// Of a commit that seems to come after `now_ns` nothing is known but that it is there: it counts.
    pub(super) fn at(&self, time_ns: i64, now_ns: i64) -> Option<MarkAt> {
        let known = self.0.partition_point(|mark| mark.time_ns <= now_ns);
        let until = self.0.partition_point(|mark| mark.time_ns <= time_ns);
        let count = if until >= known { self.0.len() } else { until };
        let mark = *self.0.get(count.checked_sub(1)?)?;
        // A frame may come between the moment at which buffers are frozen and the commit of their
        // files. So the first flush afterwards is not the end, and the second is.
        let flush = |from: usize, before: SequenceNumber| {
            (from..self.0.len()).find(|nth| self.0.get(*nth).is_some_and(|mark| mark.flushed > before))
        };
        let second = flush(count, mark.flushed).and_then(|first| flush(first, self.0.get(first)?.flushed));
        Some(MarkAt { mark, through: second.and_then(|second| Some(self.0.get(second)?.flushed)) })
    }
}

impl ManifestHistory {
    pub(super) fn new(location: Arc<dyn ObjectLocation>) -> Self {
        Self { location, marks: Mutex::default(), steps_back: AtomicU64::default() }
    }

    pub(super) fn push(&self, mark: CommitMark) {
        if !self.marks.lock().push(mark) {
            self.note_step_back();
        }
    }

    /// Counts on from another one, and as if the clock had been put back since.
    pub(super) fn go_on_from(&self, before: &Self) {
        self.steps_back.store(before.steps_back() + 1, Ordering::Release);
    }

    pub(super) fn note_step_back(&self) {
        self.steps_back.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns how often a commit was earlier than the one before it: what was found of a time before
    /// may be another one now.
    pub(crate) fn steps_back(&self) -> u64 {
        self.steps_back.load(Ordering::Acquire)
    }

    /// Returns what the state of a time is made of, where the clock says `now_ns`; `None` if nothing is
    /// known any more.
    pub(crate) fn at(&self, time_ns: i64, now_ns: i64) -> Option<MarkAt> {
        self.marks.lock().at(time_ns, now_ns)
    }

    /// Forgets the states that were over before `from_ns`.
    pub(crate) fn forget_before(&self, from_ns: i64) {
        let marks = &mut self.marks.lock().0;
        while marks.get(1).is_some_and(|next| next.time_ns <= from_ns) {
            marks.pop_front();
        }
    }

    /// Forgets all states but the newest.
    pub(crate) fn forget_all(&self) {
        self.forget_up_to(u64::MAX);
    }

    /// Forgets the states before the commit of this number, but for the newest.
    pub(crate) fn forget_up_to(&self, number: u64) {
        let marks = &mut self.marks.lock().0;
        while marks.len() > 1 && marks.front().is_some_and(|mark| mark.number < number) {
            marks.pop_front();
        }
    }

    /// Returns the oldest commit whose state can be asked for.
    pub(crate) fn oldest(&self) -> Option<CommitMark> {
        self.marks.lock().0.front().copied()
    }

    /// Returns all commits whose states can be asked for, in order.
    pub(crate) fn marks(&self) -> Vec<CommitMark> {
        self.marks.lock().0.iter().copied().collect()
    }

    /// Reads the state after the commit of this number.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] if an object is missing or damaged, [`Error::Io`].
    pub(crate) fn state_at(&self, number: u64) -> Result<ManifestState> {
        let listing = Listing::read(self.location.as_ref())?;
        let base = listing.snapshots.iter().copied().filter(|found| *found <= number).max();
        let (mut state, mut checksum) = self.base(base)?;
        for next in base.unwrap_or(0)..number {
            let (edit, its) = read_commit(self.location.as_ref(), next + 1, checksum, &state)?;
            state.apply(edit);
            checksum = its;
        }
        Ok(state)
    }

    fn base(&self, snapshot: Option<u64>) -> Result<(ManifestState, u32)> {
        snapshot.map_or(Ok(Default::default()), |number| read_snapshot(self.location.as_ref(), number))
    }
}

impl Manifest {
    /// Returns the older states, for those who read them without this.
    pub(crate) fn history(&self) -> Arc<ManifestHistory> {
        Arc::clone(&self.history)
    }

    /// Removes the objects that nothing needs any more; after [`ManifestHistory::forget_before`].
    pub(crate) fn forget_history(&self) {
        self.remove_superseded();
    }

    pub(super) fn mark(&self) -> CommitMark {
        CommitMark { number: self.number, time_ns: self.state.time_ns.unwrap_or(0), flushed: self.state.flushed }
    }

    /// Finds out which states of a window can be known, and which files they have besides those
    /// of now. Whatever is missing or damaged of them, the newest state is not touched by it.
    pub(super) fn load_history(&mut self, listing: &Listing, window: HistoryWindow) -> FoundHistory {
        let HistoryWindow { now_ns, from_ns, .. } = window;
        let mut found = FoundHistory::default();
        if let Err(error) = self.walk_history(listing, from_ns, &mut found.files) {
            tracing::warn!(%error, "older states of the manifest cannot be read and are forgotten");
            found.is_damaged = true;
            self.history.marks.lock().0.clear();
        }
        // No commit came after a later one, nor after now.
        found.files.iter_mut().rev().fold(now_ns, |least, past| {
            past.since_ns = past.since_ns.min(least);
            past.since_ns
        });
        // Of older states there may be commits as well.
        found.files.retain(|past| past.since_ns > from_ns);
        self.load_named(&mut found);
        if self.history.oldest().is_none() && self.state.time_ns.is_some() {
            self.history.push(self.mark());
        }
        self.history.forget_before(from_ns);
        let live: HashSet<&str> = self.state.files().map(|file| file.path.as_str()).collect();
        found.files.retain(|past| !live.contains(past.path.as_str()));
        found
    }

    /// Adds the files of states that have names, however old.
    fn load_named(&self, found: &mut FoundHistory) {
        let kept = self.history.kept_files(&self.state.snapshots).unwrap_or_else(|error| {
            tracing::warn!(%error, "no snapshot can be read: no data file is removed before they can");
            FoundKept::damaged()
        });
        self.write_found(&kept);
        let known: HashSet<String> = found.files.iter().map(|past| past.path.clone()).collect();
        let new = kept.files.files().filter(|(path, _)| !known.contains(*path));
        found.files.extend(new.map(|(path, bytes)| PastFile { path: path.to_owned(), bytes, since_ns: 0, number: 0 }));
        found.is_damaged |= kept.is_damaged;
        found.kept = kept.files;
    }

    fn walk_history(&self, listing: &Listing, from_ns: i64, past: &mut Vec<PastFile>) -> Result<()> {
        let is_reachable = |number: &u64| {
            *number <= self.number
                // A snapshot that was only kept for its name has no commits after it.
                && (*number == self.number || listing.commits.binary_search(&(*number + 1)).is_ok())
        };
        let start = (0, ManifestState::default(), 0);
        let reachable: Vec<u64> = listing.snapshots.iter().copied().filter(is_reachable).collect();
        // The newest that is old enough; else the oldest, but where all commits are there.
        let oldest = reachable.first().copied().filter(|_| listing.commits.first() != Some(&1));
        let mut base = None;
        for number in reachable.into_iter().rev() {
            let is_oldest = oldest == Some(number);
            if !is_oldest && self.is_later(number, from_ns) {
                continue;
            }
            let (state, checksum) = read_snapshot(self.location.as_ref(), number)?;
            if is_oldest || state.time_ns.is_some_and(|time_ns| time_ns <= from_ns) {
                base = Some((number, state, checksum));
                break;
            }
        }
        let (mut number, mut state, mut checksum) = base.unwrap_or(start);
        if number == 0 && listing.commits.first().is_some_and(|first| *first != 1) {
            return Ok(());
        }
        if let Some(time_ns) = state.time_ns {
            self.history.push(CommitMark { number, time_ns, flushed: state.flushed });
        }
        while number < self.number {
            let (edit, its) = read_commit(self.location.as_ref(), number + 1, checksum, &state)?;
            let time_ns = edit.time_ns;
            past.extend(removed_by(&state, &edit, number + 1));
            state.apply(edit);
            (number, checksum) = (number + 1, its);
            if let Some(time_ns) = time_ns {
                self.history.push(CommitMark { number, time_ns, flushed: state.flushed });
            }
        }
        Ok(())
    }

    /// Returns whether the commit of this number is there and says that it came after `from_ns`: then its
    /// state, which may be large, has not to be read for that.
    fn is_later(&self, number: u64, from_ns: i64) -> bool {
        let time_ns = read(self.location.as_ref(), ObjectId::commit(number), |object, path| {
            Ok(decode_payload::<ManifestEdit>(object.payload, path)?.time_ns)
        });
        time_ns.is_ok_and(|time_ns| time_ns.is_some_and(|time_ns| time_ns > from_ns))
    }
}

/// Returns the files that an edit, the commit of this number, takes out of a state.
fn removed_by(state: &ManifestState, edit: &ManifestEdit, number: u64) -> impl Iterator<Item = PastFile> {
    let since_ns = edit.time_ns.or(state.time_ns).unwrap_or(0);
    let removed = state.removed_by(edit).into_iter();
    removed.map(move |file| PastFile { path: file.path.clone(), bytes: file.bytes, since_ns, number })
}
