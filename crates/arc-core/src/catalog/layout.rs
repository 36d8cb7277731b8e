//! The data directory: the marker that says a folder is ours, and the folders in it.
//!
//! Owns the file `ARC` and the names of the top level (docs/format.md, "Data directory"). Never
//! goes into a folder that is not marked and holds anything else: a wrong path must not become a
//! mess.

use std::{io::ErrorKind, path::Path};

use serde::{Deserialize, Serialize};

use crate::{
    Error, Result,
    model::{DATA_DIR, LOCK_FILE, MARKER, META_DIR, TEMPORARY_SUFFIX, WAL_DIR},
    store::data_files,
    vfs::{DirEntry, Vfs},
};

/// Newest version of the data directory that is read, and the one that is written.
const FORMAT_VERSION: u32 = 1;

/// Contents of the marker.
#[derive(Serialize, Deserialize)]
struct DirectoryMarker {
    arc_format: u32,
    /// Whether the log has had a frame: then it has a segment for ever. Older builds pass over it.
    #[serde(default, skip_serializing_if = "is_false")]
    log: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_false(value: &bool) -> bool {
    !*value
}

/// Ending of the names of the log's segments.
const SEGMENT_SUFFIX: &str = ".wal";

/// Returns whether the folder at `path` is marked as a data directory, of whatever version.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("data");
/// assert!(!arc_core::is_data_directory(&path));
/// arc_core::Engine::open(&path)?.close()?;
/// assert!(arc_core::is_data_directory(&path));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn is_data_directory(path: impl AsRef<Path>) -> bool {
    path.as_ref().join(MARKER).is_file()
}

/// Checks that `root` is a data directory that this build reads, or may become one: absent or
/// empty. Changes nothing.
///
/// # Errors
///
/// As [`open_layout`], but for what only writing can meet.
pub(crate) fn check_layout(vfs: &dyn Vfs, root: &Path) -> Result<()> {
    is_marked(vfs, root).map(drop)
}

/// Makes `root` a data directory if it is absent or empty, and checks that it is one that this
/// build reads.
///
/// # Errors
///
/// [`Error::NotADataDirectory`] if it is a file, or holds other things and no marker;
/// [`Error::NewerFormat`]; [`Error::Corrupt`] if the marker cannot be read, or the manifest is gone
/// though there are data files; [`Error::Io`] naming what could not be read or written.
pub(crate) fn open_layout(vfs: &dyn Vfs, root: &Path) -> Result<()> {
    if is_marked(vfs, root)? {
        // Also syncs: a crash may have left the marker or a folder in the cache only.
        return create_folders(vfs, root);
    }
    create_folders(vfs, root)?;
    sync_parents(vfs, root)?;
    write_marker(vfs, root)
}

/// Returns whether `root` is a data directory, or an error if it neither is nor may become one.
fn is_marked(vfs: &dyn Vfs, root: &Path) -> Result<bool> {
    let entries = match vfs.list(root) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(false),
        Err(e) if e.kind() == ErrorKind::NotADirectory => {
            return Err(Error::NotADataDirectory { path: root.into(), reason: "it is no folder".into() });
        }
        listed => listed.map_err(|e| Error::io("list", root, e))?,
    };
    if entries.iter().any(|entry| entry.name == MARKER) {
        if check_marker(vfs, root)? {
            check_log_is_there(vfs, root)?;
        }
        check_manifest_is_there(vfs, root)?;
        return Ok(true);
    }
    check_nothing_else(vfs, root, &entries)?;
    Ok(false)
}

/// Makes durable the folder's own name and those of all folders above it: any of them may be new.
pub(crate) fn sync_parents(vfs: &dyn Vfs, root: &Path) -> Result<()> {
    for folder in root.ancestors().skip(1) {
        let folder = if folder == Path::new("") { Path::new(".") } else { folder };
        match vfs.sync_dir(folder) {
            // A folder that may not be read was not made by this user, so it is old.
            Err(e) if e.kind() == ErrorKind::PermissionDenied => {}
            synced => synced.map_err(|e| Error::io("sync folder", folder, e))?,
        }
    }
    Ok(())
}

/// Creates the folders of a data directory, durably: a marker that came to be without them would be
/// one of a damaged directory.
pub(crate) fn create_folders(vfs: &dyn Vfs, root: &Path) -> Result<()> {
    for folder in [DATA_DIR, META_DIR, WAL_DIR] {
        let folder = root.join(folder);
        vfs.create_dir_all(&folder).map_err(|e| Error::io("create folder", folder, e))?;
    }
    sync(vfs, root)
}

/// Checks the marker of a folder that has one, and returns whether it says that there is a log.
/// Changes nothing.
///
/// # Errors
///
/// [`Error::Corrupt`], [`Error::NewerFormat`], [`Error::Io`].
pub(crate) fn check_marker(vfs: &dyn Vfs, root: &Path) -> Result<bool> {
    let path = root.join(MARKER);
    let bytes = vfs.read(&path).map_err(|e| Error::io("read", &path, e))?;
    match serde_json::from_slice(&bytes) {
        Ok(DirectoryMarker { arc_format: 0, .. }) => {
            Err(Error::corrupt(path, 0, "it says format version 0, which never was"))
        }
        Ok(DirectoryMarker { arc_format: found, .. }) if found > FORMAT_VERSION => {
            Err(Error::NewerFormat { path: root.into(), found, supported: FORMAT_VERSION })
        }
        Ok(DirectoryMarker { log, .. }) => Ok(log),
        Err(e) => Err(Error::corrupt(path, 0, format!("it should be {{\"arc_format\":{FORMAT_VERSION}}}: {e}"))),
    }
}

/// A log that has had a frame keeps a segment. Without this check a folder that is not mounted, or
/// was not restored with the others, would be taken for a log of which all was flushed.
///
/// # Errors
///
/// [`Error::Corrupt`], [`Error::Io`].
pub(crate) fn check_log_is_there(vfs: &dyn Vfs, root: &Path) -> Result<()> {
    let dir = root.join(WAL_DIR);
    if list(vfs, &dir)?.iter().any(|entry| entry.name.ends_with(SEGMENT_SUFFIX)) {
        return Ok(());
    }
    let reason = format!("there is no segment of the log, though {MARKER} says that there is a log");
    Err(Error::corrupt(dir, 0, reason))
}

/// A stream of the manifest is never empty once it was open, and no data file is older than its
/// stream. Without this check, all data files of a directory that lost its manifest would be taken
/// for orphans.
///
/// # Errors
///
/// [`Error::Corrupt`], [`Error::Io`].
pub(crate) fn check_manifest_is_there(vfs: &dyn Vfs, root: &Path) -> Result<()> {
    let meta = root.join(META_DIR);
    for writer in list(vfs, &meta)?.into_iter().filter(|entry| entry.is_dir) {
        let objects = list(vfs, &meta.join(writer.name))?;
        if objects.iter().any(|object| !object.name.ends_with(TEMPORARY_SUFFIX)) {
            return Ok(());
        }
    }
    match data_files(vfs, root)?.first() {
        None => Ok(()),
        Some(file) => Err(Error::corrupt(meta, 0, format!("the manifest is missing, though there is {file}"))),
    }
}

/// Returns whether a file or folder of this name is there because of the volume or of the machine that
/// shows it, and nobody has put it there.
pub(crate) fn is_of_volume(name: &str) -> bool {
    const NAMES: [&str; 9] = [
        "lost+found",
        ".snapshot",
        ".snapshots",
        ".DS_Store",
        ".Trashes",
        ".Spotlight-V100",
        ".fseventsd",
        "System Volume Information",
        "$RECYCLE.BIN",
    ];
    NAMES.contains(&name) || name.starts_with(".nfs") || name.starts_with(".Trash-")
}

/// Lets pass what we make ourselves before the marker is there.
fn check_nothing_else(vfs: &dyn Vfs, root: &Path, entries: &[DirEntry]) -> Result<()> {
    let temporary = format!("{MARKER}{TEMPORARY_SUFFIX}");
    for entry in entries {
        let ours = match entry.name.as_str() {
            LOCK_FILE => !entry.is_dir,
            DATA_DIR | META_DIR | WAL_DIR => {
                let folder = root.join(&entry.name);
                entry.is_dir && list(vfs, &folder)?.is_empty()
            }
            name => name == temporary || is_of_volume(name),
        };
        if !ours {
            let reason = format!("it has no file {MARKER} and is not empty: it has {:?}", entry.name);
            return Err(Error::NotADataDirectory { path: root.into(), reason });
        }
    }
    Ok(())
}

/// Makes a folder a data directory, durably.
pub(crate) fn write_marker(vfs: &dyn Vfs, root: &Path) -> Result<()> {
    write(vfs, root, false)
}

/// Notes in the marker, durably, that there is a log, which has a segment.
pub(crate) fn mark_log(vfs: &dyn Vfs, root: &Path) -> Result<()> {
    write(vfs, root, true)
}

fn write(vfs: &dyn Vfs, root: &Path, log: bool) -> Result<()> {
    let (path, temporary) = (root.join(MARKER), root.join(format!("{MARKER}{TEMPORARY_SUFFIX}")));
    match vfs.remove_file(&temporary) {
        Err(e) if e.kind() != ErrorKind::NotFound => return Err(Error::io("remove", temporary, e)),
        _ => {}
    }
    let marker = serde_json::to_vec(&DirectoryMarker { arc_format: FORMAT_VERSION, log })
        .map_err(|e| Error::internal(format!("cannot encode the marker: {e}")))?;
    let file = vfs.create_new(&temporary).map_err(|e| Error::io("create", &temporary, e))?;
    file.write_all_at(&[&marker, b"\n"], 0).map_err(|e| Error::io("write", &temporary, e))?;
    file.sync_all().map_err(|e| Error::io("sync", &temporary, e))?;
    vfs.rename(&temporary, &path).map_err(|e| Error::io("rename", &temporary, e))?;
    sync(vfs, root)
}

/// Lists a folder that may be missing.
fn list(vfs: &dyn Vfs, folder: &Path) -> Result<Vec<DirEntry>> {
    match vfs.list(folder) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        listed => listed.map_err(|e| Error::io("list", folder, e)),
    }
}

fn sync(vfs: &dyn Vfs, folder: &Path) -> Result<()> {
    vfs.sync_dir(folder).map_err(|e| Error::io("sync folder", folder, e))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{super::Manifest, *};
    use crate::vfs::{CrashFs, Fault, FaultFs, Operation, RealVfs};

    const ROOT: &str = "/a/b/store";

    fn with_files(files: &[(&str, &str)]) -> CrashFs {
        let vfs = CrashFs::new();
        for (name, contents) in files {
            let path = Path::new(ROOT).join(name);
            vfs.create_dir_all(path.parent().unwrap()).unwrap();
            vfs.create_new(&path).unwrap().write_all_at(&[contents.as_bytes()], 0).unwrap();
        }
        vfs
    }

    const ULID: &str = "data/db/t/day=2026-01-31/01ARZ3NDEKTSV4RRFFQ69G5FAV.parquet";

    #[test]
    fn folders_are_taken_or_refused_by_what_is_in_them() {
        let marker = "{\"arc_format\":1}\n";
        let with_log = "{\"arc_format\":1,\"log\":true}\n";
        let cases: [(&[(&str, &str)], &str); 18] = [
            (&[], ""),
            (&[("LOCK", "")], ""),
            (&[("LOCK", ""), ("ARC.tmp", "{\"arc")], ""),
            (&[("lost+found/#12", ""), (".DS_Store", ""), (".nfs0000000012", "")], ""),
            (&[("ARC", marker)], ""),
            (&[("ARC", marker), ("notes.txt", ""), ("wal/x", "")], ""),
            (&[("ARC", marker), (ULID, ""), ("meta/0/00000000000000000001", "")], ""),
            (&[("ARC", with_log), ("wal/00000000000000000001-0000000000000001.wal", "")], ""),
            (
                &[("ARC", with_log), ("wal/spare", "")],
                "/a/b/store/wal is damaged at byte 0: there is no segment of the log, though ARC says that there is a log",
            ),
            (&[("ARC", with_log)], "/a/b/store/wal is damaged at byte 0: there is no segment of the log"),
            (
                &[("notes.txt", "")],
                "/a/b/store is not a data directory: it has no file ARC and is not empty: it has \"notes.txt\"",
            ),
            (
                &[("wal/segment", "")],
                "/a/b/store is not a data directory: it has no file ARC and is not empty: it has \"wal\"",
            ),
            (&[(ULID, "")], "/a/b/store is not a data directory: it has no file ARC and is not empty: it has \"data\""),
            (
                &[("ARC", "{\"arc_format\":2}")],
                "data directory /a/b/store has format version 2; this build reads up to 1",
            ),
            (
                &[("ARC", "{\"arc_format\":0}")],
                "/a/b/store/ARC is damaged at byte 0: it says format version 0, which never was",
            ),
            (&[("ARC", "")], "/a/b/store/ARC is damaged at byte 0"),
            (&[("ARC", "\u{0}")], "/a/b/store/ARC is damaged at byte 0"),
            (
                &[("ARC", marker), (ULID, ""), ("meta/0/00000000000000000001.1.tmp", "")],
                "/a/b/store/meta is damaged at byte 0: the manifest is missing, though there is data/db/t",
            ),
        ];
        for (files, expected) in cases {
            let vfs = with_files(files);
            let before = vfs.operations();
            let checked = check_layout(&vfs, Path::new(ROOT));
            assert_eq!(vfs.operations(), before, "{files:?}: a check changed something");
            let opened = open_layout(&vfs, Path::new(ROOT));
            for result in [checked, opened] {
                let message = result.map_or_else(|e| e.to_string(), |()| String::new());
                let matches = if expected.is_empty() { message.is_empty() } else { message.starts_with(expected) };
                assert!(matches, "{files:?}: {message}");
            }
            if expected.is_empty() {
                let marker = if files.first().is_some_and(|(_, bytes)| *bytes == with_log) { with_log } else { marker };
                assert_eq!(vfs.read(&Path::new(ROOT).join("ARC")).unwrap(), marker.as_bytes());
                for folder in ["data", "meta", "wal"] {
                    assert!(vfs.list(&Path::new(ROOT).join(folder)).is_ok(), "{files:?}");
                }
            }
        }
    }

    #[test]
    fn a_file_is_no_data_directory() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "").unwrap();
        let error = open_layout(&RealVfs, &path).unwrap_err();
        assert!(matches!(error, Error::NotADataDirectory { .. }), "{error}");
    }

    #[test]
    fn what_may_not_be_read_is_named() {
        let vfs = FaultFs::new(Arc::new(with_files(&[("ARC", "{\"arc_format\":1}")])));
        for (operation, path) in [(Operation::List, ROOT), (Operation::Read, "/a/b/store/ARC")] {
            vfs.set(Fault::nth(1, ErrorKind::PermissionDenied).of(operation));
            let error = open_layout(&vfs, Path::new(ROOT)).unwrap_err();
            assert!(matches!(&error, Error::Io { path: named, .. } if named == Path::new(path)), "{error}");
        }
    }

    #[test]
    fn a_new_data_directory_survives_the_loss_of_power_and_any_state_on_the_way_opens() {
        let vfs = CrashFs::new();
        vfs.create_dir_all(Path::new(ROOT)).unwrap();
        open_layout(&vfs, Path::new(ROOT)).unwrap();
        let marked = vfs.operations();
        Manifest::open(Arc::new(vfs.clone()), &Path::new(ROOT).join("meta/0")).unwrap();
        for cut in vfs.power_cuts() {
            for image in cut.images(7, 40) {
                let after = CrashFs::from_image(&image);
                let is_marked = check_layout(&after, Path::new(ROOT)).and_then(|()| is_marked(&after, Path::new(ROOT)));
                assert!(cut.operations() < marked || is_marked.unwrap(), "after operation {}", cut.operations());
                after.create_dir_all(Path::new(ROOT)).unwrap();
                open_layout(&after, Path::new(ROOT)).unwrap();
                Manifest::open(Arc::new(after), &Path::new(ROOT).join("meta/0")).unwrap();
            }
        }
    }
}
