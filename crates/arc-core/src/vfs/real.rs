//! The operating system's files, on Linux and macOS.
//!
//! Never buffers across calls and never retries a failed sync: what a sync that failed left behind
//! is unknown.

use std::{
    any::Any,
    fs::{File, OpenOptions, TryLockError},
    io::{self, IoSlice},
    iter,
    os::unix::fs::FileExt,
    path::Path,
    time::SystemTime,
};

use super::{DirEntry, Vfs, VfsFile};

/// Most parts of one call. The kernel takes at least 16 (POSIX), 1,024 on Linux and macOS.
const MOST_PARTS: usize = 512;

/// [`Vfs`] over `std::fs`.
#[derive(Debug, Default, Clone, Copy)]
pub struct RealVfs;

#[expect(clippy::disallowed_methods, reason = "this is the file system that comes in")]
impl Vfs for RealVfs {
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        std::fs::create_dir_all(dir)
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn VfsFile>> {
        Ok(Box::new(OpenOptions::new().read(true).write(true).create_new(true).open(path)?))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn VfsFile>> {
        Ok(Box::new(OpenOptions::new().read(true).write(true).open(path)?))
    }

    fn open_read(&self, path: &Path) -> io::Result<Box<dyn VfsFile>> {
        Ok(Box::new(File::open(path)?))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        std::fs::read(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        // A hard link fails where the name exists, on every Unix; plain rename would replace it. A
        // crash between the two calls leaves both names on the same complete file: `to` is
        // published, `from` is swept with the temporary files.
        std::fs::hard_link(from, to)?;
        std::fs::remove_file(from)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::hard_link(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        std::fs::remove_dir(dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        let mut entries = Vec::new();
        for entry in std::fs::read_dir(dir)? {
            let entry = entry?;
            let metadata = match entry.metadata() {
                // Another thread or process has removed or renamed it since the folder was opened.
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                metadata => metadata?,
            };
            let name = entry.file_name().to_string_lossy().into_owned();
            let len = if metadata.is_dir() { 0 } else { metadata.len() };
            entries.push(DirEntry { name, is_dir: metadata.is_dir(), len, modified: metadata.modified()? });
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Any + Send + Sync>> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Box::new(Locked(file))),
            Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(e)) => Err(e),
        }
    }
}

/// A file that is locked until dropped.
struct Locked(File);

impl Drop for Locked {
    fn drop(&mut self) {
        // Closing is not enough: a child process that is just being started shares the open file,
        // and so the lock, until it runs its program.
        let _ = self.0.unlock();
    }
}

impl VfsFile for File {
    fn len(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn modified(&self) -> io::Result<SystemTime> {
        self.metadata()?.modified()
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        while let Some(rest) = buf.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match FileExt::read_at(self, rest, offset + done as u64) {
                Ok(0) => break,
                Ok(n) => done += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(done)
    }

    fn write_all_at(&self, mut parts: &[&[u8]], mut offset: u64) -> io::Result<()> {
        // Of the first part, what is written already.
        let mut done = 0;
        while let Some((first, rest)) = parts.split_first() {
            let unwritten = first.get(done..).unwrap_or_default();
            if unwritten.is_empty() {
                (parts, done) = (rest, 0);
                continue;
            }
            let slices = iter::once(unwritten).chain(rest.iter().copied()).map(IoSlice::new);
            let slices: Vec<IoSlice<'_>> = slices.take(MOST_PARTS).collect();
            let written = match rustix::io::pwritev(self, &slices, offset) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => written,
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            offset += written as u64;
            done += written;
            while let Some((first, rest)) = parts.split_first().filter(|(first, _)| first.len() <= done) {
                done -= first.len();
                parts = rest;
            }
        }
        Ok(())
    }

    // On macOS both of std's calls are `fcntl(F_FULLFSYNC)`, which empties the drive's cache as
    // well; plain `fsync` there does not.
    fn sync_data(&self) -> io::Result<()> {
        File::sync_data(self)
    }

    fn sync_all(&self) -> io::Result<()> {
        File::sync_all(self)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        File::set_len(self, len)
    }
}
