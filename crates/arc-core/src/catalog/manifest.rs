//! The manifest of one writer: a stream of numbered commits, with a snapshot now and then.
//!
//! Owns the folder `meta/<writer>` (docs/format.md, "Manifest"). Never replaces or changes an object: a commit is put
//! under the next number, and whoever finds that number taken has been overtaken by another writer and stops.
//!
//! The folder is listed on open to learn the newest numbers. That is no truth about data files, which only the objects
//! name, and it is safe: names appear by an atomic rename of a synced file, so a listing shows whole objects; a missing
//! one in the middle is a gap in the numbers and a break in the chain of checksums, which is an error; and a newest one
//! that a crash took was never acknowledged, for a commit returns after its name is durable.

mod rewrite;

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    ManifestEdit, ManifestState,
    object::{Decoded, Encoded, Kind, ObjectId, PAYLOAD_OFFSET, PREVIOUS_OFFSET, decode, encode},
};
use crate::{Error, Result, datafile::TEMPORARY_SUFFIX, vfs::Vfs};

/// Commits from one snapshot to the next.
const SNAPSHOT_EVERY: u64 = 128;

/// Snapshots kept. Commits since the oldest of them stay, so that any newer one may be damaged.
const SNAPSHOTS_KEPT: usize = 2;

/// One writer's stream, open for commits.
#[derive(Debug)]
pub(crate) struct Manifest {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    state: ManifestState,
    /// Number and checksum of the newest commit; 0 and 0 before the first.
    number: u64,
    checksum: u32,
    /// Numbers of the snapshots kept, ascending.
    snapshots: Vec<u64>,
    /// Makes the names of temporary files unique: one that could not be removed must not stand in the way.
    attempts: u64,
    /// Why nothing can be committed any more.
    closed: Option<String>,
}

/// What is in the folder, ascending.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub(super) commits: Vec<u64>,
    pub(super) snapshots: Vec<u64>,
    pub(super) temporary: Vec<String>,
}

/// Why an object was not put, and whether it may be there all the same.
struct PutError {
    error: Error,
    may_be_there: bool,
}

impl Manifest {
    /// Opens the stream in `dir`, or begins it with an empty commit, so that a stream that was ever open has objects.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] if an object that is needed is missing, damaged or does not follow its predecessor;
    /// [`Error::NewerFormat`]; [`Error::Io`].
    pub(crate) fn open(vfs: Arc<dyn Vfs>, dir: &Path) -> Result<Self> {
        make_durable(vfs.as_ref(), dir)?;
        let listing = Listing::read(vfs.as_ref(), dir)?;
        let mut manifest = Self {
            vfs,
            dir: dir.to_owned(),
            state: ManifestState::default(),
            number: 0,
            checksum: 0,
            snapshots: Vec::new(),
            attempts: 0,
            closed: None,
        };
        let damage = manifest.load_snapshot(&listing)?;
        if let Err(error) = manifest.replay(&listing) {
            // Without the snapshot the commits before it are not enough: it is the snapshot that has to be repaired.
            return Err(damage.unwrap_or(error));
        }
        manifest.remove(&listing.temporary);
        if manifest.number == 0 {
            manifest.commit(ManifestEdit::default())?;
        } else if damage.is_none() {
            manifest.remove_superseded();
        }
        Ok(manifest)
    }

    /// Returns what the manifest says now.
    pub(crate) fn state(&self) -> &ManifestState {
        &self.state
    }

    /// Returns whether no commit can succeed any more. After a commit that failed: whether its change may be durable.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.is_some()
    }

    /// Makes a change durable, all of it or nothing. Costs what the edit holds, but for every 128th, which writes a
    /// snapshot of everything.
    ///
    /// # Errors
    ///
    /// [`Error::Internal`] if the edit does not fit the state, [`Error::Io`] if it could not be written: nothing has
    /// changed then, and the next commit may succeed. [`Error::Closed`] if another writer took the number; and
    /// [`Error::Io`] if the change may or may not be durable: then all later commits fail with [`Error::Closed`].
    pub(crate) fn commit(&mut self, edit: ManifestEdit) -> Result<()> {
        if let Some(reason) = &self.closed {
            return Err(Error::Closed { reason: reason.clone() });
        }
        self.state.check(&edit).map_err(Error::internal)?;
        let id = ObjectId::commit(self.number + 1);
        let payload =
            rmp_serde::to_vec_named(&edit).map_err(|e| Error::internal(format!("cannot encode a commit: {e}")))?;
        let Encoded { bytes, checksum } = encode(id, self.checksum, &payload);
        if let Err(PutError { error, may_be_there }) = self.put(id, &bytes) {
            if may_be_there {
                self.closed = Some(match &error {
                    Error::Closed { reason } => reason.clone(),
                    error => format!("commit {} of the manifest may or may not be durable: {error}", id.number),
                });
            }
            return Err(error);
        }
        self.number = id.number;
        self.checksum = checksum;
        self.state.apply(edit);
        if self.number - self.snapshots.last().copied().unwrap_or(0) >= SNAPSHOT_EVERY {
            // The commit is durable whatever becomes of the snapshot; the next commit tries again.
            if let Err(error) = self.write_snapshot() {
                tracing::warn!(number = self.number, %error, "cannot write a snapshot of the manifest");
            }
        }
        Ok(())
    }

    /// Takes the newest snapshot that is whole. Returns what is wrong with newer ones.
    fn load_snapshot(&mut self, listing: &Listing) -> Result<Option<Error>> {
        let mut damage = None;
        for (index, number) in listing.snapshots.iter().copied().enumerate().rev() {
            match self.read(ObjectId::snapshot(number), |object, path| {
                let state: ManifestState = decode_payload(object.payload, path)?;
                state.check_all().map_err(|reason| Error::corrupt(path, PAYLOAD_OFFSET, reason))?;
                Ok((state, object.previous))
            }) {
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

    /// Applies all commits after the snapshot; each must be there and name the checksum of the one before.
    fn replay(&mut self, listing: &Listing) -> Result<()> {
        while self.number < listing.commits.last().copied().unwrap_or(0) {
            let id = ObjectId::commit(self.number + 1);
            let (edit, checksum) = self.read(id, |object, path| {
                if object.previous != self.checksum {
                    return Err(Error::corrupt(path, PREVIOUS_OFFSET, "it does not follow the commit before it"));
                }
                let edit: ManifestEdit = decode_payload(object.payload, path)?;
                self.state.check(&edit).map_err(|reason| Error::corrupt(path, PAYLOAD_OFFSET, reason))?;
                Ok((edit, object.checksum))
            })?;
            self.state.apply(edit);
            (self.number, self.checksum) = (id.number, checksum);
        }
        Ok(())
    }

    /// Reads an object that has to be there.
    fn read<T>(&self, id: ObjectId, take: impl FnOnce(Decoded<'_>, &Path) -> Result<T>) -> Result<T> {
        let path = self.dir.join(id.name());
        match self.vfs.read(&path) {
            Ok(bytes) => take(decode(id, &path, &bytes)?, &path),
            Err(e) if e.kind() == ErrorKind::NotFound => Err(Error::corrupt(path, 0, "it is missing")),
            Err(e) => Err(Error::io("read", path, e)),
        }
    }

    fn write_snapshot(&mut self) -> Result<()> {
        let id = ObjectId::snapshot(self.number);
        let payload = rmp_serde::to_vec_named(&self.state)
            .map_err(|e| Error::internal(format!("cannot encode a snapshot: {e}")))?;
        let Encoded { bytes, .. } = encode(id, self.checksum, &payload);
        self.put(id, &bytes).map_err(|e| e.error)?;
        self.snapshots.push(self.number);
        let surplus = self.snapshots.len().saturating_sub(SNAPSHOTS_KEPT);
        self.snapshots.drain(..surplus);
        self.remove_superseded();
        Ok(())
    }

    /// Puts an object unless its name is taken; durable when this returns `Ok`.
    fn put(&mut self, id: ObjectId, bytes: &[u8]) -> Result<(), PutError> {
        self.attempts += 1;
        let path = self.dir.join(id.name());
        let temporary = self.dir.join(format!("{}.{}{TEMPORARY_SUFFIX}", id.name(), self.attempts));
        let staged = self.stage(&temporary, bytes).map_err(|error| PutError { error, may_be_there: false });
        let put = staged.and_then(|()| self.publish(&temporary, &path, bytes));
        if put.is_err() {
            // Best effort: what stays is ignored, and removed on the next open.
            let _ = self.vfs.remove_file(&temporary);
        }
        put
    }

    fn stage(&self, temporary: &Path, bytes: &[u8]) -> Result<()> {
        let file = self.vfs.create_new(temporary).map_err(|e| Error::io("create", temporary, e))?;
        file.write_all_at(&[bytes], 0).map_err(|e| Error::io("write", temporary, e))?;
        file.sync_all().map_err(|e| Error::io("sync", temporary, e))
    }

    fn publish(&self, temporary: &Path, path: &Path, bytes: &[u8]) -> Result<(), PutError> {
        if let Err(source) = self.vfs.rename_new(temporary, path) {
            let taken = source.kind() == ErrorKind::AlreadyExists;
            let error = Error::io("rename", temporary, source);
            // A rename may be done and still fail. The bytes tell: nobody else writes the same ones.
            match self.vfs.read(path) {
                Ok(found) if found == bytes => {
                    let _ = self.vfs.remove_file(temporary);
                }
                Ok(_) if taken => return Err(PutError { error: self.fenced(path), may_be_there: true }),
                Err(e) if e.kind() == ErrorKind::NotFound => return Err(PutError { error, may_be_there: false }),
                _ => return Err(PutError { error, may_be_there: true }),
            }
        }
        let synced = self.vfs.sync_dir(&self.dir);
        synced.map_err(|e| PutError { error: Error::io("sync folder", &self.dir, e), may_be_there: true })
    }

    fn fenced(&self, path: &Path) -> Error {
        Error::Closed { reason: format!("another writer has written {}", path.display()) }
    }

    /// Removes the objects that no open will read, oldest first, so that a crash leaves no gap. Best effort.
    fn remove_superseded(&self) {
        let Ok(listing) = Listing::read(self.vfs.as_ref(), &self.dir) else { return };
        let newest = self.snapshots.last().copied().unwrap_or(0);
        let is_old = |number: &u64| *number < newest && !self.snapshots.contains(number);
        let snapshots = listing.snapshots.into_iter().filter(is_old).map(ObjectId::snapshot);
        // With one snapshot only, it may be damaged, and then all commits are needed.
        let oldest = if self.snapshots.len() < SNAPSHOTS_KEPT { None } else { self.snapshots.first().copied() };
        let commits = listing.commits.into_iter().filter(|number| oldest.is_some_and(|oldest| *number <= oldest));
        let names: Vec<_> = snapshots.chain(commits.map(ObjectId::commit)).map(ObjectId::name).collect();
        self.remove(&names);
    }

    fn remove(&self, names: &[String]) {
        for name in names {
            if let Err(error) = self.vfs.remove_file(&self.dir.join(name)) {
                tracing::warn!(name, %error, "cannot remove an old file of the manifest");
            }
        }
    }
}

impl Listing {
    pub(super) fn read(vfs: &dyn Vfs, dir: &Path) -> Result<Self> {
        let entries = vfs.list(dir).map_err(|e| Error::io("list", dir, e))?;
        let mut listing = Self::default();
        for entry in entries {
            match ObjectId::parse(&entry.name) {
                Some(ObjectId { kind: Kind::Commit, number }) => listing.commits.push(number),
                Some(ObjectId { kind: Kind::Snapshot, number }) => listing.snapshots.push(number),
                None if is_temporary(&entry.name) => listing.temporary.push(entry.name),
                // Not ours: left alone.
                None => {}
            }
        }
        listing.commits.sort_unstable();
        listing.snapshots.sort_unstable();
        Ok(listing)
    }
}

/// Creates the folder where it is missing, and makes durable what is in it.
///
/// A crash between the rename and the sync of a commit left it in the cache only: it must not be lost after it has been
/// believed. The same goes for the folder itself.
fn make_durable(vfs: &dyn Vfs, dir: &Path) -> Result<()> {
    vfs.create_dir_all(dir).map_err(|e| Error::io("create folder", dir, e))?;
    for folder in dir.parent().into_iter().chain([dir]) {
        vfs.sync_dir(folder).map_err(|e| Error::io("sync folder", folder, e))?;
    }
    Ok(())
}

/// Returns whether a file is an object that was never put.
fn is_temporary(name: &str) -> bool {
    let stem = name.strip_suffix(TEMPORARY_SUFFIX).and_then(|stem| stem.rsplit_once('.'));
    stem.is_some_and(|(object, attempt)| ObjectId::parse(object).is_some() && attempt.parse::<u64>().is_ok())
}

pub(super) fn decode_payload<T: serde::de::DeserializeOwned>(payload: &[u8], path: &Path) -> Result<T> {
    rmp_serde::from_slice(payload)
        .map_err(|e| Error::corrupt(path, PAYLOAD_OFFSET, format!("its payload cannot be read: {e}")))
}

#[cfg(test)]
mod tests;
