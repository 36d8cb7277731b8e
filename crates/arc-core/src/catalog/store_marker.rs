//! The file `STORE`: says that a data directory has its data files and its manifest in an object
//! store, and who it is there.
//!
//! Owns that file (docs/format.md, "Data directory"). Never asks the store. Without the file, a
//! directory could be opened as if it had no points, or its log be replayed onto a manifest that
//! counts another one's frames.

#[cfg(feature = "object-store")]
mod write;

use std::{io::ErrorKind, path::Path};

use serde::{Deserialize, Serialize};
#[cfg(feature = "object-store")]
pub(crate) use write::{has_log, write_store_marker};

use crate::{Error, Result, vfs::Vfs};

/// The file.
const STORE_MARKER: &str = "STORE";

/// Newest version that is read, and the one that is written.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct StoreMarker {
    arc_store: u32,
    /// Name of the data directory in the store's manifest.
    directory: String,
}

/// Returns the name of the data directory in its object store; `None` if it has none.
///
/// # Errors
///
/// [`Error::Corrupt`], [`Error::NewerFormat`], [`Error::Io`].
pub(crate) fn read_store_marker(vfs: &dyn Vfs, root: &Path) -> Result<Option<String>> {
    let path = root.join(STORE_MARKER);
    let bytes = match vfs.read(&path) {
        Err(e) if [ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&e.kind()) => return Ok(None),
        read => read.map_err(|e| Error::io("read", &path, e))?,
    };
    match serde_json::from_slice(&bytes) {
        Ok(StoreMarker { arc_store: found, .. }) if found > VERSION => {
            Err(Error::NewerFormat { path: root.into(), found, supported: VERSION })
        }
        Ok(StoreMarker { directory, .. }) => Ok(Some(directory)),
        Err(e) => Err(Error::corrupt(path, 0, format!("it should say the name of the directory: {e}"))),
    }
}

/// Checks that a data directory has no object store.
///
/// # Errors
///
/// [`Error::OtherStore`] if it has one; those of [`read_store_marker`].
pub(crate) fn check_has_no_store(vfs: &dyn Vfs, root: &Path) -> Result<()> {
    if read_store_marker(vfs, root)?.is_none() {
        return Ok(());
    }
    let reason = "its data files and its manifest are in an object store, which has to be named".into();
    Err(Error::OtherStore { path: root.into(), reason })
}
