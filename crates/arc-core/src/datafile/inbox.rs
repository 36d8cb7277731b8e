//! Files on their way in: what another directory sends, until it is adopted.
//!
//! Owns the folder `inbox/` (docs/format.md, "Data directory"): `inbox/<origin>/<cut>/<name>`. What is
//! in it is in no manifest and means nothing to a query; it may go at any time, and is sent again
//! then. Never decides what is adopted, never believes a byte.

use std::{
    io::{self, ErrorKind},
    path::{Path, PathBuf},
};

use ulid::Ulid;

use super::DataFile;
use crate::{
    Error, Result,
    model::INBOX_DIR,
    vfs::{Vfs, VfsFile},
};

/// Most bytes of one file.
const MAX_FILE_BYTES: u64 = 16 << 30;
/// Most bytes of all files of one origin that wait to be adopted.
const MAX_ORIGIN_BYTES: u64 = 256 << 30;
/// Longest name of a file.
const MAX_NAME_BYTES: usize = 128;

/// A file on its way from one data directory to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upload {
    /// The name of the directory that it comes from.
    pub origin: String,
    /// The id of the cut that it belongs to.
    pub cut: String,
    /// Which of its files it is.
    pub name: String,
    /// Its size.
    pub bytes: u64,
}

impl Upload {
    /// Returns what a data file is called on its way: by what it is, so that another file is never
    /// taken for it.
    pub(crate) fn name_of(file: &DataFile) -> String {
        let stem = file.path.trim_end_matches(".parquet");
        let parts: Vec<&str> = stem.rsplit('/').take(2).collect();
        let place = match parts.as_slice() {
            [range, pack] if pack.ends_with(".pack") => format!("{}-{range}", pack.trim_end_matches(".pack")),
            [name, ..] => (*name).to_owned(),
            [] => String::new(),
        };
        let plain: String = place.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').take(80).collect();
        format!("{plain}-{}-{:08x}", file.bytes, file.crc32c)
    }

    fn check(&self) -> Result<()> {
        check_id("origin", &self.origin)?;
        check_id("cut", &self.cut)?;
        let is_plain = self.name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if !is_plain || self.name.is_empty() || self.name.len() > MAX_NAME_BYTES {
            return refused(format!("{:?} is no name of a file; expected letters, digits and -", self.name));
        }
        if self.bytes == 0 || self.bytes > MAX_FILE_BYTES {
            return refused(format!("a file has 1 to {MAX_FILE_BYTES} bytes, this one {}", self.bytes));
        }
        Ok(())
    }
}

/// Checks the name of a directory or a cut, which becomes that of a folder.
pub(crate) fn check_id(what: &str, id: &str) -> Result<()> {
    if Ulid::from_string(id).is_ok_and(|ulid| ulid.to_string() == id) {
        return Ok(());
    }
    refused(format!("{what} {:?} is not valid; expected a ULID", id.chars().take(64).collect::<String>()))
}

fn refused<T>(reason: String) -> Result<T> {
    Err(Error::InvalidPayload { format: "pushed", reason })
}

/// The folder of a data directory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Inbox<'a> {
    pub(crate) vfs: &'a dyn Vfs,
    pub(crate) root: &'a Path,
}

impl Inbox<'_> {
    /// Returns where a file lies.
    pub(crate) fn path(&self, upload: &Upload) -> PathBuf {
        self.folder(&upload.origin).join(&upload.cut).join(&upload.name)
    }

    fn folder(&self, origin: &str) -> PathBuf {
        self.root.join(INBOX_DIR).join(origin)
    }

    /// Returns how many bytes of a file are there.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidPayload`] for a bad name; [`Error::Io`].
    pub(crate) fn received(&self, upload: &Upload) -> Result<u64> {
        upload.check()?;
        let path = self.path(upload);
        match self.vfs.open_read(&path).and_then(|file| file.len()) {
            Ok(len) => Ok(len),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(0),
            Err(e) => Err(Error::io("read", path, e)),
        }
    }

    /// Takes bytes of a file, the first of which has its place at `offset`; returns how many are
    /// there now. Those that do not follow what is there are not taken. Nothing is synced.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidPayload`] for a bad name, or more bytes than the file has; [`Error::Io`].
    pub(crate) fn receive(&self, upload: &Upload, offset: u64, bytes: &[u8]) -> Result<u64> {
        upload.check()?;
        let end = offset.checked_add(bytes.len() as u64).filter(|end| *end <= upload.bytes);
        let Some(end) = end else { return refused(format!("the file has {} bytes, and more came", upload.bytes)) };
        let path = self.path(upload);
        let failed = |e| Error::io("write", &path, e);
        let file = self.open(upload, &path)?;
        let there = file.len().map_err(failed)?;
        if there != offset {
            return Ok(there);
        }
        file.write_all_at(&[bytes], offset).map_err(failed)?;
        Ok(end)
    }

    fn open(&self, upload: &Upload, path: &Path) -> Result<Box<dyn VfsFile>> {
        match self.vfs.open(path) {
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            opened => return opened.map_err(|e| Error::io("open", path, e)),
        }
        if self.origin_bytes(&upload.origin)?.saturating_add(upload.bytes) > MAX_ORIGIN_BYTES {
            return refused(format!("more than {MAX_ORIGIN_BYTES} bytes of this origin wait to be adopted"));
        }
        let folder = self.folder(&upload.origin).join(&upload.cut);
        self.vfs.create_dir_all(&folder).map_err(|e| Error::io("create folder", &folder, e))?;
        match self.vfs.create_new(path) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists => self.vfs.open(path),
            created => created,
        }
        .map_err(|e| Error::io("create", path, e))
    }

    fn origin_bytes(&self, origin: &str) -> Result<u64> {
        let folder = self.folder(origin);
        let mut bytes = 0;
        for cut in self.list(&folder)? {
            bytes += self.list(&folder.join(cut.name))?.iter().map(|file| file.len).sum::<u64>();
        }
        Ok(bytes)
    }

    fn list(&self, folder: &Path) -> Result<Vec<crate::vfs::DirEntry>> {
        match self.vfs.list(folder) {
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            listed => listed.map_err(|e| Error::io("list", folder, e)),
        }
    }

    /// Removes a file that is not what it should be.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub(crate) fn discard(&self, upload: &Upload) -> Result<()> {
        let path = self.path(upload);
        match self.vfs.remove_file(&path) {
            Err(e) if e.kind() != ErrorKind::NotFound => Err(Error::io("remove", path, e)),
            _ => Ok(()),
        }
    }

    /// Removes what is there of one origin, best effort: it goes with the next cut else.
    pub(crate) fn clear(&self, origin: &str) {
        if let Err(error) = self.remove_all(origin) {
            tracing::debug!(origin, %error, "cannot clear what was received of an origin");
        }
    }

    fn remove_all(&self, origin: &str) -> io::Result<()> {
        let folder = self.folder(origin);
        for cut in self.list(&folder).unwrap_or_default() {
            let cut = folder.join(cut.name);
            for file in self.vfs.list(&cut)? {
                self.vfs.remove_file(&cut.join(file.name))?;
            }
            self.vfs.remove_dir(&cut)?;
        }
        match self.vfs.remove_dir(&folder) {
            Err(e) if e.kind() != ErrorKind::NotFound => Err(e),
            _ => Ok(()),
        }
    }

    /// Returns the origins of which anything is there, and when something of each came last, in
    /// nanoseconds since the epoch.
    pub(crate) fn origins(&self) -> Result<Vec<(String, i64)>> {
        let mut origins = Vec::new();
        for origin in self.list(&self.root.join(INBOX_DIR))? {
            if check_id("origin", &origin.name).is_err() {
                continue;
            }
            let folder = self.folder(&origin.name);
            let mut last = 0;
            for cut in self.list(&folder)? {
                let files = self.list(&folder.join(cut.name))?;
                let came = files.iter().filter_map(|file| file.modified.duration_since(std::time::UNIX_EPOCH).ok());
                let came = came.filter_map(|came| i64::try_from(came.as_nanos()).ok()).max();
                last = last.max(came.unwrap_or(0));
            }
            origins.push((origin.name, last));
        }
        Ok(origins)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vfs::CrashFs;

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        let fs = CrashFs::new();
        let inbox = Inbox { vfs: &fs, root: Path::new("/data") };
        let id = Ulid::from_parts(1, u128::from(u64::MAX)).to_string();
        let upload = |origin: &str, name: &str, bytes| Upload {
            origin: origin.into(),
            cut: id.clone(),
            name: name.into(),
            bytes,
        };
        for bad in [
            upload("..", "a", 1),
            upload(&id.to_lowercase(), "a", 1),
            upload(&id, "../a", 1),
            upload(&id, "", 1),
            upload(&id, &"a".repeat(200), 1),
            upload(&id, "a.b", 1),
            upload(&id, "a", 0),
            upload(&id, "a", u64::MAX),
        ] {
            assert!(inbox.receive(&bad, 0, b"x").is_err(), "{bad:?}");
            assert!(inbox.received(&bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn bytes_are_taken_in_their_order_and_no_more_than_there_are() {
        let fs = CrashFs::new();
        let inbox = Inbox { vfs: &fs, root: Path::new("/data") };
        let id = Ulid::from_parts(1, 1).to_string();
        let upload = Upload { origin: id.clone(), cut: id.clone(), name: "a".into(), bytes: 5 };
        assert_eq!(inbox.receive(&upload, 0, b"abc").unwrap(), 3);
        // Sent twice, or too early: what is there is answered.
        assert_eq!(inbox.receive(&upload, 0, b"xyz").unwrap(), 3);
        assert_eq!(inbox.receive(&upload, 4, b"e").unwrap(), 3);
        assert!(inbox.receive(&upload, 3, b"def").is_err());
        assert!(inbox.receive(&upload, u64::MAX, b"d").is_err());
        assert_eq!(inbox.receive(&upload, 3, b"de").unwrap(), 5);
        assert_eq!(fs.read(&inbox.path(&upload)).unwrap(), b"abcde");
        assert_eq!(inbox.origins().unwrap().len(), 1);
        inbox.clear(&id);
        assert!(inbox.origins().unwrap().is_empty());
    }
}
