//! Leases: how a process that reads a data directory tells the one that writes it which version of
//! the manifest it still needs (docs/format.md, "Leases").
//!
//! A lease is a small file that ends by itself, so that a reader that dies holds nothing for ever.
//! Never says which data files these are: whoever removes one knows the commit that took it out.
//! What is read here was written by another process, perhaps of another build: what is no lease
//! holds nothing.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use serde::{Deserialize, Serialize};

#[cfg(feature = "object-store")]
use crate::store::OwnerLog;
use crate::{
    Error, Result,
    model::{MARKER, TEMPORARY_SUFFIX},
    vfs::Vfs,
};

/// The folder of the leases, below the data directory.
const FOLDER: &str = "readers";

/// How long a lease holds after it was written.
pub(crate) const LEASE_TIME: Duration = Duration::from_secs(60);

/// A lease that claims to hold for longer is none: some clock is wrong, and it would not end.
const LONGEST: Duration = Duration::from_secs(3_600);

/// How long ago a lease has ended whose file is removed.
const FORGET_AFTER: Duration = Duration::from_secs(600);

const FORMAT_VERSION: u32 = 1;

/// Contents of a lease.
#[derive(Debug, Serialize, Deserialize)]
struct LeaseRecord {
    arc_reader: u32,
    /// The oldest commit of the manifest whose files are needed.
    number: u64,
    expires_ns: i64,
}

/// Where a lease is.
#[derive(Debug)]
enum LeasePlace {
    /// A file below the data directory of the process that writes.
    File { vfs: Arc<dyn Vfs>, root: PathBuf, id: u64 },
    /// At the process that writes, on another machine, which keeps the file under this number.
    #[cfg(feature = "object-store")]
    Owner { log: Arc<dyn OwnerLog>, id: u64 },
}

/// The lease of this process; given up when dropped.
#[derive(Debug)]
pub(crate) struct ReadLease {
    place: LeasePlace,
    /// Until when it holds; `None` if it could not be written.
    expires_ns: Option<i64>,
    has_failed: bool,
}

impl ReadLease {
    /// Returns a lease below `root` that holds nothing yet; `id` is like no other.
    pub(crate) fn new(vfs: Arc<dyn Vfs>, root: &Path, id: u64) -> Self {
        let place = LeasePlace::File { vfs, root: root.to_owned(), id };
        Self { place, expires_ns: None, has_failed: false }
    }

    /// Returns a lease at the process that writes, on another machine, that holds nothing yet.
    #[cfg(feature = "object-store")]
    pub(crate) fn at_owner(log: Arc<dyn OwnerLog>, id: u64) -> Self {
        Self { place: LeasePlace::Owner { log, id }, expires_ns: None, has_failed: false }
    }

    /// Writes the lease of a process on another machine: from `now_ns` of this machine's clock on.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    #[cfg(feature = "object-store")]
    pub(crate) fn write_for(
        vfs: &Arc<dyn Vfs>,
        root: &Path,
        (id, number): (u64, u64),
        (now_ns, time): (i64, Duration),
    ) -> Result<()> {
        let expires_ns = now_ns.saturating_add(nanoseconds(time.min(LONGEST)));
        write(vfs.as_ref(), (root, id), &LeaseRecord { arc_reader: FORMAT_VERSION, number, expires_ns })
    }

    /// Ends the lease of a process on another machine.
    #[cfg(feature = "object-store")]
    pub(crate) fn remove_for(vfs: &dyn Vfs, root: &Path, id: u64) {
        // It ends by itself.
        let _ = vfs.remove_file(&path(root, id));
    }

    /// Returns whether it holds: files that were needed when it was renewed last are there.
    pub(crate) fn holds(&self, now_ns: i64) -> bool {
        self.expires_ns.is_some_and(|expires_ns| now_ns < expires_ns)
    }

    /// Has the files of all versions from commit `number` on stay, from now on. Where nothing can
    /// be written, as on a file system that is only read, they stay for the writer's time of grace.
    pub(crate) fn renew(&mut self, number: u64, now_ns: i64) {
        let expires_ns = now_ns.saturating_add(nanoseconds(LEASE_TIME));
        let written = match &self.place {
            LeasePlace::File { vfs, root, id } => {
                write(vfs.as_ref(), (root, *id), &LeaseRecord { arc_reader: FORMAT_VERSION, number, expires_ns })
            }
            #[cfg(feature = "object-store")]
            LeasePlace::Owner { log, id } => log.hold(*id, number, LEASE_TIME),
        };
        match written {
            Ok(()) => (self.expires_ns, self.has_failed) = (Some(expires_ns), false),
            Err(error) => {
                if !std::mem::replace(&mut self.has_failed, true) {
                    let source = std::error::Error::source(&error);
                    tracing::info!(%error, source, "reads without a lease: what it reads stays for compaction_grace");
                }
            }
        }
    }
}

fn path(root: &Path, id: u64) -> PathBuf {
    root.join(FOLDER).join(format!("{id:016x}"))
}

fn write(vfs: &dyn Vfs, (root, id): (&Path, u64), record: &LeaseRecord) -> Result<()> {
    let path = path(root, id);
    let failed = |e| Error::io("write", &path, e);
    let bytes = serde_json::to_vec(record).map_err(|e| Error::internal(e.to_string()))?;
    // A directory that was removed is not to come back as a folder that has leases and nothing else, in
    // which no engine could begin a new one.
    vfs.open_read(&root.join(MARKER)).map_err(failed)?;
    vfs.create_dir_all(&root.join(FOLDER)).map_err(failed)?;
    let temporary = path.with_extension(TEMPORARY_SUFFIX.trim_start_matches('.'));
    match vfs.remove_file(&temporary) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(failed(e)),
        _ => {}
    }
    // Not synced: after a crash there is no reader that needs it.
    vfs.create_new(&temporary).and_then(|file| file.write_all_at(&[&bytes], 0)).map_err(failed)?;
    vfs.rename(&temporary, &path).map_err(failed)
}

impl Drop for ReadLease {
    fn drop(&mut self) {
        if self.expires_ns.is_none() {
            return;
        }
        match &self.place {
            // It ends by itself.
            LeasePlace::File { vfs, root, id } => drop(vfs.remove_file(&path(root, *id))),
            #[cfg(feature = "object-store")]
            LeasePlace::Owner { log, id } => log.release(*id),
        }
    }
}

/// Returns the oldest commit that a lease below `root` holds now, if there is one: a data file stays
/// that a later commit has taken out of the manifest. Removes leases that have ended long ago.
pub(crate) fn oldest_leased(vfs: &dyn Vfs, root: &Path, now_ns: i64) -> Option<u64> {
    let folder = root.join(FOLDER);
    let entries = match vfs.list(&folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => {
            // Better too much on the disk than a file too few.
            tracing::warn!(%error, "cannot see who reads this directory: nothing is removed from it");
            return Some(0);
        }
    };
    let mut oldest = None;
    for entry in entries.iter().filter(|entry| !entry.is_dir) {
        let path = folder.join(&entry.name);
        let (number, expires_ns) = match read(vfs, &path) {
            Ok(Some(LeaseRecord { number, expires_ns, .. })) => (number, expires_ns),
            Ok(None) => continue,
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "cannot read a lease: nothing is removed that it may be for");
                oldest = Some(0);
                continue;
            }
        };
        if now_ns < expires_ns && expires_ns.saturating_sub(now_ns) <= nanoseconds(LONGEST) {
            oldest = Some(oldest.map_or(number, |oldest: u64| oldest.min(number)));
        } else if now_ns.saturating_sub(expires_ns) > nanoseconds(FORGET_AFTER) {
            let _ = vfs.remove_file(&path);
        }
    }
    oldest
}

/// Reads a lease; `None` if it has gone, or is none: what a loss of power left of one is for nobody.
fn read(vfs: &dyn Vfs, path: &Path) -> io::Result<Option<LeaseRecord>> {
    match vfs.read(path) {
        Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok().filter(|is: &LeaseRecord| is.arc_reader >= FORMAT_VERSION)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn nanoseconds(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vfs::{CrashFs, Fault, FaultFs, Operation};

    const ROOT: &str = "/store";
    const SECOND: i64 = 1_000_000_000;

    fn disk() -> (CrashFs, Arc<dyn Vfs>) {
        let fs = CrashFs::new();
        fs.create_dir_all(Path::new(ROOT)).unwrap();
        fs.create_new(&Path::new(ROOT).join(MARKER)).unwrap();
        (fs.clone(), Arc::new(fs))
    }

    #[test]
    fn the_oldest_lease_that_holds_counts() {
        let (_, vfs) = disk();
        let oldest = |now_ns| oldest_leased(&*vfs, Path::new(ROOT), now_ns);
        assert_eq!(oldest(0), None);
        let mut leases = [7, 9].map(|number| (ReadLease::new(Arc::clone(&vfs), Path::new(ROOT), number), number));
        leases.iter_mut().for_each(|(lease, number)| lease.renew(*number, 0));
        assert_eq!(oldest(59 * SECOND), Some(7));
        assert!(leases[0].0.holds(59 * SECOND) && !leases[0].0.holds(60 * SECOND));
        assert_eq!(oldest(60 * SECOND), None, "they end by themselves");
        leases[1].0.renew(12, 50 * SECOND);
        assert_eq!(oldest(60 * SECOND), Some(12));
        let [first, second] = leases;
        drop(second);
        assert_eq!(oldest(60 * SECOND), None, "and with their reader");
        assert_eq!(oldest(0), Some(7));
        std::mem::forget(first);
        assert_eq!(oldest(700 * SECOND), None);
        assert!(vfs.list(&Path::new(ROOT).join(FOLDER)).unwrap().is_empty(), "what a dead one left is removed");
    }

    #[test]
    fn what_is_no_lease_holds_nothing() {
        let (_, vfs) = disk();
        let folder = Path::new(ROOT).join(FOLDER);
        vfs.create_dir_all(&folder.join("folder")).unwrap();
        let far = format!(r#"{{"arc_reader":1,"number":1,"expires_ns":{}}}"#, i64::MAX);
        for (name, bytes) in
            [("a", ""), ("b", "{}"), ("c", &far), ("d", r#"{"arc_reader":0,"number":1,"expires_ns":9}"#)]
        {
            vfs.create_new(&folder.join(name)).unwrap().write_all_at(&[bytes.as_bytes()], 0).unwrap();
        }
        assert_eq!(oldest_leased(&*vfs, Path::new(ROOT), 0), None);
        let newer = r#"{"arc_reader":2,"number":3,"expires_ns":9,"more":[]}"#;
        vfs.create_new(&folder.join("e")).unwrap().write_all_at(&[newer.as_bytes()], 0).unwrap();
        assert_eq!(oldest_leased(&*vfs, Path::new(ROOT), 0), Some(3), "that of a newer build does");
    }

    #[test]
    fn a_lease_that_cannot_be_read_for_a_moment_holds_everything() {
        let (fs, vfs) = disk();
        let faults = FaultFs::new(Arc::new(fs));
        let mut lease = ReadLease::new(vfs, Path::new(ROOT), 7);
        lease.renew(7, 0);
        for error in [io::ErrorKind::Other, io::ErrorKind::TimedOut, io::ErrorKind::PermissionDenied] {
            faults.set(Fault::nth(1, error).of(Operation::Read));
            assert_eq!(oldest_leased(&faults, Path::new(ROOT), 1), Some(0));
            assert_eq!(oldest_leased(&faults, Path::new(ROOT), 1), Some(7));
        }
    }

    #[test]
    fn where_nothing_can_be_written_there_is_no_lease_and_no_error() {
        let (fs, _) = disk();
        for nth in 1..=5 {
            let faults = Arc::new(FaultFs::new(Arc::new(fs.clone())));
            faults.set(Fault::nth(nth, io::ErrorKind::ReadOnlyFilesystem));
            let mut lease = ReadLease::new(faults, Path::new(ROOT), 1);
            lease.renew(7, 0);
            assert!(!lease.holds(0), "call {nth}");
            assert_eq!(oldest_leased(&fs, Path::new(ROOT), 0), None);
        }
    }

    #[test]
    fn a_directory_that_is_gone_is_not_made_again() {
        let (fs, vfs) = disk();
        let mut lease = ReadLease::new(vfs, Path::new(ROOT), 1);
        fs.remove_file(&Path::new(ROOT).join(MARKER)).unwrap();
        lease.renew(7, 0);
        assert!(!lease.holds(0) && fs.list(Path::new(ROOT)).unwrap().is_empty());
    }

    #[test]
    fn a_folder_of_leases_that_cannot_be_read_keeps_everything() {
        let (fs, vfs) = disk();
        let mut lease = ReadLease::new(vfs, Path::new(ROOT), 1);
        lease.renew(7, 0);
        let faults = FaultFs::new(Arc::new(fs));
        faults.set(Fault::nth(1, io::ErrorKind::PermissionDenied));
        assert_eq!(oldest_leased(&faults, Path::new(ROOT), 0), Some(0));
    }
}
