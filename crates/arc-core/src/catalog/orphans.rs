//! Data files and packs that no manifest names, and folders without any: what a crash between a file's rename and its commit, or
//! between the removal of a file and that of its folder, leaves behind.

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
};

use hashbrown::HashSet;
use ulid::Ulid;

use super::ManifestState;
use crate::{
    Error, Result,
    datafile::{DATA_DIR, TEMPORARY_SUFFIX, is_pack, remove_data_file, remove_empty_folders},
    vfs::Vfs,
};

/// Removes the data files below `<root>/data` that `state` does not name, finished or not, and returns their paths; also
/// the folders that are empty.
///
/// Only files named as we name them (a ULID, `.parquet` or `.pack`, perhaps `.tmp`) are touched. A pack is named by each data
/// file in it. To be called before anything is
/// flushed, with the state of *all* writers: a file is named by no manifest until it is committed. A file that cannot be
/// removed is logged and stays for the next time.
///
/// No crash leaves a manifest that names a file which is not there. Where there is one, the manifest is an older one than
/// that of these files, as where its newest commits are gone, and what it does not name may be all that is left of some
/// rows: `set_aside` is to keep it elsewhere first.
///
/// # Errors
///
/// [`Error::Io`] if a folder cannot be listed.
pub(crate) fn remove_orphans(
    vfs: &dyn Vfs,
    root: &Path,
    state: &ManifestState,
    set_aside: impl FnOnce(&[PathBuf]) -> Result<()>,
) -> Result<Vec<String>> {
    let mut removed = Vec::new();
    let Found { files, empty_folders } = find(vfs, root)?;
    let missing = missing(&files, state);
    let mut orphans = unnamed(files, state);
    if let Some(missing) = missing {
        let whole: Vec<PathBuf> =
            orphans.iter().filter(|path| !path.ends_with(TEMPORARY_SUFFIX)).map(|path| root.join(path)).collect();
        tracing::warn!(missing, "a data file is not there: those that no manifest names are kept in lost/");
        if let Err(error) = set_aside(&whole) {
            tracing::warn!(%error, "cannot set data files aside, they stay where they are");
            orphans.clear();
        }
    }
    for path in orphans {
        match remove_data_file(vfs, root, &path) {
            Ok(()) => removed.push(path),
            Err(error) => tracing::warn!(path, %error, "cannot remove a data file that no manifest names"),
        }
    }
    for folder in empty_folders {
        remove_empty_folders(vfs, root, &root.join(folder));
    }
    Ok(removed)
}

/// Returns the paths of the data files below `<root>/data` that `state` does not name, finished or not.
///
/// # Errors
///
/// [`Error::Io`] if a folder cannot be listed.
pub(crate) fn find_orphans(vfs: &dyn Vfs, root: &Path, state: &ManifestState) -> Result<Vec<String>> {
    Ok(unnamed(find(vfs, root)?.files, state))
}

/// Returns the path of a file that `state` names and that is not there, if there is one.
fn missing(files: &[String], state: &ManifestState) -> Option<String> {
    let there: HashSet<&str> = files.iter().map(|path| file_name(path)).collect();
    state.files().map(|file| file.stored_path()).find(|path| !there.contains(file_name(path))).map(str::to_owned)
}

fn unnamed(mut files: Vec<String>, state: &ManifestState) -> Vec<String> {
    // By file name, which is unique: on a file system that ignores case the folders of `cpu` and `CPU` are one, and are
    // listed by the name of the first.
    let live: HashSet<&str> = state.files().map(|file| file_name(file.stored_path())).collect();
    files.retain(|path| !live.contains(file_name(path)));
    files
}

/// Returns the paths of all files below `<root>/data` that are named as data files are, relative to `root`.
pub(super) fn data_files(vfs: &dyn Vfs, root: &Path) -> Result<Vec<String>> {
    Ok(find(vfs, root)?.files)
}

/// What there is below `<root>/data`, by paths relative to `root`.
#[derive(Default)]
struct Found {
    /// Those that are named as data files are.
    files: Vec<String>,
    empty_folders: Vec<String>,
}

fn find(vfs: &dyn Vfs, root: &Path) -> Result<Found> {
    let mut found = Found::default();
    if let Some(listed) = vfs.list_below(&root.join(DATA_DIR)) {
        // Where there are no folders, only names that look like paths.
        let listed = listed.map_err(|e| Error::io("list", root.join(DATA_DIR), e))?;
        let relative = |path: &PathBuf| path.strip_prefix(root).ok()?.to_str().map(str::to_owned);
        found.files = listed.iter().filter_map(relative).filter(|path| is_data_file(file_name(path))).collect();
        return Ok(found);
    }
    let mut folders = vec![DATA_DIR.to_owned()];
    while let Some(folder) = folders.pop() {
        let path = root.join(&folder);
        let entries = match vfs.list(&path) {
            Err(e) if e.kind() == ErrorKind::NotFound => Vec::new(),
            listed => listed.map_err(|e| Error::io("list", path, e))?,
        };
        if entries.is_empty() {
            found.empty_folders.push(folder.clone());
        }
        for entry in entries {
            let path = format!("{folder}/{}", entry.name);
            if entry.is_dir {
                folders.push(path);
            } else if is_data_file(&entry.name) {
                found.files.push(path);
            }
        }
    }
    Ok(found)
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn is_data_file(name: &str) -> bool {
    let name = name.strip_suffix(TEMPORARY_SUFFIX).unwrap_or(name);
    let id = name.strip_suffix(".parquet").unwrap_or_default();
    // The library reads lower-case letters, too; we write none.
    is_pack(name) || Ulid::from_string(id).is_ok_and(|ulid| ulid.to_string() == id)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        catalog::{ManifestEdit, TableEdit, TableSchema},
        datafile::DataFile,
        vfs::CrashFs,
    };

    const DAY: &str = "data/db/t/day=2026-01-31";

    #[test]
    fn only_unnamed_files_that_are_named_like_ours_are_removed() {
        let live = format!("{DAY}/01ARZ3NDEKTSV4RRFFQ69G5FAV.parquet");
        let kept = [
            live.clone(),
            format!("{DAY}/notes.parquet"),
            format!("{DAY}/01arz3ndektsv4rrffq69g5fav.parquet"),
            format!("{DAY}/01ARZ3NDEKTSV4RRFFQ69G5FAW"),
            format!("{DAY}/01ARZ3NDEKTSV4RRFFQ69G5FAW.parquet.bak"),
            "data/README.md".to_owned(),
            "01ARZ3NDEKTSV4RRFFQ69G5FAW.parquet".to_owned(),
        ];
        let orphans = [
            format!("{DAY}/01ARZ3NDEKTSV4RRFFQ69G5FAW.parquet"),
            format!("{live}.tmp"),
            "data/other/t/day=1969-12-31/7ZZZZZZZZZZZZZZZZZZZZZZZZZ.parquet.tmp".to_owned(),
        ];
        let root = Path::new("/store");
        let vfs = CrashFs::new();
        for path in kept.iter().chain(&orphans).map(|path| root.join(path)) {
            vfs.create_dir_all(path.parent().unwrap()).unwrap();
            vfs.create_new(&path).unwrap();
        }
        let unasked = |_: &[PathBuf]| -> Result<()> { panic!("nothing is missing") };
        let mut removed = remove_orphans(&vfs, root, &state_with(&live), unasked).unwrap();
        removed.sort();
        let mut expected = orphans.to_vec();
        expected.sort();
        assert_eq!(removed, expected);
        let image = vfs.current();
        let mut left: Vec<_> =
            image.files().map(|path| path.strip_prefix(root).unwrap().display().to_string()).collect();
        left.sort();
        let mut kept = kept.to_vec();
        kept.sort();
        assert_eq!(left, kept);
        assert!(remove_orphans(&CrashFs::new(), root, &ManifestState::default(), unasked).unwrap().is_empty());
    }

    fn state_with(path: &str) -> ManifestState {
        let schema = TableSchema { database: "db".into(), table: "t".into(), has_primary_key: true, columns: vec![] };
        let file = DataFile {
            path: path.to_owned(),
            bytes: 1,
            crc32c: 1,
            tail: None,
            rows: 1,
            min_time: 0,
            max_time: 0,
            min_seq: 1,
            max_seq: 1,
            deleted_seq: 0,
            late: false,
            sorted_by: vec![],
            columns: vec![],
        };
        let mut state = ManifestState::default();
        state.apply(ManifestEdit {
            databases_added: vec![("db".into(), 0)],
            tables: vec![TableEdit {
                database: "db".into(),
                table: "t".into(),
                schema: Some(Arc::new(schema)),
                files_added: vec![Arc::new(file)],
                ..TableEdit::default()
            }],
            ..ManifestEdit::default()
        });
        state
    }
}
