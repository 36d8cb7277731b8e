//! A backup that is taken under load has every point that was acknowledged before, once.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
    thread,
};

use arc_core::{ErrorKind, restore, verify};

use crate::support::{number, open, quiet};

const WRITERS: usize = 4;

/// Counts the points of each writer, and checks that they are the first so many, each once.
fn counts(path: &Path) -> Vec<i64> {
    let engine = open(path);
    let count = |writer: usize| {
        let of = |what: &str| number(&engine, "d", &format!("SELECT {what} FROM m WHERE w = '{writer}'"));
        let count = of("count(*)");
        assert_eq!((of("count(DISTINCT n)"), of("max(n)") + 1), (count, count), "writer {writer}");
        count
    };
    (0..WRITERS).map(count).collect()
}

#[test]
fn points_acknowledged_before_a_backup_are_in_it_once_while_others_are_written() {
    let dir = tempfile::tempdir().unwrap();
    let (data, copies) = (dir.path().join("data"), dir.path().join("copies/a"));
    let engine = quiet(&data).flush_bytes(256 << 10).open().unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let acknowledged: Arc<Vec<AtomicI64>> = Arc::new((0..WRITERS).map(|_| AtomicI64::new(0)).collect());
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let (engine, stop, acknowledged) = (engine.clone(), Arc::clone(&stop), Arc::clone(&acknowledged));
            thread::spawn(move || {
                for n in (0_i64..).step_by(50) {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let lines: String = (n..n + 50).map(|n| format!("m,w={writer} n={n}i {n}\n")).collect();
                    assert_eq!(engine.write_lp("d", lines.as_bytes()).unwrap().points, 50);
                    acknowledged[writer].store(n + 50, Ordering::SeqCst);
                }
            })
        })
        .collect();
    let mut kept = 0;
    for round in 0..3 {
        while acknowledged.iter().any(|count| count.load(Ordering::SeqCst) < (round + 1) * 2_000) {
            thread::yield_now();
        }
        let before: Vec<i64> = acknowledged.iter().map(|count| count.load(Ordering::SeqCst)).collect();
        let report = engine.backup(&copies).unwrap();
        kept += report.kept_files;
        assert!(engine.verify().unwrap().is_clean());
        let clean = verify(&copies).unwrap();
        assert!(clean.findings.is_empty(), "{clean}");
        let restored = dir.path().join(format!("restored-{round}"));
        assert_eq!(restore(&copies, &restored).unwrap().rows, report.rows);
        let clean = verify(&restored).unwrap();
        assert!(clean.findings.is_empty(), "{clean}");
        let found = counts(&restored);
        assert!(found.iter().zip(&before).all(|(found, before)| found >= before), "{found:?}, {before:?}");
    }
    assert!(kept > 0, "later backups take only what is new");
    stop.store(true, Ordering::Relaxed);
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    engine.close().unwrap();
    assert_eq!(engine.backup(&copies).unwrap_err().kind(), ErrorKind::Closed);
    assert!(verify(&data).unwrap().is_clean());
}

#[test]
fn a_backup_outlives_the_directory_that_it_was_made_from() {
    let dir = tempfile::tempdir().unwrap();
    let (data, copy) = (dir.path().join("data"), dir.path().join("copy"));
    let engine = open(&data);
    let lines: String = (0..50).map(|n| format!("m,w={} n={}i {n}\n", n % 4, n / 4)).collect();
    assert_eq!(engine.write_lp("d", lines.as_bytes()).unwrap().points, 50);
    engine.backup(&copy).unwrap();
    drop(engine);
    std::fs::remove_dir_all(&data).unwrap();
    assert_eq!(counts(&copy).iter().sum::<i64>(), 50);
}
