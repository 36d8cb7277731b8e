//! Which data files and packs there are in a data directory, by their names alone.

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
};

use crate::{
    Error, Result,
    model::{DATA_DIR, PAST_DIR, TEMPORARY_SUFFIX, is_own_file, is_pack},
    vfs::Vfs,
};

/// Returns the paths of all files below `<root>/data`, and in `<root>/past`, that are named as data
/// files are, relative to `root`.
pub(crate) fn data_files(vfs: &dyn Vfs, root: &Path) -> Result<Vec<String>> {
    Ok(find_data_files(vfs, root)?.files)
}

/// What there is in the folders of data files, by paths relative to the data directory.
#[derive(Debug, Default)]
pub(crate) struct FoundFiles {
    /// Those that are named as data files are.
    pub(crate) files: Vec<String>,
    pub(crate) empty_folders: Vec<String>,
}

/// Lists what there is below `<root>/data`, and in `<root>/past`.
pub(crate) fn find_data_files(vfs: &dyn Vfs, root: &Path) -> Result<FoundFiles> {
    let mut found = FoundFiles::default();
    [DATA_DIR, PAST_DIR].into_iter().try_for_each(|top| found.add_below(vfs, root, top))?;
    Ok(found)
}

impl FoundFiles {
    fn add_below(&mut self, vfs: &dyn Vfs, root: &Path, top: &str) -> Result<()> {
        if let Some(listed) = vfs.list_below(&root.join(top)) {
            // Where there are no folders, only names that look like paths.
            let listed = listed.map_err(|e| Error::io("list", root.join(top), e))?;
            let relative = |path: &PathBuf| path.strip_prefix(root).ok()?.to_str().map(str::to_owned);
            self.files.extend(listed.iter().filter_map(relative).filter(|path| is_data_file(file_name(path))));
            return Ok(());
        }
        let mut folders = vec![top.to_owned()];
        while let Some(folder) = folders.pop() {
            let path = root.join(&folder);
            let entries = match vfs.list(&path) {
                Err(e) if e.kind() == ErrorKind::NotFound => Vec::new(),
                listed => listed.map_err(|e| Error::io("list", path, e))?,
            };
            if entries.is_empty() && top == DATA_DIR {
                self.empty_folders.push(folder.clone());
            }
            for entry in entries {
                let path = format!("{folder}/{}", entry.name);
                if entry.is_dir {
                    folders.push(path);
                } else if is_data_file(&entry.name) {
                    self.files.push(path);
                }
            }
        }
        Ok(())
    }
}

pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn is_data_file(name: &str) -> bool {
    let name = name.strip_suffix(TEMPORARY_SUFFIX).unwrap_or(name);
    is_pack(name) || is_own_file(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vfs::CrashFs;

    const ID: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

    #[test]
    fn only_names_that_we_give_are_those_of_data_files() {
        let cases = [
            (format!("{ID}.parquet"), true),
            (format!("{ID}.parquet.tmp"), true),
            (format!("{ID}.pack"), true),
            (format!("{}.parquet", ID.to_lowercase()), false),
            (format!("{ID}.csv"), false),
            (ID.to_owned(), false),
            ("notes.parquet".to_owned(), false),
            (String::new(), false),
        ];
        for (name, expected) in cases {
            assert_eq!(is_data_file(&name), expected, "{name:?}");
        }
    }

    #[test]
    fn files_and_empty_folders_are_found_at_any_depth() {
        let (disk, root) = (CrashFs::new(), Path::new("/arc"));
        let found = find_data_files(&disk, root).unwrap();
        assert!(found.files.is_empty(), "no folder is no error");
        for folder in ["data/plant/pump/day=2026-01-31", "data/plant/fan", "data/_packs"] {
            disk.create_dir_all(&root.join(folder)).unwrap();
        }
        let pumped = format!("data/plant/pump/day=2026-01-31/{ID}.parquet");
        let packed = format!("data/_packs/{ID}.pack");
        for file in [&pumped, &packed, &"data/plant/README".to_owned()] {
            disk.create_new(&root.join(file)).unwrap();
        }
        let found = find_data_files(&disk, root).unwrap();
        let mut files = found.files;
        files.sort();
        assert_eq!(files, [packed, pumped]);
        assert_eq!(found.empty_folders, ["data/plant/fan"]);
    }
}
