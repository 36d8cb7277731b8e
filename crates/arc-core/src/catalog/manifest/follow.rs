//! Reading the stream while another process writes it: what it says now, and what it says since.
//!
//! Writes nothing. The writer removes commits that a snapshot has passed; a reader that was away
//! for longer than they stay begins anew with the snapshot.

use std::{io::ErrorKind, path::Path, sync::Arc};

use super::{Listing, Manifest, ManifestEdit, ObjectId, PAYLOAD_OFFSET, decode, decode_payload};
use crate::{
    Error, Result,
    model::DataFile,
    store::{FolderLocation, ObjectLocation},
    vfs::Vfs,
};

/// How often reading is begun anew because the writer has removed objects meanwhile.
const TRIES: usize = 10;

/// Why a stream that is only read takes no commits.
const FOLLOWED: &str = "this process only reads";

/// What has happened to a stream since it was looked at last.
#[derive(Debug, PartialEq)]
pub(crate) enum Advance {
    /// These changes were made, in this order; none if there is nothing new.
    Edits(Vec<ManifestEdit>),
    /// So many that only the outcome is known.
    Anew,
}

impl Manifest {
    /// Reads the stream in a folder that another process may write to meanwhile.
    ///
    /// # Errors
    ///
    /// As of [`Self::open_at`]; also if there is no stream.
    pub(crate) fn follow(vfs: Arc<dyn Vfs>, dir: &Path) -> Result<Self> {
        Self::follow_at(Arc::new(FolderLocation::new(vfs, dir)))
    }

    /// As [`Self::follow`], wherever the stream is.
    pub(crate) fn follow_at(location: Arc<dyn ObjectLocation>) -> Result<Self> {
        let mut tries = 0;
        loop {
            let mut manifest = Self { closed: Some(FOLLOWED.to_owned()), ..Self::empty(Arc::clone(&location)) };
            match manifest.load() {
                Err(Error::Corrupt { .. }) if tries < TRIES => tries += 1,
                loaded => return loaded.map(|()| manifest),
            }
        }
    }

    fn load(&mut self) -> Result<()> {
        let listing = Listing::read(self.location.as_ref())?;
        let damage = self.load_snapshot(&listing)?;
        self.replay(&listing).map_err(|error| damage.unwrap_or(error))?;
        if self.number == 0 {
            return Err(Error::corrupt(self.location.path(""), 0, "there is no manifest"));
        }
        Ok(())
    }

    /// Reads what was committed since the last call, and puts the data files that are in the manifest
    /// no more into `removed`.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`], [`Error::NewerFormat`], [`Error::Io`]. After an error the state, and with
    /// it `removed`, is that of some commit since, and the next call goes on from there.
    pub(crate) fn advance(&mut self, removed: &mut Vec<Arc<DataFile>>) -> Result<Advance> {
        let mut edits = Vec::new();
        while let Some(edit) = self.next_edit(removed)? {
            edits.push(edit);
        }
        // The newest commit is always there: where ours is not, there are newer ones.
        let newest = ObjectId::commit(self.number).name();
        let path = self.location.path(&newest);
        if !edits.is_empty() || self.location.has(&newest).map_err(|e| Error::io("read", &path, e))? {
            return Ok(Advance::Edits(edits));
        }
        let anew = Self::follow_at(Arc::clone(&self.location))?;
        if anew.number < self.number || anew.state.flushed < self.state.flushed {
            return Err(Error::corrupt(path, 0, "the manifest has become an older one"));
        }
        if anew.number == self.number {
            return Ok(Advance::Edits(edits));
        }
        let before = std::mem::replace(self, anew);
        // Whatever the commits between them say.
        self.history.go_on_from(&before.history);
        removed.extend(before.state.files().cloned());
        Ok(Advance::Anew)
    }

    /// Applies the next commit if there is one, and returns it.
    fn next_edit(&mut self, removed: &mut Vec<Arc<DataFile>>) -> Result<Option<ManifestEdit>> {
        let id = ObjectId::commit(self.number + 1);
        let path = self.location.path(&id.name());
        let bytes = match self.location.get(&id.name()) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            got => got.map_err(|e| Error::io("read", &path, e))?,
        };
        let object = decode(id, &path, &bytes)?;
        if object.previous != self.checksum {
            return Err(Error::corrupt(path, 0, "it does not follow the commit before it: begin to read anew"));
        }
        let edit: ManifestEdit = decode_payload(object.payload, &path)?;
        self.state.check(&edit).map_err(|reason| Error::corrupt(&path, PAYLOAD_OFFSET, reason))?;
        removed.extend(self.state.removed_by(&edit));
        if edit.time_ns < self.state.time_ns && edit.time_ns.is_some() {
            self.history.note_step_back();
        }
        self.state.apply(edit.clone());
        (self.number, self.checksum) = (id.number, object.checksum);
        Ok(Some(edit))
    }
}
