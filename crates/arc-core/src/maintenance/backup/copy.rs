//! Copying data files: by hard link where the file system has them, else byte by byte with their
//! checksum.

use std::{
    collections::BTreeSet,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
};

use hashbrown::HashMap;

use super::BackupReport;
use crate::{
    Error, Result,
    catalog::ManifestState,
    datafile::{compare_bytes, copy_file, open_data_file, temporary_of, where_it_lies},
    model::DataFile,
    vfs::{Vfs, VfsFile},
};

/// Brings data files from one directory to another, a pack with all that is in it; durable after
/// [`Copier::sync_folders`].
pub(in crate::maintenance) struct Copier<'a> {
    vfs: &'a dyn Vfs,
    from: &'a Path,
    to: &'a Path,
    /// Folders with new names in them.
    folders: BTreeSet<PathBuf>,
    /// The data files of each pack, and how it came once it has.
    packs: HashMap<&'a str, (Vec<&'a DataFile>, Option<Brought>)>,
}

/// How a file came to be where it is to be.
#[derive(Debug, Clone, Copy)]
enum Brought {
    Kept,
    Linked,
    Copied,
}

impl<'a> Copier<'a> {
    /// Returns one for the data files of `state`.
    pub(in crate::maintenance) fn new(
        vfs: &'a dyn Vfs,
        from: &'a Path,
        to: &'a Path,
        state: &'a ManifestState,
    ) -> Self {
        let mut packs: HashMap<&str, (Vec<&DataFile>, Option<Brought>)> = HashMap::new();
        for file in state.files() {
            if let Some((pack, _)) = file.packed() {
                packs.entry(pack).or_default().0.push(file);
            }
        }
        Self { vfs, from, to, folders: BTreeSet::new(), packs }
    }

    /// Brings one file unless it is there, in whatever way is cheapest.
    pub(in crate::maintenance) fn take(&mut self, file: &DataFile, report: &mut BackupReport) -> Result<()> {
        match self.bring(file, true)? {
            Brought::Kept => report.kept_files += 1,
            Brought::Linked => report.linked_files += 1,
            Brought::Copied => {
                report.copied_files += 1;
                report.copied_bytes += file.bytes;
            }
        }
        Ok(())
    }

    /// Copies one file, which is not there yet, and compares it with its checksum on the way.
    pub(super) fn copy(&mut self, file: &DataFile) -> Result<()> {
        self.bring(file, false).map(drop)
    }

    /// Brings a file, or its pack with the first of its data files.
    fn bring(&mut self, file: &DataFile, may_share: bool) -> Result<Brought> {
        if let Some(brought) = self.packs.get(file.stored_path()).and_then(|(_, brought)| *brought) {
            return Ok(brought);
        }
        let (from, to) = (self.from.join(file.stored_path()), self.to.join(file.stored_path()));
        self.make_folder(&to)?;
        let brought = if may_share { self.share(file, &from, &to)? } else { None };
        let brought = match brought {
            Some(brought) => brought,
            None => {
                self.copy_checked(file, &from, &to)?;
                Brought::Copied
            }
        };
        if let Some((_, known)) = self.packs.get_mut(file.stored_path()) {
            *known = Some(brought);
        }
        Ok(brought)
    }

    /// Finds the file there already, or gives it a second name; `None` if it has to be copied.
    fn share(&self, file: &DataFile, from: &Path, to: &Path) -> Result<Option<Brought>> {
        let there = size(open_data_file(self.vfs, from), from)?;
        // What a pack is to have only the manifest of its day could tell: its data files are looked
        // at one by one.
        let expected = if file.packed().is_some() { there } else { Some(file.bytes) };
        match size(self.vfs.open_read(to), to)? {
            // Files never change, and have their names only once they are whole.
            found @ Some(_) if found == expected => return Ok(Some(Brought::Kept)),
            Some(_) => self.vfs.remove_file(to).map_err(|e| Error::io("remove", to, e))?,
            None => {}
        }
        match there {
            None => return Err(Error::corrupt(from, 0, "it is missing")),
            Some(bytes) if there != expected => compare_bytes(from, file, bytes, file.crc32c)?,
            Some(_) => {}
        }
        // Another disk, a file system without links, a limit on links: whatever it is, a copy may
        // do.
        let linked = where_it_lies(from, |from| self.vfs.hard_link(from, to));
        Ok(linked.is_ok().then_some(Brought::Linked))
    }

    fn copy_checked(&self, file: &DataFile, from: &Path, to: &Path) -> Result<()> {
        let packed = self.packs.get(file.stored_path()).map(|(files, _)| files);
        copy_file(self.vfs, from, to, |bytes, crc32c| match packed {
            None => compare_bytes(from, file, bytes, crc32c),
            // Before the copy has its name: nothing looks at it again.
            Some(files) => files.iter().try_for_each(|file| self.check_packed(file, &temporary_of(to))),
        })?;
        Ok(())
    }

    /// Compares a data file in the copy of its pack with its checksum.
    fn check_packed(&self, file: &DataFile, copy: &Path) -> Result<()> {
        let Some((_, range)) = file.packed() else { return Ok(()) };
        let failed = |e| Error::io("read", copy, e);
        let opened = self.vfs.open_range(copy, range).map_err(failed)?;
        let mut bytes = vec![0; usize::try_from(opened.len().map_err(failed)?).unwrap_or(0)];
        let read = opened.read_at(&mut bytes, 0).map_err(failed)?;
        compare_bytes(&self.from.join(&file.path), file, read as u64, crc32c::crc32c(&bytes))
    }

    fn make_folder(&mut self, file: &Path) -> Result<()> {
        let folder = file.parent().unwrap_or(self.to);
        if self.folders.insert(folder.to_owned()) {
            self.vfs.create_dir_all(folder).map_err(|e| Error::io("create folder", folder, e))?;
        }
        Ok(())
    }

    /// Makes the names of all files durable, and those of their folders.
    pub(in crate::maintenance) fn sync_folders(self) -> Result<()> {
        let above = self.folders.iter().flat_map(|folder| folder.ancestors());
        let below_target = above.filter(|folder| folder.starts_with(self.to));
        for folder in below_target.collect::<BTreeSet<_>>() {
            self.vfs.sync_dir(folder).map_err(|e| Error::io("sync folder", folder, e))?;
        }
        Ok(())
    }
}

/// Returns how long a file is, if it is there.
fn size(opened: io::Result<Box<dyn VfsFile>>, path: &Path) -> Result<Option<u64>> {
    match opened {
        Ok(file) => file.len().map(Some).map_err(|e| Error::io("read", path, e)),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::io("open", path, e)),
    }
}
