use std::{
    io,
    path::Path,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use crate::{
    Engine, ErrorKind, Options,
    vfs::{CrashFs, Fault, FaultFs, Operation, Vfs as _},
};

fn options() -> Options {
    Options { compaction: false, flush_after: Duration::from_secs(1 << 30), ..Options::default() }
}

fn open(faults: &FaultFs) -> Engine {
    Engine::builder("/store").options(options()).vfs(Arc::new(faults.clone())).open().unwrap()
}

#[test]
fn nothing_is_flushed_once_another_engine_may_have_the_directory() {
    let fs = CrashFs::new();
    let faults = FaultFs::new(Arc::new(fs.clone()));
    let old = open(&faults);
    assert_eq!(old.write_lp("d", b"m v=1 1").unwrap().points, 1);
    faults.set(Fault::nth(1, io::ErrorKind::StorageFull).of(Operation::CreateNew).from_then_on());
    assert_eq!(old.close().unwrap_err().kind(), ErrorKind::StorageFull, "what was frozen is in no file");
    faults.clear();
    let new = open(&faults);
    let before = fs.operations();
    assert_eq!(old.flush().unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(fs.operations(), before, "it writes nothing");
    new.flush().unwrap();
    let tables = new.tables("d").unwrap();
    assert_eq!((tables[0].file_rows, new.closed_to_writes()), (1, None));
}

#[test]
fn a_schema_that_is_just_coming_goes_to_the_manifest_with_the_files_that_need_it() {
    let engine = open(&FaultFs::new(Arc::new(CrashFs::new())));
    assert_eq!(engine.write_lp("d", b"m v=1 1").unwrap().points, 1);
    engine.flush().unwrap();
    assert_eq!(engine.write_lp("d", b"m v=1,w=2 2").unwrap().points, 1);
    let table = engine.table("d", "m").unwrap();
    // As it is between the two steps of a change.
    table.schema_changed.store(false, Ordering::Release);
    engine.flush().unwrap();
    let manifest = engine.writer().unwrap().manifest.lock();
    let state = manifest.state().table("d", "m").unwrap();
    assert!(state.schema.columns.iter().any(|column| &*column.name == "w"), "{:?}", state.schema);
}

#[test]
fn days_of_one_table_do_not_each_cost_a_file_and_its_syncs() {
    let count = |days: i64| {
        let faults = FaultFs::new(Arc::new(CrashFs::new()));
        let engine = open(&faults);
        let write = |lines: String| assert!(engine.write_lp("d", lines.as_bytes()).unwrap().points > 0);
        write("m v=1 0".to_owned());
        engine.flush().unwrap();
        let work = || {
            let calls =
                |operations: &[Operation]| operations.iter().map(|operation| faults.calls(*operation)).sum::<u64>();
            [calls(&[Operation::SyncAll, Operation::SyncData, Operation::SyncDir]), calls(&[Operation::CreateNew])]
        };
        let before = work();
        write((1..=days).map(|day| format!("m v=1 {}\n", day * 86_400_000_000_000)).collect());
        assert_eq!(engine.flush().unwrap().files.len(), usize::try_from(days).unwrap());
        let [syncs, files] = work();
        let table = &engine.tables("d").unwrap()[0];
        assert_eq!(table.file_rows, 1 + u64::try_from(days).unwrap());
        (syncs - before[0], files - before[1])
    };
    let (syncs, files) = count(100);
    let (more_syncs, more_files) = count(1_000);
    // A spare segment of the log may be made meanwhile, or not.
    assert!(more_syncs.abs_diff(syncs) < 5 && more_files.abs_diff(files) < 5, "{more_syncs} syncs, {more_files} files");
    assert!(syncs < 20 && files < 10, "{syncs} syncs, {files} files");
    // A few days are files of their own, which other programs find.
    assert!(count(20).1 >= 20);
}

#[test]
fn what_a_manifest_without_its_newest_commits_does_not_name_is_kept() {
    let fs = CrashFs::new();
    let faults = FaultFs::new(Arc::new(fs.clone()));
    let open = || {
        let options =
            Options { compaction_files: 2, compaction_grace: Duration::ZERO, history: Duration::ZERO, ..options() };
        Engine::builder("/store").options(options).vfs(Arc::new(faults.clone())).open().unwrap()
    };
    let engine = open();
    for time in 0..2 {
        assert_eq!(engine.write_lp("d", format!("m,h=a v=1 {time}").as_bytes()).unwrap().points, 1);
        engine.flush().unwrap();
    }
    assert_eq!(engine.compact().unwrap().removed_files, 2, "the merged file is the only one");
    let merged = engine.table("d", "m").unwrap().stored().files[0].path.clone();
    engine.close().unwrap();
    drop(engine);
    let lost = |path: &str| fs.read(&Path::new("/store/lost").join(path)).is_ok();
    // As it is, nothing is kept.
    open().close().unwrap();
    assert!(!lost(&merged));
    let meta = Path::new("/store/meta/0");
    let commits = fs.list(meta).unwrap();
    fs.remove_file(&meta.join(&commits.last().unwrap().name)).unwrap();
    drop(open());
    assert!(lost(&merged), "its rows are nowhere else");
}
