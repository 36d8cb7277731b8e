//! The process dies at each named step of commit, flush and recovery, and its writes are sent again to the next one: each is
//! there exactly once.
//!
//! The test starts itself again as the process that dies. Needs the feature `crash-points`.

use std::{
    collections::BTreeSet,
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

use crate::retries::{WRITES, builder, send, send_all_again};

const POINTS: [&str; 9] = [
    "commit::appended",
    "commit::synced",
    "commit::applied",
    "flush::frozen",
    "flush::files_written",
    "flush::committed",
    "flush::swapped",
    "flush::released",
    "open::orphans_removed",
];
/// Names the data directory to the process that dies.
const DIRECTORY: &str = "ARC_RETRY_TEST_DIRECTORY";

/// Not a test by itself: writes and flushes until it dies, and says which writes were acknowledged.
#[test]
#[ignore = "started by the test below"]
fn the_process_that_dies() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let engine = builder(Path::new(&directory)).open().unwrap();
    let mut out = std::io::stdout();
    for n in 0..WRITES {
        let _ = send(&engine, n).unwrap();
        writeln!(out, "acknowledged {n}").unwrap();
        out.flush().unwrap();
        if n % 2 == 1 {
            engine.flush().unwrap();
        }
    }
}

/// Runs the process with a crash point; returns the writes it acknowledged, and whether it died.
fn run(directory: &Path, point: &str) -> (BTreeSet<i64>, bool) {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["retry_points::the_process_that_dies", "--exact", "--ignored", "--nocapture", "--test-threads=1"])
        .env(DIRECTORY, directory)
        .env("ARC_CRASH_POINT", point)
        .stderr(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&child.stdout).into_owned();
    let acknowledged = text.lines().filter_map(|line| line.split("acknowledged ").nth(1)?.trim().parse().ok());
    (acknowledged.collect(), !child.status.success())
}

#[test]
fn after_a_death_at_any_step_a_retry_makes_it_exactly_once() {
    for point in POINTS {
        for nth in 1..=3 {
            // Opening passes its point once.
            let nth = if point.starts_with("open") { 1 } else { nth };
            let dir = tempfile::tempdir().unwrap();
            let point = format!("{point}:{nth}");
            let (mut acknowledged, died) = run(dir.path(), &point);
            assert!(died, "{point} was not passed");
            // The next process sends everything again from the start, and dies in its turn or not.
            acknowledged.extend(run(dir.path(), &point).0);
            let engine = builder(dir.path()).open().unwrap();
            send_all_again(&engine, &|n| acknowledged.contains(&n), &point);
        }
    }
}
