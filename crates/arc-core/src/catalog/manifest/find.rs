//! Which commit was the newest at a time, for those who keep no list of commits: found in the stream
//! itself.
//!
//! Only reads, while another process may write: it removes objects that nothing it knows of needs,
//! so that a search may have to begin anew.

use super::{CommitMark, Listing, ManifestHistory, ManifestState, read_commit, read_snapshot};
use crate::{Error, Result};

/// How often a search begins anew because the writer has removed objects meanwhile.
const TRIES: usize = 10;

/// A commit, and what the manifest said after it.
type Found = (CommitMark, ManifestState);

/// Where a search begins: number, state and checksum of a commit.
type Start = (u64, ManifestState, u32);

impl ManifestHistory {
    /// Returns the newest commit at or before a time, and its state; `None` if the stream does not
    /// reach back so far. Costs the reading of a snapshot object or two, and of at most as many
    /// commits as there are between them.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] if an object is missing or damaged, [`Error::Io`].
    pub(crate) fn find_at(&self, time_ns: i64) -> Result<Option<Found>> {
        self.reading(|| {
            let listing = Listing::read(self.location.as_ref())?;
            match self.start(&listing, time_ns)? {
                Some(start) => self.walk(start, &listing, time_ns),
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

    /// Goes on to the last commit that is no later than a time. One that does not say when it was
    /// made, as those of older builds, counts if a later one does.
    fn walk(
        &self,
        (mut number, mut state, mut checksum): Start,
        listing: &Listing,
        time_ns: i64,
    ) -> Result<Option<Found>> {
        let newest = listing.commits.last().copied().unwrap_or(0);
        let mark = |number, state: &ManifestState| {
            state.time_ns.map(|time_ns| CommitMark { number, time_ns, flushed: state.flushed })
        };
        let mut untimed: Option<Option<Found>> = None;
        while number < newest {
            let (edit, its) = read_commit(self.location.as_ref(), number + 1, checksum, &state)?;
            match edit.time_ns {
                Some(of) if of > time_ns => break,
                Some(_) => untimed = None,
                None if untimed.is_none() => {
                    untimed = Some(mark(number, &state).map(|mark| (mark, state.clone())));
                }
                None => {}
            }
            state.apply(edit);
            (number, checksum) = (number + 1, its);
        }
        Ok(untimed.unwrap_or_else(|| mark(number, &state).map(|mark| (mark, state))))
    }
}
