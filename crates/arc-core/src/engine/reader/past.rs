//! Older states as a reader finds them: in the manifest's commits and in the log, as the process that
//! writes finds them, but with no list of its own.
//!
//! That process keeps what such a state needs for as long as it can be asked for, and the reader has it
//! kept for longer by its lease, which holds everything from a commit on. So the lease comes first, and
//! after it the question whether the state can still be asked for: if so, nothing of it was removed
//! before the lease was there (decision 034).

use std::sync::Arc;

use hashbrown::HashSet;

use super::{Reader, following::Following};
use crate::{
    Error, Result, SequenceNumber,
    catalog::{ManifestState, MarkAt},
    engine::{
        history::{FrameCut, PastState, from_ns, in_the_future, no_history, show},
        states_at_hand::MadeFrom,
    },
    model::{PastMoment, SnapshotInfo, WAL_DIR},
    wal::{LogTail, ReplayedFrame, TailEnd},
};

impl Reader {
    /// Makes the tables of an older state, which stay readable for as long as they are held. Knows no
    /// more than the last look.
    ///
    /// # Errors
    ///
    /// [`Error::OutsideHistory`] for a time whose state is not known any more, or not yet;
    /// [`Error::SnapshotNotFound`]; [`Error::Corrupt`] and [`Error::Io`] if manifest or log cannot be
    /// read; [`Error::Closed`].
    #[cfg_attr(not(any(feature = "query", test)), expect(dead_code, reason = "only SQL asks for it"))]
    pub(in crate::engine) fn past_state(&self, moment: &PastMoment) -> Result<Arc<PastState>> {
        match moment {
            PastMoment::Snapshot(name) => {
                let (state, held) = self.state_of_snapshot(name)?;
                Ok(Arc::new(PastState::new(&state, held, &self.memory)))
            }
            PastMoment::Time(time_ns) => self.state_at_time(*time_ns),
        }
    }

    /// Returns the snapshots that there were at the last look, by name.
    pub(in crate::engine) fn snapshots(&self) -> Vec<SnapshotInfo> {
        let (history, state) = {
            let following = self.following.lock();
            (following.history(), following.state().clone())
        };
        let live: HashSet<&str> = state.files().map(|file| file.path.as_str()).collect();
        let failed = |error: &Error| tracing::warn!(%error, "no snapshot can be read");
        let kept = history.kept_files(&state.snapshots).inspect_err(failed).unwrap_or_default();
        kept.files.snapshots(&state.snapshots, |path| !live.contains(path))
    }

    /// Returns the number and the state of a snapshot, and what keeps its files.
    pub(super) fn state_of_snapshot(&self, name: &str) -> Result<(ManifestState, Arc<PastHold>)> {
        let mut following = self.following.lock();
        let held = following.hold_snapshot(name, self.clock.now_ns())?;
        let held = held.ok_or_else(|| Error::SnapshotNotFound { snapshot: name.to_owned() })?;
        let history = following.history();
        drop(following);
        Ok((history.find_state(held.number)?, held))
    }

    fn state_at_time(&self, time_ns: i64) -> Result<Arc<PastState>> {
        self.check_is_kept(time_ns)?;
        let (now_ns, last_seq, era) = {
            let following = self.following.lock();
            (self.clock.now_ns(), following.seen(), following.history().steps_back())
        };
        if let Some(state) = self.at_hand.find(time_ns, era, last_seq, now_ns) {
            return Ok(state);
        }
        let PastAt { state, through, is_final, held } = self.found_at(time_ns)?;
        let mut past = PastState::new(&state, held, &self.memory);
        if self.has_log {
            let dir = self.root.join(WAL_DIR);
            let mut tail = LogTail::new(dir.clone(), state.flushed);
            let mut visit = |frame: ReplayedFrame<'_>| past.replay(&dir, &frame);
            if tail.read_through(self.vfs.as_ref(), through, &mut visit)? == TailEnd::Missing {
                return Err(unknown(time_ns));
            }
        }
        let made = MadeFrom { time_ns, era, last_seq: (!is_final).then_some(last_seq), now_ns };
        Ok(self.at_hand.keep(past, made, self.memory.limit()))
    }

    /// Returns what the state of a time is made of, and what keeps its files.
    pub(super) fn found_at(&self, time_ns: i64) -> Result<PastAt> {
        self.check_is_kept(time_ns)?;
        let (history, seen) = {
            let following = self.following.lock();
            (following.history(), following.seen())
        };
        let now_ns = self.clock.now_ns();
        let Some((MarkAt { mark, through }, state)) = history.find_at(time_ns, now_ns)? else {
            return Err(unknown(time_ns));
        };
        let held = self.following.lock().hold_past(mark.number, self.clock.now_ns())?;
        // Whatever the state has was taken out of the manifest after `time_ns`, if at all: had it
        // been removed before the lease was there, it would be too old by now.
        self.check_is_kept(time_ns)?;
        // Also without the log: a commit of another machine comes late, by a clock of its own.
        let is_final = through.is_some();
        if !self.has_log {
            return Ok(PastAt { through: state.flushed, state, is_final, held });
        }
        let mut tail = LogTail::new(self.root.join(WAL_DIR), mark.flushed);
        let cut = FrameCut { time_ns, now_ns, is_all: through.is_none() };
        let through = cut.find(self.vfs.as_ref(), &mut tail, through.unwrap_or(seen))?;
        Ok(PastAt { through: through.ok_or_else(|| unknown(time_ns))?, state, is_final, held })
    }

    /// Checks by the setting that the state of a time can be asked for.
    fn check_is_kept(&self, time_ns: i64) -> Result<()> {
        let now_ns = self.clock.now_ns();
        if time_ns > now_ns {
            return Err(in_the_future(time_ns, now_ns));
        }
        if self.options.history.is_zero() {
            return Err(no_history(time_ns));
        }
        let from_ns = from_ns(&self.options, now_ns);
        if time_ns >= from_ns {
            return Ok(());
        }
        let reason =
            format!("nothing is known any more of {}: history begins at {} or later", show(time_ns), show(from_ns));
        Err(Error::OutsideHistory { reason })
    }
}

/// What the state of a time is made of.
#[derive(Debug)]
pub(super) struct PastAt {
    pub(super) state: ManifestState,
    /// The last frame that is of that time or earlier.
    pub(super) through: SequenceNumber,
    /// Whether nothing that is still to come may be.
    is_final: bool,
    pub(super) held: Arc<PastHold>,
}

/// Says that a state is not kept, though it is not too old by the setting.
pub(super) fn unknown(time_ns: i64) -> Error {
    let reason = format!(
        "nothing is known of {}: the process that writes keeps no history that reaches back so far",
        show(time_ns)
    );
    Error::OutsideHistory { reason }
}

/// Keeps the files of a commit and of all later ones, by the lease of this process, until it is dropped.
#[derive(Debug)]
pub(super) struct PastHold {
    pub(super) number: u64,
}

impl Following {
    /// Has the files stay of commit `number` and of those after it; without the right to write, for the
    /// writer's time of grace.
    pub(super) fn hold_past(&mut self, number: u64, now_ns: i64) -> Result<Arc<PastHold>> {
        let held = Arc::new(PastHold { number });
        self.past.push(Arc::downgrade(&held));
        self.renew_lease(now_ns)?;
        Ok(held)
    }

    /// Has the files of a snapshot stay; `None` if there is none of this name.
    pub(super) fn hold_snapshot(&mut self, name: &str, now_ns: i64) -> Result<Option<Arc<PastHold>>> {
        loop {
            let Some(number) = self.state().snapshots.get(name).map(|named| named.number) else { return Ok(None) };
            let held = self.hold_past(number, now_ns)?;
            // Before it is dropped the writer keeps its files; afterwards it looks for leases first.
            self.catch_up_manifest()?;
            if self.state().snapshots.get(name).is_some_and(|named| named.number == number) {
                return Ok(Some(held));
            }
        }
    }
}
