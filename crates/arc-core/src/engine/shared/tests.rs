use std::{io::ErrorKind, sync::Arc, time::Duration};

use crate::{
    Engine, Options, Result,
    sync::Instant,
    vfs::{CrashFs, Fault, FaultFs, Operation},
};

fn engine(faults: &FaultFs) -> Engine {
    let options = Options { compaction: false, flush_after: Duration::from_secs(1 << 30), ..Options::default() };
    Engine::builder("/store").options(options).vfs(Arc::new(faults.clone())).open().unwrap()
}

fn write(engine: &Engine, line: &str) -> Result<u64> {
    engine.write_lp("d", line.as_bytes()).map(|written| written.points)
}

#[test]
fn whoever_loses_the_manifest_closes_the_engine_to_writes_at_once() {
    type Work = fn(&Engine) -> Result<()>;
    let works: [(&str, Work); 4] = [
        ("a flush", |engine| engine.flush().map(drop)),
        ("a retention", |engine| engine.set_retention("d", None, Some(Duration::from_secs(1)))),
        ("a durability", |engine| engine.set_database_durability("d", None)),
        ("a merge", |engine| engine.compact().map(drop)),
    ];
    for (what, work) in works {
        let mut reasons = Vec::new();
        // Some sync of a folder is that of the manifest's; those before it are of folders of data
        // files.
        for nth in 1..20 {
            let faults = FaultFs::new(Arc::new(CrashFs::new()));
            let open = engine(&faults);
            for n in 0..8 {
                write(&open, &format!("m v=1 {n}")).unwrap();
                open.flush().unwrap();
            }
            write(&open, "m v=1 9").unwrap();
            assert_eq!(open.closed_to_writes(), None, "{what}");
            faults.set(Fault::nth(nth, ErrorKind::Other).of(Operation::SyncDir));
            let failed = work(&open).is_err();
            faults.clear();
            let Some(closed) = open.closed_to_writes() else { break };
            assert!(failed, "{what}");
            let is_of_data = closed.contains("data files cannot be relied on");
            reasons.push(closed);
            let refused = write(&open, "m v=1 10").unwrap_err();
            assert_eq!(refused.kind(), crate::ErrorKind::Closed, "{what}");
            let syncs = faults.calls(Operation::SyncDir);
            assert!(work(&open).is_err(), "{what}");
            // Where only the manifest is lost, a merge writes files of other folders before it
            // finds out.
            assert!(!is_of_data || faults.calls(Operation::SyncDir) == syncs, "{what}: no folder is synced again");
            drop(open);
            let again = engine(&faults);
            let table = &again.tables("d").unwrap()[0];
            assert_eq!((table.file_rows + table.buffered_rows, again.closed_to_writes()), (9, None), "{what}");
        }
        assert!(reasons.iter().any(|reason| reason.contains("the manifest is closed")), "{what}: {reasons:?}");
        let of_data = |reason: &String| reason.contains("data files cannot be relied on");
        assert!(reasons.iter().all(|reason| of_data(reason) || reason.contains("the manifest")), "{reasons:?}");
    }
}

/// Waits for something that another thread does soon.
fn wait_until(is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(120), "it never came");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Damages the last frame of the log, and checks that opening says so.
fn check_sealed(image: &crate::vfs::Image) {
    let is_segment = |path: &&std::path::Path| path.extension().is_some_and(|end| end == "wal");
    let path = image.files().find(is_segment).unwrap().to_owned();
    let mut bytes = image.get(&path).unwrap().to_vec();
    let (offset, ..) = *crate::wal::frame_locations(&bytes, &path).last().unwrap();
    bytes[offset + 50] ^= 4;
    let mut damaged = image.clone();
    damaged.set(&path, bytes);
    match Engine::builder("/store").vfs(Arc::new(CrashFs::from_image(&damaged))).open() {
        Err(crate::Error::Corrupt { path: named, offset: at, .. }) => {
            assert_eq!((named, at), (path, offset as u64))
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_log_that_rests_is_sealed_once_and_damage_to_its_last_group_is_found_from_then_on() {
    let fs = CrashFs::new();
    let faults = FaultFs::new(Arc::new(fs.clone()));
    let open = engine(&faults);
    let shared = Arc::clone(open.writer().unwrap());
    let syncs = || shared.counters.read().wal_syncs;
    // The next segment is made meanwhile.
    let calls = || faults.called().iter().filter(|(site, _)| site.name == "#-#.wal").map(|(_, n)| n).sum::<u64>();
    for n in 1..3 {
        write(&open, &format!("m v=1 {n}")).unwrap();
        // One for each write, and one for each seal.
        wait_until(|| syncs() == 2 * n);
        let before = calls();
        check_sealed(&fs.current());
        // Nothing looks again before something is written.
        assert!(!shared.flush_signal.is_watching_log());
        assert_eq!(calls(), before);
    }
    // An engine that is dropped leaves its log sealed, too.
    write(&open, "m v=1 3").unwrap();
    drop(open);
    check_sealed(&fs.current());
}

#[test]
fn a_log_that_is_gone_is_missed() {
    let fs = CrashFs::new();
    let open = engine(&FaultFs::new(Arc::new(fs.clone())));
    let marker = |fs: &CrashFs| String::from_utf8(fs.current().get("/store/ARC".as_ref()).unwrap().to_vec()).unwrap();
    assert_eq!(marker(&fs), "{\"arc_format\":1}\n");
    write(&open, "m v=1 1").unwrap();
    assert_eq!(marker(&fs), "{\"arc_format\":1,\"log\":true}\n");
    // Flushed or not: the last segment stays.
    for flushes in [false, true] {
        if flushes {
            open.flush().unwrap();
        }
        let mut image = fs.current();
        let is_segment = |path: &&std::path::Path| path.extension().is_some_and(|end| end == "wal");
        let segments: Vec<_> = image.files().filter(is_segment).map(std::path::Path::to_owned).collect();
        assert_eq!(segments.len(), 1);
        image.remove(&segments[0]);
        let fs = CrashFs::from_image(&image);
        let error = Engine::builder("/store").vfs(Arc::new(fs.clone())).open().unwrap_err().to_string();
        assert!(error.contains("/store/wal") && error.contains("no segment of the log"), "{error}");
        assert_eq!(fs.current(), image, "a refusal changes nothing");
    }
    drop(open);
    // One of an earlier build is marked when it is opened.
    let mut image = fs.current();
    image.set("/store/ARC".as_ref(), b"{\"arc_format\":1}\n".to_vec());
    let old = CrashFs::from_image(&image);
    drop(engine(&FaultFs::new(Arc::new(old.clone()))));
    assert_eq!(marker(&old), "{\"arc_format\":1,\"log\":true}\n");
}

#[test]
fn what_has_no_file_descriptor_left_can_be_flushed_later() {
    let faults = FaultFs::new(Arc::new(CrashFs::new()));
    let open = engine(&faults);
    write(&open, "m v=1 1").unwrap();
    for operation in [Operation::SyncDir, Operation::CreateNew] {
        // The thread that makes segments ahead of time may make the first of these calls.
        faults.set(Fault::nth(1, ErrorKind::OutOfMemory).of(operation).from_then_on());
        open.flush().unwrap_err();
        assert_eq!(open.closed_to_writes(), None, "{operation:?}");
    }
    faults.clear();
    assert_eq!(open.flush().unwrap().rows, 1);
}

#[test]
fn what_was_refused_for_want_of_room_is_not_there() {
    let faults = FaultFs::new(Arc::new(CrashFs::new()));
    // Nothing is in the log yet, so that the first frame needs a segment.
    let open = engine(&faults);
    let schema = |database: &str| crate::model::TableSchema {
        database: database.into(),
        table: "t".into(),
        has_primary_key: true,
        columns: Vec::new(),
    };
    faults.set(Fault::nth(1, ErrorKind::StorageFull).of(Operation::CreateNew).from_then_on());
    for _ in 0..2 {
        for refused in [open.create_database("d"), open.create_table(&schema("e"))] {
            assert_eq!(refused.unwrap_err().kind(), crate::ErrorKind::StorageFull);
        }
        assert!(!open.databases().iter().any(|database| ["d", "e"].contains(&&*database.name)));
    }
    faults.clear();
    open.create_database("e").unwrap();
    open.create_table(&schema("e")).unwrap();
    open.create_database("x").unwrap();
    drop(open);
    let again = engine(&faults);
    assert_eq!(again.tables("e").unwrap().len(), 1);
    again.create_table(&schema("x")).unwrap();
}

#[test]
fn a_log_that_fails_closes_the_engine_before_the_write_is_answered() {
    let faults = FaultFs::new(Arc::new(CrashFs::new()));
    let open = engine(&faults);
    write(&open, "m v=1 1").unwrap();
    faults.set(Fault::nth(1, ErrorKind::Other).of(Operation::SyncData));
    assert_eq!(write(&open, "m v=1 2").unwrap_err().kind(), crate::ErrorKind::Unknown);
    assert!(open.closed_to_writes().unwrap().contains("the log failed"));
    open.close().unwrap();
    assert!(open.closed_to_writes().is_some());
}

#[test]
fn a_log_without_file_descriptors_refuses_writes_for_now() {
    let faults = FaultFs::new(Arc::new(CrashFs::new()));
    let options = Options { compaction: false, wal_segment_bytes: 64 << 10, ..Options::default() };
    let open = Engine::builder("/store").options(options).vfs(Arc::new(faults.clone())).open().unwrap();
    let line = format!("m s=\"{}\"", "x".repeat(20 << 10));
    assert_eq!(write(&open, &line).unwrap(), 1);
    faults.set(Fault::nth(1, ErrorKind::OutOfMemory).of(Operation::SyncDir).from_then_on());
    let mut stored = 1;
    let refused = loop {
        match write(&open, &line) {
            Ok(_) => stored += 1,
            Err(refused) => break refused,
        }
    };
    assert_eq!((refused.kind(), open.closed_to_writes()), (crate::ErrorKind::Busy, None), "{refused}");
    faults.clear();
    for _ in 0..10 {
        stored += write(&open, &line).unwrap();
    }
    drop(open);
    let table = &engine(&faults).tables("d").unwrap()[0];
    assert_eq!(table.file_rows + table.buffered_rows, stored);
}
