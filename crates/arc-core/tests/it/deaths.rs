//! A process that dies at a named step: the test starts itself again, with a data directory and a
//! crash point.
//!
//! Owns how that process is started and what it says. In a release it needs the feature `crash-points`.

use std::{
    collections::BTreeSet,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::support::stride;

/// The steps that every write and flush, and every opening, passes.
pub(crate) const POINTS: [&str; 9] = [
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
const DIRECTORY: &str = "ARC_CRASH_TEST_DIRECTORY";

/// Returns the data directory, if this is the process that dies.
pub(crate) fn directory() -> Option<PathBuf> {
    std::env::var_os(DIRECTORY).map(PathBuf::from)
}

/// Says that something was done, in the process that dies.
pub(crate) fn say(what: &str, n: i64) {
    let mut out = std::io::stdout();
    writeln!(out, "{what} {n}").unwrap();
    out.flush().unwrap();
}

/// What a process said until it ended.
pub(crate) struct Said {
    text: String,
    pub(crate) died: bool,
}

impl Said {
    /// Returns the numbers of which it said `what`.
    pub(crate) fn of(&self, what: &str) -> BTreeSet<i64> {
        let number = |line: &str| line.split_once(what)?.1.trim().parse().ok();
        self.text.lines().filter_map(number).collect()
    }
}

/// Runs the ignored test `test` as the process that dies at `point`.
pub(crate) fn run(test: &str, directory: &Path, point: &str) -> Said {
    let child = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--ignored", "--nocapture", "--test-threads=1"])
        .env(DIRECTORY, directory)
        .env("ARC_CRASH_POINT", point)
        .stderr(Stdio::null())
        .output()
        .unwrap();
    Said { text: String::from_utf8_lossy(&child.stdout).into_owned(), died: !child.status.success() }
}

/// Runs it in directories of their own at each of `points`, at the first passages of each, and
/// calls `check` with what it left and said.
pub(crate) fn at_each(test: &str, points: &[&str], check: impl Fn(&Path, &str, &Said)) {
    for point in points {
        // Opening passes its point once.
        for nth in 1..=if point.starts_with("open") { 1 } else { 3 / stride(3) } {
            let dir = tempfile::tempdir().unwrap();
            let point = format!("{point}:{nth}");
            let said = run(test, dir.path(), &point);
            assert!(said.died, "{point} was not passed");
            check(dir.path(), &point, &said);
        }
    }
}
