//! Reading what an engine keeps in an object store: the manifest from there, and the log, if it is here.
//!
//! From the data directory of the process that writes, rows come that are in no data file yet. From any
//! other folder, which then has no more than what this process needs for itself, a reader sees what was
//! flushed.

use std::path::Path;

use crate::{
    Error, Result,
    catalog::{Manifest, check_marker, has_log, read_store_marker},
    engine::claim::UNFINISHED,
    model::{META_DIR, WAL_DIR, WRITER},
    store::OpenStorage,
    vfs::Vfs,
};

/// Opens the manifest in a store. Returns with it whether the log beside it is in the folder `root`.
pub(super) fn follow(storage: &OpenStorage, local: &dyn Vfs, root: &Path) -> Result<(Manifest, bool)> {
    let location = storage.location([META_DIR, WRITER]);
    let path = location.path("");
    if location.list().map_err(|e| Error::io("list", &path, e))?.is_empty() {
        let reason = "there is no manifest below this prefix of the object store; a reader makes none".into();
        return Err(Error::NotADataDirectory { path, reason });
    }
    let manifest = Manifest::follow_at(location)?;
    if manifest.state().is_unfinished() {
        return Err(Error::OtherStore { path, reason: UNFINISHED.into() });
    }
    let here = read_store_marker(local, root)?;
    if here.is_some() && here == manifest.state().directory {
        check_marker(local, root)?;
        return Ok((manifest, true));
    }
    if here.is_some() || has_log(local, root)? {
        let reason =
            "it is the data directory of another store; to read this one, name its own or an empty folder".into();
        return Err(Error::OtherStore { path: root.into(), reason });
    }
    let log = root.join(WAL_DIR);
    local.create_dir_all(&log).map_err(|e| Error::io("create folder", log, e))?;
    Ok((manifest, false))
}
