//! What the tests share: engines that flush and compact only when told to, and answers as text.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use arc_core::{Answer, Engine, EngineBuilder, Error, Options, Result, clock::Clock};
use arrow::{array::RecordBatch, util::pretty::pretty_format_batches};

/// Returns one in how many steps a test cuts the power or fails a call: each of them in the proof.
pub(crate) fn stride(landing: usize) -> usize {
    if is_proof() { 1 } else { landing }
}

/// Returns how many of `all` cases a test generates: all of them in the proof.
pub(crate) fn cases(all: u32) -> u32 {
    if is_proof() { all } else { all / 3 }
}

fn is_proof() -> bool {
    std::env::var_os("TEST_TIER").is_some_and(|tier| tier == "proof")
}

/// An engine that flushes and compacts only when told to, and keeps no files for older states.
pub(crate) fn quiet(path: &Path) -> EngineBuilder {
    let mut options = Options::default();
    options.history = Duration::ZERO;
    Engine::builder(path).options(options).flush_after(Duration::from_secs(1 << 30)).compaction(false)
}

/// A clock that stands still until it is set.
#[derive(Debug, Default, Clone)]
pub(crate) struct HandClock(Arc<AtomicI64>);

impl HandClock {
    pub(crate) fn set(&self, now_ns: i64) {
        self.0.store(now_ns, Ordering::Relaxed);
    }
}

impl Clock for HandClock {
    fn now_ns(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

pub(crate) fn open(path: &Path) -> Engine {
    quiet(path).open().unwrap()
}

/// Opens what a crash left behind: clean before, clean while open, and clean after it is closed
/// like by another crash.
pub(crate) fn check_crashed(path: &Path, open: impl FnOnce() -> Engine, read: impl FnOnce(&Engine)) {
    match arc_core::verify(path) {
        Ok(report) => assert!(report.is_clean(), "before opening: {report}"),
        // The crash came before anything was there.
        Err(error) => assert!(matches!(error, Error::NotADataDirectory { .. }), "{error}"),
    }
    let engine = open();
    let report = engine.verify().unwrap();
    assert!(report.is_clean(), "open: {report}");
    read(&engine);
    drop(engine);
    let report = arc_core::verify(path).unwrap();
    assert!(report.findings.is_empty(), "after opening: {report}");
}

/// Writes line protocol of which every line is good.
pub(crate) fn write(engine: &Engine, database: &str, lines: &str) {
    let written = engine.write_lp(database, lines.as_bytes()).unwrap();
    assert_eq!(written.rejected_points, 0, "{:?}", written.rejected);
}

/// Returns the same lines in a body that is so large for them that they are logged in columns.
pub(crate) fn in_columns(lines: &str) -> String {
    format!("# {}\n{lines}", "x".repeat(8 << 10))
}

/// Runs a query to its end.
pub(crate) fn query(engine: &Engine, database: &str, sql: &str) -> Result<Vec<RecordBatch>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async { Answer::collect(engine.sql(database, sql).await?).await })
}

/// Runs a query and shows its rows as a table.
pub(crate) fn shown(engine: &Engine, database: &str, sql: &str) -> String {
    match query(engine, database, sql) {
        Ok(batches) => pretty_format_batches(&batches).unwrap().to_string(),
        Err(error) => format!("error: {error}"),
    }
}

/// Runs a query that answers one integer.
pub(crate) fn number(engine: &Engine, database: &str, sql: &str) -> i64 {
    use arrow::{array::AsArray, datatypes::Int64Type};
    let batches = query(engine, database, sql).unwrap();
    batches[0].column(0).as_primitive::<Int64Type>().value(0)
}
