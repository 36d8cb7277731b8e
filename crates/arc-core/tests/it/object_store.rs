//! An engine whose data files and manifest are in an object store.

use std::{path::Path, sync::Arc};

use arc_core::{Engine, store::ObjectStorage};
use object_store::memory::InMemory;

use crate::support::{number, quiet, write};

pub(crate) fn open(path: &Path, store: &Arc<InMemory>) -> Engine {
    quiet(path).object_store(ObjectStorage::new(Arc::clone(store) as _, "some/prefix")).open().unwrap()
}

#[test]
fn points_are_there_after_flush_and_restart() {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(InMemory::new());
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
    assert!(!dir.path().join("data").exists());
}
