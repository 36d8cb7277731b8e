//! What was acknowledged is there, exactly once, after a loss of power at any moment and after any failed call.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use arc_core::{
    Comparison, Engine, Error, Options, Predicate,
    vfs::{CrashFs, Fault, FaultFs, Image, Vfs},
};
use arrow::{array::AsArray, datatypes::Int64Type};

use crate::support::{HandClock, check_crashed, number, query, quiet};

/// Points of a table of their own, some of which are deleted, begin here.
const DELETED: i64 = 1_000_000;

const YEAR_NS: i64 = 365 * 86_400_000_000_000;

/// Folder of the engine in the file system that crashes. It exists for real, empty, because queries look there.
pub(crate) fn root() -> PathBuf {
    std::env::temp_dir()
}

/// The clock stands at the epoch, in the day that the points are of; only `clock` can make that day be over.
pub(crate) fn engine(vfs: Arc<dyn Vfs>, root: &Path, clock: &HandClock) -> Result<Engine, Error> {
    let mut options = Options::default();
    options.wal_segment_bytes = 64 << 10;
    options.compaction_files = 2;
    options.compaction_grace = Duration::ZERO;
    let builder = quiet(root).options(options).compaction(false).flush_after(Duration::from_secs(1 << 30));
    builder.clock(Arc::new(clock.clone())).vfs(vfs).open()
}

/// A disk on which that folder is safe.
pub(crate) fn disk() -> CrashFs {
    let fs = CrashFs::new();
    fs.create_dir_all(&root()).unwrap();
    for folder in root().ancestors() {
        fs.sync_dir(folder).unwrap();
    }
    fs
}

/// One write of the scenario: its points, and between which operations of the file system it was under way.
#[derive(Debug)]
pub(crate) struct Write {
    pub(crate) points: Vec<i64>,
    pub(crate) begun: usize,
    pub(crate) acknowledged: Option<usize>,
    /// The delete of its points: when it was begun, and acknowledged.
    pub(crate) deleted: Option<(usize, Option<usize>)>,
}

/// Writes, flushes, deletes, late points, a new column, merges of files, a retention and a restart; goes on after errors, as
/// clients do.
///
/// Returns the writes, and how many merges were done and files expired.
pub(crate) fn scenario(vfs: &Arc<dyn Vfs>, operations: &dyn Fn() -> usize) -> (Vec<Write>, u64) {
    let (mut writes, mut gone) = (Vec::new(), 0);
    let mut next = 0;
    for restart in 0..2 {
        let clock = HandClock::default();
        let Ok(engine) = engine(Arc::clone(vfs), &root().join("arc-crash"), &clock) else { continue };
        for step in 0..6 {
            let points: Vec<i64> = (next..next + 3).collect();
            next += 3;
            let mut body = String::new();
            for n in &points {
                // Every third point is older than those before it: late for its series.
                let time = if n % 3 == 2 { n - 2_000 } else { *n };
                body.push_str(&format!("m,client=c{} n={n}i,f{step}=1 {time}\n", n % 2));
            }
            let begun = operations();
            let written = engine.write_lp("d", body.as_bytes());
            let acknowledged = written.ok().map(|written| {
                assert_eq!(written.points, 3);
                operations()
            });
            writes.push(Write { points, begun, acknowledged, deleted: None });
            if step == 1 || restart == 1 && step == 2 {
                // In a table of its own: a point that is deleted, and one that comes after that and stays.
                for (last, n) in [(false, DELETED + next), (true, DELETED + next + 1)] {
                    let begun = operations();
                    let written = engine.write_lp("d", format!("other,h={next} n={n}i 1").as_bytes());
                    let acknowledged = written.ok().map(|_| operations());
                    writes.push(Write { points: vec![n], begun, acknowledged, deleted: None });
                    if last {
                        continue;
                    }
                    let begun = operations();
                    let done =
                        engine.delete("d", "other", &Predicate::compare("h", Comparison::Equal, &*next.to_string()));
                    let done = done.ok().map(|_| operations());
                    if let Some(write) = writes.last_mut() {
                        write.deleted = Some((begun, done));
                    }
                }
                let begun = operations();
                let n = DELETED + next + 2;
                let written = engine.write_lp("d", format!("other,h=b n={n}i {n}").as_bytes());
                let acknowledged = written.ok().map(|_| operations());
                writes.push(Write { points: vec![n], begun, acknowledged, deleted: None });
            }
            if step % 3 == 1 + restart % 2 {
                // A failed flush keeps its points in memory and in the log.
                let _ = engine.flush();
                // Files of one size, late ones among them.
                let _ = engine.compact();
            }
        }
        if restart == 1 {
            let _ = engine.write_lp("d", format!("gone x=1 {YEAR_NS}").as_bytes());
            let _ = engine.set_retention("d", Some("gone"), Some(Duration::from_secs(1)));
            let _ = engine.flush();
            // The days of all points are over, and the one point is past its retention.
            clock.set(2 * YEAR_NS);
            let _ = engine.compact();
        }
        gone += engine.stats().compactions + engine.stats().expired_files;
        if restart == 0 {
            let _ = engine.close();
        }
    }
    (writes, gone)
}

/// Opens what the crash left and returns the points in it.
pub(crate) fn survivors(image: &Image, compact: bool) -> BTreeSet<i64> {
    let dir = tempfile::tempdir().unwrap();
    image.write_to(dir.path()).unwrap();
    let inside = root().join("arc-crash");
    let path = dir.path().join(inside.strip_prefix("/").unwrap_or(&inside));
    let mut found = BTreeSet::new();
    let open = || engine(Arc::new(arc_core::vfs::RealVfs), &path, &HandClock::default()).unwrap();
    check_crashed(&path, open, |engine| {
        if engine.databases().is_empty() || engine.tables("d").unwrap().is_empty() {
            return;
        }
        for table in ["m", "other"].iter().filter(|table| engine.schema("d", table).is_ok()) {
            for batch in query(engine, "d", &format!("SELECT n FROM {table}")).unwrap() {
                for n in batch.column(0).as_primitive::<Int64Type>().values() {
                    assert!(found.insert(*n), "point {n} came twice");
                }
            }
        }
        // No file may be live and missing.
        for table in engine.tables("d").unwrap() {
            let files = engine.data_files("d", &table.schema.table).unwrap();
            assert!(files.iter().all(|file| path.join(&file.path).is_file()), "{files:?}");
        }
        if compact {
            // What the crash left can be merged like anything else.
            engine.compact().unwrap();
            let kept = found.iter().filter(|n| **n < DELETED).count();
            assert_eq!(number(engine, "d", "SELECT count(n) FROM m"), i64::try_from(kept).unwrap());
        }
    });
    found
}

pub(crate) fn check(writes: &[Write], operations: usize, found: &BTreeSet<i64>, case: &str) {
    for write in writes {
        let present = write.points.iter().filter(|n| found.contains(n)).count();
        match write.deleted {
            Some((_, Some(done))) if done <= operations => {
                assert_eq!(present, 0, "{case}: a point came back: {write:?}");
                continue;
            }
            // Under way, or without an answer: done or not.
            Some((begun, _)) if begun <= operations => continue,
            _ => {}
        }
        if write.acknowledged.is_some_and(|at| at <= operations) {
            assert_eq!(present, write.points.len(), "{case}: an acknowledged write was lost: {write:?}");
        } else if write.begun > operations {
            assert_eq!(present, 0, "{case}: a write came from the future: {write:?}");
        } else {
            assert!(present == 0 || present == write.points.len(), "{case}: half a write: {write:?}");
        }
    }
}

#[test]
fn after_a_loss_of_power_at_any_moment_acknowledged_points_are_there_once() {
    let fs = disk();
    let vfs: Arc<dyn Vfs> = Arc::new(fs.clone());
    let (writes, gone) = scenario(&vfs, &|| fs.operations());
    assert!(gone > 3, "only {gone} merges");
    assert!(writes.iter().all(|write| write.acknowledged.is_some()));
    let mut images = 0;
    for cut in fs.power_cuts() {
        let operations = cut.operations();
        // A different seed at each operation, so that the few images differ from one to the next.
        for image in cut.images(operations as u64, 2) {
            images += 1;
            let found = survivors(&image, images % 16 == 0);
            check(&writes, operations, &found, &format!("after {operations} operations"));
        }
    }
    assert!(images > 200, "only {images} images");
}

#[test]
fn after_any_failed_call_acknowledged_points_are_there_once() {
    let calls = {
        let fs = disk();
        let faulty = Arc::new(FaultFs::new(Arc::new(fs.clone())));
        let vfs: Arc<dyn Vfs> = faulty.clone();
        scenario(&vfs, &|| fs.operations());
        faulty.total_calls()
    };
    let mut failed = 0;
    for nth in 1..=calls {
        let fs = disk();
        let faulty = Arc::new(FaultFs::new(Arc::new(fs.clone())));
        let kind = [std::io::ErrorKind::Other, std::io::ErrorKind::StorageFull][(nth % 2) as usize];
        faulty.set(Fault::nth(nth, kind));
        let vfs: Arc<dyn Vfs> = faulty.clone();
        let (writes, _) = scenario(&vfs, &|| fs.operations());
        failed += faulty.failed().values().sum::<u64>();
        let now = fs.operations();
        check(&writes, now, &survivors(&fs.current(), nth % 16 == 0), &format!("kill after failed call {nth}"));
        for image in fs.power_cut().images(nth, 2) {
            check(&writes, now, &survivors(&image, false), &format!("power cut after failed call {nth}"));
        }
    }
    assert!(failed > calls / 2, "only {failed} of {calls} calls failed");
}
