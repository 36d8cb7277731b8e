//! The file system as the engine sees it: every file operation of WAL, manifest and data files goes
//! through [`Vfs`].
//!
//! Owns the trait and its implementations: [`RealVfs`], and the doubles that crash and fault tests
//! use. Never caches, never retries, never decides what is durable: the caller says when to sync.

mod crash;
mod fault;
mod range;
mod real;
#[cfg(test)]
mod tests;

use std::{
    any::Any,
    fmt::Debug,
    io,
    ops::Range,
    path::{Path, PathBuf},
    time::SystemTime,
};

pub use crash::{CrashFs, Image, PowerCut, PowerCuts};
pub use fault::{Fault, FaultFs, Forgets, Operation, Site};
pub use real::RealVfs;

use range::FileRange;

/// Returns one in how many steps a test cuts the power or fails a call: each of them in the proof.
#[cfg(test)]
pub(crate) fn stride(landing: usize) -> usize {
    if is_proof() { 1 } else { landing }
}

/// Returns how many of `all` cases a test generates: all of them in the proof.
#[cfg(test)]
pub(crate) fn cases(all: u32) -> u32 {
    if is_proof() { all } else { all / 3 }
}

#[cfg(test)]
fn is_proof() -> bool {
    std::env::var_os("TEST_TIER").is_some_and(|tier| tier == "proof")
}

/// Returns whether a call failed because the process or the machine had no file descriptors or no
/// memory left for it: then nothing was done, and it can be tried again.
pub(crate) fn is_shortage(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let codes = [Errno::MFILE, Errno::NFILE, Errno::NOMEM].map(Errno::raw_os_error);
    error.kind() == io::ErrorKind::OutOfMemory || error.raw_os_error().is_some_and(|code| codes.contains(&code))
}

/// One entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirEntry {
    /// The name inside the folder.
    pub name: String,
    /// Whether it is a folder itself.
    pub is_dir: bool,
    /// Size in bytes; 0 for a folder.
    pub len: u64,
    /// When its contents last changed, as far as the file system tells.
    pub modified: SystemTime,
}

/// Files and folders. Paths are absolute or relative to the process, as in `std::fs`.
///
/// Nothing is durable before `sync_data`/`sync_all` of the file *and*, for a name that is new,
/// changed or gone, [`Vfs::sync_dir`] of its folder.
#[allow(clippy::missing_errors_doc, reason = "every call fails where the operating system's does")]
pub trait Vfs: Debug + Send + Sync + 'static {
    /// Creates a folder and its parents; it is no error if they exist.
    fn create_dir_all(&self, dir: &Path) -> io::Result<()>;
    /// Creates a file that does not exist (`AlreadyExists` otherwise), open for reading and
    /// writing.
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn VfsFile>>;
    /// Opens a file that exists for reading and writing.
    fn open(&self, path: &Path) -> io::Result<Box<dyn VfsFile>>;
    /// Opens a file that exists for reading: writes to it fail.
    fn open_read(&self, path: &Path) -> io::Result<Box<dyn VfsFile>>;
    /// Opens some bytes of a file that exists for reading, as if they were a file: as many of them
    /// as there are.
    fn open_range(&self, path: &Path, range: Range<u64>) -> io::Result<Box<dyn VfsFile>> {
        Ok(Box::new(FileRange::new(self.open_read(path)?, range)?))
    }
    /// Returns a file's whole contents.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;
    /// Renames a file; a file at `to` is replaced.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Renames a file unless `to` exists (`AlreadyExists` then): the local form of put-if-absent.
    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Gives a file a second name (`AlreadyExists` if `to` exists). Fails where the file system has
    /// no such thing, or `to` is on another one.
    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Removes a folder that is empty (`DirectoryNotEmpty` otherwise).
    fn remove_dir(&self, dir: &Path) -> io::Result<()>;
    /// Makes the names in a folder durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// Lists a folder, sorted by name. A file that comes, goes or gets another name meanwhile is
    /// listed or not, and is no error.
    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>>;
    /// Returns the paths of all files in a folder and in those below it, where that takes fewer
    /// calls than listing each.
    fn list_below(&self, dir: &Path) -> Option<io::Result<Vec<PathBuf>>> {
        let _ = dir;
        None
    }
    /// Takes an exclusive lock on a file (created if absent) until the guard is dropped;
    /// `WouldBlock` if another has it.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Any + Send + Sync>>;
}

/// An open file; all access is by offset, so `&self` is enough.
#[allow(clippy::len_without_is_empty, reason = "a file's length is an I/O call, emptiness is of no interest")]
#[allow(clippy::missing_errors_doc, reason = "every call fails where the operating system's does")]
pub trait VfsFile: Debug + Send + Sync {
    /// Returns the file's length in bytes.
    fn len(&self) -> io::Result<u64>;
    /// Returns when the file's contents last changed, as far as the file system tells.
    fn modified(&self) -> io::Result<SystemTime>;
    /// Reads at `offset` until `buf` is full or the file ends; returns how many bytes were read.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes all `parts` one after the other from `offset` on. Refused by files that are only
    /// read.
    fn write_all_at(&self, _parts: &[&[u8]], _offset: u64) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }
    /// Makes the contents (and a changed length) durable: `fdatasync`.
    fn sync_data(&self) -> io::Result<()>;
    /// Makes contents and metadata durable: `fsync`.
    fn sync_all(&self) -> io::Result<()>;
    /// Cuts or extends (with zeros) the file. Refused by files that are only read.
    fn set_len(&self, _len: u64) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}
