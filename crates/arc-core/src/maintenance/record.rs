//! A small file of a copy that says where it comes from: JSON on a line, replaced as a whole. Never
//! looks at what it says.

use std::{io::ErrorKind, path::Path};

use serde::{Serialize, de::DeserializeOwned};

use crate::{Error, Result, model::TEMPORARY_SUFFIX, vfs::Vfs};

/// Reads the file of that name in `folder`, if there is one.
///
/// # Errors
///
/// [`Error::Corrupt`] if it cannot be understood; [`Error::Io`].
pub(super) fn read_record<T: DeserializeOwned>(vfs: &dyn Vfs, folder: &Path, name: &str) -> Result<Option<T>> {
    let path = folder.join(name);
    match vfs.read(&path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|e| Error::corrupt(&path, 0, e.to_string())),
        Err(e) if [ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&e.kind()) => Ok(None),
        Err(e) => Err(Error::io("read", path, e)),
    }
}

/// Writes the file of that name in `folder`, durably.
///
/// # Errors
///
/// [`Error::BadTarget`] if `record` names what cannot be written, [`Error::Io`].
pub(super) fn write_record<T: Serialize>(vfs: &dyn Vfs, folder: &Path, name: &str, record: &T) -> Result<()> {
    let path = folder.join(name);
    let temporary = folder.join(format!("{name}{TEMPORARY_SUFFIX}"));
    match vfs.remove_file(&temporary) {
        Err(e) if e.kind() != ErrorKind::NotFound => return Err(Error::io("remove", temporary, e)),
        _ => {}
    }
    let mut bytes = serde_json::to_vec(record)
        .map_err(|e| Error::BadTarget { path: folder.into(), reason: format!("cannot name its source: {e}") })?;
    bytes.push(b'\n');
    let file = vfs.create_new(&temporary).map_err(|e| Error::io("create", &temporary, e))?;
    file.write_all_at(&[&bytes], 0).map_err(|e| Error::io("write", &temporary, e))?;
    file.sync_all().map_err(|e| Error::io("sync", &temporary, e))?;
    vfs.rename(&temporary, &path).map_err(|e| Error::io("rename", &temporary, e))?;
    vfs.sync_dir(folder).map_err(|e| Error::io("sync folder", folder, e))
}
