//! Beginning a stream anew with a state that is known: for backups, and for a repair.

use std::{io::ErrorKind, path::Path, sync::Arc};

use super::{Encoded, FormatVersion, Listing, Manifest, ManifestEdit, ManifestState, ObjectId, decode, encode};
use crate::{
    Error, Result,
    store::{FolderLocation, ObjectLocation, PutError},
    vfs::Vfs,
};

impl Manifest {
    /// Begins the stream in a folder anew; see [`Self::write_anew_at`].
    ///
    /// # Errors
    ///
    /// As of [`Self::write_anew_at`].
    pub(crate) fn write_anew(vfs: &Arc<dyn Vfs>, dir: &Path, state: ManifestState) -> Result<()> {
        Self::write_anew_at(Arc::new(FolderLocation::new(Arc::clone(vfs), dir)), state)
    }

    /// Makes `state` what the stream in `location` says, whatever it said before: all of it or
    /// nothing.
    ///
    /// A snapshot under a number above all others makes the change; it has no commit to follow,
    /// which its checksum 0 says. An empty commit and a second snapshot come after it, so that
    /// damage to any one of the three does no harm, and older objects are removed. Where no lock
    /// keeps others away, a writer who has the stream open is fenced first.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`] if another writer has made a commit meanwhile; [`Error::Io`] if it could
    /// not be written. Then the stream says the old or the new.
    pub(super) fn write_anew_at(location: Arc<dyn ObjectLocation>, state: ManifestState) -> Result<()> {
        location.prepare()?;
        let listing = Listing::read(location.as_ref())?;
        let newest = listing.commits.last().max(listing.snapshots.last()).copied().unwrap_or(0);
        let number = newest + 1;
        if !location.is_locked() {
            fence(location.as_ref(), newest)?;
        }
        let mut manifest = Self { state, number, ..Self::empty(location) };
        manifest.remove(&listing.temporary);
        manifest.write_snapshot()?;
        manifest.commit(ManifestEdit::default())?;
        manifest.write_snapshot()
    }
}

/// Takes the number after `newest` with an empty commit, so that nothing else can make it one of
/// the old stream.
fn fence(location: &dyn ObjectLocation, newest: u64) -> Result<()> {
    let last = ObjectId::commit(newest);
    let path = location.path(&last.name());
    let previous = match location.get(&last.name()) {
        // Where the stream is whole it stays so, if this is all that is done.
        Ok(bytes) => decode(last, &path, &bytes).map_or(0, |commit| commit.checksum),
        Err(e) if e.kind() == ErrorKind::NotFound => 0,
        Err(e) => return Err(Error::io("read", path, e)),
    };
    let payload = rmp_serde::to_vec_named(&ManifestEdit::default())
        .map_err(|e| Error::internal(format!("cannot encode a commit: {e}")))?;
    let id = ObjectId::commit(newest + 1);
    let Encoded { bytes, .. } = encode(id, FormatVersion::default(), previous, &payload);
    location.put_new(&id.name(), &bytes).map_err(|error| match error {
        PutError::NotThere(error) | PutError::Unknown(error) => error,
        PutError::Taken => {
            let path = location.path(&id.name());
            Error::Closed { reason: format!("another writer has written {}", path.display()) }
        }
    })
}
