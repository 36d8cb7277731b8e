//! An engine whose data files and manifest are in an object store.

mod faults;
mod faulty;
mod owner;
mod readers;

use std::{path::Path, sync::Arc, time::Duration};

use arc_core::{
    Comparison, Engine, EngineBuilder, Literal, Options, Predicate,
    store::{DurableLocal, ObjectStorage},
    verify_in_store,
    vfs::RealVfs,
};
use futures::{StreamExt, executor::block_on};
use object_store::{ObjectStore, memory::InMemory};

use crate::support::{HandClock, number, quiet, write};

fn storage(store: &Arc<dyn ObjectStore>) -> ObjectStorage {
    ObjectStorage::new(Arc::clone(store), "some/prefix")
}

fn builder(path: &Path, store: &Arc<dyn ObjectStore>) -> EngineBuilder {
    quiet(path).object_store(storage(store))
}

fn open(path: &Path, store: &Arc<dyn ObjectStore>) -> Engine {
    builder(path, store).open().unwrap()
}

fn in_memory() -> Arc<dyn ObjectStore> {
    Arc::new(InMemory::new())
}

/// Returns the names of all objects in a folder below the prefix, or of all that there are.
fn objects(store: &Arc<dyn ObjectStore>, folder: &str) -> Vec<String> {
    let prefix = format!("some/prefix/{folder}");
    let prefix = if folder.is_empty() { None } else { Some(prefix.as_str().into()) };
    let listed = block_on(store.list(prefix.as_ref()).collect::<Vec<_>>());
    listed.into_iter().map(|meta| meta.unwrap().location.to_string()).collect()
}

#[test]
fn points_are_there_after_flush_and_restart() {
    let local = tempfile::tempdir().unwrap();
    let durable = DurableLocal::open(Arc::new(RealVfs), local.path()).unwrap();
    for store in [in_memory(), Arc::new(durable)] {
        let dir = tempfile::tempdir().unwrap();
        let engine = open(dir.path(), &store);
        write(&engine, "d b", "m,host=a x=1 1\nm,host=b x=2 2\n");
        engine.flush().unwrap();
        write(&engine, "d b", "m,host=c x=3 3\n");
        assert_eq!(number(&engine, "d b", "SELECT count(*) FROM m"), 3);
        drop(engine);
        let engine = open(dir.path(), &store);
        assert_eq!(number(&engine, "d b", "SELECT CAST(sum(x) AS BIGINT) FROM m"), 6);
        let report = engine.verify().unwrap();
        assert!(report.findings.is_empty(), "{report}");
        assert_eq!(report.totals.files, 1);
        engine.close().unwrap();
        assert!(!dir.path().join("data").exists() && !dir.path().join("meta").exists());
        let report = verify_in_store(dir.path(), storage(&store)).unwrap();
        assert!(report.findings.is_empty(), "{report}");
        assert_eq!((report.totals.files, report.totals.rows), (2, 3));
    }
}

/// Compaction, deletes, retention and drops leave nothing behind.
#[test]
fn what_is_needed_no_more_leaves_the_store() {
    let (dir, store, clock) = (tempfile::tempdir().unwrap(), in_memory(), HandClock::default());
    let mut options = Options::default();
    (options.compaction, options.compaction_grace, options.compaction_files) = (false, Duration::ZERO, 2);
    options.history = Duration::ZERO;
    let engine = builder(dir.path(), &store).options(options).clock(Arc::new(clock.clone())).open().unwrap();
    for n in 0..4 {
        write(&engine, "d", &format!("m,host=h{n} x={n} {n}\nold x=1 {n}\ngone x=1 {n}\n"));
        engine.flush().unwrap();
    }
    assert_eq!(objects(&store, "data").len(), 12);
    engine.delete("d", "m", &Predicate::compare("host", Comparison::Equal, Literal::Text("h1".into()))).unwrap();
    engine.set_retention("d", Some("old"), Some(Duration::from_secs(1))).unwrap();
    engine.drop_table("d", "gone").unwrap();
    clock.set(100 * 86_400_000_000_000);
    engine.flush().unwrap();
    engine.compact().unwrap();
    assert_eq!(number(&engine, "d", "SELECT CAST(sum(x) AS BIGINT) FROM m"), 5);
    let left = objects(&store, "data");
    assert!(left.len() == 1 && left[0].starts_with("some/prefix/data/d/m/day=1970-01-01/"), "{left:?}");
    assert!(engine.verify().unwrap().findings.is_empty());
}

#[test]
fn a_backup_is_a_data_directory_without_a_store() {
    let (dir, backups, store) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), in_memory());
    let engine = open(dir.path(), &store);
    for n in 0..3 {
        write(&engine, "d", &format!("m x={n} {n}"));
        let is_flushed = n < 2;
        if is_flushed {
            engine.flush().unwrap();
        }
        let report = engine.backup(backups.path().join("b")).unwrap();
        let copied = u64::from(is_flushed);
        assert_eq!((report.files, report.copied_files, report.linked_files), ((n + 1).min(2), copied, 0));
        assert_eq!(report.log_bytes > 0, !is_flushed);
    }
    engine.close().unwrap();
    assert!(arc_core::verify(backups.path().join("b")).unwrap().findings.is_empty());
    arc_core::restore(backups.path().join("b"), backups.path().join("restored")).unwrap();
    let restored = Engine::open(backups.path().join("restored")).unwrap();
    assert_eq!(number(&restored, "d", "SELECT count(*) FROM m"), 3);
}

#[test]
fn damage_in_the_store_is_found_and_named() {
    let (dir, store) = (tempfile::tempdir().unwrap(), in_memory());
    let engine = open(dir.path(), &store);
    write(&engine, "d", "m x=1 1\nn x=1 1\no x=1 1");
    engine.close().unwrap();
    let files = objects(&store, "data");
    let put =
        |path: &str, bytes: Vec<u8>| block_on(store.put_opts(&path.into(), bytes.into(), Default::default())).unwrap();
    let mut bytes = block_on(async {
        use object_store::ObjectStoreExt;
        store.get(&files[0].as_str().into()).await.unwrap().bytes().await.unwrap()
    })
    .to_vec();
    let size = bytes.len();
    bytes[10] ^= 1;
    put(&files[0], bytes.clone());
    bytes.truncate(size / 2);
    put(&files[1], bytes);
    block_on(object_store::ObjectStoreExt::delete(store.as_ref(), &files[2].as_str().into())).unwrap();
    put("some/prefix/data/d/m/day=1970-01-01/01ARZ3NDEKTSV4RRFFQ69G5FAV.parquet", Vec::new());
    let report = verify_in_store(dir.path(), storage(&store)).unwrap();
    let text = report.to_string();
    for expected in ["its crc32c is", &format!("the manifest says {size}"), "it is missing", "no manifest names it"] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert_eq!(report.findings.len(), 4, "{text}");
    // While one is missing that the manifest names, those that it does not may be all that is left
    // of some rows.
    drop(open(dir.path(), &store));
    assert_eq!(verify_in_store(dir.path(), storage(&store)).unwrap().findings.len(), 4);
}
