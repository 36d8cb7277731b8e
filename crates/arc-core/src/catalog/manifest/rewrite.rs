//! Beginning a stream anew with a state that is known: for backups, and for a repair.

use std::{path::Path, sync::Arc};

use super::{Listing, Manifest, ManifestEdit, ManifestState};
use crate::{
    Result,
    store::{FolderPlace, ObjectPlace},
    vfs::Vfs,
};

impl Manifest {
    /// Begins the stream in a folder anew; see [`Self::write_anew_at`].
    ///
    /// # Errors
    ///
    /// As of [`Self::write_anew_at`].
    pub(crate) fn write_anew(vfs: &Arc<dyn Vfs>, dir: &Path, state: ManifestState) -> Result<()> {
        Self::write_anew_at(Arc::new(FolderPlace::new(Arc::clone(vfs), dir)), state)
    }

    /// Makes `state` what the stream in `place` says, whatever it said before: all of it or nothing.
    ///
    /// A snapshot under a number above all others makes the change; it has no commit to follow, which its checksum 0 says.
    /// An empty commit and a second snapshot come after it, so that damage to any one of the three does no harm, and older
    /// objects are removed. Nobody may have the stream open: a writer who does is not kept from the number of the snapshot.
    ///
    /// # Errors
    ///
    /// [`Error::Io`](crate::Error::Io) if it could not be written; then the stream says the old or the new.
    pub(super) fn write_anew_at(place: Arc<dyn ObjectPlace>, state: ManifestState) -> Result<()> {
        place.prepare()?;
        let listing = Listing::read(place.as_ref())?;
        let newest = listing.commits.last().max(listing.snapshots.last()).copied().unwrap_or(0);
        let number = newest + 1;
        let mut manifest = Self { place, state, number, checksum: 0, snapshots: Vec::new(), closed: None };
        manifest.remove(&listing.temporary);
        manifest.write_snapshot()?;
        manifest.commit(ManifestEdit::default())?;
        manifest.write_snapshot()
    }
}
