//! Copying data files: by hard link where the file system has them, else byte by byte with their checksum.

use std::{
    collections::BTreeSet,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use super::BackupReport;
use crate::{
    Error, Result,
    datafile::{DataFile, TEMPORARY_SUFFIX, compare_bytes, read_pieces},
    vfs::Vfs,
};

/// Brings data files from one directory to another; durable after [`Copier::sync_folders`].
pub(super) struct Copier<'a> {
    vfs: &'a dyn Vfs,
    from: &'a Path,
    to: &'a Path,
    /// Folders with new names in them.
    folders: BTreeSet<PathBuf>,
}

impl<'a> Copier<'a> {
    pub(super) fn new(vfs: &'a dyn Vfs, from: &'a Path, to: &'a Path) -> Self {
        Self { vfs, from, to, folders: BTreeSet::new() }
    }

    /// Brings one file unless it is there, in whatever way is cheapest.
    pub(super) fn take(&mut self, file: &DataFile, report: &mut BackupReport) -> Result<()> {
        let (from, to) = (self.from.join(&file.path), self.to.join(&file.path));
        self.make_folder(&to)?;
        match self.size(&to)? {
            // Files never change, and have their names only once they are whole.
            Some(bytes) if bytes == file.bytes => {
                report.kept_files += 1;
                return Ok(());
            }
            Some(_) => self.vfs.remove_file(&to).map_err(|e| Error::io("remove", &to, e))?,
            None => {}
        }
        match self.size(&from)? {
            None => return Err(Error::corrupt(from, 0, "it is missing")),
            Some(bytes) if bytes != file.bytes => return compare_bytes(&from, file, bytes, file.crc32c),
            Some(_) => {}
        }
        // Another disk, a file system without links, a limit on links: whatever it is, a copy may do.
        if self.vfs.hard_link(&from, &to).is_ok() {
            report.linked_files += 1;
            return Ok(());
        }
        self.copy(file)?;
        report.copied_files += 1;
        report.copied_bytes += file.bytes;
        Ok(())
    }

    /// Copies one file, which is not there yet, and compares it with its checksum on the way.
    pub(super) fn copy(&mut self, file: &DataFile) -> Result<()> {
        let (from, to) = (self.from.join(&file.path), self.to.join(&file.path));
        self.make_folder(&to)?;
        let (bytes, crc32c) =
            copy_file(self.vfs, &from, &to, |bytes, crc32c| compare_bytes(&from, file, bytes, crc32c))?;
        compare_bytes(&from, file, bytes, crc32c)
    }

    fn make_folder(&mut self, file: &Path) -> Result<()> {
        let folder = file.parent().unwrap_or(self.to);
        if self.folders.insert(folder.to_owned()) {
            self.vfs.create_dir_all(folder).map_err(|e| Error::io("create folder", folder, e))?;
        }
        Ok(())
    }

    fn size(&self, path: &Path) -> Result<Option<u64>> {
        match self.vfs.open_read(path) {
            Ok(file) => file.len().map(Some).map_err(|e| Error::io("read", path, e)),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(Error::io("open", path, e)),
        }
    }

    /// Makes the names of all files durable, and those of their folders.
    pub(super) fn sync_folders(self) -> Result<()> {
        let above = self.folders.iter().flat_map(|folder| folder.ancestors());
        let below_target = above.filter(|folder| folder.starts_with(self.to));
        for folder in below_target.collect::<BTreeSet<_>>() {
            self.vfs.sync_dir(folder).map_err(|e| Error::io("sync folder", folder, e))?;
        }
        Ok(())
    }
}

/// Copies a file under a temporary name, syncs it and gives it its name if `check` lets its size and crc32c pass.
pub(crate) fn copy_file(
    vfs: &dyn Vfs,
    from: &Path,
    to: &Path,
    check: impl FnOnce(u64, u32) -> Result<()>,
) -> Result<(u64, u32)> {
    let copied = copy_to_temporary(vfs, from, to, u64::MAX, check)?;
    let temporary = temporary_of(to);
    vfs.rename(&temporary, to).map_err(|e| Error::io("rename", &temporary, e)).inspect_err(|_| {
        // Best effort: it has no name that anybody believes.
        let _ = vfs.remove_file(&temporary);
    })?;
    Ok(copied)
}

/// Returns the name that the copy of a file has before it is whole.
pub(super) fn temporary_of(to: &Path) -> PathBuf {
    let mut temporary = to.as_os_str().to_owned();
    temporary.push(TEMPORARY_SUFFIX);
    PathBuf::from(temporary)
}

/// Copies the first `most_bytes` of a file to the temporary name of `to` and syncs them, if `check` lets their number and
/// crc32c pass; else there is no such file afterwards.
pub(super) fn copy_to_temporary(
    vfs: &dyn Vfs,
    from: &Path,
    to: &Path,
    most_bytes: u64,
    check: impl FnOnce(u64, u32) -> Result<()>,
) -> Result<(u64, u32)> {
    let temporary = temporary_of(to);
    match vfs.remove_file(&temporary) {
        Err(e) if e.kind() != ErrorKind::NotFound => return Err(Error::io("remove", temporary, e)),
        _ => {}
    }
    let file = vfs.create_new(&temporary).map_err(|e| Error::io("create", &temporary, e))?;
    let copy = || {
        let (bytes, crc32c) = read_pieces(vfs, from, most_bytes, |piece, offset| {
            file.write_all_at(&[piece], offset).map_err(|e| Error::io("write", &temporary, e))
        })?;
        check(bytes, crc32c)?;
        file.sync_all().map_err(|e| Error::io("sync", &temporary, e))?;
        Ok((bytes, crc32c))
    };
    copy().inspect_err(|_| {
        let _ = vfs.remove_file(&temporary);
    })
}
