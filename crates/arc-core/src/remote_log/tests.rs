//! The remote log over a store in memory: who puts what, who is fenced, and what is read.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt, executor::block_on};
use object_store::{ObjectStore, ObjectStoreExt, PutPayload, memory::InMemory, path::Path as StorePath};

use super::*;
use crate::{
    ErrorKind,
    store::{StoreLocation, StoreOptions},
    wal::{Frame, body_checksum},
};

const PREFIX: &str = "p/wal/0";

fn location(store: &Arc<InMemory>) -> Arc<dyn ObjectLocation> {
    let options = StoreOptions { tries: 2, first_pause: Duration::ZERO, ..StoreOptions::default() };
    Arc::new(StoreLocation::new(Arc::clone(store) as _, PREFIX.into(), options).unwrap())
}

fn writer(epoch: u64) -> LogWriter {
    LogWriter { epoch, directory: format!("directory-{epoch}") }
}

/// Frames from `first` to `last`, whose bodies say who has written them.
fn group(epoch: u64, first: u64, last: u64) -> Group {
    let mut group = Group::new(epoch, SequenceNumber(first - 1));
    for seq in first..=last {
        let body = format!("{epoch}:{seq}");
        let (body, body_crc) = (body.as_bytes(), body_checksum(body.as_bytes()));
        group.push(&Frame { seq: SequenceNumber(seq), kind: 16, meta: b"m", body, body_crc }).unwrap();
    }
    group
}

fn take_over(store: &Arc<InMemory>, epoch: u64) -> (RemoteLog, u64) {
    let (log, last) = RemoteLog::take_over(location(store), writer(epoch)).unwrap();
    (log, last.0)
}

fn read(log: &RemoteLog, after: u64) -> Result<Vec<String>> {
    let mut found = Vec::new();
    log.read_after(SequenceNumber(after), &mut |frame| {
        found.push(String::from_utf8(frame.body.to_vec()).unwrap());
        Ok(())
    })?;
    Ok(found)
}

fn names(store: &InMemory) -> Vec<u64> {
    let listed = block_on(store.list(Some(&PREFIX.into())).collect::<Vec<_>>());
    listed.into_iter().map(|found| parse(found.unwrap().location.filename().unwrap()).unwrap()).collect()
}

fn key(number: u64) -> StorePath {
    StorePath::from(PREFIX).join(name(number))
}

#[test]
fn a_successor_reads_what_was_put_and_goes_on() {
    let store = Arc::new(InMemory::new());
    let mut first = RemoteLog::begin(location(&store), writer(3));
    first.put(&group(3, 1, 2)).unwrap();
    first.put(&group(3, 3, 5)).unwrap();
    let (mut second, last) = take_over(&store, 7);
    assert_eq!(last, 5);
    for (after, expected) in [(0, &["3:1", "3:2", "3:3", "3:4", "3:5"][..]), (3, &["3:4", "3:5"]), (5, &[])] {
        assert_eq!(read(&second, after).unwrap(), expected, "after {after}");
    }
    second.put(&group(7, 6, 6)).unwrap();
    let (third, last) = take_over(&store, 9);
    assert_eq!((last, read(&third, 4).unwrap()), (6, vec!["3:5".to_owned(), "7:6".to_owned()]));
    assert_eq!(names(&store), [1, 2, 3, 4, 5], "two groups, a fence, a group, a fence");
}

#[test]
fn who_is_fenced_is_told_by_whom_and_puts_nothing_more() {
    let store = Arc::new(InMemory::new());
    let mut first = RemoteLog::begin(location(&store), writer(3));
    first.put(&group(3, 1, 1)).unwrap();
    let (mut second, _) = take_over(&store, 7);
    second.put(&group(7, 2, 2)).unwrap();
    for _ in 0..2 {
        let NotPut::Fenced(takeover) = first.put(&group(3, 2, 2)).unwrap_err() else { panic!("it is not fenced") };
        assert!(takeover.to_string().contains("directory-7 has taken the object store over (commit 7"), "{takeover}");
    }
    let (third, _) = take_over(&store, 9);
    assert_eq!(read(&third, 0).unwrap(), ["3:1", "7:2"]);
    // One that has claimed the manifest and then stalled comes after who has claimed it since.
    let late = RemoteLog::take_over(location(&store), writer(8)).unwrap_err();
    assert_eq!(late.kind(), ErrorKind::Closed, "{late}");
    assert!(late.to_string().contains("directory-9"), "{late}");
}

/// A put that is on its way while the store is taken over comes before the fence, and is part of the
/// log, or after it, and is refused: there is no third.
#[test]
fn a_put_that_comes_late_is_before_the_fence_or_refused() {
    for epoch_of_late in [3_u64, 4] {
        let store = Arc::new(InMemory::new());
        let mut first = RemoteLog::begin(location(&store), writer(epoch_of_late));
        first.put(&group(epoch_of_late, 1, 1)).unwrap();
        // As the listing of the successor has it: without the second.
        let mut second = RemoteLog::begin(location(&store), writer(7));
        second.next = 2;
        first.put(&group(epoch_of_late, 2, 3)).unwrap();
        let found = second.put_fence(SequenceNumber(1)).unwrap().unwrap();
        assert_eq!((found.first_seq, found.last_seq), (SequenceNumber(2), SequenceNumber(3)));
        let (second, last) = take_over(&store, 7);
        assert_eq!((last, read(&second, 1).unwrap().len()), (3, 2));
        assert!(matches!(first.put(&group(epoch_of_late, 4, 4)), Err(NotPut::Fenced(_))));
    }
}

#[test]
fn what_is_flushed_is_removed_but_for_the_newest_and_fences() {
    let store = Arc::new(InMemory::new());
    let mut first = RemoteLog::begin(location(&store), writer(3));
    for seq in 1..=4 {
        first.put(&group(3, seq, seq)).unwrap();
    }
    first.objects().release(SequenceNumber(2));
    assert_eq!(names(&store), [3, 4]);
    first.objects().release(SequenceNumber(4));
    assert_eq!(names(&store), [4], "numbers do not begin anew");
    let (mut second, last) = take_over(&store, 7);
    assert_eq!((last, read(&second, 4).unwrap().len()), (4, 0));
    // What was flushed and never put is passed over.
    second.put(&group(7, 9, 9)).unwrap();
    second.put(&group(7, 10, 10)).unwrap();
    second.objects().release(SequenceNumber(9));
    assert_eq!(names(&store), [5, 7], "the fence stays, and the newest");
    assert_eq!(second.objects().count(), 2);
    let (third, last) = take_over(&store, 8);
    assert_eq!((last, read(&third, 9).unwrap()), (10, vec!["7:10".to_owned()]));
    third.objects().release(SequenceNumber(10));
    assert_eq!(names(&store), [5, 8], "fences are told by their size");
}

#[test]
fn frames_that_are_missing_or_damaged_are_named() {
    let damaged = |act: &dyn Fn(&InMemory), after: u64| {
        let store = Arc::new(InMemory::new());
        let mut first = RemoteLog::begin(location(&store), writer(3));
        for seq in 1..=40 {
            first.put(&group(3, seq, seq)).unwrap();
        }
        act(&store);
        let (second, _) = take_over(&store, 7);
        read(&second, after)
    };
    let remove = |number: u64| move |store: &InMemory| block_on(store.delete(&key(number))).unwrap();
    let cut = |store: &InMemory| {
        let bytes = block_on(async { store.get(&key(9)).await.unwrap().bytes().await.unwrap() });
        let half = PutPayload::from(bytes.slice(..bytes.len() - 8));
        block_on(store.put(&key(9), half)).unwrap();
    };
    for (act, after, expected) in [
        (&remove(1) as &dyn Fn(&InMemory), 0, Some("is damaged at byte 0: it is missing")),
        (&remove(1), 1, None),
        (&remove(20), 5, Some("00000000000000000020 is damaged at byte 0: it is missing")),
        (&remove(20), 20, None),
        (&cut, 8, Some("its frames do not have the length")),
        (&cut, 9, None),
    ] {
        match (damaged(act, after), expected) {
            (Ok(found), None) => assert_eq!(found.len() as u64, 40 - after, "after {after}"),
            (Err(error), Some(expected)) => {
                assert_eq!(error.kind(), ErrorKind::Corrupt);
                assert!(error.to_string().contains(expected), "{error}");
            }
            (found, _) => panic!("after {after}: {found:?}"),
        }
    }
    // Two writers that do not agree.
    let store = Arc::new(InMemory::new());
    let mut first = RemoteLog::begin(location(&store), writer(3));
    first.put(&group(3, 1, 4)).unwrap();
    first.put(&group(3, 3, 5)).unwrap();
    let error = read(&take_over(&store, 7).0, 0).unwrap_err();
    assert!(error.to_string().contains("it ends with frame 4, and the next begins with 3"), "{error}");
}
