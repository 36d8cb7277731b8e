//! Copies of files, byte for byte, that have their name only once they are whole and durable.

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
};

use super::read_pieces;
use crate::{Error, Result, model::TEMPORARY_SUFFIX, vfs::Vfs};

/// Copies a file under a temporary name, syncs it and gives it its name if `check` lets its size
/// and crc32c pass.
pub(crate) fn copy_file(
    vfs: &dyn Vfs,
    from: &Path,
    to: &Path,
    check: impl FnOnce(u64, u32) -> Result<()>,
) -> Result<(u64, u32)> {
    let copied = copy_to_temporary(vfs, from, to, u64::MAX, check)?;
    let temporary = temporary_of(to);
    vfs.rename(&temporary, to).map_err(|e| Error::io("rename", &temporary, e)).inspect_err(|_| {
        // Best effort: it has no name that any thread believes.
        let _ = vfs.remove_file(&temporary);
    })?;
    Ok(copied)
}

/// Returns the name that the copy of a file has before it is whole.
pub(crate) fn temporary_of(to: &Path) -> PathBuf {
    let mut temporary = to.as_os_str().to_owned();
    temporary.push(TEMPORARY_SUFFIX);
    PathBuf::from(temporary)
}

/// Copies the first `most_bytes` of a file to the temporary name of `to` and syncs them, if `check`
/// lets their number and crc32c pass; else there is no such file afterwards.
pub(crate) fn copy_to_temporary(
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
