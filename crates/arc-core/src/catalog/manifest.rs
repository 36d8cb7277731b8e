//! The manifest of one writer: a stream of numbered commits, with a snapshot now and then.
//!
//! Owns the objects in `meta/<writer>` (docs/format.md, "Manifest"). Never replaces or changes one:
//! a commit is put under the next number, and the thread that finds that number taken has been
//! overtaken by another writer and stops. Never knows whether the location is a folder or an object
//! store.
//!
//! The location is listed on open to learn the newest numbers. That is no truth about data files,
//! which only the objects name, and it is safe: a listing shows whole objects; a missing one in the
//! middle is a gap in the numbers and a break in the chain of checksums, which is an error; and a
//! newest one that a crash took was never acknowledged, for a commit returns after its name is
//! durable.

#[cfg(feature = "object-store")]
mod begin;
mod find;
mod follow;
mod history;
mod kept;
mod rewrite;

use std::{io::ErrorKind, path::Path, sync::Arc};

#[cfg(feature = "object-store")]
pub(crate) use begin::StreamStart;
pub(crate) use follow::Advance;

pub(crate) use self::history::{CommitMark, FoundHistory, HistoryWindow, ManifestHistory, MarkAt, PastFile};
pub(super) use self::kept::read_kept;
use super::{
    ManifestEdit, ManifestState, NamedSnapshot,
    object::{
        DecodedObject, Encoded, FormatVersion, ObjectId, ObjectKind, PAYLOAD_OFFSET, PREVIOUS_OFFSET, decode, encode,
    },
};
use crate::{
    Error, Result,
    store::{FoundObject, ObjectLocation, PutError, object_of_temporary},
};

/// Commits from one snapshot to the next.
const SNAPSHOT_EVERY: u64 = 128;

/// Snapshots kept. Commits since the oldest of them stay, so that any newer one may be damaged.
const SNAPSHOTS_KEPT: usize = 2;

/// One writer's stream, open for commits.
#[derive(Debug)]
pub(crate) struct Manifest {
    location: Arc<dyn ObjectLocation>,
    state: ManifestState,
    /// Number and checksum of the newest commit; 0 and 0 before the first.
    number: u64,
    checksum: u32,
    /// Numbers of the snapshots kept, ascending; those that have names are kept besides.
    snapshots: Vec<u64>,
    /// The commits whose states can be asked for.
    history: Arc<ManifestHistory>,
    /// Why nothing can be committed any more.
    closed: Option<String>,
}

/// What is in the place, ascending.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub(super) commits: Vec<u64>,
    pub(super) snapshots: Vec<u64>,
    pub(super) kept: Vec<u64>,
    /// The newest commit such that it and all before it may be removed once they are not needed; 0
    /// if there is none.
    settled: u64,
    pub(super) temporary: Vec<String>,
}

impl Manifest {
    /// Opens the stream in a folder; see [`Self::open_at`].
    ///
    /// # Errors
    ///
    /// As of [`Self::open_at`].
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn open(vfs: Arc<dyn crate::vfs::Vfs>, dir: &Path) -> Result<Self> {
        Self::open_at(Arc::new(crate::store::FolderLocation::new(vfs, dir)))
    }

    /// Opens the stream in `location`, or begins it with an empty commit, so that a stream that was
    /// ever open has objects.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] if an object that is needed is missing, damaged or does not follow its
    /// predecessor; [`Error::NewerFormat`]; [`Error::Io`].
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn open_at(location: Arc<dyn ObjectLocation>) -> Result<Self> {
        Self::open_keeping(location, None).map(|(manifest, _)| manifest)
    }

    /// Opens the stream as [`Self::open_at`] does, and keeps what is needed to know every state of
    /// a time, if there is one. Returns also the files that such states have and the newest has not.
    ///
    /// # Errors
    ///
    /// As of [`Self::open_at`]. What is damaged of older states is logged, and they are forgotten.
    pub(crate) fn open_keeping(
        location: Arc<dyn ObjectLocation>,
        window: Option<HistoryWindow>,
    ) -> Result<(Self, FoundHistory)> {
        location.prepare()?;
        let listing = Listing::read(location.as_ref())?;
        let mut manifest = Self::empty(location);
        let damage = manifest.load_snapshot(&listing)?;
        if let Err(error) = manifest.replay(&listing) {
            // Without the snapshot the commits before it are not enough: it is the snapshot that
            // has to be repaired.
            return Err(damage.unwrap_or(error));
        }
        manifest.remove(&listing.temporary);
        let past = window.map(|window| manifest.load_history(&listing, window)).unwrap_or_default();
        if manifest.number == 0 {
            let time_ns = window.map(|window| window.now_ns);
            let origin = window.map(|window| window.origin.to_string());
            manifest.commit(ManifestEdit { time_ns, origin, ..ManifestEdit::default() })?;
        } else if damage.is_none() {
            manifest.remove_superseded();
        }
        Ok((manifest, past))
    }

    fn empty(location: Arc<dyn ObjectLocation>) -> Self {
        let history = Arc::new(ManifestHistory::new(Arc::clone(&location)));
        let state = ManifestState::default();
        Self { location, state, number: 0, checksum: 0, snapshots: Vec::new(), history, closed: None }
    }

    /// Returns the number of the newest commit.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Returns what the manifest says now.
    pub(crate) fn state(&self) -> &ManifestState {
        &self.state
    }

    /// Returns why no commit can succeed any more.
    pub(crate) fn closed(&self) -> Option<&str> {
        self.closed.as_deref()
    }

    /// Returns whether no commit can succeed any more. After a commit that failed: whether its
    /// change may be durable.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.is_some()
    }

    /// Makes a change durable, all of it or nothing. Costs what the edit holds, but for every
    /// 128th, which writes a snapshot of everything.
    ///
    /// # Errors
    ///
    /// [`Error::Internal`] if the edit does not fit the state, [`Error::Io`] if it could not be
    /// written: nothing has changed then, and the next commit may succeed. [`Error::Closed`] if
    /// another writer took the number; and [`Error::Io`] if the change may or may not be durable:
    /// then all later commits fail with [`Error::Closed`].
    pub(crate) fn commit(&mut self, edit: ManifestEdit) -> Result<()> {
        if let Some(reason) = &self.closed {
            return Err(Error::Closed { reason: reason.clone() });
        }
        self.state.check(&edit).map_err(Error::internal)?;
        let id = ObjectId::commit(self.number + 1);
        let payload =
            rmp_serde::to_vec_named(&edit).map_err(|e| Error::internal(format!("cannot encode a commit: {e}")))?;
        let Encoded { bytes, checksum } = encode(id, self.state.version_of(&edit), self.checksum, &payload);
        self.location.put_new(&id.name(), &bytes).map_err(|error| self.failed_commit(id, error))?;
        self.number = id.number;
        self.checksum = checksum;
        let is_timed = edit.time_ns.is_some();
        self.state.apply(edit);
        if is_timed {
            self.history.push(self.mark());
        }
        if self.number - self.snapshots.last().copied().unwrap_or(0) >= SNAPSHOT_EVERY {
            // The commit is durable whatever becomes of the snapshot; the next commit tries again.
            if let Err(error) = self.write_snapshot() {
                tracing::warn!(number = self.number, %error, "cannot write a snapshot of the manifest");
            }
        }
        Ok(())
    }

    /// Closes the stream unless the commit is certainly not there.
    fn failed_commit(&mut self, id: ObjectId, error: PutError) -> Error {
        match error {
            PutError::NotThere(error) => error,
            PutError::Taken => {
                let reason = self.fenced(id);
                self.closed = Some(reason.clone());
                Error::Closed { reason }
            }
            PutError::Unknown(error) => {
                self.closed = Some(format!("commit {} of the manifest may or may not be durable: {error}", id.number));
                error
            }
        }
    }

    fn fenced(&self, id: ObjectId) -> String {
        let by = match self.who_has(id) {
            None => String::new(),
            Some(directory) => format!(
                ": the data directory {directory} has taken the object store over; send writes there, stop this engine, and \
                 open the store from a new, empty data directory if it is to have it again"
            ),
        };
        format!("another writer has written {}{by}", self.location.path(&id.name()).display())
    }

    /// Returns the data directory that the commit of another writer has claimed the stream for, if it
    /// is such a commit.
    fn who_has(&self, id: ObjectId) -> Option<String> {
        let (name, path) = (id.name(), self.location.path(&id.name()));
        let bytes = self.location.get(&name).ok()?;
        let edit: ManifestEdit = decode_payload(decode(id, &path, &bytes).ok()?.payload, &path).ok()?;
        edit.opened.map(|opened| opened.directory)
    }

    /// Takes the newest snapshot that is whole. Returns what is wrong with newer ones.
    fn load_snapshot(&mut self, listing: &Listing) -> Result<Option<Error>> {
        let mut damage = None;
        for (index, number) in listing.snapshots.iter().copied().enumerate().rev() {
            match read_snapshot(self.location.as_ref(), number) {
                Ok((state, checksum)) => {
                    (self.state, self.number, self.checksum) = (state, number, checksum);
                    let oldest = (index + 1).saturating_sub(SNAPSHOTS_KEPT);
                    self.snapshots.extend(listing.snapshots.get(oldest..=index).unwrap_or_default());
                    break;
                }
                Err(error @ Error::Corrupt { .. }) => {
                    tracing::warn!(number, %error, "a snapshot of the manifest is damaged; using an older one");
                    damage = damage.or(Some(error));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(damage)
    }

    /// Applies all commits after the snapshot; each must be there and name the checksum of the one
    /// before.
    fn replay(&mut self, listing: &Listing) -> Result<()> {
        while self.number < listing.commits.last().copied().unwrap_or(0) {
            let (edit, checksum) = read_commit(self.location.as_ref(), self.number + 1, self.checksum, &self.state)?;
            self.state.apply(edit);
            (self.number, self.checksum) = (self.number + 1, checksum);
        }
        Ok(())
    }

    /// Keeps the state of now under a name; what it has is not to be removed.
    ///
    /// # Errors
    ///
    /// As of [`Self::commit`].
    pub(crate) fn name_snapshot(&mut self, name: &str, time_ns: i64) -> Result<()> {
        if let Some(reason) = &self.closed {
            return Err(Error::Closed { reason: reason.clone() });
        }
        // Before its name is there: without it the name would mean nothing.
        if self.snapshots.last() != Some(&self.number) {
            self.write_snapshot()?;
        }
        let named = NamedSnapshot { number: self.number, time_ns };
        let snapshots_added = vec![(name.to_owned(), named)];
        self.commit(ManifestEdit { time_ns: Some(time_ns), snapshots_added, ..ManifestEdit::default() })
    }

    fn write_snapshot(&mut self) -> Result<()> {
        let id = ObjectId::snapshot(self.number);
        let payload = rmp_serde::to_vec_named(&self.state)
            .map_err(|e| Error::internal(format!("cannot encode a snapshot: {e}")))?;
        let Encoded { bytes, .. } = encode(id, self.state.version(), self.checksum, &payload);
        self.location.put_new(&id.name(), &bytes).map_err(|error| match error {
            PutError::NotThere(error) | PutError::Unknown(error) => error,
            PutError::Taken => Error::Closed { reason: self.fenced(id) },
        })?;
        self.snapshots.push(self.number);
        let surplus = self.snapshots.len().saturating_sub(SNAPSHOTS_KEPT);
        self.snapshots.drain(..surplus);
        self.remove_superseded();
        Ok(())
    }

    /// Removes the objects that no open will read, oldest first, so that a crash leaves no gap.
    /// Best effort.
    fn remove_superseded(&self) {
        let Ok(listing) = Listing::read(self.location.as_ref()) else { return };
        let newest = self.snapshots.last().copied().unwrap_or(0);
        // What older states are made of is kept besides.
        let past = self.history.oldest().map_or(u64::MAX, |oldest| oldest.number);
        let past = listing.snapshots.iter().copied().filter(|number| *number <= past).max().unwrap_or(0);
        let is_named = |number: &u64| self.state.snapshots.values().any(|named| named.number == *number);
        let is_old = |number: &u64| *number < newest.min(past) && !self.snapshots.contains(number) && !is_named(number);
        let snapshots = listing.snapshots.into_iter().filter(is_old).map(ObjectId::snapshot);
        // With one snapshot only, it may be damaged, and then all commits are needed.
        let oldest = if self.snapshots.len() < SNAPSHOTS_KEPT { None } else { self.snapshots.first().copied() };
        // A commit is also the fence for a writer that means to put the same number and has
        // stalled.
        let removable = oldest.map_or(0, |oldest| oldest.min(listing.settled).min(past));
        let commits = listing.commits.into_iter().filter(|number| *number <= removable);
        let unnamed = if self.state.snapshots.is_empty() { listing.kept } else { Vec::new() };
        let removed = snapshots.chain(commits.map(ObjectId::commit)).chain(unnamed.into_iter().map(ObjectId::kept));
        let names: Vec<_> = removed.map(ObjectId::name).collect();
        self.remove(&names);
    }

    fn remove(&self, names: &[String]) {
        for name in names {
            if let Err(error) = self.location.remove(name) {
                tracing::warn!(name, %error, "cannot remove an old file of the manifest");
            }
        }
    }
}

impl Listing {
    pub(super) fn read(location: &dyn ObjectLocation) -> Result<Self> {
        let objects = location.list().map_err(|e| Error::io("list", location.path(""), e))?;
        let mut listing = Self::default();
        let mut all_settled = true;
        // Names sort as numbers do.
        for FoundObject { name, settled, .. } in objects {
            match ObjectId::parse(&name) {
                Some(ObjectId { kind: ObjectKind::Commit, number }) => {
                    all_settled &= settled;
                    listing.settled = if all_settled { number } else { listing.settled };
                    listing.commits.push(number);
                }
                Some(ObjectId { kind: ObjectKind::Snapshot, number }) => listing.snapshots.push(number),
                Some(ObjectId { kind: ObjectKind::Kept, number }) => listing.kept.push(number),
                None if is_temporary(&name) => listing.temporary.push(name),
                // Not ours: left alone.
                None => {}
            }
        }
        Ok(listing)
    }
}

/// Reads an object that has to be there.
fn read<T>(
    location: &dyn ObjectLocation,
    id: ObjectId,
    take: impl FnOnce(DecodedObject<'_>, &Path) -> Result<T>,
) -> Result<T> {
    let path = location.path(&id.name());
    match location.get(&id.name()) {
        Ok(bytes) => take(decode(id, &path, &bytes)?, &path),
        Err(e) if e.kind() == ErrorKind::NotFound => Err(Error::corrupt(path, 0, "it is missing")),
        Err(e) => Err(Error::io("read", path, e)),
    }
}

/// Reads the state after the commit of this number, and the checksum of that.
pub(super) fn read_snapshot(location: &dyn ObjectLocation, number: u64) -> Result<(ManifestState, u32)> {
    read(location, ObjectId::snapshot(number), |object, path| {
        let state: ManifestState = decode_payload(object.payload, path)?;
        state.check_all().map_err(|reason| Error::corrupt(path, PAYLOAD_OFFSET, reason))?;
        Ok((state, object.previous))
    })
}

/// Reads a commit of `state`, whose own commit has the checksum `previous`; returns also its own.
fn read_commit(
    location: &dyn ObjectLocation,
    number: u64,
    previous: u32,
    state: &ManifestState,
) -> Result<(ManifestEdit, u32)> {
    read(location, ObjectId::commit(number), |object, path| {
        if object.previous != previous {
            return Err(Error::corrupt(path, PREVIOUS_OFFSET, "it does not follow the commit before it"));
        }
        let edit: ManifestEdit = decode_payload(object.payload, path)?;
        state.check(&edit).map_err(|reason| Error::corrupt(path, PAYLOAD_OFFSET, reason))?;
        Ok((edit, object.checksum))
    })
}

/// Returns whether a file is an object that was never put.
fn is_temporary(name: &str) -> bool {
    object_of_temporary(name).is_some_and(|object| ObjectId::parse(object).is_some())
}

pub(super) fn decode_payload<T: serde::de::DeserializeOwned>(payload: &[u8], path: &Path) -> Result<T> {
    rmp_serde::from_slice(payload)
        .map_err(|e| Error::corrupt(path, PAYLOAD_OFFSET, format!("its payload cannot be read: {e}")))
}

#[cfg(test)]
mod tests;
