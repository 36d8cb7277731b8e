//! The folder that a copy goes to: whose it is, and that nothing else uses it.

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{
    Error, Result, SequenceNumber,
    catalog::sync_parents,
    engine::{Lock, lock},
    maintenance::{
        record::{read_record, write_record},
        verify::files_below,
    },
    model::{BACKUP_MARKER, LOCK_FILE, TEMPORARY_SUFFIX, WAL_DIR},
    vfs::{DirEntry, Vfs},
    wal::{ACKNOWLEDGED_FILE, LogPart},
};

/// Contents of that file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BackupMarker {
    arc_backup: u32,
    /// Path of the data directory that it is a backup of.
    source: PathBuf,
    /// Files of the log that a backup has put there, or is about to. Others come from an engine
    /// that had it open.
    #[serde(default)]
    log: Vec<LogFile>,
    /// Last frame of the log in it, when it was whole the last time.
    #[serde(default)]
    logged: u64,
}

/// A file of the log in a backup: its name and size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct LogFile {
    name: String,
    bytes: u64,
}

impl LogFile {
    fn of(part: &LogPart) -> Self {
        Self { name: name_of(&part.path), bytes: part.bytes }
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// A folder that a backup is being written to, in exclusive use.
#[derive(Debug)]
pub(super) struct Target<'a> {
    vfs: &'a dyn Vfs,
    path: &'a Path,
    marker: BackupMarker,
    _lock: Lock,
}

impl<'a> Target<'a> {
    /// Makes `path` a folder that a backup of `source` may be written to, with these files of the
    /// log, and takes exclusive use of it.
    ///
    /// # Errors
    ///
    /// [`Error::BadTarget`] if it holds anything but an earlier backup of the same directory;
    /// [`Error::InUse`]; [`Error::Io`].
    pub(super) fn prepare(vfs: &'a dyn Vfs, source: &Path, path: &'a Path, log: &[LogPart]) -> Result<Self> {
        let source = absolute(source)?;
        check_apart(&source, &absolute(path)?)?;
        let known = check_contents(vfs, &source, path)?;
        vfs.create_dir_all(path).map_err(|e| Error::io("create folder", path, e))?;
        let lock = lock(vfs, path)?;
        if known.is_none() {
            sync_parents(vfs, path)?;
        }
        let before = known.unwrap_or(BackupMarker { arc_backup: 1, source, ..BackupMarker::default() });
        let mut marker = before.clone();
        marker.log.extend(log.iter().map(LogFile::of).filter(|file| !before.log.contains(file)));
        let target = Self { vfs, path, marker, _lock: lock };
        if target.marker != before || before.log.is_empty() {
            target.write_marker(&target.marker)?;
        }
        Ok(target)
    }

    /// Notes that the backup is whole, with these files of the log and no others, which end with
    /// frame `logged`. Others are removed.
    pub(super) fn finish(&self, log: &[LogPart], logged: SequenceNumber) -> Result<()> {
        let wal = self.path.join(WAL_DIR);
        let log: Vec<LogFile> = log.iter().map(LogFile::of).collect();
        let mut removed = false;
        for entry in self.vfs.list(&wal).map_err(|e| Error::io("list", &wal, e))? {
            let is_note = entry.name == ACKNOWLEDGED_FILE && !log.is_empty();
            if !is_note && !log.iter().any(|file| file.name == entry.name) {
                let path = wal.join(&entry.name);
                self.vfs.remove_file(&path).map_err(|e| Error::io("remove", path, e))?;
                removed = true;
            }
        }
        if removed {
            self.vfs.sync_dir(&wal).map_err(|e| Error::io("sync folder", &wal, e))?;
        }
        let marker = BackupMarker { log, logged: logged.0, ..self.marker.clone() };
        if marker == self.marker { Ok(()) } else { self.write_marker(&marker) }
    }

    fn write_marker(&self, marker: &BackupMarker) -> Result<()> {
        write_record(self.vfs, self.path, BACKUP_MARKER, marker)
    }
}

/// Returns the frame up to which a directory has to have everything, in data files or in its log,
/// because a backup says so.
///
/// # Errors
///
/// [`Error::Corrupt`] if the marker of a backup cannot be read; [`Error::Io`].
pub(crate) fn logged(vfs: &dyn Vfs, root: &Path) -> Result<SequenceNumber> {
    Ok(SequenceNumber(read_marker(vfs, root)?.map_or(0, |marker| marker.logged)))
}

fn read_marker(vfs: &dyn Vfs, root: &Path) -> Result<Option<BackupMarker>> {
    read_record(vfs, root, BACKUP_MARKER)
}

pub(in crate::maintenance) fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|e| Error::io("find", path, e))
}

/// A copy inside of what is copied, or around it, would copy itself.
pub(in crate::maintenance) fn check_apart(source: &Path, target: &Path) -> Result<()> {
    if target.starts_with(source) || source.starts_with(target) {
        let reason = format!("it and {} are one inside the other", source.display());
        return Err(Error::BadTarget { path: target.into(), reason });
    }
    Ok(())
}

/// Returns what an earlier backup says of itself, or refuses the folder if it is anything else but
/// empty.
fn check_contents(vfs: &dyn Vfs, source: &Path, target: &Path) -> Result<Option<BackupMarker>> {
    let bad = |reason: String| Err(Error::BadTarget { path: target.into(), reason });
    let Some(marker) = read_marker(vfs, target)? else {
        let temporary = target.join(format!("{BACKUP_MARKER}{TEMPORARY_SUFFIX}"));
        let is_ours = |path: &PathBuf| *path == target.join(LOCK_FILE) || *path == temporary;
        return match files_below(vfs, target)?.iter().find(|path| !is_ours(path)) {
            None => Ok(None),
            Some(file) => bad(format!("it is no backup and not empty: it has {}", file.display())),
        };
    };
    if marker.source != source {
        return bad(format!("it is a backup of {}", marker.source.display()));
    }
    let wal = target.join(WAL_DIR);
    let entries = match vfs.list(&wal) {
        Err(e) if e.kind() == ErrorKind::NotFound => Vec::new(),
        listed => listed.map_err(|e| Error::io("list", &wal, e))?,
    };
    // Segments in a backup have no room left: the caller that goes on in it needs a file of its
    // own.
    let is_known = |entry: &DirEntry| {
        entry.name.ends_with(TEMPORARY_SUFFIX)
            || entry.name == ACKNOWLEDGED_FILE
            || marker.log.iter().any(|file| (&file.name, file.bytes) == (&entry.name, entry.len))
    };
    if !entries.iter().all(is_known) {
        return bad("it was opened and written to since it was made".into());
    }
    Ok(Some(marker))
}
