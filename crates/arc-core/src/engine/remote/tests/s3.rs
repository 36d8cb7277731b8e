//! Durability `remote` on an S3 server, which `scripts/s3` starts.

use std::time::{Duration, Instant};

use crate::{
    Durability, Engine, Options,
    engine::remote::tests::{check, stored, write},
    store::{ObjectStorage, test_bucket},
};

fn open(path: &std::path::Path, prefix: &str) -> Engine {
    let options = Options { remote_interval: Duration::ZERO, compaction: false, ..Options::default() };
    let storage = ObjectStorage::new(test_bucket(), prefix).take_over(true);
    Engine::builder(path).options(options).object_store(storage).open().unwrap()
}

#[test]
#[ignore = "needs an S3 server; run scripts/s3"]
fn what_was_acknowledged_on_s3_is_there_for_the_next_machine() {
    let [first, second] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let old = open(first.path(), "remote/life");
    let mut took: Vec<Duration> = (0..100)
        .map(|n| {
            let begun = Instant::now();
            write(&old, n, Durability::Remote).unwrap();
            begun.elapsed()
        })
        .collect();
    took.sort();
    let stats = old.stats();
    let put = Duration::from_nanos(stats.remote_put_ns / stats.remote_puts);
    println!("a put took {put:?}, a write {:?} (p50), {:?} (p99)", took[50], took[99]);
    assert!(took[50] <= 2 * put, "p50 {:?}, a put {put:?}", took[50]);
    let begun = Instant::now();
    let new = open(second.path(), "remote/life");
    println!("taken over, with 100 groups, in {:?}", begun.elapsed());
    check(&stored(&new), &(0..100).collect::<Vec<_>>(), 100, "taken over");
    let error = write(&old, 100, Durability::Remote).unwrap_err();
    assert!(error.to_string().contains("has taken the object store over"), "{error}");
    write(&new, 101, Durability::Remote).unwrap();
    new.flush().unwrap();
    let left = object_store_list("remote/life/wal");
    assert!(left <= 2, "the fence and the newest: {left}");
}

/// More than one request removes, and more than one page lists.
#[test]
#[ignore = "needs an S3 server; run scripts/s3"]
fn a_flush_removes_more_groups_than_one_request_can() {
    let [first, second] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let old = open(first.path(), "remote/many");
    for n in 0..1_100 {
        write(&old, n, Durability::Remote).unwrap();
    }
    let new = open(second.path(), "remote/many");
    check(&stored(&new), &(0..1_100).collect::<Vec<_>>(), 1_100, "taken over");
    new.flush().unwrap();
    assert_eq!(object_store_list("remote/many/wal"), 1);
}

fn object_store_list(prefix: &str) -> usize {
    use futures::StreamExt;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(test_bucket().list(Some(&prefix.into())).collect::<Vec<_>>()).len()
}
