//! What was acknowledged is there, exactly once, after a loss of power at any moment and after any
//! failed call.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use arc_core::{
    ColumnTypes, Comparison, Engine, Error, OnConflict, Options, Predicate,
    vfs::{CrashFs, Fault, FaultFs, Image, Vfs},
};
use arrow::{array::AsArray, datatypes::Int64Type};

use crate::support::{HandClock, check_crashed, in_columns, number, query, quiet, stride};

/// Points of a table of their own, some of which are deleted, begin here.
const DELETED: i64 = 1_000_000;

/// Points of the table that is dropped begin here, and at twice this those of the database.
const DROPPED: i64 = 2_000_000;

const YEAR_NS: i64 = 365 * 86_400_000_000_000;

/// Folder of the engine in the file system that crashes. It exists for real, empty, because queries
/// look there.
pub(crate) fn root() -> PathBuf {
    std::env::temp_dir()
}

/// The clock stands at the epoch, in the day that the points are of; only `clock` can make that day
/// be over.
pub(crate) fn engine(vfs: Arc<dyn Vfs>, root: &Path, clock: &HandClock) -> Result<Engine, Error> {
    let mut options = Options::default();
    options.wal_segment_bytes = 64 << 10;
    options.compaction_files = 2;
    (options.compaction_grace, options.history) = (Duration::ZERO, Duration::ZERO);
    // A flush of two tables makes a pack, one of a single table a file.
    options.pack_tables = 2;
    let builder = quiet(root).options(options).compaction(false).flush_after(Duration::from_secs(1 << 30));
    let builder = builder.column_types(ColumnTypes::new().on_conflict(OnConflict::Widen));
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

/// One write of the scenario: its points, and between which operations of the file system it was
/// under way.
#[derive(Debug)]
pub(crate) struct Write {
    pub(crate) points: Vec<i64>,
    pub(crate) begun: usize,
    pub(crate) acknowledged: Option<usize>,
    /// The delete or drop of its points: when it was begun, and acknowledged.
    pub(crate) deleted: Option<(usize, Option<usize>)>,
}

/// What was sent to an engine, in order.
pub(crate) struct Sent<'a> {
    pub(crate) operations: &'a dyn Fn() -> usize,
    pub(crate) writes: Vec<Write>,
}

impl Sent<'_> {
    /// Writes lines with `points`, every other time logged in columns, and notes when that was
    /// acknowledged, if it was.
    fn write(&mut self, engine: &Engine, database: &str, points: Vec<i64>, lines: &str) {
        let begun = (self.operations)();
        let lines = if self.writes.len().is_multiple_of(2) { in_columns(lines) } else { lines.to_owned() };
        let written = engine.write_lp(database, lines.as_bytes()).ok();
        let acknowledged = written.map(|written| {
            assert_eq!(written.points, points.len() as u64);
            (self.operations)()
        });
        self.writes.push(Write { points, begun, acknowledged, deleted: None });
    }

    /// Takes points away, by a delete or a drop that says whether it was done.
    pub(crate) fn take_away(&mut self, points: impl Fn(i64) -> bool, act: impl FnOnce() -> bool) {
        let begun = (self.operations)();
        let done = act().then(|| (self.operations)());
        let is_meant = |write: &&mut Write| points(write.points[0]) && write.deleted.is_none();
        self.writes.iter_mut().filter(is_meant).for_each(|write| write.deleted = Some((begun, done)));
    }
}

/// Writes, flushes, deletes, drops, late points, new columns and ones that change their type,
/// merges of files, a retention and a restart; goes on after errors, as clients do.
///
/// Returns the writes, and how many merges were done and files expired, moved out of sparse packs,
/// and unpacked.
pub(crate) fn scenario(vfs: &Arc<dyn Vfs>, operations: &dyn Fn() -> usize) -> (Vec<Write>, [u64; 3]) {
    let (mut sent, mut done) = (Sent { operations, writes: Vec::new() }, [0; 3]);
    for restart in 0..2 {
        let clock = HandClock::default();
        let Ok(engine) = engine(Arc::clone(vfs), &root().join("arc-crash"), &clock) else { continue };
        for step in 0..6 {
            let next = 3 * (6 * restart + step);
            let points: Vec<i64> = (next..next + 3).collect();
            let mut body = String::new();
            for n in &points {
                // Every third point is older than those before it: late for its series.
                let time = if n % 3 == 2 { n - 2_000 } else { *n };
                let w = widening(*n, restart, step);
                body.push_str(&format!("m,client=c{} n={n}i,w={w},f{step}=1 {time}\n", n % 2));
            }
            sent.write(&engine, "d", points, &body);
            if step == 1 || restart == 1 && step == 2 {
                delete_some(&mut sent, &engine, next);
            }
            drop_some(&mut sent, &engine, next, (restart, step));
            if step % 3 == 1 + restart % 2 {
                // A failed flush keeps its points in memory and in the log.
                let _ = engine.flush();
                // Files of one size, late ones among them.
                let _ = engine.compact();
            }
        }
        done[1] += engine.stats().moved_files;
        if restart == 1 {
            done[2] += engine.unpack().map_or(0, |report| report.moved_files);
            let _ = engine.write_lp("d", format!("gone x=1 {YEAR_NS}").as_bytes());
            let _ = engine.set_retention("d", Some("gone"), Some(Duration::from_secs(1)));
            let _ = engine.flush();
            // The days of all points are over, and the one point is past its retention.
            clock.set(2 * YEAR_NS);
            let _ = engine.compact();
        }
        done[0] += engine.stats().compactions + engine.stats().expired_files;
        if restart == 0 {
            let _ = engine.close();
        }
    }
    (sent.writes, done)
}

/// A value that says which point it is of: at first an integer, then a float, and at last a text.
fn widening(n: i64, restart: i64, step: i64) -> String {
    match (restart, step) {
        (0, 0..=2) => format!("{n}i"),
        (0, _) | (_, 0..=1) => format!("{n}.5"),
        _ => format!("\"{n}.25\""),
    }
}

/// In a table of its own: a point that is deleted, and two that come after that and stay.
fn delete_some(sent: &mut Sent<'_>, engine: &Engine, next: i64) {
    let first = DELETED + next;
    sent.write(engine, "d", vec![first], &format!("other,h={next} n={first}i 1"));
    let condition = Predicate::compare("h", Comparison::Equal, &*next.to_string());
    sent.take_away(|n| n == first, || engine.delete("d", "other", &condition).is_ok());
    sent.write(engine, "d", vec![first + 1], &format!("other,h={next} n={}i 1", first + 1));
    sent.write(engine, "d", vec![first + 2], &format!("other,h=b n={}i {next}", first + 2));
}

/// A table, and after the restart a database, that are dropped when a part of them is in files, and
/// then made anew.
fn drop_some(sent: &mut Sent<'_>, engine: &Engine, next: i64, (restart, step): (i64, i64)) {
    let (database, table) = [("d", "dropped"), ("e", "m")][usize::from(restart == 1)];
    let n = DROPPED * (1 + restart) + next;
    if [0, 2, 4].contains(&step) {
        sent.write(engine, database, vec![n], &format!("{table} n={n}i {n}"));
    }
    if step == 3 {
        let drop = || if restart == 0 { engine.drop_table(database, table) } else { engine.drop_database(database) };
        sent.take_away(|n| n / DROPPED == 1 + restart, || drop().is_ok());
    }
}
/// The numbers of all points in those of the tables that are there; one statement, for planning is
/// most of the work.
pub(crate) fn numbers(engine: &Engine, tables: &[(&str, &str)]) -> Vec<i64> {
    let there = tables.iter().filter(|(database, table)| engine.schema(database, table).is_ok());
    let parts: Vec<String> = there.map(|(database, table)| format!("SELECT n FROM {database}.{table}")).collect();
    if parts.is_empty() {
        return Vec::new();
    }
    let batches = query(engine, "d", &parts.join(" UNION ALL ")).unwrap();
    batches.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec()).collect()
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
        let tables = [("d", "m"), ("d", "other"), ("d", "dropped"), ("e", "m")];
        for n in numbers(engine, &tables) {
            assert!(found.insert(n), "point {n} came twice");
        }
        if engine.schema("d", "m").is_ok_and(|schema| schema.position("w").is_some()) {
            let altered = "SELECT count(*) FROM m WHERE floor(CAST(w AS DOUBLE)) IS DISTINCT FROM n";
            assert_eq!(number(engine, "d", altered), 0);
        }
        // No file may be live and missing.
        for table in engine.tables("d").unwrap() {
            let files = engine.data_files("d", &table.schema.table).unwrap();
            assert!(
                files.iter().all(|file| path.join(file.packed().map_or(&*file.path, |(pack, _)| pack)).is_file()),
                "{files:?}"
            );
        }
        if compact {
            // What the crash left can be merged like anything else.
            engine.compact().unwrap();
            while engine.stats().retired_files > 0 {
                // The thread that planned the query above may hold them for a moment more.
                std::thread::yield_now();
                engine.compact().unwrap();
            }
            let kept = found.iter().filter(|n| **n < DELETED).count();
            assert_eq!(number(engine, "d", "SELECT count(n) FROM m"), i64::try_from(kept).unwrap());
        }
    });
    found
}

pub(crate) fn check(writes: &[Write], operations: usize, found: &BTreeSet<i64>, case: &str) {
    // What a delete or drop under way was about, by when it was begun: it is done or not.
    let mut under_way: BTreeMap<usize, Vec<bool>> = BTreeMap::new();
    for write in writes {
        let present = write.points.iter().filter(|n| found.contains(n)).count();
        match write.deleted {
            Some((_, Some(done))) if done <= operations => {
                assert_eq!(present, 0, "{case}: a point came back: {write:?}");
                continue;
            }
            // Under way, or without an answer: done or not.
            Some((begun, _)) if begun <= operations => {
                assert!(present == 0 || present == write.points.len(), "{case}: half a write: {write:?}");
                if write.acknowledged.is_some_and(|at| at <= begun) {
                    under_way.entry(begun).or_default().push(present > 0);
                }
                continue;
            }
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
    for (begun, present) in under_way {
        let is_whole = present.iter().all(|is_there| *is_there == present[0]);
        assert!(is_whole, "{case}: half a drop, which was begun after {begun} operations");
    }
}

#[test]
fn after_a_loss_of_power_at_any_moment_acknowledged_points_are_there_once() {
    let fs = disk();
    let vfs: Arc<dyn Vfs> = Arc::new(fs.clone());
    let (writes, [gone, moved, unpacked]) = scenario(&vfs, &|| fs.operations());
    assert!(gone > 3 && moved > 0 && unpacked > 0, "only {gone} merges, {moved} files moved, {unpacked} unpacked");
    assert!(writes.iter().all(|write| write.acknowledged.is_some()));
    let mut images = 0;
    for cut in fs.power_cuts().step_by(stride(6)) {
        let operations = cut.operations();
        // A different seed at each operation, so that the few images differ from one to the next.
        for image in cut.images(operations as u64, 2) {
            images += 1;
            let found = survivors(&image, images % 16 == 0);
            check(&writes, operations, &found, &format!("after {operations} operations"));
        }
    }
    assert!(images > 240 / stride(6), "only {images} images");
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
    for nth in (1..=calls).step_by(stride(11)) {
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
    assert!(failed > calls / 2 / stride(11) as u64, "only {failed} of {calls} calls failed");
}
