//! Which folders open and which are refused, with what is said.

use arc_core::{Engine, Error, ErrorKind};

use crate::support::{open, write};

#[test]
fn a_directory_in_use_is_refused_until_it_is_free() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let error = Engine::open(dir.path()).unwrap_err();
    assert!(matches!(error, Error::InUse { .. }), "{error}");
    assert_eq!(error.kind(), ErrorKind::Busy);
    drop(engine);
    open(dir.path());
}

#[test]
fn a_folder_of_somebody_else_stays_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("thesis.doc"), "x").unwrap();
    let error = Engine::open(dir.path()).unwrap_err();
    assert!(matches!(error, Error::NotADataDirectory { .. }), "{error}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    let file = dir.path().join("thesis.doc");
    assert_eq!(Engine::open(file).unwrap_err().kind(), ErrorKind::InvalidInput);
}

#[test]
fn a_newer_format_is_refused_with_both_versions() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()));
    std::fs::write(dir.path().join("ARC"), "{\"arc_format\":99}").unwrap();
    let error = Engine::open(dir.path()).unwrap_err();
    assert!(matches!(error, Error::NewerFormat { found: 99, supported: 1, .. }), "{error}");
}

#[cfg(unix)]
#[test]
fn a_folder_that_cannot_be_entered_is_named() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("closed");
    std::fs::create_dir(&root).unwrap();
    std::fs::set_permissions(&root, std::fs::Permissions::from_mode(0o000)).unwrap();
    // The superuser may enter it all the same: then there is nothing to see here.
    if std::fs::read_dir(&root).is_err() {
        let error = Engine::open(&root).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        assert!(error.to_string().contains("closed"), "{error}");
    }
    std::fs::set_permissions(&root, std::fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn options_out_of_range_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = arc_core::Options::default();
    options.wal_segment_bytes = 10;
    let error = Engine::builder(dir.path()).options(options).open().unwrap_err();
    assert!(error.to_string().contains("wal_segment_bytes"), "{error}");
}

#[test]
fn files_that_no_manifest_names_are_removed_and_others_stay() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    write(&engine, "d", "m v=1 1");
    let file = dir.path().join(&engine.flush().unwrap().files[0]);
    drop(engine);
    let orphan = file.with_file_name("01JCVV2Y7K3M4N5P6Q7R8S9T0V.parquet");
    let foreign = file.with_file_name("mine.parquet");
    std::fs::copy(&file, &orphan).unwrap();
    std::fs::copy(&file, &foreign).unwrap();
    let engine = open(dir.path());
    assert!(file.exists() && foreign.exists() && !orphan.exists());
    assert_eq!(crate::support::number(&engine, "d", "SELECT count(*) FROM m"), 1);
}
