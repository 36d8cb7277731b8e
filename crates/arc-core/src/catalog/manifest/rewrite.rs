//! Beginning a stream anew with a state that is known: for backups, and for a repair.

use std::{path::Path, sync::Arc};

use super::{Listing, Manifest, ManifestEdit, ManifestState, make_durable};
use crate::{Result, vfs::Vfs};

impl Manifest {
    /// Makes `state` what the stream in `dir` says, whatever it said before: all of it or nothing.
    ///
    /// A snapshot under a number above all others makes the change; it has no commit to follow, which its checksum 0 says.
    /// An empty commit and a second snapshot come after it, so that damage to any one of the three does no harm, and older
    /// objects are removed.
    ///
    /// # Errors
    ///
    /// [`Error::Io`](crate::Error::Io) if it could not be written; then the stream says the old or the new.
    pub(crate) fn write_anew(vfs: &Arc<dyn Vfs>, dir: &Path, state: ManifestState) -> Result<()> {
        make_durable(vfs.as_ref(), dir)?;
        let listing = Listing::read(vfs.as_ref(), dir)?;
        let newest = listing.commits.last().max(listing.snapshots.last()).copied().unwrap_or(0);
        let mut manifest = Self {
            vfs: Arc::clone(vfs),
            dir: dir.to_owned(),
            state,
            number: newest + 1,
            checksum: 0,
            snapshots: Vec::new(),
            attempts: 0,
            closed: None,
        };
        manifest.remove(&listing.temporary);
        manifest.write_snapshot()?;
        manifest.commit(ManifestEdit::default())?;
        manifest.write_snapshot()
    }
}
