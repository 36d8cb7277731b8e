//! A store that fails, hangs, or is gone: nothing is acknowledged that is not there, and what could not
//! be put is made up for.

use std::time::{Duration, Instant};

use super::{
    builder, check,
    double::{ALL, How, Shelf},
    open, stored, submit, write,
};
use crate::{Durability, Engine, ErrorKind, WriteOptions};

#[test]
fn whichever_way_puts_fail_a_write_is_answered_when_it_is_there() {
    for how in ALL {
        let (shelf, dir, other) = (Shelf::new(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let store = shelf.seen(1);
        let engine = builder(dir.path(), &store, Duration::from_millis(100)).open().unwrap();
        write(&engine, 0, Durability::Remote).unwrap();
        store.force(Some(how));
        let pending = submit(&engine, 1, Durability::Remote).unwrap();
        std::thread::sleep(Duration::from_millis(20));
        store.force(None);
        match pending.wait() {
            Ok(_) => {}
            // It has hung for as long as anybody waits.
            Err(error) => assert!(matches!(how, How::Hangs | How::HangsAfter | How::Late), "{how:?}: {error}"),
        }
        write(&engine, 2, Durability::Remote).unwrap();
        let stats = engine.stats();
        assert!(stats.remote_puts >= 3 && stats.remote_bytes > 0 && stats.remote_put_ns > 0, "{how:?}: {stats:?}");
        shelf.settle();
        store.set_gone(true);
        drop(engine);
        let engine = open(other.path(), &shelf.seen(2));
        check(&stored(&engine), &[0, 1, 2], 3, &format!("{how:?}"));
    }
}

/// Writes of other durabilities are taken as ever; those that wait for the store are told so, and are there
/// once it is back.
#[test]
fn while_the_store_is_gone_others_are_acknowledged_and_remote_writes_are_told_so() {
    let (shelf, dir, other) = (Shelf::new(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = shelf.seen(1);
    let engine = builder(dir.path(), &store, Duration::from_millis(150)).open().unwrap();
    write(&engine, 0, Durability::Remote).unwrap();
    store.set_gone(true);
    let keyed = WriteOptions::new().durability(Durability::Remote).idempotency_key("k");
    let keyed = |engine: &Engine| engine.submit_lp("d", "m x=1 1".into(), &keyed).unwrap();
    let (remote, with_key, same_key) =
        (submit(&engine, 1, Durability::Remote).unwrap(), keyed(&engine), keyed(&engine));
    for (n, durability) in [(2, Durability::Memory), (3, Durability::Process), (4, Durability::Disk)] {
        write(&engine, n, durability).unwrap();
    }
    for pending in [remote, with_key, same_key] {
        let error = pending.wait().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unknown, "{error}");
        assert!(error.to_string().starts_with("it is stored on the disk of this machine"), "{error}");
    }
    assert_eq!(engine.closed_to_writes(), None);
    // The key is known, and is no proof that the points are in the store.
    assert_eq!(keyed(&engine).wait().unwrap_err().kind(), ErrorKind::Unknown);
    store.set_gone(false);
    let written = keyed(&engine).wait().unwrap();
    assert!(written.replayed && written.durability == Durability::Remote, "{written:?}");
    write(&engine, 5, Durability::Remote).unwrap();
    store.set_gone(true);
    drop(engine);
    let engine = open(other.path(), &shelf.seen(2));
    check(&stored(&engine), &[0, 1, 3, 4, 5], 6, "after the outage");
    assert!(keyed(&engine).wait().unwrap().replayed, "so is the key");
}

/// A restart does not make a receipt of a write that never came to the store one that says so.
#[test]
fn a_key_of_a_write_that_is_not_in_the_store_yet_waits_for_it_after_a_restart() {
    let (shelf, dir, other) = (Shelf::new(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let keyed = WriteOptions::new().durability(Durability::Remote).idempotency_key("k");
    let store = shelf.seen(1);
    let engine = builder(dir.path(), &store, Duration::from_millis(50)).open().unwrap();
    write(&engine, 0, Durability::Remote).unwrap();
    store.set_gone(true);
    let pending = engine.submit_lp("d", "m x=1 1".into(), &keyed).unwrap();
    assert_eq!(pending.wait().unwrap_err().kind(), ErrorKind::Unknown);
    drop(engine);
    let store = shelf.seen(2);
    let engine = open(dir.path(), &store);
    let before = shelf.names("p/wal").len();
    assert!(engine.submit_lp("d", "m x=1 1".into(), &keyed).unwrap().wait().unwrap().replayed);
    assert_eq!(shelf.names("p/wal").len(), before + 1, "it was put now");
    store.set_gone(true);
    drop(engine);
    let engine = open(other.path(), &shelf.seen(3));
    assert_eq!(engine.tables("d").unwrap().iter().map(|table| table.buffered_rows).sum::<u64>(), 2);
}

/// A put a group, and one at a time: what comes while one is on its way goes together with the next.
#[test]
fn a_write_waits_for_two_puts_at_most_and_others_for_none() {
    let (shelf, dir) = (Shelf::new(), tempfile::tempdir().unwrap());
    let store = shelf.seen(1);
    let engine = open(dir.path(), &store);
    write(&engine, 0, Durability::Remote).unwrap();
    let before = engine.stats().remote_puts;
    store.stop_at(1, false);
    let first = submit(&engine, 1, Durability::Remote).unwrap();
    while !store.is_stopped() {
        std::thread::yield_now();
    }
    let later: Vec<_> = (2..50).map(|n| submit(&engine, n, Durability::Remote).unwrap()).collect();
    // Meanwhile, without the store; and what was sent before them is in the log then.
    for n in 50..53 {
        write(&engine, n, Durability::Disk).unwrap();
    }
    store.resume();
    for pending in std::iter::once(first).chain(later) {
        assert_eq!(pending.wait().unwrap().durability, Durability::Remote);
    }
    assert_eq!(engine.stats().remote_puts - before, 2);
}

#[test]
fn puts_a_second_are_bounded() {
    let (shelf, dir) = (Shelf::new(), tempfile::tempdir().unwrap());
    let store = shelf.seen(1);
    let mut options = crate::Options { compaction: false, ..crate::Options::default() };
    options.remote_interval = Duration::from_millis(100);
    let engine = builder(dir.path(), &store, Duration::from_secs(60)).options(options).open().unwrap();
    let begun = Instant::now();
    for n in 0..4 {
        write(&engine, n, Durability::Remote).unwrap();
    }
    assert!(begun.elapsed() >= Duration::from_millis(300), "{:?}", begun.elapsed());
    assert_eq!(engine.stats().remote_puts, 4);
    engine.close().unwrap();
}
