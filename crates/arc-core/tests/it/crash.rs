//! What was acknowledged is there, exactly once, after a loss of power at any moment and after any failed call.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use arc_core::{
    Engine, Error, Options,
    vfs::{CrashFs, Fault, FaultFs, Image, Vfs},
};
use arrow::{array::AsArray, datatypes::Int64Type};

use crate::support::{check_crashed, query, quiet};

/// Folder of the engine in the file system that crashes. It exists for real, empty, because queries look there.
pub(crate) fn root() -> PathBuf {
    std::env::temp_dir()
}

fn engine(vfs: Arc<dyn Vfs>, root: &Path) -> Result<Engine, Error> {
    let mut options = Options::default();
    options.wal_segment_bytes = 64 << 10;
    quiet(root).options(options).flush_after(std::time::Duration::from_secs(1 << 30)).vfs(vfs).open()
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
struct Write {
    points: Vec<i64>,
    begun: usize,
    acknowledged: Option<usize>,
}

/// Writes, flushes, late points, a new column and a restart; goes on after errors, as clients do.
fn scenario(vfs: &Arc<dyn Vfs>, operations: &dyn Fn() -> usize) -> Vec<Write> {
    let mut writes = Vec::new();
    let mut next = 0;
    for restart in 0..2 {
        let Ok(engine) = engine(Arc::clone(vfs), &root().join("arc-crash")) else { continue };
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
            writes.push(Write { points, begun, acknowledged });
            if step % 3 == 1 + restart % 2 {
                // A failed flush keeps its points in memory and in the log.
                let _ = engine.flush();
            }
        }
        if restart == 0 {
            let _ = engine.close();
        }
    }
    writes
}

/// Opens what the crash left and returns the points in it.
fn survivors(image: &Image) -> BTreeSet<i64> {
    let dir = tempfile::tempdir().unwrap();
    image.write_to(dir.path()).unwrap();
    let inside = root().join("arc-crash");
    let path = dir.path().join(inside.strip_prefix("/").unwrap_or(&inside));
    let mut found = BTreeSet::new();
    let open = || engine(Arc::new(arc_core::vfs::RealVfs), &path).unwrap();
    check_crashed(&path, open, |engine| {
        if engine.databases().is_empty() || engine.tables("d").unwrap().is_empty() {
            return;
        }
        for batch in query(engine, "d", "SELECT n FROM m").unwrap() {
            for n in batch.column(0).as_primitive::<Int64Type>().values() {
                assert!(found.insert(*n), "point {n} came twice");
            }
        }
    });
    found
}

fn check(writes: &[Write], operations: usize, found: &BTreeSet<i64>, case: &str) {
    for write in writes {
        let present = write.points.iter().filter(|n| found.contains(n)).count();
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
    let writes = scenario(&vfs, &|| fs.operations());
    assert!(writes.iter().all(|write| write.acknowledged.is_some()));
    let mut images = 0;
    for cut in fs.power_cuts() {
        let operations = cut.operations();
        // A different seed at each operation, so that the few images differ from one to the next.
        for image in cut.images(operations as u64, 4) {
            images += 1;
            check(&writes, operations, &survivors(&image), &format!("after {operations} operations"));
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
        let writes = scenario(&vfs, &|| fs.operations());
        failed += faulty.failed().values().sum::<u64>();
        let now = fs.operations();
        check(&writes, now, &survivors(&fs.current()), &format!("kill after failed call {nth}"));
        for image in fs.power_cut().images(nth, 2) {
            check(&writes, now, &survivors(&image), &format!("power cut after failed call {nth}"));
        }
    }
    assert!(failed > calls / 2, "only {failed} of {calls} calls failed");
}
