//! The process dies at each named step of commit, flush, compaction and recovery: what it had acknowledged is there, exactly once.
//!
//! The test starts itself again as the process that dies. Needs the feature `crash-points`.

use std::{
    collections::BTreeSet,
    io::Write,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use arc_core::Options;
use arrow::{array::AsArray, datatypes::Int64Type};

use crate::support::{check_crashed, open, query, quiet};

const POINTS: [&str; 15] = [
    "commit::appended",
    "commit::synced",
    "commit::applied",
    "flush::frozen",
    "flush::files_written",
    "flush::committed",
    "flush::swapped",
    "flush::released",
    "compaction::files_written",
    "compaction::committed",
    "compaction::swapped",
    "compaction::removed",
    "retention::committed",
    "retention::swapped",
    "open::orphans_removed",
];
/// Names the data directory to the process that dies.
const DIRECTORY: &str = "ARC_CRASH_TEST_DIRECTORY";

/// Not a test by itself: writes, flushes and compacts until it dies, and says which points were acknowledged.
#[test]
#[ignore = "started by the test below"]
fn the_process_that_dies() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let mut options = Options::default();
    // Every flush gives files to merge, and what is replaced goes at once.
    options.compaction_quiet = Duration::ZERO;
    options.compaction_grace = Duration::ZERO;
    let builder = quiet(Path::new(&directory)).options(options).flush_after(Duration::from_secs(1 << 30));
    let engine = builder.compaction(false).open().unwrap();
    let mut out = std::io::stdout();
    for n in 0..12 {
        // Every other point is late for its series, and every third brings a column.
        let time = if n % 2 == 0 { n } else { n - 100 };
        let line = format!("m,client=a n={n}i,f{}=1 {time}", n / 3);
        assert_eq!(engine.write_lp("d", line.as_bytes()).unwrap().points, 1);
        writeln!(out, "acknowledged {n}").unwrap();
        out.flush().unwrap();
        if n % 4 == 3 {
            assert_eq!(engine.write_lp("d", b"gone x=1 1").unwrap().points, 1);
            engine.set_retention("d", Some("gone"), Some(Duration::from_secs(1))).unwrap();
            engine.flush().unwrap();
            engine.compact().unwrap();
        }
    }
}

/// Runs the process with a crash point; returns the points it acknowledged and whether it died.
fn run(directory: &Path, point: &str) -> (BTreeSet<i64>, bool) {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["points::the_process_that_dies", "--exact", "--ignored", "--nocapture", "--test-threads=1"])
        .env(DIRECTORY, directory)
        .env("ARC_CRASH_POINT", point)
        .stderr(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&child.stdout).into_owned();
    let acknowledged = text.lines().filter_map(|line| line.split("acknowledged ").nth(1)?.trim().parse().ok());
    (acknowledged.collect(), !child.status.success())
}

fn stored(directory: &Path) -> BTreeSet<i64> {
    let mut stored = BTreeSet::new();
    check_crashed(
        directory,
        || open(directory),
        |engine| {
            if engine.tables("d").map_or(true, |tables| tables.is_empty()) {
                return;
            }
            for batch in query(engine, "d", "SELECT n FROM m").unwrap() {
                for n in batch.column(0).as_primitive::<Int64Type>().values() {
                    assert!(stored.insert(*n), "point {n} came twice");
                }
            }
        },
    );
    stored
}

#[test]
fn after_a_death_at_any_step_acknowledged_points_are_there_once() {
    for point in POINTS {
        for nth in 1..=3 {
            // Opening passes its point once.
            let nth = if point.starts_with("open") { 1 } else { nth };
            let dir = tempfile::tempdir().unwrap();
            let point = format!("{point}:{nth}");
            let (acknowledged, died) = run(dir.path(), &point);
            assert!(died, "{point} was not passed");
            let found = stored(dir.path());
            assert!(found.is_superset(&acknowledged), "{point}: acknowledged {acknowledged:?}, found {found:?}");
            // One point more may have been under way.
            assert!(found.len() <= acknowledged.len() + 1, "{point}: acknowledged {acknowledged:?}, found {found:?}");
            assert_eq!(stored(dir.path()), found, "{point}: a second restart changes nothing");
        }
    }
}
