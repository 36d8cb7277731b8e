//! The folder `lost/`: where what a repair, or an opening, takes out is kept, under its old path.

use std::{
    collections::BTreeSet,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use crate::{
    Error, Result,
    datafile::{copy_file, open_data_file, where_it_lies},
    model::{LOST_DIR, packed},
    vfs::Vfs,
};

/// Gives files a second name under `lost/`; durable after [`SetAside::sync`]. Their first name
/// stays for the time being.
pub(crate) struct SetAside<'a> {
    vfs: &'a dyn Vfs,
    root: &'a Path,
    folders: BTreeSet<PathBuf>,
}

impl<'a> SetAside<'a> {
    pub(crate) fn new(vfs: &'a dyn Vfs, root: &'a Path) -> Self {
        Self { vfs, root, folders: BTreeSet::new() }
    }

    /// Keeps one file below the data directory, or what lies in a pack; one that is missing needs
    /// no keeping.
    pub(crate) fn keep(&mut self, path: &Path) -> Result<()> {
        let relative = path.strip_prefix(self.root).unwrap_or(path);
        let packed = relative.to_str().and_then(packed);
        let kept = match &packed {
            // Below a folder named like a pack it would be taken for a place in that.
            Some((pack, range)) => PathBuf::from(format!("{pack}.{}-{}.parquet", range.start, range.end - range.start)),
            None => relative.to_owned(),
        };
        let to = self.free_name(&self.root.join(LOST_DIR).join(kept), path)?;
        let Some(to) = to else { return Ok(()) };
        let folder = to.parent().unwrap_or(self.root).to_owned();
        self.vfs.create_dir_all(&folder).map_err(|e| Error::io("create folder", &folder, e))?;
        self.folders.insert(folder);
        let link = || where_it_lies(path, |path| self.vfs.hard_link(path, &to));
        match if packed.is_some() { Err(ErrorKind::Unsupported.into()) } else { link() } {
            Ok(()) => Ok(()),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
            // A file system without links, or what lies in a pack.
            Err(_) => copy_file(self.vfs, path, &to, |_, _| Ok(())).map(drop),
        }
    }

    /// Returns a name that is free, or `None` if an earlier try that was cut off has kept the file
    /// already.
    fn free_name(&self, wanted: &Path, path: &Path) -> Result<Option<PathBuf>> {
        let mut name = wanted.to_owned();
        for number in 1.. {
            let kept = match self.vfs.open_read(&name) {
                Ok(file) => file,
                Err(_) => return Ok(Some(name)),
            };
            let Ok(found) = open_data_file(self.vfs, path) else { return Ok(None) };
            let same = kept.len().ok() == found.len().ok() && same_bytes(self.vfs, &name, path)?;
            if same {
                return Ok(None);
            }
            let mut next = wanted.as_os_str().to_owned();
            next.push(format!(".{number}"));
            name = next.into();
        }
        Ok(None)
    }

    /// Makes the second names durable.
    pub(crate) fn sync(self) -> Result<()> {
        let above = self.folders.iter().flat_map(|folder| folder.ancestors());
        for folder in above.filter(|folder| folder.starts_with(self.root)).collect::<BTreeSet<_>>() {
            self.vfs.sync_dir(folder).map_err(|e| Error::io("sync folder", folder, e))?;
        }
        Ok(())
    }
}

fn same_bytes(vfs: &dyn Vfs, a: &Path, b: &Path) -> Result<bool> {
    let checksum = |path| crate::datafile::read_pieces(vfs, path, u64::MAX, |_, _| Ok(()));
    Ok(checksum(a)? == checksum(b)?)
}
