//! Naming a data directory: only one that has nothing yet.

use std::{io::ErrorKind, path::Path};

use super::{STORE_MARKER, StoreMarker, VERSION};
use crate::{
    Error, Result,
    model::{META_DIR, TEMPORARY_SUFFIX, WAL_DIR},
    vfs::Vfs,
};

/// Names a data directory that has no name and nothing that would have to be in the store; durable
/// then.
///
/// # Errors
///
/// [`Error::OtherStore`] if it has a log or a manifest of its own; [`Error::Io`].
pub(crate) fn write_store_marker(vfs: &dyn Vfs, root: &Path, directory: &str) -> Result<()> {
    if let Some(what) = local_state(vfs, root)? {
        let reason = format!("it has a {what} of its own, so that its points cannot be in an object store");
        return Err(Error::OtherStore { path: root.into(), reason });
    }
    let (path, temporary) = (root.join(STORE_MARKER), root.join(format!("{STORE_MARKER}{TEMPORARY_SUFFIX}")));
    match vfs.remove_file(&temporary) {
        Err(e) if e.kind() != ErrorKind::NotFound => return Err(Error::io("remove", temporary, e)),
        _ => {}
    }
    let marker = serde_json::to_vec(&StoreMarker { arc_store: VERSION, directory: directory.to_owned() })
        .map_err(|e| Error::internal(format!("cannot encode a marker: {e}")))?;
    let file = vfs.create_new(&temporary).map_err(|e| Error::io("create", &temporary, e))?;
    file.write_all_at(&[&marker, b"\n"], 0).map_err(|e| Error::io("write", &temporary, e))?;
    file.sync_all().map_err(|e| Error::io("sync", &temporary, e))?;
    vfs.rename(&temporary, &path).map_err(|e| Error::io("rename", &temporary, e))?;
    vfs.sync_dir(root).map_err(|e| Error::io("sync folder", root, e))
}

/// Returns whether there is a log in a data directory.
///
/// # Errors
///
/// [`Error::Io`].
pub(crate) fn has_log(vfs: &dyn Vfs, root: &Path) -> Result<bool> {
    has_entries(vfs, &root.join(WAL_DIR))
}

/// Returns what a data directory without an object store has by which it is one that was used.
fn local_state(vfs: &dyn Vfs, root: &Path) -> Result<Option<&'static str>> {
    if has_log(vfs, root)? {
        return Ok(Some("log"));
    }
    let meta = root.join(META_DIR);
    Ok(has_entries(vfs, &meta)?.then_some("manifest"))
}

fn has_entries(vfs: &dyn Vfs, dir: &Path) -> Result<bool> {
    match vfs.list(dir) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
        listed => listed.map(|entries| !entries.is_empty()).map_err(|e| Error::io("list", dir, e)),
    }
}
