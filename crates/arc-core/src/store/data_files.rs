//! Which data files and packs there are in a data directory, by their names alone.

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
};

use ulid::Ulid;

use crate::{
    Error, Result,
    model::{DATA_DIR, TEMPORARY_SUFFIX, is_pack},
    vfs::Vfs,
};

/// Returns the paths of all files below `<root>/data` that are named as data files are, relative to
/// `root`.
pub(crate) fn data_files(vfs: &dyn Vfs, root: &Path) -> Result<Vec<String>> {
    Ok(find_data_files(vfs, root)?.files)
}

/// What there is below `<root>/data`, by paths relative to `root`.
#[derive(Debug, Default)]
pub(crate) struct FoundFiles {
    /// Those that are named as data files are.
    pub(crate) files: Vec<String>,
    pub(crate) empty_folders: Vec<String>,
}

/// Lists what there is below `<root>/data`.
pub(crate) fn find_data_files(vfs: &dyn Vfs, root: &Path) -> Result<FoundFiles> {
    let mut found = FoundFiles::default();
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

pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn is_data_file(name: &str) -> bool {
    let name = name.strip_suffix(TEMPORARY_SUFFIX).unwrap_or(name);
    let id = name.strip_suffix(".parquet").unwrap_or_default();
    // The library reads lower-case letters, too; we write none.
    is_pack(name) || Ulid::from_string(id).is_ok_and(|ulid| ulid.to_string() == id)
}
