//! The folder of a branch: that nothing else is in it, and what says where it comes from.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::{Deserialize, Serialize};

use crate::{
    Error, Result,
    catalog::sync_parents,
    engine::{Lock, Origin, lock},
    maintenance::{
        backup::{absolute, check_apart},
        record::{read_record, write_record},
        verify::files_below,
    },
    model::{BRANCH_MARKER, DATA_DIR, LOCK_FILE, MARKER, META_DIR, TEMPORARY_SUFFIX, WAL_DIR},
    vfs::Vfs,
};

/// Contents of the file that says where a branch comes from (docs/format.md, "Branches").
#[derive(Debug, Clone, Serialize, Deserialize)]
struct BranchRecord {
    arc_branch: u32,
    /// Path of the data directory that it began as.
    source: PathBuf,
    /// The commit of that one's manifest; none before it is whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    number: Option<u64>,
    /// The time whose state it began as, if it was asked for by that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    time_ns: Option<i64>,
}

/// A folder that a branch is made in, in exclusive use.
#[derive(Debug)]
pub(super) struct BranchFolder<'a> {
    pub(super) vfs: &'a Arc<dyn Vfs>,
    pub(super) path: &'a Path,
    record: BranchRecord,
    _lock: Lock,
}

impl<'a> BranchFolder<'a> {
    /// Takes exclusive use of `path`, which is absent or empty, or has what is left of a branch that
    /// was never finished: that is removed.
    ///
    /// # Errors
    ///
    /// [`Error::BadTarget`] if it holds anything else; [`Error::InUse`]; [`Error::Io`].
    pub(super) fn prepare(vfs: &'a Arc<dyn Vfs>, source: &Path, path: &'a Path) -> Result<Self> {
        let source = absolute(source)?;
        check_apart(&source, &absolute(path)?)?;
        // Before anything is made there, and again once nothing else can make anything.
        left_behind(vfs.as_ref(), path)?;
        vfs.create_dir_all(path).map_err(|e| Error::io("create folder", path, e))?;
        let lock = lock(vfs.as_ref(), path)?;
        for file in left_behind(vfs.as_ref(), path)? {
            vfs.remove_file(&file).map_err(|e| Error::io("remove", file, e))?;
        }
        sync_parents(vfs.as_ref(), path)?;
        let record = BranchRecord { arc_branch: 1, source, number: None, time_ns: None };
        let folder = Self { vfs, path, record, _lock: lock };
        folder.write(&folder.record)?;
        Ok(folder)
    }

    /// Notes what the branch began as, now that it is whole.
    pub(super) fn finish(&self, origin: &Origin<'_>) -> Result<()> {
        let (number, time_ns) = (Some(origin.number), origin.until_ns);
        self.write(&BranchRecord { number, time_ns, ..self.record.clone() })
    }

    /// Removes what there is of a branch that cannot be finished. Best effort: the next try does the
    /// same.
    pub(super) fn clear_if_unfinished(&self) {
        for file in left_behind(self.vfs.as_ref(), self.path).unwrap_or_default() {
            let _ = self.vfs.remove_file(&file);
        }
    }

    fn write(&self, record: &BranchRecord) -> Result<()> {
        write_record(self.vfs.as_ref(), self.path, BRANCH_MARKER, record)
    }
}

/// Returns whether a folder that has no marker is a branch that was never finished.
///
/// # Errors
///
/// [`Error::Corrupt`] if the file that says so cannot be read; [`Error::Io`].
pub(crate) fn is_unfinished(vfs: &dyn Vfs, root: &Path) -> Result<bool> {
    let record: Option<BranchRecord> = read_record(vfs, root, BRANCH_MARKER)?;
    Ok(record.is_some_and(|record| record.number.is_none()))
}

/// Returns the files that are left of a branch which was never finished, but for the one that says so,
/// or refuses the folder if there is anything else.
fn left_behind(vfs: &dyn Vfs, path: &Path) -> Result<Vec<PathBuf>> {
    let bad = |reason: String| Err(Error::BadTarget { path: path.into(), reason });
    let files = files_below(vfs, path)?;
    if files.iter().any(|file| *file == path.join(MARKER)) {
        return bad("it is a data directory already; a branch needs a folder of its own".into());
    }
    let is_unfinished = is_unfinished(vfs, path)?;
    let temporary = [BRANCH_MARKER, MARKER].map(|name| path.join(format!("{name}{TEMPORARY_SUFFIX}")));
    let ours = [DATA_DIR, META_DIR, WAL_DIR].map(|folder| path.join(folder));
    let is_ours = |file: &PathBuf| {
        temporary.contains(file) || (is_unfinished && ours.iter().any(|folder| file.starts_with(folder)))
    };
    let stays = [LOCK_FILE, BRANCH_MARKER].map(|name| path.join(name));
    let stays = |file: &PathBuf| *file == stays[0] || (is_unfinished && *file == stays[1]);
    match files.iter().find(|file| !is_ours(file) && !stays(file)) {
        Some(file) => bad(format!("it is not empty: it has {}", file.display())),
        None => Ok(files.into_iter().filter(is_ours).collect()),
    }
}
