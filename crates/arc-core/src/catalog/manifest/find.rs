//! Which commit was the newest at a time, for those who keep no list of commits: found in the stream
//! itself.
//!
//! Only reads, while another process may write: it removes objects that nothing it knows of needs,
//! so that a search may have to begin anew.

use super::{
    CommitMark, Listing, ManifestHistory, ManifestState,
    history::{CommitMarks, MarkAt},
    read_commit, read_snapshot,
};
use crate::{Error, Result};

/// How often a search begins anew because the writer has removed objects meanwhile.
const TRIES: usize = 10;

/// What a state of a time is made of, and what the manifest said then.
type Found = (MarkAt, ManifestState);

/// Where a search begins: number, state and checksum of a commit.
type Start = (u64, ManifestState, u32);

impl ManifestHistory {
    /// Returns what the state of a time is made of, where the clock says `now_ns`, and what the manifest
    /// said then; `None` if the stream does not reach back so far. Costs the reading of a snapshot object
    /// or two, and of the commits after them.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] if an object is missing or damaged, [`Error::Io`].
    pub(crate) fn find_at(&self, time_ns: i64, now_ns: i64) -> Result<Option<Found>> {
        self.reading(|| {
            let listing = Listing::read(self.location.as_ref())?;
            match self.start(&listing, time_ns)? {
                Some(start) => self.walk(start, &listing, time_ns, now_ns),
                None => Ok(None),
            }
        })
    }

    /// Reads the state after the commit of this number, as [`Self::state_at`] does, while another
    /// process may write.
    ///
    /// # Errors
    ///
    /// As of [`Self::state_at`].
    pub(crate) fn find_state(&self, number: u64) -> Result<ManifestState> {
        self.reading(|| self.state_at(number))
    }

    fn reading<T>(&self, read: impl Fn() -> Result<T>) -> Result<T> {
        let mut tries = 0;
        loop {
            match read() {
                Err(Error::Corrupt { .. }) if tries < TRIES => tries += 1,
                read => return read,
            }
        }
    }

    /// Returns the newest snapshot object that is no later than a time, and has the commits after it.
    fn start(&self, listing: &Listing, time_ns: i64) -> Result<Option<Start>> {
        let newest = listing.commits.last().copied().unwrap_or(0);
        let has_next = |number: u64| number >= newest || listing.commits.binary_search(&(number + 1)).is_ok();
        for number in listing.snapshots.iter().copied().filter(|number| has_next(*number)).rev() {
            let (state, checksum) = read_snapshot(self.location.as_ref(), number)?;
            if state.time_ns.is_some_and(|of| of <= time_ns) {
                return Ok(Some((number, state, checksum)));
            }
        }
        // Or all commits are there.
        Ok((listing.commits.first() == Some(&1)).then(Default::default))
    }

    /// Goes on to the newest commit, and back to the one that was the newest at a time. One that does
    /// not say when it was made, as those of older builds, counts if a later one does.
    fn walk(
        &self,
        (mut number, start, mut checksum): Start,
        listing: &Listing,
        time_ns: i64,
        now_ns: i64,
    ) -> Result<Option<Found>> {
        let mut marks = CommitMarks::default();
        let mark = |number, time_ns, state: &ManifestState| CommitMark { number, time_ns, flushed: state.flushed };
        if let Some(time_ns) = start.time_ns {
            marks.push(mark(number, time_ns, &start));
        }
        let (mut state, mut edits, first) = (start.clone(), Vec::new(), number);
        while number < listing.commits.last().copied().unwrap_or(0) {
            let (edit, its) = read_commit(self.location.as_ref(), number + 1, checksum, &state)?;
            let time_ns = edit.time_ns;
            state.apply(edit.clone());
            edits.push(edit);
            (number, checksum) = (number + 1, its);
            if let Some(time_ns) = time_ns {
                marks.push(mark(number, time_ns, &state));
            }
        }
        let found = marks.at(time_ns, now_ns);
        Ok(found.map(|found| {
            let mut state = start;
            (first + 1..=found.mark.number).zip(edits).for_each(|(_, edit)| state.apply(edit));
            (found, state)
        }))
    }
}
