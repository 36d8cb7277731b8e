//! What is left behind: nothing, or everything.

use std::io;

use super::*;
use crate::{
    ErrorKind, Result,
    datafile::{ParquetWriter, Value, WrittenFile},
    vfs::{CrashFs, Fault, FaultFs, Operation, RealVfs, Vfs},
};

/// Writes three files below a folder that is not there.
fn write(vfs: Arc<dyn Vfs>, folder: &Path) -> (ParquetWriter, Result<Vec<WrittenFile>>) {
    let rows = groups(&[5, 5, 5]);
    let writer = ParquetWriter::builder(folder, rows.schema()).name("f").max_rows(5).vfs(vfs);
    let mut writer = writer.layout(small_layout()).open().unwrap();
    let mut work = || {
        for row in 0..14 {
            writer.push(&rows.slice(row, 1))?;
        }
        writer.push_row(&[Value::from("key 2"), Value::Integer(14)])?;
        writer.close().map(<[_]>::to_vec)
    };
    let result = work();
    (writer, result)
}

#[test]
fn whatever_call_fails_nothing_is_left_behind_and_the_writer_stays_ended() {
    let root = tempfile::tempdir().unwrap();
    let kinds = [io::ErrorKind::StorageFull, io::ErrorKind::PermissionDenied, io::ErrorKind::AlreadyExists];
    for (kind, short_write) in kinds.into_iter().flat_map(|kind| [(kind, false), (kind, true)]) {
        let mut failed = 0;
        for nth in 1.. {
            let faulty = FaultFs::new(Arc::new(RealVfs));
            let mut fault = Fault::nth(nth, kind);
            fault.short_write = short_write;
            faulty.set(fault);
            let folder = root.path().join(format!("{kind:?}/{short_write}/{nth}"));
            let (mut writer, result) = write(Arc::new(faulty.clone()), &folder);
            let hit = faulty.failed().into_keys().next();
            let Some(site) = hit else {
                assert_eq!((result.unwrap().len(), names(&folder).len()), (3, 3));
                break;
            };
            match result {
                // Whether a file or folder is there already is asked, and a name may be given in
                // two ways.
                Ok(files) => {
                    let asked = matches!(site.operation, Operation::OpenRead | Operation::List);
                    assert!(asked || site.operation == Operation::HardLink, "{site:?}");
                    assert_eq!(names(&folder).len(), files.len());
                }
                Err(error) => {
                    failed += 1;
                    assert!(error.to_string().contains(root.path().to_str().unwrap()), "{site:?}: {error}");
                    assert!(!folder.exists(), "{site:?}: {:?}", names(&folder));
                    writer.abort();
                    assert_eq!(writer.close().unwrap_err().kind(), ErrorKind::Closed);
                    assert_eq!(writer.push_row(&[]).unwrap_err().kind(), ErrorKind::Closed);
                }
            }
        }
        assert!(failed >= 15, "{kind:?}: {failed}");
    }
}

#[test]
fn a_write_that_fails_as_the_last_bytes_are_let_go_is_not_missed() {
    let root = tempfile::tempdir().unwrap();
    let faulty = FaultFs::new(Arc::new(RealVfs));
    let writes = {
        let (_, result) = write(Arc::new(faulty.clone()), &root.path().join("good"));
        assert!(result.is_ok());
        faulty.calls(Operation::WriteAllAt)
    };
    for nth in 1..=writes {
        faulty.set(Fault::nth(nth, io::ErrorKind::StorageFull).of(Operation::WriteAllAt));
        let (_, result) = write(Arc::new(faulty.clone()), &root.path().join("bad"));
        assert_eq!(result.unwrap_err().kind(), ErrorKind::StorageFull, "write {nth} of {writes}");
    }
}

#[test]
fn what_is_closed_survives_a_loss_of_power_and_what_is_not_was_never_there() {
    let crash = CrashFs::new();
    let folder = Path::new("/out/logs");
    let (_writer, result) = write(Arc::new(crash.clone()), folder);
    let files = result.unwrap();
    let cut = crash.power_cut();
    let after = CrashFs::from_image(&cut.images(1, 1).next().unwrap());
    for file in &files {
        assert_eq!(after.read(&file.path).unwrap().len() as u64, file.bytes, "{}", file.path.display());
    }
    let left: Vec<String> = after.list(folder).unwrap().into_iter().map(|entry| entry.name).collect();
    assert_eq!(left, ["f-00000.parquet", "f-00001.parquet", "f-00002.parquet"]);
}

#[test]
fn a_file_has_its_name_only_when_it_is_complete_whenever_the_power_fails() {
    let crash = CrashFs::new();
    let (_writer, result) = write(Arc::new(crash.clone()), Path::new("/out/logs"));
    let complete: Vec<_> =
        result.unwrap().iter().map(|file| (file.path.clone(), crash.read(&file.path).unwrap())).collect();
    let mut found = 0;
    for cut in crash.power_cuts() {
        for image in cut.images(1, 8) {
            for path in image.files().filter(|path| path.extension().is_some_and(|extension| extension == "parquet")) {
                let (_, expected) = complete.iter().find(|(complete, _)| complete == path).unwrap();
                assert!(image.get(path) == Some(expected), "{} after {} operations", path.display(), cut.operations());
                found += 1;
            }
        }
    }
    assert!(found > 10, "{found}");
}

#[test]
fn closing_and_aborting_twice_changes_nothing() {
    let root = tempfile::tempdir().unwrap();
    let open = |name: &str| {
        let rows = groups(&[3, 3]);
        let mut writer = ParquetWriter::builder(root.path(), rows.schema()).name(name).max_rows(2).open().unwrap();
        writer.push(&rows).unwrap();
        writer
    };
    let mut closed = open("closed");
    let files = closed.close().unwrap().to_vec();
    assert_eq!(closed.close().unwrap(), files);
    closed.abort();
    closed.abort();
    assert_eq!(closed.close().unwrap(), files);
    assert_eq!(closed.push(&groups(&[1])).unwrap_err().kind(), ErrorKind::Closed);
    drop(closed);
    let there = ["closed-00000.parquet", "closed-00001.parquet", "closed-00002.parquet"];
    assert_eq!(names(root.path()), there);

    let mut aborted = open("aborted");
    assert!(names(root.path()).len() > 3);
    aborted.abort();
    assert_eq!(names(root.path()), there);
    aborted.abort();
    assert_eq!(aborted.close().unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(aborted.push(&groups(&[1])).unwrap_err().to_string(), "the Parquet writer is closed: it was aborted");

    drop(open("dropped"));
    assert_eq!(names(root.path()), there);
    let mut without_rows = ParquetWriter::builder(root.path().join("none"), groups(&[]).schema()).open().unwrap();
    without_rows.push(&groups(&[])).unwrap();
    assert_eq!((without_rows.close().unwrap().len(), without_rows.close().unwrap().len()), (0, 0));
    assert_eq!(names(root.path()), there);
}

#[test]
fn a_file_that_is_there_is_not_replaced() {
    let root = tempfile::tempdir().unwrap();
    let rows = groups(&[3]);
    let open = || ParquetWriter::builder(root.path(), rows.schema()).name("f").open().unwrap();
    let path = root.path().join("f-00000.parquet");
    std::fs::write(&path, "mine").unwrap();
    // Told with the first row, not after the last.
    let error = open().push(&rows).unwrap_err();
    assert!(error.to_string().contains("f-00000.parquet"), "{error}");
    assert_eq!((std::fs::read(&path).unwrap(), names(root.path()).len()), (b"mine".to_vec(), 1));

    // Or comes while the writer is at work.
    std::fs::remove_file(&path).unwrap();
    let mut writer = open();
    writer.push(&rows).unwrap();
    std::fs::write(&path, "mine").unwrap();
    assert!(writer.close().is_err());
    assert_eq!((std::fs::read(&path).unwrap(), names(root.path()).len()), (b"mine".to_vec(), 1));
}
