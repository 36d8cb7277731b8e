//! Where durability `remote` may be asked for, and what else it is of.

use super::{double::Shelf, open, stored, write};
use crate::{Comparison, Durability, Engine, ErrorKind, Predicate, WriteOptions};

#[test]
fn without_an_object_store_it_is_refused_at_every_door() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data");
    let refused = |error: crate::Error| {
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        let expected = "option durability is not valid: remote is for engines with an object store";
        assert!(error.to_string().starts_with(expected), "{error}");
    };
    refused(Engine::builder(&path).durability(Durability::Remote).open().unwrap_err());
    assert!(!path.exists(), "nothing is made");
    let engine = Engine::open(&path).unwrap();
    let options = WriteOptions::new().durability(Durability::Remote);
    refused(engine.submit_lp("d", "m x=1 1".into(), &options).unwrap_err());
    assert!(engine.databases().is_empty());
    engine.create_database("d").unwrap();
    refused(engine.set_database_durability("d", Some(Durability::Remote)).unwrap_err());
}

#[test]
fn a_database_and_an_engine_can_have_it_as_their_own() {
    let (shelf, dir, other) = (Shelf::new(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = shelf.seen(1);
    let engine = open(dir.path(), &store);
    engine.create_database("d").unwrap();
    engine.set_database_durability("d", Some(Durability::Remote)).unwrap();
    let written = engine.write_lp("d", b"m x=1 1").unwrap();
    assert_eq!(written.durability, Durability::Remote);
    assert!(shelf.names("p/wal").len() == 1 && engine.stats().remote_puts == 1);
    store.set_gone(true);
    drop(engine);
    // What is not a write is in the store as well, where all of an engine is to be.
    let store = shelf.seen(2);
    let engine = super::builder(other.path(), &store, std::time::Duration::from_secs(60));
    let options = crate::Options { durability: Durability::Remote, ..crate::Options::default() };
    let engine = engine.options(options.clone()).open().unwrap();
    engine.create_database("made").unwrap();
    engine.delete("d", "m", &Predicate::compare("time", Comparison::Less, "1970-01-02")).unwrap();
    write(&engine, 1, Durability::Remote).unwrap();
    store.set_gone(true);
    drop(engine);
    let last = tempfile::tempdir().unwrap();
    let engine = super::builder(last.path(), &shelf.seen(3), std::time::Duration::from_secs(60)).options(options);
    let engine = engine.open().unwrap();
    let mut names: Vec<_> = engine.databases().into_iter().map(|database| database.name).collect();
    names.sort();
    assert_eq!(names, ["d", "made"]);
    let rows: usize = engine.view("d", "m").unwrap().buffers.iter().map(|part| part.row_count()).sum();
    assert_eq!((rows, stored(&engine).len()), (0, 1));
}

/// An engine that nobody asks for it makes no request for it.
#[test]
fn without_such_writes_there_is_no_log_in_the_store() {
    let (shelf, dir) = (Shelf::new(), tempfile::tempdir().unwrap());
    for seed in 0..2 {
        let engine = open(dir.path(), &shelf.seen(seed));
        write(&engine, i64::try_from(seed).unwrap(), Durability::Disk).unwrap();
        engine.close().unwrap();
    }
    assert!(shelf.names("p/wal").is_empty() && shelf.names("p/probe").is_empty());
}
