//! A write whose outcome nothing knows is sent again under its key, and is there exactly once:
//! after a loss of power at any moment, after any failed call, after a death at any named step.
//!
//! The points have no timestamps, so that a write that is stored twice makes two rows. That makes
//! this the strongest proof that nothing is doubled: points that merge with themselves would hide
//! it.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use arc_core::{
    Durability, Engine, EngineBuilder, ErrorKind, Options, WriteOptions,
    vfs::{CrashFs, Fault, FaultFs, Image, RealVfs, Vfs},
};
use arrow::{array::AsArray, datatypes::Int64Type};

use crate::{
    crash::{disk, root},
    support::{check_crashed, query, quiet, stride},
};

/// Writes of the scenario.
pub(crate) const WRITES: i64 = 6;
const POINTS: i64 = 2;

pub(crate) fn builder(path: &std::path::Path) -> EngineBuilder {
    let mut options = Options::default();
    options.wal_segment_bytes = 64 << 10;
    quiet(path).options(options).flush_after(Duration::from_secs(1 << 30))
}

/// Sends write `n`, for the first time or again.
pub(crate) fn send(engine: &Engine, n: i64) -> arc_core::Result<arc_core::Written> {
    let lines: String = (0..POINTS).map(|point| format!("m n={}i,f{}=1\n", n * POINTS + point, n / 3)).collect();
    // Those of an even number are as safe from a kill as the others, and not from a loss of power.
    let durability = if n % 4 == 2 { Durability::Process } else { Durability::Disk };
    let options = WriteOptions::new().idempotency_key(format!("write {n}")).durability(durability);
    engine.submit_lp("d", lines.into(), &options)?.wait()
}

/// One acknowledgement: of which write, after how many operations of the file system.
type Acknowledged = Vec<(i64, usize)>;

/// Sends writes one after the other, and each of them again, flushes, restarts and goes on.
/// Whatever fails is sent again at once and after the restart, as clients do.
fn scenario(vfs: &Arc<dyn Vfs>, operations: &dyn Fn() -> usize) -> Acknowledged {
    let mut acknowledged = Vec::new();
    for restart in 0..2 {
        let Ok(engine) = builder(&root().join("arc-crash")).vfs(Arc::clone(vfs)).open() else { continue };
        let half = WRITES / 2;
        for n in 0..half * (restart + 1) {
            for _ in 0..2 {
                if let Ok(written) = send(&engine, n) {
                    assert_eq!(written.points, POINTS.cast_unsigned());
                    let is_known = acknowledged.iter().any(|(known, _)| *known == n);
                    assert!(written.replayed || !is_known, "write {n} was stored again");
                    acknowledged.push((n, operations()));
                }
            }
            if n % 3 == restart {
                // A failed flush keeps its points and their keys.
                let _ = engine.flush();
            }
        }
        if restart == 0 {
            let _ = engine.close();
        }
    }
    acknowledged
}

/// The points that are there, and how often.
fn stored(engine: &Engine) -> BTreeMap<i64, u64> {
    let mut found = BTreeMap::new();
    if engine.tables("d").map_or(true, |tables| tables.is_empty()) {
        return found;
    }
    for batch in query(engine, "d", "SELECT n FROM m").unwrap() {
        for n in batch.column(0).as_primitive::<Int64Type>().values() {
            *found.entry(*n).or_insert(0) += 1;
        }
    }
    found
}

/// Sends every write again, to an engine that a crash left behind; those in `known` were
/// acknowledged before.
pub(crate) fn send_all_again(engine: &Engine, known: &dyn Fn(i64) -> bool, case: &str) {
    let before = stored(engine);
    for n in 0..WRITES {
        let points: Vec<u64> = (0..POINTS).map(|p| before.get(&(n * POINTS + p)).copied().unwrap_or(0)).collect();
        assert!(points == [0, 0] || points == [1, 1], "{case}: write {n} is there {points:?} times");
        let is_there = points[0] == 1;
        assert!(is_there || !known(n), "{case}: write {n} was acknowledged and lost");
        let written = send(engine, n).unwrap();
        assert_eq!((written.points, written.replayed), (POINTS.cast_unsigned(), is_there), "{case}: write {n}");
    }
    let all: BTreeMap<i64, u64> = (0..WRITES * POINTS).map(|point| (point, 1)).collect();
    assert_eq!(stored(engine), all, "{case}");
}

/// Opens what a crash left, sends everything again, flushed or not, restarts and does it once more.
fn check(image: &Image, known: &dyn Fn(i64) -> bool, case: &str) {
    let dir = tempfile::tempdir().unwrap();
    image.write_to(dir.path()).unwrap();
    let inside = root().join("arc-crash");
    let path = dir.path().join(inside.strip_prefix("/").unwrap_or(&inside));
    let open = || builder(&path).vfs(Arc::new(RealVfs)).open().unwrap();
    check_crashed(&path, open, |engine| send_all_again(engine, known, case));
    let engine = open();
    if case.len().is_multiple_of(2) {
        engine.flush().unwrap();
    }
    send_all_again(&engine, &|_| true, case);
}

/// Whether a write was acknowledged within `operations` and promised to survive: process alone
/// promises it for a kill.
fn is_known(acknowledged: &Acknowledged, operations: usize, power_cut: bool) -> impl Fn(i64) -> bool {
    move |n| {
        let is_promised = !power_cut || n % 4 != 2;
        is_promised && acknowledged.iter().any(|(known, at)| *known == n && *at <= operations)
    }
}

#[test]
fn after_a_loss_of_power_at_any_moment_a_retry_makes_it_exactly_once() {
    let fs = disk();
    let vfs: Arc<dyn Vfs> = Arc::new(fs.clone());
    let acknowledged = scenario(&vfs, &|| fs.operations());
    // All of them twice, and the first half twice more after the restart.
    assert_eq!(acknowledged.len(), 3 * usize::try_from(WRITES).unwrap());
    let mut images = 0;
    for cut in fs.power_cuts().step_by(stride(3)) {
        let operations = cut.operations();
        for image in cut.images(operations as u64, 2) {
            images += 1;
            check(&image, &is_known(&acknowledged, operations, true), &format!("after {operations} operations"));
        }
    }
    assert!(images > 105 / stride(3), "only {images} images");
}

#[test]
fn after_any_failed_call_a_retry_makes_it_exactly_once() {
    let run = |fault: Option<Fault>| {
        let fs = disk();
        let faulty = FaultFs::new(Arc::new(fs.clone()));
        if let Some(fault) = fault {
            faulty.set(fault);
        }
        let vfs: Arc<dyn Vfs> = Arc::new(faulty.clone());
        let acknowledged = scenario(&vfs, &|| fs.operations());
        (fs, faulty, acknowledged)
    };
    let calls = run(None).1.total_calls();
    let mut failed = 0;
    for nth in (1..=calls).step_by(stride(5)) {
        let kind = [std::io::ErrorKind::Other, std::io::ErrorKind::StorageFull][(nth % 2) as usize];
        let mut fault = Fault::nth(nth, kind);
        fault.short_write = nth % 3 == 0;
        let (fs, faulty, acknowledged) = run(Some(fault));
        failed += faulty.failed().values().sum::<u64>();
        let now = fs.operations();
        check(&fs.current(), &is_known(&acknowledged, now, false), &format!("kill after failed call {nth}"));
        // Every other one, for each case opens, queries and verifies three engines.
        for image in fs.power_cut().images(nth, (nth % 2) as usize) {
            check(&image, &is_known(&acknowledged, now, true), &format!("power cut after failed call {nth}"));
        }
    }
    assert!(failed > calls / 2 / stride(5) as u64, "only {failed} of {calls} calls failed");
}

#[test]
fn while_the_outcome_is_unknown_nobody_gets_an_answer_and_after_the_restart_everybody_does() {
    let fs: CrashFs = disk();
    let faulty = FaultFs::new(Arc::new(fs.clone()));
    let path: PathBuf = root().join("arc-crash");
    let engine = builder(&path).vfs(Arc::new(faulty.clone())).open().unwrap();
    let _ = send(&engine, 0).unwrap();
    faulty.set(Fault::nth(1, std::io::ErrorKind::Other).of(arc_core::vfs::Operation::SyncData));
    for expected in [ErrorKind::Unknown, ErrorKind::Closed] {
        assert_eq!(send(&engine, 1).unwrap_err().kind(), expected);
    }
    drop(engine);
    check(&fs.current(), &|n| n == 0, "the frame is there and was never synced");
    for image in fs.power_cut().images(1, 20) {
        check(&image, &|n| n == 0, "the frame may be there");
    }
}
