//! The operating system's files, on Linux and macOS.
//!
//! Never buffers across calls and never retries a failed sync: what a sync that failed left behind is unknown.

use std::{
    any::Any,
    fs::{File, OpenOptions, TryLockError},
    io,
    os::unix::fs::FileExt,
    path::Path,
    time::SystemTime,
};

use super::{DirEntry, Vfs, VfsFile};

/// Parts of at least this many bytes are handed to the kernel as they are; smaller neighbours are copied together first,
/// because a system call costs more than copying them.
const DIRECT_BYTES: usize = 64 << 10;

/// [`Vfs`] over `std::fs`.
#[derive(Debug, Default, Clone, Copy)]
pub struct RealVfs;

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
        // A hard link fails where the name exists, on every Unix; plain rename would replace it. A crash between the two
        // calls leaves both names on the same complete file: `to` is published, `from` is swept with the temporary files.
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
            let metadata = entry.metadata()?;
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
        // Closing is not enough: a child process that is just being started shares the open file, and so the lock, until
        // it runs its program.
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

    fn write_all_at(&self, parts: &[&[u8]], mut offset: u64) -> io::Result<()> {
        if let [part] = parts {
            return FileExt::write_all_at(self, part, offset);
        }
        // `pwritev` is not in stable std; gathering keeps a group of small frames one system call all the same.
        let small = parts.iter().map(|part| part.len()).filter(|len| *len < DIRECT_BYTES);
        let mut gathered = Vec::with_capacity(small.sum());
        for part in parts {
            if part.len() < DIRECT_BYTES {
                gathered.extend_from_slice(part);
                continue;
            }
            FileExt::write_all_at(self, &gathered, offset)?;
            offset += gathered.len() as u64;
            gathered.clear();
            FileExt::write_all_at(self, part, offset)?;
            offset += part.len() as u64;
        }
        FileExt::write_all_at(self, &gathered, offset)
    }

    // On macOS both of std's calls are `fcntl(F_FULLFSYNC)`, which empties the drive's cache as well; plain `fsync` there
    // does not.
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
