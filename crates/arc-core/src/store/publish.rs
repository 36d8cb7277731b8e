//! Putting a file under its name: whole and durable, or not at all.
//!
//! Owns temporary files and their names. The bytes are written and synced under a name of their
//! own, which is then renamed, and the folder synced. Never creates folders.

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use super::PutError;
use crate::{
    Error, Result,
    model::TEMPORARY_SUFFIX,
    vfs::{Vfs, VfsFile},
};

/// What becomes of an object that has the name already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Existing {
    /// It stays, and nothing is put.
    Keep,
    /// It is replaced.
    #[cfg(feature = "object-store")]
    Replace,
}

/// Hands out temporary names that this process has not used before: one that could not be removed
/// must not stand in the way.
#[derive(Debug, Default)]
pub(super) struct TemporaryNames(AtomicU64);

impl TemporaryNames {
    pub(super) fn next(&self, path: &Path) -> PathBuf {
        let attempt = self.0.fetch_add(1, Ordering::Relaxed) + 1;
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{attempt}{TEMPORARY_SUFFIX}"));
        name.into()
    }
}

/// Returns the name of the object that a temporary file was to become, if it is one.
pub(crate) fn object_of_temporary(name: &str) -> Option<&str> {
    let (object, attempt) = name.strip_suffix(TEMPORARY_SUFFIX)?.rsplit_once('.')?;
    let is_number = !attempt.is_empty() && attempt.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && !object.is_empty()).then_some(object)
}

/// Writes `parts` one after the other to a new file, and syncs it. Leaves nothing after where it
/// fails.
pub(super) fn stage(vfs: &dyn Vfs, temporary: &Path, parts: &[&[u8]]) -> Result<()> {
    let file = vfs.create_new(temporary).map_err(|e| Error::io("create", temporary, e))?;
    let written = file.write_all_at(parts, 0).map_err(|e| Error::io("write", temporary, e));
    let staged = written.and_then(|()| sync(file.as_ref(), temporary));
    if staged.is_err() {
        discard(vfs, temporary);
    }
    staged
}

pub(super) fn sync(file: &dyn VfsFile, path: &Path) -> Result<()> {
    file.sync_all().map_err(|e| Error::io("sync", path, e))
}

/// Removes a temporary file. Best effort: what stays is no object, and removed by the next that
/// opens the location.
pub(super) fn discard(vfs: &dyn Vfs, temporary: &Path) {
    let _ = vfs.remove_file(temporary);
}

/// Gives a file that is synced its name, and makes the name durable. The temporary name is gone
/// afterwards.
///
/// `is_ours` says whether what has the name is the same object: a rename may be done and still
/// fail.
pub(super) fn publish(
    vfs: &dyn Vfs,
    [temporary, path]: [&Path; 2],
    existing: Existing,
    is_ours: impl FnOnce(&[u8]) -> bool,
) -> Result<(), PutError> {
    let renamed = match existing {
        Existing::Keep => vfs.rename_new(temporary, path),
        #[cfg(feature = "object-store")]
        Existing::Replace => vfs.rename(temporary, path),
    };
    if let Err(source) = renamed {
        let taken = existing == Existing::Keep && source.kind() == ErrorKind::AlreadyExists;
        let error = Error::io("rename", temporary, source);
        let found = vfs.read(path);
        discard(vfs, temporary);
        match found {
            Ok(found) if is_ours(&found) => {}
            Ok(_) if taken => return Err(PutError::Taken),
            Err(e) if e.kind() == ErrorKind::NotFound => return Err(PutError::NotThere(error)),
            _ => return Err(PutError::Unknown(error)),
        }
    }
    let dir = path.parent().unwrap_or(path);
    vfs.sync_dir(dir).map_err(|e| PutError::Unknown(Error::io("sync folder", dir, e)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_names_are_told_from_others() {
        let cases = [
            ("x.1.tmp", Some("x")),
            ("00000000000000000001.snapshot.12.tmp", Some("00000000000000000001.snapshot")),
            ("x.tmp", None),
            ("x..tmp", None),
            ("x.+1.tmp", None),
            (".1.tmp", None),
            ("x.1.tmp.", None),
            ("x.1", None),
            ("", None),
        ];
        for (name, object) in cases {
            assert_eq!(object_of_temporary(name), object, "{name}");
        }
        let names = TemporaryNames::default();
        let [first, second] = [(); 2].map(|()| names.next(Path::new("a/b")));
        assert_eq!((first.to_str(), second.to_str()), (Some("a/b.1.tmp"), Some("a/b.2.tmp")));
    }
}
