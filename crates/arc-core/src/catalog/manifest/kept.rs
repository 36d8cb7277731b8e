//! The list of the files that the states with names have, as an object beside them.
//!
//! Owns which list there is, and what is done where it is missing, damaged or does not know all of the
//! states, as after a crash or a time with an earlier build: they are read then. It says nothing that they
//! do not say, so it may be removed at any time.

use std::collections::BTreeMap;

use super::{
    Encoded, FormatVersion, Listing, Manifest, ManifestHistory, ManifestState, NamedSnapshot, ObjectId, PAYLOAD_OFFSET,
    encode, read, read_snapshot,
};
use crate::{
    Error, Result,
    catalog::KeptFiles,
    store::{ObjectLocation, PutError},
};

/// Which files the states with names have, as far as it could be found out.
#[derive(Debug, Default)]
pub(crate) struct FoundKept {
    pub(crate) files: KeptFiles,
    /// Whether there may be more of them: a state cannot be read.
    pub(crate) is_damaged: bool,
    /// Whether there is no object that says all this.
    is_new: bool,
}

impl FoundKept {
    /// Nothing could be found out.
    pub(super) fn damaged() -> Self {
        Self { is_damaged: true, ..Self::default() }
    }
}

impl ManifestHistory {
    /// Finds out which files the states with names have. Reads no state that the list knows.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if it cannot be said which objects there are. A state that cannot be read is logged,
    /// and known by [`FoundKept::is_damaged`].
    pub(crate) fn kept_files(&self, named: &BTreeMap<String, NamedSnapshot>) -> Result<FoundKept> {
        let mut found = FoundKept::default();
        if named.is_empty() {
            return Ok(found);
        }
        let mut states: Vec<NamedSnapshot> = named.values().copied().collect();
        states.sort_unstable_by_key(|named| named.number);
        found.files = self.listed(&states)?;
        // Each is added after those before it: the first that can be read decides from where on.
        let mut readable = states.iter().filter(|named| !found.files.knows(**named));
        let first = readable.find_map(|named| Some((*named, self.state_of(*named, &mut found.is_damaged)?)));
        let Some((first, state)) = first else { return Ok(found) };
        found.is_new = true;
        found.files.cut(first.number);
        found.files.add(first, &state);
        drop(state);
        for named in states.into_iter().filter(|named| named.number > first.number) {
            if let Some(state) = self.state_of(named, &mut found.is_damaged) {
                found.files.add(named, &state);
            }
        }
        Ok(found)
    }

    fn state_of(&self, named: NamedSnapshot, is_damaged: &mut bool) -> Option<ManifestState> {
        let read = read_snapshot(self.location.as_ref(), named.number).map(|(state, _)| state);
        let warn = |error: &Error| {
            tracing::warn!(number = named.number, %error, "a snapshot cannot be read: no data file is removed before it can, or is dropped");
        };
        *is_damaged |= read.is_err();
        read.inspect_err(warn).ok()
    }

    /// Returns what the list says of some states; nothing if it cannot be read.
    fn listed(&self, states: &[NamedSnapshot]) -> Result<KeptFiles> {
        let location = self.location.as_ref();
        let newest = Listing::read(location)?.kept.last().copied();
        let listed = newest.map_or(Ok(KeptFiles::default()), |newest| read_kept(location, newest));
        let mut files = listed.unwrap_or_else(|error| {
            tracing::warn!(%error, "the list of the files of snapshots cannot be read, and is made anew");
            KeptFiles::default()
        });
        files.keep(states);
        Ok(files)
    }
}

/// Reads the list of this number.
pub(in crate::catalog) fn read_kept(location: &dyn ObjectLocation, number: u64) -> Result<KeptFiles> {
    read(location, ObjectId::kept(number), |object, path| {
        let damaged = |e| Error::corrupt(path, PAYLOAD_OFFSET, format!("its payload cannot be read: {e}"));
        KeptFiles::decode(object.payload).map_err(damaged)
    })
}

impl Manifest {
    /// Writes what was found out of the files of states with names, unless an object says it.
    pub(super) fn write_found(&self, found: &FoundKept) {
        if found.is_new {
            self.write_kept(&found.files);
        }
    }

    /// Writes which files the states with names have, in place of the list that is there. Best effort:
    /// without it the next opening reads these states.
    pub(crate) fn write_kept(&self, files: &KeptFiles) {
        let Some(newest) = files.newest() else { return };
        if let Err(error) = self.put_kept(newest, files) {
            tracing::warn!(%error, "cannot write the list of the files of snapshots");
        }
    }

    fn put_kept(&self, number: u64, files: &KeptFiles) -> Result<()> {
        let payload = files.encode().map_err(|e| Error::internal(format!("cannot encode a list of files: {e}")))?;
        let id = ObjectId::kept(number);
        let Encoded { bytes, .. } = encode(id, FormatVersion::KeptFiles, 0, &payload);
        let before = Listing::read(self.location.as_ref())?.kept;
        let names = before.into_iter().map(|number| ObjectId::kept(number).name());
        // A damaged one may have the same name.
        let (same, others): (Vec<_>, Vec<_>) = names.partition(|name| *name == id.name());
        self.remove(&same);
        self.location.put_new(&id.name(), &bytes).map_err(|error| match error {
            PutError::NotThere(error) | PutError::Unknown(error) => error,
            PutError::Taken => Error::Closed { reason: self.fenced(id) },
        })?;
        self.remove(&others);
        Ok(())
    }
}
