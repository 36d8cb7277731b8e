//! Data files and packs that no manifest names, and folders without any: what a crash between a
//! file's rename and its commit, or between the removal of a file and that of its folder, leaves
//! behind.

use std::path::{Path, PathBuf};

use hashbrown::HashSet;

use crate::{
    Result,
    datafile::{remove_data_file, remove_empty_folders},
    model::{PAST_DIR, TEMPORARY_SUFFIX, past_path},
    store::{FoundFiles, file_name, find_data_files},
    vfs::Vfs,
};

/// What was done about files that no manifest names, and files that are not where they belong, all by
/// their paths below the data directory.
#[derive(Debug, Default)]
pub(crate) struct ClearedOrphans {
    pub(crate) removed: Vec<String>,
    /// Files that are kept, and lie among those of tables: a move to `past/` did not come to its end.
    pub(crate) stray: Vec<String>,
    /// Files that are named, and lie in `past/`, by the paths that they are named by.
    pub(crate) away: Vec<String>,
    /// Files of older states that are not there, by their names.
    pub(crate) gone: Vec<String>,
}

/// Removes the data files below `<root>/data` and in `<root>/past` that `named` and `past` lack and
/// `is_kept` refuses, finished or not; also the folders that are empty. `past` has the names of files of
/// older states.
///
/// Only files named as we name them (a ULID, `.parquet` or `.pack`, perhaps `.tmp`) are touched. A
/// pack is named by each data file in it. To be called before anything is flushed, with the files
/// of the manifests of *all* writers, each by its [stored path](stored_path): a file is named by no
/// manifest until it is committed. A file that cannot be removed is logged and stays for the next
/// time.
///
/// No crash leaves a manifest that names a file which is not there. Where there is one, the
/// manifest is an older one than that of these files, as where its newest commits are gone, and
/// what it does not name may be all that is left of some rows: `set_aside` is to keep it elsewhere
/// first.
///
/// # Errors
///
/// [`Error::Io`] if a folder cannot be listed.
pub(crate) fn remove_orphans(
    vfs: &dyn Vfs,
    root: &Path,
    named: &HashSet<&str>,
    past: &HashSet<&str>,
    is_kept: impl Fn(&str) -> bool,
    set_aside: impl FnOnce(&[PathBuf]) -> Result<()>,
) -> Result<ClearedOrphans> {
    let FoundFiles { files, empty_folders } = find_data_files(vfs, root)?;
    let missing = missing(&files, named);
    let away = named_in_past(&files, named);
    let gone = {
        let there: HashSet<&str> = files.iter().map(|path| file_name(path)).collect();
        past.difference(&there).map(|name| (*name).to_owned()).collect()
    };
    let is_kept = |path: &String| past.contains(file_name(path)) || is_kept(path);
    let (kept, mut orphans): (Vec<_>, Vec<_>) = unnamed(files, named).into_iter().partition(is_kept);
    if let Some(missing) = missing {
        let whole: Vec<PathBuf> =
            orphans.iter().filter(|path| !path.ends_with(TEMPORARY_SUFFIX)).map(|path| root.join(path)).collect();
        tracing::warn!(missing, "a data file is not there: those that no manifest names are kept in lost/");
        if let Err(error) = set_aside(&whole) {
            tracing::warn!(%error, "cannot set data files aside, they stay where they are");
            orphans.clear();
        }
    }
    let stray = kept.into_iter().filter(|path| past_path(Path::new(path)).is_some()).collect();
    let mut cleared = ClearedOrphans { removed: Vec::new(), stray, away, gone };
    for path in orphans {
        match remove_data_file(vfs, root, &path) {
            Ok(()) => cleared.removed.push(path),
            Err(error) => tracing::warn!(path, %error, "cannot remove a data file that no manifest names"),
        }
    }
    for folder in empty_folders {
        remove_empty_folders(vfs, root, &root.join(folder));
    }
    Ok(cleared)
}

/// Returns the files of `named` that lie in `past/` alone.
fn named_in_past(files: &[String], named: &HashSet<&str>) -> Vec<String> {
    let (past, data): (Vec<_>, Vec<_>) = files.iter().partition(|path| Path::new(path).starts_with(PAST_DIR));
    if past.is_empty() {
        return Vec::new();
    }
    let [past, data] = [past, data].map(|paths| paths.into_iter().map(|path| file_name(path)).collect::<HashSet<_>>());
    let is_away = |path: &&&str| past.contains(file_name(path)) && !data.contains(file_name(path));
    named.iter().filter(is_away).map(|path| (*path).to_owned()).collect()
}

/// Returns the paths of the data files that `named` lacks, finished or not.
///
/// # Errors
///
/// [`Error::Io`] if a folder cannot be listed.
pub(crate) fn find_orphans(vfs: &dyn Vfs, root: &Path, named: &HashSet<&str>) -> Result<Vec<String>> {
    Ok(unnamed(find_data_files(vfs, root)?.files, named))
}

/// Returns the paths of finished data files that `named` lacks, for another process that may still
/// read them; none where a file that `named` has is not there, for then they are to be set aside.
///
/// # Errors
///
/// [`Error::Io`] if a folder cannot be listed.
pub(crate) fn find_readable(vfs: &dyn Vfs, root: &Path, named: &HashSet<&str>) -> Result<Vec<String>> {
    let files = find_data_files(vfs, root)?.files;
    if missing(&files, named).is_some() {
        return Ok(Vec::new());
    }
    let mut readable = unnamed(files, named);
    readable.retain(|path| !path.ends_with(TEMPORARY_SUFFIX));
    Ok(readable)
}

/// Returns the path of a file that `named` has and that is not there, if there is one.
fn missing(files: &[String], named: &HashSet<&str>) -> Option<String> {
    let there: HashSet<&str> = files.iter().map(|path| file_name(path)).collect();
    named.iter().find(|path| !there.contains(file_name(path))).map(|path| (*path).to_owned())
}

fn unnamed(mut files: Vec<String>, named: &HashSet<&str>) -> Vec<String> {
    // By file name, which is unique: on a file system that ignores case the folders of `cpu` and
    // `CPU` are one, and are listed by the name of the first.
    let live: HashSet<&str> = named.iter().map(|path| file_name(path)).collect();
    files.retain(|path| !live.contains(file_name(path)));
    files
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vfs::CrashFs;

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
            "past/README.md".to_owned(),
            "01ARZ3NDEKTSV4RRFFQ69G5FAW.parquet".to_owned(),
        ];
        let orphans = [
            format!("{DAY}/01ARZ3NDEKTSV4RRFFQ69G5FAW.parquet"),
            format!("{live}.tmp"),
            "data/other/t/day=1969-12-31/7ZZZZZZZZZZZZZZZZZZZZZZZZZ.parquet.tmp".to_owned(),
            "past/01ARZ3NDEKTSV4RRFFQ69G5FAX.parquet".to_owned(),
        ];
        let root = Path::new("/store");
        let vfs = CrashFs::new();
        for path in kept.iter().chain(&orphans).map(|path| root.join(path)) {
            vfs.create_dir_all(path.parent().unwrap()).unwrap();
            vfs.create_new(&path).unwrap();
        }
        let unasked = |_: &[PathBuf]| -> Result<()> { panic!("nothing is missing") };
        let cleared =
            remove_orphans(&vfs, root, &HashSet::from([live.as_str()]), &HashSet::new(), |_| false, unasked).unwrap();
        let mut removed = cleared.removed;
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
        let none = HashSet::new();
        assert!(remove_orphans(&CrashFs::new(), root, &none, &none, |_| false, unasked).unwrap().removed.is_empty());
    }
}
