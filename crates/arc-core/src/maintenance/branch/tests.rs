//! A branch is whole or not there, whatever happens while it is made; neither it nor the directory
//! that it began as minds what becomes of the other.

use std::{
    io::ErrorKind,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use super::*;
use crate::{
    Comparison, Durability, EngineBuilder, Options, Predicate, VerifyReport, WriteOptions,
    maintenance::{
        copied_store::{ROOT, TARGET, counted, disk, read, write},
        verify::{files_below, verify_on},
    },
    vfs::{CrashFs, Fault, FaultFs, Image, Operation, Vfs},
    wal::tests::files_but_spares,
};

fn builder(vfs: Arc<dyn Vfs>, root: &str) -> EngineBuilder {
    let options = Options {
        wal_segment_bytes: 64 << 10,
        flush_after: Duration::from_secs(1 << 30),
        compaction: false,
        compaction_grace: Duration::ZERO,
        history: Duration::ZERO,
        ..Options::default()
    };
    Engine::builder(root).options(options).vfs(vfs)
}

fn engine(vfs: Arc<dyn Vfs>, root: &str) -> Engine {
    builder(vfs, root).open().unwrap()
}

/// A disk with both parents, and an engine in the one.
fn store() -> (CrashFs, Engine) {
    let fs = disk();
    let engine = engine(Arc::new(fs.clone()), ROOT);
    (fs, engine)
}

/// Writes a point that fills half a segment of the log.
fn write_large(engine: &Engine, n: i64) {
    let text = "x".repeat(30 << 10);
    let line = format!("m,host=h{} n={n}i,text=\"{text}\" {n}", n % 3);
    assert_eq!(engine.write_lp("d", line.as_bytes()).unwrap().points, 1);
}

/// The rows of a data directory, in files and in its log.
fn rows(fs: &dyn Vfs, root: &str) -> u64 {
    let report = verify_on(fs, Path::new(root)).unwrap();
    assert!(report.is_clean(), "{report}");
    report.totals.rows + report.totals.points
}

#[test]
fn a_branch_begins_with_all_points_and_both_go_their_own_ways() {
    let (fs, open) = store();
    write(&open, 1);
    open.flush().unwrap();
    write(&open, 2);
    let memory = WriteOptions::new().durability(Durability::Memory);
    assert_eq!(open.submit_lp("d", "m n=3i 3".into(), &memory).unwrap().wait().unwrap().points, 1);
    let report = open.branch(TARGET).unwrap();
    assert_eq!((report.files, report.rows, report.linked_files, report.copied_files), (2, 3, 2, 0), "{report:?}");
    write(&open, 4);
    let with_log = open.branch("/copies/b").unwrap();
    assert!((with_log.files, with_log.frames) == (2, 1) && with_log.number > 0, "{with_log:?}");
    assert_eq!((rows(&fs, TARGET), rows(&fs, "/copies/b")), (3, 4));
    assert_eq!((read(&fs, TARGET), read(&fs, "/copies/b")), (3, 4), "also by who does not open it for writing");
    let branch = engine(Arc::new(fs.clone()), TARGET);
    (10..15).for_each(|n| write(&branch, n));
    branch.flush().unwrap();
    branch.delete("d", "m", &Predicate::compare("host", Comparison::Equal, "h1")).unwrap();
    branch.flush().unwrap();
    branch.compact().unwrap();
    let of_branch = counted(&branch);
    assert_eq!(counted(&open), 4);
    // What one directory removes has another name in the other.
    open.drop_database("d").unwrap();
    open.compact().unwrap();
    open.close().unwrap();
    for file in files_below(&fs, Path::new(ROOT)).unwrap() {
        fs.remove_file(&file).unwrap();
    }
    assert_eq!(counted(&branch), of_branch);
    branch.close().unwrap();
    assert_eq!((rows(&fs, TARGET), rows(&fs, "/copies/b")), (of_branch, 4));
    assert_eq!(counted(&engine(Arc::new(fs.clone()), "/copies/b")), 4);
    let record = String::from_utf8(fs.read(&Path::new(TARGET).join("BRANCH")).unwrap()).unwrap();
    assert_eq!(record, format!("{{\"arc_branch\":1,\"source\":\"/store\",\"number\":{}}}\n", report.number));
}

#[test]
fn a_branch_of_a_snapshot_has_what_that_has_and_no_snapshots() {
    let (fs, open) = store();
    write(&open, 1);
    open.create_snapshot("first").unwrap();
    write(&open, 2);
    open.drop_table("d", "m").unwrap();
    open.compact().unwrap();
    let first = PastMoment::Snapshot("first".into());
    let reader = builder(Arc::new(fs.clone()), ROOT).open_reader().unwrap();
    for (engine_of, target) in [(&open, TARGET), (&reader, "/copies/b")] {
        let report = engine_of.branch_at(target, &first).unwrap();
        assert_eq!((report.linked_files, report.frames), (1, 0), "{target}");
        assert_eq!(rows(&fs, target), 1);
        let branch = engine(Arc::new(fs.clone()), target);
        assert!(branch.snapshots().is_empty());
        let error = engine_of.branch_at("/copies/c", &PastMoment::Snapshot("none".into())).unwrap_err();
        assert!(matches!(error, Error::SnapshotNotFound { .. }), "{error}");
    }
    assert!(fs.list(Path::new("/copies/c")).is_err(), "nothing is made for what is not there");
}

#[test]
fn where_there_are_no_links_files_are_copied_and_compared() {
    let (fs, open) = store();
    write(&open, 1);
    open.close().unwrap();
    let faulty = FaultFs::new(Arc::new(fs.clone()));
    faulty.set(Fault::nth(1, ErrorKind::CrossesDevices).of(Operation::HardLink).from_then_on());
    let open = engine(Arc::new(faulty), ROOT);
    let report = open.branch(TARGET).unwrap();
    assert_eq!((report.linked_files, report.copied_files, report.copied_bytes), (0, 1, report.bytes));
    assert_eq!(rows(&fs, TARGET), 1);
    let file = Path::new(ROOT).join(&open.data_files("d", "m").unwrap()[0].path);
    fs.open(&file).unwrap().write_all_at(&[b"damage"], 9).unwrap();
    let error = open.branch("/copies/b").unwrap_err();
    assert!(matches!(&error, Error::Corrupt { path, .. } if *path == file), "{error}");
    assert!(verify_on(&fs, Path::new("/copies/b")).is_err(), "half a branch is no data directory");
    let left = files_below(&fs, Path::new("/copies/b")).unwrap();
    assert!(left.iter().all(|path| path.ends_with("LOCK") || path.ends_with("BRANCH")), "{left:?}");
}

#[test]
fn a_branch_goes_nowhere_else() {
    let (fs, open) = store();
    write(&open, 1);
    fs.create_dir_all(Path::new("/full")).unwrap();
    fs.create_new(Path::new("/full/x")).unwrap();
    open.branch(TARGET).unwrap();
    open.backup("/copies/backup").unwrap();
    for (target, expected) in [
        ("/store/branch", "one inside the other"),
        ("/store", "one inside the other"),
        ("/", "one inside the other"),
        ("/full", "it is not empty: it has /full/x"),
        (TARGET, "it is a data directory already"),
        ("/copies/backup", "it is a data directory already"),
    ] {
        let before = files_but_spares(&fs);
        let error = open.branch(target).unwrap_err();
        assert!(matches!(error, Error::BadTarget { .. }) && error.to_string().contains(expected), "{error}");
        assert_eq!(files_but_spares(&fs), before, "{target}");
    }
    // What a new volume has is nobody's.
    fs.create_dir_all(Path::new("/copies/fresh/lost+found/x")).unwrap();
    fs.create_new(Path::new("/copies/fresh/lost+found/#1")).unwrap();
    fs.create_new(Path::new("/copies/fresh/.DS_Store")).unwrap();
    open.branch("/copies/fresh").unwrap();
    fs.create_dir_all(Path::new("/copies/c")).unwrap();
    let used = crate::engine::lock(&fs, Path::new("/copies/c")).unwrap();
    assert!(matches!(open.branch("/copies/c").unwrap_err(), Error::InUse { .. }));
    drop(used);
    // What was being written there when its lock was lost is another's.
    fs.create_new(Path::new("/copies/c/BRANCH")).unwrap().write_all_at(&[b"{"], 0).unwrap();
    assert!(matches!(open.branch("/copies/c").unwrap_err(), Error::Corrupt { .. }));
}

/// What a branch may be: absent, or whole with all of its rows.
fn is_whole(image: &Image, root: &str, expected: u64, case: &str) -> bool {
    let fs = CrashFs::from_image(image);
    match verify_on(&fs, Path::new(root)) {
        Ok(report) => {
            assert!(report.is_clean(), "{case}: {report}");
            let VerifyReport { totals, .. } = report;
            assert_eq!(totals.rows + totals.points, expected, "{case}");
            assert_eq!(counted(&engine(Arc::new(fs), root)), expected, "{case}");
            true
        }
        Err(error) => {
            assert!(matches!(error, Error::NotADataDirectory { .. }), "{case}: {error}");
            false
        }
    }
}

#[test]
fn a_power_cut_leaves_the_origin_and_a_whole_branch_or_one_that_is_made_anew() {
    let (fs, open) = store();
    write(&open, 1);
    open.flush().unwrap();
    (2..6).for_each(|n| write(&open, n));
    let before = fs.operations();
    let report = open.branch(TARGET).unwrap();
    assert!((report.linked_files, report.frames) == (1, 4), "{report:?}");
    let after = fs.operations();
    write(&open, 6);
    let mut made_anew = 0;
    for cut in fs.power_cuts().skip(before) {
        for image in cut.images(7, 3) {
            let at = cut.operations();
            let case = format!("after operation {at} of {before} to {after}");
            let there = is_whole(&image, TARGET, 5, &case);
            assert!(there || at < after, "{case}");
            if !there {
                // Another try makes it, whatever this one has left.
                let fs = CrashFs::from_image(&image);
                let origin = engine(Arc::new(fs.clone()), ROOT);
                let expected = counted(&origin);
                origin.branch(TARGET).unwrap_or_else(|error| panic!("{case}: {error}"));
                assert!(expected >= 5 && rows(&fs, TARGET) == expected, "{case}");
                made_anew += 1;
            }
        }
    }
    assert!(made_anew > 40, "{made_anew}");
}

#[test]
fn a_call_that_fails_leaves_nothing_behind_that_another_try_minds() {
    for nth in 1.. {
        let (fs, open) = store();
        write_large(&open, 1);
        open.close().unwrap();
        let faulty = FaultFs::new(Arc::new(fs.clone()));
        let open = engine(Arc::new(faulty.clone()), ROOT);
        (2..5).for_each(|n| write_large(&open, n));
        faulty.set(Fault::nth(nth, ErrorKind::Other));
        let made = open.branch(TARGET);
        let has_failed = faulty.failed().values().sum::<u64>() > 0;
        faulty.clear();
        let case = format!("call {nth}: {made:?}");
        let there = is_whole(&fs.current(), TARGET, 4, &case);
        assert!(there || made.is_err(), "{case}");
        if !there {
            open.branch(TARGET).unwrap_or_else(|error| panic!("{case}: {error}"));
            assert_eq!(rows(&fs, TARGET), 4, "{case}");
        }
        assert_eq!(counted(&open), 4, "{case}");
        if !has_failed {
            assert!(nth > 20, "{nth}");
            return;
        }
    }
}

/// Ends a thread when the test ends, however it does.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn a_reader_makes_branches_of_what_a_busy_writer_has_acknowledged() {
    let (fs, open) = store();
    write(&open, 0);
    let reader = builder(Arc::new(fs.clone()), ROOT).open_reader().unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let over = Over(&is_over);
        scope.spawn(|| {
            for n in 1.. {
                write(&open, n);
                if n % 3 == 0 {
                    open.flush().unwrap();
                }
                if n % 10 == 0 {
                    open.compact().unwrap();
                }
                if is_over.load(Ordering::SeqCst) {
                    break;
                }
            }
        });
        let branches: Vec<(String, u64)> = (0..8)
            .map(|n| {
                let target = format!("/copies/{n}");
                let least = counted(&reader);
                reader.branch(&target).unwrap();
                (target, least)
            })
            .collect();
        drop(over);
        for (target, least) in branches {
            assert!(rows(&fs, &target) >= least, "{target}");
        }
    });
}

#[test]
fn repair_and_verification_know_a_branch_that_was_never_finished() {
    let (fs, open) = store();
    write(&open, 1);
    open.flush().unwrap();
    open.branch(TARGET).unwrap();
    let root = Path::new(TARGET);
    fs.remove_file(&root.join("ARC")).unwrap();
    let report = verify_on(&fs, root).unwrap();
    assert!(!report.is_clean() && report.to_string().contains("a repair writes it again"), "{report}");
    // One that was whole is not made anew over what was written to it since.
    assert!(open.branch(TARGET).unwrap_err().to_string().contains("it is not empty"));
    let unfinished = b"{\"arc_branch\":1,\"source\":\"/store\"}";
    fs.remove_file(&root.join("BRANCH")).unwrap();
    fs.create_new(&root.join("BRANCH")).unwrap().write_all_at(&[unfinished], 0).unwrap();
    let error = verify_on(&fs, root).unwrap_err();
    assert!(error.to_string().contains("a branch that was never finished"), "{error}");
    open.branch(TARGET).unwrap();
    assert_eq!(rows(&fs, TARGET), 1);
}
