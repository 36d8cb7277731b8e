//! The folder that files appear in: all files of a writer under their names, or none.
//!
//! A file is written under a temporary name of its own, and synced there. When the last one is,
//! each gets its name, which no other file may have, the temporary names go, and the folder is
//! synced. Whatever fails before that is over is undone.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{
    Error, Result,
    random::{RandomSource, SystemRandom},
    vfs::{Vfs, VfsFile},
};

/// Files on their way to their names.
#[derive(Debug)]
pub(super) struct Folder {
    vfs: Arc<dyn Vfs>,
    path: PathBuf,
    random: SystemRandom,
    /// Folders that were not there, the innermost first.
    made: Vec<PathBuf>,
    files: Vec<FileNames>,
}

#[derive(Debug)]
struct FileNames {
    /// `None` once it is gone.
    temporary: Option<PathBuf>,
    path: PathBuf,
    /// Whether the file has its name.
    published: bool,
}

impl Folder {
    /// Nothing is touched before the first file.
    pub(super) fn new(vfs: Arc<dyn Vfs>, path: &Path) -> Self {
        // The empty path is no folder that could be synced.
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let random = SystemRandom::default();
        Self { vfs, path: path.to_owned(), random, made: Vec::new(), files: Vec::new() }
    }

    /// Returns where a file of this name will be.
    pub(super) fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Creates a file under a temporary name, with the folder if need be.
    pub(super) fn create(&mut self, name: &str) -> Result<(PathBuf, Box<dyn VfsFile>)> {
        if self.files.is_empty() {
            self.create_folder()?;
        }
        let path = self.path_of(name);
        // Told early: the work of hours could not get its name otherwise.
        if self.vfs.open_read(&path).is_ok() {
            return Err(Error::io("create", path, io::ErrorKind::AlreadyExists.into()));
        }
        let temporary = self.path.join(format!("{name}.{:016x}.tmp", self.random.next()));
        let file = self.vfs.create_new(&temporary).map_err(|e| Error::io("create", &temporary, e))?;
        self.files.push(FileNames { temporary: Some(temporary.clone()), path, published: false });
        Ok((temporary, file))
    }

    fn create_folder(&mut self) -> Result<()> {
        let is_there = |folder: &Path| folder.as_os_str().is_empty() || self.vfs.list(folder).is_ok();
        self.made = self.path.ancestors().take_while(|folder| !is_there(folder)).map(Path::to_owned).collect();
        self.vfs.create_dir_all(&self.path).map_err(|e| Error::io("create folder", &self.path, e))
    }

    /// Gives all files their names, durably.
    pub(super) fn publish(&mut self) -> Result<()> {
        for names in &mut self.files {
            names.publish(self.vfs.as_ref())?;
        }
        for names in &mut self.files {
            if let Some(temporary) = &names.temporary {
                self.vfs.remove_file(temporary).map_err(|e| Error::io("remove", temporary, e))?;
            }
            names.temporary = None;
        }
        if self.files.is_empty() {
            return Ok(());
        }
        let sync = |folder: &Path| self.vfs.sync_dir(folder).map_err(|e| Error::io("sync folder", folder, e));
        sync(&self.path)?;
        self.made.iter().try_for_each(|folder| match folder.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => sync(parent),
            _ => sync(Path::new(".")),
        })
    }

    /// Removes all files and the folders made for them, as far as the file system lets us.
    pub(super) fn discard(&mut self) {
        for names in self.files.drain(..) {
            let published = names.published.then_some(names.path);
            for path in names.temporary.into_iter().chain(published) {
                let _ = self.vfs.remove_file(&path);
            }
        }
        for folder in self.made.drain(..) {
            // One that another thread has put a file into refuses.
            let _ = self.vfs.remove_dir(&folder);
        }
    }
}

impl FileNames {
    fn publish(&mut self, vfs: &dyn Vfs) -> Result<()> {
        let Some(temporary) = &self.temporary else { return Ok(()) };
        // A second name instead of a rename, which would replace a file that has come meanwhile.
        match vfs.hard_link(temporary, &self.path) {
            Ok(()) => {}
            // File systems without such names.
            Err(e) if matches!(e.kind(), io::ErrorKind::Unsupported | io::ErrorKind::PermissionDenied) => {
                if vfs.open_read(&self.path).is_ok() {
                    return Err(Error::io("rename", temporary, io::ErrorKind::AlreadyExists.into()));
                }
                vfs.rename(temporary, &self.path).map_err(|e| Error::io("rename", temporary, e))?;
                self.temporary = None;
            }
            Err(e) => return Err(Error::io("rename", temporary, e)),
        }
        self.published = true;
        Ok(())
    }
}
