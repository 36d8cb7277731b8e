//! Names in a data directory (docs/format.md, "Data directory"), and paths of packs in it.

use std::{
    ops::Range,
    path::{Path, PathBuf},
};

use ulid::Ulid;

/// Folder of all data files, below the data directory.
pub(crate) const DATA_DIR: &str = "data";
/// Folder of data files that no table has any more, below the data directory.
pub(crate) const PAST_DIR: &str = "past";

/// Folder of what other directories send, until it is adopted.
pub(crate) const INBOX_DIR: &str = "inbox";

/// Folder of the manifests, one folder for each writer.
pub(crate) const META_DIR: &str = "meta";
/// The stream of manifest objects that this engine writes.
pub(crate) const WRITER: &str = "0";
/// Folder of the log's segments.
pub(crate) const WAL_DIR: &str = "wal";
/// File that a process locks while it has the data directory open.
pub(crate) const LOCK_FILE: &str = "LOCK";
/// File that says that a folder is a data directory, and in which format.
pub(crate) const MARKER: &str = "ARC";
/// File that says that a folder is a backup, and of what.
pub(crate) const BACKUP_MARKER: &str = "BACKUP";
/// File that says of which data directory another one is a branch.
pub(crate) const BRANCH_MARKER: &str = "BRANCH";
/// Folder of what a repair has set aside.
pub(crate) const LOST_DIR: &str = "lost";
/// Ending of a file that is not published yet.
pub(crate) const TEMPORARY_SUFFIX: &str = ".tmp";
/// Ending of a pack's name.
pub(crate) const PACK_SUFFIX: &str = ".pack";
/// Folder of all packs, below that of all data files. No database has a folder of such a name, and
/// readers that take what is below for a table pass it over.
const PACK_FOLDER: &str = "_packs";
/// Returns the path of a new pack below the data directory.
pub(crate) fn pack_path(id: Ulid) -> String {
    format!("{DATA_DIR}/{PACK_FOLDER}/{}{PACK_SUFFIX}", id.to_string())
}

/// Returns whether a file's name is that of a pack of ours.
pub(crate) fn is_pack(name: &str) -> bool {
    name.strip_suffix(PACK_SUFFIX).is_some_and(is_id)
}

/// Returns whether a file's name is that of a data file of ours that is a file of its own.
pub(crate) fn is_own_file(name: &str) -> bool {
    name.strip_suffix(".parquet").is_some_and(is_id)
}

fn is_id(id: &str) -> bool {
    // The library reads lower-case letters, too; we write none.
    Ulid::from_string(id).is_ok_and(|ulid| ulid.to_string() == id)
}

/// Returns where a data file lies that no table has any more, by the path that it had as one of a
/// table: `data/<database>/<table>/<day>/<name>`, from the data directory on or from elsewhere. `None`
/// for what never moves, such as a pack.
pub(crate) fn past_path(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str().filter(|name| is_own_file(name))?;
    let data = path.ancestors().nth(4).filter(|data| data.file_name().is_some_and(|name| name == DATA_DIR))?;
    Some(data.parent()?.join(PAST_DIR).join(name))
}

/// Returns the path of the pack in which a data file lies, and where; `None` for a data file that
/// is a file of its own.
pub(crate) fn packed(path: &str) -> Option<(&str, Range<u64>)> {
    let (pack, range) = path.rsplit_once('/')?;
    if !is_pack(pack.rsplit('/').next()?) {
        return None;
    }
    let (offset, bytes) = range.strip_suffix(".parquet")?.split_once('-')?;
    let (offset, bytes): (u64, u64) = (offset.parse().ok()?, bytes.parse().ok()?);
    Some((pack, offset..offset.checked_add(bytes)?))
}

/// Returns the path of the file in which a data file is: its own, or that of its pack.
pub(crate) fn stored_path(path: &str) -> &str {
    packed(path).map_or(path, |(pack, _)| pack)
}
