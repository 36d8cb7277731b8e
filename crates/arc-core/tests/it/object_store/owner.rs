//! Which data directory an object store belongs to, and that no other caller writes there.

use arc_core::{Engine, Error, ErrorKind, Result, plan_repair, verify, verify_in_store};

use super::{builder, in_memory, objects, open, storage};
use crate::support::{number, quiet, write};

fn refused<T>(result: Result<T>, because: &str) {
    let error = result.map(drop).unwrap_err();
    assert!(matches!(error, Error::OtherStore { .. }), "{error}");
    assert!(error.to_string().contains(because), "{error}");
}

#[test]
fn a_directory_and_its_store_belong_together() {
    let (dir, other, store) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), in_memory());
    let engine = open(dir.path(), &store);
    write(&engine, "d", "m x=1 1");
    engine.close().unwrap();
    let named = "are in an object store, which has to be named";
    refused(Engine::open(dir.path()), named);
    refused(verify(dir.path()), named);
    refused(plan_repair(dir.path()), named);
    refused(builder(other.path(), &store).open(), "is that of another data directory");
    refused(builder(dir.path(), &in_memory()).open(), "the object store does not know it");
    let report = verify_in_store(dir.path(), storage(&in_memory())).unwrap();
    assert!(report.to_string().contains("the object store is that of the data directory none"), "{report}");
    let local = tempfile::tempdir().unwrap();
    let engine = Engine::open(local.path()).unwrap();
    write(&engine, "d", "m x=1 1");
    engine.close().unwrap();
    refused(builder(local.path(), &in_memory()).open(), "it has a log of its own");
    refused(verify_in_store(local.path(), storage(&store)), "not in an object store");
    assert_eq!(number(&open(dir.path(), &store), "d", "SELECT count(*) FROM m"), 1);
    assert_eq!(number(&Engine::open(local.path()).unwrap(), "d", "SELECT count(*) FROM m"), 1);
}

#[test]
fn a_new_directory_can_take_a_store_over_and_the_old_one_is_fenced() {
    let (first, second, store) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), in_memory());
    let taking = |path| quiet(path).object_store(storage(&store).take_over(true));
    let old = open(first.path(), &store);
    write(&old, "d", "m x=1 1");
    old.flush().unwrap();
    let before = objects(&store, "data");
    let new = taking(second.path()).open().unwrap();
    assert_eq!(number(&new, "d", "SELECT count(*) FROM m"), 1);
    write(&new, "d", "m x=2 2");
    new.flush().unwrap();
    // The old one takes points for its log, until it finds out.
    write(&old, "d", "m x=3 3");
    let error = old.flush().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
    assert!(error.to_string().contains("another writer has written some/prefix/meta/0/"), "{error}");
    let error = old.write_lp("d", b"m x=3 3").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
    drop(old);
    refused(builder(first.path(), &store).open(), "is that of another data directory");
    refused(taking(first.path()).open(), "another data directory has taken over its object store");
    write(&new, "d", "m x=4 4");
    new.close().unwrap();
    drop(new);
    // What the old one has put and not committed goes.
    let again = open(second.path(), &store);
    assert_eq!(number(&again, "d", "SELECT CAST(sum(x) AS BIGINT) FROM m"), 7);
    assert!(again.verify().unwrap().findings.is_empty());
    let now = objects(&store, "data");
    assert!(now.len() == 3 && before.iter().all(|path| now.contains(path)), "{now:?}");
}

/// Each opening takes a number of the manifest, so that a commit of an earlier process that arrives
/// late finds it taken.
#[test]
fn every_opening_makes_a_commit() {
    let (dir, store) = (tempfile::tempdir().unwrap(), in_memory());
    for opened in 1..4 {
        drop(open(dir.path(), &store));
        assert_eq!(objects(&store, "meta").len(), 1 + opened);
    }
}

/// All data files would be taken for what nothing knows.
#[test]
fn a_store_whose_manifest_is_gone_is_damaged_and_keeps_its_files() {
    let (dir, other, store) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), in_memory());
    let engine = open(dir.path(), &store);
    write(&engine, "d", "m x=1 1");
    engine.close().unwrap();
    drop(engine);
    for object in objects(&store, "meta") {
        futures::executor::block_on(object_store::ObjectStoreExt::delete(store.as_ref(), &object.as_str().into()))
            .unwrap();
    }
    for path in [dir.path(), other.path()] {
        let error = builder(path, &store).open().unwrap_err();
        assert!(error.to_string().contains("the manifest is missing, though there is data/d/m"), "{error}");
    }
    assert_eq!(objects(&store, "data").len(), 1);
}
