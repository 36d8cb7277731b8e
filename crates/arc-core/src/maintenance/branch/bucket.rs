//! Branches in an object store: copies of all data files, made by the store itself where both are in one.
//!
//! Owns the order in which such a branch comes to be (decision 041): its manifest is begun, so that nothing
//! else opens the prefix; data files are brought and compared; one put gives the manifest its state, and makes
//! the branch whole. Nothing is removed before that put, so that two who make a branch in one place at the
//! same time do each other no harm.

use std::{collections::HashMap, io::ErrorKind, path::Path, sync::Arc};

use ulid::Ulid;

use super::{
    BranchReport, bring, by_stored_path,
    parallel::{WORKERS, for_each},
    report_of, told_if_expired,
    work::WorkFolder,
};
use crate::{
    Engine, Error, Result,
    catalog::{Manifest, ManifestState, StreamStart},
    datafile::{compare_bytes, read_pieces},
    engine::Origin,
    model::{DATA_DIR, DataFile, META_DIR, PastMoment, WRITER},
    store::{ObjectLocation, ObjectStorage, OpenStorage, Patience, StoredObject},
    sync::Mutex,
    vfs::Vfs,
};

impl Engine {
    /// Makes what is below a prefix of an object store a branch: it begins as this directory is now, or
    /// was at some moment, and goes its own way, while points are written and read.
    ///
    /// It has every point that was acknowledged before the call, all of them in data files; so it takes
    /// no folder with it, and any new, empty data directory that is opened with `target` goes on from
    /// it. Of an engine with an object store, the store itself copies the data files if `target` is in
    /// the same one; otherwise they pass through this process. Each copy is compared with what it is a
    /// copy of. `target` has to be empty, or to have what is left of a branch that was cut off.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options.clone()).open()?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// use std::sync::Arc;
    ///
    /// use arc_core::{Engine, store::ObjectStorage};
    /// use object_store::memory::InMemory;
    ///
    /// let storage = ObjectStorage::new(Arc::new(InMemory::new()), "plants/try");
    /// let report = engine.branch_in_store(storage.clone(), None)?;
    /// assert_eq!((report.files, report.rows), (1, 1));
    /// let branch = Engine::builder(dir.path().join("try")).options(options).object_store(storage).open()?;
    /// branch.drop_table("plant", "pump")?;
    /// assert_eq!(engine.tables("plant")?.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::BadTarget`] if `target` holds anything else, or another process makes a branch of it
    /// first; [`Error::OutsideHistory`] and [`Error::SnapshotNotFound`] for a state that cannot be asked
    /// for; [`Error::Expired`] of a reader if files were removed before they were copied;
    /// [`Error::Corrupt`] naming a data file that is damaged; [`ErrorKind::Io`](crate::ErrorKind::Io);
    /// [`Closed`](crate::ErrorKind::Closed). Then a later call goes on there.
    pub fn branch_in_store(&self, target: ObjectStorage, moment: Option<&PastMoment>) -> Result<BranchReport> {
        let target = OpenStorage::new(target)?;
        told_if_expired(self, || {
            let origin = self.origin(moment)?;
            check_apart(&origin, &target)?;
            begin(&origin, &target)?;
            let work = WorkFolder::make(&origin)?;
            let (origin, state) = work.flushed(self, (origin, moment))?;
            Bringing { origin: &origin, target: &target, work: &work, state: &state }.run()
        })
    }
}

/// Refuses to make a branch among the files of what it is a branch of.
fn check_apart(origin: &Origin<'_>, target: &OpenStorage) -> Result<()> {
    let Some(source) = origin.storage.as_ref().filter(|source| source.is_same_store(target)) else { return Ok(()) };
    let is_inside = [DATA_DIR, META_DIR].iter().any(|folder| target.is_inside(source, folder));
    if is_inside { bad(target, "it is among the objects that the branch is to be one of".into()) } else { Ok(()) }
}

fn bad<T>(target: &OpenStorage, reason: String) -> Result<T> {
    Err(Error::BadTarget { path: target.named(""), reason })
}

fn location(target: &OpenStorage) -> Arc<dyn ObjectLocation> {
    target.location_with([META_DIR, WRITER], Patience::Tries)
}

/// Takes an empty prefix, or one in which a branch was begun.
fn begin(origin: &Origin<'_>, target: &OpenStorage) -> Result<()> {
    let there = list(target)?;
    let start = Manifest::start_of(location(target).as_ref())?;
    let data = format!("{DATA_DIR}/");
    let other = |path: &&String| start == StreamStart::Absent || !path.starts_with(&data);
    let stream = format!("{META_DIR}/{WRITER}/");
    match there.keys().filter(|path| !path.starts_with(&stream)).find(other) {
        Some(path) => bad(target, format!("it is not empty: it has {path}")),
        None => match start {
            StreamStart::Whole => {
                bad(target, "it has a data directory already; a branch needs a prefix of its own".into())
            }
            StreamStart::Begun => Ok(()),
            StreamStart::Absent => {
                let opening = u128::from(origin.random.next()) << 64 | u128::from(origin.random.next());
                match Manifest::begin_unfinished(location(target), Ulid::from(opening).to_string()) {
                    Err(Error::Closed { reason }) => bad(target, reason),
                    begun => begun,
                }
            }
        },
    }
}

fn list(storage: &OpenStorage) -> Result<HashMap<String, StoredObject>> {
    storage.list_below().map_err(|e| Error::io("list", storage.named(""), e))
}

/// A branch whose data files are on their way.
struct Bringing<'a> {
    origin: &'a Origin<'a>,
    target: &'a OpenStorage,
    work: &'a WorkFolder,
    /// What it is to say.
    state: &'a ManifestState,
}

impl Bringing<'_> {
    fn run(&self) -> Result<BranchReport> {
        let mut report = BranchReport { number: self.origin.number, ..report_of(self.state) };
        let there = self.bring_all(&mut report).or_else(|error| self.explain(error))?;
        match Manifest::finish_begun(location(self.target), self.state.clone()) {
            Err(Error::Closed { reason }) => return bad(self.target, reason),
            finished => finished?,
        }
        self.remove_leftovers(there.keys());
        Ok(report)
    }

    /// Brings all data files and checks that they are there. Returns what is.
    fn bring_all(&self, report: &mut BranchReport) -> Result<HashMap<String, StoredObject>> {
        let of_origin = self.origin.state.stored_paths();
        let (shared, flushed): (Vec<_>, Vec<_>) =
            by_stored_path(self.state).into_iter().partition(|group| of_origin.contains(stored_path(group)));
        self.bring(&flushed, &self.work.flushing(), report)?;
        let source = self.origin.storage.as_ref().filter(|source| source.is_same_store(self.target));
        let copies = source.map_or_else(|| Ok(HashMap::new()), |source| self.copy_within(source, &shared))?;
        report.store_copied_files = copies.len() as u64;
        let others: Vec<_> = shared.into_iter().filter(|group| !copies.contains_key(stored_path(group))).collect();
        self.bring(&others, &self.origin.root, report)?;
        let there = list(self.target)?;
        self.check(&there, &copies)?;
        Ok(there)
    }

    /// Returns why data files could not be brought: a process whose branch is whole first removes those
    /// that its state does not name, whatever they are needed for.
    fn explain<T>(&self, error: Error) -> Result<T> {
        match Manifest::start_of(location(self.target).as_ref()) {
            Ok(StreamStart::Whole) => bad(self.target, "another process has made a branch of it meanwhile".into()),
            _ => Err(error),
        }
    }

    /// Has the store copy data files. Returns what it says of those that they are copies of, by path;
    /// those that it cannot copy are not among them.
    fn copy_within(&self, source: &OpenStorage, files: &[Vec<&DataFile>]) -> Result<HashMap<String, StoredObject>> {
        let (there, copied) = (list(source)?, Mutex::new(HashMap::new()));
        let copy = |_: &mut (), group: &Vec<&DataFile>| {
            let path = stored_path(group);
            let missing = || Error::corrupt(source.named(path), 0, "it is missing");
            let object = there.get(path).ok_or_else(missing)?;
            match self.target.copy_from(source, path) {
                Ok(()) => drop(copied.lock().insert(path.to_owned(), object.clone())),
                Err(e) if e.kind() == ErrorKind::NotFound => return Err(missing()),
                Err(error) => tracing::warn!(path, %error, "the object store does not copy it; it comes through here"),
            }
            Ok(())
        };
        for_each((files, WORKERS), || (), copy, Ok)?;
        Ok(copied.into_inner())
    }

    /// Brings data files from a folder, or from another store, through this process; each is compared with
    /// its checksum on the way.
    fn bring(&self, files: &[Vec<&DataFile>], from: &Path, report: &mut BranchReport) -> Result<()> {
        let (vfs, bucket) = (self.mounted(), self.work.bucket());
        let brought = bring(files, (vfs.as_ref(), [from, &bucket], self.state), WORKERS)?;
        report.copied_files += brought.copied_files + brought.kept_files;
        report.copied_bytes += brought.copied_bytes;
        Ok(())
    }

    /// Returns the file system with the objects of the branch below [`WorkFolder::bucket`].
    fn mounted(&self) -> Arc<dyn Vfs> {
        self.target.mount(Arc::clone(&self.origin.vfs), &self.work.bucket())
    }

    /// Checks that all objects are there that the state names, and that those which the store has copied
    /// are like the others: by size and tag, or by the checksum of what is in them.
    fn check(&self, there: &HashMap<String, StoredObject>, copies: &HashMap<String, StoredObject>) -> Result<()> {
        let (vfs, bucket) = (self.mounted(), self.work.bucket());
        let check = |_: &mut (), group: &Vec<&DataFile>| {
            let path = stored_path(group);
            let missing = || Error::corrupt(self.target.named(path), 0, "it was brought and is missing");
            let found = there.get(path).ok_or_else(missing)?;
            let Some(object) = copies.get(path) else { return Ok(()) };
            let is_whole = |file: &&DataFile| file.packed().is_some() || found.bytes == file.bytes;
            if found.has_bytes_of(object) == Some(true) && group.iter().all(is_whole) {
                return Ok(());
            }
            group.iter().try_for_each(|file| compare(vfs.as_ref(), &bucket, file, self.target))
        };
        for_each((&by_stored_path(self.state), WORKERS), || (), check, Ok)
    }

    /// Removes what tries that were cut off have left, now that nothing else can come to name it. Best
    /// effort: the first opening does the same.
    fn remove_leftovers<'n>(&self, there: impl Iterator<Item = &'n String>) {
        let named = self.state.stored_paths();
        let data = format!("{DATA_DIR}/");
        for path in there.filter(|path| path.starts_with(&data) && !named.contains(path.as_str())) {
            if let Err(error) = self.target.remove_below(path) {
                tracing::warn!(path, %error, "cannot remove what a branch that was cut off has left");
            }
        }
    }
}

/// Returns the path of the object in which data files are.
fn stored_path<'f>(group: &[&'f DataFile]) -> &'f str {
    group.first().map_or("", |file| file.stored_path())
}

/// Reads a copy, and compares it with its checksum.
fn compare(vfs: &dyn Vfs, bucket: &Path, file: &DataFile, target: &OpenStorage) -> Result<()> {
    let (bytes, crc32c) = read_pieces(vfs, &bucket.join(&file.path), u64::MAX, |_, _| Ok(()))?;
    compare_bytes(&target.named(&file.path), file, bytes, crc32c)
}
