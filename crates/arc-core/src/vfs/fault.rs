//! A file system whose calls fail when told to.
//!
//! Owns the counting of calls and the decision which of them fail; everything else is the wrapped
//! file system's. Never undoes anything: a call that fails was not made, except a short write, of
//! which the first half was, and a sync over a [`CrashFs`] that forgets: what it was to make
//! durable never will be, whoever syncs again.

use std::{
    any::Any,
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use parking_lot::Mutex;

use super::{CrashFs, DirEntry, Vfs, VfsFile};

/// A call of [`Vfs`] or [`VfsFile`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "each is named after the call")]
#[non_exhaustive]
pub enum Operation {
    CreateDirAll,
    CreateNew,
    Open,
    OpenRead,
    Read,
    Rename,
    RenameNew,
    HardLink,
    RemoveFile,
    RemoveDir,
    SyncDir,
    List,
    Lock,
    Len,
    ReadAt,
    WriteAllAt,
    SyncData,
    SyncAll,
    SetLen,
}

/// Which calls fail, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// The kind of call; `None` for any.
    pub operation: Option<Operation>,
    /// Which of these calls fails, counted from when the fault was set; the first is 1.
    pub nth: u64,
    /// Whether all later ones fail as well.
    pub from_then_on: bool,
    /// The error returned.
    pub error: io::ErrorKind,
    /// Whether a write that fails has written its first half.
    pub short_write: bool,
    /// Whether a read does not fail, but brings only the first half of what is there.
    pub short_read: bool,
}

impl Fault {
    /// Returns a fault that fails the `nth` call of any kind, once.
    #[must_use]
    pub fn nth(nth: u64, error: io::ErrorKind) -> Self {
        Self { operation: None, nth, from_then_on: false, error, short_write: false, short_read: false }
    }

    /// Limits the fault to one kind of call.
    #[must_use]
    pub fn of(mut self, operation: Operation) -> Self {
        self.operation = Some(operation);
        self
    }

    /// Makes all later calls fail as well.
    #[must_use]
    pub fn from_then_on(mut self) -> Self {
        self.from_then_on = true;
        self
    }

    /// Lets a write that fails write its first half.
    #[must_use]
    pub fn short_write(mut self) -> Self {
        self.short_write = true;
        self
    }

    /// Lets a read bring the first half of what is there, in place of failing.
    #[must_use]
    pub fn short_read(mut self) -> Self {
        self.short_read = true;
        self
    }
}

/// What a failed sync of a [`CrashFs`] loses for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Forgets {
    /// What was written to a file whose sync failed, as Linux does.
    Writes,
    /// Also the names in a folder whose sync failed, which POSIX allows.
    WritesAndNames,
}

/// Characters of a ULID, which names a data file.
const ULID_LEN: usize = 26;

/// A place in the protocol: a kind of call on a kind of file. Numbers and ULIDs in the file's name
/// are `#`, so that all segments, or all data files, are one site.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Site {
    /// The call.
    pub operation: Operation,
    /// The file's name, numbers and ULIDs masked.
    pub name: String,
}

/// [`Vfs`] over another one that counts calls and makes chosen ones fail. Clones share counts and
/// faults.
#[derive(Debug, Clone)]
pub struct FaultFs {
    inner: Arc<dyn Vfs>,
    plan: Arc<Mutex<FaultPlan>>,
    /// What forgets when a sync fails.
    forgetting: Option<(CrashFs, Forgets)>,
}

#[derive(Debug, Default)]
struct FaultPlan {
    fault: Option<Fault>,
    /// Calls that matched the fault since it was set.
    matched: u64,
    calls: BTreeMap<Site, u64>,
    failed: BTreeMap<Site, u64>,
}

impl FaultPlan {
    /// Counts a call and returns the fault if it is to fail.
    fn enter(&mut self, operation: Operation, path: &Path) -> Option<Fault> {
        let site = Site { operation, name: masked(path) };
        *self.calls.entry(site.clone()).or_default() += 1;
        let fault = self.fault.filter(|fault| fault.operation.is_none_or(|only| only == operation))?;
        self.matched += 1;
        let hit = self.matched == fault.nth || (fault.from_then_on && self.matched > fault.nth);
        if hit {
            *self.failed.entry(site).or_default() += 1;
        }
        hit.then_some(fault)
    }
}

/// Replaces every number by `#`: hexadecimal digits, of which one is decimal, or a ULID.
fn masked(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let parts = name.split_inclusive(|c: char| !c.is_ascii_alphanumeric());
    let mask = |part: &str| {
        let run = part.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        let is_hex = run.contains(|c: char| c.is_ascii_digit()) && run.chars().all(|c| c.is_ascii_hexdigit());
        let is_ulid = run.len() == ULID_LEN && run.chars().all(|c| c.is_ascii_digit() || c.is_ascii_uppercase());
        if is_hex || is_ulid { part.replacen(run, "#", 1) } else { part.to_owned() }
    };
    parts.map(mask).collect()
}

impl FaultFs {
    /// Wraps `inner`; nothing fails before [`FaultFs::set`].
    ///
    /// ```
    /// use std::{io, sync::Arc};
    ///
    /// use arc_core::{Engine, vfs::{CrashFs, Fault, FaultFs, Operation}};
    ///
    /// let disk = Arc::new(FaultFs::new(Arc::new(CrashFs::new())));
    /// let engine = Engine::builder("/data").vfs(disk.clone()).open()?;
    /// disk.set(Fault::nth(1, io::ErrorKind::Other).of(Operation::SyncData));
    /// assert!(engine.write_lp("plant", b"pump,id=7 rpm=1450i").is_err());
    /// assert!(engine.closed_to_writes().is_some()); // a failed sync is never tried again
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn new(inner: Arc<dyn Vfs>) -> Self {
        Self { inner, plan: Arc::default(), forgetting: None }
    }

    /// Wraps `crash`, which forgets what a sync that fails was to make durable.
    #[must_use]
    pub fn over(crash: &CrashFs, forgets: Forgets) -> Self {
        Self { forgetting: Some((crash.clone(), forgets)), ..Self::new(Arc::new(crash.clone())) }
    }

    /// Sets the fault, in place of an earlier one, and counts its calls from now on.
    pub fn set(&self, fault: Fault) {
        let mut plan = self.plan.lock();
        plan.fault = Some(fault);
        plan.matched = 0;
    }

    /// Lets everything succeed again; the counts stay.
    pub fn clear(&self) {
        self.plan.lock().fault = None;
    }

    /// Returns how many calls of one kind were made, the failed ones included.
    #[must_use]
    pub fn calls(&self, operation: Operation) -> u64 {
        let plan = self.plan.lock();
        plan.calls.iter().filter(|(site, _)| site.operation == operation).map(|(_, count)| count).sum()
    }

    /// Returns how many calls were made.
    #[must_use]
    pub fn total_calls(&self) -> u64 {
        self.plan.lock().calls.values().sum()
    }

    /// Returns how often each site was called.
    #[must_use]
    pub fn called(&self) -> BTreeMap<Site, u64> {
        self.plan.lock().calls.clone()
    }

    /// Returns how often each site failed by a fault.
    #[must_use]
    pub fn failed(&self) -> BTreeMap<Site, u64> {
        self.plan.lock().failed.clone()
    }

    fn enter(&self, operation: Operation, path: &Path) -> io::Result<()> {
        let Some(fault) = self.plan.lock().enter(operation, path) else { return Ok(()) };
        match (&self.forgetting, operation) {
            (Some((crash, _)), Operation::SyncData | Operation::SyncAll) => crash.forget_unsynced_writes_of(path),
            (Some((crash, Forgets::WritesAndNames)), Operation::SyncDir) => crash.forget_unsynced_names_in(path),
            _ => {}
        }
        Err(fault.error.into())
    }

    /// As `enter`; says how much of so many bytes a read brings.
    fn enter_read(&self, operation: Operation, path: &Path, bytes: usize) -> io::Result<usize> {
        match self.plan.lock().enter(operation, path) {
            Some(fault) if fault.short_read => Ok(bytes / 2),
            Some(fault) => Err(fault.error.into()),
            None => Ok(bytes),
        }
    }

    fn file(&self, path: &Path, inner: Box<dyn VfsFile>) -> Box<dyn VfsFile> {
        Box::new(FaultFile { inner, path: path.to_owned(), fs: self.clone() })
    }
}

impl Vfs for FaultFs {
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.enter(Operation::CreateDirAll, dir)?;
        self.inner.create_dir_all(dir)
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn VfsFile>> {
        self.enter(Operation::CreateNew, path)?;
        Ok(self.file(path, self.inner.create_new(path)?))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn VfsFile>> {
        self.enter(Operation::Open, path)?;
        Ok(self.file(path, self.inner.open(path)?))
    }

    fn open_read(&self, path: &Path) -> io::Result<Box<dyn VfsFile>> {
        self.enter(Operation::OpenRead, path)?;
        Ok(self.file(path, self.inner.open_read(path)?))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let mut bytes = self.inner.read(path);
        let len = bytes.as_ref().map_or(0, Vec::len);
        let brought = self.enter_read(Operation::Read, path, len)?;
        bytes.iter_mut().for_each(|bytes| bytes.truncate(brought));
        bytes
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.enter(Operation::Rename, to)?;
        self.inner.rename(from, to)
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.enter(Operation::RenameNew, to)?;
        self.inner.rename_new(from, to)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.enter(Operation::HardLink, to)?;
        self.inner.hard_link(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.enter(Operation::RemoveFile, path)?;
        self.inner.remove_file(path)
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        self.enter(Operation::RemoveDir, dir)?;
        self.inner.remove_dir(dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.enter(Operation::SyncDir, dir)?;
        self.inner.sync_dir(dir)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        self.enter(Operation::List, dir)?;
        self.inner.list(dir)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Any + Send + Sync>> {
        self.enter(Operation::Lock, path)?;
        self.inner.lock(path)
    }
}

#[derive(Debug)]
struct FaultFile {
    inner: Box<dyn VfsFile>,
    path: PathBuf,
    fs: FaultFs,
}

impl VfsFile for FaultFile {
    fn len(&self) -> io::Result<u64> {
        self.fs.enter(Operation::Len, &self.path)?;
        self.inner.len()
    }

    /// Counted as a look at the length: both ask for the file's metadata.
    fn modified(&self) -> io::Result<SystemTime> {
        self.fs.enter(Operation::Len, &self.path)?;
        self.inner.modified()
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let brought = self.fs.enter_read(Operation::ReadAt, &self.path, buf.len())?;
        self.inner.read_at(buf.get_mut(..brought).unwrap_or_default(), offset)
    }

    fn write_all_at(&self, parts: &[&[u8]], offset: u64) -> io::Result<()> {
        let fault = self.fs.plan.lock().enter(Operation::WriteAllAt, &self.path);
        let Some(fault) = fault else { return self.inner.write_all_at(parts, offset) };
        if fault.short_write {
            let bytes = parts.concat();
            let half = bytes.get(..bytes.len() / 2).unwrap_or_default();
            self.inner.write_all_at(&[half], offset)?;
        }
        Err(fault.error.into())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.fs.enter(Operation::SyncData, &self.path)?;
        self.inner.sync_data()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.fs.enter(Operation::SyncAll, &self.path)?;
        self.inner.sync_all()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.fs.enter(Operation::SetLen, &self.path)?;
        self.inner.set_len(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_one_kind_are_one_site() {
        let cases = [
            ("wal/00000000000000000013-d0fb343082b18e01.wal", "#-#.wal"),
            ("wal/spare.tmp", "spare.tmp"),
            ("meta/0/00000000000000000004.4.tmp", "#.#.tmp"),
            ("m/day=2023-11-13", "day=#-#-#"),
            ("m/day=2023-11-13/01M7Y49MVRC4EFW4QBWYB3SNRR.parquet.tmp", "#.parquet.tmp"),
            ("data/abc/cafe", "cafe"),
        ];
        for (path, name) in cases {
            assert_eq!(masked(Path::new(path)), name);
        }
    }
}
