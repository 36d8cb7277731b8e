//! Beginning a stream where no lock keeps others away, with a state whose data files are brought
//! meanwhile: for branches into an object store.
//!
//! The first commit takes the place for a data directory that nobody has, so that no engine opens it. The
//! state follows as a snapshot object, once all its files are there: that one put makes the stream whole.
//! Whoever begins again after a try that was cut off finds that first commit, and goes on from it; where
//! two try at once, one of the two puts of the snapshot finds its name taken.

use std::sync::Arc;

use super::{Listing, Manifest, ManifestEdit, ManifestState, read_commit};
use crate::{Result, catalog::WriterClaim, store::ObjectLocation};

/// The data directory that a stream names whose files are still to come.
const UNFINISHED: &str = "a branch that was never finished";

/// What a stream is to those who would begin it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamStart {
    /// There are no objects.
    Absent,
    /// It was begun, and its state never came.
    Begun,
    /// It is the stream of a data directory.
    Whole,
}

impl ManifestState {
    /// Returns whether this is what a stream says that was begun, and whose state never came.
    pub(crate) fn is_unfinished(&self) -> bool {
        self.directory.as_deref() == Some(UNFINISHED)
    }
}

impl Manifest {
    /// Looks what there is of a stream.
    ///
    /// # Errors
    ///
    /// [`crate::Error::Corrupt`], [`crate::Error::NewerFormat`] and [`crate::Error::Io`].
    pub(crate) fn start_of(location: &dyn ObjectLocation) -> Result<StreamStart> {
        let Listing { commits, snapshots, .. } = Listing::read(location)?;
        if commits.is_empty() && snapshots.is_empty() {
            return Ok(StreamStart::Absent);
        }
        if commits != [1] || !snapshots.is_empty() {
            return Ok(StreamStart::Whole);
        }
        let (edit, _) = read_commit(location, 1, 0, &ManifestState::default())?;
        let is_begun = edit.opened.is_some_and(|opened| opened.directory == UNFINISHED);
        Ok(if is_begun { StreamStart::Begun } else { StreamStart::Whole })
    }

    /// Begins a stream that is absent; until [`Self::finish_begun`] no engine opens it. `opening` is
    /// different each time.
    ///
    /// # Errors
    ///
    /// [`crate::Error::Closed`] if another process has begun it meanwhile; [`crate::Error::Io`].
    pub(crate) fn begin_unfinished(location: Arc<dyn ObjectLocation>, opening: String) -> Result<()> {
        let opened = Some(WriterClaim { directory: UNFINISHED.to_owned(), opening });
        Self::empty(location).commit(ManifestEdit { opened, ..ManifestEdit::default() })
    }

    /// Gives a stream that was begun its state. Whatever the answer, all of it is there or nothing.
    ///
    /// # Errors
    ///
    /// [`crate::Error::Closed`] if another process has given it one; [`crate::Error::Io`].
    pub(crate) fn finish_begun(location: Arc<dyn ObjectLocation>, state: ManifestState) -> Result<()> {
        let mut manifest = Self { state, number: 1, ..Self::empty(location) };
        // Its commit says something else, which the checksum 0 tells: as where a stream is written anew.
        manifest.write_snapshot()?;
        let doubled = manifest.commit(ManifestEdit::default()).and_then(|()| manifest.write_snapshot());
        if let Err(error) = doubled {
            // It is whole all the same; that damage to one object does no harm comes with the next ones.
            tracing::warn!(%error, "cannot write the first snapshot of a manifest twice");
        }
        Ok(())
    }
}
